"""Export of the requests that a replay is missing, and import of their answers (from a batch API, or by hand)."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagframe.errors import InvalidArgument, LMRequestFailed, counted
from tagframe.lm.prompt import Label, Parameters, Prompt, request_keys
from tagframe.lm.store import ResponseStore, StoredAnswer, unlabelled
from tagframe.lm.transport import read_reply

BY_HAND = "by hand"
"""The recorder of answers that name none."""
BATCH_MODEL = "gpt-4o-mini"
"""The model named in exported requests by default: OpenAI's format requires one."""
_MAX_QUESTION_LETTERS = 60
_MIN_REPEATED_LINES = 8
"""Repeated runs of fewer lines than this are printed in full again."""


@dataclass(frozen=True)
class Import:
    """The result of an import.

    Attributes:
        answers: how many were stored.
        failed: the custom ids of requests that the provider could not answer; they are still missing.
        recorded_by: how many answers each recorder gave.
    """

    answers: int
    failed: tuple[str, ...]
    recorded_by: Mapping[str, int]

    def __str__(self) -> str:
        by = ", ".join(f"{count} by {name.removeprefix('by ')}" for name, count in self.recorded_by.items())
        failed = f"; {len(self.failed)} failed and stay missing" if self.failed else ""
        return f"{counted(self.answers, 'answer')} imported{f' ({by})' if by else ''}{failed}"


def export_requests(store: str | Path, out: str | Path, model: str = BATCH_MODEL, *, pretty: bool = False) -> int:
    """Write the requests that a replay of ``store`` did not find to ``out``, in OpenAI's Batch format.

    Each line is one JSON object with ``custom_id``, ``method``, ``url`` and ``body``. A ``custom_id`` begins with the
    stage and the first words of the question, if these are known, and ends with the request's key. The file is created
    with mode 0600, because prompts contain users' values. Exported requests stay in the list of missing ones until
    their answers are imported.

    Args:
        store: the response store that was replayed.
        out: the file to write.
        model: the model named in the requests.
        pretty: write for a person: the messages of each request under its ``custom_id``. Lines that an earlier request
            also has, such as a schema, are printed only once.

    Returns:
        The number of requests written.

    Raises:
        NotAStore: ``store`` is not a response store.
        FileNotFoundError: it does not exist.
    """
    with closing(_existing(store)) as opened:
        missing = opened.missing()
    descriptor = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    printed: dict[tuple[str, ...], tuple[str, int]] = {}
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        for key, noted, _ in missing:
            body, label = unlabelled(noted)
            custom_id = _custom_id(key, label)
            if pretty:
                file.write(_readable(custom_id, label, body, printed))
                continue
            line = {
                "custom_id": custom_id,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": model, **body},
            }
            file.write(json.dumps(line) + "\n")
    return len(missing)


def _custom_id(key: bytes, label: Label) -> str:
    """The id that a provider returns with the answer: short, and with a small set of characters."""
    question = re.sub(r"[^a-z0-9]+", "-", label.question.lower()).strip("-")[:_MAX_QUESTION_LETTERS]
    return "/".join(part for part in (label.stage, question, key.hex()) if part)


def _readable(
    custom_id: str, label: Label, body: Mapping[str, Any], printed: dict[tuple[str, ...], tuple[str, int]]
) -> str:
    heading = [f"=== {custom_id}", *(["question: " + label.question] if label.question else [])]
    messages = "\n".join(f"--- {message['role']}\n{message['content']}" for message in body["messages"])
    return "\n".join([*heading, *_without_repeats(messages.split("\n"), custom_id, printed)]) + "\n\n"


