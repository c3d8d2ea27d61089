"""What retrieval gives back: tables with reasons, and how they join."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe.errors import NotConnected
from tagframe.joins import JoinPlan, KeyPair, MergeReport, merge, plan_joins, role_hints

if TYPE_CHECKING:
    from tagframe.corpus import Corpus
    from tagframe.retrieval.index import RetrievalIndex


@dataclass(frozen=True)
class TableHit:
    """One retrieved table.

    Attributes:
        id: ``database.table``.
        score: what choosing it was worth to the selector; comparable within one result only.
        reasons: why it was chosen, in words.
        probability: the chance that the question needs it, where the method gives one.
    """

    id: str
    score: float
    reasons: tuple[str, ...] = ()
    probability: float | None = None


@dataclass(frozen=True, eq=False)
class RetrievedTables:
    """The tables that answer a question together, best first, and how they join.

    Attributes:
        question: as asked.
        tables: the anchor is not among them.
        corpus: what was searched.
        anchor: id of the table whose rows the join plan starts from, or None.
        method: the selector that chose them.
        note: what else there is to say ("the corpus has 3 tables only"), or "".
    """

    question: str
    tables: list[TableHit]
    corpus: Corpus = field(repr=False)
    anchor: str | None = None
    method: str = ""
    note: str = ""
    _index: RetrievalIndex | None = field(default=None, repr=False)

    @property
    def ids(self) -> list[str]:
        """The ids of the tables, the anchor first where there is one."""
        found = [hit.id for hit in self.tables]
        return found if self.anchor is None else [self.anchor, *found]

    @cached_property
    def join_plan(self) -> JoinPlan:
        """How the tables are joined; a table that no word asked for may be in it where the others need it as a bridge.

        Raises:
            NotConnected: no key pairs connect the tables.
        """
        positions = {profile.id: position for position, profile in enumerate(self.corpus.profiles)}
        members = [positions[table] for table in self.ids]
        assert self._index is not None
        links = self._index.links
        around = links.of_databases(members)
        keys = links.keys([*members, *around])
        return plan_joins(
            [self.corpus.profiles[member] for member in members],
            keys,
            anchor=self.anchor,
            role_hints=role_hints(keys, self.question.split()),
            bridges=[self.corpus.profiles[table] for table in around if table not in members],
        )

    @property
    def joins(self) -> list[KeyPair]:
        """The key pairs of the join plan, in its order; none where the tables do not connect."""
        try:
            return [step.key for step in self.join_plan.steps]
        except NotConnected:
            return []

    def merge(self, **options: Any) -> pd.DataFrame:
        """The tables joined along the plan; ``frame.tag.merge_report`` accounts for every row.

        Args:
            **options: those of :func:`tagframe.joins.merge`: how, columns, limit, on_fanout, ….

        Raises:
            NotConnected: no key pairs connect the tables.
            FanOut: a step would repeat rows of the table that the plan starts from.
        """
        frame, report = self.merge_with_report(**options)
        results.remember(frame, merge_report=report)
        return frame

    def merge_with_report(self, **options: Any) -> tuple[pd.DataFrame, MergeReport]:
        """The merged frame and its report; see :meth:`merge`."""
        return merge(self.join_plan, self.corpus, **options)

    def to_frame(self) -> pd.DataFrame:
        """A row for each table, best first: id, score, probability (NaN where there is none), reasons (a list)."""
        return pd.DataFrame(
            {
                "id": [hit.id for hit in self.tables],
                "score": [hit.score for hit in self.tables],
                "probability": [float("nan") if hit.probability is None else hit.probability for hit in self.tables],
                "reasons": pd.Series([list(hit.reasons) for hit in self.tables], dtype=object),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``tagframe retrieve --json`` prints them."""
        return {
            "question": self.question,
            "tables": [
                {"id": hit.id, "score": round(hit.score, 6), "reasons": list(hit.reasons)} for hit in self.tables
            ],
            "joins": [{"left": key.left, "right": key.right} for key in self.joins],
        }

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        lines = [f"{len(self.tables)} tables for {self.question!r}"]
        if self.anchor is not None:
            lines.append(f"together with {self.anchor}")
        width = max((len(hit.id) for hit in self.tables), default=0)
        for rank, hit in enumerate(self.tables, start=1):
            chance = "" if hit.probability is None else f"  {hit.probability:.0%}"
            lines.append(f"{rank:>3}. {hit.id:<{width}}  {hit.score:.3f}{chance}  {'; '.join(hit.reasons)}".rstrip())
        joins = self.joins
        if joins:
            lines.append("joined on")
            lines += [f"     {key.left} = {key.right}" for key in joins]
        elif len(self.ids) > 1:
            lines.append("no key pairs connect them")
        if self.note:
            lines.append(f"({self.note})")
        return "\n".join(lines)
