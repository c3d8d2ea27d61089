"""``tag_bench fit tables``: the weights of the default method.

Both stages are maximum likelihood. The first ranks every needed table above the others (softmax over one needed table
and all others). The second gives the needed set the highest probability among all small sets. All questions count, also
those that need one table. Two logistic regressions give the chance that a set is complete, and the chance that the
corpus has the requested data at all. They are fitted on questions of data that the two stages were not fitted on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tag_bench.fit import Fitted, Given, folds, grouped, left_out, recall, rounded, shares, to_fit
from tag_bench.fit.examples import Example, read_alone, read_examples, read_names
from tag_bench.fit.likelihood import fit_logistic, fit_sets, fit_tables, minimised, of_examples
from tag_bench.measured import of_sets, percent
from tag_bench.records import with_progress
from tagframe.retrieval.methods import auto
from tagframe.retrieval.methods.auto import (
    POOL,
    confidence_of,
    databases_of,
    joining,
    of_size,
    posterior,
)
from tagframe.retrieval.methods.posterior import COMPLETE, Posterior, complete_features, doubts
from tagframe.retrieval.methods.sets import LARGEST, missing_joins
from tagframe.retrieval.methods.weights import Weights
from tagframe.retrieval.problem import Floats, SelectionProblem
from tagframe.retrieval.signals import FACTS

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
        return self.named(auto.fitted(self.problem, size, self.weights, self.known).indices)

    def named(self, positions: Iterable[int]) -> frozenset[str]:
        """Ids of tables of the problem."""
        return frozenset(self.ids[position] for position in positions)

    def sets(self) -> tuple[npt.NDArray[np.float64], list[bool]]:
        """The features of the best set for some sizes, shape (sizes, len(COMPLETE)), and whether it is complete.

        The sizes are the one that ``k="auto"`` would choose by the posterior alone, one less, and one more.
        """
        most = min(POOL, len(self.problem.r))
        sets = [of_size(self.problem, self.known, size) for size in range(1, most + 1)]
        joined = joining(self.problem, self.known, self.weights)
        contained = np.array([joined.contained(joined.mask(positions)) for positions in sets])
        facts = {**self.problem.facts, **doubts(self.problem, joined)}
        features = complete_features(contained, np.arange(1.0, most + 1), facts)
        alone = Weights({}, self.weights.set, apart=self.weights.apart)
        size = len(auto.fitted(self.problem, None, alone, self.known).indices)
        around = slice(max(size - 2, 0), size + 1)
        return features[around], [self.example.question.gold <= self.named(positions) for positions in sets[around]]


def fit_stages(group: Sequence[Example]) -> Weights:
    """Fit both stages; if the data has a half for reporting, its questions are left out."""
    used = to_fit(group)
    first = Weights(fit_tables(used), {})
    both = Weights(first.table, fit_sets(used, first))
    return replace(both, apart=fit_apart(used, both))


def fit_apart(group: Sequence[Example], weights: Weights) -> float:
    """The weight of the joins that a set lacks, beside those of both stages: the needed set against all sets of the
    same databases (:func:`tagframe.retrieval.methods.auto.joining`)."""
    usable: list[Example] = []
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
        usable.append(example)
    weight, first = of_examples(usable), np.cumsum([0, *map(len, likely[:-1])])
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
    variants = [(one.example.data, one.example.variant) for one in judged]
    features, truths, each = [], [], []
    facts, fits, fit_each = [], [], []
    for one, share, plain in zip(
        judged, shares(variants, 1.0, [one.example.weight for one in judged]), shares(variants, 1.0), strict=True
    ):
        of_sets, is_complete = one.sets()
        features.append(of_sets)
        truths += is_complete
        each += [share] * len(is_complete)
        if one.example.elsewhere is not None:
            for found, is_there in ((one.problem.facts, True), (one.example.elsewhere, False)):
                facts.append([1.0, *(found[name] for name in FACTS)])
                fits.append(is_there)
                fit_each.append(plain)
    complete = fit_logistic(np.concatenate(features), np.array(truths), np.array(each), COMPLETE)
    if not facts:
        return complete, {}
    return complete, fit_logistic(np.array(facts), np.array(fits), np.array(fit_each), ("one", *FACTS))


def recalls(judged: Sequence[Judged], sizes: Sequence[int] = SIZES) -> dict[str, dict[str, float | None]]:
    """Recall and complete recall by K over the questions that need more than one table."""
    several = [one for one in judged if len(one.example.question.gold) > 1]
    found = {}
    for size in sizes:
        found[str(size)] = recall([(one.tables(size), one.example.question.gold) for one in several])
    return found


def automatic(judged: Sequence[Judged], sure: Weights) -> dict[str, Any]:
    """``k="auto"`` over all questions, each with its own weights (:func:`tag_bench.measured.of_sets`)."""
    found = []
    for one in judged:
        weights = replace(sure, table=one.weights.table, set=one.weights.set, apart=one.weights.apart)
        chosen = auto.fitted(one.problem, None, weights, one.known).indices
        chance = confidence_of(one.problem, joining(one.problem, one.known, weights), weights, chosen)
        found.append((one.named(chosen), one.example.question.gold, chance))
    return of_sets(found)


def unfit(judged: Sequence[Judged], fits: Mapping[str, float]) -> dict[str, float | None]:
    """The share of questions that are reported as not fitting the corpus, asked with and without their database."""
    with_both = [one for one in judged if one.example.elsewhere is not None]
    weights = Weights({}, {}, fits=fits)
    unfit_of: dict[str, list[bool]] = {"here": [], "elsewhere": []}
    for one in with_both:
        for name, facts in (("here", one.problem.facts), ("elsewhere", one.example.elsewhere or {})):
            note = auto.fitted(replace(one.problem, facts=facts), None, weights, one.known).note
            unfit_of[name].append(note.startswith("nothing"))
    return {name: percent(values) for name, values in unfit_of.items() if values}


def _variant(one: Judged) -> str:
    """The data set and the variant of a question."""
    return f"{one.example.data} {one.example.variant}".strip()


def fitted(given: Given) -> Fitted:
    """The weights of the default method, its confidence, and the chance that a question fits the corpus."""
    examples = [example for folder in given.folders for example in read_examples(folder, given.questions, given.cache)]
    examples += read_names(given.folders, given.questions, given.cache)
    examples += [one for folder in given.folders for one in read_alone(folder, given.questions, given.cache)]
    fold_of = folds(examples)
    out = [
        one for mine, without in left_out(examples, lambda one: one.data, fit_stages) for one in judge(mine, without)
    ]
    crossed = left_out(examples, lambda one: fold_of[one.data, one.database], fit_stages)
    cross = [one for mine, without in crossed for one in judge(mine, without)]
    report: dict[str, Any] = {"left_out": {}, "cross_database": {}, "auto": {}, "unfit": {}}
    for name, mine in grouped(out, _variant).items():
        report["left_out"][name] = recalls(mine)
    for name, mine in grouped(cross, _variant).items():
        report["cross_database"][name] = recalls(mine)
        # Weights fitted on the other data sets, if there are any.
        others = [one for one in cross if one.example.data != mine[0].example.data] or cross
        complete, fits = fit_confidence(others)
        report["auto"][name] = automatic(mine, Weights({}, {}, complete))
        report["unfit"][name] = unfit(mine, fits)
    final = fit_stages(examples)
    complete, fits = fit_confidence(out or cross)
    parts = {"table": final.table, "set": final.set, "complete": complete, "fits": fits}
    return Fitted({**{name: rounded(part) for name, part in parts.items()}, **rounded({"apart": final.apart})}, report)
