"""What retrieval gives back: tables with reasons, and how they join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import results
from tagframe.corpus.naming import NamedTable
from tagframe.errors import InvalidArgument, NotConnected
from tagframe.joins import How, JoinPlan, On, keys_on, plan_joins
from tagframe.keys import KeyPair
from tagframe.merging import MergeReport, Reaction, Where, run_plan
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
        return self._plan()

    def _plan(self, on: On | None = None) -> JoinPlan:
        positions = {profile.id: position for position, profile in enumerate(self.corpus.profiles)}
        members = [positions[table] for table in self.ids]
        assert self._index is not None
        links = self._index.links
        around = links.of_databases(members)
        keys = links.keys([*members, *around])
        profiles = [self.corpus.profiles[member] for member in members]
        return plan_joins(
            profiles,
            keys,
            given=[] if on is None else keys_on(on, list(map(NamedTable.of, profiles))),
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

    def merge(
        self,
        plan: JoinPlan | None = None,
        *,
        on: On | None = None,
        how: How = "inner",
        on_fanout: Reaction = "raise",
        on_loss: Reaction = "warn",
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """The tables joined along the plan; ``frame.tag.merge_report`` accounts for every row.

        Args:
            plan: how to join them, instead of :attr:`join_plan`.
            on: key pairs to join on, where they should be others: ``"orders.buyer = customers.id"``, ``"day"``, … as
                for :func:`tagframe.merge`.
            how, on_fanout, on_loss, columns, where, limit: as for :func:`tagframe.merging.run_plan`.

        Raises:
            NotConnected: no key pairs connect the tables.
            FanOut: a step would repeat rows of the table that the plan starts from.
            InvalidArgument, TableNotFound, ColumnNotFound: an argument is not understood, or is not of these tables.
        """
        if plan is not None and on is not None:
            raise InvalidArgument("pass on= or a plan, not both: plan.use(…) gives a plan with another key")
        plan = plan or (self.join_plan if on is None else self._plan(on))
        frame, report = run_plan(
            plan,
            self.corpus,
            how=how,
            on_fanout=on_fanout,
            on_loss=on_loss,
            columns=columns,
            where=where,
            limit=limit,
        )
        results.remember(frame, merge_report=report)
        self._merged["last"] = (plan, report)
        return frame

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
