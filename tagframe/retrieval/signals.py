"""What speaks for a table, for one question: the signals of the default method, and the rows that its sets cover."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.keys.names import singular
from tagframe.retrieval.problem import Floats, RowKind, best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.values import ValueHit
from tagframe.retrieval.words import terms

if TYPE_CHECKING:
    from tagframe.retrieval.index import RetrievalIndex

SIGNALS = (
    "dense",
    "lexical",
    "column",
    "words",
    "attributes",
    "name",
    "name_share",
    "column_name",
    "attribute_name",
    "value",
    "plain_value",
    "neighbour",
    "database",
    "database_top3",
)
"""The signals of a table, in the order of ``SelectionProblem.signals``.

====================  ================================================================================================
dense                 cosine of question and table
lexical               BM25, over that of the best table
column                cosine of the question and the best column
words                 mean over the question's words of the cosine with the best column
attributes            the same over columns that are no keys
name, name_share      rarity of the words of the table's name that the question has, and their share of the name
column_name           the product of both for the best column
attribute_name        the same over columns that are no keys
value, plain_value    rarity of names found in cells, and of other words found there
neighbour             link score × (dense + lexical) of the best other table
database              dense + lexical of the best table of the database
database_top3         the sum of the three best
====================  ================================================================================================
"""

_NEIGHBOURS_OF = 10
_MULTIWORD = 1.5
"""What the rarity of a value of several words counts more."""


class Vocabulary:
    """The words of table and column names, each with its rarity in (0, 1]: 1 where one table of all has it.

    Where a user says what a name means, the words of that stand for the name too.
    """

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        names = [_Name(table.name, table.description) for table in tables]
        columns = [_Name(column.name, column.description) for table in tables for column in table.columns]
        owner = [position for position, table in enumerate(tables) for _ in table.columns]
        having: dict[str, set[int]] = defaultdict(set)
        for position, name in [*enumerate(names), *zip(owner, columns, strict=True)]:
            for word in name.stems | name.said:
                having[word].add(position)
        most = math.log1p(max(len(tables), 1))
        self.rarity = {word: math.log1p(len(tables) / len(found)) / most for word, found in having.items()}
        self.names = _Postings(names, self.rarity)
        self.columns = _Postings(columns, self.rarity)


class _Name:
    """The stems of a name, and those of what its user says of it."""

    def __init__(self, name: str, description: str) -> None:
        self.stems = frozenset(singular(word) for word in identifier_words(name))
        self.said = frozenset(terms(description)) if description else frozenset()


class _Postings:
    """Where words stand in names."""

    def __init__(self, named: Sequence[_Name], rarity: dict[str, float]) -> None:
        self._rarity = rarity
        places: dict[str, list[int]] = defaultdict(list)
        for position, name in enumerate(named):
            for word in name.stems | name.said:
                places[word].append(position)
        self._places = {word: np.array(found, dtype=np.intp) for word, found in places.items()}
        self._total = np.maximum([sum(sorted(rarity[word] for word in name.stems)) for name in named], 1e-9)

    def matched(self, words: Sequence[str]) -> tuple[Floats, Floats]:
        """Of each name the rarity of the words that it has, and their share of the name's rarity, at most 1."""
        found = np.zeros(len(self._total))
        for word in words:
            if word in self._places:
                found[self._places[word]] += self._rarity[word]
        return found, np.minimum(found / self._total, 1.0)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of every table of the corpus for one question.

    Attributes:
        signals: shape (n, len(SIGNALS)).
        rows: shape (q, n), what a set has to cover.
        kind: shape (q,), the :class:`~tagframe.retrieval.problem.RowKind` of each row.
        weight: shape (q,), of each row.
        label: what each row stands for.
        values: found in cells.
    """

    signals: Floats
    rows: Floats
    kind: npt.NDArray[np.int64]
    weight: Floats
    label: tuple[str, ...]
    values: tuple[ValueHit, ...]


def gather(index: RetrievalIndex, question: Question) -> Evidence:
    """The evidence for every table of the corpus; sub-queries that say more are covered like the question's words."""
    count = len(index.tables)
    relevance = index.relevance(question)
    stems = question.stems
    lexical = index.lexical.scores(question.terms)
    lexical = lexical / max(float(lexical.max(initial=0.0)), 1e-9)
    together = relevance.table + lexical
    name, name_share = index.vocabulary.names.matched(stems)
    matched, share = index.vocabulary.columns.matched(stems)
    hits = index.values.hits(question)
    value, plain_value = np.zeros(count), np.zeros(count)
    for hit in hits:
        (value if hit.is_name else plain_value)[list(hit.tables)] += hit.rarity * (_MULTIWORD if " " in hit.text else 1)
    best, top3 = _by_database(index, together)
    signals = np.stack(
        [
            relevance.table,
            lexical,
            relevance.column,
            relevance.words.mean(axis=0) if len(relevance.words) else np.zeros(count),
            relevance.attributes.mean(axis=0) if len(relevance.attributes) else np.zeros(count),
            name,
            name_share,
            index.by_table(matched * share),
            index.by_table(np.where(index.is_key, 0.0, matched * share)),
            value,
            plain_value,
            _neighbour(index, together),
            best,
            top3,
        ],
        axis=1,
    )
    named_rows, named_labels = _named_rows(index, stems)
    value_rows = np.zeros((len(hits), count))
    for row, hit in zip(value_rows, hits, strict=True):
        row[list(hit.tables)] = hit.rarity * (1.0 if hit.is_name else 0.5)
    blocks = [
        (RowKind.WORD, relevance.words, relevance.labels),
        (RowKind.ATTRIBUTE, relevance.attributes, relevance.labels),
        (RowKind.NAME, named_rows, named_labels),
        (RowKind.VALUE, value_rows, [hit.text for hit in hits]),
    ]
    # A word's rows are means over words, a name's are shares of all that the corpus' names have of the question.
    named_most = max(float(named_rows.max(axis=1).sum()) if len(named_rows) else 0.0, 1e-9)
    words = float(max(len(relevance.words), 1))
    scale = {RowKind.WORD: words, RowKind.ATTRIBUTE: words, RowKind.NAME: named_most, RowKind.VALUE: 1.0}
    return Evidence(
        signals,
        np.concatenate([rows for _, rows, _ in blocks]).reshape(-1, count),
        np.repeat([int(kind) for kind, _, _ in blocks], [len(rows) for _, rows, _ in blocks]),
        np.repeat([1 / scale[kind] for kind, _, _ in blocks], [len(rows) for _, rows, _ in blocks]),
        tuple(label for _, _, labels in blocks for label in labels),
        tuple(hits),
    )


