"""Writes results to a folder of Parquet files, one by one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.errors import InvalidArgument

if TYPE_CHECKING:
    import pyarrow as pa


def write_parquet(frames: Iterable[pd.DataFrame], to: str | os.PathLike[str]) -> Path:
    """Write frames as one table to a new folder; raises the errors of :class:`ParquetFolder`."""
    with ParquetFolder(to) as folder:
        for frame in frames:
            folder.add(frame)
        return folder.finished()


class ParquetFolder:
    """A new folder to which frames are written as one table, one file each. It appears once it is complete.

    An index without a name is not written.

    Raises:
        InvalidArgument: the path exists already, or Parquet cannot hold a column.
    """

    def __init__(self, to: str | os.PathLike[str]) -> None:
        self._to = Path(to).expanduser()
        if self._to.exists():
            raise InvalidArgument(f"{self._to} exists already: remove it, or give another to=")
        self._schemas: list[pa.Schema] = []

    def __enter__(self) -> ParquetFolder:
        self._to.parent.mkdir(parents=True, exist_ok=True)
        self._work = Path(tempfile.mkdtemp(prefix=f".{self._to.name}.", dir=self._to.parent))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def add(self, frame: pd.DataFrame) -> None:
        """Write the next rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        try:
            table = _as_arrow(frame)
            self._schemas.append(table.schema)
            if table.num_rows or len(self._schemas) == 1:
                pq.write_table(table, self._part(len(self._schemas) - 1))
        except pa.ArrowException as error:
            raise _not_one_table(error) from error

    def finished(self) -> Path:
        """The complete folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # A column that is null in a whole batch has no type there.
            whole = pa.unify_schemas(self._schemas, promote_options="permissive") if self._schemas else pa.schema([])
            for number, schema in enumerate(self._schemas):
                part = self._part(number)
                if not schema.equals(whole) and part.exists():
                    pq.write_table(_conformed(pq.read_table(part, partitioning=None), whole), part)
        except pa.ArrowException as error:
            raise _not_one_table(error) from error
        os.chmod(self._work, 0o777 & ~_umask())
        os.rename(self._work, self._to)
        return self._to

    def _part(self, number: int) -> Path:
        return self._work / f"part-{number:06}.parquet"


def _not_one_table(error: Any) -> InvalidArgument:
    return InvalidArgument(f"the results cannot be written as one Parquet table: {error}")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    import pyarrow as pa

    named = any(name is not None for name in frame.index.names)
    plain = frame.reset_index() if named else frame.reset_index(drop=True)
    plain.attrs = {}
    plain.columns = [str(label) for label in plain.columns]
    return pa.Table.from_pandas(plain, preserve_index=False).replace_schema_metadata(None)


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
