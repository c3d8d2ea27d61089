"""The warnings and refusals of a merge, each with the values and the way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from tagframe import errors
from tagframe.errors import (
    AmbiguousJoin,
    AmbiguousJoinWarning,
    CoercedKeysWarning,
    DoubtfulJoinWarning,
    InexactKeys,
    InvalidArgument,
    NotConnected,
    RowsLostWarning,
    RowsMultipliedWarning,
    TableLeftOutWarning,
    TablesStackedWarning,
    counted,
)
from tagframe.joins.aggregates import ways_to_aggregate
from tagframe.joins.key_text import On, text_of
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import JoinStep
from tagframe.keys.column_names import GENERIC, KEY_WORDS, is_attribute, version_column, words
from tagframe.keys.composite import MOST_REPEATED
from tagframe.keys.key_columns import has_versions
from tagframe.keys.key_pair import KeyPair, column_id
from tagframe.keys.terms import CALENDAR, FAINT_NAME

Reaction = Literal["raise", "warn", "allow"]

DOUBTFUL = 0.5
"""A merge warns of a step that scores below: a score is a chance, so such a step is more likely wrong than right."""

_MAX_ACCIDENT = 0.01
"""If values match by accident this rarely, relative to those of a key, a hint in the names is enough."""
_MAX_EXAMPLES = 3


class Remark(NamedTuple):
    """A warning that was collected."""

    text: str
    category: type[Warning]


_heard: ContextVar[list[Remark] | None] = ContextVar("tagframe_advice", default=None)


@contextmanager
def heard() -> Iterator[list[Remark]]:
    """A block whose warnings are collected in a list, for a caller that reports them in another way."""
    messages: list[Remark] = []
    token = _heard.set(messages)
    try:
        yield messages
    finally:
        _heard.reset(token)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, pointing to the line of the user's own code that called the library."""
    if (messages := _heard.get()) is not None:
        messages.append(Remark(message, category))
        return
    errors.warn(message, category)


def say_doubt(plan: JoinPlan) -> None:
    """Warn of steps on low-confidence keys, and of steps whose columns match by their values only."""
    inferred = [step for step in plan.steps if step.key.evidence.is_guess]
    doubtful = [
        step
        for step in plan.steps
        if step.score < DOUBTFUL and step.key.evidence.origin in _BY_EVIDENCE and not step.key.evidence.only
    ]
    unnamed = [step for step in inferred if step.score >= DOUBTFUL and is_unnamed(step.key)]
    for steps, what in (
        (doubtful, f"low-confidence key{'s' * (len(doubtful) > 1)}"),
        (unnamed, "joined on columns that match by their values, not by their names"),
    ):
        if steps:
            warn(f"{what}: {_with_chances(steps)}. {_OTHER_KEYS}", DoubtfulJoinWarning)
    for step in inferred:
        share = step.key.evidence.uniqueness
        if step.base == step.key.right_table and share is not None and 1 - MOST_REPEATED <= share < 1:
            warn(
                f"{', '.join(step.base_columns)} repeats in {1 - share:.2%} of the rows of {step.base}, and so do the "
                f"rows of {step.table} that refer to these. merge(plan.restarted({step.table!r})) refuses that",
                RowsMultipliedWarning,
            )


def refuse_other_types(plan: JoinPlan, chooses: Callable[[str, str], bool]) -> None:
    """Refuse a key that only the rows of one type have, if rows of other types may be joined by it.

    Raises:
        NotConnected: ``chooses`` is false for the column with the type, and the type.
    """
    for key in (step.key for step in plan.steps if step.key.evidence.only):
        table, column, type = key.evidence.only
        if not chooses(column, type):
            id = column_id(table, (column,))
            where = f"where={{{id.partition('.')[2]!r}: {type!r}}}"
            raise NotConnected(
                f"{key.left} refers to {key.right_table} only where {id} is {type!r}: pass {where}, "
                f'or on="{text_of(key, plan.named)}" for the rows of all types',
                [[key.left_table], [key.right_table]],
            )


_BY_EVIDENCE = ("inferred", "shared", "model")
_OTHER_KEYS = 'plan.alternatives lists other joins, on="a.x = b.y" sets your own'


def _with_chances(steps: Sequence[JoinStep]) -> str:
    from tagframe.display.markup import percent

    return "; ".join(f"{step} ({percent(step.score)})" for step in steps)


