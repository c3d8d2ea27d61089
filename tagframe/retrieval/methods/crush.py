"""CRUSH: a language model imagines the schema that would answer the question; real tables that cover it are chosen.

Kothyari, Dhingra, Sarawagi, Chakrabarti: *CRUSH4SQL: Collective Retrieval Using Schema Hallucination for Text2SQL*
(EMNLP 2023), as Boutaleb et al. describe and compare it (appendix D of *Exploring Multi-Table Retrieval Through
Iterative Search*), with the candidates and the weights of the published code (``TOPK``, ``get_snm``).

What is chosen are tables, as in Boutaleb et al.; the elements of CRUSH4SQL itself are columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.retrieval.decompose import taken_apart
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import ByScores, Prepared, Setup, anchors, candidates
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem
from tagframe.retrieval.question import Question

if TYPE_CHECKING:
    from tagframe.lm import LM

DEVIATIONS = {
    "iterative JAR: appendix D": (
        "the cosines of a segment are weighted by their entropy, as in the published code, and once all segments "
        "are covered, all are uncovered again; there is no budget beside k; the prompt, which is not printed, is "
        "ours, and segments are encoded without the question"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

PROMPT = """Imagine the smallest database schema that would answer the question. Write one table on a line, as \
table(column, column, ...), and nothing else.

Question: Which models are lighter than 3500 but not built by the 'Ford Motor Company'?
Schema:
car maker(maker id, maker name)
car model(model id, maker id, model name)
car data(model id, weight)

Question: {question}
Schema:"""

CANDIDATES = 100
"""The number of tables among which CRUSH chooses: those whose best segment is most similar (``TOPK``)."""

_TABLE = re.compile(r"([^\s(),;:][^(),;:\n]*?)\s*\(([^()]*)\)")


def segments(schema: Iterable[str]) -> tuple[str, ...]:
    """The segments of an imagined schema: ``table:column`` for each column.

    >>> segments(["Schools(school_id, county)", "rates"])
    ('Schools:school_id', 'Schools:county', 'rates')
    """
    parts: list[str] = []
    for text in schema:
        tables = _TABLE.findall(text)
        for table, columns in tables:
            names = [name.strip() for name in columns.split(",") if name.strip()]
            parts += [f"{table}:{name}" for name in names] or [table]
        if not tables and text.strip():
            parts.append(text.strip())
    return tuple(dict.fromkeys(parts))


def parse_schema(answer: str) -> tuple[str, ...]:
    """The segments of a model's answer to :data:`PROMPT`.

    Raises:
        AnswerRejected: no line of the answer is a table with columns in parentheses.
    """
    if not _TABLE.search(answer):
        raise AnswerRejected("write one table on a line, as table(column, column); the answer has none")
    return segments(line for line in answer.splitlines() if _TABLE.search(line))


def imagine(lm: LM, question: Question) -> Question:
    """The question with the segments of a schema that a model imagines; unchanged, with a warning, if that fails."""
    return taken_apart(lm, question, PROMPT, parse_schema)


def crush(problem: SelectionProblem, k: int | None = None) -> Selection:
    """Choose tables pair by pair: the best pair of an uncovered segment and a table that is not yet chosen.

    A pair's score is its cosine, moved to [0, 1], times the weight of its segment: the sigmoid of how much the entropy
    of the segment's cosines over the tables is below the mean of all segments. The pair's segment is covered then. When
    all are covered, all count as uncovered again.

    Args:
        problem: ``fine`` has a row for each segment. Anchors are chosen already: each covers its best segment.
        k: how many; None for all, ranked.

    >>> crush(SelectionProblem(r=np.zeros(3), fine=np.array([[0.9, 0.8, 0.1], [0.2, 0.1, 0.7]])), 2).indices
    (0, 2)
    """
    # Without segments, all tables are alike but for their relevance.
    share = (np.clip(problem.fine if len(problem.fine) else problem.r[None, :], -1.0, 1.0) + 1) / 2
    chance = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-12)
    entropy = -(chance * np.log(np.maximum(chance, 1e-300))).sum(axis=1)
    scores = share / (1 + np.exp(entropy - entropy.mean()))[:, None]
    covered = np.zeros(len(scores), dtype=bool)
    given = np.flatnonzero(problem.anchor).tolist()
    for table in given:
        covered[_open(scores, covered)[:, table].argmax()] = True
    free = np.where(problem.anchor, -np.inf, 0.0)
    chosen: list[int] = []
    gained: list[float] = []
    for _ in range(problem.wanted(k)):
        segment, table = divmod(int((_open(scores, covered) + free).argmax()), len(free))
        chosen.append(table)
        gained.append(float(scores[segment, table]))
        covered[segment], free[table] = True, -np.inf
    score = np.array(gained)
    return Selection(tuple(chosen), float(score.sum()), score)


def _open(scores: Floats, covered: npt.NDArray[np.bool_]) -> Floats:
    """The scores of the uncovered segments; if all are covered, they are uncovered first."""
    if covered.all():
        covered[:] = False
    return np.where(covered[:, None], -np.inf, scores)


@dataclass(frozen=True, kw_only=True)
class CRUSH(ByScores):
    """CRUSH: a model imagines a schema that would answer the question; tables that cover it are chosen (:func:`crush`).

    Without a model, the sub-queries of rules take the place of the schema.

    Attributes:
        schema: the tables of the imagined schema, each ``table(column, column)``, if you know them; None has the
            configured model imagine them.
        coarse: scores by table id, from your own scorer, that decide which :data:`CANDIDATES` tables are considered;
            tables that it does not name have 0.

    Raises:
        InvalidArgument: a schema that is a text.
    """

    name: ClassVar[str] = "crush"
    summary: ClassVar[str] = "takes tables that cover an imagined schema, pair by pair"

    schema: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.schema, str):
            raise InvalidArgument(f"schema must be a list of tables, such as [{self.schema!r}]; got {self.schema!r}")

    @property
    def asks_model(self) -> bool:
        """Whether a model imagines the schema."""
        return self.schema is None

    def read(self, question: Question, lm: LM | None) -> Question:
        """The question with the segments of the schema as its sub-queries."""
        if self.schema is not None:
            return question.with_subqueries(segments(self.schema), "given")
        return question if lm is None else imagine(lm, question)

    def scores(self, index: RetrievalIndex, question: Question) -> Floats:
        """The cosine of each table's best column and the segment that is nearest to it: shape (n,)."""
        fine, _ = index.fine(question.subqueries, range(len(index.tables)))
        return np.asarray(fine.max(axis=0)) if len(fine) else np.zeros(len(index.tables))

    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Floats, anchored: int | None, k: int | None
    ) -> Prepared[SelectionProblem]:
        """The problem over the :data:`CANDIDATES` best tables, or k if that is more, and the anchor."""
        tables = tuple(candidates(index, relevance, anchored, k, Setup(CANDIDATES, links=False)))
        fine, _ = index.fine(question.subqueries, tables)
        problem = SelectionProblem(
            r=relevance[list(tables)], fine=fine, link=index.links.matrix(tables), anchor=anchors(tables, anchored)
        )
        return Prepared(tables, problem, question.subqueries)

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The k tables that cover the schema, pair by pair."""
        return crush(problem, k)
