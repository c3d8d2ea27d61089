"""What a type checker tells a user: each typo in a script is an error, and what is right is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tagframe
from tests.test_docs import examples

ROOT = Path(tagframe.__file__).parents[1]
WRONG = "# wrong"
OPERATORS = """
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import tagframe as tf
from tagframe.lm import Quote

frame = pd.DataFrame({"city": ["Oslo"], "people": [700_000]})
corpus = tf.open_corpus({"cities": frame})
tf.configure(lm="openai/gpt-4o-mini", corpus=corpus, concurrency=8)
tf.configure(lmm="openai/gpt-4o-mini")  # wrong

coast: pd.DataFrame = tf.sem_filter(frame, "{city} is on a coast", return_all=True, budget=0.5, lm="openai/gpt-4o")
cost: Quote = tf.sem_filter(frame, "{city} is on a coast", quote=True)
parts: Iterator[pd.DataFrame] = tf.sem_map(tf.read_batches("cities.parquet"), "The country of {city}")
path: Path = tf.sem_filter([frame], "{city} is on a coast", to="coast")
near: pd.DataFrame = tf.sem_search(frame, "city", "a harbour", K=3, embedder="a model")


class Guest:  # as a frame of Polars or Arrow
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


guest: pd.DataFrame = tf.sem_filter(Guest(), "{city} is on a coast", return_all=True)
tf.sem_join(Guest(), guest, 3)  # wrong
tf.open_corpus({"cities": Guest(), "others": frame})
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
    best: pd.DataFrame = await tf.asem_topk(frame, "Which {city} is largest?", 3, debias=True)
    await tf.asem_agg(best, "Describe each {city}", group_bye="city")  # wrong
    async for part in await tf.asem_filter([frame], "{city} is on a coast"):
        part.head()


tag = tf.tag(frame)
merged: pd.DataFrame = tag.merge(coast, on="city", on_loss="warn")
found = tag.sem_extract("city", {"country": None}, extract_quotes=True)
priced: Quote = tag.sem_agg("Describe each {city}", quote=True)
tag.merge(coast, on_los="warn")  # wrong
tag.sem_scor("How large is {city}?")  # wrong
kept: pd.DataFrame = tf.tag(frame).sem_filter("{city} is on a coast", return_all=True)
tf.tag(frame).sem_fliter("{city} is on a coast")  # wrong
tf.tag(frame).sem_filter("{city} is on a coast", retrun_all=True)  # wrong
tf.tag("cities.csv")  # wrong
"""


DOORS = """
import pandas as pd

import tagframe as tf
from tagframe.lm import Quote

corpus = tf.open_corpus("bank.sqlite", progress=False)
tf.open_corpus("bank.sqlite", catalog="bank.db")  # wrong
tf.configure(lm_for={"syn": "openai/gpt-4o"}, store=None)
tf.configure(embeder="a model")  # wrong
with tf.context(lm="openai/gpt-4o-mini", budget=1.0) as settings:
    print(settings.lm)
with tf.context(budjet=1.0):  # wrong
    pass

orders: pd.DataFrame = corpus["orders"]
corpus[7]  # wrong
corpus["orders", "customers"]  # wrong

found = corpus.retrieve_tables("Who ordered twice?", k="auto", method=tf.methods.Auto(look=True))
both: pd.DataFrame = found.merge(on="customer_id", on_loss="allow" if found.tables else "warn", limit=10)
corpus.retrieve_tables("Who ordered twice?", methd="jar")  # wrong
tf.retrieve_tables("Who ordered twice?", corpus, K=3)  # wrong
priced: Quote = tf.retrieve_tables("Who ordered twice?", corpus, method="auto:look", quote=True)

