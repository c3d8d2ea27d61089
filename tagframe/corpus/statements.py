"""Past statements over the tables of a corpus, as plain records; the rooms above read SQL and use them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tagframe.corpus.references import Column, JoinColumns, moved_key

_TEXTS = "sql", "question", "by", "cells", "verified_by"
_MARKS = re.compile(r"[.,;:!?…]+(?=\s|$)|[¿¡]")


@dataclass(frozen=True)
class Statement:
    """A learned statement.

    Attributes:
        tables: ids of the tables that it reads, sorted.
        sql: with ``?`` for every literal; "" if only the tables of a question are known.
        question: the question that it answers, or "".
        joins: the pairs of columns that it joins.
        runs: how often it was run, by the source from which that was learned.
        by: "queries", or "user" if a person confirmed it.
        cells: the statement with its literals, if these are known; "" otherwise.
        verified_by: the person or team that marked it as verified, with its parameters as ``:year``; "" for others.
        at: when it was last learned: seconds since 1970.
        digest: its key among the facts; "" for a new one.
    """

    tables: tuple[str, ...]
    sql: str = ""
    question: str = ""
    joins: tuple[JoinColumns, ...] = ()
    runs: Mapping[str, int] = field(default_factory=dict)
    by: str = "queries"
    cells: str = ""
    verified_by: str = ""
    at: float = 0.0
    digest: str = ""

    @property
    def fact(self) -> tuple[str, tuple[str, ...]]:
        """Its key among the facts. A user's statement for a question replaces the earlier one."""
        return "statement", (self.digest or self._digest(), *self.tables)

    def _digest(self) -> str:
        text = f"{spoken(self.question)}\n{'' if self.by == 'user' else self.sql.casefold()}\n{self.by}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def value(self) -> dict[str, Any]:
        """The value of its fact: plain values."""
        joins = [key.value for key in self.joins]
        plain = {name: getattr(self, name) for name in _TEXTS} | {"joins": joins}
        return {"runs": dict(self.runs), "at": self.at, **{name: one for name, one in plain.items() if one}}

    @classmethod
    def of(cls, of: Sequence[str], value: Mapping[str, Any]) -> Statement:
        """The statement from its :attr:`fact` and :attr:`value`."""
        joins = tuple(map(JoinColumns.of, value.get("joins", ())))
        rest = {name: value[name] for name in _TEXTS if name in value}
        return cls(tuple(of[1:]), joins=joins, runs=value["runs"], at=value["at"], digest=of[0], **rest)

    @staticmethod
    def moved(value: Mapping[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
        """A fact's value with other ids for its tables."""
        joins = [moved_key(one, called) for one in value.get("joins", ())]
        return {**value, **({"joins": joins} if joins else {})}

    @property
    def text(self) -> str:
        """The SQL, with its literals if they are known."""
        return self.cells or self.sql

    @property
    def times(self) -> int:
        """How often it was run."""
        return sum(self.runs.values())

    def reads(self, columns: Collection[Column]) -> bool:
        """Whether it may name one of these columns: it reads the table, and has the column's name in its text."""
        text = f"{self.sql} {self.cells}"
        return any(
            table in self.tables and re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text, re.IGNORECASE) is not None
            for table, column in columns
        )

    def without_cells(self) -> Statement:
        """The statement without text that may have cells: literals, and the question."""
        return replace(self, cells="", question="")


def spoken(question: str) -> str:
    """A question in the form that is compared with others: without case, punctuation between words, and extra spaces.

    >>> spoken("Who, then,  lives in St. Gallen ?")
    'who then lives in st gallen'
    """
    return " ".join(_MARKS.sub(" ", question.casefold()).split())
