"""The direct transport: OpenAI's chat completions over aiohttp, ten times cheaper per call than litellm."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tagframe import errors
from tagframe.lm import background
from tagframe.lm.prompt import Parameters, Prompt
from tagframe.lm.reply import (
    Reply,
    completion_of,
    error_message,
    failure,
    is_event_stream,
    raise_error_in,
    read_reply,
    without,
)
from tagframe.lm.usage import Tier

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
"""How long a connection may take to open."""
KEEPALIVE_SECONDS = 15.0
MAX_RESPONSE_BYTES = 8 * 1024**2
"""The most bytes read of a response (two million tokens), since 64 responses may arrive at once."""
LOGPROBS_TIMES = 4
"""The factor for responses with log probabilities, which take some 800 bytes a token: 40,000 tokens."""

MAX_HEADER_BYTES = 2**20
"""The most bytes of one header of a response: gateways write traces and policies into them (aiohttp's own is 8,190)."""
SECONDS_TO_LIST = 3.0
"""How long a server may take to list its models."""
_WINDOWS = ("n_ctx", "max_model_len", "loaded_context_length", "context_length", "max_context_length")
"""Where lists of models say the context window: llama.cpp, vLLM, LM Studio, OpenRouter."""
_SECRET_FIELD = re.compile(r"key|token|sig|secret|pass|auth|cred|code", re.IGNORECASE)
"""Fields of a URL's query that may be a secret, and do not change what answers."""

_sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}


def _session() -> aiohttp.ClientSession:
    """The session of the running loop, with one pool of connections for all models.

    (There is one loop per process; a forked child makes its own, and does not touch the parent's session.)
    """
    import aiohttp

    loop = asyncio.get_running_loop()
    session = _sessions.get(loop)
    if session is None:
        # The number in flight is limited above; a second limit here would only mask it.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
        session = _sessions[loop] = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        background.on_close(session.close)
    return session


class Served(NamedTuple):
    """What answers to a model's name: llama.cpp and llamafile answer to any, with the model that they have.

    Attributes:
        name: the server's own name for it; "" if it is the same, or the server does not say.
        window: the tokens that it reads and writes in one request, or None.
    """

    name: str = ""
    window: int | None = None


