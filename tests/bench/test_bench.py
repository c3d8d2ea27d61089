"""tag_bench bench: a result for each part of the page of figures, and the page from the results of one commit."""

from __future__ import annotations

import json
import shlex

import click
import pytest
from click.testing import CliRunner

from tag_bench import bench
from tag_bench.__main__ import main

TEMPLATE = """# Figures

Commit {commit}, {date}, {machine}.

## Tables

| | R |
| --- | --- |
| published | 85.5 |
| ours | {first all.2: R CR} |
| others | {second all.2.R|.3f} |

<!-- part first: python -m tag_bench retrieval --data DIR/first -->
<!-- part second: python -m tag_bench retrieval --data DIR/second -->

A sentence of {second all.2.R} alone.

### Below

| | seconds |
| --- | --- |
| published | 1 |
| ours | {third cases.open.seconds|.2f} |

<!-- part third: python -m tests.third -->

## Others

Without figures.
"""
AT = {"commit": "abc1234", "machine": "2 cores", "date": "2026-11-25T10:00:00+00:00"}
FIRST = {"all": {"2": {"R": 93.25, "CR": 100.0}}, **AT}


def test_what_was_not_run_is_not_on_the_page():
    text = bench.page(TEMPLATE, {"first": FIRST})
    assert "Commit abc1234, 2026-11-25, 2 cores." in text
    assert "| ours | 93.2 / 100 |" in text
    assert "- `python -m tag_bench retrieval --data DIR/first`" in text
    assert "second" not in text
    assert "others" not in text
    assert "Below" not in text  # a table of nothing but published figures is none of ours
    assert "## Others\n\nWithout figures.\n" in text
    told = "# Figures\n\n{first all.2.R} %.\n\nBy table:\n\n| second | {second all.2.R} |\n"
    assert bench.page(told, {"first": FIRST}) == "# Figures\n\n93.2 %.\n"
    third = {"cases": [{"name": "open", "seconds": 0.714}], **AT}
    both = bench.page(TEMPLATE, {"third": third})
    assert "## Tables\n\n### Below" in both
    assert "| ours | .71 |" in both
    assert "85.5" not in both


def test_a_figure_that_a_result_lacks_is_an_error():
    with pytest.raises(click.ClickException, match=r"first.json has no figure \{first all.5"):
        bench.filled("{first all.5: R CR}", {"first": FIRST})


def test_results_are_of_the_commit_and_the_machine_of_the_newest(tmp_path):
    made = {
        "old": {**AT, "commit": "0000000", "date": "2026-11-25T09:59:59+00:00"},
        "first": FIRST,
        "elsewhere": {**AT, "machine": "8 cores", "date": "2026-11-01"},
        "before": {**AT, "date": "2026-11-23"},
    }
    for name, result in made.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    assert set(bench.read_results(tmp_path)) == {"first", "before"}
    assert bench.read_results(tmp_path / "none") == {}


@pytest.fixture
def still(monkeypatch):
    """Whoever edits the code while the tests run has figures all the same."""
    monkeypatch.setattr(bench, "commit", lambda: "abc1234")


def test_a_part_is_run_once_for_a_commit(tmp_path, monkeypatch, still):
    results, work = tmp_path / "results", tmp_path / "work"

    def ran(command, at="abc1234"):
        return bench.run("part", command, tmp_path, at, results, work)

    said = tmp_path / "said.json"
    keys = {"missed": ["cat.id = dog.id"], "ms": [1, 2]}
    said.write_text(
        json.dumps({"questions": [{"text": "how many cats"}], "keys": keys, "file": str(tmp_path / "x.json")})
    )
    command = """python -c 'import sys; print(open(sys.argv[1]).read())' DIR/said.json"""
    assert ran(command)
    found = json.loads((results / "part.json").read_text())
    about = {**{name: found[name] for name in AT}, "command": command}
    assert found == {"questions": 1, "keys": {"missed": 1, "ms": [1, 2]}, "file": "DIR/x.json", **about}
    assert found["commit"] == "abc1234"
    assert "cores of" in found["machine"]
    said.write_text("4 tables\n\nno JSON\n")
    assert ran(command)
    assert json.loads((results / "part.json").read_text()) == found  # it was there already
    assert ran(command, "def5678")
    again = json.loads((results / "part.json").read_text())
    assert (again["printed"], again["commit"]) == ("4 tables\n\nno JSON", "def5678")
    assert not ran("python -c 'raise SystemExit(1)'")
    assert json.loads((results / "part.json").read_text()) == again
    assert not work.exists()
    codes = iter(("abc1234", "abc1234-dirty"))
    monkeypatch.setattr(bench, "commit", lambda: next(codes))
    assert not ran("python -c 'print(1)'", "0123456")  # the code was changed while it ran
    assert json.loads((results / "part.json").read_text()) == again


