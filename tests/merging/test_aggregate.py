"""One row a key before the join: two facts at one dimension, wherever the tables are and whichever way a merge runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from accounted import counts, plain

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.errors import ColumnNotFound, FanOut, InvalidArgument, TableNotFound, WayNotPossible
from tagframe.joins import JoinPlan, keys_on
from tagframe.merging import plan_tables, run_plan
from tests import opened_in

pytest.importorskip("duckdb")
FRAMES = {
    "customers": pd.DataFrame({"customer_id": [1, 2, 3, 4], "name": list("abcd")}),
    "orders": pd.DataFrame({"order_id": range(6), "customer_id": [1, 1, 2, 2, 3, 9], "day": list("uvwxyz")}),
    "payments": pd.DataFrame(
        {
            "payment_id": range(100, 108),
            "customer_id": pd.array([1, 2, 2, 3, 3, 3, None, 7], "Int64"),
            "amount": pd.array([5, 1, 2, 3, 4, None, 9, 1], "Int64"),
            "fee": [0.1, 0.2, 0.3, np.nan, 0.5, 0.25, 1.0, 2.0],
            "kind": ["x", "y", "y", None, "x", "y", "z", "z"],
        }
    ),
}
ON = ["orders.customer_id = customers.customer_id", "payments.customer_id = customers.customer_id"]
QUIET: dict[str, Any] = {"on_loss": "allow", "on_ambiguous": "allow"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory, postgres) -> dict[str, tf.Corpus]:
    folder = tmp_path_factory.mktemp("aggregate")
    opened_in.parquet(FRAMES, folder / "lake")
    return {
        "frames": tf.open_corpus(FRAMES),
        "sqlite": opened_in.sqlite(FRAMES, folder / "sqlite"),
        "csv": opened_in.csv(FRAMES, folder / "csv"),
        "duckdb": tf.open_corpus(folder / "lake", engine="duckdb", progress=False),
        "mixed": opened_in.mixed(FRAMES, folder / "mixed"),
    }


def plan_of(corpus: tf.Corpus, start: str = "orders") -> JoinPlan:
    pairs = keys_on(ON, [NamedTable.of(profile) for profile in corpus])
    return plan_tables(corpus, corpus.ids, anchor=corpus.profile(start).id, given=pairs)


@pytest.mark.parametrize(
    ("functions", "how", "in_engine"),
    [
        ({"amount": "sum"}, "inner", True),
        ({"amount": "mean", "payment_id": "count", "kind": "nunique"}, "left", True),
        ({"amount": "sum", "kind": "count"}, "outer", False),
        ({"fee": "max", "amount": "min"}, "left", False),  # SQLite knows types of cells only
        ({"fee": "sum"}, "inner", False),
        ({"kind": "min"}, "inner", False),
    ],
)
def test_rows_and_counts_are_the_same_everywhere(opened, functions, how, in_engine: bool):
    aggregate = {"payments": functions}
    payments = FRAMES["payments"]
    payments = payments.dropna(subset=["kind"]) if functions == {"kind": "min"} else payments  # pandas 2 needs that
    expected = payments.groupby("customer_id", as_index=False).agg(functions)
    dims = FRAMES["orders"].merge(FRAMES["customers"], on="customer_id", how=how)
    hand = dims.merge(expected.astype({"customer_id": "int64"}), on="customer_id", how=how)
    for source, corpus in opened.items():
        plan = plan_of(corpus)
        whole, account = run_plan(plan, corpus, how=how, aggregate=aggregate, by="memory", **QUIET)
        names = {name: name.rpartition(".")[2] for name in whole}
        shown = plain(whole.rename(columns=names))[[*hand.columns]].sort_values(["customer_id", "order_id"])
        by_hand = plain(hand).sort_values(["customer_id", "order_id"])
        pd.testing.assert_frame_equal(
            shown.reset_index(drop=True), by_hand.reset_index(drop=True), check_dtype=False, obj=source
        )
        for options in (
            {},
            {"where": {"name": ["a", "c"]}},
            {"where": {next(iter(functions)): "5" if functions == {"kind": "min"} else 5}},
            {"limit": 2},
        ):
            base, report = run_plan(plan, corpus, how=how, aggregate=aggregate, by="memory", **options, **QUIET)
            for by in (None, "engine", "across"):
                try:
                    frame, told = run_plan(plan, corpus, how=how, aggregate=aggregate, by=by, **options, **QUIET)
                except WayNotPossible:
                    continue
                pd.testing.assert_frame_equal(plain(frame), plain(base), obj=f"{source} {by} {options}")
                assert {**counts(told), "steps": None} == {**counts(report), "steps": None}
                assert [step.unmatched_right for step in told.steps] == [s.unmatched_right for s in report.steps]
        if source in ("sqlite", "duckdb") and in_engine:
            frame, told = run_plan(plan, corpus, how=how, aggregate=aggregate, by="engine", **QUIET)
            assert told.engine == source
            assert frame.dtypes.astype(str).str.lower().tolist() == whole.dtypes.astype(str).str.lower().tolist()
    assert account.to_dict()["aggregate"] == {corpus.profile("payments").id: functions}


def test_a_server_makes_them_itself(database):
    corpus = opened_in.postgres(database(), FRAMES, analysed=True)
    plan = plan_of(corpus)
    for functions in ({"amount": "sum", "kind": "count"}, {"amount": "mean"}, {"fee": "max", "payment_id": "min"}):
        options: dict[str, Any] = {"how": "left", "aggregate": {"payments": functions}, **QUIET}
        frame, report = run_plan(plan, corpus, by="engine", **options)
        whole, account = run_plan(plan, corpus, by="memory", **options)
        assert report.engine == "postgres"
        assert "GROUP BY" in report.sql
        key = "order_id"
        pd.testing.assert_frame_equal(
            plain(frame.sort_values(key, ignore_index=True)), plain(whole.sort_values(key, ignore_index=True))
        )
        assert counts(report)["lost"] == counts(account)["lost"]


def test_fan_out_shows_the_way_and_the_way_works():
    frames = {"customers": FRAMES["customers"], "orders": FRAMES["orders"], "payments": FRAMES["payments"]}
    with pytest.raises(FanOut, match=r"merge\(…, aggregate=\{'orders': \{'order_id': 'count'\}\}\)"):
        tf.merge(frames, on=ON)
    with pytest.raises(FanOut, match=r"merge\(…, aggregate=\{'payments': \{'amount': 'sum'\}\}\)"):
        tf.merge(frames, on=ON, aggregate={"orders": {"order_id": "count"}}, on_loss="allow")
    both = {"orders": {"order_id": "count"}, "payments": {"amount": "sum"}}
    frame = tf.merge(frames, on=ON, aggregate=both, how="left")
    assert frame[["order_id", "amount"]].fillna(0).to_numpy().tolist() == [[2, 5], [2, 3], [1, 7], [0, 0]]
    said = repr(frame.tag.merge_report)
    assert "frames.payments has one row per customer_id: sum of amount." in said
    assert "frames.payments has one row per customer_id" in frame.tag.merge_report._repr_html_()


def test_found_tables_start_from_the_facts_that_are_left():
    corpus = tf.open_corpus(FRAMES)
    found = corpus.tables.tag.retrieve_tables("orders and payments of customers", k=3)
    with pytest.raises(FanOut):
        found.merge(on=ON, **QUIET)
    frame = found.merge(on=ON, aggregate={"payments": {"amount": "sum"}}, **QUIET)
    assert frame.tag.merge_report.start == "frames.orders"
    assert len(frame) == 5
    both = {"orders": {"order_id": "count"}, "payments": {"amount": "sum"}}
    assert found.merge(on=ON, aggregate=both, **QUIET).tag.merge_report.start == "frames.customers"


def test_a_plan_tells_it_in_sql_and_json():
    plan = plan_of(tf.open_corpus(FRAMES)).aggregated({"payments": {"amount": "sum"}})
    assert 'COALESCE(SUM("amount"), 0) AS "amount"' in plan.sql()
    assert 'GROUP BY\n    "customer_id"' in plan.sql(dialect="duckdb")
    assert "fee" not in plan.column_names().values()


@pytest.mark.parametrize(
    ("aggregate", "error", "said"),
    [
        ({"payment": {"amount": "sum"}}, TableNotFound, "did you mean 'frames.payments'"),
        ({"payments": {"amout": "sum"}}, ColumnNotFound, "did you mean 'amount'"),
        ({"payments": {"amount": "summ"}}, InvalidArgument, "did you mean 'sum'"),
        ({"payments": {"amount": ["sum"]}}, InvalidArgument, "no function"),
        ({"payments": {"customer_id": "count"}}, InvalidArgument, "aggregate another column"),
        ({"payments": "sum"}, InvalidArgument, "have the form {'payments': {column: function}}"),
        ({"payments": {}}, InvalidArgument, "have the form"),
        ("payments", InvalidArgument, "have the form"),
        ({"orders": {"order_id": "count"}}, InvalidArgument, "the start of the merge"),
        ({"payments": {"kind": "sum"}}, InvalidArgument, "no sum of frames.payments.kind, which is .*: no numbers"),
    ],
)
def test_what_cannot_be_made_is_named(aggregate, error, said: str):
    frames = {name: FRAMES[name] for name in ("orders", "customers", "payments")}
    with pytest.raises(error, match=said):
        tf.merge(frames, on=ON, aggregate=aggregate, on_loss="allow")


def test_a_table_between_two_keys_is_refused():
    chain = {
        "sales": pd.DataFrame({"sale": [1, 2], "shop_id": [1, 2]}),
        "shops": pd.DataFrame({"shop_id": [1, 2], "town_id": [5, 6], "rent": [1, 2]}),
        "towns": pd.DataFrame({"town_id": [5, 6], "town": ["x", "y"]}),
    }
    with pytest.raises(InvalidArgument, match=r"frames\.shops is joined by shop_id; town_id"):
        tf.merge(chain, aggregate={"shops": {"rent": "sum"}})
    corpus = tf.open_corpus(FRAMES).hide("payments.amount")
    plan = plan_of(corpus)
    with pytest.raises(ColumnNotFound, match="no column 'amount'"):
        run_plan(plan, corpus, aggregate={"payments": {"amount": "sum"}})


def test_a_key_of_two_columns_has_one_row_each(tmp_path: Path):
    frames = {
        "budget": pd.DataFrame({"dept": ["a", "a", "b"], "year": [1, 2, 1], "planned": [10, 20, 30]}),
        "spent": pd.DataFrame({"dept": ["a", "a", "b", None], "year": [1, 1, 1, 1], "cost": [4, 5, 6, 7]}),
    }
    corpus = opened_in.sqlite(frames, tmp_path / "s")
    pairs = keys_on(["dept", "year"], [NamedTable.of(profile) for profile in corpus])
    plan = plan_tables(corpus, corpus.ids, given=pairs, anchor=corpus.profile("budget").id)
    for by in ("engine", "memory"):
        frame, report = run_plan(plan, corpus, how="left", aggregate={"spent": {"cost": "sum"}}, by=by)
        assert frame["cost"].fillna(-1).tolist() == [9, -1, 6]
        assert report.steps[0].unmatched_right == 0
        assert json.dumps(report.to_dict())


@pytest.mark.parametrize("cells", [["b", None, "c", "a", None], [2**60 + 1, None, 2**60 + 3, 2**60, None]])
def test_the_least_and_the_greatest_of_objects_are_of_those_that_are_there(cells):
    orders = pd.DataFrame({"order_id": range(3), "customer_id": [1, 2, 3]})
    payments = pd.DataFrame({"customer_id": [1, 1, 2, 2, 3], "paid": pd.Series(cells, dtype=object)})
    for function, wanted in (("min", [cells[0], cells[3], None]), ("max", [cells[0], cells[2], None])):
        frames = {"orders": orders, "payments": payments}
        frame = tf.merge(frames, on="customer_id", aggregate={"payments": {"paid": function}}, **QUIET)
        assert [None if pd.isna(cell) else cell for cell in frame.iloc[:, -1]] == wanted
