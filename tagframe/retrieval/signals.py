"""The evidence for each table and one question: the signals of the default method, and the rows that its sets cover."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.keys.column_names import CALENDAR
from tagframe.retrieval.calibration import calibrated, scaled
from tagframe.retrieval.cell_values import ValueHit, cell_name_rows, cell_term_rows, rarity_of
from tagframe.retrieval.denied import named_by, own_words, spelt_forms
from tagframe.retrieval.joinability import overlap
from tagframe.retrieval.learned import Known
from tagframe.retrieval.mentioned_names import mentioned_names, places_of
from tagframe.retrieval.problem import FEW_TABLES, Floats, RowKind, best_first
from tagframe.retrieval.question import USUAL_NAMES, Question
from tagframe.retrieval.words import forms, stem, terms

if TYPE_CHECKING:
    from tagframe.retrieval.checked_plan import ModelPlan
    from tagframe.retrieval.index import RetrievalIndex

SIGNALS = tuple(
    """dense lexical column words attributes name name_share column_name attribute_name value plain_value only_value
    only_here neighbour neighbour_alone database database_top3 description database_lexical database_words
    database_attributes database_named named words_apart dense_apart lexical_apart width database_width
    database_apart called""".split()
)
"""The signals of a table, in the order of ``SelectionProblem.signals``.

====================  ================================================================================================
dense                 cosine of question and table
lexical               BM25, divided by that of the best table
column                cosine of the question and the best column
words                 mean over the question's words of the cosine with the best column
attributes            the same over columns that are not keys
name, name_share      rarity of the words in the table's name that the question has, and their share of the name
column_name           the product of both for the best column
attribute_name        the same over columns that are not keys
value, plain_value    rarity of names found in cells, and of other words found there
only_value            names that are in no other table's cells and that no column or table name explains
only_here             the same within the table's database; shared by tables that hold a name in the same role
neighbour             link score × (dense + lexical) of the best other table
neighbour_alone       the same in a corpus of one database, where no other signal shows which tables belong together
database              dense + lexical of the best table of the database
database_top3         the sum of the three best
description           BM25 of the descriptions only, divided by that of the best table
database_lexical      BM25 of the distinct words of the whole database, divided by that of the best database
database_words        as words, for the best column of the whole database; database_attributes likewise
named                 rarity of the question's words in the names, divided by that in all names of the corpus
database_named        the same for the whole database
words_apart           mean over the question's words of how far the cosine stands out from that of the other tables
dense_apart           how far ``dense`` stands out, in standard deviations over the corpus; lexical_apart likewise
width                 log of the number of columns: one of many columns is near to any word; database_width likewise
database_apart        how far database_words stands out among databases of its width; a word counts most if it is near
                      to one database only
called                how many of the question's words call this table and no other; 0 in a large corpus
====================  ================================================================================================

