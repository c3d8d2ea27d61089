# ruff: noqa: E501 - long statements
"""Statements over PostgreSQL that would take all memory, all time or what is hidden; and some that only look like it.

Run as a superuser and as a role that may read these tables and do nothing else, by ``test_hungry_postgres.py`` and,
with the memory of the server's process and of this one, by ``python -m tests.answer.hungry_measured``.
"""

from __future__ import annotations

from itertools import product

READER = "hungry_reader"
TABLES = {"film": "public.film", "Order": "public.Order", "note": "public.note", "letter": "public.letter"}
HIDDEN = ("note.secret", "film.secret")

SCRIPT = """
CREATE TABLE film (id int PRIMARY KEY, title text, price numeric(10, 2), secret text DEFAULT 'xyzzy');
INSERT INTO film SELECT g, 'Film ' || g, g / 4.0 FROM generate_series(1, 40) g;
CREATE TABLE "Order" (id int PRIMARY KEY, film_id int, seats int);
INSERT INTO "Order" SELECT g, 1 + g % 40, g % 7 FROM generate_series(1, 200) g;
CREATE TABLE note (id int PRIMARY KEY, film_id int, body text, tags text[], doc jsonb, made timestamp,
    secret text DEFAULT 'xyzzy');
INSERT INTO note SELECT g, 1 + g % 40, repeat(md5(g::text), 30), ARRAY['a', g::text], jsonb_build_object('n', g),
    '2020-01-01'::timestamp + g * interval '1 hour' FROM generate_series(1, 20000) g;
CREATE TABLE letter (id int PRIMARY KEY, body text);
INSERT INTO letter SELECT g, repeat(chr(64 + g), 1000000) FROM generate_series(1, 20) g;
CREATE TABLE vault (word text, film_id int);
INSERT INTO vault SELECT 'xyzzy', g FROM generate_series(1, 77) g;
CREATE VIEW peek AS SELECT word FROM vault;
ANALYZE;
"""

X = "repeat('x', 1000000)"
MANY = ", ".join(f"note AS n{number}" for number in range(4))
TEXTS = "(SELECT body FROM note) AS n"
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def nested(inside: str, step: str, times: int) -> str:
    """``step`` around ``inside`` so often; ``{}`` is what is inside."""
    for _ in range(times):
        inside = step.format(inside)
    return inside


