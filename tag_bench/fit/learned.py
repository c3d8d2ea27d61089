"""``tag_bench fit learned``: the weights of facts that were learned from statements, on data with SQL.

From each data set, some questions are learned with their SQL, or only their SQL, and others are asked; near-duplicates
are left out. As in ``tag_bench fit tables``, whose weights stay, the first weights rank every needed table above the
others, and the second give the needed set the highest probability among all small sets. In addition, two more values
are fitted: the number of statements that count as much as all other evidence, and, if only names are known otherwise,
how much the learned facts raise the confidence in a set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench.cache import Cache, CachedEmbedder
from tag_bench.data import SEED, Dataset, Question, drawn, in_one_database, read_dataset
from tag_bench.fit import Fitted, Given, grouped, left_out, recall, rounded, shares
from tag_bench.fit.examples import bare, has_rows
from tag_bench.fit.likelihood import fit_choices, hard_ones
from tag_bench.lessons import Lesson
from tag_bench.measured import percent, reliability
from tag_bench.records import with_progress
from tagframe.corpus.vectors import VectorStore
from tagframe.embed import get_embedder
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.learned import BELIEVED, FEW, SETS, SIGNALS
from tagframe.retrieval.methods import auto
from tagframe.retrieval.methods.auto import among_promising, confidence_of, learned_sets, pool, posterior
from tagframe.retrieval.methods.posterior import BARE
from tagframe.retrieval.methods.sets import LARGEST, set_features, set_masks
from tagframe.retrieval.methods.weights import Weights, shipped_weights
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.question import Question as RetrievalQuestion
from tagframe.retrieval.signals import Evidence, gather

COUNTS = (10, 30, 100)
"""The numbers of learned questions."""

COUNTS_OF_FEW = (1, 2, 5, *COUNTS)
"""The numbers of learned questions for fitting the effect of few statements."""

PSEUDO_COUNTS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""The values to try for the two weights of few statements."""

ODDS = tuple(2.0**power for power in range(14))
"""The values to try for the weight of learned facts in the confidence."""

SIZES = (5, 10)
DRAWS = 2
QUESTIONS_A_DRAW = 40
"""The number of questions asked with each draw."""

_PAIRS = np.array(sorted(product(PSEUDO_COUNTS, PSEUDO_COUNTS), key=lambda pair: (sum(pair), pair)))

_LEAST = 6
"""A warehouse needs at least this many questions, so that some can be learned for the others."""

