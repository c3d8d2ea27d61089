"""The client's part: it asks about distinct rows, once, and keeps the answers."""

from __future__ import annotations

import contextvars
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tagframe.dask.partition_tasks import Answers, Line, PromptColumns
from tagframe.errors import InvalidArgument
from tagframe.operators.cells import columns_known

Function = Callable[..., pd.DataFrame]


class Asking:
    """An operator behind a lazy frame; it stays in the client, and is never sent to a worker.

    Attributes:
        meta: a partition of the result without rows.
        prompt_columns: the columns of a row that the client needs, and their names in its questions.
    """

    def __init__(
        self,
        function: Function,
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        *,
        lm: Any,
        meta: pd.DataFrame,
        prompt_columns: PromptColumns,
    ) -> None:
        self._function, self._arguments, self._options = function, tuple(arguments), dict(options)
        self._lm = lm
        self.meta, self.prompt_columns = meta, prompt_columns
        self._own = PromptColumns(
            tuple(range(len(prompt_columns.positions))), prompt_columns.names
        )  # of a frame of these columns alone
        # Later questions use the settings of the call.
        self._context = contextvars.copy_context()
        self._context.run(columns_known.set, True)
        self._name = uuid.uuid4().hex

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "tagframe", self._name

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "only the client, which has the model, the budget and the store, can compute an operator over partitions; "
            "it cannot be sent to another process: compute() it here, or persist() it first"
        )

    def run(self, frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
        """The operator's result for a frame."""
        given = {**self._options, **options}
        return self._context.run(self._function, frame, *self._arguments, lm=self._lm, **given)


class RowAsking(Asking):
    """An operator that looks at one row at a time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lock = threading.Lock()
        self._known: dict[Line, int] = {}
        self._found: list[pd.DataFrame] = []

    def answers(self, distinct: pd.DataFrame) -> Answers:
        """The answers to rows of the shown columns; rows that were asked before are not asked again."""
        with self._lock:
            _, firsts, lines = self._own.lines(distinct)
            new = [at for at in np.argsort(firsts) if lines[at] not in self._known]
            if new or not self._found:
                self._ask(distinct.iloc[firsts[new]].reset_index(drop=True), [lines[at] for at in new])
            added = pd.concat(self._found, ignore_index=True) if len(self._found) > 1 else self._found[0]
            self._found = [added]
            return Answers(dict(self._known), *self._settled(added))

    def _ask(self, rows: pd.DataFrame, lines: Sequence[Line]) -> None:
        keeps = {"on_error": "raise" if self._options.get("on_error", "raise") == "raise" else "keep"}
        whole = {"return_all": True} if "return_all" in self._options else {}
        result = self.run(rows, **keeps, **whole)  # a row for each of these
        start = sum(map(len, self._found))
        self._found.append(result.drop(columns=list(rows.columns)))
        self._known.update((line, start + number) for number, line in enumerate(lines))

    def _settled(self, added: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
        """The columns to add, and which rows stay."""
        stays = np.ones(len(added), dtype=bool)
        suffix = str(self._options.get("suffix", "")).strip("_")
        failed = added[error].notna().to_numpy() if (error := f"{suffix}_error") in added else ~stays
        policy = self._options.get("on_error", "raise")
        if self._options.get("return_all") is False:
            stays = added[f"{suffix}_label"].fillna(False).to_numpy(dtype=bool)
            if policy == "keep":
                stays = stays | failed
        if policy == "drop":
            stays = stays & ~failed
        return added[[name for name in self.meta.columns if name in added.columns]], stays
