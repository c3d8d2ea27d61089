"""The engines that read files, by the files' endings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tagframe.engines.base import Engine
from tagframe.engines.files import CSVEngine, ParquetEngine
from tagframe.engines.sqlite import SQLiteEngine, is_sqlite_file

ENGINES: dict[tuple[str, ...], Callable[[Path], Engine]] = {
    (".sqlite", ".sqlite3", ".db", ".db3"): SQLiteEngine,
    (".csv", ".tsv"): CSVEngine,
    (".parquet", ".pq"): ParquetEngine,
}

SUFFIXES = tuple(suffix for suffixes in ENGINES for suffix in suffixes)


def engine_of(file: Path, *, look_inside: bool = False) -> Engine | None:
    """What reads the file; None where nothing does.

    Args:
        file: its ending tells its format.
        look_inside: whether a file of any ending is read as SQLite where it begins as such files do.

    Raises:
        OSError: the file cannot be looked into.
    """
    if look_inside and is_sqlite_file(file):
        return SQLiteEngine(file)
    suffix = file.suffix.lower()
    return next((engine(file) for suffixes, engine in ENGINES.items() if suffix in suffixes), None)
