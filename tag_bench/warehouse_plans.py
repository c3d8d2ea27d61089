"""Plans and merges of a warehouse's statements: one for each SELECT that joins two or more tables in its FROM.

There are no questions beside the statements. A statement counts as right if each of its SELECTs does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pandas as pd

from tag_bench.databases import percent
from tag_bench.gold_joins import GoldJoins, JoinBlock
from tag_bench.merged_rows import ROW, holds_rows, merged_rows
from tagframe.corpus import Corpus
from tagframe.errors import NotConnected
from tagframe.joins import JoinPlan
from tagframe.joins.components import Components
from tagframe.joins.infer import plan_tables
from tagframe.joins.roles import Roles
from tagframe.joins.steps import PlanTable
from tagframe.keys import KeyPair

_MOST_ROWS = 3_000_000
"""A SELECT whose joins have more rows, without its other predicates, has its merge left out."""


def statement_plans(
    folder: Path, statements: Sequence[GoldJoins], corpus: Corpus, keys: Sequence[KeyPair]
) -> dict[str, Any]:
    """The figures ``plans`` and ``merge`` of the statements.

    Args:
        folder: of the Parquet files; the statements are in DuckDB's dialect.
        statements: the joins of each.
        corpus: of the folder.
        keys: all key pairs of its tables, faint ones too.
    """
    planned, merges = [], []
    plans_of, merge_of = cache(partial(_plans, corpus, keys)), cache(partial(_merge, corpus))
    gold_of = cache(partial(_gold_rows, folder))
    for statement in statements:
        blocks = [block for block in statement.blocks if _is_connected(block)]
        outcomes, merged = [], []
        for block in blocks:
            plain, in_roles = plans_of(block.tables)
            outcomes.append(
                {
                    "equal": any(_holds(plan, block, exactly=True) for plan in plain[:1]),
                    "best_two": any(_holds(plan, block) for plan in plain),
                    "roles": any(_holds(plan, block) for plan in in_roles),
                }
            )
            gold = gold_of(block.rows_sql)
            if gold is not None:
                twice = len({*block.tables}) < len(block.tables)
                merged.append(_outcome(in_roles if twice else plain[:1], block, gold, merge_of))
        if blocks:
            planned.append((statement.twice, outcomes))
        if merged:
            merges.append(merged)
    return {"plans": _plan_scores(planned), "merge": _merge_scores(merges)}


def _plans(corpus: Corpus, keys: Sequence[KeyPair], tables: tuple[str, ...]) -> tuple[list[JoinPlan], list[JoinPlan]]:
    """The plan of the tables and its first alternative; and the plan that joins each table in all of its roles."""
    ids = [table.id for table in corpus.profiles if table.name.lower() in tables]

    def planned(roles: Roles) -> list[JoinPlan]:
        try:
            plan = plan_tables(corpus, ids, keys=keys, roles=roles)
        except NotConnected:
            return []
        return [plan, *plan.alternatives[:1]]

    return planned(None), planned("all")[:1]


def _is_connected(block: JoinBlock) -> bool:
    parts = Components(range(len(block.tables)))
    for (one, _), (other, _) in block.pairs:
        parts.join(one, other)
    return len(parts.groups()) == 1


def _mappings(plan: JoinPlan, block: JoinBlock) -> Iterator[dict[int, str]]:
    """The ways to see the SELECT's tables, by position, as tables of the plan, each of which is used once."""
    ids: dict[str, list[str]] = defaultdict(list)
    for source in plan.sources:
        ids[source.name.lower()].append(source.id)
    places: dict[str, list[int]] = defaultdict(list)
    for position, table in enumerate(block.tables):
        places[table].append(position)
    for chosen in product(*(permutations(ids[table], len(there)) for table, there in places.items())):
        yield {position: id for there, some in zip(places.values(), chosen, strict=True)
               for position, id in zip(there, some, strict=True)}  # fmt: skip


def _holds(plan: JoinPlan, block: JoinBlock, *, exactly: bool = False) -> bool:
    """Whether the plan makes equal what the SELECT does; with ``exactly``, nothing else, and joins no other table."""
    group = {(id, column.lower()): number for number, same in enumerate(plan.classes()) for id, column in same}
    if exactly and len(plan.sources) != len(block.tables):
        return False
    for ids in _mappings(plan, block):
        ends = [[(ids[position], column) for position, column in pair] for pair in block.pairs]
        if all(one in group and group[one] == group.get(other) for one, other in ends) and (
            not exactly or {*group} == {end for pair in ends for end in pair}
        ):
            return True
    return False


def _gold_rows(folder: Path, sql: str) -> pd.DataFrame | None:
    """The row numbers that the SELECT joins; None if they are too many."""
    import duckdb

    with duckdb.connect() as connection:
        for file in sorted(folder.glob("*.parquet")):
            rows = f"read_parquet('{file}', file_row_number = true)"
            connection.execute(f'CREATE VIEW "{file.stem}" AS SELECT *, file_row_number AS rowid FROM {rows}')
        found = connection.sql(f"SELECT * FROM ({sql}) LIMIT {_MOST_ROWS + 1}").df()
    return found if len(found) <= _MOST_ROWS else None


def _merge(corpus: Corpus, plan: JoinPlan) -> Any:
    def read(table: PlanTable, columns: Sequence[str]) -> pd.DataFrame:
        rows = corpus.read(table.table, [*columns])
        return rows.assign(**{ROW: range(len(rows))})

    return merged_rows(plan, read)


def _outcome(plans: Sequence[JoinPlan], block: JoinBlock, gold: pd.DataFrame, merge: Any) -> Counter[str]:
    if not plans:
        return Counter(not_connected=1)
    merged = merge(plans[0])
    if merged is None:
        return Counter(refused=1)
    start = merged.rows[plans[0].start]
    lost = (plans[0].by_id[plans[0].start].rows or 0) - start.nunique()
    contained = any(
        holds_rows(merged.rows, gold, [ids[position] for position in range(len(block.tables))])
        for ids in _mappings(plans[0], block)
    )
    return Counter(contained=contained, lost_unseen=lost != merged.lost, repeated_unseen=not start.is_unique)


def _plan_scores(planned: Sequence[tuple[bool, Sequence[dict[str, bool]]]]) -> dict[str, Any]:
    def shares(chosen: Sequence[Sequence[dict[str, bool]]]) -> dict[str, float]:
        names = {"equal": "equal", "best_two": "best_two", "roles": "held_in_roles"}
        return {
            f"{shown}_percent": percent(sum(all(one[name] for one in each) for each in chosen), len(chosen))
            for name, shown in names.items()
        }

    every = [outcomes for _, outcomes in planned]
    twice = [outcomes for is_twice, outcomes in planned if is_twice]
    return {
        "questions": len(every),
        **shares(every),
        "with_question_percent": None,
        "selects": {"questions": sum(map(len, every)), **shares([[one] for each in every for one in each])},
        "table_twice": {"questions": len(twice), **shares(twice)},
    }


def _merge_scores(merges: Sequence[Sequence[Counter[str]]]) -> dict[str, Any]:
    def count(name: str) -> int:
        return sum(any(one[name] for one in each) for each in merges)

    return {
        "questions": len(merges),
        "contained_percent": percent(sum(all(one["contained"] for one in each) for each in merges), len(merges)),
        **{name: count(name) for name in ("refused", "not_connected", "lost_unseen", "repeated_unseen")},
    }
