"""Statements that a hostile model might write, over PostgreSQL: nothing is read, written, waited for or left running.

The user who connects is a superuser, so that nothing but what tagframe and the transaction hold to stands in the way.
"""

from __future__ import annotations

import _thread
import asyncio
import datetime as dt
import pickle
import signal
import threading
import time
from decimal import Decimal
from itertools import product

import pandas as pd
import psycopg
import pyarrow as pa
import pytest

import tagframe as tf
from tagframe import results
from tagframe.answer import SQLLimits, exec_sql
from tagframe.answer.synthesis import Synthesizer
from tagframe.engines.base import Readable, UntrustedStatement
from tagframe.errors import ConnectionRefusedByServer, SQLFailed, UnsafeSQL
from tests.answer.guarded import dry_run, run_sql

pytestmark = pytest.mark.slow

TABLES = {"film": "public.film", "Order": "public.Order", "ticket": "sales.ticket"}
LIMITS = SQLLimits(rows=100, seconds=0.3, memory=64)
PATIENT = SQLLimits(rows=100, seconds=60, memory=64)
"""For what is to be answered, however slow the machine."""

SCRIPT = """
CREATE SCHEMA sales;
CREATE TABLE film (id int PRIMARY KEY, title text, made date, price numeric(10, 2), hidden_note text DEFAULT 'xyzzy',
    plot text);
INSERT INTO film VALUES (1, 'Low Tide', '1998-05-01', 9.50), (2, 'Salt Road', '2015-01-02', 12), (3, NULL, NULL, NULL);
CREATE TABLE "Order" (id int PRIMARY KEY, film_id int, seats int);
INSERT INTO "Order" VALUES (1, 1, 4), (2, 1, 2), (3, 2, 1);
CREATE TABLE sales.ticket (id int PRIMARY KEY, film_id int, paid boolean);
INSERT INTO sales.ticket SELECT g, 1 + g % 2, g % 3 = 0 FROM generate_series(1, 40) g;
CREATE TABLE secret (word text, film_id int);
INSERT INTO secret SELECT 'xyzzy', g FROM generate_series(1, 7) g;
CREATE VIEW peek AS SELECT word FROM secret;
CREATE SEQUENCE counter;
CREATE FUNCTION evil() RETURNS text LANGUAGE sql AS 'SELECT word FROM secret LIMIT 1';
CREATE FUNCTION lower(int) RETURNS text LANGUAGE sql AS 'SELECT word FROM public.secret LIMIT 1';
"""

WRITES = [
    "DELETE FROM film", "DELETE FROM film RETURNING *", "UPDATE film SET title = 'x' RETURNING title",
    "INSERT INTO film VALUES (9, 'x')", "TRUNCATE film",
    "MERGE INTO film USING film AS f ON f.id = film.id WHEN MATCHED THEN DELETE",
    "WITH x AS (DELETE FROM film RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM public.film RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO public.film VALUES (9) RETURNING id) SELECT * FROM x",
    "WITH x AS (UPDATE public.film SET title = 'x' RETURNING id) SELECT count(*) FROM x",
    "SELECT * FROM (DELETE FROM film RETURNING *) AS x", "DROP TABLE film", "ALTER TABLE film ADD COLUMN x int",
    "CREATE TABLE x AS SELECT * FROM film", "CREATE TEMP TABLE x AS SELECT * FROM film", "SELECT * INTO x FROM film",
    "SELECT * INTO TEMP x FROM film", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION dblink", "GRANT ALL ON film TO PUBLIC", "VACUUM film", "ANALYZE film", "REINDEX TABLE film",
    "LOCK TABLE film", "COMMENT ON TABLE film IS 'x'", "COPY film TO '/tmp/stolen'",
    "COPY film TO PROGRAM 'cat > /tmp/stolen'", "COPY film FROM '/etc/passwd'", "COPY (SELECT 1) TO STDOUT",
    "DO $$ BEGIN DELETE FROM film; END $$", "DO LANGUAGE plpgsql 'BEGIN DELETE FROM film; END'", "CALL x()",
    "EXECUTE x", "PREPARE x AS DELETE FROM film", "LISTEN x", "NOTIFY x", "SET default_transaction_read_only = off",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "SET TRANSACTION READ WRITE", "RESET ALL", "SHOW ALL",
    "SHOW data_directory", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT x", "DISCARD ALL", "CHECKPOINT", "LOAD 'x'",
    "SELECT 1; DROP TABLE film", "SELECT 1; COMMIT; DROP TABLE film",
    "SELECT 1) AS s; COMMIT; DELETE FROM public.film; SELECT * FROM (SELECT 1",
    "SELECT 1) AS s LIMIT 1; DELETE FROM public.film --", "EXPLAIN ANALYZE DELETE FROM film",
    "SELECT * FROM film FOR UPDATE", "SELECT * FROM film FOR SHARE", "SELECT nextval('counter')",
    "SELECT setval('public.counter', 9)", "SELECT lo_import('/etc/passwd')", "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')", "SELECT lo_export(1, '/tmp/stolen')", "SELECT pg_advisory_lock(1)",
    "SELECT pg_notify('x', 'y')", "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "SELECT set_config('default_transaction_read_only', 'off', false)",
    "SELECT set_config('transaction_read_only', 'off', true)",
    "SELECT \"set_config\"('transaction_read_only', 'off', true)",
    "SELECT pg_catalog.set_config('search_path', 'public', false)", "SELECT pg_terminate_backend(1)",
    "SELECT pg_cancel_backend(1)", "SELECT pg_reload_conf()", "SELECT pg_switch_wal()",
]  # fmt: skip

