"""Merges on hidden columns: what they keep back, and what is refused since the rows that match would tell cells.

No result has a hidden column, nor the other column of a key that it is part of (:mod:`tagframe.joins.withholding`). But
which rows match tells something, too. Two columns that are both hidden may be made equal, as nobody reads either. Where
one of them is open, a hidden column is joined on by a key only: one that is declared, told by a person or likelier true
than not, of identifiers. A date or an amount is none; nor is a pair of columns that somebody chose in order to look
values up, or a frame that somebody brought along. No comparison but equality is of a hidden column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tagframe.corpus import ColumnProfile, Corpus
from tagframe.corpus.corpus import knowledge_of, under
from tagframe.corpus.references import Column
from tagframe.engines.frame_engine import FrameEngine
from tagframe.errors import HiddenColumn
from tagframe.joins.infer import accepted_keys
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import JoinStep, PlanTable, known_by
from tagframe.keys.column_names import is_measure
from tagframe.keys.inference import ACCEPTED, was_only_run


def as_hidden_now(plan: JoinPlan, corpus: Corpus, *, for_models: bool = False) -> JoinPlan:
    """The plan over tables of which those columns are hidden that the corpus hides now, its other ways too.

    Args:
        plan: how the tables are joined.
        corpus: of the tables.
        for_models: whether what is hidden from models is hidden, too.
    """
    return plan.with_sources(lambda source: _now(source, corpus, for_models))


def _now(source: PlanTable, corpus: Corpus, for_models: bool) -> PlanTable:
    parts = tuple(_now(part, corpus, for_models) for part in source.parts)
    ids = [id for id in (source.id, *(part.id for part in parts)) if id in corpus]
    if not ids:
        return replace(source, parts=parts) if parts != source.parts else source
    columns = [column for id in ids for column in corpus.profile(id).columns]
    hidden = _named(source, [one for one in columns if one.hidden or (for_models and one.unprompted)])
    unprompted = _named(source, [one for one in columns if one.unprompted and not for_models])
    known = source.known_by
    if knowledge_of(corpus).known.withheld:  # of no use where nothing is hidden
        names = {name.casefold() for id in ids for name in known_by(corpus.profile(id))}
        known = tuple(name for name in source.columns if name.casefold() in names)
    told = (parts, hidden, unprompted, known)
    if told == (source.parts, source.hidden_by_user, source.unprompted, source.known_by):
        return source
    return replace(source, parts=parts, hidden_by_user=hidden, unprompted=unprompted, known_by=known)


def _named(source: PlanTable, columns: list[ColumnProfile]) -> tuple[str, ...]:
    """The columns of a table that are called so; those of a stack in whatever case its parts call them."""
    names = {column.name for column in columns}
    if not source.parts:
        return tuple(filter(names.__contains__, source.columns))
    folded = {name.casefold() for name in names}
    return tuple(name for name in source.columns if name.casefold() in folded)


def refuse_telling(plan: JoinPlan, corpus: Corpus) -> None:
    """Refuse a plan in which the rows that match would tell cells of hidden columns.

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
            pair = f"{'.'.join(ends[0])} {sign} {'.'.join(ends[1])}"
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
    name = ".".join(secret[0]) if secret else "a column that these are joined to"
    for end in secret:
        if any(one.unjoined for one in _profiles(end, sources, corpus)):
            raise HiddenColumn(
                f"{'.'.join(end)} is hidden, and nothing joins on it, as it was hidden with joinable=False. "
                f"corpus.hide({'.'.join(end)!r}) lets tables join on it"
            )
    if sign != "=":
        raise HiddenColumn(
            f"{name} is hidden, and {pair} would tell its cells by the rows that match: tables join on hidden columns "
            "by = only"
        )
    if not open_ends:
        return
    others = " and ".join(".".join(end) for end in open_ends)
    way = f"corpus.hide({'.'.join(open_ends[0])!r}) hides the other column, too, and then they join"
    for end in (*secret, *open_ends):
        for column in _profiles(end, sources, corpus):
            if column.family in ("date", "real") or is_measure(column.name):
                raise HiddenColumn(
                    f"{name} is hidden, and {pair} would tell its cells by the rows that match: {'.'.join(end)} is a "
                    f"date or an amount, which identifies nothing. {way}"
                )
    if secret and any(_is_brought(end, secret[0], sources, corpus) for end in open_ends):
        raise HiddenColumn(
            f"{name} is hidden, and {others} is of a frame that was brought along: which of its rows match would tell "
            "cells. corpus.show shows the hidden column to everybody"
        )
    if not _is_key(step, pair, sources, corpus):
        raise HiddenColumn(
            f"{name} is hidden, and {pair} is no key that the data speak for: which rows match would tell its cells. "
            f"corpus.keys.add({pair!r}) says that it is one; {way}"
        )


def _ids(table: str, sources: dict[str, PlanTable]) -> list[str]:
    return [part.id for part in sources[table].parts] or [table]


def _profiles(end: Column, sources: dict[str, PlanTable], corpus: Corpus) -> Iterator[ColumnProfile]:
    """The column in its table, or in each of the tables that are stacked."""
    for id in _ids(end[0], sources):
        if id in corpus:
            yield from (one for one in corpus.profile(id).columns if one.name.casefold() == end[1].casefold())


def _is_brought(end: Column, secret: Column, sources: dict[str, PlanTable], corpus: Corpus) -> bool:
    """Whether a column is of a frame that its caller brought: it is neither the hidden one's nor stands for a table."""
    mine, theirs = (corpus.engine(_ids(one[0], sources)[0]) for one in (secret, end))
    below = under(corpus)
    return isinstance(theirs, FrameEngine) and theirs is not mine and (below is None or end[0] not in below)


def _is_key(step: JoinStep, pair: str, sources: dict[str, PlanTable], corpus: Corpus) -> bool:
    """Whether columns are a pair of a key that is declared, told by a person, or likelier true than not."""
    if step.key.evidence.origin != "given" and step.score >= ACCEPTED:
        return True
    tables = [*_ids(step.base, sources), *_ids(step.table, sources)]
    names = dict.fromkeys(_ids(step.base, sources), step.base) | dict.fromkeys(_ids(step.table, sources), step.table)
    for key in accepted_keys(corpus, tables):
        if was_only_run(key) or not key.tables <= names.keys():
            continue
        ends = names[key.left_table], names[key.right_table]
        for mine, _, theirs in key.comparisons:
            sides = f"{ends[0]}.{mine}", f"{ends[1]}.{theirs}"
            if pair.casefold() in {" = ".join(sides).casefold(), " = ".join(sides[::-1]).casefold()}:
                return True
    return False
