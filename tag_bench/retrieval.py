"""``tag_bench retrieval``: quality and speed of finding the tables of benchmark questions."""

from __future__ import annotations

import functools
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench import CACHE, DATASET, MethodName, benchmark, number
from tag_bench.cache import Cache, CachedEmbedder
from tag_bench.data import Dataset, Question, drawn, of_half, read_dataset, read_decompositions
from tag_bench.hardness import hardness
from tag_bench.lessons import Lesson
from tag_bench.measured import of_sets, spread, timed
from tag_bench.records import RECORDS, SEEDED, Record, Records, settings_of
from tagframe import config
from tagframe.corpus.vectors import VectorStore
from tagframe.embed import get_embedder
from tagframe.errors import ReplayMiss
from tagframe.evaluation.scores import scores_of
from tagframe.keys.components import spanning_tree
from tagframe.lm import LM
from tagframe.retrieval import Method, method_named
from tagframe.retrieval import Question as RetrievalQuestion
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.method import WithSubqueries
from tagframe.retrieval.methods import CRUSH, Auto
from tagframe.retrieval.methods.join_aware import FIBEN_CANDIDATES, JoinAware
from tagframe.retrieval.methods.mip import MIP, NO_SOLUTION
from tagframe.retrieval.methods.weights import read_weights
from tagframe.retrieval.problem import LINKED, Floats, best_first

AUTO = 0
"""The K that means ``k="auto"``."""

DRAWS = 5
"""How often the learned questions are drawn."""

MEASURES = ("P", "R", "F1", "CR", "exact")
"""The scores of one question, as :class:`tagframe.evaluation.scores.Scores` has them."""


def spanning_forest(weights: Floats, members: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], float]:
    """The maximum spanning forest of the members over pairs of positive weight: its edges and its weight.

    Args:
        weights: shape (n, n), symmetric.
        members: indices of the tables to connect.

    >>> spanning_forest(np.array([[0, 0.5, 0.2], [0.5, 0, 0.4], [0.2, 0.4, 0]]), [0, 1, 2])
    (((0, 1), (1, 2)), 0.9)
    """
    nodes = np.sort(np.asarray(members, dtype=np.int64))
    rows, columns = np.triu_indices(len(nodes), 1)
    values = weights[nodes[rows], nodes[columns]]
    positive = [position for position in best_first(values).tolist() if values[position] > 0]
    forest = spanning_tree(range(len(nodes)), [(int(rows[position]), int(columns[position])) for position in positive])
    edges = tuple(
        (int(nodes[rows[positive[position]]]), int(nodes[columns[positive[position]]])) for position in forest
    )
    return edges, float(sum(values[positive[position]] for position in forest))


def _name(size: int) -> str:
    return "auto" if size == AUTO else str(size)


