"""One parity suite over both transports: the same results and the same errors."""

from __future__ import annotations

import json
import pickle
import shutil
import ssl
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from tag_bench import server as scripted
from tag_bench.server import Reply, Server, error
from tagframe import errors
from tagframe.errors import InvalidArgument, NotConfigured
from tagframe.lm import LM, Parameters, Prompt, RetryPolicy, background
from tagframe.lm.litellm_transport import LiteLLM
from tagframe.lm.model import connect
from tagframe.lm.openai_http import OpenAIHTTP
from tests.lm.conftest import FAST
from tests.lm.raw_server import RawServer, response

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # litellm's, of malformed answers
NEVER = RetryPolicy(faults=0, refusals=0)


@pytest.fixture(scope="module")
def warm_litellm() -> None:
    """litellm's first call imports for seconds, which must not count against a test's timeout."""
    with Server() as server:
        LM("openai/test", api_base=server.url, api_key="x", transport="litellm", store=None).complete([Prompt.of("a")])


@pytest.fixture(params=["http", pytest.param("litellm", marks=pytest.mark.slow)])
def either(request: pytest.FixtureRequest, server: Server) -> LM:
    # A server that answers has as long as a busy machine may need; only one that never does is waited for.
    fault = request.node.callspec.params.get("fault")
    if request.param == "litellm":
        request.getfixturevalue("warm_litellm")
    return LM(
        "openai/test", api_base=server.url, api_key="sk-secret", retry=NEVER, timeout=1 if fault == "hang" else 120,
        transport=request.param, store=None,
    )  # fmt: skip


def test_an_answer(server: Server, either: LM):
    server.answers = lambda request: f"about {request.prompt}"
    completion = either.complete([Prompt.of("a film", "Be brief.")], max_tokens=9)[0]
    assert completion.text == "about a film"
    assert completion.usage.tokens_in == (len("a film") + len("Be brief.")) // 4 + 1
    assert completion.usage.tokens_out == 4
    body = server.requests[0].body
    assert body["model"] == "test"
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a film"}]
    assert body["temperature"] == 0
    assert body["max_tokens"] == 9
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret"


def test_a_model_that_was_used_can_be_pickled(server: Server, either: LM):
    either.complete([Prompt.of("a")])
    copied = pickle.loads(pickle.dumps(either))
    assert [one.text for one in copied.complete([Prompt.of("b")])] == ["True"]
    assert server.requests[-1].headers["authorization"] == "Bearer sk-secret"


def test_logprobs(either: LM):
    tokens = either.complete([Prompt.of("a")], logprobs=True)[0].logprobs
    assert tokens is not None
    assert (tokens[0].token, tokens[0].logprob, tokens[0].top[0]) == ("True", -0.1, ("True", -0.1))


FIRST = {"index": 0, "message": {"role": "assistant", "content": "True"}, "finish_reason": "stop"}


def a_choice(**changes: object) -> Reply:
    """A response of one choice with something beside its answer, or instead of it."""
    return Reply(changes={"choices": [FIRST | changes]})


