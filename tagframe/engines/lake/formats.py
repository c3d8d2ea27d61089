"""Delta and Iceberg tables: what their logs tell, and their rows for DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagframe.engines.lake.tables import LakeTable
from tagframe.errors import MissingExtra, UnreadableTable

if TYPE_CHECKING:
    import pyarrow as pa

_DELTA_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "appendOnly", "invariants", "checkConstraints"}
"""What a table may use and still have its rows in its files as they are."""
_MOST_COPIED = 5_000_000


@dataclass(frozen=True)
class Logged:
    """A table whose log tells which files count.

    Attributes:
        schema: of its rows.
        rows: as the log counts them; None where it does not.
        nulls, minimum, maximum: by column; what the log does not tell is not there.
        source: what DuckDB reads in its place: an Arrow dataset or table, which is to be registered.
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
        if odd:
            raise UnreadableTable(
                f"{place} is a Delta table with {', '.join(sorted(odd))}, so that its files are not its rows; write it "
                "anew without (of deletion vectors: REORG TABLE … APPLY (PURGE)), or open a copy as Parquet"
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


def _iceberg(place: Path) -> Logged:
    try:
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise MissingExtra(
            f"{place} is an Iceberg table, and pyiceberg is not installed: pip install 'tagframe[iceberg]'"
        ) from error
    try:
        newest = max((place / "metadata").glob("*.metadata.json"), key=_version)
        scan = StaticTable.from_metadata(str(newest)).scan()
        counts = [task.file.record_count for task in scan.plan_files()]
        if sum(counts) > _MOST_COPIED:
            raise UnreadableTable(
                f"{place} is an Iceberg table of {sum(counts):,} rows, and more than {_MOST_COPIED:,} are not copied "
                "into memory; tf.open_corpus opens a copy of it as Parquet"
            )
        rows = scan.to_arrow()
    except UnreadableTable:
        raise
    except Exception as error:  # pyiceberg's and Arrow's own
        raise UnreadableTable(f"{place} cannot be read as an Iceberg table: {error}") from error
    return Logged(rows.schema, rows.num_rows, {}, {}, {}, rows)


def _version(metadata: Path) -> tuple[int, int]:
    """00003-….metadata.json or v3.metadata.json; the newest of equals by its time."""
    digits = metadata.name.removeprefix("v").partition("-")[0].partition(".")[0]
    return (int(digits) if digits.isdigit() else -1, metadata.stat().st_mtime_ns)
