"""Tables that are chosen by hand: every merge is right, or its refusal says what to do, and that is done."""

import re
import warnings

import pandas as pd
import pytest

import tagframe as tf


def frame_of(columns, rows):
    return pd.DataFrame(rows, columns=columns.split())


def found_of(frames, question):
    return tf.open_corpus(frames).retrieve_tables(question, k=1).add(*frames).only(*frames)


EVENTS, CLUBS = [f"E{year}" for year in range(1990, 2020, 2)], [f"C{i:02}" for i in range(24)]
STANDINGS = frame_of(
    "event_id rank club_id", [(e, k + 1, CLUBS[(i * 5 + k * 7) % 24]) for i, e in enumerate(EVENTS) for k in range(6)]
)
PRIZES = frame_of(
    "award event_id club_id prize",
    [(i * 8 + n, e, CLUBS[(i * 5 + n * 7) % 24], f"prize {n}") for i, e in enumerate(EVENTS) for n in range(8)],
)
FIRST, LAST = "Ana Bo Cyd Dee Eli Fay Gus Hal".split(), "Lund Moro Nash Ortiz Pohl Quinn Rossi Stein".split()
PEOPLE = [(FIRST[i % 8], f"{LAST[i // 8 % 8]}{i // 64}", 1940 + i * i % 60) for i in range(400)]
DEPUTIES = frame_of("vorname nachname geburtsjahr partei", [(*one, i % 5) for i, one in enumerate(PEOPLE[:260])])
DIRECTORS = frame_of("vorname nachname geburtsjahr firma", [(*one, i % 9) for i, one in enumerate(PEOPLE[200:])])
NAMESAKES = frame_of("vorname nachname geburtsjahr firma", [(first, last, 1901, 9) for first, last, _ in PEOPLE[:1]])
RATINGS = frame_of("rating_id user_id book_id", [(i, 1 + i * 7 % 40, 1 + i * 11 % 60) for i in range(300)])
WISHES = frame_of("wish_id user_id book_id", [(i, 1 + i * 3 % 40, 1 + i * 13 % 60) for i in range(90)])
USERS, BOOKS = (
    {f"{one}_id": range(1, n), key: range(1, n)} for one, n, key in [("user", 41, "age"), ("book", 61, "isbn")]
)
ROOMS = frame_of("hotel_id room_no kind", [(f"H{h}", 100 + r, "sd"[r % 2]) for h in range(10) for r in range(12)])
BOOKINGS = frame_of("booking hotel_id room_no", [(i, f"H{i * 3 % 10}", 100 + (i * 7 + 1) % 12) for i in range(400)])
HOTELS = frame_of("hotel_id stars", [(f"H{h}", 1 + h % 5) for h in range(10)])


@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning")
@pytest.mark.parametrize(
    ("frames", "question", "key"),
    [
        ({"prizes": PRIZES, "standings": STANDINGS}, "prizes of the club that came first", "event_id club_id"),
        ({"a": DEPUTIES, "d": DIRECTORS}, "Abgeordnete im Vorstand einer Firma", "vorname nachname geburtsjahr"),
        ({"ratings": RATINGS, "wishes": WISHES}, "ratings of wished books", "user_id book_id"),
        (
            {"ratings": RATINGS, "wishes": WISHES, "users": pd.DataFrame(USERS), "books": pd.DataFrame(BOOKS)},
            "ratings of books that the same user wishes, with age and isbn",
            "user_id book_id",
        ),
        ({"bookings": BOOKINGS, "rooms": ROOMS, "hotels": HOTELS}, "bookings by kind of room", "hotel_id room_no"),
    ],
)
def test_two_tables_that_share_several_columns_are_joined_by_all_that_say_which_row(frames, question, key):
    one, other, *_ = frames.values()
    assert len(found_of(frames, question).merge()) == len(one.merge(other, on=key.split()))


