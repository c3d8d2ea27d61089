"""Profile what is new or has changed of the files of a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby

from tagframe.corpus.catalogue import Contents, IndexedSource
from tagframe.corpus.discover import SourceFile
from tagframe.corpus.keeper import Draft, Keeper
from tagframe.corpus.profiler import profile_table
from tagframe.engines.base import TableShape
from tagframe.errors import UnreadableTable
from tagframe.progress import shown


@dataclass
class Indexed:
    """The sources of a corpus as they are now.

    Attributes:
        sources: by their keys.
        changed: the keys of those that the catalogue has otherwise.
        problems: what could not be read.
    """

    sources: dict[str, IndexedSource] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    problems: list[UnreadableTable] = field(default_factory=list)


def index_files(files: Sequence[SourceFile], known: Contents, keeper: Keeper, progress: bool | None) -> Indexed:
    """The files' profiles, from what is known where nothing has changed; the others are put down as they are made."""
    result = Indexed()
    work = []
    for file in files:
        old = known.sources.get(file.key)
        try:
            seen = file.engine.fingerprint(old.stamp if old else None)
            if old is not None and old.stamp is not None and seen is not None and seen.sha256 == old.stamp.sha256:
                result.sources[file.key] = replace(old, stamp=seen)
                if seen != old.stamp:
                    result.changed.append(file.key)
                continue
            shapes = file.engine.shapes()
        except UnreadableTable as error:
            result.problems.append(error)
            continue
        except OSError as error:
            result.problems.append(UnreadableTable(f"{file.engine.identity} cannot be read: {error}"))
            continue
        state = seen.sha256 if seen else ""
        # A process that was killed has left what it had done of the file as it is now.
        done = {
            shape.name: old.tables[shape.name]
            for shape in shapes
            if old is not None and seen is not None and old.seen.get(shape.name) == state
        }
        names = [shape.name for shape in shapes] if seen else []
        result.sources[file.key] = IndexedSource(file.key, file.engine.kind, seen, done, dict.fromkeys(names, state))
        result.changed.append(file.key)
        work += [(file, shape) for shape in shapes if shape.name not in done]
    hidden = {table.partition(".")[2] for table, _ in known.knowledge.hidden}
    draft = Draft(keeper)
    for file, shape in shown(_kept_open(work), len(work), "profiling", "table", progress):
        source = result.sources[file.key]
        try:
            profile = profile_table(file.database, shape, file.engine.chunks(shape))
        except UnreadableTable as error:
            result.problems.append(error)
            result.sources[file.key] = replace(source, stamp=None)
            continue
        result.sources[file.key] = replace(source, tables={**source.tables, shape.name: profile})
        if shape.name not in hidden:  # what is hidden is written without its cells, once all names are known
            draft.add(source, shape.name, profile)
    draft.flush()
    return result


def _kept_open(
    work: Sequence[tuple[SourceFile, TableShape]],
) -> Iterator[tuple[int, tuple[SourceFile, TableShape]]]:
    """The tables one by one, each file kept open for all that are of it."""
    for _, group in groupby(work, key=lambda one: one[0].key):
        with ExitStack() as stack:
            for place, (file, shape) in enumerate(group):
                if not place:
                    with suppress(UnreadableTable):  # each table says so itself
                        stack.enter_context(file.engine.kept_open())
                yield 1, (file, shape)
