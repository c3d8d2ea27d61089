"""Composite keys: which are found, at what cost, and what is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tagframe.corpus import open_corpus
from tagframe.joins.infer import keys_between
from tagframe.keys import infer_key_pairs
from tagframe.keys.inference import composites_of
from tagframe.keys.key_pair import KeyPair
from tagframe.merging import infer_keys

RANDOM = np.random.default_rng(3)
Frames = dict[str, pd.DataFrame]


def grid(**values) -> pd.DataFrame:
    """All combinations of values, a column each."""
    return pd.MultiIndex.from_product(values.values(), names=[*values]).to_frame(index=False)


def drawn(frame: pd.DataFrame, rows: int = 200) -> pd.DataFrame:
    """Rows of a frame, with repeats, and a number of their own."""
    chosen = frame.sample(rows, replace=True, random_state=1).reset_index(drop=True)
    return chosen.assign(reading=RANDOM.random(rows))


def composite(frames: Frames) -> set[tuple[str, str]]:
    """The composite keys, without the database."""
    found = [key for key in infer_keys(frames) if len(key.left_columns) > 1]
    return {(key.left.removeprefix("frames."), key.right.removeprefix("frames.")) for key in found}


AREAS = grid(area=["North", "South", "East", "West"], age_group=["0-17", "18-39", "40-64", "65+"])
BUDGETS = grid(year=range(2000, 2020), team=["Reds", "Blues", "Greens", "Golds"])
CROPS = grid(year=range(1990, 2010), country="DE FR IT ES".split())
STOPS = grid(line=["U1", "U2", "S3"], stop=["Mill", "Dock", "Oval", "Gate"])
SHIFTS = grid(plant=["Ulm", "Bonn", "Kiel"], shift=["early", "late", "night"])
RATES = grid(carrier="AX BY CZ".split(), start="P1 P2 P3".split(), end="Q1 Q2 Q3 Q4".split(), service="x y z".split())
WARDS = grid(**{"Council": ["Northam", "Southby", "Eastly", "Westow"], "Ward number": range(1, 8)})
EPISODES = grid(series_id=range(1, 9), season=range(1, 5), episode=range(1, 11))


@pytest.mark.parametrize(
    ("left", "right", "renamed", "expected"),
    [
        (drawn(AREAS), AREAS, {"area": "region", "age_group": "age"}, ("(area, age_group)", "(region, age)")),
        (drawn(CROPS), CROPS, {"year": "season", "country": "nation"}, ("(year, country)", "(season, nation)")),
        (drawn(CROPS), CROPS, {"country": "nation"}, ("(year, country)", "(year, nation)")),
        (drawn(STOPS), STOPS, {"line": "route", "stop": "halt"}, ("(line, stop)", "(route, halt)")),
        (drawn(SHIFTS), SHIFTS, {"plant": "site"}, ("(shift, plant)", "(shift, site)")),
        (
            drawn(RATES, 300),
            RATES,
            {"start": "from_port", "end": "to_port", "service": "svc"},
            ("(carrier, start, end, service)", "(carrier, from_port, to_port, svc)"),
        ),
        (drawn(EPISODES, 900), EPISODES, {}, ("(series_id, season, episode)",) * 2),
        (
            drawn(WARDS.rename(columns={"Council": "Seat", "Ward number": "No. ward"})),
            WARDS,
            {},
            ("(Seat, No. ward)", "(Council, Ward number)"),
        ),
    ],
)
def test_parts_may_have_other_names_if_they_hold_the_same_values(left, right, renamed, expected):
    facts = right.rename(columns=renamed).assign(size=range(100, 100 + len(right)))
    ((mine, theirs),) = composite({"readings": left, "facts": facts})
    assert (mine, theirs) == (f"readings.{expected[0]}", f"facts.{expected[1]}")


def test_columns_that_are_written_alike_are_one_although_a_name_of_a_table_is_read_in_one():
    plots = grid(PLT_CN=range(101, 151), CONDID=range(1, 4))
    trees = drawn(plots, 400).rename_axis("CN").reset_index()
    keys = [key for key in infer_keys({"AS_TREE": trees, "AS_COND": plots}) if len(key.left_columns) > 1]
    assert [(key.right_columns, key.score) for key in keys] == [(("PLT_CN", "CONDID"), 0.95)]


def test_a_year_alone_is_no_key_where_the_year_and_a_team_are():
    finals = pd.DataFrame({"year": range(2000, 2020), "team_winner": RANDOM.choice(BUDGETS["team"].unique(), 20)})
    (key,) = infer_keys({"finals": finals, "budgets": BUDGETS.assign(money=RANDOM.random(80))})
    assert (key.left_columns, key.right_columns) == (("year", "team_winner"), ("year", "team"))


@pytest.mark.parametrize(("repeated", "found"), [(1, True), (2, True), (20, False)])
def test_a_key_that_few_rows_repeat_is_one_and_says_so(repeated, found):
    days = grid(played=pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d"), ground=["Mill", "Dock", "Oval"])
    games = pd.concat([days, days.head(repeated)], ignore_index=True).assign(crowd=range(360 + repeated))
    keys = [key for key in infer_keys({"cards": drawn(days.tail(200)), "games": games}) if len(key.left_columns) > 1]
    assert bool(keys) == found
    assert all(f"{repeated} of {360 + repeated} rows repeat a key" in key.evidence.reason for key in keys)


@pytest.mark.parametrize("rank", ["position", "rank", "sort_order", "place", "board_index"])
def test_a_rank_is_no_part_of_a_key(rank):
    places = grid(season_id=[f"S-{year}" for year in range(20)], rank=range(1, 17)).rename(columns={"rank": rank})
    groups = places.assign(club_id=[f"T-{n}" for n in RANDOM.integers(99, size=len(places))])
    final = places[places[rank] <= 4].assign(prize=range(80)).reset_index(drop=True)
    assert composite({"groups": groups, "finals": final}) == set()


def test_named_parts_that_few_rows_of_one_table_have_are_a_key_if_all_of_the_other_are_found():
    groups = grid(season_id=[f"S-{year}" for year in range(20)], club_id=[f"T-{n}" for n in range(16)])
    final = groups.groupby("season_id").head(3).reset_index(drop=True).assign(prize=range(60))
    again = pd.concat([groups, groups.iloc[::5]], ignore_index=True).assign(points=1)
    assert composite({"groups": again, "finals": final}) == {
        ("groups.(season_id, club_id)", "finals.(season_id, club_id)")
    }


@pytest.mark.parametrize("kind", ["numbers", "words", "ids"])
def test_wide_twins_are_read_once_each(kind):
    def wide(rows: int) -> pd.DataFrame:
        draw = {"words": lambda: RANDOM.choice([*"abcdefgh"], rows)}.get(kind, lambda: RANDOM.integers(0, 30, rows))
        return pd.DataFrame({f"{kind}_{'id' if kind == 'ids' else ''}{n}": draw() for n in range(40)})

    corpus = open_corpus({"auctions": wide(300), "lots": wide(400), "bids": wide(350).assign(more=1)})
    reads: list[str] = []

    def read(table, columns):
        reads.append(table)
        return corpus.read(table, columns)

    infer_key_pairs(corpus.profiles, read=read)
    assert len(reads) == len(set(reads))


def test_tables_of_one_shape_are_not_compared():
    year = grid(shop_id=range(1, 30), product_id=range(1, 30))
    frames = {f"sales_{number}": year.assign(amount=RANDOM.random(len(year))) for number in (2023, 2024)}
    assert composite(frames) == set()


@pytest.mark.parametrize("shared", [("year", "status"), ("kind", "mode"), ("rank", "level")])
def test_what_two_tables_merely_have_both_is_no_key(shared):
    def table(rows: int) -> pd.DataFrame:
        return pd.DataFrame({name: RANDOM.integers(2000, 2020, rows) for name in shared})

    assert composite({"shops": table(300).assign(town="a"), "films": table(200).assign(title="b")}) == set()


def bare(**tables: str) -> dict[str, dict[str, str]]:
    """A schema of names alone: the columns of each table."""
    return {table: dict.fromkeys(columns.split(), "int") for table, columns in tables.items()}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (
            bare(
                purchase="purchase_id placed_on",
                purchase_line="purchase_id purchase_line_no amount",
                receipt="receipt_id purchase_id purchase_line_no",
            ),
            {"receipt.(purchase_id, purchase_line_no)→purchase_line"},
        ),
        (  # the last letters say the types
            bare(
                purchase="purchase_id_n placed_on_d",
                purchase_line="purchase_id_n purchase_line_no_i amount_n",
                receipt="receipt_id_n purchase_id_n purchase_line_no_i",
            ),
            {"receipt.(purchase_id_n, purchase_line_no_i)→purchase_line"},
        ),
        (
            bare(
                Voyage="voyageId ship",
                VoyageLeg="voyageId voyageLegSeqId fromPort",
                Cargo="cargoId voyageId voyageLegSeqId toVoyageId toVoyageLegSeqId",
            ),
            {"Cargo.(voyageId, voyageLegSeqId)→VoyageLeg", "Cargo.(toVoyageId, toVoyageLegSeqId)→VoyageLeg"},
        ),
        (
            bare(
                course="course_id title", session="course_id session_date room", seat="seat_id course_id session_date"
            ),
            {"seat.(course_id, session_date)→session"},
        ),
        (  # pairs of two things are no numbered rows
            bare(
                person="person_id name",
                role="role_id name",
                person_role="person_id role_id since",
                task="task_id person_id role_id",
            ),
            set(),
        ),
        (
            bare(film="film_id title", copy="film_id shelf_no", shelf="shelf_no hall", loan="loan_id film_id shelf_no"),
            set(),
        ),
    ],
)
def test_names_alone_show_what_is_numbered_within_another_thing(tables, expected):
    keys = [key for key in infer_key_pairs(open_corpus(schema=tables).profiles) if len(key.left_columns) > 1]
    assert {f"{key.left.partition('.')[2]}→{key.right_table.partition('.')[2]}" for key in keys} == expected


@pytest.mark.parametrize(("score", "expected"), [(0.6, 1), (0.9, 0)])
def test_a_number_within_another_thing_is_no_key_alone_unless_that_is_likelier(score, expected):
    lines = bare(
        purchase="purchase_id placed_on",
        purchase_line="purchase_id purchase_line_no amount",
        receipt="receipt_id purchase_id purchase_line_no",
    )
    sides = "schema.purchase_line", ("purchase_line_no",), "schema.purchase", ("purchase_id",)
    found = composites_of(open_corpus(schema=lines).profiles, [KeyPair(*sides, score)])
    assert [key.left_columns for key in found] == expected * [("purchase_id", "purchase_line_no")]


def two_of_each(thing: str, number: str, count: int) -> Frames:
    """The two lines of things, and some of them by both of their numbers."""
    lines = grid(**{thing: range(1, count + 1), number: [1, 2]})
    chosen = lines.sample(count // 10, random_state=1).reset_index(drop=True)
    return {"lines": lines.assign(size=7), "notes": chosen.assign(why="late")}


@pytest.mark.parametrize(("thing", "number"), [("order_id", "line_no"), ("voyage_id", "leg_no"), ("day_id", "slot")])
def test_a_key_is_found_where_a_sample_has_a_small_part_of_its_values(tmp_path, thing, number):
    frames = two_of_each(thing, number, 100_000)
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
    corpus = open_corpus(tmp_path, engine="duckdb")
    assert corpus.profile(f"{tmp_path.name}.lines").estimated
    (key,) = keys_between(corpus, corpus.ids).keys[:1]
    assert (key.left_columns, key.evidence.contained, key.evidence.uniqueness) == ((thing, number), 1.0, 1.0)


@pytest.mark.parametrize(("cells", "score"), [(2_400, 0.95), (2_399, 0.75)])
def test_names_show_the_key_of_tables_with_too_many_rows_to_read(monkeypatch, cells, score):
    monkeypatch.setattr("tagframe.keys.composite._MOST_CELLS", cells)
    frames = two_of_each("order_id", "line_no", 600)
    (key,) = infer_keys({"order_lines": frames["lines"], "returns": frames["notes"]})
    assert (key.left_columns, key.score) == (("order_id", "line_no"), score)
