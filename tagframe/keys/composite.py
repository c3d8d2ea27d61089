"""Composite keys: several columns that identify the rows of a table only together.

JAR leaves them to future work. Two tables are compared if they share at least two column names, or values under other
names. Only the rows show whether the columns together are unique in one table and contain the other's values. With the
rows, panels without a key word are found, such as (country, year) and (ticker, date). Without the rows, the names of a
whole schema show them: a number that hardly any table has without another one's key, such as the line of an order, is
no key alone (:func:`_by_names`).

The work is bounded by evidence: every table is read at most once, tables of one shape are not compared, and of two
tables only the few columns are combined that are the likeliest parts of a key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.keys.candidates import SHARE
from tagframe.keys.column_names import column_name, is_measure, is_rank, table_entity
from tagframe.keys.containment import overlap, overlaps
from tagframe.keys.key_columns import Column
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.matching import Positions, hashable, match_rows
from tagframe.keys.terms import CALENDAR
from tagframe.keys.unions import infer_unions

VERIFIED, RENAMED, NAMED = 0.95, 0.85, 0.75
"""The scores of composite keys that the rows confirm, under equal names and under others, and of those that names show
(of 77 in a schema of 405 tables, 59 are declared)."""

Words = tuple[str, ...]
Read = Callable[[str, Sequence[str]], pd.DataFrame]
"""Reads columns of a table, by the table's id."""

_DEPENDS = 0.8
"""The least share of the tables with a number that also have the key of what it is counted in."""
_MOST_COLUMNS = 3
_MOST_PARTS = 8
"""So many columns of two tables are combined, the likeliest parts of a key."""
_MOST_TABLES = 40
"""Among more tables, only those that share a column's name are compared."""
MOST_ROWS = 2_000_000
"""Tables with more rows are not checked."""
_CROWD = 30
CONTAINED = 0.9
"""The smallest share of rows for which a composite key finds a partner."""
MOST_REPEATED = 0.01
"""The largest share of rows that may repeat a key."""
_FEWEST_ROWS = 8
"""With fewer rows, columns are unique together by accident."""
_MOST_NULLS = 0.2
"""A column with a larger share of missing values is not part of a key; rows with a missing value match nothing."""
_FEWEST_OF_PANEL = 4
"""A panel of things by day or year, such as (country, year), needs fewer rows."""
_FEWEST_VALUES = 3
"""With fewer values, two columns of other names hold the same ones by accident."""
_YEARS = (1800, 2100)
_FIRST_ROWS = 20_000
"""If these repeat a key too often, the others are not looked at."""


class _Part(NamedTuple):
    """Columns of two tables that may be the same part of a key, the referencing one first."""

    left: Column
    right: Column

    @property
    def is_named(self) -> bool:
        """Whether both have one name."""
        return self.left.name.words == self.right.name.words


_Sides = tuple[int, int]


class _Rows:
    """The rows of tables. Each table is read at most once, with all columns that may be parts of keys."""

    def __init__(self, read: Read, candidates: Mapping[_Sides, Sequence[_Part]]) -> None:
        columns: dict[str, dict[str, None]] = defaultdict(dict)
        for part in (part for parts in candidates.values() for part in parts):
            for side in part:
                columns[side.owner.id][side.profile.name] = None
        self.of = cache(lambda table: read(table, [*columns[table]]))
        self._codes = cache(self._coded)
        self.repeats = cache(self._repeated)

    def _coded(self, table: str, column: str) -> Positions:
        return pd.factorize(hashable(self.of(table)[column]))[0].astype(np.int64)

    def _repeated(self, table: str, columns: tuple[str, ...]) -> int:
        """How many rows repeat the values of an earlier row; more than may be, if the first rows repeat too often."""
        codes = [self._codes(table, column) for column in columns]
        most = MOST_REPEATED * len(codes[0])
        first = _repeats([each[:_FIRST_ROWS] for each in codes])
        return first if first > most or len(codes[0]) <= _FIRST_ROWS else _repeats(codes)


def _repeats(codes: Sequence[Positions]) -> int:
    known = np.all([each >= 0 for each in codes], axis=0)
    joint = np.zeros(int(known.sum()), dtype=np.int64)
    for each in codes:
        joint = np.unique(joint * (int(each.max(initial=0)) + 1) + each[known], return_inverse=True)[1]
    return len(joint) - (int(joint.max()) + 1 if len(joint) else 0)


