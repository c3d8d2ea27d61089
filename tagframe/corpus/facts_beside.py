"""A file beside the data that says what a person told of it: ``tagframe.toml``, which goes where the data goes."""

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
from tagframe.corpus.told_facts import EVERYBODY, MODELS, FactKey, Told, key_fact
from tagframe.engines.base import check_regular
from tagframe.errors import BROKEN, UnreadableFacts, UnreadableTable

NAME = "tagframe.toml"
"""What the file is called that is read without being asked to."""

_HEAD = """\
# What a person told of the tables beside this file; tagframe.open_corpus reads it.
# hidden = "everybody": nobody reads the cells; "models": they are in results, and no model sees them.
"""


def facts_beside(source: Path) -> Kept | None:
    """What the file beside a source says; None where there is none.

    Raises:
        UnreadableFacts: it is not as :func:`write_facts` writes it.
    """
    path = (source if source.is_dir() else source.parent) / NAME
    try:
        check_regular(path)
        plain, changed = tomllib.loads(path.read_bytes().decode("utf-8")), path.stat().st_mtime
        if unknown := sorted({*plain} - {"table", "column", "key"}):
            raise ValueError(f"there is {unknown[0]!r}, and it knows 'table', 'column' and 'key'")
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
            f"{path}, which says what is hidden of the data beside it, cannot be read: {error}. Nothing is opened, so "
            "that nothing hidden is shown; mend the file, or remove it"
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
            if whom not in (EVERYBODY, MODELS):
                raise ValueError(f"hidden of {'.'.join(column)} is 'everybody' or 'models', not {whom!r}")
            yield ("hidden", column), whom
    for one in plain.get("key", []):
        sides = [tuple(map(str, one[f"{side}_columns"])) for side in ("left", "right")]
        key = ToldKey(str(one["left_table"]), sides[0], str(one["right_table"]), sides[1])
        yield key_fact(key, bool(one["joins"]))


def write_facts(path: Path, kept: Kept) -> Path:
    """Write what was told to a file that :func:`facts_beside` reads; one that is there is replaced.

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
    # A text of JSON is one of TOML, but for DEL.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["", f"[[{name}]]", *lines, ""]).replace("\x7f", "\\u007F")
