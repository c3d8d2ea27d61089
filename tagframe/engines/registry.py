"""The engines that read files, by the files' endings."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tagframe.engines.base import Engine
from tagframe.engines.duckdb.engine import DuckDBFileEngine
from tagframe.engines.duckdb.engine import folder_engine as folder_engine
from tagframe.engines.duckdb.engine import pattern_engine as pattern_engine
from tagframe.engines.duckdb.statement import DUCKDB
from tagframe.engines.files.arrow import ArrowEngine
from tagframe.engines.files.csv import CSVEngine, is_of, patterns_of
from tagframe.engines.files.layout import delimiter_of, not_delimited, option
from tagframe.engines.files.limits import PACKED, not_itself
from tagframe.engines.files.whole import JSONEngine, UnreadEngine, WorkbookEngine
from tagframe.engines.passwords import with_password_of_environment
from tagframe.engines.postgres import POSTGRES
from tagframe.engines.sqlite.engine import SQLiteEngine, is_sqlite_file
from tagframe.engines.sqlite.statement import SQLITE
from tagframe.errors import InvalidArgument, needing


def _packed(*suffixes: str) -> tuple[str, ...]:
    return *suffixes, *(f"{suffix}{packed}" for suffix in suffixes for packed in PACKED)


ENGINES: dict[tuple[str, ...], Callable[[Path], Engine]] = {
    (".sqlite", ".sqlite3", ".db", ".db3"): SQLiteEngine,
    _packed(".csv", ".tsv"): CSVEngine,
    _packed(".json", ".jsonl", ".ndjson"): JSONEngine,
    (".parquet", ".pq"): ArrowEngine,
    (".feather", ".arrow"): partial(ArrowEngine, kind="feather"),
    (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"): WorkbookEngine,
    (".duckdb", ".ddb"): DuckDBFileEngine,
}

TEXTS = _packed(".txt", ".tab", ".psv", ".dat", ".data", ".asc", ".tbl")
"""Endings of texts that are tables if they are written like one, as those of GTFS are."""

UNREAD: dict[tuple[str, ...], str] = {
    (".zip", ".7z", ".rar", *_packed(".tar"), ".tgz", ".csv.zst", ".tsv.zst", ".json.zst", ".jsonl.zst"): "unpack it",
    (".sql",): "open_corpus(schema=…) reads its CREATE TABLE statements; load it into a database for its rows",
    tuple(
        ".orc .dta .sav .sas7bdat .xpt .h5 .hdf5 .pkl .pickle .xml .html .htm .fwf .prn .npy .npz .avro .dbf .mdb "
        ".accdb .rds .rda .rdata .geojson .topojson .shp .kml .kmz .gml .gpkg .mat .nc .por .numbers .wk1 .yaml "
        ".yml .proto .msgpack .bson".split()
    ): "read it with pandas or its own program, and open its rows as a frame, or export them as CSV or Parquet",
}
"""Endings of files with tables that are not read, and the way to read them."""

_NO_DATA = re.compile(
    r"[._].*|(?:readme|licen[cs]e|copying|notice|authors|contributors|change(?:s|log)|makefile|dockerfile|version)\b.*"
    r"|.*\.(?:md|rst|adoc|tex|bib|pdf|docx?|odt|pptx?|odp|rtf|epub|py|pyc|pyi|ipynb|r|rmd|qmd|js|mjs|ts|css|scss|java|c|h"
    r"|cpp|hpp|cs|go|rs|rb|php|pl|sh|bat|ps1|do|sas|m|exe|dll|so|png|jpe?g|gif|svg|webp|ico|tiff?|bmp|mp[34]|wav|avi|mov"
    r"|ttf|woff2?|toml|ini|cfg|conf|env|lock|whl|jar|swp|md5|sha\d*|crc|sig|shx|prj|cpg|sbn|sbx|qix|qgz)",
    re.IGNORECASE | re.DOTALL,
)
"""The names of documents, programs, pictures, settings, and sums of other files: they hold no table."""

IN_PLACE = "duckdb"
"""The value of ``engine=`` for the engine that reads files of folders in place."""

DIALECTS = {dialect.name: dialect for dialect in (SQLITE, POSTGRES, DUCKDB)}
"""By sqlglot's name."""

