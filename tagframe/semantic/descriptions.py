"""Descriptions of tables and columns from files: CSV files, BIRD's folders, and semantic models."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from tagframe.corpus import Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.facts import FactKey, as_description
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.references import NamedTable, find_column
from tagframe.display import Displayable
from tagframe.errors import BROKEN, InvalidArgument, SourceNotFound, TableNotFound, TagframeError, counted
from tagframe.keys.inference import share_of_rows
from tagframe.keys.matching import is_copy, match_rows
from tagframe.semantic.dbt import is_manifest, model_of_manifest
from tagframe.semantic.ossie import Taken, models_in, taken
from tagframe.storage import text_of

T = TypeVar("T")

_FOLDER = "database_description"
_OF_BIRD = ("original_column_name", "column_name", "column_description", "value_description")
_LISTED = 10

LARGEST = 16 * 2**20
"""Bytes of a file of descriptions: those of ten thousand tables."""
LARGEST_JSON = 16 * LARGEST
"""Bytes of a JSON file: dbt's manifest has the code of all models, too."""
_DEEPEST = 100
_MOST_ALIASED = 10_000_000
"""Values that the aliases of a file of YAML may stand for."""


class Description(NamedTuple):
    """A description of a table, or of a column if one is named; ``within`` may be the name of its database."""

    table: str
    column: str
    text: str
    within: str = ""


class Given(NamedTuple):
    """The content of files: descriptions, semantic models (their form, and the model in Ossie's form), and the files
    that could not be read, with the reason."""

    descriptions: list[Description]
    models: list[tuple[str, Mapping[str, Any]]]
    unread: list[str]


@dataclass(frozen=True, repr=False)
class Described(Displayable):
    """The result of many descriptions.

    Attributes:
        tables, columns: the numbers of described tables and columns.
        unknown: names that the corpus does not have, or has several times.
        unread: files of a folder that could not be read, and parts of semantic models that could not be used, and why.
        keys, metrics: the numbers of keys between tables, and of metrics, in semantic models.
        checked: where keys of semantic models do not hold for all rows.
    """

    tables: int
    columns: int
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    keys: int = 0
    metrics: int = 0
    checked: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"described {counted(self.tables, 'table')} and {counted(self.columns, 'column')}"]
        if self.keys or self.metrics:
            lines.append(f"  {counted(self.keys, 'key')} between tables, {counted(self.metrics, 'metric')}")
        for names, what, between in (
            (self.checked, "checked against the rows", "\n    "),
            (self.unknown, "unknown or ambiguous", ", "),
            (self.unread, "not read", "\n    "),
        ):
            if names:
                more = ["…"] * (len(names) > _LISTED)
                lines.append(f"  {len(names):,} {what}: {between.join([*names[:_LISTED], *more])}")
        return "\n".join(lines)


def descriptions_in(given: str | Path | pd.DataFrame) -> Given:
    """The descriptions and semantic models in a frame, a file or a folder.

    Raises:
        SourceNotFound: no such file or folder.
        InvalidArgument: none of the known forms.
    """
    if isinstance(given, pd.DataFrame):
        names = [str(name).strip().casefold() for name in given.columns]
        rows = (dict(zip(names, row, strict=True)) for row in given.itertuples(index=False, name=None))
        return Given(list(_of_rows(rows, names, "the frame")), [], [])
    if not isinstance(given, str | Path):
        raise InvalidArgument(f"descriptions must be a frame, a file or a folder; got {given!r}")
    path = Path(given).expanduser()
    try:
        is_there = path.exists()
    except OSError:  # a name that is too long to be one
        is_there = False
    if not is_there:
        raise SourceNotFound(f"there is no file or folder {str(given)[:500]!r} of descriptions")
    files = [path]
    if path.is_dir():
        inside = [(one, one.relative_to(path).parts) for one in sorted(path.rglob("*")) if one.suffix.lower() in _READ]
        # An archive of macOS has a second file without content for each file: __MACOSX/…/._name.
        files = [one for one, parts in inside if not any(part.startswith((".", "__MACOSX")) for part in parts)]
        files = [one for one in files if one.suffix.lower() != ".json" or one.name == "manifest.json"]
        files = [one for one in files if one.parent.name == _FOLDER] or files  # the other files are data
    descriptions: list[Description] = []
    models: list[tuple[str, Mapping[str, Any]]] = []
    unread, parts = list[str](), list[str]()
    for file in files:
        try:
            if file.suffix.lower() not in _READ:
                raise InvalidArgument(f"descriptions are read from {', '.join(_READ)} files, not from {file}")
            if file.suffix.lower() in _TABULAR:
                descriptions += _of_csv(file)
            else:
                models += _models(file, parts)
        except (InvalidArgument, OSError, *BROKEN) as error:
            named = (
                error
                if isinstance(error, InvalidArgument | OSError)
                else InvalidArgument(f"{file} cannot be read: {type(error).__name__}: {error}")
            )
            if file == path:
                raise named from error
            unread.append(str(named))
    if not files or len(unread) == len(files):
        raise InvalidArgument(
            unread[0] if unread else f"descriptions are read from {', '.join(_READ)} files; there is none in {path}"
        )
    return Given(descriptions, models, [*unread, *parts])


