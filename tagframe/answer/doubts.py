"""Doubts about an answer: other statements with other results, and facts; found without a model."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

import pandas as pd
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe.answer.alternatives import Doubt
from tagframe.answer.other_statements import alternatives
from tagframe.answer.other_statements.limits import with_order
from tagframe.answer.other_statements.repeats import repeated_rows
from tagframe.answer.other_statements.subject import Subject
from tagframe.answer.other_statements.values import values
from tagframe.answer.sql_tree import written
from tagframe.corpus import Corpus
from tagframe.corpus.documents import identifier_words
from tagframe.embed import Embedder, encoded, get_embedder
from tagframe.engines.sql_reader import ReadStatement, SourceColumn
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL
from tagframe.retrieval.index import index_of
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import STOP_WORDS, Word, stem, words_in


def doubts_of(rows: pd.DataFrame, question: str = "") -> tuple[Doubt, ...]:
    """The doubts about the result of a statement.

    No model is asked. Other statements are run and compared (:mod:`tagframe.answer.alternatives`).

    Args:
        rows: the result of :func:`tagframe.exec_sql`; for other frames there are no doubts.
        question: that the statement answers.
    """
    if (subject := Subject.of(rows, question)) is None:
        return ()
    facts: list[Doubt] = []
    with suppress(CorpusError, UnsafeSQL):  # a source that is gone meanwhile costs no answer
        facts += subject.comparison.doubts(alternatives(subject))  # first, since their time is limited
        facts = [*(Doubt("lacking", text) for text in _lacks(subject)), *facts]
    facts += [
        Doubt("unsure", f"{stage.unsure + stage.failed:,} of {stage.values:,} values of {stage.call} were not judged")
        for stage in subject.execution.stages
        if stage.unsure + stage.failed
    ]
    return tuple(facts)


def repeats_of(rows: pd.DataFrame) -> tuple[Doubt, ...]:
    """The doubts about rows that a join repeats and the statement adds up."""
    subject = Subject.of(rows)
    return () if subject is None else tuple(subject.comparison.doubts(repeated_rows(subject)))


def unmatched_of(rows: pd.DataFrame) -> list[str]:
    """The texts that a statement without rows compares with and no cell has, each with the nearest cell."""
    subject, found = Subject.of(rows), dict[str, str]()
    with suppress(CorpusError, SQLFailed, UnsafeSQL, SqlglotError):
        for one in () if subject is None else values(subject, optional=True):
            text = re.split("[;:] with", one.facts)[0]
            found.setdefault(text.partition("; the nearest")[0], text)
    return [text for text in found.values() if text.startswith("no cell")]


def with_measure(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their statement is ordered by, where that is a number and they have none."""
    if (subject := Subject.of(rows)) is None or not rows.select_dtypes("number").empty:
        return rows
    ordered = None if subject.select is None else with_order(subject.select)
    more = None if ordered is None else subject.comparison.run(subject.sql(ordered))
    return rows if more is None else more


def lacks_of(query: Any) -> Iterator[Doubt]:
    """What ``syn`` says that the tables lack."""
    for what in getattr(query, "lacking", ()):
        yield Doubt("lacking", f"the tables lack: {what}")


def _lacks(subject: Subject) -> Iterator[str]:
    """What the tables seem to lack: nothing stands for words of the question, or the statement makes the answer up."""
    statement = subject.statement
    if not statement.reads_tables:
        yield "the statement reads no table"
        return
    made = [item for item in statement.items if not item.find(exp.Column, exp.Star, exp.Query, exp.Anonymous)]
    if made and not isinstance(statement.tree.parent, exp.Subquery):
        yield f"the statement itself gives {', '.join(written(item.unalias()) for item in made)}, read from no column"
    if words_in(subject.question) and (unmet := words_unmet(subject.question, statement, subject.reader.corpus)):
        yield f"nothing in the tables or the statement stands for {' or '.join(map(repr, unmet))}"


