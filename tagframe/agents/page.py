"""``tagframe look``: a page on loopback that shows the tables of a corpus, how they join, and why.

It reads profiles only, no rows, and writes nothing. Every request must have the token in a
header, except the request for the page itself, which contains no data. The token is after the # of the page's address,
so it is never in a request line, a log or a Referer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import socket
from collections.abc import Callable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from tagframe.corpus import Corpus, TableProfile
from tagframe.errors import InvalidArgument, TagframeError, needing
from tagframe.joins import corpus_keys
from tagframe.joins.roles import without_roles
from tagframe.keys import KeyPair

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_HEADER = "x-tagframe-token"
_LOOPBACK = "127.0.0.1"
_MAX_SAMPLE_LETTERS = 200


def look(corpus: Corpus, port: int = 0, say: Callable[[str], object] = lambda address: None) -> None:
    """Show a corpus on a local page, until interrupted.

    Args:
        corpus: to show.
        port: to listen on; 0 for a free one.
        say: called with the page's address, including the token, once the port is open.

    Raises:
        MissingExtra: the web server is not installed.
        InvalidArgument: the port is in use.
    """
    with needing('the page needs a web server: pip install "tagframe[look]"'):
        import uvicorn
    token = secrets.token_urlsafe(24)
    try:
        listening = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        raise InvalidArgument(f"port {port} is not available ({error.strerror}); use 0 for a free one") from error
    with listening:
        port = listening.getsockname()[1]
        say(f"http://{_LOOPBACK}:{port}/#{token}")
        settings = uvicorn.Config(
            page(corpus, token, port), log_level="warning", access_log=False, server_header=False, lifespan="off"
        )
        uvicorn.Server(settings).run(sockets=[listening])


def page(corpus: Corpus, token: str, port: int) -> ASGIApp:
    """The page of a corpus and its API, as an ASGI application.

    Args:
        corpus: to show.
        token: that requests must have in the header ``x-tagframe-token``.
        port: of the page; requests for any other host are refused.
    """
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    html = (resources.files("tagframe.agents") / "page.html").read_text(encoding="utf-8")

    def tables(request: Request) -> Response:
        rows = [
            {"id": one.id, "database": one.database, "name": one.name, "rows": one.rows, "estimated": one.estimated}
            for one in corpus.profiles
        ]
        return _json({"tables": rows})

    def search(request: Request) -> Response:
        tables = corpus.retrieve_tables(request.query_params.get("question", ""))
        hits = [{"id": hit.id, "label": hit.label, "chance": hit.probability, "reasons": hit.reasons} for hit in tables]
        return _json(
            {
                "tables": hits,
                "keys": _keys(without_roles(tables.joins, corpus)),
                "note": tables.note,
            }
        )

    routes = [
        Route("/", lambda request: HTMLResponse(html)),
        Route("/tables", tables),
        Route("/table", lambda request: _json(_table(corpus.profile(request.query_params.get("id", ""))))),
        Route("/search", search),
        Route("/keys", lambda request: _json({"keys": _keys(corpus_keys(corpus))})),
    ]
    refused = {TagframeError: lambda request, error: _json({"error": str(error)}, 400)}
    return _Guard(Starlette(routes=routes, exception_handlers=refused), token, port, _policy(html))


def _json(value: Any, status: int = 200) -> Response:
    from starlette.responses import Response

    # Escaped to ASCII: cells may hold half surrogates, which no UTF-8 has.
    return Response(json.dumps(value), status, media_type="application/json")


def _policy(html: str) -> str:
    """The page's Content-Security-Policy: its own script and style, and requests to this server."""

    def hashed(tag: str) -> str:
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {hashed('script')}; style-src {hashed('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class _Guard:
    """Refuses requests for other hosts (against DNS rebinding), from other pages, or without the token; sets security
    headers."""

    def __init__(self, app: Starlette, token: str, port: int, policy: str) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}" for name in (_LOOPBACK, "localhost")}
        self._headers = {
            "content-security-policy": policy,
            "cache-control": "no-store",
            "cross-origin-resource-policy": "same-origin",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import Headers, MutableHeaders

        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        app: ASGIApp = self._app
        if headers.get("host") not in self._hosts:
            app = _json({"error": "this page can only be opened on the machine that serves it"}, 403)
        elif "origin" in headers and headers["origin"] not in {f"http://{host}" for host in self._hosts}:
            app = _json(
                {"error": "this request came from another page: open the address printed by tagframe look"}, 403
            )
        elif scope["path"] != "/" and not secrets.compare_digest(
            headers.get(TOKEN_HEADER, "").encode("latin-1"), self._token
        ):
            app = _json({"error": "the token is missing or wrong: open the full address printed by tagframe look"}, 403)

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await app(scope, receive, with_headers)


def _table(profile: TableProfile) -> dict[str, Any]:
    """A table for the page."""
    columns = [
        {
            "name": one.name,
            "family": one.family,
            "declared": one.declared_type,
            "nulls": one.null_share,
            "distinct": one.distinct,
            "samples": [sample[:_MAX_SAMPLE_LETTERS] for sample in one.samples],
            "description": one.description,
            "private": "private" if one.private else "",
        }
        for one in profile.columns
    ]
    return {
        "id": profile.id,
        "rows": profile.rows,
        "estimated": profile.estimated,
        "description": profile.description,
        "primary_key": profile.primary_key,
        "columns": columns,
    }


def _keys(keys: Sequence[KeyPair]) -> list[dict[str, Any]]:
    """Keys for the page."""
    return [{**key.to_json(), "left": key.left, "right": key.right} for key in keys]
