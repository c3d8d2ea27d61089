"""Settings: what model, which corpus, how many requests at once.

The value of a setting is found, in this order, in the keyword of a call, in the nearest ``with tagframe.context(…)``,
in ``tagframe.configure(…)``, in the environment (``TAGFRAME_LM``, ``TAGFRAME_API_BASE``, ``TAGFRAME_STORE``), and last
in the defaults of :class:`Settings`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagframe.errors import InvalidArgument, NotConfigured, did_you_mean

if TYPE_CHECKING:
    from tagframe.corpus import Corpus
    from tagframe.embed import Embedder
    from tagframe.lm import LM

DEFAULT_STORE = "default"
"""The value of ``store`` that stands for the response store in the user's cache folder."""


@dataclass(frozen=True)
class Settings:
    """The settings in force. Made by :func:`current`, never by hand.

    Attributes:
        lm: a litellm model name (``"openai/gpt-4o-mini"``), ``"replay:STORE"``, or an :class:`~tagframe.lm.LM`.
        api_base: the URL of an OpenAI-compatible server, ending in ``/v1`` as a rule.
        api_key: its key; where None, the provider's own environment variable is read.
        embedder: a sentence-transformers model name or folder, an :class:`~tagframe.embed.Embedder`, or None for the
            default.
        corpus: what ``df.tag.retrieve_tables`` and ``tagframe.ask`` search where no corpus is given.
        store: the response store's file, ``"default"`` (the user's cache folder), or None for no store.
        budget: a limit in calls, tokens or dollars, see :class:`~tagframe.lm.Budget`; a bare number is dollars.
        concurrency: requests in flight at most.
        progress: whether long work shows a bar; None shows one where standard error is a terminal or a notebook.
    """

    lm: str | LM | None = None
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    embedder: str | Embedder | None = None
    corpus: Corpus | None = None
    store: str | Path | None = DEFAULT_STORE
    budget: Any = None
    concurrency: int = 64
    progress: bool | None = None


NAMES = tuple(f.name for f in dataclasses.fields(Settings))
"""The names of all settings."""

_ENVIRONMENT = {"lm": "TAGFRAME_LM", "api_base": "TAGFRAME_API_BASE", "store": "TAGFRAME_STORE"}
_process: dict[str, Any] = {}
_scope: ContextVar[Mapping[str, Any]] = ContextVar("tagframe_settings")


def _checked(changes: Mapping[str, Any]) -> dict[str, Any]:
    for name in changes:
        if name not in NAMES:
            raise InvalidArgument(f"no setting {name!r} in {did_you_mean(name, NAMES)}")
    concurrency = changes.get("concurrency", 1)
    if not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidArgument(f"concurrency is the number of requests in flight, at least 1; got {concurrency!r}")
    return dict(changes)


def configure(**changes: Any) -> None:
    """Set settings for the whole process; see :class:`Settings` for their names.

    What is not named stays as it was. ``configure(lm=None)`` takes a value back to "not set".

    >>> import tagframe as tf
    >>> tf.configure(lm="openai/gpt-4o-mini", concurrency=16)
    >>> tf.configure(lm=None, concurrency=64)

    Raises:
        InvalidArgument: for an unknown setting or a concurrency below 1.
    """
    _process.update(_checked(changes))


@contextmanager
def context(**changes: Any) -> Iterator[Settings]:
    """Settings for the block only, in this thread or task and in the workers that tagframe starts from it.

    >>> import tagframe as tf
    >>> with tf.context(concurrency=8) as settings:
    ...     settings.concurrency
    8

    Raises:
        InvalidArgument: as :func:`configure`.
    """
    token = _scope.set({**_scope.get({}), **_checked(changes)})
    try:
        yield current()
    finally:
        _scope.reset(token)


def current(**overrides: Any) -> Settings:
    """The settings in force here; ``overrides`` are the keywords of a call, and a None among them is not one."""
    values: dict[str, Any] = {
        name: os.environ[variable] for name, variable in _ENVIRONMENT.items() if os.environ.get(variable)
    }
    given = {name: value for name, value in overrides.items() if value is not None}
    for layer in (_process, _scope.get({}), _checked(given)):
        values.update(layer)
    return Settings(**values)


def require_corpus(given: Corpus | None = None) -> Corpus:
    """The corpus given, or the configured one.

    Raises:
        NotConfigured: neither is there.
    """
    corpus = given if given is not None else current().corpus
    if corpus is None:
        raise NotConfigured(
            "no corpus to search: pass corpus=tagframe.open_corpus(…), or tagframe.configure(corpus=…) once"
        )
    return corpus
