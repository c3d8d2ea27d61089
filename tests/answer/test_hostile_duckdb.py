"""Statements that a hostile model might write for DuckDB, over a lake of Parquet and CSV files and over frames.

None passes its limits, reads what is hidden, writes, or fails raw. What stops those that would run for hours or take
gigabytes (time, memory, the size of a result) depends on the machine, and is not asserted. That they are stopped is.
``python -m tests.answer.test_hostile_duckdb`` measures what they take.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import SQLLimits
from tagframe.engines import worker_pool
from tagframe.engines.base import Readable, UntrustedStatement
from tagframe.errors import SQLFailed, TagframeError, UnsafeSQL
from tests.answer.guarded import run_sql

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

LIMITS = SQLLimits(rows=100, seconds=0.2, memory=128)
NAMES = ("films", "notes", "clicks")
SECRET = "zqs"

LONG = "lpad('a', 4000000, 'b')"
MANY = ", ".join(f"films AS f{number}" for number in range(25))
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

# {films}, {notes} and {other} are the paths of files: two that are tables, and one that is none of the statement's.
HIDDEN = [
    "SELECT secret FROM films", 'SELECT "secret" FROM films', "SELECT f.secret FROM films AS f",
    "SELECT films.secret FROM films", "SELECT SeCrEt FROM films", "SELECT max(secret) FROM films",
    "SELECT id FROM films WHERE secret LIKE 'z%'", "SELECT id FROM films ORDER BY secret",
    "SELECT count(secret) FROM films", "SELECT id FROM films GROUP BY id, secret",
    "SELECT * FROM films NATURAL JOIN (SELECT 1 AS secret)", "SELECT * FROM films JOIN notes USING (secret)",
    "SELECT * FROM films f JOIN notes n ON f.secret = n.secret", "SELECT COLUMNS('secret') FROM films",
    "SELECT * EXCLUDE (id) REPLACE (secret AS title) FROM films", "SELECT struct_extract(films, 'secret') FROM films",
    "SELECT (films).secret FROM films", "SELECT lag(secret) OVER () FROM films",
    "SELECT (SELECT secret FROM films LIMIT 1) AS x", "SELECT id FROM films QUALIFY secret > 'a'",
    "WITH x AS (SELECT secret FROM films) SELECT * FROM x", "SELECT x.secret FROM (SELECT * FROM films) AS x",
    "SELECT filename FROM films", "SELECT file_row_number, file_index FROM films", "SELECT rowid FROM films",
    "SELECT * FROM '{films}'", 'SELECT * FROM "{films}"', "SELECT secret FROM '{films}'", "FROM '{films}'",
    "TABLE '{films}'", "SELECT * FROM '{notes}'", "SELECT * FROM '{other}'", 'SELECT count(*) FROM "{other}"',
    "SELECT * FROM read_parquet('{films}')", "SELECT * FROM parquet_scan('{films}')",
    "SELECT * FROM read_csv('{notes}')", "SELECT * FROM read_csv_auto('{notes}')", "SELECT * FROM read_text('{notes}')",
    "SELECT * FROM read_blob('{notes}')", "SELECT * FROM read_json('{notes}')", "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM parquet_metadata('{films}')", "SELECT * FROM parquet_schema('{films}')",
    "SELECT * FROM parquet_kv_metadata('{films}')", "SELECT * FROM sniff_csv('{notes}')",
    "SELECT * FROM '{folder}/*.parquet'", "SELECT * FROM '{folder}/[f]ilms.parquet'", "SELECT * FROM 'file://{films}'",
    "SELECT * FROM '{folder}/./films.parquet'", "SELECT * FROM '{folder}/../{name}/films.parquet'",
    'SELECT * FROM "{films}" WHERE EXISTS (WITH "{films}" AS (SELECT 1) SELECT 1 FROM films)',
    'WITH "{films}" AS (SELECT * FROM "{films}") SELECT * FROM "{films}"',
    'WITH RECURSIVE "{films}" AS (SELECT * FROM "{films}") SELECT * FROM "{films}"',
    'WITH RECURSIVE "{films}" AS (SELECT * FROM "{films}" UNION ALL SELECT * FROM "{films}") SELECT * FROM "{films}"',
    'WITH a AS (SELECT * FROM "{films}"), "{films}" AS (SELECT 1) SELECT * FROM a',
    '(WITH "{films}" AS (SELECT \'a\' AS s) SELECT s FROM "{films}") UNION ALL SELECT secret FROM "{films}"',
    'SELECT (SELECT max(secret) FROM "{films}") FROM films ORDER BY (WITH "{films}" AS (SELECT 1) SELECT 1)',
    'SELECT * FROM films LIMIT (SELECT count(*) FROM "{films}" WHERE (WITH "{films}" AS (SELECT 1) SELECT true))',
    'SELECT * FROM (WITH "{films}" AS (SELECT 1) SELECT * FROM films) AS x, "{films}" AS y',
    'SELECT * FROM films AS "{films}", "{films}" AS z', 'SELECT "{films}".secret FROM films AS "{films}"',
    'SELECT * FROM films, LATERAL (SELECT * FROM "{films}" AS g WHERE g.id = films.id)',
    'WITH x AS MATERIALIZED (SELECT * FROM "{films}") SELECT 1 FROM x, (WITH "{films}" AS (SELECT 1) SELECT 1)',
    "SELECT sql FROM duckdb_views", "SELECT sql FROM duckdb_views()", "SELECT * FROM duckdb_columns",
    "SELECT sql FROM duckdb_views WHERE EXISTS (WITH duckdb_views AS (SELECT 1) SELECT 1 FROM films)",
    "SELECT * FROM duckdb_tables", "SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_databases",
    "SELECT * FROM duckdb_functions()", "SELECT * FROM duckdb_memory()", "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_logs", "SELECT * FROM information_schema.columns", "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class", "SELECT * FROM pg_class", "SELECT * FROM pg_views", "SELECT * FROM pg_tables",
    "SELECT * FROM sqlite_master", "SELECT * FROM sqlite_schema", "SELECT * FROM pragma_table_info('films')",
    "SELECT * FROM pragma_database_list", "SELECT * FROM memory.main.films", "SELECT * FROM main.films",
    "SELECT * FROM system.main.duckdb_views", "SELECT * FROM temp.films", "SHOW TABLES", "SHOW ALL TABLES",
    "DESCRIBE films", "SUMMARIZE films", "SELECT * FROM (DESCRIBE films)", "SELECT * FROM (SUMMARIZE films)",
    "SELECT * FROM (SHOW TABLES)", "EXPLAIN SELECT * FROM films", "EXPLAIN ANALYZE SELECT * FROM films",
    "SELECT * FROM query('SELECT secret FROM films')", "SELECT * FROM query_table('films')",
    "SELECT getenv('HOME')", "SELECT current_setting('allowed_paths')", "SELECT getvariable('x')",
    "SELECT current_query(), current_database(), version()", "SELECT nextval('s')", "SELECT txid_current()",
    "SELECT read_text('{notes}')", "SELECT json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT secret FROM films'))",
    "SELECT * FROM unnest([1, 2])", "SELECT * FROM range(10)", "SELECT * FROM generate_series(1, 9)",
    "SELECT * FROM repeat_row(1, num_rows = 9)", "SELECT * FROM arrow_scan(0, 0, 0)", "SELECT * FROM pandas_scan(0)",
    "SELECT * FROM glob('/etc/*')", "SELECT * FROM films, read_csv('{notes}')",
    "SELECT (SELECT content FROM read_text('{notes}')) FROM films", "SELECT * FROM query('SELECT 1')",
    "WITH x AS (SELECT * FROM read_text('{notes}')) SELECT * FROM x",
    "SELECT * FROM films UNION ALL SELECT * FROM other",
    "SELECT * FROM frame_of_the_caller", "SELECT * FROM python_map_function()", "SELECT * FROM which_secret('a', 'b')",
]  # fmt: skip

WRITES = [
    "DELETE FROM films", "UPDATE films SET title = 'x'", "INSERT INTO films VALUES (9)", "DROP VIEW films",
    "DROP TABLE films", "ALTER TABLE films ADD COLUMN x INT", "CREATE TABLE x AS SELECT * FROM films",
    "CREATE TEMP TABLE x AS SELECT * FROM films", "CREATE VIEW x AS SELECT * FROM films", "CREATE MACRO f(a) AS a",
    "CREATE SECRET s (TYPE S3)", "CREATE SEQUENCE s", "CREATE TYPE t AS ENUM ('a')", "COPY films TO '{out}'",
    "COPY (SELECT * FROM films) TO '{out}' (FORMAT parquet)", "COPY films TO '{films}' (USE_TMP_FILE false)",
    "COPY films FROM '{notes}'", "EXPORT DATABASE '{out}'",
    "IMPORT DATABASE '{out}'", "ATTACH '{out}' AS x", "DETACH memory", "USE memory", "INSTALL httpfs", "LOAD httpfs",
    "LOAD '{out}'", "SET memory_limit = '100GB'", "PRAGMA memory_limit = '100GB'",
    "SET enable_external_access = true", "RESET memory_limit",
    "PRAGMA enable_profiling", "PRAGMA database_list", "CALL pragma_version()", "CHECKPOINT", "VACUUM", "ANALYZE",
    "BEGIN", "COMMIT", "ROLLBACK", "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE p", "SET VARIABLE x = 1",
    "SELECT 1; DROP VIEW films", "SELECT title FROM films; SELECT secret FROM films", "FROM films; FROM films",
    "WITH x AS (DELETE FROM films RETURNING *) SELECT * FROM x", "WITH x AS (SELECT 1) INSERT INTO films SELECT 1",
    "MERGE INTO films USING notes ON true WHEN MATCHED THEN DELETE", "TRUNCATE films", "COMMENT ON VIEW films IS 'x'",
    "SELECT write_log('x')", "SELECT setseed(0.5)", "SELECT * FROM films INTO OUTFILE '{out}'",
    "PIVOT films ON year USING count(*)", "UNPIVOT films ON id, year", "/* SELECT */ DROP VIEW films",
    "SELECT 1 --\n; DROP VIEW films",
]  # fmt: skip

HUNGRY = [
    "SELECT levenshtein(lpad('a', 1000000, 'b'), lpad('c', 1000000, 'd'))",
    "SELECT max(levenshtein(lpad(title, 200000, 'b'), lpad(title, 200000, 'd') || i)) FROM films, clicks",
    "SELECT lpad(title, 100000000, 'b') FROM films, clicks",
    "SELECT max(length(lpad(who, 100000000, 'b'))) FROM clicks",
    "SELECT rpad(who, 2000000000, 'b') FROM clicks", "SELECT lpad('a', 2147483647, 'b') || lpad('a', 2147483647, 'b')",
    f"SELECT max(length({LONG} || who)) FROM clicks, films", f"SELECT {LONG} FROM {MANY}",
    "SELECT length(replace(lpad('a', 50000000, 'a'), 'a', 'bbbbbbbbbbbbbbb'))",
    "SELECT length(regexp_replace(lpad('a', 90000000, 'a'), 'a', 'bb', 'g'))",
    "SELECT len(regexp_extract_all(lpad('a', 100000000, 'a'), 'a'))",
    "SELECT regexp_extract_all(lpad('a', 20000000, 'a'), 'a')",
    "SELECT len(string_split(lpad('a', 50000000, 'a'), ''))",
    "SELECT string_split(lpad('a', 20000000, 'a,'), ',')",
    "SELECT regexp_split_to_array(lpad('a', 30000000, 'a '), ' ')",
    "SELECT max(length(reverse(lpad(who, 30000000, 'é')))) FROM clicks",
    "SELECT length(strip_accents(lpad('a', 90000000, 'é')))",
    "SELECT max(upper(lpad(who, 50000000, 'ß'))) FROM clicks",
    f"SELECT string_agg({LONG}) FROM clicks", f"SELECT list({LONG}) FROM clicks",
    f"SELECT array_agg({LONG}) FROM {MANY}",
    "SELECT string_agg(a.who || b.who) FROM clicks a, clicks b", "SELECT list(a.i) FROM clicks a, clicks b, clicks c",
    "SELECT format('{:>900000000}', who) FROM clicks", "SELECT printf('%900000000d', i) FROM clicks",
    "SELECT max(format('{:050000000d}', i)) FROM clicks",
    "SELECT count(DISTINCT a.who || b.who || c.who) FROM clicks a, clicks b, clicks c",
    "SELECT a.who, count(*) FROM clicks a, clicks b, clicks c GROUP BY a.who || b.who || c.who, a.who",
    f"SELECT count(*) FROM {MANY}, clicks AS c, clicks AS d, clicks AS e WHERE c.i + d.i + e.i < 0",
    f"SELECT DISTINCT {', '.join(f'f{number}.title' for number in range(25))} FROM {MANY}, clicks c, clicks d",
    "SELECT * FROM clicks a, clicks b, clicks c ORDER BY a.who || c.who || b.who DESC",
    "SELECT a.* FROM clicks a, clicks b, clicks c",
    "SELECT sum(a.i) OVER (ORDER BY b.i, c.i ROWS BETWEEN 1000 PRECEDING AND 1000 FOLLOWING) FROM clicks a, clicks b, "
    "clicks c",
    "SELECT median(b.i) OVER (ORDER BY a.i ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM clicks a, clicks b",
    "SELECT mode(a.who || b.who) FROM clicks a, clicks b, clicks c",
    "SELECT quantile_cont(a.i * b.i + c.i, 0.5) FROM clicks a, clicks b, clicks c",
    "WITH RECURSIVE s(x) AS (SELECT 'aaaaaaaaaa' UNION ALL SELECT x || x FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'aaaaaaaaaa' UNION SELECT x || x FROM s) SELECT count(*) FROM s",
    f"{COUNT} SELECT count(*) FROM n", f"{COUNT} SELECT i FROM n", f"{COUNT} SELECT i FROM n ORDER BY -i",
    f"{COUNT} SELECT DISTINCT i, lpad('a', 1000, 'b') FROM n", f"{COUNT} SELECT a.i FROM n a JOIN n b ON a.i = b.i + 1",
    "WITH RECURSIVE g(a, b) AS (SELECT 1, 1 UNION SELECT g.a + c.i, g.b + c.i FROM g, clicks c) SELECT count(*) FROM g",
    "WITH " + ", ".join(f"c{n} AS (SELECT a.i + b.i AS i FROM {'clicks' if n == 0 else f'c{n - 1}'} a, "
                        f"{'clicks' if n == 0 else f'c{n - 1}'} b)" for n in range(6))
    + " SELECT count(*), sum(i) FROM c5",
    "SELECT count(*) FROM films f WHERE (SELECT count(*) FROM clicks a, clicks b, clicks c WHERE a.i + b.i > f.id) > 0",
    "SELECT count(*) FROM clicks a JOIN clicks b ON a.who LIKE '%' || b.who || '%' JOIN clicks c ON a.i + b.i > c.i",
    "SELECT sum(len(list_value(a.who, b.who, c.who))) FROM clicks a, clicks b, clicks c",
    "SELECT struct_pack(a := list(a.i), b := list(a.who || b.who)) FROM clicks a, clicks b",
    "SELECT list(struct_pack(a := a.i, b := b.who)) FROM clicks a, clicks b",
    "SELECT max(json_extract(lpad('[', 40000000, '['), '$[0]')) FROM clicks",
    f"SELECT trim({LONG}, {LONG}) FROM clicks",
    f"SELECT sum(CASE WHEN {LONG} || who LIKE '%a%b%a%b%a' THEN 1 END) FROM clicks",
    f"SELECT count(*) FROM clicks WHERE regexp_matches({LONG} || who, '(a|b)*c(a|b)*d')",
    "SELECT a.i, grouping_id FROM (SELECT 1 AS grouping_id, " + ", ".join(f"i + {n} AS c{n}" for n in range(20))
    + " FROM clicks) x, clicks a GROUP BY CUBE (" + ", ".join(f"c{n}" for n in range(20)) + "), a.i, grouping_id",
    "SELECT count(*) FROM clicks " + " ".join(f"JOIN clicks c{n} ON c{n}.i % 7 = clicks.i % 7" for n in range(12)),
    f"SELECT {', '.join(f'max({LONG} || i || {number})' for number in range(40))} FROM clicks",
    "SELECT " + " || ".join(["lpad(who, 9000000, 'x')"] * 40) + " FROM clicks",
    "SELECT strftime(DATE '2020-01-01' + i::INTEGER, lpad('%', 30000000, '%Y%')) FROM clicks",
    "SELECT max(split_part(lpad('a', 80000000, 'a,'), ',', i)) FROM clicks",
    "SELECT len(list_aggregate(string_split(lpad('a', 30000000, 'a,'), ','), 'string_agg', lpad('x', 1000, 'x')))",
]  # fmt: skip

MALFORMED = [
    "", ";", "no SQL at all", "SELECT FROM WHERE", "SELECT 'a\x00b'", "SELECT '\ud800'", 'SELECT "', "SELECT $$a",
    "SELECT 1 /* " + "/* " * 500, "SELECT " + "[" * 500, "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT " + "NOT " * 2000 + "true", "SELECT " + "+".join(["1"] * 6000), "SELECT " + "abs(" * 900 + "1" + ")" * 900,
    "SELECT * FROM " + "(SELECT * FROM " * 200 + "films" + ")" * 200, " UNION ALL ".join(["SELECT 1"] * 3000),
    "SELECT " + "CASE WHEN true THEN " * 400 + "1" + " END" * 400, "SELECT '" + "x" * 100_000 + "'",
    "SELECT $1, $a, ?", "SELECT titel FROM films", "SELECT title FROM flims", "SELECT 1 + ", "SELECT e'\\x'",
    "SELECT (lpad('a', 30000000, 'x'))::INTEGER", "SELECT lpad('a', 30000000, 'x')::DATE FROM films",
    "SELECT abs((-9223372036854775808)::BIGINT)", "SELECT factorial(40)", "SELECT 1e999::INTEGER", "SELECT 'x'::films",
    "SELECT CAST('{' AS JSON) -> '$.a'", "SELECT json_extract('{', '$.a')", "SELECT (SELECT id FROM films)",
    "SELECT title + 1 FROM films", "SELECT * FROM films WHERE sum(id) > 1", "SELECT id FROM films GROUP BY year",
]  # fmt: skip

PLAIN = ["UNPIVOT films ON id, year"]
"""What DuckDB takes for a SELECT, and is none to the guard."""

HOSTILE = [*HIDDEN, *WRITES, *HUNGRY, *MALFORMED]


def tables() -> dict[str, pd.DataFrame]:
    """A few films and notes with a column to be hidden, and clicks to be multiplied."""
    secrets = [f"{SECRET}-{number}" for number in range(1, 6)]
    return {
        "films": pd.DataFrame({"id": range(1, 6), "title": list("abcde"), "year": 2020, "secret": secrets}),
        "notes": pd.DataFrame({"film": range(1, 6), "note": list("vwxyz"), "secret": secrets}),
        "clicks": pd.DataFrame({"i": range(1000), "who": [f"user {number}" for number in range(1000)]}),
    }


def lake(folder: Path) -> tf.Corpus:
    """Parquet, a CSV file and a folder of parts."""
    frames = tables()
    frames["films"].to_parquet(folder / "films.parquet")
    frames["films"].to_parquet(folder.parent / "other.parquet")
    frames["notes"].to_csv(folder / "notes.csv", index=False)
    (folder / "clicks").mkdir()
    for part in range(2):
        frames["clicks"].iloc[part * 500 :][:500].to_parquet(folder / "clicks" / f"part-{part}.parquet")
    return tf.open_corpus(folder, engine="duckdb")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[tf.Corpus, Path]:
    """A corpus with hidden columns, and the folder of its files."""
    folder = tmp_path_factory.mktemp("lake") / "cinema"
    folder.mkdir()
    return hide(lake(folder)), folder


def hide(corpus: tf.Corpus) -> tf.Corpus:
    return corpus.hide("films.secret", "notes.secret")


def filled(sql: str, folder: Path) -> str:
    """A statement with the paths of this folder."""
    paths = {"films": folder / "films.parquet", "notes": folder / "notes.csv", "folder": folder, "name": folder.name,
              "other": folder.parent / "other.parquet", "out": folder.parent / "out"}  # fmt: skip
    for name, path in paths.items():
        sql = sql.replace("{" + name + "}", str(path))
    return sql


def listing(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}


def shown(ran: object) -> str:
    """What a statement gave, or said."""
    return repr(ran.to_dict("list")) if isinstance(ran, pd.DataFrame) else str(ran)


def short(sql: str) -> str:
    return ascii(sql[:60])


def test_there_are_enough_of_them():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("sql", [*HIDDEN, *WRITES, *MALFORMED], ids=short)
def test_a_hostile_statement_is_refused_by_name(opened, sql):
    corpus, folder = opened
    before = listing(folder)
    frame_of_the_caller = pd.DataFrame({"x": [SECRET]})
    asked = filled(sql, folder)
    ids = {name: corpus.profile(name).id for name in NAMES}
    try:
        ran: object = run_sql(asked, corpus, ids, LIMITS)
    except (UnsafeSQL, SQLFailed) as error:
        ran = str(error).replace(asked[:200], "").replace(repr(asked[:200]), "")
    assert sql in MALFORMED or not isinstance(ran, pd.DataFrame)
    assert SECRET not in shown(ran)
    assert len(shown(ran)) < 110_000, "a cell or an error is of a bounded length"
    assert listing(folder) == before
    assert len(frame_of_the_caller) == 1


@pytest.mark.slow
@pytest.mark.parametrize("sql", [*HIDDEN, *WRITES], ids=short)
def test_the_engine_holds_without_the_guard(opened, sql):
    """The second line of defence: no statement gets to what is hidden, whatever the first one thinks of it."""
    corpus, folder = opened
    before = listing(folder)
    try:
        ran: object = execute(corpus, filled(sql, folder))
    except (UnsafeSQL, SQLFailed) as error:
        ran = str(error)
    assert sql in PLAIN or not isinstance(ran, pd.DataFrame)
    assert SECRET not in shown(ran)
    assert listing(folder) == before


def execute(corpus: tf.Corpus, sql: str, limits: SQLLimits = LIMITS) -> pd.DataFrame:
    """By the engine alone."""
    named = {}
    engine = corpus.engine(corpus.profile("films").id)
    for name in NAMES:
        profile = corpus.profile(name)
        every = (*(column.name for column in profile.columns), "secret")
        named[name] = Readable(corpus.source_table(profile.id), every)
    return engine.execute(UntrustedStatement(sql, named, {}, limits))


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["lake"], indirect=True)
@pytest.mark.parametrize("sql", HUNGRY, ids=short)
def test_what_never_ends_is_stopped(opened, sql):
    """Or fits into its limits after all, on a machine that is fast."""
    with suppress(UnsafeSQL, SQLFailed):
        assert len(execute(opened[0], sql)) <= LIMITS.rows


# --- what they take ---------------------------------------------------------------------------------------------------


class Peak:
    """The most memory that a worker of this process had, in MB, by the system's account of each."""

    def __init__(self) -> None:
        self.most = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ends.wait(0.002):
            for process in list(worker_pool._alive):
                self.most = max(self.most, peak_of(process.pid))

    def close(self) -> None:
        self._ends.set()
        self._thread.join()


