"""Several rows in one prompt: ids checked on the way back, packs split where they do not come back whole, and audited.

A model judges the rows of a pack a little otherwise than each by itself, and how much depends on the model and on the
rows. So some rows are asked both ways first, and packs are made smaller until both ways agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from tagframe.errors import (
    AnswerRejected,
    AnswerWithheld,
    ContextTooLong,
    InvalidArgument,
    LMRequestFailed,
    RequestTimedOut,
    ResponseTooLong,
)
from tagframe.lm import Batch, Completion, Prompt
from tagframe.operators.answer_grammar import UNSURE, parse_word_or_unsure, without_reasoning
from tagframe.operators.cells import FENCE_RULE, fence, shortened
from tagframe.operators.fitting import cut_note, room
from tagframe.operators.instruction import FIELD_RULE
from tagframe.operators.judging import TRUTH, Judge, Truth, Verdict
from tagframe.operators.steps import Step, gather, together

RowsPerCall: TypeAlias = int | Literal["auto"] | None
MOST = 16
"""Rows of a pack with ``rows_per_call="auto"``: the quality of answers falls beyond."""
AUDITED = 50
"""Rows that are asked singly too; one in :data:`AUDITED_SHARE` where there are few."""
AUDITED_SHARE = 4
DIFFERING = 0.05
"""The share of audited rows that a pack may answer otherwise."""
PACK_BYTES = 40_000
"""Of rows in one prompt at most: about 10,000 tokens."""
TOKENS_PER_LINE = 12
"""Room for an id, a word and markdown."""
EXPLAINED_TOKENS_PER_LINE = 128

_TASK = (
    "You judge rows of a table, each by itself. Decide of each whether the claim is true of it, from the row and from "
    f"what you know of the world. {FENCE_RULE} {FIELD_RULE} Each row stands on a line, after its number."
)
_ANSWER_ONLY = (
    "Answer with a line for each row, in order: its number, a colon, and True or False, as in '1: True'; Unsure where "
    "neither the row nor what you know decides it. Nothing else."
)
_ANSWER_EXPLAINED = (
    "Answer with one line for each row, in their order: its number, a colon, an explanation in one sentence, and "
    "'Answer: True' or 'Answer: False', as in '1: It is a river. Answer: False'. Where neither the row nor what you "
    "know decides it, 'Answer: Unsure'. Write nothing else."
)
_LINE = re.compile(r"\s*(?:[-*>#]+\s+)?[*_`]*(?:row\s+)?\[?(\d{1,6})\]?[*_`]*\s*[:.)=|–—-][*_`]*\s*(.*)", re.I)
_LABEL = re.compile(r"[*_`]*answer[*_`]*\s*[:=]", re.I)
_Pack: TypeAlias = list[tuple[int, str]]
"""Rows by their place among those asked, each as it is shown."""
_SPLITTING = (AnswerRejected, AnswerWithheld, ContextTooLong, RequestTimedOut, ResponseTooLong)


def rows_per_call_of(given: int | Literal["auto"] | None) -> int:
    """``rows_per_call`` as a number.

    Raises:
        InvalidArgument: it is neither "auto" nor a whole number of at least 1.
    """
    if given is None:
        return 1
    if given == "auto":
        return MOST
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidArgument(f'rows_per_call is a whole number of at least 1, or "auto"; got {given!r}')
    return given


def ask_audited(judge: Judge, lines: Sequence[str], size: int) -> Step[tuple[list[Verdict], list[str]]]:
    """The verdict on each distinct row, asked in packs, and what is to be told of that.

    Some rows, drawn at random (the same ones every time), are asked singly and in packs of ``size``; the packs are
    halved as long as more than :data:`DIFFERING` of these rows are answered otherwise. (A pack that does not come back
    whole counts with all of its rows.) The others are asked in packs of the size that was found, and the audited ones
    keep what was said of them singly.

    Args:
        judge: the claim.
        lines: rows, each once.
        size: rows of a pack at most.
    """
    count = min(AUDITED, len(lines) // AUDITED_SHARE) if size > 1 else 0
    # Drawn, not evenly spaced: rows that take turns would show one kind of them alone.
    sample = np.sort(np.random.default_rng(0).choice(len(lines), count, replace=False)).tolist()
    audited = [lines[place] for place in sample]
    first, singly = yield from together([ask_packed(judge, audited, size), judge.ask(audited)])
    remarks: list[str] = []
    notes: list[str | None] = [None] * count
    packed = first
    while size > 1 and count:
        compared = [place for place in range(count) if singly[place].truth is not None]
        differing = [
            place for place in compared if packed[place].split or packed[place].truth is not singly[place].truth
        ]
        remarks.append(_remark(size, len(compared), len(differing)))
        notes = [_note(size, packed[place], singly[place]) for place in range(count)]
        if len(differing) <= DIFFERING * len(compared):
            break
        size = (size + 1) // 2
        packed = singly if size == 1 else (yield from ask_packed(judge, audited, size))
    verdicts = {
        place: replace(verdict, note=_joined(verdict.note, note))
        for place, verdict, note in zip(sample, singly, notes, strict=True)
    }
    rest = [place for place in range(len(lines)) if place not in verdicts]
    others = yield from ask_packed(judge, [lines[place] for place in rest], size)
    verdicts.update(zip(rest, others, strict=True))
    remarks.append(f"{len(rest):,} distinct rows were asked {'singly' if size == 1 else f'{size} at a time'}.")
    return [verdicts[place] for place in range(len(lines))], remarks


def _remark(size: int, compared: int, differing: int) -> str:
    share = f" ({differing / compared:.0%})" if compared else ""
    return f"Of {compared:,} rows asked singly too, {differing:,}{share} differ from what was said {size} at a time."


def _note(size: int, packed: Verdict, singly: Verdict) -> str:
    if packed.split:
        return f"asked singly too; {size} at a time there was no answer"
    if packed.truth is singly.truth:
        return f"asked singly too; {size} at a time the answer was the same"
    said = "unsure" if packed.truth is UNSURE else "yes" if packed.truth else "no"
    return f"asked singly too; {size} at a time the answer was {said}"


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None


def ask_packed(judge: Judge, lines: Sequence[str], size: int) -> Step[list[Verdict]]:
    """The verdict on each row, in packs of at most ``size``; not audited.

    A pack that does not come back whole is asked in halves, down to single rows.
    """
    system = _system(judge)
    most = room(judge.window, system)
    limit = PACK_BYTES if most is None else min(PACK_BYTES, most)
    rows = [(place, line if most is None else shortened(line, most)) for place, line in enumerate(lines)]
    notes = [cut_note(line, shown) for line, (_, shown) in zip(lines, rows, strict=True)]
    verdicts: dict[int, Verdict] = {}
    alone: list[int] = []
    packs = _packs(rows, size, limit)
    split: set[int] = set()
    while packs:
        alike: dict[int, list[_Pack]] = {}
        for pack in packs:
            alike.setdefault(len(pack), []).append(pack)
        alone += [place for ((place, _),) in alike.pop(1, [])]
        answered = yield from together([_complete(judge, system, same, length) for length, same in alike.items()])
        packs = []
        for same, completions in zip(alike.values(), answered, strict=True):
            for pack, completion in zip(same, completions, strict=True):
                if completion.value is None and _is_worth_splitting(completion.error):
                    packs += [pack[: len(pack) // 2], pack[len(pack) // 2 :]]
                    split.update(place for place, _ in pack)
                    continue
                failed = [(None, None)] * len(pack)
                for (place, _), (truth, reason) in zip(pack, completion.value or failed, strict=True):
                    verdicts[place] = Verdict(truth, reason, error=completion.error, note=notes[place])
    judged = yield from judge.ask([lines[place] for place in alone])
    verdicts.update(zip(alone, judged, strict=True))
    for place in split:
        note = _joined(verdicts[place].note, f"asked again in a smaller pack: one of {size} did not come back whole")
        verdicts[place] = replace(verdicts[place], note=note, split=True)
    return [verdicts[place] for place in range(len(lines))]


def _system(judge: Judge) -> str:
    form = _ANSWER_EXPLAINED if judge.explains else _ANSWER_ONLY
    solved = [
        f"{turn.content}" if turn.role == "user" else f"Of that row the answer is {turn.content}"
        for turn in judge.turns
    ]
    examples = "\n\nRows that were judged before:\n" + "\n".join(solved) if solved else ""
    return f"{_TASK} {form}{examples}\n\nClaim: {judge.claim}"


def _packs(rows: Sequence[tuple[int, str]], size: int, limit: int) -> list[_Pack]:
    """Rows in order, in packs of at most ``size`` rows and ``limit`` bytes; a longer row stands alone."""
    packs: list[_Pack] = []
    held = 0
    for row in rows:
        weight = len(row[1].encode())
        if packs and len(packs[-1]) < size and held + weight <= limit:
            packs[-1].append(row)
        else:
            packs.append([row])
            held = 0
        held += weight
    return packs


def _complete(
    judge: Judge, system: str, packs: Sequence[_Pack], length: int
) -> Step[list[Completion[list[tuple[Truth, str | None]]]]]:
    """The answers to packs of one length."""
    prompts = []
    for pack in packs:
        numbered = [f"{number} {line}" for number, (_, line) in enumerate(pack, start=1)]
        prompts.append(Prompt.of(fence(numbered, "rows"), system))
    return (
        yield from gather(
            Batch(
                prompts,
                reader(length, judge.explains),
                max_tokens=length * (EXPLAINED_TOKENS_PER_LINE if judge.explains else TOKENS_PER_LINE),
                guess="\n".join(
                    f"{number}: {'A map shows it on a coast. Answer: True' if judge.explains else 'True'}"
                    for number in range(1, length + 1)
                ),
                calls_at_most=2 * length * len(packs),
            )
        )
    )


def reader(length: int, explained: bool) -> Callable[[str], list[tuple[Truth, str | None]]]:
    """What reads the answer about a pack: ``(truth, explanation)`` of each row, in order.

    It raises :class:`AnswerRejected` unless each number from 1 to ``length`` stands before one answer, once.

    >>> reader(2, False)("1: True\\n2: No.")
    [(True, None), (False, None)]
    """

    def read(text: str) -> list[tuple[Truth, str | None]]:
        found: dict[int, tuple[Truth, str | None]] = {}
        for line in without_reasoning(text).splitlines():
            numbered = _LINE.fullmatch(line)
            if numbered is None:
                if found and line.strip(" `*-_"):
                    raise AnswerRejected(f"expected a line for each row and nothing else, got {line[:80]!r}")
                continue  # words before the first answer
            number = int(numbered[1])
            if number in found:
                raise AnswerRejected(f"row {number} is answered twice")
            found[number] = _read_line(numbered[2], explained)
        missing = [number for number in range(1, length + 1) if number not in found]
        if missing or len(found) > length:
            odd = f"no line for row {missing[0]}" if missing else f"a line for row {max(found)}, which is none"
            raise AnswerRejected(f"expected one line for each row from 1 to {length}; there is {odd}")
        return [found[number] for number in range(1, length + 1)]

    return read


def _read_line(text: str, explained: bool) -> tuple[Truth, str | None]:
    if not explained:
        return parse_word_or_unsure(text, TRUTH, "True or False after each row's number"), None
    label = list(_LABEL.finditer(text))
    if not label:
        raise AnswerRejected(f"expected 'Answer: True' or 'Answer: False' at the end of each line, got {text[-80:]!r}")
    truth = parse_word_or_unsure(text[label[-1].end() :], TRUTH, "'Answer: True' or 'Answer: False'")
    return truth, text[: label[-1].start()].strip(" *_-–—")


def _is_worth_splitting(error: Exception | None) -> bool:
    """Whether parts of a pack may be answered where the whole is not."""
    if isinstance(error, _SPLITTING):
        return True
    return isinstance(error, LMRequestFailed) and error.status in (400, 413, 422) and not error.stops_run