LONG_TEXTS = [
    "SELECT repeat('x', 1000000000)", "SELECT length(repeat('x', 1000000000))",
    "SELECT length(repeat('x', 1073741823))", "SELECT length(repeat(repeat('x', 100000), 10000))",
    "SELECT length(repeat(repeat(repeat('xx', 1000), 1000), 1000))", "SELECT repeat(title, 100000000) FROM film",
    "SELECT repeat(title, id * 100000000) FROM film", "SELECT repeat(body, 900) FROM letter",
    "SELECT sum(length(repeat(body, 500))) FROM letter", "SELECT \"repeat\"('x', 1000000000)",
    "SELECT Repeat ( 'x' , 1000000000 )", "SELECT repeat('x', (SELECT 1000000000))", "SELECT repeat('x', '1000000000')",
    "SELECT repeat('x', 1e9::int)", "SELECT repeat('x', +1000000000)",
    "SELECT repeat('x', n) FROM (VALUES (1000000000)) AS t(n)",
    "SELECT max(repeat('x', n)) FROM (VALUES (1000000000), (999999999)) AS t(n)",
    "SELECT 1 FROM film WHERE repeat('x', 1000000000) = title",
    "SELECT 1 FROM film WHERE repeat(title, 100000000) LIKE '%y'",
    "SELECT 1 FROM film GROUP BY id HAVING repeat('x', 1000000000) <> ''",
    "SELECT 1 FROM film ORDER BY repeat(title, 50000000)", "SELECT lpad('x', 1000000000)",
    "SELECT length(lpad('x', 900000000, 'ab'))", "SELECT length(rpad(title, 1000000000 - id)) FROM film",
    "SELECT rpad('ä', 250000000, 'ä')", "SELECT length(lpad(rpad('x', 500000000), 1000000000))",
    "SELECT replace(repeat('x', 100000), 'x', repeat('y', 10000))",
    "SELECT length(replace(body, 'A', body)) FROM letter",
    f"SELECT length(replace(body, 'A', '{'x' * 900}')) FROM letter",
    f"SELECT length({nested('title', 'replace({}, substr(title, 1, 1), title || title)', 12)}) FROM film",
    "SELECT regexp_replace(repeat('x', 100000), 'x', repeat('y', 10000), 'g')",
    "SELECT length(regexp_replace(body, '.', '\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&\\&', 'g')) FROM letter",
    "SELECT length(" + nested("body", r"regexp_replace({}, '(.*)', '\1\1\1')", 20) + ") FROM letter",
    "SELECT format('%1000000000s', 'x')", "SELECT format('%*s', 1000000000, 'x')",
    "SELECT format('%1$*2$s', 'x', 1000000000)", "SELECT format('%-900000000s|%900000000s', 'x', 'y')",
    "SELECT length(format(f, 'x')) FROM (VALUES ('%1000000000s')) AS t(f)",
    f"SELECT length(format('{'%1$s' * 900}', body)) FROM letter",
    "SELECT length(format(repeat('%1$s', 20000), repeat('x', 100000)))", "SELECT to_char(1, repeat('9', 100000000))",
    "SELECT length(to_char(now(), repeat('Month', 10000000)))", "SELECT to_char(made, body) FROM note, letter",
    "SELECT 'x'::char(10485760) || 'x'::char(10485760)",
    f"SELECT {', '.join(['id::text::char(10000000)'] * 200)} FROM film", "SELECT 1::bit(80000000)",
    f"SELECT {', '.join(['1::bit(80000000)'] * 150)}",
    "SELECT overlay(repeat('x', 500000000) placing repeat('y', 500000000) from 2)",
    "SELECT translate(repeat('x', 900000000), 'x', 'y')",
    "SELECT array_to_string(string_to_array(repeat('x,', 1000000), ','), repeat('y', 1000))",
    "SELECT length(array_to_string(string_to_array(body, NULL), repeat('z', 900))) FROM letter",
    "SELECT string_to_array(repeat('x', 30000000), NULL)",
    "SELECT cardinality(string_to_array(repeat(',', 100000000), ','))", "SELECT reverse(repeat('x', 800000000))",
    "SELECT upper(repeat('ß', 400000000))", "SELECT initcap(repeat('a b ', 200000000))",
    "SELECT quote_nullable(repeat('''', 500000000))", f"SELECT length({nested(chr(39) * 4, 'quote_nullable({})', 40)})",
    "SELECT to_json(repeat(chr(1), 100000000))", f"SELECT length({nested('title', 'to_json({})::text', 30)}) FROM film",
    "SELECT json_build_array(" + ", ".join([X] * 90) + ")",
    "SELECT jsonb_build_object(" + ", ".join(f"'k{n}', repeat('x', 9000000)" for n in range(50)) + ")",
    "SELECT concat(" + ", ".join([X] * 90) + ")",
    "SELECT length(concat(" + ", ".join(["repeat('x', 20000000)"] * 60) + "))",
    "SELECT concat_ws(repeat('-', 10000000), " + ", ".join(["'a'"] * 99) + ")",
    "SELECT " + " || ".join(["repeat('x', 90000000)"] * 10), "SELECT length(" + " || ".join([X] * 1000) + ")",
    "SELECT " + ", ".join([X] * 1600), "SELECT " + ", ".join(f"repeat('x', 9000000 + {n})" for n in range(300)),
    "SELECT a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a FROM (SELECT repeat(title, 9000000) AS a FROM film) AS q",
    "SELECT length(body || body || body || body) FROM (SELECT repeat(body, 100) AS body FROM letter) AS q",
    "SELECT md5(repeat('x', 1000000000))", "SELECT ascii(repeat('x', 1000000000))",
    "SELECT split_part(repeat('x,', 500000000), ',', 2)", "SELECT repeat('9', 1000000000)::numeric",
    "SELECT ('[' || repeat('1,', 100000000) || '1]')::jsonb",
    "SELECT jsonb_array_length(('[' || repeat('[],', 40000000) || '1]')::jsonb)",
    "SELECT (repeat('[', 100000000))::json", "SELECT ('{' || repeat('1,', 100000000) || '1}')::int[]",
    "SELECT cardinality(('{' || repeat('1,', 30000000) || '1}')::text[])", "SELECT repeat('ab', 500000000)::bytea",
    "SELECT coalesce(NULL, repeat('x', 1000000000))",
    "SELECT CASE WHEN id > 0 THEN repeat('x', 1000000000) END FROM film",
    "SELECT greatest('a', repeat('x', 1000000000))", "SELECT (SELECT repeat('x', 1000000000)) FROM film",
    "SELECT 1 WHERE EXISTS (SELECT repeat('x', 1000000000) ORDER BY 1)",
    "SELECT 1 WHERE 'x' IN (SELECT repeat('x', 1000000000))", "SELECT repeat('x', 1000000000) COLLATE \"C\"",
    "VALUES (repeat('x', 1000000000))", "SELECT t.x FROM (VALUES (repeat('x', 1000000000))) AS t(x)",
    "WITH a AS (SELECT repeat('x', 1000000000) AS x) SELECT length(x) FROM a",
    "WITH a AS MATERIALIZED (SELECT repeat('x', 500000000) AS x) SELECT length(a.x || b.x) FROM a, a AS b",
    "SELECT repeat('x', 100000000) UNION SELECT repeat('y', 100000000)", "SELECT repeat('x', 1000000) FROM note",
    "SELECT body FROM letter, film", "SELECT l.*, m.*, n.* FROM letter AS l, letter AS m, letter AS n",
]  # fmt: skip

