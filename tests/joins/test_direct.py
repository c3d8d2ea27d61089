"""Two tables with a name in common are joined directly, before a third table that nobody chose."""

import warnings

import pandas as pd
import pytest

import tagframe as tf
from tagframe.joins.infer import plan_tables

PLACES = pd.DataFrame({"placeID": [f"K{i * 37:05}" for i in range(70)], "zip": [f"z{i % 9}" for i in range(70)]})
RATED = pd.DataFrame({"placeID": [f"K{i * 37:05}" for i in range(45, 95)], "stars": [i % 3 for i in range(50)]})
VISITS = pd.DataFrame({"visit": range(200), "placeID": [f"K{(i % 95) * 37:05}" for i in range(200)]})


@pytest.mark.parametrize("named", ["placeID", "Place_ID", "place id"])
def test_a_partial_overlap_under_one_name_is_a_key_and_the_loss_is_said(named):
    corpus = tf.open_corpus({"places": PLACES, "rated": RATED.rename(columns={"placeID": named}), "visits": VISITS})
    found = corpus.retrieve_tables("stars of places", k=1).add("places", "rated").only("places", "rated")
    assert len(found.join_plan.tables) == 2
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = found.merge()
    assert len(frame) == 25
    assert any("no partner" in str(one.message) for one in said)


def test_the_plan_never_starts_from_an_empty_table():
    corpus = tf.open_corpus({"places": PLACES, "rated": RATED.iloc[:0]})
    found = corpus.retrieve_tables("stars of places", k=2).add("places", "rated")
    assert found.plans == [] or found.join_plan.start == "frames.places"


def test_only_of_another_table_says_how_to_add_it():
    corpus = tf.open_corpus({"places": PLACES, "rated": RATED, "visits": VISITS})
    found = corpus.retrieve_tables("stars", k=1)
    other = next(id for id in ("frames.visits", "frames.places") if id not in found.ids)
    with pytest.raises(tf.errors.TableNotFound, match="adds it"):
        found.only(other)
    assert other in found.add(other).only(other).ids


def test_a_corpus_merges_named_tables():
    corpus = tf.open_corpus({"places": PLACES, "visits": VISITS})
    assert len(corpus.merge("visits", "places", on="placeID", on_loss="allow")) == sum(
        VISITS["placeID"].isin(PLACES["placeID"])
    )
    with pytest.warns(tf.errors.RowsMultipliedWarning, match="rows of frames.visits"):
        corpus.merge("places", "visits", on="placeID", on_loss="allow")


