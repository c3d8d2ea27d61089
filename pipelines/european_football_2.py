"""Pipelines over ``european_football_2``: players and their attributes, matches, teams and leagues."""

from __future__ import annotations

from typing import Any

import pandas as pd

import tagframe as tf
from pipelines.registry import Frames, answers

CM_PER_FOOT, CM_PER_INCH, POUNDS_PER_KG = 30.48, 2.54, 2.20462


def _rated_players(tables: Frames) -> pd.DataFrame:
    """All ratings of all players: ``Player_Attributes`` with name, height and weight."""
    players = tables["Player"][["player_api_id", "player_name", "height", "weight"]]
    return tf.merge({"ratings": tables["Player_Attributes"], "players": players}, on="player_api_id")


@answers(16, reads="Player Player_Attributes")
def foot_of_the_most_honoured_player(tables: Frames) -> Any:
    """The preferred foot, at the last rating, of the player with the most Ballon d'Or awards."""
    name = tf.known(
        "the footballer who has won the most {award} awards, as his name is usually given", award="Ballon d'Or"
    )
    ratings = _rated_players(tables).query("player_name == @name")
    return ratings.sort_values("date").tail(1)["preferred_foot"].tolist()


@answers(18, reads="Player")
def aquarians_of_1970(tables: Frames) -> Any:
    """The players born in 1970 under the sign of Aquarius."""
    players = tables["Player"].assign(birthday=pd.to_datetime(tables["Player"]["birthday"]))
    born = players[players["birthday"].dt.year == 1970]
    return born.tag.sem_filter("a person born on {birthday} is an Aquarius")["player_name"].tolist()


@answers(19, reads="League Country")
def league_of_a_landlocked_country(tables: Frames) -> Any:
    """The league of the country without a coast."""
    countries = tables["Country"].rename(columns={"id": "country_id", "name": "country"})
    leagues = tf.merge({"leagues": tables["League"], "countries": countries}, on="country_id")
    return leagues.tag.sem_filter("{country} is landlocked")["name"].tolist()


@answers(20, reads="Match Country")
def matches_where_french_is_spoken(tables: Frames) -> Any:
    """How many matches of the season 2008/2009 were played where French is an official language."""
    countries = tables["Country"].rename(columns={"id": "country_id", "name": "country"})
    matches = tf.merge({"matches": tables["Match"].query("season == '2008/2009'"), "of": countries}, on="country_id")
    return len(matches.tag.sem_filter("French is an official language of {country}"))


@answers(21, reads="Match Team")
def away_team_with_most_fans(tables: Frames) -> Any:
    """The team with the most fans among the three with the most away goals."""
    goals = tables["Match"].groupby("away_team_api_id")["away_team_goal"].sum().nlargest(3)
    teams = tables["Team"][tables["Team"]["team_api_id"].isin(goals.index)]
    return teams.tag.sem_topk("{team_long_name} is the team with the most fans", K=1)["team_long_name"].tolist()


@answers(37, reads="Player Player_Attributes")
def rating_of_the_middling_tall(tables: Frames) -> Any:
    """The mean rating from 2010 to 2015 of players above 170 cm and below Michael Jordan's height."""
    jordan = tf.known("the height of {person} in centimetres", "number", person="Michael Jordan")
    ratings = _rated_players(tables)
    years = pd.to_datetime(ratings["date"]).dt.year.between(2010, 2015)
    between = (ratings["height"] > 170) & (ratings["height"] < jordan)
    return round(ratings.loc[years & between, "overall_rating"].mean())


@answers(39, reads="Player")
def born_after_the_14th_world_cup(tables: Frames) -> Any:
    """How many players were born after the year of the 14th World Cup."""
    year = tf.known("the year in which {event} was held", "number", event="the 14th FIFA World Cup")
    return int((pd.to_datetime(tables["Player"]["birthday"]).dt.year > year).sum())


@answers(40, reads="Player Player_Attributes")
def tall_volleyers(tables: Frames) -> Any:
    """How many players above 180 cm and taller than Bill Clinton were rated above 70 in volleys at any time."""
    clinton = tf.known("the height of {person} in centimetres", "number", person="Bill Clinton")
    ratings = _rated_players(tables).query("height > 180 and volleys > 70")
    return int(ratings.loc[ratings["height"] > clinton, "player_api_id"].nunique())


@answers(44, reads="Player")
def taller_than_six_foot_eight(tables: Frames) -> Any:
    """The players taller than 6 foot 8."""
    height = 6 * CM_PER_FOOT + 8 * CM_PER_INCH
    return tables["Player"].query("height > @height + 0.005")["player_name"].tolist()  # heights have two decimals


@answers(45, reads="Player")
def heavy_adams(tables: Frames) -> Any:
    """How many players with the first name Adam weigh more than 77.1 kg; weights are in pounds."""
    players = tables["Player"]
    adams = players["player_name"].str.split().str[0] == "Adam"
    return int((adams & (players["weight"] / POUNDS_PER_KG > 77.1)).sum())


@answers(46, reads="Player")
def first_tall_players(tables: Frames) -> Any:
    """The first three players in the alphabet that are taller than 5 foot 11."""
    height = 5 * CM_PER_FOOT + 11 * CM_PER_INCH
    tall = tables["Player"].query("height > @height + 0.005")
    return tall.sort_values("player_name")["player_name"].head(3).tolist()


@answers(59, reads="Player Player_Attributes")
def unique_names_of_headers(tables: Frames) -> Any:
    """The three names that sound most unique, among the ten players above 180 cm with the best mean heading."""
    tall = _rated_players(tables).query("height > 180")
    heading = tall.groupby(["player_api_id", "player_name"])["heading_accuracy"].mean()
    best = heading.nlargest(10).reset_index()
    return best.tag.sem_topk("{player_name} is the name that sounds most unique", K=3)["player_name"].tolist()


_COLUMNS = ["player_name", "height", "weight", "overall_rating", "preferred_foot", "volleys", "dribbling"]


@answers(101, reads="Player Player_Attributes")
def best_players_of_2008_to_2010(tables: Frames) -> Any:
    """What the players rated above 88 from 2008 to 2010 are like."""
    ratings = _rated_players(tables)
    years = pd.to_datetime(ratings["date"]).dt.year.between(2008, 2010)
    best = ratings[years & (ratings["overall_rating"] > 88)].drop_duplicates("player_api_id")
    return best[_COLUMNS].tag.sem_agg("Summarise the attributes of these players", all_cols=True)["_output"].iloc[0]


@answers(102, reads="Player Player_Attributes")
def volleying_dribblers(tables: Frames) -> Any:
    """What the players rated above 87 in volleys and in dribbling have in common."""
    ratings = _rated_players(tables).query("volleys > 87 and dribbling > 87").drop_duplicates("player_api_id")
    return ratings[_COLUMNS].tag.sem_agg("Identify what these players have in common", all_cols=True)["_output"].iloc[0]


@answers(103, reads="Player Player_Attributes")
def heaviest_players(tables: Frames) -> Any:
    """What the ten heaviest players are like, by their last ratings."""
    last = _rated_players(tables).sort_values("date").drop_duplicates("player_api_id", keep="last")
    heaviest = last.nlargest(10, "weight")
    return heaviest[_COLUMNS].tag.sem_agg("Summarise the attributes of these players", all_cols=True)["_output"].iloc[0]
