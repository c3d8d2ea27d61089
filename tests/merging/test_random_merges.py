"""Random merges, counted by hand: every number of every report and what is warned of, in every engine and way."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest

import tagframe as tf
from tagframe.errors import DoubtfulJoinWarning, RowsLostWarning, WayNotPossible
from tagframe.joins import JoinPlan, JoinStep, PlanTable
from tagframe.keys import KeyPair
from tagframe.keys.key_pair import Evidence
from tagframe.merging import MergeReport, run_plan
from tests.draws import DRAWS
from tests.joins import places as places_of

pytest.importorskip("duckdb")
Row = dict[str, Any]
Joined = dict[str, Row | None]
TEXTS = ["ab", "cd", "ef", "gh", "ij"]
PLACES = ("frames", "sqlite", "duckdb", "postgres", "mixed")


class Case:
    """Some tables, how they are joined, and what is asked."""

    def __init__(self, seed: int) -> None:
        self.random = pick = random.Random(seed)
        self.seed = seed
        names = [f"t{number}" for number in range(pick.randint(2, 4))]
        self.edges = [(names[pick.randrange(place)], name, f"k{place}") for place, name in enumerate(names) if place]
        self.texts = {key: pick.random() < 0.4 for _, _, key in self.edges}
        self.tables: dict[str, pd.DataFrame] = {}
        for name in names:
            keys = [key for base, table, key in self.edges if name in (base, table)]
            unique = next((key for _, table, key in self.edges if table == name), None)
            self.tables[name] = self.made(name, keys, unique if pick.random() < 0.7 else None)
        self.options: dict[str, Any] = {
            "how": pick.choice(["inner", "inner", "left", "outer"]),
            "limit": pick.choice([None, None, 0, 1, 3, 20]),
            "on_fanout": "allow",
        }
        self.where = self.asked() if pick.random() < 0.6 else {}
        if pick.random() < 0.3:
            self.options["columns"] = [f"{name}.v" for name in names[:2]]

    def made(self, name: str, keys: list[str], unique: str | None) -> pd.DataFrame:
        pick, rows = self.random, []
        seen: set[Any] = set()
        for number in range(pick.randint(0, 9)):
            row: Row = {"id": number}
            for key in keys:
                row[key] = (
                    None if pick.random() < 0.15 else pick.choice(TEXTS) if self.texts[key] else pick.randrange(6)
                )
            if unique is not None and row[unique] in seen:
                continue
            seen.add(row[unique] if unique is not None else None)
            rows.append({**row, "v": pick.choice([None, 0, 1, 2]), "s": pick.choice([None, "x", "y"])})
        frame = pd.DataFrame(rows, columns=["id", *keys, "v", "s"])
        kinds = {key: "str" if self.texts[key] else "Int64" for key in keys}
        return frame.astype({"id": "int64", **kinds, "v": "Int64", "s": "str"})

    def asked(self) -> Row:
        pick, found = self.random, {}
        for name in self.tables:
            if pick.random() < 0.4:
                found[f"{name}.v"] = pick.choice([0, 1, None, [0, 2], [1, None], []])
            if pick.random() < 0.3:
                found[f"{name}.s"] = pick.choice(["x", None, ["x", "y"], "z"])
        return found

    def plan(self, database: dict[str, str]) -> JoinPlan:
        sources, steps = [], []
        for name, frame in self.tables.items():
            sources.append(PlanTable(f"{database[name]}.{name}", database[name], name, tuple(frame), len(frame)))
        for base, table, key in self.edges:
            ids = f"{database[base]}.{base}", f"{database[table]}.{table}"
            pair = KeyPair(ids[0], (key,), ids[1], (key,), 1.0, Evidence(origin="given"))
            steps.append(JoinStep(ids[1], (key,), ids[0], (key,), "many-to-one", pair))
        return JoinPlan(sources[0].id, tuple(steps), tuple(sources))

    # --- by hand --------------------------------------------------------------------------------------------------

    def counted(self) -> dict[str, Any]:
        """What the report has to say."""
        tables = {name: [self.plain(row) for row in frame.to_dict("records")] for name, frame in self.tables.items()}
        start, how = next(iter(tables)), self.options["how"]
        rows: list[Joined] = [{start: row} for row in tables[start]]
        steps = []
        for base, table, key in self.edges:
            new: list[Joined] = []
            used: set[int] = set()
            matched = nulls = 0
            for row in rows:
                mine = (row[base] or {}).get(key)
                partners = [] if mine is None else [one for one in tables[table] if one[key] == mine]
                nulls += mine is None
                matched += bool(partners)
                used.update(one["id"] for one in partners)
                new += [{**row, table: one} for one in partners]
                if not partners and how != "inner":
                    new.append({**row, table: None})
            unused = [one for one in tables[table] if one["id"] not in used]
            if how == "outer":
                new += [{**dict.fromkeys(rows[0] if rows else self.before(table)), table: one} for one in unused]
            steps.append((len(rows), len(new), matched, len(rows) - matched, len(unused), nulls))
            rows = new
        present = {row[start]["id"] for row in rows if row[start] is not None}  # type: ignore[index]
        kept = [row for row in rows if all(self.fits(row, name, value) for name, value in self.where.items())]
        limit = self.options["limit"]
        return {
            "start_rows": len(tables[start]),
            "lost": len(tables[start]) - len(present),
            "filtered": len(rows) - len(kept),
            "rows": len(kept) if limit is None else min(limit, len(kept)),
            "steps": steps,
        }

    def said(self, counted: dict[str, Any]) -> set[type[Warning]]:
        """What a merge that is counted so has to warn of."""
        if self.options["how"] == "inner":
            return {RowsLostWarning} if counted["lost"] else set()
        alone = [not matched and rows > nulls and unused for rows, _, matched, _, unused, nulls in counted["steps"]]
        return {DoubtfulJoinWarning} if any(alone) else set()

    def before(self, table: str) -> list[str]:
        return list(self.tables)[: list(self.tables).index(table)]

    @staticmethod
    def plain(row: Row) -> Row:
        return {name: None if pd.isna(value) else value for name, value in row.items()}

    @staticmethod
    def fits(row: Joined, name: str, value: Any) -> bool:
        table, _, column = name.partition(".")
        mine = (row[table] or {}).get(column)
        return mine in value if isinstance(value, list) else mine == value


def told(report: MergeReport) -> dict[str, Any]:
    steps = [(one.rows_in, one.rows_out, one.matched, one.unmatched_left, one.unmatched_right, one.null_keys)
             for one in report.steps]  # fmt: skip
    return {"start_rows": report.start_rows, "lost": report.lost, "filtered": report.filtered, "rows": report.rows,
            "steps": steps}  # fmt: skip


class Places:
    """Where the tables of a case are put."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url

    def opened(self, case: Case) -> dict[str, tuple[tf.Corpus, dict[str, str]]]:
        folder, schema, names = self.folder / f"c{case.seed}", f"c{case.seed}", list(case.tables)
        found = {
            "frames": (tf.open_corpus({f"frames.{n}": f for n, f in case.tables.items()}), "frames"),
            "sqlite": (places_of.sqlite(case.tables, folder / "file"), "s"),
            "duckdb": (places_of.lake(case.tables, folder / "lake"), "lake"),
            "postgres": (places_of.postgres(self.url, case.tables, analysed=False, schema=schema), schema),
        }
        homes = {name: case.random.choice([home for _, home in found.values()]) for name in names}
        parts = [
            corpus.subset([f"{home}.{name}"])
            for name in names
            for corpus, home in found.values()
            if home == homes[name]
        ]
        mixed = parts[0]
        for part in parts[1:]:
            mixed = mixed.union(part)
        whole = {place: (corpus, dict.fromkeys(names, home)) for place, (corpus, home) in found.items()}
        return {**whole, "mixed": (mixed, homes)}


