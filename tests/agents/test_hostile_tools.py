"""The hostile statements of the guard's suites once more, as an agent sends them through ``run_sql``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import psycopg
import pytest

import tagframe as tf
from tagframe.agents.tools import Tools
from tagframe.errors import InvalidArgument, NotConfigured, SQLFailed, UnsafeSQL
from tests.answer import test_hostile_duckdb as lake
from tests.answer import test_hostile_postgres as server
from tests.answer import test_hostile_sql as file
from tests.draws import one_of

pytestmark = pytest.mark.slow

REFUSALS = (UnsafeSQL, SQLFailed, InvalidArgument, NotConfigured)


def said(tools: Tools, sql: str) -> tuple[bool, str]:
    """Whether a statement gave rows, and what an agent reads of it beside its own words."""
    try:
        given = tools.call("run_sql", {"sql": sql})
    except REFUSALS as error:
        return False, str(error).replace(sql[:200], "").replace(repr(sql[:200]), "")
    assert given["row_count"] <= 100
    return True, json.dumps(given)


def test_a_file_is_only_read_and_tells_nothing_hidden(tmp_path):
    path = tmp_path / "cinema.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(file.SCRIPT)
    corpus = tf.open_corpus(path).subset(file.TABLES.values())
    corpus = corpus.hide("order.seats")
    tools, before = Tools(corpus, limits=file.LIMITS), path.read_bytes()
    # The statements themselves have a test each; here they come in by another door.
    for sql in one_of(4, file.HOSTILE):
        ran, text = said(tools, sql)
        assert not (ran and sql in (*file.WRITES, *file.HIDDEN, *file.MALFORMED)), sql
        assert "xyzzy" not in text, sql
        assert path.read_bytes() == before, sql
        assert [one.name for one in tmp_path.iterdir()] == [path.name], sql


def test_a_lake_is_only_read_and_tells_nothing_hidden(tmp_path):
    folder = tmp_path / "cinema"
    folder.mkdir()
    corpus = lake.lake(folder)
    corpus = lake.hide(corpus)
    tools, before = Tools(corpus, limits=lake.LIMITS), lake.listing(folder)
    for statement in one_of(8, lake.HOSTILE):
        sql = lake.filled(statement, folder)
        ran, text = said(tools, sql)
        assert not (ran and statement in (*lake.WRITES, *lake.HIDDEN)), sql
        assert lake.SECRET not in text, sql
        assert lake.listing(folder) == before, sql


def test_a_server_is_only_read_and_tells_nothing_hidden(database):
    url = database(server.SCRIPT)
    corpus = tf.open_corpus(url, progress=False).subset(server.TABLES.values())
    corpus = corpus.hide("film.hidden_note")
    tools = Tools(corpus, limits=server.LIMITS)

    def state() -> list[tuple]:
        with psycopg.connect(url, autocommit=True) as owner:
            return owner.execute("SELECT * FROM film ORDER BY id").fetchall()

    before = state()
    for sql in server.HOSTILE:
        ran, text = said(tools, sql)
        assert not (ran and sql in (*server.WRITES, *server.READS, *server.MALFORMED)), sql
        assert "xyzzy" not in text, sql
    assert state() == before
