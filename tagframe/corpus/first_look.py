"""A first look at files: new tables are known by names alone while they are profiled in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from tagframe.corpus.catalogue import Contents, IndexedSource
from tagframe.corpus.discover import SourceFile
from tagframe.corpus.estimates import named_profile, of_source
from tagframe.engines.files.limits import check_regular
from tagframe.errors import BROKEN, ConnectionRefusedByServer, ServerGone, SourceNotFound, UnreadableTable

T = TypeVar("T")


def first_look_at(files: Sequence[SourceFile], known: Contents) -> dict[str, IndexedSource] | None:
    """The sources as far as they are known without reading a row; None if nothing is new.

    Files that cannot be read are left out; the profiling in the background reports them.
    """
    sources: dict[str, IndexedSource] = {}
    is_new = False
    for file in files:
        old = known.sources.get(file.key)
        try:
            if old is not None and old.stamp is not None and file.engine.fingerprint(old.stamp) == old.stamp:
                sources[file.key] = old
                continue
            if file.engine.path is not None and not file.engine.path.is_dir():
                check_regular(file.engine.path)
            shapes = file.engine.shapes()
        except (ConnectionRefusedByServer, ServerGone, SourceNotFound):
            raise
        except (UnreadableTable, OSError, *BROKEN):
            continue
        is_new = True
        tables = {shape.name: of_source(named_profile(file.database, shape), shape) for shape in shapes}
        sources[file.key] = IndexedSource(file.key, file.engine.kind, None, tables)
    return sources if is_new else None


def in_background(work: Callable[[], T]) -> Future[T]:
    """Do the work in a thread; the program does not wait for it at its end."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="tagframe index", daemon=True).start()
    return future
