"""The statements that differ from an answer's in one decision, kind by kind (:mod:`tagframe.answer.alternatives`)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tagframe import results
from tagframe.answer.alternatives import Comparison, Doubt, blocks, difference, same_rows
from tagframe.answer.generation import plain_rows
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import has_functions
from tagframe.answer.row_counts import Block, adding_blocks, unique_keys, with_views
from tagframe.answer.sql_tree import (
    aggregates,
    clause_keys,
    column_of,
    is_aggregate,
    one_row,
    own_nodes,
    without,
    written,
)
from tagframe.corpus import TableProfile, computed_of
from tagframe.corpus.documents import identifier_words
from tagframe.corpus.totals import TotalRows
from tagframe.engines.sql_reader import ReadStatement, SourceColumn, TextTest
from tagframe.errors import CorpusError, SQLFailed, UnsafeSQL, counted
from tagframe.joins import keys_between
from tagframe.keys import KeyPair
from tagframe.keys.inference import ACCEPTED
from tagframe.retrieval.cell_literals import cell_literals
from tagframe.retrieval.links import Links, tables_around
from tagframe.retrieval.words import stem, words_in

if TYPE_CHECKING:
    from tagframe.answer.execution import Execution

Found: TypeAlias = Iterator[Doubt]

_CLOSE = 0.05
"""Chances of keys that differ by at most this are as good as equal."""
LEAST_KEY = 0.3
"""A pair of columns with a lower chance is no key."""
_ALIKE = 0.8
"""The least share of equal letters of a text that is taken for another spelling of one."""
_MOST_CELLS = 5_000
_MOST_TESTS = 12
_DIRECTIONS = frozenset({"from", "to"})
_ENDS = _DIRECTIONS | frozenset({"src", "source", "origin", "dst", "dest", "destin", "destination", "depart", "arriv"})
"""Parts of the names of two columns of which one is where something begins and the other where it ends."""
_KEY_WORDS = frozenset({"id", "no", "code", "key", "number", "nr"})
_WORD = 4
"""A name of at least so many letters may be the beginning of a word."""
_LARGE_LIMIT = 200
"""A larger LIMIT bounds the rows, and ranks nothing."""
_ALL = frozenset({"each", "every", "all"})
_NONE = frozenset({"zero", "0", "none", "no", "not", "without", "even", "includ", "per"}) | _ALL


@dataclass(frozen=True)
class Subject:
    """An answer's statement, and what is known of it.

    Attributes:
        execution: of the statement.
        rows: its result.
        question: that it answers, or "".
        comparison: runs others.
        reader: that ran it.
    """

    execution: Execution
    rows: pd.DataFrame
    question: str
    comparison: Comparison
    reader: Reader

    @classmethod
    def of(cls, rows: pd.DataFrame, question: str = "") -> Subject | None:
        """What is known of the result of :func:`tagframe.exec_sql`; None for other frames."""
        execution = results.recall(rows, "execution")
        if execution is None or execution.reader is None:
            return None
        comparison = Comparison(rows, execution.reader, execution.seconds)
        return cls(execution, rows, question, comparison, execution.reader)

    def read(self) -> ReadStatement | None:
        """The statement, read anew, so that its tree can be changed."""
        return self.reader.read(self.execution.sql)

    @cached_property
    def statement(self) -> ReadStatement | None:
        """The statement; its tree is not changed."""
        return self.read()

    @cached_property
    def keys(self) -> Sequence[KeyPair]:
        """The keys between the tables that it reads, faint ones too."""
        ids, corpus = sorted(self.execution.tables), self.reader.corpus
        return keys_between(corpus, ids, tables_around(corpus, ids)).keys if len(ids) > 1 else ()

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Table id → name in SQL of the tables that it may read."""
        return {id: name for name, id in self.reader.tables.items()}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the question, without their endings."""
        return frozenset(stem(word.text) for word in words_in(self.question)) | {
            word.casefold() for word in self.question.split()
        }

    @cached_property
    def select(self) -> exp.Select | None:
        """The statement if it is one block over tables."""
        tree = None if self.statement is None else self.statement.tree
        return tree if isinstance(tree, exp.Select) and tree.args.get("from_") is not None else None

    def sql(self, tree: exp.Expr) -> str:
        """A tree as SQL of the engine."""
        return written(tree, self.reader.engine.dialect.name)

    def profile(self, id: str) -> TableProfile:
        """A table of the corpus."""
        return self.reader.corpus.profile(id)


def alternatives(subject: Subject) -> Found:
    """All kinds, the worst mistakes first."""
    for kind in (
        repeated_rows, repeated_values, bare_columns, written_readings, matches, of_two_values,
        counted_elsewhere, columns, twins, joins, values, nulls, totals, limits,
    ):  # fmt: skip
        with suppress(CorpusError, SQLFailed, UnsafeSQL, SqlglotError):
            yield from kind(subject)


# --- rows that are counted twice --------------------------------------------------------------------------------------


def repeated_rows(subject: Subject) -> Found:
    """Joins by a part of a key; and rows of a table that a join repeats, each counted once."""
    statement = subject.statement
    if statement is None:
        return
    sql = with_views(subject.execution.sql, statement, subject.reader)
    statement = subject.reader.read(sql) or statement
    adding = adding_blocks(statement)
    for position, block in enumerate(blocks(statement)):
        if len(statement.sources(block)) > 1 and (new := subject.reader.read(sql)):
            whole = Block(new, blocks(new)[position], subject.reader).join_whole(subject.keys)
            if whole:
                words = f"tables are joined by a part of their key; by all of it, {whole}, "
                yield Doubt("key", words, subject.sql(new.tree))
                return
        for branch in ["", *Block(statement, block, subject.reader).branches()] if position in adding else []:
            if (new := subject.reader.read(sql)) is None:
                return
            tables = Block(new, blocks(new)[position], subject.reader).count_once(branch)
            if tables:
                words = f"a join repeats rows of {' and '.join(sorted(tables))}; with each of them counted once, "
                yield Doubt("repeated", words, subject.sql(new.tree))


def repeated_values(subject: Subject) -> Found:
    """Counts of a column that names what the question counts, and that several rows share: each value once."""
    statement, tree = subject.statement, subject.select
    if statement is None or tree is None or tree.args.get("group") is not None:
        return
    for call in [node for item in tree.expressions for node in item.find_all(exp.Anonymous)]:
        source = statement.source(call.expressions[0], tree) if len(call.expressions) == 1 else None
        if source is None or call.name.lower() != "count" or isinstance(call.parent, exp.Window | exp.Filter):
            continue
        column = subject.profile(source.table).column(source.column)
        is_shared = bool(column.distinct) and (column.distinct or 0) < (column.rows or 0) - (column.nulls or 0)
        is_named = bool(({*_stems(source.column)} - _KEY_WORDS) & subject.words)
        if is_shared and (is_named or any(_referred(subject, source.table, source.column))):
            other = tree.copy()
            for node in [node for node in other.find_all(exp.Anonymous) if node == call]:
                node.set("expressions", [exp.Distinct(expressions=node.expressions)])
            words = f"several rows have the same {source.column}; with each counted once, "
            yield Doubt("repeated", words, subject.sql(other))


def _referred(subject: Subject, table: str, column: str) -> Iterator[str]:
    """The names of the tables that the question names and to which a column refers."""
    for id, name in subject.names.items():
        if (
            id != table
            and {*_stems(subject.profile(id).name)} <= subject.words
            and _are_linked(subject, table, id, column)
        ):
            yield name


def bare_columns(subject: Subject) -> Found:
    """Columns that are neither computed nor those of the groups, so that any row of these gives them: each of them."""
    statement, tree = subject.statement, subject.select
    if statement is None or tree is None or any(item.is_star for item in tree.expressions):
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
    runs = (
        [subject.comparison.run(subject.sql(one)) for one in (whole, whole.group_by(*bare))] if bare and group else []
    )
    is_same = len(runs) == 2 and runs[0] is not None and runs[1] is not None and same_rows(runs[0], runs[1])
    if bare and (calls or group) and not {"max", "min"} & calls and not is_same:  # beside these, it is their row
        names = " and ".join(item.sql() for item in bare)
        yield Doubt("repeated", f"{names} is that of any one row; for each, ", subject.sql(tree.copy().group_by(*bare)))


# --- what the model wrote ---------------------------------------------------------------------------------------------


def written_readings(subject: Subject) -> Found:
    """The other readings that ``syn`` has written statements for."""
    for words, sql in subject.execution.query.others:
        if has_functions(sql):  # it would have to be paid for
            yield Doubt(
                "reading", f"it can be read otherwise, {words}; that statement asks a model, and was not run", sql
            )
        else:
            yield Doubt("reading", f"it can be read otherwise, {words}: ", sql)


# --- rows without a match ---------------------------------------------------------------------------------------------


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


def _counts(tree: exp.Select) -> list[exp.Anonymous]:
    return [node for item in tree.expressions for node in item.find_all(exp.Anonymous) if node.name.lower() == "count"]


def _star_counts(tree: exp.Select) -> list[exp.Anonymous]:
    return [node for node in _counts(tree) if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star)]


def of_two_values(subject: Subject) -> Found:
    """Lists of rows with one of two values: those with both; with another value than one: those without that one."""
    statement, tree = subject.statement, subject.select
    where = None if tree is None or tree.args.get("having") else tree.args.get("where")
    if statement is None or tree is None or any(aggregates(item) or item.is_star for item in tree.expressions):
        return
    visible = {source.table for item in tree.expressions if (source := statement.source(item.unalias(), tree))}
    is_of_both = "both" in subject.words or ("and" in subject.words and not {"or", "either"} & subject.words)
    for node in [] if where is None else own_nodes(where):
        source = statement.source(node.this, tree) if isinstance(node, exp.NEQ) else None
        is_other = source is not None and bool(visible) and source.table not in visible
        both = [node, exp.EQ(this=node.this, expression=node.args.get("expression"))] if is_other else []
        tests = both or (_tests_of_two(node) if is_of_both else [])
        sides = [without(tree, "order", "limit") for _ in tests]
        for side, test in zip(sides, tests, strict=True):
            for one in [one for one in own_nodes(side.args["where"]) if one == node]:
                one.replace(test.copy())
        sql = subject.sql((exp.except_ if is_other else exp.intersect)(*sides)) if tests else ""
        rows = subject.comparison.run(sql) if sql else None
        if rows is not None and (is_other or len(rows)) and not same_rows(rows, subject.rows.drop_duplicates()):
            words = " and of ".join(test.sql() for test in tests)
            words = f"rows have {both[1].sql()}, too; without, " if is_other else f"with rows of {words}, "
            yield Doubt("match", f"{words}{difference(subject.rows, rows)}", sql, rows)


def _tests_of_two(node: exp.Expr) -> list[exp.Expr]:
    """The tests of one value each, of a condition on two values of one column."""
    if isinstance(node, exp.In) and len(node.expressions) == 2:
        return [exp.EQ(this=node.this, expression=value) for value in node.expressions]
    sides = [node.left, node.right] if isinstance(node, exp.Or | exp.And) and node.left.this == node.right.this else []
    is_plain = all(isinstance(side, exp.EQ | exp.In) and isinstance(side.this, exp.Column) for side in sides)
    return sides if is_plain else []


def counted_elsewhere(subject: Subject) -> Found:
    """Counts of references to a table that the question names, in one that it does not: that table's own rows."""
    statement, tree = subject.statement, subject.select
    if statement is None or tree is None or len(subject.execution.tables) != 1 or without(tree, "where") != tree:
        return
    (table,) = subject.execution.tables
    counted_columns, own = [one.column for one in statement.read_columns()], subject.profile(table).name
    parts = [(word, part) for word in subject.words for part in _stems(own)]
    # Of "assayed" the table of assays may be meant.
    is_named = any(word == part or (len(part) >= _WORD and word.startswith(part)) for word, part in parts)
    if is_named or len(counted_columns) != 1 or not _counts(tree):
        return
    for name in _referred(subject, table, counted_columns[0]):
        rows = exp.select("count(*)").from_(exp.to_identifier(name, quoted=True))
        yield Doubt("match", f"not every row of {name} need be in {own}; counted there, ", subject.sql(rows))


