"""Tables that a question needs by what it says, however little their names and chances do; frames of our own."""

from itertools import cycle, islice

import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.cell_values import ValueIndex
from tagframe.retrieval.question import Question


def column(values, count):
    return [*islice(cycle(values), count)]


def needed(frames, question):
    found = tf.open_corpus(frames).retrieve_tables(question)
    return {hit.id.rpartition(".")[2] for hit in found if not hit.doubtful}


def of_year(name, *, keys, states):
    return {
        f"{name}_{year}": pd.DataFrame({"id": range(year, year + 60), states[:-1] + "_id": column(keys, 60), "x": 1.5})
        for year in (2021, 2022, 2023)
    } | {states: pd.DataFrame({"id": keys, "descripcion": ["Nuevo", "En curso", "Cerrado"]})}


@pytest.mark.parametrize(
    ("name", "states", "question", "year"),
    [
        ("proyectos", "estados", "How many of the projects of 2022 are still under way ('En curso')?", 2022),
        ("becas", "estados", "How many 2021 grants are 'Cerrado'?", 2021),
        ("Antraege", "status", "Wie viele waren 2023 'Nuevo'?", 2023),
        ("umfragen", "etapas", "Combien étaient 'Cerrado' en 2022 ?", 2022),
    ],
)
def test_a_table_of_the_year_that_the_question_names(name, states, question, year):
    frames = of_year(name, keys=[1, 2, 3], states=states)
    assert needed(frames, question) == {f"{name}_{year}", states}


MUSEUMS = {
    "museums": pd.DataFrame({"museum_id": range(1, 301), "county": column(["Kent", "Essex", "Devon"], 300)}),
    "closures": pd.DataFrame({"museum_id": range(1, 301, 2), "reason": column(["floods", "loss of premises"], 150)}),
    "transfers": pd.DataFrame(
        {"museum_id": column(range(1, 301, 2), 900), "sender_type": column(["museum", "charity", "school"], 900)}
    ),
    "actors": pd.DataFrame({"type_name": ["museum", "charity", "school", "council"], "is_public": [1, 0, 1, 1]}),
}


@pytest.mark.parametrize(
    ("question", "tables"),
    [
        ("How many museums closed by loss of premises?", {"museums", "closures"}),
        ("How many transfers were sent by a charity that is public?", {"transfers", "actors"}),
    ],
)
def test_a_label_that_is_a_word_of_a_tables_name_is_no_reason_for_the_table_of_labels(question, tables):
    assert needed(MUSEUMS, question) == tables


LETTERS = "abcdefghij"
WORDS = [f"mal{a}{b}{c}{d}" for a in LETTERS for b in LETTERS for c in LETTERS for d in LETTERS[:6]]
DIAGNOSES = {
    "codes": pd.DataFrame({"code": [f"{n:05}" for n in range(6000)], "title": [f"{one}, other" for one in WORDS]}),
    "cases": pd.DataFrame({"case": range(4000), "code": column([f"{n:05}" for n in range(0, 6000, 7)], 4000)}),
}


def test_a_quoted_cell_of_a_column_with_more_values_than_its_profile():
    corpus = tf.open_corpus(DIAGNOSES)
    profiled, read = ValueIndex(corpus.profiles), ValueIndex(corpus.profiles, corpus=corpus)
    questions = [f"In how many cases was '{one.upper()}, other' the cause?" for one in WORDS[::97]]
    others = [one for one in questions if not profiled.hits(Question.of(one))]
    assert len(others) > 20
    assert all(read.hits(Question.of(one))[0].tables == (1,) for one in others)
    assert all("codes" in needed(DIAGNOSES, one) for one in others[:3])
    corpus.private("codes.title")
    assert not ValueIndex(corpus.profiles, corpus=corpus).hits(Question.of(others[0]))


@pytest.mark.parametrize(
    ("question", "words"),
    [("Sales of Pier Nolan 2771 Ltd", "Pier Nolan 2771 Ltd"), ("sales of pier nolan 2771 ltd", None)],
)
def test_a_name_is_looked_for_in_large_columns_as_it_is_written_like_one(question, words):
    corpus = tf.open_corpus({"firms": pd.DataFrame({"firm": [f"Pier Nolan {n} Ltd" for n in range(4000)]})})
    hits = ValueIndex(corpus.profiles, corpus=corpus).hits(Question.of(question))
    assert [hit.text for hit in hits] == [words] * (words is not None)


def plants(count, **more):
    """Power plants, or another table of nearly the same columns."""
    cells = {"ort": ["Brno", "Cheb", "Opava"], "status": ["in Betrieb", "geplant"], "plz": ["85598", "85591"]}
    columns = {name: column(values, count) for name, values in cells.items()}
    return pd.DataFrame({"einheit": [f"E{n}" for n in range(count)], "bruttoleistung_kW": 1.5} | columns | more)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Wie hoch ist die Bruttoleistung der Speicher in Opava, die in Betrieb sind?", {"speicher"}),
        ("Welche Windanlagen in Cheb haben die größte Bruttoleistung?", {"windanlagen"}),
        ("¿Cuál es la bruttoleistung de los speicher en Opava que están en Betrieb?", {"speicher"}),
        ("Welche Speicher und welche Windanlagen sind in Opava?", {"speicher", "windanlagen"}),
    ],
)
def test_of_near_copies_the_one_that_the_question_names(question, named):
    stops = pd.DataFrame({"name": [f"H{n}" for n in range(30)], "linie": column("ab", 30)})
    frames = {"windanlagen": plants(60, hoehe=2.0), "speicher": plants(45, kapazitaet=2.5), "haltestellen": stops}
    assert needed(frames, question) == named


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Quantos voos não têm nenhum defeito?", "nenhum"),
        ("¿Qué vuelos no tienen ninguna avería?", "ninguna"),
        ("Welche Flüge haben keinen Schaden und wurden nicht repariert?", "keinen"),
        ("Quali sono i voli che non hanno nessun danno?", "nessun"),
    ],
)
def test_a_denial_is_no_cell(question, word):
    profiles = tf.open_corpus({"aircraft": pd.DataFrame({"damage": [word, "severe", "slight"]})}).profiles
    assert not ValueIndex(profiles).hits(Question.of(question))
    assert ValueIndex(profiles).hits(Question.of("Aircraft with severe damage"))
