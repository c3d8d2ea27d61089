"""Check the keys that a semantic model declares against the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.errors import CorpusError, TagframeError
from tagframe.keys.inference import share_of_rows
from tagframe.keys.matching import is_copy, match_rows

MOST_ROWS = 2_000_000
"""Tables with more rows are not read for a check."""


def model_in_rows(corpus: Corpus, value: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A semantic model with the share of rows for which each of its keys holds, and where one does not hold for all.

    A relationship whose sides are the other way round in the rows is turned. A primary key whose values repeat or are
    missing is left out. Hidden columns and tables with more than two million rows are not looked at.

    Args:
        corpus: with the tables.
        value: of the model.

    Returns:
        The value, with ``holds`` for each of its ``keys``, and the lines.
    """
    rows = _Rows(corpus)
    said: list[str] = []
    tables = {}
    for id, one in value["tables"].items():
        kept = dict(one)
        for kind, keys in (("primary key", [one["primary_key"]]), ("unique key", one["unique_keys"])):
            for key in filter(None, keys):
                unique = rows.unique(id, key)
                if unique is not None and unique < 1:
                    said.append(f"the {kind} {id}.({', '.join(key)}) is unique in {share_of_rows(unique)} of the rows")
                    kept["primary_key"] = [] if key == kept["primary_key"] else kept["primary_key"]
                    kept["unique_keys"] = [other for other in kept["unique_keys"] if other != key]
        tables[id] = kept
    keys = []
    for key in value["keys"]:
        found, lines = _relationship(rows, key)
        keys.append(found)
        said += lines
    return {**value, "tables": tables, "keys": keys}, said


def _relationship(rows: _Rows, key: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    sides = [(key[f"{end}_table"], key[f"{end}_columns"]) for end in ("left", "right")]
    of = f"the relationship {sides[0][0]} → {sides[1][0]} ({', '.join(sides[0][1])} = {', '.join(sides[1][1])})"
    unique = [rows.unique(*side) for side in sides]
    lines = []
    if unique[1] is not None and unique[1] < 1:
        if unique[0] == 1:
            lines.append(f"{of} is the other way round in the rows: {sides[0][0]} has each key once")
            sides = sides[::-1]
        else:
            lines.append(f"{of}: {sides[1][0]} repeats keys, so a join repeats rows")
    holds = rows.held(*sides)
    if holds is not None and holds < 1:
        lines.append(f"{of} holds for {share_of_rows(holds)} of the rows")
    ends = zip(("left", "right"), sides, strict=True)
    turned = {
        name: one for end, side in ends for name, one in zip((f"{end}_table", f"{end}_columns"), side, strict=True)
    }
    return {**key, **turned, "holds": holds}, lines


class _Rows:
    """Counts over the key columns of tables."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._read: dict[tuple[str, tuple[str, ...]], pd.DataFrame | None] = {}

    def unique(self, table: str, columns: Sequence[str]) -> float | None:
        """The share of rows whose key no row before it has, of all rows; None if unknown."""
        frame = self._columns(table, columns)
        if frame is None or not len(frame):
            return None
        known = frame.dropna()
        return float((~is_copy(known)).sum() / len(known)) if len(known) else None

    def held(self, left: tuple[str, Sequence[str]], right: tuple[str, Sequence[str]]) -> float | None:
        """The share of the left rows with a key that has a right row; None if unknown."""
        mine, theirs = self._columns(*left), self._columns(*right)
        if mine is None or theirs is None:
            return None
        mine = mine.dropna()
        if not len(mine):
            return None
        try:
            counts = match_rows(*([frame[name] for name in frame.columns] for frame in (mine, theirs))).counts
        except (TypeError, ValueError):
            return None
        return float((counts > 0).mean())

    def _columns(self, table: str, columns: Sequence[str]) -> pd.DataFrame | None:
        of = table, tuple(columns)
        if of not in self._read:
            self._read[of] = self._frame(*of)
        return self._read[of]

    def _frame(self, table: str, columns: tuple[str, ...]) -> pd.DataFrame | None:
        profile = self._corpus.profile(table)
        hidden = {column.name for column in profile.columns if not column.for_models}
        if self._corpus.engine(table) is None or (profile.rows or 0) > MOST_ROWS or hidden & {*columns}:
            return None
        try:
            return self._corpus.read(table, list(columns))
        except (CorpusError, TagframeError):
            return None
