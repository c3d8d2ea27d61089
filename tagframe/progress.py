"""Running work: the bar of long work, and its end when nobody waits for it any more."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from tagframe.config import current
from tagframe.errors import ReportWarning, warn
from tagframe.quiet import quiet

T = TypeVar("T")

PATIENCE = 0.8
"""Seconds of local work before a bar appears that the caller did not request: less than one."""

_report: ContextVar[Callable[[str], None] | None] = ContextVar("tagframe_progress", default=None)


@contextmanager
def reporting_to(report: Callable[[str], None]) -> Iterator[None]:
    """A block whose long work reports its state to a function, as a sentence, with a bar or without."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def is_wanted(progress: bool | None = None) -> bool:
    """Whether a bar is shown; None follows the setting of that name.

    If that is None too, one is shown if standard error is a terminal, and in a notebook.
    """
    progress = current().progress if progress is None else progress
    if progress is not None:
        return progress
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def new_bar(total: int, description: str, unit: str, **options: Any) -> Any:
    """A tqdm bar, for a terminal or a notebook."""
    with quiet():  # tqdm.auto warns in a notebook without ipywidgets
        from tqdm.auto import tqdm
    return tqdm(total=total, desc=description or None, unit=unit, dynamic_ncols=True, **options)


def track(
    work: Iterable[tuple[int, T]],
    total: int,
    description: str,
    unit: str,
    progress: bool | None = None,
    **options: Any,
) -> Generator[T, None, None]:
    """The items of the work, with a bar if one is wanted.

    A bar that the caller did not request with True appears only after :data:`PATIENCE` seconds, even if no unit is
    done by then.

    Args:
        work: pairs of a number of units and an item.
        total: the units of all items.
        description: what is done.
        unit: what is counted.
        progress: as for :func:`is_wanted`.
        options: of tqdm.
    """
    if (report := _report.get()) is not None:
        work = _reporting(work, total, description, unit, report)
    if not is_wanted(progress):
        for _, item in work:
            yield item
        return
    requested = current().progress if progress is None else progress
    bar = new_bar(total, description, unit, delay=0 if requested else PATIENCE, **options)
    timer = threading.Timer(PATIENCE, _come_up, [bar])
    timer.daemon = True
    timer.start()
    try:
        for units, item in work:
            yield item
            bar.update(units)
    finally:
        timer.cancel()
        bar.close()


def _reporting(
    work: Iterable[tuple[int, T]], total: int, description: str, unit: str, report: Callable[[str], None]
) -> Iterator[tuple[int, T]]:
    done = 0
    for units, item in work:
        report(f"{description}: {done:,} of {total:,} {unit}s" if unit else description)
        yield units, item
        done += units


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """For a block of work that has no units: shows what the program waits for, and removes it afterwards."""
    bar = track([(1, None)], 1, description, "", leave=False, bar_format="{desc} … {elapsed}")
    with contextlib.closing(bar):
        next(bar)
        yield


class RowsBar:
    """A bar of rows that a model answers, with their rate and dollars; None without rows, or if none is wanted.

    A bar that cannot be drawn, as on a terminal that is gone, ends no call: it is not drawn any more.
    """

    def __init__(self, description: str, progress: bool | None) -> None:
        self._description = description
        self._wanted = is_wanted(progress)
        self._bar: Any = None

    def grow(self, rows: int) -> None:
        """Add to the total number of rows."""
        with self._drawing():
            if self._bar is not None:
                self._bar.total += rows
                self._bar.refresh()
            elif self._wanted:
                self._bar = new_bar(rows, self._description, "row")

    def update(self, done: int, dollars: float | None) -> None:
        """Show the number of finished rows, and their dollars."""
        with self._drawing():
            if self._bar is not None and done != self._bar.n:
                self._bar.set_postfix_str("price unknown" if dollars is None else f"${dollars:.4f}", refresh=False)
                self._bar.update(done - self._bar.n)

    def close(self, failed: int = 0) -> None:
        """Stop updating the bar; if prompts failed, it turns red and shows how many."""
        with self._drawing():
            if self._bar is not None and failed:
                self._bar.colour = "red"
                self._bar.set_postfix_str(", ".join(part for part in (self._bar.postfix, f"{failed} failed") if part))
            if self._bar is not None:
                self._bar.close()

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._wanted, self._bar = False, None
            warn(f"the progress bar is not drawn any more: {type(error).__name__}: {error}", ReportWarning)


def _come_up(bar: Any) -> None:
    """Draw a bar that waits for its first unit."""
    bar.refresh()
    bar.delay = 0  # or it would not be wiped out


# --- the end of work that nobody waits for any more, for example after its task was cancelled -------------------------


class Stopped(Exception):
    """Nobody waits for this any more."""


class Stopping:
    """The running work of one caller, in any threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[object, Callable[[], object]] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Stop the running work, and whatever is begun later."""
        with self._lock:
            self._is_stopped = True
            under_way = list(self._under_way.values())
        for stop in under_way:
            with suppress(Exception):  # it may have ended by itself, or its server be gone
                stop()

    def check(self) -> None:
        """For work in Python, between two units of it.

        Raises:
            Stopped: it was stopped.
        """
        if self._is_stopped:
            raise Stopped

    @contextmanager
    def here(self) -> Iterator[None]:
        """A block, and the threads that get its context: what runs there is stopped by :meth:`stop`."""
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    @contextmanager
    def under_way(self, stop: Callable[[], object]) -> Iterator[None]:
        """A block that ``stop``, called from another thread, ends with an error; it becomes :class:`Stopped`.

        Raises:
            Stopped: it was stopped, or would have been.
        """
        key = object()
        with self._lock:
            if self._is_stopped:
                raise Stopped
            self._under_way[key] = stop
        try:
            yield
        except Exception as error:
            if self._is_stopped and not isinstance(error, Stopped):
                raise Stopped from error
            raise
        finally:
            with self._lock:
                del self._under_way[key]


_here: ContextVar[Stopping | None] = ContextVar("tagframe_stopping", default=None)


@contextmanager
def stopped_by(stop: Callable[[], object]) -> Iterator[None]:
    """A block that takes long, and the function that ends it; see :meth:`Stopping.under_way`."""
    stopping = _here.get()
    if stopping is None:
        yield
        return
    with stopping.under_way(stop):
        yield
