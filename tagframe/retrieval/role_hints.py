"""Which of two keys to one table is meant: home or away team, winner or loser.

The columns of such keys differ by a role word. If a question uses one of these words, in any form, its key is meant.
A word with other meanings, too, only says which key comes first: the choice is still said.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache

from tagframe.corpus.documents import singular
from tagframe.keys.column_names import KEY_WORDS
from tagframe.keys.column_names import words as words_of
from tagframe.keys.key_pair import KeyPair
from tagframe.retrieval.denied import is_short_for

ROLE_LOG_ODDS = 3.0
"""A role word adds this to the log odds of its key."""
MAYBE_LOG_ODDS = 0.04
"""A word that may also mean something else adds this: its key comes first, and the others stay equally likely."""

_PREPOSITIONS = frozenset("from to into out in".split())
_EVERYDAY = _PREPOSITIONS | frozenset("start end customer sale purchase send sent".split())
"""Words of :data:`_SAME_ROLE` that questions use with other meanings, too."""
_ORDINALS = tuple(
    frozenset(group.split())
    for group in (
        "first erste ersten erster erstes premier premiere primer primera primero primo prima primeiro primeira",
        "second zweite zweiten zweiter zweites deuxieme seconde segundo segunda secondo seconda",
        "third dritte dritten dritter drittes troisieme tercer tercera tercero terzo terza terceiro terceira",
    )
)
"""Words for the roles of numbered columns, the first one for 1."""
_NO_ROLE = KEY_WORDS | {"by", "of", "the"}
_INFLECTED = frozenset(
    (
        "",
        *"a as d e ed en er ern ers es et in ing innen ion ions ly n o or ors os r rs s t te ten".split(),
        *"ist ista istas ists iza izan".split(),
    )
)
"""Endings of words in English, German and Spanish."""

_SAME_ROLE = tuple(
    frozenset(group.split())
    for group in (
        "source src origin from depart departure leave outgoing start",
        "dest destination target arrive arrival land incoming into end",
        "winner win won victor victory beat",
        "loser lose lost loss defeat",
        "home host",
        "away visitor visit guest",
        "sender send sent from",
        "receiver recipient receive receipt",
        "buyer buy bought purchase customer",
        "seller sell sold sale",
        "owner own possess belong",
        "editor edit revise",
        "author write wrote written",
        "parent father mother",
        "manager manage supervise supervisor boss",
    )
)
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "er", "ors", "or", "ed", "ly", "es", "s", "e")


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    """A word without its ending, so that "edited" and "editor" are one; light, for matching only.

    >>> [_stem(word) for word in ("edited", "editor", "skinned", "permanently", "won")]
    ['edit', 'edit', 'skin', 'permanent', 'won']
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


_ROLE_STEMS = tuple(frozenset(map(_stem, group)) for group in _SAME_ROLE)


@lru_cache(maxsize=65536)
def _meanings(word: str) -> frozenset[str]:
    stem = _stem(word)
    return frozenset({stem}).union(*(group for group in _ROLE_STEMS if stem in group))


@lru_cache(maxsize=65536)
def _plain(word: str) -> str:
    """A word without accents, however an umlaut is written.

    >>> _plain("Empfänger") == _plain("empfaenger"), _plain("código")
    (True, 'codigo')
    """
    bare = "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
    return bare.replace("ae", "a").replace("oe", "o").replace("ue", "u")


def _common(one: str, other: str) -> int:
    """The number of letters that two words begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _is_form_of(word: str, role: str) -> bool:
    """Whether a word of a question is the role's word in another form, or a compound that begins with it.

    >>> _is_form_of("referring", "referred"), _is_form_of("compradores", "comprador"), _is_form_of("winter", "winner")
    (True, True, False)
    """
    if word == role or (len(role) > 5 and word.startswith(role)):
        return True
    common = _common(word, role)
    ends = word[common:], role[common:]
    return common >= (6 if "t" in ends else 4) and {*ends} <= _INFLECTED


def _roles(group: Sequence[KeyPair], things: frozenset[str] = frozenset()) -> dict[KeyPair, frozenset[str]]:
    """The words in which the referencing columns of a group of keys differ; of one, those that are no things.

    Of several columns, those that are called as the other table's say nothing of the role.
    """
    sides = {key: [*zip(key.left_columns, key.right_columns, strict=True)] for key in group}
    names = {
        key: frozenset(word for mine, theirs in pairs if len(pairs) == 1 or mine != theirs for word in words_of(mine))
        for key, pairs in sides.items()
    }
    common = frozenset.intersection(*names.values()) if len(group) > 1 else things
    return {key: name - common - _NO_ROLE for key, name in names.items()}


class _Words:
    """The words of a question, in the forms in which they are compared with roles."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)
        self.plain = {_plain(word) for word in self.words} | {_plain(singular(word)) for word in self.words}
        self.stems = {_stem(word) for word in self.words}
        self._forms: dict[str, bool] = {}

    def without(self, words: Set[str]) -> _Words:
        """The question without some words."""
        return _Words(self.words - words)

    def has(self, word: str) -> bool:
        """Whether a word of the question is a form of the word."""
        if word not in self._forms:
            stem, plain = _stem(word), _plain(word)
            self._forms[word] = any(_is_form_of(one, plain) or _stem(one) == stem for one in self.plain)
        return self._forms[word]


def _spoken(roles: Mapping[KeyPair, frozenset[str]], words: _Words, things: frozenset[str]) -> set[KeyPair]:
    """The keys whose role is named by a word of the question, in any form."""
    their_stems = {_stem(thing) for thing in things}

    def names(word: str) -> bool:
        # "liked" is no role in a table of likes: every question about the table uses the word. A reviewer is one.
        if _stem(word) in their_stems:
            return word not in things and not word.endswith("ed") and _plain(word) in words.plain
        return words.has(word)

    return _saying(roles, names) or _saying(
        roles, lambda role: any(is_short_for(_plain(role), word) for word in words.plain)
    )


