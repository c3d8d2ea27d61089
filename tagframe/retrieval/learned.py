"""Evidence from earlier statements: which tables are read often, for similar questions, and together.

Each kind of evidence is a number for a table or for a set of tables. ``tag_bench fit learned`` has fitted a weight to
each (``learned`` in ``weights.json``). Without learned statements, there is no such evidence.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tagframe.corpus.statements import Statement, spoken
from tagframe.retrieval.problem import Examples, Floats
from tagframe.retrieval.question import Question

if TYPE_CHECKING:
    from tagframe.corpus.vectors import VectorStore
    from tagframe.retrieval.index import RetrievalIndex

SIGNALS = ("prior", "usage", "near", "best", "together")
"""The learned evidence for a table, in order.

prior: the first stage's score, which means less if there are examples. usage: log of how many statements read the
table. near: the share of the nearest questions' statements that read it. best: the cosine of the nearest such question.
Both are multiplied by how well questions of the examples predict each other's tables. together: how often the table is
read with the tables that the other evidence considers likely.
"""

SETS = ("utility", "own", "size", "alike", "same")
"""The learned evidence for a set of tables, in order: its utility by the second stage; the sum of the learned evidence
for its tables; its size, which counts less if there are few statements; how similar the tables of the nearest examples
are to it (Jaccard), and the share of examples that read exactly this set."""

FEW = ("few", "few_known")
"""Pseudo-counts, so that few statements weigh less: a table that one statement does not read may still be needed.

few: with so many statements, the learned cost of each further table in a set has half its weight. few_known: so many
statements weigh as much as all other evidence, if rows of all tables are known and names or cells contain all words of
the question. If nothing of that is known, every statement counts fully."""

BELIEVED = ("believed",)
"""believed: used if only names are known of the tables and the examples are very similar to the question
(:attr:`~tagframe.retrieval.problem.Examples.like`). It is the odds that the probability of a set is what the nearest
examples or the posterior say, and not what names say."""

CORRECTION_LOG_ODDS = 20.0
"""The log-odds of a table if a person has said whether this question needs it."""

_COSINE_SCALE = 0.05
"""A question whose cosine is lower by this much counts e times less."""

_LIKENESS_EXPONENT = 4
"""The exponent that makes distant or few examples count less. If it is lower, statements about other tables mislead
more, and the third statement of a warehouse raises the probability of a set by more than a tenth."""

_LIKELY_TABLES = 4.0
"""The number of likely tables for which other tables are looked up that are read together with them."""

_MOST_EXAMPLES = 64
"""The number of examples with whose tables sets are compared."""

_TRUST_SAMPLE = 300
"""The number of examples used to measure how well questions predict tables."""


_MIN_KIND_SHARE = 0.05
"""What was learned counts fully for a question that is nearer to its nearest example than at least this share of the
examples are to theirs. Other questions are probably of another kind, for example if the log is another department's."""

_MIN_EXAMPLES_OF_A_KIND = 10
"""With fewer examples, every question counts as being of their kind."""

_MIN_ODDS_SHARE = 0.05
"""What was learned counts fully for a question if a table that a statement reads has at least this share of the best
table's odds by the first stage. For questions about tables that no statement reads, the share is .01 in the median, for
others 1, and .07 at the tenth part (FIBEN, 30 statements, where the value was chosen). Where names say nothing,
all tables have much the same odds.
"""

_MIN_SAME_COSINE = 0.95
"""From this cosine on, two questions are the same in other words."""

_MAX_LIKE_COSINE = 0.6
"""From this cosine on, a question is similar to another one, however similar the examples are to each other."""

_NEARNESS_SAMPLE = 100
"""The number of examples used to measure how similar they are to each other."""


