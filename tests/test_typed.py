"""What a type checker tells a user: ten typos in a script are ten errors, and what is right is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tagframe

ROOT = Path(tagframe.__file__).parents[1]
WRONG = "# wrong"
SCRIPT = """
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import tagframe as tf
from tagframe.accessor import TagAccessor
from tagframe.lm import Quote

frame = pd.DataFrame({"city": ["Oslo"], "people": [700_000]})
corpus = tf.open_corpus({"cities": frame})
tf.configure(lm="openai/gpt-4o-mini", corpus=corpus, concurrency=8)
tf.configure(lmm="openai/gpt-4o-mini")  # wrong

coast: pd.DataFrame = tf.sem_filter(frame, "{city} is on a coast", return_all=True, budget=0.5, lm="openai/gpt-4o")
both: pd.DataFrame = tf.sem_filter(frame, ["{city} is on a coast", "{city} is a capital"], rows_per_call="auto")
cost: Quote = tf.sem_filter(frame, "{city} is on a coast", quote=True)
parts: Iterator[pd.DataFrame] = tf.sem_map(tf.read_batches("cities.parquet"), "The country of {city}")
path: Path = tf.sem_filter([frame], "{city} is on a coast", to="coast")
near: pd.DataFrame = tf.sem_search(frame, "city", "a harbour", K=3, embedder="a model")
tf.sem_filtr(frame, "{city} is on a coast")  # wrong
tf.sem_filter(frame, "{city} is on a coast", return_al=True)  # wrong
tf.sem_filter(frame, "{city} is on a coast", budgt=0.5)  # wrong
tf.sem_topk(frame, "Which {city} is largest?", k=3)  # wrong
tf.sem_join(frame, frame, "{city:left} is near {city:right}", how="iner")  # wrong

with tf.context(store=None, progress=False):
    pass
with tf.context(concurency=3):  # wrong
    pass


async def several() -> None:
    best: pd.DataFrame = await tf.asem_topk(frame, "Which {city} is largest?", 3, compare="pair")
    await tf.asem_agg(best, "Describe each {city}", group_bye="city")  # wrong
    async for part in await tf.asem_filter([frame], "{city} is on a coast"):
        part.head()


tag = TagAccessor(frame)
merged: pd.DataFrame = tag.merge(coast, on="city", on_loss="warn")
found = tag.sem_extract("city", {"country": None}, extract_quotes=True)
priced: Quote = tag.quote.sem_agg("Describe each {city}")
tag.merge(coast, on_los="warn")  # wrong
tag.sem_scor("How large is {city}?")  # wrong
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("user") / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    (path.parent / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}), encoding="utf-8")
    return path


def wrong() -> set[int]:
    lines = {number for number, line in enumerate(SCRIPT.split("\n"), 1) if line.endswith(WRONG)}
    assert len(lines) == 10
    return lines


@pytest.mark.slow
def test_mypy_finds_each_typo_and_nothing_else(script: Path):
    pytest.importorskip("mypy", reason="needs the extra lint")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--output=json", str(script)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    errors = {one["line"]: one["message"] for one in told if one["severity"] == "error"}
    assert set(errors) == wrong(), done.stdout + done.stderr


@pytest.mark.slow
def test_pyright_does_too(script: Path):
    # PyPI's pyright downloads its program when it first runs, which a test must not.
    pyright = shutil.which("pyright")
    if pyright is None or Path(pyright).parent == Path(sys.executable).parent:
        pytest.skip("needs pyright on the path: npm install -g pyright")
    done = subprocess.run(
        [pyright, "--outputjson", "--pythonpath", sys.executable, str(script)],
        cwd=script.parent,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    errors = {one["range"]["start"]["line"] + 1: one["message"] for one in told if one["severity"] == "error"}
    assert set(errors) == wrong(), errors


def test_what_type_checkers_read_is_as_the_declarations_are():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "write_stubs.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"python tools/write_stubs.py writes them: {done.stdout}{done.stderr}"
