"""Words and numbers of a question for which nothing in a statement, nor in its corpus, stands."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Set

from sqlglot import exp

from tagframe.corpus import Corpus
from tagframe.corpus.documents import identifier_words
from tagframe.embed import Embedder, encoded, get_embedder
from tagframe.engines.sql_reader import ReadStatement, SourceColumn
from tagframe.retrieval.index import index_of
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import STOP_WORDS, Word, language_of, stem

_OPERATIONS: tuple[tuple[tuple[type[exp.Expr], ...], frozenset[str], str], ...] = (
    ((exp.Order, exp.Limit), frozenset({"max", "min"}), "largest smallest oldest best cheapest recent"),
    ((exp.Order,), frozenset(), "sorted reversed descending alphabetical lexicographic"),
    ((exp.Avg, exp.Sum), frozenset({"avg", "sum", "total", "median"}), "average mean total"),
    ((exp.WithinGroup,), frozenset({"quantile_cont", "percentile_cont"}), "median percentile"),
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
_NUMBER = re.compile(r"(?<![\w.:])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:])")
"""A number of a question; times are written in other ways in statements."""
_UNITS = 0.01, 1, 1_000, 1_000_000, 1_000_000_000
"""Times a number: as a percentage, or in thousands, millions or billions."""
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


def numbers_unmet(question: str, sql: str) -> list[str]:
    """The numbers of a question of which a statement has neither the same, nor the one below or above it; in names,
    only the same counts."""
    near = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", sql)}
    near |= {float(number) + step for number in re.findall(r"(?<!\w)\d+(?:\.\d+)?", sql) for step in (-1, 1)}
    numbers = {text: float(text.replace(",", "")) for text in _NUMBER.findall(question)}
    return [text for text, number in numbers.items() if near.isdisjoint(number * unit for unit in _UNITS)]


def words_unmet(question: str, statement: ReadStatement, corpus: Corpus) -> list[str]:
    """The words of a question that nothing in a statement nor in its corpus stands for."""
    read, written, embedder = Question.of(question), statement.tree.sql(), get_embedder()
    if embedder is None or (rooms := _rooms(statement, {*stems_in(question)}, corpus)) is None:
        return []
    index = index_of(corpus, embedder)
    if not read.is_foreign and language_of(index.vocabulary.rarity):
        return []  # names in another language than the question's have none of its words
    cells = [text for hit in index.values.hits(read) for text in (hit.text, *hit.cells)]
    texts = ("SQL", written, *cells, *{profile.database for profile in corpus.profiles})
    known = {*index.vocabulary.rarity} | {part for text in texts for part in stems_in(text)}
    unknown = [word for word in read.content if not is_known(stems_in(word.text), known)]
    unmet = set[Word]()
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


def stems_in(text: str) -> Iterator[str]:
    """The stems of a text's words, of identifiers whole and in parts."""
    for word in re.findall(r"[^\W_]+", re.sub("['’]s?\\b", "", text)):
        yield from (stem(part.casefold()) for part in dict.fromkeys([word, *identifier_words(word)]))


def is_known(parts: Iterator[str], known: Collection[str]) -> bool:
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
        (text, True): _NEAR for text in literals if words.isdisjoint(stems_in(text)) and any(map(str.isalpha, text))
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
    begins, parts = {word[:_PREFIX] for word in words if len(word) >= _PREFIX}, [*stems_in(column)]
    parts = [part for part in parts if len(part) > 1] or parts
    if any(part in words or part[:_PREFIX] in begins for part in parts):
        return True
    literals = node.parent.find_all(exp.Literal) if isinstance(node.parent, exp.EQ | exp.In | exp.Like) else ()
    return any(not words.isdisjoint(stems_in(one.this)) for one in literals)


def _is_label(node: exp.Column, source: SourceColumn, corpus: Corpus) -> bool:
    """Whether a column just names the rows that are listed: a key, or a text of which almost each row has its own."""
    table = corpus.profile(source.table)
    column = table.column(source.column)
    is_name = column.family == "text" and (column.distinct or 0) >= _NAMES * (column.rows or 1)
    is_item = isinstance(node.parent, exp.Select | exp.Distinct | exp.Group | exp.Alias)
    return is_item and (is_name or source.column in table.primary_key)
