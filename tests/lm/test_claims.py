"""What another process that shares the store is asking now is waited for, and for no longer than it is asked."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import AnswerRejected, ServerFailed
from tagframe.lm import LM, Completions, Parameters, Prompt, RetryPolicy, claims, open_store
from tagframe.lm.prompt import request_keys
from tagframe.lm.store import ResponseStore, StoredAnswer

ROWS = [Prompt.of(f"row {i}") for i in range(40)]
KEYS = request_keys(ROWS, Parameters())
ELSEWHERE = "another machine|1||x"


class Other:
    """Another process that shares the store, played by its rows in it."""

    def __init__(self, path: Path, lm: LM) -> None:
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._store = ResponseStore(path)
        self.source = self._store.source(*lm.stored_as, lm.model)

    def claim(self, keys: list[bytes], owner: str = ELSEWHERE) -> None:
        row = (owner, 0, self.source, b"".join(keys))
        self._file.execute("INSERT INTO claims (owner, beat, source, requests) VALUES (?, ?, ?, ?)", row)

    def answer(self, key: bytes, text: str) -> None:
        self._store.put([(key, self.source, StoredAnswer(text))])
        self._store.flush()

    def forget(self, key: bytes, text: str) -> None:
        self._store.forget(key, self.source, text)
        self._store.flush()

    def let_go(self) -> None:
        self._file.execute("DELETE FROM claims WHERE owner = ?", (ELSEWHERE,))

    def beat(self) -> None:
        self._file.execute("UPDATE claims SET beat = beat + 1")

    @property
    def answered(self) -> int:
        """The answers in the store, whoever put them there."""
        (count,) = self._file.execute("SELECT count(*) FROM answers").fetchone()
        return int(count)

    @property
    def claimed(self) -> set[bytes]:
        """What anybody has claimed."""
        rows = self._file.execute("SELECT requests FROM claims").fetchall()
        return {row[0][at : at + 32] for row in rows for at in range(0, len(row[0]), 32)}

    def close(self) -> None:
        self._file.close()
        self._store.close()


@pytest.fixture
def other(server: Server, lm: LM, own_store: Path) -> Iterator[Other]:
    server.answers = lambda request: request.prompt
    lm.complete([Prompt.of("the first")])
    server.reset()
    with closing(Other(own_store, lm)) as played:
        yield played


class Call:
    """A call in a thread of its own."""

    def __init__(self, lm: LM, prompts: list[Prompt] = ROWS, **options: Any) -> None:
        self._done: list[Completions[Any]] = []
        self._thread = threading.Thread(target=lambda: self._done.append(lm.complete(prompts, **options)), daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Completions[Any]:
        self._thread.join(60)
        return self._done[0]


def wait_for(what: Any) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_what_another_process_asks_is_waited_for(server: Server, lm: LM, other: Other):
    other.claim(KEYS[:30])
    call = Call(lm, accept=str.upper)
    wait_for(lambda: server.count == 10)
    for i in range(30):
        assert not call.is_over
        other.answer(KEYS[i], f"row {i}")
    completions = call.result()
    assert [completion.value for completion in completions] == [f"ROW {i}" for i in range(40)]
    assert [completion.origin for completion in completions] == ["store"] * 30 + ["sent"] * 10
    assert (completions.usage.sent, completions.usage.stored, server.count) == (10, 30, 10)


def test_what_it_lets_go_of_is_asked_here(server: Server, lm: LM, other: Other):
    other.claim(KEYS[:30])
    call = Call(lm)
    wait_for(lambda: server.count == 10)
    other.answer(KEYS[3], "row 3")
    other.let_go()
    assert all(completion.ok for completion in call.result())
    assert server.count == 39


def test_what_was_answered_since_the_store_was_looked_into_is_not_asked(server: Server, lm: LM, other: Other):
    def answers(request: Request) -> str:
        if request.number == 0:
            other.answer(KEYS[2], "row 2")
        return request.prompt

    server.answers = answers
    call = Call(lm.using(concurrency=1), ROWS[:3])
    assert call.result()[2].origin == "store"
    assert server.count == 2


def test_an_answer_that_is_rejected_waits_for_its_repair(server: Server, lm: LM, other: Other):
    def strict(text: str) -> str:
        if text == "no":
            raise AnswerRejected("say it")
        return text

    other.claim(KEYS[:2])
    other.answer(KEYS[0], "no")
    other.answer(KEYS[1], "no")
    call = Call(lm, ROWS[:2], accept=strict)
    time.sleep(0.5)
    assert not call.is_over
    other.answer(KEYS[0], "yes")
    other.let_go()  # and the second has no repair
    assert [completion.value for completion in call.result()] == ["yes", "row 1"]
    assert server.count == 1


def test_a_claim_ends_with_its_row(server: Server, other: Other):
    """A row that fails is free for others while those that were claimed with it are still asked."""
    seen = threading.Event()
    server.answers = lambda request: error(400) if request.prompt == "row 1" else Reply("True", after=seen)
    call = Call(LM("openai/test", api_base=server.url), ROWS[:3])
    wait_for(lambda: KEYS[1] not in other.claimed and KEYS[0] in other.claimed)
    seen.set()
    assert [completion.ok for completion in call.result()] == [True, False, True]
    wait_for(lambda: other.claimed == set())


def test_a_call_that_is_cancelled_while_it_waits(server: Server, lm: LM, other: Other):
    other.claim(KEYS[:30])

    async def cancel() -> None:
        task = asyncio.create_task(lm.acomplete(ROWS))
        while server.count < 10:
            await asyncio.sleep(0.005)
        while other.answered < 1 + 10:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    wait_for(lambda: other.claimed == set(KEYS[:30]))  # its own are let go of
    other.let_go()
    assert lm.complete(ROWS).usage.sent == 30


def test_two_calls_of_one_process_do_not_wait_for_each_others_claims(server: Server, lm: LM, other: Other):
    server.latency = 0.05
    calls = [Call(lm), Call(lm)]
    assert all(completion.ok for call in calls for completion in call.result())
    assert server.count == 40


def test_no_process_waits_for_ever(server: Server, other: Other):
    other.claim(KEYS[:2])
    alive = True

    def live() -> None:
        while alive:
            other.beat()
            time.sleep(0.01)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        done = LM("openai/test", api_base=server.url, timeout=0.5).complete(ROWS[:2])
    finally:
        alive = False
        thread.join()
    assert [completion.origin for completion in done] == ["sent"] * 2


def test_the_bar_says_what_is_waited_for(lm: LM, other: Other, capsys: pytest.CaptureFixture[str]):
    other.claim(KEYS[:30])
    call = Call(lm.using(progress=True))
    said = ""
    until = time.monotonic() + 60
    while "30 asked by another process" not in said:
        assert time.monotonic() < until
        said += capsys.readouterr().err
        time.sleep(0.01)
    other.let_go()
    call.result()


def test_prompts_are_sent_without_a_claim_where_the_store_stays_locked(
    server: Server, lm: LM, own_store: Path, other: Other, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tagframe.lm.dispatch._MAX_SECONDS_FOR_A_CLAIM", 0.2)
    with closing(sqlite3.connect(own_store, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        call = Call(lm, ROWS[:3])
        wait_for(lambda: server.count == 3)
        lock.execute("COMMIT")
    assert all(completion.ok for completion in call.result())


# --- whose claims hold ----------------------------------------------------------------------------------------------


def held(store: ResponseStore) -> bool:
    return KEYS[0] in store.claimed_elsewhere(1)


@pytest.fixture
def store(other: Other, own_store: Path) -> ResponseStore:
    return open_store(own_store)


def of(pid: int, started: str) -> str:
    return f"{claims._HOST}|{pid}|{started}|x"


def test_a_process_that_lives_holds_its_claims(store: ResponseStore, other: Other):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other.claim(KEYS[:1], of(process.pid, claims._started(process.pid) or ""))
        assert held(store)
        process.kill()
        wait_for(lambda: not held(store))  # a zombie, for nobody has waited for it
        assert KEYS[0] in other.claimed
        taken = store.claims.take(KEYS[:1], other.source, 1)
        assert taken is not None
        assert taken.elsewhere == [False]
        assert other._file.execute("SELECT count(*) FROM claims").fetchone() == (1,)  # the other's is swept away


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only Linux says when a process started")
def test_a_process_id_that_is_given_anew_is_another_process(store: ResponseStore, other: Other):
    other.claim(KEYS[:1], of(os.getppid(), "12345"))
    assert not held(store)


def test_a_process_elsewhere_lives_while_it_says_so(
    store: ResponseStore, other: Other, monkeypatch: pytest.MonkeyPatch
):
    now = 0.0
    monkeypatch.setattr(claims.time, "monotonic", lambda: now)
    monkeypatch.setattr(claims.time, "time", lambda: -now * 1e6)  # a clock that jumps tells nothing
    other.claim(KEYS[:1])
    for _ in range(4):
        assert held(store)
        now += claims.LEASE_SECONDS * 0.9
        other.beat()
    now += 1
    assert held(store)
    now += claims.LEASE_SECONDS + 1
    assert not held(store)


def test_a_process_that_asks_says_that_it_lives(server: Server, lm: LM, other: Other, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tagframe.lm.dispatch.BEAT_SECONDS", 0.1)
    seen = threading.Event()
    server.answers = lambda request: Reply("True", after=seen)
    call = Call(lm, ROWS[:1])
    wait_for(lambda: (other._file.execute("SELECT max(beat) FROM claims").fetchone()[0] or 0) > 1)
    seen.set()
    assert call.result()[0].ok


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork_the_child_is_another_owner():
    mine = claims._owner()
    assert mine == claims._owner()
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, claims._owner().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert said.read() != mine


def test_a_failure_of_another_process_is_no_failure_here(server: Server, other: Other):
    """Each has its own patience, and its own key."""
    other.claim(KEYS[:1])
    server.answers = lambda request: error(500)
    lm = LM("openai/test", api_base=server.url, retry=RetryPolicy(faults=1, first_wait=0.001))
    call = Call(lm, ROWS[:1])
    time.sleep(0.3)
    assert server.count == 0
    other.let_go()
    assert isinstance(call.result()[0].error, ServerFailed)
    assert server.count == 2
