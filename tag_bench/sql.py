"""``tag_bench sql``: from a question over all databases to rows: JAR's tables 2 and 3, and MURRE's tables 3 and 9.

Tables are retrieved from all databases with rows. A model writes SQL over them with JAR's prompt (its appendix A.2), or
with BIRD's, which has no examples, and its result is compared with that of the gold SQL. There is no recorded SQL:
``--lm replay:STORE`` notes the prompts, ``tagframe lm export`` writes them to a file, and their answers are imported.
"""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias, get_args

import click
import numpy as np

import tagframe as tf
from tag_bench import DATA, MethodName, benchmark, number
from tag_bench.baselines import PromptName, text2sql
from tag_bench.data import Question, read_dataset, read_decompositions
from tag_bench.measured import percent
from tag_bench.records import RECORDS, SEEDED, Record, Records, embedder_name, model_name, settings_of
from tag_bench.retrieval import with_parts
from tagframe.config import AnySettings
from tagframe.embed import get_embedder
from tagframe.engines.sqlite.engine import connect_readonly
from tagframe.errors import ReplayMiss, TagframeError
from tagframe.evaluation.match import Rule, is_ordered, match
from tagframe.evaluation.scores import scores_of
from tagframe.retrieval import method_named, retrieve_tables

SECONDS = 30.0
"""The time limit of a gold statement."""
_STEPS = 100_000
_MEASURES = ("P", "R", "F1")

Rows: TypeAlias = list[tuple[Any, ...]]
"""The rows of a statement."""


