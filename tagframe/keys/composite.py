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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.corpus.profile import TableProfile
from tagframe.keys.column_names import (
    AUDIT,
    KEY_WORDS,
    Name,
    column_name,
    is_measure,
    is_rank,
    table_entity,
    type_marks,
    unmarked,
)
from tagframe.keys.containment import overlap, overlaps
from tagframe.keys.key_columns import Column
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.matching import Matches, Positions, hashable, match_rows
from tagframe.keys.terms import CALENDAR
from tagframe.keys.unions import infer_unions

VERIFIED, RENAMED, NAMED, PARTIAL = 0.95, 0.85, 0.75, 0.3
"""The scores of composite keys that the rows confirm, under equal names and under others, of those that names show (of
78 in a schema of 405 tables, 60 are declared), and of those that identify rows of which only a part is found."""

Words = tuple[str, ...]
Read = Callable[[str, Sequence[str]], pd.DataFrame]
"""Reads columns of a table, by the table's id."""

_DEPENDS = 0.8
"""The least share of the tables with a number that also have the key of what it is counted in."""
_MOST_COLUMNS, _MOST_OF_FEW = 3, 5
"""So many columns are a key together; of tables that share at most so many, all."""
_SOME = 0.1
"""Of columns that say which row is meant, so many values are found on the other side, and so many rows by a key."""
_MOST_PARTS = 8
"""So many columns of two tables are combined, the likeliest parts of a key."""
_MOST_TABLES = 40
"""Among more tables, only those that share a column's name are compared."""
_MOST_CELLS = 16_000_000
"""So many cells of a table are read to compare it with another: of longer tables fewer columns. Of tables whose rows
are too many for two columns, names alone show the keys."""
_CROWD = 30
CONTAINED = 0.9
"""The smallest share of rows for which a composite key finds a partner."""
MOST_REPEATED = 0.01
"""The largest share of rows that may repeat a key."""
_NAMESAKES = 0.05
"""At most this share of rows finds another of the same name."""
_FEWEST_ROWS = 8
"""With fewer rows, columns are unique together by accident."""
_MOST_NULLS = 0.2
"""A column with a larger share of missing values is not part of a key; rows with a missing value match nothing."""
_MOST_MISSING = 0.5
"""A column that lacks values in so many rows more than another is no part of one reference with it."""
_FEWEST_OF_PANEL = 4
"""A panel of things by day or year, such as (country, year), needs fewer rows."""
_FEWEST_NAMED = 0.4
"""If names fit less well, two columns of numbers are not the same part of a key."""
_FEWEST_VALUES = 3
"""With fewer values, two columns of other names hold the same ones by accident."""
_YEARS = (1800, 2100)
_ALL_SEEN = 1_000
"""A sample that has no more values than these has nearly all of the column."""
_FIRST_ROWS = 20_000
"""If these repeat a key too often, the others are not looked at."""


class _Part(NamedTuple):
    """Columns of two tables that may be the same part of a key, the referencing one first."""

    left: Column
    right: Column

    @property
    def is_named(self) -> bool:
        """Whether both have one name, as it is read or as it is written."""
        left, right = self
        is_written = left.profile.name.casefold() == right.profile.name.casefold()
        return is_written or left.name.words == right.name.words


_Sides = tuple[int, int]
_Ends = tuple[tuple[str, str], tuple[str, str]]
"""The ids of two tables, each with a column."""


class _Candidate(NamedTuple):
    """The columns of two tables that may be parts of a key: of those whose values are found on the other side, and of
    those of one name that share some values; and further columns with the values of one of the first."""

    tables: frozenset[str]
    whole: Sequence[_Part]
    in_part: Sequence[_Part]
    roles: Sequence[_Part] = ()


