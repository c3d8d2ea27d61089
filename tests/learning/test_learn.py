"""What is learned from statements that were run: which tables, which joins, and nothing that is data or hidden."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.facts import facts_folder
from tagframe.errors import InvalidArgument, SourceNotFound

SHOP = """
CREATE TABLE orders (id INTEGER, buyer INTEGER, st INTEGER, "total due" REAL);
INSERT INTO orders VALUES (1, 70, 3, 9.5), (2, 80, 1, 1.5), (3, 70, 3, 2);
CREATE TABLE customers (id INTEGER, ssn TEXT, city TEXT, boss INTEGER);
INSERT INTO customers VALUES (70, 'zqs-078', 'Porto', 80), (80, 'zqs-219', 'Faro', 90), (90, 'zqs-457', 'Lagos', 90);
CREATE TABLE lines (order_id INTEGER, number INTEGER, part TEXT);
INSERT INTO lines VALUES (1, 1, 'bolt'), (1, 2, 'nut'), (2, 1, 'bolt');
CREATE VIEW buyers AS SELECT DISTINCT c.city FROM customers c JOIN orders o ON o.buyer = c.id;
"""
JOINED = "SELECT c.city FROM orders o JOIN customers c ON o.buyer = c.id WHERE c.ssn = 'zqs-078'"


@pytest.fixture
def source(sqlite_file: Callable[..., Path]) -> Path:
    return sqlite_file(SHOP, "shop.sqlite")


@pytest.fixture
def shop(source: Path) -> tf.Corpus:
    return tf.open_corpus(source)


def joins(corpus: tf.Corpus) -> set[str]:
    return {join for joins in corpus.learned.joins for join in joins}


BUYER = "shop.orders.buyer = shop.customers.id"


@pytest.mark.parametrize(
    ("sql", "tables", "joined"),
    [
        (JOINED, ["customers", "orders"], {BUYER}),
        ("SELECT * FROM customers c, orders o WHERE (c.id = o.buyer) AND st > 2", ["customers", "orders"], {BUYER}),
        ("SELECT * FROM orders WHERE buyer IN (SELECT id FROM customers)", ["customers", "orders"], {BUYER}),
        (
            "SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.buyer)",
            ["customers", "orders"],
            {BUYER},
        ),
        (
            "WITH who AS (SELECT id AS x FROM customers) SELECT * FROM orders JOIN who ON buyer = x",
            ["customers", "orders"],
            {BUYER},
        ),
        (
            "SELECT * FROM (SELECT * FROM customers) c JOIN shop.orders o ON CAST(o.buyer AS INTEGER) = c.id",
            ["customers", "orders"],
            {BUYER},
        ),
        ("WITH orders AS (SELECT * FROM orders WHERE st = 1) SELECT * FROM orders", ["orders"], set()),
        ("SELECT * FROM orders o JOIN customers c ON o.buyer = c.id OR o.st = 1", ["customers", "orders"], set()),
        ("SELECT * FROM orders a JOIN orders b ON a.id = b.id", ["orders"], set()),
        (
            "SELECT * FROM customers a JOIN customers b ON a.boss = b.id",
            ["customers"],
            {"shop.customers.boss = shop.customers.id"},
        ),
        (
            "SELECT * FROM lines l JOIN orders o ON l.order_id = o.id AND l.number = o.st",
            ["lines", "orders"],
            {"shop.lines.order_id = shop.orders.id and shop.lines.number = shop.orders.st"},
        ),
        ("CREATE TABLE x AS SELECT * FROM lines", ["lines"], set()),
        (
            "WITH o AS (SELECT * FROM orders) INSERT INTO lines SELECT 1 FROM o JOIN customers c ON o.buyer = c.id",
            ["customers", "orders"],
            {BUYER},
        ),
        (
            "EXPLAIN (ANALYZE) SELECT * FROM orders o JOIN customers c ON o.buyer = c.id",
            ["customers", "orders"],
            {BUYER},
        ),
        (
            "SELECT * FROM orders o JOIN customers c ON o.buyer = c.id WHERE st = %(st)s AND city LIKE %s",
            ["customers", "orders"],
            {BUYER},
        ),
        (
            "SELECT * FROM (orders o JOIN lines l ON l.order_id = o.id) NATURAL JOIN (SELECT 1 AS id) c",
            ["lines", "orders"],
            {"shop.lines.order_id = shop.orders.id"},
        ),
        (
            "SELECT * FROM orders NATURAL JOIN customers",
            ["customers", "orders"],
            {"shop.customers.id = shop.orders.id"},
        ),
        ("SELECT * FROM orders o JOIN customers c ON CAST(o.st AS DATE) = c.id", ["customers", "orders"], set()),
        ("SELECT * FROM orders o JOIN customers c ON NOT (o.buyer = c.id)", ["customers", "orders"], set()),
        ("SELECT * FROM orders o JOIN customers c ON o.buyer = lower(c.id)", ["customers", "orders"], set()),
    ],
)
def test_tables_and_joins_of_a_statement(shop: tf.Corpus, sql: str, tables: list[str], joined: set[str]):
    assert shop.learn(sql).learned == 1
    assert shop.learned.tables[0] == [f"shop.{table}" for table in tables]
    assert joins(shop) == joined


@pytest.mark.slow
def test_a_join_that_was_run_is_a_key_unless_it_is_forbidden(shop: tf.Corpus):
    odd = "SELECT * FROM lines l JOIN customers c ON l.number = c.boss"
    shop.learn(odd)
    found = shop.retrieve_tables("Which parts did customers buy?", k=2, method="lexical")
    assert {*found.ids} == {"shop.lines", "shop.customers"}
    plan = found.join_plan
    assert "shop.lines.number" in str(plan)
    assert "shop.customers.boss" in str(plan)
    assert "joined this way by past statements" in "".join(str(step.key) for step in plan.steps)
    shop.keys.forbid("lines.number = customers.boss")
    assert "shop.lines.number" not in str(shop.retrieve_tables("Which parts did customers buy?", k=2, method="lexical"))
    shop.keys.forget("lines.number = customers.boss")
    assert shop.forget(odd) == 1
    assert shop.learned.empty


def test_literals_are_not_kept_unless_they_are_asked_for(source: Path, shop: tf.Corpus):
    shop.learn(JOINED)
    shop.learn('SELECT city FROM customers WHERE city = "Elvas" AND boss IN (7781, 7782) -- Mourao')
    kept = b"".join(path.read_bytes() for path in facts_folder().parent.rglob("*") if path.is_file())
    for secret in (b"zqs-078", b"Elvas", b"7781", b"Mourao"):
        assert secret not in kept
    assert not shop.learned.sql.str.contains("zqs|Elvas|7781|Mourao").any()
    shop.learn(JOINED, literals=True)
    assert "zqs-078" in "".join(shop.learned.sql)


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT sum(CASE WHEN city = \'Elvas\' THEN 1 END) AS "Elvas" FROM customers ORDER BY "Elvas"',
        "SELECT /*+ Elvas */ city FROM customers",
        "SELECT city ->> '$.Elvas', json_extract(ssn, '$.x[?(@.y == \"Elvas\")]') FROM customers",
        "SELECT 1 FROM customers WHERE city = $$Elvas$$ OR city LIKE '%\\' ESCAPE '\\' OR ssn = 'Elvas'",
    ],
)
@pytest.mark.parametrize("dialect", [None, "mysql", "postgres", "oracle"])
def test_no_part_of_a_statement_keeps_a_literal(shop: tf.Corpus, sql: str, dialect: str | None):
    assert shop.learn(sql, dialect=dialect).learned == 1 or dialect == "mysql"
    assert not shop.learned.sql.str.contains("Elvas").any()


def test_of_a_hidden_column_nothing_learned_has_values(source: Path, shop: tf.Corpus):
    shop.learn("Where does zqs-078 live?", JOINED, literals=True)
    shop.private("customers.ssn")
    for corpus in (shop, tf.open_corpus(source)):
        assert not corpus.learned.astype(str).apply(lambda column: column.str.contains("zqs")).to_numpy().any()
        assert joins(corpus) == {BUYER}
    kept = b"".join(path.read_bytes() for path in facts_folder().parent.rglob("*") if path.is_file())
    assert b"zqs-078" not in kept
    shop.learn("And zqs-219?", JOINED, literals=True)
    assert not shop.learned.astype(str).apply(lambda column: column.str.contains("zqs")).to_numpy().any()


def test_what_cannot_be_learned_is_counted_and_listed(shop: tf.Corpus):
    queries = pd.DataFrame({"sql": [JOINED, "SELECT FROM WHERE", "SELECT * FROM nowhere", "SET x = 1", None]})
    learned = shop.learn(queries)
    assert (learned.read, learned.learned, len(learned.left_out)) == (4, 1, 3)
    assert "no table here is called 'nowhere'" in str(learned)
    log = shop.learn("SELECT * FROM there; SELECT * FROM elsewhere")
    assert (log.learned, len(log.left_out)) == (0, 2)
    assert "no changes" in str(log)
    assert len(shop.learned) == 1


def test_what_is_left_out_for_one_reason_is_one_line_and_none_is_lost(shop: tf.Corpus):
    log = "; ".join([*(f"SELECT {'x ' * n}FROM ((lines" for n in range(4, 8)), *(f"FROM t{n}" for n in range(12))])
    said = str(shop.learn(f"{log}; BEGIN; SELECT 1 FROM lines; -- the end"))
    assert "learned 1 of 18" in said
    assert "4 left out: it cannot be parsed" in said
    assert "4 left out for other reasons, see left_out" in said


def test_a_dialect_that_is_none_is_refused(shop: tf.Corpus):
    with pytest.raises(InvalidArgument, match="postgres"):
        shop.learn(JOINED, dialect="postgress")


def test_statements_that_differ_in_literals_are_one_and_files_are_not_counted_twice(shop: tf.Corpus, tmp_path: Path):
    file = tmp_path / "queries.sql"
    file.write_text(";\n".join(f"SELECT part FROM lines WHERE number = {n} AND part = 'x;{n}'" for n in range(9)))
    for _ in range(2):
        learned = shop.learn(file)
        assert (learned.read, learned.distinct, learned.learned) == (9, 1, 1)
        assert shop.learned.runs.tolist() == [9]
    shop.learn("SELECT part FROM lines WHERE number = 1 AND part = 'y'")
    assert shop.learned.runs.tolist() == [10]


def test_files_of_questions_folders_and_templates(shop: tf.Corpus, tmp_path: Path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.sql").write_text(
        "{{ config(materialized='view') }}\nSELECT 1 FROM {{ ref('orders') }} JOIN {{ source('raw', 'customers') }}"
    )
    asked = [{"question": "How many?", "SQL": "SELECT 1 FROM lines"}]
    (tmp_path / "models" / "asked.json").write_text(json.dumps(asked))
    (tmp_path / "models" / "more.csv").write_text('question,query\nWho?,"SELECT city FROM customers"\n')
    assert shop.learn(tmp_path / "models").learned == 3
    assert {*shop.learned.question} == {"", "How many?", "Who?"}
    assert shop.forget("Who?") == 1
    assert shop.forget("models") == 2


def test_views_are_learned_from_the_source(shop: tf.Corpus):
    assert shop.learn("views").joins == (BUYER,)


def test_learned_statements_are_known_of_a_subset_and_adopted_by_a_copy(source: Path, shop: tf.Corpus, tmp_path: Path):
    shop.learn(JOINED)
    assert len(tf.open_corpus(source).learned) == 1
    copy = tmp_path / "other.sqlite"
    copy.write_bytes(source.read_bytes())
    assert tf.open_corpus(copy).adopt(shop) == 1
    assert joins(tf.open_corpus(copy)) == {"other.orders.buyer = other.customers.id"}
    assert len(shop.subset(["shop.orders", "shop.customers"]).learned) == 1
    assert shop.subset(["shop.lines"]).learned.empty


def test_a_join_of_one_of_many_against_all_values_is_no_key_and_said(shop: tf.Corpus):
    right = [f"SELECT {n} AS a{n} FROM orders o JOIN customers c ON o.buyer = c.id" for n in range(25)]
    wrong = "SELECT * FROM orders o JOIN customers c ON o.st = c.id"
    learned = shop.learn(pd.DataFrame({"sql": [*right, wrong]}))
    assert learned.doubtful == ("shop.orders.st = shop.customers.id",)
    assert "only one statement has it" in str(learned)
    assert joins(shop) == {BUYER}


def test_a_join_that_was_learned_before_the_many_without_it_is_doubted_as_one_among_them(shop: tf.Corpus):
    wrong = "SELECT * FROM orders o JOIN customers c ON o.st = c.id"
    for _ in range(2):
        assert len(shop.learn(wrong).joins) == 1
        right = [f"SELECT {n} AS a{n} FROM orders o JOIN customers c ON o.buyer = c.id" for n in range(25)]
        learned = shop.learn(pd.DataFrame({"sql": right}))
        assert (learned.doubtful, learned.learned) == (("shop.orders.st = shop.customers.id",), 25)
        assert joins(shop) == {BUYER}
        assert shop.learned.runs.sum() == 26
        shop.forget()


def test_what_is_forgotten_of_one_file_is_still_known_from_another(shop: tf.Corpus, tmp_path: Path):
    (tmp_path / "a.sql").write_text(f"{JOINED}; SELECT part FROM lines")
    (tmp_path / "b.sql").write_text(f"{JOINED}; {JOINED}")
    shop.learn(tmp_path / "a.sql")
    shop.learn(tmp_path / "b.sql")
    assert sorted(shop.learned.runs) == [1, 3]
    assert shop.forget("a.sql") == 1
    assert shop.learned.runs.tolist() == [2]
    assert shop.forget("b.sql") == 1
    with pytest.raises(InvalidArgument, match="PosixPath"):
        shop.forget(tmp_path / "a.sql")  # type: ignore[arg-type]


def test_names_that_several_databases_have(tmp_path: Path):
    frame = pd.DataFrame({"id": [1]})
    corpus = tf.open_corpus({"a.t": frame, "b.t": frame, "b.u": frame})
    learned = corpus.learn(pd.DataFrame({"sql": ["SELECT 1 FROM t", "SELECT 2 FROM t, u", "SELECT 3 FROM a.t"]}))
    assert learned.learned == 2
    assert "'t' may be a.t or b.t" in str(learned)
    assert sorted(corpus.learned.tables.tolist()) == [["a.t"], ["b.t", "b.u"]]
    assert corpus.learn(pd.DataFrame({"sql": ["SELECT 1 FROM t"], "database": ["A"]})).learned == 1


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_files_that_a_statement_reads_are_the_tables_of_a_lake(tmp_path: Path, engine: Literal["duckdb"] | None):
    pd.DataFrame({"id": [1, 2], "buyer": [70, 70]}).to_parquet(tmp_path / "orders.parquet")
    pd.DataFrame({"id": [70, 80], "city": ["Porto", "Faro"]}).to_parquet(tmp_path / "customers.parquet")
    corpus = tf.open_corpus(tmp_path, engine=engine)
    read = f"read_parquet('{tmp_path}/orders.parquet') o JOIN 'lake/customers/*.parquet' c ON o.buyer = c.id"
    assert corpus.learn(f"SELECT * FROM {read}", dialect="duckdb").learned == 1
    assert [join.replace(f"{tmp_path.name}.", "") for join in joins(corpus)] == ["orders.buyer = customers.id"]
    assert str(tmp_path) not in corpus.learned.sql[0]
    assert corpus.learn("SELECT * FROM read_csv('gone.csv')", dialect="duckdb").left_out[0][1].endswith("'gone'")


def test_what_is_no_place_of_queries_is_refused_by_name(shop: tf.Corpus, tmp_path: Path):
    with pytest.raises(SourceNotFound, match=r"there is no file or folder 'querys\.sql'"):
        shop.learn("querys.sql")
    with pytest.raises(SourceNotFound, match="holds no"):
        shop.learn(tmp_path)
    with pytest.raises(InvalidArgument, match="need a column 'sql'"):
        shop.learn(pd.DataFrame({"text": ["SELECT 1"]}))


def test_in_the_shell(source: Path, tmp_path: Path):
    from click.testing import CliRunner

    from tagframe.cli import main

    (tmp_path / "q.sql").write_text(f"{JOINED};\nSELECT * FROM nowhere")
    said = CliRunner().invoke(main, ["learn", str(source), str(tmp_path / "q.sql")])
    assert said.exit_code == 0, said.output
    assert "learned 1 of 2 distinct statements" in said.output
    assert len(tf.open_corpus(source).learned) == 1


SALES = """
CREATE SCHEMA sales;
CREATE TABLE sales.customer (id int PRIMARY KEY, city text);
CREATE TABLE sales.orders (id int PRIMARY KEY, buyer int);
CREATE VIEW sales.cities AS
    SELECT city FROM sales.customer c JOIN sales.orders o ON o.buyer = c.id WHERE city <> 'Elvas';
