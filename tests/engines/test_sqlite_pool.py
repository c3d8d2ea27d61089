"""The processes that untrusted statements run in: warm, replaced where they die, and gone with their caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from tagframe.engines.base import Readable, SQLLimits
from tagframe.engines.frames import FrameEngine
from tagframe.engines.sqlite import pool as sqlite_pool
from tagframe.errors import InvalidArgument, SQLFailed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
FOR_EVER = SQLLimits(seconds=600)
"""No test waits for this: what runs so long is ended otherwise."""

posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks")


def execute(sql: str, limits: SQLLimits | None = None, **frames: pd.DataFrame) -> pd.DataFrame:
    engine = FrameEngine(frames)
    tables = {name: Readable(name) for name in frames}
    return engine.execute(sql, tables=tables, relations={}, limits=limits or SQLLimits())


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> sqlite_pool.Pool:
    """A pool with no process yet."""
    pool = sqlite_pool.Pool()
    monkeypatch.setattr(sqlite_pool, "_pool", pool)
    yield pool
    for process in pool._idle:
        process.kill()


def test_a_process_is_kept_warm_and_replaced_where_it_died(empty):
    execute("SELECT 1")
    (process,) = empty._idle
    execute("SELECT 2")
    assert empty._idle == [process]
    process._popen.kill()
    process._popen.wait()
    assert execute("SELECT 3 AS n")["n"].tolist() == [3]
    assert process not in empty._idle


def test_tables_are_copied_to_it_once(empty, monkeypatch):
    frame = pd.DataFrame({"id": range(1000), "name": [f"n{number}" for number in range(1000)]})
    sent = []
    ask = sqlite_pool._Process.ask

    def spy(self, request, image, seconds):
        sent.append(len(image))
        return ask(self, request, image, seconds)

    monkeypatch.setattr(sqlite_pool._Process, "ask", spy)
    for _ in range(2):
        assert execute("SELECT count(*) AS n FROM t", t=frame)["n"].tolist() == [1000]
    assert sent[0] > 0
    assert sent[1] == 0
    frame.loc[0, "name"] = "other"
    assert execute("SELECT name FROM t WHERE id = 0", t=frame)["name"].tolist() == ["other"]


def test_other_tables_of_the_same_size_fit_into_its_memory(empty):
    """They are larger than half of what a statement may take, and arrive as copies."""
    for letter in "ab":
        frame = pd.DataFrame({"text": [letter * 1_000_000 for _ in range(48)]})
        found = execute("SELECT count(*) AS n FROM t", SQLLimits(memory=64), t=frame)
        assert found["n"].tolist() == [48]


def test_a_process_that_dies_in_the_middle_is_a_named_error(empty):
    known = set(sqlite_pool._alive)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(execute, ENDLESS, FOR_EVER)
        while not (begun := set(sqlite_pool._alive) - known):
            time.sleep(0.01)
        begun.pop()._popen.kill()
        with pytest.raises(SQLFailed, match="the process that ran the SQL died"):
            running.result()
    assert execute("SELECT 1 AS n")["n"].tolist() == [1]


def test_what_is_killed_at_its_time_is_replaced(empty):
    with pytest.raises(SQLFailed, match=r"stopped after 0\.2 seconds"):
        execute(ENDLESS, SQLLimits(seconds=0.2))
    assert empty._idle == []
    assert execute("SELECT 1 AS n")["n"].tolist() == [1]


def test_many_threads_at_once(empty):
    frame = pd.DataFrame({"id": range(100)})
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda n: execute(f"SELECT count(*) AS n FROM t WHERE id < {n}", t=frame), range(64)))
    assert [frame["n"].tolist() for frame in found] == [[number] for number in range(64)]
    assert len(empty._idle) <= sqlite_pool._MOST_IDLE


def test_as_much_memory_as_there_may_be(empty):
    assert execute("SELECT 1 AS n", SQLLimits(memory=1_000_000))["n"].tolist() == [1]


def test_nothing_is_unpickled_that_could_act():
    with pytest.raises(sqlite_pool.pickle.UnpicklingError, match=r"posix\.system|nt\.system|no plain value"):
        sqlite_pool._plain(sqlite_pool.pickle.dumps(os.system))


def test_no_process_to_be_had_is_a_named_error(empty, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SQLFailed, match="no process can be started"):
        execute("SELECT 1")


@pytest.mark.parametrize(
    "wrong", [{"rows": -1}, {"seconds": 0}, {"memory": 1}, {"memory": "much"}, {"rows": True}, {"rows": 2.5}]
)
def test_limits_are_numbers(wrong):
    with pytest.raises(InvalidArgument, match=f"SQLLimits.{next(iter(wrong))}=…"):
        SQLLimits(**wrong)


# What happens to a program is seen from outside of it. None is guarded by ``if __name__ == "__main__"``.

START = """
import os, signal, sys, threading, time
from tagframe.engines.sqlite import pool as sqlite_pool
from tagframe.engines.base import SQLLimits
from tagframe.engines.frames import FrameEngine

def execute(sql, seconds=600):
    return FrameEngine({}).execute(sql, tables={}, relations={}, limits=SQLLimits(seconds=seconds))

def workers():
    return [process._popen.pid for process in sqlite_pool._alive]

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
"""


def program(text: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", START + text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


def output(text: str) -> str:
    done = program(text)
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
def test_a_program_that_ends_leaves_no_process():
    wait_until_gone(int(output('execute("SELECT 1"); print(*workers())')))


@posix
def test_ctrl_c_ends_the_statement():
    shown = output("""
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it

def press():
    while not workers():
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
try:
    execute(ENDLESS)
except KeyboardInterrupt:
    print("interrupted", workers(), execute("SELECT 7 AS n")["n"].tolist())
""")
    assert shown == "interrupted [] [7]\n"


@posix
def test_a_killed_program_leaves_no_process_in_the_middle_of_a_statement():
    running = program("""
threading.Thread(target=execute, args=[ENDLESS], daemon=True).start()
while not workers():
    time.sleep(0.01)
time.sleep(0.3)
print(*workers(), flush=True)
time.sleep(600)
""")
    pid = int(running.stdout.readline())
    running.send_signal(signal.SIGKILL)
    running.communicate()
    wait_until_gone(pid)


@posix
def test_a_fork_has_processes_of_its_own():
    shown = output("""
execute("SELECT 1")
child = os.fork()
mine = execute("SELECT 2 AS n")["n"].tolist()
if child == 0:
    sqlite_pool._end()
    os._exit(0 if mine == [2] else 1)
print(os.waitpid(child, 0)[1], mine, len(workers()))
""")
    assert shown == "0 [2] 1\n"


@posix
def test_a_child_that_lives_on_does_not_keep_the_process():
    running = program("""
execute("SELECT 1")
pid, = workers()
child = os.fork()
if child == 0:
    time.sleep(600)
print(pid, child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""")
    pid, child = map(int, running.stdout.readline().split())
    try:
        wait_until_gone(pid)
    finally:
        os.kill(child, signal.SIGKILL)
        running.communicate()
