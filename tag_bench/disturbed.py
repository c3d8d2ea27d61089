"""Merges of two tables with a declared key, after a perturbation: columns that number rows, versions, saved indexes."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

import tagframe
from tag_bench.databases import Database
from tagframe.engines.base import quoted
from tagframe.engines.sqlite.engine import connect_readonly
from tagframe.errors import AmbiguousJoinWarning, DoubtfulJoinWarning, JoinError
from tagframe.joins import JoinPlan

_MOST_ROWS = 2_000
Tables = Mapping[str, pd.DataFrame]
"""By id of the table."""
Side = tuple[str, str]
"""A table's id, and a column of it."""
_SAVED = ("Unnamed: 0", "index", "row", "rownum", "row_id", "idx", "seq", "record_id", "obs")


@dataclass(frozen=True)
class Pair:
    """Two frames before a merge.

    Attributes:
        mine, theirs: the referencing and the referenced frame.
        key: their key columns.
        called: the name of the second.
        chance: of all random choices.
    """

    mine: pd.DataFrame
    theirs: pd.DataFrame
    key: tuple[str, str]
    called: str
    chance: random.Random

    def sample(self, frame: pd.DataFrame, rows: int) -> pd.DataFrame:
        """Some random rows, at most ``rows``."""
        return frame.sample(min(rows, len(frame)), random_state=self.chance.randrange(2**31))

    def numbered(self, frame: pd.DataFrame, name: str, first: int = 1) -> pd.DataFrame | None:
        """The frame in another order, with a first column that counts its rows; None if it has one of that name."""
        counted = self.sample(frame, len(frame)).reset_index(drop=True)
        if name.casefold() in {str(column).casefold() for column in frame}:
            return None
        counted.insert(0, name, range(first, first + len(frame)))
        return counted


Frames = Sequence[pd.DataFrame | None]
"""The changed frames; None for one that cannot be changed."""


def _both_numbered(pair: Pair, name: str, first: int = 1) -> Frames:
    return [pair.numbered(frame, name, first) for frame in (pair.mine, pair.theirs)]


def _target_numbered(pair: Pair, suffix: str, versions: int) -> Frames:
    theirs = pair.theirs
    if versions > 1:
        positions = [position for position in range(len(theirs)) for _ in range(pair.chance.randint(1, versions))]
        theirs = theirs.iloc[positions]
        group = theirs.groupby(pair.key[1], dropna=False)[pair.key[1]]
        number, size = group.cumcount().tolist(), group.transform("size").tolist()
        ends = [None if n + 1 == all_ else f"{2018 + n}-12-31" for n, all_ in zip(number, size, strict=True)]
        theirs = theirs.assign(valid_from=[f"{2018 + n}-01-01" for n in number], valid_to=pd.Series(ends).tolist())
    counted = pair.numbered(theirs, f"{pair.called}{suffix}" if suffix != "id" else suffix)
    return [pair.sample(pair.mine, len(pair.mine)).reset_index(drop=True), counted]


def _columns_dropped(pair: Pair) -> Frames:
    both = zip((pair.mine, pair.theirs), pair.key, strict=True)
    return [frame[[name for name in frame if name == own or pair.chance.random() < 0.5]] for frame, own in both]


DISTURBANCES: Mapping[str, Mapping[str, Callable[[Pair], Frames]]] = {
    "none": {"as they are": lambda pair: [pair.mine, pair.theirs]},
    "id": {"id in front of both": partial(_both_numbered, name="id")},
    "surrogate": {"_sk in front of the target": partial(_target_numbered, suffix="_sk", versions=1)},
    "versioned": {
        "versions, _sk": partial(_target_numbered, suffix="_sk", versions=3),
        "versions, id": partial(_target_numbered, suffix="id", versions=3),
    },
    "saved-index": {f"saved {name}": partial(_both_numbered, name=name, first=0) for name in _SAVED},
    "drop-columns": {"half of the columns dropped": _columns_dropped},
    "shuffle-columns": {
        "columns shuffled": lambda pair: [
            frame[pair.chance.sample([*frame], frame.shape[1])] for frame in (pair.mine, pair.theirs)
        ]
    },
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
    warns = any(issubclass(one.category, DoubtfulJoinWarning | AmbiguousJoinWarning) for one in caught)
    return "said" if warns else "silent", frame.tag.merge_report.plan


def disturbed(databases: Sequence[Database], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The outcomes of merges of two tables with one declared key, after a perturbation.

    Args:
        databases: with rows.
        kinds: of :data:`DISTURBANCES`.

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
            changed = disturb(Pair(rows[one], rows[other], (mine, theirs), called[1], chance))
            frames = [frame for frame in changed if frame is not None]
            if len(frames) < 2:
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
            if is_only and min(len(rows[table]) for table, _ in sides) >= 2:
                yield sorted(sides, key=lambda side: (rows[side[0]][side[1]].nunique() / len(rows[side[0]]), side))
