"""Questions of a benchmark that are learned with their SQL, to be used for its other questions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tag_bench.data import Dataset, Question
from tagframe.corpus.statements import Statement
from tagframe.corpus.vectors import VectorStore
from tagframe.embed import encoded
from tagframe.learning.sources import without_literals
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.learned import Known, known_of
from tagframe.retrieval.question import Question as RetrievalQuestion
from tagframe.retrieval.signals import Evidence

NEAR = 0.95
"""A learned question is left out if its cosine similarity to the asked question is higher."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Some questions that were learned with their SQL.

    Learned keys are left out, because they would contain the joins of near-duplicates.

    Attributes:
        index: of the data's tables.
        questions: that were learned.
        known: the facts learned from them.
    """

    index: RetrievalIndex
    questions: tuple[Question, ...]
    known: Known

    @classmethod
    def drawn(
        cls,
        data: Dataset,
        index: RetrievalIndex,
        count: int,
        seed: int,
        vectors: VectorStore,
        *,
        with_questions: bool = True,
        shuffled: bool = False,
    ) -> Lesson | None:
        """Random questions of the data; without ``with_questions``, only their SQL. None if ``count`` is 0.

        Args:
            data: the benchmark.
            index: of its tables.
            count: of questions.
            seed: of the draw.
            vectors: of questions that were learned before.
            with_questions: whether the questions are learned, too, and not only their SQL.
            shuffled: whether each question gets the SQL of another one.
        """
        ids = {table.id.lower(): table.id for table in index.tables}
        fit = [one for one in data.questions if one.gold and one.gold <= ids.keys()]
        positions = np.random.default_rng(seed).choice(len(fit), min(count, len(fit)), replace=False)
        chosen = tuple(fit[position] for position in positions.tolist())
        if shuffled:
            others = (*chosen[1:], *chosen[:1])
            chosen = tuple(replace(one, gold=two.gold, sql=two.sql) for one, two in zip(chosen, others, strict=True))
        statements = [
            Statement(
                tuple(sorted(ids[id] for id in one.gold)), one.sql, one.text if with_questions else "", runs={"": 1}
            )
            for one in chosen
        ]
        known = known_of(index, statements, vectors)
        return None if known is None else cls(index, chosen, known)

    @cached_property
    def _statements(self) -> list[str]:
        return [without_literals(one.sql) if one.sql else "" for one in self.questions]

    @cached_property
    def _vectors(self) -> npt.NDArray[np.float64]:
        assert self.index.embedder is not None
        return encoded(self.index.embedder, [one.text for one in self.questions], "passage").astype(np.float64)

    def apply(self, evidence: Evidence, question: Question, as_read: RetrievalQuestion) -> Evidence:
        """The evidence for a question, with the facts learned from the others."""
        vector = self.index.vector(as_read)
        near = np.zeros(len(self.questions)) if vector is None else self._vectors @ vector
        sql = without_literals(question.sql) if question.sql else None
        out = {
            row
            for row, one in enumerate(self.questions)
            if one.position == question.position or near[row] > NEAR or self._statements[row] == sql
        }
        return replace(evidence, known=self.known.without(out) if out else self.known, vector=vector)
