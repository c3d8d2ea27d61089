"""Ask questions one by one, and record the cost of each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tag_bench.answers.databases import Databases
from tag_bench.answers.methods import Method
from tag_bench.answers.questions import Question
from tag_bench.answers.records import Record
from tagframe.config import current
from tagframe.errors import ReplayMiss
from tagframe.lm import about, total_usage


def ask_all(method: Method, questions: Sequence[Question], databases: Databases) -> Iterator[Record]:
    """The record of each question, in order; the record of a failed question has its error.

    With ``lm="replay:STORE"`` all questions are asked, so that one export contains all missing requests. Warnings are
    in the record.
    """
    replays = str(getattr(current().lm, "model", current().lm)).startswith("replay:")
    for question in questions:
        if missing := databases.missing(question):
            yield Record.of(question, "not_run", missing)
            continue
        databases.corpus(question.database)  # opened beforehand: the paper's time is that of a question
        before, began = total_usage(), time.perf_counter()
        try:
            with warnings.catch_warnings(record=True) as warned, about(question.text):
                warnings.simplefilter("always")
                answer = method(question, databases)
            record = Record.of(question, "run").answered(question, answer)
        except ReplayMiss as error:
            record = Record.of(question, "error", f"ReplayMiss: {error}", missing=True)
        except Exception as error:
            record = Record.of(question, "error", f"{type(error).__name__}: {error}")
        seconds, after = time.perf_counter() - began, total_usage()
        asked = after.rows - before.rows
        is_live = not replays and after.stored == before.stored
        tokens = after.tokens_in + after.tokens_out - before.tokens_in - before.tokens_out
        yield replace(
            record,
            seconds=round(seconds, 4) if is_live else None,
            calls=asked - (after.deduplicated - before.deduplicated),
            tokens=tokens if is_live else None,
            rows_asked=asked,
            warnings=list(dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in warned)),
        )
