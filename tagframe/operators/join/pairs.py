"""Direct questions about pairs of rows: one pair at a time, or several left rows with several right rows.

Without labels, pairs are asked in blocks; if there are many, only pairs that are similar enough. The necessary
similarity is measured, not assumed. Some rows of one side, drawn at random, are asked against *all* rows of the other
side, so that all of their matches are known. Each other row is then asked only against rows that are as near to it as
known matches are. How near is chosen such that the share of missed matches stays below a bound. If the embedder does
not help with the claim, every pair is asked, in blocks.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.blocks import DATA_RULE, fence
from tagframe.embed import encoded, get_embedder
from tagframe.errors import AnswerRejected, ContentFiltered, ContextTooLong
from tagframe.lm import Accept, Batch, Form, Message, Prompt
from tagframe.operators.cells import FIELD_RULE, encode, pack
from tagframe.operators.drivers import Step, gather_alike, stops_all, together
from tagframe.operators.join.sides import Side
from tagframe.operators.packing import ask_rows
from tagframe.operators.row_question import WORLD, Reply, claim_question
from tagframe.operators.text_nearness import row_text
from tagframe.operators.values import UNSURE, parse_json

MAX_SIDE_ROWS = 8
"""The most rows of each side in one prompt: 64 pairs."""
MAX_PAIRS_A_ROUND = 2_000
"""The number of prompts that are made at a time: those of a million pairs would fill the memory."""
MAX_PAIRS_SPLIT_SINGLY = 8
"""A broken block of more pairs is asked again in halves; one of so many pairs or fewer, pair by pair."""
MAX_SIDE_BYTES = 6_000
"""The most bytes of the rows of one side in one prompt, except for a single row."""

_MANY = (
    "You are given rows of a left and of a right table, each with an id. Find every pair of a left and a right row of "
    f"which the claim is true. {WORLD} {DATA_RULE} {FIELD_RULE}"
)
_MANY_FORM = 'Answer with one JSON list of all pairs of which the claim is true, such as [["L1", "R2"]], or []:'
_MANY_EXPLAINED = (
    "Answer with one JSON list of all pairs of which the claim is true, each with the reason in one short sentence, "
    'such as [["L1", "R2", "both praise the songs"]], or []:'
)
_PAIRS_FORM = Form({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})
_TOKENS_A_PAIR = 16
_TOKENS_A_REASON = 32


@dataclass(frozen=True)
class Block:
    """Rows whose pairs are asked about together, as numbers of distinct rows of each side."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.left) * len(self.right)


def _shape(block: Block) -> tuple[int, int]:
    return len(block.left), len(block.right)


@dataclass
class Verdicts:
    """The answers about pairs.

    Attributes:
        true: the pairs for which the claim is true, with the reason if one was requested.
        unsure: the pairs about which the model cannot tell.
        failed: blocks without an answer, with the error of each.
    """

    true: dict[tuple[int, int], str | None] = field(default_factory=dict)
    unsure: set[tuple[int, int]] = field(default_factory=set)
    failed: list[tuple[Block, Exception]] = field(default_factory=list)

    def note(self, pair: tuple[int, int], reply: Reply[bool]) -> None:
        """Add the answer about a pair, or its error."""
        if reply.value is UNSURE:
            self.unsure.add(pair)
        elif reply.value:
            self.true[pair] = reply.reason
        elif reply.error is not None:
            self.failed.append((Block((pair[0],), (pair[1],)), reply.error))

    def add(self, other: Verdicts) -> None:
        """Add the answers about further pairs."""
        self.true |= other.true
        self.unsure |= other.unsure
        self.failed += other.failed


