"""The same tables in every kind of source that tagframe opens, and the plan and the merge of everyone."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import JoinError, MissingExtra, NotConnected
from tagframe.joins import JoinPlan
from tagframe.joins.stacks import ORIGIN
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.retrieved import TableHit

Frames = dict[str, pd.DataFrame]


def sqlite(frames: Frames, folder: Path) -> tf.Corpus:
    """In one file."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "s.sqlite")) as file:
        for name, frame in frames.items():
            frame.to_sql(name, file, index=False)
    return tf.open_corpus(folder / "s.sqlite", progress=False)


def sqlalchemy(frames: Frames, folder: Path) -> tf.Corpus:
    """In one file, which is opened as a server's database is."""
    sqlite(frames, folder)
    return tf.open_corpus(f"sqlite:///{folder / 's.sqlite'}", progress=False)


def csv(frames: Frames, folder: Path) -> tf.Corpus:
    """A file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return tf.open_corpus(folder, progress=False)


def parquet(frames: Frames, folder: Path) -> tf.Corpus:
    """A file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    return tf.open_corpus(folder, progress=False)


def mixed(frames: Frames, folder: Path) -> tf.Corpus:
    """In two sources, in turn."""
    names = [*frames]
    first = sqlite({name: frames[name] for name in names[::2]}, folder / "first")
    rest = parquet({name: frames[name] for name in names[1::2]}, folder / "rest")
    return first.union(rest)