def _is_cut(tree: exp.Select) -> bool:
    """Whether groups or rows are left out by what they are compared with: HAVING, or LIMIT with ORDER BY."""
    is_ranking = tree.args.get("order") is not None and tree.args.get("limit") is not None
    return tree.args.get("having") is not None or is_ranking


def _is_inner(join: exp.Join) -> bool:
    has_test = join.args.get("on") is not None or join.args.get("using")
    return bool(has_test) and not join.side and (join.kind or "INNER") == "INNER" and not join.method


# --- other columns, tables, databases, keys ---------------------------------------------------------------------------


def columns(subject: Subject) -> Found:
    """Columns that another table with the same key has, too, with other values."""
    statement = subject.statement
    if statement is None:
        return
    used, names = {*subject.execution.tables}, subject.names
    homes = {subject.profile(id).database for id in used}
    others = [subject.profile(id) for id in names if id not in used and subject.profile(id).database in homes]
    for table, column in dict.fromkeys(one[:2] for one in statement.read_columns()):
        for other in others:
            key = _shared_key(subject.profile(table), other, column)
            if (
                key
                and _are_linked(subject, table, other.id, key[0])
                and (new := subject.read())
                and _takes_from(new, table, column, names[other.id], *key)
            ):
                words = f"{names[other.id]}.{column} may differ from {names[table]}.{column}; with it, "
                yield Doubt("column", words, subject.sql(new.tree))


