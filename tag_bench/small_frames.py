"""Merges of a few rows: tables of one database with a declared key, and unrelated tables of two databases.

A few rows give little evidence: a few integers are easily found among others by accident. Related tables must still be
joined correctly, and unrelated tables must not be joined without a warning.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pandas as pd

import tagframe
from tag_bench.databases import Database, percent
from tag_bench.perturbed import DISTURBANCES
from tagframe.engines.base import quoted
from tagframe.engines.sqlite.engine import connect_readonly
from tagframe.errors import AmbiguousJoinWarning, DoubtfulJoinWarning, JoinError
from tagframe.joins import JoinPlan
from tagframe.keys.column_names import words

ROWS = (2, 12)
"""The lowest and highest number of rows of a frame."""
_TRIES = 20
"""Draws per wanted pair of unrelated tables; pairs with a common word are rejected."""
_MOST_ROWS = 2_000
_NO_WORDS = frozenset({"id", "no", "number", "code", "key", "name"})
"""Words that unrelated tables may have in common."""

Tables = Mapping[str, pd.DataFrame]
"""By id of the table."""
Side = tuple[str, str]
"""A table's id, and a column of it."""


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


def related(databases: Sequence[Database], rows: Tables) -> list[tuple[str, str, str]]:
    """For each declared key that is the only one between its tables: the key, and the outcome of a merge of a few rows.

    The frames are some rows of the referencing table, the rows that they reference, and as many other rows of that
    table.
    """
    found = []
    for sides in _sole_keys(databases):
        link = [f"{table}.{column}".lower() for table, column in sides]
        frames = _drawn(rows, sides, random.Random(" ".join(link)))
        if frames is None:
            continue
        outcome, plan = merged(frames)
        if plan is not None and outcome != "refused":
            (step,) = plan.steps
            columns = {f"{step.base}.{c}".lower() for c in step.base_columns}
            columns |= {f"{step.table}.{c}".lower() for c in step.columns}
            outcome = outcome if columns == {*link} else f"wrong, {outcome}"
        found.append((" = ".join(link), outcome, "" if plan is None else str(plan.steps[0])))
    return found


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


def _sole_keys(databases: Sequence[Database]) -> Iterator[list[Side]]:
    """Both sides of the keys that are the only ones between their tables, in the order of their names."""
    for database in databases:
        spelt = {f"{table.id}.{column.name}".lower(): (table.id, column.name)
                 for table in database.tables for column in table.columns}  # fmt: skip
        links = [sorted(link) for link in database.declared if len(link) == 2]
        ends = Counter(frozenset(column.rpartition(".")[0] for column in link) for link in links)
        for link in sorted(links):
            if not all(column in spelt for column in link):
                continue
            sides = [spelt[column] for column in link]
            if ends[frozenset(column.rpartition(".")[0] for column in link)] == 1 and sides[0][0] != sides[1][0]:
                yield sides


def _linked_pairs(databases: Sequence[Database], rows: Tables) -> Iterator[list[Side]]:
    """The sides of such keys of tables with rows; the referenced side is the last one."""
    for sides in _sole_keys(databases):
        if min(len(rows[table]) for table, _ in sides) >= ROWS[0]:
            yield sorted(sides, key=lambda side: (rows[side[0]][side[1]].nunique() / len(rows[side[0]]), side))


def _drawn(rows: Tables, sides: Sequence[Side], chance: random.Random) -> dict[str, pd.DataFrame] | None:
    tables, columns = [table for table, _ in sides], [column for _, column in sides]
    frames = [rows[table] for table in tables]
    if not all(map(len, frames)):
        return None
    if frames[0][columns[0]].is_unique and not frames[1][columns[1]].is_unique:
        tables, frames, columns = tables[::-1], frames[::-1], columns[::-1]
    least, most = ROWS
    child = frames[0].sample(min(chance.randint(least, most), len(frames[0])), random_state=chance.randrange(2**31))
    wanted = child[columns[0]].dropna()
    if wanted.empty:
        return None
    parents = frames[1][frames[1][columns[1]].isin(wanted)]
    if parents.empty or len(parents) > most:
        return None
    rest = frames[1].drop(parents.index)
    rest = rest.sample(min(len(rest), chance.randint(0, max(1, len(parents)))), random_state=chance.randrange(2**31))
    return {tables[0]: child.reset_index(drop=True),
            tables[1]: pd.concat([parents, rest]).sort_index().reset_index(drop=True)}  # fmt: skip


def unrelated(databases: Sequence[Database], rows: Tables, pairs: int, tables: int = 2) -> list[tuple[str, str]]:
    """The outcomes of merges of a few rows for tables from different databases without a common word."""
    chance = random.Random(f"{pairs} {tables}")
    known = {table.id: table for database in databases for table in database.tables if len(rows[table.id]) >= ROWS[0]}
    said_by = {
        id: {word for name in (table.name, *(column.name for column in table.columns)) for word in words(name)}
        - _NO_WORDS
        for id, table in known.items()
    }
    found: list[tuple[str, str]] = []
    for _ in range(_TRIES * pairs):
        if len(found) == pairs or len(known) < tables:
            break
        chosen = chance.sample([*known], tables)
        if any(
            said_by[one] & said_by[other] or known[one].database == known[other].database
            for position, one in enumerate(chosen)
            for other in chosen[position + 1 :]
        ):
            continue
        frames = {
            known[id].name: rows[id].sample(
                min(chance.randint(*ROWS), len(rows[id])), random_state=chance.randrange(2**31)
            )
            for id in chosen
        }
        outcome, plan = merged(frames)
        how = "" if plan is None else "; ".join(f"{step} ({step.score:.2f})" for step in plan.steps)
        found.append((outcome, how))
    return found


def small_frames(databases: Sequence[Database], pairs: int) -> dict[str, Any]:
    """Shares in percent: of keys on which a few rows are still joined, and of unrelated frames that are not joined.

    Args:
        databases: with rows.
        pairs: the number of pairs of unrelated tables.
    """
    rows = rows_of(databases)
    keys = related(databases, rows)
    apart = unrelated(databases, rows, pairs)
    counts, other = Counter(outcome for _, outcome, _ in keys), Counter(outcome for outcome, _ in apart)
    return {
        "keys": len(keys),
        **{name: percent(count, len(keys)) for name, count in sorted(counts.items())},
        "unrelated": {name: percent(count, len(apart)) for name, count in sorted(other.items())},
        "unrelated_joined_silently": [how for outcome, how in apart if outcome == "silent"],
    }
