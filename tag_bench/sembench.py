"""Quality, prompts, tokens and dollars of SemBench's ten film queries, quoted and measured.

The queries are in ``pipelines/sembench.py``. Tokens are estimated by length for every model, so that a replayed
store and a live model can be compared. A prompt that an earlier query sent costs nothing.

Two queries have two scores. Q8 is the mean of 1 / (1 + error) of its two counts; as published, 1 / (1 + the mean
error). Q10 is compared with the mean of the critics' own scores; as published, with the audience's score of each film
(``q10_truth.csv``). Films that stand twice in that file have the same score both times, and count once.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import tagframe as tf
from pipelines.sembench import ANT_MAN, QUERIES, TAKEN
from tag_bench import DATA, Incomplete, benchmark
from tag_bench.answers.judgements import read_judgements
from tag_bench.records import RECORDS, Records, settings_of, with_progress
from tag_bench.sembench_models import Reviewer
from tag_bench.server import Server
from tagframe.errors import ReplayMiss
from tagframe.lm import LM, Arrived, Prompt, QuoteEnds, QuotingLM, Stream
from tagframe.lm.prompt import tokens_of
from tagframe.lm.replay import REPLAY
from tagframe.lm.store import PACKED, open_store

HIDDEN = ["scoreSentiment", "originalScore", "reviewState"]
"""The columns of the reviews with the ground truth."""
JUDGEMENTS = "judgements"
"""Value of ``--lm``: recorded judgements of the texts, whatever the prompts are."""
PUBLISHED = {
    "LOTUS": {"mean_quality": 0.681, "dollars": 6.25},
    "Palimpzest": {"mean_quality": 0.734, "dollars": 8.22},
    "BigQuery": {"mean_quality": 0.752, "dollars": 3.94},
    "ThalamusDB, eight queries": {"mean_quality": 0.824, "dollars": 0.165},
}
"""SemBench's own figures: Gemini 2.5 Flash, means of five runs over the ten queries."""
_GRADES = {letter: 4 - position for position, letter in enumerate("ABCDF")}


# --- the truth ----------------------------------------------------------------------------------------------------


def share_of(score: Any) -> float:
    """A critic's score as a share of the best one: ``3/5``, ``7.5/10``, ``B+``; nan if it is not a score.

    >>> share_of("3/5"), share_of("A-"), share_of("Recommended")
    (0.6, 0.925, nan)
    """
    text = str(score).strip()
    if graded := re.fullmatch(r"([ABCDF])([+-]?)", text):
        points = _GRADES[graded[1]] + {"+": 0.3, "-": -0.3, "": 0.0}[graded[2]]
        return min(max(points, 0.0), 4.0) / 4
    if out_of := re.fullmatch(r"(\d*\.?\d+)\s*(?:/|of)\s*(\d+(?:\.\d+)?)", text):
        return min(float(out_of[1]) / float(out_of[2]), 1.0) if float(out_of[2]) else float("nan")
    return float("nan")


@dataclass(frozen=True)
class Truth:
    """The reviews with the ground truth.

    Attributes:
        reviews: all columns, and ``share`` of the critic's score.
        audience: the audience's score by film.
    """

    reviews: pd.DataFrame
    audience: pd.Series

    def quality(self, name: str, found: Any) -> float:
        """The quality of a query's answer, 0 to 1."""
        of_film, positive = self._of_film(name)
        if name in ("Q1", "Q2"):
            true = set(self.reviews.loc[self.reviews["scoreSentiment"] == "POSITIVE", "reviewId"])
            true = true if name == "Q1" else true & set(of_film["reviewId"])
            return float(len(set(found) & true) / min(5, len(true))) if len(found) <= 5 else 0.0
        if name in ("Q3", "Q4"):
            return _closeness(float(found), positive if name == "Q3" else positive / len(of_film))
        if name == "Q8":
            return float(np.mean([1 / (1 + error) for error in self._count_errors(found)]))
        if name in ("Q5", "Q6", "Q7"):
            return self._pairs(name, found, of_film)
        if name == "Q9":
            scored = self.reviews.loc[found.index, "share"]
            return max(0.0, float(scored.corr(found.astype(float), method="spearman")))
        return _in_order(found, self.reviews.groupby("id")["share"].mean().dropna())

    def as_published(self, name: str, found: Any) -> float:
        """The quality by SemBench's own measure, which is another one for Q8 and Q10."""
        if name == "Q8":
            return float(1 / (1 + np.mean(self._count_errors(found))))
        return _in_order(found, self.audience) if name == "Q10" else self.quality(name, found)

    def _of_film(self, name: str) -> tuple[pd.DataFrame, int]:
        """The reviews of a query's film, and how many of them are positive."""
        of_film = self.reviews[self.reviews["id"] == (TAKEN if name in ("Q2", "Q3", "Q4", "Q8") else ANT_MAN)]
        return of_film, int((of_film["scoreSentiment"] == "POSITIVE").sum())

    def _count_errors(self, found: Mapping[str, int]) -> list[float]:
        """The relative errors of Q8's two counts."""
        of_film, positive = self._of_film("Q8")
        true_counts = {"POSITIVE": positive, "NEGATIVE": len(of_film) - positive}
        return [abs(found[kind] - count) / count for kind, count in true_counts.items()]

    def _pairs(self, name: str, found: pd.DataFrame, of_film: pd.DataFrame) -> float:
        feeling = of_film.drop_duplicates("reviewId").set_index("reviewId")["scoreSentiment"]
        pairs = set(found.drop_duplicates().itertuples(index=False, name=None))
        right = sum((feeling[one] == feeling[other]) == (name == "Q5") for one, other in pairs)
        each = feeling.value_counts()
        every = 2 * int(each.get("POSITIVE", 0)) * int(each.get("NEGATIVE", 0))
        wanted = every if name == "Q7" else 10
        return 2 * right / (len(pairs) + wanted) if pairs else 0.0


