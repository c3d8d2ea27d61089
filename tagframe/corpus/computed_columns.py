"""What is hidden since it is computed from what is hidden: columns of views, and those that a database generates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tagframe.corpus.references import Column
from tagframe.corpus.told import Knowledge, by_table
from tagframe.corpus.told_facts import Told
from tagframe.engines.base import Engine
from tagframe.engines.derivations import Derivations


@dataclass(frozen=True)
class Sources:
    """The sources that tables are in, which tell what they compute from what.

    Attributes:
        engines: by the keys of sources.
        tables: each table's source and its name there, by its id.
    """

    engines: Mapping[str, Engine] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def knowledge(self, told: Told) -> tuple[Knowledge, list[tuple[str, str]]]:
        """What was told, and hidden beside it what is computed from what is hidden; and what may be that, too.

        It is hidden from whom that is hidden from, unless something else was told of it since. Second come the ids of
        tables of which their source cannot tell what they read, and why, but for those of which something was told.

        Raises:
            UnreadableTable, ServerGone: a source does not tell.
        """
        known = told.knowledge
        hidden, unprompted, unjoined = set(known.hidden), set(known.unprompted), set(known.unjoined)
        spoken_of = {of[0] for kind, of in told.facts if kind == "hidden"}
        unclear: list[tuple[str, str]] = []
        of_table = by_table(known.withheld)
        for ids, found in self._computed(known, of_table):
            views = [(ids[table], why) for table, why in found.unclear.items() if table in ids]
            unclear += [(id, why) for id, why in views if id not in spoken_of]
            levels = {
                (table, column.casefold()): ((id, column) in known.hidden, told.facts["hidden", (id, column)][1])
                for table, id in ids.items()
                for column in sorted(of_table.get(id, ()))
            }
            grows = True
            while grows:
                grows = False
                for (table, column), parents in found.parents.items():
                    above = [levels[key] for one in parents if (key := (one[0], one[1].casefold())) in levels]
                    if not above:
                        continue
                    from_all, since = any(level for level, _ in above), max(since for _, since in above)
                    own = told.facts.get(("hidden", (ids.get(table, ""), column)))
                    if own is not None and own[1] > since:
                        continue
                    level = levels.get((table, column.casefold()), (False, 0.0))
                    new = (from_all or level[0], max(since, level[1]))
                    grows |= new != level
                    levels[table, column.casefold()] = new
                    if table in ids:
                        (hidden if new[0] else unprompted).add((ids[table], column))
            unjoined |= _computed_of(unjoined, found, ids) & (hidden | unprompted)
        if len(hidden) + len(unprompted) > len(known.withheld) or unjoined != known.unjoined:
            unprompted -= hidden
            known = replace(
                known, hidden=frozenset(hidden), unprompted=frozenset(unprompted), unjoined=frozenset(unjoined)
            )
        return known, sorted(unclear)

    def may_compute(self, source: str, tables: Iterable[str], known: Knowledge) -> set[str]:
        """The tables of a source that may show what is hidden of others, before it is known what their ids are.

        Args:
            source: its key.
            tables: all of it, by their names there.
            known: what is hidden.
        """
        if source not in self.engines:
            return set()
        columns = [
            (table, column)
            for table in tables
            for id, column in known.withheld
            if id.endswith(table.rpartition(".")[2].rstrip('"'))
        ]
        return {table for table, _ in self.engines[source].derivations(columns).parents} if columns else set()

    def _computed(
        self, known: Knowledge, of_table: Mapping[str, set[str]]
    ) -> Iterator[tuple[dict[str, str], Derivations]]:
        """Of each source that something is hidden of: the ids of its tables, and what it computes of that."""
        elsewhere = sorted({id for id, _ in known.withheld if id not in self.tables})
        for source, engine in sorted(self.engines.items(), key=lambda item: item[0]):
            ids = {table: id for id, (key, table) in self.tables.items() if key == source}
            # Of a server views may be opened without what they read, of another schema: ids are what it calls tables.
            is_alone = len(self.engines) == 1 and engine.path is None
            named = {**{id: id for id in (elsewhere if is_alone else ())}, **ids}
            columns = [(table, name) for table, id in named.items() for name in sorted(of_table.get(id, ()))]
            # Of a file that is gone nothing can be read.
            if columns and (engine.path is None or engine.path.exists()):
                yield named, engine.derivations(columns)


def _computed_of(columns: set[Column], found: Derivations, ids: Mapping[str, str]) -> set[Column]:
    """What is computed from columns, also by way of others."""
    reached = {(table, column.casefold()) for table, id in ids.items() for one, column in columns if one == id}
    grows = bool(reached)
    while grows:
        new = {
            (table, column.casefold())
            for (table, column), parents in found.parents.items()
            if any((one[0], one[1].casefold()) in reached for one in parents)
        }
        grows = not new <= reached
        reached |= new
    return {
        (ids[table], column)
        for table, column in found.parents
        if table in ids and (table, column.casefold()) in reached
    }
