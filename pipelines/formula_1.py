"""Pipelines over ``formula_1``: races on circuits, and the results of drivers and constructors."""

from __future__ import annotations

from typing import Any

import pandas as pd

import tagframe as tf
from pipelines.registry import Frames, answers


def _on_circuits(tables: Frames, races: pd.DataFrame) -> pd.DataFrame:
    """Races, each with its circuit's location and country."""
    circuits = tables["circuits"][["circuitId", "location", "country", "lat"]]
    return tf.merge({"races": races, "circuits": circuits}, on="circuitId")


def _finished(tables: Frames) -> pd.DataFrame:
    """The results of drivers who crossed the finish line.

    Their ``status`` is Finished, or +1 Lap and so on: lapped drivers finished, too, but have no ``time``. A driver who
    broke down near the end has a position, but did not finish.
    """
    status = tables["status"]
    crossed = status["statusId"][status["status"].str.fullmatch(r"Finished|\+\d+ Laps?")]
    return tables["results"][tables["results"]["statusId"].isin(crossed)]


def _race(tables: Frames, year: int, race: str) -> list[int]:
    """The id of the race of a year by its name."""
    return tables["races"].query("year == @year and name == @race")["raceId"].tolist()


@answers(11, reads="races circuits")
def races_in_the_middle_east(tables: Frames) -> Any:
    """The names of races that were held on circuits in the Middle East."""
    races = _on_circuits(tables, tables["races"])
    return races.tag.sem_filter("{country} is in the Middle East")["name"].drop_duplicates().tolist()


@answers(13, reads="races results drivers")
def asian_drivers_in_melbourne(tables: Frames) -> Any:
    """How many drivers of the Australian Grand Prix of 2008 are Asian."""
    race = _race(tables, 2008, "Australian Grand Prix")
    competed = tables["results"].query("raceId in @race")["driverId"]
    drivers = tables["drivers"][tables["drivers"]["driverId"].isin(competed)]
    return len(drivers.tag.sem_filter("a driver of {nationality} nationality is Asian"))


@answers(35, reads="results drivers")
def young_drivers_ranked_second(tables: Frames) -> Any:
    """How many drivers who were born after the Vietnam War have been ranked 2.

    ``results`` has a column of that name, the rank of a driver's fastest lap in a race: it is what the words say, and
    the key takes it, too. Who means second places has to take ``position``.
    """
    second = tables["results"].query("rank == 2")["driverId"]
    drivers = tables["drivers"][tables["drivers"]["driverId"].isin(second)]
    end = tf.known("the year in which {event} ended", "number", event="the Vietnam War")
    return int((pd.to_datetime(drivers["dob"]).dt.year > end).sum())


@answers(36, reads="races circuits")
def european_grands_prix_in_the_bundesligas_country(tables: Frames) -> Any:
    """The share of European Grands Prix, in percent, in the country with the football league Bundesliga."""
    races = _on_circuits(tables, tables["races"].query("name == 'European Grand Prix'"))
    there = races.tag.sem_filter("the Bundesliga is the football league of {country}")
    return round(100 * len(there) / len(races))


@answers(38, reads="races results drivers status")
def debuts_before_hamilton(tables: Frames) -> Any:
    """How many drivers who finished the Australian Grand Prix of 2008 had raced before Lewis Hamilton's first race."""
    starts = tf.merge({"results": tables["results"], "races": tables["races"][["raceId", "date"]]}, on="raceId")
    debut = starts.groupby("driverId")["date"].min()
    race = _race(tables, 2008, "Australian Grand Prix")
    hamilton = tables["drivers"].query("forename == 'Lewis' and surname == 'Hamilton'")["driverId"].iloc[0]
    finished = _finished(tables).query("raceId in @race")
    return int((finished["driverId"].map(debut) < debut[hamilton]).sum())


@answers(48, reads="circuits")
def circuit_near_a_capital(tables: Frames) -> Any:
    """Which of three circuits lies closest to a capital city."""
    named = tables["circuits"]["name"].isin(["Silverstone Circuit", "Hockenheimring", "Hungaroring"])
    circuits = tables["circuits"][named]
    return circuits.tag.sem_topk("{name} is the circuit closest to a capital city", K=1)["name"].tolist()


@answers(49, reads="drivers results races status")
def alex_yoong_in_the_top_half(tables: Frames) -> Any:
    """The races that Alex Yoong finished in the upper half of the drivers who finished.

    There is none: his best result was seventh of eight. Here the key and the words part: the key has that race, the
    Australian Grand Prix of 2002, but half of all 22 drivers who started would also give the French one (tenth); only
    the drivers' standings after the race give the key's answer alone.
    """
    yoong = tables["drivers"].query("forename == 'Alex' and surname == 'Yoong'")["driverId"].iloc[0]
    finished = _finished(tables)
    own = finished.query("driverId == @yoong")
    upper = own[own["position"] <= own["raceId"].map(finished.groupby("raceId").size()) / 2]
    return tf.merge({"results": upper, "races": tables["races"]}, on="raceId")["name"].tolist()


