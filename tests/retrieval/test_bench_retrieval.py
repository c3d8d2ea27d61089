"""tag_bench.retrieval: the metrics, and the command on a small folder."""

import json

import pytest
from click.testing import CliRunner

from tag_bench.data import Question
from tag_bench.retrieval import Found, command, scores


def found(gold, tables, connected=True):
    return Found(Question("q", "d", frozenset(gold), 0), {2: tuple(tables)}, {2: connected}, {"prepare": 0.1})


def test_metrics_by_hand():
    result = scores([found({"a", "b"}, ["a", "b"]), found({"a", "b", "c"}, ["a", "x"], connected=False)], 2)
    assert result == {"P": 75.0, "R": 66.67, "F1": 70.0, "CR": 50.0, "exact": 50.0, "connected": 50.0}


def test_several_sizes_follow_one_option(tmp_path):
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in ("cat", "dog", "owner")}
    questions = [{"question": "cat and dog", "db_id": "d", "gold_tables": ["cat", "dog"]}]
    (tmp_path / "dev.json").write_text(json.dumps(questions))
    (tmp_path / "dev_tables.json").write_text(json.dumps(tables))
    arguments = ["--data", str(tmp_path), "--method", "lexical", "-k", "2", "3", "--json", str(tmp_path / "out.json")]
    outcome = CliRunner().invoke(command, arguments)
    assert outcome.exit_code == 0, outcome.output
    report = json.loads((tmp_path / "out.json").read_text())
    assert list(report["all"]) == ["2", "3"]
    assert report["all"]["2"]["CR"] == 100.0
    assert report["questions"] == 1


@pytest.mark.parametrize("option", [["--method", "no"], ["-k", "0"], ["--decompositions", "missing.json"]])
def test_bad_options_end_with_a_message(tmp_path, option):
    (tmp_path / "dev.json").write_text("[]")
    (tmp_path / "dev_tables.json").write_text("{}")
    outcome = CliRunner().invoke(command, ["--data", str(tmp_path), *option])
    assert outcome.exit_code != 0
    assert "Traceback" not in outcome.output
