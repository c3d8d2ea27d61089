"""A merge and its report, as most tests want them."""

from __future__ import annotations

from typing import Any

import pandas as pd

import tagframe as tf
from tagframe.joins import JoinPlan
from tagframe.merging import MergeReport


def merged(frames: Any, plan: JoinPlan | None = None, **options: Any) -> tuple[pd.DataFrame, MergeReport]:
    """``tf.merge`` of frames, and what its report says."""
    frame = tf.merge(frames, plan=plan, **options)
    return frame, frame.tag.merge_report
