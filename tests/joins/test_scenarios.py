"""Small merges as tables are really kept: each is right, or said, or refused; none is wrong without a word."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import (
    AmbiguousJoinWarning,
    CoercedKeysWarning,
    DoubtfulJoinWarning,
    JoinError,
    RowsLostWarning,
)

D = pd.DataFrame
DRAWN = np.random.default_rng(11)
N, M = 40, 90
LABELS = [f"n{number}" for number in range(N)]
DAYS = pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d").tolist()
SAID = (AmbiguousJoinWarning, CoercedKeysWarning, DoubtfulJoinWarning, RowsLostWarning)
Frames = Mapping[str, pd.DataFrame]
Case = tuple[Frames, dict[str, Any], list[Any] | None]
"""Frames, arguments, and what stands in the column "label"; None where no merge is right."""


def drawn(values: Any, rows: int = M) -> list[Any]:
    values = [*values]
    return [values[number] for number in DRAWN.integers(0, len(values), rows)]


def order(rows: int = N) -> list[int]:
    return [int(number) + 1 for number in DRAWN.permutation(rows)]


def looked_up(frames: Frames, left: tuple[str, ...], right: tuple[str, ...] | None = None, **how: Any) -> Case:
    """The label of the second frame's row whose key is that of the first one's."""
    facts, rows = frames.values()
    labels = dict(zip(zip(*(rows[name] for name in right or left), strict=True), rows["label"], strict=True))
    wanted = [labels.get(key) for key in zip(*(facts[name] for name in left), strict=True)]
    return frames, how, wanted


def beside_a_surrogate(key: str, surrogate: str, table: str) -> Case:
    rows = D({surrogate: range(1, N + 1), key: order(), "label": LABELS})
    return looked_up({"facts": D({"fact": range(M), key: drawn(rows[key])}), table: rows}, (key,))


def panel(*columns: tuple[str, Any]) -> Case:
    grid = pd.MultiIndex.from_product([[*values] for _, values in columns]).to_frame(index=False)
    grid.columns = [name for name, _ in columns]
    other = grid.sample(frac=1, random_state=3).reset_index(drop=True)
    frames = {"one": grid.assign(measured=range(len(grid))), "other": other.assign(label=range(len(grid)))}
    return looked_up(frames, tuple(name for name, _ in columns))


def part_dropped(facts: str, table: str, key: tuple[str, Any], part: tuple[str, Any, Any]) -> Case:
    """The second table is by key and part, and has one part of each key: rows that are not there have no label."""
    name, values = key
    rows = D({name: [*values]}).assign(**{part[0]: part[2]})
    fact = D({facts[:-1]: range(M), name: drawn(values), part[0]: drawn(part[1])})
    return looked_up({facts: fact, table: rows.assign(label=range(len(rows)))}, (name, part[0]), how="left")


def versioned(surrogate: str, **columns: list[Any]) -> Case:
    keys = [number for number in range(1, N + 1) for _ in range(2)]
    rows = D({"customer_id": keys, "city": range(2 * N)}).assign(**{name: cells * N for name, cells in columns.items()})
    rows = rows.sample(frac=1, random_state=4).reset_index(drop=True)
    rows.insert(0, surrogate, range(1, 2 * N + 1))
    return {"sales": D({"sale": range(M), "customer_id": drawn(range(1, N + 1))}), "dim_customer": rows}, {}, None


def written(
    mine: list[Any], theirs: list[Any], column: str, table: str, meant: Callable[[Any], Any], **how: Any
) -> Case:
    labels = dict(zip(map(meant, theirs), LABELS, strict=False))
    frames = {
        "uses": D({"use": range(len(mine)), column: mine}),
        table: D({column: theirs, "label": LABELS[: len(theirs)]}),
    }
    return frames, how, [None if pd.isna(cell) else labels[meant(cell)] for cell in mine]


SPAN = {"valid_from": ["2020-01-01", "2022-01-01"], "valid_to": ["2021-12-31", None]}

CASES: dict[str, Case] = {
    **{f"{key} beside {surrogate}": beside_a_surrogate(key, surrogate, table) for key, surrogate, table in (
        ("customer_id", "customer_key", "customers"), ("product_code", "id", "products"), ("store_no", "id", "stores"),
        ("account_no", "account_id", "accounts"), ("policy_id", "policy_key", "policies"),
        ("sensor_id", "id", "sensors"),
        ("employee_number", "employee_id", "employees"), ("vehicle_id", "vehicle_sk", "dim_vehicle"),
    )},
    "id in both": looked_up({"visits": D({"id": range(1, M + 1), "patient_id": drawn(range(1, N + 1))}),
                             "patients": D({"id": range(1, N + 1), "patient_id": order(), "label": LABELS})},
                            ("patient_id",)),
    "country, year": panel(("country", "ABCDEFGH"), ("year", (2018, 2019, 2020))),
    "ticker, date": panel(("ticker", ("AAPL", "MSFT", "GE")), ("date", DAYS[:10])),
    "store, week, product": panel(("store_id", (1, 2, 3)), ("week", (1, 2, 3, 4)), ("product", "ab")),
    "a rate of one currency": part_dropped("invoices", "rates", ("date", DAYS), ("currency", ["USD", "EUR"], "USD")),
    "prices of one region": part_dropped("sales", "price_list", ("product_id", range(N)), ("region", "NSEW", "N")),
    "taxes of one year": part_dropped("bills", "taxes", ("country", "ABCDEFGH"), ("year", [2021, 2022, 2023], 2023)),
    "schools of one year": part_dropped("results", "schools", ("school_id", range(N)), ("year", [2021, 2022], 2022)),
    "terms of one language": part_dropped("uses", "translations", ("term", LABELS), ("locale", ["de", "fr"], "de")),
    "quotas of one quarter": part_dropped("deals", "quotas", ("team", LABELS[:9]), ("quarter", [1, 2, 3, 4], 1)),
    "fees by channel": part_dropped("orders", "fees", ("product", LABELS), ("channel", ["web", "shop"],
                                                                           drawn(["web", "shop"], N))),
    "home and away": looked_up({"games": D({"game": range(M), "away_team_id": drawn(range(N)),
                                            "home_team_id": drawn(range(N))}),
                                "teams": D({"team_id": range(N), "label": LABELS})}, ("home_team_id",), ("team_id",)),
    "case": written(drawn([f"ab{n}" for n in range(20)]), [f"AB{n}" for n in range(20)], "code",
                    "codes", str.lower),
    "spaces": written(drawn([f"K{n} " for n in range(20)]), [f"K{n}" for n in range(20)], "city_code",
                      "cities", str.strip),
    "signs": written(drawn([f"+{n}" for n in range(1, 20)]), [f"{n}" for n in range(1, 20)], "code",
                     "codes", int, how="left"),
    **{f"versions by {name}": versioned(name, **SPAN) for name in ("customer_sk", "id", "dim_customer_key", "row_id")},
    "versions by n": versioned("id", version=[1, 2]),
    "versions that are current": versioned("sk", is_current=[False, True]),
    "versions by a date": versioned("id", effective_date=["2020-01-01", "2022-01-01"]),
    "rain and wind": ({"rain": D({"station": range(N), "mm": drawn(range(50), N)}),
                       "wind": D({"tower": range(N), "speed": drawn(range(50), N)})}, {}, None),
    "numbers of two things": ({"invoices": D({"invoice_id": range(1, 41)}),
                               "sensors": D({"sensor_id": range(1, 41), "kind": drawn("ab", 40)})}, {}, None),
    "a count": ({"order_items": D({"item": range(M), "quantity": drawn(range(1, 10))}),
                 "sizes": D({"id": range(1, 21), "label": LABELS[:20]})}, {}, None),
    "how many work there": ({"shops": D({"shop": range(M), "employees": drawn(range(1, 20))}),
                             "regions": D({"region_id": range(1, 21), "label": LABELS[:20]})}, {}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_none_is_wrong_without_a_word(case):
    frames, how, wanted = case
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = tf.merge(frames, **how)
        except JoinError:
            return
    found = [] if wanted is None else [None if pd.isna(cell) else cell for cell in frame["label"]]
    assert found == wanted or any(issubclass(one.category, SAID) for one in caught), frame.tag.merge_report