FAULTS = {
    "500": (error(500), errors.ServerFailed, 500),
    "503": (error(503), errors.ServerFailed, 503),
    "409": (error(409), errors.ServerFailed, 409),
    "408": (error(408), errors.RequestTimedOut, 408),
    "429": (error(429), errors.RateLimited, 429),
    "no credit": (error(429, "You exceeded your quota", code="insufficient_quota"), errors.QuotaExhausted, 429),
    "401": (error(401, "Incorrect API key provided: sk-secret"), errors.AuthenticationFailed, 401),
    "403": (error(403), errors.LMRequestFailed, 403),
    "404": (error(404, "The model `test` does not exist"), errors.ModelNotFound, 404),
    "400": (error(400), errors.LMRequestFailed, 400),
    "context": (scripted.CONTEXT_LENGTH, errors.ContextTooLong, 400),
    "drop": (scripted.DROP, errors.ConnectionFailed, None),
    "hang": (scripted.HANG, errors.RequestTimedOut, None),
    "malformed": (scripted.MALFORMED, errors.MalformedResponse, 200),
    "no completion": (scripted.NOT_A_COMPLETION, errors.MalformedResponse, 200),
    "null": (scripted.NULL, errors.MalformedResponse, 200),
    "empty": (scripted.EMPTY, errors.MalformedResponse, 200),
    "wrong types": (scripted.WRONG_TYPES, errors.MalformedResponse, 200),
    "no choices": (Reply(changes={"choices": []}), errors.MalformedResponse, 200),
    "filtered": (Reply(None, finish_reason="content_filter"), errors.ContentFiltered, 200),
    "filtered in the middle": (Reply("The film is", finish_reason="content_filter"), errors.ContentFiltered, 200),
    "only blanks": (Reply(" \n"), errors.MalformedResponse, 200),
    "broken off": (Reply("The film is", finish_reason="error"), errors.ServerFailed, 200),
    "no resources": (Reply("The", finish_reason="insufficient_system_resource"), errors.ServerFailed, 200),
    "no network": (Reply("The film is", finish_reason="network_error"), errors.ServerFailed, 200),
    "an end that nobody knows": (Reply("The film is", finish_reason="tired"), errors.ServerFailed, 200),
    "a tool that was not offered": (Reply("The film is", finish_reason="tool_calls"), errors.ServerFailed, 200),
    "safety": (Reply("The film is", finish_reason="SAFETY"), errors.ContentFiltered, 200),
    "safety with its kind": (Reply(None, finish_reason="content_filter: SPII"), errors.ContentFiltered, 200),
    "safety behind a router": (a_choice(native_finish_reason="SAFETY"), errors.ContentFiltered, 200),
    "an error beside the answer": (Reply(changes={"error": {"code": 502, "message": "no"}}), errors.ServerFailed, 200),
    "a refusal beside the answer": (
        Reply(changes={"error": {"code": 401, "message": "wrong key sk-secret"}}),
        errors.ServerFailed,
        200,
    ),
    "an error in a word": (Reply(changes={"error": "overloaded"}), errors.ServerFailed, 200),
    "a limit beside the answer": (Reply(changes={"error": {"code": 429}}), errors.RateLimited, 200),
    "an error in the choice": (a_choice(error={"code": 502, "message": "no"}), errors.ServerFailed, 200),
    "another choice": (a_choice(index=1), errors.MalformedResponse, 200),
    "two first choices": (Reply(changes={"choices": [FIRST, FIRST]}), errors.MalformedResponse, 200),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(server: Server, either: LM, fault: str):
    reply, kind, status = FAULTS[fault]
    server.answers = lambda request: reply
    failure = either.complete([Prompt.of("a")])[0].error
    assert type(failure) is kind
    assert isinstance(failure, errors.LMRequestFailed)
    assert failure.status == status
    assert "sk-secret" not in repr(failure) + "".join(traceback.format_exception(failure))
    assert server.count == 1


def test_a_prompt_that_is_blocked_is_sent_once(server: Server):
    server.answers = lambda request: Reply(changes={"choices": [], "promptFeedback": {"blockReason": "SAFETY"}})
    failure = LM("openai/test", api_base=server.url, store=None, retry=FAST).complete([Prompt.of("a")])[0].error
    assert isinstance(failure, errors.ContentFiltered)
    assert server.count == 1


def test_reasoning_among_the_parts_of_an_answer_is_no_answer(server: Server):
    parts = [{"type": "reasoning", "text": "False?"}, {"type": "thinking", "thinking": []}, {"text": "Tr"}]
    content = [*parts, {"type": "text", "text": "ue"}]
    server.answers = lambda request: a_choice(message={"role": "assistant", "content": content})
    assert LM("openai/test", api_base=server.url, store=None).complete([Prompt.of("a")])[0].text == "True"


def test_an_answer_that_is_all_reasoning_names_the_way_out(server: Server):
    message = {"role": "assistant", "content": None, "reasoning_content": "So it is true."}
    server.answers = lambda request: a_choice(message=message)
    failed = LM("openai/test", api_base=server.url, store=None, retry=NEVER).complete([Prompt.of("a")])[0]
    assert "without a reasoning parser" in str(failed.error)


def test_choices_are_told_apart_by_their_index(server: Server, either: LM):
    second = FIRST | {"index": 1, "message": {"role": "assistant", "content": "False"}}
    server.answers = lambda request: Reply(changes={"choices": [second, FIRST]})
    assert either.complete([Prompt.of("a")])[0].text == "True"


def test_the_end_at_a_tool_that_was_offered(server: Server, either: LM):
    server.answers = lambda request: Reply(finish_reason="tool_calls")
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
    assert either.with_body(tools=[tool]).complete([Prompt.of("a")])[0].text == "True"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "body", "kind"),
    [
        (
            "anthropic/claude-3-5-sonnet-20240620",
            {"content": [{"type": "text", "text": "The"}], "usage": {"input_tokens": 3, "output_tokens": 2}},
            {"end_turn": None, "pause_turn": errors.ServerFailed, "model_context_window_exceeded": errors.AnswerCut},
        ),
        (
            "ollama_chat/llama",
            {"message": {"role": "assistant", "content": "The"}, "done": True},
            {"stop": None, "load": errors.ServerFailed, "length": errors.AnswerCut},
        ),
    ],
)
def test_what_litellm_takes_for_an_end(server: Server, warm_litellm: None, model: str, body: dict, kind: dict):  # type: ignore[type-arg]
    head = {"id": "m", "type": "message", "role": "assistant", "model": "x"}
    for reason, expected in kind.items():
        told = json.dumps(head | body | {"stop_reason": reason, "done_reason": reason}).encode()
        server.answers = lambda request, told=told: Reply(raw=told)  # type: ignore[misc]
        url = server.url.removesuffix("/v1")
        lm = LM(model, api_base=url, api_key="x", transport="litellm", retry=NEVER, store=None)
        completion = lm.complete([Prompt.of("a")])[0]
        assert type(completion.error) is (expected or type(None)), (reason, completion.error)


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("", True),
        (None, True),
        ("<think>The row says", True),
        ("<think>It does.</think>", True),
        ("<think>It does.</think>Tr", False),
        ("[THINK]The row says", True),
        ("<|channel|>analysis<|message|>The row says", True),
        ("<|channel|>analysis<|message|>It does.<|end|><|start|>assistant<|channel|>final<|message|>Tr", False),
        ("The answer is", False),
    ],
)
@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "model_length"])
def test_an_answer_that_was_cut_off_is_none(
    server: Server, either: LM, text: str | None, unfinished: bool, reason: str
):
    server.answers = lambda request: Reply(text, finish_reason=reason)
    reply = background.submit(either.transport.send(Prompt.of("a"), Parameters())).result()
    assert reply.truncated
    assert reply.unfinished == unfinished
    assert (text or "").endswith(reply.text)  # litellm keeps reasoning apart


