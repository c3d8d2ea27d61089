"""The default: a log-linear posterior over small sets of tables, with fitted weights.

A first stage scores tables by a linear model over their signals. A second stage scores every set of up to five of the
best tables by properties of the whole set: how much of the question it covers, and whether its tables join. The
exponential of that score, normalised, is the probability that the question needs exactly this set. From it follow a
probability for every table, the number of tables to return, and the best set of any size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tagframe.errors import InvalidArgument
from tagframe.keys.components import Components
from tagframe.retrieval.calibration import unfitted
from tagframe.retrieval.denied import denies_a_table
from tagframe.retrieval.families import COPIED, mixed_copies, of_other_years
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.learned import BELIEVED, FEW, SETS, set_signals
from tagframe.retrieval.learned import SIGNALS as SIGNALS_LEARNED
from tagframe.retrieval.method import Prepared, WithSubqueries, anchors
from tagframe.retrieval.methods.posterior import BARE, Posterior, complete_features, doubts, names_features
from tagframe.retrieval.methods.sets import LARGEST, joined_directly, missing_joins, set_features, set_masks
from tagframe.retrieval.methods.weights import Weights, shipped_weights
from tagframe.retrieval.problem import (
    CONFIDENCE,
    FEW_TABLES,
    LINKED,
    MIN_REFERENCE,
    Floats,
    RowKind,
    Selection,
    SelectionProblem,
    best_first,
)
from tagframe.retrieval.question import Question
from tagframe.retrieval.signals import SIGNALS, Evidence, gather, near_duplicates, rows_of

if TYPE_CHECKING:
    from tagframe.lm import LM

POOL = 14
"""Sets are made of so many tables, those with the best prior."""

MOST_CHOSEN = 8
"""The most tables that ``k="auto"`` gives of a small corpus, and up to which those that keys link are added."""

_OUTSIDE = 6.0, 0.7
"""The odds that a needed table is not among the :data:`POOL` of which sets are made, where no rows are known: a factor
and a power of the odds of the last of these against the best. With rows the factor is 1. The posterior knows of no
other tables, but among thousands without rows four sets of ten lack one. Only a set of all tables is surely complete.
Fitted on Spider 2's pooled warehouses, by the completeness of the best :data:`POOL` tables."""

TABLE_PRICE = 0.5
"""The price of further tables, where no set is sure enough or the corpus is large. Adding as many tables as are needed
must raise the probability of a complete set by this share of the accepted probability of an incomplete one, relative to
what it is: from .8 to .84 if a set is to be complete with probability .9. So a second table is expensive if one is
needed, and cheap if four are; and where many tables are alike, a set grows though it is never sure."""

MIN_FIT = 0.25
"""If the corpus has the answer with a lower probability, the note says that nothing fits."""
NOTHING_FITS = "nothing here seems to fit the question"
"""How that note begins."""

MIN_NEEDED = 0.5
"""The least probability of a needed table; one with less is left out of a merge if it would lose or repeat rows."""
MIN_CALLED = 0.8
"""The probability of a table that is needed for a word that names it alone: of 20 such, 16 were gold."""
MIN_NEARER = 0.1
"""How much nearer to a word, as a cosine, a table is that the set refers to and lacks. Of 420 questions of Spider and
spider_train in their own databases, as many sets are exact as without, and one more is complete."""
_LATIN = re.compile("[a-z]", re.IGNORECASE)
_POSSIBLE = -2.0
"""The log-odds above which a table is in the set of a model's plan."""
_COVERED = (RowKind.SPOKEN, RowKind.MENTIONED, RowKind.CELL)
"""Words of the question that names have: needed tables cover them (:func:`_covering`)."""

_EXACT = (RowKind.NAME, *_COVERED)
"""Words of the question that a table has or lacks, whatever an embedder says."""
_SURE = 0.9
"""A table that is as likely is needed, though another has all words of the question."""
_NOT_NEEDED = 0.49
"""The probability of a table that another one makes needless: it is merged if it neither repeats nor loses rows."""

MOST_KNOWABLE_TABLES = 1000
"""In a larger corpus it cannot be known that nothing fits: among thousands of tables, something always seems to fit.
Measured on pairs of one question with and without its database: by the facts, .9 of the pairs are in the right order
with 500 tables, .6 with 3,000."""