class _Rows:
    """The rows of tables. Each table is read at most once, with all columns that may be parts of keys."""

    def __init__(self, read: Read, candidates: Iterable[Sequence[_Part]]) -> None:
        columns: dict[str, dict[str, None]] = defaultdict(dict)
        for part in (part for parts in candidates for part in parts):
            for side in part:
                columns[side.owner.id][side.profile.name] = None
        self.of = cache(lambda table: read(table, [*columns[table]]))
        self._codes = cache(self._coded)
        self.repeats = cache(self._repeated)
        self._matches = cache(self._matched)

    def _coded(self, table: str, column: str) -> Positions:
        return pd.factorize(hashable(self.of(table)[column]))[0].astype(np.int64)

    def matches(self, parts: Sequence[_Part]) -> Matches:
        """The rows of the referenced table that each row of the other matches."""
        names = ((side.profile.name for side in sides) for sides in zip(*parts, strict=True))
        return self._matches(parts[0].left.owner.id, parts[0].right.owner.id, *map(tuple, names))

    def _matched(self, left: str, right: str, mine: Sequence[str], theirs: Sequence[str]) -> Matches:
        one, other = self.of(left), self.of(right)
        return match_rows([one[name] for name in mine], [other[name] for name in theirs])

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


def composite_keys(
    columns: Sequence[Column], known: Sequence[KeyPair], read: Read | None, faint: Iterable[KeyPair] = ()
) -> Iterator[KeyPair]:
    """The composite keys between tables that no single column links.

    Args:
        columns: of the tables of one database.
        faint: key pairs that are less likely, whose names may show that two columns are the same part of a key.
        known: key pairs of single columns. Tables that these link directly are skipped, unless the referenced column is
            not unique, or lacks values: it may be part of a key.
        read: reads the rows to check the proposals against; None for those that names show.
    """
    if read is None or all(column.profile.rows is None for column in columns):
        yield from _by_names(columns, known)
        return
    times = {column.key for column in columns if is_time(column)}
    linked = {pair.tables for pair in known if _suffices(pair) and (pair.right_table, *pair.right_columns) not in times}
    unique = {pair.tables for pair in known if pair.evidence.uniqueness == 1.0} - {
        pair.tables for pair in known if (pair.right_table, *pair.right_columns) in times
    }
    named = {end for pair in faint if pair.evidence.name >= _FEWEST_NAMED for end in _both_ways(pair)}
    found = [one for one in _candidates(columns, named) if one.tables not in linked]
    rows = _Rows(read, [[*one.whole, *one.in_part, *one.roles] for one in found])
    best: dict[frozenset[str], KeyPair] = {}
    whole: list[KeyPair] = []
    for partly in (False, True):
        sure = {*best}
        for one in (one for one in found if one.tables not in (sure | (unique if partly else set()))):
            key = _key_in_part(one.in_part, rows) if partly else _first_key(one.whole, rows)
            whole += [key] if key is not None and key.evidence.contained == key.evidence.uniqueness == 1.0 else []
            if key is not None and (key.tables not in best or _is_better(key, best[key.tables])):
                best[key.tables] = key
    yield from best.values()
    # Like a column's, it counts only where a question names it.
    yield from (replace(key, score=PARTIAL) for key in whole if _is_way_back(key, best[key.tables]))
    yield from (key for one in found for key in _in_other_roles(best.get(one.tables), one, rows))
    large = {column.owner.id for column in columns if _most_columns(column.owner) < 2}
    if large:
        yield from (key for key in _by_names(columns, known) if key.tables not in linked and key.tables & large)


def _is_way_back(key: KeyPair, best: KeyPair) -> bool:
    """Whether a key refers back by columns of its own: a province's capital, beside the province of each city."""
    back, sides = key.reversed(), [*zip(best.left_columns, best.right_columns, strict=True)]
    own = {*zip(back.left_columns, back.right_columns, strict=True)}.symmetric_difference(sides)
    return back.left_table == best.left_table and any(column_name(a).words != column_name(b).words for a, b in own)


