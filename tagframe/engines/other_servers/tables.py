"""A table of a server, in statements that SQLAlchemy makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tagframe.engines.base import TableShape
from tagframe.errors import ColumnNotFound, did_you_mean

if TYPE_CHECKING:
    import sqlalchemy as sa

_INTEGERS = ("INT", "SERIAL")


@dataclass(frozen=True)
class ServerTable:
    """A table of the server in statements."""

    shape: TableShape
    schema: str | None

    @cached_property
    def selectable(self) -> sa.TableClause:
        import sqlalchemy as sa

        return sa.table(self.shape.called, *map(sa.column, self.shape.columns), schema=self.schema)

    def column(self, name: str) -> sa.ColumnElement[Any]:
        """One of its columns; raises ColumnNotFound."""
        if name not in self.shape.columns:
            raise ColumnNotFound(
                f"{self.shape.name!r} has no column {name!r} any more: {did_you_mean(name, self.shape.columns)}; "
                "call tagframe.open_corpus again"
            )
        column: sa.ColumnElement[Any] = self.selectable.c[name]
        return column

    def select(self, names: Sequence[str]) -> sa.Select[Any]:
        """Its rows, in these columns."""
        import sqlalchemy as sa

        columns = [self.column(name).label(f"c{at}") for at, name in enumerate(names)]
        return sa.select(*(columns or [sa.literal(1)])).select_from(self.selectable)

    @property
    def number(self) -> str | None:
        """The primary key, where it is one column of integers."""
        if len(self.shape.primary_key) != 1:
            return None
        (key,) = self.shape.primary_key
        declared = self.shape.declared_types[self.shape.columns.index(key)].upper()
        return key if any(word in declared for word in _INTEGERS) else None

    def is_unique(self, name: str) -> bool:
        """Whether the server keeps a column free of duplicates."""
        return (name,) in (self.shape.primary_key, *self.shape.unique)
