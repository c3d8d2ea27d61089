from __future__ import annotations

import logging
import threading
import warnings

from tagframe import embed
from tagframe.config import Settings
from tagframe.quiet import quiet


def state() -> tuple[list[object], int]:
    return list(warnings.filters), logging.getLogger("transformers").level


def test_what_is_quiet_for_two_threads_is_as_before_after_both():
    before = state()
    inside = threading.Barrier(2)

    def first() -> None:
        with quiet("transformers"):
            inside.wait()

    def second() -> None:
        inside.wait()
        with quiet("transformers"):
            pass

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state() == before


def test_encoding_leaves_the_process_warnings_and_loggers_alone():
    seen = []

    class Model:
        def encode(self, texts: list[str]) -> list[list[float]]:
            seen.append(state())
            return [[1.0, 0.0] for _ in texts]

    embedder = embed.get_embedder(Settings(embedder=Model()))
    assert embedder is not None
    embedder.encode(["a", "b"])
    assert seen == [state()]