def _models(path: Path, unread: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """The semantic models in a file; parts that are not read are added to ``unread``."""
    plain = _of_json(path) if path.suffix.lower() == ".json" else _of_yaml(path)
    if not isinstance(plain, Mapping) or not (models_in(plain) or is_manifest(plain)):
        raise InvalidArgument(
            f"{path} is no semantic model of Apache Ossie. Of a project of dbt, its target/manifest.json is read, "
            "which dbt parse writes"
        )
    return [("Ossie", one) for one in models_in(plain)] or [("dbt", model_of_manifest(plain, unread))]


def _of_csv(path: Path) -> Iterator[Description]:
    text = text_of(path, LARGEST).lstrip()
    separator = max(",;\t|", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        names = [name.strip().casefold() for name in next(reader, [])]
        last = len(names) - 1
        # Text after the last column belongs to it: prose has commas.
        rows = [
            dict(zip(names, [*row[:last], f"{separator} ".join(row[last:])], strict=False)) for row in reader if row
        ]
    except csv.Error as error:
        raise InvalidArgument(f"{path} cannot be read as CSV: {error}") from error
    if _OF_BIRD[0] not in names:
        yield from _of_rows(rows, names, str(path))
        return
    database = path.parent.parent.name if path.parent.name == _FOLDER else ""
    for row in rows:
        column, *parts = (row.get(name, "").strip() for name in _OF_BIRD)
        texts = [part for part in parts if identifier_words(part) != identifier_words(column)]
        yield Description(
            f"{database}.{path.stem}" if database else path.stem, column, ". ".join(dict.fromkeys(filter(None, texts)))
        )


def _of_rows(rows: Iterable[Mapping[str, Any]], names: Sequence[str], of: str) -> Iterator[Description]:
    if not {"table", "description"} <= {*names}:
        raise InvalidArgument(f"descriptions need columns table, column and description; {of} has {list(names)}")
    for row in rows:
        yield Description(*(_plain(row.get(name)) for name in ("table", "column", "description")))


def _plain(value: Any) -> str:
    return "" if pd.api.types.is_scalar(value) and pd.isna(value) else str(value).strip()


def _of_yaml(path: Path) -> Any:
    """The document in a file."""
    import yaml  # type: ignore[import-untyped]  # the hub's client brings it along

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text_of(path, LARGEST)
    try:
        _check_yaml(yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, *BROKEN) as error:  # PyYAML's own for a day such as 2001-99-99, or !!int x
        raise InvalidArgument(f"{path} cannot be read as YAML: {error}") from error


def _of_json(path: Path) -> Any:
    try:
        return json.loads(text_of(path, LARGEST_JSON))
    except BROKEN as error:
        raise InvalidArgument(f"{path} cannot be read as JSON: {error}") from error


def _check_yaml(events: Iterable[Any]) -> None:
    """Refuse YAML that is nested too deep, or whose aliases may make it grow: a few lines may stand for billions.

    Raises:
        ValueError: it is such.
    """
    is_anchored: list[bool] = []  # of what is open now
    nodes = aliases = 0
    for event in events:
        kind, nodes = type(event).__name__, nodes + 1
        if kind.endswith("StartEvent"):
            is_anchored.append(getattr(event, "anchor", None) is not None)
        elif kind.endswith("EndEvent"):
            is_anchored.pop()
        elif kind == "AliasEvent":
            aliases += 1
            if any(is_anchored):
                raise ValueError(f"the alias *{event.anchor} is a part of what another one stands for: write it out")
        if len(is_anchored) > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} deep")
    if aliases * nodes > _MOST_ALIASED:
        raise ValueError(f"it has {aliases:,} aliases in {nodes:,} values: write them out, or split the file")


_TABULAR = ".csv", ".tsv"
_READ = *_TABULAR, ".yml", ".yaml", ".json"


_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.casefold,
    lambda name: re.sub(r"[\W_]", "", name.casefold()) or name,
)


