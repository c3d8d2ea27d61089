"""Profile the new and changed files of a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, repeat
from typing import Any

from tagframe.corpus.canonical import canonical
from tagframe.corpus.catalogue import Contents, IndexedSource, SourceCatalogue
from tagframe.corpus.discover import SourceFile
from tagframe.corpus.facts import as_description
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile
from tagframe.corpus.profiler import clipped_text, profile_table
from tagframe.corpus.schema_only import declared_profile
from tagframe.engines.base import Chunk, ColumnStatistics, TableShape, TableStatistics
from tagframe.engines.hiding import mentions
from tagframe.errors import BROKEN, TagframeError, UnreadableTable, noting
from tagframe.progress import track


@dataclass
class Indexed:
    """The sources of a corpus as they are now.

    Attributes:
        sources: by their keys.
        changed: the keys of the sources that differ from the catalogue.
        problems: the tables that could not be read.
        notes: of sources that were not read again, each with the key of its source.
    """

    sources: dict[str, IndexedSource] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    problems: list[UnreadableTable] = field(default_factory=list)
    notes: list[tuple[str, str, str]] = field(default_factory=list)


def index_files(
    files: Sequence[SourceFile], known: Contents, catalogue: SourceCatalogue, progress: bool | None
) -> Indexed:
    """The files' profiles: the known ones if nothing has changed; new ones are saved as they are made."""
    result = Indexed()
    work, read = [], dict[str, dict[str, tuple[str, ...]]]()
    for file in files:
        old = known.sources.get(file.key)
        try:
            seen = file.engine.fingerprint(old.stamp if old else None)
            # A source without tables is read again: a damaged catalogue may have lost them.
            then = old.stamp if old is not None and old.tables else None
            if old is not None and then is not None and seen is not None and seen.sha256 == then.sha256:
                result.sources[file.key] = replace(old, stamp=seen)
                result.problems += file.engine.closed()
                result.notes += [(file.key, *note) for note in old.notes]
                if seen != old.stamp:
                    result.changed.append(file.key)
                continue
            notes: list[tuple[str, str]] = []
            with noting(notes):
                shapes = file.engine.shapes()
            result.problems += file.engine.closed()
        except UnreadableTable as error:
            result.problems.append(error)
            continue
        except TagframeError:
            raise  # without the server, nothing is known
        except (OSError, *BROKEN) as error:
            result.problems.append(_unread(file.engine.identity, error))
            continue
        states = {shape.name: shape.state or seen.sha256 for shape in shapes} if seen else {}
        # Tables of a source that gives a state for each, and tables finished by a killed process.
        done = {
            shape.name: old.tables[shape.name]
            for shape in shapes
            if old is not None and shape.name in states and old.seen.get(shape.name) == states[shape.name]
        }
        before = old.notes if old is not None and old.stamp is None else ()  # of tables that are not read again
        result.notes += [(file.key, *note) for note in before if note not in notes]
        noted = tuple(dict.fromkeys([*before, *notes]))
        result.sources[file.key] = IndexedSource(file.key, file.engine.kind, seen, done, states, noted)
        result.changed.append(file.key)
        work += [(file, shape) for shape in shapes if shape.name not in done]
        read[file.key] = _read_by_views(file, shapes)
    tables = {key: dict(source.tables) for key, source in result.sources.items()}
    try:
        for file, shape, statistics in track(_opened(work), len(work), "profiling", "table", progress):
            source = result.sources[file.key]
            notes = []
            try:
                with noting(notes):
                    profile = of_source(_profile(file, shape, statistics), shape)
                    profile = replace(profile, computed_from=read[file.key].get(shape.name, ()))
            except BROKEN as error:
                if isinstance(error, TagframeError) and not isinstance(error, UnreadableTable):
                    raise
                named = f"{shape.name} of {file.engine.identity}"
                result.problems.append(error if isinstance(error, UnreadableTable) else _unread(named, error))
                result.sources[file.key] = replace(source, stamp=None)
                continue
            tables[file.key][shape.name] = profile
            source = replace(source, notes=tuple(dict.fromkeys([*source.notes, *notes])))
            result.sources[file.key] = source
            catalogue.put_down(source, shape.name, profile)
    finally:
        catalogue.flush()  # if a server goes away, nothing is lost
    result.sources = {key: replace(source, tables=tables[key]) for key, source in result.sources.items()}
    return result


def _unread(what: str, error: Exception) -> UnreadableTable:
    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
    problem = UnreadableTable(f"{what} cannot be read: {kind}{error}")
    problem.__cause__ = error
    return problem


Known = TableStatistics | UnreadableTable | None


def _profile(file: SourceFile, shape: TableShape, known: Known) -> TableProfile:
    """The profile from the source's statistics if it has them, else from the rows."""
    if isinstance(known, UnreadableTable):
        raise known
    if known is not None and known.columns is not None:
        return estimated_profile(file.database, shape, known)
    return profile_table(file.database, shape, file.engine.chunks(shape))


def _opened(
    work: Sequence[tuple[SourceFile, TableShape]],
) -> Iterator[tuple[int, tuple[SourceFile, TableShape, Known]]]:
    """The tables one by one with their statistics; each file stays open for all its tables."""
    for _, group in groupby(work, key=lambda one: one[0].key):
        with ExitStack() as stack:
            several = list(group)
            file = several[0][0]
            with suppress(UnreadableTable):  # each table reports it
                stack.enter_context(file.engine.kept_open())
            known = file.engine.statistics([shape for _, shape in several])
            for (_, shape), statistics in zip(several, repeat(None) if known is None else known, strict=False):
                yield 1, (file, shape, statistics)


def _read_by_views(file: SourceFile, shapes: Sequence[TableShape]) -> dict[str, tuple[str, ...]]:
    """For each view of a source, the ids of the tables whose names are in its definition."""
    definitions: Mapping[tuple[str, str], str] = {}
    with suppress(TagframeError, *BROKEN):  # nothing is known of the views
        definitions = file.engine.definitions()
    names = {shape.name: shape.called or shape.name for shape in shapes}
    databases = {shape.name: shape.database or file.database for shape in shapes}
    return {
        view: tuple(
            f"{databases[table]}.{name}"
            for table, name in names.items()
            if table != view and mentions(text, [name.casefold()])
        )
        for (view, column), text in definitions.items()
        if not column
    }


# --- from the statistics of a source ---------------------------------------------------------------------------------


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
        return declared_profile(database, name, types, shape.primary_key, shape.foreign_keys, shape.unique)
    rows, columns = known.rows, known.columns or ()
    longest = max((len(column.values) for column in columns), default=0)
    padded = [[*column.values, *[None] * (longest - len(column.values))] for column in columns]
    profile = profile_table(database, shape, [Chunk(longest, padded)])
    return replace(
        profile,
        rows=rows,
        estimated=True,
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
