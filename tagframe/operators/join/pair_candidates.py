"""Joins without labels: pairs are asked in blocks; if there are many, only pairs that are similar enough.

The necessary similarity is measured, not assumed. Some rows of one side, drawn at random, are asked against *all* rows
of the other side, so that all of their matches are known. Each other row is then asked only against rows that are as
near to it as known matches are. How near is chosen such that the share of missed matches stays below a bound. If the
embedder does not help with the claim, every pair is asked, in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tagframe.embed import encoded, get_embedder
from tagframe.operators.drivers import Step
from tagframe.operators.join.pairs import Block, Judge, Verdicts, packs
from tagframe.operators.join.sides import Side
from tagframe.operators.text_nearness import row_text

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
        for pack in packs((int(one) for one in candidates), other, CANDIDATES_A_PROMPT):
            blocks.append(Block((row,), pack) if sampled is judge.left else Block(pack, (row,)))
    return blocks
