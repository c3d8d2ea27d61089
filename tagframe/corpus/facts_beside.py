"""``tagframe.toml``: a file beside the data with the facts that a person told about it, which moves with the data."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tagframe.corpus.identity import TableIdentity
from tagframe.corpus.knowledge import Kept
from tagframe.corpus.told import ToldKey, as_description
from tagframe.corpus.told_facts import EVERYBODY, MODELS, NO_JOINS, FactKey, Told, key_fact
from tagframe.engines.base import check_regular
from tagframe.errors import BROKEN, UnreadableFacts, UnreadableTable

NAME = "tagframe.toml"
"""The name of the file that is read automatically."""

_HEAD = """\
# Facts that a person gave about the tables beside this file; tagframe.open_corpus reads them.
# hidden = "everybody": nobody reads the cells; "models": results have the cells, but no model sees them.
# With ", no joins" after either, no table joins on the column.
"""


def facts_beside(source: Path) -> Kept | None:
    """The facts in the file beside a source; None if there is no file.

    Raises:
        UnreadableFacts: it does not have the form of :func:`write_facts`.
    """
    path = (source if source.is_dir() else source.parent) / NAME
    try:
        check_regular(path)
        plain, changed = tomllib.loads(path.read_bytes().decode("utf-8")), path.stat().st_mtime
        if unknown := sorted({*plain} - {"table", "column", "key"}):
            raise ValueError(f"it has {unknown[0]!r}; known are 'table', 'column' and 'key'")
        facts = {key: (value, changed) for key, value in _facts(plain)}
        tables = {
            one["table"]: TableIdentity(one.get("file", ""), one.get("name", ""), one.get("name", ""), ())
            for one in plain.get("table", [])
        }
        return Kept(str(path), Told(facts), tables)
    except FileNotFoundError:
        return None
    except (OSError, UnreadableTable, *BROKEN) as error:
        raise UnreadableFacts(
            f"{path}, the list of hidden columns of the data beside it, cannot be read: {error}. The data is "
            "not opened, so that nothing hidden is shown; repair the file, or remove it"
        ) from error


def _facts(plain: dict[str, Any]) -> Iterator[tuple[FactKey, Any]]:
    for one in plain.get("table", []):
        if one.get("description"):
            yield ("table", (str(one["table"]),)), as_description(str(one["description"]))
    for one in plain.get("column", []):
        column = str(one["table"]), str(one["column"])
        if one.get("description"):
            yield ("column", column), as_description(str(one["description"]))
        if (whom := one.get("hidden")) is not None:
            if str(whom).removesuffix(NO_JOINS) not in (EVERYBODY, MODELS):
                raise ValueError(f"hidden of {'.'.join(column)} must be 'everybody' or 'models'; got {whom!r}")
            yield ("hidden", column), whom
    for one in plain.get("key", []):
        sides = [tuple(map(str, one[f"{side}_columns"])) for side in ("left", "right")]
        key = ToldKey(str(one["left_table"]), sides[0], str(one["right_table"]), sides[1])
        yield key_fact(key, bool(one["joins"]))


def write_facts(path: Path, kept: Kept) -> Path:
    """Write the told facts to a file that :func:`facts_beside` reads; an existing file is replaced.

    Raises:
        OSError: it cannot be written.
    """
    told = kept.told.standing()
    tables: dict[str, dict[str, Any]] = {id: {"table": id} for id in sorted(told.tables())}
    for id, identity in kept.tables.items():
        if id in tables:
            tables[id].update(file=identity.source, name=identity.table)
    columns: dict[tuple[str, ...], dict[str, Any]] = {}
    keys = []
    for (kind, of), (value, _) in sorted(told.facts.items()):
        if kind == "table":
            tables[of[0]]["description"] = value
        elif kind in ("column", "hidden"):
            column = columns.setdefault(of, {"table": of[0], "column": of[1]})
            column["description" if kind == "column" else "hidden"] = value
        elif kind == "key":
            keys.append(value)
    parts = [("table", list(tables.values())), ("column", list(columns.values())), ("key", keys)]
    text = _HEAD + "".join(_part(name, one) for name, several in parts for one in several)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", errors="replace")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def _part(name: str, values: dict[str, Any]) -> str:
    # A JSON string is a TOML string, except for DEL.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["", f"[[{name}]]", *lines, ""]).replace("\x7f", "\\u007F")
