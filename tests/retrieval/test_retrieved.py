import json
import pickle

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import NotConnected, SourceNotFound, TableLeftOutWarning, TableNotFound
from tagframe.progress import reporting_to
from tagframe.retrieval import RetrievedTables, TableHit, retrieve_tables

QUESTION = "What is the gender of the clients who have a loan?"


def test_json_holds_tables_and_joins(bank, words):
    found = retrieve_tables(QUESTION, bank, k=3, embedder=words)
    data = json.loads(json.dumps(found.to_dict()))
    assert list(data) == ["question", "tables", "joins", "note", "confidence"]
    assert all(list(table) == ["id", "score", "probability", "doubtful", "reasons"] for table in data["tables"])
    assert {"left": "bank.disp.client_id", "right": "bank.client.client_id"} in data["joins"]


def test_frame_has_a_row_for_each_table(bank, words):
    frame = retrieve_tables(QUESTION, bank, k=3, embedder=words).to_frame()
    assert list(frame.columns) == ["id", "score", "probability", "reasons"]
    assert len(frame) == 3


def test_repr_shows_tables_scores_and_joins(bank, words):
    text = repr(retrieve_tables(QUESTION, bank, k=3, embedder=words))
    assert "1. bank." in text
    assert "bank.disp.client_id = bank.client.client_id" in text


def test_it_is_a_sequence_of_hits(bank, words):
    found = retrieve_tables(QUESTION, bank, k=3, embedder=words)
    assert [hit.id for hit in found] == found.ids
    assert found[0] is found.tables[0]
    assert found[-1] is found.tables[-1]
    assert found[:2] == found.tables[:2]
    assert found["bank.loan"] is found["LOAN"]
    assert "bank.loan" in found
    assert found[1] in found
    assert "shop.product" not in found
    assert len(found) == 3
    with pytest.raises(IndexError):
        found[3]
    with pytest.raises(TableNotFound, match=r"did you mean 'bank\.loan'"):
        found["bank.lone"]


@pytest.mark.parametrize("planned", [False, True])
def test_it_pickles_with_what_its_plan_needs(bank, words, planned):
    found = retrieve_tables(QUESTION, bank, k=2, method="lexical", embedder=words)
    if planned:
        assert found.join_plan.steps
    copied = pickle.loads(pickle.dumps(found))
    assert repr(copied) == repr(found)
    assert copied.to_dict() == found.to_dict()
    merged = copied.merge(on_loss="allow", on_fanout="allow")
    assert merged.equals(found.merge(on_loss="allow", on_fanout="allow"))


def test_of_schemas_alone_tables_and_plans_are_found_and_no_rows(schema, words):
    corpus = schema(
        **{
            "music.singer": ["singer_id", "name"],
            "music.concert": ["concert_id", "singer_id", "year"],
            "shop.part": ["part", "price"],
        }
    )
    found = retrieve_tables("name of the singer of each concert", corpus, k=2, embedder=words)
    assert {hit.id for hit in found} == {"music.singer", "music.concert"}
    assert found.join_plan.steps[0].key.left == "music.concert.singer_id"
    assert "music.concert" in repr(found)
    assert "music.concert" in found._repr_html_()
    with pytest.raises(SourceNotFound, match="only its schema is known"):
        found.merge()


def test_the_joins_are_those_that_a_merge_makes(tmp_path):
    orders = pd.DataFrame({"order_id": [1, 2, 3], "customer_id": [7, 7, 8]})
    customers = pd.DataFrame({"customer_id": [7, 8, 9], "name": ["Ann", "Bo", "Cy"]})
    weather = pd.DataFrame({"day": ["mon", "tue"], "rain": [0.5, 1.5]})
    for database in ("shop", "archive"):
        (tmp_path / database).mkdir()
        for name, frame in {"orders": orders, "customers": customers, "weather": weather}.items():
            frame.to_csv(tmp_path / database / f"{name}.csv", index=False)
    corpus = tf.open_corpus(tmp_path / "shop").union(tf.open_corpus(tmp_path / "archive"))
    likely = TableHit("shop.orders", 1.0, probability=0.9), TableHit("shop.customers", 1.0, probability=0.8)
    others = TableHit("archive.customers", 0.5, probability=0.1), TableHit("shop.weather", 0.5, probability=0.1)
    found = RetrievedTables("orders of customers", (*likely, *others), corpus)
    assert [(key.left, key.right) for key in found.joins] == [("shop.orders.customer_id", "shop.customers.customer_id")]
    twins = RetrievedTables("orders", (*likely, *others[:1], TableHit("archive.orders", 1, probability=0.2)), corpus)
    assert [frozenset(key.tables) for key in twins.joins] == [frozenset({"shop.orders", "shop.customers"})]
    assert twins.join_plan.unconnected == ("archive.customers", "archive.orders")
    with pytest.warns(TableLeftOutWarning, match="no sure key connects them"):
        assert [*twins.merge(on_loss="allow").columns] == ["order_id", "customer_id", "name"]


@pytest.mark.parametrize("tables", [("singer", "concert"), ("singer", "weather")])
def test_a_result_is_planned_once_however_often_it_is_displayed_and_that_is_said(tables):
    frames = {
        "singer": pd.DataFrame({"singer_id": range(1, 41), "name": [f"S{n}" for n in range(40)]}),
        "concert": pd.DataFrame({"concert_id": range(90), "singer_id": [1 + n % 40 for n in range(90)]}),
        "weather": pd.DataFrame({"rain": [0.5, 1.25, 3.75]}),
    }
    hits = tuple(TableHit(f"frames.{name}", 0.0) for name in tables)
    found, said = RetrievedTables("singers", hits, tf.open_corpus(frames)), list[str]()
    with reporting_to(said.append):
        shown = {repr(found), repr(found)}
        found._repr_html_()
        again = pickle.loads(pickle.dumps(found))
    assert (len(shown), said) == (1, ["planning the joins"])
    if "weather" in tables:
        with pytest.raises(NotConnected) as first:
            found.merge()
        with pytest.raises(NotConnected) as second:
            again.merge()
        assert str(first.value) == str(second.value)
