"""What benchmarks measure alike: times, memory, calibration, and runs in processes of their own."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from tagframe.evaluation.scores import scores_of
from tagframe.retrieval.problem import Floats

T = TypeVar("T")

_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Environment of runs: no progress bars, and no download of prices."""


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """The seconds that a call takes, and its result."""
    started = time.perf_counter()
    result = run()
    return time.perf_counter() - started, result


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Median and 95th percentile."""
    return {"median": round(statistics.median(values), digits), "p95": round(float(np.percentile(values, 95)), digits)}


def percent(values: Iterable[Any], digits: int = 2) -> float | None:
    """The mean in percent; None for nothing."""
    known = [float(value) for value in values]
    return round(100 * float(np.mean(known)), digits) if known else None


def of_sets(found: Sequence[tuple[Collection[str], Collection[str], float | None]]) -> dict[str, Any]:
    """How good chosen sets of tables are: shares in percent, the number of tables relative to the needed ones, and the
    calibration of the chance that a set is complete, if it is known.

    Args:
        found: for each question the ids of the chosen and of the needed tables, and the chance.
    """
    scores = np.array([scores_of(ids, gold) for ids, gold, _ in found])
    shares = {name: percent(column) for name, column in zip(("P", "R", "F1", "CR", "exact"), scores.T, strict=True)}
    over = round(float(np.mean([len(ids) / len(gold) for ids, gold, _ in found])), 3)
    known = [chance for _, _, chance in found if chance is not None]
    given = {**shares, "tables_over_gold": over}
    if len(known) < len(found):
        return given
    return {**given, "confidence": percent(known), "reliability": reliability(np.array(known), scores[:, 3])}


def reliability(chance: Floats, truth: Floats) -> float:
    """The count-weighted mean distance between mean chance and true share, over ten bins of the chance."""
    tenth = np.minimum((chance * 10).astype(int), 9)
    gaps = [abs(float((chance - truth)[tenth == part].sum())) for part in np.unique(tenth)]
    return round(sum(gaps) / max(len(chance), 1), 4)


def memory_mb() -> float:
    """The memory of the process now, in MB; on Linux, the peak counter is reset."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return peak_mb()


def peak_mb() -> float:
    """The peak memory of the process, in MB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def in_process(module: str, *arguments: object, timeout: float | None = None, **environment: str) -> dict[str, Any]:
    """The figures that a module prints in its last line, run in a new process.

    Raises:
        click.ClickException: it failed.
        subprocess.TimeoutExpired: it took longer than ``timeout`` seconds.
    """
    program = [sys.executable, "-m", module, *map(str, arguments)]
    known = os.environ | _QUIET | environment
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, timeout=timeout, check=False, env=known)
    if done.returncode:
        raise click.ClickException(f"{' '.join(program[1:])} failed, see above")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def median(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}