SCHOOLS = pd.DataFrame({"code": [f"S{i:03}" for i in range(40)], "town": [f"T{i % 7}" for i in range(40)]})
PANEL = pd.DataFrame({"code": [f"S{i % 40:03}" for i in range(120)], "year": [2018 + i // 40 for i in range(120)]})
RIDES = PANEL.assign(mode=[f"m{i % 3}" for i in range(120)], share=[i % 50 for i in range(120)])
FARES = PANEL.assign(kind=[f"k{i % 3}" for i in range(120)], share=[i % 49 for i in range(120)])


def joined(frames, question="", **given):
    found = tf.open_corpus(frames).retrieve_tables(question or " ".join(frames), k=1).add(*frames).only(*frames)
    return found.merge(**given)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("others", [{}, {"schools": SCHOOLS}])
def test_two_panels_of_one_thing_are_joined_by_the_year_too(others):
    """Without the year, 40 schools with three years each would give 360 rows; a measure of one name is no key."""
    frame = joined({"rides": RIDES, "fares": FARES, **others}, on_fanout="allow")
    assert len(frame) == len(RIDES.merge(FARES, on=["code", "year"])) == 120


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("missing", "columns"), [(0.1, ("code", "year")), (0.9, ("code",))])
def test_a_column_that_is_mostly_missing_is_no_part_of_the_key(missing, columns):
    fares = FARES.assign(year=FARES["year"].where(FARES.index % 10 >= 10 * missing))
    corpus = tf.open_corpus({"rides": RIDES, "fares": fares})
    found = corpus.retrieve_tables("rides fares").only("rides", "fares")
    assert found.join_plan.steps[0].key.left_columns == columns


@pytest.mark.filterwarnings("ignore")
def test_a_name_of_the_same_thing_that_is_spelt_in_two_ways_is_no_part_of_the_key():
    rides = RIDES.assign(school=[f"School {code}" if code < "S020" else f"{code} school" for code in RIDES["code"]])
    fares = FARES.assign(school=[f"School {code}" for code in FARES["code"]])
    frame = joined({"rides": rides, "fares": fares, "schools": SCHOOLS}, on_fanout="allow")
    assert len(frame) == 120


@pytest.mark.filterwarnings("ignore")
def test_tables_that_repeat_two_columns_are_joined_by_both_and_different_things_are_counted():
    runs = [("AAA", "2013J"), ("AAA", "2014B"), ("BBB", "2013J"), ("BBB", "2014B")]
    exams = pd.DataFrame([(*run, kind) for run in runs for kind in ("CMA", "TMA")], columns=["module", "run", "kind"])
    taken = pd.DataFrame([(*run, f"p{n}") for run in runs[:3] for n in range(5)], columns=["module", "run", "student"])
    frames = {"exams": exams, "taken": taken}
    with pytest.warns(tf.errors.RowsMultipliedWarning, match="nunique"):
        frame = joined(frames, "How many different students took exams? taken")
    right = exams.merge(taken, on=["module", "run"])
    assert len(frame) == len(right)
    with pytest.raises(tf.errors.FanOut):
        joined(frames, "How many students took exams? taken")


@pytest.mark.filterwarnings("ignore")
def test_a_table_that_nobody_chose_is_joined_by_sure_keys_only():
    """Countries with medals, those of athletes, and a third table with both countries and sports."""
    countries = [f"Country {chr(65 + i // 5)}{i}" for i in range(90)]
    medals = pd.DataFrame({"Team/NOC": countries[:40], "gold": [i % 7 for i in range(40)]})
    athletes = pd.DataFrame({"who": [f"w{i}" for i in range(400)], "NOC": [countries[i * 7 % 90] for i in range(400)]})
    teams = pd.DataFrame({"team": [f"t{i}" for i in range(60)], "NOC": [countries[i * 2 % 50] for i in range(60)]})
    corpus = tf.open_corpus({"medals": medals, "athletes": athletes, "teams": teams})
    found = corpus.retrieve_tables("athletes medals", k=1).add("medals", "athletes").only("medals", "athletes")
    assert sorted(found.join_plan.tables) == ["frames.athletes", "frames.medals"]
    assert len(found.merge()) == athletes["NOC"].isin(medals["Team/NOC"]).sum()


ORDERS = pd.DataFrame({"order": range(200), "customer_id": [1 + i * 7 % 40 for i in range(200)]})
ORDERS = ORDERS.assign(
    channel=[["web", "shop", "phone"][i % 3] for i in range(200)], amount=[i % 90 for i in range(200)]
)
TICKETS = pd.DataFrame({"ticket": range(90), "customer_id": [1 + i * 3 % 30 for i in range(90)]})
TICKETS = TICKETS.assign(
    channel=[["web", "mail", "phone"][i % 3] for i in range(90)], minutes=[i % 50 for i in range(90)]
)
SHOP = {"customers": pd.DataFrame({"customer_id": range(1, 51)}), "orders": ORDERS, "tickets": TICKETS}


@pytest.mark.filterwarnings("ignore")
def test_a_column_that_describes_a_row_is_no_part_of_the_key():
    sums = {"orders": {"amount": "sum"}, "tickets": {"minutes": "sum"}}
    frame = joined(SHOP, "Amount of the orders and minutes of the tickets per customer", aggregate=sums)
    both = (
        ORDERS.groupby("customer_id")["amount"].sum().to_frame().join(TICKETS.groupby("customer_id")["minutes"].sum())
    )
    right = both.dropna().reset_index()
    assert frame[["customer_id", "amount", "minutes"]].astype(float).equals(right.astype(float))
    alone = joined(SHOP, "customers with orders but without tickets", on_fanout="allow")
    assert sorted(alone["order"]) == sorted(ORDERS[~ORDERS["customer_id"].isin(TICKETS["customer_id"])]["order"])


NAMES = [f"{chr(65 + i % 26)}ville {i}" for i in range(60)]
SPELT = [name.upper() if i % 4 == 0 else name.replace(" ", "-") if i % 5 == 0 else name for i, name in enumerate(NAMES)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("parent", "child", "codes", "names", "code"),
    [
        ("stazioni", "orari", ("codice", "cod_stazione"), ("nome", "stazione"), lambda i: f"S{i * 7 + 100}"),
        (
            "hospitals",
            "waits",
            ("org_code", "provider"),
            ("org_name", "trust"),
            lambda i: f"R{chr(65 + i % 26)}{i // 26}X",
        ),
        ("gemeinden", "wahlen", ("ags", "AGS"), ("gemeinde", "Gemeinde"), lambda i: 8111000 + i * 13),
        (
            "airports",
            "delays",
            ("iata", "airport_code"),
            ("name", "airport"),
            lambda i: f"{chr(65 + i % 26)}{i // 26}X",
        ),
        (
            "communes",
            "logements",
            ("code_insee", "INSEE_COM"),
            ("nom_commune", "commune"),
            lambda i: f"{1000 + i * 11:05}",
        ),
        ("wells", "samples", ("well_uid", "uid"), ("well_name", "well"), lambda i: f"{i * 911:08x}-ff"),
    ],
)
def test_codes_are_joined_before_names(parent, child, codes, names, code):
    """Names are spelt in several ways: an upper-cased or hyphenated one finds no partner."""
    things = pd.DataFrame({codes[0]: map(code, range(60)), names[0]: NAMES, "size": [i + 0.5 for i in range(60)]})
    rows = [i % 48 for i in range(200)]
    events = pd.DataFrame({codes[1]: map(code, rows), names[1]: [SPELT[i] for i in rows], "day": [i % 7 for i in rows]})
    assert len(joined({parent: things, child: events}, f"{child} of each {parent}")) == 200
    assert len(joined({parent: things, child: events}, f"{parent} without {child}")) == 12


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("spediteur", "start_hafen", "ziel_hafen"), ("spediteur", "start_hfn", "ziel_hfn")),
        (("carrier", "origin_port", "destination_port"), ("carrier", "orig_port_cd", "dest_port_cd")),
        (("aerolinea", "aeropuerto_origen", "aeropuerto_destino"), ("aerolinea", "aerop_orig", "aerop_dest")),
        (("hotel_code", "room_type", "season"), ("htl_code", "rm_type", "season")),
        (("lager", "warengruppe"), ("lgr", "warengr")),
        (("ward", "shift"), ("ward", "shft")),
    ],
)
def test_panels_are_joined_by_columns_whose_names_are_short_for_each_other(one, other):
    def values(rows, at):
        return [f"{one[at][:2].upper()}{(i * (at + 3) + i // 7) % (5 + at * 2)}" for i in rows]

    orders = pd.DataFrame({name: values(range(300), at) for at, name in enumerate(one)} | {"weight": range(300)})
    rates = pd.DataFrame({name: values(range(1, 271, 3), at) for at, name in enumerate(other)} | {"rate": range(90)})
    frame = joined({"deliveries": orders, "tariffs": rates}, on_fanout="allow")
    assert len(frame) == len(orders.merge(rates, left_on=one, right_on=other))


