"""From a question to a selector's problem, and from the problem to its selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tagframe.retrieval.column_problem import ColumnProblem, JarWeights
from tagframe.retrieval.decompose import Decomposition
from tagframe.retrieval.index import RetrievalIndex, plain
from tagframe.retrieval.murre import HOPS, REMOVAL_HOPS, Removal, Rewriter, murre
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem, best_first
from tagframe.retrieval.selectors import (
    GreedyWeights,
    Weights,
    dense,
    exact,
    fitted,
    greedy,
    mip,
    shipped_weights,
)
from tagframe.retrieval.selectors.fitted import POOL
from tagframe.retrieval.signals import Evidence, gather, near_duplicates

CANDIDATES = 20
"""Tables of highest coarse relevance that the papers' selectors choose from."""

NEIGHBOURS = 10
"""Further candidates: tables that are linked to one of those, such as a bridge table that no word names."""

LEXICAL_WEIGHT = 0.15
"""What the best lexical match of a question adds to its cosine in the coarse relevance of the papers' selectors."""

JAR_WEIGHTS = JarWeights(link_share=0.5)
"""What ``exact`` maximises here: the authors' weights, with the link scores as half of a join."""

CRUSH_WEIGHTS = GreedyWeights(coverage=1.0, join=0.0, coarse=1.0)
"""What ``crush`` chooses by: the segments covered, and the table as a whole."""

MIP_SECONDS = 60.0

_Selector = Callable[[SelectionProblem], Selection]
_GREEDY: dict[str, _Selector] = {"greedy": greedy, "crush": partial(greedy, weights=CRUSH_WEIGHTS)}
_RANKERS = ("dense", "lexical", "hybrid")
METHODS = ("auto", "greedy", "exact", "mip", "murre", "crush", *_RANKERS)
"""The values of ``method``."""

WITH_SUBQUERIES = frozenset({"auto", "greedy", "exact", "mip", "crush"})
"""The methods that look at sub-queries (of ``crush``: at the segments of an imagined schema)."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A question over the tables of an index, ready for a selector.

    Attributes:
        tables: positions in the index of the problem's tables, ascending.
        problem: without its k.
        method: the selector to use.
        subqueries: of the question.
        columns: the problem column by column, for the method "mip".
        evidence: for the method "auto".
        weights: for the method "auto"; the shipped ones where None.
        joined: whether "exact" and "mip" look at joins; without them they are JAR-D.
    """

    tables: tuple[int, ...]
    problem: SelectionProblem
    method: str
    subqueries: tuple[str, ...] = ()
    columns: ColumnProblem | None = None
    evidence: Evidence | None = None
    weights: Weights | None = None
    joined: bool = True


def prepare(
    index: RetrievalIndex,
    question: str,
    parts: Decomposition,
    *,
    method: str,
    anchored: int | None = None,
    weights: Weights | None = None,
    rewrite: Rewriter | None = None,
    coarse: Floats | None = None,
    joined: bool = True,
) -> Prepared:
    """Everything before the choice: relevance, candidates, the selection problem.

    Args:
        index: of the corpus.
        question: as asked.
        parts: of the question.
        method: one of :data:`METHODS`.
        anchored: the position of the table that is in the set already.
        weights: for the method "auto"; the shipped ones where None.
        rewrite: for the method "murre"; the removal of what was found where None.
        coarse: shape (tables of the corpus,), coarse relevance that was computed elsewhere; "auto" and "murre", which
            have more than one, take none.
        joined: whether "exact" and "mip" look at joins; without them they are JAR-D.
    """
    if method == "auto":
        # Sub-queries by rules say no more than the question's own words.
        subqueries = () if parts.origin == "rules" else parts.subqueries
        found = from_evidence(index, gather(index, question, parts.quoted, subqueries), weights, anchored)
        return replace(found, subqueries=subqueries)
    if method == "murre":
        removal = Removal(index.named, with_database=not index.one_database)
        hops = REMOVAL_HOPS if rewrite is None else HOPS
        ranking = murre(question, index.similarities, rewrite or removal, hops=hops)
    elif coarse is not None:
        ranking = coarse
    elif method == "crush":
        ranking = _coarse(index, " ".join([question, *map(plain, parts.subqueries)]), method)
    else:
        ranking = _coarse(index, question, method)
    if method in _RANKERS or method == "murre":
        tables = tuple(range(len(index.tables)))
        return Prepared(tables, SelectionProblem(r=ranking, anchor=_is(anchored, tables)), method)
    tables = tuple(candidates(index, ranking, anchored))
    fine, each = index.fine(parts.subqueries, tables)
    problem = SelectionProblem(
        r=ranking[list(tables)],
        fine=fine,
        omega=index.joinability.matrix(tables),
        source=index.database[list(tables)],
        link=index.links.matrix(tables),
        anchor=_is(anchored, tables),
    )
    columns = None
    if method == "mip":
        columns = ColumnProblem(problem.r, each, column_joins(index, tables, JAR_WEIGHTS.link_share), 0)
    return Prepared(tables, problem, method, parts.subqueries, columns, joined=joined)


