"""Names that a question says in whole: the set of k="auto" has their tables, or its confidence is below 0.9."""

from itertools import cycle, islice

import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.mentioned_names import mentioned_names
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import accented, forms


def column(values, count):
    return [*islice(cycle(values), count)]


def tables(**columns):
    return {f"a.{name}": pd.DataFrame(of) for name, of in columns.items()}


IDS = range(1, 41)
NAMES = [
    f"{first} {last}"
    for first in "Ann Bea Carl Dora Emil".split()
    for last in "Abel Bauer Costa Engel Haas Jung Klein Senn".split()
]
SHOP = tables(
    users={"user_id": IDS, "name": NAMES},
    orders={"order_id": range(90), "buyer_id": column(IDS, 90), "seller_id": column(reversed(IDS), 90)},
)
VERSAND = tables(
    Adressen={"AdressNr": IDS, "Straße": [f"Weg {n}" for n in IDS], "Ort": column(["Bonn", "Ulm", "Jena"], 40)},
    Bestellungen={
        "BestellNr": range(90),
        "Lieferadresse": column(IDS, 90),
        "Rechnungsadresse": column(reversed(IDS), 90),
    },
)
BANCO = tables(
    personas={"persona_id": IDS, "nombre": NAMES},
    prestamos={"prestamo_id": range(90), "prestatario_id": column(IDS, 90), "avalista_id": column(reversed(IDS), 90)},
)
KLINIK = tables(
    Aerzte={"ArztNr": range(201, 241), "Nachname": NAMES},
    Patienten={"PatNr": range(901, 941), "Name": NAMES[::-1]},
    Behandlungen={"BehNr": range(90), "Patient": column(range(901, 941), 90), "Arzt": column(range(201, 241), 90)},
)
CLINICA = tables(
    Especialidades={"especialidad_id": range(1, 5), "nombre": ["Cardiología", "Pediatría", "Neurología", "Urología"]},
    Medicos={"medico_id": range(101, 141), "apellido": NAMES, "especialidad_id": column(range(1, 5), 40)},
    Pacientes={"paciente_id": range(301, 341), "nombre": NAMES[::-1]},
    Citas={"cita_id": range(90), "paciente_id": column(range(301, 341), 90), "medico_id": column(range(101, 141), 90)},
)
WERK = tables(
    Lager={"LagerNr": range(41, 53), "Standort": [f"Halle {n}" for n in range(12)]},
    Artikel={"ArtikelNr": [f"A-{n}" for n in IDS], "Bezeichnung": [f"Teil {n}" for n in IDS]},
    Lieferungen={
        "LieferNr": range(90),
        "ArtikelNr": column([f"A-{n}" for n in IDS], 90),
        "Ziellager": column(range(41, 53), 90),
    },
)


@pytest.mark.parametrize(
    ("data", "question", "needed"),
    [
        (SHOP, "names of the users of each order", "users orders"),
        (VERSAND, "An welchen Ort wird jede Bestellung geliefert?", "Adressen Bestellungen"),
        (VERSAND, "Straße der Rechnungsadresse jeder Bestellung", "Adressen Bestellungen"),
        (BANCO, "¿Quién avala cada préstamo?", "personas prestamos"),
        (KLINIK, "Welcher Arzt behandelte welchen Patienten?", "Aerzte Patienten Behandlungen"),
        (
            CLINICA,
            "¿Qué pacientes tuvieron citas con médicos de cardiología?",
            "Especialidades Medicos Pacientes Citas",
        ),
        (
            CLINICA,
            "¿Qué pacientes tuvieron citas con medicos de cardiologia?",
            "Especialidades Medicos Pacientes Citas",
        ),
        (WERK, "Bezeichnungen der gelieferten Artikel", "Artikel Lieferungen"),
        (WERK, "Standort des Ziellagers jeder Lieferung", "Lager Lieferungen"),
    ],
)
def test_all_tables_whose_names_are_said_are_in_the_set(data, question, needed):
    found = tf.open_corpus(data).retrieve_tables(question)
    assert {f"a.{name}" for name in needed.split()} <= set(found.ids)
    assert all(hit.probability >= 0.01 for hit in found.tables)


STATIONS = tables(
    stations={"uri": [f"s/{n}" for n in IDS], "label": NAMES, "lifts": column([0, 1, 2], 40)},
    tracks={"track_id": range(90), "station": column([f"s/{n}" for n in IDS], 90), "width": column([1.5, 2.5], 90)},
    staff={"badge": range(300, 330), "station": column([f"s/{n}" for n in IDS], 30)},
    colours={"colour": ["red", "green"]},
)


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        ("Hoeveel perrons zijn er op het station van Ann Abel?", True),
        ("Wie viele Gleise hat der Bahnhof von Ann Abel?", True),
        ("Combien de quais sont dans la station de Ann Abel?", True),
        ("Колико perona има station Ann Abel?", False),
        ("Welches station hat die meisten Aufzüge?", False),
    ],
)
def test_of_a_question_in_another_language_linked_tables_are_found_and_the_finest_is_counted(question, counted):
    found = tf.open_corpus(STATIONS).retrieve_tables(question)
    assert {*found.ids} == {"a.stations", "a.tracks", "a.staff"}
    assert "nothing" not in found.note
    assert "not in English" in found.note
    assert not (counted and found["tracks"].doubtful)


