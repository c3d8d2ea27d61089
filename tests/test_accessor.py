"""``df.tag`` as a user calls it, over real HTTP."""

from __future__ import annotations

import inspect
import json
import re

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Request
from tagframe.errors import FactUnknown, InvalidArgument, NotConfigured, RowsFailed


def length(request: Request) -> str:
    """Whether the word of the row is short; of several rows, which are longest."""
    rows = [json.loads(line[line.index("{") :]) for line in request.prompt.split("\n") if line.endswith("}")]
    if "Criterion" in str(request.messages) and request.prompt.startswith("<rows>"):
        longest = sorted(range(len(rows)), key=lambda position: -len(rows[position]["word"]))
        return " > ".join(str(position + 1) for position in longest)
    if "Criterion" in str(request.messages):
        return "A" if len(rows[0]["word"]) > len(rows[1]["word"]) else "B"
    if "Request:" in str(request.messages):
        return f"{len(rows)} words\nSources: all"
    return str(len(rows[0]["word"]) < 4)


@pytest.fixture
def words() -> pd.DataFrame:
    return pd.DataFrame({"word": ["sea", "harbour", "tide", "sky"]}, index=[3, 3, 1, 0])


def test_outcomes_belong_to_the_result(live, words):
    live.answers = length
    result = words.tag.sem_filter("{word} is short")
    assert result.tag.outcomes["outcome"].tolist() == ["yes", "no", "no", "yes"]
    assert result.head(1).tag.outcomes.equals(result.tag.outcomes), "they are of the input's rows"
    with pytest.raises(FactUnknown, match="does not come from an operator"):
        _ = words.tag.outcomes


def test_nonsense_is_asked_once_more_and_then_named(live, words):
    live.answers = lambda request: "Banana." if "tide" in str(request.messages) else length(request)
    with pytest.raises(
        RowsFailed, match=r"1 of 4 rows have no answer.*expected True or False, got 'Banana\.'"
    ) as caught:
        words.tag.sem_filter("{word} is short")
    assert caught.value.frame["word"].tolist() == ["sea", "tide", "sky"]
    assert len(live.requests) == 5

    live.reset()
    live.answers = length
    assert words.tag.sem_filter("{word} is short")["word"].tolist() == ["sea", "sky"]
    assert len(live.requests) == 1, "what was answered is not paid for again"


def test_no_model(words, monkeypatch):
    monkeypatch.delenv("TAGFRAME_LM", raising=False)
    with tf.context(lm=None), pytest.raises(NotConfigured, match=r"tagframe\.configure\(lm="):
        words.tag.sem_filter("{word} is short")


def test_catalogue_brings_its_corpus_along(festival):
    found = festival.tables.query("database == 'bakery'").tag.retrieve_tables(
        "Which films were screened in Porto?", k=2
    )
    assert {hit.id.split(".")[0] for hit in found.tables} == {"bakery"}


def test_the_anchor_is_the_frame_as_it_is_now(festival):
    question = "Which directors made these films?"
    few = festival.read("festival.films", limit=5)
    assert len(few.tag.retrieve_tables(question, k=1, corpus=festival).merge()) == 5
    films = festival.read("festival.films")
    recent = films[films["year"] > films["year"].median()].assign(seen=True)
    found = recent.tag.retrieve_tables(question, k=1, corpus=festival)
    merged = found.merge()
    assert (found.anchor, found[0].id) == ("festival.films", "festival.directors")
    assert merged["title"].tolist() == recent["title"].tolist()
    assert merged["seen"].all()
    assert "seen" not in festival.read("festival.films").columns


def test_a_frame_that_stands_for_a_table_leaves_its_place_to_others(festival):
    films = festival.read("festival.films")[["film_id", "title"]].head(3)
    found = films.tag.retrieve_tables(
        "Which films were screened, and what did critics say of these films?", k=2, corpus=festival
    )
    assert "festival.films" not in [hit.id for hit in found]
    assert len(found) == 2


def test_what_has_none_of_the_tables_columns_stands_for_itself(festival):
    counts = festival.read("festival.films").rename(columns=str.upper)
    found = counts.tag.retrieve_tables("Which directors made these films?", k=1, corpus=festival)
    assert found.anchor == "frame.frame"


def test_two_frames_of_ones_own_have_their_own_names(festival):
    guests = pd.DataFrame({"guest": ["Ana"], "director_id": ["D1"]})
    first = guests.tag.retrieve_tables("director of each guest", k=1, corpus=festival)
    again = guests.tag.retrieve_tables("director of each guest", k=1, corpus=first.corpus)
    assert again.anchor == "frame.frame2"


