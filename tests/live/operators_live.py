"""Every operator, ``ask`` and the tools against a real model: what must hold whatever it says.

``make live`` runs this file; ``make test`` does not, since it needs the model. SmolLM2-135M is far too weak to be
right, so nothing here asks whether it is: rows end with an answer or a named error, requests add up, and what is paid
is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import CutWarning, InvalidArgument, NameUnknown, TagframeError
from tagframe.lm import Usage, total_usage

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "examples" / "data"


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The server, in a process of its own: it stays busy with requests that nobody waits for."""
    command = [sys.executable, str(HERE / "serve.py"), "--slots", "2", "--context", "2048"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture(autouse=True)
def configured(url: str, tmp_path: Path) -> Iterator[None]:
    lm = tf.LM("llama.cpp/smollm2", api_base=url, extra_body={"max_tokens": 24, "seed": 1}, timeout=120)
    with tf.context(lm=lm, store=tmp_path / "answers.db", progress=False):
        yield


@pytest.fixture(scope="session")
def corpus() -> tf.Corpus:
    return tf.open_corpus(DATA)


@pytest.fixture(scope="session")
def reviews(corpus: tf.Corpus) -> pd.DataFrame:
    return corpus.read("festival.reviews").head(4)


Call = Callable[[pd.DataFrame], pd.DataFrame]
OPERATORS: dict[str, Call] = {
    "filter": lambda rows: rows.tag.sem_filter("{review} is positive", on_error="keep"),
    "filter, packed": lambda rows: rows.tag.sem_filter("{review} is positive", rows_per_call=2, on_error="keep"),
    "map": lambda rows: rows.tag.sem_map("The tone of {review}", choices=["good", "bad"], on_error="keep"),
    "map, text": lambda rows: rows.tag.sem_map("What {review} is about, in three words", on_error="keep"),
    "map, number": lambda rows: rows.tag.sem_map("The number of adjectives in {review}", dtype=int, on_error="keep"),
    "score": lambda rows: rows.tag.sem_score("How positive is {review}?", on_error="keep"),
    "extract": lambda rows: rows.tag.sem_extract("review", {"praised": "what is praised"}, on_error="keep"),
    "topk": lambda rows: rows.tag.sem_topk("Which {review} is more positive?", K=2, on_error="keep"),
    "agg": lambda rows: rows.tag.sem_agg("Summarise {review}", on_error="keep"),
    "join": lambda rows: rows.head(3).tag.sem_join(
        pd.DataFrame({"tone": ["good", "bad"]}), "{review} is {tone:right}", on_error="keep"
    ),
}


def spent(work: Callable[[], object]) -> Usage:
    """What a call cost; a failure is a named error of ours."""
    before = total_usage()
    with warnings.catch_warnings(action="ignore"):
        try:
            work()
        except (NameUnknown, InvalidArgument):  # the test itself is wrong
            raise
        except TagframeError:  # a raw error fails the test
            pass
    after = total_usage()
    names = ("prompts", "sent", "retried", "repaired", "failed", "stored", "deduplicated", "tokens_in", "tokens_out")
    return Usage(**{name: getattr(after, name) - getattr(before, name) for name in names})


@pytest.mark.parametrize("name", OPERATORS)
def test_requests_add_up_and_answers_are_paid_for_once(reviews: pd.DataFrame, name: str):
    work = OPERATORS[name]
    first = spent(lambda: work(reviews))
    assert 0 < first.sent <= first.prompts - first.stored - first.deduplicated + first.repaired + first.retried
    assert first.retried == 0  # a server that is at work is not asked again
    assert first.tokens_in > 0
    again = spent(lambda: work(reviews))
    # What failed is asked again, at temperature 0 with the same words: it fails again. Nothing else is.
    assert again.sent <= 2 * (first.failed + again.failed) + again.repaired


def test_outcomes_add_up(reviews: pd.DataFrame):
    with warnings.catch_warnings(action="ignore"):
        kept = reviews.tag.sem_map("The tone of {review}", choices=["good", "bad"], on_error="keep")
    outcomes = kept.tag.outcomes
    assert len(outcomes) == len(reviews) == len(kept)
    failed = outcomes["outcome"].eq("failed").sum()
    assert kept.filter(regex="_map$").isna().sum().item() >= failed


def test_an_overflow_is_shortened_or_named(reviews: pd.DataFrame):
    long = pd.DataFrame({"review": ["A long film. " * 3000, "A short one."]})
    with pytest.warns(CutWarning, match="1 row was cut to fit a prompt"):
        kept = long.tag.sem_filter("{review} is positive", return_all=True, on_error="keep")
    assert len(kept) == 2
    many = pd.concat([reviews] * 20, ignore_index=True).assign(number=range(len(reviews) * 20))
    usage = spent(lambda: many.tag.sem_agg("Summarise {review} of {number}", on_error="keep", context_window=2048))
    assert usage.sent > 1  # in parts


def test_ask_ends_with_an_answer_or_a_named_error(corpus: tf.Corpus):
    usage = spent(lambda: tf.ask("Which director was born first?", corpus=corpus))
    assert usage.sent >= 1


def test_the_tools_answer_or_say_what_failed(corpus: tf.Corpus):
    tools = corpus.tools(ask=True, budget=tf.Budget(calls=20))
    assert "festival" in str(tools.find_tables("Which director was born first?"))
    assert spent(lambda: tools.ask("Which director was born first?")).sent >= 1


def test_the_check(url: str):
    found = tf.check_lm("llama.cpp/smollm2", api_base=url)
    verdicts = {finding.what: finding.verdict for finding in found.findings}
    assert verdicts["reachable"] == verdicts["structured output"] == verdicts["logprobs"] == "ok"
    assert "context_window=2048" in found.settings


def test_many_at_once_on_two_slots(reviews: pd.DataFrame):
    rows = pd.DataFrame({"n": range(16)})
    usage = spent(lambda: rows.tag.sem_filter("{n} is even", on_error="keep", concurrency=16))
    assert usage.retried == 0


def test_a_cancelled_call_is_resumed(tmp_path: Path):
    rows = pd.DataFrame({"n": range(100, 110)})

    async def cancelled() -> None:
        call = asyncio.create_task(tf.asem_filter(rows, "{n} is even", on_error="keep", concurrency=1))
        while not answered(tmp_path / "answers.db"):
            await asyncio.sleep(0.1)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    after = spent(lambda: rows.tag.sem_filter("{n} is even", on_error="keep"))
    assert after.stored > 0
    assert after.stored + after.sent >= len(rows)


def answered(store: Path) -> int:
    """How many answers the store keeps."""
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(store)) as connection:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
    return 0
