"""tag_bench.records: a file of records keeps what a run finished, and is never mixed with another run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tag_bench import records as records_module
from tag_bench.records import Records, commit, read_records, settings_of, with_progress

SETTINGS = {"data": "spider", "method": "exact", "limit": None, "commit": "abc1234"}
QUESTIONS = ["one", "two", "three"]


def key(question):
    return QUESTIONS.index(question), question


def asked(file, ask, settings=SETTINGS, questions=QUESTIONS):
    return Records(file, settings).each(questions, ask, key, "asked")


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    file = tmp_path / "records.jsonl"

    def stops(question):
        if question == "three":
            raise KeyboardInterrupt
        return {"length": len(question)}

    with pytest.raises(KeyboardInterrupt):
        asked(file, stops)
    assert [record["question"] for record in read_records(file)] == ["one", "two"]
    seen = []
    told = asked(file, lambda question: seen.append(question) or {"length": len(question)})
    assert seen == ["three"]
    assert [record["length"] for record in told] == [3, 3, 5]
    assert all(record["settings"]["method"] == "exact" for record in read_records(file))


def test_records_are_the_same_from_memory_and_from_a_file(tmp_path):
    def ask(question):
        return {"tables": ("a", "b"), "by": {2: len(question)}}

    assert asked(None, ask) == asked(tmp_path / "r.jsonl", ask) == asked(tmp_path / "r.jsonl", ask)


@pytest.mark.parametrize("cut", [8, 20, -3, -1])
def test_a_line_that_was_cut_is_asked_again_and_harms_no_other(tmp_path, cut):
    file = tmp_path / "records.jsonl"
    asked(file, lambda question: {"text": "é\u2028" * 3}, questions=["one", "two"])
    first, second, _ = file.read_bytes().split(b"\n")
    file.write_bytes(first + b"\n" + (second + b"\n")[:cut])
    told = asked(file, lambda question: {"text": "again"})
    whole = "é\u2028" * 3
    assert [record["text"] for record in told] == [whole, whole if cut == -1 else "again", "again"]
    assert [record["id"] for record in read_records(file)] == [0, 1, 2]


def test_records_of_other_settings_are_refused_by_name(tmp_path):
    file = tmp_path / "records.jsonl"
    asked(file, lambda question: {})
    with pytest.raises(click.ClickException, match=r"other settings \(method 'exact', here 'greedy'\)"):
        asked(file, lambda question: {}, {**SETTINGS, "method": "greedy"})
    with pytest.raises(click.ClickException, match="weights None, here 'spider'"):
        asked(file, lambda question: {}, {**SETTINGS, "weights": "spider"})
    with pytest.raises(click.ClickException, match="commit 'abc1234', here 'def5678'"):
        asked(file, lambda question: {}, {**SETTINGS, "commit": "def5678"})
    before = file.read_text()
    assert len(asked(file, lambda question: {}, {**SETTINGS, "limit": 2}, questions=["one", "two"])) == 2
    assert file.read_text() == before


def test_a_question_that_has_changed_is_refused(tmp_path):
    file = tmp_path / "records.jsonl"
    asked(file, lambda question: {})
    with pytest.raises(click.ClickException, match="question 0 is 'one', here 'uno'"):
        Records(file, SETTINGS).each(["uno"], lambda question: {}, lambda question: (0, question), "asked")


@pytest.mark.parametrize("text", ['[{"id": 1}]\n', "not records", '{"id": 1}\n{"name": 2}\n{"id": 3}\n', '{"id": 1}\n'])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, text):
    file = tmp_path / "mine.jsonl"
    file.write_text(text)
    with pytest.raises(click.ClickException, match=r"is not a record|records without settings"):
        Records(file, SETTINGS)
    assert file.read_text() == text
    with pytest.raises(click.ClickException, match=r"use .*mine\.jsonl"):
        Records(file.with_suffix(".json"), SETTINGS)


def test_a_question_that_failed_is_asked_again(tmp_path):
    file = tmp_path / "records.jsonl"
    asked(file, lambda question: {"error": "no connection" if question == "two" else ""})
    seen = []
    told = asked(file, lambda question: seen.append(question) or {"error": ""})
    assert seen == ["two"]
    assert [record["error"] for record in told] == ["", "", ""]


def test_settings_are_the_options_of_the_command_and_the_commit(tmp_path):
    given = {}

    @click.group()
    @click.option("--plugin")
    def main(plugin): ...

    @main.command()
    @click.option("--data", type=click.Path(path_type=Path))
    @click.option("--weights", type=click.Path(path_type=Path))
    @click.option("-k", "sizes", multiple=True, type=int)
    @click.option("--records")
    def command(**options):
        given.update(settings_of(embedder="words"))

    weights = tmp_path / "weights.json"
    seen = []
    for text in ("{}", '{"a": 1}'):
        weights.write_text(text)
        main(["--plugin", "mine", "command", "--data", str(tmp_path), "--weights", str(weights), "-k", "2",
              "--records", "r.jsonl"], standalone_mode=False)  # fmt: skip
        seen.append(given.pop("weights"))
    assert seen[0] != seen[1]  # the file has changed
    sums = {name: given.pop(name) for name in ("source_md5", "weights_md5", "data_md5")}
    assert set(sums["data_md5"]) == {tmp_path.name}
    assert given == {"plugin": "mine", "data": tmp_path.name, "sizes": [2], "embedder": "words", "commit": commit()}


def test_the_commit_is_that_of_the_code_that_figures_depend_on(tmp_path, monkeypatch):
    clone = tmp_path / "clone"
    for name in ("tag_bench/records.py", "tag_bench/page/page.md", "tagframe/core.py", "tests/test_core.py",
                 "constraints-other.txt", "README.md", "Makefile"):  # fmt: skip
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("first")

    def git(*command):
        by = ("-c", "user.name=n", "-c", "user.email=e")
        done = subprocess.run(["git", *by, *command], cwd=clone, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def committed():
        git("add", ".")
        git("commit", "-qm", "all")
        return git("rev-parse", "--short=7", "HEAD")

    git("init", "-q")
    monkeypatch.setattr(records_module, "__file__", str(clone / "tag_bench" / "records.py"))
    first = committed()
    for name in ("tests/test_core.py", "tag_bench/page/page.md", "README.md", "Makefile"):
        (clone / name).write_text("second")
        assert commit() == first
        committed()
        assert commit() == first
    for name in ("tagframe/core.py", "constraints-other.txt"):
        (clone / name).write_text("second")
        assert str(commit()).endswith("-dirty")
        first = committed()
        assert commit() == first


def test_the_commit_is_none_for_an_archive_in_another_repository(tmp_path, monkeypatch):
    inside = tmp_path / "other" / "tag_bench"
    inside.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(records_module, "__file__", str(inside / "records.py"))
    assert commit() is None


SLOW = """
import sys, time
from tag_bench import records
from pathlib import Path
records.EVERY = 0.05
def ask(question):
    time.sleep(0.02)
    return {}
kept = records.Records(Path(sys.argv[1]), {})
kept.each(list(range(100_000)), ask, lambda one: (one, str(one)), "spider exact")
"""


def test_a_killed_run_has_told_how_far_it_is_and_kept_it(tmp_path):
    file, root = tmp_path / "records.jsonl", Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW, file], env=environment, stderr=subprocess.PIPE, text=True, cwd=root
    )
    assert running.stderr is not None
    lines = [running.stderr.readline() for _ in range(2)]
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stderr.close()
    for line in lines:
        assert line.startswith("spider exact: ")
        assert " of 100000 questions in " in line
        assert "\r" not in line
    finished = int(lines[1].split(": ")[1].split(" of ")[0])
    kept = [record["id"] for record in read_records(file)]
    assert kept == list(range(len(kept)))
    assert len(kept) >= finished >= 1


def test_a_short_run_off_a_terminal_says_nothing(capsys):
    assert list(with_progress([1, 2], "short")) == [1, 2]
    assert capsys.readouterr().err == ""