@dataclass(frozen=True)
class Judge:
    """Asks about pairs of two sides.

    Attributes:
        claim: the claim as written in a prompt.
        left: the left side.
        right: the right side.
        explained: whether reasons are requested.
        window: the most tokens of one request, or None.
        examples: solved pairs: lines of a left and a right row, and whether the claim is true of them.
        again: how many prompts may still be used for pairs of broken blocks.
    """

    claim: str
    left: Side
    right: Side
    explained: bool = False
    examples: tuple[tuple[str, str, bool], ...] = ()
    window: int | None = None
    again: list[int] = field(default_factory=lambda: [0])

    @property
    def sides(self) -> tuple[Side, Side]:
        """The left and the right one."""
        return self.left, self.right

    def allow(self) -> int:
        """Allow the repair of one broken block, or four prompts a block; returns the largest number of prompts."""
        blocks = math.prod(len(packs(range(len(side)), side)) for side in self.sides)
        self.again[0] = max(4 * blocks, 2 * MAX_SIDE_ROWS**2)  # a row that cannot be read breaks each of its blocks
        return blocks + min(self.again[0], 2 * len(self.left) * len(self.right))

    def ask_each(
        self, pairs: Sequence[tuple[int, int]], guess: str | tuple[str, ...], size: int = 1
    ) -> Step[tuple[dict[tuple[int, int], Reply[bool]], list[str]]]:
        """The reply for each pair, and remarks on packs and their audit.

        A pair is a row that has the fields of both sides, which the claim names apart: ``size`` are in a prompt.
        """
        turns = []
        for left, right, truth in self.examples:
            answer = f"So it is.\nAnswer: {truth}" if self.explained else str(truth)
            turns += [Message("user", fence(_one_row(left, right))), Message("assistant", answer)]
        question = claim_question(self.claim, turns, explains=self.explained, window=self.window, guess=guess)
        lines = [_one_row(self.left.lines[left], self.right.lines[right]) for left, right in pairs]
        replies = yield from ask_rows(question, lines, size)
        return {pair: replies.of[line] for pair, line in zip(pairs, lines, strict=True)}, replies.remarks

    def judge_each(self, pairs: Sequence[tuple[int, int]], size: int = 1) -> Step[tuple[Verdicts, str]]:
        """:meth:`ask_each` as verdicts, and the remarks as one."""
        replies, remarks = yield from self.ask_each(pairs, "False" if size == 1 else ("True", "False"), size)
        verdicts = Verdicts()
        for pair, reply in replies.items():
            verdicts.note(pair, reply)
        return verdicts, " ".join(remarks).removesuffix(".")

    def judge_blocks(self, blocks: Sequence[Block], guess: str = "[]") -> Step[Verdicts]:
        """The answers about all pairs of the blocks; each block is a prompt.

        If the answer to a block cannot be read, is too long or is filtered, the block is asked in halves, and then pair
        by pair, as long as :attr:`again` allows: pair by pair, a whole join would cost 64 times as much.

        Args:
            blocks: of rows.
            guess: the assumed answer, for quotes.
        """
        verdicts = Verdicts()
        for start in range(0, len(blocks), MAX_PAIRS_A_ROUND):
            yield from self._judge_wave(blocks[start : start + MAX_PAIRS_A_ROUND], verdicts, guess)
            stopped = next((error for _, error in verdicts.failed if stops_all(error)), None)
            if stopped is not None:
                verdicts.failed += [(block, stopped) for block in blocks[start + MAX_PAIRS_A_ROUND :]]
                break
        return verdicts

    def _judge_wave(self, blocks: Sequence[Block], verdicts: Verdicts, guess: str) -> Step[None]:
        waiting = list(blocks)
        while waiting:
            pairs = [(block.left[0], block.right[0]) for block in waiting if len(block) == 1]
            several = [block for block in waiting if len(block) > 1]
            shapes = list(dict.fromkeys(map(_shape, several)))
            several.sort(key=lambda block: shapes.index(_shape(block)))  # in this order they may be asked again
            asking = gather_alike(several, lambda alike: self._block_batch(alike, guess), _shape)
            steps: list[Step[Any]] = [asking, self.judge_each(pairs)]
            completions, (of_pairs, _) = yield from together(steps)
            verdicts.add(of_pairs)
            waiting = []
            for block, completion in zip(several, completions, strict=True):
                if completion.value is not None:
                    for (left, right), reason in completion.value.items():
                        verdicts.true[block.left[left], block.right[right]] = reason
                elif isinstance(completion.error, AnswerRejected | ContextTooLong | ContentFiltered) and (
                    parts := self._parts(block)
                ):
                    waiting += parts
                else:
                    verdicts.failed.append((block, completion.error))

    def _parts(self, block: Block) -> list[Block]:
        """The parts in which a broken block is asked again; none if that exceeds the allowed prompts."""
        pairs = [Block((left,), (right,)) for left in block.left for right in block.right]
        parts = halves(block) if len(block) > MAX_PAIRS_SPLIT_SINGLY else pairs
        if len(parts) > self.again[0]:
            return []
        self.again[0] -= len(parts)
        return parts

    def _block_batch(self, blocks: Sequence[Block], guess: str) -> Batch[dict[tuple[int, int], str | None]]:
        """The prompts of blocks of one shape."""
        form = _MANY_EXPLAINED if self.explained else _MANY_FORM
        opening: list[Message] = [Message("system", f"{_MANY} Judge every pair.\n\nClaim: {self.claim}")]
        for left, right, truth in self.examples:
            solved = [["L1", "R1", *(["so it is"] if self.explained else [])]] if truth else []
            opening += [Message("user", _listed([left], [right])), Message("assistant", json.dumps(solved))]
        listed = [
            _listed([self.left.lines[row] for row in block.left], [self.right.lines[row] for row in block.right])
            for block in blocks
        ]
        prompts = [Prompt((*opening, Message("user", f"{rows}\n{form}"))) for rows in listed]
        accept = pair_reader(*_shape(blocks[0]), self.explained)
        tokens = (_TOKENS_A_PAIR + _TOKENS_A_REASON * self.explained) * (1 + len(blocks[0]))
        return Batch(prompts, accept, max_tokens=tokens, guess=guess, form=_PAIRS_FORM)


