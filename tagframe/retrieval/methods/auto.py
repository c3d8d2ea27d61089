"""The default: a log-linear posterior over small sets of tables, with fitted weights.

A first stage scores tables by a linear model over their signals. The second scores every set of up to five of the best
of them by what sums over the set cannot say: what of the question it covers, and whether it joins. The exponential of
that score, normalised, is the probability that a set is the one which the question needs. From it follow a probability
for every table, how many tables to return, and the best set of any size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tagframe.errors import InvalidArgument
from tagframe.retrieval.decompose import Decomposer
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import Method
from tagframe.retrieval.methods.sets import FEATURES, LARGEST, set_features, set_masks
from tagframe.retrieval.prepare import Prepared, anchors
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem, best_first, spanning_forest
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import SIGNALS, Evidence, gather, near_duplicates

if TYPE_CHECKING:
    from tagframe.lm import LM

POOL = 14
"""Tables of the best prior that sets are made of."""

NEEDED = 0.4
"""The chance from which ``k="auto"`` gives a table beside the most probable set: one too many costs less than one too
few. The value was chosen cross-database on half the questions of Spider and BIRD."""

_SHARE_OF_COMPLETE = 0.5
"""What P(all tables are in the set) weighs against the expected recall."""


@dataclass(frozen=True)
class Weights:
    """The weights of both stages, by name; what is not named weighs nothing.

    Attributes:
        table: of each of :data:`~tagframe.retrieval.signals.SIGNALS`, for the first stage.
        set: of each of :data:`~tagframe.retrieval.methods.sets.FEATURES`, for the second.

    Raises:
        InvalidArgument: a name that is none of these.
    """

    table: Mapping[str, float]
    set: Mapping[str, float]

    def __post_init__(self) -> None:
        for given, known in ((self.table, SIGNALS), (self.set, FEATURES)):
            unknown = sorted(given.keys() - set(known))
            if unknown:
                raise InvalidArgument(f"no weights are known of {', '.join(map(repr, unknown))}; there are {known}")

    def prior(self, signals: Floats) -> Floats:
        """The first stage's score of each table, of which the best is 0: shape (n,)."""
        scores = signals @ np.array([self.table.get(name, 0.0) for name in SIGNALS])
        return np.asarray(scores - scores.max(initial=-np.inf)) if len(scores) else scores

    def utilities(self, features: Floats) -> Floats:
        """The second stage's score of each set: shape (sets,)."""
        return np.asarray(features @ np.array([self.set.get(name, 0.0) for name in FEATURES]))


