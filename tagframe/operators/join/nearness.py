"""How alike rows read, by the embedder or by their words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tagframe.operators.join.sides import Side


def vectors_of(side: Side, rows: Sequence[int] | npt.NDArray[np.intp]) -> npt.NDArray[np.float32] | None:
    """The vectors of distinct rows: shape (rows, dimension), of length 1; None where no embedder is to be had."""
    from tagframe.embed import get_embedder

    embedder = get_embedder()
    return None if embedder is None else embedder.encode([text_of(side.lines[row]) for row in rows])


def shared_words(lefts: Sequence[str], rights: Sequence[str]) -> npt.NDArray[np.float32]:
    """How much the words of texts are the same, rare ones above all: shape (lefts, rights), cosines.

    Ten pairs to ask about are no reason to load an encoder.
    """
    bags = [set(re.findall(r"\w+", text.casefold())) for text in (*lefts, *rights)]
    places = {word: place for place, word in enumerate(sorted(set().union(*bags)))}
    vectors = np.zeros((len(bags), len(places)), dtype=np.float32)
    for vector, bag in zip(vectors, bags, strict=True):
        vector[[places[word] for word in bag]] = 1
    vectors *= np.log(1 + len(bags) / np.maximum(vectors.sum(axis=0), 1))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return np.asarray(vectors[: len(lefts)] @ vectors[len(lefts) :].T, dtype=np.float32)


def text_of(line: str) -> str:
    """The cells of a line of JSON, as text.

    >>> text_of('{"title": "Low Tide", "year": 1998, "note": null}')
    'Low Tide 1998'
    """
    row = json.loads(line)
    return " ".join(str(cell) for cell in row.values() if cell is not None) if isinstance(row, dict) else str(row)
