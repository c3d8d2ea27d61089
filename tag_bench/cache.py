"""A cache folder for slow results that seldom change: vectors of texts, evidence of questions."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import tagframe
from tag_bench.fingerprints import data_md5, reads_md5, source_md5, watch
from tagframe.embed import Embedder, Kind, TextVectors, encode_words, encoded, vocabulary

T = TypeVar("T")

_FILES: Mapping[Kind, str] = {"passage": "vectors", "query": "queries"}

AT_ONCE = 4096
"""Vectors are stored after this many new texts."""


class Cache:
    """A folder of pickles; everybody who may write there must be trusted, as with any pickle.

    Args:
        folder: created if it is missing; None stores nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str, state: str, make: Callable[[], T]) -> T:
        """The stored value of a name in this state, else the new value of ``make``, which replaces it."""
        if self._folder is None:
            return make()
        path = self._folder / f"{name}.pickle"
        if path.is_file():
            # A pickle of another version, or an incomplete one, may fail in any way.
            with suppress(Exception), path.open("rb") as opened:
                if pickle.load(opened) == state:
                    found: T = pickle.load(opened)
                    return found
        made = make()
        self.put(name, state, made)
        return made

    def put(self, name: str, state: str, value: Any) -> None:
        """Store a value atomically: on failure the previous value stays."""
        if self._folder is None:
            return
        part = self._folder / f"{name}.part"
        with part.open("wb") as opened:
            pickle.dump(state, opened)
            pickle.dump(value, opened, protocol=pickle.HIGHEST_PROTOCOL)
        part.replace(self._folder / f"{name}.pickle")


class CachedEmbedder:
    """An embedder that stores vectors, and asks another embedder only for missing ones.

    Args:
        embedder: the other embedder.
        cache: the store.
    """

    def __init__(self, embedder: Embedder, cache: Cache) -> None:
        self.name, self._embedder, self._cache = embedder.name, embedder, cache
        # Vectors of an embedder that was changed are not those of its name.
        watch(embedder)
        folder = [data_md5(Path(self.name))] if Path(self.name).is_dir() else []
        self._source = " ".join((self.name, source_md5(embedder) if _is_of_others(embedder) else "", *folder))
        self._state = f"{self._source} {reads_md5(cache.get('reads', self._source, list))}"
        self._texts: dict[Kind, dict[str, npt.NDArray[np.float32]]] = {
            kind: cache.get(file, self._state, dict) for kind, file in _FILES.items()
        }
        self._words: dict[tuple[str, tuple[tuple[int, int], ...]], TextVectors] = cache.get("words", self._state, dict)
        self._saved = self._sizes()

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._embedder.dimension

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        """The vectors of ``texts``: shape (n, dimension), rows of length 1."""
        known = self._texts[kind]
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            known.update(zip(part, encoded(self._embedder, part, kind), strict=True))
            if sum(self._sizes()) - sum(self._saved) >= AT_ONCE:  # a run that is ended goes on from here
                self.save()
        return np.stack([known[text] for text in texts]) if len(texts) else self._embedder.encode([])

    def encode_words(self, text: str, spans: Sequence[tuple[int, int]]) -> TextVectors:
        """The vectors of a text and of some of its words."""
        key = text, tuple(spans)
        if key not in self._words:
            self._words[key] = encode_words(self._embedder, text, spans)
        return self._words[key]

    def vocabulary(self) -> Sequence[str]:
        """The words of the tokenizer."""
        return vocabulary(self._embedder)

    def save(self) -> None:
        """Store the vectors since the last call."""
        if self._saved != self._sizes():
            self._saved, reads = self._sizes(), reads_md5()
            self._state = f"{self._source} {reads}"
            self._cache.put("reads", self._source, [*reads])
            for kind, file in _FILES.items():
                self._cache.put(file, self._state, self._texts[kind])
            self._cache.put("words", self._state, self._words)

    def _sizes(self) -> tuple[int, ...]:
        return (*map(len, self._texts.values()), len(self._words))


def _is_of_others(embedder: Embedder) -> bool:
    return type(embedder).__module__.partition(".")[0] != "tagframe"


def code_state(*names: str) -> str:
    """A digest of the modules and folders with these names, relative to the folder that contains ``tagframe``."""
    root = Path(tagframe.__file__).parent.parent
    files = [file for name in names for file in ([root / name] if name.endswith(".py") else (root / name).glob("*.py"))]
    return hashlib.md5(b"\n".join(file.read_bytes() for file in sorted(files)), usedforsecurity=False).hexdigest()