@functools.cache
def pair_reader(left: int, right: int, explained: bool) -> Accept[dict[tuple[int, int], str | None]]:
    """A parser for the list of pairs of a block with so many left and right rows; rows count from 0."""

    def read(text: str) -> dict[tuple[int, int], str | None]:
        listed, body = parse_json(text, "a JSON list of pairs")
        if not isinstance(listed, list):
            raise AnswerRejected(f"expected a JSON list of pairs, got {body[:80]!r}")
        pairs: dict[tuple[int, int], str | None] = {}
        for pair in listed:
            if (
                not isinstance(pair, list)
                or not len(pair) == 2 + explained
                or not all(isinstance(one, str) for one in pair)
            ):
                raise AnswerRejected(f"expected pairs as {['L1', 'R2', *(['why'] * explained)]}, got {pair!r:.80}")
            pairs[_number(pair[0], "L", left), _number(pair[1], "R", right)] = pair[2] if explained else None
        return pairs

    return read


def _number(name: str, letter: str, count: int) -> int:
    digits = name.strip().removeprefix(letter)
    if not name.strip().startswith(letter) or not digits.isdecimal() or not 1 <= int(digits) <= count:
        raise AnswerRejected(f"there is no row {name[:40]!r}: rows are {letter}1 to {letter}{count}")
    return int(digits) - 1


def halves(block: Block) -> list[Block]:
    """A block in two, across its longer side."""
    if len(block.left) >= len(block.right):
        middle = len(block.left) // 2
        return [Block(block.left[:middle], block.right), Block(block.left[middle:], block.right)]
    middle = len(block.right) // 2
    return [Block(block.left, block.right[:middle]), Block(block.left, block.right[middle:])]


def packs(rows: Iterable[int], side: Side, most: int = MAX_SIDE_ROWS) -> list[tuple[int, ...]]:
    """Rows in order, in packs that fit into one prompt."""
    rows = list(rows)
    packed = pack([len(side.lines[row].encode()) for row in rows], MAX_SIDE_BYTES, most=most)
    return [tuple(rows[at] for at in positions) for positions in packed]