READS = [
    "SELECT word FROM secret", "SELECT count(*) FROM secret", "SELECT word FROM public.secret", "SELECT * FROM SECRET",
    'SELECT * FROM "secret"', "SELECT * FROM peek", "SELECT hidden_note FROM film",
    "SELECT film.hidden_note FROM public.film", "SELECT (SELECT word FROM secret LIMIT 1)",
    "SELECT * FROM film WHERE title = (SELECT word FROM public.secret LIMIT 1)",
    "SELECT title FROM film UNION SELECT word FROM public.secret", "SELECT * FROM film, public.secret",
    "SELECT * FROM film JOIN public.secret ON true", "WITH film AS (SELECT * FROM public.secret) SELECT * FROM film",
    "WITH secret AS (SELECT 1) SELECT * FROM public.secret",
    "SELECT * FROM public.secret WHERE EXISTS (WITH secret AS (SELECT 1) SELECT 1)", "TABLE secret",
    "TABLE public.secret", "SELECT * FROM (TABLE public.secret) AS x", "SELECT (TABLE public.peek LIMIT 1)",
    "SELECT title FROM film WHERE EXISTS (TABLE public.secret)", "SELECT * FROM ONLY public.secret",
    "SELECT * FROM pg_authid", "SELECT rolpassword FROM pg_authid WHERE EXISTS (WITH pg_authid AS (SELECT 1) SELECT 1)",
    "SELECT rolpassword FROM pg_catalog.pg_authid", "SELECT * FROM pg_shadow", "SELECT * FROM pg_class",
    "SELECT * FROM PG_CLASS", 'SELECT * FROM "pg_class"', "SELECT * FROM pg_stat_activity", "SELECT * FROM pg_stats",
    "SELECT * FROM pg_settings", "SELECT * FROM pg_largeobject", "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_toast.pg_toast_1", "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_catalog.pg_read_file('/etc/passwd')", "SELECT \"pg_read_file\"('/etc/passwd')",
    "SELECT pg_catalog . pg_read_file ( '/etc/passwd' )", "SELECT pg_read_binary_file('/etc/passwd')",
    "SELECT * FROM pg_read_file('/etc/passwd')", "SELECT * FROM pg_ls_dir('/')", "SELECT pg_stat_file('/etc/passwd')",
    "SELECT pg_current_logfile()", "SELECT current_setting('data_directory')", "SELECT version()",
    "SELECT current_user", "SELECT session_user, user, current_database()", "SELECT inet_server_addr()",
    "SELECT evil()", "SELECT public.evil()", 'SELECT "public"."evil"()', "SELECT * FROM evil()",
    "SELECT public.lower(1)", "SELECT film.evil FROM film", "SELECT lo_get(1)",
    "SELECT dblink('dbname=postgres', 'SELECT 1')",
    "SELECT * FROM dblink('dbname=postgres', 'SELECT word FROM secret') AS t(w text)",
    "SELECT query_to_xml('SELECT word FROM public.secret', true, true, '')",
    "SELECT table_to_xml('public.secret', true, true, '')", "SELECT database_to_xml(true, true, '')",
    "SELECT * FROM ts_stat('SELECT word::tsvector FROM public.secret')", "SELECT xpath('/x', '<x/>')",
    "SELECT xmlelement(name x, 1)", "SELECT 'public.secret'::regclass", "SELECT regclass 'public.secret'",
    "SELECT CAST('public.secret' AS regclass)::oid", "SELECT to_regclass('public.secret')",
    "SELECT pg_get_viewdef('public.peek')", "SELECT has_table_privilege('secret', 'SELECT')",
    "SELECT pg_size_pretty(pg_total_relation_size('public.secret'))", "SELECT obj_description(1)",
    "SELECT row_to_json(s) FROM public.secret AS s", "SELECT * FROM generate_series(1, 1000000000)", "SELECT random()",
    "SELECT gen_random_uuid()", "SELECT 1 OPERATOR(pg_catalog.+) 1", "SELECT 1 /* */ FROM /* */ public.secret",
    "SELECT E'\\'' , word FROM public.secret --'", "SELECT '\\' , word FROM public.secret --'",
    "SELECT $$x$$, word FROM public.secret",
    "SELECT $x$ ' $x$ || (SELECT word FROM public.secret LIMIT 1) || $x$ ' $x$", "SELECT U&'\\0027'",
    'SELECT * FROM U&"s\\0065cret"', 'SELECT * FROM U&"\\0070g_authid"', "SELECT B'1', X'FF'",
    "SELECT N'x' FROM public.secret", "SELECT $1", "SELECT :a, @b, %s, ?",
]  # fmt: skip

