"""Asks about only as many rows as are needed to find a given number that pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from tagframe.errors import InvalidArgument
from tagframe.lm import Bound
from tagframe.operators.drivers import Step, bounded
from tagframe.operators.packing import max_prompts
from tagframe.operators.row_question import Reply

LimitOrder: TypeAlias = Literal["rows", "likeliest"]
MAX_GROWTH = 4
"""A round asks about as many rows as the share so far suggests, but at most so many times those asked before."""
MIN_ROUND_ONE_IN = 2
"""A round asks about at least one in so many of those asked before, so that the last rows are not found one by one."""


def check_limit(limit: Any, order: Any) -> None:
    """Refuse an invalid limit before the model is asked.

    Raises:
        InvalidArgument: ``limit`` is not a whole number of at least 1, or ``order`` is neither of the two.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
        raise InvalidArgument(f"limit must be the number of rows to find, at least 1, or None for all; got {limit!r}")
    if order not in get_args(LimitOrder):
        raise InvalidArgument(f"limit_order must be one of {get_args(LimitOrder)}; got {order!r}")


def ask_until(
    lines: Sequence[str],
    stands_for: Sequence[int],
    limit: int,
    ask: Callable[[list[str]], Step[list[Reply[bool]]]],
    least: int,
) -> Step[dict[str, Reply[bool]]]:
    """The verdicts on rows, asked in order until ``limit`` rows are found to be true.

    Args:
        lines: rows, each once, in the order in which they are asked.
        stands_for: how many rows of the frame each of them represents.
        limit: how many rows to find.
        ask: asks about some of them.
        least: the fewest rows of a round, if one prompt takes several.
    """
    verdicts: dict[str, Reply[bool]] = {}
    passed = 0
    bound = Bound(max_prompts(len(lines), least), -(-len(lines) // least))
    while passed < limit and len(verdicts) < len(lines):
        start = len(verdicts)
        batch = list(lines[start : start + next_round(start, passed, limit, least)])
        answers = yield from bounded(ask(batch), bound)
        for number, (line, verdict) in enumerate(zip(batch, answers, strict=True), start=start):
            verdicts[line] = verdict
            passed += stands_for[number] if verdict.value is True else 0
    return verdicts


def next_round(so_far: int, passed: int, wanted: int, least: int = 1) -> int:
    """How many rows to ask about next.

    Args:
        so_far: how many rows were asked about.
        passed: how many of them pass.
        wanted: how many rows to find.
        least: the result is a multiple of it.

    >>> next_round(0, 0, 5), next_round(5, 0, 5), next_round(20, 4, 5), next_round(100, 40, 50, 16)
    (5, 20, 10, 64)
    """
    several = wanted - passed
    if so_far:
        several = math.ceil(several * (so_far + 1) / (passed + 1 / 3))
        several = max(min(several, MAX_GROWTH * so_far), so_far // MIN_ROUND_ONE_IN)
    return -(-several // least) * least
