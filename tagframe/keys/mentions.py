"""The tables that the name of a column may mean, found by an index over the tables' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tagframe.corpus.profile import TableProfile
from tagframe.keys import column_names as names


class Mentions:
    """The tables that the name of a column may mean."""

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        self._tables = tables
        self._index: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._known: dict[str, list[tuple[int, float]]] = {}
        for position, table in enumerate(tables):
            thing = names.table_entity(table.name)
            if not thing:
                continue
            keys = {("last", thing[-1]), ("all", "".join(thing))}
            keys.update(("end", stem[-4:]) for stem in names.stems(thing[-1]))
            keys.add(("bones", names.bones(thing[-1])))
            for key in keys | ({("start", thing[0][:3])} if len(thing) == 1 else set()):
                self._index[key].append(position)

    def of(self, column: str) -> list[tuple[int, float]]:
        """(position of the table, how surely it is meant) for each table that may be meant, best first."""
        known = self._known.get(column)
        if known is None:
            known = self._known[column] = sorted(self._found(column), key=lambda found: (-found[1], found[0]))
        return known

    def _found(self, column: str) -> Iterator[tuple[int, float]]:
        entity = names.column_name(column).entity
        if not entity:
            return
        keys = [("last", word) for word in names.heads(entity)] + [("all", "".join(entity))]
        if len(entity) == 1:
            keys += [("end", entity[0][-4:]), ("start", entity[0][:3])]
        if names.column_name(column).key_word == 1.0:
            keys.append(("bones", names.bones(entity[-1])))
        for position in sorted({position for key in keys for position in self._index.get(key, ())}):
            about = names.about(column, self._tables[position].name)
            if about:
                yield position, about
