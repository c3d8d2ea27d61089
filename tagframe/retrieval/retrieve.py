"""``retrieve_tables``: finds the tables of a corpus that answer a question together."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from tagframe import config, logs
from tagframe.config import SearchSettings
from tagframe.corpus import Corpus, vectors_of
from tagframe.corpus.corpus import statements_of
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.statements import Statement
from tagframe.corpus.vectors import VectorStore
from tagframe.embed import get_embedder
from tagframe.errors import EmptyCorpus, InvalidArgument, TableNotFound, did_you_mean
from tagframe.keys import evidence_share
from tagframe.retrieval.calibration import unfitted
from tagframe.retrieval.cell_values import ValueHit, cells_of
from tagframe.retrieval.families import meant, twins_of
from tagframe.retrieval.form import Form, Variant, note_of
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.joinability import Omega
from tagframe.retrieval.learned import known_of, told
from tagframe.retrieval.method import Prepared
from tagframe.retrieval.methods import METHODS, Method, method_named
from tagframe.retrieval.methods.greedy import GreedyWeights
from tagframe.retrieval.methods.murre import searching
from tagframe.retrieval.problem import LINKED, Floats, JarWeights, Selection
from tagframe.retrieval.question import LONGEST, Question
from tagframe.retrieval.read_cells import with_names_read
from tagframe.retrieval.retrieved import RetrievedTables, TableHit
from tagframe.retrieval.signals import Evidence

if TYPE_CHECKING:
    from tagframe.lm import LM, Quote


DEFAULT_K = 5
"""The number of tables that a method returns if k is not given and the method cannot choose k."""


class RetrieveOptions(SearchSettings, total=False):
    """The keywords that :func:`retrieve_tables` shares with the methods of that name on a corpus and a frame."""

    k: int | Literal["auto"] | None
    method: str | Method[Any, Any] | None
    evidence: str
    decomposition: Sequence[str] | None
    coarse: Mapping[str, float] | None
    confidence: float | None
    refine: bool
    decompose: bool
    as_printed: bool
    variant: Variant | None
    weights: str | JarWeights | GreedyWeights | None
    omega: Omega | None
    candidates: int | None
    covered_at: float | None
    beam: int | None
    hops: int | None


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
    method: str | Method[Any, Any] | None = None,
    anchor: str | None = None,
    evidence: str = "",
    decomposition: Sequence[str] | None = None,
    coarse: Mapping[str, float] | None = None,
    confidence: float | None = None,
    refine: bool = False,
    decompose: bool = False,
    as_printed: bool = False,
    variant: Variant | None = None,
    weights: str | JarWeights | GreedyWeights | None = None,
    omega: Omega | None = None,
    candidates: int | None = None,
    covered_at: float | None = None,
    beam: int | None = None,
    hops: int | None = None,
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
            "auto" returns the smallest set that is complete with the probability ``confidence``; all other methods
            return five tables.
        method: "auto" (a fitted posterior over sets of tables, the default), "greedy" (iterative join-aware
            retrieval), "exact" (the optimum of JAR's program, by branch and bound), "mip" (the same program, with a
            solver; these three in our form, unless ``as_printed``), "murre" (hops of retrieving and rewriting), "crush"
            (tables that cover an imagined schema), or a baseline that ranks tables one by one: "dense" (cosine of
            embeddings), "lexical" (BM25), "hybrid" (their sum). Or a :class:`~tagframe.retrieval.Method` of your own,
            or the name of a registered one.
        anchor: id of a table that is in the set already; the join plan starts from its rows.
        evidence: what words of the question mean in these data, in a sentence ("eligible means NumGE1500 > 0", as in
            BIRD). Tables are searched for with the question and its evidence; the result keeps the question alone.
        decomposition: the question's sub-queries (``concept:attribute``), if you know them; for "crush", the tables of
            an imagined schema (``table(column, column)``). If None, rules or a language model decompose the question.
        coarse: relevance of tables by id, from your own scorer, instead of the embedder's. Tables that it does not name
            have 0. All methods take it except "auto" and "murre".
        confidence: for ``k="auto"``, the probability with which the tables must be complete; 0.9 if None.
            ``found.confidence`` is the probability that they reach.
        refine: for the method "auto": a model takes a second look. It reads the best candidates in one call, and says
            which are needed and what is missing. Missing tables are searched for, and the model is asked once more. Its
            answer is added to the other evidence.
        decompose: whether the configured model decomposes the question. A model is asked only for this, for
            ``refine``, and by the methods that work with a model's answers ("murre", "crush").
        as_printed: for "greedy", "exact" and "mip": the paper's form instead of ours. The coarse relevance is the
            cosine alone, without BM25; joinability is ω alone, without link scores; the choice is among the tables of
            highest coarse relevance, without their join neighbours. ``found.note`` names the form. Each of the next
            five arguments changes one thing, in either form.
        variant: of JAR (section 4.1): "D" without joins, "F" in full, "G" where keys that the source declares have an ω
            of 1. "F" is the default as printed, "G" otherwise.
        weights: JAR's by data set ("spider", "bird"; "fiben" has BIRD's, as none are published), greedy's (the same for
            all three), or a :class:`~tagframe.retrieval.JarWeights` or :class:`~tagframe.retrieval.GreedyWeights` (λ).
            The default as printed is "bird".
        omega: "text" (JAR section 3.3) or "code" (as its authors' code computes it). The default as printed is "text";
            otherwise it is ours.
        candidates: the number of tables of highest coarse relevance to choose from: 20, and 30 with the weights
            "fiben".
        covered_at: θ of iterative JAR (section 2), for "greedy": stop as soon as every sub-query is covered this well.
            None never stops before k tables.
        beam: for the method "murre": how many lists of tables are kept at each hop; 5 if None, as in the paper.
        hops: for the method "murre": the largest number of hops; 3 if None, as in the paper, or 2 without a model.
        quote: return the cost of the model calls instead; nothing is sent.
        **settings: as in :func:`tagframe.configure`, for this call.

    Raises:
        EmptyQuestion: the question has no words.
        EmptyCorpus: there is no table to search.
        InvalidArgument: an unknown keyword or method, a k below 1, a confidence that is not between 0 and 1, or an
            argument that the method does not take (``coarse``, ``confidence``, ``as_printed``, ``beam``, …).
        NotConfigured: no corpus is given or configured; or ``refine`` or ``quote`` needs a model and none is set.
        TableNotFound: the corpus does not have the anchor, or a table that ``coarse`` names.
        MissingExtra: method "mip" without the ``mip`` extra.
    """
    if isinstance(question, Corpus):
        raise InvalidArgument("the question comes first: retrieve_tables(question, corpus)")
    with config.of_call(retrieve_tables, settings):
        form = Form(as_printed, variant, weights, omega, candidates, covered_at)
        corpus = config.require_corpus(corpus)
        chosen = in_form(searching(_method(method), beam=beam, hops=hops), form)
        size = _size(k, chosen)
        _check_confidence(confidence, chosen)
        if refine and not chosen.refines:
            raise InvalidArgument(f"method {chosen.name!r} has no second look; refine= is for method 'auto'")
        search = partial(
            _retrieved, corpus, question, chosen, form, size, anchor, evidence, decomposition, coarse, confidence,
            refine, decompose or chosen.asks_model,
        )  # fmt: skip
        if quote:
            return _quoted(search, refine)
        with logs.run("retrieval", "retrieve_tables") as told:
            found = search()
            told["tables"] = len(found.tables)
            return found


