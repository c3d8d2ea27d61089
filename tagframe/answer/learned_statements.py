"""Learned statements for ``syn``: the examples in its prompt, and the statements that a person gave or verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from sqlglot import exp

from tagframe.answer.generation import plain_value
from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import check_staged
from tagframe.answer.query import Query, names_in_sql
from tagframe.answer.sql_tree import aggregates, ancestors, column_of, one_row, table_of, written
from tagframe.corpus import Corpus, vectors_of
from tagframe.corpus.corpus import private_of, statements_of
from tagframe.corpus.statements import Statement, spoken
from tagframe.embed import encoded, get_embedder
from tagframe.engines.sql_reader import ReadStatement, SourceColumn
from tagframe.errors import (
    AnswerRejected,
    CorpusError,
    DoubtWarning,
    InvalidArgument,
    SQLFailed,
    UnreadStatement,
    UnsafeSQL,
    warn,
)
from tagframe.learning.reading import Names, read_statement, with_names
from tagframe.operators.cells import one_line
from tagframe.retrieval.schema_text import column_texts

MOST_EXAMPLES = 3
"""The most examples, and the most verified statements, that are shown."""

NEAR = 0.5
"""The lowest cosine similarity of a question whose statement is shown."""
NEAR_VERIFIED = 0.3
"""The same for verified statements: their questions name no values, and the model may leave them."""

Values: TypeAlias = Mapping[str, Any]
_GONE = CorpusError, UnsafeSQL, SQLFailed
"""The errors of a statement that no longer runs."""

_RANGES = exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between
"""Comparisons that no row has to pass."""
_TESTS = *_RANGES, exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike, exp.Glob


def examples_for(request: str, corpus: Corpus, tables: Mapping[str, str], dialect: str) -> list[str]:
    """The nearest questions whose statements read tables that are shown, with their SQL: two lines each.

    If two have the same SQL, the nearer one is shown. Statements with private columns are left out.

    Args:
        request: the question.
        corpus: that has the statements.
        tables: that are shown: name in SQL → table id.
        dialect: of the statement to be written.
    """
    private, visible = private_of(corpus), {*tables.values()}
    usable = [
        one
        for one in statements_of(corpus)
        if one.text and not one.verified_by and visible.issuperset(one.tables) and not one.reads(private)
    ]
    names, called, lines = Names(corpus), {id: name for name, id in tables.items()}, dict[str, str]()
    for one in _nearest(request, corpus, usable, NEAR):
        if len(lines) == MOST_EXAMPLES:
            break
        sql = with_names(one.text, one.tables, names, called, dialect)
        if sql is not None:
            lines.setdefault(one_line(sql), one_line(one.question))
    return [line for sql, question in lines.items() for line in (f"-- {question}", sql)]


def _nearest(request: str, corpus: Corpus, usable: Sequence[Statement], least: float) -> Iterator[Statement]:
    """The statements whose questions are near a request, the nearest first."""
    usable = [one for one in usable if one.question]
    embedder = get_embedder() if usable else None
    if embedder is None:
        return
    vectors, rows = vectors_of(corpus).encode(embedder, [one.question for one in usable])
    near = vectors[rows] @ encoded(embedder, [request], "query")[0]
    yield from (usable[at] for at in np.argsort(-near, kind="stable").tolist() if near[at] >= least)


def answered(request: str, corpus: Corpus) -> Query | None:
    """The statement that a person gave for exactly this question; None if there is none, or it has parameters."""
    remarks = [
        one
        for one in statements_of(corpus)
        if one.by == "user" and one.text and spoken(one.question) == spoken(request)
    ]
    if not remarks:
        return None
    if remarks[-1].verified_by:
        with suppress(AnswerRejected, *_GONE):
            return with_values(remarks[-1], {}, corpus)
        return None
    return Query(remarks[-1].text, names_in_sql(map(corpus.profile, remarks[-1].tables)))


def right_statement(question: str, sql: str, corpus: Corpus, dialect: str) -> Statement:
    """Learn a statement that a person gave as the answer to a question.

    Raises:
        UnreadStatement: it cannot be parsed, or reads tables that do not exist.
        InvalidArgument: a verified statement answers the question.
    """
    verified = (one for one in statements_of(corpus) if one.verified_by and spoken(one.question) == spoken(question))
    if one := next(verified, None):
        raise InvalidArgument(
            f"a statement that {one.verified_by!r} verified answers {question!r:.200}: corpus.verify(question, sql, "
            "by=…) replaces it, corpus.forget(question) removes it"
        )
    return _of_person(question, sql, corpus, [dialect])


def _of_person(question: str, sql: str, corpus: Corpus, dialects: Sequence[str]) -> Statement:
    read = read_statement(sql, Names(corpus), dialects, cells=True)
    return replace(read, question=question.strip(), cells=sql.strip().rstrip(";"), by="user", runs={"": 1})


# --- verified statements ----------------------------------------------------------------------------------------------


def verified_statement(question: str, sql: str, by: str, corpus: Corpus) -> Statement:
    """See :meth:`tagframe.Corpus.verify`."""
    if not all(isinstance(text, str) and text.strip() for text in (question, sql, by)):
        raise InvalidArgument(f"verify takes a question, a statement and who verified it; got {(question, sql, by)!r}")
    engines = (engine for engine in map(corpus.engine, corpus.ids) if engine is not None)
    dialects = list(dict.fromkeys(engine.dialect.name for engine in engines))
    one = replace(_of_person(question, sql, corpus, dialects or ["sqlite"]), verified_by=by.strip())
    _check(one, corpus)
    return one


def _check(statement: Statement, corpus: Corpus) -> None:
    names, reader, read = _parameters(statement, corpus)
    check_staged(_written(read.tree, dict.fromkeys(names, exp.null()), reader), reader)


def verified_for(request: str, corpus: Corpus) -> list[Statement]:
    """The verified statements whose questions are nearest to a request; a warning names those that no longer run."""
    usable = [one for one in statements_of(corpus) if one.verified_by and one.cells]
    found: list[Statement] = []
    for one in islice(_nearest(request, corpus, usable, NEAR_VERIFIED), MOST_EXAMPLES):
        try:
            _check(one, corpus)
            found.append(one)
        except _GONE as error:
            facts = f"the statement that {one.verified_by!r} verified for {one.question!r:.200} no longer runs"
            warn(f"{facts}, and is not used: {error}. corpus.verify(question, sql, by=…) replaces it", DoubtWarning)
    return found


def _parameters(statement: Statement, corpus: Corpus) -> tuple[list[str], Reader, ReadStatement]:
    """The names of the parameters of a verified statement; what runs it; and the statement.

    Raises:
        UnreadStatement: it cannot be read.
        InvalidArgument: a parameter has no name.
    """
    reader = Reader(corpus, names_in_sql(map(corpus.profile, statement.tables)))
    read = reader.read(statement.cells)
    if read is None:
        raise UnreadStatement(f"{statement.cells!r:.200} cannot be read")
    nodes = list(read.tree.find_all(exp.Placeholder, exp.Parameter))
    if wrong := [node.sql() for node in nodes if not (isinstance(node, exp.Placeholder) and node.args.get("this"))]:
        raise InvalidArgument(f"a parameter has a name, as :year; got {wrong[0]!r} in {statement.cells!r:.200}")
    return list(dict.fromkeys(node.name for node in nodes)), reader, read


def filled(picks: Sequence[Any], statements: Sequence[Statement], corpus: Corpus) -> Query:
    """The query of what a model has picked: ``{"verified": 1, "year": 2013}``; further ones are other readings.

    Raises:
        AnswerRejected: there is no such statement, or a value is missing, or no row has it; written for the model.
    """
    queries = []
    for pick in picks:
        number = pick["verified"]
        if not isinstance(number, int) or not 0 < number <= len(statements):
            raise AnswerRejected(f'"verified" is a number from 1 to {len(statements)}; got {number!r}')
        queries.append(with_values(statements[number - 1], {k: v for k, v in pick.items() if k != "verified"}, corpus))
    first, *others = queries
    tables = {name: id for query in queries for name, id in query.tables.items()}
    readings = tuple((f"by the verified statement of {one.verified}", one.sql) for one in others)
    return replace(first, tables=tables, others=readings)


def with_values(statement: Statement, values: Values, corpus: Corpus) -> Query:
    """A verified statement with values for its parameters, each as a number or as a text, as its column has it.

    Raises:
        AnswerRejected: these are not its parameters, or no row has a value.
        UnsafeSQL, SQLFailed: it no longer runs.
    """
    names, reader, read = _parameters(statement, corpus)
    if {*names} != {*values} or not all(isinstance(value, str | int | float) for value in values.values()):
        raise AnswerRejected(f"{statement.question!r:.200} needs one value for each of {names}; got {dict(values)}")
    for test, sources in _tests(read):
        others = {name: _other_form(value) for name, value in values.items()}
        forms = [exp.replace_placeholders(test, **one) for one in (values, others)]
        right = next((one for one in forms if _has_row(one, sources, reader)), None)
        if right is None and not isinstance(test, _RANGES):
            raise AnswerRejected(_no_row(forms[0], sources[0], reader))
        test.replace(right or forms[0])
    sql = check_staged(_written(read.tree, values, reader), reader)
    pairs = ", ".join(f"{name} = {values[name]}" for name in names)
    called = f"{statement.verified_by}: {statement.question}{f' ({pairs})' if pairs else ''}"
    return Query(sql, reader.tables, wants_text=False, verified=called)


def sample_values(statement: Statement, corpus: Corpus) -> dict[str, Any]:
    """A value for each parameter, to try a verified statement with: the most frequent one of its column, else 1."""
    names, reader, read = _parameters(statement, corpus)
    values = dict[str, Any].fromkeys(names, 1)
    for test, sources in _tests(read):
        sides = [side for side in (test.this, test.args.get("expression")) if side and not side.find(exp.Placeholder)]
        if sides:
            value = exp.alias_(_alone(sides[0], sources), "value")
            query = exp.Select(expressions=[value]).from_(_table(sources[0], reader))
            query = query.where(exp.Not(this=exp.Is(this=value.this.copy(), expression=exp.Null())))
            times = exp.Anonymous(this="count", expressions=[exp.Star()])
            query = query.group_by(value.this.copy()).order_by(times.desc(), value.this.copy())
            rows = reader.run(written(query.limit(1), reader.engine.dialect.name))
            values |= {node.name: plain_value(rows.iat[0, 0]) for node in test.find_all(exp.Placeholder) if len(rows)}
    return values


def _tests(read: ReadStatement) -> list[tuple[exp.Expr, list[SourceColumn]]]:
    """The comparisons of columns of one table with parameters, and the columns in their order."""
    nodes = read.tree.find_all(exp.Placeholder)
    tests = [next((one for one in ancestors(node) if isinstance(one, _TESTS)), None) for node in nodes]
    found: list[tuple[exp.Expr, list[SourceColumn]]] = []
    for test in {id(one): one for one in tests if one is not None}.values():
        columns = list(test.find_all(exp.Column))
        sources = [source for one in columns if (source := read.source(one, one.parent_select, follows=True))]
        is_plain = not test.find(exp.Query) and not aggregates(test) and len(sources) == len(columns)
        if is_plain and len({source.table for source in sources}) == 1:
            found.append((test, sources))
    return found


def _has_row(test: exp.Expr, sources: Sequence[SourceColumn], reader: Reader) -> bool:
    """Whether a comparison is true of a row of its table."""
    query = one_row(_table(sources[0], reader), _alone(test, sources))
    with suppress(UnsafeSQL, SQLFailed):  # such as a text where there are numbers
        return len(reader.run(written(query, reader.engine.dialect.name))) > 0
    return False


def _no_row(test: exp.Expr, source: SourceColumn, reader: Reader) -> str:
    _, holds = column_texts(reader.corpus, reader.corpus.profile(source.table))[source.column]
    facts = f"no row of {source.table} has {written(test, reader.engine.dialect.name)}"
    return f"{facts}; {source.column} holds {holds or 'other values'}. Give a value as it is stored, or another answer"


def _table(source: SourceColumn, reader: Reader) -> exp.Expr:
    return table_of(next(name for name, id in reader.tables.items() if id == source.table))


def _alone(part: exp.Expr, sources: Sequence[SourceColumn]) -> exp.Expr:
    """A part of a comparison with the table's own columns, without its alias."""
    whole = exp.Paren(this=part.copy())
    for node, source in zip(list(whole.find_all(exp.Column)), sources, strict=True):
        node.replace(column_of(source.column))
    return whole.this  # type: ignore[no-any-return]


def _written(tree: exp.Expr, values: Values, reader: Reader) -> str:
    return written(exp.replace_placeholders(tree, **values), reader.engine.dialect.name)


def _other_form(value: Any) -> Any:
    """A number as a text, and a text as a number if it is one."""
    if not isinstance(value, str):
        return f"{value:.15g}"
    with suppress(ValueError):
        return float(value) if "." in value else int(value)
    return value
