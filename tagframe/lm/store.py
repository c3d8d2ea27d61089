"""The response store: every accepted answer in one SQLite file, so that nothing is paid for twice.

An answer is stored with its source (endpoint, model, recorder) under the SHA-256 of its messages, sample number and
parameters, except the limit on its length (:func:`~tagframe.lm.prompt.request_keys`). Prompts are not stored with their
answers. Only the prompts that a replay did not find are stored, until they are answered.

The file is in WAL mode, so several processes can share it. It is created with mode 0600, since it contains users'
values. As soon as ``put`` is done, an answer survives the death of the process. (``synchronous=NORMAL``: a power cut
can lose the last transactions, but does not damage the file.)
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import tenacity

from tagframe.config import DEFAULT_STORE
from tagframe.errors import DamagedStore, NotAStore, StoreWarning, counted, warn
from tagframe.lm.prompt import UNLABELLED, Label, Stored, TokenLogprob
from tagframe.lm.structure import Way

MAX_BYTES = 2 * 1024**3
"""Above this size the oldest answers are deleted; imported answers never are."""
IMPORTED = "import"
"""The endpoint of answers that were imported by :func:`tagframe.lm.import_answers`."""
PACKED = "a row of a pack"
"""The recorder of an answer about one row that came from a pack of rows."""

_KEYS_A_QUERY = 500

_PUT = """
INSERT INTO answers (request, source, text, logprobs, tokens_in, tokens_out, seconds, recorded_at, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (request, source) DO UPDATE SET text = excluded.text, logprobs = excluded.logprobs,
    tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out, seconds = excluded.seconds,
    recorded_at = excluded.recorded_at, checksum = excluded.checksum
"""
_FORGET = "DELETE FROM answers WHERE request = ? AND source = ? AND text = ?"
_LOG = "INSERT INTO log (request, source, kind, reason, answer, messages, logged_at) VALUES (?, ?, ?, ?, ?, ?, ?)"


# --- the schema -------------------------------------------------------------------------------------------------------

APPLICATION_ID = 0x7461676C
"""SQLite's ``application_id`` of our files ("tagl"): distinguishes a response store from a user's own database."""
VERSION = 4

_LABEL = "tagframe"
"""The field of a missing request's body that has its label; it is not sent to a provider."""

_TABLES = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, recorded_by TEXT NOT NULL,
    reasoning INTEGER NOT NULL DEFAULT 0, UNIQUE (endpoint, model, recorded_by)
);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources, text TEXT NOT NULL,
    logprobs TEXT, tokens_in INTEGER, tokens_out INTEGER, seconds REAL, recorded_at REAL NOT NULL,
    checksum INTEGER NOT NULL, UNIQUE (request, source)
);
CREATE TABLE missing (request BLOB PRIMARY KEY, body TEXT NOT NULL, sample INTEGER NOT NULL, noted_at REAL NOT NULL);
CREATE TABLE log (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, source INTEGER NOT NULL REFERENCES sources, kind TEXT NOT NULL,
    reason TEXT NOT NULL, answer TEXT, messages TEXT NOT NULL, logged_at REAL NOT NULL
)
"""

ADDED = (
    "CREATE TABLE IF NOT EXISTS structured (source INTEGER PRIMARY KEY REFERENCES sources, way TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS packs (id INTEGER PRIMARY KEY, pack BLOB NOT NULL, row BLOB NOT NULL,"
    " line TEXT NOT NULL, UNIQUE (pack, row))",
    "CREATE INDEX IF NOT EXISTS packs_of_a_row ON packs (row)",
    "CREATE TABLE IF NOT EXISTS batches (digest TEXT PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources,"
    " batch TEXT, requests TEXT NOT NULL, noted_at REAL NOT NULL)",
)
"""What a store of this version may lack: how each source takes the form of answers, the rows of exported packs, and the
batches that were submitted to a provider."""


def mark_of(endpoint: str, model: str, recorded_by: str) -> int:
    """The part of :func:`checksum` that identifies the source of an answer."""
    return zlib.crc32(repr((endpoint, model, recorded_by)).encode())


def checksum(request: bytes, mark: int, text: object, logprobs: object, tokens_in: object, tokens_out: object) -> int:
    """A CRC-32 of the columns of a stored answer, which shows whether it is damaged."""
    return zlib.crc32(f"{text!r} {logprobs!r} {tokens_in!r} {tokens_out!r}".encode(), zlib.crc32(request, mark))


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the connection's transaction."""
    for statement in (*_TABLES.split(";"), *ADDED):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def version_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application id and the version of a file."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def labelled(body: dict[str, object], label: Label) -> dict[str, object]:
    """The body of a missing request, with its label."""
    return {**body, _LABEL: [label.stage, label.question]} if label != UNLABELLED else body


