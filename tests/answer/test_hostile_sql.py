"""Statements that a hostile model might write: none passes its limits, reads what is hidden, writes, or fails raw.

Those that would run for hours are stopped after a fifth of a second; what they are stopped by (time, memory, the length
of a text) depends on the machine, and is not asserted. That they are stopped is.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import tagframe as tf
from tagframe.answer import SQLLimits
from tagframe.engines.base import Readable, UntrustedStatement
from tagframe.errors import SQLFailed, UnsafeSQL
from tests.answer.guarded import run_sql

pytestmark = pytest.mark.slow

TABLES = {"film": "cinema.film", "order": "cinema.order", "straße": "cinema.straße"}
LIMITS = SQLLimits(rows=100, seconds=0.2, memory=128)

SCRIPT = """
CREATE TABLE film (id INTEGER PRIMARY KEY, title TEXT, "year made" INTEGER);
INSERT INTO film VALUES (1, 'Low Tide', 1998), (2, 'Salt Road', 2015), (3, NULL, 2020);
CREATE TABLE "order" (id INTEGER PRIMARY KEY, film_id INTEGER, seats INTEGER);
INSERT INTO "order" VALUES (1, 1, 4), (2, 1, 2), (3, 2, 1);
CREATE TABLE straße (ort TEXT);
INSERT INTO straße VALUES ('Wien');
CREATE TABLE strasse (word TEXT);
INSERT INTO strasse VALUES ('xyzzy');
CREATE TABLE secret (word TEXT, film_id INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n LIMIT 7) INSERT INTO secret SELECT 'xyzzy', i FROM n;
CREATE VIEW peek AS SELECT word FROM secret;
CREATE INDEX by_word ON secret (word);
CREATE VIRTUAL TABLE words USING fts5(word);
INSERT INTO words VALUES ('xyzzy');
"""

LONG = "printf('%.*c', 4000000, 'a')"
MANY = ", ".join(f"film AS f{number}" for number in range(25))
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

WRITES = [
    "DELETE FROM film", "DELETE FROM film RETURNING *", "UPDATE film SET title = 'x'",
    "UPDATE OR IGNORE film SET title = 'x' RETURNING title", "INSERT INTO film VALUES (9, 'x', 1)",
    "INSERT INTO film SELECT * FROM film", "REPLACE INTO film VALUES (1, 'x', 1)",
    "WITH x AS (SELECT 1) DELETE FROM film", "WITH x AS (SELECT 1) INSERT INTO film SELECT 9, 'x', 1",
    "DROP TABLE film", "DROP VIEW peek", "ALTER TABLE film RENAME TO movie", "ALTER TABLE film ADD COLUMN x",
    "CREATE TABLE x AS SELECT * FROM film", "CREATE TEMP TABLE x AS SELECT * FROM film",
    "CREATE VIEW x AS SELECT * FROM film", "CREATE TRIGGER x AFTER INSERT ON film BEGIN DELETE FROM film; END",
    "CREATE INDEX x ON film (title)", "CREATE VIRTUAL TABLE x USING fts5(a)", "REINDEX", "ANALYZE", "VACUUM",
    "VACUUM INTO 'stolen.sqlite'", "ATTACH DATABASE 'stolen.sqlite' AS x", "ATTACH 'stolen.sqlite' AS source",
    "DETACH DATABASE source", "PRAGMA query_only = OFF", "PRAGMA writable_schema = ON", "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store_directory = '/tmp'", "PRAGMA table_info(secret)", "BEGIN", "COMMIT", "SAVEPOINT x", "ROLLBACK",
    "SELECT 1; DROP TABLE film", "SELECT title FROM film; SELECT word FROM secret", "EXPLAIN SELECT word FROM secret",
    "EXPLAIN QUERY PLAN SELECT 1", "SELECT load_extension('x')", "SELECT load_extension('x', 'y')",
    "SELECT writefile('stolen', 'x')", "SELECT fts3_tokenizer('simple')", "SELECT * FROM film INTO OUTFILE 'x'",
    "SELECT title INTO x FROM film", "SELECT * FROM film FOR UPDATE", "/* SELECT */ DROP TABLE film",
    "SELECT 1 --\n; DROP TABLE film",
]  # fmt: skip

HIDDEN = [
    "SELECT * FROM strasse", "SELECT * FROM STRASSE", "SELECT * FROM Strasse AS straße", "SELECT word FROM strasse",
    "SELECT ort FROM STRAßE UNION SELECT word FROM strasse", "SELECT word FROM secret", "SELECT count(*) FROM secret",
    "SELECT 1 FROM SeCrEt", "SELECT * FROM [secret]", "SELECT * FROM `secret`", 'SELECT * FROM "secret"',
    "SELECT * FROM 'secret'", "SELECT * FROM main.secret", "SELECT * FROM source.secret", "SELECT * FROM temp.film",
    "SELECT * FROM main.film", "SELECT * FROM peek", "SELECT count(*) FROM peek", "SELECT * FROM words",
    "SELECT * FROM words_content", "SELECT * FROM words('xyzzy')",
    "SELECT * FROM film WHERE title = (SELECT word FROM secret)", "SELECT (SELECT word FROM secret) FROM film",
    "SELECT * FROM film JOIN secret ON 1", "SELECT * FROM film, secret", "SELECT * FROM film NATURAL JOIN secret",
    "SELECT * FROM film LEFT JOIN secret USING (film_id)",
    "SELECT * FROM film WHERE EXISTS (SELECT 1 FROM secret WHERE word LIKE 'x%')",
    "SELECT * FROM film WHERE id IN (SELECT film_id FROM secret)", "SELECT * FROM film WHERE id IN secret",
    "SELECT title FROM film UNION SELECT word FROM secret", "SELECT title FROM film ORDER BY (SELECT word FROM secret)",
    "SELECT title FROM film LIMIT (SELECT count(*) FROM secret)",
    "WITH film AS (SELECT * FROM secret) SELECT * FROM film",
    "WITH secret AS (SELECT 1) SELECT * FROM (SELECT word FROM main.secret)",
    "WITH a AS (SELECT * FROM film), b AS (SELECT * FROM a, secret) SELECT * FROM b",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT film_id FROM secret, n LIMIT 9) SELECT * FROM n",
    "SELECT * FROM (VALUES (1)), secret", "SELECT max(word) OVER () FROM secret", "SELECT * FROM sqlite_master",
    "SELECT sql FROM sqlite_schema", "SELECT count(*) FROM sqlite_temp_master", "SELECT * FROM sqlite_sequence",
    "SELECT * FROM dbstat", "SELECT * FROM sqlite_dbpage", "SELECT * FROM pragma_table_info('secret')",
    "SELECT count(*) FROM pragma_table_list", "SELECT * FROM pragma_database_list", "SELECT * FROM json_each('[1]')",
    "SELECT * FROM json_tree('[1]')", "SELECT * FROM generate_series(1, 10)", "SELECT * FROM bytecode('SELECT 1')",
    "SELECT readfile('/etc/passwd')", "SELECT edit('x')", "SELECT sqlite_version(), sqlite_source_id()",
    "SELECT sqlite_compileoption_get(1)", "SELECT last_insert_rowid(), changes(), total_changes()",
    "SELECT randomblob(1000000000)", "SELECT zeroblob(1000000000)", "SELECT random()",
]  # fmt: skip

HUNGRY = [
    f"SELECT instr({LONG}, substr({LONG}, 1, 2000000) || 'b')",
    "SELECT printf('%0900000000d', id) || printf('%0900000000d', id) || hex(printf('%.*c', 6000000, 'a')) FROM film",
    f"SELECT DISTINCT {', '.join(f'f{number}.title' for number in range(25))} FROM {MANY}",
    f"SELECT count(*) FROM {MANY}", f"SELECT count(*) FROM (SELECT f1.id FROM {MANY} ORDER BY random)",
    f"SELECT f1.title, sum(f2.id) FROM {MANY} GROUP BY 1",
    f"SELECT sum(f1.id) OVER (ORDER BY f2.id, f3.id) FROM {MANY}", f"SELECT group_concat({LONG}) FROM {MANY}",
    f"SELECT json_group_array({LONG}) FROM {MANY}", f"SELECT {LONG} FROM {MANY}", f"SELECT * FROM {MANY}",
    f"SELECT trim({LONG}, printf('%.*c', 400000, 'b') || 'a')",
    f"SELECT length(replace({LONG}, 'a', printf('%.*c', 1000, 'b')))",
    f"SELECT sum({LONG} || f1.id LIKE '%a%a%a%a' || f2.title) FROM {MANY}",
    f"SELECT sum({LONG} || f1.id GLOB '*a*a*a*b' || f2.title) FROM {MANY}",
    f"SELECT {', '.join(f'max({LONG} || f1.id || {number})' for number in range(40))} FROM {MANY}",
    "WITH RECURSIVE s(x) AS (SELECT 'aaaaaaaaaa' UNION ALL SELECT x || x FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'aaaaaaaaaa' UNION SELECT x || x FROM s) SELECT count(*) FROM s",
    f"{COUNT} SELECT count(*) FROM n", f"{COUNT} SELECT i FROM n",
    f"{COUNT} SELECT DISTINCT i, printf('%.*c', 1000, 'a') FROM n", f"{COUNT} SELECT i FROM n ORDER BY -i",
    f"{COUNT} SELECT a.i FROM n AS a JOIN n AS b ON a.i = b.i + 1",
    "SELECT "
    + ", ".join(["title"] * 1999)
    + ", (WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT max(i) FROM n) FROM film",
    "WITH "
    + ", ".join(f"c{n} AS (SELECT * FROM {'film' if n == 0 else f'c{n - 1} a, c{n - 1} b'})" for n in range(9))
    + " SELECT count(*) FROM c8",
]  # fmt: skip

MALFORMED = [
    "", ";", "no SQL at all", "SELECT FROM WHERE", "SELECT 'a\x00b'", "SELECT '\ud800'", 'SELECT "',
    "SELECT 1 /* " + "/* " * 500, "SELECT " + "[" * 500, "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT " + "NOT " * 2000 + "1", "SELECT " + "+".join(["1"] * 3000), "SELECT " + "abs(" * 900 + "1" + ")" * 900,
    "SELECT * FROM " + "(SELECT * FROM " * 200 + "film" + ")" * 200,
    "SELECT " + ", ".join(["title"] * 2500) + " FROM film", " UNION ALL ".join(["SELECT 1"] * 400),
    "SELECT count(*) FROM film " + " ".join(f"JOIN film f{n} ON f{n}.id = film.id" for n in range(70)),
    "SELECT '" + "x" * 100_000 + "'", "SELECT :a, @b, $c", "SELECT titel FROM film",
    "SELECT title FROM film WHERE \"genre_cod\" = 'ROM'", "SELECT film.secret FROM film",
    "SELECT abs(-9223372036854775808)", "SELECT json_extract('{', '$.a')",
]  # fmt: skip

HOSTILE = [*WRITES, *HIDDEN, *HUNGRY, *MALFORMED]

REFUSED_OR_NULL = ["SELECT instr(printf('%.*c', 100000000, 'a'), printf('%.*c', 50000000, 'a') || 'b') AS n"]
"""A text that printf would make above the limit is an error to some versions of SQLite, and NULL to others."""


@pytest.fixture(scope="module")
def cinema(tmp_path_factory: pytest.TempPathFactory) -> tuple[tf.Corpus, Path]:
    path = tmp_path_factory.mktemp("cinema") / "cinema.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
    return tf.open_corpus(path), path


def test_there_are_enough_of_them():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 120


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: ascii(sql[:60]))
def test_a_hostile_statement_is_refused_by_name(cinema, sql):
    corpus, path = cinema
    before = path.read_bytes()
    with pytest.raises((UnsafeSQL, SQLFailed)):
        run_sql(sql, corpus, TABLES, LIMITS)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("sql", REFUSED_OR_NULL, ids=lambda sql: ascii(sql[:60]))
def test_a_text_above_its_limit_is_refused_or_null(cinema, sql):
    corpus, _ = cinema
    try:
        rows = run_sql(sql, corpus, TABLES, LIMITS)
    except SQLFailed:
        return
    assert rows["n"].isna().tolist() == [True]


@pytest.mark.parametrize("sql", [*WRITES, *HIDDEN], ids=lambda sql: ascii(sql[:60]))
def test_the_engine_holds_without_the_parser(cinema, sql):
    """The second line of defence: no statement gets through to what is hidden, whatever the first one thinks of it."""
    corpus, path = cinema
    before = path.read_bytes()
    tables = {
        name: Readable(corpus.source_table(id), tuple(one.name for one in corpus.profile(id).columns))
        for name, id in TABLES.items()
    }
    try:
        rows = corpus.engine("cinema.film").execute(UntrustedStatement(sql, tables, {}, LIMITS))
    except (UnsafeSQL, SQLFailed):
        rows = None
    assert rows is None or "xyzzy" not in repr(rows.to_dict())
    assert rows is None or not (rows == 7).any(axis=None), "the rows of secret were counted"
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_memory_holds(cinema):
    """The most that any process took, in a program of its own: with fewer megabytes the figure would be the program's,
    as its children are copies of it when they begin."""
    pytest.importorskip("resource")
    _, path = cinema
    program = """
import sys, resource, tagframe as tf
from tagframe.answer import SQLLimits
from tests.answer.guarded import run_sql
from tests.answer.test_hostile_sql import HUNGRY, REFUSED_OR_NULL, TABLES
corpus = tf.open_corpus(sys.argv[1])
for sql in [*HUNGRY, *REFUSED_OR_NULL]:
    try:
        run_sql(sql, corpus, TABLES, SQLLimits(rows=100, seconds=0.5, memory=256))
    except tf.errors.TagframeError:
        pass
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(peak // 2**20 if sys.platform == "darwin" else peak // 2**10)
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 0, done.stderr
    if sys.platform == "linux":
        assert int(done.stdout) <= 256
