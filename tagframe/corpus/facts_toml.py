"""``tagframe.toml``: the facts about data in a file beside it, for people to read, review and share."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagframe.corpus.facts import FactKey, Facts, FactsFile, as_description, key_fact
from tagframe.corpus.references import JoinColumns
from tagframe.engines.files.limits import check_regular
from tagframe.engines.hiding import checked_names
from tagframe.errors import BROKEN, InvalidArgument, SourceNotFound, UnreadableFacts, UnreadableTable, shown_path
from tagframe.storage import replaced

NAME = "tagframe.toml"
"""The name of the file that is read automatically."""

_HEAD = """\
# Facts that a person gave about the tables beside this file; tagframe.open_corpus reads them.
# private = ["users.email"]: no model reads the cells. hide = ["salaries"]: for tagframe, they do not exist.
"""


@dataclass(frozen=True)
class Beside:
    """What the file beside data says of it.

    Attributes:
        facts: descriptions and keys.
        hide, private: its lists of names.
    """

    facts: Facts = field(default_factory=Facts)
    hide: Sequence[str] = ()
    private: Sequence[str] = ()

    @property
    def all_facts(self) -> Facts:
        """The facts, with the private columns among them."""
        named = (name.rpartition(".")[::2] for name in self.private)
        return self.facts.with_values({("private", (table, column)): True for table, column in named})


def facts_beside(source: Path | None) -> Beside:
    """The content of the file in a folder, or beside a file; nothing if there is none.

    Raises:
        UnreadableFacts: as :func:`read_facts`.
    """
    try:
        return Beside() if source is None else read_facts((source if source.is_dir() else source.parent) / NAME)
    except FileNotFoundError:
        return Beside()


def facts_of_data(place: str | Path) -> Facts:
    """The facts that were given about a data source on this machine, which need not be there any more.

    Args:
        place: a file or folder of data, or a file written by :func:`write_facts`.

    Raises:
        SourceNotFound: there are none.
        UnreadableFacts: they cannot be read.
    """
    path = Path(place).expanduser()
    if path.suffix == Path(NAME).suffix:
        try:
            return read_facts(path).all_facts
        except FileNotFoundError as error:
            raise SourceNotFound(f"there is no file {shown_path(path)}") from error
    beside = facts_beside(path if path.exists() else None).all_facts
    own = FactsFile.of_source(str(path.resolve())).read()
    if not beside.values and own is None:
        raise SourceNotFound(
            f"no facts were given here about {shown_path(path)}; give the data's path, a corpus, or a {NAME}"
        )
    return beside.with_values((own or Facts()).values)


def read_facts(path: Path) -> Beside:
    """The content of a file.

    Raises:
        FileNotFoundError: there is none.
        UnreadableFacts: it does not have the form of :func:`write_facts`.
    """
    try:
        check_regular(path)
        plain = tomllib.loads(path.read_bytes().decode("utf-8"))
        if unknown := sorted({*plain} - {"table", "column", "key", "hide", "private"}):
            raise ValueError(f"it has {unknown[0]!r}; known are 'table', 'column', 'key', 'hide' and 'private'")
        hide, private = (checked_names(name, plain.get(name, [])) for name in ("hide", "private"))
        if bare := [name for name in private if "." not in name]:
            raise ValueError(f"private must have names such as 'users.email'; got {bare[0]!r}")
        return Beside(Facts(dict(_facts(plain))), hide, private)
    except FileNotFoundError:
        raise
    except (OSError, UnreadableTable, InvalidArgument, *BROKEN) as error:
        raise UnreadableFacts(
            f"{path}, the private and hidden columns of the data beside it, cannot be read: {error}. The data is not "
            "opened, so that nothing hidden is shown; repair the file, or remove it"
        ) from error


def _facts(plain: dict[str, Any]) -> Iterator[tuple[FactKey, Any]]:
    for one in plain.get("table", []):
        if one.get("description"):
            yield ("table", (str(one["table"]),)), as_description(str(one["description"]))
    for one in plain.get("column", []):
        column = str(one["table"]), str(one["column"])
        if one.get("description"):
            yield ("column", column), as_description(str(one["description"]))
    for one in plain.get("key", []):
        yield key_fact(JoinColumns.of(one), bool(one["joins"]))


def write_facts(path: Path, facts: Facts) -> Path:
    """Write a person's facts to a file that :func:`read_facts` reads; of an existing file, only its lists stay.

    Raises:
        OSError: it cannot be written.
        UnreadableFacts: there is a file, and its lists of what is hidden and private cannot be read.
    """
    try:
        before = read_facts(path)  # refuses what would be lost
    except FileNotFoundError:
        before = Beside()
    columns: dict[tuple[str, ...], dict[str, Any]] = {}
    for of, value in facts.of_kind("column").items():
        columns[of] = {"table": of[0], "column": of[1], "description": value}
    parts = {
        "table": [{"table": of[0], "description": text} for of, text in sorted(facts.of_kind("table").items())],
        "column": [columns[of] for of in sorted(columns)],
        "key": [value for _, value in sorted(facts.of_kind("key").items())],
    }
    private = {f"{table.rpartition('.')[2]}.{column}" for table, column in facts.private}
    lists = {"hide": {*before.hide}, "private": {*before.private, *private}}
    listed = [f"{name} = {json.dumps(sorted(of), ensure_ascii=False)}\n" for name, of in lists.items() if of]
    text = _HEAD + "".join(listed) + "".join(_part(name, one) for name, several in parts.items() for one in several)
    with replaced(path, mode=0o666) as file:
        file.write(text.encode("utf-8", "replace"))
    return path


def _part(name: str, values: dict[str, Any]) -> str:
    # A JSON string is a TOML string, except for DEL.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join(["", f"[[{name}]]", *lines, ""]).replace("\x7f", "\\u007F")
