"""Merges and their reports, as tests want them: the same rows, and the same account of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

import tagframe as tf
from tagframe.joins import JoinPlan
from tagframe.merging import MergeReport, run_plan


def merged(frames: Any, plan: JoinPlan | None = None, **options: Any) -> tuple[pd.DataFrame, MergeReport]:
    """``tf.merge`` of frames, and what its report says."""
    frame = tf.merge(frames, plan=plan, **options)
    return frame, frame.tag.merge_report


def counts(report: MergeReport) -> dict[str, Any]:
    """What a report counts, without where and how fast it was counted."""
    steps = [replace(step, seconds=0.0) for step in report.steps]
    return {"start_rows": report.start_rows, "lost": report.lost, "filtered": report.filtered, "rows": report.rows,
            "steps": steps}  # fmt: skip


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """With one null; of what widths integers are depends on the rows that were read."""
    return frame.astype(object).where(frame.notna(), None)


def alike(
    plan: JoinPlan,
    corpus: tf.Corpus,
    *,
    by: str | None = None,
    ordered: bool = True,
    typed: bool = False,
    base: Any = None,
    **options: Any,
) -> tuple[pd.DataFrame, MergeReport]:
    """The merge, whose rows and counts are those of whole tables in memory.

    Args:
        plan: how tables are joined.
        corpus: where they are.
        by: the way it runs.
        ordered: whether the rows come in the same order.
        typed: whether the columns are of the same dtypes.
        base: the plan and the corpus in memory, where not of the same tables.
        **options: of both merges.
    """
    frame, report = run_plan(plan, corpus, by=by, **options)  # type: ignore[arg-type]
    expected, account = run_plan(*(base or (plan, corpus)), by="memory", **options)
    assert (list(frame), account.engine) == (list(expected), "pandas")
    assert not typed or frame.dtypes.equals(expected.dtypes)
    if ordered:
        pd.testing.assert_frame_equal(plain(frame), plain(expected), obj=str(options))
    else:
        mine, theirs = (sorted(map(repr, plain(one).to_numpy().tolist())) for one in (frame, expected))
        assert mine == theirs, options
    assert counts(report) == counts(account), options
    return frame, report
