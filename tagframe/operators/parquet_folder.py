"""Writes results to a folder of Parquet files, one by one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, get_args

import pandas as pd

from tagframe.errors import FolderInUse, InvalidArgument
from tagframe.storage import locked, writing

if TYPE_CHECKING:
    import pyarrow as pa

IfExists: TypeAlias = Literal["error", "replace"]
_OURS = {b"tagframe.to": b"1"}
"""The metadata of a file that was written here."""


class ParquetFolder:
    """A folder to which frames are written as one table, one file each. It appears once it is complete.

    Until then its files are in a dot folder beside it, which belongs to one run at a time. What a killed run has
    left there is removed by the next run.

    An index without a name is not written.

    Args:
        to: the folder.
        if_exists: "error" refuses a folder that exists; "replace" replaces one that was written here.

    Attributes:
        path: the folder.

    Raises:
        InvalidArgument: the path exists already, or Parquet cannot hold a column.
        FolderInUse: another run writes to it.
        NotWritten: there is no space, or no right to write.
    """

    def __init__(self, to: str | os.PathLike[str], if_exists: IfExists = "error") -> None:
        if if_exists not in get_args(IfExists):
            raise InvalidArgument(f"if_exists must be one of {get_args(IfExists)}; got {if_exists!r}")
        self.path = Path(to).expanduser()
        self._if_exists = if_exists
        self._work = self.path.with_name(f".{self.path.name}.tagframe")
        self._refuse()
        self._schemas: list[pa.Schema] = []

    def _refuse(self) -> None:
        if not self.path.exists():
            return
        if self._if_exists == "error":
            raise InvalidArgument(f"{self.path} exists already: remove it, give another to=, or if_exists='replace'")
        if not all(map(_is_ours, self.path.iterdir() if self.path.is_dir() else [self.path])):
            raise InvalidArgument(f"{self.path} was not written by to=, so it is not replaced: give another to=")

    def __enter__(self) -> Self:
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock = locked(Path(f"{self._work}-lock"))
            except BlockingIOError as error:
                raise FolderInUse(f"another run writes to {self.path}: wait, or give another to=") from error
        try:
            self._refuse()  # another run may have ended meanwhile
            shutil.rmtree(self._work, ignore_errors=True)
            with self._writing():
                self._work.mkdir(mode=0o700)
        except BaseException:
            self._lock.close()
            raise
        return self

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Errors of files and of Arrow, by name."""
        import pyarrow as pa

        try:
            with writing("to=", self.path):
                yield
        except pa.ArrowException as error:
            raise InvalidArgument(f"the results cannot be written as one Parquet table: {error}") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        self._lock.close()
        with contextlib.suppress(OSError):  # another run may have it by now
            os.unlink(f"{self._work}-lock")

    def add(self, frame: pd.DataFrame) -> None:
        """Write the next rows of the result."""
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        with self._writing():
            table = _as_arrow(frame)
            self._schemas.append(table.schema)
            pq.write_table(table.replace_schema_metadata(_OURS), self._part(len(self._schemas) - 1))

    def finished(self) -> Path:
        """The complete folder."""
        with self._writing():
            self._conform()
            mask = os.umask(0o077)
            os.umask(mask)
            os.chmod(self._work, 0o777 & ~mask)
            replaced = self.path.with_name(f"{self._work.name}-replaced")
            if self.path.exists():
                shutil.rmtree(replaced, ignore_errors=True)
                os.rename(self.path, replaced)
            os.rename(self._work, self.path)
            shutil.rmtree(replaced, ignore_errors=True)
        return self.path

    def _conform(self) -> None:
        """Give all files one schema: a column that is null in a whole batch has no type there."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole = pa.unify_schemas(self._schemas, promote_options="permissive") if self._schemas else pa.schema([])
        for number, schema in enumerate(self._schemas):
            part = self._part(number)
            if number and not pq.read_metadata(part).num_rows:
                part.unlink()
            elif not schema.equals(whole):
                table = pq.read_table(part, partitioning=None)
                pq.write_table(_conformed(table, whole.with_metadata(_OURS)), part)

    def _part(self, number: int) -> Path:
        return self._work / f"part-{number:06}.parquet"


def _is_ours(file: Path) -> bool:
    """Whether this is a file that was written here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with contextlib.suppress(OSError, pa.ArrowException):
        return _OURS.items() <= (pq.read_schema(file).metadata or {}).items()
    return False


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
