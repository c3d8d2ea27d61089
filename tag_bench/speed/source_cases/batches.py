"""More rows than fit into one frame: an operator over a Parquet folder, one batch at a time."""

from __future__ import annotations

import time
from pathlib import Path

import tagframe as tf
from tag_bench.server import ServerProcess
from tag_bench.speed.source_cases.case import Figures, SourceCase
from tag_bench.speed.source_cases.reviews import reviews

ROWS, FILES = 2_000_000, 8


def _filter(source: str, folder: Path) -> Figures:
    with ServerProcess(latency=0.0) as server:
        started = time.perf_counter()
        with tf.context(lm="openai/bench", api_base=server.url, api_key="none", progress=False, store=None):
            kept = tf.sem_filter(tf.read_batches(source), "{text} is about a classic", to=folder / "kept")
        seconds = time.perf_counter() - started
        requests = server.stats()["requests"]
    rows = sum(len(batch) for batch in tf.read_batches(kept, columns=["id"]))
    return {"seconds": seconds, "requests": requests, "rows": rows}


BATCHES = SourceCase("batches", reviews(ROWS, FILES), {"sem_filter": _filter})
