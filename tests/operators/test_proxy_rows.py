"""What a cascade promises: bounds held against exact chances, and the promise over many drawn proxies."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from tagframe.operators.cascade import Targets, calibrated, decide, found_at_most
from tests.operators.drawn_proxies import PROXIES, answered, decided, reached, simulate

TARGETS = Targets(recall=0.9, precision=0.9, delta=0.1)


def chance_found_before(missed: int, rate: float, found: int) -> float:
    """P(at most ``found`` are found before one more than ``missed`` is missed), term by term."""
    return sum(comb(missed + j, j) * rate**j * (1 - rate) ** (missed + 1) for j in range(found + 1))


@pytest.mark.parametrize("missed", [0, 1, 5, 28, 200])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.7])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_the_most_that_may_be_found(missed: int, rate: float, alpha: float):
    found = found_at_most(missed, rate, alpha)
    assert found < 0 or chance_found_before(missed, rate, found) <= alpha
    assert chance_found_before(missed, rate, found + 1) > alpha


def test_nothing_may_be_missed_nothing_is_promised():
    assert found_at_most(-1, 0.5, 0.5) == -1
    assert found_at_most(10, 0.5, 0.0) == -1


@pytest.mark.slow
@pytest.mark.parametrize("proxy", PROXIES)
def test_the_promise_is_kept(proxy: str):
    misses, _ = simulate(proxy, 2000, 0.2, TARGETS, runs=24)
    assert misses <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "prevalence", "targets"),
    [
        (300, 0.2, TARGETS),
        (3000, 0.01, TARGETS),
        (3000, 0.9, TARGETS),
        (3000, 0.3, Targets(recall=0.7, precision=0.98, delta=0.05)),
        (1, 1.0, TARGETS),
    ],
)
def test_the_promise_is_kept_for_other_rows_and_targets(rows: int, prevalence: float, targets: Targets):
    assert simulate("binormal", rows, prevalence, targets, runs=24)[0] <= targets.delta


@pytest.mark.slow
def test_fewer_than_half_of_the_calls():
    """With thresholds that are known beforehand it would be 31 %."""
    assert simulate("binormal", 10_000, 0.2, TARGETS, runs=8)[1] <= 0.5


def test_targets_of_1_ask_all():
    scores, true = PROXIES["binormal"](np.random.default_rng(0), 500, 0.2)
    assert decided(scores, true, Targets(1.0, 1.0, 0.1), seed=0).judged.all()


def test_what_was_asked_keeps_its_answer_and_the_same_seed_decides_alike():
    scores, true = PROXIES["binormal"](np.random.default_rng(0), 4000, 0.2)
    decision, again = (decided(scores, true, TARGETS, seed=3) for _ in range(2))
    assert (decision.truths[decision.judged] == true[decision.judged]).all()
    assert (decision.truths == again.truths).all()
    assert (decision.judged == again.judged).all()
    assert not (decided(scores, true, TARGETS, seed=4).judged == again.judged).all()
    missed = (true & (decision.truths == 0)).sum()
    wrong = (~true & (decision.truths == 1)).sum()
    assert (missed <= decision.missed_at_most, wrong <= decision.wrong_at_most) == (True, True)


def test_rows_without_an_answer_cost_calls_not_the_promise():
    scores, true = PROXIES["binormal"](np.random.default_rng(0), 4000, 0.2)
    lost = np.random.default_rng(1).random(4000) < 0.05
    deciding = decide(np.ones(4000, dtype=np.intp), calibrated(scores), TARGETS)
    decision = answered(deciding, lambda positions: np.where(lost[positions], -1, true[positions]).astype(np.int8))
    assert set(np.unique(decision.truths[decision.judged])) == {-1, 0, 1}
    recall, precision = reached(decision, true & ~(lost & decision.judged))
    assert recall >= 0.9
    assert precision >= 0.9
