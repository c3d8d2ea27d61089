"""``sem_topk``: the K rows that best fit a criterion, by pairwise comparisons."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tagframe import results
from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.operators.cells import FENCE_RULE, encode_rows, fence
from tagframe.operators.groups import group_keys, group_places
from tagframe.operators.instruction import Instruction
from tagframe.operators.outcome import (
    OnError,
    add_columns,
    check_on_error,
    error_column,
    free_name,
    raise_failures,
    refuse_taken,
)

if TYPE_CHECKING:
    from tagframe.lm import LM

_TASK = (
    f"You compare two rows of a table by a criterion, from the rows and from what you know of the world. {FENCE_RULE} "
    "Say which of the two fits the criterion better. Answer with one letter, A or B."
)


def parse_choice(text: str) -> str:
    """An answer as "A" or "B".

    >>> parse_choice("Row b."), parse_choice("**A**")
    ('B', 'A')

    Raises:
        AnswerRejected: anything else.
    """
    match = re.fullmatch(r"(?:answer\s*[:=]\s*)?(?:row\s+)?([ab])", text.strip(" \t\r\n.!*\"'`()").lower())
    if match is None:
        raise AnswerRejected(f"expected A or B, got {text[:80]!r}")
    return match.group(1).upper()


def sem_topk(
    frame: pd.DataFrame,
    instruction: str,
    K: int,
    *,
    lm: LM,
    group_by: Hashable | Sequence[Hashable] | None = None,
    suffix: str = "_topk",
    on_error: OnError = "raise",
) -> pd.DataFrame:
    """Rank the rows by a criterion and keep the first K, best first.

    Quick-select by the model's pairwise choices (as LOTUS' default method), all comparisons of a round in one batch and
    with pivots taken from the middle, so that the same call asks the same questions. Rows that show the same values
    are compared once and stay in their order; rows of which every named column is null come last, unasked.

    Args:
        frame: any frame; it is not changed.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: rows to keep, at least 1; all rows are ranked where there are fewer.
        lm: the model.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: a row is failed if a comparison of it is: ``"raise"`` once all is done, ``"keep"`` it behind the
            ranked ones with a column ``topk_error``, or ``"drop"`` it.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column is not there.
        InvalidArgument: K below 1, or an instruction without words.
    """
    check_on_error(on_error)
    if not isinstance(K, int) or isinstance(K, bool) or K < 1:
        raise InvalidArgument(f"K is the number of rows to keep, at least 1; got {K!r}")
    resolved = Instruction.resolve(instruction, frame)
    error_name = f"{suffix.strip('_')}_error"
    refuse_taken(frame, [error_name] if on_error == "keep" else [], suffix)
    rows = encode_rows(frame, resolved.positions)
    ranking = _Ranking(rows, resolved.text, lm)
    best = ranking.run(group_places(frame, group_keys(group_by)), K)

    failed = [place for place, error in enumerate(ranking.errors) if error is not None]
    keeps_failures = on_error == "keep" or (on_error == "raise" and bool(failed))
    places = best + failed if keeps_failures else best
    added = (
        {free_name(frame, error_name): error_column(ranking.errors[place] for place in places)}
        if keeps_failures
        else {}
    )
    finished = add_columns(frame.iloc[places], added)
    outcomes = ["failed" if error else "ranked" for error in ranking.errors]
    outcome_frame = pd.DataFrame({"outcome": outcomes, "error": error_column(ranking.errors)}, index=frame.index)
    results.remember(finished, outcomes=outcome_frame)
    if on_error == "raise":
        raise_failures("sem_topk", finished, ranking.errors)
    return finished


class _Ranking:
    """A quick-select over all groups at once; every round is one batch of comparisons with pivots.

    A ranking is a list of segments: what stands in an earlier segment is better than what stands in a later one. A
    round splits every segment that the first K places reach into.
    """

    def __init__(self, rows: Sequence[str | None], criterion: str, lm: LM) -> None:
        self._rows = rows
        self._criterion = criterion
        self._lm = lm
        self.errors: list[Exception | None] = [None] * len(rows)

    def run(self, groups: Sequence[Sequence[int]], k: int) -> list[int]:
        """Positions of the first ``k`` rows of each group, best first, without the failed ones."""
        # An item is the rows that show the same values: the model could not tell them apart.
        rankings: list[list[list[list[int]]]] = []
        for places in groups:
            items: dict[str | None, list[int]] = {}
            for place in places:
                items.setdefault(self._rows[place], []).append(place)
            nulls = items.pop(None, [])
            rankings.append([list(items.values()), *([[nulls]] if nulls else [])])
        while self._split(rankings, k):
            pass
        return [
            place
            for ranking in rankings
            for place in [place for segment in ranking for item in segment for place in item][:k]
        ]

    def _split(self, rankings: list[list[list[list[int]]]], k: int) -> bool:
        """One round; False where nothing was left to ask."""
        from tagframe.lm import Message, Prompt

        splits: list[tuple[int, int, list[int]]] = []  # ranking, segment, the pivot's rows
        duels: list[tuple[int, list[int], bool]] = []  # split, challenger's rows, whether it stands in place A
        prompts = []
        for number, ranking in enumerate(rankings):
            before = 0
            for place, segment in enumerate(ranking):
                if before < k and len(segment) > 1:
                    pivot = segment[len(segment) // 2]
                    splits.append((number, place, pivot))
                    for item in segment:
                        if item is pivot:
                            continue
                        # Models favour a place; taking turns keeps that from pushing all challengers one way.
                        first = len(duels) % 2 == 0
                        duels.append((len(splits) - 1, item, first))
                        pair = (item, pivot) if first else (pivot, item)
                        shown = [self._rows[one[0]] or "" for one in pair]
                        text = f"A:\n{fence(shown[0])}\n\nB:\n{fence(shown[1])}\n\nCriterion: {self._criterion}"
                        prompts.append(Prompt((Message("system", _TASK), Message("user", text))))
                before += sum(len(item) for item in segment)
        if not prompts:
            return False
        completions = self._lm.complete(prompts, accept=parse_choice, description="sem_topk")
        better: dict[int, list[list[int]]] = {number: [] for number in range(len(splits))}
        worse: dict[int, list[list[int]]] = {number: [] for number in range(len(splits))}
        for (split, item, first), completion in zip(duels, completions, strict=True):
            if completion.error is not None:
                for row in item:
                    self.errors[row] = completion.error
            else:
                wins = (completion.value == "A") == first
                (better if wins else worse)[split].append(item)
        for split in reversed(range(len(splits))):  # from the back, so that places further up stay valid
            number, place, pivot = splits[split]
            parts = [better[split], [pivot], worse[split]]
            rankings[number][place : place + 1] = [part for part in parts if part]
        return True
