"""Every row ends with its answer or a named failure, on the row that it belongs to; nothing is paid twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from tag_bench import server as scripted
from tag_bench.server import Reply, Request, Server, error
from tagframe import errors
from tagframe.errors import AnswerRejected, LMRequestFailed, RunStopped
from tagframe.lm import LM, Prompt, RetryPolicy
from tagframe.lm.pacing import server_state
from tagframe.lm.run import UNSTORED_SHARE

pytestmark = pytest.mark.slow

PATIENT = RetryPolicy(faults=2, refusals=12, first_wait=0.002, longest_wait=0.005)
LONG = 2.0
"""Seconds for a request among which some hang: many times what an answer takes, also on a busy machine."""
ROWS = 100
FAULTS: dict[str, tuple[Reply, type[LMRequestFailed]]] = {
    "500": (error(500), errors.ServerFailed),
    "429": (error(429), errors.RateLimited),
    "429 with Retry-After": (error(429, headers={"Retry-After": "0.002"}), errors.RateLimited),
    "hang": (scripted.HANG, errors.RequestTimedOut),
    "drop": (scripted.DROP, errors.ConnectionFailed),
    "half a response": (scripted.HALF, errors.ConnectionFailed),
    "malformed JSON": (scripted.MALFORMED, errors.MalformedResponse),
    "empty": (scripted.EMPTY, errors.MalformedResponse),
    "null": (scripted.NULL, errors.MalformedResponse),
    "wrong types": (scripted.WRONG_TYPES, errors.MalformedResponse),
    "context": (scripted.CONTEXT_LENGTH, errors.ContextTooLong),
}
"""What goes wrong, and what it is called where it goes on going wrong."""


def prompts(count: int) -> list[Prompt]:
    return [Prompt.of(f"row {i}", system="Say which row this is.") for i in range(count)]


def answer_of(prompt: str) -> str:
    return f"this is {prompt}"


def hit(prompt: str, percent: int) -> bool:
    """The same rows in every run: at least one of a hundred."""
    return zlib.crc32(prompt.encode()) % 100 < percent or prompt == "row 7"


SHARES = [(fault, percent) for fault in FAULTS for percent in (1, 50) if fault != "hang" or percent == 1]
"""Of what hangs, which takes its whole time, one share."""


@pytest.mark.parametrize("persistent", [False, True], ids=["transient", "persistent"])
@pytest.mark.parametrize(("fault", "percent"), SHARES)
def test_faults(server: Server, fault: str, percent: int, persistent: bool):
    reply, kind = FAULTS[fault]
    usable: Counter[str] = Counter()

    def answers(request: Request) -> str | Reply:
        if hit(request.prompt, percent) and (persistent or request.attempt == 1):
            return reply
        usable[request.prompt] += 1
        return answer_of(request.prompt)

    server.answers = answers
    lm = LM("openai/test", api_base=server.url, retry=PATIENT, timeout=LONG if fault == "hang" else 120)
    completions = lm.using(concurrency=ROWS).complete(prompts(ROWS))
    final = persistent or not kind.retryable
    for i, completion in enumerate(completions):
        if hit(f"row {i}", percent) and final:
            assert type(completion.error) is kind
        else:
            assert completion.value == answer_of(f"row {i}")
    if fault != "hang":  # which on a busy machine an answer seems to do, too
        assert set(usable.values()) <= {1}  # an answer that could be used was not asked for again
    # The same call again pays for what failed, and for nothing else.
    server.answers = lambda request: answer_of(request.prompt)
    server.reset()
    again = lm.complete(prompts(ROWS))
    assert [completion.value for completion in again] == [answer_of(f"row {i}") for i in range(ROWS)]
    assert server.count == sum(not completion.ok for completion in completions)


def test_all_faults_at_once(server: Server):
    kinds = [kind for fault, kind in FAULTS.items() if fault != "hang"]
    choose = random.Random(0)
    usable: Counter[str] = Counter()

    def answers(request: Request) -> str | Reply:
        if choose.random() < 0.5:
            return choose.choice(kinds)[0]
        usable[request.prompt] += 1
        return answer_of(request.prompt)

    server.answers = answers
    lm = LM("openai/test", api_base=server.url, retry=PATIENT)
    for i, completion in enumerate(lm.complete(prompts(120))):
        if completion.ok:
            assert completion.text == answer_of(f"row {i}")
        else:
            assert isinstance(completion.error, LMRequestFailed)
            assert type(completion.error) is not LMRequestFailed
    assert set(usable.values()) == {1}


def test_retries_are_counted(server: Server, lm: LM):
    server.answers = [error(500), scripted.DROP, "True"]
    usage = lm.complete(prompts(1)).usage
    assert (usage.sent, usage.retried, usage.failed) == (3, 2, 0)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (error(401, "Incorrect API key"), errors.AuthenticationFailed),
        (error(404, "no such model"), errors.ModelNotFound),
        (error(429, "no credit", code="insufficient_quota"), errors.QuotaExhausted),
    ],
)
def test_what_fails_for_every_row_stops_the_run(server: Server, lm: LM, fault: Reply, kind: type[LMRequestFailed]):
    server.answers = lambda request: fault if int(request.prompt[4:]) >= 20 else answer_of(request.prompt)
    completions = lm.using(concurrency=4).complete(prompts(200))
    # Since others were answered, it might pass: those in flight are sent again, until the first has had its retries.
    assert server.count <= 20 + 4 * (1 + lm.retry.faults)
    assert [completion.ok for completion in completions] == [True] * 20 + [False] * 180
    assert kind in {type(completion.error) for completion in completions[20:24]}
    last = completions[199].error
    assert isinstance(last, RunStopped)
    assert type(last.__cause__) is kind
    assert completions.usage.failed == 180


def test_a_server_that_is_down_stops_the_run():
    with Server() as gone:
        url = gone.url
    lm = LM("openai/test", api_base=url, retry=RetryPolicy(faults=1, first_wait=0.001), concurrency=20)
    completions = lm.complete(prompts(500))
    kinds = Counter(type(completion.error) for completion in completions)
    assert kinds.keys() == {errors.ConnectionFailed, RunStopped}
    assert 16 <= kinds[errors.ConnectionFailed] <= 84


def test_a_server_that_fails_stops_the_run_after_few_requests(server: Server):
    server.answers = lambda request: error(500)
    lm = LM("openai/test", api_base=server.url, retry=RetryPolicy(first_wait=0.01, longest_wait=0.05), store=None)
    assert isinstance(lm.complete(prompts(600))[599].error, RunStopped)
    assert server.count <= 448  # 64 rows with all their retries, and what was in flight then


def test_a_server_that_never_answers_stops_the_run(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tagframe.lm.attempts.SILENT_SECONDS", 0.0)
    server.answers = lambda request: scripted.HANG
    lm = LM("openai/test", api_base=server.url, timeout=0.2, store=None)
    completions = lm.complete(prompts(803))
    assert {type(completion.error) for completion in completions} <= {errors.RequestTimedOut, RunStopped}
    assert isinstance(completions[802].error, RunStopped)
    assert server.count <= 128  # 64 that timed out, and what was in flight then


def test_a_model_that_never_does_what_it_is_asked_stops_the_run(server: Server, lm: LM):
    def strict(text: str) -> str:
        if text != "True":
            raise AnswerRejected("answer True or False")
        return text

    server.answers = lambda request: "I think so." if request.prompt != "row 0" or request.number else "True"
    completions = lm.using(concurrency=4).complete([Prompt.of(f"line {i}") for i in range(500)], accept=strict)
    assert server.count <= 2 * (20 + 4 + 4)  # four in flight, and four at the parser
    assert isinstance(completions[0].error, AnswerRejected)
    last = completions[499].error
    assert isinstance(last, RunStopped)
    assert "20 of the last 20 answers were rejected; the last was 'I think so.' (answer True or False)" in str(last)
    # Where half are accepted, the others are rows that are hard to answer.
    server.reset()
    server.answers = lambda request: "True" if request.prompt[-1] in "02468" else "I think so."
    completions = lm.using(concurrency=1).complete(prompts(60), accept=strict)
    assert [type(completion.error) for completion in completions] == [type(None), AnswerRejected] * 30


def test_a_stop_does_not_wait_for_backoffs(server: Server):
    slow = RetryPolicy(first_wait=600, longest_wait=600)
    lm = LM("openai/test", api_base=server.url, retry=slow, concurrency=2, store=None)
    server.answers = lambda request: error(500) if request.prompt == "row 0" else Reply("no", 401, latency=0.05)
    completions = lm.complete(prompts(3))
    assert [type(completion.error) for completion in completions] == [
        RunStopped,
        errors.AuthenticationFailed,
        RunStopped,
    ]


def test_bad_request_and_forbidden_are_not_retried(server: Server, lm: LM):
    server.answers = lambda request: error(400 if request.prompt == "row 0" else 403)
    assert [c.error.status for c in lm.complete(prompts(2))] == [400, 403]  # type: ignore[union-attr]
    assert server.count == 2


def test_a_wait_that_is_too_long_is_not_waited_for(server: Server, lm: LM):
    server.answers = lambda request: error(429, headers={"Retry-After": "86400"})
    failure = lm.using(store=None).complete(prompts(1))[0].error
    assert isinstance(failure, errors.RateLimited)
    assert failure.retry_after == 86400


def in_a_day() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)


@pytest.mark.parametrize("wait", ["86400", "a date"])
def test_one_row_that_is_told_to_wait_a_day_does_not_stop_the_others(server: Server, lm: LM, wait: str):
    later = error(429, headers={"Retry-After": in_a_day() if wait == "a date" else wait})
    server.answers = lambda request: later if request.prompt == "row 7" else answer_of(request.prompt)
    completions = lm.complete(prompts(500))
    assert [i for i, completion in enumerate(completions) if not completion.ok] == [7]
    assert isinstance(completions[7].error, errors.RateLimited)
    assert completions[7].error.retry_after > 86_000  # type: ignore[operator]
    assert lm.complete([Prompt.of("the next call")])[0].ok


def test_a_pause_that_one_call_waits_for_is_too_long_for_another(server: Server):
    later = error(429, headers={"Retry-After": "600"})
    server.answers = lambda request: later if request.prompt == "row 0" else "True"
    patient = LM("openai/test", api_base=server.url, retry=RetryPolicy(patience=1000), store=None)
    waiting = threading.Thread(target=patient.complete, args=(prompts(1),), daemon=True)
    waiting.start()
    while server.count == 0:
        time.sleep(0.001)
    state = server_state(patient.transport.endpoint, patient.model)
    while not state.paused_until:
        time.sleep(0.001)
    failure = LM("openai/test", api_base=server.url, store=None).complete([Prompt.of("other")])[0].error
    assert isinstance(failure, errors.RateLimited)
    assert "not sent: the server asked to wait" in str(failure)
    assert server.count == 1


# --- processes that die -------------------------------------------------------------------------------------------

# Imports once, then forks a child for each line that it reads; so twenty kills cost seconds, not a minute.
NURSERY = """
import os, sys
import aiohttp
from tagframe.lm import LM, Prompt
from tagframe.lm import openai_http

