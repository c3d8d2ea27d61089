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
from tagframe.corpus.schema_statements import split, sql_parts
from tagframe.engines.files.limits import check_columns
from tagframe.errors import BROKEN, InvalidArgument, SourceNotFound
from tagframe.storage import text_of

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
        corpus: its engines are asked for views.
        given: as for :func:`tagframe.learning.learn`.
        dialect: for cutting a text into statements.

    Raises:
        SourceNotFound: no such file, or no views.
        InvalidArgument: a frame or a file without SQL, or one that cannot be read.
    """
    if isinstance(given, pd.DataFrame):
        return "a frame", _of_frame(given, dialect)
    if not isinstance(given, str | Path):
        raise InvalidArgument(
            f"queries must be SQL, a file, a folder or a frame; got {type(given).__name__} {given!r:.80}"
        )
    if given == VIEWS:
        return VIEWS, _of_views(corpus)
    path = Path(given)
    with suppress(OSError, ValueError):  # SQL is not a valid file name
        if given and path.is_file():
            return path.name, _of_file(path, dialect)
        if given and path.is_dir():
            return path.name, _of_folder(path, dialect)
    if isinstance(given, str) and _SQL.search(given):
        return "", (Run(sql) for sql in statements_in(given, dialect))
    raise SourceNotFound(
        f"there is no file or folder {str(given)[:200]!r} of queries; a statement begins with SELECT or WITH, and the "
        "log of a server is a frame: pandas.read_sql('SELECT query, calls FROM pg_stat_statements', connection)"
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
        yield from _READ.get(path.suffix.lower(), _of_sql)(text_of(path), dialect)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path.name}: {error}") from error
    except (OSError, MemoryError, *BROKEN) as error:
        raise InvalidArgument(f"{path.name} cannot be read: {str(error) or type(error).__name__}") from error


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


def _of_views(corpus: Corpus) -> Iterator[Run]:
    """The views that the sources of the tables know."""
    engines = {id(engine): engine for engine in map(corpus.engine, corpus.ids) if engine is not None}
    views = [view for engine in engines.values() for view in engine.views()]
    if not views:
        kinds = ", ".join(sorted({engine.kind for engine in engines.values()})) or "no source"
        raise SourceNotFound(f"{VIEWS!r} needs a database with views; these tables are in {kinds}")
    return map(Run, views)


# --- SQL as text, before it is parsed --------------------------------------------------------------------------------


_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_COMMENTS = re.compile(r"(?:\s|--[^\n]*|/\*.*?(?:\*/|\Z))*+", re.DOTALL)
_TEMPLATE = re.compile(r"\{(?P<kind>[{%#])(?:(?!\{[{%#]|[}%#]\}).)*+[}%#]\}", re.DOTALL)
_CALLED = re.compile(r"\{\{-?\s*(\w+)\s*\((.*)", re.DOTALL)
_TEXT = re.compile(r"""['"]([^'"]+)['"]""")


def statements_in(text: str, dialect: str = "") -> Iterator[str]:
    """The statements of a file, which may be a dbt template.

    >>> list(statements_in("SELECT ';' FROM a; -- no; more\\n\\nSELECT 1; -- end"))
    ["SELECT ';' FROM a", '-- no; more\\n\\nSELECT 1']
    """
    if "{{" in text or "{%" in text:
        text = _TEMPLATE.sub(_without_template, text)
    for statement in split(text, dialect):
        yield from _one(statement)


def _one(text: str) -> Iterator[str]:
    blank = _COMMENTS.match(text)
    if blank is None or blank.end() < len(text):
        yield text.strip()


def _without_template(block: re.Match[str]) -> str:
    """The replacement of a template block: the table that it names, a parameter for another value, or nothing."""
    called = _CALLED.match(block[0])
    if called is not None and called[1] in ("ref", "source"):
        return next(reversed(_TEXT.findall(called[2])), "?")
    return " " if block["kind"] != "{" or (called is not None and called[1] == "config") else "?"


def without_literals(sql: str, dialect: str = "") -> str:
    """The text shared by all statements that differ only in literals, comments and spaces.

    >>> without_literals("SELECT  a FROM t -- all\\nWHERE b IN (1, 2.5, -3) AND c = 'it''s'")
    'select a from t where b in (?) and c = ?'
    """

    def plain(part: re.Match[str]) -> str:
        if part["text"] or part["number"]:
            return "?"
        return part[0] if part[0][0] in '"`[' else " "

    return " ".join(_LIST.sub("(?)", sql_parts(dialect).sub(plain, sql)).split()).casefold()
