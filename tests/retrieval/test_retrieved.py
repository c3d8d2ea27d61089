import json

from tagframe import results
from tagframe.retrieval import retrieve_tables

QUESTION = "What is the gender of the clients who have a loan?"


def test_json_holds_tables_and_joins(bank, words):
    found = retrieve_tables(bank, QUESTION, k=3, embedder=words)
    data = json.loads(json.dumps(found.to_dict()))
    assert list(data) == ["question", "tables", "joins"]
    assert all(list(table) == ["id", "score", "reasons"] for table in data["tables"])
    assert {"left": "bank.disp.client_id", "right": "bank.client.client_id"} in data["joins"]


def test_frame_has_a_row_for_each_table(bank, words):
    frame = retrieve_tables(bank, QUESTION, k=3, embedder=words).to_frame()
    assert list(frame.columns) == ["id", "score", "probability", "reasons"]
    assert len(frame) == 3


def test_merge_remembers_its_report(bank, words):
    found = retrieve_tables(bank, QUESTION, k=2, method="lexical", embedder=words)
    assert {hit.id for hit in found.tables} == {"bank.client", "bank.loan"}
    assert "bank.disp" in found.join_plan.bridges
    frame = found.merge(on_loss="allow", on_fanout="allow")
    assert results.recall(frame, "merge_report").rows == len(frame)


def test_repr_shows_tables_scores_and_joins(bank, words):
    text = repr(retrieve_tables(bank, QUESTION, k=3, embedder=words))
    assert "1. bank." in text
    assert "bank.disp.client_id = bank.client.client_id" in text