DOUBLING = [
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT x || x FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION SELECT x || x FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT concat(x, x) FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT repeat(x, 2) FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT repeat(x, 9) FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT replace(x, 'a', 'aa') FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT regexp_replace(x, '.', '\\&\\&', 'g') FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT format('%s%s', x, x) FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT overlay(x placing x from 1 for 0) FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'ab' UNION ALL SELECT lpad(x, length(x) * 2) FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT ARRAY[1] UNION ALL SELECT x || x FROM s) SELECT max(cardinality(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT ARRAY[1] UNION ALL SELECT array_cat(x, x) FROM s) SELECT max(cardinality(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT '1'::jsonb UNION ALL SELECT jsonb_build_array(x, x) FROM s) SELECT count(*) FROM s",
    "WITH RECURSIVE s(x, y) AS (SELECT 'a', 'b' UNION ALL SELECT y, x || y FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x, y) AS (SELECT 'a', 'b' UNION ALL SELECT x || y, x || y FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'a' UNION ALL SELECT z || z FROM (SELECT x AS z FROM s) AS q) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'a' UNION ALL SELECT s.x || t.x FROM s CROSS JOIN (SELECT 'b' AS x) AS t) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT 'a' UNION ALL SELECT s.x || repeat('b', 100000) FROM s) SELECT max(length(x)) FROM s",
    f"WITH RECURSIVE s(x) AS (SELECT 'a' UNION ALL SELECT s.x || '{'b' * 30000}' FROM s) SELECT max(length(x)) FROM s",
    "WITH RECURSIVE s(x) AS (SELECT repeat('x', 1000) UNION ALL SELECT x FROM s) SELECT count(*) FROM s",
    "WITH RECURSIVE s(x, i) AS (SELECT repeat('x', 1000), 1 UNION SELECT x, i + 1 FROM s) SELECT count(*) FROM s",
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION SELECT i + 1 FROM s) SELECT count(*) FROM s",
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION (SELECT i + 1 FROM s)) SELECT count(*) FROM s",
    "WITH RECURSIVE s(i, j) AS (SELECT 1, 1 UNION SELECT i + 1, o.id FROM s, \"Order\" AS o) SELECT count(*) FROM s",
    "WITH RECURSIVE s(i) AS (SELECT id FROM note UNION ALL SELECT i FROM s) SELECT count(*) FROM s",
    "WITH RECURSIVE s(i) AS (SELECT id FROM note UNION ALL SELECT i + id FROM s, film) SELECT count(*) FROM s",
    "SELECT length(x) FROM (" + nested("SELECT title AS x FROM film", "SELECT x || x AS x FROM ({}) AS q", 30) + ") AS q",
    "SELECT length(x) FROM (" + nested("SELECT title AS x FROM film", "SELECT x || x AS x FROM ({}) AS q OFFSET 0", 30) + ") AS q",
    "SELECT x FROM (" + nested("SELECT id AS x FROM film", "SELECT x + x AS x FROM ({}) AS q", 30) + ") AS q",
    "SELECT x FROM (" + nested("SELECT id AS x FROM film", "SELECT CASE WHEN x > 1 THEN x + 1 ELSE x - 1 END AS x FROM ({}) AS q", 20) + ") AS q",
    "SELECT x FROM (" + nested("SELECT title AS x FROM film", "SELECT q.y AS x FROM ({}) AS q(y) WHERE q.y || q.y <> ''", 30) + ") AS q",
    "WITH " + ", ".join(f"c{n} AS (SELECT {'x || x AS x' if n else 'title AS x'} FROM {f'c{n - 1}' if n else 'film'})" for n in range(31)) + " SELECT length(x) FROM c30",
    "WITH " + ", ".join(f"c{n} AS MATERIALIZED (SELECT {'x || x AS x' if n else 'title AS x'} FROM {f'c{n - 1}' if n else 'film'})" for n in range(31)) + " SELECT length(x) FROM c30",
    "WITH " + ", ".join(f"c{n} AS (SELECT * FROM {f'c{n - 1} a, c{n - 1} b' if n else 'film'})" for n in range(9)) + " SELECT count(*) FROM c8",
    f"SELECT length({nested('title', '({0} || {0})', 11)}) FROM film",
    "SELECT " + " || ".join(["title"] * 8000) + " FROM film", "SELECT " + " || ".join(["body"] * 900) + " FROM letter",
    "SELECT body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body || body FROM letter, film",
    "SELECT length(" + " || ".join(["body"] * 300) + ") FROM note",
    "SELECT q.x FROM film JOIN LATERAL (SELECT title || title AS x) AS q ON true JOIN LATERAL (SELECT q.x || repeat(q.x, 100000000) AS x) AS r ON true",
    "SELECT sum(length(a.x || b.x)) FROM (SELECT repeat(body, 50) AS x FROM letter) AS a, (SELECT repeat(body, 50) AS x FROM letter) AS b",
]  # fmt: skip


def doubled(step: str, first: str = "title AS x FROM film") -> str:
    """Thirty entries of WITH, each made by ``step`` from the one before, ``{}``."""
    entries = [f"c{n} AS (SELECT {step.format(f'c{n - 1}') if n else first})" for n in range(30)]
    return f"WITH {', '.join(entries)} SELECT length(x::text) FROM c29"


