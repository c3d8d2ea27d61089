"""What speaks against an answer, found without a model; and how sure its tables are."""

from __future__ import annotations

import json
import pickle
import warnings

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.doubts import doubts_of
from tagframe.answer.tables_confidence import confidence_in, features_of
from tagframe.errors import DoubtedAnswer, DoubtWarning, InvalidArgument
from tagframe.retrieval import RetrievedTables, TableHit

CLUBS = pd.DataFrame({"club_id": [1, 2, 3], "name": ["Dressage", "Polo", "Tölt"], "coach_id": [7, None, 8]})
COACHES = pd.DataFrame({"coach_id": [7, 8, 9], "coach": ["Ann", "Bo", "Cy"], "wins": [3, 5, 5]})
MEMBERS = pd.DataFrame(
    {"member_id": [11, 12, 13, 14], "club_id": [1, 1, 3, 3], "town": ["Oslo", "Oslo", "Bergen", "Oslo"]}
)


@pytest.fixture
def clubs():
    return tf.open_corpus({"club": CLUBS, "coach": COACHES, "member": MEMBERS})


def kinds(corpus, sql, found=None):
    return [(doubt.reason, doubt.facts) for doubt in doubts_of(tf.exec_sql(corpus)(sql), found)]


@pytest.mark.parametrize(
    ("sql", "doubts"),
    [
        ("SELECT name FROM club WHERE club_id > 1", []),
        ("SELECT name FROM club WHERE name = 'Polo'", []),
        ("SELECT DISTINCT c.name FROM member m JOIN club c ON c.club_id = m.club_id", []),
        (
            "SELECT name FROM club WHERE name = 'polo'",
            [("value", "no cell of club.name has the value 'polo'"), ("empty", "the statement gives no rows")],
        ),
        ("SELECT count(*) FROM club WHERE name <> 'Pollo'", [("value", "no cell of club.name has the value 'Pollo'")]),
        ("SELECT count(*) FROM club WHERE name = 'Polo' OR name = 'Pollo'", []),
        ("SELECT CASE WHEN name = 'Pollo' THEN 1 ELSE 0 END AS p FROM club", []),
        ("SELECT max(wins) FROM coach WHERE wins > 9", [("empty", "the statement gives only NULL")]),
        (
            "SELECT club.name, coach.coach FROM club JOIN coach USING (coach_id)",
            [("reading", "rows of club without a match are left out; with them, there would be 3 rows instead of 2")],
        ),
        (
            "SELECT c.name, count(*) FROM member m JOIN club c ON m.club_id = c.club_id GROUP BY c.name",
            [("reading", "rows of club without a match are left out; with them, there would be 3 rows instead of 2")],
        ),
        (
            "SELECT m.town FROM member m JOIN club c ON m.club_id = c.club_id WHERE c.name = 'Dressage'",
            [("reading", "the 2 rows contain duplicates (1 distinct)")],
        ),
        (
            "SELECT count(m.town) AS n FROM member m JOIN club c ON m.club_id = c.club_id",
            [("reading", "duplicates are counted; with count(DISTINCT m.town), it would be 2 instead of 4")],
        ),
        (
            "SELECT coach FROM coach ORDER BY wins DESC LIMIT 1",
            [("reading", "1 further row ties with row 1 in ORDER BY")],
        ),
        ("SELECT wins FROM coach ORDER BY wins DESC LIMIT 1", []),
        ("SELECT coach FROM coach ORDER BY wins DESC, coach LIMIT 1", []),
        ("SELECT coach, wins AS w FROM coach ORDER BY w, 1 LIMIT 1", []),
    ],
)
def test_a_statement_is_doubted_for_what_can_be_looked_up(clubs, sql, doubts):
    assert kinds(clubs, sql) == doubts


def test_a_join_by_no_key_is_doubted(clubs):
    assert kinds(clubs, "SELECT 1 AS n FROM club, coach WHERE club_id = wins")[0] == (
        "join",
        "low-confidence key frames.club.club_id = frames.coach.wins (0%); "
        "likelier: frames.club.coach_id = frames.coach.coach_id (95%)",
    )


