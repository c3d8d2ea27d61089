"""Requests and their outcomes: :class:`Prompt`, :class:`Parameters`, :class:`Completion`."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from tagframe.errors import AnswerRejected, InvalidArgument
from tagframe.lm.usage import FAILED_IN_STORE, FROM_STORE, Usage

if TYPE_CHECKING:
    from tagframe.lm.reply import Reply
    from tagframe.lm.store import StoredAnswer

Structured: TypeAlias = Literal["auto", "off", "json_schema"]

FIELDS = (
    "response_format", "grammar", "json_schema", "structured_outputs", "guided_json", "guided_choice", "guided_regex",
    "guided_grammar", "format", "regex", "ebnf", "tools", "functions",
)  # fmt: skip
"""Fields of a request's body with which a user sets the form of answers; then it is theirs."""

_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)


def as_json(value: Any) -> str:
    """A value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, eq=False)
class Form:
    """The form of an answer.

    Attributes:
        schema: a JSON schema of its value.
        write: the text of a value of the schema, as the prompt asks for it.
        strict: whether the schema keeps to the part that OpenAI enforces.
        eager: False asks for the form only where an answer is repaired: what is written freely first is better.
    """

    schema: Mapping[str, Any]
    write: Callable[[Any], str] = as_json
    strict: bool = True
    eager: bool = True

    def fields(self, wraps: bool) -> dict[str, Any]:
        """The fields of a request's body; ``wraps`` puts a value that is no object into one, as hosted models need."""
        schema = fields_schema({"answer": self.schema}) if self._wrapped(wraps) else self.schema
        fields = {"name": "answer", "schema": schema, "strict": self.strict}
        return {"response_format": {"type": "json_schema", "json_schema": fields}}

    def read(self, text: str, wraps: bool) -> str | None:
        """The answer as the prompt asks for it; None if ``write`` cannot write what the text has."""
        try:
            value = json.loads(_FENCED.sub(r"\1", text.strip()))
            value = value["answer"] if self._wrapped(wraps) else value
            return self.write(value)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def _wrapped(self, wraps: bool) -> bool:
        return wraps and self.schema.get("type") != "object"


def words(values: Mapping[Any, str]) -> Form:
    """The form of an answer that is one of a few words.

    Args:
        values: the word that the prompt asks for, by the JSON value that a server is asked for: a text, True, False or
            None.

    >>> form = words({True: "yes", False: "no"})
    >>> form.schema, form.write(True)
    ({'type': 'boolean'}, 'yes')
    """
    listed = list(values)
    if any(isinstance(value, str) for value in listed):
        schema: dict[str, Any] = {"type": ["string", "null"] if None in listed else "string", "enum": listed}
    else:
        schema = {"type": ["boolean", "null"] if None in listed else "boolean"}
    written = {(type(value), value): word for value, word in values.items()}  # 1 is not True
    return Form(schema, lambda value: written[type(value), value])


def fields_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly these fields; definitions of their schemas stand with the object."""
    own, defined = {}, {}
    for name, schema in properties.items():
        own[name] = {key: part for key, part in schema.items() if key != "$defs"}
        defined.update(schema.get("$defs", {}))
    whole = {"type": "object", "properties": own, "required": [*own], "additionalProperties": False}
    return whole | ({"$defs": defined} if defined else {})


T = TypeVar("T")
Role: TypeAlias = Literal["system", "user", "assistant"]
Content: TypeAlias = str | tuple[Mapping[str, Any], ...]
"""A message's text, or the parts of OpenAI's format (``{"type": "image_url", …}``)."""
Accept: TypeAlias = Callable[[str], T]
"""Parses an answer, or raises :class:`~tagframe.errors.AnswerRejected` with the reason."""

Stored: TypeAlias = Literal["any", "alone", "packed"]
"""Which stored answers are accepted for a prompt about a row: "alone" excludes answers from a pack of rows, "packed"
accepts only those, and "any" accepts both, but prefers an answer to the row alone."""
Logprobs: TypeAlias = bool | Literal["optional"]
"""Whether log probabilities are requested; "optional": only if they cost nothing beyond the answer itself."""

TOP_LOGPROBS = 10
"""How many alternatives per token are requested with ``logprobs=True``."""
LENGTHS = ("max_completion_tokens", "max_tokens")
"""The fields of a request's body that limit its answer's length, the one that counts first."""


BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token, on the low side (English has about 4), so that estimates are rather too high."""
TOKENS_PER_MESSAGE = 5
TEMPLATE_TOKENS = 30
BITS_A_TOKEN = 18
"""No vocabulary of today has more than 2**18 tokens, so that a token says at most so much."""
ASSUMED_ANSWER = 256
"""Tokens assumed for an answer, if there is no limit and nothing was measured."""