def posterior(problem: SelectionProblem, weights: Weights) -> Posterior:
    """The posterior over the sets of the most promising tables; anchors are in every set."""
    positions = pool(problem)
    utilities = weights.utilities(set_features(problem, positions))
    if problem.examples is not None:
        learned = learned_sets(problem, positions, utilities) @ weights.of_learned(SETS)
        utilities = utilities + problem.examples.share * (learned - utilities)
    return posterior_of(problem, positions, utilities)


def joining(problem: SelectionProblem, known: Posterior, weights: Weights) -> Posterior:
    """The posterior, where a query joins the tables that it reads: a table that connects two needed ones is needed.

    Which tables to read if there is room for K of them is another question: :func:`posterior` answers it. How tables
    join says nothing about which database is needed, so the sets of the same databases keep their probability together.
    """
    if not weights.apart:
        return known
    _, group = np.unique(databases_of(problem, known), return_inverse=True)
    joined = known.probability * np.exp(weights.apart * missing_joins(problem, known.positions))
    before = np.bincount(group, known.probability) / np.maximum(np.bincount(group, joined), 1e-300)
    return replace(known, probability=joined * before[group])


def databases_of(problem: SelectionProblem, known: Posterior) -> npt.NDArray[np.int64]:
    """The databases of each set, as a mask: shape (sets,)."""
    _, source = np.unique(problem.source[known.positions], return_inverse=True)
    return np.asarray(np.bitwise_or.reduce(np.where(known.members > 0, 1 << source, 0), axis=1), dtype=np.int64)


def learned_sets(problem: SelectionProblem, positions: npt.NDArray[np.intp], utilities: Floats) -> Floats:
    """The learned evidence for the sets of some tables: shape (sets, len(SETS))."""
    assert problem.examples is not None
    examples = replace(problem.examples, tables=problem.examples.tables[:, positions])
    members = set_masks(len(positions))[:, None] >> np.arange(len(positions)) & 1
    return set_signals(utilities, problem.learned[positions], examples, members.astype(np.float64))


def pool(problem: SelectionProblem) -> npt.NDArray[np.intp]:
    """The tables of which sets are made, ascending: the anchors and those with the best prior."""
    return np.sort(best_first(np.where(problem.anchor, np.inf, _promise(problem)))[:POOL]).astype(np.intp)


def _promise(problem: SelectionProblem) -> Floats:
    """The score of each table by itself: the first stage's, what was learned, and what a model or a person adds."""
    share = 0.0 if problem.examples is None else problem.examples.share
    return problem.r + share * problem.learned + problem.opinion


def posterior_of(problem: SelectionProblem, positions: npt.NDArray[np.intp], utilities: Floats) -> Posterior:
    """The posterior by the utilities of the sets of ``positions``."""
    masks, fixed = set_masks(len(positions)), _fixed(problem, positions)
    if problem.opinion.any():
        utilities = utilities + (masks[:, None] >> np.arange(len(positions)) & 1) @ problem.opinion[positions]
    scores = np.where((masks & fixed) == fixed, utilities, -np.inf)
    odds = np.exp(scores - scores.max())
    return Posterior(positions, masks, odds / odds.sum())


def _fixed(problem: SelectionProblem, positions: npt.NDArray[np.intp]) -> int:
    return int(sum(1 << bit for bit, position in enumerate(positions.tolist()) if problem.anchor[position]))


