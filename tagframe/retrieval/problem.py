"""The central interface of retrieval: a question and its candidate tables as arrays, and a selector's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from tagframe.errors import InvalidArgument

DEVIATIONS = {
    "JAR: sections 3.1 to 3.3": "pieces of one table are one candidate",
    "JAR: equation 7": (
        "not printed: any weight; they are those of the authors' code, BIRD's for FIBEN and where none are given"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.9
"""The default confidence of ``k="auto"`` that the tables are complete."""

FEW_TABLES = 40
"""In a larger corpus some table is nearer to any word by chance."""

LINKED = 0.5
"""Two tables count as linked from this link score on."""
MIN_REFERENCE = 0.05
"""The least link score of a table to which another may refer, if it alone has a word of the question in its cells."""


class RowKind(IntEnum):
    """The kinds of rows of the fine relevance."""

    SUBQUERY = 0
    """A sub-query, against all columns; the papers' selectors cover these."""
    WORD = 1
    """A word of the question, against all columns."""
    ATTRIBUTE = 2
    """A word of the question, against columns that are not keys."""
    NAME = 3
    """A word of the question that is in names of tables and columns."""
    VALUE = 4
    """A value of the question that is in cells."""
    CELL = 5
    """A name of the question, against the tables whose cells have it (:mod:`tagframe.retrieval.cell_values`)."""
    TERM = 6
    """A word of the question that is not a name and that no column name explains, against the tables that hold it."""
    MEASURE = 7
    """A measure that the question asks for ("total revenue"), against numeric columns that are not keys."""
    MENTIONED = 8
    """A name that the question mentions in whole, against the tables that have it
    (:mod:`tagframe.retrieval.mentioned_names`); no feature of sets, but k="auto" adds tables by it."""
    SPOKEN = 9
    """As :attr:`NAME` and :attr:`TERM`, without numbers and words for times, which mean values more often; no feature
    of sets, but each has a table that is needed."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Statements that answered questions like this one, over n tables.

    Attributes:
        tables: shape (e, n), which of the tables each statement reads.
        size: shape (e,), how many tables it reads, other tables included.
        weight: shape (e,), its weight.
        of_size: the weight of learned sizes of sets, in [0, 1]; it is low if there are few statements.
        share: the weight of everything that was learned, in [0, 1], against the other evidence.
        like: how similar their questions are to this one, in [0, 1]. It depends on how well questions predict tables in
            this corpus, how near the nearest question is, and how many there are.
    """

    tables: npt.NDArray[np.bool_]
    size: Floats
    weight: Floats
    of_size: float = 1.0
    share: float = 1.0
    like: float = 0.0

    def share_inside(self, inside: npt.NDArray[np.bool_]) -> float:
        """The weighted share of the statements whose tables are all in a set; the set is a mask of shape (n,)."""
        return float(self.weight @ ((self.tables & inside).sum(axis=1) == self.size) / max(self.weight.sum(), 1e-9))


_NOT_GIVEN: Any = ()
_LENGTHS = {
    **dict.fromkeys(("omega", "link", "refers", "similarity", "mixed"), "nn"),
    **dict.fromkeys(("source", "anchor", "opinion", "learned"), "n"),
    "fine": "qn",
    "kind": "q",
    "row_weight": "q",
}
"""The shapes of arrays that may be left out: n tables, q rows of ``fine``."""
_DTYPES = dict.fromkeys(("kind", "source"), np.int64) | dict.fromkeys(("refers", "mixed", "anchor"), np.bool_)
"""The dtypes of those that are no floats."""


