"""Loading other people's libraries without their warnings and log lines."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_turn = threading.RLock()


def _after_fork() -> None:
    global _turn
    _turn = threading.RLock()  # a thread of the parent may hold the other


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def quiet(*loggers: str, **variables: str) -> Iterator[None]:
    """Silence warnings, and what these loggers say below an error, for the block only.

    Some libraries are silenced by environment variables, too; these are restored afterwards.

    All of these belong to the whole process. So this is for loading, which happens once, and such blocks take turns.
    (Two threads that set and restored them at the same time could leave them off forever.)
    """
    with _turn:
        levels = {name: logging.getLogger(name).level for name in loggers}
        before = {name: os.environ.pop(name, None) for name in variables}
        try:
            os.environ.update(variables)
            for name in loggers:
                logging.getLogger(name).setLevel(logging.ERROR)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            for name in variables:
                os.environ.pop(name, None)
            os.environ.update({name: value for name, value in before.items() if value is not None})