RENAMED = [
    *map(
        doubled,
        (
            "concat(x, x) AS x FROM {}", "format('%s%s', x, x) AS x FROM {}", "json_build_array(x, x) AS x FROM {}",
            "coalesce(x || x, x) AS x FROM {}", "CASE WHEN length(x) > 3 THEN x || x ELSE x END AS x FROM {}",
            "q.y || q.y AS x FROM {} AS q(y)", "row_to_json({0})::text || row_to_json({0})::text AS x FROM {0}",
            "to_json(q)::text || to_json(q)::text AS x FROM {} AS q", "(q).x || (q).x AS x FROM {} AS q",
            "q.x || r.x AS x FROM {0} AS q JOIN {0} AS r USING (x)", "(SELECT x || x) AS x FROM {}",
            "u || u AS x FROM {}, unnest(ARRAY[x]) AS u", "u.v || u.v AS x FROM {}, unnest(ARRAY[x]) AS u(v)",
            "l.z || l.z AS x FROM {} CROSS JOIN LATERAL (SELECT x || x AS z) AS l",
            "v.a || v.a AS x FROM {}, LATERAL (VALUES (x || x)) AS v(a)", "j.x || j.x AS x FROM ({} JOIN film ON true) AS j",
            "x || x AS x FROM (SELECT x FROM {0} UNION ALL SELECT x || x FROM {0}) AS q", "(x = x)::text AS x FROM {}",
            "x || x AS x FROM {} UNION ALL SELECT title FROM film", "string_agg(x || x, '') AS x FROM {}",
            "replace(x, 'F', 'FFFFFFFF') AS x FROM {}", "repeat(x, 8) AS x FROM {}", "concat_ws(x, x, x) AS x FROM {}",
            "array_to_string(ARRAY[x, x, x], x) AS x FROM {}", "rpad(x, length(x) * 2) AS x FROM {}",
        ),
    ),
    *(
        f"SELECT length({nested(chr(39) * 4, step, 34)})"
        for step in (
            "format('%L', {})", "concat(ARRAY[{}])", "format('%s', ARRAY[{}])", "ARRAY[{}]::text", "ROW({})::text",
            "('' || ROW({}))", "array_to_string(ARRAY[ROW({})], '')", "('' || (1, {}))", "concat_ws('', ARRAY[{}])",
        )
    ),
    doubled("'' || c AS x FROM {} AS c", "chr(34) || title AS x FROM film"),
    doubled("substr(x::bytea::text, 2) AS x FROM {}"),
    doubled("jsonb_build_array(x, x) - 'k' AS x FROM {}", "doc AS x FROM note"),
    doubled("array_cat(x, x) AS x FROM {}", "ARRAY[1, 2] AS x FROM film"),
    "SELECT length(q.concat) FROM (" + nested("SELECT concat(title, title) FROM film", "SELECT concat(q.concat, q.concat) FROM ({}) AS q", 30) + ") AS q",
    "SELECT length(q.string_agg) FROM (" + nested("SELECT string_agg(body, '') FROM note", "SELECT string_agg(q.string_agg || q.string_agg, '') FROM ({}) AS q", 20) + ") AS q",
    "SELECT length(array_to_string(string_to_array(body, NULL), repeat('x', 1000), 'x')) FROM letter",
    "SELECT length(array_to_string(ARRAY['a', NULL, NULL], 'x', repeat(body, 900))) FROM letter",
    "SELECT trim(m.body, 'b' || l.body) FROM letter AS l, letter AS m",
    "SELECT \"position\"(m.body || m.body, 'b' || l.body) FROM letter AS l, letter AS m",
    "SELECT " + " + ".join(["((9.9 ^ id) / 7.7 ^ id)"] * 50) + " FROM note",
    "SELECT " + " + ".join([f"exp({n}00.5 * id)" for n in range(40)]) + " FROM note",
    "WITH a AS (SELECT " + "9" * 130000 + " AS x, " + "7" * 65000 + " AS y) SELECT " + " + ".join(["x % y"] * 99) + " FROM a",
]  # fmt: skip
"""Texts that grow by names which are not those of their columns, and what only looks small."""

_GATHERERS = (
    "string_agg({}::text, ',')", "array_agg({})", "json_agg({})", "jsonb_agg({})", "json_object_agg(n0.id, {})",
    "jsonb_object_agg(n0.id::text || n1.id, {})",
)  # fmt: skip
GATHERING = [
    *(
        f"SELECT length(({call.format(what)})::text) FROM {MANY}"
        for call, what in product(_GATHERERS, ("n0.body", "n1.id", "n0", "n2.doc"))
    ),
    f"SELECT string_agg({X}, '') FROM note", f"SELECT array_agg({X}) FROM note", f"SELECT json_agg({X}) FROM note",
    "SELECT length(string_agg(body, '')) FROM letter, film",
    f"SELECT length(string_agg(DISTINCT n0.body || n1.id, '')) FROM {MANY}",
    f"SELECT length(string_agg(n0.body, '' ORDER BY n1.id)) FROM {MANY}",
    f"SELECT length(string_agg(n0.body, '') FILTER (WHERE n0.id > 1)) FROM {MANY}",
    f"SELECT length(string_agg(n0.body, '') FILTER (WHERE true OR false)) FROM {MANY}",
    f"SELECT length(\"string_agg\"(n0.body, '')) FROM {MANY}",
    f"SELECT n0.id, array_agg(n1.body) FROM {MANY} GROUP BY n0.id",
    f"SELECT n0.id, n1.id, array_agg(n2.body) FROM {MANY} GROUP BY ROLLUP (n0.id, n1.id)",
    f"SELECT n0.id, array_agg(n1.body) OVER (ORDER BY n0.id) FROM {MANY}",
    f"SELECT n0.id, string_agg(n1.body, '') OVER (PARTITION BY n0.film_id) FROM {MANY}",
    "SELECT string_agg(body, '') OVER (ORDER BY id) FROM note",
    "SELECT sum(length(s)) FROM (SELECT string_agg(body, '') OVER (ORDER BY id) AS s FROM note) AS q",
    f"SELECT cardinality(ARRAY(SELECT n0.body FROM {MANY}))", f"SELECT cardinality(ARRAY (SELECT n0.body FROM {MANY}))",
    "SELECT (SELECT array_agg(n.body) FROM note AS n, note AS m) FROM film",
    "SELECT array_agg(a) FROM (SELECT array_agg(body) AS a FROM note, film GROUP BY note.id % 2) AS q",
    "SELECT array_agg(tags) FROM note AS n, note AS m",
    "SELECT string_agg(l.body || m.body, '') FROM letter AS l, letter AS m",
    "SELECT string_agg(repeat(body, 60), '') FROM letter",
    f"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n0.body || n1.id) FROM {MANY}",
    f"SELECT mode() WITHIN GROUP (ORDER BY n0.body || n1.id) FROM {MANY}",
    f"SELECT max(n0.body || n1.body || n2.body) FROM {MANY}", f"SELECT count(DISTINCT n0.body || n1.id) FROM {MANY}",
    f"SELECT {', '.join(f'count(DISTINCT n0.id + {n})' for n in range(400))} FROM note AS n0, film",
]  # fmt: skip

