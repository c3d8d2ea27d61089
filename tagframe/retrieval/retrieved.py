"""What retrieval gives back: tables with reasons, and how they join."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe.errors import NotConnected
from tagframe.joins import JoinPlan, plan_joins
from tagframe.keys import KeyPair
from tagframe.merging import MergeReport, run_plan
from tagframe.retrieval.role_hints import role_hints

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
    tables: tuple[TableHit, ...]
    corpus: Corpus = field(repr=False)
    anchor: str | None = None
    method: str = ""
    note: str = ""
    _index: RetrievalIndex | None = field(default=None, repr=False)
    # What the last merge was and did, to be shown with the tables: "last" is its only key.
    _merged: dict[str, tuple[JoinPlan, MergeReport]] = field(default_factory=dict, init=False, repr=False)

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

    def merge(self, plan: JoinPlan | None = None, **options: Any) -> pd.DataFrame:
        """The tables joined along the plan; ``frame.tag.merge_report`` accounts for every row.

        Args:
            plan: how to join them, instead of :attr:`join_plan`.
            **options: those of :func:`tagframe.merging.run_plan`: how, columns, limit, on_fanout, ….

        Raises:
            NotConnected: no key pairs connect the tables.
            FanOut: a step would repeat rows of the table that the plan starts from.
        """
        frame, report = self.merge_with_report(plan, **options)
        results.remember(frame, merge_report=report)
        return frame

    def merge_with_report(self, plan: JoinPlan | None = None, **options: Any) -> tuple[pd.DataFrame, MergeReport]:
        """The merged frame and its report; see :meth:`merge`."""
        plan = self.join_plan if plan is None else plan
        frame, report = run_plan(plan, self.corpus, **options)
        self._merged["last"] = (plan, report)
        return frame, report

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
        from tagframe.display import found_text

        plan, report, _ = self._shown()
        return found_text(self, plan, report)

    def _repr_html_(self) -> str:
        from tagframe.display import found_html

        return found_html(self, *self._shown())

    def _shown(self) -> tuple[JoinPlan | None, MergeReport | None, str]:
        """The plan and the report of the last merge; before one, the join plan, or why there is none."""
        if "last" in self._merged:
            return *self._merged["last"], ""
        try:
            return self.join_plan, None, ""
        except NotConnected as error:
            return None, None, str(error)