def say_stacked(plan: JoinPlan, on: On | None) -> None:
    """Warn if other tables are stacked with the anchor, or if ``on`` names one part of a stack and applies to all."""
    items = [on] if isinstance(on, str | KeyPair) else list(on or ())
    given = " ".join(item if isinstance(item, str) else f"{item.left} {item.right}" for item in items)
    for source in plan.sources:
        named = [part.id for part in source.parts if f"{part.id}." in given] or [
            part.id for part in source.parts if re.search(rf"\b{re.escape(part.name)}\.", given)
        ]
        parts = [f"{part.id} ({counted(part.rows, 'row')})" if part.rows else part.id for part in source.parts]
        if plan.is_anchored and source.id == plan.start and parts:
            what = "the result has the rows of all of them"
        elif 0 < len(named) < len(parts):
            what = f"on= names {' and '.join(named)} and applies to all of them"
        else:
            continue
        warn(
            f"{' and '.join(parts)} have the same columns and are stacked: {what}. stack=True confirms this, "
            "stack=False joins them separately",
            TablesStackedWarning,
        )


def say_left_out(plan: JoinPlan) -> None:
    """Warn of tables that the plan left out."""
    repeating = [table for table in plan.left_out if table not in plan.unconnected]
    for tables, why, way in (
        (repeating, f"would only repeat or lose rows of {plan.start}", ""),
        (plan.unconnected, "no sure key connects {them}", ', with a key in on="a.x = b.y"'),
    ):
        if tables:
            many = len(tables) > 1
            them = "them" if many else "it"
            warn(
                f"{' and '.join(tables)} {'are' if many else 'is'} left out: may not be needed, and "
                f"{why.format(them=them)}. found.add({', '.join(map(repr, tables))}) joins {them}{way}",
                TableLeftOutWarning,
            )


def whose_rows(plan: JoinPlan) -> str:
    """The refusal of an anti merge that does not say whose rows are wanted; first those that others refer to."""
    refer = [step.key.left_table for step in plan.steps]
    ways = []
    for table in dict.fromkeys([*refer, *plan.tables]):
        with suppress(InvalidArgument):  # it connects the others
            ways.append((table, plan.lacking(table).sentence_of_absence))
    lines = (f"merge(plan.lacking({table!r})) gives {sentence}" for table, sentence in ways[:_MAX_EXAMPLES])
    return f"how='anti' needs to know whose rows are wanted: {'; '.join(lines)}"


def say_maybe_denied(plan: JoinPlan, tables: Sequence[str]) -> None:
    """Warn of rows with a partner in tables that the question may deny, in words that are not theirs."""
    beside = [table for table in tables if table in plan.left_out]  # they repeat rows: those of things, or of deeds
    inside = (
        [] if beside else [one for one in tables if one in plan.tables and not (plan.is_anchored and one == plan.start)]
    )
    ways = [f"found.only({plan.start!r}, {table!r}), then merge(plan.lacking({table!r}))" for table in beside]
    ways += [f"merge(plan.lacking({table!r}))" for table in inside]
    if ways:
        partner = f": each row has a partner in {' and '.join(inside)}" if inside else ""
        warn(
            f"the question denies something that no table is called{partner}. Rows without one: "
            f"{'; or '.join(ways[:_MAX_EXAMPLES])}",
            DoubtfulJoinWarning,
        )


def say_taken_as_denied(plan: JoinPlan) -> None:
    """Warn of rows without a partner in a table that the question denies in words that are not the table's."""
    warn(
        f"{plan.sentence_of_absence}: the question denies something that no table is called. merge(how='inner') gives "
        "the rows that have one",
        DoubtfulJoinWarning,
    )


def say_all_denied(tables: Sequence[str], others: Sequence[str]) -> None:
    """Warn of a question that wants rows without a partner in the only tables that were found."""
    ways = [f"found.add({table!r})" for table in others[:_MAX_EXAMPLES]]
    warn(
        f"the question wants rows without one in {' and '.join(tables)}, and no other table is found: these are the "
        f"rows there. Add the table of the wanted rows: {'; or '.join(ways)}",
        DoubtfulJoinWarning,
    )


def say_at_once(column: str, cells: Sequence[Any], key: str) -> None:
    """Warn of cells of a column that the question wants a thing to have at once, although a row has one of them."""
    warn(
        f"a row has one {column}, so none is both {' and '.join(map(repr, cells))}. By {key}: "
        f"frame[frame[{column!r}].isin({cells!r})].groupby({key!r})[{column!r}].nunique() == {len(cells)}",
        DoubtfulJoinWarning,
    )