def _closeness(found: float, true: float) -> float:
    return float(1 / (1 + abs(found - true) / true))


def _in_order(found: pd.Series, true: pd.Series) -> float:
    """Spearman's correlation over what has a true score; 0 if it is negative."""
    return max(0.0, float(true.corr(found.reindex(true.index).astype(float), method="spearman")))


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, Truth]:
    """The films, the reviews without the truth, and the truth."""
    files = ("Movies.csv", "Reviews.csv", "q10_truth.csv")
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise click.ClickException(f"no {', '.join(missing)} in {folder}; give a folder with SemBench's films")
    movies, reviews = pd.read_csv(folder / "Movies.csv"), pd.read_csv(folder / "Reviews.csv")
    audience = pd.read_csv(folder / "q10_truth.csv").drop_duplicates("movieId").set_index("movieId")["movieScore"]
    truth = Truth(reviews.assign(share=reviews["originalScore"].map(share_of)), audience)
    return movies, reviews.drop(columns=HIDDEN), truth


# --- counting -----------------------------------------------------------------------------------------------------


@dataclass
class PromptCosts:
    """The number and the cost of prompts that were not asked before."""

    known: set[Prompt] = field(default_factory=set)
    prompts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def take(self, arrived: Arrived) -> None:
        """Count the completions; rows of packs are free, since they are paid for with their packs."""
        for batch, completions in arrived.items():
            for position, completion in completions.items():
                prompt = batch.prompts[position]
                if completion.origin == "pack" or completion.text is None or prompt in self.known:
                    continue
                if completion.usage.prompts == 0:
                    continue  # it was only looked for
                self.known.add(prompt)
                self.prompts += 1
                self.tokens_in += prompt.tokens
                self.tokens_out += tokens_of(completion.text)


class CountingLM(LM):
    """A model that counts its prompts."""

    costs: PromptCosts

    def stream(self, description: str = "") -> Stream:
        """An open call, which counts."""
        stream, costs = super().stream(description), self.costs
        take = stream.take

        def counted() -> Arrived:
            arrived = take()
            costs.take(arrived)
            return arrived

        stream.take = counted  # type: ignore[method-assign]
        return stream


def by_judgements(folder: Path, truth: Truth) -> Reviewer:
    """The model of ``--lm judgements``, which knows the texts alone."""
    known, judged = truth.reviews.drop_duplicates("reviewText"), read_judgements(folder / "judgements.json")
    pairs = zip(known["reviewText"], known["reviewId"], strict=True)
    return Reviewer({str(text): judged[str(review)] for text, review in pairs})


@contextlib.contextmanager
def fresh_copy(store: str, folder: str) -> Iterator[Path]:
    """A copy of a replayed store as it was before a run read it: a second run then costs what the first one did.

    What a run derived from packs (the answers of their rows, the results of audits) is left out; imported answers are
    not. Prompts that are missing in the copy are noted in the store itself.
    """
    original, copied = Path(store).expanduser(), Path(folder) / "copy.db"
    open_store(original)  # which makes its tables, if there is none
    with contextlib.closing(sqlite3.connect(original)) as here, contextlib.closing(sqlite3.connect(copied)) as there:
        here.backup(there)
        there.execute("DELETE FROM answers WHERE source IN (SELECT id FROM sources WHERE recorded_by = ?)", (PACKED,))
        there.commit()
    copy = open_store(copied)
    try:
        yield copied
    finally:
        open_store(original).note_missing(copy.missing())
        copy.close()