@pytest.fixture(scope="module")
def places(postgres, tmp_path_factory) -> Places:
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS drawn WITH (FORCE)")
        owner.execute("CREATE DATABASE drawn")
    return Places(tmp_path_factory.mktemp("drawn"), postgres.url("drawn"))


def check(seed: int, places: Places) -> Counter[str]:
    """A case in all places and ways; how often each ran."""
    case, ran = Case(seed), Counter[str]()
    expected = case.counted()
    for place, (corpus, homes) in places.opened(case).items():
        plan = case.plan(homes)
        where = {f"{homes[name.partition('.')[0]]}.{name}": value for name, value in case.where.items()}
        options = {**case.options, "where": where or None}
        if "columns" in options:
            options["columns"] = [f"{homes[name.partition('.')[0]]}.{name}" for name in options["columns"]]
        rows: dict[str, list[Any]] = {}
        for by in (None, "memory", "engine", "across"):
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    frame, report = run_plan(plan, corpus, by=by, **options)
            except WayNotPossible:
                continue
            assert told(report) == expected, (seed, place, by, options)
            said = {one.category for one in caught if "partner" in str(one.message)}
            assert said == case.said(expected), (seed, place, by, options)
            assert len(frame) == expected["rows"], (seed, place, by, options)
            plain = frame.astype(object).where(frame.notna(), None)
            rows[str(by)] = [tuple(row) for row in plain.itertuples(index=False)]
            ran[f"{place} {by or 'best'} {report.engine.split(' + ')[0] if by is None else ''}".strip()] += 1
        # A server's rows come in its own order, and of a limit its own choice.
        if corpus.engine(plan.start).kind == "postgres":
            rows = {} if options["limit"] is not None else {by: sorted(found, key=repr) for by, found in rows.items()}
        assert len({repr(found) for found in rows.values()}) <= 1, (seed, place, options, rows)
    return ran


@pytest.mark.slow
@pytest.mark.pandas2
def test_some_random_merges_are_counted_by_hand(places):
    ran = sum((check(seed, places) for seed in range(12)), Counter[str]())
    assert {"frames memory", "sqlite engine", "sqlite across", "duckdb engine", "postgres engine", "mixed across"} <= {
        *ran
    }


@pytest.mark.slow
def test_many_random_merges_are_counted_by_hand(places):
    ran = sum((check(seed, places) for seed in range(100, 100 + 40 * DRAWS)), Counter[str]())
    assert min(ran[f"{place} {by}"] for place in ("sqlite", "duckdb", "postgres") for by in ("engine", "across")) > 3