def tokens_of(text: str) -> int:
    """A text's tokens, estimated by its length: no tokenizer fits every model, and tokenizing would be slow."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    content: Content

    @property
    def texts(self) -> tuple[str, ...]:
        """Its text, or those of its parts."""
        content = self.content
        return (content,) if isinstance(content, str) else tuple(str(part.get("text", "")) for part in content)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one request.

    Attributes:
        messages: in the order in which they are sent.
        sample: distinguishes repeated questions: two prompts that differ only in it are both sent and stored.
    """

    messages: tuple[Message, ...]
    sample: int = 0

    @classmethod
    def of(cls, user: str, system: str | None = None, sample: int = 0) -> Prompt:
        """A prompt of one user message, after a system message if given.

        >>> Prompt.of("Is Casablanca a classic?", system="Answer yes or no.").messages[0].role
        'system'
        """
        question = Message("user", user)
        return cls((question,) if system is None else (Message("system", system), question), sample)

    @classmethod
    def from_dicts(cls, messages: list[dict[str, Any]], sample: int = 0) -> Prompt:
        """A prompt of messages in OpenAI's format.

        Raises:
            InvalidArgument: a message without a role and content.
        """
        made = []
        for message in messages:
            if not isinstance(message, Mapping) or "role" not in message or "content" not in message:
                raise InvalidArgument(f"a message must be {{'role': …, 'content': …}}; got {message!r}")
            content = message["content"]
            made.append(Message(message["role"], tuple(content) if isinstance(content, list) else content))
        return cls(tuple(made), sample)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The messages as in the body of a chat completion request."""
        return [{"role": message.role, "content": message.content} for message in self.messages]

    @property
    def size(self) -> int:
        """The bytes of its texts."""
        size = 0
        for message in self.messages:  # once a request: a generator would take twice as long
            for text in message.texts:
                size += len(text) if text.isascii() else len(text.encode(errors="replace"))
        return size

    @property
    def tokens(self) -> int:
        """Its tokens, estimated by its length."""
        return -(-self.size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * len(self.messages)

    @property
    def most_tokens(self) -> int:
        """An upper bound on its tokens: no token is shorter than a byte, and a chat template adds a few."""
        return self.size + 2 * TOKENS_PER_MESSAGE * len(self.messages) + TEMPLATE_TOKENS

    @property
    def least_tokens(self) -> int:
        """A number of tokens that its texts are not read in fewer of: a tokenizer joins no two words, and says of
        texts without spaces no more in a token than it can."""
        texts = [text for message in self.messages for text in message.texts]
        words = sum(len(text.split()) for text in texts)
        packed = len(zlib.compress("\n".join(texts).encode(errors="replace"), 6))
        return max(words, packed * 8 // BITS_A_TOKEN)

    def repair(self, answer: str, reason: str) -> Prompt:
        """The prompt that asks again, with the rejected answer and the reason."""
        again = (
            f"That answer cannot be used: {reason}\n"
            "Answer the same question again, in exactly the form that was asked for, with nothing before or after it."
        )
        return Prompt((*self.messages, Message("assistant", answer), Message("user", again)), self.sample)


@dataclass(frozen=True)
class Parameters:
    """How an answer is sampled. Everything except the length is part of the key of a stored answer.

    Attributes:
        temperature: 0 asks for the likeliest answer.
        max_tokens: the answer's length in tokens at most, or None for the server's own limit.
        logprobs: whether the log probabilities of the answer's tokens are requested. Answers with and without them are
            stored separately, unless they are optional.
        extra: further fields of the request's body, as ``seed`` or ``reasoning_effort``; a length limit in it overrides
            ``max_tokens``.
        form: of the answer, for servers that can hold a model to it. It is not part of the key: the text is the same.
        names: other names of fields, for servers that refuse the usual ones; None leaves a field out. Not part of it.
    """

    temperature: float = 0.0
    max_tokens: int | None = None
    logprobs: Logprobs = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    form: Form | None = field(default=None, compare=False, repr=False)
    names: Mapping[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, tokens in [("max_tokens", self.max_tokens), *((name, self.extra.get(name)) for name in LENGTHS)]:
            if tokens is not None and (not isinstance(tokens, Integral) or tokens < 1):
                raise InvalidArgument(f"{name} must be a whole number, at least 1, or None; got {tokens!r}")

    @cached_property
    def limit(self) -> int | None:
        """The most tokens of an answer, by ``extra`` or ``max_tokens``; None for the server's own limit."""
        return next((self.extra[name] for name in LENGTHS if self.extra.get(name) is not None), self.max_tokens)

    @property
    def answer_tokens(self) -> int:
        """The estimate for an answer's tokens, at most its limit."""
        return self.limit or ASSUMED_ANSWER

    @cached_property
    def tools(self) -> bool:
        """Whether tools are offered, so that an answer may end with a call of one."""
        return any(self.extra.get(name) for name in ("tools", "functions"))

    def to_dict(self) -> dict[str, Any]:
        """The fields of the request's body, without those that are unset or optional."""
        return dict(self._body)

    @cached_property
    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"temperature": float(self.temperature)}
        extra = {name: value for name, value in self.extra.items() if name not in LENGTHS or value is not None}
        if self.max_tokens is not None and not extra.keys() & LENGTHS:
            body["max_tokens"] = self.max_tokens
        if self.logprobs is True:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        for name, other in self.names.items():
            value = body.pop(name, None)
            body |= {other: value} if other and value is not None else {}
        return body | extra

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Parameters:
        """The reverse of :meth:`to_dict`."""
        extra = {k: v for k, v in body.items() if k not in ("temperature", "max_tokens", "logprobs", "top_logprobs")}
        return cls(body.get("temperature", 0.0), body.get("max_tokens"), bool(body.get("logprobs")), extra)


