"""A corpus that answers from names while its rows are profiled."""

from __future__ import annotations

import pickle
import sqlite3
import threading
from contextlib import closing

import pytest

import tagframe as tf
from tagframe.corpus import indexing
from tagframe.retrieval import retrieve_tables


@pytest.fixture
def gate(monkeypatch):
    """Holds up profiling until it is set."""
    opened = threading.Event()
    real = indexing.profile_table

    def waiting(*args, **options):
        assert opened.wait(60)
        return real(*args, **options)

    monkeypatch.setattr(indexing, "profile_table", waiting)
    yield opened
    opened.set()


def test_names_answer_while_rows_are_profiled(bank, gate, tmp_path):
    corpus = tf.open_corpus(bank, catalogue=tmp_path / "c", first_look=True)
    assert corpus.ids == corpus.unprofiled == ("bank.client", "bank.loan")
    assert [column.name for column in corpus.profile("loan").columns] == ["loan_id", "client_id", "amount"]
    assert corpus.profile("loan").rows is None
    assert len(corpus.read("loan")) == 3
    found = retrieve_tables("amount of a loan", corpus, k=1, method="lexical")
    assert found.ids == ["bank.loan"]
    assert "2 of 2 tables are known by name only" in found.note
    with pytest.raises(TimeoutError):
        corpus.whole(timeout=0.01)
    assert pickle.loads(pickle.dumps(corpus)).ids == corpus.ids
    gate.set()
    whole = corpus.whole(timeout=60)
    assert whole.unprofiled == ()
    assert whole.profile("loan").rows == 3
    assert whole.whole() is whole
    assert retrieve_tables("amount of a loan", whole, k=1, method="lexical").note == ""


def test_what_is_unchanged_is_known_at_once(tmp_path, sqlite_file, gate):
    gate.set()
    folder = tmp_path / "lake"
    for name in "ab":
        sqlite_file(f"CREATE TABLE in_{name} (id INT);", f"lake/{name}.sqlite")
    tf.open_corpus(folder, catalogue=tmp_path / "c")
    assert tf.open_corpus(folder, catalogue=tmp_path / "c", first_look=True).unprofiled == ()
    gate.clear()
    with closing(sqlite3.connect(folder / "b.sqlite")) as file, file:
        file.execute("INSERT INTO in_b VALUES (1)")
    corpus = tf.open_corpus(folder, catalogue=tmp_path / "c", first_look=True)
    assert corpus.unprofiled == ("b.in_b",)
    gate.set()
    assert [profile.rows for profile in corpus.whole(timeout=60)] == [0, 1]


def test_what_goes_wrong_is_told_by_whoever_waits(tmp_path, monkeypatch, bank):
    def failing(*args, **options):
        raise MemoryError("no more")

    monkeypatch.setattr(indexing, "profile_table", failing)
    corpus = tf.open_corpus(bank, catalogue=tmp_path / "c", first_look=True)
    with pytest.raises(MemoryError, match="no more"):
        corpus.whole(timeout=60)
