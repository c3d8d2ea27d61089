"""Where the tables of a plan are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.engines.base import Engine
from tagframe.joins.plan import JoinPlan

_WIDTHS = {"integer": 8.0, "real": 8.0, "date": 8.0, "boolean": 1.0, "empty": 0.0}
_TEXT = 16.0
"""Bytes of a text of which no sample is known."""


def placed(plan: JoinPlan, corpus: Corpus) -> JoinPlan:
    """The plan, told where its tables are and how wide their rows; as it is where all are in one place, or stacked."""
    kinds = {}
    places: list[Engine] = []
    for source in plan.sources:
        engine = None if source.parts else corpus.engine(source.id)
        if engine is None:
            return plan
        kinds[source.id] = engine.kind if engine.is_asked else ""
        if not any(engine is other or engine == other for other in places):
            places.append(engine)
    if len(places) < 2:
        return plan

    def told(one: JoinPlan) -> JoinPlan:
        sources = [
            replace(source, place=kinds[source.id], row_bytes=_width(corpus.profile(source.id)))
            for source in one.sources
        ]
        return replace(
            one,
            sources=tuple(sources),
            alternatives=tuple(map(told, one.alternatives)),
            ambiguous=tuple(map(told, one.ambiguous)),
        )

    return told(plan)


def _width(profile: TableProfile) -> float:
    return sum(map(_bytes_of, profile.columns))


def _bytes_of(column: ColumnProfile) -> float:
    if column.family in _WIDTHS:
        return _WIDTHS[column.family]
    return float(np.mean([len(text.encode()) for text in column.samples])) + 4.0 if column.samples else _TEXT
