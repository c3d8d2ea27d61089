"""Rescales the cosines of encoders that no weights were fitted for.

Encoders differ in their cosines: unrelated texts have .1 by all-MiniLM-L6-v2, but .6 by others, within narrower bounds.
The weights of the default method were fitted with MiniLM. So each encoder's cosines are rescaled: over all pairs of a
few fixed texts they get MiniLM's mean and spread. The texts are not those of the corpus, since there the subject has a
larger effect than the encoder: MiniLM gives columns .12 ± .13 over all of Spider's databases, but .38 ± .21 within one.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from tagframe.embed import DEFAULT_MODEL, Kind, encoded
from tagframe.retrieval.problem import Floats

if TYPE_CHECKING:
    from tagframe.embed import Embedder
    from tagframe.retrieval.index import Relevance

FITTED_WITH = DEFAULT_MODEL
"""The encoder that ``weights.json`` was fitted with."""
_MEAN, _SPREAD = 0.15496, 0.15048
"""Mean and standard deviation of its cosines of all pairs of the texts."""
_TEXTS = (
    "singer name", "singer country", "concert year", "stadium capacity", "customer id", "customer city",
    "orders order date", "orders total amount", "products unit price", "employee salary", "employee hire date",
    "department budget", "flight number", "airport code", "student grade", "course title", "patient diagnosis",
    "singer: name, country, age", "orders: order id, customer id, order date, amount",
    "employees: name, salary, department, hire date", "flights: airline, source airport, destination airport",
    "How many singers are from each country?", "Which customers spent the most last year?",
    "What is the average salary in every department?", "List the flights that leave from Boston.",
    "Show the students who took no course.", "country", "year", "most", "price", "average", "city",
)  # fmt: skip


def calibrated(relevance: Relevance, embedder: Embedder | None) -> Relevance:
    """The relevance with its cosines on MiniLM's scale. Those of MiniLM itself, and zeros, stay as they are."""
    if not unfitted(embedder):
        return relevance
    names = ("table", "column", "words", "attributes")
    parts: dict[str, Any] = {name: scaled(getattr(relevance, name), embedder) for name in names}
    return replace(relevance, **parts)


def scaled(cosines: Floats, embedder: Embedder | None) -> Floats:
    """Cosines on MiniLM's scale. Those of MiniLM itself, and zeros, stay as they are."""
    if embedder is None or embedder.name == FITTED_WITH:
        return cosines
    slope, shift = _scale(cast(Hashable, embedder))
    return np.where(cosines == 0, 0.0, slope * cosines + shift)


def unfitted(embedder: Embedder | None) -> str:
    """The note for an encoder that no weights were fitted for; "" for others."""
    if embedder is None or embedder.name == FITTED_WITH:
        return ""
    return (
        f"no weights were fitted for {embedder.name}, so neither are chances here; its cosines are rescaled to those "
        f"of {FITTED_WITH}"
    )


def moments(embedder: Embedder) -> tuple[float, float]:
    """Mean and standard deviation of an encoder's cosines, over all pairs of a query and a passage of the above."""
    queries, passages = (encoded(embedder, _TEXTS, kind).astype(np.float64) for kind in get_args(Kind))
    cosines = (queries @ passages.T)[np.triu_indices(len(_TEXTS), 1)]
    return float(cosines.mean()), float(cosines.std())


@functools.lru_cache(maxsize=16)
def _scale(embedder: Hashable) -> tuple[float, float]:
    mean, spread = moments(cast("Embedder", embedder))
    slope = _SPREAD / max(spread, 1e-6)
    return slope, _MEAN - slope * mean
