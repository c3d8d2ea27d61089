"""Where statements that were run are learned from: texts, files, folders, frames, and what a database knows itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.errors import InvalidArgument, SourceNotFound
from tagframe.learning.texts import statements_in

LOG = "pg_stat_statements"
VIEWS = "views"

_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:WITH|SELECT|\(|CREATE|INSERT|UPDATE|DELETE|MERGE)\b", re.I | re.S
)


@dataclass(frozen=True)
class Run:
    """A statement as it was run.

    Attributes:
        sql: its text.
        question: that it answers, or "".
        times: how often.
        database: of its tables, where that is known.
    """

    sql: str
    question: str = ""
    times: int = 1
    database: str = ""


def runs_of(corpus: Corpus, given: str | Path | pd.DataFrame) -> tuple[str, Iterator[Run]]:
    """What the statements are learned from, and they.

    Raises:
        SourceNotFound: no such file, or no server that keeps a log.
        InvalidArgument: a frame or a file without SQL.
    """
    if isinstance(given, pd.DataFrame):
        return "a frame", _of_frame(given)
    if isinstance(given, str) and _SQL.match(given):
        return "", (Run(sql) for sql in statements_in(given))
    if given in (LOG, VIEWS):
        return str(given), _of_engines(corpus, str(given))
    path = Path(given)
    if not path.exists():
        raise SourceNotFound(
            f"there is no file or folder {str(given)!r} of queries; a statement begins with SELECT or WITH, and a "
            f'server\'s log is "{LOG}"'
        )
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.suffix.lower() in _READ)
    if not files:
        raise SourceNotFound(f"{path} holds no {', '.join(_READ)} file")
    return path.name, (run for file in files for run in _READ.get(file.suffix.lower(), _of_text)(file))


def _of_text(path: Path) -> Iterator[Run]:
    return (Run(sql) for sql in statements_in(path.read_text(encoding="utf-8", errors="replace")))


def _of_csv(path: Path) -> Iterator[Run]:
    return _of_frame(pd.read_csv(path, dtype=str, keep_default_na=False))


def _of_json(path: Path) -> Iterator[Run]:
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines() if line]
    if not isinstance(rows, list):
        raise InvalidArgument(f"{path.name} is no list of objects with a key 'sql'")
    return _of_frame(pd.DataFrame(rows))


_READ = {".sql": _of_text, ".csv": _of_csv, ".json": _of_json, ".jsonl": _of_json}


def _of_frame(frame: pd.DataFrame) -> Iterator[Run]:
    named = {str(column).casefold(): column for column in frame.columns}

    def column(*names: str) -> list[Any] | None:
        return next((frame[named[name]].tolist() for name in names if name in named), None)

    statements = column("sql", "query", "statement")
    if statements is None:
        raise InvalidArgument(f"queries stand in a column 'sql', beside it 'question'; there are {list(frame.columns)}")
    questions = column("question", "utterance")
    times, databases = column("runs", "calls"), column("database", "db_id")
    for row, sql in enumerate(statements):
        if isinstance(sql, str) and sql.strip():
            yield Run(
                sql.strip().rstrip(";"),
                _text(questions and questions[row]),
                1 if times is None else int(times[row]),
                _text(databases and databases[row]),
            )


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _of_engines(corpus: Corpus, what: str) -> Iterator[Run]:
    """What the sources of the tables know of statements: those that were run, and those that are views."""
    engines = {id(engine): engine for engine in map(corpus.engine, corpus.ids) if engine is not None}
    found = False
    for engine in engines.values():
        for name in ("ran", "views") if what == LOG else ("views",):
            read = getattr(engine, name, None)
            if read is not None:
                found = found or name == "ran" or what == VIEWS
                yield from (Run(sql, times=times) for sql, times in read())
    if not found:
        needed = "a PostgreSQL server" if what == LOG else "a PostgreSQL server or a SQLite file"
        kinds = ", ".join(sorted({engine.kind for engine in engines.values()})) or "no source"
        raise SourceNotFound(f"{what!r} is known to {needed}; these tables are in {kinds}")
