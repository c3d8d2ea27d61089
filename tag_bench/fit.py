"""``tag_bench fit``: fits the weights of the default method, and measures them on data that they were not fitted on.

Both stages are maximum likelihood. The first ranks every needed table above the others (softmax over one needed table
and all others). The second gives the needed set the highest probability among all small sets. All questions count, also
those that need one table. Two logistic regressions give the chance that a set is complete, and the chance that the
corpus has the requested data at all. They are fitted on questions of data that the two stages were not fitted on. The
out-of-sample figures are ``left_out`` (weights fitted on the other data sets) and ``cross_database`` (weights fitted
without the question's database). The shipped weights are fitted on all data.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import tagframe as tf
from tag_bench import FOLDERS, SpreadCommand
from tag_bench.fit_alone import read_alone
from tag_bench.fit_examples import Example, read_examples, read_names
from tag_bench.fit_stages import fit_logistic, fit_sets, fit_tables, minimised, shares
from tag_bench.records import with_progress
from tag_bench.retrieval import reliability
from tagframe.retrieval.methods.auto import (
    MOST,
    POOL,
    confidence_of,
    databases_of,
    fitted,
    joining,
    of_size,
    posterior,
)
from tagframe.retrieval.methods.posterior import COMPLETE, Posterior, complete_features, doubts
from tagframe.retrieval.methods.sets import LARGEST, missing_joins
from tagframe.retrieval.methods.weights import Weights
from tagframe.retrieval.problem import Floats, SelectionProblem
from tagframe.retrieval.signals import FACTS

FOLDS = 3
SIZES = (2, 3, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class Judged:
    """A question, scored with weights that were fitted without it.

    Attributes:
        example: the question.
        weights: of both stages.
        ids: of the tables of the problem.
        problem: over the tables with the highest scores of the first stage.
        known: the posterior.
    """

    example: Example
    weights: Weights
    ids: tuple[str, ...]
    problem: SelectionProblem
    known: Posterior

    @classmethod
    def of(cls, example: Example, weights: Weights) -> Judged:
        """The question, scored with some weights."""
        positions, problem = example.scored(weights, max(POOL, *SIZES))
        ids = tuple(example.ids[position] for position in positions.tolist())
        return cls(example, weights, ids, problem, posterior(problem, weights))

    def tables(self, size: int | None) -> frozenset[str]:
        """Ids of the tables that the fitted selector gives."""
        return self._named(fitted(self.problem, size, self.weights, self.known).indices)

    def _named(self, positions: Iterable[int]) -> frozenset[str]:
        return frozenset(self.ids[position] for position in positions)

    def sets(self) -> tuple[npt.NDArray[np.float64], list[bool]]:
        """The features of the best set for some sizes, shape (sizes, len(COMPLETE)), and whether it is complete.

        The sizes are the one that ``k="auto"`` would choose by the posterior alone, one less, and one more.
        """
        most = min(MOST, len(self.problem.r))
        sets = [of_size(self.problem, self.known, size) for size in range(1, most + 1)]
        joined = joining(self.problem, self.known, self.weights)
        contained = np.array([joined.contained(joined.mask(positions)) for positions in sets])
        facts = {**self.problem.facts, **doubts(self.problem, joined)}
        features = complete_features(contained, np.arange(1.0, most + 1), facts)
        alone = Weights({}, self.weights.set, apart=self.weights.apart)
        size = len(fitted(self.problem, None, alone, self.known).indices)
        around = slice(max(size - 2, 0), size + 1)
        return features[around], [self.example.question.gold <= self._named(positions) for positions in sets[around]]


def folds(examples: Iterable[Example]) -> dict[tuple[str, str], int]:
    """A fold for every database of every benchmark; folds have about the same number of questions."""
    found: dict[tuple[str, str], int] = {}
    counts: dict[str, Counter[str]] = {}
    for example in examples:
        counts.setdefault(example.data, Counter())[example.question.database] += 1
    for data, databases in counts.items():
        load = [0] * FOLDS
        for database, count in sorted(databases.items(), key=lambda entry: (-entry[1], entry[0])):
            fold = load.index(min(load))
            load[fold] += count
            found[data, database] = fold
    return found


def fit_stages(group: Sequence[Example]) -> Weights:
    """Fit both stages; if the data has a half for reporting, its questions are left out."""
    apart = {(example.data, example.reported) for example in group}
    used = [example for example in group if not (example.reported and (example.data, False) in apart)]
    first = Weights(fit_tables(used), {})
    both = Weights(first.table, fit_sets(used, first))
    return replace(both, apart=fit_apart(used, both))


def fit_apart(group: Sequence[Example], weights: Weights) -> float:
    """The weight of the joins that a set lacks, beside those of both stages: the needed set against all sets of the
    same databases (:func:`tagframe.retrieval.methods.auto.joining`)."""
    kept: list[Example] = []
    likely, lacking = [], []
    for example in with_progress(group, "joins"):
        positions, problem = example.scored(weights, POOL)
        needed = np.flatnonzero(np.isin(positions, example.gold or ())).tolist()
        if not 0 < len(needed) == len(example.gold or ()) <= LARGEST:
            continue
        known = posterior(problem, weights)
        databases, joins = databases_of(problem, known), missing_joins(problem, known.positions)
        goal = int(np.flatnonzero(known.masks == known.mask(needed))[0])
        within = (databases == databases[goal]) & (known.probability > 0)
        likely.append(np.log(known.probability[within]))
        lacking.append(joins[within] - joins[goal])
        kept.append(example)
    weight, first = shares(kept), np.cumsum([0, *map(len, likely[:-1])])
    score, more = np.concatenate(likely), np.concatenate(lacking)

    def step(slope: Floats) -> tuple[float, Floats]:
        odds = np.exp(score + slope[0] * more)
        total = np.add.reduceat(odds, first)
        return float(weight @ np.log(total)), np.array([weight @ (np.add.reduceat(odds * more, first) / total)])

    return float(minimised(step, 1, [(-10.0, 0.0)])[0])


def judge(group: Sequence[Example], weights: Weights) -> list[Judged]:
    """The questions for the figures, scored with weights fitted without them."""
    return [Judged.of(example, weights) for example in with_progress(group, "judged") if example.reported]


def fit_confidence(judged: Sequence[Judged]) -> tuple[dict[str, float], dict[str, float]]:
    """The coefficients for the chance of a complete set, and for the chance that a question fits the corpus."""
    count = Counter((one.example.data, one.example.variant) for one in judged)
    features, truths, shares = [], [], []
    facts, fits, fit_shares = [], [], []
    for one in judged:
        share = one.example.weight / count[one.example.data, one.example.variant]
        of_sets, is_complete = one.sets()
        features.append(of_sets)
        truths += is_complete
        shares += [share] * len(is_complete)
        if one.example.elsewhere is not None:
            for found, is_there in ((one.problem.facts, True), (one.example.elsewhere, False)):
                facts.append([1.0, *(found[name] for name in FACTS)])
                fits.append(is_there)
                fit_shares.append(share / one.example.weight)
    complete = fit_logistic(np.concatenate(features), np.array(truths), np.array(shares), COMPLETE)
    if not facts:
        return complete, {}
    return complete, fit_logistic(np.array(facts), np.array(fits), np.array(fit_shares), ("one", *FACTS))


def recalls(judged: Sequence[Judged], sizes: Sequence[int] = SIZES) -> dict[str, dict[str, float]]:
    """Recall and complete recall by K over the questions that need more than one table."""
    several = [one for one in judged if len(one.example.question.gold) > 1]
    found = {}
    for size in sizes:
        shares = [len(one.tables(size) & one.example.question.gold) / len(one.example.question.gold) for one in several]
        found[str(size)] = {"R": _percent(shares), "CR": _percent([share == 1.0 for share in shares])}
    return found


def automatic(judged: Sequence[Judged], sure: Weights) -> dict[str, float]:
    """``k="auto"`` over all questions, each with its own weights: exact and complete sets, precision, recall, the
    number of tables relative to the needed ones, and the calibration of the confidence."""
    rows = []
    for one in judged:
        weights = replace(sure, table=one.weights.table, set=one.weights.set, apart=one.weights.apart)
        selection = fitted(one.problem, None, weights, one.known)
        ids, gold = frozenset(one.ids[position] for position in selection.indices), one.example.question.gold
        hit = len(ids & gold)
        joined = joining(one.problem, one.known, weights)
        chance = confidence_of(one.problem, joined, weights, selection.indices)
        rows.append(
            (ids == gold, hit / max(len(ids), 1), hit / len(gold), hit == len(gold), len(ids) / len(gold), chance)
        )
    columns = dict(zip(("exact", "P", "R", "CR", "over", "sure"), np.array(rows, dtype=float).T, strict=True))
    found = {name: _percent(columns[name]) for name in ("exact", "P", "R", "CR")}
    found["tables_over_gold"] = round(float(columns["over"].mean()), 3)
    found["confidence"] = _percent(columns["sure"])
    return {**found, "reliability": reliability(columns["sure"], columns["CR"])}


def unfit(judged: Sequence[Judged], fits: Mapping[str, float]) -> dict[str, float]:
    """The share of questions that are reported as not fitting the corpus, asked with and without their database."""
    with_both = [one for one in judged if one.example.elsewhere is not None]
    weights = Weights({}, {}, fits=fits)
    told = {
        "here": [fitted(replace(one.problem, facts=facts), None, weights, one.known).note.startswith("nothing")
                 for one in with_both for facts in [one.problem.facts]],
        "elsewhere": [fitted(replace(one.problem, facts=facts), None, weights, one.known).note.startswith("nothing")
                      for one in with_both for facts in [one.example.elsewhere or {}]],
    }  # fmt: skip
    return {name: _percent(values) for name, values in told.items() if values}


def _percent(values: Any) -> float:
    return round(100 * float(np.mean(np.asarray(values, dtype=float))), 2) if len(values) else 0.0


def rounded(weights: Mapping[str, float]) -> dict[str, float]:
    """Round to four digits, the precision of the data."""
    return {name: float(f"{value:.4g}") for name, value in weights.items()}


def by_variant(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The questions by data set and variant: "data" or "data variant"."""
    found: dict[str, list[Judged]] = {}
    for one in judged:
        found.setdefault(f"{one.example.data} {one.example.variant}".strip(), []).append(one)
    return found


