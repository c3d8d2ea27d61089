"""The workers' part: find the distinct rows of a partition, and join the answers back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tagframe.errors import PartitionChanged
from tagframe.operators.cells import encode_rows

Codes = npt.NDArray[np.int64]
Line = str | None


@dataclass(frozen=True)
class PromptColumns:
    """The columns of a row that the model is shown.

    Attributes:
        positions: of the columns.
        names: of the columns in prompts.
    """

    positions: tuple[int, ...]
    names: tuple[str, ...]

    def lines(self, frame: pd.DataFrame) -> tuple[Codes, Codes, list[Line]]:
        """A code for each row (equal rows have equal codes), and for each code the first row and its line.

        Each code's row is encoded once: of millions of rows, usually only few differ.
        """
        codes: Codes = np.zeros(len(frame), dtype=np.int64)
        for position in self.positions:
            own = _codes(frame, position)
            codes = pd.factorize(codes * (int(own.max(initial=0)) + 1) + own)[0].astype(np.int64)
        _, firsts = np.unique(codes, return_index=True)
        return codes, firsts.astype(np.int64), encode_rows(frame.iloc[firsts], self.positions, self.names)


def _codes(frame: pd.DataFrame, position: int) -> Codes:
    column = frame.iloc[:, position]
    mixed = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty")
    # Equal objects may be shown differently, such as 1 and True; others cannot be compared at all.
    values: Any = pd.Series(encode_rows(frame, [position], ["c"], blanks=True), dtype=object) if mixed else column
    codes: Codes = pd.factorize(values, use_na_sentinel=False)[0].astype(np.int64)
    return codes


def distinct_rows(frame: pd.DataFrame, prompt_columns: PromptColumns, columns: Sequence[int]) -> pd.DataFrame:
    """The first of each group of equal rows of a partition, with some columns."""
    _, firsts, _ = prompt_columns.lines(frame)
    return frame.iloc[np.sort(firsts), list(columns)].reset_index(drop=True)


@dataclass(frozen=True)
class Answers:
    """Answers to distinct rows.

    Attributes:
        rows: from the line of a row to the row of its answer.
        added: the columns that the operator adds, one row for each answer.
        stays: for each answer, whether rows with it stay.
    """

    rows: Mapping[Line, int]
    added: pd.DataFrame
    stays: npt.NDArray[np.bool_]

    def of(self, frame: pd.DataFrame, prompt_columns: PromptColumns) -> npt.NDArray[np.intp]:
        """The rows of the answers to the rows of a partition.

        Raises:
            PartitionChanged: a row has no answer.
        """
        codes, _, lines = prompt_columns.lines(frame)
        try:
            rows = np.array([self.rows[line] for line in lines], dtype=np.intp)
        except KeyError as error:
            raise PartitionChanged(
                "a partition has changed since its rows were read; it has a new row: "
                f"{str(error.args[0])[:200]}. If a source changes between reads, use ddf = ddf.persist()"
            ) from None
        return rows[codes] if len(codes) else np.empty(0, dtype=np.intp)


def with_answers(frame: pd.DataFrame, answers: Answers, prompt_columns: PromptColumns) -> pd.DataFrame:
    """A partition with the answers to its rows."""
    answered = answers.of(frame, prompt_columns)
    stay = np.flatnonzero(answers.stays[answered]) if len(answered) else answered
    result = frame.iloc[stay].copy()
    for name in answers.added.columns:
        result[name] = answers.added[name].array.take(answered[stay])
    return result
