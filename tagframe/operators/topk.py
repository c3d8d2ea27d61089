"""``sem_topk``: the K rows that fit a criterion best, by lists that a model orders.

If 2 K items fit into a list, this is a tournament of lists: each keeps its first K, until one list is left. Otherwise
every list has a few shared items, all other items are sorted relative to these, and the items between two of them are
sorted further (sample sort: Frazer and McKellar, JACM 17, 1970). In both ways, if answers do not contradict each other,
the first K are exact and in order. Where lists cannot be put in order as a whole, shorter lists are tried.
"""

from __future__ import annotations

import functools
import hashlib
import math
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pandas as pd

from tagframe.blocks import FENCE_RULE, fence, without_reasoning
from tagframe.errors import AnswerRejected, ContextTooLong, InvalidArgument
from tagframe.lm import Batch, Bound, Completion, Form, Message, Prompt
from tagframe.operators.cells import (
    FIELD_RULE,
    MIN_ROW_BYTES,
    Instruction,
    cut_note,
    encode_rows,
    group_keys,
    group_rows,
    room,
    shortened,
)
from tagframe.operators.drivers import Step, bounded, gather_alike, stops_all, together
from tagframe.operators.operator import declare
from tagframe.operators.outcome import OnError, Outcome, finish, refuse_taken
from tagframe.operators.row_question import ANSWER, joined_notes, solved_rows
from tagframe.operators.values import lines_of

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
    yield from together([bounded(ranking.steps(), ranking.bound) for ranking in rankings])

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
        bound: the most prompts.
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
        self.bound = Bound(limit + ways * n if n > 1 else 0)
        items = [Item(line, rows, shortened(line, most)) for line, rows in alike.items()]
        self.lists = Lists(items, criterion, limit, debias, turns)

    def steps(self) -> Step[None]:
        """Rank the items."""
        lists = self.lists
        order = yield from best_of(range(len(lists.items)), self._k, lists, self._longest)
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


# --- lists of rows that a model puts in order, and the rows that cannot be ranked ------------------------------------


LIST_TASK = (
    f"You rank rows of a table by a criterion, from the rows and from what you know of the world. {FENCE_RULE} "
    f"{FIELD_RULE} Each row has a number before it."
)

_RANKED = re.compile(r"\[?\d+\]?(?:\s*[>,\s]\s*\[?\d+\]?)*")
_BEFORE = re.compile(r"^\W*(?:(?:the|my)?\s*(?:final\s+)?(?:answer|ranking|order)(?:\s+is)?\s*:)?\s*", re.IGNORECASE)
ANSWER_TOKENS = 16
"""Room for "Answer:" and markdown; if a model reasons first, the LM layer allows more."""
TOKENS_PER_NUMBER = 8


@functools.cache  # one function for each length: prompts with different parsers count as different
def parse_ranking(count: int, wanted: int | None = None) -> Callable[[str], tuple[int, ...]]:
    """A parser for an answer that orders the best ``wanted`` of the numbers 1 to ``count``, each once.

    If ``wanted`` is None, all numbers must be there. An answer may go on after the best ones, such as with the rest.

    >>> parse_ranking(3)("Answer: [3] > [1] > [2]"), parse_ranking(9, 2)("4 > 7")
    ((3, 1, 2), (4, 7))
    """

    def parse(text: str) -> tuple[int, ...]:
        answer = without_reasoning(text)
        lines = [line.strip(" \t*`.") for line in lines_of(answer) if line.strip(" \t*`.")]
        for part in (" ".join(lines), lines[-1] if lines else ""):
            bare = _BEFORE.sub("", part, count=1).strip(" \t*`.[]()")
            if _RANKED.fullmatch(bare):
                return _ordered([int(number) for number in re.findall(r"\d+", bare)], count, wanted)
        raise AnswerRejected(f"expected numbers from 1 to {count} in order as 3 > 1 > 2, got {answer[:80]!r}")

    return parse


