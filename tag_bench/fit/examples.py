"""The data of ``tag_bench fit``: questions of several benchmarks, each with the evidence for its likeliest tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tag_bench.cache import Cache, CachedEmbedder, code_state
from tag_bench.data import SEED, Dataset, Question, drawn, of_half, read_dataset, read_halves
from tag_bench.records import with_progress
from tagframe.corpus import Corpus
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.embed import Embedder, get_embedder
from tagframe.retrieval.families import mixed_copies
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.methods.weights import Weights
from tagframe.retrieval.problem import SelectionProblem, best_first
from tagframe.retrieval.question import Question as RetrievalQuestion
from tagframe.retrieval.signals import SIGNALS, facts_of, gather, near_duplicates, rows_of

LIKELY = 80
"""The tables kept for a question: those with the highest scores, and some at random."""

AT_RANDOM = 24

DOUBLE = 0.2
"""The weight of questions in another wording, relative to the original ones."""

OF_NAMES = 0.25
"""The weight of questions from a benchmark without rows: they make the fit worse for data with known values."""

_FOLLOWS_FROM = (
    "tag_bench/data.py", "tag_bench/fit/examples.py",
    "tag_bench/fit/worlds.py", "tagframe/retrieval", "tagframe/keys", "tagframe/corpus", "tagframe/embed",
)  # fmt: skip
"""The modules that the examples depend on; they do not depend on tagframe.retrieval.methods."""

_ROUGH = ("dense_apart", "lexical_apart", "words_apart", "neighbour", "value")


@dataclass(frozen=True, eq=False)
class Example:
    """One question with the tables that it may need; only arrays, so that it can be stored.

    Attributes:
        data: the benchmark's name.
        variant: "", "hidden", "synonyms", "own", "names" or "alone".
        question: as asked.
        reported: whether it is used for figures only, if the data has a half for that.
        weight: relative to other questions.
        ids: shape (n,), of the tables, in lower case.
        problem: over these tables, without the first stage's score.
        gold: positions of the needed tables, or None if one is missing in the corpus.
        elsewhere: the facts of the question in a corpus without its database; None if not known.
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

    @property
    def database(self) -> str:
        """That the question was written for."""
        return self.question.database

    def scored(self, weights: Weights, count: int) -> tuple[npt.NDArray[np.intp], SelectionProblem]:
        """The positions and the problem of the tables with the highest scores of the first stage."""
        prior = weights.prior(self.problem.signals)
        positions = np.sort(best_first(prior)[:count]).astype(np.intp)
        among = np.ix_(positions, positions)
        problem = SelectionProblem(
            r=prior[positions],
            fine=self.problem.fine[:, positions],
            kind=self.problem.kind,
            row_weight=self.problem.row_weight,
            signals=self.problem.signals[positions],
            source=self.problem.source[positions],
            link=self.problem.link[among],
            refers=self.problem.refers[among],
            similarity=self.problem.similarity[among],
            mixed=self.problem.mixed[among],
            facts=self.problem.facts,
        )
        return positions, problem


