"""Sketches of all values of a column whose profile has only the sketch of a sample.

A source sends the distinct values, so that the sketch equals the profiler's. A million values take one to a few
seconds. A table of ten million rows and fifty columns would take a quarter of an hour or more. So only requested
columns are read, of tables with few enough rows, and a statement is stopped after some seconds. Larger tables keep the
sketch of a sample, marked as such, and :mod:`tagframe.keys.checking` looks up some of their values instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

import pandas as pd

from tagframe.corpus.corpus import Corpus
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.engines.base import Chunk, Engine, TableShape
from tagframe.engines.pushdown import SampledValues
from tagframe.errors import ColumnNotFound, UnreadableTable

MOST_CELLS = 3_000_000
"""The most cells of a table that are read; further columns, in the table's order, keep the sketch of a sample."""
SECONDS = 10.0
"""The time limit of a statement."""

_known: weakref.WeakKeyDictionary[Corpus, dict[tuple[str, str], Sketch | None]] = weakref.WeakKeyDictionary()


def with_whole_sketches(
    corpus: Corpus, profiles: Sequence[TableProfile], wanted: Callable[[ColumnProfile], bool]
) -> list[TableProfile]:
    """The profiles with sketches of all values instead of samples, if their sources can compute them.

    Args:
        corpus: of the tables.
        profiles: some of them.
        wanted: selects the columns.

    Raises:
        ServerGone: a source is gone.
    """
    return [_with_sketches(corpus, profile, wanted) for profile in profiles]


def _with_sketches(corpus: Corpus, profile: TableProfile, wanted: Callable[[ColumnProfile], bool]) -> TableProfile:
    if not profile.estimated or not profile.rows:
        return profile
    lacking = [
        column
        for column in profile.columns
        if column.nulls != column.rows and (column.sketch is None or column.sketch.sampled) and wanted(column)
    ]
    lacking = lacking[: MOST_CELLS // profile.rows]
    known = _known.setdefault(corpus, {})
    missing = [column.name for column in lacking if (profile.id, column.name) not in known]
    if missing:
        hashed = _hashed(corpus, profile.id, missing)
        known.update({(profile.id, name): hashed.get(name) for name in missing})
    sketches = {column.name: known[profile.id, column.name] for column in lacking}
    columns = tuple(
        column if (sketch := sketches.get(column.name)) is None else replace(column, sketch=sketch)
        for column in profile.columns
    )
    return replace(profile, columns=columns)


def _hashed(corpus: Corpus, table: str, columns: Sequence[str]) -> dict[str, Sketch]:
    sketches: dict[str, Sketch] = {}
    name = corpus.source_table(table)
    # If a source cannot answer, the sketches of samples stay.
    with suppress(UnreadableTable, ColumnNotFound), ExitStack() as opened:
        session = session_of(corpus.engine(table), [name], opened)
        for column in columns:
            values = None if session is None else session.distinct(name, column)
            if values is not None and (sketch := sketch_of(values)) is not None:
                sketches[column] = sketch
    return sketches


def session_of(engine: Engine | None, tables: list[str], opened: ExitStack) -> SampledValues | None:
    """An engine's access to values of its tables, until the stack is closed; None if it has none.

    A statement is stopped after :data:`SECONDS`.
    """
    block = None if engine is None else engine.pushdown(tables)
    session = None if block is None else opened.enter_context(block)
    if not isinstance(session, SampledValues):
        return None
    session.stop_after(SECONDS)
    return session


def sketch_of(values: pd.Series) -> Sketch | None:
    """The profiler's sketch of a column."""
    shape = TableShape("", (str(values.name),), ("",))
    return profile_table("", shape, [Chunk(len(values), [values])]).columns[0].sketch
