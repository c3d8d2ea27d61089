"""The TAG model: three functions, whatever they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Unpack, overload

import pandas as pd

from tagframe import config
from tagframe.answer.answer import Answer, Generated, StepUse
from tagframe.answer.generation import plain_values, rows_as_text
from tagframe.answer.metering import as_step, metered
from tagframe.answer.query_quote import quote_of
from tagframe.answer.step_models import driver
from tagframe.config import SearchSettings
from tagframe.errors import DoubtedAnswer, DoubtWarning, InvalidArgument, LMError, SQLFailed, warn
from tagframe.lm import Quote
from tagframe.operators import Step, arun, run, run_many

OnDoubt = Literal["keep", "warn", "raise"]


class Syn(Protocol):
    """``syn(R) -> Q``: query synthesis.

    One that may be told how its query went has ``revise(request, query, why)`` too, a step that gives another query or
    None: it is asked once, where the query fails or gives no rows.
    """

    def __call__(self, request: str, /) -> Any:
        """The query, or a step (:data:`tagframe.operators.Step`) that ends with it."""


class Exec(Protocol):
    """``exec(Q) -> T``: query execution.

    One that can say why there are no rows has ``why_empty(rows)`` too, which gives a text; one that can say what
    speaks against them has ``doubts(rows, retrieved)``, which gives :class:`~tagframe.answer.Doubt` s.
    """

    def __call__(self, query: Any, /) -> Any:
        """The rows, or a step that ends with them."""


class Gen(Protocol):
    """``gen(R, T) -> A``: answer generation."""

    def __call__(self, request: str, rows: pd.DataFrame, /) -> Any:
        """A text, a list of values, or both as :class:`~tagframe.answer.Generated`; or a step that ends with one."""


@dataclass(frozen=True)
class TAG:
    """A pipeline of table-augmented generation (Biswal et al., CIDR 2025, section 2, equations 1 to 3).

    Each of the three may be a plain function, a function that gives a step (what it asks of a model is then asked
    beside what other questions ask), or one of ours: :func:`tagframe.exec_sql`, and what :func:`tagframe.text2sql` and
    :func:`tagframe.rag` are made of.

    Attributes:
        syn: ``syn(R) -> Q``.
        exec: ``exec(Q) -> T``; T is a frame.
        gen: ``gen(R, T) -> A``; None leaves the rows as the answer, as Text2SQL does.
        on_doubt: what is done where something speaks against an answer: "keep" says so on it, "warn", or "raise".

    >>> import pandas as pd
    >>> films = pd.DataFrame({"title": ["Low Tide", "Salt Road"], "year": [1998, 2015]})
    >>> newest = TAG(
    ...     syn=lambda request: "year == year.max()",
    ...     exec=films.query,
    ...     gen=lambda request, rows: rows["title"].tolist(),
    ... )
    >>> newest("The newest film").values
    ['Salt Road']
    """

    syn: Syn
    exec: Exec
    gen: Gen | None = None
    on_doubt: OnDoubt = "keep"

    def __post_init__(self) -> None:
        if self.on_doubt not in ("keep", "warn", "raise"):
            raise InvalidArgument(f"on_doubt is 'keep', 'warn' or 'raise'; got {self.on_doubt!r}")

    @overload
    def __call__(self, request: str, *, quote: Literal[False] = ..., **settings: Unpack[SearchSettings]) -> Answer: ...
    @overload
    def __call__(self, request: str, *, quote: Literal[True], **settings: Unpack[SearchSettings]) -> Quote: ...
    def __call__(self, request: str, *, quote: bool = False, **settings: Unpack[SearchSettings]) -> Answer | Quote:
        """Answer one request; the thread waits for it.

        Args:
            request: in plain language, as a rule.
            quote: what the rest would cost instead, once ``syn`` has been asked (and its answer kept in the response
                store): ``exec`` and ``gen`` send nothing.
            **settings: as in :func:`tagframe.configure`, for this call.

        Raises:
            Exception: what the three functions raise.
        """
        with config.context(**settings):
            step: Step[Any] = self.quoted(request) if quote else self.steps(request)
            return run(step, driver(), "ask")  # type: ignore[no-any-return]

    @overload
    async def awaited(
        self, request: str, *, quote: Literal[False] = ..., **settings: Unpack[SearchSettings]
    ) -> Answer: ...
    @overload
    async def awaited(self, request: str, *, quote: Literal[True], **settings: Unpack[SearchSettings]) -> Quote: ...
    async def awaited(self, request: str, *, quote: bool = False, **settings: Unpack[SearchSettings]) -> Answer | Quote:
        """Answer one request; the event loop goes on, and cancelling stops what is not sent."""
        with config.context(**settings):
            return await arun(self.quoted(request) if quote else self.steps(request), driver(), "ask")

    @overload
    def many(
        self, requests: Sequence[str], *, quote: Literal[False] = ..., **settings: Unpack[SearchSettings]
    ) -> list[Answer | Exception]: ...
    @overload
    def many(self, requests: Sequence[str], *, quote: Literal[True], **settings: Unpack[SearchSettings]) -> Quote: ...
    def many(
        self, requests: Sequence[str], *, quote: bool = False, **settings: Unpack[SearchSettings]
    ) -> list[Answer | Exception] | Quote:
        """Answer many requests that advance together, in order; where one fails, its error stands in its place.

        With ``quote=True``, the sum of what each would cost alone, once ``syn`` has been asked of all of them; one that
        fails adds nothing.

        Raises:
            ReplayMiss: with ``lm="replay:STORE"``, once all that can be asked of all of them is noted.
        """
        if isinstance(requests, str):
            raise InvalidArgument(f"many requests are a list of texts; got the text {requests!r}")
        with config.context(**settings):
            if not quote:
                return run_many([self.steps(request) for request in requests], driver(), "ask")
            quotes = run_many([self.quoted(request) for request in requests], driver(), "ask")
            return sum((replace(one, query=None) for one in quotes if isinstance(one, Quote)), Quote())

    def steps(self, request: str) -> Step[Answer]:
        """The three as one step, for the drivers of :mod:`tagframe.operators`."""
        took: list[StepUse] = []

        def part(name: str, function: Any, *arguments: Any) -> Step[Any]:
            return metered(as_step(function, *arguments), name, request, took.append)

        query = yield from part("syn", self.syn, request)
        query, rows = yield from self._executed(part, request, query)
        said = None if self.gen is None else (yield from part("gen", self.gen, request, rows))
        generated = _generated(said, rows)
        found, doubts = getattr(query, "retrieved", None), getattr(self.exec, "doubts", None)
        doubted = () if doubts is None else tuple(doubts(rows, found))
        answer = Answer(request, generated.text, list(generated.values), query, rows, tuple(took), found, doubted)
        if doubted and self.on_doubt != "keep":
            told = f"{request!r:.200} is answered by {answer.text!r:.200}, but {'; '.join(map(str, doubted))}"
            if self.on_doubt == "raise":
                raise DoubtedAnswer(f"{told}: the answer is on this error, as .answer", answer)
            warn(told, DoubtWarning)
        return answer

    def quoted(self, request: str) -> Step[Quote]:
        """What ``exec`` and ``gen`` would cost, as a step that asks ``syn`` alone."""
        query = yield from metered(as_step(self.syn, request), "syn", request, lambda use: None)
        return quote_of(query, self.exec, self.gen, request)

    def _executed(self, part: Any, request: str, query: Any) -> Step[tuple[Any, pd.DataFrame]]:
        """The rows of the query; or of another one, where this one fails or gives none and the other does better."""
        rows, failure, why = None, None, ""
        try:
            rows = yield from part("exec", self.exec, query)
        except SQLFailed as error:
            failure, why = error, f"The statement failed: {error}."
        revise, why_empty = getattr(self.syn, "revise", None), getattr(self.exec, "why_empty", None)
        if rows is not None and revise is not None and why_empty is not None and _is_empty(rows):
            why = why_empty(rows)
        if why and revise is not None:
            try:
                other = yield from part("syn again", revise, request, query, why)
                better = None if other is None else (yield from part("exec again", self.exec, other))
            except (LMError, SQLFailed):
                better = None
            if better is not None and (rows is None or not _is_empty(better)):
                return other, better
        if failure is not None:
            raise failure
        assert rows is not None
        return query, rows


def _is_empty(rows: Any) -> bool:
    """Whether there are no rows, or nothing but nulls in them."""
    return isinstance(rows, pd.DataFrame) and bool(rows.isna().all(axis=None))


def _generated(said: Any, rows: pd.DataFrame) -> Generated:
    """What ``gen`` gave, or what the rows say where there is none."""
    if isinstance(said, Generated):
        return said
    if isinstance(said, str):
        return Generated(said)
    if said is None:
        return Generated(rows_as_text(rows), plain_values(rows))
    values = list(said) if isinstance(said, list | tuple) else [said]
    return Generated(", ".join(map(str, values)), values)
