"""tag_bench speed selectors, without the solver."""

import json

from click.testing import CliRunner

from tag_bench.speed.selectors import command


def test_selectors_are_timed_for_every_k(tmp_path):
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in ("cat", "dog", "owner")}
    questions = [{"question": "cat and dog", "db_id": "d", "gold_tables": ["cat", "dog"]}]
    (tmp_path / "dev.json").write_text(json.dumps(questions))
    (tmp_path / "dev_tables.json").write_text(json.dumps(tables))
    options = ["--data", str(tmp_path), "--mip-questions", "0", "--json", str(tmp_path / "out.json")]
    outcome = CliRunner().invoke(command, options)
    assert outcome.exit_code == 0, outcome.output
    report = json.loads((tmp_path / "out.json").read_text())
    assert list(report["exact"]) == list(report["greedy"]) == ["2", "3", "5", "10"]
    assert (report["problems"], report["objective_max_difference"]) == (0, None)
