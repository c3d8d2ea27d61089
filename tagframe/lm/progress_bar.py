"""One progress bar per call, updated by the waiting thread, so that it costs the requests nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tagframe.errors import ReportWarning, warn
from tagframe.progress import new_bar


class Bar:
    """A tqdm bar of rows, with their rate and dollars; shows nothing if not ``wanted``, or without rows.

    A bar that cannot be drawn, as on a terminal that is gone, ends no call: it is not drawn any more.
    """

    def __init__(self, description: str, wanted: bool) -> None:
        self._description = description
        self._wanted = wanted
        self._bar: Any = None
        self._done = 0

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
            if self._bar is not None and done != self._done:
                self._bar.set_postfix_str("price unknown" if dollars is None else f"${dollars:.4f}", refresh=False)
                self._bar.update(done - self._done)
                self._done = done

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
