"""Values of hidden columns for key inference: read again when they are needed, and only compared.

No catalogue keeps anything of a hidden column's cells, so its profile does not say what it could refer to. Tables may
still join on it, so key inference reads it once more. The profile that is made here stays in memory, and what is kept
of it is the chance of each key pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tagframe.corpus.catalogue_file import Origin, WithHidden
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.profiler import profile_table
from tagframe.engines.base import TableShape, frame_chunk
from tagframe.errors import ColumnNotFound, UnreadableTable

MOST_CELLS = 3_000_000
"""The largest number of cells of hidden columns that are read of a table; larger tables are joined by names."""


def reader_of(origins: Mapping[str, Origin]) -> WithHidden:
    """A function that reads the hidden columns of an opened source's tables.

    It reads nothing if a table is not of that source: with a frame of known values, single values could be tested.
    """

    def with_hidden(tables: Sequence[TableProfile]) -> tuple[TableProfile, ...]:
        if any(table.id not in origins for table in tables):
            return tuple(tables)
        return tuple(_read(table, origins[table.id]) for table in tables)

    return with_hidden


def _read(table: TableProfile, origin: Origin) -> TableProfile:
    lacking = [
        column for column in table.columns if not (column.for_models or column.unjoined or column.sketch is not None)
    ]
    if not lacking or origin.engine is None or not table.rows or table.rows * len(lacking) > MOST_CELLS:
        return table
    names = tuple(column.name for column in lacking)
    with suppress(UnreadableTable, ColumnNotFound, KeyError, OSError):  # the names are all that is known, then
        rows = origin.engine.scan(origin.table, names)
        shape = TableShape(table.name, names, tuple(column.declared_type for column in lacking))
        made = {one.name: one for one in profile_table(table.database, shape, [frame_chunk(rows)]).columns}
        columns = tuple(
            column
            if (one := made.get(column.name)) is None
            else replace(column, sketch=one.sketch, minimum=one.minimum, maximum=one.maximum)
            for column in table.columns
        )
        return replace(table, columns=columns)
    return table