def _numbered(roles: Mapping[KeyPair, frozenset[str]], words: _Words) -> set[KeyPair]:
    """The keys of numbered columns, if the question names two of them by ordinals: ``country1`` and ``country2``."""
    number = {key: next((int(word) for word in role if word.isdigit()), 0) for key, role in roles.items()}
    named = {
        key for key, at in number.items() if 0 < at <= len(_ORDINALS) and not _ORDINALS[at - 1].isdisjoint(words.plain)
    }
    return named if len(named) > 1 else set()


def _same_in_meaning(roles: Mapping[KeyPair, frozenset[str]], words: _Words, things: frozenset[str]) -> set[KeyPair]:
    """The keys whose role means the same as a word of the question."""
    stems = {_stem(thing) for thing in things}
    telling = {key: {word for word in role if _stem(word) not in stems} for key, role in roles.items()}
    return _saying(telling, lambda word: not words.stems.isdisjoint(_meanings(word)))


def _saying(roles: Mapping[KeyPair, Set[str]], is_spoken: Callable[[str], bool]) -> set[KeyPair]:
    """The keys of whose role the question has a word; of a table that refers to itself, all words: an election of a
    parliament is not the previous one."""
    counts = {key: sum(map(is_spoken, role)) for key, role in roles.items()}
    return {key for key, count in counts.items() if count >= (1 if len(key.tables) > 1 else max(len(roles[key]), 1))}


def role_hints(keys: Sequence[KeyPair], words: Iterable[str]) -> dict[KeyPair, float]:
    """Evidence from words (of a question, a caption, a column name) for one of several keys to the same column.

    Args:
        keys: key pairs; only those that share both tables are compared with each other.
        words: lower or upper case, in any order.

    Returns:
        Log odds for the keys that the words support, for ``plan_joins(…, role_hints=…)``.

    >>> keys = [KeyPair("g.match", (f"{side}_team_id",), "g.team", ("id",)) for side in ("home", "away")]
    >>> {key.left: hint for key, hint in role_hints(keys, "which away team won".split()).items()}
    {'g.match.away_team_id': 3.0}
    """
    question_words = _Words(_used(words))
    plainly = _plainly(question_words)
    hints: dict[KeyPair, float] = {}
    for things, roles in _groups(keys):
        hint, supported = ROLE_LOG_ODDS, _named(roles, plainly, things)
        if not supported:
            hint = MAYBE_LOG_ODDS
            supported = _spoken(roles, question_words, things) | _same_in_meaning(roles, question_words, things)
        if len(supported) < len(roles):
            hints.update(dict.fromkeys(supported, hint))
    return hints


def roles_named(keys: Sequence[KeyPair], words: Iterable[str]) -> set[KeyPair]:
    """The keys whose role a word names, as in :func:`role_hints`; also where all of them are named.

    >>> keys = [KeyPair("g.match", (f"{side}_team_id",), "g.team", ("id",)) for side in ("home", "away")]
    >>> len(roles_named(keys, "names of home and away team".split())), len(roles_named(keys, ["team"]))
    (2, 0)
    """
    plainly = _plainly(_Words(_used(words)))
    named = set[KeyPair]().union(*(_named(roles, plainly, things) for things, roles in _groups(keys)))
    across = [_named(roles, plainly, things) for things, roles in _across_tables(keys)]
    return named.union(*(chosen for chosen in across if len(chosen) > 1))


def _used(words: Iterable[str]) -> set[str]:
    return {piece for word in words for piece in (*words_of(word), word.casefold())}


def _groups(keys: Sequence[KeyPair]) -> Iterator[tuple[frozenset[str], dict[KeyPair, frozenset[str]]]]:
    """The keys between each two tables that have several, and those by which a table refers to itself: the words of the
    tables' names, and the role of each key."""
    groups: dict[frozenset[str], list[KeyPair]] = defaultdict(list)
    for key in keys:
        groups[key.tables].append(key)
    for both, group in groups.items():
        names = [word for table in both for word in words_of(table.partition(".")[2])]
        things = frozenset([*names, *map(singular, names)])
        if len(group) > 1 or len(both) == 1:
            ways = [[key for key in group if key.left_table == left] for left in both]
            yield things, {key: role for way in ways for key, role in _roles(way, things).items()}


def _across_tables(keys: Sequence[KeyPair]) -> Iterator[tuple[frozenset[str], dict[KeyPair, frozenset[str]]]]:
    """As :func:`_groups`, the keys of different tables to the same columns of one table."""
    targets: dict[tuple[str, tuple[str, ...]], list[KeyPair]] = defaultdict(list)
    for key in keys:
        targets[key.right_table, key.right_columns].append(key)
    for (right, _), group in targets.items():
        if len({key.left_table for key in group}) == len(group) > 1:
            yield frozenset(words_of(right.partition(".")[2])), _roles(group)


def _plainly(words: _Words) -> tuple[_Words, _Words]:
    """The words of a question that name a role, and those that mean one, whatever else they mean."""
    return words.without(_PREPOSITIONS), words.without(_EVERYDAY)


def _named(
    roles: Mapping[KeyPair, frozenset[str]], plainly: tuple[_Words, _Words], things: frozenset[str]
) -> set[KeyPair]:
    """The keys whose role is named by a word, or by one of the same meaning, or that are numbered and named so."""
    return (
        _spoken(roles, plainly[0], things)
        or _same_in_meaning(roles, plainly[1], things)
        or _numbered(roles, plainly[0])
    )
