from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument


@pytest.fixture
def bank(sqlite_file: Callable[[str], Path]) -> Path:
    return sqlite_file(
        "CREATE TABLE client (id INTEGER PRIMARY KEY, city TEXT); INSERT INTO client VALUES (1, 'Brno');"
        "CREATE TABLE loan (id INTEGER PRIMARY KEY, client INTEGER); INSERT INTO loan VALUES (7, 1);"
        "CREATE TABLE old (x INTEGER); INSERT INTO old VALUES (1)"
    )


def test_a_refreshed_corpus_has_what_has_changed(bank: Path):
    corpus = tf.open_corpus(bank)
    assert corpus.is_like(corpus.refresh())
    corpus.keys.add("loan.client = client.id")
    with sqlite3.connect(bank) as database:
        database.executescript(
            "ALTER TABLE loan ADD COLUMN rate REAL; DROP TABLE old; CREATE TABLE card (id INTEGER);"
            "INSERT INTO card VALUES (1); INSERT INTO client VALUES (2, 'Opava')"
        )
    now = corpus.refresh()
    assert not now.is_like(corpus)
    assert now.ids == ("bank.card", "bank.client", "bank.loan")
    assert [column.name for column in now.profile("loan").columns] == ["id", "client", "rate"]
    assert now.profile("client").rows == 2
    assert "bank.old" in corpus
    assert [key.given for key in now.profile("loan").foreign_keys] == [True]
    with sqlite3.connect(bank) as database:
        database.execute("UPDATE client SET city = 'Praha' WHERE id = 1")
    assert "Praha" in now.refresh().profile("client").column("city").samples


def test_threads_refresh_at_the_same_time(bank: Path):
    corpus = tf.open_corpus(bank)
    with sqlite3.connect(bank) as database:
        database.execute("INSERT INTO loan VALUES (8, 1)")
    with ThreadPoolExecutor(4) as pool:
        rows = [now.profile("loan").rows for now in pool.map(lambda _: corpus.refresh(), range(4))]
    assert rows == [2] * 4


def test_a_part_and_a_pickle_of_a_corpus_are_not_refreshed(bank: Path):
    corpus = tf.open_corpus(bank)
    for part in (corpus.subset(["loan"]), pickle.loads(pickle.dumps(corpus))):
        with pytest.raises(InvalidArgument, match="open_corpus"):
            part.refresh()


def test_a_corpus_without_hidden_parts_is_opened_again_without_them(bank: Path):
    for corpus in (tf.open_corpus(bank, hide=["client.city"]), tf.open_corpus(bank).hide("client.city")):
        assert "city" not in corpus.read("client")
        assert [one.name for one in corpus.refresh().profile("client").columns] == ["id"]


@pytest.mark.filterwarnings("ignore::tagframe.errors.CatalogueWarning")
def test_what_is_private_in_a_corpus_is_private_in_the_refreshed_one(
    bank: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))  # where no facts can be written
    corpus = tf.open_corpus(bank)
    now = corpus.refresh()
    corpus.private("client.city")
    assert now.profile("client").column("city").private
    assert now.refresh().profile("client").column("city").private
