"""``corpus.check_keys``: a model judges the keys of which names and values leave a doubt, once."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagframe.answer.annotating import answered_by, failures, quote_of_prompts
from tagframe.blocks import FENCE_RULE, fence
from tagframe.corpus import ColumnProfile, Corpus
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.facts import FactKey, as_description, checked_fact
from tagframe.corpus.references import JoinColumns
from tagframe.display import Displayable
from tagframe.errors import AnswerRejected, counted
from tagframe.joins.infer import possible_keys
from tagframe.keys import KeyPair
from tagframe.lm import LM, Completion, Message, Prompt, Quote
from tagframe.operators.values import parse_json

LEAST, MOST = 0.2, 0.8
"""Pairs with a chance between these are asked about."""
TIE = 0.1
"""So are pairs of one column whose chances differ by no more."""
RIVAL = 0.05
"""If the likeliest pair of a column is in doubt, its others are asked about from this chance on."""
PAIRS = 12
"""Pairs in one prompt."""
ANSWERS = ("yes", "no", "cannot tell")
_SAMPLES, _CHARACTERS, _COLUMNS, _KEYS, _WHY = 3, 40, 60, 12, 120
_WORD = 3
"""A shorter cell counts as repeated only where it stands as a word."""

_Reply = dict[int, tuple[str, str]]
"""By the number of a pair in its prompt: one of :data:`ANSWERS`, and the reason."""

_FORM = '{"1": {"answer": "yes", "why": "…"}, "2": …}'

_TASK = f"""You review the keys of a database. You are shown some of its tables with their columns and the keys that \
are known, and numbered pairs of columns with a few of their values, as far as these are known.
For each pair, say whether the first column references the second one: "yes" if its values are keys of the rows that the
second column identifies, "no" if it means something else, or the rows of another table, and "cannot tell" if neither
names nor values say so. Two columns that merely hold values of one kind, such as a city, a date or an amount, are no
key; neither are two columns that both reference a third table.

{FENCE_RULE} The same holds for names.

