"""An open call, over real HTTP: prompts go in as they come, completions come out as they arrive."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from pathlib import Path

import pytest

from tag_bench.server import Reply, Request, Server
from tagframe.errors import ReplayMiss
from tagframe.lm import LM, Arrived, Batch, Completion, Prompt, QuotingLM, import_answers, usage


def batch(*words: str) -> Batch[str]:
    return Batch([Prompt.of(word) for word in words])


def completions(arrived: Arrived) -> list[Completion]:
    return [completion for of_batch in arrived.values() for completion in of_batch.values()]


def texts(arrived: Arrived) -> list[str]:
    return sorted(completion.text for completion in completions(arrived))


def echo(request: Request) -> str:
    return request.prompt.upper()


def echo_but_hang_at_slow(request: Request) -> Reply:
    return Reply(echo(request), hang=request.prompt == "slow")


def test_a_batch_arrives_while_another_is_under_way(server: Server, lm: LM):
    server.answers = echo_but_hang_at_slow
    with lm.stream() as stream:
        slow, quick = batch("slow", "first"), batch("a", "b")
        stream.put(slow)
        stream.put(quick)
        seen: dict[Batch, dict[int, str]] = {slow: {}, quick: {}}
        while len(seen[slow]) + len(seen[quick]) < 3:
            for one, arrived in stream.take().items():
                seen[one] |= {position: completion.text for position, completion in arrived.items()}
    assert seen == {slow: {1: "FIRST"}, quick: {0: "A", 1: "B"}}


def test_answers_lead_to_questions(server: Server, lm: LM):
    server.answers = lambda request: str(int(request.prompt) + 1)
    seen = []
    with lm.stream("count") as stream:
        stream.put(batch("0", "10"))
        while arrived := stream.take():
            seen += texts(arrived)
            stream.put(batch(*(one.value for one in completions(arrived) if int(one.value) % 10 < 4)))
    assert sorted(map(int, seen)) == [1, 2, 3, 4, 11, 12, 13, 14]
    assert usage().iloc[-1][["call", "prompts", "sent"]].tolist() == ["count", 8, 8]


def test_a_prompt_that_was_answered_is_not_sent_again(server: Server, lm: LM):
    server.answers = echo
    with lm.using(store=None).stream() as stream:
        stream.put(batch("a"))
        assert [one.origin for one in completions(stream.take())] == ["sent"]
        stream.put(batch("a", "a"))
        assert [one.origin for one in completions(stream.take())] == ["duplicate"] * 2
        assert stream.take() == {}
        assert stream.usage().deduplicated == 2
    assert server.count == 1


def test_another_accept_is_another_value_of_the_same_answer(server: Server, lm: LM):
    server.answers = echo
    with lm.stream() as stream:
        for accept in (str.lower, len):
            stream.put(Batch([Prompt.of("abc")], accept))
        values = set()
        while arrived := stream.take():
            values |= {one.value for one in completions(arrived)}
    assert values == {"abc", 3}


def test_what_is_not_sent_when_the_block_is_left_never_is(server: Server, lm: LM):
    server.answers = echo_but_hang_at_slow
    with lm.using(concurrency=1).stream() as stream:
        stream.put(batch("a"))
        assert stream.take()
        stream.put(batch("slow", *"bcdefgh"))
    assert {request.prompt for request in server.requests} <= {"a", "slow"}
    assert lm.complete([Prompt.of("a")])[0].origin == "store"


def test_nothing_asked_is_nothing_to_take(lm: LM):
    with lm.stream() as stream:
        assert stream.take() == {}
        stream.put(batch())
        assert stream.take() == {}


def test_awaited(server: Server, lm: LM):
    server.answers = echo_but_hang_at_slow

    async def ask() -> Arrived:
        async with lm.stream() as stream:
            stream.put(batch("slow"))
            stream.put(batch("a", "b"))
            return await stream.atake()

    assert texts(asyncio.run(ask())) == ["A", "B"]


def test_a_replay_goes_as_far_as_its_answers_reach_and_then_names_all_that_it_lacks(tmp_path: Path):
    store, file = tmp_path / "answers.db", tmp_path / "answers.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "a"}], "answer": "A"}\n')
    import_answers(store, file)
    with LM(f"replay:{store}").stream() as stream:
        stream.put(batch("a", "b"))
        assert texts(stream.take()) == ["A"]
        stream.put(batch("c"))
        with pytest.raises(ReplayMiss, match=r"^2 of 3 prompts have no answer"):
            stream.take()


def test_a_quote_of_a_stream(server: Server, lm: LM):
    quoting = QuotingLM(lm, guess=lambda prompt: "True")
    with quoting.stream() as stream:
        for words in ("ab", "bc"):
            stream.put(batch(*words))
            assert len(completions(stream.take())) == 2
    assert (quoting.quote.rows, quoting.quote.calls, quoting.quote.deduplicated) == (4, 3, 1)
    assert server.count == 0


@pytest.mark.slow
def test_what_a_call_held_is_let_go_without_a_garbage_collection(lm: LM):
    class Parse:
        def __call__(self, text: str) -> str:
            return text

    accept = Parse()
    held = weakref.ref(accept)
    gc.collect()
    gc.disable()
    try:
        lm.complete([Prompt.of(f"row {i}") for i in range(20)], accept=accept)
        del accept
        for _ in range(12_000):  # the thread that parses ends by itself, soon
            if held() is None:
                break
            time.sleep(0.005)
        assert held() is None
    finally:
        gc.enable()
