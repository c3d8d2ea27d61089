"""Random merges, made by hand: every row and every number of every report, in every engine and way."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ways import Case, Row, check, opened

from tests.draws import DRAWS

pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow
TEXT = "str" if int(pd.__version__[0]) > 2 else "string"
"""A dtype that holds nulls, and of which a file knows that it is text where all are null."""
TEXTS = ["ab", "cd", "ef", "gh", "ij"]


class Drawn:
    """Two to four tables, how they are joined, and what is asked."""

    def __init__(self, seed: int) -> None:
        self.random = pick = random.Random(seed)
        names = [f"t{number}" for number in range(pick.randint(2, 4))]
        edges = [(names[pick.randrange(number)], name, f"k{number}") for number, name in enumerate(names) if number]
        self.texts = {key: pick.random() < 0.4 for _, _, key in edges}
        tables: dict[str, pd.DataFrame] = {}
        for name in names:
            keys = [key for base, table, key in edges if name in (base, table)]
            unique = next((key for _, table, key in edges if table == name), None)
            tables[name] = self.made(keys, unique if pick.random() < 0.7 else None)
        options: dict[str, Any] = {
            "how": pick.choice(["inner", "inner", "left", "outer"]),
            "limit": pick.choice([None, None, 0, 1, 3, 20]),
        }
        where = self.asked(names) if pick.random() < 0.6 else {}
        if pick.random() < 0.3:
            options["columns"] = [f"{name}.v" for name in names[:2]]
        self.case = Case(tables, [(base, table, (key,), (key,)) for base, table, key in edges], where, None, options)

    def made(self, keys: list[str], unique: str | None) -> pd.DataFrame:
        pick, rows = self.random, []
        seen: set[Any] = set()
        for number in range(pick.randint(0, 9)):
            row: Row = {"id": number}
            for key in keys:
                row[key] = (
                    None if pick.random() < 0.15 else pick.choice(TEXTS) if self.texts[key] else pick.randrange(6)
                )
            if unique is not None and row[unique] in seen:
                continue
            seen.add(row[unique] if unique is not None else None)
            rows.append({**row, "v": pick.choice([None, 0, 1, 2]), "s": pick.choice([None, "x", "y"])})
        frame = pd.DataFrame(rows, columns=["id", *keys, "v", "s"])
        kinds = {key: TEXT if self.texts[key] else "Int64" for key in keys}
        return frame.astype({"id": "int64", **kinds, "v": "Int64", "s": TEXT})

    def asked(self, names: list[str]) -> Row:
        pick, found = self.random, {}
        for name in names:
            if pick.random() < 0.4:
                found[f"{name}.v"] = pick.choice([0, 1, None, [0, 2], [1, None], []])
            if pick.random() < 0.3:
                found[f"{name}.s"] = pick.choice(["x", None, ["x", "y"], "z"])
        return found


@pytest.fixture(scope="module")
def where(lasting, tmp_path_factory) -> tuple[Path, str]:
    return tmp_path_factory.mktemp("drawn"), lasting("drawn")


def ran(seed: int, where: tuple[Path, str]) -> Counter[str]:
    drawn = Drawn(seed)
    there = opened(drawn.case.tables, where[0] / f"c{seed}", where[1], f"c{seed}")
    return check(drawn.case, there, {name: drawn.random.choice([*there]) for name in drawn.case.names})


@pytest.mark.pandas2
def test_random_merges_are_made_by_hand(where):
    ran_in = sum((ran(seed, where) for seed in range(22 * DRAWS)), Counter[str]())
    assert {"frames memory", "mixed across"} <= {*ran_in}
    assert (
        min(ran_in[f"{engine} {by}"] for engine in ("sqlite", "duckdb", "postgres") for by in ("engine", "across")) > 3
    )
