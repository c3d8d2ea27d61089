"""Two tables with a name in common are joined directly, before a third table that nobody chose."""

import warnings

import pandas as pd
import pytest

import tagframe as tf

PLACES = pd.DataFrame({"placeID": [f"K{i * 37:05}" for i in range(70)], "zip": [f"z{i % 9}" for i in range(70)]})
RATED = pd.DataFrame({"placeID": [f"K{i * 37:05}" for i in range(45, 95)], "stars": [i % 3 for i in range(50)]})
VISITS = pd.DataFrame({"visit": range(200), "placeID": [f"K{(i % 95) * 37:05}" for i in range(200)]})


@pytest.mark.parametrize("named", ["placeID", "Place_ID", "place id"])
def test_a_partial_overlap_under_one_name_is_a_key_and_the_loss_is_said(named):
    corpus = tf.open_corpus({"places": PLACES, "rated": RATED.rename(columns={"placeID": named}), "visits": VISITS})
    found = corpus.retrieve_tables("stars of places", k=1).add("places", "rated").only("places", "rated")
    assert len(found.join_plan.tables) == 2
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = found.merge()
    assert len(frame) == 25
    assert any("no partner" in str(one.message) for one in said)


def test_the_plan_never_starts_from_an_empty_table():
    corpus = tf.open_corpus({"places": PLACES, "rated": RATED.iloc[:0]})
    found = corpus.retrieve_tables("stars of places", k=2).add("places", "rated")
    assert found.plans == [] or found.join_plan.start == "frames.places"


def test_only_of_another_table_says_how_to_add_it():
    corpus = tf.open_corpus({"places": PLACES, "rated": RATED, "visits": VISITS})
    found = corpus.retrieve_tables("stars", k=1)
    other = next(id for id in ("frames.visits", "frames.places") if id not in found.ids)
    with pytest.raises(tf.errors.TableNotFound, match="adds it"):
        found.only(other)
    assert other in found.add(other).only(other).ids


def test_a_corpus_merges_named_tables():
    corpus = tf.open_corpus({"places": PLACES, "visits": VISITS})
    assert len(corpus.merge("visits", "places", on="placeID", on_loss="allow")) == sum(
        VISITS["placeID"].isin(PLACES["placeID"])
    )
    with pytest.warns(tf.errors.RowsMultipliedWarning, match="rows of frames.visits"):
        corpus.merge("places", "visits", on="placeID", on_loss="allow")
