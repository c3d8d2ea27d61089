"""One run of one side of a case of ``tag_bench speed operators``, in a separate process that prints its figures."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from typing import Any

from tag_bench.speed.cases import CASES, Case
from tag_bench.speed.cases.case import IN_FLIGHT
from tag_bench.speed.sides import memory_mb, peak_mb


def _get(url: str, what: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/{what}", timeout=10) as response:
        figures: dict[str, Any] = json.loads(response.read())
        return figures


def run(side: str, case: Case, url: str) -> dict[str, float]:
    """The figures of one run; with few requests also the time without the server's share."""
    setup = case.ours if side == "ours" else case.peer
    assert setup is not None
    measured = setup(url)
    _get(url, "reset")
    held = memory_mb()
    cpu, start = time.process_time(), time.perf_counter()
    own = measured() or {}
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    stats = _get(url, "stats")
    figures = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "requests": stats["requests"],
        "tokens": stats["tokens"],
        "rounds": stats["rounds"],
        "peak_mb": max(0.0, peak_mb() - held),
    }
    if case.rows is not None:
        figures |= {"rows_a_second": case.rows / seconds, "tokens_a_row": stats["tokens"] / case.rows}
    if stats["requests"] <= IN_FLIGHT:
        figures["seconds_above_server"] = seconds - stats["rounds"] * case.latency
    return {**figures, **own}


if __name__ == "__main__":
    name, case_name, base = sys.argv[1:]
    print(json.dumps(run(name, CASES[case_name], base)))
