"""ω as the paper's text and its authors' code have it, on the example of JAR section 3.3."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.index import index_of


@pytest.fixture
def boston(words):
    """Students, and who teaches them: both have a city, which does not join them."""
    students = pd.DataFrame({"student_id": [1, 2], "city": ["BOS", "BOS"]})
    teaching = pd.DataFrame({"teacher_id": [1, 2, 2], "student_id": [1, 1, 2], "city": ["BOS", "BOS", "BOS"]})
    return index_of(tf.open_corpus({"db.t1": students, "db.t2": teaching}), words)


STUDENT, CITY, OTHERS_STUDENT, OTHERS_CITY = 0, 1, 1, 2


@pytest.mark.parametrize("omega", ["text", "code"])
def test_the_papers_example_joins_on_the_key_and_not_on_the_city(boston, omega):
    scores = boston.joinability_in(omega, None)
    assert scores.best(0, 1)[1:] == (STUDENT, OTHERS_STUDENT)
    each = scores.columns(0, 1)
    assert each[STUDENT, OTHERS_STUDENT] > 1.5 * each[CITY, OTHERS_CITY] > 0


def test_the_text_compares_header_table_and_other_columns(boston):
    each = boston.joinability_in("text", None).columns(0, 1)
    # Words are vectors: "t 1" and "t 2" share one of two; "city" is one of the three words of "teacher id, city".
    schema = (1 + 1 / 2 + 1 / sqrt(3)) / 3
    assert each[STUDENT, OTHERS_STUDENT] == pytest.approx((schema + 1) / 2, abs=1e-6)
    # "student id" and "teacher id, student id" as counts: 3 / (√2 · √6); all values are the same; half of T1's are new.
    schema = (1 + 1 / 2 + 3 / sqrt(12)) / 3
    assert each[CITY, OTHERS_CITY] == pytest.approx((schema + 1) / 2 * max(1 / 2, 1 / 3), abs=1e-6)


def test_the_code_compares_the_words_of_database_table_and_column(boston):
    each = boston.joinability_in("code", None).columns(0, 1)
    # "db t1 student id" and "db t2 student id" share three of four words; the cosine of their counts is the same.
    assert each[STUDENT, OTHERS_STUDENT] == pytest.approx(0.5 * 1 + 0.5 * 3 / 4, abs=1e-6)
    assert each[STUDENT, OTHERS_CITY] == 0  # a number and a text


def test_a_text_may_join_a_number_in_the_text_only(words):
    left, right = pd.DataFrame({"code": [1, 2]}), pd.DataFrame({"code": ["a", "b"]})
    index = index_of(tf.open_corpus({"db.l": left, "db.r": right}), words)
    assert index.joinability_in("text", None).best(0, 1)[0] > 0
    assert index.joinability_in("code", None).best(0, 1)[0] == 0
    # Tables of one column have no other columns: only the header is the same.
    assert index.joinability_in("text", None).best(0, 1)[0] == pytest.approx(1 / 6, abs=1e-6)


@pytest.mark.parametrize("omega", ["text", "code"])
def test_either_form_is_a_score_and_needs_no_embedder(bank, words, omega):
    for embedder in (words, None):
        scores = index_of(bank, embedder).joinability_in(omega, None).matrix(range(5))
        assert np.array_equal(scores, scores.T)
        assert ((scores >= 0) & (scores <= 1)).all()
        client, disp = 1, 2
        assert scores[client, disp] > 0.3


@pytest.mark.parametrize("omega", ["text", "code"])
def test_tables_of_no_columns_do_not_join(schema, words, omega):
    index = index_of(schema(**{"a.l": [], "a.r": ["id", "___"]}), words)
    assert index.joinability_in(omega, None).best(0, 1)[0] == 0.0
