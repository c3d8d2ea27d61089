"""Hundreds of merges beside plain pandas: each gives the same rows or says why not, however tables are listed."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
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
    NotConnected,
)
from tests.joins.schemas import SCENARIOS, random_schema

pytestmark = [pytest.mark.slow, pytest.mark.pandas2]

Frames = dict[str, pd.DataFrame]
Rows = Counter[tuple[Any, ...]]
SAID = (AmbiguousJoinWarning, CoercedKeysWarning, DoubtfulJoinWarning)
KINDS = ("triangle", "roles", "floats", "text", "shape", "bridge")


def with_rows(frames: Frames) -> Frames:
    """Each frame with a column of its own that numbers its rows, so that a joined row says what it is made of."""
    return {name: frame.assign(**{f"row of {name}": np.arange(len(frame)) + 0.5}) for name, frame in frames.items()}


def rows_of(frame: pd.DataFrame, names: Any) -> Rows:
    return Counter(map(tuple, frame[[f"row of {name}" for name in names]].to_numpy().tolist()))


def joined_by_pandas(frames: Frames, *steps: tuple[str, list[str], list[str]]) -> Rows:
    """The rows of inner joins: the first frame, then for each step a frame on these columns; nulls match nothing."""
    names = list(frames)
    found = frames[names[0]].add_prefix(f"{names[0]}.")
    for name, mine, theirs in steps:
        other = frames[name].dropna(subset=theirs).add_prefix(f"{name}.")
        found = found.dropna(subset=mine).merge(other, left_on=mine, right_on=[f"{name}.{column}" for column in theirs])
    columns = [f"{name}.row of {name}" for name in names]
    return Counter(map(tuple, found[columns].to_numpy().tolist()))


def outcome(frames: Frames, expected: Rows | None, **options: Any) -> str:
    """ "same", "said" or "refused"; anything else fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = tf.merge(frames, on_fanout="allow", on_loss="allow", **options)
        except JoinError:
            return "refused"
    if any(issubclass(warning.category, SAID) for warning in caught) or frame.tag.merge_report.stacks:
        return "said"
    assert expected is not None, "was joined without a word"
    assert rows_of(frame, frames) == expected, frame.tag.merge_report
    return "same"


def a_triangle(random: np.random.Generator) -> tuple[Frames, Rows, dict[str, Any]]:
    """A professor's department and the department's head, who is an employee as the professor is."""
    people, units = 30, 6
    frames = {
        "professor": {"emp_id": random.permutation(people)[:20] + 1, "dept_id": random.integers(1, units + 1, 20)},
        "department": {"dept_id": np.arange(units) + 1, "emp_id": random.permutation(people)[:units] + 1},
        "employee": {"emp_id": np.arange(people) + 1, "name": [f"n{i}" for i in range(people)]},
    }
    made = with_rows({name: pd.DataFrame(columns) for name, columns in frames.items()})
    steps = ("department", ["professor.dept_id"], ["dept_id"]), ("employee", ["professor.emp_id"], ["emp_id"])
    return made, joined_by_pandas(made, *steps), {}


def two_roles(random: np.random.Generator) -> tuple[Frames, Rows, dict[str, Any]]:
    teams = pd.DataFrame({"team_id": random.permutation(8) + 1, "town": [f"t{i}" for i in range(8)]})
    first, second = random.choice(["home", "first", "left", "north"], 2, replace=False)
    games = {"game_id": np.arange(25)} | {f"{r}_team_id": random.integers(1, 9, 25) for r in (first, second)}
    made = with_rows({"game": pd.DataFrame(games), "team": teams})
    return made, joined_by_pandas(made, ("team", [f"game.{first}_team_id"], ["team_id"])), {}


def floats(random: np.random.Generator) -> tuple[Frames, Rows, dict[str, Any]]:
    base = int(random.choice([1, 1000, 2**53 - 3, 2**53, 10**18]))
    ids = [base + int(position) for position in random.permutation(6)]
    taken = [ids[position] for position in random.integers(0, 6, 12)]
    gone = random.random(12) < 0.2
    payments = pd.DataFrame(
        {"payment": range(12), "owner_id": [np.nan if no else id for no, id in zip(gone, taken, strict=True)]}
    )
    owners = pd.DataFrame({"owner_id": ids if random.random() < 0.7 else np.array(ids, dtype=float)})
    made = with_rows({"payments": payments, "owners": owners})
    expected = Counter(
        (i + 0.5, ids.index(id) + 0.5) for i, (no, id) in enumerate(zip(gone, taken, strict=True)) if not no
    )
    return made, expected, {"on": "owner_id"}


