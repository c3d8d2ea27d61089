"""``tag_bench fit names``: the weights for corpora of which mostly only names are known.

Without rows there is no evidence from values, only from names. So both stages of the default method are fitted again,
on questions over names only: over the tables of all benchmarks (:func:`tag_bench.fit.examples.read_names`), over
benchmarks without rows, and over synthetic warehouses (:mod:`tag_bench.fit.worlds`). Benchmarks with a single database
are not used for the stages, because the fit would adapt to that database.

The confidence in a set over one large database is fitted separately. There are few warehouses, and they differ a lot,
so only few coefficients are fitted, each with a fixed sign. Benchmarks of small databases mostly need one or two
tables, warehouses need more, and the posterior hardly shows how many are needed. So questions are weighted by the
number of needed tables (:data:`NEEDED`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tag_bench.data import read_dataset
from tag_bench.fit import Fitted, Given, grouped, left_out, rounded
from tag_bench.fit.examples import Example, has_rows, read_examples, read_names
from tag_bench.fit.likelihood import fit_logistic
from tag_bench.fit.tables import Judged, automatic, fit_confidence, fit_stages, judge, recalls
from tag_bench.fit.worlds import read_worlds
from tagframe.retrieval.methods import auto
from tagframe.retrieval.methods.auto import completeness
from tagframe.retrieval.methods.posterior import BARE, NAMES, ONE_WAY, doubts, names_features
from tagframe.retrieval.methods.weights import Weights, read_weights, shipped_weights
from tagframe.retrieval.problem import Floats

SEEN = {"log_tables": (0.0, None), "words": (None, 1.0), "known": (None, 1.0), "entropy": (0.0, None)}
"""The facts that show whether the fit has seen a similar database, each with the end of its range that is safe."""

NEEDED = (0.1, 0.225, 0.225, 0.225, 0.225)
"""In each data set, the share of the weight for questions that need 1, 2, 3, 4, and 5 or more tables."""

SLACK = 0.1
"""A fact counts as seen up to this share of the range outside of the seen values."""

PENALTY = np.where([name == "one" for name in NAMES], 0.0, 1e-2)

FEW = 15
"""Questions of a data set that need the same number of tables have half of their full weight if there are this many."""


@dataclass(frozen=True, eq=False)
class AutoAnswer:
    """A question, and the result of ``k="auto"`` for it.

    Attributes:
        data: the benchmark's name.
        world: the variant, and the kind of a synthetic warehouse.
        facts: of the question, with :func:`~tagframe.retrieval.methods.posterior.doubts`.
        features: of the set, shape (len(NAMES),).
        is_complete: whether the set has all needed tables.
        needed: the number of needed tables.
    """

    data: str
    world: str
    facts: dict[str, float]
    features: Floats
    is_complete: bool
    needed: int

    @classmethod
    def of(cls, one: Judged, complete: Mapping[str, float]) -> AutoAnswer:
        """The question, scored with the weights of the chance that a set is complete."""
        example, weights = one.example, replace(one.weights, complete=complete)
        chosen = auto.fitted(one.problem, None, weights, one.known).indices
        facts = {**one.problem.facts, **doubts(one.problem, one.known)}
        chance = completeness(one.problem, one.known, weights, [chosen])[0]
        gold = example.question.gold
        return cls(
            example.data,
            _world(example),
            facts,
            names_features(chance, facts),
            gold <= {one.ids[position] for position in chosen},
            len(gold),
        )

    @property
    def is_large(self) -> bool:
        """Whether it is asked over one large database."""
        return self.facts["bare"] > BARE


def fit_alone(examples: Sequence[Example], known: Weights) -> Weights:
    """Fit both stages; features that occur in no example keep their general weights."""
    databases: dict[str, set[str]] = defaultdict(set)
    for one in examples:
        if one.variant != "made":
            databases[one.data].add(one.question.database)
    found = fit_stages([one for one in examples if len(databases[one.data]) > 1])
    return Weights(_filled(found.table, known.table), _filled(found.set, known.set))


def _filled(found: Mapping[str, float], elsewhere: Mapping[str, float]) -> dict[str, float]:
    return {name: weight or elsewhere.get(name, 0.0) for name, weight in found.items()}


def fit_sure(judged: Sequence[Judged], weights: Weights) -> Weights:
    """The weights with a fitted confidence, from questions that the stages were not fitted on."""
    complete, _ = fit_confidence(judged)
    large = [one for each in judged for one in [AutoAnswer.of(each, complete)] if one.is_large]
    if not large:
        return replace(weights, complete=complete)
    seen = {}
    for name, (least, most) in SEEN.items():
        values = [one.facts[name] for one in large]
        wide = SLACK * (max(values) - min(values))
        seen[name] = (min(values) - wide if least is None else least, max(values) + wide if most is None else most)
    return replace(weights, complete=complete, sure=fit_large(large), seen=seen, spread=_spread(large))


def fit_large(answers: Sequence[AutoAnswer]) -> dict[str, float]:
    """The coefficients of facts that lower the chance; benchmarks with only synthetic large databases count as one."""
    needed = [min(one.needed, len(NEEDED)) for one in answers]
    count = Counter((one.data, number) for one, number in zip(answers, needed, strict=True))
    real = {one.data for one in answers if one.world == "own"}
    share = {name: 1.0 if name in real else 1 / len({name for name, _ in count} - real) for name, _ in count}
    weight = [
        share[one.data] * NEEDED[number - 1] / (count[one.data, number] + FEW)
        for one, number in zip(answers, needed, strict=True)
    ]
    features, truth = np.array([one.features for one in answers]), np.array([one.is_complete for one in answers])
    return fit_logistic(features, truth, np.array(weight), NAMES, PENALTY, ONE_WAY)


def _spread(answers: Sequence[AutoAnswer]) -> float:
    """The typical error of the log odds of a complete set in a data set that was left out."""
    off = []
    for mine, by_others in left_out(sorted(answers, key=lambda one: one.data), lambda one: one.data, fit_large):
        logit = np.array([one.features for one in mine]) @ np.array([by_others[name] for name in NAMES])
        rows, truth = np.stack([logit, np.ones(len(logit))], axis=1), np.array([one.is_complete for one in mine])
        off.append(fit_logistic(rows, truth, np.ones(len(truth)), ("off", "one"), fixed={"off": 1.0})["one"])
    return float(np.sqrt(np.mean(np.square(off)))) if off else 0.0


def read_cases(folders: Sequence[Path], questions: int, cache: Path | None) -> list[Example]:
    """The questions over names only."""
    found: list[Example] = []
    for folder in folders:
        found += read_worlds(folder, cache)
        data = read_dataset(folder)
        if not has_rows(data):
            is_one = len({question.database for question in data.questions}) == 1
            found += [one for one in read_examples(folder, questions, cache) if one.variant or not is_one]
    order = [folder.resolve().name for folder in folders]
    return sorted(found + read_names(folders, questions, cache), key=lambda one: order.index(one.data))


def fitted(given: Given) -> Fitted:
    """Both stages, and the confidence, for corpora of which mostly only names are known."""
    known = shipped_weights() if given.weights is None else read_weights(given.weights)
    cases = read_cases(given.folders, given.questions, given.cache)
    fit = partial(fit_alone, known=known)
    out = {mine[0].data: judge(mine, without) for mine, without in left_out(cases, lambda one: one.data, fit)}
    if not out:  # there is one data set
        out = {given.folders[0].resolve().name: judge(cases, fit(cases))}
    report: dict[str, Any] = {}
    for name, mine in out.items() if len(out) > 1 else []:
        others = fit_sure([one for other, group in out.items() if other != name for one in group], known)
        report[name] = {
            world: {"questions": len(group), **recalls(group), "auto": automatic(group, others)}
            for world, group in sorted(grouped(mine, lambda one: _world(one.example)).items())
        }
    final = fit_sure([one for group in out.values() for one in group], fit(cases))
    parts = {part: rounded(getattr(final, part)) for part in ("table", "set", "complete", "sure")}
    seen = {name: [round(end, 3) for end in ends] for name, ends in final.seen.items()}
    return Fitted({"names": {**parts, "seen": seen, "spread": round(final.spread, 3)}}, {"left_out": report})


def _world(example: Example) -> str:
    return example.question.database.split()[0] if example.variant == "made" else example.variant or "pooled"
