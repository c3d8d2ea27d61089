"""A join plan: in which order tables are joined, and on which columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tagframe.corpus.references import Column, NamedTable, find_table
from tagframe.display import Public
from tagframe.errors import ColumnNotFound, InvalidArgument, TableNotFound, did_you_mean
from tagframe.joins.aggregates import Aggregate, aggregated
from tagframe.joins.key_text import key_of
from tagframe.joins.steps import How, JoinStep, Order, PlanTable, steps_from, table_order
from tagframe.keys.column_names import column_name
from tagframe.keys.components import Components
from tagframe.keys.key_pair import KeyPair


@dataclass(frozen=True)
class JoinPlan(Public):
    """A spanning tree of join steps, in the order in which they are made.

    Attributes:
        start: the table whose rows the plan starts from: the anchor, or the table of the finest grain.
        steps: one fewer than the tables.
        sources: the facts about each table, in the order of the plan.
        score: the confidence in the whole plan, in [0, 1]: the mean of its steps' scores, 1 for a single table.
        alternatives: other plans over the same tables that join on other columns, best first; these have no
            alternatives themselves.
        ambiguous: the alternatives that are equally likely. The data do not say which is meant: a table has two
            references to another, or there are two ways to it.
        is_anchored: whether the user chose the start table, so that the result has its rows.
        left_out: ids of tables that are probably not needed, and would only repeat or lose rows of the others, or are
            not connected with them.
        unconnected: those of ``left_out`` that no key connects with the others.
        absent: ids of the tables in which the wanted rows have no partner (:meth:`lacking`); none of their columns are
            in the result.
    """

    start: str
    steps: tuple[JoinStep, ...]
    sources: tuple[PlanTable, ...]
    score: float = 1.0
    alternatives: tuple[JoinPlan, ...] = field(default=(), compare=False, repr=False)
    ambiguous: tuple[JoinPlan, ...] = field(default=(), compare=False, repr=False)
    is_anchored: bool = field(default=False, compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)
    unconnected: tuple[str, ...] = field(default=(), compare=False)
    absent: tuple[str, ...] = ()

    @classmethod
    def along(
        cls, keys: Sequence[KeyPair], sources: Mapping[str, PlanTable], order: Order, start: str
    ) -> tuple[Any, JoinPlan]:
        """The plan along a tree of keys from a start, and the sort key of such plans."""
        steps = steps_from(start, keys, sources, order)
        backwards = sum(step.base == step.key.right_table for step in steps)
        score = sum(step.score for step in steps) / len(steps) if steps else 1.0
        tables = [start, *(step.table for step in steps)]
        plan = cls(start, tuple(steps), tuple(sources[table] for table in tables), score)
        growing = sum(step.grows for step in steps)
        return (growing, backwards, sources[start].bridge, -(sources[start].rows or 0), order[start]), plan

    @property
    def tables(self) -> tuple[str, ...]:
        """Ids of the tables, in the order in which they are joined."""
        return (self.start, *(step.table for step in self.steps))

    def why_left_out(self, table: str) -> str:
        """Why a table of :attr:`left_out` is left out, as the end of a sentence."""
        reason = "no sure key connects it" if table in self.unconnected else "it would only repeat or lose rows"
        return f"may not be needed, and {reason}"

    @property
    def sentence_of_absence(self) -> str:
        """Which rows have no partner in the :attr:`absent` tables, as the beginning of a sentence; "" if none are."""
        if not self.absent:
            return ""
        rest = [table for table in self.tables if table not in self.absent]
        return f"rows of {' and '.join(rest)} without a row in {' and '.join(self.absent)}"

    @property
    def bridges(self) -> tuple[str, ...]:
        """Ids of the tables that are there only to connect the others."""
        return tuple(source.id for source in self.sources if source.bridge)

    def source(self, table: str) -> PlanTable:
        """The plan's facts about a table, by its id, or by its name if that is unique.

        Raises:
            TableNotFound: the plan has no such table, or two of that name.
        """
        return self.by_id[find_table(table, self.named).id]

    def name_of(self, table: str) -> str:
        """The shortest name of a table, given by id, that means no other: its own or that of its role, else the id."""
        name = self.by_id[table].called
        return name if [source.called.casefold() for source in self.sources].count(name.casefold()) == 1 else table

    @property
    def by_id(self) -> dict[str, PlanTable]:
        """The plan's facts about each table, by its id."""
        return {source.id: source for source in self.sources}

    @property
    def named(self) -> list[NamedTable]:
        """The tables with the names that a text may use for them."""
        found = []
        for source in self.sources:
            parts = tuple(name for part in source.parts for name in (part.id, part.name))
            table = NamedTable(source.table, source.name, source.columns, parts)
            found.append(table.as_role(source.role) if source.role else table)
        return found

    def classes(self) -> list[frozenset[Column]]:
        """The sets of (table, column) that the plan makes equal."""
        sets: list[set[Column]] = []
        for step in self.steps:
            for mine, theirs in step.equal_columns:
                pair = {(step.base, mine), (step.table, theirs)}
                touching = [group for group in sets if group & pair]
                sets = [group for group in sets if not group & pair]
                sets.append(pair.union(*touching))
        return [frozenset(group) for group in sets]

    def column_names(self) -> dict[Column, str]:
        """The name in the merged frame of each (table id, column).

        Columns that the plan makes equal share one name: that of the table that is joined first. Only a title or the
        like stays beside it if a third table has its name, and would be taken for it: the name of a mountain, where
        countries have names. A name stays as it is if only one column has it, and otherwise becomes ``table.column``.
        Columns of a table in a role are always called ``role.column``.
        """
        by_id = self.by_id
        stands_for: dict[Column, Column] = {}
        for step in self.steps:
            for mine, theirs in step.equal_columns:
                stands_for.setdefault((step.table, theirs), stands_for.get((step.base, mine), (step.base, mine)))
        order = [(table, column) for table in self.tables for column in by_id[table].columns]
        others = {column for table, column in order if (table, column) not in stands_for}
        for key in [key for key, first in stands_for.items() if first[1] != key[1] in others]:
            name = column_name(key[1])
            if name.generic and name.entity and not by_id[key[0]].role:
                del stands_for[key]
        own = [key for key in order if key not in stands_for]
        tables = Counter(source.called for source in self.sources)
        seen = Counter(column for _, column in own)
        names: dict[Column, str] = {}
        for table, column in own:
            source = by_id[table]
            owner = (
                source.called if tables[source.called] == 1 and f"{source.called}.{column}" not in seen else source.id
            )
            names[table, column] = column if seen[column] == 1 and not source.role else f"{owner}.{column}"
        for key in order:
            if key in stands_for:
                names[key] = names[stands_for[key]]
        return names

    def named_columns(self, columns: Sequence[str] | None) -> dict[str, Column]:
        """By name in the merged frame: the column, of the table that is joined first; None for all columns.

        Raises:
            ColumnNotFound: as :meth:`find_column`.
        """
        names = self.column_names()
        first: dict[str, Column] = {}
        for key, name in names.items():
            first.setdefault(name, key)
        if columns is None:
            return first
        wanted = [names[self.find_column(column)] for column in columns]
        return {name: first[name] for name in wanted}

    def find_column(self, name: str) -> Column:
        """The (table id, column) that a name means: of the merged frame, or ``[[database.]table.]column``.

        Raises:
            ColumnNotFound: no such column, or several that the plan does not make equal.
        """
        names = self.column_names()
        for key, merged in names.items():
            if merged == name:
                return key
        found: list[Column] = []
        for own in (False, True):  # the own name of a table with roles means all of them, if it is not there by itself
            for source in self.sources:
                tables = (source.name, source.table) if own else (source.called, source.id)
                for column in source.columns:
                    if name in (column, *(f"{table}.{column}" for table in tables)):
                        found.append((source.id, column))
            if found:
                break
        if len({names[key] for key in found}) == 1:
            return found[0]
        if found:
            where = ", ".join(repr(names[key]) for key in found)
            raise ColumnNotFound(f"column {name!r} is in more than one table: write one of {where}")
        if "." in name:
            known = [f"{source.called}.{column}" for source in self.sources for column in source.columns]
        else:
            known = [column for source in self.sources for column in source.columns]
        known += names.values()
        raise ColumnNotFound(f"no column {name!r} in the plan's tables: {did_you_mean(name, dict.fromkeys(known))}")

    def sql(
        self,
        *,
        columns: Sequence[str] | None = None,
        how: How = "inner",
        limit: int | None = None,
        dialect: str = "sqlite",
    ) -> str:
        """The plan as one SQL statement, with the column names of the merged frame.

        Args:
            columns: the columns to select, as in :func:`~tagframe.merging.run_plan`; None for all.
            how: the kind of every join.
            limit: the largest number of rows.
            dialect: the SQL dialect, by sqlglot's name: ``"sqlite"``, ``"postgres"``, ``"duckdb"``, ``"mysql"``, ….

        If the tables are in several engines, no engine can run the statement.

        Raises:
            InvalidArgument: sqlglot does not know the dialect, or the dialect cannot express the plan: MySQL has no
                full outer join of more than two tables.
        """
        from tagframe.joins.statement import statement_text

        return statement_text(self, columns, how, limit, dialect)

    def use(self, key: str | KeyPair) -> JoinPlan:
        """A new plan in which two tables are joined on other columns.

        Args:
            key: ``"a.x = b.y"``, with or without the database; several columns are joined by ``and``. It replaces the
                step between the two tables or, if other tables are between them, the least likely step between them.

        Raises:
            InvalidArgument: another form, or both sides in one table.
            TableNotFound, ColumnNotFound: the plan has no such table or column.
        """
        new = key if isinstance(key, KeyPair) else key_of(key, self.named)
        if missing := new.tables - self.by_id.keys():
            raise TableNotFound(f"the plan does not join {' and '.join(sorted(missing))}: pass all keys as on=")
        keys = [step.key for step in self.steps]

        def joins_without(old: KeyPair) -> bool:
            parts = Components(self.tables)
            return all(parts.join(one.left_table, one.right_table) for one in [new, *keys] if one is not old)

        ranked = sorted(keys, key=lambda known: (known.tables != new.tables, known.score, known.left, known.right))
        old = next(filter(joins_without, ranked))
        plan = self._on([new if known is old else known for known in keys], self.start)
        plan = replace(plan, is_anchored=self.is_anchored, left_out=self.left_out, unconnected=self.unconnected)
        return plan.lacking(*self.absent) if self.absent else plan

    def aggregated(self, aggregate: Aggregate) -> JoinPlan:
        """A new plan over tables with one row for each value of their key, so that they repeat no rows.

        Args:
            aggregate: table → column → "sum", "mean", "min", "max", "count" or "nunique". Other columns of the table
                are not in the result.

        Raises:
            InvalidArgument: an unknown function, a table that is joined by several keys, the start table of the merge,
                or all tables.
            TableNotFound, ColumnNotFound: the plan has no such table or column.
        """
        return aggregated(self, aggregate)

    def lacking(self, *tables: str) -> JoinPlan:
        """A new plan for the rows that have no partner in some of the tables: the customers without an order.

        Bridges that connect only these tables belong to them.

        Args:
            tables: ids or names.

        Raises:
            InvalidArgument: no other table is left, or only these tables connect the others; or the merge starts from
                one of them.
            TableNotFound: the plan has no such table.
        """
        gone = {self.source(table).id for table in tables}
        if self.is_anchored and self.start in gone:
            raise InvalidArgument(f"the merge starts from {self.start}, so it cannot give rows without one of its rows")
        present = [table for table in self.tables if table not in gone and table not in self.bridges]
        if not gone or not present:
            raise InvalidArgument(
                f"rows that lack {' and '.join(tables) or 'nothing'} need another table to be rows of"
            )
        starts = [self.start] if self.start in present else present
        plans = [self.restarted(start) for start in starts]
        plan = min(plans, key=lambda one: sum(step.grows for step in one.steps if step.table not in gone))
        absent = plan._beyond(gone)
        if lone := [table for table in present if table in absent]:
            raise InvalidArgument(f"only {' and '.join(sorted(gone))} connects {' and '.join(lone)} with the others")
        first = sorted(plan.steps, key=lambda step: step.table in absent)
        return replace(
            self, start=plan.start, steps=tuple(first), absent=tuple(s.table for s in first if s.table in absent),
            sources=tuple(self.by_id[table] for table in [plan.start, *(step.table for step in first)]),
        )  # fmt: skip

    def _beyond(self, gone: set[str]) -> set[str]:
        """Some tables, with those that only they connect to the start, and bridges that lead only to them."""
        absent = {*gone}
        for step in self.steps:
            if step.base in absent:
                absent.add(step.table)
        for step in reversed(self.steps):
            below = [other.table for other in self.steps if other.base == step.table]
            if step.table in self.bridges and below and absent.issuperset(below):
                absent.add(step.table)
        return absent

    def restarted(self, table: str) -> JoinPlan:
        """The plan on the same keys that starts from another of its tables, given by id."""
        return self._on([step.key for step in self.steps], table)

    def _on(self, keys: Sequence[KeyPair], start: str) -> JoinPlan:
        return JoinPlan.along(keys, self.by_id, table_order(self.sources), start)[1]

    def with_sources(self, change: Callable[[PlanTable], PlanTable]) -> JoinPlan:
        """The plan and its alternatives, with ``change`` applied to each of their tables."""
        alternatives, ambiguous = (
            [plan.with_sources(change) for plan in ways] for ways in (self.alternatives, self.ambiguous)
        )
        return replace(
            self, sources=tuple(map(change, self.sources)), alternatives=tuple(alternatives), ambiguous=tuple(ambiguous)
        )

    def __str__(self) -> str:
        from tagframe.display import fitted, join_tree

        return fitted(join_tree(self))

    def _repr_html_(self) -> str:
        from tagframe.display import plan_html

        return plan_html(self)

    def __repr__(self) -> str:
        from tagframe.display import plan_text

        return plan_text(self)