def _in_other_roles(key: KeyPair | None, found: _Candidate, rows: _Rows) -> Iterator[KeyPair]:
    """The keys that differ from a key in one referencing column: (season, guest) beside (season, host)."""
    if key is None or not found.roles or key.left_table != found.roles[0].left.owner.id:
        return
    part_of = {(part.left.profile.name, part.right.profile.name): part for part in found.whole}
    chosen = [part_of.get(names) for names in zip(key.left_columns, key.right_columns, strict=True)]
    parts = [part for part in chosen if part is not None]
    if len(parts) < len(chosen):
        return
    for role in found.roles:
        others = [role if part.right is role.right else part for part in parts]
        if others != parts and (other := _verified(others, rows)) is not None:
            yield replace(other, score=key.score)


def _by_names(columns: Sequence[Column], known: Sequence[KeyPair]) -> Iterator[KeyPair]:
    """Keys of two columns, by names: the second one numbers the rows of a table for each value of the first one.

    Nearly all tables that have the second column have the first one, too, and no single key is likelier than ``NAMED``,
    nor refers to a key of its name: an ``order_item_seq_id`` may also seem to name the order. Of the tables that begin
    with both, the owner is the one whose name the second column has most words of, then that with the shortest name.
    Both may have one role before their names: ``to_order_id`` and ``to_order_item_seq_id``.
    """
    likelier = [key for key in known if key.score > NAMED or _have_one_name(key)]
    refers = {(key.left_table, *key.left_columns) for key in likelier if key.left_table != key.right_table}
    linked: dict[frozenset[str], set[tuple[str, str]]] = defaultdict(set)
    for key in filter(_suffices, likelier):
        linked[key.tables] |= {(key.left_table, key.left_columns[0]), (key.right_table, key.right_columns[0])}
    marks = type_marks([column.profile.name for column in columns])
    read = {column.key: column_name(unmarked(column.profile.name, marks)) for column in columns}
    of_table: dict[int, dict[Words, Column]] = defaultdict(dict)
    for column in columns:
        of_table[column.table].setdefault(read[column.key].words, column)
    holders: dict[Words, set[int]] = defaultdict(set)
    for table, words in ((table, words) for table, named in of_table.items() for words in named):
        holders[words].add(table)
    owners: dict[tuple[Words, Words], list[int]] = defaultdict(list)
    things: dict[int, Words] = {}
    for table, named in of_table.items():
        first, second = [*named, (), ()][:2]
        beside = len(holders[second] & holders[first])
        if beside < 2 or any(column.unique == 1.0 and column.name.key_word for column in named.values()):
            continue
        depends = beside >= _DEPENDS * len(holders[second]) and named[second].key not in refers
        is_pair = beside == 2 and _are_counted_things(
            named[first], named[second]
        )  # else two references, in many tables
        thing = things[table] = table_entity(named[first].owner.name)
        if is_pair or (depends and _may_number(read[named[first].key], read[named[second].key], thing)):
            owners[first, second].append(table)
    for (first, second), tables in owners.items():
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


def _have_one_name(key: KeyPair) -> bool:
    left, right = (column_name(names[0]).words for names in (key.left_columns, key.right_columns))
    return left == right


def _may_number(name: Name, other: Name, thing: Words) -> bool:
    """Whether the other column of a table may number its rows for each value of the named one, which names a thing."""
    is_thing = name.entity and (name.key_word or {*name.entity} & {*thing})
    return bool(is_thing and not other.generic and (other.key_word or not CALENDAR.isdisjoint(other.words)))


def _are_counted_things(first: Column, second: Column) -> bool:
    """Whether a table with rows is called after two things, whose keys it begins with."""
    thing = {*table_entity(first.owner.name)}
    return first.profile.rows is not None and all(
        one.name.key_word and not thing.isdisjoint(one.name.entity) for one in (first, second)
    )


def _is_better(key: KeyPair, other: KeyPair) -> bool:
    """Of two directions the better one: no key repeats, equal names, most rows are found by the fewest columns."""

    def rank(one: KeyPair) -> tuple[float, ...]:
        found = one.evidence
        is_unique = found.uniqueness == 1.0
        return one.score > PARTIAL, is_unique, one.score, found.contained or 0.0, -len(one.left_columns)

    return rank(key) > rank(other)


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


