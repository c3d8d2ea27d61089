from __future__ import annotations

import sqlite3

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import SQLLimits
from tagframe.answer.guard import check_sql
from tagframe.engines.duckdb.statement import DUCKDB
from tagframe.engines.postgres import POSTGRES
from tagframe.engines.sqlite.statement import SQLITE
from tagframe.errors import SourceNotFound, SQLFailed, UnsafeSQL
from tests.answer.guarded import dry_run, run_sql

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
    "SELECT json_extract('{\"a\": [1]}', '$.a[0]'), '{\"a\": 2}' ->> '$.a', '{\"a\": 2}' -> 'a', json_array(1, 2)",
    "SELECT CURRENT_DATE, CURRENT_TIMESTAMP, date('now')",
    'SELECT [title], `title`, "title", \'title\' FROM [film] AS "f"',
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


NO_NAMES_THERE = {
    "SELECT * FROM x WHERE EXISTS (WITH x AS (SELECT 1) SELECT 1 FROM film)": "sqlite postgres duckdb",
    "SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) AS q, x": "sqlite postgres duckdb",
    "(WITH x AS (SELECT 1) SELECT * FROM x) UNION SELECT * FROM x": "sqlite postgres duckdb",
    "SELECT 1 FROM film UNION SELECT * FROM x INTERSECT (WITH x AS (SELECT 1) SELECT * FROM x)": "postgres duckdb",
    "WITH a AS (WITH x AS (SELECT 1) SELECT 1) SELECT * FROM x": "sqlite postgres duckdb",
    "WITH a AS (WITH x AS (SELECT 1) SELECT 1), b AS (SELECT * FROM x) SELECT * FROM b": "sqlite postgres duckdb",
    "SELECT (SELECT 1 FROM x) FROM film ORDER BY (WITH x AS (SELECT 1) SELECT 1 FROM x)": "sqlite postgres duckdb",
    "SELECT * FROM film JOIN x ON (WITH x AS (SELECT 1) SELECT 1 FROM x) = 1": "sqlite postgres duckdb",
    "WITH x AS (SELECT * FROM x) SELECT * FROM x": "postgres duckdb",
    "WITH a AS (SELECT * FROM x), x AS (SELECT 1) SELECT * FROM a": "postgres duckdb",
    "WITH RECURSIVE x AS (SELECT * FROM x) SELECT 1": "duckdb",
    "WITH RECURSIVE a AS (SELECT * FROM x), x AS (SELECT 1) SELECT * FROM a": "duckdb",
}
"""By statement: the dialects in which an entry of its WITH does not count where its name stands."""
NAMES_THERE = [
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "WITH x AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y UNION SELECT * FROM x ORDER BY (SELECT 1 FROM y)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
    "WITH x AS (SELECT 1) SELECT * FROM film WHERE id IN (WITH y AS (SELECT * FROM x) SELECT * FROM y, x)",
    "WITH film AS (SELECT id FROM film) SELECT * FROM film",
    "WITH x AS (SELECT 1) SELECT * FROM (SELECT * FROM (SELECT * FROM x) AS a) AS b JOIN (x JOIN film ON true) ON true",
    "WITH x AS (SELECT 1) (SELECT * FROM x) UNION (SELECT * FROM x)",
]
DIALECTS = {dialect.name: dialect for dialect in (SQLITE, POSTGRES, DUCKDB)}


@pytest.mark.parametrize(
    ("name", "sql"), [(name, sql) for sql, names in NO_NAMES_THERE.items() for name in names.split()]
)
def test_an_entry_of_a_with_counts_only_where_the_engine_sees_it(name, sql):
    with pytest.raises(UnsafeSQL, match="no table 'x'"):
        check_sql(sql, ["film"], DIALECTS[name])


@pytest.mark.parametrize("sql", NAMES_THERE)
@pytest.mark.parametrize("name", DIALECTS)
def test_an_entry_of_a_with_counts_where_the_engine_sees_it(name, sql):
    assert check_sql(sql, ["film"], DIALECTS[name]) == sql


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM generate_series(1, 9)", "a table-valued function may not run"),
        ("SELECT * FROM film, read_text('/etc/passwd') AS t", "read_text"),
        ("SELECT id FROM film FOR UPDATE", "LOCK may not stand"),
        ("SELECT * FROM film PIVOT (count(id) FOR year IN (1999))", "PIVOT may not stand"),
    ],
)
def test_the_parser_refuses_by_itself_what_some_engines_would_run(name, sql, message):
    with pytest.raises(UnsafeSQL, match=message):
        check_sql(sql, ["film"], DIALECTS[name])


