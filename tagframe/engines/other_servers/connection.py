"""Connections made by SQLAlchemy, and the messages of their errors, which contain no password."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tagframe.engines import passwords
from tagframe.errors import InvalidArgument, MissingExtra, ServerGone, UnreadableTable
from tagframe.quiet import quiet

if TYPE_CHECKING:
    import sqlalchemy as sa

_KEPT = {"pool_size": 4}
"""Free connections that wait for the next call; SQLite, which SQLAlchemy reads too, has a pool of its own kind."""

_NO_URL = (
    "a server is given as dialect+driver://user:password@host:port/database; in a user or password the "
    "characters @ : / ? # % are written %40 %3A %2F %3F %23 %25"
)


@dataclass(frozen=True)
class Address:
    """The address of a server.

    Attributes:
        url: as SQLAlchemy takes it, the password in it; never shown.
        identity: the same without password and options.
    """

    url: str = field(repr=False)
    identity: str

    @classmethod
    def of(cls, url: str) -> Address:
        """From ``dialect+driver://user:password@host:port/database``.

        Raises:
            InvalidArgument: it does not parse (the message shows no part of it, because a password may be anywhere in
                it), or SQLAlchemy knows no such dialect.
            MissingExtra: SQLAlchemy or the dialect's driver is not installed.
        """
        scheme, _, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        # An unescaped character could make a part of the password the host or the database, which are shown.
        if authority and not rest.count("@") == authority.count("@") <= 1:
            raise InvalidArgument(_NO_URL)
        try:
            import sqlalchemy as sa
        except ImportError as error:
            raise MissingExtra(f'reading {scheme}:// needs SQLAlchemy: pip install "tagframe[sqlalchemy]"') from error
        try:
            parsed = sa.make_url(url)
            parsed.get_dialect()
        except sa.exc.NoSuchModuleError:
            raise InvalidArgument(
                f"cannot read from {scheme.partition('+')[0]}://…: SQLAlchemy has no such dialect or driver (a package "
                "may provide it)"
            ) from None
        except (sa.exc.ArgumentError, ValueError):
            raise InvalidArgument(_NO_URL) from None
        address = cls(url, parsed.set(password=None, query={}).render_as_string(hide_password=True))
        if parsed.password:
            passwords.keep(address.identity, str(parsed.password))
        address.pool()
        return address

    def __getstate__(self) -> dict[str, Any]:
        # A pickle is written to files and sent to others: it says where the password comes from, not what it is.
        import sqlalchemy as sa

        parsed = sa.make_url(self.url)
        query = {name: value for name, value in parsed.query.items() if not passwords.is_secret(name, value)}
        kept = sa.URL.create(parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, query)
        state = {"url": kept.render_as_string(hide_password=False), "identity": self.identity}
        return {**state, "asks": parsed.password is not None, "source": passwords.source_of(self.identity)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        url = state["url"]
        if state.get("asks"):
            import sqlalchemy as sa

            password = passwords.password_again(state["identity"], state["source"])
            url = sa.make_url(url).set(password=password).render_as_string(hide_password=False) if password else url
        self.__dict__.update(url=url, identity=state["identity"])

    def pool(self) -> sa.Engine:
        """SQLAlchemy's engine of this process; raises MissingExtra where the driver is not installed."""
        import sqlalchemy as sa

        with _lock:
            if self.url not in _pools:
                try:
                    kept = {} if self.url.startswith("sqlite") else _KEPT
                    with quiet():  # warnings about an option contain its value
                        _pools[self.url] = sa.create_engine(self.url, pool_pre_ping=True, **kept)
                except ImportError as error:
                    raise MissingExtra(
                        f"the driver of {self.identity} is not installed ({error}): install it with pip, or name "
                        "another one in the URL, such as mysql+pymysql://…"
                    ) from error
                except (sa.exc.ArgumentError, ValueError, TypeError):
                    raise InvalidArgument(
                        f"an option after the ? in the URL of {self.identity} has a value that its driver rejects"
                    ) from None
            return _pools[self.url]

    @contextmanager
    def reading(self, what: str) -> Iterator[sa.Connection]:
        """A connection; whatever was done on it is rolled back.

        Args:
            what: what is read, for messages.

        Raises:
            ServerGone: it cannot be reached, or the connection was lost.
            UnreadableTable: it refuses a statement.
        """
        import sqlalchemy as sa

        try:
            connection = self.pool().connect()
        except sa.exc.SQLAlchemyError as error:
            raise ServerGone(f"{self.identity} cannot be reached: {self._said(error)}") from None
        except (TypeError, ValueError):  # a driver that does not know an option, or its value
            raise InvalidArgument(
                f"the driver of {self.identity} does not accept the options after the ? in its URL"
            ) from None
        try:
            yield connection
        except sa.exc.SQLAlchemyError as error:
            if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
                raise ServerGone(f"lost {self.identity} while reading {what}: {self._said(error)}") from None
            raise UnreadableTable(f"{what} of {self.identity} cannot be read: {self._said(error)}") from None
        finally:
            connection.close()

    def _said(self, error: Exception) -> str:
        """What the driver said, without the statement, cells that it quotes and the values of options."""
        import sqlalchemy as sa

        said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        if isinstance(error, sa.exc.DataError):
            said = re.sub("[\"'].*", "'…'", said)
        for values in sa.make_url(self.url).normalized_query.values():
            for value in filter(None, values):
                said = said.replace(value, "…")
        return said


_pools: dict[str, sa.Engine] = {}
_lock = threading.Lock()


def _after_fork() -> None:
    """After a fork: connections belong to the process that made them."""
    global _lock
    _lock = threading.Lock()
    for pool in _pools.values():
        pool.dispose(close=False)
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
