"""Settings: which model, which corpus, how many requests at once.

The value of a setting comes from the first of these places that has one: the keyword of a call, the nearest ``with
tagframe.context(…)``, ``tagframe.configure(…)``, the environment (``TAGFRAME_LM``, ``TAGFRAME_BUDGET`` and so on: the
name in capitals), and the defaults of :class:`Settings`. No file has settings: who gives away data or code must not say
where cells are sent.

In the environment, a text is as it is, and other values are written as in TOML: ``8``, ``true``, ``{syn = "x"}``;
``none`` is None. A corpus has no text.

A value means the same in all of them. None is a value: ``store=None`` is no store, ``budget=None`` no budget,
``lm=None`` no model. A setting that is not given is left to the next place.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from tagframe.errors import InvalidArgument, NotConfigured, did_you_mean, shown_path

C = TypeVar("C")


class AnyModel(Protocol):
    """A language model, such as a :class:`tagframe.lm.LM`: what a setting must have, as settings know no room above."""

    @property
    def complete(self) -> Callable[..., Any]:
        """Prompts to completions."""


class AnyEmbedder(Protocol):
    """An embedder, such as a :class:`tagframe.embed.Embedder`."""

    @property
    def encode(self) -> Callable[..., Any]:
        """Texts to vectors."""


class AnyCorpus(Protocol):
    """A corpus, such as a :class:`tagframe.Corpus`."""

    @property
    def profiles(self) -> Sequence[Any]:
        """The profiles of its tables."""


class AnyBudget(Protocol):
    """A budget, such as a :class:`tagframe.lm.Budget`."""

    @property
    def spent(self) -> Any:
        """What is spent of it."""


DEFAULT_STORE = "default"
"""The value of ``store`` that stands for the response store in the user's cache folder."""


class Dollars(float):
    """A budget that was given as a number: one account for everything under that setting.

    It is opened where the number is given: in a call for that call, in a ``context`` for its block, in ``configure``
    for all later calls.

    Attributes:
        account: the :class:`~tagframe.lm.Budget`, made at first use.
    """

    account: Any = None


@dataclass(frozen=True)
class Settings:
    """The settings in force. Made by :func:`current`, never by hand.

    Attributes:
        lm: a litellm model name (``"openai/gpt-4o-mini"``), ``"replay:STORE"``, or an :class:`~tagframe.lm.LM`.
        api_base: the URL of an OpenAI-compatible server, ending in ``/v1`` as a rule.
        api_key: its key; if None, the provider's own environment variable is read.
        embedder: a provider's model by its litellm name (``"openai/text-embedding-3-small"``; it uses ``api_base`` and
            ``api_key``, too, if ``lm`` is of the same provider or not set), a sentence-transformers model by name or
            folder, an :class:`~tagframe.embed.Embedder`, ``"minilm-int8"`` for the default in whole numbers, or None
            for the default.
        corpus: what ``df.tag.retrieve_tables`` and ``tagframe.ask`` search if no corpus is given.
        store: the response store's file, ``"default"`` (the user's cache folder), or None or ``"none"`` for no store.
        budget: a limit in calls, tokens or dollars, see :class:`~tagframe.lm.Budget`; a bare number is dollars, in an
            account that is opened where it is given (:class:`Dollars`).
        concurrency: the most requests of a call in flight.
        rpm: the most requests per minute, of all calls together that have the same limit for the same model; None for
            no limit of your own. Limits in the headers of the server's responses are always kept.
        tpm: the most tokens per minute, likewise: first as estimated from prompt and answer, then as the server counts.
        context_window: the tokens that the model reads and writes in one request, for a model that is not in litellm's
            table.
        max_tokens: the most tokens of an answer that is a text, as of ``sem_map`` and ``sem_agg``; None for each
            operator's own limit. If it is more than the limit of other answers, it is theirs, too.
        max_failed: the rows of a call of an operator that may fail: a share (0.05) or a number (100). If more fail, the
            call stops early and raises, whatever ``on_error`` says, with the finished part. Over batches, a share is of
            each batch and a number of all of them. None for no limit.
        lm_for: models of single steps, by name: ``{"syn": "openai/gpt-4.1", "sem_filter": "openai/gpt-4o-mini"}``. A
            step is one of :data:`STEPS` or an operator; steps that are not named use ``lm``. A nearer place that gives
            ``lm`` and no ``lm_for`` sets that model for all steps.
        timeout: the most seconds that a call waits for one answer of a PostgreSQL server, to a connection or to a
            statement: then it raises :class:`~tagframe.errors.ServerGone`. None for the limits of the statements.
        trace_contents: whether spans of OpenTelemetry have prompts, answers and whole statements.
        progress: whether long work shows a bar; None shows one if standard error is a terminal, and in a notebook.
    """

    lm: str | AnyModel | None = None
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    embedder: str | os.PathLike[str] | AnyEmbedder | None = None
    corpus: AnyCorpus | None = None
    store: str | Path | None = DEFAULT_STORE
    budget: Any = None
    concurrency: int = 64
    rpm: float | None = None
    tpm: float | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    max_failed: float | None = None
    lm_for: Mapping[str, str | AnyModel] | None = None
    timeout: float | None = None
    trace_contents: bool = False
    progress: bool | None = None

    def model(self, step: str | None = None) -> str | AnyModel | None:
        """The model of a step: that of ``lm_for`` if it has one, else ``lm``."""
        return self.lm if step is None or self.lm_for is None else self.lm_for.get(step, self.lm)


