"""A temporary PostgreSQL server, from the binaries in the wheel ``pgserver``, or from the system's."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

OWNER = "owner"
_STARTS_WITHIN = 60.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",  # statistics are those that somebody asked for
}


def binaries() -> Path:
    """The folder of ``initdb`` and ``postgres``.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    # The package itself is not imported: it would create folders, and warn about their permissions.
    found = importlib.util.find_spec("pgserver")
    folders = [Path(path) / "pginstall" / "bin" for path in (found.submodule_search_locations or ())] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise FileNotFoundError('no PostgreSQL server; pip install "tagframe[test]" installs one')


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server on a free local port, stopped and removed after the block.

    PostgreSQL does not run as root: if this process does, the server runs as ``nobody``.
    """
    folder = Path(tempfile.mkdtemp(prefix="tagframe-postgres-"))
    server = PostgresServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class PostgresServer:
    """A server with its data in a folder.

    Attributes:
        port: on 127.0.0.1.
        password: of its owner, a superuser.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._data = folder, folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self.password = secrets.token_urlsafe(12)
        self.port = _free_port()
        self._who = _other_user()
        self._bin = _reachable(binaries(), folder, self._who)

    def url(self, database: str = "postgres", user: str = OWNER, password: str | None = None) -> str:
        """The URL for :func:`tagframe.open_corpus`."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start or restart it, and wait until it answers."""
        if not self._data.exists():
            secret = self._folder / "password"
            secret.write_text(self.password)
            for path in (self._folder, secret):
                _give(path, self._who)
            self._run(
                "initdb", "-D", self._data, "-U", OWNER, "--auth=scram-sha-256", f"--pwfile={secret}",
                "--encoding=UTF8", "--locale=C", "--no-sync",
            )  # fmt: skip
        options = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-p", str(self.port), "-k", self._folder, *options],
                stdout=log, stderr=log, cwd=self._folder, **self._who,
            )  # fmt: skip
        deadline = time.monotonic() + _STARTS_WITHIN
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"the server does not start: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop it at once: by disconnecting its clients (SIGINT), or as in a crash (SIGQUIT)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(60)
        self._process = None

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: Any) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments],
            capture_output=True,
            text=True,
            cwd=self._folder,
            check=False,
            **self._who,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _other_user() -> dict[str, Any]:
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _give(path: Path, who: dict[str, Any]) -> None:
    if who:
        os.chown(path, who["user"], who["group"])


def _reachable(folder: Path, scratch: Path, who: dict[str, Any]) -> Path:
    """Copy the binaries to a folder that the other user can read: an environment may be readable by root only."""
    is_open = all(parent.stat().st_mode & 0o005 == 0o005 for parent in [folder, *folder.parents])
    if not who or is_open:
        return folder
    site, copy = folder.parents[2], scratch / "install"
    # The binaries need the wheel's libraries in a folder next to the package.
    for part in (folder.relative_to(site).parent, Path("pgserver.libs")):
        if (site / part).exists():
            shutil.copytree(site / part, copy / part, symlinks=True)
    for path in [copy, *copy.rglob("*")]:
        os.chown(path, who["user"], who["group"], follow_symlinks=False)
    return copy / folder.relative_to(site)
