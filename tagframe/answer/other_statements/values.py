"""Values that no cell has, or that others have in another spelling or column."""

from __future__ import annotations

import difflib

from sqlglot import exp

from tagframe.answer.alternatives import Doubt
from tagframe.answer.other_statements.subject import Found, Subject, stems
from tagframe.answer.sql_tree import column_of, one_row
from tagframe.engines.sql_reader import SourceColumn, TextTest
from tagframe.retrieval.cell_literals import cell_literals

_ALIKE = 0.8
"""The least share of equal letters of a text that is taken for another spelling of one."""
_MOST_CELLS = 5_000
_MOST_TESTS = 12


def values(subject: Subject, *, optional: bool = False) -> Found:
    """Texts that a column is compared with, with ``optional`` also in an OR, and that no cell has: the nearest cell."""
    for column, test in subject.statement.compared_columns(optional=optional)[:_MOST_TESTS]:
        name = subject.names.get(column.table)
        if name is None or (is_there := _has_rows(subject, name, test.test)) is None:
            return  # the table is too large to look, or gone
        if is_there:
            yield from _spelled_otherwise(subject, column, name, test)
            yield from _in_the_column_named(subject, column, name, test)
            continue
        words = f"no cell of {name}.{column.column} has the value {', '.join(map(repr, test.texts[:3]))}"
        near = _nearest(subject, column, name, test.texts[0]) if len(test.texts) == 1 else None
        if near is not None:
            other = exp.Paren(this=test.test.copy())
            for literal in [node for node in other.find_all(exp.Literal) if node.is_string]:
                literal.replace(exp.Literal.string(near))
            yield from _with_test(subject, test, other.this, f"{words}; the nearest is {near!r}: with it, ")
        yield from _with_test(subject, test, None, f"{words}; without this condition, ")


def _with_test(subject: Subject, test: TextTest, other: exp.Expr | None, words: str) -> Found:
    """The statement with another comparison, or without it."""
    new = subject.read()
    for one in [one for one in new.text_tests if one.test.sql() == test.test.sql()]:
        whole = one.test
        while other is None and isinstance(whole.parent, exp.Not | exp.Paren):
            whole = whole.parent
        whole.replace(exp.true() if other is None else other.copy())
    yield Doubt("value", words, subject.sql(new.tree))


def _spelled_otherwise(subject: Subject, column: SourceColumn, name: str, test: TextTest) -> Found:
    """A text that further cells have in other letters or with blanks around it: with these, too."""
    stored = cell_literals(subject.reader.corpus, subject.profile(column.table)).get(column.column)
    if stored is None or not isinstance(test.test, exp.EQ) or not isinstance(test.test.this, exp.Column):
        return
    cells = [value[1:-1].replace("''", "'") for value in stored.values if value.startswith("'")]
    (text,) = test.texts
    others = [cell for cell in cells if cell != text and cell.strip().casefold() == text.strip().casefold()]
    if others:
        texts = [exp.Literal.string(cell) for cell in (text, *others)]
        words = f"{name}.{column.column} also has {', '.join(map(repr, others[:3]))}; with it, "
        yield from _with_test(subject, test, exp.In(this=test.test.this.copy(), expressions=texts), words)


def _in_the_column_named(subject: Subject, column: SourceColumn, name: str, test: TextTest) -> Found:
    """A text that a column has which the question names, unlike the one that is compared: that one instead."""
    if {*stems(column.column)} & subject.words:
        return
    read, table = {one[:2] for one in subject.statement.read_columns()}, subject.profile(column.table)
    words_of_columns = subject.words - {*stems(table.name)}
    for other in table.for_prompts:
        is_named = {*stems(other.name)} <= words_of_columns and (column.table, other.name) not in read
        if other.family == "text" and is_named:
            new = exp.Paren(this=test.test.copy())
            for node in new.find_all(exp.Column):
                node.set("this", exp.to_identifier(other.name, quoted=True))
            if _has_rows(subject, name, new.this):
                words = f"{name}.{other.name} has {', '.join(map(repr, test.texts[:3]))}, too; with it, "
                yield from _with_test(subject, test, new.this, words)


def _has_rows(subject: Subject, name: str, test: exp.Expr) -> bool | None:
    alone = test.copy()
    for node in alone.find_all(exp.Column):
        node.set("table", None)
    rows = subject.run(one_row(exp.Table(this=exp.to_identifier(name, quoted=True)), alone))
    return None if rows is None else len(rows) > 0


def _nearest(subject: Subject, column: SourceColumn, name: str, text: str) -> str | None:
    """The cell of a column that is most like a text."""
    stored = cell_literals(subject.reader.corpus, subject.profile(column.table)).get(column.column)
    if stored is not None and stored.complete:
        cells = [value[1:-1].replace("''", "'") for value in stored.values if value.startswith("'")]
    else:
        cell = exp.alias_(column_of(column.column), "cell")
        select = exp.Select(expressions=[cell]).from_(exp.Table(this=exp.to_identifier(name, quoted=True))).distinct()
        rows = subject.run(select.limit(_MOST_CELLS), _MOST_CELLS)
        cells = [] if rows is None else [one for one in rows.iloc[:, 0] if isinstance(one, str)]
    by_letters = {one.strip().casefold(): one for one in reversed(cells)}
    wanted = text.strip("%").strip().casefold()
    longer = [one for one in by_letters if len(wanted) > 2 and one.startswith(wanted)]
    near = longer[:1] if len(longer) == 1 else difflib.get_close_matches(wanted, by_letters, 1, _ALIKE)
    return by_letters[near[0]] if near else None
