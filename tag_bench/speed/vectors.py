"""``tag_bench speed vectors``: the exact product with all vectors of a lake, compared with FAISS.

A question needs the best column of *every* table, for each of its words: the distance of a table from all others is a
signal. An approximate index gives only the nearest columns of each word.

The vectors are those of a lake's columns, as texts of table and column. Each word has a random vector, and a text has
the mean of its words, so that texts with common words are near. Larger lakes are several copies, each reflected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from tag_bench import benchmark, number
from tag_bench.speed import lakes
from tagframe.corpus.documents import identifier_words

Vectors = npt.NDArray[np.float32]

_DIMENSION = 384
_TEXTS = 12
"""The number of texts of a question: itself and its words."""
_QUESTIONS = 4
_NOISE = 0.05
"""The distance of a question's texts from those of columns, in standard deviations per dimension."""
_SHARES = (16, 8, 4)
"""One of this many lists is searched."""


def texts(source: str, count: int | None) -> list[str]:
    """The distinct texts of the columns of a lake, up to a limit."""
    tables = lakes.synthetic_tables() if source == lakes.SYNTHETIC else lakes.spider2_tables(Path(source))
    found: dict[str, None] = {}
    for table in tables:
        if count is not None and len(found) >= count:
            break
        words = " ".join(identifier_words(table.name))
        found.update(dict.fromkeys(f"{words} {' '.join(identifier_words(name))}" for name, _ in table.columns))
    return list(found)[:count]


def vectors_of(texts: Sequence[str], random: np.random.Generator) -> Vectors:
    """Unit vectors: shape (n, 384)."""
    numbers: dict[str, int] = {}
    cut = [[numbers.setdefault(word, len(numbers)) for word in text.split()] or [0] for text in texts]
    words = random.standard_normal((max(len(numbers), 1), _DIMENSION)).astype(np.float32)
    return _unit(np.stack([words[row].mean(axis=0) for row in cut]))


def repeated(vectors: Vectors, times: int, random: np.random.Generator) -> Vectors:
    """Several lakes of the same kind, each in another region of the space."""
    parts = [vectors]
    for _ in range(times - 1):
        mirror = _unit(random.standard_normal((1, _DIMENSION)).astype(np.float32))
        parts.append(np.subtract(vectors, 2 * (vectors @ mirror.T) @ mirror, dtype=np.float32))
    return np.concatenate(parts)


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def compare(vectors: Vectors, nearest: int, random: np.random.Generator) -> dict[str, Any]:
    """CPU milliseconds per question, exactly and with an inverted file, and the recall of the inverted file."""
    import faiss

    faiss.omp_set_num_threads(1)
    nearest = min(nearest, len(vectors) // 2)
    near = vectors[random.choice(len(vectors), _QUESTIONS * _TEXTS)]
    asked = _unit(near + _NOISE * random.standard_normal(near.shape).astype(np.float32))
    each = [asked[start : start + _TEXTS] for start in range(0, len(asked), _TEXTS)]
    products, exact_ms = _timed(lambda texts: texts @ vectors.T, each)
    expected = np.argpartition(-products, nearest, axis=1)[:, :nearest]
    lists = max(1, int(2 * len(vectors) ** 0.5))
    started = time.process_time()
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(_DIMENSION), _DIMENSION, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = 8
    index.train(vectors[random.choice(len(vectors), min(len(vectors), 40 * lists), replace=False)])
    index.add(vectors)
    built, rows = _rounded(started, 1.0), []
    for share in _SHARES:
        index.nprobe = max(1, lists // share)
        found, ms = _timed(lambda texts: index.search(texts, nearest)[1], each)
        hits = [len(set(one) & set(other)) for one, other in zip(found.tolist(), expected.tolist(), strict=True)]
        recall = round(float(np.mean(hits)) / nearest, 3)
        rows.append({"nearest": nearest, "lists": f"1/{share}", "ms": ms, "recall": recall})
    return {"vectors": len(vectors), "exact_ms": exact_ms, "built_cpu_seconds": built, "faiss": rows}


def _timed(find: Callable[[Vectors], Any], each: Sequence[Vectors]) -> tuple[Any, float]:
    """The results for all questions, and CPU milliseconds per question in a second run."""
    found = np.concatenate([find(texts) for texts in each])
    started = time.process_time()
    for texts in each:
        find(texts)
    return found, _rounded(started, 1000 / len(each))


def _rounded(started: float, times: float) -> float:
    return round((time.process_time() - started) * times, 2)


@benchmark("vectors")
@click.option(
    "--lake",
    "source",
    default=lakes.SYNTHETIC,
    show_default=True,
    help="'synthetic', or a folder of Spider 2's tables.",
)
@number("--texts", None, "The most texts of columns; by default all.", least=50, called="count")
@click.option(
    "--times", type=click.IntRange(min=1), multiple=True, default=(1, 2, 4), help="The sizes, as multiples of the lake."
)
@number("--nearest", 1000, "The number of nearest columns per text.")
def command(source: str, count: int | None, times: tuple[int, ...], nearest: int) -> dict[str, Any]:
    """CPU milliseconds per question for the vectors of a lake, exactly and with FAISS, on one core.

    Example: python -m tag_bench speed vectors --lake ../shared/bench/spider2 --json -
    """
    random = np.random.default_rng(0)
    vectors = vectors_of(texts(source, count), random)
    return {"lakes": [compare(repeated(vectors, one, random), nearest, random) for one in times]}