rows, url, store = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for line in sys.stdin:
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        os.waitpid(pid, 0)
        continue
    lm = LM("openai/test", api_base=url, store=store, concurrency=8)
    prompts = [Prompt.of(f"row {i}", system="Say which row this is.") for i in range(rows)]
    wrong = [c for i, c in enumerate(lm.complete(prompts)) if c.text != f"this is row {i}"]
    os._exit(bool(wrong))
"""


@contextmanager
def nursery(rows: int, server: Server, store: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", NURSERY, str(rows), server.url, str(store)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(120)
        process.stdout.close()


def start(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_twenty_times(server: Server, tmp_path: Path):
    rows, kills, in_flight = 1500, 20, 8
    server.answers = lambda request: answer_of(request.prompt)
    server.latency = 0.005
    store = tmp_path / "store.db"
    choose = random.Random(20)
    with nursery(rows, server, store) as process:
        for _ in range(kills):
            child = start(process)
            before = server.count
            while server.count == before:  # it has begun to send
                assert process.poll() is None
                time.sleep(0.001)
            time.sleep(choose.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
    completions = LM("openai/test", api_base=server.url, store=store).complete(prompts(rows))
    assert [completion.text for completion in completions] == [answer_of(f"row {i}") for i in range(rows)]
    asked = Counter(request.prompt for request in server.requests)
    assert len(asked) == rows
    repeated = sum(asked.values()) - rows
    assert repeated <= kills * (in_flight + in_flight // UNSTORED_SHARE)
    assert completions.usage.stored > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_processes_on_one_store(server: Server, tmp_path: Path):
    rows = 400
    server.answers = lambda request: answer_of(request.prompt)
    server.latency = 0.005
    store = tmp_path / "store.db"
    with nursery(rows, server, store) as one, nursery(rows, server, store) as other:
        start(one), start(other)
    assert one.returncode == other.returncode == 0
    assert server.count <= 2 * rows  # what both begin with in the same second may be asked by both
    with sqlite3.connect(store) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (rows,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert LM("openai/test", api_base=server.url, store=store).complete(prompts(rows)).usage.stored == rows


FORKED = """
import os, sys, threading, time
from tagframe.lm import LM, Budget, Prompt

