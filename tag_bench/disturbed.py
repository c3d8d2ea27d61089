"""Merges of two tables after a perturbation: columns that number rows, versions, saved indexes, or only a few rows.

Tables with a declared key must be joined on it. Unrelated ones, of which a few rows may fit by accident, must not be
joined without a warning.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pandas as pd

import tagframe
from tag_bench.databases import Database, percent
from tagframe.engines.base import quoted
from tagframe.engines.sqlite.engine import connect_readonly
from tagframe.errors import AmbiguousJoinWarning, DoubtfulJoinWarning, JoinError
from tagframe.joins import JoinPlan
from tagframe.keys.column_names import words

ROWS = (2, 12)
"""The lowest and highest number of a few rows."""
_MOST_ROWS = 2_000
_TRIES = 20
"""Draws per wanted pair of unrelated tables; pairs with a common word are rejected."""
_NO_WORDS = frozenset({"id", "no", "number", "code", "key", "name"})
"""Words that unrelated tables may have in common."""

Tables = Mapping[str, pd.DataFrame]
"""By id of the table."""
Side = tuple[str, str]
"""A table's id, and a column of it."""
Disturbance = Callable[[pd.DataFrame, pd.DataFrame, tuple[str, str], str, random.Random], list[pd.DataFrame] | None]
"""Gives the changed frames, from the referencing and the referenced frame, their key columns, the name of the second,
and a random generator; None if the change is not possible."""

_SAVED = ("Unnamed: 0", "index", "row", "rownum", "row_id", "idx", "seq", "record_id", "obs")


def _shuffled(frame: pd.DataFrame, chance: random.Random) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=chance.randrange(2**31)).reset_index(drop=True)


def _numbered(frame: pd.DataFrame, name: str, first: int = 1) -> pd.DataFrame | None:
    """The frame with a first column that counts the rows; None if a column of that name exists."""
    if name.casefold() in {str(column).casefold() for column in frame}:
        return None
    counted = frame.copy()
    counted.insert(0, name, range(first, first + len(frame)))
    return counted


def _both_numbered(name: str, first: int = 1) -> Disturbance:
    def disturbed(
        mine: pd.DataFrame, theirs: pd.DataFrame, key: tuple[str, str], called: str, chance: random.Random
    ) -> list[pd.DataFrame] | None:
        found = [_numbered(_shuffled(frame, chance), name, first) for frame in (mine, theirs)]
        return [frame for frame in found if frame is not None] if all(f is not None for f in found) else None

    return disturbed


def _target_numbered(suffix: str, versions: int) -> Disturbance:
    def disturbed(
        mine: pd.DataFrame, theirs: pd.DataFrame, key: tuple[str, str], called: str, chance: random.Random
    ) -> list[pd.DataFrame] | None:
        if versions > 1:
            positions = [position for position in range(len(theirs)) for _ in range(chance.randint(1, versions))]
            theirs = theirs.iloc[positions]
            group = theirs.groupby(key[1], dropna=False)[key[1]]
            number, size = group.cumcount().tolist(), group.transform("size").tolist()
            ends = [None if n + 1 == all_ else f"{2018 + n}-12-31" for n, all_ in zip(number, size, strict=True)]
            theirs = theirs.assign(valid_from=[f"{2018 + n}-01-01" for n in number], valid_to=pd.Series(ends).tolist())
        counted = _numbered(_shuffled(theirs, chance), f"{called}{suffix}" if suffix != "id" else suffix)
        return None if counted is None else [_shuffled(mine, chance), counted]

    return disturbed


def _columns_dropped(
    mine: pd.DataFrame, theirs: pd.DataFrame, key: tuple[str, str], called: str, chance: random.Random
) -> list[pd.DataFrame] | None:
    kept = [
        [column for column in frame if column == own or chance.random() < 0.5]
        for frame, own in zip((mine, theirs), key, strict=True)
    ]
    return [mine[kept[0]], theirs[kept[1]]]


def _columns_shuffled(
    mine: pd.DataFrame, theirs: pd.DataFrame, key: tuple[str, str], called: str, chance: random.Random
) -> list[pd.DataFrame] | None:
    return [frame[chance.sample([*frame], frame.shape[1])] for frame in (mine, theirs)]


def _few_rows(
    mine: pd.DataFrame, theirs: pd.DataFrame, key: tuple[str, str], called: str, chance: random.Random
) -> list[pd.DataFrame] | None:
    """Some rows, those that they reference, and as many others of the second table."""
    some = mine.sample(min(chance.randint(*ROWS), len(mine)), random_state=chance.randrange(2**31))
    referenced = theirs[theirs[key[1]].isin(some[key[0]].dropna())]
    if not 0 < len(referenced) <= ROWS[1]:
        return None
    rest = theirs.drop(referenced.index)
    rest = rest.sample(min(len(rest), chance.randint(0, len(referenced))), random_state=chance.randrange(2**31))
    return [some.reset_index(drop=True), pd.concat([referenced, rest]).sort_index().reset_index(drop=True)]


DISTURBANCES: Mapping[str, Mapping[str, Disturbance]] = {
    "none": {"as they are": lambda mine, theirs, key, called, chance: [mine, theirs]},
    "id": {"id in front of both": _both_numbered("id")},
    "surrogate": {"_sk in front of the target": _target_numbered("_sk", 1)},
    "versioned": {
        "versions, _sk": _target_numbered("_sk", 3),
        "versions, id": _target_numbered("id", 3),
    },
    "saved-index": {f"saved {name}": _both_numbered(name, 0) for name in _SAVED},
    "drop-columns": {"half of the columns dropped": _columns_dropped},
    "shuffle-columns": {"columns shuffled": _columns_shuffled},
    "few-rows": {"a few rows": _few_rows},
}
"""The perturbations, by kind and label."""


