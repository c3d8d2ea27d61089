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
    """Keep warnings, and what these loggers say below an error, off the user's screen, for the block only.

    A library may have to be told to be quiet by variables of the environment, too; these are as they were afterwards.

    All are the whole process': so it is for loading, which happens once, and such blocks take turns. (Two threads that
    set and restored them side by side could leave them off for good.)
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
