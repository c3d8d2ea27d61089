"""``retrieve_tables``: finds the tables of a corpus that answer a question together."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from tagframe import config, logs
from tagframe.config import SearchSettings
from tagframe.corpus import Corpus, vectors_of
from tagframe.corpus.corpus import statements_of, without_views
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.statements import Statement
from tagframe.corpus.vectors import VectorStore
from tagframe.embed import get_embedder
from tagframe.errors import EmptyCorpus, InvalidArgument
from tagframe.retrieval.cell_values import cells_of
from tagframe.retrieval.checked_plan import ModelPlan, checked, settled
from tagframe.retrieval.families import are_copies, named_pieces, twins_of
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.learned import correction_of, known_of
from tagframe.retrieval.mentioned_names import has_name
from tagframe.retrieval.method import Prepared
from tagframe.retrieval.methods import Method, method_of
from tagframe.retrieval.problem import Selection
from tagframe.retrieval.question import LONGEST, Question
from tagframe.retrieval.reasons import reasons_for
from tagframe.retrieval.retrieved import RetrievedTables, TableHit
from tagframe.retrieval.signals import Evidence

if TYPE_CHECKING:
    from tagframe.lm import LM, Quote


DEFAULT_K = 5
"""The number of tables that a method returns if k is not given and the method cannot choose k."""


class RetrieveOptions(SearchSettings, total=False):
    """The keywords that :func:`retrieve_tables` shares with the methods of that name on a corpus and a frame."""

    k: int | Literal["auto"] | None
    method: str | Method | None
    evidence: str


@overload
def retrieve_tables(
    question: str,
    corpus: Corpus | None = ...,
    *,
    anchor: str | None = ...,
    quote: Literal[False] = ...,
    **options: Unpack[RetrieveOptions],
) -> RetrievedTables: ...
@overload
def retrieve_tables(
    question: str,
    corpus: Corpus | None = ...,
    *,
    anchor: str | None = ...,
    quote: Literal[True],
    **options: Unpack[RetrieveOptions],
) -> Quote: ...
@overload
def retrieve_tables(
    question: str,
    corpus: Corpus | None = ...,
    *,
    anchor: str | None = ...,
    quote: bool,
    **options: Unpack[RetrieveOptions],
) -> RetrievedTables | Quote: ...
def retrieve_tables(
    question: str,
    corpus: Corpus | None = None,
    *,
    k: int | Literal["auto"] | None = None,
    method: str | Method | None = None,
    anchor: str | None = None,
    evidence: str = "",
    quote: bool = False,
    **settings: Unpack[SearchSettings],
) -> RetrievedTables | Quote:
    """Find the tables that answer a question together.

    >>> import pandas as pd, tagframe as tf
    >>> singers = pd.DataFrame({"singer_id": [1, 2], "name": ["Ann", "Bo"]})
    >>> concerts = pd.DataFrame({"concert_id": [1, 2], "singer_id": [1, 1], "year": [2020, 2021]})
    >>> parts = pd.DataFrame({"part": ["bolt"], "price": [1.5]})
    >>> corpus = tf.open_corpus({"music.singer": singers, "music.concert": concerts, "shop.part": parts})
    >>> found = tf.retrieve_tables("Which singers gave a concert in 2020?", corpus, k=2)
    >>> sorted(hit.id for hit in found.tables)
    ['music.concert', 'music.singer']

    ``corpus.retrieve_tables(question)`` is the same; ``frame.tag.retrieve_tables(question)`` starts from that frame.

    Args:
        question: in plain language.
        corpus: the corpus to search; the configured corpus if None.
        k: how many tables, the anchor not counted; all tables if the corpus has fewer. With "auto" (or None) the method
            "auto" returns the smallest set that is complete with the probability of its ``confidence``, and more among
            many tables; all other methods return five tables.
        method: one of :mod:`tagframe.methods`, with its parameters (``tf.methods.JAR(as_printed=True)``), or its name
            for the defaults: "auto" (a fitted posterior over sets of tables, the default), "jar" (the optimum of JAR's
            program, by branch and bound), "mip" (the same program, with a solver), "iterative-jar", "murre" (hops of
            retrieving and rewriting), "crush" (tables that cover an imagined schema), or a baseline that ranks tables
            one by one: "dense" (cosine of embeddings), "lexical" (BM25), "hybrid" (their sum). A method of your own is
            a :class:`~tagframe.retrieval.Method`, or the name of a registered one.
        anchor: id of a table that is in the set already; the join plan starts from its rows.
        evidence: what words of the question mean in these data, in a sentence ("eligible means NumGE1500 > 0", as in
            BIRD). Tables are searched for with the question and its evidence; the result keeps the question alone.
        quote: return the cost of the model calls instead; nothing is sent.
        **settings: as in :func:`tagframe.configure`, for this call.

    Raises:
        EmptyQuestion: the question has no words.
        EmptyCorpus: there is no table to search.
        InvalidArgument: an unknown keyword or method, or a k below 1.
        NotConfigured: no corpus is given or configured; or the method needs a model and none is set.
        TableNotFound: the corpus does not have the anchor, or a table that a method's ``coarse`` names.
        MissingExtra: method "mip" without the ``mip`` extra.
    """
    if isinstance(question, Corpus):
        raise InvalidArgument("the question comes first: retrieve_tables(question, corpus)")
    with config.of_call(retrieve_tables, settings):
        corpus, chosen = config.require_corpus(corpus), method_of(method)
        search = Search(corpus, question, chosen, _size(k, chosen), anchor, evidence)
        if quote:
            return _quoted(search)
        with logs.run("retrieval", "retrieve_tables") as facts:
            tables = replace(search, lm=_model(chosen)).run()
            facts["tables"] = len(tables.tables)
            return tables


def _size(k: object, method: Method) -> int | None:
    if k is None or k == "auto":
        return None if method.chooses_k else DEFAULT_K
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise InvalidArgument(f'k must be a number of tables, at least 1, or "auto"; got {k!r}')
    return int(k)


def _model(method: Method) -> LM | None:
    """The model that a method asks; None if it asks none, or can do without and none is configured."""
    may_ask = method.asks_model and config.current().model("retrieve") is not None
    if not (method.needs_model or may_ask):
        return None
    from tagframe.lm import get_lm

    return get_lm("retrieve")


def _quoted(search: Search) -> Quote:
    from tagframe.embed import quoted_embeddings
    from tagframe.lm import Quote, QuoteEnds, QuotingLM
    from tagframe.retrieval.model_plan import guess

    model = _model(search.method)
    quoting = None if model is None else QuotingLM(model, guess)
    with contextlib.suppress(QuoteEnds), quoted_embeddings() as embedded:
        replace(search, lm=quoting).run()
    if embedded:  # a provider would compute vectors; the other requests are found without them
        with contextlib.suppress(QuoteEnds):
            replace(search, lm=quoting, by_words=True).run()
    quote = Quote() if quoting is None else quoting.quote
    return sum(embedded, quote)


@dataclass(frozen=True, eq=False)
class Search:
    """A question on its way to its tables: what every step reads.

    Attributes:
        corpus: to search.
        text: the question as asked.
        method: the selector.
        k: how many tables; None if the method decides.
        anchor: id of the table that is in the set already, if there is one.
        evidence: what words of the question mean.
        lm: the model that the method asks; None for rules.
        by_words: whether nothing is embedded.
    """

    corpus: Corpus
    text: str
    method: Method
    k: int | None = None
    anchor: str | None = None
    evidence: str = ""
    lm: LM | None = None
    by_words: bool = False

    @cached_property
    def index(self) -> RetrievalIndex:
        """The index of the corpus, without views of its tables, unless the question has their names."""
        embedder = None if self.by_words else get_embedder()
        anchor = None if self.anchor is None else self.corpus.profile(self.anchor).id
        named = {one.id for one in self.corpus.profiles if one.computed_from and has_name(self.text, one.name)}
        return index_of(without_views(self.corpus, {*named, anchor or ""}), embedder, anchor)

    @cached_property
    def anchored(self) -> int | None:
        """The position of the anchor in the index."""
        return None if self.anchor is None else self.index.position(self.corpus.profile(self.anchor).id)

    def run(self) -> RetrievedTables:
        """All steps: the question, the relevance of every table, the problem over some of them, the choice."""
        question = Question.of(f"{self.text} {self.evidence}" if self.evidence else self.text)
        if not self.corpus.profiles:
            raise EmptyCorpus("there is no table to search: the corpus or its catalogue is empty")
        index, method = self.index, self.method
        question = method.read(question, self.lm)
        relevance = self._informed(question, method.relevance(index, question, self.lm))
        prepared = method.prepare(index, question, relevance, self.anchored, self.k)
        selection = method.select(prepared.problem, self.k)
        _check_selection(selection, self, prepared)
        hits = _hits(self, question, prepared, selection)
        note = "; ".join(filter(None, _notes(self, prepared, selection)))
        anchor = None if self.anchored is None else index.tables[self.anchored].id
        found = RetrievedTables(self.text, hits, self.corpus, anchor, method.name, note, selection.confidence)
        plan = None if prepared.evidence is None else prepared.evidence.plan
        return found if plan is None else self._planned(found, plan)

    def _planned(self, found: RetrievedTables, plan: ModelPlan) -> RetrievedTables:
        """The tables with what counts leave of a model's plan."""
        groups = {id: hit.parts for hit in found.tables for id in hit.parts}
        proposal, conditions = checked(self.corpus, plan, groups)
        found = settled(found, proposal.among(found.members), plan, conditions)
        remarks = () if found.proposal is None else found.proposal.remarks
        return replace(found, note="; ".join([found.note, *remarks]))

    def _informed(self, question: Question, relevance: Any) -> Any:
        """The relevance with what earlier statements and a model's plan add, if it is an ``Evidence``."""
        if isinstance(relevance, np.ndarray) and relevance.shape != (len(self.index.tables),):
            raise InvalidArgument(
                f"method {self.method.name!r}: relevance must have the shape ({len(self.index.tables)},); "
                f"got {relevance.shape}"
            )
        if not isinstance(relevance, Evidence):
            return relevance
        evidence = relevance
        if statements := statements_of(self.corpus):
            evidence = with_learned(relevance, self.index, question, statements, vectors_of(self.corpus))
        if not self.method.needs_model or self.lm is None or evidence.opinion is not None:
            return evidence
        from tagframe.retrieval.model_plan import with_model_plan

        return with_model_plan(self.method, self.corpus, self.index, question, evidence, self.lm, self.anchored)


