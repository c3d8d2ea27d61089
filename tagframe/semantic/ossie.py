"""A semantic model in Apache Ossie's form, matched with the tables of a corpus.

Apache Ossie (formerly OSI), core metadata specification: datasets with fields, relationships, metrics. dbt's manifest
is brought into this form first (:mod:`~tagframe.semantic.dbt`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from tagframe.corpus.facts import as_description
from tagframe.corpus.profile import TableProfile
from tagframe.engines.sql_reader import parse
from tagframe.errors import UnsafeSQL

if TYPE_CHECKING:
    from sqlglot import exp

SQL = {"ANSI_SQL": None, "SNOWFLAKE": "snowflake", "DATABRICKS": "databricks", "BIGQUERY": "bigquery"}
"""sqlglot's names of the dialects that are SQL, the preferred one first."""
LONGEST_EXPRESSION = 4_000
_MOST_SYNONYMS = 30
_LONGEST_NAME = 100
_MOST_FILLED = 50
"""The most definitions that are put into a metric: a few lines may stand for billions."""
_DEEPEST = 8
"""How deep metrics may be defined by others."""

_WORDS = {
    "description": str,
    "ai_context": {"instructions": str, "synonyms": [str]},
}
_EXPRESSION = {"dialects": [{"expression": str, "dialect": str}]}
_MODEL = {
    "name": str,
    "datasets": [
        {
            "name": str,
            "source": str,
            "primary_key": [[str]],
            "unique_keys": [[str]],
            "fields": [{"name": str, "expression": _EXPRESSION, **_WORDS}],
            **_WORDS,
        }
    ],
    "relationships": [
        {
            "name": str,
            "from": str,
            "to": str,
            "from_columns": [str],
            "to_columns": [str],
            "asof": {"from_column": str, "to_column": str, "match": str},
            "range": {"from_column": str, "start_column": str, "end_column": str},
            "condition": str,
            **_WORDS,
        },
    ],
    "metrics": [{"name": str, "expression": _EXPRESSION, **_WORDS}],
}

Tables = Callable[[str], TableProfile | None]
"""The table of a name or a source; None if it is unknown or ambiguous."""
Columns = Callable[[TableProfile, str], str | None]
"""The column of a table with a name, likewise."""