def test_any_frame_can_be_the_anchor(festival):
    guests = pd.DataFrame({"guest": ["Ana", "Rui", "Eva"], "director_id": ["D1", "D4", "D1"]})
    found = guests.tag.retrieve_tables(
        "From which country is the director that each guest accompanies?", k=1, corpus=festival
    )
    assert [hit.id for hit in found.tables] == ["festival.directors"]
    merged = found.merge()
    assert merged["guest"].tolist() == ["Ana", "Rui", "Eva"]
    assert merged["country"].tolist() == ["Portugal"] * 3
    with tf.context(corpus=festival):
        assert guests.tag.retrieve_tables("From which country is the director?", k=1).ids == found.ids


def test_no_corpus(words):
    with tf.context(corpus=None), pytest.raises(NotConfigured, match="no corpus"):
        words.tag.retrieve_tables("Which words are short?")


def test_a_merge_report_is_of_the_merged_frame_and_of_what_is_taken_from_it(festival):
    merged = festival.tables.tag.retrieve_tables("Who directed which film?", k=2).merge()
    assert "rows in the result" in repr(merged.tag.merge_report)
    taken = merged.query("year > 1900").sort_values("year").head(3)
    assert taken.tag.merge_report == merged.tag.merge_report
    assert "this frame has 3 of them" in repr(taken.tag.merge_report)
    with pytest.raises(FactUnknown, match=r"no merge_report: it does not come from merge\(\)"):
        _ = pd.DataFrame({"a": [1]}).tag.merge_report


def test_what_looks_through_an_accessor_finds_attribute_errors_only(words):
    assert not hasattr(words.tag, "merge_report")
    assert not hasattr(words.tag, "sem_fliter")
    assert dict(inspect.getmembers(words.tag))["sem_filter"]
    assert {"merge", "merge_report", "sem_filter"} <= set(dir(words.tag))


def test_a_quote_of_a_ranking_names_the_worst_case(live):
    frame = pd.DataFrame({"n": [f"{(i * 37) % 101} metres" for i in range(101)]})
    quote = frame.tag.sem_topk("Which {n} is longest?", K=10, quote=True)
    assert quote.calls < quote.calls_at_most < 101 * 100 // 2
    assert f"about {quote.calls} calls, in the worst case {quote.calls_at_most}, for" in str(quote)

    def longest(request: Request) -> str:
        rows = [int(n) for n in re.findall(r'"n": "(\d+) metres"', request.prompt)]
        return " > ".join(str(at + 1) for at in sorted(range(len(rows)), key=lambda at: -rows[at]))

    live.answers = longest
    frame.tag.sem_topk("Which {n} is longest?", K=10)
    assert quote.calls / 2 < len(live.requests) < quote.calls * 2
    assert len(live.requests) <= quote.calls_at_most


def test_a_quote_counts_the_tokens_of_a_filters_own_answers(live):
    """Not those of the long texts that the same model gave before."""
    live.answers = "a long text " * 200
    pd.DataFrame({"n": range(3)}).tag.sem_agg("Summarise {n}")
    frame = pd.DataFrame({"n": range(100)})
    quote = frame.tag.sem_filter("{n} is even", quote=True)
    live.answers = "True"
    before = tf.usage()["tokens_out"].sum()
    frame.tag.sem_filter("{n} is even")
    paid = tf.usage()["tokens_out"].sum() - before
    assert paid <= quote.tokens_out <= 2 * paid


def test_an_operator_asks_for_no_longer_answers_than_it_can_use(live, words):
    live.answers = length
    words.tag.sem_filter("{word} is short")
    assert {request.body["max_tokens"] for request in live.requests} == {16}
    live.reset()
    words.tag.sem_topk("Which {word} is longest?", K=1)
    assert {request.body["max_tokens"] for request in live.requests} == {16 + 8 * len(words)}


def test_the_frame_is_the_anchor_of_its_retrieval():
    with pytest.raises(InvalidArgument, match="the frame is the anchor"):
        pd.DataFrame({"a": [1]}).tag.retrieve_tables("which a?", anchor="a")


def test_the_typed_form_is_the_accessor(live):
    frame = pd.DataFrame({"n": [1, 2]})
    assert isinstance(tf.tag(frame), type(frame.tag))
    assert len(tf.tag(frame).sem_filter("{n} is even")) == 2
    with pytest.raises(InvalidArgument, match=r"tag takes a pandas DataFrame; got Series"):
        tf.tag(frame["n"])