lm = LM("openai/test", api_base=sys.argv[1], store=sys.argv[2], rpm=240, concurrency=2, budget=Budget(calls=2))
threading.Thread(target=lm.complete, args=([Prompt.of(f"hang {i}") for i in range(9)],), daemon=True).start()
while not os.path.exists(sys.argv[3]):  # until both requests are in flight
    time.sleep(0.001)
pid = os.fork()
if pid == 0:
    os._exit(0 if lm.complete([Prompt.of("child")])[0].ok else 1)
_, status = os.waitpid(pid, 0)
os._exit(os.waitstatus_to_exitcode(status))  # the parent's own requests hang, and are not waited for
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle_of_a_rate_limited_call(server: Server, tmp_path: Path):
    arrived = tmp_path / "arrived"

    def answers(request: Request) -> str | Reply:
        if request.prompt == "child":
            return "True"
        if request.in_flight == 2:
            arrived.touch()
        return scripted.HANG

    server.answers = answers
    done = subprocess.run(
        [sys.executable, "-c", FORKED, server.url, str(tmp_path / "store.db"), str(arrived)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


INTERRUPTED = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it, and so would this
from tagframe.lm import LM, Prompt

lm = LM("openai/test", api_base=sys.argv[1], store=sys.argv[2], concurrency=8)
try:
    lm.complete([Prompt.of(f"row {i}", system="Say which row this is.") for i in range(100)])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


ENDING = """
import sys
import threading
from tagframe.lm import LM, Prompt

lm = LM("openai/test", api_base=sys.argv[1], store=sys.argv[2], concurrency=4)
work = lambda: print([one.text for one in lm.complete([Prompt.of(f"row {i}") for i in range(12)])])
threading.Thread(target=work).start()
print("the main thread ends", flush=True)
"""


def test_a_call_of_a_thread_goes_on_when_the_main_thread_has_ended(server: Server, tmp_path: Path):
    ended = threading.Event()
    server.answers = lambda request: Reply(answer_of(request.prompt), after=ended, latency=0.1)
    with subprocess.Popen(
        [sys.executable, "-c", ENDING, server.url, str(tmp_path / "store.db")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "the main thread ends\n"
        ended.set()
        assert process.stdout.readline() == f"{[answer_of(f'row {i}') for i in range(12)]}\n"


def test_ctrl_c_stops_and_keeps_what_is_answered(server: Server, tmp_path: Path):
    server.answers = lambda request: answer_of(request.prompt) if request.number < 60 else scripted.HANG
    store = tmp_path / "store.db"
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, server.url, str(store)], stdout=subprocess.PIPE, text=True
    )
    while server.count < 68:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)  # the eight requests in flight would hang for two minutes
    assert output == "interrupted\n"
    assert process.returncode == 0
    server.answers = lambda request: answer_of(request.prompt)
    again = LM("openai/test", api_base=server.url, store=store).complete(prompts(100))
    assert again.usage.stored == 60
    assert all(completion.ok for completion in again)


def test_a_fault_of_a_library_is_one_rows_failure(server: Server, lm: LM, monkeypatch: pytest.MonkeyPatch):
    send = type(lm.transport).send

    async def sometimes(self: object, prompt: Prompt, *rest: object) -> object:
        if prompt.messages[-1].content == "row 3":
            raise ZeroDivisionError("deep inside")
        return await send(self, prompt, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(type(lm.transport), "send", sometimes)
    completions = lm.complete(prompts(6))
    assert [completion.ok for completion in completions] == [True, True, True, False, True, True]
    assert "ZeroDivisionError: deep inside" in str(completions[3].error)


def test_rejections_beside_faults(server: Server, lm: LM):
    def answers(request: Request) -> str | Reply:
        return error(500) if request.attempt == 1 else "junk" if len(request.messages) == 2 else "fine"

    def fine(text: str) -> str:
        if text != "fine":
            raise AnswerRejected("say fine")
        return text

    server.answers = answers
    usage = lm.complete(prompts(5), accept=fine).usage
    assert (usage.sent, usage.retried, usage.repaired, usage.failed) == (20, 10, 5, 0)
