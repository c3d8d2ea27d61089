"""A run says how many rows failed, may stop because of them, and sums up what it did."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import FactUnknown, FailedRowsWarning, RowsFailed


@pytest.fixture
def live(server: Server) -> Any:
    """A server that refuses every tenth row."""

    def answers(request: Request) -> str | Reply:
        n = int(re.findall(r'"n": (\d+)', request.prompt)[-1])
        return error(400) if n % 10 == 3 else str(n % 2 == 0)

    server.answers = answers
    with tf.context(lm="openai/test", api_base=server.url, api_key="none", progress=False, concurrency=4):
        yield server


def rows(count: int, start: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"n": range(start, start + count)})


def test_a_result_has_the_summary_of_its_run(live: Server):
    with pytest.warns(FailedRowsWarning, match=r"sem_filter: 2 of 20 rows have no answer; first: LMRequestFailed"):
        found = tf.sem_filter(rows(20), "{n} is even", on_error="keep")
    summary = found.tag.summary
    counts = {"operator": "sem_filter", "rows": 20, "yes": 10, "no": 8, "unsure": 0, "failed": 2}
    assert counts.items() <= summary.items()
    assert 20 <= summary["calls"] <= 22  # those that failed are asked without a form, too
    assert summary["tokens_in"] > 0
    assert {"tokens_out", "dollars", "seconds", "stored"} <= summary.keys()
    assert summary["first_error"].startswith("LMRequestFailed")
    assert json.loads(json.dumps(summary)) == summary
    with pytest.raises(RowsFailed) as failed:
        tf.sem_filter(rows(20), "{n} is even")
    assert failed.value.frame.tag.summary["stored"] == 18
    with pytest.raises(FactUnknown, match="summary"):
        _ = rows(1).tag.summary


@pytest.mark.parametrize(("most", "asked"), [(0.05, 150), (5, 100)])
def test_a_run_stops_when_too_many_rows_fail(live: Server, most: float, asked: int):
    with pytest.raises(RowsFailed, match=rf"sem_filter: .* more than max_failed={most} allows") as failed:
        tf.sem_filter(rows(200), "{n} is even", on_error="keep", max_failed=most)
    assert len(live.requests) < asked
    assert len(failed.value.frame) > 100  # those that were not asked are in it, too
    assert failed.value.frame["filter_error"].isna().sum() > 20
    assert failed.value.frame["filter_error"].str.startswith("RunStopped").sum() > 50


@pytest.mark.parametrize("most", [0.1, 2])
def test_as_many_as_may_fail_are_kept(live: Server, most: float):
    with pytest.warns(FailedRowsWarning):
        assert len(tf.sem_filter(rows(20), "{n} is even", on_error="drop", max_failed=most)) == 10


def test_a_number_is_one_of_all_batches(live: Server, tmp_path: Path):
    parts = [rows(20, start) for start in (0, 20, 40)]
    with pytest.warns(FailedRowsWarning), pytest.raises(RowsFailed, match="max_failed=1 allows"):
        tf.sem_filter(iter(parts), "{n} is even", on_error="drop", max_failed=5, to=tmp_path / "out")
    with pytest.warns(FailedRowsWarning):
        to = tf.sem_filter(iter(parts), "{n} is even", on_error="drop", to=tmp_path / "out")
    assert len(pd.read_parquet(to)) == 30


@pytest.mark.parametrize("most", [0, 0.0])
def test_a_pack_that_is_asked_again_row_by_row_has_not_failed(server: Server, most: float):
    """The server answers "True" to whatever is asked, so that no pack is answered and each row is."""
    with tf.context(lm="openai/test", api_base=server.url, api_key="none", progress=False):
        found = tf.sem_filter(rows(50), "{n} is even", rows_per_call=5, max_failed=most)
    assert (len(found), found.tag.summary["failed"]) == (50, 0)
