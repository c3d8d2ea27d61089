"""Every kind of merge in every engine and in every way, beside the same merge made by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ways import SOURCES, WAYS, Case, Edge, Opened, check, corpus_in, opened, plain

from tagframe.errors import FanOut, RowsLost, WayNotPossible
from tagframe.merging import run_plan

pytest.importorskip("duckdb")
pytestmark = [pytest.mark.slow]

ROWS = 240
TEXTS = ["Rome", "Łódź", "007", 'a"b\\c', "x,{y}", "it's"]


def tables() -> dict[str, pd.DataFrame]:
    """Sales, and tables whose keys are a number, a text and two columns, once each and again and again; some dangle."""
    pick = np.random.default_rng(0)
    sale = pd.DataFrame({
        "sale_id": range(ROWS),
        "cust": pd.array(pick.integers(0, 60, ROWS), "Int64"),
        "town": pick.choice(np.array([*TEXTS, "nowhere", None], dtype=object), ROWS),
        "country": pick.choice(np.array(["CZ", "DE", None], dtype=object), ROWS),
        "year": pick.integers(2020, 2024, ROWS),
        "amount": np.where(np.arange(ROWS) % 7, pick.random(ROWS).round(3), np.nan),
        "paid": pick.integers(0, 2, ROWS) > 0,
        "at": pd.Timestamp("2024-01-05 12:30") + pd.to_timedelta(pick.integers(0, 9, ROWS), unit="h"),
    })  # fmt: skip
    sale.loc[::13, "cust"] = pd.NA
    person = {"name": [f"c{n}" for n in range(50)], "ok": [n % 2 > 0 for n in range(50)]}
    boss = pd.array([None if n % 9 == 0 else n // 3 for n in range(50)], "Int64")
    cust = pd.DataFrame({"cust": range(50), **person, "boss": boss})
    rate = pd.DataFrame([(c, y, i / 4) for i, (c, y) in enumerate(itertools.product(["CZ", "DE"], [2020, 2021, 2023]))],
                        columns=["country", "year", "rate"])  # fmt: skip
    visit = pd.DataFrame({"cust": pd.array([1, 1, 2, None, 40, 99, 2, 2], "Int64"), "page": list("abcdefgh")})
    town = pd.DataFrame({"town": [*TEXTS, "Lima"], "people": range(len(TEXTS) + 1)})
    # Who is a customer's boss is a customer: the table stands there twice.
    return {"sale": sale, "cust": cust, "town": town, "rate": rate, "visit": visit, "boss": cust.copy()}


TABLES = tables()
TYPES = {
    "sale": "sale_id int PRIMARY KEY, cust bigint, town text, country text, year int, amount float8, paid bool, "
    "at timestamp",
    "cust": "cust int PRIMARY KEY, name text, ok bool, boss bigint",
    "town": "town varchar(20) UNIQUE, people int",
    "rate": "country text, year int, rate float8",
}
CUST: Edge = ("sale", "cust", ("cust",), ("cust",))
TOWN: Edge = ("sale", "town", ("town",), ("town",))
RATE: Edge = ("sale", "rate", ("country", "year"), ("country", "year"))
BOSS: Edge = ("cust", "boss", ("boss",), ("cust",))
VISIT: Edge = ("cust", "visit", ("cust",), ("cust",))
PLANS: dict[str, list[Edge]] = {
    "a number": [CUST],
    "a text": [TOWN],
    "two columns": [RATE],
    "a chain to itself": [CUST, BOSS],
    "a star": [TOWN, CUST, RATE],
    "repeated rows": [VISIT],
    "repeated rows, then more": [VISIT, BOSS],
    "repeated rows from both sides": [("town", "sale", ("town",), ("town",)), CUST],
}
HOMES = [
    {"sale": "postgres", "cust": "duckdb", "town": "frames", "rate": "sqlite", "visit": "sqlite", "boss": "postgres"},
    {"sale": "duckdb", "cust": "postgres", "town": "sqlite", "rate": "frames", "visit": "duckdb", "boss": "postgres"},
    {"sale": "sqlite", "cust": "frames", "town": "postgres", "rate": "duckdb", "visit": "postgres", "boss": "duckdb"},
    {"sale": "frames", "cust": "sqlite", "town": "duckdb", "rate": "postgres", "visit": "frames", "boss": "frames"},
]
"""Where each table is where they are in several engines."""
Asked = tuple[Any, Callable[[Callable[[str], Any]], bool] | None]
HOW: list[dict[str, Any]] = [{}, {"how": "left"}, {"how": "outer"}]
LIMITED: list[dict[str, Any]] = [{"limit": 0}, {"limit": 7, "how": "left"}, {"limit": 5_000, "how": "outer"}]
"""Each plan is limited in one of these ways."""
WHERE: list[tuple[Asked, dict[str, Any]]] = [
    (({"cust.name": ["c3", "c17", "nobody"]}, None), {}),
    (({"cust.name": "c3"}, None), {"how": "left"}),
    (({"sale.town": 'a"b\\c', "town.people": 3}, None), {}),
    (({"town.people": None}, None), {"how": "left"}),
    (({"sale.cust": None}, None), {"how": "left"}),
    (({"sale.cust": [None, 7]}, None), {"how": "outer"}),
    (({"sale.amount": float("nan")}, None), {"limit": 3}),
    (({"sale.paid": True, "cust.ok": [False, None]}, None), {"how": "left", "limit": 9}),
    (({"sale.sale_id": []}, None), {}),
    (({"sale.sale_id": [5, 2.0, np.int64(9), None]}, None), {"columns": ["sale.sale_id", "town.people"]}),
    (({"sale.town": "it's; DROP TABLE sale --"}, None), {}),
    (({"sale.amount": (">=", 0.5), "sale.sale_id": ("between", 3, 200.5)},
      lambda cell: (cell("sale.amount") or 0) >= 0.5 and 3 <= cell("sale.sale_id") <= 200.5), {"how": "left"}),
    (({"sale.town": lambda town: town == "Rome"}, lambda cell: cell("sale.town") == "Rome"), {}),
    (({"sale.amount": lambda x: x > 0.5, "cust.ok": True},
      lambda cell: (cell("sale.amount") or 0) > 0.5 and cell("cust.ok") == 1), {"how": "left", "limit": 4}),
    (("sale_id < 20", lambda cell: cell("sale.sale_id") < 20), {}),
    (({"sale.sale_id": lambda id: id != 20}, lambda cell: cell("sale.sale_id") != 20), {}),
    (("amount > .25 and 30 <= sale_id < 200 and people in [0, 3]",
      lambda cell: (cell("sale.amount") or 0) > 0.25 and 30 <= cell("sale.sale_id") < 200
      and cell("town.people") in (0, 3)), {"limit": 50}),
    (("name == 'c7' or sale_id == 1", lambda cell: cell("cust.name") == "c7" or cell("sale.sale_id") == 1), {}),
]  # fmt: skip
COLUMNS = [
    ["sale.sale_id"], ["cust.name", "sale.sale_id", "cust.cust"], ["town.town", "sale.amount"], ["sale.at", "cust.ok"],
]  # fmt: skip


@pytest.fixture(scope="module")
def there(lasting, tmp_path_factory) -> Opened:
    folder: Path = tmp_path_factory.mktemp("ways")
    return opened(TABLES, folder, lasting("ways"), "ways", **TYPES)


def homes_of(case: Case, number: int) -> dict[str, str]:
    return {name: HOMES[number % len(HOMES)][name] for name in case.names}


@pytest.mark.pandas2
@pytest.mark.parametrize(("position", "name"), [*enumerate(PLANS)])
def test_every_plan_and_kind_of_join(there, position, name):
    for number, options in enumerate([*HOW, LIMITED[position % len(LIMITED)]], position):
        case = Case(TABLES, PLANS[name], options=options)
        ran = check(case, there, homes_of(case, number))
        assert ran["mixed memory"] == ran["frames memory"] == 1
        assert {"sqlite engine", "duckdb engine", "postgres engine"} <= {*ran}


@pytest.mark.parametrize("number", range(len(WHERE)))
def test_every_kind_of_condition(there, number):
    (where, fits), options = WHERE[number]
    case = Case(TABLES, PLANS["a star"], where, fits, options)
    check(case, there, homes_of(case, number))


def test_columns_in_their_order_and_by_any_of_their_names(there):
    for number, columns in enumerate(COLUMNS):
        how = ["outer", "left", "outer", "inner"][number]
        case = Case(TABLES, PLANS["a star"], None, None, {"columns": columns, "how": how})
        check(case, there, homes_of(case, number))


@pytest.mark.parametrize("source", SOURCES)
def test_the_nearest_row_of_a_moment_is_found_in_memory(there, source):
    case = Case(TABLES, [RATE])
    corpus, databases = corpus_in(there, source, homes_of(case, 0))
    plan = case.plan(databases)
    (step,) = plan.steps
    plan = replace(plan, steps=(replace(step, key=replace(step.key, signs=("=", ">="))),))
    rates = {(row["country"], row["year"]): row["rate"] for row in case.rows["rate"]}
    nearest = {(of, year): max((then for of_then, then in rates if of_then == of and then <= year), default=None)
               for of, year in {(row["country"], row["year"]) for row in case.rows["sale"]}}  # fmt: skip
    expected = {row["sale_id"]: rates.get((row["country"], nearest[row["country"], row["year"]]))
                for row in case.rows["sale"]}  # fmt: skip
    for by in (None, "memory"):
        frame, report = run_plan(plan, corpus, by=by, how="left")
        assert dict(zip(frame["sale_id"], map(plain, frame["rate"]), strict=True)) == expected
        assert report.steps[0].matched == sum(rate is not None for rate in expected.values())
    for by in ("engine", "across"):
        with pytest.raises(WayNotPossible, match="as of a moment"):
            run_plan(plan, corpus, by=by, how="left")


REFUSED: list[tuple[str, str, type[Exception], dict[str, Any], Callable[[Case], list[float]]]] = [
    ("repeated rows", "cust", FanOut, {}, lambda case: [1, 2]),
    ("repeated rows, then more", "cust", FanOut, {"limit": 1}, lambda case: [1, 2]),
    ("a chain to itself", "sale_id", RowsLost, {"on_loss": "raise"},
     lambda case: sorted({row["sale_id"] for row in case.rows["sale"]}
                         - {row["sale"]["sale_id"] for row in case.kept})),
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "column", "error", "options", "rows"), REFUSED, ids=lambda one: str(one)[:24])
def test_what_is_refused_is_refused_with_its_rows(there, source, name, column, error, options, rows):
    case = Case(TABLES, PLANS[name])
    corpus, databases = corpus_in(there, source, homes_of(case, 0))
    refused = 0
    for by in WAYS:
        try:
            with pytest.raises(error) as caught:
                run_plan(case.plan(databases), corpus, by=by, **options)
        except WayNotPossible:
            continue
        assert sorted(caught.value.rows[column]) == rows(case)
        refused += 1
    assert refused >= 2


@pytest.mark.parametrize("source", [source for source in SOURCES if source != "sqlite"])  # which knows integers only
def test_missing_rows_change_dtypes_as_the_docs_say(there, source):
    case = Case(TABLES, [TOWN, CUST])
    corpus, databases = corpus_in(there, source, homes_of(case, 0))
    for by in WAYS:
        try:
            frame, _ = run_plan(case.plan(databases), corpus, by=by, how="left")
        except WayNotPossible:
            continue
        wide = {name: str(dtype).replace("32", "64") for name, dtype in frame.dtypes.items()}
        assert {name: wide[name] for name in ("sale_id", "cust", "amount", "paid", "people", "ok")} == {
            "sale_id": "int64", "cust": "Int64", "amount": "float64", "paid": "bool", "people": "Int64",
            "ok": "boolean",
        }, by  # fmt: skip
        assert frame["at"].dtype.kind == "M"