def unlabelled(body: dict[str, object]) -> tuple[dict[str, object], Label]:
    """The body of a missing request as it is sent, and its label."""
    fields = dict(body)
    label = fields.pop(_LABEL, None)
    return fields, Label(*map(str, label)) if isinstance(label, list) else UNLABELLED


# --- writing ----------------------------------------------------------------------------------------------------------

Write: TypeAlias = tuple[str, tuple[Any, ...]]
"""A statement and its row."""
Connect: TypeAlias = Callable[[float], sqlite3.Connection]
"""Makes a connection in autocommit mode that waits this many seconds for a lock."""

LOCK_SECONDS = 30.0
"""How long the thread waits for another process's lock."""
_WRITES_BETWEEN_UPKEEPS = 1000


class _Item(NamedTuple):
    """Writes that belong together, and a function to call afterwards."""

    writes: Sequence[Write]
    then: Callable[[], None] | None = None
    last: bool = False


class Writer:
    """Writes one store file.

    Args:
        connect: see :data:`Connect`.
        upkeep: called from time to time in the thread, with its connection.

    Attributes:
        trouble: the error that ended all writing, or None.
    """

    def __init__(self, connect: Connect, upkeep: Callable[[sqlite3.Connection], None]) -> None:
        self.trouble: Exception | None = None
        self._connect = connect
        self._upkeep = upkeep
        self._lock = threading.Lock()
        self._now: sqlite3.Connection | None = None
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._since_upkeep = 0
        self._upkeep_due = False

    def write_now_or_soon(self, writes: Sequence[Write], then: Callable[[], None] | None = None) -> bool:
        """Commit at once, or have the thread write; gives whether it is written.

        (A commit costs some 60 µs and no fsync, less than waking a thread. The thread does what can take long: waiting
        for another process's lock, checkpoints, and keeping the file small.)
        """
        is_written = self.trouble is None and self._write_now(writes)
        if not is_written:
            self.write(writes, then)
        return is_written

    def _write_now(self, writes: Sequence[Write]) -> bool:
        with self._lock:
            try:
                if self._now is None:
                    self._now = self._connect(0.0)
                    self._now.execute("PRAGMA wal_autocheckpoint = 0")  # it would wait for the disk; see _run
                with transaction(self._now):
                    _execute(self._now, writes)
            except (sqlite3.Error, OSError) as error:
                if not is_busy(error):
                    self.trouble = error
                return False
            if self._count(len(writes)):
                self._enqueue(_Item(()))
        return True

    def write(self, writes: Sequence[Write], then: Callable[[], None] | None = None) -> None:
        """Queue writes for the thread; it calls ``then`` when they are on disk, or have failed."""
        with self._lock:
            self._enqueue(_Item(writes, then))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queued writes are on disk; False if that took longer than ``timeout`` seconds."""
        if self._thread is None:
            return True
        done = threading.Event()
        self.write((), done.set)
        return done.wait(timeout)

    def close(self) -> None:
        """Write the queue, end the thread, and close the connections."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(_Item((), last=True))
                self._thread.join(timeout=5)
                self._thread = None
            if self._now is not None:
                self._now.close()
                self._now = None

    def _enqueue(self, item: _Item) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tagframe-store", daemon=True)
            self._thread.start()
        self._queue.put(item)

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        last = False
        while not last:
            items = [self._queue.get()]
            while not self._queue.empty():  # whatever has come in the meantime shares the transaction
                items.append(self._queue.get())
            writes = [write for item in items for write in item.writes]
            try:
                if self.trouble is None:
                    connection = connection or self._connect(LOCK_SECONDS)
                    if writes:
                        with transaction(connection):
                            _execute(connection, writes)
                    if self._count(len(writes)) or self._upkeep_due:
                        self._upkeep_due = False
                        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # stops nobody from writing
                        self._upkeep(connection)
            except Exception as error:  # whatever it is: those who wait for this thread must not wait for ever
                self.trouble = error
            for item in items:
                if item.then is not None:
                    item.then()
                last = last or item.last
        if connection is not None:
            connection.close()

    def _count(self, written: int) -> bool:
        """Count writes; True if an upkeep is due."""
        self._since_upkeep += written
        if self._since_upkeep < _WRITES_BETWEEN_UPKEEPS:
            return False
        self._since_upkeep = 0
        self._upkeep_due = True
        return True


