"""``tag_bench ranking``, in small."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tag_bench.ranking import command


@pytest.mark.slow
def test_ours_is_exact_with_true_answers_and_cheaper_than_quick_select_with_wrong_ones():
    done = CliRunner().invoke(command, ["--rows", "300", "--keep", "5", "--seeds", "8"])
    true, wrong, firm = json.loads(done.output)["cases"]
    for way in ("lists", "peer"):
        assert true[way]["exact"] == 1.0
    for case in (wrong, firm):
        assert case["lists"]["overlap"] >= case["peer"]["overlap"]
        assert case["lists"]["prompts"] < case["peer"]["prompts"] / 10
        assert case["lists"]["rows_shown"] < case["peer"]["rows_shown"]
