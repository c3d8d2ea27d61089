import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Reply, Server
from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.errors import NotConfigured
from tagframe.lm import LM
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.index import RetrievalIndex, index_of
from tagframe.retrieval.methods.murre import (
    MURRE,
    linearised,
    murre,
    parse_completion,
    prompt_of,
    rewritten,
    spliced,
    without_found,
)
from tagframe.retrieval.question import Question


def table(id, *columns):
    database, name = id.split(".")
    return TableProfile(id, database, name, tuple(ColumnProfile(c, i, "text") for i, c in enumerate(columns)))


def similarities(by_text):
    return lambda texts: np.array([by_text[text] for text in texts])


def test_scores_are_the_largest_product_of_a_list_that_holds_the_table():
    retrieve = similarities({"q": [0.8, 0.6, 0.1], "after 0": [0.9, 0.5, 0.2], "after 1": [0.7, 0.9, 0.3]})
    scores = murre("q", retrieve, lambda q, lists: [f"after {one[0]}" for one in lists], beam=2, hops=2)
    # Lists of the last hop: (0, 1) 0.8 × 0.5, (0, 2) 0.8 × 0.2, (1, 0) 0.6 × 0.7, (1, 2) 0.6 × 0.3; two are kept.
    assert scores[:2] == pytest.approx([0.42, 0.42], abs=1e-5)
    assert scores[2] < 0.4 * 0.5


def test_the_last_hop_keeps_no_more_lists_than_any_other():
    retrieve = similarities({"q": [0.9, 0.8, 0.7, 0.6]})
    scores = murre("q", retrieve, lambda q, lists: ["q"] * len(lists), beam=2, hops=2)
    # Of the lists (0, 1) and (1, 0) 0.72, (0, 2) 0.63 and (1, 2) 0.56, the first two are kept: table 2 is in no list.
    assert scores[:2] == pytest.approx([0.72, 0.72], abs=1e-5)
    assert scores[2] < 0.36
    only = murre("q", retrieve, lambda q, lists: ["q"] * len(lists), beam=2, hops=1)
    assert only[:2] == pytest.approx([0.9, 0.8], abs=1e-5)


def test_a_complete_list_takes_no_place_of_a_later_hop():
    retrieve = similarities({"q": [0.9, 0.5, 0.1], "more": [0.0, 0.8, 0.7]})
    scores = murre("q", retrieve, lambda q, lists: [None if one == (0,) else "more" for one in lists], beam=2, hops=2)
    # (0) is complete; (1, 2) 0.35 and (1, 0) 0 are the two lists of the second hop.
    assert scores == pytest.approx([0.9, 0.35, 0.35], abs=1e-5)


def test_a_list_that_suffices_stops_and_keeps_its_score():
    retrieve = similarities({"q": [0.8, 0.6, 0.1], "more": [0.5, 0.5, 0.5]})
    scores = murre("q", retrieve, lambda q, lists: [None if one == (0,) else "more" for one in lists], beam=2, hops=2)
    assert scores[0] == pytest.approx(0.8, abs=1e-5)
    assert scores[1] == pytest.approx(0.3, abs=1e-5)


def test_tables_of_no_list_come_last_in_the_order_of_the_question():
    retrieve = similarities({"q": [0.9, 0.3, 0.5, 0.4]})
    scores = murre("q", retrieve, lambda q, lists: [None] * len(lists), beam=1, hops=3)
    assert np.argsort(-scores).tolist() == [0, 2, 3, 1]


def test_more_hops_and_a_wider_beam_than_tables_end():
    scores = murre("q", lambda texts: np.full((len(texts), 2), 0.5), lambda q, lists: ["q"] * len(lists), hops=9)
    assert np.isfinite(scores).all()
    assert len(murre("q", lambda texts: np.zeros((len(texts), 0)), lambda q, lists: [], hops=2)) == 0


