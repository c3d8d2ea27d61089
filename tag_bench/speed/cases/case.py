"""What a case of ``tag_bench speed operators`` is, and how its sides are set up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tag_bench.server import Request

IN_FLIGHT = 64
"""Requests under way at most, on every side."""

Measured: TypeAlias = Callable[[], Mapping[str, float] | None]
"""What is timed; gives further figures of its own, or ones that replace those of the harness."""
Setup: TypeAlias = Callable[[str], Measured]
"""Gets ready, given the server's URL: imports, settings, data, and a call to warm up. None of it is measured."""


@dataclass(frozen=True)
class Case:
    """An operator at work.

    Attributes:
        name: as in the output.
        ours: this library's side.
        answer: what the server says; a function at the top of a module, which the server imports by its name.
        peer: LOTUS's side, where it can do the same.
        latency: of the server, seconds.
        repeats: at least.
        rows: that are asked about, where each is; None where not.
    """

    name: str
    ours: Setup
    answer: Callable[[Request], str]
    peer: Setup | None = None
    latency: float = 0.05
    repeats: int = 1
    rows: int | None = None

    @property
    def answers(self) -> str:
        """``module:function`` of :attr:`answer`."""
        return f"{self.answer.__module__}:{self.answer.__qualname__}"


def tagframe_on(url: str, **settings: Any) -> None:
    """Set this library up to ask the server."""
    import tagframe as tf

    tf.configure(
        lm="openai/test", api_base=url, api_key="none", concurrency=IN_FLIGHT, store=None, progress=False, **settings
    )


def lotus_on(url: str) -> None:
    """Set LOTUS up to ask the server; its cache is off, as by default."""
    import lotus

    model = lotus.models.LM("openai/test", api_base=url, api_key="none", max_batch_size=IN_FLIGHT)
    lotus.settings.configure(lm=model)


def prompt_text(request: Request) -> str:
    """The last message, whose parts (as LOTUS sends them) are put together."""
    content = request.messages[-1]["content"]
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