@click.command("fit", cls=SpreadCommand, context_settings={"help_option_names": ["-h", "--help"]})
@FOLDERS
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="The number of questions of each data set.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for vectors and evidence, so that a second fit takes minutes. It contains pickles, so nobody "
    "else may write there.",
)
@click.option("--embedder", help="A provider's model, or a sentence-transformers model by name or folder.")
@click.option("--weights", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the fitted weights.")
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(
    folders: tuple[Path, ...],
    questions: int,
    cache: Path | None,
    embedder: str | None,
    weights: Path | None,
    output: Any,
) -> None:
    """Fit the default method's weights, and measure them on data that they were not fitted on.

    Example: python -m tag_bench fit --data spider bird spider_train spider2 --weights tagframe/retrieval/weights.json
    """
    with tf.context(embedder=embedder):
        examples = [example for folder in folders for example in read_examples(folder, questions, cache)]
        examples += read_names(folders, questions, cache)
        examples += [example for folder in folders for example in read_alone(folder, questions, cache)]
    names = list(dict.fromkeys(example.data for example in examples))
    fold_of = folds(examples)
    out: list[Judged] = []
    for name in names if len(names) > 1 else []:
        elsewhere = fit_stages([example for example in examples if example.data != name])
        out += judge([example for example in examples if example.data == name], elsewhere)
    cross: list[Judged] = []
    for fold in range(FOLDS):
        inside = [fold_of[example.data, example.question.database] == fold for example in examples]
        without = fit_stages([example for example, is_in in zip(examples, inside, strict=True) if not is_in])
        cross += judge([example for example, is_in in zip(examples, inside, strict=True) if is_in], without)
    report: dict[str, Any] = {"data": names, "left_out": {}, "cross_database": {}, "auto": {}, "unfit": {}}
    for name, mine in by_variant(out).items():
        report["left_out"][name] = recalls(mine)
    for name, mine in by_variant(cross).items():
        report["cross_database"][name] = recalls(mine)
        # Weights fitted on the other data sets, if there are any.
        others = [one for one in cross if one.example.data != mine[0].example.data] or cross
        complete, fits = fit_confidence(others)
        report["auto"][name] = automatic(mine, Weights({}, {}, complete))
        report["unfit"][name] = unfit(mine, fits)
    final = fit_stages(examples)
    complete, fits = fit_confidence(out or cross)
    given = {"table": final.table, "set": final.set, "complete": complete, "fits": fits}
    if weights is not None:
        encoder = f" --embedder {embedder}" if embedder else ""
        about = f"Made by tag_bench fit{encoder} from {questions} questions each of {', '.join(names)}."
        written = {
            "about": about,
            **{name: rounded(part) for name, part in given.items()},
            **rounded({"apart": final.apart}),
        }
        weights.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    report["weights_file"] = None if weights is None else str(weights)
    json.dump(report, output, indent=2)
    output.write("\n")


if __name__ == "__main__":
    command()
