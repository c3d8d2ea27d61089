"""``sem_topk``: the K rows that best fit a criterion, by lists that a model puts in order or by comparisons of two."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import pandas as pd

from tagframe.errors import InvalidArgument
from tagframe.lm import Bound, Prompt
from tagframe.operators import knockout, ranked_lists
from tagframe.operators.cells import encode_rows, room, shortened
from tagframe.operators.contest import LIST_TASK, PAIR_TASK, Contest, Item
from tagframe.operators.groups import group_keys, group_rows
from tagframe.operators.instruction import Instruction
from tagframe.operators.operator import declare
from tagframe.operators.outcome import OnError, Outcome, finish, refuse_taken
from tagframe.operators.row_question import joined_notes
from tagframe.operators.step_generators import Step, bounded, together

Compare: TypeAlias = Literal["list", "pair"]

LIST_ROWS = 30
"""Rows of a list at most: what models put in order in one answer."""
LIST_BYTES = 60_000
"""Data of a list at most: about 15,000 tokens."""
LIST_ROW = 4_000
"""Bytes of a row in a list; of a longer one the beginnings of its cells are shown, which its outcome tells."""
FEWEST = 4
"""Rows so long that no more than so many fit into a list are compared in pairs."""
PATIENCE = 3
"""So many times the comparisons that consistent answers need are asked before the order has to do."""


def _guess(prompt: Prompt) -> str:
    """By an order that is as good as random, but one: choices that contradict each other would mislead a quote."""
    text = str(prompt.messages[-1].content)
    listed = re.findall(r"^\[\d+\] (.*)$", text, flags=re.MULTILINE) if text.startswith("<rows>") else []
    if listed:
        return " > ".join(str(at + 1) for at in sorted(range(len(listed)), key=lambda at: _digest(listed[at])))
    first, second = (row.split("<row>\n", 1)[1] for row in text.split("\n</row>")[:2])
    return "A" if _digest(first) > _digest(second) else "B"


def _digest(line: str) -> bytes:
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest()


@declare(guess=_guess, over="best")
def sem_topk(
    frame: pd.DataFrame,
    instruction: str,
    K: int,
    *,
    compare: Compare = "list",
    group_by: Hashable | Sequence[Hashable] | None = None,
    debias: bool = False,
    comparisons: int | None = None,
    suffix: str = "_topk",
    on_error: OnError = "raise",
    window: int | None = None,
) -> Step[pd.DataFrame]:
    """Rank the rows by a criterion and keep the first K, best first.

    By default the model names the best K of lists of up to 30 rows, as many at once as there are; these go into the
    next round: 1 request for 30 rows, about 50 in 5 rounds for the top 10 of 1,000. A list whose answer does not name
    so many rows, each once, is asked about once more, and then in halves. ``compare="pair"`` asks which of two rows is
    better, in a knock-out whose losers stay in. That takes about 1.25 shorter requests a row, and is no surer than
    lists. Either way the same call asks the same questions. Answers that never contradict each other give the exact
    order; the remarks of ``.tag.outcomes`` count contradictions. Rows that show the same values are compared once and
    stay in their order. Rows whose named columns are all null come last and are not asked about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: rows to keep, at least 1; all rows are ranked where there are fewer.
        compare: ``"list"`` or ``"pair"``. Rows too long for lists of more than four are compared in pairs.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows the other way round, so that a preference for the first
            place evens out.
        comparisons: requests at most for the rows of a group, beside repairs; the remarks say where they were not
            enough. None is as many as are needed, for ``compare="pair"`` up to three times those of consistent answers.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: what a row does that cannot be compared, which is set aside, alone: ``"raise"`` once all is done,
            ``"keep"`` it behind the ranked ones with a column ``topk_error``, or ``"drop"`` it.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column is not there.
        InvalidArgument: K or comparisons below 1, another ``compare``, or an instruction without words.
        NotConfigured: no model is set.
    """
    k = whole_number(K, "K is the number of rows to keep")
    limit = None if comparisons is None else whole_number(comparisons, "comparisons is how many may be asked")
    if compare not in get_args(Compare):
        raise InvalidArgument(f"compare is one of {get_args(Compare)}; got {compare!r}")
    resolved = Instruction.resolve(instruction, frame)
    refuse_taken(frame, [], suffix, on_error)
    lines = encode_rows(frame, resolved.positions, resolved.names)
    groups = group_rows(frame, group_keys(group_by))
    rankings = [_Ranking(lines, rows, resolved.text, k, compare, debias, limit, window) for rows in groups]
    yield from together([ranking.steps() for ranking in rankings])

    kept = [row for ranking in rankings for row in ranking.best()]
    outcomes = [Outcome("null" if line is None else "left out") for line in lines]
    errors: dict[int, Exception] = {}
    for ranking in rankings:
        best, contest = set(ranking.best()), ranking.contest
        note = "its place is not certain: the comparisons were not enough" if contest.short else None
        for number, item in enumerate(contest.items):
            for row in item.rows:
                if number in contest.aside:
                    errors[row] = contest.aside[number]
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
        [*kept, *sorted(errors)],
        [],
        on_error=on_error,
        suffix=suffix,
        remarks=_remarks(rankings),
    )


def whole_number(value: Any, what: str) -> int:
    """A number of at least 1, numpy's included.

    Raises:
        InvalidArgument: it is none.
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
        contest: what was asked.
        nulls: rows of which every named column is null.
        order: items, best first.
    """

    def __init__(
        self,
        lines: Sequence[str | None],
        rows: Sequence[int],
        criterion: str,
        k: int,
        compare: Compare,
        debias: bool,
        limit: int | None,
        window: int | None,
    ) -> None:
        self.nulls = [row for row in rows if lines[row] is None]
        self._k = k
        self.order: list[int] = []
        alike: dict[str, list[int]] = {}
        for row in rows:
            if (line := lines[row]) is not None:
                alike.setdefault(line, []).append(row)
        data = room(window, LIST_TASK if compare == "list" else PAIR_TASK, criterion)
        longest = 0
        if compare == "list":
            data = LIST_BYTES if data is None else min(LIST_BYTES, data)
            size = min(LIST_ROW, max((len(line.encode()) for line in alike), default=1))
            longest = min(LIST_ROWS, data // (size + len("[30] ")))
        self._by_list = longest > FEWEST
        most = LIST_ROW if self._by_list else None if data is None else data // 2
        ways, n = 2 if debias else 1, len(alike)
        needed = ways * knockout.comparisons_needed(n, k)
        limit_in_force = PATIENCE * needed if limit is None else limit
        pairs = ways * n * (n - 1) // 2
        # Beside lists and pairs, what could not be read is tried once more, row by row.
        self._bound = Bound(min(limit_in_force, pairs + 2 * n * self._by_list) + ways * n * (n > 1), None)
        self.contest = Contest(
            [Item(line, found, line if most is None else shortened(line, most)) for line, found in alike.items()],
            criterion,
            limit=limit_in_force,
            debias=debias,
            longest=longest,
        )

    def steps(self) -> Step[None]:
        """Find them."""
        return (yield from bounded(self._found(), self._bound))

    def _found(self) -> Step[None]:
        items = list(range(len(self.contest.items)))
        if self._by_list:
            order = yield from ranked_lists.best(items, self._k, self.contest, self._by_pairs)
        else:
            order = yield from self._by_pairs(items, self._k)
        if self.contest.stopped is not None:  # what was not in order then is not known
            self.contest.aside.update({item: self.contest.stopped for item in order if item not in self.contest.aside})
        self.contest.set_aside_unproven(order[: self._k])
        self.order = [item for item in order if item not in self.contest.aside][: self._k]

    def _by_pairs(self, items: list[int], k: int) -> Step[list[int]]:
        return (yield from knockout.best(items, k, self.contest))

    def best(self) -> list[int]:
        """Positions of the first K rows, best first, without those that were set aside; null rows come last."""
        ranked = [row for item in self.order for row in self.contest.items[item].rows]
        return [*ranked, *self.nulls][: self._k]


def _remarks(rankings: Sequence[_Ranking]) -> list[str]:
    """What the outcomes tell of the ranking as a whole."""
    contests = [ranking.contest for ranking in rankings]
    asked = sum(contest.asked for contest in contests)
    if not asked:
        return []
    facts = [f"{asked:,} prompts put the rows in order"]
    told = {
        "of the comparisons made contradict it": sum(one.contest.contradictions(one.order) for one in rankings),
        "comparisons came out even": sum(contest.ties for contest in contests),
        "comparisons of rows that others could be compared with failed": sum(contest.unknown for contest in contests),
    }
    facts += [f"{count:,} {what}" for what, count in told.items() if count]
    if any(contest.short for contest in contests):
        facts.append("the comparisons were not enough, so that the order is not certain; allow more with comparisons=")
    return facts
