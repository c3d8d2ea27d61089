"""MURRE: hops of retrieving and rewriting the question for what is still missing, with beam search.

Zhang, Wang, Dou, Zhu, Che: *Multi-Hop Table Retrieval for Open-Domain Text-to-SQL* (arXiv 2402.10666, 2024), section
2.1 to section 2.4, algorithm 1, section 3.1 and section 3.3; sections and tables here are those of this version. Its
final version is *MURRE: Multi-Hop Table Retrieval with Removal for Open-Domain Text-to-SQL* (COLING 2025).

Tables of no list are ranked, too, since a caller may want more tables than the lists hold. Without a model, the names
of the retrieved tables are removed from the question instead of rewriting it (:func:`without_found`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args
from weakref import WeakKeyDictionary

import numpy as np

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.embed import encoded
from tagframe.errors import NotConfigured, warn
from tagframe.retrieval.decompose import ask
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.lexical import table_terms
from tagframe.retrieval.method import Method, Prepared, all_tables, check_choice, check_number
from tagframe.retrieval.methods.ranking import best
from tagframe.retrieval.problem import Floats, Selection, SelectionProblem, best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import STOP_WORDS, terms, words_in

if TYPE_CHECKING:
    from tagframe.lm import LM

DEVIATIONS = {
    "MURRE: section 2.2, lists": (
        "similarities below 0 count as 0; a list has each table once; one list in place of several of the same tables "
        "is rewritten"
    ),
    "MURRE: appendix A": (
        "one prompt for all data, with four examples of our own, in place of one for Spider and one for BIRD, of which "
        "tables 7 and 8 print two examples each"
    ),
    "MURRE: section 2.3": (
        "not printed: whether a list that stopped takes a place in later hops (it does not), and what becomes of "
        "one whose call fails (it stops, with a warning)"
    ),
    "MURRE: algorithm 1": (
        "not printed: the order of tables of one list, which have one product (by their similarity to the "
        "question), and of tables of no list (after all others)"
    ),
    "MURRE: section 3.3, prompts": (
        "not printed: the prompts; they are those of appendix A, changed as little as possible"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""

BEAM, HOPS = 5, 3
"""The paper's beam size and largest number of hops (section 3.1)."""

REMOVAL_HOPS = 2
"""Hops without a model: nothing tells when the tables suffice, and a third hop loses more than it finds."""

Ablation: TypeAlias = Literal["rewrite", "tabulation", "early-stop"]
"""The ablations of the paper (section 3.3, table 4): without rewriting, retrieved tables are appended to the question;
without tabulation, the model writes a question instead of tables; or without the mark that nothing is missing."""

Retriever = Callable[[Sequence[str]], Floats]
"""A function from texts to the similarity of each text and every table: shape (texts, n)."""

Rewriter = Callable[[str, Sequence[Sequence[int]]], Sequence[str | None]]
"""A function from the question and lists of retrieved tables to the next text to search with for each list, or None if
its tables suffice."""


@dataclass(frozen=True)
class _List:
    """A retrieval list: its tables in order, the product of their similarities, the text of its next hop."""

    tables: tuple[int, ...]
    score: float
    text: str


