"""The log has what ran and its numbers, in fields too, and never a cell or a key."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe import logs
from tagframe.errors import FailedRowsWarning, RowsLostWarning
from tagframe.merging import plan_tables, run_plan

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"


def test_a_run_is_logged_with_its_numbers(server: Server, caplog: pytest.LogCaptureFixture):
    def answers(request: Request) -> str | Reply:
        return error(400, "wrong: zqs-3") if "zqs-3" in request.prompt else "zqs-answer"

    server.answers = answers
    caplog.set_level(logging.DEBUG, "tagframe")
    frame = pd.DataFrame({"name": [f"zqs-{number}" for number in range(6)]})
    with pytest.warns(FailedRowsWarning):
        tf.sem_map(
            frame,
            "Who is {name}?",
            on_error="keep",
            lm="openai/test",
            api_base=server.url,
            api_key="sk-zqs",
            progress=False,
        )
    lines = [(record.name, record.levelname, record.getMessage().partition(" (")[0]) for record in caplog.records]
    assert lines.count(("tagframe.operators", "INFO", "sem_map started")) == 1
    assert lines.count(("tagframe.operators", "WARNING", "sem_map ended")) == 1
    assert lines.count(("tagframe.lm", "DEBUG", "request")) == 6
    assert sum(level == "WARNING" for _, level, _ in lines) == 1  # one for one matter
    (ended,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (ended.rows, ended.failed, ended.calls, ended.reason) == (6, 1, 6, "LMRequestFailed")
    assert "zqs" not in repr([vars(record) for record in caplog.records])


def test_merges_statements_and_warnings_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    left = pd.DataFrame({"city_id": [1, 2, 9], "person": ["zqs-a", "it's zqs-b", "zqs-c"]})
    right = pd.DataFrame({"city_id": [1, 2], "city": ["zqs-x", "zqs-y"]})
    folder = tmp_path / "d"
    folder.mkdir()
    left.to_parquet(folder / "people.parquet")
    right.to_parquet(folder / "cities.parquet")
    caplog.set_level(logging.DEBUG, "tagframe")
    corpus = tf.open_corpus(folder, engine="duckdb")
    corpus.keys.add("d.people.city_id = d.cities.city_id")
    plan = plan_tables(corpus, corpus.ids, anchor="d.people")
    with pytest.warns(RowsLostWarning):
        run_plan(plan, corpus, by="engine", where={"person": ["zqs-a", "it's zqs-b", "zqs-c"]})
    said = {(record.name, record.levelname): record for record in caplog.records}
    assert said["tagframe.corpus", "INFO"].tables == 2
    assert said["tagframe.merging", "INFO"].rows == 2
    assert said["tagframe.merging", "DEBUG"].sql.startswith("SELECT")
    assert said["tagframe.merging", "WARNING"].getMessage() == "RowsLostWarning: A merge lost rows of the anchor."
    assert "zqs" not in repr([vars(record) for record in caplog.records])


@pytest.mark.slow
def test_what_is_only_tried_is_logged_for_debugging(caplog: pytest.LogCaptureFixture):
    frames = {"customers": pd.DataFrame({"customer_id": [1, 2]}), "orders": pd.DataFrame({"customer_id": [1, 1]})}
    with caplog.at_level(logging.DEBUG, "tagframe"), logs.trial(), pytest.raises(tf.errors.FanOut):
        tf.merge(frames, on="customer_id")
    levels = {record.levelno for record in caplog.records if record.getMessage().startswith("merge ")}
    assert levels == {logging.DEBUG}


def test_nothing_is_printed_unless_the_log_is_wanted():
    program = "import tagframe, warnings; warnings.simplefilter('ignore'); tagframe.errors.warn('x', UserWarning)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")
