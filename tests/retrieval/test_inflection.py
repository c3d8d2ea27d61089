"""Words as people write them: accents, plurals and inflected forms find names and values that are written otherwise."""

import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.cell_values import ValueIndex
from tagframe.retrieval.question import Question
from tagframe.retrieval.words import forms, known_form, known_forms


def events(*kinds):
    return pd.DataFrame({"user_id": range(len(kinds)), "kind": kinds})


@pytest.mark.parametrize(
    ("question", "value", "written"),
    [
        ("How many logins per region?", "login", "logins"),
        ("Which users exported?", "export", "exported"),
        ("Wie viele Anmeldungen gab es?", "Anmeldung", "Anmeldungen"),
        ("Welche Nutzer haben exportiert?", "Export", "exportiert"),
        ("¿Qué usuarios exportaron?", "export", "exportaron"),
        ("¿Cuántos pedidos cancelados hay?", "cancelado", "cancelados"),
        ("¿Cuántos médicos hay?", "medico", "médicos"),
        ("Orders that were closed", "close", "closed"),
    ],
)
def test_a_value_is_found_in_another_form(question, value, written):
    corpus = tf.open_corpus({"a.events": events(value, "other"), "a.users": pd.DataFrame({"user_id": [1, 2]})})
    hit = next(hit for hit in ValueIndex(tuple(corpus)).hits(Question.of(question)) if hit.text == written)
    assert [tuple(corpus)[table].id for table in hit.tables] == ["a.events"]
    assert not hit.is_name
    assert hit.cells == (value.lower(),)


def test_a_cell_of_several_words_is_found_by_its_plural():
    corpus = tf.open_corpus({"a.events": events("Flying Wyvern", "Bird"), "a.users": pd.DataFrame({"user_id": [1]})})
    (hit,) = ValueIndex(tuple(corpus)).hits(Question.of("Which rewards do Flying Wyverns give?"))
    assert (hit.tables, hit.is_name) == ((0,), True)


def test_the_table_with_the_value_is_among_those_found_and_the_reason_says_the_form():
    corpus = tf.open_corpus(
        {
            "a.events": events("login", "export", "login"),
            "a.users": pd.DataFrame({"user_id": [0, 1, 2], "region": ["north", "south", "north"]}),
            "a.plans": pd.DataFrame({"plan": ["free", "paid"], "price": [0, 5]}),
        }
    )
    found = tf.retrieve_tables("How many logins per region?", corpus, k=2)
    assert set(found.ids) == {"a.events", "a.users"}
    said = next(hit.reasons for hit in found.tables if hit.id == "a.events")
    assert any("'login' is in kind (for 'logins')" in reason for reason in said)


@pytest.mark.parametrize("method", ["auto", "lexical"])
@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("¿Cuántos médicos hay?", "medicos"),
        ("¿Cuántos medicos hay?", "médicos"),
        ("¿Cuántos doctores hay?", "doctor"),
        ("Wie viele Bestellungen?", "bestellung"),
        ("Welche Straßen?", "strasse"),
        ("Welche Kunden?", "kunde"),
    ],
)
def test_a_table_is_found_by_another_form_of_its_name(question, name, method):
    corpus = tf.open_corpus({f"a.{one}": pd.DataFrame({"x": [1]}) for one in (name, "ware", "precio", "zona")})
    found = tf.retrieve_tables(question, corpus, k=1, method=method, embedder=None)
    assert found.ids == [f"a.{name}"]


def test_in_other_languages_all_names_that_begin_alike_are_meant():
    known = ["kandydaci", "kandydatow", "kandela", "sejmiki"]
    assert known_forms("kandyduje", known, is_foreign=True) == ("kandydaci", "kandydatow")
    assert known_forms("sejmików", known, is_foreign=True) == ("sejmiki",)
    assert known_forms("kandydatów", known, is_foreign=True) == ("kandydatow",)
    assert known_forms("sejmików", known, is_foreign=False) == ()


def test_a_word_that_is_known_stays_as_it_is():
    assert known_form("logins", {"logins", "login"}) == "logins"
    assert known_form("sing", {"song", "singer"}) is None
    assert known_form("médico", {"medico"}) == "medico"
    assert all(len(form) >= 3 for form in forms("red"))
    corpus = tf.open_corpus({"a.events": events("logins", "x"), "b.events": events("login", "x")})
    hits = ValueIndex(tuple(corpus)).hits(Question.of("How many logins?"))
    assert [(hit.text, hit.tables, hit.cells) for hit in hits] == [("logins", (0,), ())]
