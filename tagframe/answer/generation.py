"""``gen``: an answer from rows, as a text and as plain values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from tagframe import results
from tagframe.answer.answer import Generated
from tagframe.answer.steps import driver
from tagframe.blocks import FENCE_RULE, fence
from tagframe.errors import AnswerRejected
from tagframe.lm import Batch, Message, Prompt
from tagframe.lm.prompt import Accept
from tagframe.operators import Step, gather, run
from tagframe.operators.cells import described, encode, encode_rows, prompt_names
from tagframe.operators.values import parse_json

T = TypeVar("T")

GEN_CHARACTERS = 40_000
"""The most characters of rows in one prompt; about 10,000 tokens."""
_TEXT_ROWS = 10
_IS_TEXT = re.compile(r"\s*SELECT\s+sem_agg\(", re.IGNORECASE)

_TASK = f"""You answer a question from the rows that a query found for it. The query has already done the selecting,
counting, judging and ordering that the question asks for: take its rows, in their order, as its result.
Reply with one JSON object {{"text": …, "values": […]}} and nothing else.
"values": the answer itself, as plain values in the order that the question asks for, and nothing that it does not ask
for: [7] for how many, ["Oslo"] for which city, [true] for a yes-or-no question (or the very words that the question
wants), ["Ann", "Bo"] for who. One value for each thing asked for, numbers as numbers, names as the rows spell them, no
units, no sentences, no duplicates unless the question wants a value for each row. [] where the question asks for a
text, as a summary, a description or an opinion does, and where the rows do not hold the answer.
"text": the answer in plain text for a person, brief; of a summary or a description all of it, with what the rows say
and, where the question asks for more than rows can hold, what you know of these things, marked as general knowledge.
Where neither the rows nor that hold the answer, say so.
{FENCE_RULE}"""


def gen_prompt(question: str, rows: pd.DataFrame, query: Any = None) -> tuple[Prompt, str]:
    """``gen``'s prompt: the question, as many rows as fit, and what ``syn`` said; and how many rows these are."""
    page, count = page_of(rows, GEN_CHARACTERS)
    remarks = described(rows, range(rows.shape[1]), list(map(str, rows.columns)))
    remarks += "".join(f"\nIt is assumed that {one}." for one in getattr(query, "assumptions", ()))
    remarks += "".join(f"\nThe tables lack this part: {one}." for one in getattr(query, "lacking", ()))
    text = f"{fence(page, 'rows')}\n\nRows: {count}.{remarks}\n\nQuestion: {question}"
    return Prompt((Message("system", _TASK), Message("user", text))), count


def page_of(rows: pd.DataFrame, characters: int) -> tuple[list[str], str]:
    """The names of the columns and as many rows as fit, a line each; and how many these are, in words."""
    columns, lines = f"Columns: {encode(prompt_names(rows, range(rows.shape[1])))}", _lines(rows)
    size = max(sum(total <= characters for total in accumulate(map(len, lines))), min(len(lines), 1))
    return [columns, *lines[:size]], f"{len(lines)}" if size == len(lines) else f"the first {size} of {len(lines)}"


def _lines(rows: pd.DataFrame) -> list[str]:
    """Each row as a JSON list of its cells."""
    names = prompt_names(rows, range(rows.shape[1]))
    read = [
        json.loads(line or "{}") for line in encode_rows(rows, range(rows.shape[1]), names, blanks=True, any_type=True)
    ]
    return [encode([_excerpt(row.get(name)) for name in names]) for row in read]


def _excerpt(cell: Any) -> Any:
    """A cell without NUL characters, and without the noise of computed fractions: 4519.68 for 4519.679999999999."""
    if isinstance(cell, str):
        return cell.replace("\0", "")
    return float(f"{cell:.12g}") if isinstance(cell, float) and not cell.is_integer() else cell


def parse_generated(text: str) -> Generated:
    """An answer with its values.

    >>> parse_generated('{"text": "Oslo, by far.", "values": ["Oslo"]}')
    Generated(text='Oslo, by far.', values=('Oslo',))

    Raises:
        AnswerRejected: it is not such an object; the reason is written for the model.
    """
    remarks, body = parse_json(text, 'one JSON object {"text": …, "values": […]}')
    if not isinstance(remarks, dict) or set(remarks) != {"text", "values"}:
        raise AnswerRejected(f'expected an object with the keys "text" and "values", got {body[:120]!r}')
    if not isinstance(remarks["text"], str) or not isinstance(remarks["values"], list):
        raise AnswerRejected(f'"text" is a string and "values" is a list, got {body[:120]!r}')
    for value in remarks["values"]:
        if not (value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))):
            raise AnswerRejected(f'"values" holds strings, numbers, true, false and null only, got {value!r:.120}')
    if not remarks["text"].strip() and not remarks["values"]:
        raise AnswerRejected('"text" is empty, and there are no values')
    return Generated(remarks["text"].strip() or ", ".join(map(str, remarks["values"])), tuple(remarks["values"]))


