"""Steps of the user's own, and what an answer looks like."""

from __future__ import annotations

import asyncio

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import Generated
from tagframe.errors import FactUnknown, InvalidArgument
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


def test_an_answer_in_a_notebook(live, festival):
    sql = "SELECT f.title, d.director FROM films f JOIN directors d USING (director_id) WHERE f.title <> '<b>'"
    live.answers = lambda request: (
        sql if "<tables>" in str(request.messages) else '{"text": "Two <script>\\nlines", "values": ["<i>"]}'
    )
    html = tf.ask(QUESTION, festival)._repr_html_()
    assert "WHERE f.title &lt;&gt; &#x27;&lt;b&gt;&#x27;</pre>" in html
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
