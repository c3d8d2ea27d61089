"""The semantic operators as methods of ``df.tag``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.accessor.lotus_keywords import takes_lotus_keywords

if TYPE_CHECKING:
    from tagframe.operators import Cascade, ClaimPlan, LimitOrder, NoLabels, OnError, RowsPerCall
    from tagframe.operators.join.decide import Way
    from tagframe.operators.join.result import JoinHow
    from tagframe.operators.topk import Compare


@takes_lotus_keywords
class OperatorMethods:
    """``df.tag.sem_…``: each calls the operator of its name on the frame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def sem_filter(
        self,
        instruction: str,
        *,
        all_cols: bool = False,
        return_all: bool = False,
        return_explanations: bool = False,
        examples: pd.DataFrame | None = None,
        rows_per_call: RowsPerCall = None,
        cascade: Cascade | None = None,
        limit: int | None = None,
        limit_order: LimitOrder = "rows",
        suffix: str = "_filter",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """The rows of which a claim is true; see :func:`tagframe.sem_filter`."""
        from tagframe import operators

        return operators.sem_filter(
            self._frame,
            instruction,
            all_cols=all_cols,
            return_all=return_all,
            return_explanations=return_explanations,
            examples=examples,
            rows_per_call=rows_per_call,
            cascade=cascade,
            limit=limit,
            limit_order=limit_order,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_filters(
        self,
        instruction: str | Sequence[str],
        *,
        rows_per_call: RowsPerCall = None,
        return_all: bool = False,
        suffix: str = "_filter",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """The rows of which all of several claims are true; see :func:`tagframe.sem_filters`."""
        from tagframe import operators

        return operators.sem_filters(
            self._frame,
            instruction,
            rows_per_call=rows_per_call,
            return_all=return_all,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_topk(
        self,
        instruction: str,
        K: int,
        *,
        compare: Compare = "list",
        group_by: Hashable | Sequence[Hashable] | None = None,
        debias: bool = False,
        comparisons: int | None = None,
        suffix: str = "_topk",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """The K rows that best fit a criterion, best first; see :func:`tagframe.sem_topk`."""
        from tagframe import operators

        return operators.sem_topk(
            self._frame,
            instruction,
            K,
            compare=compare,
            group_by=group_by,
            debias=debias,
            comparisons=comparisons,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_agg(
        self,
        instruction: str,
        *,
        all_cols: bool = False,
        group_by: Hashable | Sequence[Hashable] | None = None,
        response_format: Any = None,
        knowledge: bool = False,
        suffix: str = "_output",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """One text from all rows, or from those of each group; see :func:`tagframe.sem_agg`."""
        from tagframe import operators

        return operators.sem_agg(
            self._frame,
            instruction,
            all_cols=all_cols,
            group_by=group_by,
            response_format=response_format,
            knowledge=knowledge,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_map(
        self,
        instruction: str,
        *,
        dtype: Any = None,
        response_format: Any = None,
        choices: Sequence[str] | None = None,
        return_explanations: bool = False,
        examples: pd.DataFrame | None = None,
        suffix: str = "_map",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """A value for each row, of one type; see :func:`tagframe.sem_map`."""
        from tagframe import operators

        return operators.sem_map(
            self._frame,
            instruction,
            dtype=dtype,
            response_format=response_format,
            choices=choices,
            return_explanations=return_explanations,
            examples=examples,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_score(
        self,
        instruction: str,
        *,
        return_explanations: bool = False,
        examples: pd.DataFrame | None = None,
        suffix: str = "_score",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """A degree from 0 to 1 for each row; see :func:`tagframe.sem_score`."""
        from tagframe import operators

        return operators.sem_score(
            self._frame,
            instruction,
            return_explanations=return_explanations,
            examples=examples,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_join(
        self,
        right: pd.DataFrame | pd.Series,
        instruction: str,
        *,
        how: JoinHow = "inner",
        plan: ClaimPlan | Way = "auto",
        recall: float = 0.9,
        return_explanations: bool = False,
        examples: pd.DataFrame | None = None,
        suffix: str = "_join",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """This frame's rows with those of another of which a claim is true together; see :func:`tagframe.sem_join`."""
        from tagframe import operators

        return operators.sem_join(
            self._frame,
            right,
            instruction,
            how=how,
            plan=plan,
            recall=recall,
            return_explanations=return_explanations,
            examples=examples,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def plan_sem_join(self, right: pd.DataFrame | pd.Series, instruction: str, **settings: Any) -> ClaimPlan | NoLabels:
        """The labels into which a claim can be cut, for one call; see :func:`tagframe.plan_sem_join`."""
        from tagframe import operators

        return operators.plan_sem_join(self._frame, right, instruction, **settings)

    def sem_extract(
        self,
        input_cols: Hashable | Sequence[Hashable],
        output_cols: Mapping[str, str | None],
        *,
        extract_quotes: bool = False,
        return_explanations: bool = False,
        suffix: str = "_extract",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """What the rows say of a few things, as text columns; see :func:`tagframe.sem_extract`."""
        from tagframe import operators

        return operators.sem_extract(
            self._frame,
            input_cols,
            output_cols,
            extract_quotes=extract_quotes,
            return_explanations=return_explanations,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_search(
        self,
        col_name: Hashable,
        query: str,
        K: int | None = None,
        n_rerank: int | None = None,
        *,
        return_scores: bool = False,
        suffix: str = "_sim_score",
        on_error: OnError = "raise",
        **settings: Any,
    ) -> pd.DataFrame:
        """The K rows whose text is nearest to a query; see :func:`tagframe.sem_search`."""
        from tagframe import operators

        return operators.sem_search(
            self._frame,
            col_name,
            query,
            K,
            n_rerank,
            return_scores=return_scores,
            suffix=suffix,
            on_error=on_error,
            **settings,
        )

    def sem_sim_join(
        self,
        right: pd.DataFrame | pd.Series,
        left_on: Hashable,
        right_on: Hashable,
        K: int,
        *,
        lsuffix: str = "",
        rsuffix: str = "",
        score_suffix: str = "",
        keep_index: bool = False,
        **settings: Any,
    ) -> pd.DataFrame:
        """Each row with the K rows of another frame whose texts are nearest; see :func:`tagframe.sem_sim_join`."""
        from tagframe import operators

        return operators.sem_sim_join(
            self._frame,
            right,
            left_on,
            right_on,
            K,
            lsuffix=lsuffix,
            rsuffix=rsuffix,
            score_suffix=score_suffix,
            keep_index=keep_index,
            **settings,
        )

    # --- LOTUS's own ----------------------------------------------------------------------------------------------

    def sem_dedup(self, col_name: Hashable, threshold: float, **settings: Any) -> pd.DataFrame:
        """The rows without those whose text is nearly another's; see :func:`tagframe.lotus.sem_dedup`."""
        from tagframe import lotus

        return lotus.sem_dedup(self._frame, col_name, threshold, **settings)

    def sem_cluster_by(self, col_name: Hashable, ncentroids: int, *, niter: int = 20, **settings: Any) -> pd.DataFrame:
        """The rows with a column ``cluster_id``; see :func:`tagframe.lotus.sem_cluster_by`."""
        from tagframe import lotus

        return lotus.sem_cluster_by(self._frame, col_name, ncentroids, niter=niter, **settings)

    def sem_partition_by(self, partition_fn: Callable[[pd.DataFrame], list[int]], **settings: Any) -> pd.DataFrame:
        """The rows with a column ``_lotus_partition_id``; see :func:`tagframe.lotus.sem_partition_by`."""
        from tagframe import lotus

        return lotus.sem_partition_by(self._frame, partition_fn, **settings)
