"""Ask questions one by one, and see what each took."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tag_bench.answers.databases import Databases
from tag_bench.answers.methods import Method
from tag_bench.answers.questions import Question
from tag_bench.answers.records import Record
from tagframe.lm import about, total_usage


def ask_all(method: Method, questions: Sequence[Question], databases: Databases) -> Iterator[Record]:
    """The record of each question, in order; a question that fails is a record with its error.

    With ``lm="replay:STORE"`` all questions are gone through, so that what each lacks is noted for one export.
    """
    for question in questions:
        if missing := databases.missing(question):
            yield Record.of(question, "not_run", missing)
            continue
        databases.corpus(question.database)  # opened beforehand: the paper's time is that of a question
        before, began = total_usage(), time.perf_counter()
        try:
            with warnings.catch_warnings(), about(question.text):
                warnings.simplefilter("ignore")  # rows without a partner are counted by the pipelines that mind
                values, text = method(question, databases)
            record = Record.of(question, "run").answered(question, values, text)
        except Exception as error:
            record = Record.of(question, "error", f"{type(error).__name__}: {error}")
        seconds, after = time.perf_counter() - began, total_usage()
        asked = after.rows - before.rows
        yield replace(
            record,
            seconds=round(seconds, 4),
            calls=asked - (after.deduplicated - before.deduplicated),
            tokens=after.tokens_in + after.tokens_out - before.tokens_in - before.tokens_out,
            rows_asked=asked,
        )
