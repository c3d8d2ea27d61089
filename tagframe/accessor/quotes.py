"""``df.tag.quote``: what an operator would cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.accessor.lotus_keywords import takes_lotus_keywords

if TYPE_CHECKING:
    from tagframe.lm import Quote
    from tagframe.operators import Cascade, ClaimPlan, LimitOrder, OnError, RowsPerCall
    from tagframe.operators.join.decide import Way
    from tagframe.operators.join.result import JoinHow
    from tagframe.operators.topk import Compare


@takes_lotus_keywords
class QuoteAccessor:
    """``df.tag.quote``: each operator with the keywords of its own, giving a :class:`~tagframe.lm.Quote`.

    Nothing is sent. Answers that the response store has are used, others are guessed: where calls depend on answers
    (``sem_topk``, ``sem_agg`` over many rows), their number is about what it would be, with the worst case beside it.
    """

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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_filter` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_filter"].quote(
            get_lm("sem_filter", **settings),
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_filters` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_filters"].quote(
            get_lm("sem_filters", **settings),
            self._frame,
            instruction,  # type: ignore[arg-type]
            rows_per_call=rows_per_call,
            return_all=return_all,
            suffix=suffix,
            on_error=on_error,
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_topk` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_topk"].quote(
            get_lm("sem_topk", **settings),
            self._frame,
            instruction,
            K=K,
            compare=compare,
            group_by=group_by,
            debias=debias,
            comparisons=comparisons,
            suffix=suffix,
            on_error=on_error,
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_agg` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_agg"].quote(
            get_lm("sem_agg", **settings),
            self._frame,
            instruction,
            all_cols=all_cols,
            group_by=group_by,
            response_format=response_format,
            knowledge=knowledge,
            suffix=suffix,
            on_error=on_error,
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_map` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_map"].quote(
            get_lm("sem_map", **settings),
            self._frame,
            instruction,
            dtype=dtype,
            response_format=response_format,
            choices=choices,
            return_explanations=return_explanations,
            examples=examples,
            suffix=suffix,
            on_error=on_error,
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_score` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_score"].quote(
            get_lm("sem_score", **settings),
            self._frame,
            instruction,
            return_explanations=return_explanations,
            examples=examples,
            suffix=suffix,
            on_error=on_error,
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_join` with these arguments.

        Where the model has been asked for labels before (:func:`tagframe.plan_sem_join`), by that answer; else as if
        labels carried the claim, with the worst case beside it.
        """
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_join"].quote(
            get_lm("sem_join", **settings),
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
        )

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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_extract` with these arguments."""
        from tagframe.lm import get_lm
        from tagframe.operators import OPERATORS

        return OPERATORS["sem_extract"].quote(
            get_lm("sem_extract", **settings),
            self._frame,
            input_cols,
            output_cols,
            extract_quotes=extract_quotes,
            return_explanations=return_explanations,
            suffix=suffix,
            on_error=on_error,
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
    ) -> Quote:
        """Calls, tokens, dollars and seconds of :func:`tagframe.sem_search`: none but to rerank."""
        from tagframe.lm import Quote, get_lm
        from tagframe.operators import OPERATORS
        from tagframe.operators.search import with_embedder

        if n_rerank is None:
            return Quote()
        with with_embedder(settings):
            return OPERATORS["sem_search"].quote(
                get_lm("sem_search", **settings),
                self._frame,
                col_name,
                query,
                K,
                n_rerank,
                return_scores=return_scores,
                suffix=suffix,
                on_error=on_error,
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
    ) -> Quote:
        """No calls: :func:`tagframe.sem_sim_join` asks no model."""
        from tagframe.lm import Quote

        return Quote()
