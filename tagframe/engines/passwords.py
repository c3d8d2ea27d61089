"""Passwords of servers: they stay in the process that received them, and no pickle contains one."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from tagframe.errors import InvalidArgument, NotConfigured

PasswordFrom = str | Callable[[], str]
"""The name of a variable of the environment, or a function that gives the password."""

VARIABLE = "TAGFRAME_PASSWORD"
"""The variable that is read by default."""

_given: dict[str, str] = {}
_sources: dict[str, PasswordFrom] = {}
_SECRET = re.compile(r"pass|pwd|token|secret|credential|key", re.IGNORECASE)


def with_password(url: str, source: PasswordFrom) -> str:
    """A URL without a password, completed with the password of a source.

    Raises:
        InvalidArgument: the URL has a password already, or no user.
        NotConfigured: the variable is not set.
    """
    if (user := _user_without_password(url)) is None:
        raise InvalidArgument("password_from= needs a URL with a user and without a password: scheme://user@host/…")
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{user}:{urllib.parse.quote(_ask(source), safe='')}{rest[len(user) :]}"


def with_password_of_environment(url: str) -> str:
    """A URL with a user and without a password, completed by ``TAGFRAME_PASSWORD`` if that is set; else as it is."""
    asks = os.environ.get(VARIABLE) and _user_without_password(url) is not None
    return with_password(url, VARIABLE) if asks else url


def _user_without_password(url: str) -> str | None:
    """The user of a URL that has no password anywhere; None if there is none."""
    rest = url.partition("://")[2]
    user, at, _ = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")
    options = urllib.parse.parse_qsl(rest.partition("?")[2])
    return None if not at or ":" in user or any(name == "password" for name, _ in options) else user


def _ask(source: PasswordFrom) -> str:
    if callable(source):
        return source()
    try:
        return os.environ[source]
    except KeyError:
        raise NotConfigured(f"the password should come from ${source}, but that variable is not set") from None


def keep(identity: str, password: str) -> None:
    """Remember the password of a server for this process."""
    _given[identity] = password


def forget() -> None:
    """Forget passwords and where they come from, as in a new process."""
    _given.clear()
    _sources.clear()


def keep_source(identity: str, source: PasswordFrom) -> None:
    """Remember where a password comes from: pickles contain that, but not the password."""
    _sources[identity] = source


def source_of(identity: str) -> PasswordFrom | None:
    """Where the password of a server comes from, if its user said so."""
    return _sources.get(identity)


def password_again(identity: str, source: PasswordFrom | None) -> str | None:
    """The password of a server that was unpickled; None if there is none.

    It is what the source gives, or the one that this process has for the same server, or ``TAGFRAME_PASSWORD``.
    """
    if source is not None:
        _sources.setdefault(identity, source)
        if callable(source) or source in os.environ:
            return _ask(source)
    return _given.get(identity) or os.environ.get(VARIABLE)


def is_secret(name: str, value: Any) -> bool:
    """Whether an option of a connection may be a secret: ``sslpassword``, ``token``; the path of a key file is not
    one."""
    return bool(_SECRET.search(name)) and name.lower() not in ("sslkey", "passfile", "keepalives") and bool(value)