@answers(952, reads="races results constructors")
def prestigious_constructor(tables: Frames) -> Any:
    """The constructor with the most prestige among those that were ranked 1 in a race of 2014.

    As in question 35, ``rank`` is that of a driver's fastest lap: Ferrari is among them, though it won no race then.
    """
    of_2014 = tables["races"].query("year == 2014")["raceId"]
    first = tables["results"].query("rank == 1 and raceId in @of_2014")["constructorId"]
    constructors = tables["constructors"][tables["constructors"]["constructorId"].isin(first)]
    return constructors.tag.sem_topk("{name} is the racing team with the most prestige", K=1)["name"].tolist()


@answers(1000, reads="races circuits")
def latest_circuits_by_the_equator(tables: Frames) -> Any:
    """The locations of the five circuits with the latest races, starting with the one closest to the equator."""
    circuits = _on_circuits(tables, tables["races"]).sort_values("date").drop_duplicates("circuitId", keep="last")
    return circuits.tail(5).sort_values("lat", key=abs)["location"].tolist()


def _track_characteristics(circuits: pd.DataFrame) -> Any:
    """A summary of circuits."""
    columns = circuits[["name", "location", "country", "alt"]]
    return columns.tag.sem_agg("Summarise the characteristics of these race tracks", all_cols=True, knowledge=True)[
        "_output"
    ].iloc[0]


@answers(92, reads="circuits")
def tracks_in_germany(tables: Frames) -> Any:
    """What the circuits in Germany are like."""
    return _track_characteristics(tables["circuits"].query("country == 'Germany'"))


@answers(93, reads="circuits")
def tracks_in_spain(tables: Frames) -> Any:
    """What the circuits in Spain are like."""
    return _track_characteristics(tables["circuits"].query("country == 'Spain'"))


@answers(94, reads="circuits races")
def races_in_sepang(tables: Frames) -> Any:
    """Information about the races on Sepang International Circuit."""
    sepang = tables["circuits"].query("name == 'Sepang International Circuit'")[["circuitId", "location", "country"]]
    races = tf.merge({"races": tables["races"], "circuits": sepang}, on="circuitId", on_loss="allow")
    columns = races[["year", "round", "name", "date", "location", "country"]]
    return columns.tag.sem_agg("Give information about these races", all_cols=True, knowledge=True)["_output"].iloc[0]


@answers(95, reads="results drivers status")
def finishers_of_race_872(tables: Frames) -> Any:
    """What the drivers who finished race 872 are like."""
    finished = _finished(tables).query("raceId == 872")
    drivers = tables["drivers"][["driverId", "forename", "surname", "dob", "nationality"]]
    frame = tf.merge({"results": finished, "drivers": drivers}, on="driverId")
    people = frame[["forename", "surname", "dob", "nationality", "grid", "position", "points"]]
    return people.tag.sem_agg("Summarise the qualities of these drivers", all_cols=True, knowledge=True)[
        "_output"
    ].iloc[0]


@answers(96, reads="circuits")
def tracks_in_lisbon(tables: Frames) -> Any:
    """What the circuits in Lisbon, Portugal, are like; in the data, Estoril has another place name than on maps."""
    portuguese = tables["circuits"].query("country == 'Portugal'")
    return _track_characteristics(portuguese.tag.sem_filter("the circuit {name} in {location} lies in or near Lisbon"))


@answers(97, reads="circuits")
def tracks_in_the_us(tables: Frames) -> Any:
    """What the circuits in the USA are like."""
    return _track_characteristics(tables["circuits"].query("country == 'USA'"))


@answers(99, reads="results constructors")
def french_constructors_of_long_races(tables: Frames) -> Any:
    """A summary of the French constructors that drove more than fifty laps in a race."""
    long = tables["results"].query("laps > 50")["constructorId"]
    french = tables["constructors"].query("nationality == 'French' and constructorId in @long")
    columns = french[["name", "nationality"]]
    return columns.tag.sem_agg("Summarise what is known of these racing teams", all_cols=True, knowledge=True)[
        "_output"
    ].iloc[0]


@answers(100, reads="circuits")
def tracks_in_italy(tables: Frames) -> Any:
    """What the circuits in Italy are like."""
    return _track_characteristics(tables["circuits"].query("country == 'Italy'"))
