"""``lm="replay:STORE"``: nothing is sent, answers come from a store, and missing ones are noted in it.

What is noted is exported as a file of requests, one JSON object a line (OpenAI's Batch format; a pack of rows is one
line), and the file of their answers is imported. ``lm="replay:FILE.jsonl"`` takes answers from such a file, which does
not change.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagframe.errors import InvalidArgument, LMRequestFailed, ReplayMiss, counted
from tagframe.lm.background import after_fork
from tagframe.lm.batch_http import PATH, reply_of
from tagframe.lm.prompt import Arrived, Batch, Completion, Job, Parameters, Prompt, Stored, request_keys
from tagframe.lm.reply import in_message
from tagframe.lm.store import ResponseStore, StoredAnswer, create_tables, open_store
from tagframe.lm.stream import Stream
from tagframe.lm.usage import FAILED_IN_STORE

if TYPE_CHECKING:
    from tagframe.lm.model import LM

REPLAY = "replay:"
"""The prefix of a model's name that names a response store instead."""
BY_HAND = "by hand"
"""The recorder of answers that name none."""
BATCH_MODEL = "gpt-4o-mini"
"""The model named in exported requests by default: OpenAI's format requires one."""
_ID = "custom_id"
"""The field that names a request, in files; also in the body that is noted, which has it only there."""