@contextlib.contextmanager
def _model(lm: str, folder: Path, truth: Truth) -> Iterator[CountingLM]:
    if lm.startswith(REPLAY) and not lm.endswith(".jsonl"):
        with tempfile.TemporaryDirectory() as temporary, fresh_copy(lm.removeprefix(REPLAY), temporary) as copied:
            yield CountingLM(f"{REPLAY}{copied}")
        return
    if lm != JUDGEMENTS:
        yield CountingLM(lm)
        return
    with Server(by_judgements(folder, truth), history=False) as server:
        yield CountingLM(f"openai/{lm}", api_base=server.url, api_key="none")


def measure(
    folder: Path,
    lm: str,
    prices: tuple[float, float],
    records: Records | None = None,
) -> dict[str, Any]:
    """The output of ``--json``.

    Args:
        folder: with the benchmark's tables.
        lm: ``judgements``, ``replay:STORE``, or a model.
        prices: dollars per million tokens, in and out.
        records: where each query is noted. A run that was ended starts again, with the answers from the store, since
            the cost of a query depends on those before it.
    """
    movies, reviews, truth = read(folder)
    queries: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(_model(lm, folder, truth))
        store = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "answers.db" if lm == JUDGEMENTS else None
        stack.enter_context(tf.context(progress=False))
        if store is not None:
            stack.enter_context(tf.context(store=str(store)))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        model.costs = PromptCosts()
        for name, query in with_progress([*QUERIES.items()], "sembench", "query"):
            before = (model.costs.prompts, model.costs.tokens_in, model.costs.tokens_out)
            quoting = QuotingLM(model, lambda prompt: "True")
            with tf.context(lm=quoting), contextlib.suppress(QuoteEnds):
                query(movies, reviews)
            quality = published = None
            with tf.context(lm=model), contextlib.suppress(ReplayMiss):
                found = query(movies, reviews)
                quality, published = truth.quality(name, found), truth.as_published(name, found)
            after = (model.costs.prompts, model.costs.tokens_in, model.costs.tokens_out)
            prompts, tokens_in, tokens_out = (now - then for now, then in zip(after, before, strict=True))
            quote = quoting.quote
            queries.append(
                {
                    "name": name,
                    "quality": None if quality is None else round(quality, 4),
                    "as_published": None if published is None else round(published, 4),
                    "prompts": prompts,
                    "tokens_in": tokens_in,
                    "tokens_out": tokens_out,
                    "dollars": round((tokens_in * prices[0] + tokens_out * prices[1]) / 1e6, 5),
                    "quoted": {"prompts": quote.calls, "worst": max(quote.calls, quote.calls_at_most)},
                }
            )
            if records is not None:
                records.add(name, query.__doc__ or name, {**queries[-1], "scores": {"quality": quality}})
    return {
        "lm": lm,
        "queries": queries,
        "missing": sum(query["quality"] is None for query in queries),
        "mean_quality": _mean_of(queries, "quality"),
        "mean_as_published": _mean_of(queries, "as_published"),
        "dollars": round(sum(query["dollars"] for query in queries), 5),
        "prompts": sum(query["prompts"] for query in queries),
        "published": PUBLISHED,
    }


def _mean_of(queries: Sequence[Mapping[str, Any]], measure: str) -> float | None:
    """The mean over all queries; None if one has no score."""
    scored = [query[measure] for query in queries]
    return None if None in scored else round(float(np.mean(scored)), 4)


@benchmark("sembench")
@DATA
@click.option(
    "--lm",
    default=JUDGEMENTS,
    show_default=True,
    help=f"'{JUDGEMENTS}' (of judgements.json), replay:STORE, or a model's name.",
)
@click.option("--prices", nargs=2, type=float, default=(0.30, 2.50), help="Dollars per million tokens: in, out.")
@RECORDS
def command(data: Path, lm: str, prices: tuple[float, float], records: Path | None) -> dict[str, Any]:
    """Quality and cost of the ten queries, beside the published ones."""
    settings = settings_of()
    result = settings | measure(data, lm, prices, Records(records, settings))
    if result["missing"]:
        raise Incomplete(f"{result['missing']} of {len(result['queries'])} queries lack answers of the model", result)
    return result
