"""``tag_bench compare``: McNemar's test and the paired bootstrap over two files of records."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tag_bench.compare import bootstrap, command


def write(file, scores, settings=None, first=0):
    lines = [
        {"id": first + number, "question": f"q{first + number}", "scores": score, "settings": settings or {}}
        for number, score in enumerate(scores)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_bootstrap_agrees_with_scipy_on_paired_differences():
    stats = pytest.importorskip("scipy.stats")
    differences = np.random.default_rng(3).choice([-1.0, -0.5, 0.0, 0.0, 0.0, 0.5, 1.0], 300)
    low, high, p = bootstrap(differences, seed=0)
    theirs = stats.bootstrap((differences,), np.mean, method="percentile", rng=0).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert (p < 0.05) == (not low <= 0 <= high)
    assert bootstrap(differences, seed=0) == (low, high, p)


def test_two_runs_are_compared_over_the_questions_of_both(tmp_path):
    right = [1.0] * 12 + [0.0] * 8
    first = write(tmp_path / "a.jsonl", [{"CR@2": one, "R@2": one} for one in right], {"data": "x", "method": "exact"})
    better = [{"CR@2": 1.0, "R@2": max(one, 0.75)} for one in right]
    second = write(tmp_path / "b.jsonl", [*better[1:], {"CR@2": 0.0}], {"data": "x", "method": "auto", "limit": 3}, 1)
    result = json.loads(run(first, second, "--json", "-").output)
    assert result["questions"] == {"both": 19, "only_a": 1, "only_b": 1}
    assert result["other_settings"] == ["method: A exact, B auto"]
    complete = result["measures"]["CR@2"]
    assert (complete["questions"], complete["better"], complete["test"]) == (19, {"a": 0, "b": 8}, "McNemar, exact")
    assert (complete["a"], complete["b"], complete["difference"]) == (57.89, 100.0, 42.11)
    assert complete["p"] == pytest.approx(2 / 2**8)
    assert complete["interval"][0] < 42.11 < complete["interval"][1]
    assert result["measures"]["R@2"]["test"] == "paired bootstrap"
    told = run(first, second, "--measure", "CR@2").output
    assert "19 questions in both, 1 only in A, 1 only in B" in told
    assert "57.89  100.00  +42.11" in told
    assert "R@2 " not in told.replace("CR@2", "")


def test_a_run_does_not_differ_from_itself(tmp_path):
    file = write(tmp_path / "a.jsonl", [{"CR@2": 1.0}, {"CR@2": 0.0}])
    one = json.loads(run(file, file, "--json", "-").output)["measures"]["CR@2"]
    assert (one["difference"], one["interval"], one["p"]) == (0.0, [0.0, 0.0], 1.0)


def test_right_answers_are_compared_where_both_have_a_key(tmp_path):
    for name, marks in (("a", [True, None, False]), ("b", [True, True, True])):
        lines = [{"id": number, "question": "q", "right": mark} for number, mark in enumerate(marks)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = json.loads(run(tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--json", "-").output)
    assert result["measures"]["right"]["questions"] == 2
    assert result["measures"]["right"]["better"] == {"a": 0, "b": 1}


def test_runs_that_cannot_be_compared_are_refused(tmp_path):
    first = write(tmp_path / "a.jsonl", [{"CR@2": 1.0}], {"data": "spider"})
    other = write(tmp_path / "b.jsonl", [{"CR@2": 1.0}], {"data": "bird"})
    later = write(tmp_path / "c.jsonl", [{"CR@2": 1.0}], {"data": "spider"}, first=5)
    third = write(tmp_path / "d.jsonl", [{"CR@3": 1.0}], {"data": "spider"})
    assert "is of spider" in run(first, other).output
    assert "share none" in run(first, later).output
    assert "no measure is in both files" in run(first, third).output
    assert "measure CR@9 is not in both files; both have: CR@2" in run(first, first, "--measure", "CR@9").output
