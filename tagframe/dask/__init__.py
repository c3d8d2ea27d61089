"""Operators and merges over Dask's frames: ``ddf.tag``.

``import tagframe.dask`` registers ``ddf.tag``; ``import tagframe`` does so too if Dask is imported already. Results are
lazy. When one is computed, workers find the distinct rows of their partitions. The client asks about them, with one
model, rate limit, budget and store. Then workers join the answers back.

Guarantees: rows with the same shown values are asked about once, whatever their partitions. A result that is computed
again, also after ``len()``, costs nothing again in this process. A task that Dask runs twice, such as after a worker
was killed, asks nothing, since workers never ask. With a response store (``store=``), a client that was killed does not
pay again for stored answers. An answer that was not stored yet when the client was killed is paid for again; without a
store, all answers are. The client holds the distinct rows, with the columns that the model is shown; for ``sem_agg``
and ``sem_topk``, which compare all rows, it holds all rows.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dispatch import make_meta
from dask.dataframe.extensions import register_dataframe_accessor

from tagframe.dask.client import Asking, RowAsking
from tagframe.dask.expressions import Answered, Whole
from tagframe.dask.merging import merge, report_of
from tagframe.dask.partition_tasks import PromptColumns
from tagframe.errors import InvalidArgument, NameUnknown, did_you_mean
from tagframe.lm import get_lm
from tagframe.merging import MergeReport
from tagframe.operators import OPERATORS, Operator
from tagframe.operators.cells import group_keys
from tagframe.operators.operator import function, method

__all__ = ["TagAccessor"]


@register_dataframe_accessor("tag")
class TagAccessor:
    """Semantic operators and merges on a frame in partitions; see :mod:`tagframe.dask`."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self), name):  # a property without a value, whose error says why
            return object.__getattribute__(self, name)
        made = OPERATORS.get(name)
        if made is None or made.over not in _ASKINGS:
            raise NameUnknown(f"no name {name!r} in {did_you_mean(name, _names())}")
        return types.MethodType(partitioned(made), self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_names()]

    def merge(self, other: Any, *, on: str | Sequence[str] | None = None, **options: Any) -> Any:
        """Join this frame with another one on inferred keys; see :mod:`tagframe.dask.merging`."""
        return merge(self._frame, other, on=on, **options)

    @property
    def merge_report(self) -> MergeReport:
        """What :meth:`merge` did to the rows; it is counted when it is first read.

        Raises:
            FactUnknown: the frame is not a result of :meth:`merge`.
        """
        return report_of(self._frame)


def partitioned(operator: Operator[...]) -> Callable[..., Any]:
    """``ddf.tag.NAME``: as on a frame, but the result is lazy; ``sem_agg`` and ``sem_topk`` return one partition."""

    def on_partitions(self: TagAccessor, *args: Any, **kwargs: Any) -> Any:
        options, settings = operator.split_keywords(kwargs)
        if kwargs.get("quote"):
            raise InvalidArgument(
                "quote= needs a pandas frame; quote one partition: ddf.get_partition(0).compute().tag"
            )
        lm = get_lm(operator.name, **settings)
        return _ASKINGS[operator.over](self._frame, operator, lm, args, options)

    functools.update_wrapper(on_partitions, method(operator))
    return on_partitions


def _by_rows(frame: Any, operator: Operator[...], lm: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    meta, given, result = _tried(frame, operator, lm, args, options)
    # The questions about rows depend on these arguments, given or not.
    settled = {name: given[name] for name in ("suffix", "return_all") if name in given} | options
    columns = PromptColumns(*operator.prompt_columns(meta, given))
    return new_collection(
        Answered(frame.expr, RowAsking(function(operator), args, settled, lm=lm, meta=result, prompt_columns=columns))
    )


def _as_a_whole(frame: Any, operator: Operator[...], lm: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    meta, given, result = _tried(frame, operator, lm, args, options)
    asking = Asking(
        function(operator), args, options, lm=lm, meta=result.iloc[:0], prompt_columns=_needed(operator, meta, given)
    )
    return new_collection(Whole(frame.expr, asking))


_ASKINGS = {"rows": _by_rows, "whole": _as_a_whole, "best": _as_a_whole}
"""How an operator is run over partitions, by what it looks at; other operators have no such form."""


def _names() -> list[str]:
    return [name for name, operator in OPERATORS.items() if operator.over in _ASKINGS]


def _tried(
    frame: Any, operator: Operator[...], lm: Any, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any], pd.DataFrame]:
    """A frame without rows, the arguments by name, and the operator's result for it, which needs no model."""
    meta = make_meta(frame)
    given = operator.arguments(meta, *args, **options)
    if refusal := operator.needs_all(given):
        raise InvalidArgument(f"{refusal}, but partitions come in no fixed order")
    result = _plain(function(operator)(meta.iloc[:0], *args, lm=lm, **options))
    return meta, given, result


def _needed(operator: Operator[...], frame: pd.DataFrame, given: Mapping[str, Any]) -> PromptColumns:
    """The columns that the client needs, under unique names: all where rows are chosen, else those that are shown and
    those of the groups."""
    groups = group_keys(given.get("group_by"))
    of_prompts = {*operator.prompt_columns(frame, given)[0]} | {
        n for n, name in enumerate(frame.columns) if name in groups
    }
    positions = range(frame.shape[1]) if operator.over == "best" else sorted(of_prompts)
    return PromptColumns(tuple(positions), tuple(f"c{number}" for number in range(len(positions))))


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without its facts, which contain models and would be sent to workers."""
    plain = frame.copy()
    plain.attrs = {}
    return plain