SORTING = [
    f"SELECT n0.id FROM {MANY} ORDER BY n3.body, n2.body, n0.id", f"SELECT DISTINCT n0.id, n1.id, n2.id FROM {MANY}",
    f"SELECT n0.id, n1.id, n2.id, count(*) FROM {MANY} GROUP BY 1, 2, 3",
    f"SELECT n0.id, n1.id, n2.id FROM {MANY} GROUP BY CUBE (n0.id, n1.id, n2.id, n3.id)",
    f"SELECT n0.id + n1.id FROM {MANY} UNION SELECT n0.id * n1.id FROM {MANY}",
    f"SELECT n0.id, n1.id, n2.id FROM {MANY} INTERSECT SELECT n0.id, n1.id, n2.id FROM {MANY}",
    f"SELECT n0.id, n1.id, n2.id FROM {MANY} EXCEPT SELECT 1, 2, 3",
    f"SELECT row_number() OVER (ORDER BY n0.body, n1.body) FROM {MANY}",
    f"SELECT lag(n0.body, 100000) OVER (ORDER BY n1.id) FROM {MANY}",
    f"SELECT count(*) FROM {MANY} WHERE n0.id NOT IN (SELECT a.id * 1000000::int8 + b.id FROM note AS a, note AS b)",
    "SELECT count(*) FROM note WHERE id NOT IN (SELECT a.id * 1000000::int8 + b.id FROM note AS a, note AS b WHERE a.id = a.id + 0 AND b.id = b.id + 0 AND a.id + 0 = a.id * 1)",
    "SELECT count(*) FROM note WHERE (id, body) NOT IN (SELECT a.id * 100 + b.id, a.body || b.id FROM note AS a, note AS b WHERE a.id + 0 = a.id * 1 AND b.id + 0 = b.id * 1)",
    "SELECT count(*) FROM (SELECT a.id - a.id AS k, a.body || b.id AS x FROM note AS a, note AS b) AS p JOIN (SELECT a.id - a.id AS k, a.body || b.id AS x FROM note AS a, note AS b) AS q USING (k)",
    "SELECT count(*) FROM (SELECT a.id * 7919 AS k, a.body || b.id AS x FROM note AS a, note AS b WHERE a.id + 0 = a.id * 1 AND b.id + 0 = b.id * 1) AS p JOIN (SELECT a.id * 7919 AS k, a.body || b.id AS x FROM note AS a, note AS b WHERE a.id + 0 = a.id * 1 AND b.id + 0 = b.id * 1) AS q ON p.k = q.k AND p.x = q.x",
    "SELECT count(*) FROM (SELECT a.id - a.id AS k, b.body FROM note AS a, note AS b WHERE a.id + 0 = a.id * 1) AS p FULL JOIN (SELECT a.id - a.id AS k, b.body FROM note AS a, note AS b WHERE a.id + 0 = a.id * 1) AS q ON p.k = q.k AND p.body = q.body",
    "SELECT " + ", ".join(f"(SELECT max(b) FROM (SELECT a.body || o.id AS b FROM note AS a, film AS o ORDER BY a.body DESC, {n} OFFSET {n}) AS q)" for n in range(200)),
    "SELECT 1 FROM " + ", ".join(f"(SELECT DISTINCT body || {n} AS b FROM note) AS q{n}" for n in range(120)),
    " UNION ALL ".join(f"(SELECT body FROM note ORDER BY body || {n} LIMIT 1)" for n in range(400)),
    "SELECT " + ", ".join(f"rank() OVER (ORDER BY body || {n})" for n in range(200)) + " FROM note",
    "SELECT count(*) FROM note AS a JOIN note AS b ON a.body < b.body JOIN note AS c ON b.body < c.body",
    f"{COUNT} SELECT count(*) FROM n", f"{COUNT} SELECT i FROM n ORDER BY -i", f"{COUNT} SELECT DISTINCT i FROM n",
    f"{COUNT} SELECT a.i FROM n AS a JOIN n AS b ON a.i = b.i + 1",
    "SELECT count(*) FROM " + ", ".join(f"film AS f{n}" for n in range(60)),
    "SELECT * FROM " + " NATURAL JOIN ".join(f"film AS f{n}" for n in range(40)) + " WHERE f0.title || 'x' = ''",
    "SELECT " + "+".join(["f0.id"] * 5000) + f" FROM {', '.join(f'film AS f{n}' for n in range(12))}",
    "SELECT 1 FROM film WHERE id IN (" + ", ".join(map(str, range(8000))) + ") AND " + " AND ".join(f"title <> '{n}'" for n in range(400)) + " AND 1 = (SELECT count(*) FROM note AS a, note AS b, note AS c)",
]  # fmt: skip

