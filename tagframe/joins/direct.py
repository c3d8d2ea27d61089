"""Direct keys between tables that nothing likelier connects: they come before a table that nobody chose.

Real tables often hold a part of the things each: 769 places with their cuisines, 130 with ratings. Then a key is hardly
likelier than an accident by the share of the values alone. But if two tables have to be joined, a name that both have,
unique on one side, says more than a third table that has a key to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys.column_names import column_name, is_measure
from tagframe.keys.components import Components
from tagframe.keys.containment import overlap
from tagframe.keys.key_columns import integer_run
from tagframe.keys.key_pair import Evidence, KeyPair

DIRECT_CHANCE = 0.3
"""The chance of a direct key that inference finds less likely: below one half, so that a merge warns of it."""
_NEARLY_ALL = 0.9
"""Without a name that both have, so many of the values have to be found."""
_A_QUARTER = 0.25
"""With a name that both have, so many of the values of one side have to be found in the other."""
_HALF = 0.5
"""With a name that all tables may have, such as "name", so many of the values have to be found."""
_MOST_REPEATED = 0.01
"""A column is unique if at most this share of its rows repeats a value."""
_DENSE = 0.5
"""Integers that fill more of their range match by accident."""
_FEWEST = 8
"""Columns of fewer values match by accident, unless both have the name."""


def direct_keys(profiles: Sequence[TableProfile], parts: Components[str], known: Sequence[KeyPair]) -> list[KeyPair]:
    """Key pairs between tables of different parts, each table pair's surest.

    One side is unique, and either both columns have the name, or nearly all values are found. Tables with the same
    columns are parts of one table.

    Args:
        profiles: the tables.
        parts: which tables are connected already.
        known: key pairs; two tables with one that is as likely need no other.
    """
    found = []
    likely = {key.tables for key in known if key.score >= DIRECT_CHANCE}
    for number, one in enumerate(profiles):
        for other in profiles[number + 1 :]:
            are_twins = {column.name for column in one.columns} == {column.name for column in other.columns}
            if (
                not are_twins
                and parts.root(one.id) != parts.root(other.id)
                and frozenset((one.id, other.id)) not in likely
            ):
                options = [*_between(one, other), *_between(other, one)]
                if options:
                    found.append(max(options, key=lambda key: (key.evidence.name, key.evidence.contained or 0.0)))
    return found


def _between(table: TableProfile, target: TableProfile) -> Iterator[KeyPair]:
    columns = [column for column in target.columns if _is_unique(column)]
    for mine, theirs in product(table.columns, columns):
        if mine.family != theirs.family or mine.family not in ("integer", "text") or is_measure(theirs.name):
            continue
        shared = overlap(mine.sketch, theirs.sketch)
        if shared is None or not shared.share:
            continue
        back = overlap(theirs.sketch, mine.sketch)
        most = max(shared.share, back.share if back is not None else 0.0)
        named = _are_named_alike(mine.name, theirs.name) and most >= _A_QUARTER
        is_accident = (mine.distinct or 0) < _FEWEST
        if (
            is_measure(mine.name)
            or _is_dense(theirs)
            or not (named or (shared.share >= _NEARLY_ALL and not is_accident))
        ):
            continue
        if most >= (_HALF if column_name(theirs.name).generic else 0.0):
            reason = f"{shared.share:.0%} of the values found, target unique" + ", both have the name" * named
            evidence = Evidence(contained=shared.share, name=float(named), reason=reason, uniqueness=1.0)
            yield KeyPair(table.id, (mine.name,), target.id, (theirs.name,), DIRECT_CHANCE, evidence)


def _is_unique(column: ColumnProfile) -> bool:
    if not column.rows or not column.distinct or column.nulls is None:
        return False
    filled = column.rows - column.nulls
    return filled - column.distinct <= _MOST_REPEATED * filled


def _is_dense(column: ColumnProfile) -> bool:
    run = integer_run(column)
    return run is not None and run.density > _DENSE


def _are_named_alike(one: str, other: str) -> bool:
    """Whether two columns have the same name, or share the word that says what they identify."""
    mine, theirs = column_name(one), column_name(other)
    return one.casefold() == other.casefold() or (bool(mine.entity) and mine.entity == theirs.entity)