def with_learned(
    evidence: Evidence, index: RetrievalIndex, question: Question, statements: Sequence[Statement], vectors: VectorStore
) -> Evidence:
    """The evidence with that of earlier statements. If a person has corrected this very question, only that counts."""
    correction = correction_of(index, statements, question)
    if correction is not None:
        return replace(evidence, opinion=correction)
    return replace(evidence, known=known_of(index, statements, vectors), vector=index.vector(question))


def _check_selection(selection: Selection, search: Search, prepared: Prepared[Any]) -> None:
    """Refuse a choice that no result can be made of."""
    method, tables, anchored = search.method, prepared.tables, search.anchored
    if not isinstance(selection, Selection):
        raise InvalidArgument(f"method {method.name!r}: select must return a Selection; got {selection!r:.80}")
    most, least = len(tables) if search.k is None else search.k, int(anchored is None)
    if (
        not least <= len(selection.indices) <= most
        or not all(0 <= position < len(tables) for position in selection.indices)
        or any(tables[position] == anchored for position in selection.indices)
    ):
        raise InvalidArgument(
            f"method {method.name!r} must choose {least} to {most} of the positions 0 to {len(tables) - 1}, without "
            f"the anchor's; it chose {selection.indices}"
        )


def _hits(search: Search, question: Question, prepared: Prepared[Any], selection: Selection) -> tuple[TableHit, ...]:
    """The chosen tables with their reasons; pieces and twins of a table are one."""
    index = search.index
    why = reasons_for(index, question, prepared, selection, search.anchored)
    values = () if prepared.evidence is None else prepared.evidence.values
    chances: Sequence[float | None]
    chances = [None] * len(prepared.tables) if selection.probability is None else [*map(float, selection.probability)]
    hits = tuple(
        TableHit(
            index.tables[table].id, score, tuple(reasons), chances[position], index.families[table].parts,
            cells_of(values, table, index.tables[table]),
        )
        for position, score, reasons in zip(selection.indices, map(float, selection.score), why, strict=True)
        for table in [prepared.tables[position]]
    )  # fmt: skip
    anchor = None if search.anchored is None else index.tables[search.anchored].id
    if prepared.evidence is not None and (plan := prepared.evidence.plan) is not None:
        return tuple(_of_plan(hit, plan) for hit in hits)
    hits = _with_twins(hits, search.corpus, search.text, anchor)
    return hits if search.k is not None else _without_unnamed(hits, search.corpus, search.text)


