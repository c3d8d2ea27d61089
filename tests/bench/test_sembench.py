"""``tag_bench sembench`` over a few made-up reviews, and its measures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pipelines.sembench import ANT_MAN, QUERIES, TAKEN
from tag_bench.sembench import HIDDEN, Scripted, Truth, command, read, share_of
from tag_bench.server import Request
from tagframe.lm import export_requests, import_answers
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
    return made


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


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["0", "0.2"])
def test_the_ten_run_and_cost_no_more_than_their_worst_quote(folder, noise):
    said = CliRunner().invoke(command, ["--data", str(folder), "--pack-noise", noise, "--json", "-"])
    assert said.exit_code == 0, said.output
    result = json.loads(said.stdout)
    assert [query["name"] for query in result["queries"]] == list(QUERIES)
    for query in result["queries"]:
        assert query["prompts"] <= query["quoted"]["worst"]
        assert 0 <= query["quality"] <= 1
    by_name = {query["name"]: query for query in result["queries"]}
    assert [by_name[name]["prompts"] for name in ("Q3", "Q4", "Q8")] == [0, 0, 0], "Q2 has judged them"
    assert result["prompts"] == sum(query["prompts"] for query in result["queries"])
    assert result["mean_quality"] > (0.7 if noise == "0" else 0.6)


@pytest.mark.slow
def test_a_second_run_on_a_used_store_costs_what_the_first_one_did(folder, tmp_path):
    store, truth = tmp_path / "replayed.db", read(folder)[2]
    model = Scripted(truth)
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
