"""Which files of a folder are one table for DuckDB: partitions, parts of one dataset, Delta and Iceberg tables.

Of Delta and Iceberg tables also which files their logs name, and their rows where these files have others, too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import pyarrow as pa

from tagframe.engines.base import Stamp
from tagframe.engines.files.csv import CSVEngine
from tagframe.engines.files.limits import Bounds, files_below, found_by, not_itself
from tagframe.engines.sql_text import quoted_text
from tagframe.errors import (
    CorpusError,
    MissingExtra,
    SourceNotFound,
    TablesStackedWarning,
    UnreadableTable,
    needing,
    shown_path,
    warn,
)

Format = Literal["parquet", "csv", "json", "delta", "iceberg", "duckdb"]
LARGE = 256 * 2**20
"""From this many bytes on, a Parquet file, or the parts of one table, are read in place without being asked to."""
FORMATS: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_PART = re.compile(r"(?:(?:part|data|chunk|file)[-_.]?)?\d+(?:[-_.]\d+)*\Z|part-.*\Z", re.IGNORECASE)
"""The names of numbered parts: a number alone, not ``2014_players``, which stands beside ``2014_clubs``."""

_HEADER = {
    "parquet": "hive_partitioning=false",
    "json": "hive_partitioning=false, sample_size=1000",
}
_EXTENDED, _CHANGED = 0.5, 0.6
"""The least share of columns in common (Jaccard) of two pieces of one table: if one has all columns of the other, and
if each has columns of its own. Players and clubs may well share ``id`` and ``name``."""
_LISTED = 5


@dataclass(frozen=True)
class LakeTable:
    """Files that are one table.

    Attributes:
        name: unique in the lake: its path below the lake's folder.
        called: its name in a corpus.
        home: its database: the folder that it is in, by its path below the lake's where that is not the lake's own.
        format: of its files.
        place: the file, or the folder that the files are below.
        files: absolute paths, sorted; none for Delta and Iceberg tables, whose logs list the current files.
        partitioned: whether names of folders hold values.
        gathered: whether several files are one table.
        follows_links: whether its log may name files that are not below ``place``.
        csv: how CSV files are written (:attr:`~tagframe.engines.files.csv.CSVEngine.given`).
    """

    name: str
    called: str
    home: str
    format: Format
    place: Path
    files: tuple[str, ...] = ()
    partitioned: bool = False
    gathered: bool = False
    follows_links: bool = False
    csv: str = ""

    @property
    def size(self) -> int:
        return sum(os.stat(file).st_size for file in self.files)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its files as DuckDB patterns in which no letter is a wildcard."""
        return tuple(literal(file) for file in self.files)

    def listing(self) -> list[tuple[str, int, int]]:
        """Path, size and time of change in ns of each of its files, or of those of its log.

        Raises:
            OSError: one is not there any more.
        """
        files = self.files or sorted(map(str, (self.place / _LOGS[self.format]).rglob("*.*json")))
        return [(file, stat.st_size, stat.st_mtime_ns) for file in files for stat in [os.stat(file)]]

    def state(self) -> str:
        """A text that changes whenever the table does."""
        return hashlib.sha256(repr(self.listing()).encode("utf-8", "surrogatepass")).hexdigest()


def literal(path: str) -> str:
    """The pattern that matches this path alone.

    >>> literal("sales[12].parquet")
    'sales[[]12].parquet'
    """
    return re.sub(r"[*?[]", r"[\g<0>]", path)


_LOGS = {"delta": "_delta_log", "iceberg": "metadata"}


def has_duckdb() -> bool:
    """Whether DuckDB is installed."""
    return importlib.util.find_spec("duckdb") is not None


def need_duckdb(what: str) -> None:
    """Raise where DuckDB is not installed.

    Raises:
        MissingExtra: it is not.
    """
    if not has_duckdb():
        raise MissingExtra(f"{what} needs DuckDB, which is not installed: pip install 'tagframe[duckdb]'")


def lake_tables(folder: Path, *, is_wanted: bool = False, follow_links: bool = False, csv: str = "") -> list[LakeTable]:
    """The tables of a folder that are read in place; none if all of its files are small and separate tables.

    Partitioned folders, folders of numbered parts, Delta and Iceberg tables are one table each. If there is any of
    them, or a Parquet file of 256 MB or more, all Parquet files of the folder are included, so that DuckDB can join
    them; separate CSV and JSON files only if ``is_wanted``. Links that lead out of the folder are left out, unless
    ``follow_links``.
    """
    tables = [
        replace(table, follows_links=follow_links, csv=csv if table.format == "csv" else "")
        for table in _tables(folder, folder, Bounds(folder, follow_links=follow_links))
    ]
    namesakes = Counter((table.home, table.called) for table in tables)
    tables = [
        table if namesakes[table.home, table.called] == 1 else replace(table, called=table.place.name)
        for table in tables
    ]
    stays = [table for table in tables if table.gathered or not table.files or table.size >= LARGE]
    if not is_wanted and not any(table.format != "csv" or table.gathered for table in stays):
        return []
    return [table for table in tables if is_wanted or table.gathered or table.format not in ("csv", "json")]


