"""A cell of a hidden column is looked for on every road out of tagframe, on seven kinds of source, byte by byte."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import sqlite3
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main
from tagframe.corpus.facts import facts_folder
from tagframe.errors import HiddenColumn, TagframeError

pytestmark = pytest.mark.slow

PEOPLE = pd.DataFrame(
    {"id": range(40), "ssn": [f" ZQS-{n:05}" for n in range(40)], "city": ["Porto", "Faro", "Lagos", "Braga"] * 10}
)
ORDERS = pd.DataFrame(
    {"nr": range(60), "buyer": [f"zqs-{n % 39:05}" for n in range(60)], "item": ["lamp", "desk", "chair"] * 20}
)
QUESTION = "In which city does the buyer of each lamp live?"
SCHEMA = {"orders": ["nr", "buyer", "item"], "people": ["id", "ssn", "city"]}


VIEWS = (
    "CREATE VIEW tags AS SELECT id AS pnr, upper(ssn) AS label FROM people",
    "CREATE VIEW words AS SELECT pnr, label || '!' AS word FROM tags",
    "CREATE VIEW small AS SELECT pnr FROM tags WHERE CAST(substr(label, 6) AS integer) >= 0",
)


def sqlite_at(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        PEOPLE.to_sql("people", connection, index=False)
        ORDERS.to_sql("orders", connection, index=False)
        connection.execute("ALTER TABLE people ADD COLUMN code TEXT AS (lower(ssn))")
        for view in VIEWS:
            connection.execute(view)
        connection.commit()
    return path


def of_sqlite(folder: Path, _: Any) -> Any:
    return tf.open_corpus(sqlite_at(folder / "shop.sqlite"))


def of_csv(folder: Path, _: Any) -> Any:
    PEOPLE.to_csv(folder / "people.csv", index=False)
    ORDERS.to_csv(folder / "orders.csv", index=False)
    return tf.open_corpus(folder)


def of_lake(folder: Path, _: Any) -> Any:
    pytest.importorskip("duckdb")
    PEOPLE.to_parquet(folder / "people.parquet")
    ORDERS.to_parquet(folder / "orders.parquet")
    return tf.open_corpus(folder, engine="duckdb")


def of_frames(folder: Path, _: Any) -> Any:
    return tf.open_corpus({"people": PEOPLE, "orders": ORDERS})


def of_postgres(folder: Path, request: pytest.FixtureRequest) -> Any:
    rows = ", ".join(f"({n}, '{ssn}', '{city}')" for n, ssn, city in PEOPLE.itertuples(index=False))
    more = ", ".join(f"({n}, '{buyer}', '{item}')" for n, buyer, item in ORDERS.itertuples(index=False))
    url = request.getfixturevalue("database")(
        "CREATE TABLE people (id int, ssn text, city text); CREATE TABLE orders (nr int, buyer text, item text); "
        "ALTER TABLE people ADD COLUMN code text GENERATED ALWAYS AS (lower(ssn)) STORED; "
        f"INSERT INTO people VALUES {rows}; INSERT INTO orders VALUES {more}; {'; '.join(VIEWS)}; "
        "CREATE MATERIALIZED VIEW kept AS SELECT id AS nr, left(ssn, 9) AS start FROM people; "
        "ANALYZE;"
    )
    return tf.open_corpus(url, progress=False)


def of_sqlalchemy(folder: Path, _: Any) -> Any:
    pytest.importorskip("sqlalchemy")
    return tf.open_corpus(f"sqlite:///{sqlite_at(folder / 'shop.sqlite')}")


def of_union(folder: Path, _: Any) -> Any:
    PEOPLE.to_csv(folder / "people.csv", index=False)
    schema = tf.open_corpus(schema={"warehouse.stock": ["item", "pieces"]})
    return tf.open_corpus(folder).union(tf.open_corpus({"orders": ORDERS})).union(schema)


STATEMENTS = (
    "SELECT code FROM people",
    "SELECT CAST(code AS int) FROM people",
    "SELECT row_to_json(p) AS j FROM people p",
    "SELECT to_jsonb(people) AS j FROM people",
    "SELECT CAST(p AS text) AS t FROM people AS p",
    "SELECT p.* FROM people AS p NATURAL JOIN people AS q",
    "SELECT people FROM people",
    "SELECT json_group_array(json_object('a', code)) AS j FROM people",
    "SELECT sql FROM sqlite_schema",
    "SELECT * FROM sqlite_stat4",
    "SELECT * FROM duckdb_views()",
    "SELECT most_common_vals FROM pg_stats",
    "SELECT definition FROM pg_views",
    "SELECT * FROM information_schema.columns",
    "SELECT max(label) AS m FROM tags",
    "SELECT tags FROM tags",
    "WITH t(a, b) AS (SELECT * FROM tags) SELECT b FROM t",
    "SELECT x.b FROM tags AS x(a, b)",
    "EXPLAIN SELECT * FROM tags WHERE label = 'x'",
    "SELECT pnr FROM tags ORDER BY label",
    "SELECT pnr FROM tags UNION SELECT label FROM tags",
    "SELECT (SELECT label FROM tags LIMIT 1) AS l",
    "SELECT pnr / (pnr - pnr) AS z FROM small",
    "SELECT sem_map('the name in {label}') AS n FROM tags",
    "SELECT pnr FROM tags WHERE sem_filter('{word} is a name')",
)

SOURCES = [of_sqlite, of_csv, of_lake, of_frames, of_postgres, of_sqlalchemy, of_union]


def cells(*things: Any) -> list[str]:
    """Where a cell is in the bytes of these things."""
    found = []
    for number, thing in enumerate(things):
        data = thing if isinstance(thing, bytes) else str(thing).encode("utf-8", "replace")
        if b"zqs-" in data.lower():
            at = data.lower().index(b"zqs-")
            found.append(f"{number}: …{data[max(0, at - 60) : at + 30]!r}…")
    return found


def tried(call: Callable[[], Any]) -> Any:
    """What a call gives, or the whole traceback of how it fails."""
    try:
        return call()
    except (TagframeError, ValueError, KeyError, NameError, AttributeError) as error:
        return "".join(traceback.format_exception(error))


def roads(corpus: Any, before: dict[str, Any], live: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and what comes out, of every road."""
    retrieve = corpus.tables.tag.retrieve_tables
    found = retrieve(QUESTION, k=2, method="lexical")
    yield "repr of the corpus", repr(corpus)
    yield "its profiles", [corpus.profile(id) for id in corpus.ids]
    yield "its tables", corpus.tables.to_csv()
    yield "its keys", corpus.keys
    yield "what is hidden", corpus.hidden.to_csv()
    yield "read", corpus.read("people").to_csv()
    yield "read by name", tried(lambda: corpus.read("people", ["ssn"]))
    yield "read in another case", tried(lambda: corpus.read("people", ["SSN"]))
    yield "corpus[…]", corpus["orders"].to_csv()
    yield "a subset", corpus.subset(["people"]).read("people").to_csv()
    yield "a copy", copy.copy(corpus).read("people").to_csv()
    yield "a deep copy", tried(lambda: copy.deepcopy(corpus).read("people").to_csv())
    yield "found, as text", repr(found)
    yield "found, in a notebook", found._repr_html_()
    yield "found, as plain values", json.dumps(found.to_dict())
    yield "found, as a frame", found.to_frame().to_csv()
    yield "reasons", [hit.reasons for hit in found]
    for question in (f"the person {PEOPLE.ssn[3].strip()[-5:]}", "everything of the person"):
        yield f"reasons of {question!r}", [hit.reasons for hit in retrieve(question, k=2)]
    plan = found.join_plan
    yield "plan", plan
    yield "plan, as text", repr(plan)
    yield "plan, in a notebook", plan._repr_html_() if hasattr(plan, "_repr_html_") else ""
    yield "plan, as JSON", plan.to_json()
    yield "plan, as SQL", plan.sql()
    yield "evidence", [step.key.evidence for step in plan.steps]
    yield "alternatives", plan.alternatives
    for how in ("inner", "left", "outer"):
        merged = found.merge(how=how, on_fanout="allow")
        yield f"merged {how}", merged.to_csv()
        yield f"report {how}", merged.tag.merge_report
        yield f"report {how}, as plain values", tried(lambda merged=merged: merged.tag.merge_report.to_dict())
        yield f"pickle of merged {how}", pickle.dumps(merged)
    yield "merged, some rows", found.merge(limit=3, on_fanout="allow").to_csv()
    yield "merged by a condition", found.merge(where={"item": "lamp"}, on_fanout="allow").to_csv()
    yield "merged by a hidden condition", tried(lambda: found.merge(where={"ssn": "x"}))
    yield "merged by an expression", tried(lambda: found.merge(where="ssn == 'x'", on_fanout="allow"))
    yield "merged, a hidden column", tried(lambda: found.merge(columns=["ssn"]))
    yield "merged, refused", tried(lambda: found.merge(plan.restarted("people")))
    yield "rows of the refusal", tried(lambda: _rows_of(lambda: found.merge(plan.restarted("people"), on_loss="raise")))
    yield "found before, merged", before["found"].merge(on_fanout="allow").to_csv()
    yield "found before, its plan", before["found"].join_plan.to_json()
    yield "a plan from before, merged", found.merge(before["plan"], on_fanout="allow").to_csv()
    yield "pickle of what was found before", pickle.dumps(before["found"])
    yield "pickle of the corpus", pickle.dumps(corpus)
    yield "pickle of its tables", pickle.dumps(corpus.tables)
    yield "pickle of some of its tables", pickle.dumps(corpus.tables.head(1))
    yield "pickle of one column of them", pickle.dumps(corpus.tables["id"])
    yield "pickle of found", pickle.dumps(found)
    yield "pickle of a frame that was read", pickle.dumps(corpus.read("people"))
    run = tf.exec_sql(corpus)
    rows = run("SELECT city, count(*) AS n FROM people GROUP BY city")
    yield "rows of a statement", rows.to_csv()
    yield "pickle of them", pickle.dumps(rows)
    yield "pickle of one of them", pickle.dumps(rows.head(1))
    yield "pickle of one column of them", pickle.dumps(rows["city"])
    yield "their sources", tried(lambda: rows.tag.sources.to_csv())
    yield "a star", run("SELECT * FROM people").to_csv()
    for sql in (
        "SELECT ssn FROM people",
        "SELECT max(ssn) FROM people",
        "SELECT p.* FROM people p JOIN orders o ON o.buyer = p.ssn",
        "SELECT id FROM people WHERE ssn LIKE ' ZQS-00003'",
        "SELECT (SELECT buyer FROM orders LIMIT 1) AS x FROM people",
        "WITH w AS (SELECT * FROM people) SELECT ssn FROM w",
        "SELECT cast(ssn AS INTEGER) FROM people",
        "SELECT city FROM people ORDER BY ssn",
        "SELECT p FROM people p",
    ):
        out = tried(lambda sql=sql: run(sql).to_csv())
        # A literal of the statement is its writer's own.
        yield sql, out if "LIKE" not in sql else str(out).replace("ZQS-00003", "")
    for table in sorted({"tags", "words", "small", "kept"} & {id.rpartition(".")[2] for id in corpus.ids}):
        yield f"profile of {table}", tried(lambda table=table: corpus.profile(table))
        yield f"read {table}", tried(lambda table=table: corpus.read(table).to_csv())
        yield f"a star of {table}", tried(lambda table=table: run(f"SELECT * FROM {table}").to_csv())
        for column in ("label", "word", "start"):
            sql = f"SELECT {column} AS x, CAST({column} AS int) / 0 AS y FROM {table}"
            yield sql, tried(lambda sql=sql: run(sql).to_csv())
    for sql in STATEMENTS:
        yield sql, tried(lambda sql=sql: run(sql).to_csv())
    live.answers = lambda request: (
        "SELECT city FROM people" if "CREATE TABLE" in request.prompt else '{"text": "Porto", "values": ["Porto"]}'
    )
    answer = tried(lambda: tf.ask(QUESTION, found))
    yield "an answer", repr(answer)
    yield "pickle of the answer", pickle.dumps(answer)
    live.answers = "True"
    merged = found.merge(on_fanout="allow")
    yield "an operator's rows", tried(lambda: merged.tag.sem_filter("{city} is in the south").to_csv())
    yield "a quote", tried(lambda: str(merged.tag.sem_filter("{city} is in the south", quote=True)))
    yield "rows of rag", tried(lambda: before["rag"].exec(QUESTION).to_csv()) if before["rag"] is not None else ""
    yield "refined", tried(lambda: repr(retrieve(QUESTION, k=2, method="auto:look")))
    yield from agent_roads(corpus)
    yield "prompts", "\n".join(json.dumps(request.body) for request in live.requests)
    yield "saved", tried(lambda: corpus.save(folder / "saved.catalogue").read_bytes())
    yield "what was told", corpus.save_facts(folder / "told.toml").read_bytes()
    yield "opened from what was saved", tried(lambda: tf.open_corpus(folder / "saved.catalogue").profiles)


