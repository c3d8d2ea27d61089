# ruff: noqa: E501 - long statements
"""LM functions in statements that PostgreSQL runs: what the server gives where it evaluates them row by row.

The reference is the same server, with the functions as functions of its own, called for each row. They are given cells
as ``name=value``, and go by those that are not null, as what the model reads does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scripted import Scripted, each_row, shown_rows

import tagframe as tf
from tagframe.answer.lm_sql import staging
from tagframe.errors import LMError, RowsFailed, ServerGone, SQLFailed, UnsafeSQL
from tagframe.lm import Completion, Prompt
from tests.answer.drawn_conditions import Both, conditions, fill_in, same
from tests.draws import DRAWS

pytestmark = pytest.mark.slow

SCRIPT = r"""
CREATE TABLE film (id int PRIMARY KEY, name text, kind varchar(9), year int, "Odd name" text, price numeric(6, 2),
    seen boolean, made date, doc json);
INSERT INTO film SELECT n, (ARRAY['Ann', 'ann', NULL, 'it''s', 'a,b', '', 'NULL', 'x\y', '''NULL'''])[1 + n % 9],
    (ARRAY['1', '1.0', NULL, 'drama'])[1 + n % 4], 1990 + n % 4, 'odd name ' || n % 3 || ', long to be said once', n % 5 * 1.25,
    CASE n % 3 WHEN 0 THEN true WHEN 1 THEN false END, date '1990-01-01' + n % 4, json_build_object('n', n % 2)
    FROM generate_series(1, 24) n;
CREATE TABLE review (id int PRIMARY KEY, film_id int, body text, stars float8);
INSERT INTO review SELECT n, n % 30, CASE WHEN n % 5 > 0 THEN 'body ' || n % 7 END, n % 4 / 2.0
    FROM generate_series(1, 40) n;
CREATE SCHEMA ref;
CREATE FUNCTION ref.row_text(VARIADIC cells text[]) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT string_agg(cell, '|' ORDER BY cell COLLATE "C") FROM unnest(cells) AS cell $$;
CREATE FUNCTION ref.number(VARIADIC cells text[]) RETURNS int LANGUAGE sql IMMUTABLE AS
    $$ SELECT ('x' || substr(md5(ref.row_text(VARIADIC cells)), 1, 6))::bit(24)::int $$;
