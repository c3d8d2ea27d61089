"""Operators over frames that come in batches, for rows that are too many for memory.

In place of a frame every operator takes an iterator of frames, such as :func:`tagframe.read_batches` gives: operators
that look at one row at a time give an iterator of their results (``sem_filter``, ``sem_filters``, ``sem_map``,
``sem_score``, ``sem_extract``, and ``sem_join`` and ``sem_sim_join``, whose right side is a frame); those that look at
all rows give one frame (``sem_agg``, ``sem_topk``, ``sem_search``). With ``to=`` the results go to a folder of Parquet
files instead, and the call gives its path.

Rows that show the same are asked once in all batches: the response store has their answers, or, where none is set, one
that is removed at the end.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

import pandas as pd

from tagframe.errors import InvalidArgument, NotConfigured
from tagframe.lm import LM, get_lm
from tagframe.operators.groups import group_keys
from tagframe.operators.instruction import Instruction

if TYPE_CHECKING:
    import pyarrow as pa

    from tagframe.operators.operator import Operator

P = ParamSpec("P")


class OverBatches(Protocol[P]):
    """An operator's public function: a frame for a frame, or batches for batches."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> pd.DataFrame: ...

    @overload
    def __call__(self, frame: Iterable[pd.DataFrame], *args: Any, **kwargs: Any) -> Any: ...


class Batches(Iterator[pd.DataFrame]):
    """The results of an operator, one batch after the other, made as they are asked for."""

    def __init__(self, frames: Iterator[pd.DataFrame]) -> None:
        self._frames = frames
        # A generator sees the settings of whoever asks it for more; these are those of the call.
        self._context = contextvars.copy_context()

    def __next__(self) -> pd.DataFrame:
        return self._context.run(next, self._frames)

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "results that are made one batch after the other cannot be sent to another process: to= writes them to a "
            "folder, which tagframe.read_batches reads anywhere"
        )

    def close(self) -> None:
        """Ask for no more."""
        close = getattr(self._frames, "close", None)
        if close is not None:
            self._context.run(close)


def takes_batches(operator: Operator) -> Callable[[Callable[P, pd.DataFrame]], OverBatches[P]]:
    """Have an operator's public function take batches in place of its frame."""

    def decorate(function: Callable[P, pd.DataFrame]) -> OverBatches[P]:
        plain: Callable[..., pd.DataFrame] = function

        @functools.wraps(function)
        def call(frame: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(frame, pd.DataFrame | pd.Series) or not isinstance(frame, Iterator | list | tuple):
                if "to" in kwargs:
                    raise InvalidArgument("to= is for batches; write one frame by its own to_parquet")
                return plain(frame, *args, **kwargs)
            return _over(operator, plain, iter(frame), args, kwargs)

        return cast("OverBatches[P]", call)

    return decorate


def _over(
    operator: Operator, function: Callable[..., pd.DataFrame], frames: Iterator[Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    to = kwargs.pop("to", None)
    _refuse(operator.name, kwargs)
    whole = _WHOLE.get(operator.name)
    lm = None
    if operator.name != "sem_sim_join":
        settings = {name: kwargs.pop(name) for name in list(kwargs) if name in _SETTINGS}
        try:
            lm = get_lm(operator.name, **settings)
        except NotConfigured:
            if operator.name != "sem_search" or kwargs.get("n_rerank") is not None:
                raise
    checked = _checked(frames)
    if whole is not None:
        with _remembering(lm) as settings:
            frame = whole(function, checked, args, {**kwargs, **settings})
        return frame if to is None else write_parquet([frame], to)
    each = Batches(_each(function, checked, args, kwargs, lm))
    return each if to is None else write_parquet(each, to)


_SETTINGS = ("lm", "lm_for", "api_base", "api_key", "store", "budget", "concurrency", "rpm", "tpm", "context_window",
             "progress")  # fmt: skip


def _refuse(name: str, kwargs: dict[str, Any]) -> None:
    """What is true of all rows together cannot be done a batch at a time."""
    if name == "sem_filter" and (kwargs.get("limit") is not None or kwargs.get("cascade") is not None):
        raise InvalidArgument("limit= and cascade= of sem_filter look at all rows; batches do not give them together")
    if name == "sem_join" and kwargs.get("how", "inner") not in ("inner", "left"):
        raise InvalidArgument(
            f"how={kwargs['how']!r} keeps right rows that match in no batch, which one batch cannot tell; "
            "how='inner' and how='left' can be done"
        )


def _checked(frames: Iterator[Any]) -> Iterator[pd.DataFrame]:
    for number, frame in enumerate(frames):
        if not isinstance(frame, pd.DataFrame):
            raise InvalidArgument(f"batches are frames; number {number} is a {type(frame).__name__}")
        yield frame


def _each(
    function: Callable[..., pd.DataFrame], frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any], lm: Any
) -> Iterator[pd.DataFrame]:
    with _remembering(lm) as settings:
        for frame in frames:
            yield function(frame, *args, **kwargs, **settings)


@contextlib.contextmanager
def _remembering(lm: LM | None) -> Iterator[dict[str, Any]]:
    """The model as a keyword, with a store: its own, or one that is gone after the block."""
    if lm is None:
        yield {}
    elif not isinstance(lm, LM) or lm.replays or lm.settings().store is not None:
        yield {"lm": lm}
    else:
        with tempfile.TemporaryDirectory(prefix="tagframe-", ignore_cleanup_errors=True) as folder:
            yield {"lm": lm.using(store=str(Path(folder) / "answers.db"))}


# --- operators that look at all rows --------------------------------------------------------------------------------


def _aggregated(
    function: Callable[..., pd.DataFrame], frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]
) -> pd.DataFrame:
    """All rows, of the columns that the model is shown: it reads every one of them, so that they fit into memory."""
    parts = []
    for frame in frames:
        shown = Instruction.resolve(args[0], frame, all_cols=kwargs.get("all_cols", False)).columns
        labels = dict.fromkeys([*group_keys(kwargs.get("group_by")), *shown])
        parts.append(frame[[label for label in frame.columns if label in labels]])
    return function(_together(parts), *args, **kwargs)


def _best(
    function: Callable[..., pd.DataFrame], frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]
) -> pd.DataFrame:
    """The best of each batch, and of those the best: whoever is among the first K of all is so in its batch."""
    if kwargs.get("on_error") == "keep":
        raise InvalidArgument(
            'of batches on_error="keep" would rank rows without an answer again; "drop" leaves them out'
        )
    parts = [function(frame, *args, **kwargs) for frame in frames]
    return parts[0] if len(parts) == 1 else function(_together(parts), *args, **kwargs)


