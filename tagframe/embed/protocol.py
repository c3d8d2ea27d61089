"""What an embedder is, which optional methods of it are used, and the one way to its vectors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from tagframe.errors import InvalidArgument

Kind: TypeAlias = Literal["query", "passage"]
"""What a text is for: it searches, or it is searched. Some models, such as E5 and SGPT, read the two differently."""

_MAX_LENGTH_ERROR = 0.01
"""How far a length may be from 1: half precision has three digits."""

ANONYMOUS = "object: "
"""The prefix of names of embedders that exist in this process only; no catalogue keeps their vectors."""


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors. Any object with these three members works as ``tagframe.configure(embedder=…)``.

    >>> class Letters:
    ...     name, dimension = "letters", 26
    ...     def encode(self, texts, kind="passage"):
    ...         counts = np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
    ...         return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)
    >>> isinstance(Letters(), Embedder)
    True
    """

    @property
    def name(self) -> str:
        """The name under which a catalogue keeps this embedder's vectors."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), float32, rows of length 1, or zeros for an empty text.

        Args:
            texts: tables, columns, rows, or questions and parts of them.
            kind: ``"query"`` for texts that search, ``"passage"`` for texts that are searched. A model that reads both
                alike may leave this argument out.
        """


def encoded(embedder: Embedder, texts: Sequence[str], kind: Kind) -> npt.NDArray[np.float32]:
    """The vectors of texts, checked: shape (n, dimension), float32, of length 1 or 0.

    Args:
        embedder: see :func:`tagframe.embed.get_embedder`.
        texts: any.
        kind: what they are for.

    Raises:
        InvalidArgument: the embedder gives another shape, or a vector of another length.
    """
    vectors = np.asarray(embedder.encode(texts, **kind_if_taken(embedder.encode, kind)), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise InvalidArgument(
            f"{embedder.name}: encode must return an array of shape (n, d); got {vectors.shape} for {len(texts)} texts"
        )
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(~((np.abs(lengths - 1) <= _MAX_LENGTH_ERROR) | (lengths == 0)))
    if len(wrong):
        raise InvalidArgument(
            f"{embedder.name}: encode must return vectors of length 1; that of {texts[wrong[0]]!r:.80} has length "
            f"{lengths[wrong[0]]:.4g}; divide them by np.linalg.norm(vectors, axis=1, keepdims=True)"
        )
    return vectors


def kind_if_taken(encode: Callable[..., Any], kind: Kind) -> dict[str, Any]:
    """The keyword ``kind``, if a method takes it.

    >>> kind_if_taken(lambda texts, kind: texts, "query"), kind_if_taken(lambda texts: texts, "query")
    ({'kind': 'query'}, {})
    """
    try:
        taken = inspect.signature(encode).parameters
    except (TypeError, ValueError):  # some compiled functions have no signature
        return {}
    return {"kind": kind} if "kind" in taken else {}


def check_kind(kind: str) -> None:
    """Raise unless this is a :data:`Kind`.

    Raises:
        InvalidArgument: it is not.
    """
    if kind not in get_args(Kind):
        raise InvalidArgument(f"kind must be one of {get_args(Kind)}; got {kind!r}")


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
    text. Others encode the words alone, in lower case. The text and the words are queries.

    Args:
        embedder: see :func:`tagframe.embed.get_embedder`.
        text: of any length; a model reads the beginning of it.
        spans: where each word starts and ends.
    """
    one_pass = getattr(embedder, "encode_words", None)
    vectors_of_text: TextVectors | None = None if one_pass is None else one_pass(text, spans)
    if vectors_of_text is None:
        words = [text[start:end].lower() for start, end in spans]
        vectors = encoded(embedder, [text, *words], "query").astype(np.float64)
        vectors_of_text = TextVectors(vectors[0], vectors[1:])
    return vectors_of_text


def expect(embedder: Embedder, texts: Sequence[str]) -> None:
    """Announce texts that will be encoded in parts, so that the embedder can state their cost."""
    announce = getattr(embedder, "expect", None)
    if announce is not None:
        announce(texts)


def vocabulary(embedder: Embedder | None) -> Sequence[str]:
    """The words that an embedder's tokenizer knows, the most common first; none if it cannot tell."""
    known = getattr(embedder, "vocabulary", None)
    return () if known is None else known()


def unit(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The rows at length 1, shape (n, d); rows of zeros stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1.0, lengths))
