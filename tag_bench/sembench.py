"""Quality, prompts, tokens and dollars of SemBench's ten film queries, quoted and measured.

The queries are in ``pipelines/sembench.py``. Tokens are estimated by length for every model, so that a replayed
store and a live model can be compared. A prompt that an earlier query sent costs nothing.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import sqlite3
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import tagframe as tf
from pipelines.sembench import ANT_MAN, QUERIES, TAKEN
from tag_bench.records import RECORDS, SEEDED, Records, settings_of, with_progress
from tag_bench.server import Request, Server, rows_of
from tagframe.errors import ReplayMiss
from tagframe.lm import LM, Arrived, Prompt, QuoteEnds, QuotingLM, Stream
from tagframe.lm.pricing import estimate_tokens, tokens_of
from tagframe.lm.replay import REPLAY
from tagframe.lm.store import PACKED, open_store

HIDDEN = ["scoreSentiment", "originalScore", "reviewState"]
"""The columns of the reviews with the ground truth."""
PUBLISHED: Mapping[str, Mapping[str, float | None]] = {
    "LOTUS": {"mean_quality": 0.681, "dollars": 6.25},
    "Palimpzest": {"mean_quality": 0.734, "dollars": 8.22},
    "BigQuery": {"mean_quality": 0.752, "dollars": 3.94},
    "ThalamusDB, eight queries": {"mean_quality": 0.824, "dollars": 0.165},
}
"""Of SemBench's paper: Gemini 2.5 Flash, means of five runs over the ten."""
WRONG = 0.08
"""The share of reviews for which the scripted model is wrong."""
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
    """

    reviews: pd.DataFrame

    def quality(self, name: str, found: Any) -> float:
        """The quality of a query's answer, 0 to 1, as the benchmark defines it."""
        of_film = self.reviews[self.reviews["id"] == (TAKEN if name in ("Q2", "Q3", "Q4", "Q8") else ANT_MAN)]
        positive = int((of_film["scoreSentiment"] == "POSITIVE").sum())
        if name in ("Q1", "Q2"):
            true = set(self.reviews.loc[self.reviews["scoreSentiment"] == "POSITIVE", "reviewId"])
            true = true if name == "Q1" else true & set(of_film["reviewId"])
            return float(len(set(found) & true) / min(5, len(true))) if len(found) <= 5 else 0.0
        if name in ("Q3", "Q4"):
            return _closeness(float(found), positive if name == "Q3" else positive / len(of_film))
        if name == "Q8":
            true_counts = {"POSITIVE": positive, "NEGATIVE": len(of_film) - positive}
            return float(np.mean([_closeness(found[kind], count) for kind, count in true_counts.items()]))
        if name in ("Q5", "Q6", "Q7"):
            return self._pairs(name, found, of_film)
        if name == "Q9":
            scored = self.reviews.loc[found.index, "share"]
            return max(0.0, float(scored.corr(found.astype(float), method="spearman")))
        means = self.reviews.groupby("id")["share"].mean().dropna()
        return max(0.0, float(means.corr(found.reindex(means.index).astype(float), method="spearman")))

    def _pairs(self, name: str, found: pd.DataFrame, of_film: pd.DataFrame) -> float:
        feeling = of_film.drop_duplicates("reviewId").set_index("reviewId")["scoreSentiment"]
        said = set(found.drop_duplicates().itertuples(index=False, name=None))
        right = sum((feeling[one] == feeling[other]) == (name == "Q5") for one, other in said)
        each = feeling.value_counts()
        every = 2 * int(each.get("POSITIVE", 0)) * int(each.get("NEGATIVE", 0))
        wanted = every if name == "Q7" else 10
        return 2 * right / (len(said) + wanted) if said else 0.0


def _closeness(found: float, true: float) -> float:
    return float(1 / (1 + abs(found - true) / true))


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, Truth]:
    """The films, the reviews without the truth, and the truth."""
    movies, reviews = pd.read_csv(folder / "Movies.csv"), pd.read_csv(folder / "Reviews.csv")
    truth = Truth(reviews.assign(share=reviews["originalScore"].map(share_of)))
    return movies, reviews.drop(columns=HIDDEN), truth


# --- a scripted model ---------------------------------------------------------------------------------------------


