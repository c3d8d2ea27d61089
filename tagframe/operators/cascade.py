"""``sem_filter(cascade=…)``: a cheap proxy decides the clear rows and the model decides the others.

Recall and precision hold with a finite-sample guarantee.

Rows are in the order of the proxy. It may decide those at the two ends: at the low end, a positive row that was not
asked about is *missed*; at the high end, a negative one. All rows in between are asked about, and the oracle's answers
count as right. With K known positive rows, n rows that the proxy decides to be true, and at most A missed rows at the
low end and B at the high end, the condition is

    A ≤ (1 − recall) / recall · (K + n − B)    and    B ≤ (1 − precision) / precision · (K + n − B).

**The bound.** An end is walked from its extreme inwards, and each of its rows is asked independently with the same
probability π. Each wrong row is then *found* with probability π or missed with 1 − π, however good the proxy is. So the
number of rows found before the (b + 1)-th miss has the negative binomial distribution. Let f be the largest number with
P(found before the (b + 1)-th miss ≤ f) ≤ α. If the walk goes on only while no more than f rows are found, it passes b
misses with a probability of at most α: exactly, for any number of rows, and wherever the walk stops. (SUPG, Kang et
al., VLDB 2020, and BARGAIN, Zeighami et al., SIGMOD 2026, also find thresholds from a sample that hold in the
finite-sample sense. They bound a rate at each threshold. Here the number of misses is bounded at the point where the
walk stops, which needs no correction for its choice.)

b, π and the order may depend on everything known before the end is sampled, but not on the sample. Each wrong row that
is found by later questions reduces b by one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.display import Displayable
from tagframe.errors import InvalidArgument
from tagframe.lm import Bound
from tagframe.operators.drivers import Step, bounded
from tagframe.operators.packing import max_prompts
from tagframe.operators.row_question import Reply
from tagframe.operators.text_nearness import Floats, similarities, vectors_of

Proxy: TypeAlias = "str | pd.Series | Sequence[float] | np.ndarray[Any, Any] | Callable[[pd.DataFrame], Any]"
EMBEDDING = CLASSIFIER, SIMILARITY = "classifier", "similarity"

BY_PROXY = "decided by the cascade's proxy"
"""The note of such a row's outcome."""


