"""Frames of a few rows: those that have nothing to do with each other are not joined without a word, true keys are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import AmbiguousJoinWarning, DoubtfulJoinWarning, JoinError

UNLIKE = (
    ("teams", ("team", "points", "losses")), ("wine", ("bottle", "score", "vintage")),
    ("cats", ("cat_id", "whiskers", "age")), ("bolts", ("bolt_id", "size", "thread")),
    ("poets", ("born", "poet_id", "lover")), ("ovens", ("oven_no", "degrees", "shelves")),
    ("glaciers", ("glacier", "retreat", "depth")), ("kites", ("colour", "tail", "kite_no")),
    ("comets", ("comet", "period", "magnitude")), ("dentists", ("dentist", "fee", "drills")),
    ("bakeries", ("bakery_id", "loaves", "street")), ("castles", ("built", "towers", "ruined")),
)  # fmt: skip
"""Tables that share no word, each with the columns that it has."""
ALIKE: tuple[tuple[str, Any], ...] = (
    ("points", [90, 91, 92, 93, 94]), ("years", [2019, 2020, 2021, 2022, 2023]), ("counted", [1, 2, 3, 4, 5]),
    ("letters", list("ABCDE")), ("persons", ["Ann", "Bo", "Cy", "Dee", "Eli"]), ("tens", [10, 20, 30, 40, 50]),
    ("sizes", ["XS", "S", "M", "L", "XL"]), ("ids", [1001, 1002, 1003, 1004, 1005]),
    ("words", ["amber", "birch", "cedar", "delta", "ember"]),
    ("days", pd.date_range("2024-01-01", periods=5)), ("flags", [True, False, True, False, True]),
)  # fmt: skip
"""What anybody may have chosen for a column."""


def outcome(frames: dict[str, pd.DataFrame]) -> tuple[str, str]:
    """What became of a merge, "silent", "said" or "refused", and on what."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = tf.merge(frames, on_fanout="allow", on_loss="allow")
        except JoinError:
            return "refused", ""
    said = any(issubclass(one.category, DoubtfulJoinWarning | AmbiguousJoinWarning) for one in caught)
    step = frame.tag.merge_report.plan.steps[0]
    return "said" if said else "silent", f"{step.left.removeprefix('frames.')} = {step.right.removeprefix('frames.')}"


def unlike(random: np.random.Generator, values: Any, rows: int, shared: str | None) -> dict[str, pd.DataFrame]:
    """Two tables of unlike things of which a column each holds the same values, as it happens."""
    frames = {}
    for position in random.choice(len(UNLIKE), 2, replace=False):
        name, columns = UNLIKE[position]
        filled = {column: random.integers(0, 400, rows) + 500 * at for at, column in enumerate(columns)}
        chosen = shared if shared in columns else columns[random.integers(len(columns))]
        filled[chosen] = pd.Series(values).head(rows).sample(frac=1, random_state=int(random.integers(99))).to_numpy()
        frames[name] = pd.DataFrame(filled).rename(columns={chosen: shared} if shared else {})
    return frames


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "values"), ALIKE, ids=[kind for kind, _ in ALIKE])
def test_tables_that_share_no_word_are_not_joined_without_one(kind, values):
    for seed in range(12):
        random = np.random.default_rng([seed, len(kind)])
        frames = unlike(random, values, int(random.integers(2, 6)), None)
        assert outcome(frames)[0] != "silent", (frames, outcome(frames))


@pytest.mark.parametrize("shared", ["length", "colour", "score", "size", "status", "weight", "grade", "type", "rating"])
def test_tables_that_only_have_the_same_measure_or_kind_are_not_joined_without_a_word(shared):
    for position, (_, values) in enumerate(ALIKE):
        frames = unlike(np.random.default_rng(position), values, 5, shared)
        assert outcome(frames)[0] != "silent", (frames, outcome(frames))