def fitted(
    problem: SelectionProblem, k: int | None = None, weights: Weights | None = None, known: Posterior | None = None
) -> Selection:
    """The tables that the question most probably needs.

    With ``k`` None it is the smallest set that is complete with the probability ``problem.confidence``, a smaller one
    if further tables add too little, or a larger one among many tables (:func:`_complete`); tables are added whose
    names the question says (:func:`with_mentioned`). Rows without a partner are of two tables at least. With a k it is
    the set that best contains what is needed; if k is 2 or more, at least two tables are assumed to be needed. Sets
    larger than those that are scored are extended table by table: by the one that adds most, or, if the posterior
    cannot decide, by the one with the best prior. The best set of a size is that of :func:`posterior`. All chances are
    those of :func:`joining`, also that a set is complete.

    Args:
        problem: with ``signals``, and the first stage's score as ``r``.
        k: how many; None lets the posterior decide.
        weights: the shipped ones if None.
        known: the posterior, if it was computed before.
    """
    wanted = problem.wanted(k)
    if not wanted:
        return Selection((), note="there are no tables to choose from" if not len(problem.r) else "")
    weights = shipped_weights() if weights is None else weights
    # What statements teach was fitted beside the weights of large corpora.
    weights = weights.for_question(problem.facts, chooses_k=k is None and problem.examples is None)
    plain = posterior(problem, weights) if known is None else known
    joined = joining(problem, plain, weights)
    likeliest = _positions(plain, int(plain.masks[plain.probability.argmax()]))
    fits = _fits(problem, weights, likeliest)
    if k is None and fits < MIN_FIT and _is_small(problem):  # more tables would not help
        order, reported = [position for position in likeliest if not problem.anchor[position]], joined
        if problem.facts.get("foreign"):
            order = _with_linked(problem, order, problem.r)
    elif k is None:
        least = 2 if problem.facts.get("denies") else 1
        plain, joined = plain.given_at_least(least), joined.given_at_least(least)
        most = min(wanted, MOST_CHOSEN if _is_one(problem) else POOL if fits >= MIN_FIT else LARGEST)
        order, reported = _called(problem) or _complete(problem, plain, joined, weights, most), joined
    else:
        least = min(2, k) + _fixed(problem, plain.positions).bit_count()
        order, reported = of_size(problem, plain.given_at_least(least), wanted), joined.given_at_least(least)
    share = 1.0 if fits >= MIN_FIT else fits
    chance = np.zeros(len(problem.r))
    chance[reported.positions] = reported.tables() * share
    covering = _covering(problem, order, chance / share)
    chance[covering] = np.where(_is_called(problem), MIN_CALLED, MIN_NEEDED)[covering] * share
    if k is None:
        chance[_answered(problem, order, chance)] = _NOT_NEEDED * share
    called = _called(problem)
    chance[called] = 1 / (1 + np.exp(-problem.opinion[called]))
    if k is not None or called:
        order = sorted(order, key=lambda position: (-chance[position], -problem.r[position], position))
    together = [*order, *np.flatnonzero(problem.anchor).tolist()]
    exactly = float(plain.probability[plain.masks == plain.mask(together)].sum())
    confidence = min(confidence_of(problem, joined, weights, order), share)
    note = _why(problem, chance, order, confidence, fits) if k is None or share < 1 else ""
    if k is None and weights.unlike({**problem.facts, **doubts(problem, joined)}):
        note += "; this database is unlike all databases used for fitting, so the estimate may be far off"
    return Selection(tuple(order), exactly, chance[order], chance, note, confidence)


def _fits(problem: SelectionProblem, weights: Weights, likeliest: Sequence[int]) -> float:
    """The probability that the corpus has what the question asks for; a model's plan counts.

    It is 1 if it cannot be known: in a lake, without an embedder, or of a question in another language than the
    encoder's, whose words are near to no name; not so if it is in another script, and no name and no cell has one of
    its words. If a name from the question occurs in cells of the likeliest tables,
    "nothing fits" is not reported: in one database, half of such questions did fit.
    """
    facts = problem.facts
    is_read = facts.get("foreign") and not facts.get("unread")
    if (not is_knowable(facts) or is_read) and not problem.opinion.any():
        return 1.0
    chance = min(max(weights.fit(facts), 1e-9), 1 - 1e-9)
    opinion = float(problem.opinion.max(initial=-np.inf)) if problem.opinion.any() else 0.0
    fits = float(1 / (1 + (1 / chance - 1) * np.exp(-opinion)))
    names = problem.fine[problem.kind == RowKind.CELL][:, likeliest]
    return max(fits, MIN_FIT) if facts.get("cell_names") and names.any() else fits


def _covering(problem: SelectionProblem, chosen: Sequence[int], chance: Floats) -> list[int]:
    """Tables of a set that are needed, whatever their chance: for each word of the question that no needed table has in
    a name or a cell, the likeliest one that has it. A word that is neither a name nor of a table's own name may be in
    any cell or column by chance: only a table that joins a needed one directly is needed for it.

    Of 600 questions of Spider, BIRD and spider_train in their own databases, 543 have all gold tables among the needed
    ones by this, 522 without; the needed ones are the gold ones in 450 and 447.
    """
    needed = (problem.anchor | (chance >= MIN_NEEDED)) & ~problem.opinion.any()
    inside = np.isin(np.arange(len(chance)), chosen) & ~problem.opinion.any()
    referred = (problem.link >= LINKED) & problem.refers
    joined = joined_directly(problem.link, problem.refers)
    called = _is_called(problem)
    more: list[int] = []
    of_covered = np.isin(problem.kind, _COVERED)
    rows, kinds = problem.fine[of_covered] > 0, problem.kind[of_covered]
    weight = chance * rows.sum(axis=0)
    for has, kind in zip(rows, kinds, strict=True):
        may_cover = inside & (called | (kind != RowKind.SPOKEN) | joined[needed].any(axis=0))
        if not (has & needed).any() and (has & may_cover).any():
            parents = referred[needed].any(axis=0) * len(rows)
            more.append(int(np.where(has & may_cover, weight + parents, -1.0).argmax()))
            needed[more[-1]] = True
    return more


