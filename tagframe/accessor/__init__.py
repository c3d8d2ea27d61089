"""``df.tag``: every operation on a frame; each is a call into one package.

pandas 3 makes a new accessor on every ``df.tag``, so it holds only the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pandas as pd

from tagframe import results
from tagframe.accessor.operator_methods import OperatorMethods
from tagframe.errors import InvalidArgument

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
        self,
        question: str,
        *,
        corpus: Corpus | None = ...,
        quote: Literal[True],
        **options: Unpack[RetrieveOptions],
    ) -> Quote: ...
    def retrieve_tables(
        self,
        question: str,
        *,
        corpus: Corpus | None = None,
        quote: bool = False,
        **options: Unpack[RetrieveOptions],
    ) -> RetrievedTables | Quote:
        """Find the tables that answer a question together.

        ``corpus.tables`` (filtered or not) is the list of tables to search. Any other frame is the *anchor*: the tables
        answer the question together with it, as it is now, and ``k`` does not count it. A frame that was taken from a
        table of the corpus represents that table.

        Args:
            question: in plain language.
            corpus: the corpus to search; the configured corpus if None.
            quote: return the cost of the model calls instead; nothing is sent.
            **options: ``k``, ``method``, ``evidence`` and the others of :func:`tagframe.retrieve_tables`.

        Raises:
            TagframeError: as :func:`tagframe.retrieve_tables`.
        """
        from tagframe import config, retrieval
        from tagframe.corpus import corpus_of, with_frame

        if "anchor" in options:
            raise InvalidArgument("df.tag.retrieve_tables has no keyword 'anchor': the frame is the anchor")
        search = corpus_of(self._frame)
        if search is not None:
            return retrieval.retrieve_tables(question, search, quote=quote, **options)
        search = config.require_corpus(corpus)
        search, anchor = with_frame(search, self._frame, _table_of(self._frame, search))
        return retrieval.retrieve_tables(question, search, anchor=anchor, quote=quote, **options)

    @property
    def merge_report(self) -> MergeReport:
        """The report of the merge that made this frame, or the frame from which it was taken; and how many of the
        merge's rows are in this frame.

        Raises:
            FactUnknown: the frame does not come from a merge.
        """
        report: MergeReport = results.require(self._frame, "merge_report", "merge()")
        return report.read_of(len(self._frame))

    @property
    def outcomes(self) -> pd.DataFrame:
        """The outcome of each input row of the operator that made this frame, or the frame from which it was taken.

        Raises:
            FactUnknown: the frame does not come from an operator.
        """
        outcomes: pd.DataFrame = results.require(self._frame, "outcomes", "an operator")
        return outcomes

    @property
    def summary(self) -> dict[str, Any]:
        """The run of the operator that made this frame: its rows by outcome, calls, tokens, dollars and seconds.

        Raises:
            FactUnknown: the frame does not come from an operator that asked a model.
        """
        summary: dict[str, Any] = results.require(self._frame, "summary", "an operator that asks a model")
        return {**summary}

    @property
    def cascade(self) -> CascadeReport:
        """What the cascade of ``sem_filter`` that made this frame did and saved.

        Raises:
            FactUnknown: the frame does not come from a cascade.
        """
        report: CascadeReport = results.require(self._frame, "cascade", "sem_filter(cascade=…)")
        return report

    @property
    def sources(self) -> pd.DataFrame:
        """The input rows behind each answer of ``sem_agg``; the first column is the answer's label.

        Raises:
            FactUnknown: the frame does not come from ``sem_agg``.
            RowsChanged: its rows have changed since, so that the labels do not fit them any more.
        """
        sources: pd.DataFrame = results.require(self._frame, "sources", "sem_agg()")
        return sources

    @property
    def claim_report(self) -> ClaimReport:
        """How ``sem_join`` found the pairs of this frame, or of the frame from which it was taken.

        Raises:
            FactUnknown: the frame does not come from ``sem_join``.
        """
        report: ClaimReport = results.require(self._frame, "claim_report", "sem_join()")
        return report


def _table_of(frame: pd.DataFrame, corpus: Corpus) -> str | None:
    """The table of the corpus from which the frame was taken, if it still has any of that table's columns."""
    table = results.recall(frame, "table")
    if table is None or table not in corpus:
        return None
    columns = {column.name for column in corpus.profile(table).columns}
    return table if columns & {str(column) for column in frame.columns} else None


def tag(frame: pd.DataFrame) -> TagAccessor:
    """``frame.tag`` for type checkers and editors, which do not know accessors: ``tf.tag(frame).sem_filter(…)``.

    Args:
        frame: a frame, which is not changed.

    Returns:
        The same as ``frame.tag``. mypy and pyright report a misspelt operator or keyword, and editors complete.

    Raises:
        InvalidArgument: it is no frame.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"tag takes a pandas DataFrame; got {type(frame).__name__}")
    return TagAccessor(frame)


__all__ = ["TagAccessor", "tag"]
