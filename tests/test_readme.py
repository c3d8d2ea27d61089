"""The README's code without a model runs as it stands there, over small data."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def code_of(heading: str) -> str:
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL))


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.chdir(tmp_path)
    Path("warehouse.sql").write_text("CREATE TABLE stock (part_id INT, amount INT);")
    orders = pd.DataFrame({"order_id": [1, 2, 3], "customer_id": [70, 80, 70], "st": [3, 1, 3]})
    customers = pd.DataFrame({"id": [70, 80], "ssn": ["078-05-1120", "219-09-9999"], "city": ["Porto", "Faro"]})
    states = pd.DataFrame({"id": [1, 3], "state": ["open", "shipped"]})
    days = pd.DataFrame({"ticker": ["A", "A", "B"], "day": ["1", "2", "1"]})
    return {
        "tf": tf,
        "orders": orders,
        "customers": customers,
        "prices": days.assign(price=[1.0, 2.0, 3.0]),
        "volumes": days.assign(volume=[10, 20, 30]),
        "sales_2023": pd.DataFrame({"sale": [1], "amount": [5]}),
        "sales_2024": pd.DataFrame({"sale": [1], "amount": [7]}),
        "corpus": tf.open_corpus(
            {"orders": orders.rename(columns={"customer_id": "buyer"}), "customers": customers, "states": states}
        ),
    }


def test_joining_by_hand(names):
    lines = code_of("Joining by hand").strip().splitlines()
    results = [eval(line.split("#")[0], names) for line in lines]
    keys, merged, panel, latest, left, report, sql, stacked = results
    assert keys[0].left_columns == ("customer_id",)
    assert merged["city"].tolist() == left["city"].tolist() == ["Porto", "Faro", "Porto"]
    assert panel.columns.tolist() == ["ticker", "day", "price", "volume"]
    assert latest["price"].tolist() == panel["price"].tolist()
    assert report.start_rows == 3
    assert "JOIN" in sql
    assert len(stacked) == 2


def test_what_you_know(names):
    exec(code_of("What you know, told once"), names)
    corpus = names["corpus"]
    assert "orders.buyer" in repr(corpus.keys)
    assert "not frames.orders.st" in repr(corpus.keys)
    assert corpus.profile("customers").column("ssn").hidden
    assert corpus.profile("orders").column("st").description == "status code, 3 = shipped"