def request_keys(prompts: Sequence[Prompt], parameters: Parameters | None) -> list[bytes]:
    """The SHA-256 of parameters, messages and sample number, for each prompt: 32 bytes.

    The limit on the answer's length is not part of it: only complete answers are stored, and these are the same under
    every limit that they fit. Endpoint and model are not part of it either: the store keeps them in other columns, so
    that a replay can ignore them. The key without parameters is that of an answer that holds for all parameters.
    """
    fields = None if parameters is None else parameters.to_dict()
    head = hashlib.sha256(_json(fields and {name: fields[name] for name in fields if name not in LENGTHS}))
    keys = []
    for prompt in prompts:
        digest = head.copy()
        digest.update(b"%d" % prompt.sample)
        for message in prompt.messages:
            content = message.content
            # Texts are hashed directly: writing long ones as JSON would cost more than hashing them.
            kind, text = (b"text", _bytes(content)) if isinstance(content, str) else (b"parts", _json(content))
            digest.update(b"\n%s %s %d\n" % (_bytes(message.role), kind, len(text)))
            digest.update(text)
        keys.append(digest.digest())
    return keys


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class TokenLogprob(NamedTuple):
    """A token of the answer, the natural logarithm of its probability, and its likeliest alternatives."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


Origin: TypeAlias = Literal["sent", "duplicate", "store", "pack"]


@dataclass(frozen=True, slots=True)
class Completion(Generic[T]):
    """The outcome of one prompt: an accepted answer, or a named error.

    Attributes:
        text: the answer; with an error, the last rejected answer if one came.
        value: the result of ``accept``; the text itself without ``accept``. Duplicates share one value.
        error: why there is no accepted answer, or None.
        usage: the cost of this prompt; zero for a duplicate or an answer from the store.
        logprobs: of the answer's tokens, if requested and given.
        origin: where the answer came from: sent now; shared with an equal prompt of this call, or of another call in
            progress; or from the response store ("pack": stored as part of a pack of rows).
    """

    text: str | None
    value: T | None
    error: Exception | None
    usage: Usage
    logprobs: tuple[TokenLogprob, ...] | None
    origin: Origin

    @property
    def ok(self) -> bool:
        """Whether there is an accepted answer."""
        return self.error is None


class Completions(list[Completion[T]]):
    """The completions of one call, in the order of its prompts: a list, with the call's :attr:`usage`."""

    def __init__(self, completions: list[Completion[T]], usage: Usage) -> None:
        super().__init__(completions)
        self.usage = usage


def accepted(text: str, accept: Accept[T] | None) -> T:
    """The result of ``accept`` for the answer.

    Raises:
        AnswerRejected: ``accept`` raised any exception; its message is the reason that is shown to the model.
    """
    if accept is None:
        return text  # type: ignore[return-value]  # T is str then
    try:
        return accept(text)
    except AnswerRejected:
        raise
    except Exception as error:  # any failure to parse means that the answer is not of the form asked for
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise AnswerRejected(reason) from error


# --- batches, and their jobs ---------------------------------------------------------------------------------------


