"""The nearest candidates for a key between tables that no key connects, for the error message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys.column_names import column_name
from tagframe.keys.containment import overlap
from tagframe.keys.inference import infer_key_pairs
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.terms import CALENDAR

_SHOWN = 3
_ALIKE = "both have the name"
_MOST_COLUMNS = 400
"""For a message, pairwise comparison stops at this many columns."""


def nearest_pairs(
    profiles: Sequence[TableProfile], part_of: Mapping[str, str], known: Sequence[KeyPair]
) -> list[KeyPair]:
    """At most three key pairs between parts, the likeliest first.

    Args:
        profiles: the tables.
        part_of: the part of each table, by id.
        known: key pairs between them that are likely enough to come first.

    Returns:
        Possible pairs from key inference; without any, columns that share values or a name.
    """

    def is_across(key: KeyPair) -> bool:
        left, right = part_of.get(key.left_table), part_of.get(key.right_table)
        return left is not None and right is not None and left != right

    inferred = infer_key_pairs(profiles, declared=False, min_score=0.0, across_sources=True)
    found = [key for key in dict.fromkeys([*_called_alike(profiles), *known, *inferred]) if is_across(key)]
    if not found and sum(len(profile.columns) for profile in profiles) <= _MOST_COLUMNS:
        found = [key for key in _alike(profiles) if is_across(key)]
    return sorted(
        found, key=lambda key: (key.evidence.reason[: len(_ALIKE)] != _ALIKE, -key.score, key.left, key.right)
    )[:_SHOWN]


def _called_alike(profiles: Sequence[TableProfile]) -> Iterator[KeyPair]:
    """Columns of the same name (a day, or with a key word) that share no value: they are written differently."""
    named: dict[str, list[tuple[TableProfile, ColumnProfile]]] = defaultdict(list)
    for profile in profiles:
        for column in profile.columns:
            name = column_name(column.name)
            if name.entity and (name.key_word or {*name.words} <= CALENDAR):
                named[column.name.casefold()].append((profile, column))
    for sides in named.values():
        for (left, mine), (right, theirs) in combinations(sides, 2):
            shared = overlap(mine.sketch, theirs.sketch)
            if shared is not None and not shared.share and left.id != right.id:
                written = [f"{column.samples[0]!r}" for column in (mine, theirs) if column.samples]
                such = f" ({' and '.join(written)})" if len(written) == 2 else ""
                evidence = Evidence(
                    contained=0.0, name=1.0, reason=f"{_ALIKE} but share no value{such}: write them alike"
                )
                yield KeyPair(left.id, (mine.name,), right.id, (theirs.name,), 0.0, evidence)


def _alike(profiles: Sequence[TableProfile]) -> Iterator[KeyPair]:
    """Columns of two tables that share values or a name. The score only orders them: it is below that of any key."""
    for position, left in enumerate(profiles):
        for right in profiles[position + 1 :]:
            for mine in left.columns:
                for theirs in right.columns:
                    shared = overlap(mine.sketch, theirs.sketch)
                    share = shared.share if shared is not None and mine.family == theirs.family else 0.0
                    is_named_alike = mine.name.casefold() == theirs.name.casefold()
                    if share or is_named_alike:
                        reason = f"{share:.0%} of the values found" if shared is not None else ""
                        evidence = Evidence(contained=share, name=float(is_named_alike), reason=reason)
                        score = 1e-5 * (share + is_named_alike) / 2
                        yield KeyPair(left.id, (mine.name,), right.id, (theirs.name,), score, evidence)