def _shared_key(table: TableProfile, other: TableProfile, column: str) -> tuple[str, str] | None:
    """The columns by which each row of a table has one of another that has a column of that name, too."""
    theirs = {one.name.casefold(): one for one in other.for_prompts}
    mine, twin = {one.name: one for one in table.for_prompts}.get(column), theirs.get(column.casefold())
    own_keys, other_keys = ({key[0] for key in unique_keys(one) if len(key) == 1} for one in (table, other))
    if mine is None or twin is None or column in table.primary_key or (mine.family == "text" and column in own_keys):
        return None  # it names the rows
    if len({"number" if one.family in ("integer", "real") else one.family for one in (mine, twin)}) > 1:
        return None
    shared = [
        (key, theirs[key.casefold()].name)
        for key in own_keys - {column}
        if key.casefold() in theirs and key.casefold() != "id"
    ]
    return next((pair for pair in sorted(shared) if pair[1] in other_keys), None)


def _are_linked(subject: Subject, table: str, other: str, key: str) -> bool:
    """Whether two tables probably join on this column, so that a row of one is about the same thing as its match."""
    ids, corpus = sorted([table, other]), subject.reader.corpus
    keys = keys_between(corpus, ids, tables_around(corpus, ids)).keys
    return any(one.score >= ACCEPTED and len(one.tables) == 2 and one.columns_of(table) == (key,) for one in keys)


