"""What the methods of JAR and of iterative JAR share: their parameters, in our form or as their papers print it.

As printed are: coarse relevance (JAR section 3.1, iterative JAR equation 1), fine relevance and coverage (JAR equations
5 to 10, iterative JAR equations 2 to 4), ω (JAR section 3.3), the number of candidates (JAR section 4.3, iterative JAR
section 4) and the weights (iterative JAR section 4; JAR prints none, so they are those of its authors' code).

What still differs: the embedder is the configured one, not Contriever; tables and columns are encoded as the texts of
:mod:`tagframe.corpus.documents`; rules decompose the question, unless sub-queries are given or a model is asked with
JAR's prompt; the Jaccard similarity of large columns is estimated; pieces of one table are one candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from tagframe.errors import InvalidArgument
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.joinability import Omega
from tagframe.retrieval.method import (
    CANDIDATES,
    ByScores,
    Prepared,
    Setup,
    WithSubqueries,
    among_candidates,
    by_both,
    by_meaning,
    check_choice,
    check_number,
)
from tagframe.retrieval.problem import Floats, GreedyWeights, JarWeights
from tagframe.retrieval.question import Question

Variant = Literal["D", "F", "G"]
"""JAR's variants (section 4.1): D without joins, F in full, G with the keys that the source declares."""

FIBEN_CANDIDATES = 30
"""The number of candidates of iterative JAR on FIBEN (section 4)."""