def test_whose_name_another_has_is_told_apart_by_the_year_of_birth():
    directors = pd.concat([DIRECTORS, NAMESAKES], ignore_index=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = found_of({"deputies": DEPUTIES, "directors": directors}, "How many deputies are not directors?").merge()
    assert len(frame) == 200


def test_a_sure_key_of_one_column_stays_alone():
    """Places and ratings share a town, too, which adds nothing to the code."""
    places = frame_of("place_id town", [(f"P{i * 3}", f"t{i % 9}") for i in range(60)])
    rated = frame_of("rating place_id town", [(i, f"P{i % 60 * 3}", f"t{i % 7}") for i in range(200)])
    (step,) = found_of({"places": places, "rated": rated}, "ratings of places").join_plan.steps
    assert step.columns == ("place_id",)


CUSTOMERS = [f"K{i * 31:05}" for i in range(60)]
ORDERS = frame_of("order_no customer amount", [(i, CUSTOMERS[i * 7 % 60], i % 50) for i in range(200)])
TICKETS = frame_of("ticket_no customer minutes", [(i, CUSTOMERS[i * 3 % 60], i % 30) for i in range(120)])
ARTICLES = frame_of("sku colour", [(f"K{i % 60:03}", i % 60 % 5) for i in range(62)])
LINES = frame_of("line_no sku", [(i, f"K{i % 60:03}") for i in range(240)])
POSTS = frame_of("post_id title", [(i, f"t{i}") for i in range(1, 51)])
COMMENTS = frame_of(
    "comment_id target_type target_id",
    [(i, *(("post", 1 + i % 50) if i % 3 else ("photo", 1 + i % 80))) for i in range(300)],
)
TARIFFS = frame_of(
    "tariff valid_from valid_to rate",
    [(f"T{i:02}", pd.Timestamp(2018 + v, 1, 1), pd.Timestamp(2018 + v, 12, 31), v) for i in range(20) for v in (1, 2)],
)
BILLS = frame_of("bill tariff day", [(i, f"T{i % 20:02}", pd.Timestamp(2019 + i % 2, 3, 3)) for i in range(150)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("frames", "rows"),
    [
        ({"orders": ORDERS, "tickets": TICKETS}, 120),  # the amounts of a customer summed
        ({"lines": LINES, "articles": ARTICLES}, 240),  # exact copies once
        ({"comments": COMMENTS, "posts": POSTS}, 200),  # the comments on posts
        ({"bills": BILLS, "tariffs": TARIFFS}, 150),  # the version of the day
    ],
)
def test_what_a_refusal_says_gives_the_frame(frames, rows):
    found = found_of(frames, " ".join(frames))
    with pytest.raises((tf.errors.FanOut, tf.errors.NotConnected)) as refusal:
        found.merge()
    text = str(refusal.value)
    way = re.search(r"(where=\{.*\}|on=\".*?\"(, where=\{.*\})?|distinct=True|aggregate=\{.*?\}\})", text)[0]
    frame = eval(f"found.merge({way})", {"found": found})
    assert len(frame) == rows


def test_two_roles_that_nothing_names_are_a_tie_and_both_can_be_joined():
    ports = frame_of("port_code country", [(f"PX{i:02}", i % 3) for i in range(30)])
    voyages = frame_of("voyage from_port to_port", [(i, f"PX{i * 7 % 30:02}", f"PX{i % 30:02}") for i in range(120)])
    found = found_of({"voyages": voyages, "ports": ports}, "countries of ports of voyages")
    with pytest.warns(tf.errors.AmbiguousJoinWarning, match=r'join both with roles="all"'):
        found.merge()
    assert {"from_port.country", "to_port.country"} <= {*found.merge(roles="all").columns}


def test_advice_names_no_pair_that_repeats_on_both_sides():
    rates = frame_of("nuts age rate", [(f"DE{i:02}", f"0-{k}", i) for i in range(20) for k in range(8)])
    people = frame_of("zone age_group pop", [(f"Z{i:02}", f"0-{k}", i) for i in range(20) for k in range(8)])
    with pytest.raises(tf.errors.NotConnected, match="None of them tells which row is meant"):
        found_of({"rates": rates, "people": people}, "rate and pop").merge()


@pytest.mark.filterwarnings("ignore")
def test_namesakes_come_after_references_and_periods_count_as_parts_of_a_key():
    names = [(first, last) for first in FIRST for last in LAST]
    students = frame_of("student_id first_name last_name", [(1000 + i * 3, *one) for i, one in enumerate(names)])
    teachers = frame_of("teacher_id first_name last_name", [(50 + i * 7, *one) for i, one in enumerate(names[::3])])
    lessons = frame_of("lesson student_id teacher_id", [(i, 1000 + i % 64 * 3, 50 + i % 22 * 7) for i in range(300)])
    school = {"students": students, "teachers": teachers, "lessons": lessons}
    plan = found_of(school, "lessons of students with their teachers").join_plan
    assert {step.columns for step in plan.steps} == {("student_id",), ("teacher_id",)}
    countries = frame_of("country label", [(f"C{i}", f"land {i}") for i in range(30)])
    gdp, co2 = (
        frame_of(f"country year {what}", [(f"C{i}", year, i) for i in some for year in years])
        for what, some, years in (("gdp", range(30), range(2000, 2010)), ("co2", range(5, 30), range(2004, 2015)))
    )
    assert len(found_of({"countries": countries, "gdp": gdp, "co2": co2}, "gdp and co2 by label").merge()) == 150


def test_a_referenced_column_that_hardly_ever_repeats_is_said_and_a_start_at_the_other_side_refuses_it():
    orders = frame_of("order_id store", [(i + 1, i % 9) for i in [*range(2000), 99, 199]])
    returns = frame_of("return_id order_id refund", [(i, i * 25 + 25, 10) for i in range(80)])
    found = found_of({"orders": orders, "returns": returns}, "refund of returns by store")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        frame = found.merge()
    assert len(frame) == 82
    (text,) = [str(one.message) for one in heard if one.category is tf.errors.RowsMultipliedWarning]
    way = re.search(r"merge\((plan\.restarted\(.*?\))\)", text)[1]
    with pytest.raises(tf.errors.FanOut, match="distinct=True"):
        found.merge(eval(way, {"plan": found.join_plan}))
    assert len(found.merge(found.join_plan.restarted("frames.returns"), distinct=True)) == 80


@pytest.mark.parametrize(
    ("question", "is_refused"), [("area of places of people", False), ("total points by area", True)]
)
def test_a_list_that_hardly_repeats_its_codes_repeats_rows_with_a_warning_unless_they_are_measured(
    question, is_refused
):
    places = frame_of("place_id spelt area", [(1000 + 37 * i, f"Place {i}", i) for i in [*range(300), 7, 8]])
    places.loc[300:, "spelt"] = ["PLACE 7", "PLACE 8"]
    people = frame_of("person place_id points", [(f"P{i}", 1000 + 37 * (i % 60), i) for i in range(90)])
    found = found_of({"people": people, "places": places}, question)
    with pytest.raises(tf.errors.FanOut) if is_refused else pytest.warns(tf.errors.RowsMultipliedWarning) as heard:
        assert len(found.merge()) == 94
    if not is_refused:
        way = re.search(r"(aggregate)=(\{.*?\})", str(heard[0].message))
        assert len(found.merge(**{way[1]: eval(way[2])})) == 90


TEAMS = [f"{name} FC" for name in ("Ajax", "Bayern", "Celtic", "Dynamo", "Everton", "Fulham", "Genoa", "Hertha")]
SEASONS = range(2019, 2023)
BUDGETS = frame_of(
    "season team budget", [(year, team, year % 7 + k * 3) for year in SEASONS for k, team in enumerate(TEAMS)]
)


@pytest.mark.parametrize("as_ids", [False, True])
@pytest.mark.parametrize(
    ("host", "guest", "question", "column"),
    [
        ("home_team", "away_team", "goals by budget of the away team", "away_team"),
        ("home_team", "away_team", "goals by budget of the home team", "home_team"),
        ("team", "opponent_team", "goals by budget of the opponent team", "opponent_team"),
        ("home_team", "away_team", "goals by budget", None),
        ("host_team", "guest_team", "goals by budget", None),
    ],
)
def test_roles_of_a_key_of_several_columns_are_chosen_by_the_question_or_a_tie(host, guest, question, column, as_ids):
    rows = [(year, one, other, 3) for year in SEASONS for one in TEAMS for other in TEAMS if one != other]
    matches, budgets = frame_of(f"season {host} {guest} goals", rows), BUDGETS
    if as_ids:
        number = {team: 7 + 3 * k for k, team in enumerate(TEAMS)}
        matches, budgets = (
            frame.replace(number).rename(columns=lambda name: f"{name}_id" if name.endswith("team") else name)
            for frame in (matches, budgets)
        )
    found = found_of({"matches": matches, "budgets": budgets}, question)
    (step,) = found.join_plan.steps
    assert len(found.join_plan.ambiguous) == (column is None)
    if column is not None:
        assert {*step.oriented.left_columns, *step.oriented.right_columns} >= {"season", f"{column}{'_id' * as_ids}"}


def merged(frames, question, **given):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        frame = found_of(frames, question).merge(**given)
    return frame, " ".join(str(one.message) for one in heard)


def test_both_references_to_a_table_count_where_inference_prefers_another_table():
    """With the winner's number only in a list that repeats, and in a list of all people, of which both roles are."""
    people = frame_of("person_id gender", [(f"P{i:04}", "fm"[i % 2]) for i in range(90)])
    votes = frame_of("vote person_id finalist_id", [(i, f"P{i % 80:04}", f"P{i * 7 % 80:04}") for i in range(300)])
    played = frame_of("person_id version season", [(f"P{i % 90:04}", "US", i // 30) for i in range(150)])
    found = tf.open_corpus({"people": people, "votes": votes, "played": played}).retrieve_tables("votes of finalists")
    plan = found.add("people", "votes").only("people", "votes").join_plan
    assert [step.oriented.left_columns[0] for step in plan.steps] == ["finalist_id"]


@pytest.mark.parametrize("shared", [2, 20])
def test_a_code_of_one_name_is_the_key_before_a_column_of_one_value(shared):
    """Retired plates have few codes in common with those in use: whichever share is found, the loss is said."""
    used = frame_of("country plate town", [("D", f"A{i:02}", f"Town {i}") for i in range(90)])
    retired = frame_of("country plate district", [("D", f"A{i:02}", f"Old {i}") for i in range(90 - shared, 150)])
    states = frame_of("country name", [("D", "Germany"), *((f"X{i}", f"Land {i}") for i in range(30))])
    corpus = tf.open_corpus({"used": used, "retired": retired, "states": states})
    found = corpus.retrieve_tables("retired plates").add("used", "retired").only("used", "retired")
    with pytest.warns(tf.errors.DoubtfulJoinWarning), pytest.warns(tf.errors.RowsLostWarning):
        assert len(found.merge()) == shared


def test_names_of_which_most_are_found_join_two_tables_that_nothing_else_connects():
    regions = frame_of("Name people", [(f"Region {chr(65 + i)}", i) for i in range(20)])
    cases = frame_of("Regione casi", [(f"Region {chr(65 + i % 26)}", i) for i in range(200)])
    frame, said = merged({"cases": cases, "population": regions}, "casi e people")
    assert len(frame) == sum(i % 26 < 20 for i in range(200))
    assert "low-confidence key" in said
    assert "no partner" in said


def test_tables_that_share_a_year_alone_are_joined_by_it_where_the_question_names_one_row_of_each_year():
    stages = frame_of("Year Stage Start", [(1950 + i // 9, i % 9, f"Town {i * 7 % 40}") for i in range(180)])
    riders = frame_of("Year Rank Rider", [(1950 + i // 25, 1 + i % 25, f"Rider {i % 60}") for i in range(500)])
    frame, said = merged({"stages": stages, "riders": riders}, "stages in years with the rider 'Rider 7'")
    assert "where={'Rider': 'Rider 7'}" in said
    assert len(frame[frame["Rider"] == "Rider 7"]) == sum(
        (stages["Year"] == year).sum() for year in riders.loc[riders["Rider"] == "Rider 7", "Year"]
    )
    with pytest.raises(tf.errors.FanOut):
        merged({"stages": stages, "riders": riders}, "stages and riders")


YEARS, CODES = range(2015, 2022), range(10, 22)
SECTIONS = [(year, code, f"Sección {code}{'bis' * (code == 13 and year % 2)}") for year in YEARS for code in CODES]
SPENT = [(i, 2015 + i % 7, 10 + i * 5 % 12, i % 900) for i in range(420)]
EPISODES = [(s, e, f"Title {s}-{e}") for s in range(1, 8) for e in range(1, 11 + s % 3)]
RATINGS_OF = [(s, e, (s * e) % 10) for s, e, _ in EPISODES]
PROVINCES = [(f"Prov {i}", land, 100 * i) for land in ("AA", "BB", "CC", "DD") for i in range(9)]
CITIES = [(f"City {i}", ["AA", "BB", "CC", "DD"][i % 4], f"Prov {i * 7 % 9}") for i in range(300)]
LANDS = [(f"Land {land}", land) for land in ("AA", "BB", "CC", "DD")]


@pytest.mark.parametrize(
    ("frames", "rows"),
    [
        ({"gastos": ("linea anio seccion importe", SPENT), "secciones": ("anio codigo nombre", SECTIONS)}, 420),
        ({"gastos": ("linea anio codigo_seccion euros", SPENT), "secciones": ("anio codigo nombre", SECTIONS)}, 420),
        ({"ratings": ("season_number episode_number rating", RATINGS_OF), "e": ("season episode title", EPISODES)}, 77),
        ({"city": ("name country province", CITIES), "province": ("name country area", PROVINCES)}, 300),
        (
            {
                "city": ("name country province", CITIES),
                "province": ("name country area", PROVINCES),
                "country": ("name code", LANDS),
            },
            300,
        ),
    ],
)
def test_a_key_of_a_code_and_what_it_is_counted_in_is_found_under_other_names(frames, rows):
    made = {table: frame_of(columns, cells) for table, (columns, cells) in frames.items()}
    frame, said = merged(made, " ".join(name for table in made.values() for name in table))
    assert len(frame) == rows
    assert "low-confidence" not in said


COUNTRIES = frame_of("code name capital", [(f"C{i:02}", f"Land {i}", f"City {i * 5}") for i in range(30)])
CAPITALS = frame_of("city_name country_code people", [(f"City {i}", f"C{i // 5:02}", i * 100) for i in range(150)])
CLUBS_LED = frame_of("club_id stadium captain_id", [(i, f"St {i}", 5000 + 44 * i) for i in range(1, 31)])
PLAYERS = frame_of("player_id player_name club_id", [(5000 + 11 * i, f"P{i}", 1 + i % 30) for i in range(300)])


@pytest.mark.parametrize(
    ("frames", "question", "rows"),
    [
        ({"countries": COUNTRIES, "cities": CAPITALS}, "people of the capital of each country", 30),
        ({"countries": COUNTRIES, "cities": CAPITALS}, "people of cities by name of the country", 150),
        ({"clubs": CLUBS_LED, "players": PLAYERS}, "name of the captain of each club", 30),
        ({"clubs": CLUBS_LED, "players": PLAYERS}, "players of each club by stadium", 300),
    ],
)
@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning")
@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
def test_a_reference_back_is_taken_where_the_question_names_it(frames, question, rows):
    assert len(found_of(frames, question).merge()) == rows


CITIES = [(f"Land {i // 12}", f"Prov {i // 3 % 4}", f"Town {i % 11}", i) for i in range(120)]
PROVINCES = frame_of(
    "country name capital cap_prov", [(land, prov, town, prov) for land, prov, town, i in CITIES if not i % 3]
)


@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning")
@pytest.mark.parametrize(
    ("question", "rows"), [("people of the capital of each province", 40), ("people of towns", 120)]
)
def test_a_reference_back_by_several_columns_is_taken_where_the_question_names_it(question, rows):
    towns = frame_of("country province name people", CITIES)
    assert len(found_of({"provinces": PROVINCES, "towns": towns}, question).merge()) == rows


MUNICIPIOS = frame_of("CODIGO_MUNICIPIO area", [(1000 + 37 * i, i * i) for i in range(90)])
NASCIDOS = frame_of("nome Código_Município", [(f"P{i}", 1000 + 37 * (i * 7 % 90)) for i in range(60)])
CODES = [f"{i:02}" for i in range(1, 20)] + ["2A", "2B", *map(str, range(21, 96)), "971"]
DEPARTEMENTS = frame_of("nom CodDpt", [(f"Dep {code}", code.lstrip("0")) for code in CODES])
COMMUNES = frame_of("CODREG CODDEP CODCOM PMUN", [(i % 13, CODES[i % 97], f"{i:03}", 7 * i) for i in range(600)])
CLIENTES = frame_of("cod nombre", [(500 + 3 * i, f"N{i}") for i in range(40)])
PEDIDOS = frame_of("pedido idcliente", [(i, 500 + 3 * (i * 7 % 40)) for i in range(200)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("frames", "columns"),
    [
        ({"senado": NASCIDOS, "areas": MUNICIPIOS}, {"Código_Município", "CODIGO_MUNICIPIO"}),
        ({"donnees": COMMUNES, "dep": DEPARTEMENTS}, {"CODDEP", "CodDpt"}),
        ({"pedidos": PEDIDOS, "clientes": CLIENTES}, {"idcliente", "cod"}),
    ],
)
def test_names_with_accents_and_glued_key_words_are_read_and_numbers_filled_up_with_zeros(frames, columns):
    frame = found_of(frames, "everything by name").merge()
    assert len(frame) == len(next(iter(frames.values())))
    (step,) = found_of(frames, "everything by name").join_plan.steps
    assert {*step.columns, *step.base_columns} == columns


@pytest.mark.parametrize(("filled", "other"), [(["01", "2A", "30"], ["1", "2A", "30"]), (["007", "7A"], ["7", "7A"])])
def test_texts_filled_up_with_zeros_meet_plain_ones_and_no_others(filled, other):
    frames = {"a": pd.DataFrame({"code": filled}), "b": pd.DataFrame({"code": other, "n": range(len(other))})}
    with pytest.warns(tf.errors.CoercedKeysWarning):
        assert len(tf.merge(frames, on="code")) == len(filled)
    frames["b"]["code"] = ["0" + other[0], *other[1:]]
    frames["a"]["code"] = ["0" + filled[0], *filled[1:]]
    with pytest.warns(tf.errors.RowsLostWarning):
        assert len(tf.merge(frames, on="code")) == len(filled) - 1


@pytest.mark.filterwarnings("ignore")
def test_tables_of_towns_meet_by_the_town_before_its_region():
    code = lambda i: f"{i * 37 % 997:05}"  # noqa: E731
    towns = frame_of("KIND COM REG COMPARENT", [
        ("COM" if i < 200 else "COMD", code(i), f"R{i % 9}", None if i < 200 else code(i * 7 % 200)) for i in range(260)
    ])  # fmt: skip
    zones = frame_of("GEO REG ZONE", [(code(i), f"R{i % 9}", f"z{i % 5}") for i in range(200)])
    regions = frame_of("REG LABEL", [(f"R{i}", f"Region {i}") for i in range(9)])
    found = tf.open_corpus({"towns": towns, "zones": zones, "reg": regions}).retrieve_tables(
        "zone of the parent of each town", k=1
    )
    (step,) = found.add("towns", "zones").only("towns", "zones").join_plan.steps
    assert {*step.columns, *step.base_columns} == {"COMPARENT", "GEO"}


CLUBS_OF = frame_of(
    "club_no club_name last_match_no", [(100 + 7 * i, f"C{i}", 5000 + 13 * (200 + i)) for i in range(20)]
)
MATCHES = [(5000 + 13 * i, 100 + 7 * (i % 20), 100 + 7 * ((i * 3 + 1) % 20), i % 5) for i in range(260)]


@pytest.mark.parametrize(
    ("question", "column"),
    [
        ("goals and club name of the away team", "away_team_no"),
        ("goals and club name of the home team", "home_team_no"),
        ("club name of the last match", "last_match_no"),
        ("goals and club names", None),
    ],
)
def test_references_in_both_directions_are_chosen_by_words_or_a_tie(question, column):
    matches = frame_of("match_no home_team_no away_team_no goals", MATCHES)
    plan = found_of({"clubs": CLUBS_OF, "matches": matches}, question).join_plan
    assert bool(plan.ambiguous) == (column is None)
    assert column in (None, *(name for step in plan.steps for name in (*step.columns, *step.base_columns)))


def test_of_two_numbers_that_are_both_found_the_one_that_refers_to_most_rows_is_the_key():
    """Seats by the number of the district, and the code of a profession, which is as small."""
    districts = frame_of("District-No People", [(i, i * 7 % 90) for i in range(1, 300)])
    seats = frame_of("Name ProfessionKey AreaNo", [(f"N{i}", 1 + i % 90, 1 + i * 7 % 299) for i in range(700)])
    more = frame_of("ProfessionKey Label", [(i, f"Job {i}") for i in range(1, 91)])
    corpus = tf.open_corpus({"districts": districts, "seats": seats, "professions": more})
    plan = corpus.retrieve_tables("seats").add("districts", "seats").only("districts", "seats").join_plan
    assert [{*step.oriented.left_columns, *step.oriented.right_columns} for step in plan.steps] == [
        {"AreaNo", "District-No"}
    ]


def chosen_of(frames, question, *tables):
    """The tables of a folder with others that nobody chooses."""
    return tf.open_corpus(frames).retrieve_tables(question).add(*tables).only(*tables)


CODES = [f"P{i * 7919 % 9973:04}" for i in range(60)]


@pytest.mark.parametrize("kinds", [("SK1 SK2 SK3", "VA1 VA2"), ("cm m", "kg g"), ("G1 G2 G3 G4", "H5 H6")])
def test_columns_without_a_common_value_join_no_two_tables(kinds):
    """Interests and values of people: both refer to the list of all elements, each to other ones."""
    one, two = ([(code, kind, i) for i, code in enumerate(CODES) for kind in some.split()] for some in kinds)
    frames = {
        "interests": frame_of("person_code element_id score", one),
        "work_values": frame_of("person_code element_id score", two),
        "elements": frame_of("element_id label", [(kind, f"of {kind}") for kind in " ".join(kinds).split()]),
        "people": frame_of("person_code town", [(code, f"Town {i % 7}") for i, code in enumerate(CODES)]),
    }
    question = "interests of people by work value"
    plan = chosen_of(frames, question, "interests", "work_values", "people").join_plan
    assert {step.columns for step in plan.steps} == {("person_code",)}


@pytest.mark.parametrize("rows", [300, 1500])
def test_a_stack_has_the_values_of_all_its_parts(rows):
    """Numbers that go on from year to year, and a list in which most of them are, with all of earlier years."""
    ids = [14_000 + i * 7 % rows for i in range(rows)]
    frames = {f"projects_{2016 + y}": pd.DataFrame({"project_id": ids[y::3], "title": "a"}) for y in range(3)}
    fields = [(i, i * j % 40) for i in range(1, 14_000 + rows) if i % 7 for j in range(1, 2 + i % 2)]
    frames["project_fields"] = frame_of("project_id field_id", fields)
    frame, said = merged(frames, "projects from 2016 to 2018 by field")
    assert len(frame) == sum(project >= 14_000 for project, _ in fields)
    assert "frames.project_fields.project_id = frames.projects.project_id (30%)" in said


def test_a_number_that_refers_to_one_table_is_no_guess_at_another():
    named = [(i * 7, f"Item {i}", f"{i}") for i in range(1, 350)]
    frames = {
        "quest_base": frame_of("id goal", [(i * 7, f"goal {i}") for i in range(1, 400)]),
        "quest_rewards": frame_of("base_id item_en", [((1 + i % 399) * 7, f"Item {i % 90}") for i in range(700)]),
        "item_base": frame_of("id name_en colour", named),
        "item_base_translations": frame_of("id name_en name_fr", named),
        "craft": frame_of("id item_en", [(i * 7, f"Item {i % 80}") for i in range(1, 350)]),
    }
    plan = chosen_of(frames, "colours of the rewards of quests", "quest_rewards", "quest_base", "item_base").join_plan
    by_table = {step.table: step.columns for step in plan.restarted("frames.quest_rewards").steps}
    assert by_table == {"frames.quest_base": ("id",), "frames.item_base": ("name_en",)}


def test_two_tables_by_quarter_and_year_meet_in_a_third_and_not_by_the_quarter():
    quarters, years = [f"Quarter {i:02}" for i in range(30)], range(2005, 2012)
    frames = {
        "population": frame_of("quarter year people", [(q, y, 1) for q in quarters for y in range(2000, 2012)]),
        "income": frame_of("quarter tax_year tariff", [(q, y, t) for q in quarters for y in years for t in "bm"]),
        "houses": frame_of("quarter year kind", [(q, y, k) for q in quarters for y in years for k in "abc"]),
        "quarters": frame_of("name area", [(q, i) for i, q in enumerate(quarters)]),
    }
    plan = chosen_of(frames, "houses by income", "population", "income", "houses").join_plan
    assert all(len(step.columns) == 2 for step in plan.steps)


PEOPLE_OF = [f"{name}{i:03}" for i, name in enumerate("lee kim roy ann bob sue tom".split() * 40)]
HALL = {
    "master": frame_of("bio_key height", [(key, 150 + i % 50) for i, key in enumerate(PEOPLE_OF)]),
    "draft": frame_of("year player_id", [(1990 + i % 20, key if i % 4 else None) for i, key in enumerate(PEOPLE_OF)]),
    "awards": frame_of("player_id award", [(key, f"a{j}") for key in PEOPLE_OF[::4] for j in range(2)]),
    "hall": frame_of("year hof_id", [(2010 + i % 9, key) for i, key in enumerate(PEOPLE_OF[::5])]),
    "coaches": frame_of("coach_id year", [(key, year) for key in PEOPLE_OF[::6] for year in range(3)]),
    "allstar": frame_of("player_id season", [(key, year) for key in PEOPLE_OF[::2] for year in range(2)]),
}


def test_a_table_that_only_shows_which_columns_are_equal_is_not_joined():
    plan = chosen_of(HALL, "drafted people in the hall with an award", "draft", "awards", "hall").join_plan
    assert {table.rpartition(".")[2] for table in plan.tables} == {"draft", "awards", "hall"}


KINDS = {"status": "open shut lost", "grade": "A1 B1 C1 D1", "playoff": "none round final", "mode": "air sea road"}
LABELS = [(kind, word[:2].upper(), f"is {word}") for kind, words in KINDS.items() for word in words.split()]


@pytest.mark.parametrize("kind", KINDS)
def test_of_guesses_at_a_list_of_codes_the_one_that_the_question_names_is_taken(kind):
    cells = {one: [word[:2].upper() for word in words.split()] for one, words in KINDS.items()}
    ships = pd.DataFrame(
        {"ship": range(1000, 1600, 3)} | {k: [v[i % len(v)] for i in range(200)] for k, v in cells.items()}
    )
    frames = {"ships": ships, "labels": frame_of("kind code label", LABELS)}
    (step,) = found_of(frames, f"How many ships by the label of their {kind}?").join_plan.steps
    assert kind in (*step.columns, *step.base_columns)


TEAMS_OF = frame_of("team_id town won", [(i, f"Town {i % 5}", i % 40) for i in range(30)])
PLAYED = frame_of("match_id winner_id loser_id", [(i, i % 30, (i * 7 + 1) % 30) for i in range(200)])
PAPERS = frame_of("paper_id year", [(i, 1990 + i % 20) for i in range(1, 91)])
CITED = frame_of("paper_id cited_paper_id", [(1 + i % 90, 1 + i * 13 % 90) for i in range(200)])


@pytest.mark.parametrize(
    ("frames", "question", "roles"),
    [
        ({"matches": PLAYED, "teams": TEAMS_OF}, "Matches that a team with 20 wins won against a team of 9", 2),
        ({"matches": PLAYED, "teams": TEAMS_OF}, "Spiele, in denen ein Team aus Rom gegen ein Team aus Oslo gewann", 2),
        ({"matches": PLAYED, "teams": TEAMS_OF}, "matches gagnés par l'une des teams d'un town", 1),
        ({"matches": PLAYED, "teams": TEAMS_OF}, "Matches of the team of Rome that the team won", 1),
        ({"matches": PLAYED, "teams": TEAMS_OF}, "Each team and its matches", 1),
        ({"citations": CITED, "papers": PAPERS}, "How often does a paper of 1995 cite a paper of 1990?", 2),
        ({"citations": CITED, "papers": PAPERS}, "Citations by the year of the paper", 1),
    ],
)
@pytest.mark.filterwarnings("ignore::tagframe.errors.AmbiguousJoinWarning")
def test_a_thing_that_is_new_twice_is_two_rows(frames, question, roles):
    assert len(found_of(frames, question).join_plan.steps) == roles


SALES = frame_of("customer_id product", [(1, "green tea"), (1, "coffee"), (2, "green tea"), (3, "coffee")])
TAKEN = frame_of("student_id course_id", [(1, 1), (1, 2), (2, 1), (3, 2)])
COURSES = frame_of("course_id title", [(1, "Physics"), (2, "Chemistry"), (3, "Art")])


@pytest.mark.parametrize(
    ("frames", "question"),
    [
        ({"sales": SALES}, "How many customers bought both green tea and coffee?"),
        ({"sales": SALES}, "Clientes que compraron tanto coffee como green tea"),
        ({"taken": TAKEN, "courses": COURSES}, "Students who take both Physics and Chemistry"),
        ({"taken": TAKEN, "courses": COURSES}, "Who belegt sowohl Physics als auch Chemistry?"),
    ],
)
def test_two_cells_of_a_column_that_a_thing_shall_have_are_counted_by_the_line_that_is_said(frames, question):
    frame, said = merged(frames, question)
    line = re.search(r"so none is both .*?: (frame\[.*\(\) == 2)", said)[1]
    assert eval(line, {"frame": frame}).to_dict() == {1: True, 2: False, 3: False}


def test_values_of_two_columns_that_are_named_together_are_no_cells_of_one():
    assert "so none is both" not in merged({"sales": SALES}, "Both the customers and the products of sales")[1]
