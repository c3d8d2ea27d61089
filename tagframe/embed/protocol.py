"""What an embedder is, and which optional methods of it are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

ANONYMOUS = "object: "
"""The prefix of names of embedders that exist in this process only; no catalogue keeps their vectors."""


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors. Any object with these three members works as ``tagframe.configure(embedder=…)``."""

    @property
    def name(self) -> str:
        """The name under which a catalogue keeps this embedder's vectors."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), float32, rows of length 1."""


@dataclass(frozen=True, eq=False)
class TextVectors:
    """A text and its words as vectors of length 1.

    Attributes:
        text: shape (d,).
        words: shape (w, d), float64; zeros for words beyond what the model reads.
    """

    text: npt.NDArray[np.float64]
    words: npt.NDArray[np.float64]


def encode_words(embedder: Embedder, text: str, spans: Sequence[tuple[int, int]]) -> TextVectors:
    """The vectors of a text and of some of its words.

    If the embedder has a method of this name (see :meth:`tagframe.embed.MiniLM.encode_words`), words are read in their
    text. Others encode the words alone, in lower case.

    Args:
        embedder: see :func:`tagframe.embed.get_embedder`.
        text: of any length; a model reads the beginning of it.
        spans: where each word starts and ends.
    """
    one_pass = getattr(embedder, "encode_words", None)
    found: TextVectors | None = None if one_pass is None else one_pass(text, spans)
    if found is None:
        words = [text[start:end].lower() for start, end in spans]
        vectors = np.asarray(embedder.encode([text, *words]), dtype=np.float64)
        found = TextVectors(vectors[0], vectors[1:])
    return found


def expect(embedder: Embedder, texts: Sequence[str]) -> None:
    """Announce texts that will be encoded in parts, so that the embedder can state their cost."""
    told = getattr(embedder, "expect", None)
    if told is not None:
        told(texts)


def vocabulary(embedder: Embedder | None) -> Sequence[str]:
    """The words that an embedder's tokenizer knows, the most common first; none if it cannot tell."""
    known = getattr(embedder, "vocabulary", None)
    return () if known is None else known()


def unit(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The rows at length 1, shape (n, d); rows of zeros stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1.0, lengths))
