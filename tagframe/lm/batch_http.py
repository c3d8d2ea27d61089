"""The batch tier: requests are collected, submitted as one file, and answered by the provider within a day.

The endpoints are OpenAI's (``/files``, ``/batches``), which Azure, Groq, Together and Mistral have too.
What was submitted is noted in the response store, so that a process that was killed finds its batches again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from tagframe.errors import LMRequestFailed, MalformedResponse, RateLimited, ResponseTooLong, ServerFailed
from tagframe.lm.openai_http import OpenAIHTTP
from tagframe.lm.prompt import Parameters, Prompt
from tagframe.lm.reply import Reply, failure, in_message, read_reply, shorten
from tagframe.lm.store import ResponseStore, warned

T = TypeVar("T")

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
TRIES = 40
"""Failures in a row, over half an hour, until a batch is no longer waited for; of refusals, as a 404, an eighth."""
_FILES = ("error_file_id", "output_file_id")
_NOT_TAKEN = (409, 425, 429, 503, 529)
"""What a server answers that has not taken a batch."""
_ENDED = ("completed", "failed", "expired", "cancelled", "canceled")
PATH = "/v1/chat/completions"


class BatchHTTP(OpenAIHTTP):
    """A model of an OpenAI-compatible server, asked in batches.

    Attributes:
        store: where batches are noted, or None.
        source: the id of this endpoint and model in it.
    """

    def __init__(self, model: str, api_base: str, api_key: str | None = None) -> None:
        super().__init__(model, api_base, api_key)
        self.in_batches = True
        self.store: ResponseStore | None = None
        self.source = 0
        self._new: list[tuple[str, bytes]] = []
        self._lines: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._elsewhere: dict[str, str] = {}  # requests of earlier processes, with their batches
        self._earlier_known = False  # whether these were looked up
        self._collector: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, prompt: Prompt, parameters: Parameters) -> Reply:
        """See :meth:`tagframe.lm.reply.Transport.send`."""
        body = self.body(prompt, parameters)
        name = hashlib.sha256(json.dumps([body, prompt.sample], sort_keys=True).encode()).hexdigest()
        if name not in self._lines:
            self._lines[name] = asyncio.get_running_loop().create_future()
            request = {"custom_id": name, "method": "POST", "url": PATH, "body": body}
            self._new.append((name, json.dumps(request).encode()))
            if self._collector is None:
                self._collector = asyncio.create_task(self._collect())
        pending = self._lines[name]
        try:
            line: Any = await asyncio.shield(pending)
        finally:  # a line that nobody takes, since the call was left, is there for the next call
            if pending.done() and self._lines.get(name) is pending:
                del self._lines[name]
        return reply_of(line, parameters.tools, self._secrets)

    # --- submitting -----------------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Submit what has come, once nothing more comes."""
        count = -1
        while count != len(self._new):
            count = len(self._new)
            await asyncio.sleep(SECONDS_OF_QUIET)
        try:
            await self._find_earlier()  # what comes meanwhile waits, too
        except Exception as failed:  # whatever it is, nobody may wait for ever
            self._fail([name for name, _ in self._new], failed)
            self._new = []
        new, self._new, self._collector = self._new, [], None
        again: dict[str, list[str]] = {}
        unknown: list[tuple[str, bytes]] = []
        for name, line in new:
            if batch := self._elsewhere.pop(name, None):
                again.setdefault(batch, []).append(name)
            else:
                unknown.append((name, line))
        for batch, names in again.items():
            self._start(names, self._answers(batch, names))
        for part in _parts(unknown):
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
                self._lines[name].set_result(lines[name])

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
            self._lines[name].set_exception(error)
            self._lines[name].exception()  # whoever waits for it takes it; nobody may

    async def _submitted(self, lines: Sequence[tuple[str, bytes]]) -> dict[str, dict[str, Any]]:
        names = [name for name, _ in lines]
        file = await self._upload(b"\n".join(line for _, line in lines))
        await self._note(file, None, names)  # before it is submitted: or a kill would leave a paid batch unknown
        job = {"input_file_id": file, "endpoint": PATH, "completion_window": "24h"}
        try:
            batch = _id_of(await self.ask("POST", "/batches", job))
        except LMRequestFailed as lost:  # its reply may be, and the batch be there
            batch = ""
            try:
                batch = (await self._named((file,))).get(file, "") if lost.retryable else ""
            except LMRequestFailed as unlisted:
                if lost.status not in _NOT_TAKEN and getattr(lost, "connected", True):
                    raise _in_doubt(file, lost) from unlisted
            finally:
                if not batch:
                    await self._note(file, None, ())  # nothing waits for it
            if not batch:
                raise
        await self._note(file, batch, names)
        return await self._answers(batch, names)

    async def _note(self, file: str, batch: str | None, names: Sequence[str]) -> None:
        if self.store is not None:
            with warned(self.store, "written"):  # a batch that is submitted is waited for all the same
                await asyncio.to_thread(self.store.note_batch, self.source, file, batch, names)

    async def _upload(self, data: bytes) -> str:
        import aiohttp

        form = aiohttp.FormData({"purpose": "batch"})
        form.add_field("file", data, filename="tagframe.jsonl", content_type="application/jsonl")
        return _id_of(_line(await self.exchange("POST", "/files", form)))

    async def _find_earlier(self) -> None:
        """Learn the batches of earlier processes from the store, and the names that their provider gave them."""
        if self.store is None or self._earlier_known:
            return
        self._earlier_known = True
        batches = self.store.noted_batches(self.source)
        named: dict[str, str] = {}
        unnamed = [file for file, noted, names in batches if names and not noted]
        with contextlib.suppress(LMRequestFailed):  # where the provider lists none, they are submitted anew
            named = await self._named(unnamed)
        for file, noted, names in batches:
            if batch := noted or named.get(file):
                self._elsewhere |= dict.fromkeys(names, batch)

    async def _named(self, files: Sequence[str]) -> dict[str, str]:
        """The batches of these files: they were submitted, and their names are not known, for no reply came.

        Raises:
            LMRequestFailed: the provider does not list its batches.
        """
        named: dict[str, str] = {}
        path, before = "/batches", ""
        while path != before and not named.keys() >= set(files):
            before, listed = path, await _patiently(partial(self._page, path))
            data = listed.get("data")
            ones = [one for one in (data if isinstance(data, list) else ()) if isinstance(one, dict) and "id" in one]
            named |= {str(one.get("input_file_id")): str(one["id"]) for one in ones}
            if ones and listed.get("has_more"):  # where "after" is ignored, the same page comes again
                path = f"/batches?after={ones[-1]['id']}"
        return named

    async def _page(self, path: str) -> dict[str, Any]:
        listed = await self.ask("GET", path)
        if isinstance(listed, list):  # Together's
            return {"data": listed}
        return listed if isinstance(listed, dict) else {}

    # --- waiting --------------------------------------------------------------------------------------------------

    async def _answers(self, batch: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The line that answers each request, once the batch has ended."""
        try:
            job, files = await self._ended(batch)
        except LMRequestFailed as error:
            if error.status == 404:  # it is gone, and the requests are submitted again
                raise ServerFailed(f"the batch {batch!r} is lost: {error}", None) from error
            self._elsewhere |= dict.fromkeys(names, batch)  # it works on all the same: who asks again waits for it
            error.retryable = False
            raise
        lines: dict[str, dict[str, Any]] = {}
        for file in files:
            lines |= _by_name(file)
        if not lines:
            raise self._without_answers(batch, job)
        missing = {"error": {"message": f"the batch {batch!r} ended as {job['status']!r} without this answer"}}
        return {name: lines.get(name, missing) for name in names}

    async def _ended(self, batch: str) -> tuple[dict[str, Any], list[bytes]]:
        """A batch as it has ended, and its files of answers."""

        async def look() -> dict[str, Any] | None:
            job = await self.ask("GET", f"/batches/{batch}")
            ended = str(job.get("status") if isinstance(job, dict) else "").lower()  # Together writes COMPLETED
            if ended not in _ENDED:
                return None
            if ended == "completed" and not any(map(job.get, _FILES)):  # they come a little later
                raise MalformedResponse(f"the batch {batch!r} is completed, and has no file", 200)
            return {**job, "status": ended}

        def content(file: str) -> Callable[[], Awaitable[bytes]]:
            return lambda: self.exchange("GET", f"/files/{file}/content", most=MAX_ANSWER_BYTES)

        job = await _patiently(look)
        return job, [await _patiently(content(str(job[name]))) for name in _FILES if job.get(name)]

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


def _in_doubt(file: str, lost: LMRequestFailed) -> LMRequestFailed:
    """The error for a batch that may be there: to submit it again could pay for it twice."""
    return LMRequestFailed(
        f"the reply to a batch is lost ({lost}), and the server does not list its batches: it may be there and may be"
        f" paid for; look for one of the file {file!r}. The same call again submits it anew"
    )


async def _patiently(fetch: Callable[[], Awaitable[T | None]]) -> T:
    """What is fetched, once it is there; what fails is fetched again, since it is paid."""
    wait, failures = FIRST_WAIT, 0
    while True:
        try:
            if (fetched := await fetch()) is not None:
                return fetched
            failures = 0
        except LMRequestFailed as error:
            failures += 1 if error.retryable else 8
            if failures >= TRIES or isinstance(error, ResponseTooLong):
                raise
        await asyncio.sleep(wait)
        wait = min(wait * 1.5, LONGEST_WAIT)


def _id_of(answer: Any) -> str:
    if isinstance(answer, dict) and "job" in answer:  # Together's
        answer = answer["job"]
    if not isinstance(answer, dict) or not answer.get("id"):
        raise MalformedResponse(f"the server's answer has no id: {in_message(answer)}", 200)
    return str(answer["id"])


def _line(raw: bytes) -> dict[str, Any] | None:
    """A line of the answers; None if it is none: its row is asked again, the others are not."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _by_name(file: bytes) -> dict[str, dict[str, Any]]:
    """The lines of a file of answers; a request that two answer which differ is asked again."""
    lines: dict[str, dict[str, Any]] = {}
    for line in filter(None, map(_line, file.split(b"\n"))):
        name = str(line.get("custom_id"))
        lines[name] = line if lines.get(name, line) == line else {"error": "two lines answer it, and differ"}
    return lines


def reply_of(line: dict[str, Any], tools: bool = False, secrets: tuple[str, ...] = ()) -> Reply:
    """The reply in a line of a batch's answers; of one that has no status, the body decides.

    Raises:
        LMRequestFailed: as :func:`~tagframe.lm.reply.read_reply`, and if there is none; one that expired is retryable.
    """
    response = line.get("response")
    response = response if isinstance(response, dict) else {}
    code, answer = str(response.get("status_code", "")).strip(), response.get("body")
    status = int(code) if code.isdecimal() else 200
    if status == 200 and isinstance(answer, dict):
        return read_reply(answer, tools=tools, secrets=secrets)
    reason = (answer.get("error") if isinstance(answer, dict) else None) or line.get("error")
    message = str(reason.get("message") or reason) if isinstance(reason, dict) else str(reason or "no reason given")
    # OpenAI writes status 0, and nothing else, of a request that got no answer.
    raise failure(status, message, {}, secrets) if status not in (0, 200) else ServerFailed(shorten(message), None)


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
