"""The chance that a statement reads every table that a question needs, and no other.

A logistic regression over facts from retrieval. It is fitted by ``python -m tag_bench fit sets`` on the gold SQL
of Spider, BIRD and half of Spider's training databases, and on as many wrong variants, with a table dropped, added or
swapped. So the chance is that of a statement of which only the tables are known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tagframe.joins import Components, keys_between
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.links import schema_of, tables_around

WEIGHTS: tuple[float, ...] = (1.1148, 0.3137, -0.2319, -0.3272, 0.1918, -1.4205, 1.9423, -1.6443, -0.8243)
_LEAST = 0.002
_CONNECTS = 0.5
_MOST_WORDS = 2


def confidence_in(tables: Collection[str], found: RetrievedTables) -> float | None:
    """The chance that these are exactly the tables that a question needs.

    Args:
        tables: ids of the tables that a statement reads.
        found: the tables retrieved for the question.

    Returns:
        None if no table is read, or the retrieval method gives no chances.
    """
    if not tables or all(hit.probability is None for hit in found.tables):
        return None
    logit = sum(weight * value for weight, value in zip(WEIGHTS, features_of(tables, found), strict=True))
    return 1 / (1 + math.exp(-logit))


def features_of(tables: Collection[str], found: RetrievedTables) -> list[float]:
    """The features of the chance.

    Returns:
        A constant; the log odds of the least likely table that is read, except tables that connect others; the log odds
        of the likeliest table of the same databases that is not read; the number of tables read; the log chance that
        these tables are needed and the others are not, if all are independent; the number of parts without a connecting
        key, minus one; whether the least likely table connects the others; the number of databases, minus one; the
        number of names from the question that occur in cells of tables that are not read, at most two.
    """
    used, corpus = set(tables), found.corpus
    chances, words = dict.fromkeys(used, _LEAST), {}
    for hit in found.tables:
        ids = used & {hit.id, *hit.parts} or {hit.id}
        for id in ids:
            chances[id] = min(max(hit.probability or 0.0, _LEAST), 1 - _LEAST)
            words[id] = {text.casefold() for _, text in hit.cells}
    databases = {schema_of(corpus, id) for id in used}
    others = [id for id in chances if id not in used and schema_of(corpus, id) in databases]
    least = min(used, key=lambda id: (chances[id], id))
    keys = keys_between(corpus, sorted(used), tables_around(corpus, sorted(used))).keys
    pairs = [tuple(key.tables) for key in keys if key.score >= _CONNECTS and len(key.tables) == 2]
    parts = _parts(used, pairs)
    connects = len(used) > 2 and _parts(used - {least}, pairs) > parts
    weakest = min(chances[id] for id in used if not connects or id != least)
    lines = set().union(*(words.get(id, set()) for id in others)) - set().union(*(words.get(id, set()) for id in used))
    alone = sum(math.log(chance if id in used else 1 - chance) for id, chance in chances.items())
    return [
        1.0,
        _log_odds(weakest),
        _log_odds(max((chances[id] for id in others), default=_LEAST)),
        float(len(used)),
        alone,
        float(parts - 1),
        float(connects),
        float(len(databases) - 1),
        float(min(len(lines), _MOST_WORDS)),
    ]


def _log_odds(chance: float) -> float:
    return math.log(chance / (1 - chance))


def _parts(tables: Collection[str], pairs: Sequence[Sequence[str]]) -> int:
    """The number of parts of the tables that no key pair connects."""
    parts = Components(tables)
    for one, other in pairs:
        if one in parts.parent and other in parts.parent:
            parts.join(one, other)
    return len(parts.groups())
