from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe import config
from tagframe.cli import main
from tagframe.lm import import_answers

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
ANSWERS = DATA.parent / "answers.jsonl"
QUESTION = "Which venue's city sold the most tickets for films by directors from Portugal?"


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    config.forget()
    for name in config.NAMES:
        monkeypatch.delenv(f"TAGFRAME_{name.upper()}", raising=False)
    yield
    config.forget()


@pytest.fixture
def store(tmp_path) -> str:
    path = tmp_path / "answers.sqlite"
    import_answers(path, ANSWERS, recorded_by="by hand")
    return f"replay:{path}"


def run(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout if status == 0 else result.output


@pytest.mark.parametrize("command", ["tables", "retrieve", "merge", "ask", "index"])
def test_help_has_an_example(command):
    text = run(command, "--help")
    assert f"Example: tagframe {command} " in text
    assert command in run("--help")


def test_links_are_followed_where_that_is_asked_for(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "else.csv").write_text("id,name\n1,Ada\n")
    (tmp_path / "lake" / "linked.csv").symlink_to(tmp_path / "else.csv")
    assert "leads out of" in run("tables", tmp_path / "lake", status=1)
    assert "lake.linked" in run("tables", "--follow-links", tmp_path / "lake")


def test_tables():
    assert "festival.films" in run("tables", DATA)
    tables = json.loads(run("tables", DATA, "--json"))["tables"]
    assert {"id": "bakery.breads", "rows": 4}.items() <= tables[0].items()
    assert len(tables) == 10


def test_retrieve_json_has_the_promised_shape():
    found = json.loads(run("retrieve", DATA, QUESTION, "-k", 4, "--method", "iterative-jar", "--json"))
    assert set(found) == {"question", "tables", "joins", "note", "confidence"}
    assert found["question"] == QUESTION
    assert {hit["id"] for hit in found["tables"]} == {
        "festival.venues",
        "festival.screenings",
        "festival.films",
        "festival.directors",
    }
    assert all(set(hit) == {"id", "score", "probability", "doubtful", "reasons"} for hit in found["tables"])
    assert {"left": "festival.films.director_id", "right": "festival.directors.director_id"} in found["joins"]


def test_k_may_be_auto():
    found = json.loads(run("retrieve", DATA, QUESTION, "-k", "auto", "--json"))
    assert "likely enough" in found["note"]
    assert all(0 < hit["probability"] <= 1 for hit in found["tables"])
    outcome = CliRunner().invoke(main, ["retrieve", str(DATA), QUESTION, "-k", "many"])
    assert outcome.exit_code == 2
    assert "'many' is not a valid" in outcome.output


def test_retrieve_in_words():
    text = run("retrieve", DATA, QUESTION, "-k", 4)
    assert "festival.venues" in text
    assert "joined on" in text


def test_index_then_open(tmp_path):
    catalogue = tmp_path / "festival.catalogue"
    assert "10 tables" in run("index", DATA, "-o", catalogue)
    assert json.loads(run("tables", catalogue, "--json")) == json.loads(run("tables", DATA, "--json"))


def test_merge_prints_rows_and_accounts_for_them(tmp_path):
    result = CliRunner().invoke(main, ["merge", str(DATA), "festival.films", "directors", "--limit", "2"])
    assert result.exit_code == 0, result.output
    rows = pd.read_csv(io.StringIO(result.stdout))
    assert len(rows) == 2
    assert {"title", "director_id", "country"} <= set(rows.columns)
    assert "2 rows in the result" in result.stderr
    for name, read in (("films.csv", pd.read_csv), ("films.parquet", pd.read_parquet)):
        said = run(
            "merge", DATA, "films", "directors", "--column", "title", "--column", "country", "-o", tmp_path / name
        )
        assert said.startswith("Merged from festival.films")
        written = read(tmp_path / name)
        assert (list(written.columns), len(written)) == (["title", "country"], len(festival_films()))


def test_merge_takes_keys_and_a_condition_and_reports_as_json(tmp_path):
    path = tmp_path / "films.csv"
    on = "films.director_id = directors.director_id"
    told = json.loads(run("merge", DATA, "films", "directors", "--on", on, "--where", "country == 'Portugal'",
                          "--how", "left", "-o", path, "--json"))  # fmt: skip
    assert told["rows"] == len(pd.read_csv(path)) > 0
    assert told["start"] == "festival.films"
    assert told["output"] == str(path)
    (step,) = told["steps"]
    assert (step["left"], step["right"]) == ("festival.films.director_id", "festival.directors.director_id")
    assert step["matched"] == step["rows_in"] == told["start_rows"]
    assert told["warnings"] == []


@pytest.mark.parametrize("how", ["inner", "outer"])
def test_merge_takes_its_tables_in_any_order_and_says_whose_rows_the_result_has(tmp_path, how):
    frames = {}
    for tables in (("films", "directors"), ("directors", "films")):
        path = tmp_path / f"{tables[0]}.csv"
        told = json.loads(run("merge", DATA, *tables, "--how", how, "-o", path, "--json"))
        assert told["start"] == "festival.films"
        frames[tables[0]] = pd.read_csv(path), told["warnings"]
    pd.testing.assert_frame_equal(frames["films"][0], frames["directors"][0])
    assert [text for text in frames["directors"][1] if text not in frames["films"][1]] == [
        "the result has the rows of festival.films, because rows of festival.directors would be repeated"
    ]


def test_merge_stacks_tables_of_two_years_unless_told_not_to(tmp_path):
    for year in (2023, 2024):
        pd.DataFrame({"sale": [year, year + 1], "shop_id": [1, 2]}).to_csv(tmp_path / f"sales_{year}.csv", index=False)
    pd.DataFrame({"shop_id": [1, 2], "town": ["Brno", "Cheb"]}).to_csv(tmp_path / "shops.csv", index=False)
    tables = ("sales_2023", "sales_2024", "shops")
    told = json.loads(run("merge", tmp_path, *tables, "--json"))
    assert (told["rows"], [stack["tables"] for stack in told["stacks"]]) == (
        4, [[f"{tmp_path.name}.sales_2023", f"{tmp_path.name}.sales_2024"]])  # fmt: skip
    told = json.loads(run("merge", tmp_path, *tables, "--no-stack", "--json"))
    assert (told["rows"], told["stacks"]) == (2, [])


def test_merge_reacts_as_it_is_told_to_a_tie_and_to_lost_rows(tmp_path):
    games = {"game_id": [1, 2], "first_team_id": [1, 2], "second_team_id": [2, 9]}
    pd.DataFrame(games).to_csv(tmp_path / "games.csv", index=False)
    pd.DataFrame({"team_id": [1, 2], "town": ["Brno", "Cheb"]}).to_csv(tmp_path / "teams.csv", index=False)
    call = ("merge", tmp_path, "games", "teams")
    on = ("--on", "games.second_team_id = teams.team_id")
    assert "more than one way" in json.loads(run(*call, "--json"))["warnings"][0]
    assert json.loads(run(*call, "--on-ambiguous", "allow", "--json"))["warnings"] == []
    assert "more than one way" in run(*call, "--on-ambiguous", "raise", status=1)
    assert "1 of 2 rows" in json.loads(run(*call, *on, "--json"))["warnings"][0]
    assert json.loads(run(*call, *on, "--on-loss", "allow", "--json"))["warnings"] == []
    assert "1 of 2 rows" in run(*call, *on, "--on-loss", "raise", status=1)


def test_merge_joins_a_table_in_each_role(tmp_path):
    orders = pd.DataFrame({"order_id": [1, 2, 3], "buyer_id": [70, 80, 70], "seller_id": [80, 90, 80]})
    users = pd.DataFrame({"user_id": [70, 80, 90], "name": ["Ana", "Rui", "Eva"]})
    for name, frame in {"orders": orders, "users": users}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    on = [f"orders.{role}_id = users.user_id as {role}" for role in ("buyer", "seller")]
    for way in (["--roles", "all"], ["--on", on[0], "--on", on[1]]):
        told = json.loads(run("merge", tmp_path, "orders", "users", *way, "--on-loss", "allow", "--json"))
        assert {"buyer.name", "seller.name"} < set(told["columns"])
        assert (told["rows"], len(told["steps"])) == (3, 2)


def test_merge_counts_copies_once(tmp_path):
    pd.DataFrame({"order_id": [1, 2], "user_id": [70, 80]}).to_csv(tmp_path / "orders.csv", index=False)
    users = pd.DataFrame({"user_id": [70, 80, 90], "name": ["Ana", "Rui", "Eva"]})
    pd.concat([users, users[:1]]).to_csv(tmp_path / "users.csv", index=False)
    call = ("merge", tmp_path, "orders", "users", "--how", "left", "--json")
    assert "or --distinct to count exact copies once" in run(*call, status=1)
    assert json.loads(run(*call, "--distinct"))["rows"] == 2


def test_merge_joins_no_key_below_the_least_chance(tmp_path):
    pd.DataFrame({"product": ["a", "b"], "pieces": [3, 4]}).to_csv(tmp_path / "stock.csv", index=False)
    pd.DataFrame({"city": ["A", "C"], "rent": [7, 9]}).to_csv(tmp_path / "stores.csv", index=False)
    call = ("merge", tmp_path, "stock", "stores")
    refused = run(*call, status=1)
    assert "no key pairs connect the tables" in refused
    assert 'needs a chance of --min-chance 0.02 to join tables. If a pair is right, pass it: --on "stock.' in refused
    assert "--min-chance 0.5 to join" in run(*call, "--min-chance", ".5", status=1)


def festival_films() -> pd.DataFrame:
    return tf.open_corpus(DATA).read("festival.films")


def test_ask(store):
    answer = json.loads(run("ask", DATA, QUESTION, "--lm", store, "--json"))
    assert answer["answer"].startswith("Lisbon")
    assert answer["values"] == ["Lisbon"]
    assert answer["rows"][0] == {"city": "Lisbon"}
    assert answer["query"]["sql"].startswith("SELECT v.city")
    assert len(answer["tables"]) == 4


def test_ask_reads_the_environment(store, monkeypatch):
    monkeypatch.setenv("TAGFRAME_LM", store)
    assert run("ask", DATA, QUESTION).startswith("Lisbon\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tables", "missing.sqlite"), "missing.sqlite"),
        (("retrieve", DATA, "  "), "question"),
        (("retrieve", DATA, QUESTION, "--method", "dence"), "did you mean 'dense'"),
        (("ask", DATA, QUESTION), "no language model"),
        (("merge", DATA, "flims"), "did you mean 'films'"),
        (("merge", DATA, "directors", "films", "--how", "left"), "would repeat"),
        (("merge", DATA, "films", "directors", "--on", "title = nme"), "no table has a column 'nme'"),
        (("merge", DATA, "films", "directors", "-o", "missing/x.csv"), "there is no folder missing"),
        (("merge", DATA, "films", "directors", "-o", "/dev/full/x.csv"), "/dev/full"),
        (("index", DATA, "-o", "missing/x.catalogue"), "missing"),
    ],
)
def test_errors_are_one_sentence(arguments, says):
    text = run(*arguments, status=1)
    assert text.startswith("Error: ")
    assert says in text
    assert "Traceback" not in text


