"""``tag_bench answers`` on a benchmark of the same form, made up, over the small tables of the pipelines' tests."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.answers import command
from tag_bench.answers.databases import read_questions
from tag_bench.answers.judgements import anything
from tag_bench.answers.records import answered as record_of
from tag_bench.records import read_records
from tag_bench.server import Request, Server
from tagframe.answer import Doubt
from tagframe.cli import main
from tests.pipelines import bird

HEADER = [
    "Query ID",
    "DB used",
    "Query",
    "(TAG baseline) Text2SQL Input",
    "Query type",
    "Knowledge/Reasoning Type",
    "Answer",
]
ROWS = [
    ["0", "california_schools", "How many strong schools lie by the bay?", "Strong schools", "Match", "Knowledge", "2"],
    ["5", "california_schools", "Two commonest female names?", "", "Match", "Knowledge", "['Eve', 'Ann']"],
    ["42", "california_schools", "How many differ by more?", "", "Comparison", "Knowledge", "7"],
    ["64", "california_schools", "County of best reputation?", "", "Ranking", "Knowledge", "Kern"],
    ["81", "california_schools", "Summarise the schools.", "", "Aggregation", "Reasoning", ""],
    ["18", "european_football_2", "Who is an Aquarius?", "", "Match", "Knowledge", "Adam Tall"],
    ["8", "codebase_community", "How many comments?", "", "Match", "Reasoning", "4"],
]  # fmt: skip


@pytest.fixture
def data(tmp_path):
    """A folder like TAG-Bench's beside one like BIRD's; of the football players' sign of the zodiac nobody judges."""
    folder = tmp_path / "tag_bench"
    folder.mkdir()
    with (folder / "tag_queries.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *ROWS])
    (folder / "answers_here.json").write_text(json.dumps({"note": "rebuilt", "42": [2]}))
    judgements = {**bird.JUDGEMENTS, "filters": [f for f in bird.JUDGEMENTS["filters"] if "Aquarius" not in str(f)]}
    judgements["texts"] = [{"instruction_contains": "Summarise", "text": "Much alike."}]
    (folder / "judgements.json").write_text(json.dumps(judgements))
    for name in ("california_schools", "european_football_2"):
        below = tmp_path / "bird" / "database" / name
        below.mkdir(parents=True)
        with closing(sqlite3.connect(below / f"{name}.sqlite")) as connection:
            for table, frame in getattr(bird, name)().items():
                frame.to_sql(table, connection, index=False)
    return folder


def run(data, *arguments):
    return CliRunner().invoke(command, ["--data", str(data), *map(str, arguments)], catch_exceptions=False)


def answered(data, *arguments):
    result = run(data, "--method", "handwritten", "--lm", "judgements", *arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_question_is_run_scored_or_named(data):
    report = answered(data, "--questions", "all")
    records = {record["id"]: record for record in report["questions"]}
    assert report["method"] == "handwritten"
    assert {id: record["status"] for id, record in records.items()} == {
        0: "run", 5: "run", 42: "run", 64: "run", 81: "run", 18: "error", 8: "not_run",
    }  # fmt: skip
    assert (records[0]["prediction"], records[0]["strict"], records[0]["tolerant"]) == ([2], True, True)
    assert (records[5]["strict"], records[5]["tolerant"]) == (False, True)
    assert (records[42]["strict"], records[42]["strict_here"]) == (False, True)
    assert (records[81]["text"], records[81]["strict"], records[81]["answer"]) == ("Much alike.", None, None)
    assert "no recorded judgement covers 'Claim: a person born on {birthday} is an Aquarius'" in records[18]["error"]
    assert (records[0]["assumptions"], records[0]["doubts"]) == ([], [])
    assert records[0]["warnings"] == []
    assert "1 of 6 rows of" in records[81]["warnings"][0]  # a tested school that is none of the schools
    assert report["missing"] == 0
    assert records[18]["strict"] is False
    assert "no database codebase_community" in records[8]["error"]
    assert records[8]["strict"] is None
    assert records[0]["calls"] == 2  # counties, each once
    assert records[0]["rows_asked"] == 3
    overall = report["summary"]["overall"]
    assert (overall["strict_count"], overall["strict_here_count"], overall["tolerant_here_count"]) == (1, 2, 3)
    assert (overall["questions"], overall["with_key"], overall["errors"]) == (6, 5, 1)
    assert report["summary"]["by_type"]["ranking"]["strict"] == 0.0
    assert set(report["summary"]["by_kind"]) == {"knowledge", "reasoning"}


def test_a_record_has_what_an_answer_says_of_itself(data):
    question = read_questions(data)[0]
    query = SimpleNamespace(assumptions=("closed ones are left out",))
    doubts = (Doubt("value", "no cell of schools.City is 'Atlantis'"),)
    answer = tf.Answer(question.text, "Two.", [np.int64(2), pd.NA], query, pd.DataFrame(), doubts=doubts)
    record = record_of(question, answer)
    assert (record["prediction"], record["text"]) == ([2, None], "Two.")
    assert record["assumptions"] == ["closed ones are left out"]
    assert record["doubts"] == [{"reason": "value", "facts": "no cell of schools.City is 'Atlantis'"}]


def test_runnable_leaves_out_what_has_no_rows_and_ids_choose(data):
    assert [record["id"] for record in answered(data)["questions"]] == [0, 5, 42, 64, 81, 18]
    assert [record["id"] for record in answered(data, "--questions", "42, 0")["questions"]] == [42, 0]
    with pytest.raises(AssertionError, match="no question '7'"):
        answered(data, "--questions", "0,7")


def test_a_run_goes_on_from_its_records(data, tmp_path):
    records = tmp_path / "records.jsonl"
    first = answered(data, "--questions", "0,42", "--records", records)
    with records.open("a") as lines:
        lines.write('{"id": 64, "type": "rank')  # killed while it wrote
    kept = json.loads(records.read_text().splitlines()[0])
    kept["seconds"] = 123.0
    records.write_text("\n".join([json.dumps(kept), *records.read_text().splitlines()[1:]]) + "\n")
    second = answered(data, "--questions", "0,42,64,18,8", "--records", records)
    assert second["questions"][0]["seconds"] == 123.0
    assert second["questions"][1] == first["questions"][1]
    assert [record["status"] for record in second["questions"]] == ["run", "run", "run", "error", "not_run"]
    assert [one["id"] for one in read_records(records) if not one["error"]] == [0, 42, 64]  # the others are tried again
    judgements = json.loads((data / "judgements.json").read_text())
    judgements["filters"] += [known for known in bird.JUDGEMENTS["filters"] if "Aquarius" in str(known)]
    (data / "judgements.json").write_text(json.dumps(judgements))
    changed = run(data, "--method", "handwritten", "--lm", "judgements", "--questions", "0,18", "--records", records)
    assert "records of other settings (data_md5" in changed.stderr, "other judgements are other answers"
    third = answered(data, "--questions", "0,18", "--records", tmp_path / "more.jsonl")
    assert (third["questions"][1]["status"], third["questions"][1]["prediction"]) == ("run", ["Adam Tall"])
    other = run(data, "--method", "text2sql", "--lm", "judgements", "--questions", "0", "--records", records)
    assert "method 'handwritten', here 'text2sql'" in other.stderr
    refused = run(data, "--records", tmp_path / "records.json")
    assert refused.exit_code == 1
    assert "records.jsonl" in refused.stderr


def test_the_listing_says_what_is_missing(data):
    lines = run(data, "--list").stdout.splitlines()
    assert len(lines) == len(ROWS)
    assert "runnable" in lines[0]
    assert lines[0].endswith("pipelines.california_schools.strong_in_math_in_the_bay_area")
    assert "no database codebase_community" in lines[-1]


def test_a_folder_without_questions_or_judgements_is_named(data, tmp_path):
    assert "no tag_queries.csv" in run(tmp_path).output
    (data / "judgements.json").unlink()
    assert "no judgements.json" in run(data, "--method", "handwritten", "--lm", "judgements").output


@pytest.mark.slow
@pytest.mark.parametrize("method", ["text2sql", "rag", "rerank", "text2sql_lm", "handwritten", "ask"])
def test_every_method_runs_to_its_end(data, method):
    options = ["--lm", "scripted", "--questions", "5,42,64,81", "--json", "-"]
    result = run(data, "--method", method, *options)
    assert result.exit_code == 0, result.output
    records = {record["id"]: record for record in json.loads(result.stdout)["questions"]}
    assert [(record["status"], record["error"]) for record in records.values()] == [("run", "")] * 4
    number, summary = records[42], records[81]
    if method != "handwritten":  # its own arithmetic asks nothing
        assert number["prediction"] == [5 if method == "text2sql" else 6]  # rows of its first table, where SQL counts
        assert number["calls"] >= 1
        assert number["tokens"] > 0
    assert summary["text"] in ("They are much alike.", "Six.") or method == "text2sql"
    has_embedder = json.loads(result.stdout)["embedder"] is not None
    assert has_embedder == (method in ("rag", "rerank", "ask")), "records of another embedder are of another run"


def test_rows_are_embedded_before_the_questions_and_counted(data):
    arguments = ["--method", "rag", "--lm", "scripted", "--questions", "0,42,18"]
    result = run(data, *arguments, "--embedder", "words", "--json", "-")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["embedder"] == "hashed words"
    counts = {
        name: sum(map(len, getattr(bird, name)().values())) for name in ("california_schools", "european_football_2")
    }
    assert {name: row["rows"] for name, row in report["rows"].items()} == counts
    assert f"california_schools: making the vectors of {counts['california_schools']:,} rows" in result.stderr


def test_an_invalid_statement_of_text2sql_is_a_wrong_answer(data):
    def invalid_once(request):
        return "SELECT nothing FROM nowhere" if "differ by more" in str(request.messages) else anything(request)

    with Server(invalid_once) as server, tf.context(lm="openai/x", api_base=server.url, api_key="none", store=None):
        result = run(data, "--method", "text2sql", "--questions", "5,42", "--json", "-")
    report = json.loads(result.stdout)
    assert [one["status"] for one in report["questions"]] == ["run", "error"]
    assert report["summary"]["overall"]["errors"] == 1
    assert "text2sql: of 2 with a key" in result.stderr


def test_a_replayed_run_notes_what_every_question_lacks(data, tmp_path):
    store = tmp_path / "answers.sqlite"
    result = run(data, "--method", "text2sql", "--lm", f"replay:{store}", "--questions", "0,42", "--json", "-")
    report = json.loads(result.stdout)
    records, overall = report["questions"], report["summary"]["overall"]
    assert (result.exit_code, report["missing"]) == (1, 2)
    assert f"2 of 2 questions lack answers of the model: 'tagframe lm export {store} -o" in result.stderr
    assert [record["status"] for record in records] == ["error", "error"]
    assert all("ReplayMiss" in record["error"] for record in records)
    assert [(record["strict"], record["tokens"], record["seconds"]) for record in records] == [(None, None, None)] * 2
    assert (overall["strict"], overall["errors"], overall["tokens"], overall["seconds"]) == (None, 0, None, None)
    exported = CliRunner().invoke(main, ["lm", "export", str(store), "-o", str(tmp_path / "batch.jsonl")])
    assert exported.exit_code == 0, exported.output
    assert len((tmp_path / "batch.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rounds"),
    [("text2sql", 1), ("rag", 1), ("rerank", 2), ("text2sql_lm", 2), ("handwritten", 1), ("ask", 3)],
)
def test_a_run_is_answered_elsewhere_in_few_rounds_of_one_file(data, tmp_path, method, rounds):
    store, file, answers = tmp_path / "store.sqlite", tmp_path / "batch.jsonl", tmp_path / "answers.jsonl"
    options = ["--method", method, "--lm", f"replay:{store}", "--questions", "0,5,64,81"]
    for _ in range(rounds):
        run(data, *options, "--json", "-")
        assert shell("export", store, "-o", file).exit_code == 0
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert lines
        assert all(line["custom_id"].count("/") == 1 for line in lines)
        said = [
            {"custom_id": line["custom_id"], "answer": anything(Request(line["body"], {}, 0, 1, 1))} for line in lines
        ]
        answers.write_text("\n".join(map(json.dumps, said)))
        assert shell("import", store, answers).exit_code == 0
    result = run(data, *options, "--json", "-")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["missing"]) == (0, 0)
    assert [(record["status"], record["error"]) for record in report["questions"]] == [("run", "")] * 4
    assert all(record["tokens"] is None and record["seconds"] is None for record in report["questions"])
    assert report["summary"]["overall"]["tokens"] is None


def shell(*arguments):
    return CliRunner().invoke(main, ["lm", *map(str, arguments)])
