"""Cells taken for something else: numbers and days in texts, whole numbers that are divided, missing values."""

from __future__ import annotations

import re

from sqlglot import exp

from tagframe.answer.alternatives import NUMBER, Doubt
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.sql_tree import conjuncts, is_aggregate, parsed
from tagframe.corpus import ColumnProfile
from tagframe.engines.sql_reader import ReadStatement

_DAY = re.compile(r"(\d\d)([/.])(\d\d)\2\d{4}")
_NAMED_DAY = re.compile(r"[A-Z][a-z]{2,8} \d\d?, \d{4}")
_ISO = re.compile(r"\d{4}-\d\d(-\d\d)?")
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
_ORDERS = exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between
_OF_DAYS = frozenset("strftime date datetime julianday max min".split())
"""Functions that take days as ISO 8601 writes them."""
_NUMBER_OF = "CASE WHEN trim(c, ' 0123456789.-') = '' AND c <> '' THEN CAST(c AS REAL) END"
_DAY_FIRST = "substr(c, 7, 4) || '-' || substr(c, 4, 2) || '-' || substr(c, 1, 2)"
_MONTH_FIRST = "substr(c, 7, 4) || '-' || substr(c, 1, 2) || '-' || substr(c, 4, 2)"
_BY_NAME = (
    "substr(c, length(c) - 3) || '-' || substr('01  02  03  04  05  06  07  08  09  10  11  12', "
    "instr('jan feb mar apr may jun jul aug sep oct nov dec', lower(substr(c, 1, 3))), 2) || '-' || "
    "substr('0' || substr(c, instr(c, ' ') + 1), instr(c, ',') - instr(c, ' ') - 1, 2)"
)
"""Of a day such as "March 5, 2024"."""


def cells(subject: Subject) -> Found:
    """The statement with cells taken for what they are."""
    for rule in (_brackets, _whole_numbers, _missing, _unequal, _forms):
        new = subject.read()
        for doubt in [*rule(subject, new)][:1]:
            yield Doubt(doubt.reason, doubt.facts, subject.sql(new.tree))


def _whole_numbers(subject: Subject, new: ReadStatement) -> Found:
    """Divisions, which engines may cut to whole numbers; those by a constant may be meant so, as decades are."""
    for node in [one for one in new.tree.find_all(exp.Div) if not isinstance(one.right.unnest(), exp.Literal)]:
        node.set("this", exp.Paren(this=node.left * exp.Literal.number("1.0")))
        yield Doubt("value", "whole numbers are divided to a whole number; with decimals, ")


def _brackets(subject: Subject, new: ReadStatement) -> Found:
    """An OR beside an AND without brackets, whose last test may be meant for the OR alone, as it binds weaker."""
    for whole in [one for one in new.tree.find_all(exp.Or) if isinstance(one.parent, exp.Where)]:
        first, *rest = whole.flatten(unnest=False)
        *others, last = (first, *rest)
        ends = [(first, rest, -1), (last, others, 0)]
        for both, either, at in [one for one in ends if isinstance(one[0], exp.And)]:
            tests = conjuncts(both)
            near = tests.pop(at)
            columns = {column.sql() for test in tests for column in test.find_all(exp.Column)}
            if columns.isdisjoint(column.sql() for test in either for column in test.find_all(exp.Column)):
                whole.replace(exp.and_(*tests, exp.or_(near, *either)))
                yield Doubt("value", "AND binds its tests before OR does; with the OR in brackets, ")
                break


def _missing(subject: Subject, new: ReadStatement) -> Found:
    """NOT IN with a NULL in its list, which no value passes; columns that are added up or averaged, without a value."""
    for test in [one.this for one in new.tree.find_all(exp.Not) if isinstance(one.this, exp.In)]:
        inner = test.args["query"].unnest() if test.args.get("query") else None
        if isinstance(inner, exp.Select) and len(inner.expressions) == 1:
            inner.where(inner.expressions[0].unalias().is_(exp.null()).not_(), copy=False)
            yield Doubt("null", "no value passes NOT IN with a NULL in its list; without it, ")
    for node, block in [(node, block) for node, block in new.columns if node.find_ancestor(exp.Anonymous)]:
        call, source = node.find_ancestor(exp.Anonymous), new.source(node, block)
        calls = "" if call is None else call.name.lower()
        column = None if source is None else subject.profile(source.table).column(source.column)
        is_half = column is not None and (column.nulls or 0) * 2 >= (column.rows or 1)
        is_average = calls == "avg" and node.parent is call and is_half
        if is_average or (calls in ("sum", "total", "avg") and isinstance(node.parent, exp.Add)):
            node.replace(_with(node, "coalesce(c, 0)"))
            yield Doubt("null", f"rows without a value in {node.name} are left out; as 0, ")


