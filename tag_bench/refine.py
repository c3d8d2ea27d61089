"""``tag_bench refine``: the effect of a model's choice of tables, by the weight that it is given.

``refine_choices.jsonl`` has the choices of a strong language model among twelve candidates, for questions of Spider and
BIRD (the model may have seen some of them in training). ``refine_choices_fiben.jsonl`` has choices among fifty tables
of FIBEN. Tables that were not shown are scored as in the product. Only the first choice is used: there is no second
search for missing tables.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import DATA, benchmark
from tag_bench.data import Dataset, read_dataset
from tag_bench.measured import percent, reliability
from tag_bench.records import RECORDS, Record, Records, embedder_name, settings_of
from tag_bench.retrieval import AUTO, chosen_tables
from tagframe.embed import get_embedder
from tagframe.retrieval import Question as RetrievalQuestion
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.methods import Auto
from tagframe.retrieval.refine import UNSEEN, WEIGHT, Choice, open_chances, possible

WEIGHTS = (0.0, 2.0, 4.0, 8.0)
"""The weights to try."""
SIZES = (5, 10, 20)
FILES = ("refine_choices.jsonl", "refine_choices_fiben.jsonl")


def read_choices(folder: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    """The recorded choices by data set.

    Raises:
        click.ClickException: the files do not exist.
    """
    files = [file for name in FILES if (file := folder / name).is_file()]
    if not files:
        raise click.ClickException(f"no {FILES[0]} in {folder}; give a folder like shared/bench")
    choices: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            choice = json.loads(line)
            choices[choice["dataset"]].append(choice)
    return choices


def chosen_by_weight(
    dataset: Dataset, choices: Sequence[Mapping[str, Any]], records: Records
) -> dict[float, list[Record]]:
    """What is chosen for each question, by weight."""
    method = Auto()
    index = RetrievalIndex(dataset.corpus, get_embedder(), described=dataset.described)
    positions = {table.id.lower(): position for position, table in enumerate(index.tables)}

    def ask(choice: Mapping[str, Any]) -> Record:
        question = dataset.questions[choice["position"]]
        as_read = RetrievalQuestion.of(question.text)
        evidence = method.relevance(index, as_read, None)
        candidates = [table.lower() for table in choice["candidates"] if table.lower() in positions]
        opinion = Choice(
            *(tuple(one.lower() for one in choice.get(part, ())) for part in ("needed", "maybe", "missing"))
        )
        facts = {**evidence.facts, **open_chances(opinion)}
        outcomes: dict[str, Record] = {}
        for weight in WEIGHTS:
            log_odds = np.full(len(index.tables), UNSEEN * weight / WEIGHT)
            log_odds[[positions[table] for table in candidates]] = opinion.log_odds(candidates, possible(index), weight)
            with_look = replace(evidence, opinion=log_odds, facts=facts)
            by_size = [chosen_tables(index, method, question, as_read, with_look, [size]) for size in (AUTO, *SIZES)]
            outcomes[f"{weight:g}"] = {
                part: {name: value for one in by_size for name, value in one[part].items()}
                for part in ("tables", "scores", "confidence")
            }
        scores = {f"CR@auto, weight {weight}": one["scores"]["CR@auto"] for weight, one in outcomes.items()}
        return {"gold_tables": sorted(question.gold), "scores": scores, "outcomes": outcomes}

    def key(choice: Mapping[str, Any]) -> tuple[str, str]:
        return f"{dataset.name}:{choice['position']}", dataset.questions[choice["position"]].text

    answered = records.each(choices, ask, key, dataset.name)
    return {weight: [record["outcomes"][f"{weight:g}"] for record in answered] for weight in WEIGHTS}


def shares(outcomes: Sequence[Record]) -> dict[str, Any]:
    """Exact and complete sets of ``k="auto"`` in percent, tables per question, the confidence and its error, and R and
    CR by K."""

    def mean(measure: str) -> float | None:
        return percent((one["scores"][measure] for one in outcomes), 1)

    sure = np.array([one["confidence"]["auto"] for one in outcomes])
    return {
        **{f"K={size}": [mean(f"R@{size}"), mean(f"CR@{size}")] for size in SIZES},
        "exact": mean("exact@auto"),
        "complete": mean("CR@auto"),
        "tables": round(statistics.fmean(len(one["tables"]["auto"]) for one in outcomes), 2),
        "confidence": percent(sure, 1),
        "reliability": reliability(sure, np.array([one["scores"]["CR@auto"] for one in outcomes])),
    }


@benchmark("refine")
@DATA
@RECORDS
def command(data: Path, records: Path | None) -> dict[str, Any]:
    """Sets of k="auto" with a model's recorded choices as evidence, by the weight of a choice.

    Example: python -m tag_bench refine --data ../shared/bench --json -
    """
    settings = settings_of(used=[get_embedder()], embedder=embedder_name())
    result: dict[str, Any] = {"shipped_weight": WEIGHT, **settings}
    stored = Records(records, settings)
    together: dict[float, list[Record]] = defaultdict(list)
    for name, choices in read_choices(data).items():
        found = chosen_by_weight(read_dataset(data / name), choices, stored)
        result[name] = {"questions": len(choices), **{f"{weight:g}": shares(one) for weight, one in found.items()}}
        for weight, one in found.items():
            together[weight] += one
    result["all"] = {f"{weight:g}": shares(one) for weight, one in together.items()}
    return result
