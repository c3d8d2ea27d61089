"""The log: ``tagframe`` with a child for each room, for start and end of runs, requests and statements.

No line has a cell, a literal of a statement, a prompt, an answer or an API key. What a line counts is also in fields of
its record (``extra=`` of :mod:`logging`), for logs as JSON. Warnings are logged by :func:`tagframe.errors.warn`. Runs
and statements are also spans (:mod:`tagframe.traces`).
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from tagframe import config, traces

P = ParamSpec("P")
T = TypeVar("T")


def note(room: str, level: int, what: str, **fields: Any) -> None:
    """Log a line of a room with its fields; fields that are None are left out."""
    log = logging.getLogger(f"tagframe.{room}")
    if log.isEnabledFor(level):
        known = {name: value for name, value in fields.items() if value is not None}
        text = ", ".join(
            f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}" for name, value in known.items()
        )
        log.log(level, "%s%s", what, f" ({text})" if text else "", extra=known)


@contextmanager
def statement(room: str, sql: str, dialect: str) -> Iterator[None]:
    """Log the statement that the block runs, without its literals, which may be cells."""
    if not traces.are_wanted() and not logging.getLogger(f"tagframe.{room}").isEnabledFor(logging.DEBUG):
        yield
        return
    import sqlglot

    try:
        tokens = [(token.token_type.name, token.text) for token in sqlglot.tokenize(sql, read=dialect)]
    except (sqlglot.errors.SqlglotError, ValueError):  # of no dialect that it knows
        tokens = []
    anonymous = " ".join("?" if kind.endswith(("STRING", "NUMBER")) else text for kind, text in tokens)
    note(room, logging.DEBUG, "statement", sql=anonymous)
    text = sql if config.current().trace_contents else anonymous
    system = {"postgres": "postgresql"}.get(dialect, dialect)
    with traces.span(
        anonymous.partition(" ")[0] or system, {"db.system.name": system, "db.query.text": text}, "CLIENT"
    ):
        yield


@contextmanager
def run(room: str, what: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """Log the start and the end of a block, with what it puts into the dict; a warning if it failed, or rows did."""
    counts: dict[str, Any] = {}
    began = time.monotonic()
    note(room, logging.INFO, f"{what} started", **fields)
    how, level, error = "failed", logging.WARNING, None
    try:
        with traces.span(what, counts):
            counts.update(fields)
            yield counts
        how, level = "ended", logging.WARNING if counts.get("failed") else logging.INFO
    except GeneratorExit:  # closed early by its reader
        how, level = "closed", logging.INFO
        raise
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        seconds = time.monotonic() - began
        note(room, level, f"{what} {how}", **{**fields, "error": error, "seconds": seconds, **counts})


def runs(
    room: str, what: str, counts: Callable[[Any], Mapping[str, Any]]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Log the start and the end of every call of a function, with the counts of its result."""

    def logged(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with run(room, what) as fields:
                result = function(*args, **kwargs)
                fields.update(counts(result))
            return result

        return call

    return logged
