"""Methods of a frame from packages that are slow to import: ``df.tag.retrieve_tables(question)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack, overload

import pandas as pd

from tagframe import config, results, retrieval
from tagframe.corpus import Corpus, corpus_of, with_frame
from tagframe.doors import shown_as
from tagframe.errors import InvalidArgument
from tagframe.lm import Quote
from tagframe.retrieval import RetrievedTables, RetrieveOptions

if TYPE_CHECKING:
    from tagframe.accessor import TagAccessor


@overload
def retrieve_tables(
    self: TagAccessor,
    question: str,
    *,
    corpus: Corpus | None = ...,
    quote: Literal[False] = ...,
    **options: Unpack[RetrieveOptions],
) -> RetrievedTables: ...
@overload
def retrieve_tables(
    self: TagAccessor,
    question: str,
    *,
    corpus: Corpus | None = ...,
    quote: Literal[True],
    **options: Unpack[RetrieveOptions],
) -> Quote: ...
@overload
def retrieve_tables(
    self: TagAccessor, question: str, *, corpus: Corpus | None = ..., quote: bool, **options: Unpack[RetrieveOptions]
) -> RetrievedTables | Quote: ...
@shown_as(retrieval.retrieve_tables, "corpus", "anchor")
def retrieve_tables(
    self: TagAccessor,
    question: str,
    *,
    corpus: Corpus | None = None,
    quote: bool = False,
    **options: Unpack[RetrieveOptions],
) -> RetrievedTables | Quote:
    """Find the tables that answer a question together; see :func:`tagframe.retrieve_tables`.

    ``corpus.tables`` (filtered or not) is the list of tables to search. Any other frame is the *anchor*: the tables
    found answer the question together with it, as it is now, and ``k`` does not count it. A frame that was taken from a
    table of the corpus represents that table.
    """
    if "anchor" in options:
        raise InvalidArgument("df.tag.retrieve_tables has no keyword 'anchor': the frame is the anchor")
    frame = self._frame
    catalogue = corpus_of(frame)
    if catalogue is not None:
        return retrieval.retrieve_tables(question, catalogue, quote=quote, **options)
    search = config.require_corpus(corpus)
    search, anchor = with_frame(search, frame, _table_of(frame, search))
    return retrieval.retrieve_tables(question, search, anchor=anchor, quote=quote, **options)


def _table_of(frame: pd.DataFrame, corpus: Corpus) -> str | None:
    """The table of the corpus from which the frame was taken, if it still has any of that table's columns."""
    table = results.recall(frame, "table")
    if table is None or table not in corpus:
        return None
    columns = {column.name for column in corpus.profile(table).columns}
    return table if columns & {str(column) for column in frame.columns} else None