class Scripted:
    """A model that knows the truth, answers in any form, and is wrong about the same reviews in every pack.

    Args:
        truth: of the reviews.
        noise: the share of further reviews for which it is wrong, only in packs.
        seed: for the choice of wrong answers.
    """

    def __init__(self, truth: Truth, noise: float = 0.0, seed: int = 0) -> None:
        known = truth.reviews.drop_duplicates("reviewText").set_index("reviewText")
        self._positive = (known["scoreSentiment"] == "POSITIVE").to_dict()
        guessed = known["share"].fillna(known["scoreSentiment"].map({"POSITIVE": 0.75, "NEGATIVE": 0.35}))
        self._share = guessed.to_dict()
        self._noise, self._seed = noise, seed

    def _wrong(self, text: str, packed: bool) -> bool:
        drawn = random.Random(f"{self._seed} {zlib.crc32(text.encode())}")
        return drawn.random() < WRONG or (drawn.random() < self._noise and packed)

    def _feels(self, row: Mapping[str, Any], packed: bool) -> bool:
        text = next(str(cell) for name, cell in row.items() if name.startswith("reviewText"))
        return self._positive[text] != self._wrong(text, packed)

    def _scores(self, row: Mapping[str, Any], packed: bool) -> float:
        text = str(row["reviewText"])
        share = float(self._share[text])
        return 1 - share if self._wrong(text, packed) else share

    def __call__(self, request: Request) -> str:
        """The answer to a request."""
        system, user = (str(request.messages[position]["content"]) for position in (0, 1))
        if "You plan how to join" in system:
            opposite = [["positive", "negative"], ["negative", "positive"]] if "opposite" in user else "equal"
            question = "Is the review positive or negative about the film?"
            plan = {"left": question, "right": question, "labels": ["positive", "negative"], "pairs": opposite}
            return json.dumps(plan)
        if "<left>" in user:
            return self._of_pairs(system, user)
        packed = "<rows>" in user
        said = [self._of_row(system, row, packed) for row in rows_of(user)]
        return "\n".join(f"{number}: {one}" for number, one in enumerate(said, 1)) if packed else said[-1]

    def _of_row(self, system: str, row: Mapping[str, Any], packed: bool) -> str:
        if "one number from 0 to 1" in system:
            return f"{self._scores(row, packed):.2f}"
        if "one whole number from 0 to 100" in system:
            return f"{100 * self._scores(row, packed):.0f}"
        feels = self._feels(row, packed)
        return ("positive" if feels else "negative") if "as it is written here" in system else str(feels)

    def _of_pairs(self, system: str, user: str) -> str:
        opposite = "opposite" in system
        sides = [
            [(number, json.loads(row)) for number, row in re.findall(rf"^({letter}\d+) (\{{.*\}})$", user, flags=re.M)]
            for letter in "LR"
        ]
        if not sides[0]:
            one, other = (self._feels(json.loads(row), False) for row in re.findall(r"^(\{.*\})$", user, flags=re.M))
            return str((one != other) == opposite)
        feel = [[(number, self._feels(row, True)) for number, row in side] for side in sides]
        return json.dumps([[a, b] for a, one in feel[0] for b, other in feel[1] if (one != other) == opposite])


# --- counting -----------------------------------------------------------------------------------------------------


@dataclass
class Asked:
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
                if completion.usage.rows == 0:
                    continue  # it was only looked for
                self.known.add(prompt)
                self.prompts += 1
                self.tokens_in += estimate_tokens(prompt)
                self.tokens_out += tokens_of(completion.text)


class CountingLM(LM):
    """A model that counts its prompts."""

    asked: Asked

    def stream(self, description: str = "") -> Stream:
        """An open call, which counts."""
        stream, asked = super().stream(description), self.asked
        take = stream.take

        def counted() -> Arrived:
            arrived = take()
            asked.take(arrived)
            return arrived

        stream.take = counted  # type: ignore[method-assign]
        return stream


@contextlib.contextmanager
def fresh_copy(store: str, folder: str) -> Iterator[Path]:
    """A copy of a replayed store as it was before a run read it: a second run then costs what the first one did.

    What a run derived from packs (the answers of their rows, the results of audits) is left out; imported answers, and
    which rows an exported pack holds, are not. Prompts that are missing in the copy are noted in the store itself.
    """
    original, copied = Path(store).expanduser(), Path(folder) / "copy.db"
    open_store(original).flush()
    with contextlib.closing(sqlite3.connect(original)) as here, contextlib.closing(sqlite3.connect(copied)) as there:
        here.backup(there)
        there.execute("DELETE FROM answers WHERE source IN (SELECT id FROM sources WHERE recorded_by = ?)", (PACKED,))
        there.commit()
    copy = open_store(copied)
    try:
        yield copied
    finally:
        kept = open_store(original)
        kept.note_missing(copy.missing())
        kept.note_formed(copy.all_formed())
        copy.close()


@contextlib.contextmanager
def _model(lm: str, truth: Truth, noise: float, seed: int) -> Iterator[CountingLM]:
    if lm.startswith(REPLAY) and not lm.endswith(".jsonl"):
        with tempfile.TemporaryDirectory() as folder, fresh_copy(lm.removeprefix(REPLAY), folder) as copied:
            yield CountingLM(f"{REPLAY}{copied}")
        return
    if lm != "scripted":
        yield CountingLM(lm)
        return
    with Server(Scripted(truth, noise, seed), history=False) as server:
        yield CountingLM("openai/scripted", api_base=server.url, api_key="none")


