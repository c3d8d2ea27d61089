"""The batch tier: requests are collected, submitted as one file, and answered by the provider within a day.

The endpoints are OpenAI's (``/files``, ``/batches``), which Azure, Groq, Together and Mistral have too.
What was submitted is noted in the response store, so that a process that was killed finds its batches again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from tagframe.errors import ConnectionFailed, LMRequestFailed, RateLimited, RequestTimedOut, ServerFailed
from tagframe.lm.openai_http import OpenAIHTTP
from tagframe.lm.prompt import Parameters, Prompt
from tagframe.lm.reply import Reply, failure, read_reply, shorten
from tagframe.lm.store import ResponseStore

MAX_REQUESTS = 50_000
"""The most requests of a batch (OpenAI's)."""
MAX_FILE_BYTES = 100 * 1024**2
"""The most bytes of a batch's file (OpenAI takes 200 MB, Azure 100)."""
MAX_ANSWER_BYTES = 2**30
"""The most bytes that are read of a batch's answers."""
SECONDS_OF_QUIET = 0.25
"""A batch is submitted once no request has come for so long."""
FIRST_WAIT, LONGEST_WAIT = 0.25, 60.0
"""Seconds between two looks at a batch; each wait is half as long again as the one before."""
DOWNLOADS = 16
"""Tries to fetch a file of answers, over some minutes."""
_ENDED = ("completed", "failed", "expired", "cancelled")
_PATH = "/v1/chat/completions"


class BatchHTTP(OpenAIHTTP):
    """A model of an OpenAI-compatible server, asked in batches.

    Attributes:
        store: where batches are noted, or None.
        source: the id of this endpoint and model in it.
    """

    def __init__(self, model: str, api_base: str, api_key: str | None = None) -> None:
        super().__init__(model, api_base, api_key)
        self._made_of = model, api_base, api_key
        self.in_batches = True
        self.store: ResponseStore | None = None
        self.source = 0
        self._new: list[tuple[str, bytes]] = []
        self._lines: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._elsewhere: dict[str, str] = {}  # requests of earlier processes, with their batches
        self._earlier_known = False  # for these
        self._collector: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def __reduce__(self) -> Any:
        return BatchHTTP, self._made_of

    async def send(self, prompt: Prompt, parameters: Parameters) -> Reply:
        """See :meth:`tagframe.lm.reply.Transport.send`."""
        body = self.body(prompt, parameters)
        name = hashlib.sha256(json.dumps([body, prompt.sample], sort_keys=True).encode()).hexdigest()
        if name not in self._lines:
            self._lines[name] = asyncio.get_running_loop().create_future()
            request = {"custom_id": name, "method": "POST", "url": _PATH, "body": body}
            self._new.append((name, json.dumps(request).encode()))
            if self._collector is None:
                self._collector = asyncio.create_task(self._collect())
        line: Any = await asyncio.shield(self._lines[name])
        response = line.get("response")
        response = response if isinstance(response, dict) else {}
        status, answer = _status(response.get("status_code")), response.get("body")
        if status != 200 or not isinstance(answer, dict):
            raise self._refusal(status, answer, line.get("error"))
        return read_reply(answer, tools=parameters.tools, secrets=self._secrets)

    def _refusal(self, status: int, answer: Any, error: Any) -> LMRequestFailed:
        """The error for a line without an answer; one that expired is asked again."""
        found = (answer.get("error") if isinstance(answer, dict) else None) or error
        message = str(found.get("message") or found) if isinstance(found, dict) else str(found)
        return failure(status, message, {}, self._secrets) if status != 200 else ServerFailed(shorten(message), None)

    # --- submitting -----------------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Submit what has come, once nothing more comes."""
        try:
            count = -1
            while count != len(self._new):
                count = len(self._new)
                await asyncio.sleep(SECONDS_OF_QUIET)
            new, self._new = self._new, []
        finally:
            self._collector = None
        try:
            await self._find_earlier()
        except Exception as failed:  # whatever it is, nobody may wait for ever
            self._fail([name for name, _ in new], failed)
            return
        again: dict[str, list[str]] = {}
        for name, _ in new:
            if batch := self._elsewhere.pop(name, None):
                again.setdefault(batch, []).append(name)
        for batch, names in again.items():
            self._start(names, self._answers(batch, names))
        resumed = {name for names in again.values() for name in names}
        for part in _parts([one for one in new if one[0] not in resumed]):
            self._start([name for name, _ in part], self._submitted(part))

    def _start(self, names: Sequence[str], work: Coroutine[Any, Any, dict[str, dict[str, Any]]]) -> None:
        """Give each request the line that answers it, once there is one, or the error of the whole."""

        async def settle() -> None:
            try:
                lines = await work
            except Exception as failed:
                self._fail(names, failed)
                return
            for name in names:
                self._lines.pop(name).set_result(lines[name])

        task = asyncio.create_task(settle())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fail(self, names: Sequence[str], failed: Exception) -> None:
        """Give each request the error of the whole, whatever it is: nobody may wait for ever."""
        error = failed
        if not isinstance(failed, LMRequestFailed):
            fact = f"the batch could not be submitted or read: {type(failed).__name__}: {failed}"
            error = ServerFailed(fact, None)
            error.__cause__ = failed
        for name in names:
            future = self._lines.pop(name)
            future.set_exception(error)
            future.exception()  # whoever waits for it takes it; nobody may

    async def _submitted(self, lines: Sequence[tuple[str, bytes]]) -> dict[str, dict[str, Any]]:
        names = [name for name, _ in lines]
        digest = hashlib.sha256("".join(names).encode() + str(time.time_ns()).encode()).hexdigest()
        if self.store is not None:  # before it is submitted: or a kill would leave a paid batch unknown
            self.store.note_batch(self.source, digest, None, names)
        file = await self._upload(b"\n".join(line for _, line in lines))
        job = {"input_file_id": file, "endpoint": _PATH, "completion_window": "24h"}
        made = await self.ask("POST", "/batches", job | {"metadata": {"tagframe": digest}})
        batch = str(made["id"])
        if self.store is not None:
            self.store.note_batch(self.source, digest, batch, names)
        return await self._answers(batch, names)

    async def _upload(self, data: bytes) -> str:
        import aiohttp

        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", data, filename="tagframe.jsonl", content_type="application/jsonl")
        return str(json.loads(await self.exchange("POST", "/files", form))["id"])

    async def _find_earlier(self) -> None:
        """Learn the batches of earlier processes from the store, and the names that their provider gave them."""
        if self.store is None or self._earlier_known:
            return
        self._earlier_known = True
        for digest, noted, names in self.store.noted_batches(self.source):
            if batch := noted or await self._named(digest):
                self._elsewhere |= dict.fromkeys(names, batch)

    async def _named(self, digest: str) -> str | None:
        """The batch with this digest: it was submitted, and its process was killed before it knew the name."""
        try:
            page = await self.ask("GET", "/batches")
        except LMRequestFailed:
            return None
        listed = page.get("data") if isinstance(page, dict) else None
        for one in listed if isinstance(listed, list) else ():
            noted = one.get("metadata") if isinstance(one, dict) else None
            if isinstance(noted, dict) and noted.get("tagframe") == digest and one.get("id"):
                return str(one["id"])
        return None

    # --- waiting --------------------------------------------------------------------------------------------------

    async def _answers(self, batch: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The line that answers each request, once the batch has ended."""
        job = await self._ended(batch)
        lines: dict[str, dict[str, Any]] = {}
        for field in ("error_file_id", "output_file_id"):
            if file := job.get(field):
                read = map(_line, (await self._content(file)).split(b"\n"))
                lines |= {str(line.get("custom_id")): line for line in read if line is not None}
        if not lines:
            raise self._without_answers(batch, job)
        missing = {"error": {"message": f"the batch {batch!r} ended as {job['status']!r} without this answer"}}
        return {name: lines.get(name, missing) for name in names}

    async def _ended(self, batch: str) -> dict[str, Any]:
        wait = FIRST_WAIT
        while True:
            try:
                job = await self.ask("GET", f"/batches/{batch}")
                if isinstance(job, dict) and job.get("status") in _ENDED:
                    return job
            except (ConnectionFailed, RateLimited, RequestTimedOut, ServerFailed):
                pass  # it works on all the same
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, LONGEST_WAIT)

    async def _content(self, file: str) -> bytes:
        """A file of answers; they are paid, so a download that fails is tried again before the requests are."""
        wait = FIRST_WAIT
        for _ in range(DOWNLOADS - 1):
            try:
                return await self.exchange("GET", f"/files/{file}/content", most=MAX_ANSWER_BYTES)
            except (ConnectionFailed, RateLimited, RequestTimedOut, ServerFailed):
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, LONGEST_WAIT)
        return await self.exchange("GET", f"/files/{file}/content", most=MAX_ANSWER_BYTES)

    def _without_answers(self, batch: str, job: dict[str, Any]) -> LMRequestFailed:
        errors = (job.get("errors") or {}).get("data") or []
        reasons = "; ".join(str(one.get("message")) for one in errors if isinstance(one, dict))
        fact = f"the batch {batch!r} ended as {job['status']!r}: {shorten(reasons) or 'no reason given'}"
        if job["status"] != "failed":
            return ServerFailed(fact, None)
        if any("limit" in str(one.get("code")) for one in errors if isinstance(one, dict)):  # of what is enqueued
            return RateLimited(fact, 429)
        refused = LMRequestFailed(fact, 400)
        refused.stops_run = True
        return refused


def _line(raw: bytes) -> dict[str, Any] | None:
    """A line of the answers; None if it is none: its row is asked again, the others are not."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _status(code: Any) -> int:
    """The status of a line; of one that has none, the body decides."""
    if isinstance(code, str) and code.strip().isdecimal():
        return int(code)
    return code if isinstance(code, int) else 200


def _parts(lines: Sequence[tuple[str, bytes]]) -> list[list[tuple[str, bytes]]]:
    """The requests in files of the sizes that providers take."""
    parts: list[list[tuple[str, bytes]]] = []
    size = 0
    for line in lines:
        size += len(line[1]) + 1
        if not parts or len(parts[-1]) == MAX_REQUESTS or size > MAX_FILE_BYTES:
            parts.append([])
            size = len(line[1]) + 1
        parts[-1].append(line)
    return parts