AGES = [f"{i}0-{i}9" for i in range(10)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("place", "age", "band"),
    [("area", "eta", "fascia"), ("fips", "age_group", "age_band"), ("line", "hour_slot", "slot")],
)
def test_a_part_of_a_composite_key_is_not_joined_alone_where_a_third_table_has_it(place, age, band):
    codes = [f"{chr(65 + i)}{chr(70 + i)}" for i in range(18)]
    places = pd.DataFrame({place: codes, "label": [f"{code} town" for code in codes]})
    planned = pd.DataFrame([(c, a, i) for i, c in enumerate(codes) for a in AGES], columns=[place, age, "total"])
    done = pd.DataFrame([(c, a, i) for i, c in enumerate(codes) for a in AGES[2:]], columns=[place, band, "total"])
    corpus = tf.open_corpus({"planned": planned, "done": done, "places": places})
    found = corpus.retrieve_tables("planned without done", k=1).add("planned", "done").only("planned", "done")
    assert len(found.merge()) == 36
    (step,) = found.join_plan.steps
    assert len(found.merge(on=str(step), how="inner")) == 144  # as the plan shows it


def test_several_columns_of_a_key_may_be_written_as_plans_show_them():
    one, other = pd.DataFrame({"x": [1, 1, 2], "y": [1, 2, 1]}), pd.DataFrame({"u": [1, 1], "v": [1, 2]})
    assert len(tf.merge({"a": one, "b": other}, on="a.(x, y) = b.(u, v)", on_loss="allow")) == 2
    with pytest.raises(tf.errors.InvalidArgument, match="2 columns on one side and 1"):
        tf.merge({"a": one, "b": other}, on="a.(x, y) = b.(u)")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("code", "name"), [("uic", "gare"), ("ags", "gemeinde"), ("urn", "school")])
