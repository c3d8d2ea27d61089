"""Rows as of a moment are what a loop over all pairs finds."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import FanOut, InvalidArgument, RowsLostWarning
from tagframe.keys.as_of import match_as_of
from tagframe.merging import plan_tables, run_plan

SIGNS = {"<=": lambda a, b: a <= b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, ">": lambda a, b: a > b}
D = pd.DataFrame


def partners(matches) -> list[list[int]]:
    assert matches.partners is not None
    return [sorted(matches.partners[start : start + count].tolist())
            for start, count in zip(matches.starts, matches.counts, strict=True)]  # fmt: skip


def column(random, rows):
    return pd.Series(
        [None if random.random() < 0.1 else int(random.integers(0, 12)) for _ in range(rows)], dtype="Int64"
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_nearest_row_and_intervals_are_those_of_a_loop(seed):
    random = np.random.default_rng(seed)
    rows = int(random.integers(0, 15)), int(random.integers(0, 15))
    keys = [pd.Series(random.integers(0, 3, size), dtype="int64") for size in rows]
    at, of, ends = column(random, rows[0]), column(random, rows[1]), column(random, rows[1])
    for sign, holds in SIGNS.items():
        found = partners(match_as_of([keys[0], at], [keys[1], of], ["=", sign], [("k", "k"), ("a", "b")]))
        for i in range(rows[0]):
            fit = [j for j in range(rows[1]) if keys[0][i] == keys[1][j] and not pd.isna(at[i]) and not pd.isna(of[j])
                   and holds(at[i], of[j])]  # fmt: skip
            best = (max if sign[0] == ">" else min)((of[j] for j in fit), default=None)
            assert found[i] == [j for j in fit if of[j] == best], sign
    for low, high in itertools.product((">=", ">"), ("<=", "<")):
        names = [("k", "k"), ("a", "start"), ("a", "end")]
        found = partners(match_as_of([keys[0], at, at], [keys[1], of, ends], ["=", low, high], names))
        turned = partners(match_as_of([keys[1], of, ends], [keys[0], at, at], ["=", "<" + low[1:], ">" + high[1:]],
                                      [(b, a) for a, b in names]))  # fmt: skip
        for i, j in itertools.product(range(rows[0]), range(rows[1])):
            held = (keys[0][i] == keys[1][j] and not pd.isna(at[i])
                    and (pd.isna(of[j]) or SIGNS[low](at[i], of[j]))
                    and (pd.isna(ends[j]) or SIGNS[high](at[i], ends[j])))  # fmt: skip
            assert (j in found[i], i in turned[j]) == (held, held)


ORDERS = D({"order": range(5), "cur": ["USD", "EUR", "USD", "USD", "USD"],
            "date": ["2024-01-01", "2024-01-05", "2024-03-01", None, "2023-01-01"]})  # fmt: skip
RATES = D({"date": ["2024-02-01", "2024-01-01", "2024-01-03", "2024-01-04"], "cur": ["USD", "USD", "EUR", "USD"],
           "rate": [4, 1, 3, 2]})  # fmt: skip


@pytest.mark.parametrize("on", [
    "orders.cur = rates.cur and rates.date <= orders.date", "orders.cur = rates.cur and orders.date >= rates.date",
    ["cur", "rates.date <= orders.date"], ["rates.date <= orders.date", "orders.cur = rates.cur"],
])  # fmt: skip
def test_the_latest_rate_before_each_order(on):
    frames = {"orders": ORDERS, "rates": RATES}
    frame = tf.merge(frames, on=on, how="left")
    assert frame["rate"].tolist()[:3] == [1, 3, 4]
    assert frame["rate"].isna().tolist() == [False, False, False, True, True]
    (step,) = frame.tag.merge_report.steps
    assert (step.rows_in, step.matched, step.unmatched_left, step.null_keys, step.unmatched_right) == (5, 3, 2, 1, 1)
    with pytest.warns(RowsLostWarning, match="2 of 5 rows"):
        assert len(tf.merge(frames, on=on)) == 3
    outer = tf.merge(frames, on=on, how="outer")
    assert len(outer) == 6
    assert [*outer.columns] == ["order", "cur", "orders.date", "rates.date", "rate"]


def test_without_another_key_the_latest_row_of_all():
    frame = tf.merge({"orders": ORDERS, "rates": RATES}, on="rates.date <= orders.date", how="left")
    assert frame["rate"].tolist()[:3] == [1, 2, 4]


def test_two_rows_of_one_moment_are_refused():
    twice = pd.concat([RATES, RATES.head(1).assign(rate=9)], ignore_index=True)
    with pytest.raises(FanOut):
        tf.merge({"orders": ORDERS, "rates": twice}, on=["cur", "rates.date <= orders.date"], how="left")
    frame = tf.merge(
        {"orders": ORDERS, "rates": twice}, on=["cur", "rates.date <= orders.date"], on_fanout="allow", on_loss="allow"
    )
    assert frame["rate"].tolist() == [1, 3, 4, 9]


DIM = D({"sk": [1, 2, 3, 4], "customer_id": [7, 7, 8, 8], "city": list("abcd"),
         "valid_from": ["2020-01-01", "2024-01-03", "2020-01-01", "2024-06-01"],
         "valid_to": ["2024-01-02", None, "2024-05-31", "9999-12-31"]})  # fmt: skip
SALES = D({"sale": range(3), "customer_id": [7, 7, 8],
           "day": pd.to_datetime(["2024-01-02", "2024-01-03", "2024-07-01"])})  # fmt: skip


def test_versions_are_refused_with_two_ways_and_both_work():
    frames = {"sales": SALES, "dim": DIM}
    with pytest.raises(FanOut) as refusal:
        tf.merge(frames)
    on = "sales.customer_id = dim.customer_id and sales.day between dim.valid_from and dim.valid_to"
    assert f'on="{on}"' in str(refusal.value)
    assert "dim[dim['valid_to'].isna()]" in str(refusal.value)
    assert tf.merge(frames, on=on)["city"].tolist() == ["a", "b", "d"]
    plan = tf.join_plan(frames, on=on)
    assert plan.steps[0].cardinality == "many-to-one"
    assert 'OR "dim"."valid_to" IS NULL' in plan.sql()


def test_a_key_that_is_called_as_the_start_of_a_period_is_none():
    jumps = D({"from_system": [7, 7, 8], "to_system": [8, 9, 7]})
    with pytest.raises(FanOut, match="would repeat"):
        tf.merge({"systems": D({"system": [7, 8, 8]}), "jumps": jumps}, on="systems.system = jumps.from_system")


def test_an_interval_holds_in_a_database_too(tmp_path):
    import sqlite3

    file = tmp_path / "shop.sqlite"
    on = "sales.customer_id = dim.customer_id and sales.day between dim.valid_from and dim.valid_to"
    with sqlite3.connect(file) as connection:
        SALES.assign(day=SALES["day"].dt.strftime("%Y-%m-%d")).to_sql("sales", connection, index=False)
        DIM.to_sql("dim", connection, index=False)
        corpus = tf.open_corpus(file)
        plan = plan_tables(corpus, ["shop.sales", "shop.dim"], anchor="shop.sales").use(on)
        frame, report = run_plan(plan, corpus)
        assert frame["city"].tolist() == ["a", "b", "d"]
        assert report.engine == "pandas"
        assert pd.read_sql(plan.sql(), connection)["city"].tolist() == ["a", "b", "d"]
    nearest = plan.use("sales.customer_id = dim.customer_id and dim.valid_from <= sales.day")
    with pytest.raises(InvalidArgument, match="nearest"):
        nearest.sql()


def test_moments_of_one_kind_are_compared_and_others_are_refused():
    left = D({"x": [1, 2], "at": pd.to_datetime(["2024-01-01 10:00", "2024-01-02 00:00"]).tz_localize("Europe/Berlin")})
    right = D({"y": [5, 6], "since": ["2024-01-01T09:00:00Z", "2024-01-01T23:30:00Z"]})
    assert tf.merge({"l": left, "r": right}, on="r.since <= l.at", how="left")["y"].tolist() == [5, 5]
    naive = D({"y": [5], "since": ["2024-01-01"]})
    with pytest.raises(InvalidArgument, match=r"times with a zone and .* times without a zone"):
        tf.merge({"l": left, "r": naive}, on="r.since <= l.at")
    with pytest.raises(InvalidArgument, match="neither a number nor a date"):
        tf.merge({"l": left, "r": naive.assign(since="soon")}, on="r.since <= l.at")
    days = D({"x": [1], "at": [dt.date(2024, 1, 1)]})
    assert tf.merge({"l": days, "r": naive}, on="r.since <= l.at")["y"].tolist() == [5]
    with pytest.raises(InvalidArgument, match="write the tables too"):
        tf.merge({"l": days, "r": naive.rename(columns={"since": "at"})}, on="at <= at")
    with pytest.raises(InvalidArgument, match="takes one comparison"):
        tf.merge({"l": days.assign(b=1), "r": naive.assign(c=1)}, on="r.since <= l.at and l.b >= r.c")