def _unequal(subject: Subject, new: ReadStatement) -> Found:
    """Tests for another value than some, which cells without a value do not pass: with these."""
    for node, block in list(new.columns):
        source, test = new.source(node, block), node.parent
        is_denied = isinstance(test, exp.EQ | exp.In | exp.Like) and isinstance(test.parent, exp.Not)
        whole = test.parent if test is not None and is_denied else test
        if source is None or whole is None or not whole.find(exp.Literal) or not whole.find_ancestor(exp.Where):
            continue
        if isinstance(whole, exp.NEQ | exp.Not) and subject.profile(source.table).column(source.column).nulls:
            whole.replace(exp.Paren(this=exp.or_(whole.copy(), node.copy().is_(exp.null()))))
            yield Doubt("null", f"rows without a value in {node.name} do not pass {whole.sql()}; with them, ")


def _forms(subject: Subject, new: ReadStatement) -> Found:
    """Numbers and days in texts that are compared, ordered or computed; and texts in another form than that of the
    cells with which they are compared."""
    for node, block in list(new.columns):
        source = new.source(node, block)
        holder: exp.Expr = node
        while isinstance(holder.parent, exp.Cast | exp.Paren):
            holder = holder.parent
        if source is None or (use := holder.parent) is None or not isinstance(block, exp.Select):
            continue
        column = subject.profile(source.table).column(source.column)
        calls = use.name.lower() if isinstance(use, exp.Anonymous) else ""
        literals = [] if calls else [one for one in use.iter_expressions() if isinstance(one, exp.Literal)]
        for literal in literals:
            if text := _as_written(literal, column):
                literal.replace(exp.Literal(this=text, is_string=column.family == "text"))
                yield Doubt("value", f"{source.column} has cells such as {column.samples[0]!r}; with {text}, ")
        is_ranking = isinstance(use, exp.Ordered) and block.args.get("limit") is not None
        is_order = is_ranking or calls in _OF_DAYS or (bool(literals) and isinstance(use, _ORDERS))
        is_number = bool(literals) and not any(one.is_string for one in literals)
        if _has_numbers(column) and (is_ranking or is_number or (is_aggregate(use) and calls != "count")):
            what, sql = "numbers", _NUMBER_OF
        elif is_order and (sql := _day_of(column)):
            what = "days"
            for literal in [one for one in literals if (_NAMED_DAY if sql == _BY_NAME else _DAY).fullmatch(one.this)]:
                literal.replace(_with(literal, sql))
        else:
            continue
        other = _with(node, sql)
        node.replace(other)
        if is_ranking:  # what is none comes last
            block.where(other.copy().is_(exp.null()).not_(), copy=False)
        elif what == "days" and calls in ("max", "min"):  # of a day and the cell, the cell
            other.replace(_with(node, f"{sql} || c"))
            use.replace(_with(use, "substr(c, 11)"))
        yield Doubt("value", f"{source.column} has {what} in texts; as {what}, ")


def _with(node: exp.Expr, sql: str) -> exp.Expr:
    """An expression of SQL with a node in place of its column."""
    tree: exp.Expr = parsed(f"SELECT {sql}").expressions[0]
    for column in list(tree.find_all(exp.Column)):
        column.replace(node.copy())
    return tree


def _has_numbers(column: ColumnProfile) -> bool:
    known = [bool(NUMBER.fullmatch(cell.strip())) for cell in column.samples]
    return column.family == "text" and len(known) > 1 and sum(known) * 2 >= len(known)


def _day_of(column: ColumnProfile) -> str:
    """SQL of the day of a cell as ISO 8601 writes it; "" if cells are something else, or the order is not known."""
    if column.family == "text" and column.samples and all(map(_NAMED_DAY.fullmatch, column.samples)):
        return _BY_NAME
    days = [_DAY.fullmatch(cell) for cell in (*column.samples, column.minimum or "", column.maximum or "")]
    first, second = (max((int(day[part]) for day in days if day), default=0) for part in (1, 3))
    if column.family != "text" or not all(days) or (first > 12) == (second > 12):
        return ""
    return _DAY_FIRST if first > 12 else _MONTH_FIRST


def _as_written(literal: exp.Expr, column: ColumnProfile) -> str:
    """A literal as the cells of a column are written: days without hyphens, or without a day; "" if it is."""
    text, sizes = str(literal.this), {len(cell) if _ISO.fullmatch(cell) else 0 for cell in column.samples}
    are_days = column.family == "integer" and all(
        len(end) == 8 and _YEAR.match(end) for end in (column.minimum or "", column.maximum or "")
    )
    if literal.is_string and _ISO.fullmatch(text):
        if are_days and len(text) == 10:
            return text.replace("-", "")
        return text[: max(sizes)] if column.family == "text" and len(sizes) == 1 and max(sizes) < len(text) else ""
    is_last = isinstance(literal.parent, exp.GT | exp.LTE) or literal.arg_key == "high"
    is_year = are_days and isinstance(literal.parent, _ORDERS) and _YEAR.fullmatch(text)
    return f"{text}{'1231' if is_last else '0101'}" if is_year else ""
