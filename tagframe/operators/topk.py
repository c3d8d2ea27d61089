"""``sem_topk``: the K rows that best fit a criterion, by pairwise comparisons."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tagframe.errors import BudgetExceeded, InvalidArgument, LMRequestFailed, RunStopped
from tagframe.lm import Batch, Completion, Prompt, get_lm
from tagframe.operators.answers import parse_word
from tagframe.operators.cells import FENCE_RULE, encode_rows, fence
from tagframe.operators.drivers import arun
from tagframe.operators.groups import group_keys, group_places
from tagframe.operators.instruction import FIELD_RULE, Instruction
from tagframe.operators.operator import Operator
from tagframe.operators.outcome import OnError, Outcome, check_on_error, finish, refuse_taken
from tagframe.operators.steps import Gathering, Step, together

_TASK = (
    f"You compare two rows of a table by a criterion, from the rows and from what you know of the world. {FENCE_RULE} "
    f"Say which of the two fits the criterion better. {FIELD_RULE} Answer with one letter, A or B."
)
_CHOICES = {f"{before}{letter}": letter.upper() for before in ("", "row ") for letter in "ab"}
ANSWER_TOKENS = 16
"""Room for one letter, "Answer:" and markdown; where a model reasons first, the LM layer gives it more."""
PIVOTS_TRIED = 5
"""So many pivots of a segment, one after the other, are set aside before the failures are the challengers' own."""


def parse_choice(text: str) -> str:
    """An answer as "A" or "B"; see :func:`tagframe.operators.answers.parse_word`.

    >>> parse_choice("Row b."), parse_choice("**A**")
    ('B', 'A')

    Raises:
        AnswerRejected: anything else.
    """
    return parse_word(text, _CHOICES, "A or B")


def steps(
    frame: pd.DataFrame,
    instruction: str,
    K: int,
    *,
    group_by: Hashable | Sequence[Hashable] | None = None,
    suffix: str = "_topk",
    on_error: OnError = "raise",
) -> Step[pd.DataFrame]:
    """:func:`sem_topk` as a step."""
    check_on_error(on_error)
    k = _checked_k(K)
    resolved = Instruction.resolve(instruction, frame)
    error_name = f"{suffix.strip('_')}_error"
    refuse_taken(frame, [error_name] if on_error == "keep" else [], suffix)
    rows = encode_rows(frame, resolved.positions, resolved.names)
    groups = group_places(frame, group_keys(group_by))
    rankings = [_Ranking(rows, places, resolved.text, k) for places in groups]
    yield from together([ranking.steps() for ranking in rankings])

    kept = [place for ranking in rankings for place in ranking.best()]
    errors = {place: error for ranking in rankings for place, error in ranking.set_aside.items()}
    outcomes = [Outcome("null" if row is None else "left out") for row in rows]
    for place in kept:
        outcomes[place] = Outcome("kept")
    for place, error in errors.items():
        outcomes[place] = Outcome("failed", error)
    return finish("sem_topk", frame, outcomes, [*kept, *sorted(errors)], [], on_error=on_error, error_name=error_name)


def _checked_k(k: Any) -> int:
    try:
        whole = operator.index(k)  # also of numpy's integers
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(k, bool):
        raise InvalidArgument(f"K is the number of rows to keep, at least 1; got {k!r}")
    return whole


@dataclass(eq=False)
class _Item:
    """The rows that show the same values: the model could not tell them apart.

    Attributes:
        line: what they show.
        places: in the frame.
        compared: whether a comparison of them has succeeded.
    """

    line: str
    places: list[int]
    compared: bool = False


