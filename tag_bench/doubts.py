"""``tag_bench doubts``: how often doubts occur on right statements, and how good ``answer.tables_confidence`` is.

Gold SQL is run over pooled databases, as if ``syn`` had written it, and its doubts are counted: each is a false alarm,
or an error in the gold SQL. Then the gold tables of each question, and variants with a table dropped, added or swapped,
are scored with the weights that are shipped; ``tag_bench fit sets`` fits them anew.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

import tagframe as tf
from tag_bench import FOLDERS, HALF, benchmark, number
from tag_bench.data import Question, drawn
from tag_bench.measured import reliability, timed
from tag_bench.records import RECORDS, SEEDED, Record, Records, settings_of
from tag_bench.syn_shown import pooled
from tagframe.answer.doubts import doubts_of
from tagframe.answer.query import Query
from tagframe.answer.tables_confidence import WEIGHTS, features_of
from tagframe.errors import TagframeError
from tagframe.retrieval import RetrievedTables

TABLES = 12
Changed = tuple[str, list[float]]
"""The change of the gold tables ("" for none), and the features of the result."""


def changed_sets(gold: Sequence[str], found: RetrievedTables, draw: random.Random) -> list[tuple[str, set[str]]]:
    """The gold tables, and a random variant with one table dropped, added or swapped, if possible."""
    databases = {found.corpus.profile(id).database for id in gold}
    others = [hit.id for hit in found.tables if hit.id not in gold]
    near = [id for id in others if found.corpus.profile(id).database in databases] or others
    ways: list[tuple[str, set[str]]] = []
    if len(gold) > 1:
        ways.append(("dropped", set(gold) - {draw.choice(gold)}))
    if near:
        ways.append(("added", {*gold, draw.choice(near)}))
        ways.append(("swapped", (set(gold) - {draw.choice(gold)}) | {draw.choice(near)}))
    return [("", set(gold)), draw.choice(ways)] if ways else []


def area(chances: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> float:
    """The area under the ROC curve: how often a right set has a higher score than a wrong one; ties count half."""
    right, wrong = chances[truth][:, None], chances[~truth][None, :]
    return float(((right > wrong) + 0.5 * (right == wrong)).mean())


def judged_sets(weights: Sequence[float], sets: Sequence[Changed]) -> dict[str, Any]:
    """How well the chance tells right sets from wrong ones, and how far it is from their share."""
    features = np.array([values for _, values in sets])
    chances, truth = 1 / (1 + np.exp(-features @ np.array(weights))), np.array([not change for change, _ in sets])
    off = reliability(chances, truth.astype(float))
    return {"statements": len(sets), "area": round(area(chances, truth), 3), "off_by": off}


def _gold_rows(question: Question, pool: tf.Corpus) -> Any:
    """The rows of a gold statement; its texts may be in double quotation marks."""
    own = {one.name: one.id for one in pool.profiles if one.database.lower() == question.database.lower()}
    limits = tf.SQLLimits(seconds=10)
    return tf.exec_sql(pool, limits=limits)(Query(question.sql.replace('"', "'"), own))


def judged_questions(folder: Path, half: str, limit: int, seed: int, records: Records) -> list[Record]:
    """The record of each question: doubts on its gold rows (None if the gold SQL is refused), features of sets."""
    pool, questions, _ = pooled([folder], half)

    def ask(question: Question) -> Record:
        found = tf.retrieve_tables(question.text, pool, k=TABLES)
        gold = sorted(id for id in pool.ids if id.lower() in question.gold)
        changed = changed_sets(gold, found, random.Random(f"{seed} {question.database} {question.position}"))
        record: Record = {"sets": [(change, features_of(tables, found)) for change, tables in changed], "doubts": None}
        try:
            rows = _gold_rows(question, pool)
        except TagframeError:
            return record
        seconds, doubts = timed(lambda: doubts_of(rows, found, question.text))
        return {**record, "doubts": sorted({doubt.reason for doubt in doubts}), "seconds": seconds}

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
    """Doubts on gold SQL, and the confidence in gold tables and in wrong variants of them; no model is asked.

    Example: python -m tag_bench doubts --data ../shared/bench/spider ../shared/bench/bird --json -
    """
    settings = settings_of(folders=[folder.resolve().name for folder in folders])
    stored = Records(records, settings)
    result: dict[str, Any] = {**settings, "data": {}}
    for folder in folders:
        judged = judged_questions(folder, half, limit, seed, stored)
        sets = [(change, features) for record in judged for change, features in record["sets"]]
        ran = [record for record in judged if record["doubts"] is not None]
        fired = Counter(kind for record in ran for kind in [*record["doubts"], *(["any"] if record["doubts"] else [])])
        fired.update({"refused": len(judged) - len(ran)} if len(ran) < len(judged) else {})
        seconds = [record["seconds"] for record in ran]
        result["data"][folder.name] = {
            "questions": len(judged),
            "ran": len(seconds),
            "doubts": dict(fired.most_common()),
            "seconds": {"median": round(median(seconds), 4), "most": round(max(seconds), 3)} if seconds else None,
            "shipped": judged_sets(WEIGHTS, sets),
        }
    return result