def test_of_another_script_of_which_no_word_is_known_nothing_is_sure():
    found = tf.open_corpus(STATIONS).retrieve_tables("كم عدد الكتب في كل مكتبة؟")
    assert {*found.ids} == {"a.stations", "a.tracks", "a.staff"}
    assert found.confidence < 0.5
    assert all(hit.doubtful for hit in found)


def test_an_english_question_that_nothing_fits_gets_no_linked_tables():
    found = tf.open_corpus(STATIONS).retrieve_tables("What is the boiling point of helium?")
    assert "nothing" in found.note
    assert len(found) < 3


COSTS = tables(
    plants={"plant": [f"PLANT{n}" for n in IDS], "unit_cost": column([0.25, 0.4, 0.8], 40)},
    orders={
        "order_id": range(900, 990),
        "plant": column([f"PLANT{n}" for n in IDS], 90),
        "kind": "quiz poll".split() * 45,
    },
    rates={"lane": range(500, 520), "discount": column([0.5, 0.7], 20), "unit": "kg lb".split() * 10},
)


@pytest.mark.parametrize(
    ("question", "needed", "not_needed"),
    [
        ("Which orders have plants with a unit cost below 0.5?", "orders plants", "rates"),
        ("How many quizzes did plants with a unit cost above 0.3 place?", "orders plants", "rates"),
    ],
)
def test_the_table_of_a_cell_is_needed_but_not_that_of_a_bound(question, needed, not_needed):
    found = tf.open_corpus(COSTS).retrieve_tables(question)
    sure = {hit.id for hit in found if not hit.doubtful}
    assert {f"a.{name}" for name in needed.split()} <= sure
    assert f"a.{not_needed}" not in sure


def test_a_name_that_the_set_has_in_other_words_adds_no_table():
    data = tables(
        books={"isbn": [f"978{n}" for n in IDS], "order_number": IDS, "title": [f"Tale {n}" for n in IDS]},
        orders={"order": IDS, "isbn": [f"978{n}" for n in IDS]},
    )
    found = tf.open_corpus(data).retrieve_tables("titles of books in alphabetical order")
    assert [hit.id for hit in found if not hit.doubtful] == ["a.books"]


@pytest.mark.parametrize(
    ("asked", "written"),
    [("geliefert", "lieferung"), ("gelieferten", "lieferungen"), ("arzt", "aerzte"), ("aerzte", "arzte")],
)
def test_forms_of_german_words(asked, written):
    assert written in forms(asked)


@pytest.mark.parametrize(
    ("asked", "written"), [("cardiologia", "cardiología"), ("Migraene", "migräne"), ("nino", "niño")]
)
def test_a_word_without_accents_may_be_written_with_one(asked, written):
    assert written in accented(asked)


def test_a_word_with_accents_gets_no_others():
    assert accented("médico") == ()


@pytest.mark.parametrize(
    ("question", "name", "chance"),
    [("Which users had a sign-up?", "signups", 0.98), ("users in a play-off", "PlayoffGames", 0.8)],
)
def test_a_name_that_the_question_writes_with_a_hyphen_is_found(question, name, chance):
    frames = tables(users={"user_id": IDS, "name": NAMES}, logins={"login_no": range(90), "user_id": column(IDS, 90)})
    frames |= tables(**{name: {f"{name}_no": range(90), "user_id": column(IDS, 90)}})
    found = tf.open_corpus(frames).retrieve_tables(question)
    assert found[f"a.{name}"].probability > chance


def test_another_table_with_a_cell_that_the_question_names_is_found_if_the_first_is_there_for_it_alone():
    plots, treatments = range(1, 9), ["control", "removal"]
    rows = [(year, plot, treatments[(year + plot) % 2]) for year in (2019, 2020) for plot in plots]
    corpus = tf.open_corpus(
        tables(
            stakes={"stake_no": range(70, 94), "plot": column(plots, 24), "species": column("abcd", 24)},
            plots=dict(zip(["year", "plot", "treatment"], zip(*rows, strict=True), strict=True)),
            plot_history={"plot": plots, "spring 1979": treatments * 4, "autumn 1979": treatments[::-1] * 4},
            species={"species": list("abcd"), "guild": ["granivore", "folivore"] * 2},
        )
    )
    found = corpus.retrieve_tables("How many stakes concern a granivore in a plot that was a control then?")
    assert {"a.stakes", "a.plots", "a.plot_history"} <= {*found.ids}


RACES = tables(
    races={"race": IDS, "round": column(range(1, 9), 40)},
    results={"race": column(IDS, 120), "driver": column(range(60), 120), "points": column(range(9), 120)},
    constructor_results={"race": column(IDS, 80), "constructor": column(range(9), 80), "points": column(range(9), 80)},
    lp={"lp": range(700, 730), "race": column(IDS, 30)},
)


@pytest.mark.parametrize(
    ("question", "row", "is_said"),
    [
        ("points by constructor results", [0.5, 0, 0, 1], False),
        ("points by results and by constructor results", [0.5, 0, 0, 1], True),
        ("How many lap penalties have a race?", [0, 1, 0, 0], True),
        ("How many laps have a penalty?", [0, 1, 0, 0], False),
    ],
)
def test_a_longer_name_has_its_words_for_itself_and_initials_are_a_name(question, row, is_said, words):
    index = RetrievalIndex(tf.open_corpus(RACES), words)
    assert [table.name for table in index.tables] == ["constructor_results", "lp", "races", "results"]
    assert (row in mentioned_names(index, Question.of(question), range(4)).tolist()) == is_said