CREATE MATERIALIZED VIEW sales.ids AS SELECT id FROM sales.orders;
"""


def test_views_of_a_server_are_learned_and_its_log_as_a_frame(database: Callable[..., str], postgres: object):
    corpus = tf.open_corpus(database(SALES), progress=False)
    learned = corpus.learn("views")
    assert (learned.read, learned.learned, learned.joins) == (2, 2, ("sales.orders.buyer = sales.customer.id",))
    assert not corpus.learned.sql.str.contains("Elvas").any()
    assert corpus.learned.sql.str.contains("?", regex=False).tolist() == [True, False]
    assert not corpus.learned.sql.str.contains("%s").any()
    assert corpus.learn("SELECT 1 FROM d.sales.orders; SELECT 2 FROM audit.orders; SELECT 3 FROM orders").learned == 2
    log = pd.DataFrame({"query": ["SELECT * FROM sales.customer WHERE id = $1", "SET timezone = $1"], "calls": [7, 2]})
    assert corpus.learn(log).learned == 1
    assert corpus.learned.runs.max() == 7


def test_what_reads_nothing_is_not_parsed_and_nothing_is_logged_of_it(
    shop: tf.Corpus, caplog: pytest.LogCaptureFixture
):
    said = [
        "SHOW TABLES",
        "CALL f(1)",
        "FETCH 3 FROM x",
        "DO $$ SELECT 1 FROM lines $$",
        "CREATE FUNCTION f() SELECT 1",
    ]
    assert shop.learn(pd.DataFrame({"sql": said})).left_out == tuple((one, "it selects nothing") for one in said)
    assert not caplog.records


def test_statements_of_a_log_with_numbered_parameters(shop: tf.Corpus):
    log = pd.DataFrame(
        {
            "query": [
                "SELECT c.city FROM orders o JOIN customers c ON o.buyer = c.id WHERE st = $1 LIMIT $2",
                "SELECT * FROM orders WHERE id IN ($1, $2, $3)",
            ],
            "calls": [41, 7],
        }
    )
    shop.learn(log, dialect="postgres")
    assert shop.learned.runs.tolist() == [41, 7]
    assert shop.learned.sql[1] == "SELECT * FROM orders WHERE id IN (?)"
    assert joins(shop) == {BUYER}
