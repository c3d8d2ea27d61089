"""dbt's properties files (``schema.yml``) and ``manifest.json`` as a semantic model in Ossie's form.

Tests are keys: ``relationships`` is a relationship; ``unique`` together with ``not_null`` is a primary key. Entities of
semantic models are keys, too; measures and simple metrics of them are metrics. Exposures are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tagframe.semantic.ossie import ansi, shaped

_REF = re.compile(r"""\b(ref|source)\(\s*['"]([^'"]+)['"]\s*(?:,\s*['"]([^'"]+)['"])?""")
_DOC = re.compile(r"\{\{\s*doc\([^)]*\)\s*\}\}")
_IN_MANIFEST = "descriptions by {{ doc(…) }}: they are in target/manifest.json, which dbt parse writes; describe that"
_NOT_SIMPLE = "of dbt, measures and simple metrics without filters are read: define it in a model of Ossie, in SQL"
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

_FILTER = {"where_filters": [{"where_sql_template": str}]}
_TYPED = {"measure": {"name": str, "filter": _FILTER}, "agg": str, "expr": str}
_DESCRIBED = {"name": str, "label": str, "description": str}
_METRIC = {**_DESCRIBED, "type": str, "filter": _FILTER, "type_params": _TYPED, **_TYPED}
_CONSTRAINT = {"type": str, "columns": [str], "to": str, "to_columns": [str]}
_TESTED = {"name": str, "description": str, "tests": [object], "data_tests": [object], "constraints": [_CONSTRAINT]}
_COLUMN = {**_TESTED, "entity": {"type": str, "name": str}}
_TABLE = {**_TESTED, "columns": [_COLUMN], "alias": str, "identifier": str, "schema": str, "config": {"alias": str}}
_SEMANTIC = {
    "model": str,
    "description": str,
    "entities": [{"name": str, "type": str, "expr": str}],
    "measures": [{**_DESCRIBED, "agg": str, "expr": str}],
}
_MODEL = {
    **_TABLE,
    "versions": [{**_TABLE, "v": str}],
    "semantic_model": object,
    "metrics": [_METRIC],
}
_PROPERTIES = {
    "models": [_MODEL],
    "seeds": [_MODEL],
    "snapshots": [_MODEL],
    "sources": [{"name": str, "schema": str, "tables": [_TABLE]}],
    "semantic_models": [_SEMANTIC],
    "metrics": [_METRIC],
}
_NODE = {
    **_MODEL,
    "unique_id": str,
    "resource_type": str,
    "source_name": str,
    "attached_node": str,
    "column_name": str,
    "test_metadata": {"name": str, "kwargs": object},
    "config": {"alias": str, "where": str},
}
_MANIFEST = {
    "metadata": {"project_name": str},
    "nodes": [_NODE],
    "sources": [_NODE],
    "semantic_models": [_SEMANTIC],
    "metrics": [_METRIC],
}


def is_manifest(plain: Mapping[str, Any]) -> bool:
    """Whether a document is dbt's ``manifest.json``."""
    return isinstance(plain.get("nodes"), Mapping) and isinstance(plain.get("metadata"), Mapping)


def model_of_dbt(documents: Sequence[Mapping[str, Any]], project: str, unread: list[str]) -> dict[str, Any]:
    """The model that properties files are, together.

    Args:
        documents: the files' contents; a manifest stands for all files.
        project: the name of the project.
        unread: parts of another kind are added here, and that a manifest has the descriptions which refer to others.
    """
    manifests = [shaped(one, _MANIFEST, unread) for one in documents if is_manifest(one)]
    if manifests:
        project = manifests[0]["metadata"]["project_name"] or project
        files = [_of_manifest(one) for one in manifests]
    else:
        files = [shaped(one, _PROPERTIES, unread) for one in documents]
    return _Project(unread).model(files, project)


def _of_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as a properties file: its tests are nodes of their own, and go to their tables and columns."""
    nodes = [*manifest["nodes"], *manifest["sources"]]
    tables = {one["unique_id"]: one for one in nodes if one["resource_type"] in ("model", "seed", "snapshot", "source")}
    for node in nodes:
        kind, given = node["test_metadata"]["name"], node["test_metadata"]["kwargs"]
        if not kind or not isinstance(given, Mapping):
            continue
        of = f".{_referred(str(given.get('model')))}"
        about = tables.get(node["attached_node"]) or next((tables[id] for id in tables if id.endswith(of)), None)
        if about is None:
            continue
        name = str(given.get("column_name") or node["column_name"])
        column = next((one for one in about["columns"] if _plain(one["name"]) == _plain(name)), None)
        (column or about)["tests"].append({kind: {"config": node["config"], "column_name": name, **given}})
    return {
        **manifest,
        "models": [one for one in tables.values() if one["resource_type"] != "source"],
        "sources": [
            {"name": one["source_name"], "schema": one["schema"], "tables": [one]}
            for one in tables.values()
            if one["resource_type"] == "source"
        ],
        "seeds": [],
        "snapshots": [],
    }


def _plain(name: str) -> str:
    return name.strip('"`').casefold()


def _referred(text: str) -> str:
    """The dataset in ``ref('orders')`` or ``source('raw', 'orders')``; the bare name for anything else."""
    match = _REF.search(text)
    if match is None:
        return text.strip().strip("'\"")
    kind, one, other = match.groups()
    return f"{one}.{other}" if kind == "source" else other or one


class _Project:
    def __init__(self, unread: list[str]) -> None:
        self._unread = unread
        self._datasets: dict[str, dict[str, Any]] = {}
        self._relationships: dict[str, dict[str, Any]] = {}
        self._metrics: list[dict[str, Any]] = []
        self._measures: dict[str, tuple[str, str]] = {}
        """Expression and dataset, by name."""
        self._entities: list[tuple[str, str, str, str]] = []
        """Dataset, name, kind and column."""

    def model(self, files: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
        models = [one for file in files for part in ("models", "seeds", "snapshots") for one in file[part]]
        for model in models:
            self._model(model)
        for source in (one for file in files for one in file["sources"]):
            for table in source["tables"]:
                at = f"{source['schema'] or source['name']}.{_name(table)}"
                self._table(f"{source['name']}.{table['name']}", at, table)
        for model in models:
            self._columns_semantic(model)
        for semantic in (one for file in files for one in file["semantic_models"]):
            self._semantic(_referred(semantic["model"]), semantic)
        self._join_entities()
        of_measures, self._metrics = {one["name"]: one for one in self._metrics}, []
        given = [(one, "") for file in files for one in file["metrics"]]
        for one, dataset in [*given, *((one, model["name"]) for model in models for one in model["metrics"])]:
            self._metric(one, dataset)
            of_measures.pop(one["name"], None)
        return {
            "name": name,
            "datasets": [_filled(one) for one in self._datasets.values()],
            "relationships": list(self._relationships.values()),
            "metrics": [*of_measures.values(), *self._metrics],
        }

    def _put(self, description: str) -> str:
        """A description without references to documentation blocks."""
        text = _DOC.sub("", description)
        if text != description and _IN_MANIFEST not in self._unread:
            self._unread.append(_IN_MANIFEST)
        return text

    # --- tables and their tests

    def _model(self, model: Mapping[str, Any]) -> None:
        at = f"{model['schema']}." * bool(model["schema"])  # of a manifest's node
        for version in model["versions"]:
            name = _name(version) or f"{model['name']}_v{version['v']}"
            columns = [*model["columns"], *(one for one in version["columns"] if one["name"])]
            text = version["description"] or model["description"]
            self._table(name, at + name, {**model, "description": text, "columns": columns})
        if not model["versions"]:
            self._table(model["name"], at + _name(model), model)

    def _table(self, name: str, source: str, one: Mapping[str, Any]) -> None:
        dataset = self._dataset(name)
        dataset.update(source=source, description=self._put(one["description"]))
        unique, known = dict[str, None](), set[str]()
        for column in one["columns"]:
            called, text = column["name"], self._put(column["description"])
            field = {"name": called, "expression": ansi(called), **({"description": text} if text else {})}
            dataset["fields"][called] = field
            for constraint in column["constraints"]:
                self._constraint(dataset, {**constraint, "columns": [called]})
        for constraint in one["constraints"]:
            self._constraint(dataset, constraint)
        of_columns = ((column["name"], *each) for column in one["columns"] for each in _tests(column))
        of_table = ((_column_of(each[1]), *each) for each in _tests(one))
        for called, kind, options in (*of_columns, *of_table):
            columns = options.get("combination_of_columns")
            if kind.endswith("unique_combination_of_columns") and isinstance(columns, list):
                dataset["unique_keys"].append([*map(str, columns)])
            elif not called:
                continue
            elif kind == "unique":
                unique[called] = None
            elif kind == "not_null":
                known.add(called)
            elif kind.rpartition(".")[2] in ("relationships", "relationships_where"):
                self._relate(name, [called], str(options.get("to")), [str(options.get("field"))])
        keys = [one for one in unique if one in known]
        if len(keys) == 1:
            dataset["primary_key"] = dataset["primary_key"] or keys
        dataset["unique_keys"] += [[one] for one in unique if [one] != dataset["primary_key"]]

    def _dataset(self, name: str) -> dict[str, Any]:
        new = {"name": name, "source": name, "primary_key": [], "unique_keys": [], "fields": {}}
        return self._datasets.setdefault(name, new)

    def _constraint(self, dataset: dict[str, Any], one: Mapping[str, Any]) -> None:
        if one["type"] == "primary_key":
            dataset["primary_key"] = one["columns"]
        elif one["type"] == "unique":
            dataset["unique_keys"].append(one["columns"])
        elif one["type"] == "foreign_key":
            self._relate(dataset["name"], one["columns"], one["to"], one["to_columns"])

    def _relate(self, table: str, mine: Sequence[str], to: str, theirs: Sequence[str]) -> None:
        other = _referred(to)
        self._dataset(other)
        name = f"{table}.{' '.join(mine)} to {other}.{' '.join(theirs)}"
        sides = {"from": table, "to": other, "from_columns": [*mine], "to_columns": [*theirs]}
        self._relationships.setdefault(name, {"name": name, **sides})

    # --- semantic models

    def _semantic(self, dataset: str, semantic: Mapping[str, Any]) -> None:
        known = self._dataset(dataset)
        known["description"] = known.get("description") or self._put(semantic["description"])
        entities = [(one["name"], one["type"], one["expr"] or one["name"]) for one in semantic["entities"]]
        self._entities += [(dataset, *one) for one in entities]
        for one in semantic["measures"]:
            expression = _aggregated(one["agg"], one["expr"] or one["name"])
            self._measures[one["name"]] = expression, dataset
            self._put_metric(one, expression, dataset)

    def _columns_semantic(self, model: Mapping[str, Any]) -> None:
        """The newer form, in which a model's columns are its entities."""
        if isinstance(model["semantic_model"], Mapping | bool) and model["semantic_model"]:
            entities = [
                {**one["entity"], "name": one["entity"]["name"] or one["name"], "expr": one["name"]}
                for one in model["columns"]
                if one["entity"]["type"]
            ]
            self._semantic(model["name"], {**model, "entities": entities, "measures": []})

    def _join_entities(self) -> None:
        for dataset, name, kind, column in self._entities:
            known = self._dataset(dataset)
            if kind == "primary" and not known["primary_key"]:
                known["primary_key"] = [column]
            elif kind in ("primary", "unique") and [column] not in (known["primary_key"], *known["unique_keys"]):
                known["unique_keys"].append([column])
            elif kind == "foreign":
                for other, also, its_kind, its_column in self._entities:
                    if also == name and other != dataset and its_kind in ("primary", "unique"):
                        self._relate(dataset, [column], other, [its_column])

    # --- metrics

    def _put_metric(self, one: Mapping[str, Any], expression: str, dataset: str) -> None:
        words: dict[str, Any] = {"description": text} if (text := self._put(one["description"])) else {}
        if one["label"]:
            words["ai_context"] = {"synonyms": [one["label"]]}
        self._metrics.append({"name": one["name"], "expression": ansi(expression), **words, "dataset": dataset})

    def _metric(self, one: Mapping[str, Any], dataset: str) -> None:
        """A metric that is one measure of all rows, or an aggregate of its model's own columns."""
        options = {name: one["type_params"][name] or one[name] for name in ("agg", "expr")}
        measure = next((given for given in (one["type_params"]["measure"], one["measure"]) if given["name"]), None)
        expression, owner = self._measures.get(measure["name"], ("", "")) if measure else ("", "")
        if options["agg"]:
            expression, owner = _aggregated(options["agg"], options["expr"] or one["name"]), dataset
        filters = [given["filter"] for given in (one, measure) if given is not None]
        if one["type"] != "simple" or any(given["where_filters"] for given in filters) or not expression:
            self._unread.append(f"metric {one['name']}: {_NOT_SIMPLE}")
        else:
            self._put_metric(one, expression, owner)


def _aggregated(aggregate: str, expression: str) -> str:
    return _AGGREGATES.get(aggregate.lower(), "").format(expression)


def _tests(one: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and arguments of each test of a table or a column, without those that are off.

    A test of uniqueness or of nulls that looks at some of the rows only is left out, too.
    """
    for test in [*one["data_tests"], *one["tests"]]:
        given = test if isinstance(test, Mapping) else {str(test): {}}
        named = given.get("test_name")
        kind, options = (named, given) if named else next(iter(given.items()), ("", {}))
        options = options if isinstance(options, Mapping) else {}
        for part in ("config", "arguments"):
            inside = options.get(part)
            options = {**options, **inside} if isinstance(inside, Mapping) else options
        if options.get("enabled") is not False and not (options.get("where") and kind in _OF_ALL_ROWS):
            yield str(kind), options


def _column_of(options: Mapping[str, Any]) -> str:
    """The column of a table's test; "" for an expression."""
    name = str(options.get("column_name") or options.get("column") or "")
    return name if re.fullmatch(r"""[\w "`\[\]-]+""", name) else ""


_OF_ALL_ROWS = ("unique", "not_null", "unique_combination_of_columns", "dbt_utils.unique_combination_of_columns")


def _name(one: Mapping[str, Any]) -> str:
    """The name of a model or a source's table in the database."""
    return str(one["identifier"] or one["alias"] or one["config"]["alias"] or one["name"])


def _filled(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset without its empty parts."""
    return {name: [*value.values()] if name == "fields" else value for name, value in dataset.items() if value}
