"""Cells and names of hidden columns and tables are looked for on every road out of tagframe, on seven kinds of source,
byte by byte."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import sqlite3
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main
from tagframe.corpus.facts import facts_folder
from tagframe.errors import ColumnNotFound, TagframeError

pytestmark = pytest.mark.slow

PEOPLE = pd.DataFrame(
    {"id": range(40), "ssn": [f" ZQS-{n:05}" for n in range(40)], "city": ["Porto", "Faro", "Lagos", "Braga"] * 10}
)
ORDERS = pd.DataFrame(
    {
        "nr": range(60),
        "buyer": [f"zqs-{n % 39:05}" for n in range(60)],
        "item": ["lamp", "desk", "chair"] * 20,
        "people_id": [n % 37 for n in range(60)],
    }
)
PAYROLL = pd.DataFrame({"person": range(40), "wage": [987654000 + n for n in range(40)]})
QUESTION = "In which city does the buyer of each lamp live?"
HIDE = ["people.ssn", "orders.buyer", "payroll", "people.code"]
VIEWS_HIDDEN = ["tags", "words", "small", "stored"]
NAMES = ("ssn", "payroll", "wage")
"""Names of what is hidden that nothing visible has."""


VIEWS = (
    "CREATE VIEW tags AS SELECT id AS pnr, upper(ssn) AS label FROM people",
    "CREATE VIEW words AS SELECT pnr, label || '!' AS word FROM tags",
    "CREATE VIEW small AS SELECT pnr FROM tags WHERE CAST(substr(label, 6) AS integer) >= 0",
)


def sqlite_at(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        PEOPLE.to_sql("people", connection, index=False)
        ORDERS.to_sql("orders", connection, index=False)
        PAYROLL.to_sql("payroll", connection, index=False)
        connection.execute("ALTER TABLE people ADD COLUMN code TEXT AS (lower(ssn))")
        for view in VIEWS:
            connection.execute(view)
        connection.commit()
    return path


def of_sqlite(folder: Path, _: Any) -> Any:
    return sqlite_at(folder / "shop.sqlite"), {}


def of_csv(folder: Path, _: Any) -> Any:
    for name, frame in FRAMES.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder, {}


def of_lake(folder: Path, _: Any) -> Any:
    pytest.importorskip("duckdb")
    for name, frame in FRAMES.items():
        frame.to_parquet(folder / f"{name}.parquet")
    return folder, {"engine": "duckdb"}


def of_frames(folder: Path, _: Any) -> Any:
    return FRAMES, {}


def of_postgres(folder: Path, request: pytest.FixtureRequest) -> Any:
    rows = {name: ", ".join(map(str, frame.itertuples(index=False, name=None))) for name, frame in FRAMES.items()}
    url = request.getfixturevalue("database")(
        "CREATE TABLE people (id int, ssn text, city text); "
        "CREATE TABLE orders (nr int, buyer text, item text, people_id int); "
        "CREATE TABLE payroll (person int, wage int); "
        "ALTER TABLE people ADD COLUMN code text GENERATED ALWAYS AS (lower(ssn)) STORED; "
        f"{'; '.join(f'INSERT INTO {name} VALUES {values}' for name, values in rows.items())}; {'; '.join(VIEWS)}; "
        "CREATE MATERIALIZED VIEW stored AS SELECT id AS nr, left(ssn, 9) AS start FROM people; ANALYZE;"
    )
    return url, {"progress": False}


def of_sqlalchemy(folder: Path, _: Any) -> Any:
    pytest.importorskip("sqlalchemy")
    return f"sqlite:///{sqlite_at(folder / 'shop.sqlite')}", {}


FRAMES = {"people": PEOPLE, "orders": ORDERS, "payroll": PAYROLL}


def listed(make: Callable[..., Any]) -> list[str]:
    """What is hidden in a source: where views and generated columns are tables and columns, they are named, too."""
    views = {"of_postgres": VIEWS_HIDDEN, "of_sqlalchemy": VIEWS_HIDDEN[:3], "of_sqlite": VIEWS_HIDDEN[:3]}.get(
        make.__name__, []
    )
    has_code = make.__name__ in ("of_sqlite", "of_postgres", "of_sqlalchemy")
    return [*HIDE[: 4 if has_code else 3], *views]


STATEMENTS = (
    "SELECT code FROM people",
    "SELECT CAST(code AS int) FROM people",
    "SELECT row_to_json(p) AS j FROM people p",
    "SELECT to_jsonb(people) AS j FROM people",
    "SELECT CAST(p AS text) AS t FROM people AS p",
    "SELECT * FROM payroll",
    "SELECT count(*) FROM Payroll",
    'SELECT "wage" FROM "payroll"',
    "SELECT id FROM people WHERE EXISTS (SELECT 1 FROM payroll WHERE payroll.person = people.id)",
    "SELECT * FROM orders JOIN payroll USING (person)",
    "SELECT rowid, * FROM people",
    "SELECT SSN FROM people",
    "SELECT [ssn] FROM people",
    "SELECT `ssn` FROM people",
    'SELECT "people"."ssn" FROM people',
    "SELECT ssm FROM people",
    "SELECT source.people.ssn FROM people",
    "SELECT * FROM source.payroll",
    "SELECT main.people.ssn FROM main.people",
    "SELECT public.people.ssn FROM public.people",
    "SELECT id FROM people p WHERE (SELECT p.ssn) > ''",
    "SELECT id FROM people GROUP BY ssn",
    "SELECT id, row_number() OVER (PARTITION BY ssn) AS n FROM people",
    "SELECT name FROM pragma_table_info('people')",
    "SELECT * FROM duckdb_columns()",
    "SELECT attname FROM pg_catalog.pg_attribute",
    "SELECT people.* FROM people ORDER BY ssn",
    "SELECT id FROM people UNION SELECT wage FROM payroll",
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

SOURCES = [of_sqlite, of_csv, of_lake, of_frames, of_postgres, of_sqlalchemy]


def cells(*things: Any) -> list[str]:
    """Where a hidden cell is in the bytes of these things."""
    return found_in(("zqs-", "987654"), *things)


def found_in(texts: Sequence[str], *things: Any) -> list[str]:
    found = []
    for number, thing in enumerate(things):
        data = (thing if isinstance(thing, bytes) else str(thing).encode("utf-8", "replace")).lower()
        for text in texts:
            if (at := data.find(text.encode())) >= 0:
                found.append(f"{number}: …{data[max(0, at - 60) : at + 30]!r}…")
    return found


def without_code(thing: Any) -> Any:
    """A traceback without its lines of code, which are those of this test."""
    if not isinstance(thing, str) or not thing.startswith("Traceback"):
        return thing
    return "\n".join(line for line in thing.splitlines() if not line.startswith(" "))


def tried(call: Callable[[], Any]) -> Any:
    """What a call gives, or the whole traceback of how it fails."""
    try:
        return call()
    except (TagframeError, ValueError, KeyError, NameError, AttributeError) as error:
        return "".join(traceback.format_exception(error))


def roads(corpus: Any, live: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and what comes out, of every road."""
    retrieve = corpus.tables.tag.retrieve_tables
    found = retrieve(QUESTION, k=2, method="lexical")
    yield "repr of the corpus", repr(corpus)
    yield "its profiles", [corpus.profile(id) for id in corpus.ids]
    yield "its tables", corpus.tables.to_csv()
    yield "its keys", corpus.keys
    yield "read", corpus.read("people").to_csv()
    yield "read ssn", tried(lambda: corpus.read("people", ["ssn"]))
    yield "read SSN", tried(lambda: corpus.read("people", ["SSN"]))
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
    yield "plan, pickled", pickle.dumps(plan)
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
    yield "merged where ssn", tried(lambda: found.merge(where={"ssn": "x"}))
    yield "merged by an expression with ssn", tried(lambda: found.merge(where="ssn == 'x'", on_fanout="allow"))
    yield "merged, with ssn", tried(lambda: found.merge(columns=["ssn"]))
    yield "merged, refused", tried(lambda: found.merge(plan.restarted("people")))
    yield "rows of the refusal", tried(lambda: _rows_of(lambda: found.merge(plan.restarted("people"), on_loss="raise")))
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
    for table in sorted({*VIEWS_HIDDEN} & {id.rpartition(".")[2] for id in corpus.ids}):
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
    yield "refined", tried(lambda: repr(retrieve(QUESTION, k=2, method="auto:look")))
    yield "prompts", "\n".join(json.dumps(request.body) for request in live.requests)
    yield "saved", tried(lambda: corpus.save(folder / "saved.catalogue").read_bytes())
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