def _quoted(search: Callable[..., RetrievedTables], refine: bool) -> Quote:
    from tagframe.lm import Quote, QuoteEnds, QuotingLM, get_lm, quoted_embeddings
    from tagframe.retrieval.refine import guess

    model = config.current().model("retrieve")
    quoting = None if model is None else QuotingLM(get_lm("retrieve"), guess)
    with contextlib.suppress(QuoteEnds), quoted_embeddings() as embedded:
        search(lm=quoting)
    if embedded:  # a provider would compute vectors; the other requests are found without them
        with contextlib.suppress(QuoteEnds):
            search(lm=quoting, by_words=True)
    quote = Quote() if quoting is None else quoting.quote
    if refine and quote.calls:  # the model may miss a table, and be asked once more
        quote += Quote(calls_at_most=quote.calls_at_most, dollars_at_most=quote.dollars_at_most)
    return sum(embedded, quote)


def _retrieved(
    corpus: Corpus,
    question: str,
    chosen: Method[Any, Any],
    form: Form,
    size: int | None,
    anchor: str | None,
    evidence: str,
    decomposition: Sequence[str] | None,
    coarse: Mapping[str, float] | None,
    confidence: float | None,
    refine: bool,
    decompose: bool,
    *,
    lm: LM | None = None,
    by_words: bool = False,
) -> RetrievedTables:
    asked = Question.of(f"{question} {evidence}" if evidence else question)
    if not corpus.profiles:
        raise EmptyCorpus("there is no table to search: the corpus or its catalogue is empty")
    embedder = None if by_words else get_embedder()
    anchor = None if anchor is None else corpus.profile(anchor).id
    index = index_of(corpus, embedder, anchor)
    anchored = None if anchor is None else index.position(anchor)
    if not (refine or (chosen.may_ask and decompose)):
        lm = None
    elif lm is None and (refine or config.current().model("retrieve") is not None):
        from tagframe.lm import get_lm

        lm = get_lm("retrieve")
    lacks_model = decompose and chosen.may_ask and lm is None and decomposition is None
    by_rules = "no model is configured: rules took its place" if lacks_model else ""
    asked = _taken_apart(asked, decomposition, lm if decompose else None, chosen)
    second_look = ""
    statements = statements_of(corpus)
    found = chosen.relevance(index, asked, lm) if coarse is None else _given_relevance(index, coarse, chosen)
    if isinstance(found, np.ndarray) and found.shape != (len(index.tables),):
        raise InvalidArgument(
            f"method {chosen.name!r}: relevance must have the shape ({len(index.tables)},); got {found.shape}"
        )
    is_told = coarse is not None
    if isinstance(found, Evidence):
        found = with_names_read(corpus, index, asked, found)
        found = with_learned(found, index, asked, statements, vectors_of(corpus)) if statements else found
        is_told = found.looked is not None
    if refine and lm is not None and not is_told:
        prepared, second_look = _refined(index, asked, chosen, found, lm, anchored, size)
    else:
        prepared = chosen.prepare(index, asked, found, anchored, size)
    problem = prepared.problem if confidence is None else replace(prepared.problem, confidence=confidence)
    selection = chosen.select(problem, size)
    _check_selection(selection, chosen, prepared.tables, anchored, size)
    why = reasons_for(index, asked, prepared, selection, anchored)
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
    hits = _with_twins(hits, corpus, question, anchor)
    if size is None:
        hits = _without_unmeant(hits, corpus, question)
    fitted = unfitted(embedder) if chosen.says_k else ""
    said = _form_said(chosen, form, index, prepared)
    notes = [note for note in (said, selection.note, by_rules, second_look, fitted) if note]
    available = len(index.tables) - (anchored is not None)
    if size is None and selection.confidence is not None and selection.confidence < problem.confidence:
        notes += _what_helps(index, prepared.tables, statements)
    if size is not None and size > available:
        notes.append(f"k={size}, but there are only {available} tables to choose from: all are returned")
    if (letters := len(question) + len(evidence)) > LONGEST:
        read = "the question and its evidence" if evidence else "the question"
        notes.append(f"only the first {LONGEST:,} of {letters:,} characters of {read} were read")
    anchor_id = None if anchored is None else index.tables[anchored].id
    note = "; ".join(notes)
    return RetrievedTables(question, hits, corpus, anchor_id, chosen.name, note, selection.confidence)