def models_in(plain: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The models of a document of Ossie: those in ``semantic_model``, or the document itself; none in another one."""
    inside = plain.get("semantic_model", {name: one for name, one in plain.items() if name != "version"})
    models = [one for one in (inside if isinstance(inside, list) else [inside]) if isinstance(one, Mapping)]
    return models if any(isinstance(one.get("datasets"), list) for one in models) else []


def tree_of(text: str, dialect: str = "ANSI_SQL") -> exp.Expr:
    """An expression as a tree.

    Raises:
        LookupError: it is no expression in SQL. A statement is none, nor is one with a subquery: it may read anything.
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if dialect not in SQL:
        raise LookupError(f"{dialect} is not SQL")
    if len(text) > LONGEST_EXPRESSION:
        raise LookupError(f"it has {len(text):,} characters, more than {LONGEST_EXPRESSION:,}")
    try:
        trees = parse(text, SQL[dialect])
        tree = trees[0] if len(trees) == 1 else None
        if not isinstance(tree, exp.Condition | exp.Filter | exp.WithinGroup) or tree.find(exp.Query):
            raise LookupError(f"{text[:_LONGEST_NAME]!r} is not one expression over columns")
        tree.sql()  # what is nested too deep is found here
    except (SqlglotError, UnsafeSQL, RecursionError) as error:
        raise LookupError(f"{text[:_LONGEST_NAME]!r} cannot be read as {dialect}") from error
    return tree


def expressions_of(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Dialect and expression of a field or a metric, SQL first."""
    written = [(each["dialect"] or "ANSI_SQL", each["expression"]) for each in one["expression"]["dialects"]]
    order = list(SQL)
    return sorted(
        (each for each in written if each[1].strip()),
        key=lambda each: order.index(each[0]) if each[0] in SQL else len(order),
    )


@dataclass
class Taken:
    """A model, matched with tables.

    Attributes:
        value: as :attr:`tagframe.corpus.facts.SemanticModel.value`.
        tables: the ids of the tables in it.
        unknown: names that the corpus does not have, or has several times.
        unread: parts of the model that could not be used, and why.
    """

    value: dict[str, Any]
    tables: tuple[str, ...] = ()
    unknown: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Of the model's form and name."""
        return hashlib.sha256(self.value["called"].encode("utf-8", "replace")).hexdigest()[:16]


@dataclass
class _Dataset:
    """A dataset with its table, and the columns of its fields; a computed field has an expression instead."""

    profile: TableProfile
    columns: dict[str, str] = field(default_factory=dict)
    computed: dict[str, exp.Expr] = field(default_factory=dict)


def taken(model: Mapping[str, Any], form: str, table_of: Tables, column_of: Columns) -> Taken:
    """Match a model with the tables of a corpus.

    Args:
        model: in Ossie's form.
        form: whose model it is: "Ossie" or "dbt".
        table_of, column_of: find tables and columns.
    """
    return _Reader(model, form, table_of, column_of).read()


class _Reader:
    def __init__(self, model: Mapping[str, Any], form: str, table_of: Tables, column_of: Columns) -> None:
        # Plain values, as facts are kept and YAML is written: there are days and halves of characters, too.
        text = json.dumps(model, default=str, skipkeys=True, ensure_ascii=False)
        raw = json.loads(text.encode("utf-8", "replace"))
        self._unread: list[str] = []
        self._model = shaped(raw, _MODEL, self._unread)
        name = _short(self._model["name"]) or "without a name"
        self._value: dict[str, Any] = {"called": f"{form} model {name}"}
        self._table_of, self._column_of = table_of, column_of
        self._datasets: dict[str, _Dataset] = {}
        self._metrics = {one["name"].casefold(): one for one in self._model["metrics"][::-1]}
        self._unknown: dict[str, None] = {}
        self._filled = 0

    def read(self) -> Taken:
        tables: dict[str, dict[str, Any]] = {}
        for one in self._model["datasets"]:
            self._dataset(one, tables)
        parts = (("relationship", self._key, "keys"), ("metric", self._metric, "metrics"))
        for kind, read, called in parts:
            entries = self._value[called] = []
            for one in self._model[f"{kind}s"]:
                try:
                    entries += read(one)
                except LookupError as error:
                    self._unread.append(f"{kind} {_short(one['name'])}: {error.args[0]}")
        self._value["tables"] = {id: description for id, description in tables.items() if any(description.values())}
        ids = sorted({one.profile.id for one in self._datasets.values()})
        return Taken(self._value, tuple(ids), list(self._unknown), self._unread)

    def _dataset(self, one: Mapping[str, Any], tables: dict[str, dict[str, Any]]) -> None:
        name, source = one["name"], one["source"]
        text, synonyms = _words_of(one)
        profile = self._table_of(source) or (self._table_of(name) if " " not in source else None)
        primary = tuple(chain(*one["primary_key"]))
        keyed = [primary, *map(tuple, one["unique_keys"])]
        if profile is None:
            if text or synonyms or any(keyed) or any(any(_words_of(each)) for each in one["fields"]):
                self._unknown[name or source] = None
            return
        if name.casefold() in self._datasets:
            self._unread.append(f"dataset {_short(name)}: it is defined twice; the first definition counts")
            return
        known = self._datasets[name.casefold()] = _Dataset(profile)
        texts = tables.setdefault(profile.id, {**_no_texts(), "primary_key": [], "unique_keys": [], "columns": {}})
        _add(texts, text, [*synonyms, *_other_name(name.rpartition(".")[2] or name, profile.name)])
        for each in one["fields"]:
            self._field(known, each, texts["columns"])
        primary_key, *unique = ([self._column(known, column) for column in key] for key in keyed)
        if primary_key and all(primary_key):
            texts["primary_key"] = primary_key
        texts["unique_keys"] += [key for key in unique if key and all(key) and key != primary_key]

    def _field(self, known: _Dataset, one: Mapping[str, Any], columns: dict[str, Any]) -> None:
        from sqlglot import exp

        name = one["name"]
        text, synonyms = _words_of(one)
        dialect, written = next(iter(expressions_of(one)), ("ANSI_SQL", name))
        column = self._column_of(known.profile, written.strip('"`[] '))
        if column is None:
            try:
                tree = tree_of(written, dialect)
            except LookupError as error:
                self._unread.append(f"field {known.profile.name}.{_short(name)}: {error.args[0]}")
                return
            if not isinstance(tree, exp.Column):
                known.computed[name.casefold()] = tree
                return
            column = self._column_of(known.profile, tree.name)
        if column is None:
            if text or synonyms:
                self._unknown[f"{known.profile.name}.{name}"] = None
            return
        known.columns[name.casefold()] = column
        texts = columns.get(column) or _no_texts()
        _add(texts, text, [*synonyms, *_other_name(name, column)])
        if any(texts.values()):
            columns[column] = texts

    def _column(self, known: _Dataset, name: str) -> str | None:
        """The column that a key names, itself or by a field."""
        column = self._column_of(known.profile, name) or known.columns.get(name.casefold())
        if column is None:
            self._unknown[f"{known.profile.name}.{name}"] = None
        return column

    def _key(self, one: Mapping[str, Any]) -> list[dict[str, Any]]:
        sides: list[tuple[str, list[str]]] = []
        for end in ("from", "to"):
            known = self._datasets.get(one[end].casefold())
            if known is None:
                raise LookupError(f"no table {_short(one[end])!r} here")
            columns = [self._column(known, column) for column in one[f"{end}_columns"]]
            if None in columns:
                return []  # they are reported as unknown
            sides.append((known.profile.id, [column for column in columns if column]))
        (left, mine), (right, theirs) = sides
        if one["condition"]:
            raise LookupError(f"a condition, {_short(one['condition'])!r}, is no key")
        if compared := [*_compared(one)]:
            equal = [(a, "=", b) for a, b in zip(one["from_columns"], one["to_columns"], strict=False)]
            on = " and ".join(f"{one['from']}.{a} {sign} {one['to']}.{b}" for a, sign, b in [*equal, *compared])
            raise LookupError(f"rows as of a moment are no key: merge the tables with on={on!r}")
        if len(mine) != len(theirs) or not mine:
            raise LookupError(f"{len(mine)} columns reference {len(theirs)}")
        if (left, mine) == (right, theirs):
            raise LookupError("both of its sides are the same columns")
        pair = {"left_table": left, "left_columns": mine, "right_table": right, "right_columns": theirs}
        return [{**pair, "name": _short(one["name"])}]

    def _metric(self, one: Mapping[str, Any]) -> list[dict[str, Any]]:
        name, (text, synonyms) = _short(one["name"]), _words_of(one)
        if not name:
            return []
        why = LookupError("it has no expression")
        for dialect, expression in expressions_of(one):
            metric = {"name": name, "dialect": dialect, "description": text, "synonyms": synonyms}
            if dialect not in SQL:
                return [{**metric, "expression": as_description(expression), "sources": {}, "reads": []}]
            self._filled = 0
            try:
                tree = self._over_columns(tree_of(expression, dialect), "", (name.casefold(),))
                sources, reads = self._sources(tree)
                written = tree.sql(dialect=SQL[dialect], comments=False)
                tree_of(written, dialect)  # with all that is filled in
            except LookupError as error:
                why = error
            except RecursionError:
                why = LookupError("it is nested too deep with all that is filled in")
            else:
                return [{**metric, "expression": written, "sources": sources, "reads": reads}]
        raise why

    def _sources(self, tree: exp.Expr) -> tuple[dict[str, str], list[list[str]]]:
        from sqlglot import exp

        columns = [node for node in tree.find_all(exp.Column) if node.table]
        sources = {node.table: self._datasets[node.table.casefold()].profile.id for node in columns}
        if not sources and len(self._datasets) == 1:  # COUNT(*)
            sources = {name: known.profile.id for name, known in self._datasets.items()}
        if not sources:
            raise LookupError("it reads no column of a table here")
        reads = [(sources[node.table], node.name) for node in columns if not isinstance(node.this, exp.Star)]
        return sources, [list(one) for one in dict.fromkeys(reads)]

    def _over_columns(self, tree: exp.Expr, within: str, inside: tuple[str, ...]) -> exp.Expr:
        """The expression with columns in place of fields, and with the definitions of other metrics filled in.

        Raises:
            LookupError: a name in it is unknown, or it cannot be filled in.
        """
        from sqlglot import exp

        def put(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return node
            called = node.name.casefold()
            for name, known in [self._owner(node.table)] if node.table else self._owners(node.name, within):
                column = known.columns.get(called) or self._column_of(known.profile, node.name)
                if column is not None:
                    return exp.column(exp.to_identifier(column), table=exp.to_identifier(name))
                if (computed := known.computed.get(called)) is not None:
                    return filled(computed.copy(), name, called)
            if (other := self._metrics.get(called)) is None:
                raise LookupError(f"there is no column {node.sql()!r} here")
            dialect, text = next(iter(expressions_of(other)), ("ANSI_SQL", ""))
            return filled(tree_of(text, dialect), "", called)

        def filled(definition: exp.Expr, owner: str, called: str) -> exp.Expr:
            self._filled += 1
            if called in inside or len(inside) > _DEEPEST or self._filled > _MOST_FILLED:
                raise LookupError(f"{called!r} in it is defined by itself, or by too many others")
            return exp.paren(self._over_columns(definition, owner, (*inside, called)))

        return tree.transform(put)

    def _owner(self, name: str) -> tuple[str, _Dataset]:
        known = self._datasets.get(name.casefold())
        if known is None:
            raise LookupError(f"there is no table {name!r} here")
        return name, known

    def _owners(self, column: str, within: str) -> list[tuple[str, _Dataset]]:
        """The datasets that may have a column that is written without one: the given one, or the only one with it."""
        if within:
            return [self._owner(within)]
        having = [
            (name, known)
            for name, known in self._datasets.items()
            if column.casefold() in {*known.columns, *known.computed} or self._column_of(known.profile, column)
        ]
        return having if len(having) == 1 else []


def _compared(one: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What a relationship compares beside equal columns: one moment, or the two ends of a half-open interval."""
    moment, interval = one["asof"], one["range"]
    if moment["to_column"]:
        yield moment["from_column"], moment["match"] or ">=", moment["to_column"]
    if interval["start_column"]:
        yield interval["from_column"], ">=", interval["start_column"]
        yield interval["from_column"], "<", interval["end_column"]


def _short(name: str) -> str:
    return as_description(name)[:_LONGEST_NAME]


def _no_texts() -> dict[str, Any]:
    return {"description": "", "synonyms": []}


def _add(texts: dict[str, Any], text: str, synonyms: Sequence[str]) -> None:
    texts["description"] = texts["description"] or text
    texts["synonyms"] = [*dict.fromkeys([*texts["synonyms"], *synonyms])]


def _words_of(one: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The description of a part of a model, with the instructions for its use, and its synonyms."""
    context = one["ai_context"]
    parts, synonyms = [one["description"], context["instructions"]], context["synonyms"][:_MOST_SYNONYMS]
    return as_description(" ".join(filter(None, map(str.strip, parts)))), [*filter(None, map(_short, synonyms))]


def _other_name(name: str, known: str) -> list[str]:
    """The name, if it is another word than the known one."""
    plain = ["".join(letter for letter in one.casefold() if letter.isalnum()) for one in (name, known)]
    return [_short(name)] if plain[0] != plain[1] and name else []


# --- plain values of a file ------------------------------------------------------------------------------------------


_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}


def shaped(given: Any, shape: Any, unread: list[str], at: str = "") -> Any:
    """The given values in a shape; what is missing is "", an empty list, or a mapping of such.

    A mapping stands for the list of its values (dbt's manifest), a value for a list of it alone, and a text or a list
    for a mapping with only the first of its names.

    >>> unread = []
    >>> shaped({"name": 1, "keys": ["a", {}], "of": None}, {"name": str, "keys": [str], "of": str, "to": [str]}, unread)
    {'name': '1', 'keys': ['a'], 'of': '', 'to': []}
    >>> unread
    ['keys[1] is a mapping, not a text']

    Args:
        given: the values.
        shape: as above.
        unread: what is left out is added here.
        at: where the values stand in the file.
    """
    if shape is object:
        return given
    if isinstance(shape, list):
        listed = [*given.values()] if isinstance(given, Mapping) else [] if given is None else given
        listed = listed if isinstance(listed, list) else [listed]
        named = [(one, f"{at}[{place}]") for place, one in enumerate(listed)]
        return [shaped(one, shape[0], unread, where) for one, where in named if _fits(one, shape[0], unread, where)]
    if isinstance(shape, dict):
        first = next(iter(shape))
        if given is not None and not isinstance(given, Mapping):
            given = {first: given} if _fits(given, shape[first], unread, at) else None
        known = given or {}
        return {
            name: shaped(known.get(name), inner, unread, f"{at}.{name}".removeprefix("."))
            for name, inner in shape.items()
        }
    return str(given) if given is not None and _fits(given, str, unread, at) else ""


def _fits(given: Any, shape: Any, unread: list[str], at: str) -> bool:
    """Whether a value can be brought into a shape."""
    if shape is object or (isinstance(given, Mapping) and shape is not str):
        return True
    if isinstance(shape, list):
        return True
    if isinstance(shape, dict) and given is not None:
        return _fits(given, next(iter(shape.values())), unread, at)
    if given is None or isinstance(given, list | Mapping):
        what = "empty" if given is None else _KINDS[dict if isinstance(given, Mapping) else list]
        unread.append(f"{at or 'it'} is {what}, not {_KINDS.get(type(shape), 'a text')}")
        return False
    return True