def murre(question: str, retrieve: Retriever, rewrite: Rewriter, *, beam: int = BEAM, hops: int = HOPS) -> Floats:
    """Score every table: the largest product of similarities among the lists that hold it (algorithm 1).

    At the end of each hop, the last one included, the ``beam`` lists with the best products are kept (section 2.2). A
    list that suffices is complete: it keeps its product, and takes no place among the lists of later hops.

    Args:
        question: as asked.
        retrieve: similarities; those below 0 count as 0.
        rewrite: see :data:`Rewriter`.
        beam: how many lists are kept at a hop, and by how many tables each list is extended; at least 1.
        hops: the largest number of hops; at least 1.

    Returns:
        Shape (n,). Tables that are in no list come after all others, ordered by their similarity to the question.
    """
    live = [_List((), 1.0, question)]
    done: list[_List] = []
    first: Floats | None = None
    for hop in range(hops):
        similar = np.clip(retrieve([one.text for one in live]), 0.0, 1.0)
        first = similar[0] if first is None else first
        extended = [new for one, row in zip(live, similar, strict=True) for new in _extended(one, row, beam)]
        extended = sorted(extended, key=lambda one: (-one.score, one.tables))[:beam]
        if hop == hops - 1 or not extended:
            done += extended
            break
        texts = rewrite(question, [one.tables for one in extended])
        done += [one for one, text in zip(extended, texts, strict=True) if text is None]
        live = [_List(one.tables, one.score, text) for one, text in zip(extended, texts, strict=True) if text]
        if not live:
            break
    assert first is not None
    listed = np.zeros(len(first))
    for one in done:
        members = list(one.tables)
        listed[members] = np.maximum(listed[members], one.score)
    lowest = float(listed[listed > 0].min(initial=1.0))
    # A whole list has one product; its tables are ordered by their similarity to the question.
    return np.asarray(np.where(listed > 0, listed + 1e-6 * lowest * first, 0.5 * lowest * first))


def _extended(one: _List, similar: Floats, beam: int) -> list[_List]:
    ranked = [table for table in best_first(similar)[: beam + len(one.tables)].tolist() if table not in one.tables]
    return [_List((*one.tables, table), one.score * float(similar[table]), one.text) for table in ranked[:beam]]


def without_found(
    tables: Sequence[TableProfile],
    question: str,
    lists: Sequence[Sequence[int]],
    *,
    with_database: bool = True,
    stops: bool = True,
) -> list[str | None]:
    """Rewriting without a model: words that the retrieved tables name are removed from the question.

    The next search is for the remaining words together with the whole question and the database of the last table: the
    remaining words by themselves lead away from the domain. The search ends when no word is left.

    Args:
        tables: of the corpus, in the order that lists refer to.
        question, lists: as for a :data:`Rewriter`.
        with_database: whether the names of databases help.
        stops: whether the search ends when no word is left; if not, the whole question is searched for again.
    """
    words = [word.text for word in words_in(question) if word.text.lower() not in STOP_WORDS]
    texts: list[str | None] = []
    for members in lists:
        named = {term for table in members for term in table_terms(tables[table], with_database=False)}
        left = [word for word in words if not set(terms(word)) & named]
        database = identifier_words(tables[members[-1]].database) if with_database else []
        texts.append(f"{' '.join([*database, *left])}. {question}" if left or not stops else None)
    return texts


def spliced(tables: Sequence[TableProfile], question: str, lists: Sequence[Sequence[int]]) -> list[str | None]:
    """No rewriting: the question with the retrieved tables appended (section 3.3, "w/o rewrite").

    Args:
        tables: of the corpus, in the order that lists refer to.
        question, lists: as for a :data:`Rewriter`.
    """
    return [" ".join([question, *(linearised(tables[table]) for table in members)]) for members in lists]


_STOP = "Return None if no left SQL tables according to the user's request."
_TASK = f"""Given the following SQL tables, your job is to complete the possible left SQL tables given a user's \
request. {_STOP}"""
_QUESTION_TASK = """Given the following SQL tables, your job is to ask for the information that a user's request \
needs and that they do not hold, in one natural language question. Return None if they hold all of it."""

