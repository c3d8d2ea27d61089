"""Two ways to a table: the question says which is meant, or the merge says that there are two."""

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import AmbiguousJoinWarning
from tagframe.keys import KeyPair
from tagframe.retrieval.role_hints import roles_named

PLACES = pd.DataFrame({"address_id": range(501, 541), "street": [f"Street {n}" for n in range(40)]})
DEPOTS = pd.DataFrame({"depot_id": range(1, 11), "address_id": range(501, 511)})
WORKERS = pd.DataFrame(
    {
        "worker_id": range(71, 101),
        "worker_name": [f"Worker {n}" for n in range(30)],
        "depot_id": [1 + n % 10 for n in range(30)],
        "address_id": range(511, 541),
    }
)
FRAMES = {"worker": WORKERS, "depot": DEPOTS, "address": PLACES}


def test_without_a_question_two_ways_are_said():
    with pytest.warns(AmbiguousJoinWarning, match=r"worker\.address_id .*depot\.address_id"):
        tf.merge(FRAMES)


NATIONS = pd.DataFrame({"code": [f"N{i}" for i in range(26)], "name": [f"{chr(65 + i)}land" for i in range(26)]})
BORDERS = pd.DataFrame({"one": NATIONS["code"], "other": NATIONS["code"].iloc[::-1].tolist(), "km": range(26)})


@pytest.mark.filterwarnings("ignore::tagframe.errors.AmbiguousJoinWarning")
@pytest.mark.parametrize(
    ("question", "joined"),
    [
        ("How long is the border between Bland and Yland?", 3),
        ("km from Cland to Xland", 3),
        ("How long are the borders of Bland?", 2),
        ("How long are the borders of all nations?", 2),
    ],
)
def test_two_rows_that_the_question_names_are_those_of_both_references(question, joined):
    frames = {"borders": BORDERS.rename(columns={"one": "nation1", "other": "nation2"}), "nations": NATIONS}
    found = tf.open_corpus(frames).retrieve_tables(question, k=1).add(*frames).only(*frames)
    assert len(found.join_plan.tables) == joined
    assert len(found.merge()) == 26


CITIES = pd.DataFrame({"city_id": range(901, 941), "gdp": [n * 7 % 40 for n in range(40)]})
ROADS = pd.DataFrame(
    {"city1": [901 + n * 7 % 40 for n in range(90)], "city2": [901 + n * 3 % 40 for n in range(90)], "lanes": 2}
)


@pytest.mark.filterwarnings("ignore::tagframe.errors.AmbiguousJoinWarning")
@pytest.mark.parametrize(
    ("question", "roles"),
    [
        ("Roads whose first city has a gdp over 9 and whose second city has less", 2),
        ("Straßen, deren erste city über 9 gdp hat und deren zweite unter 4", 2),
        ("Routes dont la première city a un gdp de 9 et la deuxième de 4", 2),
        ("The first roads by the gdp of their city", 1),
        ("Roads by the gdp of their city", 1),
    ],
)
def test_numbered_references_are_named_by_ordinals(question, roles):
    found = tf.open_corpus({"roads": ROADS, "cities": CITIES}).retrieve_tables(question, k=1)
    plan = found.add("roads", "cities").only("roads", "cities").join_plan
    assert len(plan.steps) == roles


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("teams of the Adams Division", {"div_id"}),
        ("which conference has most wins", {"conf_id"}),
        ("divisions and conferences", {"conf_id", "div_id"}),
        ("the confs of all teams", {"conf_id"}),
        ("teams and labels", set()),
    ],
)
def test_a_role_that_is_short_for_a_word_is_named_by_it(question, named):
    keys = [KeyPair("d.team", (f"{short}_id",), "d.label", ("code",)) for short in ("div", "conf")]
    assert {key.left_columns[0] for key in roles_named(keys, question.split())} == named
