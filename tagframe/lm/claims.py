"""Claims on requests: of the processes that share a store, one sends a request, and the others wait for its answer.

A claim is a row of the store: a process and the keys of the requests that it sends next. It is valid while its owner
lives. On the same machine, an owner lives while there is a process with its id and its start time. Elsewhere, and if an
owner hangs, a count decides that the owner raises every few seconds: if it has not changed for :data:`LEASE_SECONDS`
of the observer's own clock, the owner is gone. No wall clocks are compared.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tagframe.lm.writer import Writer

BEAT_SECONDS = 5.0
"""Seconds between two signs of life of an owner."""
LEASE_SECONDS = 30.0
"""Seconds without a sign of life after which an owner is gone."""
_KEY_BYTES = 32


@dataclass(eq=False)
class Claim:
    """Requests that this process has claimed, and not ended."""

    id: int
    left: set[bytes]


@dataclass(frozen=True)
class Taken:
    """What became of the first requests of several.

    Attributes:
        claim: of those that nobody else had claimed; None where there is none.
        elsewhere: for each, whether another process has claimed it.
    """

    claim: Claim | None
    elsewhere: list[bool]


class Claims:
    """The claims in one store file."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._beats: dict[str, tuple[int, float]] = {}  # by owner, and since when it is this one

    def take(self, keys: Iterable[bytes], source: int, most: int, ended: Iterable[Claim] = ()) -> Taken | None:
        """Claim the first ``most`` of these requests that no other process has; ``ended`` claims are dropped.

        None where another connection holds the lock now, or the store cannot be written.
        """

        def work(connection: sqlite3.Connection) -> Taken:
            connection.executemany("DELETE FROM claims WHERE id = ?", [(claim.id,) for claim in ended])
            others = self.claimed_by_others(connection, source, sweep=True)
            chosen: dict[bytes, None] = {}
            elsewhere = []
            for key in keys:
                if len(chosen) == most:
                    break
                elsewhere.append(key in others)
                if key not in others:
                    chosen[key] = None
            if not chosen:
                return Taken(None, elsewhere)
            made = connection.execute(
                "INSERT INTO claims (owner, beat, source, requests) VALUES (?, 0, ?, ?)",
                (_owner(), source, b"".join(chosen)),
            )
            return Taken(Claim(made.lastrowid or 0, set(chosen)), elsewhere)

        return self._writer.do_now(work)

    def shrink(self, claim: Claim) -> None:
        """Reduce a claim to the requests that have not ended: now, or soon."""
        self._writer.write_now_or_soon(
            [("UPDATE claims SET requests = ? WHERE id = ?", (b"".join(claim.left), claim.id))]
        )

    def drop(self, claims: Iterable[Claim]) -> None:
        """Give claims up: now, or soon."""
        if writes := [("DELETE FROM claims WHERE id = ?", (claim.id,)) for claim in claims]:
            self._writer.write_now_or_soon(writes)

    def beat(self) -> None:
        """Give a sign of life of this process, soon."""
        self._writer.write([("UPDATE claims SET beat = beat + 1 WHERE owner = ?", (_owner(),))])

    def claimed_by_others(self, connection: sqlite3.Connection, source: int, sweep: bool = False) -> set[bytes]:
        """The requests that other living processes have claimed; ``sweep`` deletes the claims of dead ones."""
        rows = connection.execute(
            "SELECT id, owner, beat, source, requests FROM claims WHERE owner != ?", (_owner(),)
        ).fetchall()
        keys: set[bytes] = set()
        for row, owner, beat, of, requests in rows:
            if self._is_gone(owner, beat):
                if sweep:
                    connection.execute("DELETE FROM claims WHERE id = ?", (row,))
            elif of == source:
                keys.update(requests[start : start + _KEY_BYTES] for start in range(0, len(requests), _KEY_BYTES))
        return keys

    def _is_gone(self, owner: str, beat: int) -> bool:
        host, _, rest = owner.partition("|")
        pid, _, started = rest.partition("|")
        if host == _HOST and pid.isdecimal() and _started(int(pid)) != started.partition("|")[0]:
            return True
        now = time.monotonic()
        if self._beats.get(owner, (None, 0.0))[0] != beat:
            self._beats[owner] = (beat, now)
        return now - self._beats[owner][1] > LEASE_SECONDS


def _host() -> str:
    """A name for where a process id means one process: this machine since it started, or this container."""
    with suppress(OSError):
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    return f"{platform.node()} {sys.platform}".replace("|", " ")


def _started(pid: int) -> str | None:
    """The start time of a process; "" if this system does not give it, None if the process has ended or does not exist.

    (A process that was killed, and that its parent has not waited for, is still listed: as a zombie.)
    """
    if Path("/proc/self/stat").exists():
        try:
            # The name of the process, in brackets, may hold anything.
            state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if state in "ZX" else fields[18]
    if sys.platform != "win32":  # where signal 0 is a signal like any other
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except OSError:
            return ""
    return ""


_HOST = _host()
_owners: dict[int, str] = {}


def _owner() -> str:
    """This process; another after a fork."""
    pid = os.getpid()
    if pid not in _owners:
        _owners[pid] = f"{_HOST}|{pid}|{_started(pid) or ''}|{uuid.uuid4().hex}"
    return _owners[pid]