def _is_called(problem: SelectionProblem) -> npt.NDArray[np.bool_]:
    """Which tables a word of the question names that names no other: shape (n,)."""
    return np.asarray(problem.signals[:, SIGNALS.index("called")] > 0)


def _parts(joined: npt.NDArray[np.bool_], tables: Sequence[int]) -> list[list[int]]:
    """The groups of some tables that can be joined without others."""
    parts = Components(tables)
    for one, other in combinations(tables, 2):
        if joined[one, other]:
            parts.join(one, other)
    return parts.groups()


def _answered(problem: SelectionProblem, chosen: Sequence[int], chance: Floats) -> list[int]:
    """The needed tables of a set that the others answer the question without: all words that a name or a cell of theirs
    has are in those of the others, too, no word is clearly nearer to them, and they connect none.

    A near-copy of the likeliest table needs neither to be unlikely nor a question in English.
    """
    needed = sorted((table for table in chosen if chance[table] >= MIN_NEEDED), key=lambda table: -chance[table])
    words, exact = problem.fine[problem.kind == RowKind.WORD], problem.fine[np.isin(problem.kind, _EXACT)]
    # Rows without a partner are of two tables.
    least = 2 if problem.facts.get("denies") else 1
    if problem.anchor.any() or problem.opinion.any() or not len(words):
        return []
    joined, gone = joined_directly(problem.link, problem.refers), list[int]()
    for table in needed[:0:-1]:
        rest = [other for other in needed if other != table and other not in gone]
        is_copy = problem.similarity[needed[0], table] >= COPIED
        # Of a foreign question words say little.
        may_go = is_copy or not (problem.facts.get("foreign") or chance[table] >= _SURE)
        connects = len(_parts(joined, rest)) > len(_parts(joined, [*rest, table]))
        if len(rest) < least or not may_go or connects:
            continue
        theirs = exact[:, table]
        has_all = bool((exact[:, rest].max(axis=1) > theirs / 2)[theirs > 0].all())
        if has_all and (words[:, table] - words[:, rest].max(axis=1)).max() < MIN_NEARER:
            gone.append(table)
    return gone


def is_knowable(facts: Mapping[str, float]) -> bool:
    """Whether it can be known that nothing fits: that needs an embedder, and a corpus that is not too large."""
    return facts.get("log_tables", 0.0) <= math.log1p(MOST_KNOWABLE_TABLES) and facts.get("dense") != 0.0


def _called(problem: SelectionProblem) -> list[int]:
    """The tables of a model's plan; or those that a person calls needed, if no set has so many."""
    is_planned = "planned" in problem.facts
    called = np.flatnonzero((problem.opinion > (_POSSIBLE if is_planned else 0)) & ~problem.anchor).tolist()
    return called if len(called) + problem.anchor.sum() > LARGEST or (is_planned and problem.opinion.max() > 0) else []


def of_size(problem: SelectionProblem, known: Posterior, wanted: int) -> list[int]:
    """The positions of the best set of a size."""
    fixed = _fixed(problem, known.positions)
    size = min(wanted, LARGEST, len(known.positions) - fixed.bit_count()) + fixed.bit_count()
    mask, _ = known.best(size, fixed)
    chosen = _positions(known, mask & ~fixed)
    if len(chosen) < wanted:
        further = known.extended(mask, _promise(problem)[known.positions], fixed)
        chosen += known.positions[further].tolist()[: wanted - len(chosen)]
        others = best_first(np.where(problem.anchor, -np.inf, _promise(problem))).tolist()
        others = [position for position in others if position not in chosen]
        chosen += others[: wanted - len(chosen)]
    return chosen


