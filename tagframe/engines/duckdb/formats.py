"""Delta and Iceberg tables: what their logs tell, and their rows for DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tagframe.engines.base import quoted
from tagframe.engines.duckdb.tables import LakeTable
from tagframe.engines.files.limits import Bounds
from tagframe.engines.sql_text import quoted_text
from tagframe.errors import MissingExtra, UnreadableTable

if TYPE_CHECKING:
    import pyarrow as pa

_DELTA_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "appendOnly", "invariants", "checkConstraints"}
"""Features of tables whose files hold exactly their rows."""
_READ_BY_ITSELF = {*_DELTA_FEATURES, "deletionVectors", "columnMapping"}
"""Features that deltalake's own engine reads; Arrow would take the files for the rows."""


@dataclass(frozen=True)
class Logged:
    """A table whose log tells which files count.

    Attributes:
        source: what DuckDB reads for it: an Arrow dataset, which has to be registered.
        footers: gives those of its files, by :mod:`pyarrow.parquet`; None if they do not tell the rows.
    """

    source: Any
    footers: Callable[[], list[Any]] | None = None


def logged(table: LakeTable) -> Logged:
    """What the log of a Delta or Iceberg table tells.

    Raises:
        MissingExtra: its reader is not installed.
        UnreadableTable: it cannot be read, or not correctly.
    """
    bounds = Bounds(table.place, follow_links=table.follows_links)
    return _delta(table.place, bounds) if table.format == "delta" else _iceberg(table.place, bounds)


def _check_location(location: str, bounds: Bounds) -> None:
    """Refuse a file of a log that is on another machine, or outside the bounds.

    Raises:
        UnreadableTable: it is.
    """
    scheme, separator, rest = location.partition("://")
    if separator and scheme != "file":
        raise UnreadableTable(f"it refers to {location}, but only files on this machine are read: copy the table here")
    bounds.check(bounds.folder / (rest if separator else location))


def _delta(path: Path, bounds: Bounds) -> Logged:
    try:
        import deltalake
    except ImportError as error:
        raise MissingExtra(
            f"{path} is a Delta table, and deltalake is not installed: pip install 'tagframe[delta]'"
        ) from error
    try:
        delta = deltalake.DeltaTable(str(path))
        for file in delta.file_uris():
            _check_location(unquote(file), bounds)
        odd = set(delta.protocol().reader_features or ()) - _DELTA_FEATURES
        if odd <= _READ_BY_ITSELF and (odd or delta.protocol().min_reader_version > 1):
            return _delta_by_itself(delta)
        if odd:
            raise UnreadableTable(
                f"{path} is a Delta table with {', '.join(sorted(odd))}, which deltalake cannot read: rewrite it "
                "without them, or open a copy in Parquet format"
            )
        dataset = delta.to_pyarrow_dataset()
    except (MissingExtra, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # deltalake's and Arrow's own; deltalake panics at names like "a%20b"
        raise UnreadableTable(f"{path} cannot be read as a Delta table: {error}") from error
    return Logged(dataset, lambda: [one.metadata for one in dataset.get_fragments()])


def _delta_by_itself(delta: Any) -> Logged:
    """By deltalake's engine, which respects deletion vectors and column names; the log's counts include deleted
    rows."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    from tagframe.engines.duckdb.scanned import Scanned, comparisons

    # One partition reads file after file: rows have the same order each time.
    query = QueryBuilder({"datafusion.execution.target_partitions": "1"}).register("rows", delta)
    schema = pa.table(query.execute("SELECT * FROM rows LIMIT 0")).schema

    def read(names: Sequence[str], condition: Any) -> pa.RecordBatchReader:
        tests = [f"{quoted(name)} {sign.replace('==', '=')} {value if isinstance(value, int) else quoted_text(value)}"
                 for name, sign, value in comparisons(condition, schema)]  # fmt: skip
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return pa.RecordBatchReader.from_stream(
            query.execute(f"SELECT {', '.join(map(quoted, names))} FROM rows{where}")
        )

    return Logged(Scanned(schema, read))


def _iceberg(path: Path, bounds: Bounds) -> Logged:
    """Read file by file when a statement asks for it, from the newest snapshot at the time of opening."""
    try:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io.pyarrow import PyArrowFileIO, schema_to_pyarrow
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise MissingExtra(
            f"{path} is an Iceberg table, and pyiceberg is not installed: pip install 'tagframe[iceberg]'"
        ) from error
    from tagframe.engines.duckdb.scanned import Scanned

    class OnThisMachine(PyArrowFileIO):  # type: ignore[misc]
        """Opens local files and nothing else: metadata may name any machine, and any code that opens files."""

        def new_input(self, location: str) -> Any:
            """A file to be read."""
            _check_location(location, bounds)
            return super().new_input(location)

    try:
        newest = max((path / "metadata").glob("*.metadata.json"), key=_version)
        files = OnThisMachine()
        metadata = FromInputFile.table_metadata(files.new_input(str(newest)))
        table = StaticTable(("static-table", str(newest)), metadata, str(newest), files, NoopCatalog("static-table"))
        tasks = list(table.scan().plan_files())
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        for task in tasks:
            for file in (task.file, *task.delete_files):
                _check_location(file.file_path, bounds)
    except Exception as error:  # pyiceberg's and Arrow's own
        raise UnreadableTable(f"{path} cannot be read as an Iceberg table: {error}") from error
    # Counted from its rows, which read no column: the log may say anything.
    return Logged(Scanned(schema, partial(_iceberg_rows, table, schema)))


def _iceberg_rows(table: Any, schema: pa.Schema, names: Sequence[str], condition: Any) -> pa.RecordBatchReader:
    """The rows of some columns, without files in which no row fits the condition; one file at a time in memory."""
    import pyarrow as pa
    from pyiceberg import expressions
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.schema import Schema

    from tagframe.engines.duckdb.scanned import comparisons

    signs = {"==": "EqualTo", "<": "LessThan", "<=": "LessThanOrEqual", ">": "GreaterThan", ">=": "GreaterThanOrEqual"}
    test: Any = expressions.AlwaysTrue()
    for name, sign, value in comparisons(condition, schema):
        test = expressions.And(test, getattr(expressions, signs[sign])(name, value))
    scan = table.scan(row_filter=test)
    whole = table.schema()
    shown = Schema(*(field for field in whole.fields if field.name in names), schema_id=whole.schema_id)
    part = pa.schema([field for field in schema if field.name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        for task in scan.plan_files():
            # With several files at once it would hold everything that is read and not yet used.
            one = ArrowScan(scan.table_metadata, scan.io, shown, scan.row_filter)
            for batch in one.to_record_batches([task]):
                yield from pa.Table.from_batches([batch]).cast(part).to_batches()

    return pa.RecordBatchReader.from_batches(part, batches())


def _version(metadata: Path) -> tuple[int, int]:
    """00003-….metadata.json or v3.metadata.json; the newest of equals by its time."""
    digits = metadata.name.removeprefix("v").partition("-")[0].partition(".")[0]
    return (int(digits) if digits.isdigit() else -1, metadata.stat().st_mtime_ns)
