"""Names of a question that occur in cells. As a rule, the question needs one of the tables that hold the name.

A table holds a name if its cells have it, or if a key joins it to the column that has it: a long column's profile may
lack some values. If the names of a database's tables and columns contain the words of the name, it may not be a value
at all; then all tables of that database count as holding it.
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
"""If more tables hold a name, tables that are joined to them are not looked up: that takes long and helps little."""


@dataclass(frozen=True, eq=False)
class Held:
    """Which tables hold the names of a question; n tables, h names.

    Attributes:
        names: the names, as written in the question.
        rows: shape (h, n), 1 for each table that holds a name.
        here: shape (n,), how many names this table alone holds in its database. Names that table or column names
            explain do not count. A key column and the columns that refer to it share such a name.
    """

    names: tuple[str, ...]
    rows: Floats
    here: Floats


def held_names(index: RetrievalIndex, hits: Sequence[ValueHit], named: Mapping[str, Floats]) -> Held:
    """Which tables hold the names among some values of a question.

    Args:
        index: of the corpus.
        hits: the values.
        named: for each word in names of tables or columns, shape (n,): above 0 if a name of that table has it.
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
    """The rarity of values that are not names, such as ``jazz``, in the tables that hold them; 0 in other tables.

    Args:
        index: of the corpus.
        hits: the values of a question.
        tables: positions, in order.

    Returns:
        Shape (values, len(tables)).
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