def test_tables_that_refer_to_one_are_joined_to_it_though_a_question_names_one_of_them(code, name):
    """Names repeat in two of the tables, which join directly by them; the code leads through the things."""
    ids = [8700 + i * 37 for i in range(60)]
    things = pd.DataFrame({code: ids, name: NAMES, "segment": ["A", "B", "C"] * 20})
    pianos = pd.DataFrame({code: ids[::3], name: SPELT[::3], "pianos": [i % 4 for i in range(20)]})
    hours = pd.DataFrame(
        [(f"00{ids[i]}", SPELT[i], day) for i in range(45) for day in "MTW"], columns=[code, name, "day"]
    )
    lifts = pd.DataFrame([(ids[i], SPELT[i], kind) for i in range(50) for kind in "xy"], columns=[code, name, "lift"])
    corpus = tf.open_corpus({"things": things, "pianos": pianos, "hours": hours, "lifts": lifts})
    tables = ["things", "pianos", "hours", "lifts"]
    found = corpus.retrieve_tables("segment A with pianos, and a lift on day M", k=1).add(*tables).only(*tables)
    assert {column for step in found.join_plan.steps for column in (*step.columns, *step.base_columns)} == {code}


@pytest.mark.parametrize(
    ("table", "number", "thing", "code"),
    [("teams", "key_id", "team_id", "team_code"), ("Stationen", "lfd_nr", "station_id", "kuerzel"),
     ("produits", "id", "produit_id", "code"), ("stores", "row", "store_no", "region_code")],
)  # fmt: skip
def test_a_code_that_repeats_is_not_widened_by_row_numbers_where_a_reference_is_there(table, number, thing, code):
    rows = range(1, 41)
    things = pd.DataFrame(
        {number: rows, thing: [f"T-{i:02}" for i in rows], code: [f"L{max(i, 2):02}" for i in rows], "zone": "a"}
    )
    chosen = [(i * 7) % 40 for i in range(90)]
    events = things.iloc[chosen].drop(columns="zone").assign(**{number: range(1, 91), "score": range(90)})
    frame = joined({table: things, "events": events}, f"score of the events of each of {table}")
    assert len(frame) == 90
    assert set(frame["zone"]) == {"a"}


PARTS = pd.DataFrame({"element": range(90), "part_num": [f"p{i * 7 % 40}" for i in range(90)]})
PRINTS = pd.DataFrame(
    {
        "kind": ["print", "mold"] * 30,
        "child_part_num": [f"p{20 + i * 7 % 50}" for i in range(60)],
        "parent_part_num": [f"p{30 + i % 20}" for i in range(60)],
    }
)


@pytest.mark.filterwarnings("ignore")
def test_a_code_that_repeats_in_both_tables_counts_different_things_and_is_refused_elsewhere():
    frames = {"elements": PARTS, "relations": PRINTS}
    with pytest.warns(tf.errors.RowsMultipliedWarning), pytest.warns(tf.errors.AmbiguousJoinWarning, match="parent"):
        frame = joined(frames, "How many different elements have a part that is the child of a print? relations")
    right = PARTS.merge(PRINTS, left_on="part_num", right_on="child_part_num")
    assert sorted(frame["element"]) == sorted(right["element"])
    for asked in (
        "How many elements have a part that is the child of a print? relations",
        "What is the highest total of elements by the part that is the child of a print? relations",
    ):
        with pytest.raises(tf.errors.FanOut):
            joined(frames, asked)


@pytest.mark.filterwarnings("ignore::tagframe.errors.AmbiguousJoinWarning")
@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning")
@pytest.mark.parametrize("asked", ["the highest element", "cuál es la mayor element", "die höchste element"])
def test_the_largest_is_the_same_however_often_rows_repeat(asked):
    with pytest.warns(tf.errors.RowsMultipliedWarning, match=r"max\(\) and min\(\) are right"):
        frame = joined({"elements": PARTS, "relations": PRINTS}, f"{asked} with a child part in relations")
    assert frame["element"].max() == PARTS[PARTS["part_num"].isin(PRINTS["child_part_num"])]["element"].max()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("days", "is_joined"), [(2, True), (5, False)])
