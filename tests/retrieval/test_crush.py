import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Server
from tagframe.errors import AnswerRejected
from tagframe.lm import LM
from tagframe.retrieval import Question, retrieve_tables
from tagframe.retrieval.methods.crush import imagine, parse_schema, segments


def test_segments_are_tables_with_their_columns():
    assert segments(["singers(id, full name)", "songs()", " concert "]) == (
        "singers:id",
        "singers:full name",
        "songs",
        "concert",
    )


def test_an_answer_is_read_line_by_line_and_prose_is_left_out():
    answer = "Here is the schema:\nsinger(id, name)\nconcert(year)\nThat is all."
    assert parse_schema(answer) == ("singer:id", "singer:name", "concert:year")


def test_an_answer_without_a_table_is_rejected():
    with pytest.raises(AnswerRejected, match="none"):
        parse_schema("I cannot know.")


def test_the_tables_that_cover_an_imagined_schema_are_found(words):
    corpus = tf.open_corpus(
        {
            "music.singer": pd.DataFrame({"singer_id": [1], "name": ["Ann"]}),
            "music.stadium": pd.DataFrame({"stadium_id": [1], "capacity": [10]}),
            "shop.part": pd.DataFrame({"part": ["bolt"], "price": [1.5]}),
        }
    )
    schema = ["singer(singer id, name)", "stadium(capacity)"]
    found = retrieve_tables("Who sang?", corpus, k=2, method="crush", decomposition=schema, embedder=words)
    assert {hit.id for hit in found.tables} == {"music.singer", "music.stadium"}


def test_a_model_imagines_and_a_failed_call_leaves_rules():
    with Server(lambda request: "singer(id, name)") as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        assert imagine(lm, Question.of("Who sang?")).subqueries == ("singer:id", "singer:name")
    with Server(lambda request: "no idea") as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        with pytest.warns(UserWarning, match="by rules"):
            assert imagine(lm, Question.of("Who sang?")).origin == "rules"