def test_the_page_and_the_figures_of_the_readme_are_written(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    readme = "# Name\n\n- a bullet\n\n## Benchmarks\n\nWithout a model:\n\n- Spider: 1%\n- BIRD: 2%\n\nThe end.\n"
    (tmp_path / "README.md").write_text(readme)
    for name, text in (("PAGE", TEMPLATE), ("README", "- Spider: {first all.2.R}%\n- BIRD: {second all.2.R}%\n")):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(bench, name, tmp_path / name)
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    bench.write({"first": FIRST})
    assert (tmp_path / "docs" / "benchmarks.md").read_text() == bench.page(TEMPLATE, {"first": FIRST})
    written = (tmp_path / "README.md").read_text()
    assert written == readme.replace("- Spider: 1%\n- BIRD: 2%\n", "- Spider: 93.2%\n")
    bench.write({})
    assert (tmp_path / "README.md").read_text() == written  # nothing was measured


@pytest.mark.slow
def test_a_part_that_was_ended_goes_on_from_its_records(tmp_path, still):
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in ("cat", "dog", "owner")}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dev_tables.json").write_text(json.dumps(tables))
    questions = [{"question": "cat and dog", "db_id": "d", "gold_tables": ["cat", "dog"]}]
    (tmp_path / "data" / "dev.json").write_text(json.dumps(questions))
    command = "python -m tag_bench retrieval --data DIR/data --method lexical -k 2"
    assert bench.run("small", command, tmp_path, "abc1234", tmp_path / "results", tmp_path / "work")
    (records,) = (tmp_path / "work").glob("*.jsonl")
    assert records.name == "abc1234-small.jsonl"
    results = {"small": json.loads((tmp_path / "results" / "small.json").read_text())}
    template = f"{{small all.2: R CR}}\n\n<!-- part small: {command} -->\n"
    assert bench.page(template, results) == f"100 / 100\n\n- `{command}`\n"


def test_a_changed_tree_has_no_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "commit", lambda: "abc1234-dirty")
    outcome = CliRunner().invoke(main, ["bench", "--data", str(tmp_path), "retrieval-spider"])
    assert outcome.exit_code == 1
    assert "this tree is abc1234-dirty; commit first" in outcome.output
    assert "no part spyder; there are retrieval-spider, " in CliRunner().invoke(main, ["bench", "spyder"]).output


PARTS = bench.parts(bench.PAGE.read_text(encoding="utf-8"))


def test_every_figure_of_the_page_is_of_a_part_and_every_part_has_one():
    texts = [file.read_text(encoding="utf-8") for file in (bench.PAGE, bench.README)]
    assert {match[1] for text in texts for match in bench._FIGURE.finditer(text)} == set(PARTS)


@pytest.mark.slow
def test_the_command_of_every_part_can_be_called(tmp_path):
    for words in map(shlex.split, PARTS.values()):
        if words[2] != "tag_bench":
            assert (bench.ROOT / f"{words[2].replace('.', '/')}.py").is_file()
            continue
        for place in (tmp_path / word for word in words if word.startswith(bench.DATA)):
            (place.parent if place.suffix else place).mkdir(parents=True, exist_ok=True)
            if place.suffix:
                place.touch()
        group, arguments = main, [word.replace(bench.DATA, str(tmp_path / bench.DATA)) for word in words[3:]]
        while isinstance(group, click.Group):
            found = group.get_command(click.Context(group), arguments.pop(0))
            assert found is not None
            group = found
        assert group.make_context("part", arguments).params
