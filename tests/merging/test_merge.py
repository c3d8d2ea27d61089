"""Merges: the same rows as pandas gives, and a report that adds up."""

from __future__ import annotations

import datetime as dt
import decimal
import sqlite3
import warnings

import pandas as pd
import pytest
from accounted import merged

from tagframe.corpus import ColumnProfile, TableProfile
from tagframe.errors import (
    CoercedKeysWarning,
    ColumnNotFound,
    DoubtfulJoinWarning,
    FanOut,
    InvalidArgument,
    RowsLost,
    RowsLostWarning,
    RowsMultipliedWarning,
)
from tagframe.joins import JoinPlan, JoinStep, PlanTable, plan_joins
from tagframe.keys import Evidence, KeyPair
from tagframe.merging import join_plan, merge

LOANS = pd.DataFrame({"loan_id": [1, 2, 3, 4], "client_id": [20, 10, 20, 30], "amount": [5.0, 6.0, 7.0, 8.0]})
CLIENTS = pd.DataFrame({"client_id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"], "town_id": [1, 2, 1]})
TOWNS = pd.DataFrame({"town_id": [1, 2, 3], "name": ["Brno", "Cheb", "Písek"]})
BANK = {"bank.loans": LOANS, "bank.clients": CLIENTS, "bank.towns": TOWNS}


def one_step(left: pd.DataFrame, right: pd.DataFrame, on: str = "k") -> JoinPlan:
    key = KeyPair("d.left", (on,), "d.right", (on,), 1.0, Evidence())
    step = JoinStep("d.right", (on,), "d.left", (on,), "many-to-one", key)
    sources = tuple(
        PlanTable(f"d.{name}", "d", name, tuple(map(str, frame.columns)), len(frame))
        for name, frame in (("left", left), ("right", right))
    )
    return JoinPlan("d.left", (step,), sources)


def run(left: pd.DataFrame, right: pd.DataFrame, **options):
    frames = {"d.left": left, "d.right": right}
    return merged(frames, one_step(left, right), **options)


def test_a_chain_of_three_tables_keeps_the_facts_rows_in_order():
    frame, report = merged(BANK)
    assert frame["loan_id"].tolist() == [1, 2, 3, 4]
    assert frame["clients.name"].tolist() == ["Bo", "Ann", "Bo", "Cy"]
    assert frame["towns.name"].tolist() == ["Cheb", "Brno", "Cheb", "Brno"]
    assert list(frame.columns) == ["loan_id", "client_id", "amount", "clients.name", "town_id", "towns.name"]
    assert (report.start_rows, report.rows, report.lost) == (4, 4, 0)


def test_the_inputs_are_left_as_they_were():
    before = {name: frame.copy() for name, frame in BANK.items()}
    frame, _ = merged(BANK)
    frame.loc[:, "amount"] = 0.0
    for name, source in BANK.items():
        pd.testing.assert_frame_equal(source, before[name])


def test_a_step_that_repeats_rows_of_the_start_is_refused_with_the_rows():
    plan = join_plan({"bank.clients": CLIENTS, "bank.loans": LOANS})
    assert plan.start == "bank.clients"
    with pytest.raises(FanOut, match=r"would repeat 1 row of bank\.clients") as refusal:
        merged({"bank.clients": CLIENTS, "bank.loans": LOANS})
    assert refusal.value.rows["client_id"].tolist() == [20]


def test_a_fan_out_that_is_allowed_is_reported():
    with pytest.warns(RowsMultipliedWarning, match=r"bank\.clients"):
        frame, report = merged({"bank.clients": CLIENTS, "bank.loans": LOANS}, on_fanout="warn")
    assert frame["loan_id"].tolist() == [2, 1, 3, 4]
    assert report.steps[0].fan_out == pytest.approx(4 / 3)


