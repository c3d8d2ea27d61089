"""Values that no cell has, or others spell otherwise; missing ones; totals."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from sqlglot import exp

from tagframe.answer.alternatives import Doubt, blocks, has_values, same_rows
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.sql_tree import column_of, one_row, table_of
from tagframe.corpus import TableProfile
from tagframe.corpus.totals import TotalRows
from tagframe.engines.sql_reader import ReadStatement, SourceColumn, TextTest
from tagframe.retrieval.cell_literals import cell_literals

_ALIKE = 0.8
"""The least share of equal letters of a text that is taken for another spelling of one."""
_SHORT = 3
"""A text of more letters is another name of the only cell that has it inside."""
_MOST_CELLS = 5_000
_MOST_TESTS = 12


def values(subject: Subject, *, optional: bool = False) -> Found:
    """Texts that a column is compared with, with ``optional`` also in an OR, and that no cell has: the nearest cell."""
    found = subject.statement.compared_columns(optional=True)[:_MOST_TESTS]
    single = [one for one in found if optional or not one[1].is_optional]
    nearest = dict[str, str]()
    spelled = [*_spelled(subject, found, nearest)]
    yield from spelled
    for column, test in single:
        name = subject.names.get(column.table)
        if name is None or (is_there := _has_rows(subject, name, test.test)) is None:
            return  # the table is too large to look, or gone
        words = f"no cell of {name}.{column.column} has the value {', '.join(map(repr, test.texts[:3]))}"
        if is_there:
            yield from _spelled_otherwise(subject, column, name, test)
        elif not isinstance(test.test, exp.NEQ) and not isinstance(test.test.parent, exp.Not):
            yield from _with_test(subject, test, None, f"{words}; without this condition, ")
        elif _nearest(subject, column, name, test.texts[0]) is None:
            yield Doubt("value", f"{words}; without this condition, the rows are the same")
    if has_values(subject.rows):
        return
    for one in spelled if any(near.strip() != text for text, near in nearest.items()) else []:
        other = subject.comparison.run(one.statement)
        if other is not None and same_rows(subject.rows, other):
            yield Doubt("value", f"{one.facts}the rows are the same")  # misspelled, for sure
    for column, test in [one for one in single if isinstance(one[1].test, exp.EQ)]:
        yield from _in_another_column(subject, column, test)


def _spelled(subject: Subject, found: Sequence[tuple[SourceColumn, TextTest]], nearest: dict[str, str]) -> Found:
    """Texts that no cell has, and the nearest cells, if these are not among the texts; ``nearest`` gets them."""
    new, facts = subject.read(), list[str]()
    texts = {text for _, test in found for text in test.texts}
    for column, test in found:
        name = subject.names.get(column.table, "")
        for text in test.texts if name else ():
            literal = exp.Literal.string(text)
            alone = test.test if len(test.texts) == 1 else exp.EQ(this=column_of(column.column), expression=literal)
            near = _nearest(subject, column, name, text) if _has_rows(subject, name, alone) is False else None
            tests = [one.test for one in new.text_tests if one.test == test.test] if near not in texts else []
            for node in [node for one in tests if near for node in one.find_all(exp.Literal) if node == literal]:
                node.replace(exp.Literal.string(near))
            if near and tests:
                nearest[text] = near
                facts.append(f"no cell of {name}.{column.column} has the value {text!r}; the nearest is {near!r}")
    if facts:
        yield Doubt("value", f"{'; '.join(facts)}: with {'it' if len(facts) == 1 else 'them'}, ", subject.sql(new.tree))


def _with_test(subject: Subject, test: TextTest, other: exp.Expr | None, words: str) -> Found:
    """The statement with another comparison, or without it."""
    new = subject.read()
    for one in [one for one in new.text_tests if one.test.sql() == test.test.sql()]:
        whole = one.test
        while other is None and isinstance(whole.parent, exp.Not | exp.Paren):
            whole = whole.parent
        whole.replace(exp.true() if other is None else other.copy())
    yield Doubt("value", words, subject.sql(new.tree))


def _in_another_column(subject: Subject, column: SourceColumn, test: TextTest) -> Found:
    """A text that a cell of another column has, where the statement finds nothing: compared with that one."""
    for id in subject.execution.tables:
        literals = cell_literals(subject.reader.corpus, subject.profile(id))
        for other in [one.name for one in subject.profile(id).for_prompts if one.family == "text"]:
            name, stored, new = subject.names[id], literals.get(other), subject.read()
            alone = exp.EQ(this=column_of(other), expression=exp.Literal.string(test.texts[0]))
            is_known = stored is not None and stored.complete and test.texts[0] not in stored.texts
            if (id, other) == column[:2] or is_known or not _has_rows(subject, name, alone):
                continue
            for one in [one for one in new.text_tests if one.test == test.test]:
                tables = new.known_tables(one.block or new.tree)
                for alias in [alias for alias, table in tables if table.id == id][:1]:
                    one.test.replace(exp.EQ(this=column_of(other, alias), expression=alone.expression))
            rows = subject.run(new.tree)
            if rows is not None and has_values(rows):
                words = f"{test.texts[0]!r} is a cell of {name}.{other} too; with that column, "
                yield Doubt("column", words, subject.sql(new.tree))


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
    longer = longer or [one for one in by_letters if len(wanted) > _SHORT and wanted in one]
    near = longer[:1] if len(longer) == 1 else difflib.get_close_matches(wanted, by_letters, 1, _ALIKE)
    return by_letters[near[0]] if near else None


def totals(subject: Subject) -> Found:
    """Rows that are the total of the others, among those that are added up, counted or ranked."""
    statement = subject.read()
    calls = [(block, *call) for block in blocks(statement) for call in _whole_column(block)]
    for block, verb, cells in calls[:1]:
        source = statement.source(cells, block, follows=True)
        tree = block if source is None else next(one for one in blocks(statement) if id(one) == source.block)
        tables = statement.known_tables(tree)
        if len(tables) == 1 and isinstance(tree, exp.Select) and not tree.args.get("joins"):
            yield from _without_totals(subject, statement, tree, verb, source)


def _without_totals(
    subject: Subject, statement: ReadStatement, tree: exp.Select, verb: str, source: SourceColumn | None
) -> Found:
    """The statement whose block reads no rows of totals, unless it tests which rows these are."""
    ((alias, table),) = statement.known_tables(tree)
    profile = subject.profile(table.id)
    tested = {column.column for column, _ in statement.compared_columns()}
    clauses = ("where", "group") if tree is statement.tree else ("where",)
    parts = [part for part in map(tree.args.get, clauses) if part is not None]
    tested |= {column.name for part in parts for column in part.find_all(exp.Column)}
    if verb == "counts":
        own = [one for one in profile.totals if one.checked]
    else:
        is_sum, name = verb == "adds up", "" if source is None else source.column
        own = [one for one in profile.totals if name in one.checked or (is_sum and not one.checked)]
    if own:
        own = [one for one in own if one.column not in tested]
        tree.where(*(_is_no_total(one, profile, alias) for one in own), copy=False)
        if own and (tested.isdisjoint(one.column for one in profile.totals) or _is_as_long(subject, statement.tree)):
            words = f"it {verb} {' and '.join(map(str, own))} too; without, "
            yield Doubt("total", words, subject.sql(statement.tree))


def _whole_column(tree: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """What a block computes of all of its rows: a verb, and the cells; sums first."""
    calls = [node for item in tree.expressions for node in item.find_all(exp.Anonymous) if node.expressions]
    for verb, names in (("adds up", ("sum", "total", "avg")), ("ranks", ("max", "min")), ("counts", ("count",))):
        yield from ((verb, call.expressions[0]) for call in calls if call.name.lower() in names)
    order = tree.args.get("order")
    if order is not None and tree.args.get("limit") is not None:
        yield "ranks", order.expressions[0].this


def _is_as_long(subject: Subject, tree: exp.Expr) -> bool:
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
