"""What a user told stays told: apart from what is rebuilt, of copies and other ids too; nothing opens without it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.told.files import facts_folder
from tagframe.errors import CatalogueWarning, CopiedDataWarning, UnreadableFacts

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


def is_private(corpus: tf.Corpus, table: str, column: str) -> bool:
    return corpus.profile(table).column(column).private


@pytest.mark.parametrize("damage", ["emptied", "deleted", "truncated", "noise"])
def test_the_column_stays_private_whatever_becomes_of_the_catalogue(shop, cache_folder, damage):
    tf.open_corpus(shop).private("customers.ssn")
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
    assert is_private(again, "customers", "ssn")


def test_a_damaged_file_of_facts_is_mended_from_its_copy(shop, cache_folder):
    tf.open_corpus(shop).private("customers.ssn")
    main, copy = facts_of()[:2]
    whole = main.read_bytes()
    for one in (main, copy):
        one.write_bytes(whole[:100])
        assert is_private(tf.open_corpus(shop), "customers", "ssn")
        assert one.read_bytes() == whole


def test_where_it_cannot_be_read_nothing_is_opened(shop, cache_folder):
    corpus = tf.open_corpus(shop)
    corpus.private("customers.ssn")
    main, copy = facts_of()[:2]
    main.write_bytes(b"")
    copy.write_bytes(copy.read_bytes().replace(b"ssn", b"ssm"))
    with pytest.raises(UnreadableFacts, match=r"shop-\w+\.facts and its copy .* remove both"):
        tf.open_corpus(shop)
    with pytest.raises(UnreadableFacts):
        corpus.read("customers")
    with pytest.raises(UnreadableFacts):
        corpus.describe("customers", "people")
    main.unlink()
    copy.unlink()
    assert is_private(tf.open_corpus(shop), "customers", "ssn"), "the catalogue has it too, as the message says"


@pytest.mark.parametrize("version", [b"1", b"3"])
def test_facts_that_another_version_wrote_are_no_damage(shop, cache_folder, version):
    tf.open_corpus(shop).private("customers.ssn")
    main, copy = facts_of()[:2]
    whole = main.read_bytes()
    for path in (main, copy):
        path.write_bytes(whole.replace(b"tagframe facts 2 ", b"tagframe facts %s " % version, 1))
    with pytest.raises(UnreadableFacts, match=r"another version of tagframe wrote .*save_facts") as said:
        tf.open_corpus(shop)
    assert "damaged" not in str(said.value)
    copy.write_bytes(whole)
    assert is_private(tf.open_corpus(shop), "customers", "ssn"), "one of this version serves"


def test_a_damaged_catalogue_of_an_earlier_version_is_refused(shop, cache_folder):
    tf.open_corpus(shop)
    for path in facts_of():
        path.unlink()
    [path] = cache_folder.glob("*.sqlite")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UnreadableFacts, match="delete it, open the data"):
        tf.open_corpus(shop)
    path.unlink()
    assert len(tf.open_corpus(shop)) == 2


def test_a_copied_folder_is_private_too_and_offers_the_rest(tmp_path, cache_folder):
    one = folder_of_csv(tmp_path / "one", people=SECRETS, orders="id,person\n1,2\n")
    corpus = tf.open_corpus(one)
    corpus.private("people.secret")
    corpus.describe("people", "those who came")
    corpus.keys.add("orders.person = people.id")
    other = Path(shutil.copytree(one, tmp_path / "other"))
    with pytest.warns(CopiedDataWarning) as said:
        again = tf.open_corpus(other)
    assert again.ids == ("other.orders", "other.people")
    assert is_private(again, "people", "secret")
    assert again.profile("people").description == ""
    assert again.keys.frame()["origin"].tolist() == ["inferred"]
    texts = [str(one.message) for one in said]
    assert len(texts) == 2
    assert re.search(r"other\.people\.secret is private: the table is a copy of one in .*one, where", texts[0])
    assert re.search(
        r"cop(?:y|ies) of data in .*one\. There, 2 facts were told, .*\. corpus\.adopt\(\) takes", texts[1]
    )
    assert again.adopt() == 2
    assert again.adopt() == 0
    assert tf.open_corpus(other).profile("people").description == "those who came"
    assert "other.orders.person = other.people.id" in repr(again.keys)
    again.private("people.secret", undo=True)
    assert not is_private(tf.open_corpus(other), "people", "secret"), "the last word is this one"
    assert is_private(tf.open_corpus(one), "people", "secret")


@pytest.mark.filterwarnings("ignore::tagframe.errors.CopiedDataWarning")
@pytest.mark.parametrize("when", ["nothing told", "told first", "copy changed", "original changed"])
def test_what_is_told_of_a_copy_stays_there(tmp_path, cache_folder, when):
    one = folder_of_csv(tmp_path / "one", people=SECRETS, orders="id,person\n1,2\n")
    if when in ("told first", "original changed"):
        tf.open_corpus(one).describe("orders", "what they bought")
    time.sleep(0.02)  # a file system counts in ticks of some milliseconds
    other = Path(shutil.copytree(one, tmp_path / "other"))
    if when == "copy changed":
        (other / "people.csv").write_text(SECRETS + "4,zqs-d,Braga\n")
    copy = tf.open_corpus(other)
    copy.private("people.city")
    copy.describe("people", "others")
    copy.keys.add("orders.person = people.id")
    if when == "original changed":
        (one / "people.csv").write_text(SECRETS + "5,zqs-e,Bern\n")
    for corpus in (tf.open_corpus(one), tf.open_corpus(one)):
        assert not is_private(corpus, "people", "city")
        assert corpus.profile("people").description == ""
        assert "given" not in corpus.keys.frame()["origin"].tolist()
        assert corpus.adopt() == 0


def test_a_moved_folder_keeps_what_it_was_told_and_so_does_a_file_of_two_sources(tmp_path, cache_folder):
    one = folder_of_csv(tmp_path / "one", people=SECRETS)
    corpus = tf.open_corpus(one)
    corpus.private("people.secret")
    corpus.describe("people", "those who came")
    assert tf.open_corpus(one / "people.csv").profile("people").description == "those who came"
    again = tf.open_corpus(one.rename(tmp_path / "moved"))
    assert is_private(again, "people", "secret")
    assert again.profile("people").description == "those who came"


def test_a_copy_that_was_changed_is_private_and_said(tmp_path, shop, cache_folder):
    tf.open_corpus(shop).private("customers.ssn")
    other = Path(shutil.copy(shop, tmp_path / "other.sqlite"))
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("INSERT INTO customers VALUES (91, 'zqs-987', 'Braga')")
        connection.commit()
    with pytest.warns(CopiedDataWarning, match=r"other\.customers\.ssn is private: .*shop\.sqlite.* corpus\.private"):
        again = tf.open_corpus(other)
    assert is_private(again, "customers", "ssn")


def test_other_data_of_the_same_names_is_not_private(tmp_path, cache_folder):
    tf.open_corpus(folder_of_csv(tmp_path / "one", people=SECRETS)).private("people.secret")
    others = "id,secret,city\n7,a,Rome\n8,b,Oslo\n9,c,Bern\n"
    assert not is_private(tf.open_corpus(folder_of_csv(tmp_path / "two", people=others)), "people", "secret")


def test_an_id_that_changes_carries_it_along(tmp_path, cache_folder):
    folder = folder_of_csv(tmp_path / "data", t=SECRETS)
    corpus = tf.open_corpus(folder)
    corpus.private("t.secret")
    corpus.describe("t.city", "where they live")
    pd.DataFrame({"id": [4], "secret": ["zqs-d"], "city": ["Braga"]}).to_parquet(folder / "t.parquet")
    again = tf.open_corpus(folder)
    assert again.ids == ("t.csv.t", "t.parquet.t")
    assert is_private(again, "t.csv.t", "secret")
    assert is_private(again, "t.parquet.t", "secret"), "it is called so, and nobody said that it may be read"
    assert again.profile("t.csv.t").column("city").description == "where they live"
    (folder / "t.csv").rename(folder / "u.csv")
    assert is_private(tf.open_corpus(folder), "u", "secret")


def test_a_corpus_that_was_opened_before_knows_of_it(shop, cache_folder):
    one, other = tf.open_corpus(shop), tf.open_corpus(shop)
    one.private("customers.ssn")
    assert is_private(other, "customers", "ssn")
    one.private("customers.ssn", undo=True)
    assert not is_private(other, "customers", "ssn")


def test_private_on_one_side_of_a_union(shop, cache_folder, tmp_path):
    people = tf.open_corpus(folder_of_csv(tmp_path / "crm", people=SECRETS))
    both = tf.open_corpus(shop).union(people)
    both.private("people.secret")
    assert is_private(people, "people", "secret")
    assert is_private(tf.open_corpus(tmp_path / "crm"), "people", "secret")
    people.describe("people.city", "home")
    assert both.profile("people").column("city").description == "home"
    both.private("customers.ssn")
    assert is_private(tf.open_corpus(shop), "customers", "ssn")
    both.keys.add("customers.city = people.city")
    assert "people.city" in repr(tf.open_corpus(shop).union(tf.open_corpus(tmp_path / "crm")).keys)


def test_facts_beside_the_data(shop, cache_folder, tmp_path, monkeypatch):
    corpus = tf.open_corpus(shop)
    corpus.private("customers.ssn")
    corpus.describe("orders.st", 'a "status",\nwith a tab\t and \x7f')
    corpus.keys.add("orders.buyer = customers.id")
    corpus.keys.forbid("orders.st = customers.id")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(shop, elsewhere / "copied.sqlite")
    corpus.save_facts(elsewhere / "tagframe.toml")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of another user"))
    again = tf.open_corpus(elsewhere)
    assert is_private(again, "customers", "ssn"), "though the database has another name"
    (elsewhere / "copied.sqlite").rename(elsewhere / "shop.sqlite")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of a third user"))
    again = tf.open_corpus(elsewhere / "shop.sqlite")
    assert is_private(again, "customers", "ssn")
    assert again.profile("orders").column("st").description == 'a "status", with a tab and'
    assert "orders.buyer = shop.customers.id" in repr(again.keys)
    assert "not shop.orders.st = shop.customers.id" in repr(again.keys)
    (elsewhere / "tagframe.toml").write_text('[[column]]\ntable = "shop.customers"\ncolumn = "ssn"\nhiden = 1\n[[x]]')
    with pytest.raises(UnreadableFacts, match="'x'"):
        tf.open_corpus(elsewhere / "shop.sqlite")


def test_two_processes_tell_at_once(shop, cache_folder):
    corpora = [tf.open_corpus(shop) for _ in range(4)]
    columns = ["customers.ssn", "customers.city", "orders.st", "orders.buyer"]
    pairs = zip(corpora, columns, strict=True)
    threads = [threading.Thread(target=one.private, args=(column,)) for one, column in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tf.open_corpus(shop).private_columns) == 4


def test_who_cannot_write_knows_it_in_memory(shop, cache_folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    corpus = tf.open_corpus(shop)
    with pytest.warns(CatalogueWarning, match="kept in this process and the catalogue only"):
        corpus.private("customers.ssn")
    assert is_private(corpus, "customers", "ssn")
    with pytest.warns(CatalogueWarning, match="the catalogue only"):
        again = tf.open_corpus(shop)
    assert is_private(again, "customers", "ssn")
