"""Every error that tagframe raises, by the package that raises it.

An error says the fact, the values and the way out. Each is a :class:`TagframeError`, and also the built-in class that a
caller expects (``KeyError``, ``ValueError``, …), so that ordinary ``except`` clauses work.
"""

from __future__ import annotations

import difflib
import inspect
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

logging.getLogger("tagframe").addHandler(logging.NullHandler())  # who wants the log says so


class TagframeError(Exception):
    """The base of all errors of tagframe.

    Attributes:
        retryable: whether the same call may succeed if it is tried again, with nothing changed.
    """

    retryable = False

    def __str__(self) -> str:
        # KeyError's own __str__ shows the repr of its argument, which would put quotes around a whole sentence.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with args, but some of our classes need more. Then the error would be lost on its
        # way out of a worker process, and multiprocessing.Pool would wait forever.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[TagframeError], args: tuple[Any, ...], attributes: dict[str, Any]) -> TagframeError:
    """An unpickled error."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InvalidArgument(TagframeError, ValueError):
    """An argument has a wrong value."""


class NameUnknown(TagframeError, AttributeError):
    """tagframe, or a frame's ``.tag``, has no such name."""


class FactUnknown(TagframeError, AttributeError):
    """A frame does not have a requested fact, for example the merge report if it is not the result of a merge.

    An ``AttributeError``, so that ``hasattr(frame.tag, "merge_report")`` works.
    """


class RowsChanged(FactUnknown):
    """A fact is about rows that the frame no longer has, or has in another order."""


# --- corpus -------------------------------------------------------------------------------------------------------


class CorpusError(TagframeError):
    """A source of tables cannot be used."""


class SourceNotFound(CorpusError, FileNotFoundError):
    """The file or folder does not exist."""


class EmptyCorpus(CorpusError, ValueError):
    """The source holds no table at all."""


class UnreadableTable(CorpusError, ValueError):
    """A table of the source could not be read.

    Attributes:
        table: its name in a source that has others, such as that of a view that does not run; "" if it is not known.
    """

    table = ""

    @classmethod
    def named(cls, table: str, message: str) -> UnreadableTable:
        """The error for one table of several."""
        error = cls(message)
        error.table = table
        return error


class ServerGone(CorpusError, ConnectionError):
    """The server that holds the tables cannot be reached, does not answer, or the connection was lost."""

    retryable = True


class ConnectionRefusedByServer(CorpusError, PermissionError):
    """The server does not accept the connection: a wrong password, an unknown database, or no right to connect."""


class UnreadableCatalogue(CorpusError, ValueError):
    """A catalogue file was not written by tagframe, is of another version, or is damaged."""


class OtherVersion(CorpusError, ValueError):
    """A pickled corpus was written by another version of tagframe."""


class UnreadableFacts(CorpusError, ValueError):
    """The facts that a user gave about data, such as private columns, cannot be read; the data is not opened."""


class UnreadStatement(CorpusError, ValueError):
    """A statement to learn from cannot be parsed, or reads tables that the corpus does not have."""


class TableNotFound(CorpusError, KeyError):
    """The corpus has no table with that id."""


class ColumnNotFound(TagframeError, KeyError):
    """The table has no column with that name."""


class FileNotAllowed(TagframeError, PermissionError):
    """An agent tried to write a file where that is not allowed, or over an existing one."""


class NotWritten(TagframeError, OSError):
    """A result cannot be written: the folder is missing, the disk is full, or there is no right to write."""


class FolderInUse(NotWritten):
    """Another run writes to the same folder; it is free when that run has ended."""

    retryable = True


class UnreadableTableWarning(UserWarning):
    """Some tables of a source were left out; ``corpus.problems`` holds the errors."""


class ColumnFormatWarning(UserWarning):
    """Numbers or dates of a CSV file have a format of their own; it says how they are read. ``csv=`` gives another."""


class NumbersAsTextWarning(ColumnFormatWarning):
    """Numbers of a CSV file are read as text, because their format is not known; ``csv=`` gives it."""


class CatalogueWarning(UserWarning):
    """A catalogue could not be read or written; its content is in memory only."""


class HidingWarning(UserWarning):
    """Something is computed from what is hidden and still read, or a list beside the data hides what is not there."""


# --- settings -----------------------------------------------------------------------------------------------------