_NUMBERS_OF = ("regrole", "regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regoper", "regoperator",
               "regconfig", "regdictionary", "regcollation", "oid", "oidvector", "xid", "tid", "aclitem", "pg_lsn",
               "refcursor", "xml", "txid_snapshot", "pg_node_tree", "gtsvector", "int2vector", "cstring")  # fmt: skip
TYPES = [
    *(f'SELECT id::int8::"{name}" FROM film' for name in _NUMBERS_OF),
    *(f"SELECT CAST(id AS {name}) FROM film" for name in _NUMBERS_OF[:12]),
    *(f"SELECT \"{name}\" '10'" for name in ("regrole", "regclass", "oid", "regtype")),
    'SELECT "regrole"(id) FROM film', "SELECT id::text::\"regclass\" FROM film", "SELECT id::\"RegRole\" FROM film",
    "SELECT (id::\"regrole\")::text FROM film", "SELECT ARRAY[id]::\"regrole\"[] FROM film",
    "SELECT '{10}'::\"regrole\"[]", "SELECT ('{10}'::_regrole)", "SELECT CAST(ARRAY[10] AS \"_regrole\")",
    "SELECT id :: /* */ \"regrole\" FROM film", "SELECT film::\"film\" FROM film", "SELECT NULL::secret",
    "SELECT (NULL::\"secret\").*", "SELECT CAST(NULL AS public.secret)", "SELECT 'x'::public.mood",
    "SELECT pg_catalog.regrole '10'", "SELECT U&\"regrole\" '10'",
    "SELECT x FROM unnest('{10,20}'::\"oidvector\"::int[]) AS x", "SELECT interval '1 day'::\"regtype\"",
]  # fmt: skip

