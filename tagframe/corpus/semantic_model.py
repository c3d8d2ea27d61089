"""The facts of a semantic model about tables of a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tagframe.corpus.references import Column, moved_key


@dataclass(frozen=True)
class Metric:
    """A measure with its definition.

    Attributes:
        name: as in the model.
        expression: over columns, each written ``source.column``.
        dialect: of the expression, as Ossie names it.
        description: in words, or "".
        synonyms: its other names.
        sources: the table's id for each source in the expression.
        reads: the columns in the expression; empty if the dialect is not SQL.
        model: the semantic model that defines it.
    """

    name: str
    expression: str
    dialect: str = "ANSI_SQL"
    description: str = ""
    synonyms: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[Column, ...] = ()
    model: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.expression} ({self.model})"

    @property
    def definition(self) -> tuple[str, str, tuple[str, ...]]:
        """What it computes: two metrics with the same definition are one."""
        return self.dialect, self.expression, tuple(sorted(self.sources.values()))

    @classmethod
    def of(cls, plain: Mapping[str, Any], model: str) -> Metric:
        """Read a metric of :attr:`SemanticModel.value`."""
        reads = tuple((table, column) for table, column in plain["reads"])
        return cls(**{**plain, "synonyms": tuple(plain["synonyms"]), "reads": reads, "model": model})


@dataclass(frozen=True)
class SemanticModel:
    """A semantic model as a fact.

    Attributes:
        value: plain values: ``called``, ``tables`` (by id: description, synonyms, primary_key, unique_keys, columns),
            ``keys`` and ``metrics``.
    """

    value: Mapping[str, Any]

    @property
    def tables(self) -> Mapping[str, Mapping[str, Any]]:
        """What it says of tables, by their ids."""
        tables: Mapping[str, Mapping[str, Any]] = self.value["tables"]
        return tables

    @property
    def metrics(self) -> list[Metric]:
        """Its metrics."""
        return [Metric.of(one, self.value["called"]) for one in self.value["metrics"]]


def moved(value: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """A model's value with other ids for its tables."""
    keys = [moved_key(key, called) for key in value["keys"]]
    metrics = [
        {
            **one,
            "sources": {name: called[id] for name, id in one["sources"].items()},
            "reads": [[called[table], column] for table, column in one["reads"]],
        }
        for one in value["metrics"]
    ]
    tables = {called[id]: one for id, one in value["tables"].items()}
    return {**value, "tables": tables, "keys": keys, "metrics": metrics}
