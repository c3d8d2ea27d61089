"""Which of two ways to a table a question means: the address of the depot, or that of the worker in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tagframe.corpus.documents import identifier_words
from tagframe.keys.column_names import KEY_WORDS
from tagframe.keys.inference import ACCEPTED
from tagframe.keys.key_pair import KeyPair
from tagframe.retrieval.denied import named_by, own_words, spelt_forms
from tagframe.retrieval.words import BETWEEN, stem, words_in

WAY_LOG_ODDS = -12.0
"""The way that the question does not name loses this: more than a way through another table costs."""
_REACH = 4
"""The owner is among so many words after the thing."""


def way_hints(keys: Sequence[KeyPair], question: str, columns: Mapping[str, Sequence[str]]) -> dict[KeyPair, float]:
    """Evidence against the keys by which a table would belong to another than the one that the question says.

    A thing belongs to the table that is named right before it ("the depot's street"), or after it with only function
    words between ("the street of the depot"). If that is no table or several, nothing is said.

    Args:
        keys: key pairs.
        question: in plain language.
        columns: id of a table → names of its columns.

    >>> keys = [KeyPair(f"s.{one}", ("place_id",), "s.place", ("id",), 0.9) for one in ("depot", "worker")]
    >>> columns = {"s.depot": ["place_id"], "s.worker": ["place_id", "depot_id"], "s.place": ["id", "street"]}
    >>> {key.left: hint for key, hint in way_hints(keys, "Street of the depot of each worker", columns).items()}
    {'s.worker.place_id': -12.0}
    """
    targets: dict[str, list[KeyPair]] = defaultdict(list)
    for key in keys:
        if (
            key.score >= ACCEPTED
            and key.left_table != key.right_table
            and {key.left_table, key.right_table} <= {*columns}
        ):
            targets[key.right_table].append(key)
    hints = {}
    for target, ways in targets.items():
        lefts = dict.fromkeys(key.left_table for key in ways)
        owners = {*_owners(question, target, {table: columns[table] for table in (target, *lefts)})}
        if len(lefts) > 1 and len(owners) == 1:
            hints.update({key: WAY_LOG_ODDS for key in ways if key.left_table not in owners})
    return hints


def _owners(question: str, target: str, columns: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The tables to which the question says that a thing of the target belongs."""
    own = own_words(columns)
    others = {stem(word) for table in columns if table != target for name in columns[table] for word in _words(name)}
    things = {stem(word) for name in columns[target] for word in _words(name)} - others - KEY_WORDS
    things -= {word for table, words in own.items() if table != target for word in words}
    parts = words_in(question)
    words = [spelt_forms(part.text.partition("'")[0].partition("’")[0]) for part in parts]
    named = [[table for table in named_by(word, own) if table != target] for word in words]
    for place, word in enumerate(words):
        if not (things | own[target]).isdisjoint(word):
            is_next = place and not question[parts[place - 1].end : parts[place].start].strip()
            yield from named[place - 1] if is_next else ()
            for after in range(place + 1, min(place + 1 + _REACH, len(words))):
                if question[parts[after - 1].end : parts[after].start].strip():
                    break
                yield from named[after]
                if named[after] or words[after][0] not in BETWEEN:
                    break


def _words(name: str) -> list[str]:
    return list(identifier_words(name))
