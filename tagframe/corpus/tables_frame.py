"""The tables of a corpus as a frame that remembers its corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from tagframe.corpus.corpus import Corpus


class TablesFrame(pd.DataFrame):
    """A row for each table of a corpus; filtering, sorting and copying keep the corpus."""

    _metadata = ["_corpus"]  # noqa: RUF012 - pandas' own protocol
    _corpus: Corpus | None

    @property
    def _constructor(self) -> Callable[..., TablesFrame]:
        return TablesFrame

    def __repr__(self) -> str:
        # pandas would leave out columns in the middle: drop what ids already say, and shorten the names.
        view = pd.DataFrame(self).drop(columns=["database", "table"], errors="ignore")
        if "column_names" not in view or list(view.columns).count("column_names") > 1:
            return repr(pd.DataFrame(self))
        longest = max((len(str(id)) for id in view.get("id", [])), default=0)
        room = _WIDTH - _BESIDE - min(_CELL, longest)
        texts = [f"[{', '.join(map(str, names))}]" for names in view["column_names"]]
        view["column_names"] = [text if len(text) <= room else f"{text[: room - 1]}…" for text in texts]
        with pd.option_context("display.width", _WIDTH, "display.max_columns", None, "display.max_colwidth", _CELL):
            return repr(view)

    def __finalize__(self, other: Any, method: str | None = None, **kwargs: Any) -> TablesFrame:
        super().__finalize__(other, method=method, **kwargs)  # type: ignore[misc]  # not in pandas-stubs
        if method == "concat":
            # Parts of one corpus' tables stay linked to it; parts of several corpora become a plain frame.
            parts = getattr(other, "input_objs", None) or getattr(other, "objs", [])
            corpora = {id(corpus): corpus for corpus in (getattr(part, "_corpus", None) for part in parts)}
            object.__setattr__(self, "_corpus", corpora.popitem()[1] if len(corpora) == 1 else None)
        return self


def tables_frame(corpus: Corpus, names: Sequence[Sequence[str]]) -> TablesFrame:
    """The tables of a corpus: see :attr:`tagframe.corpus.Corpus.tables`.

    Args:
        corpus: the corpus that the frame remembers.
        names: the column names of each table.
    """
    profiles = corpus.profiles
    frame = TablesFrame(
        {
            "id": pd.Series([profile.id for profile in profiles], dtype=_TEXT),
            "database": pd.Series([profile.database for profile in profiles], dtype=_TEXT),
            "table": pd.Series([profile.name for profile in profiles], dtype=_TEXT),
            "rows": pd.array([profile.rows for profile in profiles], dtype="Int64"),
            "columns": pd.Series([len(several) for several in names], dtype="int64"),
            "column_names": pd.Series([list(several) for several in names], dtype=object),
        }
    )
    object.__setattr__(frame, "_corpus", corpus)
    return frame


def corpus_of(frame: pd.DataFrame) -> Corpus | None:
    """The corpus that such a frame came from, narrowed to the tables that are still in it.

    None for every other frame, and for one that has lost its ``id`` column.

    Raises:
        TableNotFound: an id that the corpus does not hold.
    """
    corpus: Corpus | None = getattr(frame, "_corpus", None) if isinstance(frame, TablesFrame) else None
    if corpus is None or list(frame.columns).count("id") != 1:
        return None
    return corpus.subset(frame["id"].tolist())


_WIDTH, _CELL, _BESIDE = 80, 42, 26
"""Widths in characters: of a terminal, the limit of an id, and of the other columns."""
_TEXT = pd.Series(["a"]).dtype