SLOW = [
    "SELECT repeat('9', 130000)::numeric % repeat('7', 65000)::numeric",
    "SELECT " + ", ".join(["div(repeat('9', 130000)::numeric, repeat('7', 65000)::numeric)"] * 50),
    "SELECT 9.9::numeric ^ 130000 / 7.7::numeric ^ 65000",
    "SELECT " + " + ".join(f"(9.9::numeric ^ {120000 + n}) % (7.7::numeric ^ {65000 + n})" for n in range(80)),
    "SELECT sqrt(9.9::numeric ^ 130000), " + ", ".join(f"sqrt({n}.9::numeric ^ 130000)" for n in range(1, 40)),
    "SELECT sum(exp(id::numeric * 100) ^ 40.5) FROM note", "SELECT power(price + 1.00001, 99999.5) FROM film",
    "SELECT count(*) FROM note WHERE regexp_replace(body, '(((a*)*)*)*((b*)*)*x', 'y', 'g') = ''",
    "SELECT regexp_replace(repeat('a', 30000) || 'b', '(a*)*(a*)*(a*)*c', 'x')",
    "SELECT regexp_replace(repeat('a', 5000), '(a+)(a+)(a+)(a+)\\1\\2\\3\\4b', 'x')",
    "SELECT regexp_count(repeat('a', 1000000), '(a|aa|aaa)*b')",
    "SELECT repeat('a', 100000) ~ '((((((a{1,100}){1,100}){1,100}){1,100}){1,100}){1,100})b'",
    "SELECT 'aaaa' ~ '((((a{1,250}){1,250}){1,250}){1,250})'",
    "SELECT regexp_match(repeat('ab', 100000), '(.*)*(.*)*(.*)*\\1x')",
    "SELECT repeat('a', 1000000) SIMILAR TO '(a|b)*(a|b)*(a|b)*c'",
    f"SELECT repeat('a', 1000000) LIKE '{'%a' * 2000}b'",
    f"SELECT count(*) FROM letter WHERE body LIKE '{'%A' * 4000}b'",
    "SELECT count(*) FROM letter AS l, letter AS m WHERE position(l.body || 'b' in m.body || m.body) > 0",
    "SELECT strpos(repeat('a', 5000000), repeat('a', 2500000) || 'b')",
    "SELECT trim(both repeat('b', 100000) || 'a' from repeat('a', 5000000))",
    "SELECT btrim(repeat('a', 3000000), repeat('b', 3000000) || 'a')",
    "SELECT translate(repeat('a', 3000000), repeat('b', 3000000), 'c')",
    "SELECT lcm(repeat('9', 60000)::numeric, repeat('7', 59999)::numeric)",
    "SELECT gcd(repeat('9', 120000)::numeric, repeat('7', 119999)::numeric)",
    "SELECT split_part(repeat('a', 5000000), repeat('a', 2500000) || 'b', 2)",
    "SELECT replace(repeat('a', 5000000), repeat('a', 2500000) || 'b', '')",
    "SELECT count(*) FROM note AS a, note AS b WHERE a.doc || b.doc @> a.doc",
    "SELECT count(*) FROM note AS a, note AS b, unnest(a.tags || b.tags) AS u",
    "SELECT (SELECT count(*) FROM note AS b, note AS c WHERE b.id + c.id = a.id) FROM note AS a",
    "SELECT pg_sleep(100)",
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
    "SELECT id :: /* */ \"regrole\" FROM film", "SELECT film::\"film\" FROM film", "SELECT NULL::vault",
    "SELECT (NULL::\"vault\").*", "SELECT CAST(NULL AS public.vault)", "SELECT 'x'::public.mood",
    "SELECT pg_catalog.regrole '10'", "SELECT U&\"regrole\" '10'",
    "SELECT x FROM unnest('{10,20}'::\"oidvector\"::int[]) AS x", "SELECT interval '1 day'::\"regtype\"",
]  # fmt: skip