@dataclass(frozen=True, eq=False)
class SelectionProblem:
    """The choice among n tables, as arrays only. Tables are sorted by id, so that ties go to the lower index.

    What is not given is zero (or has no rows), so that selectors need no special case for unknown values.

    Attributes:
        r: shape (n,), the coarse relevance of each table (JAR section 3.1).
        fine: shape (q, n), F: the relevance of each sub-query's best column in each table.
        omega: shape (n, n), symmetric, zero diagonal, in [0, 1]: joinability of the best column pair (JAR section 3.3).
        kind: shape (q,), the :class:`RowKind` of each row of ``fine``.
        row_weight: shape (q,), the weight of each row of ``fine``; ones if not given.
        signals: shape (n, s), further signals of each table: :data:`tagframe.retrieval.signals.SIGNALS`.
        source: shape (n,), a number for the database of each table; zeros if there is one database.
        link: shape (n, n), symmetric: the score of the best key pair between two tables.
        refers: shape (n, n): whether that pair is a reference of the first table to the second.
        similarity: shape (n, n), symmetric: how nearly two tables are duplicates, in [0, 1].
        mixed: shape (n, n), symmetric: whether two tables are of different families of near-copies
            (:func:`tagframe.retrieval.families.mixed_copies`).
        anchor: shape (n,), True for tables that are in the set already.
        opinion: shape (n,), what a second look, or a person, adds to the log-odds that each table is needed.
        learned: shape (n,), what earlier statements add to the log-odds that each table is needed.
        examples: such statements; None if nothing was learned.
        facts: properties of the question as a whole, by :data:`tagframe.retrieval.signals.FACTS`.
        confidence: the probability, in (0, 1), with which a set has to be complete if k is not given.

    Raises:
        InvalidArgument: shapes that do not fit together, or values that are not finite.
    """

    r: Floats
    fine: Floats = _NOT_GIVEN
    omega: Floats = _NOT_GIVEN
    kind: npt.NDArray[np.int64] = _NOT_GIVEN
    row_weight: Floats = _NOT_GIVEN
    signals: Floats = _NOT_GIVEN
    source: npt.NDArray[np.int64] = _NOT_GIVEN
    link: Floats = _NOT_GIVEN
    refers: npt.NDArray[np.bool_] = _NOT_GIVEN
    similarity: Floats = _NOT_GIVEN
    mixed: npt.NDArray[np.bool_] = _NOT_GIVEN
    anchor: npt.NDArray[np.bool_] = _NOT_GIVEN
    opinion: Floats = _NOT_GIVEN
    learned: Floats = _NOT_GIVEN
    examples: Examples | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        n = _floats("r", self.r, ndim=1).size
        q = len(self.fine) if np.size(self.fine) else 0
        object.__setattr__(self, "r", np.asarray(self.r, dtype=np.float64))
        for name, lengths in _LENGTHS.items():
            given, dtype = getattr(self, name), _DTYPES.get(name, np.float64)
            shape = tuple({"n": n, "q": q}[length] for length in lengths)
            if not np.size(given):
                # Arrays that are not given take no memory: no data of a question may be quadratic in the corpus.
                every = np.asarray(name == "row_weight", dtype=dtype)
                object.__setattr__(self, name, np.broadcast_to(every, shape))
                continue
            array = np.asarray(given, dtype=dtype)
            if array.shape != shape:
                raise InvalidArgument(f"{name} has shape {array.shape}; {n} tables and {q} rows need {shape}")
            if not np.isfinite(array).all():
                raise InvalidArgument(f"{name} holds values that are not finite")
            if lengths == "nn" and dtype is np.float64 and not np.array_equal(array, array.T):
                raise InvalidArgument(f"{name} is not symmetric; a join has no direction")
            object.__setattr__(self, name, array)
        signals = _floats("signals", self.signals, ndim=2) if np.size(self.signals) else np.zeros((n, 0))
        if len(signals) != n:
            raise InvalidArgument(f"signals has {len(signals)} rows; it needs one for each of the {n} tables")
        object.__setattr__(self, "signals", signals)

    def wanted(self, k: int | None) -> int:
        """How many tables to choose: ``k``, the anchors not counted, or fewer if there are fewer.

        Args:
            k: None for all.

        Raises:
            InvalidArgument: a negative k.
        """
        if k is not None and k < 0:
            raise InvalidArgument(f"k must be the number of tables to choose, at least 0; got {k}")
        free = int((~self.anchor).sum())
        return free if k is None else min(k, free)


def _floats(name: str, values: Any, *, ndim: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim:
        raise InvalidArgument(f"{name} has {array.ndim} dimensions, not {ndim}")
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{name} holds values that are not finite")
    return array


@dataclass(frozen=True, eq=False)
class Selection:
    """The tables that a selector chose.

    Attributes:
        indices: the chosen tables in order of choice, the anchors not among them.
        objective: the value of what the selector maximises.
        score: shape (len(indices),), the value of choosing each table; zeros if not given.
        probability: shape (n,), the probability that each table is needed; None if the selector has none.
        note: a message for the caller ("stopped at the time limit"), or "".
        confidence: the probability that the chosen tables are complete; None if the selector has none.
        facts: what a benchmark records of the choice: the ``status`` of a program, the ``hops`` of a search.

    Raises:
        InvalidArgument: a table is chosen twice, or ``score`` has another length.
    """

    indices: tuple[int, ...]
    objective: float = 0.0
    score: Floats = field(default_factory=lambda: np.zeros(0))
    probability: Floats | None = None
    note: str = ""
    confidence: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        indices = tuple(map(index, self.indices))
        score = self.score if np.size(self.score) else np.zeros(len(indices))
        if len(set(indices)) < len(indices):
            raise InvalidArgument(f"a selection has each table once; got {indices}")
        if np.shape(score) != (len(indices),):
            raise InvalidArgument(
                f"score has the shape {np.shape(score)}; {len(indices)} tables need ({len(indices)},)"
            )
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "score", score)


def best_first(values: Floats) -> npt.NDArray[np.int64]:
    """Indices by descending value; ties go to the lower index.

    >>> best_first(np.array([0.1, 0.9, 0.9])).tolist()
    [1, 2, 0]
    """
    return np.argsort(-values, kind="stable").astype(np.int64)