def composite_keys(columns: Sequence[Column], known: Sequence[KeyPair], read: Read | None) -> Iterator[KeyPair]:
    """The composite keys between tables that no single column links.

    Args:
        columns: of the tables of one database.
        known: key pairs of single columns. Tables that these link directly are skipped, unless the referenced column is
            not unique, or lacks values: it may be part of a key.
        read: reads the rows to check the proposals against; None for those that names show.
    """
    if read is None or all(column.profile.rows is None for column in columns):
        yield from _by_names(columns, known)
        return
    times = {column.key for column in columns if is_time(column)}
    linked = {pair.tables for pair in known if _suffices(pair) and (pair.right_table, *pair.right_columns) not in times}
    candidates = {
        sides: parts
        for sides, parts in _candidates(columns)
        if frozenset((parts[0].left.owner.id, parts[0].right.owner.id)) not in linked
    }
    rows = _Rows(read, candidates)
    best: dict[frozenset[str], KeyPair] = {}
    for parts in candidates.values():
        are_few = max(parts[0].left.owner.rows or 0, parts[0].right.owner.rows or 0) <= MOST_ROWS
        key = _first_key(parts, rows) if are_few else None
        if key is not None and (key.tables not in best or _holds(key) > _holds(best[key.tables])):
            best[key.tables] = key
    yield from best.values()


def _by_names(columns: Sequence[Column], known: Sequence[KeyPair]) -> Iterator[KeyPair]:
    """Keys of two columns, by names: the second one numbers the rows of a table for each value of the first one.

    Nearly all tables that have the second column have the first one, too, and it refers to no table. Of the tables that
    begin with both, the owner is the one whose name the second column has most words of, then that with the shortest
    name. Both may have one role before their names: ``to_order_id`` and ``to_order_item_seq_id``.
    """
    refers = {(key.left_table, *key.left_columns) for key in known if key.left_table != key.right_table}
    linked: dict[frozenset[str], set[tuple[str, str]]] = defaultdict(set)
    for key in filter(_suffices, known):
        linked[key.tables] |= {(key.left_table, key.left_columns[0]), (key.right_table, key.right_columns[0])}
    of_table: dict[int, dict[Words, Column]] = defaultdict(dict)
    for column in columns:
        of_table[column.table].setdefault(column_name(column.profile.name).words, column)
    holders: dict[Words, set[int]] = defaultdict(set)
    for table, words in ((table, words) for table, named in of_table.items() for words in named):
        holders[words].add(table)
    owners: dict[tuple[Words, Words], list[int]] = defaultdict(list)
    for table, named in of_table.items():
        first, second = [*named, (), ()][:2]
        beside = len(holders[second] & holders[first])
        if beside < 2 or any(column.unique == 1.0 and column.name.key_word for column in named.values()):
            continue
        depends = beside >= _DEPENDS * len(holders[second]) and named[second].key not in refers
        is_pair = beside == 2 and _are_counted_things(
            named[first], named[second]
        )  # else two references, in many tables
        if is_pair or (depends and _may_number(named[first], named[second])):
            owners[first, second].append(table)
    for (first, second), tables in owners.items():
        things = {table: table_entity(of_table[table][first].owner.name) for table in tables}
        owner = min(tables, key=lambda table: (-len({*second} & {*things[table]}), len(things[table]), table))
        target = of_table[owner][first], of_table[owner][second]
        for words in [words for words in holders if words[-len(second) :] == second]:
            of_first = (*words[: -len(second)], *first)
            for table in sorted(holders[words] & holders[of_first] - ({owner} if words == second else set())):
                mine = of_table[table][of_first], of_table[table][words]
                ends = linked.get(frozenset((mine[0].owner.id, target[0].owner.id)), set())
                if target[0].key not in ends:
                    evidence = Evidence(name=1.0, reason="the same names, hardly ever apart")
                    yield _key_pair([*map(_Part, mine, target)], NAMED, evidence)


def _may_number(first: Column, second: Column) -> bool:
    """Whether a column may number the rows for each value of another one, which names a thing."""
    name, other = (column_name(column.profile.name) for column in (first, second))
    is_thing = name.entity and (name.key_word or {*name.entity} & {*table_entity(first.owner.name)})
    return bool(is_thing and not other.generic and (other.key_word or not CALENDAR.isdisjoint(other.words)))


def _are_counted_things(first: Column, second: Column) -> bool:
    """Whether a table with rows is called after two things, whose keys it begins with."""
    thing = {*table_entity(first.owner.name)}
    return first.profile.rows is not None and all(
        one.name.key_word and not thing.isdisjoint(one.name.entity) for one in (first, second)
    )


def _holds(key: KeyPair) -> tuple[float, float, float]:
    """Of two directions the better one: equal names, no key repeats, most rows are found."""
    evidence = key.evidence
    return key.score, evidence.uniqueness or 0.0, evidence.contained or 0.0


def _suffices(pair: KeyPair) -> bool:
    evidence = pair.evidence
    return evidence.uniqueness in (None, 1.0) and (evidence.contained is None or evidence.contained >= CONTAINED)