Shares, ranks and standard deviations mean the same in a corpus of ten tables as in one of ten thousand.
"""

_STANDING_OUT = ("dense_apart", "lexical_apart", "words_apart", "named", "database_named")

FACTS = (
    "log_tables",
    "dense",
    "words",
    "least_word",
    "known",
    "length",
    *_STANDING_OUT,
    "cell_names",
    "unseen",
    "bare",
)
"""Properties of a question as a whole, by name: the log of the number of tables; the best table's ``dense``; for the
database with the best ``database_words``, that value, the cosine of the word that it covers least, and the share of the
question's words in its names or cells; the number of the question's words; the best table's values of the signals for
how far it stands out; the total rarity of the question's names in cells; the share of tables without a known row; and
the same if all tables are in one large database."""

_MIN_LARGE_DATABASE = 15  # tables: more than the pool from which sets are made

_LIKELIEST_TABLES = 10
_PHRASE_FACTOR = 1.5
"""Factor for the rarity of a value of several words."""

_PLACES = frozenset("first second third last record row listed shown named called given".split())
"""Words for a place in an order, for any row, or for what a request does: a name that has one is seldom meant."""
_UNSPOKEN = CALENDAR | _PLACES

_MEASURE_FACTOR = 2.0
"""Factor for the cosine of a measure such as revenue, whose name columns seldom have: half as near is near enough."""

_WIDTH_PENALTY = 1.0
"""Regularisation of the effect of width, if there are few databases, or if all have one width."""

_APART = (-4.0, 8.0)
"""Values are clipped at so many standard deviations."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence for every table of the corpus and one question.

    Attributes:
        signals: shape (n, len(SIGNALS)).
        rows: shape (q, n), what a set has to cover.
        kind: shape (q,), the :class:`~tagframe.retrieval.problem.RowKind` of each row.
        weight: shape (q,), of each row.
        label: the word or sub-query behind each row.
        values: values of the question that were found in cells.
        facts: by the names of :data:`FACTS`.
        opinion: shape (n,), the log-odds that a model's plan (:mod:`tagframe.retrieval.model_plan`) or a person adds;
            None without either.
        note: what the plan says to the user.
        plan: of the model.
        known: what was learned from statements; None if nothing was.
        vector: of the question, if it is needed.
    """

    signals: Floats
    rows: Floats
    kind: npt.NDArray[np.int64]
    weight: Floats
    label: tuple[str, ...]
    values: tuple[ValueHit, ...]
    facts: Mapping[str, float] = field(default_factory=dict)
    opinion: Floats | None = None
    note: str = ""
    plan: ModelPlan | None = None
    known: Known | None = None
    vector: Floats | None = None


def gather(index: RetrievalIndex, question: Question) -> Evidence:
    """The evidence for every table; sets also have to cover sub-queries that add to the question's words.

    Args:
        index: of the corpus.
        question: as asked.
    """
    count = len(index.tables)
    relevance = calibrated(index.relevance(question), index.embedder)
    stems = question.stems
    dense, words, attributes = relevance.table, relevance.words, relevance.attributes
    words_known = {word: index.vocabulary.forms(word, is_foreign=question.is_foreign) for word in stems}
    words_known |= {word: (word,) for word in question.initials if index.vocabulary.calls_a_table(word)}
    spelt = [
        form for word in (*question.terms, *(words_known.keys() - {*stems})) for form in words_known[word] or (word,)
    ]
    lexical = _over_best(index.lexical.scores(spelt))
    together = dense + lexical
    name, name_share = index.vocabulary.names.matched(words_known.values())
    matched, share = index.vocabulary.columns.matched(words_known.values())
    hits = index.values.hits(question)
    neighbour = _neighbour(index, together)
    named_rows, named_labels = _named_rows(index, words_known)
    name_rows, only_here = cell_name_rows(index, hits, dict(zip(named_labels, named_rows, strict=True)))
    named_most = max(float(named_rows.max(axis=1).sum()) if len(named_rows) else 0.0, 1e-9)
    database_words = index.by_database(words)
    widths = index.widths
    database_width = np.log(np.maximum(np.bincount(index.database, widths), 1.0))[index.database]
    signals = {
        "dense": dense,
        "lexical": lexical,
        "column": relevance.column,
        "words": _mean(words),
        "attributes": _mean(attributes),
        "name": name,
        "name_share": name_share,
        "column_name": index.by_table(matched * share),
        "attribute_name": index.by_table(np.where(index.is_key, 0.0, matched * share)),
        **_of_values(index, hits),
        "only_here": only_here,
        "neighbour": neighbour,
        "neighbour_alone": neighbour * index.one_database,
        "database": index.by_database(together),
        "database_top3": _top3(index, together),
        "description": _over_best(index.descriptions.scores(spelt)),
        "database_lexical": _over_best(index.database_words.scores(spelt))[index.database],
        "database_words": _mean(database_words),
        "database_attributes": _mean(index.by_database(attributes)),
        "database_named": index.by_database(named_rows).sum(axis=0) / named_most,
        "named": named_rows.sum(axis=0) / named_most,
        "words_apart": _mean(np.clip(_apart(words, least=1e-3), -2.0, 6.0)),
        "dense_apart": np.clip(_apart(dense), *_APART),
        "lexical_apart": np.clip(_apart(lexical), *_APART),
        "width": np.log(np.maximum(widths, 1.0)),
        "database_width": database_width,
        "database_apart": _beyond_width(index, database_words, database_width),
        "called": _called(index, question),
    }
    value_rows = np.zeros((len(hits), count))
    for row, hit in zip(value_rows, hits, strict=True):
        row[list(hit.tables)] = hit.rarity * (1.0 if hit.is_name else 0.5)
    blocks = [
        (RowKind.WORD, words, relevance.labels),
        (RowKind.ATTRIBUTE, attributes, relevance.labels),
        (RowKind.NAME, named_rows, named_labels),
        (RowKind.VALUE, value_rows, [hit.text for hit in hits]),
        (RowKind.CELL, name_rows, [hit.text for hit in hits if hit.is_name]),
    ]
    # Rows of words are means over words; rows of names are shares of the total over all names of the corpus.
    each = float(max(len(words), 1))
    scale = {RowKind.WORD: each, RowKind.ATTRIBUTE: each, RowKind.NAME: named_most}
    evidence = Evidence(
        np.stack([signals[name] for name in SIGNALS], axis=1),
        np.concatenate([rows for _, rows, _ in blocks]).reshape(-1, count),
        np.repeat([int(kind) for kind, _, _ in blocks], [len(rows) for _, rows, _ in blocks]),
        np.repeat([1 / scale.get(kind, 1.0) for kind, _, _ in blocks], [len(rows) for _, rows, _ in blocks]),
        tuple(label for _, _, labels in blocks for label in labels),
        tuple(hits),
    )
    return replace(evidence, facts=facts_of(index, question, evidence))


def facts_of(
    index: RetrievalIndex, question: Question, evidence: Evidence, among: npt.NDArray[np.bool_] | None = None
) -> dict[str, float]:
    """The properties of a question as a whole, by the names of :data:`FACTS`.

    Args:
        index: of the corpus.
        question: as asked.
        evidence: for the question.
        among: shape (n,), a mask: compute them as if only these tables existed; None for all tables.
    """
    there = np.ones(len(index.tables), dtype=bool) if among is None else among
    rows = np.where(there, evidence.rows, 0.0)
    dense = np.where(there, evidence.signals[:, SIGNALS.index("dense")], 0.0)
    words = index.by_database(rows[evidence.kind == RowKind.WORD])
    best = int(_mean(words).argmax()) if len(words) else 0
    covered = words[:, best] if len(words) else np.zeros(1)
    exact = rows[np.isin(evidence.kind, (RowKind.NAME, RowKind.VALUE))][:, index.database == index.database[best]]
    known = int((exact > 0).any(axis=1).sum()) / max(len(question.stems) - len(question.joined), 1)
    unseen = 1 - index.has_rows[there].mean() if there.any() else 0.0
    apart = (evidence.signals[there, SIGNALS.index(name)].max(initial=0.0) for name in _STANDING_OUT)
    values = (
        math.log1p(int(there.sum())),
        dense.max(),
        covered.mean(),
        covered.min(),
        min(known, 1.0),
        len(words),
        *apart,
        sum(_rarity(hit, there) for hit in evidence.values if hit.is_name),
        unseen,
        unseen if index.one_database and there.sum() >= _MIN_LARGE_DATABASE else 0.0,
    )
    return dict(zip(FACTS, map(float, values), strict=True))


def _rarity(hit: ValueHit, there: npt.NDArray[np.bool_]) -> float:
    """The rarity of a value among some tables; 0 if none of them holds it."""
    tables = int(there[list(hit.tables)].sum())
    return (_PHRASE_FACTOR if " " in hit.text else 1.0) * rarity_of(tables) if tables else 0.0


def rows_of(index: RetrievalIndex, question: Question, evidence: Evidence, tables: Sequence[int]) -> dict[str, Any]:
    """The rows that sets of some tables have to cover: ``fine``, ``kind`` and ``row_weight`` of a
    :class:`~tagframe.retrieval.problem.SelectionProblem`. Some kinds of rows are made for few tables only."""
    measured = scaled(index.measured(question, tables), index.embedder)
    for row, word in zip(measured, question.measures, strict=False):  # none without an embedder
        if word.lower() in USUAL_NAMES:
            np.minimum(_MEASURE_FACTOR * row, 1.0, out=row)
    spoken = [
        kind == RowKind.NAME and _UNSPOKEN.isdisjoint((label, *forms(label))) and not label.isdecimal()
        for kind, label in zip(evidence.kind.tolist(), evidence.label, strict=True)
    ]
    # A number is more often a bound than a cell: "a cost of less than 0.5".
    # A word of a table's name means its rows, though a label of another table is that word, too.
    own = own_words([index.tables[table].id for table in tables])
    words = [
        hit
        for hit in evidence.values
        if not any(map(str.isdecimal, hit.text))
        and not index.vocabulary.names.matched(map(index.vocabulary.forms, terms(hit.text)))[0].any()
        and not (" " not in hit.text and named_by(spelt_forms(hit.text), own))
    ]
    more = {
        RowKind.TERM: cell_term_rows(index, evidence.values, tables),
        RowKind.MEASURE: measured,
        RowKind.MENTIONED: mentioned_names(index, question, tables, evidence.values),
        RowKind.SPOKEN: np.concatenate(
            [
                evidence.rows[spoken][:, list(tables)],
                cell_term_rows(index, words, tables),
            ]
        ),
    }
    return {
        "fine": np.concatenate([evidence.rows[:, list(tables)], *more.values()]),
        "kind": np.concatenate([evidence.kind, *(np.full(len(rows), int(kind)) for kind, rows in more.items())]),
        "row_weight": np.concatenate([evidence.weight, *(np.ones(len(rows)) for rows in more.values())]),
    }


def _of_values(index: RetrievalIndex, hits: Sequence[ValueHit]) -> dict[str, Floats]:
    """The signals of values found in cells."""
    signals = {name: np.zeros(len(index.tables)) for name in ("value", "plain_value", "only_value")}
    for hit in hits:
        tables = list(hit.tables)
        signals["value" if hit.is_name else "plain_value"][tables] += hit.rarity * (
            _PHRASE_FACTOR if " " in hit.text else 1
        )
        if hit.is_name and len(tables) == 1 and not index.vocabulary.explains(hit.text):
            signals["only_value"][tables] += 1.0
    return signals


def _mean(rows: Floats) -> Floats:
    """The mean over words; zeros if there are none."""
    return rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])


def _over_best(scores: Floats) -> Floats:
    return scores / max(float(scores.max(initial=0.0)), 1e-9)


def _apart(values: Floats, least: float = 1e-6) -> Floats:
    """How many standard deviations over all tables each value is above the mean, row by row."""
    if not values.size:
        return values
    spread = values.std(axis=-1, keepdims=True) + least
    return np.asarray((values - values.mean(axis=-1, keepdims=True)) / spread)


def _beyond_width(index: RetrievalIndex, database_words: Floats, database_width: Floats) -> Floats:
    """How much better each table's database covers the words than databases of its width do: shape (n,).

    The nearest of many columns is nearer than the nearest of few, whatever the question. So the value that a database's
    width predicts (least squares over the databases of the corpus, word by word) is subtracted. The weight of a word is
    the square of the best database's remainder.
    """
    _, first = np.unique(index.database, return_index=True)
    if not len(database_words) or len(first) < 2:
        return np.zeros(len(index.tables))
    best, width = database_words[:, first], database_width[first]
    wider = width - width.mean()
    slope = best @ wider / (wider @ wider + _WIDTH_PENALTY)
    beyond = best - best.mean(axis=1, keepdims=True) - slope[:, None] * wider
    lead = beyond.max(axis=1) ** 2
    return np.asarray((lead / max(float(lead.sum()), 1e-9)) @ beyond)[index.database]


def _named_rows(index: RetrievalIndex, known: Mapping[str, Sequence[str]]) -> tuple[Floats, list[str]]:
    """For each word in names: its rarity × its share of the best name of each table that has it."""
    rows, labels = [], []
    for word, spelt in known.items():
        if spelt:
            _, of_name = index.vocabulary.names.matched([spelt])
            _, of_column = index.vocabulary.columns.matched([spelt])
            rarity = min(index.vocabulary.rarity[form] for form in spelt)
            rows.append(np.maximum(of_name, index.by_table(of_column)) * rarity)
            labels.append(word)
    return np.array(rows).reshape(len(rows), len(index.tables)), labels


def _called(index: RetrievalIndex, question: Question) -> Floats:
    """How many words of the question call each table and no other; those of a whole name call its table ("the
    constructor results"), and so does a column that is written as in the table ("penalty minutes (PIM)")."""
    called = np.zeros(len(index.tables))
    if len(called) > FEW_TABLES:
        return called
    position = {table.id: number for number, table in enumerate(index.tables)}
    own = own_words(position)
    spoken = [stem(word.text.casefold()) for word in question.content]
    names = ((name, table) for table in range(len(called)) for name in index.names_of(table).of_table)
    whole = [(len(name), at, table) for name, table in names if len(name) > 1 for at in places_of(spoken, name)]
    alone = {at: [table] for _, at, table in sorted(whole)}
    tables = [
        alone.get(at) or [position[table] for table in named_by(spelt_forms(word.text), own)]
        for at, word in enumerate(question.content)
    ]
    columns = [{column.name for column in table.columns} for table in index.tables]
    written = {word for word in re.findall(r"\w+", question.text) if word[1:] != word[1:].lower() or "_" in word}
    tables += [[table for table, names in enumerate(columns) if word in names] for word in sorted(written)]
    np.add.at(called, [one[0] for one in tables if len(one) == 1], 1.0)
    return called


def _top3(index: RetrievalIndex, together: Floats) -> Floats:
    """The sum of the three best relevances in each table's database."""
    rank = pd.Series(together).groupby(index.database).rank(method="first", ascending=False)
    return np.bincount(index.database, np.where(rank <= 3, together, 0.0)).astype(np.float64)[index.database]


def _neighbour(index: RetrievalIndex, together: Floats) -> Floats:
    """The relevance that tables get from the most relevant tables to which they are linked."""
    relevance = np.zeros(len(together))
    for table in best_first(together)[:_LIKELIEST_TABLES].tolist():
        for other, score in index.links.of(table):
            relevance[other] = max(relevance[other], score * together[table])
    return relevance


def near_duplicates(index: RetrievalIndex, tables: Sequence[int]) -> Floats:
    """How similar the tables' sets of column names are (Jaccard): shape (n, n), symmetric, zero diagonal."""
    names = [frozenset(column.name.casefold() for column in index.tables[table].columns) for table in tables]
    alike = overlap(names, names)
    np.fill_diagonal(alike, 0.0)
    return alike