def _complete(problem: SelectionProblem, known: Posterior, joined: Posterior, weights: Weights, most: int) -> list[int]:
    """The best set of the size that is worth its tables (:data:`TABLE_PRICE`).

    Of one database the smallest one that is sure enough is taken, since it is merged as it is. Among the tables of
    several, to miss one costs more than to give one that the merge leaves out. On BIRD's pooled databases 96.2 % of
    the sets are complete so, with 2.3 tables for each needed one, and 94.8 % with 2.1 if the smallest one is taken.

    In a small corpus, tables that may not be needed and that no key joins to the set are left out: a merge could only
    leave them out again.
    """
    sets = [of_size(problem, known, size) for size in range(1, most + 1)]
    sure = np.array(completeness(problem, joined, weights, sets))
    needed = np.maximum(joined.sizes - _fixed(problem, joined.positions).bit_count(), 1)
    price = TABLE_PRICE * (1 - problem.confidence) * float(joined.probability @ (1 / needed))
    reached = np.flatnonzero(_is_one(problem) & (sure >= problem.confidence))
    worth = np.log(np.maximum(sure, 1e-9)) - price * np.arange(len(sets))
    chosen = int(reached[0] if len(reached) else worth.argmax())
    chances = np.zeros(len(problem.r))
    chances[joined.positions] = joined.tables()
    likely = sets[chosen]
    if _is_small(problem):
        joins = problem.link[np.ix_(likely, likely)].max(axis=1, initial=0.0) >= LINKED
        likely = np.array(likely)[joins | (chances[likely] >= MIN_NEEDED)].tolist() or sets[0]
    tables = _with_linked(problem, with_mentioned(problem, likely, chances), chances)
    return sorted(tables, key=lambda position: (-chances[position], -problem.r[position], position))


def _with_linked(problem: SelectionProblem, chosen: Sequence[int], chance: Floats) -> list[int]:
    """A set with linked tables that it may lack, likely ones first, up to :data:`MOST_CHOSEN`.

    Only in a small corpus: among many, those of a foreign question would make a set twice as wide, and no more sets of
    six real folders in one complete. These are tables to which the set refers and that are clearly nearer to a word of
    the question: to join such a table repeats no row, and to lack it costs the answer. Of a question in another
    language than the encoder's, words that no name has say nothing, so chances do not show that a table is not needed:
    all linked tables are added. The merge leaves out those that would repeat or lose rows.
    """
    tables, words = [*chosen], problem.fine[problem.kind == RowKind.WORD]
    linked, is_foreign = problem.link >= LINKED, bool(problem.facts.get("foreign"))
    may_link = _is_small(problem) and (is_foreign or len(words) > 0) and not problem.opinion.any()
    while may_link and 0 < len(tables) < MOST_CHOSEN:
        inside = np.isin(np.arange(len(chance)), tables) | problem.anchor
        near = (linked & (problem.refers | is_foreign))[inside].any(axis=0) & ~inside
        if not is_foreign:
            near &= (words - words[:, inside].max(axis=1)[:, None]).max(axis=0) > MIN_NEARER
        if not near.any():
            break
        tables.append(int(np.where(near, chance, -np.inf).argmax()))
    return tables


def _is_small(problem: SelectionProblem) -> bool:
    """Whether the corpus has so few tables that hardly one is near to a word by chance."""
    return problem.facts.get("log_tables", 0.0) <= math.log1p(FEW_TABLES)


def _is_one(problem: SelectionProblem) -> bool:
    """Whether the set is merged as it is: the corpus is small, or what is near to the question is of one database."""
    return _is_small(problem) or len(np.unique(problem.source)) == 1


def with_mentioned(problem: SelectionProblem, chosen: Sequence[int], chance: Floats) -> list[int]:
    """A set with the tables that it lacks: the only ones near it with a name that the question says in whole, or with
    a value of it, where no table of the set has the words of that name, and no likely one the value."""
    tables, inside = [*chosen], problem.anchor.copy()
    inside[tables] = True
    if problem.opinion.any():
        return tables
    # In a large corpus a word is too often a value by chance, except of a table to which one of the set may refer:
    # joining it neither repeats nor loses rows.
    is_small = problem.facts.get("log_tables", math.inf) <= math.log1p(POOL)
    linked, referred = problem.link >= LINKED, (problem.link >= MIN_REFERENCE) & problem.refers
    for kind in (RowKind.MENTIONED, RowKind.TERM):
        is_name = kind == RowKind.MENTIONED
        for row in problem.fine[problem.kind == kind]:
            near = (linked if is_name else referred)[inside].any(axis=0)
            near |= is_small | (is_name & np.isin(problem.source, problem.source[inside]))
            lacking = np.flatnonzero((row == 1 if is_name else row > 0) & near)
            having = inside if is_name else inside & (problem.anchor | (chance >= MIN_NEEDED))
            lacking = lacking[~inside[lacking]]
            if not row[having].any() and len(lacking) == 1 and len(tables) < MOST_CHOSEN:
                tables += lacking.tolist()
                inside[lacking] = True
    return tables