def _is_named_key(column: Column) -> bool:
    return bool(column_name(column.profile.name).key_word and column.name.entity)


def is_time(column: Column) -> bool:
    """Whether a column says when: a word of the calendar, or years."""
    return set(column.name.words) <= CALENDAR or _has_years(column)


def _has_years(column: Column) -> bool:
    run = column.run
    return run is not None and _YEARS[0] <= run.low <= run.high <= _YEARS[1]


def _is_measured(column: Column) -> bool:
    """Whether a number describes the row; a text may say which row it is, whatever its name."""
    return is_measure(column.spelt) and column.profile.family != "text" and not _has_years(column)


def _candidates(columns: Sequence[Column]) -> Iterator[tuple[_Sides, list[_Part]]]:
    """For each two tables that share enough, in both directions: the columns that may be parts of a key, likeliest
    combinations first."""
    of_table: dict[int, dict[Words, Column]] = defaultdict(dict)
    for column in columns:
        of_table[column.table].setdefault(column.name.words, column)
    owners = [next(iter(of_table[table].values())).owner for table in of_table]
    shape = {table: number for number, group in enumerate(infer_unions(owners)) for table in group.tables}
    ids = dict(zip(of_table, (owner.id for owner in owners), strict=True))
    for left, right in _pairs_of_tables(columns, of_table):
        if shape.get(ids[left], -1) == shape.get(ids[right], -2):
            continue  # their rows are of one kind, but not the same
        mine, theirs = of_table[left], of_table[right]
        parts = [_Part(mine[words], theirs[words]) for words in theirs if words in mine]
        parts = [part for part in parts if _may_take_part(part)]
        parts = [part for part in parts if _holds_values(part)]
        if len(parts) < _MOST_PARTS:
            parts += _parts_of_other_names([*mine.values()], [*theirs.values()], parts)
        if len(parts) > 1:
            yield (left, right), _likeliest(parts)


def _pairs_of_tables(columns: Sequence[Column], tables: Mapping[int, Mapping[Words, Column]]) -> list[_Sides]:
    if len(tables) <= _MOST_TABLES:
        return [(one, other) for one in tables for other in tables if one != other]
    by_words: dict[Words, list[Column]] = defaultdict(list)
    for column in columns:
        if _is_named_key(column) or not is_measure(column.spelt):
            by_words[column.name.words].append(column)
    crowds = (crowd for crowd in by_words.values() if len(crowd) <= _CROWD)
    pairs = {(one.table, other.table) for crowd in crowds for one in crowd for other in crowd}
    return sorted((one, other) for one, other in pairs if one != other)


def _likeliest(parts: Sequence[_Part]) -> list[_Part]:
    """The parts in their order; of many those with a key word, then times, then texts."""
    order = sorted(
        range(len(parts)),
        key=lambda at: (
            not _is_named_key(parts[at].right),
            not is_time(parts[at].right),
            parts[at].right.profile.family != "text",
            at,
        ),
    )
    return [parts[at] for at in sorted(order[:_MOST_PARTS])]


def _may_take_part(part: _Part) -> bool:
    right = part.right.profile
    if part.left.counts_rows or part.right.counts_rows or is_rank(part.right.spelt):
        return False
    is_one = part.right.unique == 1.0 and not part.right.is_versioned
    return not (is_one or (right.null_share or 0.0) > _MOST_NULLS or right.family in ("real", "boolean", "empty"))


def _holds_values(part: _Part) -> bool:
    shared = overlap(part.left.profile.sketch, part.right.profile.sketch)
    if shared is not None and part.left.profile.family == part.right.profile.family and _is_named_key(part.right):
        back = overlap(part.right.profile.sketch, part.left.profile.sketch)
        return max(shared.share, back.share if back else 0.0) >= CONTAINED
    return shared is None or shared.share >= max(SHARE, CONTAINED)


def _parts_of_other_names(mine: Sequence[Column], theirs: Sequence[Column], parts: Sequence[_Part]) -> list[_Part]:
    """Columns of two tables that hold the same values under other names, such as (area, age) and (region, age)."""
    taken = {side.key for part in parts for side in part}
    lefts = [column for column in mine if column.key not in taken and _may_be_renamed(column)]
    rights = [column for column in theirs if column.key not in taken and _may_be_renamed(column)]
    pairs = [_Part(left, right) for right in rights for left in lefts if _are_alike(left, right)]
    pairs = [part for part in pairs if _may_take_part(part)]
    if not pairs:
        return []
    sketches = [side.profile.sketch for part in pairs for side in part]
    at = np.arange(0, len(sketches), 2)
    contained = overlaps(sketches, at, at + 1)[0]
    shares = np.where(contained.known & (contained.seen >= _FEWEST_VALUES), contained.share, 0.0)
    best: dict[tuple[str, str], _Part] = {}
    for place in sorted(range(len(pairs)), key=lambda place: (-_names_fit(pairs[place]), -shares[place], place)):
        part = pairs[place]
        if shares[place] >= CONTAINED and not {part.left.key, part.right.key} & taken:
            best[part.right.key] = part
            taken |= {part.left.key, part.right.key}
    return [best[right.key] for right in rights if right.key in best]