def say_weak_absence(plan: JoinPlan) -> None:
    """Warn of rows that count as present because of a key that repeats on both sides: it may be a part of the key."""
    for step in plan.steps:
        if step.table in plan.absent and step.cardinality == "many-to-many":
            warn(
                f"{plan.sentence_of_absence}: compared by {step}, which repeats in both tables, so it may be a part of "
                f'the key. Name all of it: on="{text_of(step.oriented, plan.named)} and …"',
                DoubtfulJoinWarning,
            )


def say_all_or_none(plan: JoinPlan, rows: int) -> None:
    """Warn if the tables that rows shall lack have a row for each of them, or for none."""
    which = "no row has" if rows else "every row has"
    warn(f"{plan.sentence_of_absence}: {which} a partner there. {_OTHER_KEYS}", DoubtfulJoinWarning)


def say_filter_of_absent(plan: JoinPlan, named: Mapping[str, Any], denied: Mapping[str, Any]) -> None:
    """Warn of cells that the question names in tables that rows shall lack, and which of them choose the rows there
    that count."""
    way = f". To count only those rows as present, merge(where={named!r})"
    if denied:
        way = f", so only rows with {denied!r} count as present. merge(where=…) with other conditions counts others"
    warn(f"{plan.sentence_of_absence}: the question names cells there{way}", DoubtfulJoinWarning)


def is_unnamed(key: KeyPair) -> bool:
    """Whether an inferred key rests on values, with hardly any support from names."""
    names = [{column.casefold() for column in columns} for columns in (key.left_columns, key.right_columns)]
    if names[0] == names[1] and not any(map(is_attribute, names[0])):
        return False
    if key.evidence.chance is None or key.evidence.name >= FAINT_NAME:
        return False
    return key.evidence.chance > _MAX_ACCIDENT or not _share_a_word(key)


def _share_a_word(key: KeyPair) -> bool:
    """Whether both sides (names of column and table) have a meaningful word in common."""
    mine, theirs = (
        {word for name in (table.rpartition(".")[2], *columns) for word in words(name)}
        for table, columns in ((key.left_table, key.left_columns), (key.right_table, key.right_columns))
    )
    return any(len(word) > 1 for word in (mine & theirs) - KEY_WORDS - GENERIC)


def equally_likely(plan: JoinPlan) -> tuple[str, ...]:
    """Each plan that is as likely as this one, in a line: the steps that only it has, and their chance."""
    from tagframe.display import alternative_lines

    found: list[str] = []
    for other in plan.ambiguous:
        shared = {step.key for step in other.steps}
        common = tuple(step for step in plan.steps if step.key in shared)
        found += alternative_lines(replace(plan, steps=common, alternatives=(other,), ambiguous=()))
    return tuple(found)


def say_ambiguity(plan: JoinPlan, reaction: Reaction) -> None:
    """Warn of, or refuse, a plan if others are equally likely.

    Raises:
        AmbiguousJoin: there are such plans, and ``reaction`` is "raise".
    """
    if not plan.ambiguous or reaction == "allow":
        return
    others = "; ".join(equally_likely(plan)[:_MAX_EXAMPLES])
    message = (
        f"the tables join in more than one way: on {'; '.join(map(str, plan.steps))}; equally likely: {others}. "
        f"Choose one with on={_OR_BOTH * _are_roles(plan)}"
    )
    if reaction == "raise":
        raise AmbiguousJoin(f"{message}, or take the first with on_ambiguous='allow'", [plan, *plan.ambiguous])
    warn(message, AmbiguousJoinWarning)


_OR_BOTH = ', or join both with roles="all"'


def _are_roles(plan: JoinPlan) -> bool:
    """Whether two columns of a table refer to the same column in the plan and in one that is as likely."""
    mine, theirs = ([step.key for one in plans for step in one.steps] for plans in ([plan], plan.ambiguous))
    return any(
        (key.left_table, key.right) == (other.left_table, other.right) and key != other
        for key in mine
        for other in theirs
    )


