"""Tables of a plan with one row per key: their other columns are summed, counted or the like before the joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tagframe.errors import ColumnNotFound, InvalidArgument, did_you_mean
from tagframe.joins.steps import PlanTable, table_order
from tagframe.keys.column_names import column_name, is_identifier, is_measure, words

if TYPE_CHECKING:
    from tagframe.joins.plan import JoinPlan

Aggregate = Mapping[str, Mapping[str, str] | str]
"""By table: column → the function that aggregates its cells for each key, one of :data:`FUNCTIONS`; or "first"."""

FUNCTIONS = ("sum", "mean", "min", "max", "count", "nunique", "first")
"""As in pandas: missing cells do not count, and the sum of no cells is 0. "first" is the cell of the first row."""
FIRST = "first"


def aggregated(plan: JoinPlan, aggregate: Aggregate) -> JoinPlan:
    """The plan over tables with one row for each value of their key.

    Raises:
        InvalidArgument: an unknown function, a table that is joined by several keys, the start table of the merge, or
            all tables.
        TableNotFound, ColumnNotFound: the plan has no such table or column.
    """
    sources = plan.by_id
    keys = [step.key for step in plan.steps]
    if not isinstance(aggregate, Mapping):
        raise InvalidArgument(f"aggregate= must have the form {{table: {{column: function}}}}; got {aggregate!r}")
    for name, functions in aggregate.items():
        source = plan.source(name)
        sides = {key.columns_of(source.id) for key in keys if source.id in key.tables}
        if plan.is_anchored and source.id == plan.start:
            raise InvalidArgument(f"aggregate= names {source.id}, the start of the merge: start from another table")
        if len(sides) != 1:
            by = "; ".join(map(", ".join, sorted(sides))) or "nothing"
            raise InvalidArgument(f"{source.id} is joined by {by}: aggregate= needs exactly one key")
        if any(key.signs for key in keys if source.id in key.tables):
            raise InvalidArgument(f"{source.id} is joined as of a moment: aggregate= is for equal keys only")
        sources[source.id] = _with_one_row_a_key(source, sides.pop(), functions)
    starts = [plan.start] if plan.is_anchored else [id for id, source in sources.items() if not source.aggregates]
    if not starts:
        raise InvalidArgument("aggregate= names all tables: leave out the table that the merge starts from")
    walks = [type(plan).along(keys, sources, table_order(plan.sources), start) for start in starts]
    walked = min(walks, key=lambda walk: walk[0])[1]
    return replace(plan, start=walked.start, steps=walked.steps, sources=walked.sources)


def _with_one_row_a_key(source: PlanTable, keys: tuple[str, ...], functions: Mapping[str, str] | str) -> PlanTable:
    if functions == FIRST:
        functions = {one: FIRST for one in source.columns if one not in keys}
        if not functions:
            return replace(source, distinct=True)
    if not isinstance(functions, Mapping) or not functions:
        raise InvalidArgument(
            f"aggregate= must have the form {{{source.called!r}: {{column: function}}}} or "
            f"{{{source.called!r}: 'first'}}; got {functions!r}"
        )
    for column, function in functions.items():
        if column not in source.columns:
            raise ColumnNotFound(f"no column {column!r} in {source.id}: {did_you_mean(str(column), source.columns)}")
        if function not in FUNCTIONS:
            raise InvalidArgument(f"no function {function!r} in {did_you_mean(str(function), FUNCTIONS)}")
        if column in keys:
            raise InvalidArgument(f"{source.id} is joined by {column!r}: aggregate another column")
    needed = {*keys, *functions}
    columns = tuple(column for column in source.columns if column in needed)
    return replace(
        source, columns=columns, unique=keys[:1] if len(keys) == 1 else (), aggregates=tuple(functions.items())
    )


_AMOUNTS = frozenset(
    """amount price cost fee total sum revenue sale spend spent paid payment salary income balance quantity qty unit
    hit goal vote hour minute distance betrag menge summe umsatz montant quantite importe cantidad""".split()
)
"""Words for what adds up over the rows of a thing; latitudes, ranks, ratings and years do not."""


def is_amount(column: str) -> bool:
    """Whether a sum over the column makes sense, by its name.

    >>> is_amount("total_paid"), is_amount("minutes"), is_amount("payment_id"), is_amount("rank")
    (True, True, False, False)
    """
    return not _AMOUNTS.isdisjoint(words(column)) and not is_identifier(column) and not column_name(column).key_word


def ways_to_aggregate(source: PlanTable, keys: tuple[str, ...], name: str) -> tuple[str, str]:
    """Examples of ``aggregate=`` that give a table one row for each of these keys: of a column, and the first row.

    ``name`` is what the table is called there.
    """
    columns = [column for column in source.columns if column not in keys]
    amounts = [column for column in columns if column in source.numbers and is_amount(column)]
    amount = next(filter(is_measure, amounts), next(iter(amounts), None))
    column, function = (amount, "sum") if amount is not None else (next(iter(columns), "…"), "count")
    first = f"aggregate={{{name!r}: {FIRST!r}}} for the first row of each"
    return f"aggregate={{{name!r}: {{{column!r}: {function!r}}}}}", first


def sentence_of(source: PlanTable) -> str:
    """How a table is aggregated, in a sentence."""
    keys = " and ".join(source.keys)
    if {function for _, function in source.aggregates} == {FIRST}:
        return f"{source.id} has one row per {keys}: the first."
    made = ", ".join(f"{function} of {column}" for column, function in source.aggregates)
    return f"{source.id} has one row per {keys}: {made}."
