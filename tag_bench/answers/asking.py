"""Ask a question, and record its cost."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, replace

from tag_bench.answers.databases import Databases
from tag_bench.answers.methods import Method
from tag_bench.answers.questions import Question
from tag_bench.answers.records import Record
from tag_bench.records import model_name
from tagframe.errors import ReplayMiss, SQLFailed, UnsafeSQL
from tagframe.lm import about, total_usage


def ask(method: Method, question: Question, databases: Databases, repaired: Method | None = None) -> Record:
    """The record of a question; that of a failed one has its error, so that all others are asked.

    If a statement cannot be run, the record also has that of ``repaired``, another method for the same question.
    Warnings are in the record.
    """
    if missing := databases.missing(question):
        return Record.of(question, "not_run", missing)
    databases.corpus(question.database)  # opened beforehand: the paper's time is that of a question
    record, is_invalid = _asked(method, question, databases)
    if is_invalid and repaired is not None:
        again, _ = _asked(repaired, question, databases)
        record = replace(record, repaired=asdict(again))
    return record


def _asked(method: Method, question: Question, databases: Databases) -> tuple[Record, bool]:
    """A question's record, and whether a statement could not be run."""
    is_invalid = False
    before, began = total_usage(), time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as warned, about(question.text):
            warnings.simplefilter("always")
            answer = method(question, databases)
        record = Record.of(question, "run").answered(question, answer)
    except ReplayMiss as error:
        record = Record.of(question, "error", f"ReplayMiss: {error}", missing=True)
    except Exception as error:
        is_invalid = isinstance(error, (SQLFailed, UnsafeSQL))
        record = Record.of(question, "error", f"{type(error).__name__}: {error}")
    seconds, after = time.perf_counter() - began, total_usage()
    asked = after.prompts - before.prompts
    is_live = after.stored == before.stored and not (model_name(None) or "").startswith("replay:")
    tokens = after.tokens_in + after.tokens_out - before.tokens_in - before.tokens_out
    made = replace(
        record,
        seconds=round(seconds, 4) if is_live else None,
        calls=asked - (after.deduplicated - before.deduplicated),
        tokens=tokens if is_live else None,
        rows_asked=asked,
        warnings=list(dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in warned)),
    )
    return made, is_invalid