def text(random: np.random.Generator) -> tuple[Frames, Rows, dict[str, Any]]:
    spellings: list[list[Any]] = [
        ["1.1", "1.10", "1.2", "1.20", "v1"],
        ["250.0", "250.00", "E11", "e11", "E11.0"],
        ["007", "7", "08", "8", "9"],
        ["a", "A", "b", " b", "B "],
        ["+7", "7", "-0", "0", "1e3", "1000"],
        [7, 8, 9, 10],
    ]
    mine, theirs = (spellings[position] for position in random.integers(0, len(spellings), 2))
    if random.random() < 0.7:
        theirs = mine
    left = pd.DataFrame({"code": random.choice(np.array(mine, dtype=object), 10)})
    right = pd.DataFrame({"code": random.permutation(np.array(theirs, dtype=object))[: random.integers(2, 5)]})
    made = with_rows({"visits": left, "codes": right})
    return made, joined_by_pandas(made, ("codes", ["visits.code"], ["code"])), {"on": "code"}


def one_shape(random: np.random.Generator) -> tuple[Frames, Rows | None, dict[str, Any]]:
    names = [("budget_2024", "actual_2024"), ("orders_north", "returns_north"), ("sales_2023", "sales_2024")]
    left, right = names[random.integers(0, 3)]
    depts = ["it", "hr", "pr", "qa"]
    frames = {name: pd.DataFrame({"dept": random.permutation(depts), "amount": random.random(4)}) for name in
              (left, right)}  # fmt: skip
    made = with_rows(frames)
    if random.random() < 0.5:
        return {name: frame.drop(columns=f"row of {name}") for name, frame in made.items()}, None, {}
    return made, joined_by_pandas(made, (right, [f"{left}.dept"], ["dept"])), {"on": "dept"}


def a_bridge(random: np.random.Generator) -> tuple[Frames, Rows, dict[str, Any]]:
    orders = {"order_id": np.arange(1, 31), "quantity": random.integers(1, 8, 30)}
    lines = {"order_id": random.integers(1, 31, 40), "product_id": random.integers(1, 9, 40)}
    products = {"product_id": np.arange(1, 9), "product_name": [f"p{i}" for i in range(8)]}
    made = with_rows({"order_lines": pd.DataFrame(lines), "products": pd.DataFrame(products),
                      "orders": pd.DataFrame(orders)})  # fmt: skip
    steps = ("products", ["order_lines.product_id"], ["product_id"]), ("orders", ["order_lines.order_id"], ["order_id"])
    return made, joined_by_pandas(made, *steps), {}


MAKERS: Mapping[str, Callable[[np.random.Generator], tuple[Frames, Rows | None, dict[str, Any]]]] = {
    "triangle": a_triangle, "roles": two_roles, "floats": floats, "text": text, "shape": one_shape, "bridge": a_bridge,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_merge_differs_from_pandas_without_a_word(kind):
    seen: Counter[str] = Counter()
    for seed in range(500 // len(KINDS) + 1):
        frames, expected, options = MAKERS[kind](np.random.default_rng([seed, KINDS.index(kind)]))
        if expected is not None and kind == "shape":
            options = {**options, "stack": False}
        seen[outcome(frames, expected, **options)] += 1
    assert sum(seen.values()) >= 83
    told = {
        "triangle": {"same"}, "roles": {"same", "said"}, "floats": {"same", "refused"}, "text": {"same", "said"},
        "shape": {"same", "said", "refused"}, "bridge": {"same"},
    }[kind]  # fmt: skip
    assert set(seen) == told or (kind == "roles" and set(seen) <= told), seen


# --- the order of tables, columns and rows, and prefixes of names, are nothing ------------------------------------


def joined(frames: Frames, prefixes: Mapping[str, str]) -> tuple[Any, Rows] | None:
    """What a plan makes equal, and the rows, with the tables' own names; the columns hold what rows are made of.

    None where nothing connects the tables.
    """
    named = {prefixes[name] + name: frame for name, frame in frames.items()}
    try:
        plan = tf.join_plan(named)
    except NotConnected:
        return None
    own = {f"frames.{prefixes[name]}{name}": name for name in frames}
    steps = frozenset(
        frozenset({(own[step.base], tuple(sorted(step.base_columns))), (own[step.table], tuple(sorted(step.columns)))})
        for step in plan.steps
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = tf.merge(named, plan=plan, on_fanout="allow", on_loss="allow")
    return (own[plan.start], steps), rows_of(frame, sorted(frames))


@pytest.mark.parametrize("name", [*SCENARIOS, *range(7)])
def test_order_and_prefixes_change_neither_plan_nor_rows(name):
    random = np.random.default_rng(3)
    made = SCENARIOS[name](Random(name)) if isinstance(name, str) else random_schema(name)
    frames = with_rows(made)
    plain = dict.fromkeys(frames, "")
    expected = joined(frames, plain)
    first, *others = frames
    for _ in range(3):
        shuffled = {
            name: frames[name].sample(frac=1, random_state=int(random.integers(1000)))
            for name in [first, *random.permutation(others)]
        }
        shuffled = {name: frame[list(random.permutation(frame.columns))] for name, frame in shuffled.items()}
        prefixes = {name: str(random.choice(["a_", "z_"])) for name in frames}
        assert joined(shuffled, plain) == expected
        assert joined(frames, prefixes) == expected