def test_statements_that_cannot_be_followed_are_not_doubted_by_mistake(clubs):
    for sql in (
        "SELECT name FROM club UNION SELECT coach FROM coach",
        "WITH c AS (SELECT * FROM club WHERE name = 'Polo') SELECT count(*) FROM c",
        "SELECT name, (SELECT count(*) FROM member m WHERE m.club_id = club.club_id) AS n FROM club",
        "SELECT 1 AS one",
        "SELECT name, rank() OVER (ORDER BY club_id) AS r FROM club LIMIT 2",
    ):
        assert kinds(clubs, sql) == []


def found(corpus, **chances):
    hits = tuple(TableHit(id, 1.0, probability=chance) for id, chance in chances.items())
    return RetrievedTables("which clubs?", hits, corpus)


@pytest.fixture
def two(tmp_path):
    for database, frames in {"riding": {"club": CLUBS, "member": MEMBERS}, "chess": {"club": CLUBS}}.items():
        (tmp_path / database).mkdir()
        for name, frame in frames.items():
            frame.to_csv(tmp_path / database / f"{name}.csv", index=False)
    return tf.open_corpus(tmp_path / "riding").union(tf.open_corpus(tmp_path / "chess"))


def test_tables_and_databases_that_may_be_meant_are_named(two):
    sql = 'SELECT name FROM "riding.club" WHERE club_id > 0'
    sure = found(two, **{"riding.club": 0.9, "chess.club": 0.05, "riding.member": 0.7})
    assert kinds(two, sql, sure) == []
    rival = found(two, **{"riding.club": 0.4, "chess.club": 0.6, "riding.member": 0.7})
    assert kinds(two, sql, rival) == [
        ("table", "riding.member (70% likely) is not read; riding.club (40% likely) is"),
        ("database", "another database may be meant: chess.club (60% likely)"),
    ]


def test_confidence_rises_with_the_chances_of_what_is_read_and_falls_with_those_of_what_is_not(two):
    known = found(two, **{"riding.club": 0.95, "riding.member": 0.9, "chess.club": 0.01})
    both, one = ["riding.club", "riding.member"], ["riding.club"]
    assert confidence_in(both, known) > confidence_in(one, known)
    assert confidence_in(both, known) > confidence_in([*both, "chess.club"], known)
    assert 0 < confidence_in(both, known) < 1
    assert confidence_in([], known) is None
    assert confidence_in(one, found(two, **{"riding.club": None})) is None
    assert len(features_of(both, known)) == 9


class Model:
    """Writes one statement, and a text about its rows."""

    def __init__(self, sql):
        self.sql = sql

    def __call__(self, request):
        if "<tables>" in request.prompt:
            return f"```sql\n-- answer: values\n{self.sql}\n```"
        return json.dumps({"text": "A text.", "values": []})


TIED = "SELECT coach FROM coach ORDER BY wins DESC LIMIT 1"


def test_an_answer_says_its_doubts_wherever_it_is_shown(live, clubs):
    live.answers = Model(TIED)
    answer = tf.ask("Who has won most?", clubs)
    (doubt,) = answer.doubts
    assert doubt.reason == "reading"
    assert f"\ndoubt: {doubt.facts}\n" in repr(answer)
    assert f"doubt:    {doubt.facts}" in answer.explain()
    assert f"doubt: {doubt.facts}" in answer._repr_html_()
    assert answer.to_dict()["doubts"] == [{"reason": "reading", "facts": doubt.facts}]
    assert answer.confidence is None
    assert answer.to_dict()["confidence"] is None
    assert pickle.loads(pickle.dumps(answer)).doubts == answer.doubts


