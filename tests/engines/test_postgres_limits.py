"""A PostgreSQL server that limits, refuses, or does not answer. It is real, and of the tests' own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg
import pytest

import tagframe as tf
from tagframe.engines.postgres.connection import close_connections
from tagframe.errors import (
    ConnectionRefusedByServer,
    ServerGone,
    SQLFailed,
    TagframeError,
    UnreadableTable,
    UnreadableTableWarning,
)
from tagframe.merging import plan_tables, run_plan
from tests.engines.sources import run

pytestmark = pytest.mark.slow

SLOW = "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE VIEW slow AS SELECT a, pg_sleep(2)::text AS b FROM t"


def test_a_lower_time_limit_of_the_url_holds(database):
    corpus = tf.open_corpus(f"{database(SLOW)}?options=-cstatement_timeout%3D1000ms", progress=False)
    for _ in range(2):  # the second time on the same connection
        with pytest.raises(UnreadableTable, match=r"was not read to the end: .*statement timeout"):
            corpus.read("slow", ["b"])
    with pytest.raises(SQLFailed, match="by a limit of its own"):
        tf.exec_sql(corpus)("SELECT count(*) FROM t AS a, t AS b, slow")
    assert corpus.read("t")["a"].tolist() == [1]


def test_a_connection_that_the_server_refuses_is_no_server_that_is_gone(database, postgres):
    url = database(SLOW)
    name, role = url.rpartition("/")[2], f"r{url[-12:]}"
    run(url, f"CREATE ROLE {role} LOGIN PASSWORD 'p' CONNECTION LIMIT 0")
    for wrong, said in [
        (postgres.url(name, password="wrong"), "password authentication failed"),
        (postgres.url(f"{name}x"), "does not exist"),
        (f"{url}?sslmode=require", "does not support SSL"),
        (f"{url}?options=-cwork_mem%3Da", "work_mem"),
    ]:
        with pytest.raises(ConnectionRefusedByServer, match=said) as refused:
            tf.open_corpus(wrong, progress=False)
        assert not refused.value.retryable
        assert not isinstance(refused.value, ConnectionError)  # which loops try again
    with pytest.raises(ServerGone, match="too many connections") as crowded:
        tf.open_corpus(postgres.url(name, role, "p"), progress=False)
    assert crowded.value.retryable


def test_a_password_that_is_changed_while_a_corpus_is_open_is_refused(database, postgres):
    url = database(SLOW)
    name, role = url.rpartition("/")[2], f"r{url[-12:]}"
    run(url, f"CREATE ROLE {role} LOGIN PASSWORD 'p'; GRANT SELECT ON t, slow TO {role}")
    corpus = tf.open_corpus(postgres.url(name, role, "p"), progress=False)
    close_connections()
    run(url, f"ALTER ROLE {role} PASSWORD 'new'")
    for call in (lambda: corpus.read("t"), lambda: tf.exec_sql(corpus)("SELECT a FROM t")):
        with pytest.raises(ConnectionRefusedByServer, match="password authentication failed"):
            call()
    run(url, f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_an_error_says_whether_the_same_call_may_succeed_later(database, monkeypatch):
    monkeypatch.setattr("tagframe.engines.postgres.connection._LOCK_SECONDS", 0.2)
    url = database(f"{SLOW}; CREATE VIEW broken AS SELECT a / 0 AS x FROM t WHERE a <> 1")
    corpus = tf.open_corpus(url, progress=False)
    close_connections()
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE t")
        for call in (lambda: corpus.read("t"), lambda: tf.exec_sql(corpus)("SELECT a FROM t")):
            with pytest.raises(TagframeError, match="lock timeout") as locked:
                call()
            assert locked.value.retryable
        other.rollback()
    run(url, "UPDATE t SET a = 2")
    with pytest.raises(UnreadableTable, match="division by zero") as broken:
        corpus.read("broken")
    assert not broken.value.retryable


def test_the_sql_of_a_plan_runs_as_it_is_outside_of_the_schema_public(database):
    url = database("""
        CREATE SCHEMA sales;
        CREATE TABLE sales.orders (id int PRIMARY KEY); INSERT INTO sales.orders VALUES (1), (2);
        CREATE TABLE sales.order_line (no int PRIMARY KEY, order_id int REFERENCES sales.orders (id), price numeric);
        INSERT INTO sales.order_line VALUES (1, 1, 2.5), (2, 1, 3), (3, 2, 4)""")
    corpus = tf.open_corpus(url, progress=False)
    plan = plan_tables(corpus, ["sales.order_line", "sales.orders"])
    assert run(url, plan.sql(dialect="postgres", columns=["no", "price"], limit=9)) == [
        (1, Decimal("2.5")), (2, Decimal(3)), (3, Decimal(4)),
    ]  # fmt: skip
    totals = plan.aggregated({"order_line": {"price": "sum"}}).sql(dialect="postgres")
    assert sorted(run(url, totals)) == [(1, Decimal("5.5")), (2, Decimal(4))]


def test_a_table_that_is_locked_is_a_problem_and_the_others_are_opened(database, monkeypatch):
    monkeypatch.setattr("tagframe.engines.postgres.connection._LOCK_SECONDS", 0.2)
    url = database("""
        CREATE TABLE busy (a int); INSERT INTO busy SELECT generate_series(1, 20000);
        CREATE TABLE small (a int); CREATE VIEW over AS SELECT * FROM small; CREATE TABLE t (a int)""")
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE busy; LOCK TABLE small")
        with pytest.warns(UnreadableTableWarning, match="is locked by another session"):
            corpus = tf.open_corpus(url, progress=False)
        assert corpus.ids == ("public.t",)
        said = sorted(str(problem).partition(" of ")[0] for problem in corpus.problems)
        assert said == ["table 'public.busy'", "table 'public.over'", "table 'public.small'"]
        assert all(problem.retryable for problem in corpus.problems)
        other.rollback()
    assert tf.open_corpus(url, progress=False).ids == ("public.busy", "public.over", "public.small", "public.t")


def test_a_table_whose_right_is_revoked_is_named(database, postgres):
    url = database(SLOW)
    name, role = url.rpartition("/")[2], f"r{url[-12:]}"
    run(url, f"CREATE ROLE {role} LOGIN PASSWORD 'p'; GRANT SELECT ON t, slow TO {role}")
    theirs = postgres.url(name, role, "p")
    corpus = tf.open_corpus(theirs, progress=False)
    run(url, f"REVOKE SELECT ON slow FROM {role}")
    for columns in (None, ["a"]):
        with pytest.raises(UnreadableTable, match=r"'public\.slow' of .*(no column that its user may read|permission)"):
            corpus.read("slow", columns)
    with pytest.warns(UnreadableTableWarning, match=r"1 table of schema 'public' \(slow\): no right to read"):
        assert tf.open_corpus(theirs, progress=False).ids == ("public.t",)
    run(url, f"DROP OWNED BY {role}; DROP ROLE {role}")


@contextmanager
def suspended(postgres) -> Iterator[None]:
    """A server that the network still has, and that answers nothing."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tagframe'"
    pids = [postgres._process.pid, *(pid for (pid,) in run(postgres.url(), query))]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_no_wait_on_a_server_that_does_not_answer_is_longer_than_the_timeout(database, postgres, monkeypatch):
    url = database(SLOW)
    corpus = tf.open_corpus(url, progress=False)
    plan = plan_tables(corpus, ["public.t"])
    monkeypatch.setenv("TAGFRAME_TIMEOUT", "0.3")
    calls = (
        lambda: corpus.read("t"),
        lambda: run_plan(plan, corpus, limit=1),
        lambda: tf.exec_sql(corpus)("SELECT a FROM t"),
        lambda: tf.open_corpus(url, progress=False),
    )
    with suspended(postgres):
        for call in calls:
            with pytest.raises(ServerGone, match=r"did not answer within 0\.3 seconds") as gone:
                call()
            assert gone.value.retryable
    monkeypatch.delenv("TAGFRAME_TIMEOUT")
    assert corpus.read("t")["a"].tolist() == [1]


def test_the_timeout_stops_a_statement_on_the_server(database, statements_left):
    corpus = tf.open_corpus(database(SLOW), progress=False)
    with tf.context(timeout=1):
        with pytest.raises(UnreadableTable, match="was not read to the end"):
            corpus.read("slow", ["b"])
        with pytest.raises(SQLFailed, match=r"stopped after 1 seconds"):
            tf.exec_sql(corpus)("SELECT count(*) FROM slow")
    assert statements_left() == []