_OUTSIDE = ["secret", "peek", "pg_class", "pg_authid", "information_schema.tables", "public.secret"]
SCOPES = [
    *(
        text.format(name)
        for name, text in product(
            _OUTSIDE,
            (
                "SELECT * FROM {0} WHERE EXISTS (WITH secret AS (SELECT 1) SELECT 1 FROM film)",
                "SELECT * FROM (WITH secret AS (SELECT 1 AS a), peek AS (SELECT 1) SELECT * FROM secret) AS q, {0}",
                "(WITH secret AS (SELECT 1 AS a), peek AS (SELECT 2) SELECT a FROM secret) UNION SELECT 1 FROM {0}",
                "WITH a AS (WITH secret AS (SELECT 1), peek AS (SELECT 1) SELECT 1) SELECT * FROM {0}",
                "SELECT (SELECT count(*) FROM {0}) FROM film ORDER BY (WITH secret AS (SELECT 1 AS a) SELECT a FROM "
                "secret)",
            ),
        )
    ),
    "SELECT film.hidden_note FROM ticket AS film", "SELECT (film).hidden_note FROM film",
    "SELECT to_json(film) -> 'hidden_note' ->> 0, hidden_note FROM film",
    "SELECT f.hidden_note FROM (SELECT * FROM film) AS f",
    "SELECT f.* FROM film AS f JOIN film AS g USING (hidden_note)",
    "WITH film AS (SELECT hidden_note FROM film) SELECT * FROM film",
    "SELECT * FROM film AS f(a, b, c, d, e, hidden_note)", "SELECT max(film.hidden_note) OVER () FROM film",
    "SELECT 1 FROM film WHERE hidden_note LIKE 'x%'", "SELECT 1 FROM film ORDER BY hidden_note",
    "SELECT count(*) FROM film GROUP BY hidden_note", "SELECT xmin, ctid, tableoid FROM film",
    "SELECT tableoid::\"regclass\" FROM film", "SELECT current_setting('is_superuser')",
    "SELECT string_agg(title, '') FILTER (WHERE set_config('role', 'postgres', true) = '0') FROM film",
    "SELECT set_config('role', 'postgres', true)", "SET ROLE postgres", "RESET ROLE",
    "SET SESSION AUTHORIZATION DEFAULT",
]  # fmt: skip

WITHOUT_BOUND = [
    "SELECT repeat('x', 1000000000)", "SELECT length(repeat('x', 1073741823))",
    "SELECT repeat(title, id * 100000000) FROM film", "SELECT \"repeat\"('x', 1000000000)",
    "SELECT Repeat ( 'x' , 1000000000 )", "SELECT repeat('x', (SELECT 1000000000))", "SELECT repeat('x', '1000000000')",
    "SELECT repeat('x', 1e9::int)", "SELECT repeat('x', +1000000000)", "SELECT repeat('x', -1)",
    "SELECT repeat('x', n) FROM (VALUES (1000000000)) AS t(n)", "SELECT lpad('x', length(title)) FROM film",
    "SELECT 1 FROM film WHERE repeat('x', 1000000000) = title", "SELECT 1 FROM film ORDER BY repeat(title, 50000000)",
    "SELECT length(lpad('x', 900000000, 'ab'))", "SELECT length(rpad(title, 1000000000 - id)) FROM film",
    "WITH a AS (SELECT repeat('x', 1000000000) AS x) SELECT length(x) FROM a", "VALUES (repeat('x', 1000000000))",
    "SELECT (SELECT repeat('x', 1000000000)) FROM film", "SELECT format('%1000000000s', 'x')",
    "SELECT format('%*s', 1000000000, 'x')", "SELECT format('%1$*2$s', 'x', 1000000000)",
    "SELECT format('%-900000000s|%900000000s', 'x', 'y')", "SELECT format(f, 'x') FROM (VALUES ('%1000000s')) AS t(f)",
    "SELECT to_char(1, repeat('9', 1000))", "SELECT to_char(now(), title) FROM film",
    f"SELECT to_char(1, '{'9' * 1001}')", "SELECT 'x'::char(10485760)",
    "SELECT CAST(title AS bpchar(1000000)) FROM film", "SELECT 1::bit(80000000)", "SELECT char(1000000) 'x'",
    "SELECT array_fill(0, ARRAY[100000000])",
    "SELECT string_agg('x', '') FROM generate_series(1, 1000000000)",
]  # fmt: skip
"""What makes a text of any length from a number or a format."""

HUNGRY = [
    "SELECT pg_sleep(100)", "SELECT pg_sleep_for('1 hour')",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ORDER BY -i",
    f"SELECT count(*) FROM {', '.join(f'ticket AS t{n}' for n in range(9))}",
    f"SELECT t0.id, t1.id FROM {', '.join(f'ticket AS t{n}' for n in range(9))} ORDER BY t8.id, t7.id, t0.id",
    "SELECT * FROM ticket AS a, ticket AS b", "SELECT repeat('x', 100000000) FROM ticket",
    "SELECT repeat('x', 1000000) FROM ticket", "SELECT length(repeat(repeat('x', 1000000), 2000))",
    "SELECT string_agg(repeat('x', 1000000), '') FROM ticket AS a, ticket AS b",
    "SELECT array_agg(repeat('x', 1000000)) FROM ticket AS a, ticket AS b",
    "SELECT regexp_replace(repeat('a', 30) || 'b', '(a*)*(a*)*(a*)*c', 'x') FROM ticket AS a, ticket AS b, ticket AS c",
    "SELECT lpad('x', 900000000)",
]  # fmt: skip