def read_examples(folder: Path, count: int, cache: Path | None = None) -> list[Example]:
    """The questions of a benchmark as they are, and once more in a harder variant.

    The harder variant is another wording, if the data has one. For tables without rows it is the question's own
    database, as in a warehouse. Otherwise all tables are put into one database.

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        count: of questions per variant, drawn at random.
        cache: a folder for slow results: vectors of texts, and the examples, until the code behind them changes.
    """
    maker = Maker.of(cache)
    data = read_dataset(folder)
    reported = read_halves(folder).get("report")
    weight = 1.0 if has_rows(data) else OF_NAMES
    found = maker.examples(data.name, "", [data], count, weight, reported)
    if reported is not None:
        return found + maker.examples(
            data.name, "synonyms", [read_dataset(folder, synonyms=True)], count, DOUBLE, reported
        )
    if has_rows(data):
        hidden = [read_dataset(folder, hide_database=True)]
        return found + maker.examples(data.name, "hidden", hidden, count // 2, weight, None)
    own = data.by_database(drawn(data.questions, count))
    return found + maker.examples(data.name, "own", own, count, weight, None)


def read_names(folders: Sequence[Path], count: int, cache: Path | None = None) -> list[Example]:
    """The questions of several benchmarks with names only: all their tables are in one corpus, without rows.

    This is like a lake of which only the schema is known. Benchmarks without rows are left out.

    Args:
        folders: as for :func:`read_examples`.
        count: as for :func:`read_examples`, but half as many are drawn.
        cache: as for :func:`read_examples`.
    """
    maker = Maker.of(cache)
    read = [(folder, read_dataset(folder)) for folder in folders]
    read = [(folder, data) for folder, data in read if has_rows(data)]
    corpus = Corpus(bare(table) for _, data in read for table in data.corpus.profiles)
    described = Corpus(bare(table) for _, data in read for table in data.described.profiles)
    examples = []
    for folder, data in read:
        large = Dataset(data.name, corpus, described, data.questions)
        among = "+".join(other.name for _, other in read)
        examples += maker.examples(
            data.name, "names", [large], count // 2, 1.0, read_halves(folder).get("report"), among
        )
    return examples


def read_alone(folder: Path, count: int, cache: Path | None = None) -> list[Example]:
    """The questions of a benchmark whose tables have rows, each in its own database.

    In a single database, other facts show whether a question fits than in a corpus of many databases. The facts
    ``elsewhere`` are those of the question in another database of the benchmark.

    Args:
        folder: as for :func:`tag_bench.data.read_dataset`.
        count: of questions; half as many are drawn, from the half for reporting if the data has one.
        cache: as for :func:`tag_bench.fit.examples.read_examples`.
    """
    data = read_dataset(folder)
    if not has_rows(data):
        return []  # these are asked so as they are
    counted = of_half(folder, "report", data.questions) if read_halves(folder) else data.questions
    own = data.by_database(drawn(counted, count // 2))
    maker = Maker.of(cache)
    made: dict[str, list[Example]] = defaultdict(list)
    for example in maker.examples(data.name, "alone", own, count // 2, DOUBLE, None):
        made[example.question.database.lower()].append(example)
    found = []
    for position, part in enumerate(own):
        other = own[position - 1]
        index = RetrievalIndex(other.corpus, maker.embedder, declared_keys=False, described=other.described)
        for example in made[part.questions[0].database.lower()]:
            facts = gather(index, RetrievalQuestion.of(example.question.text)).facts if other is not part else None
            found.append(replace(example, elsewhere=facts))
    return found


def has_rows(data: Dataset) -> bool:
    """Whether any of the tables has rows."""
    return any(table.rows is not None for table in data.corpus.profiles)


def bare(table: TableProfile) -> TableProfile:
    """The table without facts from its rows, and without keys."""
    columns = (
        ColumnProfile(one.name, one.position, one.family, one.declared_type, description=one.description)
        for one in table.columns
    )
    return replace(table, columns=tuple(columns), rows=None, primary_key=(), foreign_keys=(), unique=())


@dataclass(frozen=True)
class Maker:
    """Makes examples, or loads stored ones.

    Attributes:
        cache: the folder.
        embedder: one that stores its vectors there; None if there is no embedder.
    """

    cache: Cache
    embedder: CachedEmbedder | None

    @classmethod
    def of(cls, cache: Path | None) -> Maker:
        """A maker for a folder."""
        stored, embedder = Cache(cache), get_embedder()
        return cls(stored, None if embedder is None else CachedEmbedder(embedder, stored))

    def examples(
        self,
        name: str,
        variant: str,
        parts: Sequence[Dataset],
        count: int,
        weight: float,
        reported: frozenset[str] | None,
        among: str = "",
    ) -> list[Example]:
        """Examples of some datasets; ``among`` names the benchmarks of the tables, if it is not only ``name``."""
        by = None if self.embedder is None else self.embedder.name
        state = " ".join([code_state(*_FOLLOWS_FROM), *map(str, (by, LIKELY, AT_RANDOM, count, among))])

        def make() -> list[Example]:
            made = [one for part in parts for one in _examples(part, self.embedder, variant, count, weight, reported)]
            if self.embedder is not None:
                self.embedder.save()
            return made

        return self.cache.get("-".join(filter(None, (name, variant))), state, make)


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
    position_of = {
        id.lower(): position for position, one in enumerate(index.families) for id in one.parts or (one.table.id,)
    }
    rough = [SIGNALS.index(name) for name in _ROUGH]
    random = np.random.default_rng(SEED)
    for question in with_progress(chosen, f"{data.name} {variant}".strip()):
        retrieval_question = RetrievalQuestion.of(question.text)
        evidence = gather(index, retrieval_question)
        known = all(table in position_of for table in question.gold)
        gold = sorted({position_of[table] for table in question.gold if table in position_of})
        if known:  # of a table in pieces, the first one
            question = replace(question, gold=frozenset(index.tables[position].id.lower() for position in gold))
        likely = best_first(evidence.signals[:, rough].sum(axis=1))[:LIKELY]
        others = random.choice(len(index.tables), min(AT_RANDOM, len(index.tables)), replace=False)
        chosen_rows = np.union1d(np.union1d(likely, others), np.array(gold, dtype=np.int64)).astype(np.intp)
        tables = tuple(chosen_rows.tolist())
        alike = near_duplicates(index, tables)
        own = index.database == index.database[gold[0]] if gold else np.ones(len(index.tables), dtype=bool)
        yield Example(
            data.name,
            variant,
            question,
            reported is None or question.database.lower() in reported,
            weight,
            tuple(index.tables[table].id.lower() for table in tables),
            SelectionProblem(
                r=np.zeros(len(chosen_rows)),
                **rows_of(index, retrieval_question, evidence, tables),
                signals=evidence.signals[chosen_rows],
                source=index.database[chosen_rows],
                link=index.links.matrix(tables),
                refers=index.links.refers(tables),
                similarity=alike,
                mixed=mixed_copies([index.tables[table] for table in tables], alike),
                facts=evidence.facts,
            ),
            tuple(sorted(np.searchsorted(chosen_rows, gold).tolist())) if known else None,
            None if own.all() else facts_of(index, retrieval_question, evidence, ~own),
        )
