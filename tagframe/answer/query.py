"""A query: one SELECT statement, and the tables that its names stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tagframe.corpus import Corpus, TableProfile
from tagframe.corpus.facts import Metric
from tagframe.retrieval import RetrievedTables


@dataclass(frozen=True)
class Query:
    """The output of ``syn`` and the input of ``exec``.

    Attributes:
        sql: one SELECT statement in the engine's dialect, with or without LM functions; "" if the tables lack what the
            question needs.
        tables: that may be read: name in SQL → table id.
        retrieved: the retrieved tables; None if all tables were shown alike.
        assumptions: how ``syn`` read an ambiguous question.
        wants_text: whether a text is to be written from the rows; None if ``syn`` does not say.
        lacking: what the question needs and the tables lack, in the words of ``syn``.
        others: other readings of the question, each with its statement.
        metrics: of semantic models, that the question names.
        brief: ids of tables of which ``syn`` is shown some columns only: the first, and those near to the question.
        verified: who verified the statement, for which question, and the values of its parameters; "" for others.
    """

    sql: str
    tables: Mapping[str, str] = field(default_factory=dict, repr=False)
    retrieved: RetrievedTables | None = field(default=None, repr=False, compare=False)
    assumptions: tuple[str, ...] = ()
    wants_text: bool | None = None
    lacking: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    metrics: tuple[Metric, ...] = field(default=(), repr=False)
    brief: frozenset[str] = field(default=frozenset(), repr=False)
    verified: str = ""

    def __str__(self) -> str:
        return self.sql

    def to_dict(self) -> dict[str, Any]:
        """The query as JSON values."""
        return {
            "sql": self.sql,
            "tables": dict(self.tables),
            "assumptions": list(self.assumptions),
            "lacking": list(self.lacking),
            **({"verified": self.verified} if self.verified else {}),
            "others": [list(other) for other in self.others],
        }


def can_run(query: Any) -> bool:
    """Whether there is a statement, and not only what is lacking."""
    return not isinstance(query, Query) or bool(query.sql) or not query.lacking


def names_in_sql(profiles: Iterable[TableProfile]) -> dict[str, str]:
    """Name in SQL → table id: a table's own name, or its id if another table has the same name (ignoring case)."""
    listed = list(profiles)
    shared = Counter(profile.name.casefold() for profile in listed)
    return {profile.name if shared[profile.name.casefold()] == 1 else profile.id: profile.id for profile in listed}


def names_of(corpus: Corpus) -> dict[str, str]:
    """The names of all tables of a corpus whose rows can be read."""
    return names_in_sql(profile for profile in corpus.profiles if corpus.engine(profile.id) is not None)
