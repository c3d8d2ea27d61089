import json

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument
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
    corpus = corpus.hide("customers.town")
    assert check(corpus, tmp_path / "then.json").findings == (), "what is hidden is not gone"


@pytest.mark.parametrize(
    ("table", "change", "finding"),
    [
        ("orders", lambda frame: frame.head(20), "shop.orders has 20 rows; before, 200"),
        ("orders", lambda frame: frame.drop(columns="buyer"), "shop.orders.buyer is gone"),
        ("customers", lambda frame: frame.drop(columns="town"), "column shop.customers.town is gone"),
        ("customers", lambda frame: frame.assign(town=range(100)), "holds integer values; before, text values"),
        ("customers", lambda frame: frame.assign(town="Brno"), "0% of shop.customers.town are empty; before, 50%"),
        ("customers", lambda frame: frame.assign(id=frame["id"] + 50), "50% of the rows have a partner by the key"),
        ("customers", lambda frame: frame.assign(id=frame["id"] + 500), "0% of the rows have a partner by the key"),
        ("customers", lambda frame: pd.concat([frame, frame]), "repeats rows: one becomes 2.00"),
    ],
)
def test_what_has_changed_is_told_of(folder, tmp_path, table, change, finding):
    check(opened(folder), tmp_path / "then.json")
    corpus = opened(folder)
    rewritten(folder, table, change)
    corpus = tf.open_corpus(folder, progress=False)
    found = check(corpus, tmp_path / "then.json", bound=0.1)
    assert any(finding in one for one in found.findings), found
    assert check(corpus, tmp_path / "then.json", accept=True).is_first
    kept = [one for one in check(corpus, tmp_path / "then.json").findings if "0% of the rows" not in one]
    assert not [one for one in kept if "is gone" not in one], "what was accepted is what is to be"


def test_a_table_that_is_gone(folder, tmp_path):
    check(opened(folder), tmp_path / "then.json")
    (folder / "customers.csv").unlink()
    found = check(tf.open_corpus(folder, progress=False), tmp_path / "then.json").findings
    assert "table shop.customers is gone" in found
    assert any("does not hold: shop.customers is gone" in one for one in found)


def test_a_key_that_never_held_is_told_of_at_once(folder, tmp_path):
    corpus = tf.open_corpus(folder, progress=False)
    corpus.keys.add("orders.order_id = customers.town")
    assert "0% of the rows have a partner" in check(corpus, tmp_path / "then.json").findings[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"tables": 3}',
        '{"tables": {}}',
        '{"tables": {"shop.orders": {}}, "keys": {}}',
        '{"tables": {}, "keys": [1]}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused(folder, tmp_path, text):
    (tmp_path / "then.json").write_text(text)
    with pytest.raises(InvalidArgument, match="was not written by `tagframe check`"):
        check(opened(folder), tmp_path / "then.json")


def test_a_bound_is_a_share(folder, tmp_path):
    with pytest.raises(InvalidArgument, match="from 0 to 1"):
        check(opened(folder), tmp_path / "then.json", bound=5)


def test_a_table_that_references_itself(tmp_path):
    (tmp_path / "staff.csv").write_text("id,boss\n1,\n2,1\n3,1\n4,9\n")
    corpus = tf.open_corpus(tmp_path / "staff.csv", progress=False)
    corpus.keys.add("staff.boss = staff.id")
    assert check(corpus, tmp_path / "then.json").findings == ()
    (tmp_path / "staff.csv").write_text("id,boss\n1,\n2,7\n3,8\n4,9\n")
    found = check(tf.open_corpus(tmp_path / "staff.csv", progress=False), tmp_path / "then.json").findings
    assert any("0% of the rows have a partner" in one and "before, 67%" in one for one in found)


def test_keys_of_several_columns_and_keys_that_were_learned(tmp_path):
    frames = {
        "sale": pd.DataFrame({"y": [2020, 2020, 2021, 2022], "c": ["a", "b", "a", "z"]}),
        "rate": pd.DataFrame({"y": [2020, 2020, 2021], "c": ["a", "b", "a"], "r": [1.0, 2.0, 3.0]}),
    }
    corpus = tf.open_corpus(frames)
    corpus.learn("SELECT r FROM sale s JOIN rate t ON s.y = t.y AND s.c = t.c")
    assert check(corpus, tmp_path / "then.json").findings == ()
    (held,) = json.loads((tmp_path / "then.json").read_text())["keys"].values()
    assert held == {"matched": 1.0, "fan_out": 1.0}


@pytest.mark.parametrize("key", ["staff.boss = staff.id", "staff.boss = desk.id"])
def test_a_key_on_which_no_table_joins_is_told_of(tmp_path, key):
    corpus = tf.open_corpus({"staff": pd.DataFrame({"id": [1, 2], "boss": [2, 1]}), "desk": pd.DataFrame({"id": [1]})})
    corpus.keys.add(key)
    corpus.hide("staff.boss", joinable=False)
    (finding,) = check(corpus, tmp_path / "then.json").findings
    assert "does not hold: it cannot be checked: frames.staff.boss is hidden" in finding
