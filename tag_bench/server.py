"""A local server with OpenAI's API for chat completions and embeddings, for tests (answers, faults) and benchmarks.

It is plain asyncio, so that it costs little compared with the measured code, and so that it can simulate faults: hang,
drop the connection, send broken JSON. In a thread of the test's process::

    with Server(lambda request: "True") as server:
        LM("openai/test", api_base=server.url, api_key="none").complete(…)
        server.requests          # all requests, in order

In a separate process, for benchmarks: ``with ServerProcess(latency=0.05) as server: … server.stats()``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pkgutil
import re
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Request:
    """A request to the server.

    Attributes:
        body: as sent, decoded.
        headers: with lower-case names.
        number: 0 for the first request.
        attempt: 1 if these messages are sent for the first time.
        in_flight: requests in progress when it arrived, including itself.
    """

    body: dict[str, Any]
    headers: dict[str, str]
    number: int
    attempt: int
    in_flight: int

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the prompt."""
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        texts: list[str] = self.body["input"]
        return texts

    @property
    def prompt(self) -> str:
        """The last message's text."""
        return str(self.messages[-1]["content"])


@dataclass(frozen=True)
class Reply:
    """The response to a request, if it is not just a text.

    Attributes:
        text: the answer.
        status: an HTTP status; other than 200 makes it an error response with ``text`` as its message.
        headers: further headers.
        latency: seconds before the response, added to the server's own.
        after: an event that the response waits for.
        raw: a body to send unchanged.
        changes: replacements for parts of the body: ``{"usage": None}`` or a whole ``choices``.
        drop: close the connection and send nothing, or ``"half"`` for the first half of the response.
        hang: never answer.
        endless: a response whose body never ends.
        code: OpenAI's ``error.code``.
    """

    text: str | None = "True"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    after: threading.Event | None = None
    raw: bytes | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    drop: bool | str = False
    hang: bool = False
    endless: bool = False
    code: str | None = None
    finish_reason: str = "stop"


def rows_of(message: str) -> list[dict[str, Any]]:
    """The rows in an operator's prompt: a single one, or those of a pack."""
    shared = {key: json.loads(text) for key, text in _SHARED.findall(message)}
    fields = shared.get("Fields of each row: ", [])
    rows = (json.loads(text) for text in _ROW_LINE.findall(message))
    return [
        shared.get("Every row has ", {}) | (row if isinstance(row, dict) else dict(zip(fields, row, strict=True)))
        for row in rows
    ]


_SHARED = re.compile(r"^(Every row has |Fields of each row: )([\[{].*?[\]}])(?: and:)?$", re.MULTILINE)
_ROW_LINE = re.compile(r"^(?:\d+ )?([\[{].*[\]}])$", re.MULTILINE)

Answers: TypeAlias = str | Callable[[Request], str | Reply] | list[str | Reply] | Mapping[str, str | Reply]
"""One answer for all requests, a function of the request, a queue, or answers by prompt."""

_LOOK = 0.005
"""Seconds between two looks at an event."""
MODEL = {"id": "test", "object": "model", "max_model_len": 32_768}
"""What the list of models says."""
HANG = Reply(hang=True)
ENDLESS = Reply(endless=True)
DROP = Reply(drop=True)
HALF = Reply(drop="half")
MALFORMED = Reply(raw=b'{"choices": [{"message": {"content": "Tr')
NOT_A_COMPLETION = Reply(raw=b'{"hello": "world"}')
NULL = Reply(text=None)
EMPTY = Reply(text="")
WRONG_TYPES = Reply(changes={"choices": [{"message": {"content": {"a": 1}}}], "usage": "many"})
CONTEXT_LENGTH = Reply(
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    status=400,
    code="context_length_exceeded",
)


def error(status: int, message: str = "scripted fault", **kwargs: Any) -> Reply:
    """An error response."""
    return Reply(message, status=status, **kwargs)


