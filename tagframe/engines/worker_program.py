"""Runs as a process of its own: it gets untrusted statements, one after the other, and sends their answers back.

Only :mod:`tagframe.engines.worker_pool` starts this program. It imports only the standard library and the engine's
module, whose ``Worker`` answers requests. Neither the rest of tagframe nor pandas is loaded, so that a process starts
fast and takes little memory.

Requests come on standard input and answers go to standard output, each a pickle of plain values after eight bytes of
length. During a request a worker may send parts of its answer. The pool limits its time and kills the process. When
standard input closes, which also happens when the caller's process ends in any way, the process ends at once, even in
the middle of a statement.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import signal
import sys
import threading
import types
from typing import IO, Any, Protocol

ROWS, OUT_OF_MEMORY, TOO_LARGE = "rows", "out of memory", "too large"
REFUSED, NO_COLUMN, FAILED, UNREADABLE = "refused", "no column", "failed", "unreadable"
"""How an answer begins."""
READY, PART, END = "ready", "part", "end"
"""What a message is: that the process has started, a part of an answer, or its end."""

Request = dict[str, Any]
Answer = tuple[Any, ...]
Block = bytes | bytearray | memoryview


class Worker(Protocol):
    """Answers requests, in the engine's module: ``Worker(memory, caller)``."""

    @property
    def is_spent(self) -> bool:
        """Whether the process is not good for another request."""

    def answer(self, request: Request) -> Answer:
        """One of the words above, and the details."""

    def rest(self) -> None:
        """Make ready for the next request, while there is none."""


class Caller:
    """The process that asked, as a worker sees it."""

    def __init__(self) -> None:
        self._blocks: queue.SimpleQueue[Block] = queue.SimpleQueue()
        self._output = open(1, "wb", buffering=0)  # noqa: SIM115
        threading.Thread(target=self._listen, daemon=True).start()

    def next_request(self) -> Request:
        request: Request = pickle.loads(self._blocks.get())
        return request

    def send(self, part: Block) -> None:
        """A part of the answer; it may be large, and is sent as it is."""
        self._write(PART)
        write_block(self._output, part)

    def ready(self) -> None:
        self._write(READY)

    def end(self, is_spent: bool, answer: Answer) -> None:
        """The end of a request."""
        self._write(END, is_spent, answer)

    def _write(self, *message: Any) -> None:
        write_block(self._output, pickle.dumps(message))

    def _listen(self) -> None:
        """Read messages; end the process, whatever it does, if the caller is gone."""
        try:
            while True:
                self._blocks.put(read_block(sys.stdin.buffer))
        except BaseException:
            # Not sys.exit, which would end this thread alone.
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def read_exactly(stream: IO[bytes], size: int) -> Block:
    """This many bytes; fewer if the stream ends before."""
    block = bytearray(size)
    rest = memoryview(block)
    while rest:
        count = stream.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            return block[: size - len(rest)]
        rest = rest[count:]
    return block


def read_block(stream: IO[bytes]) -> Block:
    """A block with its length before it.

    Raises:
        EOFError: the stream ends before the block does.
    """
    size = read_exactly(stream, 8)
    block = read_exactly(stream, int.from_bytes(size, "big"))
    if len(size) < 8 or len(block) < int.from_bytes(size, "big"):
        raise EOFError("the other process has ended")
    return block


def write_block(stream: IO[bytes], block: Block) -> None:
    """Write a block with its length before it, to a stream that may take less than it is given."""
    for part in (len(block).to_bytes(8, "big"), block):
        rest = memoryview(part)
        while rest:
            rest = rest[stream.write(rest) :]


def bound(limit: str, wanted: int | None) -> None:
    """Set a limit of the process, by the system's name for it; None lifts it again.

    On systems without such limits, only the engine's own limits and the pool's deadline remain.
    """
    try:
        import resource

        kind = getattr(resource, limit)
        _, most = resource.getrlimit(kind)
        soft = most if wanted is None else wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (soft, most))
    except (ImportError, AttributeError, ValueError, OSError):
        return


def main() -> None:
    """Answer requests until the caller is gone."""
    modules, package, memory, *paths = sys.argv[1:]
    sys.path += paths
    # The package without its own first lines, which would load pandas.
    tagframe = types.ModuleType("tagframe")
    tagframe.__path__ = [package]
    sys.modules["tagframe"] = tagframe
    # Arrow loads numpy if it is there, and no worker needs it: without it a process starts in two thirds of the time.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    caller = Caller()
    *_, engine = map(importlib.import_module, modules.split(","))
    worker: Worker = engine.Worker(int(memory), caller)
    caller.ready()
    while True:
        try:
            answer = worker.answer(caller.next_request())
            caller.end(worker.is_spent, answer)
        except MemoryError:
            caller.end(True, (OUT_OF_MEMORY, ""))
        worker.rest()


if __name__ == "__main__":
    main()