@cache
def shipped_weights() -> Weights:
    """The weights in ``tagframe/retrieval/weights.json``, made by ``python -m tag_bench fit``."""
    text = resources.files("tagframe.retrieval").joinpath("weights.json").read_text(encoding="utf-8")
    given = json.loads(text)
    return Weights(given["table"], given["set"])


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability of every small set.

    Attributes:
        places: shape (p,), ascending: the tables that sets are made of.
        masks: shape (sets,): bit b of a mask stands for ``places[b]``.
        probability: shape (sets,), sums to 1.
    """

    places: npt.NDArray[np.intp]
    masks: npt.NDArray[np.int64]
    probability: Floats

    @property
    def members(self) -> npt.NDArray[np.int64]:
        """Shape (sets, p): 1 where a set has a table."""
        return (self.masks[:, None] >> np.arange(len(self.places))) & 1

    def given_at_least(self, size: int) -> Posterior:
        """The posterior where it is known that so many tables are needed, up to the largest sets there are."""
        counts = self.members.sum(axis=1)
        kept = self.probability * (counts >= min(size, int(counts.max(initial=0))))
        return Posterior(self.places, self.masks, kept / max(float(kept.sum()), 1e-300))

    def tables(self) -> Floats:
        """The probability of each of ``places``."""
        return np.asarray(self.probability @ self.members)

    def best(self, size: int, fixed: int = 0) -> tuple[int, float]:
        """The mask of ``size`` tables that best contains what is needed, and its value.

        The value of a set is half the probability that it holds all that is needed, and half the expected recall.

        Args:
            size: how many tables, those of ``fixed`` counted.
            fixed: a mask of tables that are in.
        """
        count = len(self.places)
        contained = np.zeros(1 << count)
        contained[self.masks] = self.probability
        cube = contained.reshape([2] * count)
        for axis in range(count):  # sums over subsets, one table at a time
            low, high = np.split(cube, 2, axis=axis)
            cube = np.concatenate([low, low + high], axis=axis)
        members = self.members
        recall = (self.probability / members.sum(axis=1)) @ members
        every, bits = _all_masks(count)
        allowed = np.flatnonzero((bits.sum(axis=1) == size) & ((every & fixed) == fixed))
        value = _SHARE_OF_COMPLETE * cube.reshape(-1)[allowed] + (1 - _SHARE_OF_COMPLETE) * (bits[allowed] @ recall)
        # Where everything is surely in, the tables that are likelier go first.
        value = value + 1e-9 * (bits[allowed] @ self.tables())
        place = int(value.argmax())
        return int(allowed[place]), float(value[place])


@lru_cache(maxsize=16)
def _all_masks(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    every = np.arange(1 << count, dtype=np.int64)
    return every, (every[:, None] >> np.arange(count)) & 1


def posterior(problem: SelectionProblem, weights: Weights) -> Posterior:
    """The posterior over the sets of the most promising tables; anchors are in every set."""
    places = pool(problem)
    return posterior_of(problem, places, weights.utilities(set_features(problem, places)))


def pool(problem: SelectionProblem) -> npt.NDArray[np.intp]:
    """The tables that sets are made of, ascending: the anchors and those of the best prior."""
    return np.sort(best_first(np.where(problem.anchor, np.inf, problem.r))[:POOL]).astype(np.intp)


def posterior_of(problem: SelectionProblem, places: npt.NDArray[np.intp], utilities: Floats) -> Posterior:
    """The posterior by the utilities of the sets of ``places``."""
    masks, fixed = set_masks(len(places)), _fixed(problem, places)
    scores = np.where((masks & fixed) == fixed, utilities, -np.inf)
    odds = np.exp(scores - scores.max())
    return Posterior(places, masks, odds / odds.sum())


def _fixed(problem: SelectionProblem, places: npt.NDArray[np.intp]) -> int:
    return int(sum(1 << bit for bit, place in enumerate(places.tolist()) if problem.anchor[place]))


def fitted(
    problem: SelectionProblem, k: int | None = None, weights: Weights | None = None, known: Posterior | None = None
) -> Selection:
    """The tables that the question most probably needs.

    With ``k`` None it is the most probable set, with every other table of a chance of at least :data:`NEEDED`; the note
    says how sure it is. With a k it is the set of k tables
    that best contains what is needed, given that at least two tables are asked for where k is 2 or more.

    Args:
        problem: with ``signals``, and the first stage's score as ``r``.
        k: how many; None lets the posterior say it.
        weights: the shipped ones where None.
        known: the posterior, where it was computed before.
    """
    wanted = problem.wanted(k)
    if not wanted:
        return Selection((), note="there is nothing to choose from" if not len(problem.r) else "")
    weights = shipped_weights() if weights is None else weights
    known = posterior(problem, weights) if known is None else known
    fixed = _fixed(problem, known.places)
    anchors = fixed.bit_count()
    note = ""
    if k is None:
        surely = int(known.masks[known.probability.argmax()])
        mask = surely | sum(1 << bit for bit, chance in enumerate(known.tables().tolist()) if chance >= NEEDED)
        note = _why(known, mask, fixed)
    else:
        size = min(wanted + anchors, LARGEST + anchors, len(known.places))
        known = known.given_at_least(min(2, k) + anchors)
        mask, _ = known.best(size, fixed)
    chance = np.zeros(len(problem.r))
    chance[known.places] = known.tables()
    chosen = [place for bit, place in enumerate(known.places.tolist()) if (mask & ~fixed) >> bit & 1]
    order = sorted(chosen, key=lambda place: (-chance[place], -problem.r[place], place))
    if k is not None:  # beyond the largest sets that are scored, the first stage knows better
        others = [
            place for place in best_first(problem.r).tolist() if place not in chosen and not problem.anchor[place]
        ]
        order += others[: wanted - len(order)]
    together = [*order, *np.flatnonzero(problem.anchor).tolist()]
    edges, _ = spanning_forest(problem.link, together)
    table_weights = np.array([weights.table.get(name, 0.0) for name in SIGNALS])
    contributions = {
        name: problem.signals[order, position] * table_weights[position] for position, name in enumerate(SIGNALS)
    }
    objective = float(known.probability[known.masks == mask].sum())
    return Selection(tuple(order), edges, objective, chance[order], contributions, chance, note)


def _why(known: Posterior, mask: int, fixed: int) -> str:
    """How sure the set is, and what comes next."""
    share = float(known.probability[known.masks == mask].sum())
    chances = known.tables()
    outside = [float(chances[bit]) for bit in range(len(chances)) if not (mask | fixed) >> bit & 1]
    following = f"; of the next table it is {max(outside):.0%}" if outside else ""
    count = (mask & ~fixed).bit_count()
    tables = "1 table" if count == 1 else f"{count} tables"
    return f"{tables}: the chance that exactly these are needed is {share:.0%}{following}"


def evidence(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Evidence:
    """What speaks for each table: see :func:`~tagframe.retrieval.signals.gather`."""
    return gather(index, question)


def among_promising(
    index: RetrievalIndex,
    question: Question,
    found: Evidence,
    anchored: int | None = None,
    weights: Weights | None = None,
) -> Prepared[SelectionProblem]:
    """The problem over the tables of the best first stage's score, from the evidence on."""
    prior = (shipped_weights() if weights is None else weights).prior(found.signals)
    chosen = best_first(prior)[:POOL].tolist()
    tables = tuple(sorted({*chosen, *([] if anchored is None else [anchored])}))
    places = list(tables)
    problem = SelectionProblem(
        r=prior[places],
        fine=found.rows[:, places],
        omega=index.joinability.matrix(tables),
        kind=found.kind,
        row_weight=found.weight,
        signals=found.signals[places],
        source=index.database[places],
        link=index.links.matrix(tables),
        similarity=near_duplicates(index, tables),
        anchor=anchors(tables, anchored),
    )
    return Prepared(tables, problem, question.told, found)


AUTO = Method(
    "auto",
    "a fitted posterior over sets of tables, which also says how many",
    evidence,
    among_promising,
    fitted,
    decomposer=Decomposer(),
    takes_coarse=False,
    says_k=True,
)
