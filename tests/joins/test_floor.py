"""Below a chance nothing is joined: the error names the likeliest key and the way to join on it."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import DoubtfulJoinWarning, InvalidArgument, NotConnected

D = pd.DataFrame
STOCK = {
    "stock": D({"product": ["a", "b", "c"], "qty": [1, 2, 3]}),
    "stores": D({"city": ["A", "B", "C"], "manager": ["x", "y", "z"]}),
}


@pytest.mark.parametrize("reaction", ["warn", "raise", "allow"])
def test_tables_that_share_letters_in_another_case_are_not_joined(reaction):
    with pytest.raises(NotConnected, match=r"stock\.product = stores\.city.*chance.*min_chance.*on=\"stock"):
        tf.merge(STOCK, on_ambiguous=reaction)


def test_a_plan_a_search_and_a_tool_refuse_it_too():
    with pytest.raises(NotConnected):
        tf.join_plan(STOCK)
    corpus = tf.open_corpus(STOCK)
    found = tf.retrieve_tables("manager of the stores with stock", corpus, k=2)
    assert {*found.ids} == {"frames.stock", "frames.stores"}
    with pytest.raises(NotConnected):
        found.merge()


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::tagframe.errors.CoercedKeysWarning", "ignore::tagframe.errors.AmbiguousJoinWarning"
)
def test_the_caller_sets_the_floor():
    ids = [*range(1, 51)]
    given = {
        "pedidos": D({"pedido_id": range(1, 201), "vendedor_id": ids * 4}),
        "usuarios": D({"usuario_id": ids, "nombre": [f"n{n}" for n in ids]}),
    }
    with pytest.warns(DoubtfulJoinWarning):
        assert len(tf.merge(given)) == 200
    for floor in (0.5, 0.9):
        with pytest.raises(NotConnected, match=rf"needs a chance of min_chance={floor} to join"):
            tf.merge(given, min_chance=floor)
        with pytest.raises(NotConnected):
            tf.join_plan(given, min_chance=floor)
        with pytest.raises(NotConnected):
            tf.retrieve_tables("pedidos usuarios", tf.open_corpus(given), k=2).merge(min_chance=floor)
    assert len(tf.merge(given, min_chance=0.9, on="pedidos.vendedor_id = usuarios.usuario_id")) == 200
    with pytest.raises(InvalidArgument, match="min_chance"):
        tf.merge(given, min_chance=2)


def test_numbers_of_a_kind_among_those_of_all_are_joined():
    attractions = D({"attraction_id": [2113, 2701, 3076, 5076, 6476, 6523, 6653, 6852, 7067, 8429]}).assign(
        name=[f"n{n}" for n in range(10)]
    )
    museums = D({"museum_id": [2113, 2701, 5076], "opened": [1990, 1987, 2001]})
    with pytest.warns(DoubtfulJoinWarning):
        merged = tf.merge({"museums": museums, "attractions": attractions})
    assert merged["name"].tolist() == ["n0", "n1", "n3"]


def test_a_refusal_says_that_the_referenced_column_repeats():
    given = {
        "rechnungen": D({"betrag": [n + 0.5 for n in range(60)], "kunde": [9000 + 7 * (n % 6) for n in range(60)]}),
        "stamm": D({"kennzahl": [9000 + 7 * (n % 6) for n in range(11)], "ort": [f"o{n}" for n in range(11)]}),
    }
    with pytest.raises(NotConnected, match="kennzahl of stamm repeats: 11 rows have 6 values"):
        tf.join_plan(given, min_chance=0.9)
