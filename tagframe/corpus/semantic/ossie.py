"""A semantic model in Apache Ossie's form, matched with the tables of a corpus.

Apache Ossie (formerly OSI), core metadata specification: datasets with fields, relationships, metrics. The models of
dbt and Snowflake are brought into this form first (:mod:`~tagframe.corpus.semantic.dbt`,
:mod:`~tagframe.corpus.semantic.snowflake`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tagframe.corpus.profile import TableProfile
from tagframe.corpus.semantic.known import SemanticModel
from tagframe.corpus.told import as_description

if TYPE_CHECKING:
    from sqlglot import exp

VENDOR = "TAGFRAME"
"""The vendor of our own ``custom_extensions``."""
SQL = {"ANSI_SQL": None, "SNOWFLAKE": "snowflake", "DATABRICKS": "databricks", "BIGQUERY": "bigquery"}
"""sqlglot's names of the dialects that are SQL, the preferred one first."""
_MOST_SYNONYMS = 30
_LONGEST_NAME = 100
_LONGEST_EXPRESSION = 4_000
_DEEPEST = 8
"""How deep metrics may be defined by others."""

Tables = Callable[[str], TableProfile | None]
"""The table of a name or a source; None if it is unknown or ambiguous."""
Columns = Callable[[TableProfile, str], str | None]
"""The column of a table with a name, likewise."""


