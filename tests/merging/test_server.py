"""Joins that PostgreSQL runs: the frame and the counts that pandas gives, and only the result travels."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import psycopg
import pytest
from accounted import alike

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.engines.postgres.connection import reading
from tagframe.errors import ColumnNotFound, FanOut, ServerGone, UnreadableTable
from tagframe.joins import JoinPlan, keys_on
from tagframe.merging import plan_tables, run_plan

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE SCHEMA shop; CREATE SCHEMA geo;
CREATE TABLE geo.country (code text PRIMARY KEY, country_name text);
INSERT INTO geo.country VALUES ('CZ', 'Czechia'), ('DE', 'Germany'), ('XX', NULL);
CREATE TABLE shop.customer (customer_id int PRIMARY KEY, name text, code text REFERENCES geo.country, born date);
INSERT INTO shop.customer SELECT g, 'c' || g, (ARRAY['CZ', 'DE', NULL])[1 + g % 3], date '1990-01-01' + g
    FROM generate_series(1, 30) g;
CREATE TABLE shop.sale (sale_id int PRIMARY KEY, customer_id int, amount numeric(12, 2), paid boolean, day date);
INSERT INTO shop.sale SELECT g, CASE WHEN g % 11 = 0 THEN NULL ELSE 1 + g % 40 END, g * 1.5, g % 2 = 0,
    date '2024-01-01' + g % 50 FROM generate_series(1, 400) g;
CREATE TABLE shop.visit (customer_id int, page text);
INSERT INTO shop.visit VALUES (1, 'a'), (1, 'b'), (99, 'c'), (99, 'd');
CREATE VIEW shop.named AS SELECT customer_id, name FROM shop.customer;
"""
CHAIN = ["shop.sale", "shop.customer", "geo.country"]
QUIET = {"on_loss": "allow"}


@pytest.fixture(scope="module")
def corpus(lasting) -> tf.Corpus:
    return tf.open_corpus(lasting("merging", SCRIPT), progress=False)


@pytest.fixture
def chain(corpus) -> JoinPlan:
    return plan_tables(corpus, CHAIN)


def test_with_a_limit_the_statement_stops_there_and_counts_come_later(corpus, chain):
    frame, report = run_plan(chain, corpus, limit=5, on_loss="allow")
    assert (len(frame), report.rows, report.engine) == (5, 5, "postgres")
    assert "LIMIT 5" in report.sql
    assert not report.is_counted
    assert report.start_rows == 400
    assert report.is_counted
    assert report.lost == 400 - report.steps[-1].rows_out
    assert "Merged from shop.sale (400 rows)" in repr(report)
    assert report.to_dict()["rows"] == 5
    assert len(report.to_frame()) == 2
    back = pickle.loads(pickle.dumps(report))
    assert back == report
    assert run_plan(chain, corpus, limit=5, on_loss="allow")[0].equals(frame)


def test_a_step_that_repeats_rows_is_refused_before(corpus):
    given = keys_on("customer_id", names(corpus))
    plan = plan_tables(corpus, ["shop.customer", "shop.visit"], given=given).restarted("shop.customer")
    with pytest.raises(FanOut, match=r"would repeat 1 row of shop\.customer, 2 times at most") as caught:
        run_plan(plan, corpus, limit=5)
    assert caught.value.rows["customer_id"].tolist() == [1]
    # Where the repetition is meant, it is accounted for there.
    frame, report = run_plan(plan, corpus, on_fanout="allow", **QUIET)
    assert (len(frame), report.engine, report.steps[0].fan_out) == (2, "postgres", 2.0)
    # Keys that repeat and that no row meets repeat nothing.
    few = plan.use("customer.customer_id = visit.customer_id")
    with psycopg.connect(url_of(corpus), autocommit=True) as owner:
        owner.execute("DELETE FROM shop.visit WHERE page = 'b'")
        try:
            frame, report = run_plan(few, corpus, **QUIET)
            assert (frame["page"].tolist(), report.engine, report.steps[0].unmatched_right) == (["a"], "postgres", 2)
        finally:
            owner.execute("INSERT INTO shop.visit VALUES (1, 'b')")


