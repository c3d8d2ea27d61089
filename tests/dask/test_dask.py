from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dask.dataframe")
import dask
import dask.dataframe as dd
from scripted import Scripted, shown_rows

import tagframe as tf
import tagframe.dask
from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import (
    ColumnNotFound,
    FactUnknown,
    FanOut,
    InvalidArgument,
    NotConnected,
    PartitionChanged,
    RowsFailed,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """No processes but where a test starts some."""
    with dask.config.set(scheduler="synchronous"):
        yield


def even(message: str) -> str:
    return str(shown_rows(message)[-1]["n"] % 2 == 0)


@pytest.fixture
def numbers() -> pd.DataFrame:
    return pd.DataFrame({"n": [1, 2, 2, 4, 5, 1, 6, 2], "text": list("abcdefgh")}, index=range(10, 18))


def parts(frame: pd.DataFrame, number: int = 3) -> Any:
    return dd.from_pandas(frame, npartitions=number)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Dask makes texts into Arrow's."""
    frame = frame.copy()
    frame.attrs = {}
    return frame.astype({name: object for name in frame if pd.api.types.is_string_dtype(frame[name].dtype)})


@pytest.mark.pandas2
def test_partitions_give_what_one_frame_gives_and_equal_rows_are_asked_once(numbers: pd.DataFrame):
    lm = Scripted(even)
    lazy = parts(numbers).tag.sem_filter("{n} is even", lm=lm)
    assert lm.asked == []
    assert list(lazy.columns) == ["n", "text"]
    found = lazy.compute()
    pd.testing.assert_frame_equal(plain(found), plain(tf.sem_filter(numbers, "{n} is even", lm=Scripted(even))))
    assert sorted(shown_rows(message)[0]["n"] for message in lm.asked) == [1, 2, 4, 5, 6]


@pytest.mark.pandas2
def test_len_and_compute_pay_once(numbers: pd.DataFrame):
    lm = Scripted(even)
    lazy = parts(numbers).tag.sem_filter("{n} is even", lm=lm)
    assert len(lazy) == 5
    assert len(lazy.compute()) == 5
    assert lazy["n"].sum().compute() == 16
    assert len(lm.asked) == 5


@pytest.mark.pandas2
def test_head_and_one_partition_ask_for_no_more(numbers: pd.DataFrame):
    lm = Scripted(even)
    lazy = parts(numbers, 4).tag.sem_map("Say {n}", lm=Scripted(lambda message: "7"))
    assert lazy.head(1)["_map"].tolist() == ["7"]
    lazy = parts(numbers, 4).tag.sem_filter("{n} is even", lm=lm)
    assert len(lazy.partitions[0].compute()) == 1
    assert len(lm.asked) == 2


@pytest.mark.pandas2
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("sem_filter", {"return_all": True}, even),
        ("sem_filter", {"return_explanations": True}, lambda message: f"As it is.\nAnswer: {even(message)}"),
        ("sem_map", {"dtype": int}, lambda message: str(shown_rows(message)[-1]["n"] * 2)),
        ("sem_map", {"choices": ["True", "False"], "suffix": "_parity"}, even),
        ("sem_score", {}, lambda message: str(shown_rows(message)[-1]["n"] / 10)),
    ],
)  # fmt: skip
def test_operators_that_look_at_one_row(numbers: pd.DataFrame, name: str, arguments: dict[str, Any], answer: Any):
    lazy = getattr(parts(numbers).tag, name)("{n} is even", lm=Scripted(answer), **arguments)
    expected = getattr(tf, name)(numbers, "{n} is even", lm=Scripted(answer), **arguments)
    found = lazy.compute()
    assert list(lazy.columns) == list(found.columns) == list(expected.columns)
    pd.testing.assert_frame_equal(plain(found), plain(expected), check_dtype=False)


@pytest.mark.pandas2
def test_failed_rows(numbers: pd.DataFrame):
    def fails(message: str) -> str:
        if shown_rows(message)[-1]["n"] == 2:
            raise ConnectionError("dropped")
        return even(message)

    with pytest.raises(RowsFailed):
        parts(numbers).tag.sem_filter("{n} is even", lm=Scripted(fails)).compute()
    for policy in ("keep", "drop"):
        for name, options in (("sem_filter", {}), ("sem_map", {"dtype": bool})):
            lazy = getattr(parts(numbers).tag, name)("{n} is even", lm=Scripted(fails), on_error=policy, **options)
            expected = getattr(tf, name)(numbers, "{n} is even", lm=Scripted(fails), on_error=policy, **options)
            pd.testing.assert_frame_equal(plain(lazy.compute()), plain(expected), check_dtype=False)


