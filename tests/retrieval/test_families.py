"""Tables that are one table in many pieces."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import computed_of
from tagframe.corpus.profile import TableProfile
from tagframe.corpus.stored_profiles import ComputedStore
from tagframe.retrieval import families as module
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.families import families, mixed_copies

DAYS = ("20210101", "20210102", "20210103", "20210104")


@pytest.fixture
def web() -> tf.Corpus:
    """Four days of events, their users, and something else."""
    frames = {"web.users": pd.DataFrame({"user_id": [71, 72, 73], "country": ["PT", "CZ", "PT"]})}
    for number, day in enumerate(DAYS):
        events = {"event_id": [number * 2 + 500, number * 2 + 501], "user_id": [71, 72], "page": ["home", "buy"]}
        frames[f"web.events_{day}"] = pd.DataFrame(events)
    frames["shop.parts"] = pd.DataFrame({"part": ["bolt", "nut"], "price": [1.5, 0.5]})
    return tf.open_corpus(frames)


def names(*tables: str, columns: tuple[str, ...] = ("id", "x")) -> list[tuple[str, int]]:
    corpus = tf.open_corpus({f"d.{table}": pd.DataFrame({name: [1] for name in columns}) for table in tables})
    return [(family.name, len(family.parts)) for family in families(corpus.profiles, ComputedStore())]


def test_names_that_differ_in_numbers():
    assert names("events_1", "events_2", "events_3", "users") == [("events_*", 3), ("users", 0)]
    assert names("q_1990_q1", "q_1990_q2", "q_1991_q1", "q_1991_q2") == [("q_*_q*", 4)]
    assert names("gsod1929", "gsod1930", "gsod1931") == [("gsod*", 3)]
    assert names("a_1_v2", "a_2_v2", "a_3_v2") == [("a_*_v2", 3)]


def test_two_tables_or_names_without_numbers_are_no_family():
    assert names("sales_2023", "sales_2024") == [("sales_2023", 0), ("sales_2024", 0)]
    assert names("east_store", "west_store", "north_store") == [
        ("east_store", 0),
        ("north_store", 0),
        ("west_store", 0),
    ]


@pytest.mark.parametrize("source", ["SQLite", "CSV"])
def test_numbers_in_names_do_not_stack_tables_of_other_columns(tmp_path, source):
    frames = {
        "2014_players": pd.DataFrame({"id": [1, 2], "name": ["Ann", "Bo"], "club": [1, 1]}),
        "2014_clubs": pd.DataFrame({"id": [1], "name": ["Rovers"], "city": ["Bremen"]}),
        "2014_rounds": pd.DataFrame({"round": [1, 2], "played": ["2014-08-01", "2014-08-08"]}),
    }
    if source == "SQLite":
        with closing(sqlite3.connect(tmp_path / "league.sqlite")) as connection:
            for name, frame in frames.items():
                frame.to_sql(name, connection, index=False)
    else:
        for name, frame in frames.items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
    corpus = tf.open_corpus(tmp_path)
    assert [(one.name, one.parts) for one in families(corpus.profiles, ComputedStore())] == [
        (name, ()) for name in sorted(frames)
    ]
    assert not any(one.parts for one in corpus.retrieve_tables("players, clubs and rounds of 2014", k=3))


def test_a_family_is_one_candidate_and_is_stacked(web, words):
    found = retrieve_tables("events of users by country and page", web, k=3, embedder=words)
    assert sorted(found.ids) == ["shop.parts", "web.events_20210101", "web.users"]
    hit = found["web.events_20210101"]
    assert hit.parts == tuple(f"web.events_{day}" for day in DAYS)
    assert hit.label == "web.events_* (4 tables)"
    assert "web.events_* (4 tables)" in repr(found)
    assert found["web.users"].label == "web.users"
    both = retrieve_tables("events of users by country and page", web, k=2, embedder=words)
    frame = both.merge(on_loss="allow", on_fanout="allow")
    assert sorted(frame["event_id"]) == list(range(500, 508))
    assert both.to_dict()["tables"][both.ids.index("web.events_20210101")]["parts"] == list(hit.parts)


CLINIC = {
    **{f"clinic.visits_{year}": pd.DataFrame({"visit_id": range(4), "animal_id": [1, 2, 3, 1], "drug": list("abcd")})
       for year in (2023, 2024)},
    "clinic.animals": pd.DataFrame({"animal_id": [1, 2, 3], "species": ["cat", "dog", "cat"]}),
}  # fmt: skip


@pytest.mark.parametrize("where", ["frames", "CSV"])
def test_a_twin_is_found_and_stacked_with_the_other(words, tmp_path, where):
    if where == "CSV":
        (tmp_path / "clinic").mkdir()
        for name, frame in CLINIC.items():
            frame.to_csv(tmp_path / "clinic" / f"{name.removeprefix('clinic.')}.csv", index=False)
    corpus = tf.open_corpus(CLINIC if where == "frames" else tmp_path / "clinic")
    found = retrieve_tables("Which drug of visits for which animals?", corpus, k=2, embedder=words)
    (hit,) = (hit for hit in found if hit.parts)
    assert hit.parts == ("clinic.visits_2023", "clinic.visits_2024")
    other = next(part for part in hit.parts if part != hit.id)
    assert hit.reasons[-1] == f"stacked with {other} (same columns)"
    assert hit.label == "clinic.visits_* (2 tables)"
    frame = found.merge()
    assert len(frame) == 8
    assert frame.tag.merge_report.stacks == (("clinic.visits", hit.parts),)
    assert found["visits_2023"] is found["visits_2024"] is hit
    assert len(found.without(other).merge()) == 4


def test_a_twin_that_is_named_or_found_or_the_anchor_is_not_stacked(words):
    corpus = tf.open_corpus(CLINIC)
    named = retrieve_tables("Which drug of visits in 2024 for which animals?", corpus, k=2, embedder=words)
    assert not any(hit.parts for hit in named)
    both = retrieve_tables("Which drug of visits for which animals?", corpus, k=3, embedder=words)
    assert not any(hit.parts for hit in both)
    assert len(both.merge()) == 8
    beside = retrieve_tables("Which drug and animals?", corpus, k=1, anchor="clinic.visits_2024", embedder=words)
    assert len(beside.merge()) == 4


def test_a_piece_that_is_the_anchor_stands_for_itself(web, words):
    found = retrieve_tables("events of users by country", web, k=3, anchor="web.events_20210102", embedder=words)
    assert found.anchor == "web.events_20210102"
    others = found["web.events_20210101"].parts
    assert others == tuple(f"web.events_{day}" for day in DAYS if day != "20210102")


def test_families_are_kept_until_a_piece_changes(tmp_path, monkeypatch):
    searched = []
    real = module.infer_unions

    def noted(tables, **options):
        searched.append(len(tables))
        return real(tables, **options)

    monkeypatch.setattr(module, "infer_unions", noted)
    with closing(sqlite3.connect(tmp_path / "web.sqlite")) as file, file:
        for day in DAYS:
            file.execute(f"CREATE TABLE events_{day} (id INT, page TEXT)")

    def found() -> list[int]:
        corpus = tf.open_corpus(tmp_path, catalogue=tmp_path / "c.catalogue")
        return [len(family.parts) for family in families(corpus.profiles, computed_of(corpus))]

    assert found() == found() == [4]
    assert searched == [4]
    with closing(sqlite3.connect(tmp_path / "web.sqlite")) as file, file:
        file.execute("ALTER TABLE events_20210104 ADD COLUMN more INT")
    assert found() == [3, 0]
    assert searched == [4, 3]


def mixing(**kinds: str) -> str:
    """The mixed pairs of tables, each given with the columns that it has, by position."""
    tables = [TableProfile(f"d.{name}", "d", name, ()) for name in kinds]
    alike = np.array([[one == other for other in kinds.values()] for one in kinds.values()]) - np.eye(len(kinds))
    found = mixed_copies(tables, alike)
    assert (found == found.T).all()
    return " ".join(f"{one}{other}" for one, other in np.argwhere(np.triu(found)))


def test_families_of_near_copies_differ_by_a_prefix_or_a_suffix():
    assert mixing(FAC_ROOM="r", FAC_SITE="s", FCLT_ROOM="r", FCLT_SITE="s") == "02 03 12 13"
    assert mixing(room="r", room_hist="r", site="s", site_hist="s", bill="b") == "01 03 12 23"
    assert mixing(room="r", room_hist="r", room_all="r", site="s", site_hist="s", site_all="s").count(" ") == 11


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param({"room": "r", "room_hist": "r", "site": "s", "site_all": "s"}, id="a suffix of one table each"),
        pytest.param({"room": "r", "room_hist": "h", "site": "s", "site_hist": "i"}, id="other columns"),
        pytest.param({"answers": "p", "questions": "p", "users": "u"}, id="other names"),
        pytest.param({"fees_2023": "f", "fees_2024": "f", "bill_2023": "b", "bill_2024": "b"}, id="numbers"),
        pytest.param({"mail_sent": "m", "mail_read": "m", "push_sent": "m", "push_read": "m"}, id="all are alike"),
        pytest.param({"a_x_view": "x", "a_y_view": "x", "b_x_view": "b", "b_y_view": "b"}, id="in the middle"),
    ],
)
def test_other_tables_are_no_families_of_near_copies(tables):
    assert mixing(**tables) == ""


def test_sheets_of_one_name_are_alternatives_only_with_the_same_columns(tmp_path):
    athletes = pd.DataFrame(
        {"Name": ["Ann", "Bo", "Cy"], "Country": ["Kenya", "Peru", "Peru"], "Sport": ["a", "b", "a"]}
    )
    sports = pd.DataFrame({"Sport": ["a", "b"], "Women": [5, 7], "Men": [6, 8], "Total": [11, 15]})
    for name, frame in (("Athletes", athletes), ("Entries", sports)):
        frame.to_excel(tmp_path / f"{name}.xlsx", sheet_name="Details", index=False)
    found = tf.open_corpus(tmp_path).retrieve_tables(
        "How many athletes from Kenya are in a sport with 11 women in total?"
    )
    assert {*found.ids} == {"Athletes.Details", "Entries.Details"}


PEOPLE = pd.DataFrame({"Name": ["Ann", "Bo", "Cy"], "Country": ["Kenya", "Peru", "Peru"], "Sport": ["a", "b", "a"]})


@pytest.mark.parametrize("file", ["Details.csv", "{}.xlsx"])
def test_a_name_of_different_tables_makes_none_a_piece(tmp_path, file):
    medals = pd.DataFrame({"Country": ["Kenya", "Peru"], "Gold": [3, 1]})
    kinds = {"Athletes": PEOPLE.assign(Age=[20, 30, 40]), "Coaches": PEOPLE, "Teams": PEOPLE[::-1], "Medals": medals}
    for name, frame in kinds.items():
        if file.endswith(".xlsx"):
            frame.to_excel(tmp_path / file.format(name), sheet_name="Details", index=False)
        else:
            (tmp_path / name).mkdir()
            frame.to_csv(tmp_path / name / file, index=False)
    corpus = tf.open_corpus(tmp_path)
    found = corpus.retrieve_tables("How many athletes have a coach from their own country?")
    assert {"Athletes.Details", "Coaches.Details"} <= {*found.ids}
    assert not any(hit.parts for hit in found)
    assert corpus.retrieve_tables("How many teams does Peru have?").ids[0] == "Teams.Details"
    plan = found.add("Coaches.Details", "Teams.Details").only("Coaches.Details", "Teams.Details").join_plan
    assert len(plan.tables) == 2  # joined, not stacked


def test_years_of_one_name_are_pieces_though_some_have_other_columns(tmp_path):
    for year in range(2019, 2025):
        (tmp_path / str(year)).mkdir()
        frame = PEOPLE.assign(Score=range(year, year + 3))
        (frame.assign(Extra=1) if year < 2022 else frame).to_csv(tmp_path / str(year) / "results.csv", index=False)
    found = tf.open_corpus(tmp_path).retrieve_tables("What are the scores of the results since 2022?")
    assert found[0].parts == ("2022.results", "2023.results", "2024.results")
