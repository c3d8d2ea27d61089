"""``tagframe mcp --http``: the server of :mod:`tagframe.agents.server` over streamable HTTP, by the official SDK.

Every request needs the token of a reader, and gets that reader's tables. Of tokens only digests are kept.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings

from tagframe.errors import InvalidArgument

if TYPE_CHECKING:
    from tagframe.agents.server import CorpusServer

PATH = "/mcp"
_MIN_TOKEN_LETTERS = 16
"""The fewest characters of a token."""
_ANYWHERE = ("0.0.0.0", "::", "")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MAX_SESSIONS = 1_000
_MAX_CONNECTIONS = 1_000
_SECONDS_TO_STOP = 2
"""Seconds for open connections to end when the server is stopped."""


@dataclass(frozen=True)
class Tokens:
    """Whose token is whose: readers by the SHA-256 digest of their tokens; "" for a token of all tables."""

    readers: Mapping[bytes, str]

    async def verify_token(self, token: str) -> AccessToken | None:
        """The reader of a token as the SDK's client id; None for a wrong token."""
        # Digests are compared: the time of a look-up says nothing about a token.
        reader = self.readers.get(_digest(token))
        return None if reader is None else AccessToken(token="", client_id=reader, scopes=[])


def tokens_of(variables: Sequence[str], reader: str | None) -> tuple[Tokens, str | None]:
    """The tokens in the environment, and the one that is made if none is named there.

    Args:
        variables: ``READER=VARIABLE``, or ``VARIABLE`` for the token of ``reader``.
        reader: whose tables a token without a reader gives; None for all.

    Raises:
        InvalidArgument: a variable without a token, a short one, or one of two readers.
    """
    readers: dict[bytes, str] = {}
    for one in variables:
        whose, _, variable = one.rpartition("=")
        token = os.environ.get(variable, "")
        if len(token) < _MIN_TOKEN_LETTERS or not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidArgument(
                f"the environment variable {variable} must hold a token of {_MIN_TOKEN_LETTERS} or more ASCII "
                "characters without blanks, such as one of: openssl rand -hex 32"
            )
        if readers.setdefault(_digest(token), name := whose.strip() or reader or "") != name:
            raise InvalidArgument(f"{variable} holds the token of another reader: give each reader a token of its own")
    if readers:
        return Tokens(readers), None
    made = secrets.token_urlsafe(32)
    return Tokens({_digest(made): reader or ""}), made


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one.

    Raises:
        InvalidArgument: the address is taken, or is none of this machine's.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address, family=family)
    except OSError as error:
        raise InvalidArgument(f"cannot listen at {host}:{port} ({error}): choose another --host or --port") from None
    # Connections inherit it. asyncio itself sets it only on sockets that were made for TCP by number.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def allowed(host: str, port: int, urls: Sequence[str]) -> TransportSecuritySettings:
    """The Host and Origin headers that are let in, whole: a pattern for any port would let in more than ports.

    Raises:
        InvalidArgument: a URL is none; or every address is listened at, and no URL says by which name.
    """
    if host in _ANYWHERE and not urls:
        raise InvalidArgument(
            f"--host {host} listens at every address: say by --url how clients name this server, such as "
            "--url https://tables.example.org"
        )
    names = _LOOPBACK if host in _LOOPBACK else (host,) * (host not in _ANYWHERE)
    origins = [f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}" for name in names]
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise InvalidArgument(f"--url must be an address such as https://tables.example.org; got {url!r}")
        origins.append(f"{parts.scheme}://{parts.netloc}")
    return TransportSecuritySettings(
        allowed_hosts=[origin.partition("://")[2] for origin in origins], allowed_origins=origins
    )


async def run_http(
    server: CorpusServer, tokens: Tokens, listening: socket.socket, security: TransportSecuritySettings
) -> None:
    """Serve clients until the process is told to stop.

    Args:
        server: of the corpus.
        tokens: of its readers.
        listening: where.
        security: the Host and Origin headers that are let in.
    """
    # The issuer is the SDK's requirement, and is not used: tokens come from the environment, not from a server.
    auth = AuthSettings.model_validate({"issuer_url": "http://localhost", "resource_server_url": None})
    app = server.server.streamable_http_app(
        streamable_http_path=PATH,
        auth=auth,
        token_verifier=tokens,
        transport_security=security,
        max_sessions=_MAX_SESSIONS,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_SECONDS_TO_STOP,
        ws="none",
    )
    web = uvicorn.Server(config)
    async with anyio.create_task_group() as beside:
        beside.start_soon(_begin_once_started, server, web)
        await web.serve(sockets=[listening])
        beside.cancel_scope.cancel()


async def _begin_once_started(server: CorpusServer, web: uvicorn.Server) -> None:
    """Open the tables before a client asks, but not while the server starts: imports would delay it."""
    while not web.started:
        await anyio.sleep(0.01)
    server.begin()
