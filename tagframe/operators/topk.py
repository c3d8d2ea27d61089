"""``sem_topk``: the K rows that fit a criterion best, by lists that a model orders."""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.lm import Bound, Message, Prompt
from tagframe.operators import ranked_lists
from tagframe.operators.cells import encode_rows, room, shortened
from tagframe.operators.drivers import Step, bounded, together
from tagframe.operators.groups import group_keys, group_rows
from tagframe.operators.instruction import Instruction
from tagframe.operators.list_prompts import LIST_TASK, Item, Lists, solved_list
from tagframe.operators.operator import declare
from tagframe.operators.outcome import OnError, Outcome, finish, refuse_taken
from tagframe.operators.row_question import joined_notes

MAX_LIST_ROWS = 30
"""The most rows of a list that a model orders in one answer."""
MAX_LIST_BYTES = 60_000
"""The most data of a list: about 15,000 tokens."""
MAX_LIST_ROW_BYTES = 4_000
"""The most bytes of a row in a list; a longer row is shown with its cells cut, and its outcome says so."""
MAX_LISTS_A_COMPARISON = 3
"""At most so many times the comparisons of two rows that a sort needs are asked as lists: enough for any lists, unless
most of their answers cannot be read."""


NUMBER = len("[30] ")
_SHORT = "too many lists got no answer that can be read"


def _guess(prompt: Prompt) -> str:
    """Choices by one pseudo-random order, since choices that contradict each other would mislead a quote."""
    text = str(prompt.messages[-1].content)
    listed = re.findall(r"^\[\d+\] (.*)$", text, flags=re.MULTILINE)
    return " > ".join(str(at + 1) for at in sorted(range(len(listed)), key=lambda at: _digest(listed[at])))


def _digest(line: str) -> bytes:
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest()


