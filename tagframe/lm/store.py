"""The response store: every accepted answer in one SQLite file, so that nothing is paid for twice.

An answer is stored with its source (endpoint, model, recorder) under the SHA-256 of its messages, sample number and
parameters, except the limit on its length (:func:`~tagframe.lm.prompt.request_keys`). Prompts are not stored with their
answers. Only the prompts that a replay did not find are stored, until they are answered.

The file is in WAL mode, so several processes can share it. It is created with mode 0600, since it contains users'
values. As soon as ``put`` is done, an answer survives the death of the process. (``synchronous=NORMAL``: a power cut
can lose the last transactions, but does not damage the file.) A commit takes some 60 µs and no fsync; a checkpoint,
after :data:`PAGES_A_CHECKPOINT`, takes two, for which all requests in flight wait.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tenacity

from tagframe.config import DEFAULT_STORE
from tagframe.errors import DamagedStore, NotAStore, StoreWarning, warn
from tagframe.lm.background import after_fork
from tagframe.lm.prompt import Stored, TokenLogprob

T = TypeVar("T")

IMPORTED = "import"
"""The endpoint of answers that were imported by :func:`tagframe.lm.import_answers`."""
PACKED = "a row of a pack"
"""The recorder of an answer about one row that came from a pack of rows."""
APPLICATION_ID = 0x7461676C
"""SQLite's ``application_id`` of our files ("tagl"): distinguishes a response store from a user's own database."""
VERSION = 5
PAGES_A_CHECKPOINT = 8_000
"""Pages of 4 KB in the WAL file before they are copied into the store: some 10,000 answers."""
LOCK_SECONDS = 30.0
"""How long a write waits for another process's lock."""
DAYS_OF_A_BATCH = 30
"""How long a provider has the answers of a batch."""

