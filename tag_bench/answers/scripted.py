"""Replacements for models without any knowledge, to test whether all questions run to their end.

A language model that answers every kind of prompt in its form, and an embedder of hashed words, which is fast enough
for every row of every database.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tag_bench.server import Request
from tagframe.embed import Kind

_TABLE = re.compile(
    r'^(?:CREATE )?TABLE ("(?:[^"]|"")+"|`[^`]+`|\w+)\s*\(?[^\n]*\n(?:\(\n)?\s*("(?:[^"]|"")+"|`[^`]+`|\w+)',
    re.MULTILINE,
)
_ROWS = re.compile(r"<rows>\n(.*?)\n</rows>", re.DOTALL)
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
    said = "\n".join(str(message["content"]) for message in request.messages)
    rows = [len(_NUMBERED.findall(block[1])) for block in _ROWS.finditer(said)]
    if "You write one SQLite SELECT statement" in said:
        table, column = _first(said)
        return f"```sql\nSELECT {column} FROM {table} WHERE sem_filter('{{{column}}} is known to all') LIMIT 3\n```"
    if "answer the following questions for the tables" in said or "Generate SQL given the question" in said:
        return f"SELECT count(*) FROM {_first(said)[0]}"
    if "Answer with the numbers of " in said:
        return " > ".join(str(number + 1) for number in range(rows[-1]))
    packed = "Answer with one line for each row" in said
    known = "True" if "a colon, and True or False" in said else "They are much alike."
    answer = next((answer for form, answer in _FORMS if form in said), known)
    return "\n".join(f"{number}: {answer}" for number in range(1, rows[-1] + 1)) if packed else answer


def _first(said: str) -> tuple[str, str]:
    """The first table in the prompt, and its first column, as SQL."""
    tables = list(_TABLE.finditer(said.rpartition("External Knowledge: age")[2]))
    return tables[0][1], tables[0][2]


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
