"""Every error that tagframe raises, by the room that raises it.

An error says the fact, the values and the way out. Each is a :class:`TagframeError`, and also the built-in
class that a caller would have guessed (``KeyError``, ``ValueError``, …), so that ordinary ``except`` clauses work.
"""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from tagframe.answer import Answer
    from tagframe.joins import JoinPlan


class TagframeError(Exception):
    """The base of all errors of tagframe."""

    def __str__(self) -> str:
        # KeyError's own __str__ shows the repr of its argument, which would put quotes around a whole sentence.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception's own way calls the class with args, which is less than some of ours are made of; the error
        # would then be lost on its way out of a worker process, and multiprocessing.Pool would wait for ever.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[TagframeError], args: tuple[Any, ...], attributes: dict[str, Any]) -> TagframeError:
    """An unpickled error."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InvalidArgument(TagframeError, ValueError):
    """An argument that cannot be used as it is."""


class NameUnknown(TagframeError, AttributeError):
    """A name that tagframe, or a frame's ``.tag``, does not have."""


def names_of_before(owner: str, names: Mapping[str, str]) -> Callable[[Any, str], Any]:
    """A ``__getattr__`` for a class that once had other public names; hidden from type checkers, which would take any.

    Args:
        owner: what objects of the class are called.
        names: an old one → what to write instead.
    """

    def __getattr__(self: Any, name: str) -> Any:
        if name in names:
            raise RenamedName(f"{owner}.{name} is called otherwise now: {names[name]}")
        public = [known for known in dir(self) if not known.startswith("_")]
        raise NameUnknown(f"{owner} has no attribute {name!r}: {did_you_mean(name, public)}")

    return __getattr__


class RenamedName(TagframeError, AttributeError):
    """A public name that is called otherwise now; the message says how."""


class FactUnknown(TagframeError, AttributeError):
    """Something is asked of a frame that it does not know of itself, as the merge report of one that is no merge.

    An ``AttributeError``, so that ``hasattr(frame.tag, "merge_report")`` is an answer.
    """


class RowsChanged(FactUnknown):
    """A fact names rows that the frame does not have any more, or has in another order."""


# --- corpus -------------------------------------------------------------------------------------------------------


class CorpusError(TagframeError):
    """Something is wrong with a source of tables."""


class SourceNotFound(CorpusError, FileNotFoundError):
    """The file or folder is not there."""


class EmptyCorpus(CorpusError, ValueError):
    """The source holds no table at all."""


class UnreadableTable(CorpusError, ValueError):
    """A table of the source could not be read."""


class ServerGone(CorpusError, ConnectionError):
    """The server that holds the tables cannot be reached, or went away while it was asked."""


class UnreadableCatalogue(CorpusError, ValueError):
    """A catalogue file is not one of ours, is of another version, or is damaged."""


class UnreadableFacts(CorpusError, ValueError):
    """What a user told of data, such as which columns are hidden, cannot be read: the data is not opened."""


class UnreadStatement(CorpusError, ValueError):
    """A statement that is to be learned from cannot be parsed, or reads tables that the corpus does not have."""


class TableNotFound(CorpusError, KeyError):
    """No table of that id in the corpus."""


class ColumnNotFound(TagframeError, KeyError):
    """No column of that name in the table."""


class HiddenColumn(TagframeError, PermissionError):
    """The column's user has hidden it with ``corpus.hide``: its cells are not read."""


class FileNotAllowed(TagframeError, PermissionError):
    """An agent would write a file where none was allowed, or over one that is there."""


class UnreadableTableWarning(UserWarning):
    """Some tables of a source were left out; ``corpus.problems`` holds the errors."""


class NumbersAsTextWarning(UserWarning):
    """Numbers of a CSV file are written in a way that has to be told, and are read as text."""


class CatalogueWarning(UserWarning):
    """A catalogue could not be used as asked; what it would have kept is in memory only."""


class UnclearViewWarning(UserWarning):
    """A view may show cells of a hidden column, and its database does not tell what it reads."""


# --- settings -----------------------------------------------------------------------------------------------------


class NotConfigured(TagframeError, RuntimeError):
    """A model, an embedder or a corpus is needed and none is set."""


class MissingExtra(TagframeError, ImportError):
    """A package of an optional extra is not installed."""


