"""Values that no cell has, or others spell otherwise; missing ones; totals."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from sqlglot import exp

from tagframe.answer.alternatives import Doubt, has_values
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.sql_tree import column_of, is_aggregate, one_row, table_of, without
from tagframe.corpus import TableProfile
from tagframe.corpus.totals import TotalRows
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
            continue
        words = f"no cell of {name}.{column.column} has the value {', '.join(map(repr, test.texts[:3]))}"
        near = _nearest(subject, column, name, test.texts[0]) if len(test.texts) == 1 else None
        excludes, spelled = isinstance(test.test, exp.NEQ) or isinstance(test.test.parent, exp.Not), list[Doubt]()
        if near is not None:
            other = exp.Paren(this=test.test.copy())
            for literal in [node for node in other.find_all(exp.Literal) if node.is_string]:
                literal.replace(exp.Literal.string(near))
            spelled = [*_with_test(subject, test, other.this, f"{words}; the nearest is {near!r}: with it, ")]
            yield from spelled
        if not excludes:
            yield from _with_test(subject, test, None, f"{words}; without this condition, ")
        elif near is None:
            yield Doubt("value", f"{words}; without this condition, the rows are the same")
        if spelled and not has_values(subject.rows) and subject.comparison.run(spelled[0].statement) is not None:
            yield Doubt("value", f"{spelled[0].facts}the rows are the same")  # misspelled, for sure


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
    (text,) = test.texts
    others = [cell for cell in stored.texts if cell != text and cell.strip().casefold() == text.strip().casefold()]
    if others:
        texts = [exp.Literal.string(cell) for cell in (text, *others)]
        words = f"{name}.{column.column} also has {', '.join(map(repr, others[:3]))}; with it, "
        yield from _with_test(subject, test, exp.In(this=test.test.this.copy(), expressions=texts), words)


def _has_rows(subject: Subject, name: str, test: exp.Expr) -> bool | None:
    alone = test.copy()
    for node in alone.find_all(exp.Column):
        node.set("table", None)
    rows = subject.run(one_row(table_of(name), alone))
    return None if rows is None else len(rows) > 0


def _nearest(subject: Subject, column: SourceColumn, name: str, text: str) -> str | None:
    """The cell of a column that is most like a text."""
    stored = cell_literals(subject.reader.corpus, subject.profile(column.table)).get(column.column)
    if stored is not None and stored.complete:
        cells = stored.texts
    else:
        cell = exp.alias_(column_of(column.column), "cell")
        select = exp.Select(expressions=[cell]).from_(table_of(name)).distinct()
        rows = subject.run(select.limit(_MOST_CELLS), _MOST_CELLS)
        cells = [] if rows is None else [one for one in rows.iloc[:, 0] if isinstance(one, str)]
    by_letters = {one.strip().casefold(): one for one in reversed(cells)}
    wanted = text.strip("%").strip().casefold()
    longer = [one for one in by_letters if len(wanted) > 2 and one.startswith(wanted)]
    near = longer[:1] if len(longer) == 1 else difflib.get_close_matches(wanted, by_letters, 1, _ALIKE)
    return by_letters[near[0]] if near else None


def nulls(subject: Subject) -> Found:
    """Averages of columns without a value in half of the rows or more: these as 0."""
    tree = subject.select
    if tree is None:
        return
    for call in [node for item in tree.expressions for node in item.find_all(exp.Anonymous)]:
        column = call.expressions[0] if len(call.expressions) == 1 else None
        if call.name.lower() != "avg" or not isinstance(column, exp.Column) or not is_aggregate(call):
            continue
        block = without(tree, "group", "having", "order", "limit", "offset", "distinct")
        counts = [exp.Anonymous(this="count", expressions=[what]) for what in (exp.Star(), column.copy())]
        block.set("expressions", [exp.alias_(count, f"n_{place}") for place, count in enumerate(counts)])
        numbers = subject.run(block, 1)
        rows, known = (0, 0) if numbers is None else numbers.iloc[0].tolist()
        if rows < 2 or known * 2 > rows:
            continue
        other = tree.copy()
        for node in [node for node in other.find_all(exp.Anonymous) if node == call]:
            zero = [column.copy(), exp.Literal.number(0)]
            node.set("expressions", [exp.Anonymous(this="coalesce", expressions=zero)])
        words = f"{rows - known:,} of {rows:,} rows have no value in {column.name}; as 0, "
        yield Doubt("null", words, subject.sql(other))


def totals(subject: Subject) -> Found:
    """Rows that are the total of the others, among those that are added up, counted or ranked."""
    tree = subject.select
    if tree is None or tree.args.get("joins"):
        return
    tables, calls = subject.statement.known_tables(tree), list(_whole_column(tree))
    if len(tables) != 1 or not calls:
        return
    ((alias, table),) = tables
    verb, cells = calls[0]
    source, profile = subject.statement.source(cells, tree), subject.profile(table.id)
    tested = {column.column for column, _ in subject.statement.compared_columns()}
    parts = [part for part in map(tree.args.get, ("where", "group")) if part is not None]
    tested |= {column.name for part in parts for column in part.find_all(exp.Column)}
    if verb == "counts":
        own = [one for one in profile.totals if one.checked]
    else:
        is_sum, name = verb == "adds up", "" if source is None else source.column
        own = [one for one in profile.totals if name in one.checked or (is_sum and not one.checked)]
    if own:
        own = [one for one in own if one.column not in tested]
        other = tree.copy().where(*(_is_no_total(one, profile, alias) for one in own))
        if own and (tested.isdisjoint(one.column for one in profile.totals) or _is_as_long(subject, other)):
            yield Doubt("total", f"it {verb} {' and '.join(map(str, own))} too; without, ", subject.sql(other))


def _whole_column(tree: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """What a block computes of all of its rows: a verb, and the cells; sums first."""
    calls = [node for item in tree.expressions for node in item.find_all(exp.Anonymous) if node.expressions]
    for verb, names in (("adds up", ("sum", "total", "avg")), ("ranks", ("max", "min")), ("counts", ("count",))):
        yield from ((verb, call.expressions[0]) for call in calls if call.name.lower() in names)
    order = tree.args.get("order")
    if order is not None and tree.args.get("limit") is not None:
        yield "ranks", order.expressions[0].this


def _is_as_long(subject: Subject, tree: exp.Select) -> bool:
    """Whether a block has as many rows as the answer, and a value: sums alone may meet a test, or be a group."""
    rows = subject.run(tree, len(subject.rows) + 1)
    return rows is not None and len(rows) == len(subject.rows) and has_values(rows)


def _is_no_total(total: TotalRows, profile: TableProfile, alias: str) -> exp.Expr:
    cell: exp.Expr = column_of(total.column, alias)
    is_null = cell.is_(exp.null())
    if total.value is None:
        return is_null.not_()
    is_text = profile.column(total.column).family == "text"
    trimmed = exp.Anonymous(this="trim", expressions=[cell.copy()]) if is_text else cell.copy()
    return exp.or_(is_null, exp.NEQ(this=trimmed, expression=exp.Literal.string(total.value)))