def test_result_is_a_frame_with_unique_columns(corpus):
    frame = run_sql('SELECT f.id, o.id, o.id AS "id_2" FROM film f JOIN "order" o ON o.film_id = f.id', corpus, TABLES)
    assert list(frame.columns) == ["id", "id_2", "id_2_2"]
    assert frame.values.tolist() == [[1, 1, 1], [1, 2, 2], [2, 3, 3]]


def test_too_many_rows_are_refused_not_cut(corpus):
    with pytest.raises(SQLFailed, match="more than 2 rows"):
        run_sql("SELECT * FROM film", corpus, TABLES, SQLLimits(rows=2))
    assert len(run_sql("SELECT * FROM film", corpus, TABLES, SQLLimits(rows=3))) == 3


def test_all_columns_are_named_where_one_is_not_there():
    """Also those that the statement does not name, and that are not copied for it."""
    films = tf.open_corpus({"bank.film": pd.DataFrame({"title": ["Low Tide"], "made": [1999]})})
    for call in (run_sql, dry_run):
        with pytest.raises(SQLFailed, match=r"no such column: seats in \{'made', 'title'\}"):
            call("SELECT title, seats FROM film", films, {"film": "bank.film"})


def test_a_quoted_name_is_never_a_text(corpus):
    """SQLite would compare the text "titel" with the word, and find nothing."""
    for sql in ("SELECT id FROM film WHERE \"titel\" = 'Low Tide'", 'SELECT id FROM film WHERE title = "Low Tide"'):
        with pytest.raises(SQLFailed, match=r"no such column: (titel|Low Tide) \(text stands in single quotes\) in"):
            run_sql(sql, corpus, TABLES)
        with pytest.raises(SQLFailed, match="no such column"):
            dry_run(sql, corpus, TABLES)
    with pytest.raises(SQLFailed, match="did you mean 'year made'"):
        run_sql('SELECT "yearmade" FROM film', corpus, TABLES)
    frame = run_sql("""SELECT "year made" AS "the ""year", '"title"' AS t, count("id") FROM film""", corpus, TABLES)
    assert list(frame.columns) == ['the "year', "t", 'count("id")']
    assert frame["t"].tolist() == ['"title"']


def test_names_are_compared_as_sqlite_compares_them(tmp_path):
    with sqlite3.connect(tmp_path / "map.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE straße (ort TEXT); CREATE TABLE strasse (word TEXT); INSERT INTO strasse VALUES ('xyzzy');"
        )
    connection.close()
    corpus = tf.open_corpus(tmp_path / "map.sqlite")
    with pytest.raises(UnsafeSQL, match="no table 'strasse'"):
        run_sql("SELECT * FROM strasse", corpus, {"straße": "map.straße"})
    assert len(run_sql("SELECT * FROM STRAße", corpus, {"straße": "map.straße"})) == 0


def test_a_database_in_wal_mode_gets_no_company(corpus):
    path = corpus.engine("cinema.film").path
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    connection.close()
    before = sorted(file.name for file in path.parent.iterdir())
    assert len(run_sql("SELECT * FROM film", corpus, TABLES)) == 3
    assert sorted(file.name for file in path.parent.iterdir()) == before == [path.name]


def test_one_statement_over_several_engines(tmp_path, corpus):
    (tmp_path / "sale.csv").write_text("film_id,price\n1,2.5\n2,\n")
    both = corpus.union(tf.open_corpus(tmp_path / "sale.csv")).union(
        tf.open_corpus({"desk.film": pd.DataFrame({"id": [1], "note": ["n"]})})
    )
    sale = next(id for id in both.ids if id.endswith(".sale"))
    frame = run_sql(
        'SELECT a.title, b.price, c.note FROM "cinema.film" a JOIN sale b ON a.id = b.film_id '
        'LEFT JOIN "desk.film" c ON c.id = a.id ORDER BY a.id',
        both,
        {"cinema.film": "cinema.film", "sale": sale, "desk.film": "desk.film"},
    )
    assert frame.astype(object).where(frame.notna(), None).values.tolist() == [
        ["Low Tide", 2.5, "n"],
        ["Salt Road", None, None],
    ]


