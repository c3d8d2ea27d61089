"""Runs in a process of its own: an untrusted statement, inside strict limits, and sends the rows back.

It imports the standard library alone, so that the process starts in a few hundredths of a second and fits into a small
address space; :mod:`tagframe.engines.worker_program` runs it.

These limits hold a statement: the address space of the process and SQLite's own heap, which also has temporary tables
and sorters (memory); the longest text, the widest row, the deepest expression (``sqlite3_limit``); the rows and bytes
of the result; an authorizer that knows which columns may be read and which functions called. The pool limits its time
and kills the process.
"""

from __future__ import annotations

import math
import pickle
import re
import sqlite3
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tagframe.engines import worker_program as protocol
from tagframe.engines.sql_text import quoted
from tagframe.engines.worker_program import Answer, Caller, Request, bound

_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 2_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 1_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_TEXT_SHARE, _RESULT_SHARE = 16, 4
"""The parts of the memory that one text, and a whole result, may take: several copies of each are made."""
_LONGEST = 1_000_000_000
_LARGEST_FILE = 64 * 2**20
_ROWS_AT_ONCE = 100


class Worker:
    """A connection for each statement."""

    is_spent = False

    def __init__(self, memory: int, caller: Caller) -> None:
        self._memory = memory

    def answer(self, request: Request) -> Answer:
        """Run a statement: column names and pickled lists of rows, or the kind of error and its message."""
        readable: Mapping[tuple[str, str], frozenset[str]] = {}
        # Not the default isolation level, in which Python would begin transactions of its own.
        main = request["copies"] or ":memory:"
        connection = sqlite3.connect(main, uri=True, isolation_level=None, cached_statements=0)
        try:
            self._begin(connection, request)
            readable = _present(connection, request)
            connection.set_authorizer(_authorizer(readable, _other_tables(connection, request), request["functions"]))
            return _rows(connection, request, self._memory // _RESULT_SHARE)
        except MemoryError:
            self.is_spent = True
            return protocol.OUT_OF_MEMORY, ""
        except sqlite3.DataError as error:  # "string or blob too big"
            return protocol.TOO_LARGE, str(error)
        except sqlite3.DatabaseError as error:
            if str(error).startswith("no such column"):
                return protocol.NO_COLUMN, str(error).partition(": ")[2], sorted(set().union(*readable.values()))
            is_refused = "not authorized" in str(error) or "prohibited" in str(error)
            return (protocol.REFUSED if is_refused else protocol.FAILED), str(error)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            return protocol.FAILED, str(error)
        finally:
            connection.close()

    def rest(self) -> None:
        """Nothing: a connection is made at once."""

    def _begin(self, connection: sqlite3.Connection, request: Request) -> None:
        """Set the limits; copied tables are the database "main", the file, if any, is "source"."""
        add_aggregates(connection)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.create_collation(MOMENT, compare_moments)
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA hard_heap_limit = {self._memory}")
        if request["file"] is not None:
            connection.execute("ATTACH DATABASE ? AS source", [request["file"]])
        longest = min(self._memory // _TEXT_SHARE, _LONGEST)
        for limit, value in {**_LIMITS, sqlite3.SQLITE_LIMIT_LENGTH: longest}.items():
            connection.setlimit(limit, value)
        bound("RLIMIT_AS", self._memory)
        # Beside a database in WAL mode a small file may be written.
        bound("RLIMIT_FSIZE", _LARGEST_FILE)


def _present(connection: sqlite3.Connection, request: Request) -> Mapping[tuple[str, str], frozenset[str]]:
    """Give tables the names of the statement, with the columns that it may read, by (database, table)."""

    def columns(database: str, table: str) -> list[str]:
        rows = connection.execute(f"PRAGMA {database}.table_xinfo({quoted(table)})").fetchall()
        if not rows:
            raise sqlite3.OperationalError(f"no such table: {table}")
        return [name for _, name, _, _, _, _, is_internal in rows if is_internal != 1]

    connection.execute("PRAGMA query_only = OFF")
    readable = {("main", name): frozenset(columns("main", name)) for name in request["relations"]}
    for name, (table, allowed, moments) in request["tables"].items():
        every = columns("source", table)
        own = [column for column in every if column in allowed]
        readable["source", table] = frozenset(own)
        if name != table or own != every or moments:
            items = [f"{quoted(one)}{f' COLLATE {MOMENT} AS {quoted(one)}' * (one in moments)}" for one in own]
            listed = ", ".join(items) or "NULL AS nothing"
            connection.execute(f"CREATE TEMP VIEW {quoted(name)} AS SELECT {listed} FROM source.{quoted(table)}")
            readable["temp", name] = readable["source", table]
    connection.execute("PRAGMA query_only = ON")
    return readable


def _other_tables(connection: sqlite3.Connection, request: Request) -> frozenset[str]:
    """The names, in lower case, of all tables that are there and that the statement may not read."""
    names = {"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema", "sqlite_sequence"}
    databases = ["main", *(["source"] if request["file"] is not None else [])]
    for query in ("PRAGMA module_list", *(f"SELECT name FROM {database}.sqlite_master" for database in databases)):
        names.update(ascii_lower(name) for (name,) in connection.execute(query))
    known = [*request["relations"], *request["tables"], *(table for table, *_ in request["tables"].values())]
    return frozenset(names - set(map(ascii_lower, known)))


def ascii_lower(name: str) -> str:
    """A name as SQLite compares it: only the letters A to Z have a lower case.

    >>> ascii_lower("Straße ÄB")
    'straße Äb'
    """
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


MOMENT = "moment"
"""The collation of copied columns of days and times."""


def compare_moments(one: str, other: str) -> int:
    """Compare two texts of days or times: a day is its midnight, T is a blank, and a zone counts beside another one.

    >>> compare_moments("2024-01-05", "2024-01-05T00:00:00"), compare_moments("2024-01-05 08:30", "2024-01-05 08:29:59")
    (0, 1)
    >>> compare_moments("2024-01-05T08:30:00Z", "2024-01-05 08:30:00")
    0
    """
    if len(one) != len(other) or one[10:11] != other[10:11]:
        zones = [_ZONE.search(text, 16) for text in (one, other)]
        one, other = [
            text if zone is None or all(zones) else text[: zone.start()]
            for text, zone in zip((one, other), zones, strict=True)
        ]
        one, other = _whole_moment(one), _whole_moment(other)
    return (one > other) - (one < other)


_ZONE = re.compile(r"(?<=[0-9])(?:Z|[+-][0-9]{2}:?[0-9]{2})$")


def _whole_moment(text: str) -> str:
    if text[4:5] != "-" or text[7:8] != "-":
        return text
    if len(text) == 10:
        return f"{text} 00:00:00"
    text = f"{text[:10]} {text[11:]}"
    if len(text) == 16:
        return f"{text}:00"
    return text.rstrip("0").rstrip(".") if text[19:20] == "." else text


def _authorizer(
    readable: Mapping[tuple[str, str], frozenset[str]], others: frozenset[str], functions: frozenset[str]
) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    def authorize(action: int, first: str | None, second: str | None, database: str | None, _view: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if ascii_lower(second or "") in functions else sqlite3.SQLITE_DENY
        if action != sqlite3.SQLITE_READ or first is None:
            return sqlite3.SQLITE_DENY
        if not second:
            # A table of which no column is read, by the name in the statement; it may be that of a subquery.
            return sqlite3.SQLITE_DENY if ascii_lower(first) in others else sqlite3.SQLITE_OK
        columns = readable.get((database or "", first), ())
        return sqlite3.SQLITE_OK if second in columns or (columns and second == "ROWID") else sqlite3.SQLITE_DENY

    return authorize


def _rows(connection: sqlite3.Connection, request: Request, most_bytes: int) -> Answer:
    """The rows, pickled in parts, so that their size is known before they are too many."""
    cursor = connection.execute(request["sql"])
    names = [column[0] for column in cursor.description or ()]
    parts: list[bytes] = []
    count = size = 0
    while count <= request["rows"] and (rows := cursor.fetchmany(min(_ROWS_AT_ONCE, request["rows"] + 1 - count))):
        parts.append(pickle.dumps(rows))
        count, size = count + len(rows), size + len(parts[-1])
        if size > most_bytes:
            return protocol.TOO_LARGE, f"the rows take more than {most_bytes // 2**20} MB"
    return protocol.ROWS, names, parts


# --- aggregates -------------------------------------------------------------------------------------------------------
#
# Those that SQLite lacks and other engines have. The names and definitions are those of PostgreSQL and DuckDB: stddev
# and variance are of a sample (n - 1), quantile_cont interpolates and quantile_disc does not; percentile_cont and
# percentile_disc are the same, as SQLite's own extension calls them. NULLs are left out, and texts but by mode.


class _Numbers:
    """Collects the numbers of one group, or pairs of them; for the mode texts as well."""

    def __init__(self, result: Callable[..., Any]) -> None:
        self._result = result
        self._kinds = int | float | str if result is _mode else int | float
        self._rows: list[tuple[Any, ...]] = []

    def step(self, *cells: Any) -> None:
        """Take one row."""
        if all(isinstance(cell, self._kinds) for cell in cells):
            self._rows.append(cells)

    def finalize(self) -> Any:
        """The result of the group; NULL if it is not defined."""
        try:
            return self._result(*zip(*self._rows, strict=True)) if self._rows else None
        except (statistics.StatisticsError, AttributeError, OverflowError):  # too few rows, one value, an infinity
            return None


def add_aggregates(connection: sqlite3.Connection) -> None:
    """Add the aggregates to a connection."""
    for names, (arguments, result) in _AGGREGATES.items():
        for name in names.split():
            connection.create_aggregate(name, arguments, partial(_Numbers, result))  # type: ignore[arg-type]


def _quantile(cells: Sequence[float], shares: Sequence[float], *, interpolates: bool) -> float:
    ordered, share = sorted(cells), min(max(shares[0], 0.0), 1.0)
    if not interpolates:
        return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _mode(cells: Sequence[float | str]) -> float | str:
    """The most frequent value; the smallest of several."""
    return statistics.mode(sorted(cells, key=lambda cell: (isinstance(cell, str), cell)))


_AGGREGATES: dict[str, tuple[int, Callable[..., Any]]] = {
    "median": (1, lambda cells: float(statistics.median(cells))),
    "quantile_cont percentile_cont": (2, partial(_quantile, interpolates=True)),
    "quantile_disc percentile_disc": (2, partial(_quantile, interpolates=False)),
    "corr": (2, statistics.correlation),
    "mode": (1, _mode),
    "variance var_samp": (1, lambda cells: float(statistics.variance(cells))),
    "stddev stddev_samp": (1, statistics.stdev),
    "var_pop": (1, lambda cells: float(statistics.pvariance(cells))),
    "stddev_pop": (1, statistics.pstdev),
}
AGGREGATES = frozenset(" ".join(_AGGREGATES).split())