def _may_be_renamed(column: Column) -> bool:
    if column.profile.sketch is None or is_rank(column.spelt):
        return False
    return column.profile.family in ("text", "date") or _has_years(column)


def _are_alike(left: Column, right: Column) -> bool:
    return left.profile.family == right.profile.family


def _names_fit(part: _Part) -> int:
    return len({*part.left.name.words} & {*part.right.name.words})


def _first_key(parts: Sequence[_Part], rows: _Rows) -> KeyPair | None:
    if not parts[0].right.profile.rows or not parts[0].left.profile.rows:
        return None
    found = None
    for chosen in _combinations(parts):
        key = _verified(chosen, rows)
        if key is not None and (key.evidence.contained or 0.0) >= CONTAINED:
            return key
        found = found or key
    return found


def _combinations(parts: Sequence[_Part]) -> Iterator[tuple[_Part, ...]]:
    """The combinations of parts that may identify the rows of the referenced table, by names and counts."""
    rows = parts[0].right.profile.rows or 0
    for size in range(2, min(_MOST_COLUMNS, len(parts)) + 1):
        for chosen in sorted(combinations(parts, size), key=lambda chosen: -sum(part.is_named for part in chosen)):
            is_named = any(_is_named_key(part.right) for part in chosen)
            measured = any(_is_measured(part.right) for part in chosen)
            fewest = _FEWEST_OF_PANEL if _is_panel(chosen) else _FEWEST_ROWS
            if not is_named and (measured or rows < fewest):
                continue
            whole = rows - max(part.right.profile.nulls or 0 for part in chosen)
            # So many rows cannot all differ otherwise.
            if prod(part.right.profile.distinct or 1 for part in chosen) >= (1 - MOST_REPEATED) * whole:
                yield chosen


def _is_panel(chosen: Sequence[_Part]) -> bool:
    times = [is_time(part.right) for part in chosen]
    return any(times) and any(
        not time and part.right.profile.family == "text" for time, part in zip(times, chosen, strict=True)
    )


def _verified(chosen: Sequence[_Part], rows: _Rows) -> KeyPair | None:
    left, right = chosen[0].left.owner.id, chosen[0].right.owner.id
    count, names = chosen[0].right.profile.rows or 0, tuple(part.right.profile.name for part in chosen)
    repeats = rows.repeats(right, names)
    if repeats > MOST_REPEATED * count:
        return None
    mine, theirs = rows.of(left), rows.of(right)
    matches = match_rows([mine[part.left.profile.name] for part in chosen], [theirs[name] for name in names])
    whole, matched = int((~matches.nulls).sum()), matches.counts > 0
    if not matched.any() or (not repeats and matches.counts.max() > 1):
        return None  # equal only when they are read as numbers
    contained = int(matched.sum()) / whole
    are_keys = all(part.is_named and (_is_named_key(part.right) or is_time(part.right)) for part in chosen)
    if contained < CONTAINED and not (are_keys and _covered(mine, chosen, matched) >= CONTAINED * count):
        return None
    is_named = all(part.is_named for part in chosen)
    of_rows = f", {repeats:,} of {count:,} rows repeat a key" if repeats else ", unique together"
    reason = f"{contained:.0%} of the rows found{of_rows}, {'the same names' if is_named else 'the same values'}"
    score = VERIFIED if is_named and contained >= CONTAINED else RENAMED
    evidence = Evidence(contained=contained, uniqueness=1 - repeats / count, name=float(is_named), reason=reason)
    return _key_pair(chosen, score, evidence)


def _covered(mine: pd.DataFrame, chosen: Sequence[_Part], matched: npt.NDArray[np.bool_]) -> int:
    """How many keys of the referenced table are found in the referencing one."""
    keys = mine[[part.left.profile.name for part in chosen]][matched]
    return len(keys.apply(hashable).drop_duplicates())


def _key_pair(chosen: Sequence[_Part], score: float, evidence: Evidence) -> KeyPair:
    return KeyPair(
        chosen[0].left.owner.id,
        tuple(part.left.profile.name for part in chosen),
        chosen[0].right.owner.id,
        tuple(part.right.profile.name for part in chosen),
        score,
        evidence,
    )
