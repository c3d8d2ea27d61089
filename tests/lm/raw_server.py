"""A server of raw bytes, for responses that no well-behaved one sends."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable

COMPLETION = json.dumps(
    {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "True"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }
).encode()


def response(body: bytes = COMPLETION, headers: bytes = b"", status: bytes = b"200 OK") -> bytes:
    """A response of HTTP with further lines of headers."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), headers, body)


class RawServer:
    """Answers the nth request for a completion with bytes; a context manager.

    Attributes:
        paths: of the requests, without those for the list of models.
    """

    def __init__(self, answer: Callable[[int], bytes], tls: ssl.SSLContext | None = None) -> None:
        self.paths: list[str] = []
        self._answer, self._tls = answer, tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                await reader.readexactly(int(sizes[0].partition(b":")[2]) if sizes else 0)
                path = head.split(b" ")[1].decode()
                if path.endswith("/models"):
                    writer.write(response(b"{}"))
                else:
                    self.paths.append(path)
                    writer.write(self._answer(len(self.paths)))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def __enter__(self) -> RawServer:
        self._thread.start()
        opening = asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