def confidence_of(problem: SelectionProblem, known: Posterior, weights: Weights, tables: Sequence[int]) -> float:
    """The probability that a set is complete, as it is reported.

    If only the names of one database are known, it is lowered; if statements were learned there, it is raised again to
    what similar questions show. Sets are not chosen by this: there, the confidence says little about how many tables to
    return.
    """
    chance = completeness(replace(problem, examples=None), known, weights, [tables])[0]
    facts = {**problem.facts, **doubts(problem, known)}
    if problem.opinion.any():
        return chance * facts.get("planned", 1.0)
    if math.log1p(len(tables)) < facts.get("log_tables", math.inf):
        outside, power = _OUTSIDE
        chance = min(chance, 1 / (1 + outside ** facts.get("unseen", 0.0) * facts["beyond"] ** power))
    if facts.get("bare", 0.0) <= BARE:
        return chance
    chance = weights.by_names(chance, names_features(chance, facts))
    if weights.unlike(facts):
        chance = 1 / (1 + (1 / max(chance, 1e-9) - 1) * math.exp(weights.spread))
    if problem.examples is None:
        return chance
    inside = problem.anchor.copy()
    inside[[*tables]] = True
    likely = max(known.contained(known.mask(np.flatnonzero(inside).tolist())), problem.examples.share_inside(inside))
    odds = problem.examples.like * float(weights.of_learned(BELIEVED)[0])
    return chance + odds / (1 + odds) * max(likely - chance, 0.0)


def completeness(
    problem: SelectionProblem, known: Posterior, weights: Weights, sets: Sequence[Sequence[int]]
) -> list[float]:
    """The probability that each set is complete; sets are chosen by this."""
    fixed = _fixed(problem, known.positions)
    contained = np.array([known.contained(known.mask(positions) | fixed) for positions in sets])
    share = 0.0 if problem.examples is None else problem.examples.share
    if problem.opinion.any() or share == 1:
        # The fit had no plan of a model and no examples, so the posterior that includes them is the better estimate.
        return [float(chance) for chance in contained]
    sizes = np.array([len(positions) for positions in sets], dtype=np.float64)
    features = complete_features(contained, sizes, {**problem.facts, **doubts(problem, known)})
    chances = weights.completeness(features, contained)
    if share:
        against = (1 / np.clip([chances, contained], 1e-9, 1 - 1e-9) - 1) ** [[1 - share], [share]]
        chances = 1 / (1 + against.prod(axis=0))
    return [float(chance) for chance in chances]


def _positions(known: Posterior, mask: int) -> list[int]:
    return [position for bit, position in enumerate(known.positions.tolist()) if mask >> bit & 1]


def _why(problem: SelectionProblem, chance: Floats, order: Sequence[int], confidence: float, fits: float) -> str:
    """The confidence in the set, and the probability of the next candidate."""
    if fits < MIN_FIT:
        return f"{NOTHING_FITS} ({fits:.0%} likely that these tables answer it)"
    outside = np.where(problem.anchor, 0.0, chance)
    outside[list(order)] = 0.0
    following = f" (next candidate: {outside.max():.0%})" if outside.any() else ""
    tables = "1 table" if len(order) == 1 else f"{len(order)} tables"
    foreign = "; the question is not in English, so tables that keys link to these are added"
    is_linked = bool(problem.facts.get("foreign")) and _is_small(problem)
    return f"{tables}, {confidence:.0%} likely enough{following}" + foreign * is_linked