def test_rows_of_each_day_are_not_met_by_the_thing_alone_but_several_rows_a_day_are(days, is_joined):
    """Ten readings a day of each station are events, and one reading a day is a series."""
    places = [f"s{i}" for i in range(20)]
    readings = pd.DataFrame({"station": places * days, "height": [i * 1.5 for i in range(20 * days)]})
    dates = pd.to_datetime("2026-03-01") + pd.to_timedelta([i // 20 for i in range(20 * days)], unit="D")
    readings = readings.assign(changed=dates)
    events = pd.concat([readings] * 10, ignore_index=True) if is_joined else readings
    sites = pd.DataFrame({"station_name": places * 2, "model": ["A", "B"] * 20})
    frames, question = {"events": events, "sites": sites}, "How many different heights of events by model of sites?"
    if is_joined:
        assert {*joined(frames, question)["model"]} == {"A", "B"}
    else:
        with pytest.raises(tf.errors.NotConnected):
            joined(frames, question)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (("kind", ["a", "b"]), ("kind", ["a", "b"])),  # too few values
        (("lake", [f"l{i}" for i in range(30)]), ("port", [f"l{i}" for i in range(9, 39)])),  # other names
        (("level", [f"l{i}" for i in range(30)]), ("port", [f"l{i}" for i in range(30)])),  # a measure
        (("register", [*range(4, 300, 9)]), ("port", [*range(4, 300, 9)])),  # numbers of other names
        (("station", [f"s{i}" for i in range(30)]), ("station", [f"x{i}" for i in range(30)])),  # no value in common
    ],
)
def test_columns_that_repeat_in_both_tables_are_no_key_if_little_speaks_for_them(mine, theirs):
    frames = {
        name: pd.DataFrame({column: values * 3, f"{name}_x": [start + i * 1.5 for i in range(3 * len(values))]})
        for start, (name, (column, values)) in enumerate((("one", mine), ("two", theirs)))
    }
    with pytest.raises(tf.errors.NotConnected):
        joined(frames, "How many different one and two?")


REGISTER = [*range(436, 9000, 97)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (("lake", [f"l{i}" for i in range(30)]), ("port", [f"l{i}" for i in range(30)])),  # all values
        (("uri", [f"t/{i}" for i in range(30)]), ("uri", [f"t/{i}" for i in range(20, 50)])),  # codes of one name
        (("REGISTRO_SALA", REGISTER), ("REGISTRO_ANCINE", REGISTER[2:])),  # numbers with gaps
    ],
)
def test_columns_that_repeat_in_both_tables_are_doubted_keys_of_different_things(mine, theirs):
    """They tell which things two tables share: the question counts different ones, and what is joined is said."""
    frames = {
        name: pd.DataFrame({column: values * 3, f"{name}_x": [start + at * 1.5 for at in range(3 * len(values))]})
        for start, (name, (column, values)) in enumerate((("one", mine), ("two", theirs)))
    }
    corpus = tf.open_corpus(frames)
    found = corpus.retrieve_tables("How many different one and two?", k=1).add(*frames).only(*frames)
    assert [{step.base_columns, step.columns} for step in found.join_plan.steps] == [{(mine[0],), (theirs[0],)}]
    with pytest.warns(tf.errors.DoubtfulJoinWarning, match="low-confidence key"):
        frame = found.merge()
    (shared,) = {mine[0], theirs[0]} & {*frame.columns}
    assert {*frame[shared]} == {*mine[1]} & {*theirs[1]}


@pytest.mark.parametrize("code", ["CNPJ_EXIBIDOR", "cnpj exibidor"])
def test_a_code_with_the_word_that_the_unique_one_is_called_is_its_key_before_small_numbers(code):
    """Seats are among the numbers of a register, and that means nothing; a third of the codes are in it."""
    agents = pd.DataFrame({"REGISTRO": range(1, 3000, 2), "CNPJ": [f"{i:04}/01" for i in range(1500)]})
    rooms = pd.DataFrame({"seats": [i % 20 * 2 + 1 for i in range(90)], code: [f"{i * 50:04}/01" for i in range(90)]})
    found = tf.open_corpus({"agents": agents, "rooms": rooms}).retrieve_tables("rooms of agents", k=1)
    plan = found.add("agents", "rooms").only("agents", "rooms").join_plan
    assert [(step.columns, step.score) for step in plan.steps] == [(("CNPJ",), 0.3)]