_OUTSIDE = ["vault", "peek", "pg_class", "pg_authid", "information_schema.tables", "public.vault"]
SCOPES = [
    text.format(name)
    for name, text in product(
        _OUTSIDE,
        (
            "SELECT * FROM {0} WHERE EXISTS (WITH vault AS (SELECT 1) SELECT 1 FROM film)",
            "SELECT * FROM (WITH vault AS (SELECT 1 AS a), peek AS (SELECT 1) SELECT * FROM vault) AS q, {0}",
            "(WITH vault AS (SELECT 1 AS a), peek AS (SELECT 2) SELECT a FROM vault) UNION SELECT 1 FROM {0}",
            "WITH a AS (WITH vault AS (SELECT 1), peek AS (SELECT 1) SELECT 1) SELECT * FROM {0}",
            "SELECT (SELECT count(*) FROM {0}) FROM film ORDER BY (WITH vault AS (SELECT 1 AS a) SELECT a FROM vault)",
        ),
    )
] + [
    "SELECT secret FROM film",
    "SELECT film.secret FROM note AS film",
    "SELECT (film).secret FROM film",
    "SELECT to_json(film) -> 'secret' ->> 0, secret FROM film",
    "SELECT n.secret FROM (SELECT * FROM note) AS n",
    "SELECT f.* FROM film AS f JOIN note AS n USING (secret)",
    "WITH film AS (SELECT secret FROM film) SELECT * FROM film",
    "SELECT * FROM film AS f(a, b, c, secret)",
    "SELECT max(film.secret) OVER () FROM film",
    "SELECT 1 FROM film WHERE secret LIKE 'x%'",
    "SELECT 1 FROM film ORDER BY secret",
    "SELECT count(*) FROM film GROUP BY secret",
    "SELECT xmin, ctid, tableoid FROM film",
    "SELECT tableoid::\"regclass\" FROM film",
    "SELECT set_config('tagframe.gathered', '-999999999999', true)",
    "SELECT current_setting('tagframe.gathered')",
    "SELECT string_agg(title, '') FILTER (WHERE set_config('tagframe.gathered', '0', true) = '0') FROM film",
    "SET tagframe.gathered = -999999999999",
    "SELECT tagframe_step.* FROM film",
]  # fmt: skip

HOSTILE = [*LONG_TEXTS, *DOUBLING, *RENAMED, *GATHERING, *SORTING, *SLOW, *TYPES, *SCOPES]

