"""``tag_bench refine``: what a model's second look is worth, by the weight that its choice is given.

``refine_choices.jsonl`` has what a strong language model chose for questions of Spider and BIRD, some of which it may
have known. It was shown twelve candidates of then; today it is shown 25, so that what is not among the twelve counts as
passed over.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from tqdm.auto import tqdm

from tag_bench.data import Dataset, read_dataset
from tagframe.embed import get_embedder
from tagframe.retrieval import METHODS
from tagframe.retrieval import Question as Asked
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.refine import WEIGHT, Choice

WEIGHTS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Weights that are tried."""


def read_choices(folder: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    """The recorded choices by data set.

    Raises:
        click.ClickException: they are not there.
    """
    file = folder / "refine_choices.jsonl"
    if not file.is_file():
        raise click.ClickException(f"no refine_choices.jsonl in {folder}; give a folder like shared/bench")
    choices: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        choice = json.loads(line)
        choices[choice["dataset"]].append(choice)
    return choices


def asked_again(dataset: Dataset, choices: Sequence[Mapping[str, Any]]) -> dict[float, list[tuple[bool, bool, int]]]:
    """By weight and question: whether ``k="auto"`` gives exactly the gold tables, whether it gives all, how many."""
    method = METHODS["auto"]
    index = RetrievalIndex(dataset.corpus, get_embedder(), described=dataset.described)
    places = {table.id.lower(): place for place, table in enumerate(index.tables)}
    found: dict[float, list[tuple[bool, bool, int]]] = defaultdict(list)
    for choice in tqdm(choices, desc=dataset.name, unit="question", disable=None):
        question = dataset.questions[choice["position"]]
        asked = Asked.of(question.text)
        evidence = method.relevance(index, asked, None)
        shown = [table.lower() for table in choice["candidates"] if table.lower() in places]
        said = Choice(*(tuple(table.lower() for table in choice[part]) for part in ("needed", "maybe")))
        for weight in WEIGHTS:
            looked = np.full(len(index.tables), -weight)
            looked[[places[table] for table in shown]] = said.log_odds(shown, weight)
            prepared = method.prepare(index, asked, replace(evidence, looked=looked), None, None)
            selection = method.select(prepared.problem, None)
            tables = {index.tables[prepared.tables[place]].id.lower() for place in selection.indices}
            found[weight].append((tables == question.gold, question.gold <= tables, len(tables)))
    return found


def shares(outcomes: Sequence[tuple[bool, bool, int]]) -> dict[str, float]:
    """Exact and complete sets in percent, and tables a question."""
    exact, complete, tables = zip(*outcomes, strict=True)
    return {
        "exact": round(100 * sum(exact) / len(exact), 1),
        "complete": round(100 * sum(complete) / len(complete), 1),
        "tables": round(sum(tables) / len(tables), 2),
    }


@click.command("refine", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", required=True, type=click.Path(exists=True, path_type=Path), help="The folder.")
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(data: Path, output: Any) -> None:
    """Sets of k="auto" with recorded choices of a model as evidence, by the weight of a choice.

    Example: python -m tag_bench refine --data ../shared/bench --json -
    """
    result: dict[str, Any] = {"shipped_weight": WEIGHT}
    together: dict[float, list[tuple[bool, bool, int]]] = defaultdict(list)
    for name, choices in read_choices(data).items():
        found = asked_again(read_dataset(data / name), choices)
        result[name] = {"questions": len(choices), **{f"{weight:g}": shares(one) for weight, one in found.items()}}
        for weight, one in found.items():
            together[weight] += one
    result["all"] = {f"{weight:g}": shares(one) for weight, one in together.items()}
    json.dump(result, output, indent=2)
    output.write("\n")
