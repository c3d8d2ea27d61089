"""Stand-ins for models: recorded judgements, and answers and vectors in the right form without any knowledge.

The file of judgements has ``filters`` (a claim that contains ``claim_contains`` is true of the cells under ``true``),
``rankings`` (for a criterion that contains ``criterion_contains``, the order of cells is ``best_first``) and, for some
tests, ``maps`` (for an instruction that contains ``instruction_contains``, a cell's answer is in ``answers``) and
``texts`` (the answer is ``text``). Other requests are refused, so that a question is never answered by chance.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from tag_bench.server import Reply, Request, error
from tagframe.embed import Kind

_TABLE = re.compile(
    r'^(?:CREATE )?TABLE ("(?:[^"]|"")+"|`[^`]+`|\w+)(?: \([^)]*\): |\s*\(?[^\n]*\n(?:\(\n)?\s*)'
    r'("(?:[^"]|"")+"|`[^`]+`|\w+)',
    re.MULTILINE,
)
_TABLE_LINE = re.compile(r'^("(?:[^"]|"")+"|`[^`]+`|\w+)(?: \([^)]*\))?: ("(?:[^"]|"")+"|`[^`]+`|\w+)', re.MULTILINE)
"""A table as ``tf.ask`` shows it."""
_PACKS = re.compile(r"<rows>\n(.*?)\n</rows>", re.DOTALL)
_NUMBERED = re.compile(r"^\[?\d+\]? ", re.MULTILINE)
_FORMS = (
    ('{"text": …, "values": […]}', '{"text": "Six.", "values": [6]}'),
    ("evaluatable in Python", "[6]"),
    ("How relevant is the data point", "0.5"),
    ("Answer with True or False", "True"),
    ("one number from 0 to 1", "0.5"),
    ("one whole number", "6"),
    ("one number in digits", "6"),
    ("one date written as", "2024-05-17"),
)
"""Texts in prompts, and answers to them."""


def anything(request: Request) -> str:
    """An answer to a request; SQL selects the first column of the first table, judged by an LM function."""
    text = "\n".join(str(message["content"]) for message in request.messages)
    rows = [len(_NUMBERED.findall(block[1])) for block in _PACKS.finditer(text)]
    if "rite one SQLite SELECT" in text:
        table, column = _first(text)
        return f"```sql\nSELECT {column} FROM {table} WHERE sem_filter('{{{column}}} is known to all') LIMIT 3\n```"
    if "answer the following questions for the tables" in text or "Generate SQL given the question" in text:
        return f"SELECT count(*) FROM {_first(text)[0]}"
    if "Answer with the numbers of " in text:
        return " > ".join(str(number + 1) for number in range(rows[-1]))
    packed = "Answer with one line for each row" in text
    known = "True" if "a colon, and True or False" in text else "They are much alike."
    answer = next((answer for form, answer in _FORMS if form in text), known)
    return "\n".join(f"{number}: {answer}" for number in range(1, rows[-1] + 1)) if packed else answer


def _first(text: str) -> tuple[str, str]:
    """The first table in the prompt, and its first column, as SQL."""
    block = text.rpartition("<tables>")[2]
    found = _TABLE.search(text.rpartition("External Knowledge: age")[2]) or _TABLE_LINE.search(block)
    assert found is not None
    return found[1], found[2]


class HashedWords:
    """An embedder that counts each word of a text in one of 256 dimensions."""

    name = "hashed words"
    dimension = 256

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> npt.NDArray[np.float32]:
        """The vectors of texts, of length 1; zeros for a text without words."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()):
                vector[zlib.crc32(word.encode()) % self.dimension] += 1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


_ROWS = re.compile(r"<(rows?)>\n(.*?)\n</\1>", re.DOTALL)
_NUMBER = re.compile(r"^\[(\d+)\] ")
_INSTRUCTION = re.compile(r"(?:Claim|Criterion|Instruction|Question|Request): ")


def read_judgements(file: Path) -> Mapping[str, Any]:
    """The recorded judgements.

    Raises:
        click.ClickException: the file does not exist.
    """
    if not file.is_file():
        raise click.ClickException(
            f"no {file.name} in {file.parent}: recorded judgements are needed instead of a model"
        )
    judgements: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return judgements


class Judge:
    """Answers requests from judgements: for :class:`tag_bench.server.Server`.

    Args:
        judgements: in the file's form.
    """

    def __init__(self, judgements: Mapping[str, Any]) -> None:
        self._judgements = judgements

    def __call__(self, request: Request) -> str | Reply:
        """The answer, or status 422 if no judgement covers the request."""
        text = "\n".join(str(message["content"]) for message in request.messages)
        lines = [line for block in _ROWS.finditer(text) for line in block[2].splitlines()]
        rows = [json.loads(_NUMBER.sub("", line)) for line in lines]
        instruction = _ROWS.sub("", text)
        for answer in (self._truth, self._order, self._value, self._text):
            if (given := answer(instruction, rows)) is not None:
                return given
        lines = [line for line in instruction.splitlines() if line.strip()]
        last_instruction = next((line for line in reversed(lines) if _INSTRUCTION.match(line)), lines[-1])
        return error(422, f"no recorded judgement covers {last_instruction[:200]!r}")

    def _truth(self, instruction: str, rows: Sequence[Any]) -> str | None:
        for known in self._covering("filters", "claim_contains", instruction):
            return str(any(cell in known["true"] for cell in _cells(rows[-1])))
        return None

    def _order(self, instruction: str, rows: Sequence[Any]) -> str | None:
        """All rows in order; cells that are not in the list come last."""
        for known in self._covering("rankings", "criterion_contains", instruction):
            best = {cell: number for number, cell in enumerate(known["best_first"])}
            ranks = [min((best[cell] for cell in _cells(row) if cell in best), default=len(best)) for row in rows]
            if min(ranks) == len(best):
                continue
            order = sorted(range(len(rows)), key=ranks.__getitem__)
            return " > ".join(str(number + 1) for number in order)
        return None

    def _value(self, instruction: str, rows: Sequence[Any]) -> str | None:
        for known in self._covering("maps", "instruction_contains", instruction):
            for cell in _cells(rows[-1]):
                if cell in known["answers"]:
                    return str(known["answers"][cell])
        # A claim that is true of just one cell gives that cell.
        filled = instruction
        for name, cell in rows[-1].items() if rows and isinstance(rows[-1], dict) else ():
            filled = filled.replace(f"{{{name}}}", str(cell))
        if filled != instruction:
            for known in self._covering("filters", "claim_contains", filled):
                if len(known["true"]) == 1:
                    return str(known["true"][0])
        return None

    def _text(self, instruction: str, rows: Sequence[Any]) -> str | None:
        return next((known["text"] for known in self._covering("texts", "instruction_contains", instruction)), None)

    def _covering(self, kind: str, key: str, instruction: str) -> Iterator[Mapping[str, Any]]:
        return (known for known in self._judgements.get(kind, ()) if known[key] in instruction)


def _cells(row: Any) -> list[str]:
    cells = row.values() if isinstance(row, dict) else [row]
    return [cell for cell in cells if isinstance(cell, str)]
