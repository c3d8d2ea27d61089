"""The vectors of rows: encoded once, and searched."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import EmptyCorpus, InvalidArgument

SCRIPT = """
CREATE TABLE town (name TEXT, country TEXT);
INSERT INTO town VALUES ('Lisbon', 'Portugal'), ('Porto', 'Portugal'), ('Porto', 'Portugal'), ('Oslo', 'Norway');
CREATE TABLE empty (x TEXT);
"""


class Letters:
    """An embedder that counts letters, and what it was asked to encode."""

    name = "letters"
    dimension = 26

    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        counts = np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def towns(sqlite_file):
    return sqlite_file(SCRIPT, "towns.sqlite")


def test_a_text_is_encoded_once_and_its_rows_are_all_found(towns):
    embedder = Letters()
    exec = tf.rag(tf.open_corpus(towns), embedder=embedder, k=3).exec
    indexed, found = exec.index(), exec("Porto Portugal")
    assert sorted(embedder.encoded[:3], key=len) == [
        "- name: Oslo\n- country: Norway",
        "- name: Porto\n- country: Portugal",
        "- name: Lisbon\n- country: Portugal",
    ]
    assert (len(indexed.rows), len(indexed.vectors)) == (4, 3)
    assert found["row"].str.contains("Porto").tolist() == [True, True, False]
    assert found["table"].unique().tolist() == ["towns.town"]


def test_hidden_columns_are_in_no_vector(towns):
    corpus = tf.open_corpus(towns)
    corpus = corpus.hide("town.country")
    embedder = Letters()
    tf.rag(corpus, embedder=embedder).exec.index()
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


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1.5}, {"k": True}])
def test_numbers_of_rows_are_whole_and_at_least_one(towns, wrong):
    with pytest.raises(InvalidArgument, match="must be a number of rows, at least 1"):
        tf.rag(tf.open_corpus(towns), **wrong)