CREATE FUNCTION ref.filter(VARIADIC cells text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS
    $$ SELECT CASE ref.number(VARIADIC cells) % 3 WHEN 0 THEN true WHEN 1 THEN false END $$;
CREATE FUNCTION ref.score(VARIADIC cells text[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS
    $$ SELECT ref.number(VARIADIC cells) % 5 / 4.0 $$;
CREATE FUNCTION ref.map(VARIADIC cells text[]) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT substr('abc', 1 + ref.number(VARIADIC cells) % 3, 1) $$;
"""


def text(cell: Any) -> str:
    """A value that the model reads, as PostgreSQL writes it."""
    if isinstance(cell, str):
        return cell
    return str(cell).lower() if isinstance(cell, bool) else f"{cell:g}"


def row_text(row: dict[str, Any]) -> str:
    return "|".join(sorted(f"{name}={text(cell)}" for name, cell in row.items()))


def md5(words: str) -> str:
    return hashlib.md5(words.encode()).hexdigest()


def number(row: dict[str, Any]) -> int:
    return int(md5(row_text(row))[:6], 16)


def model(message: str) -> str:
    if "it's all of" in message:
        return f"text {md5(';'.join(sorted(map(row_text, shown_rows(message)))))}"
    return each_row(said, message)


def said(message: str, row: dict[str, Any]) -> str:
    if "how much" in message:
        return str(number(row) % 5 / 4)
    if "which word" in message:
        return "abc"[number(row) % 3]
    return {0: "True", 1: "False"}.get(number(row) % 3, "Unknown")


class WholePrompt(Scripted):
    """A model whose answers are made from all messages of a prompt."""

    def completion(self, prompt: Prompt, accept: Callable[[str], object]) -> Completion:
        whole = "\n".join(str(message.content) for message in prompt.messages)
        return super().completion(Prompt.of(whole), accept)


@pytest.fixture(scope="module")
def url(lasting) -> str:
    return lasting("functions", SCRIPT)


@pytest.fixture(scope="module")
def cinema(url) -> tf.Corpus:
    return tf.open_corpus(url, progress=False)


@pytest.fixture(scope="module")
def reference(url):
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def lm():
    scripted = WholePrompt(model)
    with tf.context(lm=scripted):
        yield scripted


PLAIN_F = ["f.year > 1991", "f.name = 'ann'", "f.kind IS NULL", "f.id % 3 = 0", "f.seen", "f.price >= 2.5"]
PLAIN_R = ["r.stars > 0.5", "r.body IS NULL", "r.id % 2 = 0"]
COLUMNS_F = ["f.name", "f.kind", "f.year", 'f."Odd name"', "f.price", "f.seen", "f.made", "f.doc"]
COLUMNS_R = ["r.body", "r.stars"]


def call(function: str, columns: list[str]) -> Both:
    words = {"filter": "true of", "score": "how much", "map": "which word", "agg": "all of"}[function]
    braces = " and ".join(f"{{{column}}}" for column in columns)
    cells = ", ".join(map(named, columns))
    row = f'(ref.row_text({cells}) COLLATE "C")'
    agg = f"'text ' || md5(string_agg({row}, ';' ORDER BY {row}))"
    return f"sem_{function}('it''s {words} {braces}')", agg if function == "agg" else f"ref.{function}({cells})"


def named(column: str) -> str:
    cell = f"trim_scale({column})" if column == "f.price" else column
    shown = f"'{column.split('.')[-1].strip(chr(34))}=' || {cell}::text"
    return f"CASE WHEN btrim({cell}::text) <> '' THEN {shown} END"  # what is blank is not shown


@st.composite
def statements(draw) -> Both:
    where = draw(conditions(call, COLUMNS_F, PLAIN_F))
    if draw(st.booleans()):
        where = fill_in("{0} AND {1}", where, draw(conditions(call, COLUMNS_F, PLAIN_F)))
    limit = same(draw(st.sampled_from(["", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 20"])))
    one = call("map", [draw(st.sampled_from(COLUMNS_F))])
    shape = draw(st.integers(0, 8))
    if shape == 0:
        return fill_in("SELECT f.id, {2} AS w FROM film f WHERE {0} ORDER BY f.id{1}", where, limit, one)
    if shape == 1:
        rank = call("score", [draw(st.sampled_from(COLUMNS_F))])
        return fill_in("SELECT f.id, {2} AS s FROM film AS f WHERE {0} ORDER BY s DESC, f.id{1}", where, limit, rank)
    if shape == 2:
        is_left = draw(st.booleans())
        join = same("LEFT JOIN" if is_left else "JOIN")
        on = (
            same("r.stars > 0.5") if is_left else draw(conditions(call, [*COLUMNS_F, *COLUMNS_R], PLAIN_F + PLAIN_R, 1))
        )
        pattern = "SELECT f.id, r.id FROM film f {0} review r ON f.id = r.film_id AND {1} WHERE {2} ORDER BY 1, 2{3}"
        return fill_in(pattern, join, on, where, limit)
    if shape == 3:
        pattern = "SELECT {0} AS w, count(*) AS n FROM film f WHERE {1} GROUP BY w HAVING count(*) > 1 ORDER BY w{2}"
        return fill_in(pattern, one, where, limit)
    if shape == 4:
        key = draw(st.sampled_from(["f.year", 'f."Odd name"', "f.name", "f.kind", "f.price", "f.made"]))
        pattern = (
            "SELECT {0}, {1}, count(*) FILTER (WHERE {2}) FROM film f GROUP BY {0} "
            "HAVING count(*) > 3 AND {3} ORDER BY {0}{4}"
        )
        return fill_in(pattern, same(key), call("map", [key]), where, call("filter", [key]), limit)
    if shape == 5:
        pattern = (
            "SELECT f.id FROM film f WHERE {0} AND f.id IN (SELECT r.film_id FROM review r WHERE {1}) ORDER BY f.id{2}"
        )
        return fill_in(pattern, where, draw(conditions(call, COLUMNS_R, PLAIN_R)), limit)
    if shape == 6:
        pattern = (
            "WITH good AS (SELECT r.film_id, {2} AS w FROM review r WHERE {1}), all_of AS (SELECT * FROM good) "
            "SELECT f.id, g.w FROM film f JOIN all_of g ON g.film_id = f.id WHERE {0} ORDER BY 1, 2{3}"
        )
        return fill_in(pattern, where, draw(conditions(call, COLUMNS_R, PLAIN_R)), call("map", ["r.body"]), limit)
    if shape == 7:
        key = draw(st.sampled_from([same("f.year"), same("f.name"), one]))
        whole = call("agg", [draw(st.sampled_from(COLUMNS_F))])
        pattern = "SELECT {0} AS k, {1} AS t FROM film f WHERE {2} GROUP BY {0} ORDER BY 1{3}"
        return fill_in(pattern, key, whole, where, limit)
    return fill_in("SELECT {1} AS t, count(*) FROM film f WHERE {0}", where, call("agg", ["f.name", "f.kind"]))


def compared(cell: Any) -> Any:
    if pd.isna(cell):
        return None
    if hasattr(cell, "isoformat"):
        return cell.isoformat()[:10]
    return cell if isinstance(cell, bool | str) else float(cell)


SAID_ONCE = fill_in(
    """SELECT f.id, {0} AS w FROM film f WHERE f."Odd name" LIKE 'odd name 1%' AND f.id < 10 ORDER BY f.id""",
    call("map", ['f."Odd name"', "f.name"]),
)
"""Three rows, too few to audit, in one pack: they have a long cell in common."""


@settings(max_examples=12 * DRAWS)
@given(statement=statements(), rows_per_call=st.sampled_from([None, 3, "auto"]))
@example(SAID_ONCE, "auto")
def test_a_staged_statement_is_row_by_row_evaluation(cinema, reference, statement, rows_per_call):
    staged, by_row = statement
    expected = [tuple(map(compared, row)) for row in reference.execute(by_row).fetchall()]
    with tf.context(lm=WholePrompt(model)):
        frame = tf.exec_sql(cinema, rows_per_call=rows_per_call)(staged)
    columns = [map(compared, frame.iloc[:, position].astype(object)) for position in range(frame.shape[1])]
    assert list(zip(*columns, strict=True)) == expected, staged


def run(corpus: tf.Corpus, sql: str, **options: Any) -> list[list[Any]]:
    frame = tf.exec_sql(corpus, **options)(sql)
    return [[compared(cell) for cell in row] for row in frame.astype(object).to_numpy().tolist()]


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT count(*) FROM film WHERE sem_filter('true of {name}') AND year = 1991", 5),
        (  # not recursive: it reads the table of its own name
            "WITH film AS (SELECT * FROM film WHERE year = 1991) SELECT count(*) FROM film WHERE sem_filter('true of {name}')",
            5,
        ),
        (
            "SELECT id FROM film f WHERE sem_filter('true of {F.Name}') AND f.id < 4",
            2,
        ),  # a name folds as the server's do
        ('SELECT id FROM film AS "F" WHERE sem_filter(\'true of {F."Odd name"}\')', 3),
        ("SELECT id FROM film WHERE sem_filter('true of {Odd name}')", 3),
        ("SELECT DISTINCT sem_map('which word {doc}') AS w FROM film ORDER BY w", 2),  # json, which has no equality
        ("SELECT id FROM film WHERE NOT sem_filter('true of {made}') ORDER BY id DESC LIMIT 1", None),
    ],
)
def test_distinct_values_are_asked_once(cinema, lm, sql, asked):
    run(cinema, sql, rows_per_call=1)
    assert asked is None or sum(map(len, lm.batches)) == asked


def test_answers_are_of_their_types(url):
    corpus = tf.open_corpus(url, progress=False)
    said = {"day": "2020-02-03", "number": "1.5", "integer": "7", "boolean": "true", "word": "a \\u0000 b"}
    with tf.context(
        lm=WholePrompt(lambda message: next(value for name, value in said.items() if f"a {name}" in message))
    ):
        frame = tf.exec_sql(corpus)(
            "SELECT sem_map('a day {id}', 'date') + 1 AS d, sem_map('a number {id}', 'number') * 2 AS n, "
            "sem_map('a integer {id}', 'integer') / 2 AS i, NOT sem_map('a boolean {id}', 'boolean') AS b, "
            "CAST(sem_map('a integer {id}') AS int) + 1 AS c, sem_map('a word {id}') || '!' AS w FROM film WHERE id = 1"
        )
    assert [str(cell)[:10] for cell in frame.iloc[0]] == ["2020-02-04", "3.0", "3", "False", "8", "a \\u0000 b"[:10]]


def test_what_is_missing_is_null_and_unsure_is_counted(cinema):
    def said(_: str, row: dict[str, Any]) -> str:
        if row["id"] == 2:
            raise LMError("no answer")
        return "Unknown" if row["id"] == 3 else "True"

    sql = "SELECT id FROM film WHERE id < 5 AND sem_filter('true of {id}') IS NULL ORDER BY id"
    with tf.context(lm=WholePrompt(lambda message: each_row(said, message))):
        assert run(cinema, sql, rows_per_call=1, on_error="keep") == [[2.0], [3.0]]
        assert run(cinema, sql, rows_per_call=1, on_error="drop") == [[3.0]]
        with pytest.raises(RowsFailed):
            run(cinema, sql, rows_per_call=1)


def test_a_budget_stops_before_the_call_that_would_pass_it(cinema, live):
    with pytest.raises(RowsFailed) as caught, tf.context(budget=tf.Budget(calls=4)):
        tf.exec_sql(cinema, rows_per_call=1)("SELECT id FROM film WHERE sem_filter('true of {id}')")
    assert len(live.requests) == 4
    assert len(caught.value.failures) == 20


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT id FROM film f WHERE EXISTS (SELECT 1 FROM review r WHERE r.film_id = f.id AND sem_filter('{r.body} x'))", "correlated subquery"),
        ("SELECT id FROM film f WHERE EXISTS (SELECT 1 FROM review r WHERE sem_filter('{f.name} x'))", "correlated subquery"),
        ("SELECT rank() OVER (ORDER BY sem_score('{name}')) FROM film", "may not stand in a window"),
        ("SELECT id FROM film WHERE sem_filter('{titel} x')", "titel"),
        ("SELECT id FROM film WHERE sem_score('{name}') > pg_sleep(3)", "pg_sleep"),
        ("SELECT id FROM film WHERE sem_filter('{name} x') AND ref.filter(name)", "ref"),
        ("SELECT sem_filter('{name}') FROM film; DROP TABLE film", "one SELECT"),
        ("SELECT id AS tagframe_lm_key FROM film WHERE sem_filter('{name} x')", "are taken"),
        ("SELECT id FROM film WHERE sem_filter('{name} x') AND id < 0x10", "plain digits, not as '0x10'"),
        (r"SELECT E'\x41' FROM film WHERE sem_filter('{name} x')", "single quotes, not as"),
        ("SELECT id FROM film WHERE sem_filter($${name} x$$)", "single quotes, not as"),
        ("SELECT 1_000 FROM film WHERE sem_filter('{name} x')", "plain digits, not as '1'"),
        ("SELECT id FROM pg_class WHERE sem_filter('{relname} x')", "no table 'pg_class'"),
    ],
)  # fmt: skip
def test_what_cannot_be_staged_or_may_not_run_is_refused_before_anything_is_asked(cinema, lm, sql, says):
    with pytest.raises((UnsafeSQL, SQLFailed), match=re.escape(says)):
        run(cinema, sql)
    assert lm.batches == []


@pytest.mark.parametrize("rows_per_call", [1, "auto"])
@pytest.mark.parametrize(
    "cell", ["'); DROP TABLE film; --", "$1", "{name}", "E'\\\\x41'", '", "x": "y', "\\u0000", "\ud7ff\U0001f600"]
)
def test_hostile_cells_and_answers_are_values_and_no_sql(database, cell, rows_per_call):
    url = database("CREATE TABLE note (id int PRIMARY KEY, body text)")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("INSERT INTO note VALUES (1, %s), (2, 'plain')", [cell])
    corpus = tf.open_corpus(url, progress=False)
    with tf.context(lm=WholePrompt(lambda message: each_row(lambda _, row: row["body"], message))):
        found = run(
            corpus, "SELECT id, sem_map('repeat {body}') AS said FROM note ORDER BY id", rows_per_call=rows_per_call
        )
    assert found == [[1.0, cell], [2.0, "plain"]]


def test_more_values_than_may_be_asked_about_are_refused_before_any_is(cinema, lm, monkeypatch):
    monkeypatch.setattr(staging, "MOST_VALUES", 20)
    with pytest.raises(SQLFailed, match="would be asked about more than 20 distinct values"):
        run(cinema, "SELECT count(*) FROM film WHERE sem_filter('true of {id}')")
    assert lm.batches == []


SLOW = """
CREATE TABLE note (id int PRIMARY KEY, body text); INSERT INTO note SELECT g, 'note ' || g FROM generate_series(1, 5) g;
CREATE TABLE delay (seconds int);
CREATE VIEW slow AS SELECT id, body FROM note WHERE pg_sleep((SELECT coalesce(max(seconds), 0) FROM delay)) IS NOT NULL;
"""


def test_values_that_take_too_long_are_cancelled_on_the_server(database, statements_left, lm):
    url = database(SLOW)
    corpus = tf.open_corpus(url, progress=False)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("INSERT INTO delay VALUES (60)")
    with pytest.raises(SQLFailed, match=r"stopped after 0.5 seconds, by the server"):
        run(corpus, "SELECT id FROM slow WHERE sem_filter('true of {body}')", limits=tf.answer.SQLLimits(seconds=0.5))
    assert statements_left() == []
    assert lm.batches == []


@pytest.mark.parametrize(("rows_per_call", "requests"), [(1, 5), (2, 3), ("auto", 1)])
def test_a_server_that_goes_away_while_the_model_is_asked_costs_no_answer_twice(
    database, postgres, live, tmp_path, rows_per_call, requests
):
    corpus = tf.open_corpus(database(SLOW), progress=False)
    sql = "SELECT count(*) AS n FROM note WHERE sem_filter('true of {body}')"
    stopped = []

    def answer(request: Any) -> str:
        if not stopped:
            stopped.append(postgres.stop())
        return each_row(lambda *_: "True", request.prompt)

    live.answers = answer
    with tf.context(store=tmp_path / "store"):
        try:
            with pytest.raises(ServerGone):
                run(corpus, sql, rows_per_call=rows_per_call)
        finally:
            postgres.start()
        assert len(live.requests) == requests
        assert run(corpus, sql, rows_per_call=rows_per_call) == [[5.0]]
    assert len(live.requests) == requests
