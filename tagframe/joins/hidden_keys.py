"""Hidden columns in plans: the joins that are refused because the matching rows would reveal hidden cells.

A result contains neither a hidden column nor the other column of its key (:mod:`tagframe.joins.steps`). But the
rows that match reveal something, too. If both columns of a pair are hidden, they may be joined by equality, because
nobody reads either. If one is visible, the pair must be a key of identifiers: declared, given by a person, or with a
chance of more than one half. Dates and amounts are refused, and so are frames that the caller brings along, because
both serve to look values up. A hidden column can be compared by equality only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tagframe.corpus import ColumnProfile, Corpus
from tagframe.corpus.corpus import fact_store, under
from tagframe.corpus.references import Column
from tagframe.engines.frames import FrameEngine
from tagframe.errors import HiddenColumn
from tagframe.joins.infer import keys_without_hidden_cells
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import JoinStep, PlanTable, known_by
from tagframe.keys.column_names import is_measure
from tagframe.keys.inference import was_only_run


def as_hidden_now(plan: JoinPlan, corpus: Corpus, *, for_models: bool = False) -> JoinPlan:
    """The plan and its alternatives, with the columns hidden that the corpus hides now.

    Args:
        plan: how the tables are joined.
        corpus: of the tables.
        for_models: also hide the columns that are hidden from models.
    """
    return plan.with_sources(lambda source: _now(source, corpus, for_models))


def _now(source: PlanTable, corpus: Corpus, for_models: bool) -> PlanTable:
    parts = tuple(_now(part, corpus, for_models) for part in source.parts)
    ids = [id for id in (source.table, *(part.id for part in parts)) if id in corpus]
    if not ids:
        return replace(source, parts=parts) if parts != source.parts else source
    columns = [column for id in ids for column in corpus.profile(id).columns]
    hidden = _named(source, [one for one in columns if one.hidden or (for_models and one.unprompted)])
    unprompted = _named(source, [one for one in columns if one.unprompted and not for_models])
    known = source.known_by
    if fact_store(corpus).hidden.withheld:  # needed only if a column is hidden
        names = {name.casefold() for id in ids for name in known_by(corpus.profile(id))}
        known = tuple(name for name in source.columns if name.casefold() in names)
    told = (parts, hidden, unprompted, known)
    if told == (source.parts, source.hidden_by_user, source.unprompted, source.known_by):
        return source
    return replace(source, parts=parts, hidden_by_user=hidden, unprompted=unprompted, known_by=known)


def _named(source: PlanTable, columns: list[ColumnProfile]) -> tuple[str, ...]:
    """The columns of a table with these names; for a stack, in any letter case."""
    names = {column.name for column in columns}
    if not source.parts:
        return tuple(filter(names.__contains__, source.columns))
    folded = {name.casefold() for name in names}
    return tuple(name for name in source.columns if name.casefold() in folded)


def refuse_telling(plan: JoinPlan, corpus: Corpus) -> None:
    """Refuse a plan whose matching rows would reveal hidden cells.

    Raises:
        HiddenColumn: there is such a step; the message says the way out.
    """
    sources = plan.by_id
    if not any(source.hidden_by_user for source in plan.sources):
        return
    for step in plan.steps:
        for mine, sign, theirs in step.comparisons:
            ends = (step.base, mine), (step.table, theirs)
            told = [end for end in ends if end[1] in sources[end[0]].hidden]
            if not told:
                continue
            secret = [end for end in told if end[1] in sources[end[0]].hidden_by_user]
            pair = f" {sign} ".join(_said(end, sources) for end in ends)
            _check(step, pair, sign, secret, [end for end in ends if end not in secret], sources, corpus)


def _check(
    step: JoinStep,
    pair: str,
    sign: str,
    secret: list[Column],
    open_ends: list[Column],
    sources: dict[str, PlanTable],
    corpus: Corpus,
) -> None:
    name = _said(secret[0], sources) if secret else "a column that is joined to these"
    for end in secret:
        if any(one.unjoined for one in _profiles(end, sources, corpus)):
            raise HiddenColumn(
                f"{_said(end, sources)} is hidden with joinable=False, so no table joins on it. "
                f"corpus.hide({_said(end, sources)!r}) allows joins"
            )
    if sign != "=":
        raise HiddenColumn(
            f"{name} is hidden, and the rows that match {pair} would reveal its cells. Tables join on hidden columns "
            "by = only"
        )
    if not open_ends:
        return
    others = " and ".join(_said(end, sources) for end in open_ends)
    way = f"If you hide the other column too, they join: corpus.hide({_said(open_ends[0], sources)!r})"
    for end in (*secret, *open_ends):
        for column in _profiles(end, sources, corpus):
            if column.family in ("date", "real") or is_measure(column.name):
                raise HiddenColumn(
                    f"{name} is hidden, and the rows that match {pair} would reveal its cells: {_said(end, sources)} "
                    f"is a date or an amount, not an identifier. {way}"
                )
    if secret and any(_is_brought(end, secret[0], sources, corpus) for end in open_ends):
        raise HiddenColumn(
            f"{name} is hidden, and {others} belongs to a frame outside the corpus: its matching rows would reveal "
            "cells. corpus.show makes the hidden column visible to everybody"
        )
    if not _is_key(step, pair, sources, corpus):
        raise HiddenColumn(
            f"{name} is hidden, and {pair} is not a likely key: the rows that match would reveal its cells. If it is a "
            f"key, corpus.keys.add({pair!r}). {way}"
        )


def _said(end: Column, sources: dict[str, PlanTable]) -> str:
    """A column of the table itself, whatever its role."""
    return f"{sources[end[0]].table}.{end[1]}"


def _ids(table: str, sources: dict[str, PlanTable]) -> list[str]:
    return [part.id for part in sources[table].parts] or [sources[table].table]


def _profiles(end: Column, sources: dict[str, PlanTable], corpus: Corpus) -> Iterator[ColumnProfile]:
    """The column in its table, or in each of the tables that are stacked."""
    for id in _ids(end[0], sources):
        if id in corpus:
            yield from (one for one in corpus.profile(id).columns if one.name.casefold() == end[1].casefold())


def _is_brought(end: Column, secret: Column, sources: dict[str, PlanTable], corpus: Corpus) -> bool:
    """Whether a column is of a frame outside the corpus: not the hidden one's, nor one of its tables."""
    mine, theirs = (corpus.engine(_ids(one[0], sources)[0]) for one in (secret, end))
    below = under(corpus)
    return (
        isinstance(theirs, FrameEngine) and theirs is not mine and (below is None or sources[end[0]].table not in below)
    )


def _is_key(step: JoinStep, pair: str, sources: dict[str, PlanTable], corpus: Corpus) -> bool:
    """Whether two columns are a pair of a key that is declared, given by a person, or found in what is not hidden."""
    if step.key.evidence.origin == "declared":
        return True
    tables = [*_ids(step.base, sources), *_ids(step.table, sources)]
    names = {id: sources[end].table for end in (step.base, step.table) for id in _ids(end, sources)}
    for key in keys_without_hidden_cells(corpus, tables):
        if was_only_run(key) or not key.tables <= names.keys():
            continue
        ends = names[key.left_table], names[key.right_table]
        for mine, _, theirs in key.comparisons:
            sides = f"{ends[0]}.{mine}", f"{ends[1]}.{theirs}"
            if pair.casefold() in {" = ".join(sides).casefold(), " = ".join(sides[::-1]).casefold()}:
                return True
    return False
