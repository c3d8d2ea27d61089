"""The same tables in every place that tagframe opens, and the plan over them from everyone who makes one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

import tagframe as tf
from tagframe.errors import NotConnected
from tagframe.joins import JoinPlan
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.retrieved import TableHit

Frames = dict[str, pd.DataFrame]


def sqlite(frames: Frames, folder: Path) -> tf.Corpus:
    """In one file."""
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "s.sqlite")) as file:
        for name, frame in frames.items():
            frame.to_sql(name, file, index=False)
    return tf.open_corpus(folder / "s.sqlite", progress=False)


def csv(frames: Frames, folder: Path) -> tf.Corpus:
    """A file each."""
    folder.mkdir(parents=True)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return tf.open_corpus(folder, progress=False)


def parquet(frames: Frames, folder: Path) -> tf.Corpus:
    """A file each."""
    folder.mkdir(parents=True)
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    return tf.open_corpus(folder, progress=False)


def mixed(frames: Frames, folder: Path) -> tf.Corpus:
    """In two places, in turn."""
    names = [*frames]
    first = sqlite({name: frames[name] for name in names[::2]}, folder / "first")
    rest = parquet({name: frames[name] for name in names[1::2]}, folder / "rest")
    return first.union(rest)


def postgres(url: str, frames: Frames, *, analysed: bool) -> tf.Corpus:
    """On a server, with its statistics or without."""
    import psycopg

    types = {"i": "bigint", "f": "double precision", "b": "boolean"}
    with psycopg.connect(url, autocommit=True) as owner:
        for name, frame in frames.items():
            columns = ", ".join(f'"{column}" {types.get(frame[column].dtype.kind, "text")}' for column in frame)
            owner.execute(f'CREATE TABLE "{name}" ({columns})')
            with owner.cursor() as cursor, cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
                    copy.write_row(row)
        if analysed:
            owner.execute("ANALYZE")
    return tf.open_corpus(url, progress=False)


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


def by_frames(frames: Frames) -> Iterator[tuple[str, Any]]:
    """Who plans over frames, and what comes of it."""
    names = [*frames]
    yield "tf.join_plan", outcome(lambda: tf.join_plan(frames))
    corpus = tf.open_corpus(frames)
    yield "found over frames", outcome(lambda: found_in(corpus, names).join_plan)
    read = [corpus.read(profile.id) for name in names for profile in corpus if profile.name == name]
    yield "tf.merge", outcome(lambda: _merged(lambda: tf.merge(*read, on_fanout="allow")))
    first, *others = read
    yield "df.tag.merge", outcome(lambda: _merged(lambda: first.tag.merge(*others, on_fanout="allow")))


def by_files(frames: Frames, folder: Path) -> Iterator[tuple[str, Any]]:
    """The plan of found tables over files of each kind."""
    for place in (sqlite, csv, parquet, mixed):
        corpus = place(frames, folder / place.__name__)
        yield f"found over {place.__name__}", outcome(lambda: found_in(corpus, [*frames]).join_plan)  # noqa: B023


def _merged(merge: Callable[[], pd.DataFrame]) -> JoinPlan:
    plan = merge().tag.merge_report.plan
    assert plan is not None
    return plan
