"""Passwords of servers: they stay in the process that received them, and no pickle contains one."""

from __future__ import annotations

import os
import re
import urllib.parse
from typing import Any

VARIABLE = "TAGFRAME_PASSWORD"
"""The variable of the environment with the password of a server whose URL has a user and none."""

_given: dict[str, str] = {}
_SECRET = re.compile(r"pass|pwd|token|secret|credential|key", re.IGNORECASE)


def with_password_of_environment(url: str) -> str:
    """A URL with a user and without a password, completed by :data:`VARIABLE` if that is set; else as it is."""
    scheme, _, rest = url.partition("://")
    user, at, _ = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")
    options = urllib.parse.parse_qsl(rest.partition("?")[2])
    password = os.environ.get(VARIABLE)
    if not password or not at or ":" in user or any(name == "password" for name, _ in options):
        return url
    return f"{scheme}://{user}:{urllib.parse.quote(password, safe='')}{rest[len(user) :]}"


def keep(identity: str, password: str) -> None:
    """Remember the password of a server for this process."""
    _given[identity] = password


def forget() -> None:
    """Forget passwords, as in a new process."""
    _given.clear()


def password_again(identity: str) -> str | None:
    """The password of a server that was unpickled: the one that this process has, or that of the environment."""
    return _given.get(identity) or os.environ.get(VARIABLE)


def is_secret(name: str, value: Any) -> bool:
    """Whether an option of a connection may be a secret: ``sslpassword``, ``token``; the path of a key file is not
    one."""
    return bool(_SECRET.search(name)) and name.lower() not in ("sslkey", "passfile", "keepalives") and bool(value)
