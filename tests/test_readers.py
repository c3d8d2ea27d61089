"""What a reader does not see is looked for on every road out of the reader's corpus, byte by byte."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import warnings
from contextlib import closing, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pandas as pd
import pytest

import tagframe as tf
from tagframe.agents.command import _seen
from tagframe.answer import SQLLimits
from tagframe.engines.frames import SeenTable, columns_tested
from tagframe.errors import ColumnNotFound, InvalidArgument, SourceNotFound, SQLFailed, TableNotFound, UnsafeSQL
from tests import opened_in
from tests import test_hidden_roads as hidden_roads
from tests.answer import test_hostile_duckdb, test_hostile_postgres, test_hostile_sql
from tests.test_hidden_roads import QUESTION, cells, tried

LIMITS = SQLLimits(rows=100, seconds=0.3, memory=128)
ORDERS = pd.DataFrame(
    {
        "nr": range(60),
        "buyer": [number % 40 for number in range(60)],
        "item": ["lamp", "ZQS-desk", "chair"] * 20,
        "region": ["EU", "zqs-US", "EU"] * 20,
        "amount": [1.5, 987654321.25, 2.5] * 20,
    }
)
SEEN = {"hide": ["people.ssn", "orders.region"], "where": {"orders": "region = 'EU' and amount < 10"}}


def of_postgres(folder, request):
    rows = ", ".join(f"({n}, '{ssn}', '{city}')" for n, ssn, city in hidden_roads.PEOPLE.itertuples(index=False))
    more = ", ".join(map(str, ORDERS.itertuples(index=False, name=None)))
    url = request.getfixturevalue("database")(
        "CREATE TABLE people (id int, ssn text, city text); "
        "CREATE TABLE orders (nr int, buyer int, item text, region text, amount numeric); "
        "ALTER TABLE people ADD COLUMN code text GENERATED ALWAYS AS (lower(ssn)) STORED; "
        f"INSERT INTO people VALUES {rows}; INSERT INTO orders VALUES {more}; {'; '.join(hidden_roads.VIEWS)}; ANALYZE;"
    )
    return tf.open_corpus(url, progress=False)


KINDS = [
    hidden_roads.of_sqlite, hidden_roads.of_csv, hidden_roads.of_lake, hidden_roads.of_frames, of_postgres,
    hidden_roads.of_sqlalchemy,
]  # fmt: skip


@pytest.fixture(params=KINDS, ids=lambda make: make.__name__)
def shop(request, tmp_path, monkeypatch):
    """A corpus with orders that its reader does not see."""
    monkeypatch.setattr(hidden_roads, "ORDERS", ORDERS)
    (tmp_path / "shop").mkdir()
    return request.param(tmp_path / "shop", request)


@pytest.mark.slow
def test_no_road_shows_a_hidden_row_or_column(shop, live, tmp_path, own_store, caplog, monkeypatch):
    assert cells(shop.read("orders").to_csv()), "in the whole corpus it is there"
    view = shop.for_reader("support", tables=shop.ids, **SEEN)
    assert len(view.read("orders")) == view.profile("orders").rows == 40
    dumps = SimpleNamespace(dumps=lambda thing: tried(lambda: pickle.dumps(thing)), loads=pickle.loads)
    monkeypatch.setattr(hidden_roads, "pickle", dumps)
    found = view.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")
    before = {"found": found, "plan": found.join_plan, "rag": None}
    (tmp_path / "out").mkdir()
    shown, said, number = {}, io.StringIO(), 0
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("always")
        for name, thing in hidden_roads.roads(view, before, live, tmp_path / "out"):
            number += 1
            text = thing if isinstance(thing, bytes) else str(thing).encode("utf-8", "replace")
            if where := cells(text):
                shown[name] = where
            elif b"987654321" in text or (name.startswith(("its ", "what is", "found", "saved")) and b"ssn" in text):
                shown[name] = [str(text[:300])]
    assert number >= 60
    for name, thing in (("printed", said.getvalue()), ("logged", caplog.text), *((str(w), w.message) for w in warned)):
        if where := cells(thing):
            shown[name] = where
    assert shown == {}


NAMES = ("films", "film", "notes", "clicks", "ticket", "secret", "seen", "t")
TABLE = pd.DataFrame(
    {
        "id": range(8),
        "title": [*"abcd", *(f"zqs-{n}" for n in range(4))],
        "year": [2001, 2002, 2003, 2004, *[777_000_777] * 4],
        "note": [*"efgh", *(f"zqs-{n}" for n in range(4))],
        "word": [*"efgh", *(f"zqs-{n}" for n in range(4))],
        "secret": [f"zqs-{n}" for n in range(8)],
        "hidden_note": [f"zqs-{n}" for n in range(8)],
        "i": range(8),
    }
)


def hostile(module, *more):
    return [sql for name in ("WRITES", "HIDDEN", "READS", "MALFORMED", *more) for sql in getattr(module, name, ())]


LISTS = {
    "sqlite": hostile(test_hostile_sql, "HUNGRY"),
    "csv": hostile(test_hostile_sql),
    "lake": hostile(test_hostile_duckdb),
    "postgres": hostile(test_hostile_postgres),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", LISTS)
def test_no_hostile_statement_shows_a_hidden_row_or_column(source, tmp_path, request):
    corpus = opened_in.opened(source, dict.fromkeys(NAMES, TABLE), tmp_path, request)
    hide = [f"{name}.{column}" for name in NAMES for column in ("secret", "hidden_note")]
    tables = [id for id in corpus.ids if not id.endswith("secret")]
    rules = dict.fromkeys(tables, "year < 3000")
    run = tf.exec_sql(corpus.for_reader("support", hide=hide[:-2], tables=tables, where=rules), limits=LIMITS)
    shown = {}
    for sql in LISTS[source]:
        asked = test_hostile_duckdb.filled(sql, tmp_path)
        try:
            said = repr(run(asked).to_dict("list"))
        except (UnsafeSQL, SQLFailed) as error:
            said = str(error).replace(repr(asked[:200]), "").replace(asked[:200], "")
        if "zqs-" in said or "777000777" in said:
            shown[sql] = said[:300]
    assert shown == {}
    assert run("SELECT count(*) AS n, max(year) AS y FROM films").to_dict("list") == {"n": [4], "y": [2004]}


RULED = [
    "SELECT count(*) FROM orders",
    "SELECT count(*) FROM Orders o",
    'SELECT count(*) FROM "orders" AS "x"',
    "WITH o AS (SELECT * FROM orders) SELECT count(*) FROM o",
    "SELECT count(*) FROM (SELECT * FROM orders)",
    "SELECT (SELECT count(*) FROM orders)",
    "SELECT count(*) FROM people p JOIN orders o ON o.buyer = p.id",
    "SELECT sum((SELECT count(*) FROM orders o WHERE o.buyer = p.id)) FROM people p",
    "SELECT count(*) FROM (SELECT nr FROM orders UNION SELECT nr FROM orders)",
]


@pytest.fixture
def frames():
    return tf.open_corpus({"people": hidden_roads.PEOPLE, "orders": ORDERS})


@pytest.mark.parametrize("sql", RULED)
def test_each_use_of_a_table_has_the_row_rule(frames, sql):
    assert tf.exec_sql(frames.for_reader("support", **SEEN))(sql).iloc[0, 0] == 40


MANY = pd.DataFrame(
    {
        "nr": [1, 2, 3, 4, 5, -6],
        "region": ["EU", "eu", "US", None, "Ü", "EU "],
        "amount": [1.5, 2.0, None, 1e300, -0.5, 10.0],
        "day": pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-04", "1999-12-31", "2024-01-02"]).date,
        "at": pd.to_datetime(
            ["2024-01-01", "2024-01-02", None, "2024-01-02 10:00", "1999-12-31 23:59:59", "2024-01-03"],
            format="ISO8601",
        ),
    }
).astype({"at": "datetime64[us]"})
AS_TEXT = MANY.assign(**{name: [None if pd.isna(one) else str(one) for one in MANY[name]] for name in ("day", "at")})
CHOSEN = [
    "region = 'EU'", "'EU' < region", "region in ('EU', 'Ü') and amount < 10", "(nr between 2 and 4)",
    "nr IN (1, -6, 9)", "nr >= -6 and (nr < 2.5)", "amount > 1.5", "2 = amount", "AMOUNT <= 9.5 AND Region >= 'E'",
    "day >= '2024-01-02' and nr > 0", "at >= '2024-01-02'", "at < '2024-01-02'",
]  # fmt: skip
READ = [
    "region <> 'EU'", "region = 'EU' or nr = 2", "not nr = 2", "region is null", "amount is not null",
    "region like 'e%'", "length(region) = 2 and nr < 3", "nr < '3'", "region = 5", "amount between nr and 5",
    "region = 'EU' collate nocase", "day > '2024'", "day < '2024-02-31'", "day = '2024-01-02'", "at <= '2024-01-02'",
    "at > '2024-01-02'", "at = '2024-01-02 00:00:00'", "nr = 1e999", "amount <= 1e300",
]  # fmt: skip


@pytest.mark.parametrize("source", ["frames", "sqlite", "lake", "postgres"])
def test_a_source_chooses_the_rows_that_sqlite_would(source, tmp_path, request, monkeypatch):
    if source == "postgres":
        types = {"many": "nr int, region text, amount float8, day date, at timestamp"}
        corpus = opened_in.postgres(request.getfixturevalue("database")(), {"many": MANY}, analysed=False, types=types)
    else:
        corpus = opened_in.opened(source, {"many": AS_TEXT if source == "sqlite" else MANY}, tmp_path, request)
    (id,) = corpus.ids
    engine, names = corpus.engine(id), list(MANY.columns)

    def seen(rule):
        table = SeenTable(engine, corpus.source_table(id), ("nr",), ("",), rule, columns_tested(rule, names))
        return sorted(table.rows(["nr"], None)["nr"].tolist())

    with closing(sqlite3.connect(":memory:")) as oracle:
        AS_TEXT.to_sql("many", oracle, index=False)
        right = {
            rule: sorted(nr for (nr,) in oracle.execute(f"SELECT nr FROM many WHERE {rule}")) for rule in CHOSEN + READ
        }
    assert {rule: seen(rule) for rule in CHOSEN + READ} == right
    if source != "frames":
        monkeypatch.setattr(type(engine), "scan", None)  # the other rows are not even read
        ordered = {"'EU' < region", "AMOUNT <= 9.5 AND Region >= 'E'"}  # texts, as the server's language orders them
        chosen = [rule for rule in CHOSEN if source != "postgres" or rule not in ordered]
        assert {rule: seen(rule) for rule in chosen} == {rule: right[rule] for rule in chosen}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"hide": "orders"}, InvalidArgument),
        ({"hide": ["nothing"]}, ColumnNotFound),
        ({"hide": ["orders.nothing"]}, ColumnNotFound),
        ({"tables": ["nothing"]}, TableNotFound),
        ({"tables": ["people"], "where": {"orders": "nr = 1"}}, InvalidArgument),
        ({"where": {"orders": "nothing = 1"}}, ColumnNotFound),
        ({"where": {"orders": 'region = "EU"'}}, ColumnNotFound),
        ({"where": {"orders": "nr = 1) OR (1 = 1"}}, InvalidArgument),
        ({"where": {"orders": "nr = 1; SELECT 1"}}, InvalidArgument),
        ({"where": {"orders": "nr IN (SELECT id FROM people)"}}, InvalidArgument),
        ({"where": {"orders": "1 = 1"}}, InvalidArgument),
        ({"where": {"orders": ""}}, InvalidArgument),
        ({"where": {"orders": "load_extension(item)"}}, UnsafeSQL),
        ({"where": "nr = 1"}, InvalidArgument),
        ({}, InvalidArgument),
    ],
)
def test_what_no_reader_can_be_made_of_is_refused(frames, given, error):
    with pytest.raises(error):
        frames.for_reader("support", **given)


def test_a_rule_over_cells_of_several_kinds_is_refused():
    mixed = tf.open_corpus({"t": pd.DataFrame({"a": [1, "x", 3]})})
    with pytest.raises(InvalidArgument, match="kind"):
        mixed.for_reader("r", where={"t": "a > 1"})


def test_a_null_is_not_seen():
    corpus = tf.open_corpus({"t": pd.DataFrame({"a": [1.0, None, 3.0]})})
    assert corpus.for_reader("r", where={"t": "a <> 3"}).read("t")["a"].tolist() == [1.0]


def test_a_rule_compares_decimals_and_days_by_their_size():
    from datetime import date
    from decimal import Decimal

    frame = pd.DataFrame(
        {"n": [Decimal(9), Decimal(10), Decimal(200)], "day": [date(2024, 1, day) for day in (1, 2, 3)]}
    )
    corpus = tf.open_corpus({"t": frame})
    assert len(corpus.for_reader("r", where={"t": "n > 10"}).read("t")) == 1
    assert len(corpus.for_reader("r", where={"t": "day != '2024-01-01'"}).read("t")) == 2


def test_the_owner_chooses_whether_hidden_things_are_told(frames):
    silent, telling = frames.for_reader("a", hide=["people"]), frames.for_reader("b", hide=["people"], say_hidden=True)
    for call in (lambda view: view.read("people"), lambda view: tf.exec_sql(view)("SELECT * FROM people")):
        with pytest.raises((TableNotFound, UnsafeSQL)) as quiet:
            call(silent)
        with pytest.raises((TableNotFound, UnsafeSQL), match="you may not see") as told:
            call(telling)
        assert "may not" not in str(quiet.value)
        assert type(quiet.value) is type(told.value)


def test_texts_and_keys_that_name_what_is_hidden_are_not_shown(frames):
    frames.describe("orders", "what people buy, by ssn")
    frames.describe("orders.item", "the thing")
    frames.keys.add("orders.buyer = people.id")
    view = frames.for_reader("support", hide=["people"])
    profile = view.profile("orders")
    assert (profile.description, profile.column("item").description, profile.foreign_keys) == ("", "the thing", ())


def test_a_key_of_a_semantic_model_tells_nothing_of_what_is_hidden(frames, tmp_path):
    sides = {"from": "orders", "to": "people", "from_columns": ["buyer"], "to_columns": ["id"]}
    datasets = [{"name": name, "source": name} for name in ("orders", "people")]
    (tmp_path / "m.json").write_text(
        json.dumps({"name": "m", "datasets": datasets, "relationships": [{"name": "by_ssn", **sides}]})
    )
    frames.describe(tmp_path / "m.json")
    assert "by_ssn, holds for 100% of the rows" in frames.keys.frame()["reason"][0]
    view = frames.for_reader("support", hide=["people.ssn"], where={"orders": "region = 'EU'"})
    assert view.keys.frame()["reason"][0].startswith("declared by a semantic model, ")
    assert "rows" not in view.keys.frame()["reason"][0]


def test_a_column_that_is_hidden_later_is_hidden_from_the_reader(frames):
    view = frames.for_reader("support", where={"orders": "region = 'EU'"})
    frames.hide("orders.item")
    assert "item" not in view.read("orders").columns
    with pytest.raises(SQLFailed):
        tf.exec_sql(view)("SELECT item FROM orders")


def test_a_reader_is_kept_with_the_data(tmp_path):
    path = hidden_roads.sqlite_at(tmp_path / "shop.sqlite")
    tf.open_corpus(path).for_reader("support", hide=["people"], where={"orders": "item = 'lamp'"})
    again = tf.open_corpus(path)
    view = again.for_reader("support")
    assert view.ids == ("shop.orders",)
    assert len(view.read("orders")) == 20
    assert _seen(again, "support").ids == view.ids
    with pytest.raises(SourceNotFound, match="nobody"):
        _seen(again, "nobody")
    again.save_facts(tmp_path / "told.toml")
    saved = view.save(tmp_path / "view.catalogue")
    assert tf.open_corpus(saved).ids == view.ids
    with pytest.raises(SourceNotFound):
        tf.open_corpus(saved).read("orders")
    with pytest.raises(InvalidArgument, match="pickle"):
        pickle.dumps(view)


def test_a_view_over_a_table_with_a_rule_needs_one(request, tmp_path):
    corpus = hidden_roads.of_sqlalchemy(tmp_path, None)
    with pytest.raises(InvalidArgument, match="name the tables"):
        corpus.for_reader("support", hide=["people"])
    with pytest.raises(InvalidArgument, match="computed"):
        corpus.for_reader("support", tables=["people", "tags"], where={"people": "id < 3"})
