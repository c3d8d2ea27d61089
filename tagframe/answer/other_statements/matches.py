"""Rows without a match, that a join drops or keeps; and rows with another match, too."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tagframe.answer.alternatives import Doubt, difference, same_rows
from tagframe.answer.other_statements.subject import Found, Subject
from tagframe.answer.sql_tree import aggregates, conjuncts, is_aggregate, is_grouped, own_nodes, without

_ALL = frozenset({"each", "every", "all"})
_DIFFERENT = frozenset({"differ", "different", "distinct", "uniqu", "unique"})
_NONE = frozenset({"zero", "0", "none", "no", "not", "without", "even", "includ", "per"}) | _ALL


def matches(subject: Subject) -> Found:
    """Rows without a match that a join drops where all are wanted, or keeps where none are spoken of."""
    tree = subject.select
    if tree is None or _is_cut(tree):
        return
    joins = tree.args.get("joins") or []
    inner = [position for position, join in enumerate(joins) if _is_inner(join)]
    if inner and (not subject.question or subject.words & _ALL):
        yield from _with_unmatched(subject, tree, inner)
    left = [join for join in joins if join.side == "LEFT" and join.args.get("on") is not None]
    if left and subject.words & _ALL:
        yield from _with_tests_in_on(subject, tree)
    is_tested = any(isinstance(node.parent, exp.Is) for node in own_nodes(tree) if isinstance(node, exp.Null))
    if left and not is_tested and subject.question and not subject.words & _NONE:
        other = tree.copy()
        for join in other.args["joins"]:
            join.set("side", None if join.side == "LEFT" else join.side)
        words = f"rows of {tree.args['from_'].this.name} without a match are there; without them, "
        yield Doubt("match", words, subject.sql(other))


def _with_unmatched(subject: Subject, tree: exp.Select, inner: Sequence[int]) -> Found:
    """The first table's rows without a match, and those of the table of GROUP BY where that is the last one."""
    last = tree.args["joins"][-1].this
    ways = [("LEFT", inner, tree.args["from_"].this)]
    group = tree.args.get("group")
    by = set() if group is None else {key.table for key in group.find_all(exp.Column)}
    if by == {last.alias_or_name} and inner[-1] == len(tree.args["joins"]) - 1:
        ways.append(("RIGHT", inner[-1:], last))
    used = {node.table for node in own_nodes(without(tree, "joins")) if isinstance(node, exp.Column)}
    visible = {node.table for item in tree.expressions for node in item.find_all(exp.Column)}
    for side, positions, rest in ways:
        if used and used <= {rest.alias_or_name} and not _star_counts(tree):
            continue  # the join is there for the match alone
        if rest.alias_or_name not in by | visible:
            continue  # nothing would be shown of the rows without a match
        other = tree.copy()
        for position in positions:
            other.args["joins"][position].set("kind", None)
            other.args["joins"][position].set("side", side)
        on = tree.args["joins"][positions[-1]].args.get("on")
        matched = (
            [] if on is None else [one for one in on.find_all(exp.Column) if one.table not in ("", rest.alias_or_name)]
        )
        for node in _star_counts(other) if matched else []:
            node.set("expressions", [matched[0].copy()])
        yield Doubt("match", f"rows of {rest.name} without a match are left out; with them, ", subject.sql(other))


def _with_tests_in_on(subject: Subject, tree: exp.Select) -> Found:
    """Tests of WHERE that leave rows without a match out, though the join keeps them: as conditions of a match."""
    other = tree.copy()
    joins = {join.alias_or_name: join for join in other.args["joins"] if join.side == "LEFT" and join.args.get("on")}
    for test in conjuncts(other.args.get("where")):
        tables = {column.table for column in test.find_all(exp.Column)}
        if len(tables) == 1 and tables <= {*joins} and not test.find(exp.Null):
            join = joins[tables.pop()]
            join.set("on", exp.and_(join.args["on"], test.copy(), copy=False))
            test.replace(exp.true())
            words = f"rows without a match are left out by {test.sql()}; as a condition of the match, "
            yield Doubt("match", words, subject.sql(other))


