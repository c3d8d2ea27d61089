"""``tier="batch"`` and ``tier="flex"``: submitted, waited for, resumed, and paid at their own price."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Server, error, send
from tagframe import LM, Price, Prompt
from tagframe.errors import InvalidArgument, LMRequestFailed
from tagframe.lm import batch_http, pacing
from tagframe.lm.batch_http import BatchHTTP
from tests.lm.batch_server import BatchServer, Reply
from tests.lm.conftest import FAST

PRICE = Price(1e-6, 2e-6)


def prompts(count: int) -> list[Prompt]:
    return [Prompt.of(f"Is {number} even?") for number in range(count)]


def model(server: Server, query: str = "", **options: object) -> LM:
    url = f"{server.url}{query}"
    return LM("openai/test", api_base=url, api_key="none", retry=FAST, tier="batch", price=PRICE, **options)  # type: ignore[arg-type]


def test_a_call_is_one_batch_at_half_the_price(tmp_path: Path):
    rows = pd.DataFrame({"city": [f"city {number}" for number in range(200)]})
    with BatchServer(lambda request: str("7" in request.prompt)) as server:
        lm = model(server, store=tmp_path / "s.db", concurrency=4)
        found = rows.tag.sem_filter("{city} is large", lm=lm)
        assert found.index.tolist() == [number for number in range(200) if "7" in str(number)]
        assert len(server.batches) == 1
        assert server.count == 200
        tokens = found.tag.summary
        assert tokens["dollars"] == pytest.approx((tokens["tokens_in"] * 1e-6 + tokens["tokens_out"] * 2e-6) / 2)
        quote = rows.tag.sem_filter("{city} is big", lm=lm, quote=True)
        whole = rows.tag.sem_filter(
            "{city} is big", lm=model(server).__class__("openai/test", api_base=server.url, price=PRICE), quote=True
        )
        assert quote.dollars == pytest.approx(whole.dollars / 2)
        assert rows.tag.sem_filter("{city} is large", lm=lm).tag.summary["calls"] == 0


def spoilt(line: dict, number: int) -> dict | None:
    kinds = [
        lambda: None,
        lambda: line | {"response": None, "error": {"code": "batch_expired", "message": "expired"}},
        lambda: line | {"response": {"status_code": 500, "body": {"error": {"message": "oh"}}}},
        lambda: line | {"response": {"status_code": 200, "body": {"choices": []}}},
    ]
    return kinds[number]() if number < len(kinds) else line


def test_what_a_batch_leaves_out_is_in_the_next(tmp_path: Path):
    with BatchServer(lambda request: f"odd \u2028 {request.prompt}") as server:
        server.spoil = lambda line, number: spoilt(line, number) if len(server.batches) == 1 else line
        completions = model(server, store=tmp_path / "s.db").complete(prompts(6))
        assert [one.value for one in completions] == [f"odd \u2028 Is {number} even?" for number in range(6)]
        assert len(server.batches) > 1
        assert server.count == 10


class OddServer(BatchServer):
    """Its lists of batches and its files of answers are as ``odd`` makes them."""

    def __init__(self, odd: Callable[[str, bytes, int], tuple[int, bytes] | None]) -> None:
        super().__init__(lambda request: request.prompt)
        self.odd, self.downloads = odd, 0

    def handle(self, transport: asyncio.Transport, path: str, headers: dict[str, str], raw: bytes) -> None:
        self.downloads += path.endswith("/content")
        is_odd = path.endswith("/content") or (path.endswith("/batches") and not raw)
        content = self.files[path.split("/")[-2]] if path.endswith("/content") else b""
        if is_odd and (answer := self.odd(path, content, self.downloads)) is not None:
            send(transport, *answer, {})
        else:
            super().handle(transport, path, headers, raw)


@pytest.mark.parametrize(
    "listed",
    [
        b'{"data": [null]}',
        b'{"data": [{"id": "a", "metadata": "text"}]}',
        b'{"data": [{"input_file_id": "digest"}]}',
        b'{"data": {"a": 1}}',
        b"[]",
        b"7",
    ],
)
def test_an_odd_list_of_batches(tmp_path: Path, listed: bytes):
    with OddServer(lambda path, _, __: (200, listed) if path.endswith("/batches") else None) as server:
        lm = model(server, store=tmp_path / "s.db")
        store = tf.lm.open_store(tmp_path / "s.db")
        store.note_batch(store.source(*lm.stored_as, lm.model), "digest", None, ["x"])
        assert all(one.ok for one in lm.complete(prompts(3)))


def test_what_fails_before_a_batch_is_submitted_is_an_error(monkeypatch: pytest.MonkeyPatch):
    async def fail(self: BatchHTTP) -> None:
        raise OSError("no")

    monkeypatch.setattr(BatchHTTP, "_find_earlier", fail)
    with BatchServer() as server:
        (one,) = model(server, store=None).complete(prompts(1))
    assert "no" in str(one.error)


def unanswered(content: bytes) -> bytes:
    """A file whose first request was not answered."""
    return re.sub(rb'"response": .*, "error"', b'"response": {"status_code": 0, "body": {}}, "error"', content, count=1)


ODD_FILES: dict[str, tuple[Callable[[bytes, int], tuple[int, bytes]], int]] = {
    "no line": (lambda content, _: (200, content + b"\nnull\n[1]\n7\n\n{"), 6),
    "cut short": (lambda content, downloads: (200, content[:-30] if downloads == 1 else content), 7),
    "not there at first": (lambda content, downloads: (503 if downloads == 1 else 200, content), 6),
    "statuses in texts": (lambda content, _: (200, content.replace(b'_code": 200', b'_code": "200"')), 6),
    "status 0 and nothing else": (
        lambda content, downloads: (200, content if downloads > 1 else unanswered(content)),
        7,
    ),
    "a response that is a list": (
        lambda content, downloads: (
            (200, content + b'\n{"custom_id": ' + content.split(b'"')[3].join([b'"', b'"']) + b', "response": [1]}')
            if downloads == 1
            else (200, content)
        ),
        7,
    ),
}


@pytest.mark.parametrize("kind", ODD_FILES)
def test_an_odd_line_of_a_batch_is_its_rows_alone(monkeypatch: pytest.MonkeyPatch, kind: str):
    monkeypatch.setattr(batch_http, "FIRST_WAIT", 0.02)
    make, sent = ODD_FILES[kind]
    with OddServer(lambda path, content, downloads: make(content, downloads) if content else None) as server:
        completions = model(server, store=None).complete(prompts(6))
        assert [one.text for one in completions] == [f"Is {number} even?" for number in range(6)]
        assert server.count == sent


def test_a_provider_that_writes_batches_otherwise():
    """As Together does: a job in the answer, statuses in capitals, and a list that is no object."""

    class Otherwise(BatchServer):
        def _create(self, job: dict[str, Any]) -> dict[str, Any]:
            return {"job": super()._create(job)}

        def _look(self, batch: dict[str, Any]) -> dict[str, Any]:
            looked = super()._look(batch)
            return looked | {"status": looked["status"].upper()}

    with Otherwise() as server:
        assert all(one.ok for one in model(server, store=None).complete(prompts(4)))
        assert (len(server.batches), server.count) == (1, 4)


def lose_reply(server: BatchServer, transport: asyncio.Transport, raw: bytes) -> None:
    server._create(json.loads(raw))
    transport.abort()


def break_gateway(server: BatchServer, transport: asyncio.Transport, raw: bytes) -> None:
    server._create(json.loads(raw))
    send(transport, 504, b"<html>gateway</html>", {})


def answered(status: int, body: bytes) -> Callable[[BatchServer, asyncio.Transport, bytes], None]:
    return lambda server, transport, raw: send(transport, status, body, {})


WHAT_PASSES = {
    "the reply to a submission is lost": ("/batches", lose_reply),
    "a gateway gives up on a submission": ("/batches", break_gateway),
    "a submission has no id, and the list is one": (
        "/batches",
        lambda s, t, raw: (s._create(json.loads(raw)), setattr(s, "lists", list), send(t, 200, b"[]", {})),
    ),
    "a submission has no id": ("/batches", lambda s, t, raw: (s._create(json.loads(raw)), send(t, 200, b"[]", {}))),
    "a poll is not found": ("/batches/", answered(404, b"{}")),
    "a poll is refused": ("/batches/", answered(401, b"{}")),
    "a poll is a page": ("/batches/", answered(200, b"<html>login</html>")),
    "a poll is no batch": ("/batches/", answered(200, b"[7]")),
    "the file comes later": ("/batches/", answered(200, b'{"status": "completed", "output_file_id": null}')),
    "the file is not found": ("/content", answered(404, b"{}")),
}


class PassingServer(BatchServer):
    """The first request to a path with ``part`` in it is answered otherwise, or each one."""

    def __init__(self, part: str, act: Callable[[BatchServer, asyncio.Transport, bytes], object]) -> None:
        super().__init__(lambda request: request.prompt)
        self.part, self.act, self.times = part, act, 1

    def handle(self, transport: asyncio.Transport, path: str, headers: dict[str, str], raw: bytes) -> None:
        is_it = path.endswith(self.part) and raw if self.part == "/batches" else self.part in path
        if is_it and self.times:
            self.times -= 1
            self.act(self, transport, raw)
        else:
            super().handle(transport, path, headers, raw)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_http, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(batch_http, "LONGEST_WAIT", 0.02)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("kind", WHAT_PASSES)
def test_what_passes_submits_no_batch_again(kind: str):
    with PassingServer(*WHAT_PASSES[kind]) as server:
        completions = model(server, store=None).complete(prompts(4))
        assert [one.text for one in completions] == [f"Is {number} even?" for number in range(4)]
        assert len(server.batches) == 1
        assert server.count == 4


@pytest.mark.usefixtures("short_waits")
def test_a_batch_that_is_gone_is_submitted_again():
    with PassingServer("/batches/batch-0", answered(404, b"{}")) as server:
        server.times = 10**9
        assert all(one.ok for one in model(server, store=None).complete(prompts(4)))
        assert len(server.batches) == 2


@pytest.mark.usefixtures("short_waits")
def test_a_batch_that_cannot_be_read_is_there_for_the_next_call():
    with PassingServer("/content", answered(503, b"{}")) as server:
        server.times = 10**9
        lm = model(server, store=None)
        assert not any(one.ok for one in lm.complete(prompts(4)))
        server.times = 0
        assert all(one.ok for one in lm.complete(prompts(4)))
        assert server.count == 4


@pytest.mark.usefixtures("short_waits")
def test_answers_of_a_call_that_was_left_are_there_for_the_next():
    with BatchServer(ready=10**9) as server:
        lm = model(server, store=None)

        async def leave() -> None:
            task = asyncio.create_task(lm.acomplete(prompts(3)))
            while not server.looks:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(leave())
        server.ready = 1
        while server.count < 3:
            time.sleep(0.01)
        assert all(one.ok for one in lm.complete(prompts(3)))
        assert len(server.batches) == 1


def test_a_process_that_ends_while_a_batch_is_waited_for_says_nothing(tmp_path: Path):
    with BatchServer(ready=10**9) as server:
        touched, look = tmp_path / "touched", server._look
        server._look = lambda batch: (touched.touch(), look(batch))[1]  # type: ignore[method-assign, func-returns-value]
        code = (
            "import asyncio, os, tagframe\n"
            f"lm = tagframe.LM('openai/test', api_base={server.url!r}, api_key='none', tier='batch', store=None)\n"
            "async def leave():\n"
            "    asking = asyncio.create_task(lm.acomplete([tagframe.Prompt.of('a')]))\n"
            f"    while not os.path.exists({str(touched)!r}):\n"
            "        await asyncio.sleep(0.01)\n"
            "    asking.cancel()\n"
            "    await asyncio.wait([asking])\n"
            "asyncio.run(leave())\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert len(server.batches) == 1
    assert done.stderr == ""


def test_a_refused_line_is_one_row():
    with BatchServer(lambda request: error(400, "no") if "3" in request.prompt else "yes") as server:
        completions = model(server, store=None).complete(prompts(5))
    assert [one.ok for one in completions] == [True, True, True, False, True]


@pytest.mark.parametrize(
    ("errors", "status"),
    [([{"code": "invalid_json_line", "message": "line 1 is odd"}], 400), ([{"code": "token_limit_exceeded"}], 429)],
)
def test_a_batch_that_fails_as_a_whole(errors: list[dict], status: int):
    with BatchServer() as server:
        server.failing = errors
        (one, _) = model(server, store=None).complete(prompts(2))
    assert isinstance(one.error, LMRequestFailed)
    assert one.error.status == status


@pytest.mark.parametrize("is_named", [True, False])
def test_a_killed_process_finds_its_batch_again(tmp_path: Path, is_named: bool):
    store = tmp_path / "s.db"
    with BatchServer(ready=10**9) as server:

        async def leave() -> None:
            asking = asyncio.create_task(model(server, store=store).acomplete(prompts(3)))
            while not server.looks:
                await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.wait([asking])

        asyncio.run(leave())
        assert len(server.batches) == 1
        if not is_named:  # killed between the submission and its note
            tf.lm.open_store(store)._connection.execute("UPDATE batches SET batch = NULL")
        server.ready = 1
        pacing.forget()
        completions = model(server, store=store).complete(prompts(4))
        assert all(one.ok for one in completions)
        assert len(server.batches) == 2
        assert server.count == 4


PAGE = 2


class ListingServer(BatchServer):
    """The list of batches has pages, newest first; a query ``after`` counts if ``turns`` is true."""

    turns = True
    pages = 0

    def handle(self, transport: asyncio.Transport, path: str, headers: dict[str, str], raw: bytes) -> None:
        where, _, query = path.partition("?")
        if not where.endswith("/batches") or raw:
            super().handle(transport, where, headers, raw)
            return
        self.pages += 1
        listed = list(self.batches.values())[::-1]
        ids = [one["id"] for one in listed]
        after = [pair[6:] for pair in query.split("&") if pair.startswith("after=")]
        start = ids.index(after[0]) + 1 if after and self.turns else 0
        page = {"data": listed[start : start + PAGE], "has_more": start + PAGE < len(listed)}
        send(transport, 200, json.dumps(page).encode(), {})


class Unlisted(PassingServer):
    """Lists no batches."""

    def handle(self, transport: asyncio.Transport, path: str, headers: dict[str, str], raw: bytes) -> None:
        if path.endswith("/batches") and not raw:
            send(transport, 404, b"{}", {})
        else:
            super().handle(transport, path, headers, raw)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("act", [lose_reply, break_gateway, answered(503, b"{}")])
@pytest.mark.parametrize("stores", [True, False])
def test_a_reply_that_is_lost_where_no_list_is_submits_nothing_again(
    tmp_path: Path, act: Callable[[BatchServer, asyncio.Transport, bytes], object], stores: bool
):
    with Unlisted("/batches", act) as server:
        completions = model(server, store=tmp_path / "s.db" if stores else None).complete(prompts(4))
        lost = act in (lose_reply, break_gateway)
        assert (len(server.batches), server.count) == ((1, 0) if lost else (2, 4))  # half as many after a 503
        assert [one.ok for one in completions] == [not lost] * 4
        assert all("may be paid for" in str(one.error) for one in completions if lost)
        if lost:  # the user, who was told to look for it, asks again
            assert all(one.ok for one in model(server, store=tmp_path / "s.db").complete(prompts(4)))
            assert len(server.batches) == 2


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("query", ["", "?api-version=2"])
@pytest.mark.parametrize("turns", [True, False])
def test_a_batch_without_a_name_on_a_later_page(tmp_path: Path, query: str, turns: bool):
    """Of three killed processes; where the list has one page only, what is not on it is submitted again."""
    with ListingServer(lambda request: request.prompt) as server:
        server.turns = turns
        lm = model(server, query, store=tmp_path / "s.db")
        store = lm.open_store()
        for number in range(5):
            assert lm.complete(prompts(5)[number : number + 1])[0].ok
        store.purge()
        store._connection.execute("UPDATE batches SET batch = NULL")
        again = model(server, query, store=tmp_path / "s.db").complete(prompts(5))
        assert [one.text for one in again] == [f"Is {number} even?" for number in range(5)]
        assert (len(server.batches), server.pages) == ((5, 3) if turns else (6, 2))


@pytest.mark.usefixtures("short_waits")
def test_a_list_that_cannot_be_read_is_waited_for_once(tmp_path: Path):
    looks = []
    act = lambda server, transport, raw: (looks.append(1), send(transport, 500, b"{}", {}))  # noqa: E731
    with PassingServer("/v1/batches", act) as server:
        lm = model(server, store=tmp_path / "s.db")
        store = lm.open_store()
        for number in range(3):
            store.note_batch(store.source(*lm.stored_as, lm.model), f"file-x{number}", None, ["x"])
        server.times = batch_http.TRIES
        assert all(one.ok for one in lm.complete(prompts(2)))
        assert len(looks) == batch_http.TRIES
        assert len(server.batches) == 1


def test_a_budget_holds():
    with BatchServer() as server:
        budget = tf.Budget(calls=3)
        completions = model(server, store=None, budget=budget).complete(prompts(5))
        assert sum(one.ok for one in completions) == 3 == server.count
        assert budget.spent.calls == 3


def test_the_tier_of_a_model_that_has_none():
    with pytest.raises(InvalidArgument, match="api_base"):
        LM("anthropic/claude-sonnet-4-5", api_key="none", tier="batch").complete(prompts(1))
    with pytest.raises(InvalidArgument, match="tier must be"):
        LM("openai/test", tier="cheap")  # type: ignore[arg-type]


@pytest.mark.parametrize(("served", "share"), [("flex", 0.5), (None, 0.5), ("default", 1.0)])
def test_flex(served: str | None, share: float):
    changes = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}, "service_tier": served}
    with Server(lambda request: Reply("yes", changes=changes)) as server:
        lm = LM("openai/test", api_base=server.url, tier="flex", price=PRICE, store=None)
        usage = lm.complete(prompts(1)).usage
        assert server.requests[0].body["service_tier"] == "flex"
        assert lm.timeout == 900
    assert usage.dollars == pytest.approx(share * (100e-6 + 20e-6))
