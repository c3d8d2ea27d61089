"""The cases of ``tag_bench speed operators``, and the setup of their sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tag_bench.server import Request

IN_FLIGHT = 64
"""The most requests in flight, on every side."""

Measured: TypeAlias = Callable[[], Mapping[str, float] | None]
"""The timed function; may give further figures, also instead of those of the harness."""
Setup: TypeAlias = Callable[[str], Measured]
"""The preparation for a server's URL: imports, settings, data, and a warm-up call. It is not measured."""


@dataclass(frozen=True)
class Case:
    """An operator at work.

    Attributes:
        name: as in the output.
        ours: this library's side.
        answer: gives the server's answers; a module-level function, because the server imports it by its name.
        peer: LOTUS's side, if it can do the same.
        latency: of the server, seconds.
        repeats: the lowest number of repeats.
        rows: the number of rows, if each is asked about; else None.
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
    """Set LOTUS up to ask the server; its cache is off, as it is by default."""
    import lotus

    model = lotus.models.LM("openai/test", api_base=url, api_key="none", max_batch_size=IN_FLIGHT)
    lotus.settings.configure(lm=model)


def prompt_text(request: Request) -> str:
    """The last message; its parts (LOTUS sends several) are joined."""
    content = request.messages[-1]["content"]
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