def test_removal_takes_out_what_was_found_and_stops_where_nothing_is_left():
    tables = [table("m.singer", "singer_id", "country"), table("m.concert", "year")]
    question = "Which singers have a concert?"
    assert without_found(tables, question, [(0,), (1,), (0, 1)]) == [
        f"m concert. {question}",
        f"m singers. {question}",
        None,
    ]
    assert without_found(tables, question, [(0,)], with_database=False) == [f"concert. {question}"]


def test_a_model_completes_the_tables_and_none_stops():
    tables = [table("m.singer", "singer_id"), table("m.concert", "year")]
    assert linearised(tables[0]) == "m.singer(singer_id)"
    for nothing in ("None", "\n", "**None**", "Completing Tables: None.", "**Completing Tables:** `None`"):
        assert parse_completion(nothing) == ""
    assert parse_completion("Completing Tables: m.concert(id)") == "m.concert(id)"

    def answer(request):
        shown = request.prompt.rsplit("Question:", 1)[1]
        return "None" if "m.concert(year)" in shown else "m.concert(id, year)"

    with Server(answer) as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        assert rewritten(lm, tables, None, "Who sang?", [(0,), (1,)]) == ["m.concert(id, year)", None]
        assert (
            rewritten(lm, [*tables, table("m.hall", "id")], None, "Who?", [(0, 2), (2, 0)])
            == ["m.concert(id, year)"] * 2
        )
        assert len(server.requests) == 3, "the same tables in another order are asked for once"


def test_lists_whose_call_failed_stop_with_a_warning():
    with Server(lambda request: Reply("bad", status=400)) as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        with pytest.warns(UserWarning, match="rewriting failed for 1 of 1 questions"):
            assert rewritten(lm, [table("m.singer", "id")], None, "Who?", [(0,)]) == [None]


def test_the_method_finds_tables_that_the_question_names_one_by_one(words):
    corpus = tf.open_corpus(
        {
            "music.singer": pd.DataFrame({"singer": ["Ann"]}),
            "music.stadium": pd.DataFrame({"stadium": ["Park"]}),
            "shop.part": pd.DataFrame({"part": ["bolt"]}),
        }
    )
    found = retrieve_tables("singer singer stadium", corpus, k=2, method="murre", embedder=words)
    assert found.ids == ["music.singer", "music.stadium"]


def test_without_rewriting_the_tables_are_spliced_to_the_question():
    tables = [table("m.singer", "singer_id"), table("m.concert", "year")]
    assert spliced(tables, "Who sang?", [(1,), (1, 0)]) == [
        "Who sang? m.concert(year)",
        "Who sang? m.concert(year) m.singer(singer_id)",
    ]


def test_as_printed_the_question_is_compared_with_linearised_tables():
    class Words:
        """Counts letters, and notes what it encodes."""

        name, dimension = "letters", 26

        def __init__(self):
            self.passages = []

        def encode(self, texts, kind="passage"):
            self.passages += texts if kind == "passage" else []
            letters = "abcdefghijklmnopqrstuvwxyz"
            counts = np.array([[text.lower().count(one) for one in letters] for text in texts], dtype=np.float32)
            return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)

    embedder = Words()
    index = RetrievalIndex(Corpus([table("m.zoo", "quiz"), table("m.bar", "beer")]), embedder, declared_keys=False)
    question = Question.of("zoo quiz")
    scores = MURRE(as_printed=True, hops=1).relevance(index, question, None).scores
    texts = ["m.zoo(quiz)", "m.bar(beer)"]
    assert set(texts) <= set(embedder.passages)
    wanted = dict(zip(texts, embedder.encode(texts) @ embedder.encode(["zoo quiz"], "query")[0], strict=True))
    order = [linearised(one) for one in index.named.whole()]
    assert [order[at] for at in np.argsort(-scores)] == sorted(texts, key=wanted.get, reverse=True)
    before = len(embedder.passages)
    MURRE(as_printed=True, hops=1).relevance(index, question, None)
    assert len(embedder.passages) == before, "an index is encoded once"
    assert not MURRE(hops=1).asks_model