def among_promising(
    index: RetrievalIndex,
    question: Question,
    evidence: Evidence,
    anchored: int | None = None,
    k: int | None = None,
    weights: Weights | None = None,
    confidence: float = CONFIDENCE,
) -> Prepared[SelectionProblem]:
    """The problem over the tables with the best first stage's score, built from the evidence; at least k tables.

    If the question names years, and k is None, tables of other years are left out.
    """
    weights = (shipped_weights() if weights is None else weights).for_question(evidence.facts)
    prior = weights.prior(evidence.signals)
    opinion = np.zeros(len(prior)) if evidence.opinion is None else evidence.opinion
    learned, share, examples = np.zeros(len(prior)), 0.0, None
    if evidence.known is not None and weights.learned:
        of_tables = weights.of_learned(SIGNALS_LEARNED)
        learned = evidence.known.signals(evidence.vector, prior, of_tables) @ of_tables - prior
        known = index.has_rows.mean() * evidence.facts.get("known", 0.0)
        shares = evidence.known.shares(weights.of_learned(FEW), known, evidence.vector, prior)
        examples, share = evidence.known.examples(evidence.vector, shares), shares[-1]
    most = max(POOL, (k or 0) + (anchored is not None), int((opinion > 0).sum()))
    order = best_first(prior + share * learned + opinion)
    if k is None:
        order = order[~of_other_years(index.families, question.text)[order]]
    chosen = order[:most].tolist()
    tables = tuple(sorted({*chosen, *([] if anchored is None else [anchored])}))
    positions, profiles = list(tables), [index.tables[table] for table in tables]
    best = index.tables[order[0]]
    names = [one.name for one in profiles]
    is_denied = denies_a_table(question.text, names, best.name, [column.name for column in best.columns])
    alike = near_duplicates(index, tables)
    problem = SelectionProblem(
        r=prior[positions],
        **rows_of(index, question, evidence, tables),
        signals=evidence.signals[positions],
        source=index.database[positions],
        link=index.links.matrix(tables),
        refers=index.links.refers(tables),
        similarity=alike,
        mixed=mixed_copies(profiles, alike),
        anchor=anchors(tables, anchored),
        opinion=opinion[positions],
        learned=learned[positions],
        examples=examples and replace(examples, tables=examples.tables[:, positions]),
        facts={
            **evidence.facts,
            "denies": float(is_denied),
            "foreign": float(question.is_foreign),
            "unread": float(not evidence.facts.get("known") and not _LATIN.search(question.text)),
        },
        confidence=confidence,
    )
    return Prepared(tables, problem, question.added_subqueries, evidence)


@dataclass(frozen=True, kw_only=True)
class Auto(WithSubqueries):
    """The default: a fitted posterior over sets of tables, which also decides how many (:func:`fitted`).

    Attributes:
        confidence: for ``k="auto"``, the probability with which the tables must be complete, and what a miss costs:
            the higher it is, the less a further table must add. ``found.confidence`` is the probability that they
            reach.
        look: a model plans. It reads the best candidates in one call, and names tables, their roles, keys and the kind
            of the joins; counts check its plan, and ``found.merge()`` runs it.
        weights: those of a fit; the shipped ones if None.

    Raises:
        InvalidArgument: a confidence that is not between 0 and 1, or a text as ``subqueries`` that is not "model".
    """

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = "a fitted posterior over sets of tables, which also decides how many"
    chooses_k: ClassVar[bool] = True

    confidence: float = CONFIDENCE
    look: bool = False
    weights: Weights | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        is_number = isinstance(self.confidence, (int, float, np.number)) and not isinstance(self.confidence, bool)
        if not is_number or not 0 < self.confidence < 1:
            raise InvalidArgument(
                f"confidence must be a probability between 0 and 1, such as 0.9; got {self.confidence!r}"
            )

    @property
    def needs_model(self) -> bool:
        """Whether a model plans."""
        return self.look

    def relevance(self, index: RetrievalIndex, question: Question, lm: LM | None) -> Evidence:
        """The evidence for each table: see :func:`~tagframe.retrieval.signals.gather`."""
        return gather(index, question)

    def prepare(
        self, index: RetrievalIndex, question: Question, relevance: Evidence, anchored: int | None, k: int | None
    ) -> Prepared[SelectionProblem]:
        """The problem over the most promising tables."""
        return among_promising(index, question, relevance, anchored, k, self.weights, float(self.confidence))

    def select(self, problem: Any, k: int | None = None) -> Selection:
        """The k tables that the question most probably needs; with k None, as many as it needs."""
        return fitted(problem, k, self.weights)

    def note(self, index: RetrievalIndex, prepared: Prepared[Any]) -> str:
        """What is unusual of the embedder."""
        return unfitted(index.embedder)