def chosen_tables(
    index: RetrievalIndex,
    method: Method,
    question: Question,
    as_read: RetrievalQuestion,
    known: Any,
    sizes: Sequence[int],
) -> Record:
    """What a method chooses for a question by some evidence, for every K, as JSON values.

    Ids are in lower case, best first. A confidence is the chance that no needed table is missing, None if the method
    gives none. Tables are connected by link scores. Notes and facts (the status of a program, hops) are the method's;
    a program without a solution has no tables, whatever took its place. ``gold_ranks`` are those of a ranking, from 1.

    Args:
        index: of the benchmark's tables.
        method: the selector.
        question: with its gold tables.
        as_read: the question as the method reads it.
        known: the relevance, or the evidence.
        sizes: the Ks; 0 stands for "auto".
    """
    seconds, prepared = timed(lambda: method.prepare(index, as_read, known, None, max(sizes) or None))
    found: Record = {"gold_tables": sorted(question.gold), "hardness": hardness(question.sql) if question.sql else None}
    found |= {name: {} for name in ("tables", "scores", "connected", "confidence", "notes", "facts")}
    if len(prepared.tables) == len(index.tables):
        order = [index.tables[position].id.lower() for position in best_first(prepared.problem.r)]
        found["gold_ranks"] = sorted(order.index(table) + 1 for table in question.gold if table in order)
    found["seconds"] = {"prepare": seconds}
    for size in sizes:
        name = _name(size)
        found["seconds"][f"choose@{size}"], selection = timed(partial(method.select, prepared.problem, size or None))
        facts = dict(selection.facts)
        is_solved = not (isinstance(method, MIP) and facts["status"] in (NO_SOLUTION, "infeasible"))
        chosen = [prepared.tables[position] for position in selection.indices if is_solved]
        ids = [index.tables[table].id.lower() for table in chosen]
        links = index.links.matrix(chosen)
        edges, _ = spanning_forest(np.where(links >= LINKED, links, 0.0), range(len(chosen)))
        found["tables"][name], found["confidence"][name] = ids, selection.confidence
        found["connected"][name] = len(edges) == len(chosen) - 1
        found["facts"][name] = facts
        found["notes"][name] = "; ".join(filter(None, (selection.note, method.note(index, prepared))))
        measures = zip(MEASURES, scores_of(ids, question.gold), strict=True)
        found["scores"] |= {f"{measure}@{name}": float(value) for measure, value in measures}
    return found


def record_of(draws: Sequence[Record]) -> Record:
    """The record of one question: what was found, or the ``draws`` with each of its lessons and their mean scores."""
    if len(draws) == 1:
        return draws[0]
    mean = {name: statistics.fmean(draw["scores"][name] for draw in draws) for name in draws[0]["scores"]}
    return {"gold_tables": draws[0]["gold_tables"], "scores": mean, "draws": draws}


def run(
    index: RetrievalIndex,
    method: Method,
    sizes: Sequence[int],
    question: Question,
    *,
    lm: LM | None = None,
    lessons: Sequence[Lesson] = (),
) -> list[Record]:
    """Retrieve the tables of a question, for every K.

    Args:
        index: of the benchmark's tables.
        method: the selector.
        sizes: the Ks; 0 stands for "auto".
        question: to ask.
        lm: the model that decomposes, imagines or rewrites; None for rules.
        lessons: learned facts; the question is asked once with each of them.

    Raises:
        ReplayMiss: a store that is replayed lacks answers; the missing requests are noted in it.
    """
    found = []
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_read = method.read(RetrievalQuestion.of(question.text), lm)
        relevance = method.relevance(index, as_read, lm)
        warned = [str(one.message) for one in caught]
    before = time.perf_counter() - started
    for lesson in lessons or (None,):
        learned, known = timed(lambda: relevance if lesson is None else lesson.apply(relevance, question, as_read))  # noqa: B023
        found.append(chosen_tables(index, method, question, as_read, known, sizes))
        found[-1]["seconds"]["prepare"] += before + learned
        found[-1] |= {"warnings": warned} if warned else {}
    return found


def scores(found: Sequence[Record], size: int) -> dict[str, float]:
    """Mean precision, recall, F1, complete recall, exact-set accuracy and connectedness at one K, in percent."""
    name = _name(size)
    rows = [(*(one["scores"][f"{measure}@{name}"] for measure in MEASURES), one["connected"][name]) for one in found]
    means = 100 * np.mean(np.array(rows, dtype=float), axis=0) if rows else np.zeros(6)
    return dict(zip((*MEASURES, "connected"), np.round(means, 2).tolist(), strict=True))


def automatic(found: Sequence[Record]) -> dict[str, Any]:
    """The scores of ``k="auto"``; with the calibration of the confidence if the method gives one."""
    sets = [(one["tables"]["auto"], one["gold_tables"], one["confidence"]["auto"]) for one in found]
    return {**of_sets(sets), **scores(found, AUTO)}


