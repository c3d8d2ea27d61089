import pytest

from tagframe.retrieval.question import Question
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


@pytest.mark.parametrize(
    ("question", "stops", "stays"),
    [
        ("Wie hängt die Wahl mit der Miete zusammen?", {"die", "mit", "der"}, {"wahl", "miete"}),
        ("Quelles sont les gares de la ville?", {"les", "la", "de"}, {"gares", "ville"}),
        ("¿Cuántas obras hay en las salas de la ciudad?", {"las", "la", "de"}, {"obras", "salas"}),
        ("Quanti sono i punti di somministrazione della regione?", {"di", "i", "della"}, {"punti"}),
        ("Who did die in Los Angeles?", set(), {"die", "los"}),
        ("List all pets of Des Moines", set(), {"des"}),
    ],
)
def test_function_words_of_the_language_of_a_question(question, stops, stays):
    content = {word.text.casefold() for word in Question.of(question).content}
    assert not stops & content
    assert stays <= content
