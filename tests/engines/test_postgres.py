"""PostgreSQL: opened, profiled, read and asked where the tables are. The server is real, and of the tests' own."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pandas as pd
import platformdirs
import psycopg
import pytest

import tagframe as tf
from tagframe.engines.postgres.engine import PostgresEngine, postgres_engine
from tagframe.errors import (
    InvalidArgument,
    ServerGone,
    SourceNotFound,
    TagframeError,
    UnreadableTableWarning,
)
from tagframe.keys import KeyPair
from tagframe.merging import plan_tables, run_plan
from tests.engines.sources import run

SHOP = """
CREATE SCHEMA sales; CREATE SCHEMA stock;
CREATE TABLE sales.customer (id int PRIMARY KEY, name text NOT NULL, city text);
INSERT INTO sales.customer SELECT g, 'name ' || g, (ARRAY['Prague', 'Brno', NULL])[1 + g % 3]
    FROM generate_series(1, 50) g;
CREATE TABLE stock.product (sku text PRIMARY KEY, price numeric(10, 2));
INSERT INTO stock.product SELECT 'P' || g, g * 1.25 FROM generate_series(1, 20) g;
CREATE TABLE sales.orders (id bigint, customer_id int REFERENCES sales.customer, sku text REFERENCES stock.product,
    day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE sales.orders_old PARTITION OF sales.orders FOR VALUES FROM ('2000-01-01') TO ('2020-01-01');
CREATE TABLE sales.orders_new PARTITION OF sales.orders FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
INSERT INTO sales.orders SELECT g, 1 + g % 50, 'P' || (1 + g % 20), date '2019-01-01' + g
    FROM generate_series(1, 1000) g;
CREATE VIEW sales.totals AS SELECT customer_id, count(*) AS orders FROM sales.orders GROUP BY 1;
CREATE MATERIALIZED VIEW sales.cities AS SELECT city, count(*) AS customers FROM sales.customer GROUP BY 1;
COMMENT ON TABLE sales.customer IS 'who buys';
COMMENT ON COLUMN sales.customer.city IS 'where they live';
"""


def _catalogue() -> Path:
    """The one that was written last."""
    folder = Path(platformdirs.user_cache_path("tagframe")) / "catalogues"
    return max(folder.glob("postgres-*.sqlite"), key=lambda path: path.stat().st_mtime)


def wait_until_counted(url: str, table: str, rows: int) -> None:
    """Wait until the server's statistics have so many inserts: it counts what was written with a delay."""
    while run(url, f"SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = '{table}'")[0][0] < rows:
        time.sleep(0.05)


def opened(url: str, **settings) -> tf.Corpus:
    return tf.open_corpus(url, progress=False, **settings)


def test_tables_of_all_schemas_with_their_keys_and_comments(database):
    corpus = opened(database(SHOP))
    assert corpus.ids == (
        "sales.cities", "sales.customer", "sales.orders", "sales.totals", "stock.product",
    )  # fmt: skip
    customer, orders = corpus.profile("customer"), corpus.profile("sales.orders")
    assert (customer.rows, customer.primary_key, customer.description) == (50, ("id",), "who buys")
    assert customer.column("city").description == "where they live"
    assert customer.column("city").nulls == 17
    assert [column.family for column in orders.columns] == ["integer", "integer", "text", "date"]
    assert orders.rows == 1000  # both partitions
    keys = {(key.columns, key.other_database, key.other_table) for key in orders.foreign_keys}
    assert keys == {(("customer_id",), "", "customer"), (("sku",), "stock", "product")}
    again = opened(_engine_url(corpus.engine("customer")))  # out of the catalogue
    assert {(key.other_database, key.other_table) for key in again.profile("orders").foreign_keys} == {
        ("", "customer"), ("stock", "product"),
    }  # fmt: skip


def test_only_the_schemas_that_are_asked_for(database):
    url = database(SHOP)
    assert opened(url, schemas=["stock"]).ids == ("stock.product",)
    with pytest.raises(SourceNotFound, match=r"no schema 'stok'.*did you mean 'stock'"):
        opened(url, schemas=["stok"])
    with pytest.raises(InvalidArgument, match="list of schema names"):
        tf.open_corpus(url, schemas="stock")
    with pytest.raises(InvalidArgument, match="a server's URL"):
        tf.open_corpus({"a": pd.DataFrame({"x": [1]})}, schemas=["stock"])
    with pytest.raises(InvalidArgument, match="cannot read from nosuch"):
        tf.open_corpus("nosuch://a@b/c")


def test_profiles_are_of_statistics_where_these_are_fresh(database):
    script = """CREATE TABLE big (id int PRIMARY KEY, kind text, amount float8, note text, j json);
    INSERT INTO big SELECT g, 'k' || g % 7, g / 3.0, CASE WHEN g % 4 = 0 THEN 'n' || g END, '{}'
    FROM generate_series(1, 100000) g;"""
    url = database(script)
    unknown = opened(url).profile("big")
    run(url, "ANALYZE big")
    known = opened(url).profile("big")
    for profile in (unknown, known):
        assert profile.estimated
        assert profile.rows == pytest.approx(100_000, rel=0.1)
        kind, note = profile.column("kind"), profile.column("note")
        assert (kind.distinct, kind.family) == (7, "text")
        assert set(kind.samples) == {f"k{g}" for g in range(7)}
        assert note.null_share == pytest.approx(0.75, abs=0.05)
        assert profile.column("id").uniqueness == 1.0
        assert profile.column("amount").sketch.sampled
    assert known.rows == 100_000
    assert known.column("kind").sketch.complete
    assert float(known.column("id").maximum) == pytest.approx(100_000, rel=0.01)
    assert pickle.loads(pickle.dumps(opened(url).profile("big"))).estimated  # out of the catalogue too


def test_statistics_that_are_stale_are_not_taken(database):
    url = database("CREATE TABLE t (a int); INSERT INTO t SELECT 1 FROM generate_series(1, 1000); ANALYZE t;")
    run(url, "INSERT INTO t SELECT g FROM generate_series(2, 5000) g")
    wait_until_counted(url, "t", 5999)
    assert opened(url).profile("t").column("a").distinct > 4000


@pytest.fixture
def asked(monkeypatch):
    """The tables of which the server's statistics were asked for."""
    names, real = [], PostgresEngine.statistics

    def noted(engine, shapes):
        names.extend(shape.name for shape in shapes)
        return real(engine, shapes)

    monkeypatch.setattr(PostgresEngine, "statistics", noted)
    return names


def test_what_has_not_changed_is_not_profiled_again(database, asked):
    url = database(SHOP)
    first = opened(url)
    asked.clear()
    assert opened(url).ids == first.ids
    assert asked == []
    run(url, "INSERT INTO sales.customer VALUES (51, 'new', 'Brno')")
    wait_until_counted(url, "customer", 51)
    assert opened(url).profile("customer").rows == 51
    assert asked == ["sales.customer"]
    run(url, "ALTER TABLE stock.product RENAME COLUMN price TO cost")
    asked.clear()
    assert opened(url).profile("product").column("cost").family == "real"
    assert asked == ["stock.product"]


TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE odd (
    small smallint, whole numeric(12, 0), exact numeric(38, 10), free numeric, real real, dbl double precision,
    yes boolean,
    fixed char(5), day date, moment timestamp, zoned timestamptz, clock time, span interval, raw bytea, list int[],
    doc jsonb, spread int4range, one uuid, addr inet, feel mood, duo pair, plus positive, bits bit(3), money money,
    place point, "we""ird na.me" text);
INSERT INTO odd VALUES (1, 123456789012, 1234567890123456789.0123456789, 1.5, 1.5, 0.1, true, 'ab', '2020-02-03',
    '2020-02-03 04:05:06.789', '2020-02-03 04:05:06+02', '12:30', '1 mon 2 days', '\\x00ff', '{1,2}', '{"a": 1}',
    '[1,5)',
    '00000000-0000-0000-0000-000000000001', '10.0.0.1', 'happy', '(1,z)', 7, B'101', 12.5, '(1,2)', 'w'),
    (NULL, NULL, NULL, 'NaN', NULL, NULL, NULL, NULL, 'infinity', '-infinity', 'infinity', NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""


def test_types_are_kept_or_given_as_text(database):
    engine = postgres_engine(database(TYPES), None)
    names = [column for shape in engine.shapes() for column in shape.columns]
    whole = engine.scan("public.odd")
    assert list(whole.columns) == names
    assert str(whole["small"].dtype) == "Int16"
    assert str(whole["whole"].dtype) == "Int64"
    one = whole.iloc[0]
    assert one["whole"] == 123456789012
    assert one["exact"] == Decimal("1234567890123456789.0123456789")
    assert (one["real"], one["dbl"], one["fixed"], one["raw"]) == (1.5, 0.1, "ab", b"\x00\xff")
    texts = {
        "clock": "12:30:00", "span": "1 mon 2 days", "list": "{1,2}", "doc": '{"a": 1}', "spread": "[1,5)",
        "one": "00000000-0000-0000-0000-000000000001", "addr": "10.0.0.1/32", "feel": "happy", "duo": "(1,z)",
        "bits": "101", "money": "$12.50", "place": "(1,2)", 'we"ird na.me': "w",
    }  # fmt: skip
    assert {name: one[name] for name in texts} == texts
    assert one["plus"] == 7
    # Infinities are no days of pandas'.
    assert whole["day"].tolist() == ["2020-02-03", "infinity"]
    assert whole["moment"].tolist() == ["2020-02-03 04:05:06.789", "-infinity"]
    assert whole["zoned"].tolist() == ["2020-02-03 02:05:06+00", "infinity"]
    assert whole["free"].iloc[1].is_nan()
    first = engine.scan("public.odd", ["day", "zoned"], limit=1)
    assert first["day"].tolist() == [dt.date(2020, 2, 3)]
    assert first["zoned"].iloc[0] == pd.Timestamp("2020-02-03 02:05:06", tz="UTC")
    corpus = opened(_engine_url(engine))
    assert corpus.profile("odd").column("doc").declared_type == "jsonb"
    assert corpus.read("odd", ["exact"])["exact"].iloc[0] == one["exact"]


def _engine_url(engine: PostgresEngine) -> str:
    parts = psycopg.conninfo.conninfo_to_dict(engine.server.conninfo)
    return f"postgresql://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/{parts['dbname']}"


def test_an_empty_database_and_empty_tables(database):
    url = database()
    with pytest.raises(TagframeError, match="no table"):
        opened(url)
    run(url, "CREATE TABLE nothing (); CREATE TABLE t (a int, b text); ANALYZE")
    corpus = opened(url)
    assert corpus.profile("t").rows == 0
    assert len(corpus.read("t")) == 0
    assert corpus.read("nothing").shape == (0, 0)


# --- the password ---------------------------------------------------------------------------------------------------


def test_the_password_of_the_environment_is_read(postgres, database, monkeypatch):
    """With one that is wrong in PostgreSQL's own variable, tagframe's own is taken."""
    url = database(SHOP)
    monkeypatch.setenv("PGPASSWORD", "another")
    monkeypatch.setenv("TAGFRAME_PASSWORD", postgres.password)
    bare = url.replace(f":{postgres.password}@", "@")
    assert bare != url
    assert opened(bare).ids == opened(url).ids


def test_the_password_is_nowhere(postgres, database, own_cache):
    url = database(SHOP)
    corpus = opened(url)
    engine = corpus.engine("customer")
    seen = [
        repr(corpus),
        repr(engine),
        str(engine),
        engine.identity,
        repr(engine.server),
        repr(corpus.profile("customer")),
    ]
    with pytest.raises(TagframeError) as caught:
        opened(url.replace(postgres.password, "wr0ng-" + postgres.password))
    for text in [*seen, str(caught.value), repr(caught.value), str(caught.value.__cause__)]:
        assert postgres.password not in text
    files = [path for path in Path(platformdirs.user_cache_path("tagframe")).rglob("*") if path.is_file()]
    assert any(path.name.startswith("postgres-") for path in files)
    for path in files:
        assert postgres.password.encode() not in path.read_bytes()
        assert postgres.password not in str(path)


# --- faults ---------------------------------------------------------------------------------------------------------


def test_what_may_not_be_read_is_left_out_with_a_word(postgres, database):
    url = database(SHOP)
    run(
        url,
        f"""
        DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN PASSWORD 'clerk-pw';
        GRANT CONNECT ON DATABASE {url.rpartition("/")[2]} TO clerk;
        GRANT USAGE ON SCHEMA sales TO clerk; GRANT SELECT ON sales.orders TO clerk;
        GRANT SELECT (id, city) ON sales.customer TO clerk;""",
    )
    theirs = postgres.url(url.rpartition("/")[2], "clerk", "clerk-pw")
    for _ in range(2):  # the second time out of the catalogue
        with pytest.warns(UnreadableTableWarning) as said:
            corpus = tf.open_corpus(theirs, progress=False)
        texts = " ".join(str(one.message) for one in said)
        assert "schema 'stock'" in texts
        assert "no right to use it" in texts
        assert "2 tables of schema 'sales'" in texts
        assert len(corpus.problems) == 2
        assert corpus.ids == ("sales.customer", "sales.orders")
        assert [column.name for column in corpus.profile("customer").columns] == ["id", "city"]
    assert corpus.read("customer").shape == (50, 2)
    run(url, f"DROP OWNED BY clerk; REVOKE ALL ON DATABASE {url.rpartition('/')[2]} FROM clerk; DROP ROLE clerk")


def test_a_server_that_goes_away_is_named_and_the_next_call_goes_on(database, postgres):
    url = database(SHOP)
    corpus = opened(url)
    corpus.read("customer")
    killed = run(
        postgres.url(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tagframe'"
    )
    assert killed
    assert corpus.read("customer").shape == (50, 3)  # on a new connection
    postgres.stop(signal.SIGQUIT)
    try:
        with pytest.raises(ServerGone, match="cannot be reached"):
            corpus.read("customer")
        with pytest.raises(ServerGone, match="cannot be reached"):
            opened(url)
    finally:
        postgres.start()
    assert corpus.read("customer").shape == (50, 3)
    assert opened(url).ids == corpus.ids


def test_a_server_that_goes_away_while_it_is_profiled_keeps_what_is_done(database, postgres, monkeypatch):
    url = database("; ".join(f"CREATE TABLE t{n} (a int); INSERT INTO t{n} VALUES ({n})" for n in range(9)))
    real, read = PostgresEngine.chunks, []

    def chunks(engine, shape):
        read.append(shape.name)
        if len(read) == 5:
            run(
                postgres.url(),
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tagframe'",
            )
            postgres.stop(signal.SIGQUIT)
        return real(engine, shape)

    monkeypatch.setattr(PostgresEngine, "chunks", chunks)
    try:
        with pytest.raises(ServerGone):
            opened(url)
    finally:
        monkeypatch.undo()
        postgres.start()
    with closing(sqlite3.connect(_catalogue())) as catalogue:
        done = {name for (name,) in catalogue.execute("SELECT table_name FROM tables")}
    assert done == {f"public.{name}" for name in ("t0", "t1", "t2", "t3")}
    # A crash loses the counters, so that these are profiled again; nothing is missing or twice.
    corpus = opened(url)
    assert [corpus.profile(f"t{n}").column("a").minimum for n in range(9)] == [str(n) for n in range(9)]


def test_views_that_fail_or_take_too_long(database, asked, monkeypatch):
    monkeypatch.setattr("tagframe.engines.postgres.pg_catalog.SECONDS", 1.0)
    url = database("""
        CREATE TABLE t (a int); INSERT INTO t VALUES (0);
        CREATE VIEW broken AS SELECT 1 / a AS x FROM t;
        CREATE VIEW slow AS SELECT pg_sleep(60)::text AS x, 1 AS amount;""")
    with pytest.warns(UnreadableTableWarning, match="division by zero"):
        corpus = tf.open_corpus(url, progress=False)
    assert corpus.ids == ("public.slow", "public.t")
    # Of a view that takes too long the names are known, and it is not waited for again.
    assert corpus.profile("slow").rows is None
    assert corpus.profile("slow").column("amount").family == "integer"
    run(url, "DROP VIEW broken")
    asked.clear()
    assert opened(url).ids == corpus.ids
    assert asked == []


def test_threads_and_forks_have_connections_of_their_own(database):
    corpus = opened(database(SHOP))
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: len(corpus.read("customer")), range(40))) == {50}
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, str(len(corpus.read("customer"))).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"50"
    assert len(corpus.read("customer")) == 50


def test_names_of_any_kind(database):
    url = database("""
        CREATE SCHEMA "we.ird ""s"; CREATE SCHEMA "Ünï";
        CREATE TABLE "we.ird ""s"."ta.b""le %s" (id int PRIMARY KEY, "co""l.x" text, "100%" int);
        INSERT INTO "we.ird ""s"."ta.b""le %s" SELECT g, 'v' || g, g FROM generate_series(1, 30) g;
        CREATE TABLE "Ünï"."Zwölf" (no int PRIMARY KEY, "ta.b""le_id" int);
        INSERT INTO "Ünï"."Zwölf" SELECT g, g FROM generate_series(1, 30) g;""")
    corpus = opened(url)
    left, right = corpus.ids[1], corpus.ids[0]
    assert (left, right) == ("Ünï.Zwölf", 'we.ird "s.ta.b"le %s')
    plan = plan_tables(corpus, [left, right], given=[KeyPair(left, ('ta.b"le_id',), right, ("id",), 1.0)])
    frame, report = run_plan(plan, corpus, limit=3, where={"100%": [1, 2]})
    assert (report.engine, report.start_rows, frame['co"l.x'].tolist()) == ("postgres", 30, ["v1", "v2"])
    rows = tf.exec_sql(corpus)('SELECT "co""l.x", "100%" % 2 AS m, \'%s\' AS t FROM "ta.b""le %s" ORDER BY id LIMIT 1')
    assert rows.to_dict("list") == {'co"l.x': ["v1"], "m": [1], "t": ["%s"]}
