"""A statement with LM functions, run in stages.

Blocks are run in the order in which they read each other. In each block, conditions without a model are applied first.
Then the conditions with functions are asked for the remaining distinct values, the cheaper one first. Then the calls
in GROUP BY, HAVING, ORDER BY and SELECT follow. Answers are in a table that is added to the statement, and each call is
replaced by a lookup in it. The engine does the rest, including NULL and three-valued logic.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import takewhile
from typing import Any

import pandas as pd
from sqlglot import exp

from tagframe import results
from tagframe.answer.generation import plain_value
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql.blocks import (
    Block,
    bare_filter,
    blocks_with_calls,
    check_staged,
    count_of,
    is_column_of,
    name_calls,
    names_of_call,
    needed,
    standing_alone,
    undecided,
    write_out,
)
from tagframe.answer.lm_sql.calls import Call, call_of, calls_in
from tagframe.answer.lm_sql.dialects import KEY, OWN, Spoken, spoken_of
from tagframe.answer.sql_tree import aggregates, ancestors, clause_keys, conjuncts, is_aggregate, is_grouped, without
from tagframe.answer.steps import labelled
from tagframe.display import Displayable
from tagframe.errors import RowsFailed, SQLFailed, UnsafeSQL
from tagframe.lm import get_lm
from tagframe.operators import OPERATORS, OnError, RowsPerCall, Step, together
from tagframe.operators.packing import Audited, next_round

MOST_VALUES = 50_000
"""The most distinct values that one function of a statement may be asked about."""
AT_ONCE = 32
"""For at most this many values, it is not checked whether fewer would be enough."""
GROUP = f"{OWN}group"
_SUFFIX = f"_{OWN}answer"
_SAMPLE = 24
_FIRST = 16


@dataclass(frozen=True, repr=False)
class StageReport(Displayable):
    """The calls of one LM function of a statement.

    Attributes:
        call: the function, as written.
        values: the number of distinct values that it was called with, or of groups for ``sem_agg``.
        null: how many of them were empty, so that nothing was asked.
        unsure: how many the model could not judge: NULL in the statement.
        failed: how many have no answer: also NULL, if ``on_error`` allows it.
        remarks: sentences on how it was asked, for example on the audit of packed prompts.
    """

    call: str
    values: int
    null: int = 0
    unsure: int = 0
    failed: int = 0
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        outcomes = {"null": self.null, "unsure": self.unsure, "failed": self.failed}
        texts = [f"{count:,} {what}" for what, count in outcomes.items() if count]
        counts = f"{self.call}: {self.values:,} distinct values" + (f" ({', '.join(texts)})" if texts else "")
        return " ".join([f"{counts}." if self.remarks else counts, *self.remarks])


@dataclass(eq=False)
class Values:
    """The answers to one call (and to identical calls), by its arguments.

    Attributes:
        call: the first of them.
        name: of the table of answers in the statement.
        columns: SQL of the values in the block, the key of a group for an aggregate.
        on_error: what happens to a value without an answer.
        rows_per_call: values in one prompt; after an audit, the number that the audit chose.
    """

    call: Call
    name: str
    columns: Sequence[exp.Expr]
    on_error: OnError = "raise"
    rows_per_call: RowsPerCall = "auto"
    answers: dict[str, Any] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    shared: dict[str, str] = field(default_factory=dict)

    def key(self) -> exp.Expr:
        """The values as one text that distinguishes what SQL distinguishes: 1 from '1', NULL from ''."""
        return self.call.spoken.key(self.columns)

    def ask(self, arguments: pd.DataFrame) -> Step[None]:
        """Ask about these values, once each.

        Args:
            arguments: one row per value (or per row of a group): its key, then the columns of the call by their labels.

        Raises:
            RowsFailed: with ``on_error="raise"``, some have no answer.
        """
        if self.call.function.ranks and self.answers:  # a place holds among all the values that were compared
            return
        new = arguments[~arguments[KEY].isin(list(self.answers))]
        if len(new):
            operator = OPERATORS[self.call.function.name]
            yield from labelled(self._request(new), operator.name, operator.guess)

    def _request(self, new: pd.DataFrame) -> Step[None]:
        operator = OPERATORS[self.call.function.name]
        keys = new[KEY].tolist()
        frame = new.drop(columns=[KEY]).reset_index(drop=True)
        options: dict[str, Any] = {"suffix": _SUFFIX, "on_error": "raise" if self.on_error == "raise" else "keep"}
        if self.call.function.aggregates:
            frame[GROUP] = keys
            options["group_by"] = GROUP
            keys = list(dict.fromkeys(keys))
        elif self.call.function.ranks:
            options["K"] = self.call.places
        else:
            options["rows_per_call"] = self.rows_per_call
        if self.call.function.name == "sem_filter":
            options["return_all"] = True
        elif self.call.dtype is not None:
            options["dtype"] = self.call.dtype
        known = set(frame.columns)
        try:
            answered = yield from operator.step(get_lm(operator.name), frame, self.call.instruction, **options)
        except RowsFailed as error:
            self._take(keys, error.frame, known)
            raise
        self._take(keys, answered, known)

    def _take(self, keys: Sequence[str], answered: pd.DataFrame, known: set[Any]) -> None:
        if self.call.function.ranks:
            last = self.call.places + 1
            self.answers.update(dict.fromkeys(keys, last))
            self.answers.update((keys[row], min(place, last)) for place, row in enumerate(answered.index, 1))
        else:
            (column, *_) = [name for name in answered.columns if name not in known]
            self.answers.update(zip(keys, map(_plain, answered[column]), strict=True))
        outcomes = results.recall(answered, "outcomes")
        if outcomes is None:
            return
        self.remarks += outcomes.remarks
        size = results.recall(answered, "rows_per_call")
        if isinstance(size, Audited):  # one audit is enough
            self.rows_per_call = size
        kinds = outcomes["outcome"].tolist()
        self.failed.update(key for key, kind in zip(keys, kinds, strict=True) if kind == "failed")
        if self.call.function.ranks:
            self.answers.update(dict.fromkeys(self.failed, self.call.places + 1))
        self.outcomes.update(kinds)

    def share(self, alike: Mapping[str, str]) -> None:
        """Give keys the answers of other keys of the same group."""
        self.shared = {key: other for key, other in alike.items() if key != other and other in self.answers}

    def lookup(self) -> exp.Expr:
        """SQL for the answer of a row of the block, in place of the call."""
        found = self.call.spoken.lookup(self.name, self.key(), self.call.kind)
        return exp.Anonymous(this="max", expressions=[found]) if self.call.function.aggregates else found

    def table(self) -> Any:
        """The answers as a table to add to the statement."""
        answers = {**self.answers, **{key: self.answers[other] for key, other in self.shared.items()}}
        return self.call.spoken.table(answers, self.failed, self.call.kind)

    def report(self) -> StageReport:
        """The report of the calls."""
        null, unsure, failed = (self.outcomes[kind] for kind in ("null", "unsure", "failed"))
        remarks = tuple(dict.fromkeys(self.remarks))
        return StageReport(str(self.call), len(self.answers), null, unsure, failed, remarks)


_Filter = tuple[int, Values, bool]
"""The number of a condition, its call, and whether rows pass where it is true, or where it is not."""


@dataclass(frozen=True)
class Done:
    """A staged statement that has run.

    Attributes:
        rows: its result.
        sql: the statement that gave it.
        reader: that ran it, with the answers that it looks up.
        reports: the calls of each function.
    """

    rows: pd.DataFrame
    sql: str
    reader: Reader
    reports: tuple[StageReport, ...] = ()


@dataclass
class Staged:
    """One statement with LM functions over the tables of a reader.

    Attributes:
        sql: as written.
        reader: runs statements, under the guard.
        on_error: what happens to a value without an answer: ``"raise"``, ``"keep"`` as NULL, or ``"drop"`` its rows.
        rows_per_call: values in one prompt, as in :func:`tagframe.sem_filter`.
    """

    sql: str
    reader: Reader
    on_error: OnError = "raise"
    rows_per_call: RowsPerCall = "auto"
    _values: dict[tuple[Any, ...], Values] = field(default_factory=dict)

    def steps(self) -> Step[Done]:
        """Run it.

        Raises:
            UnsafeSQL: as :func:`check_staged`.
            SQLFailed: as :func:`check_staged`; it exceeds its limits; a function would be asked about more than 50,000
                distinct values.
            RowsFailed: with ``on_error="raise"``, values have no answer.
        """
        checked = check_staged(self.sql, self.reader)
        root = self.spoken.parsed(checked)
        blocks = blocks_with_calls(root)
        if not blocks:
            return Done(self.reader.run(checked), checked, self.reader)
        for select in blocks:
            yield from self._block(select)
        sql, reader = self.spoken.written(root), self._bringing()
        return Done(reader.run(sql), sql, reader, tuple(values.report() for values in self._values.values()))

    @cached_property
    def spoken(self) -> Spoken:
        """The dialect of the statement; raises :class:`~tagframe.errors.UnsafeSQL` if it has no LM functions."""
        return spoken_of(self.reader)

    def _bringing(self) -> Reader:
        return replace(self.reader, brought={values.name: values.table() for values in self._values.values()})

    # --- a block --------------------------------------------------------------------------------------------------

    def _block(self, select: exp.Select) -> Step[None]:
        take_order(select)
        write_out(select, self._columns_of(select), self.spoken)
        name_calls(select, self.spoken)
        block = Block(select, self.spoken)
        if block.pending and self._takes_first(block):
            yield from self._first_rows(block)
        else:
            for pending in (yield from self._in_order(block)):
                yield from self._condition(block, pending)
        block.put_back()
        for part in (select.args.get("group"), *conjuncts(select.args.get("having")), select.args.get("order")):
            if part is not None:
                yield from self._computed(block, calls_in(part), part)
        yield from self._computed(block, [node for item in select.expressions for node in calls_in(item)], last=True)
        if self.on_error == "drop":
            for (owner, *_), one in self._values.items():
                if owner == id(select) and one.failed:
                    select.where(self.spoken.has_not_failed(one.name, one.key()), copy=False)

    def _takes_first(self, block: Block) -> bool:
        """Whether LIMIT applies to an order that needs no model, so that not all rows have to be asked about."""
        select = block.select
        merges = select.args.get("distinct") is not None or select.args.get("group") is not None
        return (
            all(bare_filter(pending) is not None for pending in block.pending)
            and _is_limited(select, distinct=True)
            and (merged_by(select, self._columns_of(select)) is not None if merges else not is_grouped(select))
        )

    def _columns_of(self, select: exp.Select) -> Callable[[str], bool]:
        """Whether the tables of a block have a column of a name."""
        return partial(is_column_of, select, self._bringing())

    def _of(self, select: exp.Select, node: exp.Expr) -> Values:
        """The answers to a call; identical calls of a block share them."""
        is_column = self._columns_of(select)
        call = call_of(node, select, is_column, self.spoken)
        identity = (id(select), *call.identity)
        if identity not in self._values:
            columns: Sequence[exp.Expr] = [column for _, column in call.columns]
            if call.function.aggregates:
                keys = clause_keys(select, "group", is_column)
                if keys is None:
                    raise UnsafeSQL(f"name the columns that the groups of {call.function.name} are made by in GROUP BY")
                columns = keys
            name = f"{OWN}answers_{len(self._values) + 1}"
            self._values[identity] = Values(call, name, columns, self.on_error, self.rows_per_call)
        return self._values[identity]

    # --- asking ---------------------------------------------------------------------------------------------------

    def _read(
        self,
        select: exp.Select,
        inner: exp.Select,
        names: Sequence[str],
        what: Values,
        *,
        distinct: bool,
        first: bool = False,
    ) -> pd.DataFrame:
        """Rows of a block, limited to the number that may be asked about; with ``first``, later rows are left out."""
        most, source = MOST_VALUES + 1, f"({self.spoken.written(inner)}) AS {OWN}rows"
        read = self.spoken.distinct(names, source) if distinct else f"SELECT {', '.join(names)} FROM {source}"
        reader = self._bringing()
        sql = standing_alone(select, f"{read} LIMIT {most}", self.spoken.name)
        rows = reader.run(sql, replace(reader.limits, rows=most))
        if len(rows) > MOST_VALUES and not first:
            raise _too_many(what, "distinct values" if distinct else "rows")
        return rows

    def _request(self, select: exp.Select, values: Sequence[Values], inner: exp.Select) -> Step[None]:
        """Ask each call for the distinct values in the rows of a statement, all at once."""
        sampled = [self._distinct(select, inner, number, one) for number, one in enumerate(values)]
        yield from together([one.ask(rows) for one, rows in zip(values, sampled, strict=True)])

    def _distinct(self, select: exp.Select, inner: exp.Select, number: int, one: Values) -> pd.DataFrame:
        """The distinct arguments of a call, by its number, in the rows of a statement."""
        names = names_of_call(number, len(one.columns))
        return _labelled(self._read(select, inner, names, one, distinct=True), one)

    # --- conditions -----------------------------------------------------------------------------------------------

    def _condition(self, block: Block, pending: exp.Expr) -> Step[None]:
        values = [self._of(block.select, node) for node in calls_in(pending)]
        # Values are compared with all others that are left, also where the condition is decided without them.
        free = None if any(one.call.function.ranks for one in values) else undecided(pending)
        rows = block.rows([one.columns for one in values], more=[] if free is None else [free])
        yield from self._request(block.select, values, rows)
        self._answered(block, pending)

    def _answered(self, block: Block, pending: exp.Expr) -> None:
        """Replace the calls of a condition by lookups of their answers."""
        block.pending = [one for one in block.pending if one is not pending]
        nodes, holder = calls_in(pending), exp.Paren(this=pending)
        _look_up(nodes, [self._of(block.select, node) for node in nodes])
        block.answered.append(holder.this.pop())

    def _filters(self, block: Block) -> list[_Filter]:
        """The conditions that are a filter or NOT of one."""
        return [
            (number, self._of(block.select, calls_in(pending)[0]), bool(bare_filter(pending)))
            for number, pending in enumerate(block.pending)
        ]

    def _in_order(self, block: Block) -> Step[list[exp.Expr]]:
        """The conditions in the order of asking: first those that cost little and leave few rows; rankings last."""
        if len(block.pending) < 2:
            return list(block.pending)
        costs: dict[int, float] = {}
        samples: list[tuple[exp.Expr, Values, pd.DataFrame]] = []
        for pending in block.pending:
            values = [self._of(block.select, node) for node in calls_in(pending)]
            inner = block.rows([one.columns for one in values])
            sampled = [self._distinct(block.select, inner, number, one) for number, one in enumerate(values)]
            ranks = any(one.call.function.ranks for one in values)
            costs[id(pending)] = math.inf if ranks else float(sum(map(len, sampled)))
            if bare_filter(pending) is not None and len(sampled[0]) > AT_ONCE:
                spaced = [position * len(sampled[0]) // _SAMPLE for position in range(_SAMPLE)]
                samples.append((pending, values[0], sampled[0].iloc[spaced]))
        if samples:
            yield from together([values.ask(sample) for _, values, sample in samples])
        for pending, one, sample in samples:
            chosen = sum(one.answers.get(key) == int(bool(bare_filter(pending))) for key in sample[KEY])
            # Filters that cost c and leave the share s are best run in the order of c / (1 - s).
            costs[id(pending)] /= max(1 - chosen / len(sample), 1e-6)
        return sorted(block.pending, key=lambda pending: costs[id(pending)])

    def _first_rows(self, block: Block) -> Step[None]:
        """Ask about rows in their order until enough pass; later rows get NULL, so that none of them passes."""
        select = block.select
        wanted = needed(select)
        filters = self._filters(block)
        columns = [values.columns for _, values, _ in filters]
        names = [name for number, values, _ in filters for name in names_of_call(number, len(values.columns))]
        merged = merged_by(select, self._columns_of(select))
        row = names_of_call(len(filters), 0)[0]
        if merged is not None:  # a row of the result is many rows here: of each, one that passes is enough
            columns.append(merged)
            names.append(row)
        rows = self._read(select, block.rows(columns, in_order=True), names, filters[0][1], distinct=False, first=True)
        filters.sort(key=lambda one: rows[names_of_call(one[0], 0)[0]].nunique())
        few = sum(rows[names_of_call(number, 0)[0]].nunique() for number, _, _ in filters) <= _FIRST
        left, sampled, size, passed = rows, 0, len(rows) if few else max(4 * wanted, _FIRST), 0
        found: set[str] = set()
        while len(left) and passed < wanted:
            some, left = left.iloc[:size], left.iloc[size:]
            sampled += len(some)
            some = yield from _passing(some, filters)
            if merged is None:
                passed += len(some)
            else:
                found.update(some[row])
                left = left[~left[row].isin(list(found))]
                passed = len({_alike(key) for key in found})
            size = next_round(sampled, passed, wanted, _FIRST)
        if passed < wanted and len(rows) > MOST_VALUES:
            raise _too_many(filters[0][1], "rows")
        for pending in list(block.pending):
            self._answered(block, pending)

    # --- what is computed -----------------------------------------------------------------------------------------

    def _computed(
        self, block: Block, nodes: Sequence[exp.Expr], part: exp.Expr | None = None, *, last: bool = False
    ) -> Step[None]:
        """The calls of a part after WHERE; ``last``: no other clause has calls, so LIMIT may be applied first."""
        if not nodes:
            return
        select = block.select
        values = [self._of(select, node) for node in nodes]
        texts = [one for one in dict.fromkeys(values) if one.call.function.aggregates]
        cells = [one for one in dict.fromkeys(values) if not one.call.function.aggregates]
        by_group = bool(cells) and is_grouped(select) and self._are_keys(select, nodes, cells)
        first = (
            last and _is_limited(select) and not (texts and cells) and (by_group or not (is_grouped(select) and cells))
        )
        # Only what HAVING leaves is compared.
        having = conjuncts(select.args.get("having"))
        is_filter = by_group and [one for one in having if calls_in(one)] == [part] and _is_limited(select)
        passing = bare_filter(part) if is_filter and part is not None else None
        of_groups = [one for one in cells if by_group or (having and one.call.function.ranks)]
        ask = partial(self._asked_of_groups, block, first=first or passing is not None, passing=passing)
        if of_groups:
            yield from together(list(map(ask, of_groups)))
        if cells := [one for one in cells if one not in of_groups]:
            yield from self._request(select, cells, block.rows([one.columns for one in cells], ordered=first))
        for text in texts:
            yield from self._written(block, text, first=first)
        if first:
            # Of rows that are alike in ORDER BY, those that were asked about.
            for one in [*of_groups, *cells, *texts]:
                select.where(self.spoken.was_asked(one.name, one.key()), copy=False)
        _look_up(nodes, values)

    def _are_keys(self, select: exp.Select, nodes: Sequence[exp.Expr], cells: Sequence[Values]) -> bool:
        """Whether the arguments of calls are group keys, so that groups are asked about instead of rows."""
        keys = clause_keys(select, "group", self._columns_of(select))
        if not keys or any(_in_aggregate(node) for node in nodes):
            return False
        grouped = {key.sql(identify=True).casefold() for key in keys}
        return all(column.sql(identify=True).casefold() in grouped for one in cells for column in one.columns)

    def _asked_of_groups(self, block: Block, one: Values, *, first: bool, passing: bool | None = None) -> Step[None]:
        """Ask about the values in the groups that are left; with ``passing``, what a filter of them is to give, in
        their order until enough pass: later ones get NULL, so that none of them passes."""
        rows = self._distinct(block.select, block.rows([one.columns]), 0, one)
        if block.select.args.get("having") is None and not first:
            yield from one.ask(rows)
            return
        left, wanted = self._groups(block, one, first=first, whole=passing is not None), needed(block.select)
        size, passed, sampled = len(left) if passing is None else max(4 * wanted, _FIRST), 0, 0
        while left and (passed < wanted or not sampled):
            some, left, sampled = left[:size], left[size:], sampled + size
            yield from one.ask(rows[rows[KEY].isin([key for keys in some for key in keys])])
            passed += sum(all(one.answers.get(key) == passing for key in keys) for keys in some)
            size = next_round(sampled, passed, wanted, _FIRST)

    def _groups(self, block: Block, one: Values, *, first: bool, whole: bool = False) -> list[list[str]]:
        """The keys of the values in each group that is left; with ``whole`` also beyond LIMIT."""
        inner = block.groups(one.columns, ordered=first)
        inner = without(inner, "limit") if whole else inner
        return [json.loads(cell) for cell in self._read(block.select, inner, [KEY], one, distinct=False)[KEY]]

    def _written(self, block: Block, text: Values, *, first: bool) -> Step[None]:
        """The text of ``sem_agg`` for each group."""
        arguments = [column for _, column in text.call.columns]
        names = [KEY, *names_of_call(1, len(arguments))[1:]]
        rows = self._read(block.select, block.rows([text.columns, arguments]), names, text, distinct=False)
        alike: dict[str, str] = {}
        if block.select.args.get("group") is not None:
            alike = {key: keys[0] for keys in self._groups(block, text, first=first) for key in keys}
            rows = rows[rows[KEY].isin(alike.keys())].assign(**{KEY: lambda chosen: chosen[KEY].map(alike)})
        yield from text.ask(_labelled(rows, text))
        text.share(alike)


def _passing(rows: pd.DataFrame, filters: Sequence[_Filter]) -> Step[pd.DataFrame]:
    """The rows that pass all filters; each filter is asked only about the rows that earlier ones leave."""
    for number, one, yes in filters:
        names = names_of_call(number, len(one.columns))
        yield from one.ask(_labelled(rows[names].drop_duplicates(names[0]), one))
        rows = rows[[one.answers.get(key) == int(yes) for key in rows[names[0]]]] if len(rows) else rows
    return rows


def _too_many(values: Values, what: str) -> SQLFailed:
    fact = f"{values.call} would be asked about more than {MOST_VALUES:,} {what}"
    return SQLFailed(f"{fact}: add conditions that leave fewer")


def _labelled(rows: pd.DataFrame, values: Values) -> pd.DataFrame:
    """A key and the columns of a call, under their labels for the model."""
    return rows.set_axis([KEY, *(label for label, _ in values.call.columns)], axis=1)


def _look_up(nodes: Sequence[exp.Expr], values: Sequence[Values]) -> None:
    for node, one in zip(nodes, values, strict=True):
        node.replace(one.lookup())


def _in_aggregate(node: exp.Expr) -> bool:
    own = takewhile(lambda above: not isinstance(above, exp.Query), ancestors(node))
    return any(is_aggregate(above) or isinstance(above, exp.Filter) for above in own)


def _is_limited(select: exp.Select, *, distinct: bool = False) -> bool:
    """Whether the rows within LIMIT are known before SELECT is computed; ``distinct``: the caller handles DISTINCT."""
    order = select.args.get("order")
    return (
        select.args.get("limit") is not None
        and count_of(select.args.get("limit")) is not None
        and count_of(select.args.get("offset")) is not None
        and (distinct or select.args.get("distinct") is None)
        and not any(item.find(exp.Window) for item in select.expressions)
        and (order is None or not calls_in(order))
    )


def take_order(select: exp.Select) -> None:
    """Give a block the ORDER BY and LIMIT of the block around it, if all that this one does is to order and cut."""
    holder: exp.Expr | None = select.parent
    if isinstance(holder, exp.CTE):
        name = holder.alias.casefold()
        reads = [table for table in holder.root().find_all(exp.Table) if table.name.casefold() == name]
        holder = reads[0] if len(reads) == 1 else None
    outer = holder.parent.parent if holder is not None and isinstance(holder.parent, exp.From) else None
    if not isinstance(outer, exp.Select) or is_grouped(outer) or not _is_limited(outer):
        return
    on = select.args["distinct"].args.get("on") if select.args.get("distinct") is not None else None
    keys = clause_keys(outer, "order", lambda _: False)
    if keys is None or any([on, *map(outer.args.get, ("joins", "where")), *map(select.args.get, ("limit", "offset"))]):
        return
    order = exp.Order(expressions=[])
    for term, key in zip(outer.args["order"].expressions if keys else (), keys, strict=True):
        order.append("expressions", term.copy())
        order.expressions[-1].set("this", key.copy())
    named = {item.alias_or_name.casefold(): item.unalias() for item in select.expressions}
    is_whole = "*" in named and not select.args.get("joins")
    for column in list(order.find_all(exp.Column)):
        item = named.get(column.name.casefold())
        if not is_whole if item is None else calls_in(item):
            return
        column.replace(exp.Column(this=column.this) if item is None else exp.Paren(this=item.copy()))
    select.set("order", order if keys else None)
    select.set("limit", exp.Limit(expression=exp.Literal.number(needed(outer))))


def merged_by(select: exp.Select, is_column: Callable[[str], bool]) -> list[exp.Expr] | None:
    """The keys by which DISTINCT or GROUP BY merges rows, if ORDER BY needs only these; else None."""
    keys = clause_keys(select, "group", is_column) if select.args.get("group") is not None else None
    distinct = select.args.get("distinct")
    items = list(select.expressions)
    if keys is None and (
        distinct is None or distinct.args.get("on") is not None or any(item.is_star for item in items)
    ):
        return None
    order = select.args.get("order")
    parts = [*items, *(order.expressions if order is not None else ()), *(keys or ())]
    if select.args.get("having") is not None or any(calls_in(part) or aggregates(part) for part in parts):
        return None
    keys = [item.unalias() for item in items] if keys is None else keys
    known = {key.sql() for key in keys} | {item.alias for item in items if item.unalias() in keys}
    ordered = order.expressions if order is not None else ()
    return keys if all(part.this.sql() in known or part.this.name in known for part in ordered) else None


def _alike(key: str) -> str:
    """A key that is equal for all texts that some collation considers equal; counting too few rows is the safe side."""
    return re.sub(r"\s|\.0+\b", "", key.casefold())


def _plain(cell: Any) -> Any:
    plain = plain_value(cell)
    if hasattr(cell, "isoformat") and plain is not None:
        return plain.removesuffix("T00:00:00")
    return int(plain) if isinstance(plain, bool) else plain
