"""``tag_bench answers``: TAG-Bench's questions, with the paper's five methods and ours (CIDR 2025, section 4).

The answer key is published with the questions, so the hand-written pipelines are in-sample.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import tagframe as tf
from pipelines import PIPELINES
from tag_bench import DATA, FILE, Incomplete, benchmark
from tag_bench.answers.databases import Databases, Question, read_questions
from tag_bench.answers.judgements import HashedWords, Judge, anything, read_judgements
from tag_bench.answers.methods import METHODS, OF_ROWS, record_of
from tag_bench.answers.records import MARKS, scored, summary, unanswered
from tag_bench.measured import timed
from tag_bench.records import RECORDS, Record, Records, model_name, read_records, settings_of
from tag_bench.server import Server
from tagframe.embed import get_embedder

JUDGEMENTS = "judgements"
"""Value of ``--lm``: answers come from ``judgements.json`` in the data folder, not from a model."""
SCRIPTED = "scripted"
"""Value of ``--lm``: meaningless answers in the right form, to test whether a method runs to its end."""
WORDS = "words"
"""Value of ``--embedder``: hashed words instead of a model."""


def chosen(questions: Sequence[Question], databases: Databases, wanted: str) -> list[Question]:
    """The questions selected by ``--questions``: ids, ``runnable`` or ``all``.

    Raises:
        click.ClickException: an unknown id.
    """
    if wanted == "all":
        return list(questions)
    if wanted == "runnable":
        return [question for question in questions if not databases.missing(question)]
    ids = [part.strip() for part in wanted.split(",") if part.strip()]
    known = {str(question.id): question for question in questions}
    unknown = [id for id in ids if id not in known]
    if unknown or not ids:
        raise click.ClickException(f"no question {', '.join(unknown) or wanted!r}; --list shows them")
    return [known[id] for id in ids]


@contextlib.contextmanager
def model(lm: str | None, folder: Path) -> Iterator[dict[str, Any]]:
    """The settings for ``--lm``; a server with judgements or scripted answers if chosen."""
    if lm not in (JUDGEMENTS, SCRIPTED):
        yield {} if lm is None else {"lm": lm}
        return
    answers = Judge(read_judgements(folder / "judgements.json")) if lm == JUDGEMENTS else anything
    with Server(answers, history=False) as server:
        # No store: such answers cost nothing, and the time of a question must include asking.
        yield {"lm": f"openai/{lm}", "api_base": server.url, "api_key": "none", "store": None}


def embed_rows(databases: Databases, names: Iterable[str]) -> dict[str, Any]:
    """Embed the rows of databases before any question, so that it does not count in the time of a question."""
    taken = {}
    for name in names:
        corpus = databases.corpus(name)
        stored = sum(profile.rows or 0 for profile in corpus)
        click.echo(f"{name}: making the vectors of {stored:,} rows", err=True)
        with tf.context(progress=None):
            seconds, indexed = timed(databases.nearest_rows(name).index)
        rows = len(indexed.rows)
        taken[name] = {"rows": rows, "vectors": len(indexed.vectors), "seconds": round(seconds, 1)}
        click.echo(f"{name}: {rows:,} rows in {seconds:,.1f} s", err=True)
    return taken


def listing(questions: Sequence[Question], databases: Databases) -> str:
    """A line per question: its id, its pipeline, and whether it can be asked with the present data."""
    lines = []
    for question in questions:
        pipeline = PIPELINES[question.id]
        missing = databases.missing(question)
        name = f"pipelines.{pipeline.database}.{pipeline.answer.__name__}"
        lines.append(f"{question.id:>5}  {question.type:<12}{question.kind:<10}{missing or 'runnable':<60}  {name}")
    return "\n".join(lines)


def outcomes(records: Sequence[Record]) -> dict[str, Any]:
    """The questions and their summary, as in the output."""
    return {"questions": records, "summary": summary(records)}


def _whole(record: Record, question: Question) -> Record:
    """The values of a record, with defaults in place of those that it lacks."""
    return {name: record.get(name, value) for name, value in unanswered(question).items()}


def _key(question: Question) -> tuple[int, str]:
    return question.id, question.text


@benchmark("answers")
@DATA
@click.option(
    "--databases", type=click.Path(path_type=Path), help="BIRD's databases; by default DATA/../bird/database."
)
@click.option("--method", type=click.Choice(list(METHODS)), default="ask", show_default=True, help="The method.")
@click.option("--lm", help=f"A model, replay:STORE, {JUDGEMENTS} or {SCRIPTED}; by default the configured model.")
@click.option(
    "--questions", "wanted", default="runnable", show_default=True, help="Ids such as 0,1,…; 'runnable'; or 'all'."
)
@click.option("--embedder", help=f"For vectors of rows; {WORDS}: hashed words. By default the configured one.")
@RECORDS
@click.option(
    "--recorded",
    type=(FILE, str),
    metavar="FILE BY",
    help="Score the records of an earlier run, instead of asking; BY says what recorded them, and at which commit.",
)
@click.option("--list", "lists", is_flag=True, help="Print the questions' pipelines, and what they lack.")
def command(
    data: Path,
    databases: Path | None,
    method: str,
    lm: str | None,
    wanted: str,
    embedder: str | None,
    records: Path | None,
    recorded: tuple[Path, str] | None,
    lists: bool,
) -> dict[str, Any] | None:
    """TAG-Bench's questions, scored strictly (as published) and tolerantly; paper tag-1 has the published figures.

    Example: python -m tag_bench answers --data ../shared/bench/tag_bench --method handwritten --lm judgements --json -
    """
    databases = databases or data.parent / "bird" / "database"
    sources = Databases(databases)
    questions = read_questions(data)
    if lists:
        click.echo(listing(questions, sources))
        return None
    if recorded is not None:
        known = {question.id: question for question in questions}
        listed = [scored(_whole(one, known[one["id"]]), known[one["id"]]) for one in read_records(recorded[0])]
        return {"method": method, "recorded": recorded[1], "missing": 0, **outcomes(listed)}
    selected = chosen(questions, sources, wanted)
    embedding: dict[str, Any] = (
        {} if embedder is None else {"embedder": HashedWords() if embedder == WORDS else embedder}
    )
    with model(lm, data) as settings, tf.context(progress=False, **embedding, **settings):
        answering = model_name(lm)
        encoder = get_embedder() if method in (*OF_ROWS, "ask") else None  # tf.ask retrieves tables by it
        run_settings = settings_of(
            used=[encoder], data=[databases], lm=answering, embedder=getattr(encoder, "name", None)
        )
        stored = Records(records, run_settings)
        left = stored.left(selected, _key)
        searched = [question.database for question in left if method in OF_ROWS and not sources.missing(question)]
        embedded = embed_rows(sources, dict.fromkeys(searched))
        answered = stored.each(selected, lambda question: record_of(METHODS[method], question, sources), _key, method)
    listed = [_whole(record, question) for record, question in zip(answered, selected, strict=True)]
    result: dict[str, Any] = {
        **run_settings,
        **({"rows": embedded} if method in OF_ROWS else {}),
        "missing": sum(record["missing"] for record in listed),
        **outcomes(listed),
    }
    overall = result["summary"]["overall"]
    counts = ", ".join(f"{overall[f'{mark}_count']} {mark.replace('_', ' ')}" for mark in MARKS)
    click.echo(f"{method}: of {overall['with_key']} with a key {counts}; {overall['errors']} errors", err=True)
    if result["missing"]:
        store = str(answering).removeprefix("replay:")
        raise Incomplete(
            f"{result['missing']} of {len(listed)} questions lack answers of the model: 'tagframe lm export {store} -o"
            f" batch.jsonl' writes their requests to a file, 'tagframe lm import {store} ANSWERS' imports the answers;"
            " then run this again",
            result,
        )
    return result
