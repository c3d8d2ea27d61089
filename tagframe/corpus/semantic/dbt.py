"""dbt's properties files (``schema.yml``) and ``manifest.json`` as a semantic model in Ossie's form.

Tests are keys: ``relationships`` is a relationship; ``unique`` together with ``not_null`` is a primary key. Entities of
semantic models are keys, too; measures and metrics (MetricFlow) are metrics. Exposures are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tagframe.corpus.semantic.ossie import VENDOR, ansi, entries, names_in, text_of, tree_of

_REF = re.compile(r"""\b(?:ref|source)\(\s*['"]([^'"]+)['"]\s*(?:,\s*['"]([^'"]+)['"])?""")
_SOURCE = re.compile(r"\bsource\(")
_JINJA = re.compile(
    r"""\{\{\s*(?:Time)?(?:Dimension|Entity)\(\s*['"](?:(\w+)__)?(\w+)['"][^)]*\)(?:\.\w+\([^)]*\))?\s*\}\}"""
)
_PARTS = ("models", "seeds", "snapshots")
_AGGREGATES = {
    "sum": "SUM({})",
    "count": "COUNT({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "average": "AVG({})",
    "min": "MIN({})",
    "max": "MAX({})",
    "median": "MEDIAN({})",
    "sum_boolean": "SUM(CASE WHEN {} THEN 1 ELSE 0 END)",
}


def is_manifest(plain: Mapping[str, Any]) -> bool:
    """Whether a document is dbt's ``manifest.json``."""
    return isinstance(plain.get("nodes"), Mapping) and isinstance(plain.get("metadata"), Mapping)


def model_of_dbt(documents: Sequence[Mapping[str, Any]], project: str, put: Callable[[str], str]) -> dict[str, Any]:
    """The model that properties files are, together.

    Args:
        documents: the files' contents; a manifest stands for all files.
        project: the name of the project.
        put: fills documentation blocks into a description.
    """
    manifests = [one for one in documents if is_manifest(one)]
    if manifests:
        documents = [_of_manifest(one) for one in manifests]
        metadata = manifests[0]["metadata"]
        project = text_of(metadata.get("project_name")) or project
    return _Project(documents, put).model(project)


def _of_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest as a properties file."""
    nodes = [*_values(manifest.get("nodes")), *_values(manifest.get("sources"))]
    tables: dict[str, dict[str, Any]] = {}
    for id, node in nodes:
        if node.get("resource_type") in ("model", "seed", "snapshot", "source"):
            columns = {str(name): dict(one) for name, one in _values(node.get("columns"))}
            tables[id] = {**node, "columns": columns, "data_tests": []}
    for _, node in nodes:
        test, about = node.get("test_metadata"), _tested(node, tables)
        if node.get("resource_type") != "test" or not isinstance(test, Mapping) or about is None:
            continue
        given = test.get("kwargs")
        kwargs = dict(given) if isinstance(given, Mapping) else {}
        column = text_of(kwargs.pop("column_name", None)) or text_of(node.get("column_name"))
        tests = [{str(test.get("name")): kwargs}]
        if column:
            known = next(
                (name for name in about["columns"] if name.casefold() == column.strip('"`').casefold()), column
            )
            tests = about["columns"].setdefault(known, {"name": known}).setdefault("tests_", [])
            tests.append({str(test.get("name")): kwargs})
        else:
            about["data_tests"] += tests
    for table in tables.values():
        table["columns"] = [
            {**one, "name": name, "data_tests": one.pop("tests_", [])} for name, one in table["columns"].items()
        ]
    of_source: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for table in tables.values():
        if table.get("resource_type") == "source":
            of_source.setdefault((text_of(table.get("source_name")), text_of(table.get("schema"))), []).append(table)
    return {
        "models": [table for table in tables.values() if table.get("resource_type") != "source"],
        "sources": [{"name": name, "schema": schema, "tables": those} for (name, schema), those in of_source.items()],
        "semantic_models": [one for _, one in _values(manifest.get("semantic_models"))],
        "metrics": [one for _, one in _values(manifest.get("metrics"))],
    }


def _values(given: Any) -> list[tuple[str, Mapping[str, Any]]]:
    named = given.items() if isinstance(given, Mapping) else ()
    return [(str(name), one) for name, one in named if isinstance(one, Mapping)]


def _tested(node: Mapping[str, Any], tables: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The table that a test is about."""
    if (attached := text_of(node.get("attached_node"))) in tables:
        return tables[attached]
    test, depends = node.get("test_metadata"), node.get("depends_on")
    kwargs = test.get("kwargs") if isinstance(test, Mapping) else None
    named = _referred(text_of(kwargs.get("model"))) if isinstance(kwargs, Mapping) else ""
    on = names_in(depends.get("nodes")) if isinstance(depends, Mapping) else ()
    found = [id for id in (*on, *tables) if id in tables and id.endswith(f".{named}")] if named else list(on[-1:])
    return tables.get(found[0]) if found else None


def _referred(text: str) -> str:
    """The dataset in ``ref('orders')`` or ``source('raw', 'orders')``; the bare name for anything else."""
    found = _REF.search(text)
    if found is None:
        return text.strip().strip("'\"")
    one, other = found[1], found[2]
    if _SOURCE.search(text):
        return f"{one}.{other}"
    return other or one


class _Project:
    def __init__(self, documents: Sequence[Mapping[str, Any]], put: Callable[[str], str]) -> None:
        self._documents, self._put = documents, put
        self._datasets: dict[str, dict[str, Any]] = {}
        self._relationships: dict[str, dict[str, Any]] = {}
        self._metrics: list[dict[str, Any]] = []
        self._measures: dict[str, tuple[str, str]] = {}
        """Expression and dataset, by name."""
        self._dimensions: dict[tuple[str, str], tuple[str, str]] = {}
        """Dataset and expression, by the primary entity and the name."""
        self._entities: list[tuple[str, str, str, str]] = []
        """Dataset, name, kind and column."""

    def model(self, name: str) -> dict[str, Any]:
        for document in self._documents:
            for part in _PARTS:
                for model in entries(document.get(part)):
                    self._model(model)
            for source in entries(document.get("sources")):
                schema = str(source.get("schema") or source.get("name"))
                for table in entries(source.get("tables")):
                    self._table(f"{source.get('name')}.{table.get('name')}", f"{schema}.{_name(table)}", table, [])
        for document in self._documents:
            for semantic in entries(document.get("semantic_models")):
                self._semantic(_referred(text_of(semantic.get("model"))), semantic)
        self._join_entities()
        given = [(one, "") for document in self._documents for one in entries(document.get("metrics"))]
        given += [
            (one, text_of(model.get("name")))
            for document in self._documents
            for model in entries(document.get("models"))
            for one in entries(model.get("metrics"))
        ]
        of_measures = {one["name"]: one for one in self._metrics}
        self._metrics = []
        for one, dataset in given:
            self._metric(one, dataset)
            of_measures.pop(text_of(one.get("name")), None)
        return {
            "name": name,
            "datasets": [_filled(one) for one in self._datasets.values()],
            "relationships": list(self._relationships.values()),
            "metrics": [*of_measures.values(), *self._metrics],
        }

    # --- tables and their tests

    def _model(self, model: Mapping[str, Any]) -> None:
        for version in entries(model.get("versions")) or [{}]:
            name = _name(version) or (f"{model.get('name')}_v{version['v']}" if "v" in version else _name(model))
            told = {**model, "description": self._told(version) or self._told(model)}
            own = name if version else str(model.get("name"))
            schema = text_of(model.get("schema"))  # of a manifest's node
            self._table(own, f"{schema}.{name}" if schema else name, told, entries(version.get("columns")))
        if isinstance(model.get("semantic_model"), Mapping | bool) and model["semantic_model"]:
            self._columns_semantic(model)

    def _table(self, name: str, source: str, one: Mapping[str, Any], more: Sequence[Mapping[str, Any]]) -> None:
        dataset = self._dataset(name, source)
        dataset["description"] = self._told(one)
        unique, known = set[str](), set[str]()
        for column in (*entries(one.get("columns")), *more):
            if "name" not in column:
                continue
            called = str(column["name"])
            field = {"name": called, "expression": ansi(called)}
            dataset["fields"][called] = field | ({"description": told} if (told := self._told(column)) else {})
            for kind, options in _tests(column):
                unique |= {called} if kind == "unique" else set()
                known |= {called} if kind == "not_null" else set()
                self._test(name, kind, {"column": called, **options})
            for constraint in entries(column.get("constraints")):
                self._constraint(dataset, name, {"columns": [called], **constraint})
        for constraint in entries(one.get("constraints")):
            self._constraint(dataset, name, constraint)
        for kind, options in _tests(one):
            self._test(name, kind, options)
            if kind.endswith("unique_combination_of_columns"):
                dataset["unique_keys"].append([*names_in(options.get("combination_of_columns"))])
        keys = [one for one in unique if one in known]
        if len(keys) == 1:
            dataset["primary_key"] = dataset["primary_key"] or keys
        dataset["unique_keys"] += [[one] for one in sorted(unique) if [one] != dataset["primary_key"]]

    def _dataset(self, name: str, source: str = "") -> dict[str, Any]:
        held = self._datasets.setdefault(
            name, {"name": name, "source": source or name, "primary_key": [], "unique_keys": [], "fields": {}}
        )
        held["source"] = source or held["source"]
        return held

    def _told(self, one: Mapping[str, Any]) -> str:
        return self._put(text_of(one.get("description")))

    def _test(self, table: str, kind: str, options: Mapping[str, Any]) -> None:
        if kind.rpartition(".")[2] in ("relationships", "relationships_where") and "column" in options:
            mine = text_of(options.get("column_name")) or str(options["column"])
            self._relate(table, [mine], _referred(text_of(options.get("to"))), [*names_in(options.get("field"))])

    def _constraint(self, dataset: dict[str, Any], table: str, one: Mapping[str, Any]) -> None:
        columns = [*names_in(one.get("columns"))]
        if one.get("type") == "primary_key":
            dataset["primary_key"] = columns
        elif one.get("type") == "unique":
            dataset["unique_keys"].append(columns)
        elif one.get("type") == "foreign_key":
            self._relate(table, columns, _referred(text_of(one.get("to"))), [*names_in(one.get("to_columns"))])

    def _relate(self, table: str, mine: Sequence[str], other: str, theirs: Sequence[str]) -> None:
        if not other or not theirs or not mine:
            return
        self._dataset(other)
        name = f"{table}.{' '.join(mine)} to {other}.{' '.join(theirs)}"
        sides = {"from": table, "to": other, "from_columns": [*mine], "to_columns": [*theirs]}
        self._relationships.setdefault(name, {"name": name, **sides})

    # --- semantic models

    def _semantic(self, dataset: str, semantic: Mapping[str, Any]) -> None:
        known = self._dataset(dataset)
        known["description"] = known.get("description") or self._told(semantic)
        primary = text_of(semantic.get("primary_entity"))
        for entity in entries(semantic.get("entities")):
            name, kind = text_of(entity.get("name")), text_of(entity.get("type"))
            self._entities.append((dataset, name, kind, text_of(entity.get("expr")) or name))
            primary = primary or (name if kind == "primary" else "")
        for dimension in entries(semantic.get("dimensions")):
            name = text_of(dimension.get("name"))
            self._dimensions[primary, name] = dataset, text_of(dimension.get("expr")) or name
        for measure in entries(semantic.get("measures")):
            self._measure(dataset, measure)

    def _columns_semantic(self, model: Mapping[str, Any]) -> None:
        """The form in which a model's columns are its entities and dimensions."""
        entities: list[dict[str, Any]] = []
        dimensions: list[dict[str, Any]] = []
        for column in entries(model.get("columns")):
            name = str(column.get("name"))
            for kind, found in (("entity", entities), ("dimension", dimensions)):
                one = column.get(kind)
                if isinstance(one, Mapping):
                    found.append({"name": name, **one, "expr": name})
                elif one and isinstance(one, str):
                    found.append({"name": name, "type": one, "expr": name})
        primary = text_of(model.get("primary_entity"))
        self._semantic(
            str(model.get("name")), {"primary_entity": primary, "entities": entities, "dimensions": dimensions}
        )

    def _join_entities(self) -> None:
        for dataset, name, kind, column in self._entities:
            if kind in ("primary", "unique", "natural"):
                held = self._dataset(dataset)
                if kind == "primary" and not held["primary_key"]:
                    held["primary_key"] = [column]
                elif [column] != held["primary_key"] and [column] not in held["unique_keys"]:
                    held["unique_keys"].append([column])
            elif kind == "foreign":
                for other, also, its_kind, its_column in self._entities:
                    if also == name and other != dataset and its_kind in ("primary", "unique"):
                        self._relate(dataset, [column], other, [its_column])

    def _measure(self, dataset: str, measure: Mapping[str, Any]) -> None:
        name = text_of(measure.get("name"))
        expression = _aggregated(measure, str(measure.get("expr") or name))
        if name and expression:
            self._measures[name] = expression, dataset
            self._put_metric(name, measure, expression, dataset)

    def _put_metric(self, name: str, one: Mapping[str, Any], expression: str, dataset: str) -> None:
        label = text_of(one.get("label"))
        synonyms = {"ai_context": {"synonyms": [label]}} if label and _bare(label) != _bare(name) else {}
        told = {"description": text} if (text := self._told(one)) else {}
        data = json.dumps({"dataset": dataset}) if dataset else ""
        owner = {"custom_extensions": [{"vendor_name": VENDOR, "data": data}]} if dataset else {}
        self._metrics.append({"name": name, "expression": ansi(expression), **told, **synonyms, **owner})

    # --- metrics

    def _metric(self, one: Mapping[str, Any], dataset: str) -> None:
        name = text_of(one.get("name"))
        given = one.get("type_params")
        options: Mapping[str, Any] = {**one, **given} if isinstance(given, Mapping) else one
        expression, owner = self._expression(text_of(one.get("type")), options, name, dataset)
        for condition in _filters(one.get("filter")):
            expression = self._filtered(expression, condition)
        if name:
            self._put_metric(name, one, expression, owner)

    def _expression(self, kind: str, options: Mapping[str, Any], name: str, dataset: str) -> tuple[str, str]:
        """The expression, and the dataset whose columns it names; "" for a metric that is not one expression."""
        if kind in ("simple", "cumulative"):
            if options.get("agg"):  # a metric of the model's own columns
                return _aggregated(options, str(options.get("expr") or name)), dataset
            named, conditions = _named(options.get("measure"))
            expression, owner = self._measures.get(named, ("", ""))
            for condition in conditions:
                expression = self._filtered(expression, condition)
            over = any(options.get(key) for key in ("window", "grain_to_date", "cumulative_type_params"))
            return ("" if kind == "cumulative" and over else expression), owner
        if kind == "ratio":
            parts = [_named(options.get(part)) for part in ("numerator", "denominator")]
            plain = all(named and not conditions for named, conditions in parts)
            return f"{parts[0][0]} / NULLIF({parts[1][0]}, 0)" if plain else "", ""
        if kind == "derived":
            inputs = options.get("metrics") or options.get("input_metrics")
            expression = text_of(options.get("expr"))
            for one in entries(inputs):
                if any(one.get(key) for key in ("offset_window", "offset_to_grain", "filter")):
                    return "", ""
                if alias := text_of(one.get("alias")):
                    expression = re.sub(rf"\b{re.escape(alias)}\b", text_of(one.get("name")), expression)
            return expression, ""
        return "", ""

    def _filtered(self, expression: str, condition: str) -> str:
        """An aggregate of the rows for which a condition holds; "" if it cannot be written as SQL."""
        from sqlglot import exp

        def column(found: re.Match[str]) -> str:
            dataset, text = self._dimensions.get((found[1] or "", found[2]), ("", ""))
            return f"({_qualified(text, dataset)})" if dataset else found[0]

        said = _JINJA.sub(column, condition)
        tree = tree_of(expression)
        if tree is None or "{{" in said or (test := tree_of(said)) is None:
            return ""
        for node in [*tree.find_all(exp.AggFunc)]:
            inner = node.this
            value = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
            value = exp.Literal.number(1) if isinstance(value, exp.Star) else value
            case = exp.Case(ifs=[exp.If(this=test.copy(), true=value.copy())])
            node.set("this", exp.Distinct(expressions=[case]) if isinstance(inner, exp.Distinct) else case)
        return tree.sql()


def _qualified(text: str, dataset: str) -> str:
    from sqlglot import exp

    tree = tree_of(text)
    if tree is None:
        return text
    for column in tree.find_all(exp.Column):
        if not column.table:
            column.set("table", exp.to_identifier(dataset))
    return tree.sql()


def _aggregated(one: Mapping[str, Any], expression: str) -> str:
    form = _AGGREGATES.get(text_of(one.get("agg")).lower())
    return form.format(expression) if form else ""


def _named(given: Any) -> tuple[str, list[str]]:
    """The name of a measure or a metric, and the filters on it."""
    if isinstance(given, Mapping):
        return text_of(given.get("name")), _filters(given.get("filter"))
    return text_of(given), []


def _filters(given: Any) -> list[str]:
    if isinstance(given, Mapping):
        return [text_of(one.get("where_sql_template")) for one in entries(given.get("where_filters"))]
    return [one.strip() for one in names_in(given)]


def _tests(one: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and arguments of each test of a table or a column."""
    for key in ("data_tests", "tests"):
        listed = one.get(key)
        for test in listed if isinstance(listed, list) else []:
            if isinstance(test, str):
                yield test, {}
            elif isinstance(test, Mapping):
                named = test.get("test_name")
                kind, options = (named, test) if named else next(iter(test.items()), ("", {}))
                options = options if isinstance(options, Mapping) else {}
                given = options.get("arguments")
                yield str(kind), {**options, **given} if isinstance(given, Mapping) else options


def _name(one: Mapping[str, Any]) -> str:
    """The name of a model or a source's table in the database."""
    config = one.get("config")
    alias = config.get("alias") if isinstance(config, Mapping) else None
    return str(one.get("identifier") or one.get("alias") or alias or one.get("name") or "")


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _filled(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset without its empty parts."""
    return {name: [*value.values()] if name == "fields" else value for name, value in dataset.items() if value}