class EmbedderNotFound(TagframeError, OSError):
    """An embedding model is not there, cannot be reached, or its files are not what they should be."""


class EmbedderWarning(UserWarning):
    """No embedding model can be had; retrieval goes on without one."""


# --- questions and tables -----------------------------------------------------------------------------------------


class EmptyQuestion(InvalidArgument):
    """The question has no words."""


class JoinError(TagframeError):
    """Tables do not join as asked."""


class NotConnected(JoinError, ValueError):
    """No chain of key pairs connects the tables."""


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
    """Keys were rounded before they came here: floats so large that unlike integers look alike."""


class WayNotPossible(JoinError, ValueError):
    """The merge cannot run where ``by=`` says: no engine holds all tables, or it might answer otherwise than pandas."""


class AmbiguousJoin(JoinError, ValueError):
    """Tables join in several ways, each as sure as the others.

    Attributes:
        plans: those ways, the one first that would have been taken.
    """

    def __init__(self, message: str, plans: Sequence[JoinPlan]) -> None:
        super().__init__(message)
        self.plans = list(plans)


class AmbiguousJoinWarning(UserWarning):
    """A merge took one of several ways to join that are as sure as each other."""


class CoercedKeysWarning(UserWarning):
    """Rows of a merge match only where text is read otherwise than it is written: "007" as 7, " Prague" as "prague"."""


class RowsLostWarning(UserWarning):
    """A merge lost rows of the anchor."""


class DoubtfulJoinWarning(UserWarning):
    """A merge follows an inferred key that is hardly one."""


class RowsMultipliedWarning(UserWarning):
    """A join step multiplied the rows of the anchor (or of the finest grain)."""


class TablesStackedWarning(UserWarning):
    """A merge stacked tables of one shape, of which only one was asked for."""


class TableLeftOutWarning(UserWarning):
    """A merge left out a table that is hardly needed and would only have repeated rows."""


# --- language models ----------------------------------------------------------------------------------------------


class LMError(TagframeError):
    """A language model did not give a usable answer."""


