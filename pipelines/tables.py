"""The tables of a corpus as a mapping; each is read at its first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    import tagframe as tf


class Tables(Mapping[str, pd.DataFrame]):
    """Frames by table name.

    Args:
        corpus: one database; hidden columns are left out, as :meth:`tagframe.Corpus.read` does.
    """

    def __init__(self, corpus: tf.Corpus) -> None:
        self._corpus = corpus
        self._frames: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._frames:
            self._frames[name] = self._corpus.read(name)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return (profile.name for profile in self._corpus)

    def __len__(self) -> int:
        return len(self._corpus)
