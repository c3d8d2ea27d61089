"""Whether matched rows agree in another column that their tables share.

Example: rates are looked up by day only, although they also depend on the currency. Every invoice in another currency
then gets a wrong rate. The joined rows have the values of both columns, so they are compared there, wherever the join
ran.

Most columns that two tables share are no evidence: both have a status, a name, notes. A shared column is evidence if it
says which row is meant and the key does not. There are three such cases. The right column of the key does not identify
the rows of its table (rates by day, prices by product). The right table holds one period of several. Or the key has the
same name in both tables, and each of its values occurs once on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical_all
from tagframe.corpus.references import Column
from tagframe.errors import DoubtfulJoinWarning, counted
from tagframe.joins.direct import PERIODS, is_kind
from tagframe.joins.key_text import text_of
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import JoinStep, PlanTable
from tagframe.keys import column_names as names
from tagframe.keys.key_pair import KeyPair, is_unnamed
from tagframe.keys.matching import hashable
from tagframe.merging import advice

_MIN_DIFFERING_SHARE = 0.05
"""If a smaller share of the matched rows differs, the differences are mistakes in the data."""
_MIN_COMMON_SHARE = 0.5
"""Two columns mean the same kind of thing if they share at least this much of the smaller one's values."""
_MIN_VALUES_ONCE = 5
"""Values that are shared and occur once on each side identify rows if there are at least this many."""


@dataclass(frozen=True)
class Shared:
    """A column that both tables of a step have and that is not part of the key.

    Attributes:
        step: the step of the plan.
        mine, theirs: (table id, column) in the table joined before, and in the new table.
        says_which: whether the key may leave open which row is meant, so that this column may decide it.
        alike: whether both sides of the key have the same name.
    """

    step: JoinStep
    mine: Column
    theirs: Column
    says_which: bool
    alike: bool

    @property
    def keys(self) -> list[Column]:
        """The key columns of the step, in the table joined before."""
        return [(self.step.base, column) for column in self.step.base_columns]


def columns_there(plan: JoinPlan, corpus: Corpus) -> set[Column]:
    """The columns of a plan that the corpus still has; for stacks, all of their columns."""
    return {
        (source.id, column)
        for source in plan.sources
        for column in (
            source.columns if source.parts else (column.name for column in corpus.profile(source.id).columns)
        )
    }


def shared_columns(plan: JoinPlan, corpus: Corpus) -> list[Shared]:
    """The shared columns in which matched rows may disagree, of those that the corpus still has."""
    there = columns_there(plan, corpus)
    sources = plan.by_id
    used = {
        (table, column)
        for step in plan.steps
        for table, columns in ((step.base, step.base_columns), (step.table, step.columns))
        for column in columns
    }
    found = []
    for step in plan.steps:
        base, table = sources[step.base], sources[step.table]
        if not step.key.evidence.is_guess or base.table == table.table:
            continue  # a given or declared key is taken as it is, and a table shares all columns with itself
        mine = {column.casefold(): column for column in base.columns}
        key = [column.casefold() for column in step.base_columns] == [column.casefold() for column in step.columns]
        known = any(_is_known_by(table.name, column, table.columns[0]) for column in step.columns)
        for column in table.columns:
            other = mine.get(column.casefold())
            pair = (step.base, str(other)), (step.table, column)
            if other is None or used & {*pair} or not _may_tell(column, alike=key) or not {*pair} <= there:
                continue
            found.append(Shared(step, *pair, not known and is_kind(column), key))
    return found


def alike(base: PlanTable, table: PlanTable) -> Iterator[tuple[str, str]]:
    """Columns with the same name in two tables that may be part of a key."""
    mine = {column.casefold(): column for column in base.columns}
    for column in table.columns:
        other = mine.get(column.casefold())
        if other is not None and not names.is_measure(column) and _may_tell(column, alike=True):
            yield other, column


def _is_known_by(table: str, column: str, first: str) -> bool:
    """Whether a column identifies the rows of a table: its name is that of the table's key, or of the table's rows."""
    if is_unnamed(table):
        return column == first and bool(names.column_name(column).key_word)
    return names.own(column, table) >= 0.5 or names.calls(column, table)


