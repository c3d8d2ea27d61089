"""What a source of tables can do.

An engine is one file, or the frames of one mapping. It names its tables, gives their rows (in pieces for profiling,
whole, or some of them), tells whether it has changed, and runs statements over them. Nothing outside this room opens a
source of tables.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd
import pyarrow as pa

from tagframe.engines.sql_text import quoted as quoted
from tagframe.errors import InvalidArgument, SQLFailed, UnreadableTable

if TYPE_CHECKING:
    import sqlglot

    from tagframe.engines.pushdown import Pushdown

CHUNK_ROWS = 50_000

Values = Sequence[Any] | pd.Series
Joins = Literal["all", "few", ""]
"""Which merges of its tables an engine runs itself instead of giving their rows: all, those of few rows, or none."""


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key that the source declares, or that the user knows of; several columns where it is composite.

    Attributes:
        columns: of the referencing table.
        other_table, other_columns: what they reference.
        other_database: the database of the other table; "" for the same one.
        given: whether the user declared it, or it was learned.
        ran: whether it was learned from statements that were run.
        by: the semantic model that declares it; "" if it is the source.
        holds: for what share of the rows it was found to hold, in [0, 1]; None if unknown.
    """

    columns: tuple[str, ...]
    other_table: str
    other_columns: tuple[str, ...]
    other_database: str = ""
    given: bool = False
    ran: bool = False
    by: str = ""
    holds: float | None = None


