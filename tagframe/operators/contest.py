"""Rows compared with each other: the prompts for ranking, and the rows that cannot be ranked."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tagframe.errors import AnswerRejected, ContextTooLong
from tagframe.lm import Batch, Completion, Form, Prompt, words
from tagframe.operators.answer_grammar import parse_word, without_reasoning
from tagframe.operators.cells import FENCE_RULE, SHORTEST, cut_note, fence, shortened
from tagframe.operators.instruction import FIELD_RULE
from tagframe.operators.knockout import Pair
from tagframe.operators.ranked_lists import Chain
from tagframe.operators.step_generators import Step, gather_alike, stops_all

PAIR_TASK = (
    f"You compare two rows of a table by a criterion, from the rows and from what you know of the world. {FENCE_RULE} "
    f"Say which of the two fits the criterion better. {FIELD_RULE}"
)
LIST_TASK = (
    f"You rank rows of a table by a criterion, from the rows and from what you know of the world. {FENCE_RULE} "
    f"{FIELD_RULE} Each row has a number before it."
)
PAIR_FORM = "Answer with one letter, A or B:"
T = TypeVar("T")

_CHOICES = {f"{before}{letter}": letter.upper() for before in ("", "row ") for letter in "ab"}
_RANKED = re.compile(r"\[?\d+\]?(?:\s*[>,\s]\s*\[?\d+\]?)*")
_BEFORE = re.compile(r"^\W*(?:(?:the|my)?\s*(?:final\s+)?(?:answer|ranking|order)(?:\s+is)?\s*:)?\s*", re.IGNORECASE)
ANSWER_TOKENS = 16
"""Room for one letter, "Answer:" and markdown; if a model reasons first, the LM layer allows more."""
TOKENS_PER_NUMBER = 8


def parse_choice(text: str) -> str:
    """An answer as "A" or "B"; see :func:`tagframe.operators.answer_grammar.parse_word`.

    >>> parse_choice("Row b."), parse_choice("**A**")
    ('B', 'A')

    Raises:
        AnswerRejected: anything else.
    """
    return parse_word(text, _CHOICES, "A or B")


@functools.cache  # one function for each length: prompts with different parsers count as different
def parse_ranking(count: int, wanted: int | None = None) -> Callable[[str], tuple[int, ...]]:
    """A parser for an answer that orders the best ``wanted`` of the numbers 1 to ``count``, each once.

    If ``wanted`` is None, all numbers must be there. An answer may go on after the best ones, such as with the rest.

    >>> parse_ranking(3)("Answer: [3] > [1] > [2]"), parse_ranking(9, 2)("4 > 7")
    ((3, 1, 2), (4, 7))
    """

    def parse(text: str) -> tuple[int, ...]:
        answer = without_reasoning(text)
        lines = [line.strip(" \t*`.") for line in answer.splitlines() if line.strip(" \t*`.")]
        for shown in (" ".join(lines), lines[-1] if lines else ""):
            bare = _BEFORE.sub("", shown, count=1).strip(" \t*`.[]()")
            if _RANKED.fullmatch(bare):
                return _ordered([int(number) for number in re.findall(r"\d+", bare)], count, wanted)
        raise AnswerRejected(f"expected numbers from 1 to {count} in order as 3 > 1 > 2, got {answer[:80]!r}")

    return parse


@functools.cache
def ranking_form(count: int, wanted: int | None) -> Form:
    """The form of an answer that :func:`parse_ranking` takes."""
    number = f"({' | '.join(json.dumps(str(number)) for number in range(1, count + 1))})"
    more = f'(" > " {number}){{{times}}}' if (times := (wanted or count) - 1) else ""
    schema = {"type": "array", "items": {"type": "integer"}}
    return Form(schema, f"{number} {more}", lambda numbers: " > ".join(map(str, numbers)))


def _ordered(numbers: Sequence[int], count: int, wanted: int | None) -> tuple[int, ...]:
    odd = sorted({number for number in numbers if not 1 <= number <= count})
    missing = sorted(set(range(1, count + 1)) - set(numbers)) if wanted is None else []
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    faults = ((odd, "not among the rows"), (missing, "missing"), (twice, "there more than once"))
    if told := [f"{', '.join(map(str, found[:10]))} {what}" for found, what in faults if found]:
        raise AnswerRejected(f"expected each of the numbers 1 to {count} once: {'; '.join(told)}")
    if wanted is not None and len(numbers) < wanted:
        raise AnswerRejected(f"expected the best {wanted} of {count} rows, got {len(numbers)}")
    return tuple(numbers[:wanted])


@dataclass(eq=False)
class Item:
    """Rows with the same shown values, which the model could not tell apart.

    Attributes:
        line: their values as a line of JSON.
        rows: their positions in the frame.
        shown: the part of the line that the model is shown.
    """

    line: str
    rows: list[int]
    shown: str

    @property
    def note(self) -> str | None:
        """The outcome's note on how it was shown."""
        return cut_note(self.line, self.shown)


