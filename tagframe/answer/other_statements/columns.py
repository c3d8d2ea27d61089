"""Other columns that the words of a question fit as well; other keys that join two tables, or fewer tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection

from sqlglot import exp

from tagframe.answer.alternatives import Doubt, blocks, has_values
from tagframe.answer.other_statements.subject import KEY_WORDS, Found, Subject, stems
from tagframe.answer.row_counts import Block, unique_keys
from tagframe.answer.sql_tree import ancestors, column_of, own_nodes, table_of
from tagframe.answer.unmet import is_known, stems_in
from tagframe.corpus import ColumnProfile, TableProfile
from tagframe.engines.sql_reader import ReadStatement, SourceColumn
from tagframe.keys import KeyPair
from tagframe.keys.inference import ACCEPTED
from tagframe.retrieval.words import stem, words_in

_YEARS = frozenset(map(str, range(1800, 2100)))
"""Numbers of a question that say when, whatever a column is called."""


def columns_elsewhere(subject: Subject) -> Found:
    """Columns that another table has, too, where the question names theirs no more than that one: from its row for each
    of theirs; where there may be several, in a condition on a value: those with such a row there."""
    names = subject.names
    for table, column in dict.fromkeys(one[:2] for one in subject.statement.read_columns()):
        for other in _beside(subject) if KEY_WORDS.isdisjoint(stems(column)[-1:]) else ():
            twin = next((one for one in other.for_prompts if one.name.casefold() == column.casefold()), None)
            if twin is None or subject.names_table(table, [other.id]):
                continue
            keys = [key.columns_of for key in subject.keys_of(table, other.id)]
            for key in keys[:1] if all(column not in key(table) for key in keys) else []:
                new = subject.read()
                _read_there(new, subject.profile(table), column, other, twin, key, names[other.id])
                rows = subject.run(new.tree)
                if rows is not None and has_values(rows):
                    yield Doubt("column", f"{names[other.id]} has {twin.name}, too; with it, ", subject.sql(new.tree))


def _read_there(
    new: ReadStatement,
    table: TableProfile,
    column: str,
    other: TableProfile,
    twin: ColumnProfile,
    key: Callable[[str], tuple[str, ...]],
    name: str,
) -> None:
    """Read a column of a table from another one, by a key."""
    pairs, families = [*zip(key(other.id), key(table.id), strict=True)], {table.column(column).family, twin.family}
    is_one = not (families == {"text"} and (column,) in unique_keys(table)) and all(
        key(one.id) in unique_keys(one) for one in (table, other)
    )
    is_one = is_one and (len(families) == 1 or families == {"integer", "real"})
    for node, block in new.columns:
        source, test = new.source(node, block), node.parent
        if source is None or test is None or source[:2] != (table.id, column):
            continue
        same = [column_of(theirs, "other").eq(column_of(own, source.alias)) for theirs, own in pairs]
        there = exp.select(column_of(twin.name, "other")).from_(table_of(name, "other")).where(*same)
        if is_one:
            cell: exp.Expr = there.subquery()
            is_item = test is block and node.arg_key == "expressions"
            node.replace(exp.alias_(cell, column, quoted=True) if is_item else cell)
        elif isinstance(test, exp.Predicate) and test.find(exp.Literal) and test.find_ancestor(exp.Where):
            inside = test.copy()
            for one in [one for one in inside.find_all(exp.Column) if one == node]:
                one.replace(column_of(twin.name, "other"))
            test.replace(exp.Exists(this=there.where(inside)))


def _beside(subject: Subject) -> list[TableProfile]:
    """The tables of its databases that the statement does not read."""
    used = subject.execution.tables
    homes = {subject.profile(id).database for id in used}
    others = [subject.profile(id) for id in subject.names if id not in used]
    return [one for one in others if one.database in homes]


def twins(subject: Subject) -> Found:
    """Other columns of numbers whose names begin or end with a word of the question, as that of the one read does; and
    columns of another number or year, if the question has none."""
    statement = subject.statement
    joined = {one[:2] for pair in statement.joined_columns() for one in pair}
    read = [one[:2] for one in statement.read_columns()]
    for table, column in dict.fromkeys(read):
        family, mine = subject.profile(table).column(column).family, stems(column)
        for twin in subject.profile(table).for_prompts:
            theirs, differ = stems(twin.name), {*mine} ^ {*stems(twin.name)}
            is_numbered = {*mine} & {*theirs} & subject.words and all(map(str.isdigit, differ))
            ends = [(mine[at], theirs[at]) for at in (0, -1) if mine and theirs]  # names of signs have no words
            heads = {one for one, other in ends if one == other and one.isalpha()}
            is_other = twin.family == family and not {(table, column), (table, twin.name)} & joined
            is_meant = family in ("integer", "real") and heads & subject.words
            if not (is_other and (is_meant or is_numbered or differ <= _YEARS)) or not {*mine} - {*theirs}:
                continue
            if not {*theirs} - {*mine} or (table, twin.name) in read or subject.names_one(differ):
                continue  # a name without more words is the plain one
            new = _renamed(subject, table, {column}, twin.name)
            yield Doubt("column", f"{twin.name} fits as {column} does; with it, ", subject.sql(new))
            if differ <= _YEARS:
                break  # one of many


def unjoined(subject: Subject) -> Found:
    """Tables that no condition joins to another one, so that each row meets all rows: by the likeliest key."""
    for position in range(len(blocks(subject.statement))):
        new = subject.read()
        tree = blocks(new)[position]
        block = Block(new, tree, subject.reader)
        tables = {new.fold(alias): one.id for alias, one in new.known_tables(tree)}
        tests = [one.find_all(exp.Column) for one in own_nodes(tree) if isinstance(one, exp.Predicate)]
        met = [{*map(block.alias_of, columns)} for columns in tests]
        met += [{one[0], other[0]} for one, other in block.equal_columns()]
        alone = [alias for alias in tables if not any(alias in one and len(one) > 1 for one in met)]
        pairs = [(a, b, key) for a in alone for b in tables if a != b for key in subject.keys_of(tables[a], tables[b])]
        for a, b, key in pairs[:1] if len(tables) == len(block.sources) else []:
            columns = zip(key.columns_of(tables[a]), key.columns_of(tables[b]), strict=True)
            tree.where(*(column_of(one, a).eq(column_of(other, b)) for one, other in columns), copy=False)
            words = f"no condition joins {subject.names[tables[a]]}; with {key.left} = {key.right}, "
            yield Doubt("join", words, subject.sql(new.tree))


_CLOSE = 0.05
"""Chances of keys that differ by at most this are as good as equal."""
_LEAST_KEY = 0.3
"""A pair of columns with a lower chance is no key."""


def joins(subject: Subject) -> Found:
    """Other keys between two tables: a likelier one, or one as likely that the question does not exclude."""
    pairs = subject.statement.joined_columns()
    joined = Counter(frozenset((side.alias, side.block) for side in pair) for pair in pairs)
    for left, right in pairs:
        if left.table == right.table or joined[frozenset((side.alias, side.block) for side in (left, right))] > 1:
            continue  # a part of a key of several columns is none by itself
        tables = {left.table, right.table}
        between = [key for key in subject.keys if key.tables == tables and len(key.left_columns) == 1]
        chance = max((key.score for key in between if _is_of(key, left, right)), default=0.0)
        rivals = [key for key in between if not _is_of(key, left, right) and not key.signs]
        best = max(rivals, key=lambda key: key.score, default=None)
        is_faint = best is not None and chance < _LEAST_KEY and best.score >= ACCEPTED
        if best is not None and (is_faint or _is_role(subject, best, chance, left, right)):
            new = subject.read()
            if _rejoined(new, left, right, best):
                words = f"{left.table}.{left.column} = {right.table}.{right.column} is {chance:.0%} likely a key, "
                words += f"{best.left} = {best.right} {best.score:.0%}; by it, "
                yield Doubt("join", words, subject.sql(new.tree))


def unused_columns(subject: Subject) -> Found:
    """Columns that the question names and the statement does not use, where it compares one that the question does not
    name with a value of the question: in place of that one."""
    values = {*re.findall(r"\w+", subject.question.casefold())}
    tests = [
        test
        for test in subject.statement.tree.find_all(exp.Predicate)
        if any({*one.this.casefold().split()} <= values - _YEARS for one in test.find_all(exp.Literal))
        and all(subject.words.isdisjoint(stems(one.name)) for one in test.find_all(exp.Column))
    ]
    of = {one.name for test in tests for one in test.find_all(exp.Column)}
    used, read = {*stems_in(subject.statement.tree.sql())}, {one[:2] for one in subject.statement.read_columns()}
    question = f" {' '.join(stem(word.text) for word in words_in(subject.question))} "
    for id in subject.execution.tables if tests else ():
        for column in subject.profile(id).for_prompts:
            parts = stems(column.name)
            is_named = bool(parts) and f" {' '.join(parts)} " in question
            if not is_named or (id, column.name) in read or (used | KEY_WORDS) & {*parts}:
                continue
            words = f"the question names {subject.names[id]}.{column.name}, which the statement does not use"
            alike = {one.name for one in subject.profile(id).for_prompts if one.family == column.family}
            new = _renamed(subject, id, of & alike, column.name)
            rows = None if new == subject.statement.tree else subject.run(new)
            if rows is not None and has_values(rows):
                yield Doubt("column", f"{words}; with it, ", subject.sql(new))
            elif column.family in ("integer", "real"):
                yield Doubt("column", words)


def _renamed(subject: Subject, table: str, of: Collection[str], column: str) -> exp.Expr:
    """The statement with a column of a table in place of others."""
    new = subject.read()
    for node, block in new.columns:
        source = new.source(node, block)
        if source is not None and source.table == table and source.column in of:
            node.set("this", exp.to_identifier(column, quoted=True))
    return new.tree


def unneeded_tables(subject: Subject) -> Found:
    """Tables of which nothing but keys is read, and that no word of the question names: without them."""
    tree, names = subject.statement.tree, list[str]()
    if subject.select is None or not subject.question or any(item.is_star for item in tree.expressions):
        return
    while (statement := subject.read(subject.sql(tree))).tree.args.get("joins"):
        joins, ids = statement.tree.args["joins"], _tables_of(statement)
        nodes = [(node, statement.source(node, block)) for node, block in statement.columns]
        for at, alias in enumerate(ids):
            join = joins[max(at - 1, 0)]
            reads = [node for node, source in nodes if source is not None and source.alias == alias]
            is_named = subject.names_table(ids[alias], [id for name, id in ids.items() if name != alias])
            if not is_named and (at or not join.side) and all(join in ancestors(node) for node in reads):
                break
        else:
            break
        tree, names = statement.tree, [*names, subject.names[ids[alias]]]
        join.pop()
        if not at:
            tree.args["from_"].set("this", join.this)
    if names:
        words = f"nothing of {' and '.join(names)} is used but that it has a match; without it, "
        yield Doubt("join", words, subject.sql(tree))


def unread_tables(subject: Subject) -> Found:
    """Tables that the question names, whose rows refer to those that are read: the rows to which one refers."""
    written, tree = {*stems_in(subject.statement.tree.sql())}, subject.select
    for other in _beside(subject):
        parts = {*stems(other.name)}
        if tree is None or not parts or not parts <= subject.words or is_known(iter(parts), written):
            continue
        tables = subject.statement.known_tables(tree)
        keys = [(alias, key) for alias, table in tables for key in subject.keys_of(other.id, table.id)]
        for alias, key in [(alias, key) for alias, key in keys if key.left_table == other.id][:1]:
            pairs = zip(key.left_columns, key.right_columns, strict=True)
            same = [column_of(theirs, "other").eq(column_of(own, alias)) for theirs, own in pairs]
            there = exp.select("1").from_(table_of(subject.names[other.id], "other")).where(*same)
            words = f"the question names {subject.names[other.id]}, which is not read; with a match there, "
            yield Doubt("join", words, subject.sql(tree.copy().where(exp.Exists(this=there))))


def _tables_of(statement: ReadStatement) -> dict[str, str]:
    """Alias → id of the tables of a block; none if it reads something else, too."""
    tables = {statement.fold(alias): table.id for alias, table in statement.known_tables(statement.tree)}
    joined = len(statement.tree.args["joins"]) + 1
    return tables if [*tables] == [*statement.sources(statement.tree)] and len(tables) == joined else {}


def _is_of(key: KeyPair, left: SourceColumn, right: SourceColumn) -> bool:
    return {(key.left_table, key.left_columns[0]), (key.right_table, key.right_columns[0])} == {left[:2], right[:2]}


def _is_role(subject: Subject, key: KeyPair, chance: float, left: SourceColumn, right: SourceColumn) -> bool:
    """Whether a key is as likely as the one that joins, to the same column, and the question names neither."""
    if not subject.question or key.score < ACCEPTED or abs(key.score - chance) > _CLOSE:
        return False
    ends = {left[:2], right[:2]}
    if (key.right_table, key.right_columns[0]) not in ends:
        return False
    own = next(column for table, column in ends if (table, column) != (key.right_table, key.right_columns[0]))
    return not subject.names_one({*stems(own)} ^ {*stems(key.left_columns[0])})


def _rejoined(new: ReadStatement, left: SourceColumn, right: SourceColumn, key: KeyPair) -> bool:
    """Join two tables by another key."""
    for one in new.equalities:
        sides = [side for node, block in zip(one.sides, one.blocks, strict=True) if (side := new.source(node, block))]
        if one.is_required and {side[:2] for side in sides} == {left[:2], right[:2]}:
            for side, node in zip(sides, one.sides, strict=True):
                node.replace(column_of(key.columns_of(side.table)[0], side.alias))
            return True
    return False
