"""A plan that a model proposes, and what counts of the rows leave of it."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.canonical import canonical
from tagframe.corpus.references import Column, NamedTable, find_column, without_role
from tagframe.errors import (
    CorpusError,
    InvalidArgument,
    JoinError,
    RowsMultipliedWarning,
    TableNotFound,
    TagframeError,
    counted,
)
from tagframe.joins import JoinPlan, MergeHow, keys_on
from tagframe.keys.components import Components
from tagframe.keys.inference import ACCEPTED
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.matching import match_rows
from tagframe.logs import trial
from tagframe.merging.advice import heard

if TYPE_CHECKING:
    from tagframe.retrieval.retrieved import RetrievedTables

MOST_CELLS = 5_000_000
"""Key columns of more cells are not counted before a merge."""
DOUBTED = 0.7
"""The chance that a plan is right of which counts refused a key, or whose merge repeats rows with a warning, relative
to that of another plan."""
REFUSED = 0.1
"""The same if the merge is refused, or has no rows."""
_SOME = 0.1
"""A key by which a smaller share of the rows of both sides have partners is doubtful, although a model names it."""
_NOT_USED = "was not used"
_MOST_COMPARED = 20_000
"""Among more different cells, the nearest one is not looked for."""
_LONGEST, _LONGEST_ERROR = 160, 480


@dataclass(frozen=True)
class ModelPlan:
    """What a model answered.

    Attributes:
        tables: id and name in the answer of each table; twice the same id under two names: two roles.
        joins: keys, ``"a.x = b.y"``.
        without: names of the tables in which the wanted rows have no partner.
        exists: names of the tables of which it only matters that there is a partner.
        keeps: whether rows of the first table without a partner stay.
        where: conditions that leave one row for each key, ``"a.x = 1"``.
        missing: descriptions of what the question needs and no table has.
        maybe: ids of tables that might be needed.
        remarks: what was not understood.
    """

    tables: tuple[tuple[str, str], ...]
    joins: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    exists: tuple[str, ...] = ()
    keeps: bool = False
    where: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The tables, each once."""
        return tuple(dict.fromkeys(id for id, _ in self.tables))


@dataclass(frozen=True)
class Proposal:
    """How a model joins the found tables, as far as counts bear it out.

    Attributes:
        keys: that the plan has.
        keeps: whether rows of the first table without a partner stay.
        start: id of the table that the plan starts from; "" for the finest one.
        without: ids of the tables in which the wanted rows have no partner.
        where: conditions on joined rows, by table id and column.
        once: ids of the tables that are joined with the first row of each key only.
        remarks: what does not hold, and what was done instead.
    """

    keys: tuple[KeyPair, ...] = ()
    keeps: bool = False
    start: str = ""
    without: tuple[str, ...] = ()
    where: Mapping[Column, Any] = field(default_factory=dict)
    once: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def among(self, tables: Collection[str]) -> Proposal:
        """What it says of some of the tables, by id."""
        keys = tuple(key for key in self.keys if all(without_role(end, tables) in tables for end in key.tables))
        where = {column: value for column, value in self.where.items() if without_role(column[0], tables) in tables}
        without, once = (tuple(id for id in ids if id in tables) for ids in (self.without, self.once))
        return replace(self, keys=keys, without=without, where=where, once=once)

    def applied(self, plan: JoinPlan) -> JoinPlan:
        """The plan for the rows without a partner, if such are wanted."""
        with suppress(TableNotFound):
            start = plan.source(self.start).id if self.start and not plan.is_anchored else plan.start
            if start != plan.start:
                plan = replace(plan.restarted(start), left_out=plan.left_out, unconnected=plan.unconnected)
        there = []
        for id in self.without:
            with suppress(TableNotFound):
                there.append(plan.source(id).id)
        with suppress(InvalidArgument):
            return plan.lacking(*there) if there else plan
        return plan

    def how_of(self, plan: JoinPlan) -> MergeHow | None:
        """The kind of the joins; None for the default."""
        return None if plan.absent or not self.keeps else "left" if self.start else "right"

    def where_in(self, plan: JoinPlan) -> dict[str, Any]:
        """The conditions, with the names of the plan's tables."""
        found = {}
        for (table, column), value in self.where.items():
            with suppress(TableNotFound):
                found[f"{plan.source(table).id}.{column}"] = value
        return found