MALFORMED = [
    "", ";", "no SQL at all", "SELECT FROM WHERE", "SELECT 'a\x00b'", "SELECT '\ud800'", 'SELECT "', "SELECT '",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000, "SELECT " + "NOT " * 2000 + "true", "SELECT titel FROM film",
    "SELECT title FROM film WHERE id = 'x'", "SELECT 1 / 0", "SELECT title || price FROM film WHERE title = 3",
    'SELECT id FROM film, "Order"', "SELECT " + ", ".join(["title"] * 2500) + " FROM film",
]  # fmt: skip

ODD = ["SELECT /* /* */ word FROM public.secret -- */ 1", "SELECT 1 --'\n, 2 --'", "SELECT 1 AS public"]
"""What may run, as it reads nothing."""

HOSTILE = [*WRITES, *READS, *TYPES, *SCOPES, *WITHOUT_BOUND, *HUNGRY, *MALFORMED]


@pytest.fixture(scope="module")
def cinema(lasting) -> tf.Corpus:
    return tf.open_corpus(lasting("cinema", SCRIPT), progress=False, hide=["film.hidden_note"])


@pytest.fixture(scope="module")
def state(postgres, cinema):
    """What must not change: rows, tables, settings."""

    def look() -> list[tuple]:
        with psycopg.connect(postgres.url("cinema"), autocommit=True) as owner:
            return [
                *owner.execute("SELECT * FROM film ORDER BY id").fetchall(),
                *owner.execute(
                    "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
                ),
                *owner.execute("SELECT last_value, is_called FROM counter"),
                *owner.execute("SELECT count(*) FROM pg_largeobject_metadata"),
                *owner.execute("SELECT count(*) FROM pg_extension"),
            ]

    return look


def running(postgres) -> list[str]:
    """Statements of tagframe's that are running in the server."""
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        query = "SELECT query FROM pg_stat_activity WHERE application_name = 'tagframe' AND state = 'active'"
        return [text for (text,) in owner.execute(query)]


NAMED_WITH_SCHEMA = ["SELECT * FROM public.film", "SELECT film FROM public.film"]


@pytest.mark.parametrize("sql", NAMED_WITH_SCHEMA)
def test_a_table_named_with_its_schema_shows_what_is_not_hidden(cinema, sql):
    rows = run_sql(sql, cinema, TABLES, PATIENT)
    assert len(rows)
    assert "hidden_note" not in rows.columns
    assert "xyzzy" not in repr(rows.to_dict())


def test_there_are_enough_of_them():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 330


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: ascii(sql[:60]))
def test_a_hostile_statement_is_refused_by_name(cinema, sql):
    with pytest.raises((UnsafeSQL, SQLFailed)):
        run_sql(sql, cinema, TABLES, LIMITS)


@pytest.mark.parametrize(
    "sql", [*WRITES, *READS, *TYPES, *SCOPES, *NAMED_WITH_SCHEMA, *MALFORMED, *ODD], ids=lambda sql: ascii(sql[:60])
)
def test_the_engine_holds_without_the_parser(cinema, state, sql):
    """The second line of defence, whatever the first one thinks of a statement."""
    before = state()
    every = {name: (*(one.name for one in cinema.profile(id).columns), "hidden_note") for name, id in TABLES.items()}
    tables = {name: Readable(cinema.source_table(id), every[name]) for name, id in TABLES.items()}
    try:
        rows = cinema.engine("public.film").execute(UntrustedStatement(sql, tables, {}, LIMITS))
    except (UnsafeSQL, SQLFailed):
        rows = None
    assert rows is None or "xyzzy" not in repr(rows.to_dict())
    assert rows is None or not (rows.select_dtypes("number") == 7).any(axis=None), "the rows of secret were counted"
    assert state() == before