AGENT_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("find_tables", {"question": QUESTION}),
    ("find_tables", {"question": f"the person {PEOPLE.ssn[3].strip()[-5:]}"}),
    ("describe_tables", {"tables": ["people", "orders"]}),
    ("plan_joins", {"tables": ["orders", "people"], "on_fanout": "allow"}),
    ("plan_joins", {"tables": ["orders", "people"], "on": ["orders.buyer = people.ssn"], "how": "outer"}),
    ("merge_tables", {"tables": ["orders", "people"], "on_fanout": "allow"}),
    ("merge_tables", {"tables": ["orders", "people"], "how": "outer", "on_fanout": "allow"}),
    ("merge_tables", {"tables": ["people", "orders"]}),
    ("merge_tables", {"tables": ["people"], "columns": ["ssn"]}),
    ("merge_tables", {"tables": ["people"], "where": {"ssn": "x"}}),
    ("merge_tables", {"tables": ["people"], "where": "ssn > 'x'"}),
    ("merge_tables", {"tables": ["orders", "people"], "aggregate": {"people": {"ssn": "min"}}}),
    ("merge_tables", {"tables": ["orders", "people"], "aggregate": {"people": {"id": "max"}}}),
    ("describe_tables", {"tables": ["people"], "column": "ssn"}),
    ("describe_tables", {"tables": ["orders"], "column": "BUYER"}),
    ("describe_tables", {"tables": ["people"], "column": "code"}),
    ("describe_tables", {"value": "0000"}),
    ("describe_tables", {"value": "-00003", "tables": ["people", "orders"]}),
]


