"""``df.tag``: every operation on a frame, each a call into one room.

pandas 3 makes the accessor afresh on every ``df.tag``, so it holds nothing but the frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Unpack, overload

import pandas as pd

from tagframe import config, results
from tagframe.accessor.operator_methods import OperatorMethods, QuoteAccessor
from tagframe.config import SearchSettings
from tagframe.doors import register_door

if TYPE_CHECKING:
    from tagframe.corpus import Corpus
    from tagframe.lm import Quote
    from tagframe.merging import MergeReport
    from tagframe.operators import CascadeReport, ClaimReport
    from tagframe.retrieval import RetrievedTables, RetrieveOptions


@pd.api.extensions.register_dataframe_accessor("tag")
class TagAccessor(OperatorMethods):
    """Retrieval, merging and semantic operators on a frame."""

    def __repr__(self) -> str:
        names = ", ".join(name for name in sorted(dir(self)) if not name.startswith("_"))
        return f"<tag of a frame of {len(self._frame)} rows: {names}>"

    # --- tables ---------------------------------------------------------------------------------------------------

    @overload
    def retrieve_tables(
        self,
        question: str,
        *,
        corpus: Corpus | None = ...,
        quote: Literal[False] = ...,
        **options: Unpack[RetrieveOptions],
    ) -> RetrievedTables: ...
    @overload
    def retrieve_tables(
        self, question: str, *, corpus: Corpus | None = ..., quote: Literal[True], **options: Unpack[RetrieveOptions]
    ) -> Quote: ...
    @overload
    def retrieve_tables(
        self, question: str, *, corpus: Corpus | None = ..., quote: bool, **options: Unpack[RetrieveOptions]
    ) -> RetrievedTables | Quote: ...
    def retrieve_tables(
        self,
        question: str,
        *,
        k: int | Literal["auto"] | None = None,
        method: str | None = None,
        corpus: Corpus | None = None,
        decomposition: Sequence[str] | None = None,
        coarse: Mapping[str, float] | None = None,
        confidence: float | None = None,
        refine: bool = False,
        decompose: bool = False,
        quote: bool = False,
        **settings: Unpack[SearchSettings],
    ) -> RetrievedTables | Quote:
        """The tables that answer a question together; see :func:`tagframe.retrieve_tables`.

        On ``corpus.tables`` (filtered or not) these are the tables to search. Any other frame is the *anchor*: the
        tables found answer the question together with it, as it is now, and ``k`` does not count it. A frame that was
        taken from a table of the corpus stands for that table.

        Args:
            question: in plain language.
            k: how many tables; "auto" (or None) lets the default method say how many the question needs.
            method: the selector, ``"greedy"``, ``"dense"``, ….
            corpus: what to search; the configured corpus where None.
            decomposition: the question's sub-queries (``concept:attribute``), where they are known.
            coarse: relevance of tables by id, from a scorer of your own.
            confidence: how sure ``k="auto"`` is to be that nothing that is needed is missing; 0.9 where None.
            refine: a model's second look at the best candidates: one call, or two where it misses a table.
            decompose: whether the configured model takes the question apart; rules do otherwise.
            quote: what the model's part would cost instead, sending nothing.
            **settings: as in :func:`tagframe.configure`, for this call.

        Raises:
            EmptyQuestion: the question has no words.
            NotConfigured: no corpus is given, configured, or known from the frame.
        """
        from tagframe.corpus import corpus_of, with_frame
        from tagframe.retrieval import retrieve_tables

        with config.of_call(self.retrieve_tables, settings):
            asked: RetrieveOptions = {
                "k": k,
                "method": method,
                "decomposition": decomposition,
                "coarse": coarse,
                "confidence": confidence,
                "refine": refine,
                "decompose": decompose,
            }
            catalogue = corpus_of(self._frame)
            if catalogue is not None:
                return retrieve_tables(question, catalogue, quote=quote, **asked)
            search = config.require_corpus(corpus)
            search, anchor = with_frame(search, self._frame, self._table_of(search))
            return retrieve_tables(question, search, anchor=anchor, quote=quote, **asked)

    def _table_of(self, corpus: Corpus) -> str | None:
        """The table of the corpus that the frame was taken from, if it has any of its columns still."""
        table = results.recall(self._frame, "table")
        if table is None or table not in corpus:
            return None
        columns = {column.name for column in corpus.profile(table).columns}
        return table if columns & {str(column) for column in self._frame.columns} else None

    @property
    def merge_report(self) -> MergeReport:
        """What the merge did to the rows that made this frame, or the one that it was taken from, and of how many of
        its rows this frame is.

        Raises:
            FactUnknown: neither came from a merge.
        """
        report: MergeReport = results.require(self._frame, "merge_report", "merge()")
        return report.read_of(len(self._frame)) if hasattr(report, "read_of") else report

    @property
    def outcomes(self) -> pd.DataFrame:
        """What became of each row of the input of the operator that made this frame, or the one that it was taken from.

        Raises:
            FactUnknown: neither came from an operator.
        """
        outcomes: pd.DataFrame = results.require(self._frame, "outcomes", "an operator")
        return outcomes

    @property
    def cascade(self) -> CascadeReport:
        """What the cascade of ``sem_filter`` that made this frame did and saved.

        Raises:
            FactUnknown: there was none.
        """
        report: CascadeReport = results.require(self._frame, "cascade", "sem_filter(cascade=…)")
        return report

    @property
    def sources(self) -> pd.DataFrame:
        """The rows behind each answer of ``sem_agg``: those of its input, with the answer's label in a first column.

        Raises:
            FactUnknown: this frame did not come from ``sem_agg``.
            RowsChanged: it did, but its rows are not the answers any more that the labels name.
        """
        sources: pd.DataFrame = results.require(self._frame, "sources", "sem_agg()")
        return sources

    @property
    def claim_report(self) -> ClaimReport:
        """How ``sem_join`` found the pairs that made this frame, or the one that it was taken from.

        Raises:
            FactUnknown: neither came from ``sem_join``.
        """
        report: ClaimReport = results.require(self._frame, "claim_report", "sem_join()")
        return report

    @property
    def quote(self) -> QuoteAccessor:
        """What an operator would cost, sending nothing: ``frame.tag.quote.sem_filter("{city} is on a coast")``."""
        return QuoteAccessor(self._frame)


for _door in ("annotate", "forget", "learn", "retrieve_tables", "tools"):
    register_door("Corpus", _door, "tagframe.accessor.corpus_doors")

__all__ = ["QuoteAccessor", "TagAccessor"]
