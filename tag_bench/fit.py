"""``tag_bench fit``: fits the weights of the default method, and says how well they do on databases never seen.

Both stages are maximum likelihood: the first ranks every needed table above those not needed (softmax over one needed
table and all others), the second gives the needed set the largest share among all small sets. All questions count,
those of one table too. The honest figure is cross-database: questions of a database are judged by weights fitted
without it. The weights that are shipped are fitted on all.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from tag_bench import SpreadCommand
from tag_bench.data import Dataset, Question, read_dataset
from tagframe.embed import get_embedder
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.methods.auto import Posterior, Weights, among_promising, fitted, posterior_of
from tagframe.retrieval.methods.sets import FEATURES, index_sets, set_features
from tagframe.retrieval.prepare import Prepared
from tagframe.retrieval.problem import Floats, SelectionProblem
from tagframe.retrieval.question import Question as Asked
from tagframe.retrieval.signals import SIGNALS, Evidence, gather

FOLDS = 5
TABLE_PENALTY = 1e-3
SET_PENALTY = 1e-3
SETS = 160
"""Sets of a question that the second stage is fitted on: the needed one, the hardest others, and some at random."""

RANDOM_SETS = 40
SEED = 0
_ROUGH_SIZE = 1.2  # what a further table is worth when the hardest sets are picked

_Step = tuple[float, Floats]


@dataclass(eq=False)
class Example:
    """One question of one variant of a benchmark.

    Attributes:
        data, index, question: what it is.
        fold: of its database.
        evidence: for all tables of the corpus.
        gold: positions of the tables that it needs, or None where the corpus lacks one.
    """

    data: Dataset
    index: RetrievalIndex
    question: Question
    fold: int
    evidence: Evidence
    gold: tuple[int, ...] | None


def folds(datasets: Iterable[Dataset]) -> dict[tuple[str, str], int]:
    """A fold for every database of every benchmark, of about as many questions each."""
    found: dict[tuple[str, str], int] = {}
    for data in datasets:
        counts = Counter(question.database for question in data.questions)
        load = [0] * FOLDS
        for database, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            fold = load.index(min(load))
            load[fold] += count
            found[data.name, database] = fold
    return found


def examples(data: Dataset, index: RetrievalIndex, fold_of: Mapping[tuple[str, str], int]) -> list[Example]:
    """The evidence of every question."""
    place = {table.id.lower(): position for position, table in enumerate(index.tables)}
    found = []
    for question in tqdm(data.questions, desc=f"{data.name}: evidence", unit="question", disable=None):
        evidence = gather(index, Asked.of(question.text))
        known = all(table in place for table in question.gold)
        gold = tuple(sorted(place[table] for table in question.gold)) if known else None
        found.append(Example(data, index, question, fold_of[data.name, question.database], evidence, gold))
    return found


def minimised(step: Any, size: int) -> Floats:
    """The minimum of a smooth convex function that gives its value and gradient (L-BFGS)."""
    optimize = importlib.import_module("scipy.optimize")  # comes with sentence-transformers, and without types
    result = optimize.minimize(step, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(result.x, dtype=np.float64)


def fit_tables(group: Sequence[Example]) -> dict[str, float]:
    """The first stage."""
    known = [example for example in group if example.gold]
    scale = np.concatenate([example.evidence.signals for example in known]).std(axis=0) + 1e-9
    signals = [example.evidence.signals / scale for example in known]
    gold = [np.array(example.gold) for example in known]

    def step(weights: Floats) -> _Step:
        loss, gradient = TABLE_PENALTY * float(weights @ weights), 2 * TABLE_PENALTY * weights
        for rows, needed in zip(signals, gold, strict=True):
            scores = rows @ weights
            odds = np.exp(scores - scores.max())
            others = odds.copy()
            others[needed] = 0.0
            rest = others.sum() + 1e-300
            share = odds[needed] / (odds[needed] + rest)
            loss -= float(np.log(share + 1e-300).mean()) / len(known)
            slope = others * float(((1 - share) / rest).mean())
            slope[needed] = -(1 - share) / len(needed)
            gradient = gradient + (slope @ rows) / len(known)
        return loss, gradient

    return dict(zip(SIGNALS, (minimised(step, len(SIGNALS)) / scale).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class SetExample:
    """A question for the second stage: the features of its sets, and which of them it needs (None: none of these)."""

    example: Example
    prepared: Prepared[SelectionProblem]
    features: npt.NDArray[np.float32]
    needed: int | None


def set_example(example: Example, weights: Weights) -> SetExample:
    """The sets of a question, by a fitted first stage."""
    asked = Asked.of(example.question.text)
    prepared = among_promising(example.index, asked, example.evidence, weights=weights)
    places = np.arange(len(prepared.tables), dtype=np.intp)
    features = set_features(prepared.problem, places).astype(np.float32)
    needed = None
    if example.gold and set(example.gold) <= set(prepared.tables):
        wanted = [prepared.tables.index(table) for table in example.gold]
        start = 0
        for sets in index_sets(len(places)):
            if sets.shape[1] == len(wanted):
                needed = start + int(np.flatnonzero((sets == wanted).all(axis=1))[0])
            start += len(sets)
    return SetExample(example, prepared, features, needed)


def fit_sets(group: Sequence[SetExample]) -> dict[str, float]:
    """The second stage."""
    rng = np.random.default_rng(SEED)
    prior, tree = FEATURES.index("sum_prior"), FEATURES.index("link_tree")
    size = np.array([FEATURES.index(name) for name in FEATURES if name.startswith("size_")])
    parts, needed = [], []
    for one in group:
        if one.needed is None:
            continue
        rough = one.features[:, prior] + 0.5 * one.features[:, tree]
        rough = rough + _ROUGH_SIZE * (one.features[:, size] @ np.arange(1, len(size) + 1))
        hardest = np.argsort(-rough, kind="stable")[: SETS - RANDOM_SETS]
        drawn = rng.choice(len(rough), min(RANDOM_SETS, len(rough)), replace=False)
        kept = np.unique(np.concatenate([[one.needed], hardest, drawn]))
        parts.append(one.features[kept])
        needed.append(int(np.flatnonzero(kept == one.needed)[0]))
    counts = np.array([len(part) for part in parts])
    first = np.cumsum(counts) - counts
    every = np.concatenate(parts)
    scale = every.std(axis=0) + 1e-6
    every = every / scale
    goal = first + np.array(needed)

    def step(weights: Floats) -> _Step:
        scores = (every @ weights.astype(np.float32)).astype(np.float64)
        most = np.maximum.reduceat(scores, first)
        odds = np.exp(scores - np.repeat(most, counts))
        total = np.add.reduceat(odds, first)
        loss = -float((scores[goal] - most - np.log(total)).mean()) + SET_PENALTY * float(weights @ weights)
        slope = odds / np.repeat(total, counts)
        slope[goal] -= 1
        gradient = (every.T @ slope.astype(np.float32)).astype(np.float64) / len(counts)
        return loss, gradient + 2 * SET_PENALTY * weights

    return dict(zip(FEATURES, (minimised(step, len(FEATURES)) / scale).tolist(), strict=True))


def cross_database(group: Sequence[Example]) -> list[tuple[SetExample, Weights]]:
    """Every question, with weights that were fitted without its database."""
    found = []
    first: dict[int, Weights] = {}
    for fold in range(FOLDS):
        first[fold] = Weights(fit_tables([example for example in group if example.fold != fold]), {})
    prepared = [
        set_example(example, first[example.fold]) for example in tqdm(group, desc="sets", unit="question", disable=None)
    ]
    for fold in range(FOLDS):
        second = fit_sets([one for one in prepared if one.example.fold != fold])
        weights = Weights(first[fold].table, second)
        found += [(one, weights) for one in prepared if one.example.fold == fold]
    return found


def chosen(one: SetExample, weights: Weights, size: int | None) -> set[str]:
    """Ids of the tables that the fitted selector gives."""
    selection = fitted(one.prepared.problem, size, weights, _posterior(one, weights))
    return {one.example.index.tables[one.prepared.tables[place]].id.lower() for place in selection.indices}


def _posterior(one: SetExample, weights: Weights) -> Posterior:
    places = np.arange(len(one.prepared.tables), dtype=np.intp)
    return posterior_of(one.prepared.problem, places, weights.utilities(one.features.astype(np.float64)))


def recalls(judged: Sequence[tuple[SetExample, Weights]], sizes: Sequence[int]) -> dict[str, dict[str, float]]:
    """Recall and complete recall by K over the questions of more than one table."""
    multi = [(one, weights) for one, weights in judged if len(one.example.question.gold) > 1]
    found = {}
    for size in sizes:
        shares = []
        for one, weights in multi:
            gold = one.example.question.gold
            shares.append(len(chosen(one, weights, size) & gold) / len(gold))
        complete = [share == 1.0 for share in shares]
        found[str(size)] = {"R": _percent(shares), "CR": _percent(complete)}
    return found


def automatic(judged: Sequence[tuple[SetExample, Weights]]) -> dict[str, float]:
    """Exact-set accuracy, precision and recall of ``k="auto"`` over all questions."""
    rows = []
    for one, weights in judged:
        ids, gold = chosen(one, weights, None), one.example.question.gold
        hit = len(ids & gold)
        rows.append((ids == gold, hit / max(len(ids), 1), hit / len(gold)))
    return {name: _percent(column) for name, column in zip(("exact", "P", "R"), zip(*rows, strict=True), strict=True)}


def _percent(values: Sequence[float]) -> float:
    return round(100 * float(np.mean(np.asarray(values, dtype=float))), 2)


def calibration(judged: Sequence[tuple[SetExample, Weights]]) -> list[dict[str, float]]:
    """Of tables given a chance in each tenth: how many, the mean chance, and the share that was needed."""
    chances, truths = [], []
    for one, weights in judged:
        if one.example.gold is not None:
            chances += _posterior(one, weights).tables().tolist()
            truths += [table in one.example.gold for table in one.prepared.tables]
    chance, truth = np.array(chances), np.array(truths)
    tenth = np.minimum((chance * 10).astype(int), 9)
    return [
        {
            "tables": int((tenth == part).sum()),
            "chance": round(float(chance[tenth == part].mean()), 3),
            "needed": round(float(truth[tenth == part].mean()), 3),
        }
        for part in np.unique(tenth).tolist()
    ]


def rounded(weights: Mapping[str, float]) -> dict[str, float]:
    """Four digits say all that the data does."""
    return {name: float(f"{value:.4g}") for name, value in weights.items()}


@click.command("fit", cls=SpreadCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A folder, or several.",
)
@click.option("--weights", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the fitted weights.")
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(folders: tuple[Path, ...], weights: Path | None, output: Any) -> None:
    """Fit the default method's weights and report them on databases that they were not fitted on.

    Example: python -m tag_bench fit --data spider bird --weights tagframe/retrieval/weights.json
    """
    shown = [read_dataset(folder) for folder in folders]
    fold_of = folds(shown)
    group: list[Example] = []
    for folder, data in zip(folders, shown, strict=True):
        for variant in (data, read_dataset(folder, hide_database=True)):
            index = RetrievalIndex(variant.corpus, get_embedder(), declared_keys=False, described=variant.described)
            group += examples(variant, index, fold_of)
    judged = cross_database(group)
    report: dict[str, Any] = {"data": [data.name for data in shown], "cross_database": {}, "auto": {}}
    report["cross_database_hidden"], report["calibration"] = {}, {}
    for data in shown:
        mine = [pair for pair in judged if pair[0].example.data.name == data.name]
        visible = [pair for pair in mine if not pair[0].example.index.one_database]
        hidden = [pair for pair in mine if pair[0].example.index.one_database]
        report["cross_database"][data.name] = recalls(visible, (2, 3, 5, 10))
        report["cross_database_hidden"][data.name] = recalls(hidden, (2, 3, 5, 10))
        report["auto"][data.name] = automatic(visible)
        report["calibration"][data.name] = calibration(visible)
    tables = fit_tables(group)
    first = Weights(tables, {})
    final = {"table": rounded(tables), "set": rounded(fit_sets([set_example(example, first) for example in group]))}
    if weights is not None:
        about = f"Made by tag_bench fit from {', '.join(data.name for data in shown)}."
        weights.write_text(json.dumps({"about": about, **final}, indent=2) + "\n", encoding="utf-8")
    report["weights_file"] = None if weights is None else str(weights)
    json.dump(report, output, indent=2)
    output.write("\n")


if __name__ == "__main__":
    command()