class LMRequestFailed(LMError):
    """A request failed for good.

    Attributes:
        status: the HTTP status, or None where no response came.
        retry_after: the seconds that the server asked to wait, or None.
        limits: what it said of its limits (:class:`tagframe.lm.quota.ServerLimits`), or None.
        retryable: whether the same request may succeed later; such a request has been retried before this is seen.
        stops_run: whether every other request would fail alike, so that no more were sent.
    """

    retryable = False
    stops_run = False

    def __init__(self, message: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.limits: Any = None

    def __str__(self) -> str:
        return str(self.args[0])


class AuthenticationFailed(LMRequestFailed):
    """The key is missing, wrong or revoked (401)."""

    stops_run = True


class ModelNotFound(LMRequestFailed):
    """The server knows no such model, or is no such server (404)."""

    stops_run = True


class QuotaExhausted(LMRequestFailed):
    """The account has no credit left; waiting does not help (a 429 of the kind ``insufficient_quota``)."""

    stops_run = True


class ContextTooLong(LMRequestFailed):
    """The prompt does not fit into the model's context (400)."""


class RateLimited(LMRequestFailed):
    """The server asked to slow down (429)."""

    retryable = True


class ServerFailed(LMRequestFailed):
    """The server could not answer (409, 5xx)."""

    retryable = True


class RequestTimedOut(LMRequestFailed, TimeoutError):
    """No answer in time (408, or no response at all)."""

    retryable = True


class ConnectionFailed(LMRequestFailed, ConnectionError):
    """The server could not be reached, or dropped the connection."""

    retryable = True


class MalformedResponse(LMRequestFailed):
    """The server answered with something that is no chat completion, or with no text."""

    retryable = True


class ResponseTooLong(MalformedResponse):
    """The server's response is longer than any chat completion, or has no end; it was not read to the end."""

    retryable = False


class AnswerWithheld(LMRequestFailed):
    """The provider withheld the answer, or a part of it: a content filter, or a refusal."""


class RunStopped(LMError):
    """Not sent: an earlier request failed in a way that every other would too; that failure is the cause."""


class BudgetExceeded(LMError):
    """Not sent: the call would pass the budget."""


class NotAStore(LMError, ValueError):
    """A file of another program, or of another version, given as the response store."""


class DamagedStore(NotAStore):
    """A response store whose file is damaged."""


class StoreWarning(UserWarning):
    """The response store cannot be used; work goes on without it, and nothing is stored."""


class AnswerRejected(LMError, ValueError):
    """The model answered, but not in the form that was asked for. Raise it from an ``accept`` function."""


class AnswerCut(AnswerRejected):
    """The answer was cut off at its limit of tokens: half an answer is none, and is not stored."""


class NotKnown(LMError, LookupError):
    """The model says that it does not know the fact that it is asked for."""


class NotStored(LMError, LookupError):
    """A prompt was only looked up, and the response store has no answer for it; nothing was sent."""


class ReplayMiss(LMError, LookupError):
    """``lm="replay:STORE"`` holds no answer for a prompt; the misses are noted in the store."""


# --- operators and ask --------------------------------------------------------------------------------------------


class BlockingWarning(UserWarning):
    """A call holds up a running event loop; its awaited form does not."""


class RowsFailed(TagframeError):
    """An operator finished, and some rows have no answer.

    Attributes:
        frame: the finished frame, as ``on_error="keep"`` would have returned it.
        failures: one error for each failed row, in row order.
    """

    def __init__(self, message: str, frame: pd.DataFrame, failures: Sequence[Exception]) -> None:
        super().__init__(message)
        self.frame = frame
        self.failures = list(failures)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: what failed is a row, and no line of ours says more of it."""
        return [f"{type(self).__name__}: {self}"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended an operator; what was answered is kept.

    Attributes:
        frame: the part that was finished, as ``on_error="keep"`` would have returned it; None where there is none yet.
    """

    def __init__(self, message: str, frame: pd.DataFrame | None) -> None:
        super().__init__(message)
        self.frame = frame

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class PartitionChanged(TagframeError, RuntimeError):
    """A partition of a Dask frame has other rows than when they were asked about."""


class UnsureWarning(UserWarning):
    """An operator left out rows of which the model could not say what was asked."""


class TooManyRowsWarning(UserWarning):
    """A statement may give more rows than its limits allow, and is refused if it does."""


class DoubtWarning(UserWarning):
    """Something speaks against an answer."""


class DoubtedAnswer(TagframeError, RuntimeError):
    """Something speaks against an answer, and ``on_doubt="raise"`` wants none that is doubted.

    Attributes:
        answer: with what speaks against it in its ``doubts``.
    """

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message)
        self.answer = answer


class UnsafeSQL(TagframeError, ValueError):
    """A statement that is not one plain read of the corpus' tables."""


class SQLFailed(TagframeError, RuntimeError):
    """A permitted statement did not run, or passed its limits."""


BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a library may end in that reads a file which is not as such files are: one such file never stops the others."""


_SCHEMES = re.compile(
    r"\W*(jdbc:)?(postgres|mysql|maria|mssql|sqlserver|oracle|cockroach|redshift|snowflake|odbc)\w*[^\w.\s]",
    re.IGNORECASE,
)


_BETWEEN = frozenset({"tagframe", "asyncio", "concurrent", "contextlib", "functools", "pandas", "threading"})
"""Packages whose lines are not the user's: ours, and what stands between ours and his."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's own code from which the library was called."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shown_path(source: object) -> str:
    """A path as messages show it; what may be a mistyped URL is not shown, as it may hold a server's password.

    >>> print(shown_path("data/loans.csv"), shown_path("postgresql:/ada:secret@host/bank"))
    'data/loans.csv' (not shown: it may be a server's URL, with a password; one is postgresql://user:password@host/database)
    """
    text = str(source)
    if (
        _SCHEMES.match(text)
        or re.match(r"[\w+]{2,}:/", text)
        or ("@" in text and ":" in text)
        or "password" in text.lower()
    ):
        return "(not shown: it may be a server's URL, with a password; one is postgresql://user:password@host/database)"
    return repr(text)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun, for messages; ``nouns`` where the plural is not the noun with an s.

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
    shown = ", ".join(repr(option) for option in names[:20])
    more = f", … {len(names) - 20} more" if len(names) > 20 else ""
    hint = f"; did you mean {by_folded[near[0]]!r}?" if near else ""
    return f"{{{shown}{more}}}{hint}"