def _both_ways(pair: KeyPair) -> Iterator[_Ends]:
    left, right = (pair.left_table, pair.left_columns[0]), (pair.right_table, pair.right_columns[0])
    yield from ((left, right), (right, left))


def _candidates(columns: Sequence[Column], alike: Set[_Ends]) -> Iterator[_Candidate]:
    """For each two tables that share enough, in both directions: the columns that may be parts of a key, likeliest
    combinations first."""
    of_table: dict[int, dict[Words, Column]] = defaultdict(dict)
    for column in columns:
        of_table[column.table].setdefault(column.name.words, column)
    owners = [next(iter(of_table[table].values())).owner for table in of_table]
    shape = {table: number for number, group in enumerate(infer_unions(owners)) for table in group.tables}
    numbers = {table: number for number, table in enumerate(of_table)}
    for left, right in _pairs_of_tables(columns, of_table):
        if shape.get(owners[numbers[left]].id, -1) == shape.get(owners[numbers[right]].id, -2):
            continue  # their rows are of one kind, but not the same
        mine, theirs = of_table[left], of_table[right]
        first, second = owners[numbers[left]], owners[numbers[right]]
        most = _most_columns(first, second)
        if most < 2:
            continue
        # An abbreviation of a table may be read in the name of one of two columns that are written alike.
        written = {column.profile.name.casefold(): column for column in mine.values()}
        rights = [
            (right, mine.get(words, written.get(right.profile.name.casefold()))) for words, right in theirs.items()
        ]
        named = [_Part(left, right) for right, left in rights if left is not None]
        named = [part for part in named if _may_take_part(part)]
        parts = [part for part in named if _holds_values(part)]
        roles: list[_Part] = []
        if len(parts) < _MOST_PARTS:
            others, roles = _parts_of_other_names([*mine.values()], [*theirs.values()], parts, alike)
            parts += others
        whole, in_part = (_likeliest(some, most) if len(some) > 1 else [] for some in (parts, _that_say_which(named)))
        if whole or in_part:
            yield _Candidate(frozenset((first.id, second.id)), whole, in_part, roles if whole else ())


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