class _Rows:
    """Columns of a corpus's tables, read once; the pieces of a table as one."""

    def __init__(self, corpus: Corpus, groups: Mapping[str, Sequence[str]]) -> None:
        self._corpus, self._groups = corpus, groups
        self._known: dict[tuple[str, ...], pd.DataFrame | None] = {}

    def __call__(self, table: str, columns: Sequence[str]) -> pd.DataFrame | None:
        """The columns; None if the rows are not there, or too many."""
        own = without_role(table, self._corpus.ids)
        if (own, *columns) not in self._known:
            self._known[own, *columns] = self._read(self._groups.get(own, (own,)), list(dict.fromkeys(columns)))
        return self._known[own, *columns]

    def _read(self, ids: Sequence[str], columns: list[str]) -> pd.DataFrame | None:
        rows = [self._corpus.profile(id).rows for id in ids]
        if None in rows or sum(filter(None, rows)) * len(columns) > MOST_CELLS:
            return None
        with suppress(CorpusError):
            return pd.concat([self._corpus.read(id, columns) for id in ids], ignore_index=True)
        return None


def checked(corpus: Corpus, plan: ModelPlan, groups: Mapping[str, Sequence[str]]) -> tuple[Proposal, dict[Column, Any]]:
    """What counts leave of a model's plan, and the conditions that it gives.

    A key without a common value is refused, and so is one that closes a circle. Of columns that nobody can count
    (only names are known, or the rows are too many) the model is believed.

    Args:
        corpus: of the tables.
        plan: as the model answered.
        groups: the id of each piece of a table → the ids of all its pieces that are joined.
    """
    named = _named(corpus, plan)
    rows = _Rows(corpus, groups)
    keys, remarks = _keys(plan.joins, named, rows)
    conditions, unfound = _conditions(plan.where, named, rows)
    by_name = {table.name: table.id for table in named} | {name: id for id, name in plan.tables}
    without, exists = (
        tuple(dict.fromkeys(without_role(by_name[name], corpus.ids) for name in names))
        for names in (plan.without, plan.exists)
    )
    of_absent = {column: value for column, value in conditions.items() if column[0] in without}
    remarks = [*plan.remarks, *remarks, *unfound]
    start = named[0].id if named else ""
    proposal = Proposal(tuple(keys), plan.keeps, start, without, of_absent, exists, tuple(remarks))
    return proposal, {column: value for column, value in conditions.items() if column not in of_absent}


def _named(corpus: Corpus, plan: ModelPlan) -> list[NamedTable]:
    """The tables under the names that the answer gives them; those named twice are roles."""
    found = []
    for id, name in plan.tables:
        profile = corpus.profile(id)
        table = NamedTable(id, profile.name, tuple(column.name for column in profile.for_prompts))
        is_role = [one for one, _ in plan.tables].count(id) > 1 and name.casefold() not in (profile.name.casefold(), id)
        found.append(table.as_role(name) if is_role else replace(table, parts=(name,)))
    return found


_CAST = re.compile(r"\bCAST\s*\(\s*(.+?)\s+AS\s+\w+\s*\)", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"]+)\"|`([^`]+)`")


def _bare(text: str) -> str:
    """A key or a column without SQL's casts and quotation marks."""
    return _QUOTED.sub(lambda match: match[1] or match[2], _CAST.sub(r"\1", text)).replace("==", "=").strip()


def _keys(joins: Sequence[str], named: Sequence[NamedTable], rows: _Rows) -> tuple[list[KeyPair], list[str]]:
    """The keys that hold, and remarks on the others. Pairs of columns of the same two tables are one key."""
    good: list[str] = []
    found: list[KeyPair] = []
    remarks: list[str] = []
    for text in map(_bare, joins):
        try:
            found = keys_on([*good, text], named)
            good.append(text)
        except TagframeError as error:
            remarks.append(f"its key {text[:_LONGEST]!r} {_NOT_USED}: {error}"[:_LONGEST_ERROR])
    keys: list[KeyPair] = []
    parts = Components(table.id for table in named)
    for key in found:
        checked_key = _counted(key, rows)
        if isinstance(checked_key, str):
            remarks.append(f"its key {key.left} = {key.right} {_NOT_USED}: {checked_key}")
        elif parts.join(*key.tables):
            keys.append(checked_key)
        else:
            remarks.append(f"its key {key.left} = {key.right} {_NOT_USED}: other keys join these tables already")
    return keys, remarks


