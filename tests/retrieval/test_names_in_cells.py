import pandas as pd

import tagframe as tf
from tagframe.retrieval.cell_values import cell_term_rows
from tagframe.retrieval.index import RetrievalIndex
from tagframe.retrieval.problem import RowKind
from tagframe.retrieval.question import Question
from tagframe.retrieval.retrieve import retrieve_tables
from tagframe.retrieval.signals import SIGNALS, gather

F1 = {
    "f1.constructors": pd.DataFrame({"constructor": [1, 2], "name": ["Ferrari", "McLaren"]}),
    "f1.races": pd.DataFrame({"race": [7, 8], "place": ["Monza", "Monaco"]}),
    "f1.circuits": pd.DataFrame({"circuit": [3, 4], "location": ["Monza", "Circuit"]}),
}


def held(tables, question):
    """The tables that hold each name of a question, and those that alone do so in their database."""
    index = RetrievalIndex(tf.open_corpus(tables), None)
    evidence = gather(index, Question.of(question))
    names = [table.id for table in index.tables]
    of_names = evidence.kind == RowKind.CELL
    labels = [label for label, is_name in zip(evidence.label, of_names, strict=True) if is_name]
    rows = {
        label: {name for name, value in zip(names, row, strict=True) if value}
        for label, row in zip(labels, evidence.rows[of_names], strict=True)
    }
    here = evidence.signals[:, SIGNALS.index("only_here")]
    return rows, {name: round(float(value), 2) for name, value in zip(names, here, strict=True) if value}


def test_a_name_is_held_by_the_tables_whose_cells_have_it():
    rows, here = held(F1, "How many points did Ferrari score at Monza?")
    assert rows == {"Ferrari": {"f1.constructors"}, "Monza": {"f1.races", "f1.circuits"}}
    assert here == {"f1.constructors": 1.0}


def test_what_another_database_holds_does_not_count_here():
    cars = {"cars.maker": pd.DataFrame({"maker": [1], "full": ["Ferrari"]})}
    rows, here = held(F1 | cars, "How many points did Ferrari score?")
    assert rows == {"Ferrari": {"f1.constructors", "cars.maker"}}
    assert here == {"f1.constructors": 1.0, "cars.maker": 1.0}


def test_a_name_that_names_of_the_database_explain_need_be_no_value():
    rows, here = held(F1, "How long is the Circuit?")
    assert rows == {"Circuit": set(F1)}
    assert here == {}


def test_tables_that_hold_a_name_as_one_role_share_it():
    codes = [f"K{number}X" for number in range(30)]
    tables = {
        "shop.product": pd.DataFrame({"product_code": codes, "weight": range(30)}),
        "shop.sale": pd.DataFrame({"sale_id": range(60), "product_code": [*codes, *codes]}),
        "shop.store": pd.DataFrame({"store_id": range(3), "city": ["Porto", "Faro", "Lagos"]}),
    }
    rows, here = held(tables, "How heavy is K7X?")
    assert rows == {"K7X": {"shop.product", "shop.sale"}}
    assert here == {"shop.product": 0.5, "shop.sale": 0.5}


def test_which_name_stood_where_is_a_reason():
    found = retrieve_tables("How many points did Ferrari score at Monza?", tf.open_corpus(F1), k=3)
    reasons = {hit.id: " ".join(hit.reasons) for hit in found}
    assert "'Ferrari' is in name, found in no other table" in reasons["f1.constructors"]
    assert "'Monza' is in location" in reasons["f1.circuits"]
    assert "no other table" not in reasons["f1.circuits"]


def test_a_plain_word_is_held_by_the_table_where_it_stands_and_those_that_are_joined_on_its_column():
    tables = {
        "shop.kind": pd.DataFrame({"kind": ["jazz", "rock", "folk"], "since": [1900, 1950, 1700]}),
        "shop.track": pd.DataFrame({"track_id": range(30), "kind": ["jazz", "rock", "folk"] * 10}),
        "shop.store": pd.DataFrame({"store_id": range(3), "city": ["Porto", "Faro", "Lagos"]}),
    }
    index = RetrievalIndex(tf.open_corpus(tables), None)
    evidence = gather(index, Question.of("How many jazz tracks in Porto since 1950?"))
    order = [index.position(id) for id in ("shop.kind", "shop.track", "shop.store")]
    rows = cell_term_rows(index, evidence.values, order)
    jazz = rows[[hit.text for hit in evidence.values if not hit.is_name].index("jazz")]
    assert jazz[0] == jazz[1] > 0 == jazz[2]
    assert evidence.facts["cell_names"] == 1.0  # Porto alone is a name
    assert cell_term_rows(index, (), order).shape == (0, 3)


def test_words_in_capitals_are_a_cell_though_names_have_each_of_them():
    tables = {
        "bake.results": pd.DataFrame({"baker": ["Ann", "Bo", "Cy"], "result": ["STAR BAKER", "OUT", "IN"]}),
        "bake.bakers": pd.DataFrame({"baker": ["Ann", "Bo", "Cy"], "stars": [1, 0, 2]}),
    }
    rows, here = held(tables, "How many times was one named STAR BAKER?")
    assert (rows["STAR BAKER"], here["bake.results"]) == ({"bake.results"}, 1.0)
    rows, _ = held(tables, "How many times was one named Star Baker?")
    assert rows["Star Baker"] == {*tables}