def agent_roads(corpus: Any) -> Iterator[tuple[str, Any]]:
    """What the tools give to an agent, errors too."""
    tools = corpus.tools()
    hidden = ("SELECT ssn FROM people", "SELECT * FROM people", "SELECT p FROM people p", *STATEMENTS)
    calls = [*AGENT_CALLS, *(("run_sql", {"sql": sql}) for sql in hidden)]
    calls += [("describe_tables", {"tables": [id]}) for id in corpus.ids]
    calls += [("merge_tables", {"tables": [id]}) for id in corpus.ids]
    for name, arguments in calls:
        yield f"{name} {arguments}", tried(lambda name=name, given=arguments: json.dumps(tools.call(name, given)))


def _rows_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except TagframeError as error:
        rows = getattr(error, "rows", None)
        return "" if rows is None else rows.to_csv()
    return ""


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_no_road_shows_a_hidden_cell(make, request, live, tmp_path, monkeypatch, own_store, caplog):
    caplog.set_level(logging.DEBUG)
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    data, out = tmp_path / "shop", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    corpus = make(data, request)
    corpus.keys.add("orders.buyer = people.ssn")
    assert cells(corpus.read("people").to_csv()), "before it is hidden it is there"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = corpus.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")
        rag = None
        with suppress(TagframeError):
            rag = tf.rag(corpus, k=2, tables=[id for id in corpus.ids if "stock" not in id], cache=None)
            rag.exec.index()
        before = {"found": first, "plan": first.join_plan, "rag": rag}
        first.merge(on_fanout="allow")
    corpus.hide("people.ssn")
    corpus.hide("orders.buyer")
    with pytest.raises(HiddenColumn):
        corpus.read("people", ["ssn"])
    shown, said, number = {}, io.StringIO(), 0
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("always")
        for name, thing in roads(corpus, before, live, out):
            number += 1
            if where := cells(thing):
                shown[name] = where
    assert number >= 60
    files = [path for path in tmp_path.rglob("*") if path.is_file() and data not in path.parents]
    files += [path for path in facts_folder().rglob("*") if path.is_file()]
    for path in files:
        if where := cells(path.read_bytes()):
            shown[path.name] = where
    for name, thing in (("printed", said.getvalue()), ("logged", caplog.text)):
        if where := cells(thing):
            shown[name] = where
    for one in warned:
        if where := cells(one.message):
            shown[f"warning {one.category.__name__}"] = where
    assert shown == {}


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_no_tool_shows_a_cell_that_is_hidden_from_models(make, request, tmp_path):
    corpus = make(tmp_path, request)
    corpus.keys.add("orders.buyer = people.ssn")
    corpus.hide("people.ssn", from_models=True)
    corpus.hide("orders.buyer", from_models=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = {name: where for name, thing in agent_roads(corpus) if (where := cells(thing))}
    assert shown == {}


def test_the_shell_shows_no_hidden_cell(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = sqlite_at(tmp_path / "shop.sqlite")
    corpus = tf.open_corpus(path)
    corpus.keys.add("orders.buyer = people.ssn")
    corpus.hide("people.ssn")
    corpus.hide("orders.buyer")
    for line in (
        ["tables", str(path)],
        ["retrieve", str(path), QUESTION],
        ["retrieve", str(path), QUESTION, "--json"],
        ["merge", str(path), "orders", "people"],
    ):
        done = CliRunner().invoke(main, line)
        assert not cells(done.output, done.exception or ""), line
