import pandas as pd
import pytest

import tagframe as tf
from tagframe.evaluation import check


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    pd.DataFrame({"id": range(100), "town": ["Brno", None] * 50, "secret": ["kaw"] * 100}).to_csv(
        folder / "customers.csv", index=False
    )
    pd.DataFrame({"order_id": range(200), "buyer": [number % 100 for number in range(200)]}).to_csv(
        folder / "orders.csv", index=False
    )
    return folder


def opened(folder):
    corpus = tf.open_corpus(folder, progress=False)
    corpus.keys.add("orders.buyer = customers.id")
    return corpus


def rewritten(folder, table, change):
    path = folder / f"{table}.csv"
    change(pd.read_csv(path)).to_csv(path, index=False)


def test_what_has_not_changed_is_not_told_of(folder, tmp_path):
    first = check(opened(folder), tmp_path / "then.json")
    assert (first.is_first, first.tables, first.keys, first.findings) == (True, 2, 1, ())
    second = check(opened(folder), tmp_path / "then.json")
    assert (second.is_first, second.findings) == (False, ())
    assert "Brno" not in (tmp_path / "then.json").read_text()


def test_no_cell_and_no_hidden_column_is_written_down(folder, tmp_path):
    corpus = opened(folder)
    corpus = corpus.hide("customers.secret")
    check(corpus, tmp_path / "then.json")
    assert "secret" not in (tmp_path / "then.json").read_text()
    assert check(corpus, tmp_path / "then.json").findings == ()