answer: tf.Answer = tf.ask("Who ordered twice?", corpus, on_error="keep", lm="openai/gpt-4o")
asked: Quote = tf.ask("Who ordered twice?", corpus, quote=True)
several: Quote = tf.ask_many(["Who ordered twice?", "Who never?"], corpus, quote=True)
tf.ask("Who ordered twice?", corpus, on_eror="keep")  # wrong
tf.ask_many(["Who ordered twice?"], corpus, txt=True)  # wrong

rows: pd.DataFrame = tf.exec_sql(corpus, rows_per_call="auto")("SELECT 1 AS one")
cost: Quote = tf.exec_sql(corpus)("SELECT 1 AS one", quote=True)
tf.exec_sql(corpus, limit=10)  # wrong

merged: pd.DataFrame = tf.merge(orders, both, on="customer_id", how="left", on_loss="raise")
tf.merge(orders, both, on_fan_out="warn")  # wrong


async def later() -> None:
    late: Quote = await tf.aask("Who ordered twice?", corpus, quote=True)
    print(late.dollars, (await tf.aask("Who ordered twice?", corpus)).values)
    await tf.aask("Who ordered twice?", corpus, quot=True)  # wrong
    print((await tf.aask("Who ordered twice?", corpus)).sorces)  # wrong
"""
EXTEND = (
    "\n".join(block["code"] for block in examples(ROOT / "docs" / "guides" / "extend.md"))
    + """
rates: pd.DataFrame = sem_stars(reviews, "How good is {review}?", suffix="_rating", on_error="keep")
corpus.retrieve_tables("Who ordered twice?", method=Chain(weight=2))
given: tf.Answer = tf.ask("Who ordered twice?", corpus.retrieve_tables("Who ordered twice?", method=Chain()))
sem_stars(reviews, "How good is {review}?", sufix="_rating")  # wrong
corpus.retrieve_tables("Who ordered twice?", method=Chain)  # wrong
tf.methods.JAR(beam=5)  # wrong
register(Chain())  # wrong
tf.configure(embedder=Writer())  # wrong
tf.TAG(lambda: "SELECT 1", tf.exec_sql(corpus))  # wrong
Batch([Prompt.of("How good?")], acept=int)  # wrong
"""
)
"""The page Extend, and what else may be written, or may not."""

SCRIPTS = {"operators": (OPERATORS, 14), "doors": (DOORS, 13), "extend": (EXTEND, 7)}
"""A script, and how many of its lines are wrong."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("user")
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}), encoding="utf-8")
    for name, (text, _) in SCRIPTS.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return [folder / f"{name}.py" for name in SCRIPTS]


def wrong() -> set[tuple[str, int]]:
    """The script and the line of each typo."""
    found = set()
    for name, (text, typos) in SCRIPTS.items():
        lines = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith(WRONG)]
        assert len(lines) == typos
        found |= {(name, number) for number in lines}
    return found


@pytest.mark.slow
def test_mypy_finds_each_typo_and_nothing_else(scripts: list[Path]):
    pytest.importorskip("mypy", reason="needs the extra lint")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--output=json", *map(str, scripts)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    errors = {(Path(one["file"]).stem, one["line"]) for one in told if one["severity"] == "error"}
    assert errors == wrong(), done.stdout + done.stderr


@pytest.mark.slow
def test_pyright_does_too(scripts: list[Path]):
    # PyPI's pyright downloads its program when it first runs, which a test must not.
    pyright = shutil.which("pyright")
    if pyright is None or Path(pyright).parent == Path(sys.executable).parent:
        pytest.skip("needs pyright on the path: npm install -g pyright")
    done = subprocess.run(
        [pyright, "--outputjson", "--pythonpath", sys.executable, *map(str, scripts)],
        cwd=scripts[0].parent,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    errors = {(Path(one["file"]).stem, one["range"]["start"]["line"] + 1) for one in told if one["severity"] == "error"}
    assert errors == wrong(), told


def test_what_type_checkers_read_is_as_the_declarations_are():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "write_stubs.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"python tools/write_stubs.py writes them: {done.stdout}{done.stderr}"