def _takes_from(new: ReadStatement, table: str, column: str, other: str, mine: str, theirs: str) -> bool:
    """Read a column from another table instead, joined to the one that has it."""
    places = [
        (node, block) for node, block in new.columns if (one := new.source(node, block)) and one[:2] == (table, column)
    ]
    selects = {id(block) for _, block in places}
    if len(selects) != 1 or not isinstance(block := places[0][1], exp.Select):
        return False
    aliases = {source.alias for node, block in places if (source := new.source(node, block))}
    if len(aliases) != 1 or not aliases <= new.sources(block).keys():  # joined to itself, or of an outer statement
        return False
    name = new.sources(block)[aliases.pop()].alias_or_name
    for node, _ in places:
        is_item = node.parent is block
        twin: exp.Expr = column_of(column, "twin")
        node.replace(exp.alias_(twin, column, quoted=True) if is_item and node.arg_key == "expressions" else twin)
    on = exp.EQ(this=column_of(mine, name), expression=column_of(theirs, "twin"))
    twin_table = exp.alias_(exp.table_(exp.to_identifier(other, quoted=True)), "twin", table=True)
    block.append("joins", exp.Join(this=twin_table, on=on, side="LEFT"))
    return True


def twins(subject: Subject) -> Found:
    """Other columns of numbers whose names begin or end with a word of the question, as that of the one read does."""
    statement = subject.statement
    joined = set() if statement is None else {one[:2] for pair in statement.joined_columns() for one in pair}
    read = [] if statement is None else [one[:2] for one in statement.read_columns()]
    for table, column in dict.fromkeys(read):
        family, mine = subject.profile(table).column(column).family, _stems(column)
        for twin in subject.profile(table).for_prompts if family in ("integer", "real") else ():
            theirs = _stems(twin.name)
            heads = {mine[at] for at in (0, -1) if mine[at:][:1] == theirs[at:][:1] and mine[at].isalpha()}
            is_other = twin.family == family and not {(table, column), (table, twin.name)} & joined
            if not (is_other and heads & subject.words and {*mine} - {*theirs} and {*theirs} - {*mine}):
                continue  # a name without more words is the plain one
            if (table, twin.name) in read or _names_one(subject, {*mine} ^ {*theirs}) or not (new := subject.read()):
                continue
            for node, block in new.columns:
                source = new.source(node, block)
                if source is not None and source[:2] == (table, column):
                    node.set("this", exp.to_identifier(twin.name, quoted=True))
            yield Doubt("column", f"{twin.name} fits as {column} does; with it, ", subject.sql(new.tree))


