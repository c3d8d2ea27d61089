"""``sem_filter(cascade=…)``: a cheap proxy decides the clear rows and the model decides the others.

:mod:`tagframe.operators.proxy_rows` finds the rows that the proxy may decide, so that recall and precision hold. This
module connects it with frames and the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from tagframe.display import Displayable
from tagframe.errors import InvalidArgument
from tagframe.lm import Bound
from tagframe.operators.drivers import Step, bounded
from tagframe.operators.packing import max_prompts
from tagframe.operators.proxy_rows import Estimate, Floats, Targets, Truths, calibrated, decide, trained
from tagframe.operators.row_question import Reply
from tagframe.operators.text_nearness import similarities, vectors_of

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