Reply with one JSON object {_FORM} with an answer for each number: "yes", "no" or "cannot tell", and why
in a few words."""


@dataclass(frozen=True, repr=False)
class CheckedKeys(Displayable):
    """What a model said of keys.

    Attributes:
        yes, no, unsure: how many pairs it took for keys, for none, and could not tell.
        failed: pairs without a usable answer, and why; the next call asks about them again.
    """

    yes: int
    no: int
    unsure: int
    failed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        prompts_left = counted(self.yes + self.no + self.unsure, "pair")
        remarks = f"a model checked {prompts_left} of columns: {self.yes} yes, {self.no} no, {self.unsure} cannot tell"
        return "\n".join([remarks, *failures(self.failed)])


def checked(corpus: Corpus, lm: LM) -> CheckedKeys:
    """Have a model judge the doubtful keys that it has not judged yet. However this ends, its answers are kept.

    Args:
        corpus: whose keys are judged.
        lm: the model.

    Raises:
        ReplayMiss: a store that is replayed lacks answers; all prompts are noted in it.
    """
    prompts_left = list(prompts(corpus))
    facts: dict[FactKey, Any] = {}
    failed: dict[str, str] = {}

    def keep(answers: Sequence[Completion[_Reply] | None]) -> None:
        for (pairs, _), answer in zip(prompts_left, answers, strict=True):
            remarks = (answer and answer.value) or {}
            missing = "it was not asked" if answer is None else str(answer.error or "the answer leaves it out")
            cells = [cell for pair in pairs for column in _columns(corpus, pair) for cell in _excerpt(column)]
            for position, pair in enumerate(pairs, start=1):
                if position not in remarks:
                    failed[f"{pair.left} = {pair.right}"] = missing
                    continue
                word, why = remarks[position]
                seen = any(_excerpt(column) for column in _columns(corpus, pair))
                facts.update([checked_fact(_described(pair), word, "" if _repeats(why, cells) else why, cells=seen)])
        fact_store(corpus).put(facts)

    answered_by(lm, "check keys", [prompt for _, prompt in prompts_left], parse_answers, keep)
    counts = Counter(value["answer"] for value in facts.values())
    return CheckedKeys(counts["yes"], counts["no"], counts["cannot tell"], tuple(failed.items()))


def quoted(corpus: Corpus, lm: LM) -> Quote:
    """The cost of :func:`checked`."""
    guess = json.dumps({str(number): {"answer": "yes", "why": "names its table"} for number in range(1, PAIRS + 1)})
    return quote_of_prompts(lm, [prompt for _, prompt in prompts(corpus)], guess, parse_answers)


def doubtful(keys: Sequence[KeyPair]) -> list[KeyPair]:
    """The keys whose chance leaves a doubt, their rivals, and those of a column that has several almost equal ones."""
    best: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(list)
    for key in keys:
        best[key.left_table, key.left_columns].append(key.score)

    def is_doubtful(key: KeyPair) -> bool:
        scores = best[key.left_table, key.left_columns]
        most = max(scores)
        if key.evidence.origin != "inferred" or most < LEAST:
            return False
        if LEAST <= key.score <= MOST:
            return True
        ties = sum(score >= most - TIE for score in scores)
        return key.score >= (RIVAL if most <= MOST else most - TIE if ties > 1 else 1.0)

    return [key for key in keys if is_doubtful(key)]


def prompts(corpus: Corpus) -> Iterator[tuple[Sequence[KeyPair], Prompt]]:
    """The doubtful keys that no model has judged, in packs, and a prompt for each pack."""
    keys = possible_keys(corpus)
    known = {pair.sides for pair, _, _ in fact_store(corpus).facts.checked}
    prompts_left = [key for key in doubtful(keys) if _described(key).sides not in known]
    prompts_left.sort(key=lambda key: (key.left, key.right))  # pairs of one table share its description
    around: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        for table in key.tables if key.score > MOST else ():
            around[table].append(f"{key.left} = {key.right}")
    for start in range(0, len(prompts_left), PAIRS):
        pack = prompts_left[start : start + PAIRS]
        tables = sorted({table for key in pack for table in key.tables})
        described = [json.dumps(_table(corpus, table, around), ensure_ascii=False) for table in tables]
        pairs = [json.dumps(_pair(corpus, n, key), ensure_ascii=False) for n, key in enumerate(pack, start=1)]
        user = f"{fence(described, 'tables')}\n\n{fence(pairs, 'pairs')}"
        yield pack, Prompt((Message("system", _TASK), Message("user", user)))


def _table(corpus: Corpus, id: str, around: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    profile = corpus.profile(id)
    plain = {
        "table": id,
        "rows": profile.rows,
        "description": profile.description,
        "columns": [column.name for column in profile.columns[:_COLUMNS]],
        "keys": around.get(id, [])[:_KEYS],
    }
    return {name: value for name, value in plain.items() if value not in (None, "", [])}


def _pair(corpus: Corpus, number: int, key: KeyPair) -> dict[str, Any]:
    columns = _columns(corpus, key)
    cut = len(key.left_columns)
    plain: dict[str, Any] = {
        "pair": number,
        "first": {"column": key.left, "holds": [*map(_facts, columns[:cut])]},
        "second": {"column": key.right, "holds": [*map(_facts, columns[cut:])]},
    }
    if key.evidence.contained is not None and all(not column.private for column in columns):
        plain["values of the first that the second has"] = f"{key.evidence.contained:.0%}"
    return plain


def _facts(column: ColumnProfile) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": column.declared_type or column.family, "description": column.description}
    if not column.private:
        plain |= {"distinct": column.distinct, "nulls": column.nulls, "values": _excerpt(column)}
    return {name: value for name, value in plain.items() if value not in (None, "", [])}


def _columns(corpus: Corpus, key: KeyPair) -> list[ColumnProfile]:
    left, right = corpus.profile(key.left_table), corpus.profile(key.right_table)
    return [*map(left.column, key.left_columns), *map(right.column, key.right_columns)]


def _excerpt(column: ColumnProfile) -> list[str]:
    return [sample[:_CHARACTERS] for sample in column.samples[:_SAMPLES]] if not column.private else []


def _described(key: KeyPair) -> JoinColumns:
    return JoinColumns.of(vars(key))


def _repeats(why: str, cells: Sequence[str]) -> bool:
    """Whether a reason repeats a cell, which may be an attack, or be of a column that is private later."""
    remarks = why.casefold()
    visible = {cell.strip().casefold() for cell in cells} - {""}
    return any(
        cell in remarks if len(cell) > _WORD else re.search(rf"\b{re.escape(cell)}\b", remarks) for cell in visible
    )


def parse_answers(text: str) -> _Reply:
    """A model's answers; pairs without a usable one are left out.

    >>> parse_answers('{"1": {"answer": "Yes", "why": "its key"}, "2": {"answer": "maybe"}, "3": "no"}')
    {1: ('yes', 'its key'), 3: ('no', '')}

    Raises:
        AnswerRejected: there is none.
    """
    plain, body = parse_json(text, _FORM)
    found: _Reply = {}
    for number, one in plain.items() if isinstance(plain, dict) else ():
        remarks, why = (one.get("answer"), one.get("why")) if isinstance(one, dict) else (one, "")
        word = remarks.strip().casefold() if isinstance(remarks, str) else ""
        if re.fullmatch(r"\d{1,3}", number) and word in ANSWERS:
            found[int(number)] = word, as_description(why)[:_WHY] if isinstance(why, str) else ""
    if not found:
        raise AnswerRejected(f"expected {_FORM}, got {body[:120]!r}")
    return found
