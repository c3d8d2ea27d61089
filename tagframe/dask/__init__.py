"""Operators and merges over Dask's frames: ``ddf.tag``.

``import tagframe.dask`` registers ``ddf.tag`` (``import tagframe`` does so too where Dask is imported already). What it
gives is lazy. When it is computed, workers find the distinct rows of their partitions, the client asks about them, with
its one model, rate limit, budget and store, and workers join the answers back.

What is promised: rows that show the same are asked once, whatever their partitions; a result that is computed again, or
of which ``len()`` was taken before, pays nothing again in this process; a task that Dask runs twice, as after a worker
was killed, asks nothing at all, since workers never ask. With a response store (``store=``) a client that was killed
pays nothing for answers that were put into the store. What is not: an answer that a model gave and that was not yet in
the store when the client was killed is paid again; without a store all are. Distinct rows, of the columns that the
model is shown, are held by the client, and so are all rows of ``sem_agg``, which reads every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dispatch import make_meta
from dask.dataframe.extensions import register_dataframe_accessor

from tagframe import operators
from tagframe.dask.client import Asking, BestAsking, RowAsking, WholeAsking
from tagframe.dask.expressions import Answered, Best, Whole
from tagframe.dask.merging import DaskMergeReport, merge, report_of
from tagframe.dask.workers import Shown
from tagframe.errors import InvalidArgument
from tagframe.lm import get_lm
from tagframe.operators.groups import group_keys
from tagframe.operators.instruction import Instruction
from tagframe.operators.prompt_names import shown_names

__all__ = ["DaskMergeReport", "TagAccessor"]

_SETTINGS = ("lm", "lm_for", "api_base", "api_key", "store", "budget", "concurrency", "rpm", "tpm", "context_window",
             "progress")  # fmt: skip


@register_dataframe_accessor("tag")
class TagAccessor:
    """Semantic operators and merges on a frame in partitions; see the module."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def sem_filter(self, instruction: str, **options: Any) -> Any:
        """The rows of which a claim is true; keywords as :func:`tagframe.sem_filter`, but ``limit`` and ``cascade``.

        Returns:
            A lazy frame of as many partitions.
        """
        options = {"suffix": "_filter", "return_all": False, **options}
        _refuse(options, "limit", "limit_order", "cascade")
        texts = [instruction]
        return self._rows(operators.sem_filter, [instruction], texts, options, all_cols=options.get("all_cols", False))

    def sem_filters(self, instruction: str | Sequence[str], **options: Any) -> Any:
        """The rows of which all of several claims are true; keywords as :func:`tagframe.sem_filters`."""
        options = {"suffix": "_filter", "return_all": False, **options}
        texts = [instruction] if isinstance(instruction, str) else list(instruction)
        return self._rows(operators.sem_filters, [instruction], texts, options)

    def sem_map(self, instruction: str, **options: Any) -> Any:
        """A value for each row; keywords as :func:`tagframe.sem_map`."""
        return self._rows(operators.sem_map, [instruction], [instruction], {"suffix": "_map", **options})

    def sem_score(self, instruction: str, **options: Any) -> Any:
        """A degree from 0 to 1 for each row; keywords as :func:`tagframe.sem_score`."""
        return self._rows(operators.sem_score, [instruction], [instruction], {"suffix": "_score", **options})

    def sem_agg(self, instruction: str, **options: Any) -> Any:
        """One text from all rows, or from those of each group; keywords as :func:`tagframe.sem_agg`.

        The client reads all rows of the columns that the model is shown.

        Returns:
            A lazy frame of one partition.
        """
        lm, settings = _model("sem_agg", options)
        meta = make_meta(self._frame)
        resolved = Instruction.resolve(instruction, meta, all_cols=settings.get("all_cols", False))
        needed = sorted({*resolved.positions, *_places(meta, group_keys(settings.get("group_by")))})
        result = operators.sem_agg(meta.iloc[:0], instruction, lm=lm, **settings).iloc[:0]
        shown = Shown(tuple(resolved.positions), resolved.names)
        asking = WholeAsking(
            operators.sem_agg, [instruction], settings, lm=lm, meta=_plain(result), shown=shown, columns=needed
        )
        return new_collection(Whole(self._frame.expr, asking))

    def sem_topk(self, instruction: str, K: int, **options: Any) -> Any:
        """The K rows that best fit a criterion, best first; keywords as :func:`tagframe.sem_topk`.

        Returns:
            A lazy frame of one partition.
        """
        lm, settings = _model("sem_topk", options)
        if settings.get("on_error", "raise") == "keep":
            raise InvalidArgument('on_error="keep" of sem_topk keeps rows without a rank; "drop" leaves them out')
        meta = make_meta(self._frame)
        resolved = Instruction.resolve(instruction, meta)
        groups = group_keys(settings.get("group_by"))
        needed = sorted({*resolved.positions, *_places(meta, groups)})
        result = operators.sem_topk(meta.iloc[:0], instruction, K, lm=lm, **settings)
        asking = BestAsking(
            operators.sem_topk, [instruction, K], settings, lm=lm, meta=_plain(result), columns=needed,
            shown=Shown(tuple(needed), tuple(f"c{place}" for place in range(len(needed)))), group_by=groups, k=K,
        )  # fmt: skip
        return new_collection(Best(self._frame.expr, asking))

    def merge(self, other: Any, *, on: str | Sequence[str] | None = None, **options: Any) -> Any:
        """The rows of this frame with those of another, on keys that are inferred; see :mod:`tagframe.dask.merging`."""
        return merge(self._frame, other, on=on, **options)

    @property
    def merge_report(self) -> DaskMergeReport:
        """What :meth:`merge` did to the rows, counted when it is looked at.

        Raises:
            FactUnknown: the frame did not come from it.
        """
        return report_of(self._frame)

    def _rows(
        self,
        function: Callable[..., pd.DataFrame],
        arguments: Sequence[Any],
        texts: Iterable[str],
        options: Mapping[str, Any],
        *,
        all_cols: bool = False,
    ) -> Any:
        lm, settings = _model(getattr(function, "__name__", ""), options)
        meta = make_meta(self._frame)
        places = dict.fromkeys(
            place for text in texts for place in Instruction.resolve(text, meta, all_cols=all_cols).positions
        )
        shown = Shown(tuple(places), tuple(shown_names(meta, tuple(places))))
        result = _plain(function(meta.iloc[:0], *arguments, lm=lm, **settings))
        asking: Asking = RowAsking(function, arguments, settings, lm=lm, meta=result, shown=shown, columns=list(places))
        return new_collection(Answered(self._frame.expr, asking))


def _model(name: str, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model of a call, and its other keywords."""
    settings = {key: value for key, value in options.items() if key in _SETTINGS}
    return get_lm(name, **settings), {key: value for key, value in options.items() if key not in _SETTINGS}


def _refuse(options: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if options.get(name) is not None:
            raise InvalidArgument(f"{name}= of sem_filter looks at all rows in order, which partitions do not have")


def _places(frame: pd.DataFrame, labels: Sequence[Hashable]) -> list[int]:
    from tagframe.errors import ColumnNotFound, did_you_mean

    for label in labels:
        if label not in frame.columns:
            raise ColumnNotFound(f"no column {label!r} in {did_you_mean(str(label), frame.columns)}")
    return [place for place, label in enumerate(frame.columns) if label in labels]


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Without what is known of it, which holds models and would be sent to workers."""
    plain = frame.copy()
    plain.attrs = {}
    return plain
