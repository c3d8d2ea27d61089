"""The summary of a run of an operator: its rows by outcome, its calls and what they cost, and its failures."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from tagframe import results
from tagframe.config import too_many
from tagframe.errors import LMError, RowsFailed
from tagframe.lm import Usage

SUMMARY = ".summary.json"
"""The name of the file beside Parquet files; readers of such folders leave out hidden files."""


def summarised(result: Any, operator: str, usage: Usage, max_failed: float | None, counts: dict[str, Any]) -> Any:
    """The result of a run; if it is one of an operator, with its summary.

    What may be logged is put into ``counts``: all but the text of an error, which may quote an answer.

    Raises:
        RowsFailed: more rows have failed than may; the result is on it.
    """
    counts.update(calls=usage.sent, tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, dollars=usage.dollars)
    outcomes = results.recall(result, "outcomes") if isinstance(result, pd.DataFrame) else None
    if outcomes is None:
        return result
    errors = outcomes["error"].dropna()
    kinds = Counter(outcomes["outcome"])
    spent = {name: value for name, value in asdict(usage).items() if name not in ("prompts", "sent", "failed")}
    summary = {
        "operator": operator,
        "rows": len(outcomes),
        "failed": 0,
        "unsure": 0,
        **{str(kind).replace(" ", "_"): count for kind, count in kinds.items()},
        "calls": usage.sent,
        **spent,
        "first_error": None if errors.empty else errors.iloc[0],
    }
    results.remember(result, summary=summary)
    reason = None if errors.empty else errors.iloc[0].partition(":")[0]
    counts.update({name: value for name, value in summary.items() if name != "first_error"}, reason=reason)
    failed = summary["failed"]
    if too_many(failed, len(outcomes), max_failed):
        raise RowsFailed(
            f"{operator}: {failed:,} of {len(outcomes):,} rows have no answer, more than max_failed={max_failed:g} "
            f"allows; the first: {errors.iloc[0]}. The finished frame is on this error as .frame",
            result,
            [LMError(error) for error in errors],
        )
    return result


def together(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One summary of several runs of an operator, as over batches."""
    whole: dict[str, Any] = {}
    for one in summaries:
        for name, value in one.items():
            known = whole.get(name)
            if name not in whole:
                whole[name] = value
            elif name == "dollars":
                whole[name] = None if known is None or value is None else known + value
            elif isinstance(value, int | float):
                whole[name] = (known or 0) + value
            elif known is None:
                whole[name] = value
    return whole


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write a summary as JSON into a folder of Parquet files."""
    path = folder / SUMMARY
    path.write_text(json.dumps(summary, ensure_ascii=False, indent=2) + os.linesep, encoding="utf-8")
