"""What ``tag_bench fit`` fits on: questions of several benchmarks, each with the evidence for its likeliest tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from tag_bench.data import SEED, Dataset, Question, drawn, of_half, read_dataset
from tag_bench.kept import Kept, KeptEmbedder, code_state
from tagframe.embed import Embedder, get_embedder
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.methods.weights import Weights
from tagframe.retrieval.problem import SelectionProblem, best_first
from tagframe.retrieval.question import Question as Asked
from tagframe.retrieval.signals import SIGNALS, facts_of, gather, near_duplicates

LIKELY = 80
"""Tables of a question that are kept: those that stand out, and beside them some at random."""

AT_RANDOM = 24

DOUBLE = 0.2
"""The weight of questions that say less than others: asked in other words, or of tables without rows."""

_FOLLOWS_FROM = (
    "tag_bench/data.py", "tag_bench/spider.py", "tag_bench/spider2.py", "tag_bench/fit_examples.py",
    "tagframe/retrieval", "tagframe/keys", "tagframe/corpus", "tagframe/embed.py",
)  # fmt: skip
"""What the examples follow from; of tagframe.retrieval.methods, none."""

_ROUGH = ("dense_apart", "lexical_apart", "words_apart", "neighbour", "value")


@dataclass(frozen=True, eq=False)
class Example:
    """One question, over the tables that it may need: arrays only, so that it can be kept.

    Attributes:
        data: the benchmark's name.
        variant: "", "hidden", "synonyms" or "own".
        question: as asked.
        reported: whether it is one of those that figures are made of, where the data has a half for that.
        weight: among other questions.
        ids: shape (n,), of the tables, in lower case.
        problem: over those, all but the first stage's score.
        gold: places among them that are needed, or None where the corpus lacks one.
        elsewhere: the facts of the question in a corpus without its database; None where there is no other.
    """

    data: str
    variant: str
    question: Question
    reported: bool
    weight: float
    ids: tuple[str, ...]
    problem: SelectionProblem
    gold: tuple[int, ...] | None
    elsewhere: Mapping[str, float] | None

    def scored(self, weights: Weights, count: int) -> tuple[npt.NDArray[np.intp], SelectionProblem]:
        """The places and the problem of the tables of the best first stage's score."""
        prior = weights.prior(self.problem.signals)
        places = np.sort(best_first(prior)[:count]).astype(np.intp)
        among = np.ix_(places, places)
        problem = SelectionProblem(
            r=prior[places],
            fine=self.problem.fine[:, places],
            kind=self.problem.kind,
            row_weight=self.problem.row_weight,
            signals=self.problem.signals[places],
            source=self.problem.source[places],
            link=self.problem.link[among],
            similarity=self.problem.similarity[among],
            facts=self.problem.facts,
        )
        return places, problem


def read_examples(folder: Path, count: int, cache: Path | None = None) -> list[Example]:
    """The questions of a benchmark as they are asked, and once more in a harder way.

    That is in other words where the data has them; in the question's own database where the tables have no rows, as in
    a warehouse; else with one database made of all.

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        count: of questions of each way, drawn at random.
        cache: a folder for what is costly: vectors of texts, and the questions as they are given here until the code
            that they follow from changes.
    """
    kept = Kept(cache)
    embedder = get_embedder()
    if embedder is not None:
        embedder = KeptEmbedder(embedder, kept)
    state = " ".join([code_state(*_FOLLOWS_FROM), *map(str, (embedder and embedder.name, LIKELY, AT_RANDOM, count))])
    data = read_dataset(folder)
    halves = (folder / "halves.json").is_file()
    reported = (
        frozenset(question.database.lower() for question in of_half(folder, "report", data.questions))
        if halves
        else None
    )

    def examples(variant: str, variants: Sequence[Dataset], most: int, weight: float) -> list[Example]:
        def make() -> list[Example]:
            made = [one for part in variants for one in _examples(part, embedder, variant, most, weight, reported)]
            if isinstance(embedder, KeptEmbedder):
                embedder.save()
            return made

        return kept.get("-".join(filter(None, (data.name, variant))), state, make)

    with_rows = any(table.rows is not None for table in data.corpus.profiles)
    weight = 1.0 if with_rows else DOUBLE
    found = examples("", [data], count, weight)
    if reported is not None:
        return found + examples("synonyms", [read_dataset(folder, synonyms=True)], count, DOUBLE)
    if with_rows:
        return found + examples("hidden", [read_dataset(folder, hide_database=True)], count // 2, weight)
    parts: dict[str, list[Question]] = defaultdict(list)
    for question in drawn(data.questions, count):
        parts[question.database].append(question)
    own = [replace(data.of(database), questions=tuple(asked)) for database, asked in sorted(parts.items())]
    return found + examples("own", own, count, weight)


def _examples(
    data: Dataset,
    embedder: Embedder | None,
    variant: str,
    count: int,
    weight: float,
    reported: frozenset[str] | None,
) -> Iterator[Example]:
    index = RetrievalIndex(data.corpus, embedder, declared_keys=False, described=data.described)
    if reported is None:
        chosen = drawn(data.questions, count)
    else:  # both halves: one is fitted on, figures are made of the other
        halves = [
            [one for one in data.questions if (one.database.lower() in reported) is half] for half in (False, True)
        ]
        chosen = tuple(one for half in halves for one in drawn(half, count))
    place = {table.id.lower(): position for position, table in enumerate(index.tables)}
    rough = [SIGNALS.index(name) for name in _ROUGH]
    random = np.random.default_rng(SEED)
    for question in tqdm(chosen, desc=f"{data.name} {variant}".strip(), unit="question", disable=None):
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
            question,
            reported is None or question.database.lower() in reported,
            weight,
            tuple(index.tables[table].id.lower() for table in tables),
            SelectionProblem(
                r=np.zeros(len(kept)),
                fine=evidence.rows[:, kept],
                kind=evidence.kind,
                row_weight=evidence.weight,
                signals=evidence.signals[kept],
                source=index.database[kept],
                link=index.links.matrix(tables),
                similarity=near_duplicates(index, tables),
                facts=evidence.facts,
            ),
            tuple(sorted(np.searchsorted(kept, gold).tolist())) if known else None,
            None if own.all() else facts_of(index, asked, evidence, ~own),
        )
