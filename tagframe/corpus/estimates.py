"""The profile of a table from its source's statistics, without reading its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tagframe.corpus.canonical import canonical
from tagframe.corpus.facts import as_description
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.profiler import clipped_text, profile_table
from tagframe.corpus.schema_only import declared_profile
from tagframe.engines.base import Chunk, ColumnStatistics, TableShape, TableStatistics


def estimated_profile(database: str, shape: TableShape, known: TableStatistics) -> TableProfile:
    """The profile of a table from the statistics of its source.

    Families, samples and sketches are made from the values in the statistics. If the statistics have all values of a
    column, its sketch is a normal one; otherwise it is marked as the sketch of a sample.

    Args:
        database, shape: as for :func:`~tagframe.corpus.profiler.profile_table`.
        known: the statistics; without a number of rows, names and declared types are all that is known.
    """
    if known.rows is None:
        types = dict(zip(shape.columns, shape.declared_types, strict=True))
        database, name = shape.database or database, shape.called or shape.name
        return declared_profile(database, name, types, shape.primary_key, shape.foreign_keys)
    rows, columns = known.rows, known.columns or ()
    longest = max((len(column.values) for column in columns), default=0)
    padded = [[*column.values, *[None] * (longest - len(column.values))] for column in columns]
    profile = profile_table(database, shape, [Chunk(longest, padded)])
    return replace(
        profile,
        rows=rows,
        estimated=not known.exact,
        columns=tuple(
            _column(column, statistics, rows) for column, statistics in zip(profile.columns, columns, strict=True)
        ),
    )


def _column(column: ColumnProfile, known: ColumnStatistics, rows: int) -> ColumnProfile:
    sketch = column.sketch
    assert sketch is not None
    minimum, maximum = column.minimum, column.maximum
    if known.minimum is not None and column.family != "text":
        minimum, maximum = _bound(known.minimum), _bound(known.maximum)
    return replace(
        column,
        rows=rows,
        nulls=known.nulls,
        distinct=0 if known.nulls == rows else known.distinct,
        minimum=minimum,
        maximum=maximum,
        sketch=_sketch(sketch, known, rows),
    )


def _sketch(sketch: Sketch, known: ColumnStatistics, rows: int) -> Sketch | None:
    """The sketch of the known values; None if the column has values, but none is known."""
    if known.whole or known.nulls == rows:
        return sketch
    return Sketch(sketch.hashes, complete=False, sampled=True) if len(sketch.hashes) else None


def _bound(value: Any) -> str | None:
    text = canonical(value)[0]
    return None if text is None else clipped_text(text)


def of_source(profile: TableProfile, shape: TableShape) -> TableProfile:
    """The profile with the source's comments on the table and its columns."""
    if not shape.comment and not any(shape.column_comments):
        return profile
    comments: Iterable[str] = shape.column_comments or [""] * len(profile.columns)
    columns = tuple(
        replace(column, description=as_description(text))
        for column, text in zip(profile.columns, comments, strict=True)
    )
    return replace(profile, description=as_description(shape.comment), columns=columns)
