"""Tables of one shape: stacked by hand, and joined as one table by a plan."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from accounted import merged

import tagframe as tf
from tagframe.corpus import open_corpus
from tagframe.errors import ColumnNotFound, FanOut, InvalidArgument, NotConnected, TablesStackedWarning
from tagframe.joins import plan_joins
from tagframe.keys import infer_key_pairs, infer_unions
from tagframe.merging import join_plan, run_plan, stack
from tagframe.retrieval.role_hints import role_hints

PRODUCTS = pd.DataFrame({"product_id": range(1, 21), "name": [f"p{i}" for i in range(20)]})


def sales(rows: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    columns = {"sale_id": range(1, rows + 1), "product_id": random.integers(1, 21, rows), "amount": random.random(rows)}
    return pd.DataFrame(columns)


SHOP = {"shop.sales_2023": sales(200, 0), "shop.sales_2024": sales(300, 1), "shop.product": PRODUCTS}


def parts(*columns: object) -> dict[str, pd.DataFrame]:
    return {f"t{number}": pd.DataFrame({"x": column}) for number, column in enumerate(columns)}


def test_a_plan_joins_the_stack_as_one_table_and_the_report_says_so():
    plan = join_plan(SHOP)
    assert (plan.start, plan.tables) == ("shop.sales", ("shop.sales", "shop.product"))
    assert [step.cardinality for step in plan.steps] == ["many-to-one"]
    frame, report = merged(SHOP, stack=True)
    stacked = pd.concat([SHOP["shop.sales_2023"], SHOP["shop.sales_2024"]], ignore_index=True)
    pd.testing.assert_frame_equal(frame[list(stacked.columns)], stacked)
    assert frame["source_table"].value_counts().to_dict() == {"shop.sales_2024": 300, "shop.sales_2023": 200}
    assert frame["name"].tolist() == [f"p{number - 1}" for number in stacked["product_id"]]
    assert report.stacks == (("shop.sales", ("shop.sales_2023", "shop.sales_2024")),)
    assert "shop.sales is the stack of shop.sales_2023 and shop.sales_2024." in repr(report)
    assert "shop.sales is the stack of shop.sales_2023 and shop.sales_2024." in report._repr_html_()
    assert "500 rows, 2 tables" in plan._repr_html_()


@pytest.mark.parametrize(("letter", "is_stacked"), [("F", True), ("A", False)])
def test_tables_of_many_columns_with_rows_of_their_own_are_parts_of_one(letter, is_stacked):
    """Catalogues of satellites, and of what failed to become one, number their rows in one column, each otherwise."""
    owners = pd.DataFrame({"owner": [f"O{at}" for at in range(12)], "town": [f"town {at % 5}" for at in range(12)]})
    catalogues = {
        name: pd.DataFrame(
            {"code": [f"{sign}{at:04}" for at in range(rows)], "owner": [f"O{at % 12}" for at in range(rows)]}
            | {f"x{column}": [at * 1.5 + column for at in range(rows)] for column in range(9)}
        )
        for name, sign, rows in (("space.auxcat", "A", 90), ("space.ftocat", letter, 60))
    }
    plan = join_plan({**catalogues, "space.owner": owners})
    assert plan.tables == (("space.auxcat+ftocat", "space.owner") if is_stacked else plan.tables)
    assert len(plan.tables) == (2 if is_stacked else 3)
    tables = [*open_corpus({**catalogues, "space.owner": owners}).profiles]
    doubted = plan_joins(tables, infer_key_pairs(tables), doubtful=["space.ftocat"])
    assert {"space.auxcat", "space.owner"} <= {*doubted.tables}


def test_frames_that_were_read_from_tables_of_two_years_are_stacked_unless_told_not_to():
    corpus = open_corpus(SHOP)
    first, second, product = (corpus.read(name) for name in SHOP)
    with pytest.warns(TablesStackedWarning, match=r"sales_2023 \(200 rows\) and shop\.sales_2024 \(300 rows\) have"):
        frame = first.tag.merge(second, product)
    assert len(frame) == 500
    assert frame.tag.merge_report.stacks == (("shop.sales", ("shop.sales_2023", "shop.sales_2024")),)
    with pytest.raises(FanOut):
        first.tag.merge(second, product, stack=False)
    # Nothing says that frames without a name are of two years.
    with pytest.raises(FanOut):
        SHOP["shop.sales_2023"].tag.merge(SHOP["shop.sales_2024"], product)


def test_what_is_said_of_one_table_and_taken_for_its_like_is_said():
    others = {name: SHOP[name] for name in ("shop.product", "shop.sales_2023", "shop.sales_2024")}
    on = "sales_2023.product_id = product.product_id"
    said = r"on= names shop\.sales_2023 and applies to all of them.*stack=False joins them separately"
    with pytest.warns(TablesStackedWarning, match=said):
        frame = tf.merge(others, on=on, on_fanout="allow", on_loss="allow")
    assert len(frame) == 500
    corpus = open_corpus(SHOP)
    found = corpus.tables.tag.retrieve_tables("sales of products", k=3)
    with pytest.warns(TablesStackedWarning, match=said):
        found.merge(on=on, on_loss="allow")
    both = [on, on.replace("2023", "2024")]
    for stack_them, asked in ((None, both), (True, on), (None, "product_id")):
        found.merge(on=asked, stack=stack_them, on_loss="allow")
    anchored = corpus.read("sales_2023").tag.retrieve_tables("sales of products", k=2, corpus=corpus)
    with pytest.warns(TablesStackedWarning, match="the result has the rows of all of them"):
        assert len(anchored.merge(on_loss="allow")) == 500


@pytest.mark.parametrize(("columns", "are_alike"), [(19, False), (20, True)])
def test_one_column_of_many_may_hold_texts_in_one_year(columns: int, are_alike: bool):
    rest = {f"c{number}": [number, 2, 3] for number in range(columns - 1)}
    frames = {"games_2023": pd.DataFrame({"seed": [1, 2, 3], **rest}),
              "games_2024": pd.DataFrame({"seed": ["WC", "1", "2"], **rest})}  # fmt: skip
    corpus = tf.open_corpus(frames)
    groups = [group.tables for group in infer_unions(corpus.profiles)]
    assert groups == [("frames.games_2023", "frames.games_2024")] * are_alike
    if are_alike:
        assert stack(frames)["seed"].tolist() == [1, 2, 3, "WC", "1", "2"]


def test_an_anchor_is_stacked_with_its_like_and_hints_follow():
    profiles = open_corpus(SHOP).profiles
    keys = infer_key_pairs(profiles)
    plan = plan_joins(profiles, keys, anchor="shop.sales_2024", role_hints=role_hints(keys, ["product"]))
    assert plan.start == "shop.sales"
    assert plan.use("sales_2023.product_id = product.product_id").start == "shop.sales"
    apart = plan_joins(profiles, keys, stack_unions=False)
    assert set(apart.tables) == set(SHOP)


def test_the_stack_comes_from_a_corpus_and_its_sql_gives_the_same_rows(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        for name, frame in SHOP.items():
            frame.to_sql(name.removeprefix("shop."), connection, index=False)
        corpus = open_corpus(tmp_path / "shop.sqlite")
        plan = plan_joins(corpus.profiles, infer_key_pairs(corpus.profiles))
        by_sql = pd.read_sql(plan.sql(), connection)
    frame, _ = run_plan(plan, corpus)
    pd.testing.assert_frame_equal(by_sql, frame)
    some, report = run_plan(plan, corpus, where={"source_table": "shop.sales_2024", "name": "p3"}, limit=4)
    expected = frame[(frame["source_table"] == "shop.sales_2024") & (frame["name"] == "p3")].head(4)
    pd.testing.assert_frame_equal(some, expected.reset_index(drop=True))
    assert report.engine == "pandas"
    (group,) = infer_unions(corpus.profiles)
    columns = ["source_table", "amount", "sale_id"]
    by_hand = stack(*map(corpus.read, group.tables), columns=columns[1:])
    pd.testing.assert_frame_equal(by_hand[columns], frame[columns])


def test_frames_of_a_list_are_not_stacked_since_nothing_names_them():
    with pytest.raises(NotConnected, match=r"frame_1 and frames\.frame_2 have the same columns: stack them"):
        join_plan([SHOP["shop.sales_2023"], SHOP["shop.sales_2024"]])


@pytest.mark.parametrize(
    ("columns", "dtype", "values"),
    [
        (([1, 2], [3]), "int64", [1, 2, 3]),
        (([1], pd.array([None, 2], dtype="Int64")), "Int64", [1, pd.NA, 2]),
        (([1], [None, None]), "Int64", [1, pd.NA, pd.NA]),
        (([1], [0.5]), "float64", [1.0, 0.5]),
        (([2**60 + 1], [0.5]), "object", [2**60 + 1, 0.5]),
        (([1], ["a"]), "object", [1, "a"]),
        (([True], [None]), "boolean", [True, pd.NA]),
        (([True], [2]), "object", [True, 2]),
        ((pd.Categorical(["a"]), pd.Categorical(["b", "a"])), "category", ["a", "b", "a"]),
        (([1], pd.Series([], dtype=object)), "int64", [1]),
        ((pd.to_datetime(["2020-01-01"]), [None]), "datetime64[ns]", [pd.Timestamp("2020-01-01"), pd.NaT]),
        (
            (pd.to_datetime(["2020-01-01"], utc=True), pd.to_datetime(["2020-01-01"])),
            "object",
            [pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2020-01-01")],
        ),
        (([[1]], [{"a": 1}]), "object", [[1], {"a": 1}]),
    ],
)
def test_no_value_changes_on_the_way(columns, dtype, values):
    frames = parts(*columns)
    found = stack(frames, source=None)["x"]
    assert str(found.dtype).replace("[us]", "[ns]").replace("[s]", "[ns]") == dtype
    assert repr(found.tolist()) == repr(values)


def test_what_does_not_stack_is_said():
    a, b, c = pd.DataFrame({"x": [1], "y": [2]}), pd.DataFrame({"X": [3]}), pd.DataFrame({"x": [1]})
    with pytest.raises(ColumnNotFound, match=r"no column 'y' in frames\.b"):
        stack({"a": a, "b": b})
    with pytest.raises(ColumnNotFound, match=r"no column 'y' in frames\.b"):
        stack({"b": b, "a": a})
    assert stack({"a": a, "b": b}, columns=["x"])["x"].tolist() == [1, 3]
    with pytest.raises(InvalidArgument, match="source="):
        stack(b, c, source="x")
    with pytest.raises(InvalidArgument, match="no frames given"):
        stack([])
    with pytest.raises(InvalidArgument, match="with the same name"):
        stack({"d": pd.DataFrame([[1, 2]], columns=["x", "X"])})


def test_frames_are_stacked_one_by_one_in_a_list_or_by_name():
    one, two = pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [2]}, index=pd.Index([7], name="id"))
    assert stack(one, one).to_dict("list") == {"x": [1, 1], "source_table": ["frame_1", "frame_2"]}
    assert stack([one, one]).equals(stack(one, one))
    assert stack({"a": two, "b.c": two}).to_dict("list") == {"id": [7, 7], "x": [2, 2], "source_table": ["a", "b.c"]}
