"""Pipelines over ``california_schools``: schools, their SAT scores (``satscores``) and free meals (``frpm``)."""

from __future__ import annotations

from calendar import monthrange
from typing import Any

import pandas as pd

import tagframe as tf
from pipelines.registry import Frames, answers


def _scores(tables: Frames) -> pd.DataFrame:
    """SAT scores of schools, with the county, without the whole districts that are also in ``satscores``."""
    return tables["satscores"].query("rtype == 'S'")


def _tested_schools(tables: Frames) -> pd.DataFrame:
    """Schools with their SAT scores and all other columns; nine tested schools are not in ``schools``."""
    return tf.merge({"scores": _scores(tables), "schools": tables["schools"]}, on="cds = CDSCode")


def _fed_schools(tables: Frames) -> pd.DataFrame:
    """Schools with the data on their meals and their enrolment."""
    return tf.merge({"frpm": tables["frpm"], "schools": tables["schools"]}, on="CDSCode")


@answers(0, reads="satscores")
def strong_in_math_in_the_bay_area(tables: Frames) -> Any:
    """How many schools in the Bay Area have an average of over 560 in math."""
    strong = _scores(tables).query("AvgScrMath > 560")
    return len(strong.tag.sem_filter("{cname} is a county in the San Francisco Bay Area"))


@answers(1, reads="satscores schools")
def phone_of_the_weakest_readers_in_the_south(tables: Frames) -> Any:
    """The phone number of the school in Southern California with the lowest average in reading."""
    schools = _tested_schools(tables).dropna(subset=["AvgScrRead"])
    southern = schools.tag.sem_filter("{County} is a county in Southern California")
    return southern.nsmallest(1, "AvgScrRead")["Phone"].tolist()


@answers(3, reads="satscores")
def test_takers_in_large_counties(tables: Frames) -> Any:
    """How many took the test in counties of more than two million people.

    The words ask for all of them, and ``satscores`` has the county of each. The key takes the county from ``schools``,
    where nine of the tested schools are missing, and so counts fewer.
    """
    large = _scores(tables).tag.sem_filter("{cname} is a county in California with a population of over 2 million")
    return int(large["NumTstTakr"].sum())


@answers(4, reads="schools")
def grades_of_the_outermost_school_in_silicon_valley(tables: Frames) -> Any:
    """The grades of the school in Silicon Valley that is farthest from the prime meridian."""
    schools = tables["schools"].dropna(subset=["City", "Longitude"])
    outermost_first = schools.sort_values("Longitude", key=abs, ascending=False)
    found = outermost_first.tag.sem_filter("{City} is a city in the 'Silicon Valley' region", limit=1)
    return found["GSoffered"].tolist()


@answers(5, reads="schools")
def commonest_female_administrators(tables: Frames) -> Any:
    """The two commonest female first names of administrators."""
    names = tables["schools"]["AdmFName1"].value_counts().rename_axis("first_name").reset_index()
    return names.tag.sem_filter("{first_name} is typically a female first name", limit=2)["first_name"].tolist()


@answers(33, reads="satscores schools")
def good_schools_with_mail_to_the_seat_of_lake_county(tables: Frames) -> Any:
    """How many schools with a total of 1,500 or more have a mailing address in the county seat of Lake County."""
    schools = _tested_schools(tables)
    good = schools[schools[["AvgScrRead", "AvgScrMath", "AvgScrWrite"]].sum(axis=1, skipna=False) >= 1500]
    seat = tf.known("the county seat of {county}", county="Lake County, California")
    return int((good["MailCity"] == seat).sum())


@answers(41, reads="satscores frpm")
def near_the_best_with_free_meals(tables: Frames) -> Any:
    """How many schools with a free-meal share above 0.1 have a total within a hundred points of the best total.

    The data have no scores of single test takers, so a school's mean is used as its score, and "the maximum" is the
    highest mean. The key is 1, but with these rows there are two such schools. If "the maximum" meant 1,600 points, the
    test would be ``NumGE1500 > 0``, which more than a thousand schools pass.
    """
    scores = _scores(tables)
    totals = scores.assign(total=scores[["AvgScrRead", "AvgScrMath", "AvgScrWrite"]].sum(axis=1, skipna=False))
    near_the_best = totals[totals["total"] >= totals["total"].max() - 100]
    fed = tf.merge({"scores": near_the_best, "frpm": tables["frpm"]}, on="cds = CDSCode")
    return int((fed["Percent (%) Eligible Free (K-12)"] > 0.1).sum())


