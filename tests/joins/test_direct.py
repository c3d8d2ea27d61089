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


SCHOOLS = pd.DataFrame({"code": [f"S{i:03}" for i in range(40)], "town": [f"T{i % 7}" for i in range(40)]})
PANEL = pd.DataFrame({"code": [f"S{i % 40:03}" for i in range(120)], "year": [2018 + i // 40 for i in range(120)]})
RIDES = PANEL.assign(mode=[f"m{i % 3}" for i in range(120)], share=[i % 50 for i in range(120)])
FARES = PANEL.assign(kind=[f"k{i % 3}" for i in range(120)], share=[i % 49 for i in range(120)])


def joined(frames, question="", **given):
    found = tf.open_corpus(frames).retrieve_tables(question or " ".join(frames), k=1).add(*frames).only(*frames)
    return found.merge(**given)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("others", [{}, {"schools": SCHOOLS}])
def test_two_panels_of_one_thing_are_joined_by_the_year_too(others):
    """Without the year, 40 schools with three years each would give 360 rows; a measure of one name is no key."""
    frame = joined({"rides": RIDES, "fares": FARES, **others}, on_fanout="allow")
    assert len(frame) == len(RIDES.merge(FARES, on=["code", "year"])) == 120


@pytest.mark.filterwarnings("ignore")
def test_a_name_of_the_same_thing_that_is_spelt_in_two_ways_is_no_part_of_the_key():
    rides = RIDES.assign(school=[f"School {code}" if code < "S020" else f"{code} school" for code in RIDES["code"]])
    fares = FARES.assign(school=[f"School {code}" for code in FARES["code"]])
    frame = joined({"rides": rides, "fares": fares, "schools": SCHOOLS}, on_fanout="allow")
    assert len(frame) == 120


@pytest.mark.filterwarnings("ignore")
def test_tables_that_repeat_two_columns_are_joined_by_both_and_different_things_are_counted():
    runs = [("AAA", "2013J"), ("AAA", "2014B"), ("BBB", "2013J"), ("BBB", "2014B")]
    exams = pd.DataFrame([(*run, kind) for run in runs for kind in ("CMA", "TMA")], columns=["module", "run", "kind"])
    taken = pd.DataFrame([(*run, f"p{n}") for run in runs[:3] for n in range(5)], columns=["module", "run", "student"])
    frames = {"exams": exams, "taken": taken}
    with pytest.warns(tf.errors.RowsMultipliedWarning, match="nunique"):
        frame = joined(frames, "How many different students took exams? taken")
    right = exams.merge(taken, on=["module", "run"])
    assert len(frame) == len(right)
    with pytest.raises(tf.errors.FanOut):
        joined(frames, "How many students took exams? taken")


@pytest.mark.filterwarnings("ignore")
def test_a_table_that_nobody_chose_is_joined_by_sure_keys_only():
    """Countries with medals, those of athletes, and a third table with both countries and sports."""
    countries = [f"Country {chr(65 + i // 5)}{i}" for i in range(90)]
    medals = pd.DataFrame({"Team/NOC": countries[:40], "gold": [i % 7 for i in range(40)]})
    athletes = pd.DataFrame({"who": [f"w{i}" for i in range(400)], "NOC": [countries[i * 7 % 90] for i in range(400)]})
    teams = pd.DataFrame({"team": [f"t{i}" for i in range(60)], "NOC": [countries[i * 2 % 50] for i in range(60)]})
    corpus = tf.open_corpus({"medals": medals, "athletes": athletes, "teams": teams})
    found = corpus.retrieve_tables("athletes medals", k=1).add("medals", "athletes").only("medals", "athletes")
    assert sorted(found.join_plan.tables) == ["frames.athletes", "frames.medals"]
    assert len(found.merge()) == athletes["NOC"].isin(medals["Team/NOC"]).sum()
