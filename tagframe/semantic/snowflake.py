"""The YAML of Snowflake's semantic views (and of Cortex Analyst's older semantic models) in Ossie's form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tagframe.semantic.ossie import ansi, own_facts
from tagframe.semantic.shapes import shaped

_WORDS = {"description": str, "comment": str, "synonyms": [str]}
_FIELD = {"name": str, "expr": str, "unique": object, **_WORDS}
_METRIC = {"name": str, "expr": str, **_WORDS}
_COLUMNS = ("dimensions", "time_dimensions", "facts", "measures")
"""``measures`` is the older name of ``facts``."""
_KEPT = ("verified_queries", "custom_instructions", "module_custom_instructions")
_VIEW = {
    "name": str,
    **_WORDS,
    "tables": [
        {
            "name": str,
            **_WORDS,
            "base_table": {"table": str, "schema": str, "database": str},
            "primary_key": {"columns": [str]},
            "unique_keys": [{"columns": [str]}],
            **{kind: [_FIELD] for kind in _COLUMNS},
            "metrics": [_METRIC],
            "filters": object,
        }
    ],
    "relationships": [
        {
            "name": str,
            "left_table": str,
            "right_table": str,
            "relationship_columns": [{"left_column": str, "right_column": str}],
        }
    ],
    "metrics": [_METRIC],
    **dict.fromkeys(_KEPT, object),
}


def is_snowflake(plain: Mapping[str, Any]) -> bool:
    """Whether a document has this form: tables on base tables."""
    tables = plain.get("tables")
    return isinstance(tables, list) and any(isinstance(one, Mapping) and "base_table" in one for one in tables)


def model_of_snowflake(plain: Mapping[str, Any], unread: list[str]) -> dict[str, Any]:
    """The model in Ossie's form; what that form has no place for is kept as an extension.

    Args:
        plain: the document.
        unread: parts of another kind are added here.
    """
    view = shaped(plain, _VIEW, unread)
    relationships = [
        {
            "name": one["name"],
            "from": one["left_table"],
            "to": one["right_table"],
            "from_columns": [pair["left_column"] for pair in one["relationship_columns"]],
            "to_columns": [pair["right_column"] for pair in one["relationship_columns"]],
        }
        for one in view["relationships"]
    ]
    metrics = [_metric(one, {"dataset": table["name"]}) for table in view["tables"] for one in table["metrics"]]
    return {
        "name": view["name"],
        **_words(view),
        "datasets": [*map(_dataset, view["tables"])],
        "relationships": relationships,
        "metrics": [*metrics, *(_metric(one, {}) for one in view["metrics"])],
        **_kept(view, *_KEPT),
    }


def _dataset(table: Mapping[str, Any]) -> dict[str, Any]:
    base = table["base_table"]
    fields = [(kind, one) for kind in _COLUMNS for one in table[kind]]
    unique = [one["columns"] for one in table["unique_keys"]]
    unique += [[one["name"]] for _, one in fields if one["unique"] is True]
    primary = table["primary_key"]["columns"]
    return {
        "name": table["name"],
        "source": ".".join(filter(None, (base["database"], base["schema"], base["table"]))),
        **({"primary_key": primary} if primary else {}),
        **({"unique_keys": unique} if unique else {}),
        **_words(table),
        "fields": [
            {
                "name": one["name"],
                "expression": ansi(one["expr"] or one["name"], "SNOWFLAKE"),
                **({"dimension": {"is_time": kind == "time_dimensions"}} if "dimensions" in kind else {}),
                **_words(one),
            }
            for kind, one in fields
        ],
        **_kept(table, "filters"),
    }


def _metric(one: Mapping[str, Any], owner: Mapping[str, str]) -> dict[str, Any]:
    return {"name": one["name"], "expression": ansi(one["expr"], "SNOWFLAKE"), **_words(one), **own_facts(owner)}


def _words(one: Mapping[str, Any]) -> dict[str, Any]:
    said = one["description"] or one["comment"]
    synonyms = {"ai_context": {"synonyms": one["synonyms"]}} if one["synonyms"] else {}
    return {**({"description": said} if said else {}), **synonyms}


def _kept(one: Mapping[str, Any], *names: str) -> dict[str, Any]:
    data = {name: one[name] for name in names if one[name]}
    return {"custom_extensions": [{"vendor_name": "SNOWFLAKE", "data": json.dumps(data, default=str)}]} if data else {}