class NotConfigured(TagframeError, RuntimeError):
    """A model, an embedder or a corpus is needed and none is set."""


class MissingExtra(TagframeError, ImportError):
    """A package of an optional extra is not installed."""


class EmbedderNotFound(TagframeError, OSError):
    """An embedding model does not exist, cannot be reached, or its files are not the expected ones."""


class EmbedderWarning(UserWarning):
    """No embedding model is available; retrieval continues without one."""


# --- questions and tables -----------------------------------------------------------------------------------------


class EmptyQuestion(InvalidArgument):
    """The question has no words."""


class JoinError(TagframeError):
    """Tables cannot be joined as requested."""


class NotConnected(JoinError, ValueError):
    """No chain of key pairs connects the tables.

    Attributes:
        groups: ids of the tables that keys do connect.
    """

    def __init__(self, message: str | Callable[[], str], groups: Sequence[Sequence[str]] = ()) -> None:
        """An error with this message, or with one that is made where it is read: it compares all columns."""
        super().__init__(message)
        self.groups = tuple(map(tuple, groups))

    def __str__(self) -> str:
        if callable(self.args[0]):
            self.args = (self.args[0](),)
        return super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        str(self)
        return super().__reduce__()


class FanOut(JoinError, ValueError):
    """A join step would multiply the rows of the anchor (or of the finest grain).

    Attributes:
        rows: the anchor's rows that the step would repeat, each once.
    """

    def __init__(self, message: str, rows: pd.DataFrame) -> None:
        super().__init__(message)
        self.rows = rows


class RowsLost(JoinError, ValueError):
    """A merge would lose rows of the anchor (or of the finest grain).

    Attributes:
        rows: those rows.
    """

    def __init__(self, message: str, rows: pd.DataFrame) -> None:
        super().__init__(message)
        self.rows = rows


class InexactKeys(JoinError, ValueError):
    """Keys are floats so large that they were rounded before the merge: different integers look equal."""


class WayNotPossible(JoinError, ValueError):
    """The merge cannot run where ``by=`` says: no engine holds all tables, or its result may differ from pandas'."""


class AmbiguousJoin(JoinError, ValueError):
    """Tables join in several ways that are equally likely.

    Attributes:
        plans: a :class:`tagframe.JoinPlan` for each way; the first is the one that would have been used.
    """

    def __init__(self, message: str, plans: Sequence[Any]) -> None:
        super().__init__(message)
        self.plans = list(plans)


class AmbiguousJoinWarning(UserWarning):
    """A merge used one of several equally likely ways to join."""


class CoercedKeysWarning(UserWarning):
    """Some rows of a merge match only because text was converted: "007" to 7, " Prague" to "prague"."""


class RowsLostWarning(UserWarning):
    """A merge lost rows of the anchor."""


class DoubtfulJoinWarning(UserWarning):
    """A merge uses an inferred key of low confidence."""


class RowsMultipliedWarning(UserWarning):
    """A join step multiplied the rows of the anchor (or of the finest grain)."""


class TablesStackedWarning(UserWarning):
    """Tables were stacked although only one was asked for, or files although their columns differ."""


class TableLeftOutWarning(UserWarning):
    """A merge left out a table that is probably not needed and would only have repeated rows."""


# --- language models ----------------------------------------------------------------------------------------------


class LMError(TagframeError):
    """A language model did not give a usable answer."""


