"""Servers that SQLAlchemy has a dialect for: its SQLite dialect, and a real PostgreSQL server read as any other one."""

from __future__ import annotations

import datetime as dt
import pickle
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa

import tagframe as tf
from tagframe.answer import exec_sql, guard
from tagframe.engines import other_servers as module
from tagframe.engines.other_servers import SPOKEN, other_server_engine
from tagframe.errors import (
    ConnectionRefusedByServer,
    MissingExtra,
    ServerGone,
    SourceNotFound,
    SQLFailed,
    UnreadableTable,
)
from tagframe.merging import plan_tables, run_plan

SHOP = '''
CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(id), amount REAL, note TEXT);
CREATE VIEW totals AS SELECT customer_id, count(*) AS orders FROM orders GROUP BY 1;
CREATE TABLE "odd ""name""" ("a b" TEXT, "select" INTEGER);
INSERT INTO "odd ""name""" VALUES ('x', 1), (NULL, 2);
'''


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(SHOP)
        customers = [(i, f"name {i}", ["Prague", "Brno", None][i % 3]) for i in range(1, 51)]
        file.executemany("INSERT INTO customer VALUES (?, ?, ?)", customers)
        orders = [(i, 1 + i % 50 if i % 7 else None, i * 1.25, f"n{i % 11}") for i in range(1, 1001)]
        file.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
    return path


def opened(path: Path, **settings) -> tf.Corpus:
    return tf.open_corpus(f"sqlite:///{path}", progress=False, **settings)


def test_tables_are_profiled_as_those_of_the_file(shop):
    corpus, file = opened(shop), tf.open_corpus(shop, progress=False)
    assert corpus.ids == ("main.customer", 'main.odd "name"', "main.orders", "main.totals")
    for name in ("customer", "orders", 'odd "name"'):
        mine, theirs = corpus.profile(f"main.{name}"), file.profile(f"shop.{name}")
        assert not mine.estimated
        assert (mine.rows, mine.primary_key) == (theirs.rows, theirs.primary_key)
        assert [(c.name, c.family, c.nulls, c.distinct) for c in mine.columns] == [
            (c.name, c.family, c.nulls, c.distinct) for c in theirs.columns
        ]


@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
def test_what_the_server_may_compare_otherwise_or_does_not_take_is_joined_in_memory(shop: Path, monkeypatch):
    corpus = opened(shop)
    plan = plan_tables(corpus, ["main.orders", "main.customer"])
    for where in ({"city": "Prague"}, {"amount": 2.5}, {"note": lambda notes: notes == "n1"}):
        assert run_plan(plan, corpus, where=where, on_loss="allow")[1].engine == "pandas"
    monkeypatch.setitem(SPOKEN, "sqlite", "tsql")  # SELECT TOP 5
    frame, report = run_plan(plan, corpus, limit=5, on_loss="allow")
    assert (len(frame), report.engine) == (5, "pandas")
    monkeypatch.undo()
    with closing(sqlite3.connect(shop)) as file, file:
        file.execute("UPDATE orders SET customer_id = 'x' WHERE id = 3")
    assert run_plan(plan, corpus, limit=5, on_loss="allow")[1].engine == "pandas"


def test_large_tables_are_counted_in_one_pass_and_sampled(shop, monkeypatch):
    monkeypatch.setattr(module, "FEW_CELLS", 500)
    monkeypatch.setattr(module, "SAMPLE", 400)
    profile = opened(shop).profile("orders")
    assert (profile.estimated, profile.rows) == (True, 1000)
    assert profile.column("customer_id").nulls == 142
    assert profile.column("id").distinct == 1000  # a key
    assert profile.column("note").distinct == 11
    # Samples come from all over a table whose key tells places: the first 400 rows have no amount above 500.
    assert any(float(sample) > 1000 for sample in profile.column("amount").samples) or profile.column(
        "amount"
    ).distinct == pytest.approx(1000, rel=0.1)


def test_a_table_that_changed_is_profiled_again_and_no_other(shop, monkeypatch):
    assert opened(shop).profile("orders").rows == 1000
    with closing(sqlite3.connect(shop)) as file, file:
        file.execute("INSERT INTO orders VALUES (2000, 1, 1.0, 'new')")
    read: list[str] = []
    plain = module.OtherServerEngine.chunks
    monkeypatch.setattr(
        module.OtherServerEngine, "chunks", lambda self, shape: read.append(shape.name) or plain(self, shape)
    )
    assert opened(shop).profile("orders").rows == 1001
    assert read == ["main.orders", "main.totals"] or read == ["main.orders"]
    with closing(sqlite3.connect(shop)) as file, file:
        file.execute("DROP TABLE customer")
    corpus = opened(shop)
    assert "main.customer" not in corpus.ids


def test_views_are_learned(shop):
    assert opened(shop).learn("views").learned == 1
    with pytest.raises(SourceNotFound, match="'views' needs a database with views"):
        tf.open_corpus({"t": pd.DataFrame({"a": [1]})}).learn("views")


def test_a_table_dropped_between_index_and_merge_is_named(shop):
    corpus = opened(shop)
    plan = plan_tables(corpus, ["main.orders", "main.customer"])
    with closing(sqlite3.connect(shop)) as file, file:
        file.execute("ALTER TABLE customer RENAME TO client")
    with pytest.raises(
        UnreadableTable, match=r"'main.customer' is no longer in sqlite:.*call tagframe.open_corpus again"
    ):
        run_plan(plan, corpus)


