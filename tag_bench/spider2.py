"""Spider 2.0-Snow as a benchmark: real warehouses, wide tables, descriptions and samples, no rows and no keys."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tagframe.corpus.profile import ColumnProfile, TableProfile, TypeFamily

_FAMILIES: dict[str, TypeFamily] = {
    "NUMBER": "integer", "FLOAT": "real", "TEXT": "text", "BOOLEAN": "boolean", "DATE": "date", "TIME": "date",
    "TIMESTAMP_NTZ": "date", "TIMESTAMP_LTZ": "date", "TIMESTAMP_TZ": "date", "BINARY": "blob",
}  # fmt: skip

_NUMBERS = re.compile(r"\d[\d_]*")


def families(folder: Path) -> list[TableProfile]:
    """A profile for each family of tables of one shape, with its first table's id.

    If a family has several tables, its name is without their numbers (``events_20210101``, … are ``events``). The
    schema is part of the name if it differs from the database's name.
    """
    found = []
    with gzip.open(folder / "tables.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            family = json.loads(line)
            name = family["family"].removeprefix(f"{family['database']}.{family['schema']}.")
            if len(family["tables"]) > 1:
                name = _NUMBERS.sub(" ", name).strip(" _") or name
            if family["schema"] != family["database"]:
                name = f"{family['schema']}.{name}"
            columns = tuple(_column(column, position) for position, column in enumerate(family["columns"]))
            found.append(TableProfile(family["family"], family["database"], name, columns))
    return sorted(found, key=lambda table: table.id)


def _column(given: Mapping[str, Any], position: int) -> ColumnProfile:
    samples = tuple(str(value) for value in given.get("samples") or ())
    family = _FAMILIES.get(str(given["type"]).split("(")[0].upper(), "text")
    return ColumnProfile(
        given["name"],
        position,
        family,
        str(given["type"]),
        samples=samples,
        description=given.get("description") or "",
    )
