"""The sources of past statements: texts, files, folders, frames, and the databases themselves."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.engines.files.limits import check_columns
from tagframe.errors import BROKEN, InvalidArgument, SourceNotFound
from tagframe.learning.texts import statements_in

LOG = "pg_stat_statements"
VIEWS = "views"

_SQL = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE|CREATE|FROM)\s", re.IGNORECASE)


@dataclass(frozen=True)
class Run:
    """A statement that was run.

    Attributes:
        sql: its text, or the text in its place.
        question: the question that it answers, or "".
        times: how often it was run.
        database: of its tables, if known.
        unread: why it is not a statement, or "".
    """

    sql: str
    question: str = ""
    times: int = 1
    database: str = ""
    unread: str = ""


def runs_of(corpus: Corpus, given: str | Path | pd.DataFrame, dialect: str) -> tuple[str, Iterator[Run]]:
    """The name of the source, and its statements.

    Args:
        corpus: its engines are asked for a log.
        given: as for :func:`tagframe.learning.learn`.
        dialect: for cutting a text into statements.

    Raises:
        SourceNotFound: no such file, or no server that keeps a log.
        InvalidArgument: a frame or a file without SQL, or one that cannot be read.
    """
    if isinstance(given, pd.DataFrame):
        return "a frame", _of_frame(given, dialect)
    if not isinstance(given, str | Path):
        raise InvalidArgument(
            f"queries must be SQL, a file, a folder or a frame; got {type(given).__name__} {given!r:.80}"
        )
    if given in (LOG, VIEWS):
        return str(given), _of_engines(corpus, str(given))
    path = Path(given)
    with suppress(OSError, ValueError):  # SQL is not a valid file name
        if given and path.is_file():
            return path.name, _of_file(path, dialect)
        if given and path.is_dir():
            return path.name, _of_folder(path, dialect)
    if isinstance(given, str) and _SQL.search(given):
        return "", (Run(sql) for sql in statements_in(given, dialect))
    raise SourceNotFound(
        f"there is no file or folder {str(given)[:200]!r} of queries; a statement begins with SELECT or WITH, and "
        f'"{LOG}" is the log of a server'
    )


def _of_folder(folder: Path, dialect: str) -> Iterator[Run]:
    files = sorted(one for one in folder.rglob("*") if one.suffix.lower() in _READ and not one.is_dir())
    if not files:
        raise SourceNotFound(f"{folder} holds no {', '.join(_READ)} file")
    for file in files:
        try:
            yield from _of_file(file, dialect)
        except InvalidArgument as error:
            yield Run(str(file), unread=str(error))


def _of_file(path: Path, dialect: str) -> Iterator[Run]:
    """The statements of a file.

    Raises:
        InvalidArgument: it cannot be read, or holds none.
    """
    try:
        yield from _READ.get(path.suffix.lower(), _of_sql)(_text_of(path), dialect)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path.name}: {error}") from error
    except (OSError, MemoryError, *BROKEN) as error:
        raise InvalidArgument(f"{path.name} cannot be read: {str(error) or type(error).__name__}") from error


def _text_of(path: Path) -> str:
    if not path.is_file():
        raise InvalidArgument("it is no regular file but a pipe, a socket, a device or a folder")
    data = path.read_bytes()
    with suppress(UnicodeDecodeError):
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    return data.decode("latin-1")


def _of_sql(text: str, dialect: str) -> Iterator[Run]:
    return (Run(sql) for sql in statements_in(text, dialect))


def _of_csv(text: str, dialect: str) -> Iterator[Run]:
    with suppress(csv.Error):
        for row in islice(csv.reader(io.StringIO(text)), 2):
            check_columns("it", len(row))
    return _of_frame(pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False), dialect)


def _of_json(text: str, dialect: str) -> Iterator[Run]:
    return _of_rows(json.loads(text), dialect)


def _of_rows(rows: object, dialect: str) -> Iterator[Run]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidArgument("it is not a list of objects with a key 'sql'")
    return _of_frame(pd.DataFrame(rows), dialect)


def _of_lines(text: str, dialect: str) -> Iterator[Run]:
    rows = []
    for line in filter(str.strip, text.splitlines()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Run(line, unread=f"it is not JSON: {error}")
        else:
            rows.append(row)
    yield from _of_rows(rows, dialect)


_READ: Mapping[str, Callable[[str, str], Iterator[Run]]] = {
    ".sql": _of_sql, ".csv": _of_csv, ".json": _of_json, ".jsonl": _of_lines,
}  # fmt: skip


def _of_frame(frame: pd.DataFrame, dialect: str) -> Iterator[Run]:
    numbers = {str(column).casefold(): number for number, column in reversed([*enumerate(frame.columns)])}

    def column(*names: str) -> pd.Series | None:
        number = next((numbers[name] for name in names if name in numbers), None)
        return None if number is None else frame.iloc[:, number]

    statements = column("sql", "query", "statement")
    if statements is None:
        raise InvalidArgument(f"queries need a column 'sql' ('question' is optional); there are {list(frame.columns)}")
    none = pd.Series([None] * len(frame))
    runs = column("runs", "calls")
    times = pd.to_numeric(none if runs is None else runs, errors="coerce").fillna(1).clip(1, 1e15).astype("int64")
    texts = [none if one is None else one for one in (column("question", "utterance"), column("database", "db_id"))]
    for sql, ran, question, database in zip(statements, times, *texts, strict=True):
        if isinstance(sql, str):
            for one in statements_in(sql, dialect):
                yield Run(one, _text(question), ran, _text(database))
        elif not (pd.api.types.is_scalar(sql) and pd.isna(sql)):
            yield Run(repr(sql), unread=f"it is not text but {type(sql).__name__}")


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _of_engines(corpus: Corpus, what: str) -> Iterator[Run]:
    """The statements that the sources of the tables know: the log of past ones, or the views."""
    engines = {id(engine): engine for engine in map(corpus.engine, corpus.ids) if engine is not None}
    has_any = False
    for engine in engines.values():
        for name in ("ran", "views") if what == LOG else ("views",):
            read = getattr(engine, name, None)
            if read is not None:
                has_any = has_any or name == "ran" or what == VIEWS
                yield from (Run(sql, times=times) for sql, times in read())
    if not has_any:
        needed = "a PostgreSQL server" if what == LOG else "a PostgreSQL server or a SQLite file"
        kinds = ", ".join(sorted({engine.kind for engine in engines.values()})) or "no source"
        raise SourceNotFound(f"{what!r} needs {needed}; these tables are in {kinds}")