def _tables(folder: Path, root: Path, bounds: Bounds) -> Iterator[LakeTable]:
    try:
        visible = sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")))
    except OSError:  # whoever walks the folder for other files says so
        return
    names = [name for name in visible if bounds.hold(folder / name)]
    folders = [name for name in names if (folder / name).is_dir()]
    files = [folder / name for name in names if Path(name).suffix.lower() in FORMATS and (folder / name).is_file()]
    files = [file for file in files if not not_itself(file)]
    if (logged := _logged(folder)) is not None and bounds.hold(folder / _LOGS[logged]):
        yield _table(folder, root, logged, ())
        return
    if any("=" in name for name in folders):
        below = [file for file in files_below(folder) if file.suffix.lower() in FORMATS and bounds.hold(file)]
        if below:
            yield from _gathered(folder, root, _format_of(folder, below), below, partitioned=True)
            return
    by_format: dict[Format, list[Path]] = defaultdict(list)
    for file in files:
        by_format[FORMATS[file.suffix.lower()]].append(file)
    for format, some in by_format.items():
        if folder != root and len(by_format) == 1 and len(some) > 1 and all(_PART.match(file.stem) for file in some):
            yield from _gathered(folder, root, format, some)
        else:
            yield from (_table(file, root, format, [file]) for file in some)
    for name in folders:
        if not os.path.islink(folder / name):
            yield from _tables(folder / name, root, bounds)


def _gathered(
    folder: Path, root: Path, format: Format, files: Sequence[Path], *, partitioned: bool = False
) -> Iterator[LakeTable]:
    """Files that may be pieces of one table: those with the columns of most are, the others are tables of their own."""
    columns = dict(zip(files, _columns_of(files, format), strict=True))
    groups = _of_one_shape(columns)
    whole = _table(folder, root, format, groups[0], partitioned=partitioned)
    stems = [group[0].stem for group in groups]
    has_most = len(groups) == 1 or len(groups[0]) > len(groups[1])
    for number, (group, stem) in enumerate(zip(groups, stems, strict=True), 1):
        if len(group) == 1 and not partitioned:
            yield _table(group[0], root, format, group)
        elif number == 1 and has_most:
            yield whole
        else:
            called = f"{whole.called}_{stem if stems.count(stem) == 1 else number}"
            own = _table(folder, root, format, group, partitioned=partitioned)
            yield replace(own, name=f"{own.name}/{group[0].relative_to(folder).as_posix()}", called=called)
        _say_lacking(folder, {file: columns[file] for file in group})
    if len(groups) > 1 and len(groups[0]) > 1:
        ours, theirs = (frozenset[str]().union(*map(columns.__getitem__, group)) for group in groups[:2])
        warn(
            f"{folder}: {', '.join(str(group[0].relative_to(folder)) for group in groups[1:])} have other columns than "
            f"{groups[0][0].relative_to(folder)} ({_listed(theirs - ours)} instead of {_listed(ours - theirs)}), so "
            "they are tables of their own. A pattern of files opens all of them as one",
            TablesStackedWarning,
        )


def _columns_of(files: Sequence[Path], format: Format) -> Iterator[frozenset[str]]:
    """The names of each file's columns in lower case, from its header alone; none of a file that cannot be read."""
    if not has_duckdb():
        yield from repeat(frozenset[str](), len(files))
        return
    if format == "csv":
        yield from map(_names_of, files)
        return
    import duckdb

    from tagframe.engines.duckdb.worker import OPTIONS

    with duckdb.connect(":memory:", config=OPTIONS) as connection:
        for file in files:
            source = f"read_{format}({quoted_text(literal(str(file.absolute())))}, {_HEADER[format]})"
            try:
                rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            except duckdb.Error:  # whoever reads its rows says so
                rows = []
            yield frozenset(name.lower() for name, *_ in rows)


def _names_of(file: Path) -> frozenset[str]:
    """Of a CSV file; none where the first row may be data, or the file cannot be read, which its reader says."""
    try:
        layout = CSVEngine(file).layout
    except CorpusError:
        return frozenset()
    return frozenset() if layout.is_nameless else frozenset(map(str.lower, layout.names))


def _of_one_shape(columns: Mapping[Path, frozenset[str]]) -> list[list[Path]]:
    """Files in groups of nearly the same columns, the largest first; a file of unknown columns fits anywhere."""
    groups: list[tuple[set[str], list[Path]]] = []
    for file, names in columns.items():
        group = next((group for group in groups if _nearly_same(names, group[0])), None)
        if group is None:
            groups.append((set(names), [file]))
        else:
            group[0].update(names)
            group[1].append(file)
    return sorted((files for _, files in groups), key=len, reverse=True)


