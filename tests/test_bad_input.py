"""What users really have: odd names, empty tables, broken files, from opening to the operators."""

from __future__ import annotations

import sqlite3
import warnings

import pytest

import tagframe as tf


@pytest.fixture
def odd(tmp_path) -> tf.Corpus:
    """A SQLite file whose tables and columns are called as no one should call them."""
    path = tmp_path / "shop & 'co'.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(
            'CREATE TABLE "order" '
            '("order id" INTEGER, "select" INTEGER, "a.b" TEXT, "say ""x""" REAL, "größe {m}" TEXT)'
        )
        connection.execute('CREATE TABLE "customer group" ("select" INTEGER, "group" TEXT)')
        connection.execute('CREATE TABLE empty_one ("order id" INTEGER, note TEXT)')
        rows = [(i, 900 + i % 3, f"it's {i}", i / 2, "big") for i in range(9)]
        connection.executemany('INSERT INTO "order" VALUES (?, ?, ?, ?, ?)', rows)
        connection.executemany('INSERT INTO "customer group" VALUES (?, ?)', [(900, "x"), (901, "y"), (902, "z")])
    connection.close()
    return tf.open_corpus(path)


def test_odd_names_from_retrieval_to_the_operators(live, odd):
    live.answers = "True"
    found = odd.tables.tag.retrieve_tables(
        "Which customer group made the order?",
        k=2,
        method=tf.methods.IterativeJAR(subqueries=["customer group", "order"]),
    )
    assert {hit.id.split(".", 1)[1] for hit in found.tables} == {"order", "customer group"}
    merged = found.merge()
    assert len(merged) == 9
    assert set(merged.columns) == {"order id", "select", "a.b", 'say "x"', "größe {m}", "group"}
    kept = merged.tag.sem_filter('{group} buys {a.b} at {say "x"} for {select}')
    assert len(kept) == 9
    assert '{group} buys {a.b} at {say "x"} for {select}' in live.requests[0].messages[0]["content"]


def test_a_table_without_rows_is_found_and_merges_to_nothing(odd):
    found = odd.tables.tag.retrieve_tables("What is the note of the empty one?", k=1)
    assert found.ids[0].endswith(".empty_one")
    assert found.merge().empty


def test_a_warning_points_at_the_callers_line(tmp_path):
    (tmp_path / "a.csv").write_text("price;x\n1,5;1\n2,25;2\n")
    (tmp_path / "empty.csv").write_text("")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tf.open_corpus(tmp_path, progress=False)
    assert {type(one.message).__name__ for one in caught} == {"ColumnFormatWarning", "UnreadableTableWarning"}
    assert {one.filename for one in caught} == {__file__}
