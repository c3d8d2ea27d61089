"""TAG-Bench's questions and their keys (Biswal et al., CIDR 2025, section 4.1)."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click

Values: TypeAlias = tuple[Any, ...]
"""An answer as plain Python values, in order."""


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        id: as published.
        database: whose tables answer it.
        text: the question.
        retrieval: the baselines' request for Text2SQL if a model judges its rows; the question itself if the benchmark
            gives none.
        type: ``"match"``, ``"comparison"``, ``"ranking"`` or ``"aggregation"``.
        kind: ``"knowledge"`` or ``"reasoning"``.
        key: the answer as published; None if there is none.
        key_here: the answer by the key's own reading on the rows here; :attr:`key` if it is the same.
    """

    id: int
    database: str
    text: str
    retrieval: str
    type: str
    kind: str
    key: Values | None
    key_here: Values | None


def read_questions(folder: Path) -> list[Question]:
    """The questions of ``tag_queries.csv``, in the file's order.

    Raises:
        click.ClickException: the file does not exist.
    """
    file = folder / "tag_queries.csv"
    if not file.is_file():
        raise click.ClickException(f"no tag_queries.csv in {folder}; give a folder like shared/bench/tag_bench")
    here_file = folder / "answers_here.json"
    here: Mapping[str, Any] = json.loads(here_file.read_text(encoding="utf-8")) if here_file.is_file() else {}
    questions = []
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            key = parse_key(row["Answer"])
            text, retrieval = row["Query"].strip(), row["(TAG baseline) Text2SQL Input"].strip()
            questions.append(
                Question(
                    id=int(row["Query ID"]),
                    database=row["DB used"],
                    text=text,
                    retrieval=retrieval or text,
                    type=row["Query type"].lower(),
                    kind=row["Knowledge/Reasoning Type"].lower(),
                    key=key,
                    key_here=tuple(here[row["Query ID"]]) if row["Query ID"] in here else key,
                )
            )
    return questions


def parse_key(text: str) -> Values | None:
    """A published answer as values: a list as its members, a number as a number, anything else as one text.

    >>> parse_key("['Jennifer', 'Lisa']"), parse_key("54"), parse_key("K-5"), parse_key("")
    (('Jennifer', 'Lisa'), (54,), ('K-5',), None)
    """
    text = text.strip()
    if not text:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return (text,)
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)
