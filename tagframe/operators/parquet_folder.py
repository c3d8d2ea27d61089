"""Writes results to a folder of Parquet files, one by one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import pandas as pd

from tagframe import results
from tagframe.errors import FailedRowsWarning, FolderInUse, InvalidArgument, warn
from tagframe.storage import locked, writing

if TYPE_CHECKING:
    import pyarrow as pa

IfExists: TypeAlias = Literal["error", "replace", "resume"]
_CALL, _ROWS, _SUMMARY = b"tagframe.call", b"tagframe.rows", b"tagframe.summary"
"""The metadata of a file: which call made it, from which rows, and the summary of that."""
SUMMARY = ".summary.json"
"""The file with the summary of all calls; readers of such folders leave out dot files."""


class ParquetFolder:
    """A folder to which frames are written as one table, one file each. It appears once it is complete.

    Until then its files are in a dot folder beside it, which belongs to one run at a time. What a killed run has
    left there is removed by the next run, or used by it with ``if_exists="resume"``.

    An index without a name is not written.

    Args:
        to: the folder.
        if_exists: "error" refuses a folder that exists; "replace" replaces one that was written here; "resume" gives
            back a complete one, and keeps the files of a run that has not ended and that were made from the same rows.
        call: the call that makes the frames, as :func:`call_key` gives it.

    Attributes:
        path: the folder.

    Raises:
        InvalidArgument: the path exists already, or Parquet cannot hold a column.
        FolderInUse: another run writes to it.
        NotWritten: there is no space, or no right to write.
    """

    def __init__(self, to: str | os.PathLike[str], if_exists: IfExists = "error", call: str = "") -> None:
        if if_exists not in get_args(IfExists):
            raise InvalidArgument(f"if_exists must be one of {get_args(IfExists)}; got {if_exists!r}")
        self.path = Path(to).expanduser()
        self._if_exists, self._call = if_exists, call
        self._work = self.path.with_name(f".{self.path.name}.tagframe")
        self._refuse()
        self._schemas: list[pa.Schema] = []
        self._summaries: list[dict[str, Any]] = []

    def _refuse(self) -> None:
        if not self.path.exists():
            return
        if self._if_exists == "error":
            raise InvalidArgument(
                f"{self.path} exists already: remove it, give another to=, or if_exists='replace' or 'resume'"
            )
        files = [file for file in self.path.iterdir() if file.name != SUMMARY] if self.path.is_dir() else [self.path]
        calls = {_metadata_of(file).get(_CALL) for file in files}
        if None in calls:
            raise InvalidArgument(f"{self.path} was not written by to=, so it is not replaced: give another to=")
        if self._if_exists == "resume" and calls - {self._call.encode()}:
            raise InvalidArgument(
                f"{self.path} has the results of another call: give another to=, or if_exists='replace'"
            )

    @property
    def complete(self) -> bool:
        """Whether the results are there already, and nothing is to be done."""
        return self._if_exists == "resume" and self.path.exists()

    def resumed(self) -> Path:
        """The folder that is complete; a warning says how many of its rows have no answer."""
        summary: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            summary = json.loads((self.path / SUMMARY).read_bytes())
        if failed := summary.get("failed"):
            warn(
                f"{self.path} is complete, and {failed:,} of its {summary.get('rows', failed):,} rows have no answer: "
                "if_exists='replace' asks for these again, and the store has the others",
                FailedRowsWarning,
            )
        return self.path

    def __enter__(self) -> Self:
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock = locked(Path(f"{self._work}-lock"))
            except BlockingIOError as error:
                raise FolderInUse(f"another run writes to {self.path}: wait, or give another to=") from error
        try:
            self._refuse()  # another run may have ended meanwhile
            if self._if_exists != "resume":
                shutil.rmtree(self._work, ignore_errors=True)
            with self._writing():
                self._work.mkdir(exist_ok=True, mode=0o700)
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
        if kind is None or self._if_exists != "resume":
            shutil.rmtree(self._work, ignore_errors=True)
        self._lock.close()
        with contextlib.suppress(OSError):  # another run may have it by now
            os.unlink(f"{self._work}-lock")

    def has(self, rows: pd.DataFrame) -> bool:
        """Whether a run that has not ended wrote the results of these rows, the next ones; if so, they are kept."""
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        part = self._part(len(self._schemas))
        metadata = _metadata_of(part)
        summary = json.loads(metadata.pop(_SUMMARY, b"{}"))
        if metadata != self._metadata(rows):
            return False
        self._summaries.append(summary)
        self._schemas.append(pq.read_schema(part).remove_metadata())
        return True

    def add(self, frame: pd.DataFrame, rows: pd.DataFrame | None = None) -> None:
        """Write the next rows of the result, which are made from ``rows``."""
        import pyarrow.parquet as pq

        with self._writing():
            table = _as_arrow(frame)
            self._schemas.append(table.schema)
            self._summaries.append(results.recall(frame, "summary") or {})
            metadata = {**self._metadata(rows), _SUMMARY: json.dumps(self._summaries[-1]).encode()}
            pq.write_table(table.replace_schema_metadata(metadata), self._part(len(self._schemas) - 1))

    def finished(self) -> Path:
        """The complete folder."""
        with self._writing():
            self._conform()
            for part in self._work.glob("part-*"):  # of a longer run before
                if int(part.stem.removeprefix("part-")) >= len(self._schemas):
                    part.unlink()
            if summary := _added_up(self._summaries):
                text = json.dumps(summary, ensure_ascii=False, indent=2) + os.linesep
                (self._work / SUMMARY).write_text(text, encoding="utf-8")
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
                pq.write_table(_conformed(table, whole.with_metadata(table.schema.metadata)), part)

    def _part(self, number: int) -> Path:
        return self._work / f"part-{number:06}.parquet"

    def _metadata(self, rows: pd.DataFrame | None) -> dict[bytes, bytes]:
        return {_CALL: self._call.encode(), _ROWS: b"" if rows is None else rows_key(rows).encode()}


def call_key(*parts: Any) -> str:
    """A name for a call, by its operator, its model and its arguments: the same in another process."""
    return hashlib.sha256(_text_of(parts).encode()).hexdigest()


def _text_of(value: Any) -> str:
    if isinstance(value, pd.DataFrame):
        return rows_key(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_text_of(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text_of, value))}]"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def rows_key(frame: pd.DataFrame) -> str:
    """A name for the cells, the columns and the index of a frame."""
    try:
        hashed = pd.util.hash_pandas_object(frame)
    except TypeError:  # cells such as lists
        hashed = pd.util.hash_pandas_object(frame.astype(str))
    return hashlib.sha256(repr(list(frame.columns)).encode() + hashed.to_numpy().tobytes()).hexdigest()


def _metadata_of(part: Path) -> dict[bytes, bytes]:
    """Our metadata of a file; empty if the file is missing or incomplete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(part).metadata or {}
    except (OSError, pa.ArrowException):
        return {}
    return {name: metadata[name] for name in (_CALL, _ROWS, _SUMMARY) if name in metadata}


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


def _added_up(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One summary of several runs of an operator, as over batches."""
    whole: dict[str, Any] = {}
    for one in summaries:
        for name, value in one.items():
            known = whole.get(name)
            if name not in whole:
                whole[name] = value
            elif name == "dollars":
                whole[name] = None if known is None or value is None else known + value
            elif isinstance(value, int | float):
                whole[name] = (known or 0) + value
            elif known is None:
                whole[name] = value
    return whole