def unread_values(values: Sequence[Any], rows: pd.DataFrame, question: str) -> Iterator[Doubt]:
    """The texts among a model's values that stand in no row of the result, nor in the question."""
    cells = [str(cell).casefold() for name in rows for cell in rows[name].dropna() if isinstance(cell, str)]
    for value in dict.fromkeys(one for one in values if isinstance(one, str) and one.strip()):
        word = value.strip().casefold()
        is_read = word in question.casefold() or any(word in cell or cell in word for cell in cells if cell)
        if cells and not is_read:
            yield Doubt("text", f"{value!r:.80} stands in no row of the result")


# --- what the tables lack ---------------------------------------------------------------------------------------------


_OPERATIONS: tuple[tuple[tuple[type[exp.Expr], ...], frozenset[str], str], ...] = (
    ((exp.Order, exp.Limit), frozenset({"max", "min"}), "largest smallest oldest best cheapest recent"),
    ((exp.Order,), frozenset(), "sorted reversed alphabetical lexicographic"),
    ((exp.Avg, exp.Sum), frozenset({"avg", "sum", "total", "median"}), "average mean total"),
    ((exp.Like, exp.ILike, exp.Glob), frozenset(), "contains text word"),
    ((exp.Distinct, exp.Group), frozenset({"count"}), "unique kinds types"),
    ((exp.Literal,), frozenset(), "one two three"),
    ((exp.Window,), frozenset(), "running cumulative previous"),
    ((exp.Star,), frozenset({"count"}), "numbers records times information details"),
    ((exp.Select,), frozenset(), "query database question determine interested"),
)
"""Parts of statements, or the functions that do the same, and words for what they do."""
_Room = tuple[str, bool]
"""What a word may stand for, and whether it is a value."""
_YEAR = re.compile(r"[12]\d{3}")
_ALIKE = 0.8
"""The least share of equal letters of a misspelled word."""
_PREFIX = 4
"""Words that begin with so many equal letters are forms of one."""
_SHORT = 3
"""A name of so few letters may be short for a word, and the other way round."""
_CODE = 2
"""Names of so few letters stand for anything."""
_NAMES = 0.9
"""A text names the rows of a table if at least this share of them have different ones."""
_MOVES, _MOVES_FOREIGN = 0.06, 0.15
"""The least distance (1 - cosine) of a question to itself without a word that asks for something; in other languages
than English, of which encoders and our function words know less, only words that matter more are doubts."""
_NEAR, _DOES = 0.3, 0.4
"""The least cosines of a word and a name that may mean the same, and of a word and one for what a statement does."""


def words_unmet(question: str, statement: ReadStatement, corpus: Corpus) -> list[str]:
    """The words of a question that nothing in a statement nor in its corpus stands for."""
    read, written, embedder = Question.of(question), statement.tree.sql(), get_embedder()
    if embedder is None or (rooms := _rooms(statement, {*_stems(question)}, corpus)) is None:
        return []
    index = index_of(corpus, embedder)
    cells = [text for hit in index.values.hits(read) for text in (hit.text, *hit.cells)]
    texts = ("SQL", written, *cells, *{profile.database for profile in corpus.profiles})
    known = {*index.vocabulary.rarity} | {part for text in texts for part in _stems(text)}
    unknown = [word for word in read.content if not _is_known(_stems(word.text), known)]
    unmet = {word for word in unknown if _YEAR.fullmatch(word.text) and not _YEAR.search(written)}
    unknown = [word for word in unknown if word.text.isalpha() and stem(word.text) not in STOP_WORDS]
    if unknown and not any(len(one) <= _CODE for (one, _), least in rooms.items() if least == _NEAR):
        rest = [read.text, *(read.text[: word.start] + read.text[word.end :] for word in unknown)]
        whole, *others = encoded(embedder, rest, "query")
        least = _MOVES_FOREIGN if read.is_foreign else _MOVES
        unknown = [word for word, other in zip(unknown, others, strict=True) if 1 - float(whole @ other) >= least]
        unmet |= {word for word in unknown if not _has_room(word, read, rooms, embedder)}
    return list(dict.fromkeys(word.text for word in read.content if word in unmet))