class ModelSettings(TypedDict, total=False):
    """The settings that an :class:`~tagframe.lm.LM` can have of its own; see :class:`Settings` for what they mean."""

    store: str | os.PathLike[str] | None
    budget: AnyBudget | float | None
    concurrency: int
    rpm: float | None
    tpm: float | None
    context_window: int | None
    max_tokens: int | None
    max_failed: float | None
    progress: bool | None


class CallSettings(ModelSettings, total=False):
    """The settings that are keywords of a single call that asks a model: ``**settings: Unpack[CallSettings]``."""

    lm: str | AnyModel | None
    lm_for: Mapping[str, str | AnyModel] | None
    api_base: str | None
    api_key: str | None


class SearchSettings(CallSettings, total=False):
    """The settings of a call that also embeds texts."""

    embedder: str | os.PathLike[str] | AnyEmbedder | None


class AnySettings(SearchSettings, total=False):
    """All settings: those that :func:`configure` and :func:`context` take."""

    corpus: AnyCorpus | None
    timeout: float | None
    trace_contents: bool


STEPS = ("syn", "gen", "retrieve")
"""The steps that can have a model of their own, beside the operators: the query, the answer, the choice of tables."""

NAMES = tuple(f.name for f in dataclasses.fields(Settings))
"""The names of all settings."""

