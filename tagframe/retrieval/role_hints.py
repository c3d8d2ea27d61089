"""Which of two keys to one table is meant: home or away team, winner or loser.

The columns of such keys differ by a role word. If a question uses one of these words, its key is preferred.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tagframe.keys.column_names import words as words_of
from tagframe.keys.key_pair import KeyPair

HINT = 3.0
"""A role word adds this to the log odds of its key."""

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


def _meanings(word: str) -> frozenset[str]:
    stem = _stem(word)
    return frozenset({stem}).union(*(group for group in _ROLE_STEMS if stem in group))


def role_hints(keys: Sequence[KeyPair], words: Iterable[str]) -> dict[KeyPair, float]:
    """Evidence from words (of a question, a caption, a column name) for one of several keys to the same column.

    Args:
        keys: key pairs; only those that share both tables and the referenced column are compared with each other.
        words: lower or upper case, in any order.

    Returns:
        Log odds for the keys that the words support, for ``plan_joins(…, role_hints=…)``.

    >>> keys = [KeyPair("g.match", (f"{side}_team_id",), "g.team", ("id",)) for side in ("home", "away")]
    >>> {key.left: hint for key, hint in role_hints(keys, "which away team won".split()).items()}
    {'g.match.away_team_id': 3.0}
    """
    return {
        key: HINT
        for spoken, group in _spoken(keys, words)
        if len(spoken) < len(group)
        for key in group
        if key in spoken
    }


def roles_named(keys: Sequence[KeyPair], words: Iterable[str]) -> set[KeyPair]:
    """The keys whose role a word names, each as in :func:`role_hints`; also where all of them are named.

    >>> keys = [KeyPair("g.match", (f"{side}_team_id",), "g.team", ("id",)) for side in ("home", "away")]
    >>> len(roles_named(keys, "names of home and away team".split())), len(roles_named(keys, ["team"]))
    (2, 0)
    """
    return {key for spoken, _ in _spoken(keys, words) for key in spoken}


def _spoken(keys: Sequence[KeyPair], words: Iterable[str]) -> Iterator[tuple[set[KeyPair], list[KeyPair]]]:
    """For each two tables: the keys whose role a word names, and all of their keys."""
    used = {_stem(piece) for word in words for piece in words_of(word)}
    groups: dict[frozenset[str], list[KeyPair]] = defaultdict(list)
    for key in keys:
        groups[key.tables].append(key)
    for both, group in groups.items():
        # "liked" is no role in a table of likes: every question about the table uses the word.
        things = {_stem(word) for table in both for word in words_of(table.partition(".")[2])}
        names = {key: frozenset(word for column in key.left_columns for word in words_of(column)) for key in group}
        common = frozenset.intersection(*names.values())
        spoken = {
            key
            for key, name in names.items()
            if any(_meanings(word) & used for word in name - common if _stem(word) not in things)
        }
        yield spoken, group
