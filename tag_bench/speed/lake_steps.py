"""One step of ``tag_bench speed corpus --lake``, in a separate process that prints its figures.

Each step starts with the library imported and the encoder loaded, which are the same for every corpus.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tagframe as tf
from tagframe.embed import get_embedder
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.index import index_of


def index(folder: Path, catalogue: Path, questions: list[str]) -> dict[str, Any]:
    """From files to the first answer: seconds, in total and by part, and peak memory."""
    started = time.perf_counter()
    corpus = tf.open_corpus(folder, catalogue=catalogue)
    opened = time.perf_counter()
    retrieve_tables(questions[0], corpus, k=5)
    answered = time.perf_counter()
    return {
        "seconds": round(answered - started, 1),
        "profiling_seconds": round(opened - started, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "peak_mb": round(_peak_mb()),
        "catalogue_mb": round(catalogue.stat().st_size / 1e6),
    }


def ask(folder: Path, catalogue: Path, questions: list[str]) -> dict[str, Any]:
    """Open again, with the times of the first question and of later ones."""
    before = _resident_mb()
    started = time.perf_counter()
    corpus = tf.open_corpus(folder, catalogue=catalogue)
    opened = time.perf_counter()
    retrieve_tables(questions[0], corpus, k=5)
    first = time.perf_counter()
    times, cpu = [], []
    for question in questions[1:]:
        asked, used = time.perf_counter(), time.process_time()
        retrieve_tables(question, corpus, k=5)
        times.append(1000 * (time.perf_counter() - asked))
        cpu.append(1000 * (time.process_time() - used))
    return {
        "open_seconds": round(opened - started, 2),
        "first_seconds": round(first - opened, 2),
        "question_ms": _spread(times),
        "question_cpu_ms": _spread(cpu),
        "resident_mb": round(_resident_mb() - before),
        "families": len(index_of(corpus, get_embedder()).families),
    }


def refresh(folder: Path, catalogue: Path, questions: list[str]) -> dict[str, Any]:
    """Open a lake after one table has changed, until the new state of that table is known."""
    started = time.perf_counter()
    corpus = tf.open_corpus(folder, catalogue=catalogue)
    opened = time.perf_counter()
    retrieve_tables(questions[0], corpus, k=5)
    return {
        "refresh_one_seconds": round(opened - started, 2),
        "refresh_and_first_seconds": round(time.perf_counter() - started, 2),
    }


def _spread(times: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(times), 1), "p95": round(float(np.percentile(times, 95)), 1)}


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak_mb() -> float:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1e3


STEPS = {step.__name__: step for step in (index, ask, refresh)}

if __name__ == "__main__":
    name, folder, catalogue, asked = sys.argv[1:]
    embedder = get_embedder()
    if embedder is not None:
        embedder.encode(["a question of no table"])
    figures = STEPS[name](Path(folder), Path(catalogue), json.loads(Path(asked).read_text(encoding="utf-8")))
    json.dump(figures, sys.stdout)
