from __future__ import annotations

import pickle
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.references import read_key
from tagframe.errors import CatalogueWarning, ColumnNotFound, InvalidArgument, TableNotFound
from tagframe.keys import infer_key_pairs

SHOP = """
CREATE TABLE orders (id INTEGER, buyer INTEGER, st INTEGER);
INSERT INTO orders VALUES (1, 70, 3), (2, 80, 1), (3, 70, 3);
CREATE TABLE customers (id INTEGER, ssn TEXT, city TEXT);
INSERT INTO customers VALUES (70, '078-05-1120', 'Porto'), (80, '219-09-9999', 'Faro'), (90, '457-55-5462', 'Lagos');
"""


@pytest.fixture
def shop(sqlite_file: Callable[..., Path]) -> Path:
    return sqlite_file(SHOP, "shop.sqlite")


def pairs(corpus: tf.Corpus) -> list[str]:
    return [f"{key.left} = {key.right} {key.evidence.origin}" for key in infer_key_pairs(corpus.profiles)]


def test_a_key_that_was_told_is_taken_for_certain_and_remembered(shop):
    corpus = tf.open_corpus(shop)
    corpus.keys.add("orders.buyer = customers.id")
    assert "shop.orders.buyer = shop.customers.id given" in pairs(corpus)
    found = corpus.tables.tag.retrieve_tables("In which city does the buyer of each order live?", k=2)
    assert [f"{step}" for step in found.join_plan.steps] == ["shop.orders.buyer = shop.customers.id"]
    assert "given by the user" in found.join_plan.steps[0].key.evidence.reason
    again = tf.open_corpus(shop)
    assert "shop.orders.buyer = shop.customers.id given" in pairs(again)
    assert "shop.orders.buyer = shop.customers.id" in repr(again.keys)


def test_what_is_forbidden_is_no_key(shop):
    orders, customers = pd.DataFrame({"customer_id": [1, 2]}), pd.DataFrame({"customer_id": [1, 2, 3]})
    corpus = tf.open_corpus({"orders": orders, "customers": customers})
    assert len(pairs(corpus)) == 1
    corpus.keys.forbid("customers.customer_id = orders.customer_id")
    assert pairs(corpus) == []
    corpus.keys.add("orders.customer_id = customers.customer_id")
    assert len(pairs(corpus)) == 1, "the last word counts"
    corpus.keys.forbid("orders.customer_id = customers.customer_id")
    corpus.keys.forget("customers.customer_id = orders.customer_id")
    assert len(pairs(corpus)) == 1
    assert repr(corpus.keys).startswith("no declared keys of this corpus")


def test_a_declared_key_can_be_forbidden(sqlite_file):
    corpus = tf.open_corpus(sqlite_file("CREATE TABLE a (x INTEGER PRIMARY KEY); CREATE TABLE b (y REFERENCES a (x));"))
    assert pairs(corpus) == ["bank.b.y = bank.a.x declared"]
    corpus.keys.forbid("b.y = a.x")
    assert pairs(corpus) == []


def test_a_key_between_databases_joins_them():
    corpus = tf.open_corpus(
        {
            "till.orders": pd.DataFrame({"order": [1, 2, 3], "buyer": [70, 80, 70]}),
            "crm.customers": pd.DataFrame({"nr": [70, 80, 90], "city": ["Porto", "Faro", "Lagos"]}),
        }
    )
    corpus.keys.add("orders.buyer = customers.nr")
    merged = corpus.tables.tag.retrieve_tables("In which city does the buyer of each order live?", k=2).merge()
    assert merged["city"].tolist() == ["Porto", "Faro", "Porto"]


def test_a_composite_key(shop):
    corpus = tf.open_corpus(shop)
    corpus.keys.add("orders.buyer = customers.id and orders.st = customers.city")
    assert "shop.orders.(buyer, st) = shop.customers.(id, city) given" in pairs(corpus)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("orders.buyer", InvalidArgument, 'must be written as "table.column = other.column"'),
        ("orders.buyer = orders.buyer", InvalidArgument, "two columns of one"),
        ("orders.buyer = customers.id and customers.id = orders.st", InvalidArgument, "between two tables"),
        ("order.buyer = customers.id", TableNotFound, "did you mean 'orders'"),
        ("orders.byer = customers.id", ColumnNotFound, "did you mean 'buyer'"),
        ("buyer = id", InvalidArgument, "write the tables too"),
    ],
)
def test_a_key_that_cannot_be_read(shop, text, error, message):
    corpus = tf.open_corpus(shop)
    with pytest.raises(error, match=message):
        corpus.keys.add(text)
    assert repr(corpus.keys).startswith("no declared keys of this corpus")


def test_names_with_dots_and_other_case():
    corpus = tf.open_corpus({"a.b.c": pd.DataFrame({"x.y": [1]}), "a.d": pd.DataFrame({"X": [1], "x": [1]})})
    key = read_key("a.b.c.x.y = d.X", corpus.profiles)
    assert (key.left_table, key.left_columns, key.right_columns) == ("a.b.c", ("x.y",), ("X",))


