"""Repeated rows are judged after the filter: that of where=, or the one that the question names."""

import datetime as dt

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import FanOut, RowsMultipliedWarning

PLACES = pd.DataFrame({"place_id": ["p1", "p2", "p3"], "name": ["Alma", "Bora", "Casa"]})
KITCHENS = pd.DataFrame({"place_id": ["p1", "p1", "p2", "p3"], "kitchen": ["Mexican", "Bar", "Mexican", "Sushi"]})
RATINGS = pd.DataFrame({"place_id": ["p1", "p1", "p2", "p3"], "user": ["u1", "u2", "u1", "u2"], "stars": [1, 2, 2, 0]})
FRAMES = {"ratings": RATINGS, "kitchens": KITCHENS}
ON = "ratings.place_id = kitchens.place_id"


def found(question):
    return tf.open_corpus(FRAMES).retrieve_tables(question, k=2).add("ratings", "kitchens")


def test_where_that_leaves_each_row_once_is_not_refused():
    frame = tf.merge(FRAMES, on=ON, where={"kitchen": "Mexican"})
    right = RATINGS.merge(KITCHENS[KITCHENS["kitchen"] == "Mexican"], on="place_id")
    assert frame["stars"].tolist() == right["stars"].tolist()
    with pytest.raises(FanOut):
        tf.merge(FRAMES, on=ON, where={"kitchen": ["Mexican", "Bar"]})


def test_the_filter_of_the_question_is_given_as_a_line_that_works():
    tables = found("How many ratings have Mexican kitchens?")
    with pytest.warns(RowsMultipliedWarning, match=r"merge\(where=\{'kitchen': 'Mexican'\}\)"):
        frame = tables.merge(on=ON)
    assert len(frame[frame["kitchen"] == "Mexican"]) == len(tables.merge(on=ON, where={"kitchen": "Mexican"})) == 3


def test_without_a_filter_in_the_question_repeated_rows_are_refused():
    with pytest.raises(FanOut):
        found("ratings and kitchens").merge(on=ON)


SEATED = {"ratings": RATINGS, "kitchens": KITCHENS.assign(seats=[40, 40, 20, 10])}


@pytest.mark.parametrize(
    ("question", "is_refused"),
    [
        ("How many ratings have Mexican kitchens?", False),
        ("Total stars of ratings of Mexican kitchens", False),
        ("Total seats of the Mexican kitchens with ratings", True),
        ("How many ratings have Mexican kitchens with seats above 15?", False),
        ("Combien de ratings ont Mexican kitchens avec au moins 15 seats ?", False),
        ("Total seats of the Mexican kitchens with more than 15 seats and ratings", True),
        ("Total seats of the Mexican kitchens with ratings in 2019", True),
    ],
)
def test_a_filter_that_still_repeats_the_number_that_is_wanted_is_no_way_out(question, is_refused):
    tables = tf.open_corpus(SEATED).retrieve_tables(question, k=2).add("ratings", "kitchens")
    with pytest.raises(FanOut) if is_refused else pytest.warns(RowsMultipliedWarning, match="Mexican"):
        tables.merge(on=ON)


def test_a_filter_that_still_repeats_the_aggregated_rows_is_no_way_out():
    frames = {**FRAMES, "places": PLACES.assign(fee=[5, 5, 5])}
    tables = tf.open_corpus(frames).retrieve_tables("ratings of Mexican kitchens", k=3).add(*frames)
    on = [ON, "kitchens.place_id = places.place_id"]
    with pytest.warns(RowsMultipliedWarning, match="Mexican"):
        tables.merge(on=on)
    with pytest.raises(FanOut):
        tables.merge(on=on, aggregate={"places": {"fee": "sum"}})


@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
def test_a_key_that_is_named_is_compared_as_the_first_of_its_columns_has_it():
    numbers = {"p1": 1001, "p2": 1002, "p3": 1003}
    ratings = RATINGS.assign(place_id=RATINGS["place_id"].map(numbers).astype(str))
    frames = {"ratings": ratings, "kitchens": KITCHENS.assign(place_id=KITCHENS["place_id"].map(numbers))}
    tables = tf.open_corpus(frames).retrieve_tables("ratings and Mexican kitchens of place 1001", k=2).add(*frames)
    with pytest.warns(RowsMultipliedWarning, match=r"'place_id': '1001', 'kitchen': 'Mexican'"):
        tables.merge(on=ON)


def test_a_short_word_of_the_question_is_no_cell():
    frames = {**FRAMES, "kitchens": KITCHENS.replace({"Bar": "eu"})}
    tables = tf.open_corpus(frames).retrieve_tables("Qui ont eu ratings, kitchens", k=2).add("ratings", "kitchens")
    with pytest.raises(FanOut):
        tables.merge(on=ON)


def test_a_step_of_too_many_rows_is_refused_before_it_is_made():
    frames = {name: pd.DataFrame({"kind": [1] * 60_000, name: range(60_000)}) for name in ("left", "right")}
    with pytest.raises(FanOut, match="3,600,000,000 rows"):
        tf.merge(frames, on="left.kind = right.kind", on_fanout="allow")


def test_a_question_allows_fewer_rows_than_its_user():
    frames = {name: pd.DataFrame({"kind": [1] * 8_000, name: range(8_000)}) for name in ("left", "right")}
    tables = tf.open_corpus(frames).retrieve_tables("How many different left are there?", k=2).add(*frames)
    with pytest.raises(FanOut, match="would repeat 8,000 rows"):
        tables.merge(on="left.kind = right.kind")


def test_a_user_who_is_only_to_be_warned_has_allowed_the_rows(monkeypatch):
    monkeypatch.setattr("tagframe.merging.in_memory._MOST_UNASKED_CELLS", 10)
    frames = {name: pd.DataFrame({"kind": [1] * 4, name: range(4)}) for name in ("left", "right")}
    with pytest.raises(FanOut):
        tf.merge(frames, on="left.kind = right.kind")
    with pytest.warns(RowsMultipliedWarning):
        assert len(tf.merge(frames, on="left.kind = right.kind", on_fanout="warn")) == 16


def test_durations_among_texts_are_no_cells_that_a_question_names():
    visits = pd.DataFrame({"site": ["K1", "K1", "K2"], "note": ["Oslo", dt.timedelta(minutes=5), dt.time(5, 3)]})
    birds = pd.DataFrame({"site": ["K1", "K1", "K2", "K2"], "ring": range(4)})
    found = tf.open_corpus({"visits": visits, "birds": birds}).retrieve_tables("birds with visits with the note Oslo")
    with pytest.warns(RowsMultipliedWarning, match=r"merge\(where=\{'note': 'Oslo'\}\)"):
        assert len(found.only("visits", "birds").merge(on="birds.site = visits.site")) == 6