SERVERS = {("postgresql", "postgres"): ("tagframe.engines.postgres.engine:postgres_engine", "postgres")}
"""By the scheme of a URL, without the driver that may follow it after a plus: what opens it, loaded for such URLs only,
and the extra with its drivers."""
_OTHER_SERVERS = "tagframe.engines.other_servers:other_server_engine", "sqlalchemy"

SUFFIXES = tuple(suffix for suffixes in ENGINES for suffix in suffixes)


def engine_of(file: Path, *, look_inside: bool = False, csv: str = "") -> Engine | None:
    """The engine that reads the file; None if there is none.

    Args:
        file: its ending tells its format.
        look_inside: whether a file of any ending is read as SQLite if it begins like one.
        csv: how CSV files are written (:attr:`~tagframe.engines.files.csv.CSVEngine.given`).

    Raises:
        OSError: the file cannot be read.
    """
    if look_inside and is_sqlite_file(file):
        return SQLiteEngine(file)
    name = file.name.lower()
    if why := not_itself(file):
        return UnreadEngine(file, why)
    engine = next((engine(file) for suffixes, engine in ENGINES.items() if name.endswith(suffixes)), None)
    if engine is None and (way := next((way for suffixes, way in UNREAD.items() if name.endswith(suffixes)), "")):
        return UnreadEngine(file, way)
    if engine is None:
        engine = _text_engine(file, csv, is_known=name.endswith(TEXTS))
    return replace(engine, given=csv) if isinstance(engine, CSVEngine) else engine


def _text_engine(file: Path, csv: str, *, is_known: bool) -> Engine | None:
    """What reads a text of another ending, or names it; None for what is neither called nor written like a table."""
    if any(is_of(file, pattern) for pattern in patterns_of(csv)):
        return CSVEngine(file)
    why = not_delimited(file, is_strict=not is_known)
    if is_known:
        way = f"{why}. {option(file, sep=delimiter_of(file) or ',')} reads it as a table" if why else ""
        return UnreadEngine(file, way) if why else CSVEngine(file)
    way = f"it is written like a table; {option(file, header=0)} reads it as one"
    return None if why else UnreadEngine(file, way)


def named_only(file: Path) -> UnreadEngine | None:
    """What names a file of a folder that nothing reads; None for one that has no table by its name.

    These are documents, programs, pictures and settings, files whose names begin with ``_``, and those that are called
    after a file beside them (``shop.sqlite-wal``, ``orders.csv.md5``).
    """
    beside = (file.with_name(match[0]) for match in re.finditer(r".+(?=[-.])", file.name) if match[0] != file.name)
    if _NO_DATA.fullmatch(file.name) or any(one.is_file() for one in beside):
        return None
    return UnreadEngine(file, "if it has a table, export it as CSV or Parquet, or open it as a frame")


NO_URL = (
    "a server must be given as postgresql://user:password@host:port/database, or dialect+driver://…; the source is "
    "neither such a URL nor a file. It is not shown, because it may contain a password"
)


ADDRESSES = frozenset("abfs abfss adl az ftp gcs gs hdfs hf http https oss s3 s3a sftp ssh webdav".split())
"""Schemes of addresses that hold files, as fsspec names them."""


def is_url(source: object) -> bool:
    """Whether a source is a server's address, not a file's."""
    return isinstance(source, str) and "://" in source and not source.startswith("file:")


def server_of(url: str, schemas: Sequence[str] | None) -> Engine:
    """The engine that reads a server's tables: one of its own, else SQLAlchemy.

    Args:
        url: ``postgresql://user:password@host:port/database``; ``TAGFRAME_PASSWORD`` gives a password that it lacks.
        schemas: whose tables; None for all that may be read (other servers than PostgreSQL: for the default schema of
            the connection).

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
    named, extra = next((server for schemes, server in SERVERS.items() if scheme in schemes), _OTHER_SERVERS)
    with needing(f'reading {scheme}:// needs its drivers: pip install "tagframe[{extra}]"'):
        open_engine: Callable[[str, Sequence[str] | None], Engine] = pkgutil.resolve_name(named)
    return open_engine(with_password_of_environment(url.strip()), schemas)
