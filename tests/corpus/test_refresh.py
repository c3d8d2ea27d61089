from __future__ import annotations

import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE client (id INTEGER PRIMARY KEY, city TEXT); INSERT INTO client VALUES (1, 'Brno');"
            "CREATE TABLE loan (id INTEGER PRIMARY KEY, client INTEGER); INSERT INTO loan VALUES (7, 1);"
            "CREATE TABLE old (x INTEGER); INSERT INTO old VALUES (1)"
        )
    return path


def test_a_refreshed_corpus_says_in_words_what_has_changed(bank: Path):
    corpus = tf.open_corpus(bank)
    assert corpus.changes == () == corpus.refresh().changes
    corpus.keys.add("loan.client = client.id")
    with sqlite3.connect(bank) as database:
        database.executescript(
            "ALTER TABLE loan ADD COLUMN rate REAL; DROP TABLE old; CREATE TABLE card (id INTEGER);"
            "INSERT INTO card VALUES (1); INSERT INTO client VALUES (2, 'Opava')"
        )
    now = corpus.refresh()
    assert now.changes == (
        "bank.card is new",
        "bank.client: 2 rows, it had 1 rows",
        "bank.loan: new column rate",
        "bank.old is gone",
    )
    assert "bank.old" in corpus
    assert [key.given for key in now.profile("loan").foreign_keys] == [True]
    with sqlite3.connect(bank) as database:
        database.execute("UPDATE client SET city = 'Praha' WHERE id = 1")
    assert now.refresh().changes == ("bank.client: other cells",)


def test_threads_refresh_at_the_same_time(bank: Path):
    corpus = tf.open_corpus(bank)
    with sqlite3.connect(bank) as database:
        database.execute("INSERT INTO loan VALUES (8, 1)")
    with ThreadPoolExecutor(4) as pool:
        told = [found.changes for found in pool.map(lambda _: corpus.refresh(), range(4))]
    assert told == [("bank.loan: 2 rows, it had 1 rows",)] * 4


def test_a_part_and_a_pickle_of_a_corpus_are_not_refreshed(bank: Path):
    corpus = tf.open_corpus(bank)
    for part in (corpus.subset(["loan"]), pickle.loads(pickle.dumps(corpus))):
        with pytest.raises(InvalidArgument, match="open_corpus"):
            part.refresh()
