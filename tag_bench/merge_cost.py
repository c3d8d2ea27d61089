"""Time and memory of a merge, compared with plain ``pandas.merge`` of the same plan."""

from __future__ import annotations

import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

import tagframe
from tagframe.errors import CoercedKeysWarning
from tagframe.joins import JoinPlan, JoinStep, PlanTable
from tagframe.keys import Evidence, KeyPair

_DIMENSIONS = {"customer": 50_000, "product": 5_000, "store": 200}
_REPEATS = 5


def merge_ratio(rows: int) -> dict[str, float]:
    """Our time and peak memory relative to plain pandas, for a fact of ``rows`` rows and three dimensions.

    "clean": integer keys. "coerced": the fact's keys are zero-padded text, those of the dimensions are integers; for
    plain pandas, the user converts the keys first, which is included in its time. "memory" is of the clean merge.
    """
    clean, padded = _frames(rows, padded=False), _frames(rows, padded=True)
    plan = _plan(clean)
    ours = _seconds(lambda: tagframe.merge(clean, plan=plan))
    plain = _seconds(lambda: _plain(clean))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoercedKeysWarning)
        ours_coerced = _seconds(lambda: tagframe.merge(padded, plan=plan))
    plain_coerced = _seconds(lambda: _plain_converted(padded))
    memory = _peak(lambda: tagframe.merge(clean, plan=plan)) / _peak(lambda: _plain(clean))
    return {
        "clean": round(ours / plain, 3),
        "coerced": round(ours_coerced / plain_coerced, 3),
        "memory": round(memory, 3),
        "clean_seconds": round(ours, 3),
        "coerced_seconds": round(ours_coerced, 3),
        "plain_seconds": round(plain, 3),
    }


def _frames(rows: int, *, padded: bool) -> dict[str, pd.DataFrame]:
    random = np.random.default_rng(0)
    fact: dict[str, object] = {"sale_id": np.arange(rows)}
    frames = {}
    for name, size in _DIMENSIONS.items():
        keys = random.integers(1, size + 1, rows)
        fact[f"{name}_id"] = pd.Series(keys).map(lambda key: f"{key:06d}") if padded else keys
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


def _plain_converted(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    fact = frames["shop.sale"]
    converted = fact.assign(**{f"{name}_id": pd.to_numeric(fact[f"{name}_id"]) for name in _DIMENSIONS})
    return _plain({**frames, "shop.sale": converted})


def _seconds(run: Callable[[], object], repeats: int = _REPEATS) -> float:
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def _peak(run: Callable[[], object]) -> int:
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