def peak_of(process: int | str) -> int:
    """The most that a process had in memory at once, in MB."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


def main() -> None:
    """Run them all at 5 s and 512 MB, without the guard too where it refuses one, and print what they took."""
    limits = SQLLimits(seconds=5, memory=512)
    slowest: list[tuple[float, str]] = []
    largest: list[tuple[int, str]] = []
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "cinema"
        folder.mkdir()
        corpora = {"lake": lake(folder)}
        for kind, corpus in corpora.items():
            hide(corpus)
            ids = {name: corpus.profile(name).id for name in NAMES}
            execute(corpus, "SELECT 1 AS one FROM films", limits)
            for sql in HOSTILE:
                asked = filled(sql, folder)
                ran: object = None
                for guarded in (True, False):
                    if not guarded and not isinstance(ran, UnsafeSQL):
                        continue
                    peak, started = Peak(), time.perf_counter()
                    try:
                        ran = run_sql(asked, corpus, ids, limits) if guarded else execute(corpus, asked, limits)
                    except TagframeError as error:
                        ran = error
                    except BaseException as error:
                        failures.append(f"{kind} {type(error).__name__} {sql[:90]!r}")
                    seconds = time.perf_counter() - started
                    peak.close()
                    slowest.append((seconds, f"{kind} {sql[:90]!r}"))
                    largest.append((peak.most, f"{kind} {sql[:90]!r}"))
                    if SECRET in shown(ran).replace(asked[:200], ""):
                        failures.append(f"{kind} leak {sql[:90]!r}")
    print(f"{len(HOSTILE)} statements, {len(slowest)} runs; seconds over 6: {sum(s > 6 for s, _ in slowest)}; "
          f"MB over 640 in the worker: {sum(m > 640 for m, _ in largest)}; client: {peak_of('self')} MB")  # fmt: skip
    for seconds, what in sorted(slowest)[-5:]:
        print(f"{seconds:.2f} s {what}")
    for megabytes, what in sorted(largest)[-5:]:
        print(f"{megabytes} MB {what}")
    print("failures:", *failures or ["none"], sep="\n")


if __name__ == "__main__" and os.path.exists("/proc") and sys.platform == "linux":
    main()
