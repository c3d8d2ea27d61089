from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import ForeignKey, Sketch
from tagframe.retrieval.joinability import Joinability


def profiles_of(**frames):
    return tf.open_corpus({f"db.{name}": frame for name, frame in frames.items()}).profiles


def test_omega_is_the_papers_jaccard_schema_and_uniqueness():
    left = pd.DataFrame({"ref": ["a", "a", "b", "c"]})  # uniqueness 3/4
    right = pd.DataFrame({"code": ["b", "b", "c", "d"]})  # uniqueness 3/4
    omega = Joinability(profiles_of(l=left, r=right))
    # Jaccard |{b, c}| / |{a, b, c, d}| in either direction, no common word.
    assert omega.best(0, 1)[0] == pytest.approx(0.5 * (2 / 4) * (3 / 4))
    assert omega.matrix([0, 1]).tolist() == omega.matrix([1, 0]).tolist()


def test_words_of_the_headers_count_without_rows_in_common():
    left = pd.DataFrame({"client_id": [1, 2]})
    right = pd.DataFrame({"clients_id": [8, 9, 9]})
    value, k, other = Joinability(profiles_of(l=left, r=right)).best(0, 1)
    assert (value, k, other) == (pytest.approx(0.5), 0, 0)


def test_no_join_across_types():
    left, right = pd.DataFrame({"id": [1, 2]}), pd.DataFrame({"id": ["x", "y"]})
    assert Joinability(profiles_of(l=left, r=right)).best(0, 1)[0] == 0.0


def test_vectors_of_the_columns_are_half_of_the_schema():
    left, right = pd.DataFrame({"ref": [1, 2]}), pd.DataFrame({"code": [8, 9]})
    vectors = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert Joinability(profiles_of(l=left, r=right), vectors).best(0, 1)[0] == pytest.approx(0.5 * 0.5 * 0.6)


def test_incomplete_sketches_estimate_the_jaccard_of_the_whole():
    left = pd.DataFrame({"a": [f"v{i}" for i in range(9000)]})
    right = pd.DataFrame({"b": [f"v{i}" for i in range(4500, 13500)]})
    profiles = profiles_of(l=left, r=right)
    assert not profiles[0].columns[0].sketch.complete
    jaccard = Joinability(profiles).best(0, 1)[0] / 0.5
    assert jaccard == pytest.approx(4500 / 13500, abs=0.05)


def test_without_rows_nothing_speaks_against_uniqueness(schema):
    omega = Joinability(schema(**{"a.l": ["client_id"], "a.r": ["client_id"]}).profiles)
    assert omega.best(0, 1)[0] == pytest.approx(0.5)


def test_declared_keys_get_one_where_asked_for():
    left, right = profiles_of(l=pd.DataFrame({"boss": [1, 1]}), r=pd.DataFrame({"nr": [7, 8]}))
    left = replace(left, foreign_keys=(ForeignKey(("boss",), "R", ("nr",)),))
    assert Joinability([left, right], declared=True).best(0, 1) == (1.0, 0, 0)
    assert Joinability([left, right], declared=True).best(1, 0) == (1.0, 0, 0)
    assert Joinability([left, right]).best(0, 1)[0] == 0.0


def test_tables_of_no_columns_do_not_join(schema):
    omega = Joinability(schema(**{"a.l": [], "a.r": ["id"]}).profiles)
    assert omega.best(0, 1)[0] == 0.0


def test_values_below_the_smaller_limit_are_compared():
    profiles = profiles_of(l=pd.DataFrame({"a": list("abcd")}), r=pd.DataFrame({"b": list("abcd")}))
    column = profiles[0].columns[0]
    hashes = column.sketch.hashes
    cut = replace(column, sketch=Sketch(hashes[:2], complete=False))
    assert Joinability([replace(profiles[0], columns=(cut,)), profiles[1]]).best(0, 1)[0] == pytest.approx(0.5)