class OpenAIHTTP:
    """One model of an OpenAI-compatible server.

    Args:
        model: the name that the server knows.
        api_base: the server's URL, up to and including ``/v1``, or that of its chat completions; a user and password in
            it are sent and never stored.
        api_key: sent as a bearer token; None sends none.
        tier: sent as ``service_tier`` if it is "flex".

    Raises:
        InvalidArgument: for an ``api_base`` that is no HTTP URL, a key that no header can hold, or a proxy of the
            environment that cannot be used.
    """

    def __init__(self, model: str, api_base: str, api_key: str | None = None, tier: Tier = "standard") -> None:
        import aiohttp  # noqa: F401  # here, in the caller's thread: on the loop it would stop all other requests

        parts = _parts(api_base)
        path = parts.path.rstrip("/").removesuffix("/chat/completions")
        api_key = api_key.strip() if api_key else None  # a key read from a file often ends with a line feed
        if api_key and not api_key.isprintable():
            raise errors.InvalidArgument(
                "the key has a line feed or another control character in it: give the key alone, as api_key= or in the"
                " provider's environment variable"
            )
        host = parts.netloc.rpartition("@")[2]
        self.model = model
        plain = urlencode([(name, text) for name, text in parse_qsl(parts.query) if not _SECRET_FIELD.search(name)])
        self.endpoint = urlunsplit((parts.scheme, host, path, plain, ""))
        self.own_server = parts.hostname != "api.openai.com"
        self._base = f"{parts.scheme}://{host}{path}"
        self._query = f"?{parts.query}" if parts.query else ""
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self._secrets = tuple(secret for secret in (api_key, parts.password) if secret)
        if parts.username and not api_key:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._proxy, self._proxy_variable = _proxy(parts.scheme, str(parts.hostname))
        if self._proxy and (password := urlsplit(self._proxy).password):
            self._secrets += (self._proxy, password)
        self.in_batches = False
        self._tier = {"service_tier": "flex"} if tier == "flex" else {}

    def body(self, prompt: Prompt, parameters: Parameters) -> dict[str, Any]:
        """The request's body."""
        if not self.own_server and self.model.startswith(("o1", "o3", "o4", "gpt-5")):
            # Else a batch would learn a day later that OpenAI's reasoning models refuse these.
            names = {"temperature": None, "max_tokens": "max_completion_tokens", **parameters.names}
            parameters = replace(parameters, names=names)
        return {"model": self.model, "messages": prompt.to_dicts(), **self._tier, **parameters.to_dict()}

    async def send(self, prompt: Prompt, parameters: Parameters) -> Reply:
        """See :meth:`tagframe.lm.reply.Transport.send`."""
        most = MAX_RESPONSE_BYTES * (LOGPROBS_TIMES if parameters.logprobs else 1)
        body = await self.ask("POST", "/chat/completions", self.body(prompt, parameters), most)
        return read_reply(body, tools=parameters.tools, secrets=self._secrets)

    async def embed(self, texts: list[str]) -> dict[str, Any]:
        """The response with the vectors of texts, in OpenAI's form.

        Raises:
            LMRequestFailed: as :meth:`send`, and as :func:`~tagframe.lm.reply.raise_error_in`.
        """
        fields = {"model": self.model, "input": texts, "encoding_format": "float"}
        body: dict[str, Any] = await self.ask("POST", "/embeddings", fields)
        raise_error_in(body, self._secrets)
        return body

    async def served(self) -> Served | None:
        """What the server's list of models says of this one; None if it cannot be reached.

        A server that lists several models and not this one refuses the name, or maps it, which it does not say.
        """
        try:
            async with asyncio.timeout(SECONDS_TO_LIST):
                body = await self.ask("GET", "/models")
        except TimeoutError:
            return None
        except errors.LMRequestFailed as error:
            return None if error.status is None else Served()
        listed = body.get("data") if isinstance(body, dict) else None
        models = [one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, dict) and "id" in one]
        entry = next((one for one in models if one["id"] == self.model), models[0] if len(models) == 1 else {})
        fields = entry | (meta if isinstance(meta := entry.get("meta"), dict) else {})
        window = next((fields[name] for name in _WINDOWS if type(fields.get(name)) is int and fields[name] > 0), None)
        return Served("" if entry.get("id") == self.model else str(entry.get("id", "")), window)

    async def ask(
        self, method: str, path: str, fields: Mapping[str, Any] | None = None, most: int = MAX_RESPONSE_BYTES
    ) -> Any:
        """The JSON of a response.

        Args:
            method: of HTTP.
            path: below ``api_base``.
            fields: of the request's body.
            most: bytes of the response.

        Raises:
            LMRequestFailed: as :meth:`send`.
        """
        data = None if fields is None else json.dumps(fields).encode()
        raw = await self.exchange(method, path, data, most)
        try:
            return completion_of(raw) if is_event_stream(raw) else json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise errors.MalformedResponse(f"the server's answer is not JSON: {raw[:200]!r}", 200) from error

    async def exchange(self, method: str, path: str, data: Any = None, most: int = MAX_RESPONSE_BYTES) -> bytes:
        """The body of a response of status 2xx; ``data`` is JSON, or a form of aiohttp's, or nothing.

        Raises:
            LMRequestFailed: as :meth:`send`.
        """
        import aiohttp

        headers = self._headers
        if not isinstance(data, bytes):
            headers = {name: value for name, value in headers.items() if name != "Content-Type"}
        try:
            async with _session().request(
                method,
                f"{self._base}{path}{self._query.replace('?', '&') if '?' in path else self._query}",
                data=data,
                headers=headers,
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                raw = await _read(response, most)
        except TimeoutError as error:
            raise errors.RequestTimedOut(f"no connection within {CONNECT_SECONDS:g} s to {self.endpoint}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from None  # whose text may have a proxy's password
        if not 200 <= response.status < 300:
            raise failure(response.status, error_message(raw), response.headers, self._secrets, str(response.url))
        return raw

    def _lost(self, error: Exception) -> errors.LMRequestFailed:
        """The error for a request that no response came to."""
        import aiohttp

        through = (
            f" through the proxy that the environment variable {self._proxy_variable} names" if self._proxy else ""
        )
        reason = without(self._secrets, str(error))
        fact = f"no answer from {self.endpoint}{through}: {type(error).__name__}: {reason}"
        if isinstance(error, aiohttp.ClientResponseError) and "bytes when reading" in str(error):
            return errors.ResponseTooLong(
                f"{fact}; a header of the response is longer than {MAX_HEADER_BYTES:,} bytes", 200
            )
        if isinstance(error, aiohttp.ClientHttpProxyError):
            lost = errors.ConnectionFailed(f"no answer from {self.endpoint}{through}: it answered {error.status}")
            lost.retryable, lost.stops_run = error.status != 407, error.status == 407
            return lost
        lost = errors.ConnectionFailed(fact)
        lost.connected = not isinstance(error, aiohttp.ClientConnectorError)
        # No such host, or none that is trusted: to wait changes neither.
        if isinstance(error, aiohttp.ClientConnectorDNSError | aiohttp.ClientConnectorCertificateError):
            lost.retryable, lost.stops_run = False, True
        return lost


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body.

    Raises:
        ResponseTooLong: it is longer than ``most`` bytes, compressed or unpacked.
    """
    size = response.content_length
    if size is not None and size <= most and "Content-Encoding" not in response.headers:
        return await response.read()  # a tenth of a request's cost less than part by part
    if size is None or size <= most:
        try:
            await response.content.readexactly(most + 1)
        except asyncio.IncompleteReadError as ended:
            return ended.partial
    response.close()  # or its end would be waited for
    raise errors.ResponseTooLong(f"the server's answer is longer than {most:,} bytes", response.status)


def _of_http(url: str) -> SplitResult | None:
    """The parts of a URL; None if it is none of HTTP."""
    with contextlib.suppress(ValueError):  # of a malformed host or port
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    return None


def _parts(api_base: str) -> SplitResult:
    if (parts := _of_http(api_base.strip())) is not None:
        return parts
    plain = api_base.rpartition("@")[2]  # without a password
    raise errors.InvalidArgument(f"api_base must be a URL such as 'http://localhost:8000/v1'; got {plain!r}")


def _proxy(scheme: str, host: str) -> tuple[str | None, str]:
    """The proxy of the environment, and the variable that names it.

    It is looked up once, while aiohttp's ``trust_env`` would do so for every request. As curl and requests do, a proxy
    without a scheme is one of HTTP, and ``ALL_PROXY`` counts where there is no other.

    Raises:
        InvalidArgument: it cannot be used.
    """
    proxies = urllib.request.getproxies()
    which = scheme if scheme in proxies else "all"
    proxy = proxies.get(which)
    if not proxy or urllib.request.proxy_bypass(host):
        return None, ""
    variable = f"{which}_proxy"
    variable = next((name for name in (variable, variable.upper()) if os.environ.get(name)), variable)
    url = proxy if "://" in proxy else f"http://{proxy}"
    if _of_http(url) is not None:
        return url, variable
    raise errors.InvalidArgument(
        f"the environment variable {variable} names {url.rpartition('@')[2]!r}, which is no HTTP proxy such as"
        " 'http://proxy.example:3128'; set it to one, or unset it"
    )