def _without_repeats(
    lines: Sequence[str], custom_id: str, printed: dict[tuple[str, ...], tuple[str, int]]
) -> list[str]:
    """The lines of a request; a run of lines from an earlier request is replaced by one line.

    Args:
        lines: all of them.
        custom_id: of the request.
        printed: for each run of :data:`_MIN_REPEATED_LINES` lines printed in full, its request and first index; new
            ones are added.
    """
    text, fresh, at = [], [True] * len(lines), 0
    while at < len(lines):
        end, earlier = at, printed.get(tuple(lines[at : at + _MIN_REPEATED_LINES]))
        while earlier is not None and printed.get(tuple(lines[end : end + _MIN_REPEATED_LINES])) == (
            earlier[0],
            earlier[1] + end - at,
        ):
            end += 1
        if earlier is None:
            text.append(lines[at])
            at += 1
            continue
        run = lines[at : end - 1 + _MIN_REPEATED_LINES]
        # The first of the key's 64 digits identify it.
        text.append(f"[{len(run)} lines as in {earlier[0][:-56]}: {run[0][:60]!r} to {run[-1][:60]!r}]")
        fresh[at : at + len(run)] = [False] * len(run)
        at += len(run)
    for start in range(len(lines) - _MIN_REPEATED_LINES + 1):
        if all(fresh[start : start + _MIN_REPEATED_LINES]):
            printed.setdefault(tuple(lines[start : start + _MIN_REPEATED_LINES]), (custom_id, start))
    return text


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
    path = Path(store).expanduser()
    answers, failed = read_answers(Path(file), recorded_by, _with_tools(path))
    with closing(ResponseStore(path)) as opened:
        opened.put_imported(answers)
        # A line for all parameters also answers requests that were missing with certain parameters.
        answered = {key for _, _, key, _ in answers}
        opened.no_longer_missing(
            [key for key, body, sample in opened.missing() if _messages_key(body["messages"], sample) in answered]
        )
    return Import(len(answers), tuple(failed), dict(Counter(recorder for _, recorder, _, _ in answers)))


def read_answers(
    file: Path, recorded_by: str | None = None, with_tools: Set[bytes] = frozenset()
) -> tuple[list[tuple[str, str, bytes, StoredAnswer]], list[str]]:
    """The answers (model, recorder, key, answer) of a file as :func:`import_answers` takes it, and the failed requests.

    Raises:
        InvalidArgument: a line has another form.
        OSError: the file cannot be read.
    """
    answers: list[tuple[str, str, bytes, StoredAnswer]] = []
    failed = []
    for number, line in _lines(file):
        try:
            key, answer, model = _read(line, with_tools)
        except LMRequestFailed:
            failed.append(str(line.get("custom_id")))
            continue
        except (InvalidArgument, ValueError, TypeError, LookupError) as error:
            raise InvalidArgument(f"line {number} of {str(file)!r} is not an answer: {error}") from error
        recorder = recorded_by or str(line.get("recorded_by") or model or BY_HAND)
        answers.append((model, recorder, key, answer))
    return answers, failed


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


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    # JSON may hold characters at which splitlines() would split: U+2028, U+0085.
    for number, text in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"line {number} of {str(file)!r} is not JSON: {error}") from error
        if not isinstance(line, dict):
            raise InvalidArgument(f"line {number} of {str(file)!r} is not a JSON object: {text[:80]!r}")
        yield number, line


def _with_tools(store: Path) -> set[bytes]:
    """The missing requests of a store that offer tools."""
    if not store.is_file():
        return set()
    with closing(ResponseStore(store)) as opened:
        return {key for key, body, _ in opened.missing() if Parameters.from_dict(body).tools}


def _read(line: dict[str, Any], with_tools: Set[bytes]) -> tuple[bytes, StoredAnswer, str]:
    """Key, answer and model of a line; LMRequestFailed if the provider has no answer."""
    if "answer" in line:
        if not isinstance(line["answer"], str):
            raise InvalidArgument(f"'answer' must be a text; got {line['answer']!r}")
        return _key(line), StoredAnswer(line["answer"]), str(line.get("model", ""))
    if "response" not in line and "error" not in line:
        raise InvalidArgument("it has neither 'answer' nor 'response'")
    response = line.get("response") or {}
    if line.get("error") or response.get("status_code", 200) != 200 or "body" not in response:
        raise LMRequestFailed(str(line.get("error")))
    key = _key(line)
    reply = read_reply(response["body"], tools=key in with_tools)
    if reply.truncated:
        raise LMRequestFailed("the answer was cut off at its limit of tokens")
    answer = StoredAnswer(reply.text, reply.logprobs, reply.tokens_in, reply.tokens_out)
    return key, answer, str(response["body"].get("model", ""))


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
