"""One merge in every engine and in every way, beside the same merge made by hand, row by row."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

import tagframe as tf
from tagframe.errors import DoubtfulJoinWarning, RowsLostWarning, WayNotPossible
from tagframe.joins import JoinPlan, JoinStep, PlanTable
from tagframe.keys import KeyPair
from tagframe.keys.key_pair import Evidence
from tagframe.merging import MergeReport, run_plan
from tests import opened_in

Row = dict[str, Any]
Joined = dict[str, Row | None]
Edge = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""A table that is there, the one that is joined to it, and the key columns of both."""
SOURCES = ("frames", "sqlite", "duckdb", "postgres", "mixed")
WAYS = (None, "memory", "engine", "across")


@dataclass(frozen=True)
class Case:
    """Tables, how they are joined, and what is asked.

    Attributes:
        tables: by name; the first column of each numbers its rows.
        edges: in the order of the steps; the first one's table that is there is the start.
        where: as ``run_plan`` has it, columns named ``table.column``.
        fits: the same of the cells of a row, by ``table.column``; needed where ``where`` holds more than values.
        options: others of ``run_plan``.
    """

    tables: Mapping[str, pd.DataFrame]
    edges: Sequence[Edge]
    where: Any = None
    fits: Callable[[Callable[[str], Any]], bool] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([self.edges[0][0], *(table for _, table, _, _ in self.edges)]))

    @property
    def how(self) -> str:
        return str(self.options.get("how", "inner"))

    def plan(self, homes: Mapping[str, str]) -> JoinPlan:
        sources = []
        for name in self.names:
            columns, rows = tuple(self.tables[name]), len(self.tables[name])
            sources.append(PlanTable(f"{homes[name]}.{name}", homes[name], name, columns, rows))
        steps = []
        for base, table, mine, theirs in self.edges:
            ids = f"{homes[base]}.{base}", f"{homes[table]}.{table}"
            pair = KeyPair(ids[0], mine, ids[1], theirs, 1.0, Evidence(origin="given"))
            steps.append(JoinStep(ids[1], theirs, ids[0], mine, "many-to-one", pair))
        return JoinPlan(sources[0].id, tuple(steps), tuple(sources))

    # --- which ways there are -------------------------------------------------------------------------------------

    def runs(self, homes: Mapping[str, str], by: str | None) -> bool:
        """Whether a merge of tables in these engines takes the way."""
        if by in (None, "memory"):
            return True
        if {*homes.values()} == {"frames"}:
            return False
        said = not isinstance(self.where, dict) or not any(map(callable, self.where.values()))
        if by == "engine":
            return len({*homes.values()}) == 1 and said and "!=" not in str(self.where)
        return self.how != "outer" and not isinstance(self.where, str) and not any(map(self.repeats, self.edges))

    def repeats(self, edge: Edge) -> bool:
        """Whether a key of the table that a step brings in repeats."""
        return bool(self.tables[edge[1]][list(edge[3])].dropna().duplicated().any())

    # --- by hand --------------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        cells = {name: self.tables[name].astype(object).to_dict("records") for name in self.names}
        return {name: [{column: plain(cell) for column, cell in row.items()} for row in rows]
                for name, rows in cells.items()}  # fmt: skip

    @cached_property
    def joined(self) -> tuple[list[Joined], list[tuple[int, ...]]]:
        """The joined rows, and of each step: rows in, out, matched, alone on either side, and those of a null key."""
        start = self.names[0]
        rows: list[Joined] = [{start: row} for row in self.rows[start]]
        steps = []
        for base, table, mine, theirs in self.edges:
            others = [(tuple(one[column] for column in theirs), one) for one in self.rows[table]]
            new: list[Joined] = []
            used: list[Row] = []
            matched = nulls = 0
            for row in rows:
                key = tuple((row[base] or {}).get(column) for column in mine)
                partners = [] if None in key else [one for other, one in others if other == key]
                nulls += None in key
                matched += bool(partners)
                used += partners
                new += [{**row, table: one} for one in partners]
                if not partners and self.how != "inner":
                    new.append({**row, table: None})
            unused = [one for one in self.rows[table] if not any(one is other for other in used)]
            if self.how == "outer":
                before = self.names[: self.names.index(table)]
                new += [{**dict.fromkeys(before), table: one} for one in unused]
            steps.append((len(rows), len(new), matched, len(rows) - matched, len(unused), nulls))
            rows = new
        return rows, steps

    @cached_property
    def same(self) -> dict[str, list[tuple[str, str]]]:
        """By ``table.column``: it, and of an outer join the columns equal to it, in the order of the tables."""
        classes = {(name, column): {(name, column)} for name in self.names for column in self.tables[name]}
        for base, table, mine, theirs in self.edges if self.how == "outer" else ():
            for one, two in zip(mine, theirs, strict=True):
                together = classes[base, one] | classes[table, two]
                classes.update(dict.fromkeys(together, together))
        return {".".join(key): sorted(same, key=lambda one: self.names.index(one[0])) for key, same in classes.items()}

    def cell(self, row: Joined, name: str) -> Any:
        """The cell of ``table.column``, from whichever of the columns that are the same has it."""
        found = ((row.get(table) or {}).get(column) for table, column in self.same[name])
        return next((cell for cell in found if cell is not None), None)

    @cached_property
    def kept(self) -> list[Joined]:
        def holds(row: Joined) -> bool:
            if self.fits is not None:
                return self.fits(lambda name: self.cell(row, name))
            asked = [(self.cell(row, name), value) for name, value in (self.where or {}).items()]
            return all(mine in map(plain, value) if isinstance(value, list) else mine == plain(value)
                       for mine, value in asked)  # fmt: skip

        return [row for row in self.joined[0] if holds(row)]

    def counted(self) -> dict[str, Any]:
        """What the report has to say."""
        rows, steps = self.joined
        start, limit = self.names[0], self.options.get("limit")
        present = {id(row[start]) for row in rows if row[start] is not None}
        return {
            "start_rows": len(self.rows[start]),
            "lost": len(self.rows[start]) - len(present),
            "filtered": len(rows) - len(self.kept),
            "rows": len(self.kept) if limit is None else min(limit, len(self.kept)),
            "steps": steps,
        }

    def said(self) -> set[type[Warning]]:
        """What a merge that is counted so has to warn of."""
        counted = self.counted()
        if self.how == "inner":
            return {RowsLostWarning} if counted["lost"] else set()
        alone = [not matched and rows > nulls and unused for rows, _, matched, _, unused, nulls in counted["steps"]]
        return {DoubtfulJoinWarning} if any(alone) else set()


