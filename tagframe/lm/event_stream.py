"""A chat completion from a response that is a stream of events: some servers stream, whatever the request says."""

from __future__ import annotations

import json
from typing import Any

_BEGINNINGS = (b"data:", b"event:", b":", b"id:", b"retry:")


def is_event_stream(raw: bytes) -> bool:
    """Whether a body is server-sent events, and no JSON."""
    return raw[:64].lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(_BEGINNINGS)


def completion_of(raw: bytes) -> dict[str, Any]:
    """The completion whose chunks a stream consists of; of a stream that breaks off, one that ends with "error".

    Raises:
        ValueError: an event is not JSON.
    """
    made: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    tokens: list[Any] = []
    reason, is_whole = None, False
    for data in _events(raw):
        if data == "[DONE]":
            is_whole = True
            continue
        chunk = json.loads(data)
        if not isinstance(chunk, dict):
            raise ValueError(f"an event of the stream is no object: {data[:80]!r}")
        made |= {name: value for name, value in chunk.items() if value is not None and name != "choices"}
        for choice in chunk.get("choices") or ():
            if choice.get("index") not in (0, None):
                continue
            # Some send the whole message at the end, after its parts.
            part = choice.get("delta") or {}
            for name in ("content", "refusal", "reasoning_content"):
                if isinstance(part.get(name), str):
                    message[name] = (message.get(name) or "") + part[name]
            if isinstance(whole := choice.get("message"), dict) and message["content"] is None:
                message |= whole
            tokens += (choice.get("logprobs") or {}).get("content") or ()
            reason = choice.get("finish_reason") or reason
    is_whole = is_whole or reason is not None
    choice = {"index": 0, "message": message, "finish_reason": reason if is_whole else "error"}
    if tokens:
        choice["logprobs"] = {"content": tokens}
    return {**made, "choices": [choice]}


def _events(raw: bytes) -> list[str]:
    """The data of each event; lines end with CR, LF or both, and no other character ends one."""
    events: list[str] = []
    lines: list[str] = []
    for line in [*raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if line.startswith(b"data:"):
            lines.append(line.removeprefix(b"data:").removeprefix(b" ").decode(errors="replace"))
        elif not line and lines:
            events.append("\n".join(lines))
            lines = []
    return events
