"""Hidden columns stay hidden: whatever becomes of the catalogue, and whoever reads or writes at the same time."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import indexing
from tagframe.corpus.catalogue import Catalogue
from tagframe.corpus.facts import facts_folder
from tagframe.errors import CatalogueWarning, HiddenColumn

SHOP = """
CREATE TABLE orders (id INTEGER, buyer INTEGER, st INTEGER);
INSERT INTO orders VALUES (1, 70, 3), (2, 80, 1), (3, 70, 3);
CREATE TABLE customers (id INTEGER, ssn TEXT, city TEXT);
INSERT INTO customers VALUES (70, 'zqs-078', 'Porto'), (80, 'zqs-219', 'Faro'), (90, 'zqs-457', 'Lagos');
"""


@pytest.fixture
def shop(sqlite_file: Callable[..., Path]) -> Path:
    return sqlite_file(SHOP, "shop.sqlite")


def below(*folders: Path) -> bytes:
    return b"".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())


def facts_of(name: str = "*") -> list[Path]:
    return sorted(facts_folder().glob(f"{name}.facts*"))


def folder_of_csv(folder: Path, **tables: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


SECRETS = "id,secret,city\n1,zqs-a,Porto\n2,zqs-b,Faro\n3,zqs-c,Lagos\n"


def is_hidden(corpus: tf.Corpus, table: str, column: str) -> bool:
    try:
        corpus.read(table, [column])
    except HiddenColumn:
        return corpus.profile(table).column(column).samples == ()
    return False


@pytest.mark.parametrize("damage", ["emptied", "deleted", "truncated", "noise"])
def test_the_column_stays_hidden_whatever_becomes_of_the_catalogue(shop, cache_folder, damage):
    tf.open_corpus(shop).hide("customers.ssn")
    [path] = cache_folder.glob("*.sqlite")
    data = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    else:
        path.write_bytes({"emptied": b"", "truncated": data[: len(data) // 2], "noise": os.urandom(5000)}[damage])
    if damage in ("truncated", "noise"):
        with pytest.warns(CatalogueWarning, match="profiled again"):
            again = tf.open_corpus(shop)
    else:
        again = tf.open_corpus(shop)
    assert is_hidden(again, "customers", "ssn")
    assert b"zqs-" not in below(cache_folder, facts_folder())


def test_a_folder_whose_name_has_a_dot(tmp_path, cache_folder, monkeypatch):
    monkeypatch.setattr("tagframe.corpus.catalogue_file.PUT_DOWN_EVERY", 0)
    folder = folder_of_csv(tmp_path / "2023.data", t=SECRETS)
    tf.open_corpus(folder).hide("t.secret")
    (folder / "t.csv").write_text(SECRETS + "4,zqs-d,Braga\n")
    seen = []
    real = Catalogue.add

    def add(self, *given, **named):
        real(self, *given, **named)
        seen.append(below(cache_folder))

    monkeypatch.setattr(Catalogue, "add", add)
    again = tf.open_corpus(folder)
    assert is_hidden(again, "t", "secret")
    assert seen
    assert not any(b"zqs-" in data for data in seen)


@pytest.fixture
def slow_profiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The profiling of a table called ``customers`` waits, after its rows were read, until it may go on."""
    read, may_go_on = threading.Event(), threading.Event()
    real = indexing.profile_table

    def profile_table(database, shape, chunks, **options):
        profile = real(database, shape, chunks, **options)
        if shape.name == "customers":
            read.set()
            assert may_go_on.wait(60)
        return profile

    monkeypatch.setattr(indexing, "profile_table", profile_table)
    yield read, may_go_on
    may_go_on.set()


def test_hide_during_the_profiling_of_a_first_look(shop, cache_folder, slow_profiling, monkeypatch):
    monkeypatch.setattr("tagframe.corpus.catalogue_file.PUT_DOWN_EVERY", 0)
    read, may_go_on = slow_profiling
    corpus = tf.open_corpus(shop, first_look=True)
    assert read.wait(60)
    corpus.hide("customers.ssn")
    may_go_on.set()
    whole = corpus.whole(60)
    assert is_hidden(whole, "customers", "ssn")
    assert whole.profile("customers").rows == 3
    assert b"zqs-" not in below(cache_folder, facts_folder())
    assert b"zqs-" not in pickle.dumps(whole)


def test_hide_while_another_corpus_indexes(shop, cache_folder, slow_profiling):
    read, may_go_on = slow_profiling
    first = tf.open_corpus(shop, first_look=True)
    assert read.wait(60)
    done: list[tf.Corpus] = []
    other = tf.open_corpus({"frames": pd.DataFrame({"a": [1]})})
    thread = threading.Thread(target=lambda: done.append(first.whole(60)))
    thread.start()
    second = tf.open_corpus(shop, first_look=True, catalogue=cache_folder / "other.catalogue")
    second.hide("customers.ssn")
    may_go_on.set()
    thread.join()
    second.whole(60)
    assert is_hidden(done[0], "customers", "ssn")
    assert len(other) == 1
    assert b"zqs-" not in below(cache_folder, facts_folder())


def test_a_corpus_that_was_opened_before_knows_of_it(shop, cache_folder):
    one, other = tf.open_corpus(shop), tf.open_corpus(shop)
    assert other.profile("customers").column("ssn").samples
    one.hide("customers.ssn")
    assert is_hidden(other, "customers", "ssn")
    assert b"zqs-" not in pickle.dumps(other)
    one.show("customers.ssn")
    assert "ssn" in other.read("customers")


def test_hide_on_one_side_of_a_union(shop, cache_folder, tmp_path):
    people = tf.open_corpus(folder_of_csv(tmp_path / "crm", people=SECRETS))
    both = tf.open_corpus(shop).union(people)
    both.hide("people.secret")
    assert is_hidden(people, "people", "secret")
    assert is_hidden(tf.open_corpus(tmp_path / "crm"), "people", "secret")
    people.describe("people.city", "home")
    assert both.profile("people").column("city").description == "home"
    both.hide("customers.ssn")
    assert is_hidden(tf.open_corpus(shop), "customers", "ssn")
    both.keys.add("customers.city = people.city")
    assert "people.city" in repr(tf.open_corpus(shop).union(tf.open_corpus(tmp_path / "crm")).keys)
    assert b"zqs-" not in pickle.dumps(both)
    assert b"zqs-" not in below(cache_folder, facts_folder())


def test_hidden_lists_what_is_hidden(shop, cache_folder):
    corpus = tf.open_corpus(shop)
    assert corpus.hidden.empty
    corpus.hide("customers.ssn")
    corpus.hide("orders.st", from_models=True)
    assert corpus.hidden.to_dict("records") == [
        {"table": "shop.customers", "column": "ssn", "hidden_from": "everybody", "joinable": True},
        {"table": "shop.orders", "column": "st", "hidden_from": "models", "joinable": True},
    ]
    corpus.show("customers.ssn")
    assert tf.open_corpus(shop).hidden["column"].tolist() == ["st"]


def test_two_processes_tell_at_once(shop, cache_folder):
    corpora = [tf.open_corpus(shop) for _ in range(4)]
    columns = ["customers.ssn", "customers.city", "orders.st", "orders.buyer"]
    threads = [threading.Thread(target=one.hide, args=(column,)) for one, column in zip(corpora, columns, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tf.open_corpus(shop).hidden) == 4
