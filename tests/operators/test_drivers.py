"""Steps and what runs them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from scripted import Scripted, shown_rows

import tagframe as tf
from tag_bench.server import Reply, Server
from tagframe.errors import AnswerRejected, Interrupted, InvalidArgument, ReplayMiss, RowsFailed
from tagframe.lm import LM, Batch, Prompt, export_requests, get_lm, import_answers
from tagframe.operators import OPERATORS, Step, arun, gather, run, run_many, sem_filter
from tagframe.operators.drivers import caught


def prompts(*words: str) -> Batch[str]:
    return Batch([Prompt.of(word) for word in words])


def letters(word: str) -> Step[str]:
    """One round trip a letter, each depending on the last."""
    said = ""
    for letter in word:
        completions = yield from gather(prompts(f"{said}{letter}"))
        said = completions[0].value or ""
    return said


def hurried(word: str) -> Step[str]:
    yield (prompts(word, "never awaited"),)
    return word


@pytest.fixture
def lm(live: Server) -> LM:
    live.answers = lambda request: request.prompt.upper()
    return get_lm()


def test_blocking_and_awaited_are_the_same_step(lm: LM, live: Server):
    assert run(letters("sea"), lm) == "SEA"
    assert [request.prompt for request in live.requests] == ["s", "Se", "SEa"]
    assert asyncio.run(arun(letters("tide"), lm)) == "TIDE"


def test_a_step_that_asks_nothing_and_one_that_does_not_wait(lm: LM, live: Server):
    def silent() -> Step[int]:
        yield ()
        return len((yield from gather(prompts())))

    assert run(silent(), lm) == 0
    assert live.requests == []
    assert run(hurried("sea"), lm) == "sea"


def test_an_error_of_a_step_is_the_callers(lm: LM):
    with pytest.raises(InvalidArgument, match="no words"):
        run(OPERATORS["sem_filter"].steps(pd.DataFrame({"a": [1]}), ""), lm)

    def fails() -> Step[int]:
        yield from gather(prompts("x"))
        raise KeyError("mine")

    assert isinstance(run(caught(fails()), lm), KeyError)


def test_many_steps_are_one_call_each_with_its_own_end(lm: LM, live: Server):
    live.answers = lambda request: "Banana." if '"n": 13' in str(request.messages) else "True"
    steps = [OPERATORS["sem_filter"].steps(pd.DataFrame({"n": [n, n + 1]}), "{n} is even") for n in (1, 13, 2)]
    before = len(tf.usage())
    first, second, third = run_many(steps, lm, "three filters")
    assert (first["n"].tolist(), third["n"].tolist()) == ([1, 2], [2, 3])
    assert isinstance(second, RowsFailed)
    assert len(live.requests) == 5 + 1, "the row that two of them ask about is asked once; the bad answer once more"
    assert tf.usage()["call"].tolist()[before:] == ["three filters"]


def largest_first(rows: list[dict]) -> str:
    """A list of rows in order, by their numbers."""
    return " > ".join(str(row + 1) for row in sorted(range(len(rows)), key=lambda row: -rows[row]["n"]))


@pytest.mark.slow
def test_one_export_serves_eighty_pipelines(tmp_path: Path):
    """Each filters, then ranks what is left: two rounds of answers, whatever the number of pipelines."""
    store, batch = tmp_path / "answers.db", tmp_path / "batch.jsonl"
    replay = LM(f"replay:{store}")

    def pipeline(number: int) -> Step[list[int]]:
        frame = pd.DataFrame({"n": [number, 100 + number, 200 + number]})
        kept = yield from OPERATORS["sem_filter"].steps(frame, "{n} is above 99")
        best = yield from OPERATORS["sem_topk"].steps(kept, "largest {n}", K=1)
        return best["n"].tolist()

    def answered(line: dict) -> str:
        rows = shown_rows(line["body"]["messages"][-1]["content"])
        return str(rows[0]["n"] > 99) if len(rows) == 1 else largest_first(rows)

    for missing in (240, 80):
        with pytest.raises(ReplayMiss, match=rf"^{missing} of"):
            run_many([pipeline(number) for number in range(80)], replay)
        assert export_requests(store, batch) == missing
        lines = [json.loads(line) for line in batch.read_text().splitlines()]
        done = [{"custom_id": line["custom_id"], "answer": answered(line)} for line in lines]
        batch.write_text("\n".join(map(json.dumps, done)))
        import_answers(store, batch)
    results = run_many([pipeline(number) for number in range(80)], replay)
    assert results == [[200 + number] for number in range(80)]


def test_cancelling_an_operator_stops_what_is_not_sent_and_keeps_what_was_answered(live: Server):
    frame = pd.DataFrame({"n": range(100)})
    live.answers = lambda request: Reply("True", hang='"n": 7}' in request.prompt)

    async def cancelled() -> None:
        task = asyncio.create_task(tf.asem_filter(frame, "{n} is even", concurrency=1))
        while len(live.requests) < 8:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert len(live.requests) == 8
    assert frame.tag.sem_filter("{n} is even", quote=True).stored == 7


def test_a_group_does_not_wait_for_another(live: Server):
    """The first group's answers never come; the second goes through all its rounds meanwhile."""
    frame = pd.DataFrame({"g": ["slow"] + ["quick"] * 3, "text": ["s", *("q" * 30_000 for _ in range(3))]})
    live.answers = lambda request: Reply("text", hang='{"text": "s"}' in request.prompt)

    async def until_combined() -> None:
        task = asyncio.create_task(tf.asem_agg(frame, "Summarise {text}", group_by="g"))
        while not any("<answers>" in request.prompt for request in live.requests):
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(until_combined())