def _what_helps(index: RetrievalIndex, tables: Sequence[int], statements: Sequence[Statement]) -> list[str]:
    """What a user can add if only names are known of the tables."""
    if index.has_rows.any():
        return []
    found = [index.tables[table] for table in tables]
    described = any(table.description or any(column.description for column in table.columns) for table in found)
    lacking = {"descriptions": "describe"} if not described else {}
    lacking |= {"known queries": "learn"} if not statements else {}
    helps = " or ".join(f"corpus.{door}" for door in reversed(lacking.values()))
    return [f"no rows, {', '.join(f'no {what}' for what in lacking)}: {helps} would help"] if lacking else []


def _with_twins(hits: tuple[TableHit, ...], corpus: Corpus, question: str, anchor: str | None) -> tuple[TableHit, ...]:
    """Each table together with its twins, which are stacked when they are merged.

    Of a table in pieces, only those are kept that the question names, if it names any.
    """
    taken = {id for hit in hits for id in (hit.id, *hit.parts)} | {anchor}
    found = []
    for hit in hits:
        if hit.parts:
            pieces = [corpus.profile(id) for id in hit.parts]
            named = [piece.id for piece in meant(pieces, question)]
            if len(named) < len(pieces):
                said = f"the question names {' and '.join(named)} of {len(pieces)} tables of one shape"
                parts = tuple(named) if len(named) > 1 else ()
                hit = replace(hit, id=named[0], parts=parts, reasons=(*hit.reasons, said))
        parts = () if hit.parts else twins_of(corpus.profile(hit.id), corpus.profiles, question)
        new = () if anchor in parts else tuple(part for part in parts if part not in taken)
        if new:
            taken.update(new)
            said = f"stacked with {' and '.join(new)} (same columns)"
            hit = replace(hit, parts=tuple(sorted((hit.id, *new))), reasons=(*hit.reasons, said))
        found.append(hit)
    return tuple(found)


