"""How alike rows read, by the embedder."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tagframe.operators.join.sides import Side


def vectors_of(side: Side, rows: Sequence[int] | npt.NDArray[np.intp]) -> npt.NDArray[np.float32] | None:
    """The vectors of distinct rows: shape (rows, dimension), of length 1; None where no embedder is to be had."""
    from tagframe.embed import get_embedder

    embedder = get_embedder()
    return None if embedder is None else embedder.encode([text_of(side.lines[row]) for row in rows])


def text_of(line: str) -> str:
    """The cells of a line of JSON, as text.

    >>> text_of('{"title": "Low Tide", "year": 1998, "note": null}')
    'Low Tide 1998'
    """
    row = json.loads(line)
    return " ".join(str(cell) for cell in row.values() if cell is not None) if isinstance(row, dict) else str(row)
