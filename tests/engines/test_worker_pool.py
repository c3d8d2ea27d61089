"""The processes that untrusted statements run in: warm, replaced where they die, and gone with their caller."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines import sent_rows, worker_pool
from tagframe.engines.base import Readable, SQLLimits, UntrustedStatement
from tagframe.engines.duckdb.engine import LakeEngine
from tagframe.engines.duckdb.statement import readable
from tagframe.engines.frames import FrameEngine
from tagframe.errors import InvalidArgument, SQLFailed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "duckdb": "SELECT levenshtein(lpad('a', 1000000, 'b'), lpad('c', 1000000, 'd')) AS n",  # one call of one function
}
FOR_EVER = SQLLimits(seconds=600)
"""No test waits for this: what runs so long is ended otherwise."""

posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks")


@pytest.fixture(params=ENDLESS)
def kind(request: pytest.FixtureRequest) -> str:
    """Of worker."""
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return str(request.param)


def execute(sql: str, limits: SQLLimits | None = None, kind: str = "sqlite", **frames: pd.DataFrame) -> pd.DataFrame:
    if kind == "duckdb":
        sent = {name: readable(frame) for name, frame in frames.items()}
        return LakeEngine(ROOT, ()).execute(UntrustedStatement(sql, {}, sent, limits or SQLLimits()))
    tables = {name: Readable(name, tuple(map(str, frame.columns))) for name, frame in frames.items()}
    return FrameEngine(frames).execute(UntrustedStatement(sql, tables, {}, limits or SQLLimits()))


@pytest.fixture
def empty() -> worker_pool.Pool:
    """The pool, with no process yet."""
    worker_pool.pool().close()
    yield worker_pool.pool()
    worker_pool.pool().close()


def test_tables_are_copied_once(empty, kind, monkeypatch):
    frame = pd.DataFrame({"id": range(1000), "name": [f"n{number}" for number in range(1000)]})
    monkeypatch.setattr(sent_rows, "_MOST_BYTES", 0)
    assert execute("SELECT count(*) AS n FROM t", kind=kind, t=frame)["n"].tolist() == [1000]
    assert not sent_rows._files, "where no room is for them"
    monkeypatch.undo()
    for _ in range(2):
        assert execute("SELECT count(*) AS n FROM t", kind=kind, t=frame)["n"].tolist() == [1000]
    assert len(sent_rows._files) == 1
    frame.loc[0, "name"] = "other"
    assert execute("SELECT name FROM t WHERE id = 0", kind=kind, t=frame)["name"].tolist() == ["other"]


def test_a_process_that_dies_in_the_middle_is_a_named_error(empty, kind):
    known = set(worker_pool._alive)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(execute, ENDLESS[kind], FOR_EVER, kind)
        while not (begun := set(worker_pool._alive) - known):
            time.sleep(0.01)
        begun.pop()._popen.kill()
        with pytest.raises(SQLFailed, match="the process that ran the SQL died"):
            running.result()
    assert execute("SELECT 1 AS n", kind=kind)["n"].tolist() == [1]


def test_what_is_killed_at_its_time_is_replaced(empty, kind):
    with pytest.raises(SQLFailed, match=r"stopped after 0\.2 seconds"):
        execute(ENDLESS[kind], SQLLimits(seconds=0.2), kind)
    assert len(empty._idle) == (kind == "duckdb"), "what starts slowly is started again at once"
    assert execute("SELECT 1 AS n", kind=kind)["n"].tolist() == [1]


def test_many_threads_at_once(empty, kind):
    frame = pd.DataFrame({"id": range(100)})
    with ThreadPoolExecutor(16) as threads:
        found = list(
            threads.map(lambda n: execute(f"SELECT count(*) AS n FROM t WHERE id < {n}", kind=kind, t=frame), range(64))
        )
    assert [frame["n"].tolist() for frame in found] == [[number] for number in range(64)]
    assert len(empty._idle) <= worker_pool._MOST_IDLE


def test_nothing_is_unpickled_that_could_act():
    with pytest.raises(SQLFailed, match=r"posix\.system|nt\.system|not a plain value"):
        worker_pool.plain(worker_pool.pickle.dumps(os.system))


def test_no_process_to_be_had_is_a_named_error(empty, monkeypatch, kind):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SQLFailed, match="no process can be started"):
        execute("SELECT 1", kind=kind)


@pytest.mark.parametrize(
    "wrong", [{"rows": -1}, {"seconds": 0}, {"memory": 1}, {"memory": "much"}, {"rows": True}, {"rows": 2.5}]
)
def test_limits_are_numbers(wrong):
    with pytest.raises(InvalidArgument, match=f"SQLLimits.{next(iter(wrong))}=…"):
        SQLLimits(**wrong)


def test_a_cancelled_task_does_not_wait_for_its_statement(empty, kind):
    """The statement may run for ten minutes, for which no test waits; the next one of the task is not begun."""
    ran = []

    def asked(request: str) -> pd.DataFrame:
        for number in range(2):
            ran.append(number)
            execute(ENDLESS[kind], FOR_EVER, kind)
        return pd.DataFrame()

    async def cancelled() -> None:
        known = set(worker_pool._alive)
        task = asyncio.create_task(tf.TAG(lambda request: request, asked).awaited("all of it"))
        while not [process for process in set(worker_pool._alive) - known if process not in empty._idle]:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ran == [0]
    assert execute("SELECT 1 AS n", kind=kind)["n"].tolist() == [1]


# What happens to a program is seen from outside of it. None is guarded by ``if __name__ == "__main__"``.

START = """
import os, signal, sys, threading, time
from pathlib import Path
from tagframe.engines import sent_rows, worker_pool
from tagframe.engines.base import SQLLimits, UntrustedStatement
from tagframe.engines.duckdb.engine import LakeEngine
from tagframe.engines.frames import FrameEngine

