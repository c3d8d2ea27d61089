"""Tables with the same columns as one table of a plan: ``sales_2023`` and ``sales_2024`` are joined as ``sales``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.references import without_role
from tagframe.keys.key_columns import uniqueness
from tagframe.keys.key_pair import KeyPair
from tagframe.keys.unions import infer_unions

ORIGIN = "source_table"
"""The column of a stack with the id of each row's table."""
FOLDER = "source_folder"
"""The same for tables of one name: their folders, workbooks or databases, such as ``2023`` and ``2024``."""
_MAX_NAMED_DATABASES = 4
"""The id of a stack has the names of up to so many databases."""


@dataclass(frozen=True)
class Stack:
    """Tables with the same columns as one table.

    Attributes:
        profile: of the stack. Its name is the common part of its tables' names; its columns are named as in the first.
        parts: the tables, in the order of their names.
        origin: the last column, which says which part a row is from.
    """

    profile: TableProfile
    parts: tuple[TableProfile, ...]
    origin: str

    def renamed(self, key: KeyPair) -> KeyPair:
        """The key pair with the stack in place of its parts."""
        columns = {column.name.casefold(): column.name for column in self.profile.columns}
        ids = {part.id for part in self.parts}
        for side in ("left", "right"):
            end = getattr(key, f"{side}_table")
            table = without_role(end, ids)
            if table in ids:
                spelt = tuple(columns[name.casefold()] for name in getattr(key, f"{side}_columns"))
                side_of_stack = {f"{side}_table": self.profile.id + end.removeprefix(table), f"{side}_columns": spelt}
                key = replace(key, **side_of_stack)
        return key

    def is_split_as(self, other: Stack) -> bool:
        """Whether both have a table in each of the same folders, so that rows belong together folder by folder."""
        mine, theirs = ([part.database for part in stack.parts] for stack in (self, other))
        return self.origin.startswith(FOLDER) and sorted(mine) == sorted(theirs)


def stacks_of(
    profiles: Sequence[TableProfile],
    keys: Sequence[KeyPair],
    around: Sequence[TableProfile] = (),
    doubtful: Collection[str] = (),
) -> list[Stack]:
    """The stacks of tables with the same columns whose names differ in a number or a date, unless a key joins them.

    Of ``around``, the other tables, those of the same name show whether it says what a table is about. Tables that are
    not ``doubtful`` may be called otherwise, if they number their rows apart.
    """
    by_id = {profile.id: profile for profile in profiles}
    taken, found = set(by_id), []
    joined = {key.tables for key in keys}
    # Tables that are joined count as one schema, wherever each of them is.
    one_schema = [profile if profile.place else replace(profile, database="") for profile in profiles]
    for group in infer_unions(one_schema, by_date=True, named=[*profiles, *around], doubtful=doubtful):
        if any(ends <= set(group.tables) for ends in joined):
            continue
        parts = tuple(sorted((by_id[table] for table in group.tables), key=lambda part: (part.name, part.id)))
        database, name = parts[0].database, _shared_name([part.name for part in parts])
        is_of_folders = len({part.name.casefold() for part in parts}) == 1
        if is_of_folders:
            database = "+".join(part.database for part in parts) if len(parts) <= _MAX_NAMED_DATABASES else "*"
        if not name or f"{database}.{name}" in taken:
            name = "+".join(part.name for part in parts)
        origin = FOLDER if is_of_folders else ORIGIN
        while origin in map(str.casefold, group.columns):
            origin += "_"
        columns = [_stacked_column([_called(part, column) for part in parts]) for column in parts[0].columns]
        rows = _sum(part.rows for part in parts)
        columns.append(ColumnProfile(origin, len(columns), "text", "", rows, 0, len(parts)))
        found.append(Stack(TableProfile(f"{database}.{name}", database, name, tuple(columns), rows), parts, origin))
        taken.add(f"{database}.{name}")
    return found


