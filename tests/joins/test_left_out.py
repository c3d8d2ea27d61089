"""A doubtful table that nothing connects is left out of a plan, and said."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import NotConnected, TableLeftOutWarning
from tagframe.joins import JoinPlan
from tagframe.joins.infer import plan_tables

D = pd.DataFrame
TABLES = {
    "loans": D({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]}),
    "clients": D({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]}),
    "weather": D({"rain": [0.5, 1.5], "wind": ["n", "s"]}),
}


def test_a_doubtful_table_that_nothing_connects_does_not_end_the_plan():
    corpus = tf.open_corpus(TABLES)
    ids = [f"frames.{name}" for name in TABLES]
    plan = plan_tables(corpus, ids, doubtful=["frames.weather"])
    assert plan.left_out == plan.unconnected == ("frames.weather",)
    assert JoinPlan.from_json(plan.to_json()).unconnected == ("frames.weather",)
    assert "no sure key connects it" in repr(plan)
    with pytest.warns(TableLeftOutWarning, match=r"frames\.weather is left out: .*no sure key connects it"):
        merged = tf.merge({f"frames.{name}": frame for name, frame in TABLES.items()}, plan=plan)
    assert len(merged) == 3
    with pytest.raises(NotConnected):
        plan_tables(corpus, ids, doubtful=["frames.loans"])


def test_doubtful_pieces_of_one_table_that_nothing_connects_do_not_end_the_plan():
    rain = {f"rain_{year}": D({"month": ["May", "June"], "rain": [0.5, year / 1000]}) for year in (2023, 2024)}
    corpus = tf.open_corpus({"loans": TABLES["loans"], "clients": TABLES["clients"], **rain})
    pieces = ["frames.rain_2023", "frames.rain_2024"]
    plan = plan_tables(corpus, ["frames.loans", "frames.clients", *pieces], doubtful=pieces)
    assert [*plan.left_out] == [*plan.unconnected] == pieces
    with pytest.raises(NotConnected) as refused:
        plan_tables(corpus, ["frames.loans", "frames.clients", *pieces])
    assert sorted(map(sorted, refused.value.groups)) == [["frames.clients", "frames.loans"], pieces]
