"""The tools as functions: what they give, what they refuse, and what a model is told of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from inspect import get_annotations
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from pydantic import TypeAdapter

import tagframe as tf
from tagframe.agents import definitions
from tagframe.agents.formatting import tokens_of
from tagframe.agents.schemas import schema_of
from tagframe.agents.tools import Tools
from tagframe.answer import SQLLimits
from tagframe.errors import (
    ColumnNotFound,
    FanOut,
    FileNotAllowed,
    InvalidArgument,
    NotConfigured,
    SourceNotFound,
    TableNotFound,
    UnsafeSQL,
)

DEMO = Path(__file__).resolve().parents[2] / "examples" / "data"
QUESTION = "Which critics gave five stars in their reviews of films by Portuguese directors?"


@pytest.fixture(scope="module")
def demo() -> Tools:
    return tf.open_corpus(DEMO).tools()


def fits(tools: Tools, name: str, arguments: dict[str, Any]) -> Any:
    """What a tool gives, once it is known to be what its schema says, in JSON, and short enough."""
    given = tools.call(name, arguments)
    tool = next(tool for tool in tools if tool.__name__ == name)
    plain = json.loads(json.dumps(given))
    TypeAdapter(get_annotations(tool.__func__, eval_str=True)["return"]).validate_python(plain, strict=True)
    jsonschema.validate(arguments, schema_of(tool)["input_schema"])
    assert tokens_of(plain) <= 8_000
    return plain


def test_tables_come_with_chances_columns_and_joins_that_hold(demo: Tools):
    found = fits(demo, "find_tables", {"question": QUESTION})
    ids = {table["id"]: table for table in found["tables"]}
    assert {"festival.films", "festival.critics", "festival.reviews"} <= {*ids, *found["bridges"]}
    films = ids["festival.films"]
    assert films["name"] == "films"
    assert films["rows"] == 12
    assert 0 < films["chance"] <= 1
    assert any(line.startswith("title TEXT") for line in films["columns"])
    joined = {join["on"]: join for join in found["joins"]}
    reviewed = joined["reviews.film_id = films.film_id"]
    assert reviewed["cardinality"] == "many-to-one"
    assert reviewed["chance"] > 0.5
    assert reviewed["lost"] == 0
    assert 0 < found["confidence"] < 1


def test_a_question_that_nothing_fits_says_so(demo: Tools):
    assert "fit" in fits(demo, "find_tables", {"question": "What is the boiling point of tungsten?"})["note"]


@pytest.mark.slow
def test_a_wide_table_is_found_by_its_nearest_columns_and_described_page_by_page():
    columns = {f"measure_{number}": [1.5, 2.5] for number in range(700)}
    wide = pd.DataFrame({"plant": ["Aveiro", "Braga"], "rainfall": [3, 4], **columns})
    tools = tf.open_corpus({"wide": wide}).tools()
    (table,) = fits(tools, "find_tables", {"question": "How much rainfall has the plant in Aveiro?"})["tables"]
    assert len(table["columns"]) < 20
    assert {"plant", "rainfall"} <= {line.split()[0] for line in table["columns"]}
    assert table["more_columns"] == 702 - len(table["columns"])
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = fits(tools, "describe_tables", {"tables": ["wide"], "cursor": cursor})
        seen += [column["name"] for column in page["tables"][0]["columns"]]
        cursor = page["cursor"]
    assert seen == list(wide.columns)


def test_described_tables_have_keys_and_stored_values(demo: Tools):
    described = fits(demo, "describe_tables", {"tables": ["reviews", "festival.genres"]})
    reviews, genres = described["tables"]
    assert (reviews["id"], genres["id"]) == ("festival.reviews", "festival.genres")
    assert "reviews.film_id = films.film_id (many-to-one)" in reviews["keys"]
    assert "'ROM'" in next(column["values"] for column in genres["columns"] if column["name"] == "genre_code")
    assert described["cursor"] is None


def test_a_plan_counts_what_becomes_of_rows_and_its_sql_runs():
    orders = pd.DataFrame({"order_id": [1, 2, 3, 4], "customer_id": [7, 7, 8, 99]})
    customers = pd.DataFrame({"customer_id": [7, 8, 9], "town": ["Porto", "Faro", "Beja"]})
    tools = tf.open_corpus({"orders": orders, "customers": customers}).tools()
    plan = fits(
        tools, "plan_joins", {"tables": ["orders", "customers"], "on": ["orders.customer_id = customers.customer_id"]}
    )
    account = plan["account"]
    (join,) = account["joins"]
    assert (account["start"], account["start_rows"], account["lost"]) == ("frames.orders", 4, 1)
    assert (join["matched"], join["unmatched"], join["unused_right"], join["fan_out"]) == (3, 1, 1, 1.0)
    assert fits(tools, "run_sql", {"sql": plan["sql"]})["row_count"] == 3


def test_a_fan_out_is_refused_with_its_count_and_the_way_out():
    students = pd.DataFrame({"student_id": range(6), "club": ["a", "b"] * 3})
    fees = pd.DataFrame({"club": ["a", "a", "b"], "fee": [1, 2, 3]})
    tools = tf.open_corpus({"students": students, "fees": fees}).tools()
    asked = {"tables": ["students", "fees"], "on": ["students.club = fees.club"]}
    with pytest.raises(FanOut, match=r"would repeat 3 rows of frames.students, 2 times at most"):
        tools.call("plan_joins", asked)
    counted = fits(tools, "plan_joins", {**asked, "on_fanout": "allow"})["account"]["joins"][0]
    assert counted["fan_out"] == 1.5
    assert counted["rows_out"] == 9
    summed = fits(tools, "merge_tables", {**asked, "aggregate": {"fees": {"fee": "sum"}}})
    assert summed["row_count"] == 6


def test_rows_come_with_what_is_behind_them(demo: Tools):
    told = fits(demo, "run_sql", {"sql": "SELECT title FROM films WHERE year = 1998"})
    assert told["rows"] == [["Low Tide at Nazaré"]]
    assert told["truncated"] is False
    assert told["rows_behind"] == [{"table": "festival.films", "key": "film_id", "rows": 1, "values": ["101"]}]
    told = fits(demo, "run_sql", {"sql": "SELECT title FROM films ORDER BY film_id;", "limit": 3})
    assert told["row_count"] == 3
    assert told["truncated"] is True
    assert told["rows_behind"][0]["values"] == ["101", "102", "103"]
    told = fits(demo, "run_sql", {"sql": "SELECT title FROM films LIMIT 8 OFFSET 2", "limit": 3})
    assert told["row_count"] == 3
    assert told["truncated"] is True
    assert fits(demo, "run_sql", {"sql": "SELECT title FROM films LIMIT 2", "limit": 3})["truncated"] is False


@pytest.mark.slow
def test_the_rows_behind_groups_are_found_once_and_what_is_left_out_is_said(monkeypatch):
    frame = pd.DataFrame({"id": range(40_000), "town": [None if n % 9 == 0 else f"t{n % 9000}" for n in range(40_000)]})
    corpus = tf.open_corpus({"people": frame})
    tools = Tools(corpus, limits=SQLLimits(seconds=30))
    grouped = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
    (behind,) = fits(tools, "run_sql", {"sql": f"{grouped} ORDER BY n, town LIMIT 5"})["rows_behind"]
    assert (behind["key"], behind["rows"]) == ("id", 20)
    told = fits(tools, "run_sql", {"sql": grouped})
    assert "rows_behind has the first 1,000 rows of frames.people only" in told["note"]
    (behind,) = fits(tools, "run_sql", {"sql": "SELECT town FROM frames.people WHERE id < 3"})["rows_behind"]
    assert behind["values"] == ["0", "1", "2"]
    monkeypatch.setattr("tagframe.agents.reading._MIN_SECONDS", 0.01)
    monkeypatch.setattr("tagframe.agents.reading._SHARE_OF_TIME", 0.0)
    # Two million pairs are looked through for the rows behind one number.
    told = fits(
        tools, "run_sql", {"sql": "SELECT COUNT(*) FROM people a JOIN people b ON a.id < 50 AND a.id + b.id = 40020"}
    )
    assert told["rows_behind"] == [{"table": "frames.people", "key": "id", "rows": None, "values": []}]
    assert "lacks the rows of frames.people: finding them takes too long" in told["note"]


@pytest.mark.slow
def test_long_results_come_in_pages_of_the_same_rows():
    frame = pd.DataFrame({"n": range(3_000), "text": ["ünïcödé 🎉 " * 5] * 3_000})
    tools = tf.open_corpus({"t": frame}).tools()
    for name, asked in (
        ("run_sql", {"sql": "SELECT n, text FROM t ORDER BY n % 7", "limit": 1_000}),
        ("merge_tables", {"tables": ["t"], "limit": 1_000}),
    ):
        seen: list[int] = []
        cursor: str | None = None
        while not seen or cursor is not None:
            page = fits(tools, name, {**asked, **({"cursor": cursor} if cursor else {})})
            assert f"of {page['row_count']:,}" in page["note"]
            assert page["rows"]
            seen += [row[0] for row in page["rows"]]
            cursor = page["cursor"]
        assert len(seen) == len(set(seen)) == 1_000
    with pytest.raises(InvalidArgument, match="past the end"):
        tools.call("run_sql", {**asked, "sql": "SELECT n FROM t LIMIT 5", "cursor": "5"} | {"limit": 9, "tables": None})


def test_a_cell_that_is_too_long_is_cut_and_says_so():
    tools = tf.open_corpus({"t": pd.DataFrame({"n": [1, 2], "text": ["x" * 200_000, "y"]})}).tools()
    told = fits(tools, "run_sql", {"sql": "SELECT text FROM t ORDER BY n"})
    assert "cut, 200,000 characters" in told["rows"][0][0]
    assert told["rows"][1] == ["y"]
    assert "substr" in told["note"]


def test_cells_of_every_kind_are_json():
    frame = pd.DataFrame(
        {
            "at": pd.to_datetime(["2024-05-01 10:00", None]),
            "big": [2**60, 1],
            "real": [float("inf"), float("nan")],
            "yes": [True, False],
        }
    )
    rows = fits(tf.open_corpus({"t": frame}).tools(), "merge_tables", {"tables": ["t"]})["rows"]
    assert rows == [["2024-05-01T10:00:00", str(2**60), "inf", True], [None, 1, None, False]]


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        ("find_tabels", {}, InvalidArgument, "did you mean 'find_tables'"),
        ("find_tables", {}, InvalidArgument, "question: Missing"),
        ("find_tables", {"question": "films", "kk": 3}, InvalidArgument, "kk: Unexpected"),
        ("find_tables", "{", InvalidArgument, "one JSON object"),
        ("find_tables", {"question": "  "}, InvalidArgument, "needs words"),
        ("describe_tables", {"tables": ["filmes"]}, TableNotFound, "did you mean 'films'"),
        ("describe_tables", {"tables": ["films"], "cursor": "-1"}, InvalidArgument, "cursor"),
        ("run_sql", {"sql": "DELETE FROM films"}, UnsafeSQL, "only SELECT"),
        ("run_sql", {"sql": "SELECT * FROM films; SELECT 1"}, UnsafeSQL, "one SELECT"),
        ("run_sql", {"sql": "SELECT * FROM filmes"}, UnsafeSQL, "did you mean 'films'"),
        ("run_sql", {"sql": "SELECT sem_map('{title}') FROM films"}, NotConfigured, "no budget"),
        ("run_sql", {"sql": "SELECT 1", "limit": 0}, InvalidArgument, "1 to 10,000"),
        ("merge_tables", {"tables": ["films"], "to": "films.parquet"}, FileNotAllowed, "writing files is not allowed"),
        ("merge_tables", {"tables": ["films"], "where": "title.str.len() > 3"}, InvalidArgument, "use run_sql"),
        ("merge_tables", {"tables": ["films"], "where": "@__import__('os')"}, InvalidArgument, "use run_sql"),
        ("merge_tables", {"tables": ["films"], "columns": ["titel"]}, ColumnNotFound, "did you mean 'title'"),
        ("describe_tables", {"tables": ["films"], "column": "titel"}, ColumnNotFound, "did you mean 'title'"),
        ("describe_tables", {"value": " "}, InvalidArgument, "value is empty"),
        ("describe_tables", {}, InvalidArgument, "tables are needed"),
        ("describe_tables", {"tables": ["films", "genres"], "column": "title"}, InvalidArgument, "of one table"),
        ("ask", {"question": "How many films?"}, InvalidArgument, "no tool 'ask'"),
        ("learn", {"question": "How many films?", "sql": "SELECT 1"}, InvalidArgument, "no tool 'learn'"),
    ],
)
def test_what_is_refused_says_the_way_out(demo: Tools, name: str, arguments: Any, error: type[Exception], says: str):
    with pytest.raises(error, match=says):
        demo.call(name, arguments)


@pytest.mark.slow
def test_values_are_found_where_they_stand_as_they_are_written(demo: Tools):
    places = fits(demo, "describe_tables", {"value": "porto"})["places"]
    assert {"table": "festival.venues", "column": "city", "value": "Porto", "rows": 1} in places
    assert {"table": "bakery.customers", "column": "town", "value": "Porto", "rows": 2} in places
    assert fits(demo, "describe_tables", {"value": "100%_o'"})["places"] == []
    assert fits(demo, "describe_tables", {"value": "porto", "tables": ["films"]})["places"] == []


def test_a_column_is_told_with_its_common_values(demo: Tools):
    told = fits(demo, "describe_tables", {"tables": ["films"], "column": "Genre_Code"})
    assert told["column"] == "genre_code"
    assert told["distinct"] == 5
    assert told["nulls"] == 0
    assert sum(one["rows"] for one in told["common"]) == 12


def test_files_are_new_and_in_the_allowed_folder(tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "secret.parquet").write_text("mine")
    (tmp_path / "out" / "link.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    (tmp_path / "out" / "there.parquet").write_text("a source, maybe")
    tools = tf.open_corpus(DEMO).tools(to=tmp_path / "out")
    merged = fits(tools, "merge_tables", {"tables": ["films", "reviews"], "to": "reviews.parquet"})
    assert merged["file"] == "reviews.parquet"
    assert merged["rows"] == []
    assert merged["row_count"] == 23
    assert len(pd.read_parquet(tmp_path / "out" / "reviews.parquet")) == 23
    for name in (
        "../secret.parquet", str(tmp_path / "secret.parquet"), "sub/x.parquet", "link.parquet", "there.parquet",
        "reviews.parquet", ".hidden.parquet", "films.csv", "a\0b.parquet", "a\n.parquet", "..", "",
    ):  # fmt: skip
        with pytest.raises(FileNotAllowed):
            tools.call("merge_tables", {"tables": ["films"], "to": name})
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "link.parquet", "out", "reviews.parquet", "secret.parquet", "there.parquet"
    ]  # fmt: skip
    assert (tmp_path / "out" / "there.parquet").read_text() == "a source, maybe"


def test_a_schema_without_rows_is_found_and_says_that_there_are_none():
    tools = tf.open_corpus(schema={"w.loan": ["id", "amount"], "w.client": ["id", "loan_id"]}).tools()
    assert fits(tools, "find_tables", {"question": "What amount is the loan?"})["tables"][0]["id"] == "w.loan"
    for name, arguments in (
        ("run_sql", {"sql": "SELECT * FROM loan"}),
        ("describe_tables", {"tables": ["loan"], "column": "amount"}),
    ):
        with pytest.raises(SourceNotFound, match="only schemas are known"):
            tools.call(name, arguments)


def test_what_is_learned_is_found():
    corpus = tf.open_corpus({"a.x": pd.DataFrame({"i": [1]}), "a.y": pd.DataFrame({"j": [2]})})
    told = fits(corpus.tools(learn=True), "learn", {"question": "How many?", "sql": "SELECT COUNT(*) FROM y"})
    assert told["learned"] == 1
    assert corpus.learned["question"].tolist() == ["How many?"]


def test_tables_of_many_files_go_by_names_that_run(tmp_path: Path):
    for database in ("one", "two"):
        with closing(sqlite3.connect(tmp_path / f"{database}.sqlite")) as connection:
            pd.DataFrame({"id": [1, 2], "of": [database] * 2}).to_sql("item", connection, index=False)
            pd.DataFrame({"item_id": [1, 1, 2], "n": [1, 2, 3]}).to_sql("sale", connection, index=False)
            connection.commit()
    tools = tf.open_corpus(tmp_path).tools()
    name = fits(tools, "describe_tables", {"tables": ["two.item"]})["tables"][0]["name"]
    assert fits(tools, "run_sql", {"sql": f'SELECT DISTINCT "of" FROM {name}'})["rows"] == [["two"]]
    plan = fits(tools, "plan_joins", {"tables": ["two.item", "two.sale"], "on": ["two.sale.item_id = two.item.id"]})
    assert fits(tools, "run_sql", {"sql": plan["sql"]})["row_count"] == 3


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """Two databases that share the name of a table."""
    folder = tmp_path_factory.mktemp("two")
    for database, visits in (("north", "visit"), ("south", "trip")):
        with closing(sqlite3.connect(folder / f"{database}.sqlite")) as connection:
            connection.executescript(
                "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, country TEXT);"
                f"CREATE TABLE {visits} (nr INTEGER PRIMARY KEY, person INTEGER REFERENCES people (id));"
            )
            people = [(n, f"{database} {n}", ["Kenya", "Chad"][n % 2]) for n in range(50)]
            connection.executemany("INSERT INTO people VALUES (?, ?, ?)", people)
            connection.executemany(f"INSERT INTO {visits} VALUES (?, ?)", [(n, n % 50) for n in range(90)])
            connection.commit()
    return tf.open_corpus(folder, progress=False).tools()


def test_names_that_two_databases_share_are_qualified_and_what_spans_them_runs(two: Tools):
    found = fits(two, "find_tables", {"question": "From which countries are the north people who made a visit?"})
    (join,) = [one for one in found["joins"] if "visit" in one["on"]]
    assert join["on"] == "visit.person = north.people.id"
    assert fits(two, "plan_joins", {"tables": ["visit", "north.people"], "on": [join["on"]]})["account"]["lost"] == 0
    plan = fits(two, "plan_joins", {"tables": ["visit", "south.people"], "on": ["visit.person = south.people.id"]})
    assert fits(two, "run_sql", {"sql": plan["sql"]})["row_count"] == 90
    with pytest.raises(UnsafeSQL, match=r"write 'north\.people' or 'south\.people'"):
        two.call("run_sql", {"sql": "SELECT * FROM people"})


@pytest.mark.parametrize(
    ("test", "says"),
    [
        (
            "country = 'kenya' AND id > 99",
            "no cell of north.people.country has the value 'kenya'; the nearest is 'Kenya'",
        ),
        (
            "p.country IN ('Ken', 'Chda')",
            "no cell of north.people.country has the value 'Ken'; the nearest is 'Kenya'; "
            "no cell of north.people.country has the value 'Ken', 'Chda'",
        ),
        ("country = 'chad' OR id > 99", "no cell of north.people.country has the value 'chad'; the nearest is 'Chad'"),
        ("'Atlantis' = country", "no cell of north.people.country has the value 'Atlantis'"),
        ("country = 'Kenya' AND id > 99", ""),
        ("country = lower('Kenya')", ""),
    ],
)
@pytest.mark.parametrize("shown", ["*", "COUNT(*)"])
def test_an_empty_result_says_how_the_value_is_stored(two: Tools, shown: str, test: str, says: str):
    told = fits(two, "run_sql", {"sql": f"SELECT {shown} FROM north.people p WHERE {test}"})
    assert told["note"] == says


def test_the_question_chooses_between_two_ways_to_join():
    stations = pd.DataFrame({"station_id": range(40), "town": [f"t{n}" for n in range(40)]})
    numbers = [n % 40 for n in range(200)]
    trips = pd.DataFrame({"trip": range(200), "start_station_id": numbers, "end_station_id": numbers[::-1]})
    tools = tf.open_corpus({"stations": stations, "trips": trips}).tools()
    for end in ("start", "end"):
        asked = {"tables": ["trips", "stations"], "question": f"In which town did the trips {end}?"}
        plan = fits(tools, "plan_joins", asked)
        assert [join["on"] for join in plan["account"]["joins"]] == [f"trips.{end}_station_id = stations.station_id"]
        other = plan["alternatives"][0]["on"]
        used = fits(tools, "plan_joins", {"tables": ["trips", "stations"], "on": other})["account"]["joins"]
        assert [join["on"] for join in used] == other


def test_a_page_that_is_not_the_last_is_truncated():
    tools = tf.open_corpus({"t": pd.DataFrame({"text": ["x" * 500] * 300})}).tools()
    told = fits(tools, "run_sql", {"sql": "SELECT text FROM t", "limit": 500})
    assert told["cursor"]
    assert told["truncated"] is True


def test_a_model_is_told_when_to_use_a_tool_and_what_it_takes():
    corpus = tf.open_corpus({"t": pd.DataFrame({"n": [1]})})
    tools = corpus.tools(ask=True, learn=True, budget=1.0)
    assert [tool.__name__ for tool in tools] == [
        "find_tables", "describe_tables", "plan_joins", "run_sql", "merge_tables", "ask", "learn"
    ]  # fmt: skip
    for tool in tools:
        schema = schema_of(tool)
        assert "Use it" in schema["description"], tool
        assert schema["input_schema"]["type"] == "object"
        for argument in schema["input_schema"]["properties"].values():
            assert argument["description"].endswith(".")
        jsonschema.Draft202012Validator.check_schema(schema["input_schema"])
    assert definitions(may_ask=True, may_learn=True) == [schema_of(tool) for tool in tools]
    assert len(json.dumps(corpus.tools().schemas("anthropic"))) < 5_000
    openai, anthropic = corpus.tools().schemas("openai"), corpus.tools().schemas("anthropic")
    assert openai[3]["function"]["name"] == anthropic[3]["name"] == "run_sql"
    assert openai[3]["function"]["parameters"] == anthropic[3]["input_schema"]
    assert TypeAdapter(list[dict[str, Any]]).validate_python(openai)
    with pytest.raises(InvalidArgument, match="budget"):
        corpus.tools(ask=True)
    with pytest.raises(InvalidArgument, match="openai"):
        corpus.tools().schemas("gemini")  # type: ignore[arg-type]


def test_a_file_name_that_is_too_long_is_refused_without_the_folder(tmp_path):
    (tmp_path / "out").mkdir()
    tools = tf.open_corpus(DEMO).tools(to=tmp_path / "out")
    with pytest.raises(FileNotAllowed, match="another name") as refusal:
        tools.call("merge_tables", {"tables": ["films", "genres"], "to": "n" * 300 + ".parquet"})
    assert str(tmp_path) not in str(refusal.value)


def test_arguments_nested_deep_are_refused(demo):
    with pytest.raises(InvalidArgument, match="must be one JSON object"):
        demo.call("find_tables", '{"question": ' + "[" * 50_000)
