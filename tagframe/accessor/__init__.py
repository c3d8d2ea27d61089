"""``df.tag``: every operation on a frame; each is a call into one package.

pandas 3 makes a new accessor on every ``df.tag``, so it holds only the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe import interop, results
from tagframe.accessor.operator_methods import OperatorMethods, QuoteAccessor
from tagframe.doors import register_door, with_doors
from tagframe.errors import InvalidArgument

if TYPE_CHECKING:
    from tagframe.accessor.frame_doors import retrieve_tables
    from tagframe.interop import ForeignFrame
    from tagframe.merging import MergeReport
    from tagframe.operators import CascadeReport, ClaimReport


@pd.api.extensions.register_dataframe_accessor("tag")
@with_doors
class TagAccessor(OperatorMethods):
    """Retrieval, merging and semantic operators on a frame."""

    def __repr__(self) -> str:
        names = ", ".join(name for name in sorted(dir(self)) if not name.startswith("_"))
        return f"<tag of a frame of {len(self._frame)} rows: {names}>"

    # --- tables ---------------------------------------------------------------------------------------------------

    if TYPE_CHECKING:
        retrieve_tables = retrieve_tables

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

    @property
    def quote(self) -> QuoteAccessor:
        """The cost of an operator; nothing is sent: ``frame.tag.quote.sem_filter("{city} is on a coast")``."""
        return QuoteAccessor(self._frame)


def tag(frame: pd.DataFrame | ForeignFrame) -> TagAccessor:
    """``frame.tag`` for type checkers and editors, which do not know accessors: ``tf.tag(frame).sem_filter(…)``; and
    for frames of Polars, Arrow and DuckDB, which have no ``.tag``: ``tf.tag(result).summary``.

    Args:
        frame: a frame, which is not changed.

    Returns:
        The same as ``frame.tag``. mypy and pyright report a misspelt operator or keyword, and editors complete.

    Raises:
        InvalidArgument: it is no frame.
    """
    if interop.is_foreign(frame):
        frame = interop.to_pandas(frame)
    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgument(f"tag takes a pandas DataFrame; got {type(frame).__name__}")
    return TagAccessor(frame)


for _door in ("annotate", "check_keys", "describe", "forget", "learn", "retrieve_tables", "to_ossie", "tools"):
    register_door("Corpus", _door, "tagframe.accessor.corpus_doors")
register_door("Answer", "follow_up", "tagframe.answer.ask")
register_door("CorpusKeys", "frame", "tagframe.accessor.key_doors")
register_door("TagAccessor", "retrieve_tables", "tagframe.accessor.frame_doors")

__all__ = ["QuoteAccessor", "TagAccessor", "tag"]