def _stems(name: str) -> list[str]:
    return [stem(word) for word in identifier_words(name)]


def _names_one(subject: Subject, tokens: Collection[str]) -> bool:
    """Whether the question has a word for one of the parts in which two names differ, or a direction as they have."""
    if not _ENDS.isdisjoint(tokens) and not _DIRECTIONS.isdisjoint(subject.words):
        return True
    return any(_may_stand_for(word, token) for token in tokens for word in subject.words)


def joins(subject: Subject) -> Found:
    """Other keys between two tables: a likelier one, or one as likely that the question does not exclude."""
    statement = subject.statement
    for left, right in () if statement is None else statement.joined_columns():
        if left.table == right.table:
            continue
        between = [
            key for key in subject.keys if key.tables == {left.table, right.table} and len(key.left_columns) == 1
        ]
        chance = max((key.score for key in between if _is_of(key, left, right)), default=0.0)
        rivals = [key for key in between if not _is_of(key, left, right) and not key.signs]
        best = max(rivals, key=lambda key: key.score, default=None)
        is_faint = best is not None and chance < LEAST_KEY and best.score >= ACCEPTED
        if best is None and chance < LEAST_KEY and (sql := _through_another(subject, left, right)):
            yield Doubt(
                "join", f"{left.table}.{left.column} = {right.table}.{right.column} is no key; {sql[0]}, ", sql[1]
            )
        if best is not None and (is_faint or _is_role(subject, best, chance, left, right)):
            new = subject.read()
            if new is not None and _rejoined(new, left, right, best):
                words = f"{left.table}.{left.column} = {right.table}.{right.column} is {chance:.0%} likely a key, "
                words += f"{best.left} = {best.right} {best.score:.0%}; by it, "
                yield Doubt("join", words, subject.sql(new.tree))


