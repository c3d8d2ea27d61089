"""The engines that read files, by the files' endings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tagframe.engines.base import Engine
from tagframe.engines.duckdb.engine import folder_engine as folder_engine
from tagframe.engines.duckdb.engine import pattern_engine as pattern_engine
from tagframe.engines.duckdb.frame_scans import DuckDBFrames
from tagframe.engines.duckdb.statement import DUCKDB
from tagframe.engines.files import CSVEngine, ParquetEngine, WorkbookEngine
from tagframe.engines.frame_engine import FrameEngine
from tagframe.engines.other_servers.engine import other_server_engine
from tagframe.engines.passwords import PasswordFrom, keep_source, with_password
from tagframe.engines.postgres.engine import postgres_engine
from tagframe.engines.postgres.statement import POSTGRES
from tagframe.engines.sqlite.engine import SQLiteEngine, is_sqlite_file
from tagframe.engines.sqlite.statement import SQLITE
from tagframe.errors import InvalidArgument

ENGINES: dict[tuple[str, ...], Callable[[Path], Engine]] = {
    (".sqlite", ".sqlite3", ".db", ".db3"): SQLiteEngine,
    (".csv", ".tsv"): CSVEngine,
    (".parquet", ".pq"): ParquetEngine,
    (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"): WorkbookEngine,
}

IN_PLACE = "duckdb"
"""The value of ``engine=`` for the engine that reads files of folders, and frames, in place."""

DIALECTS = {dialect.name: dialect for dialect in (SQLITE, POSTGRES, DUCKDB)}
"""By sqlglot's name."""

SERVERS: dict[tuple[str, ...], Callable[[str, Sequence[str] | None], Engine]] = {
    ("postgresql", "postgres"): postgres_engine,
}
"""By the scheme of a URL, without the driver that may follow it after a plus."""

FRAMES: dict[str | None, type[FrameEngine]] = {None: FrameEngine, IN_PLACE: DuckDBFrames}
"""By ``engine=``: what runs statements over frames."""

SUFFIXES = tuple(suffix for suffixes in ENGINES for suffix in suffixes)


def engine_of(file: Path, *, look_inside: bool = False, csv: str = "") -> Engine | None:
    """The engine that reads the file; None if there is none.

    Args:
        file: its ending tells its format.
        look_inside: whether a file of any ending is read as SQLite if it begins like one.
        csv: how CSV files are written (:attr:`~tagframe.engines.files.CSVEngine.told`).

    Raises:
        OSError: the file cannot be read.
    """
    if look_inside and is_sqlite_file(file):
        return SQLiteEngine(file)
    suffix = file.suffix.lower()
    engine = next((engine(file) for suffixes, engine in ENGINES.items() if suffix in suffixes), None)
    return replace(engine, told=csv) if isinstance(engine, CSVEngine) else engine


NO_URL = (
    "a server must be given as postgresql://user:password@host:port/database, or dialect+driver://…; the source is "
    "neither such a URL nor a file. It is not shown, because it may contain a password"
)


ADDRESSES = frozenset("abfs abfss adl az ftp gcs gs hdfs hf http https oss s3 s3a sftp ssh webdav".split())
"""Schemes of addresses that hold files, as fsspec names them."""


def is_url(source: object) -> bool:
    """Whether a source is a server's address, not a file's."""
    return isinstance(source, str) and "://" in source and not source.startswith("file:")


def server_of(url: str, schemas: Sequence[str] | None, password_from: PasswordFrom | None = None) -> Engine:
    """The engine that reads a server's tables: one of its own, else SQLAlchemy.

    Args:
        url: ``postgresql://user:password@host:port/database``.
        schemas: whose tables; None for all that may be read (other servers than PostgreSQL: for the default schema of
            the connection).
        password_from: what gives the password, if the URL has none.

    Raises:
        InvalidArgument: the URL is not one of a known kind of server.
        MissingExtra: its drivers are not installed.
    """
    scheme = url.partition("://")[0].partition("+")[0].strip().lower()
    if not re.fullmatch(r"[a-z][a-z0-9_.-]*", scheme):
        raise InvalidArgument(NO_URL)
    if scheme in ADDRESSES:
        raise InvalidArgument(
            f"files at {scheme}:// are not read remotely. Copy the folder and open the copy, for example with fsspec: "
            f"fsspec.filesystem({scheme!r}).get(address, 'data/', recursive=True); or give frames by name: "
            f"{{'sales': pandas.read_parquet(address)}}"
        )
    url = url.strip()
    if password_from is not None:
        url = with_password(url, password_from)
    found = next((engine for schemes, engine in SERVERS.items() if scheme in schemes), other_server_engine)
    engine = found(url, schemas)
    if password_from is not None:
        keep_source(engine.identity, password_from)
    return engine
