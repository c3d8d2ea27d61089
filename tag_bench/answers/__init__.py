"""``tag_bench answers``: TAG-Bench's questions, by the paper's five methods and by ours (CIDR 2025, section 4).

The key stands beside the questions, so that what was written by hand for them is in-sample.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from tqdm.auto import tqdm

import tagframe as tf
from pipelines import PIPELINES
from tag_bench.answers.asking import ask_all
from tag_bench.answers.databases import Databases
from tag_bench.answers.judgements import Judge, read_judgements
from tag_bench.answers.methods import METHODS
from tag_bench.answers.published import plot, table
from tag_bench.answers.questions import Question, read_questions
from tag_bench.answers.records import Record, append_record, read_records, summary
from tag_bench.server import Server

JUDGEMENTS = "judgements"
"""As ``--lm``: what the data folder's ``judgements.json`` says, in place of a model."""


def chosen(questions: Sequence[Question], databases: Databases, wanted: str) -> list[Question]:
    """The questions that ``--questions`` names: ids, ``runnable`` or ``all``.

    Raises:
        click.ClickException: an id that is no question's.
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
    """The settings that stand for ``--lm``; a server of judgements where that is asked for."""
    if lm != JUDGEMENTS:
        yield {} if lm is None else {"lm": lm}
        return
    with Server(Judge(read_judgements(folder / "judgements.json"))) as server:
        # Nothing is stored: a judgement costs nothing, and the time of a question is to be that of asking.
        yield {"lm": "openai/judgements", "api_base": server.url, "api_key": "none", "store": None}


def listing(questions: Sequence[Question], databases: Databases) -> str:
    """A line a question: its id, its pipeline, and whether it can be asked here."""
    lines = []
    for question in questions:
        pipeline = PIPELINES[question.id]
        missing = databases.missing(question)
        name = f"pipelines.{pipeline.database}.{pipeline.answer.__name__}"
        lines.append(f"{question.id:>5}  {question.type:<12}{question.kind:<10}{missing or 'runnable':<60}  {name}")
    return "\n".join(lines)


@click.command("answers", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), help="TAG-Bench.")
@click.option("--databases", type=click.Path(path_type=Path), help="BIRD's databases; DATA/../bird/database as a rule.")
@click.option("--method", type=click.Choice(list(METHODS)), default="ask", show_default=True, help="Who answers.")
@click.option("--lm", help=f"A model, replay:STORE, or {JUDGEMENTS}; the configured one as a rule.")
@click.option("--questions", "wanted", default="runnable", show_default=True, help="Ids as 0,1,…; runnable; or all.")
@click.option("--records", type=click.Path(path_type=Path), help="Keep each question's record here, and go on from it.")
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Draw exact match into this file.")
@click.option("--list", "lists", is_flag=True, help="Print the questions' pipelines, and what is missing for them.")
@click.option("--json", "output", type=click.File("w"), default="-", help="Where the JSON goes; - for standard output.")
def command(
    data: Path,
    databases: Path | None,
    method: str,
    lm: str | None,
    wanted: str,
    records: Path | None,
    picture: Path | None,
    lists: bool,
    output: Any,
) -> None:
    """TAG-Bench's questions, scored as published and tolerantly, beside the published figures.

    Example: python -m tag_bench answers --data ../shared/bench/tag_bench --method handwritten --lm judgements --json -
    """
    places = Databases(databases or data.parent / "bird" / "database")
    questions = read_questions(data)
    if lists:
        click.echo(listing(questions, places))
        return
    asked = chosen(questions, places, wanted)
    done = {} if records is None else read_records(records)
    with model(lm, data) as settings, tf.context(progress=False, **settings):
        left = [question for question in asked if question.id not in done]
        for record in tqdm(ask_all(METHODS[method], left, places), total=len(left), desc=method, unit="question"):
            done[record.id] = record
            if records is not None:
                append_record(records, record)
    listed: list[Record] = [done[question.id] for question in asked]
    result: dict[str, Any] = {
        "method": method,
        "lm": lm or "the configured model",
        "questions": [asdict(record) for record in listed],
        "summary": summary(listed),
    }
    json.dump(result, output, indent=2, ensure_ascii=False, default=str)
    output.write("\n")
    click.echo(table(method, result["summary"]), err=True)
    if picture is not None:
        plot(method, result["summary"], picture)
