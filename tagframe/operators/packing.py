"""Several rows in one prompt ("a pack"). Row numbers in answers are checked, incomplete packs are split, and packs are
audited.

A model answers the rows of a pack a little differently from each row by itself; how much depends on the model and the
rows. So some rows are asked both ways first, and packs are made smaller until both ways agree. The answer to a row of a
pack is also stored for that row, so that later packs and single prompts of the same question find it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar

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
from tagframe.lm import Batch, Bound, Prompt, Stored
from tagframe.operators.answer_grammar import Unsure, without_reasoning
from tagframe.operators.cells import cut_note, encode, fence, pack, room, shortened
from tagframe.operators.row_question import Question, Reply, joined_notes
from tagframe.operators.step_generators import Step, bounded, gather_alike, together
from tagframe.operators.values import SHORT

T = TypeVar("T")
RowsPerCall: TypeAlias = int | Literal["auto"] | None
MOST = 16
"""Rows of a pack with ``rows_per_call="auto"``; with more, answers get worse."""
AUDITED = 50
"""Rows that are also asked one by one; if there are few rows, one in :data:`AUDITED_SHARE`."""
AUDITED_SHARE = 4
DIFFERING = 0.05
"""The largest share of audited rows to which a pack may give another answer."""
PACK_BYTES = 40_000
"""The most bytes of rows in one prompt: about 10,000 tokens."""
TOKENS_PER_LINE = 12
"""Room for an id, a short answer and markdown."""
EXPLAINED_TOKENS_PER_LINE = 128
HALVED = 8
"""A broken pack of more rows is asked again in halves; one of so many rows or fewer, row by row."""
SAID_ONCE = 24
"""A cell that all rows of a pack share is written once, before the rows, if it has at least so many bytes."""

_LINE = re.compile(r"\s*(?:[-*>#]+\s+)?[*_`]*(?:row\s+)?\[?(\d{1,6})\]?[*_`]*\s*[:.)=|–—-][*_`]*\s*(.*)", re.I)
_LABEL = re.compile(r"[*_`]*answer[*_`]*\s*[:=]", re.I)
_Pack: TypeAlias = list[int]
"""Rows by their positions among those asked."""
_Said: TypeAlias = tuple[Any, str | None, str]
"""A pack's answer to one row: value, explanation, and the text that an answer to this row alone would have."""
_SPLITTING = (AnswerRejected, AnswerWithheld, ContextTooLong, RequestTimedOut, ResponseTooLong)


def most_asked(rows: int, size: int) -> int:
    """The most prompts for rows in packs of at most ``size``: a broken pack of two takes three, all others no more."""
    return rows if size == 1 else rows + rows // 2


class Audited(int):
    """The size of packs that an audit has found; packs of that size are not audited again."""


def rows_per_call_of(given: int | Literal["auto"] | None) -> int:
    """``rows_per_call`` as a number.

    Raises:
        InvalidArgument: it is not "auto" and not a whole number of at least 1.
    """
    if given is None:
        return 1
    if given == "auto":
        return MOST
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidArgument(f'rows_per_call must be a whole number, at least 1, or "auto"; got {given!r}')
    return given


@dataclass
class Replies(Generic[T]):
    """The replies for rows.

    Attributes:
        of: the reply for each row, by the row as it is shown.
        remarks: how the rows were asked, if not one by one.
        size: rows of a pack; :class:`Audited` if there was an audit.
    """

    of: dict[str, Reply[T]]
    remarks: list[str]
    size: int


def ask_rows(question: Question[T], lines: Sequence[str], size: int) -> Step[Replies[T]]:
    """The reply for each row, in packs of at most ``size``, audited; equal rows are asked about once."""
    distinct = list(dict.fromkeys(lines)) if size > 1 else list(lines)  # the LM layer counts duplicates
    if size > 1 and not isinstance(size, Audited):
        return (yield from _ask_audited(question, distinct, size))
    replies = yield from ask_packed(question, distinct, size)
    return Replies(dict(zip(distinct, replies, strict=True)), [], size)


