"""Pipelines over ``debit_card_specializing``: customers, gas stations and payments."""

from __future__ import annotations

from typing import Any

import pandas as pd

import tagframe as tf
from pipelines.registry import Frames, answers


def _consumption(tables: Frames) -> pd.DataFrame:
    """Monthly consumption of customers; ``Date`` has the form 201207."""
    used = tf.merge({"yearmonth": tables["yearmonth"], "customers": tables["customers"]}, on="CustomerID")
    return used.assign(year=used["Date"].astype(str).str[:4])


def _paid_where(tables: Frames, countries: list[str]) -> pd.DataFrame:
    """The transactions at gas stations of some countries."""
    stations = tables["gasstations"].query("Country in @countries")[["GasStationID", "Country"]]
    paid = {"transactions": tables["transactions_1k"], "stations": stations}
    return tf.merge(paid, on="GasStationID", on_loss="allow")


def _countries(tables: Frames, claim: str) -> list[str]:
    """The countries of gas stations, by their ISO codes, for which a claim is true."""
    countries = tables["gasstations"][["Country"]].drop_duplicates()
    return list(countries.tag.sem_filter(claim)["Country"])


@answers(24, reads="yearmonth customers")
def year_of_most_gas_in_the_dearer_currency(tables: Frames) -> Any:
    """The year with the highest consumption of customers who pay in the currency with the highest value."""
    used = _consumption(tables)
    currencies = used[["Currency"]].drop_duplicates()
    dearer = currencies.tag.sem_topk("one unit of the currency {Currency} is worth the most", K=1)["Currency"].iloc[0]
    return used[used["Currency"] == dearer].groupby("year")["Consumption"].sum().idxmax()


@answers(25, reads="gasstations transactions_1k")
def mean_price_in_bohemia(tables: Frames) -> Any:
    """The mean total price at gas stations in the country that was known as Bohemia."""
    bohemia = _countries(tables, "the country with the country code {Country} is historically known as Bohemia")
    paid = _paid_where(tables, bohemia)
    return round((paid["Amount"] * paid["Price"]).mean())


@answers(29, reads="yearmonth customers")
def difference_between_currencies(tables: Frames) -> Any:
    """By how much the consumption in 2012 of customers who pay in Czech koruna exceeds that of euro payers."""
    used = _consumption(tables).query("year == '2012'").groupby("Currency")["Consumption"].sum()
    czech = tf.known("the ISO 4217 code of the currency of {place}", place="the Czech Republic")
    euro = tf.known("the ISO 4217 code of the currency of {place}", place="the European Union")
    return round(used[czech] - used[euro])


@answers(30, reads="customers")
def small_firms_that_pay_in_koruna(tables: Frames) -> Any:
    """Whether more SMEs pay in Czech koruna than in the second-largest reserve currency of the world."""
    payers = tables["customers"].query("Segment == 'SME'")["Currency"].value_counts()
    czech = tf.known("the ISO 4217 code of the currency of {place}", place="the Czech Republic")
    second = tf.known("the ISO 4217 code of the {rank} reserve currency of the world", rank="second-largest")
    return "Yes" if payers.get(czech, 0) > payers.get(second, 0) else "No"


@answers(47, reads="gasstations transactions_1k")
def dear_transactions_in_the_czech_republic(tables: Frames) -> Any:
    """How many transactions at Czech gas stations cost more than 42.74 US dollars."""
    czech = _countries(tables, "{Country} is the country code of the Czech Republic")
    rate = tf.known("how many {other} one {one} cost in August 2012", "number", other="Czech koruna", one="US dollar")
    return int((_paid_where(tables, czech)["Price"] / rate > 42.74).sum())
