"""Facts that people, queries and models give about tables: in one file, whoever writes it, and in profiles."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.facts import facts_folder
from tagframe.errors import (
    CatalogueWarning,
    ColumnNotFound,
    InvalidArgument,
    SourceNotFound,
    TableNotFound,
    UnreadableFacts,
)
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


def test_what_is_told_of_a_part_is_known_of_the_whole(shop):
    corpus = tf.open_corpus(shop)
    part = corpus.subset(["orders"])
    part.describe("orders.st", "status")
    assert corpus.profile("orders").column("st").description == "status"
    copied = pickle.loads(pickle.dumps(corpus))
    assert copied.profile("orders").column("st").description == "status"
    copied.describe("orders.st", "state")
    assert tf.open_corpus(shop).profile("orders").column("st").description == "state"


def test_facts_are_kept_apart_from_the_catalogue(shop, cache_folder, monkeypatch):
    corpus = tf.open_corpus(shop)
    [path] = cache_folder.glob("*.sqlite")
    with monkeypatch.context() as patch, closing(sqlite3.connect(path)) as other:
        patch.setattr("tagframe.corpus.catalogue.BUSY_SECONDS", 0.05)
        other.execute("BEGIN EXCLUSIVE")
        corpus.describe("orders.st", "status")
    assert corpus.profile("orders").column("st").description == "status"
    path.unlink()
    assert tf.open_corpus(shop).profile("orders").column("st").description == "status"


BUYER = "orders.buyer = customers.id"


def facts_file() -> Path:
    (path,) = facts_folder().glob("*.facts")
    return path


def given(corpus: tf.Corpus) -> None:
    """Facts of several kinds."""
    corpus.keys.add(BUYER)
    corpus.describe("orders.st", "status")
    corpus.describe("customers", "people who bought")
    corpus.learn("Who lives in Porto?", "SELECT id FROM customers WHERE city = 'Porto'")
    corpus.learn("SELECT c.city FROM orders o JOIN customers c ON o.buyer = c.id")


def known(corpus: tf.Corpus) -> tuple[object, ...]:
    return (
        bool(fact_store(corpus).facts.keys),
        corpus.profile("orders").column("st").description,
        corpus.profile("customers").description,
        sorted(corpus.learned["question"]),
        len(corpus.learned["joins"].explode().dropna()),
    )


ALL = (True, "status", "people who bought", ["", "Who lives in Porto?"], 1)
NONE = (False, "", "", [], 0)


def test_all_facts_are_in_one_file_each_with_its_source(shop):
    given(tf.open_corpus(shop))
    path = facts_file()
    assert path.stat().st_mode & 0o777 == 0o600
    head, *facts = map(json.loads, path.read_text().splitlines())
    assert head["of"] == str(shop)
    assert [(kind, source) for kind, _, _, source in facts] == [
        ("key", "user"), ("column", "user"), ("table", "user"), ("statement", "queries"), ("statement", "queries")
    ]  # fmt: skip
    assert known(tf.open_corpus(shop)) == ALL


@pytest.mark.parametrize("damage", ["emptied", "cut", "cut between lines", "a letter", "noise", "a folder"])
def test_with_a_damaged_file_nothing_is_opened_and_nothing_overwritten(shop, damage):
    corpus = tf.open_corpus(shop)
    given(corpus)
    path, whole = facts_file(), facts_file().read_bytes()
    cut = {"emptied": b"", "cut": whole[:-9], "cut between lines": whole.rpartition(b"\n")[0], "noise": b"\xff\x00{"}
    cut["a letter"] = whole.replace(b"left_columns", b"left_colomns", 1)
    path.unlink()
    if damage in cut:
        path.write_bytes(cut[damage])
    else:
        path.mkdir()
    for use in (lambda: tf.open_corpus(shop), lambda: corpus.profiles, lambda: corpus.describe("orders", "x")):
        with pytest.raises(UnreadableFacts, match=r"shop-\w+\.facts is damaged .* remove it, and give"):
            use()
    if damage in cut:
        assert path.read_bytes() == cut[damage]
        path.unlink()
    else:
        path.rmdir()
    assert known(corpus) == ALL, "this process has them still"
    assert tf.open_corpus(shop).profile("customers").description == ""
    corpus.describe("orders", "x")
    assert known(tf.open_corpus(shop)) == ALL


def test_a_file_of_another_version_says_how_its_facts_are_read(shop):
    tf.open_corpus(shop).describe("orders", "x")
    path = facts_file()
    path.write_text(path.read_text().replace('"form": 3', '"form": 9'))
    with pytest.raises(UnreadableFacts, match=r"is of form 9, .* use the version that wrote it"):
        tf.open_corpus(shop)


DESCRIBING = """
import multiprocessing, sys, tagframe as tf

