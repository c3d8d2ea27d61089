from __future__ import annotations

import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import corpus_vectors, vectors_of
from tagframe.corpus.documents import column_document, table_document
from tagframe.errors import CatalogueWarning
from tests.letters import Letters


def vectors_in(corpus, embedder, **options):
    return corpus_vectors(corpus.profiles, embedder, vectors_of(corpus), **options)


def columns_of(vectors):
    return vectors.distinct[vectors.column_row]


def test_the_vectors_of_tables_and_columns(bank):
    corpus, letters = tf.open_corpus(bank), Letters()
    vectors = vectors_in(corpus, letters)
    assert vectors.tables.shape == (2, 26)
    assert columns_of(vectors).shape == (6, 26)
    assert vectors.column_table.tolist() == [0, 0, 0, 1, 1, 1]
    loan = corpus.profile("loan")
    assert vectors.tables.dtype == columns_of(vectors).dtype == np.float32
    np.testing.assert_array_equal(vectors.tables, Letters().encode(list(map(table_document, corpus))))
    np.testing.assert_array_equal(
        columns_of(vectors)[3:], Letters().encode([column_document(loan, column) for column in loan.columns])
    )


def test_nothing_is_encoded_twice(bank, tmp_path):
    corpus, letters = tf.open_corpus(bank), Letters()
    first = vectors_in(corpus, letters)
    asked = list(letters.asked)
    assert len(asked) == len(set(asked)) == 8
    again = [
        vectors_in(corpus, letters),
        vectors_in(tf.open_corpus(bank), letters),
        vectors_in(pickle.loads(pickle.dumps(corpus)), letters),
        vectors_in(tf.open_corpus(corpus.save(tmp_path / "index")), letters),
    ]
    assert letters.asked == asked
    for vectors in again:
        np.testing.assert_array_equal(vectors.tables, first.tables)
        np.testing.assert_array_equal(columns_of(vectors), columns_of(first))
    assert columns_of(vectors_in(corpus.subset(["loan"]), letters)).shape == (3, 26)
    assert letters.asked == asked


def test_only_what_has_changed_is_encoded(bank):
    letters = Letters()
    vectors_in(tf.open_corpus(bank), letters)
    letters.asked.clear()
    with closing(sqlite3.connect(bank)) as connection, connection:
        connection.execute("ALTER TABLE loan ADD COLUMN purpose TEXT")
    vectors_in(tf.open_corpus(bank), letters)
    assert letters.asked == ["bank loan: loan id, client id, amount, purpose", "loan purpose"]


def test_each_embedder_has_its_own(bank):
    corpus, one, other = tf.open_corpus(bank), Letters("one"), Letters("other")
    vectors_in(corpus, one)
    vectors_in(corpus, other)
    assert one.asked == other.asked


def test_the_database_can_be_hidden(bank):
    corpus, letters = tf.open_corpus(bank), Letters()
    hidden = vectors_in(corpus, letters, with_database=False)
    assert "client: client id, name, born" in letters.asked
    shown = vectors_in(corpus, letters)
    assert not np.array_equal(hidden.tables, shown.tables)
    np.testing.assert_array_equal(columns_of(hidden), columns_of(shown))


def test_no_tables_and_no_columns():
    corpus = tf.open_corpus({"t": pd.DataFrame(index=range(2))})
    vectors = vectors_in(corpus, Letters())
    assert (vectors.tables.shape, columns_of(vectors).shape, vectors.column_table.shape) == ((1, 26), (0, 26), (0,))
    vectors = vectors_in(corpus.subset([]), Letters())
    assert (vectors.tables.shape, columns_of(vectors).shape, vectors.column_table.shape) == ((0, 26), (0, 26), (0,))


def test_a_catalogue_that_fails_costs_only_time(bank, cache_folder):
    corpus, letters = tf.open_corpus(bank), Letters()
    (file,) = cache_folder.iterdir()
    file.write_bytes(b"no database")
    with pytest.warns(CatalogueWarning) as warned:
        vectors = vectors_in(corpus, letters)
    assert vectors.tables.shape == (2, 26)
    assert ["computed again" in str(w.message) or "in memory only" in str(w.message) for w in warned] == [True, True]
    vectors_in(corpus, letters)
    assert len(letters.asked) == 8


def test_many_threads(bank):
    corpus, letters = tf.open_corpus(bank), Letters()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: vectors_in(corpus, letters).tables.sum(), range(32)))
    assert len(set(results)) == 1
    assert len(letters.asked) == 8