_process: dict[str, Any] = {}
_scope: ContextVar[Mapping[str, Any]] = ContextVar("tagframe_settings")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_path(value: Any) -> bool:
    return _is_text(value) or isinstance(value, os.PathLike)


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_rate(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf


def _is_share_or_count(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return int(value) >= 0 if isinstance(value, Integral) else 0 <= float(value) <= 1


def too_many(failed: int, of: float, most: float | None) -> bool:
    """Whether more have failed than ``max_failed`` allows."""
    if most is None:
        return False
    return failed > (most if isinstance(most, Integral) else most * of)


def _is_budget(value: Any) -> bool:
    if isinstance(value, Real):
        return not isinstance(value, bool) and float(value) >= 0
    return hasattr(value, "spent")


def _is_model(value: Any) -> bool:
    return _is_text(value) or (hasattr(value, "complete") and not isinstance(value, type))


def _are_models(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(step, str) and (step in STEPS or step.startswith("sem_")) and _is_model(model)
        for step, model in value.items()
    )


# What a value must be, and the message for it; None is accepted unless Settings has no None for it.
_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "lm": (
        _is_model,
        "a model must be a name such as 'openai/gpt-4o-mini', 'replay:STORE', or a tagframe.lm.LM",
    ),
    "api_base": (_is_text, "api_base must be a URL such as 'http://localhost:8000/v1'"),
    "api_key": (_is_text, "api_key must be a text"),
    "embedder": (
        lambda value: _is_path(value) or (hasattr(value, "encode") and not isinstance(value, str)),
        "embedder must be a model's name, a folder, or an object with encode(texts)",
    ),
    "corpus": (
        lambda value: hasattr(value, "profiles"),
        "corpus must be a tagframe.Corpus, which tagframe.open_corpus(…) returns",
    ),
    "store": (
        _is_path,
        "store must be a file, 'default' for the one in the cache folder, or None for no store",
    ),
    "budget": (_is_budget, "budget must be a number of dollars, 0 or more, or tagframe.lm.Budget(calls=…, tokens=…)"),
    "concurrency": (_is_count, "concurrency must be the number of requests in flight, at least 1"),
    "rpm": (_is_rate, "rpm must be a number of requests per minute above 0, or None for no limit"),
    "tpm": (_is_rate, "tpm must be a number of tokens per minute above 0, or None for no limit"),
    "timeout": (_is_rate, "timeout must be a number of seconds above 0, or None"),
    "context_window": (_is_count, "context_window must be a number of tokens, at least 1"),
    "max_tokens": (
        _is_count,
        "max_tokens must be a number of tokens, at least 1, or None for each operator's own limit",
    ),
    "max_failed": (
        _is_share_or_count,
        "max_failed must be a share of the rows from 0.0 to 1.0, a whole number of rows, or None for no limit",
    ),
    "lm_for": (
        _are_models,
        f"lm_for must map steps ({', '.join(map(repr, STEPS))}) and operators such as 'sem_filter' to models (a name, "
        "or a tagframe.lm.LM)",
    ),
    "trace_contents": (lambda value: isinstance(value, bool), "trace_contents must be True or False"),
    "progress": (
        lambda value: isinstance(value, bool),
        "progress must be True, False, or None for bars in a terminal or a notebook",
    ),
}


def checked(changes: Mapping[str, Any], known: Collection[str] = NAMES, kind: str = "setting") -> dict[str, Any]:
    """The settings, checked; a number as budget becomes an account.

    Args:
        changes: by name.
        known: those that may be given.
        kind: what these are called.

    Raises:
        InvalidArgument: for an unknown setting, or a wrong value.
    """
    given = dict(changes)
    for name, value in given.items():
        if name not in known:
            raise InvalidArgument(f"no {kind} {name!r} in {did_you_mean(name, known)}")
        fits, requirement = _VALUES[name]
        if (value is None and name in ("concurrency", "trace_contents")) or (value is not None and not fits(value)):
            text = shown_path(value) if isinstance(value, str | os.PathLike) else repr(value)
            raise InvalidArgument(f"{requirement}; got {'something else' if name == 'api_key' else text}")
    if str(given.get("store", "")).lower() == "none":  # as in the environment
        given["store"] = None
    budget = given.get("budget")
    if isinstance(budget, Real) and not isinstance(budget, Dollars):
        given["budget"] = Dollars(budget)
    return given


def configure(**changes: Unpack[AnySettings]) -> None:
    """Set settings for the whole process; see :class:`Settings` for their names.

    Other settings stay unchanged. ``configure(lm=None)`` resets a value to "not set".

    >>> import tagframe as tf
    >>> tf.configure(lm="openai/gpt-4o-mini", concurrency=16)
    >>> tf.configure(lm=None, concurrency=64)

    Raises:
        InvalidArgument: for an unknown setting, or a wrong value.
    """
    given = checked(changes)
    _refuse_connection(given, {**_process, **given}.get("lm"))
    _process.update(given)


def forget() -> None:
    """Forget what :func:`configure` has set and what was read, as in a new process."""
    _process.clear()
    _from_text.cache_clear()


@contextmanager
def context(**changes: Unpack[AnySettings]) -> Iterator[Settings]:
    """Settings for the block only, in this thread or task and in the workers that tagframe starts from it.

    >>> import tagframe as tf
    >>> with tf.context(concurrency=8) as settings:
    ...     settings.concurrency
    8

    Raises:
        InvalidArgument: as :func:`configure`.
    """
    given = checked(changes)
    _layered(given)
    token = _scope.set(_above(_scope.get({}), given))
    try:
        yield current()
    finally:
        _scope.reset(token)


def of_call(
    function: Callable[..., Any], settings: Mapping[str, Any], also: Iterable[str] = ()
) -> AbstractContextManager[Settings]:
    """:func:`context` for one call of a function that takes settings beside its own keywords, and those in ``also``.

    Raises:
        InvalidArgument: a keyword is neither; the message lists both.
    """
    for name in settings:
        if name not in NAMES:
            import inspect

            own = [
                known
                for known in inspect.signature(function).parameters
                if known not in ("self", "settings", "options")
            ]
            known = dict.fromkeys([*own, *sorted(also), *NAMES])
            raise InvalidArgument(f"{function.__name__} has no keyword {name!r} in {did_you_mean(name, known)}")
    return context(**settings)


def current(**overrides: Any) -> Settings:
    """The settings in force here; ``overrides`` are the keywords of a call.

    Raises:
        InvalidArgument: as :func:`configure`.
    """
    return Settings(**_layered(checked(overrides)))


def _layered(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in force, overridden by these."""
    values = functools.reduce(_above, [*_layers(), given], dict[str, Any]())
    _refuse_connection(given, values.get("lm"))
    return values


def _layers() -> list[Mapping[str, Any]]:
    """The settings of each place, the nearest last."""
    variables = {f"TAGFRAME_{name.upper()}": name for name in NAMES if name != "corpus"}
    texts = {variable: text for variable in variables if (text := os.environ.get(variable))}
    of_environment = [{variables[one]: _from_text(one, variables[one], text)} for one, text in texts.items()]
    return [*of_environment, _process, _scope.get({})]


@functools.cache
def _from_text(variable: str, name: str, text: str) -> Any:
    """A value of the environment; a budget is one account for the process."""
    value: Any = None if text.lower() == "none" else text
    if value is not None and not _VALUES[name][0](text):
        try:
            value = tomllib.loads(f"value = {text if text.startswith('{') else text.lower()}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
    try:
        return checked({name: value})[name]
    except InvalidArgument as error:
        raise InvalidArgument(f"{variable}: {error}") from None


def _above(values: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """The values, overridden by those of a nearer place; its ``lm`` without ``lm_for`` is the model of all steps."""
    whole = {"lm_for": None} if "lm" in layer else {}
    return {**values, **whole, **layer}


def _refuse_connection(given: Mapping[str, Any], lm: Any) -> None:
    connection = [name for name in ("api_base", "api_key") if given.get(name) is not None]
    if connection and not isinstance(lm, str | None):
        raise InvalidArgument(
            f"{connection[0]} cannot be given beside an LM object, which has its own connection: use "
            f"LM(…, {connection[0]}=…), or give the model by name"
        )


def require_corpus(given: C | None = None) -> C:
    """The corpus given, or the configured one.

    Raises:
        NotConfigured: there is neither.
        InvalidArgument: what is given is not a corpus, but for example a path.
    """
    if given is not None:
        checked({"corpus": given})
    corpus: Any = given if given is not None else current().corpus
    if corpus is None:
        raise NotConfigured(
            "no corpus to search: pass corpus=tagframe.open_corpus(…), or tagframe.configure(corpus=…) once"
        )
    chosen: C = corpus
    return chosen
