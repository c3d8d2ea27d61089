"""A provider's batch endpoints, over the scripted server: ``/files`` and ``/batches``."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from tag_bench.server import Answers, Reply, Request, Server, completion_of, send


class BatchServer(Server):
    """The scripted server; it answers batches once ``ready`` looks were taken at each.

    Attributes:
        batches: by their ids, as the provider shows them.
        ready: the looks at a batch until it has ended.
        spoil: changes a line of the answers, or leaves it out where it gives None.
        failing: the errors with which a batch fails as a whole.
        lists: makes the list of batches.
    """

    def __init__(self, answers: Answers = "True", ready: int = 1) -> None:
        super().__init__(answers)
        self.ready = ready
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.looks = 0
        self.spoil: Callable[[dict[str, Any], int], dict[str, Any] | None] = lambda line, number: line
        self.failing: list[dict[str, Any]] = []
        self.lists: Callable[[Iterable[dict[str, Any]]], Any] = lambda batches: {"data": list(batches)}

    def handle(self, transport: asyncio.Transport, path: str, headers: dict[str, str], raw: bytes) -> None:
        """Answer one request."""
        if path.endswith("/files"):
            file = f"file-{len(self.files)}"
            (self.files[file],) = re.findall(rb'filename="[^"]+"\r\n(?:.+\r\n)*\r\n(.*?)\r\n--', raw, re.DOTALL)
            answer: Any = {"id": file}
        elif path.endswith("/content"):
            send(transport, 200, self.files[path.split("/")[-2]], {})
            return
        elif path.endswith("/batches"):
            answer = self._create(json.loads(raw)) if raw else self.lists(self.batches.values())
        elif "/batches/" in path:
            answer = self._look(self.batches[path.rpartition("/")[2]])
        else:
            super().handle(transport, path, headers, raw)
            return
        send(transport, 200, json.dumps(answer).encode(), {})

    def _create(self, job: dict[str, Any]) -> dict[str, Any]:
        batch = {"id": f"batch-{len(self.batches)}", "status": "in_progress", "looks": 0, **job}
        self.batches[batch["id"]] = batch
        return batch

    def _look(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.looks += 1
        batch["looks"] += 1
        if batch["looks"] >= self.ready and batch["status"] == "in_progress":
            if self.failing:
                return batch | {"status": "failed", "errors": {"data": self.failing}}
            lines = [self._answer(json.loads(line)) for line in self.files[batch["input_file_id"]].split(b"\n")]
            kept = [spoilt for number, line in enumerate(lines) if (spoilt := self.spoil(line, number)) is not None]
            file = f"file-{len(self.files)}"
            self.files[file] = b"\n".join(json.dumps(line, ensure_ascii=False).encode() for line in kept[::-1])
            batch |= {"status": "completed", "output_file_id": file}
        return batch

    def _answer(self, line: dict[str, Any]) -> dict[str, Any]:
        request = Request(line["body"], {}, self.count, 1, 0)
        self.count += 1
        self.requests.append(request)
        reply = self.reply_to(request)
        body = completion_of(request, reply) if reply.status == 200 else {"error": {"message": reply.text}}
        return {"custom_id": line["custom_id"], "response": {"status_code": reply.status, "body": body}, "error": None}


__all__ = ["BatchServer", "Reply"]