def _has_room(word: Word, read: Question, rooms: Mapping[_Room, float], embedder: Embedder) -> bool:
    """Whether a word may stand for one of the parts of a statement; a name stands for values only."""
    is_name = word.start > 0 and word.text[0].isupper() and not read.is_foreign
    may = {text: least for (text, is_value), least in rooms.items() if is_value or not is_name}
    if not may:
        return False
    near = encoded(embedder, [*may], "query") @ encoded(embedder, [stem(word.text)], "query")[0]
    return bool((near >= [*may.values()]).any())


def _stems(text: str) -> Iterator[str]:
    """The stems of a text's words, of identifiers whole and in parts."""
    for word in re.findall(r"[^\W_]+", re.sub("['’]s?\\b", "", text)):
        yield from (stem(part.casefold()) for part in dict.fromkeys([word, *identifier_words(word)]))


def _is_known(parts: Iterator[str], known: Collection[str]) -> bool:
    """Whether a word, another form of it, or nearly its letters are among words."""
    for part in parts:
        if part in known or (len(part) >= _PREFIX and any(part in one for one in known)):
            return True
        near = [one for one in known if one[:1] == part[:1]]
        begins = (one[:_PREFIX] == part[:_PREFIX] for one in near if len(part) >= _PREFIX)
        short = (part.startswith(one) or one.startswith(part) for one in near if min(len(part), len(one)) >= _SHORT)
        if any(begins) or any(short) or difflib.get_close_matches(part, near, 1, _ALIKE):
            return True
    return False


def _rooms(statement: ReadStatement, words: Set[str], corpus: Corpus) -> dict[_Room, float] | None:
    """What words may stand for a part of a statement that no word of the question names, each with the least cosine of
    such a word; None if it has parts for any word."""
    tree = statement.tree
    if len([*tree.find_all(exp.Select)]) > 1 or tree.find(exp.Null, exp.Div, exp.Sub, exp.Mul, exp.Add):
        return None
    called = {node.name.lower() for node in tree.find_all(exp.Anonymous)}
    does = (text for nodes, calls, text in _OPERATIONS if tree.find(*nodes) or called & calls)
    rooms = {(word, False): _DOES for text in does for word in text.split()}
    literals = [one.this for one in tree.find_all(exp.Literal) if not isinstance(one.parent, exp.Limit | exp.Offset)]
    rooms |= {
        (text, True): _NEAR for text in literals if words.isdisjoint(_stems(text)) and any(map(str.isalpha, text))
    }
    joined = {one[:2] for pair in statement.joined_columns() for one in pair}
    for node, block in statement.columns:
        source = statement.source(node, block)
        if source is not None and source[:2] not in joined and not _is_named(node, source.column, words):
            name = " ".join(identifier_words(source.column))
            rooms[name, False] = _DOES if _is_label(node, source, corpus) else _NEAR
    return rooms


def _is_named(node: exp.Column, column: str, words: Set[str]) -> bool:
    """Whether words name a column or the value that it is compared with. One letter of its name may be a unit."""
    begins, parts = {word[:_PREFIX] for word in words if len(word) >= _PREFIX}, [*_stems(column)]
    parts = [part for part in parts if len(part) > 1] or parts
    if any(part in words or part[:_PREFIX] in begins for part in parts):
        return True
    literals = node.parent.find_all(exp.Literal) if isinstance(node.parent, exp.EQ | exp.In | exp.Like) else ()
    return any(not words.isdisjoint(_stems(one.this)) for one in literals)


def _is_label(node: exp.Column, source: SourceColumn, corpus: Corpus) -> bool:
    """Whether a column just names the rows that are listed: a key, or a text of which almost each row has its own."""
    table = corpus.profile(source.table)
    column = table.column(source.column)
    is_name = column.family == "text" and (column.distinct or 0) >= _NAMES * (column.rows or 1)
    is_item = isinstance(node.parent, exp.Select | exp.Distinct | exp.Group | exp.Alias)
    return is_item and (is_name or source.column in table.primary_key)