def choose(prepared: Prepared, *, k: int | None) -> Selection:
    """The tables that the method chooses, as positions in ``prepared.tables``."""
    problem = replace(prepared.problem, k=k)
    if prepared.method == "auto":
        return fitted(problem, prepared.weights)
    if prepared.columns is not None and not problem.anchor.any():
        columns = replace(prepared.columns, k=problem.size)
        weights = replace(JAR_WEIGHTS, link_share=0.0)  # the columns' joins have the link scores in them
        return mip(columns, weights, variant="F" if prepared.joined else "D", seconds=MIP_SECONDS)
    if prepared.method in ("mip", "exact"):
        selection = exact(problem, JAR_WEIGHTS, joined=prepared.joined)
        unlike = "the printed program knows no anchor: chosen by exact"
        return replace(selection, note=unlike) if prepared.method == "mip" else selection
    return _GREEDY.get(prepared.method, dense)(problem)


def candidates(index: RetrievalIndex, ranking: Floats, anchored: int | None) -> list[int]:
    """The tables that a set selector chooses from, ascending: the best ones, their join neighbours, the anchor."""
    best = best_first(ranking)[:CANDIDATES].tolist()
    if anchored is not None and anchored not in best:
        best.append(anchored)
    return sorted({*best, *index.links.neighbours(best, NEIGHBOURS)})


def column_joins(index: RetrievalIndex, tables: Sequence[int], link_share: float = 0.5) -> Floats:
    """The mean of ω and link scores for every pair of columns of the tables: shape (columns, columns)."""
    first = np.cumsum([0, *(len(index.tables[table].columns) for table in tables)])
    joins = np.zeros((first[-1], first[-1]))
    for i, left in enumerate(tables):
        for j in range(i + 1, len(tables)):
            scores = (1 - link_share) * index.joinability.columns(left, tables[j])
            key = index.links.best(left, tables[j])
            if key is not None and len(key.left_columns) == 1:
                ends = {key.left_table: key.left_columns[0], key.right_table: key.right_columns[0]}
                k, other = (
                    next(column.position for column in profile.columns if column.name == ends[profile.id])
                    for profile in (index.tables[left], index.tables[tables[j]])
                )
                scores[k, other] += link_share * key.score
            joins[first[i] : first[i + 1], first[j] : first[j + 1]] = scores
    return joins + joins.T


def from_evidence(
    index: RetrievalIndex, evidence: Evidence, weights: Weights | None = None, anchored: int | None = None
) -> Prepared:
    """The method "auto" from the evidence on: the first stage's score, candidates, the selection problem."""
    prior = (shipped_weights() if weights is None else weights).prior(evidence.signals)
    best = best_first(prior)[:POOL].tolist()
    tables = tuple(sorted({*best, *([] if anchored is None else [anchored])}))
    places = list(tables)
    problem = SelectionProblem(
        r=prior[places],
        fine=evidence.rows[:, places],
        omega=index.joinability.matrix(tables),
        kind=evidence.kind,
        row_weight=evidence.weight,
        signals=evidence.signals[places],
        source=index.database[places],
        link=index.links.matrix(tables),
        similarity=near_duplicates(index, tables),
        anchor=_is(anchored, tables),
    )
    return Prepared(tables, problem, "auto", evidence=evidence, weights=weights)


def _coarse(index: RetrievalIndex, question: str, method: str) -> Floats:
    if method == "dense" and index.embedder is not None:
        return index.dense(question)
    lexical = index.lexical.scores(question)
    if method in ("lexical", "dense"):
        return lexical
    return index.dense(question) + LEXICAL_WEIGHT * lexical / max(float(lexical.max(initial=0.0)), 1e-12)


def _is(anchored: int | None, tables: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.array([table == anchored for table in tables], dtype=bool)