def test_a_statement_runs_over_copies_and_not_on_the_server(shop, monkeypatch):
    run = exec_sql(opened(shop))
    found = run("SELECT city, count(*) AS n FROM orders JOIN customer ON customer.id = customer_id GROUP BY 1")
    assert found["n"].sum() == 858
    for hostile in ("DELETE FROM orders", "SELECT load_extension('x')", "ATTACH 'x' AS y"):
        with pytest.raises(tf.errors.TagframeError):
            run(hostile)
    with closing(sqlite3.connect(shop)) as file:
        assert file.execute("SELECT count(*) FROM orders").fetchone() == (1000,)
    monkeypatch.setattr(guard, "MOST_COPIED", 999)
    with pytest.raises(SQLFailed, match=r"main.orders has 1,000 rows.* copied from sqlite:.*; at most 999 are copied"):
        exec_sql(opened(shop))("SELECT count(*) FROM orders")


TYPES = """
CREATE SCHEMA "old.sales";
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE "old.sales".thing (id bigint PRIMARY KEY, n numeric(38, 10), tags text[], doc jsonb, u uuid,
    at timestamptz, plain timestamp, day date, span interval, hour time, raw bytea, ok boolean,
    small smallint, m mood, r int4range);
INSERT INTO "old.sales".thing VALUES
    (1, 1234567890123456789012345678.0123456789, '{a,b}', '{"k": [1]}', '00000000-0000-0000-0000-000000000001',
     '2020-01-01 12:00+02', '2020-01-01 12:00', '2020-01-02', '1 day 2 hours', '10:11', '\\x00ff', true,
     7, 'glad', '[1,5)'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
COMMENT ON TABLE "old.sales".thing IS 'all sorts';
"""


def test_types_of_a_server_are_kept_or_given_as_text(database):
    url = database(TYPES).replace("postgresql://", "postgresql+psycopg://")
    engine = other_server_engine(url, ["old.sales"])
    (shape,) = engine.shapes()
    assert (shape.name, shape.database, shape.called) == ('"old.sales".thing', "old.sales", "thing")
    assert shape.comment == "all sorts"
    assert shape.declared_types[:2] == ("BIGINT", "NUMERIC(38, 10)")
    row = engine.scan(shape.name).iloc[0].to_dict()
    assert row["n"] == Decimal("1234567890123456789012345678.0123456789")
    assert (row["tags"], row["doc"]) == ('["a", "b"]', '{"k": [1]}')
    assert row["u"] == "00000000-0000-0000-0000-000000000001"
    assert row["at"] == pd.Timestamp("2020-01-01 10:00", tz="UTC")
    assert row["plain"] == pd.Timestamp("2020-01-01 12:00")
    assert row["day"] == dt.date(2020, 1, 2)
    assert (row["span"], row["hour"], row["raw"]) == ("1 day, 2:00:00", "10:11:00", b"\x00\xff")
    assert (row["ok"], row["small"], row["m"]) == (True, 7, "glad")
    whole = engine.scan(shape.name)
    assert (str(whole["ok"].dtype), str(whole["small"].dtype)) == ("boolean", "Int64")
    with pytest.raises(SourceNotFound, match=r"no schema 'old.sale'.*'old.sales'"):
        other_server_engine(url, ["old.sale"]).shapes()


def test_no_password_is_shown_and_faults_are_named(database, tmp_path, monkeypatch):
    url = database("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    password = sa.make_url(url).password
    assert password
    engine = other_server_engine(url.replace("postgresql://", "postgresql+psycopg://"), None)
    assert password not in repr(engine) + engine.identity
    assert engine.scan("public.t")["id"].tolist() == [1]
    assert pickle.loads(pickle.dumps(engine)).scan("public.t")["id"].tolist() == [1]
    name = sa.make_url(url).database
    with psycopg.connect(url.rsplit("/", 1)[0] + "/postgres", autocommit=True) as owner:
        owner.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    assert engine.scan("public.t")["id"].tolist() == [1]  # a connection that is gone is made anew
    gone = other_server_engine(f"postgresql+psycopg://me:secret-word@127.0.0.1:1/{name}", None)
    with pytest.raises(ServerGone, match="cannot be reached") as caught:
        gone.shapes()
    assert "secret-word" not in str(caught.value)
    with pytest.raises(MissingExtra, match="driver of mysql"):
        tf.open_corpus("mysql+pymysql://me:secret-word@host/db")


def test_a_server_lets_statements_only_read(shop):
    file = other_server_engine(f"sqlite:///{shop}", None)
    with pytest.raises(UnreadableTable, match=r"read-?only"), file.address.reading("a table") as connection:
        connection.execute(sa.text("INSERT INTO main.customer (id) VALUES (9999)"))


def test_a_connection_that_is_refused_is_not_tried_again(database):
    url = database("CREATE TABLE t (id int PRIMARY KEY);").replace("postgresql://", "postgresql+psycopg://")
    with pytest.raises(ConnectionRefusedByServer, match="does not accept the connection") as caught:
        other_server_engine(f"{url}_nowhere", None).shapes()
    assert not caught.value.retryable
