"""Statements that would take all memory or time of a PostgreSQL server, name what they may not, or only look like it.

They run as a superuser, and as a role that may read and do nothing else. How much they take is measured by
``python -m tests.answer.hungry_measured``; here it is asserted that each is answered or refused by name, that no cell
comes of what is hidden, and that those which do no harm give what they should.
"""

from __future__ import annotations

import psycopg
import pytest

import tagframe as tf
from tagframe.answer import SQLLimits
from tagframe.errors import SQLFailed, UnreadableTableWarning, UnsafeSQL
from tests.answer.guarded import run_sql
from tests.answer.hungry_postgres import (
    HARMLESS,
    HIDDEN,
    HOSTILE,
    LONG_TEXTS,
    READER,
    RENAMED,
    SCOPES,
    SCRIPT,
    TABLES,
    TYPES,
)
from tests.draws import one_of

LIMITS = SQLLimits(rows=100, seconds=0.2, memory=256)


@pytest.fixture(scope="module")
def library(postgres, lasting):
    """The corpus as its owner opens it, a superuser, and as a reader does."""
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS hungry WITH (FORCE)")
        owner.execute(f"DROP ROLE IF EXISTS {READER}")
        owner.execute(f"CREATE ROLE {READER} LOGIN PASSWORD 'read'")
    script = f'{SCRIPT}; GRANT SELECT ON film, "Order", note, letter TO {READER}'
    opened = {"owner": tf.open_corpus(lasting("hungry", script), progress=False)}
    with pytest.warns(UnreadableTableWarning, match="2 tables of schema 'public'"):
        opened["reader"] = tf.open_corpus(postgres.url("hungry", READER, "read"), progress=False)
    return {name: corpus.hide(*HIDDEN) for name, corpus in opened.items()}


def answered_or_refused(corpus: tf.Corpus, sql: str) -> None:
    try:
        rows = run_sql(sql, corpus, TABLES, LIMITS)
    except (UnsafeSQL, SQLFailed):
        return
    assert len(rows) <= LIMITS.rows
    assert "xyzzy" not in repr(rows.to_dict())
    assert not (rows.select_dtypes("number") == 77).any(axis=None), "the rows of vault were counted"


def test_there_are_enough_of_them():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 300
    assert len(HARMLESS) >= 50


@pytest.mark.parametrize("sql", one_of(3, HOSTILE), ids=lambda sql: ascii(sql[:60]))
def test_a_superusers_statement_is_answered_or_refused(library, sql):
    answered_or_refused(library["owner"], sql)


@pytest.mark.slow
@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: ascii(sql[:60]))
def test_a_readers_statement_is_answered_or_refused(library, sql):
    answered_or_refused(library["reader"], sql)


@pytest.mark.parametrize("sql", [*TYPES, *SCOPES], ids=lambda sql: ascii(sql[:60]))
def test_what_may_not_be_named_is_refused(library, sql):
    with pytest.raises((UnsafeSQL, SQLFailed)):
        run_sql(sql, library["owner"], TABLES, LIMITS)


@pytest.mark.parametrize("sql", [*LONG_TEXTS[:30], *RENAMED], ids=lambda sql: ascii(sql[:60]))
def test_a_text_without_bound_is_refused(library, sql):
    with pytest.raises((UnsafeSQL, SQLFailed)):
        run_sql(sql, library["owner"], TABLES, LIMITS)


@pytest.mark.parametrize("who", ["owner", "reader"])
def test_what_does_no_harm_is_answered(library, who):
    for sql, given in HARMLESS.items():
        rows = run_sql(sql, library[who], TABLES, SQLLimits(rows=100, seconds=60))
        assert rows["s"].tolist() == given, sql


def test_a_number_that_no_float_holds_stays_exact(library):
    rows = run_sql("SELECT 9.9::numeric ^ 100000 AS n", library["owner"], TABLES, SQLLimits(seconds=60))
    assert rows["n"][0].is_finite()
    assert rows["n"][0].adjusted() == 99563
    rows = run_sql("SELECT 0.1::numeric(1000, 999) ^ 999 AS n, 0.5::numeric AS h", library["owner"], TABLES)
    assert rows["n"][0].adjusted() == -999
    assert rows["h"].tolist() == [0.5]
    rows = run_sql("SELECT 'NaN'::numeric AS n, '-Infinity'::numeric AS i", library["owner"], TABLES)
    assert rows["n"].isna().tolist() == [True]
    assert rows["i"].tolist() == [float("-inf")]