@dataclass(frozen=True, eq=False)
class Known:
    """Learned statements over the tables of an index: e statements, n tables.

    Attributes:
        members: shape (m, 2): statement and table, for every table that a statement reads.
        count: the number of tables.
        times: shape (e,), the weight of each statement.
        questions: shape (q,), the statements that have a question.
        vectors: shape (q, d), the vectors of these questions; rows of length 1.
    """

    members: npt.NDArray[np.intp]
    count: int
    times: Floats
    questions: npt.NDArray[np.intp]
    vectors: Floats

    @cached_property
    def usage(self) -> Floats:
        """How many statements read each table: shape (n,)."""
        return self.by_table(np.ones(len(self.times)))

    @cached_property
    def sizes(self) -> Floats:
        """How many tables each statement reads: shape (e,)."""
        return np.bincount(self.members[:, 0], minlength=len(self.times)).astype(np.float64)

    def shares(self, few: Floats, known: float, vector: Floats | None, prior: Floats) -> list[float]:
        """The weights of learned sizes of sets and of all that was learned: n / (n + few) for n statements, and less
        for a question that is not of their kind, or not about tables that they read.

        Args:
            few: shape (len(FEW),), the pseudo-counts.
            known: how much is known about the question without statements, in [0, 1].
            vector: of the question; None without an embedder.
            prior: shape (n,), the first stage's score; the best is 0.
        """
        statements = np.count_nonzero(self.sizes)
        apt = self.of_its_kind(vector) * self.could_see(prior)
        return [float(one) for one in statements / np.maximum(statements + few * [1, known], 1) * [1, apt]]

    def could_see(self, prior: Floats) -> float:
        """How far a question is about tables that statements read, in [0, 1].

        A log of one department says nothing of the tables of another one, so it must not lower them.
        """
        return min(float(np.exp(prior[self.usage > 0].max(initial=-np.inf))) / _MIN_ODDS_SHARE, 1.0)

    def by_table(self, values: Floats) -> Floats:
        """For each table, the sum of a value over the statements that read it: (e,) to (n,)."""
        statement, table = self.members.T
        return np.bincount(table, (values * self.times)[statement], minlength=self.count).astype(np.float64)

    def by_statement(self, values: Floats) -> Floats:
        """For each statement, the sum of a value over the tables that it reads: (n,) to (e,)."""
        statement, table = self.members.T
        return np.bincount(statement, values[table], minlength=len(self.times)).astype(np.float64)

    def read(self, statements: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Which tables each of some statements reads: shape (len(statements), n)."""
        row = np.full(len(self.times), -1)
        row[statements] = np.arange(len(statements))
        inside = self.members[row[self.members[:, 0]] >= 0]
        reads = np.zeros((len(statements), self.count), dtype=bool)
        reads[row[inside[:, 0]], inside[:, 1]] = True
        return reads

    @cached_property
    def trust(self) -> float:
        """How much better the nearest other questions predict an example's tables than the tables' usage does; 0 if
        questions and statements are unrelated."""
        chosen = np.unique(
            np.linspace(0, len(self.questions) - 1, min(_TRUST_SAMPLE, len(self.questions))).astype(np.intp)
        )
        if len(chosen) < 2:
            return 0.0
        near = self.vectors[chosen] @ self.vectors[chosen].T
        np.fill_diagonal(near, -np.inf)
        tables = self.read(self.questions[chosen]).astype(np.float64)
        gain = _weights(near) @ tables - (tables.sum(axis=0) - tables) / (len(chosen) - 1)
        return max(float(((gain * tables).sum(axis=1) / np.maximum(tables.sum(axis=1), 1)).mean()), 0.0)

    @cached_property
    def nearness(self) -> Floats:
        """The cosine of each of some examples and its nearest other one that is not the same in other words, ascending;
        cosines above :data:`_MAX_LIKE_COSINE` count as that."""
        chosen = np.unique(
            np.linspace(0, len(self.questions) - 1, min(_NEARNESS_SAMPLE, len(self.questions))).astype(np.intp)
        )
        near = self.vectors[chosen] @ self.vectors.T
        return np.sort(
            np.minimum(np.where(near < _MIN_SAME_COSINE, near, -1.0).max(axis=1, initial=-1.0), _MAX_LIKE_COSINE)
        )

    def of_its_kind(self, vector: Floats | None) -> float:
        """How far a question is of the same kind as the learned ones, in [0, 1]; 1 if that cannot be judged."""
        if vector is None or len(self.questions) < _MIN_EXAMPLES_OF_A_KIND:
            return 1.0
        below = np.searchsorted(self.nearness, (self.vectors @ vector).max(), side="right") / len(self.nearness)
        return 1 - (1 - min(float(below) / _MIN_KIND_SHARE, 1.0)) * len(self.questions) / len(self.times)

    def without(self, statements: Iterable[int]) -> Known:
        """The same without some statements; the trust in questions and their nearness to each other stay unchanged."""
        others = np.setdiff1d(np.arange(len(self.times)), np.array(sorted(statements), dtype=np.intp))
        number = np.full(len(self.times), -1)
        number[others] = np.arange(len(others))
        members = self.members[number[self.members[:, 0]] >= 0]
        asks = number[self.questions] >= 0
        rest = Known(
            np.stack([number[members[:, 0]], members[:, 1]], axis=1),
            self.count, self.times[others], number[self.questions[asks]], self.vectors[asks],
        )  # fmt: skip
        rest.__dict__.update(trust=self.trust, nearness=self.nearness)
        return rest

    def signals(self, vector: Floats | None, prior: Floats, weights: Floats) -> Floats:
        """The learned evidence for each table and one question: shape (n, len(SIGNALS)).

        Args:
            vector: of the question; None without an embedder.
            prior: shape (n,), the first stage's score; the best is 0.
            weights: shape (len(SIGNALS),); they choose the likely tables for ``together``.
        """
        evidence = np.zeros((self.count, len(SIGNALS)))
        evidence[:, 0] = prior
        evidence[:, 1] = np.log1p(2 * self.usage)
        if vector is not None and len(self.questions) and self.trust:
            cosine = self.vectors @ vector
            share, nearest = np.zeros((2, len(self.times)))
            share[self.questions] = _weights(cosine[None])[0]
            nearest[self.questions] = np.maximum(cosine, 0.0)
            statement, table = self.members.T
            evidence[:, 2] = self.trust * np.bincount(table, share[statement], minlength=self.count)
            np.maximum.at(evidence[:, 3], table, self.trust * nearest[statement])
        scores = evidence @ weights
        odds = np.exp(scores - scores.max(initial=-np.inf))
        each = np.minimum(_LIKELY_TABLES * odds / max(float(odds.sum()), 1e-300), 1.0) / (self.usage + 1)
        evidence[:, 4] = self.by_table(self.by_statement(each)) - self.usage * each
        return evidence

    def examples(self, vector: Floats | None, shares: Sequence[float] = (1.0, 1.0)) -> Examples:
        """The nearest examples of a question, with the weight of each, and of all of them (:meth:`shares`)."""
        if vector is None or not len(self.questions):
            return Examples(np.zeros((0, self.count), dtype=bool), np.zeros(0), np.zeros(0), *shares)
        cosine = self.vectors @ vector
        best = np.argsort(-cosine, kind="stable")[:_MOST_EXAMPLES]
        chosen = self.questions[best]
        weight = self.trust * _weights(cosine[None, best])[0]
        like = self.trust * (shares[0] * max(float(cosine[best[0]]), 0.0)) ** _LIKENESS_EXPONENT
        return Examples(self.read(chosen), self.sizes[chosen], weight, shares[0], shares[1], like)


def _weights(cosine: Floats) -> Floats:
    """The weight of each example, row by row; each row sums to 1."""
    odds = np.exp((cosine - cosine.max(axis=1, keepdims=True)) / _COSINE_SCALE)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


_made: weakref.WeakKeyDictionary[RetrievalIndex, tuple[tuple[Statement, ...], Known]] = weakref.WeakKeyDictionary()


def known_of(index: RetrievalIndex, statements: Sequence[Statement], vectors: VectorStore) -> Known | None:
    """The learned statements about the tables of an index; None if there are none.

    Args:
        index: of the corpus.
        statements: the statements that were learned.
        vectors: the store of vectors of questions.
    """
    given = tuple(statements)
    made = _made.get(index)
    if made is None or made[0] != given:
        made = _made[index] = given, _known(index, given, vectors)
    return made[1] if len(made[1].members) else None


def _known(index: RetrievalIndex, statements: Sequence[Statement], vectors: VectorStore) -> Known:
    position = {id: number for number, one in enumerate(index.families) for id in one.ids}
    members = [
        (row, table)
        for row, one in enumerate(statements)
        for table in sorted({position[id] for id in one.tables if id in position})
    ]
    with_question = [row for row, one in enumerate(statements) if one.question] if index.embedder is not None else []
    encoded = np.zeros((0, 0))
    if with_question and index.embedder is not None:
        known, rows = vectors.encode(index.embedder, [statements[row].question for row in with_question])
        encoded = known[rows].astype(np.float64)
    return Known(
        np.array(members, dtype=np.intp).reshape(-1, 2),
        len(index.tables),
        np.array([1 + np.log(max(one.times, 1)) for one in statements]),
        np.array(with_question, dtype=np.intp),
        encoded,
    )


def correction_of(index: RetrievalIndex, statements: Sequence[Statement], question: Question) -> Floats | None:
    """The log-odds of each table, if a person has said which tables this very question needs; None if not.

    Args:
        index: of the corpus.
        statements: the statements that were learned; of two corrections of this question, the later one counts.
        question: as asked.
    """
    text = spoken(question.text)
    corrections = [one for one in statements if one.by == "user" and one.question and spoken(one.question) == text]
    if not corrections:
        return None
    tables = {*corrections[-1].tables}
    is_in = [bool(tables & {*one.ids}) for one in index.families]
    return np.where(is_in, CORRECTION_LOG_ODDS, -CORRECTION_LOG_ODDS)


def set_signals(utilities: Floats, own: Floats, examples: Examples, members: Floats) -> Floats:
    """The learned evidence for each set: shape (sets, len(SETS)).

    Args:
        utilities: shape (sets,), the second stage's score.
        own: shape (p,), the learned evidence for each of the tables of which sets are made.
        examples: over these tables.
        members: shape (sets, p): 1 if a set has a table.
    """
    size = members.sum(axis=1)
    alike = same = np.zeros(len(members))
    if len(examples.weight):
        both = members @ examples.tables.T
        alike = both / (size[:, None] + examples.size - both)
        same = (alike == 1.0) @ examples.weight
        alike = alike @ examples.weight
    return np.stack([utilities, members @ own, size * examples.of_size, alike, same], axis=1)
