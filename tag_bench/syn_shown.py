"""``tag_bench syn_shown``: checks the content of ``syn``'s prompts over many databases, without asking a model.

The databases of several benchmarks are pooled. For each question, the first prompt of
``tagframe.ask`` is compared with the gold SQL: whether the prompt shows every table that the SQL reads, its joins, and
the texts that it compares with.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from statistics import median
from typing import Any

import sqlglot
from sqlglot import exp

import tagframe as tf
from tag_bench import FOLDERS, HALF, benchmark, number
from tag_bench.data import Question, drawn, of_half, read_dataset, read_halves
from tag_bench.gold_joins import Column, Schema, gold_joins
from tag_bench.measured import percent
from tag_bench.records import RECORDS, SEEDED, Record, Records, embedder_name, settings_of
from tagframe.answer import Synthesizer
from tagframe.answer.query import Query
from tagframe.embed import get_embedder
from tagframe.lm import Prompt


def text_literals(sql: str) -> list[str]:
    """The texts that a statement compares with, without patterns.

    >>> text_literals("SELECT a AS 'x' FROM t WHERE b = 'Lisbon' AND c LIKE '%z%'")
    ['Lisbon']
    """
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    literals = [node for node in tree.find_all(exp.Literal) if node.is_string]
    return [node.this for node in literals if isinstance(node.parent, exp.EQ | exp.NEQ | exp.In) and node.this.strip()]


def are_linked(columns: Collection[Column], links: Iterable[frozenset[Column]]) -> bool:
    """Whether columns that a statement makes equal are connected by key pairs."""
    wanted = set(columns)
    reached = {min(wanted)}
    pairs = list(links)
    while new := {column for pair in pairs if pair & reached for column in pair} - reached:
        reached |= new
    return wanted <= reached


def key_links(prompt_text: str, names: dict[str, str]) -> list[frozenset[Column]]:
    """The key pairs that a prompt shows, as columns of tables by id, in lower case."""
    found = []
    fenced = re.search(r"<joins>\n(.*?)\n</joins>", prompt_text, re.DOTALL)
    for line in fenced[1].splitlines() if fenced else ():
        head = re.sub(r" \(\S*(1|n):(1|m).*\)$", "", line)
        # "x of a, b; c.y = d.z": the columns of one name stand together
        head = re.sub(
            r"([^,;]+) of ([^;=]+)(?=;| =)",
            lambda at: ", ".join(f"{one}.{at[1].strip()}" for one in at[2].split(", ")),
            head,
        ).replace(";", ",")
        try:
            tree = sqlglot.parse_one(f"SELECT {head}", dialect="sqlite")
        except sqlglot.errors.SqlglotError:
            continue
        last = tree.expressions[-1]
        pairs = [(equal.left, equal.right) for equal in tree.find_all(exp.EQ)]
        pairs += [(other, last.right) for other in tree.expressions[:-1] if isinstance(last, exp.EQ)]
        for pair in pairs:
            ends = [side.find(exp.Column) for side in pair]
            if all(end is not None and end.table in names for end in ends):
                found.append(frozenset((names[end.table].lower(), end.name.lower()) for end in ends if end))
    return found


def content_of(question: Question, schema: Schema, query: Query, prompt: Prompt) -> Record:
    """How much of what the gold SQL of a question needs one prompt shows.

    Returns:
        The ``tokens`` of the prompt; whether it shows all gold ``tables``, and all joined columns (``joins``; None
        without a join); and for each text that the SQL compares with, whether the question or the schema shows it.
    """
    from litellm import token_counter

    text = "\n".join(str(message.content) for message in prompt.messages)
    schema_text = str(prompt.messages[-1].content).rpartition("Question: ")[0]
    ids = {id.lower() for id in query.tables.values()}
    joins: bool | None = None
    try:
        classes = gold_joins(question.sql, schema).classes
    except Exception:  # sqlglot reads not all that SQLite does
        classes = frozenset()
    if classes:
        links = key_links(schema_text, dict(query.tables))
        own = [{(f"{question.database}.{table}".lower(), name) for table, name in one} for one in classes]
        joins = all(are_linked(columns, links) for columns in own)
    literals = [literal.replace("'", "''").casefold() for literal in text_literals(question.sql)]
    return {
        "tokens": token_counter(model="gpt-4o", text=text),
        "tables": question.gold <= ids,
        "joins": joins,
        "literals": [literal in text.casefold() for literal in literals],
    }


def pooled(folders: Iterable[Path], half: str) -> tuple[tf.Corpus, list[Question], dict[str, Schema]]:
    """The databases of data sets as one corpus, their questions, and their columns."""
    corpora, answerable = [], []
    schemas: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for folder in folders:
        dataset = read_dataset(folder)
        questions = of_half(folder, half, dataset.questions) if read_halves(folder) else dataset.questions
        wanted = {question.database.lower() for question in questions}
        corpus = tf.open_corpus(folder / "database")
        corpora.append(corpus.subset([one.id for one in corpus.profiles if one.database.lower() in wanted]))
        for profile in corpora[-1].profiles:
            columns = tuple(column.name.lower() for column in profile.columns)
            schemas[profile.database.lower()][profile.name.lower()] = columns
        ids = {id.lower() for id in corpora[-1].ids}
        answerable += [one for one in questions if one.gold <= ids]
    pool = corpora[0]
    for other in corpora[1:]:
        pool = pool.union(other)
    return pool, answerable, dict(schemas)


@benchmark("syn_shown")
@FOLDERS
@HALF
@number("--limit", 300, "The number of questions, drawn at random.")
@RECORDS
@SEEDED
def command(
    folders: tuple[Path, ...],
    half: str,
    limit: int,
    records: Path | None,
    seed: int,
) -> dict[str, Any]:
    """Tokens of syn's prompts over pooled databases, and how much of the gold SQL they show; no model is asked.

    Example: python -m tag_bench syn_shown --data ../shared/bench/spider ../shared/bench/spider_train --json -
    """
    pool, answerable, schemas = pooled(folders, half)
    questions = drawn(answerable, limit, seed)
    synthesizer = Synthesizer(pool)

    def ask(question: Question) -> Record:
        query = synthesizer.visible(question.text)
        prompt = synthesizer.prompt(question.text, query)
        content = content_of(question, schemas.get(question.database.lower(), {}), query, prompt)
        return {"sql": question.sql, "gold_tables": sorted(question.gold), "shown": content}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = settings_of(
            used=[get_embedder()], embedder=embedder_name(), folders=[folder.resolve().name for folder in folders]
        )
        measured = Records(records, settings).each(
            questions, ask, lambda one: (f"{one.database}:{one.position}", one.text), "prompts"
        )
    found = [record["shown"] for record in measured]
    joins = [one["joins"] for one in found if one["joins"] is not None]
    literals = [literal for one in found for literal in one["literals"]]
    return {
        **settings,
        "data": [folder.name for folder in folders],
        "tables": len(pool),
        "questions": len(found),
        "tokens": {"median": median(one["tokens"] for one in found), "most": max(one["tokens"] for one in found)},
        "gold_tables_shown": percent(one["tables"] for one in found),
        "joins": len(joins),
        "gold_joins_shown": percent(joins),
        "literals": len(literals),
        "literals_in_prompt": percent(literals),
    }
