"""MURRE: hops of retrieving and rewriting the question for what is still missing, with beam search.

Zhang, Wang, Dou, Zhu, Che: *Multi-Hop Table Retrieval for Open-Domain Text-to-SQL* (arXiv 2402.10666, 2024), section 2
and algorithm 1; sections and tables here are those of this version. Its final version is *MURRE: Multi-Hop Table
Retrieval with Removal for Open-Domain Text-to-SQL* (COLING 2025).

Deviations: tables of no list are ranked, too, after all others, since a caller may want more tables than the lists
hold; tables of one list have the same product and are ordered by their similarity to the question. Without a model, the
names of the retrieved tables are removed from the question instead of rewriting it (:func:`without_found`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import TableProfile
from tagframe.errors import InvalidArgument, NotConfigured, warn
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.lexical import table_terms
from tagframe.retrieval.method import Method
from tagframe.retrieval.methods.ranking import best
from tagframe.retrieval.prepare import all_tables
from tagframe.retrieval.problem import Floats, best_first
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import STOP_WORDS, terms, words_in

if TYPE_CHECKING:
    from tagframe.lm import LM

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
    found: list[str | None] = []
    for members in lists:
        held = {term for table in members for term in table_terms(tables[table], with_database=False)}
        left = [word for word in words if not set(terms(word)) & held]
        database = identifier_words(tables[members[-1]].database) if with_database else []
        found.append(f"{' '.join([*database, *left])}. {question}" if left or not stops else None)
    return found


def spliced(tables: Sequence[TableProfile], question: str, lists: Sequence[Sequence[int]]) -> list[str | None]:
    """No rewriting: the question with the retrieved tables appended (section 3.3, "w/o rewrite").

    Args:
        tables: of the corpus, in the order that lists refer to.
        question, lists: as for a :data:`Rewriter`.
    """
    return [" ".join([question, *(linearised(tables[table]) for table in members)]) for members in lists]


PROMPT = """Given the following SQL tables, your job is to complete the possible left SQL tables given a user's \
request. Return None if no left SQL tables according to the user's request.

Question: Which models are lighter than 3500 but not built by the 'Ford Motor Company'?
Database: car_1.model list(model id, maker, model)
car_1.cars data(id, mpg, cylinders, edispl, horsepower, weight, accelerate, year)
car_1.car names(make id, model, make)
Completing Tables: car_1.car makers(id, maker, full name, country)

Question: Which employee received the biggest bonus? Give me the employee name.
Database: employee_hire_evaluation.evaluation(employee id, year awarded, bonus)
employee_hire_evaluation.employee(employee id, name, age, city)
Completing Tables: None

Question: What was the growth rate of the total amount of loans across all accounts for a male client between 1996 \
and 1997?
Database: financial.client(client_id, gender, birth_date, location of branch)
financial.loan(loan_id, account_id, date, amount, duration, monthly payments, status)
Completing Tables: financial.account(account id, location of branch, frequency, date)
financial.disp(disposition id, client_id, account_id, type)

Question: How many members did attend the event 'Community Theater' in 2019?
Database: student_club.Attendance(link to event, link to member)
Completing Tables: student_club.Event(event id, event name, event date, type, notes, location, status)

Question: {question}
Database: {tables}
Completing Tables:"""
"""The paper's prompt with the four examples that it prints: tables 7 (SpiderUnion) and 8 (BirdUnion+), appendix A."""

_STOPS = (
    " Return None if no left SQL tables according to the user's request.",
    """Question: Which employee received the biggest bonus? Give me the employee name.
Database: employee_hire_evaluation.evaluation(employee id, year awarded, bonus)
employee_hire_evaluation.employee(employee id, name, age, city)
Completing Tables: None

""",
)
"""The parts of the prompt about the mark."""

QUESTION_PROMPT = """Given the following SQL tables, your job is to ask for the information that a user's request \
needs and that they do not hold, in one natural language question. Return None if they hold all of it.

Question: Which models are lighter than 3500 but not built by the 'Ford Motor Company'?
Database: car_1.model list(model id, maker, model)
car_1.cars data(id, mpg, cylinders, edispl, horsepower, weight, accelerate, year)
car_1.car names(make id, model, make)
Left Question: Which car makers are not the 'Ford Motor Company'?

Question: Which employee received the biggest bonus? Give me the employee name.
Database: employee_hire_evaluation.evaluation(employee id, year awarded, bonus)
employee_hire_evaluation.employee(employee id, name, age, city)
Left Question: None

Question: What was the growth rate of the total amount of loans across all accounts for a male client between 1996 \
and 1997?
Database: financial.client(client_id, gender, birth_date, location of branch)
financial.loan(loan_id, account_id, date, amount, duration, monthly payments, status)
Left Question: Which accounts do the clients own?

Question: How many members did attend the event 'Community Theater' in 2019?
Database: student_club.Attendance(link to event, link to member)
Left Question: Which event is called 'Community Theater', and when was it?

Question: {question}
Database: {tables}
Left Question:"""
"""The prompt without tabulation. The paper does not print it, so this is the paper's prompt, asking for a question."""


