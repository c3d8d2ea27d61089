"""Rows, or values, that are counted several times."""

from __future__ import annotations

from sqlglot import exp

from tagframe.answer.alternatives import Doubt, blocks, same_rows
from tagframe.answer.generation import plain_rows
from tagframe.answer.other_statements.subject import KEY_WORDS, Found, Subject, stems
from tagframe.answer.row_counts import Block, adding_blocks, with_views
from tagframe.answer.sql_tree import aggregates, clause_keys, is_aggregate, is_grouped, own_nodes, without


def repeated_rows(subject: Subject) -> Found:
    """Joins by a part of a key: by all of it; and rows of a table that a join repeats: each counted once, also then."""
    sql = with_views(subject.execution.sql, subject.statement, subject.reader)
    for position in range(len(blocks(subject.read(sql)))):
        new = subject.read(sql)
        block = blocks(new)[position]
        if len(new.sources(block)) > 1 and (whole := Block(new, block, subject.reader).join_whole(subject.keys)):
            sql = subject.sql(new.tree)
            yield Doubt("key", f"tables are joined by a part of their key; by all of it, {whole}, ", sql)
            break
    statement = subject.read(sql)
    for position in adding_blocks(statement):
        for branch in ["", *Block(statement, blocks(statement)[position], subject.reader).branches()]:
            new = subject.read(sql)
            if tables := Block(new, blocks(new)[position], subject.reader).count_once(branch):
                words = f"a join repeats rows of {' and '.join(sorted(tables))}; with each of them counted once, "
                yield Doubt("repeated", words, subject.sql(new.tree))


def repeated_values(subject: Subject) -> Found:
    """Counts of a column that names what the question counts, and that several rows share: each value once."""
    statement, tree = subject.statement, subject.select
    if tree is None or tree.args.get("group") is not None:
        return
    for call in [node for item in tree.expressions for node in item.find_all(exp.Anonymous)]:
        source = statement.source(call.expressions[0], tree) if len(call.expressions) == 1 else None
        if source is None or call.name.lower() != "count" or isinstance(call.parent, exp.Window | exp.Filter):
            continue
        column = subject.profile(source.table).column(source.column)
        is_shared = bool(column.distinct) and (column.distinct or 0) < (column.rows or 0) - (column.nulls or 0)
        is_named = bool(({*stems(source.column)} - KEY_WORDS) & subject.words)
        if is_shared and (is_named or any(subject.referred(source.table, source.column))):
            other = tree.copy()
            for node in [node for node in other.find_all(exp.Anonymous) if node == call]:
                node.set("expressions", [exp.Distinct(expressions=node.expressions)])
            words = f"several rows have the same {source.column}; with each counted once, "
            yield Doubt("repeated", words, subject.sql(other))


def rows_again(subject: Subject) -> Found:
    """Lists from joins of which half of the rows or more repeat another one: each once."""
    tree, size = subject.select, len(subject.rows)
    if tree is None or is_grouped(tree) or any(map(tree.args.get, ("distinct", "limit"))) or not subject.question:
        return
    again = size - len({*plain_rows(subject.rows)})
    if again * 2 >= max(size, 1) and tree.args.get("joins"):
        once = without(tree, "order")
        once.set("distinct", exp.Distinct())
        yield Doubt("repeated", f"{again:,} of {size:,} rows repeat another one; with each once, ", subject.sql(once))


def bare_columns(subject: Subject) -> Found:
    """Columns that are neither computed nor those of the groups, so that any row of these gives them: each of them."""
    statement, tree = subject.statement, subject.select
    if tree is None or any(item.is_star for item in tree.expressions):
        return
    if tree.args.get("having") is not None:
        return  # of other groups it would mean something else
    group = tree.args.get("group")
    keys = clause_keys(tree, "group", lambda name: False) or []
    calls = {node.name.lower() for node in own_nodes(tree) if is_aggregate(node)}
    grouped = {statement.source(key, tree) for key in keys} - {None}
    items = [item.unalias() for item in tree.expressions if item.find(exp.Column) and not aggregates(item)]
    block = Block(statement, tree, subject.reader)
    items += [column for item in items for query in item.find_all(exp.Query) for column in block.outer_columns(query)]
    bare = [item for item in dict.fromkeys(items) if not item.find(exp.Query, exp.Window) and item not in keys]
    bare = [item for item in bare if statement.source(item, tree) not in grouped]
    whole = without(tree, "order", "limit")  # which row ties with another is no matter of groups
    runs = [subject.run(one) for one in (whole, whole.group_by(*bare))] if bare and group else []
    is_same = len(runs) == 2 and runs[0] is not None and runs[1] is not None and same_rows(runs[0], runs[1])
    if bare and (calls or group) and not {"max", "min"} & calls and not is_same:  # beside these, it is their row
        names = " and ".join(item.sql() for item in bare)
        yield Doubt("repeated", f"{names} is that of any one row; for each, ", subject.sql(tree.copy().group_by(*bare)))
