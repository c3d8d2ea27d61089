"""What is known of a server's tables is what they are now."""

from __future__ import annotations

from decimal import Decimal

import pytest

import tagframe as tf
from tagframe.engines.postgres.connection import Reading, close_connections, reading
from tagframe.engines.postgres.engine import postgres_engine
from tagframe.errors import FanOut, UnreadableTable
from tagframe.merging import plan_tables, run_plan
from tests.answer.guarded import run_sql
from tests.engines.sources import run

pytestmark = pytest.mark.slow

SCRIPT = """
CREATE SCHEMA shop;
CREATE TABLE shop.customer (customer_id int PRIMARY KEY, name varchar(20), spent numeric(12, 2), share numeric(4, 1));
INSERT INTO shop.customer SELECT g, 'c' || g, g * 1.5, CASE g WHEN 1 THEN 'NaN' ELSE g::numeric END
    FROM generate_series(1, 9) g;
CREATE TABLE shop.sale (sale_id int PRIMARY KEY, customer_id int, amount numeric(12, 2));
INSERT INTO shop.sale SELECT g, 1 + g % 9, g FROM generate_series(1, 100) g;
"""
TWICE = "INSERT INTO shop.customer VALUES (1, 'again', 1)"


@pytest.fixture
def star(database):
    """The URL, and a merge of three rows of its two tables."""
    url = database(SCRIPT)
    corpus = tf.open_corpus(url, progress=False)
    plan = plan_tables(corpus, ["shop.sale", "shop.customer"])
    return url, lambda **options: run_plan(plan, corpus, **{"limit": 3, **options})[0]


@pytest.mark.parametrize(
    "change",
    [
        f"ALTER TABLE shop.customer DROP CONSTRAINT customer_pkey; {TWICE}",
        f"ALTER TABLE shop.customer RENAME TO old; CREATE TABLE shop.customer AS SELECT * FROM shop.old; {TWICE}",
        "ALTER SCHEMA shop RENAME TO was; CREATE SCHEMA shop; CREATE TABLE shop.sale AS SELECT * FROM was.sale; "
        f"CREATE TABLE shop.customer AS SELECT * FROM was.customer; {TWICE}",
        "CREATE TABLE shop.more () INHERITS (shop.customer); INSERT INTO shop.more VALUES (1, 'again', 1)",
    ],
    ids=["key dropped", "table replaced", "schema replaced", "inherited from"],
)
def test_a_key_that_holds_no_more_is_not_relied_on(star, change):
    url, merge = star
    assert len(merge()) == 3
    run(url, change)
    with pytest.raises(FanOut):
        merge()


def test_a_type_that_changed_is_seen(star):
    url, merge = star
    assert isinstance(merge()["amount"].iloc[0], Decimal)
    run(url, "ALTER TABLE shop.sale ALTER COLUMN amount TYPE float8")
    assert merge()["amount"].dtype == "float64"
    run(url, "REVOKE ALL ON SCHEMA shop FROM PUBLIC; DROP TABLE shop.sale")
    with pytest.raises(UnreadableTable, match=r"no longer in .*, or was renamed"):
        merge()


def test_exact_numbers_are_exact_whichever_way_they_come(star):
    url, merge = star
    few, many = merge(columns=["sale_id", "spent", "share"], limit=100), merge(columns=["sale_id", "spent"], limit=None)
    assert {str(cell) for cell in many["spent"]} == {f"{1.5 * g:.2f}" for g in range(1, 10)}
    assert sorted(map(str, few["spent"])) == sorted(map(str, many["spent"]))
    assert {str(cell) for cell in few["share"]} == {"NaN", *(f"{g}.0" for g in range(2, 10))}
    engine = postgres_engine(url, None)
    query = "SELECT *, NULL::int AS nothing, ARRAY[1, 2] AS list, '2020-01-01'::date AS day FROM shop.customer"
    with reading(engine.server) as reads:
        assert reads.fetch(query, few=True).equals(reads.fetch(query))


@pytest.mark.parametrize(
    "change",
    [
        "COMMENT ON COLUMN shop.sale.amount IS 'in crowns'",
        "ALTER TABLE shop.sale ADD FOREIGN KEY (customer_id) REFERENCES shop.customer",
        "CREATE UNIQUE INDEX ON shop.sale (amount)",
        "ALTER TABLE shop.sale ALTER COLUMN amount SET NOT NULL",
        "CREATE VIEW shop.named AS SELECT name FROM shop.customer",
        "CREATE SCHEMA more",
    ],
)
def test_what_changes_in_the_catalogue_changes_its_state(database, change):
    engine = postgres_engine(database(SCRIPT), None)
    run(engine.server.conninfo, "ANALYZE")
    before = engine.fingerprint()
    assert engine.fingerprint() == before
    run(engine.server.conninfo, change)
    assert engine.fingerprint() != before


def test_a_database_is_opened_again_without_its_types(database, monkeypatch):
    url = database(SCRIPT)
    first = tf.open_corpus(url, progress=False)
    close_connections()
    monkeypatch.setattr(Reading, "__init__", lambda *_: pytest.fail("ADBC reads the types of all tables first"))
    again = tf.open_corpus(url, progress=False)
    assert again.ids == first.ids
    assert run_sql("SELECT count(*) AS n FROM sale", again, {"sale": "shop.sale"})["n"].tolist() == [100]


def test_statistics_of_a_column_that_holds_nan_are_read(database):
    number = "CASE WHEN g % 2 = 0 THEN 'NaN' ELSE 2::{0} END AS {0}".format
    url = database(
        f"CREATE TABLE spent AS SELECT {number('numeric')}, {number('float8')} FROM generate_series(1, 90) g; ANALYZE"
    )
    profile = tf.open_corpus(url, progress=False).profile("spent")
    assert [(float(column.minimum), float(column.maximum)) for column in profile.columns] == [(2, 2), (2, 2)]


def test_an_empty_result_keeps_its_dtypes_beside_exact_numbers(star):
    _, merge = star
    whole, empty = merge(), merge(where={"sale_id": -1})
    assert not len(empty)
    assert empty.dtypes.tolist() == whole.dtypes.tolist()
