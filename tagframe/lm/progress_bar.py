"""One bar a call, moved by the thread that waits: the requests themselves pay nothing for it."""

from __future__ import annotations

from typing import Any

from tagframe.progress import new_bar


class Bar:
    """A tqdm bar of rows, with their rate and dollars; shows nothing where not ``wanted``, or without rows."""

    def __init__(self, description: str, wanted: bool) -> None:
        self._description = description
        self._wanted = wanted
        self._bar: Any = None
        self._done = self._elsewhere = 0

    def grow(self, rows: int) -> None:
        """So many more rows are to be done."""
        if self._bar is not None:
            self._bar.total += rows
            self._bar.refresh()
        elif self._wanted:
            self._bar = new_bar(rows, self._description, "row")

    def update(self, done: int, dollars: float | None, elsewhere: int = 0) -> None:
        """So many rows are done, for so many dollars; so many are waited for that another process is asking."""
        if self._bar is not None and (done, elsewhere) != (self._done, self._elsewhere):
            cost = "price unknown" if dollars is None else f"${dollars:.4f}"
            waits = f", {elsewhere} asked by another process" if elsewhere else ""
            self._bar.set_postfix_str(cost + waits, refresh=done == self._done)
            self._bar.update(done - self._done)
            self._done, self._elsewhere = done, elsewhere

    def close(self, failed: int = 0) -> None:
        """Leave the bar as it stands; red, where prompts failed, and with how many."""
        if self._bar is None:
            return
        if failed:
            self._bar.colour = "red"
            self._bar.set_postfix_str(", ".join(part for part in (self._bar.postfix, f"{failed} failed") if part))
        self._bar.close()