_KEYS_A_QUERY = 500
_TABLES = (
    "CREATE TABLE sources (id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL,"
    " recorded_by TEXT NOT NULL, UNIQUE (endpoint, model, recorded_by))",
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources,"
    " text TEXT NOT NULL, logprobs TEXT, tokens_in INTEGER, tokens_out INTEGER, seconds REAL,"
    " recorded_at REAL NOT NULL, UNIQUE (request, source))",
    "CREATE TABLE missing (request BLOB PRIMARY KEY, body TEXT NOT NULL, sample INTEGER NOT NULL,"
    " noted_at REAL NOT NULL)",
    "CREATE TABLE batches (file TEXT PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources, batch TEXT,"
    " requests TEXT NOT NULL, noted_at REAL NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_PUT = (
    "INSERT INTO answers (request, source, text, logprobs, tokens_in, tokens_out, seconds, recorded_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (request, source) DO UPDATE SET text = excluded.text,"
    " logprobs = excluded.logprobs, tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out,"
    " seconds = excluded.seconds, recorded_at = excluded.recorded_at"
)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored answer; ``packed`` if it came from a pack of rows."""

    text: str
    logprobs: tuple[TokenLogprob, ...] | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float | None = None
    packed: bool = False


class ResponseStore:
    """One store file, open; made by :func:`open_store`, and used from any thread.

    Attributes:
        read_only: whether the file or its folder may not be written.
        trouble: why answers are no longer stored, or None.

    Raises:
        NotAStore: a SQLite file of another program or of another version.
        DamagedStore: the file cannot be read.
        OSError, sqlite3.Error: the file cannot be opened or created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_only = False
        self.closed = False
        self._trouble: Exception | None = None
        self._lock = threading.RLock()
        self._sources: dict[tuple[str, str, str], int] = {}
        self._connection = self._open()
        self._file = _file_of(path)

    # --- opening --------------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite gives -wal and -shm the same mode
        self.read_only = not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        connection = self._connect("mode=ro" if self.read_only else "mode=rw")
        if self.read_only:
            try:
                connection.execute("SELECT count(*) FROM sqlite_master")
            except sqlite3.OperationalError:  # WAL needs a file beside the store, unless nobody can be writing it
                connection.close()
                connection = self._connect("mode=ro&immutable=1")
        try:
            _patiently(self._check, connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.resolve().as_uri()}?{mode}"
        return sqlite3.connect(uri, uri=True, timeout=0.0, isolation_level="IMMEDIATE", check_same_thread=False)

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            if not self.read_only:
                create_tables(connection)
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise DamagedStore(
                f"the response store {str(self.path)!r} cannot be read: {error}; to start a new one, move it away or"
                " give another path as store="
            ) from error
        if application != APPLICATION_ID:
            raise NotAStore(f"{str(self.path)!r} is a SQLite file, not a response store; give another path as store=")
        if version != VERSION:
            way = "update tagframe" if version > VERSION else "use the tagframe that made it"
            raise NotAStore(
                f"{str(self.path)!r} is a response store of version {version}, and this tagframe reads version"
                f" {VERSION}: {way}, or give another path as store= to start a new one"
            )

    # --- reading --------------------------------------------------------------------------------------------------

    def lookup(
        self, requests: Sequence[bytes], endpoint: str | None = None, model: str | None = None, stored: Stored = "any"
    ) -> dict[bytes, StoredAnswer]:
        """The stored answers of these requests, by request.

        With an endpoint and a model, only their answers count; without, all do. An answer to a row alone is preferred
        to one from a pack, and then the newest is taken.
        """
        condition = "source IN (SELECT id FROM sources WHERE endpoint = ? AND model = ?) AND"
        arguments: tuple[str | None, ...] = (endpoint, model)
        if endpoint is None:
            condition, arguments = "", ()
        packed = "source IN (SELECT id FROM sources WHERE recorded_by = ?)"
        if stored != "any":
            condition += f" {'NOT ' * (stored == 'alone')}{packed} AND"
            arguments += (PACKED,)
        answers: dict[bytes, StoredAnswer] = {}
        for start in range(0, len(requests), _KEYS_A_QUERY):
            keys = requests[start : start + _KEYS_A_QUERY]
            rows = self._rows(
                f"SELECT request, text, logprobs, tokens_in, tokens_out, seconds, {packed} AS packed FROM answers"
                f" WHERE {condition} request IN ({','.join('?' * len(keys))}) ORDER BY packed DESC, recorded_at, id",
                (PACKED, *arguments, *keys),
            )
            for request, text, logprobs, tokens_in, tokens_out, seconds, row_of_pack in rows:
                answers[request] = StoredAnswer(
                    text, _logprobs(logprobs), tokens_in, tokens_out, seconds, bool(row_of_pack)
                )
        return answers

    def _rows(self, query: str, arguments: Sequence[Any] = ()) -> list[Any]:
        def read() -> list[Any]:
            with self._lock:
                return self._connection.execute(query, arguments).fetchall()

        return _patiently(read)

    def version(self) -> int:
        """A number that changes when another process writes; -1 if it cannot be read, of which to write warns."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        return -1

    def missing(self) -> list[tuple[bytes, dict[str, Any], int]]:
        """The requests that a replay did not find, in the order in which they were noted: key, body, sample number."""
        rows = self._rows("SELECT request, body, sample FROM missing ORDER BY rowid")
        return [(request, json.loads(body), sample) for request, body, sample in rows]

    def recorded_by(self) -> dict[str, int]:
        """The recorders of the answers, and how many each recorded: a model's name, or the name given at the import."""
        rows = self._rows(
            "SELECT recorded_by, count(*) FROM answers JOIN sources ON sources.id = source"
            " GROUP BY recorded_by ORDER BY count(*) DESC, recorded_by"
        )
        return dict(rows)

    def measured(self, endpoint: str, model: str) -> tuple[float | None, float | None]:
        """The mean seconds and answer tokens of the model's newest 1,000 answers; None if nothing was measured."""
        ((seconds, tokens),) = self._rows(
            "SELECT avg(seconds), avg(tokens_out) FROM (SELECT seconds, tokens_out FROM answers WHERE source IN"
            " (SELECT id FROM sources WHERE endpoint = ? AND model = ?) ORDER BY id DESC LIMIT 1000)",
            (endpoint, model),
        )
        return seconds, tokens

    def last_name(self, endpoint: str, model: str) -> str:
        """The name that a server last gave the model that answers to this one; "" if it gave none."""
        named = self._rows(
            "SELECT model FROM sources WHERE endpoint = ? AND substr(model, 1, ?) = ? ORDER BY id DESC LIMIT 1",
            (endpoint, len(model) + 2, f"{model} ("),
        )
        return str(named[0][0])[len(model) + 2 : -1] if named else ""

    def noted_batches(self, source: int) -> list[tuple[str, str | None, list[str]]]:
        """The batches of a source whose answers the provider still has, oldest first."""
        rows = self._rows(
            "SELECT * FROM batches WHERE source = ? AND noted_at > ? ORDER BY noted_at",
            (source, time.time() - DAYS_OF_A_BATCH * 86_400),
        )
        return [(file, batch, json.loads(requests)) for file, _, batch, requests, _ in rows]

    # --- writing --------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        """Why answers are no longer stored, or None; the caller warns of it."""
        if self._trouble is not None:
            return f"the response store {str(self.path)!r} cannot be written: {self._trouble}"
        if _file_of(self.path) != self._file:
            return f"the response store {str(self.path)!r} was deleted or replaced while it was open"
        return None

    @property
    def writable(self) -> bool:
        """Whether answers are still stored: not after a failed write, and not if the file or folder is read-only."""
        return self._trouble is None and not self.read_only

    def source(self, endpoint: str, model: str, recorded_by: str, wait: bool = True) -> int:
        """The id of a source of answers; a new source is added. 0 if that would have to ``wait``."""
        name = (endpoint, model, recorded_by)
        if name not in self._sources:
            add = "INSERT INTO sources (endpoint, model, recorded_by) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            if not self._write(add, [name], wait):
                return 0
            ((self._sources[name],),) = self._rows(
                "SELECT id FROM sources WHERE endpoint = ? AND model = ? AND recorded_by = ?", name
            )
        return self._sources[name]

    def put(self, answers: Iterable[tuple[bytes, int, StoredAnswer]], wait: bool = True) -> bool:
        """Store answers (request, source, answer): all, or none if that fails; False if it would have to ``wait``."""
        now = time.time()
        return self._write(_PUT, [_row(*answer, now) for answer in answers], wait)

    def note_missing(self, requests: Iterable[tuple[bytes, dict[str, Any], int]]) -> int:
        """Note requests (key, body, sample number) that a replay did not find; gives how many are noted in all."""
        now = time.time()
        rows = [(request, json.dumps(body), sample, now) for request, body, sample in requests]
        self._write("INSERT INTO missing VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)
        return int(self._rows("SELECT count(*) FROM missing")[0][0])

    def note_batch(self, source: int, file: str, batch: str | None, requests: Sequence[str]) -> None:
        """Note requests that are submitted together in a file, and then the batch that the provider has made of it."""
        row = file, source, batch, json.dumps(list(requests)), time.time()
        self._write("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)", [row])

    def put_imported(self, answers: Iterable[tuple[str, str, bytes, StoredAnswer]]) -> None:
        """Store imported answers (model, recorder, key, answer), all or none; they are no longer missing."""
        rows = [(key, self.source(IMPORTED, model, recorder), answer) for model, recorder, key, answer in answers]
        self.put(rows)
        self.no_longer_missing(key for key, _, _ in rows)

    def no_longer_missing(self, requests: Iterable[bytes]) -> None:
        """Remove these from the missing requests."""
        self._write("DELETE FROM missing WHERE request = ?", [(request,) for request in requests])

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]], wait: bool = True) -> bool:
        """Write all rows or none; False if another process is writing, and nobody may wait for it.

        Raises:
            sqlite3.Error: they cannot be written; nothing more is, then.
        """

        def write() -> None:
            with self._lock, self._connection:  # a transaction, with the file's lock from its start
                self._connection.executemany(statement, rows)

        try:
            if wait:
                _patiently(write)
            else:
                write()
        except sqlite3.Error as error:
            if not wait and _is_busy(error):
                return False
            self._trouble = error
            raise
        return True

    def purge(self, before: float | None = None) -> int:
        """Delete answers and missing requests, all or those before a time; gives the number of answers."""
        when = time.time() + 1 if before is None else before
        ((count,),) = self._rows("SELECT count(*) FROM answers WHERE recorded_at < ?", (when,))
        self._write("DELETE FROM answers WHERE recorded_at < ?", [(when,)])
        self._write("DELETE FROM missing WHERE noted_at < ?", [(when,)])
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            self._rows(statement)
        return int(count)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
        self.closed = True


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables, if the file is empty."""
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES_A_CHECKPOINT}")
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    connection.execute("PRAGMA journal_mode = WAL")
    with connection:
        connection.execute("BEGIN IMMEDIATE")  # two processes may make the same store at once
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _TABLES:
                connection.execute(statement)


def _is_busy(error: BaseException) -> bool:
    """Whether another connection held the lock."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY


