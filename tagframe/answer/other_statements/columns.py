"""Other columns that the words of a question fit as well."""

from __future__ import annotations

from sqlglot import exp

from tagframe.answer.alternatives import Doubt
from tagframe.answer.other_statements.subject import Found, Subject, stems
from tagframe.answer.row_counts import unique_keys
from tagframe.answer.sql_tree import column_of
from tagframe.corpus import TableProfile
from tagframe.engines.sql_reader import ReadStatement


def columns(subject: Subject) -> Found:
    """Columns that another table with the same key has, too, with other values."""
    statement = subject.statement
    used, names = {*subject.execution.tables}, subject.names
    homes = {subject.profile(id).database for id in used}
    others = [subject.profile(id) for id in names if id not in used and subject.profile(id).database in homes]
    for table, column in dict.fromkeys(one[:2] for one in statement.read_columns()):
        for other in others:
            key = _shared_key(subject.profile(table), other, column)
            new = subject.read() if key and subject.are_linked(table, other.id, key[0]) else None
            if key and new and _takes_from(new, table, column, names[other.id], *key):
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
    joined = {one[:2] for pair in statement.joined_columns() for one in pair}
    read = [one[:2] for one in statement.read_columns()]
    for table, column in dict.fromkeys(read):
        family, mine = subject.profile(table).column(column).family, stems(column)
        for twin in subject.profile(table).for_prompts if family in ("integer", "real") else ():
            theirs = stems(twin.name)
            heads = {mine[at] for at in (0, -1) if mine[at:][:1] == theirs[at:][:1] and mine[at].isalpha()}
            is_other = twin.family == family and not {(table, column), (table, twin.name)} & joined
            if not (is_other and heads & subject.words and {*mine} - {*theirs} and {*theirs} - {*mine}):
                continue  # a name without more words is the plain one
            if (table, twin.name) in read or subject.names_one({*mine} ^ {*theirs}):
                continue
            new = subject.read()
            for node, block in new.columns:
                source = new.source(node, block)
                if source is not None and source[:2] == (table, column):
                    node.set("this", exp.to_identifier(twin.name, quoted=True))
            yield Doubt("column", f"{twin.name} fits as {column} does; with it, ", subject.sql(new.tree))
