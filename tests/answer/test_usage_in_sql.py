"""What ``usage`` counts of the LM functions of a statement: prompts that were asked, and failures that happened."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import tagframe as tf

PLACES = pd.DataFrame({"name": [f"{'good' if n % 3 else 'bad'} {n}" for n in range(200)]})


def said(request) -> str:
    text = request.messages[-1]["content"]
    rows = re.findall(r"^(\d+) (\[.*\])$", text, flags=re.MULTILINE)
    return "\n".join(f"{number}: {'bad' not in row}" for number, row in rows) or str("bad" not in text)


@pytest.mark.parametrize(
    ("condition", "rows", "prompts"),
    [
        ("sem_filter('{name} is x')", 16, 1),
        ("sem_filter('{name} is x')", 200, 41),
        # The filters look in the store for the values of their samples, before and after these are asked.
        ("sem_filter('{name} is x') AND sem_filter('{name} is y')", 200, 81),
    ],
)
def test_usage_counts_the_prompts_of_packs_and_no_look_up_as_a_failure(live, condition, rows, prompts):
    live.answers = said
    execute = tf.exec_sql(tf.open_corpus({"places": PLACES.head(rows)}))
    with tf.usage() as used:
        answer = tf.TAG(lambda question: f"SELECT count(*) FROM places WHERE {condition}", execute, None)("How many?")
    total = used.total
    assert answer.value == PLACES["name"].head(rows).str.startswith("good").sum()
    assert (total.prompts, total.sent, total.failed, total.deduplicated) == (prompts, prompts, 0, 0)
    assert answer.calls == live.count == prompts
    assert str(total).startswith(f"{prompts} prompt")
