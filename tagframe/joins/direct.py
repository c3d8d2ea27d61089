"""Keys between tables that have to be joined, though nothing makes one of their columns likelier than an accident.

Real tables often hold a part of the things each: 769 places with their cuisines, 130 with ratings. Then a key is hardly
likelier than an accident by the share of the values alone. But if two tables have to be joined, a name that both have,
unique on one side, says more than a third table that has a key to both. And two tables whose rows repeat a key on both
sides, such as two surveys of the same schools, belong together by all columns that say of what a row is: school, year.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product

from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import column_names as names
from tagframe.keys.components import Components
from tagframe.keys.containment import overlap
from tagframe.keys.inference import ACCEPTED
from tagframe.keys.key_columns import MAX_GAPPED_DENSITY, holds_long_numbers, integer_run, is_code, uniqueness
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.terms import CALENDAR

DIRECT_CHANCE = 0.3
"""The chance of a direct key that inference finds less likely: below one half, so that a merge warns of it."""
_NAME_CHANCE = 0.25
"""The same for a key of names, which are spelt in several ways."""
_NEARLY_ALL = 0.9
"""Without a name that both have, so many of the values of one side have to be found."""
_HALF = 0.5
"""With a name that both have, so many of the values of one side, or _FEWEST of them, have to be found; of codes any."""
_MOST_REPEATED = 0.01
"""A column is unique if at most this share of its rows repeats a value: true tables have a doubled row."""
_DENSE = 0.5
"""Integers that fill more of their range match by accident."""
_NAMES = 0.8
"""A column that is called as a table by so much refers to the table's code, whatever that is called."""
_FEWEST = 8
"""Columns of fewer values match by accident, unless both have the name."""
PERIODS = CALENDAR | {"period", "season", "fiscal"}
_MOMENTS = frozenset("date day time timestamp datetime hour".split())


def direct_keys(profiles: Sequence[TableProfile], parts: Components[str], known: Sequence[KeyPair]) -> list[KeyPair]:
    """Key pairs between tables of different parts, each table pair's surest with its roles.

    One side is unique, and either both columns have the name, or nearly all values of one side are found. Codes are
    likelier than names, and numbers that are not named alike.

    Args:
        profiles: the tables.
        parts: which tables are connected already.
        known: key pairs; two tables with one that is as likely need no other, and a column that refers to one of the
            tables refers to no other.
    """
    likely = {key.tables for key in known if key.score >= DIRECT_CHANCE}
    apart = [ends for ends in _apart(profiles, parts) if frozenset(one.id for one in ends) not in likely]
    inside = [key for key in known if key.score >= ACCEPTED and key.tables <= {one.id for one in profiles}]
    refers = {(key.left_table, key.left_columns) for key in inside}
    return [*chain.from_iterable(_direct(*ends, _NEARLY_ALL, refers) for ends in apart)]


def _direct(
    one: TableProfile, other: TableProfile, least: float, refers: Collection[tuple[str, tuple[str, ...]]] = ()
) -> list[KeyPair]:
    """The surest key between two tables, with those that are as likely to refer to the same column.

    Small numbers are found everywhere: of those that refer to half as many rows, none is as likely.
    """
    keys = [*_between(one, other, least), *_between(other, one, least)]
    keys = [key for key in keys if (key.left_table, key.left_columns) not in refers]
    if not keys:
        return []
    shares = {key: key.evidence.covered or 0.0 for key in keys}
    are_keys = {key: names.column_name(key.right_columns[0]).key_word for key in keys}
    best = max(keys, key=lambda key: (key.score, key.evidence.name, are_keys[key], shares[key]))
    as_many = [key for key in keys if key.evidence.families[0] == "text" or 2 * shares[key] >= shares[best]]
    return [key for key in as_many if (key.score, key.right) == (best.score, best.right)]


def natural_keys(profiles: Sequence[TableProfile], parts: Components[str]) -> list[KeyPair]:
    """The keys of all columns that say of what a row is, between tables of different parts: module and presentation.

    They have one name, or one is short for the other and their values are the same: ``orig_port`` and ``Origin Port``.
    Without any, half of the values of a text have to be found. Names alone come after codes of which nearly all are.
    """
    keys = []
    for ends in _apart(profiles, parts):
        natural = _natural_key(*ends)
        columns = () if natural is None else natural.left_columns
        is_sure = any(is_period(one) or names.column_name(one).key_word for one in columns)
        coded = [] if is_sure or not columns else [one for one in _repeated(*ends) if one.score == DIRECT_CHANCE]
        keys += coded or ([natural] if natural else _direct(*ends, _HALF) or _repeated(*ends))
    return keys


