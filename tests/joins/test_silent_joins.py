"""Merges that would be wrong without a word: each is right, or said, or refused."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import (
    AmbiguousJoin,
    AmbiguousJoinWarning,
    DoubtfulJoinWarning,
    FanOut,
    InvalidArgument,
    NotConnected,
)
from tagframe.joins.infer import keys_between
from tagframe.merging.table_rows import PlanRows

D = pd.DataFrame


def test_a_column_of_the_same_name_wins_against_the_surrogate_of_the_target_in_any_order_of_columns():
    sales = D({"sale": [1, 2, 3], "customer_id": [1, 2, 1]})
    dim = D({"customer_sk": [1, 2, 3], "customer_id": [2, 1, 3], "name": ["Bo", "Ann", "Cy"]})
    for columns in (dim.columns, dim.columns[::-1]):
        merged = tf.merge({"sales": sales, "dim_customer": dim[columns]})
        assert merged["name"].tolist() == ["Ann", "Bo", "Ann"]


def test_versions_of_a_row_are_refused_and_not_joined_by_their_surrogate():
    sales = D({"sale": range(6), "customer_id": [1, 2, 3, 1, 2, 3]})
    dim = D({"customer_sk": range(1, 7), "customer_id": [3, 3, 2, 2, 1, 1], "name": list("abcdef")})
    with pytest.raises(FanOut, match=r"customer_id = frames\.dim_customer\.customer_id"):
        tf.merge({"sales": sales, "dim_customer": dim})


@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
@pytest.mark.parametrize("key", ["product_id", "parent_product_id", "P_product_id", "product"])
@pytest.mark.parametrize("surrogate", ["products_sk", "id"])
def test_versions_are_known_by_the_key_that_repeats_however_it_is_called(key, surrogate):
    lines = D({"line": range(30), "product_id": [n % 10 + 1 for n in range(30)]})
    versions = {surrogate: range(1, 21), key: [*range(10, 0, -1)] * 2, "product_type_code": ["a", "b"] * 10}
    products = D({**versions, "valid_from": ["2023-01-01"] * 10 + ["2024-01-01"] * 10})
    with pytest.raises(FanOut, match=rf"product_id = frames\.products\.{key}"):
        tf.merge({"lines": lines, "products": products})


def test_a_surrogate_that_says_so_is_referenced_by_columns_that_say_so():
    lines = D({"line": range(30), "product_id": [n % 10 + 1 for n in range(30)]})
    products = D({"products_sk": range(1, 11), "title": [f"title {n}" for n in range(10)]})
    with pytest.warns(DoubtfulJoinWarning, match="products_sk"):
        tf.merge({"lines": lines, "products": products})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.merge({"lines": lines.rename(columns={"product_id": "product_sk"}), "products": products})


def test_a_saved_index_is_no_key_between_tables():
    for name in ("Unnamed: 0", "index", "row", "rownum", "row_id", "idx", "seq", "record_id", "obs"):
        plans = D({name: range(4), "email": ["a@x", "b@x", "c@x", "d@x"], "plan": list("pqrs")})
        visits = D({name: range(4), "email": ["d@x", "c@x", "b@x", "a@x"], "visits": [4, 3, 2, 1]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert tf.merge({"plans": plans, "visits": visits})["visits"].tolist() == [1, 2, 3, 4]


def test_what_refers_to_a_row_number_by_its_name_is_joined():
    rows = D({"row_id": range(10), "text": list("abcdefghij")})
    marks = D({"mark": list("xyzxyz"), "row_id": [1, 1, 4, 7, 7, 9]})
    assert tf.merge({"marks": marks, "rows": rows})["text"].tolist() == list("bbehhj")


def test_a_line_is_found_by_its_order_and_its_number():
    refunds = D({"order_id": [7, 7, 8], "line_no": [1, 2, 1], "refund": [5, 6, 7]})
    lines = D({"id": [1, 2, 3, 4], "order_id": [8, 7, 7, 9], "line_no": [1, 1, 2, 1], "sku": list("ABCD")})
    assert tf.merge({"refunds": refunds, "order_lines": lines})["sku"].tolist() == ["B", "C", "A"]


def test_two_columns_that_may_be_meant_are_a_tie_that_is_said():
    employees = D({"emp_id": [1, 2, 3, 4], "name": list("abcd"), "manager_id": [None, 1, 1, 2]})
    managers = D({"emp_id": [1, 2, 3, 4], "manager_name": list("abcd")})
    frames = {"employees": employees, "managers": managers}
    with pytest.warns(AmbiguousJoinWarning, match="manager_id"):
        tf.merge(frames, how="left")
    with pytest.raises(AmbiguousJoin):
        tf.merge(frames, how="left", on_ambiguous="raise")


def test_a_number_that_may_be_either_of_two_is_a_tie():
    games = D({"game": range(8), "host_city": [3, 1, 2, 3, 4, 4, 1, 2]})
    city = D({"id": [1, 2, 3, 4], "city_id": [4, 3, 2, 1], "name": list("abcd")})
    with pytest.warns(AmbiguousJoinWarning, match=r"city\.id"):
        tf.merge({"games": games, "city": city})


def test_texts_of_whole_numbers_match_however_they_are_written():
    orders = D({"order_id": range(99), "customer_id": [f"{n % 3}.0" for n in range(99)]})
    customers = D({"customer_id": list("012"), "name": list("xyz")})
    with pytest.warns(tf.errors.CoercedKeysWarning):
        merged = tf.merge({"orders": orders, "customers": customers}, how="left")
    assert merged["name"].tolist() == list("xyz") * 33


def test_a_left_chain_starts_from_the_anchors_own_column():
    orders = D({"order": [1, 2, 3], "customer_id": [1, 2, 99]})
    customers = D({"customer_id": [1, 2, 3], "name": list("abc")})
    scores = D({"customer_id": [1, 2, 99], "score": [10, 20, 990]})
    merged = tf.merge({"orders": orders, "customers": customers, "scores": scores}, how="left")
    assert merged["score"].tolist() == [10, 20, 990]


def test_a_dict_of_columns_is_refused_with_what_to_say():
    frames = {"a": D({"customer_id": [1, 2], "x": [1, 2]}), "b": D({"id": [2, 1], "customer_id": [1, 2], "y": [5, 6]})}
    with pytest.raises(InvalidArgument, match="on='customer_id = id'"):
        tf.merge(frames, on={"customer_id": "id"})  # type: ignore[arg-type]


def test_padded_decimals_match_and_versions_do_not_but_are_said():
    orders = D({"order_id": range(99), "rate_code": [["1.50", "2.25", "3.00"][n % 3] for n in range(99)]})
    rates = D({"rate_code": ["1.5", "2.25", "3"], "name": list("xyz")})
    with pytest.warns(tf.errors.CoercedKeysWarning, match=r"66 of 99 .* for example '1\.50' and '1\.5'"):
        merged = tf.merge({"orders": orders, "rates": rates}, how="left")
    assert merged["name"].tolist() == list("xyz") * 33
    uses = D({"use": range(99), "release_code": [["1.10", "1.2", "1.30"][n % 3] for n in range(99)]})
    releases = D({"release_code": ["1.1", "1.2", "1.3"], "name": list("xyz")})
    with pytest.warns(tf.errors.DoubtfulJoinWarning, match=r"66 rows find no partner .*'1\.10' and '1\.1'"):
        merged = tf.merge({"uses": uses, "releases": releases}, how="left")
    assert int(merged["name"].isna().sum()) == 66


GRID = D([(account, centre, period) for account in "ABC" for centre in (1, 2) for period in (1, 2, 3, 4)],
         columns=["account", "cost_center", "period"])  # fmt: skip


def test_a_cost_centre_is_no_measure_and_a_composite_is_named_where_rows_would_repeat():
    budget, actual = GRID.assign(budget=range(24)), GRID.sample(frac=1, random_state=1)
    frames = {"budget": budget, "actual": actual.assign(actual=actual.index)}
    merged = tf.merge(frames)
    assert (merged["budget"] == merged["actual"]).all()
    with pytest.raises(FanOut, match=r"join on cost_center and period too, so that no row is repeated: on="):
        tf.merge(frames, on="account")


def test_the_columns_that_a_refusal_tries_are_read_once(monkeypatch):
    reads, whole = [], PlanRows.whole
    monkeypatch.setattr(PlanRows, "whole", lambda self, *of: (reads.append(of), whole(self, *of))[1])
    frames = {"budget": GRID.assign(budget=range(24)), "actual": GRID.assign(actual=range(24))}
    with pytest.raises(FanOut, match="no row is repeated"):
        tf.merge(frames, on="budget.account = actual.account")
    assert sum(columns == ["account", "cost_center", "period"] for _, columns in reads) == 2


def test_nulls_on_both_sides_of_a_composite_are_no_rows_of_it():
    known = [(country, year) for country in "ABCDE" for year in (1, 2, 3, 4)]
    one = D([*known, (None, None)], columns=["country", "year"]).assign(x=range(21))
    two = D([*known, (None, None), (None, None)], columns=["country", "year"]).assign(y=range(22))
    merged = tf.merge({"one": one, "two": two}, how="left")
    assert len(merged) == 21
    assert merged["y"].tolist()[:20] == list(range(20))
    assert merged.tag.merge_report.steps[0].null_keys == 1


def test_days_in_two_formats_are_named_first_and_why_they_do_not_match():
    weather = D({"day": ["2024-01-01", "2024-01-02", "2024-01-03"], "temp": [3, 5, 7]})
    visits = D({"visit": range(6), "day": ["01/01/2024", "02/01/2024", "03/01/2024"] * 2})
    with pytest.raises(
        tf.errors.NotConnected, match=r"Nearest: visits\.day = weather\.day \(chance 0%, .*'01/01/2024' and"
    ):
        tf.merge({"visits": visits, "weather": weather})


def test_frames_without_names_are_told_that_names_help():
    animals, owners = (
        D({"animal": range(10), "owner": [1, 2, 3, 4, 5] * 2}),
        D({"id": range(1, 6), "name": list("abcde")}),
    )
    with pytest.warns(tf.errors.DoubtfulJoinWarning, match="by name"):
        assert tf.infer_keys(animals, owners) == []
    (key,) = tf.infer_keys(animals=animals, owners=owners)
    assert (key.left, key.right) == ("frames.animals.owner", "frames.owners.id")
    with pytest.raises(InvalidArgument, match="give a name to all frames or to none"):
        tf.infer_keys(animals, owners=owners)
    with pytest.raises(tf.errors.NotConnected, match="have none: give frames by name"):
        tf.merge(D({"a": list("xyz")}), D({"b": list("pqr")}))


def test_a_key_has_one_chance_in_the_plan_and_in_the_other_ways():
    tracks = range(60)
    frames = {
        "track": D({"track_id": tracks, "media_type_id": [n % 5 + 1 for n in tracks]}),
        "customer": D({"customer_id": range(1, 31), "support_rep_id": [n % 3 + 3 for n in range(30)]}),
        "invoice": D({"invoice_id": range(1, 46), "customer_id": [n % 30 + 1 for n in range(45)]}),
        "line": D({"line_id": tracks, "invoice_id": [n % 45 + 1 for n in tracks], "track_id": tracks}),
    }
    corpus = tf.open_corpus(frames)
    seen = {key: key.score for key in keys_between(corpus, [table.id for table in corpus]).keys}
    seen |= {key.reversed(): score for key, score in seen.items()}
    plan = tf.join_plan(frames)
    for other in (plan, *plan.alternatives):
        for step in other.steps:
            if step.key.evidence.origin == "inferred":
                assert step.score == seen[step.key]
            assert {*step.columns, *step.base_columns} != {"media_type_id", "support_rep_id"}


def test_an_example_shows_two_values_that_are_written_otherwise():
    one = D({"place": [19, 20], "code": ["007", "8"], "x": [0, 1]})
    other = D({"place": [19, 20], "code": [7, 8], "y": [0, 1]})
    with pytest.warns(tf.errors.CoercedKeysWarning, match=r"2 of 2 rows match .*, for example '007' and 7$"):
        tf.merge(one, other, on=["place", "code"])
    with pytest.warns(tf.errors.CoercedKeysWarning, match=r"1 of 1 row matches .*, for example '007' and 7$"):
        tf.merge(one.head(1), other.head(1), on=["place", "code"])


def test_values_that_are_hardly_met_by_accident_need_but_a_word_that_both_names_share():
    chips = D({"apt_book_id": [n * 37 + 1001 for n in range(40)], "state": ["a", "b"] * 20})
    bookings = D({"apt_booking_id": [n * 37 + 1001 for n in range(60)], "guests": [1, 2] * 30})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.merge({"units": chips, "bookings": bookings})
    renamed = {"units": chips.rename(columns={"apt_book_id": "slot_id"}), "bookings": bookings}
    with pytest.warns(DoubtfulJoinWarning):
        tf.merge(renamed)


def test_not_connected_says_that_copies_of_rows_repeat_the_referenced_column():
    kunden = D({"KdNr": [10, 20, 30, 10, 20, 30], "Ort": ["Bern", "Ulm", "Graz"] * 2})
    orders = D({"oid": range(4), "Menge": [10, 20, 10, 98]})
    with pytest.raises(NotConnected, match="6 rows have 3 values"):
        tf.join_plan({"Orders": orders, "Kunden": kunden})
    corpus = tf.open_corpus({"Orders": orders, "Kunden": kunden})
    corpus = corpus.hide("Kunden.KdNr")
    with pytest.raises(NotConnected) as error:
        corpus.tables.tag.retrieve_tables("orders and Ort of Kunden", k=2, method="lexical").join_plan  # noqa: B018
    assert "repeats" not in str(error.value)


def test_towns_belong_to_a_country_though_it_has_a_capital():
    towns = D({"town_id": range(1, 7), "town": list("abcdef"), "country_id": [1, 1, 2, 2, 3, 3]})
    countries = D({"country_id": [1, 2, 3], "country": list("XYZ"), "town_id": [2, 3, 6]})
    plan = tf.join_plan({"towns": towns, "countries": countries})
    assert str(plan.steps[0]) == "frames.towns.country_id = frames.countries.country_id"
    assert not plan.ambiguous