def rows_of(databases: Sequence[Database]) -> dict[str, pd.DataFrame]:
    """The first rows of every table."""
    found = {}
    for database in databases:
        assert database.file is not None
        with closing(connect_readonly(database.file)) as connection:
            for table in database.tables:
                statement = f"SELECT * FROM {quoted(table.name)} LIMIT {_MOST_ROWS}"
                found[table.id] = pd.read_sql(statement, connection)
    return found


def merged(frames: Tables) -> tuple[str, JoinPlan | None]:
    """The outcome of a merge of frames: "silent", "said" (with a warning) or "refused"; and its plan."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = tagframe.merge({**frames}, on_fanout="allow", on_loss="allow")
        except JoinError:
            return "refused", None
    said = any(issubclass(one.category, DoubtfulJoinWarning | AmbiguousJoinWarning) for one in caught)
    return "said" if said else "silent", frame.tag.merge_report.plan


def disturbed(databases: Sequence[Database], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The outcomes of merges of two tables with one declared key, after a perturbation.

    Args:
        databases: with rows.
        kinds: of :data:`~tag_bench.perturbed.DISTURBANCES`.

    Returns:
        By perturbation: the number of pairs; how many are joined on the declared columns ("right"); how many of the
        others are joined with a warning ("said"), not joined ("refused"), or joined without a warning ("silent"); how
        many right ones have a warning; and the silent joins.
    """
    rows = rows_of(databases)
    pairs = [*_linked_pairs(databases, rows)]
    report: dict[str, dict[str, Any]] = {}
    for label, disturb in ((label, how) for kind in kinds for label, how in DISTURBANCES[kind].items()):
        counts: Counter[str] = Counter()
        silent = []
        for (one, mine), (other, theirs) in pairs:
            called = [id.partition(".")[2] for id in (one, other)]
            chance = random.Random(f"{label} {one} {mine} {other}")
            frames = disturb(rows[one], rows[other], (mine, theirs), called[1], chance)
            if frames is None:
                continue
            outcome, plan = merged(dict(zip(called, frames, strict=True)))
            wanted = {(f"frames.{called[0]}", mine), (f"frames.{called[1]}", theirs)}
            is_right = plan is not None and plan.classes() == [frozenset(wanted)]
            counts["right" if is_right else outcome] += 1
            counts["right, said"] += is_right and outcome == "said"
            if outcome == "silent" and not is_right and plan is not None:
                silent.append(f"{one}.{mine} = {other}.{theirs}: {plan.steps[0]} ({plan.score:.2f})")
        kinds_of = ("right", "said", "refused", "silent")
        report[label] = {"pairs": sum(counts[name] for name in kinds_of), **{name: counts[name] for name in kinds_of},
                         "right, said": counts["right, said"], "joined_silently": silent}  # fmt: skip
    return report


def _linked_pairs(databases: Sequence[Database], rows: Tables) -> Iterator[list[Side]]:
    """Both sides of the keys that are the only ones between their tables; the referenced side is the last one."""
    for database in databases:
        spelt = {f"{table.id}.{column.name}".lower(): (table.id, column.name)
                 for table in database.tables for column in table.columns}  # fmt: skip
        links = [sorted(link) for link in database.declared if len(link) == 2]
        ends = Counter(frozenset(column.rpartition(".")[0] for column in link) for link in links)
        for link in sorted(links):
            if not all(column in spelt for column in link):
                continue
            sides = [spelt[column] for column in link]
            is_only = ends[frozenset(column.rpartition(".")[0] for column in link)] == 1 and sides[0][0] != sides[1][0]
            if is_only and min(len(rows[table]) for table, _ in sides) >= ROWS[0]:
                yield sorted(sides, key=lambda side: (rows[side[0]][side[1]].nunique() / len(rows[side[0]]), side))


def unrelated(databases: Sequence[Database], pairs: int) -> dict[str, Any]:
    """The outcomes of merges of a few rows, in percent, for tables of different databases without a common word."""
    rows, chance = rows_of(databases), random.Random(f"{pairs} 2")
    known = {table.id: table for database in databases for table in database.tables if len(rows[table.id]) >= ROWS[0]}
    said_by = {
        id: {word for name in (table.name, *(column.name for column in table.columns)) for word in words(name)}
        - _NO_WORDS
        for id, table in known.items()
    }
    counts: Counter[str] = Counter()
    silent = []
    for _ in range(_TRIES * pairs if len(known) > 1 else 0):
        one, other = chance.sample([*known], 2)
        if said_by[one] & said_by[other] or known[one].database == known[other].database:
            continue
        frames = {
            known[id].name: rows[id].sample(
                min(chance.randint(*ROWS), len(rows[id])), random_state=chance.randrange(2**31)
            )
            for id in (one, other)
        }
        outcome, plan = merged(frames)
        counts[outcome] += 1
        if outcome == "silent" and plan is not None:
            silent.append("; ".join(f"{step} ({step.score:.2f})" for step in plan.steps))
        if counts.total() == pairs:
            break
    shares = {name: percent(count, counts.total()) for name, count in sorted(counts.items())}
    return {"unrelated": shares, "unrelated_joined_silently": silent}
