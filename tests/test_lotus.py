"""LOTUS's operators on our LM layer; in a process of its own, since importing LOTUS changes warnings and logging."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import ColumnNotFound, InvalidArgument, MissingExtra

pytestmark = [pytest.mark.slow, pytest.mark.pandas2]

installed = importlib.util.find_spec("lotus") is not None

SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
import lotus, pandas as pd, tagframe as tf, tagframe.lotus
from pydantic import BaseModel
from lotus.types import CascadeArgs, ReasoningStrategy

url, store = sys.argv[1:]
tf.configure(api_base=url, api_key="sk-secret", store=store, concurrency=4, progress=False)
lm = tagframe.lotus.lm("openai/test")
lotus.settings.configure(lm=lm)
report = {"is a lotus LM": isinstance(lm, lotus.models.LM)}
frame = pd.DataFrame({"city": ["Oakland", "Paris", "Oakland", "Oslo"]})
frame["name"] = frame["city"] + " town"

report["filter"] = frame.sem_filter("{city} is in California")["city"].tolist()
report["hits"] = lm.stats.cache_hits
report["filter again"] = frame.sem_filter("{city} is in California")["city"].tolist()
report["calls"] = [row for row in tf.lm.usage()[["sent", "deduplicated", "stored"]].to_numpy().tolist()]
report["tokens"] = lm.stats.physical_usage.total_tokens, lm.stats.virtual_usage.total_tokens
report["map"] = frame.sem_map("shout {city}")["_map"].tolist()
report["agg"] = frame.sem_agg("list the {city}")["_output"].tolist()
report["topk"] = frame.sem_topk("largest {city}", K=1)["city"].tolist()
report["join"] = len(frame.sem_join(pd.DataFrame({"state": ["California"]}), "{city} is in {state}"))

class City(BaseModel):
    name: str

report["format"] = lm([[{"role": "user", "content": "json please"}]], response_format=City).outputs
out = lm([[{"role": "user", "content": "tokens please"}]], logprobs=True)
report["logprobs"] = lm.format_logprobs_for_filter_cascade(out.logprobs).positive_probs
image = [{"type": "text", "text": "image?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
report["image"] = lm([[{"role": "user", "content": image}]]).outputs
try:
    pd.DataFrame({"city": ["Oslo", "broken", "Rome"]}).sem_map("praise {city}")
except tf.errors.LMError as failure:
    report["failure"] = str(failure)
books = pd.DataFrame(
    {"title": ["a long day at the beach", "a long day at the beaches", None, "the price of bread"], "n": range(4)},
    index=[7, 7, 1, 0],
)
before = books.copy(deep=True)
report["dedup"] = books.tag.sem_dedup("title", 0.8)["n"].tolist()
clusters = books.tag.sem_cluster_by("title", 2)
report["clusters"] = [None if pd.isna(number) else int(number) for number in clusters["cluster_id"]]
parts = books.fillna("none").tag.sem_partition_by(lotus.utils.cluster("title", 2))
report["parts"] = parts["_lotus_partition_id"].nunique(), parts.index.tolist()
report["untouched"] = books.equals(before) and not books.attrs and lotus.settings.rm is None
report["empty"] = len(books.head(0).tag.sem_dedup("title", 0.8)), len(books.head(0).tag.sem_cluster_by("title", 1))
print(json.dumps(report))
"""


def answers(request: Request) -> str | Reply:
    text = str(request.messages)
    if "broken" in text:
        return error(400, "cannot praise")
    if "json please" in text:
        return json.dumps(request.body["response_format"])
    if "image?" in text:
        return str(len(request.messages[0]["content"]))
    if "is in" in text:
        return "True" if "Oakland" in text else "False"
    return "Document 1" if "Document" in text else "OK"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[Request]]:
    if not installed:
        pytest.skip("the lotus extra is not installed")
    with Server(answers) as server:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.url, str(tmp_path_factory.mktemp("lotus") / "store.db")],
            capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # or its import asks the network for prices
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), server.requests


Ran = tuple[dict[str, Any], list[Request]]


def test_operators_answer_as_they_do(ran: Ran):
    report, _ = ran
    assert report["is a lotus LM"]
    assert report["filter"] == report["filter again"] == ["Oakland", "Oakland"]
    assert report["map"] == ["OK"] * 4
    assert report["agg"] == ["Document 1"]
    assert len(report["topk"]) == 1
    assert report["join"] == 2


def test_rows_are_deduplicated_and_stored(ran: Ran):
    report, requests = ran
    assert report["calls"] == [[3, 1, 0], [0, 1, 3]]
    assert report["hits"] == 1
    physical, virtual = report["tokens"]
    assert 0 < physical < virtual
    filters = [request for request in requests if "is in California" in str(request.messages)]
    assert len(filters) == 3  # four rows, two of them alike, asked twice


def test_parameters_reach_the_server(ran: Ran):
    report, requests = ran
    assert requests[0].body["max_tokens"] == 512
    assert requests[0].body["temperature"] == 0
    assert requests[0].headers["authorization"] == "Bearer sk-secret"
    assert json.loads(report["format"][0])["json_schema"]["name"] == "City"
    assert report["image"] == ["2"]


def test_logprobs_for_cascades(ran: Ran):
    assert ran[0]["logprobs"][0] == pytest.approx(0.9, abs=0.01)


def test_a_failed_row_raises_when_the_others_are_done(ran: Ran):
    report, requests = ran
    assert report["failure"].startswith("1 of 3 prompts failed, the first with: the server answered 400: cannot praise")
    assert sum("praise" in str(request.messages) for request in requests) == 3


def test_lotus_operators_through_the_accessor_need_no_index(ran: Ran):
    report, _ = ran
    assert report["dedup"] == [0, 2, 3]
    assert report["clusters"][0] == report["clusters"][1] != report["clusters"][3]
    assert report["clusters"][2] is None
    assert report["parts"] == [2, [7, 7, 1, 0]]
    assert report["untouched"]
    assert report["empty"] == [0, 0]


def test_bad_arguments_of_lotus_operators():
    frame = pd.DataFrame({"title": ["a", None]})
    with pytest.raises(ColumnNotFound, match="did you mean 'title'"):
        frame.tag.sem_dedup("titel", 0.9)
    with pytest.raises(InvalidArgument, match="ncentroids must be from 1 to 1, the number of rows with text; got 2"):
        frame.tag.sem_cluster_by("title", 2)
    with pytest.raises(InvalidArgument, match="already has a column 'cluster_id'"):
        frame.assign(cluster_id=1).tag.sem_cluster_by("title", 1)
    with pytest.raises(InvalidArgument, match="partition_fn must be a function"):
        frame.tag.sem_partition_by([0, 1])


@pytest.mark.skipif(installed, reason="LOTUS is installed")
@pytest.mark.parametrize(("name", "arguments"), [("sem_cluster_by", ("a", 1)), ("sem_partition_by", (len,))])
def test_without_lotus_its_operators_name_the_extra(name, arguments):
    with pytest.raises(MissingExtra, match=r"this operator needs LOTUS: pip install 'tagframe\[lotus\]'"):
        getattr(pd.DataFrame({"a": ["b", "c"]}).tag, name)(*arguments)


@pytest.mark.skipif(installed, reason="LOTUS is installed")
def test_without_lotus_the_extra_is_named(own_store: Path):
    import tagframe.lotus

    with pytest.raises(MissingExtra, match=r"tagframe\[lotus\]"):
        tagframe.lotus.lm("openai/test", api_base="http://localhost/v1")