def _finder(named: Iterable[tuple[str, T]]) -> Callable[[str], T | None]:
    """A function that finds the one thing with a name: as written, else in another case, else without punctuation."""
    known: dict[tuple[int, str], list[T]] = defaultdict(list)
    for name, thing in named:
        for number, spelling in enumerate(_SPELLINGS):
            known[number, spelling(name)].append(thing)

    def find(name: str) -> T | None:
        keys = ((number, spelling(name)) for number, spelling in enumerate(_SPELLINGS))
        things = next((known[key] for key in keys if key in known), [])
        return things[0] if len(things) == 1 else None

    return find


class _Names:
    """Finds tables and columns as others write them."""

    def __init__(self, profiles: Sequence[TableProfile]) -> None:
        self.table = cache(self._table)
        self.column = cache(self._column)
        self._columns: dict[str, Callable[[str], str | None]] = {}
        self._of_id = _finder((profile.id, profile) for profile in profiles)
        self._of_name = _finder((profile.name, profile) for profile in profiles)

    def _table(self, name: str, within: str = "") -> TableProfile | None:
        parts = name.split(".")  # of three or more parts, the first are catalogs
        called = [f"{within}.{name}"] * bool(within) + [".".join(parts[n:]) for n in range(max(len(parts) - 1, 1))]
        return next((table for one in called if (table := self._of_id(one) or self._of_name(one)) is not None), None)

    def source(self, source: str) -> TableProfile | None:
        """The table of a model's source, ``database.schema.table``: of all its parts, else of the last one alone."""
        parts = [part.strip('"`[] ') for part in source.split(".")]
        called = (".".join(parts), f"{parts[0]}.{parts[-1]}", parts[-1])
        return next((table for one in called if one and (table := self.table(one)) is not None), None)

    def _column(self, profile: TableProfile, name: str) -> str | None:
        find = self._columns.get(profile.id)
        if find is None:
            find = self._columns[profile.id] = _finder((column.name, column.name) for column in profile.columns)
        return find(name)


def facts_of(
    descriptions: Iterable[Description], profiles: Sequence[TableProfile]
) -> tuple[dict[FactKey, str], list[str]]:
    """The descriptions as facts, and the unknown names.

    If a column is described twice, the later description counts; empty descriptions are skipped.
    """
    names = _Names(profiles)
    facts: dict[FactKey, str] = {}
    unknown: dict[str, None] = {}
    for table, column, text, within in descriptions:
        words = as_description(text)
        if not words:
            continue
        profile = names.table(table, within)
        if profile is None:
            unknown[table or f".{column}"] = None
        elif not column:
            facts["table", (profile.id,)] = words
        elif (name := names.column(profile, column)) is None:
            unknown[f"{table}.{column}"] = None
        else:
            facts["column", (profile.id, name)] = words
    return facts, list(unknown)


def models_taken(models: Iterable[tuple[str, Mapping[str, Any]]], profiles: Sequence[TableProfile]) -> list[Taken]:
    """Semantic models, matched with tables."""
    names = _Names(profiles)
    return [taken(model, form, names.source, names.column) for form, model in models]


# --- corpus.describe -------------------------------------------------------------------------------------------------


MOST_ROWS = 2_000_000
"""Tables with more rows are not read for a check."""


def describe(corpus: Corpus, name: str | Path | pd.DataFrame, text: str | None = None) -> Described | None:
    """See :meth:`tagframe.Corpus.describe`."""
    if text is None:
        return _described(corpus, name)
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidArgument(f"describe(name, text) takes two texts; got {name!r} and {text!r}")
    try:
        fact: FactKey = "table", (corpus.profile(name).id,)
    except TableNotFound:
        if "." not in name:
            raise
        fact = "column", find_column(name, [*map(NamedTable.of, corpus.profiles)])
    fact_store(corpus).put({fact: as_description(text) or None})
    return None