def test_the_id_of_a_frame_without_a_name_is_referenced():
    orders = pd.DataFrame({"order_id": [1, 2, 3], "customer_id": [7, 8, 7]})
    customers = pd.DataFrame({"id": [7, 8], "city": ["Porto", "Faro"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tf.merge(orders, customers)["city"].tolist() == ["Porto", "Faro", "Porto"]


def test_two_frames_of_three_points_are_not_joined():
    teams = pd.DataFrame({"team": ["Ajax", "Brno", "Celta"], "points": [90, 91, 92]})
    wine = pd.DataFrame({"bottle": ["Rioja", "Merlot", "Syrah"], "score": [92, 90, 91]})
    assert outcome({"teams": teams, "wine": wine}) == ("refused", "")
    cats = pd.DataFrame({"cat": ["Tom", "Kit"], "age": [3, 4]})
    bolts = pd.DataFrame({"bolt": ["hex", "eye"], "size": [3, 4]})
    assert outcome({"cats": cats, "bolts": bolts}) == ("refused", "")


def test_what_only_values_speak_for_is_said():
    users = pd.DataFrame({"uid": np.random.default_rng(7).permutation(np.arange(1, 5000))[:300], "name": range(300)})
    follows = pd.DataFrame({"f1": np.random.default_rng(8).choice(users["uid"], 900), "since": range(900)})
    with pytest.warns(
        DoubtfulJoinWarning, match=r"by their values, not .* names: .*follows\.f1 = .*users\.uid \(\d+%\)"
    ):
        frame = tf.merge({"follows": follows, "users": users})
    assert len(frame) == 900


TRUE = (
    ("orders.customer_id", [2, 1, 2], "customers.id", [1, 2, 3]),
    ("orders.customer", ["Ann", "Bo", "Ann"], "customers.name", ["Ann", "Bo", "Cy"]),
    ("orders.customer_id", [1, 2, 9], "customers.customer_id", [1, 2, 3]),
    ("visits.code", ["a", "A", "b", "a"], "codes.code", ["a", "A", "b"]),
    ("visits.code", ["a", "A", "b"], "codes.code", ["b", "a", "A"]),
    ("loans.isbn", ["978-1", "978-2"], "books.isbn", ["978-1", "978-2", "978-3"]),
    ("loans.book_isbn", ["978-1", "978-2", "978-1"], "books.isbn", ["978-1", "978-2", "978-3"]),
    ("trades.ticker", ["AA", "BB", "AA"], "prices.ticker", ["AA", "BB", "CC"]),
    ("sales.city", ["Brno", "Oslo", "Brno"], "shops.city", ["Brno", "Oslo", "Rome"]),
    ("medals.country", ["Chile", "Peru"], "population.country", ["Chile", "Peru", "Cuba"]),
    ("employees.dept", ["it", "hr", "it"], "departments.dept", ["it", "hr", "pr"]),
    ("players.team", ["Ajax", "Brno", "Ajax"], "teams.name", ["Ajax", "Brno", "Celta"]),
    ("stock.sku", ["A1", "B2"], "products.sku", ["A1", "B2", "C3"]),
    ("patients.ward", list("ABA"), "wards.ward", list("ABC")),
    ("tasks.person", ["Ann", "Bo"], "people.name", ["Ann", "Bo", "Cy"]),
    ("trees.zone", [1, 2, 1], "zones.zone", [1, 2, 3]),
    ("rain.year", [2019, 2020, 2021], "crops.year", [2021, 2019, 2020]),
)
TELLING = ("customers.id", "customers.name", "books.isbn", "teams.name", "products.sku", "wards.ward", "zones.zone")


@pytest.mark.parametrize(
    ("left", "mine", "right", "theirs", "leads"),
    # What tells rows apart by a day, a place or a name of no key stands first.
    [(*case, leads) for case in TRUE for leads in (True, False) if leads or case[2] in TELLING],
)
def test_a_few_rows_with_a_name_that_says_so_are_joined(left, mine, right, theirs, leads):
    (table, column), (other, key) = left.split("."), right.split(".")
    beside = {"remark": [f"r {i}" for i in range(len(theirs))]}
    frames = {
        table: pd.DataFrame({column: mine, "note": [f"n {i}" for i in range(len(mine))]}),
        other: pd.DataFrame({key: theirs} | beside if leads else beside | {key: theirs}),
    }
    found, how = outcome(frames)
    assert (found, {*how.split(" = ")}) == ("silent", {left, right})


@pytest.mark.parametrize(
    ("left", "mine", "right", "theirs"),
    [
        ("games.h", ["ARS", "CHE", "ARS"], "clubs.abbr", ["ARS", "CHE", "LIV"]),
        ("games.a", ["LIV", "CHE", "ARS"], "clubs.abbr", ["ARS", "CHE", "LIV"]),
        ("loans.book_isbn", ["978-1", "978-2", "978-9"], "books.isbn", ["978-1", "978-2", "978-3"]),
        ("tasks.assignee", ["Ann", "Bo"], "people.name", ["Ann", "Bo", "Cy"]),
        ("orders.buyer", ["Ann", "Bo"], "customers.name", ["Ann", "Bo", "Cy"]),
        ("employees.dept", ["it", "hr", "it"], "departments.name", ["it", "hr", "pr"]),
    ],
)
def test_a_few_rows_that_a_reader_would_join_after_a_second_look_are_joined_with_a_word(left, mine, right, theirs):
    (table, column), (other, key) = left.split("."), right.split(".")
    frames = {table: pd.DataFrame({column: mine, "note": 0.5}), other: pd.DataFrame({key: theirs, "remark": 0.25})}
    found, how = outcome(frames)
    assert (found, {*how.split(" = ")}) == ("said", {left, right})
