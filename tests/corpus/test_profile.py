"""Profiles as values."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd

import tagframe as tf
from tagframe.corpus import Sketch

FRAME = pd.DataFrame({"id": range(5000), "name": ["a", "b"] * 2500})


def profile():
    return tf.open_corpus({"d.t": FRAME}).profile("t")


def test_profiles_of_the_same_rows_are_equal_and_hash_alike():
    one, other = profile(), profile()
    assert one == other
    assert hash(one) == hash(other)
    assert hash(one.columns[0]) == hash(other.columns[0])
    assert len({one, other, pickle.loads(pickle.dumps(one))}) == 1


def test_other_values_or_another_name_make_another_profile():
    one = profile()
    assert one != tf.open_corpus({"d.t": FRAME.assign(id=FRAME["id"] + 1)}).profile("t")
    assert one != replace(one, name="u")
    assert one != "d.t"


def test_sketches_compare_by_their_hashes():
    hashes = np.array([1, 2], dtype=np.uint64)
    assert Sketch(hashes, True) == Sketch(hashes.copy(), True)
    assert Sketch(hashes, True) != Sketch(hashes, False)
    assert Sketch(hashes, True) != Sketch(hashes[:1], True)
    assert Sketch(hashes, True) != 3
    assert hash(Sketch(hashes, True)) == hash(Sketch(hashes.copy(), True))
