"""Parquet folders of reviews with few distinct texts, for operators over more rows than fit into one frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

DISTINCT = 2_000
"""The number of distinct texts."""


def reviews(rows: int, files: int) -> Callable[[Path, float], AbstractContextManager[str]]:
    """The source of a case: reviews of 80 bytes with a unique number, in several files."""

    @contextmanager
    def source(folder: Path, scale: float) -> Iterator[str]:
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        made, generator = folder / "reviews", np.random.default_rng(0)
        made.mkdir()
        texts = pa.array([f"Review {number} of {DISTINCT}. ".ljust(80, "x") for number in range(DISTINCT)])
        each = int(rows * scale) // files
        for file in range(files):
            chosen = pa.array(generator.integers(0, DISTINCT, each, dtype=np.int32))
            numbers = pa.array(np.arange(file * each, (file + 1) * each))
            table = pa.table({"id": numbers, "text": pa.DictionaryArray.from_arrays(chosen, texts).cast(pa.string())})
            pq.write_table(table, made / f"{file:03}.parquet")
        yield str(made)

    return source