def test_only_tables_that_are_named_are_copied(corpus, monkeypatch):
    both = corpus.union(tf.open_corpus({"desk.note": pd.DataFrame({"id": [1]}), "desk.big": pd.DataFrame({"id": [1]})}))
    tables = {**TABLES, "note": "desk.note", "big": "desk.big"}
    read, rows_of = [], tf.Corpus.read
    monkeypatch.setattr(tf.Corpus, "read", lambda *args, **limit: (read.append(args[1]), rows_of(*args, **limit))[1])
    assert len(run_sql("SELECT * FROM film WHERE id IN note", both, tables)) == 1
    assert len(run_sql("SELECT * FROM [NOTE]", both, tables)) == 1
    assert len(run_sql("SELECT 'plain'", both, tables)) == 1
    assert read == ["desk.note", "desk.note"]


def test_integers_beside_nulls_stay_integers(corpus):
    frame = run_sql("SELECT 9007199254740993 AS big UNION ALL SELECT NULL", corpus, TABLES)
    assert frame["big"].dtype == "Int64"
    assert frame["big"].iloc[0] == 2**53 + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frames", "says"),
    [
        ({"t": pd.DataFrame({"a": [1], "A": [2]})}, "the columns of t 'a' and 'A' have the same name in SQL"),
        (
            {"t": pd.DataFrame({"a": [1]}), "T": pd.DataFrame({"a": [1]})},
            "the tables 't' and 'T' have the same name in SQL",
        ),
        ({"t": pd.DataFrame({"a": pd.Series([2**63], dtype="uint64")})}, "an integer beyond 64 bits, signed"),
        ({"t": pd.DataFrame({"a": pd.Series([2**70], dtype=object)})}, "column 'a' holds an integer beyond 64 bits"),
        ({"t": pd.DataFrame({f"c{position}": [1] for position in range(2_100)})}, "too many columns"),
    ],
)
def test_what_sqlite_cannot_hold_is_named(frames, says):
    with pytest.raises(SQLFailed, match=says):
        run_sql("SELECT * FROM t", tf.open_corpus(frames), {name: f"frames.{name}" for name in frames})


def test_cells_of_any_kind_are_copied():
    cells = pd.DataFrame({
        "mixed": [1, "b", 2.5, b"c"],
        "both": pd.Series([1, 2.5, None, 3], dtype=object),
        "flag": [True, False, None, True],
        "bytes": [b"\x00", None, b"", b"x"],
        "kind": pd.Categorical(["x", "y", "x", None]),
        "lone": pd.Series(["\ud800", "é", "", None], dtype=object),
        "gone": [None] * 4,
    })  # fmt: skip
    frame = run_sql("SELECT * FROM t", tf.open_corpus({"t": cells}), {"t": "frames.t"})
    assert frame["mixed"].tolist() == ["1", "b", "2.5", "c"]
    assert frame["both"].tolist()[:2] == [1.0, 2.5]
    assert frame["flag"].tolist()[:2] == [1, 0]
    assert frame["bytes"].tolist() == [b"\x00", None, b"", b"x"]
    assert frame["kind"].tolist()[:3] == ["x", "y", "x"]
    assert frame["lone"].tolist()[:3] == ["?", "é", ""]
    assert frame["gone"].isna().all()


def test_a_file_that_is_gone_is_named(corpus):
    corpus.engine("cinema.film").path.unlink()
    with pytest.raises(SourceNotFound, match=r"rows of cinema\.film cannot be read: there is no file .*cinema\.sqlite"):
        run_sql("SELECT 1", corpus, TABLES)


@pytest.mark.slow
def test_columns_of_one_name_by_the_thousand(corpus):
    frame = run_sql(f"SELECT {', '.join(['id'] * 1_999)} FROM film", corpus, TABLES)
    assert list(frame.columns[:3]) == ["id", "id_2", "id_3"]
    assert frame.columns[-1] == "id_1999"


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
    assert frame["day"].iloc[0] == "2026-01-02"
    assert pd.isna(frame["day"].iloc[1])
    assert frame["price"].tolist()[1] == 1.5


def test_a_table_is_named_without_its_schema():
    with pytest.raises(UnsafeSQL, match="without a schema"):
        check_sql("SELECT * FROM main.film", TABLES)