def describe(name):
    corpus = tf.open_corpus(sys.argv[1], progress=False)
    for turn in range(int(sys.argv[2])):
        corpus.describe(name, f"{name} {turn} " + "x" * 400)

tf.open_corpus(sys.argv[1], progress=False)  # imports what each of the others needs
fork = multiprocessing.get_context("fork")
for line in sys.stdin:
    processes = [fork.Process(target=describe, args=(name,)) for name in line.split()]
    for one in processes:
        one.start()
        print(one.pid, flush=True)
    for one in processes:
        one.join()
    print([one.exitcode for one in processes], flush=True)
"""


@pytest.fixture
def describing(shop) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """A program that describes as often what a line names, each name in a process of its own."""
    with ExitStack() as stack:
        yield lambda turns: stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", DESCRIBING, str(shop), str(turns)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip


@pytest.mark.slow
def test_processes_that_give_different_facts_at_once_lose_none(shop, describing):
    tf.open_corpus(shop)
    names = ["orders", "orders.st", "customers", "customers.city"]
    shown, _ = describing(5).communicate(" ".join(names), timeout=120)
    assert shown.splitlines()[-1] == "[0, 0, 0, 0]"
    described = fact_store(tf.open_corpus(shop)).facts.descriptions.values()
    assert sorted(" ".join(text.split()[:2]) for text in described) == sorted(f"{name} 4" for name in names)


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_file(shop, describing):
    corpus = tf.open_corpus(shop)
    corpus.describe("customers", "people")
    process = describing(10_000)
    for turn in range(4):
        before = facts_file().stat().st_mtime_ns
        print("orders.st", file=process.stdin, flush=True)
        pid = int(process.stdout.readline())
        while facts_file().stat().st_mtime_ns == before:
            assert process.poll() is None
        time.sleep(turn / 700)  # another moment of a write each time
        os.kill(pid, signal.SIGKILL)
        assert process.stdout.readline() == "[-9]\n"
        again = tf.open_corpus(shop)
        assert again.profile("customers").description == "people"
        assert again.profile("orders").column("st").description.startswith("orders.st")
        corpus.describe("orders.buyer", f"who bought, {turn}")  # the lock of a killed process is free


def test_facts_that_cannot_be_saved_are_known_in_this_process(shop, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    corpus = tf.open_corpus(shop)
    with pytest.warns(CatalogueWarning, match="kept in this process only: .*Not a directory"):
        corpus.describe("orders.st", "status")
    with pytest.warns(CatalogueWarning, match="kept in this process only"):
        corpus.learn("SELECT st FROM orders")
    assert corpus.learned.runs.tolist() == [1]
    assert corpus.profile("orders").column("st").description == "status"
    assert tf.open_corpus(shop).profile("orders").column("st").description == ""


def test_a_pickle_carries_the_facts_to_where_there_are_none(shop):
    corpus = tf.open_corpus(shop)
    given(corpus)
    data = pickle.dumps(corpus)
    facts_file().unlink()
    again = pickle.loads(data)
    assert known(again) == ALL
    assert known(tf.open_corpus(shop)) == NONE
    again.describe("orders.st", "state")
    assert known(tf.open_corpus(shop)) == (True, "state", *ALL[2:])


def test_a_saved_catalogue_of_frames_carries_the_facts(tmp_path):
    frames = {"orders": pd.DataFrame({"buyer": [1], "st": [3]}), "customers": pd.DataFrame({"id": [1], "city": ["A"]})}
    corpus = tf.open_corpus(frames)
    given(corpus)
    saved = corpus.save(tmp_path / "shop.catalogue")
    corpus.describe("orders.st", "later")
    assert known(tf.open_corpus(saved)) == ALL
    tf.open_corpus(saved).describe("orders.st", "")
    assert known(tf.open_corpus(saved)) == (True, "", *ALL[2:]), "its own file has the later facts"


def test_facts_of_other_data_hold_only_where_they_are_adopted(shop, tmp_path):
    corpus = tf.open_corpus(shop)
    given(corpus)
    copy = tf.open_corpus(shutil.copy(shop, tmp_path / "copy.sqlite"))
    assert known(copy) == NONE
    copy.describe("orders.st", "of the copy")
    assert copy.adopt(corpus) == 5
    assert copy.adopt(corpus) == 0
    assert known(copy) == known(tf.open_corpus(tmp_path / "copy.sqlite")) == ALL
    assert "copy.orders.buyer = copy.customers.id" in repr(copy.keys)
    copy.describe("customers", "others")
    assert known(tf.open_corpus(shop)) == ALL


def test_a_moved_folder_adopts_its_facts_by_its_old_path(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    for name, text in (("orders", "buyer,st\n1,3\n"), ("customers", "id,city\n1,Porto\n")):
        (old / f"{name}.csv").write_text(text)
    given(tf.open_corpus(old))
    corpus = tf.open_corpus(old.rename(tmp_path / "new"))
    assert known(corpus) == NONE
    assert corpus.adopt(old) == 5
    assert known(tf.open_corpus(tmp_path / "new")) == ALL
    for nothing in (tmp_path, tmp_path / "gone"):
        with pytest.raises(SourceNotFound):
            corpus.adopt(nothing)


def test_facts_of_a_name_that_several_tables_have_are_not_adopted():
    orders = pd.DataFrame({"buyer": [1], "st": [3]})
    one = tf.open_corpus({"a.orders": orders, "a.more": orders})
    one.describe("orders", "of a")
    one.describe("more", "of a")
    both = tf.open_corpus({"b.orders": orders, "c.orders": orders, "b.more": orders})
    assert both.adopt(one) == 1
    assert [profile.description for profile in both.profiles] == ["of a", "", ""]


def test_the_latest_fact_counts_and_facts_of_a_union_are_kept_with_their_tables(shop, tmp_path):
    (tmp_path / "crm.csv").write_text("id,home\n1,Porto\n")
    people = tf.open_corpus(tmp_path / "crm.csv")
    both = tf.open_corpus(shop).union(people)
    for text in ("state", "status"):
        both.describe("orders.st", text)
    both.describe("crm.home", "where they live")
    both.keys.add("customers.city = crm.home")
    both.describe("crm", "x")
    both.describe("crm", "")
    assert people.profile("crm").column("home").description == "where they live"
    assert tf.open_corpus(tmp_path / "crm.csv").profile("crm").description == ""
    assert tf.open_corpus(shop).profile("orders").column("st").description == "status"
    again = tf.open_corpus(shop).union(tf.open_corpus(tmp_path / "crm.csv"))
    assert "crm.home" in repr(again.keys)
    both.keys.forget("customers.city = crm.home")
    assert "declared keys" not in repr(tf.open_corpus(shop).keys).replace("no declared keys", "")


def test_facts_have_no_cells_of_private_columns(shop):
    corpus = tf.open_corpus(shop)
    corpus.learn("Where does 078-05-1120 live?", "SELECT city FROM customers WHERE ssn = '078-05-1120'", literals=True)
    store = fact_store(corpus)
    store.put({("annotated", ("shop.customers",)): ["of 078-05-1120", ["id", "ssn"]]})
    store.put({("annotated", ("shop.orders",)): ["a purchase", ["id"]]})
    assert b"078-05" in facts_file().read_bytes()
    store.put({("private", ("shop.customers", "ssn")): True})
    assert b"078-05" not in facts_file().read_bytes()
    assert corpus.learned["sql"].tolist() == ["SELECT city FROM customers WHERE ssn = ?"]
    assert corpus.profile("orders").description == "≈ a purchase"
    corpus.learn("SELECT city FROM customers WHERE ssn = '219-09-9999'", literals=True)
    assert b"219-09" not in facts_file().read_bytes()
