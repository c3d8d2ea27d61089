"""The form of a paper's method: ours, or as its paper prints it.

As printed are: coarse relevance (JAR section 3.1, iterative JAR equation 1), fine relevance and coverage (JAR equations
5 to 10, iterative JAR equations 2 to 4), ω (JAR section 3.3), the number of candidates (JAR section 4.3, iterative JAR
section 4) and the weights (iterative JAR section 4; JAR prints none, so they are those of its authors' code).

What still differs: the embedder is the configured one, not Contriever; tables and columns are encoded as the texts of
:mod:`tagframe.corpus.documents`; rules decompose the question, unless sub-queries are given or ``decompose`` asks a
model with JAR's prompt; the Jaccard similarity of large columns is estimated; pieces of one table are one candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np

from tagframe.errors import InvalidArgument
from tagframe.retrieval.joinability import Omega
from tagframe.retrieval.method import CANDIDATES, Setup, by_both, by_meaning
from tagframe.retrieval.problem import JarWeights

if TYPE_CHECKING:
    from collections.abc import Callable

    from tagframe.retrieval.methods.greedy import GreedyWeights

Variant = Literal["D", "F", "G"]
"""JAR's variants (section 4.1): D without joins, F in full, G with the keys that the source declares."""

FIBEN = "fiben"
FIBEN_CANDIDATES = 30
"""The number of candidates of iterative JAR on FIBEN (section 4)."""

W = TypeVar("W", bound="JarWeights | GreedyWeights")


@dataclass(frozen=True)
class Form:
    """What of a method is as its paper prints it. The defaults are ours.

    Attributes:
        as_printed: cosine alone as coarse relevance, ω alone as joinability, no candidates but those of highest coarse
            relevance, and the paper's weights.
        variant: of JAR (section 4.1); None for F if as printed, and otherwise for G.
        weights: published ones by the name of their data set, or your own; None for BIRD's if as printed, and otherwise
            for ours.
        omega: whose ω; None for that of the paper's text if as printed, and otherwise for ours.
        candidates: the number of tables of highest coarse relevance to choose from; None for 20, or 30 with the weights
            "fiben".
        covered_at: θ of iterative JAR.

    Raises:
        InvalidArgument: another variant or ω, or a number out of range.
    """

    as_printed: bool = False
    variant: Variant | None = None
    weights: str | JarWeights | GreedyWeights | None = None
    omega: Omega | None = None
    candidates: int | None = None
    covered_at: float | None = None

    def __post_init__(self) -> None:
        for name, choices in (("variant", get_args(Variant)), ("omega", get_args(Omega))):
            given = getattr(self, name)
            if given is not None and given not in choices:
                raise InvalidArgument(f"{name} must be one of {', '.join(map(repr, choices))}; got {given!r}")
        if self.candidates is not None and (not _is_number(self.candidates, np.integer, int) or self.candidates < 1):
            raise InvalidArgument(f"candidates must be a number of tables, at least 1; got {self.candidates!r}")
        if self.covered_at is not None and not (
            _is_number(self.covered_at, np.number, int, float) and -1 <= self.covered_at <= 1
        ):
            raise InvalidArgument(f"covered_at must be a cosine, such as 0.6; got {self.covered_at!r}")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the settings that are not the default."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return tuple(name for name, value in values.items() if value is not None and value is not False)

    @property
    def joined(self) -> bool:
        """Whether joins count at all."""
        return self.variant != "D"

    @property
    def setup(self) -> Setup:
        """What the problem is made of."""
        printed = self.as_printed
        declared = None if self.variant is None and not printed else self.variant == "G"
        most = FIBEN_CANDIDATES if isinstance(self.weights, str) and self.weights == FIBEN else CANDIDATES
        omega = self.omega or ("text" if printed else None)
        return Setup(most if self.candidates is None else int(self.candidates), not printed, omega, declared)

    @property
    def relevance(self) -> Callable[..., Any]:
        """The coarse relevance: the cosine (JAR section 3.1), or ours."""
        return by_meaning if self.as_printed else by_both

    def weights_of(self, published: Mapping[str, W], ours: W) -> W:
        """The weights.

        Args:
            published: by the name of their data set.
            ours: those of our form.

        Raises:
            InvalidArgument: an unknown name, weights of another method or out of range, or a link share if as printed.
        """
        given: Any = self.weights
        if given is None:
            return published["bird"] if self.as_printed else ours
        if isinstance(given, str) and given in published:
            return published[given] if self.as_printed else replace(published[given], link_share=ours.link_share)
        if not isinstance(given, type(ours)):
            names = ", ".join(map(repr, published))
            raise InvalidArgument(f"weights must be {names} or a {type(ours).__name__}; got {given!r}")
        values = asdict(given)
        if not all(np.isfinite(value) and value >= 0 for value in values.values()) or given.link_share > 1:
            raise InvalidArgument(f"weights must be finite and not negative, and link_share at most 1; got {given!r}")
        if self.as_printed and given.link_share:
            raise InvalidArgument(
                f"as printed, ω alone joins: give weights with link_share=0, not {given.link_share}, or leave out "
                "as_printed"
            )
        return given

    def said(self, weights: JarWeights | GreedyWeights) -> dict[str, Any]:
        """The form with everything that it implies: setting → value."""
        default = "bird" if self.as_printed else "ours"
        name = self.weights if isinstance(self.weights, str) else default if self.weights is None else "given"
        return {
            "as_printed": self.as_printed,
            "variant": self.variant or ("F" if self.as_printed else "G"),
            "omega": self.setup.omega or "ours",
            "weights": {"name": name, **asdict(weights)},
            "candidates": self.setup.candidates,
            **({} if self.covered_at is None else {"covered_at": self.covered_at}),
        }


def note_of(said: Mapping[str, Any]) -> str:
    """The form of a method as a note.

    >>> note_of(Form(as_printed=True).said(JarWeights()))
    "as printed: variant F, ω 'text', weights 'bird' (fine 3, coverage 8, join 1, coarse 3), 20 candidates"
    """
    weights = dict(said["weights"])
    name = weights.pop("name")
    if said["as_printed"]:
        del weights["link_share"]
    values = ", ".join(f"{term} {value:g}" for term, value in weights.items())
    stop = f", stops at a coverage of {said['covered_at']:g}" if "covered_at" in said else ""
    return (
        f"{'as printed' if said['as_printed'] else 'not as printed'}: variant {said['variant']}, ω {said['omega']!r}, "
        f"weights {name!r} ({values.replace('_', ' ')}), {said['candidates']} candidates{stop}"
    )


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)
