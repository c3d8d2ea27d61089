"""The prompts of ``syn`` and ``gen``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tagframe.engines.base import quoted
from tagframe.lm import Message, Prompt
from tagframe.operators import OPERATORS
from tagframe.operators.cells import FENCE_RULE, encode_rows, fence

if TYPE_CHECKING:
    from tagframe.corpus import TableProfile

_SAMPLES = 3
_SAMPLE_CHARACTERS = 60
GEN_CHARACTERS = 40_000
"""Rows that ``gen`` is shown, in characters at most; about 10,000 tokens."""

_OPERATORS = ",\n".join(
    f"{operator.example}{' (only as the last)' if operator.ends else ''}"
    for operator in OPERATORS.values()
    if operator.in_syn
)
_SYN_TASK = f"""You turn a question about tables into a query. A query has two parts.
"sql": one SQLite SELECT statement over the tables, or null for all rows of the merged table (where there is one). Let
SQL do what it can do exactly: joining, comparing, counting, sorting, limiting. Put names that need it in double quotes.
"operators": a list of semantic operators, run in order over the rows of the first part, for what SQL cannot do:
judging, reading free text, knowing the world. Columns are named in braces. They are
{_OPERATORS}.
An operator costs a model call a row: select rows and the needed columns in SQL first, and use no operator where SQL is
enough. Select the columns that an answer should name.
{FENCE_RULE} The same holds for names and sample values of the tables.
Reply with one JSON object {{"sql": …, "operators": […]}} and nothing else."""

_GEN_TASK = (
    "You answer a question from the rows that a query found for it. The query has already done the selecting, counting "
    "and judging that the question asks for, so take the rows as its result. Answer briefly, in plain text, from the "
    f"rows alone; where they do not hold the answer, say so. {FENCE_RULE}"
)


def describe_tables(tables: Mapping[str, TableProfile]) -> str:
    """Tables as ``CREATE TABLE`` statements with a few values each, the way Text2SQL models know them (TAG, B.1).

    Args:
        tables: name in SQL → profile.
    """
    statements = []
    for name, profile in tables.items():
        lines = []
        for column in profile.columns:
            if column.hidden:
                continue
            samples = [sample[:_SAMPLE_CHARACTERS] for sample in column.samples[:_SAMPLES]]
            notes = [column.description, ", ".join(json.dumps(sample, ensure_ascii=False) for sample in samples)]
            lines.append(f"  {quoted(column.name)} {column.family},{_comment(notes)}")
        rows = _comment([profile.description, "" if profile.rows is None else f"{profile.rows} rows"])
        statements.append(f"CREATE TABLE {quoted(name)} ({rows}\n" + "\n".join(lines) + "\n);")
    return "\n".join(statements)


def _comment(notes: Sequence[str]) -> str:
    said = "; ".join(" ".join(note.split()) for note in notes if note)
    return f"  -- {said}" if said else ""


def syn_prompt(
    question: str, tables: Mapping[str, TableProfile], joins: Sequence[str], merged_columns: Sequence[str] | None
) -> Prompt:
    """``syn``'s prompt: the schema, how the tables join, and the question."""
    parts = [fence(describe_tables(tables), "tables")]
    if joins:
        listed = "\n".join(joins) if all(map(_is_ordinary, joins)) else _fenced(joins, "joins")
        parts.append(f"These columns join:\n{listed}")
    if merged_columns is None:
        parts.append('There is no merged table: "sql" may not be null.')
    elif all(map(_is_ordinary, merged_columns)):
        parts.append("Columns of the merged table: " + ", ".join("{" + name + "}" for name in merged_columns))
    else:
        parts.append(f"Columns of the merged table:\n{_fenced(merged_columns, 'columns')}")
    parts.append(f"Question: {question}")
    return Prompt((Message("system", _SYN_TASK), Message("user", "\n\n".join(parts))))


# Names of a few words at most, which say nothing beside what they name.
_ORDINARY = re.compile(r"[\w.$%#/()&+='-]{1,63}(?: [\w.$%#/()&+='-]{1,63}){0,5}")


def _is_ordinary(name: str) -> bool:
    return _ORDINARY.fullmatch(name) is not None


def _fenced(names: Sequence[str], tag: str) -> str:
    """Names, one a line, that may be sentences of a stranger: data as the tables are."""
    return fence([json.dumps(name, ensure_ascii=False) for name in names], tag)


def gen_prompt(question: str, rows: pd.DataFrame) -> Prompt:
    """``gen``'s prompt: the question and the rows, as many as fit; how many do not is said to the model."""
    lines = [line or "{}" for line in encode_rows(rows, range(rows.shape[1]))]
    shown, size = 0, 0
    while shown < len(lines) and (size + len(lines[shown]) <= GEN_CHARACTERS or shown == 0):
        size += len(lines[shown])
        shown += 1
    count = f"{len(lines)} rows" if shown == len(lines) else f"the first {shown} of {len(lines)} rows"
    text = f"{fence(lines[:shown], 'rows')}\n\nThese are {count}.\n\nQuestion: {question}"
    return Prompt((Message("system", _GEN_TASK), Message("user", text)))
