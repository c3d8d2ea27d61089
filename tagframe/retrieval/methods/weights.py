"""The weights of the default method, shipped as ``weights.json``: fitted by ``python -m tag_bench fit tables``, and
those of names alone by ``python -m tag_bench fit names``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

import numpy as np

from tagframe.errors import InvalidArgument
from tagframe.retrieval.learned import BELIEVED, FEW
from tagframe.retrieval.learned import SETS as LEARNED_SETS
from tagframe.retrieval.learned import SIGNALS as LEARNED
from tagframe.retrieval.methods.posterior import BARE, COMPLETE, NAMES
from tagframe.retrieval.methods.sets import FEATURES
from tagframe.retrieval.problem import FEW_TABLES, Floats
from tagframe.retrieval.signals import FACTS, SIGNALS


@dataclass(frozen=True)
class Weights:
    """The weights of both stages and of the confidence, by name; a name without a weight has weight 0.

    Attributes:
        table: for each of :data:`~tagframe.retrieval.signals.SIGNALS`, in the first stage.
        set: for each of :data:`~tagframe.retrieval.methods.sets.FEATURES`, in the second stage.
        complete: for each of :data:`~tagframe.retrieval.methods.posterior.COMPLETE`, for the probability that a set is
            complete; if empty, that is the posterior's value.
        fits: for a constant ("one") and each of :data:`~tagframe.retrieval.signals.FACTS`, for the probability that the
            corpus has what the question asks for; if empty, that is 1.
        apart: for the joins that a set lacks (:func:`~tagframe.retrieval.methods.sets.missing_joins`), in the
            probabilities that are reported.
        learned: for each of :data:`tagframe.retrieval.learned.SIGNALS` of tables and
            :data:`tagframe.retrieval.learned.SETS`, and the numbers :data:`tagframe.retrieval.learned.FEW` and
            :data:`tagframe.retrieval.learned.BELIEVED`; used if statements were learned.
        sure: for each of :data:`~tagframe.retrieval.methods.posterior.NAMES`, for the highest confidence that is
            reported in one large database without rows; if empty, there is no such limit.
        seen: for some facts of a question, the least and the greatest value in such databases of the fit, by name.
        spread: the usual error of the log odds of a complete set in such a database that was left out of the fit.
        alone: the weights whose ``set`` replaces this one where the number of tables is to be chosen in a small corpus
            with rows, such as one database or one folder; None for the same weights everywhere.
        names: the weights that replace ``table``, ``set``, ``complete``, ``sure``, ``seen`` and ``spread`` if only
            names are known of most tables; None for the same weights everywhere.

    Raises:
        InvalidArgument: an unknown name.
    """

    table: Mapping[str, float]
    set: Mapping[str, float]
    complete: Mapping[str, float] = field(default_factory=dict)
    fits: Mapping[str, float] = field(default_factory=dict)
    apart: float = 0.0
    learned: Mapping[str, float] = field(default_factory=dict)
    sure: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[str, Sequence[float]] = field(default_factory=dict)
    spread: float = 0.0
    alone: Weights | None = None
    names: Weights | None = None

    def __post_init__(self) -> None:
        every = (
            (self.table, SIGNALS), (self.set, FEATURES), (self.complete, COMPLETE), (self.fits, ("one", *FACTS)),
            (self.learned, (*LEARNED, *LEARNED_SETS, *FEW, *BELIEVED)), (self.sure, NAMES),
        )  # fmt: skip
        for given, known in every:
            unknown = sorted(given.keys() - set(known))
            if unknown:
                raise InvalidArgument(f"no weight is called {', '.join(map(repr, unknown))}; there are {known}")

    def for_question(self, facts: Mapping[str, float], *, chooses_k: bool = False) -> Weights:
        """The weights for a question with these facts: those of ``names`` if most tables have no known row.

        With ``chooses_k``, the number of tables is to be chosen: those of ``alone`` if there are few.
        """
        if self.names is not None and facts.get("unseen", 0.0) > BARE:
            return replace(self.names, fits=self.fits, learned=self.learned)
        is_small = facts.get("log_tables", math.inf) <= math.log1p(FEW_TABLES)
        return self if self.alone is None or not (chooses_k and is_small) else replace(self, set=self.alone.set)

    def prior(self, signals: Floats) -> Floats:
        """The first stage's score of each table; the best is 0: shape (n,)."""
        scores = signals @ np.array([self.table.get(name, 0.0) for name in SIGNALS])
        return np.asarray(scores - scores.max(initial=-np.inf)) if len(scores) else scores

    def utilities(self, features: Floats) -> Floats:
        """The second stage's score of each set: shape (sets,)."""
        return np.asarray(features @ np.array([self.set.get(name, 0.0) for name in FEATURES]))

    def of_learned(self, names: Sequence[str]) -> Floats:
        """The weights of learned evidence, by name: shape (len(names),)."""
        return np.array([self.learned.get(name, 0.0) for name in names])

    def fit(self, facts: Mapping[str, float]) -> float:
        """The probability that the corpus has what a question with these facts asks for."""
        if not self.fits:
            return 1.0
        return _chance(sum(weight * {"one": 1.0, **facts}.get(name, 0.0) for name, weight in self.fits.items()))

    def completeness(self, features: Floats, contained: Floats) -> Floats:
        """The probability that each of some sets is complete.

        Args:
            features: shape (sets, len(COMPLETE)).
            contained: shape (sets,), the posterior's value.
        """
        if not self.complete:
            return contained
        return np.asarray(1 / (1 + np.exp(-features @ np.array([self.complete.get(name, 0.0) for name in COMPLETE]))))

    def by_names(self, chance: float, features: Floats) -> float:
        """The probability as it is reported in one large database without rows: features of shape (len(NAMES),)."""
        if not self.sure:
            return chance
        return min(chance, _chance(float(features @ np.array([self.sure.get(name, 0.0) for name in NAMES]))))

    def unlike(self, facts: Mapping[str, float]) -> bool:
        """Whether the question's database has no rows and a fact is outside the range of such databases in the fit."""
        ranges = self.seen.items() if facts.get("bare", 0.0) > BARE else ()
        return any(not least <= facts.get(name, least) <= most for name, (least, most) in ranges)


def _chance(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))


def read_weights(text: str) -> Weights:
    """The weights in the text of a ``weights.json``."""
    given = json.loads(text)
    given.pop("about", None)
    alone, names = (Weights(**part) if (part := given.pop(name, None)) else None for name in ("alone", "names"))
    return Weights(**given, alone=alone, names=names)


@cache
def shipped_weights() -> Weights:
    """The weights in ``tagframe/retrieval/weights.json``."""
    return read_weights(resources.files("tagframe.retrieval").joinpath("weights.json").read_text(encoding="utf-8"))
