"""A partitioned frame that no single process holds: an operator over Dask, with and without a killed worker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pandas as pd

import tagframe as tf
from tag_bench.server import ServerProcess
from tag_bench.speed.source_cases.case import Figures, SourceCase
from tag_bench.speed.source_cases.reviews import reviews

ROWS, PARTITIONS = 5_000_000, 50


def dies_once(frame: pd.DataFrame, marker: str) -> pd.DataFrame:
    """Kill the first worker that gets a partition in the middle."""
    if len(frame) and int(frame["id"].iloc[0]) and not os.path.exists(marker):
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


def _run(source: str, folder: Path, *, kills: bool) -> Figures:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import tagframe.dask  # noqa: F401

    cluster: Any = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    with ServerProcess(latency=0.0) as server, cluster, Client(cluster):
        with tf.context(lm="openai/bench", api_base=server.url, api_key="none", progress=False, store=None):
            rows = dd.read_parquet(source)
            if kills:
                rows = rows.map_partitions(dies_once, str(folder / "dead"), meta=rows)
            started = time.perf_counter()
            kept = rows.tag.sem_filter("{text} is about a classic")
            number = len(kept)
            first = time.perf_counter() - started
            total = int(kept["id"].count().compute())
            seconds = time.perf_counter() - started
        requests = server.stats()["requests"]
    return {"seconds": seconds, "first_seconds": first, "requests": requests, "rows": number, "again": total}


def _undisturbed(source: str, folder: Path) -> Figures:
    return _run(source, folder, kills=False)


def _killed(source: str, folder: Path) -> Figures:
    figures = _run(source, folder, kills=True)
    return {**figures, "killed": float((folder / "dead").exists())}


PARTS = SourceCase("partitions", reviews(ROWS, PARTITIONS), {"sem_filter": _undisturbed, "killed_worker": _killed})
