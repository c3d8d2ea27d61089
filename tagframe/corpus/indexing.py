"""Profile the new and changed files of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, repeat

from tagframe.corpus.catalogue import Contents, IndexedSource
from tagframe.corpus.catalogue_file import SourceCatalogue
from tagframe.corpus.discover import SourceFile
from tagframe.corpus.estimates import estimated_profile, of_source
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.engines.base import TableShape, TableStatistics
from tagframe.errors import BROKEN, ColumnFormatWarning, TagframeError, UnreadableTable, warn
from tagframe.progress import track


@dataclass
class Indexed:
    """The sources of a corpus as they are now.

    Attributes:
        sources: by their keys.
        changed: the keys of the sources that differ from the catalogue.
        problems: the tables that could not be read.
    """

    sources: dict[str, IndexedSource] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    problems: list[UnreadableTable] = field(default_factory=list)


def index_files(
    files: Sequence[SourceFile], known: Contents, catalogue: SourceCatalogue, progress: bool | None
) -> Indexed:
    """The files' profiles: the known ones if nothing has changed; new ones are saved as they are made."""
    result = Indexed()
    work = []
    for file in files:
        old = known.sources.get(file.key)
        try:
            seen = file.engine.fingerprint(old.stamp if old else None)
            # A source without tables is read again: a damaged catalogue may have lost them.
            then = old.stamp if old is not None and old.tables else None
            if old is not None and then is not None and seen is not None and seen.sha256 == then.sha256:
                result.sources[file.key] = replace(old, stamp=seen)
                result.problems += file.engine.closed()
                if seen != old.stamp:
                    result.changed.append(file.key)
                continue
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
        result.sources[file.key] = IndexedSource(file.key, file.engine.kind, seen, done, states)
        result.changed.append(file.key)
        work += [(file, shape) for shape in shapes if shape.name not in done]
    tables = {key: dict(source.tables) for key, source in result.sources.items()}
    try:
        for file, shape, statistics in track(_opened(work), len(work), "profiling", "table", progress):
            source = result.sources[file.key]
            try:
                profile = of_source(_profile(file, shape, statistics), shape)
            except BROKEN as error:
                if isinstance(error, TagframeError) and not isinstance(error, UnreadableTable):
                    raise
                named = f"{shape.name} of {file.engine.identity}"
                result.problems.append(error if isinstance(error, UnreadableTable) else _unread(named, error))
                result.sources[file.key] = replace(source, stamp=None)
                continue
            tables[file.key][shape.name] = profile
            catalogue.put_down(source, shape.name, profile)
    finally:
        catalogue.flush()  # if a server goes away, nothing is lost
    result.sources = {key: replace(source, tables=tables[key]) for key, source in result.sources.items()}
    _warn_of_date_orders(files, {file.key for file, _ in work})
    return result


def _warn_of_date_orders(files: Sequence[SourceFile], new: set[str]) -> None:
    """Warn of files that disagree on what comes first in the dates of a column: the same text is another day there."""
    seen = {file.key: file for file in files if file.key in new}
    if not any(_date_orders(file) for file in seen.values()):
        return
    orders: dict[str, dict[str, list[str]]] = {}
    for file in files:
        for name, order in _date_orders(file).items():
            orders.setdefault(name.casefold(), {}).setdefault(order, []).append(file.key)
    for name, orders_in in orders.items():
        if len(orders_in) > 1 and any(key in new for keys in orders_in.values() for key in keys):
            differing = " and ".join(
                f"the {order} in {', '.join(keys[:3])}" for order, keys in sorted(orders_in.items())
            )
            warn(
                f"dates of column {name!r} have {differing}: the same text is another day there. "
                "csv={'FILE': {'dayfirst': True}} reads those of a file as dates",
                ColumnFormatWarning,
            )


def _date_orders(file: SourceFile) -> Mapping[str, str]:
    try:
        return file.engine.date_orders
    except (OSError, UnreadableTable):
        return {}


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