def _repeated(one: TableProfile, other: TableProfile) -> list[KeyPair]:
    """The keys of a column that repeats on both sides, with its roles: the part, and the child of parts.

    They tell which things two tables share, and no rows: what is joined by them counts different things only. A thing
    that has a row each day is joined as of the day. A text's values have to be found by half if it is called as the
    other, and nearly all else; of codes of one name any; numbers with gaps need a word of both and nearly all values.
    """
    found: dict[str, list[KeyPair]] = defaultdict(list)
    for left, right in ((one, other), (other, one)):
        for mine, theirs in product(left.columns, right.columns):
            least = _least_repeated(mine, theirs)
            shares = _shares(mine, theirs) if least <= 1 else (0.0, 0.0)
            if max(shares) < least or not max(shares) or _is_daily(mine, left) or _is_daily(theirs, right):
                continue
            reason = f"{shares[0]:.0%} of the values found, which repeat in both"
            evidence = Evidence("shared", contained=shares[0], covered=shares[1], reason=reason, name=1 - least)
            chance = DIRECT_CHANCE if mine.family == "integer" else _NAME_CHANCE
            key = KeyPair(left.id, (mine.name,), right.id, (theirs.name,), chance, evidence)
            found[key.right].append(key)

    def rank(keys: Sequence[KeyPair]) -> tuple[float, ...]:
        score, named = (max(each) for each in zip(*((key.score, key.evidence.name) for key in keys), strict=True))
        return score, named, len(keys), max(key.evidence.contained or 0.0 for key in keys)

    return max(found.values(), key=rank, default=[])


def _least_repeated(mine: ColumnProfile, theirs: ColumnProfile) -> float:
    """Which share of the values has to be found that two columns are one that repeats on both sides; above 1 if none is
    enough."""
    words, same = ({*names.words(column.name)} for column in (mine, theirs))
    is_of_few = min(mine.distinct or 0, theirs.distinct or 0) < _FEWEST
    if is_of_few or mine.family != theirs.family or mine.family not in ("integer", "text"):
        return 2.0
    if mine.family == "integer":
        runs = integer_run(mine), integer_run(theirs)
        are_gapped = all(run is not None and run.density < MAX_GAPPED_DENSITY for run in runs)
        return _NEARLY_ALL if are_gapped and (words & same) - names.GENERIC else 2.0
    if words == same and is_code(mine) and is_code(theirs):
        return 0.0
    words, same = (one - names.KEY_WORDS - {"name"} for one in (words, same))
    if same and same <= words and _says_which(mine.name):
        return _HALF
    return 2.0 if any(names.is_measure(column.name) for column in (mine, theirs)) else _NEARLY_ALL


def _is_daily(thing: ColumnProfile, table: TableProfile) -> bool:
    """Whether a table has one row of most things for most of its days, rather than several: it is no list of events."""
    most = [(thing.distinct or 0) * (column.distinct or 0) for column in table.columns if column.family == "date"]
    return any(_HALF * rows <= (table.rows or 0) <= rows for rows in most)


def _apart(profiles: Sequence[TableProfile], parts: Components[str]) -> list[tuple[TableProfile, TableProfile]]:
    """Each two tables of different parts and other columns."""
    return [
        (one, other)
        for one, other in combinations(profiles, 2)
        if one.shape != other.shape and parts.root(one.id) != parts.root(other.id)
    ]


