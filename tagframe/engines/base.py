"""What a place that holds tables can do.

A source is one file, or the frames of one mapping. It names its tables, gives their rows in pieces for profiling, and
reads a whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

CHUNK_ROWS = 50_000

Values = Sequence[Any] | pd.Series


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key that the source declares, or that the user knows of; several columns where it is composite.

    Attributes:
        columns: of the referencing table.
        other_table, other_columns: what they reference.
        other_database: the database of the other table; "" for the same one.
        given: whether it is the user who says so.
    """

    columns: tuple[str, ...]
    other_table: str
    other_columns: tuple[str, ...]
    other_database: str = ""
    given: bool = False


@dataclass(frozen=True)
class TableShape:
    """What a source says of a table before its rows are read.

    Attributes:
        name: as in the source.
        columns: names, in order.
        declared_types: the source's own word for each column's type, "" where it has none.
        primary_key, foreign_keys: as declared.
    """

    name: str
    columns: tuple[str, ...]
    declared_types: tuple[str, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table: ``columns[j]`` holds their values in column j, each of length ``rows``."""

    rows: int
    columns: Sequence[Values]


class Source(Protocol):
    """One file, or one mapping of frames, that holds tables."""

    @property
    def path(self) -> Path | None:
        """The file; None for what lives in memory only."""

    @property
    def kind(self) -> str:
        """``"sqlite"``, ``"csv"``, ``"parquet"`` or ``"frames"``."""

    def shapes(self) -> list[TableShape]:
        """The tables, without their rows.

        Raises:
            UnreadableTable: the source is not what it says it is, or is damaged.
        """

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces.

        Raises:
            UnreadableTable: the rows cannot be read.
        """

    def read(self, table: str, columns: Sequence[str] | None, limit: int | None) -> pd.DataFrame:
        """The rows of a table, in the source's order.

        Raises:
            UnreadableTable: the rows cannot be read.
        """
