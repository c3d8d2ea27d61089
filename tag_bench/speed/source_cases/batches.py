"""Rows that no frame holds at once: an operator over a Parquet folder, a batch at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tagframe as tf
from tag_bench.server import ServerProcess
from tag_bench.speed.source_cases.case import Figures, SourceCase

ROWS, DISTINCT, FILES = 2_000_000, 2_000, 8


@contextmanager
def _place(folder: Path, scale: float) -> Iterator[str]:
    """Reviews of 80 bytes, of which few differ, beside a number of their own."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    place, generator = folder / "reviews", np.random.default_rng(0)
    place.mkdir()
    texts = pa.array([f"Review {number} of {DISTINCT}. ".ljust(80, "x") for number in range(DISTINCT)])
    rows = int(ROWS * scale) // FILES
    for file in range(FILES):
        chosen = pa.array(generator.integers(0, DISTINCT, rows, dtype=np.int32))
        numbers = pa.array(np.arange(file * rows, (file + 1) * rows))
        table = pa.table({"id": numbers, "text": pa.DictionaryArray.from_arrays(chosen, texts).cast(pa.string())})
        pq.write_table(table, place / f"{file}.parquet")
    yield str(place)


def _filter(place: str, folder: Path) -> Figures:
    with ServerProcess(latency=0.0) as server:
        started = time.perf_counter()
        with tf.context(lm="openai/bench", api_base=server.url, api_key="none", progress=False, store=None):
            kept = tf.sem_filter(tf.read_batches(place), "{text} is about a classic", to=folder / "kept")
        seconds = time.perf_counter() - started
        requests = server.stats()["requests"]
    rows = sum(len(batch) for batch in tf.read_batches(kept, columns=["id"]))
    return {"seconds": seconds, "requests": requests, "rows": rows}


BATCHES = SourceCase("batches", _place, {"sem_filter": _filter})