def _between(table: TableProfile, target: TableProfile, least: float) -> Iterator[KeyPair]:
    """The keys to unique columns; ``least`` is the share of the values of a text without a common name."""
    for mine, theirs in product(table.columns, filter(_is_unique, target.columns)):
        if mine.family != theirs.family or mine.family not in ("integer", "text"):
            continue
        is_key = names.column_name(theirs.name).key_word
        means_table = is_key and (names.about(mine.name, target.name) >= _NAMES or _may_mean(mine, theirs))
        if is_dense(theirs) and not means_table:
            continue
        if mine.family == "integer" and (names.is_measure(mine.name) or names.is_measure(theirs.name)):
            continue  # an "area_name" is none
        shares = _shares(mine, theirs)
        if not max(shares):
            continue
        are_codes = is_code(mine) and is_code(theirs)
        is_of_thing = are_codes and bool(names.column_name(mine.name).entity)
        is_one_name = is_of_thing and mine.family == "text" and mine.name.casefold() == theirs.name.casefold()
        enough = 0.0 if is_one_name else min(_HALF, _FEWEST / (theirs.distinct or 1)) if is_of_thing else _HALF
        named = means_table or _are_named_alike(mine.name, theirs.name) or (are_codes and _is_the_code(mine, theirs))
        named = named and max(shares) >= enough
        # All of the unique side may be found on the other: countries with medals, those of athletes.
        is_text = mine.family == "text"
        are_long = is_text or (holds_long_numbers(mine) and holds_long_numbers(theirs))
        sides = [(shares[0], mine), (shares[1] * are_long, theirs)]
        if named or any(
            share >= (least if is_text else _NEARLY_ALL) and (side.distinct or 0) >= _FEWEST for share, side in sides
        ):
            reason = f"{shares[0]:.0%} of the values found, target unique" + ", named alike" * named
            evidence = Evidence(
                contained=shares[0], covered=shares[1], name=float(named), reason=reason, uniqueness=1.0,
                families=(mine.family, theirs.family),
            )  # fmt: skip
            chance = DIRECT_CHANCE if are_codes and (named or mine.family == "text") else _NAME_CHANCE
            yield KeyPair(table.id, (mine.name,), target.id, (theirs.name,), chance, evidence)


def _is_the_code(mine: ColumnProfile, theirs: ColumnProfile) -> bool:
    """Whether a text's name has the word for a code that the other one is called: ``CNPJ_EXIBIDOR`` and ``CNPJ``."""
    its = {*names.words(theirs.name)}
    return mine.family == "text" and its < {*names.words(mine.name)} and its.isdisjoint(names.GENERIC)


def _may_mean(reference: ColumnProfile, key: ColumnProfile) -> bool:
    """Whether an id of something else than a table is called after may be a key that is called "id" alone, as all of
    its values are: ``match_id`` of goals and the ``ID`` of ``results``."""
    mine, its = names.column_name(reference.name), names.column_name(key.name)
    is_named = bool(mine.entity and mine.key_word) and not its.entity
    found = overlap(reference.sketch, key.sketch)
    return is_named and repeats(reference) and found is not None and found.share == 1.0


def _shares(mine: ColumnProfile, theirs: ColumnProfile) -> tuple[float, float]:
    """The share of each column's values that the other has; 0 if unknown."""
    both = overlap(mine.sketch, theirs.sketch), overlap(theirs.sketch, mine.sketch)
    mine_found, theirs_found = (one.share if one is not None else 0.0 for one in both)
    return mine_found, theirs_found


def are_apart(key: KeyPair, tables: Mapping[str, TableProfile]) -> bool:
    """Whether the two columns of a key have no value in common, as far as their sketches show it."""
    found = overlap(*(tables[id].column(key.columns_of(id)[0]).sketch for id in (key.left_table, key.right_table)))
    return found is not None and found.seen > 0 and not found.share


def _natural_key(one: TableProfile, other: TableProfile) -> KeyPair | None:
    shared = [*_shared(one, other)]
    shared += _abbreviated(one, other, {column.name for pair in shared for column in pair})
    if not shared or (len(shared) == 1 and not is_period(shared[0][0].name)):
        return None
    mine, theirs = zip(*((column.name, same.name) for column, same in shared), strict=True)
    evidence = Evidence(origin="shared", reason="the columns that both tables have, which say of what a row is")
    return KeyPair(one.id, mine, other.id, theirs, DIRECT_CHANCE if len(mine) > 1 else _NAME_CHANCE, evidence)


def _abbreviated(
    one: TableProfile, other: TableProfile, taken: Collection[str]
) -> Iterator[tuple[ColumnProfile, ColumnProfile]]:
    """Columns of two tables of which one's values are among the other's, and whose names shorten each other."""
    lefts, rights = ([column for column in table.columns if column.name not in taken and column.family == "text"]
                     for table in (one, other))  # fmt: skip
    pairs = [
        (words, mine, theirs)
        for mine, theirs in product(lefts, rights)
        if (words := _common_words(mine.name, theirs.name))
        and all(map(_names_something, (mine.name, theirs.name)))
        and max(_shares(mine, theirs)) >= _NEARLY_ALL
    ]
    done: set[str] = set()
    for _, mine, theirs in sorted(pairs, key=lambda pair: -pair[0]):
        if not done & {mine.name, theirs.name}:
            done |= {mine.name, theirs.name}
            yield mine, theirs


def _names_something(column: str) -> bool:
    """Whether a text may say which row is meant: a level of service does, although levels are measures elsewhere."""
    return names.is_measure(column) or _says_which(column)