@pytest.mark.pandas2
def test_odd_cells(tmp_path: Path):
    odd = pd.DataFrame({"n": [1, True, 1.0, None, float("nan"), "1", [1], {"a": 1}, pd.NaT, "x"], "k": 1}, dtype=object)
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_pandas(odd, npartitions=3)
        lm, one = Scripted(lambda message: "7"), Scripted(lambda message: "7")
        found = lazy.tag.sem_map("Say {n}", lm=lm).compute()
    expected = tf.sem_map(odd, "Say {n}", lm=one)
    assert found["_map"].isna().tolist() == expected["_map"].isna().tolist()
    assert sorted(set(lm.asked)) == sorted(set(one.asked))
    assert len(lm.asked) == len(set(lm.asked))


@pytest.mark.pandas2
def test_empty_partitions_and_empty_frames(numbers: pd.DataFrame):
    lazy = parts(numbers)
    none = lazy[lazy["n"] > 99].tag.sem_filter("{n} is even", lm=Scripted(even)).compute()
    assert (len(none), list(none.columns)) == (0, ["n", "text"])
    some = lazy[lazy["n"] > 5].tag.sem_map("Say {n}", lm=Scripted(lambda message: "7")).compute()
    assert some["_map"].tolist() == ["7"]


@pytest.mark.pandas2
def test_the_best_of_all_partitions(numbers: pd.DataFrame):
    def order(message: str) -> str:
        rows = shown_rows(message)
        return ", ".join(str(row + 1) for row in sorted(range(len(rows)), key=lambda row: -rows[row]["n"]))

    for options in ({"K": 2}, {"K": 5}, {"K": 1, "group_by": "kind"}):
        frame = numbers.assign(kind=["u", "v"] * 4)
        lazy = parts(frame).tag.sem_topk("Which {n} is largest?", lm=Scripted(order), **options)
        expected = tf.sem_topk(frame, "Which {n} is largest?", lm=Scripted(order), **options)
        pd.testing.assert_frame_equal(plain(lazy.compute()), plain(expected))


@pytest.mark.pandas2
def test_one_answer_from_all_partitions(numbers: pd.DataFrame):
    lm = Scripted(lambda message: "All.\nSources: all")
    lazy = parts(numbers).tag.sem_agg("Summarise the {n}s", lm=lm)
    assert lm.asked == []
    assert lazy.compute()["_output"].tolist() == ["All."]
    assert len(shown_rows(lm.asked[0])) == 8
    grouped = parts(numbers.assign(kind=["u", "v"] * 4)).tag.sem_agg("Summarise the {n}s", group_by="kind", lm=lm)
    assert grouped.compute()["kind"].tolist() == ["u", "v"]


@pytest.mark.pandas2
def test_what_cannot_be_done_is_refused_by_name(numbers: pd.DataFrame):
    lm = Scripted(even)
    with pytest.raises(InvalidArgument, match="limit="):
        parts(numbers).tag.sem_filter("{n} is even", limit=3, lm=lm)
    with pytest.raises(ColumnNotFound):
        parts(numbers).tag.sem_filter("{m} is even", lm=lm)
    with pytest.raises(ColumnNotFound):
        parts(numbers).tag.sem_agg("{n}", group_by="kind", lm=lm)
    with pytest.raises(InvalidArgument, match="only the client"):
        pickle.dumps(parts(numbers).tag.sem_filter("{n} is even", lm=lm))
    assert lm.asked == []


@pytest.mark.pandas2
def test_rows_that_change_between_two_readings_are_named():
    lm, seen = Scripted(even), []

    def part(number: int) -> pd.DataFrame:
        seen.append(number)
        return pd.DataFrame({"n": [len(seen)]})

    lazy = dd.from_map(part, [0], meta=pd.DataFrame({"n": [1]}))
    with pytest.raises(PartitionChanged, match="persist"):
        lazy.tag.sem_filter("{n} is even", lm=lm).compute()


# --- several processes ------------------------------------------------------------------------------------------------


def dies_once(frame: pd.DataFrame, marker: str) -> pd.DataFrame:
    """Kill the worker that comes to it first."""
    if len(frame) and not os.path.exists(marker):
        Path(marker).touch()
        os._exit(1)
    return frame


