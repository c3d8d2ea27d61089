"""What ``tagframe lm check`` finds, and its exit status."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import count
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe.cli import main
from tagframe.errors import InvalidArgument


def able(request: Request) -> Reply:
    """A model that follows every form, by a server that knows ``response_format``."""
    said = json.dumps(request.messages)
    if "response_format" in request.body and "subject" not in said:
        schema = request.body["response_format"]["json_schema"]["schema"]
        return Reply(
            {"array": "[1]", "string": '"good"'}.get(str(schema["type"]), '"good"' if "enum" in schema else "true")
        )
    if "is positive" in said:
        return Reply("True")
    if "tone" in said:
        return Reply("good")
    if "subject" in said:
        return Reply('{"subject": "a film"}')
    return Reply("1")


def weak(request: Request) -> Reply:
    """A model that says the same to everything, by a server that knows nothing but chats."""
    if "response_format" in request.body or "logprobs" in request.body:
        return error(400, "unknown field")
    return Reply("Well, well.")


def verdicts(found: object) -> dict[str, str]:
    return {finding.what: finding.verdict for finding in found.findings}  # type: ignore[attr-defined]


def seconds_of(monkeypatch: pytest.MonkeyPatch, now: Callable[[], float]) -> None:
    """The clock by which a server is judged."""
    monkeypatch.setattr(import_module("tagframe.evaluation.check_lm"), "time", SimpleNamespace(monotonic=now))


def test_a_model_that_can_do_all(server: Server, monkeypatch: pytest.MonkeyPatch):
    server.answers = able
    seconds_of(monkeypatch, partial(next, count(0.0, 0.1)))  # four together take as long as one
    found = tf.check_lm("vllm/test", api_base=server.url)
    assert found.ok
    assert verdicts(found) == {
        "reachable": "ok", "context": "ok", "structured output": "ok", "logprobs": "ok", "latency": "ok",
        "at once": "ok", "sem_filter": "ok", "sem_map": "ok", "sem_extract": "ok", "sem_topk": "ok", "price": "note",
    }  # fmt: skip
    assert server.count == found.requests <= 13
    assert f"tf.configure(lm='vllm/test', api_base='{server.url}', context_window=32768" in repr(found)
    assert "sem_filter" in found._repr_html_()


def test_a_weak_model_on_a_simple_server(server: Server):
    server.answers = weak
    found = tf.check_lm("vllm/test", api_base=server.url)
    assert not found.ok
    seen = verdicts(found)
    assert (seen["structured output"], seen["logprobs"]) == ("note", "note")
    assert {seen[name] for name in ("sem_filter", "sem_map", "sem_extract", "sem_topk")} == {"bad"}
    assert server.count == found.requests


def test_a_server_with_one_slot(server: Server, monkeypatch: pytest.MonkeyPatch):
    seconds_of(monkeypatch, lambda: 0.15 * server.count)
    with tf.context(lm="vllm/test", api_base=server.url):
        found = tf.check_lm()
    assert verdicts(found)["at once"] == "note"
    assert "concurrency=2)" in found.settings


@pytest.mark.parametrize(
    ("answer", "what"),
    [(error(401, "no such key"), "key"), (error(404, "no such model"), "model"), (error(500), "reachable")],
)
def test_what_does_not_answer_is_said(server: Server, answer: Reply, what: str):
    server.answers = lambda request: answer
    result = CliRunner().invoke(main, ["lm", "check", "vllm/test", "--api-base", server.url])
    assert result.exit_code == 1
    assert re.search(rf"bad +{what}", result.output)
    assert server.count == 1


def test_the_command(server: Server):
    server.answers = able
    done = CliRunner().invoke(main, ["lm", "check", "vllm/test", "--api-base", server.url, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.output)["ok"]


def test_no_server_and_no_key(monkeypatch: pytest.MonkeyPatch):
    with Server() as gone:
        url = gone.url
    found = tf.check_lm("vllm/test", api_base=url)
    assert verdicts(found) == {"reachable": "bad"}
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert verdicts(tf.check_lm("openai/gpt-4o-mini")) == {"key": "bad"}
    with pytest.raises(InvalidArgument, match="sends nothing"):
        tf.check_lm("replay:answers.db")