LIKELY = 40
_HARDEST = 120
_RANDOM = 40
_PENALTY = 1e-3
_ROUNDS = 3
_START = (0.7, 0.3, 4.0, 4.0, 1.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A question over an index, with the facts learned from ``count`` others. ``of_names``: the benchmark's rows are
    left out; such questions are used only to fit the confidence."""

    data: str
    index: RetrievalIndex
    question: Question
    as_read: RetrievalQuestion
    found: Evidence
    gold: tuple[int, ...]
    count: int
    of_names: bool

    def signals(self, weights: Weights) -> tuple[Floats, list[bool]]:
        """The learned features of the likeliest and the needed tables, and which tables are needed."""
        assert self.found.known is not None
        weights = weights.for_question(self.found.facts)
        of_tables = weights.of_learned(SIGNALS)
        rows = self.found.known.signals(self.found.vector, weights.prior(self.found.signals), of_tables)
        best = np.argsort(-(rows @ of_tables), kind="stable")[:LIKELY]
        compared = np.union1d(best, np.array(self.gold))
        return rows[compared], np.isin(compared, self.gold).tolist()

    def sets(self, weights: Weights, random: np.random.Generator) -> tuple[Floats, int] | None:
        """The learned features of the needed set, the hardest others and some more, and which one is needed."""
        prepared = among_promising(self.index, self.as_read, self.found, weights=weights)
        positions = pool(prepared.problem)
        bit_of = {prepared.tables[position]: bit for bit, position in enumerate(positions.tolist())}
        if len(self.gold) > LARGEST or not {*self.gold} <= bit_of.keys():
            return None
        weights = weights.for_question(self.found.facts)
        utilities = weights.utilities(set_features(prepared.problem, positions))
        rows = learned_sets(prepared.problem, positions, utilities)
        goal = sum(1 << bit_of[table] for table in self.gold)
        needed = int(np.flatnonzero(set_masks(len(positions)) == goal)[0])
        rough = rows @ np.array([1.0, 1.0, 0.0, 4.0, 4.0])
        compared, position = hard_ones(rough, needed, _HARDEST, _RANDOM, random)
        return rows[compared], position


def sureness_of(case: Case, weights: Weights) -> tuple[float, float, float, bool]:
    """The similarity of the nearest examples; the confidence of ``k="auto"`` without and with all learned facts; and
    whether its set is complete."""
    return _sureness_of(case, tuple((name, weight) for name, weight in weights.learned.items() if name not in BELIEVED))


@cache
def _sureness_of(case: Case, learned: tuple[tuple[str, float], ...]) -> tuple[float, float, float, bool]:
    weights = replace(shipped_weights(), learned=dict(learned))
    prepared = among_promising(case.index, case.as_read, case.found, weights=weights)
    known = posterior(prepared.problem, weights)
    chosen = auto.fitted(prepared.problem, None, weights, known).indices
    least, most = (
        confidence_of(prepared.problem, known, replace(weights, learned={**weights.learned, BELIEVED[0]: odds}), chosen)
        for odds in (0.0, 1e12)
    )
    like = 0.0 if prepared.problem.examples is None else prepared.problem.examples.like
    return like, least, most, {*case.gold} <= {prepared.tables[position] for position in chosen}


def cases(folder: Path, count: int, embedder: CachedEmbedder) -> Iterator[Case]:
    """Questions of a benchmark with facts learned from others, over all its tables or those of one warehouse. If it has
    rows, the questions are added once more over the names of all its tables as one database."""
    data = read_dataset(folder)
    chosen = replace(data, questions=drawn(data.questions, count))
    parts = [chosen]
    if not has_rows(data) and len({one.database for one in data.questions}) > 1:
        parts = [part for part in data.by_database(data.questions) if len(part.questions) >= _LEAST]
    for part in with_progress(parts, data.name, "database"):
        yield from _cases(part, embedder)
    if has_rows(data):
        tables, described = ([*map(bare, corpus.profiles)] for corpus in (data.corpus, data.described))
        lake = in_one_database(data.name, tables, described, chosen.questions)
        yield from _cases(lake, embedder, of_names=True)


def _cases(data: Dataset, embedder: CachedEmbedder, *, of_names: bool = False) -> Iterator[Case]:
    index = RetrievalIndex(data.corpus, embedder, declared_keys=False, described=data.described)
    position_of = {table.id.lower(): position for position, table in enumerate(index.tables)}
    fit = [one for one in data.questions if one.gold and one.gold <= position_of.keys()]
    gathered: dict[int, tuple[RetrievalQuestion, Evidence]] = {}
    vectors = VectorStore()
    for count in sorted({min(count, len(fit) - 1) for count in COUNTS_OF_FEW}):
        for seed in range(SEED, SEED + DRAWS + 1):
            lesson = Lesson.drawn(data, index, count, seed, vectors, with_questions=seed < SEED + DRAWS)
            order = np.random.default_rng([seed, count]).permutation(len(fit))[:QUESTIONS_A_DRAW]
            for question in [fit[number] for number in order.tolist()] if lesson is not None else []:
                if question.position not in gathered:
                    as_read = RetrievalQuestion.of(question.text)
                    gathered[question.position] = as_read, gather(index, as_read)
                as_read, found = gathered[question.position]
                assert lesson is not None
                gold = tuple(sorted(position_of[table] for table in question.gold))
                found = lesson.apply(found, question, as_read)
                yield Case(data.name, index, question, as_read, found, gold, count, of_names)


def fit(group: Sequence[Case], weights: Weights) -> Weights:
    """The shipped weights, with those of learned facts fitted to some questions."""
    every = group
    group = [case for case in group if case.count >= min(COUNTS) and not case.of_names]
    found = replace(weights, learned=dict(zip(SIGNALS, _START, strict=True)))
    share = shares([case.data for case in group], 0.5)
    for _ in range(_ROUNDS):  # what is read together follows from what is likely, and that from the weights
        rows = [case.signals(found) for case in group]
        goals = [np.flatnonzero(gold).tolist() for _, gold in rows]
        found = replace(
            found, learned=fit_choices(SIGNALS, [part for part, _ in rows], goals, share, _PENALTY, apart=True)
        )
    random = np.random.default_rng(SEED)
    sets = [case.sets(found, random) for case in group]
    usable = [number for number, one in enumerate(sets) if one is not None]
    parts = [one for one in sets if one is not None]
    every_set, right = [part for part, _ in parts], [[goal] for _, goal in parts]
    size = np.concatenate(every_set)[:, SETS.index("size")]
    of_sets = fit_choices(SETS, every_set, right, share[usable], _PENALTY, alike=size)
    found = replace(found, learned={**found.learned, **of_sets})
    return fit_told(every, fit_few(every, found))


def fit_few(group: Sequence[Case], weights: Weights) -> Weights:
    """The weights with the pseudo-counts that give the needed sets the highest probability.

    For each data set, the smallest counts are chosen that are within a standard error of its best ones. Of these, the
    largest are taken, so that few statements are evidence against a table in no data set. (If sets without rows are too
    large anyway, as in Spider 2's warehouses, any reason to make them smaller looks like a gain.)
    """
    random = np.random.default_rng(SEED)
    plain = replace(weights, learned={name: weight for name, weight in weights.learned.items() if name not in FEW})
    own = plain.of_learned(SETS) * [name != "size" for name in SETS]
    gains: dict[str, list[list[float]]] = defaultdict(list)
    for case in group:
        found = None if case.of_names else case.sets(plain, random)
        if found is not None and case.found.known is not None:
            rows, goal = found
            before, size = rows[:, SETS.index("utility")], rows[:, SETS.index("size")] * plain.learned["size"]
            known = case.index.has_rows.mean() * case.found.facts["known"]
            prior = plain.for_question(case.found.facts).prior(case.found.signals)
            gain = []
            for few in _PAIRS:
                of_size, of_all = case.found.known.shares(few, known, case.found.vector, prior)
                scores = before + of_all * (rows @ own + of_size * size - before)
                gain.append(float(scores[goal] - scores.max() - np.log(np.exp(scores - scores.max()).sum())))
            gains[case.data].append(gain)
    best = np.max([_PAIRS[_least_of_best(np.array(one))] for one in gains.values()], axis=0)
    return replace(plain, learned={**plain.learned, **dict(zip(FEW, best.tolist(), strict=True))})


def _least_of_best(gain: Floats) -> int:
    """The first column whose sum is within a standard error of the best one: shape (cases, columns)."""
    lost = gain - gain[:, [int(gain.sum(axis=0).argmax())]]
    return int(np.flatnonzero(lost.sum(axis=0) >= -np.sqrt((lost**2).sum(axis=0)))[0])


def fit_told(group: Sequence[Case], weights: Weights) -> Weights:
    """The weights with the odds that give the best confidence if only names are known otherwise.

    The best odds are found for each data set, and the smallest of them is taken, so that learned facts are not
    overrated in any data set.
    """
    bare_ones = [case for case in group if case.found.facts["bare"] > BARE]
    by_data = {
        data: [sureness_of(case, weights) for case in of]
        for data, of in grouped(bare_ones, lambda case: case.data).items()
    }

    def surprise(odds: float, rows: Floats) -> float:
        sure = np.clip(_heeded(rows, odds), 1e-3, 1 - 1e-3)
        return -float(np.log(np.where(rows[:, 3], sure, 1 - sure)).sum())

    best = [min(ODDS, key=partial(surprise, rows=np.array(rows))) for rows in by_data.values()]
    return replace(weights, learned={**weights.learned, BELIEVED[0]: min(best, default=0.0)})


def _heeded(rows: Floats, odds: float) -> Floats:
    """The confidence in sets by the rows of :func:`told`."""
    like, least, most, _ = rows.T
    return np.asarray(least + odds * like / (1 + odds * like) * (most - least))


def sureness(group: Sequence[Case], weights: Weights) -> dict[str, dict[str, float | None]]:
    """The calibration of the confidence with names only, by the number of learned questions, or of learned SQL."""

    def counted(case: Case) -> str:
        assert case.found.known is not None
        return f"{case.count}" if len(case.found.known.questions) else f"{case.count} SQL alone"

    sure_cases = [case for case in group if case.found.known is not None and case.found.facts["bare"] > BARE]
    found = {}
    for name, part in sorted(grouped(sure_cases, counted).items()):
        rows = np.array([sureness_of(case, weights) for case in part])
        sure, truth = _heeded(rows, weights.learned[BELIEVED[0]]), rows[:, 3]
        means = {"CR": percent(truth), "confidence": percent(sure)}
        found[name] = {"questions": len(part), **means, "reliability": reliability(sure, truth)}
    return found


def recalls(group: Sequence[Case], weights: Weights) -> dict[str, dict[str, float | None]]:
    """Recall and complete recall by K over questions with several tables, with and without learned facts."""
    found: dict[str, dict[str, float | None]] = {}
    several = [case for case in group if len(case.gold) > 1 and not case.of_names]
    for name, size in product(("", "plain "), SIZES):
        chosen_for = []
        for case in several:
            evidence = replace(case.found, known=None) if name else case.found
            prepared = among_promising(case.index, case.as_read, evidence, k=size, weights=weights)
            chosen = auto.fitted(prepared.problem, size, weights).indices
            chosen_for.append(({prepared.tables[position] for position in chosen}, {*case.gold}))
        found[f"{name}{size}"] = recall(chosen_for)
    return found


def fitted(given: Given) -> Fitted:
    """The weights of learned facts, beside the shipped ones."""
    encoder = get_embedder()
    if encoder is None:
        raise click.ClickException("an embedder is needed to compare questions, and there is none")
    embedder = CachedEmbedder(encoder, Cache(given.cache))
    every = [case for folder in given.folders for case in cases(folder, given.questions, embedder)]
    embedder.save()
    shipped = shipped_weights()
    report: dict[str, Any] = {}
    for mine, others in left_out(every, lambda case: case.data, partial(fit, weights=shipped)):
        report[mine[0].data] = {
            **recalls(mine, others),
            "sure": sureness(mine, others),
            "weights": rounded(others.learned),
        }
    return Fitted({"learned": rounded(fit(every, shipped).learned)}, {"left_out": report})