def is_busy(error: BaseException) -> bool:
    """Whether another connection held the lock."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_BUSY


def _execute(connection: sqlite3.Connection, writes: Sequence[Write]) -> None:
    for statement, rows in itertools.groupby(writes, key=lambda write: write[0]):
        connection.executemany(statement, [row for _, row in rows])


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, with the lock from the start."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


# --- the store --------------------------------------------------------------------------------------------------------


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
    """One store file, open; made by :func:`open_store`.

    Raises:
        NotAStore: a SQLite file of another program or of another version.
        DamagedStore: the file cannot be read.
        OSError, sqlite3.Error: the file cannot be opened or created.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.read_only = False
        self.closed = False
        self._lock = threading.Lock()
        self._sources: dict[tuple[str, str, str], int] = {}
        self._marks: dict[int, int] = {}
        self._damaged: set[tuple[bytes, int]] = set()
        self._reported_damage: set[tuple[bytes, int]] = set()
        self._writer = Writer(self._writing_connection, self._shrink)
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
        # Where several processes make the same store, SQLite does not always wait by itself.
        patient = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_busy),
            stop=tenacity.stop_after_delay(LOCK_SECONDS),
            wait=tenacity.wait_random(0.01, 0.05),
            reraise=True,
        )
        try:
            patient(self._check, connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str = "mode=rw", lock_seconds: float = LOCK_SECONDS) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.resolve().as_uri()}?{mode}",
            uri=True,
            timeout=lock_seconds,
            isolation_level=None,
            check_same_thread=False,
        )

    def _check(self, connection: sqlite3.Connection) -> None:
        try:
            if not self.read_only:
                self._create(connection)
            application, version = version_of(connection)
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

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            if version_of(connection) == (APPLICATION_ID, VERSION):
                for statement in ADDED:
                    connection.execute(statement)
            return
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):  # two processes may make the same store at once
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                create(connection)

    # --- reading --------------------------------------------------------------------------------------------------

    def lookup(
        self,
        requests: Sequence[bytes],
        endpoint: str | None = None,
        model: str | None = None,
        stored: Stored = "any",
    ) -> dict[bytes, StoredAnswer]:
        """The stored answers of these requests, by request.

        With an endpoint and a model, only their answers count; without, all do. An answer to a row alone is preferred
        to one from a pack, and then the newest is taken. Damaged answers are left out; :attr:`damage` counts them.
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
        damaged: set[tuple[bytes, int]] = set()
        for start in range(0, len(requests), _KEYS_A_QUERY):
            keys = requests[start : start + _KEYS_A_QUERY]
            rows = self._readable_rows(
                "SELECT source, checksum, request, text, logprobs, tokens_in, tokens_out, seconds,"
                f" {packed} AS packed FROM answers WHERE {condition} request IN ({','.join('?' * len(keys))})"
                " ORDER BY packed DESC, recorded_at, id",
                (PACKED, *arguments, *keys),
            )
            for source, mark, request, text, logprobs, tokens_in, tokens_out, seconds, row_of_pack in rows:
                if mark != checksum(request, self._mark_of(source), text, logprobs, tokens_in, tokens_out):
                    damaged.add((request, source))
                    continue
                answers[request] = StoredAnswer(
                    text, _logprobs(logprobs), tokens_in, tokens_out, seconds, bool(row_of_pack)
                )
        self._damaged |= damaged
        return answers

    @property
    def damage(self) -> str | None:
        """A sentence on answers that cannot be used and were not reported yet, or None; the caller warns of it."""
        new = self._damaged - self._reported_damage
        self._reported_damage |= new
        if not new:
            return None
        return f"the response store {str(self.path)!r} has {counted(len(new), 'damaged answer')}: not used, asked again"

    def _mark_of(self, source: int) -> int:
        """A mark that identifies the endpoint, model and recorder of a source."""
        mark = self._marks.get(source)
        if mark is None:
            rows = self._rows("SELECT endpoint, model, recorded_by FROM sources WHERE id = ?", (source,))
            mark = mark_of(*rows[0]) if rows else 0
            if rows:
                self._marks[source] = mark
        return mark

    def _rows(self, query: str, arguments: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, arguments).fetchall()

    def _readable_rows(self, query: str, arguments: Sequence[Any]) -> list[Any]:
        """As :meth:`_rows`, but a damaged text is read as another text, and is no error of all rows."""
        try:
            return self._rows(query, arguments)
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
        self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        return self._rows(query, arguments)

    def formed(self, rows: Sequence[bytes]) -> dict[bytes, tuple[str, ...]]:
        """The packs that were exported with these rows (keys of the prompts for them alone): the rows of each."""
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'packs'"):  # of a store that is read-only
            return {}
        newest = {
            row: pack
            for start in range(0, len(rows), _KEYS_A_QUERY)
            for row, pack in self._rows(
                f"SELECT row, pack FROM packs WHERE row IN ({','.join('?' * len(rows[start : start + _KEYS_A_QUERY]))})"
                " ORDER BY id",
                rows[start : start + _KEYS_A_QUERY],
            )
        }
        lines = {
            pack: tuple(line for (line,) in self._rows("SELECT line FROM packs WHERE pack = ? ORDER BY id", (pack,)))
            for pack in dict.fromkeys(newest.values())
        }
        return {row: lines[pack] for row, pack in newest.items()}

    def all_formed(self) -> list[tuple[bytes, list[tuple[str, bytes]]]]:
        """The packs of :meth:`note_formed`, oldest first."""
        packs: dict[bytes, list[tuple[str, bytes]]] = {}
        for pack, row, line in self._rows("SELECT pack, row, line FROM packs ORDER BY id"):
            packs.setdefault(pack, []).append((line, row))
        return list(packs.items())

    def missing(self) -> list[tuple[bytes, dict[str, Any], int]]:
        """The requests that a replay did not find, in the order in which they were noted: key, body, sample number."""
        rows = self._rows("SELECT request, body, sample FROM missing ORDER BY rowid")
        return [(request, json.loads(body), sample) for request, body, sample in rows]

    def count_missing(self) -> int:
        """How many requests a replay did not find."""
        return int(self._rows("SELECT count(*) FROM missing")[0][0])

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

    def log(self) -> list[dict[str, Any]]:
        """The rejected answers and failures, oldest first."""
        names = ("kind", "reason", "answer", "messages", "model", "logged_at")
        rows = self._rows(f"SELECT {', '.join(names)} FROM log JOIN sources ON sources.id = source ORDER BY log.id")
        return [dict(zip(names, row, strict=True)) for row in rows]

    # --- writing --------------------------------------------------------------------------------------------------

    def source(self, endpoint: str, model: str, recorded_by: str) -> int:
        """The id of a source of answers; a new source is added."""
        name = (endpoint, model, recorded_by)
        if name not in self._sources:
            with self._lock:
                self._connection.execute(
                    "INSERT INTO sources (endpoint, model, recorded_by) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", name
                )
                (self._sources[name],) = self._connection.execute(
                    "SELECT id FROM sources WHERE endpoint = ? AND model = ? AND recorded_by = ?", name
                ).fetchone()
        return self._sources[name]

    def last_name(self, endpoint: str, model: str) -> str:
        """The name that a server last gave the model that answers to this one; "" if it gave none."""
        named = self._rows(
            "SELECT model FROM sources WHERE endpoint = ? AND substr(model, 1, ?) = ? ORDER BY id DESC LIMIT 1",
            (endpoint, len(model) + 2, f"{model} ("),
        )
        return str(named[0][0])[len(model) + 2 : -1] if named else ""

    def reasoning(self, source: int) -> int:
        """The tokens that this source's answers were seen to need beyond ``max_tokens``."""
        ((tokens,),) = self._rows("SELECT reasoning FROM sources WHERE id = ?", (source,))
        return int(tokens)

    def put_reasoning(self, source: int, tokens: int) -> None:
        """Store the tokens needed beyond ``max_tokens``, soon."""
        self._writer.write([("UPDATE sources SET reasoning = ? WHERE id = ?", (tokens, source))])

    def structured(self, source: int) -> Way | None:
        """The way in which this source takes the form of answers, as far as is known."""
        rows = self._rows("SELECT way FROM structured WHERE source = ?", (source,))
        return rows[0][0] if rows else None

    def put_structured(self, source: int, way: Way) -> None:
        """Store the way in which this source takes the form of answers, soon."""
        self._writer.write([("INSERT OR REPLACE INTO structured VALUES (?, ?)", (source, way))])

    @property
    def trouble(self) -> str | None:
        """Why answers are no longer stored, or None; the caller warns of it."""
        if self._writer.trouble is not None:
            return f"the response store {str(self.path)!r} cannot be written: {self._writer.trouble}"
        if _file_of(self.path) != self._file:
            return f"the response store {str(self.path)!r} was deleted or replaced while it was open"
        return None

    @property
    def writable(self) -> bool:
        """Whether answers are still stored: not after a failed write, and not if the file or folder is read-only."""
        return self._writer.trouble is None and not self.read_only

    def put(self, answers: Sequence[tuple[bytes, int, StoredAnswer]], then: Callable[[], None] | None = None) -> bool:
        """Store answers (request, source, answer) now, or soon if another process is writing.

        Returns:
            Whether they are on disk; if not, ``then`` is called from another thread when they are.
        """
        now = time.time()
        return self._writer.write_now_or_soon([(_PUT, self._row(*answer, now)) for answer in answers], then)

    def forget(self, request: bytes, source: int, text: str) -> None:
        """Delete an answer that was rejected after it was stored: now, or soon if another process is writing."""
        self._writer.write_now_or_soon([(_FORGET, (request, source, text))])

    def _row(self, request: bytes, source: int, answer: StoredAnswer, now: float) -> tuple[Any, ...]:
        logprobs = None
        if answer.logprobs is not None:
            logprobs = json.dumps([[token.token, token.logprob, token.top] for token in answer.logprobs])
        content = (answer.text, logprobs, answer.tokens_in, answer.tokens_out)
        return (request, source, *content, answer.seconds, now, checksum(request, self._mark_of(source), *content))

    def put_log(
        self, request: bytes, source: int, kind: str, reason: str, answer: str | None, messages: list[dict[str, Any]]
    ) -> None:
        """Log a rejected answer or a failure; it is never used as an answer."""
        row = (request, source, kind, reason, answer, json.dumps(messages), time.time())
        self._writer.write([(_LOG, row)])

    def _writing_connection(self, lock_seconds: float) -> sqlite3.Connection:
        connection = self._connect(lock_seconds=lock_seconds)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Delete the oldest answers, a quarter at a time, until the file is below its size limit."""
        sent = "source NOT IN (SELECT id FROM sources WHERE endpoint = ?)"
        while _size(connection) > self.max_bytes:
            (count,) = connection.execute(f"SELECT count(*) FROM answers WHERE {sent}", (IMPORTED,)).fetchone()
            connection.execute("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - 1000")
            connection.execute(
                f"DELETE FROM answers WHERE id IN (SELECT id FROM answers WHERE {sent} ORDER BY id LIMIT ?)",
                (IMPORTED, count // 4 + 1),
            )
            connection.executescript("PRAGMA incremental_vacuum")  # execute() would free a single page
            if not count:
                return

    def note_missing(self, requests: Iterable[tuple[bytes, dict[str, Any], int]]) -> None:
        """Note requests (key, body, sample number) that a replay did not find."""
        now = time.time()
        rows = [(request, json.dumps(body), sample, now) for request, body, sample in requests]
        self._transact("INSERT INTO missing VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def note_batch(self, source: int, digest: str, batch: str | None, requests: Sequence[str]) -> None:
        """Note requests that are submitted together, and then the name that the provider has given them."""
        self._transact(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET batch = excluded.batch",
            [(digest, source, batch, json.dumps(list(requests)), time.time())],
        )

    def noted_batches(self, source: int) -> list[tuple[str, str | None, list[str]]]:
        """The batches of a source whose answers the provider still has (30 days), oldest first."""
        rows = self._rows(
            "SELECT digest, batch, requests FROM batches WHERE source = ? AND noted_at > ? ORDER BY noted_at",
            (source, time.time() - 30 * 86_400),
        )
        return [(digest, batch, json.loads(requests)) for digest, batch, requests in rows]

    def note_formed(self, packs: Iterable[tuple[bytes, Iterable[tuple[str, bytes]]]]) -> None:
        """Note the packs (key, rows as shown with the keys of the prompts for them alone) of missing requests."""
        rows = [(pack, row, line) for pack, lines in packs for line, row in lines]
        self._transact("INSERT INTO packs (pack, row, line) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def put_imported(self, answers: Iterable[tuple[str, str, bytes, StoredAnswer]]) -> None:
        """Store imported answers (model, recorder, key, answer), all or none; they are no longer missing."""
        now = time.time()
        rows = [
            self._row(key, self.source(IMPORTED, model, recorder), answer, now)
            for model, recorder, key, answer in answers
        ]
        self._transact(_PUT, rows)
        self.no_longer_missing([row[0] for row in rows])

    def no_longer_missing(self, requests: Iterable[bytes]) -> None:
        """Remove these from the missing requests."""
        self._transact("DELETE FROM missing WHERE request = ?", [(request,) for request in requests])

    def _transact(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self._lock, transaction(self._connection):
            self._connection.executemany(statement, rows)

    def purge(self, before: float | None = None) -> int:
        """Delete answers, missing requests and the log, all or those before a time; gives the number of answers."""
        when = time.time() + 1 if before is None else before
        self.flush()
        with self._lock:
            count = self._connection.execute("DELETE FROM answers WHERE recorded_at < ?", (when,)).rowcount
            self._connection.execute("DELETE FROM missing WHERE noted_at < ?", (when,))
            if before is None:
                self._connection.execute("DELETE FROM packs")
            self._connection.execute("DELETE FROM log WHERE logged_at < ?", (when,))
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return count

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all writes are on disk; False if that took longer than ``timeout`` seconds."""
        return self._writer.flush(timeout)

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self._writer.close()
        self._connection.close()
        self.closed = True