def test_nothing_is_left_running(cinema, statements_left):
    for sql in HUNGRY[2:6]:
        with pytest.raises((UnsafeSQL, SQLFailed)):
            run_sql(sql, cinema, TABLES, LIMITS)
        assert statements_left() == []


def test_an_interrupted_statement_is_cancelled_in_the_server(cinema, postgres, statements_left):
    slow = HUNGRY[2]

    def interrupt() -> None:
        while not running(postgres):
            time.sleep(0.02)
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            run_sql(slow, cinema, TABLES, SQLLimits(seconds=60))
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert statements_left() == []
    assert len(run_sql("SELECT * FROM film", cinema, TABLES)) == 3


def test_a_cancelled_task_does_not_wait_for_its_statement(cinema, postgres, statements_left):
    """The statement may run for ten minutes, for which no test waits."""
    query = tf.answer.Query(HUNGRY[2], TABLES)
    tag = tf.TAG(lambda request: query, exec_sql(cinema, limits=SQLLimits(seconds=600)))

    async def cancelled() -> None:
        task = asyncio.create_task(tag.awaited("all of it"))
        while not await asyncio.to_thread(running, postgres):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert statements_left() == []


PLAIN = {
    "SELECT title, made FROM film WHERE made > '2000-01-01' ORDER BY made": {
        "title": ["Salt Road"], "made": [dt.date(2015, 1, 2)]},
    "SELECT count(*) AS n, count(DISTINCT film_id) AS films FROM ticket": {"n": [40], "films": [2]},
    'SELECT f.title, sum(o.seats) AS seats FROM film AS f JOIN "Order" AS o ON o.film_id = f.id GROUP BY f.title '
    "HAVING sum(o.seats) > 1": {"title": ["Low Tide"], "seats": [6]},
    "SELECT title FROM film WHERE title ILIKE '%tide%'": {"title": ["Low Tide"]},
    "SELECT extract(year FROM made)::int AS y FROM film WHERE made IS NOT NULL ORDER BY 1": {"y": [1998, 2015]},
    "WITH many AS (SELECT film_id, count(*) AS n FROM ticket GROUP BY 1) SELECT max(n) AS m FROM many": {"m": [20]},
    "WITH film AS (SELECT id FROM film WHERE id > 1) SELECT count(*) AS n FROM film": {"n": [2]},
    "SELECT title, row_number() OVER (ORDER BY id DESC) AS r FROM film ORDER BY r LIMIT 1 OFFSET 1": {
        "title": ["Salt Road"], "r": [2]},
    "SELECT DISTINCT paid FROM ticket ORDER BY paid DESC": {"paid": [True, False]},
    "SELECT coalesce(title, '?') || '!' AS t FROM film ORDER BY id DESC LIMIT 1": {"t": ["?!"]},
    "SELECT price FROM film WHERE price BETWEEN 9 AND 10 -- a comment": {"price": [9.5]},
    "SELECT avg(price) AS a, sum(seats) FILTER (WHERE seats > 1) AS s FROM Film, \"Order\"": {"a": [10.75], "s": [18]},
    "SELECT CASE WHEN id = 1 THEN 'a' ELSE 'b' END AS c FROM film WHERE id IN (1, 2) ORDER BY id": {"c": ["a", "b"]},
    "SELECT made + interval '1 day' AS d FROM film WHERE id = 1": {"d": [pd.Timestamp("1998-05-02")]},
    "SELECT date_trunc('year', made)::date AS d FROM film WHERE id = 1": {"d": [dt.date(1998, 1, 1)]},
    "SELECT string_agg(title, ', ' ORDER BY title) AS t FROM film": {"t": ["Low Tide, Salt Road"]},
    "SELECT 'it''s' AS a, \"title\" FROM \"film\" WHERE id = 1": {"a": ["it's"], "title": ["Low Tide"]},
    "SELECT id, id FROM film WHERE id = 2": {"id": [2], "id_2": [2]},
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seats) AS m FROM \"Order\"": {"m": [2.0]},
    "(SELECT id FROM film WHERE id = 1) UNION ALL (SELECT seats FROM \"Order\" WHERE id = 1) ORDER BY 1": {
        "id": [1, 4]},
    "SELECT substring(title from 1 for 3) AS s, position('T' in title) AS p FROM film WHERE id = 1": {
        "s": ["Low"], "p": [5]},
    "SELECT round(price / 3, 2) AS x, 7 / 2 AS i FROM film WHERE id = 2": {"x": [4.0], "i": [3]},
    "SELECT t.n FROM (VALUES (1), (2)) AS t(n) ORDER BY n DESC": {"n": [2, 1]},
    "SELECT lpad(id::text, 3, '0') || repeat('-', 2) || rpad(title, 5) AS s FROM film WHERE id = 1": {
        "s": ["001--Low T"]},
    "SELECT format('%s (%-3s|)', title, id) AS s FROM film WHERE id = 1": {"s": ["Low Tide (1  |)"]},
    "SELECT to_char(made, 'YYYY-MM') || to_char(price, 'FM990.0') AS s FROM film WHERE id = 1": {"s": ["1998-059.5"]},
    "SELECT array_to_string(array_agg(title ORDER BY id), '+') AS s FROM film": {"s": ["Low Tide+Salt Road"]},
    "SELECT replace(title, split_part(title, ' ', 1), id::text) AS s FROM film WHERE id = 1": {"s": ["1 Tide"]},
    "SELECT regexp_replace(title, '(\\w+) (\\w+)', '\\2, \\1') AS s FROM film WHERE id = 1": {"s": ["Tide, Low"]},
    "SELECT title::varchar(50000)::char(3) AS s FROM film WHERE id = 1": {"s": ["Low"]},
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT sum(i) AS s FROM n": {
        "s": [5000050000]},
    "SELECT count(*) AS s FROM film WHERE id NOT IN (SELECT film_id FROM \"Order\")": {"s": [1]},
    "SELECT round(power(1 + price / 100, id), 4) AS s FROM film WHERE id = 2": {"s": [1.2544]},
}  # fmt: skip