def plain(cell: Any) -> Any:
    """A cell as every source has it: SQLite knows neither booleans nor moments."""
    if not pd.api.types.is_scalar(cell) or pd.isna(cell):
        return None
    return str(cell) if hasattr(cell, "year") or isinstance(cell, str) else float(cell)


def told(report: MergeReport) -> dict[str, Any]:
    """What a report counts."""
    steps = [(one.rows_in, one.rows_out, one.matched, one.unmatched_left, one.unmatched_right, one.null_keys)
             for one in report.steps]  # fmt: skip
    return {"start_rows": report.start_rows, "lost": report.lost, "filtered": report.filtered, "rows": report.rows,
            "steps": steps}  # fmt: skip


Opened = dict[str, tuple[tf.Corpus, str]]


def opened(tables: dict[str, pd.DataFrame], folder: Path, url: str, schema: str, **types: str) -> Opened:
    """The tables in every engine, and what their database is called there; ``types`` are PostgreSQL's of a table."""
    return {
        "frames": (tf.open_corpus({f"frames.{n}": f for n, f in tables.items()}), "frames"),
        "sqlite": (opened_in.sqlite(tables, folder / "file"), "s"),
        "duckdb": (opened_in.lake(tables, folder / "lake"), "lake"),
        "postgres": (opened_in.postgres(url, tables, analysed=False, schema=schema, types=types), schema),
    }


def corpus_in(there: Opened, source: str, homes: Mapping[str, str]) -> tuple[tf.Corpus, dict[str, str]]:
    """The corpus of a source and the database of each table there; of "mixed" tables are where ``homes`` says."""
    if source != "mixed":
        return there[source][0], dict.fromkeys(homes, there[source][1])
    databases = {name: there[home][1] for name, home in homes.items()}
    parts = [there[home][0].subset([f"{there[home][1]}.{name}"]) for name, home in homes.items()]
    corpus = parts[0]
    for part in parts[1:]:
        corpus = corpus.union(part)
    return corpus, databases


def asked_of(case: Case, databases: Mapping[str, str]) -> dict[str, Any]:
    """What ``run_plan`` is asked for tables of these databases."""
    found = dict(case.options)
    if isinstance(case.where, str):
        found["where"] = case.where
    elif case.where:
        found["where"] = {f"{databases[name.partition('.')[0]]}.{name}": value for name, value in case.where.items()}
    if "columns" in found:
        found["columns"] = [f"{databases[name.partition('.')[0]]}.{name}" for name in found["columns"]]
    return found


def check(case: Case, there: Opened, homes: Mapping[str, str]) -> Counter[str]:
    """The case in all sources and ways; how often each ran."""
    ran: Counter[str] = Counter()
    expected = case.counted()
    for source in SOURCES:
        corpus, databases = corpus_in(there, source, homes)
        plan, options = case.plan(databases), {"on_fanout": "allow", **asked_of(case, databases)}
        columns = plan.named_columns(options.get("columns")).values()
        wanted = [f"{plan.source(table).name}.{column}" for table, column in columns]
        rows = [tuple(case.cell(row, name) for name in wanted) for row in case.kept]
        dtypes: dict[str, Any] = {}
        for by in WAYS:
            label = (source, by, case.edges, options)
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    frame, report = run_plan(plan, corpus, by=by, **options)  # type: ignore[arg-type]
            except WayNotPossible:
                if case.runs(homes if source == "mixed" else dict.fromkeys(homes, source), by):
                    raise
                continue
            assert {one.category for one in caught if "partner" in str(one.message)} == case.said(), label
            assert told(report) == expected, label
            mine = [tuple(map(plain, row)) for row in frame.astype(object).itertuples(index=False)]
            if corpus.engine(plan.start).kind != "postgres":  # type: ignore[union-attr]
                assert mine == rows[: expected["rows"]], label
            else:  # whose rows come in its own order, and of a limit by its own choice
                assert not Counter(mine) - Counter(rows), label
            assert len(mine) == expected["rows"], label
            # What an engine joins is of a nullable type only where a null is among the rows that come.
            dtypes[str(by)] = [str(dtype).lower() for dtype in frame.dtypes]
            ran[f"{source} {by or 'best'} {report.engine.split(' + ')[0] if by is None else ''}".strip()] += 1
        if "where" not in options and "limit" not in options and source != "mixed":
            assert dtypes.get("engine", dtypes["memory"]) == dtypes["memory"], (source, case.edges, options, dtypes)
    return ran
