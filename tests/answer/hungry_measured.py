"""What the statements of :mod:`tests.answer.hungry_postgres` take: ``python -m tests.answer.hungry_measured``.

A line for each that passes six seconds, a gigabyte of the server's process or 640 MB of this one, and the worst of all.
The server's processes are those of this machine.
"""

from __future__ import annotations

import os
import resource
import secrets
import sys
import threading
import time
from pathlib import Path

import psycopg

import tagframe as tf
from tag_bench.postgres_server import postgres_server
from tagframe.answer import SQLLimits
from tagframe.errors import TagframeError
from tests.answer import test_hostile_postgres
from tests.answer.guarded import run_sql
from tests.answer.hungry_postgres import HARMLESS, HIDDEN, HOSTILE, READER, SCRIPT, TABLES

LIMITS = SQLLimits(rows=100, seconds=5.0, memory=512)
_MEGABYTE = 2**10  # of kilobytes, as the system counts them


class Watch(threading.Thread):
    """Looks at the memory of the server's process for tagframe's statements."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url, self.most, self.pids = url, 0, set[int]()

    def run(self) -> None:
        """Until the program ends."""
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tagframe'"
        with psycopg.connect(self._url, autocommit=True) as owner:
            while True:
                for (pid,) in owner.execute(query):
                    self.most = max(self.most, peak_of(pid))
                time.sleep(0.005)


def peak_of(pid: int) -> int:
    """The most kilobytes that a process has had, and 0 where it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) if lines else 0


def measured(url: str, tables: dict[str, str], hidden: tuple[str, ...], statements: list[str], watch: Watch) -> None:
    """Run statements and print what passes the limits."""
    corpus = tf.open_corpus(url, progress=False)
    corpus = corpus.hide(*hidden)
    worst = (0.0, 0)
    answered = bad = 0
    for sql in statements:
        watch.most = 0
        start = time.monotonic()
        said = ""
        try:
            rows = run_sql(sql, corpus, tables, LIMITS)
            answered += 1
            said = "xyzzy!" if "xyzzy" in repr(rows.to_dict()) else "answered"
        except TagframeError as error:
            said = f"{type(error).__name__}: {str(error)[:90]}"
        except BaseException as error:
            said = f"RAW {type(error).__name__}: {str(error)[:90]}"
        took, most = time.monotonic() - start, watch.most // _MEGABYTE
        worst = max(worst[0], took), max(worst[1], most)
        if took > 6 or most > 1024 or said.startswith(("RAW", "xyzzy")) or "-v" in sys.argv:
            bad += 1
            print(f"{took:6.2f} s {most:6} MB  {said}\n      {sql[:150]!r}", flush=True)
    client = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _MEGABYTE
    print(
        f"{len(statements)} statements, {bad} told of, {answered} answered; worst {worst[0]:.2f} s, {worst[1]} MB of "
        f"the server's process; {client} MB of this one so far",
        flush=True,
    )


def main() -> None:
    """As a superuser, then as a role that may read four tables."""
    os.environ["XDG_CACHE_HOME"] = f"/tmp/{secrets.token_hex(8)}"
    with postgres_server() as server:
        with psycopg.connect(server.url(), autocommit=True) as owner:
            owner.execute("CREATE DATABASE hungry")
            owner.execute("CREATE DATABASE cinema")
            owner.execute(f"CREATE ROLE {READER} LOGIN PASSWORD 'read'")
        with psycopg.connect(server.url("hungry"), autocommit=True) as owner:
            owner.execute(SCRIPT)
            owner.execute(f'GRANT SELECT ON film, "Order", note, letter TO {READER}')
        with psycopg.connect(server.url("cinema"), autocommit=True) as owner:
            owner.execute(test_hostile_postgres.SCRIPT)
        watch = Watch(server.url())
        watch.start()
        for url in (server.url("hungry"), server.url("hungry", READER, "read")):
            print(url.partition("//")[2].partition(":")[0])
            measured(url, TABLES, HIDDEN, HOSTILE, watch)
            measured(url, TABLES, HIDDEN, list(HARMLESS), watch)
        old, cinema = test_hostile_postgres.HOSTILE, server.url("cinema")
        measured(cinema, test_hostile_postgres.TABLES, ("film.hidden_note",), old, watch)


if __name__ == "__main__":
    main()
