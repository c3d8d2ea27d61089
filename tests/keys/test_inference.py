"""Key inference: what must be found, and what must not."""

from __future__ import annotations

import uuid

import numpy as np
import pandas as pd
import pytest

from tagframe.corpus import open_corpus
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.engines.base import ForeignKey
from tagframe.errors import InvalidArgument
from tagframe.keys import KeyPair, infer_key_pairs
from tagframe.keys.scoring import log_odds, probability
from tagframe.keys.terms import default_weights
from tagframe.merging import infer_keys

RANDOM = np.random.default_rng(7)


def pairs(frames: dict[str, pd.DataFrame], **options) -> set[tuple[str, str]]:
    """Inferred keys without the database."""
    found = infer_key_pairs(open_corpus(frames).profiles, **options)
    return {(key.left.removeprefix("frames."), key.right.removeprefix("frames.")) for key in found}


def ids(size: int, top: int) -> np.ndarray:
    return RANDOM.integers(1, top + 1, size)


EMPLOYEES = pd.DataFrame(
    {
        "employee_id": range(1, 61),
        "name": [f"person {i}" for i in range(60)],
        "manager_id": [None] + [int(v) for v in ids(59, 10)],
        "department_id": ids(60, 8),
        "age": ids(60, 60),
    }
)
DEPARTMENTS = pd.DataFrame({"id": range(1, 9), "title": list("abcdefgh")})


def test_a_key_and_a_self_reference_are_found_and_a_count_is_not():
    found = pairs({"employees": EMPLOYEES, "departments": DEPARTMENTS})
    assert found == {
        ("employees.department_id", "departments.id"),
        ("employees.manager_id", "employees.employee_id"),
    }


def test_a_key_that_no_statement_joins_on_is_less_likely_where_others_were_joined():
    corpus = open_corpus({"employees": EMPLOYEES, "departments": DEPARTMENTS})
    own, other = "frames.employees.manager_id", "frames.employees.department_id"

    def found() -> dict[str, KeyPair]:
        return {key.left: key for key in infer_key_pairs(corpus.profiles)}

    before = found()
    corpus.learn("SELECT 1 FROM employees a JOIN departments b ON a.age = b.id")
    after = found()
    assert after["frames.employees.age"].score == 1
    assert after[own] == before[own]
    score = before[other].score
    assert after[other].score == pytest.approx(score / (2 - score))
    assert "never joined this way" in after[other].evidence.reason
    corpus.keys.add("employees.department_id = departments.id")
    assert found()[other].score == 1
    assert "never" not in found()[other].evidence.reason


def test_ids_that_overlap_by_accident_are_no_keys():
    frames = {
        "cats": pd.DataFrame({"cat_id": range(1, 101), "weight": ids(100, 20)}),
        "cars": pd.DataFrame({"car_id": range(1, 121), "doors": ids(120, 5), "rank": ids(120, 100)}),
    }
    assert pairs(frames) == set()


def test_a_surrogate_key_inside_a_larger_one_is_no_key():
    frames = {
        "teams": pd.DataFrame({"teamId": range(1, 51), "city": [f"c{i}" for i in range(50)]}),
        "teamResults": pd.DataFrame({"teamResultsId": range(1, 501), "teamId": ids(500, 50), "points": ids(500, 40)}),
    }
    assert pairs(frames) == {("teamResults.teamId", "teams.teamId")}


def test_a_column_called_by_its_role_is_found_where_the_values_tell():
    players = pd.DataFrame({"player_id": range(200001, 200501), "hand": ["L", "R"] * 250})
    matches = pd.DataFrame(
        {"winner_id": RANDOM.choice(players["player_id"], 300), "loser_id": RANDOM.choice(players["player_id"], 300)}
    )
    assert pairs({"players": players, "matches": matches}) == {
        ("matches.winner_id", "players.player_id"),
        ("matches.loser_id", "players.player_id"),
    }