@dataclass(frozen=True)
class Generator:
    """``gen``: one call over the rows, or the first page of them.

    A text of more rows than fit into one prompt is made of the first of them, and says so. If ``syn`` marks the rows as
    the answer, no model is asked.

    Attributes:
        text: whether to write a text even then.
    """

    text: bool = False

    def __call__(self, request: str, rows: pd.DataFrame) -> Generated:
        """The answer; the thread waits for it."""
        return run(self.steps(request, rows), driver(), "gen")

    def steps(self, request: str, rows: pd.DataFrame) -> Step[Generated]:
        """The answer as a step.

        Raises:
            LMError: the model gave no answer.
        """
        execution = results.recall(rows, "execution")
        query = None if execution is None else execution.query
        cell = rows.iat[0, 0] if rows.shape == (1, 1) else None
        if query is not None and _IS_TEXT.match(query.sql) and isinstance(cell, str) and cell.strip():
            return Generated(cell)  # the text that sem_agg made of all rows
        wants = None if query is None else query.wants_text
        if wants is False and not self.text and (not len(rows) or not is_empty(rows)):
            values = tuple(plain_values(rows))
            return Generated(_in_words(rows, values), values)
        prompt, count = gen_prompt(request, rows, query)
        generated: Generated = yield from one_value(prompt, parse_generated)
        is_cut = count != f"{len(rows)}"
        return replace(generated, text=f"{generated.text}\n(from {count} rows)") if is_cut else generated


def _in_words(rows: pd.DataFrame, values: Sequence[Any]) -> str:
    """One row with the names of its columns; more rows as a list or a table."""
    if not len(rows):
        return "none"
    if rows.shape[1] == 1 or len(rows) > 1:
        return rows_as_text(rows)
    named = [f"{name}: {'none' if value is None else value}" for name, value in zip(rows.columns, values, strict=True)]
    return ", ".join(named)


def one_value(prompt: Prompt, accept: Accept[T]) -> Step[T]:
    """The answer to one prompt, as a step: ``value = yield from one_value(prompt, accept)``.

    Args:
        prompt: to ask.
        accept: parses the answer, or raises an error whose message the model is shown when it is asked once more.

    Raises:
        LMError: there is no answer.
    """
    return (yield from values_of(Batch([prompt], accept)))[0]


def values_of(batch: Batch[T]) -> Step[list[T]]:
    """The answers to the prompts of a batch.

    Raises:
        LMError: a prompt has no answer.
    """
    completions = yield from gather(batch)
    for completion in completions:
        if completion.error is not None:
            raise completion.error
    return [cast("T", completion.value) for completion in completions]


def is_empty(rows: Any) -> bool:
    """Whether there are no rows, or only nulls."""
    return isinstance(rows, pd.DataFrame) and bool(rows.isna().all(axis=None))


def plain_values(rows: pd.DataFrame) -> list[Any]:
    """The cells as plain Python values, row by row: text, numbers, booleans, None for nulls.

    >>> plain_values(pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "t": ["a", "b"]}))
    [1, 'a', None, 'b']
    """
    return [cell for row in plain_rows(rows) for cell in row]


def plain_rows(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as plain Python values."""
    return [tuple(map(plain_value, row)) for row in rows.itertuples(index=False, name=None)]


def plain_value(cell: Any) -> Any:
    """One cell as a plain Python value."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if hasattr(cell, "isoformat"):
        return cell.isoformat()
    return cell if isinstance(cell, str | int | float | bool) else str(cell)


def rows_as_text(rows: pd.DataFrame) -> str:
    """Rows as a text without a model: the value, the values, or the first rows as a table."""
    if not len(rows) or not rows.shape[1]:
        return "no rows"
    if rows.shape[1] == 1:
        values = ["" if value is None else str(value) for value in plain_values(rows)]
        more = f", … ({len(values):,} values)" if len(values) > _TEXT_ROWS else ""
        return ", ".join(values[:_TEXT_ROWS]) + more
    text: str = rows.head(_TEXT_ROWS).to_string(index=False)
    return text + (f"\n… ({len(rows):,} rows)" if len(rows) > _TEXT_ROWS else "")
