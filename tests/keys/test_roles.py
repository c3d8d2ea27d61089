"""Columns that refer to one table in different roles: as likely as each other, and chosen by the question."""

from __future__ import annotations

import random
import warnings
from contextlib import suppress

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import AmbiguousJoin, AmbiguousJoinWarning, NotConnected
from tagframe.joins.infer import keys_between

D = pd.DataFrame

ROLES = {
    "buyer_id, seller_id": ("orders", "order_id", "users", "user_id"),
    "buyer, seller": ("orders", "order_id", "users", "id"),
    "reporter_id, assignee_id": ("tickets", "ticket_id", "employees", "employee_id"),
    "created_by, approved_by": ("invoices", "invoice_id", "staff", "staff_id"),
    "customer_id, merchant_id": ("payments", "payment_id", "accounts", "account_id"),
    "lieferadresse_id, rechnungsadresse_id": ("auftraege", "auftrag_id", "adressen", "adresse_id"),
    "AbsenderNr, EmpfängerNr": ("Sendungen", "SendungNr", "Kunden", "KdNr"),
    "comprador_id, vendedor_id": ("pedidos", "pedido_id", "usuarios", "usuario_id"),
    "prestatario_id, avalista_id": ("prestamos", "prestamo_id", "personas", "persona_id"),
    "origen, destino": ("vuelos", "vuelo_id", "aeropuertos", "codigo"),
}


def frames(columns: str, dense: bool, some: bool) -> dict[str, D]:
    """A table with two references to another; ``some`` of its rows, or each equally often."""
    table, own, parent, key = ROLES[columns]
    chance = random.Random(columns)
    ids = [*range(1, 51)] if dense else chance.sample(range(10**5, 10**6), 50)
    facts = {own: range(1, 201)}
    for column in columns.split(", "):
        drawn = chance.choices(ids[:40], k=200) if some else chance.sample(ids * 4, 200)
        facts[column] = drawn
    return {table: D(facts), parent: D({key: ids, "name": [f"n{number}" for number in range(50)]})}


@pytest.mark.parametrize("columns", ROLES)
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("some", [True, False])
def test_two_columns_that_fit_a_key_alike_are_as_likely_and_a_tie_that_is_said(columns, dense, some):
    given = frames(columns, dense, some)
    found = keys_between(tf.open_corpus(given), [f"frames.{name}" for name in given]).keys
    scores = {key.left_columns[0]: key.score for key in found if key.right_table == f"frames.{[*given][1]}"}
    mine, other = (scores[column] for column in columns.split(", "))
    assert mine == other
    with suppress(NotConnected):  # small numbers that begin with 1, and no name: it may be refused
        assert len(tf.join_plan(given).ambiguous) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((AmbiguousJoin, NotConnected)):
            tf.merge(given, on_ambiguous="raise")


