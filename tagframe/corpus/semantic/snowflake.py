"""The YAML of Snowflake's semantic views (and of Cortex Analyst's older semantic models) in Ossie's form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tagframe.corpus.semantic.ossie import VENDOR, entries, names_in, text_of

_COLUMNS = ("dimensions", "time_dimensions", "facts", "measures")
"""``measures`` is the older name of ``facts``."""


def is_snowflake(plain: Mapping[str, Any]) -> bool:
    """Whether a document has this form: tables on base tables."""
    tables = entries(plain.get("tables"))
    return any("base_table" in one or any(part in one for part in _COLUMNS) for one in tables)


def model_of_snowflake(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The model in Ossie's form; what that form has no place for is kept as an extension."""
    tables = entries(plain.get("tables"))
    relationships = [
        {
            "name": text_of(one.get("name")),
            "from": text_of(one.get("left_table")),
            "to": text_of(one.get("right_table")),
            **{
                f"{end}_columns": [text_of(pair.get(f"{side}_column")) for pair in _pairs(one)]
                for end, side in (("from", "left"), ("to", "right"))
            },
        }
        for one in entries(plain.get("relationships"))
    ]
    metrics = [_metric(one, text_of(table.get("name"))) for table in tables for one in entries(table.get("metrics"))]
    metrics += [_metric(one, "") for one in entries(plain.get("metrics"))]
    more = {
        name: plain[name] for name in ("verified_queries", "custom_instructions", "module_custom_instructions")
        if name in plain
    }  # fmt: skip
    return {
        "name": text_of(plain.get("name")),
        **_words(plain),
        "datasets": [_dataset(one) for one in tables],
        "relationships": relationships,
        "metrics": metrics,
        **({"custom_extensions": [_extension("SNOWFLAKE", more)]} if more else {}),
    }


def _dataset(table: Mapping[str, Any]) -> dict[str, Any]:
    base = table.get("base_table")
    parts = [text_of(base.get(part)) for part in ("database", "schema", "table")] if isinstance(base, Mapping) else []
    fields = [{**one, "_kind": kind} for kind in _COLUMNS for one in entries(table.get(kind))]
    keys = table.get("primary_key")
    primary = names_in(keys.get("columns")) if isinstance(keys, Mapping) else ()
    unique = [[*names_in(one.get("columns"))] for one in entries(table.get("unique_keys"))]
    unique += [[text_of(one.get("name"))] for one in fields if one.get("unique") is True]
    more = {"filters": table["filters"]} if table.get("filters") else {}
    return {
        "name": text_of(table.get("name")),
        "source": ".".join(filter(None, parts)) or text_of(table.get("name")),
        **({"primary_key": [*primary]} if primary else {}),
        **({"unique_keys": unique} if unique else {}),
        **_words(table),
        "fields": [*map(_field, fields)],
        **({"custom_extensions": [_extension("SNOWFLAKE", more)]} if more else {}),
    }


def _field(one: Mapping[str, Any]) -> dict[str, Any]:
    name = text_of(one.get("name"))
    dimension = {"dimension": {"is_time": one["_kind"] == "time_dimensions"}} if "dimensions" in one["_kind"] else {}
    return {"name": name, "expression": _in_snowflake(text_of(one.get("expr")) or name), **dimension, **_words(one)}


def _metric(one: Mapping[str, Any], table: str) -> dict[str, Any]:
    owner = {"custom_extensions": [_extension(VENDOR, {"dataset": table})]} if table else {}
    return {
        "name": text_of(one.get("name")),
        "expression": _in_snowflake(text_of(one.get("expr"))),
        **_words(one),
        **owner,
    }


def _words(one: Mapping[str, Any]) -> dict[str, Any]:
    synonyms = [*names_in(one.get("synonyms"))]
    said = text_of(one.get("description")) or text_of(one.get("comment"))
    found: dict[str, Any] = {"description": said} if said else {}
    return {**found, **({"ai_context": {"synonyms": synonyms}} if synonyms else {})}


def _pairs(one: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from entries(one.get("relationship_columns"))


def _in_snowflake(expression: str) -> dict[str, Any]:
    return {"dialects": [{"dialect": "SNOWFLAKE", "expression": expression}]}


def _extension(vendor: str, data: Mapping[str, Any]) -> dict[str, str]:
    return {"vendor_name": vendor, "data": json.dumps(data, default=str)}