@answers(42, reads="frpm")
def enrolled_outside_the_school_ages(tables: Frames) -> Any:
    """For how many schools the enrolments K-12 and ages 5-17 differ by more than the number of days in April."""
    frpm = tables["frpm"]
    difference = frpm["Enrollment (K-12)"] - frpm["Enrollment (Ages 5-17)"]
    return int((difference > monthrange(2015, 4)[1]).sum())


@answers(50, reads="satscores schools")
def most_futuristic_magnet_school(tables: Frames) -> Any:
    """The magnet school with more than 500 test takers whose name sounds most futuristic."""
    magnets = _tested_schools(tables).query("Magnet == 1 and NumTstTakr > 500")
    return magnets.tag.sem_topk("{School} is the name that sounds most futuristic", K=1)["School"].tolist()


@answers(61, reads="schools")
def safest_cities_with_virtual_schools(tables: Frames) -> Any:
    """The three safest cities with an exclusively virtual school (``Virtual`` is F).

    The words could also mean cities where all schools are virtual; the key does not, as each of its three has others.
    Among the 30 cities, the order is a matter of judgement: the key has Simi Valley before Westlake Village, the
    recorded judgements the other way round. The words do not leave out closed schools; that of Westlake Village is one.
    """
    cities = tables["schools"].query("Virtual == 'F'")[["City"]].dropna().drop_duplicates()
    return cities.tag.sem_topk("{City}, California, is the safest place to live", K=3)["City"].tolist()


@answers(62, reads="frpm schools")
def diverse_cities_of_large_schools(tables: Frames) -> Any:
    """The cities of the five largest schools, the most diverse city first."""
    cities = _fed_schools(tables).nlargest(5, "Enrollment (K-12)")[["City"]].drop_duplicates()
    return cities.tag.sem_topk("{City}, California, is the most diverse city", K=5)["City"].tolist()


@answers(63, reads="frpm schools")
def continuation_schools_by_affordable_city(tables: Frames) -> Any:
    """The three continuation schools with the lowest free-meal share at ages 5-17, by affordability of the city."""
    schools = _fed_schools(tables)
    continuation = schools[schools["Educational Option Type"] == "Continuation School"]
    lowest = continuation.nsmallest(3, "Percent (%) Eligible Free (Ages 5-17)")
    return lowest.tag.sem_topk("{City}, California, is the most affordable city", K=3)["School Name"].tolist()


@answers(64, reads="satscores")
def county_of_excellence(tables: Frames) -> Any:
    """Among the three schools with the most totals of 1,500 by share, the county with the best academic reputation."""
    scores = _scores(tables)
    best = scores.assign(rate=scores["NumGE1500"] / scores["NumTstTakr"]).nlargest(3, "rate")
    return best.tag.sem_topk("{cname} County has the strongest academic reputation", K=1)["cname"].tolist()


@answers(65, reads="frpm schools")
def small_cities_to_visit(tables: Frames) -> Any:
    """The two cities most popular to visit, among the ten cities with the fewest pupils."""
    pupils = _fed_schools(tables).groupby("City")["Enrollment (K-12)"].sum()
    smallest = pupils.nsmallest(10).reset_index()
    return smallest.tag.sem_topk("{City}, California, is the most popular city to visit", K=2)["City"].tolist()


_COLUMNS = [
    "School",
    "County",
    "City",
    "FundingType",
    "SOCType",
    "GSoffered",
    "Virtual",
    "NumTstTakr",
    "AvgScrRead",
    "AvgScrMath",
    "AvgScrWrite",
]
"""Columns that describe a school."""


@answers(81, reads="satscores schools")
def virtual_schools_below_600(tables: Frames) -> Any:
    """What the exclusively virtual schools with an average below 600 in math are like."""
    schools = _tested_schools(tables).query("AvgScrMath < 600 and Virtual == 'F'")
    return schools[_COLUMNS].tag.sem_agg("Summarise the qualities of these schools", all_cols=True)["_output"].iloc[0]


@answers(82, reads="satscores schools")
def riverside_schools_above_400(tables: Frames) -> Any:
    """What the schools in Riverside with an average above 400 in math are like."""
    schools = _tested_schools(tables).query("AvgScrMath > 400 and City == 'Riverside'")
    return schools[_COLUMNS].tag.sem_agg("Summarise the qualities of these schools", all_cols=True)["_output"].iloc[0]