def report(
    data: Dataset, method: str, decompositions: str, sizes: Sequence[int], found: Sequence[Record]
) -> dict[str, Any]:
    """The command's JSON object."""

    ms = [1000 * (one["seconds"]["prepare"] + one["seconds"][f"choose@{max(sizes)}"]) for one in found]
    return {
        "dataset": data.name,
        "method": method,
        "decompositions": decompositions,
        "questions": len(found),
        "all": {str(size): scores(found, size) for size in sizes},
        "even": {str(size): scores([one for one in found if one["position"] % 2 == 0], size) for size in sizes},
        "ms": {**spread(ms), "total": round(sum(ms), 1)},
    }


def with_parts(method: Method, parts: Sequence[str] | None) -> Method:
    """The method with the sub-queries of a question, or with the schema that a model imagined for it."""
    if parts is None:
        return method
    if isinstance(method, CRUSH):
        return replace(method, schema=parts)
    return replace(method, subqueries=parts) if isinstance(method, WithSubqueries) else method


def with_weights_of(method: Method, dataset: str) -> Method:
    """A paper's method as it is printed with the weights of a data set, if it has no others, and its candidates."""
    if not (isinstance(method, JoinAware) and method.as_printed and dataset in method.published):
        return method
    candidates = FIBEN_CANDIDATES if dataset == "fiben" and method.candidates is None else method.candidates
    return replace(method, weights=dataset if method.weights is None else method.weights, candidates=candidates)


def weighted(method: Method, weights: str | None) -> Method:
    """The default method with the weights of a file that ``tag_bench fit`` wrote.

    Raises:
        click.ClickException: there is no such file, or the method is another one.
    """
    if weights is None:
        return method
    if not isinstance(method, Auto):
        raise click.ClickException(f"--method {method.name} takes no --weights; write jar:weights=bird")
    if not Path(weights).is_file():
        raise click.ClickException(f"--weights: there is no file {weights!r}")
    return replace(method, weights=read_weights(Path(weights).read_text(encoding="utf-8")))


@benchmark("retrieval")
@DATASET
@click.option("--method", type=MethodName(), default="auto", show_default=True,
              help="The selector, with parameters: jar:as_printed,variant=D.")  # fmt: skip