@dataclass(eq=False)
class Contest:
    """The items of one group of rows, compared by a model; the judge and the lister of the two ways to rank.

    If a comparison fails, the item that has never been compared is set aside. If that is true of neither or of both,
    each of the two is compared with an item that has been compared before.

    Attributes:
        items: the items that are ranked.
        criterion: the criterion.
        limit: the largest number of prompts.
        debias: whether every prompt is also asked with its rows in reverse order.
        longest: the largest number of rows in a list.
        aside: items that cannot be compared, with the error of each.
        stopped: the error after which nothing more is asked.
        asked: the number of prompts so far.
        ties: the number of comparisons without a winner.
        unknown: the number of comparisons that failed although both rows could be compared with others.
        short: whether the limit was reached before the order was certain.
    """

    items: list[Item]
    criterion: str
    limit: int
    debias: bool
    longest: int
    aside: dict[int, Exception] = field(default_factory=dict)
    stopped: Exception | None = None
    asked: int = 0
    ties: int = 0
    unknown: int = 0
    short: bool = False
    _proven: dict[int, None] = field(default_factory=dict)
    _wins: dict[int, dict[int, float]] = field(default_factory=dict)
    _chains: list[Chain] = field(default_factory=list)

    @property
    def left(self) -> int:
        """How many comparisons may still be asked."""
        return (self.limit - self.asked) // (2 if self.debias else 1)

    # --- pairs ----------------------------------------------------------------------------------------------------

    def compare(self, pairs: Sequence[Pair]) -> Step[list[float | None]]:
        """For each pair: 1 if the first is better, 0 if the second is, 0.5 if neither is, None if that is not known."""
        found = yield from self._compare(pairs)
        failed = [(pair, one) for pair, one in zip(pairs, found, strict=True) if isinstance(one, Exception)]
        if failed and self.stopped is None:
            yield from self._find_culprits(failed)
        return [None if isinstance(one, Exception) else one for one in found]

    def _compare(self, pairs: Sequence[Pair]) -> Step[list[float | Exception]]:
        ways = 2 if self.debias else 1
        shown = [turned for pair in pairs for turned in (pair, pair[::-1])[:ways]]
        completions = yield from self._ask(shown, self._pair_batch)
        found: list[float | Exception] = []
        for number, (first, second) in enumerate(pairs):
            answers = completions[number * ways : number * ways + ways]
            error = next((one.error for one in answers if one.error is not None), None)
            if error is not None:
                found.append(error)
                if self.stopped is not None:
                    self._set_aside((first, second), error)
                continue
            self._prove((first, second))
            value = sum((one.value == "A") == (way == 0) for way, one in enumerate(answers)) / ways
            found.append(value)
            self.ties += value == 0.5
            for better, worse, weight in ((first, second, value), (second, first, 1 - value)):
                if weight:
                    known = self._wins.setdefault(better, {})
                    known[worse] = known.get(worse, 0.0) + weight
        return found

    def _pair_batch(self, pairs: Sequence[Sequence[int]]) -> Batch[str]:
        system = f"{PAIR_TASK}\n\nCriterion: {self.criterion}"
        rows = [[fence(self.items[item].shown) for item in pair] for pair in pairs]
        prompts = [Prompt.of(f"A:\n{first}\n\nB:\n{second}\n{PAIR_FORM}", system) for first, second in rows]
        return Batch(prompts, parse_choice, max_tokens=ANSWER_TOKENS, form=words({"A": "A", "B": "B"}))

    def _find_culprits(self, failed: Sequence[tuple[Pair, Exception]]) -> Step[None]:
        """Set aside the items that made these comparisons fail."""
        doubtful = [pair for pair, _ in failed if not any(item in self._proven for item in pair)]
        suspects = list(dict.fromkeys(item for pair in doubtful for item in pair))
        others = [item for item in range(len(self.items)) if item not in self.aside and item not in suspects]
        sound = next((item for item in self._proven if item not in self.aside), next(iter(others), None))
        if suspects and sound is not None:
            yield from self._compare([(item, sound) for item in suspects])
        for pair, error in failed:
            culprits = [item for item in pair if item not in self._proven]
            self.unknown += not culprits
            self._set_aside(culprits, error)

    def answers(self, items: Sequence[int]) -> Iterable[Pair]:
        """The known results for pairs of these items so far: better, worse."""
        among = set(items)
        for better in items:
            yield from ((better, worse) for worse in self._wins.get(better, {}) if worse in among)
        for chain in self._chains:
            yield from itertools.pairwise(item for item in chain if item in among)

    # --- lists ----------------------------------------------------------------------------------------------------

    def rank(
        self, lists: Sequence[Sequence[int]], shared: Sequence[int] = (), wanted: int | None = None
    ) -> Step[list[list[Chain]]]:
        """The chains of each list; a list whose answer cannot be read is asked again in halves."""
        found: list[list[Chain]] = [[] for _ in lists]
        waiting = [(number, list(listed)) for number, listed in enumerate(lists) if listed]
        while waiting and self.stopped is None:
            if len(waiting) > self.left:
                self.short = True
                for number, listed in waiting[max(self.left, 0) :]:
                    found[number] += [[item] for item in listed]
                waiting = waiting[: max(self.left, 0)]
            ranked = yield from self._rank([[*shared, *listed] for _, listed in waiting], wanted)
            again: list[tuple[int, list[int]]] = []
            pairs: list[tuple[int, list[int], Exception]] = []
            for (number, listed), chain in zip(waiting, ranked, strict=True):
                if not isinstance(chain, Exception):
                    found[number].append(chain)
                elif self.stopped is not None:
                    self._set_aside(listed, chain)
                elif len(listed) + len(shared) > 2 and len(listed) > 1:
                    middle = len(listed) // 2
                    again += [(number, listed[:middle]), (number, listed[middle:])]
                else:
                    pairs.append((number, listed, chain))
            yield from self._try_alone(found, pairs, shared)
            waiting = [one for one in again if len(one[1]) + len(shared) > 1]
            for number, listed in again:
                if len(listed) + len(shared) < 2:
                    found[number].append(listed)
        return found

    def _try_alone(
        self, found: list[list[Chain]], failed: Sequence[tuple[int, list[int], Exception]], shared: Sequence[int]
    ) -> Step[None]:
        """For lists that cannot be divided further: items that never got an answer are tried with items that did."""
        sound = next((item for item in self._proven if item not in self.aside), None)
        suspects = [item for _, listed, _ in failed for item in listed if item not in self._proven]
        if suspects and sound is not None and not shared:
            yield from self._rank([[item, sound] for item in suspects])
        for number, listed, error in failed:
            culprits = listed if shared else [item for item in listed if item not in self._proven]
            self.unknown += not culprits
            if sound is not None:  # otherwise they are compared in pairs later
                self._set_aside(culprits, error)
            found[number] += [[item] for item in listed if item not in self.aside]

    def _rank(self, lists: Sequence[Sequence[int]], wanted: int | None = None) -> Step[list[Chain | Exception]]:
        ways = 2 if self.debias else 1
        shown = [turned for listed in lists for turned in (list(listed), list(listed)[::-1])[:ways]]
        completions = yield from self._ask(shown, lambda alike: self._list_batch(alike, wanted))
        chains: list[Chain | Exception] = []
        for number, listed in enumerate(lists):
            answers = completions[number * ways : number * ways + ways]
            error = next((one.error for one in answers if one.error is not None), None)
            if error is not None:
                chains.append(error)
                continue
            self._prove(listed)
            orders = [
                [shown[number * ways + way][told - 1] for told in one.value or ()] for way, one in enumerate(answers)
            ]
            self._chains += orders
            named = list(dict.fromkeys(item for order in orders for item in order))
            ranks = {item: sum([*order, item].index(item) for order in orders) for item in named}
            self.ties += len(ranks) - len(set(ranks.values()))
            chains.append(sorted(named, key=ranks.__getitem__)[:wanted])
        return chains

    def _list_batch(self, lists: Sequence[Sequence[int]], wanted: int | None) -> Batch[tuple[int, ...]]:
        """The prompts of lists of one length."""
        length = len(lists[0])
        wanted = None if wanted is None or wanted >= length else wanted
        which = "all rows, the row" if wanted is None else f"the best {wanted} rows, the one"
        form = f"Answer with the numbers of {which} that fits the criterion best first, in one line, as 3 > 1 > 2:"
        system = f"{LIST_TASK}\n\nCriterion: {self.criterion}"
        rows = [[f"[{at}] {self.items[item].shown}" for at, item in enumerate(listed, start=1)] for listed in lists]
        prompts = [Prompt.of(f"{fence(lines, 'rows')}\n{form}", system) for lines in rows]
        tokens, told = ANSWER_TOKENS + TOKENS_PER_NUMBER * length, ranking_form(length, wanted)
        return Batch(prompts, parse_ranking(length, wanted), max_tokens=tokens, form=told)

    # --- both -----------------------------------------------------------------------------------------------------

    def _ask(
        self, shown: Sequence[Sequence[int]], batch_of: Callable[[Sequence[Sequence[int]]], Batch[T]]
    ) -> Step[list[Completion[T]]]:
        """The completions; two rows that are too long for the model are cut to half, repeatedly."""
        self.asked += len(shown)
        found = yield from gather_alike(shown, batch_of)
        long = [
            number
            for number, completion in enumerate(found)
            if isinstance(completion.error, ContextTooLong) and len(shown[number]) == 2 and self._cut(shown[number])
        ]
        if long:
            again = yield from self._ask([shown[number] for number in long], batch_of)
            for number, completion in zip(long, again, strict=True):
                found[number] = completion
        self.stopped = self.stopped or next((one.error for one in found if stops_all(one.error)), None)
        return found

    def _cut(self, items: Sequence[int]) -> bool:
        """Show only half of the long ones of these; False if there is nothing to cut."""
        long = [self.items[item] for item in items if len(self.items[item].shown.encode()) > SHORTEST]
        for item in long:
            item.shown = shortened(item.shown, max(SHORTEST, len(item.shown.encode()) // 2))
        return bool(long)

    def set_aside_unproven(self, items: Iterable[int]) -> None:
        """Set these aside too, if they were never compared because all others were set aside."""
        if self.aside and len(self.items) > 1:
            error = next(iter(self.aside.values()))
            self._set_aside([item for item in items if item not in self._proven], error)

    def _prove(self, items: Iterable[int]) -> None:
        self._proven.update(dict.fromkeys(items))

    def _set_aside(self, items: Iterable[int], error: Exception) -> None:
        for item in items:
            self.aside.setdefault(item, error)

    def contradictions(self, order: Sequence[int]) -> int:
        """The number of answers that contradict ``order``; items that are not in it come after it."""
        ranks = {item: rank for rank, item in enumerate(order)}
        last = len(ranks)
        against = sum(
            round(weight)
            for better, known in self._wins.items()
            for worse, weight in known.items()
            if weight >= 1 and ranks.get(better, last) > ranks.get(worse, last)
        )
        for chain in self._chains:
            along = [ranks.get(item, last) for item in chain]
            against += sum(rank > later for at, rank in enumerate(along) for later in along[at + 1 :])
        return against
