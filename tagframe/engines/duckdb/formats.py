"""Delta and Iceberg tables: what their logs tell, and their rows for DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagframe.engines.base import quoted
from tagframe.engines.duckdb.tables import LakeTable
from tagframe.errors import MissingExtra, UnreadableTable

if TYPE_CHECKING:
    import pyarrow as pa

_DELTA_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "appendOnly", "invariants", "checkConstraints"}
"""What a table may use and still have its rows in its files as they are."""
_READ_BY_ITSELF = {*_DELTA_FEATURES, "deletionVectors", "columnMapping"}
"""What deltalake's own engine reads, where Arrow would take the files for the rows."""


@dataclass(frozen=True)
class Logged:
    """A table whose log tells which files count.

    Attributes:
        schema: of its rows.
        rows: as the log counts them; None where it does not.
        nulls, minimum, maximum: by column; what the log does not tell is not there.
        source: what DuckDB reads in its place: an Arrow dataset, which is to be registered.
    """

    schema: pa.Schema
    rows: int | None
    nulls: dict[str, int]
    minimum: dict[str, Any]
    maximum: dict[str, Any]
    source: Any


def logged(table: LakeTable) -> Logged:
    """What the log of a Delta or Iceberg table tells.

    Raises:
        MissingExtra: its reader is not installed.
        UnreadableTable: it cannot be read, or not rightly.
    """
    return _delta(table.place) if table.format == "delta" else _iceberg(table.place)


def _delta(place: Path) -> Logged:
    try:
        import deltalake
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra(
            f"{place} is a Delta table, and deltalake is not installed: pip install 'tagframe[delta]'"
        ) from error
    try:
        delta = deltalake.DeltaTable(str(place))
        odd = set(delta.protocol().reader_features or ()) - _DELTA_FEATURES
        if odd <= _READ_BY_ITSELF and (odd or delta.protocol().min_reader_version > 1):
            return _delta_by_itself(delta)
        if odd:
            raise UnreadableTable(
                f"{place} is a Delta table with {', '.join(sorted(odd))}, which deltalake does not read; write it anew "
                "without, or open a copy as Parquet"
            )
        dataset = delta.to_pyarrow_dataset()
        actions = pa.table(delta.get_add_actions(flatten=True))
    except (MissingExtra, UnreadableTable):
        raise
    except Exception as error:  # deltalake's and Arrow's own
        raise UnreadableTable(f"{place} cannot be read as a Delta table: {error}") from error
    names = dataset.schema.names
    counted = actions.column_names
    return Logged(
        schema=dataset.schema,
        rows=_total(actions, "num_records"),
        nulls={name: total for name in names if (total := _total(actions, f"null_count.{name}")) is not None},
        minimum={name: end for name in names if f"min.{name}" in counted and (end := _end(actions, name, "min"))},
        maximum={name: end for name in names if f"max.{name}" in counted and (end := _end(actions, name, "max"))},
        source=dataset,
    )


def _total(actions: pa.Table, column: str) -> int | None:
    """The sum over all files; None where one does not tell."""
    if column not in actions.column_names or actions[column].null_count:
        return 0 if not len(actions) else None
    return int(sum(actions[column].to_pylist()))


def _end(actions: pa.Table, name: str, which: str) -> Any:
    values = [value for value in actions[f"{which}.{name}"].to_pylist() if value is not None]
    return (min if which == "min" else max)(values) if values else None


def _delta_by_itself(delta: Any) -> Logged:
    """By deltalake's engine, which heeds deletion vectors and names of columns; the log counts deleted rows, too."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    from tagframe.engines.duckdb.scanned import Scanned, comparisons

    # One partition reads file after file: rows have the same order each time.
    query = QueryBuilder({"datafusion.execution.target_partitions": "1"}).register("rows", delta)
    schema = pa.table(query.execute("SELECT * FROM rows LIMIT 0")).schema

    def read(names: Sequence[str], condition: Any) -> pa.RecordBatchReader:
        tests = [f"{quoted(name)} {sign.replace('==', '=')} {_literal(value)}"
                 for name, sign, value in comparisons(condition, schema)]  # fmt: skip
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return pa.RecordBatchReader.from_stream(
            query.execute(f"SELECT {', '.join(map(quoted, names))} FROM rows{where}")
        )

    return Logged(schema, None, {}, {}, {}, Scanned(schema, read))


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _iceberg(place: Path) -> Logged:
    """Read file by file, wherever a statement asks for it, of the snapshot that was the newest when it was opened."""
    try:
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise MissingExtra(
            f"{place} is an Iceberg table, and pyiceberg is not installed: pip install 'tagframe[iceberg]'"
        ) from error
    from tagframe.engines.duckdb.scanned import Scanned

    try:
        newest = max((place / "metadata").glob("*.metadata.json"), key=_version)
        table = StaticTable.from_metadata(str(newest))
        tasks = list(table.scan().plan_files())
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    except Exception as error:  # pyiceberg's and Arrow's own
        raise UnreadableTable(f"{place} cannot be read as an Iceberg table: {error}") from error
    rows = None if any(task.delete_files for task in tasks) else sum(task.file.record_count for task in tasks)
    return Logged(schema, rows, {}, {}, {}, Scanned(schema, partial(_iceberg_rows, table, schema)))


def _iceberg_rows(table: Any, schema: pa.Schema, names: Sequence[str], condition: Any) -> pa.RecordBatchReader:
    """The rows of some columns, without files of which no row fits the condition; one file at a time in memory."""
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
            # Of several files at once it would hold all that are read, and not yet wanted.
            one = ArrowScan(scan.table_metadata, scan.io, shown, scan.row_filter)
            for batch in one.to_record_batches([task]):
                yield from pa.Table.from_batches([batch]).cast(part).to_batches()

    return pa.RecordBatchReader.from_batches(part, batches())


def _version(metadata: Path) -> tuple[int, int]:
    """00003-….metadata.json or v3.metadata.json; the newest of equals by its time."""
    digits = metadata.name.removeprefix("v").partition("-")[0].partition(".")[0]
    return (int(digits) if digits.isdigit() else -1, metadata.stat().st_mtime_ns)