@declare(guess=_guess, over="best")
def sem_topk(
    frame: pd.DataFrame,
    instruction: str,
    K: int,
    *,
    group_by: Hashable | Sequence[Hashable] | None = None,
    debias: bool = False,
    examples: pd.DataFrame | None = None,
    suffix: str = "_topk",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Rank the rows by a criterion and keep the first K, best first.

    The model names the best K of lists of up to 30 rows, with all lists of a round at once; the named rows go into the
    next round. That is 1 request for 30 rows, and about 50 in 5 rounds for the top 10 of 1,000. If an answer does not
    name K different rows, its list is asked about once more, and then in halves. The same call asks the same questions.
    If answers never contradict each other, the order is exact; the remarks of ``.tag.outcomes`` count contradictions.
    Rows with the same shown values are compared once and stay in their order. Rows whose shown cells are all blank
    come last and are not asked about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: how many rows to keep, at least 1; if there are fewer, all rows are ranked.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows in reverse order, so that a preference for the first place
            cancels out.
        examples: a solved ranking to show first: the named columns and a column ``Answer`` with the place of each row,
            1 for the best.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: how to treat rows that cannot be compared, which are set aside: ``"raise"`` once the ranking is done,
            ``"keep"`` them after the ranked ones with a column ``topk_error``, or ``"drop"`` them.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: K is below 1, the instruction has no words, or the examples have no places.
        NotConfigured: no model is set.
    """
    k = whole_number(K, "K must be the number of rows to keep")
    resolved = Instruction.resolve(instruction, frame)
    refuse_taken(frame, [], suffix, on_error)
    lines = encode_rows(frame, resolved.positions, resolved.names)
    groups = group_rows(frame, group_keys(group_by))
    turns = solved_list(examples, resolved)
    rankings = [_Ranking(lines, rows, resolved.text, k, debias, turns, window) for rows in groups]
    yield from together([ranking.steps() for ranking in rankings])

    best_rows = [row for ranking in rankings for row in ranking.best()]
    outcomes = [Outcome("null" if line is None else "left out") for line in lines]
    errors: dict[int, Exception] = {}
    for ranking in rankings:
        best, lists = set(ranking.best()), ranking.lists
        note = f"its place is not certain: {_SHORT}" if lists.short else None
        for number, item in enumerate(lists.items):
            for row in item.rows:
                if number in lists.aside:
                    errors[row] = lists.aside[number]
                    outcomes[row] = Outcome("failed", errors[row], item.note)
                elif row in best:
                    outcomes[row] = Outcome("kept", None, joined_notes(item.note, note))
                else:
                    outcomes[row] = Outcome("left out", None, item.note)
        for row in best & set(ranking.nulls):
            outcomes[row] = Outcome("kept")
    return finish(
        "sem_topk",
        frame,
        outcomes,
        [*best_rows, *sorted(errors)],
        [],
        on_error=on_error,
        suffix=suffix,
        remarks=_remarks(rankings),
    )


def whole_number(value: Any, what: str) -> int:
    """A whole number of at least 1, of Python or numpy.

    Raises:
        InvalidArgument: it is something else.
    """
    try:
        whole = operator.index(value)
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(value, bool):
        raise InvalidArgument(f"{what}, at least 1; got {value!r}")
    return whole


class _Ranking:
    """The first K of one group of rows.

    Attributes:
        lists: the items, and what was asked about them.
        nulls: rows whose shown cells are all blank.
        order: items, best first.
    """

    def __init__(
        self,
        lines: Sequence[str | None],
        rows: Sequence[int],
        criterion: str,
        k: int,
        debias: bool,
        turns: tuple[Message, ...],
        window: int | None,
    ) -> None:
        self.nulls = [row for row in rows if lines[row] is None]
        self._k = k
        self.order: list[int] = []
        alike: dict[str, list[int]] = {}
        for row in rows:
            if (line := lines[row]) is not None:
                alike.setdefault(line, []).append(row)
        data = room(window, LIST_TASK, criterion, *(str(turn.content) for turn in turns))
        data = MAX_LIST_BYTES if data is None else min(MAX_LIST_BYTES, data)
        size = min(MAX_LIST_ROW_BYTES, max((len(line.encode()) for line in alike), default=1))
        self._longest = max(2, min(MAX_LIST_ROWS, data // (size + NUMBER)))
        most = min(MAX_LIST_ROW_BYTES, data // self._longest - NUMBER)
        ways, n = 2 if debias else 1, len(alike)
        limit = MAX_LISTS_A_COMPARISON * ways * max(math.ceil(1.25 * n), n + k * math.ceil(math.log2(max(n, 2))))
        # Rows without a readable answer are tried once more, one by one.
        self._bound = Bound(limit + ways * n if n > 1 else 0, None)
        items = [Item(line, rows, shortened(line, most)) for line, rows in alike.items()]
        self.lists = Lists(items, criterion, limit, debias, turns)

    def steps(self) -> Step[None]:
        """Rank the items."""
        return (yield from bounded(self._found(), self._bound))

    def _found(self) -> Step[None]:
        lists = self.lists
        order = yield from ranked_lists.best(range(len(lists.items)), self._k, lists, self._longest)
        if lists.stopped is not None:  # the order of the other rows is not known
            lists.aside = dict.fromkeys(range(len(lists.items)), lists.stopped) | lists.aside
        lists.set_aside_unproven(order[: self._k])
        self.order = [item for item in order if item not in lists.aside][: self._k]

    def best(self) -> list[int]:
        """Positions of the first K rows, best first; rows that were set aside are left out, null rows come last."""
        ranked = [row for item in self.order for row in self.lists.items[item].rows]
        return [*ranked, *self.nulls][: self._k]


def _remarks(rankings: Sequence[_Ranking]) -> list[str]:
    """The remarks about the ranking as a whole."""
    every = [ranking.lists for ranking in rankings]
    prompts = sum(lists.prompts for lists in every)
    if not prompts:
        return []
    facts = [f"prompts asked for the ranking: {prompts:,}"]
    counts = {
        "comparisons that contradict the ranking": sum(one.lists.contradictions(one.order) for one in rankings),
        "comparisons without a winner": sum(lists.ties for lists in every),
        "lists without an answer although their rows can be ranked": sum(lists.unknown for lists in every),
    }
    facts += [f"{what}: {count:,}" for what, count in counts.items() if count]
    if any(lists.short for lists in every):
        facts.append(f"the order is not certain: {_SHORT}")
    return facts