_EXAMPLES = (
    (
        "Which greenhouses are too dry for the orchids that grow in them?",
        """botanic_garden.greenhouse(greenhouse id, name, humidity)
botanic_garden.planting(planting id, greenhouse id, species id, planted on)""",
        "botanic_garden.species(species id, name, family, least humidity)",
        "Which humidity do orchids need at least?",
    ),
    (
        "Which lighthouse keeper served longest? Give me the keeper's name.",
        """coast_guard.service(keeper id, lighthouse id, years)
coast_guard.keeper(keeper id, name, age, home port)""",
        "None",
        "None",
    ),
    (
        "What did the repairs of all trams of the line 'Harbour' cost in 2021?",
        """tramway.line(line id, name, length in km)
tramway.repair(repair id, tram id, repaired on, cost)""",
        """tramway.tram(tram id, model, built in, depot)
tramway.assignment(assignment id, tram id, line id, since)""",
        "Which trams serve the line 'Harbour'?",
    ),
    (
        "How many volunteers cleaned the beach 'North Cove' in May?",
        "shore_care.shift(volunteer id, beach id, worked on)",
        "shore_care.beach(beach id, name, length, nearest town)",
        "Which beach is called 'North Cove'?",
    ),
)
"""Question, tables, the tables that complete them, and the question that is left. The paper prints as many examples of
these kinds (tables 7 and 8), but they are of Spider and BIRD. These are of no benchmark."""


_LABEL = re.compile(r"^\W*(?:completing tables|left question)\W*:\W*", re.IGNORECASE)
"""The label of the answer, which some models say again."""


def prompt_of(ablate: Ablation | None) -> str:
    """The paper's prompt (appendix A) with examples of our own, and ``{question}`` and ``{tables}`` to be filled in.

    The paper does not print the prompt without tabulation: it is the same prompt, asking for a question.
    """
    by_question, stops = ablate == "tabulation", ablate != "early-stop"
    task = _QUESTION_TASK if by_question else _TASK if stops else _TASK.removesuffix(f" {_STOP}")
    label = "Left Question" if by_question else "Completing Tables"
    examples = [
        f"Question: {question}\nDatabase: {tables}\n{label}: {left if by_question else missing}"
        for question, tables, missing, left in _EXAMPLES
        if stops or missing != "None"
    ]
    return "\n\n".join([task, *examples, f"Question: {{question}}\nDatabase: {{tables}}\n{label}:"])


def rewritten(
    lm: LM,
    tables: Sequence[TableProfile],
    ablate: Ablation | None,
    question: str,
    lists: Sequence[Sequence[int]],
) -> list[str | None]:
    """For each list, the tables that are missing according to a model (section 2.3).

    Lists whose call fails stop, with a warning.

    Args:
        lm: the model.
        tables: of the corpus, in the order that lists refer to.
        ablate: the part that is left out.
        question, lists: as for a :data:`Rewriter`.
    """
    from tagframe.lm import Prompt

    template = prompt_of(ablate)
    # Lists of the same tables in another order lack the same tables: one of them is asked.
    orders = {frozenset(members): members for members in reversed(lists)}
    schemas = ["\n".join(linearised(tables[table]) for table in members) for members in orders.values()]
    prompts = [Prompt.of(template.format(question=question, tables=each)) for each in schemas]
    completions = dict(zip(orders, ask(lm, prompts, parse_completion), strict=True))
    failed = [completion.error for completion in completions.values() if completion.error is not None]
    if failed:
        warn(f"rewriting failed for {len(failed)} of {len(completions)} questions: {failed[0]}")
    return [completions[frozenset(members)].value or None for members in lists]


def linearised(table: TableProfile) -> str:
    """A table as ``database.table(column, …)``, as in the paper (section 2.2)."""
    return f"{table.database}.{table.name}({', '.join(column.name for column in table.columns)})"


_VECTORS: WeakKeyDictionary[RetrievalIndex, Floats] = WeakKeyDictionary()


def linearised_vectors(index: RetrievalIndex) -> Floats:
    """The unit vectors of the linearised tables (section 2.2), made once for an index: shape (n, d)."""
    if index not in _VECTORS:
        assert index.embedder is not None
        texts = [linearised(table) for table in index.named.whole()]
        _VECTORS[index] = encoded(index.embedder, texts, "passage").astype(np.float64)
    return _VECTORS[index]