class LMRequestFailed(LMError):
    """A request failed for good.

    Attributes:
        status: the HTTP status, or None if there was no response.
        retry_after: the seconds that the server asked to wait, or None.
        billed: the tokens that the server counted for an unusable reply (:class:`tagframe.lm.reply.Billed`), or None.
        away: whether the server was overloaded, loading or restarting; it was then waited for longer.
        retryable: whether the same request may succeed later; it was retried before this error was raised.
        stops_run: whether all other requests would fail in the same way; if so, no more are sent.
    """

    retryable = False
    stops_run = False

    def __init__(self, message: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.billed: Any = None
        self.away = False


class AuthenticationFailed(LMRequestFailed):
    """The key is missing, wrong or revoked (401)."""

    stops_run = True


class ModelNotFound(LMRequestFailed):
    """The server does not know the model, or the address is not one of a model server (404)."""

    stops_run = True


class QuotaExhausted(LMRequestFailed):
    """The account has no credit left, or has reached its limit of spending; waiting seldom helps.

    A 402, a 429 of the kind ``insufficient_quota``, or a 400 or 403 that says so.
    """

    stops_run = True


class ContextTooLong(LMRequestFailed):
    """The prompt is longer than the model reads, or than the account may send at once.

    The server says so in words or numbers (400, 413, 422, 429, 500), refuses long prompts only, or has answered after
    reading a part of the prompt.
    """


class ServerMoved(LMRequestFailed):
    """The server answers with a redirect to another address (3xx)."""

    stops_run = True


class RateLimited(LMRequestFailed):
    """The server asked to slow down (429)."""

    retryable = True


class ServerFailed(LMRequestFailed):
    """The server could not answer (409, 5xx, or an error in a 200), or broke its answer off."""

    retryable = True


class RequestTimedOut(LMRequestFailed, TimeoutError):
    """No answer in time (408, or no response at all)."""

    retryable = True


class ConnectionFailed(LMRequestFailed, ConnectionError):
    """The server could not be reached, or dropped the connection.

    Attributes:
        connected: False if there was no connection, so that nothing was sent.
    """

    retryable = True
    connected = True


class MalformedResponse(LMRequestFailed):
    """The server's answer is not a chat completion, or has no text.

    Attributes:
        empty: whether it is one without text.
    """

    retryable = True
    empty = False


class ResponseTooLong(MalformedResponse):
    """The server's response is longer than any chat completion; it was not read to the end."""

    retryable = False


class ContentFiltered(LMRequestFailed):
    """The provider gave no answer, or not all of it: a content filter, or a refusal."""


class RunStopped(LMError):
    """Not sent: an earlier request failed, and all others would fail in the same way. The cause is that failure."""


class BudgetExceeded(LMError):
    """Not sent: the call would exceed the budget."""


class NotAStore(LMError, ValueError):
    """The file given as the response store is of another program, or of another version."""


class DamagedStore(NotAStore):
    """The file of a response store is damaged."""


class StoreWarning(UserWarning):
    """The response store cannot be used; nothing is stored."""


class AnswerRejected(LMError, ValueError):
    """The model answered, but not in the form that was asked for. Raise it from an ``accept`` function."""


class AnswerCut(AnswerRejected):
    """The answer was cut off at its limit of tokens; it is not used and not stored."""


class NotKnown(LMError, LookupError):
    """The model says that it does not know the requested fact."""


class NotStored(LMError, LookupError):
    """A prompt was only looked up, and the response store has no answer for it; nothing was sent."""


class ReplayMiss(LMError, LookupError):
    """``lm="replay:STORE"`` holds no answer for a prompt; the misses are noted in the store."""


# --- operators and ask --------------------------------------------------------------------------------------------


class BlockingWarning(UserWarning):
    """A call blocks a running event loop; its awaited form does not."""


class RowsFailed(TagframeError):
    """An operator finished, but some rows have no answer.

    Attributes:
        frame: the finished frame, as ``on_error="keep"`` would have returned it.
        failures: one error for each failed row, in row order.
    """

    def __init__(self, message: str, frame: pd.DataFrame, failures: Sequence[Exception]) -> None:
        super().__init__(message)
        self.frame = frame
        self.failures = list(failures)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: a row failed, so a traceback through tagframe would not help."""
        return [f"{type(self).__name__}: {self}"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended an operator; finished answers are kept.

    Attributes:
        frame: the finished part, as ``on_error="keep"`` would have returned it; None if nothing is finished.
    """

    def __init__(self, message: str, frame: pd.DataFrame | None) -> None:
        super().__init__(message)
        self.frame = frame

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class NothingToPlot(TagframeError, ValueError):
    """An answer has no rows, or no column of numbers."""


class PartitionChanged(TagframeError, RuntimeError):
    """The rows of a partition of a Dask frame have changed since the model was asked about them."""


class ReportWarning(UserWarning):
    """A part of a report could not be made, by a fault of the library; the rows and their answers are unaffected."""


class UnsureWarning(UserWarning):
    """An operator left out rows for which the model was unsure, or the model was unsure of all rows."""


class CutWarning(UserWarning):
    """Rows were too long for the model, and it was shown only a part of their cells."""


class AllColumnsWarning(UserWarning):
    """An instruction names no column, so the model is shown all of them."""


class FailedRowsWarning(UserWarning):
    """Rows without an answer were kept or dropped, as ``on_error`` says."""


class TooManyRowsWarning(UserWarning):
    """A statement may give more rows than its limits allow; if it does, it is refused."""


class DoubtWarning(UserWarning):
    """There is a reason to doubt an answer."""


class UnsafeSQL(TagframeError, ValueError):
    """A statement is not a single SELECT that only reads tables of the corpus."""


class SQLFailed(TagframeError, RuntimeError):
    """A permitted statement did not run, or exceeded its limits."""


BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a library may end in that reads a file which is not as such files are: one such file never stops the others."""


_SCHEMES = re.compile(
    r"\W*(jdbc:)?(postgres|mysql|maria|mssql|sqlserver|oracle|cockroach|redshift|snowflake|odbc)\w*[^\w.\s]",
    re.IGNORECASE,
)


_BETWEEN = frozenset({"tagframe", "asyncio", "concurrent", "contextlib", "functools", "pandas", "threading"})
"""Packages whose code is not the user's: ours, and what is between ours and the user's."""


_noted: ContextVar[list[tuple[str, str]] | None] = ContextVar("noted", default=None)


@contextmanager
def noting(notes: list[tuple[str, str]]) -> Iterator[None]:
    """A block whose warnings of how files are written are also added to a list, each with the name of its class."""
    token = _noted.set(notes)
    try:
        yield
    finally:
        _noted.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's own code from which the library was called.

    The log has the class and its meaning, as a message may quote cells. Failed rows are in the line of their run.
    """
    if (noted := _noted.get()) is not None and issubclass(category, ColumnFormatWarning):
        noted.append((message, category.__name__))
    level, frame = 1, inspect.currentframe()
    caller = str(frame.f_back.f_globals.get("__name__")) if frame is not None and frame.f_back is not None else ""
    room = ".".join(caller.split(".")[:2]) if caller.startswith("tagframe.") else "tagframe"
    if category is not FailedRowsWarning:
        name, means = category.__name__, (category.__doc__ or "").partition("\n")[0]
        logging.getLogger(room).warning("%s: %s", name, means, extra={"warning": name})
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def needing(message: str) -> Iterator[None]:
    """A block that imports a package of an optional extra.

    Raises:
        MissingExtra: it is not installed; ``message`` is the message.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra(message) from error


def spared(what: str, otherwise: T, make: Callable[..., T], *args: Any) -> T:
    """``make(*args)``, or ``otherwise``, with a warning, if that fails: a report must not take the rows with it."""
    try:
        return make(*args)
    except Exception as error:
        warn(f"{what} could not be made: {type(error).__name__}: {error}; the rows are unaffected", ReportWarning)
        return otherwise


def shown_path(source: object) -> str:
    """A path as messages show it; a possibly mistyped URL is not shown, because it may have a server's password.

    >>> print(shown_path("data/loan.csv"), shown_path("postgresql:/ada:secret@host/bank"))
    'data/loan.csv' (not shown: it may be a server's URL with a password, like postgresql://user:password@host/database)
    """
    text = str(source)
    if (
        _SCHEMES.match(text)
        or re.match(r"[\w+]{2,}:/", text)
        or ("@" in text and ":" in text)
        or "password" in text.lower()
    ):
        return "(not shown: it may be a server's URL with a password, like postgresql://user:password@host/database)"
    return repr(text)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun, for messages; ``nouns`` if the plural is not the noun with an s.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "row matches", "rows match")
    ('1 row', '2,000 rows', '0 rows match')
    """
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def did_you_mean(name: str, known: Iterable[Any]) -> str:
    """The end of a "not found" message: what is there, and the nearest name.

    >>> did_you_mean("titel", ["title", "year"])
    "{'title', 'year'}; did you mean 'title'?"
    """
    names = [str(option) for option in known]
    by_folded = {option.casefold(): option for option in reversed(names)}
    near = difflib.get_close_matches(str(name).casefold(), list(by_folded), n=1, cutoff=0.6)
    listed = ", ".join(repr(option) for option in names[:20])
    more = f", … {len(names) - 20} more" if len(names) > 20 else ""
    hint = f"; did you mean {by_folded[near[0]]!r}?" if near else ""
    return f"{{{listed}{more}}}{hint}"