@pytest.mark.parametrize("sql", PLAIN, ids=lambda sql: sql[:60])
def test_a_plain_statement_runs_there(cinema, sql):
    assert run_sql(sql, cinema, TABLES, PATIENT).to_dict("list") == PLAIN[sql]
    assert dry_run(sql, cinema, TABLES).rstrip(";") == sql


def test_statements_run_in_the_role_of_the_url(cinema, postgres):
    with psycopg.connect(postgres.url("cinema"), autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS usher; CREATE ROLE usher; GRANT SELECT ON film TO usher")
    corpus = tf.open_corpus(f"{postgres.url('cinema')}?application_name=tagframe&role=usher", progress=False)
    assert len(corpus.read("sales.ticket")) == 40
    for opened in (corpus, pickle.loads(pickle.dumps(corpus))):
        assert run_sql("SELECT count(*) AS n FROM film", opened, TABLES, PATIENT)["n"].tolist() == [3]
        with pytest.raises(UnsafeSQL, match="permission denied for schema sales"):
            run_sql("SELECT count(*) FROM ticket", opened, TABLES, PATIENT)
    assert len(corpus.read("sales.ticket")) == 40  # no connection stays in the role
    assert len(run_sql("SELECT id FROM ticket", cinema, TABLES, PATIENT)) == 40
    with psycopg.connect(postgres.url("cinema"), autocommit=True) as owner:
        owner.execute("DROP OWNED BY usher; DROP ROLE usher")
    with pytest.raises(ConnectionRefusedByServer, match=r"take the role 'usher' of the URL: role \"usher\" does not"):
        run_sql("SELECT count(*) FROM film", corpus, TABLES, PATIENT)


def test_limits_are_said(cinema):
    with pytest.raises(SQLFailed, match="more than 3 rows"):
        run_sql("SELECT * FROM ticket", cinema, TABLES, SQLLimits(rows=3))
    with pytest.raises(SQLFailed, match=r"stopped after 0\.2 seconds, by the server"):
        run_sql(HUNGRY[2], cinema, TABLES, SQLLimits(seconds=0.2))
    wide = "repeat(repeat('x', 1000), 1000)"
    for sql in (f"SELECT string_agg({wide}, '') FROM ticket", f"SELECT {wide} FROM ticket"):
        with pytest.raises(SQLFailed, match=r"exceeds SQLLimits\(memory=64\)"):
            run_sql(sql, cinema, TABLES, SQLLimits(memory=64, seconds=60))
    with pytest.raises(UnsafeSQL, match="repeat takes a number of at most 1,000, written out"):
        run_sql("SELECT repeat('x', id) FROM film", cinema, TABLES)
    with pytest.raises(UnsafeSQL, match="to_char takes a format of at most 1,000 characters, in quotes"):
        run_sql("SELECT to_char(made, title) FROM film", cinema, TABLES)
    with pytest.raises(SQLFailed, match=r"titel.*did you mean 'title'"):
        dry_run("SELECT titel FROM film", cinema, TABLES)
    with pytest.raises(SQLFailed, match="hidden_note"):
        run_sql("SELECT hidden_note FROM film", cinema, TABLES)
    assert "hidden_note" not in run_sql("SELECT * FROM film", cinema, TABLES)


def test_tables_of_elsewhere_are_brought_along(cinema):
    prices = pd.DataFrame({"film_id": [1, 2], "worth": [2.5, None], "who": ["a'b", "\\"], "ok": [True, False]})
    both = cinema.union(tf.open_corpus({"prices": prices}))
    rows = exec_sql(both)("SELECT f.title, p.worth, p.who FROM film f JOIN prices p ON p.film_id = f.id ORDER BY f.id")
    assert rows["title"].tolist() == ["Low Tide", "Salt Road"]
    assert rows["who"].tolist() == ["a'b", "\\"]
    assert rows["worth"].isna().tolist() == [False, True]
    engine = cinema.engine("film")
    mine = {"Mine": pa.table({"n": [1], "T": ["x"]})}
    found = engine.execute(UntrustedStatement('SELECT n, "T" FROM "Mine"', {}, mine, PATIENT))
    assert found.to_dict("list") == {"n": [1], "T": ["x"]}


def test_where_rows_come_from_and_why_there_are_none(cinema):
    run = exec_sql(cinema)
    rows = run(
        'SELECT f.title, sum(o.seats) AS s FROM film f JOIN "Order" o ON o.film_id = f.id WHERE f.id = 1 GROUP BY 1'
    )
    cited = results.recall(rows, "execution").sources()
    assert set(cited.loc[cited["table"] == "public.film", "value"]) == {"1"}
    empty = run("SELECT title FROM film WHERE id > 1 AND title ILIKE 'zz%'")
    said = run.why_empty(empty)
    assert "0 are left where" in said
    assert "ILIKE" in said


def test_a_question_is_answered_there(cinema, live):
    live.answers = lambda prompt: "```sql\nSELECT title FROM film WHERE made < '2000-01-01'\n```"
    query = Synthesizer(cinema)("Which films are from before 2000?")
    assert exec_sql(cinema)(query)["title"].tolist() == ["Low Tide"]
    system, user = (message["content"] for message in live.requests[0].messages)
    assert "one PostgreSQL SELECT" in system
    assert "true, false or NULL" in system
    assert "made ('1998-05-01' to" in user
    assert "hidden_note" not in user
    live.answers = [
        "```sql\nSELECT title FROM film WHERE made < '2000-01-01'\n```",
        '{"text": "Low Tide.", "values": ["Low Tide"]}',
    ]
    answer = tf.ask("Which films were made before the year 2000?", cinema)
    assert answer.rows["title"].tolist() == ["Low Tide"]


def test_decimals_stay_exact_where_they_are_declared(cinema):
    rows = run_sql("SELECT price FROM film ORDER BY id", cinema, TABLES)
    assert rows["price"].tolist()[:2] == [9.5, 12.0]
    found = run_sql("SELECT 1234567890123456789.01::numeric(30, 2) AS n", cinema, TABLES)
    assert found["n"].tolist() == [Decimal("1234567890123456789.01")]
    found = run_sql("SELECT 9.9::numeric ^ 100000 AS n, 0.1::numeric(1000, 999) ^ 999 AS m", cinema, TABLES, PATIENT)
    assert [found[name][0].adjusted() for name in ("n", "m")] == [99563, -999]
    found = run_sql("SELECT 'NaN'::numeric AS n, '-Infinity'::numeric AS i", cinema, TABLES)
    assert found["n"].isna().tolist() == [True]
    assert found["i"].tolist() == [float("-inf")]
    found = run_sql("SELECT 9999999999999999999999 AS n, avg(id) AS a FROM film", cinema, TABLES)
    assert found.to_dict("list") == {"n": [Decimal("9999999999999999999999")], "a": [2]}