class _Connection(asyncio.Protocol):
    """One client's connection: requests with a Content-Length, one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._transport is not None
        self._server.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1").split("\r\n")
            headers = {}
            for line in head[1:]:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            length = int(headers.get("content-length", 0))
            if len(self._buffer) < end + 4 + length:
                return
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            assert self._transport is not None
            self._server.handle(self._transport, head[0].split(" ")[1], headers, body)


class Server:
    """The server, in a thread of this process; a context manager.

    Args:
        answers: see :data:`Answers`; an empty queue answers "True".
        latency: seconds before each response.
        history: whether requests are kept in :attr:`requests`; they are always counted.
        port: 0 for a free one.
    """

    def __init__(self, answers: Answers = "True", *, latency: float = 0.0, history: bool = True, port: int = 0) -> None:
        self.answers = answers
        self.latency = latency
        self.connections: set[asyncio.Transport] = set()
        self.requests: list[Request] = []
        self.count = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.rounds = 0
        self.tokens = 0
        self._history = history
        self._attempts: Counter[str] = Counter()
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-server", daemon=True)
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The ``api_base``."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Server:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.listen(), self._loop).result(60)
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def reset(self) -> None:
        """Forget the requests so far."""
        self.requests = []
        self.count = self.max_in_flight = self.rounds = self.tokens = 0
        self._attempts.clear()

    async def listen(self) -> None:
        """Open the port, on the running loop."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self._port, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        """Refuse connections and drop those that are open, as a server does that is stopped."""
        self._loop.call_soon_threadsafe(self._stop)

    def listen_again(self) -> None:
        """Open the same port again."""
        asyncio.run_coroutine_threadsafe(self.listen(), self._loop).result(60)

    def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self.connections):
            connection.abort()

    async def _close(self) -> None:
        self._stop()
        await asyncio.sleep(0)

    def handle(self, transport: asyncio.Transport, path: str, headers: dict[str, str], raw: bytes) -> None:
        """Answer one request."""
        if path.endswith("/stats"):
            send(transport, 200, json.dumps(self.stats()).encode(), {})
            return
        if path.endswith("/models"):
            send(transport, 200, json.dumps({"object": "list", "data": [MODEL]}).encode(), {})
            return
        if path.endswith("/reset"):
            self.reset()
            send(transport, 200, b"{}", {})
            return
        body = json.loads(raw)
        self.rounds += not self.in_flight
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        content = json.dumps(body["messages"] if "messages" in body else body["input"])
        if self._history:
            self._attempts[content] += 1
        request = Request(body, headers, self.count, self._attempts[content], self.in_flight)
        self.count += 1
        if self._history:
            self.requests.append(request)
        reply = self.reply_to(request)
        latency = self.latency + reply.latency
        if reply.hang:
            return
        if latency:
            asyncio.get_running_loop().call_later(latency, self._respond, transport, request, reply)
        else:
            self._respond(transport, request, reply)

    def reply_to(self, request: Request) -> Reply:
        """The scripted reply to a request."""
        answers = self.answers
        if callable(answers):
            answer = answers(request)
        elif isinstance(answers, str):
            answer = answers
        elif isinstance(answers, list):
            answer = answers.pop(0) if answers else "True"
        else:
            answer = answers.get(request.prompt, error(400, f"no scripted answer for {request.prompt!r}"))
        return Reply(answer) if isinstance(answer, str) else answer

    def _respond(self, transport: asyncio.Transport, request: Request, reply: Reply) -> None:
        if reply.after is not None and not reply.after.is_set():
            asyncio.get_running_loop().call_later(_LOOK, self._respond, transport, request, reply)
            return
        self.in_flight -= 1
        if transport.is_closing():
            return
        if reply.drop is True:
            transport.abort()
            return
        if reply.endless:
            transport.write(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n\r\n")
            _write_on(transport)
            return
        if reply.raw is not None:
            body = reply.raw
        elif reply.status != 200:
            body = json.dumps({"error": {"message": reply.text, "type": "scripted", "code": reply.code}}).encode()
        else:
            completion = _embeddings(request, reply) if "input" in request.body else completion_of(request, reply)
            usage = completion["usage"]  # which a script may have replaced, by parts of it or by none
            counts = usage if isinstance(usage, dict) else {}
            numbers = (counts.get("prompt_tokens"), counts.get("completion_tokens"))
            self.tokens += sum(number for number in numbers if isinstance(number, int))
            body = json.dumps(completion).encode()
        send(transport, reply.status, body, reply.headers, half=reply.drop == "half")

    def stats(self) -> dict[str, Any]:
        """Counts for benchmarks; a round begins when a request arrives while no other is in progress."""
        return {
            "requests": self.count,
            "max_in_flight": self.max_in_flight,
            "rounds": self.rounds,
            "tokens": self.tokens,
            "cpu_seconds": time.process_time(),
        }


def completion_of(request: Request, reply: Reply) -> dict[str, Any]:
    """A reply as the body of a chat completion."""
    words = (reply.text or "").split()
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text},
        "finish_reason": reply.finish_reason,
    }
    if request.body.get("logprobs"):
        tops = [{"token": "True", "logprob": -0.1}, {"token": "False", "logprob": -2.3}]
        content = [{"token": word, "logprob": -0.1, "bytes": None, "top_logprobs": tops} for word in words]
        choice["logprobs"] = {"content": content}
    size = sum(len(str(message["content"])) for message in request.messages)
    usage = {"prompt_tokens": size // 4 + 1, "completion_tokens": len(words) + 1}
    return {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.body.get("model", ""),
        "choices": [choice],
        "usage": usage | {"total_tokens": sum(usage.values())},
    } | dict(reply.changes)


def _embeddings(request: Request, reply: Reply) -> dict[str, Any]:
    """A vector per text, made from its words: texts with common words are near each other."""
    vectors = [[0.0] * 64 for _ in request.texts]
    for vector, text in zip(vectors, request.texts, strict=True):
        for word in re.findall(r"\w+", text.lower()) or [text]:
            vector[zlib.crc32(word.encode()) % 64] += 1.0
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    tokens = sum(len(text) // 4 + 1 for text in request.texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data[::-1], "model": request.body["model"], "usage": usage} | dict(reply.changes)


def send(
    transport: asyncio.Transport, status: int, body: bytes, headers: Mapping[str, str], half: bool = False
) -> None:
    """Write a response of HTTP, or half of it."""
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    if half:
        transport.write(head.encode() + body[: len(body) // 2])
        transport.close()
        return
    transport.write(head.encode() + body)


def _write_on(transport: asyncio.Transport) -> None:
    """Write spaces until the client disconnects."""
    if transport.is_closing():
        return
    if transport.get_write_buffer_size() < 2**16:
        transport.write(b" " * 2**16)
    asyncio.get_running_loop().call_later(0.0005, _write_on, transport)


class ServerProcess:
    """The server in a separate process, for benchmarks; a context manager.

    It counts requests, but keeps no history.

    Args:
        latency: seconds before each response.
        answers: ``module:function`` that gives the answers; by default "True" or "False" by a checksum of the prompt.
    """

    def __init__(self, latency: float, answers: str = "tag_bench.server:by_checksum") -> None:
        self._command = [sys.executable, "-m", "tag_bench.server", str(latency), answers]
        self.url = ""

    def __enter__(self) -> ServerProcess:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stats(self) -> dict[str, Any]:
        """The counts of :meth:`Server.stats` since the last reset (``cpu_seconds``: since the start)."""
        stats: dict[str, Any] = json.loads(self._get("stats"))
        return stats

    def reset(self) -> None:
        """Set the counts to 0."""
        self._get("reset")

    def _get(self, what: str) -> bytes:
        with urllib.request.urlopen(f"{self.url}/{what}", timeout=10) as response:
            body: bytes = response.read()
            return body


def by_checksum(request: Request) -> str:
    """ "True" for about half of all prompts, always the same ones."""
    return "True" if zlib.crc32(request.prompt.encode()) & 1 else "False"


def main(latency: str, answers: str) -> None:
    """Serve until terminated; the URL is the first line of standard output."""
    server = Server(pkgutil.resolve_name(answers), latency=float(latency), history=False)

    async def serve() -> None:
        await server.listen()
        print(server.url, flush=True)
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


if __name__ == "__main__":
    main(*sys.argv[1:])