def names(corpus):
    return [NamedTable.of(corpus.profile(id)) for id in ("shop.customer", "shop.visit")]


def url_of(corpus: tf.Corpus) -> str:
    return corpus.engine("shop.sale").server.conninfo


def test_what_sql_would_compare_otherwise_is_left_to_pandas(corpus, chain):
    asked = {"where": lambda name: name.str.endswith("1")}
    _, report = run_plan(chain, corpus, where={"name": asked["where"]}, **QUIET)
    assert report.engine == "pandas"
    wheres: list[tuple[dict[str, Any], str]] = [({"sale_id": "0.5"}, "postgres"),
              ({"amount": float("inf")}, "pandas"), ({"name": "a\x00b"}, "pandas")]  # fmt: skip
    for where, engine in wheres:
        frame, report = run_plan(chain, corpus, where=where, **QUIET)
        assert (len(frame), report.engine) == (0, engine)
    _, report = run_plan(chain, corpus, where="amount > 100", **QUIET)
    assert report.engine == "postgres"
    _, report = alike(chain, corpus, ordered=False, where="sale_id > 390 or name == 'c5'", **QUIET)
    assert report.engine == "postgres"


def test_views(corpus):
    tables = [NamedTable.of(corpus.profile(id)) for id in ("shop.sale", "shop.named")]
    plan = plan_tables(corpus, ["shop.sale", "shop.named"], given=keys_on("customer_id", tables))
    frame, report = run_plan(plan, corpus, limit=2, **QUIET)
    assert (report.engine, "name" in frame) == ("postgres", True)


def test_tables_that_changed_are_named(database):
    url = database(SCRIPT)
    own = tf.open_corpus(url, progress=False)
    plan = plan_tables(own, CHAIN)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER TABLE shop.customer RENAME COLUMN name TO called")
    with pytest.raises(ColumnNotFound, match="no column 'name' any more"):
        run_plan(plan, own, limit=1)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("DROP TABLE geo.country CASCADE")
    with pytest.raises(UnreadableTable, match=r"'geo.country' is no longer in .*"):
        run_plan(plan, own, limit=1)


def test_a_server_that_goes_away_is_named(database, postgres):
    own = tf.open_corpus(database(SCRIPT), progress=False)
    plan = plan_tables(own, CHAIN)
    _, report = run_plan(plan, own, limit=1, on_loss="allow")
    postgres.stop()
    try:
        with pytest.raises(ServerGone):
            run_plan(plan, own, limit=1)
        with pytest.raises(ServerGone):
            report.lost  # noqa: B018
    finally:
        postgres.start()
    assert report.start_rows == 400
    assert len(run_plan(plan, own, limit=1, on_loss="allow")[0]) == 1


def test_what_takes_too_long_is_cancelled_on_the_server(database, statements_left, monkeypatch):
    url = database(SCRIPT)
    own = tf.open_corpus(url, progress=False)
    plan = plan_tables(own, ["shop.sale", "shop.customer"]).use("shop.sale.customer_id = shop.customer.customer_id")
    _, report = run_plan(plan, own, limit=1, on_loss="allow")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER TABLE shop.customer RENAME TO person")
        owner.execute("CREATE VIEW shop.customer AS SELECT * FROM shop.person WHERE pg_sleep(60) IS NOT NULL")
        monkeypatch.setattr("tagframe.engines.postgres.engine.reading", partial(reading, seconds=0.4))
        for work in (lambda: run_plan(plan, own, limit=1), lambda: report.lost):
            with pytest.raises(UnreadableTable, match="was not read to the end"):
                work()
    assert statements_left() == []