HARMLESS = {
    "SELECT repeat('*', 5) AS s": ["*****"],
    "SELECT repeat('*', id / 10) AS s FROM film WHERE id IN (9, 20, 40) ORDER BY id": ["", "**", "****"],
    "SELECT repeat(title, NULL) AS s FROM film WHERE id = 1": [None],
    "SELECT lpad(id::text, 3, '0') AS s FROM film WHERE id = 7": ["007"],
    "SELECT rpad(title, length(title) + 2, '.') AS s FROM film WHERE id = 7": ["Film 7.."],
    "SELECT replace(replace(replace(replace(replace(replace(title, 'F', 'G'), 'i', 'e'), 'l', ''), 'm', 'mm'), '1', ''), ' ', '') AS s FROM film WHERE id = 1": [
        "Gemm"
    ],
    "SELECT replace(title, 'Film', (SELECT 'Movie')) AS s FROM film WHERE id = 1": ["Movie 1"],
    "SELECT regexp_replace(regexp_replace(title, '[0-9]+', ''), ' +', ' ', 'g') AS s FROM film WHERE id = 1": ["Film "],
    "SELECT regexp_replace(title, '(\\w+) (\\w+)', '\\2, \\1') AS s FROM film WHERE id = 3": ["3, Film"],
    "SELECT format('%s (%s)', title, id) AS s FROM film WHERE id = 3": ["Film 3 (3)"],
    "SELECT to_char(price, 'FM999990.00') AS s FROM film WHERE id = 3": ["0.75"],
    "SELECT to_char(made, 'YYYY-MM') AS s FROM note WHERE id = 1": ["2020-01"],
    "SELECT array_to_string(tags, ', ') AS s FROM note WHERE id = 7": ["a, 7"],
    "SELECT array_to_string(array_agg(title ORDER BY id), repeat('-', 2)) AS s FROM film WHERE id < 3": [
        "Film 1--Film 2"
    ],
    "SELECT string_agg(title, ', ' ORDER BY id DESC) AS s FROM film WHERE id < 4": ["Film 3, Film 2, Film 1"],
    "SELECT string_agg(DISTINCT left(title, 4), ',') AS s FROM film": ["Film"],
    "SELECT string_agg(title, ',' ORDER BY id) FILTER (WHERE id IN (1, 5)) AS s FROM film": ["Film 1,Film 5"],
    "SELECT 'Titles: ' || string_agg(title, ', ' ORDER BY id) || '. In all: ' || count(*) || '.' AS s FROM film WHERE id < 3": [
        "Titles: Film 1, Film 2. In all: 2."
    ],
    "SELECT f.title || ': ' || string_agg(o.seats::text, '+' ORDER BY o.id) AS s FROM film AS f JOIN \"Order\" AS o ON o.film_id = f.id WHERE f.id = 2 GROUP BY f.id, f.title": [
        "Film 2: 1+6+4+2+0"
    ],
    "SELECT json_agg(t.title ORDER BY t.id)::text AS s FROM (SELECT * FROM film WHERE id < 3) AS t": [
        '["Film 1", "Film 2"]'
    ],
    "SELECT json_build_object('id', id, 'title', title)::text AS s FROM film WHERE id = 1": [
        '{"id" : 1, "title" : "Film 1"}'
    ],
    "SELECT cardinality(array_agg(id)) AS s FROM note": [20000],
    "SELECT length(string_agg(body, '')) AS s FROM note": [19_200_000],
    "SELECT id, string_agg(title, '') OVER (ORDER BY id) AS s FROM film WHERE id < 3 ORDER BY id": [
        "Film 1",
        "Film 1Film 2",
    ],
    "SELECT concat_ws(' - ', title, id) AS s FROM film WHERE id = 3": ["Film 3 - 3"],
    "SELECT strpos(lower(title), lower('ILM')) + position(lower('M') in lower(title)) AS s FROM film WHERE id = 3": [6],
    "SELECT replace(title, split_part(title, ' ', 1) || ' ', id::text || ': ') AS s FROM film WHERE id = 3": ["3: 3"],
    "SELECT trim(both 'F3 ' from title) AS s FROM film WHERE id = 3": ["ilm"],
    "SELECT replace(replace(replace(title, '1', 'the first one of all'), '2', 'the second one'), 'Film', 'A moving picture') AS s FROM film WHERE id = 1": [
        "A moving picture the first one of all"
    ],
    "SELECT format('%1$s/%1$s: %2$-5s|', id, title) AS s FROM film WHERE id = 3": ["3/3: Film 3|"],
    "SELECT round(power(1 + price / 100, id), 4) AS s FROM film WHERE id = 2": [1.01],
    "SELECT round(sum(power(price::double precision, id) + exp(price::double precision) + exp(0.5))::numeric) AS s FROM film WHERE id < 3": [
        7
    ],
    " UNION ALL ".join(f"SELECT title || ' ' || title || '{n}' AS s FROM film WHERE id = 1" for n in range(30)): [
        f"Film 1 Film 1{n}" for n in range(30)
    ],
    "WITH "
    + ", ".join(
        f"c{n} AS (SELECT CASE WHEN p > 100 THEN p - 1 WHEN p > 0 THEN p + 1 ELSE p END AS p FROM {f'c{n - 1}' if n else '(SELECT id AS p FROM film) AS q'})"
        for n in range(5)
    )
    + " SELECT max(p) AS s FROM c4": [45],
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT sum(i) AS s FROM n": [
        5000050000
    ],
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT (i * 3) % 7 FROM n) SELECT count(*) AS s FROM n": [6],
    "WITH RECURSIVE p(i, path) AS (SELECT 1, 'a' UNION ALL SELECT i + 1, path || '/' || i FROM p WHERE i < 4) SELECT path AS s FROM p WHERE i = 4": [
        "a/1/2/3"
    ],
    'WITH RECURSIVE p(i, seen) AS (SELECT 1, ARRAY[1] UNION ALL SELECT o.id, seen || o.id FROM p JOIN "Order" AS o ON o.id = p.i + 1 WHERE o.id <> ALL (seen) AND o.id < 5) SELECT cardinality(seen) AS s FROM p WHERE i = 4': [
        4
    ],
    "WITH RECURSIVE w(word, rest) AS (SELECT '', 'a,b,c,' UNION ALL SELECT substr(rest, 1, strpos(rest, ',') - 1), substr(rest, strpos(rest, ',') + 1) FROM w WHERE rest <> '') SELECT string_agg(word, '|') AS s FROM w WHERE word <> ''": [
        "a|b|c"
    ],
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9), m AS (SELECT max(i) AS i FROM n) SELECT i AS s FROM m": [
        9
    ],
    "SELECT count(*) AS s FROM letter WHERE length(body || body) = 2000000": [20],
    "SELECT length(body) AS s FROM letter WHERE id = 2": [1_000_000],
    "SELECT body AS s FROM letter WHERE id = 2": ["B" * 1_000_000],
    "SELECT count(DISTINCT body) AS s FROM note": [20000],
    "SELECT count(*) AS s FROM (SELECT film_id, made::date FROM note GROUP BY 1, 2 HAVING count(*) > 0) AS q": [20000],
    'SELECT count(*) AS s FROM (SELECT id FROM film INTERSECT SELECT film_id FROM "Order") AS q': [40],
    'SELECT count(*) AS s FROM film WHERE id NOT IN (SELECT film_id FROM "Order" WHERE seats > 5)': [12],
    "SELECT sum(x) AS s FROM unnest(string_to_array('1,2,3', ',')::int[]) AS x": [6],
    "SELECT ('[1, 2]'::jsonb -> 1)::int AS s": [2],
    'SELECT id::"text" || id::"numeric"::varchar(5) AS s FROM film WHERE id = 1': ["11"],
    "SELECT CAST('2020-01-02' AS date) - DATE '2020-01-01' AS s": [1],
    "SELECT EXTRACT(epoch FROM timestamp with time zone '1970-01-02')::bigint AS s": [86400],
    "SELECT '1 day'::interval = interval '24 hours' AS s": [True],
    "SELECT made AT TIME ZONE 'UTC' IS NULL AS s FROM note WHERE id = 1": [False],
    "SELECT CASE WHEN title ILIKE 'film 1' THEN 'one' ELSE 'other' END AS s FROM film WHERE id = 1": ["one"],
    "WITH a AS (SELECT id, price * 2 AS p FROM film), b AS (SELECT id, p + p AS p FROM a), c AS (SELECT id, p + p AS p FROM b) SELECT p AS s FROM c WHERE id = 4": [
        8
    ],
    "SELECT count(*) AS s FROM film WHERE " + " OR ".join(f"id = {n}" for n in range(300)): [40],
    "SELECT count(*) AS s FROM film WHERE id IN (" + ", ".join(map(str, range(5000))) + ")": [40],
    "SELECT " + " || ".join(["left(title, 1)"] * 60) + " AS s FROM film WHERE id = 1": ["F" * 60],
    "SELECT " + "+".join(["id"] * 200) + " AS s FROM film WHERE id = 1": [200],
}
"""By statement: what it gives as ``s``."""