def _nearly_same(one: Set[str], other: Set[str]) -> bool:
    if not one or not other:
        return True
    alike = len(one & other) / len(one | other)
    return alike >= (_EXTENDED if one <= other or other <= one else _CHANGED)


def _say_lacking(place: Path, columns: Mapping[Path, Set[str]]) -> None:
    """Warn of the columns that pieces of one table lack."""
    every = frozenset[str]().union(*columns.values())
    lacking = {file: every - names for file, names in columns.items() if names and names != every}
    if lacking:
        file, names = next(iter(lacking.items()))
        warn(
            f"{place} is one table, although {len(lacking)} of its {len(columns)} files lack columns, which are null "
            f"there: {file.relative_to(place)} lacks {_listed(names)}. A pattern of some files opens these alone",
            TablesStackedWarning,
        )


def _listed(names: Set[str]) -> str:
    some = sorted(names)[:_LISTED]
    return ", ".join(some) + f" and {len(names) - len(some)} more" * (len(names) > len(some)) or "nothing"


def _logged(folder: Path) -> Format | None:
    if (folder / "_delta_log").is_dir():
        return "delta"
    is_iceberg = (folder / "metadata").is_dir() and any((folder / "metadata").glob("*.metadata.json"))
    return "iceberg" if is_iceberg else None


def _format_of(path: Path, files: Sequence[Path]) -> Format:
    formats = {FORMATS[file.suffix.lower()] for file in files}
    if len(formats) > 1:
        raise UnreadableTable(f"{path} is not one table: it has files of several kinds, {', '.join(sorted(formats))}")
    return formats.pop()


def _table(path: Path, root: Path, format: Format, files: Sequence[Path], *, partitioned: bool = False) -> LakeTable:
    below = path.relative_to(root) if path != root else Path()
    called = (path.stem if path.is_file() else path.resolve().name) or "table"
    return LakeTable(
        name=below.as_posix() if below.parts else called,
        called=called,
        home=(root.resolve().name or "files") if len(below.parts) < 2 else below.parent.as_posix(),
        format=format,
        place=path.absolute(),
        files=tuple(str(file.absolute()) for file in files),
        partitioned=partitioned,
        gathered=partitioned or len(files) > 1 or not files,
    )


def table_of_pattern(pattern: str, *, follow_links: bool = False, csv: str = "") -> tuple[Path, LakeTable]:
    """The folder below which a pattern finds files, and the one table of these files.

    Raises:
        SourceNotFound: it finds none.
        UnreadableTable: it finds files of several kinds, or links that lead out of that folder.
    """
    text = os.path.expanduser(pattern)
    base, matches = found_by(text)
    base = base.absolute()
    files = [file for file in matches if file.suffix.lower() in FORMATS and file.is_file()]
    if not files:
        raise SourceNotFound(f"no file with a table matches {shown_path(pattern)}; looked for {', '.join(FORMATS)}")
    bounds = Bounds(base, follow_links=follow_links)
    for file in files:
        bounds.check(file.absolute())
    stem = re.sub(r"[-_.\s]*[*?\[].*", "", Path(text).name)
    called = stem or base.name or "table"
    partitioned = any("=" in part for file in files for part in file.absolute().relative_to(base).parts)
    format = _format_of(base, files)
    paths = tuple(str(file.absolute()) for file in files)
    _say_lacking(base, dict(zip(map(Path, paths), _columns_of(files, format), strict=True)))
    return base, LakeTable(called, called, base.name or "files", format, base, paths, partitioned, True, csv=csv)


def stamp_of(tables: Sequence[LakeTable]) -> Stamp:
    """The state of all tables.

    Raises:
        OSError: a file is not there any more.
    """
    listings = [(table.name + " and elsewhere" * table.follows_links, table.listing()) for table in tables]
    stats = [stat for _, listing in listings for stat in listing]
    digest = hashlib.sha256(repr(listings).encode("utf-8", "surrogatepass")).hexdigest()
    how = next((f" {table.csv}" for table in tables if table.csv), "")
    return Stamp(sum(size for _, size, _ in stats), max((time for _, _, time in stats), default=0), digest + how)


_DELTA_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "appendOnly", "invariants", "checkConstraints"}
"""Features of tables whose files hold exactly their rows."""
_READ_BY_ITSELF = {*_DELTA_FEATURES, "deletionVectors", "columnMapping"}
"""Features that deltalake's own engine reads; Arrow would take the files for the rows."""