def _may_tell(column: str, *, alike: bool) -> bool:
    name = names.column_name(column)
    if not name.entity or names.is_saved_index(column) or {*name.words} & names.AUDIT:
        return False
    return is_kind(column) or {*name.words} <= PERIODS or (alike and not names.is_measure(column))


def disagreements(
    frame: pd.DataFrame, shared: Sequence[Shared], called: Mapping[Column, str]
) -> list[tuple[Shared, str]]:
    """The shared columns that differ in the joined rows, each with a sentence.

    Args:
        frame: the joined rows.
        shared: the shared columns of the plan.
        called: the name in the frame of each (table id, column).
    """
    found = []
    for one in shared:
        counts = _counted(frame[called[one.mine]], frame[called[one.theirs]], one)
        if counts is not None and names.column_name(one.theirs[1]).key_word and not _varies(frame, one, called):
            continue
        if counts is not None:
            differing, rows = counts
            column = one.theirs[1]
            found.append((one, f"{column} differs in {differing:,} of {counted(rows, 'matched row')} on {one.step}"))
    return found


def say(plan: JoinPlan, found: Sequence[tuple[Shared, str]]) -> None:
    """Warn if matched rows differ in a column that may be part of the key."""
    for shared, sentence in found:
        on = _with_column(shared, plan)
        advice.warn(f'{sentence}; if it is part of the key, pass on="{on}"', DoubtfulJoinWarning)


def _with_column(shared: Shared, plan: JoinPlan) -> str:
    """The key of a step and the shared column, as ``on=`` takes them."""
    step = shared.step
    key = KeyPair(step.base, (*step.base_columns, shared.mine[1]), step.table, (*step.columns, shared.theirs[1]))
    return text_of(key, plan.named)


def _varies(frame: pd.DataFrame, shared: Shared, called: Mapping[Column, str]) -> bool:
    """Whether rows with the same key have several values. If not, the column may be an attribute of the key."""
    keys = [hashable(frame[called[key]]) for key in shared.keys]
    value = hashable(frame[called[shared.mine]])
    return bool((value.groupby(keys).nunique() > 1).any())


def _counted(mine: pd.Series, theirs: pd.Series, shared: Shared) -> tuple[int, int] | None:
    """The number of rows that differ, and of rows with both values; None if they are no evidence."""
    if any(pd.api.types.is_float_dtype(one.dtype) or pd.api.types.is_bool_dtype(one.dtype) for one in (mine, theirs)):
        return None
    both = (mine.notna() & theirs.notna()).to_numpy()
    if not both.any():
        return None
    left, left_values = pd.factorize(hashable(mine[both]))
    right, right_values = pd.factorize(hashable(theirs[both]))
    is_number = all(pd.api.types.is_numeric_dtype(one.dtype) for one in (mine, theirs))
    if is_number and len(left) >= _MIN_VALUES_ONCE and len(left_values) == len(right_values) == len(left):
        return None  # both number rows
    left_forms, right_forms = (canonical_all(list(values))[0] for values in (left_values, right_values))
    code_of: dict[str | None, int] = {}
    left_codes, right_codes = (
        np.array([code_of.setdefault(form, len(code_of)) for form in forms], dtype=np.int64)
        for forms in (left_forms, right_forms)
    )
    rows, differing = len(left), int(np.count_nonzero(left_codes[left] != right_codes[right]))
    if differing < max(1.0, _MIN_DIFFERING_SHARE * rows):
        return None
    one, other = {*left_forms}, {*right_forms}
    common = len(one & other) / min(len(one), len(other))
    is_slice = len(other) == 1 < len(one) and common == 1.0 and {*names.column_name(shared.theirs[1]).words} <= PERIODS
    each_once = shared.alike and min(len(one), len(other)) >= max(_MIN_VALUES_ONCE, 0.95 * rows) and common == 1.0
    if is_slice or each_once or (shared.says_which and common >= _MIN_COMMON_SHARE):
        return differing, rows
    return None