def _one_row(left: str, right: str) -> str:
    """Two rows as one."""
    sides = [json.loads(left), json.loads(right)]
    both = sides[0] | sides[1] if all(isinstance(side, dict) for side in sides) else dict(zip("LR", sides, strict=True))
    return encode(both)


def _listed(left: Sequence[str], right: Sequence[str]) -> str:
    tables = (("left", "L", left), ("right", "R", right))
    return "\n".join(
        fence([f"{letter}{number} {line}" for number, line in enumerate(lines, 1)], tag)
        for tag, letter, lines in tables
    )


# --- pairs without labels: if there are many, only those that are similar enough -------------------------------------


SAMPLED_ROWS = 32
"""The number of rows that are asked against all of the other side, at a time."""
MIN_ROWS_TO_SAMPLE = 4 * SAMPLED_ROWS
"""The fewest rows of a side for which sampling is worth it."""
CANDIDATES_A_PROMPT = 16
"""The number of candidates of one row in one prompt."""
DELTA = 0.1
"""The probability that the bound on the recall does not hold."""
SEED = 11
_CHUNK_ROWS = 512


@dataclass
class Candidates:
    """The answers about pairs.

    Attributes:
        verdicts: of the pairs that were asked.
        recall: the lowest recall of the candidates, with probability 1 - DELTA; 1 if every pair was asked.
        prompts: the number of prompts, without the halves of blocks whose answers could not be read.
        how: how the candidates were chosen, as a text.
    """

    verdicts: Verdicts
    recall: float = 1.0
    prompts: int = 0
    how: str = "every pair was asked, in blocks"


def ask_candidates(judge: Judge, recall: float) -> Step[Candidates]:
    """The verdicts of all pairs that may match, in blocks.

    Args:
        judge: asks about pairs.
        recall: the least share of the matches to find.
    """
    candidates = Candidates(Verdicts())
    sampled, other = (judge.left, judge.right) if len(judge.left) >= len(judge.right) else (judge.right, judge.left)
    order = np.random.default_rng(SEED).permutation(len(sampled))
    done = 0
    embedder = get_embedder() if len(sampled) >= MIN_ROWS_TO_SAMPLE and recall < 1 else None
    if embedder is not None:
        vectors, others = (
            encoded(embedder, [row_text(line) for line in side.lines], "passage") for side in (sampled, other)
        )
        while done + SAMPLED_ROWS <= len(sampled) // 2:
            yield from _ask(judge, candidates, _blocks(judge, np.sort(order[done : done + SAMPLED_ROWS])))
            done += SAMPLED_ROWS
            matches = _matches(candidates.verdicts, sampled is judge.left, order[:done])
            near = _nearest(matches, order[done:], vectors, others, recall)
            if near is None:
                continue
            blocks = _candidate_blocks(near, judge, sampled, other)
            if len(blocks) < len(_blocks(judge, order[done:])):
                yield from _ask(judge, candidates, blocks)
                candidates.recall, candidates.how = near.recall, near.how
                return candidates
            break
    yield from _ask(judge, candidates, _blocks(judge, np.sort(order[done:])))
    return candidates


def _ask(judge: Judge, candidates: Candidates, blocks: Sequence[Block]) -> Step[None]:
    candidates.verdicts.add((yield from judge.judge_blocks(blocks)))
    candidates.prompts += len(blocks)


def _blocks(judge: Judge, rows: npt.NDArray[np.intp]) -> list[Block]:
    """Blocks with all pairs of these rows of the larger side and all rows of the other side."""
    left, right = rows.tolist(), range(len(judge.right))
    if len(judge.left) < len(judge.right):
        left, right = range(len(judge.left)), rows.tolist()
    across = packs(right, judge.right)
    return [Block(one, other) for one in packs(left, judge.left) for other in across]