def test_a_doubt_is_kept_warned_of_or_raised(live, clubs):
    live.answers = Model(TIED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.ask("Who has won most?", clubs)
    with pytest.warns(DoubtWarning, match="1 further row"):
        tf.ask("Who has won most?", clubs, on_doubt="warn")
    with pytest.raises(DoubtedAnswer, match="1 further row") as error:
        tf.ask("Who has won most?", clubs, on_doubt="raise")
    assert error.value.answer.values == ["Bo"]
    (kept,) = tf.ask_many(["Who has won most?"], clubs, on_doubt="raise")
    assert isinstance(kept, DoubtedAnswer)
    with pytest.raises(InvalidArgument, match="on_doubt must be 'keep', 'warn' or 'raise'; got 'no'"):
        tf.ask("Who has won most?", clubs, on_doubt="no")


def test_confidence_is_of_the_tables_that_were_found(live, clubs):
    live.answers = Model("SELECT name FROM club")
    answer = tf.ask("Which names have the clubs?", clubs, k=2)
    assert 0 < answer.confidence < 1
    assert f", {answer.confidence:.0%} likely the right tables" in repr(answer)
    assert answer.to_dict()["confidence"] == round(answer.confidence, 4)


def test_values_that_were_not_judged_are_a_doubt(live, clubs):
    live.answers = lambda request: "unsure"
    rows = tf.exec_sql(clubs, on_error="keep")("SELECT coach FROM coach WHERE sem_filter('{coach} is a name')")
    assert "unsure" in {doubt.reason for doubt in doubts_of(rows, None)}


SCRIPT = """
CREATE TABLE club (club_id integer, name text, coach_id integer);
INSERT INTO club VALUES (1, 'Dressage', 7), (2, 'Polo', NULL), (3, 'Tölt', 8);
CREATE TABLE coach (coach_id integer, coach text, wins integer);
INSERT INTO coach VALUES (7, 'Ann', 3), (8, 'Bo', 5), (9, 'Cy', 5);
"""


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_other_engines_are_looked_up_in_their_own_words(kind, request):
    if kind == "duckdb":
        corpus = tf.open_corpus({"club": CLUBS, "coach": COACHES}, engine="duckdb")
    else:
        corpus = tf.open_corpus(request.getfixturevalue("database")(SCRIPT))
    for sql, reasons in [
        ("SELECT c.name, o.coach FROM club AS c JOIN coach AS o USING (coach_id)", ["reading"]),
        (
            "SELECT o.coach, count(c.name) FROM club c JOIN coach o ON c.coach_id = o.coach_id GROUP BY o.coach",
            ["reading"],
        ),
        ("SELECT coach FROM coach ORDER BY wins DESC NULLS LAST LIMIT 1", ["reading"]),
        ("SELECT name FROM club WHERE name ILIKE 'pollo'", ["value", "empty"]),
        ("SELECT name FROM club WHERE name ILIKE 'polo'", []),
    ]:
        assert [reason for reason, _ in kinds(corpus, sql)] == reasons, sql


def test_what_a_model_judged_is_not_asked_again_for_another_reading(live, clubs):
    live.answers = lambda request: "True"
    sql = "SELECT coach FROM coach WHERE sem_filter('{coach} is a name') ORDER BY wins DESC LIMIT 1"
    rows = tf.exec_sql(clubs)(sql)
    sent = len(live.requests)
    assert [doubt.reason for doubt in doubts_of(rows, None)] == ["reading"]
    assert len(live.requests) == sent


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        ("SELECT [1, 2] AS l FROM club c JOIN coach o ON c.coach_id = o.coach_id", ["reading", "reading"]),
        ("SELECT {'a': wins} AS s, coach FROM coach ORDER BY wins DESC LIMIT 1", ["reading"]),
        ("SELECT coach FROM coach ORDER BY wins DESC LIMIT 1.0", []),
    ],
)
def test_odd_cells_and_numbers_cost_no_answer(sql, reasons):
    corpus = tf.open_corpus({"club": CLUBS, "coach": COACHES}, engine="duckdb")
    assert [reason for reason, _ in kinds(corpus, sql)] == reasons
