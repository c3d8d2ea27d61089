"""``corpus.keys`` shows the keys between the tables, with their chance and why."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pandas as pd

import tagframe as tf

D = pd.DataFrame


def test_corpus_keys_shows_inferred_and_declared_keys_with_chance_and_reason():
    corpus = tf.open_corpus(
        {
            "loans": D({"loan_id": [1, 2, 3], "client_id": [20, 10, 20]}),
            "clients": D({"client_id": [10, 20, 30], "branch": [5, 6, 5]}),
            "offices": D({"office_no": [5, 6, 7], "city": ["Porto", "Faro", "Braga"]}),
        }
    )
    corpus.keys.add("clients.branch = offices.office_no")
    shown = corpus.keys.frame()
    assert shown.columns.tolist() == ["key", "chance", "origin", "reason"]
    origins = dict(zip(shown["key"], shown["origin"], strict=True))
    assert origins["frames.loans.client_id = frames.clients.client_id"] == "inferred"
    assert origins["frames.clients.branch = frames.offices.office_no"] == "given"
    assert "frames.loans.client_id = frames.clients.client_id (0.9" in repr(corpus.keys)
    assert "frames.loans.client_id" in corpus.keys._repr_html_()
    assert len(tf.infer_keys(corpus)) == len(shown)


def test_keys_between_the_databases_of_a_folder_are_shown(tmp_path):
    (tmp_path / "crm").mkdir()
    ids = [(number * 7919) % 9973 + 1000 for number in range(1, 41)]
    D({"account_id": ids, "company": [f"c{id}" for id in ids]}).to_csv(tmp_path / "crm" / "accounts.csv", index=False)
    tickets = D({"ticket_id": range(1, 121), "account_id": ids * 3})
    tickets.to_csv(tmp_path / "tickets.csv", index=False)
    folder = tmp_path.name
    key = f"{folder}.tickets.account_id = crm.accounts.account_id"
    corpus = tf.open_corpus(tmp_path)
    assert corpus.keys.frame()["key"].tolist() == [key]
    corpus.keys.forbid(key)
    assert corpus.keys.frame().empty
    assert tf.open_corpus(tmp_path, apart=True).keys.frame().empty


def test_a_corpus_without_keys_says_so():
    assert repr(tf.open_corpus({"a": D({"x": [1.5]})}).keys) == "no declared keys of this corpus"


def test_keys_between_the_sources_of_a_folder_are_among_those_of_a_corpus(tmp_path):
    (tmp_path / "one").mkdir()
    accounts = pd.DataFrame({"account_id": [f"A{n:04d}" for n in range(50)], "company": [f"c{n}" for n in range(50)]})
    tickets = pd.DataFrame({"ticket_id": range(100), "account_id": [f"A{n % 50:04d}" for n in range(100)]})
    accounts.to_csv(tmp_path / "one" / "accounts.csv", index=False)
    with closing(sqlite3.connect(tmp_path / "one" / "desk.sqlite")) as connection:
        tickets.to_sql("tickets", connection, index=False)
    found = tf.infer_keys(tf.open_corpus(tmp_path / "one", progress=False))
    assert [key.left_columns + key.right_columns for key in found] == [("account_id", "account_id")]
