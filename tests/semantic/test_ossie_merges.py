"""The joins that Ossie's specification names: grain, one-to-one, composite keys, bridges, and rows as of a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import tagframe as tf
from tagframe.errors import FanOut
from tagframe.joins import plan_tables
from tagframe.merging import run_plan

DAYS = pd.to_datetime(["2024-01-10", "2024-02-01", "2024-03-05", None])
TABLES = {
    "orders": pd.DataFrame({"nr": [1, 2, 3, 4], "buyer": [10, 10, 20, 20], "placed": DAYS}),
    "lines": pd.DataFrame({"of": [1, 1, 2, 3], "pos": [1, 2, 1, 1], "sku": [7, 8, 7, 9]}),
    "returns": pd.DataFrame({"o": [1, 3, 2], "p": [2, 1, 1], "why": ["broken", "late", "wrong"]}),
    "invoices": pd.DataFrame({"number": [51, 52, 53], "for_order": [1, 2, 3]}),
    "items": pd.DataFrame({"item": [7, 8, 9], "title": ["lamp", "desk", "chair"]}),
    "stock": pd.DataFrame({"of_item": [7, 7, 8], "place": ["A", "B", "A"]}),
    "people": pd.DataFrame({"id": [10, 20, 30], "name": ["Ann", "Bo", "Cy"]}),
    "accounts": pd.DataFrame({"iban": ["x", "y"], "bank": ["N", "S"]}),
    "owners": pd.DataFrame({"person": [10, 20, 20], "account": ["x", "x", "y"]}),
    "homes": pd.DataFrame({"who": [10, 10, 20], "since": pd.to_datetime(["2024-01-10", "2024-01-20", "2024-04-01"]),
                           "city": ["Porto", "Faro", "Lagos"]}),
    "rates": pd.DataFrame({"rate": [1, 2, 3], "start": pd.to_datetime([None, "2024-02-01", "2024-03-01"]),
                           "stop": pd.to_datetime(["2024-02-01", "2024-03-01", None])}),
}  # fmt: skip
KEYS: dict[str, list[str]] = {
    "orders": ["nr"], "lines": ["of", "pos"], "invoices": ["number"], "items": ["item"], "people": ["id"],
    "accounts": ["iban"], "owners": ["person", "account"],
}  # fmt: skip
RELATIONSHIPS = [
    ("lines", ["of"], "orders", ["nr"]),
    ("returns", ["o", "p"], "lines", ["of", "pos"]),
    ("invoices", ["for_order"], "orders", ["nr"]),
    ("orders", ["buyer"], "people", ["id"]),
    ("lines", ["sku"], "items", ["item"]),
    ("stock", ["of_item"], "items", ["item"]),
    ("owners", ["person"], "people", ["id"]),
    ("owners", ["account"], "accounts", ["iban"]),
]
AS_OF = {"asof": {"from_column": "placed", "to_column": "since"}}
RANGE = {"range": {"from_column": "placed", "start_column": "start", "end_column": "stop"}}


def relationship(left: str, mine: list[str], right: str, theirs: list[str], **more: Any) -> dict[str, Any]:
    sides = {"from": left, "to": right, "from_columns": mine, "to_columns": theirs}
    return {"name": f"{left} to {right}", **sides, **more}


def told(path: Path, *more: dict[str, Any]) -> tuple[tf.Corpus, Any]:
    corpus = tf.open_corpus(dict(TABLES))
    datasets = [{"name": name, "source": name, "primary_key": KEYS.get(name, [])} for name in TABLES]
    datasets[[*TABLES].index("invoices")]["unique_keys"] = [["for_order"]]
    relationships = [*(relationship(*one) for one in RELATIONSHIPS), *more]
    path.write_text(yaml.safe_dump({"name": "m", "datasets": datasets, "relationships": relationships}))
    return corpus, corpus.describe(path)


@pytest.mark.parametrize(
    ("tables", "anchor", "shown", "rows"),
    [
        # Grain: each row of the many side once, whatever the order of the tables.
        (["orders", "lines", "people"], None, ["sku", "name"], [[7, "Ann"], [8, "Ann"], [7, "Ann"], [9, "Bo"]]),
        (["people", "orders"], "orders", ["nr", "name"], [[1, "Ann"], [2, "Ann"], [3, "Bo"], [4, "Bo"]]),
        # One-to-one, from either side.
        (["orders", "invoices"], "orders", ["nr", "number"], [[1, 51], [2, 52], [3, 53]]),
        (["orders", "invoices"], "invoices", ["number", "buyer"], [[51, 10], [52, 10], [53, 20]]),
        # A composite key whose columns have other names, and what lies behind it.
        (["returns", "lines"], None, ["why", "sku"], [["broken", 8], ["late", 9], ["wrong", 7]]),
        (["returns", "lines", "items"], None, ["why", "title"],
         [["broken", "desk"], ["late", "chair"], ["wrong", "lamp"]]),
        # A bridge, whose key is composite, gives each pair once.
        (["people", "accounts", "owners"], None, ["name", "bank"], [["Ann", "N"], ["Bo", "N"], ["Bo", "S"]]),
    ],
)  # fmt: skip
def test_a_merge_has_the_grain_that_relationships_say(
    tmp_path: Path, tables: list[str], anchor: str | None, shown: list[str], rows: list[list[Any]]
):
    corpus, said = told(tmp_path / "m.yaml")
    assert (said.keys, said.unread, said.checked) == (len(RELATIONSHIPS), (), ())
    ids = [f"frames.{one}" for one in tables]
    plan = plan_tables(corpus, ids, anchor=anchor and f"frames.{anchor}")
    frame, _ = run_plan(plan, corpus, on_loss="allow")
    assert frame[shown].values.tolist() == rows


@pytest.mark.parametrize(
    ("tables", "anchor", "rows"),
    [
        (["orders", "lines"], "orders", 4),  # a measure of orders would count twice
        (["lines", "items", "stock"], None, 5),  # two tables that repeat a shared one
        (["people", "accounts"], "people", 3),  # many to many, through a bridge that nobody named
    ],
)
def test_rows_are_repeated_only_where_that_is_allowed(tmp_path: Path, tables: list[str], anchor: str | None, rows: int):
    corpus, _ = told(tmp_path / "m.yaml")
    ids = [f"frames.{one}" for one in tables]
    plan = plan_tables(corpus, ids, anchor=anchor and f"frames.{anchor}", bridges=["frames.owners"])
    with pytest.raises(FanOut):
        run_plan(plan, corpus)
    frame, report = run_plan(plan, corpus, on_fanout="allow", on_loss="allow")
    assert len(frame) == report.rows == rows


@pytest.mark.parametrize(
    ("sides", "more", "on", "shown", "rows"),
    [
        (("orders", ["buyer"], "homes", ["who"]), AS_OF, "orders.buyer = homes.who and orders.placed >= homes.since",
         "city", ["Porto", "Faro", None, None]),
        (("orders", ["buyer"], "homes", ["who"]), {"asof": {**AS_OF["asof"], "match": ">"}},
         "orders.buyer = homes.who and orders.placed > homes.since", "city", [None, "Faro", None, None]),
        (("orders", ["buyer"], "homes", ["who"]), {"asof": {**AS_OF["asof"], "match": "<="}},
         "orders.buyer = homes.who and orders.placed <= homes.since", "city", ["Porto", None, "Lagos", None]),
        (("orders", [], "rates", []), RANGE, "orders.placed >= rates.start and orders.placed < rates.stop", "rate",
         [1, 2, 3, None]),
    ],
)  # fmt: skip
def test_rows_as_of_a_moment_are_no_key_and_are_merged_as_the_message_says(
    tmp_path: Path, sides: Any, more: dict[str, Any], on: str, shown: str, rows: list[Any]
):
    _, said = told(tmp_path / "m.yaml", relationship(*sides, **more))
    assert said.unread == (
        f"relationship {sides[0]} to {sides[2]}: rows as of a moment are no key: merge the tables with on={on!r}",
    )
    assert said.keys == len(RELATIONSHIPS)
    frame = tf.merge({one: TABLES[one] for one in (sides[0], sides[2])}, on=on, how="left")
    assert [None if pd.isna(one) else one for one in frame[shown]] == rows
