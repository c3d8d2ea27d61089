"""What used to be silently wrong, or refused without a way out: each is right now, or said."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from accounted import merged

import tagframe as tf
from tagframe.errors import (
    AmbiguousJoin,
    AmbiguousJoinWarning,
    CoercedKeysWarning,
    DoubtfulJoinWarning,
    FanOut,
    InexactKeys,
    NotConnected,
    RowsLostWarning,
)
from tagframe.retrieval import RetrievedTables, TableHit

SNOWFLAKES = [10**18 + position for position in range(1, 6)]
"""Ids that float64 cannot tell apart."""


def test_ids_that_float64_rounds_are_refused():
    owners = pd.DataFrame({"owner_id": SNOWFLAKES, "name": list("bcdef")})
    payments = pd.DataFrame({"payment": range(5), "owner_id": [*SNOWFLAKES[:4], np.nan]})
    for frames in ([payments, owners], [owners, payments], [payments, payments.rename(columns={"payment": "other"})]):
        with pytest.raises(InexactKeys, match=r"owner_id are floats of 9,007,199,254,740,992 and more.*'Int64'"):
            tf.merge(frames, on="owner_id")
    exact = payments.assign(owner_id=pd.array([*SNOWFLAKES[:4], None], dtype="Int64"))
    frame = tf.merge(exact, owners, on="owner_id", how="left")
    assert frame["name"].tolist()[:4] == list("bcde")
    narrow = pd.DataFrame({"owner_id": np.array([2**24, 2**24 + 1], dtype=np.float32), "x": [1, 2]})
    with pytest.raises(InexactKeys, match="16,777,216"):
        tf.merge(narrow, narrow.rename(columns={"x": "y"}), on="owner_id")


def test_small_floats_meet_large_integers_exactly():
    left = pd.DataFrame({"k": [1.0, np.nan, 2.5, 7.0], "x": range(4)})
    right = pd.DataFrame({"k": [1, 7, *SNOWFLAKES], "y": range(7)})
    frame, report = merged([left, right], on="k", on_loss="allow")
    assert frame[["x", "y"]].to_numpy().tolist() == [[0, 0], [3, 1]]
    again, _ = merged([right, left], on="k", on_loss="allow")
    assert again[["x", "y"]].to_numpy().tolist() == [[0, 0], [3, 1]]
    assert report.steps[0].coerced == 0


@pytest.mark.parametrize(
    ("mine", "theirs", "matched"),
    [
        (["1.10", "1.2"], ["1.1", "1.2"], 1),
        (["250.00", "E11"], ["250.0", "E11"], 1),
        (["+7", "8"], ["7", "8"], 2),
        (["1e3", "x"], ["1000", "x"], 1),
        (["007", "8"], ["7", "x8"], 0),
        (["000007 ", "N/A"], ["7", "NULL"], 1),
        (["000007 ", "8a"], ["7", "NULL"], 1),  # codes filled up with zeros, which is warned of
        (["2020-1-2", "x"], ["2020-01-02", "x"], 2),
    ],
)
@pytest.mark.filterwarnings("ignore::tagframe.errors.CoercedKeysWarning")
def test_text_is_no_number_beside_text(mine, theirs, matched, tmp_path):
    left, right = pd.DataFrame({"k": mine, "x": [0, 1]}), pd.DataFrame({"k": theirs, "y": [0, 1]})
    _, report = merged([left, right], on="k", on_loss="allow")
    assert report.steps[0].matched == matched


def test_what_is_coerced_is_warned_of_with_an_example():
    left, right = pd.DataFrame({"k": ["007", "8"], "x": [0, 1]}), pd.DataFrame({"k": [7, 8], "y": [0, 1]})
    with pytest.warns(CoercedKeysWarning, match=r"2 of 2 rows match on .* for example '007' and 7") as said:
        frame, report = merged([left, right], on="k")
    assert said[0].filename == __file__.replace("test_said_not_silent", "accounted"), "it points at the caller's line"
    assert frame["y"].tolist() == [0, 1]
    assert "2 match only after coercion" in str(report.steps[0])
    padded = pd.DataFrame({"k": ["7", "08"], "y": [0, 1]})
    with pytest.warns(CoercedKeysWarning, match="for example '007' and '7'"):
        assert tf.merge(left, padded, on="k")["y"].tolist() == [0, 1]


def test_codes_that_differ_by_case_are_two():
    grades = pd.DataFrame({"grade_code": ["a", "A", "b", "B", "c"], "label": list("vwxyz")})
    exams = pd.DataFrame({"exam": range(40), "grade_code": list("aAbBc") * 8})
    frame, report = merged({"exams": exams, "grades": grades}, on="grade_code")
    assert frame["label"].tolist() == list("vwxyz") * 8
    assert report.steps[0].coerced == 0


YEAR = pd.DataFrame({"dept": ["it", "hr", "pr"], "amount": [10.5, 20.5, 30.5]})


def test_unrelated_frames_are_not_stacked():
    for names in (("budget_2024", "actual_2024"), ("orders_north", "returns_north")):
        frames = {names[0]: YEAR, names[1]: YEAR.assign(amount=[1.5, 2.5, 3.5])}
        with pytest.raises(NotConnected, match=r"stack them with tagframe\.stack") as refusal:
            tf.merge(frames)
        assert f'on="{names[0]}.dept = {names[1]}.dept"' in str(refusal.value).replace(
            f"{names[1]}.dept = {names[0]}.dept", f"{names[0]}.dept = {names[1]}.dept"
        )
        assert len(tf.merge(frames, on="dept")) == 3


def test_frames_of_two_years_are_stacked_and_the_report_begins_with_it():
    frames = {"budget_2023": YEAR, "budget_2024": YEAR}
    frame, report = merged(frames, stack=True)
    assert len(frame) == 6
    assert repr(report).startswith("frames.budget is the stack of frames.budget_2023 and frames.budget_2024.\nMerged")
    with pytest.raises(NotConnected):
        tf.merge(frames, stack=False)
    with pytest.raises(NotConnected):
        tf.join_plan(frames, stack=False)
    both, report = merged(frames, on="dept")
    assert (len(both), report.stacks) == (3, ())
    assert tf.stack(frames).shape == (6, 3)


def test_years_are_stacked_whatever_else_the_names_say():
    quarters = {f"{kind}_2024_q{number}": YEAR for kind in ("budget", "actual") for number in (1, 2)}
    plan = tf.join_plan({**quarters, "depts": DEPTS})
    assert set(plan.tables) == {"frames.budget_2024_q", "frames.actual_2024_q", "frames.depts"}


DEPTS = pd.DataFrame({"dept": ["it", "hr", "pr"], "head": ["Ann", "Bo", "Cy"]})


def test_a_frame_without_rows_joins_by_name():
    loans = pd.DataFrame({"loan_id": range(5), "client_id": [3, 1, 2, 2, 1]})
    clients = pd.DataFrame({"client_id": pd.Series([], dtype="int64"), "town": pd.Series([], dtype=object)})
    frame, report = merged({"loans": loans, "clients": clients}, how="left")
    assert frame["loan_id"].tolist() == list(range(5))
    assert frame["town"].isna().all()
    with pytest.warns(RowsLostWarning, match=r"5 of 5 rows of frames\.loans"):
        assert len(tf.merge({"loans": loans, "clients": clients})) == 0
    assert report.steps[0].unmatched_left == 5


def test_of_two_fans_either_start_repeats_rows():
    frames = {
        "orders": pd.DataFrame({"order_id": range(6), "customer_id": [1, 1, 2, 2, 3, 3]}),
        "customers": pd.DataFrame({"customer_id": [1, 2, 3], "name": list("abc")}),
        "visits": pd.DataFrame({"visit_id": range(100, 106), "customer_id": [1, 2, 2, 3, 3, 3]}),
    }
    on = ["orders.customer_id = customers.customer_id", "visits.customer_id = customers.customer_id"]
    with pytest.raises(FanOut) as refusal:
        tf.merge(frames, on=on)
    said = str(refusal.value)
    assert "merge(…, aggregate={'visits': {'visit_id': 'count'}})" in said
    assert "A start from frames.visits would repeat its rows too, because of frames.orders" in said
    with pytest.raises(FanOut, match=r"or start from frames\.orders, plan\.restarted"):
        tf.merge({"customers": frames["customers"], "orders": frames["orders"]})
    few = frames["visits"].groupby(["customer_id"], as_index=False).agg(visits=("visit_id", "count"))
    assert tf.merge({**frames, "visits": few}, on=on)["visits"].tolist() == [1, 1, 2, 2, 3, 3]


GAMES = {
    "game": pd.DataFrame(
        {"game_id": range(6), "first_team_id": [1, 2, 3, 1, 2, 3], "second_team_id": [2, 3, 1, 3, 1, 2]}
    ),
    "team": pd.DataFrame({"team_id": [1, 2, 3], "town": ["Brno", "Cheb", "Zlín"]}),
}


def test_a_tie_is_said_in_the_plan_the_report_and_a_warning_and_can_be_refused():
    plan = tf.join_plan(GAMES)
    assert plan.ambiguous
    assert "equally likely)" in repr(plan)
    with pytest.warns(AmbiguousJoinWarning, match=r"first_team_id.*; equally likely: game\.second_team_id = "):
        _, report = merged(GAMES)
    assert "equally likely: game.second_team_id = team.team_id (0." in repr(report)
    assert "equally likely" in report._repr_html_()
    with pytest.raises(AmbiguousJoin) as refusal:
        tf.merge(GAMES, on_ambiguous="raise")
    assert [str(way.steps[0].left) for way in refusal.value.plans] == [
        "frames.game.first_team_id",
        "frames.game.second_team_id",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.merge(GAMES, on_ambiguous="allow")
        chosen, report = merged(GAMES, on="second_team_id = team_id")
    assert chosen["town"].tolist() == ["Cheb", "Zlín", "Brno", "Zlín", "Brno", "Cheb"]
    assert report.ambiguous == ()


def test_only_the_start_is_missed_and_three_rows_show_it():
    loans = pd.DataFrame({"loan_id": range(9), "client_id": [1, 2, 3, 71, 72, 73, 74, 1, 2]})
    clients = pd.DataFrame({"client_id": [1, 2, 3, 4], "town": list("abcd")})
    frames = {"loans": loans, "clients": clients}
    with pytest.warns(RowsLostWarning) as said:
        tf.merge(frames, on="client_id")
    assert [str(one.message) for one in said] == [
        "4 of 9 rows of frames.loans have no partner and are not in the result, for example client_id 71; "
        "client_id 72; client_id 73. how='left' keeps them"
    ]
    corpus = tf.open_corpus(frames)
    found = corpus.tables.tag.retrieve_tables("Which loans have clients of a town?", k=2)
    for limit in (None, 3, 9):
        with pytest.warns(RowsLostWarning, match=r"4 of 9 rows of frames\.loans"):
            found.merge(on="loans.client_id = clients.client_id", limit=limit)
    anchored = corpus.read("loans").tag.retrieve_tables("Which clients of a town?", k=1, corpus=corpus)
    with pytest.warns(RowsLostWarning, match="4 of 9 rows"):
        anchored.merge(on="loans.client_id = clients.client_id")


@pytest.mark.parametrize("how", ["left", "outer"])
def test_a_key_that_no_row_matches_is_said(how: str):
    animals = pd.DataFrame({"animal": range(6), "owner": [91, 92, 93, 94, 95, 96]})
    owners = pd.DataFrame({"owner": [1, 2, 3], "postal_code": ["911", "922", "933"]})
    corpus = tf.open_corpus({"clinic.animals": animals, "clinic.owners": owners})
    found = corpus.tables.tag.retrieve_tables("Which animals have owners?", k=2)
    on = "animals.owner = owners.postal_code"
    with pytest.warns(DoubtfulJoinWarning, match=r"no row finds a partner on clinic\.animals\.owner = "):
        found.merge(on=on, how=how)
    with pytest.warns(RowsLostWarning, match=r"6 of 6 rows of clinic\.animals"):
        assert len(found.merge(on=on)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.merge(on=on, how=how, on_loss="allow")
        tf.merge({"animals": animals, "owners": owners.iloc[:0]}, on="owner", how=how)


def test_an_inferred_key_that_no_row_matches_is_said_where_rows_may_be_lost():
    tags = pd.DataFrame({"tag": range(4), "wiki_post_id": pd.Series([None] * 4, dtype=object)})
    posts = pd.DataFrame({"id": [11, 12, 13], "title": ["a", "b", "c"]})
    with pytest.warns(DoubtfulJoinWarning, match=r"no row finds a partner on frames\.tags\.wiki_post_id = "):
        tf.merge({"tags": tags, "posts": posts}, on_loss="allow")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.merge({"tags": tags, "posts": posts}, on="tags.wiki_post_id = posts.id", on_loss="allow")
        tf.merge({"tags": tags.iloc[:0], "posts": posts}, on_loss="allow")


def test_a_plan_remembers_whether_its_start_was_asked_for():
    plan = tf.join_plan(GAMES)
    assert plan.is_anchored
    assert plan.use("game.second_team_id = team.team_id").is_anchored


def test_each_way_out_of_a_refusal_works_where_tables_share_a_name():
    coaches = pd.DataFrame({"noc": ["CH", "CH", "AT"], "coach": ["a", "b", "c"]})
    countries = pd.DataFrame({"noc": ["CH", "AT", "IT"], "town": ["Bern", "Wien", "Rom"]})
    frames = {"countries.details": countries, "coaches.details": coaches}
    plan = tf.join_plan(frames, on="countries.details.noc = coaches.details.noc")
    with pytest.raises(FanOut) as refusal:
        tf.merge(frames, plan=plan, on_loss="allow")
    said = str(refusal.value)
    assert "plan.restarted('coaches.details')" in said
    assert len(tf.merge(frames, plan=plan.restarted("coaches.details"))) == 3
    for way in ({"coach": "count"}, "first"):
        assert f"aggregate={{'coaches.details': {way!r}}}" in said
        assert len(tf.merge(frames, plan=plan, aggregate={"coaches.details": way}, on_loss="allow")) == 2


def test_a_rate_that_repeats_is_advised_as_of_the_day_and_the_advice_works():
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(range(30), "D")
    rates = pd.DataFrame({"ccy": ["EUR", "GBP"] * 10, "set_on": days[::3].repeat(2), "rate": np.arange(20) / 60})
    bills = pd.DataFrame({"bill": range(40), "ccy": ["EUR", "GBP"] * 20, "day": days[np.arange(40) * 7 % 30]})
    frames = {"bills": bills, "rates": rates}
    with pytest.raises(NotConnected) as refusal:
        tf.merge(frames)
    on = str(refusal.value).rpartition('on="')[2].partition('"')[0]
    assert on == "bills.ccy = rates.ccy and bills.day >= rates.set_on"
    left, right = bills.sort_values("day", kind="stable"), rates.sort_values("set_on", kind="stable")
    expected = pd.merge_asof(left, right, left_on="day", right_on="set_on", by="ccy").sort_values("bill")
    assert tf.merge(frames, on=on)["rate"].tolist() == expected["rate"].tolist()


def test_a_denial_in_other_words_than_the_tables_is_said_with_ways_that_work():
    stations = pd.DataFrame({"uri": [f"u{i}" for i in range(40)]})
    facilities = pd.DataFrame({"uri": [f"u{i}" for i in range(25)], "wifi": "yes"})
    corpus = tf.open_corpus({"stations": stations, "facilities": facilities})
    found = corpus.retrieve_tables("Van hoeveel stations zijn er geen voorzieningen?", k=1).add(
        "stations", "facilities"
    )
    with pytest.warns(DoubtfulJoinWarning, match=r"denies something that no table is called\. merge\(how='inner'\)"):
        assert len(found.merge()) == 15
    assert len(found.merge(how="inner", on_loss="allow")) == 25


@pytest.mark.filterwarnings("ignore::tagframe.errors.RowsLostWarning")
def test_a_denial_in_other_words_among_three_tables_is_said_with_a_way_that_works():
    stations = pd.DataFrame({"station_id": range(40), "line_id": [i % 4 for i in range(40)]})
    facilities = pd.DataFrame({"station_id": range(25), "wifi": "yes"})
    lines = pd.DataFrame({"line_id": range(4), "colour": ["red", "blue", "green", "grey"]})
    corpus = tf.open_corpus({"stations": stations, "facilities": facilities, "lines": lines})
    found = corpus.retrieve_tables("Van hoeveel stations van lines zijn er geen voorzieningen?", k=1)
    found = found.add("stations", "facilities", "lines")
    way = r"merge\(plan\.lacking\('frames\.facilities'\)\)"
    with pytest.warns(DoubtfulJoinWarning, match=f"denies something that no table is called: .*{way}"):
        assert len(found.merge(on_loss="allow")) == 25
    assert len(found.merge(found.join_plan.lacking("frames.facilities"))) == 15


@pytest.mark.filterwarnings("ignore::tagframe.errors.TableLeftOutWarning")
def test_a_deed_that_no_table_is_called_is_said_to_be_denied():
    tracks = pd.DataFrame({"track_id": range(9), "name": [f"tune {i}" for i in range(9)]})
    lines = pd.DataFrame({"line_id": range(6), "track_id": [0, 1, 1, 2, 3, 3], "quantity": 1})
    corpus = tf.open_corpus({"track": tracks, "invoice_line": lines})
    hits = (TableHit("frames.track", 1.0, (), 0.9), TableHit("frames.invoice_line", 0.1, (), 0.1))
    found = RetrievedTables("How many tracks were never sold?", hits, corpus)
    with pytest.warns(DoubtfulJoinWarning, match=r"found\.only\('frames\.track', 'frames\.invoice_line'\), then"):
        assert len(found.merge()) == 9
    both = found.only("track", "invoice_line")
    assert both.merge(both.join_plan.lacking("invoice_line"))["track_id"].tolist() == [4, 5, 6, 7, 8]
