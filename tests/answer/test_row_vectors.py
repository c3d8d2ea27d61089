"""The vectors of rows: encoded once, kept over processes, forgotten when they are of no use, and searched."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import CatalogueWarning, EmptyCorpus, InvalidArgument

SCRIPT = """
CREATE TABLE town (name TEXT, country TEXT);
INSERT INTO town VALUES ('Lisbon', 'Portugal'), ('Porto', 'Portugal'), ('Porto', 'Portugal'), ('Oslo', 'Norway');
CREATE TABLE empty (x TEXT);
"""


class Letters:
    """An embedder that counts letters, and what it was asked to encode."""

    name = "letters"
    dimension = 26

    def __init__(self, fails_after=None):
        self.encoded = []
        self.fails_after = fails_after

    def encode(self, texts):
        if self.fails_after is not None and len(self.encoded) >= self.fails_after:
            raise KeyboardInterrupt
        self.encoded += texts
        counts = np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def towns(sqlite_file):
    return sqlite_file(SCRIPT, "towns.sqlite")


def search(file, embedder, cache, question="Porto Portugal", **options):
    """The rows nearest to a question, by a corpus that was opened for it alone, as in another process."""
    found = tf.rag(tf.open_corpus(file), embedder=embedder, cache=cache, **options).exec
    return found.index(), found(question)


def test_a_text_is_encoded_once_and_its_rows_are_all_found(towns, tmp_path):
    embedder = Letters()
    indexed, found = search(towns, embedder, tmp_path / "rows", k=3)
    assert sorted(embedder.encoded[:3], key=len) == [
        "- name: Oslo\n- country: Norway",
        "- name: Porto\n- country: Portugal",
        "- name: Lisbon\n- country: Portugal",
    ]
    assert (indexed.rows, indexed.copies, indexed.left_out) == (4, [1, 2, 1], 0)
    assert found["row"].str.contains("Porto").tolist() == [True, True, False]
    assert found["table"].unique().tolist() == ["towns.town"]


def test_another_process_encodes_only_what_is_new(towns, tmp_path):
    _, first = search(towns, Letters(), tmp_path / "rows")
    again = Letters()
    _, second = search(towns, again, tmp_path / "rows")
    assert again.encoded == ["Porto Portugal"]  # the question
    pd.testing.assert_frame_equal(first, second)
    with closing(sqlite3.connect(towns)) as connection, connection:
        connection.execute("UPDATE town SET name = 'Bergen' WHERE name = 'Oslo'")
    changed = Letters()
    search(towns, changed, tmp_path / "rows")
    assert changed.encoded == ["- name: Bergen\n- country: Norway", "Porto Portugal"]
    other = Letters()
    other.name = "other letters"
    search(towns, other, tmp_path / "rows")
    assert len(other.encoded) == 4


def test_the_file_holds_no_cell_and_is_its_owners_alone(towns, tmp_path):
    search(towns, Letters(), tmp_path / "rows")
    (file,) = (tmp_path / "rows").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"Portugal" not in file.read_bytes()


def test_what_was_encoded_before_a_kill_is_kept(sqlite_file, tmp_path, monkeypatch):
    monkeypatch.setattr("tagframe.corpus.vectors.STORED_EVERY", 0.0)
    file = sqlite_file("CREATE TABLE n (value TEXT);")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(
            "INSERT INTO n VALUES (?)", [(f"row {number}" + " of many" * 10,) for number in range(1_000)]
        )
    killed = Letters(fails_after=500)
    with pytest.raises(KeyboardInterrupt):
        search(file, killed, tmp_path / "rows")
    rest = Letters()
    search(file, rest, tmp_path / "rows")
    assert len(killed.encoded) >= 500
    assert len(rest.encoded) == 1_000 - len(killed.encoded) + 1


@pytest.mark.slow
def test_former_rows_are_forgotten_once_they_are_most(towns, tmp_path):
    for number in range(8):
        with closing(sqlite3.connect(towns)) as connection, connection:
            connection.execute("UPDATE town SET country = ?", [f"of {number} and only {number}"])
        search(towns, Letters(), tmp_path / "rows")
    (file,) = (tmp_path / "rows").iterdir()
    with closing(sqlite3.connect(file)) as connection:
        stored = connection.execute("SELECT sum(json_array_length(documents)) FROM vectors").fetchone()[0]
    assert stored <= 2 * 3


def test_a_bound_leaves_rows_out_evenly_says_so_and_forgets_nothing(sqlite_file, tmp_path):
    file = sqlite_file("CREATE TABLE n (value TEXT);")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany("INSERT INTO n VALUES (?)", [(f"row {chr(97 + number)}",) for number in range(20)])
    search(file, Letters(), tmp_path / "rows")
    bounded = Letters()
    indexed, _ = search(file, bounded, tmp_path / "rows", rows=4)
    assert (indexed.rows, indexed.left_out) == (4, 16)
    assert [text for _, text in indexed.texts] == [f"- value: row {letter}" for letter in "afkp"]
    whole = Letters()
    indexed, _ = search(file, whole, tmp_path / "rows")
    assert (indexed.rows, len(whole.encoded)) == (20, 1)


def test_nothing_is_kept_of_frames_nor_where_nothing_is_to_be(towns, tmp_path):
    frames = tf.open_corpus({"town": pd.DataFrame({"name": ["Oslo", "Faro"]})})
    tf.rag(frames, embedder=Letters(), cache=tmp_path / "rows").exec.index()
    assert not (tmp_path / "rows").exists() or not list((tmp_path / "rows").iterdir())
    search(towns, Letters(), None)
    assert not (tmp_path / "rows").exists() or not list((tmp_path / "rows").iterdir())


def test_a_damaged_file_is_said_and_passed_over(towns, tmp_path):
    search(towns, Letters(), tmp_path / "rows")
    (file,) = (tmp_path / "rows").iterdir()
    file.write_bytes(b"no database" * 100)
    with pytest.warns(CatalogueWarning, match="kept in memory only"):
        _, found = search(towns, Letters(), tmp_path / "rows")
    assert len(found) == 4


def test_hidden_columns_are_in_no_vector(towns, tmp_path):
    corpus = tf.open_corpus(towns)
    corpus = corpus.hide("town.country")
    embedder = Letters()
    tf.rag(corpus, embedder=embedder, cache=tmp_path / "rows").exec.index()
    assert embedder.encoded
    assert not any("country" in text for text in embedder.encoded)


@pytest.mark.parametrize("frame", [pd.DataFrame({"x": []}), pd.DataFrame({"x": [None, None]})])
def test_tables_that_say_nothing_are_named(frame):
    with pytest.raises(EmptyCorpus, match=r"no rows to search in frames\.a"):
        tf.rag(tf.open_corpus({"a": frame}), embedder=Letters()).exec("x")


def test_cells_of_any_kind_are_searched():
    odd = pd.DataFrame({"x": ["a\ud800b", b"\xff", {"b": 1}, None, "z" * 1_000_000], "y": [None] * 4 + ["c"]})
    found = tf.rag(tf.open_corpus({"a": odd}), embedder=Letters(), k=10).exec("a b")
    assert len(found) == 4
    assert found["score"].is_monotonic_decreasing


@pytest.mark.parametrize("wrong", [{"k": 0}, {"rows": 0}, {"rows": 1.5}, {"k": True}])
def test_numbers_of_rows_are_whole_and_at_least_one(towns, wrong):
    with pytest.raises(InvalidArgument, match="a whole number of rows"):
        tf.rag(tf.open_corpus(towns), **wrong)