def forest_weights(
    weights: Floats, sets: npt.NDArray[np.intp], least: float = 0.0
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The maximum spanning forests of many sets of one size, all at once (Prim).

    Args:
        weights: shape (n, n), symmetric, not negative.
        sets: shape (m, t), a set of t tables in each row.
        least: the smallest weight of an edge that is counted; 0 counts all edges of positive weight. (A maximum
            spanning forest has as many such edges as a spanning forest of those edges only.)

    Returns:
        The weight of each set's forest over pairs of positive weight, and the number of its edges that are counted:
        shape (m,) each.
    """
    m, t = sets.shape
    total, edges = np.zeros(m), np.zeros(m, dtype=np.int64)
    if t < 2 or not weights.any():
        return total, edges
    flat, starts = weights.ravel(), sets * len(weights)
    every = np.arange(m)
    reach = flat[starts[:, :1] + sets]
    reach[:, 0] = -1.0
    for _ in range(t - 1):
        nearest = reach.argmax(axis=1)
        step = reach[every, nearest]
        total += step
        edges += (step >= least) & (step > 0)
        reach = np.where(reach < 0, -1.0, np.maximum(reach, flat[starts[every, nearest][:, None] + sets]))
        reach[every, nearest] = -1.0
    return total, edges


@dataclass(frozen=True)
class JarWeights:
    """The weights of the four terms of JAR's objective; the defaults are the authors' for BIRD.

    The paper has the terms (section 3.2, equation 7), but prints no weights.

    Attributes:
        fine: the weight of r_qik.
        coverage: α of equation 7, for each covered sub-query.
        join: the weight of ω.
        coarse: the weight of r_i.
        link_share: the share of the link score in the score of a join; the rest is ω. The paper uses ω only.
    """

    fine: float = 3.0
    coverage: float = 8.0
    join: float = 1.0
    coarse: float = 3.0
    link_share: float = 0.0


PAPER_WEIGHTS = JarWeights()

JAR_WEIGHTS: Mapping[str, JarWeights] = {
    "spider": JarWeights(fine=2.0, coverage=8.0, join=1.0, coarse=10.0),
    "bird": PAPER_WEIGHTS,
    "fiben": PAPER_WEIGHTS,
}
"""JAR's weights by data set, from its authors' code (with Contriever).

For FIBEN none are published: BIRD's are used.
"""


@dataclass(frozen=True)
class GreedyWeights:
    """λ of iterative JAR, equation 3.

    The defaults of the three are the paper's (section 4, appendix A), that of the share is ours.

    Attributes:
        coverage, join, coarse: the weights of the three gains.
        link_share: the share of the link score in a join's gain; the rest is ω. The paper uses ω only (0).
    """

    coverage: float = 2.0
    join: float = 1.0
    coarse: float = 4.0
    link_share: float = 0.5


GREEDY_WEIGHTS: Mapping[str, GreedyWeights] = dict.fromkeys(("spider", "bird", "fiben"), GreedyWeights(link_share=0.0))
"""The paper's λ by data set: the same for all (section 4)."""


@dataclass(frozen=True, eq=False)
class ColumnProblem:
    """The choice among n tables, column by column (JAR sections 3.1 to 3.3).

    Attributes:
        r: shape (n,), r_i.
        fine: for each table, r_qik of shape (q, columns of the table).
        omega: ω_ij^kl, of shape (m, m) over all m columns, table after table; symmetric, zero within a table.
        anchor: shape (n,), True for tables that are in the set already; all False if not given.

    Raises:
        InvalidArgument: shapes that do not fit together.
    """

    r: Floats
    fine: Sequence[Floats]
    omega: Floats
    anchor: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    column_table: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        rows = {len(part) for part in self.fine}
        if len(self.fine) != len(self.r) or len(rows) > 1:
            raise InvalidArgument(f"fine needs one array of shape (q, columns) for each of the {len(self.r)} tables")
        widths = [part.shape[1] for part in self.fine]
        if self.omega.shape != (sum(widths), sum(widths)):
            raise InvalidArgument(f"omega has shape {self.omega.shape}; there are {sum(widths)} columns")
        if not len(self.anchor):
            object.__setattr__(self, "anchor", np.zeros(len(self.r), dtype=np.bool_))
        object.__setattr__(self, "column_table", np.repeat(np.arange(len(self.r)), widths))

    def reduce(self, **more: Any) -> SelectionProblem:
        """The same problem table by table, with the same optimum.

        At most one column of a table covers a sub-query (constraint 5), and at most one pair of columns joins two
        tables (constraint 4). So only the best column and the best pair matter.
        """
        n, q = len(self.r), len(self.fine[0]) if self.fine else 0
        best = [part.max(axis=1) if part.size else np.zeros(q) for part in self.fine]
        joined = np.zeros((n, n))
        np.maximum.at(joined, (self.column_table[:, None], self.column_table[None, :]), self.omega)
        np.fill_diagonal(joined, 0.0)
        fine = np.array(best).reshape(n, q).T.copy()
        return SelectionProblem(r=self.r, fine=fine, omega=joined, anchor=self.anchor, **more)
