"""Statements that are long, deep or hard to parse: each gives rows or a named error, on every engine, and ends."""

from __future__ import annotations

import faulthandler
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import SQLLimits
from tagframe.engines import sql_reader as parsing
from tagframe.engines.sql_reader import LONGEST, trees_of
from tagframe.errors import SQLFailed, UnsafeSQL
from tests.answer.guarded import run_sql

pytestmark = pytest.mark.slow

MANY = 5_000
LIMITS = SQLLimits(rows=10_000, seconds=5.0)
FILMS = """CREATE TABLE film (id INTEGER PRIMARY KEY, title TEXT);
INSERT INTO film VALUES (1, 'a'), (2, 'b'), (3, 'c')"""
_HANGS = 120
"""Seconds after which the process is ended: a statement hangs."""

SMALL = {
    "or": "SELECT count(*) AS n FROM film WHERE " + " OR ".join(["id>0"] * MANY),
    "and": "SELECT count(*) AS n FROM film WHERE " + " AND ".join(["id>0"] * MANY),
    "and or": "SELECT count(*) AS n FROM film WHERE " + "id>0 AND id<9 OR " * (MANY // 2) + "id=1",
    "minus": "SELECT " + "- " * MANY + "id AS n FROM film",
    "not": "SELECT count(*) AS n FROM film WHERE " + "NOT " * MANY + "id=1",
    "parentheses": "SELECT " + "(" * MANY + "id" + ")" * MANY + " AS n FROM film",
    "case": "SELECT " + "CASE WHEN 1=1 THEN " * 1_900 + "id" + " END" * 1_900 + " AS n FROM film",
    "functions": "SELECT " + "abs(" * MANY + "id" + ")" * MANY + " AS n FROM film",
    "columns": "SELECT " + ", ".join(f"id AS c{number}" for number in range(2_000)) + " FROM film",
    "sum": "SELECT " + "+".join(["id"] * MANY) + " AS n FROM film",
    "concat": "SELECT " + "||".join(["title"] * MANY) + " AS n FROM film",
    "union": " UNION ALL ".join(["SELECT id FROM film"] * 1_500),
    "with": "WITH c0 AS (SELECT id FROM film), "
    + ", ".join(f"c{number} AS (SELECT id FROM c{number - 1})" for number in range(1, 1_000))
    + " SELECT * FROM c999",
    "joins": "SELECT count(*) AS n FROM film" + "".join(f", film AS f{number}" for number in range(2_500)),
    "subscripts": "SELECT (id)" + "[1]" * MANY + " AS n FROM film",
    "dots": "SELECT " + "a." * 20_000 + "a FROM film",
    "casts": "SELECT id" + "::int" * MANY + " AS n FROM film",
    "arrows": "SELECT title" + "->'a'" * MANY + " AS n FROM film",
    "in": "SELECT count(*) AS n FROM film WHERE id IN (" + ",".join(map(str, range(8_000))) + ")",
    "unclosed": "SELECT " + "(" * 25_000,
}
LARGE = {
    "ors": "SELECT count(*) AS n FROM film WHERE " + " OR ".join(f"film.id = {number}" for number in range(MANY)),
    "a megabyte of or": "SELECT 1 AS n FROM film WHERE " + " OR ".join(f"film.id={n}" for n in range(60_000)),
    "a megabyte of in": f"SELECT 1 AS n FROM film WHERE film.id IN ({','.join(map(str, range(150_000)))})",
}


@pytest.fixture(scope="module", params=["sqlite", "sqlalchemy", "duckdb", "postgres"])
def corpus(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    if request.param == "postgres":
        return tf.open_corpus(request.getfixturevalue("lasting")("long_statements", FILMS), progress=False)
    if request.param == "duckdb":
        pd.DataFrame({"id": [1, 2, 3], "title": ["a", "b", "c"]}).to_parquet(folder / "film.parquet")
        return tf.open_corpus(folder, engine="duckdb", progress=False)
    with closing(sqlite3.connect(folder / "cinema.sqlite")) as db, db:
        db.executescript(FILMS)
    if request.param == "sqlalchemy":
        return tf.open_corpus(f"sqlite+pysqlite:///{folder / 'cinema.sqlite'}", progress=False)
    return tf.open_corpus(folder / "cinema.sqlite", progress=False)


def _run(sql: str, corpus: tf.Corpus, limits: SQLLimits = LIMITS) -> int:
    (table,) = corpus.ids
    faulthandler.dump_traceback_later(_HANGS, exit=True)
    try:
        return len(run_sql(sql, corpus, {"film": table}, limits))
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("kind", SMALL)
def test_a_long_statement_gives_rows_or_a_named_error(corpus, kind):
    assert len(SMALL[kind]) <= LONGEST
    try:
        assert _run(SMALL[kind], corpus)
    except (SQLFailed, UnsafeSQL):
        return


@pytest.mark.parametrize("kind", LARGE)
def test_a_statement_that_is_too_long_is_refused_before_it_is_parsed(corpus, kind, monkeypatch):
    monkeypatch.setattr(parsing, "_counting", None)  # no parser can be made
    with pytest.raises(UnsafeSQL, match=r"characters long, and 50,000 at most may run"):
        _run(LARGE[kind], corpus)


def test_checking_counts_as_time_of_the_statement(corpus):
    with pytest.raises(SQLFailed, match=r"stopped after 0\.01 seconds"):
        _run(SMALL["or"].replace("id>0", "id>1"), corpus, SQLLimits(seconds=0.01))


def test_a_statement_is_parsed_once(corpus):
    trees_of.cache_clear()
    _run("SELECT film.title FROM film WHERE film.id = 2", corpus)
    read_by = 2 if corpus.engine(corpus.ids[0]).dialect.name == "postgres" else 1  # the guard's parser, and its own
    assert trees_of.cache_info().misses == read_by


def test_steps_of_the_parser_are_bounded(monkeypatch):
    monkeypatch.setattr(parsing, "_STEPS", -200)
    with pytest.raises(UnsafeSQL, match="too many steps to parse"):
        trees_of("SELECT a, b, c, d FROM film WHERE a = b", "postgres")