@click.option(
    "-k",
    "sizes",
    type=click.IntRange(min=1),
    multiple=True,
    default=(2, 3, 5, 10),
    help="Numbers of tables, such as 2 3 5 10.",
)
@click.option("--decompositions", default="none", show_default=True, help="A JSON file of sub-queries, or 'none'.")
@click.option("--lm", help="The model, or replay:STORE, of a method that asks one; rules by default.")
@click.option("--own-names", is_flag=True, help="Search the names in the data, not the benchmark's readable names.")
@click.option("--own-database", is_flag=True, help="Search only the question's own database.")
@click.option(
    "--half", type=click.Choice(["fit", "report"]), help="Only questions of this half in the data's halves.json."
)
@click.option("--synonyms", is_flag=True, help="Use the data's second wording of its questions.")
@click.option("--weights", help="For auto, the file of a fit.")
@click.option("--every-question", is_flag=True, help="Also count questions that need one table, as MURRE does.")
@click.option("--embedder", help="A provider's model, minilm-int8, or a sentence-transformers model.")
@CACHE
@number("--limit", None, "The number of questions, from the first.")
@number("--questions", None, "The number of questions, drawn at random.", called="drawn_questions")
@number("--learn", None, "Learn this many other questions with their SQL (5 draws).")
@click.option("--shuffled", is_flag=True, help="With --learn: give each of these questions the SQL of another one.")
@RECORDS
@SEEDED
def command(
    data: Path,
    method: str,
    sizes: tuple[int, ...],
    decompositions: str,
    lm: str | None,
    own_names: bool,
    own_database: bool,
    half: str | None,
    synonyms: bool,
    weights: str | None,
    every_question: bool,
    embedder: str | None,
    cache: Path | None,
    limit: int | None,
    drawn_questions: int | None,
    learn: int | None,
    shuffled: bool,
    records: Path | None,
    seed: int,
) -> dict[str, Any]:
    """Recall of tables, for questions that need more than one.

    Example: python -m tag_bench retrieval --data spider --method jar:as_printed --decompositions spider/decomp.json
    """
    if shuffled and learn is None:
        raise click.ClickException("--shuffled needs --learn")
    chosen = method_named(method)
    if learn is not None and not isinstance(chosen, Auto):
        raise click.ClickException(f"--learn needs --method auto; got {method}")
    declared = isinstance(chosen, JoinAware) and chosen.variant == "G"
    dataset = read_dataset(data, declared_keys=declared, synonyms=synonyms)
    chosen = weighted(with_weights_of(chosen, dataset.name), weights)
    given = read_decompositions(decompositions, dataset.questions)
    counted = dataset.questions if half is None else of_half(data, half, dataset.questions)
    if drawn_questions is not None:
        counted = drawn(counted, drawn_questions, seed)
    several = [question for question in counted if every_question or len(question.gold) > 1][:limit]
    if not several:
        raise click.ClickException(f"none of the {len(counted)} questions needs more than one table")
    encoder = own_encoder = get_embedder(config.current(embedder=embedder))
    if encoder is not None and cache is not None:
        encoder = CachedEmbedder(encoder, Cache(cache))

    @functools.cache
    def index_in(database: str | None) -> RetrievalIndex:
        part = dataset if database is None else dataset.of(database)
        described = None if own_names else part.described
        return RetrievalIndex(part.corpus, encoder, declared_keys=declared, described=described)

    @functools.cache
    def lessons_in(database: str | None) -> list[Lesson]:
        part, index, vectors = dataset if database is None else dataset.of(database), index_in(database), VectorStore()
        seeds = range(seed, seed + DRAWS) if learn else ()
        drawn = [Lesson.drawn(part, index, learn or 0, draw, vectors, shuffled=shuffled) for draw in seeds]
        return [one for one in drawn if one is not None]

    def answered(questions: Sequence[Question], sizes: Sequence[int]) -> list[Record]:
        misses: list[str] = []

        def ask(question: Question) -> Record | None:
            database = question.database if own_database else None
            index, lessons = index_in(database), lessons_in(database)
            try:
                own = with_parts(chosen, None if given is None else given[question.position])
                return record_of(run(index, own, sizes, question, lm=model, lessons=lessons))
            except ReplayMiss as miss:
                misses.append(str(miss))
                return None

        by_database = sorted(questions, key=lambda one: one.database) if own_database else questions
        records_of = stored.each(by_database, ask, lambda one: (one.position, one.text), f"{dataset.name} {method}")
        if misses:
            message = f"{len(misses):,} of {len(questions):,} questions lack answers; of the last one, {misses[-1]}"
            raise click.ClickException(message)
        return [{**draw, "position": record["id"]} for record in records_of for draw in record.get("draws", [record])]

    settings = settings_of(
        used=(chosen, own_encoder),
        data=[] if data.is_dir() else [data.parent],
        embedder=None if encoder is None else encoder.name,
    )
    stored = Records(records, settings)
    model = None if lm is None else LM(lm)
    if chosen.chooses_k:  # how many tables: asked of all questions, those of one table too
        both = {one.position: one for one in sorted([*several, *counted[:limit]], key=lambda one: one.position)}
        chosen_for: dict[int, list[Record]] = defaultdict(list)
        for one in answered([*both.values()], [*sizes, AUTO]):
            chosen_for[one["position"]].append(one)
        found = [one for question in several for one in chosen_for[question.position]]
        every = [one for question in counted[:limit] for one in chosen_for[question.position]]
        result = report(dataset, method, decompositions, sizes, found)
        result["auto"] = automatic(every)
    else:
        found = answered(several, sizes)
        result = report(dataset, method, decompositions, sizes, found)
    if learn is not None:
        result["questions"] = len(several)
    result = {**settings, **result}
    if isinstance(chosen, JoinAware):
        result |= chosen.parameters
    if isinstance(encoder, CachedEmbedder):
        encoder.save()
    return result
