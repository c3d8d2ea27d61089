"""A role that may CREATE in a schema puts code there, which fails when it is run: nothing that we send runs it."""

from __future__ import annotations

import psycopg
import pytest
from scripted import Scripted

import tagframe as tf
from tagframe.answer import exec_sql
from tagframe.errors import UnreadableTableWarning
from tagframe.merging import plan_tables, run_plan
from tests.answer.guarded import run_sql

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE TABLE client (name varchar, city varchar, born timestamp, score numeric);
INSERT INTO client SELECT 'c' || g, (ARRAY['Wien', 'Linz'])[1 + g % 2], '2000-01-01', g / 2.0
    FROM generate_series(1, 60) g;
CREATE TABLE sale (id int, client varchar, amount numeric, mood text);
INSERT INTO sale SELECT g, 'c' || 1 + g % 60, g * 1.5, 'x' FROM generate_series(1, 200) g;
GRANT CREATE, USAGE ON SCHEMA public TO stranger;
SET ROLE stranger;
CREATE FUNCTION public.ran(text) RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a stranger''s % ran', $1; END $$;
"""
OPERATORS = ["=", "<>", "<", ">", "<=", ">=", "~", "||", "+", "-", "*", "/"]
TYPES = ["varchar", "text", "int", "numeric", "timestamp"]
FUNCTIONS = ["lower", "upper", "length", "octet_length", "md5", "encode", "trim_scale", "count", "max", "min", "sum",
             "coalesce", "concat", "to_char", "quote_nullable", "repeat", "text", "int8", "date", "pg_column_size",
             "format_type", "set_config", "current_setting", "unnest", "jsonb_agg"]  # fmt: skip
CASTS = """
CREATE TYPE public.colour AS ENUM ('red', 'green');
CREATE FUNCTION public.as_text(public.colour) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM public.ran('cast'); RETURN 'x'; END $$;
CREATE CAST (public.colour AS text) WITH FUNCTION public.as_text(public.colour) AS IMPLICIT;
CREATE TABLE public.painted (id int, colour public.colour, colours public.colour[], plain text);
INSERT INTO public.painted VALUES (1, 'red', '{red,green}', 'p');
CREATE TYPE public.int8 AS (x int);
CREATE DOMAIN public.varchar AS pg_catalog.int4 CHECK (public.ran('domain') IS NULL);
"""


def code() -> str:
    """Operators and functions that take the types of the tables, each of which fails where it is run."""
    parts = []
    for kind in TYPES:
        code = f"LANGUAGE plpgsql AS $$ BEGIN PERFORM public.ran('function of {kind}'); RETURN NULL; END $$"
        taken = f"pg_catalog.{'int4' if kind == 'int' else kind}"
        parts.append(f"CREATE FUNCTION public.op({taken}, {taken}) RETURNS boolean {code}")
        parts += [
            f"CREATE OPERATOR public.{sign} (LEFTARG = {taken}, RIGHTARG = {taken}, FUNCTION = public.op)"
            for sign in OPERATORS
        ]
        parts += [f'CREATE FUNCTION public."{name}"({taken}) RETURNS text {code}' for name in FUNCTIONS]
    return ";\n".join(parts)


@pytest.fixture(scope="module")
def corpus(postgres) -> tf.Corpus:
    """Opened by a superuser: what the owner of a schema lets others CREATE would have all rights there."""
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS strangers WITH (FORCE)")
        owner.execute("DROP ROLE IF EXISTS stranger")
        owner.execute("CREATE ROLE stranger")
        owner.execute("CREATE DATABASE strangers")
    with psycopg.connect(postgres.url("strangers"), autocommit=True) as owner:
        owner.execute(f"{SCRIPT}; {code()}; {CASTS}")
    with psycopg.connect(postgres.url("strangers"), autocommit=True) as owner:
        with pytest.raises(psycopg.errors.RaiseException, match="a stranger's function of varchar ran"):
            owner.execute("SELECT count(*) FROM client JOIN sale ON client.name = sale.client")
        with pytest.raises(psycopg.errors.RaiseException, match="a stranger's cast ran"):
            owner.execute("SELECT colour::text FROM painted")
        owner.execute("ANALYZE client")  # of one table there are statistics, of others a sample
    with pytest.warns(UnreadableTableWarning, match=r"column 'colours?' of public\.painted: .*a cast of its type"):
        return tf.open_corpus(postgres.url("strangers"), progress=False)


def test_its_tables_are_profiled_and_read(corpus):
    assert corpus.profile("public.client").rows == 60
    assert corpus.read("public.client")["city"].nunique() == 2
    assert corpus.read("public.sale").shape == (200, 4)


def test_a_column_whose_casts_are_a_strangers_is_not_read(corpus):
    assert [column.name for column in corpus.profile("public.painted").columns] == ["id", "plain"]
    assert corpus.read("public.painted").to_dict("list") == {"id": [1], "plain": ["p"]}
    left_out = ["column 'colour' of public.painted", "column 'colours' of public.painted"]
    assert all(name in str(problem) for name, problem in zip(left_out, corpus.problems, strict=True))


def test_a_merge_runs_none_of_it(corpus):
    corpus.keys.add("public.sale.client = public.client.name")
    plan = plan_tables(corpus, ["public.sale", "public.client"])
    for how in ("inner", "left", "outer"):
        merged, report = run_plan(plan, corpus, how=how, on_loss="allow", where={"city": ["Wien", "Linz"]})
        assert (len(merged), report.engine) == (200, "postgres")
        assert report.steps


def test_a_statement_runs_none_of_it(corpus):
    tables = {"client": "public.client", "sale": "public.sale"}
    sql = (
        "SELECT c.city, count(*) AS n, sum(s.amount) AS total, max(length(lower(c.name) || s.mood)) AS longest "
        "FROM client AS c JOIN sale AS s ON s.client = c.name WHERE c.name <> 'x' AND c.score > 0 "
        "GROUP BY c.city ORDER BY c.city"
    )
    assert run_sql(sql, corpus, tables)["n"].tolist() == [100, 100]
    joined = "string_agg(city, repeat('-', 20) ORDER BY name)"
    text = f"SELECT {joined} AS s FROM client WHERE name IN (SELECT client FROM sale)"
    assert len(run_sql(text, corpus, tables)["s"][0]) == 60 * 4 + 59 * 20


def test_functions_that_ask_a_model_run_none_of_it(corpus):
    with tf.context(lm=Scripted(lambda message: "True")):
        rows = exec_sql(corpus)("SELECT name FROM client WHERE sem_filter('{city} is in Austria') AND score > 20")
    assert len(rows) == 20
