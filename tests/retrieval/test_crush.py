import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Server
from tagframe.errors import AnswerRejected
from tagframe.lm import LM
from tagframe.retrieval import Question, retrieve_tables
from tagframe.retrieval.index import index_of
from tagframe.retrieval.methods.crush import CANDIDATES, CRUSH, crush, imagine, parse_schema, segments
from tagframe.retrieval.problem import SelectionProblem


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
    found = retrieve_tables("Who sang?", corpus, k=2, method=CRUSH(schema=schema), embedder=words)
    assert {hit.id for hit in found.tables} == {"music.singer", "music.stadium"}


def test_a_model_imagines_and_a_failed_call_leaves_rules():
    with Server(lambda request: "singer(id, name)") as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        assert imagine(lm, Question.of("Who sang?")).subqueries == ("singer:id", "singer:name")
    with Server(lambda request: "no idea") as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        with pytest.warns(UserWarning, match="by rules"):
            assert imagine(lm, Question.of("Who sang?")).origin == "rules"


HIGHSCHOOLER, FRIEND, PERSONFRIEND = range(3)
SEGMENTS = np.array(
    [[0.5313, 0.5297, 0.5291], [0.5861, 0.6121, 0.5377], [0.5490, 0.6065, 0.5500], [0.5344, 0.5844, 0.5597]]
)
"""Table 6 of Boutaleb et al.: segments by tables."""


def test_the_example_of_the_iterative_paper_is_chosen_as_printed():
    chosen = crush(SelectionProblem(r=SEGMENTS.max(axis=0), fine=SEGMENTS), 3)
    assert chosen.indices == (FRIEND, PERSONFRIEND, HIGHSCHOOLER)
    assert np.argsort(-chosen.score).tolist() == [0, 1, 2]


def test_a_segment_that_fits_everything_weighs_less_than_one_that_fits_few():
    fine = np.array([[0.60, 0.60, 0.60, 0.60], [-0.9, 0.59, -0.9, -0.9]])
    assert crush(SelectionProblem(r=fine.max(axis=0), fine=fine), 2).indices == (1, 0)


def test_covered_segments_count_again_once_all_are_covered():
    fine = np.array([[0.9, 0.8, 0.7, 0.1]])
    assert crush(SelectionProblem(r=fine[0], fine=fine)).indices == (0, 1, 2, 3)
    assert crush(SelectionProblem(r=fine[0])).indices == (0, 1, 2, 3)  # no segments


def test_an_anchor_covers_its_best_segment():
    fine = np.array([[0.9, 0.85, 0.1], [0.2, 0.1, 0.3]])
    anchor = np.array([True, False, False])
    assert crush(SelectionProblem(r=fine.max(axis=0), fine=fine), 1).indices == (0,)
    assert crush(SelectionProblem(r=fine.max(axis=0), fine=fine, anchor=anchor), 1).indices == (2,)


def test_it_chooses_among_the_hundred_tables_with_the_best_segment(words):
    frames = {f"a.t{number:03}": pd.DataFrame({f"word{number}": [1]}) for number in range(CANDIDATES + 20)}
    index = index_of(tf.open_corpus({**frames, "a.singer": pd.DataFrame({"singer": [1]})}), words)
    method = CRUSH(schema=["singer"])
    asked = method.read(Question.of("singer"), None)
    scores = method.relevance(index, asked, None)
    prepared = method.prepare(index, asked, scores, None, 5)
    assert len(prepared.tables) == CANDIDATES
    assert index.position("a.singer") in prepared.tables
    assert len(method.prepare(index, asked, scores, None, CANDIDATES + 3).tables) == CANDIDATES + 3
    assert index.position("a.t119") in method.prepare(index, asked, scores, index.position("a.t119"), 5).tables