def measure(
    folder: Path,
    lm: str,
    noise: float,
    prices: tuple[float, float],
    seed: int = 0,
    records: Records | None = None,
) -> dict[str, Any]:
    """The output of ``--json``.

    Args:
        folder: with the benchmark's tables.
        lm: ``scripted``, ``replay:STORE``, or a model.
        noise: of the scripted model's packs.
        prices: dollars per million tokens, in and out.
        seed: of the scripted model's errors.
        records: where each query is noted. A run that was ended starts again, with the answers from the store, since
            the cost of a query depends on those before it.
    """
    movies, reviews, truth = read(folder)
    queries: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(_model(lm, truth, noise, seed))
        store = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "answers.db" if lm == "scripted" else None
        stack.enter_context(tf.context(progress=False))
        if store is not None:
            stack.enter_context(tf.context(store=str(store)))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        model.asked = Asked()
        for name, query in with_progress([*QUERIES.items()], "sembench", "query"):
            before = (model.asked.prompts, model.asked.tokens_in, model.asked.tokens_out)
            quoting = QuotingLM(model, lambda prompt: "True")
            with tf.context(lm=quoting), contextlib.suppress(QuoteEnds):
                query(movies, reviews)
            quality: float | None = None
            with tf.context(lm=model), contextlib.suppress(ReplayMiss):
                quality = truth.quality(name, query(movies, reviews))
            after = (model.asked.prompts, model.asked.tokens_in, model.asked.tokens_out)
            prompts, tokens_in, tokens_out = (now - then for now, then in zip(after, before, strict=True))
            quote = quoting.quote
            queries.append(
                {
                    "name": name,
                    "quality": None if quality is None else round(quality, 4),
                    "prompts": prompts,
                    "tokens_in": tokens_in,
                    "tokens_out": tokens_out,
                    "dollars": round((tokens_in * prices[0] + tokens_out * prices[1]) / 1e6, 5),
                    "quoted": {"prompts": quote.calls, "worst": max(quote.calls, quote.calls_at_most)},
                }
            )
            if records is not None:
                records.add(name, query.__doc__ or name, {**queries[-1], "scores": {"quality": quality}})
    scored = [query["quality"] for query in queries if query["quality"] is not None]
    return {
        "lm": lm,
        "queries": queries,
        "missing": len(queries) - len(scored),
        "mean_quality": round(float(np.mean(scored)), 4) if len(scored) == len(queries) else None,
        "dollars": round(sum(query["dollars"] for query in queries), 5),
        "prompts": sum(query["prompts"] for query in queries),
        "published": PUBLISHED,
    }


def table(result: Mapping[str, Any]) -> str:
    """The figures as a text table, followed by the published ones."""
    lines = [f"{'':8}{'quality':>9}{'prompts':>9}{'quoted':>9}{'worst':>9}{'tokens in':>11}{'out':>8}{'dollars':>9}"]
    for one in [*result["queries"]]:
        quality = "-" if one["quality"] is None else f"{one['quality']:.3f}"
        quoted = one["quoted"]
        lines.append(
            f"{one['name']:8}{quality:>9}{one['prompts']:>9}{quoted['prompts']:>9}{quoted['worst']:>9}"
            f"{one['tokens_in']:>11,}{one['tokens_out']:>8,}{one['dollars']:>9.4f}"
        )
    mean = "-" if result["mean_quality"] is None else f"{result['mean_quality']:.3f}"
    tokens = sum(one["tokens_in"] for one in result["queries"])
    sums = f"{result['prompts']:>9}{'':18}{tokens:>11,}{'':8}{result['dollars']:>9.4f}"
    lines.append(f"{'all':8}{mean:>9}{sums}")
    lines += [f"published, {name}: {said['mean_quality']}, ${said['dollars']}" for name, said in PUBLISHED.items()]
    return "\n".join(lines)


@click.command("sembench", help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--lm", default="scripted", show_default=True, help="'scripted', replay:STORE, or a model's name.")
@click.option(
    "--pack-noise",
    default=0.0,
    show_default=True,
    help="The share of reviews that are wrong only in packs, for the scripted model.",
)
@click.option(
    "--prices",
    nargs=2,
    type=float,
    default=(0.30, 2.50),
    show_default=True,
    help="Dollars per million tokens: in, out.",
)
@RECORDS
@SEEDED
@click.option("--json", "json_file", type=click.File("w"), help="Where the JSON goes; - for standard output.")
@click.pass_context
def command(
    ctx: click.Context,
    data: Path,
    lm: str,
    pack_noise: float,
    prices: tuple[float, float],
    records: Path | None,
    seed: int,
    json_file: Any,
) -> None:
    """Run the ten queries and print their figures."""
    settings = settings_of()
    result = settings | measure(data, lm, pack_noise, prices, seed, Records(records, settings))
    if json_file is None:
        click.echo(table(result))
    else:
        json.dump(result, json_file, indent=1)
        json_file.write("\n")
    if result["missing"]:
        ctx.exit(1)
