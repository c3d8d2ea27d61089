import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.cell_values import ValueIndex
from tagframe.retrieval.question import Question


@pytest.fixture
def schools():
    return tf.open_corpus(
        {
            "ca.schools": pd.DataFrame(
                {"County": ["Alameda", "Fresno"], "Opened": [1980, 1999], "City": ["Oakland", "Fresno"]}
            ),
            "ca.frpm": pd.DataFrame({"County Name": ["alameda", "Kern"], "Level": ["High School", "Middle School"]}),
        }
    )


def test_values_are_found_in_any_case_where_they_stand(schools):
    (hit,) = ValueIndex(schools.profiles).hits(Question.of("How many schools are in Alameda?"))
    assert (hit.text, hit.tables, hit.columns, hit.is_name) == ("Alameda", (0, 1), (0, 0), True)


def test_the_longest_run_wins(schools):
    hits = ValueIndex(schools.profiles).hits(Question.of("List each high school of Fresno"))
    assert [hit.text for hit in hits] == ["high school", "Fresno"]
    assert [hit.is_name for hit in hits] == [False, True]


def test_a_value_in_more_tables_is_less_rare(schools):
    index = ValueIndex(schools.profiles)
    assert index.hits(Question.of("in Kern"))[0].rarity == 1.0
    assert index.hits(Question.of("in Fresno"))[0].rarity == 1.0  # in two columns, but of one table
    assert index.hits(Question.of("in Alameda"))[0].rarity < 1.0


def test_small_numbers_and_stop_words_say_nothing():
    corpus = tf.open_corpus({"a.t": pd.DataFrame({"n": [1, 2, 1980], "word": ["the", "of", "which"]})})
    hits = ValueIndex(corpus.profiles).hits(Question.of("Which of the 2 is from 1980?"))
    assert [hit.text for hit in hits] == ["1980"]
    assert not hits[0].is_name


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Quel est le nombre moyen de cantons par région ?", []),
        ("Combien de communes de la région de Moyen ?", ["Moyen"]),
        ("Which moyen is the largest of them?", ["moyen"]),
    ],
)
def test_no_cell_is_meant_by_a_word_for_what_is_computed(question, found):
    corpus = tf.open_corpus({"a.communes": pd.DataFrame({"nom": ["Moyen", "Nombre", "Brest"]})})
    assert [hit.text for hit in ValueIndex(corpus.profiles).hits(Question.of(question))] == found


def test_quoted_values_may_hold_anything():
    corpus = tf.open_corpus({"a.t": pd.DataFrame({"title": ["What, me?", "x"]})})
    (hit,) = ValueIndex(corpus.profiles).hits(Question.of('Who wrote "What, me?"'))
    assert hit.tables == (0,)


def test_columns_too_large_for_a_sketch_are_known_by_samples():
    names = [f"name {i}" for i in range(5000)] + ["Ann Lee"] * 9
    corpus = tf.open_corpus({"a.t": pd.DataFrame({"who": names})})
    assert ValueIndex(corpus.profiles).hits(Question.of("Where is Ann Lee?"))[0].text == "Ann Lee"


@pytest.mark.parametrize(("word", "found"), [("shoegaze", ["shoegaze"]), ("rock", [])])
def test_a_term_is_found_in_the_cells_of_a_column_too_large_for_a_sketch(word, found):
    """A word of the language is not: hardly one of a long list of names is meant by it."""
    corpus = tf.open_corpus({"a.t": pd.DataFrame({"tag": [*(f"tag {i}" for i in range(20_000)), "shoegaze", "rock"]})})
    index = ValueIndex(corpus.profiles, corpus=corpus, knows=lambda word: word != "shoegaze")
    assert [hit.text for hit in index.hits(Question.of(f"songs tagged as {word}"))] == found


def test_without_rows_there_are_no_values(schema):
    assert ValueIndex(schema(**{"a.t": ["x"]}).profiles).hits(Question.of("Alameda")) == []


def test_values_are_found_as_they_are_written_or_without_their_signs():
    frame = pd.DataFrame({"code": ["TR001_8", "x"], "day": ["2015-11-29", ""], "who": ["di Grassi", "O'Brien"]})
    index = ValueIndex(tf.open_corpus({"a.t": frame}).profiles)

    def found(question):
        return [hit.text for hit in index.hits(Question.of(question))]

    assert found("What is in the TR001_8 atoms?") == ["TR001_8"]
    assert found("Who drove on 2015/11/29?") == ["2015/11/29"]
    assert found("What is di Grassi's result?") == ["di Grassi"]
    assert found("Where did O'Brien live?") == ["O'Brien"]
    assert ValueIndex(tf.open_corpus({"a.t": pd.DataFrame({"x": ["Masques, Block"]})}).profiles).hits(
        Question.of('in "Masques, Block"')
    )


def test_an_index_that_was_kept_finds_the_same(schools):
    made = ValueIndex(schools.profiles)
    kept = ValueIndex(schools.profiles, made.arrays())
    asked = Question.of("List each high school of Fresno and 'Alameda'")
    assert made.hits(asked)
    assert kept.hits(asked) == made.hits(asked)


def test_a_stop_word_that_is_written_as_a_name_is_one():
    frame = pd.DataFrame({"first": ["Will", "Ann", "The"], "country": ["US", "IT", "In"]})
    index = ValueIndex(tf.open_corpus({"a.t": frame}).profiles)

    def found(question):
        return [(hit.text, hit.is_name) for hit in index.hits(Question.of(question))]

    assert found("Where does Will live?") == [("Will", True)]
    assert found("Who of them is in the US?") == [("US", True)]
    assert found("Where will it be, for us and in it?") == []
    assert found("In which of The Big Cities?") == []  # written so as all around it are
    assert found("IS IT IN THE US?") == []


def test_a_possessive_begins_a_question_with_a_name():
    index = ValueIndex(tf.open_corpus({"a.t": pd.DataFrame({"last": ["Peacock", "Rock"]})}).profiles)
    (possessive,) = index.hits(Question.of("Peacock's boss"))
    (plain,) = index.hits(Question.of("Rock songs"))
    assert (possessive.text, possessive.is_name, plain.is_name) == ("Peacock", True, False)


def test_a_value_may_end_with_a_sign():
    frame = pd.DataFrame({"name": ["Sale (Remaster)", "Stop!", "Jetbrains s.r.o."]})
    index = ValueIndex(tf.open_corpus({"a.t": frame}).profiles)
    for value in frame["name"]:
        assert [hit.text for hit in index.hits(Question.of(f"What is on {value}?"))] == [value]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Quanti comuni si trovano nella provincia e hanno la sigla PE?", ["PE"]),
        ("Combien de gares de l'Oise sont en service au nord?", ["Oise"]),
        ("Quanti comuni hanno le stazioni al nord?", []),
        ("Quanti comuni ci sono nella provincia di L'Aquila?", ["L'Aquila"]),
        ("How many die in the US?", ["die"]),
    ],
)
def test_function_words_of_the_language_of_a_question_are_no_cells(question, found):
    cells = ["SI", "PE", "AL", "LE", "AU", "Oise", "die", "hannes", "L'Aquila"]
    corpus = tf.open_corpus({"a.places": pd.DataFrame({"code": cells, "n": range(len(cells))})})
    assert [hit.text for hit in ValueIndex(corpus.profiles).hits(Question.of(question))] == found