def _most_columns(*tables: TableProfile) -> int:
    return min(_MOST_PARTS, _MOST_CELLS // max(1, *(table.rows or 0 for table in tables)))


def _likeliest(parts: Sequence[_Part], most: int) -> list[_Part]:
    """The parts in their order; of many those with a key word, then times, then texts of more values."""

    def rank(at: int) -> tuple[Any, ...]:
        right = parts[at].right
        is_text = right.profile.family == "text"
        return not _is_named_key(right), not is_time(right), not is_text, -(right.profile.distinct or 0) * is_text, at

    return [parts[at] for at in sorted(sorted(range(len(parts)), key=rank)[:most])]


def _may_take_part(part: _Part) -> bool:
    right = part.right.profile
    if part.left.counts_rows or part.right.counts_rows or is_rank(part.right.spelt):
        return False
    is_one = part.right.unique == 1.0 and not part.right.is_versioned
    return not (is_one or (right.null_share or 0.0) > _MOST_NULLS or right.family in ("real", "boolean", "empty"))


def _holds_values(part: _Part) -> bool:
    shared, back = _shares(part)
    if part.left.profile.family == part.right.profile.family and _says_which(part):
        return shared is None or max(shared, back or 0.0) >= CONTAINED
    return shared is None or shared >= CONTAINED


def _says_which(part: _Part) -> bool:
    return _is_named_key(part.right) or is_time(part.right) or part.right.profile.family == "text"


def _shares(part: _Part) -> tuple[float | None, float | None]:
    """The share of the values of each side that the other has; None if it is unknown."""
    left, right = (side.profile.sketch for side in part)
    there, back = overlap(left, right), overlap(right, left)
    return None if there is None else there.share, None if back is None else back.share


def _that_say_which(parts: Sequence[_Part]) -> list[_Part]:
    """Those that say which row is meant, and share some values: keys and times; without a key, texts and times."""
    some = [
        part
        for part in parts
        if part.left.profile.family == part.right.profile.family
        and part.left.unique != 1.0
        and any((share or 0.0) >= _SOME for share in _shares(part))
        and not AUDIT.intersection(part.right.name.words)
    ]
    keys = [part for part in some if _is_named_key(part.right)]
    others = [] if keys else [part for part in some if part.right.profile.family == "text" and not is_time(part.right)]
    return [*(keys or others), *(part for part in some if is_time(part.right) and part not in keys)]


def _parts_of_other_names(
    mine: Sequence[Column], theirs: Sequence[Column], parts: Sequence[_Part], alike: Set[_Ends]
) -> tuple[list[_Part], list[_Part]]:
    """Columns of two tables that hold the same values under other names, such as (area, age) and (region, age); and
    further columns with the values of one of the second table's: host and guest beside team."""
    taken = {side.key for part in parts for side in part}
    lefts, rights = ([one for one in side if one.profile.sketch and one.profile.distinct] for side in (mine, theirs))
    lefts = [column for column in lefts if column.key not in taken]
    pairs = [_Part(left, right) for right in rights for left in lefts if left.profile.family == right.profile.family]
    pairs = [part for part in pairs if _may_be_renamed(part, alike) and _may_take_part(part)]
    if not pairs:
        return [], []
    sketches = [side.profile.sketch for part in pairs for side in part]
    at = np.arange(0, len(sketches), 2)
    contained = overlaps(sketches, at, at + 1)[0]
    shares = np.where(contained.known & (contained.seen >= _FEWEST_VALUES), contained.share, 0.0)
    best: dict[tuple[str, str], _Part] = {}
    shared = [len({*part.left.name.words} & {*part.right.name.words}) for part in pairs]
    for place in sorted(range(len(pairs)), key=lambda place: (-shared[place], -shares[place], place)):
        part = pairs[place]
        if shares[place] >= CONTAINED and not {part.left.key, part.right.key} & taken:
            best[part.right.key] = part
            taken |= {part.left.key, part.right.key}
    found = [best[right.key] for right in theirs if right.key in best]
    whole = (pairs[place] for place in np.flatnonzero(shares >= CONTAINED))
    return found, [
        part for part in whole if part.right.key in taken and part.left.key not in taken and not is_time(part.right)
    ]


def _may_be_renamed(part: _Part, alike: Set[_Ends]) -> bool:
    """Whether values may show that two columns are one: texts, days, years, and numbers whose names fit."""
    things = {tuple(word for word in side.name.words if word not in KEY_WORDS) for side in part}
    are_numbers = len(things) == 1 and () not in things and all(KEY_WORDS & {*side.name.words} for side in part)
    is_named = are_numbers or (part.left.key, part.right.key) in alike
    return all(
        not is_rank(side.spelt) and (is_named or side.profile.family in ("text", "date") or _has_years(side))
        for side in part
    )


def _first_key(parts: Sequence[_Part], rows: _Rows) -> KeyPair | None:
    """The first columns that identify rows; of those that hardly any row repeats, with further ones that tell these
    apart, if as many rows are found."""
    found = None
    near: tuple[tuple[_Part, ...], KeyPair] | None = None
    for chosen in _combinations(parts):
        if near is not None and not {*near[0]} < {*chosen}:
            continue
        key = _verified(chosen, rows)
        contained = 0.0 if key is None else key.evidence.contained or 0.0
        if key is not None and contained >= (CONTAINED if near is None else near[1].evidence.contained or 0.0):
            if key.evidence.uniqueness == 1.0:
                return key
            near = near or (chosen, key)
        found = found or (key and _verified(_with_times(chosen, parts, rows), rows))
    return found if near is None else near[1]


def _key_in_part(parts: Sequence[_Part], rows: _Rows) -> KeyPair | None:
    """The fewest columns that identify the rows of the referenced table, whatever share of the others is found."""
    found: list[tuple[float, float, tuple[_Part, ...], KeyPair]] = []
    for chosen in _combinations(parts):
        if found and len(chosen) > len(found[0][2]):
            break
        key = _verified(chosen, rows, least=_SOME)
        if key is not None:
            found.append(
                (rows.repeats(key.right_table, key.right_columns), -(key.evidence.contained or 0.0), chosen, key)
            )
    if not found:
        return None
    *_, chosen, key = min(found, key=lambda one: one[:2])
    return _verified(_with_times(chosen, parts, rows), rows, least=_SOME) or key


def _with_times(chosen: tuple[_Part, ...], parts: Sequence[_Part], rows: _Rows) -> tuple[_Part, ...]:
    """Names, with the times by which hardly a row loses its partner: who is called alike and born later is another."""
    if any(_is_named_key(part.right) or is_time(part.right) for part in chosen):
        return chosen
    for time in (part for part in parts if part.is_named and is_time(part.right)):
        found, wider = (int((rows.matches(one).counts > 0).sum()) for one in (chosen, (*chosen, time)))
        if wider >= (1 - _NAMESAKES) * found:
            chosen = (*chosen, time)
    return chosen


def _combinations(parts: Sequence[_Part]) -> Iterator[tuple[_Part, ...]]:
    """The combinations of parts that may identify the rows of the referenced table, by names and counts."""
    rows = (parts[0].right.profile.rows or 0) if parts and parts[0].left.profile.rows else 0
    most = len(parts) if len(parts) <= _MOST_OF_FEW else _MOST_COLUMNS
    for size in range(2, most + 1):
        for chosen in sorted(combinations(parts, size), key=lambda chosen: -sum(part.is_named for part in chosen)):
            is_named = any(_is_named_key(part.right) for part in chosen)
            measured = any(_is_measured(part.right) for part in chosen)
            fewest = _FEWEST_OF_PANEL if _is_panel(chosen) else _FEWEST_ROWS
            if not is_named and (measured or rows < fewest):
                continue
            whole = rows - max(part.right.profile.nulls or 0 for part in chosen)
            # So many rows cannot all differ otherwise.
            if prod(_most_values(part.right) for part in chosen) >= (1 - MOST_REPEATED) * whole:
                yield chosen


def _most_values(column: Column) -> int:
    """How many values a column has at most: a sample with many may lack any number of others."""
    distinct, rows = column.profile.distinct or 1, column.owner.rows or 1
    return max(distinct, rows) if column.owner.estimated and distinct > _ALL_SEEN else distinct


def _is_panel(chosen: Sequence[_Part]) -> bool:
    times = [is_time(part.right) for part in chosen]
    return any(times) and any(
        not time and part.right.profile.family == "text" for time, part in zip(times, chosen, strict=True)
    )


def _verified(chosen: Sequence[_Part], rows: _Rows, least: float = CONTAINED) -> KeyPair | None:
    right, count = chosen[0].right.owner.id, chosen[0].right.profile.rows or 0
    missing = [part.left.profile.null_share or 0.0 for part in chosen]
    if max(missing) - min(missing) > _MOST_MISSING:
        return None
    repeats = rows.repeats(right, tuple(part.right.profile.name for part in chosen))
    if repeats > MOST_REPEATED * count:
        return None
    matches = rows.matches(chosen)
    whole, matched = int((~matches.nulls).sum()), matches.counts > 0
    if not matched.any() or (not repeats and matches.counts.max() > 1):
        return None  # equal only when they are read as numbers
    contained, is_named = int(matched.sum()) / whole, all(part.is_named for part in chosen)
    share = contained
    if share < CONTAINED and is_named and all(map(_says_which, chosen)):
        share = max(share, _covered(rows.of(chosen[0].left.owner.id), chosen, matched) / count)
    if share < least:
        return None
    of_rows = f", {repeats:,} of {count:,} rows repeat a key" if repeats else ", unique together"
    reason = f"{contained:.0%} of the rows found{of_rows}, {'the same names' if is_named else 'the same values'}"
    score = VERIFIED if is_named and contained >= CONTAINED else RENAMED if share >= CONTAINED else PARTIAL
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
