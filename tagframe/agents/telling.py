"""Results of the rooms below as the tools tell them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from tagframe.agents.tool_results import Account, CountedJoin, Join, RowsBehind
from tagframe.corpus import ColumnProfile, TableProfile
from tagframe.embed import get_embedder
from tagframe.errors import FileNotAllowed, HiddenColumn, InvalidArgument
from tagframe.joins import JoinPlan, JoinStep
from tagframe.joins.key_text import text_of
from tagframe.merging import MergeReport, Where
from tagframe.merging.run import unprompted_names
from tagframe.merging.where import where_of
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.index_cache import index_of
from tagframe.retrieval.question import Question
from tagframe.retrieval.refine import nearest_columns

_CITED = 5
_SAID = 10


def rounded(chance: float | None) -> float | None:
    """A chance with three digits."""
    return None if chance is None else round(float(chance), 3)


def near_columns(found: RetrievedTables) -> Callable[[str, int], list[str]]:
    """A function of a table that was found and a number, which gives so many of its columns, or some more.

    They are those nearest to the question, keys, those that it is joined by, and those whose cells have words of the
    question.
    """
    index = index_of(found.corpus, get_embedder())
    asked = Question.of(found.question)
    ids = [hit.id for hit in found]
    _, relevance = index.fine([asked.text, *asked.subqueries], [index.position(id) for id in ids])
    joined: dict[str, set[str]] = {id: {column for column, _ in found[id].cells} for id in ids}
    for key in found.joins:
        for table in key.tables & joined.keys():
            joined[table].update(key.columns_of(table))

    def chosen(id: str, most: int) -> list[str]:
        profile = found.corpus.profile(id)
        near = {one.name for one in nearest_columns(profile, relevance[ids.index(id)], most, most * 3 // 4)}
        return [one.name for one in profile.columns if one.name in near | joined[id] and one.for_models]

    return chosen


def left_out(plan: JoinPlan) -> str:
    """What a plan leaves out, in a sentence; "" for nothing."""
    if not plan.left_out:
        return ""
    return f"{', '.join(plan.left_out)}: not joined, as more likely not needed, and rows would only be repeated"


def join_of(step: JoinStep, plan: JoinPlan) -> Join:
    """A step of a plan."""
    key = step.key if step.key.left_table == step.base else step.key.reversed()
    return Join(
        on=text_of(key, plan.named),
        cardinality=step.cardinality,
        chance=round(step.score, 3),
        evidence=step.key.evidence.reason,
    )


def one_line_of(plan: JoinPlan, sql: str) -> str:
    """The statement of a plan without its line breaks, which cost tokens; as it is where they may be of a name."""
    names = [name for source in plan.sources for name in (source.id, source.name, *source.columns)]
    return sql if any("\n" in name for name in names) else re.sub(r"\n *", " ", sql)


def account_of(report: MergeReport, plan: JoinPlan, said: Sequence[str]) -> Account:
    """What a merge does to rows, and what it said of itself."""
    joins = [
        CountedJoin(
            **join_of(step, plan),
            rows_in=counted.rows_in,
            matched=counted.matched,
            unmatched=counted.unmatched_left,
            null_keys=counted.null_keys,
            fan_out=round(counted.fan_out, 3),
            rows_out=counted.rows_out,
            unused_right=counted.unmatched_right,
        )
        for step, counted in zip(plan.steps, report.steps, strict=True)
    ]
    doubts = [*report.preface, *said, *report.doubts]
    return Account(
        start=report.start, start_rows=report.start_rows, joins=joins, lost=report.lost, doubts=doubts[:_SAID]
    )


def visible_columns(plan: JoinPlan, where: Where | None, columns: Sequence[str] | None) -> list[str]:
    """The columns of a merge that an agent may see, and those that it asks for.

    Raises:
        HiddenColumn: it asks for one that is hidden from models, or tests it: rows would tell of its cells.
        InvalidArgument: a test is another expression than comparisons of columns with values.
        ColumnNotFound: it names no column of the plan.
    """
    names = plan.column_names()
    hidden = unprompted_names(plan, names)
    by_name = {name: key for key, name in reversed(names.items())}
    test = where_of(where, plan, by_name)
    if not test.is_said:
        raise InvalidArgument(
            "where= compares columns with values, as \"amount > 100 and city == 'Brno'\" or {'city': 'Brno'}, with "
            f"==, <, <=, >, >=, in [...], and, or; got {where!r:.200}. run_sql takes any condition"
        )
    asked = [plan.find_column(name) for name in columns or ()]
    for key in [*asked, *test.columns(())]:
        if names[key] in hidden:
            raise HiddenColumn(f"column {'.'.join(key)} is hidden: tables may join on it, and no result tells of it")
    return list(dict.fromkeys(names[key] for key in (asked if columns else names) if names[key] not in hidden))


def open_column(profile: TableProfile, name: str) -> ColumnProfile:
    """The profile of a column that may be seen, its name in any case.

    Raises:
        ColumnNotFound: no such column.
        HiddenColumn: it is hidden.
    """
    folded = [column for column in profile.columns if column.name.casefold() == name.casefold()]
    column = folded[0] if len(folded) == 1 else profile.column(name)
    if not column.for_models:
        raise HiddenColumn(f"column {profile.id}.{column.name} is hidden: nothing tells of its cells")
    return column


def rows_behind(sources: pd.DataFrame) -> list[RowsBehind]:
    """The rows that a result was made of: how many of each table, and the first keys."""
    told = []
    for table, group in sources.groupby("table", sort=False):
        values = group["value"].dropna().astype(str).str.slice(0, 100).drop_duplicates()
        key = group["key"].dropna()
        told.append(
            RowsBehind(
                table=str(table),
                key=str(key.iloc[0]) if len(key) else None,
                rows=len(values) if len(values) else None,
                values=values.head(_CITED).tolist(),
            )
        )
    return told


def note_of(start: int, shown: int, rows: int, is_cut: bool) -> str:
    """What there is to say of a page of rows."""
    part = f"rows {start + 1:,} to {start + shown:,} of {rows:,}" if shown < rows else ""
    cut = "long cells are cut: select a part of one, as substr(column, 1, 500)" if is_cut else ""
    return "; ".join(filter(None, [part, cut]))


def write_new(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame to a Parquet file that is not there yet.

    Raises:
        FileNotAllowed: there is a file, or a link, of that name: nothing is replaced, as it may be a source; or no file
            of that name can be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        raise FileNotAllowed(f"there is a file {path.name} already, and none is replaced: take another name") from None
    except OSError as error:  # its own text has the folder's path, which is not the caller's to know
        raise FileNotAllowed(
            f"no file {path.name!r:.100} can be written: {error.strerror}; take another name"
        ) from None
    try:
        with open(descriptor, "wb") as file:
            frame.to_parquet(file, index=False)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
