"""dbt's ``manifest.json`` as a semantic model in Ossie's form.

Tests are keys: ``relationships`` is a relationship; ``unique`` together with ``not_null`` is a primary key. Semantic
models, metrics and exposures are not read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tagframe.semantic.ossie import shaped

_REF = re.compile(r"""\b(?:ref|source)\(\s*['"]([^'"]+)['"]\s*(?:,\s*['"]([^'"]+)['"])?""")
_COLUMN = re.compile(r"""[\w "`\[\]-]+""")
"""A column of a test, not an expression."""
_NOT_READ = "its semantic models and metrics are not read: define the metrics in a model of Ossie, in SQL"
_NODE = {
    "name": str,
    "unique_id": str,
    "resource_type": str,
    "source_name": str,
    "schema": str,
    "alias": str,
    "identifier": str,
    "description": str,
    "columns": [{"name": str, "description": str}],
    "attached_node": str,
    "column_name": str,
    "test_metadata": {"name": str, "kwargs": object},
    "config": {"where": str},
}
_MANIFEST = {"metadata": {"project_name": str}, "nodes": [_NODE], "sources": [_NODE]}


def is_manifest(plain: Mapping[str, Any]) -> bool:
    """Whether a document is dbt's ``manifest.json``."""
    return isinstance(plain.get("nodes"), Mapping) and isinstance(plain.get("metadata"), Mapping)


def model_of_manifest(plain: Mapping[str, Any], unread: list[str]) -> dict[str, Any]:
    """The model that a manifest is.

    Args:
        plain: the content of the file.
        unread: parts that are not read are added here.
    """
    if plain.get("semantic_models") or plain.get("metrics"):
        unread.append(_NOT_READ)
    manifest = shaped(plain, _MANIFEST, unread)
    nodes = [*manifest["nodes"], *manifest["sources"]]
    datasets = {
        node["unique_id"]: {
            "name": f"{node['source_name']}.{node['name']}" if node["source_name"] else node["name"],
            "source": ".".join(filter(None, (node["schema"], node["identifier"] or node["alias"] or node["name"]))),
            "description": node["description"],
            "unique_keys": [],
            "fields": [one for one in node["columns"] if one["description"]],
        }
        for node in nodes
        if node["resource_type"] in ("model", "seed", "snapshot", "source")
    }
    relationships: dict[str, dict[str, Any]] = {}
    unique, filled = defaultdict[str, list[str]](list), defaultdict[str, set[str]](set)
    for node in nodes:
        kind, given, id = node["test_metadata"]["name"], node["test_metadata"]["kwargs"], node["attached_node"]
        if id not in datasets or not isinstance(given, Mapping):
            continue
        options = {**given, **inner} if isinstance(inner := given.get("arguments"), Mapping) else given
        column = str(node["column_name"] or options.get("column_name") or options.get("column") or "")
        several = options.get("combination_of_columns")
        if kind in ("relationships", "relationships_where"):
            one = _relationship(column, options, datasets[id], datasets)
            relationships.setdefault(one["name"], one)
        elif node["config"]["where"] or (not _COLUMN.fullmatch(column) and not isinstance(several, list)):
            continue  # of some rows only, or of an expression
        elif kind == "unique_combination_of_columns":
            datasets[id]["unique_keys"].append([*map(str, several or ())])
        elif kind == "unique":
            unique[id].append(column)
        elif kind == "not_null":
            filled[id].add(column)
    for id, columns in unique.items():
        primary = [name for name in columns if name in filled[id]]
        datasets[id]["primary_key"] = primary if len(primary) == 1 else []
        datasets[id]["unique_keys"] += [[name] for name in columns if [name] != datasets[id]["primary_key"]]
    name = manifest["metadata"]["project_name"]
    return {"name": name, "datasets": [*datasets.values()], "relationships": [*relationships.values()]}


def _relationship(
    column: str, options: Mapping[str, Any], dataset: Mapping[str, Any], datasets: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """A test of a reference, whose target is ``ref('orders')`` or ``source('raw', 'orders')``."""
    match = _REF.search(str(options.get("to")))
    ending = ".".join(filter(None, ("", *match.groups()))) if match else ""
    other = next((one["name"] for id, one in datasets.items() if match and f".{id}".endswith(f".{ending}")), ending)
    theirs = str(options.get("field"))
    return {
        "name": f"{dataset['name']}.{column} to {other}.{theirs}",
        "from": dataset["name"],
        "to": other,
        "from_columns": [column],
        "to_columns": [theirs],
    }