def parse_completion(answer: str) -> str:
    """The tables in a model's answer to :func:`prompt_of`; "" for the mark that none is missing.

    >>> parse_completion("**None**"), parse_completion("Completing Tables: None."), parse_completion(" tv.country(id)")
    ('', '', 'tv.country(id)')
    """
    text = _LABEL.sub("", answer.strip())
    return "" if text.strip("*_`'\". \n").lower() in ("", "none") else text


@dataclass(frozen=True, eq=False)
class Hopped:
    """The result of :func:`murre` for a question.

    Attributes:
        scores: shape (n,), of all tables.
        hops: how many were made, of at most as many as allowed (section 3.4.4, figure 5b).
    """

    scores: Floats
    hops: int


@dataclass(frozen=True, kw_only=True)
class MURRE(Method):
    """MURRE: hops of retrieving and rewriting the question for what is still missing, with beam search (:func:`murre`).

    Without a model, the names of retrieved tables are removed from the question instead.

    Attributes:
        as_printed: tables are encoded as the paper linearises them (:func:`linearised`), instead of as the sentences of
            names that all methods search.
        beam: how many lists of tables are kept at each hop (section 3.1).
        hops: the largest number of hops; None for 3, as in the paper, or 2 without a model.
        ablate: the part that is left out, as in the paper's ablations (section 3.3, table 4): "rewrite", "tabulation"
            (which needs a model) or "early-stop".

    Raises:
        InvalidArgument: a beam or hops below 1, or an unknown ablation.
    """

    name: ClassVar[str] = "murre"
    summary: ClassVar[str] = "retrieves and rewrites the question in hops"

    as_printed: bool = False
    beam: int = BEAM
    hops: int | None = None
    ablate: Ablation | None = None

    def __post_init__(self) -> None:
        check_number("beam", 0 if self.beam is None else self.beam, "a whole number")
        check_number("hops", self.hops, "a whole number")
        check_choice("ablate", self.ablate, get_args(Ablation))

    @property
    def asks_model(self) -> bool:
        """Whether a model rewrites the question."""
        return self.ablate != "rewrite" and self.hops != 1

    def relevance(self, index: RetrievalIndex, question: Question, lm: LM | None) -> Hopped:
        """The scores of :func:`murre`, and its hops. The model, if there is one, rewrites.

        Raises:
            NotConfigured: the ablation "tabulation" without a model.
        """
        hops = self.hops or (REMOVAL_HOPS if lm is None and self.asks_model else HOPS)
        made = 0
        vectors = linearised_vectors(index) if self.as_printed and index.embedder is not None else None

        def retrieve(texts: Sequence[str]) -> Floats:
            nonlocal made
            made += 1
            return index.similarities(texts) if vectors is None else index.encode(texts) @ vectors.T

        scores = murre(question.text, retrieve, self._rewriter(index, lm), beam=self.beam, hops=hops)
        return Hopped(scores, made)

    def _rewriter(self, index: RetrievalIndex, lm: LM | None) -> Rewriter:
        tables = index.named.whole()
        if self.ablate == "rewrite":
            return partial(spliced, tables)
        if lm is not None:
            return partial(rewritten, lm, tables, self.ablate)
        if self.ablate == "tabulation":
            raise NotConfigured('ablate="tabulation" needs a model; without one there is no tabulation to leave out')
        return partial(without_found, tables, with_database=not index.one_name, stops=self.ablate is None)

    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Hopped, anchored: int | None, k: int | None
    ) -> Prepared[SelectionProblem]:
        """The problem over all tables, with the hops as a fact."""
        prepared = all_tables(index, question, relevance.scores, anchored, k)
        return replace(prepared, problem=replace(prepared.problem, facts={"hops": float(relevance.hops)}))

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The k tables of highest score."""
        return replace(best(problem, k), facts={name: int(value) for name, value in problem.facts.items()})