@dataclass(frozen=True, kw_only=True)
class JoinAware(WithSubqueries, ByScores):
    """The parameters that ``JAR``, ``MIP`` and ``IterativeJAR`` share, beside ``subqueries`` and ``coarse``.

    Attributes:
        as_printed: the paper's form instead of ours: cosine alone as coarse relevance, without BM25; ω alone as
            joinability, without link scores; no candidates but those of highest coarse relevance, without their join
            neighbours; and the paper's weights. Each of the others changes one thing, in either form.
        variant: of JAR (section 4.1): "D" without joins, "F" in full, "G" where keys that the source declares have an ω
            of 1. None is "F" if as printed, and otherwise "G".
        weights: JAR's by data set ("spider", "bird"; "fiben" has BIRD's, as none are published), iterative JAR's (the
            same for all three), or your own :class:`~tagframe.retrieval.JarWeights` or
            :class:`~tagframe.retrieval.GreedyWeights` (λ); as a text, its first numbers in order: "0/1/0" is a λ of
            coverage 0, join 1 and coarse 0. None is "bird" if as printed, and otherwise ours.
        omega: "text" (JAR section 3.3) or "code" (as its authors' code computes it). None is "text" if as printed, and
            otherwise ours.
        candidates: the number of tables of highest coarse relevance to choose from; None is 20, or 30 with the weights
            "fiben".

    Raises:
        InvalidArgument: another variant, ω or weights, a number out of range, or weights with a link share if as
            printed.
    """

    published: ClassVar[Mapping[str, Any]]
    """The paper's weights by the name of their data set."""
    ours: ClassVar[Any]
    """The weights of our form."""

    as_printed: bool = False
    variant: Variant | None = None
    weights: str | JarWeights | GreedyWeights | None = None
    omega: Omega | None = None
    candidates: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, get_args(Variant))
        check_choice("omega", self.omega, get_args(Omega))
        check_number("candidates", self.candidates, "a number of tables")
        self._weights()

    def _weights(self) -> Any:
        given, ours = self._numbers(self.weights), self.ours
        if given is None:
            return self.published["bird"] if self.as_printed else ours
        if isinstance(given, str) and given in self.published:
            of_data = self.published[given]
            return of_data if self.as_printed else replace(of_data, link_share=ours.link_share)
        if isinstance(given, str) or not isinstance(given, type(ours)):
            names = ", ".join(map(repr, self.published))
            terms = "/".join(field.name for field in fields(ours) if field.name != "link_share")
            raise InvalidArgument(
                f"weights must be {names}, {terms} as numbers, or a {type(ours).__name__}; got {given!r}"
            )
        values = asdict(given)
        if not all(np.isfinite(value) and value >= 0 for value in values.values()) or given.link_share > 1:
            raise InvalidArgument(f"weights must be finite and not negative, and link_share at most 1; got {given!r}")
        if self.as_printed and given.link_share:
            raise InvalidArgument(
                f"as printed, ω alone joins: give weights with link_share=0, not {given.link_share}, or leave out "
                "as_printed"
            )
        return given

    def _numbers(self, given: Any) -> Any:
        """The weights of a text such as ``"0/1/0"``; what is none of numbers as it is."""
        names = [field.name for field in fields(self.ours) if field.name != "link_share"]
        parts = given.split("/") if isinstance(given, str) else []
        try:
            values = [float(part) for part in parts]
        except ValueError:
            return given
        if not values or len(values) != len(names):
            return given
        share = 0.0 if self.as_printed else self.ours.link_share
        return type(self.ours)(**dict(zip(names, values, strict=True)), link_share=share)

    @property
    def _setup(self) -> Setup:
        """What the problem is made of."""
        printed = self.as_printed
        declared = None if self.variant is None and not printed else self.variant == "G"
        most = self.candidates or (FIBEN_CANDIDATES if str(self.weights) == "fiben" else CANDIDATES)
        return Setup(int(most), not printed, self.omega or ("text" if printed else None), declared)

    @property
    def parameters(self) -> dict[str, Any]:
        """The form with everything that it implies: parameter → value."""
        default = "bird" if self.as_printed else "ours"
        name = self.weights if isinstance(self.weights, str) else default if self.weights is None else "given"
        return {
            "as_printed": self.as_printed,
            "variant": self.variant or ("F" if self.as_printed else "G"),
            "omega": self._setup.omega or "ours",
            "weights": {"name": name, **asdict(self._weights())},
            "candidates": self._setup.candidates,
        }

    def scores(self, index: RetrievalIndex, question: Question) -> Floats:
        """The coarse relevance: the cosine (JAR section 3.1), or ours."""
        return by_meaning(index, question) if self.as_printed else by_both(index, question)

    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Floats, anchored: int | None, k: int | None
    ) -> Prepared[Any]:
        """The problem of :func:`among_candidates` in this form."""
        return among_candidates(index, question, relevance, anchored, k, setup=self._setup)

    def note(self, index: RetrievalIndex, prepared: Prepared[Any]) -> str:
        """The form, if it is not ours; else whether declared keys count."""
        if self.is_ours:
            has_keys = index.declared_keys and any(index.tables[table].foreign_keys for table in prepared.tables)
            return "variant G: declared keys have an ω of 1" if has_keys else ""
        lacks_cosine = self.as_printed and index.embedder is None
        return self.in_words + ("; no embedder: BM25 in place of the cosine" if lacks_cosine else "")

    @property
    def is_ours(self) -> bool:
        """Whether no parameter changes the form."""
        return not self.as_printed and (self.variant, self.weights, self.omega, self.candidates) == (None,) * 4

    @property
    def in_words(self) -> str:
        """The form as a note.

        >>> from tagframe import methods
        >>> methods.JAR(as_printed=True).in_words
        "as printed: variant F, ω 'text', weights 'bird' (fine 3, coverage 8, join 1, coarse 3), 20 candidates"
        """
        parameters = self.parameters
        weights = parameters["weights"]
        name = weights.pop("name")
        if self.as_printed:
            del weights["link_share"]
        values = ", ".join(f"{term} {value:g}" for term, value in weights.items()).replace("_", " ")
        return (
            f"{'as printed' if self.as_printed else 'not as printed'}: variant {parameters['variant']}, "
            f"ω {parameters['omega']!r}, weights {name!r} ({values}), {parameters['candidates']} candidates"
        )
