"""What a corpus can do by rooms above it: ``corpus.retrieve_tables(question)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Unpack, overload

from tagframe import config, retrieval
from tagframe.config import CallSettings, SearchSettings
from tagframe.corpus import Corpus
from tagframe.learning import forget, learn
from tagframe.lm import Quote
from tagframe.retrieval import RetrievedTables, RetrieveOptions

if TYPE_CHECKING:
    from tagframe.answer.annotating import Annotated

__all__ = ["annotate", "forget", "learn", "retrieve_tables"]


@overload
def retrieve_tables(
    self: Corpus,
    question: str,
    *,
    anchor: str | None = ...,
    quote: Literal[False] = ...,
    **options: Unpack[RetrieveOptions],
) -> RetrievedTables: ...
@overload
def retrieve_tables(
    self: Corpus, question: str, *, anchor: str | None = ..., quote: Literal[True], **options: Unpack[RetrieveOptions]
) -> Quote: ...
@overload
def retrieve_tables(
    self: Corpus, question: str, *, anchor: str | None = ..., quote: bool, **options: Unpack[RetrieveOptions]
) -> RetrievedTables | Quote: ...
def retrieve_tables(
    self: Corpus,
    question: str,
    *,
    k: int | Literal["auto"] | None = None,
    method: str | None = None,
    anchor: str | None = None,
    decomposition: Sequence[str] | None = None,
    coarse: Mapping[str, float] | None = None,
    confidence: float | None = None,
    refine: bool = False,
    decompose: bool = False,
    quote: bool = False,
    **settings: Unpack[SearchSettings],
) -> RetrievedTables | Quote:
    """The tables of this corpus that answer a question together; see :func:`tagframe.retrieve_tables`.

    Args:
        question: in plain language.
        k: how many tables; "auto" (or None) lets the default method say how many the question needs.
        method: the selector, ``"greedy"``, ``"dense"``, ….
        anchor: id of a table that is in the set already; the join plan starts from its rows.
        decomposition: the question's sub-queries (``concept:attribute``), where they are known.
        coarse: relevance of tables by id, from a scorer of your own.
        confidence: how sure ``k="auto"`` is to be that nothing that is needed is missing; 0.9 where None.
        refine: a model's second look at the best candidates: one call, or two where it misses a table.
        decompose: whether the configured model takes the question apart.
        quote: what the model's part would cost instead, sending nothing.
        **settings: as in :func:`tagframe.configure`, for this call.

    Raises:
        EmptyQuestion: the question has no words.
        EmptyCorpus: there is no table to search.
        InvalidArgument: no such keyword, or a value that it cannot have.
        NotConfigured: a second look or a quote, and no model for it.
    """
    with config.of_call(retrieve_tables, settings):
        return retrieval.retrieve_tables(
            question,
            self,
            k=k,
            method=method,
            anchor=anchor,
            decomposition=decomposition,
            coarse=coarse,
            confidence=confidence,
            refine=refine,
            decompose=decompose,
            quote=quote,
        )


@overload
def annotate(self: Corpus, *, quote: Literal[False] = ..., **settings: Unpack[CallSettings]) -> Annotated: ...
@overload
def annotate(self: Corpus, *, quote: Literal[True], **settings: Unpack[CallSettings]) -> Quote: ...
def annotate(self: Corpus, *, quote: bool = False, **settings: Unpack[CallSettings]) -> Annotated | Quote:
    """Have a model write what each table holds, and each column whose name does not say it.

    It reads names, types, a few values of columns that are not hidden, keys, and what was learned of statements. What
    it writes is searched and shown to models like a description, begins with "≈", and stands below what a person says.
    A table that is annotated is not asked about again.

    Args:
        quote: what it would cost instead, sending nothing.
        **settings: as in :func:`tagframe.configure`, for this call: ``lm="openai/gpt-4.1"``.

    Returns:
        How many tables and columns it wrote of, and of which tables it gave no usable answer.

    Raises:
        NotConfigured: there is no model.
        ReplayMiss: ``lm="replay:STORE"`` lacks answers: the prompts are noted in it, for ``tagframe lm export``.
    """
    from tagframe.answer.annotating import annotated, quoted
    from tagframe.lm import get_lm

    with config.of_call(annotate, settings):
        model = get_lm()
        return quoted(self, model) if quote else annotated(self, model)