class RecordedAnswers(ResponseStore):
    """The answers of a file as :func:`import_answers` takes it, in a store in memory.

    Raises:
        InvalidArgument: a line is not an answer.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        answers, _ = _read_answers(path)
        super().__init__(path)
        self.put_imported(answers)
        self._connection.execute("PRAGMA query_only = ON")

    def _open(self) -> sqlite3.Connection:
        self.read_only = True
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        create_tables(connection)
        return connection


@functools.lru_cache(maxsize=8)
def _recorded(path: Path, modified: int, size: int) -> RecordedAnswers:
    """The answers of a file as it is now: it is read again once it was changed."""
    return RecordedAnswers(path)


after_fork(_recorded.cache_clear)  # SQLite connections do not survive a fork


def open_replayed(name: str) -> ResponseStore:
    """The store that ``lm="replay:NAME"`` reads: a response store, or a file of recorded answers (``.jsonl``).

    Raises:
        InvalidArgument: there is no such file of answers, or a line of it is no answer.
        NotAStore, DamagedStore, OSError, sqlite3.Error: see :class:`~tagframe.lm.store.ResponseStore`.
    """
    if not name.endswith(".jsonl"):
        return open_store(name)
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise InvalidArgument(f"no file of recorded answers at {str(path)!r}")
    return _recorded(path, path.stat().st_mtime_ns, path.stat().st_size)


class ReplayStream(Stream):
    """A stream that is answered from a store, with answers of any endpoint and model.

    Prompts without an answer do not arrive. When nothing else is left to take, one
    :class:`~tagframe.errors.ReplayMiss` covers all of them, so that an operator with several rounds goes as far as the
    stored answers reach.
    """

    def __init__(self, lm: LM, description: str) -> None:
        super().__init__(lm, description)
        self._prompts = 0
        self._missing: list[tuple[Prompt, Parameters, str]] = []

    def _answer(self, jobs: list[Job[Any]], batch: Batch[Any]) -> None:
        assert self._store is not None
        missing = take(jobs, self._store)
        self._prompts += len(batch.prompts)
        stage = batch.stage or self._description
        self._missing += [(prompt, parameters, stage and f"{stage}/") for prompt, parameters in missing]
        self._end(job for job in jobs if job.completion is not None)
        if missing:
            self._wake()

    def _taken(self) -> Arrived:
        arrived = super()._taken()
        if not arrived and self._missing:
            assert self._store is not None
            raise _miss(self._store, self._missing, self._prompts)
        return arrived


def take(jobs: Sequence[Job[Any]], store: ResponseStore) -> list[tuple[Prompt, Parameters]]:
    """Complete the jobs that have a stored answer; gives the missing requests.

    An answer that ``accept`` rejects is repaired as a live one would be: the repair prompt is looked up too.
    """
    missing: list[tuple[Prompt, Parameters]] = []
    rejected: list[tuple[Job[Any], Prompt]] = []
    answers = _find(store, [(job.prompt, job.parameters) for job in jobs], jobs[0].batch.stored if jobs else "any")
    for job, answer in zip(jobs, answers, strict=True):
        if answer is None:
            missing.append((job.prompt, job.parameters))
        elif rejection := job.take_stored(answer):
            rejected.append((job, job.prompt.repair(answer.text, str(rejection))))
    repairs = _find(store, [(prompt, job.parameters) for job, prompt in rejected])
    for (job, prompt), answer in zip(rejected, repairs, strict=True):
        if answer is None:
            missing.append((prompt, job.parameters))
        elif rejection := job.take_stored(answer):
            job.completion = Completion(answer.text, None, rejection, FAILED_IN_STORE, None, "store")
    return missing


def _find(
    store: ResponseStore, requests: Sequence[tuple[Prompt, Parameters]], stored: Stored = "any"
) -> list[StoredAnswer | None]:
    if not requests:
        return []
    prompts, parameters = [prompt for prompt, _ in requests], requests[0][1]  # those of one batch are asked alike
    exact = request_keys(prompts, parameters)
    exact_answers = store.lookup(exact, stored=stored)
    without = [i for i, key in enumerate(exact) if key not in exact_answers]
    general = dict(zip(without, request_keys([prompts[i] for i in without], None), strict=True))
    general_answers = store.lookup(list(general.values()), stored=stored)
    return [exact_answers.get(key) or general_answers.get(general.get(i, b"")) for i, key in enumerate(exact)]


def _miss(store: ResponseStore, missing: Sequence[tuple[Prompt, Parameters, str]], prompts: int) -> ReplayMiss:
    fact = f"{len(missing)} of {prompts} prompts have no answer in {str(store.path)!r}"
    if repairs := sum([one.role for one in prompt.messages[-2:]] == ["assistant", "user"] for prompt, _, _ in missing):
        fact += f" ({repairs} of them ask to repair an answer that was rejected)"
    if isinstance(store, RecordedAnswers):
        return ReplayMiss(
            f"{fact}; 'tagframe lm import STORE {store.path}' makes a store of the file; lm='replay:STORE' then notes"
            " missing prompts in it"
        )
    try:
        noted = store.note_missing(
            (
                (key := request_keys([prompt], parameters)[0]),
                {_ID: f"{stage}{key.hex()}", "messages": prompt.to_dicts(), **parameters.to_dict()},
                prompt.sample,
            )
            for prompt, parameters, stage in missing
        )
    except sqlite3.Error as error:
        return ReplayMiss(f"{fact}, and they cannot be noted in it: {error}")
    fact += "; they are noted there" + (f", {noted:,} in all" if noted > len(missing) else "")
    return ReplayMiss(
        f"{fact}: 'tagframe lm export {store.path} -o batch.jsonl' writes them to a file, and"
        f" 'tagframe lm import {store.path} ANSWERS' imports their answers"
    )


# --- files of requests and answers ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """The result of an import.

    Attributes:
        answers: how many were stored.
        repeated: lines that answer the same request as a later one, which counts.
        failed: the custom ids of requests that the provider could not answer; they are still missing.
        recorded_by: how many answers each recorder gave.
    """

    answers: int
    failed: tuple[str, ...]
    recorded_by: Mapping[str, int]
    repeated: int = 0

    def __str__(self) -> str:
        by = ", ".join(f"{count} by {name.removeprefix('by ')}" for name, count in self.recorded_by.items())
        failed = f"; {len(self.failed)} failed and stay missing" if self.failed else ""
        repeated = f"; a later line replaced {counted(self.repeated, 'answer')}" if self.repeated else ""
        return f"{counted(self.answers, 'answer')} imported{f' ({by})' if by else ''}{failed}{repeated}"


def export_requests(store: str | Path, out: str | Path, model: str = BATCH_MODEL) -> int:
    """Write the requests that a replay of ``store`` did not find to ``out``, in OpenAI's Batch format.

    Each line is one JSON object with ``custom_id``, ``method``, ``url`` and ``body``. A ``custom_id`` begins with the
    stage, if it is known, and ends with the request's key. The file is created
    with mode 0600, because prompts contain users' values. Exported requests stay in the list of missing ones until
    their answers are imported.

    Args:
        store: the response store that was replayed.
        out: the file to write.
        model: the model named in the requests.

    Returns:
        The number of requests written.

    Raises:
        NotAStore: ``store`` is not a response store.
        FileNotFoundError: it does not exist.
    """
    with closing(_existing(store)) as opened:
        missing = opened.missing()
    descriptor = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for _, body, _ in missing:
            request = {_ID: body.pop(_ID), "method": "POST", "url": PATH, "body": {"model": model, **body}}
            file.write(json.dumps(request) + "\n")
    return len(missing)


def import_answers(store: str | Path, file: str | Path, recorded_by: str | None = None) -> Import:
    """Import answers into a store, for ``lm="replay:STORE"``: the whole file, or nothing if there is an error.

    A line of ``file`` is one of

    - a line of a provider's batch output (``{"custom_id": …, "response": {"body": …}}``),
    - ``{"custom_id": …, "answer": "…"}``, answered by hand,
    - ``{"messages": [...], "answer": "…"}``, which is valid for all parameters, unless the line has ``parameters`` (the
      limit on the length is not one of them: a complete answer is valid under every limit); with ``sample`` for a
      sample number other than 0.

    An answer replaces an earlier import of the same request by the same recorder. The recorder is ``recorded_by``, else
    the line's own ``recorded_by``, else the model that the provider names, else "by hand".

    Raises:
        InvalidArgument: a line has another form; the error gives its number.
        NotAStore: ``store`` is a file of another program.
        OSError: a file cannot be read or written.
    """
    listed, failed = _read_answers(Path(file), recorded_by)
    answers = list({one[:3]: one for one in listed}.values())
    with closing(ResponseStore(Path(store).expanduser())) as opened:
        opened.put_imported(answers)
        # A line for all parameters also answers requests that were missing with certain parameters.
        answered = {key for _, _, key, _ in answers}
        opened.no_longer_missing(
            [key for key, body, sample in opened.missing() if _messages_key(body["messages"], sample) in answered]
        )
    recorders = dict(Counter(recorder for _, recorder, _, _ in answers))
    return Import(len(answers), tuple(failed), recorders, len(listed) - len(answers))


def recorded_by(store: str | Path) -> dict[str, int]:
    """The recorders of a store's answers, and how many each: models' names, or the names given at an import.

    Raises:
        NotAStore: ``store`` is not a response store.
        FileNotFoundError: it does not exist.
    """
    with closing(_existing(store)) as opened:
        return opened.recorded_by()


def _existing(store: str | Path) -> ResponseStore:
    path = Path(store).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no response store at {str(path)!r}")
    return ResponseStore(path)


def _read_answers(
    file: Path, recorded_by: str | None = None
) -> tuple[list[tuple[str, str, bytes, StoredAnswer]], list[str]]:
    """The answers (model, recorder, key, answer) of a file as :func:`import_answers` takes it, and the failed requests.

    Raises:
        InvalidArgument: a line has another form.
        OSError: the file cannot be read.
    """
    answers: list[tuple[str, str, bytes, StoredAnswer]] = []
    failed = []
    # JSON may hold characters at which splitlines() would split: U+2028, U+0085.
    for number, text in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            key, answer, model = _read(line)
        except LMRequestFailed:
            failed.append(str(line.get("custom_id")))
            continue
        except (InvalidArgument, ValueError, TypeError, LookupError, RecursionError) as error:
            raise InvalidArgument(f"line {number} of {str(file)!r} is not an answer: {error}") from error
        recorder = recorded_by or str(line.get("recorded_by") or model or BY_HAND)
        answers.append((model, recorder, key, answer))
    return answers, failed


def _read(line: Any) -> tuple[bytes, StoredAnswer, str]:
    """Key, answer and model of a line; LMRequestFailed if the provider has no answer."""
    if not isinstance(line, dict):
        raise InvalidArgument(f"it is not a JSON object: {in_message(line)}")
    if "answer" in line:
        if not isinstance(line["answer"], str):
            raise InvalidArgument(f"'answer' must be a text; got {line['answer']!r}")
        return _key(line), StoredAnswer(line["answer"]), str(line.get("model", ""))
    if "response" not in line and "error" not in line:
        raise InvalidArgument("it has neither 'answer' nor 'response'")
    reply = reply_of(line, tools=True)  # a call of a tool ends an answer only if tools were offered
    if reply.truncated:
        raise LMRequestFailed("the answer was cut off at its limit of tokens")
    answer = StoredAnswer(reply.text, reply.logprobs, reply.billed.tokens_in, reply.billed.tokens_out)
    return _key(line), answer, reply.model or ""


def _key(line: dict[str, Any]) -> bytes:
    if "custom_id" in line:
        key = bytes.fromhex(str(line["custom_id"]).rpartition("/")[2])
        if len(key) != 32:
            raise InvalidArgument(f"custom_id {line['custom_id']!r} is not one that was exported")
        return key
    if not isinstance(line.get("messages"), list):
        raise InvalidArgument("it has neither 'custom_id' nor 'messages'")
    parameters = Parameters.from_dict(line["parameters"]) if "parameters" in line else None
    return _messages_key(line["messages"], line.get("sample", 0), parameters)


def _messages_key(messages: list[dict[str, Any]], sample: int, parameters: Parameters | None = None) -> bytes:
    return request_keys([Prompt.from_dicts(messages, sample)], parameters)[0]