def _described(corpus: Corpus, given: str | Path | pd.DataFrame) -> Described:
    content = descriptions_in(given)
    facts, unknown = facts_of(content.descriptions, corpus.profiles)
    values: dict[FactKey, Any] = {**facts}
    described = {of for _, of in facts}
    unread, checked, keys, metrics = [*content.unread], list[str](), 0, 0
    for model in models_taken(content.models, corpus.profiles):
        checked += checked_in_rows(corpus, model.value)
        # What the model said of other tables when it was read before.
        before = {("semantic", of) for of in fact_store(corpus).facts.of_kind("semantic")}
        values.update({fact: None for fact in before if fact[1][0] == model.digest})
        if model.value["tables"] or model.value["keys"] or model.value["metrics"]:
            values["semantic", (model.digest, *model.tables)] = model.value
        for id, one in model.value["tables"].items():
            described |= {(id,)} if one["description"] or one["synonyms"] else set()
            described |= {(id, column) for column in one["columns"]}
        unknown, unread = [*unknown, *model.unknown], [*unread, *model.unread]
        keys, metrics = keys + len(model.value["keys"]), metrics + len(model.value["metrics"])
    fact_store(corpus).put(values)
    tables = sum(len(of) == 1 for of in described)
    return Described(
        tables, len(described) - tables, tuple(unknown), tuple(unread), keys, metrics, tuple(checked)
    )  # fmt: skip


def checked_in_rows(corpus: Corpus, value: dict[str, Any]) -> Iterator[str]:
    """Put the share of rows for which each key of a semantic model holds into it, and say where this is not all.

    A relationship whose sides are the other way round in the rows is turned. A primary or unique key whose values
    repeat is left out. Private columns and tables with more than two million rows are not looked at.

    Args:
        corpus: with the tables.
        value: of the model; changed.

    Yields:
        A line for each key that does not hold for all rows.
    """

    @cache
    def keys_in(table: str, columns: tuple[str, ...]) -> pd.DataFrame | None:
        """The rows with a key; None if they are not read."""
        profile = corpus.profile(table)
        private = {column.name for column in profile.columns if column.private}
        if (profile.rows or 0) > MOST_ROWS or private & {*columns}:
            return None
        try:
            return corpus.read(table, list(columns)).dropna()
        except TagframeError:
            return None

    def unique(table: str, columns: Sequence[str]) -> float:
        """The share of the rows with a key that no row before them has; 1 if it is unknown."""
        frame = keys_in(table, tuple(columns))
        return 1.0 if frame is None or frame.empty else float(1 - is_copy(frame).mean())

    for id, one in value["tables"].items():
        for key in filter(None, (one["primary_key"], *one["unique_keys"])):
            if (share := unique(id, key)) < 1:
                kind = "primary" if key == one["primary_key"] else "unique"
                yield f"the {kind} key {id}.({', '.join(key)}) is unique in {share_of_rows(share)} of the rows"
                one["primary_key"] = [] if kind == "primary" else one["primary_key"]
                one["unique_keys"] = [other for other in one["unique_keys"] if other != key]
    for key in value["keys"]:
        (left, mine), (right, theirs) = ((key[f"{end}_table"], key[f"{end}_columns"]) for end in ("left", "right"))
        of = f"the relationship {left} → {right} ({', '.join(mine)} = {', '.join(theirs)})"
        if unique(right, theirs) < 1:
            if (rows := keys_in(left, tuple(mine))) is not None and not rows.empty and unique(left, mine) == 1:
                yield f"{of} is the other way round in the rows: {left} has each key once"
                left, mine, right, theirs = right, theirs, left, mine
                key.update(left_table=left, left_columns=mine, right_table=right, right_columns=theirs)
            else:
                yield f"{of}: {right} repeats keys, so a join repeats rows"
        referencing, referenced = keys_in(left, tuple(mine)), keys_in(right, tuple(theirs))
        key["holds"] = None
        if referencing is not None and referenced is not None and not referencing.empty:
            sides = [[frame[name] for name in frame.columns] for frame in (referencing, referenced)]
            key["holds"] = float((match_rows(*sides).counts > 0).mean())
            if key["holds"] < 1:
                yield f"{of} holds for {share_of_rows(key['holds'])} of the rows"