@functools.cache
def ranking_form(count: int, wanted: int | None) -> Form:
    """The form of an answer that :func:`parse_ranking` takes."""
    length = wanted or count
    schema = {
        "type": "array",
        "items": {"type": "integer", "enum": [*range(1, count + 1)]},
        "minItems": length,
        "maxItems": length,
    }
    return Form(schema, lambda numbers: " > ".join(map("{:d}".format, numbers)))


def _ordered(numbers: Sequence[int], count: int, wanted: int | None) -> tuple[int, ...]:
    odd = sorted({number for number in numbers if not 1 <= number <= count})
    missing = sorted(set(range(1, count + 1)) - set(numbers)) if wanted is None else []
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    faults = ((odd, "not among the rows"), (missing, "missing"), (twice, "there more than once"))
    if problems := [
        f"{', '.join(map(str, numbers_at_fault[:10]))} {what}" for numbers_at_fault, what in faults if numbers_at_fault
    ]:
        raise AnswerRejected(f"expected each of the numbers 1 to {count} once: {'; '.join(problems)}")
    if wanted is not None and len(numbers) < wanted:
        raise AnswerRejected(f"expected the best {wanted} of {count} rows, got {len(numbers)}")
    return tuple(numbers[:wanted])


def _order_request(lines: Sequence[str], wanted: int | None) -> str:
    """The message that asks for the order of rows."""
    which = "all rows, the row" if wanted is None else f"the best {wanted} rows, the one"
    form = f"Answer with the numbers of {which} that fits the criterion best first, in one line, as 3 > 1 > 2:"
    return f"{fence([f'[{at}] {line}' for at, line in enumerate(lines, start=1)], 'rows')}\n{form}"


def solved_list(examples: pd.DataFrame | None, resolved: Instruction) -> tuple[Message, ...]:
    """A list of rows in the order of their places, as turns of a conversation.

    Args:
        examples: the columns of the criterion, and a column ``Answer`` with the place of each row, 1 for the best; None
            for no examples.
        resolved: the criterion.

    Raises:
        ColumnNotFound: a column is missing.
        InvalidArgument: the places are not those of two rows or more, from 1 on.
    """
    solved = solved_rows(examples, resolved, str)
    places = [answer.removesuffix(".0") for _, answer in solved]
    if not solved:
        return ()
    if len(solved) < 2 or sorted(places) != sorted(map(str, range(1, len(solved) + 1))):
        raise InvalidArgument(
            f"the examples' column {ANSWER!r} has the place of each of two rows or more, 1 for the best; "
            f"got {places!r:.200}"
        )
    order = [places.index(str(place)) + 1 for place in range(1, len(solved) + 1)]
    question = Message("user", _order_request([line for line, _ in solved], None))
    return question, Message("assistant", " > ".join(map(str, order)))


@dataclass(eq=False)
class Item:
    """Rows with the same shown values, which the model could not tell apart.

    Attributes:
        line: their values as a line of JSON.
        rows: their positions in the frame.
        text: the part of the line that the model is shown.
    """

    line: str
    rows: list[int]
    text: str

    @property
    def note(self) -> str | None:
        """The outcome's note on how it was shown."""
        return cut_note(self.line, self.text)


