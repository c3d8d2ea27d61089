"""``python -m tag_bench``, and ``speed operators`` in its smallest cases."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tag_bench.__main__ import main
from tag_bench.server import ServerProcess

pytestmark = pytest.mark.slow


def test_commands_are_found_by_their_modules():
    listed = CliRunner().invoke(main, ["--help"]).output
    assert "speed" in listed
    assert "server" not in listed  # a module without a command
    assert "sources" in CliRunner().invoke(main, ["speed", "--help"]).output
    assert "No such command" in CliRunner().invoke(main, ["nothing"]).output


def test_the_smallest_case_of_rows_a_second():
    done = subprocess.run(
        [sys.executable, "-m", "tag_bench", "speed", "lm", "--case", "filter_duplicates", "--repeats", "1"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    assert case["name"] == "filter_duplicates"
    assert case["ours"]["requests"] == 100
    assert case["ours"]["rows_per_second"] > 0


def test_the_server_counts():
    with ServerProcess(latency=0.0) as server:
        assert server.stats()["requests"] == 0
        server.reset()
        assert server.stats()["max_in_flight"] == 0


def test_the_better_of_each_pair_is_one_request_a_pair():
    done = subprocess.run(
        [sys.executable, "-m", "tag_bench", "speed", "operators", "--case", "topk_pair"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    assert (case["name"], case["ours"]["requests"], case["ours"]["right"]) == ("topk_pair", 500, 1.0)


def test_a_case_of_the_operators():
    done = subprocess.run(
        [sys.executable, "-m", "tag_bench", "speed", "operators", "--case", "agg_5k"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (case,) = json.loads(done.stdout)["cases"]
    assert case["name"] == "agg_5k"
    assert 2 <= case["ours"]["rounds"] < case["ours"]["requests"]  # more where requests come late
    assert {"seconds", "requests", "tokens", "peak_mb", "seconds_above_server"} <= set(case["ours"])