def test_the_target_that_others_reference_is_preferred():
    players = pd.DataFrame(
        {"id": range(1, 201), "player_api_id": RANDOM.permutation(np.arange(30000, 30200)), "height": ids(200, 90)}
    )
    stats = pd.DataFrame({"player_api_id": RANDOM.choice(players["player_api_id"], 500), "speed": ids(500, 99)})
    games = pd.DataFrame(
        {"game_no": range(3), "home_player_1": [None] * 3, "home_player_2": [None] * 3, "home_player_x": [None] * 3}
    )
    assert pairs({"Player": players, "Player_Stats": stats, "Game": games}) == {
        ("Player_Stats.player_api_id", "Player.player_api_id"),
        ("Game.home_player_1", "Player.player_api_id"),
        ("Game.home_player_2", "Player.player_api_id"),
    }


def test_empty_columns_are_linked_only_by_names_with_a_key_word():
    posts = pd.DataFrame({"Id": range(1, 40), "Tags": [None] * 39, "OwnerUserId": [None] * 39, "Comment": [None] * 39})
    users = pd.DataFrame({"Id": range(1, 30), "About": [None] * 29})
    tags = pd.DataFrame({"Id": range(1, 20), "Text": [None] * 19})
    comments = pd.DataFrame({"Id": range(1, 20), "Body": [None] * 19})
    assert pairs({"posts": posts, "users": users, "tags": tags, "comments": comments}) == {
        ("posts.OwnerUserId", "users.Id")
    }


def test_empty_tables_are_linked_by_what_a_role_names():
    members = pd.DataFrame({"Member_ID": [], "Name": []})
    events = pd.DataFrame({"Event_ID": [], "Member_in_charge_ID": []})
    assert pairs({"member": members, "events": events}) == {("events.Member_in_charge_ID", "member.Member_ID")}


def test_dangling_values_are_seen_in_the_evidence():
    shops = pd.DataFrame({"shop_id": range(101, 201), "town": [f"t{i}" for i in range(100)]})
    sales = pd.DataFrame({"shop_id": [*range(101, 200), 999], "amount": ids(100, 50)})
    (key,) = infer_keys({"sales": sales, "shops": shops})
    assert key.evidence.contained == 0.99
    assert "99% of the values found" in repr(key)


def test_a_target_of_the_same_name_is_referenced_though_a_fifth_of_the_values_dangle():
    customers = pd.DataFrame({"customer_id": range(1001, 1081), "city": [f"c{i % 7}" for i in range(80)]})
    for share in (0.95, 0.85, 0.8):
        inside = RANDOM.choice(customers["customer_id"], int(400 * share))
        outside = RANDOM.choice(np.arange(5001, 5001 + round(80 * (1 - share) / share)), 400 - len(inside))
        orders = pd.DataFrame({"order_no": range(400), "customer_id": np.concatenate([inside, outside])})
        assert pairs({"orders": orders, "customers": customers}) == {("orders.customer_id", "customers.customer_id")}


@pytest.mark.parametrize("name", ["day", "date", "month"])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_calendar_is_referenced_by_its_day(name: str, as_text: bool):
    days = pd.Series(pd.date_range("2024-01-01", periods=120))
    sold = pd.Series(RANDOM.choice(days, 300))
    if as_text:
        days, sold = days.dt.strftime("%Y-%m-%d"), sold.dt.strftime("%Y-%m-%d")
    sales = pd.DataFrame({name: sold, "amount": RANDOM.random(300)})
    weather = pd.DataFrame({name: days, "degrees": RANDOM.random(120)})
    assert pairs({"sales": sales, "weather": weather}) == {(f"sales.{name}", f"weather.{name}")}


