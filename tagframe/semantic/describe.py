"""``corpus.describe``: descriptions by a person, and those of files, whose keys are checked in the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.facts import FactKey, as_description
from tagframe.corpus.references import NamedTable, find_column
from tagframe.errors import InvalidArgument, TableNotFound, TagframeError
from tagframe.keys.inference import share_of_rows
from tagframe.keys.matching import is_copy, match_rows
from tagframe.semantic.descriptions import Described, descriptions_in, facts_of, models_taken

MOST_ROWS = 2_000_000
"""Tables with more rows are not read for a check."""


def describe(corpus: Corpus, name: str | Path | pd.DataFrame, text: str | None = None) -> Described | None:
    """See :meth:`tagframe.Corpus.describe`."""
    if text is None:
        return _described(corpus, name)
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidArgument(f"describe(name, text) takes two texts; got {name!r} and {text!r}")
    try:
        fact: FactKey = "table", (corpus.profile(name).id,)
    except TableNotFound:
        if "." not in name:
            raise
        fact = "column", find_column(name, [*map(NamedTable.of, corpus.profiles)])
    fact_store(corpus).put({fact: as_description(text) or None})
    return None


def _described(corpus: Corpus, given: str | Path | pd.DataFrame) -> Described:
    content = descriptions_in(given)
    facts, unknown = facts_of(content.descriptions, corpus.profiles)
    values: dict[FactKey, Any] = {**facts}
    described = {of for _, of in facts}
    unread, checked, keys, metrics = [*content.unread], list[str](), 0, 0
    for taken in models_taken(content.models, corpus.profiles):
        checked += checked_in_rows(corpus, taken.value)
        # What the model said of other tables when it was read before.
        before = {("semantic", of) for of in fact_store(corpus).facts.of_kind("semantic")}
        values.update({fact: None for fact in before if fact[1][0] == taken.digest})
        if taken.value["tables"] or taken.value["keys"] or taken.value["metrics"]:
            values["semantic", (taken.digest, *taken.tables)] = taken.value
        for id, one in taken.value["tables"].items():
            described |= {(id,)} if one["description"] or one["synonyms"] else set()
            described |= {(id, column) for column in one["columns"]}
        unknown, unread = [*unknown, *taken.unknown], [*unread, *taken.unread]
        keys, metrics = keys + len(taken.value["keys"]), metrics + len(taken.value["metrics"])
    fact_store(corpus).put(values)
    tables = sum(len(of) == 1 for of in described)
    return Described(
        tables, len(described) - tables, tuple(unknown), tuple(unread), keys, metrics, tuple(checked)
    )  # fmt: skip


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
