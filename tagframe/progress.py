"""Progress bars: whether long work has one, and how it looks."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from tagframe.config import current
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


def _come_up(bar: Any) -> None:
    """Draw a bar that waits for its first unit."""
    bar.refresh()
    bar.delay = 0  # or it would not be wiped out
