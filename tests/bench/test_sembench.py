"""``tag_bench sembench`` over a few made-up reviews, and its measures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pipelines.sembench import ANT_MAN, QUERIES, TAKEN
from tag_bench.sembench import HIDDEN, Truth, by_judgements, command, read, share_of
from tag_bench.sembench_models import Reviewer
from tag_bench.server import Request, Server
from tagframe.lm import LM, Prompt, export_requests, import_answers
from tagframe.lm.store import open_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("sembench")
    films = [TAKEN, ANT_MAN, "other"]
    pd.DataFrame({"id": films, "title": films}).to_csv(made / "Movies.csv", index=False)
    rows = []
    for number in range(90):
        positive = number % 3 != 0
        rows.append(
            {
                "id": films[number % 2] if number < 60 else "other",
                "reviewId": number,
                "reviewText": f"Review {number} says that it is {'fine' if positive else 'dull'} in all ways",
                "originalScore": f"{4 if positive else 1}/5",
                "reviewState": "fresh",
                "scoreSentiment": "POSITIVE" if positive else "NEGATIVE",
            }
        )
    pd.DataFrame(rows).to_csv(made / "Reviews.csv", index=False)
    judged = {row["reviewId"]: 0.8 if row["scoreSentiment"] == "POSITIVE" else 0.1 for row in rows}
    (made / "judgements.json").write_text(json.dumps(judged))
    audience = pd.DataFrame({"movieId": [*films, ANT_MAN], "movieScore": [40.0, 60.0, 50.0, 60.0]})
    audience.to_csv(made / "q10_truth.csv", index=False)
    return made


def test_a_folder_without_the_films_is_named(tmp_path):
    outcome = CliRunner().invoke(command, ["--data", str(tmp_path)])
    assert "no Movies.csv, Reviews.csv, q10_truth.csv in" in outcome.output


def test_scores_of_critics_are_shares():
    assert [share_of(score) for score in ("3/5", "7.5/10", "A", "F", "1.5 of 4")] == [0.6, 0.75, 1.0, 0.0, 0.375]
    assert np.isnan(share_of("Recommended"))


def test_no_system_sees_the_truth(folder):
    _, reviews, truth = read(folder)
    assert not set(HIDDEN) & set(reviews.columns)
    assert set(HIDDEN) <= set(truth.reviews.columns)


@pytest.mark.slow
def test_measures(folder):
    truth: Truth = read(folder)[2]
    of_taken = truth.reviews[truth.reviews["id"] == TAKEN]
    positive = of_taken.loc[of_taken["scoreSentiment"] == "POSITIVE", "reviewId"].tolist()
    negative = of_taken.loc[of_taken["scoreSentiment"] == "NEGATIVE", "reviewId"].tolist()
    assert truth.quality("Q2", positive[:5]) == 1
    assert truth.quality("Q2", [*positive[:3], *negative[:2]]) == pytest.approx(0.6)
    assert truth.quality("Q3", len(positive)) == 1
    assert truth.quality("Q3", 2 * len(positive)) == pytest.approx(0.5)
    of_ant = truth.reviews[truth.reviews["id"] == ANT_MAN]
    one, other = (of_ant.loc[of_ant["scoreSentiment"] == kind, "reviewId"].iloc[0] for kind in ("POSITIVE", "NEGATIVE"))
    pairs = pd.DataFrame({"reviewId:left": [one], "reviewId:right": [other]})
    assert truth.quality("Q6", pairs) == pytest.approx(2 / 11)
    assert truth.quality("Q5", pairs) == 0
    assert truth.quality("Q9", of_ant["share"]) == pytest.approx(1)
    found = {"POSITIVE": len(positive) * 2, "NEGATIVE": len(negative)}
    assert truth.quality("Q8", found) == pytest.approx((1 / 2 + 1) / 2)
    assert truth.as_published("Q8", found) == pytest.approx(1 / 1.5)
    in_order = pd.Series({TAKEN: 1.0, "other": 2.0, ANT_MAN: 3.0})
    assert truth.as_published("Q10", in_order) == 1, "a film that stands twice counts once"
    assert truth.as_published("Q10", -in_order) == 0


@pytest.fixture(scope="module")
def reviewer(folder):
    """A model that knows the texts, and the reviews with whether each is positive."""
    truth: Truth = read(folder)[2]
    reviews = truth.reviews[["reviewText", "scoreSentiment"]].head(40)
    favour = {text: 0.9 if kind == "POSITIVE" else 0.2 for text, kind in reviews.itertuples(index=False)}
    with Server(Reviewer(favour)) as server:
        lm = LM("openai/judged", api_base=server.url, api_key="none")
        shown = reviews.reset_index(drop=True)
        yield lm, shown[["reviewText"]], (shown["scoreSentiment"] == "POSITIVE")


@pytest.mark.parametrize("rows_per_call", [None, 8])
def test_every_form_of_prompt_is_answered_by_the_texts_alone(reviewer, rows_per_call):
    lm, reviews, positive = reviewer
    options = {"lm": lm, "progress": False}
    packed = options | {"rows_per_call": rows_per_call}

    def same(found: pd.Series) -> bool:
        return found.tolist() == positive.tolist()

    truths = reviews.tag.sem_filter("{reviewText} likes it", return_all=True, return_explanations=True, **packed)
    assert same(truths["filter_label"])
    harsh = reviews.tag.sem_filter("{reviewText} is negative", return_all=True, **packed)
    assert same(~harsh["filter_label"])
    assert same(reviews.tag.sem_score("How positive is {reviewText}?", **packed)["_score"] > 0.5)
    labels = reviews.tag.sem_map("The tone of {reviewText}", choices=["positive", "negative"], **packed)["_map"]
    assert same(labels == "positive")
    extracted = reviews.tag.sem_extract("reviewText", {"tone": "positive or negative"}, **packed)
    assert same(extracted["tone"] == "positive")
    if rows_per_call is None:
        best = reviews.tag.sem_topk("Which {reviewText} is most positive?", K=5, **options)
        assert positive[best.index].all()
        told = reviews.tag.sem_agg("How many of {reviewText} are positive?", **options)
        assert told.iloc[0, 0] == f"{positive.sum()} of {len(reviews)} reviews are positive."
        claim = "{reviewText:left} and {reviewText:right} express opposite sentiments"
        pairs = {plan: len(reviews.tag.sem_join(reviews, claim, plan=plan, **options)) for plan in ("auto", "blocks")}
        assert set(pairs.values()) == {2 * positive.sum() * (~positive).sum()}


def test_a_prompt_in_other_words_gets_the_same_judgement_and_an_unknown_one_none(reviewer):
    lm, reviews, positive = reviewer
    rows = "\n".join(f"{at}. {json.dumps([text])}" for at, text in enumerate(reviews["reviewText"].head(3), 7))
    form = "Judge each. Claim: it is positive. Say True or False for each."
    (said,) = lm.complete([Prompt.of(f"{form}\n<rows>\n{rows}\n</rows>", "Be brief.")])
    assert said.text == "\n".join(f"{at}: {truth}" for at, truth in enumerate(positive.head(3), 7))
    (refused,) = lm.complete([Prompt.of('{"reviewText": "unknown"}', "True or False?")])
    assert refused.text is None


@pytest.mark.slow
def test_the_ten_run_and_cost_no_more_than_their_worst_quote(folder):
    said = CliRunner().invoke(command, ["--data", str(folder), "--json", "-"])
    assert said.exit_code == 0, said.output
    result = json.loads(said.stdout)
    assert [query["name"] for query in result["queries"]] == list(QUERIES)
    for query in result["queries"]:
        assert query["prompts"] <= query["quoted"]["worst"]
        assert 0 <= query["quality"] <= 1
        assert (query["as_published"] == query["quality"]) or query["name"] in ("Q8", "Q10")
    by_name = {query["name"]: query for query in result["queries"]}
    assert [by_name[name]["prompts"] for name in ("Q3", "Q4", "Q8")] == [0, 0, 0], "Q2 has judged them"
    assert result["prompts"] == sum(query["prompts"] for query in result["queries"])
    assert result["mean_quality"] > 0.7


@pytest.mark.slow
def test_a_second_run_on_a_used_store_costs_what_the_first_one_did(folder, tmp_path):
    store, truth = tmp_path / "replayed.db", read(folder)[2]
    model = by_judgements(folder, truth)
    for rounds in range(8):
        said = CliRunner().invoke(command, ["--data", str(folder), "--lm", f"replay:{store}", "--json", "-"])
        result = json.loads(said.stdout)
        if not result["missing"]:
            break
        exported, answers = tmp_path / f"{rounds}.jsonl", tmp_path / "said.jsonl"
        export_requests(store, exported)
        with answers.open("w") as file:
            for line in map(json.loads, exported.read_text().splitlines()):
                request = Request({"messages": line["body"]["messages"]}, {}, 0, 0, 0)
                file.write(json.dumps({"custom_id": line["custom_id"], "answer": model(request)}) + "\n")
        import_answers(store, answers)
    assert 0 < rounds < 7
    (imported,) = open_store(store).recorded_by().values()
    assert result["prompts"] == imported, "what was paid is used"
    again = CliRunner().invoke(command, ["--data", str(folder), "--lm", f"replay:{store}", "--json", "-"])
    assert json.loads(again.stdout)["dollars"] == result["dollars"] > 0
    assert json.loads(again.stdout)["prompts"] == result["prompts"]