def _without_unmeant(hits: tuple[TableHit, ...], corpus: Corpus, question: str) -> tuple[TableHit, ...]:
    """The tables without those of a folder that the question does not mean: it names another one of the same name.

    ``2023/invoices.csv`` and ``2024/invoices.csv`` need not have the same columns to be alternatives.
    """
    alike: dict[tuple[str, str], list[TableProfile]] = defaultdict(list)
    for hit in hits:
        profile = corpus.profile(hit.id)
        if profile.place:
            alike[profile.place, profile.name.casefold()].append(profile)
    named = {piece.id for pieces in alike.values() for piece in meant(pieces, question)}
    return tuple(hit for hit in hits if hit.id in named or not corpus.profile(hit.id).place)


def _refined(
    index: RetrievalIndex,
    question: Question,
    method: Method[Any, Any],
    found: Evidence,
    lm: LM,
    anchored: int | None,
    k: int | None,
) -> tuple[Prepared[Any], str]:
    """The problem with a model's opinion of the best candidates, and a note on that."""
    from tagframe.retrieval.refine import AT_LEAST, CANDIDATES, HOPELESS, second_look

    wide = method.prepare(index, question, found, anchored, CANDIDATES)
    best = method.select(wide.problem, CANDIDATES).indices
    promise = wide.problem.r + np.maximum(wide.problem.learned, 0.0)
    hopeful = [at for rank, at in enumerate(best) if rank < AT_LEAST or promise[at] > HOPELESS]
    candidates = [*([] if anchored is None else [anchored]), *(wide.tables[at] for at in hopeful)]
    looked, facts, said = second_look(index, question, candidates, lm)
    found = replace(found, looked=looked, facts={**found.facts, **facts})
    return method.prepare(index, question, found, anchored, k), said


def with_learned(
    found: Evidence, index: RetrievalIndex, question: Question, statements: Sequence[Statement], vectors: VectorStore
) -> Evidence:
    """The evidence with that of earlier statements. If a person has corrected this very question, only that counts."""
    looked = told(index, statements, question)
    if looked is not None:
        return replace(found, looked=looked)
    return replace(found, known=known_of(index, statements, vectors), vector=index.vector(question))


def _method(given: str | Method[Any, Any] | None) -> Method[Any, Any]:
    if given is None:
        return next(iter(METHODS.values()))
    if isinstance(given, Method):
        return given
    if not isinstance(given, str):
        raise InvalidArgument(f"method must be a method's name, or a tagframe.retrieval.Method; got {given!r:.80}")
    return method_named(given)


def _check_selection(
    selection: Selection, method: Method[Any, Any], tables: Sequence[int], anchored: int | None, k: int | None
) -> None:
    """Refuse a choice that no result can be made of."""
    if not isinstance(selection, Selection):
        raise InvalidArgument(f"method {method.name!r}: select must return a Selection; got {selection!r:.80}")
    most, least = len(tables) if k is None else k, int(anchored is None)
    if (
        not least <= len(selection.indices) <= most
        or not all(0 <= position < len(tables) for position in selection.indices)
        or any(tables[position] == anchored for position in selection.indices)
    ):
        raise InvalidArgument(
            f"method {method.name!r} must choose {least} to {most} of the positions 0 to {len(tables) - 1}, without "
            f"the anchor's; it chose {selection.indices}"
        )


def in_form(method: Method[Any, Any], form: Form) -> Method[Any, Any]:
    """The method in a form of its paper.

    Raises:
        InvalidArgument: the method has no such form.
    """
    if method.form is not None:
        return method.form(form)
    if form.given:
        others = ", ".join(repr(other.name) for other in METHODS.values() if other.form is not None)
        raise InvalidArgument(f"method {method.name!r} takes no {form.given[0]}=; these methods do: {others}")
    return method


def _form_said(method: Method[Any, Any], form: Form, index: RetrievalIndex, prepared: Prepared[Any]) -> str:
    if form.given:
        lacking = "; no embedder: BM25 in place of the cosine" if form.as_printed and index.embedder is None else ""
        return note_of(method.said) + lacking
    has_keys = index.declared_keys and any(index.tables[table].foreign_keys for table in prepared.tables)
    return "variant G: declared keys have an ω of 1" if method.said and has_keys else ""


