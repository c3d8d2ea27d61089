"""Check the keys that a semantic model declares against the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.errors import TagframeError
from tagframe.keys.inference import share_of_rows
from tagframe.keys.matching import is_copy, match_rows

MOST_ROWS = 2_000_000
"""Tables with more rows are not read for a check."""


def checked_in_rows(corpus: Corpus, value: dict[str, Any]) -> Iterator[str]:
    """Put the share of rows for which each key of a semantic model holds into it, and say where this is not all.

    A relationship whose sides are the other way round in the rows is turned. A primary or unique key whose values
    repeat is left out. Private columns and tables with more than two million rows are not looked at.

    Args:
        corpus: with the tables.
        value: of the model; changed.

    Yields:
        A line for each key that does not hold for all rows.
    """

    @cache
    def keys_in(table: str, columns: tuple[str, ...]) -> pd.DataFrame | None:
        """The rows with a key; None if they are not read."""
        profile = corpus.profile(table)
        private = {column.name for column in profile.columns if column.private}
        if (profile.rows or 0) > MOST_ROWS or private & {*columns}:
            return None
        try:
            return corpus.read(table, list(columns)).dropna()
        except TagframeError:
            return None

    def unique(table: str, columns: Sequence[str]) -> float:
        """The share of the rows with a key that no row before them has; 1 if it is unknown."""
        frame = keys_in(table, tuple(columns))
        return 1.0 if frame is None or frame.empty else float(1 - is_copy(frame).mean())

    for id, one in value["tables"].items():
        for key in filter(None, (one["primary_key"], *one["unique_keys"])):
            if (share := unique(id, key)) < 1:
                kind = "primary" if key == one["primary_key"] else "unique"
                yield f"the {kind} key {id}.({', '.join(key)}) is unique in {share_of_rows(share)} of the rows"
                one["primary_key"] = [] if kind == "primary" else one["primary_key"]
                one["unique_keys"] = [other for other in one["unique_keys"] if other != key]
    for key in value["keys"]:
        (left, mine), (right, theirs) = ((key[f"{end}_table"], key[f"{end}_columns"]) for end in ("left", "right"))
        of = f"the relationship {left} → {right} ({', '.join(mine)} = {', '.join(theirs)})"
        if unique(right, theirs) < 1:
            if (rows := keys_in(left, tuple(mine))) is not None and not rows.empty and unique(left, mine) == 1:
                yield f"{of} is the other way round in the rows: {left} has each key once"
                left, mine, right, theirs = right, theirs, left, mine
                key.update(left_table=left, left_columns=mine, right_table=right, right_columns=theirs)
            else:
                yield f"{of}: {right} repeats keys, so a join repeats rows"
        referencing, referenced = keys_in(left, tuple(mine)), keys_in(right, tuple(theirs))
        key["holds"] = None
        if referencing is not None and referenced is not None and not referencing.empty:
            sides = [[frame[name] for name in frame.columns] for frame in (referencing, referenced)]
            key["holds"] = float((match_rows(*sides).counts > 0).mean())
            if key["holds"] < 1:
                yield f"{of} holds for {share_of_rows(key['holds'])} of the rows"