@pytest.mark.parametrize("declared", [False, True], ids=["without end", "with its length"])
def test_a_body_without_end(server: Server, monkeypatch: pytest.MonkeyPatch, declared: bool):
    monkeypatch.setattr("tagframe.lm.openai_http.MAX_RESPONSE_BYTES", 2**20)
    server.answers = lambda request: Reply(raw=b" " * (2**20 + 1)) if declared else scripted.ENDLESS
    lm = LM("openai/test", api_base=server.url, store=None)
    failure = lm.complete([Prompt.of("a")])[0].error
    assert type(failure) is errors.ResponseTooLong
    assert "longer than 1,048,576 bytes" in str(failure)
    assert server.count == 1  # and is not asked for again


def test_a_long_body(server: Server):
    server.answers = lambda request: "word " * 100_000
    assert len(LM("openai/test", api_base=server.url, store=None).complete([Prompt.of("a")])[0].text or "") == 500_000


def test_wrong_types_beside_a_usable_answer(server: Server, either: LM):
    server.answers = lambda request: Reply("True", changes={"usage": None, "id": 7, "created": "now"})
    completion = either.complete([Prompt.of("a")])[0]
    assert completion.text == "True"
    assert completion.usage.tokens_in > 0  # estimated
    assert server.count == 1


@pytest.mark.parametrize("headers", [{"Retry-After": "3"}, {"retry-after-ms": "3000"}])
def test_retry_after_is_read(server: Server, either: LM, headers: dict[str, str]):
    server.answers = lambda request: error(429, headers=headers)
    failure = either.complete([Prompt.of("a")])[0].error
    assert isinstance(failure, errors.RateLimited)
    assert failure.retry_after == 3


TWO_THREADS = """
import threading, warnings
from tagframe.lm.model import connect

before = list(warnings.filters)
threads = [threading.Thread(target=connect, args=("anthropic/x", None, "key")) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert warnings.filters == before, warnings.filters
"""


