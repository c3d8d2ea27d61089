"""The words of sentences and their stems. All of retrieval splits sentences in this way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tagframe.corpus.documents import identifier_words
from tagframe.keys.column_names import singular

_ACCENTS = frozenset(map(chr, range(0x300, 0x370)))
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

STOP_WORDS = frozenset(
    """a about above after again all also am among amongst an and any are as at be because been before being below
    between both but by can could did do does doing done down during each either else ever every few for from further
    get give given gives had has have having he her here hers him his how i if in into is it its just let list like me
    more most my no nor not of off on once only or other our out over own per please provide same she should show so
    some such tell than that the their them then there these they this those through to too under until up us very was
    we were what whats when where whether which while who whom whose why will with within without would you your find
    identify state mention indicate calculate return display compute name's many much order ordered sorted ascending
    descending least greater less larger smaller higher lower highest lowest maximum minimum average total number count
    different distinct respectively along based belong belongs following corresponding""".split()
)
"""Words that name no table, column or value: function words, and the verbs and measures of a request."""


class Word(NamedTuple):
    """A word of a sentence as written, and its place in the sentence."""

    text: str
    start: int
    end: int


def words_in(text: str) -> tuple[Word, ...]:
    """The words of a sentence without punctuation; an ending after an apostrophe stays with its word.

    >>> [word.text for word in words_in("What's the set's name, in Play?")]
    ["What's", 'the', "set's", 'name', 'in', 'Play']
    """
    return tuple(Word(match.group(), *match.span()) for match in _WORD.finditer(text))


def terms(text: str) -> list[str]:
    """The singular forms of a text's words, without accents, with identifiers split and stop words left out.

    >>> terms("How many singers have a petID?"), terms("los médicos de Köln")
    (['singer', 'pet', 'id'], ['los', 'medico', 'de', 'koln'])
    """
    return terms_of(_WORD.findall(text))


def terms_of(words: Iterable[str]) -> list[str]:
    """The :func:`terms` of words that were split already."""
    return [term for word in words for term in _terms_of_word(word)]


@lru_cache(maxsize=65536)
def _terms_of_word(word: str) -> tuple[str, ...]:
    return tuple(stem(piece) for piece in identifier_words(_without_ending(word)) if piece not in STOP_WORDS)


def stem(word: str) -> str:
    """The singular of a word in lower case, without accents."""
    return singular(without_accents(word))


def without_accents(text: str) -> str:
    """A text with plain letters, since people write names with and without accents.

    >>> without_accents("médico Straße")
    'medico Strasse'
    """
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return unicodedata.normalize("NFC", "".join(letter for letter in letters if letter not in _ACCENTS))


def _without_ending(word: str) -> str:
    return word.replace("’", "'").partition("'")[0]