def _size(k: object, method: Method[Any, Any]) -> int | None:
    if k is None or k == "auto":
        return None if method.says_k else DEFAULT_K
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise InvalidArgument(f'k must be a number of tables, at least 1, or "auto"; got {k!r}')
    return int(k)


def _check_confidence(confidence: object, method: Method[Any, Any]) -> None:
    if confidence is None:
        return
    if not method.says_k:
        raise InvalidArgument(f"method {method.name!r} computes no confidence; confidence= is for method 'auto'")
    is_number = isinstance(confidence, (int, float, np.number)) and not isinstance(confidence, bool)
    if not is_number or not 0 < float(confidence) < 1:  # type: ignore[arg-type]
        raise InvalidArgument(f"confidence must be a probability between 0 and 1, such as 0.9; got {confidence!r}")


def _taken_apart(question: Question, given: Sequence[str] | None, lm: LM | None, method: Method[Any, Any]) -> Question:
    if isinstance(given, str):
        raise InvalidArgument(
            f"decomposition must be a list of sub-queries, such as [{given!r}]; got the text {given!r}"
        )
    if method.decomposer is None:
        return question
    if given is not None:
        return question.with_subqueries(method.decomposer.read(given), "given")
    return question if lm is None else method.decomposer.ask(lm, question)


def _given_relevance(index: RetrievalIndex, given: Mapping[str, float], method: Method[Any, Any]) -> Floats:
    if not method.takes_coarse:
        others = [other.name for other in METHODS.values() if other.takes_coarse]
        raise InvalidArgument(f"method {method.name!r} does not take coarse=; these methods do: {', '.join(others)}")
    position = {table.id: number for number, table in enumerate(index.tables)}
    relevance = np.zeros(len(position))
    for table, value in given.items():
        if table not in position:
            raise TableNotFound(f"coarse= names no table {table!r} in {did_you_mean(str(table), position)}")
        relevance[position[table]] = value
    return relevance


_MOST = 3


def reasons_for(
    index: RetrievalIndex, question: Question, prepared: Prepared[Any], selection: Selection, anchored: int | None
) -> list[list[str]]:
    """The reasons of each chosen table, in the order of the selection: its words, values, columns and joins."""
    chosen = [prepared.tables[position] for position in selection.indices]
    together = chosen if anchored is None else [*chosen, anchored]
    hits = () if prepared.evidence is None else prepared.evidence.values
    return [
        _words(index, table, question.stems)
        + _values(index, table, hits)
        + _columns(index, question, table, prepared)
        + _joins(index, table, together)
        for table in chosen
    ]


def _values(index: RetrievalIndex, table: int, hits: Sequence[ValueHit]) -> list[str]:
    found = []
    held = [hit for hit in hits if table in hit.tables]
    for hit, (column, words) in zip(held, cells_of(hits, table, index.tables[table]), strict=True):
        here = [other for other in hit.tables if index.database[other] == index.database[table]]
        # "found", since only a sample of a large column's values is known
        alone = ", found in no other table" if hit.is_name and here == [table] else ""
        meant = "" if hit.text in (words, words[1:-1]) else f" (for {hit.text!r})"
        found.append(f"{words!r} is in {column}{meant}{alone}")
    return found[:_MOST]


def _words(index: RetrievalIndex, table: int, asked: Sequence[str]) -> list[str]:
    shared = index.lexical.words_of(table, asked)
    return [f"named in the question: {', '.join(shared[:_MOST])}"] if shared else []


def _columns(index: RetrievalIndex, question: Question, table: int, prepared: Prepared[Any]) -> list[str]:
    columns = index.tables[table].columns
    if prepared.subqueries and columns:
        _, (scores,) = index.fine(prepared.subqueries, [table])
        query, column = divmod(int(scores.argmax()), scores.shape[1])
        asked, value = prepared.subqueries[query], float(scores[query, column])
    elif prepared.evidence is not None and (fit := index.best_fit(question, table)) is not None:
        asked, column, value = fit
    else:
        return []
    return [f"{columns[column].name} fits {asked!r} ({value:.2f})"] if value > 0 else []


def _joins(index: RetrievalIndex, table: int, together: Sequence[int]) -> list[str]:
    found = []
    for other in together:
        key = index.links.best(table, other) if other != table else None
        if key is not None and evidence_share(key.score) >= LINKED:
            columns, other_id = (
                (key.left_columns, key.right_table)
                if key.left_table == index.tables[table].id
                else (key.right_columns, key.left_table)
            )
            found.append((-key.score, f"joins {other_id} on {', '.join(columns)}"))
    return [text for _, text in sorted(found)[:_MOST]]
