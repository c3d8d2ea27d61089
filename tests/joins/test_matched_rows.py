"""Matched rows are compared where their tables share another column, and what differs is said if it may be the key."""

from __future__ import annotations

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import DoubtfulJoinWarning
from tagframe.merging import plan_tables, run_plan

D = pd.DataFrame
DRAWN = np.random.default_rng(5)
DAYS = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d").tolist()
MONEY = ["USD", "EUR", "GBP"]


def drawn(values, rows):
    return [values[number] for number in DRAWN.integers(0, len(values), rows)]


def said(frames, **how) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tf.merge(frames, **how)
    return [str(one.message) for one in caught if "matched rows" in str(one.message)]


INVOICES = D({"invoice": range(300), "date": drawn(DAYS, 300), "currency": drawn(MONEY, 300)})
RATES = D({"date": DAYS, "currency": drawn(MONEY, 60), "rate": DRAWN.random(60)})


def test_a_rate_of_another_currency_is_said_with_its_share_and_the_way_out():
    merged = INVOICES.merge(RATES, on="date")
    differing = int((merged["currency_x"] != merged["currency_y"]).sum())
    with pytest.warns(DoubtfulJoinWarning, match=f"currency differs in {differing} of 300 matched rows") as caught:
        frame = tf.merge({"invoices": INVOICES, "rates": RATES})
    assert 'on="invoices.date = rates.date and invoices.currency = rates.currency"' in str(caught[0].message)
    assert caught[0].filename == __file__
    assert frame.tag.merge_report.differing == (
        f"currency differs in {differing} of 300 matched rows on frames.invoices.date = frames.rates.date",
    )
    assert "currency differs" in repr(frame.tag.merge_report)
    assert not said({"invoices": INVOICES, "rates": RATES}, on="date"), "who gives a key knows what it is"
    with pytest.warns(DoubtfulJoinWarning):
        narrow = tf.merge({"invoices": INVOICES, "rates": RATES}, columns=["invoice", "rate"])
    assert [*narrow.columns] == ["invoice", "rate"], "what is compared is no part of the result"


def test_what_differs_is_said_wherever_the_merge_runs(tmp_path):
    file = tmp_path / "money.sqlite"
    with sqlite3.connect(file) as connection:
        INVOICES.to_sql("invoices", connection, index=False)
        RATES.to_sql("rates", connection, index=False)
    corpus = tf.open_corpus(file)
    plan = plan_tables(corpus, ["money.invoices", "money.rates"])
    for by in ("engine", "memory"):
        with pytest.warns(DoubtfulJoinWarning, match="currency differs in"):
            _, report = run_plan(plan, corpus, by=by)
        assert len(report.differing) == 1
        assert report.to_dict()["differing"] == [*report.differing]


def test_prices_by_product_and_region_and_a_panel_of_one_year_are_said():
    products = [f"P{number}" for number in range(20)]
    sales = D({"sale": range(200), "product": drawn(products, 200), "region": drawn("NSEW", 200)})
    prices = D({"product": products, "region": drawn("NSEW", 20), "price": DRAWN.random(20)})
    assert "region differs" in said({"sales": sales, "prices": prices})[0]
    countries = [f"C{number:02d}" for number in range(15)]
    gdp = D({"country": countries, "year": 2020, "gdp": DRAWN.random(15)})
    emitted = D({"country": countries * 3, "year": [2019] * 15 + [2020] * 15 + [2021] * 15, "co2": DRAWN.random(45)})
    assert "year differs in 30 of 45 matched rows" in said({"emitted": emitted, "gdp": gdp})[0]


def test_columns_that_only_share_a_name_say_nothing():
    orders = D({
        "order_id": range(100), "customer_id": drawn(range(1, 21), 100), "status": drawn(["open", "shipped"], 100),
        "created_at": drawn(DAYS, 100), "notes": drawn("xyz", 100), "country": drawn(["US", "DE"], 100),
        "updated_by": drawn(["ann", "bo"], 100),
    })  # fmt: skip
    customers = D({
        "customer_id": range(1, 21), "name": [f"n{number}" for number in range(20)],
        "status": drawn(["open", "shipped", "gone"], 20), "created_at": drawn(DAYS, 20), "notes": drawn("xyz", 20),
        "country": drawn(["US", "DE"], 20), "updated_by": drawn(["ann", "bo"], 20),
    })  # fmt: skip
    payments = D({"payment": range(100), "order_id": range(100), "status": drawn(["open", "shipped"], 100),
                  "date": drawn(DAYS, 100), "amount": DRAWN.random(100)})  # fmt: skip
    frames = {"orders": orders.assign(date=drawn(DAYS, 100)), "customers": customers, "payments": payments}
    assert said(frames) == []


def test_a_copied_column_that_agrees_says_nothing_and_mistakes_are_few():
    customers = D({"customer_id": range(20), "region": drawn("NSEW", 20)})
    regions = customers.set_index("customer_id")["region"]
    orders = D({"order": range(200), "customer_id": drawn(range(20), 200)})
    orders["region"] = orders["customer_id"].map(regions).where(orders["order"] > 3, "X")
    assert said({"orders": orders, "scores": customers.assign(score=range(20))}) == []
