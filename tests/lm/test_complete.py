"""The contract of LM.complete, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tagframe as tf
from tag_bench.server import Reply, Request, Server
from tagframe.errors import AnswerCut, AnswerRejected, ContentFiltered, InvalidArgument, NotConfigured
from tagframe.lm import LM, Budget, Completions, Message, Prompt, RetryPolicy, get_lm, recorded_by


def boolean(text: str) -> bool:
    if text not in ("True", "False"):
        raise AnswerRejected(f"answer True or False, not {text!r}")
    return text == "True"


def echo(request: Request) -> str:
    return request.prompt.upper()


def prompts(count: int) -> list[Prompt]:
    return [Prompt.of(f"row {i}") for i in range(count)]


def test_completions_come_in_prompt_order(server: Server, lm: LM):
    server.answers = lambda request: request.prompt.removeprefix("row ")
    completions = lm.complete(prompts(200), accept=int)
    assert isinstance(completions, Completions)
    assert [completion.value for completion in completions] == list(range(200))
    assert all(completion.ok and completion.origin == "sent" for completion in completions)
    assert completions[3].text == "3"
    assert completions[3].usage.sent == 1
    assert completions[3].usage.tokens_out == 2
    assert completions.usage.prompts == completions.usage.sent == 200


def test_no_prompts(server: Server, lm: LM):
    assert lm.complete([]) == []
    assert server.count == 0


def test_the_request_body(server: Server, lm: LM):
    lm.complete([Prompt.of("is it?", system="Answer True or False.")], temperature=0.5, max_tokens=7)
    request = server.requests[0]
    assert request.body == {
        "model": "test",
        "messages": [
            {"role": "system", "content": "Answer True or False."},
            {"role": "user", "content": "is it?"},
        ],
        "temperature": 0.5,
        "max_tokens": 7,
    }
    assert request.headers["authorization"] == "Bearer sk-secret"


def test_further_fields_of_the_body(server: Server):
    lm = LM("openai/test", api_base=server.url, extra_body={"seed": 7, "response_format": {"type": "json_object"}})
    lm.complete(prompts(1))
    assert server.requests[0].body["seed"] == 7
    assert server.requests[0].body["response_format"] == {"type": "json_object"}
    assert "authorization" not in server.requests[0].headers


def test_identical_prompts_are_sent_once(server: Server, lm: LM):
    server.answers = echo
    completions = lm.complete([Prompt.of("a"), Prompt.of("b"), Prompt.of("a"), Prompt.of("a")])
    assert [completion.text for completion in completions] == ["A", "B", "A", "A"]
    assert [completion.origin for completion in completions] == ["sent", "sent", "duplicate", "duplicate"]
    assert server.count == 2
    assert completions.usage.sent == 2
    assert completions.usage.deduplicated == 2
    assert completions[2].usage.tokens_in == 0


def test_samples_are_not_duplicates(server: Server, lm: LM):
    lm.complete([Prompt.of("a", sample=0), Prompt.of("a", sample=1)], temperature=1.0)
    assert server.count == 2


def test_a_rejected_answer_is_repaired_once(server: Server, lm: LM):
    server.answers = ["Maybe", "False"]
    completion = lm.complete(prompts(1), accept=boolean)[0]
    assert completion.ok
    assert completion.value is False
    assert completion.usage.repaired == 1
    assert completion.usage.sent == 2
    assert completion.usage.retried == 0
    repair = server.requests[1].messages
    assert repair[:2] == [{"role": "user", "content": "row 0"}, {"role": "assistant", "content": "Maybe"}]
    assert "answer True or False, not 'Maybe'" in repair[2]["content"]


def test_an_answer_rejected_twice_is_a_named_error(server: Server, lm: LM):
    server.answers = lambda request: "Maybe" if "row 1" in str(request.messages) else "True"
    completions = lm.complete(prompts(3), accept=boolean)
    assert [completion.value for completion in completions] == [True, None, True]
    assert isinstance(completions[1].error, AnswerRejected)
    assert completions[1].text == "Maybe"
    assert completions.usage.failed == 1
    assert server.count == 4


def test_an_answer_cut_off_is_asked_for_once_more_and_never_taken(server: Server, lm: LM, own_store: Path):
    server.answers = [Reply("The cat sat on", finish_reason="length"), "The cat sat."]
    completion = lm.complete(prompts(1), max_tokens=4)[0]
    assert completion.value == "The cat sat."
    assert completion.usage.repaired == 1
    assert "cut off at its limit of 4 tokens" in server.requests[1].prompt
    server.answers = lambda request: Reply("Half a sen", finish_reason="length")
    for _ in range(2):  # and nothing of it is stored
        completion = lm.complete([Prompt.of("other")], max_tokens=4)[0]
        assert isinstance(completion.error, AnswerCut)
        assert completion.text == "Half a sen"
    assert server.count == 6


def thinker(request: Request) -> Reply:
    """A model that thinks for some 1,000 tokens before it answers."""
    room = request.body.get("max_tokens", 10_000)
    return Reply("<think>Well,</think>True") if room > 1000 else Reply("<think>Wel", finish_reason="length")


def test_an_endpoint_that_reasons_gets_room_for_it_and_is_remembered(server: Server, lm: LM):
    server.answers = thinker
    first = lm.using(concurrency=4).complete(prompts(20), max_tokens=8)
    assert [completion.text for completion in first] == ["<think>Well,</think>True"] * 20
    cut = sum(request.body["max_tokens"] == 8 for request in server.requests)
    assert 1 <= cut <= 4  # those that were in flight when the first was cut off
    assert server.count == 20 + cut
    assert first.usage.retried == cut
    lm.complete([Prompt.of("another call")], max_tokens=8)
    assert server.count == 21 + cut


def test_more_room_is_given_once_and_never_against_the_users_word(server: Server, lm: LM):
    server.answers = lambda request: Reply("", finish_reason="length")
    assert isinstance(lm.complete(prompts(1), max_tokens=8)[0].error, AnswerCut)
    assert server.count == 2
    assert isinstance(lm.with_body(max_tokens=99).complete(prompts(1), max_tokens=8)[0].error, AnswerCut)
    assert isinstance(lm.complete(prompts(1))[0].error, AnswerCut)
    assert server.count == 4
    assert [request.body.get("max_tokens") for request in server.requests[2:]] == [99, None]
    with Server(lambda request: Reply("", finish_reason="length")) as other:
        unlimited = LM("openai/test", api_base=other.url)
        unlimited.complete(prompts(1))
        unlimited.with_body(max_tokens=9).complete(prompts(1))
        unlimited.complete(prompts(1), max_tokens=8)
        assert [request.body.get("max_tokens") for request in other.requests] == [None, 9, 8, 8 + 8192]


def test_an_answer_that_a_filter_cut_is_none(server: Server, lm: LM):
    server.answers = lambda request: Reply("Half a sen", finish_reason="content_filter")
    assert isinstance(lm.complete(prompts(1))[0].error, ContentFiltered)
    assert server.count == 1


def test_any_exception_of_accept_rejects(server: Server, lm: LM):
    server.answers = ["{}", '{"answer": 1}']
    completion = lm.complete(prompts(1), accept=lambda text: __import__("json").loads(text)["answer"])[0]
    assert completion.value == 1
    assert "KeyError" in server.requests[1].prompt


def test_logprobs(server: Server, lm: LM):
    completion = lm.complete(prompts(1), logprobs=True)[0]
    assert completion.logprobs is not None
    assert completion.logprobs[0].token == "True"
    assert completion.logprobs[0].top[1] == ("False", -2.3)
    assert server.requests[0].body["top_logprobs"] == 10
    again = lm.complete(prompts(1), logprobs=True)[0]
    assert again.origin == "store"
    assert again.logprobs == completion.logprobs


def test_concurrency_is_a_ceiling(server: Server, lm: LM):
    server.latency = 0.01
    lm.using(concurrency=5).complete(prompts(40))
    assert server.max_in_flight == 5


def test_two_threads_share_the_ceiling(server: Server, lm: LM):
    server.latency = 0.01

    def ask(name: str) -> None:
        lm.using(concurrency=4).complete([Prompt.of(f"{name} {i}") for i in range(20)])

    threads = [threading.Thread(target=ask, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.count == 40
    assert server.max_in_flight <= 4


def test_inside_a_running_event_loop(lm: LM):
    async def cell() -> tuple[str | None, str | None]:
        return lm.complete(prompts(1))[0].text, (await lm.acomplete([Prompt.of("other")]))[0].text

    assert asyncio.run(cell()) == ("True", "True")


def test_acomplete_is_the_same_and_can_be_cancelled(server: Server, lm: LM):
    async def twice() -> None:
        completions = await lm.acomplete(prompts(3), accept=boolean)
        assert [completion.value for completion in completions] == [True] * 3
        server.latency = 30
        task = asyncio.create_task(lm.acomplete([Prompt.of("slow")]))
        while server.in_flight == 0:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(twice())


def test_a_cancelled_call_sends_nothing_more(server: Server, lm: LM):
    lm.complete(prompts(1))
    sent = server.count
    begun, cancelled = threading.Event(), threading.Event()

    def accept(text: str) -> str:  # of the stored answer, and so before anything is sent
        begun.set()
        assert cancelled.wait(60)
        return text

    async def cancel() -> None:
        task = asyncio.create_task(lm.acomplete(prompts(50), accept))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        cancelled.set()

    asyncio.run(cancel())  # which ends when all its threads have
    assert lm.complete([Prompt.of("the next")])[0].ok
    assert server.count == sent + 1


def test_accept_sees_the_callers_context(lm: LM):
    unit = contextvars.ContextVar("unit", default="none")
    unit.set("metre")
    with tf.context(concurrency=3):
        completion = lm.complete(prompts(1), accept=lambda text: (unit.get(), tf.config.current().concurrency))[0]
    assert completion.value == ("metre", 3)


def test_accept_may_call_the_model(lm: LM):
    def nested(text: str) -> tuple[str, str | None]:
        return text, lm.complete([Prompt.of(f"nested {text}")])[0].value

    assert lm.complete(prompts(70), accept=nested)[69].value == ("True", "True")


def test_a_slow_accept_stops_no_other_call(server: Server, lm: LM):
    other_is_done = threading.Event()

    def slow(text: str) -> str:
        assert other_is_done.wait(60)
        return text

    waiting = threading.Thread(target=lm.complete, args=(prompts(3), slow))
    waiting.start()
    while server.count < 3:
        time.sleep(0.001)
    assert lm.complete([Prompt.of("other")], accept=boolean)[0].value is True
    other_is_done.set()
    waiting.join()


def test_an_accept_that_exits_rejects(lm: LM):
    completion = lm.complete(prompts(1), accept=lambda text: sys.exit("no"))[0]
    assert isinstance(completion.error, AnswerRejected)
    assert "SystemExit" in str(completion.error)


def test_a_message_in_parts(server: Server, lm: LM):
    parts = ({"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}})
    assert lm.complete([Prompt((Message("user", parts),))])[0].ok
    assert server.requests[0].messages[0]["content"] == list(parts)


def test_half_a_surrogate_pair_in_prompt_and_answer(server: Server, lm: LM):
    server.answers = lambda request: "\ud83d odd"
    assert lm.complete([Prompt.of("cell \ud83d")])[0].text == "� odd"
    assert lm.complete([Prompt.of("cell \ud83d")])[0].origin == "store"


@pytest.mark.parametrize("bad", ["text", None, {"messages": []}])
def test_something_that_is_no_prompt(lm: LM, bad: object):
    with pytest.raises(InvalidArgument, match=r"Prompt\.of"):
        lm.complete([bad])  # type: ignore[list-item]


def test_a_prompt_without_json_form(lm: LM):
    with pytest.raises(InvalidArgument, match="no JSON form"):
        lm.complete([Prompt.of(b"bytes")])  # type: ignore[arg-type]


def test_no_room_for_an_answer(lm: LM):
    with pytest.raises(InvalidArgument, match="max_tokens"):
        lm.complete(prompts(1), max_tokens=0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"model": ""}, "a model must be a name"),
        ({"model": "openai/x", "concurency": 3}, "did you mean 'concurrency'"),
        ({"model": "openai/x", "concurrency": 0}, "at least 1"),
        ({"model": "openai/x", "timeout": 0}, "timeout must be a number of seconds"),
        ({"model": "openai/x", "timeout": "5"}, "timeout must be a number of seconds, more than 0; got '5'"),
        ({"model": "openai/x", "timeout": float("nan")}, "timeout must be a number of seconds"),
        ({"model": "openai/x", "tpm": 0}, "tpm must be a number of tokens per minute"),
        ({"model": "openai/x", "rpm": -1}, "rpm must be a number of requests per minute"),
    ],
)
def test_bad_arguments_of_a_model(arguments: dict[str, Any], reason: str):
    with pytest.raises(InvalidArgument, match=reason):
        LM(**arguments)


@pytest.mark.parametrize("value", ["5", -1, float("nan"), None])
def test_a_policy_of_no_numbers(value: Any):
    with pytest.raises(InvalidArgument, match=r"RetryPolicy.faults must be a number, 0 or more"):
        RetryPolicy(faults=value)


@pytest.mark.parametrize("key", ["sk-a\nsk-b", "sk\ra", "sk-\x00", "Bearer\tsk", "sk-a\r\nX-Other: 1"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str):
    with pytest.raises(InvalidArgument, match="control character") as refused:
        LM("openai/x", api_base="http://here/v1", api_key=key).complete(prompts(1))
    assert key not in str(refused.value)


def test_a_transport_that_is_none():
    with pytest.raises(InvalidArgument, match="'http', 'litellm'"):
        LM("openai/x", api_base="http://here/v1", transport="carrier pigeon").complete(prompts(1))  # type: ignore[arg-type]


def test_get_lm_without_a_model_names_the_ways_out():
    with pytest.raises(NotConfigured, match=r"configure\(lm=.*TAGFRAME_LM.*replay:STORE"):
        get_lm()


def test_get_lm_from_the_settings(server: Server):
    with tf.context(lm="openai/test", api_base=server.url, concurrency=2):
        assert get_lm().complete(prompts(2))[0].ok
        assert get_lm(concurrency=1).settings().concurrency == 1
        assert get_lm().settings().concurrency == 2
    assert server.requests[0].body["model"] == "test"


def test_none_given_to_a_call_is_none(server: Server, lm: LM, own_store: Path):
    with tf.context(lm=lm, budget=Budget(calls=0)):
        assert not get_lm().complete(prompts(1))[0].ok
        assert get_lm(budget=None, store=None).complete(prompts(1))[0].ok
        with pytest.raises(NotConfigured):
            get_lm(lm=None)
    assert recorded_by(own_store) == {}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"embedder": "nonsense"}, "no call setting 'embedder'"),
        ({"corpus": None}, "no call setting 'corpus'"),
        ({"api_base": "http://elsewhere/v1"}, "api_base cannot be given beside an LM object"),
        ({"api_key": "sk-other"}, "api_key cannot be given beside an LM object"),
        ({"concurency": 3}, "did you mean 'concurrency'"),
    ],
)
def test_what_a_call_has_no_use_for_is_refused(lm: LM, given: dict[str, Any], reason: str):
    with tf.context(lm=lm), pytest.raises(InvalidArgument, match=reason):
        get_lm(**given)
    with pytest.raises(InvalidArgument, match=reason):
        get_lm(lm=lm, **given)


def test_the_context_window_of_a_model():
    assert LM("openai/gpt-4o-mini").context_window == 128_000
    assert LM("openai/my-own").context_window is None
    assert LM("openai/my-own", context_window=8192).context_window == 8192
    with tf.context(context_window=4096):
        assert LM("openai/gpt-4o-mini").context_window == 4096


def test_get_lm_of_an_lm_keeps_its_own_settings(lm: LM):
    with tf.context(lm=lm.using(concurrency=3), concurrency=9):
        assert get_lm().settings().concurrency == 3
        assert get_lm(concurrency=5).settings().concurrency == 5


def test_the_key_is_in_no_repr(server: Server, lm: LM):
    lm.complete(prompts(1))
    assert "sk-secret" not in repr(lm) + repr(vars(lm)["_transport"].__class__) + str(lm.settings())
    assert repr(lm) == f"LM('openai/test', api_base='{server.url}')"