def refuse_inexact(name: str, keys: pd.Series) -> None:
    """Refuse keys that may have been rounded: floats so large that several integers share one.

    Args:
        name: ``table.column``, for the message.
        keys: the column.

    Raises:
        InexactKeys: there are such keys.
    """
    dtype: Any = getattr(keys.dtype, "numpy_dtype", keys.dtype)
    if not isinstance(dtype, np.dtype) or dtype.kind != "f":
        return
    values = keys.to_numpy(dtype=dtype, na_value=np.nan)
    limit = 2.0 ** (np.finfo(dtype).nmant + 1)
    rounded = values[np.isfinite(values) & (np.abs(values) >= limit)]
    if len(rounded):
        are = counted(len(rounded), f"key of {name} is a float", f"keys of {name} are floats")
        raise InexactKeys(
            f"{are} of {limit:,.0f} and more (for example {rounded[0]:.0f}). There {dtype} rounds integers, so "
            "different keys look equal. Read the column as 'Int64', which can hold missing values, or as text"
        )


def say_coercion(step: JoinStep, coerced: int, rows: int, example: tuple[Any, Any] | None) -> None:
    """Warn of rows that match only in canonical form, with an example if their keys do not look alike."""
    such = ""
    if example is not None:
        such = f", for example {example[0]!r} and {example[1]!r}"
    warn(
        f"{coerced:,} of {counted(rows, 'row matches', 'rows match')} on {step} only after coercion: the keys are "
        f"written differently{such}",
        CoercedKeysWarning,
    )


def say_written_otherwise(step: JoinStep, alone: int, example: tuple[Any, Any]) -> None:
    """Warn of texts without a partner that would have one in canonical form."""
    such = f" (for example {example[0]!r} and {example[1]!r})"
    warn(
        f"{counted(alone, 'row finds', 'rows find')} no partner on {step}, but texts on the other side may mean the "
        f"same{such}. If they do, write them alike",
        DoubtfulJoinWarning,
    )


def loss(start: str, lost: int, rows: int) -> str:
    """The sentence that says how many rows of the start table are lost."""
    if rows == 1:
        return f"{lost:,} of 1 row of {start} has no partner and is not in the result"
    return f"{lost:,} of {rows:,} rows of {start} have no partner and are not in the result"


def say_loss(start: str, lost: int, rows: int, examples: pd.DataFrame | None) -> None:
    """Warn of lost rows of the anchor, and show up to three of them if they are at hand."""
    such = ""
    if examples is not None and len(examples.columns):
        rows_of = examples.head(_MAX_EXAMPLES).to_dict("records")
        texts = (", ".join(f"{name} {value!r}" for name, value in row.items()) for row in rows_of)
        such = f", for example {'; '.join(texts)}"
    warn(f"{loss(start, lost, rows)}{such}. how='left' keeps them", RowsLostWarning)


def say_unmatched(steps: Sequence[JoinStep]) -> None:
    """Warn of steps in which no row found a partner."""
    if steps:
        warn(f"no row finds a partner on {_with_chances(steps)}. {_OTHER_KEYS}", DoubtfulJoinWarning)


def fan_out(plan: JoinPlan, step: JoinStep, rows: int, most: int, *, other: str = "", copies: int = 0) -> str:
    """The message of a step that would repeat rows, and how to avoid it.

    ``other`` is a way to join that repeats none; ``copies`` is the number of rows of the step's table that are exact
    copies of others, if only these repeat keys.
    """
    message = (
        f"joining {step.table} on {step} would repeat {counted(rows, 'row')} of {plan.start}, {most:,} times at most. "
        "They are in .rows of this error. Pass on_fanout='allow' if the repetition is intended, or"
    )
    if copies:
        are = counted(copies, "row is an exact copy of another", "rows are exact copies of others")
        return f"{message} distinct=True to count exact copies once: keys of {step.table} repeat because {are}"
    if other:
        return f"{message} {other}"
    way, first = ways_to_aggregate(plan.by_id[step.table], step.columns, plan.name_of(step.table))
    aggregate = f"give {step.table} one row per key: merge(…, {way}), or {first}"
    still = [again for again in plan.restarted(step.table).steps if again.grows]
    if not still:
        return f"{message} start from {step.table}, plan.restarted({step.table!r}), or {aggregate}"
    return f"{message} {aggregate}. A start from {step.table} would repeat its rows too, because of {still[0].table}"


def narrowed(table: str, conditions: Mapping[str, Any], rows: int, chosen: int) -> str:
    """The warning of a merge that repeats rows of a table unless its rows are filtered as the question says."""
    return (
        f"the result repeats rows of every table, {counted(rows, 'row')} in all. The question names a filter by which "
        f"each row of {table} is there at most once, {counted(chosen, 'row')}: merge(where={dict(conditions)!r})"
    )


