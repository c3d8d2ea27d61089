"""Random conditions that call LM functions, as a statement has them and as its reference does."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

Both = tuple[str, str]
"""A piece of SQL, as staged and as the reference runs it."""


def same(text: str) -> Both:
    return text, text


def fill_in(pattern: str, *parts: Both) -> Both:
    return pattern.format(*(part[0] for part in parts)), pattern.format(*(part[1] for part in parts))


@st.composite
def conditions(draw, call: Callable[[str, list[str]], Both], columns: list[str], plain: list[str], depth: int = 2):
    """``call`` gives the call of a function over some of the columns; ``plain`` conditions call none."""

    def called(function: str) -> Both:
        return call(function, draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True)))

    kind = draw(st.integers(0, 8 if depth else 4))
    if kind == 0:
        return same(draw(st.sampled_from(plain)))
    if kind in (1, 2):
        return called("filter")
    if kind == 3:
        return fill_in("{0} >= 0.5", called("score"))
    if kind == 4:
        return fill_in("{0} IN ('a', 'b')", called("map"))
    inner = conditions(call, columns, plain, depth - 1)
    if kind == 5:
        return fill_in("NOT ({0})", draw(inner))
    if kind in (6, 7):
        return fill_in("({0} OR {1})" if kind == 6 else "({0} AND {1})", draw(inner), draw(inner))
    return fill_in("(CASE WHEN {0} THEN {1} ELSE ({1}) IS NULL END)", draw(inner), draw(inner))
