import pytest

from tagframe.retrieval.words import terms, words_in


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cities", "city"),
        ("boxes", "box"),
        ("status", "status"),
        ("glass", "glass"),
        ("gas", "gas"),
        ("movies", "movie"),
        ("people", "person"),
    ],
)
def test_names_and_questions_meet_in_the_singular(word, expected):
    assert terms(f"all_{word}") == terms(expected) == [expected]


def test_terms_leave_stop_words_out_and_split_identifiers():
    assert terms("What is the clientId of each female client's loans?") == ["client", "id", "female", "client", "loan"]


def test_punctuation_alone_is_no_word():
    assert words_in("?! … --") == ()
