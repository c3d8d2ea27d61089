"""Tables that a statement names though they were not shown: it may read them, and the answer says so."""

from __future__ import annotations

from dataclasses import replace

from tagframe.answer.guard import Reader
from tagframe.answer.lm_sql import check_staged, has_functions
from tagframe.answer.query import Query
from tagframe.answer.schema_text import describe_tables
from tagframe.corpus import Corpus
from tagframe.errors import SQLFailed
from tagframe.operators.cells import fence


def compiled(sql: str, reader: Reader, *, may_add_tables: bool = True) -> str:
    """A checked statement, with or without LM functions.

    Args:
        sql: the statement.
        reader: of the tables that were shown.
        may_add_tables: whether it may read other tables of the corpus, too (:meth:`Reader.with_extra_tables`).

    Raises:
        UnsafeSQL: it is not a single SELECT over these tables.
        SQLFailed: it does not compile; the message has the schema of tables that were not shown.
    """
    wider = reader.with_extra_tables(sql) if may_add_tables else reader
    try:
        return check_staged(sql, wider) if has_functions(sql) else wider.compile(sql)
    except SQLFailed as error:
        new = {name: id for name, id in wider.tables.items() if name not in reader.tables}
        if not new:
            raise
        schema = fence(describe_tables(wider.corpus, new, wider.engine.dialect.name), "tables")
        raise SQLFailed(f"{error}. The statement names tables that were not shown:\n{schema}") from error


def with_extra_tables(query: Query, corpus: Corpus) -> Query:
    """A query with the tables that it reads beyond those that were shown; an assumption names them."""
    tables = Reader(corpus, query.tables).with_extra_tables(query.sql).tables
    new = [f"{id} is read, which was not shown" for name, id in tables.items() if name not in query.tables]
    return replace(query, tables=tables, assumptions=(*query.assumptions, *new)) if new else query