@dataclass(frozen=True)
class Logged:
    """A table whose log tells which rows count.

    Attributes:
        schema: of its rows.
        files: the Parquet files whose rows these are; none if only its own reader finds the rows in them.
        partitions: the columns whose values are in the names of folders.
        batches: gives the rows by its own reader, some at a time.
    """

    schema: pa.Schema
    files: tuple[str, ...]
    partitions: tuple[str, ...]
    batches: Callable[[], Iterable[pa.RecordBatch]]


def logged(table: LakeTable) -> Logged:
    """What the log of a Delta or Iceberg table tells.

    Raises:
        MissingExtra: its reader is not installed.
        UnreadableTable: it cannot be read, or not correctly.
    """
    bounds = Bounds(table.place, follow_links=table.follows_links)
    return _delta(table.place, bounds) if table.format == "delta" else _iceberg(table.place, bounds)


def _local(location: str, bounds: Bounds) -> str:
    """The path of a file of a log.

    Raises:
        UnreadableTable: it is on another machine, or outside the bounds.
    """
    scheme, separator, rest = location.partition("://")
    if separator and scheme != "file":
        raise UnreadableTable(f"it refers to {location}, but only files on this machine are read: copy the table here")
    path = bounds.folder / (rest if separator else location)
    bounds.check(path)
    return str(path)


def _delta(path: Path, bounds: Bounds) -> Logged:
    with needing(f"{path} is a Delta table, and deltalake is not installed: pip install 'tagframe[delta]'"):
        import deltalake
    try:
        delta = deltalake.DeltaTable(str(path))
        files = [_local(file if os.path.exists(file) else unquote(file), bounds) for file in delta.file_uris()]
        features = set(delta.protocol().reader_features or ()) - _DELTA_FEATURES
        if odd := features - _READ_BY_ITSELF:
            raise UnreadableTable(
                f"{path} is a Delta table with {', '.join(sorted(odd))}, which deltalake cannot read: rewrite it "
                "without them, or open a copy in Parquet format"
            )
        # One partition reads file after file: rows have the same order each time.
        query = deltalake.QueryBuilder({"datafusion.execution.target_partitions": "1"}).register("rows", delta)
        partitions = tuple(delta.metadata().partition_columns)
        is_plain = not features and delta.protocol().min_reader_version == 1
        is_plain &= all(f"/{name}=" in file for file in files for name in partitions)
        is_plain &= not (partitions and "=" in str(path))  # DuckDB would take folders above for columns, too
        schema = pa.schema(delta.schema().to_arrow())
    except (MissingExtra, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # deltalake's and Arrow's own; deltalake panics at names like "a%20b"
        raise UnreadableTable(f"{path} cannot be read as a Delta table: {error}") from error
    return Logged(
        schema, tuple(files if is_plain else ()), partitions,
        lambda: pa.RecordBatchReader.from_stream(query.execute("SELECT * FROM rows")),
    )  # fmt: skip


def _iceberg(path: Path, bounds: Bounds) -> Logged:
    """The newest snapshot at the time of opening."""
    with needing(f"{path} is an Iceberg table, and pyiceberg is not installed: pip install 'tagframe[iceberg]'"):
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan, PyArrowFileIO, schema_to_pyarrow
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable

    class OnThisMachine(PyArrowFileIO):  # type: ignore[misc]
        """Opens local files and nothing else: metadata may name any machine, and any code that opens files."""

        def new_input(self, location: str) -> Any:
            """A file to be read."""
            _local(location, bounds)
            return super().new_input(location)

    try:
        newest = max((path / "metadata").glob("*.metadata.json"), key=_version)
        io = OnThisMachine()
        metadata = FromInputFile.table_metadata(io.new_input(str(newest)))
        table = StaticTable(("static-table", str(newest)), metadata, str(newest), io, NoopCatalog("static-table"))
        tasks = list(table.scan().plan_files())
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        deletes = [_local(file.file_path, bounds) for task in tasks for file in task.delete_files]
        files = [_local(task.file.file_path, bounds) for task in tasks]
    except Exception as error:  # pyiceberg's and Arrow's own
        raise UnreadableTable(f"{path} cannot be read as an Iceberg table: {error}") from error

    def batches() -> Iterator[pa.RecordBatch]:
        for task in tasks:  # several files at once would be in memory together
            yield from ArrowScan(metadata, io, table.schema(), AlwaysTrue()).to_record_batches([task])

    is_plain = not deletes and len(metadata.schemas) == 1 and all(file.endswith(".parquet") for file in files)
    return Logged(schema, tuple(files if is_plain else ()), (), batches)


def _version(metadata: Path) -> tuple[int, int]:
    """00003-….metadata.json or v3.metadata.json; the newest of equals by its time."""
    digits = metadata.name.removeprefix("v").partition("-")[0].partition(".")[0]
    return (int(digits) if digits.isdigit() else -1, metadata.stat().st_mtime_ns)
