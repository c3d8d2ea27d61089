"""Profiles as values."""

import pickle
from dataclasses import replace

import pandas as pd

import tagframe as tf

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