def test_lost_rows_are_warned_of_raised_or_kept():
    loans = pd.concat([LOANS, pd.DataFrame({"loan_id": [5], "client_id": [99], "amount": [1.0]})], ignore_index=True)
    frames = {"bank.loans": loans, "bank.clients": CLIENTS}
    with pytest.warns(RowsLostWarning, match=r"1 of 5 rows of bank\.loans"):
        frame, report = merged(frames)
    assert (len(frame), report.lost) == (4, 1)
    with pytest.raises(RowsLost) as refusal:
        merged(frames, on_loss="raise")
    assert refusal.value.rows["loan_id"].tolist() == [5]
    kept, report = merged(frames, how="left", on_loss="raise")
    assert kept["loan_id"].tolist() == [1, 2, 3, 4, 5]
    assert str(kept["town_id"].dtype) == "Int64"
    assert kept["town_id"].isna().tolist() == [False] * 4 + [True]
    assert report.lost == 0


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (["007", "8", " "], ["7", "08", "9"]),
        (["007", "8", "x"], [7, 8, 9]),
        ([7, 8, 10], ["007", "8", "9"]),
        ([7.0, 8.0, 1.5], [7, 8, 9]),
        ([" Prague", "BRNO", "z"], ["prague", "Brno", "Cheb"]),
        (["2020-01-02", "2020/1/3", "no date"], pd.to_datetime(["2020-01-02", "2020-01-03", "2020-01-04"])),
        ([decimal.Decimal("7.0"), decimal.Decimal(8), None], [7, 8, 9]),
        (pd.Categorical(["a", "b", "z"]), ["a", "b", "c"]),
        (pd.array([7, 8, None], dtype="Int64"), [7, 8, 9]),
        ([True, False, None], ["true", "false", "x"]),
        ([dt.date(2020, 1, 2), dt.date(2020, 1, 3), None], ["2020-01-02", "2020-01-03", "x"]),
        (pd.to_datetime(["2020-01-02 01:00+01:00", "2020-01-03 01:00+01:00", None]), ["2020-01-02T00:00:00+00:00"] * 0
         + ["2020-01-02 00:00:00+00:00", "2020-01-03 00:00:00+00:00", "x"]),
        ([[1], [2], [3]], ["[1]", "[2]", "x"]),
    ],
)  # fmt: skip
def test_keys_of_unlike_types_that_mean_the_same_match(mine, theirs):
    left = pd.DataFrame({"k": pd.Series(mine), "x": range(3)})
    right = pd.DataFrame({"k": pd.Series(theirs), "y": range(3)})
    copy = left.copy(deep=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame, report = run(left, right, on_loss="allow")
    assert frame[["x", "y"]].to_numpy().tolist() == [[0, 0], [1, 1]]
    assert report.steps[0].matched == 2
    # What is text on one side at least, and is written otherwise, is said.
    assert [warning.category for warning in said] == [CoercedKeysWarning] * bool(report.steps[0].coerced)
    pd.testing.assert_frame_equal(left, copy)
    assert frame["k"].dtype == left["k"].dtype


def test_two_spellings_on_the_right_are_not_confused():
    left = pd.DataFrame({"k": ["ab", "AB", "Ab"], "x": range(3)})
    right = pd.DataFrame({"k": ["AB", "ab"], "y": [0, 1]})
    frame, report = run(left, right, on_loss="allow")
    assert frame[["x", "y"]].to_numpy().tolist() == [[0, 1], [1, 0]]
    assert report.steps[0].coerced == 0


def test_columns_where_and_limit():
    frame, report = merged(BANK, columns=["towns.name", "loan_id"], where={"client_id": [20, 30]}, limit=2)
    assert frame.to_dict("list") == {"towns.name": ["Cheb", "Cheb"], "loan_id": [1, 3]}
    assert (report.rows, report.filtered) == (2, 1)
    by_text, _ = merged(BANK, columns=["loan_id"], where="amount > 5.5 and `towns.name` == 'Brno'")
    assert by_text["loan_id"].tolist() == [2, 4]
    by_function, _ = merged(BANK, columns=["loan_id"], where={"amount": lambda amounts: amounts > 7})
    assert by_function["loan_id"].tolist() == [4]
    none, _ = merged(BANK, limit=0)
    assert len(none) == 0
    assert none.dtypes["amount"] == "float64"


def test_what_is_misspelt_or_has_two_meanings_is_said():
    with pytest.raises(ColumnNotFound, match="did you mean"):
        merged(BANK, columns=["amuont"])
    with pytest.raises(ColumnNotFound, match="more than one table"):
        merged(BANK, columns=["name"])
    with pytest.raises(
        InvalidArgument, match="how must be one of 'inner', 'left', 'right', 'outer', 'anti'; got 'cross'"
    ):
        merged(BANK, how="cross")
    with pytest.raises(InvalidArgument, match="limit"):
        merged(BANK, limit=-1)
    with pytest.raises(InvalidArgument, match=r"write \['name'\]"):
        merged(BANK, columns="name")


def test_the_report_reads_as_sentences_and_as_a_frame():
    _, report = merged(BANK)
    lines = repr(report).split("\n")
    assert lines[1].strip() == ("bank.loans.client_id = bank.clients.client_id: 4 of 4 rows match; 4 rows out.")
    frame = report.to_frame()
    assert frame["rows_in"].tolist() == [4, 4]
    assert frame["unmatched_right"].tolist() == [0, 1]


@pytest.mark.parametrize("options", [{}, {"columns": ["loan_id", "clients.client_id", "clients.name"], "how": "left"}])
def test_the_plans_sql_gives_the_rows_of_the_merge(options):
    bank = {**BANK, "bank.clients": CLIENTS.iloc[1:]} if options else BANK  # one loan has no client
    connection = sqlite3.connect(":memory:")
    for name, frame in bank.items():
        frame.to_sql(name.split(".")[1], connection, index=False)
    plan = join_plan(bank)
    frame, _ = merged(bank, plan, **options)
    rows = pd.read_sql(plan.sql(**options), connection)
    rows = rows.where(rows.notna())  # None of a database, NaN of a merge
    pd.testing.assert_frame_equal(rows.sort_values("loan_id", ignore_index=True), frame)
    connection.close()


@pytest.mark.parametrize(
    ("key", "found"), [("MN ", ["MN"]), (" Mn", ["Mn"]), ("mn", []), ("ny ", ["NY"]), ("MN", ["MN"])]
)
@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
def test_a_text_with_spaces_finds_the_one_that_differs_from_another_in_case_only(key, found):
    states = pd.DataFrame({"state": ["MN", "Mn", "NY", "TX"], "code": ["MN", "Mn", "NY", "TX"]})
    frame = merge(pd.DataFrame({"state": [key]}), states, on="state", on_loss="allow")
    assert frame["code"].tolist() == found


def test_a_key_that_is_hardly_one_is_followed_with_a_warning():
    left = TableProfile("d.a", "d", "a", (ColumnProfile("x", 0, "integer"),))
    right = TableProfile("d.b", "d", "b", (ColumnProfile("y", 0, "integer"),))
    frames = {"d.a": pd.DataFrame({"x": [1, 2]}), "d.b": pd.DataFrame({"y": [2, 1]})}
    doubtful = plan_joins([left, right], [KeyPair("d.a", ("x",), "d.b", ("y",), 0.3)])
    with pytest.warns(DoubtfulJoinWarning, match=r"low-confidence key: d\.a\.x = d\.b\.y \(30%\)"):
        frame, _ = merged(frames, doubtful)
    assert len(frame) == 2
    given = KeyPair("d.a", ("x",), "d.b", ("y",), 0.3, Evidence(origin="given"))
    merged(frames, plan_joins([left, right], [given]))