def test_descriptions_are_kept_and_in_profiles(shop):
    corpus = tf.open_corpus(shop)
    corpus.describe("orders.st", "status code, 3 = shipped")
    corpus.describe("customers", "people who ever bought something")
    again = tf.open_corpus(shop)
    assert again.profile("orders").column("st").description == "status code, 3 = shipped"
    assert again.profile("customers").description == "people who ever bought something"
    again.describe("orders.st", "")
    assert tf.open_corpus(shop).profile("orders").column("st").description == ""
    with pytest.raises(TableNotFound):
        corpus.describe("nothing", "x")
    with pytest.raises(ColumnNotFound):
        corpus.describe("orders.nothing", "x")


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_is_told_of_a_part_is_known_of_the_whole(shop):
    corpus = tf.open_corpus(shop)
    part = corpus.subset(["orders"])
    part.describe("orders.st", "status")
    assert corpus.profile("orders").column("st").description == "status"
    copied = pickle.loads(pickle.dumps(corpus))
    assert copied.profile("orders").column("st").description == "status"
    copied.describe("orders.st", "state")
    assert tf.open_corpus(shop).profile("orders").column("st").description == "state"


def test_two_corpora_of_one_source_lose_nothing(shop):
    one, other = tf.open_corpus(shop), tf.open_corpus(shop)
    one.keys.add("orders.buyer = customers.id")
    other.describe("orders.st", "status")
    threads = [threading.Thread(target=one.describe, args=(f"customers.{name}", name)) for name in ("id", "city")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = tf.open_corpus(shop)
    assert "orders.buyer" in repr(again.keys)
    assert again.profile("orders").column("st").description == "status"
    assert again.profile("customers").column("city").description == "city"


def test_what_was_told_outlives_a_catalogue_of_another_version(shop, cache_folder):
    corpus = tf.open_corpus(shop)
    corpus.keys.add("orders.buyer = customers.id")
    [path] = cache_folder.glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.warns(CatalogueWarning, match="profiled again"):
        again = tf.open_corpus(shop)
    assert "orders.buyer" in repr(again.keys)
    assert "orders.buyer" in repr(tf.open_corpus(shop).keys)


def test_a_catalogue_that_cannot_be_written_is_said(shop, cache_folder, monkeypatch):
    corpus = tf.open_corpus(shop)
    [path] = cache_folder.glob("*.sqlite")
    with monkeypatch.context() as patch, closing(sqlite3.connect(path)) as other:
        patch.setattr("tagframe.corpus.catalogue.BUSY_SECONDS", 0.05)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.warns(CatalogueWarning, match=r"the new facts are not in the catalogue: .*locked"):
            corpus.describe("orders.st", "status")
    assert tf.open_corpus(shop).profile("orders").column("st").description == "status", "it is kept apart from it"
    assert corpus.profile("orders").column("st").description == "status"


def test_tables_of_which_nothing_is_told_stay_the_same_objects(shop):
    corpus = tf.open_corpus(shop)
    before = {profile.id: profile for profile in corpus.profiles}
    corpus.describe("orders.st", "status")
    assert corpus.profile("customers") is before["shop.customers"]
    assert corpus.profiles is corpus.profiles


def test_a_merge_has_no_hidden_column(shop):
    corpus = tf.open_corpus(shop)
    corpus.keys.add("orders.buyer = customers.id")
    corpus = corpus.hide("customers.ssn")
    found = corpus.tables.tag.retrieve_tables("In which city does the buyer of each order live?", k=2)
    assert list(found.merge().columns) == ["id", "buyer", "st", "city"]
    assert found.merge(limit=1)["city"].tolist() == ["Porto"]
    with pytest.raises(ColumnNotFound, match="no column 'ssn'"):
        found.merge(columns=["ssn"])
    plan = type(found.join_plan).from_json(found.join_plan.to_json())
    assert plan == found.join_plan
    assert "ssn" not in plan.sql()


def test_models_are_shown_descriptions_and_nothing_hidden(shop, live):
    corpus = tf.open_corpus(shop)
    corpus.describe("orders.st", "status code,\n3 = shipped")
    corpus.describe("customers", "people who bought")
    corpus = corpus.hide("customers.ssn")
    live.answers = lambda request: (
        "SELECT city FROM customers" if "<tables>" in request.prompt else '{"text": "Porto", "values": ["Porto"]}'
    )
    found = corpus.tables.tag.retrieve_tables("In which cities do the customers live?", k=2, method="lexical")
    tf.ask("In which cities do the customers live?", found)
    prompts = "\n".join(str(request.messages) for request in live.requests)
    assert "status code, 3 = shipped" in prompts
    assert "people who bought" in prompts
    assert "ssn" not in prompts
    assert "078-05-1120" not in prompts
