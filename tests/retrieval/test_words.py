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
        ("Hoeveel perrons zijn er in de stations?", {"zijn", "er", "in", "de"}, {"perrons", "stations"}),
        ("Quels magasins n'ont embauché personne?", {"quels", "n", "ont"}, {"magasins", "personne"}),
        ("東京都で開業した駅の数は?", {"で", "した", "の", "は"}, {"東京都", "開業", "駅", "数"}),
        ("Who did die in Los Angeles?", set(), {"die", "los"}),
        ("List all pets of Des Moines", set(), {"des"}),
    ],
)
def test_function_words_of_the_language_of_a_question(question, stops, stays):
    content = {word.text.casefold() for word in Question.of(question).content}
    assert not stops & content
    assert stays <= content


@pytest.mark.parametrize(
    ("question", "foreign"),
    [
        ("Hoeveel merken heeft elk land?", True),
        ("Wie viele Bücher wurden 2020 ausgeliehen?", True),
        ("Chiffre d'affaires par magasin", True),
        ("Сколько книг взяли в 2020 году?", True),
        ("Hány könyv van minden könyvtárban?", True),
        ("Πόσα βιβλία έχει κάθε βιβλιοθήκη;", True),
        ("2020年に東京都で開業した駅の数は?", True),
        ("Total sales of São Paulo per year", False),
        ("Names of customers in Łódź", False),
        ("Who did die in Los Angeles?", False),
        ("revenue Berlin 2020", False),
        ("Which cafés does Jean de la Croix own?", False),
    ],
)
def test_the_language_of_a_question(question, foreign):
    assert Question.of(question).is_foreign == foreign
