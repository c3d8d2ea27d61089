"""Names of tables and columns as words, and as text for retrieval."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from tagframe.corpus.profile import ColumnProfile, TableProfile

_ENCODED = 120
"""The number of characters of a column's description in its vector: a page of prose would outweigh the names."""

_ACCENTS = frozenset(map(chr, range(0x300, 0x370)))
_WORD = re.compile(r"[^\W\d_]+|[0-9]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))")


_IRREGULAR = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "wives": "wife", "movies": "movie",
    "cookies": "cookie", "calories": "calorie", "indices": "index", "vertices": "vertex", "matrices": "matrix",
    "statuses": "status", "shoes": "shoe", "canoes": "canoe",
}  # fmt: skip
_NO_PLURALS = frozenset("gas has was its yes his gps dns sms sas tls ups aws css ios pos abs cas rss sos obs".split())
"""Words of three letters that end in s, and are no plurals."""


def identifier_words(name: str) -> list[str]:
    """The words of an identifier, in lower case.

    >>> identifier_words("concertSinger_ID2"), identifier_words("HTTPStatus"), identifier_words("Année de création")
    (['concert', 'singer', 'id', '2'], ['http', 'status'], ['année', 'de', 'création'])
    >>> identifier_words("userIDs")
    ['user', 'ids']
    """
    return list(_cut(name))


@lru_cache(maxsize=65536)
def _cut(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(_CAMEL.sub(" ", name)))


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """The singular of an English noun, by its ending.

    >>> [singular(word) for word in ("races", "countries", "status", "heroes", "wikis", "axis", "ads", "gas", "series")]
    ['race', 'country', 'status', 'hero', 'wiki', 'axis', 'ad', 'gas', 'series']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith(("kis", "pis", "jis", "guis")):
        return word[:-1]
    if len(word) < 3 or word in _NO_PLURALS or word.endswith(("ss", "us", "is", "series", "species")):
        return word
    if len(word) == 3:
        return word.removesuffix("s")
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")) or (len(word) > 4 and word.endswith("oes")):
        return word[:-2]
    if len(word) > 4 and word.endswith("uses") and word[-5] not in "aou":
        return word[:-2]  # campuses, buses; not houses and causes
    return word[:-1] if word.endswith("s") else word


def without_accents(text: str) -> str:
    """A text with plain letters, since people write names with and without accents.

    >>> without_accents("médico Straße")
    'medico Strasse'
    """
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return unicodedata.normalize("NFC", "".join(letter for letter in letters if letter not in _ACCENTS))


def table_document(table: TableProfile, *, with_database: bool = True) -> str:
    """A table as text: the words of its database's name (if wanted), of its own name, and of its columns' names.

    Its description follows.
    """
    names = [table.database, table.name] if with_database else [table.name]
    columns = ", ".join(_words(column.name) for column in table.columns)
    words = " ".join(map(_words, names))
    return _described(f"{words}: {columns}" if columns else words, table.description)


def column_document(table: TableProfile, column: ColumnProfile) -> str:
    """A column as text: the words of its table's name and of its own, and its description."""
    return _described(f"{_words(table.name)} {_words(column.name)}", column.description[:_ENCODED])


def _described(words: str, description: str) -> str:
    return f"{words}. {description}" if description else words


@lru_cache(maxsize=65536)
def _words(name: str) -> str:
    return " ".join(identifier_words(name)) or name