def lake(frames: Frames, folder: Path, *, parts: int = 1) -> tf.Corpus:
    """Parquet files that DuckDB joins where they are; the first table in so many."""
    folder.mkdir(parents=True, exist_ok=True)
    for position, (name, frame) in enumerate(frames.items()):
        if position or parts == 1:
            frame.to_parquet(folder / f"{name}.parquet", index=False)
            continue
        (folder / name).mkdir()
        size = -(-len(frame) // parts)
        for part in range(parts):
            frame.iloc[part * size :][:size].to_parquet(folder / name / f"part-{part}.parquet", index=False)
    return tf.open_corpus(folder, engine="duckdb", progress=False)


def postgres(
    url: str, frames: Frames, *, analysed: bool, schema: str = "public", types: Mapping[str, str] | None = None
) -> tf.Corpus:
    """On a server, with its statistics or without; ``types`` are what stands in CREATE TABLE, by table."""
    import psycopg

    kinds = {"i": "bigint", "f": "double precision", "b": "boolean"}
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        for name, frame in frames.items():
            columns = ", ".join(f'"{column}" {kinds.get(frame[column].dtype.kind, "text")}' for column in frame)
            owner.execute(f'CREATE TABLE "{schema}"."{name}" ({(types or {}).get(name, columns)})')
            with owner.cursor() as cursor, cursor.copy(f'COPY "{schema}"."{name}" FROM STDIN') as copy:
                for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
                    copy.write_row(row)
        if analysed:
            owner.execute("ANALYZE")
    return tf.open_corpus(url, schemas=[schema], progress=False)


OPENED: dict[str, Callable[[Frames, Path], tf.Corpus]] = {
    "frames": lambda frames, _: tf.open_corpus(frames),
    "sqlite": sqlite,
    "sqlalchemy": sqlalchemy,
    "csv": csv,
    "parquet": parquet,
    "lake": lake,
    "mixed": mixed,
}


def opened(source: str, frames: Frames, folder: Path, request: pytest.FixtureRequest) -> tf.Corpus:
    """In a source by its name; a test whose case has "postgres" in its name is marked (``tests/conftest.py``)."""
    if source == "postgres":
        return postgres(request.getfixturevalue("database")(), frames, analysed=True)
    try:
        return OPENED[source](frames, folder)
    except MissingExtra as error:
        pytest.skip(str(error))


def found_in(corpus: tf.Corpus, names: list[str]) -> RetrievedTables:
    """All tables of a corpus, retrieved: the first of ``names`` is the anchor."""
    by_name = {profile.name: profile.id for profile in corpus}
    anchor, *others = (by_name[name] for name in names)
    return RetrievedTables("", tuple(TableHit(id, 1.0) for id in others), corpus, anchor)


def outcome(planned: Callable[[], JoinPlan]) -> Any:
    """What a plan joins on what, how surely, and what else it thinks possible; or that it refuses."""
    try:
        plan = planned()
    except NotConnected:
        return "not connected"
    return [_told(one) for one in (plan, *plan.alternatives)], len(plan.ambiguous)


def _told(plan: JoinPlan) -> Any:
    steps = [
        (step.base.partition(".")[2], step.base_columns, step.table.partition(".")[2], step.columns, step.cardinality,
         round(step.score, 3))
        for step in plan.steps
    ]  # fmt: skip
    return plan.start.partition(".")[2], steps


def result(merged: Callable[[], pd.DataFrame]) -> Any:
    """The rows of a merge in their order, its counts, and the kinds of what it warns of; or what it refuses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frame = merged()
        except JoinError as error:
            return type(error).__name__, _kinds(caught)
    report = frame.tag.merge_report
    counts = [(one.rows_in, one.rows_out, one.matched, one.unmatched_right, one.null_keys) for one in report.steps]
    if ORIGIN in frame:  # the parts of a stack lie in databases of other names
        frame = frame.assign(**{ORIGIN: frame[ORIGIN].str.partition(".")[2]})
    rows = [tuple(map(_plain, row)) for row in frame.itertuples(index=False)]
    names = [name.rpartition(".")[2] for name in frame]
    return names, rows, counts, (report.start_rows, report.lost, report.filtered), _kinds(caught)


def _kinds(caught: list[warnings.WarningMessage]) -> list[str]:
    return sorted({one.category.__name__ for one in caught})


def _plain(cell: Any) -> Any:
    """A cell as every source has it."""
    if pd.isna(cell):
        return None
    return float(cell) if isinstance(cell, bool | int | float | np.number | np.bool_) else str(cell)


def by_frames(frames: Frames) -> Iterator[tuple[str, Any, Any]]:
    """Who plans and merges frames, and what comes of both."""
    names = [*frames]
    yield "tf.join_plan", outcome(lambda: tf.join_plan(frames)), result(lambda: tf.merge(frames))
    corpus = tf.open_corpus(frames)
    found = found_in(corpus, names)
    yield "found over frames", outcome(lambda: found.join_plan), result(found.merge)
    read = [corpus.read(profile.id) for name in names for profile in corpus if profile.name == name]
    planned = outcome(lambda: _merged(lambda: tf.merge(read, on_fanout="allow")))
    yield "tf.merge", planned, result(lambda: tf.merge(read))
    first, *others = read
    planned = outcome(lambda: _merged(lambda: first.tag.merge(*others, on_fanout="allow")))
    yield "df.tag.merge", planned, result(lambda: first.tag.merge(*others))


def by_files(frames: Frames, folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """The plan and the rows of found tables over files of each kind."""
    for kind in (sqlite, *([] if _has_digits(frames) else [csv]), parquet, mixed):
        found = found_in(kind(frames, folder / kind.__name__), [*frames])
        yield f"found over {kind.__name__}", outcome(lambda: found.join_plan), result(found.merge)  # noqa: B023


def _has_digits(frames: Frames) -> bool:
    """Whether a file without types has numbers where a frame has texts."""
    texts = [frame[column].dropna() for frame in frames.values() for column in frame if frame[column].dtype.kind == "O"]
    return any(len(cells) and cells.astype(str).str.fullmatch(r"\d+").all() for cells in texts)


def _merged(merge: Callable[[], pd.DataFrame]) -> JoinPlan:
    plan = merge().tag.merge_report.plan
    assert plan is not None
    return plan
