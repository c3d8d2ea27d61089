"""Which files of a folder hold tables, and what their databases are called."""

from __future__ import annotations

import glob
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tagframe.corpus.catalogue import is_catalogue
from tagframe.engines.base import Engine
from tagframe.engines.files.limits import Bounds, check_regular
from tagframe.engines.files.whole import UnreadEngine
from tagframe.engines.registry import IN_PLACE, SUFFIXES, engine_of, folder_engine, named_only, pattern_engine
from tagframe.errors import (
    EmptyCorpus,
    SourceNotFound,
    UnreadableTable,
    UnreadableTableWarning,
    shown_path,
    warn,
)


@dataclass(frozen=True)
class SourceFile:
    """A file with tables.

    Attributes:
        key: the file's key in the catalogue: its path below the folder, with "/".
        database: the database of its tables.
        engine: reads it.
    """

    key: str
    database: str
    engine: Engine


LAKE, ON_REQUEST = "lake/", f"{IN_PLACE}/"
"""The catalogue's keys for tables of a folder that are read in place, by default or on request; no file's key has this
form."""


def discover(path: Path, engine: str | None = None, *, follow_links: bool = False, csv: str = "") -> list[SourceFile]:
    """The files with tables at ``path``, sorted by their paths; ``csv`` has options for reading CSV files.

    Tables of partitioned folders and of large files form one source, which one engine reads
    (:data:`~tagframe.engines.registry.IN_PLACE`). The same holds for all Parquet, CSV and JSON files if ``engine`` is
    this engine, and for the files that a pattern finds, which are one table.

    A SQLite file is a database named after its stem, and so is a workbook. A subfolder is a database of the CSV and
    Parquet files in it, and so is the folder itself; ``bank.sqlite`` in a folder ``bank`` belongs to the same database
    as that folder. Databases with the same name are named by their paths below the folder. Names that begin with a dot
    are left out. Links that lead out of the folder are left out with a warning, unless ``follow_links``.

    Raises:
        SourceNotFound: there is nothing at ``path``.
        EmptyCorpus: a folder without any such file.
        UnreadableTable: a file of an unknown format.
        MissingExtra: an engine is requested, or needed, and not installed.
    """
    if not path.exists() and glob.has_magic(str(path)):
        return [SourceFile(ON_REQUEST, "", pattern_engine(str(path), follow_links=follow_links, csv=csv))]
    if not path.exists():
        raise SourceNotFound(f"there is no file or folder {shown_path(path)}")
    if not path.is_dir():
        check_regular(path)
        found = engine_of(path, look_inside=True, csv=csv)
        if found is None:
            raise UnreadableTable(
                f"{path} is neither SQLite, CSV, Parquet nor a workbook; known endings: {', '.join(SUFFIXES)}; "
                "a file of CREATE TABLE statements is opened by open_corpus(schema=…)"
            )
        database = path.stem if found.is_database else path.absolute().parent.name or "files"
        return [SourceFile(path.name, database, found)]
    lake = folder_engine(path, is_wanted=engine is not None, follow_links=follow_links, csv=csv)
    outside: list[UnreadableTable] = []
    files = [
        (file.relative_to(path), found)
        for file in _walk(path, Bounds(path, follow_links=follow_links), outside)
        if not (lake and lake.holds(file)) and (found := _engine(file, csv)) is not None
    ]
    files = _by_kind(files)
    if outside and not files and not lake:
        raise outside[0]
    for problem in outside:
        _warn(problem)
    key = LAKE if engine is None else ON_REQUEST
    whole = [SourceFile(key, "", lake)] if lake else []
    if whole and not files:
        return whole
    if not files:
        raise EmptyCorpus(f"no file with tables in {str(path)!r}; looked for {', '.join(SUFFIXES)}")
    homes = {file: _home(file, is_database=engine.is_database) for file, engine in files}
    namesakes: dict[str, set[Path]] = defaultdict(set)
    for home in homes.values():
        namesakes[home.name].add(home)
    root = path.resolve().name or "files"
    return whole + [
        SourceFile(
            key=file.as_posix(),
            database=(homes[file].name if len(namesakes[homes[file].name]) == 1 else homes[file].as_posix()) or root,
            engine=engine,
        )
        for file, engine in files
    ]


def _by_kind(files: list[tuple[Path, Engine]]) -> list[tuple[Path, Engine]]:
    """The files, with one for all that are not read in the same way."""
    unread = {file: (file.suffix.lower(), one.way) for file, one in files if isinstance(one, UnreadEngine)}
    counts, named = Counter(unread.values()), dict(reversed([(kind, file) for file, kind in unread.items()]))
    return [
        (file, replace(one, count=counts[unread[file]]) if isinstance(one, UnreadEngine) else one)
        for file, one in files
        if file not in unread or named[unread[file]] == file
    ]


def _home(file: Path, *, is_database: bool) -> Path:
    """The folder of the file's database, or the path of the file without its suffix; the empty path is the root."""
    if not is_database:
        return Path(*file.parts[:-1])
    return file.parent if file.stem == file.parent.name else file.with_suffix("")


def _walk(folder: Path, bounds: Bounds, outside: list[UnreadableTable]) -> Iterator[Path]:
    """The files below a folder; links that lead out of it are added to ``outside``."""
    seen: set[str] = set()
    for parent, folders, files in os.walk(folder, onerror=_warn, followlinks=True):
        here = os.path.realpath(parent)
        if here in seen:  # a link back to a folder above
            folders.clear()
            continue
        seen.add(here)
        inside = set()
        for name in sorted([*folders, *files]):
            if not name.startswith((".", "~$")):  # a dot file, or made by Excel while a workbook is open
                try:
                    bounds.check(Path(parent, name))
                    inside.add(name)
                except UnreadableTable as error:
                    outside.append(error)
        folders[:] = sorted(inside.intersection(folders))
        yield from (Path(parent, name) for name in sorted(inside.intersection(files)))


def _warn(error: Exception) -> None:
    warn(f"left out: {error}", UnreadableTableWarning)


def _engine(file: Path, csv: str) -> Engine | None:
    """The engine that reads the file; None for files without tables, such as a catalogue saved among them."""
    if file.parent.name == "_delta_log":  # of a table that DuckDB would read
        return None
    engine = engine_of(file, csv=csv) or named_only(file)
    is_ours = engine is not None and engine.kind in ("sqlite", "unread") and file.is_file() and is_catalogue(file)
    return None if is_ours else engine
