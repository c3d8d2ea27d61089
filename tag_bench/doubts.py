"""``tag_bench doubts``: how often doubts occur on right statements.

Gold SQL is run over pooled databases, as if ``syn`` had written it, and its doubts are counted: each is a false alarm,
or an error in the gold SQL.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import tagframe as tf
from tag_bench import FOLDERS, HALF, benchmark, number
from tag_bench.data import Question, drawn
from tag_bench.measured import timed
from tag_bench.records import RECORDS, SEEDED, Record, Records, embedder_name, settings_of
from tag_bench.syn_shown import pooled
from tagframe.answer.doubts import doubts_of
from tagframe.answer.query import Query
from tagframe.embed import get_embedder
from tagframe.errors import TagframeError


def _gold_rows(question: Question, pool: tf.Corpus) -> Any:
    """The rows of a gold statement; its texts may be in double quotation marks."""
    own = {one.name: one.id for one in pool.profiles if one.database.lower() == question.database.lower()}
    limits = tf.SQLLimits(seconds=10)
    return tf.exec_sql(pool, limits=limits)(Query(question.sql.replace('"', "'"), own))


def judged_questions(folder: Path, half: str, limit: int, seed: int, records: Records) -> list[Record]:
    """The record of each question: the kinds of doubts on its gold rows; None if the gold SQL is refused."""
    pool, questions, _ = pooled([folder], half)

    def ask(question: Question) -> Record:
        try:
            rows = _gold_rows(question, pool)
        except TagframeError:
            return {"doubts": None}
        seconds, doubts = timed(lambda: doubts_of(rows, question.text))
        reasons = {doubt.reason for doubt in doubts}
        facts = {doubt.reason for doubt in doubts if doubt.rows is None}
        return {"doubts": sorted(reasons), "facts": sorted(facts), "seconds": seconds}

    def key(question: Question) -> tuple[str, str]:
        return f"{folder.resolve().name}:{question.position}", question.text

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return records.each(drawn(questions, limit, seed), ask, key, folder.name)


@benchmark("doubts")
@FOLDERS
@HALF
@number("--limit", 300, "The number of questions of each, drawn at random.")
@RECORDS
@SEEDED
def command(folders: tuple[Path, ...], half: str, limit: int, records: Path | None, seed: int) -> Record:
    """Doubts on gold SQL, by kind, and those of them that are facts, without another result; no model is asked.

    Example: python -m tag_bench doubts --data ../shared/bench/spider ../shared/bench/bird --json -
    """
    settings = settings_of(
        used=[get_embedder()], embedder=embedder_name(), folders=[folder.resolve().name for folder in folders]
    )
    stored = Records(records, settings)
    result: dict[str, Any] = {**settings, "data": {}}
    for folder in folders:
        judged = judged_questions(folder, half, limit, seed, stored)
        ran = [record for record in judged if record["doubts"] is not None]
        fired = Counter(kind for record in ran for kind in [*record["doubts"], *(["any"] if record["doubts"] else [])])
        fired.update({"refused": len(judged) - len(ran)} if len(ran) < len(judged) else {})
        seconds = [record["seconds"] for record in ran]
        result["data"][folder.name] = {
            "questions": len(judged),
            "ran": len(seconds),
            "doubts": dict(fired.most_common()),
            "facts": sum(bool(record["facts"]) for record in ran),
            "seconds": {"median": round(median(seconds), 4), "most": round(max(seconds), 3)} if seconds else None,
        }
    return result
