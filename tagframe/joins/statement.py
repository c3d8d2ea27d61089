"""A join plan as a SQL statement, of no dialect in particular."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import Dialect, ErrorLevel, UnsupportedError, exp
from sqlglot.dialects import MySQL

from tagframe.errors import InvalidArgument
from tagframe.joins.steps import How, PlanTable

if TYPE_CHECKING:
    from tagframe.joins.plan import JoinPlan

_JOINS = {"inner": "", "left": "left", "outer": "full outer"}


_PLAIN = (type(None), bool, int, float, str, dt.date, dt.datetime, decimal.Decimal)
_MOST_KEPT = 256
_kept: dict[Any, str] = {}


def statement_text(
    plan: JoinPlan,
    columns: Sequence[str] | None,
    how: How,
    limit: int | None,
    where: Mapping[str, Any] | None,
    dialect: str,
) -> str:
    """What :meth:`~tagframe.joins.plan.JoinPlan.sql` gives; the texts that were asked for last are kept.

    To write one takes a millisecond, which is a part of a merge of a hundred rows in a server.
    """
    asked = _known_by(where)
    known_as = (plan, None if columns is None else tuple(columns), how, limit, asked, dialect)
    text = _kept.get(known_as) if asked is not None else None
    if text is None:
        text = rendered(join_statement(plan, columns, how, limit, where), dialect)
        if asked is not None:
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[known_as] = text
    return text


def _known_by(where: Mapping[str, Any] | None) -> Any:
    """What tells conditions apart, 1 from True among it; None where their values are none of our own types."""
    found = []
    for name, value in (where or {}).items():
        several = value if type(value) in (list, tuple) else [value]
        if not all(type(one) in _PLAIN for one in several):
            return None
        found.append((name, several is value, tuple((type(one), one) for one in several)))
    return tuple(found)


def join_statement(
    plan: JoinPlan,
    columns: Sequence[str] | None,
    how: How,
    limit: int | None,
    where: Mapping[str, Any] | None = None,
) -> exp.Select:
    """The statement that :meth:`~tagframe.joins.plan.JoinPlan.sql` renders."""
    names = plan.column_names()
    tables = _Tables(plan)
    wanted = list(names) if columns is None else [plan.find_column(name) for name in columns]
    first: dict[str, tuple[str, str]] = {}
    for key in wanted:
        first.setdefault(names[key], key)
    sharing: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, name in names.items():
        sharing[name].append(key)

    def value(key: tuple[str, str]) -> exp.Expr:
        """The column; of an outer join, from whichever table of those that it is equal in has it."""
        same = [tables.column(*other) for other in [key, *(one for one in sharing[names[key]] if one != key)]]
        return same[0] if how != "outer" or len(same) == 1 else exp.Coalesce(this=same[0], expressions=same[1:])

    shown: list[exp.Expr] = []
    for name, key in first.items():
        column = value(key)
        is_named = isinstance(column, exp.Column) and name == key[1]
        shown.append(column if is_named else exp.alias_(column, name, quoted=True, copy=False))
    query = exp.select(*shown or [exp.Literal.number(1)], copy=False).from_(tables.item(plan.start), copy=False)
    for step in plan.steps:
        pairs = zip(step.base_columns, step.columns, strict=True)
        equal = [tables.column(step.base, mine).eq(tables.column(step.table, theirs)) for mine, theirs in pairs]
        both = exp.and_(*equal, copy=False)
        query = query.join(tables.item(step.table), on=both, join_type=_JOINS[how], copy=False)
    for name, wanted_value in (where or {}).items():
        query = query.where(condition(value(plan.find_column(name)), wanted_value), copy=False)
    return query if limit is None else query.limit(limit, copy=False)


def condition(column: exp.Expr, value: Any) -> exp.Expr:
    """A column is a value, or one of several; None stands for what is missing.

    Raises:
        InvalidArgument: a value that no statement can hold.
    """
    several = isinstance(value, list | tuple | set | frozenset)
    values = list(value) if several else [value]
    for one in values:
        if one is not None and not isinstance(one, bool | int | float | str | dt.date | decimal.Decimal):
            raise InvalidArgument(
                f"where= in SQL takes texts, numbers, dates and None, and lists of these; got {one!r} of type "
                f"{type(one).__name__}"
            )
    known = [_literal(one) for one in values if one is not None]
    tests: list[exp.Expr] = [column.is_(exp.null())] if len(known) < len(values) else []
    if several:
        tests.append(exp.In(this=column, expressions=known) if known else exp.false())
    elif known:
        tests.append(column.eq(known[0]))
    return exp.or_(*tests)


def _literal(value: Any) -> exp.Expr:
    if isinstance(value, decimal.Decimal):
        return exp.Literal.number(f"{value:f}")
    if isinstance(value, dt.datetime):
        kind = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
        return exp.cast(exp.Literal.string(value.isoformat(" ")), kind)
    if isinstance(value, dt.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.convert(value)


def rendered(query: exp.Select, dialect: str) -> str:
    """The statement as text; raises as :meth:`~tagframe.joins.plan.JoinPlan.sql`."""
    try:
        spoken = Dialect.get_or_raise(dialect)
    except ValueError as error:
        raise InvalidArgument(f"no SQL dialect {dialect!r}: {error}") from error
    joins = query.args.get("joins") or []
    if isinstance(spoken, MySQL) and len(joins) > 1 and any(join.side == "FULL" for join in joins):
        raise InvalidArgument(f"{dialect} has no full outer join, and only one can be said otherwise: how='left', say")
    try:
        return query.sql(dialect=spoken, pretty=True, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise InvalidArgument(f"{dialect} cannot say this plan: {error}") from error


class _Tables:
    """The tables of a plan, as a statement calls them: by name, or by id where two share a name."""

    def __init__(self, plan: JoinPlan) -> None:
        self._by_id = {source.id: source for source in plan.sources}
        self._named = Counter(source.name.casefold() for source in plan.sources)
        self._many = len({source.database for source in plan.sources}) > 1

    def column(self, table: str, column: str) -> exp.Column:
        """A column of a table."""
        return exp.column(_name(column), table=_name(self._alias(table)))

    def item(self, table: str) -> exp.Expr:
        """The table in FROM or JOIN; a stack as the union of its parts."""
        source, alias = self._by_id[table], self._alias(table)
        if source.parts:
            parts: list[exp.Query] = [self._part(source, part) for part in source.parts]
            stack = exp.union(*parts, distinct=False) if len(parts) > 1 else parts[0]
            return stack.subquery(_name(alias))
        item = self._in_full(source)
        return item if alias == source.name and not self._many else exp.alias_(item, _name(alias), table=True)

    def _part(self, stack: PlanTable, part: PlanTable) -> exp.Select:
        columns = [exp.column(_name(column)) for column in stack.columns if column != stack.origin]
        origin = exp.alias_(exp.Literal.string(part.id), stack.origin, quoted=True)
        return exp.select(*columns, origin).from_(self._in_full(part))

    def _alias(self, table: str) -> str:
        source = self._by_id[table]
        return source.name if self._named[source.name.casefold()] == 1 else source.id

    def _in_full(self, source: PlanTable) -> exp.Table:
        return exp.Table(this=_name(source.name), db=_name(source.database) if self._many else None)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