def _matches(verdicts: Verdicts, by_left: bool, rows: npt.NDArray[np.intp]) -> dict[int, list[int]]:
    """The known matches of each sampled row that has matches."""
    known: dict[int, list[int]] = {}
    wanted = set(rows.tolist())
    for left, right in verdicts.true:
        row, partner = (left, right) if by_left else (right, left)
        if row in wanted:
            known.setdefault(row, []).append(partner)
    return known


@dataclass(frozen=True)
class _Near:
    """The candidates of each row.

    Attributes:
        of: the candidates by row.
        recall: the bound.
        how: how they were chosen.
    """

    of: dict[int, npt.NDArray[np.intp]]
    recall: float
    how: str


def _nearest(
    matches: dict[int, list[int]],
    rows: npt.NDArray[np.intp],
    vectors: npt.NDArray[np.float32],
    others: npt.NDArray[np.float32],
    recall: float,
) -> _Near | None:
    """The fewest candidates whose recall has a bound of at least ``recall``; None if the sample allows no such bound.

    Two rules are tried: a number of nearest rows for each row, or all rows within a distance.
    """
    if not matches:
        return None
    ranks, scores = [], []
    for row, partners in matches.items():
        similar = others @ vectors[row]
        ranks.append(np.array([1 + int((similar > similar[partner]).sum()) for partner in partners], dtype=float))
        scores.append(-similar[partners].astype(float))
    chosen = []
    for values, by_rank in ((ranks, True), (scores, False)):
        limit = _limit(values, recall)
        if limit is None:
            continue
        of: dict[int, npt.NDArray[np.intp]] = {}
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            similar = vectors[chunk] @ others.T
            for row, line in zip(chunk.tolist(), similar, strict=True):
                order = np.argsort(-line, kind="stable")
                of[row] = order[: int(limit[0])] if by_rank else order[: int((line >= -limit[0]).sum())]
        how = f"its {int(limit[0])} nearest rows" if by_rank else f"rows of similarity {-limit[0]:.2f} or more"
        how_chosen = (
            f"all matches of {len(matches)} rows are known; each other row was compared only with {how}, which finds "
            f"at least {limit[1]:.0%} of the matches (with probability {1 - DELTA:.0%})"
        )
        chosen.append(_Near(of, limit[1], how_chosen))
    return min(chosen, key=lambda near: sum(map(len, near.of.values())), default=None)


def _limit(values: Sequence[npt.NDArray[np.float64]], recall: float) -> tuple[float, float] | None:
    """The least limit on ``values`` (of each row's matches) under which recall has a bound of at least ``recall``.

    Matches of one row are not independent draws, but rows are. So a row counts by the share of its matches that is
    missed, and the share missed of all is bounded as a share of rows (Clopper and Pearson 1934), at half of DELTA since
    two rules are tried.
    """
    every = np.concatenate(values)
    for limit in np.unique(every):
        of_pairs = float((every > limit).mean())
        of_rows = float(np.mean([(row > limit).mean() for row in values]))
        bound = 1 - most_missed(max(of_pairs, of_rows) * len(values), len(values), DELTA / 2)
        if bound >= recall:
            return float(limit), bound
    return None


def most_missed(missed: float, rows: int, delta: float) -> float:
    """The largest missed share of all rows, with probability 1 - delta, given ``missed`` of ``rows`` drawn ones.

    >>> round(most_missed(0, 29, 0.05), 3)
    0.098
    """
    if missed >= rows:
        return 1.0
    counts = np.arange(math.ceil(missed) + 1)
    ways = np.cumsum(np.concatenate(([0.0], np.log((rows + 1 - counts[1:]) / counts[1:]))))
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        chance = np.exp(ways + counts * math.log(middle) + (rows - counts) * math.log1p(-middle)).sum()
        low, high = (middle, high) if chance > delta else (low, middle)
    return high


def _candidate_blocks(near: _Near, judge: Judge, sampled: Side, other: Side) -> list[Block]:
    blocks = []
    for row, candidates in near.of.items():
        for part in packs((int(one) for one in candidates), other, CANDIDATES_A_PROMPT):
            blocks.append(Block((row,), part) if sampled is judge.left else Block(part, (row,)))
    return blocks
