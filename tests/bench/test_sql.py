"""``tag_bench sql`` on two small databases: the model's SQL is scripted, everything else is real."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.server import Request, Server
from tag_bench.sql import command, gold_rows
from tagframe.cli import main

TABLES = {
    "music": {
        "singer": "CREATE TABLE singer (singer_id INTEGER PRIMARY KEY, name TEXT)",
        "concert": "CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, singer_id INTEGER, year INTEGER)",
    },
    "shop": {"part": "CREATE TABLE part (part_id INTEGER PRIMARY KEY, price REAL)"},
}
ROWS = {
    "music": [
        "INSERT INTO singer VALUES (1, 'Ann'), (2, 'Bo')",
        "INSERT INTO concert VALUES (7, 1, 2020), (8, 1, 2021)",
    ],
    "shop": ["INSERT INTO part VALUES (1, 1.5)"],
}
QUESTIONS = [
    {
        "db_id": "music",
        "question": "Which singers gave a concert in 2020?",
        "sql": 'SELECT T1.name FROM singer AS T1 JOIN concert AS T2 ON T1.singer_id = T2.singer_id WHERE year = "2020"',
    },
    {
        "db_id": "music",
        "question": "How many concerts did each singer give?",
        "sql": "SELECT name, count(*) FROM singer AS a JOIN concert AS b ON a.singer_id = b.singer_id GROUP BY name",
    },
    {"db_id": "shop", "question": "How many parts are there?", "sql": "SELECT count(*) FROM part"},
]
SQL = {
    "in 2020?": "SELECT s.name FROM singer s JOIN concert c ON s.singer_id = c.singer_id WHERE c.year = 2020",
    "each singer give?": "SELECT count(*) FROM concert",
    "How many parts": "SELECT 3",
}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "mini"
    tables = {}
    for database, statements in TABLES.items():
        below = folder / "database" / database
        below.mkdir(parents=True)
        with closing(sqlite3.connect(below / f"{database}.sqlite")) as connection:
            for statement in (*statements.values(), *ROWS[database]):
                connection.execute(statement)
            connection.commit()
            for table in statements:
                names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                entry = {"db_id": database, "table_name_original": table, "column_names_original": names}
                tables[f"{database}#sep#{table}"] = {**entry, "column_types": ["text"] * len(names)}
    (folder / "dev.json").write_text(json.dumps(QUESTIONS))
    (folder / "dev_tables.json").write_text(json.dumps(tables))
    return folder


def answer(request):
    said = " ".join(message["content"] for message in request.messages)
    return next(sql for words, sql in SQL.items() if words in said)


def run(data, *arguments):
    return CliRunner().invoke(command, ["--data", str(data), *map(str, arguments)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "murre", "gold"])
def test_rows_and_tables_are_held_against_the_gold_sql(data, method, tmp_path):
    with Server(answer) as server, tf.context(lm="openai/sql", api_base=server.url, api_key="none", store=None):
        result = run(data, "--method", method, "-k", 2, "--json", "-")
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert any("CREATE TABLE" in request.prompt for request in server.requests)
    assert (report["questions"], report["not_run"], report["left_out"]) == (2, 0, 0)
    assert report["execution_accuracy"] == 50.0  # the second asks for the count of each
    assert report["tables"] == {"P": 100.0, "R": 75.0, "F1": pytest.approx(83.33)}


def test_questions_of_one_table_are_asked_where_wanted(data):
    with Server(answer) as server, tf.context(lm="openai/sql", api_base=server.url, api_key="none", store=None):
        report = json.loads(run(data, "--every-question", "-k", 3, "--json", "-").stdout)
    assert report["questions"] == 3
    assert report["execution_accuracy"] == pytest.approx(33.33)


def test_an_invalid_statement_is_wrong(data):
    def wrong_once(request):
        return "SELECT nix FROM singer" if "in 2020?" in str(request.messages) else answer(request)

    with Server(wrong_once) as server, tf.context(lm="openai/sql", api_base=server.url, api_key="none", store=None):
        report = json.loads(run(data, "--method", "gold", "-k", 2, "--json", "-").stdout)
        assert len(server.requests) == 2, "as printed, nothing is repaired"
    assert (report["execution_accuracy"], report["errors"]) == (0.0, 1)


def test_without_answers_nothing_is_claimed_and_the_prompts_are_noted(data, tmp_path):
    store = tmp_path / "sql.sqlite"
    result = run(data, "--lm", f"replay:{store}", "--json", "-")
    report = json.loads(result.stdout)
    assert (report["execution_accuracy"], report["questions"], report["not_run"]) == (None, 0, 2)
    assert report["tables"] == {"P": None, "R": None, "F1": None}
    assert "execution accuracy not run" in result.stderr
    with closing(sqlite3.connect(store)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
    assert 2 in counts.values()


def test_evidence_stands_in_the_prompt_and_makes_the_rule_that_of_bird(data):
    evidence = [{**question, "evidence": "a concert in 2020 has the year 2020"} for question in QUESTIONS]
    (data / "dev.json").write_text(json.dumps(evidence))
    with Server(answer) as server, tf.context(lm="openai/sql", api_base=server.url, api_key="none", store=None):
        assert run(data, "--evidence", "--json", "-").exit_code == 0
        assert all("External knowledge: a concert in 2020" in request.prompt for request in server.requests)
        before = len(server.requests)
        assert run(data, "--json", "-").exit_code == 0
        assert not any("a concert in 2020 has" in request.prompt for request in server.requests[before:])


@pytest.mark.parametrize(("prompt", "examples"), [("jar", 1), ("bird", 0)])
def test_the_prompt_is_jars_or_that_without_examples(data, prompt, examples):
    def by_kind(request):
        return "music.concert(year)" if "Completing Tables" in request.prompt else answer(request)

    with Server(by_kind) as server, tf.context(lm="openai/sql", api_base=server.url, api_key="none", store=None):
        options = ["--method", "murre:hops=2", "--prompt", prompt, "--limit", 1, "--json", "-"]
        assert json.loads(run(data, *options).stdout)["execution_accuracy"] == 100.0
        rewriting = [request for request in server.requests if "Completing Tables" in request.prompt]
        assert rewriting, "a method that asks a model has it"
        (written,) = [request.prompt for request in server.requests if request not in rewriting]
    assert written.count("CREATE TABLE singer(\nsinger_id TEXT: <instance 1>, ...,") == examples


def test_a_folder_without_rows_is_named(data, tmp_path):
    for file in (data / "database").glob("*/*.sqlite"):
        file.unlink()
    result = run(data)
    assert result.exit_code == 1
    assert "SQL needs rows to run on" in result.output


def test_sql_is_written_elsewhere_and_brought_back(data, tmp_path):
    """Export, answer, import: then there is a figure, the same as with a live model."""
    store, batch, answers = tmp_path / "sql.sqlite", tmp_path / "batch.jsonl", tmp_path / "answers.jsonl"
    options = ["--lm", f"replay:{store}", "--method", "gold", "--every-question", "--json", "-"]
    first = json.loads(run(data, *options).stdout)
    assert (first["execution_accuracy"], first["not_run"]) == (None, 3)
    assert CliRunner().invoke(main, ["lm", "export", str(store), "-o", str(batch)]).exit_code == 0
    lines = [json.loads(line) for line in batch.read_text().splitlines()]
    assert len(lines) == 3
    assert all(line["custom_id"].startswith("syn/") for line in lines)
    said = [
        {"custom_id": line["custom_id"], "answer": answer(Request(line["body"], {}, 0, 1, 1))} for line in lines[:2]
    ]
    answers.write_text("\n".join(map(json.dumps, said)))
    assert CliRunner().invoke(main, ["lm", "import", str(store), str(answers)]).exit_code == 0
    second = json.loads(run(data, *options).stdout)
    assert (second["questions"], second["not_run"]) == (2, 1)
    assert second["execution_accuracy"] == 50.0
    assert second["tables"]["R"] == 75.0


def test_each_question_has_a_record_from_which_the_next_run_goes_on(data, tmp_path):
    nobody = {**QUESTIONS[0], "question": "Who sang in 1900?", "sql": QUESTIONS[0]["sql"].replace("2020", "1900")}
    (data / "dev.json").write_text(json.dumps([*QUESTIONS, nobody]))
    file = tmp_path / "records.jsonl"
    options = ["--method", "gold", "--every-question", "--records", file, "--json", "-"]
    said = {**SQL, "in 1900?": "SELECT name FROM singer"}
    with (
        Server(lambda request: next(sql for words, sql in said.items() if words in request.prompt)) as server,
        tf.context(lm="openai/sql", api_base=server.url, api_key="none", store=None),
    ):
        first = json.loads(run(data, "--questions", "2", *options).stdout)
        assert len(server.requests) == first["questions"] == 2
        report = json.loads(run(data, *options).stdout)
        assert len(server.requests) == 3, "no model is asked where the gold SQL gives no rows"
        other = run(data, *options, "--seed", "1")
        assert "seed 0, here 1" in other.stderr
    assert (report["questions"], report["left_out"]) == (3, 1)
    assert (report["lm"], report["seed"], report["limit"]) == ("openai/sql", 0, None)
    assert {"commit", "embedder"} <= report.keys()
    records = {record["id"]: record for record in map(json.loads, file.read_text().splitlines())}
    assert {number: record["right"] for number, record in records.items()} == {0: True, 1: False, 2: False}
    assert records[0]["sql"] == SQL["in 2020?"]
    assert records[0]["gold_tables"] == records[0]["tables"] == ["music.concert", "music.singer"]
    assert records[0]["shown"] == ["music.concert", "music.singer"]


def test_gold_statements_run_as_they_are_and_stop_in_time(tmp_path):
    file = tmp_path / "rooms.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE room (name TEXT)")
        connection.executemany("INSERT INTO room VALUES (?)", [("hall",), (b"caf\xe9",)])
        connection.commit()
    assert gold_rows(file, 'SELECT count(*) FROM room WHERE name = "hall"') == [(1,)]
    assert gold_rows(file, "SELECT nothing FROM nowhere") is None
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    assert gold_rows(file, endless, seconds=0.2) is None
