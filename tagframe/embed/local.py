"""What local encoders share: each text is encoded once; a question's words get vectors, too."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.embed.protocol import Kind, TextVectors, check_kind, unit
from tagframe.errors import InvalidArgument
from tagframe.progress import waiting

MAX_REMEMBERED_TEXTS = 256
_FEW = 16
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_MAX_TEXT_LETTERS = 100_000
"""How many characters of a text the tokenizer gets. It reads a whole text before it keeps the few hundred tokens that
the model takes: a minute for 10 MB."""


class LocalEmbedder(ABC):
    """A model that runs in this process; safe to use from several threads.

    Attributes:
        name: see :class:`~tagframe.embed.Embedder`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Any = None
        self._remembered: OrderedDict[tuple[str, str], npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.RLock()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The length of a vector."""

    def load(self) -> None:
        """Load the model now rather than at first use.

        Raises:
            EmbedderNotFound: there is no such model, it cannot be reached, or its files are not the expected ones.
        """
        with self._lock:
            if self._model is None:
                with waiting("loading the encoder"):
                    self._model = self._loaded()

    @abstractmethod
    def _loaded(self) -> Any:
        """The model."""

    @abstractmethod
    def _encoded(self, texts: list[str], kind: Kind) -> npt.NDArray[np.float32]:
        """The vectors of readable texts, of length 1; the model is loaded."""

    @abstractmethod
    def _tokens(self, text: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], list[tuple[int, int]]]:
        """A query's vector, the last states of its tokens, and where each token starts and ends in the text."""

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), float32, rows of length 1.

        Repeated texts are encoded once. The vectors of the last few hundred single texts (questions) are cached.

        Args:
            texts: any.
            kind: see :class:`~tagframe.embed.Embedder`; it matters to models with prompts only.

        Raises:
            EmbedderNotFound: as :meth:`load`.
            InvalidArgument: ``texts`` is not a list of texts, or another kind.
        """
        check_kind(kind)
        distinct = distinct_of(texts)
        if not distinct:
            return np.empty((0, self.dimension), dtype=np.float32)
        # The model's state and the memory are shared by all calls.
        with self._lock:
            known = self._remembered
            vectors = {text: known[kind, text] for text in distinct if (kind, text) in known}
            missing = [text for text in distinct if text not in vectors]
            if missing:
                self.load()
                vectors.update(zip(missing, self._encoded(list(map(readable, missing)), kind), strict=True))
            if len(distinct) <= _FEW:
                self._remember({(kind, text): vectors[text] for text in distinct})
        return np.stack([vectors[text] for text in texts])

    def encode_words(self, text: str, spans: Sequence[tuple[int, int]]) -> TextVectors | None:
        """The vectors of a text (a query) and of words in it, from one forward pass.

        A word's vector is the mean of its tokens' states in the last layer: the word *in its text*, unlike the same
        word encoded alone. It costs nothing beyond the text's own vector.

        Returns:
            None if the tokenizer gives no positions of its tokens.

        Raises:
            EmbedderNotFound: as :meth:`load`.
        """
        self.load()
        with self._lock:
            whole, states, offsets = self._tokens(readable(text))
        if len(offsets) != len(states):
            return None
        words = np.zeros((len(spans), len(whole)))
        for row, (start, end) in enumerate(spans):
            inside = [number for number, (left, right) in enumerate(offsets) if start <= left < right <= end]
            if inside:  # none: beyond the longest text that the model reads
                words[row] = states[inside].astype(np.float64).mean(axis=0)
        return TextVectors(unit(whole[None, :].astype(np.float64))[0], unit(words))

    def _remember(self, vectors: dict[tuple[str, str], npt.NDArray[np.float32]]) -> None:
        for key, vector in vectors.items():
            self._remembered[key] = vector
            self._remembered.move_to_end(key)
        while len(self._remembered) > MAX_REMEMBERED_TEXTS:
            self._remembered.popitem(last=False)


def distinct_of(texts: Sequence[str]) -> list[str]:
    """The texts, each once, in their order.

    Raises:
        InvalidArgument: one text instead of a list, or an item that is not a text.
    """
    if isinstance(texts, str):
        raise InvalidArgument(f"texts must be a list; got the single text {texts!r}: write [{texts!r}]")
    distinct = list(dict.fromkeys(texts))
    for text in distinct:
        if not isinstance(text, str):
            raise InvalidArgument(f"texts must hold strings; got {text!r} of type {type(text).__name__}")
    return distinct


def readable(text: str) -> str:
    """What a tokenizer gets: the beginning, without lone surrogates, which tokenizers reject; positions stay the
    same."""
    return _HALF_CHARACTER.sub("\ufffd", text[:_MAX_TEXT_LETTERS])