def test_the_only_likely_pair_of_a_table_that_nothing_links_is_taken():
    users = pd.DataFrame({"uid": RANDOM.permutation(np.arange(1, 5000))[:300], "name": [f"u{i}" for i in range(300)]})
    follows = pd.DataFrame({"f1": RANDOM.choice(users["uid"], 900), "f2": RANDOM.choice(users["uid"], 900)})
    assert pairs({"user_profiles": users, "follows": follows}) == {
        ("follows.f1", "user_profiles.uid"),
        ("follows.f2", "user_profiles.uid"),
    }


def test_the_likeliest_pair_of_two_tables_that_have_nothing_to_do_with_each_other_is_no_key():
    shops = pd.DataFrame({"shop_id": range(1, 10), "town": list("abcdefghi")})
    hired = pd.DataFrame({"employee_id": range(1, 8), "since": [2009, 2003, 2011, 2012, 2013, 2010, 2005]})
    assert pairs({"shop": shops, "hiring": hired}) == set()
    visits = pd.DataFrame({"visitor_id": [3, 4, 6, 3, 5, 4], "paid": [8.5, 3.0, 20.25, 9.0, 7.75, 1.5]})
    assert pairs({"shop": shops, "visit": visits}) == set()


def test_no_inferred_key_is_called_certain():
    users = pd.DataFrame({"user_id": range(1001, 1101), "name": [f"u{i}" for i in range(100)]})
    posts = pd.DataFrame({"post_id": range(300), "user_id": RANDOM.choice(users["user_id"], 300)})
    (key,) = infer_keys({"users": users, "posts": posts})
    assert 0.9 < key.score <= default_weights().surest
    assert log_odds(probability(4.0)) == pytest.approx(4.0)


def test_a_prefix_before_the_key_of_another_table_is_a_role():
    """More rows than a sketch holds, of which one in a hundred dangles, as in lists of flights."""
    airports = pd.DataFrame(
        {"apid": RANDOM.permutation(np.arange(1, 9000))[:8000], "city": [f"c{i}" for i in range(8000)]}
    )
    ends = [RANDOM.choice(np.append(airports["apid"], np.arange(9000, 9080)), 67_000) for _ in range(2)]
    routes = pd.DataFrame({"rid": range(67_000), "src_apid": ends[0], "dst_apid": ends[1]})
    assert pairs({"routes": routes, "airports": airports}) == {
        ("routes.src_apid", "airports.apid"),
        ("routes.dst_apid", "airports.apid"),
    }


def test_a_column_called_like_a_table_references_what_its_rows_are_called():
    genres = pd.DataFrame({"g_name": ["folk", "blues", "modern"], "rating": [7, 9, 8]})
    artists = pd.DataFrame(
        {"artist_name": list("abcde"), "preferred_genre": ["folk", "blues", "blues", "modern", "folk"]}
    )
    songs = pd.DataFrame({"song_name": list("tuvw"), "genre_is": ["modern", "folk", "blues", "blues"]})
    assert pairs({"genre": genres, "artist": artists, "song": songs}) == {
        ("artist.preferred_genre", "genre.g_name"),
        ("song.genre_is", "genre.g_name"),
    }


@pytest.mark.parametrize(
    ("column", "table", "key"),
    [
        ("s_id", "students", "id"),
        ("player_1_id", "players", "id"),
        ("deptno", "department", "dept_no"),
        ("support_rep_id", "employee", "employee_id"),
        ("airline_name", "airlines", "name"),
    ],
)
def test_ways_to_name_what_a_column_references(column: str, table: str, key: str):
    values = [f"x{i}" for i in range(40)] if key == "name" else list(range(1001, 1041))
    targets = pd.DataFrame({key: values, "colour": ["red", "blue"] * 20})
    facts = pd.DataFrame({"amount": RANDOM.random(90), column: RANDOM.choice(values, 90)})
    assert pairs({"facts": facts, table: targets}) == {(f"facts.{column}", f"{table}.{key}")}


