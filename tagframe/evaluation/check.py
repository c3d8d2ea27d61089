"""``tagframe check``: compare tables and keys with a baseline, for a job that runs every night."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tagframe.corpus import ColumnProfile, Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.references import JoinColumns, in_role
from tagframe.errors import InvalidArgument, JoinError, counted
from tagframe.joins import plan_tables
from tagframe.keys import KeyPair
from tagframe.merging import run_plan

MAX_CHANGE = 0.1
"""The largest accepted change of a share: of nulls, of distinct values, of rows, and of rows with a partner."""


@dataclass(frozen=True)
class Check:
    """The result of :func:`check`.

    Attributes:
        findings: the changes, a sentence each.
        tables, keys: the number of tables and keys that were compared.
        is_first: whether there was no baseline, so that only keys were checked.
    """

    findings: tuple[str, ...]
    tables: int
    keys: int
    is_first: bool

    def to_dict(self) -> dict[str, Any]:
        """As ``tagframe check --json`` prints it."""
        return asdict(self)

    def __repr__(self) -> str:
        heading = f"{counted(self.tables, 'table')} and {counted(self.keys, 'declared or learned key')}: "
        if self.is_first:
            heading += "baseline written; "
        heading += "these have changed:" if self.findings else "no changes"
        return "\n".join([heading, *(f"  {finding}" for finding in self.findings)])


def check(corpus: Corpus, baseline: str | Path, *, bound: float = MAX_CHANGE, accept: bool = False) -> Check:
    """Compare the tables and keys of a corpus with a baseline.

    A key is checked if it was declared (``corpus.keys.add``) or learned; inferred keys are not. It holds if at least
    one row finds its partner, the share of rows with a partner has not fallen by more than ``bound``, and the key does
    not begin to repeat rows.

    Args:
        corpus: as it is now.
        baseline: a JSON file without cells; it is created if it does not exist.
        bound: the largest accepted change of a share, in [0, 1]; row counts may fall or grow by that share.
        accept: replace the baseline.

    Raises:
        InvalidArgument: the file is not a baseline, or ``bound`` is not in [0, 1].
        OSError: the file cannot be read or written.
    """
    if not 0 <= bound <= 1:
        raise InvalidArgument(f"bound must be a share from 0 to 1; got {bound!r}")
    path = Path(baseline)
    keys = _keys_to_check(corpus)
    is_first = accept or not path.exists()
    now = {
        "tables": {profile.id: _shape(profile.rows, profile.columns) for profile in corpus.profiles},
        "keys": {str(key): _match_of(corpus, key) for key in keys},
    }
    then = now if is_first else _read(path)
    findings = [*_changes(then["tables"], now["tables"], bound), *_broken(then["keys"], now["keys"], bound)]
    if is_first:
        path.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return Check(tuple(findings), len(corpus), len(keys), is_first)


def _keys_to_check(corpus: Corpus) -> list[JoinColumns]:
    """The keys that a user declared or that statements used, once each, also of tables that are gone."""
    known = fact_store(corpus).facts
    return list({key.sides: key for key in (*known.ran, *known.keys)}.values())


def _shape(rows: int | None, columns: tuple[ColumnProfile, ...]) -> dict[str, Any]:
    def shares(column: ColumnProfile) -> dict[str, Any]:
        filled = (column.rows or 0) - (column.nulls or 0)
        distinct = column.distinct / filled if column.distinct is not None and filled else None
        return {"type": column.family, "null": column.null_share, "distinct": distinct}

    return {"rows": rows, "columns": {column.name: shares(column) for column in columns}}


def _match_of(corpus: Corpus, key: JoinColumns) -> dict[str, float | str]:
    """The share of rows with a key that find their partner, and how often a row is repeated; or the problem."""
    for table, columns in ((key.left_table, key.left_columns), (key.right_table, key.right_columns)):
        if table not in corpus:
            return {"problem": f"{table} is gone"}
        for column in columns:
            if all(one.name != column for one in corpus.profile(table).columns):
                return {"problem": f"{table}.{column} is gone"}
    # A table that references itself is joined in a role.
    is_own = key.left_table == key.right_table
    other = in_role(key.right_table, "partner") if is_own else key.right_table
    pair = KeyPair(key.left_table, key.left_columns, other, key.right_columns)
    ends = [key.left_table, *([] if is_own else [key.right_table])]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = plan_tables(corpus, ends, anchor=ends[0], given=[pair], stack_unions=False)
            _, report = run_plan(plan, corpus, how="left", on_fanout="allow", on_loss="allow", on_ambiguous="allow",
                                 columns=[])  # fmt: skip
    except JoinError as error:
        return {"problem": str(error).splitlines()[0]}
    (step,) = report.steps
    keyed = step.rows_in - step.null_keys
    return {"matched": step.matched / keyed if keyed else 1.0, "fan_out": step.fan_out}


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        tables = {
            id: {
                "rows": table["rows"],
                "columns": {
                    name: {what: column[what] for what in ("type", "null", "distinct")}
                    for name, column in table["columns"].items()
                },
            }
            for id, table in read["tables"].items()
        }
        return {"tables": tables, "keys": {key: dict(match) for key, match in read["keys"].items()}}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgument(f"{path} was not written by `tagframe check`: {error!r}") from error


def _changes(then: Mapping[str, Any], now: Mapping[str, Any], bound: float) -> list[str]:
    changes = []
    for table, old in then.items():
        if table not in now:
            changes.append(f"table {table} is gone")
            continue
        rows, before = now[table]["rows"], old["rows"]
        if rows is not None and before is not None and abs(rows - before) > bound * before:
            changes.append(f"{table} has {rows:,} rows; before, {before:,}")
        for column, was in old["columns"].items():
            column_now = now[table]["columns"].get(column)
            if column_now is None:
                changes.append(f"column {table}.{column} is gone")
                continue
            if column_now["type"] != was["type"]:
                changes.append(f"{table}.{column} holds {column_now['type']} values; before, {was['type']} values")
            for share, called in (("null", "empty"), ("distinct", "distinct")):
                if None not in (column_now[share], was[share]) and abs(column_now[share] - was[share]) > bound:
                    changes.append(
                        f"{column_now[share]:.0%} of {table}.{column} are {called}; before, {was[share]:.0%}"
                    )
    return changes


def _broken(then: Mapping[str, Any], now: Mapping[str, Any], bound: float) -> list[str]:
    changes = []
    for key, match in now.items():
        was = then.get(key, match)
        if "problem" in match:
            changes.append(f"the key {key} does not hold: {match['problem']}")
        elif match["matched"] == 0 or match["matched"] < was.get("matched", 0) - bound:
            before = f"; before, {was['matched']:.0%}" if was is not match and "matched" in was else ""
            changes.append(f"{match['matched']:.0%} of the rows have a partner by the key {key}{before}")
        elif match["fan_out"] > 1 >= was.get("fan_out", match["fan_out"]):
            changes.append(f"the key {key} repeats rows: one becomes {match['fan_out']:.2f} on average; before, 1")
    return changes
