"""The papers' baselines: Text2SQL and RAG, as special cases of TAG."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.baselines import PaperGen, rag, text2sql
from tagframe.errors import AnswerRejected, EmptyCorpus, InvalidArgument, SQLFailed, UnsafeSQL
from tests.letters import Letters

QUESTION = "Which romance earned the most?"


def test_text2sql_has_the_prompt_of_the_paper(live, festival):
    live.answers = "count(*) FROM venues WHERE city = 'Lisbon'"
    answer = text2sql(festival, ["festival.venues"], knowledge="Lisbon is a city")("How many venues are in Lisbon?")
    assert answer.values == [1]
    prompt = live.requests[0].prompt
    assert prompt.startswith("CREATE TABLE venues\n(\n    venue_id ")
    assert prompt.endswith(
        "-- External Knowledge: Lisbon is a city\n-- Using valid SQLite and understading External Knowledge, answer "
        "the following questions for the tables provided above\n-- How many venues are in Lisbon?\nSELECT"
    )
    assert "films" not in prompt


def test_text2sql_over_retrieved_tables_has_jars_prompt(live, festival):
    part = festival.subset(["festival.films", "festival.genres"])
    found = part.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")
    live.answers = "Think.\nSELECT title FROM films LIMIT 1"
    answer = text2sql(festival, found, prompt="jar")(QUESTION)
    assert answer.values == ["Low Tide at Nazaré"]
    (first,) = live.requests
    assert "Generate SQL given the question, tables, and external knowledge" in first.prompt
    assert "title TEXT: " in first.prompt or "title object: " in first.prompt
    example = first.prompt.split("CREATE TABLE singer(\n")[1].split(")\n\n")[0]
    assert first.prompt.startswith("// TASK INSTRUCTION\nGenerate SQL")
    assert "\n\n// 1-SHOT PSEUDO EXAMPLE\nCREATE TABLE singer(" in first.prompt
    assert first.prompt.endswith(f", ...)\n\nExternal knowledge: None\n\nQuestion: {QUESTION}\n\nAnswer:")
    assert [line.split()[0] for line in example.splitlines()] == [
        *("singer_id", "nation", "sname", "dname", "cname", "age", "year", "birth_year"),
        *("salary", "city", "phone_number", "tax"),
    ], "the whole example of appendix A.2"


def test_the_samples_in_jars_prompt_are_literals_of_what_is_stored(live, tmp_path):
    file = tmp_path / "schools.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE school (code TEXT, species TEXT, note TEXT, pupils INTEGER)")
        connection.execute("INSERT INTO school VALUES ('0622710', ' ASY', 'two' || char(10) || 'lines', 7)")
        connection.commit()
    live.answers = ["SELECT code FROM school WHERE code = '0622710'"]
    assert text2sql(tf.open_corpus(file), prompt="jar")("Which school?").values == ["0622710"]
    (table,) = [part for part in live.requests[0].prompt.split("CREATE TABLE ") if part.startswith("school(")]
    assert table.split("\n\n")[0].removesuffix(")").splitlines()[1:] == [
        "  code TEXT: '0622710', ...,",
        "  species TEXT: ' ASY', ...,",
        "  note TEXT: a text with char(10), ...,",
        "  pupils INTEGER: 7, ...",
    ]


@pytest.mark.parametrize(
    ("said", "error", "match"),
    [
        ("SELECT nix FROM films", SQLFailed, "no such column: nix"),
        ("SELECT 1; DROP TABLE films", UnsafeSQL, "one SELECT statement, got 2"),
    ],
)
def test_text2sql_repairs_no_statement_as_the_papers_do_not(live, festival, said, error, match):
    live.answers = [said, "SELECT title FROM films LIMIT 1"]
    with pytest.raises(error, match=match):
        text2sql(festival, ["festival.films"])(QUESTION)
    assert len(live.requests) == 1


def test_text2sql_with_an_answer_written_from_the_rows(live, festival):
    live.answers = ["title FROM films WHERE film_id < 103", '["Low Tide at Nazaré", 2]']
    answer = text2sql(festival, ["festival.films"], gen=PaperGen())("Which films?")
    assert answer.values == ["Low Tide at Nazaré", 2]
    prompt = live.requests[1].prompt
    assert prompt.startswith("You will be given a list of data points and a question.")
    assert "Data Point 2:\n- title: The Lamplighter's Ledger\nQuestion: Which films?" in prompt


def test_an_unknown_prompt_is_named(festival):
    with pytest.raises(InvalidArgument, match="'bird' or 'jar'"):
        text2sql(festival, prompt="spider")


def test_rag_answers_from_the_nearest_rows(live, festival):
    live.answers = '["Lisbon"]'
    tag = rag(festival, k=3, tables=["festival.venues", "festival.directors"])
    answer = tag("In which city is the venue Cine Farol?")
    assert answer.values == ["Lisbon"]
    assert answer.rows["table"].iloc[0] == "festival.venues"
    assert "- venue: Cine Farol" in answer.rows["row"].iloc[0]
    assert len(answer.rows) == 3
    assert "Data Point 3:\n- " in live.requests[0].prompt
    live.answers = "No list"
    with pytest.raises(AnswerRejected, match="expected a list of values"):
        tag("In which city is Kino Aurora?")
    live.answers = "A text."
    assert rag(festival, k=1, tables=["festival.venues"], aggregate=True)("Tell me of Kino Aurora.").text == "A text."


def test_rag_reranks_by_the_models_scores(live, festival):
    live.answers = lambda request: (
        ("0.9" if "Malmö" in request.prompt else "0.1") if "<row>" in request.prompt else '["x"]'
    )
    answer = rag(festival, k=4, rerank=True, tables=["festival.venues"])("Which venue?")
    assert "Malmö" in answer.rows["row"].iloc[0]
    assert answer.rows["score"].tolist() == [0.9, 0.1, 0.1, 0.1]
    assert [step.calls for step in answer.steps] == [0, 4, 1]


SCRIPT = """
CREATE TABLE town (name TEXT, country TEXT);
INSERT INTO town VALUES ('Lisbon', 'Portugal'), ('Porto', 'Portugal'), ('Porto', 'Portugal'), ('Oslo', 'Norway');
CREATE TABLE empty (x TEXT);
"""


@pytest.fixture
def towns(sqlite_file):
    return sqlite_file(SCRIPT, "towns.sqlite")


def test_a_text_is_encoded_once_and_its_rows_are_all_found(towns):
    embedder = Letters()
    exec = rag(tf.open_corpus(towns), embedder=embedder, k=3).exec
    indexed, found = exec.index(), exec("Porto Portugal")
    assert sorted(embedder.asked[:3], key=len) == [
        "- name: Oslo\n- country: Norway",
        "- name: Porto\n- country: Portugal",
        "- name: Lisbon\n- country: Portugal",
    ]
    assert (len(indexed.rows), len(indexed.vectors)) == (4, 3)
    assert found["row"].str.contains("Porto").tolist() == [True, True, False]
    assert found["table"].unique().tolist() == ["towns.town"]


def test_hidden_columns_are_in_no_vector(towns):
    corpus = tf.open_corpus(towns)
    corpus = corpus.hide("town.country")
    embedder = Letters()
    rag(corpus, embedder=embedder).exec.index()
    assert embedder.asked
    assert not any("country" in text for text in embedder.asked)


@pytest.mark.parametrize("frame", [pd.DataFrame({"x": []}), pd.DataFrame({"x": [None, None]})])
def test_tables_that_say_nothing_are_named(frame):
    with pytest.raises(EmptyCorpus, match=r"no rows to search in frames\.a"):
        rag(tf.open_corpus({"a": frame}), embedder=Letters()).exec("x")


def test_cells_of_any_kind_are_searched():
    odd = pd.DataFrame({"x": ["a\ud800b", b"\xff", {"b": 1}, None, "z" * 1_000_000], "y": [None] * 4 + ["c"]})
    found = rag(tf.open_corpus({"a": odd}), embedder=Letters(), k=10).exec("a b")
    assert len(found) == 4
    assert found["score"].is_monotonic_decreasing


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1.5}, {"k": True}])
def test_numbers_of_rows_are_whole_and_at_least_one(towns, wrong):
    with pytest.raises(InvalidArgument, match="must be a number of rows, at least 1"):
        rag(tf.open_corpus(towns), **wrong)