@pytest.mark.slow
def test_litellm_is_imported_without_a_trace_on_the_process_warnings():
    done = subprocess.run([sys.executable, "-c", TWO_THREADS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- which transport ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "api_base", "kind", "endpoint", "name"),
    [
        ("openai/gpt-4o-mini", None, OpenAIHTTP, "https://api.openai.com/v1", "gpt-4o-mini"),
        ("gpt-4o-mini", None, OpenAIHTTP, "https://api.openai.com/v1", "gpt-4o-mini"),
        ("openai/mine", "http://gpu:8000/v1/", OpenAIHTTP, "http://gpu:8000/v1", "mine"),
        ("hosted_vllm/org/mine", "http://gpu:8000/v1", OpenAIHTTP, "http://gpu:8000/v1", "org/mine"),
        ("ollama/llama3", None, OpenAIHTTP, "http://localhost:11434/v1", "llama3"),
        ("org/mine", "http://gpu:8000/v1", OpenAIHTTP, "http://gpu:8000/v1", "org/mine"),
        pytest.param(
            "anthropic/claude-sonnet-4-5",
            None,
            LiteLLM,
            "litellm:anthropic",
            "anthropic/claude-sonnet-4-5",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "mistral/mistral-small-latest",
            None,
            LiteLLM,
            "litellm:mistral",
            "mistral/mistral-small-latest",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_transport_of_a_name(
    monkeypatch: pytest.MonkeyPatch, model: str, api_base: str | None, kind: type, endpoint: str, name: str
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    transport = connect(model, api_base)
    assert type(transport) is kind
    assert transport.endpoint == endpoint
    assert transport.model == name  # type: ignore[attr-defined]


def test_the_key_and_url_of_the_environment(monkeypatch: pytest.MonkeyPatch, server: Server):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert LM("openai/test").complete([Prompt.of("a")])[0].ok
    assert server.requests[0].headers["authorization"] == "Bearer sk-environment"


def test_no_key():
    with pytest.raises(NotConfigured, match="OPENAI_API_KEY"):
        LM("openai/gpt-4o-mini").complete([Prompt.of("a")])


@pytest.mark.parametrize(
    ("model", "endpoint"),
    [
        ("ollama/llama3.2", "http://localhost:11434/v1"),
        ("llama.cpp/any", "http://localhost:8080/v1"),
        ("vllm/meta-llama/Llama-3.2-3B", "http://localhost:8000/v1"),
        ("hosted_vllm/mine", "http://localhost:8000/v1"),
        ("lm_studio/qwen", "http://localhost:1234/v1"),
    ],
)
def test_a_server_on_this_machine_needs_only_its_name(model: str, endpoint: str):
    transport = connect(model)
    assert isinstance(transport, OpenAIHTTP)
    assert (transport.endpoint, transport.model) == (endpoint, model.partition("/")[2])


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "", "http://", "http://[::1", "http://h:x/v1"])
def test_a_url_that_is_none(url: str):
    with pytest.raises(InvalidArgument, match="api_base must be a URL"):
        connect("openai/test", api_base=url or "nothing")


@pytest.mark.parametrize("end", ["/chat/completions", "/chat/completions/", "/"])
def test_a_url_of_the_completions_is_one_of_the_server(server: Server, end: str):
    lm = LM("openai/test", api_base=server.url + end, store=None)
    assert lm.complete([Prompt.of("a")])[0].ok
    assert lm.transport.endpoint == server.url


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_certificate_that_is_not_trusted_ends_the_run(tmp_path: Path):
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -out"
    subprocess.run([*command.split(), files[0], "-keyout", files[1]], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*files)
    with RawServer(lambda number: response(), tls) as server:
        url = server.url.replace("http:", "https:")
        lm = LM("openai/test", api_base=url, store=None, concurrency=1)
        failed = [one.error for one in lm.complete([Prompt.of(f"row {number}") for number in range(5)])]
    assert "CERTIFICATE_VERIFY_FAILED" in str(failed[0])
    assert all(isinstance(one, errors.RunStopped) for one in failed[1:])


def test_a_password_in_the_url_is_sent_and_not_kept(server: Server):
    url = server.url.replace("http://", "http://me:pass-word@")
    lm = LM("openai/test", api_base=url, retry=NEVER)
    server.answers = [error(400, "bad credentials me:pass-word"), "True"]
    failure = lm.complete([Prompt.of("a")])[0].error
    assert "pass-word" not in f"{failure}{lm!r}{lm.transport.endpoint}"
    assert server.requests[0].headers["authorization"].startswith("Basic ")


def test_a_key_with_a_line_feed(server: Server):
    assert LM("openai/test", api_base=server.url, api_key="sk-file\n").complete([Prompt.of("a")])[0].ok
    assert server.requests[0].headers["authorization"] == "Bearer sk-file"


def test_openai_reasoning_models_take_no_temperature():
    transport = connect("openai/gpt-5-mini", api_key="x")
    assert isinstance(transport, OpenAIHTTP)
    body = transport.body(Prompt.of("a"), Parameters(max_tokens=50))
    assert "temperature" not in body
    assert body["max_completion_tokens"] == 50
