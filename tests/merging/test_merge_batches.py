from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument
from tagframe.merging import MergeArguments
from tagframe.retrieval import RetrievedTables

ORDERS = pd.DataFrame({"order_id": range(5_000), "buyer": np.arange(5_000) % 40, "total": np.arange(5_000) * 0.5})
BUYERS = pd.DataFrame({"buyer_id": range(30), "city": [f"city {n}" for n in range(30)]})


@pytest.fixture(params=["lake", "frames", pytest.param("postgres", marks=pytest.mark.pandas2)])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Corpus:
    if request.param == "frames":
        return tf.open_corpus({"orders": ORDERS, "buyers": BUYERS})
    if request.param == "lake":
        ORDERS.to_parquet(tmp_path / "orders.parquet")
        BUYERS.to_parquet(tmp_path / "buyers.parquet")
        return tf.open_corpus(tmp_path, engine="duckdb")
    database: Callable[..., str] = request.getfixturevalue("database")
    return tf.open_corpus(
        database(
            "CREATE TABLE orders AS SELECT n AS order_id, n % 40 AS buyer, n * .5::float8 AS total, "
            "CASE n WHEN 3000 THEN '20000-01-01'::date ELSE '2024-01-01'::date END AS day "
            "FROM generate_series(0, 4999) AS n; "
            "CREATE TABLE buyers AS SELECT n AS buyer_id, 'city ' || n AS city FROM generate_series(0, 29) AS n"
        )
    )


@pytest.fixture
def found(corpus: tf.Corpus) -> tf.RetrievedTables:
    return tf.retrieve_tables("orders and their buyers", corpus, k=2)


@pytest.mark.filterwarnings("ignore")
def test_batches_have_the_rows_and_the_report_of_the_whole_merge(found: tf.RetrievedTables):
    on = "orders.buyer = buyers.buyer_id"
    whole = found.merge(on=on)
    batches = found.merge_batches(on=on, rows=700)
    first = next(batches)
    with pytest.raises(InvalidArgument, match="after its last batch"):
        _ = batches.merge_report
    parts = [first, *batches]
    assert [len(part) for part in parts] == [700, 700, 700, 700, 700, 250]
    together = pd.concat(parts)
    assert together.index.tolist() == list(range(3_750))
    by = ["order_id"]
    ordered = together.sort_values(by)[whole.columns].astype(str).to_numpy()
    assert (ordered == whole.sort_values(by).astype(str).to_numpy()).all()
    told, same = batches.merge_report, whole.tag.merge_report
    assert (told.rows, told.lost, told.start_rows) == (same.rows, same.lost, same.start_rows)


@pytest.mark.filterwarnings("ignore")
def test_a_merge_that_is_closed_early_reads_no_further_and_the_next_one_is_whole(found: tf.RetrievedTables):
    on = "orders.buyer = buyers.buyer_id"
    batches = found.merge_batches(on=on, rows=10)
    next(batches)
    batches.close()
    assert list(batches) == []
    assert sum(map(len, found.merge_batches(on=on, rows=1_000))) == 3_750


@pytest.mark.filterwarnings("ignore:.*appear once")
def test_batches_warn_as_the_whole_merge_does_where_no_row_has_a_partner(found: tf.RetrievedTables):
    on = "orders.order_id = buyers.city"
    asked: dict[str, Any] = {"on": on, "how": "left", "on_fanout": "allow"}
    for merge in (found.merge, lambda **given: list(found.merge_batches(rows=2_000, **given))):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            merge(**asked)
        assert any("no row" in str(one.message) for one in said), [str(one.message) for one in said]


def test_batches_take_the_arguments_of_a_whole_merge():
    whole, parts = (
        [name for name in inspect.signature(function).parameters if name != "arguments"]
        for function in (RetrievedTables.merge, RetrievedTables.merge_batches)
    )
    assert {*whole} | {"rows"} == {*parts, *MergeArguments.__annotations__}


@pytest.mark.filterwarnings("ignore")
def test_bad_batches_are_refused(found: tf.RetrievedTables):
    for rows in (0, True, "10"):
        with pytest.raises(InvalidArgument, match="rows must be"):
            found.merge_batches(rows=rows)  # type: ignore[arg-type]
    (nothing,) = found.merge_batches(on="orders.buyer = buyers.buyer_id", where={"city": "nowhere"}, columns=["city"])
    assert list(nothing.columns) == ["city"]