@dataclass(frozen=True)
class Cascade:
    """How ``sem_filter`` may leave rows to a proxy.

    With a probability of at least 1 - ``delta`` over the draws of the sample, the kept rows reach both the recall and
    the precision, measured against the model's answers on all rows. That holds for every proxy, good or poor; a poor
    one saves no calls.

    Args:
        proxy: ``"classifier"``, a logistic regression on the rows' embeddings, trained on the model's answers to the
            sample; ``"similarity"`` of the embeddings of row and claim; a column of the frame, by its label; a score
            for each row, as a Series, an array or a list; or a function from the frame to such scores, such as one that
            asks a smaller model: ``lambda rows: rows.tag.sem_score("…", lm="openai/gpt-4o-mini")["_score"]``. (A
            function is also called for a quote.) Scores may have any scale and either direction.
        recall: the share of the rows that the model would keep which are kept; in (0, 1].
        precision: the share of the kept rows that the model would keep; in (0, 1].
        delta: the largest probability that recall or precision is missed; in (0, 1).
        seed: of the sample; the same seed on the same rows asks the same questions.

    Raises:
        InvalidArgument: a value is not allowed.

    >>> Cascade(recall=0.95)
    Cascade(proxy='classifier', recall=0.95, precision=0.9, delta=0.1, seed=0)
    """

    proxy: Proxy = CLASSIFIER
    recall: float = 0.9
    precision: float = 0.9
    delta: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, largest in (("recall", "1]"), ("precision", "1]"), ("delta", "1)")):
            value = getattr(self, name)
            fits = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) <= 1
            if not fits or (name == "delta" and float(value) == 1):
                raise InvalidArgument(f"a cascade's {name} must be a number in (0, {largest}; got {value!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InvalidArgument(f"a cascade's seed must be a whole number, at least 0; got {self.seed!r}")


@dataclass(frozen=True, repr=False)
class CascadeReport(Displayable):
    """What a cascade did and saved; ``result.tag.cascade``.

    Attributes:
        rows: the number of distinct rows.
        judged: how many of them the model was asked about, the sample included.
        calibration: how many of these were drawn at random, to find out which rows the proxy may decide.
        rounds: how many rounds of questions there were.
        kept_by_proxy: how many rows the proxy judged true.
        left_out_by_proxy: how many rows the proxy judged false.
        missed_at_most: the most true rows among these, if the guarantee holds.
        wrong_at_most: the most false rows among those that the proxy kept, if the guarantee holds.
        recall: the lowest recall, if the guarantee holds.
        precision: the lowest precision, if the guarantee holds.
        delta: the largest probability that the guarantee does not hold.
    """

    rows: int
    judged: int
    calibration: int
    rounds: int
    kept_by_proxy: int
    left_out_by_proxy: int
    missed_at_most: int
    wrong_at_most: int
    recall: float
    precision: float
    delta: float

    @property
    def share_of_calls(self) -> float:
        """The share of distinct rows that the model was asked about; the cascade saved the rest."""
        return self.judged / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        share = f"{self.judged:,} of {self.rows:,} distinct rows ({self.share_of_calls:.0%}"
        return (
            f"The model was asked about {share}, {self.calibration:,} of them drawn for calibration). The proxy kept"
            f" {self.kept_by_proxy:,} and left out {self.left_out_by_proxy:,}. Recall is at least {self.recall:g} and"
            f" precision at least {self.precision:g}, with a probability of {1 - self.delta:g}."
        )


def scores_of(cascade: Any, frame: pd.DataFrame) -> Floats | None:
    """The scores of a cascade's proxy, one for each row, before the model is asked; None for the built-in classifier.

    Raises:
        InvalidArgument: ``cascade`` is not a :class:`Cascade`, or its scores do not fit the frame's rows.
    """
    if not isinstance(cascade, Cascade):
        raise InvalidArgument(f"cascade must be a tagframe.Cascade(proxy=…, recall=…, precision=…); got {cascade!r}")
    proxy: Any = cascade.proxy
    if isinstance(proxy, str) and proxy in EMBEDDING:
        return None
    given = proxy
    if callable(proxy):
        given = proxy(frame)
    elif isinstance(proxy, str):
        if proxy not in frame.columns:
            raise InvalidArgument(
                f"a cascade's proxy must be 'classifier', 'similarity', a column, scores, or a function of the frame; "
                f"got {proxy!r}, which is not a column"
            )
        given = frame[proxy]
    if isinstance(given, pd.Series) and not given.index.equals(frame.index):
        raise InvalidArgument("the proxy's scores have another index than the frame; take them from the frame itself")
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a proxy's scores must be numbers; got {given!r:.200} ({error})") from error
    if scores.shape != (len(frame),) or not np.isfinite(scores).all():
        raise InvalidArgument(
            f"a proxy must have one finite score for each of the {len(frame):,} rows; got shape {scores.shape} with"
            f" {int((~np.isfinite(scores)).sum()):,} that are not finite"
        )
    return scores


def decided_by(
    cascade: Cascade,
    scores: Floats | None,
    claim: str,
    rows: Sequence[str | None],
    ask: Callable[[list[str]], Step[list[Reply[bool]]]],
    size: int = 1,
) -> Step[tuple[dict[str, Reply[bool]], CascadeReport]]:
    """The verdict on each distinct row, by the model or by the proxy.

    Args:
        cascade: the proxy and the targets.
        scores: of the proxy, by :func:`scores_of`.
        claim: the claim as written in a prompt.
        rows: of the frame, as lines of JSON; None for one that is not asked about.
        ask: asks the model about some lines.
        size: rows of one prompt.
    """
    counts = Counter(row for row in rows if row is not None)
    distinct = list(counts)
    promised = {"recall": cascade.recall, "precision": cascade.precision, "delta": cascade.delta}
    if not distinct:
        return {}, CascadeReport(0, 0, 0, 0, 0, 0, 0, 0, **promised)
    first = {line: row for row, line in reversed(list(enumerate(rows)))}  # of equal rows
    own = None if scores is None else scores[[first[line] for line in distinct]]
    weights = np.array([counts[line] for line in distinct], dtype=np.intp)
    targets = Targets(float(cascade.recall), float(cascade.precision), float(cascade.delta))
    deciding = decide(weights, _estimate(cascade.proxy, own, claim, distinct), targets, cascade.seed)
    verdicts: dict[str, Reply[bool]] = {}
    truths: Truths | None = None
    bound = Bound(max_prompts(len(distinct), size))
    while True:
        try:
            wanted = deciding.send(truths)  # type: ignore[arg-type]  # None begins it
        except StopIteration as end:
            decision = end.value
            break
        batch = [distinct[number] for number in wanted]
        answers = yield from bounded(ask(batch), bound)
        verdicts.update(zip(batch, answers, strict=True))
        truths = np.array([-1 if reply.value is None else reply.value is True for reply in answers], dtype=np.int8)
    left = np.flatnonzero(~decision.judged)
    proxy_yes = int((decision.truths[left] == 1).sum())
    report = CascadeReport(
        rows=len(distinct),
        judged=len(verdicts),
        calibration=decision.calibration,
        rounds=decision.rounds,
        kept_by_proxy=proxy_yes,
        left_out_by_proxy=len(left) - proxy_yes,
        missed_at_most=decision.missed_at_most,
        wrong_at_most=decision.wrong_at_most,
        **promised,
    )
    by_proxy = {distinct[number]: Reply(bool(decision.truths[number]), note=BY_PROXY) for number in left}
    return verdicts | by_proxy, report


def _estimate(proxy: Any, scores: Floats | None, claim: str, distinct: Sequence[str]) -> Estimate:
    if scores is not None:
        return calibrated(scores)
    return calibrated(similarities(claim, distinct)) if proxy == SIMILARITY else trained(vectors_of(distinct))


# --- the rows that a proxy may decide --------------------------------------------------------------------------------


Positions: TypeAlias = npt.NDArray[np.intp]
Truths: TypeAlias = npt.NDArray[np.int8]
"""Answers of the oracle: 1 for true, 0 for any other answer, -1 for no answer."""

Estimate: TypeAlias = Callable[[Positions, Truths], Floats]
"""A function from the rows asked and their answers to each row's probability of being true. Good estimates save calls;
bad ones cost calls, but the guarantee holds."""

PILOT_SHARE, MIN_PILOT_ROWS, MAX_PILOT_ROWS = 0.03, 60, 300
"""How many rows are asked at random first: a share of the rows, between two limits."""
RATES: Floats = np.geomspace(0.004, 0.7, 32)
SPLITS: Floats = np.linspace(0.1, 0.9, 9)
ALPHA_SHARES: Floats = np.linspace(0.2, 0.9, 8)
BOLD_FACTOR = 1.5
"""The factor on the allowed misses in the first, bold choice of the middle. The rows asked then stay asked, and the
probabilities are estimated again from them."""
_ROUNDING = 1e-9
MIN_WRONG_ROWS = 0.3
"""At least so many wrong rows are assumed to be possible among as many rows as were asked."""


@dataclass(frozen=True)
class Targets:
    """The guarantee: recall and precision, in (0, 1], which both hold with a probability of at least 1 - ``delta``."""

    recall: float
    precision: float
    delta: float


@dataclass(frozen=True)
class Decision:
    """The decision about the rows.

    Attributes:
        truths: shape (n,): the oracle's answers for rows that it was asked about, the proxy's decision for others.
        judged: shape (n,): whether the oracle was asked.
        calibration: the number of rows asked at random: at the beginning, and at the two ends.
        rounds: the number of rounds in which the oracle was asked.
        missed_at_most: the most true rows among those that the proxy decided to be false.
        wrong_at_most: the most false rows among those that it decided to be true.
    """

    truths: Truths
    judged: npt.NDArray[np.bool_]
    calibration: int
    rounds: int
    missed_at_most: int
    wrong_at_most: int


@lru_cache(maxsize=65536)
def found_at_most(missed: int, rate: float, alpha: float) -> int:
    """How many wrong rows may be found, for at most ``missed`` to be missed with confidence 1 - ``alpha``.

    >>> found_at_most(missed=28, rate=0.1, alpha=0.05), found_at_most(missed=27, rate=0.1, alpha=0.05)
    (0, -1)

    Returns:
        -1 if even 0 would be too many.
    """
    if missed < 0:
        return -1
    steps = np.arange(1, int((missed + 1) * rate / (1 - rate)) + 3)  # to the mean, below which the quantile is
    logs = np.cumsum(np.log(rate * (missed + steps) / steps))
    chances = np.exp((missed + 1) * np.log1p(-rate) + np.concatenate(([0.0], logs)))
    return int(np.searchsorted(np.cumsum(chances), alpha, side="right")) - 1


class Sampling(NamedTuple):
    """How one end is sampled.

    Attributes:
        rows: of the end, in the order of the walk.
        allowed: how many may be missed.
        cost: the expected number of rows that are asked in total.
        rate: the probability that a row is asked at random.
        found: how many wrong rows may be found.
        reach: the expected number of rows that the walk passes.
        missed: the expected number of missed rows.
    """

    rows: Positions
    allowed: int
    cost: float
    rate: float
    found: int
    reach: int
    missed: float


def cheapest_sampling(rows: Positions, risks: Floats, allowed: int, alpha: float) -> Sampling:
    """The cheapest way to leave an end to the proxy.

    Args:
        rows: shape (n,), in the order of the walk.
        risks: shape (n,), the probability that each is wrong.
        allowed: how many may be missed.
        alpha: the probability with which more may be missed.
    """
    expected = np.cumsum(risks)
    best = Sampling(rows, 0, float(len(rows)), 1.0, -1, 0, 0.0)
    for rate in map(float, RATES):
        most_found = found_at_most(allowed, rate, alpha)
        if most_found < 0:
            continue
        reach = int(np.searchsorted(expected, (most_found + 0.5) / rate))
        cost = rate * reach + len(rows) - reach
        if reach and cost < best.cost:
            best = Sampling(rows, allowed, cost, rate, most_found, reach, float(expected[reach - 1] * (1 - rate)))
    return best


class _End:
    """An end that has been walked: rows that the proxy may decide, and the most of them that are wrong."""

    def __init__(self, rows: Positions, right: int, allowed: int) -> None:
        self.rows = rows  # the riskiest last
        self.right = right  # the answer that would not be wrong
        self.allowed = min(allowed, len(rows))

    def settle(self, judged: npt.NDArray[np.bool_], truths: Truths) -> None:
        """Account for rows that were asked: wrong ones that were found cannot be missed any more."""
        now = judged[self.rows]
        self.allowed -= int((truths[self.rows[now]] != self.right).sum())
        self.rows = self.rows[~now]
        self.allowed = max(0, min(self.allowed, len(self.rows)))


class _Cascade:
    def __init__(self, weights: npt.NDArray[np.intp], estimate: Estimate, targets: Targets, seed: int) -> None:
        self.weights = weights
        self.estimate = estimate
        self.targets = targets
        self.random = np.random.default_rng(seed)
        self.truths: Truths = np.full(len(weights), -1, dtype=np.int8)
        self.judged = np.zeros(len(weights), dtype=bool)
        self.shuffled = self.random.permutation(len(weights))  # rows of equal risk must not be in the frame's order
        self.calibration = self.rounds = 0

    def ask(self, rows: Positions) -> Generator[Positions, Truths, None]:
        rows = np.sort(rows[~self.judged[rows]])
        if len(rows):
            self.truths[rows] = yield rows
            self.judged[rows] = True
            self.rounds += 1

    def decided(self, low: _End | None = None, high: _End | None = None) -> Decision:
        truths = np.where(self.judged, self.truths, 0).astype(np.int8)
        if high is not None:
            truths[high.rows] = 1
        bounds = (0 if low is None else low.allowed, 0 if high is None else high.allowed)
        return Decision(truths, self.judged, self.calibration, self.rounds, *bounds)

    def known(self) -> int:
        """True rows that are known."""
        return int(self.weights[self.truths == 1].sum())

    def chances(self) -> Floats:
        rows = np.flatnonzero(self.judged)
        smallest = MIN_WRONG_ROWS / max(len(rows), 1)
        return np.clip(self.estimate(rows, self.truths[rows]), smallest, 1 - smallest)

    def samplings(self, bold: float) -> tuple[Sampling, Sampling]:
        """The low and the high end at the lowest expected cost; ``bold`` times the allowed number may be missed."""
        chances = self.chances()
        left = self.shuffled[~self.judged[self.shuffled]]
        left = left[np.argsort(chances[left], kind="stable")]
        positives = self.known() + float(chances[left].sum())
        splits = sorted({int(np.searchsorted(chances[left], split)) for split in SPLITS})

        def sampled(split: int, share: float) -> tuple[Sampling, Sampling]:
            rows = left[:split], left[split:][::-1]
            share = 1.0 if not len(rows[1]) else 0.0 if not len(rows[0]) else share
            certain = self.targets.recall * positives  # true rows that are surely kept
            for _ in range(3):
                missed, wrong = (int(bold * limit) for limit in self.limits(certain))
                low = cheapest_sampling(rows[0], chances[rows[0]], missed, self.targets.delta * share)
                high = cheapest_sampling(rows[1], 1 - chances[rows[1]], wrong, self.targets.delta * (1 - share))
                certain = max(0.0, positives - low.missed - (high.allowed - high.missed))
            return low, high

        def cost(ends: tuple[Sampling, Sampling]) -> float:
            return ends[0].cost + ends[1].cost

        split = min(splits, key=lambda split: cost(sampled(split, 0.5)))
        return min((sampled(split, float(share)) for share in ALPHA_SHARES), key=cost)

    def limits(self, certain: float) -> tuple[float, float]:
        """How many may be missed at the low end and at the high end, if so many true rows are surely kept."""
        recall, precision = self.targets.recall, self.targets.precision
        return (1 - recall) / recall * certain + _ROUNDING, (1 - precision) / precision * certain + _ROUNDING

    def walk(self, samplings: tuple[Sampling, Sampling]) -> Generator[Positions, Truths, tuple[_End, _End]]:
        """Sample both ends, and ask about all rows after the one at which too many wrong ones were found."""
        sampled = [self.random.random(len(end.rows)) < end.rate for end in samplings]
        chosen = np.concatenate(
            [end.rows[taken & (end.reach > 0)] for end, taken in zip(samplings, sampled, strict=True)]
        )
        self.calibration += len(chosen)
        yield from self.ask(chosen)
        inner, beyond = [], []
        for end, taken, right in zip(samplings, sampled, (0, 1), strict=True):
            wrong = taken & (self.truths[end.rows] != right)
            stop = int(np.searchsorted(np.cumsum(wrong), end.found + 1)) if end.reach else 0
            stays = end.rows[:stop]
            inner.append(_End(stays[~self.judged[stays]], right, end.allowed))
            beyond.append(end.rows[stop:])
        yield from self.ask(np.concatenate(beyond))
        return inner[0], inner[1]

    def top_up(self, low: _End, high: _End) -> Generator[Positions, Truths, None]:
        """Ask about the riskiest rows of the ends until no more can be missed there than the targets allow."""
        for hurry in itertools.count():  # the estimates may be wrong, and each round takes time
            certain = self.known() + len(high.rows) - high.allowed
            excess = [end.allowed - limit for end, limit in zip((low, high), self.limits(certain), strict=True)]
            if max(excess) <= 0:
                return
            chances = self.chances()
            chosen = []
            for end, over in zip((low, high), excess, strict=True):
                if over > 0:
                    risks = np.abs(end.right - chances[end.rows[::-1]])
                    chosen.append(end.rows[::-1][: int(np.searchsorted(np.cumsum(risks), (over + 1) * 2**hurry)) + 1])
            yield from self.ask(np.concatenate(chosen))
            for end in (low, high):
                end.settle(self.judged, self.truths)


def decide(
    weights: npt.NDArray[np.intp], estimate: Estimate, targets: Targets, seed: int = 0
) -> Generator[Positions, Truths, Decision]:
    """Decide rows by an oracle and a proxy: yields the positions of rows to ask, and is sent their answers.

    Args:
        weights: shape (n,), how many rows each represents; those that represent several are all asked.
        estimate: see :data:`Estimate`; called again when answers arrive.
        targets: the guarantee for the rows with their weights. It holds against the oracle's answers; a row without an
            answer always counts as wrong.
        seed: of the samples.
    """
    count = len(weights)
    cascade = _Cascade(weights, estimate, targets, seed)
    size = min(count, max(MIN_PILOT_ROWS, min(MAX_PILOT_ROWS, int(PILOT_SHARE * count))))
    pilot = np.concatenate([np.flatnonzero(weights > 1), cascade.random.choice(count, size, replace=False)])
    cascade.calibration = min(size, count)
    yield from cascade.ask(np.unique(pilot))
    if cascade.judged.all():
        return cascade.decided()
    bold = cascade.samplings(BOLD_FACTOR)
    yield from cascade.ask(np.concatenate([end.rows[end.reach :] for end in bold]))
    if cascade.judged.all():
        return cascade.decided()
    low, high = yield from cascade.walk(cascade.samplings(1.0))
    yield from cascade.top_up(low, high)
    return cascade.decided(low, high)


FOLDS = 5
COMPONENTS = 128
"""Principal components of the vectors that a classifier is trained on."""
_PENALTY = 1.0
"""On the weights (L2) of vectors that are a unit away from their mean."""
_NEWTON_STEPS = 40
_MAX_LOGIT = 30.0


def calibrated(scores: Floats) -> Estimate:
    """Probabilities from fixed scores without assumptions: a higher score may mean true, or false.

    A logistic regression on the scores' ranks as normal deviates, and their squares.

    Args:
        scores: shape (n,), finite.
    """
    deviates = _deviates(scores)

    def estimate(rows: Positions, truths: Truths) -> Floats:
        return _calibration(deviates[rows], truths, deviates)

    return estimate


def trained(vectors: Floats) -> Estimate:
    """Probabilities from a classifier that is trained on the answers: a logistic regression on vectors.

    A classifier is too sure of its training rows. So each fifth of these is scored by a classifier that was trained
    without it. Then scores are turned into probabilities as in :func:`calibrated`.

    Args:
        vectors: shape (n, d), rows of about the same length.
    """
    centred = vectors - vectors.mean(axis=0)
    if centred.shape[1] > COMPONENTS:
        _, directions = np.linalg.eigh(centred.T @ centred)
        centred = centred @ directions[:, -COMPONENTS:]
    centred = centred / (np.sqrt((centred**2).sum(axis=1).mean()) or 1.0)
    features = np.column_stack([np.ones(len(vectors)), centred])
    penalties = np.full(features.shape[1], _PENALTY)
    penalties[0] = 1e-3

    def estimate(rows: Positions, truths: Truths) -> Floats:
        true = truths == 1
        whole = fit_logistic(features[rows], true, penalties)
        scores = features @ whole
        order = np.argsort(scores, kind="stable")
        deviates = _deviates(scores)
        projected = np.empty(len(rows))
        for fold in range(FOLDS):
            tested = np.arange(len(rows)) % FOLDS == fold
            weights = fit_logistic(features[rows[~tested]], true[~tested], penalties, near=whole)
            projected[tested] = features[rows[tested]] @ weights
        predicted = np.interp(projected, scores[order], deviates[order])
        return _calibration(predicted, truths, deviates)

    return estimate


def fit_logistic(features: Floats, true: Truths, penalties: Floats, near: Floats | None = None) -> Floats:
    """The weights of a logistic regression with L2 penalties, by Newton's method.

    Args:
        features: shape (n, d).
        true: shape (n,), of 0 and 1 or of booleans.
        penalties: shape (d,), above 0.
        near: initial weights; they affect the speed, not the result.
    """
    weights = np.zeros(features.shape[1]) if near is None else near.copy()
    for _ in range(_NEWTON_STEPS):
        chances = _chances(features @ weights)
        slopes = chances * (1 - chances) + 1e-9
        gradient = features.T @ (true - chances) - penalties * weights
        curvature = (features * slopes[:, None]).T @ features + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, 8.0 / max(float(np.abs(step).max()), 1e-12))  # a full step from far away may diverge
        weights += step
        if float(np.abs(step).max()) < 1e-5:
            break
    return weights


def _calibration(predicted: Floats, truths: Truths, deviates: Floats) -> Floats:
    def powers(values: Floats) -> Floats:
        return np.stack([np.ones(len(values)), values, values**2 - 1], axis=1)

    weights = fit_logistic(powers(predicted), truths == 1, np.array([1e-3, 0.1, 0.5]))
    return _chances(powers(deviates) @ weights)


def _chances(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -_MAX_LOGIT, _MAX_LOGIT))))


def _deviates(scores: Floats) -> Floats:
    """Ranks of scores as normal deviates; equal scores have equal deviates."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(scores)
    normal = NormalDist()
    return np.array([normal.inv_cdf(rank) for rank in ranks])[which]