def _named_rows(index: RetrievalIndex, stems: Sequence[str]) -> tuple[Floats, list[str]]:
    """For each word that names have: its rarity × its share of the best name of each table with it."""
    rows, labels = [], []
    for word in stems:
        if word in index.vocabulary.rarity:
            _, of_name = index.vocabulary.names.matched([word])
            _, of_column = index.vocabulary.columns.matched([word])
            rows.append(np.maximum(of_name, index.by_table(of_column)) * index.vocabulary.rarity[word])
            labels.append(word)
    return np.array(rows).reshape(len(rows), len(index.tables)), labels


def _by_database(index: RetrievalIndex, together: Floats) -> tuple[Floats, Floats]:
    """The best relevance in each table's database, and the sum of the three best."""
    order = np.lexsort((-together, index.database))
    ordered = index.database[order]
    first = np.searchsorted(ordered, np.arange(index.database.max(initial=-1) + 1))
    rank = np.arange(len(order)) - first[ordered]
    top3 = np.zeros(len(first))
    np.add.at(top3, ordered, np.where(rank < 3, together[order], 0.0))
    return together[order][first][index.database], top3[index.database]


def _neighbour(index: RetrievalIndex, together: Floats) -> Floats:
    """What the most relevant tables lend to those that they are linked to."""
    found = np.zeros(len(together))
    for table in best_first(together)[:_NEIGHBOURS_OF].tolist():
        for other, score in index.links.of(table):
            found[other] = max(found[other], score * together[table])
    return found


def near_duplicates(index: RetrievalIndex, tables: Sequence[int]) -> Floats:
    """How alike the names of the tables' columns are (Jaccard): shape (n, n), symmetric, zero diagonal."""
    held = [frozenset(column.name.casefold() for column in index.tables[table].columns) for table in tables]
    alike = np.zeros((len(tables), len(tables)))
    for i, mine in enumerate(held):
        for j in range(i + 1, len(held)):
            union = len(mine | held[j])
            alike[i, j] = alike[j, i] = len(mine & held[j]) / union if union else 0.0
    return alike
