"""An answer's statement, and what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd
from sqlglot import exp

from tagframe import results
from tagframe.answer.alternatives import Comparison, Doubt
from tagframe.answer.guard import Reader
from tagframe.answer.sql_tree import written
from tagframe.corpus import TableProfile
from tagframe.corpus.documents import identifier_words
from tagframe.engines.sql_reader import ReadStatement
from tagframe.errors import UnsafeSQL
from tagframe.joins import keys_between
from tagframe.keys import KeyPair
from tagframe.keys.inference import ACCEPTED
from tagframe.retrieval.links import tables_around
from tagframe.retrieval.words import stem, words_in

if TYPE_CHECKING:
    from tagframe.answer.execution import Execution

Found: TypeAlias = Iterator[Doubt]
_DIRECTIONS = frozenset({"from", "to"})
_ENDS = _DIRECTIONS | frozenset({"src", "source", "origin", "dst", "dest", "destin", "destination", "depart", "arriv"})
"""Parts of the names of two columns of which one is where something begins and the other where it ends."""
KEY_WORDS = frozenset({"id", "no", "code", "key", "number", "nr"})
"""Parts of the names of columns that number rows, in each table its own."""
_PREFIX = 4
"""Words that begin with so many letters of a name may mean it."""


@dataclass(frozen=True)
class Subject:
    """An answer's statement, and what is known of it.

    Attributes:
        execution: of the statement.
        rows: its result.
        question: that it answers, or "".
        comparison: runs others.
        reader: that ran it.
    """

    execution: Execution
    rows: pd.DataFrame
    question: str
    comparison: Comparison
    reader: Reader

    @classmethod
    def of(cls, rows: pd.DataFrame, question: str = "") -> Subject | None:
        """What is known of the result of :func:`tagframe.exec_sql`; None for other frames."""
        execution = results.recall(rows, "execution")
        if execution is None or execution.reader is None:
            return None
        comparison = Comparison(rows, execution.reader, execution.seconds)
        return cls(execution, rows, question, comparison, execution.reader)

    def read(self, sql: str = "") -> ReadStatement:
        """The statement, or another one, read anew, so that its tree can be changed.

        Raises:
            UnsafeSQL: it cannot be read.
        """
        if (statement := self.reader.read(sql or self.execution.sql)) is None:
            raise UnsafeSQL(f"the SQL cannot be read: {sql or self.execution.sql!r:.200}")
        return statement

    @cached_property
    def statement(self) -> ReadStatement:
        """The statement; its tree is not changed."""
        return self.read()

    @cached_property
    def keys(self) -> Sequence[KeyPair]:
        """The keys between the tables that it reads, faint ones too."""
        ids, corpus = sorted(self.execution.tables), self.reader.corpus
        return keys_between(corpus, ids, tables_around(corpus, ids)).keys if len(ids) > 1 else ()

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Table id → name in SQL of the tables that it may read."""
        return {id: name for name, id in self.reader.tables.items()}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the question, without their endings."""
        return frozenset(stem(word.text) for word in words_in(self.question)) | {
            word.casefold() for word in self.question.split()
        }

    @cached_property
    def select(self) -> exp.Select | None:
        """The statement if it is one block over tables."""
        tree = self.statement.tree
        return tree if isinstance(tree, exp.Select) and tree.args.get("from_") is not None else None

    def sql(self, tree: exp.Expr) -> str:
        """A tree as SQL of the engine."""
        return written(tree, self.reader.engine.dialect.name)

    def profile(self, id: str) -> TableProfile:
        """A table of the corpus."""
        return self.reader.corpus.profile(id)

    def run(self, tree: exp.Expr, most: int | None = None) -> pd.DataFrame | None:
        """The rows of another statement; see :meth:`Comparison.run`."""
        return self.comparison.run(self.sql(tree), most)

    def keys_of(self, table: str, other: str) -> list[KeyPair]:
        """The probable keys between two tables."""
        ids, corpus = sorted([table, other]), self.reader.corpus
        keys = keys_between(corpus, ids, tables_around(corpus, ids)).keys
        return [key for key in keys if key.score >= ACCEPTED and key.tables == {table, other}]

    def names_table(self, table: str, others: Iterable[str] = ()) -> bool:
        """Whether a word of the question begins as a part of a table's name that other tables' names have not."""
        parts = {*stems(self.profile(table).name)}.difference(*(stems(self.profile(other).name) for other in others))
        begins = tuple(part[:_PREFIX] for part in parts if len(part) >= _PREFIX)  # "assayed" may mean assays
        return not parts.isdisjoint(self.words) or any(word.startswith(begins) for word in self.words)

    def referred(self, table: str, column: str) -> Iterator[str]:
        """The names of the tables that the question names and to which a column refers."""
        for id, name in self.names.items():
            parts = {*stems(self.profile(id).name)}
            keys = self.keys_of(table, id) if id != table and parts and parts <= self.words else []
            if any(key.columns_of(table) == (column,) for key in keys):
                yield name

    def names_one(self, tokens: Collection[str]) -> bool:
        """Whether the question has a word for a part in which two names differ, or a direction as they have."""
        if not _ENDS.isdisjoint(tokens) and not _DIRECTIONS.isdisjoint(self.words):
            return True
        return any(_may_stand_for(word, token) for token in tokens for word in self.words)


def _may_stand_for(word: str, token: str) -> bool:
    """Whether a part of a column's name may be a word, or short for it, as ``dst`` is for destination."""
    letters = iter(word)
    return word[:1] == token[:1] and all(letter in letters for letter in token)


def stems(name: str) -> list[str]:
    """The parts of a name, without their endings."""
    return [stem(word) for word in identifier_words(name)]
