"""A join plan as SQL: the one builder of joins, for :meth:`JoinPlan.sql` and for engines that run merges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sqlglot import Dialect, ErrorLevel, UnsupportedError, exp
from sqlglot.dialects import MySQL

from tagframe.corpus.references import Column
from tagframe.errors import InvalidArgument
from tagframe.joins.steps import How, JoinStep, PlanTable

if TYPE_CHECKING:
    from tagframe.joins.plan import JoinPlan

JOINS = {"inner": "", "left": "left", "right": "right", "outer": "full outer"}
_COMPARISONS: Mapping[str, type[exp.Binary]] = {"<=": exp.LTE, ">=": exp.GTE, "<": exp.LT, ">": exp.GT}


def statement_text(
    plan: JoinPlan,
    columns: Sequence[str] | None,
    how: How,
    limit: int | None,
    dialect: str,
) -> str:
    """The result of :meth:`~tagframe.joins.plan.JoinPlan.sql`."""
    joined = Joined(plan, how, _NamedTables(plan))
    query = joined.select([joined.named(key, name) for name, key in plan.named_columns(columns).items()], plan.steps)
    return rendered(query if limit is None else query.limit(limit, copy=False), dialect)


def rendered(query: exp.Expr, dialect: str) -> str:
    """The statement as text; raises as :meth:`~tagframe.joins.plan.JoinPlan.sql`."""
    try:
        spoken = Dialect.get_or_raise(dialect)
    except ValueError as error:
        raise InvalidArgument(f"no SQL dialect {dialect!r}: {error}") from error
    joins = query.args.get("joins") or []
    if isinstance(spoken, MySQL) and len(joins) > 1 and any(join.side == "FULL" for join in joins):
        raise InvalidArgument(f"{dialect} has no full outer join, and more than one cannot be replaced: try how='left'")
    try:
        return query.sql(dialect=spoken, pretty=True, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise InvalidArgument(f"{dialect} cannot express this plan: {error}") from error


def one_row_a_key(
    source: PlanTable, table: exp.Expr, made: Callable[[str, str], exp.Expr], key: Callable[[str], exp.Expr]
) -> exp.Select:
    """A query over a table that gives one row per key, with aggregates of its other columns.

    Args:
        source: the table, with its aggregates.
        table: the expression in FROM.
        made: gives the expression of an aggregate from a column and a function.
        key: gives the expression of a key column, as keys are compared.
    """
    selected = [exp.alias_(key(column), column, quoted=True) for column in source.keys]
    selected += [exp.alias_(made(column, function), column, quoted=True) for column, function in source.aggregates]
    query = exp.select(*selected).from_(table).where(*(key(column).is_(exp.null()).not_() for column in source.keys))
    return query.group_by(*map(key, source.keys))


def made_of(value: exp.Expr, function: str) -> exp.Expr:
    """The expression that aggregates the cells of a key with a function."""
    match function:
        case "first":
            raise InvalidArgument(
                "SQL has no first row of a table: merge the tables instead of aggregate= with 'first'"
            )
        case "sum":
            return exp.Coalesce(this=exp.Sum(this=value), expressions=[exp.Literal.number(0)])
        case "nunique":
            return exp.Count(this=exp.Distinct(expressions=[value]))
    return {"mean": exp.Avg, "min": exp.Min, "max": exp.Max, "count": exp.Count}[function](this=value)


class Tables(Protocol):
    """The tables of a plan, as a statement refers to them."""

    def item(self, table: str) -> exp.Expr:
        """A table in FROM or JOIN, under its alias."""

    def alias(self, table: str) -> str:
        """The table's alias in the statement."""

    def join_type(self, how: How) -> str:
        """The kind of join, by sqlglot's name."""

    def key(self, table: str, column: str) -> exp.Expr:
        """A column in the form in which keys are compared."""