@pytest.mark.filterwarnings("ignore")
def test_killed_workers_pay_nothing_again(live: Server, tmp_path: Path):
    from distributed import Client, LocalCluster

    frame = pd.DataFrame({"id": np.arange(4_000), "n": np.arange(4_000) % 50})
    live.answers = lambda request: str(json.loads(request.prompt.splitlines()[1])["n"] % 2 == 0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster),
        dask.config.set(scheduler=None),
    ):
        lazy = dd.from_pandas(frame, npartitions=8)
        before, after, meta = str(tmp_path / "before"), str(tmp_path / "after"), frame.iloc[:0]
        lazy = lazy.map_partitions(dies_once, before, meta=meta).tag.sem_filter("{n} is even")
        lazy = lazy.map_partitions(dies_once, after, meta=meta)
        assert len(lazy) == 2_000
        found = lazy.compute()
    assert found["id"].tolist() == frame.loc[frame["n"] % 2 == 0, "id"].tolist()
    assert len(live.requests) == 50
    assert os.path.exists(before)
    assert os.path.exists(after)


@pytest.mark.pandas2
def test_a_client_that_failed_resumes_from_the_store(live: Server, numbers: pd.DataFrame):
    broken = True

    def answers(request: Request) -> str | Reply:
        return error(400) if broken and '"n": 6' in request.prompt else "True"

    live.answers = answers
    with pytest.raises(RowsFailed):
        parts(numbers).tag.sem_filter("{n} is even").compute()
    broken, before = False, len(live.requests)
    assert len(parts(numbers).tag.sem_filter("{n} is even").compute()) == 8
    assert len(live.requests) == before + 1


# --- merges -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop() -> tuple[pd.DataFrame, pd.DataFrame]:
    generator = np.random.default_rng(0)
    orders = pd.DataFrame(
        {"order_id": range(900), "customer_id": pd.array(generator.integers(0, 60, 900), "Int64"), "n": 1}
    )
    orders.loc[::90, "customer_id"] = pd.NA
    customers = pd.DataFrame({"customer_id": range(55), "name": [f"c{n}" for n in range(55)], "n": 2})
    return orders, customers


@pytest.mark.pandas2
def test_a_merge_on_inferred_keys(shop: tuple[pd.DataFrame, pd.DataFrame]):
    orders, customers = shop
    for how in ("inner", "left"):
        merged = parts(orders).tag.merge(parts(customers, 2), how=how)
        found = merged.compute().sort_values("order_id")
        expected = tf.merge(orders, customers, how=how, on_loss="allow")
        assert found["order_id"].tolist() == expected["order_id"].tolist()
        assert found["name"].isna().tolist() == expected["name"].isna().tolist()
        assert list(found.columns) == list(expected.columns)
        report, same = merged.tag.merge_report, expected.tag.merge_report
        assert [replace(step, seconds=0.0) for step in report.steps] == [
            replace(step, seconds=0.0) for step in same.steps
        ]
        assert (report.rows, report.lost, report.start_rows) == (same.rows, same.lost, same.start_rows)
        assert report.steps[0].null_keys == 10
        assert "rows match" in " ".join(repr(report).split())


def test_keys_that_are_given_and_faults(shop: tuple[pd.DataFrame, pd.DataFrame]):
    orders, customers = shop
    renamed = customers.rename(columns={"customer_id": "id"})
    merged = parts(orders).tag.merge(renamed, on="customer_id = id")
    assert list(merged.columns) == ["order_id", "customer_id", "frame_1.n", "name", "frame_2.n"]
    assert len(merged) == orders["customer_id"].isin(range(55)).sum()
    with pytest.raises(FanOut, match="repeat") as caught:
        parts(customers).tag.merge(parts(orders), on="customer_id").compute()
    assert list(caught.value.rows.columns) == list(customers.columns)
    assert len(parts(customers).tag.merge(parts(orders), on="customer_id", on_fanout="allow")) > 55
    with pytest.raises(ColumnNotFound):
        parts(orders).tag.merge(customers, on="customer_id = key")
    with pytest.raises(NotConnected, match="on="):
        parts(pd.DataFrame({"a": ["x", "y"]})).tag.merge(pd.DataFrame({"b": [True, False]}))
    with pytest.raises(InvalidArgument, match="how"):
        parts(orders).tag.merge(customers, how="outer")  # type: ignore[arg-type]
    with pytest.raises(FactUnknown):
        _ = parts(orders).tag.merge_report