@dataclass(eq=False)
class _Segment:
    """Items that stand next to each other in the ranking, in an order that is not known yet.

    Attributes:
        asked: the comparisons of all others with :attr:`pivot`, while they are under way.
        tried: pivots that were set aside since the last split.
    """

    items: list[_Item]
    asked: Batch[str] | None = None
    tried: int = 0

    @property
    def pivot(self) -> _Item:
        # From the middle, so that the same call asks the same questions.
        return self.items[len(self.items) // 2]

    @property
    def challengers(self) -> list[_Item]:
        return [item for item in self.items if item is not self.pivot]


class _Ranking:
    """A quick-select within one group of rows.

    A ranking is a list of segments: what stands in an earlier one is better than what stands in a later one. Every
    segment that the first K places reach into is split by comparisons with a pivot, as soon as it is there. How many
    rows stand before a segment only ever shrinks (as rows are set aside), so that what is asked in the end does not
    depend on the order in which answers arrive; nor does a comparison's prompt, which is made from its segment alone.

    Attributes:
        set_aside: rows that cannot be compared, with the error of each.
    """

    def __init__(self, rows: Sequence[str | None], places: Sequence[int], criterion: str, k: int) -> None:
        self.set_aside: dict[int, Exception] = {}
        self._criterion = criterion
        self._k = k
        items: dict[str, _Item] = {}
        for place in places:
            if (line := rows[place]) is not None:
                items.setdefault(line, _Item(line, [])).places.append(place)
        self._segments = [_Segment(list(items.values()))]
        self._nulls = [place for place in places if rows[place] is None]
        self._gathering = Gathering()
        self._most = len(items) * (len(items) - 1) // 2  # where every pivot turns out to be the worst of its segment

    def steps(self) -> Step[None]:
        """Split until the first K places are known."""
        while True:
            batches = self._due()
            if not self._gathering:
                return
            arrived = yield batches
            for batch, completions in self._gathering.take(arrived):
                self._split(next(one for one in self._segments if one.asked is batch), completions)

    def best(self) -> list[int]:
        """Positions of the first K rows, best first, without those that were set aside; null rows come last."""
        ranked = [place for segment in self._segments for item in segment.items for place in item.places]
        return [*ranked, *self._nulls][: self._k]

    def _due(self) -> list[Batch[str]]:
        """Have every segment asked about that the first K places reach into, and is not."""
        batches, before = [], 0
        for segment in self._segments:
            if before >= self._k:
                break
            if len(segment.items) > 1 and segment.asked is None:
                segment.asked = self._gathering.expect(self._comparisons(segment))
                batches.append(segment.asked)
            before += sum(len(item.places) for item in segment.items)
        return batches

    def _comparisons(self, segment: _Segment) -> Batch[str]:
        prompts = []
        for number, item in enumerate(segment.challengers):
            # Models favour a place; taking turns keeps that from pushing all challengers one way.
            first, second = (item, segment.pivot) if number % 2 == 0 else (segment.pivot, item)
            text = f"A:\n{fence(first.line)}\n\nB:\n{fence(second.line)}"
            prompts.append(Prompt.of(text, f"{_TASK}\n\nCriterion: {self._criterion}"))
        most, self._most = self._most, 0
        return Batch(prompts, parse_choice, max_tokens=ANSWER_TOKENS, calls_at_most=most)

    def _split(self, segment: _Segment, completions: Sequence[Completion[str]]) -> None:
        """Put what is better than the pivot before it, and what is worse behind; what cannot be compared, aside.

        Where most comparisons fail, the pivot is set aside, alone, and the others are compared with another one.
        """
        pivot, challengers = segment.pivot, segment.challengers
        segment.asked = None
        errors = [completion.error for completion in completions]
        failed = [item for item, error in zip(challengers, errors, strict=True) if error is not None]
        first_error = next((error for error in errors if error is not None), None)
        if first_error is not None and self._is_to_blame(pivot, challengers, failed, segment.tried, errors):
            self._set_aside(pivot, first_error)
            segment.items, segment.tried = challengers, segment.tried + 1
            return
        better: list[_Item] = []
        worse: list[_Item] = []
        for number, (item, completion) in enumerate(zip(challengers, completions, strict=True)):
            if completion.error is not None:
                self._set_aside(item, completion.error)
                continue
            item.compared = pivot.compared = True
            wins = (completion.value == "A") == (number % 2 == 0)
            (better if wins else worse).append(item)
        if first_error is not None and not pivot.compared:
            self._set_aside(pivot, first_error)
        middle = [pivot] if pivot.compared else []
        place = self._segments.index(segment)
        self._segments[place : place + 1] = [_Segment(part) for part in (better, middle, worse) if part]

    @staticmethod
    def _is_to_blame(
        pivot: _Item,
        challengers: Sequence[_Item],
        failed: Sequence[_Item],
        tried: int,
        errors: Sequence[Exception | None],
    ) -> bool:
        """Whether the pivot is what cannot be compared, and not those that were compared with it."""
        if any(_stops_all(error) for error in errors) or tried >= PIVOTS_TRIED:
            return False
        if len(challengers) == 1:
            return challengers[0].compared and not pivot.compared
        return 2 * len(failed) > len(challengers)

    def _set_aside(self, item: _Item, error: Exception) -> None:
        self.set_aside.update(dict.fromkeys(item.places, error))


def _stops_all(error: Exception | None) -> bool:
    """Whether the run as a whole has stopped, so that another pivot would fare no better."""
    return isinstance(error, RunStopped | BudgetExceeded) or (isinstance(error, LMRequestFailed) and error.stops_run)


def _guess(prompt: Prompt) -> str:
    """By an order that is as good as random, but one: choices that contradict each other would mislead a quote."""
    first, second = (row.split("<row>\n", 1)[1] for row in str(prompt.messages[-1].content).split("\n</row>")[:2])
    return "A" if _digest(first) > _digest(second) else "B"


def _digest(line: str) -> bytes:
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest()


TOPK = Operator(
    name="sem_topk",
    steps=steps,
    guess=_guess,
    told="a criterion, such as Which {title} is most technical?",
    takes_k=True,
)


def sem_topk(
    frame: pd.DataFrame,
    instruction: str,
    K: int,
    *,
    group_by: Hashable | Sequence[Hashable] | None = None,
    suffix: str = "_topk",
    on_error: OnError = "raise",
    **settings: Any,
) -> pd.DataFrame:
    """Rank the rows by a criterion and keep the first K, best first.

    Quick-select by the model's pairwise choices (as LOTUS' default method): what the first K places reach into is split
    by comparisons with a pivot from its middle, each part as soon as its own comparisons are answered. The same call
    asks the same questions. Rows that show the same values are compared once and stay in their order; rows of which
    every named column is null come last, unasked.

    Args:
        frame: any frame; it is not changed.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: rows to keep, at least 1; all rows are ranked where there are fewer.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: what a row does that cannot be compared, which is set aside, alone: ``"raise"`` once all is done,
            ``"keep"`` it behind the ranked ones with a column ``topk_error``, or ``"drop"`` it.
        **settings: those of :func:`tagframe.configure`, for this call: ``lm``, ``store``, ``budget``, ….

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column is not there.
        InvalidArgument: K below 1, or an instruction without words.
        NotConfigured: no model is set.
    """
    lm = get_lm("sem_topk", **settings)
    return TOPK.run(lm, frame, instruction, K=K, group_by=group_by, suffix=suffix, on_error=on_error)


async def asem_topk(
    frame: pd.DataFrame,
    instruction: str,
    K: int,
    *,
    group_by: Hashable | Sequence[Hashable] | None = None,
    suffix: str = "_topk",
    on_error: OnError = "raise",
    **settings: Any,
) -> pd.DataFrame:
    """:func:`sem_topk`, awaited: the event loop goes on, and cancelling stops what is not sent."""
    lm = get_lm("sem_topk", **settings)
    step = TOPK.step(lm, frame, instruction, K=K, group_by=group_by, suffix=suffix, on_error=on_error)
    return await arun(step, lm, TOPK.name)