def _ask_audited(question: Question[T], lines: Sequence[str], size: int) -> Step[Replies[T]]:
    """The reply for each distinct row, asked in packs.

    Some rows, drawn at random (the same ones every time), are asked one by one and in packs of ``size``. Packs are
    halved while more than :data:`DIFFERING` of these rows get another answer. (All rows of an incomplete pack count as
    answered differently.) Other rows are asked in packs of the size that was found; audited rows keep their single
    answers.
    Rows whose stored answers come only from earlier packs are not audited.

    Args:
        question: the question.
        lines: rows, each once.
        size: the most rows of a pack.
    """
    count = min(AUDITED, len(lines) // AUDITED_SHARE)
    # Drawn at random, not evenly spaced: if kinds of rows alternate, even spacing could hit one kind only.
    drawn = [lines[row] for row in np.sort(np.random.default_rng(0).choice(len(lines), count, replace=False))]
    alone, packed_before = yield from together([question.recalled(drawn, "alone"), question.recalled(drawn, "packed")])
    audited = [line for row, line in enumerate(drawn) if row in alone or row not in packed_before]
    # Broken packs are not asked again, since all of their rows are asked one by one anyway.
    bound = Bound(2 * len(audited), -(-len(audited) // size))  # of all sizes, as of all packs with two rows and more
    asking = bounded(ask_packed(question, audited, size, "packed", splits=False), bound)
    packed, singly = yield from together([asking, question.ask(audited, "alone")])
    remarks: list[str] = []
    notes: list[str | None] = [None] * len(audited)
    while size > 1 and audited:
        both = list(zip(packed, singly, strict=True))
        compared = sum(alone.value is not None for _, alone in both)
        differing = sum(alone.value is not None and not _agree(question, among, alone) for among, alone in both)
        share = f" ({differing / compared:.0%})" if compared else ""
        remarks.append(
            f"{compared:,} rows were also asked one by one: {differing:,}{share} got another answer in packs of {size}."
        )
        notes = [_note(question, size, among, alone) for among, alone in both]
        if differing <= DIFFERING * compared:
            break
        size = (size + 1) // 2
        if size > 1:
            packed = yield from bounded(ask_packed(question, audited, size, "packed", splits=False), bound)
    replies = {
        line: replace(reply, note=joined_notes(reply.note, note))
        for line, reply, note in zip(audited, singly, notes, strict=True)
    }
    rest = [line for line in lines if line not in replies]
    others = yield from ask_packed(question, rest, size)
    replies.update(zip(rest, others, strict=True))
    remarks.append(f"{len(rest):,} distinct rows were asked {'one by one' if size == 1 else f'{size} at a time'}.")
    return Replies(replies, remarks, Audited(size) if audited else size)


def _agree(question: Question[Any], packed: Reply[Any], singly: Reply[Any]) -> bool:
    if packed.split or packed.value is None or isinstance(packed.value, Unsure) or isinstance(singly.value, Unsure):
        return not packed.split and packed.value is singly.value
    return question.alike(packed.value, singly.value)


def _note(question: Question[Any], size: int, packed: Reply[Any], singly: Reply[Any]) -> str:
    if packed.split:
        return f"also asked alone; a pack of {size} gave no answer"
    if _agree(question, packed, singly):
        return f"also asked alone; a pack of {size} gave the same answer"
    return f"also asked alone; a pack of {size} gave {_word(packed.value)}"


def _word(value: Any) -> str:
    if isinstance(value, Unsure):
        return "unsure"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def ask_packed(
    question: Question[T], lines: Sequence[str], size: int, stored: Stored = "any", *, splits: bool = True
) -> Step[list[Reply[T]]]:
    """The reply for each row, in packs of at most ``size``, with similar rows together; not audited.

    Stored packs are used as a whole. From the other packs, only rows without a stored answer (from other packs or
    alone) are asked. If the answer to a pack is incomplete, it is asked in halves, and then row by row.

    Args:
        question: the question.
        lines: rows, each once.
        size: the most rows of a pack; with 1, each row is asked alone.
        stored: which stored answers may be used for a row.
        splits: False leaves the rows of broken packs without an answer.
    """
    if size == 1:
        return (yield from question.ask(lines, stored))
    packing = _Packing(question, lines)
    yield from packing.complete(packing.packs(packing.left(), size), sends=False)
    left = packing.left()
    known = yield from question.recalled([packing.shown[row] for row in left], stored)
    packing.replies.update((left[number], reply) for number, reply in known.items())
    left = packing.left()
    bound = Bound(most_asked(len(left), size), -(-len(left) // size))
    yield from bounded(_ask_left(packing, left, size, splits), bound)
    replies = [packing.replies[row] for row in range(len(lines))]
    return [
        replace(reply, note=joined_notes(note, reply.note)) for reply, note in zip(replies, packing.notes, strict=True)
    ]


def _ask_left(packing: _Packing[Any], left: Sequence[int], size: int, splits: bool) -> Step[None]:
    """Ask about the rows without an answer; rows of packs that fail are asked again, if wanted."""
    alone: list[int] = []
    split: set[int] = set()
    packs = packing.packs(left, size)
    while packs:
        alone += [pack[0] for pack in packs if len(pack) == 1]
        broken = yield from packing.complete(packs, sends=True)
        split.update(row for pack in broken for row in pack)
        packs = [part for pack in broken for part in _parts(pack)] if splits else []
    if not splits:
        packing.replies.update((row, Reply(None)) for row in split)
    judged = yield from packing.question.ask([packing.lines[row] for row in alone])
    packing.replies.update(zip(alone, judged, strict=True))
    for row in alone:
        packing.notes[row] = None  # the reply to a row that was asked alone has its own note on this
    for row in split:
        reply = packing.replies[row]
        note = f"asked again in a smaller pack: the answer to {size} rows was incomplete"
        packing.replies[row] = replace(reply, note=joined_notes(reply.note, note), split=True)


def _parts(pack: _Pack) -> list[_Pack]:
    step = len(pack) // 2 if len(pack) > HALVED else 1
    return [pack[at : at + step] for at in range(0, len(pack), step)]


class _Packing(Generic[T]):
    """Rows that are asked in packs.

    Attributes:
        lines: the rows as lines.
        shown: the lines as a pack shows them, which may be cut to the model's context.
        notes: how much of each row is shown, if not all.
        replies: the replies so far, by row.
    """

    def __init__(self, question: Question[T], lines: Sequence[str]) -> None:
        self.question = question
        self.lines = lines
        self.system = _system(question)
        most = room(question.window, self.system)
        self.limit = PACK_BYTES if most is None else min(PACK_BYTES, most)
        self.shown = list(lines) if most is None else [shortened(line, most) for line in lines]
        self.notes = [cut_note(line, shown) for line, shown in zip(lines, self.shown, strict=True)]
        self.replies: dict[int, Reply[T]] = {}

    def left(self) -> list[int]:
        """The rows without a reply, similar ones together: side by side, a model answers them more consistently."""
        left = (row for row in range(len(self.lines)) if row not in self.replies)
        return sorted(left, key=lambda row: (self.shown[row].casefold(), row))

    def packs(self, rows: Sequence[int], size: int) -> list[_Pack]:
        """These rows in order, in packs of at most ``size`` rows; a row too long to share a prompt is asked alone."""
        packs = pack([len(self.shown[row].encode()) for row in rows], self.limit, most=size)
        return [[rows[position] for position in positions] for positions in packs]

    def complete(self, packs: Sequence[_Pack], *, sends: bool) -> Step[list[_Pack]]:
        """Read the replies to packs of several rows and store them; returns the packs to ask again in halves.

        Args:
            packs: rows; packs of one row are left out.
            sends: False uses only stored answers.
        """
        several = [pack for pack in packs if len(pack) > 1]
        completions = yield from gather_alike(several, lambda alike: self._batch(alike, sends))
        broken: list[_Pack] = []
        said: list[tuple[str, str]] = []
        for rows, completion in zip(several, completions, strict=True):
            if completion.value is not None:
                for row, (value, reason, alone) in zip(rows, completion.value, strict=True):
                    self.replies[row] = Reply(value, reason)
                    said.append((self.shown[row], alone))
            elif sends and _is_worth_splitting(completion.error):
                broken.append(rows)
            elif sends:
                self.replies.update((row, Reply(None, error=completion.error)) for row in rows)
        yield from self.question.keep(said)
        return broken

    def _batch(self, packs: Sequence[_Pack], sends: bool) -> Batch[list[_Said]]:
        """The prompts of packs of one length."""
        question, length = self.question, len(packs[0])
        one = question.guessed("A map shows it on a coast. Answer: ")
        per_line = EXPLAINED_TOKENS_PER_LINE * question.explains + question.tokens - SHORT + TOKENS_PER_LINE
        last, shape = _asked_last(question), question.shape
        shape = shape.explained(" ") if shape and question.explains else shape
        return Batch(
            [
                Prompt.of(f"{fence(_numbered([self.shown[row] for row in rows]), 'rows')}\n{last}", self.system)
                for rows in packs
            ],
            reader(question, length),
            max_tokens=length * max(per_line, TOKENS_PER_LINE),
            guess="\n".join(f"{number + 1}: {one[number % len(one)]}" for number in range(length)),
            sends=sends,
            form=shape and shape.numbered(length),
            keeps_rejected=True,
        )


def _system(question: Question[Any]) -> str:
    solved = [
        f"{turn.content}" if turn.role == "user" else f"Of that row the answer is {turn.content}"
        for turn in question.turns
    ]
    examples = "\n\nRows that were answered before:\n" + "\n".join(solved) if solved else ""
    return f"{question.task} {question.rules} Take each numbered row by itself.{examples}\n\n{question.text}"


def _asked_last(question: Question[Any]) -> str:
    """The line after the rows of a pack."""
    example = f"1: {question.guessed('It is so. Answer: ')[0]}"
    said = f"an explanation in one sentence, and 'Answer:' and {question.form}" if question.explains else question.form
    return f"Answer with one line for each row, in order: its number, a colon, and {said}, as in '{example}'."


def _numbered(lines: Sequence[str]) -> list[str]:
    """The rows of a pack with their numbers; long cells and names that all rows share come once, before the rows."""
    rows = [json.loads(line) for line in lines]
    if not all(isinstance(row, dict) for row in rows):  # one was cut to a text
        return [f"{number} {line}" for number, line in enumerate(lines, start=1)]
    shared = {
        name: cell
        for name, cell in rows[0].items()
        if len(str(cell)) >= SAID_ONCE and all(name in row and row[name] == cell for row in rows)
    }
    own: list[Any] = [{name: cell for name, cell in row.items() if name not in shared} for row in rows]
    said = [f"Every row has {encode(shared)} and:"] if shared else []
    names = list(own[0])
    if names and all(list(row) == names for row in own):
        said.append(f"Fields of each row: {encode(names)}")
        own = [list(row.values()) for row in own]
    return [*said, *(f"{number} {encode(row)}" for number, row in enumerate(own, start=1))]


def reader(question: Question[Any], length: int) -> Callable[[str], list[_Said]]:
    """A parser for the answer to a pack: for each row in order, value, explanation, and the answer to the row alone.

    It raises :class:`AnswerRejected` unless each number from 1 to ``length`` comes before one answer, exactly once.
    """

    def read(text: str) -> list[_Said]:
        found: dict[int, _Said] = {}
        for line in without_reasoning(text).splitlines():
            numbered = _LINE.fullmatch(line)
            if numbered is None:
                if found and line.strip(" `*-_"):
                    raise AnswerRejected(f"expected a line for each row and nothing else, got {line[:80]!r}")
                continue  # words before the first answer
            number = int(numbered[1])
            if number in found:
                raise AnswerRejected(f"row {number} is answered twice")
            found[number] = _read_line(question, numbered[2])
        missing = [number for number in range(1, length + 1) if number not in found]
        if missing or len(found) > length:
            odd = f"no line for row {missing[0]}" if missing else f"a line for row {max(found)}, which is none"
            raise AnswerRejected(f"expected one line for each row from 1 to {length}; there is {odd}")
        return [found[number] for number in range(1, length + 1)]

    return read


def _read_line(question: Question[Any], text: str) -> _Said:
    if not question.explains:
        return question.read(text), None, text
    label = list(_LABEL.finditer(text))
    if not label:
        raise AnswerRejected(f"expected 'Answer:' and {question.form} at the end of each line, got {text[-80:]!r}")
    reason, said = text[: label[-1].start()].strip(" *_-–—"), text[label[-1].end() :].strip(" *_`")
    return question.read(said), reason, f"{reason}\nAnswer: {said}"


def _is_worth_splitting(error: Exception | None) -> bool:
    """Whether parts of a pack may get an answer if the whole pack does not."""
    if isinstance(error, _SPLITTING):
        return True
    return isinstance(error, LMRequestFailed) and error.status in (400, 413, 422) and not error.stops_run
