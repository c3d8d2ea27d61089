"""What statements that were run say of a question: which tables are read, for questions like it, and together.

All of it is evidence beside the rest: numbers of a table or of a set of tables, to which ``tag_bench fit-learned`` has
fitted a weight each (``learned`` in ``weights.json``). Where nothing was learned there is none of it.
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
"""What is known of a table, in order.

prior: the first stage's score, which says less where there are examples. usage: log of how many statements read it.
near: the share of the nearest questions' statements that do; best: the cosine of the nearest such question; both times
how well the questions of the examples tell of each other's tables. together: how often it is read with the tables that
are likely by the rest.
"""

SETS = ("utility", "own", "size", "alike", "same")
"""What is known of a set of tables, in order: its utility by the second stage; the sum of what is learned of its
tables; its size, less where statements are few; how like it the tables of the nearest examples are (Jaccard), and the
share that read just it."""

FEW = ("few", "few_known")
"""Pseudo-counts, so that few statements weigh less: what nobody reads in one is not what nobody needs.

few: so many statements say half of what each table of a set costs, which is about what it gains by being learned of.
few_known: so many count as much as all that is known without them, where rows are known of all tables and names or
cells have all words of the question; where nothing of it is known, every statement counts."""

TOLD = ("told",)
"""told: where names are all else that is known, the odds of the chance of a set being what the nearest examples or the
posterior say, and not what names do, where these are quite like the question
(:attr:`~tagframe.retrieval.problem.Examples.like`)."""

CERTAIN = 20.0
"""The log-odds of a table of which a person has said whether this question needs it."""

_NEAR = 0.05
"""A question whose cosine is so much lower counts e times less."""

_STEEP = 4
"""The power by which examples that are far, or few, are less like a question. With less a log of other tables misleads
more, and the third statement of a warehouse makes a set surer by more than a tenth."""

_LIKELY = 4.0
"""As many tables are taken to be needed, where it is asked which others are read with these."""

_NEAREST = 64
"""Examples with whose tables sets are compared."""

_SAMPLE = 300
"""Examples by which it is found out whether questions tell of tables."""


_UNLIKE = 0.05
"""The share of examples that are less like the nearest other one than a question is, from which on all that was learned
counts: below, the question is probably none of their kind, as where the log is that of another department."""

_KINDS = 10
"""Examples from which on it is asked whether a question is of their kind."""

_SAME = 0.95
"""The cosine from which on two questions are one in other words."""

_LIKE = 0.6
"""The cosine from which on a question is like another one, however like each other the examples are."""

_OTHERS = 100
"""Examples by which it is found out how like each other they are."""


@dataclass(frozen=True, eq=False)
class Known:
    """What was learned, over the tables of an index: e statements, n tables.

    Attributes:
        members: shape (m, 2): statement and table, for every table that a statement reads.
        count: of tables.
        times: shape (e,), what each statement counts.
        asked: shape (q,), the statements that have a question.
        vectors: shape (q, d), of these questions; rows of length 1.
    """

    members: npt.NDArray[np.intp]
    count: int
    times: Floats
    asked: npt.NDArray[np.intp]
    vectors: Floats

    @cached_property
    def usage(self) -> Floats:
        """How many statements read each table: shape (n,)."""
        return self.by_table(np.ones(len(self.times)))

    @cached_property
    def sizes(self) -> Floats:
        """How many tables each statement reads: shape (e,)."""
        return np.bincount(self.members[:, 0], minlength=len(self.times)).astype(np.float64)

    def shares(self, few: Floats, known: float, vector: Floats | None) -> list[float]:
        """What the size of sets counts, and what all that is learned does: n / (n + few) of n statements, and less for
        a question that is not of their kind.

        Args:
            few: shape (len(FEW),), the pseudo-counts.
            known: how much is known of a question without them, in [0, 1].
            vector: of the question; None without an embedder.
        """
        statements = np.count_nonzero(self.sizes)
        found = statements / np.maximum(statements + few * [1, known], 1) * [1, self.of_its_kind(vector)]
        return [float(one) for one in found]

    def by_table(self, values: Floats) -> Floats:
        """The sum over the statements that read each table of a value of theirs: (e,) to (n,)."""
        statement, table = self.members.T
        return np.bincount(table, (values * self.times)[statement], minlength=self.count).astype(np.float64)

    def by_statement(self, values: Floats) -> Floats:
        """The sum over the tables that each statement reads of a value of theirs: (n,) to (e,)."""
        statement, table = self.members.T
        return np.bincount(statement, values[table], minlength=len(self.times)).astype(np.float64)

    def read(self, statements: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Which tables each of some statements reads: shape (len(statements), n)."""
        row = np.full(len(self.times), -1)
        row[statements] = np.arange(len(statements))
        inside = self.members[row[self.members[:, 0]] >= 0]
        found = np.zeros((len(statements), self.count), dtype=bool)
        found[row[inside[:, 0]], inside[:, 1]] = True
        return found

    @cached_property
    def trust(self) -> float:
        """How much better the nearest other questions tell of an example's tables than how often these are read does:
        0 where questions and statements have nothing to do with each other."""
        chosen = np.unique(np.linspace(0, len(self.asked) - 1, min(_SAMPLE, len(self.asked))).astype(np.intp))
        if len(chosen) < 2:
            return 0.0
        near = self.vectors[chosen] @ self.vectors[chosen].T
        np.fill_diagonal(near, -np.inf)
        tables = self.read(self.asked[chosen]).astype(np.float64)
        gain = _weights(near) @ tables - (tables.sum(axis=0) - tables) / (len(chosen) - 1)
        return max(float(((gain * tables).sum(axis=1) / np.maximum(tables.sum(axis=1), 1)).mean()), 0.0)

    @cached_property
    def nearness(self) -> Floats:
        """The cosines of some examples and the nearest others that are not the same in other words, ascending; those
        that are alike are all one."""
        chosen = np.unique(np.linspace(0, len(self.asked) - 1, min(_OTHERS, len(self.asked))).astype(np.intp))
        near = self.vectors[chosen] @ self.vectors.T
        return np.sort(np.minimum(np.where(near < _SAME, near, -1.0).max(axis=1, initial=-1.0), _LIKE))

    def of_its_kind(self, vector: Floats | None) -> float:
        """How far a question is of the kind of those that were learned, in [0, 1]; 1 where these do not tell."""
        if vector is None or len(self.asked) < _KINDS:
            return 1.0
        below = np.searchsorted(self.nearness, (self.vectors @ vector).max(), side="right") / len(self.nearness)
        return 1 - (1 - min(float(below) / _UNLIKE, 1.0)) * len(self.asked) / len(self.times)

    def without(self, statements: Iterable[int]) -> Known:
        """Without some of the statements; how far questions are trusted stays, and how like each other they are."""
        kept = np.setdiff1d(np.arange(len(self.times)), np.array(sorted(statements), dtype=np.intp))
        number = np.full(len(self.times), -1)
        number[kept] = np.arange(len(kept))
        members = self.members[number[self.members[:, 0]] >= 0]
        asks = number[self.asked] >= 0
        found = Known(
            np.stack([number[members[:, 0]], members[:, 1]], axis=1),
            self.count, self.times[kept], number[self.asked[asks]], self.vectors[asks],
        )  # fmt: skip
        found.__dict__.update(trust=self.trust, nearness=self.nearness)
        return found

    def signals(self, vector: Floats | None, prior: Floats, weights: Floats) -> Floats:
        """What is known of each table for one question: shape (n, len(SIGNALS)).

        Args:
            vector: of the question; None without an embedder.
            prior: shape (n,), the first stage's score, of which the best is 0.
            weights: shape (len(SIGNALS),), by which it is said which tables are likely before it is asked what is read
                with them.
        """
        found = np.zeros((self.count, len(SIGNALS)))
        found[:, 0] = prior
        found[:, 1] = np.log1p(2 * self.usage)
        if vector is not None and len(self.asked) and self.trust:
            cosine = self.vectors @ vector
            share, nearest = np.zeros((2, len(self.times)))
            share[self.asked] = _weights(cosine[None])[0]
            nearest[self.asked] = np.maximum(cosine, 0.0)
            statement, table = self.members.T
            found[:, 2] = self.trust * np.bincount(table, share[statement], minlength=self.count)
            np.maximum.at(found[:, 3], table, self.trust * nearest[statement])
        scores = found @ weights
        odds = np.exp(scores - scores.max(initial=-np.inf))
        each = np.minimum(_LIKELY * odds / max(float(odds.sum()), 1e-300), 1.0) / (self.usage + 1)
        found[:, 4] = self.by_table(self.by_statement(each)) - self.usage * each
        return found

    def examples(self, vector: Floats | None, shares: Sequence[float] = (1.0, 1.0)) -> Examples:
        """The nearest examples of a question, with what each counts, and what all of them do (:meth:`shares`)."""
        if vector is None or not len(self.asked):
            return Examples(np.zeros((0, self.count), dtype=bool), np.zeros(0), np.zeros(0), *shares)
        cosine = self.vectors @ vector
        best = np.argsort(-cosine, kind="stable")[:_NEAREST]
        chosen = self.asked[best]
        weight = self.trust * _weights(cosine[None, best])[0]
        like = self.trust * (shares[0] * max(float(cosine[best[0]]), 0.0)) ** _STEEP
        return Examples(self.read(chosen), self.sizes[chosen], weight, shares[0], shares[1], like)


