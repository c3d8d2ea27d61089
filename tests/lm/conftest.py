"""What the LM layer's tests share."""

from __future__ import annotations

import pytest

from tag_bench.server import Server
from tagframe.lm import LM, RetryPolicy

FAST = RetryPolicy(first_wait=0.005, longest_wait=0.02)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or URL of the machine's own reaches a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "TAGFRAME_LM", "TAGFRAME_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lm(server: Server) -> LM:
    """A model on the local server, with short waits between retries."""
    return LM("openai/test", api_base=server.url, api_key="sk-secret", retry=FAST)
