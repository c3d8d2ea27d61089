"""``tagframe mcp --http`` as clients meet it: real requests to a real process that serves three readers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from click.testing import CliRunner
from mcp.client.streamable_http import streamable_http_client

import tagframe as tf
from tagframe.agents import server
from tagframe.cli import main
from tagframe.engines import worker_pool
from tests.agents.test_mcp import busy_children, cancelled, given, mcp, refused, run

pytestmark = pytest.mark.slow  # a server in a process of its own
TOKENS = {
    "SUPPORT": "support-token-1001",
    "FINANCE": "finance-token-2002",
    "OWNER": "owner-token-3003",
    "CLERK": "clerk-token-4004",
}
LONG = "SELECT COUNT(*) FROM orders a, orders b, orders c, orders d, orders e, orders f"
COUNT = {"sql": "SELECT COUNT(*) FROM orders"}
READERS = """[readers]
support = ["salaries", "orders.amount"]
finance = ["orders.region"]
clerk = ["orders"]
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the corpus and of the readers' file."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def url(served: Path) -> Iterator[str]:
    """The address of a server of one corpus for three readers and its owner."""
    folder = served
    with closing(sqlite3.connect(folder / "shop.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT, amount REAL);"
            "CREATE TABLE salaries (name TEXT, pay REAL); INSERT INTO salaries VALUES ('zqs', 1);"
        )
        connection.executemany(
            "INSERT INTO orders VALUES (?, ?, ?)", [(n, ["EU", "US", "zqs"][n % 3], n / 2) for n in range(300)]
        )
        connection.commit()
    environment = {name: str(folder / name) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME")}
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        tf.open_corpus(folder / "shop.sqlite", progress=False)
    (folder / "readers.toml").write_text(READERS)
    told = [f"--token-from={name}" for name in ("support=SUPPORT", "finance=FINANCE", "clerk=CLERK", "OWNER")]
    command = [
        sys.executable,
        "-m",
        "tagframe.cli",
        "mcp",
        "shop.sqlite",
        "--http",
        "--port=0",
        "--readers=readers.toml",
        *told,
    ]
    env = {**os.environ, **environment, **TOKENS,
           "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=folder) as server:
        try:
            yield re.search(r"serving at (\S+)", server.stderr.readline())[1]
        finally:
            server.terminate()
            server.communicate()


@asynccontextmanager
async def connected(url: str, name: str, mode: str = "auto") -> AsyncIterator[Any]:
    """A client with the token of a reader."""
    headers = {"Authorization": f"Bearer {TOKENS[name]}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as web,
        mcp.Client(streamable_http_client(url, http_client=web), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_readers_get_their_own_tables_of_one_corpus_at_the_same_time(url: str, mode: str):
    async def counted(name: str) -> tuple[list[list[Any]], str]:
        async with connected(url, name, mode) as client:
            salaries = str(await client.call_tool("describe_tables", {"tables": ["salaries"]}))
            rows = [(await given(client, "run_sql", COUNT))["rows"][0] for _ in range(5)]
            assert all(one == rows[0] for one in rows)
            return rows[0], salaries

    async def work() -> None:
        support, finance, owner, again = await asyncio.gather(*map(counted, ["SUPPORT", "FINANCE", "OWNER", "SUPPORT"]))
        assert support == again
        assert [rows for rows, _ in (support, finance, owner)] == [[300], [300], [300]]
        assert ["pay" in salaries for _, salaries in (support, finance, owner)] == [False, True, True]
        async with connected(url, "FINANCE", mode) as client:
            said = await refused(client, "run_sql", {"sql": "SELECT region FROM orders"})
            assert "zqs" not in said
        async with connected(url, "OWNER", mode) as client:
            assert (await given(client, "run_sql", {"sql": "SELECT pay FROM salaries"}))["rows"] == [[1.0]]

    run(work())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancelled_statement_is_stopped_and_others_go_on(url: str, mode: str):
    async def work() -> None:
        async with connected(url, "OWNER", mode) as client, connected(url, "SUPPORT", mode) as other:
            await given(client, "run_sql", COUNT)
            async with anyio.create_task_group() as beside:
                beside.start_soon(cancelled, client, LONG)
                assert (await given(other, "run_sql", COUNT))["rows"] == [[300]]
            assert (await given(client, "run_sql", COUNT))["rows"] == [[300]]
            with anyio.fail_after(60):
                while busy_children():
                    await anyio.sleep(0.05)

    run(work())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_long_statements_of_a_reader_leave_room_for_another(url: str):
    assert server._MAX_STATEMENTS == worker_pool._MOST_RUNNING
    share = server._MAX_STATEMENTS // 4  # of support, finance, the clerk and the owner

    async def work() -> None:
        async with connected(url, "SUPPORT") as client, connected(url, "OWNER") as other:
            begun = set[int]()

            async def long(number: int) -> None:
                async def progress(value: float, total: float | None, message: str | None) -> None:
                    if value > 3:  # seconds, after which all run that may
                        begun.add(number)

                await client.call_tool("run_sql", {"sql": LONG}, progress_callback=progress)

            async with anyio.create_task_group() as beside:
                for number in range(16):
                    beside.start_soon(long, number)
                while len(begun) < 16:
                    await anyio.sleep(0.05)
                assert len(busy_children()) <= share + 1  # and the server
                assert (await given(other, "run_sql", COUNT))["rows"] == [[300]]
                beside.cancel_scope.cancel()

    run(work())


def posted(url: str, token: str | None = TOKENS["OWNER"], **headers: str) -> httpx2.Response:
    """A first request of a client."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}  # fmt: skip
    sent = {"Accept": "application/json, text/event-stream", **{k.replace("_", "-"): v for k, v in headers.items()}}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    return httpx2.post(url, json=message, headers=sent, timeout=60)


def test_a_wrong_token_is_not_let_in(url: str):
    wrong = [None, "support", "zqs-token-0000000", TOKENS["OWNER"][:-1], TOKENS["OWNER"] + "x", TOKENS["OWNER"].upper()]
    answers = [posted(url, token) for token in wrong]
    answers += [posted(url, None, Authorization=f"Basic {TOKENS['OWNER']}")]
    answers += [httpx2.post(f"{url}?token={TOKENS['OWNER']}", json={}), httpx2.get(url), httpx2.delete(url)]
    assert [answer.status_code for answer in answers] == [401] * len(answers)
    assert not any("mcp-session-id" in answer.headers for answer in answers)
    assert posted(url).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "localhost.evil:{port}",
        "0.0.0.0:{port}",
    ],
)
def test_a_wrong_host_is_not_let_in(url: str, host: str):
    port = url.rsplit(":", 1)[1].split("/")[0]
    assert posted(url, Host=host.format(port=port)).status_code == 421
    assert posted(url, Host=f"localhost:{port}").status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://localhost:{port}.evil", "http://127.0.0.1"],
)
def test_a_wrong_origin_is_not_let_in(url: str, origin: str):
    port = url.rsplit(":", 1)[1].split("/")[0]
    assert posted(url, Origin=origin.format(port=port)).status_code == 403
    assert posted(url, Origin=f"http://127.0.0.1:{port}").status_code == 200


def test_the_session_of_a_reader_is_closed_to_others(url: str):
    session = posted(url).headers["mcp-session-id"]
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "run_sql", "arguments": COUNT}}
    headers = {"Accept": "application/json, text/event-stream", "mcp-session-id": session}
    for name, status in (("SUPPORT", 404), ("OWNER", 200)):
        sent = {**headers, "Authorization": f"Bearer {TOKENS[name]}"}
        assert httpx2.post(url, json=call, headers=sent, timeout=60).status_code == status


def test_long_arguments_and_bodies_are_refused_and_the_answer_is_bounded(url: str):
    async def work() -> None:
        async with connected(url, "OWNER") as client:
            assert "256,000" in await refused(client, "run_sql", {"sql": "x" * 300_000})
            wide = {"sql": "SELECT *, printf('%0900d', id) AS wide FROM orders", "limit": 300}
            result = await client.call_tool("run_sql", wide)
            assert not result.is_error
            assert "0" * 400 in result.content[0].text
            assert len(result.content[0].text) < 60_000 < 300 * 900

    run(work())
    sent = {"Authorization": f"Bearer {TOKENS['OWNER']}", "Content-Type": "application/json"}
    assert httpx2.post(url, content=b"x" * 5_000_000, headers=sent, timeout=60).status_code == 413
    with contextlib.suppress(httpx2.WriteError):  # the server need not read on
        assert httpx2.post(url, content=b"x" * 5_000_000, timeout=60).status_code == 401


def test_a_reader_whose_list_grows_reads_less_at_once(url: str, served: Path):
    async def work() -> None:
        async with connected(url, "CLERK") as client, connected(url, "SUPPORT") as other:
            names = {"sql": "SELECT name FROM salaries"}
            pages = {"sql": "SELECT id, region, printf('%0200d', id) AS wide FROM orders", "limit": 300}
            page = {**pages, "cursor": (await given(other, "run_sql", pages))["cursor"]}
            assert "zqs" in str(await given(other, "run_sql", page))
            assert (await given(client, "run_sql", names))["rows"] == [["zqs"]]
            try:
                (served / "readers.toml").write_text(READERS.replace('["orders"]', '["orders", "salaries.name"]'))
                said = await refused(client, "run_sql", names)
                assert "no such column: name in {'pay'}" in said
                (served / "readers.toml").write_text(READERS.replace('"orders.amount"', '"orders.region"'))
                assert "no such column: region" in await refused(other, "run_sql", page)
                (served / "readers.toml").write_text(READERS.replace("clerk", "nobody"))
                assert "the tables of the reader 'clerk' are not served" in await refused(client, "run_sql", names)
                (served / "readers.toml").write_text("[readers")
                for one in (client, other):
                    assert "are not served now" in await refused(one, "run_sql", COUNT)
            finally:
                (served / "readers.toml").write_text(READERS)
            assert (await given(client, "run_sql", names))["rows"] == [["zqs"]]
            assert (await given(other, "run_sql", COUNT))["rows"] == [[300]]

    run(work())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--http", "--token-from", "NONE"], "the environment variable NONE must hold a token"),
        (["--http", "--token-from", "SHORT"], "16 or more ASCII characters"),
        (["--http", "--token-from", "a=ONE", "--token-from", "b=SAME"], "give each reader a token of its own"),
        (["--http", "--host", "0.0.0.0", "--port", "0"], "say by --url how clients name this server"),
        (["--http", "--host", "192.0.2.1"], "cannot listen at 192.0.2.1"),
        (["--http", "--port", "{taken}"], "choose another --host or --port"),
        (["--http", "--port", "0", "--url", "tables.example.org"], "--url must be an address"),
        (["--token-from", "ONE"], "add --http"),
        (["--reader", "support"], "name it with --readers"),
        (["--reader", "nobody", "--readers", "{readers}"], "no reader 'nobody' in"),
        (["--http", "--token-from", "nobody=ONE", "--readers", "{readers}"], "no reader 'nobody' in"),
        (["--readers", "missing.toml"], "cannot be read"),
        (["{tmp}/nothing.sqlite"], "no file or folder"),
        (["--ask"], "set a limit, such as --budget"),
        (["--to", "{tmp}/nowhere"], "must be an existing folder"),
        (["{tmp}", "--to", "{tmp}"], "sources are never written"),
        (["{tmp}", "--to", "{tmp}/inside"], "sources are never written"),
    ],
)
def test_what_cannot_be_served_is_said_at_once(tmp_path: Path, arguments: list[str], says: str):
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "inside").mkdir()
    tokens = {"SHORT": "abc", "ONE": "one-token-of-many", "SAME": "one-token-of-many"}
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        (tmp_path / "readers.txt").write_text(READERS)
        places = {"taken": other.getsockname()[1], "readers": tmp_path / "readers.txt", "tmp": tmp_path}
        filled = [one.format(**places) for one in arguments]
        done = CliRunner().invoke(main, ["mcp", str(tmp_path / "a.csv"), *filled], env=tokens)
    assert done.exit_code == 1
    assert says in done.output
