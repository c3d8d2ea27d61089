"""``tag_bench agent_tokens``: tokens that an agent reads to answer a question, compared with those of all schemas.

The agent is scripted: it calls ``find_tables`` with the question, ``plan_joins`` with the tables that are needed with a
chance above 50%, and ``run_sql`` with the gold SQL. All results, including errors, are counted with gpt-4o's tokenizer.
"""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import sqlglot
from sqlglot import exp

import tagframe
from tag_bench import benchmark, number
from tag_bench.data import Question, read_dataset
from tag_bench.records import RECORDS, SEEDED, Record, Records, embedder_name, settings_of
from tagframe.agents.tools import Tools
from tagframe.embed import get_embedder
from tagframe.errors import TagframeError


def tokens(text: str) -> int:
    """The tokens of a text in gpt-4o's tokenizer."""
    from litellm import token_counter

    return int(token_counter(model="gpt-4o", text=text))


def result_of(tools: Tools, name: str, arguments: dict[str, Any]) -> tuple[Any, int]:
    """The result of a tool (None for an error), and its tokens."""
    try:
        given = tools.call(name, arguments)
    except TagframeError as error:
        return None, tokens(str(error))
    return given, tokens(json.dumps(given, ensure_ascii=False, separators=(",", ":")))


def in_database(sql: str, database: str) -> str:
    """A statement with database names before its tables, and texts in single quotes."""
    tree = sqlglot.parse_one(sql, read="sqlite")
    entries = {entry.alias_or_name.casefold() for entry in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name.casefold() not in entries:
            table.set("db", exp.to_identifier(database, quoted=True))
    for column in list(tree.find_all(exp.Column)):
        if column.this.args.get("quoted") and not column.table:
            column.replace(exp.Literal.string(column.name))
    return tree.sql(dialect="sqlite")


@benchmark("agent_tokens")
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@number("--questions", 60, "The number of questions, drawn at random.")
@RECORDS
@SEEDED
def command(folder: Path, questions: int, records: Path | None, seed: int) -> dict[str, Any]:
    """Tokens of tool output per question, over all databases of a FOLDER of benchmark data with rows.

    Example: python -m tag_bench agent_tokens ../shared/bench/spider_train
    """
    warnings.simplefilter("ignore")
    corpus = tagframe.open_corpus(folder / "database")
    tools = corpus.tools()
    databases = {profile.database for profile in corpus}
    with_database = [one for one in read_dataset(folder).questions if one.database in databases]
    drawn = random.Random(seed).sample(with_database, min(questions, len(with_database)))

    def ask(one: Question) -> Record:
        tables_found, first = result_of(tools, "find_tables", {"question": one.text})
        likely = [table["id"] for table in tables_found["tables"] if (table["chance"] or 0) >= 0.5]
        second = result_of(tools, "plan_joins", {"tables": likely})[1] if len(likely) > 1 else 0
        rows, third = result_of(tools, "run_sql", {"sql": in_database(one.sql, one.database)})
        ids = {id.casefold() for table in tables_found["tables"] for id in table.get("parts", [table["id"]])}
        ids |= {corpus.profile(name).id.casefold() for name in tables_found.get("others", [])}
        whole = one.gold <= ids | set(tables_found["bridges"])
        counts = {"find_tables": first, "plan_joins": second, "run_sql": third, "all": first + second + third}
        return {"all_tables_found": whole, "ran": rows is not None, "tokens": counts}

    settings = settings_of(used=[get_embedder()], embedder=embedder_name())
    answers = Records(records, settings).each(drawn, ask, lambda one: (one.position, one.text), "agent")
    counts = {
        name: [record["tokens"][name] for record in answers] for name in ("find_tables", "plan_joins", "run_sql", "all")
    }
    schema = "\n".join(f"{table.id}({', '.join(column.name for column in table.columns)})" for table in corpus)
    figures: dict[str, Any] = {
        **settings,
        "databases": len(databases), "tables": len(corpus), "questions": len(drawn),
        "definitions_tokens": tokens(json.dumps(tools.schemas("anthropic"), ensure_ascii=False, separators=(",", ":"))),
        "all_names_tokens": tokens(schema),
        "ran": sum(record["ran"] for record in answers),
        "all_tables_found": sum(record["all_tables_found"] for record in answers),
    }  # fmt: skip
    for name, listed in counts.items():
        figures[name] = {"mean": round(float(np.mean(listed))), "p95": round(float(np.percentile(listed, 95))),
                         "max": max(listed)}  # fmt: skip
    return figures
