"""``tag_bench joins``: inferred keys, plans and merges, compared with declared keys and the joins of gold SQL.

The measured code sees no declared keys, and nothing derived from them.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import pandas as pd

import tagframe
from tag_bench import FILE, FOLDER, benchmark, number
from tag_bench.data import read_halves
from tag_bench.databases import Database, key_scores, percent, read_databases, reliability
from tag_bench.disturbed import DISTURBANCES, disturbed
from tag_bench.gold_joins import Column, GoldJoins, gold_joins
from tag_bench.measured import timed
from tag_bench.merge_cost import merge_ratio
from tag_bench.records import RECORDS, Records, settings_of
from tag_bench.warehouses import beside, schema_alone, warehouse
from tagframe.corpus.profile import TableProfile
from tagframe.engines.base import quoted
from tagframe.engines.sqlite.engine import connect_readonly
from tagframe.errors import FanOut, NotConnected
from tagframe.joins import JoinPlan, plan_joins
from tagframe.keys import KeyPair, infer_key_pairs
from tagframe.keys.inference import ACCEPTED
from tagframe.retrieval.role_hints import role_hints

ROW = "row number"
"""A column that is added to every table of a merge under test."""
PLANS = ("equal", "with_question", "best_two")
Outcome = Mapping[str, int]
"""What is true of a question, and counts."""


@dataclass(frozen=True)
class Case:
    """One question with its gold joins, and its position in the file."""

    database: str
    question: str
    gold: GoldJoins
    position: int


def read_cases(folder: Path, databases: Sequence[Database]) -> list[Case]:
    """The questions whose gold SQL reads more than one table of a database with rows."""
    schemas = {database.name: database.schema for database in databases if database.file is not None}
    cases = []
    for position, entry in enumerate(json.loads((folder / "dev.json").read_text(encoding="utf-8"))):
        if entry["db_id"] in schemas:
            gold = gold_joins(entry["sql"], schemas[entry["db_id"]])
            if len(gold.tables) > 1:
                cases.append(Case(entry["db_id"], entry["question"], gold, position))
    return cases


def cross_database_percent(databases: Sequence[Database]) -> float:
    """The share of table pairs from different databases that a key links, in percent."""
    tables = [table for database in databases for table in database.tables]
    linked = {
        key.tables
        for key in infer_key_pairs(tables, declared=False, across_sources=True)
        if key.left_table.partition(".")[0] != key.right_table.partition(".")[0]
    }
    sizes = Counter(table.database for table in tables)
    pairs = (len(tables) ** 2 - sum(size**2 for size in sizes.values())) // 2
    return percent(len(linked), pairs)


def plan_outcomes(
    cases: Sequence[Case], databases: Sequence[Database], keys: Mapping[str, Sequence[KeyPair]]
) -> list[tuple[Case, Outcome]]:
    """For each question, whether the plans over its tables make the same columns equal as its gold SQL.

    Questions whose SQL reads a table twice are left out, because a plan has each table once.
    """
    tables = {database.name: database.tables for database in databases}
    outcomes: list[tuple[Case, Outcome]] = []
    for case in cases:
        if not case.gold.twice:
            plain, with_question = (
                _plan(case, tables[case.database], keys[case.database], with_question=way) for way in (False, True)
            )
            outcome = {
                "equal": _classes(plain) == case.gold.classes,
                "with_question": _classes(with_question) == case.gold.classes,
                "best_two": any(_classes(plan) == case.gold.classes for plan in _best_two(with_question)),
            }
            outcomes.append((case, outcome))
    return outcomes


def plan_scores(outcomes: Sequence[tuple[Case, Outcome]]) -> dict[str, Any]:
    """The share of questions with equal plans, in percent."""
    counts = {name: sum(outcome[name] for _, outcome in outcomes) for name in PLANS}
    percents = {f"{name}_percent": percent(count, len(outcomes)) for name, count in counts.items()}
    return {"questions": len(outcomes), **percents}


def _plan(
    case: Case, tables: Sequence[TableProfile], keys: Sequence[KeyPair], *, with_question: bool
) -> JoinPlan | None:
    chosen = [table for table in tables if table.name.lower() in case.gold.tables]
    likely = [key for key in keys if key.score >= ACCEPTED]
    hints = role_hints(likely, re.findall(r"\w+", case.question)) if with_question else None
    try:
        return plan_joins(chosen, keys, role_hints=hints)
    except NotConnected:
        return None


def _best_two(plan: JoinPlan | None) -> list[JoinPlan]:
    return [] if plan is None else [plan, *plan.alternatives[:1]]


def _classes(plan: JoinPlan | None) -> frozenset[frozenset[Column]] | None:
    if plan is None:
        return None
    names = {source.id: source.name.lower() for source in plan.sources}
    return frozenset(frozenset((names[table], column.lower()) for table, column in group) for group in plan.classes())


def merge_outcomes(
    cases: Sequence[Case], databases: Sequence[Database], keys: Mapping[str, Sequence[KeyPair]]
) -> list[tuple[Case, Outcome]]:
    """For each question, whether the inner merge contains every row of the gold SQL's joins.

    Rows are compared by the numbers of their source rows, which is stricter than comparing cells. The plan is made
    with the question.
    """
    by_name = {database.name: database for database in databases}
    merged_of = cache(lambda name, plan: _merged_rows(plan, by_name[name]))
    gold_of = cache(lambda name, sql: _gold_rows(sql, by_name[name]))
    found: list[tuple[Case, Outcome]] = []
    for case in cases:
        if case.gold.twice or not case.gold.blocks:
            continue
        plan = _plan(case, by_name[case.database].tables, keys[case.database], with_question=True)
        outcome = Counter[str]({"not connected": plan is None})
        found.append((case, outcome))
        if plan is None:
            continue
        rows = merged_of(case.database, plan)
        if rows is None:
            outcome["refused"] = True
            continue
        wanted = [(block.tables, gold_of(case.database, block.rows_sql)) for block in case.gold.blocks]
        ran = [(tables, gold) for tables, gold in wanted if gold is not None]
        outcome["gold SQL does not run"] = len(wanted) - len(ran)
        outcome["contained"] = all(holds_rows(rows, gold, tables) for tables, gold in ran)
    return found


def merge_scores(outcomes: Sequence[tuple[Case, Outcome]]) -> dict[str, Any]:
    """The share of questions whose rows are all contained, in percent. A refusal counts as a miss."""

    def count(name: str) -> int:
        return sum(outcome[name] for _, outcome in outcomes)

    return {
        "questions": len(outcomes),
        "contained_percent": percent(count("contained"), len(outcomes)),
        "refused": count("refused"),
        "not_connected": count("not connected"),
        "gold_not_run": count("gold SQL does not run"),
    }


def _merged_rows(plan: JoinPlan, database: Database) -> pd.DataFrame | None:
    """The numbers of the source rows that the plan joins; None if the merge is refused for repeated rows."""
    numbered = replace(
        plan,
        sources=tuple(replace(source, columns=(*source.columns, ROW)) for source in plan.sources),
        alternatives=(),
    )
    table_of = {source.id: source.table for source in plan.sources}
    columns: dict[str, set[str]] = {table: set() for table in table_of.values()}
    for step in plan.steps:
        columns[table_of[step.base]].update(step.base_columns)
        columns[table_of[step.table]].update(step.columns)
    assert database.file is not None
    frames = {}
    with closing(connect_readonly(database.file)) as connection:
        for source in plan.sources:
            selected = ", ".join([f"rowid AS {quoted(ROW)}", *map(quoted, sorted(columns[source.table]))])
            frames[source.table] = pd.read_sql(f"SELECT {selected} FROM {quoted(source.name)}", connection)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = [f"{source.id}.{ROW}" for source in plan.sources]
            frame = tagframe.merge(frames, plan=numbered, on_loss="allow", columns=wanted)
    except FanOut:
        return None
    names = {numbered.column_names()[source.id, ROW]: source.name.lower() for source in plan.sources}
    return frame.rename(columns=names)


def holds_rows(rows: pd.DataFrame, gold: pd.DataFrame, tables: Sequence[str]) -> bool:
    """Whether the merged rows contain every gold row, as often as the gold SQL gives it."""
    if gold.empty:
        return True
    have = rows[list(tables)].value_counts()
    need = gold.set_axis(list(tables), axis="columns").value_counts()
    return bool((have.reindex(need.index, fill_value=0) >= need).all())


def _gold_rows(sql: str, database: Database) -> pd.DataFrame | None:
    assert database.file is not None
    with closing(connect_readonly(database.file)) as connection, suppress(pd.errors.DatabaseError):
        return pd.read_sql(sql, connection)
    return None


def _note(records: Records, plans: Sequence[tuple[Case, Outcome]], merges: Sequence[tuple[Case, Outcome]]) -> None:
    """A record of each question, with the outcome of its plans and of its merge, if it has them."""
    scores: dict[Case, dict[str, int]] = defaultdict(dict)
    for outcomes, names in ((plans, PLANS), (merges, ("contained",))):
        for case, outcome in outcomes:
            scores[case].update({name: int(outcome[name]) for name in names})
    for case, found in sorted(scores.items(), key=lambda one: one[0].position):
        record = {"database": case.database, "gold_tables": sorted(case.gold.tables), "scores": found}
        records.add(case.position, case.question, record)


@benchmark("joins")
@click.option("--data", type=FOLDER, help="The folder; or one of Parquet files with FOLDER_keys.json beside it.")
@click.option("--schema", type=FILE, help="Instead of --data: a file of CREATE TABLE statements.")
@click.option("--keys", "gold_keys", type=FILE, help="With --schema: a JSON file of pairs of table.column.")
@click.option("--perturb", type=click.Choice([*DISTURBANCES]), multiple=True, help="Measure only merges after these.")
@click.option("--own-names", is_flag=True, help="For Parquet files: infer keys without their rows.")
@number("--merge-rows", 1_000_000, "Rows of the fact table.")
@RECORDS
def command(
    data: Path | None,
    schema: Path | None,
    gold_keys: Path | None,
    perturb: tuple[str, ...],
    own_names: bool,
    merge_rows: int,
    records: Path | None,
) -> dict[str, Any]:
    """Measure key inference, join plans and merges.

    Example: python -m tag_bench joins --data shared/bench/spider --json -
    """
    if schema is not None and gold_keys is not None and data is None:
        return schema_alone(schema, gold_keys)
    if data is None:
        raise click.UsageError("give --data, or both --schema and --keys")
    if beside(data, "keys").is_file():
        return warehouse(data, own_names=own_names)
    settings = settings_of()
    stored = Records(records, settings)
    databases = read_databases(data)
    filled = [database for database in databases if database.file is not None]
    if perturb:
        return {**settings, "dataset": data.resolve().name, "perturbed": disturbed(filled, perturb)}
    seconds, every = timed(
        lambda: {one.name: infer_key_pairs(one.tables, declared=False, min_score=0.0) for one in filled}
    )
    keys = {name: [key for key in found if key.score >= ACCEPTED] for name, found in every.items()}
    bare = [database for database in databases if database.file is None]
    bare_keys = {database.name: infer_key_pairs(database.tables, declared=False) for database in bare}
    cases = read_cases(data, databases)
    plans, merges = plan_outcomes(cases, filled, every), merge_outcomes(cases, filled, every)
    _note(stored, plans, merges)
    return {
        **settings,
        "dataset": data.resolve().name,
        "keys": {
            **key_scores(filled, keys),
            "cross_database_pairs_percent": cross_database_percent(filled),
        },
        "keys_without_rows": key_scores(bare, bare_keys) if bare else None,
        "plans": {**plan_scores(plans), "table_twice_left_out": len(cases) - len(plans)},
        "merge": merge_scores(merges),
        "reliability": reliability(filled, keys),
        "by_half": {
            half: {
                "keys": key_scores(part, keys),
                "plans": plan_scores([entry for entry in plans if entry[0].database.lower() in names]),
                "merge": merge_scores([entry for entry in merges if entry[0].database.lower() in names]),
                "reliability": reliability(part, keys),
            }
            for half, names in read_halves(data).items()
            for part in [[database for database in filled if database.name.lower() in names]]
        },
        "infer_seconds": round(seconds, 3),
        "tables": sum(len(database.tables) for database in filled),
        "merge_ratio": merge_ratio(merge_rows),
    }
