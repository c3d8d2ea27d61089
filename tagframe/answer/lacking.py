"""Words of a question that no name, no cell and no part of a statement stands for: what the tables may lack.

"How many employees work remotely?" is not answered by the count of all employees. A statement has *room* for a word
that is written nowhere if a part of it is named by no word of the question, and is not far from its meaning:
``salary`` may be what "earns" means. If it has none, nothing stands for a word in the place of a condition or measure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence, Set

from sqlglot import exp

from tagframe.corpus import Corpus
from tagframe.corpus.documents import identifier_words
from tagframe.embed import encoded, get_embedder
from tagframe.engines.sql_reader import ReadStatement
from tagframe.retrieval.index import index_of
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import Word, stem, words_in

_BY = frozenset("by per with without".split())
_DO = frozenset("do does did".split())
_ARE = _DO | frozenset("a an are has have is the was were".split())
_INTERROGATIVE = frozenset("which what many much whose".split())
_PLAIN = frozenset(
    map(
        stem,
        """one two three four five six seven eight nine ten first second third last next alphabetic alphabetical
        alphabetically lexicographic lexicographical lexicographically reverse reversed decreasing
        increasing number amount size sum mean part half share frequency rank ranking rate rating result
        score level value range point unit pair name word kind case group category item thing anything
        something everything person people someone anyone everyone everybody world record data database
        table row column detail information note page code text label full whole entire same both unique
        common recent recently early late new old young big small large long short high low good bad best
        worst top popular available ever never now today currently together across ago time times date day
        month year contain containing list listed named use used make made take took taken come came go went
        get got give gave hold held own owned live lived living born locate located spend spent exist
        existing existed involve involved associate associated correspond corresponding participate
        participated receive received produce produced start starting end stand please yes except follow
        following am pm later earlier instead found further charge member""".split(),
    )
)
"""Words that ask for nothing that a table would have to hold."""
_NAMING = frozenset("id name title code forename surname fname lname".split())
_YEAR = re.compile(r"[12]\d{3}")
_ALIKE = 0.8
"""The least share of equal letters of a misspelled word."""
_PREFIX = 4
"""Words that begin with so many equal letters are forms of one."""
_SHORT = 3
"""A name of so few letters may be short for a word, and the other way round."""
_CODE = 2
"""Names of so few letters stand for anything."""
_LONG = 8
"""Of so many words of a longer question, one may be there without a meaning for the tables."""
_NEAR = 0.3
"""The least cosine of a word and a name that may mean the same."""


def words_unmet(question: str, statement: ReadStatement, corpus: Corpus) -> list[str]:
    """The words of a question that nothing in a statement nor in its corpus stands for; none in other languages."""
    read, written = Question.of(question), statement.tree.sql()
    if read.is_foreign or (rooms := _rooms(statement, {*_stems(question)})) is None:
        return []
    index = index_of(corpus, get_embedder())
    cells = [text for hit in index.values.hits(read) for text in (hit.text, *hit.cells)]
    texts = (written, *cells, *{profile.database for profile in corpus.profiles})
    known = {*index.vocabulary.rarity} | {part for text in texts for part in _stems(text)}
    words = words_in(question)
    unknown = {word.start for word in read.content if not _is_known(_stems(word.text), known)}
    is_grouped = statement.tree.find(exp.Group) is not None
    unmet = []
    for at, word in enumerate(words):
        (part, *_) = [*_stems(word.text), ""]
        if word.start not in unknown or part in _PLAIN or part.endswith("est"):
            continue
        if part.isalpha() and _is_condition(words, at, read, unknown, is_grouped) and not _fits(part, rooms):
            unmet.append(word.text)
        if _YEAR.fullmatch(word.text) and not _YEAR.search(written):
            unmet.append(word.text)
    return list(dict.fromkeys(unmet)) if len(unmet) * _LONG >= len(read.content) else []


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


def _is_condition(words: Sequence[Word], at: int, read: Question, unknown: Collection[int], is_grouped: bool) -> bool:
    """Whether a word stands where a condition or a measure does: the verb between two known things does not."""
    word, texts = words[at], [one.text.casefold() for one in words]
    first, last = at, at + 1
    while first and texts[first - 1] in _ARE:
        first -= 1
    while last < len(words) and (words[last].start in unknown or stem(texts[last]) in _PLAIN):
        last += 1
    before, after = texts[at - 1] if at else "", texts[last] if last < len(words) else ""
    is_head = first > 0 and texts[first - 1] in _INTERROGATIVE
    starts = not read.text[: word.start].rstrip() or read.text[: word.start].rstrip()[-1] in ".!?"
    is_name = not starts and word.text[0].isupper() and not word.text.isupper()
    has_verb = is_grouped or not _DO.isdisjoint(texts) or (texts[at].endswith("ed") and before not in _ARE)
    is_last = not has_verb and all(one.start in unknown for one in read.content if one.start > word.start)
    return is_name or before in _BY or after == "of" or is_head or is_last


def _fits(word: str, rooms: Sequence[str]) -> bool:
    """Whether a word may be another one for one of some names or values."""
    if not rooms or (embedder := get_embedder()) is None or any(len(one) <= _CODE for one in rooms):
        return bool(rooms)
    near = encoded(embedder, rooms, "passage") @ encoded(embedder, [word], "query")[0]
    return bool(near.max() >= _NEAR)


def _rooms(statement: ReadStatement, words: Set[str]) -> list[str] | None:
    """The columns and values of a statement that no word of the question names; None if it has parts for any word."""
    tree = statement.tree
    if len([*tree.find_all(exp.Select)]) > 1 or tree.find(exp.Null, exp.Div, exp.Sub, exp.Mul, exp.Add):
        return None
    literals = [one.this for one in tree.find_all(exp.Literal) if not isinstance(one.parent, exp.Limit | exp.Offset)]
    rooms = [text for text in literals if words.isdisjoint(_stems(text)) and any(map(str.isalpha, text))]
    joined = {one[:2] for pair in statement.joined_columns() for one in pair}
    for node, block in statement.columns:
        source = statement.source(node, block)
        if source is not None and source[:2] not in joined and not _is_named(node, source.column, words):
            rooms.append(" ".join(identifier_words(source.column)))
    return list(dict.fromkeys(rooms))


def _names(name: str, words: Set[str]) -> bool:
    """Whether one of the words is in a name, or begins like a part of it."""
    parts = {*_stems(name)}
    begins = {word[:_PREFIX] for word in words if len(word) >= _PREFIX}
    return any(part in words or part[:_PREFIX] in begins for part in parts - _NAMING or parts)


def _is_named(node: exp.Column, column: str, words: Set[str]) -> bool:
    """Whether words name a column or its value, or it just names rows."""
    if _names(column, words):
        return True
    if isinstance(node.parent, exp.EQ | exp.In | exp.Like):
        return any(not words.isdisjoint(_stems(one.this)) for one in node.parent.find_all(exp.Literal))
    is_item = isinstance(node.parent, exp.Select | exp.Distinct | exp.Group | exp.Alias)
    return is_item and not _NAMING.isdisjoint(_stems(column))
