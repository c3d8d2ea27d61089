"""Which tables a statement names, and the ways in which one may be named."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe import results
from tagframe.engines.duckdb.statement import DUCKDB
from tagframe.engines.postgres import POSTGRES
from tagframe.engines.sql_reader import named_tables, with_known_names
from tagframe.engines.sqlite.statement import SQLITE
from tagframe.errors import SQLFailed, UnsafeSQL

TABLES = {"race": "running.race", "class": "running.class", "riding.club": "riding.club", "chess.club": "chess.club"}


@pytest.mark.parametrize("dialect", [SQLITE, DUCKDB, POSTGRES], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT track_id FROM race WHERE class = 'club'", {"race"}),
        ("SELECT race AS class FROM race", {"race"}),
        ("SELECT 1 FROM race WHERE EXISTS (SELECT 1 FROM class)", {"race", "class"}),
        ("WITH class AS (SELECT 1 AS a) SELECT * FROM class, race", {"race"}),
        ("SELECT * FROM (WITH class AS (SELECT 1 AS a) SELECT * FROM class) AS c, race", {"race"}),
        ("SELECT * FROM (WITH race AS (SELECT 1 AS a) SELECT * FROM race) AS r, race, class", {"race", "class"}),
        ('SELECT c.name FROM "riding.club" AS c', {"riding.club"}),
    ],
)
def test_a_column_an_alias_a_text_and_an_entry_of_with_are_no_tables(sql, read, dialect):
    assert set(named_tables(sql, TABLES, dialect)) == read


@pytest.mark.parametrize("sql", ["EXPORT DATABASE '/tmp/out'", "SELECT * FROM race WHERE (", "", "\x00"])
def test_what_does_not_parse_reads_none_and_is_refused_by_name(sql):
    assert named_tables(sql, TABLES, DUCKDB) == {}
    corpus = tf.open_corpus({"race": pd.DataFrame({"id": [1]})})
    with pytest.raises((UnsafeSQL, SQLFailed)):
        tf.exec_sql(corpus)(sql)


def test_sqlite_reads_the_table_behind_in():
    assert set(named_tables("SELECT 1 FROM race WHERE id IN class", TABLES, SQLITE)) == {"race", "class"}


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("SELECT club.name FROM riding.club", 'SELECT club.name FROM "riding.club" AS "club"'),
        ('SELECT c.name FROM "riding"."club" c', 'SELECT c.name FROM "riding.club" c'),
        ("SELECT riding.club.name FROM Riding.Club", 'SELECT "club".name FROM "riding.club" AS "Club"'),
        ("SELECT running.race.id FROM running.race", 'SELECT "race".id FROM "race"'),
        (
            "SELECT r.id FROM race r WHERE r.note = 'riding.club'",
            "SELECT r.id FROM race r WHERE r.note = 'riding.club'",
        ),
        ("SELECT 1.5 FROM elsewhere.club", "SELECT 1.5 FROM elsewhere.club"),
        ("SELECT FROM WHERE a.b", "SELECT FROM WHERE a.b"),
        (
            "SELECT riding.club.n, chess.club.n FROM riding.club, chess.club",
            'SELECT "riding.club".n, "chess.club".n FROM "riding.club", "chess.club"',
        ),
    ],
)
def test_a_table_may_be_named_with_its_database(sql, known):
    assert with_known_names(sql, TABLES, SQLITE) == known


@pytest.fixture
def clubs(tmp_path):
    riding = pd.DataFrame({"club_id": [1, 2], "name": ["Dressage", "Tölt"]})
    chess = pd.DataFrame({"club_id": [1], "name": ["Zugzwang"]})
    member = pd.DataFrame({"member_id": [5, 6], "club_id": [2, 2], "age": [30, 41]})
    for name, frames in {"riding": {"club": riding, "member": member}, "chess": {"club": chess}}.items():
        (tmp_path / name).mkdir()
        for table, frame in frames.items():
            frame.to_csv(tmp_path / name / f"{table}.csv", index=False)
    return tf.open_corpus(tmp_path / "riding").union(tf.open_corpus(tmp_path / "chess"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM riding.club WHERE club_id = 2",
        'SELECT "riding"."club".name FROM "riding"."club" WHERE riding.club.club_id = 2',
        'SELECT name FROM "riding.club" WHERE club_id = 2',
        "SELECT DISTINCT c.name FROM riding.club AS c JOIN riding.member AS m ON m.club_id = c.club_id",
        "SELECT DISTINCT club.name FROM member JOIN riding.club ON member.club_id = club.club_id",
    ],
)
def test_each_way_of_naming_a_table_gives_its_rows(clubs, sql):
    rows = tf.exec_sql(clubs)(sql)
    assert rows["name"].tolist() == ["Tölt"]


def test_an_answer_names_the_tables_that_its_statement_reads(clubs):
    rows = tf.exec_sql(clubs)("SELECT member_id AS club FROM member WHERE age > 40")
    assert results.recall(rows, "execution").tables == ("riding.member",)


def test_a_table_of_another_database_is_refused_with_those_that_there_are(clubs):
    with pytest.raises(UnsafeSQL, match=r"no table 'golf\.club'.*riding\.club"):
        tf.exec_sql(clubs)("SELECT name FROM golf.club")
