"""``tag_bench retrieval``: quality and speed of finding the tables of benchmark questions."""

from __future__ import annotations

import functools
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click
import numpy as np

from tag_bench import CACHE, DATA, MethodName, benchmark, number
from tag_bench.cache import Cache, CachedEmbedder
from tag_bench.data import Dataset, Question, drawn, of_half, read_coarse, read_dataset, read_decompositions
from tag_bench.lessons import Lesson
from tag_bench.measured import of_sets, spread, timed
from tag_bench.published import beside
from tag_bench.records import RECORDS, SEEDED, Record, Records, settings_of
from tagframe import config
from tagframe.answer.annotating import annotated
from tagframe.corpus.vectors import VectorStore
from tagframe.embed import get_embedder
from tagframe.errors import InvalidArgument, ReplayMiss
from tagframe.evaluation.scores import scores_of
from tagframe.lm import LM
from tagframe.retrieval import Method, method_named
from tagframe.retrieval import Question as Asked
from tagframe.retrieval.form import Form, Variant, note_of
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.joinability import Omega
from tagframe.retrieval.methods.auto import AUTO as AUTO_METHOD
from tagframe.retrieval.methods.murre import Ablation, searching
from tagframe.retrieval.methods.weights import read_weights
from tagframe.retrieval.problem import JAR_WEIGHTS, LINKED, Floats, spanning_forest
from tagframe.retrieval.retrieve import in_form

AUTO = 0
"""The K that means ``k="auto"``."""

DRAWS = 5
"""How often the learned questions are drawn."""

MEASURES = ("P", "R", "F1", "CR", "exact")
"""The scores of one question, as :class:`tagframe.evaluation.scores.Scores` has them."""


def _name(size: int) -> str:
    return "auto" if size == AUTO else str(size)


def chosen_tables(
    index: RetrievalIndex, method: Method[Any, Any], question: Question, asked: Asked, known: Any, sizes: Sequence[int]
) -> Record:
    """What a method chooses for a question by some evidence, for every K, as JSON values.

    Ids are in lower case, best first. A confidence is the chance that no needed table is missing, None if the method
    gives none. Tables are connected by link scores.

    Args:
        index: of the benchmark's tables.
        method: the selector.
        question: with its gold tables.
        asked: the question as the method reads it.
        known: the relevance, or the evidence.
        sizes: the Ks; 0 stands for "auto".
    """
    seconds, prepared = timed(lambda: method.prepare(index, asked, known, None, max(sizes) or None))
    found: Record = {"gold_tables": sorted(question.gold)}
    found |= {name: {} for name in ("tables", "scores", "connected", "confidence")}
    found["seconds"] = {"prepare": seconds}
    for size in sizes:
        name = _name(size)
        found["seconds"][f"choose@{size}"], selection = timed(partial(method.select, prepared.problem, size or None))
        chosen = [prepared.tables[position] for position in selection.indices]
        ids = [index.tables[table].id.lower() for table in chosen]
        links = index.links.matrix(chosen)
        edges, _ = spanning_forest(np.where(links >= LINKED, links, 0.0), range(len(chosen)))
        found["tables"][name], found["confidence"][name] = ids, selection.confidence
        found["connected"][name] = len(edges) == len(chosen) - 1
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
    method: Method[Any, Any],
    sizes: Sequence[int],
    decompositions: Sequence[Sequence[str]] | None,
    question: Question,
    *,
    coarse: Floats | None = None,
    lm: LM | None = None,
    lessons: Sequence[Lesson] = (),
) -> list[Record]:
    """Retrieve the tables of a question, for every K.

    Args:
        index: of the benchmark's tables.
        method: the selector.
        sizes: the Ks; 0 stands for "auto".
        decompositions: of every question of the file, in its order.
        question: to ask.
        coarse: given relevance: shape (questions of the file, tables).
        lm: the model that decomposes, imagines or rewrites; None for rules.
        lessons: learned facts; the question is asked once with each of them.

    Raises:
        ReplayMiss: a store that is replayed lacks answers; the missing requests are noted in it.
    """
    found = []
    started = time.perf_counter()
    asked = Asked.of(question.text)
    if decompositions is not None and method.decomposer is not None:
        asked = asked.with_subqueries(method.decomposer.read(decompositions[question.position]), "given")
    if coarse is None:
        if lm is not None and decompositions is None and method.decomposer is not None:
            asked = method.decomposer.ask(lm, asked)
        relevance = method.relevance(index, asked, lm)
    else:
        relevance = coarse[question.position]
    before = time.perf_counter() - started
    for lesson in lessons or (None,):
        learned, known = timed(lambda: relevance if lesson is None else lesson.told(relevance, question, asked))  # noqa: B023
        found.append(chosen_tables(index, method, question, asked, known, sizes))
        found[-1]["seconds"]["prepare"] += before + learned
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


