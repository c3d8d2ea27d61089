"""No scenario of a person's folder may be wrong in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")
pytest.importorskip("xlsxwriter", reason="writes workbooks")

from tests.folder_scenarios import SCENARIOS, Scenario, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_scenario_is_right_or_said(scenario: Scenario, tmp_path: Path) -> None:
    outcome = run(scenario, tmp_path)
    assert not outcome.silent or outcome.confidence < 0.9, (outcome.found, outcome.confidence)