def test_a_role_may_follow_the_thing_and_persons_are_found_by_what_they_are():
    people = pd.DataFrame({"person_id": range(101, 141), "name": [f"n{i}" for i in range(40)]})
    events = pd.DataFrame({"event_id": range(1, 31), "person_in_charge_id": RANDOM.choice(people["person_id"], 30)})
    weddings = pd.DataFrame({"year": range(2001, 2011), "male_id": range(101, 111), "female_id": range(121, 131)})
    assert pairs({"people": people, "events": events, "wedding": weddings}) == {
        ("events.person_in_charge_id", "people.person_id"),
        ("wedding.male_id", "people.person_id"),
        ("wedding.female_id", "people.person_id"),
    }


def test_declared_keys_are_used_and_said_and_can_be_left_out():
    columns = tuple(ColumnProfile(name, position, "integer") for position, name in enumerate(("x", "y")))
    left = TableProfile("d.a", "d", "a", columns, foreign_keys=(ForeignKey(("X",), "B", ("y",)),))
    right = TableProfile("d.b", "d", "b", columns)
    (key,) = infer_key_pairs([left, right])
    assert (key.left, key.right, key.score, key.evidence.origin) == ("d.a.x", "d.b.y", 1.0, "declared")
    assert infer_key_pairs([left, right], declared=False) == []


def test_keys_between_databases_are_found_only_when_asked_for():
    sales = pd.DataFrame({"isbn": [f"978-{i:07d}" for i in ids(300, 80)], "amount": ids(300, 9)})
    books = pd.DataFrame({"isbn": [f"978-{i:07d}" for i in range(1, 91)], "title": [f"b{i}" for i in range(90)]})
    counted = pd.DataFrame({"book_id": range(1, 91), "shelf_id": ids(90, 9)})
    shelves = pd.DataFrame({"shelf_id": range(1, 10), "floor": ids(9, 3)})
    frames = {"shop.sales": sales, "library.books": books, "archive.books": counted, "office.shelves": shelves}
    assert pairs(frames) == set()
    assert pairs(frames, across_sources=True) == {("shop.sales.isbn", "library.books.isbn")}


def test_two_tables_of_one_id_are_refused():
    table = TableProfile("d.a", "d", "a", ())
    with pytest.raises(InvalidArgument, match=r"more than one table is called 'd\.a'"):
        infer_key_pairs([table, table])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"a_id": []}),
        pd.DataFrame({"a_id": [None, None]}),
        pd.DataFrame({"a_id": pd.to_datetime(["2020-01-01", None], utc=True)}),
        pd.DataFrame({"a_id": [{"x": 1}, [2]]}),
        pd.DataFrame({"": [1, 2], "🙂": [3, 4], "__": [5, 6], "id": [True, False]}),
    ],
)
def test_odd_frames_give_no_keys_and_no_error(frame):
    assert pairs({"odd": frame, "departments": DEPARTMENTS}) == set()


def test_a_key_pair_is_its_columns():
    one = KeyPair("d.a", ("x",), "d.b", ("y",), 0.9)
    assert one == KeyPair("d.a", ("x",), "d.b", ("y",), 0.1)
    assert hash(one) == hash(KeyPair.from_json(one.to_json()))
    assert KeyPair.from_json(one.to_json()).score == 0.9
    assert one.reversed().left == "d.b.y"


def test_codes_that_differ_only_by_case_are_two():
    codes = pd.DataFrame({"code": [*"aAbBcC", "dd", "DD"], "label": [f"label {n}" for n in range(8)]})
    facts = pd.DataFrame({"n": range(16), "code": [*codes["code"], *codes["code"]]})
    assert pairs({"facts": facts, "codes": codes}) == {("facts.code", "codes.code")}


def test_a_plainly_named_key_may_dangle_by_half():
    customers = pd.DataFrame({"customer_id": range(1, 101), "town": [f"t{i}" for i in range(100)]})
    orders = pd.DataFrame({"order_id": range(300), "customer_id": RANDOM.integers(50, 151, 300)})
    assert pairs({"orders": orders, "customers": customers}) == {("orders.customer_id", "customers.customer_id")}