def milliseconds(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and total of times in seconds, in milliseconds."""
    return {**spread([1000 * value for value in values]), "total": round(1000 * sum(values), 1)}


def report(
    data: Dataset, method: str, decompositions: str, sizes: Sequence[int], found: Sequence[Record]
) -> dict[str, Any]:
    """The command's JSON object."""

    def by_size(group: Sequence[Record]) -> dict[str, dict[str, float]]:
        return {str(size): scores(group, size) for size in sizes}

    by_count: dict[int, list[Record]] = defaultdict(list)
    for one in found:
        by_count[len(one["gold_tables"])].append(one)
    largest = max(sizes)
    return {
        "dataset": data.name,
        "method": method,
        "decompositions": decompositions,
        "questions": len(found),
        "all": by_size(found),
        "even": by_size([one for one in found if one["position"] % 2 == 0]),
        "by_gold_tables": {
            str(count): {"questions": len(group), **by_size(group)} for count, group in sorted(by_count.items())
        },
        "ms": milliseconds([one["seconds"]["prepare"] + one["seconds"][f"choose@{largest}"] for one in found]),
        "ms_by_phase": {phase: milliseconds([one["seconds"][phase] for one in found]) for phase in found[0]["seconds"]},
    }


def formed(method: Method[Any, Any], variant: Variant, weights: str | None, **settings: Any) -> Method[Any, Any]:
    """The method in a form of its paper. The variant of other methods says only whether declared keys are known."""
    form = Form(**settings)
    return in_form(method, form if method.form is None else replace(form, variant=variant, weights=weights))


def weighted(method: Method[Any, Any], weights: str | None) -> Method[Any, Any]:
    """The default method with the weights of a file that ``tag_bench fit`` wrote.

    Raises:
        click.ClickException: there is no such file, or the method is another one.
    """
    if weights is None:
        return method
    if method is not AUTO_METHOD:
        raise click.ClickException(f"--method {method.name} takes no --weights")
    if not Path(weights).is_file():
        raise click.ClickException(f"--weights: there is no file {weights!r}")
    given: Any = {"weights": read_weights(Path(weights).read_text(encoding="utf-8"))}
    return replace(method, prepare=partial(method.prepare, **given), select=partial(method.select, **given))


_VARIANTS = "The variant of JAR, for greedy, exact and mip: D without joins, F in full, G with declared keys."


@benchmark("retrieval")
@DATA
@click.option("--method", type=MethodName(), default="auto", show_default=True, help="The selector.")
@click.option(
    "-k",
    "sizes",
    type=click.IntRange(min=1),
    multiple=True,
    default=(2, 3, 5, 10),
    help="Numbers of tables, such as 2 3 5 10.",
)
@click.option("--decompositions", default="none", show_default=True, help="A JSON file of sub-queries, or 'none'.")
@click.option("--variant", type=click.Choice(["D", "F", "G"]), default="F", show_default=True, help=_VARIANTS)
@click.option("--as-printed", is_flag=True, help="The paper's form of greedy, exact or mip, and its weights.")
@click.option("--omega", type=click.Choice(get_args(Omega)), help="ω of JAR's text or of its code. [default: ours]")
@number("--candidates", None, "Tables to choose from. [default: 20; fiben: 30]")
@click.option("--covered-at", type=float, help="θ of --method greedy, at which it stops.")
@click.option("--ablate", "ablation", type=click.Choice(get_args(Ablation)), help="Leave out this part of MURRE.")
@number("--beam", None, "How many lists MURRE keeps at each hop; 5 by default.")
@number("--hops", None, "MURRE's hops; by default 3, or 2 without a model.")
@click.option("--lm", help="A model, or replay:STORE, to decompose, imagine or rewrite; rules by default.")
@click.option("--own-names", is_flag=True, help="Search the names in the data, not the benchmark's readable names.")
@click.option("--own-database", is_flag=True, help="Search only the question's own database.")
@click.option(
    "--half", type=click.Choice(["fit", "report"]), help="Only questions of this half in the data's halves.json."
)
@click.option("--synonyms", is_flag=True, help="Use the data's second wording of its questions.")
@click.option("--weights", help="For auto, the file of a fit; for greedy, exact and mip, a data set of the papers.")
@click.option("--every-question", is_flag=True, help="Also count questions that need one table, as MURRE does.")
@click.option("--embedder", help="A provider's model, minilm-int8, or a sentence-transformers model.")
@CACHE
@click.option("--coarse", type=click.Path(exists=True, path_type=Path), help="Relevance of your own: see read_coarse.")
@number("--limit", None, "The number of questions, from the first.")
@number("--questions", None, "The number of questions, drawn at random.", called="drawn_questions")
@click.option(
    "--describe",
    "descriptions",
    type=click.Path(exists=True, path_type=Path),
    help="Descriptions of tables and columns: a CSV file, BIRD's dev_databases, ….",
)
@click.option("--annotate", "annotator", help="A model, or replay:STORE, that first describes tables and columns.")
@number("--learn", None, "Learn this many other questions with their SQL (5 draws).")
@click.option("--shuffled", is_flag=True, help="With --learn: give each of these questions the SQL of another one.")
@RECORDS
@SEEDED
@click.option("--compare", is_flag=True, help="Print our figures and the published ones to standard error.")
def command(
    data: Path,
    method: str,
    sizes: tuple[int, ...],
    decompositions: str,
    variant: Variant,
    ablation: Ablation | None,
    beam: int | None,
    hops: int | None,
    lm: str | None,
    own_names: bool,
    own_database: bool,
    half: str | None,
    synonyms: bool,
    weights: str | None,
    every_question: bool,
    embedder: str | None,
    cache: Path | None,
    coarse: Path | None,
    limit: int | None,
    drawn_questions: int | None,
    descriptions: Path | None,
    annotator: str | None,
    learn: int | None,
    shuffled: bool,
    records: Path | None,
    seed: int,
    compare: bool,
    **form: Any,
) -> dict[str, Any]:
    """Recall of tables, for questions that need more than one.

    Example: python -m tag_bench retrieval --data spider --method greedy -k 2 3 5 10 --decompositions spider/decomp.json
    """
    if shuffled and learn is None:
        raise click.ClickException("--shuffled needs --learn")
    if learn is not None and method != "auto":
        raise click.ClickException(f"--learn needs --method auto; got {method}")
    declared = variant == "G"
    dataset = read_dataset(data, declared_keys=declared, synonyms=synonyms)
    if descriptions is not None:
        click.echo(repr(dataset.corpus.describe(descriptions)), err=True)
    if annotator is not None:
        try:
            click.echo(repr(annotated(dataset.corpus, LM(annotator))), err=True)
        except ReplayMiss as miss:
            raise click.ClickException(str(miss)) from miss
    if descriptions is not None or annotator is not None:
        dataset = dataset.with_descriptions()
    given = read_decompositions(decompositions, dataset.questions)
    counted = dataset.questions if half is None else of_half(data, half, dataset.questions)
    if drawn_questions is not None:
        counted = drawn(counted, drawn_questions, seed)
    several = [question for question in counted if every_question or len(question.gold) > 1][:limit]
    if not several:
        raise click.ClickException(f"none of the {len(counted)} questions needs more than one table")
    encoder = get_embedder(config.current(embedder=embedder))
    if encoder is not None and cache is not None:
        encoder = CachedEmbedder(encoder, Cache(cache))
    if own_database and coarse is not None:
        raise click.ClickException("--own-database cannot be used with --coarse")

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

    def asked(questions: Sequence[Question], sizes: Sequence[int]) -> list[Record]:
        misses: list[str] = []

        def ask(question: Question) -> Record | None:
            database = question.database if own_database else None
            index, lessons = index_in(database), lessons_in(database)
            try:
                return record_of(
                    run(index, chosen, sizes, given, question, coarse=scores_given, lm=model, lessons=lessons)
                )
            except ReplayMiss as miss:
                misses.append(str(miss))
                return None

        by_database = sorted(questions, key=lambda one: one.database) if own_database else questions
        told = kept.each(by_database, ask, lambda one: (one.position, one.text), f"{dataset.name} {method}")
        if misses:
            said = f"{len(misses):,} of {len(questions):,} questions lack answers; of the last one, {misses[-1]}"
            raise click.ClickException(said)
        return [{**draw, "position": record["id"]} for record in told for draw in record.get("draws", [record])]

    settings = settings_of(embedder=None if encoder is None else encoder.name)
    kept = Records(records, settings)
    scores_given = None if coarse is None else read_coarse(coarse, index_in(None).tables, len(dataset.questions))
    if scores_given is not None and not method_named(method).takes_coarse:
        raise click.ClickException(f"--method {method} cannot be used with --coarse")
    of_data = dataset.name if form["as_printed"] and dataset.name in JAR_WEIGHTS else None
    try:
        chosen = searching(method_named(method), beam=beam, hops=hops, ablate=ablation)
        chosen = formed(chosen, variant, weights or of_data, **form)
    except InvalidArgument as error:
        raise click.ClickException(str(error)) from error
    if chosen.form is None:
        chosen = weighted(chosen, weights)
    model = None if lm is None else LM(lm)
    if method == "auto":  # how many tables: asked of all questions, those of one table too
        both = {one.position: one for one in sorted([*several, *counted[:limit]], key=lambda one: one.position)}
        chosen_for: dict[int, list[Record]] = defaultdict(list)
        for one in asked([*both.values()], [*sizes, AUTO]):
            chosen_for[one["position"]].append(one)
        found = [one for question in several for one in chosen_for[question.position]]
        every = [one for question in counted[:limit] for one in chosen_for[question.position]]
        result = report(dataset, method, decompositions, sizes, found)
        result["auto"] = automatic(every)
    else:
        found = asked(several, sizes)
        result = report(dataset, method, decompositions, sizes, found)
    if learn is not None:
        result["questions"] = len(several)
    result = {**settings, **result, "variant": variant, **chosen.said}
    if isinstance(encoder, CachedEmbedder):
        encoder.save()
    if compare:
        if chosen.said:
            click.echo(note_of(chosen.said), err=True)
        click.echo(beside(dataset.name, method, result["all"], result["questions"]), err=True)
    return result
