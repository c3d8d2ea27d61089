"""A PostgreSQL server that limits, refuses, or does not answer. It is real, and of the tests' own."""

from __future__ import annotations

import psycopg
import pytest

import tagframe as tf
from tagframe.errors import SQLFailed, UnreadableTable

SLOW = "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE VIEW slow AS SELECT a, pg_sleep(2)::text AS b FROM t"


def run(url: str, script: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as owner:
        cursor = owner.execute(script)
        return cursor.fetchall() if cursor.description else []


def test_a_lower_time_limit_of_the_url_holds(database):
    corpus = tf.open_corpus(f"{database(SLOW)}?options=-cstatement_timeout%3D200ms", progress=False)
    for _ in range(2):  # the second time on the same connection
        with pytest.raises(UnreadableTable, match="was not read to the end: .*statement timeout"):
            corpus.read("slow", ["b"])
    with pytest.raises(SQLFailed, match="by a limit of its own"):
        tf.exec_sql(corpus)("SELECT count(*) FROM t AS a, t AS b, slow")
    assert corpus.read("t")["a"].tolist() == [1]