def gold_rows(file: Path, sql: str, seconds: float = SECONDS) -> Rows | None:
    """The rows of a benchmark's own statement; None if it fails or takes too long.

    It does not pass through the guard: a fifth of Spider's statements have texts in double quotes.
    """
    with closing(connect_readonly(file)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        until = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.Error:
            return None


def with_gold_rows(
    questions: Sequence[Question], count: int | None, gold: Callable[[Question], Rows | None], seed: int
) -> tuple[dict[Question, Rows], int]:
    """At most ``count`` questions, drawn at random (None: all), with the rows of their gold SQL, in the file's order.

    Questions whose gold SQL gives no rows here are left out, because any statement without rows would be right.

    Returns:
        The questions with their rows, and how many were left out on the way.
    """
    order = (
        questions
        if count is None
        else [questions[at] for at in np.random.default_rng(seed).permutation(len(questions))]
    )
    found: dict[Question, Rows] = {}
    left_out = 0
    for question in order:
        if len(found) == count:
            break
        if rows := gold(question):
            found[question] = rows
        else:
            left_out += 1
    return {question: found[question] for question in questions if question in found}, left_out


def answer_sql(question: Question, expected: Rows, tag: tf.TAG, rule: Rule, tables: Sequence[str]) -> Record:
    """Have the model write SQL over the ``tables`` tables, and compare its rows with the gold ones.

    Returns:
        The record: the SQL, whether it gives the gold rows, the tables that it reads, and why there are no rows.

    Raises:
        ReplayMiss: a store that is replayed lacks the SQL.
    """
    read: set[str] = set()
    sql, right, problem = "", False, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = tag(question.text)
        read, sql = {table.lower() for table in answer.tables}, answer.query.sql
        rows = answer.rows.astype(object).where(answer.rows.notna(), None)
        right = match(list(rows.itertuples(index=False, name=None)), expected, rule, ordered=is_ordered(question.sql))
    except ReplayMiss:
        raise
    except TagframeError as error:
        problem = f"{type(error).__name__}: {error}"
    return {
        "sql": sql,
        "right": right,
        "gold_tables": sorted(question.gold),
        "tables": sorted(read),
        "shown": list(tables),
        "scores": dict(zip(_MEASURES, scores_of(read, question.gold), strict=False)),
        "error": problem,
    }


def shares(outcomes: Sequence[Record]) -> dict[str, Any]:
    """Execution accuracy, and precision, recall and F1 of the tables in the SQL, in percent (JAR, section 4.1)."""
    return {
        "execution_accuracy": percent(one["right"] for one in outcomes),
        "tables": {name: percent(one["scores"][name] for one in outcomes) for name in _MEASURES},
    }


@benchmark("sql")
@DATA
@click.option("--method", type=MethodName("gold"), default="auto", show_default=True, help="The retrieval method.")
@click.option("--prompt", type=click.Choice(get_args(PromptName)), default="jar", show_default=True,
              help="The prompt of SQL: JAR's, with an example, or BIRD's, without, as MURRE's.")  # fmt: skip
@number("-k", 5, "The number of tables to show.", called="size")
@click.option("--decompositions", default="none", show_default=True, help="A JSON file of sub-queries, or 'none'.")
@click.option("--lm", help="A model, or replay:STORE; by default the configured model.")
@click.option(
    "--evidence", is_flag=True, help="Search with BIRD's evidence, too, and add it to the prompt as external knowledge."
)
@click.option("--every-question", is_flag=True, help="Also ask questions that need one table, as MURRE does.")
@number("--limit", None, "The number of questions, from the first.")
@number("--questions", None, "The number of questions, at random.", called="drawn_questions")
@RECORDS
@SEEDED
def command(
    data: Path,
    method: str,
    prompt: PromptName,
    size: int,
    decompositions: str,
    lm: str | None,
    evidence: bool,
    every_question: bool,
    limit: int | None,
    drawn_questions: int | None,
    records: Path | None,
    seed: int,
) -> dict[str, Any]:
    """Execution accuracy of SQL that a model writes over retrieved tables.

    Example: python -m tag_bench sql --data ../shared/bench/spider --method auto -k 5 --lm replay:sql.sqlite --json -
    """
    if not any((data / "database").glob("*/*.sqlite")):
        raise click.ClickException(f"no database/NAME/NAME.sqlite in {data}: SQL needs rows to run on")
    dataset = read_dataset(data)
    corpus = tf.open_corpus(data / "database")
    rule: Rule = "spider" if dataset.questions[0].evidence is None else "bird"
    files = {file.stem: file for file in (data / "database").glob("*/*.sqlite")}
    several = [one for one in dataset.questions if every_question or len(one.gold) > 1][:limit]
    expected, left_out = with_gold_rows(
        [one for one in several if one.database in files],
        drawn_questions,
        lambda one: gold_rows(files[one.database], one.sql),
        seed,
    )
    questions = [*expected]
    given = read_decompositions(decompositions, dataset.questions)
    model: AnySettings = {"progress": False}
    if lm is not None:
        model["lm"] = lm

    def ask(question: Question) -> Record | None:
        knowledge = (question.evidence or "") if evidence else ""
        try:
            with tf.context(**model):
                ids = tables_for(question, knowledge)
                tag = text2sql(corpus, ids, prompt=prompt, knowledge=knowledge)
                return answer_sql(question, expected[question], tag, rule, ids)
        except ReplayMiss:
            return None

    def tables_for(question: Question, knowledge: str) -> list[str]:
        if method == "gold":
            return sorted(corpus.profile(table).id for table in question.gold)
        chosen = with_parts(method_named(method), None if given is None else given[question.position])
        return retrieve_tables(question.text, corpus, k=size, method=chosen, evidence=knowledge).ids

    used = [*([] if method == "gold" else [method_named(method)]), get_embedder()]
    settings = settings_of(used=used, lm=model_name(lm), embedder=embedder_name())
    outcomes = Records(records, settings).each(
        questions, ask, lambda one: (one.position, one.text), f"{dataset.name} {method}"
    )
    missing = len(questions) - len(outcomes)
    result = {
        **settings,
        "dataset": dataset.name,
        "k": size,
        "questions": len(outcomes),
        "not_run": missing,
        "left_out": left_out,
        **shares(outcomes),
        "errors": sum(bool(outcome["error"]) for outcome in outcomes),
    }
    accuracy = "not run" if result["execution_accuracy"] is None else result["execution_accuracy"]
    click.echo(
        f"{dataset.name}, {method}, K={size}: execution accuracy {accuracy}; tables {result['tables']}; "
        f"{missing} questions lack answers",
        err=True,
    )
    return result
