"""``tag_bench ranking``, in small."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tag_bench.ranking import command


@pytest.mark.slow
def test_ours_is_exact_with_true_answers_and_surer_than_quick_select_with_wrong_ones():
    done = CliRunner().invoke(command, ["--rows", "300", "--keep", "5", "--seeds", "8"])
    true, wrong, firm = json.loads(done.output)["cases"]
    for side in ("ours", "peer"):
        assert true[side]["exact"] == 1.0
    for case in (wrong, firm):
        assert case["ours_given_as_many"]["overlap"] >= case["peer"]["overlap"]
        assert case["ours_given_as_many"]["comparisons_at_most"] <= case["peer"]["comparisons_at_most"]
