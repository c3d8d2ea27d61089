"""Whose rows a merge of found tables is for, and how the set of tables is changed by hand."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import FanOut, InvalidArgument, NotConnected, TableLeftOutWarning, TableNotFound
from tagframe.keys.inference import ACCEPTED
from tagframe.retrieval import RetrievedTables, TableHit

FRAMES = {
    "m.album": pd.DataFrame({"album_id": [1, 2, 3], "title": ["I", "II", "III"]}),
    "m.track": pd.DataFrame({"track_id": range(10, 18), "album_id": [1, 1, 1, 2, 2, 3, 3, 3], "length": range(8)}),
    "m.playlist": pd.DataFrame({"playlist_id": [100, 101, 102], "called": ["x", "y", "z"]}),
    "m.playlist_track": pd.DataFrame(
        {"playlist_id": [100] * 8 + [101] * 8 + [102] * 4, "track_id": [*range(10, 18), *range(10, 18), *range(10, 14)]}
    ),
    "m.medium": pd.DataFrame({"track_id": range(10, 18), "medium": list("abababab")}),
}


def found(**chances: float | None) -> RetrievedTables:
    """These tables, each with the chance that it is needed."""
    hits = tuple(TableHit(f"m.{name}", chance or 0.0, (), chance) for name, chance in chances.items())
    return RetrievedTables("albums and their track lengths", hits, tf.open_corpus(FRAMES))


def test_a_doubtful_table_that_only_repeats_rows_is_left_out_and_that_is_said():
    tables = found(album=0.9, track=0.9, playlist_track=0.1)
    assert tables.join_plan.left_out == ("m.playlist_track",)
    with pytest.warns(TableLeftOutWarning, match=r"m\.playlist_track is left out.*found\.add\('m\.playlist_track'\)"):
        frame = tables.merge()
    assert len(frame) == 8
    report = frame.tag.merge_report
    assert report.start == "m.track"
    assert repr(report).startswith("m.playlist_track is left out")
    assert "playlist_track is left out" in report._repr_html_()
    assert "left out m.playlist_track" in repr(tables)
    assert "left out m.playlist_track" in tables._repr_html_()


def test_what_is_only_reached_through_rows_that_repeat_goes_too():
    plan = found(album=0.9, track=0.9, playlist=0.2).join_plan
    assert (plan.start, set(plan.tables)) == ("m.track", {"m.track", "m.album"})
    plan = found(album=0.9, track=0.9, playlist=0.2, playlist_track=0.3).join_plan
    assert plan.left_out == ("m.playlist", "m.playlist_track")


def test_a_doubtful_table_that_connects_needed_ones_stays_and_has_the_grain():
    plan = found(track=0.9, playlist=0.9, playlist_track=0.2).join_plan
    assert (plan.start, plan.left_out) == ("m.playlist_track", ())


def test_a_doubtful_table_of_the_same_grain_stays_and_starts_nothing():
    plan = found(medium=0.2, track=0.6).join_plan
    assert (plan.start, plan.tables) == ("m.track", ("m.track", "m.medium"))
    plan = found(track=0.2, album=0.6).join_plan
    assert (plan.start, plan.left_out) == ("m.album", ("m.track",))


def test_a_doubtful_copy_with_fewer_rows_connects_nothing_and_loses_none():
    orders = pd.DataFrame({"order_no": range(300), "customer_id": [n % 40 for n in range(300)], "sum": range(300)})
    customers = pd.DataFrame({"customer_id": range(40), "name": [f"n{n}" for n in range(40)]})
    frames = {"m.orders": orders, "m.orders_bak": orders.head(200), "m.customers": customers}
    hits = [TableHit(f"m.{name}", chance, (), chance) for name, chance in (("orders", 0.6), ("orders_bak", 0.3))]
    hits += [TableHit("m.customers", 0.9, (), 0.9)]
    tables = RetrievedTables("sums of customers", tuple(hits), tf.open_corpus(frames))
    assert (tables.join_plan.start, tables.join_plan.left_out) == ("m.orders", ("m.orders_bak",))
    with pytest.warns(TableLeftOutWarning, match="would only repeat or lose rows"):
        assert len(tables.merge()) == 300


@pytest.mark.parametrize("chance", [None, 0.1])
def test_where_all_are_alike_none_is_left_out(chance: float | None):
    plan = found(album=chance, track=chance, playlist_track=chance).join_plan
    assert (plan.start, plan.left_out) == ("m.playlist_track", ())


def test_a_key_given_by_hand_keeps_its_tables():
    frame = found(album=0.9, track=0.9, playlist_track=0.1).merge(on="playlist_track.track_id = track.track_id")
    assert len(frame) == 20


def test_the_set_is_changed_by_hand_and_the_old_one_is_as_it_was():
    tables = found(album=0.9, track=0.9, playlist_track=0.1)
    assert tables.without("PLAYLIST_TRACK").ids == ["m.album", "m.track"]
    assert tables.only("m.track", "album").ids == ["m.album", "m.track"]
    more = tables.add("playlist", "m.playlist_track")
    assert more.ids == ["m.album", "m.track", "m.playlist_track", "m.playlist"]
    assert not any(hit.doubtful for hit in more if hit.id != "m.album")
    assert len(more.merge()) == 20
    assert (more.confidence, more.note) == (None, "you chose the tables")
    assert tables.ids == ["m.album", "m.track", "m.playlist_track"]
    assert tables["playlist_track"].doubtful


WIDE = {
    "m.team": pd.DataFrame({"team_id": range(40), "region": ["north", "south"] * 20}),
    "m.goal": pd.DataFrame({"goal_no": range(500, 700), "team_id": [n % 40 for n in range(200)], "minute": range(200)}),
    "m.card": pd.DataFrame({"card_no": range(900, 960), "team_id": [n % 30 for n in range(60)], "colour": ["r"] * 60}),
    "m.weather": pd.DataFrame({"station": ["x", "y"], "degrees": [1.5, 2.5]}),
}


def too_wide(**chances: float) -> RetrievedTables:
    hits = tuple(TableHit(f"m.{name}", chance, (), chance) for name, chance in chances.items())
    return RetrievedTables("goals of each team", hits, tf.open_corpus(WIDE))


@pytest.mark.parametrize(
    ("chances", "left"),
    [
        ({"team": 0.99, "goal": 0.7, "card": 0.5}, "m.card"),  # both repeat rows of the other: the likelier one stays
        ({"team": 0.99, "goal": 0.6, "card": 0.8}, "m.card"),  # the question names goals
        ({"team": 0.99, "goal": 0.7, "weather": 0.6}, "m.weather"),  # no key connects it
        ({"team": 0.99, "card": 0.55, "weather": 0.7}, "m.weather"),  # nor does one connect it here
    ],
)
def test_a_set_that_is_too_wide_is_merged_without_the_table_that_it_may_not_need(chances, left):
    tables = too_wide(**chances)
    with pytest.warns(TableLeftOutWarning, match=rf"{left} is left out: may not be needed.*found\.add\('{left}'\)"):
        frame = tables.merge()
    rest = {f"m.{name}" for name in chances} - {left}
    assert (set(tables.join_plan.tables), tables.join_plan.left_out) == (rest, (left,))
    assert len(frame) == max(len(WIDE[table]) for table in rest)


GRID = {
    "m.bus": pd.DataFrame({"bus_id": range(101, 141), "area": [n % 3 for n in range(40)]}),
    "m.gen": pd.DataFrame(
        {"gen_uid": [f"unit {n} of {101 + n % 40}" for n in range(90)], "bus_id": [101 + n % 40 for n in range(90)]}
    ),
    "m.pointers": pd.DataFrame(
        {
            "object": [f"unit {n} of {101 + n % 40}" if n < 90 else f"Flex {n}" for n in range(120)] * 2,
            "file": [f"f{n}.csv" for n in range(240)],
        }
    ),
}


@pytest.mark.parametrize(("chance", "start"), [(0.5, "m.gen"), (0.7, "m.pointers")])
def test_a_table_that_only_a_rule_needs_sets_no_grain_by_a_low_confidence_key(chance, start):
    hits = tuple(
        TableHit(f"m.{name}", 0.0, (), one) for name, one in (("gen", 0.99), ("bus", 0.9), ("pointers", chance))
    )
    tables = RetrievedTables("generators in area 2", hits, tf.open_corpus(GRID))
    (key,) = [step.score for step in tables.add("pointers").join_plan.steps if "pointers" in step.key.left_table]
    assert key < ACCEPTED
    assert tables.join_plan.start == start


LINES = {
    "m.branch": pd.DataFrame({"branch_id": range(120), "from_bus": [101 + n % 40 for n in range(120)], "km": 5}),
    "m.bus": pd.DataFrame({"bus_id": range(101, 141), "kv": [230 if n % 2 else 138 for n in range(40)]}),
    "m.dc_branch": pd.DataFrame({"dc_id": [1, 2], "from_bus": [113, 120], "margin": [0.1, 0.2]}),
}


@pytest.mark.parametrize(
    ("what", "chance", "rows"), [("branches", 0.5, 120), ("branches", 0.7, 6), ("dc branches", 0.5, 6)]
)
@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning", "ignore::tagframe.errors.TableLeftOutWarning")
def test_a_table_that_only_a_rule_needs_does_not_lose_most_rows_of_the_others(what, chance, rows):
    hits = tuple(
        TableHit(f"m.{name}", 0.0, (), one) for name, one in (("branch", 0.99), ("bus", 0.9), ("dc_branch", chance))
    )
    assert len(RetrievedTables(f"km of {what} at 230 kV", hits, tf.open_corpus(LINES)).merge()) == rows


EPISODES = [(series, episode) for series in range(1, 9) for episode in range(1, 11)]
SHOW = {
    "m.series": pd.DataFrame({"series": range(1, 9), "channel": ["One", "Two"] * 4}),
    "m.results": pd.DataFrame(
        [(*one, f"B{one[0]}_{n}", "OUT" if n == one[1] else "IN") for one in EPISODES for n in range(12)],
        columns=["series", "episode", "baker", "result"],
    ),
    "m.ratings": pd.DataFrame([(*one, 5.5) for one in EPISODES], columns=["series", "episode", "viewers"]),
    "m.bakers": pd.DataFrame(
        [(series, f"Baker {n} of {series}") for series in range(1, 9) for n in range(12)],
        columns=["series", "whole_name"],
    ),
}


@pytest.mark.parametrize("chance", [0.5, 0.7])
@pytest.mark.filterwarnings("ignore::tagframe.errors.TableLeftOutWarning")
def test_a_table_that_repeats_rows_on_both_sides_goes_before_doubtful_ones_that_do_not(chance):
    hits = tuple(
        TableHit(f"m.{name}", 0.0, (), one)
        for name, one in (("results", 0.95), ("series", 0.95), ("bakers", chance), ("ratings", 0.2))
    )
    frame = RetrievedTables("bakers who went OUT", hits, tf.open_corpus(SHOW)).merge()
    assert (len(frame), "viewers" in frame, "whole_name" in frame) == (960, True, False)


@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning")
def test_a_finer_table_that_only_a_rule_needs_may_have_few_of_the_things():
    stops = pd.DataFrame({"stop_id": range(1, 201), "name": [f"Stop {n}" for n in range(200)]})
    rides = pd.DataFrame({"stop_id": [1 + n % 9 for n in range(300)], "line_id": [1 + n % 5 for n in range(300)]})
    lines = pd.DataFrame({"line_id": range(1, 6), "colour": list("abcde")})
    corpus = tf.open_corpus({"m.stops": stops, "m.rides": rides.assign(boarded=2.5), "m.lines": lines})
    hits = tuple(TableHit(f"m.{name}", 0.0, (), one) for name, one in (("stops", 0.9), ("rides", 0.5), ("lines", 0.1)))
    assert len(RetrievedTables("people who boarded at Stop 3", hits, corpus).merge()) == 300


def test_a_table_that_connects_a_doubtful_one_alone_goes_as_one_that_connects_none():
    frames = {**GRID, "m.files": pd.DataFrame({"file": [f"f{n}.csv" for n in range(240)], "size": range(240)})}
    chances = {"gen": 0.99, "bus": 0.9, "pointers": 0.5, "files": 0.1}
    hits = tuple(TableHit(f"m.{name}", 0.0, (), chance) for name, chance in chances.items())
    assert RetrievedTables("generators in area 2", hits, tf.open_corpus(frames)).join_plan.start == "m.gen"


def test_a_table_with_a_cell_of_the_question_goes_after_one_that_is_only_named():
    hits = (
        TableHit("m.series", 0.0, (), 0.95),
        TableHit("m.results", 0.0, (), 0.8, cells=(("result", "OUT"),)),
        TableHit("m.bakers", 0.0, (), 0.7),
    )
    with pytest.warns(TableLeftOutWarning, match=r"m\.bakers is left out"):
        frame = RetrievedTables("bakers with OUT", hits, tf.open_corpus(SHOW)).merge()
    assert len(frame) == 960


def test_parts_that_are_all_doubtful_and_do_not_connect_are_refused():
    with pytest.raises(NotConnected):
        too_wide(team=0.4, weather=0.3).merge()


TYPED = {
    "m.posts": pd.DataFrame({"id": range(1, 41), "title": [f"On {n}" for n in range(40)]}),
    "m.photos": pd.DataFrame({"id": range(1, 61), "caption": [f"Of {n}" for n in range(60)]}),
    "m.replies": pd.DataFrame({"id": range(800, 880), "post_id": [n % 40 + 1 for n in range(80)]}),
    "m.comments": pd.DataFrame(
        {
            "commentable_type": ["Photo" if n % 3 else "Post" for n in range(200)],
            "commentable_id": [n * 7 % 60 + 1 if n % 3 else n * 11 % 40 + 1 for n in range(200)],
        }
    ),
}


@pytest.mark.parametrize(("chance", "goes_on"), [(0.5, True), (0.7, True), (0.95, False)])
def test_a_table_that_joins_under_a_condition_only_is_left_out_unless_it_is_surely_needed(chance, goes_on):
    chances = {"posts": 0.99, "replies": 0.95, "comments": chance}
    hits = tuple(TableHit(f"m.{name}", one, (), one) for name, one in chances.items())
    tables = RetrievedTables("replies to each post", hits, tf.open_corpus(TYPED))
    if goes_on:
        with pytest.warns(TableLeftOutWarning, match=r"m\.comments is left out"):
            assert len(tables.merge()) == len(TYPED["m.replies"])
    else:
        with pytest.raises(NotConnected, match="only where"):
            tables.merge()


@pytest.mark.parametrize(("other", "error"), [("card", FanOut), ("weather", NotConnected)])
def test_tables_that_are_surely_needed_or_chosen_are_not_left_out(other, error):
    for tables in (too_wide(team=0.99, goal=0.95, **{other: 0.95}), too_wide(team=0.99).add("goal", other)):
        with pytest.raises(error):
            tables.merge()


@pytest.mark.parametrize("wanted", [{"where": {"colour": "r"}}, {"columns": ["region", "card_no"]}])
def test_a_table_of_which_the_caller_names_a_column_is_not_left_out(wanted):
    with pytest.raises(FanOut):
        too_wide(team=0.99, goal=0.7, card=0.5).merge(**wanted)


def test_names_that_are_none_of_the_tables_are_told():
    tables = found(album=0.9, track=0.9)
    for change in (tables.without, tables.only):
        with pytest.raises(TableNotFound, match=r"did you mean 'm\.track'"):
            change("m.trak")
    with pytest.raises(TableNotFound, match="did you mean 'playlist'"):
        tables.add("playlists")
    with pytest.raises(InvalidArgument, match=r"no table would be left; the result has m\.album, m\.track"):
        tables.without("track", "album")


def test_a_piece_of_a_table_in_pieces_can_be_left_out():
    days = {f"w.event_{day}": pd.DataFrame({"id": [day], "n": [1]}) for day in (1, 2, 3)}
    hit = TableHit("w.event_1", 1.0, (), 0.9, tuple(days))
    tables = RetrievedTables("events", (hit,), tf.open_corpus(days))
    assert tables.without("event_1")[0].parts == ("w.event_2", "w.event_3")
    assert tables["event_2"] is hit
    (left,) = tables.without("event_1", "w.event_3")
    assert (left.id, left.parts) == ("w.event_2", ())