def test_merge_writes_no_other_kind_of_file():
    assert "neither a .csv nor a .parquet file" in run("merge", DATA, "films", "-o", "films.xlsx", status=2)


@pytest.mark.filterwarnings("default")
def test_csv_files_are_read_as_told(tmp_path):
    (tmp_path / "p.csv").write_text("a;b\n1,5;x\n2,25;y\n")
    said = CliRunner().invoke(main, ["tables", str(tmp_path)]).stderr
    assert "these columns of text are read as numbers: 'a' (decimal commas)" in said
    assert ".py" not in said, "a warning of the shell has no line of Python"
    assert "1.5" in run("merge", "--csv", "decimal=,", tmp_path, "p")
    assert "NAME=VALUE" in run("tables", "--csv", "decimal", tmp_path, status=2)


@pytest.mark.filterwarnings("default")
def test_a_file_without_a_table_is_a_line(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "empty.csv").write_text("")
    said = CliRunner().invoke(main, ["tables", str(tmp_path)]).stderr
    assert "Warning: left out: " in said
    assert "warnings.warn" not in said


def test_errors_name_the_options_of_the_shell(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n1,1\n1,2\n2,2\n")
    (tmp_path / "b.csv").write_text("b_id,id\n1,1\n2,1\n3,2\n")
    said = run("merge", tmp_path, "a", "b", "--on", "a.id = b.id", status=1)
    assert "--on-fanout allow" in said
    assert "on_fanout=" not in said


def test_check_exits_with_1_where_something_changed(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.csv").write_text("id,x\n" + "".join(f"{n},{n}\n" for n in range(50)))
    assert "baseline written" in run("check", data, "--baseline", tmp_path / "then.json")
    assert "no changes" in run("check", data, "--baseline", tmp_path / "then.json")
    (data / "a.csv").write_text("id\n1\n")
    found = json.loads(run("check", data, "--baseline", tmp_path / "then.json", "--json", status=1))
    assert "column data.a.x is gone" in found["findings"]


def test_eval_measures_on_questions_of_ones_own(tmp_path):
    questions = tmp_path / "questions.csv"
    questions.write_text("question,tables\nWhich films do critics like?,films reviews critics\n")
    found = json.loads(run("eval", DATA, questions, "-k", 3, "--json"))
    assert found["questions"][0]["needed"] == ["festival.critics", "festival.films", "festival.reviews"]
    assert set(found["scores"]) == {"P", "R", "CR", "exact"}


def test_cache_lists_and_removes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run("cache") == ""
    tf.open_corpus(DATA, progress=False).private("customers.town")
    listed = {one["name"]: one for one in json.loads(run("cache", "--json"))}
    assert listed["catalogues"]["bytes"] > 0
    assert "private columns are no longer private" in run("cache", "--remove", "facts", status=1)
    assert "did you mean 'catalogues'" in run("cache", "--remove", "catalogs", status=1)
    assert "catalogues" not in run("cache", "--remove", "catalogues")
    assert "facts" in run("cache")


def test_a_servers_address_is_taken_as_it_is(database):
    listed = run("tables", database("CREATE TABLE ship (id int)"))
    assert "public.ship" in listed