class Joined:
    """The joined rows of a plan.

    Args:
        plan: how the tables are joined.
        how: the kind of every join.
        tables: as the statement refers to them.
    """

    def __init__(self, plan: JoinPlan, how: How, tables: Tables) -> None:
        self.plan, self.how, self.tables = plan, how, tables
        self.names = plan.column_names()
        self._sharing: dict[str, list[Column]] = defaultdict(list)
        for key, name in self.names.items():
            self._sharing[name].append(key)

    def column(self, table: str, column: str) -> exp.Column:
        """A column of a table."""
        return exp.column(_name(column), table=_name(self.tables.alias(table)))

    def value(self, key: Column, made: Callable[[str, str], exp.Expr] | None = None) -> exp.Expr:
        """A column of the joined rows; in a right or outer join, the first value of its equal columns.

        ``made`` gives the expression of a column; None for the column itself.
        """
        made = made or self.column
        same = self._sharing[self.names[key]] if self.how in ("right", "outer") else ()
        equal, own = [made(*one) for one in same if one != key], made(*key)
        return exp.Coalesce(this=own, expressions=equal) if equal else own

    def named(self, key: Column, name: str) -> exp.Expr:
        """A column of the joined rows under its name there."""
        column = self.value(key)
        is_named = isinstance(column, exp.Column) and name == key[1]
        return column if is_named else exp.alias_(column, name, quoted=True, copy=False)

    def equal(self, step: JoinStep) -> exp.Expr:
        """The condition that the keys of a step are equal."""
        pairs = [
            self.tables.key(step.base, mine).eq(self.tables.key(step.table, theirs))
            for mine, theirs in step.equal_columns
        ]
        return exp.and_(*pairs, *(self._interval(step) if step.key.signs else ()), copy=False)

    def _interval(self, step: JoinStep) -> Iterator[exp.Expr]:
        """The condition that a moment is within an interval; a missing end is open."""
        others = [one for one in step.comparisons if one[1] != "="]
        if len(others) < 2:
            raise InvalidArgument(f"the SQL of a plan cannot find the nearest row of {step}: merge the tables instead")
        is_base = others[0][0] == others[1][0]
        for mine, sign, theirs in others:
            sides = self.column(step.base, mine), self.column(step.table, theirs)
            yield exp.or_(_COMPARISONS[sign](this=sides[0], expression=sides[1]), sides[is_base].is_(exp.null()))

    def select(
        self,
        selected: Sequence[exp.Expr],
        steps: Sequence[JoinStep],
        *,
        start: exp.Expr | None = None,
        join_type: str | None = None,
    ) -> exp.Select:
        """A query over the joined rows.

        Args:
            selected: the expressions that it selects.
            steps: of the plan, from the first one on.
            start: replaces the start table, if only a part of it is wanted.
            join_type: replaces the kind of join of the plan.
        """
        query = exp.select(*(selected or [exp.Literal.number(1)]), copy=False)
        query = query.from_(self.tables.item(self.plan.start) if start is None else start, copy=False)
        word = self.tables.join_type(self.how) if join_type is None else join_type
        for step in steps:
            query = query.join(self.tables.item(step.table), on=self.equal(step), join_type=word, copy=False)
        return query


class _NamedTables:
    """The tables of a plan by name, or by id if two share a name."""

    def __init__(self, plan: JoinPlan) -> None:
        self._by_id = plan.by_id
        self._named = Counter(source.called.casefold() for source in plan.sources)
        self._many = len({part.database for source in plan.sources for part in source.parts or (source,)}) > 1

    def item(self, table: str) -> exp.Expr:
        """A stack is the union of its parts; a table with one row per key is a query of its own."""
        source, alias = self._by_id[table], self.alias(table)
        if source.aggregates:
            whole = self._item(replace(source, aggregates=()), alias)
            made = lambda column, function: made_of(exp.column(_name(column)), function)  # noqa: E731
            return one_row_a_key(source, whole, made, lambda key: exp.column(_name(key))).subquery(_name(alias))
        return self._item(source, alias)

    def _item(self, source: PlanTable, alias: str) -> exp.Expr:
        if source.parts:
            named = zip(source.parts, source.origins, strict=True)
            parts: list[exp.Query] = [self._part(source, part, origin) for part, origin in named]
            stack = exp.union(*parts, distinct=False) if len(parts) > 1 else parts[0]
            return stack.subquery(_name(alias))
        item = self._in_full(source)
        return item if alias == source.name and not self._many else exp.alias_(item, _name(alias), table=True)

    def _part(self, stack: PlanTable, part: PlanTable, origin: str) -> exp.Select:
        columns = [exp.column(_name(column)) for column in stack.columns if column != stack.origin]
        origin_cell = exp.alias_(exp.Literal.string(origin), stack.origin, quoted=True)
        return exp.select(*columns, origin_cell).from_(self._in_full(part))

    def alias(self, table: str) -> str:
        """Its name or role, or its id."""
        source = self._by_id[table]
        return source.called if self._named[source.called.casefold()] == 1 else source.id

    def join_type(self, how: How) -> str:
        """The kind of join in SQL."""
        return JOINS[how]

    def key(self, table: str, column: str) -> exp.Expr:
        """The column itself."""
        return exp.column(_name(column), table=_name(self.alias(table)))

    def _in_full(self, source: PlanTable) -> exp.Table:
        schema = source.schema or (source.database if self._many else "")
        return exp.Table(this=_name(source.name), db=_name(schema) if schema else None)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
