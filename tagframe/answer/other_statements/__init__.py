"""The statements that differ from an answer's in one decision, a module a kind."""

from __future__ import annotations

from contextlib import suppress

from sqlglot.errors import SqlglotError

from tagframe.answer.alternatives import Doubt
from tagframe.answer.lm_sql import has_functions
from tagframe.answer.other_statements.cells import cells
from tagframe.answer.other_statements.columns import (
    columns_elsewhere,
    joins,
    twins,
    unjoined,
    unneeded_tables,
    unread_tables,
    unused_columns,
)  # fmt: skip
from tagframe.answer.other_statements.limits import limits
from tagframe.answer.other_statements.matches import counted_sets, matches, of_two_values, united
from tagframe.answer.other_statements.repeats import bare_columns, repeated_rows, repeated_values, rows_again
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.other_statements.values import totals, values
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL


def alternatives(subject: Subject) -> Found:
    """All kinds, the worst mistakes first."""
    for kind in (
        unjoined, repeated_rows, repeated_values, counted_sets, united, rows_again, bare_columns, written_readings,
        matches, of_two_values, cells, values, unneeded_tables, unread_tables, unused_columns, twins, joins, totals,
        limits, columns_elsewhere,  # this looks into other tables, and takes its time
    ):  # fmt: skip
        with suppress(CorpusError, SQLFailed, UnsafeSQL, SqlglotError):
            yield from kind(subject)


def written_readings(subject: Subject) -> Found:
    """The other readings that ``syn`` has written statements for."""
    for words, sql in subject.execution.query.others:
        paid = "; that statement asks a model, and was not run"
        yield Doubt("reading", f"it can be read otherwise, {words}{paid if has_functions(sql) else ': '}", sql)