def test_without_early_stop_nobody_is_told_of_the_mark_and_no_list_stops():
    assert "None" in prompt_of(None)
    assert "None" not in prompt_of("early-stop")
    assert prompt_of("early-stop").count("Question:") == 4


def test_the_prompt_has_as_many_examples_as_the_paper_and_none_of_its_benchmarks():
    for prompt in (prompt_of(None), prompt_of("tabulation")):
        assert prompt.count("\nDatabase: ") == 4 + 1
        for database in ("car_1", "employee_hire_evaluation", "financial", "student_club"):
            assert database not in prompt
    completed = [part.splitlines() for part in prompt_of(None).split("Completing Tables: ")[1:]]
    assert [lines.index("") for lines in completed] == [1, 1, 2, 1], "one example completes two tables"
    assert [lines[0] for lines in completed].count("None") == 1


def test_without_early_stop_no_list_of_rules_stops():
    assert without_found([table("m.singer", "singer_id")], "singer", [(0,)], stops=False) == ["m. singer"]


def test_without_tabulation_a_question_is_asked_for():
    tables = [table("m.singer", "singer_id")]
    with Server("Which year was the concert?") as server:
        lm = LM("openai/test", api_base=server.url, api_key="none")
        asked = rewritten(lm, tables, "tabulation", "Who sang when?", [(0,)])
        assert asked == ["Which year was the concert?"]
        (request,) = server.requests
    assert request.prompt.endswith("Left Question:")
    assert "Completing Tables" not in request.prompt


def test_what_cannot_be_left_out_is_refused(words):
    index = index_of(tf.open_corpus({"music.singer": pd.DataFrame({"singer": ["Ann"]})}), words)
    question = Question.of("singer")
    with pytest.raises(NotConfigured, match="no tabulation to leave out"):
        MURRE(ablate="tabulation").relevance(index, question, None)
    with pytest.raises(tf.errors.InvalidArgument, match="ablate must be one of 'rewrite', 'tabulation', 'early-stop'"):
        MURRE(ablate="hops")
    assert MURRE(ablate="rewrite").relevance(index, question, None).scores.shape == (1,)
    assert MURRE(ablate="early-stop").relevance(index, question, None).scores.shape == (1,)


def test_beam_and_hops_are_parameters(words):
    named = {"singer": "singer", "stadium": "stadium", "ticket": "ticket", "part": "bolt"}
    corpus = tf.open_corpus({f"a.{name}": pd.DataFrame({column: [1]}) for name, column in named.items()})

    def scores(k, **parameters):
        question = "singer singer singer stadium stadium ticket"
        found = retrieve_tables(question, corpus, k=k, method=MURRE(**parameters), embedder=words)
        return [hit.score for hit in found]

    assert scores(2, beam=1, hops=np.int64(1))[1] < scores(2, beam=2, hops=1)[1]  # in no list, and in one
    assert scores(1, hops=2)[0] < scores(1, hops=1)[0]  # of two tables, the product
    for wrong in (0, -1, 2.0, True, "2", None):
        with pytest.raises(tf.errors.InvalidArgument, match="beam must be a whole number, at least 1"):
            MURRE(beam=wrong)
    with pytest.raises(tf.errors.InvalidArgument, match="hops must be a whole number, at least 1; got 0"):
        MURRE(hops=0)


def test_the_choice_says_how_many_hops_were_made(words):
    """A hop whose lists all suffice is the last one."""
    corpus = tf.open_corpus({"m.a": pd.DataFrame({"id": [1]}), "m.b": pd.DataFrame({"name": ["x"]})})
    index = index_of(corpus, words)
    for hops, answer, made in ((1, "m.b(name)", 1), (3, "None", 1), (3, "m.b(name)", 3)):
        with Server(lambda request, answer=answer: answer) as server:
            lm = LM("openai/test", api_base=server.url, api_key="none", store=None)
            method, question = MURRE(hops=hops), Question.of("which id")
            prepared = method.prepare(index, question, method.relevance(index, question, lm), None, 1)
            assert method.select(prepared.problem, 1).facts == {"hops": made}
