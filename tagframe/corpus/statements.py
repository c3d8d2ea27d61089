"""Statements that were run over the tables of a corpus, as plain records; rooms above read SQL and use them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tagframe.corpus.references import Column
from tagframe.corpus.told import ToldKey

_MARKS = re.compile(r"[.,;:!?…]+(?=\s|$)|[¿¡]")


@dataclass(frozen=True)
class Statement:
    """A statement, and what was learned of it.

    Attributes:
        tables: ids of the tables that it reads, sorted.
        sql: with ``?`` for every literal; "" where only the tables of a question are known.
        question: that it answers, or "".
        joins: the pairs of columns that it joins.
        runs: how often it was run, by where that was learned from.
        by: "queries", or "user" where a person said that it is right.
        cells: it as it was run, with its literals, where these are kept; "" otherwise.
        at: when it was learned last: seconds since 1970.
        digest: what it is called among facts; "" for one that is new.
    """

    tables: tuple[str, ...]
    sql: str = ""
    question: str = ""
    joins: tuple[ToldKey, ...] = ()
    runs: Mapping[str, int] = field(default_factory=dict)
    by: str = "queries"
    cells: str = ""
    at: float = 0.0
    digest: str = ""

    @property
    def fact(self) -> tuple[str, tuple[str, ...]]:
        """What it is called among facts. What a person says of a question stands for what he said before."""
        text = f"{spoken(self.question)}\n{'' if self.by == 'user' else self.sql.casefold()}\n{self.by}"
        digest = self.digest or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        return "statement", (digest, *self.tables)

    @property
    def value(self) -> dict[str, Any]:
        """What a fact says of it: plain values."""
        joins = [[key.left_table, key.left_columns, key.right_table, key.right_columns] for key in self.joins]
        said = {"sql": self.sql, "question": self.question, "joins": joins, "by": self.by, "cells": self.cells}
        return {"runs": dict(self.runs), **{name: one for name, one in said.items() if one}}

    @classmethod
    def of(cls, of: Sequence[str], value: Mapping[str, Any], at: float = 0.0) -> Statement:
        """Read what :attr:`fact` and :attr:`value` gave."""
        joins = tuple(ToldKey(left, tuple(a), right, tuple(b)) for left, a, right, b in value.get("joins", ()))
        rest = {name: value[name] for name in ("sql", "question", "by", "cells") if name in value}
        return cls(tuple(of[1:]), joins=joins, runs=value["runs"], at=at, digest=of[0], **rest)

    @staticmethod
    def moved(value: Mapping[str, Any] | None, called: Mapping[str, str]) -> dict[str, Any] | None:
        """A fact's value over the same tables under other ids."""
        if value is None:
            return None
        joins = [[called[left], a, called[right], b] for left, a, right, b in value.get("joins", ())]
        return {**value, **({"joins": joins} if joins else {})}

    @property
    def shown(self) -> str:
        """The SQL, as much of it as is kept."""
        return self.cells or self.sql

    @property
    def times(self) -> int:
        """How often it was run."""
        return sum(self.runs.values())

    def reads(self, columns: Collection[Column]) -> bool:
        """Whether it names one of these columns, or may: a name of its table stands in it."""
        text = f"{self.sql} {self.cells}"
        return any(
            table in self.tables and re.search(rf"(?<!\w){re.escape(column)}(?!\w)", text, re.IGNORECASE) is not None
            for table, column in columns
        )

    def without_cells(self) -> Statement:
        """Without what a person or a program wrote of cells: literals, and the question."""
        return replace(self, cells="", question="")


def spoken(question: str) -> str:
    """A question as it is compared with others: without case, marks that end a sentence or a part of it, and spaces.

    >>> spoken("Who, then,  lives in St. Gallen ?")
    'who then lives in st gallen'
    """
    return " ".join(_MARKS.sub(" ", question.casefold()).split())