def test_numbers_that_are_no_reference_are_no_second_role():
    games = D({"game_id": range(1, 201), "team_id": [n % 30 + 1 for n in range(200)],
               "round": [n % 29 + 1 for n in range(200)],
               "goals": [n % 28 + 1 for n in range(200)], "sponsor_id": [n % 5 + 1 for n in range(200)]})  # fmt: skip
    teams = D({"team_id": range(1, 31), "name": [f"n{n}" for n in range(30)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged = tf.merge({"games": games, "teams": teams})
    assert merged["name"].tolist() == [f"n{n % 30}" for n in range(200)]


ASKED = {
    "names of the buyers of each order": ("buyer_id, seller_id", "buyer_id"),
    "Which users are sellers in orders?": ("buyer_id, seller_id", "seller_id"),
    "users who bought most orders": ("buyer_id, seller_id", "buyer_id"),
    "employees to whom tickets are assigned": ("reporter_id, assignee_id", "assignee_id"),
    "staff who approved the largest invoices": ("created_by, approved_by", "approved_by"),
    "creators of the invoices, by name of staff": ("created_by, approved_by", "created_by"),
    "Wie heißen die Kunden, die Empfänger einer Sendung sind?": ("AbsenderNr, EmpfängerNr", "EmpfängerNr"),
    "nombres de los compradores de pedidos": ("comprador_id, vendedor_id", "comprador_id"),
    "personas que son prestatarias de prestamos": ("prestatario_id, avalista_id", "prestatario_id"),
    "aeropuertos de destino de los vuelos": ("origen, destino", "destino"),
}


@pytest.mark.parametrize("question", ASKED)
def test_the_question_chooses_the_role_that_it_names(question):
    columns, wanted = ASKED[question]
    given = frames(columns, True, False)
    found = tf.retrieve_tables(question, tf.open_corpus(given), k=2)
    (step,) = found.join_plan.steps
    assert step.base_columns == (wanted,)
    assert found.join_plan.ambiguous == ()


def test_a_question_that_names_no_role_leaves_a_tie_and_one_that_names_both_has_both():
    corpus = tf.open_corpus(frames("buyer_id, seller_id", True, False))
    with pytest.warns(AmbiguousJoinWarning, match=r"buyer_id.*seller_id"):
        tf.retrieve_tables("names of users of each order", corpus, k=2).merge()
    both = tf.retrieve_tables("buyers and sellers of each order", corpus, k=2).merge()
    assert {"buyer.name", "seller.name"} <= {*both}


def test_a_role_is_chosen_beside_a_plainly_named_key():
    given = frames("buyer_id, seller_id", True, False)
    given["orders"].columns = ["order_id", "user_id", "referred_by"]
    corpus = tf.open_corpus(given)
    for question, column in (("names of users who referred an order", "referred_by"), ("users by order", "user_id")):
        assert tf.retrieve_tables(question, corpus, k=2).join_plan.steps[0].base_columns == (column,)


def test_a_word_that_is_only_like_a_role_leaves_the_tie():
    given = frames("reporter_id, assignee_id", True, False)
    given["tickets"].columns = ["ticket_id", "author_id", "reviewer_id"]
    plan = tf.retrieve_tables("employees and tickets, by name of the critic", tf.open_corpus(given), k=2).join_plan
    assert len(plan.ambiguous) == 1


def test_a_reviewer_is_a_role_in_a_table_of_reviews():
    given = {
        "reviews": frames("buyer_id, seller_id", True, False)["orders"],
        "users": frames("buyer_id, seller_id", True, False)["users"],
    }
    given["reviews"] = given["reviews"].set_axis(["review_id", "reviewer_id", "author_id"], axis="columns")
    plan = tf.retrieve_tables("users who are reviewers of reviews", tf.open_corpus(given), k=2).join_plan
    assert plan.steps[0].base_columns == ("reviewer_id",)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("column", "table", "key"), [
    ("distrito_del_local", "distritos", "código"), ("id_cliente", "clientes", "codigo"),
    ("Lieferadresse", "Adressen", "AdresseNr"),
    ("cod_provincia", "provincias", "codigo"), ("KundenNr", "Kunden", "Nummer"),
])  # fmt: skip
def test_a_key_that_is_named_in_german_or_spanish_is_likely(dense, column, table, key):
    ids = [*range(1, 51)] if dense else random.Random(1).sample(range(10**5, 10**6), 50)
    facts = D({"nombre": [f"local {n}" for n in range(200)], column: ids * 4})
    found = tf.infer_keys({"facts": facts, table: D({key: ids, "texto": [f"t{n}" for n in range(50)]})})
    assert [(pair.left_columns, pair.right_columns) for pair in found if pair.score > 0.8] == [((column,), (key,))]


def test_a_column_about_other_things_is_no_role_of_a_key_that_another_one_names():
    doctors = D({"doctor_sk": range(1, 10), "employee_id": range(1, 10), "name": [*"abcdefghi"]})
    given = {
        "prescriptions": D({"doctor": [1, 2, 9, 4], "medication": [1, 2, 3, 4], "dose": [5, 7, 5, 8]}),
        "doctors": doctors,
    }
    found = {key.left for key in tf.infer_keys(given)}
    assert "frames.prescriptions.medication" not in found


def test_a_second_key_is_referred_to_by_its_own_name_only():
    kinds = D({"id": [1, 2], "PlaKindID": [1, 2], "PlaKindName": ["a", "b"]})
    plants = D({"id": [1, 2], "PlaID": [1, 2], "PlaKindID": [1, 2]})
    found = tf.infer_keys({"Plant_Kind": kinds, "Kind_Of_Plant": plants})
    assert [(key.left_columns, key.right_columns) for key in found] == [(("PlaKindID",), ("PlaKindID",))]


def test_row_numbers_of_versions_are_doubted_where_another_column_has_the_name_and_some_of_the_values():
    lines = D({"line_id": range(40), "track_id": [n % 20 + 1 for n in range(40)]})
    tracks = D({"id": range(1, 31), "track_id": [n % 14 + 1 for n in range(30)], "name": [*"abcde"] * 6,
                "valid_from": [f"20{10 + n // 14}-01-01" for n in range(30)]})  # fmt: skip
    keys = tf.infer_keys({"lines": lines, "tracks": tracks})
    assert not any(key.right == "frames.tracks.id" for key in keys)
