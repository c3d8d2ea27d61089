"""``sem_filter(cascade=…)``: a cheap proxy decides the clear rows, the model the others; recall and precision hold.

What may be left to the proxy is found by :mod:`tagframe.operators.proxy_rows`; here that meets frames and the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from tagframe.display import Shown
from tagframe.errors import InvalidArgument
from tagframe.lm import Bound
from tagframe.operators.chances import calibrated, trained
from tagframe.operators.packing import most_asked
from tagframe.operators.proxy_rows import Estimate, Floats, Targets, Truths, decide
from tagframe.operators.row_question import Reply
from tagframe.operators.step_generators import Step, bounded
from tagframe.operators.text_nearness import similarities, vectors_of

Proxy: TypeAlias = "str | pd.Series | Sequence[float] | np.ndarray[Any, Any] | Callable[[pd.DataFrame], Any]"
EMBEDDING = CLASSIFIER, SIMILARITY = "classifier", "similarity"

BY_PROXY = "decided by the cascade's proxy"
"""The note of such a row's outcome."""


@dataclass(frozen=True)
class Cascade:
    """How ``sem_filter`` may leave rows to a proxy.

    With a chance of at least 1 - ``delta``, over the draws of the sample, the rows that are kept have both the recall
    and the precision asked for, measured against what the model would have answered on all of them. That holds whatever
    the proxy is worth; a poor one saves no calls.

    Args:
        proxy: ``"classifier"``, a logistic regression on the rows' embeddings, trained on the model's answers to the
            sample; ``"similarity"`` of the embeddings of row and claim; a column of the frame, by its label; a score
            for each row, as a Series, an array or a list; or a function from the frame to such scores, as one that asks
            a smaller model: ``lambda rows: rows.tag.sem_score("…", lm="openai/gpt-4o-mini")["_score"]``. (A function is
            called for a quote, too.) Scores may be on any scale and in either direction.
        recall: of the rows that the model would have kept, the share that is kept; in (0, 1].
        precision: of the rows that are kept, the share that the model would have kept; in (0, 1].
        delta: the chance at most that either is missed; in (0, 1).
        seed: of the sample; the same seed on the same rows asks the same.

    Raises:
        InvalidArgument: for a value that is none.

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
                raise InvalidArgument(f"a cascade's {name} is a number in (0, {largest}; got {value!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InvalidArgument(f"a cascade's seed is a whole number of at least 0; got {self.seed!r}")


@dataclass(frozen=True, repr=False)
class CascadeReport(Shown):
    """What a cascade did and saved; ``result.tag.cascade``.

    Attributes:
        rows: distinct rows.
        asked: of the model, those of the sample included.
        calibration: of these, drawn at random to find out what may be left to the proxy.
        rounds: one after the other.
        kept_by_proxy: rows that the proxy decided to be true.
        left_out_by_proxy: rows that it decided to be false.
        missed_at_most: true rows among these, if the promise is kept.
        wrong_at_most: false rows among those that it kept, likewise.
        recall: at least, if the promise is kept.
        precision: likewise.
        delta: the chance at most that it is not.
    """

    rows: int
    asked: int
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
        """Rows that were asked, of all distinct rows; what the cascade saved is the rest."""
        return self.asked / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        share = f"{self.asked:,} of {self.rows:,} distinct rows ({self.share_of_calls:.0%}"
        return (
            f"The model was asked about {share}, of which {self.calibration:,} drawn to calibrate); the proxy kept"
            f" {self.kept_by_proxy:,} and left out {self.left_out_by_proxy:,}. Recall is at least {self.recall:g} and"
            f" precision at least {self.precision:g}, with a chance of {1 - self.delta:g}."
        )


def scores_of(cascade: Any, frame: pd.DataFrame) -> Floats | None:
    """The scores of a cascade's proxy, one a row, before anything else is spent; None where it has none of its own.

    Raises:
        InvalidArgument: ``cascade`` is none, or its scores are not those of the frame's rows.
    """
    if not isinstance(cascade, Cascade):
        raise InvalidArgument(f"cascade is a tagframe.Cascade(proxy=…, recall=…, precision=…); got {cascade!r}")
    proxy: Any = cascade.proxy
    if isinstance(proxy, str) and proxy in EMBEDDING:
        return None
    given = proxy
    if callable(proxy):
        given = proxy(frame)
    elif isinstance(proxy, str):
        if proxy not in frame.columns:
            raise InvalidArgument(
                f"a cascade's proxy is 'classifier', 'similarity', a column, scores, or a function of the frame; got"
                f" {proxy!r}, which is no column"
            )
        given = frame[proxy]
    if isinstance(given, pd.Series) and not given.index.equals(frame.index):
        raise InvalidArgument("the proxy's scores have another index than the frame: take them from the frame itself")
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a proxy's scores are numbers; got {given!r:.200} ({error})") from error
    if scores.shape != (len(frame),) or not np.isfinite(scores).all():
        raise InvalidArgument(
            f"a proxy has one finite score for each of the {len(frame):,} rows; got shape {scores.shape} with"
            f" {int((~np.isfinite(scores)).sum()):,} that are none"
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
        claim: as it reads in a prompt.
        rows: of the frame, as lines of JSON; None for one that is not asked about.
        ask: asks the model of some lines.
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
    bound = Bound(most_asked(len(distinct), size))
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
    left = np.flatnonzero(~decision.asked)
    kept = int((decision.truths[left] == 1).sum())
    report = CascadeReport(
        rows=len(distinct),
        asked=len(verdicts),
        calibration=decision.calibration,
        rounds=decision.rounds,
        kept_by_proxy=kept,
        left_out_by_proxy=len(left) - kept,
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