def _weights(cosine: Floats) -> Floats:
    """What each example counts, row by row: together 1."""
    odds = np.exp((cosine - cosine.max(axis=1, keepdims=True)) / _NEAR)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


_made: weakref.WeakKeyDictionary[RetrievalIndex, tuple[tuple[Statement, ...], Known]] = weakref.WeakKeyDictionary()


def known_of(index: RetrievalIndex, statements: Sequence[Statement], vectors: VectorStore) -> Known | None:
    """What statements say of the tables of an index; None where they say nothing of them.

    Args:
        index: of the corpus.
        statements: that were learned.
        vectors: where the vectors of questions are kept.
    """
    given = tuple(statements)
    held = _made.get(index)
    if held is None or held[0] != given:
        held = _made[index] = given, _known(index, given, vectors)
    return held[1] if len(held[1].members) else None


def _known(index: RetrievalIndex, statements: Sequence[Statement], vectors: VectorStore) -> Known:
    position = {id: number for number, one in enumerate(index.families) for id in one.parts or (one.table.id,)}
    members = [
        (row, table)
        for row, one in enumerate(statements)
        for table in sorted({position[id] for id in one.tables if id in position})
    ]
    asked = [row for row, one in enumerate(statements) if one.question] if index.embedder is not None else []
    encoded = np.zeros((0, 0))
    if asked and index.embedder is not None:
        known, rows = vectors.encode(index.embedder, [statements[row].question for row in asked])
        encoded = known[rows].astype(np.float64)
    return Known(
        np.array(members, dtype=np.intp).reshape(-1, 2),
        len(index.tables),
        np.array([1 + np.log(max(one.times, 1)) for one in statements]),
        np.array(asked, dtype=np.intp),
        encoded,
    )