def _patiently(work: Callable[..., T], *arguments: Any) -> T:
    """The result of work that another process may hold up: its lock is waited for."""
    patient = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_busy),
        stop=tenacity.stop_after_delay(LOCK_SECONDS),
        wait=tenacity.wait_random(0.01, 0.05),
        reraise=True,
    )
    return patient(work, *arguments)


def _file_of(path: Path) -> tuple[int, int] | None:
    """The identity of a file, to notice when another one replaces it; None if there is no file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino)


def _row(request: bytes, source: int, answer: StoredAnswer, now: float) -> tuple[Any, ...]:
    logprobs = None if answer.logprobs is None else json.dumps(answer.logprobs)
    return request, source, answer.text, logprobs, answer.tokens_in, answer.tokens_out, answer.seconds, now


def _logprobs(stored: str | None) -> tuple[TokenLogprob, ...] | None:
    if stored is None:
        return None
    return tuple(TokenLogprob(token, logprob, tuple(map(tuple, top))) for token, logprob, top in json.loads(stored))


@contextlib.contextmanager
def warned(store: ResponseStore, what: str) -> Iterator[None]:
    """A block that ends with a warning if the store cannot be read or written."""
    try:
        yield
    except Exception as error:  # whatever it is, the answers are there
        warn_of_store(f"the response store {str(store.path)!r} cannot be {what}: {error}")


def warn_of_store(trouble: str) -> None:
    """Warn that answers are not stored; also where warnings are errors: one would take the answers with it."""
    warning = StoreWarning(f"{trouble}; the run continues, but its answers are not stored")
    try:
        warn(str(warning), StoreWarning)
    except StoreWarning:
        warnings.showwarning(warning, StoreWarning, __file__, 0)


def default_path() -> Path:
    """The response store in the user's cache folder."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("tagframe")) / "responses.db"


_open: dict[Path, ResponseStore] = {}
_opening = threading.Lock()


def open_store(path: str | Path) -> ResponseStore:
    """The store in that file; created if missing, and shared by everything in this process that uses the same file.

    ``"default"`` is the one in the user's cache folder.

    Raises:
        NotAStore, DamagedStore, OSError, sqlite3.Error: see :class:`ResponseStore`.
    """
    file = (default_path() if str(path) == DEFAULT_STORE else Path(path).expanduser()).resolve()
    with _opening:
        store = _open.get(file)
        if store is not None and not store.closed:
            if store.trouble is None:
                return store
            store.close()  # failed before, or deleted under our feet: a fresh start
        _open[file] = store = ResponseStore(file)
        return store


def _close_all() -> None:
    for store in _open.values():
        store.close()
    _open.clear()


_inherited: list[object] = []


def _after_fork() -> None:
    # SQLite connections do not survive a fork: the child opens its own, and must not close the parent's.
    global _opening
    _inherited.append(dict(_open))
    _open.clear()
    _opening = threading.Lock()


atexit.register(_close_all)
after_fork(_after_fork)
