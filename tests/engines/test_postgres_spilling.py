"""How much PostgreSQL may write to files for a statement, by the role that runs it."""

from __future__ import annotations

import psycopg
import pytest

import tagframe as tf
from tagframe.answer import SQLLimits
from tagframe.engines.postgres.connection import Server, close_connections, looking, reading
from tagframe.errors import SQLFailed
from tests.answer.guarded import run_sql

pytestmark = pytest.mark.slow

ROLES = {"spills_plain": "-1", "spills_granted": "16GB", "spills_lower": "100MB", "spills_higher": "16GB"}
"""By role: the limit of its connections for merges and profiles."""


@pytest.fixture(scope="module")
def server(postgres):
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS spilling WITH (FORCE)")
        owner.execute("CREATE DATABASE spilling")
        for role in ROLES:
            owner.execute(f"DROP ROLE IF EXISTS {role}")
            owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'read'")
    with psycopg.connect(postgres.url("spilling"), autocommit=True) as owner:
        owner.execute("CREATE TABLE letter AS SELECT g AS id, repeat('x', 1000) AS body FROM generate_series(1, 500) g")
        owner.execute("GRANT SELECT ON letter TO PUBLIC")
        for role in ("spills_granted", "spills_higher"):
            owner.execute(f"GRANT SET ON PARAMETER temp_file_limit TO {role}")
        owner.execute("ALTER ROLE spills_lower SET temp_file_limit = '100MB'")
        owner.execute("ALTER ROLE spills_higher SET temp_file_limit = '50GB'")
    yield postgres
    close_connections()


@pytest.mark.parametrize("connected", [looking, reading])
@pytest.mark.parametrize("role", ROLES)
def test_connections_for_merges_and_profiles_have_a_limit(server, role, connected):
    with connected(Server.of(server.url("spilling", role, "read"))) as held:
        assert held.rows("SELECT current_setting('temp_file_limit') AS most") == [{"most": ROLES[role]}]


@pytest.mark.parametrize("role", [None, "spills_granted", "spills_lower", "spills_higher"])
def test_a_statement_that_writes_too_much_to_files_is_stopped(server, role):
    url = server.url("spilling", role, "read") if role else server.url("spilling")
    corpus = tf.open_corpus(url, progress=False)
    sql = "SELECT count(*) AS n FROM (SELECT a.body FROM letter AS a, letter AS b ORDER BY a.body, b.body) AS q"
    with pytest.raises(SQLFailed, match="what the server writes to files is too large"):  # 250 MB
        run_sql(sql, corpus, {"letter": "public.letter"}, SQLLimits(memory=64, seconds=60))
