"""A corpus that follows its source: opened again before a use, if it is older than an interval."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from tagframe.errors import CatalogueWarning, InvalidArgument, warn
from tagframe.logs import note

if TYPE_CHECKING:
    from tagframe.corpus.corpus import Corpus

Interval = str | float | timedelta
"""Seconds, a time delta, or a text such as "30s", "5m" or "1h"."""


class Refreshing:
    """The newest corpus of a source. Safe to use from several threads.

    Args:
        corpus: the first one.
        seconds: how old it may become.
    """

    def __init__(self, corpus: Corpus, seconds: float) -> None:
        self._corpus, self._seconds = corpus, seconds
        self._due = time.monotonic() + seconds
        self._opening = threading.Lock()

    def corpus(self) -> Corpus:
        """The newest one. If it is due, this call opens the source again; other threads get the last one meanwhile."""
        if time.monotonic() >= self._due and self._opening.acquire(blocking=False):
            try:
                self._corpus = self._renewed(self._corpus)
            finally:
                self._due = time.monotonic() + self._seconds
                self._opening.release()
        return self._corpus

    def _renewed(self, corpus: Corpus) -> Corpus:
        try:
            now = corpus.refresh()
        except Exception as error:  # whatever it is, the tables that are known still serve
            warn(f"the corpus stays as it was, because its source cannot be opened again: {error}", CatalogueWarning)
            return corpus
        if now.is_like(corpus):
            return corpus  # with the indexes made of it
        note("corpus", logging.INFO, "the source has changed", tables=len(now))
        return now


def seconds_of(interval: Interval) -> float:
    """The seconds of an interval.

    Raises:
        InvalidArgument: it is none, or not positive.

    >>> seconds_of("5m"), seconds_of(2.5), seconds_of("90")
    (300.0, 2.5, 90.0)
    """
    seconds = 0.0
    for read in (float, lambda given: pd.Timedelta(given).total_seconds()):
        with suppress(TypeError, ValueError):
            seconds = seconds or read(cast(Any, interval))
    if isinstance(interval, bool) or not 0 < seconds < float("inf"):
        raise InvalidArgument(f'refresh must be a time such as "30s", "5m" or "1h", or seconds; got {interval!r}')
    return seconds