def _size(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages * page)


def _file_of(path: Path) -> tuple[int, int] | None:
    """The identity of a file, to notice when another one replaces it; None if there is no file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino)


def _logprobs(stored: str | None) -> tuple[TokenLogprob, ...] | None:
    if stored is None:
        return None
    return tuple(
        TokenLogprob(token, logprob, tuple((name, value) for name, value in top))
        for token, logprob, top in json.loads(stored)
    )


@contextlib.contextmanager
def warned(store: ResponseStore, what: str) -> Iterator[None]:
    """A block that ends with a warning if the store cannot be read or written."""
    try:
        yield
    except Exception as error:  # whatever it is, the answers are there
        warn_of_store(f"the response store {str(store.path)!r} cannot be {what}: {error}")
    warn_of_damage(store)


def warn_of_damage(store: ResponseStore) -> None:
    """Warn of damaged answers, once of each."""
    if damage := store.damage:
        warn(damage, StoreWarning)


def warn_of_store(trouble: str) -> None:
    """Warn that answers are not stored."""
    warn(f"{trouble}; the run continues, but its answers are not stored", StoreWarning)


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
    # SQLite connections and threads do not survive a fork: the child opens its own, and must not close the parent's.
    global _opening
    _inherited.append(dict(_open))
    _open.clear()
    _opening = threading.Lock()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