def _of_plan(hit: TableHit, plan: ModelPlan) -> TableHit:
    """A table as a model's plan has it, with those of its pieces that the plan names."""
    named = tuple(id for id in plan.ids if id in (hit.id, *hit.parts))
    if not named:
        return hit
    parts = named if len(named) > 1 else ()
    return replace(hit, id=named[0], parts=parts, reasons=("the model's plan has it", *hit.reasons))


def _notes(search: Search, prepared: Prepared[Any], selection: Selection) -> list[str]:
    """What a user should know of the result, "" for what does not apply."""
    index, method = search.index, search.method
    notes = [selection.note, method.note(index, prepared)]
    if method.asks_model and search.lm is None:
        notes.append("no model is configured: rules took its place")
    if prepared.evidence is not None:
        notes.append(prepared.evidence.note)
    available = len(index.tables) - (search.anchored is not None)
    if search.k is not None and search.k > available:
        notes.append(f"k={search.k}, but there are only {available} tables to choose from: all are returned")
    if (letters := len(search.text) + len(search.evidence)) > LONGEST:
        read = "the question and its evidence" if search.evidence else "the question"
        notes.append(f"only the first {LONGEST:,} of {letters:,} characters of {read} were read")
    return notes


def _with_twins(hits: tuple[TableHit, ...], corpus: Corpus, question: str, anchor: str | None) -> tuple[TableHit, ...]:
    """Each table together with its twins, which are stacked when they are merged.

    Of a table in pieces, only those are kept that the question names, if it names any.
    """
    taken = {id for hit in hits for id in (hit.id, *hit.parts)} | {anchor}
    whole = []
    for hit in hits:
        if hit.parts:
            pieces = [corpus.profile(id) for id in hit.parts]
            named = [piece.id for piece in named_pieces(pieces, question)]
            if len(named) < len(pieces):
                reason = f"the question names {' and '.join(named)} of {len(pieces)} tables of one shape"
                parts = tuple(named) if len(named) > 1 else ()
                hit = replace(hit, id=named[0], parts=parts, reasons=(*hit.reasons, reason))
        parts = () if hit.parts else twins_of(corpus.profile(hit.id), corpus.profiles, question)
        new = () if anchor in parts else tuple(part for part in parts if part not in taken)
        if new:
            taken.update(new)
            reason = f"stacked with {' and '.join(new)} (same columns)"
            hit = replace(hit, parts=tuple(sorted((hit.id, *new))), reasons=(*hit.reasons, reason))
        whole.append(hit)
    return tuple(whole)


def _without_unnamed(hits: tuple[TableHit, ...], corpus: Corpus, question: str) -> tuple[TableHit, ...]:
    """The tables without those of a folder that the question does not mean: it names another one of the same name.

    ``2023/invoices.csv`` and ``2024/invoices.csv`` are alternatives with most of their columns in common. The sheets
    ``Details`` of two workbooks may be about different things.
    """
    alike: dict[tuple[str, str], list[TableProfile]] = defaultdict(list)
    for hit in hits:
        profile = corpus.profile(hit.id)
        if profile.place:
            alike[profile.place, profile.name.casefold()].append(profile)
    gone = set[str]()
    for pieces in alike.values():
        named = named_pieces(pieces, question)
        gone |= {one.id for one in pieces if one not in named and any(are_copies(one, other) for other in named)}
    return tuple(hit for hit in hits if hit.id not in gone)
