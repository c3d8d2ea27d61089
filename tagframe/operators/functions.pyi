# Written by tools/write_stubs.py from the declarations of the operators; not to be changed by hand.
# fmt: off

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from tagframe.config import CallSettings, SearchSettings
from tagframe.interop import ForeignFrame
from tagframe.lm import Quote
from tagframe.operators.batches import AsyncBatches, AsyncFrames, Batches, Frames
from tagframe.operators.cascade import Cascade
from tagframe.operators.join.decide import Way
from tagframe.operators.join.labels import ClaimPlan
from tagframe.operators.join.sides import JoinHow
from tagframe.operators.outcome import OnError
from tagframe.operators.packing import LimitOrder, RowsPerCall
from tagframe.operators.parquet_folder import IfExists
from typing import Any, Literal, Unpack, overload
import os
import pandas as pd

@overload
def sem_agg(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_output', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Answer one request from all rows, or from the rows of each group.

    If the rows do not fit into one prompt, they are answered in parts, and the partial answers are combined round by
    round, each group at its own pace. A prompt holds about 10,000 tokens of rows, and never more than the model's
    window: the setting ``context_window``, or the window in litellm's table; if neither is known, as much as the server
    accepts. A single row that is too long is cut, with a warning, and the group's outcome says so. Each part carries
    its number of rows. For a mean, a sum or a share, use pandas on the results of :func:`sem_score` or :func:`sem_map`.

    The model is asked to cite the rows behind its answer by the numbers that they are shown with. If it cites a number
    that was not shown, it is asked once more. If the answer, or a part of it, cites none, no rows are its sources, and
    the outcome says so.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a request that names columns in braces, ``"Summarise the {review}s"``; if it names none, the model
            is shown all columns but ids, with a warning.
        all_cols: show all columns even if some are named (LOTUS' keyword).
        group_by: columns; one answer for each group, groups in order of first appearance.
        response_format: a pydantic model class for the answer (LOTUS' keyword). The answer is checked, and asked for
            once more if it does not match. Each field becomes a column; ``_output`` has the answer as JSON.
        knowledge: let the model add knowledge of the world, each such statement between ``[beyond the rows: …]``; by
            default it answers from the rows only.
        examples: solved requests to show first: the named columns and a column ``Answer``; rows with the same
            ``Answer`` belong to one request. With ``response_format``, it has instances of the model, dicts or JSON.
        suffix: the name of the answer's column.
        on_error: ``"raise"`` once all groups are done, ``"keep"`` a failed group as ``<NA>`` with a column
            ``output_error``, or ``"drop"`` it.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        A frame with one row and the column ``_output``; with ``group_by``, one row for each group, with the group's
        columns first. For a frame without rows: ``<NA>``, or no groups. ``.tag.sources`` has the rows behind each
        answer, ``.tag.outcomes`` the outcome of each group.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all groups have been tried.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, or ``response_format`` is not a pydantic model class.
        NotConfigured: no model is set.
    """
@overload
def sem_agg(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_output', on_error: OnError = 'raise',
    quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_agg(
    frame: Frames, instruction: str, *, all_cols: bool = False, group_by: Hashable | Sequence[Hashable] | None = None,
    response_format: Any = None, knowledge: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    suffix: str = '_output', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
def sem_agg(
    frame: Frames, instruction: str, *, all_cols: bool = False, group_by: Hashable | Sequence[Hashable] | None = None,
    response_format: Any = None, knowledge: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    suffix: str = '_output', on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_agg(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_output', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Answer one request from all rows, or from the rows of each group.

    The awaitable form of :func:`tagframe.sem_agg`: the event loop goes on, and cancelling stops what is
    not sent yet.

    If the rows do not fit into one prompt, they are answered in parts, and the partial answers are combined round by
    round, each group at its own pace. A prompt holds about 10,000 tokens of rows, and never more than the model's
    window: the setting ``context_window``, or the window in litellm's table; if neither is known, as much as the server
    accepts. A single row that is too long is cut, with a warning, and the group's outcome says so. Each part carries
    its number of rows. For a mean, a sum or a share, use pandas on the results of :func:`sem_score` or :func:`sem_map`.

    The model is asked to cite the rows behind its answer by the numbers that they are shown with. If it cites a number
    that was not shown, it is asked once more. If the answer, or a part of it, cites none, no rows are its sources, and
    the outcome says so.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a request that names columns in braces, ``"Summarise the {review}s"``; if it names none, the model
            is shown all columns but ids, with a warning.
        all_cols: show all columns even if some are named (LOTUS' keyword).
        group_by: columns; one answer for each group, groups in order of first appearance.
        response_format: a pydantic model class for the answer (LOTUS' keyword). The answer is checked, and asked for
            once more if it does not match. Each field becomes a column; ``_output`` has the answer as JSON.
        knowledge: let the model add knowledge of the world, each such statement between ``[beyond the rows: …]``; by
            default it answers from the rows only.
        examples: solved requests to show first: the named columns and a column ``Answer``; rows with the same
            ``Answer`` belong to one request. With ``response_format``, it has instances of the model, dicts or JSON.
        suffix: the name of the answer's column.
        on_error: ``"raise"`` once all groups are done, ``"keep"`` a failed group as ``<NA>`` with a column
            ``output_error``, or ``"drop"`` it.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        A frame with one row and the column ``_output``; with ``group_by``, one row for each group, with the group's
        columns first. For a frame without rows: ``<NA>``, or no groups. ``.tag.sources`` has the rows behind each
        answer, ``.tag.outcomes`` the outcome of each group.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all groups have been tried.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, or ``response_format`` is not a pydantic model class.
        NotConfigured: no model is set.
    """
@overload
async def asem_agg(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_output', on_error: OnError = 'raise',
    quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_agg(
    frame: AsyncFrames, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_output', on_error: OnError = 'raise',
    to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
async def asem_agg(
    frame: AsyncFrames, instruction: str, *, all_cols: bool = False,
    group_by: Hashable | Sequence[Hashable] | None = None, response_format: Any = None, knowledge: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_output', on_error: OnError = 'raise',
    to: str | os.PathLike[str], if_exists: IfExists = 'error', **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_dedup(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Drop the rows whose text is nearly the same as that of an earlier row.

    The embedding model compares all texts with each other. Texts that are similar, directly or through others, form a
    group, and the first row of each group is kept. Rows without text are kept.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to compare.
        threshold: texts are similar from this cosine on.
        border: the model decides pairs whose cosine is at most this far from the threshold; with 0 it is not asked.
        examples: solved pairs to show the model first: columns ``one`` and ``other`` with texts, and a boolean column
            ``Answer``, whether they are the same.
        rows_per_call: pairs in one prompt, audited as for :func:`sem_filter`.
        suffix: the beginning of the name of the column of errors.
        on_error: as for :func:`sem_filter`; a row fails if its pair with an earlier row has no answer. The column of
            errors is ``dedup_error``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``, ``embedder``.

    Returns:
        The rows that are kept, in order, with index, dtypes and subclass; for each other row, ``.tag.outcomes``
        names the row that it duplicates.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all pairs have been tried; the finished frame is on it.
        ColumnNotFound: there is no such column.
        InvalidArgument: ``threshold`` or ``border`` is not from 0 to 1; or two columns have that name.
        NotConfigured: no embedding model is available, or a model is needed and none is set.
    """
@overload
def sem_dedup(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
def sem_dedup(
    frame: Frames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[SearchSettings]
) -> Batches: ...
@overload
def sem_dedup(
    frame: Frames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
async def asem_dedup(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Drop the rows whose text is nearly the same as that of an earlier row.

    The awaitable form of :func:`tagframe.sem_dedup`: the event loop goes on, and cancelling stops what is
    not sent yet.

    The embedding model compares all texts with each other. Texts that are similar, directly or through others, form a
    group, and the first row of each group is kept. Rows without text are kept.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to compare.
        threshold: texts are similar from this cosine on.
        border: the model decides pairs whose cosine is at most this far from the threshold; with 0 it is not asked.
        examples: solved pairs to show the model first: columns ``one`` and ``other`` with texts, and a boolean column
            ``Answer``, whether they are the same.
        rows_per_call: pairs in one prompt, audited as for :func:`sem_filter`.
        suffix: the beginning of the name of the column of errors.
        on_error: as for :func:`sem_filter`; a row fails if its pair with an earlier row has no answer. The column of
            errors is ``dedup_error``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``, ``embedder``.

    Returns:
        The rows that are kept, in order, with index, dtypes and subclass; for each other row, ``.tag.outcomes``
        names the row that it duplicates.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all pairs have been tried; the finished frame is on it.
        ColumnNotFound: there is no such column.
        InvalidArgument: ``threshold`` or ``border`` is not from 0 to 1; or two columns have that name.
        NotConfigured: no embedding model is available, or a model is needed and none is set.
    """
@overload
async def asem_dedup(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
async def asem_dedup(
    frame: AsyncFrames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[SearchSettings]
) -> AsyncBatches: ...
@overload
async def asem_dedup(
    frame: AsyncFrames, col_name: Hashable, threshold: float = 0.9, *, border: float = 0.0,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = 'auto', suffix: str = '_dedup',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
def sem_map(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A value for each row: a text, a number, a boolean, a date, one of a few choices, or the fields of a model.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about. If
    the model says that it does not know, the value is ``<NA>`` and the row's outcome is "unsure".

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: the value to produce, with columns in braces: ``"The sentiment of {review} in one word"``; if it
            names none, the model is shown all columns but ids, with a warning.
        dtype: of the value: ``str``, ``float``, ``int``, ``bool``, ``datetime.date``, or one of pandas' names; the
            column has pandas' nullable dtype for it; ``string`` if None.
        response_format: a pydantic model instead of ``dtype``; its fields become columns of the same names.
        choices: the allowed texts, instead of ``dtype``.
        return_explanations: add a column ``explanation_map`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``; with ``response_format``, it has
            instances of the model, dicts or JSON.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; texts count as the same if they share half
            of their words, numbers if they differ by at most a twentieth.
        suffix: the name of the value's column.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``map_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_map``, or with one for each field of ``response_format``; index, dtypes and
        subclass kept. ``.tag.outcomes`` has the outcome of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, the type is unknown, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
@overload
def sem_map(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_map(
    frame: Frames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_map(
    frame: Frames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_map(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A value for each row: a text, a number, a boolean, a date, one of a few choices, or the fields of a model.

    The awaitable form of :func:`tagframe.sem_map`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about. If
    the model says that it does not know, the value is ``<NA>`` and the row's outcome is "unsure".

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: the value to produce, with columns in braces: ``"The sentiment of {review} in one word"``; if it
            names none, the model is shown all columns but ids, with a warning.
        dtype: of the value: ``str``, ``float``, ``int``, ``bool``, ``datetime.date``, or one of pandas' names; the
            column has pandas' nullable dtype for it; ``string`` if None.
        response_format: a pydantic model instead of ``dtype``; its fields become columns of the same names.
        choices: the allowed texts, instead of ``dtype``.
        return_explanations: add a column ``explanation_map`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``; with ``response_format``, it has
            instances of the model, dicts or JSON.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; texts count as the same if they share half
            of their words, numbers if they differ by at most a twentieth.
        suffix: the name of the value's column.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``map_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_map``, or with one for each field of ``response_format``; index, dtypes and
        subclass kept. ``.tag.outcomes`` has the outcome of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, the type is unknown, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
@overload
async def asem_map(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_map(
    frame: AsyncFrames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_map(
    frame: AsyncFrames, instruction: str, *, dtype: Any = None, response_format: Any = None,
    choices: Sequence[str] | None = None, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_map',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_score(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A score from 0 to 1 for each row. Each row is scored by itself, as in :func:`sem_map`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what to score, with columns in braces: ``"How hopeful is {review}?"``.
        return_explanations: add a column ``explanation_score`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; scores count as the same within .2. Packs
            have whole numbers from 0 to 100, and audited rows keep the score of their pack.
        suffix: the name of the score's column.
        on_error: as for :func:`sem_map`; the error column is ``score_error``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_score`` of dtype Float64.

    Raises:
        RowsFailed, ColumnNotFound, InvalidArgument, NotConfigured: as :func:`sem_map`.
    """
@overload
def sem_score(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_score(
    frame: Frames, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_score(
    frame: Frames, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_score(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """A score from 0 to 1 for each row. Each row is scored by itself, as in :func:`sem_map`.

    The awaitable form of :func:`tagframe.sem_score`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: what to score, with columns in braces: ``"How hopeful is {review}?"``.
        return_explanations: add a column ``explanation_score`` with the model's reasons.
        examples: solved rows to show first: the named columns and a column ``Answer``.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; scores count as the same within .2. Packs
            have whole numbers from 0 to 100, and audited rows keep the score of their pack.
        suffix: the name of the score's column.
        on_error: as for :func:`sem_map`; the error column is ``score_error``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The frame with the column ``_score`` of dtype Float64.

    Raises:
        RowsFailed, ColumnNotFound, InvalidArgument, NotConfigured: as :func:`sem_map`.
    """
@overload
async def asem_score(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_score(
    frame: AsyncFrames, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_score(
    frame: AsyncFrames, instruction: str, *, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_score',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_extract(
    frame: pd.DataFrame | ForeignFrame, input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type, *, extract_quotes: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_extract', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Extract facts from the rows into columns; ``<NA>`` if a row does not contain the fact.

    Each row takes one question, however many facts are extracted.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        input_cols: labels of the columns to read, or one label.
        output_cols: the name of each new column, with a description of its content, with a type (``int``, ``float``,
            ``bool``, ``datetime.date``, ``str``), with a list of the allowed texts, or with None if the name says
            enough. Or a list of names. Or a pydantic model class, as ``response_format`` of :func:`sem_map`.
        extract_quotes: add columns ``NAME_quote`` with the words from which the values are taken. Quotes that are not
            in the row are left out, and the row's outcome says so. Not for a model class.
        return_explanations: add a column ``explanation_extract`` with the model's reasons.
        examples: solved rows to show first: ``input_cols`` and a column ``Answer`` of dicts (or JSON) with a value or
            None for each new column.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; texts count as the same if they share half
            of their words.
        suffix: the end of the names of the columns for reasons and errors.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``extract_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The frame with the columns of ``output_cols``; ``.tag.outcomes`` has the outcome of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a column of ``input_cols`` does not exist.
        InvalidArgument: there is nothing to read or to extract, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
@overload
def sem_extract(
    frame: pd.DataFrame | ForeignFrame, input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type, *, extract_quotes: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_extract', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_extract(
    frame: Frames, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, Any] | Sequence[str] | type, *,
    extract_quotes: bool = False, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_extract',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_extract(
    frame: Frames, input_cols: Hashable | Sequence[Hashable], output_cols: Mapping[str, Any] | Sequence[str] | type, *,
    extract_quotes: bool = False, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, suffix: str = '_extract',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_extract(
    frame: pd.DataFrame | ForeignFrame, input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type, *, extract_quotes: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_extract', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Extract facts from the rows into columns; ``<NA>`` if a row does not contain the fact.

    The awaitable form of :func:`tagframe.sem_extract`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Each row takes one question, however many facts are extracted.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        input_cols: labels of the columns to read, or one label.
        output_cols: the name of each new column, with a description of its content, with a type (``int``, ``float``,
            ``bool``, ``datetime.date``, ``str``), with a list of the allowed texts, or with None if the name says
            enough. Or a list of names. Or a pydantic model class, as ``response_format`` of :func:`sem_map`.
        extract_quotes: add columns ``NAME_quote`` with the words from which the values are taken. Quotes that are not
            in the row are left out, and the row's outcome says so. Not for a model class.
        return_explanations: add a column ``explanation_extract`` with the model's reasons.
        examples: solved rows to show first: ``input_cols`` and a column ``Answer`` of dicts (or JSON) with a value or
            None for each new column.
        rows_per_call: rows in one prompt, audited as for :func:`sem_filter`; texts count as the same if they share half
            of their words.
        suffix: the end of the names of the columns for reasons and errors.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``extract_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The frame with the columns of ``output_cols``; ``.tag.outcomes`` has the outcome of each row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a column of ``input_cols`` does not exist.
        InvalidArgument: there is nothing to read or to extract, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
@overload
async def asem_extract(
    frame: pd.DataFrame | ForeignFrame, input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type, *, extract_quotes: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_extract', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_extract(
    frame: AsyncFrames, input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type, *, extract_quotes: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_extract', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_extract(
    frame: AsyncFrames, input_cols: Hashable | Sequence[Hashable],
    output_cols: Mapping[str, Any] | Sequence[str] | type, *, extract_quotes: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, suffix: str = '_extract', on_error: OnError = 'raise',
    to: str | os.PathLike[str], if_exists: IfExists = 'error', **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_filter(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Keep the rows for which the claim is true. Of several claims, filter by the one that most rows fail first.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about and
    does not pass. A row for which the model cannot tell does not pass either, and a warning counts such rows.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; if it names none, the
            model is shown all columns but ids, with a warning.
        all_cols: show the model all columns, even if the claim names some.
        return_all: return all rows, with the columns ``filter_label`` (boolean; ``<NA>`` if unsure, failed or not
            asked, so that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, if the
            provider gives log probabilities).
        return_explanations: add a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        rows_per_call: rows in one prompt. More than one is cheaper and a little less exact; "auto" is up to 16, or 32
            if an audit finds no difference. Of more than four such packs, 32 rows (a quarter, if there are few) are
            also asked one by one. While more than 5 % of these (and more than one) get another answer, packs are
            halved. An audit is kept for its claim, size and model. ``.tag.outcomes`` and its ``remarks`` report this.
        cascade: let a proxy decide the clear rows, with guaranteed recall and precision; see :class:`tagframe.Cascade`.
            ``.tag.cascade`` says what it saved.
        limit: stop as soon as so many rows are found. Rows are asked in small rounds that grow a little each time.
            Packs are not audited if ``rows_per_call`` is given too.
        limit_order: which rows to ask first: "rows" in their order, so that the first ``limit`` rows that pass are
            found, or "likeliest", those nearest to the claim by the embedder. The result is in the rows' order.
        suffix: the end of the added columns' names.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
@overload
def sem_filter(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_filter(
    frame: Frames, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_filter(
    frame: Frames, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise', to: str | os.PathLike[str],
    if_exists: IfExists = 'error', **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_filter(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Keep the rows for which the claim is true. Of several claims, filter by the one that most rows fail first.

    The awaitable form of :func:`tagframe.sem_filter`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Rows with the same shown values are asked about once. A row whose shown cells are all blank is not asked about and
    does not pass. A row for which the model cannot tell does not pass either, and a warning counts such rows.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a claim that names columns in braces, ``"{city} lies on a large river"``; if it names none, the
            model is shown all columns but ids, with a warning.
        all_cols: show the model all columns, even if the claim names some.
        return_all: return all rows, with the columns ``filter_label`` (boolean; ``<NA>`` if unsure, failed or not
            asked, so that its ``mean()`` and ``sum()`` leave such rows out; ``fillna(False)`` counts them),
            ``filter_outcome``, ``filter_reason`` and ``filter_confidence`` (the probability of the answer, if the
            provider gives log probabilities).
        return_explanations: add a column ``explanation_filter`` with the model's reasons.
        examples: solved rows to show first: the named columns and a boolean column ``Answer``.
        rows_per_call: rows in one prompt. More than one is cheaper and a little less exact; "auto" is up to 16, or 32
            if an audit finds no difference. Of more than four such packs, 32 rows (a quarter, if there are few) are
            also asked one by one. While more than 5 % of these (and more than one) get another answer, packs are
            halved. An audit is kept for its claim, size and model. ``.tag.outcomes`` and its ``remarks`` report this.
        cascade: let a proxy decide the clear rows, with guaranteed recall and precision; see :class:`tagframe.Cascade`.
            ``.tag.cascade`` says what it saved.
        limit: stop as soon as so many rows are found. Rows are asked in small rounds that grow a little each time.
            Packs are not audited if ``rows_per_call`` is given too.
        limit_order: which rows to ask first: "rows" in their order, so that the first ``limit`` rows that pass are
            found, or "likeliest", those nearest to the claim by the embedder. The result is in the rows' order.
        suffix: the end of the added columns' names.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` as ``<NA>`` with
            a column ``filter_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The rows that pass, in order, with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the instruction has no words, or the name of an added column is taken.
        NotConfigured: no model is set.
    """
@overload
async def asem_filter(
    frame: pd.DataFrame | ForeignFrame, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise', quote: Literal[True],
    **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_filter(
    frame: AsyncFrames, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise', to: None = None,
    **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_filter(
    frame: AsyncFrames, instruction: str, *, all_cols: bool = False, return_all: bool = False,
    return_explanations: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    rows_per_call: RowsPerCall = None, cascade: Cascade | None = None, limit: int | None = None,
    limit_order: LimitOrder = 'rows', suffix: str = '_filter', on_error: OnError = 'raise', to: str | os.PathLike[str],
    if_exists: IfExists = 'error', **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *,
    how: JoinHow = 'inner', plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Join the pairs of rows of two frames for which a claim is true, without asking about every pair.

    Rows with the same shown values count as one. Up to 40 pairs are asked about one by one. Otherwise, if labels are
    likely to cost less than blocks, the model is first asked whether the claim can be split into a label of each side
    ("coat and hat are of one season"). Then each row is labelled once, rows are joined on labels, and a sample of
    joined and other pairs is asked directly. If direct answers disagree with the labels, the labels are dropped. Claims
    that labels cannot decide ("the second replies to the first"), or for which they cost more, are asked about in
    blocks of up to 64 pairs in a prompt. With 128 or more distinct rows, only pairs with similar texts are asked about;
    the necessary similarity is found on some rows that are asked about with all others. If a block of pairs gets no
    usable answer, it is asked in smaller blocks, with up to four times as many prompts as there are blocks. Pairs that
    still have no answer fail; ``plan="pairs"`` asks about each pair.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        instruction: a claim that names columns of both in braces: ``"{title} is what {review} is about"``; a column
            that both have is ``{title:left}`` or ``{title:right}``.
        how: which rows to keep in addition to the pairs: none (``"inner"``), or rows without a partner of the
            ``"left"``, the ``"right"`` or both sides (``"outer"``).
        plan: ``"auto"``, the cheapest way by an estimate; a result of :func:`plan_sem_join`; ``"blocks"`` to ask about
            pairs, many in a prompt; or ``"pairs"`` to ask about each pair.
        recall: the share of the true pairs to find if labels cannot decide the claim; 1 asks about every pair.
        return_explanations: add a column ``explanation_join`` with the model's reasons, or the labels.
        examples: solved pairs: the named columns and a boolean column ``Answer``.
        rows_per_call: rows that are labelled in one prompt, which the pairs that are asked directly audit; "auto" is up
            to 16. If each pair is asked, pairs in one prompt, audited as for :func:`sem_filter`.
        limit: stop as soon as so many pairs are found, asked in blocks and spread over the rows of both sides; for
            ``how="inner"`` and ``plan="auto"`` or ``"blocks"``.
        suffix: the end of the added columns' names.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` them without a
            partner, with a column ``join_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The pairs, by left rows and then by right ones, with a new index; a column of both frames is ``title:left`` and
        ``title:right``. ``.tag.claim_report`` says how they were found, and ``.tag.outcomes`` has the outcome of each
        left row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the claim does not name columns of both frames, or ``how`` or ``plan`` is unknown.
        NotConfigured: no model is set.
    """
@overload
def sem_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *,
    how: JoinHow = 'inner', plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_join(
    frame: Frames, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> Batches: ...
@overload
def sem_join(
    frame: Frames, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *,
    how: JoinHow = 'inner', plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Join the pairs of rows of two frames for which a claim is true, without asking about every pair.

    The awaitable form of :func:`tagframe.sem_join`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Rows with the same shown values count as one. Up to 40 pairs are asked about one by one. Otherwise, if labels are
    likely to cost less than blocks, the model is first asked whether the claim can be split into a label of each side
    ("coat and hat are of one season"). Then each row is labelled once, rows are joined on labels, and a sample of
    joined and other pairs is asked directly. If direct answers disagree with the labels, the labels are dropped. Claims
    that labels cannot decide ("the second replies to the first"), or for which they cost more, are asked about in
    blocks of up to 64 pairs in a prompt. With 128 or more distinct rows, only pairs with similar texts are asked about;
    the necessary similarity is found on some rows that are asked about with all others. If a block of pairs gets no
    usable answer, it is asked in smaller blocks, with up to four times as many prompts as there are blocks. Pairs that
    still have no answer fail; ``plan="pairs"`` asks about each pair.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        instruction: a claim that names columns of both in braces: ``"{title} is what {review} is about"``; a column
            that both have is ``{title:left}`` or ``{title:right}``.
        how: which rows to keep in addition to the pairs: none (``"inner"``), or rows without a partner of the
            ``"left"``, the ``"right"`` or both sides (``"outer"``).
        plan: ``"auto"``, the cheapest way by an estimate; a result of :func:`plan_sem_join`; ``"blocks"`` to ask about
            pairs, many in a prompt; or ``"pairs"`` to ask about each pair.
        recall: the share of the true pairs to find if labels cannot decide the claim; 1 asks about every pair.
        return_explanations: add a column ``explanation_join`` with the model's reasons, or the labels.
        examples: solved pairs: the named columns and a boolean column ``Answer``.
        rows_per_call: rows that are labelled in one prompt, which the pairs that are asked directly audit; "auto" is up
            to 16. If each pair is asked, pairs in one prompt, audited as for :func:`sem_filter`.
        limit: stop as soon as so many pairs are found, asked in blocks and spread over the rows of both sides; for
            ``how="inner"`` and ``plan="auto"`` or ``"blocks"``.
        suffix: the end of the added columns' names.
        on_error: how to treat rows without an answer: ``"raise"`` once all others are done, ``"keep"`` them without a
            partner, with a column ``join_error``, or ``"drop"``.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        The pairs, by left rows and then by right ones, with a new index; a column of both frames is ``title:left`` and
        ``title:right``. ``.tag.claim_report`` says how they were found, and ``.tag.outcomes`` has the outcome of each
        left row.

    Raises:
        RowsFailed: with ``on_error="raise"``, after all rows have been tried; the finished frame is on it.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: the claim does not name columns of both frames, or ``how`` or ``plan`` is unknown.
        NotConfigured: no model is set.
    """
@overload
async def asem_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *,
    how: JoinHow = 'inner', plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_join(
    frame: AsyncFrames, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> AsyncBatches: ...
@overload
async def asem_join(
    frame: AsyncFrames, right: pd.DataFrame | ForeignFrame | pd.Series, instruction: str, *, how: JoinHow = 'inner',
    plan: ClaimPlan | Way = 'auto', recall: float = 0.9, return_explanations: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, rows_per_call: RowsPerCall = None, limit: int | None = None,
    suffix: str = '_join', on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_topk(
    frame: pd.DataFrame | ForeignFrame, instruction: str, K: int, *,
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Rank the rows by a criterion and keep the first K, best first.

    The model names the best K of lists of up to 30 rows, with all lists of a round at once; the named rows go into the
    next round. That is 1 request for 30 rows, and about 50 in 5 rounds for the top 10 of 1,000. If an answer does not
    name K different rows, its list is asked about once more, and then in halves. The same call asks the same questions.
    If answers never contradict each other, the order is exact; the remarks of ``.tag.outcomes`` count contradictions.
    Rows with the same shown values are compared once and stay in their order. Rows whose shown cells are all blank
    come last and are not asked about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: how many rows to keep, at least 1; if there are fewer, all rows are ranked.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows in reverse order, so that a preference for the first place
            cancels out.
        examples: a solved ranking to show first: the named columns and a column ``Answer`` with the place of each row,
            1 for the best.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: how to treat rows that cannot be compared, which are set aside: ``"raise"`` once the ranking is done,
            ``"keep"`` them after the ranked ones with a column ``topk_error``, or ``"drop"`` them.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: K is below 1, the instruction has no words, or the examples have no places.
        NotConfigured: no model is set.
    """
@overload
def sem_topk(
    frame: pd.DataFrame | ForeignFrame, instruction: str, K: int, *,
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk', on_error: OnError = 'raise',
    quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
def sem_topk(
    frame: Frames, instruction: str, K: int, *, group_by: Hashable | Sequence[Hashable] | None = None,
    debias: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
def sem_topk(
    frame: Frames, instruction: str, K: int, *, group_by: Hashable | Sequence[Hashable] | None = None,
    debias: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
async def asem_topk(
    frame: pd.DataFrame | ForeignFrame, instruction: str, K: int, *,
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk', on_error: OnError = 'raise',
    quote: Literal[False] = False, **settings: Unpack[CallSettings]
) -> pd.DataFrame:
    """Rank the rows by a criterion and keep the first K, best first.

    The awaitable form of :func:`tagframe.sem_topk`: the event loop goes on, and cancelling stops what is
    not sent yet.

    The model names the best K of lists of up to 30 rows, with all lists of a round at once; the named rows go into the
    next round. That is 1 request for 30 rows, and about 50 in 5 rounds for the top 10 of 1,000. If an answer does not
    name K different rows, its list is asked about once more, and then in halves. The same call asks the same questions.
    If answers never contradict each other, the order is exact; the remarks of ``.tag.outcomes`` count contradictions.
    Rows with the same shown values are compared once and stay in their order. Rows whose shown cells are all blank
    come last and are not asked about.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        instruction: a criterion that names columns in braces, ``"Which {title} is most technical?"``.
        K: how many rows to keep, at least 1; if there are fewer, all rows are ranked.
        group_by: columns; the first K of each group are kept, groups in order of first appearance.
        debias: ask everything a second time with the rows in reverse order, so that a preference for the first place
            cancels out.
        examples: a solved ranking to show first: the named columns and a column ``Answer`` with the place of each row,
            1 for the best.
        suffix: the end of the name of the error column that ``on_error="keep"`` adds.
        on_error: how to treat rows that cannot be compared, which are set aside: ``"raise"`` once the ranking is done,
            ``"keep"`` them after the ranked ones with a column ``topk_error``, or ``"drop"`` them.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``.

    Returns:
        At most K rows (of each group) with index, dtypes and subclass kept; ``.tag.outcomes`` has the outcome of each.

    Raises:
        RowsFailed: with ``on_error="raise"``, after the ranking has been finished without the failed rows.
        ColumnNotFound: a named column does not exist.
        InvalidArgument: K is below 1, the instruction has no words, or the examples have no places.
        NotConfigured: no model is set.
    """
@overload
async def asem_topk(
    frame: pd.DataFrame | ForeignFrame, instruction: str, K: int, *,
    group_by: Hashable | Sequence[Hashable] | None = None, debias: bool = False,
    examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk', on_error: OnError = 'raise',
    quote: Literal[True], **settings: Unpack[CallSettings]
) -> Quote: ...
@overload
async def asem_topk(
    frame: AsyncFrames, instruction: str, K: int, *, group_by: Hashable | Sequence[Hashable] | None = None,
    debias: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[CallSettings]
) -> pd.DataFrame: ...
@overload
async def asem_topk(
    frame: AsyncFrames, instruction: str, K: int, *, group_by: Hashable | Sequence[Hashable] | None = None,
    debias: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_topk',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[CallSettings]
) -> Path: ...
@overload
def sem_search(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, query: str, K: int | None = None,
    n_rerank: int | None = None, *, return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Find the K rows whose text is nearest to a query, best first. With ``n_rerank``, a model ranks them.

    Texts are embedded and searched exactly, in memory (FAISS). Nothing is indexed in advance, and no file is written.
    The model is asked only with ``n_rerank``, as in :func:`sem_topk`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to search; rows without text are not found.
        query: in plain language.
        K: how many rows to find, at least 1; None for all, if ``n_rerank`` is given.
        n_rerank: how many of these the model chooses.
        return_scores: add a column ``vec_scores_sim_score`` with cosines.
        examples: as for :func:`sem_topk`, for the model: ``col_name`` and a column ``Answer`` with places.
        suffix: the end of that column's name.
        on_error: as for :func:`sem_topk`, if the model is asked.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``, ``embedder``.

    Returns:
        The rows, with index, dtypes and subclass kept.

    Raises:
        ColumnNotFound: the column does not exist.
        InvalidArgument: neither K nor ``n_rerank`` is given, one is below 1, or the query has no words.
        NotConfigured: no embedding model is set, or ``n_rerank`` is given and no language model is set.
    """
@overload
def sem_search(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, query: str, K: int | None = None,
    n_rerank: int | None = None, *, return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
def sem_search(
    frame: Frames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_sim_score',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[SearchSettings]
) -> pd.DataFrame: ...
@overload
def sem_search(
    frame: Frames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_sim_score',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
async def asem_search(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, query: str, K: int | None = None,
    n_rerank: int | None = None, *, return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[False] = False,
    **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Find the K rows whose text is nearest to a query, best first. With ``n_rerank``, a model ranks them.

    The awaitable form of :func:`tagframe.sem_search`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Texts are embedded and searched exactly, in memory (FAISS). Nothing is indexed in advance, and no file is written.
    The model is asked only with ``n_rerank``, as in :func:`sem_topk`.

    Args:
        frame: any frame; it is not changed. Or an iterator of frames, see :mod:`tagframe.operators.batches`.
        col_name: the column to search; rows without text are not found.
        query: in plain language.
        K: how many rows to find, at least 1; None for all, if ``n_rerank`` is given.
        n_rerank: how many of these the model chooses.
        return_scores: add a column ``vec_scores_sim_score`` with cosines.
        examples: as for :func:`sem_topk`, for the model: ``col_name`` and a column ``Answer`` with places.
        suffix: the end of that column's name.
        on_error: as for :func:`sem_topk`, if the model is asked.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``, ``embedder``.

    Returns:
        The rows, with index, dtypes and subclass kept.

    Raises:
        ColumnNotFound: the column does not exist.
        InvalidArgument: neither K nor ``n_rerank`` is given, one is below 1, or the query has no words.
        NotConfigured: no embedding model is set, or ``n_rerank`` is given and no language model is set.
    """
@overload
async def asem_search(
    frame: pd.DataFrame | ForeignFrame, col_name: Hashable, query: str, K: int | None = None,
    n_rerank: int | None = None, *, return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None,
    suffix: str = '_sim_score', on_error: OnError = 'raise', quote: Literal[True], **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
async def asem_search(
    frame: AsyncFrames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_sim_score',
    on_error: OnError = 'raise', to: None = None, **settings: Unpack[SearchSettings]
) -> pd.DataFrame: ...
@overload
async def asem_search(
    frame: AsyncFrames, col_name: Hashable, query: str, K: int | None = None, n_rerank: int | None = None, *,
    return_scores: bool = False, examples: pd.DataFrame | ForeignFrame | None = None, suffix: str = '_sim_score',
    on_error: OnError = 'raise', to: str | os.PathLike[str], if_exists: IfExists = 'error',
    **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
def sem_sim_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable,
    right_on: Hashable, K: int, *, lsuffix: str = '', rsuffix: str = '', score_suffix: str = '',
    keep_index: bool = False, quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Join each row with the K rows of another frame whose texts are nearest to its own. No language model is asked.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        left_on: the column of the left frame; its rows without text have no partner and are left out.
        right_on: the column of the right frame.
        K: how many partners each row gets, at least 1.
        lsuffix: the end of the names of left columns that both frames have.
        rsuffix: the same for right columns.
        score_suffix: the end of the name of the column ``_scores``, which has cosines.
        keep_index: add columns ``_left_id`` and ``_right_id`` with both frames' index labels.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``, ``embedder``.

    Returns:
        The left columns, ``_scores`` and the right ones, best partner first, with the left frame's index.

    Raises:
        ColumnNotFound: a column does not exist.
        InvalidArgument: K is below 1, or both frames have a column and no suffixes are given.
        NotConfigured: no embedding model is available.
    """
@overload
def sem_sim_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable,
    right_on: Hashable, K: int, *, lsuffix: str = '', rsuffix: str = '', score_suffix: str = '',
    keep_index: bool = False, quote: Literal[True], **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
def sem_sim_join(
    frame: Frames, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: None = None,
    **settings: Unpack[SearchSettings]
) -> Batches: ...
@overload
def sem_sim_join(
    frame: Frames, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int, *,
    lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: str | os.PathLike[str],
    if_exists: IfExists = 'error', **settings: Unpack[SearchSettings]
) -> Path: ...
@overload
async def asem_sim_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable,
    right_on: Hashable, K: int, *, lsuffix: str = '', rsuffix: str = '', score_suffix: str = '',
    keep_index: bool = False, quote: Literal[False] = False, **settings: Unpack[SearchSettings]
) -> pd.DataFrame:
    """Join each row with the K rows of another frame whose texts are nearest to its own. No language model is asked.

    The awaitable form of :func:`tagframe.sem_sim_join`: the event loop goes on, and cancelling stops what is
    not sent yet.

    Args:
        frame: the left frame; it is not changed.
        right: the right frame, or a series with a name.
        left_on: the column of the left frame; its rows without text have no partner and are left out.
        right_on: the column of the right frame.
        K: how many partners each row gets, at least 1.
        lsuffix: the end of the names of left columns that both frames have.
        rsuffix: the same for right columns.
        score_suffix: the end of the name of the column ``_scores``, which has cosines.
        keep_index: add columns ``_left_id`` and ``_right_id`` with both frames' index labels.
        quote: return calls, tokens, dollars and seconds, as a :class:`~tagframe.lm.Quote`; nothing is sent.
        to: for batches: a folder to which the results are written as Parquet files; the call returns its path.
        if_exists: for ``to=``: ``"error"`` refuses a folder that exists, ``"replace"`` replaces one that it wrote.
        **settings: settings of :func:`tagframe.configure` for this call: ``store``, ``budget``, ``concurrency``,
            ``rpm``, ``tpm``, ``context_window``, ``max_tokens``, ``max_failed``, ``progress``, ``lm``, ``lm_for``,
            ``api_base``, ``api_key``, ``embedder``.

    Returns:
        The left columns, ``_scores`` and the right ones, best partner first, with the left frame's index.

    Raises:
        ColumnNotFound: a column does not exist.
        InvalidArgument: K is below 1, or both frames have a column and no suffixes are given.
        NotConfigured: no embedding model is available.
    """
@overload
async def asem_sim_join(
    frame: pd.DataFrame | ForeignFrame, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable,
    right_on: Hashable, K: int, *, lsuffix: str = '', rsuffix: str = '', score_suffix: str = '',
    keep_index: bool = False, quote: Literal[True], **settings: Unpack[SearchSettings]
) -> Quote: ...
@overload
async def asem_sim_join(
    frame: AsyncFrames, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int,
    *, lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False, to: None = None,
    **settings: Unpack[SearchSettings]
) -> AsyncBatches: ...
@overload
async def asem_sim_join(
    frame: AsyncFrames, right: pd.DataFrame | ForeignFrame | pd.Series, left_on: Hashable, right_on: Hashable, K: int,
    *, lsuffix: str = '', rsuffix: str = '', score_suffix: str = '', keep_index: bool = False,
    to: str | os.PathLike[str], if_exists: IfExists = 'error', **settings: Unpack[SearchSettings]
) -> Path: ...