def _through_another(subject: Subject, left: SourceColumn, right: SourceColumn) -> tuple[str, str] | None:
    """Words and a statement that joins two tables through a third, which has a key to each; None if none has."""
    profiles, new = subject.reader.corpus.profiles, subject.read()
    positions = {profile.id: position for position, profile in enumerate(profiles)}
    links, ends = (
        Links(profiles, facts=computed_of(subject.reader.corpus)),
        [positions[left.table], positions[right.table]],
    )
    for third in links.of_databases(ends):
        id = profiles[third].id
        if new is None or id not in subject.names or id in subject.execution.tables or subject.comparison.left <= 0:
            continue
        ways = [key for end in ends if (key := links.best(end, third)) is not None and key.score >= ACCEPTED]
        for one in [one for one in new.equalities if one.is_required and len(ways) == len(ends)]:
            sides = [new.source(side, block) for side, block in zip(one.sides, one.blocks, strict=True)]
            if {side[:2] if side else None for side in sides} == {left[:2], right[:2]} and one.sides[0].parent:
                tests = [
                    exp.EQ(this=column_of(mine, side.alias), expression=column_of(theirs, "through"))
                    for key, side in zip(ways, (left, right), strict=True)
                    for mine, theirs in zip(key.columns_of(side.table), key.columns_of(id), strict=True)
                ]
                table = exp.alias_(
                    exp.Table(this=exp.to_identifier(subject.names[id], quoted=True)), "through", table=True
                )
                one.sides[0].parent.replace(exp.Exists(this=exp.select("1").from_(table).where(*tests)))
                return f"both have one to {subject.names[id]}; through it", subject.sql(new.tree)
    return None


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
    return not _names_one(subject, {*_stems(own)} ^ {*_stems(key.left_columns[0])})


def _may_stand_for(word: str, token: str) -> bool:
    """Whether a part of a column's name may be a word, or short for it, as ``dst`` is for destination."""
    letters = iter(word)
    return word[:1] == token[:1] and all(letter in letters for letter in token)


def _rejoined(new: ReadStatement, left: SourceColumn, right: SourceColumn, key: KeyPair) -> bool:
    """Join two tables by another key."""
    for one in new.equalities:
        sides = [new.source(side, block) for side, block in zip(one.sides, one.blocks, strict=True)]
        if one.is_required and {side[:2] if side else None for side in sides} == {left[:2], right[:2]}:
            for side, node in zip(sides, one.sides, strict=True):
                assert side is not None
                node.replace(column_of(key.columns_of(side.table)[0], side.alias))
            return True
    return False


# --- values -----------------------------------------------------------------------------------------------------------


def values(subject: Subject, *, optional: bool = False) -> Found:
    """Texts that a column is compared with, with ``optional`` also in an OR, and that no cell has: the nearest cell."""
    compared = [] if subject.statement is None else subject.statement.compared_columns(optional=optional)
    for column, test in compared[:_MOST_TESTS]:
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
    for one in [] if new is None else [one for one in new.text_tests if one.test.sql() == test.test.sql()]:
        whole = one.test
        while other is None and isinstance(whole.parent, exp.Not | exp.Paren):
            whole = whole.parent
        whole.replace(exp.true() if other is None else other.copy())
    if new is not None:
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
    if subject.statement is None or {*_stems(column.column)} & subject.words:
        return
    read, table = {one[:2] for one in subject.statement.read_columns()}, subject.profile(column.table)
    words_of_columns = subject.words - {*_stems(table.name)}
    for other in table.for_prompts:
        is_named = {*_stems(other.name)} <= words_of_columns and (column.table, other.name) not in read
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
    rows = subject.comparison.run(subject.sql(one_row(exp.Table(this=exp.to_identifier(name, quoted=True)), alone)))
    return None if rows is None else len(rows) > 0


def _nearest(subject: Subject, column: SourceColumn, name: str, text: str) -> str | None:
    """The cell of a column that is most like a text."""
    stored = cell_literals(subject.reader.corpus, subject.profile(column.table)).get(column.column)
    if stored is not None and stored.complete:
        cells = [value[1:-1].replace("''", "'") for value in stored.values if value.startswith("'")]
    else:
        cell = exp.alias_(column_of(column.column), "cell")
        select = exp.Select(expressions=[cell]).from_(exp.Table(this=exp.to_identifier(name, quoted=True))).distinct()
        rows = subject.comparison.run(subject.sql(select.limit(_MOST_CELLS)), _MOST_CELLS)
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
        numbers = subject.comparison.run(subject.sql(block), 1)
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
    if tree is None or tree.args.get("joins") or subject.statement is None:
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
    rows = subject.comparison.run(subject.sql(tree), len(subject.rows) + 1)
    return rows is not None and len(rows) == len(subject.rows) and bool((rows.notna() & rows.ne(0)).any(axis=None))


