"""Keys, plans and merges of plain frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from accounted import merged

from tagframe.errors import InvalidArgument, NotConnected
from tagframe.merging import infer_keys, join_plan

SALES = pd.DataFrame({"sale_no": [7, 8, 9], "shop_id": [2, 1, 2]}, index=[30, 10, 20])
SHOPS = pd.DataFrame({"shop_id": [1, 2], "town": ["Brno", "Cheb"]}, index=[5, 5])


def test_frames_in_a_list_are_called_by_their_position():
    (key,) = infer_keys([SALES, SHOPS])
    assert (key.left, key.right) == ("frames.frame_1.shop_id", "frames.frame_2.shop_id")
    assert join_plan([SALES, SHOPS]).start == "frames.frame_1"
    frame, report = merged([SALES, SHOPS])
    assert frame["town"].tolist() == ["Cheb", "Brno", "Cheb"]
    assert frame.index.tolist() == [0, 1, 2]
    assert report.start == "frames.frame_1"


def test_the_first_frame_is_the_anchor():
    with pytest.raises(Exception, match=r"would repeat 1 row of frames\.frame_1"):
        merged([SHOPS, SALES])
    frame, _ = merged([SHOPS, SALES], on_fanout="allow")
    assert frame["sale_no"].tolist() == [8, 7, 9]


def test_a_plan_overruled_by_hand_is_followed():
    other = SHOPS.assign(manager_shop=[2, 1])
    plan = join_plan({"sales": SALES, "shops": other}).use("sales.shop_id = shops.manager_shop")
    frame, _ = merged({"sales": SALES, "shops": other}, plan)
    assert frame["town"].tolist() == ["Brno", "Cheb", "Brno"]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([SALES, join_plan(SALES, SHOPS)], "by name: plan="),
        ([SALES, "x"], "is a str, not a pandas.DataFrame"),
        ([SALES, pd.DataFrame([[1, 2]], columns=["a", "a"])], "more than one column called 'a'"),
        ([pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")]))], "MultiIndex"),
        ([], "no frames given"),
    ],
)
def test_what_is_no_frame_or_has_no_plain_columns_is_refused(frames, message):
    with pytest.raises(InvalidArgument, match=message):
        merged(frames)


def test_frames_that_do_not_connect_are_named():
    cats = pd.DataFrame({"cat": ["Tom", "Kit"], "weight": [3.5, 4.25]})
    with pytest.raises(NotConnected, match=r"\{frames\.cats\} \| \{frames\.shops\}"):
        join_plan({"cats": cats, "shops": SHOPS})


def test_a_single_frame_is_itself():
    frame, report = merged([SALES])
    pd.testing.assert_frame_equal(frame, SALES.reset_index(drop=True))
    assert report.steps == ()


def test_columns_that_are_not_text_are_taken_by_their_text():
    left = pd.DataFrame({0: [1, 2], "shop_id": [1, 2]})
    frame, _ = merged({"left": left, "shops": SHOPS})
    assert list(frame.columns) == ["0", "shop_id", "town"]


def test_the_column_that_numbers_an_unnamed_frames_rows_references_nothing():
    random = np.random.default_rng(0)
    sales = pd.DataFrame({"sale_id": range(100_000), "client_id": random.integers(1, 100_001, 100_000)})
    clients = pd.DataFrame({"client_id": random.permutation(100_000) + 1, "weight": random.random(100_000)})
    (key,) = infer_keys(sales, clients)
    assert (key.left, key.right) == ("frames.frame_1.client_id", "frames.frame_2.client_id")


def test_a_report_that_is_read_of_a_filtered_frame_says_what_it_is_of():
    frames = {"loans": pd.DataFrame({"loan": range(97), "client": [1] * 97}), "clients": pd.DataFrame({"client": [1]})}
    frame, report = merged(frames, on="client")
    assert "this frame" not in repr(report)
    filtered = frame.query("loan < 35").tag.merge_report
    assert "The merge gave 97 rows; this frame has 35 of them." in repr(filtered)
    assert filtered == report
    assert filtered.to_dict()["frame_rows"] == 35
    assert "frame_rows" not in report.to_dict()
    assert "this frame has 194." in repr(pd.concat([frame, frame]).tag.merge_report)