def of_two_values(subject: Subject) -> Found:
    """Lists of rows with one of two values: those with both."""
    tree = subject.select
    where = None if tree is None or tree.args.get("having") else tree.args.get("where")
    is_of_both = "both" in subject.words or ("and" in subject.words and not {"or", "either"} & subject.words)
    if tree is None or where is None or not is_of_both:
        return
    if any(aggregates(item) or item.is_star for item in tree.expressions):
        return
    for node in own_nodes(where):
        tests = _tests_of_two(node)
        sides = [without(tree, "order", "limit") for _ in tests]
        for side, test in zip(sides, tests, strict=True):
            for one in [one for one in own_nodes(side.args["where"]) if one == node]:
                one.replace(test.copy())
        sql = subject.sql(exp.intersect(*sides)) if tests else ""
        rows = subject.comparison.run(sql) if sql else None
        if rows is not None and len(rows) and not same_rows(rows, subject.rows.drop_duplicates()):
            words = f"with rows of {' and of '.join(test.sql() for test in tests)}, "
            yield Doubt("match", f"{words}{difference(subject.rows, rows)}", sql, rows)


def _tests_of_two(node: exp.Expr) -> list[exp.Expr]:
    """The tests of one value each, of a condition on two values of one column."""
    if isinstance(node, exp.In) and len(node.expressions) == 2:
        return [exp.EQ(this=node.this, expression=value) for value in node.expressions]
    sides = [node.left, node.right] if isinstance(node, exp.Or | exp.And) and node.left.this == node.right.this else []
    is_plain = all(isinstance(side, exp.EQ | exp.In) and isinstance(side.this, exp.Column) for side in sides)
    return sides if is_plain else []


def counted_sets(subject: Subject) -> Found:
    """Counts of values that a set operation compares with the values themselves: the values that it leaves, counted."""
    tree = subject.read().tree
    if not isinstance(tree, exp.SetOperation):
        return
    sides = [side for side in (tree.left, tree.right) if isinstance(side, exp.Select) and not side.args.get("group")]
    if [len(side.expressions) for side in sides] != [1, 1]:
        return
    (call, other), column = (side.expressions[0].unalias() for side in sides), sides[0].expressions[0].find(exp.Column)
    if is_aggregate(call) and call.name.lower() == "count" and column is not None and not aggregates(other):
        words = f"{call.sql()} is compared with values; of those that are left, "
        sides[0].set("expressions", [column.copy()])
        yield Doubt("repeated", words, subject.sql(exp.select("count(*)").from_(tree.subquery("counted"))))


def united(subject: Subject) -> Found:
    """Rows of a UNION that are counted or added up, where equal ones are one: all of them, or those that differ."""
    new, is_distinct = subject.read(), not subject.words.isdisjoint(_DIFFERENT)
    for node in [one for one in new.tree.find_all(exp.Union) if one.parent_select and is_grouped(one.parent_select)]:
        if bool(node.args.get("distinct")) != is_distinct:
            node.set("distinct", is_distinct)
            words = "UNION ALL keeps equal rows; each once" if is_distinct else "UNION leaves equal rows out; with them"
            yield Doubt("repeated", f"{words}, ", subject.sql(new.tree))


def _counts(tree: exp.Select) -> list[exp.Anonymous]:
    return [node for item in tree.expressions for node in item.find_all(exp.Anonymous) if node.name.lower() == "count"]


def _star_counts(tree: exp.Select) -> list[exp.Anonymous]:
    return [node for node in _counts(tree) if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)]


def _is_cut(tree: exp.Select) -> bool:
    """Whether groups or rows are left out by what they are compared with: HAVING, or LIMIT with ORDER BY."""
    is_ranking = tree.args.get("order") is not None and tree.args.get("limit") is not None
    return tree.args.get("having") is not None or is_ranking


def _is_inner(join: exp.Join) -> bool:
    has_test = join.args.get("on") is not None or join.args.get("using")
    return bool(has_test) and not join.side and (join.kind or "INNER") == "INNER" and not join.method
