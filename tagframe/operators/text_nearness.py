"""The similarity of rows to each other and to a claim, by the embedder or by words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tagframe import embed
from tagframe.errors import NotConfigured

Floats: TypeAlias = npt.NDArray[np.float64]


def row_text(line: str) -> str:
    """The cells of a row (a line of JSON) as a text.

    >>> row_text('{"city": "Oslo", "state": null, "people": 7}')
    'Oslo 7'
    """
    row = json.loads(line)
    return " ".join(str(cell) for cell in row.values() if cell is not None) if isinstance(row, dict) else str(row)


def embedder() -> embed.Embedder:
    """The configured embedder.

    Raises:
        NotConfigured: there is none.
    """
    configured = embed.get_embedder()
    if configured is None:
        raise NotConfigured(
            f"no embedding model is available: {embed.WITHOUT_A_HUB}, or tagframe.configure(embedder=…) with a model's"
            " name, a folder, or an object with encode(texts)"
        )
    return configured


def vectors_of(lines: Sequence[str]) -> Floats:
    """Rows as vectors of length 1: shape (n, d).

    Raises:
        NotConfigured: there is no embedder.
    """
    return embed.encoded(embedder(), [row_text(line) for line in lines], "passage").astype(np.float64)


def similarities(claim: str, lines: Sequence[str]) -> Floats:
    """The cosines of the rows and a claim as written in a prompt: shape (n,).

    Raises:
        NotConfigured: there is no embedder.
    """
    (vector,) = embed.encoded(embedder(), [claim.replace("{", "").replace("}", "")], "query")
    return np.asarray(vectors_of(lines) @ vector.astype(np.float64))


def shared_words(lefts: Sequence[str], rights: Sequence[str]) -> npt.NDArray[np.float32]:
    """How many words the texts share, with more weight for rare words: cosines of shape (lefts, rights).

    It needs no encoder, which would take long to load for a few pairs.
    """
    bags = [set(re.findall(r"\w+", text.casefold())) for text in (*lefts, *rights)]
    columns = {word: column for column, word in enumerate(sorted(set().union(*bags)))}
    vectors = np.zeros((len(bags), len(columns)), dtype=np.float32)
    for vector, bag in zip(vectors, bags, strict=True):
        vector[[columns[word] for word in bag]] = 1
    vectors *= np.log(1 + len(bags) / np.maximum(vectors.sum(axis=0), 1))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return np.asarray(vectors[: len(lefts)] @ vectors[len(lefts) :].T, dtype=np.float32)