def _nearest(
    function: Callable[..., pd.DataFrame], frames: Iterator[pd.DataFrame], args: Any, kwargs: dict[str, Any]
) -> pd.DataFrame:
    """The nearest of each batch, by the scores of all; the model is asked at the end."""
    named = dict(zip(("col_name", "query", "K", "n_rerank"), args, strict=False))
    named.update({name: kwargs.pop(name) for name in ("col_name", "query", "K", "n_rerank") if name in kwargs})
    k, rerank = named.pop("K", None), named.pop("n_rerank", None)
    if k is None:
        return _best(function, frames, (), {**kwargs, **named, "n_rerank": rerank})
    shows, suffix = kwargs.pop("return_scores", False), kwargs.get("suffix", "_sim_score")
    found: list[pd.DataFrame] = []
    for frame in frames:
        found.append(function(frame, K=k, return_scores=True, **named, **kwargs))
        every = _together(found)
        scores = every[f"vec_scores{suffix}"]
        found = [every.iloc[(-scores).argsort(kind="stable").to_numpy()[:k]]]
    nearest = _together(found)
    nearest = nearest if shows else nearest.drop(columns=f"vec_scores{suffix}")
    return nearest if rerank is None else function(nearest, n_rerank=rerank, **named, **kwargs)


_WHOLE: dict[str, Callable[..., pd.DataFrame]] = {
    "sem_agg": _aggregated,
    "sem_topk": _best,
    "sem_search": _nearest,
}


def _together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if not frames:
        raise InvalidArgument("there is no batch, so there are no columns to show to the model")
    return frames[0] if len(frames) == 1 else pd.concat(frames)


# --- a folder of Parquet files --------------------------------------------------------------------------------------


def write_parquet(frames: Iterable[pd.DataFrame], to: str | os.PathLike[str]) -> Path:
    """Write frames as one table to a new folder, a file each; it is there once it is whole.

    An index without a name is not written.

    Raises:
        InvalidArgument: there is something of that name already, or a column that Parquet cannot hold.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    folder = Path(to).expanduser()
    if folder.exists():
        raise InvalidArgument(f"there is something at {folder} already: remove it, or give another to=")
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        schemas = []
        for number, frame in enumerate(frames):
            table = _as_arrow(frame)
            schemas.append(table.schema)
            if table.num_rows or not number:
                pq.write_table(table, _part(work, number))
        # What is null in all of one batch has no type there.
        whole = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
        for number, schema in enumerate(schemas):
            if not schema.equals(whole) and _part(work, number).exists():
                pq.write_table(_conformed(pq.read_table(_part(work, number), partitioning=None), whole),
                               _part(work, number))  # fmt: skip
        os.chmod(work, 0o777 & ~_umask())
        os.rename(work, folder)
    except pa.ArrowException as error:
        raise InvalidArgument(f"the results cannot be written as one Parquet table: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06}.parquet"


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    import pyarrow as pa

    named = any(name is not None for name in frame.index.names)
    plain = frame.reset_index() if named else frame.reset_index(drop=True)
    plain.attrs = {}
    plain.columns = [str(label) for label in plain.columns]
    return pa.Table.from_pandas(plain, preserve_index=False).replace_schema_metadata(None)


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
