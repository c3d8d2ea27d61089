"""``tagframe look``: a page on loopback that shows the tables of a corpus, how they join, and why.

It reads profiles only, no rows, and writes only the user's decisions on keys. Every request must have the token in a
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
import threading
from collections.abc import Callable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from tagframe.corpus import Corpus, TableProfile, computed_of
from tagframe.corpus.corpus import fact_store
from tagframe.corpus.references import JoinColumns
from tagframe.errors import InvalidArgument, TagframeError, needing
from tagframe.joins.roles import without_roles
from tagframe.keys import KeyPair
from tagframe.keys.database_keys import database_keys, schemas_of
from tagframe.keys.inference import with_composites, with_told

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_HEADER = "x-tagframe-token"
_LOOPBACK = "127.0.0.1"
_MIN_CHANCE = 0.2
"""The lowest chance of a key that is shown to the user."""
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
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    html = (resources.files("tagframe.agents") / "page.html").read_text(encoding="utf-8")
    keys = _Keys(corpus)

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
                "keys": keys.with_decisions(without_roles(tables.joins, corpus), forbidden=False),
                "note": tables.note,
            }
        )

    async def decide_key(request: Request) -> Response:
        return _json({"keys": await run_in_threadpool(keys.decide, await request.body())})

    routes = [
        Route("/", lambda request: HTMLResponse(html)),
        Route("/tables", tables),
        Route("/table", lambda request: _json(_table(corpus.profile(request.query_params.get("id", ""))))),
        Route("/search", search),
        Route("/keys", lambda request: _json({"keys": keys.all()}), methods=["GET"]),
        Route("/keys", decide_key, methods=["POST"]),
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


class _Keys:
    """The keys of a corpus for the page, with the user's decision on each."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._lock = threading.Lock()
        self._inferred_keys: list[KeyPair] | None = None

    def all(self) -> list[dict[str, Any]]:
        """All keys that are likely enough, those accepted by the user, and those forbidden by the user."""
        return self.with_decisions(
            with_told([key for key in self._inferred() if key.score >= _MIN_CHANCE], self._corpus.profiles)
        )

    def with_decisions(self, keys: Sequence[KeyPair], *, forbidden: bool = True) -> list[dict[str, Any]]:
        """Keys for the page; the ``forbidden`` ones follow the others."""
        known = fact_store(self._corpus).facts
        of_user = {pair for key in known.keys for pair in _both_ways(key)}
        decided = [(key, "accepted" if key in of_user else "") for key in keys]
        if forbidden:
            inferred = {key: key for key in self._inferred()}
            for rejected in known.forbidden:
                if rejected.left_table in self._corpus and rejected.right_table in self._corpus:
                    one, other = _both_ways(rejected)
                    decided.append((inferred.get(one) or inferred.get(other) or one, "forbidden"))
        return [
            {**key.to_json(), "left": key.left, "right": key.right, "decision": decision} for key, decision in decided
        ]

    def decide(self, body: bytes) -> list[dict[str, Any]]:
        """Apply the user's decision on a key; gives all keys afterwards."""
        does = {"accept": self._corpus.keys.add, "forbid": self._corpus.keys.forbid, "forget": self._corpus.keys.forget}
        try:
            request = json.loads(body)
            do = does[request["say"]]
            (left, mine), (right, theirs) = (
                (self._corpus.profile(str(request[f"{side}_table"])), [str(one) for one in request[f"{side}_columns"]])
                for side in ("left", "right")
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidArgument(
                'expected {"say": "accept", "forbid" or "forget", "left_table": …, "left_columns": […], …}'
            ) from error
        if not mine or len(mine) != len(theirs) or (left.id, mine) == (right.id, theirs):
            raise InvalidArgument(f"a key must join different columns, as many left as right; got {mine} and {theirs}")
        for profile, columns in ((left, mine), (right, theirs)):
            for column in columns:
                profile.column(column)
        do(JoinColumns(left.id, tuple(mine), right.id, tuple(theirs)))
        return self.all()

    def _inferred(self) -> list[KeyPair]:
        """The keys inferred from data and names; they do not depend on the user's decisions."""
        with self._lock:
            if self._inferred_keys is None:
                tables, facts = self._corpus.profiles, computed_of(self._corpus)
                self._inferred_keys = [
                    key
                    for group in schemas_of(tables, facts).groups(tables).values()
                    for key in with_composites(*database_keys(group, True, facts).inferred)
                ]
            return self._inferred_keys


def _both_ways(key: JoinColumns) -> tuple[KeyPair, KeyPair]:
    pair = KeyPair(key.left_table, key.left_columns, key.right_table, key.right_columns, 0.0)
    return pair, pair.reversed()