@dataclass(eq=False)
class Lists:
    """The items of one group of rows, in lists that a model puts in order.

    A list whose answer cannot be read is asked again in halves. If even two items get no answer, those that have never
    been in a readable list are tried with another item, and set aside if that fails too.

    Attributes:
        items: the items that are ranked.
        criterion: the criterion.
        limit: the largest number of prompts.
        debias: whether every prompt is also asked with its rows in reverse order.
        turns: a solved list, as turns of a conversation.
        aside: items that cannot be ranked, with the error of each.
        stopped: the error after which nothing more is asked.
        prompts: the number of prompts so far.
        ties: the number of items that share their place in a list with another one.
        unknown: the number of lists that got no answer although all of their rows can be ranked.
        short: whether the limit was reached before the order was certain.
    """

    items: list[Item]
    criterion: str
    limit: int
    debias: bool
    turns: tuple[Message, ...] = ()
    aside: dict[int, Exception] = field(default_factory=dict)
    stopped: Exception | None = None
    prompts: int = 0
    ties: int = 0
    unknown: int = 0
    short: bool = False
    _proven: dict[int, None] = field(default_factory=dict)
    _chains: list[Chain] = field(default_factory=list)

    @property
    def left(self) -> int:
        """How many lists may still be asked."""
        return (self.limit - self.prompts) // (2 if self.debias else 1)

    def rank(
        self, lists: Sequence[Sequence[int]], shared: Sequence[int] = (), wanted: int | None = None
    ) -> Step[list[list[Chain]]]:
        """The chains of each list; a list whose answer cannot be read is asked again in halves."""
        chains: list[list[Chain]] = [[] for _ in lists]
        again = [(number, list(listed)) for number, listed in enumerate(lists) if listed]
        waiting = self._several(again, shared, chains)
        while waiting and self.stopped is None:
            if len(waiting) > self.left:
                self.short = True
                for number, listed in waiting[max(self.left, 0) :]:
                    chains[number] += [[item] for item in listed]
                waiting = waiting[: max(self.left, 0)]
            ranked = yield from self._rank([[*shared, *listed] for _, listed in waiting], wanted)
            again = []
            pairs: list[tuple[int, list[int], Exception]] = []
            for (number, listed), chain in zip(waiting, ranked, strict=True):
                if not isinstance(chain, Exception):
                    chains[number].append(chain)
                elif self.stopped is not None:
                    self._set_aside(listed, chain)
                elif len(listed) + len(shared) > 2 and len(listed) > 1:
                    middle = len(listed) // 2
                    again += [(number, listed[:middle]), (number, listed[middle:])]
                else:
                    pairs.append((number, listed, chain))
            yield from self._try_alone(chains, pairs, shared)
            waiting = self._several(again, shared, chains)
        return chains

    @staticmethod
    def _several(
        lists: Sequence[tuple[int, list[int]]], shared: Sequence[int], chains: list[list[Chain]]
    ) -> list[tuple[int, list[int]]]:
        """The lists of two items or more; a single item is in order by itself."""
        for number, listed in lists:
            if len(listed) + len(shared) < 2:
                chains[number].append(listed)
        return [one for one in lists if len(one[1]) + len(shared) > 1]

    def _try_alone(
        self, chains: list[list[Chain]], failed: Sequence[tuple[int, list[int], Exception]], shared: Sequence[int]
    ) -> Step[None]:
        """For lists that cannot be divided further: items that never got an answer are tried with other items."""
        listed_items = [item for _, listed, _ in failed for item in listed]

        def suspects() -> list[int]:
            return [item for item in listed_items if item not in self._proven]

        if not shared and suspects() and not self._sound():  # any other item may be a sound one
            tried = suspects()
            others = [item for item in range(len(self.items)) if item not in self.aside and item not in tried]
            others = others or [*tried[2:], *tried[:2]]
            pairs = [[item, others[at % len(others)]] for at, item in enumerate(tried)]
            yield from self._rank([pair for pair in pairs if pair[0] != pair[1]])
        if not shared and suspects() and self._sound():
            yield from self._rank([[item, self._sound()[0]] for item in suspects()])
        if failed and not shared and not self._sound():
            self.stopped = failed[0][2]  # not even two rows got an answer, anywhere
        for number, listed, error in failed:
            culprits = listed if shared else [item for item in listed if item not in self._proven]
            self.unknown += not culprits
            self._set_aside(culprits, error)
            chains[number] += [[item] for item in listed if item not in self.aside]

    def _sound(self) -> list[int]:
        return [item for item in self._proven if item not in self.aside]

    def _rank(self, lists: Sequence[Sequence[int]], wanted: int | None = None) -> Step[list[Chain | Exception]]:
        ways = 2 if self.debias else 1
        turned_lists = [turned for listed in lists for turned in (list(listed), list(listed)[::-1])[:ways]]
        completions = yield from self._ask(turned_lists, wanted)
        chains: list[Chain | Exception] = []
        for number, listed in enumerate(lists):
            answers = completions[number * ways : number * ways + ways]
            error = next((one.error for one in answers if one.error is not None), None)
            if error is not None:
                chains.append(error)
                continue
            self._prove(listed)
            orders = [
                [turned_lists[number * ways + way][place - 1] for place in one.value or ()]
                for way, one in enumerate(answers)
            ]
            self._chains += orders
            named = list(dict.fromkeys(item for order in orders for item in order))
            ranks = {item: sum([*order, item].index(item) for order in orders) for item in named}
            self.ties += len(ranks) - len(set(ranks.values()))
            chains.append(sorted(named, key=ranks.__getitem__)[:wanted])
        return chains

    def _batch(self, lists: Sequence[Sequence[int]], wanted: int | None) -> Batch[tuple[int, ...]]:
        """The prompts of lists of one length."""
        length = len(lists[0])
        wanted = None if wanted is None or wanted >= length else wanted
        opening = (Message("system", f"{LIST_TASK}\n\nCriterion: {self.criterion}"), *self.turns)
        requests = [_order_request([self.items[item].text for item in listed], wanted) for listed in lists]
        prompts = [Prompt((*opening, Message("user", text))) for text in requests]
        tokens, form = ANSWER_TOKENS + TOKENS_PER_NUMBER * length, ranking_form(length, wanted)
        return Batch(prompts, parse_ranking(length, wanted), max_tokens=tokens, form=form)

    def _ask(self, lists: Sequence[Sequence[int]], wanted: int | None) -> Step[list[Completion[tuple[int, ...]]]]:
        """The completions; two rows that are too long for the model are cut to half, repeatedly."""
        self.prompts += len(lists)
        completions = yield from gather_alike(lists, lambda alike: self._batch(alike, wanted))
        long = [
            number
            for number, completion in enumerate(completions)
            if isinstance(completion.error, ContextTooLong) and len(lists[number]) == 2 and self._cut(lists[number])
        ]
        if long:
            again = yield from self._ask([lists[number] for number in long], wanted)
            for number, completion in zip(long, again, strict=True):
                completions[number] = completion
        self.stopped = self.stopped or next((one.error for one in completions if stops_all(one.error)), None)
        return completions

    def _cut(self, items: Sequence[int]) -> bool:
        """Show only half of the long ones of these; False if there is nothing to cut."""
        long = [self.items[item] for item in items if len(self.items[item].text.encode()) > MIN_ROW_BYTES]
        for item in long:
            item.text = shortened(item.text, max(MIN_ROW_BYTES, len(item.text.encode()) // 2))
        return bool(long)

    def set_aside_unproven(self, items: Iterable[int]) -> None:
        """Set these aside too, if they were in no readable list because all others were set aside."""
        if self.aside and len(self.items) > 1:
            error = next(iter(self.aside.values()))
            self._set_aside([item for item in items if item not in self._proven], error)

    def _prove(self, items: Iterable[int]) -> None:
        self._proven.update(dict.fromkeys(items))

    def _set_aside(self, items: Iterable[int], error: Exception) -> None:
        for item in items:
            self.aside.setdefault(item, error)

    def contradictions(self, order: Sequence[int]) -> int:
        """The number of pairs of an answer that contradict ``order``; items that are not in it come after it."""
        ranks = {item: rank for rank, item in enumerate(order)}
        against = 0
        for chain in self._chains:
            along = [ranks.get(item, len(ranks)) for item in chain]
            against += sum(rank > later for at, rank in enumerate(along) for later in along[at + 1 :])
        return against


# --- the best few of many, by ordered lists --------------------------------------------------------------------------


Chain: TypeAlias = list[int]
"""Items, best first."""
SHARED_ONE_IN = 6
"""One in so many positions of a list is for items that are in all lists."""


def best_of(items: Sequence[int], k: int, lister: Lists, longest: int) -> Step[list[int]]:
    """The first ``k`` items in order, best first, and others after them; items that were set aside are left out.

    Args:
        items: numbers.
        k: how many are wanted.
        lister: puts lists in order.
        longest: the most items of a list.
    """
    items = [item for item in items if item not in lister.aside]
    if len(items) < 2 or longest < 2:
        return items
    if len(items) <= longest or 2 * k <= longest:
        ranked = yield from _tournament(items, k, lister, longest)
    else:
        ranked = yield from _sample_sort(items, k, lister, longest)
    return [item for item in ranked if item not in lister.aside]


def _again(items: Sequence[int], k: int, lister: Lists, longest: int, chains: Sequence[Chain]) -> Step[list[int]]:
    """As :func:`best_of`, where a list gave several chains: without what was set aside since, or with shorter lists.

    These have half the length, or that of the longest chain that the model managed.
    """
    if all(item not in lister.aside for item in items):
        managed = max(map(len, chains), default=0)  # a chain of K items may be the beginning of a longer one
        half = math.ceil(min(longest, len(items)) / 2)
        longest = min(half, max(managed, 2)) if managed < k else half
    return (yield from best_of(items, k, lister, longest))


def dealt(items: Sequence[int], longest: int) -> list[list[int]]:
    """The items as lists of nearly equal length, dealt out in turn so that neighbours are in different lists."""
    count = math.ceil(len(items) / longest)
    return [list(items[number::count]) for number in range(count)]


def _tournament(items: list[int], k: int, lister: Lists, longest: int) -> Step[list[int]]:
    while len(items) > 1:
        ranked = yield from lister.rank(dealt(items, longest), wanted=k)
        chains = [chain for listed in ranked for chain in listed]
        if len(chains) == 1:
            return chains[0]
        first_ones = {item for chain in chains for item in chain[:k]}
        before, items = len(items), [item for item in items if item in first_ones]
        if len(items) == before:  # parts of a list that could not be ordered as a whole
            return (yield from _again(items, k, lister, longest, chains))
    return items


def _sample_sort(items: list[int], k: int, lister: Lists, longest: int) -> Step[list[int]]:
    step = len(items) / longest
    sample = [items[int(number * step)] for number in range(longest)]
    (chains,) = yield from lister.rank([sample])
    first = chains[0] if len(chains) == 1 else []
    if len(first) < 2:
        return (yield from _again(items, k, lister, longest, chains))
    count = min(max(1, longest // SHARED_ONE_IN), len(first) - 1)
    pivots = [first[(number + 1) * len(first) // (count + 1)] for number in range(count)]
    between: list[list[int]] = [[] for _ in range(count + 1)]
    _sort_in(first, pivots, between)
    known = set(sample)
    rest = [item for item in items if item not in known]
    ranked = yield from lister.rank(dealt(rest, longest - count), pivots)
    for chain in (chain for listed in ranked for chain in listed):
        _sort_in(chain, pivots, between)
    parts, start = [], 0
    for part in between:
        if start >= k:
            break
        parts.append((sorted(part), k - start))
        start += len(part) + 1
    sorted_parts = yield from together([best_of(part, wanted, lister, longest) for part, wanted in parts])
    in_order: list[int] = []
    for number, part in enumerate(sorted_parts):
        in_order += part if number == count else [*part, pivots[number]]
    return in_order


def _sort_in(chain: Chain, pivots: Sequence[int], between: list[list[int]]) -> None:
    """Put each other item of a chain into the part for the number of pivots before it."""
    passed = 0
    for item in chain:
        if item in pivots:
            passed += 1
        else:
            between[passed].append(item)
