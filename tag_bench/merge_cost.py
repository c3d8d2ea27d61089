"""Time of a merge, compared with plain ``pandas.merge`` of the same plan."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import numpy as np
import pandas as pd

import tagframe
from tag_bench.measured import timed
from tagframe.joins import JoinPlan, JoinStep, PlanTable
from tagframe.keys import Evidence, KeyPair

_DIMENSIONS = {"customer": 50_000, "product": 5_000, "store": 200}
_REPEATS = 5


def merge_ratio(rows: int) -> dict[str, float]:
    """Our time relative to plain pandas, for a fact of ``rows`` rows and three dimensions, by integer keys."""
    frames = _frames(rows)
    plan = _plan(frames)
    runs = (lambda: tagframe.merge(frames, plan=plan)), (lambda: _plain(frames))
    ours, plain = (statistics.median(timed(run)[0] for _ in range(_REPEATS)) for run in runs)
    return {"clean": round(ours / plain, 3), "clean_seconds": round(ours, 3), "plain_seconds": round(plain, 3)}


def _frames(rows: int) -> dict[str, pd.DataFrame]:
    random = np.random.default_rng(0)
    fact: dict[str, object] = {"sale_id": np.arange(rows)}
    frames = {}
    for name, size in _DIMENSIONS.items():
        fact[f"{name}_id"] = random.integers(1, size + 1, rows)
        frames[f"shop.{name}"] = pd.DataFrame(
            {f"{name}_id": np.arange(1, size + 1), f"{name}_name": [f"{name} {number}" for number in range(size)]}
        )
    fact["amount"] = random.random(rows)
    return {"shop.sale": pd.DataFrame(fact), **frames}


def _plan(frames: Mapping[str, pd.DataFrame]) -> JoinPlan:
    steps = []
    for name in _DIMENSIONS:
        key = KeyPair("shop.sale", (f"{name}_id",), f"shop.{name}", (f"{name}_id",), 1.0, Evidence())
        steps.append(JoinStep(f"shop.{name}", (f"{name}_id",), "shop.sale", (f"{name}_id",), "many-to-one", key))
    sources = tuple(
        PlanTable(table, "shop", table.partition(".")[2], tuple(frame.columns), len(frame))
        for table, frame in frames.items()
    )
    return JoinPlan("shop.sale", tuple(steps), sources)


def _plain(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    frame = frames["shop.sale"]
    for name in _DIMENSIONS:
        frame = frame.merge(frames[f"shop.{name}"], on=f"{name}_id")
    return frame
