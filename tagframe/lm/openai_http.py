"""The direct transport: OpenAI's chat completions over aiohttp, ten times cheaper per call than litellm."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from tagframe.errors import ConnectionFailed, InvalidArgument, MalformedResponse, RequestTimedOut, ResponseTooLong
from tagframe.lm import background
from tagframe.lm.prompt import Parameters, Prompt
from tagframe.lm.transport import Reply, error_message, failure, read_reply, read_vectors

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
"""How long a connection may take to open."""
KEEPALIVE_SECONDS = 15.0
MAX_RESPONSE_BYTES = 8 * 1024**2
"""The most bytes read of a response (two million tokens), since 64 responses may arrive at once."""
LOGPROBS_TIMES = 4
"""The factor for responses with log probabilities, which take some 800 bytes a token: 40,000 tokens."""

_sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}


def _session() -> aiohttp.ClientSession:
    """The session of the running loop, with one pool of connections for all models.

    (There is one loop per process; a forked child makes its own, and does not touch the parent's session.)
    """
    import aiohttp

    loop = asyncio.get_running_loop()
    session = _sessions.get(loop)
    if session is None:
        # The number in flight is limited above; a second limit here would only hide it.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
        session = _sessions[loop] = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        background.on_close(session.close)
    return session


class OpenAIHTTP:
    """One model of an OpenAI-compatible server.

    Args:
        model: the name that the server knows.
        api_base: the server's URL, up to and including ``/v1``; a user and password in it are sent and never stored.
        api_key: sent as a bearer token; None sends none.

    Raises:
        InvalidArgument: for an ``api_base`` that is no HTTP URL.
    """

    def __init__(self, model: str, api_base: str, api_key: str | None = None) -> None:
        parts = _parts(api_base)
        api_key = api_key.strip() if api_key else None  # a key read from a file often ends with a line feed
        host = parts.netloc.rpartition("@")[2]
        self.model = model
        self.endpoint = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self.own_server = parts.hostname != "api.openai.com"
        self._base = (parts.scheme, host, parts.path.rstrip("/"), parts.query)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self._secrets = tuple(secret for secret in (api_key, parts.password) if secret)
        if parts.username and not api_key:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._proxy = _proxy(parts.scheme, str(parts.hostname))

    def body(self, prompt: Prompt, parameters: Parameters) -> dict[str, Any]:
        """The request's body."""
        fields = parameters.to_dict()
        if _is_reasoning(self.model) and "api.openai.com" in self.endpoint:
            # OpenAI's reasoning models refuse a temperature and know max_tokens by another name.
            fields.pop("temperature")
            if "max_tokens" in fields:
                fields["max_completion_tokens"] = fields.pop("max_tokens")
        return {"model": self.model, "messages": prompt.to_dicts(), **fields}

    async def send(self, prompt: Prompt, parameters: Parameters, begins: Callable[[], None]) -> Reply:
        """See :meth:`tagframe.lm.transport.Transport.send`."""
        most = MAX_RESPONSE_BYTES * (LOGPROBS_TIMES if parameters.logprobs else 1)
        body, headers = await self._post("/chat/completions", self.body(prompt, parameters), begins, most)
        return read_reply(body, headers, tools=parameters.tools, secrets=self._secrets)

    async def embed(self, texts: list[str], begins: Callable[[], None]) -> Reply:
        """The vectors of texts, as :func:`tagframe.lm.transport.read_vectors` gives them.

        Raises:
            LMRequestFailed: as :meth:`send`.
        """
        fields = {"model": self.model, "input": texts, "encoding_format": "float"}
        body, headers = await self._post("/embeddings", fields, begins, MAX_RESPONSE_BYTES)
        return read_vectors(body, len(texts), headers, self._secrets)

    async def models(self) -> Any:
        """The server's list of models, with what it says of each.

        Raises:
            LMRequestFailed: as :meth:`send`.
        """
        body, _ = await self._post("/models", None, lambda: None, MAX_RESPONSE_BYTES)
        return body

    async def _post(
        self, path: str, fields: dict[str, Any] | None, begins: Callable[[], None], most: int
    ) -> tuple[Any, Mapping[str, str]]:
        """The body and the headers of the response; to a GET, where there are no fields."""
        import aiohttp

        scheme, host, base, query = self._base
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        try:
            async with _session().request(
                "GET" if fields is None else "POST",
                urlunsplit((scheme, host, base + path, query, "")),
                data=None if fields is None else json.dumps(fields).encode(),
                headers=self._headers,
                timeout=limit,
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                begins()
                raw = await _read(response, most)
        except TimeoutError as error:
            raise RequestTimedOut(f"no connection within {CONNECT_SECONDS:g} s to {self.endpoint}") from error
        except (aiohttp.ClientError, OSError) as error:
            lost = ConnectionFailed(f"no answer from {self.endpoint}: {type(error).__name__}: {error}")
            lost.connected = not isinstance(error, aiohttp.ClientConnectorError)
            if isinstance(error, aiohttp.ClientConnectorDNSError):  # no such host: to wait does not make one
                lost.retryable, lost.stops_run = False, True
            raise lost from error
        if response.status != 200:
            raise failure(response.status, error_message(raw), response.headers, self._secrets)
        try:
            return json.loads(raw), response.headers
        except (ValueError, RecursionError) as error:
            raise MalformedResponse(f"the server's answer is not JSON: {raw[:200]!r}", 200) from error


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body.

    Raises:
        ResponseTooLong: it is longer than ``most`` bytes, compressed or unpacked.
    """
    size = response.content_length
    if size is not None and size <= most and "Content-Encoding" not in response.headers:
        return await response.read()  # a tenth of a request's cost less than part by part
    if size is None or size <= most:
        parts, size = [], 0
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > most:
                break
        else:
            return b"".join(parts)
    response.close()  # or its end would be waited for
    raise ResponseTooLong(f"the server's answer is longer than {most:,} bytes", response.status)


def _is_reasoning(model: str) -> bool:
    return model.startswith(("o1", "o3", "o4", "gpt-5"))


def _parts(api_base: str) -> SplitResult:
    with contextlib.suppress(ValueError):  # of a malformed host or port
        parts = urlsplit(api_base.strip())
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    without_password = api_base.rpartition("@")[2]
    raise InvalidArgument(f"api_base must be a URL such as 'http://localhost:8000/v1'; got {without_password!r}")


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy of the environment; looked up once, while aiohttp's ``trust_env`` would do so for every request."""
    proxies = urllib.request.getproxies()
    return None if urllib.request.proxy_bypass(host) else proxies.get(scheme)
