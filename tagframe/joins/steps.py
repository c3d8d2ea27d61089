"""The steps of a plan, and the order in which a tree of key pairs is walked from its start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import in_role
from tagframe.keys.column_names import table_entity
from tagframe.keys.key_pair import KeyPair, Sign, column_id

Cardinality = Literal["many-to-one", "one-to-one", "one-to-many", "many-to-many"]
How = Literal["inner", "left", "right", "outer"]
MergeHow = Literal["inner", "left", "right", "outer", "anti"]
"""The kind of a merge: "anti" is for the rows of some tables that have no partner in the others."""


@dataclass(frozen=True)
class PlanTable:
    """The facts about a table that a plan needs.

    Attributes:
        id: ``database.table``.
        database, name: as in the source.
        columns: all of them, in order.
        rows: None if unknown.
        unique: columns in which no value repeats.
        bridge: whether it was added only to connect the others.
        parts: the tables of a stack; empty for a single table.
        origin: the column of a stack that says which part a row is from.
        aggregates: (column, function) for a table with one row per key (:mod:`tagframe.joins.aggregates`); ``columns``
            then has only the keys and these.
        distinct: whether rows that are exact copies of others count once.
        role: the role in which the table is joined ("buyer"), or ""; its ``id`` is then ``database.table as role``.
        schema: the schema that a statement has to name; "" if it finds the table without.
        numbers: columns of numbers.
    """

    id: str
    database: str
    name: str
    columns: tuple[str, ...]
    rows: int | None = None
    unique: tuple[str, ...] = ()
    bridge: bool = False
    parts: tuple[PlanTable, ...] = ()
    origin: str = ""
    aggregates: tuple[tuple[str, str], ...] = ()
    distinct: bool = False
    role: str = ""
    schema: str = ""
    numbers: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The id of the table whose rows these are, whatever its role."""
        return self.id.removesuffix(in_role("", self.role)) if self.role else self.id

    @property
    def called(self) -> str:
        """Its name in a statement, and before the names of its columns."""
        return self.role or self.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of a table with one row per key."""
        made = dict(self.aggregates)
        return tuple(column for column in self.columns if column not in made)

    @property
    def origins(self) -> tuple[str, ...]:
        """The cell of ``origin`` for each part: its id; for tables of one name, its database."""
        of_one_name = len({part.name.casefold() for part in self.parts}) == 1
        return tuple(part.database if of_one_name else part.id for part in self.parts)


@dataclass(frozen=True)
class JoinStep:
    """One table joined to those before it.

    Attributes:
        table, columns: the new table of the step, and its key columns.
        base, base_columns: the table that it is joined to, and the key columns there.
        cardinality: from ``base`` to ``table``; a "many-to-one" step repeats no row.
        key: the key pair of the step, in either direction.
    """

    table: str
    columns: tuple[str, ...]
    base: str
    base_columns: tuple[str, ...]
    cardinality: Cardinality
    key: KeyPair

    @property
    def left(self) -> str:
        """``database.table.column`` on the side joined before."""
        return column_id(self.base, self.base_columns)

    @property
    def right(self) -> str:
        """``database.table.column`` on the side of the new table."""
        return column_id(self.table, self.columns)

    @property
    def score(self) -> float:
        """How sure the key is, in [0, 1]."""
        return self.key.score

    @property
    def grows(self) -> bool:
        """Whether it may repeat the rows joined before."""
        return self.cardinality in ("one-to-many", "many-to-many")

    @property
    def comparisons(self) -> list[tuple[str, Sign, str]]:
        """Each column of ``base``, how it is compared, and the column of ``table``; see :attr:`KeyPair.signs`."""
        return self.oriented.comparisons

    @property
    def oriented(self) -> KeyPair:
        """The key, ``base`` on its left."""
        return self.key if self.key.left_table == self.base else self.key.reversed()

    @property
    def equal_columns(self) -> list[tuple[str, str]]:
        """Those of the columns that the step makes equal."""
        if not self.key.signs:
            return [*zip(self.base_columns, self.columns, strict=True)]
        return [(mine, theirs) for mine, sign, theirs in self.comparisons if sign == "="]

    def __str__(self) -> str:
        if not self.key.signs:
            return f"{self.left} = {self.right}"
        parts = [
            f"{column_id(self.base, (mine,))} {sign} {column_id(self.table, (theirs,))}"
            for mine, sign, theirs in self.comparisons
        ]
        return " and ".join(parts)


Order = Mapping[str, Any]
"""By table id: a sort key for ties between tables, made from the words of their names without a schema's prefix."""


def table_order(tables: Iterable[TableProfile | PlanTable]) -> Order:
    """The sort key of each table for ties."""
    return {table.id: (table_entity(table.name), table.id) for table in tables}


def _side_is_one(source: PlanTable, columns: tuple[str, ...], key: KeyPair) -> bool:
    if key.signs:
        return False  # a row may be the nearest one of many rows
    if source.aggregates or any(column in source.unique for column in columns):
        return True
    referenced = (key.right_table, key.right_columns) == (source.id, columns)
    unknown = not source.rows or len(columns) > 1
    return referenced and unknown and key.evidence.origin != "shared"


def _cardinality(base_is_one: bool, table_is_one: bool) -> Cardinality:
    if table_is_one:
        return "one-to-one" if base_is_one else "many-to-one"
    return "one-to-many" if base_is_one else "many-to-many"


def steps_from(start: str, keys: Sequence[KeyPair], sources: Mapping[str, PlanTable], order: Order) -> list[JoinStep]:
    """The steps from ``start``: first those that multiply no rows, then the surest."""
    steps: list[JoinStep] = []
    joined, left = {start}, list(keys)
    while left:
        options = []
        for key in left:
            if (key.left_table in joined) == (key.right_table in joined):
                continue
            forward = key.left_table in joined
            base, base_columns = (key.left_table, key.left_columns) if forward else (key.right_table, key.right_columns)
            table, columns = (key.right_table, key.right_columns) if forward else (key.left_table, key.left_columns)
            one = bool(key.signs) or _side_is_one(sources[table], columns, key)
            cardinality = _cardinality(_side_is_one(sources[base], base_columns, key), one)
            step = JoinStep(table, columns, base, base_columns, cardinality, key)
            options.append(((not one, -key.score, order[table], columns, order[base], base_columns), step))
        _, step = min(options, key=lambda option: option[0])
        steps.append(_from_start(step, start, steps, sources))
        joined.add(step.table)
        left.remove(step.key)
    return steps


def _from_start(step: JoinStep, start: str, before: Sequence[JoinStep], sources: Mapping[str, PlanTable]) -> JoinStep:
    """The step, taken from the start table's own column if an earlier step made it equal to the base's column.

    So a row finds its partner even if a table in between has no row for it, as with successive pandas merges.
    """
    by_step = {earlier.table: earlier for earlier in before}
    base, columns = step.base, step.base_columns
    while base != start and (there := by_step[base]).columns == columns and not {*there.key.signs, *step.key.signs}:
        base, columns = there.base, there.base_columns
    if base != start or step.base == start:
        return step
    base_is_one = any(column in sources[start].unique for column in columns)
    return replace(step, base=base, base_columns=columns, cardinality=_cardinality(base_is_one, not step.grows))