@pytest.mark.slow
def test_in_a_running_loop_the_blocking_form_works_and_says_so_once(server: Server):
    """In a process of its own: it is said once in the life of one, and not in a notebook's."""
    program = """
import asyncio, sys, warnings, pandas as pd, tagframe as tf
tf.configure(lm="openai/test", api_base=sys.argv[1], api_key="none", store=None, progress=False)
async def cell():
    for claim in ("{n} is odd", "{n} is positive"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            print(len(pd.DataFrame({"n": [1]}).tag.sem_filter(claim)), *(one.message for one in said))
asyncio.run(cell())
"""
    done = subprocess.run([sys.executable, "-c", program, server.url], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("1 ")
    assert "await tagframe.asem_filter" in first
    assert second == "1"


def test_ctrl_c_leaves_what_is_finished_and_says_what_is_kept(live):
    frame = pd.DataFrame({"n": range(12)}, index=[f"row {n}" for n in range(12)])

    def answers(request):
        if '"n": 7' in request.prompt:
            os.kill(os.getpid(), signal.SIGINT)
            return Reply("True", latency=30)  # by far time enough, and no hanging run where nothing is interrupted
        return "True"

    live.answers = answers
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest-xdist ignore it
    try:
        with pytest.raises(Interrupted, match=r"sem_filter was interrupted; 7 answers are kept") as caught:
            frame.tag.sem_filter("{n} is fine", concurrency=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.frame.tag.outcomes["outcome"].tolist() == ["yes"] * 7 + ["failed"] * 5
    live.answers = lambda request: "True"
    live.reset()
    assert len(frame.tag.sem_filter("{n} is fine")) == 12
    assert len(live.requests) in (4, 5)  # the interrupted request may not have ended yet: it is shared then


def test_a_failed_row_is_named_by_its_label_in_one_line_of_a_notebook():
    def answer(message: str) -> str:
        raise AnswerRejected("no answer")

    frame = pd.DataFrame({"n": [1]}, index=["Oslo"])
    told = r"1 of 1 rows have no answer; the first has the index 'Oslo': AnswerRejected"
    with pytest.raises(RowsFailed, match=told) as caught:
        sem_filter(frame, "{n} is fine", lm=Scripted(answer))
    (shown,) = caught.value._render_traceback_()
    assert shown == f"RowsFailed: {caught.value}"
