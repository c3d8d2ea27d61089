"""Descriptions of tables and columns that others have written down: CSV files, BIRD's folders, dbt's schema files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import NamedTable, find_column, find_table
from tagframe.corpus.told_facts import FactKey
from tagframe.display import Shown
from tagframe.errors import ColumnNotFound, InvalidArgument, SourceNotFound, TableNotFound, counted

LONGEST = 500
"""Characters of a description that are kept: prompts have every one of them."""

_OF_BIRD = ("original_column_name", "column_name", "column_description", "value_description")
_LISTED = 10

Said = tuple[str, str, str]
"""Table and column, "" for the table itself, and what is said of it."""


@dataclass(frozen=True, repr=False)
class Described(Shown):
    """What was described.

    Attributes:
        tables, columns: how many of them.
        unknown: names of others, which the corpus does not have.
    """

    tables: int
    columns: int
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"described {counted(self.tables, 'table')} and {counted(self.columns, 'column')}"]
        if self.unknown:
            more = ", …" if len(self.unknown) > _LISTED else ""
            lines.append(f"  {len(self.unknown):,} not here: {', '.join(self.unknown[:_LISTED])}{more}")
        return "\n".join(lines)


def descriptions_in(given: str | Path | pd.DataFrame) -> list[Said]:
    """All that a frame, a file or a folder says of tables and columns.

    Raises:
        SourceNotFound: no such file or folder.
        InvalidArgument: it is of none of the forms.
    """
    if isinstance(given, pd.DataFrame):
        return list(_of_frame(given, "the frame"))
    path = Path(given)
    if not path.exists():
        raise SourceNotFound(f"there is no file or folder {str(given)!r} of descriptions")
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.suffix.lower() in _READ)
    if not files or any(file.suffix.lower() not in _READ for file in files):
        raise InvalidArgument(f"descriptions are read from {', '.join(_READ)} files; there is none in {path}")
    return [said for file in files for said in _READ[file.suffix.lower()](file)]


def _of_csv(path: Path) -> Iterator[Said]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        text = path.read_bytes().decode("cp1252", errors="replace")
    from io import StringIO

    frame = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)
    frame.columns = [str(name).strip().casefold() for name in frame.columns]
    if _OF_BIRD[0] not in frame.columns:
        yield from _of_frame(frame, path.name)
        return
    database = path.parent.parent.name if path.parent.name == "database_description" else ""
    table = f"{database}.{path.stem}" if database else path.stem
    for row in frame.to_dict("records"):
        column, *parts = (str(row.get(name, "")).strip() for name in _OF_BIRD)
        told = [part for part in parts if part and part.casefold() != column.casefold()]
        yield table, column, ". ".join(dict.fromkeys(told))


def _of_frame(frame: pd.DataFrame, name: str) -> Iterator[Said]:
    frame = frame.rename(columns=lambda name: str(name).strip().casefold())
    if not {"table", "description"} <= {*frame.columns}:
        raise InvalidArgument(
            f"descriptions stand in columns table, column and description; {name} has {list(frame.columns)}"
        )
    columns = frame["column"] if "column" in frame.columns else [""] * len(frame)
    for table, column, text in zip(frame["table"], columns, frame["description"], strict=True):
        if isinstance(table, str) and isinstance(text, str):
            yield table.strip(), column.strip() if isinstance(column, str) else "", text


def _of_yaml(path: Path) -> Iterator[Said]:
    """The models, seeds, snapshots and sources of dbt."""
    import yaml  # type: ignore[import-untyped]  # the hub's client brings it along

    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InvalidArgument(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(plain, Mapping):
        return
    listed = [one for part in ("models", "seeds", "snapshots") for one in _entries(plain.get(part))]
    listed += [one for source in _entries(plain.get("sources")) for one in _entries(source.get("tables"))]
    for one in listed:
        name = str(one.get("identifier") or one.get("alias") or one.get("name") or "")
        yield name, "", str(one.get("description") or "")
        for column in _entries(one.get("columns")):
            yield name, str(column.get("name") or ""), str(column.get("description") or "")


def _entries(given: Any) -> list[Mapping[str, Any]]:
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


_READ: Mapping[str, Callable[[Path], Iterator[Said]]] = {".csv": _of_csv, ".yml": _of_yaml, ".yaml": _of_yaml}


def facts_said(said: Iterable[Said], profiles: Sequence[TableProfile]) -> tuple[dict[FactKey, str], list[str]]:
    """What is said of tables and of columns as facts, and the names that are not there.

    Of a column that is described twice the later one counts, and an empty description says nothing.
    """
    named = list(map(NamedTable.of, profiles))
    ids = {one.id.casefold(): one for one in named}
    found: dict[FactKey, str] = {}
    unknown: dict[str, None] = {}
    for table, column, text in said:
        words = re.sub(r"\s+", " ", text).strip()[:LONGEST]
        if not words or not table:
            continue
        try:
            known = ids.get(table.casefold()) or find_table(table, named)
            of = ("column", find_column(f"{known.id}.{column}", [known])) if column else ("table", (known.id,))
            found[of] = words
        except (TableNotFound, ColumnNotFound, InvalidArgument):
            unknown[f"{table}.{column}" if column else table] = None
    return found, list(unknown)