def execute(sql, seconds=600):
    engine = FrameEngine({}) if KIND == "sqlite" else LakeEngine(Path(), ())
    return engine.execute(UntrustedStatement(sql, {}, {}, SQLLimits(seconds=seconds)))

def running():
    return [process._popen.pid for process in worker_pool._alive]
"""


def program(text: str, kind: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", f"KIND, ENDLESS = {kind!r}, {ENDLESS[kind]!r}\n" + START + text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


def output(text: str, kind: str) -> str:
    done = program(text, kind)
    shown, errors = done.communicate()
    assert (done.returncode, errors) == (0, ""), errors
    return shown


def wait_until_gone(pid: int) -> None:
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z":
            return  # dead, and nobody's to bury
        time.sleep(0.02)


@posix
def test_ctrl_c_ends_the_statement_and_a_program_that_ends_leaves_no_process(kind):
    shown, left = output(
        """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it

busy = []

def press():
    while not running():
        time.sleep(0.01)
    time.sleep(0.3)
    busy.extend(running())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
try:
    execute(ENDLESS)
except KeyboardInterrupt:
    print("interrupted", len(busy), {*busy} & {*running()}, execute("SELECT 7 AS n")["n"].tolist())
print(*running())
""",
        kind,
    ).splitlines()
    assert shown == "interrupted 1 set() [7]"
    assert left
    for pid in left.split():
        wait_until_gone(int(pid))


@posix
def test_a_killed_program_leaves_no_process_in_the_middle_of_a_statement(kind):
    running = program(
        """
threading.Thread(target=execute, args=[ENDLESS], daemon=True).start()
while not running():
    time.sleep(0.01)
time.sleep(0.3)
print(*running(), flush=True)
time.sleep(600)
""",
        kind,
    )
    pid = int(running.stdout.readline())
    running.send_signal(signal.SIGKILL)
    running.communicate()
    wait_until_gone(pid)


@posix
def test_a_fork_has_processes_of_its_own(kind):
    shown = output(
        """
execute("SELECT 1")
child = os.fork()
mine = execute("SELECT 2 AS n")["n"].tolist()
if child == 0:
    worker_pool._end()
    os._exit(0 if mine == [2] else 1)
print(os.waitpid(child, 0)[1], mine, len(running()))
""",
        kind,
    )
    assert shown == "0 [2] 1\n"