def nearly_unique(plan: JoinPlan, step: JoinStep, again: int, rows: int) -> str:
    """The warning of a merge that repeats rows because some keys of a table are there twice."""
    return (
        f"{', '.join(step.columns)} repeats in {again:,} of {rows:,} rows of {step.table}, and so do the rows of "
        f"{plan.start} that refer to these. aggregate={{{plan.name_of(step.table)!r}: 'first'}} takes the first of each"
    )


def once_is_enough(rows: int) -> str:
    """The warning of a merge that repeats rows for a question about different things, or the largest one."""
    return (
        f"the result repeats rows of every table, {counted(rows, 'row')} in all. The question asks for different "
        "things, or the largest or smallest: frame[column].nunique(), max() and min() are right, and a sum is not"
    )


def too_many_rows(step: JoinStep, rows: int, most: int) -> str:
    """The refusal of a step that repeats so many rows that the result would not fit."""
    return (
        f"joining {step.table} on {step} would give {rows:,} rows, more than {most:,} cells: the columns are hardly a "
        f'key. Pass another key, on="a.x = b.y", a filter, where=, or columns= for fewer columns'
    )


def wider(plan: JoinPlan, step: JoinStep, more: Sequence[tuple[str, str]]) -> str:
    """How to join a table on more columns: each is the column of the base, and the column like it."""
    mine, theirs = zip(*more, strict=True)
    key = step.oriented
    key = replace(key, left_columns=(*key.left_columns, *mine), right_columns=(*key.right_columns, *theirs))
    columns = " and ".join(theirs)
    return f'join on {columns} too, so that no row is repeated: on="{text_of(key, plan.named)}"'


def versions(plan: JoinPlan, step: JoinStep, read: Callable[[list[str]], pd.DataFrame]) -> str:
    """How to join a table of versions: as of a moment, or only its current rows; "" for a table without versions.

    ``read`` gives columns of the table. Periods that touch (the end of one is the start of the next) exclude their end.
    """
    table, base = plan.source(step.table), plan.source(step.base)
    columns = {version_column(column): column for column in reversed(table.columns) if column not in step.columns}
    start, end, current = (columns.get(kind) for kind in ("start", "end", "current"))
    if step.key.signs or not has_versions(table.columns):
        return ""
    rows = read([*step.columns, *(column for column in (start, end) if column is not None)])
    sentence = f"the rows of {table.id} are versions:"
    if start is not None:
        moments = [c for c in base.columns if {*words(c)} & {*CALENDAR, "at", "on"} and c not in step.base_columns]
        moment = f"{base.called}.{moments[0] if moments else 'DAY'}"
        then = f"{moment} >= {table.called}.{start}"
        if end and _touch(rows, step.columns, start, end):
            then += f" and {moment} < {table.called}.{end}"
        elif end:
            then = f"{moment} between {table.called}.{start} and {table.called}.{end}"
        sentence += f' join the version of the day, on="{text_of(step.oriented, plan.named)} and {then}", or'
    elif "number" in columns:
        sentence += f" join on {columns['number']} too, or"
    if current is not None:
        return f"{sentence} only the current ones, {table.name}[{table.name}[{current!r}] == …]"
    today = _open_end(table.name, end, rows[end]) if end else f"the last of each {', '.join(step.columns)}"
    return f"{sentence} only the current ones, {today}"


def _touch(rows: pd.DataFrame, keys: Sequence[str], start: str, end: str) -> bool:
    """Whether a period of a key starts at the end of another."""
    ends = rows[[*keys, end]].dropna().rename(columns={end: start}).drop_duplicates()
    return bool(len(ends)) and len(ends.merge(rows[[*keys, start]].dropna(), on=[*keys, start])) > 0


def _open_end(name: str, end: str, ends: pd.Series) -> str:
    """The expression of the rows whose period is open: it ends in nothing, or in the last of all days."""
    if ends.isna().any():
        return f"{name}[{name}[{end!r}].isna()]"
    return f"{name}[{name}[{end!r}] == {name}[{end!r}].max()]"


def key_columns(plan: JoinPlan) -> Sequence[str]:
    """The columns on which the start table is joined."""
    return [*dict.fromkeys(column for step in plan.steps if step.base == plan.start for column in step.base_columns)]