def entries(given: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list; nothing if it is no list."""
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


def text_of(given: Any) -> str:
    """A text; "" for anything else."""
    return given if isinstance(given, str) else ""


def names_in(given: Any) -> tuple[str, ...]:
    """The texts of a list, or of one name alone."""
    listed = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(str(one) for one in listed if isinstance(one, str | int) and str(one))


def ansi(expression: str) -> dict[str, Any]:
    """An expression in Ossie's form."""
    return {"dialects": [{"dialect": "ANSI_SQL", "expression": expression}]}


def tree_of(text: str, dialect: str = "ANSI_SQL") -> exp.Expr | None:
    """An expression as a tree; None if it is not one, or not SQL."""
    import sqlglot

    if dialect not in SQL or not text.strip() or len(text) > _LONGEST_EXPRESSION:
        return None
    try:
        return sqlglot.parse_one(text, read=SQL[dialect])
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def expressions_of(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Dialect and expression of a field or a metric, SQL first."""
    given = one.get("expression")
    listed = entries(given.get("dialects")) if isinstance(given, Mapping) else []
    found = [(text_of(each.get("dialect")) or "ANSI_SQL", text_of(each.get("expression"))) for each in listed]
    found += [("ANSI_SQL", given)] if isinstance(given, str) else []
    order = list(SQL)
    return sorted(
        [(dialect, text) for dialect, text in found if text.strip()],
        key=lambda each: order.index(each[0]) if each[0] in SQL else len(order),
    )


def words_of(one: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The description of a part of a model, with the instructions for its use, and its synonyms; no inferred ones."""
    inferred = inferred_of(one)
    if inferred:
        one = {**one, **({"description": ""} if "description" in inferred else {})}
        one |= {"ai_context": ""} if "synonyms" in inferred else {}
    context = one.get("ai_context")
    said = [text_of(one.get("description"))]
    synonyms: tuple[str, ...] = ()
    if isinstance(context, Mapping):
        said.append(text_of(context.get("instructions")))
        synonyms = names_in(context.get("synonyms"))
    else:
        said.append(text_of(context))
    kept = [as_description(name)[:_LONGEST_NAME] for name in synonyms[:_MOST_SYNONYMS]]
    return as_description(". ".join(part.strip().rstrip(".") for part in said if part.strip())), [*filter(None, kept)]


def own_facts(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """What tagframe itself wrote beside a part of a model."""
    for extension in entries(one.get("custom_extensions")):
        if extension.get("vendor_name") == VENDOR:
            try:
                data = json.loads(text_of(extension.get("data")))
            except (ValueError, RecursionError):
                continue
            if isinstance(data, Mapping):
                return data
    return {}


def inferred_of(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts that tagframe wrote as inferred ones, so that people review them: they are not read as declared."""
    return names_in(own_facts(one).get("inferred"))


@dataclass
class Taken:
    """A model, matched with tables.

    Attributes:
        model: as a fact.
        tables: the ids of the tables in it.
        unknown: names that the corpus does not have, or has several times.
        unread: parts of the model that could not be used, and why.
    """

    model: SemanticModel
    tables: tuple[str, ...]
    unknown: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass
class _Dataset:
    """A dataset with its table, and the columns of its fields; a computed field has an expression instead."""

    profile: TableProfile
    columns: dict[str, str]
    computed: dict[str, exp.Expr]


def taken(model: Mapping[str, Any], form: str, table_of: Tables, column_of: Columns) -> Taken:
    """Match a model with the tables of a corpus.

    Args:
        model: in Ossie's form.
        form: whose model it is: "Ossie", "dbt" or "Snowflake".
        table_of, column_of: find tables and columns.
    """
    return _Reader(model, form, table_of, column_of).read()


class _Reader:
    def __init__(self, model: Mapping[str, Any], form: str, table_of: Tables, column_of: Columns) -> None:
        # Plain values, as facts are kept: YAML has days and other things, too.
        self._model: Mapping[str, Any] = json.loads(json.dumps(model, default=str, skipkeys=True))
        self._form = form
        self._name = as_description(text_of(self._model.get("name")))[:_LONGEST_NAME] or "without a name"
        self._table_of, self._column_of = table_of, column_of
        self._datasets: dict[str, _Dataset] = {}
        self._all = [one for one in entries(self._model.get("metrics")) if text_of(one.get("name"))]
        self._metrics = {str(one["name"]).casefold(): one for one in self._all[::-1]}
        self._unknown: dict[str, None] = {}
        self._unread: list[str] = []

    def read(self) -> Taken:
        tables: dict[str, dict[str, Any]] = {}
        for one in entries(self._model.get("datasets")):
            self._dataset(one, tables)
        keys = [key for one in entries(self._model.get("relationships")) if (key := self._key(one)) is not None]
        metrics = [metric for one in self._all if (metric := self._metric(one)) is not None]
        tables = {id: said for id, said in tables.items() if any(said.values())}
        called = f"{self._form} model {self._name}"
        datasets = {
            text_of(one.get("name")): [known.profile.id, known.columns]
            for one in entries(self._model.get("datasets"))
            if (known := self._datasets.get(text_of(one.get("name")).casefold())) is not None
        }
        value = {"called": called, "tables": tables, "datasets": datasets, "keys": keys, "metrics": metrics}
        value["model"] = self._model
        ids = {known.profile.id for known in self._datasets.values()}
        digest = hashlib.sha256(called.encode("utf-8", "replace")).hexdigest()[:16]
        return Taken(SemanticModel(digest, value), tuple(sorted(ids)), list(self._unknown), self._unread)

    def _dataset(self, one: Mapping[str, Any], tables: dict[str, dict[str, Any]]) -> None:
        name, source = text_of(one.get("name")), text_of(one.get("source"))
        text, synonyms = words_of(one)
        profile = self._table_of(source) or (self._table_of(name) if " " not in source else None)
        fields = [(text_of(each.get("name")), each) for each in entries(one.get("fields"))]
        primary_key = () if "primary_key" in inferred_of(one) else names_in(one.get("primary_key"))
        keyed = [primary_key, *map(names_in, self._unique_keys(one))]
        if profile is None:
            if text or synonyms or any(keyed) or any(any(words_of(each)) for _, each in fields):
                self._unknown[name or source] = None
            return
        known = self._datasets[name.casefold()] = _Dataset(profile, {}, {})
        said = tables.setdefault(
            profile.id, {"description": "", "synonyms": [], "primary_key": [], "unique_keys": [], "columns": {}}
        )
        called = [name] if _plain(profile.name) not in (_plain(name), _plain(name.rpartition(".")[2])) else []
        said["description"] = said["description"] or text
        said["synonyms"] = [*dict.fromkeys([*said["synonyms"], *synonyms, *called])]
        for field_name, each in fields:
            self._field(known, field_name, each, said["columns"])
        primary, *unique = ([self._column(known, column) for column in key] for key in keyed)
        if primary and all(primary):
            said["primary_key"] = primary
        said["unique_keys"] += [key for key in unique if key and all(key) and key != primary]

    @staticmethod
    def _unique_keys(one: Mapping[str, Any]) -> list[Any]:
        keys = one.get("unique_keys")
        return keys if isinstance(keys, list) else []

    def _field(self, known: _Dataset, name: str, one: Mapping[str, Any], columns: dict[str, Any]) -> None:
        from sqlglot import exp

        text, synonyms = words_of(one)
        dialect, written = next(iter(expressions_of(one)), ("ANSI_SQL", name))
        column = self._column_of(known.profile, written.strip('"`[] '))
        tree = tree_of(written, dialect) if column is None else None
        if isinstance(tree, exp.Column):
            column = self._column_of(known.profile, tree.name)
        elif tree is not None:
            known.computed[name.casefold()] = tree
            return
        if column is None:
            if text or synonyms:
                self._unknown[f"{known.profile.name}.{name}"] = None
            return
        known.columns[name.casefold()] = known.columns[name] = column
        said = columns.setdefault(column, {"description": "", "synonyms": []})
        said["description"] = said["description"] or text
        called = [name] if _plain(name) != _plain(column) else []
        said["synonyms"] = [*dict.fromkeys([*said["synonyms"], *synonyms, *called])]
        if not any(said.values()):
            del columns[column]

    def _column(self, known: _Dataset, name: str) -> str | None:
        """The column that a key names, itself or by a field."""
        found = self._column_of(known.profile, name) or known.columns.get(name.casefold())
        if found is None:
            self._unknown[f"{known.profile.name}.{name}"] = None
        return found

    def _key(self, one: Mapping[str, Any]) -> dict[str, Any] | None:
        if "relationship" in inferred_of(one):
            return None
        name = text_of(one.get("name"))
        sides = []
        for end in ("from", "to"):
            known = self._datasets.get(text_of(one.get(end)).casefold())
            if known is None:
                self._unread.append(f"relationship {name}: no table {text_of(one.get(end))!r} here")
                return None
            columns = [self._column(known, column) for column in names_in(one.get(f"{end}_columns"))]
            if None in columns:
                return None
            sides.append((known.profile.id, columns))
        (left, mine), (right, theirs) = sides
        if len(mine) != len(theirs) or not mine or (left, mine) == (right, theirs):
            self._unread.append(f"relationship {name}: {len(mine)} columns reference {len(theirs)}")
            return None
        said = {"left_table": left, "left_columns": mine, "right_table": right, "right_columns": theirs}
        return {**said, "name": as_description(name)[:_LONGEST_NAME]}

    def _metric(self, one: Mapping[str, Any]) -> dict[str, Any] | None:
        name = as_description(text_of(one.get("name")))[:_LONGEST_NAME]
        text, synonyms = words_of(one)
        written = expressions_of(one)
        if not written:
            self._unread.append(f"metric {name}: it has no expression")
            return None
        why = ""
        for dialect, expression in written:
            found = {"name": name, "dialect": dialect, "description": text, "synonyms": synonyms}
            if dialect not in SQL:
                return {**found, "expression": as_description(expression), "sources": {}, "reads": []}
            tree = tree_of(expression, dialect)
            if tree is None:
                why = f"its expression cannot be read as {dialect}"
                continue
            try:
                tree = self._over_columns(tree, own_facts(one).get("dataset"), (name.casefold(),))
            except LookupError as error:
                why = str(error.args[0])
                continue
            sources, reads = self._sources(tree)
            owner = own_facts(one).get("dataset") or (next(iter(self._datasets)) if len(self._datasets) == 1 else "")
            if not sources and isinstance(owner, str) and owner.casefold() in self._datasets:  # COUNT(*)
                sources = {owner: self._datasets[owner.casefold()].profile.id}
            if not sources:
                why = "it reads no column of a table here"
                continue
            return {**found, "expression": tree.sql(dialect=SQL[dialect]), "sources": sources, "reads": reads}
        self._unread.append(f"metric {name}: {why}")
        return None

    def _sources(self, tree: exp.Expr) -> tuple[dict[str, str], list[list[str]]]:
        from sqlglot import exp

        columns = [node for node in tree.find_all(exp.Column) if node.table]
        sources = {node.table: self._datasets[node.table.casefold()].profile.id for node in columns}
        reads = [(sources[node.table], node.name) for node in columns if not isinstance(node.this, exp.Star)]
        return sources, [list(one) for one in dict.fromkeys(reads)]

    def _over_columns(self, tree: exp.Expr, within: Any, inside: tuple[str, ...]) -> exp.Expr:
        """The expression with columns in place of fields, and with the definitions of other metrics filled in.

        Raises:
            LookupError: a name in it is unknown.
        """
        from sqlglot import exp

        def put(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                return node
            owners = [self._owner(node.table)] if node.table else [*self._owners(node.name, within)]
            for name, known in owners:
                column = known.columns.get(node.name.casefold()) or self._column_of(known.profile, node.name)
                if column is not None:
                    return exp.column(exp.to_identifier(column), table=exp.to_identifier(name))
                if (computed := known.computed.get(node.name.casefold())) is not None and len(inside) < _DEEPEST:
                    return exp.paren(self._over_columns(computed.copy(), name, (*inside, node.name)))
            other = self._metrics.get(node.name.casefold())
            if other is None or node.name.casefold() in inside or len(inside) >= _DEEPEST:
                raise LookupError(f"there is no column {node.sql()!r} here")
            dialect, text = expressions_of(other)[0] if expressions_of(other) else ("", "")
            if (meant := tree_of(text, dialect)) is None:
                raise LookupError(f"the metric {node.name!r}, by which it is defined, is not SQL")
            owner = own_facts(other).get("dataset")
            return exp.paren(self._over_columns(meant, owner, (*inside, node.name.casefold())))

        return tree.transform(put)

    def _owner(self, name: str) -> tuple[str, _Dataset]:
        known = self._datasets.get(name.casefold())
        if known is None:
            raise LookupError(f"there is no table {name!r} here")
        return name, known

    def _owners(self, column: str, within: Any) -> Iterator[tuple[str, _Dataset]]:
        """The datasets that may have a column that is written without one: the given one, or the only one with it."""
        if isinstance(within, str) and within.casefold() in self._datasets:
            yield self._owner(within)
            return
        having = [
            (name, known)
            for name, known in self._datasets.items()
            if column.casefold() in {*known.columns, *known.computed} or self._column_of(known.profile, column)
        ]
        if len(having) == 1:
            yield having[0]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


_OF_DOCUMENT = ("version", "dialects", "vendors", "$schema")


def models_in(plain: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The models of a document of Ossie: those in ``semantic_model``, or the document itself."""
    inside = plain.get("semantic_model")
    own = {name: value for name, value in plain.items() if name not in _OF_DOCUMENT}
    return [inside] if isinstance(inside, Mapping) else entries(inside) or [own]


def is_ossie(plain: Mapping[str, Any]) -> bool:
    """Whether a document has Ossie's form."""
    return any(isinstance(model.get("datasets"), list) for model in models_in(plain))


def merged(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Parts of one model as one; of two parts with one name, the first counts, but both definitions of a metric."""
    found: dict[str, Any] = {}
    for model in models:
        for name, value in model.items():
            if not isinstance(value, list):
                found.setdefault(name, value)
                continue
            held = found.setdefault(name, [])
            known = [one if name == "metrics" else one.get("name") for one in entries(held)]
            held += [one for one in entries(value) if (one if name == "metrics" else one.get("name")) not in known]
    return found
