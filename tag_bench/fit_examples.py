"""What ``tag_bench fit`` fits on: questions of several benchmarks, each with the evidence for its likeliest tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from tag_bench.data import Dataset, Question, of_half, read_dataset
from tagframe.embed import get_embedder
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.methods.weights import Weights
from tagframe.retrieval.problem import SelectionProblem, best_first
from tagframe.retrieval.question import Question as Asked
from tagframe.retrieval.signals import SIGNALS, facts_of, gather, near_duplicates

LIKELY = 120
"""Tables of a question that are kept: those that stand out, and beside them some at random."""

AT_RANDOM = 40

DOUBLE = 0.2
"""The weight of questions that say less than others: asked in other words, or of tables without rows."""

SEED = 0

_ROUGH = ("dense_apart", "lexical_apart", "words_apart", "neighbour", "value")


@dataclass(frozen=True, eq=False)
class Example:
    """One question, over the tables that it may need.

    Attributes:
        data: the benchmark's name.
        variant: "", "hidden", "synonyms" or "own".
        index: of the corpus.
        question: as asked.
        reported: whether it is one of those that figures are made of, where the data has a half for that.
        weight: among other questions.
        tables: shape (n,), positions of the tables in the corpus.
        ids: of those, in lower case.
        problem: over those, all but the first stage's score.
        gold: places among them that are needed, or None where the corpus lacks one.
        elsewhere: the facts of the question in a corpus without its database; None where there is no other.
    """

    data: str
    variant: str
    index: RetrievalIndex
    question: Question
    reported: bool
    weight: float
    tables: npt.NDArray[np.intp]
    ids: tuple[str, ...]
    problem: SelectionProblem
    gold: tuple[int, ...] | None
    elsewhere: Mapping[str, float] | None

    def scored(self, weights: Weights, count: int) -> tuple[npt.NDArray[np.intp], SelectionProblem]:
        """The places and the problem of the tables of the best first stage's score."""
        prior = weights.prior(self.problem.signals)
        places = np.sort(best_first(prior)[:count])
        among = np.ix_(places, places)
        problem = replace(
            self.problem,
            r=prior[places],
            fine=self.problem.fine[:, places],
            signals=self.problem.signals[places],
            source=self.problem.source[places],
            link=self.problem.link[among],
            similarity=near_duplicates(self.index, self.tables[places].tolist()),
            anchor=self.problem.anchor[places],
        )
        return places, problem


def read_examples(folder: Path, count: int) -> list[Example]:
    """The questions of a benchmark as they are asked, and once more in a harder way.

    That is in other words where the data has them; in the question's own database where the tables have no rows, as in
    a warehouse; else with one database made of all.

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        count: of questions of each way, drawn at random.
    """
    data = read_dataset(folder)
    with_rows = any(table.rows is not None for table in data.corpus.profiles)
    weight = 1.0 if with_rows else DOUBLE
    reported = frozenset(
        question.database.lower() for question in of_half(folder, "report", data.questions)
    ) if (folder / "halves.json").is_file() else None  # fmt: skip
    found = list(_examples(data, "", count, weight, reported))
    if reported is not None:
        return found + list(_examples(read_dataset(folder, synonyms=True), "synonyms", count, DOUBLE, reported))
    if with_rows:
        return found + list(_examples(read_dataset(folder, hide_database=True), "hidden", count // 2, weight, None))
    parts: dict[str, list[Question]] = defaultdict(list)
    for question in _drawn(data.questions, count):
        parts[question.database].append(question)
    for database, questions in sorted(parts.items()):
        own = replace(data.of(database), questions=tuple(questions))
        found += _examples(own, "own", len(questions), weight, None)
    return found


def _drawn(questions: Sequence[Question], count: int) -> list[Question]:
    if len(questions) <= count:
        return list(questions)
    return [questions[place] for place in sorted(np.random.default_rng(SEED).choice(len(questions), count, False))]


def _examples(
    data: Dataset, variant: str, count: int, weight: float, reported: frozenset[str] | None
) -> Iterator[Example]:
    index = RetrievalIndex(data.corpus, get_embedder(), declared_keys=False, described=data.described)
    if reported is None:
        drawn = _drawn(data.questions, count)
    else:  # both halves: one is fitted on, figures are made of the other
        halves = [[one for one in data.questions if (one.database.lower() in reported) is half] for half in (0, 1)]
        drawn = [one for half in halves for one in _drawn(half, count)]
    place = {table.id.lower(): position for position, table in enumerate(index.tables)}
    rough = [SIGNALS.index(name) for name in _ROUGH]
    random = np.random.default_rng(SEED)
    for question in tqdm(drawn, desc=f"{data.name} {variant}".strip(), unit="question", disable=None):
        asked = Asked.of(question.text)
        evidence = gather(index, asked)
        known = all(table in place for table in question.gold)
        gold = [place[table] for table in question.gold if table in place]
        likely = best_first(evidence.signals[:, rough].sum(axis=1))[:LIKELY]
        others = random.choice(len(index.tables), min(AT_RANDOM, len(index.tables)), replace=False)
        kept = np.union1d(np.union1d(likely, others), np.array(gold, dtype=np.int64)).astype(np.intp)
        tables = tuple(kept.tolist())
        own = index.database == index.database[gold[0]] if gold else np.ones(len(index.tables), dtype=bool)
        yield Example(
            data.name,
            variant,
            index,
            question,
            reported is None or question.database.lower() in reported,
            weight,
            kept,
            tuple(index.tables[table].id.lower() for table in tables),
            SelectionProblem(
                r=np.zeros(len(kept)),
                fine=evidence.rows[:, kept],
                kind=evidence.kind,
                row_weight=evidence.weight,
                signals=evidence.signals[kept],
                source=index.database[kept],
                link=index.links.matrix(tables),
                facts=evidence.facts,
            ),
            tuple(sorted(np.searchsorted(kept, gold).tolist())) if known else None,
            None if own.all() else facts_of(index, asked, evidence, ~own),
        )