def _counted(key: KeyPair, rows: _Rows) -> KeyPair | str:
    """The key with its counts, from the side that repeats to the other; or why it does not hold."""
    left, right = rows(key.left_table, key.left_columns), rows(key.right_table, key.right_columns)
    if left is None or right is None or not len(left) or not len(right) or key.signs:
        return replace(key, evidence=Evidence(origin="model", name=1.0, reason="named by the model, not counted"))
    mine, theirs = [left[one] for one in key.left_columns], [right[one] for one in key.right_columns]
    there, back = match_rows(mine, theirs), match_rows(theirs, mine)
    shares = [(one.counts > 0).sum() / max((~one.nulls).sum(), 1) for one in (there, back)]
    if not shares[0]:
        cells = [repr(cell)[:_LONGEST] for side in (mine, theirs) for cell in side[0].dropna().head(1).tolist()]
        return f"none of {counted(len(left), 'row')} has a partner ({' beside '.join(cells)})"
    if there.partners is not None and back.partners is None:
        key, shares = key.reversed(), shares[::-1]
        there = back
    reason = f"named by the model, {shares[0]:.0%} of the rows found" + ", target unique" * (there.partners is None)
    evidence = Evidence(origin="model", contained=float(shares[0]), covered=float(shares[1]), name=1.0, reason=reason)
    share = float(max(shares))
    return replace(key, score=max(share, ACCEPTED) if share >= _SOME else share, evidence=evidence)


# --- conditions -------------------------------------------------------------------------------------------------------

_CONDITION = re.compile(r"(.+?)\s*(<=|>=|==|=|<|>|(?<!\w)(?:in|is)(?!\w))\s*(.+)", re.IGNORECASE | re.DOTALL)


def _conditions(texts: Sequence[str], named: Sequence[NamedTable], rows: _Rows) -> tuple[dict[Column, Any], list[str]]:
    """The conditions by column, spelled as the cells are, and remarks on those that nothing meets."""
    found: dict[Column, Any] = {}
    remarks = []
    for text in texts:
        parts = _CONDITION.fullmatch(text.strip())
        try:
            if parts is None:
                raise InvalidArgument('a condition is "table.column = value"')
            column, value, sign = find_column(_bare(parts[1]), named), _value(parts[3]), parts[2]
            found[column] = (sign, value) if sign[0] in "<>" else _as_stored(column, value, rows)
        except TagframeError as error:
            remarks.append(f"its condition {text[:_LONGEST]!r} {_NOT_USED}: {error}"[:_LONGEST_ERROR])
    return found, remarks


def _value(text: str) -> Any:
    """The value of a literal; other text as it is."""
    text = text.strip().rstrip(";")
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text)
        return [*value] if isinstance(value, tuple | set | list) else value
    return text.strip("\"'`")


def _as_stored(column: Column, value: Any, rows: _Rows) -> Any:
    """The cell, or the cells, that a value means.

    Raises:
        InvalidArgument: there is none; the message has the nearest one.
    """
    table = rows(column[0], [column[1]])
    if table is None:
        return value
    cells = table[column[1]].dropna().unique().tolist()
    known = {canonical(str(cell))[0]: cell for cell in reversed(cells)}
    wanted = value if isinstance(value, list) else [value]
    stored = [known.get(canonical(str(one))[0], _only_with(str(one), cells)) for one in wanted]
    if None in stored:
        lone = str(wanted[stored.index(None)])
        near = difflib.get_close_matches(lone, map(str, cells[:_MOST_COMPARED]), n=1, cutoff=0.0)
        nearest = f"; the nearest is {near[0][:_LONGEST]!r}" if near else ""
        raise InvalidArgument(f"no cell of {column[0]}.{column[1]} is {lone[:_LONGEST]!r}{nearest}")
    return stored if isinstance(value, list) else stored[0]


def _only_with(text: str, cells: Sequence[Any]) -> Any:
    """The only cell that has a text in it as words; None if there is none, or several."""
    word = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
    having = [cell for cell in cells[:_MOST_COMPARED] if isinstance(cell, str) and word.search(cell)]
    return having[0] if len(having) == 1 else None