def told(index: RetrievalIndex, statements: Sequence[Statement], question: Question) -> Floats | None:
    """The log-odds of each table where a person has said which tables this very question needs; None where not.

    Args:
        index: of the corpus.
        statements: that were learned; of two that a person said of it the later one counts.
        question: as asked.
    """
    asked = spoken(question.text)
    said = [one for one in statements if one.by == "user" and one.question and spoken(one.question) == asked]
    if not said:
        return None
    tables = {*said[-1].tables}
    is_in = [bool(tables & {*(one.parts or (one.table.id,))}) for one in index.families]
    return np.where(is_in, CERTAIN, -CERTAIN)


def set_signals(utilities: Floats, own: Floats, examples: Examples, members: Floats) -> Floats:
    """What is known of each set: shape (sets, len(SETS)).

    Args:
        utilities: shape (sets,), the second stage's score.
        own: shape (p,), what is learned of each of the tables that sets are made of.
        examples: over these tables.
        members: shape (sets, p): 1 where a set has a table.
    """
    size = members.sum(axis=1)
    alike = same = np.zeros(len(members))
    if len(examples.weight):
        both = members @ examples.tables.T
        alike = both / (size[:, None] + examples.size - both)
        same = (alike == 1.0) @ examples.weight
        alike = alike @ examples.weight
    return np.stack([utilities, members @ own, size * examples.of_size, alike, same], axis=1)


__all__ = ["CERTAIN", "FEW", "SETS", "SIGNALS", "TOLD", "Examples", "Known", "known_of", "set_signals", "told"]
