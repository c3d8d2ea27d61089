"""Fixtures that every room's tests share."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import tagframe
from tag_bench.postgres_server import PostgresServer, postgres_server
from tag_bench.server import Server

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a worker has a core; more threads would wait on each other

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 * 2**30:
    # Tests write and sync thousands of small files: in memory none waits for a disk.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

# A slow machine is no failure: no test asserts a time on the clock. Derandomised: the same run every time.
hypothesis.settings.register_profile("tagframe", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tagframe")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Modules and tests live until the end: looking for garbage among them, again and again, took a quarter of it."""
    session.config.add_cleanup(gc.unfreeze)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that needs a PostgreSQL server is slow: each worker would start one.

    It has the fixture, or asks for it by ``request`` where its case is named after the server.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        case = item.callspec.id if "request" in fixtures and hasattr(item, "callspec") else ""
        if "postgres" in fixtures or "postgres" in case:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Catalogues, and what was told, go to folders of the session's own, never to the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="module", autouse=True)
def facts_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a module tells of the tables that its tests share is not known to another, which may have a copy of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("told")))
        yield


@pytest.fixture(autouse=True)
def own_facts(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test tells of its tables is not known to another, which may have a copy of them."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "told" / secrets.token_hex(6)))


@pytest.fixture(scope="session")
def bench() -> Path:
    """The folder of benchmark data beside the repository; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "bench"
    if not folder.is_dir():
        pytest.skip(f"no benchmark data: {folder.name}/ is not beside the repository")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium; tests that need it are skipped where it is absent."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_FLAGS)
        yield running
        running.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A local OpenAI-compatible server, answering "True" until ``server.answers`` says otherwise."""
    with Server() as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_learned() -> Iterator[None]:
    """What a test learned about its servers, and which files its plug-ins read, ends with it.

    A later test's server may get the same port, and its module writes other files.
    """
    yield
    for module in ("tagframe.lm.pacing", "tag_bench.fingerprints"):
        if module in sys.modules:
            sys.modules[module].forget()


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The response store of a test is its own, never the user's."""
    path = tmp_path_factory.getbasetemp() / "stores" / secrets.token_hex(6) / "responses.db"
    monkeypatch.setenv("TAGFRAME_STORE", str(path))
    return path


@pytest.fixture
def own_names() -> Iterator[None]:
    """What a test registers and declares is known to no other."""
    from tagframe.operators import OPERATORS
    from tagframe.retrieval import METHODS

    before = [(registry, {**registry}) for registry in (METHODS, OPERATORS)]
    yield
    for registry, known in before:
        registry.clear()
        registry.update(known)


@pytest.fixture(scope="session")
def demo_output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ``make demo`` prints, offline, from a process of its own that has nothing cached."""
    demo = Path(__file__).resolve().parents[1] / "examples" / "demo.py"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TAGFRAME_")}
    environment["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    environment["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    done = subprocess.run([sys.executable, demo], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def live(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The local server as the configured model: what a user has after ``tagframe.configure(lm=…, api_base=…)``."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "TAGFRAME_LM", "TAGFRAME_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with tagframe.context(lm="openai/test", api_base=server.url, api_key="none", progress=False):
        yield server


@pytest.fixture(scope="session")
def festival() -> tagframe.Corpus:
    """The two databases of ``examples/data``."""
    return tagframe.open_corpus(Path(__file__).resolve().parents[1] / "examples" / "data")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of the session's own; each test makes a database of its own there."""
    from tagframe.engines.postgres.connection import close_connections

    with postgres_server() as running:
        yield running
        close_connections()


@pytest.fixture
def statements_left(postgres: PostgresServer) -> Callable[[], list[str]]:
    """The statements of tagframe's that the server is at, once it has had time to see that connections are closed."""
    import psycopg

    query = "SELECT query FROM pg_stat_activity WHERE application_name = 'tagframe' AND state <> 'idle'"

    def left() -> list[str]:
        deadline = time.monotonic() + 60
        with psycopg.connect(postgres.url(), autocommit=True) as owner:
            while (found := [text for (text,) in owner.execute(query)]) and time.monotonic() < deadline:
                time.sleep(0.05)
        return found

    return left


@pytest.fixture(scope="session")
def lasting(postgres: PostgresServer) -> Callable[..., str]:
    """Make a database that several tests read, or make it anew, and give its URL: ``lasting("shop", "CREATE …")``."""
    import psycopg

    def make(name: str, script: str = "") -> str:
        with psycopg.connect(postgres.url(), autocommit=True) as owner:
            owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            owner.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(postgres.url(name), autocommit=True) as owner:
            owner.execute(script)
        return postgres.url(name)

    return make


@pytest.fixture
def database(postgres: PostgresServer, lasting: Callable[..., str]) -> Iterator[Callable[..., str]]:
    """Make a database from a script for one test, and give its URL: ``database("CREATE TABLE …")``."""
    import psycopg

    from tagframe.engines.postgres.connection import close_connections

    made: list[str] = []

    def make(script: str = "") -> str:
        made.append(f"d{secrets.token_hex(6)}")
        return lasting(made[-1], script)

    yield make
    close_connections()
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        for name in made:
            owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Callable[..., Path]:
    """Make a SQLite file from a script: ``sqlite_file(script, name="bank.sqlite")``."""

    def make(script: str, name: str = "bank.sqlite") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
        return path

    return make


BANK = """
CREATE TABLE client (client_id INTEGER PRIMARY KEY, name TEXT, born DATE);
INSERT INTO client VALUES (1, 'Ada', '1980-02-01'), (2, 'Bo', NULL), (3, 'Cy', '1975-11-30');
CREATE TABLE loan (
    loan_id INTEGER PRIMARY KEY,
    client_id INTEGER REFERENCES client (client_id),
    amount REAL
);
INSERT INTO loan VALUES (10, 1, 100.5), (11, 1, 200), (12, 3, NULL);
"""


@pytest.fixture
def bank(sqlite_file: Callable[..., Path]) -> Path:
    """A SQLite file with two tables and a foreign key."""
    return sqlite_file(BANK)
