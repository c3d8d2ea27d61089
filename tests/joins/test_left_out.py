"""The pieces of a doubtful table that nothing connects are left out of a plan."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import NotConnected
from tagframe.joins.infer import plan_tables

D = pd.DataFrame
TABLES = {
    "loans": D({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]}),
    "clients": D({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]}),
}


def test_doubtful_pieces_of_one_table_that_nothing_connects_do_not_end_the_plan():
    rain = {f"rain_{year}": D({"month": ["May", "June"], "rain": [0.5, year / 1000]}) for year in (2023, 2024)}
    corpus = tf.open_corpus({"loans": TABLES["loans"], "clients": TABLES["clients"], **rain})
    pieces = ["frames.rain_2023", "frames.rain_2024"]
    plan = plan_tables(corpus, ["frames.loans", "frames.clients", *pieces], doubtful=pieces)
    assert [*plan.left_out] == [*plan.unconnected] == pieces
    with pytest.raises(NotConnected) as refused:
        plan_tables(corpus, ["frames.loans", "frames.clients", *pieces])
    assert sorted(map(sorted, refused.value.groups)) == [["frames.clients", "frames.loans"], pieces]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_doubtful_table_that_would_lose_a_single_row_is_left_out(lost):
    towns = D({"town_id": range(1, 401), "canton_id": [n % 40 + 501 for n in range(400)]})
    towns["canton_id"] = towns["canton_id"].astype("Int64").where(towns["town_id"] > lost)
    cantons = D({"canton_id": range(501, 541), "canton": [f"Canton {n}" for n in range(40)]})
    corpus = tf.open_corpus({"towns": towns, "cantons": cantons})
    plan = plan_tables(corpus, ["frames.towns", "frames.cantons"], doubtful=["frames.cantons"])
    assert [*plan.left_out] == ["frames.cantons"] * lost