@pytest.mark.parametrize(
    ("make", "way"),
    [*((make, "opened") for make in SOURCES), (of_sqlite, "later"), (of_postgres, "later")],  # of an opened corpus
    ids=lambda one: getattr(one, "__name__", one),
)
def test_no_road_shows_what_is_hidden(make, way, request, live, tmp_path, monkeypatch, own_store, caplog):
    caplog.set_level(logging.DEBUG)
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    data, out = tmp_path / "shop", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    source, options = make(data, request)
    shown, said, number = {}, io.StringIO(), 0
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("always")
        if way == "opened":
            corpus = tf.open_corpus(source, hide=listed(make), **options)
        else:
            whole = tf.open_corpus(source, **options)
            assert cells(whole.read("people").to_csv()), "before it is hidden it is there"
            whole.keys.add("orders.buyer = people.ssn")
            whole.describe("orders.item", "see the payroll")
            corpus = whole.hide(*listed(make))
            assert cells(whole.read("people").to_csv()), "and it is still there, in the other corpus"
            caplog.clear()  # the log of the whole corpus has its own names
        with pytest.raises(ColumnNotFound):
            corpus.read("people", ["ssn"])
        for name, thing in roads(corpus, live, out):
            number += 1
            if where := cells(thing):
                shown[name] = where
            # An error quotes the words of its own statement.
            if not found_in(NAMES, name) and (where := found_in(NAMES, without_code(thing))):
                shown[f"a name: {name}"] = where
    assert number >= 60
    if way == "opened":
        files = [path for path in tmp_path.rglob("*") if path.is_file() and data not in path.parents]
        files += [path for path in facts_folder().rglob("*") if path.is_file()]
        shown |= {path.name: where for path in files if (where := cells(path.read_bytes()))}
        shown |= {
            f"a name: {one}": where for one in cache.rglob("*.sqlite") if (where := found_in(NAMES, one.read_bytes()))
        }
    for name, thing in (("printed", said.getvalue()), ("logged", caplog.text), *((str(w), w.message) for w in warned)):
        if where := cells(thing):
            shown[name] = where
    assert shown == {}


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_no_agent_and_no_prompt_has_a_private_cell(make, request, tmp_path, live):
    source, options = make(tmp_path, request)
    hidden = [name for name in listed(make) if name not in ("people.ssn", "orders.buyer")]
    corpus = tf.open_corpus(source, hide=hidden, **options)
    corpus.private("people.ssn", "orders.buyer")
    corpus.keys.add("orders.buyer = people.ssn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = {}
        for name, thing in agent_roads(corpus):
            # An error quotes the words of its own call.
            if where := cells(thing) or (not found_in(NAMES, name) and found_in(NAMES, without_code(thing))):
                shown[name] = where
        live.answers = lambda request: (
            "SELECT city FROM people" if "CREATE TABLE" in request.prompt else '{"text": "Porto", "values": ["Porto"]}'
        )
        found = corpus.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")
        merged = found.merge(how="left", on_fanout="allow", on_loss="allow")
        assert cells(merged.to_csv()), "people read and join it as ever"
        tried(lambda: tf.ask(QUESTION, found))
        tried(lambda: tf.ask(f"Who is {PEOPLE.ssn[3].strip()[-5:]}?", found))
        tried(lambda: corpus.annotate())
        tried(lambda: corpus.retrieve_tables(QUESTION, k=2, look=True))
        live.answers = "True"
        merged.tag.sem_filter("Does this order come from the south?")
        with pytest.raises(tf.errors.InvalidArgument, match="private"):
            merged.tag.sem_filter("{buyer} is in the south")
    prompts = "\n".join(json.dumps(request.body) for request in live.requests)
    assert len(live.requests) > 3
    assert not cells(prompts)
    assert shown == {}


def test_the_shell_shows_nothing_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = sqlite_at(tmp_path / "shop.sqlite")
    hide = [part for name in listed(of_sqlite) for part in ("--hide", name)]
    for line in (
        ["tables", str(path), *hide],
        ["retrieve", str(path), QUESTION, *hide],
        ["retrieve", str(path), QUESTION, "--json", *hide],
        ["merge", str(path), "orders", "--column", "item", *hide],
        ["merge", str(path), "people", *hide],
    ):
        done = CliRunner().invoke(main, line)
        assert done.exit_code == 0, done.output
        assert not found_in(("zqs-", "987654", *NAMES), done.output), line