@dataclass(frozen=True)
class TableShape:
    """What a source says about a table before its rows are read.

    Attributes:
        name: as in the source.
        columns: names, in order.
        declared_types: the source's own word for each column's type, "" where it has none.
        primary_key, foreign_keys: as declared.
        called, database: its name and its database in a corpus, if the source has tables of several databases; "" for
            the name in the source, and for the whole source as one database.
        unique: columns, and sets of them, that the source keeps free of duplicates.
        comment, column_comments: the source's comments on the table and on each column, or nothing.
        state: a text that changes whenever the table does; "" if only the fingerprint of the whole source tells.
    """

    name: str
    columns: tuple[str, ...]
    declared_types: tuple[str, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    called: str = ""
    database: str = ""
    unique: tuple[tuple[str, ...], ...] = ()
    comment: str = ""
    column_comments: tuple[str, ...] = ()
    state: str = ""


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table: ``columns[j]`` holds their values in column j, each of length ``rows``."""

    rows: int
    columns: Sequence[Values]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Chunk:
        """The rows of a frame."""
        return cls(len(frame), [cells for _, cells in frame.items()])

    @classmethod
    def several(cls, frame: pd.DataFrame, rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
        """The rows of a frame, so many at a time."""
        return (cls.of(frame.iloc[start : start + rows]) for start in range(0, len(frame), rows))


@dataclass(frozen=True)
class ColumnStatistics:
    """What a source knows about a column without a pass over its rows.

    Attributes:
        values: some of its distinct values, the most frequent first, as :meth:`Engine.chunks` would give them.
        whole: whether they are all of them.
        nulls, distinct: number of nulls, and of distinct values that are not null; None if the source does not know.
        minimum, maximum: None if it does not know, or if there are none.
    """

    values: Sequence[Any] = ()
    whole: bool = False
    nulls: int | None = None
    distinct: int | None = None
    minimum: Any = None
    maximum: Any = None


@dataclass(frozen=True)
class TableStatistics:
    """What a source knows about a table without a pass over its rows.

    Attributes:
        rows: of the table; None if only its names are known, because looking at its rows takes too long.
        columns: in the table's order; None if its rows should be read, because they are few or nothing else tells of
            them: :meth:`Engine.chunks`.
    """

    rows: int | None
    columns: tuple[ColumnStatistics, ...] | None


@dataclass(frozen=True)
class Stamp:
    """What tells whether a file has changed: its size in bytes, its time of change in ns, and its SHA-256."""

    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True)
class SQLLimits:
    """The limits of a statement that a model wrote.

    Attributes:
        rows: at most this many in its result; a larger result is refused, not cut.
        seconds: of checking and running; after that it is killed.
        memory: megabytes, in addition to the tables that are copied for it; a quarter of them for its result. On
            systems that cannot limit a process (Windows, macOS), only SQLite's own heap has this limit.
    """

    rows: int = 10_000
    seconds: float = 30.0
    memory: int = 512

    def __post_init__(self) -> None:
        for name, kinds, least in (("rows", int, 0), ("seconds", (int, float), 0.01), ("memory", int, _LEAST_MEMORY)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
                kind = "a whole number" if kinds is int else "a number"
                unit = " of megabytes" if name == "memory" else ""
                raise InvalidArgument(f"SQLLimits({name}=…) must be {kind}{unit}, at least {least}; got {value!r}")


_LEAST_MEMORY = 64
NARROW_IT = "narrow it, or raise SQLLimits(rows=…)"
"""Advice to a person, which a model cannot follow."""


@dataclass(frozen=True)
class Dialect:
    """The SQL of an engine.

    Attributes:
        name: of its SQL, as sqlglot calls it.
        title: of its SQL, as people call it.
        tree: sqlglot's class that reads and writes it without changing a statement.
        functions: those that an untrusted statement may call, in lower case.
        fold: gives a name in the form in which the engine compares names.
        entries_seen: which entries of a WITH each of them may name: those before it, and itself if it is recursive
            ("before"), or all of them, always or if the WITH is recursive.
        rules: hints for the model that writes statements, where they differ from SQLite's.
        divides_whole: whether dividing two whole numbers gives a whole number.
        brought: makes the Arrow table in which a frame is sent with a statement.
    """

    name: str
    title: str
    tree: type[sqlglot.Dialect]
    brought: Callable[[pd.DataFrame], pa.Table]
    functions: frozenset[str]
    fold: Callable[[str], str]
    entries_seen: Literal["before", "all if recursive", "all"] = "before"
    rules: str = ""
    divides_whole: bool = True


@dataclass(frozen=True)
class Readable:
    """A table that a statement may read: its name in the engine, and the columns that the statement may read."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class UntrustedStatement:
    """One untrusted statement: it may read the named tables, within the limits, and do nothing else.

    Attributes:
        sql: in the engine's dialect. It is run as it is written: rendering it from its parse could change a cast or a
            function.
        tables: of the engine, by their names in the statement.
        relations: tables that are sent with the statement, by their names in it.
        limits: of rows, time and memory.
        explain: only compile it, to find unknown columns before anything is paid for.
        spent: seconds that were spent on checking it; they count as its time.
    """

    sql: str
    tables: Mapping[str, Readable]
    relations: Mapping[str, pa.Table]
    limits: SQLLimits
    explain: bool = False
    spent: float = 0.0

    @property
    def seconds_left(self) -> float:
        """The seconds that it may still take.

        Raises:
            SQLFailed: there are none.
        """
        return self._left(self.limits.seconds - self.spent)

    def until(self, deadline: float) -> float:
        """The seconds until a deadline, by the monotonic clock; raises as :attr:`seconds_left`."""
        return self._left(deadline - time.monotonic())

    def _left(self, seconds: float) -> float:
        if seconds <= 0:
            raise SQLFailed(
                f"the SQL was stopped after {self.limits.seconds:g} seconds, while it was checked: {self.excerpt}"
            )
        return seconds

    @property
    def excerpt(self) -> str:
        """The statement as messages show it."""
        return f"{self.sql[:200]!r}"

    def check_rows(self, rows: int) -> None:
        """Refuse a result with too many rows.

        Raises:
            SQLFailed: it has more rows than the limit.
        """
        if rows > self.limits.rows:
            raise SQLFailed(f"the SQL gives more than {self.limits.rows:,} rows; {NARROW_IT}: {self.excerpt}")


class Engine(ABC):
    """One source of tables: a file, a folder, a server, or a mapping of frames.

    What is not abstract is what holds for a source that is not a database, and whose tables are read whole.

    Attributes:
        path: the file or folder; None for what is no file.
        kind: ``"sqlite"``, ``"csv"``, ``"parquet"``, ``"duckdb"``, ``"postgres"``, ``"frames"``, ….
        dialect: how statements for :meth:`execute` are written.
        is_database: whether the source is a database by itself, named after its file; otherwise its folder is the
            database.
        is_copied: whether a statement runs over copies of its tables.
        picks_rows: whether some rows of its tables can usually be read without the others.
        joins: which merges it runs: see :meth:`pushdown`.
        default_schema: the schema whose tables a statement finds without naming it; None if the databases of its tables
            are no schemas.
    """

    path: Any
    kind: Any
    dialect: Any
    is_database = False
    is_copied = False
    picks_rows = False
    joins: ClassVar[Joins] = ""
    default_schema: ClassVar[str | None] = None

    @property
    def identity(self) -> str:
        """The name of the source in messages."""
        return str(self.path)

    @abstractmethod
    def shapes(self) -> list[TableShape]:
        """The tables, without their rows.

        Raises:
            UnreadableTable: the source has another format than its name says, or is damaged.
        """

    @property
    def csv_files(self) -> tuple[Path, ...]:
        """The files to which options for CSV files may apply."""
        return ()

    def closed(self) -> list[UnreadableTable]:
        """The parts of the source that its user has no right to read; these tables are not among the shapes."""
        return []

    def chunks(self, shape: TableShape) -> Iterator[Chunk]:
        """The rows of a table in pieces, in the columns of the shape.

        Raises:
            UnreadableTable: the rows cannot be read.
        """
        return Chunk.several(self.scan(shape.name, shape.columns))

    def statistics(self, shapes: Sequence[TableShape]) -> Iterator[TableStatistics | UnreadableTable] | None:
        """What the source knows about tables, one after the other, without a pass over their rows.

        None if it knows nothing: then rows are read. A table about which nothing can be known gives an error instead.
        """
        return None

    @abstractmethod
    def scan(self, table: str, columns: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
        """The rows of a table, in the source's order; all columns, and all rows, where None.

        Raises:
            UnreadableTable: the rows cannot be read.
        """

    def definitions(self) -> Mapping[tuple[str, str], str]:
        """The SQL of what the source computes from other columns, by table and column.

        The column is "" for a view that is a table here; otherwise it is a generated column of a table.

        Raises:
            UnreadableTable, ServerGone: it cannot be looked up.
        """
        return {}

    def views(self) -> list[str]:
        """The definitions of views, as far as they are known; raises as :meth:`definitions`."""
        return [text for (_, column), text in self.definitions().items() if text and not column]

    def only(self, columns: Mapping[str, Collection[str]]) -> Engine:
        """The same source, without what its pickle would have of other tables and columns.

        Args:
            columns: by the names of their tables.
        """
        return self

    @abstractmethod
    def fingerprint(self, known: Stamp | None = None) -> Stamp | None:
        """The state of a file; its content is not read again if size and time are those of ``known``.

        None for what lives in memory.

        Raises:
            OSError: the file cannot be read.
        """

    def kept_open(self) -> AbstractContextManager[None]:
        """A block in which this thread reads many tables: the source is opened only once."""
        return nullcontext()

    def pushdown(self, tables: Sequence[str]) -> AbstractContextManager[Pushdown] | None:
        """Runs parts of a merge of these tables in the source, over one state of them; None if it can run none."""
        return None

    @abstractmethod
    def execute(self, statement: UntrustedStatement) -> pd.DataFrame:
        """Run one untrusted statement: it can read the named tables, within the limits, and do nothing else.

        Returns:
            Its rows, with the dtypes of :func:`~tagframe.engines.cells.typed_series`; the second of two columns with
            the same name is called ``name_2``.

        Raises:
            UnsafeSQL: it reads or calls something that is not allowed.
            SQLFailed: it does not compile, or exceeds its limits.
            UnreadableTable: the source cannot be read.
        """