def _common_words(one: str, other: str) -> int:
    """How many words of two names are equal, or one is short for the other; key words do not count."""
    mine, theirs = ([word for word in names.words(name) if word not in names.KEY_WORDS] for name in (one, other))
    return sum(any(_are_one_word(word, same) for same in theirs) for word in mine)


def _are_one_word(one: str, other: str) -> bool:
    return names.bones(one) == names.bones(other) or names.is_short_for(one, other) or names.is_short_for(other, one)


def widened(key: KeyPair, tables: Mapping[str, TableProfile]) -> KeyPair:
    """A key of a column that repeats on both sides, with the columns by name that also say of what a row is.

    Columns of fewer values may describe the thing instead: a school's town, an order's channel. They are added only if
    they are periods, or codes of tables that refer to no third one: the code of a module, and that of its presentation.
    If one of them is unique on one side, it is the key alone.

    Args:
        key: any.
        tables: its tables, by id.
    """
    one, other = (tables.get(id) for id in (key.left_table, key.right_table))
    if one is None or other is None or key.signs or len(key.left_columns) > 1 or one.shape == other.shape:
        return key
    column, same = one.column(key.left_columns[0]), other.column(key.right_columns[0])
    if not (repeats(column) and repeats(same)):
        return key
    more = [
        (mine, theirs)
        for mine, theirs in _shared(one, other)
        if mine is not column
        and theirs is not same
        and (
            is_period(mine.name)
            or (mine.distinct or 0) > (column.distinct or 0)
            or (key.evidence.origin != "shared" and names.column_name(mine.name).key_word)
        )
    ]
    references = [pair for pair in more if any(map(_is_unique, pair))]
    columns = [max(references, key=lambda pair: all(map(is_code, pair)))] if references else [(column, same), *more]
    left, right = zip(*((mine.name, theirs.name) for mine, theirs in columns), strict=True)
    return replace(key, left_columns=left, right_columns=right)


def _shared(one: TableProfile, other: TableProfile) -> Iterator[tuple[ColumnProfile, ColumnProfile]]:
    """The columns of two tables with one name and largely the same values that say of what a row is."""
    theirs = {column.name.casefold(): column for column in other.columns}
    for column in one.columns:
        same = theirs.get(column.name.casefold())
        if same is None or column.family != same.family or column.family not in ("integer", "text", "date"):
            continue
        if max(column.null_share or 0.0, same.null_share or 0.0) > _HALF:
            continue  # hardly a row would find another
        if is_dense(column) and is_dense(same) and _is_unique(column) and _is_unique(same):
            continue  # each table numbers its own rows
        has_key_word = names.column_name(column.name).key_word
        may_count = column.family == "integer" and not has_key_word and not is_period(column.name)
        if not may_count and _says_which(column.name) and max(_shares(column, same)) >= _HALF:
            yield column, same


def is_kind(column: str) -> bool:
    """Whether the column's name is a kind that rows are grouped by: currency, region, year; not status, name, day.

    >>> [is_kind(name) for name in ("currency", "region", "year", "status", "name", "day")]
    [True, True, True, False, False, False]
    """
    words = {*names.column_name(column).words}
    return not (names.is_attribute(column) and not words <= PERIODS) and not words & _MOMENTS


def is_period(column: str) -> bool:
    """Whether the column's name is only a word for a time, such as year or season."""
    return {*names.column_name(column).words} <= PERIODS


def _says_which(column: str) -> bool:
    is_audit = names.is_saved_index(column) or not names.AUDIT.isdisjoint(names.column_name(column).words)
    return is_kind(column) and not is_audit


def repeats(column: ColumnProfile) -> bool:
    """Whether more values of a column repeat than a doubled row explains; also False if that is unknown."""
    share = uniqueness(column)
    return share is not None and share < 1 - _MOST_REPEATED


def _is_unique(column: ColumnProfile) -> bool:
    return uniqueness(column) is not None and not repeats(column)


def is_dense(column: ColumnProfile) -> bool:
    """Whether integers fill so much of their range that others match them by accident."""
    run = integer_run(column)
    return run is not None and run.density > _DENSE


def _are_named_alike(one: str, other: str) -> bool:
    """Whether two columns have the same name, or share the word that says what they identify; "id" says nothing."""
    mine, theirs = names.column_name(one), names.column_name(other)
    if not mine.entity and mine.key_word:
        return False
    return one.casefold() == other.casefold() or (bool(mine.entity) and mine.entity == theirs.entity)