# --- what the merge gives ---------------------------------------------------------------------------------------------


def settled(
    found: RetrievedTables, proposal: Proposal, plan: ModelPlan, conditions: Mapping[Column, Any]
) -> RetrievedTables:
    """The found tables with a proposal: with the conditions without which the merge repeats rows, and what it counts.

    Args:
        found: the tables.
        proposal: for them.
        plan: as the model answered.
        conditions: that it gives.
    """
    confidence = found.confidence
    if confidence is not None and any(remark.startswith("its key") for remark in proposal.remarks):
        confidence *= DOUBTED
    found = replace(found, proposal=proposal, confidence=confidence)
    try:
        joined = found.join_plan
    except TagframeError as error:
        if proposal.keys:  # without them, the tables may join by the keys of their data
            remark = f"its keys were not used: {error}"[:_LONGEST_ERROR]
            proposal = replace(proposal, keys=(), remarks=(*proposal.remarks, remark))
            return settled(found, proposal, plan, conditions)
        return _with(found, proposal, f"its tables cannot be joined: {error}"[:_LONGEST_ERROR], REFUSED)
    if proposal.without and not joined.absent:
        remark = f"rows without a row in {' and '.join(proposal.without)} cannot be given"
        return _with(found, proposal, remark, REFUSED)
    tables = [part.table for source in joined.sources for part in source.parts or (source,)]
    sizes = [found.corpus.profile(table).rows for table in tables]
    if None in sizes or not 0 < sum(filter(None, sizes)) <= MOST_CELLS or len(tables) == 1:
        return replace(found, proposal=replace(proposal, start="", once=()))
    return _tried(found, proposal, conditions)


def _tried(found: RetrievedTables, proposal: Proposal, conditions: Mapping[Column, Any]) -> RetrievedTables:
    """The tables with the first way to merge that neither repeats rows nor is refused, or the least doubtful one.

    From the first table alone, then with the conditions, with one row of a table that has to exist; and if all that is
    refused, from the finest table.
    """
    best, trouble, share, why = proposal, "", 0.0, ""
    for start, once, where in product(
        dict.fromkeys([proposal.start, ""]),
        dict.fromkeys([(), proposal.once]),
        [{}, conditions] if conditions else [{}],
    ):
        if start != proposal.start and share >= DOUBTED:
            break  # from the finest table, rows of the first would repeat unsaid
        way = replace(proposal, start=start, once=once, where={**proposal.where, **where})
        text, left = _trouble(replace(found, proposal=way))
        if left > share:
            best, trouble, share = way, text, left
        why = why or text.partition(". ")[0]
        if not text:
            break
    listed = " and ".join(f"{table}.{column} = {value!r}" for (table, column), value in conditions.items())
    remarks = []
    if conditions and best.where == proposal.where:
        remarks.append(f"rows are not filtered by {listed}: no join needs it")
    elif conditions:
        remarks.append(f"where={listed} is applied, for without it {why}")
    if best.once:
        remarks.append(f"of {' and '.join(best.once)} one row of each key is joined, for {why}")
    if trouble:
        remarks.append(trouble)
    best = replace(best, remarks=(*best.remarks, *remarks))
    return replace(found, proposal=best, confidence=None if found.confidence is None else found.confidence * share)


def _trouble(found: RetrievedTables) -> tuple[str, float]:
    """Why the merge is refused, or that it repeats rows or has none, and the chance that is left; "", 1 if not."""
    start = found.join_plan.sources[0]
    with heard() as remarks, trial():
        try:
            frame = found.merge(columns=[f"{start.id}.{start.columns[0]}"])
        except (JoinError, CorpusError) as error:
            return str(error)[:_LONGEST_ERROR], REFUSED
    if not len(frame):
        return "no row is left", REFUSED
    again = [text for text, category in remarks if issubclass(category, RowsMultipliedWarning)]
    return (again[0][:_LONGEST_ERROR], DOUBTED) if again else ("", 1.0)


def _with(found: RetrievedTables, proposal: Proposal, remark: str, share: float = 1.0) -> RetrievedTables:
    """The found tables with a proposal and one more remark, and a confidence that is lower by a share."""
    confidence = None if found.confidence is None else found.confidence * share
    return replace(found, proposal=replace(proposal, remarks=(*proposal.remarks, remark)), confidence=confidence)
