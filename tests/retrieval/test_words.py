import pytest

from tagframe.retrieval.words import stem, terms, words_in


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cities", "city"),
        ("boxes", "box"),
        ("status", "status"),
        ("glass", "glass"),
        ("gas", "gas"),
        ("cookies", stem("cookie")),
    ],
)
def test_stem(word, expected):
    assert stem(word) == expected


def test_terms_leave_stop_words_out_and_split_identifiers():
    assert terms("What is the clientId of each female client's loans?") == ["client", "id", "female", "client", "loan"]


def test_punctuation_alone_is_no_word():
    assert words_in("?! … --") == ()