def renamed_keys(keys: Iterable[KeyPair], stacks: Sequence[Stack]) -> dict[KeyPair, KeyPair]:
    """From each key pair to the same pair with stacks in place of their parts, without pairs within a stack.

    If the ids of two stacks count from 1 in each folder, the folder is part of the key.
    """
    found = {}
    by_id = {stack.profile.id: stack for stack in stacks}
    for key in keys:
        new = key
        for stack in stacks:
            new = stack.renamed(new)
        left, right = by_id.get(new.left_table), by_id.get(new.right_table)
        if left is not None and right is not None and left.is_split_as(right) and not _tells_all(right, new):
            new = replace(
                new,
                left_columns=(*new.left_columns, left.origin),
                right_columns=(*new.right_columns, right.origin),
                signs=(*new.signs, "=") if new.signs else (),
            )
        if new.left_table != new.right_table or new == key:
            found[key] = new
    return found


def _tells_all(stack: Stack, key: KeyPair) -> bool:
    """Whether the referenced column has each value once in the whole stack."""
    if len(key.right_columns) > 1:
        return False
    return uniqueness(stack.profile.column(key.right_columns[0])) == 1.0


def best_of(keys: Iterable[KeyPair]) -> list[KeyPair]:
    """Each key pair once, the surest of equal ones."""
    best: dict[KeyPair, KeyPair] = {}
    for key in keys:
        if key not in best or best[key].score < key.score:
            best[key] = key
    return list(best.values())


def renamed_hints(hints: Mapping[KeyPair, float], renamed: Mapping[KeyPair, KeyPair]) -> dict[KeyPair, float]:
    """The hints for the renamed key pairs, the highest of equal ones."""
    found: dict[KeyPair, float] = {}
    for key, hint in hints.items():
        new = renamed.get(key, key)
        found[new] = max(hint, found.get(new, hint))
    return found


def _called(table: TableProfile, column: ColumnProfile) -> ColumnProfile:
    return next(other for other in table.columns if other.name.casefold() == column.name.casefold())


def _shared_name(table_names: Sequence[str]) -> str:
    """The words that all names have, in the order and spelling of the first."""
    words = [re.findall(r"[^\W\d_]+|\d+", name) for name in table_names]
    others = [{word.casefold() for word in each} for each in words[1:]]
    return "_".join(word for word in words[0] if all(word.casefold() in other for other in others))


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Their sum if all are known, else None."""
    known = [*numbers]
    return None if None in known else sum(number or 0 for number in known)


def _stacked_column(parts: Sequence[ColumnProfile]) -> ColumnProfile:
    """The profile of a stack's column. If a part's sketch is not complete, the distinct values are an estimate."""
    rows, nulls = _sum(part.rows for part in parts), _sum(part.nulls for part in parts)
    families = {part.family for part in parts} - {"empty"}
    family = families.pop() if len(families) == 1 else "text" if "text" in families else "real" if families else "empty"
    first = ColumnProfile(parts[0].name, parts[0].position, family, parts[0].declared_type, rows, nulls)
    first = replace(first, private=any(part.private for part in parts))
    sketches = [part.sketch for part in parts if part.sketch is not None and not part.sketch.sampled]
    if len(sketches) < len(parts):
        return first
    # Below the end of the shortest sketch, the sketches of all parts have all values.
    end = min((one.hashes[-1] for one in sketches if not one.complete), default=np.uint64(np.iinfo(np.uint64).max))
    hashes = np.concatenate([one.hashes[one.hashes <= end] for one in sketches])
    every = np.unique(hashes)
    is_whole, distinct = all(one.complete for one in sketches), _sum(part.distinct for part in parts)
    distinct = len(every) if is_whole else distinct and round(distinct * len(every) / len(hashes))
    low, high = ([one for part in parts if (one := getattr(part, end))] for end in ("minimum", "maximum"))
    ends = (min(low, key=float), max(high, key=float)) if family == "integer" and low and high else (None, None)
    return replace(
        first, distinct=distinct, minimum=ends[0], maximum=ends[1], samples=parts[0].samples,
        sketch=Sketch(every, is_whole),
    )  # fmt: skip
