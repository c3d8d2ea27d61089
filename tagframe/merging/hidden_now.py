"""What is hidden when a plan is run, whenever it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tagframe.corpus import Corpus
from tagframe.joins.plan import JoinPlan
from tagframe.joins.steps import PlanTable
from tagframe.merging.where import ColumnKey


def as_hidden_now(plan: JoinPlan, corpus: Corpus) -> JoinPlan:
    """The plan over tables of which those columns are hidden that the corpus hides now, its other ways too."""
    sources = tuple(_now(source, corpus) for source in plan.sources)
    others = tuple(as_hidden_now(other, corpus) for other in plan.alternatives)
    ambiguous = tuple(as_hidden_now(other, corpus) for other in plan.ambiguous)
    if sources == plan.sources and others == plan.alternatives and ambiguous == plan.ambiguous:
        return plan
    return replace(plan, sources=sources, alternatives=others, ambiguous=ambiguous)


def _now(source: PlanTable, corpus: Corpus) -> PlanTable:
    parts = tuple(_now(part, corpus) for part in source.parts)
    ids = [id for id in (source.id, *(part.id for part in parts)) if id in corpus]
    columns = [column for id in ids for column in corpus.profile(id).columns]
    hidden = {column.name for column in columns if column.hidden}
    unprompted = {column.name for column in columns if column.unprompted}
    return replace(
        source,
        parts=parts,
        hidden=_in_order(source, {*hidden} if ids else {*source.hidden}),
        unprompted=_in_order(source, unprompted if ids else {*source.unprompted}),
    )


def _in_order(source: PlanTable, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(column for column in source.columns if column in names)


def unprompted_names(plan: JoinPlan, names: Mapping[ColumnKey, str]) -> frozenset[str]:
    """What columns that are hidden from models, and those made equal to them, are called in the merged frame."""
    kept = {(source.id, column) for source in plan.sources for column in source.unprompted}
    kept.update(*(group for group in plan.classes() if group & kept))
    return frozenset(name for key, name in names.items() if key in kept)