def _is_no_total(total: TotalRows, profile: TableProfile, alias: str) -> exp.Expr:
    cell: exp.Expr = column_of(total.column, alias)
    is_null = cell.is_(exp.null())
    if total.value is None:
        return is_null.not_()
    is_text = profile.column(total.column).family == "text"
    trimmed = exp.Anonymous(this="trim", expressions=[cell.copy()]) if is_text else cell.copy()
    return exp.or_(is_null, exp.NEQ(this=trimmed, expression=exp.Literal.string(total.value)))


# --- the end of a list ------------------------------------------------------------------------------------------------


def limits(subject: Subject) -> Found:
    """Rows that LIMIT leaves out: all of them where it ranks nothing, else those that rank like the last one."""
    tree = subject.select
    size, limit = len(subject.rows), None if tree is None else tree.args.get("limit")
    if tree is None or limit is None or tree.args.get("offset") is not None or not size:
        return
    if not isinstance(limit.expression, exp.Literal) or limit.expression.this != str(size):
        return
    if size == 1 and tree.args.get("group") is not None and {"each", "every"} & subject.words:
        words = f"LIMIT {size} leaves groups out, and the question is of each; without it, "
        yield Doubt("limit", words, subject.sql(without(tree, "limit")))
    if size > _LARGE_LIMIT and limit.expression.this not in subject.question.replace(",", ""):
        whole = without(tree, "limit")
        rest = subject.sql(without(whole, "order"))
        count = subject.comparison.run(f"SELECT count(*) AS n FROM ({rest}) AS counted", 1)
        if count is not None and (n := int(count["n"].iloc[0])) > size:
            words, sql = f"LIMIT {size:,} leaves {n - size:,} of {n:,} rows out; without it, ", subject.sql(whole)
            if (every := subject.comparison.run(sql, n)) is not None:
                yield Doubt("limit", f"{words}{difference(subject.rows, every)}", sql, every)
        return
    yield from _ties(subject, tree)


def with_order(tree: exp.Select) -> exp.Select | None:
    """A block with what it is ordered by as further columns; None if that is not known, or no order."""
    keys, other = clause_keys(tree, "order", lambda name: False), tree.copy()
    if not keys or tree.args.get("distinct") is not None:
        return None
    for key in keys:
        other.append("expressions", exp.alias_(key.copy(), key.sql(normalize_functions=False), quoted=True))
    return other


def _ties(subject: Subject, tree: exp.Select) -> Found:
    rows, other, size = subject.rows, with_order(tree), len(subject.rows)
    if other is None:
        return
    further = size + 1000
    other.set("limit", exp.Limit(expression=exp.Literal.number(further)))
    more = subject.comparison.run(subject.sql(other), further)
    if more is None or len(more) <= size:
        return
    keys, cells = plain_rows(more.iloc[:, rows.shape[1] :]), plain_rows(more.iloc[:, : rows.shape[1]])
    behind = sum(key == keys[size - 1] for key in keys[size:])
    equal = {row for row, key in zip(cells[size - 1 :], keys[size - 1 :], strict=True) if key == keys[size - 1]}
    if len(equal) > 1:
        whole = tree.copy()
        whole.set("limit", exp.Limit(expression=exp.Literal.number(size + behind)))
        more_than = "" if behind + size < further else "at least "
        ties = counted(behind, "further row ties", "further rows tie")
        with_ties = more.iloc[: size + behind, : rows.shape[1]]
        yield Doubt("tie", f"{more_than}{ties} with row {size:,} in ORDER BY", subject.sql(whole), with_ties)
