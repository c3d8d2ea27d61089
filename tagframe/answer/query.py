"""A query: one SELECT statement, and which tables its names mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tagframe.corpus import Corpus, TableProfile
from tagframe.retrieval import RetrievedTables


@dataclass(frozen=True)
class Query:
    """What ``syn`` writes and ``exec`` runs.

    Attributes:
        sql: one SELECT statement in the engine's dialect, with LM functions or without.
        tables: what may be read: name in SQL → table id.
        retrieved: where the tables were found, and not simply all; else None.
        assumptions: the readings of the question that ``syn`` says it chose, where it could be read otherwise.
        wants_text: whether a text is to be written from the rows; None where ``syn`` does not say.
    """

    sql: str
    tables: Mapping[str, str] = field(default_factory=dict, repr=False)
    retrieved: RetrievedTables | None = field(default=None, repr=False, compare=False)
    assumptions: tuple[str, ...] = ()
    wants_text: bool | None = None

    def __str__(self) -> str:
        return self.sql

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"sql": self.sql, "tables": dict(self.tables), "assumptions": list(self.assumptions)}


def names_in_sql(profiles: Iterable[TableProfile]) -> dict[str, str]:
    """Name in SQL → table id: a table's own name, or its id where another one shares the name (in any case)."""
    listed = list(profiles)
    shared = Counter(profile.name.casefold() for profile in listed)
    return {profile.name if shared[profile.name.casefold()] == 1 else profile.id: profile.id for profile in listed}


def names_of(corpus: Corpus) -> dict[str, str]:
    """The names of all tables of a corpus whose rows can be read."""
    return names_in_sql(profile for profile in corpus.profiles if corpus.engine(profile.id) is not None)
