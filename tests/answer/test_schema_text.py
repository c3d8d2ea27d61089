"""What ``syn`` is shown of tables: their values, their keys, and the cells that hold the question's words."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import Query
from tagframe.answer.guard import Reader
from tagframe.answer.matched_cells import matched_cells
from tagframe.answer.query import names_of
from tagframe.answer.schema_text import describe_keys, describe_tables, sql_name
from tagframe.answer.syn_prompt import read_statement
from tagframe.retrieval import retrieve_tables

CLUBS = pd.DataFrame(
    {
        "club no": ["0041", "0042", "0043", "0044"],
        "town": ["Évora", "Sines", "Tomar", "\x00"],
        "site": [f"https://club.example/{number}" for number in range(4)],
        "secret": ["xyzzy"] * 4,
    }
)
MEMBERS = pd.DataFrame({"member": range(1, 41), "club_no": [41, 42, 43, 44] * 10, "age": range(20, 60)})


@pytest.fixture
def clubs() -> tf.Corpus:
    corpus = tf.open_corpus({"sport.club": CLUBS, "sport.member": MEMBERS, "shop.part": pd.DataFrame({"part": ["a"]})})
    corpus.hide("club.secret")
    return corpus


def told(corpus: tf.Corpus, **chances: float) -> str:
    tables = names_of(corpus)
    given = {f"{id}": chances.get(name) for name, id in tables.items()} if chances else None
    return describe_tables(corpus, tables, given)


def test_values_are_listed_where_they_are_few_and_numbers_by_their_range(clubs):
    shown = told(clubs)
    assert "DATABASE sport\nTABLE club  -- 4 rows" in shown
    assert "\"club no\" TEXT  -- all: '0041', '0042', '0043', '0044'; numbers stored as text" in shown
    assert shown.endswith("  age INTEGER  -- 20 to 59")
    assert "  club_no INTEGER  -- 41 to 44\n" in shown


def test_a_hidden_column_and_raw_control_characters_are_not_shown(clubs):
    shown = told(clubs)
    assert "secret" not in shown
    assert "xyzzy" not in shown
    assert "\x00" not in shown
    assert "char(0)" in shown


def test_of_an_unlikely_table_names_alone_are_shown_and_databases_go_by_chance(clubs):
    shown = told(clubs, club=0.01, member=0.9, part=0.0)
    assert shown.index("DATABASE sport (90%)") < shown.index("DATABASE shop (under 1%)")
    assert 'TABLE club  -- 4 rows, 1%\n  "club no", town, site\n' in shown
    assert "TABLE member  -- 40 rows, 90%\n  member INTEGER  -- 1 to 40" in shown


def test_a_key_between_text_and_number_is_shown_with_its_cast(clubs):
    clubs.keys.add("member.club_no = club.club no")
    assert describe_keys(clubs, names_of(clubs)) == ['member.club_no = CAST(club."club no" AS INTEGER) (many-to-one)']
    rows = tf.exec_sql(clubs)('SELECT member FROM member JOIN club ON member.club_no = CAST(club."club no" AS INTEGER)')
    assert len(rows) == 40


def test_words_of_the_question_are_shown_as_they_are_stored(clubs):
    tables = names_of(clubs)
    said = matched_cells("Which members of the club in évora are there?", Query("", tables), Reader(clubs, tables))
    assert said == ["club.town has 'Évora'"]


def test_a_value_of_a_long_column_is_spelled_as_the_file_has_it(sqlite_file):
    rows = ", ".join(f"({number}, 'Street of Number {number}')" for number in range(1, 3000))
    corpus = tf.open_corpus(
        sqlite_file(f"CREATE TABLE street (id INTEGER, name TEXT); INSERT INTO street VALUES {rows};")
    )
    tables = names_of(corpus)
    found = retrieve_tables("Where is 'street of number 1234'?", corpus, k=1, method="lexical")
    query = Query("", tables, found)
    cells = [words for hit in found for _, words in hit.cells]
    said = matched_cells(found.question, query, Reader(corpus, tables))
    assert said == (["street.name has 'Street of Number 1234'"] if cells else [])


@pytest.mark.parametrize(
    ("name", "dialect", "written"),
    [
        ("title", "sqlite", "title"),
        ("order", "sqlite", '"order"'),
        ("a b", "duckdb", '"a b"'),
        ("A", "postgres", '"A"'),
    ],
)
def test_names_are_quoted_where_they_need_it(name, dialect, written):
    assert sql_name(name, dialect) == written


def test_what_the_first_comments_of_a_statement_say():
    said = read_statement("-- Answer: text\n-- assumed:  ties  count\n-- assumed: none\nSELECT 1 -- one\nFROM t")
    assert said.sql == "SELECT 1 -- one\nFROM t"
    assert said.assumptions == ("ties count",)
    assert said.wants_text is True
    assert read_statement("-- answer: maybe\nSELECT 1").wants_text is None


def test_long_descriptions_of_many_columns_keep_within_the_prompt():
    corpus = tf.open_corpus(schema={"wide": [f"c{number}" for number in range(200)]})
    rows = [("wide", f"c{number}", f"meaning {number} " + "prose " * 90) for number in range(200)]
    corpus.describe(pd.DataFrame(rows, columns=["table", "column", "description"]))
    text = describe_tables(corpus, {"wide": "schema.wide"})
    assert len(text) <= 8_000 * 2.4
    assert "c199 TEXT  -- meaning 199 prose" in text
    many = tf.open_corpus(schema={f"t{number}": ["id"] for number in range(60)})
    many.describe(pd.DataFrame([(f"t{n}", "prose " * 90) for n in range(60)], columns=["table", "description"]))
    text = describe_tables(many, {f"t{number}": f"schema.t{number}" for number in range(60)})
    assert len(text) <= 8_000 * 2.4
    assert "TABLE t59  -- prose" in text


def test_roles_that_the_question_names_have_aliases():
    teams = pd.DataFrame({"team_id": range(1, 31), "title": [f"team {n}" for n in range(30)]})
    sides = {f"{side}_id": [n * step % 30 + 1 for n in range(90)] for side, step in (("home", 1), ("away", 7))}
    corpus = tf.open_corpus({"cup.team": teams, "cup.game": pd.DataFrame({"game_id": range(1, 91), **sides})})
    for side in sides:
        corpus.keys.add(f"game.{side} = team.team_id")
    plain = describe_keys(corpus, names_of(corpus))
    assert sorted(plain) == [f"game.{side} = team.team_id (many-to-one)" for side in ("away_id", "home_id")]
    assert describe_keys(corpus, names_of(corpus), question="titles of the home teams") == plain
    assert sorted(describe_keys(corpus, names_of(corpus), question="titles of home and away team")) == [
        f"team AS {side}: game.{side}_id = {side}.team_id (many-to-one)" for side in ("away", "home")
    ]
