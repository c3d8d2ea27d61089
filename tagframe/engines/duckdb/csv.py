"""CSV files for DuckDB: their names, delimiters and missing values are what :mod:`tagframe.engines.files` finds."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tagframe.engines.base import CHUNK_ROWS, quoted
from tagframe.engines.cells import NULL_WORDS
from tagframe.engines.duckdb.tables import LakeTable, literal
from tagframe.engines.files.column_formats import Column
from tagframe.engines.files.csv import CSVEngine, either
from tagframe.engines.files.layout import Layout
from tagframe.engines.sql_text import quoted_text, quoted_texts
from tagframe.errors import ColumnFormatWarning, warn

if TYPE_CHECKING:
    from tagframe.engines.duckdb.connection import Lake

_PADDED = r"^\s*[+-]?0[0-9].*"
_YEAR_LAST = r"^\s*[0-9]{1,2}[^0-9]"
_WORDS = quoted_texts([word for word in NULL_WORDS if word])


@dataclass(frozen=True)
class _Part:
    """Files that follow each other and are written alike.

    Attributes:
        files: their paths.
        options: of ``read_csv``.
        selected: SQL for the columns that are read.
    """

    files: tuple[str, ...]
    options: str
    selected: str

    def rows(self, more: str) -> str:
        """SQL for its rows, with more options."""
        return f"SELECT {self.selected} FROM read_csv({quoted_texts(map(literal, self.files))}, {self.options}, {more})"


def csv_source(lake: Lake, table: LakeTable) -> tuple[str, dict[str, str]]:
    """SQL for the rows of a table, and the types of its columns, which hold all rows.

    Numbers with leading zeros, and dates that do not begin with the year, are text: DuckDB would guess what is the day
    in 01/02/2024. What is not read as it looks is said.

    Raises:
        duckdb.Error: DuckDB cannot read the files.
        UnreadableTable: rows have more cells than there are names.
    """
    import duckdb

    layouts = _layouts(table)
    parts = [
        _Part(tuple(files), *written)
        for written, files in groupby(layouts, lambda file: _written(layouts[file], table))
    ]
    has_words = any(layout.has_words for layout in layouts.values())
    try:
        source = _source(lake, table, parts, has_words=has_words)
    except duckdb.InvalidInputException:  # Rows may have fewer cells than there are names: one thread reads those.
        padded = [replace(part, options=f"{part.options}, null_padding=true, parallel=false") for part in parts]
        source = _source(lake, table, padded, has_words=has_words)
    notes = {note: file for file, layout in reversed(layouts.items()) for note in layout.notes}
    for note, file in notes.items():
        warn(f"{file}: {note.partition('; csv=')[0]}{_way(table)}", ColumnFormatWarning)
    return source


def _layouts(table: LakeTable) -> dict[str, Layout]:
    """How each file is written. Parts of a table where the first one, or they, have no names have its names."""
    layouts = {file: CSVEngine(Path(file)).layout for file in table.files if os.path.getsize(file)}
    first = next(iter(layouts.values()), None) or CSVEngine(Path(table.files[0])).layout
    for file, layout in layouts.items():
        is_alike = layout.names == first.names or len(layout.names) != len(first.names)
        if not is_alike and (first.is_nameless or layout.is_nameless):
            options = {**layout.options, "header": None, "names": first.names}
            layouts[file] = replace(layout, options=options, columns=first.columns, names=first.names)
    return layouts


def _written(layout: Layout, table: LakeTable) -> tuple[str, str]:
    """Options of ``read_csv``, and the columns that are read."""
    given, names = layout.options, layout.names
    options = (
        f"delim={quoted_text(given['sep'])}, quote='\"', comment='', skip={given.get('skiprows', 0)}, sample_size=-1, "
        f"header={'names' not in given}, union_by_name={len(table.files) > 1}, hive_partitioning={table.partitioned}"
    )
    if "names" in given or len({*map(str.lower, names)}) == len(names):  # DuckDB renames others, ignoring case
        options += f", names={quoted_texts(names)}"
    left_out = [quoted(name) for name in names if name not in layout.columns]
    return options, f"* EXCLUDE ({', '.join(left_out)})" if left_out else "*"


def _source(lake: Lake, table: LakeTable, parts: Sequence[_Part], *, has_words: bool) -> tuple[str, dict[str, str]]:
    """SQL for the rows, and types; two passes over the rows find them."""
    texts = [part.rows("all_varchar=true") for part in parts]
    columns = [[name for name, type in lake.columns(f"({rows})") if type == "VARCHAR"] for rows in texts]
    types = dict(lake.columns(_union([part.rows(_nulls(())) for part in parts])))
    keys = {one.partition("=")[0] for one in Path(table.files[0]).parent.parts if table.partitioned and "=" in one}
    tested = {name: type for name, type in types.items() if any(name in some for some in columns) and name not in keys}
    as_text, missing = _tested(lake, _union(texts), tested, has_words=has_words)
    types |= dict.fromkeys(as_text, "VARCHAR")
    codes = {name: _codes(lake, name, _union(texts)) for name in missing if types[name] == "VARCHAR"}
    missing = {name: [word for word in some if word not in codes.get(name, ())] for name, some in missing.items()}
    _say(table, missing, codes)
    coded = {word for some in codes.values() for word in some}
    mixed = [name for name, some in missing.items() if not coded.isdisjoint(some)]
    read = {name: "VARCHAR" if name in mixed else types[name] for name in tested}
    rows = _union(
        [part.rows(f"{_nulls(coded)}{_typed(read, some)}") for part, some in zip(parts, columns, strict=True)]
    )
    replaced = ", ".join(_without(name, missing[name], types[name]) for name in mixed)
    return (f"(SELECT * REPLACE ({replaced}) FROM {rows})" if mixed else rows), types


def _union(rows: Sequence[str]) -> str:
    return f"({' UNION ALL BY NAME '.join(rows)})"


def _nulls(codes: Collection[str]) -> str:
    return f"nullstr={quoted_texts(word for word in NULL_WORDS if word not in codes)}"


def _typed(types: Mapping[str, str], names: Sequence[str]) -> str:
    texts = ", ".join(f"{quoted_text(name)}: {quoted_text(types[name])}" for name in names if name in types)
    return f", types={{{texts}}}" if texts else ""


def _without(name: str, words: Sequence[str], type: str) -> str:
    """SQL for a column in which words mean missing values, which are codes in others."""
    column = quoted(name)
    return f"CAST(CASE WHEN NOT list_contains({quoted_texts(words)}, {column}) THEN {column} END AS {type}) AS {column}"


def _tested(
    lake: Lake, rows: str, types: Mapping[str, str], *, has_words: bool
) -> tuple[list[str], dict[str, list[str]]]:
    """Which columns stay text, and the words for missing values in each."""
    tests = [f"coalesce(bool_or(regexp_matches({quoted(name)}, '{form}')), false)"
             if (form := _text_form(type)) else "false" for name, type in types.items()]  # fmt: skip
    words = [f"list_sort(list(DISTINCT {quoted(name)}) FILTER (list_contains({_WORDS}, {quoted(name)})))"
             if has_words else "NULL" for name in types]  # fmt: skip
    items = ", ".join(f"{item} AS c{at}" for at, item in enumerate([*tests, *words, "count(*)"]))
    found = list(lake.fetch(f"SELECT {items} FROM {rows}").to_pylist()[0].values())
    as_text = [name for name, is_text in zip(types, found, strict=False) if is_text]
    return as_text, {name: some for name, some in zip(types, found[len(types) : -1], strict=True) if some}


def _text_form(type: str) -> str:
    """What the cells look like that make a column of this type one of text."""
    if type in ("BIGINT", "DOUBLE"):
        return _PADDED
    return _YEAR_LAST if type.startswith(("DATE", "TIMESTAMP")) else ""


def _codes(lake: Lake, name: str, rows: str) -> tuple[str, ...]:
    """The words for missing values in a column of text that are codes there."""
    column = Column(has_words=True)
    cells = f"SELECT DISTINCT {quoted(name)} AS c FROM {rows} WHERE {quoted(name)} IS NOT NULL"
    for batch in lake.reading(cells, CHUNK_ROWS):
        column.see(batch.column(0).to_pylist())
        if not column.is_coded:
            return ()
    return column.code_words


def _say(table: LakeTable, missing: Mapping[str, Sequence[str]], codes: Mapping[str, Sequence[str]]) -> None:
    """Say which words are missing values, and which are codes."""
    for name, words in codes.items():
        if words:
            code = f"{either(words)} in column {name!r} is read as a code, as all its cells are of one length"
            warn(f"{table.called}: {code}{_way(table)}", ColumnFormatWarning)
    if some := ", ".join(f"{either(words)} in {name!r}" for name, words in missing.items() if words):
        warn(f"{table.called}: read as missing: {some}{_way(table)}", ColumnFormatWarning)


def _way(table: LakeTable) -> str:
    return f"; a frame of pandas.read_csv in its place, {{{table.called!r}: frame}}, is read as it is"
