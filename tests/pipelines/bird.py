"""Small tables of the shape of BIRD's, all made up, and what a model is to say of their cells."""

from __future__ import annotations

from typing import Any

import pandas as pd


def _frame(columns: str, *rows: tuple[Any, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split(", "))


def california_schools() -> dict[str, pd.DataFrame]:
    schools = _frame(
        "CDSCode, School, County, City, MailCity, Phone, GSoffered, Virtual, Magnet, Longitude, AdmFName1, "
        "FundingType, SOCType",
        ("01", "Alder High", "Marin", "Sausalito", "Lakeport", "(1) 1", "9-12", "F", 1, -120.0, "Ann", "local", "high"),
        ("02", "Birch High", "Kern", "Riverside", "Kernville", "(2) 2", "K-5", "F", 1, -119.0, "Bob", "direct", "high"),
        ("03", "Cedar High", "Marin", "Novato", "Novato", "(3) 3", "7-12", "F", 0, -122.5, "Ann", "local", "high"),
        ("04", "Dog High", "Kern", "Riverside", "Kernville", "(4) 4", "K-8", "N", 0, -118.0, "Eve", "local", "high"),
        ("05", "Elm High", "Orange", "Irvine", "Irvine", "(5) 5", "K-12", "N", 1, -117.0, "Bob", "local", "high"),
        ("90", None, "Marin", None, None, None, None, None, None, None, "Bob", None, None),
    )
    scores = _frame(
        "cds, rtype, sname, cname, enroll12, NumTstTakr, AvgScrRead, AvgScrMath, AvgScrWrite, NumGE1500",
        ("01", "S", "Alder High", "Marin", 90, 600, 500.0, 590.0, 500.0, 300.0),
        ("02", "S", "Birch High", "Kern", 80, 700, 400.0, 450.0, 400.0, 70.0),
        ("03", "S", "Cedar High", "Marin", 70, 50, 520.0, 570.0, 500.0, 40.0),
        ("04", "S", "Dog High", "Kern", 60, 20, 410.0, 380.0, 400.0, None),
        ("05", "S", "Elm High", "Orange", 50, 900, 450.0, 565.0, 450.0, 9.0),
        ("06", "S", "Fir High", "Orange", 40, 30, 440.0, 430.0, 440.0, 0.0),  # not among the schools
        ("90", "D", None, "Marin", 160, 650, 510.0, 580.0, 500.0, 340.0),
    )
    free, kinds = "Percent (%) Eligible Free (K-12)", "Educational Option Type"
    young = "Percent (%) Eligible Free (Ages 5-17)"
    frpm = pd.DataFrame(
        {
            "CDSCode": ["01", "02", "03", "04", "05"],
            "School Name": ["Alder", "Birch", "Cedar", "Dogwood", "Elm"],
            kinds: ["Continuation School"] * 4 + ["Traditional"],
            "Enrollment (K-12)": [100.0, 500.0, 300.0, 400.0, 200.0],
            "Enrollment (Ages 5-17)": [99.0, 469.0, 270.0, 360.0, None],
            free: [0.2, 0.5, 0.05, 0.6, 0.1],
            young: [0.3, 0.1, 0.2, 0.9, 0.0],
        }
    )
    return {"schools": schools, "satscores": scores, "frpm": frpm}


def formula_1() -> dict[str, pd.DataFrame]:
    return {
        "circuits": _frame(
            "circuitId, name, location, country, lat, alt",
            (1, "Silverstone Circuit", "Silverstone", "UK", 52.0, 150),
            (2, "Hockenheimring", "Hockenheim", "Germany", 49.3, 100),
            (3, "Hungaroring", "Budapest", "Hungary", 47.5, 260),
            (4, "Sepang International Circuit", "Kuala Lumpur", "Malaysia", 2.7, 18),
            (5, "Sakhir", "Manama", "Bahrain", 26.0, 7),
            (6, "Interlagos", "São Paulo", "Brazil", -23.7, 785),
            (7, "Catalunya", "Montmeló", "Spain", 41.5, 109),
            (8, "Estoril", "Estoril", "Portugal", 38.7, 130),
            (9, "Indianapolis", "Indianapolis", "USA", 39.7, 223),
            (10, "Monza", "Monza", "Italy", 45.6, 162),
        ),
        "races": _frame(
            "raceId, year, round, circuitId, name, date",
            (1, 2002, 1, 9, "Australian Grand Prix", "2002-03-03"),
            (2, 2002, 2, 4, "Malaysian Grand Prix", "2002-03-17"),
            (3, 2007, 1, 10, "Italian Grand Prix", "2007-03-18"),
            (4, 2008, 1, 9, "Australian Grand Prix", "2008-03-16"),
            (5, 2014, 1, 2, "European Grand Prix", "2014-07-20"),
            (6, 2014, 2, 7, "European Grand Prix", "2014-08-20"),
            (7, 2015, 1, 5, "Bahrain Grand Prix", "2015-04-19"),
            (8, 2016, 1, 5, "Bahrain Grand Prix", "2016-04-03"),
            (9, 2016, 2, 6, "Brazilian Grand Prix", "2016-11-13"),
            (10, 2016, 3, 3, "Hungarian Grand Prix", "2016-12-01"),
            (11, 2001, 1, 8, "Portuguese Grand Prix", "2001-05-01"),
            (12, 2001, 2, 1, "British Grand Prix", "2001-07-01"),
            (872, 2012, 1, 1, "British Grand Prix", "2012-07-08"),
        ),
        "drivers": _frame(
            "driverId, forename, surname, nationality, dob",
            (1, "Lewis", "Hamilton", "British", "1985-01-07"),
            (2, "Alex", "Yoong", "Malaysian", "1976-07-20"),
            (3, "Kazuki", "Nakajima", "Japanese", "1985-01-11"),
            (4, "Rubens", "Barrichello", "Brazilian", "1972-05-23"),
        ),
        "results": _frame(
            "resultId, raceId, driverId, constructorId, rank, laps, time, grid, position, points, statusId",
            (1, 1, 2, 1, 9.0, 55, "+1", 8, 1.0, 0, 1),
            (2, 1, 4, 2, 1.0, 58, "+2", 1, 2.0, 10, 1),
            (3, 2, 2, 1, 8.0, 55, None, 9, 2.0, 0, 11),
            (4, 2, 4, 2, 2.0, 56, "+3", 2, 1.0, 10, 1),
            (13, 2, 3, 4, 9.0, 50, None, 3, 3.0, 0, 5),  # classified, but broken down: two finished
            (5, 3, 1, 3, 2.0, 53, "+4", 3, 1.0, 8, 1),
            (6, 4, 1, 3, 1.0, 58, "1:34", 1, 1.0, 10, 1),
            (7, 4, 3, 4, 2.0, 57, "+5", 13, 2.0, 3, 1),
            (8, 4, 4, 2, 3.0, 52, None, 10, 3.0, 2, 12),
            (14, 4, 2, 1, 4.0, 51, None, 11, 4.0, 0, 5),
            (9, 5, 1, 3, 1.0, 67, "1:33", 1, 1.0, 25, 1),
            (10, 6, 4, 2, 1.0, 66, "1:35", 1, 2.0, 18, 1),
            (11, 872, 3, 4, 5.0, 52, "+9", 5, 1.0, 1, 1),
            (12, 872, 4, 2, 6.0, 40, None, 6, None, 0, 5),
            (15, 872, 1, 3, 7.0, 51, None, 7, 2.0, 0, 11),
        ),
        "status": _frame("statusId, status", (1, "Finished"), (5, "Engine"), (11, "+1 Lap"), (12, "+2 Laps")),
        "constructors": _frame(
            "constructorId, name, nationality",
            (1, "Minardi", "Italian"),
            (2, "Ferrari", "Italian"),
            (3, "McLaren", "British"),
            (4, "Renault", "French"),
        ),
    }


def european_football_2() -> dict[str, pd.DataFrame]:
    players = _frame(
        "id, player_api_id, player_name, birthday, height, weight",
        (1, 11, "Adam Tall", "1970-02-01 00:00:00", 203.21, 170),
        (2, 12, "Adamo Heavy", "1991-05-05 00:00:00", 208.28, 250),
        (3, 13, "Lionel Messi", "1987-06-24 00:00:00", 170.18, 159),
        (4, 14, "Zed Short", "1970-08-02 00:00:00", 165.1, 140),
        (5, 15, "Bo Exact", "1992-08-02 00:00:00", 203.2, 171),
        (6, 16, "Cy Middle", "1993-08-02 00:00:00", 190.5, 180),
    )
    ratings = _frame(
        "id, player_api_id, date, overall_rating, preferred_foot, volleys, dribbling, heading_accuracy",
        (1, 11, "2009-01-01 00:00:00", 60, "right", 71, 60, 90),
        (2, 13, "2009-02-01 00:00:00", 89, "right", 88, 95, 50),
        (3, 13, "2016-02-01 00:00:00", 94, "left", 90, 96, 50),
        (4, 16, "2012-02-01 00:00:00", 70, "right", 60, 60, 40),
        (5, 16, "2013-02-01 00:00:00", 73, "right", 75, 60, 60),
        (6, 12, "2012-02-01 00:00:00", 50, "left", 72, 60, 70),
    )
    countries = _frame("id, name", (1, "France"), (2, "Switzerland"), (3, "Spain"))
    leagues = _frame("id, country_id, name", (1, 1, "Ligue 1"), (2, 2, "Super League"), (3, 3, "LIGA BBVA"))
    matches = _frame(
        "id, country_id, season, away_team_api_id, away_team_goal",
        (1, 1, "2008/2009", 21, 4),
        (2, 2, "2008/2009", 22, 3),
        (3, 3, "2008/2009", 23, 2),
        (4, 1, "2009/2010", 24, 1),
        (5, 1, "2008/2009", 21, 0),
    )
    teams = _frame(
        "id, team_api_id, team_long_name", (1, 21, "Alba"), (2, 22, "Brio"), (3, 23, "Corsa"), (4, 24, "Doro")
    )
    return {
        "Player": players,
        "Player_Attributes": ratings,
        "Country": countries,
        "League": leagues,
        "Match": matches,
        "Team": teams,
    }


def debit_card_specializing() -> dict[str, pd.DataFrame]:
    return {
        "customers": _frame(
            "CustomerID, Segment, Currency", (1, "SME", "CZK"), (2, "SME", "CZK"), (3, "SME", "EUR"), (4, "LAM", "EUR")
        ),
        "yearmonth": _frame(
            "CustomerID, Date, Consumption",
            (1, "201201", 100.4),
            (2, "201202", 50.0),
            (3, "201201", 10.0),
            (3, "201301", 30.0),
            (4, "201302", 5.0),
        ),
        "gasstations": _frame("GasStationID, Country", (1, "CZE"), (2, "SVK"), (3, "CZE")),
        "transactions_1k": _frame(
            "TransactionID, GasStationID, Amount, Price", (1, 1, 2, 100.0), (2, 2, 1, 7000.0), (3, 3, 1, 1001.0)
        ),
    }


def codebase_community() -> dict[str, pd.DataFrame]:
    users = _frame(
        "Id, DisplayName, CreationDate, Location, Age, Views, UpVotes, AboutMe",
        (1, "csgillespie", "2010-01-01 00:00:00", "Newcastle", 40.0, 500, 200, "see twitter.com/cs"),
        (2, "Yevgeny", "2011-01-01 00:00:00", "Vienna, Austria", 70.0, 400, 300, "nothing"),
        (3, "Harvey Motulsky", "2012-01-01 00:00:00", "Wien", 66.0, 300, 50, "none"),
        (4, "Vebjorn Ljosa", "2013-01-01 00:00:00", "Graz", 80.0, 200, 101, "blank"),
        (5, "A Lion.", "2014-01-01 00:00:00", None, None, 100, 1, None),
        (6, "Neil McGuigan", "2015-01-01 00:00:00", None, 20.0, 50, 150, None),
        (1465, "Voter", "2009-01-01 00:00:00", "Linz", 30.0, 10, 0, None),
    )
    posts = _frame(
        "Id, PostTypeId, Score, ViewCount, FavoriteCount, OwnerUserId, LastEditorUserId, Title, Body",
        (1, 1, 20, 90000.0, 5.0, 1, 4, "Analysing wind data with R", "cites a paper"),
        (2, 1, 3, 100.0, 9.0, 1, 4, "What is AdaBoost?", "no source"),
        (3, 2, 11, None, None, 2, None, None, "all is lost"),
        (4, 1, 12, 95000.0, 1.0, 2, None, "Is the mean doomed?", "somewhat gloomy"),
        (5, 1, 2, 50.0, 2.0, 2, None, "A happy median", "joy"),
        (6, 1, 15, 70.0, 7.0, 6, None, "How does gentle boosting differ from AdaBoost?", "a neural net"),
        (7, 1, 99, 60.0, 3.0, 3, None, "Bayes for all", "Bayes' rule holds"),
    )
    comments = _frame(
        "Id, PostId, Score, Text, CreationDate, UserId",
        (1, 1, 17, "a fine variance", "2014-09-14 10:00:00", 2),
        (2, 1, 17, "nice cat", "2014-09-13 10:00:00", 3),
        (3, 6, 5, "thanks a lot", "2014-09-14 11:00:00", 3),
        (4, 7, 5, "read the manual", "2014-09-14 12:00:00", 3),
        (5, 7, 1, "thank you", "2014-09-14 12:30:00", 5),
        (6, 7, 1, "many thanks", "2014-09-14 12:40:00", 5),
        (7, 1, 0, "oh sure, brilliant", "2014-10-01 00:00:00", 4),
    )
    badges = _frame(
        "Id, UserId, Name, Date",
        (1, 1, "Strunk & White", "2011-02-02 00:00:00"),
        (2, 1, "Teacher", "2011-03-03 00:00:00"),
        (3, 1, "Supporter", "2012-01-01 00:00:00"),
        (4, 2, "Supporter", "2012-01-01 00:00:00"),
        (5, 3, "Supporter", "2012-01-01 00:00:00"),
        *((number, 3 + number % 2, "Nice Answer", "2013-01-01 00:00:00") for number in range(100, 520)),
    )
    return {
        "users": users,
        "posts": posts,
        "comments": comments,
        "badges": badges,
        "votes": _frame("Id, PostId, UserId", (1, 2, 1465), (2, 5, 1465), (3, 6, 2)),
        "tags": _frame(
            "Id, TagName, Count, ExcerptPostId",
            (1, "bayesian", 50, 7),
            (2, "self-study", 40, None),
            (3, "r", 30, None),
        ),
    }


FILTERS = {
    "San Francisco Bay Area": ["Marin"],
    "in Southern California": ["Kern", "Orange"],
    "over 2 million": ["Orange"],
    "'Silicon Valley' region": ["Riverside", "Irvine"],
    "typically a female": ["Ann", "Eve"],
    "county seat of Lake": ["Lakeport"],
    "in the Middle East": ["Bahrain"],
    "is Asian": ["Malaysian", "Japanese"],
    "Bundesliga": ["Germany"],
    "in or near Lisbon": ["Estoril"],
    "is an Aquarius": ["1970-02-01"],
    "landlocked": ["Switzerland"],
    "French is an official language": ["France", "Switzerland"],
    "known as Bohemia": ["CZE"],
    "code of the Czech Republic": ["CZE"],
    "mentions academic papers": ["cites a paper"],
    "is about statistics": ["a fine variance"],
    "R programming language": ["Analysing wind data with R"],
    "capital city of Austria": ["Wien", "Vienna, Austria"],
    "relevant to machine learning": ["What is AdaBoost?"],
    "sentiment of the comment": ["a fine variance", "nice cat"],
    "says is true": ["Bayes' rule holds"],
    "is grateful": ["thanks a lot", "thank you", "many thanks"],
    "links to social media": ["see twitter.com/cs"],
}
"""By words of the claim: the cells of which it is true."""
RANKINGS = {
    "futuristic": ["Birch High", "Alder High", "Elm High"],
    "safest place to live": ["Novato", "Riverside", "Sausalito"],
    "most diverse": ["Irvine", "Novato", "Riverside", "Sausalito"],
    "most affordable": ["Novato", "Riverside", "Sausalito"],
    "academic reputation": ["Marin", "Kern", "Orange"],
    "most popular city to visit": ["Irvine", "Sausalito", "Riverside", "Novato"],
    "closest to a capital": ["Hungaroring", "Silverstone Circuit", "Hockenheimring"],
    "most prestige": ["Ferrari", "McLaren"],
    "most fans": ["Corsa", "Brio", "Alba"],
    "most unique": ["Cy Middle", "Adam Tall", "Adamo Heavy"],
    "worth the most": ["EUR", "CZK"],
    "most technical": [
        "How does gentle boosting differ from AdaBoost?",
        "What is AdaBoost?",
        "Is the mean doomed?",
        "Bayes for all",
        "Analysing wind data with R",
    ],
    "most sarcastic": ["oh sure, brilliant", "nice cat", "a fine variance"],
    "least related to statistics": ["self-study", "r", "bayesian"],
    "most lighthearted": [
        "joy",
        "somewhat gloomy",
        "no source",
        "cites a paper",
        "a neural net",
        "Bayes' rule holds",
        "all is lost",
    ],
    "least expertise": ["Bayes' rule holds", "all is lost", "somewhat gloomy"],
    "English grammar guide": ["Strunk & White", "Teacher"],
    "most pessimistic": ["all is lost", "somewhat gloomy", "joy"],
    "like a real name": ["Harvey Motulsky", "Vebjorn Ljosa"],
    "most helpful": ["read the manual", "thanks a lot"],
}
"""By words of the criterion: the best cells first."""
MAPS = {
    "statistical term": {"Analysing wind data with R": "wind", "What is AdaBoost?": "AdaBoost"},
    "the sentiment of": {"cites a paper": "Positive", "no source": "Positive"},
    "event} ended": {"the Vietnam War": "1975"},
    "event} was held": {"the 14th FIFA World Cup": "1990"},
    "award} awards": {"Ballon d'Or": "Lionel Messi"},
    "height of": {"Michael Jordan": "198", "Bill Clinton": "188"},
    "median age": {"the USA": "38"},
    "currency of {place}": {"the Czech Republic": "CZK", "the European Union": "EUR"},
    "reserve currency": {"second-largest": "EUR"},
    "one {one} cost": {"US dollar": "20"},
}
"""By words of the instruction: answers, by a part of the row."""
JUDGEMENTS: dict[str, Any] = {
    "filters": [{"claim_contains": words, "true": cells} for words, cells in FILTERS.items()],
    "rankings": [{"criterion_contains": words, "best_first": cells} for words, cells in RANKINGS.items()],
    "maps": [{"instruction_contains": words, "answers": answers} for words, answers in MAPS.items()],
    "texts": [{"instruction_contains": "", "text": "They are much alike."}],
}
"""In the form of the benchmark's judgements; see :mod:`tag_bench.answers.judgements`."""
