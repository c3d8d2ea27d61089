"""``sem_topk``: the K rows that fit a criterion best, by lists that a model orders or by comparisons of two rows."""

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
"""The most rows of a list that a model orders in one answer."""
LIST_BYTES = 60_000
"""The most data of a list: about 15,000 tokens."""
LIST_ROW = 4_000
"""The most bytes of a row in a list; a longer row is shown with its cells cut, and its outcome says so."""
FEWEST = 4
"""If no more than so many rows fit into a list, rows are compared in pairs."""
PATIENCE = 3
"""At most so many times the comparisons that consistent answers need are asked."""


def _guess(prompt: Prompt) -> str:
    """Choices by one pseudo-random order, since choices that contradict each other would mislead a quote."""
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

    By default the model names the best K of lists of up to 30 rows, with all lists of a round at once; the named rows
    go into the next round. That is 1 request for 30 rows, and about 50 in 5 rounds for the top 10 of 1,000. If an
    answer does not name K different rows, its list is asked about once more, and then in halves. ``compare="pair"``
    asks which of two rows is better, in a knock-out in which losers stay in. That takes about 1.25 shorter requests per
    row, and is not more exact than lists. Both ways, the same call asks the same questions. If answers never contradict
    each other, the order is exact; the remarks of ``.tag.outcomes`` count contradictions. Rows with the same shown
    values are compared once and stay in their order. Rows whose named columns are all null come last and are not asked
    about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: how many rows to keep, at least 1; if there are fewer, all rows are ranked.
        compare: ``"list"`` or ``"pair"``. If rows are too long for lists of more than four, pairs are compared.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows in reverse order, so that a preference for the first place
            cancels out.
        comparisons: the most requests for the rows of a group, without repairs; the remarks say if they were not
            enough. If None, as many as are needed; for ``compare="pair"``, up to three times the number for consistent
            answers.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: how to treat rows that cannot be compared, which are set aside: ``"raise"`` once the ranking is done,
            ``"keep"`` them after the ranked ones with a column ``topk_error``, or ``"drop"`` them.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: K or ``comparisons`` is below 1, ``compare`` is unknown, or the instruction has no words.
        NotConfigured: no model is set.
    """
    k = whole_number(K, "K must be the number of rows to keep")
    limit = (
        None if comparisons is None else whole_number(comparisons, "comparisons must be the largest number of requests")
    )
    if compare not in get_args(Compare):
        raise InvalidArgument(f"compare must be one of {get_args(Compare)}; got {compare!r}")
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
        note = "its place is not certain: there were not enough comparisons" if contest.short else None
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
        contest: the comparisons.
        nulls: rows whose named columns are all null.
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
        # In addition to lists and pairs, rows without a readable answer are tried once more, one by one.
        self._bound = Bound(min(limit_in_force, pairs + 2 * n * self._by_list) + ways * n * (n > 1), None)
        self.contest = Contest(
            [Item(line, found, line if most is None else shortened(line, most)) for line, found in alike.items()],
            criterion,
            limit=limit_in_force,
            debias=debias,
            longest=longest,
        )

    def steps(self) -> Step[None]:
        """Rank the items."""
        return (yield from bounded(self._found(), self._bound))

    def _found(self) -> Step[None]:
        items = list(range(len(self.contest.items)))
        if self._by_list:
            order = yield from ranked_lists.best(items, self._k, self.contest, self._by_pairs)
        else:
            order = yield from self._by_pairs(items, self._k)
        if self.contest.stopped is not None:  # the order of the other rows is not known
            self.contest.aside.update({item: self.contest.stopped for item in order if item not in self.contest.aside})
        self.contest.set_aside_unproven(order[: self._k])
        self.order = [item for item in order if item not in self.contest.aside][: self._k]

    def _by_pairs(self, items: list[int], k: int) -> Step[list[int]]:
        return (yield from knockout.best(items, k, self.contest))

    def best(self) -> list[int]:
        """Positions of the first K rows, best first; rows that were set aside are left out, null rows come last."""
        ranked = [row for item in self.order for row in self.contest.items[item].rows]
        return [*ranked, *self.nulls][: self._k]


def _remarks(rankings: Sequence[_Ranking]) -> list[str]:
    """The remarks about the ranking as a whole."""
    contests = [ranking.contest for ranking in rankings]
    asked = sum(contest.asked for contest in contests)
    if not asked:
        return []
    facts = [f"prompts asked for the ranking: {asked:,}"]
    told = {
        "comparisons that contradict the ranking": sum(one.contest.contradictions(one.order) for one in rankings),
        "comparisons without a winner": sum(contest.ties for contest in contests),
        "comparisons that failed although both rows can be compared": sum(contest.unknown for contest in contests),
    }
    facts += [f"{what}: {count:,}" for what, count in told.items() if count]
    if any(contest.short for contest in contests):
        facts.append("the order is not certain, as there were not enough comparisons; allow more with comparisons=")
    return facts
