# Written by tools/write_stubs.py from the declarations of the operators; not to be changed by hand.
# fmt: off

from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from tagframe.config import CallSettings
from tagframe.config import SearchSettings
from tagframe.lm import Quote
from tagframe.operators.batches import AsyncBatches
from tagframe.operators.batches import AsyncFrames
from tagframe.operators.batches import Batches
from tagframe.operators.batches import Frames
from tagframe.operators.cascade import Cascade
from tagframe.operators.join.decide import Way
from tagframe.operators.join.label_plan import ClaimPlan
from tagframe.operators.join.result import JoinHow
from tagframe.operators.limiting import LimitOrder
from tagframe.operators.outcome import OnError
from tagframe.operators.packing import RowsPerCall
from tagframe.operators.topk import Compare
from typing import Any
from typing import Literal
from typing import Unpack
from typing import overload
import os
import pandas as pd

@overload
def sem_agg(
    frame: pd.DataFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    suffix: str = '_output', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Answer one request from all rows, or from the rows of each group.

    Rows that do not fit into one prompt are answered in parts, and the partial answers combined, round by round, each
    group at its own pace. A prompt holds about 10,000 tokens of rows, and no more than fits the model's window: that of
    the setting ``context_window``, of litellm's table, or, where neither knows it, what the server does not refuse. A
    row that alone is too long is cut, and the group's outcome says so. Parts carry their numbers of rows; a mean, a sum
    or a share is better computed by pandas, from what :func:`sem_score` or :func:`sem_map` says of each row.

    The model is asked to name the rows that its answer rests on, by the numbers that they are shown with. If it names
    a number that was not shown, it is asked once more. If it names none, all rows that were shown are the sources, and
    the outcome says so.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a request that names columns in braces, ``"Summarise the {review}s"``; where it names none, the
            model is shown all columns.
        all_cols: show all columns even where some are named (LOTUS' keyword).
        group_by: columns; one answer for each group, groups in order of first appearance.
        response_format: a pydantic model class that the answer is an instance of (LOTUS' keyword): checked, asked for
            once more where it is none, and spread into a column for each field; ``_output`` has it as JSON.
        knowledge: let the model add what it knows of the world, each such statement between ``[beyond the rows: …]``;
            by default it answers from the rows alone.
        suffix: the name of the answer's column.
        on_error: ``"raise"`` once all groups are done, ``"keep"`` a failed group as ``<NA>`` with a column
            ``output_error``, or ``"drop"`` it.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        A frame of one row and the column ``_output``, or a row a group with the group's columns before it. A frame
        without rows has nothing to say: ``<NA>``, or no groups. ``.tag.sources`` has the rows behind each answer,
        ``.tag.outcomes`` what became of each group.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all groups have been tried.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, or a ``response_format`` that is no pydantic model class.
        NotConfigured: no model is set.
    """
@overload
def sem_agg(
    frame: pd.DataFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    suffix: str = '_output', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_agg(
    frame: Frames, instruction: str, *, all_cols: bool = False, group_by: Hashable | Sequence[Hashable] | None = None,
    response_format: Any = None, knowledge: bool = False, suffix: str = '_output', on_error: OnError = 'raise',
    to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
def sem_agg(
    frame: Frames, instruction: str, *, all_cols: bool = False, group_by: Hashable | Sequence[Hashable] | None = None,
    response_format: Any = None, knowledge: bool = False, suffix: str = '_output', on_error: OnError = 'raise',
    to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_agg(
    frame: pd.DataFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    suffix: str = '_output', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Answer one request from all rows, or from the rows of each group.

    To be awaited: as :func:`tagframe.sem_agg`, but the event loop goes on, and cancelling stops what is
    not sent.

    Rows that do not fit into one prompt are answered in parts, and the partial answers combined, round by round, each
    group at its own pace. A prompt holds about 10,000 tokens of rows, and no more than fits the model's window: that of
    the setting ``context_window``, of litellm's table, or, where neither knows it, what the server does not refuse. A
    row that alone is too long is cut, and the group's outcome says so. Parts carry their numbers of rows; a mean, a sum
    or a share is better computed by pandas, from what :func:`sem_score` or :func:`sem_map` says of each row.

    The model is asked to name the rows that its answer rests on, by the numbers that they are shown with. If it names
    a number that was not shown, it is asked once more. If it names none, all rows that were shown are the sources, and
    the outcome says so.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a request that names columns in braces, ``"Summarise the {review}s"``; where it names none, the
            model is shown all columns.
        all_cols: show all columns even where some are named (LOTUS' keyword).
        group_by: columns; one answer for each group, groups in order of first appearance.
        response_format: a pydantic model class that the answer is an instance of (LOTUS' keyword): checked, asked for
            once more where it is none, and spread into a column for each field; ``_output`` has it as JSON.
        knowledge: let the model add what it knows of the world, each such statement between ``[beyond the rows: …]``;
            by default it answers from the rows alone.
        suffix: the name of the answer's column.
        on_error: ``"raise"`` once all groups are done, ``"keep"`` a failed group as ``<NA>`` with a column
            ``output_error``, or ``"drop"`` it.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        A frame of one row and the column ``_output``, or a row a group with the group's columns before it. A frame
        without rows has nothing to say: ``<NA>``, or no groups. ``.tag.sources`` has the rows behind each answer,
        ``.tag.outcomes`` what became of each group.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all groups have been tried.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, or a ``response_format`` that is no pydantic model class.
        NotConfigured: no model is set.
    """
@overload
async def asem_agg(
    frame: pd.DataFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    suffix: str = '_output', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_agg(
    frame: AsyncFrames, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    suffix: str = '_output', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
async def asem_agg(
    frame: AsyncFrames, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    suffix: str = '_output', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_dedup(
    frame: pd.DataFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Drop the rows whose text is nearly the same as that of an earlier row.

    The embedding model compares all texts with each other. Texts that are alike, directly or through others, form a
    group, and the first row of each group is kept. Rows without text are kept.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to compare.
        threshold: the cosine from which texts are alike.
        border: pairs whose cosine is at most so far from the threshold are decided by the model; 0 asks it nothing.
        rows_per_call: pairs of one prompt, audited as for :func:`sem_filter`.
        suffix: the beginning of the name of the column of errors.
        on_error: as for :func:`sem_filter`; a row fails whose pair with an earlier one has no answer, and its column
            is ``dedup_error``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``,
            ``embedder``.

    Returns:
        The rows that are kept, in order, with index, dtypes and subclass; ``.tag.outcomes`` says of which row each of
        the others is a duplicate.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all pairs have been tried; the finished frame is on it.
        ColumnNotFound: there is no such column.
        InvalidArgument: a threshold or a border that is no share; two columns of that name.
        NotConfigured: no embedding model is to be had, or no model where it is asked.
    """
@overload
def sem_dedup(
    frame: pd.DataFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
def sem_dedup(
    frame: Frames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[SearchSettings]
) -> Batches: ...
@overload
def sem_dedup(
    frame: Frames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise',
    to: str | os.PathLike[str], **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
async def asem_dedup(
    frame: pd.DataFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Drop the rows whose text is nearly the same as that of an earlier row.

    To be awaited: as :func:`tagframe.sem_dedup`, but the event loop goes on, and cancelling stops what is
    not sent.

    The embedding model compares all texts with each other. Texts that are alike, directly or through others, form a
    group, and the first row of each group is kept. Rows without text are kept.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to compare.
        threshold: the cosine from which texts are alike.
        border: pairs whose cosine is at most so far from the threshold are decided by the model; 0 asks it nothing.
        rows_per_call: pairs of one prompt, audited as for :func:`sem_filter`.
        suffix: the beginning of the name of the column of errors.
        on_error: as for :func:`sem_filter`; a row fails whose pair with an earlier one has no answer, and its column
            is ``dedup_error``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``,
            ``embedder``.

    Returns:
        The rows that are kept, in order, with index, dtypes and subclass; ``.tag.outcomes`` says of which row each of
        the others is a duplicate.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all pairs have been tried; the finished frame is on it.
        ColumnNotFound: there is no such column.
        InvalidArgument: a threshold or a border that is no share; two columns of that name.
        NotConfigured: no embedding model is to be had, or no model where it is asked.
    """
@overload
async def asem_dedup(
    frame: pd.DataFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
async def asem_dedup(
    frame: AsyncFrames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[SearchSettings]
) -> AsyncBatches: ...
@overload
async def asem_dedup(
    frame: AsyncFrames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup', on_error: OnError = 'raise',
    to: str | os.PathLike[str], **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
def sem_map(
    frame: pd.DataFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A value for each row: a text, a number, a truth, a date, one of a few choices, or the fields of a model.

    Rows that show the same values are asked about once. A row whose named columns are all null is not asked about.
    Where the model says that it does not know, the value is ``<NA>`` and the row's outcome is "unsure".

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what to say of a row, with columns in braces: ``"The sentiment of {review} in one word"``; where
            it names none, the model is shown all columns.
        dtype: of the value: ``str``, ``float``, ``int``, ``bool``, ``datetime.date``, or one of pandas' names; the
            column has pandas' nullable dtype for it, ``string`` where None.
        response_format: a pydantic model, instead; its fields become columns of their names.
        choices: the texts of which the value is one, instead.
        return_explanations: a column ``explanation_map`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows of one prompt, audited as for :func:`sem_filter`; texts count as the same where they share
            half of their words, numbers within a twentieth.
        suffix: the name of the value's column.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``map_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_map``, or with one for each field of ``response_format``; index, dtypes and
        subclass kept. ``.tag.outcomes`` says what became of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, a type that is none, an added column's name that is taken.
        NotConfigured: no model is set.
    """
@overload
def sem_map(
    frame: pd.DataFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_map(
    frame: Frames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_map(
    frame: Frames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', to: str | os.PathLike[str],
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_map(
    frame: pd.DataFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A value for each row: a text, a number, a truth, a date, one of a few choices, or the fields of a model.

    To be awaited: as :func:`tagframe.sem_map`, but the event loop goes on, and cancelling stops what is
    not sent.

    Rows that show the same values are asked about once. A row whose named columns are all null is not asked about.
    Where the model says that it does not know, the value is ``<NA>`` and the row's outcome is "unsure".

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what to say of a row, with columns in braces: ``"The sentiment of {review} in one word"``; where
            it names none, the model is shown all columns.
        dtype: of the value: ``str``, ``float``, ``int``, ``bool``, ``datetime.date``, or one of pandas' names; the
            column has pandas' nullable dtype for it, ``string`` where None.
        response_format: a pydantic model, instead; its fields become columns of their names.
        choices: the texts of which the value is one, instead.
        return_explanations: a column ``explanation_map`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows of one prompt, audited as for :func:`sem_filter`; texts count as the same where they share
            half of their words, numbers within a twentieth.
        suffix: the name of the value's column.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``map_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_map``, or with one for each field of ``response_format``; index, dtypes and
        subclass kept. ``.tag.outcomes`` says what became of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, a type that is none, an added column's name that is taken.
        NotConfigured: no model is set.
    """
@overload
async def asem_map(
    frame: pd.DataFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_map(
    frame: AsyncFrames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_map(
    frame: AsyncFrames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_map', on_error: OnError = 'raise', to: str | os.PathLike[str],
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_score(
    frame: pd.DataFrame, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A score from 0 to 1 for each row. Each row is scored by itself, as by :func:`sem_map`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what is scored, with columns in braces: ``"How hopeful is {review}?"``.
        return_explanations: a column ``explanation_score`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows of one prompt, audited as for :func:`sem_filter`; scores count as the same within .2.
        suffix: the name of the score's column.
        on_error: as for :func:`sem_map`; the error column is ``score_error``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_score`` of dtype Float64.

    Raises:
        RowsFailed, ColumnNotFound, InvalidArgument, NotConfigured: as :func:`sem_map`.
    """
@overload
def sem_score(
    frame: pd.DataFrame, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_score(
    frame: Frames, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_score(
    frame: Frames, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise', to: str | os.PathLike[str],
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_score(
    frame: pd.DataFrame, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A score from 0 to 1 for each row. Each row is scored by itself, as by :func:`sem_map`.

    To be awaited: as :func:`tagframe.sem_score`, but the event loop goes on, and cancelling stops what is
    not sent.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what is scored, with columns in braces: ``"How hopeful is {review}?"``.
        return_explanations: a column ``explanation_score`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows of one prompt, audited as for :func:`sem_filter`; scores count as the same within .2.
        suffix: the name of the score's column.
        on_error: as for :func:`sem_map`; the error column is ``score_error``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_score`` of dtype Float64.

    Raises:
        RowsFailed, ColumnNotFound, InvalidArgument, NotConfigured: as :func:`sem_map`.
    """
@overload
async def asem_score(
    frame: pd.DataFrame, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_score(
    frame: AsyncFrames, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_score(
    frame: AsyncFrames, instruction: str, *, return_explanations: bool = False, examples: pd.DataFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_score', on_error: OnError = 'raise', to: str | os.PathLike[str],
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_extract(
    frame: pd.DataFrame, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Extract what the rows say about a few things into text columns; ``<NA>`` where a row does not say it.

    Each row takes one question, however many things are extracted. For numbers, dates and closed sets of values, give
    :func:`sem_map` a pydantic model instead.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        input_cols: labels of the columns to read, or one label.
        output_cols: from the name of each new column to what it is to hold, or to None where the name says it.
        extract_quotes: columns ``NAME_quote`` with the words that the values are taken from; those that the row does
            not have are left out, and the row's outcome says so.
        return_explanations: a column ``explanation_extract`` with the model's reasons.
        rows_per_call: rows of one prompt, audited as for :func:`sem_filter`; texts count as the same where they share
            half of their words.
        suffix: the end of the names of the columns for reasons and errors.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``extract_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The frame with the columns of ``output_cols``; ``.tag.outcomes`` says what became of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a column of ``input_cols`` is not there.
        InvalidArgument: nothing to read or to extract, an added column's name that is taken.
        NotConfigured: no model is set.
    """
@overload
def sem_extract(
    frame: pd.DataFrame, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_extract(
    frame: Frames, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_extract(
    frame: Frames, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_extract(
    frame: pd.DataFrame, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Extract what the rows say about a few things into text columns; ``<NA>`` where a row does not say it.

    To be awaited: as :func:`tagframe.sem_extract`, but the event loop goes on, and cancelling stops what is
    not sent.

    Each row takes one question, however many things are extracted. For numbers, dates and closed sets of values, give
    :func:`sem_map` a pydantic model instead.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        input_cols: labels of the columns to read, or one label.
        output_cols: from the name of each new column to what it is to hold, or to None where the name says it.
        extract_quotes: columns ``NAME_quote`` with the words that the values are taken from; those that the row does
            not have are left out, and the row's outcome says so.
        return_explanations: a column ``explanation_extract`` with the model's reasons.
        rows_per_call: rows of one prompt, audited as for :func:`sem_filter`; texts count as the same where they share
            half of their words.
        suffix: the end of the names of the columns for reasons and errors.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``extract_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The frame with the columns of ``output_cols``; ``.tag.outcomes`` says what became of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a column of ``input_cols`` is not there.
        InvalidArgument: nothing to read or to extract, an added column's name that is taken.
        NotConfigured: no model is set.
    """
@overload
async def asem_extract(
    frame: pd.DataFrame, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_extract(
    frame: AsyncFrames, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_extract(
    frame: AsyncFrames, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, str | None], *,
    extract_quotes: bool = False, return_explanations: bool = False, rows_per_call: RowsPerCall = None,
    suffix: str = '_extract', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_filter(
    frame: pd.DataFrame, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Keep the rows for which the claim is true; with several claims, those for which all are true.

    Rows that show the same values are asked about once. A row whose shown cells are all missing is not asked about and
    does not pass. A row for which the model cannot say does not pass either, and a warning counts such rows.

    A list of claims keeps what one filter after the other would keep, for less. All claims are asked about a few rows
    first. Then the claim goes first that rules out most rows for the least text, and each row is asked only until a
    claim rules it out. Prompts of several rows are not audited then. ``return_all`` adds ``filter_label`` and
    ``filter_ended_by``, the claim that ruled the row out. ``return_explanations``, ``examples``, ``cascade`` and
    ``limit`` are for one claim.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; where it names none, the
            model is shown all columns. Or a list of claims.
        all_cols: show the model all columns, also where the claim names some.
        return_all: all rows, with the columns ``filter_label`` (boolean; ``<NA>`` where unsure, failed or not asked, so
            that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, where the
            provider gives log probabilities).
        return_explanations: a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        rows_per_call: rows of one prompt. More than one is cheaper and a little less exact; "auto" is 16 at most. 50
            rows (of few rows, a quarter) are asked singly too, and packs halved while more than 5 % of them differ;
            ``.tag.outcomes`` and its ``remarks`` tell of it.
        cascade: have a proxy decide the clear rows, with recall and precision promised; see
            :class:`tagframe.Cascade`. ``.tag.cascade`` says what it saved.
        limit: stop as soon as so many rows are found; small rounds, each a little larger than the one before. Not
            audited where ``rows_per_call`` is given too.
        limit_order: which rows to ask first: "rows" in their order, so that the first ``limit`` rows that pass are
            found, or "likeliest", those nearest to the claim by the embedder. The result is in the rows' order.
        suffix: the end of the added columns' names.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, an added column's name that is taken, an argument for one claim
            given with several.
        NotConfigured: no model is set.
    """
@overload
def sem_filter(
    frame: pd.DataFrame, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_filter(
    frame: Frames, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_filter(
    frame: Frames, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_filter(
    frame: pd.DataFrame, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Keep the rows for which the claim is true; with several claims, those for which all are true.

    To be awaited: as :func:`tagframe.sem_filter`, but the event loop goes on, and cancelling stops what is
    not sent.

    Rows that show the same values are asked about once. A row whose shown cells are all missing is not asked about and
    does not pass. A row for which the model cannot say does not pass either, and a warning counts such rows.

    A list of claims keeps what one filter after the other would keep, for less. All claims are asked about a few rows
    first. Then the claim goes first that rules out most rows for the least text, and each row is asked only until a
    claim rules it out. Prompts of several rows are not audited then. ``return_all`` adds ``filter_label`` and
    ``filter_ended_by``, the claim that ruled the row out. ``return_explanations``, ``examples``, ``cascade`` and
    ``limit`` are for one claim.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; where it names none, the
            model is shown all columns. Or a list of claims.
        all_cols: show the model all columns, also where the claim names some.
        return_all: all rows, with the columns ``filter_label`` (boolean; ``<NA>`` where unsure, failed or not asked, so
            that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, where the
            provider gives log probabilities).
        return_explanations: a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        rows_per_call: rows of one prompt. More than one is cheaper and a little less exact; "auto" is 16 at most. 50
            rows (of few rows, a quarter) are asked singly too, and packs halved while more than 5 % of them differ;
            ``.tag.outcomes`` and its ``remarks`` tell of it.
        cascade: have a proxy decide the clear rows, with recall and precision promised; see
            :class:`tagframe.Cascade`. ``.tag.cascade`` says what it saved.
        limit: stop as soon as so many rows are found; small rounds, each a little larger than the one before. Not
            audited where ``rows_per_call`` is given too.
        limit_order: which rows to ask first: "rows" in their order, so that the first ``limit`` rows that pass are
            found, or "likeliest", those nearest to the claim by the embedder. The result is in the rows' order.
        suffix: the end of the added columns' names.
        on_error: what a row without an answer does: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: an instruction without words, an added column's name that is taken, an argument for one claim
            given with several.
        NotConfigured: no model is set.
    """
@overload
async def asem_filter(
    frame: pd.DataFrame, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_filter(
    frame: AsyncFrames, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_filter(
    frame: AsyncFrames, instruction: str | Sequence[str], *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None,
    cascade: Cascade | None = None, limit: int | None = None, limit_order: LimitOrder = 'rows', suffix: str = '_filter',
    on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Join the pairs of rows of two frames for which a claim is true, without asking about every pair.

    Rows that show the same values count as one. Where asking about each pair costs more, the model is asked first
    whether the claim can be cut into a label of each side ("coat and hat are of one season"). Then each row is
    labelled once, rows are joined on labels, and a sample of pairs on both sides of the cut is asked directly:
    where direct answers disagree, the labels are dropped. Claims that no labels carry ("the second replies to the
    first") are asked about pairs, up to 64 in a prompt. With 128 distinct rows and more, only pairs whose texts are
    alike enough are asked about. How alike that is, some rows show that were asked about with all others.
    Blocks of pairs that come to nothing are asked in smaller ones, by four times as many prompts as there are blocks;
    what is left then fails, and ``plan="pairs"`` asks each pair.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        instruction: a claim that names columns of both in braces: ``"{title} is what {review} is about"``; a column
            that both have is ``{title:left}`` or ``{title:right}``.
        how: what is kept beside the pairs: nothing, or rows without a partner, of the ``"left"``, the ``"right"`` or
            both (``"outer"``).
        plan: ``"auto"``; what :func:`plan_sem_join` gave; ``"blocks"`` to ask about pairs, many in a prompt, or
            ``"pairs"`` to ask about each.
        recall: share of the true pairs to be found where no labels carry the claim; 1 asks about every pair.
        return_explanations: a column ``explanation_join``: the model's reasons, or the labels.
        examples: solved pairs: the named columns and a boolean column ``Answer``.
        rows_per_call: rows that are labelled in one prompt, "auto" for 16 at most; the pairs that are asked directly
            audit these packs, too.
        limit: stop as soon as so many pairs are found, asked in blocks and spread over the rows of both sides; for
            ``how="inner"`` and ``plan="auto"`` or ``"blocks"``.
        suffix: the end of the added columns' names.
        on_error: what rows without an answer do: ``"raise"`` once all others are done, ``"keep"`` them, without a
            partner, with a column ``join_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The pairs, by left rows and then by right ones, with a new index; a column of both frames is ``title:left`` and
        ``title:right``. ``.tag.claim_report`` says how they were found, and ``.tag.outcomes`` what became of each left
        row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: a claim that does not name columns of both frames; an unknown ``how`` or ``plan``.
        NotConfigured: no model is set.
    """
@overload
def sem_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_join(
    frame: Frames, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_join(
    frame: Frames, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Join the pairs of rows of two frames for which a claim is true, without asking about every pair.

    To be awaited: as :func:`tagframe.sem_join`, but the event loop goes on, and cancelling stops what is
    not sent.

    Rows that show the same values count as one. Where asking about each pair costs more, the model is asked first
    whether the claim can be cut into a label of each side ("coat and hat are of one season"). Then each row is
    labelled once, rows are joined on labels, and a sample of pairs on both sides of the cut is asked directly:
    where direct answers disagree, the labels are dropped. Claims that no labels carry ("the second replies to the
    first") are asked about pairs, up to 64 in a prompt. With 128 distinct rows and more, only pairs whose texts are
    alike enough are asked about. How alike that is, some rows show that were asked about with all others.
    Blocks of pairs that come to nothing are asked in smaller ones, by four times as many prompts as there are blocks;
    what is left then fails, and ``plan="pairs"`` asks each pair.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        instruction: a claim that names columns of both in braces: ``"{title} is what {review} is about"``; a column
            that both have is ``{title:left}`` or ``{title:right}``.
        how: what is kept beside the pairs: nothing, or rows without a partner, of the ``"left"``, the ``"right"`` or
            both (``"outer"``).
        plan: ``"auto"``; what :func:`plan_sem_join` gave; ``"blocks"`` to ask about pairs, many in a prompt, or
            ``"pairs"`` to ask about each.
        recall: share of the true pairs to be found where no labels carry the claim; 1 asks about every pair.
        return_explanations: a column ``explanation_join``: the model's reasons, or the labels.
        examples: solved pairs: the named columns and a boolean column ``Answer``.
        rows_per_call: rows that are labelled in one prompt, "auto" for 16 at most; the pairs that are asked directly
            audit these packs, too.
        limit: stop as soon as so many pairs are found, asked in blocks and spread over the rows of both sides; for
            ``how="inner"`` and ``plan="auto"`` or ``"blocks"``.
        suffix: the end of the added columns' names.
        on_error: what rows without an answer do: ``"raise"`` once all others are done, ``"keep"`` them, without a
            partner, with a column ``join_error``, or ``"drop"``.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        The pairs, by left rows and then by right ones, with a new index; a column of both frames is ``title:left`` and
        ``title:right``. ``.tag.claim_report`` says how they were found, and ``.tag.outcomes`` what became of each left
        row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column is not there.
        InvalidArgument: a claim that does not name columns of both frames; an unknown ``how`` or ``plan``.
        NotConfigured: no model is set.
    """
@overload
async def asem_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_join(
    frame: AsyncFrames, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_join(
    frame: AsyncFrames, right: pd.DataFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_topk(
    frame: pd.DataFrame, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Rank the rows by a criterion and keep the first K, best first.

    By default the model names the best K of lists of up to 30 rows, as many at once as there are; these go into the
    next round: 1 request for 30 rows, about 50 in 5 rounds for the top 10 of 1,000. A list whose answer does not name
    so many rows, each once, is asked about once more, and then in halves. ``compare="pair"`` asks which of two rows is
    better, in a knock-out whose losers stay in. That takes about 1.25 shorter requests a row, and is no surer than
    lists. Either way the same call asks the same questions. Answers that never contradict each other give the exact
    order; the remarks of ``.tag.outcomes`` count contradictions. Rows that show the same values are compared once and
    stay in their order. Rows whose named columns are all null come last and are not asked about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: rows to keep, at least 1; all rows are ranked where there are fewer.
        compare: ``"list"`` or ``"pair"``. Rows too long for lists of more than four are compared in pairs.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows the other way round, so that a preference for the first
            place evens out.
        comparisons: requests at most for the rows of a group, beside repairs; the remarks say where they were not
            enough. None is as many as are needed, for ``compare="pair"`` up to three times those of consistent answers.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: what a row does that cannot be compared, which is set aside, alone: ``"raise"`` once all is done,
            ``"keep"`` it behind the ranked ones with a column ``topk_error``, or ``"drop"`` it.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column is not there.
        InvalidArgument: K or comparisons below 1, another ``compare``, or an instruction without words.
        NotConfigured: no model is set.
    """
@overload
def sem_topk(
    frame: pd.DataFrame, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_topk(
    frame: Frames, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
def sem_topk(
    frame: Frames, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_topk(
    frame: pd.DataFrame, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Rank the rows by a criterion and keep the first K, best first.

    To be awaited: as :func:`tagframe.sem_topk`, but the event loop goes on, and cancelling stops what is
    not sent.

    By default the model names the best K of lists of up to 30 rows, as many at once as there are; these go into the
    next round: 1 request for 30 rows, about 50 in 5 rounds for the top 10 of 1,000. A list whose answer does not name
    so many rows, each once, is asked about once more, and then in halves. ``compare="pair"`` asks which of two rows is
    better, in a knock-out whose losers stay in. That takes about 1.25 shorter requests a row, and is no surer than
    lists. Either way the same call asks the same questions. Answers that never contradict each other give the exact
    order; the remarks of ``.tag.outcomes`` count contradictions. Rows that show the same values are compared once and
    stay in their order. Rows whose named columns are all null come last and are not asked about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: rows to keep, at least 1; all rows are ranked where there are fewer.
        compare: ``"list"`` or ``"pair"``. Rows too long for lists of more than four are compared in pairs.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows the other way round, so that a preference for the first
            place evens out.
        comparisons: requests at most for the rows of a group, beside repairs; the remarks say where they were not
            enough. None is as many as are needed, for ``compare="pair"`` up to three times those of consistent answers.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: what a row does that cannot be compared, which is set aside, alone: ``"raise"`` once all is done,
            ``"keep"`` it behind the ranked ones with a column ``topk_error``, or ``"drop"`` it.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` says what became of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column is not there.
        InvalidArgument: K or comparisons below 1, another ``compare``, or an instruction without words.
        NotConfigured: no model is set.
    """
@overload
async def asem_topk(
    frame: pd.DataFrame, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_topk(
    frame: AsyncFrames, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
async def asem_topk(
    frame: AsyncFrames, instruction: str, K: int, *, compare: Compare = 'list',
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False, comparisons: int | None = None,
    suffix: str = '_topk', on_error: OnError = 'raise', to: str | os.PathLike[str], **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_search(
    frame: pd.DataFrame, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Find the K rows whose text is nearest to a query, best first. With ``n_rerank``, a model ranks them.

    Texts are embedded and searched in memory, exactly (FAISS): nothing is indexed beforehand, and no file is written.
    The model is asked only with ``n_rerank``, as by :func:`sem_topk`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to search; rows without text are not found.
        query: in plain language.
        K: rows to find, at least 1; None for all, where ``n_rerank`` is given.
        n_rerank: rows that the model chooses among them.
        return_scores: a column ``vec_scores_sim_score``: cosines.
        suffix: the end of its name.
        on_error: as for :func:`sem_topk`, where the model is asked.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``,
            ``embedder``.

    Returns:
        The rows, with index, dtypes and subclass kept.

    Raises:
        ColumnNotFound: the column is not there.
        InvalidArgument: neither K nor ``n_rerank``, or below 1; a query without words.
        NotConfigured: no embedding model, or with ``n_rerank`` no language model, is set.
    """
@overload
def sem_search(
    frame: pd.DataFrame, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
def sem_search(
    frame: Frames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[SearchSettings]
) -> pd.DataFrame: ...
@overload
def sem_search(
    frame: Frames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', to: str | os.PathLike[str],
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
async def asem_search(
    frame: pd.DataFrame, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Find the K rows whose text is nearest to a query, best first. With ``n_rerank``, a model ranks them.

    To be awaited: as :func:`tagframe.sem_search`, but the event loop goes on, and cancelling stops what is
    not sent.

    Texts are embedded and searched in memory, exactly (FAISS): nothing is indexed beforehand, and no file is written.
    The model is asked only with ``n_rerank``, as by :func:`sem_topk`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to search; rows without text are not found.
        query: in plain language.
        K: rows to find, at least 1; None for all, where ``n_rerank`` is given.
        n_rerank: rows that the model chooses among them.
        return_scores: a column ``vec_scores_sim_score``: cosines.
        suffix: the end of its name.
        on_error: as for :func:`sem_topk`, where the model is asked.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``,
            ``embedder``.

    Returns:
        The rows, with index, dtypes and subclass kept.

    Raises:
        ColumnNotFound: the column is not there.
        InvalidArgument: neither K nor ``n_rerank``, or below 1; a query without words.
        NotConfigured: no embedding model, or with ``n_rerank`` no language model, is set.
    """
@overload
async def asem_search(
    frame: pd.DataFrame, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
async def asem_search(
    frame: AsyncFrames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[SearchSettings]
) -> pd.DataFrame: ...
@overload
async def asem_search(
    frame: AsyncFrames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, suffix: str = '_sim_score', on_error: OnError = 'raise', to: str | os.PathLike[str],
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
def sem_sim_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False,
    quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Join each row with the K rows of another frame whose texts are nearest to its own. No model is asked.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        left_on: the column of the left frame; its rows without text have no partner and are left out.
        right_on: the column of the right frame.
        K: partners of each row, at least 1.
        lsuffix: the end of the names of left columns that both frames have.
        rsuffix: the same of the right ones.
        score_suffix: the end of the name of the column ``_scores``: cosines.
        keep_index: columns ``_left_id`` and ``_right_id`` with both frames' index labels.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``,
            ``embedder``.

    Returns:
        The left columns, ``_scores`` and the right ones, best partner first, with the left frame's index.

    Raises:
        ColumnNotFound: a column is not there.
        InvalidArgument: K below 1; a column of both frames without suffixes.
        NotConfigured: no embedding model is to be had.
    """
@overload
def sem_sim_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, quote: Literal[True],
    **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
def sem_sim_join(
    frame: Frames, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *, lsuffix: str = '',
    rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: None = None,
    **settings: Unpack[SearchSettings]
) -> Batches: ...
@overload
def sem_sim_join(
    frame: Frames, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *, lsuffix: str = '',
    rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: str | os.PathLike[str],
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
async def asem_sim_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False,
    quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Join each row with the K rows of another frame whose texts are nearest to its own. No model is asked.

    To be awaited: as :func:`tagframe.sem_sim_join`, but the event loop goes on, and cancelling stops what is
    not sent.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        left_on: the column of the left frame; its rows without text have no partner and are left out.
        right_on: the column of the right frame.
        K: partners of each row, at least 1.
        lsuffix: the end of the names of left columns that both frames have.
        rsuffix: the same of the right ones.
        score_suffix: the end of the name of the column ``_scores``: cosines.
        keep_index: columns ``_left_id`` and ``_right_id`` with both frames' index labels.
        quote: calls, tokens, dollars and seconds instead, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder of Parquet files to write the results to; its path is the result.
        **settings: those of :func:`tagframe.configure`, for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``progress``, ``lm``, ``lm_for``, ``api_base``, ``api_key``,
            ``embedder``.

    Returns:
        The left columns, ``_scores`` and the right ones, best partner first, with the left frame's index.

    Raises:
        ColumnNotFound: a column is not there.
        InvalidArgument: K below 1; a column of both frames without suffixes.
        NotConfigured: no embedding model is to be had.
    """
@overload
async def asem_sim_join(
    frame: pd.DataFrame, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, quote: Literal[True],
    **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
async def asem_sim_join(
    frame: AsyncFrames, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: None = None,
    **settings: Unpack[SearchSettings]
) -> AsyncBatches: ...
@overload
async def asem_sim_join(
    frame: AsyncFrames, right: pd.DataFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: str | os.PathLike[str],
    **settings: Unpack[SearchSettings]
) -> Path: ...
