"""The facts about the tables and columns that a corpus has, of all that are known about its source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tagframe.corpus.facts import OF_PAIRS, FactKey, Facts, FactStore, tables_of
from tagframe.corpus.references import Column, JoinColumns
from tagframe.corpus.statements import Statement
from tagframe.engines.hiding import mentions


@dataclass(frozen=True)
class View:
    """What a corpus has of its source.

    Attributes:
        columns: of each table, by its id.
        gone: names of its source that no text may have, in lower case.
        lost: columns of these tables that it has not; another table may have one of that name.
    """

    columns: Mapping[str, frozenset[str]]
    gone: frozenset[str]
    lost: frozenset[Column] = frozenset()

    def facts(self, facts: Facts) -> Facts:
        """The facts that are of these tables and columns only."""
        values: dict[FactKey, Any] = {}
        for (kind, of), value in facts.values.items():
            if kind == "semantic":
                values[kind, (of[0], *(table for table in of[1:] if table in self.columns))] = self._model(value)
            elif self._has_all((kind, of), value, facts):
                values[kind, of] = value
        return Facts(values)

    def _has_all(self, key: FactKey, value: Any, facts: Facts) -> bool:
        kind, of = key
        joins = [value] if kind in OF_PAIRS else value.get("joins", ()) if kind == "statement" else ()
        columns = [column for one in joins for column in _ends(one)]
        if kind in ("column", "private", "annotated"):
            columns += [(of[0], name) for name in of[1:]]
        if kind == "annotated":  # what a model read to describe a table, or its columns
            columns += [(of[0], name) for name in facts.values.get((kind, of[:1]), ("", ()))[1]]
        text = {**value, "runs": {}} if kind == "statement" else value  # files of statements have names of their own
        if kind == "statement" and Statement.of(of, value).reads(self.lost):
            return False
        return tables_of(key, value) <= self.columns.keys() and self._has(columns) and self._is_silent(text)

    def _has(self, columns: Iterable[Column]) -> bool:
        return all(column in self.columns.get(table, ()) for table, column in columns)

    def _is_silent(self, part: Any) -> bool:
        return not mentions(json.dumps(part, ensure_ascii=False), self.gone)

    def _model(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """What a semantic model says of these tables and columns only."""

        def of_table(id: str, one: Mapping[str, Any]) -> dict[str, Any]:
            columns = {name: of for name, of in one["columns"].items() if self._has([(id, name)])}
            left = {name: of for name, of in one.items() if name == "columns" or self._is_silent(of)}
            silent = {name: of for name, of in columns.items() if self._is_silent(of)}
            return {"description": "", "synonyms": [], "primary_key": [], **left, "columns": silent}

        of_key = (one for one in value["keys"] if self._has(_ends(one)))
        of_metric = (
            one
            for one in value["metrics"]
            if self._has(map(tuple, one["reads"])) and self.columns.keys() >= {*one["sources"].values()}
        )
        return {
            **value,
            "keys": [*filter(self._is_silent, of_key)],
            "metrics": [*filter(self._is_silent, of_metric)],
            "tables": {id: of_table(id, one) for id, one in value["tables"].items() if id in self.columns},
        }


def _ends(key: Mapping[str, Any]) -> list[Column]:
    return [column for pair in JoinColumns.of(key).sides for column in pair]


class VisibleFacts(FactStore):
    """The facts of a view of all that are known; new ones are stored with the others.

    A pickle has only those of the view, and keeps new ones in its own process.

    Args:
        whole: all facts.
        view: whose facts these are.
    """

    def __init__(self, whole: FactStore, view: View) -> None:
        super().__init__()
        self._whole, self._view = whole, view
        self._last: tuple[Facts, Facts] | None = None

    @property
    def facts(self) -> Facts:
        """The facts of the view."""
        every = self._whole.facts
        if self._last is None or self._last[0] is not every:
            self._last = every, self._view.facts(every)
        return self._last[1]

    def update(self, change: Callable[[Facts], Mapping[FactKey, Any]]) -> None:
        """Change the facts of the view, and keep them with all others."""
        self._whole.update(lambda every: change(self._view.facts(every)))

    def opened(self, ids: Iterable[str], private: Iterable[Column] = ()) -> None:
        """As every store."""
        self._whole.opened(ids, private)

    def adopt(self, other: Facts, ids: Iterable[str]) -> int:
        """As every store, but only facts of the view."""
        return super().adopt(self._view.facts(other), ids)

    def follow(self, other: FactStore) -> FactStore:
        """These facts, for the view of another corpus of the same source."""
        if not isinstance(other, VisibleFacts):
            return other
        return VisibleFacts(self._whole.follow(other._whole), other._view)

    def __reduce__(self) -> tuple[Any, ...]:
        return FactStore, (self.facts,)
