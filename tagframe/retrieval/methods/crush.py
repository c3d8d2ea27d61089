"""CRUSH: a language model imagines the schema that would answer the question; real tables that cover it are chosen.

Kothyari et al.: CRUSH4SQL (EMNLP 2023), also described in section 1 of MURRE. Here the segments of the imagined schema,
each a ``table:column``, replace the sub-queries: a set of tables has to cover them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from tagframe.errors import AnswerRejected
from tagframe.retrieval.decompose import Decomposer, taken_apart
from tagframe.retrieval.index import RetrievalIndex, plain
from tagframe.retrieval.method import Method
from tagframe.retrieval.methods.greedy import GreedyWeights, greedy
from tagframe.retrieval.prepare import among_candidates, both
from tagframe.retrieval.problem import Floats
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import terms

if TYPE_CHECKING:
    from tagframe.lm import LM

PROMPT = """Imagine the smallest database schema that would answer the question. Write one table on a line, as \
table(column, column, ...), and nothing else.

Question: Which models are lighter than 3500 but not built by the 'Ford Motor Company'?
Schema:
car maker(maker id, maker name)
car model(model id, maker id, model name)
car data(model id, weight)

Question: {question}
Schema:"""

WEIGHTS = GreedyWeights(coverage=1.0, join=0.0, coarse=1.0)
"""The weights of the choice: the segments covered, and the table as a whole."""

_TABLE = re.compile(r"([^\s(),;:][^(),;:\n]*?)\s*\(([^()]*)\)")


def segments(schema: Iterable[str]) -> tuple[str, ...]:
    """The segments of an imagined schema: ``table:column`` for each column.

    >>> segments(["Schools(school_id, county)", "rates"])
    ('Schools:school_id', 'Schools:county', 'rates')
    """
    found: list[str] = []
    for text in schema:
        tables = _TABLE.findall(text)
        for table, columns in tables:
            names = [name.strip() for name in columns.split(",") if name.strip()]
            found += [f"{table}:{name}" for name in names] or [table]
        if not tables and text.strip():
            found.append(text.strip())
    return tuple(dict.fromkeys(found))


def parse_schema(answer: str) -> tuple[str, ...]:
    """The segments of a model's answer to :data:`PROMPT`.

    Raises:
        AnswerRejected: no line of the answer is a table with columns in parentheses.
    """
    if not _TABLE.search(answer):
        raise AnswerRejected("write one table on a line, as table(column, column); the answer has none")
    return segments(line for line in answer.splitlines() if _TABLE.search(line))


def imagine(lm: LM, question: Question) -> Question:
    """The question with the segments of a schema that a model imagines; unchanged, with a warning, if that fails."""
    return taken_apart(lm, question, PROMPT, parse_schema)


def relevance(index: RetrievalIndex, question: Question, lm: LM | None = None) -> Floats:
    """The relevance of the question together with the imagined schema."""
    segments_apart = " ".join(map(plain, question.subqueries))
    return both(index, f"{question.text} {segments_apart}", [*question.terms, *terms(segments_apart)])


CRUSH = Method(
    "crush",
    "takes tables that cover an imagined schema",
    relevance,
    among_candidates,
    partial(greedy, weights=WEIGHTS),
    decomposer=Decomposer(imagine, segments),
    asks_model=True,
)
