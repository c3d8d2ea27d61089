"""Names of a question that stand in cells: one of the tables that hold a name is needed, as a rule.

A name counts as held by a table whose cells have it, and by one that a key joins to the very column where it stands:
such a column may be too long for all its values to be known. Where names of a database's tables and columns have its
words it need be no value, and is taken to be held by all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tagframe.retrieval.cell_values import ValueHit
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.words import terms

if TYPE_CHECKING:
    from tagframe.retrieval.index import RetrievalIndex


_COMMON = 50
"""Tables that hold a name beyond which nobody asks for what is joined to them: it tells little, and takes long."""


@dataclass(frozen=True, eq=False)
class Held:
    """Which tables hold the names of a question; n tables, h names.

    Attributes:
        names: of the question, as written.
        rows: shape (h, n), 1 for each table that holds a name.
        here: shape (n,), how many names only this table holds in its database, where no name of that database explains
            them. Tables that hold one as one role, a key column and those that refer to it, share it.
    """

    names: tuple[str, ...]
    rows: Floats
    here: Floats


def held_names(index: RetrievalIndex, hits: Sequence[ValueHit], named: Mapping[str, Floats]) -> Held:
    """Which tables hold the names among some values of a question.

    Args:
        index: of the corpus.
        hits: the values.
        named: for words that names of tables or columns have, shape (n,): above 0 where those of a table do.
    """
    names = [hit for hit in hits if hit.is_name]
    rows, here = np.zeros((len(names), len(index.tables))), np.zeros(len(index.tables))
    for row, hit in zip(rows, names, strict=True):
        words = terms(hit.text)
        if words and all(word in named for word in words):
            has = np.stack([named[word] > 0 for word in words]).astype(np.float64)
            row[:] = index.by_database(has).min(axis=0)
        of_database: dict[int, dict[int, frozenset[int]]] = {}
        for table, column in zip(hit.tables, hit.columns, strict=True):
            database = of_database.setdefault(int(index.database[table]), {})
            others = index.joined_on(table, column) if len(hit.tables) <= _COMMON else ()
            database[table] = frozenset({table, *others})
        for roles in of_database.values():
            if row[next(iter(roles))]:
                continue  # explained
            every = frozenset[int]().union(*roles.values())
            row[list(every)] = 1.0
            if any(role >= roles.keys() for role in roles.values()):
                here[list(every)] += 1 / len(every)
    return Held(tuple(hit.text for hit in names), rows, here)


def held_terms(index: RetrievalIndex, hits: Sequence[ValueHit], tables: Collection[int]) -> Floats:
    """Which of some tables hold the values that are no names, as ``jazz``: their rarity, shape (values, len(tables)).

    Args:
        index: of the corpus.
        hits: the values of a question.
        tables: positions, in order.
    """
    positions = {table: position for position, table in enumerate(tables)}
    rows = []
    for hit in hits:
        if hit.is_name or index.vocabulary.explains(hit.text):
            continue
        row = np.zeros(len(positions))
        for table, column in zip(hit.tables, hit.columns, strict=True):
            if table in positions:
                held = {table, *index.joined_on(table, column)} & positions.keys()
                row[[positions[one] for one in held]] = hit.rarity
        rows.append(row)
    return np.array(rows).reshape(-1, len(positions))