_LABEL = re.compile(r"^\W*(?:completing tables|left question)\W*:\W*", re.IGNORECASE)
"""The label of the answer, which some models say again."""


def prompt_of(ablate: Ablation | None) -> str:
    """The paper's prompt (appendix A), with ``{question}`` and ``{tables}`` to be filled in."""
    if ablate == "tabulation":
        return QUESTION_PROMPT
    prompt = PROMPT
    for part in _STOPS if ablate == "early-stop" else ():
        prompt = prompt.replace(part, "")
    return prompt


def rewritten(
    lm: LM,
    tables: Sequence[TableProfile],
    ablate: Ablation | None,
    question: str,
    lists: Sequence[Sequence[int]],
) -> list[str | None]:
    """For each list, the tables that are missing according to a model; lists whose call fails stop, with a warning.

    Args:
        lm: the model.
        tables: of the corpus, in the order that lists refer to.
        ablate: the part that is left out.
        question, lists: as for a :data:`Rewriter`.
    """
    from tagframe.lm import Prompt

    asked = prompt_of(ablate)
    # Lists of the same tables in another order lack the same tables: one of them is asked.
    orders = {frozenset(members): members for members in reversed(lists)}
    shown = ["\n".join(linearised(tables[table]) for table in members) for members in orders.values()]
    prompts = [Prompt.of(asked.format(question=question, tables=each)) for each in shown]
    completions = dict(zip(orders, lm.complete(prompts, accept=parse_completion), strict=True))
    failed = [completion.error for completion in completions.values() if completion.error is not None]
    if failed:
        warn(f"rewriting failed for {len(failed)} of {len(completions)} questions: {failed[0]}")
    return [completions[frozenset(members)].value or None for members in lists]


def linearised(table: TableProfile) -> str:
    """A table as ``database.table(column, …)``, as in the paper (section 2.2)."""
    return f"{table.database}.{table.name}({', '.join(column.name for column in table.columns)})"


def parse_completion(answer: str) -> str:
    """The tables in a model's answer to :data:`PROMPT`; "" for the mark that none is missing.

    >>> parse_completion("**None**"), parse_completion("Completing Tables: None."), parse_completion(" tv.country(id)")
    ('', '', 'tv.country(id)')
    """
    text = _LABEL.sub("", answer.strip())
    return "" if text.strip("*_`'\". \n").lower() in ("", "none") else text


def relevance(
    index: RetrievalIndex,
    question: Question,
    lm: LM | None = None,
    *,
    ablate: Ablation | None = None,
    beam: int = BEAM,
    hops: int | None = None,
) -> Floats:
    """The scores of :func:`murre`; the model, if there is one, rewrites.

    Args:
        index: of the corpus.
        question: as asked.
        lm: the model that rewrites; rules if None.
        ablate: the part that is left out.
        beam, hops: as for :func:`murre`; hops of None are 3, or 2 without a model.

    Raises:
        NotConfigured: rewriting into a question needs a model.
        InvalidArgument: an unknown ablation.
    """
    _check(ablate)
    tables = index.named.whole()
    if hops is None:
        hops = HOPS if lm is not None else REMOVAL_HOPS
    rewriter: Rewriter
    if ablate == "rewrite":
        rewriter = partial(spliced, tables)
    elif lm is not None:
        rewriter = partial(rewritten, lm, tables, ablate)
    elif ablate == "tabulation":
        raise NotConfigured('ablate="tabulation" needs a model; without one there is no tabulation to leave out')
    else:
        rewriter = partial(without_found, tables, with_database=not index.one_name, stops=ablate is None)
    return murre(question.text, index.similarities, rewriter, beam=beam, hops=hops)


MURRE = Method(
    "murre",
    "retrieves and rewrites the question in hops",
    relevance,
    all_tables,
    best,
    takes_coarse=False,
    asks_model=True,
)


def searching(
    method: Method[Any, Any], *, beam: int | None = None, hops: int | None = None, ablate: Ablation | None = None
) -> Method[Any, Any]:
    """MURRE with other settings than the paper's; any other method as it is, if no setting is given.

    Args:
        method: with the name that was asked for.
        beam, hops: as for :func:`murre`; None for the defaults.
        ablate: the part that is left out.

    Raises:
        InvalidArgument: a beam or hops below 1, an unknown ablation, or a setting for another method.
    """
    settings = {"beam": beam, "hops": hops, "ablate": ablate}
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    if given and method is not MURRE:
        named = " and ".join(f"{name}=" for name in given)
        raise InvalidArgument(f"method {method.name!r} takes no {named}; only method {MURRE.name!r} does")
    for name, value in (("beam", beam), ("hops", hops)):
        if value is not None and (not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1):
            raise InvalidArgument(f"{name} must be a whole number, at least 1; got {value!r}")
    _check(ablate)
    return replace(method, relevance=partial(relevance, **given)) if given else method


def _check(ablate: str | None) -> None:
    if ablate is not None and ablate not in get_args(Ablation):
        raise InvalidArgument(f"ablate must be one of {get_args(Ablation)}; got {ablate!r}")
