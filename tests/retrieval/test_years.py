"""Years that a question means by a range, in four languages."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.retrieval.families import Family, of_other_years
from tagframe.retrieval.years import years_in_range

ALL = range(2005, 2024)


@pytest.mark.parametrize(
    ("question", "years"),
    [
        ("Sales from 2010 to 2012", range(2010, 2013)),
        ("Sales between 2010 and 2012 by region", range(2010, 2013)),
        ("Sales 2010–2012", range(2010, 2013)),
        ("births since the year 2021", range(2021, 2024)),
        ("births from 2021 onwards", range(2021, 2024)),
        ("trips before 2007", range(2005, 2007)),
        ("trips after 2021", range(2022, 2024)),
        ("trips until 2007", range(2005, 2008)),
        ("players of the 2010s", range(2010, 2020)),
        ("goals in the last three seasons", range(2021, 2024)),
        ("Umsatz von 2010 bis 2012", range(2010, 2013)),
        ("Umsatz zwischen 2010 und 2012", range(2010, 2013)),
        ("Geburten seit dem Jahr 2021", range(2021, 2024)),
        ("Fahrten vor 2007", range(2005, 2007)),
        ("Tore der letzten drei Jahre", range(2021, 2024)),
        ("Les ventes de 2010 à 2012", range(2010, 2013)),
        ("Les naissances depuis 2021", range(2021, 2024)),
        ("trajets avant 2007", range(2005, 2007)),
        ("Ventas entre 2010 y 2012", range(2010, 2013)),
        ("Ventas entre julio de 2010 y junio de 2012", range(2010, 2013)),
        ("Umsatz vom 1. Juli 2010 bis 30. Juni 2012", range(2010, 2013)),
        ("nacimientos desde 2021", range(2021, 2024)),
        ("goles de las últimas tres temporadas", range(2021, 2024)),
        ("viajes antes de 2007", range(2005, 2007)),
        ("Sales in 2010 and 2012", None),
        ("Sales from 2010", None),
        ("The top 10 of 2012", None),
        ("Call 2010-12 of room 2012", None),
        ("", None),
    ],
)
def test_a_range_of_years(question, years):
    assert years_in_range(question, ALL) == (None if years is None else frozenset(years))


def test_pieces_of_a_range_are_stacked(tmp_path):
    for year in (2018, 2019, 2020, 2021):
        frame = pd.DataFrame({"trip_id": range(year * 10, year * 10 + 5), "minutes": range(5)})
        frame.to_csv(tmp_path / f"trips_{year}.csv", index=False)
    corpus = tf.open_corpus(tmp_path)

    def years(question):
        return sorted({number // 10 for number in corpus.retrieve_tables(question).merge()["trip_id"]})

    assert years("Minutes of the trips since 2019") == [2019, 2020, 2021]
    assert years("Minutes of the trips in 2018 and 2021") == [2018, 2021]
    assert years("Minutes of all trips before 2019") == [2018]


@pytest.mark.parametrize(
    ("question", "years"),
    [
        ("How many goals did the teams score in 2022?", {2022}),
        ("Goals of the teams since 2022", {2022, 2023}),
        ("How many goals did the teams score?", {2021, 2022, 2023}),
        ("How many teams were founded in 1990?", {2021, 2022, 2023}),
    ],
)
def test_tables_of_other_years_are_no_candidates(question, years):
    columns = {"goals": ["team", "goals"], "teams": ["team", "city", "founded"]}
    tables = {
        f"c.{year}_{name}": pd.DataFrame({column: [1, 2] for column in [*of, *["day"] * (year % 2)]})
        for year in (2021, 2022, 2023)
        for name, of in columns.items()
    }
    corpus = tf.open_corpus(tables)
    ids = {part for hit in corpus.retrieve_tables(question).tables for part in hit.parts or (hit.id,)}
    found = {int(id[2:6]) for id in ids}
    assert found <= years
    assert len(years) > 2 or found


def test_a_table_of_another_year_without_a_namesake_of_the_right_one_stays():
    ids = ["c.sales_2023", "c.sales_2024", "c.budget_2024", "c.shops"]
    corpus = tf.open_corpus({id: pd.DataFrame({"shop": [1, 2], id[2:6]: [3, 4]}) for id in ids})
    apart = of_other_years([Family(table, table.name) for table in corpus.profiles], "Sales of 2023 against the budget")
    assert dict(zip(corpus.ids, apart.tolist(), strict=True)) == {id: id == "c.sales_2024" for id in ids}


@pytest.mark.parametrize(
    ("question", "years"),
    [
        ("pupils of the schools in 2022/23", ["202223"]),
        ("pupils of the schools from 2021/22 to 2022/23", ["202122", "202223"]),
        ("pupils of the schools", ["202122", "202223", "202324"]),
    ],
)
def test_a_season_in_the_name_of_a_file_is_its_first_year(tmp_path, question, years):
    for season in ("202122", "202223", "202324"):
        rows = pd.DataFrame({"school": ["A", "B"], "pupils": [int(season), 7]})
        rows.to_csv(tmp_path / f"SCHOOLS{season}20230901.csv", index=False)
    found = tf.open_corpus(tmp_path).retrieve_tables(question, k=1)
    assert sorted(id[-14:-8] for id in found.members) == years
