"""Missing values and rows of totals among those that are added up."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tagframe.answer.alternatives import Doubt
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.sql_tree import column_of, is_aggregate, without
from tagframe.corpus import TableProfile
from tagframe.corpus.totals import TotalRows


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
    return rows is not None and len(rows) == len(subject.rows) and bool((rows.notna() & rows.ne(0)).any(axis=None))


def _is_no_total(total: TotalRows, profile: TableProfile, alias: str) -> exp.Expr:
    cell: exp.Expr = column_of(total.column, alias)
    is_null = cell.is_(exp.null())
    if total.value is None:
        return is_null.not_()
    is_text = profile.column(total.column).family == "text"
    trimmed = exp.Anonymous(this="trim", expressions=[cell.copy()]) if is_text else cell.copy()
    return exp.or_(is_null, exp.NEQ(this=trimmed, expression=exp.Literal.string(total.value)))