def test_a_reference_to_a_table_without_rows_is_found_by_its_name():
    customers = pd.DataFrame({"customer_id": pd.Series([], dtype="int64"), "town": pd.Series([], dtype="str")})
    orders = pd.DataFrame({"order_id": range(30), "customer_id": RANDOM.integers(50, 60, 30)})
    assert pairs({"orders": orders, "customers": customers}) == {("orders.customer_id", "customers.customer_id")}


def test_the_first_unique_id_of_the_table_that_a_column_names_is_its_target():
    stations = pd.DataFrame({"r_station_id": range(1, 31), "town": [f"t{i}" for i in range(30)]})
    rides = pd.DataFrame({"ride_id": range(200), "station_id": RANDOM.integers(1, 31, 200)})
    assert pairs({"rides": rides, "stations": stations}) == {("rides.station_id", "stations.r_station_id")}


def test_ids_that_only_number_the_rows_of_two_tables_are_no_key_however_often_one_is_referenced():
    owners = pd.DataFrame({"id": range(1, 201), "name": [f"o{i}" for i in range(200)]})
    routes = pd.DataFrame({"id": range(1, 199), "length": RANDOM.normal(size=198)})
    frames = {"owners": owners, "routes": routes}
    for name in ("cats", "dogs", "cars"):
        frames[name] = pd.DataFrame({"id": range(300), "owner_id": RANDOM.integers(1, 201, 300)})
    assert ("routes.id", "owners.id") not in pairs(frames)


def test_a_day_that_is_called_otherwise_is_a_day():
    days = pd.date_range("2024-01-01", periods=5)
    rain = pd.DataFrame({"day": days, "rain": [1, 0, 3, 2, 5]})
    wind = pd.DataFrame({"date": days, "wind": [3, 1, 2, 5, 0]})
    assert pairs({"rain": rain, "wind": wind}) == {("rain.day", "wind.date")}


def test_a_panel_of_four_rows_is_told_by_what_and_when():
    panel = {"country": ["DE", "DE", "FR", "FR"], "year": [2020, 2021, 2020, 2021]}
    frames = {
        "gdp": pd.DataFrame({**panel, "gdp": [1.5, 2.5, 3.5, 4.5]}),
        "co2": pd.DataFrame({**panel, "co2": [9.5, 8.5, 7.5, 6.5]}),
    }
    (key,) = infer_keys(frames)
    assert key.left_columns == key.right_columns == ("country", "year")


def test_a_role_may_stand_before_the_key_that_is_meant():
    invoices = pd.DataFrame({"invoice": range(40), "account_no": np.arange(40) % 12 + 1})
    accounts = pd.DataFrame({"main_account_no": range(1, 13), "town": list("abcdefghijkl")})
    assert pairs({"invoices": invoices, "ledger": accounts}) == {("invoices.account_no", "ledger.main_account_no")}


def test_the_last_word_of_a_role_is_the_last_word_of_a_table():
    assets = pd.DataFrame({"asset": range(40), "supplier_company_id": np.arange(40) % 12 + 1})
    companies = pd.DataFrame({"id": range(1, 13), "town": list("abcdefghijkl")})
    found = pairs({"assets": assets, "third_party_companies": companies})
    assert found == {("assets.supplier_company_id", "third_party_companies.id")}


def test_a_name_that_fits_needs_no_telling_values():
    accidents = pd.DataFrame({"accident": range(14), "game": [1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7]})
    games = pd.DataFrame({"id": range(1, 30), "score": [f"{n}:1" for n in range(29)]})
    assert pairs({"accidents": accidents, "game": games}) == {("accidents.game", "game.id")}


