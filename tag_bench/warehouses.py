"""Keys of whole warehouses: a folder of Parquet files with ``FOLDER_keys.json`` beside it.

The keys are pairs of ``table.column``. ``FOLDER_queries.json``, if it exists, has statements in DuckDB's dialect.
Nothing is declared in the data.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import click
import pandas as pd

from tag_bench.databases import links_of, percent
from tag_bench.gold_joins import GoldJoins, JoinBlock, gold_joins
from tag_bench.merged_rows import ROW, holds_rows, merged_rows
from tagframe.corpus import Corpus, open_corpus
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.errors import NotConnected
from tagframe.joins import JoinPlan
from tagframe.joins.infer import plan_tables
from tagframe.joins.roles import Roles
from tagframe.joins.steps import PlanTable
from tagframe.keys import KeyPair, infer_key_pairs
from tagframe.keys.components import Components
from tagframe.keys.inference import ACCEPTED

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
            f"{label}_percent": percent(sum(all(one[name] for one in each) for each in chosen), len(chosen))
            for name, label in names.items()
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


Link = frozenset[str]
"""Both columns as ``table.column`` in lower case, without a direction."""


def beside(folder: Path, part: str) -> Path:
    """The file of a warehouse's keys or queries."""
    return folder.parent / f"{folder.name}_{part}.json"


def warehouse(folder: Path, *, own_names: bool) -> dict[str, Any]:
    """Keys of a folder of Parquet files with rows, unless ``own_names`` leaves them out, and without."""
    corpus = open_corpus(folder)
    tables = [replace(table, primary_key=(), foreign_keys=()) for table in corpus.profiles]
    gold = read_keys(beside(folder, "keys"))
    bare = infer_key_pairs([_names_only(table) for table in tables], declared=False)
    every = [] if own_names else infer_key_pairs(tables, declared=False, read=corpus.read, min_score=0.0)
    found = bare if own_names else [key for key in every if key.score >= ACCEPTED]
    queries = beside(folder, "queries")
    gold_of = read_statements(queries, tables) if queries.is_file() else []
    of_statements = {"plans": None, "merge": None}
    if gold_of and not own_names:
        of_statements = statement_plans(folder, gold_of, corpus, every)
    return {
        "dataset": folder.name,
        "tables": len(tables),
        "columns": sum(len(table.columns) for table in tables),
        "keys": None if own_names else scores(found, gold),
        "keys_without_rows": scores(bare, gold),
        "statements": statements(gold_of, found) if gold_of else None,
        **of_statements,
    }


def read_keys(file: Path) -> set[Link]:
    """The single keys of a file.

    Raises:
        click.ClickException: an entry is no pair of columns.
    """
    found = set()
    for entry in json.loads(file.read_text(encoding="utf-8")):
        if not isinstance(entry, list) or len(entry) != 2:
            raise click.ClickException(f"{file} has {entry!r}; a key is a pair like ['orders.customer', 'customer.id']")
        if all(isinstance(side, str) for side in entry):
            found.add(frozenset(side.lower() for side in entry))
    return found


def scores(keys: Sequence[KeyPair], gold: set[Link]) -> dict[str, Any]:
    """Precision, recall and F1 of single keys in percent, and the differences."""
    found = {link for key in keys if len(key.left_columns) == 1 for link in _parts(key)}
    right = len(found & gold)
    precision, recall = percent(right, len(found)), percent(right, len(gold))
    return {
        "precision": precision,
        "recall": recall,
        "f1": round(2 * precision * recall / (precision + recall), 3) if right else 0.0,
        "gold": len(gold),
        "wrong": _texts_of(found - gold),
        "missed": _texts_of(gold - found),
    }


def read_statements(file: Path, tables: Sequence[TableProfile]) -> list[GoldJoins]:
    """The joins of each statement of a file."""
    schema = {table.name.lower(): tuple(column.name.lower() for column in table.columns) for table in tables}
    queries = json.loads(file.read_text(encoding="utf-8"))
    return [gold_joins(query["sql"], schema, dialect="duckdb") for query in queries]


def statements(every: Sequence[GoldJoins], keys: Sequence[KeyPair]) -> dict[str, Any]:
    """How many of the distinct joins of the statements are among the keys, or follow from two keys to one column."""
    links = {link for key in keys for link in _parts(key)}
    joins = {
        frozenset(".".join(side) for side in pair)
        for gold in every
        for pair in gold.pairs
        if len({t for t, _ in pair}) == 2
    }
    parents: dict[str, set[str]] = {}
    for link in links:
        for side in link:
            parents.setdefault(side, {side}).update(link)
    among = {join for join in joins if join in links or len(set.intersection(*(parents.get(s, {s}) for s in join)))}
    return {
        "count": len(every),
        "joins": len(joins),
        "among_keys": len(among),
        "tables_twice": sum(gold.twice for gold in every),
        "missed": _texts_of(joins - among),
    }


def _parts(key: KeyPair) -> list[Link]:
    """The pairs of columns of a key, without the database."""
    return [frozenset(side.partition(".")[2] for side in link) for link in links_of(key)]


def _texts_of(links: Iterable[Link]) -> list[str]:
    return sorted(" = ".join(sorted(link)) for link in links)


def _names_only(table: TableProfile) -> TableProfile:
    columns = tuple(ColumnProfile(column.name, column.position, column.family) for column in table.columns)
    return TableProfile(table.id, table.database, table.name, columns)