class RowPrompts(Sequence[Prompt]):
    """The prompts of rows, each made when it is read: the first are sent before the last are made.

    Args:
        rows: as they are shown.
        prompt: makes the prompt of one.
    """

    def __init__(self, rows: Sequence[str], prompt: Callable[[str], Prompt]) -> None:
        self._rows, self._prompt = rows, prompt

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Any:
        return list(map(self._prompt, self._rows[key])) if isinstance(key, slice) else self._prompt(self._rows[key])


@dataclass(eq=False)
class Bound:
    """An upper bound on the calls of several batches together, for quotes; it is counted with the first batch quoted.

    Attributes:
        calls: at most, without repairs.
        tokens_in, tokens_out: the most tokens that these calls read and write together, without repairs; None if each
            call may be as long as the longest prompt of the batch.
        quoted: whether it has been counted.
    """

    calls: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Generic[T]):
    """Prompts with the same parameters, which are waited for together.

    Attributes:
        prompts: any number, in any order; identical ones are asked once.
        accept: parses an answer's text into a value, or raises :class:`~tagframe.errors.AnswerRejected`.
        temperature: of sampling.
        max_tokens: of an answer.
        logprobs: whether to ask for the log probabilities of the answer's tokens; "optional" also accepts a stored
            answer without them, and a server that gives none.
        guess: a typical answer to these prompts, for quotes; or several, used in turn; None for the quote's own guess.
        stage: "syn", "gen", an operator's name, …; for ``lm_for``, and for people who answer exported requests.
        bound: an upper bound on calls that is shared with other batches, for quotes.
        stored: which stored answers are accepted.
        sends: False only looks the prompts up in the store: prompts without an answer there end with
            :class:`~tagframe.errors.NotStored`, and are neither sent nor noted as missing.
        known: answers to the prompts that came from packs of rows: they are stored, and nothing is sent.
        form: of an answer, for servers that can hold a model to it.
        free: whether answers are texts of any length: then the setting ``max_tokens`` replaces the batch's own, and
            else only raises it.
        keeps_rejected: whether a stored answer that ``accept`` rejects ends the prompt, which is not paid for again: of
            a pack, whose rows are asked again in other prompts.
    """

    prompts: Sequence[Prompt]
    accept: Accept[T] | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    logprobs: Logprobs = False
    guess: str | tuple[str, ...] | None = None
    stage: str = ""
    bound: Bound | None = None
    stored: Stored = "any"
    sends: bool = True
    known: Sequence[str] | None = None
    form: Form | None = None
    free: bool = False
    keeps_rejected: bool = False


Arrived: TypeAlias = Mapping[Batch[Any], Mapping[int, Completion[Any]]]
"""Completions as they arrive, each with its batch and the position of its prompt there."""


@dataclass(slots=True, eq=False)
class Job(Generic[T]):
    """A distinct prompt of a call, its requests so far, and later its completion.

    Attributes:
        batch: the first batch that contains it, at ``position``.
        repeats: its other positions. (None instead of an empty list: most jobs have one
            position, and fewer objects mean less work for the garbage collector.)
        current: what is sent: its prompt, or the repair of an answer; ``current_key`` is its key.
        reply: the latest.
        sent, retried, repaired: its requests.
        answers: how many requests of the run had been answered when its first one was sent; -1 before.
    """

    key: bytes
    prompt: Prompt
    parameters: Parameters
    batch: Batch[T]
    position: int
    current: Prompt
    current_key: bytes
    repeats: list[tuple[Batch[T], int]] | None = None
    completion: Completion[T] | None = None
    reply: Reply | None = None
    sent: int = 0
    retried: int = 0
    repaired: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    dollars: float | None = 0.0
    dollars_saved: float = 0.0
    seconds: float = 0.0
    answers: int = -1

    def usage(self, failed: int = 0) -> Usage:
        """Its cost so far."""
        counts = self.sent, 0, 0, self.retried, self.repaired, failed, self.tokens_in, self.tokens_out
        return Usage(1, *counts, self.tokens_cached, self.dollars, self.dollars_saved, self.seconds)

    def take_stored(self, answer: StoredAnswer) -> AnswerRejected | None:
        """Complete the job with a stored answer; gives the reason if ``accept`` rejects it."""
        try:
            value = accepted(answer.text, self.batch.accept)
        except AnswerRejected as rejection:
            if self.batch.keeps_rejected:
                self.completion = Completion(answer.text, None, rejection, FAILED_IN_STORE, None, "store")
            return rejection
        # To look whether there is one, alone or in a pack, is not to ask.
        usage = FROM_STORE if self.batch.sends or self.batch.stored == "any" else Usage()
        origin: Origin = "pack" if answer.packed else "store"
        self.completion = Completion(answer.text, value, None, usage, answer.logprobs, origin)
        return None
