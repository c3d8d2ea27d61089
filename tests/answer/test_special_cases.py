"""Text2SQL and RAG as special cases of TAG, steps of the user's own, and what an answer looks like."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import Generated
from tagframe.errors import AnswerRejected, FactUnknown, InvalidArgument, SQLFailed, UnsafeSQL
from tagframe.lm import Batch, Prompt, get_lm
from tagframe.operators import gather

QUESTION = "Which romance earned the most?"
SQL = "SELECT title FROM films WHERE genre_code = 'ROM' ORDER BY box_office DESC LIMIT 1"


def test_each_step_may_be_the_users_alone(festival):
    tag = tf.TAG(syn=lambda question: SQL, exec=tf.exec_sql(festival), gen=None)
    answer = tag(QUESTION)
    assert (answer.text, answer.values, answer.value) == ("Salt Road", ["Salt Road"], "Salt Road")
    assert [(step.name, step.calls) for step in answer.steps] == [("syn", 0), ("exec", 0)]
    assert answer.sources[["table", "value", "row"]].values.tolist() == [["festival.films", "103", 0]]
    assert answer.query == SQL


@pytest.mark.parametrize(
    ("said", "text", "values"),
    [
        ("Salt Road.", "Salt Road.", []),
        (["Salt Road", 103], "Salt Road, 103", ["Salt Road", 103]),
        (7, "7", [7]),
        (Generated("Seven.", (7,)), "Seven.", [7]),
    ],
)
def test_gen_may_give_a_text_values_or_both(festival, said, text, values):
    answer = tf.TAG(lambda question: SQL, tf.exec_sql(festival), lambda question, rows: said)(QUESTION)
    assert (answer.text, answer.values) == (text, values)


def test_a_step_may_ask_the_model_as_ours_do(live, festival):
    """A generator is asked beside what other questions ask, and is counted."""

    def syn(question):
        completion = (yield from gather(Batch([Prompt.of(f"Which table? {question}")])))[0]
        return f"SELECT count(*) AS n FROM {completion.value}"

    live.answers = lambda request: "films" if "films" in request.prompt else "critics"
    tag = tf.TAG(syn, tf.exec_sql(festival))
    first, second = tag.many(["How many films?", "How many critics?"])
    assert (first.value, second.value) == (12, 6)
    assert [step.calls for step in first.steps] == [1, 0]
    assert asyncio.run(tag.awaited("How many films?")).value == 12


def test_rows_of_a_users_exec_have_no_sources(festival):
    films = festival.read("festival.films")
    answer = tf.TAG(lambda question: "year > 2020", films.query)("What is new?")
    assert len(answer.rows) == 2
    assert answer.tables == []
    with pytest.raises(FactUnknown, match="not run by exec_sql"):
        answer.sources  # noqa: B018 - a property that raises


def test_many_requests_are_a_list(festival):
    with pytest.raises(InvalidArgument, match="a list of texts"):
        tf.TAG(lambda question: SQL, tf.exec_sql(festival)).many(QUESTION)


def test_text2sql_has_the_prompt_of_the_paper(live, festival):
    live.answers = "count(*) FROM venues WHERE city = 'Lisbon'"
    answer = tf.text2sql(festival, ["festival.venues"], knowledge="Lisbon is a city")("How many venues are in Lisbon?")
    assert answer.values == [1]
    prompt = live.requests[0].prompt
    assert prompt.startswith("CREATE TABLE venues\n(\n    venue_id ")
    assert prompt.endswith(
        "-- External Knowledge: Lisbon is a city\n-- Using valid SQLite and understanding External Knowledge, answer "
        "the following questions for the tables provided above\n-- How many venues are in Lisbon?\nSELECT"
    )
    assert "films" not in prompt


def test_text2sql_over_retrieved_tables_has_values_and_keys(live, festival):
    part = festival.subset(["festival.films", "festival.genres"])
    found = part.tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")
    live.answers = ["SELECT nix FROM films", "Think.\nSELECT title FROM films LIMIT 1"]
    answer = tf.text2sql(festival, found, prompt="jar", repair=True)(QUESTION)
    assert answer.values == ["Low Tide at Nazaré"]
    first, second = live.requests
    assert "Generate SQL given the question, tables, and external knowledge" in first.prompt
    assert "title TEXT: " in first.prompt or "title object: " in first.prompt
    example = first.prompt.split("CREATE TABLE singer(\n")[1].split(")\n\n")[0]
    assert [line.split()[0] for line in example.splitlines()] == [
        *("singer_id", "nation", "sname", "dname", "cname", "age", "year", "birth_year"),
        *("salary", "city", "phone_number", "tax"),
    ], "the whole example of appendix A.2"
    assert "no such column: nix" in second.prompt


def test_the_samples_in_jars_prompt_are_literals_of_what_is_stored(live, tmp_path):
    file = tmp_path / "schools.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE school (code TEXT, species TEXT, note TEXT, pupils INTEGER)")
        connection.execute("INSERT INTO school VALUES ('0622710', ' ASY', 'two' || char(10) || 'lines', 7)")
        connection.commit()
    live.answers = ["SELECT code FROM school WHERE code = '0622710'"]
    assert tf.text2sql(tf.open_corpus(file), prompt="jar")("Which school?").values == ["0622710"]
    (table,) = [part for part in live.requests[0].prompt.split("CREATE TABLE ") if part.startswith("school(")]
    assert table.split("\n\n")[0].removesuffix(")").splitlines()[1:] == [
        "code TEXT: '0622710',",
        "species TEXT: ' ASY',",
        "note TEXT: a text with char(10),",
        "pupils INTEGER: 7",
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
        tf.text2sql(festival, ["festival.films"])(QUESTION)
    assert len(live.requests) == 1


def test_text2sql_with_an_answer_written_from_the_rows(live, festival):
    live.answers = ["title FROM films WHERE film_id < 103", '["Low Tide at Nazaré", 2]']
    answer = tf.text2sql(festival, ["festival.films"], gen=tf.answer.PaperGen())("Which films?")
    assert answer.values == ["Low Tide at Nazaré", 2]
    prompt = live.requests[1].prompt
    assert prompt.startswith("You will be given a list of data points and a question.")
    assert "Data Point 2:\n- title: The Lamplighter's Ledger\nQuestion: Which films?" in prompt


def test_an_unknown_prompt_is_named(festival):
    with pytest.raises(InvalidArgument, match="'bird' or 'jar'"):
        tf.text2sql(festival, prompt="spider")


def test_rag_answers_from_the_nearest_rows(live, festival):
    live.answers = '["Lisbon"]'
    tag = tf.rag(festival, k=3, tables=["festival.venues", "festival.directors"])
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
    assert (
        tf.rag(festival, k=1, tables=["festival.venues"], aggregate=True)("Tell me of Kino Aurora.").text == "A text."
    )


def test_rag_reranks_by_the_models_scores(live, festival):
    live.answers = lambda request: (
        ("0.9" if "Malmö" in request.prompt else "0.1") if "<row>" in request.prompt else '["x"]'
    )
    answer = tf.rag(festival, k=4, rerank=True, tables=["festival.venues"])("Which venue?")
    assert "Malmö" in answer.rows["row"].iloc[0]
    assert answer.rows["score"].tolist() == [0.9, 0.1, 0.1, 0.1]
    assert [step.calls for step in answer.steps] == [0, 4, 1]


def test_an_answer_in_a_notebook(live, festival):
    sql = "SELECT f.title, d.director FROM films f JOIN directors d USING (director_id) WHERE f.title <> '<b>'"
    live.answers = lambda request: (
        sql if "<tables>" in str(request.messages) else '{"text": "Two <script>\\nlines", "values": ["<i>"]}'
    )
    html = tf.ask(QUESTION, festival)._repr_html_()
    assert "<b>SELECT</b> f.title" in html
    assert "<i>&#x27;&lt;b&gt;&#x27;</i>" in html
    assert "Two &lt;script&gt;\nlines" in html
    assert "<script" not in html
    assert html.count("<svg") == 1
    assert "12 rows of festival.directors, festival.films, the first 10 are shown" in html


def test_sources_of_groups_are_those_in_the_result(festival):
    exec_sql = tf.exec_sql(festival)
    gen = tf.TAG(lambda question: question, exec_sql)
    answer = gen("SELECT genre_code AS g, count(*) AS n FROM films GROUP BY g ORDER BY n DESC LIMIT 1")
    films = festival.read("festival.films")
    expected = films[films["genre_code"] == answer.rows["g"].iloc[0]]["film_id"].astype(str)
    assert answer.sources["value"].tolist() == expected.tolist()
    assert answer.sources["row"].isna().all()
    inner = gen("SELECT count(*) AS n FROM (SELECT DISTINCT director_id FROM films)")
    assert inner.sources.astype(object).where(inner.sources.notna(), None).values.tolist() == [
        ["festival.films", None, None, None]
    ]


def test_a_model_that_is_missing_is_said_only_where_one_is_asked(festival, monkeypatch):
    monkeypatch.delenv("TAGFRAME_LM", raising=False)
    with tf.context(lm=None):
        assert tf.TAG(lambda question: SQL, tf.exec_sql(festival))(QUESTION).value == "Salt Road"
        with pytest.raises(tf.errors.NotConfigured):
            get_lm()


def test_plain_values(festival):
    rows = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "day": pd.to_datetime(["2026-01-02", None])})
    answer = tf.TAG(lambda question: "", lambda query: rows)("?")
    assert answer.values == [1, "2026-01-02T00:00:00", None, None]