def test_codes_with_letters_among_numbers_refer_to_no_row_numbers():
    codes = [f"{number:04}" for number in range(1, 60)] + [f"00D{number}" for number in range(1, 9)]
    schools = pd.DataFrame({"id": range(1, 101), "school_code": [f"S{number * 7}" for number in range(100)]})
    offers = pd.DataFrame({"school_number": (codes[::-1] * 3)[:150], "day": range(150)})
    assert not [key for key in infer_keys({"offers": offers, "schools": schools}) if "school_number" in key.left]
    numbers = offers.assign(school_number=[number % 60 + 1 for number in range(150)])
    assert [key for key in infer_keys({"offers": numbers, "schools": schools}) if "school_number" in key.left]


@pytest.mark.parametrize(
    ("values", "is_found"),
    [
        ([f"{uuid.UUID(int=number * 7919 << 90)}" for number in range(1, 61)], True),
        ([f"rep{number}@corp.example" for number in range(60)], True),
        (list("abcdefghijklmnopqrstuvwxy"), False),
    ],
)
def test_only_addresses_and_long_codes_mean_the_same_in_either_case(values, is_found):
    accounts = pd.DataFrame({"account_key": values, "name": [f"n{n}" for n in range(len(values))]})
    invoices = pd.DataFrame({"invoice": range(300), "acct": [values[n % len(values)].upper() for n in range(300)]})
    keys = [str(key) for key in infer_keys({"accounts": accounts, "invoices": invoices})]
    assert any("acct" in key for key in keys) == is_found


@pytest.mark.parametrize(
    "count", ["total_clubs", "num_clubs", "count_clubs", "clubs_for", "clubs", "n_clubs", "ClubsPlayed", "nr_of_clubs"]
)
def test_a_number_of_things_refers_to_none_of_them(count):
    clubs = pd.DataFrame({"club_id": range(1, 41), "name": [f"club {n}" for n in range(40)]})
    players = pd.DataFrame({"player_id": range(1, 200), count: [1 + n % 11 for n in range(199)]})
    assert infer_keys({"club": clubs, "player": players}) == []


def test_a_text_of_small_numbers_matches_ids_by_accident_as_numbers_do():
    goals = pd.DataFrame({"minute": [str(1 + at % 90) if at % 11 else "90+2" for at in range(900)]})
    corpus = open_corpus({"goals": goals, "matches": pd.DataFrame({"ID": range(1, 301)})})
    assert not [key for key in infer_key_pairs(corpus.profiles, min_score=0.3) if key.left_columns == ("minute",)]


CODES = [f"{number:02}.{number * 7919 % 900 + 100}/0001" for number in range(60)]
TOWNS = [f"{start} {end}" for start in ("Upper", "Lower", "Old") for end in "Ash Birch Cedar Dale Elm Fern".split()]


@pytest.mark.parametrize(
    ("values", "known", "is_key"),
    [
        pytest.param([*CODES[:30], *(f"99.{n}/0002" for n in range(20))], CODES, True, id="codes, found in part"),
        pytest.param(TOWNS[:12], TOWNS, True, id="names, all found"),
        pytest.param([*TOWNS[:12], *(f"New {n}" for n in range(8))], TOWNS, False, id="names, found in part"),
        pytest.param([200_101 + 37 * n for n in range(40)], [200_101 + 37 * n for n in range(60)], True, id="long"),
        pytest.param([2 * n for n in range(9)], [2 * n for n in range(60)], False, id="small numbers"),
    ],
)
def test_what_is_found_by_no_accident_refers_to_it_whatever_the_names_say(values, known, is_key):
    firms = pd.DataFrame({"TAXNO": known, "since": range(1950, 1950 + len(known))})
    works = pd.DataFrame({"title": [f"work {n}" for n in range(3 * len(values))], "MADE_FOR": values * 3})
    assert (("works.MADE_FOR", "firms.TAXNO") in pairs({"firms": firms, "works": works})) == is_key
