from __future__ import annotations

import sqlite3

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.guard import SQLLimits, check_sql, dry_run, run_sql
from tagframe.errors import SQLFailed, UnsafeSQL

TABLES = {"film": "cinema.film", "order": "cinema.order"}


@pytest.fixture
def corpus(tmp_path):
    """Two tables in one SQLite file, one of them called by an SQL keyword."""
    path = tmp_path / "cinema.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE film (id INTEGER PRIMARY KEY, title TEXT, "year made" INTEGER);
            INSERT INTO film VALUES (1, 'Low Tide', 1998), (2, 'Salt Road', 2015), (3, NULL, 2020);
            CREATE TABLE "order" (id INTEGER PRIMARY KEY, film_id INTEGER, seats INTEGER);
            INSERT INTO "order" VALUES (1, 1, 4), (2, 1, 2), (3, 2, 1);
            CREATE TABLE secret (word TEXT);
            INSERT INTO secret VALUES ('xyzzy');
            """
        )
    connection.close()
    return tf.open_corpus(path)


GOOD = [
    'SELECT title FROM film WHERE "year made" > 2000;',
    'SELECT f.title, sum(o.seats) AS s FROM film f JOIN "order" o ON o.film_id = f.id GROUP BY f.title HAVING s > 1',
    'WITH busy AS (SELECT film_id FROM "order") SELECT * FROM film WHERE id IN (SELECT film_id FROM busy)',
    "SELECT title FROM FILM UNION SELECT 'x' ORDER BY 1 LIMIT 2 OFFSET 0",
    "SELECT CASE WHEN title LIKE '%a%' THEN upper(title) ELSE cast(id AS REAL) END FROM film WHERE id BETWEEN 1 AND 2",
    "SELECT title, rank() OVER (PARTITION BY id ORDER BY title ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM film",
    "SELECT count(*) FROM film",
    "SELECT count(DISTINCT title) FILTER (WHERE id > 1), max(id, 2), coalesce(title, '-') || '!' FROM film",
    "SELECT strftime('%Y', 'now') IS NOT NULL, NOT EXISTS (SELECT 1 FROM film WHERE id = 9)",
    "SELECT 'drop table film; --' AS harmless",
]


@pytest.mark.parametrize("sql", GOOD)
def test_reading_is_permitted(sql, corpus):
    run_sql(sql, corpus, TABLES)


BAD = [
    "DELETE FROM film",
    "UPDATE film SET title = 'x'",
    "INSERT INTO film VALUES (9, 'x', 1)",
    "DROP TABLE film",
    "CREATE TABLE x AS SELECT * FROM film",
    "SELECT 1; DROP TABLE film",
    "SELECT title FROM film; SELECT 1",
    "PRAGMA table_info(film)",
    "ATTACH DATABASE 'x.sqlite' AS x",
    "VACUUM INTO 'x.sqlite'",
    "EXPLAIN SELECT 1",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('x', 'y')",
    "SELECT randomblob(1000000000)",
    "SELECT sqlite_version()",
    "SELECT * FROM secret",
    "SELECT * FROM film WHERE title = (SELECT word FROM secret)",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM main.film",
    "SELECT * FROM pragma_table_info('film')",
    "SELECT * FROM json_each('[1]')",
    "WITH film AS (SELECT * FROM secret) SELECT * FROM film",
    "SELECT FROM WHERE",
    "",
    "no SQL at all",
]


@pytest.mark.parametrize("sql", BAD)
def test_anything_else_is_refused(sql, corpus):
    with pytest.raises(UnsafeSQL):
        run_sql(sql, corpus, TABLES)
    file = corpus.engine("cinema.film").path
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM film").fetchone() == (3,)
    connection.close()


@pytest.mark.parametrize(
    "sql",
    ["SELECT word FROM secret", "SELECT load_extension('x')", "SELECT sqlite_version()", "SELECT * FROM sqlite_master"],
)
def test_sqlite_itself_refuses_what_the_parser_might_miss(sql, corpus, monkeypatch):
    """The second line of defence holds without the first."""
    monkeypatch.setattr("tagframe.answer.guard.check_sql", lambda sql, tables: sql)
    with pytest.raises((UnsafeSQL, SQLFailed)):
        run_sql(sql, corpus, TABLES)


def test_the_connection_cannot_write(corpus, monkeypatch):
    monkeypatch.setattr("tagframe.answer.guard.check_sql", lambda sql, tables: sql)
    for sql in ("DELETE FROM film", "CREATE TABLE x (a)", "ATTACH DATABASE ':memory:' AS x", "PRAGMA query_only = OFF"):
        with pytest.raises((UnsafeSQL, SQLFailed)):
            run_sql(sql, corpus, TABLES)


def test_result_is_a_frame_with_unique_columns(corpus):
    frame = run_sql('SELECT f.id, o.id, o.id AS "id_2" FROM film f JOIN "order" o ON o.film_id = f.id', corpus, TABLES)
    assert list(frame.columns) == ["id", "id_2", "id_2_2"]
    assert frame.values.tolist() == [[1, 1, 1], [1, 2, 2], [2, 3, 3]]


def test_too_many_rows_are_refused_not_cut(corpus):
    with pytest.raises(SQLFailed, match="more than 2 rows"):
        run_sql("SELECT * FROM film", corpus, TABLES, SQLLimits(rows=2))
    assert len(run_sql("SELECT * FROM film", corpus, TABLES, SQLLimits(rows=3))) == 3


def test_a_long_query_is_stopped(corpus):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e15) SELECT count(*) FROM n"
    with pytest.raises(SQLFailed, match=r"stopped after 0\.2 seconds"):
        run_sql(endless, corpus, TABLES, SQLLimits(seconds=0.2))


def test_dry_run_finds_an_unknown_column(corpus):
    with pytest.raises(SQLFailed, match="no such column: titel"):
        dry_run("SELECT titel FROM film", corpus, TABLES)
    assert dry_run("SELECT title FROM film ; ", corpus, TABLES) == "SELECT title FROM film"


def test_unknown_table_suggests_the_nearest():
    with pytest.raises(UnsafeSQL, match="did you mean 'film'"):
        check_sql("SELECT * FROM films", TABLES)


def test_tables_of_frames_are_copied_to_memory():
    frames = {
        "cinema.film": pd.DataFrame({"id": [1, 2], "day": pd.to_datetime(["2026-01-02", None]), "tags": [["a"], None]}),
        "shop.film": pd.DataFrame({"id": [2], "price": [1.5]}),
    }
    corpus = tf.open_corpus(frames)
    tables = {"cinema.film": "cinema.film", "shop.film": "shop.film"}
    frame = run_sql(
        'SELECT a.id, a.day, b.price FROM "cinema.film" a LEFT JOIN "shop.film" b USING (id)', corpus, tables
    )
    assert frame["day"].iloc[0] == "2026-01-02T00:00:00"
    assert pd.isna(frame["day"].iloc[1])
    assert frame["price"].tolist()[1] == 1.5
