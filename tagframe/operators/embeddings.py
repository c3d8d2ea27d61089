"""Rows and claims as vectors of the embedder."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from tagframe.embed import Embedder, get_embedder
from tagframe.errors import NotConfigured
from tagframe.operators.cascade_plan import Floats


def row_text(line: str) -> str:
    """The cells of a row, which is a line of JSON, as a text.

    >>> row_text('{"city": "Oslo", "state": null, "people": 7}')
    'Oslo 7'
    """
    return " ".join(str(cell) for cell in json.loads(line).values() if cell is not None)


def vectors_of(lines: Sequence[str]) -> Floats:
    """Rows as vectors: shape (n, d), of length 1.

    Raises:
        NotConfigured: there is no embedder.
    """
    return np.asarray(_embedder().encode([row_text(line) for line in lines]), dtype=np.float64)


def similarities(claim: str, lines: Sequence[str]) -> Floats:
    """How near the rows are to a claim, as it reads in a prompt: shape (n,), cosines.

    Raises:
        NotConfigured: there is no embedder.
    """
    (vector,) = _embedder().encode([claim.replace("{", "").replace("}", "")])
    return np.asarray(vectors_of(lines) @ vector.astype(np.float64))


def _embedder() -> Embedder:
    embedder = get_embedder()
    if embedder is None:
        raise NotConfigured(
            "rows are to be compared by their meaning, and no embedding model can be had:"
            " tagframe.configure(embedder=…)"
        )
    return embedder
