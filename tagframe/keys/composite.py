"""Composite keys: several columns that identify the rows of a table only together.

JAR leaves them to future work. Two tables are compared if they share at least two column names. Only the rows show
whether the columns together are unique in one table and contain the other's values. With the rows, panels without a key
word are found, such as (country, year) and (ticker, date). Without the rows, a composite key is proposed if one of its
columns has a key word and the referenced table has no other key; it scores lower.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import pandas as pd

from tagframe.keys.candidates import SHARE
from tagframe.keys.column_names import calls, column_name, is_measure
from tagframe.keys.containment import overlap
from tagframe.keys.key_columns import Column
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.matching import hashable, match_rows
from tagframe.keys.terms import CALENDAR

VERIFIED, PROPOSED = 0.95, 0.6
"""The scores of composite keys that the rows confirm, and of those that were not checked against the rows."""

Read = Callable[[str, Sequence[str]], pd.DataFrame]
"""Reads columns of a table, by the table's id."""

_MOST_COLUMNS = 3
MOST_ROWS = 2_000_000
"""Tables with more rows are not checked."""
_CROWD = 30
CONTAINED = 0.9
"""The smallest share of rows for which a composite key finds a partner."""
_FEWEST_ROWS = 8
"""With fewer rows, columns are unique together by accident."""
_MOST_NULLS = 0.2
"""A column with a larger share of missing values is not part of a key; rows with a missing value match nothing."""
_FEWEST_OF_PANEL = 4
"""A panel of things by day or year, such as (country, year), needs fewer rows."""


class _Shared(NamedTuple):
    """Columns of one name in two tables, the referencing one first."""

    left: Column
    right: Column


def composite_keys(columns: Sequence[Column], known: Sequence[KeyPair], read: Read | None) -> Iterator[KeyPair]:
    """The composite keys between tables that no single column links.

    Args:
        columns: of the tables of one database.
        known: key pairs of single columns. Tables that these link directly are skipped, unless the referenced column is
            not unique, or lacks values: it may be part of a key.
        read: reads the rows to check the proposals against; None for no check.
    """
    linked = {(pair.left_table, pair.right_table) for pair in known if _suffices(pair)}
    linked |= {(right, left) for left, right in linked}
    best: dict[frozenset[str], KeyPair] = {}
    for shared in _shared_columns(columns, named=read is None):
        left, right = shared[0].left.owner, shared[0].right.owner
        if (left.id, right.id) not in linked:
            are_few = max(left.rows or 0, right.rows or 0) <= MOST_ROWS
            composite = _first_key(shared, read if are_few else None)
            other = best.get(frozenset((left.id, right.id)))
            # If two tables have the same key, the one whose rows are all found references the other.
            if composite is not None and (
                other is None or (composite.evidence.contained or 0.0) > (other.evidence.contained or 0.0)
            ):
                best[composite.tables] = composite
    yield from best.values()


def _suffices(pair: KeyPair) -> bool:
    evidence = pair.evidence
    return evidence.uniqueness in (None, 1.0) and (evidence.contained is None or evidence.contained >= CONTAINED)


def _is_named_key(column: Column) -> bool:
    return bool(column_name(column.profile.name).key_word and column.name.entity)


def _shared_columns(columns: Sequence[Column], *, named: bool) -> Iterator[list[_Shared]]:
    """For each two tables that share enough names, in both directions: the columns with the same name.

    Args:
        columns: of all tables.
        named: only tables that share a column with a key word.
    """
    by_words: dict[tuple[str, ...], list[Column]] = defaultdict(list)
    of_table: dict[int, dict[tuple[str, ...], Column]] = defaultdict(dict)
    for column in columns:
        of_table[column.table].setdefault(column.name.words, column)
        if _is_named_key(column) or not (named or is_measure(column.spelt)):
            by_words[column.name.words].append(column)
    pairs = {
        (one.table, other.table)
        for crowd in by_words.values()
        if len(crowd) <= _CROWD
        for one in crowd
        for other in crowd
        if one.table != other.table
    }
    for left, right in sorted(pairs):
        mine, theirs = of_table[left], of_table[right]
        shared = [_Shared(mine[words], theirs[words]) for words in theirs if words in mine]
        shared = [pair for pair in shared if _may_take_part(pair)]
        if named and not _begins_table(shared):
            continue  # without rows, only the first columns of a table are proposed
        shared = [pair for pair in shared if _holds_values(pair)]
        if len(shared) > 1:
            yield shared