@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
def test_an_id_of_a_thing_that_no_table_is_called_after_joins_the_id_that_has_all_of_its_values():
    matches = {
        "ID": range(1, 301),
        "arena": [f"A{at % 9}" for at in range(300)],
        "points": [at % 40 for at in range(300)],
    }
    goals = {
        "partida_id": [1 + at * 7 % 280 for at in range(900)],
        "minuto": [str(1 + at % 90) if at % 11 else "90+2" for at in range(900)],
    }
    frame = joined({"cup-full": pd.DataFrame(matches), "cup-gols": pd.DataFrame(goals)}, "gols in the arena A3")
    assert (frame["arena"] == "A3").sum() == sum((number - 1) % 9 == 3 for number in goals["partida_id"])


@pytest.mark.parametrize(("first", "step", "joined"), [(90_001, 13, True), (1, 1, False)], ids=["codes", "small"])
def test_codes_that_are_all_found_among_many_more_are_a_key(first, step, joined):
    accounts = [first + step * n for n in range(400)]
    paid = pd.DataFrame({"account": accounts * 2, "year": [2020] * 400 + [2021] * 400, "paid": range(800)})
    plants = pd.DataFrame({"plant": [f"plant {n}" for n in range(30)], "REF": accounts[:30]})
    found = tf.open_corpus({"paid": paid, "plants": plants}).retrieve_tables("paid by plants", k=2)
    assert bool(found.add("paid", "plants").only("paid", "plants").plans) == joined


@pytest.mark.filterwarnings("ignore")
def test_names_of_areas_are_no_measures():
    names = [f"{chr(65 + i)}ley {'North' if i % 2 else 'South'}" for i in range(20)]
    wards = pd.DataFrame({"area_name": names, "price": [100 * i for i in range(20)]})
    districts = pd.DataFrame({"Ward": [names[i % 18] for i in range(60)], "electors": [900 + i for i in range(60)]})
    corpus = tf.open_corpus({"wards": wards, "districts": districts})
    (step,) = plan_tables(corpus, ["frames.wards", "frames.districts"], keys=[]).steps
    assert (step.key.left_columns, step.key.right_columns) == (("Ward",), ("area_name",))


@pytest.mark.filterwarnings("ignore")
def test_an_id_is_a_key_before_another_code_of_which_more_is_found():
    sites = [1_000_000 + 1_717 * i for i in range(60)]
    pages = [f"https://site{i}.org" for i in range(60)]
    halls = pd.DataFrame({"site_id": sites[:40], "website": pages[:40], "courts": [i % 4 for i in range(40)]})
    fields = pd.DataFrame({"site_id": [*sites[20:], *sites[20:30]], "website": [pages[i % 35] for i in range(50)]})
    corpus = tf.open_corpus({"halls": halls, "fields": fields})
    (step,) = plan_tables(corpus, ["frames.halls", "frames.fields"], keys=[]).steps
    assert step.key.left_columns == ("site_id",)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("thing", "table"), [("ward", "wards"), ("wahlbezirk", "wahlbezirke")])
def test_a_number_called_after_a_chosen_table_refers_to_it_though_a_table_that_nobody_chose_has_the_name(thing, table):
    number, states = f"{thing}_Nr", list("ABCDEFGH")
    names = [f"Town {chr(65 + i % 26)}{i}" for i in range(40)]
    frames = {table: pd.DataFrame({"id": range(1, 41), "name": names, "state_id": [1 + i % 8 for i in range(40)]})}
    frames["state"] = pd.DataFrame({"id": range(1, 9), "name": states})
    for year in (2017, 2021):
        rows, of_row = range(160), [1 + i // 4 for i in range(160)]
        density, rate = [i * (year % 31) % 97 for i in range(40)], [i * (year % 7) % 13 / 2 for i in range(40)]
        frames[f"{year}_population_{thing}{year}"] = pd.DataFrame({number: range(1, 41), "density": density})
        frames[f"{year}_jobs"] = pd.DataFrame({number: range(1, 41), "rate": rate})
        votes = {"party": [f"p{i % 4}" for i in rows], f"{thing}_id": of_row, "n": [i * year % 977 for i in rows]}
        frames[f"{year}_votes"] = pd.DataFrame(votes)
    who = {"who": [f"c{i}" for i in range(160)], f"{thing}_id": [1 + i % 40 for i in range(160)]}
    frames["2017_candidates"] = pd.DataFrame({**who, "state": [states[i % 40 % 8] for i in range(160)]})
    chosen = ["2021_jobs", table, "state"]
    found = tf.open_corpus(frames).retrieve_tables("jobs rate in state A", k=1).add(*chosen).only(*chosen)
    assert len(found.join_plan.tables) == 3
    assert len(found.merge()) == 40