def _may_take_part(pair: _Shared) -> bool:
    right = pair.right.profile
    if pair.left.counts_rows or pair.right.counts_rows:
        return False
    is_one = pair.right.unique == 1.0 and not pair.right.is_versioned
    return not (is_one or (right.null_share or 0.0) > _MOST_NULLS or right.family in ("real", "boolean", "empty"))


def _holds_values(pair: _Shared) -> bool:
    shared = overlap(pair.left.profile.sketch, pair.right.profile.sketch)
    return shared is None or shared.share >= max(SHARE, CONTAINED)


def _begins_table(shared: Sequence[_Shared]) -> bool:
    """Whether the first two columns of the referenced table are among them."""
    first = {column.name for pair in shared[:1] for column in pair.right.owner.columns[:2]}
    return len(first) == 2 and first <= {pair.right.profile.name for pair in shared}


def _first_key(shared: Sequence[_Shared], read: Read | None) -> KeyPair | None:
    rows = shared[0].right.profile.rows
    if not rows or not shared[0].left.profile.rows:
        return None
    for size in range(2, min(_MOST_COLUMNS, len(shared)) + 1):
        for chosen in combinations(shared, size):
            is_named = any(_is_named_key(pair.right) for pair in chosen)
            measured = any(is_measure(pair.right.spelt) for pair in chosen)
            fewest = _FEWEST_OF_PANEL if _is_panel(chosen) else _FEWEST_ROWS
            if not is_named and (read is None or measured or rows < fewest):
                continue
            whole = rows - max(pair.right.profile.nulls or 0 for pair in chosen)
            if prod(pair.right.profile.distinct or 1 for pair in chosen) < whole:
                continue  # so many rows cannot all differ
            key = _proposed(chosen) if read is None else _verified(chosen, read)
            if key is not None:
                return key
    return None


def _is_panel(chosen: Sequence[_Shared]) -> bool:
    times = [set(pair.right.name.words) <= CALENDAR for pair in chosen]
    return any(times) and any(
        not time and pair.right.profile.family == "text" for time, pair in zip(times, chosen, strict=True)
    )


def _proposed(chosen: Sequence[_Shared]) -> KeyPair | None:
    table = chosen[0].right.owner
    if any(pair.left.profile.sketch is None or pair.right.profile.sketch is None for pair in chosen):
        return None
    # A column without a key word (a date, an amount) is unique by accident.
    has_other_key = any(
        column.rows and column.distinct == column.rows - (column.nulls or 0) and not column.nulls
        for column in table.columns
        if column_name(column.name).key_word or calls(column.name, table.name)
    )
    # The key of a table is its first column; anything else would be a guess.
    leading = {column.name for column in table.columns[: len(chosen)]}
    if has_other_key or leading != {pair.right.profile.name for pair in chosen}:
        return None
    return _key_pair(chosen, PROPOSED, None, "the same names; not checked against the rows")


def _verified(chosen: Sequence[_Shared], read: Read) -> KeyPair | None:
    left, right = chosen[0].left.owner, chosen[0].right.owner
    mine = read(left.id, [pair.left.profile.name for pair in chosen])
    theirs = read(right.id, [pair.right.profile.name for pair in chosen])
    if theirs.dropna().apply(hashable).duplicated().any():
        return None
    matches = match_rows(
        [mine[pair.left.profile.name] for pair in chosen], [theirs[pair.right.profile.name] for pair in chosen]
    )
    whole = int((~matches.nulls).sum())
    contained = int((matches.counts > 0).sum()) / whole if whole else 0.0
    if contained < CONTAINED or matches.counts.max(initial=0) > 1:
        return None
    return _key_pair(chosen, VERIFIED, contained, f"{contained:.0%} of the rows found, unique together, the same names")


def _key_pair(chosen: Sequence[_Shared], score: float, contained: float | None, reason: str) -> KeyPair:
    return KeyPair(
        chosen[0].left.owner.id,
        tuple(pair.left.profile.name for pair in chosen),
        chosen[0].right.owner.id,
        tuple(pair.right.profile.name for pair in chosen),
        score,
        Evidence(contained=contained, uniqueness=None if contained is None else 1.0, name=1.0, reason=reason),
    )
