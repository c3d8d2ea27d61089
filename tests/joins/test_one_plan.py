"""The same tables, anchor and hints give the same plan and rows, whoever asks and wherever the tables are."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.speed.keys import write_erp
from tagframe.joins import infer
from tagframe.joins.infer import keys_between
from tagframe.keys.inference import ACCEPTED
from tests.draws import one_of
from tests.joins.schemas import SCENARIOS, Frames, random_schema, scenarios
from tests.opened_in import by_files, by_frames, found_in, outcome, postgres, result, sqlite


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Doubtful plans are compared too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def made(name: str) -> Frames:
    return SCENARIOS[name](random.Random(name))


def assert_one_plan(frames: Frames, folder: Path) -> None:
    (_, plan, rows), *others = [*by_frames(frames), *by_files(frames, folder)]
    assert len(others) in (6, 7)
    assert {who: other for who, other, _ in others if other != plan} == {}
    assert {who: other for who, _, other in others if other != rows} == {}


@pytest.mark.parametrize(
    "name",
    [name if number % 3 == 0 else pytest.param(name, marks=pytest.mark.slow) for number, name in enumerate(SCENARIOS)],
)
def test_a_scenario_has_one_plan(name: str, tmp_path: Path):
    assert_one_plan(made(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_random_schema_has_one_plan(seed: int, tmp_path: Path):
    assert_one_plan(random_schema(seed), tmp_path)


@pytest.mark.slow
def test_scenarios_in_every_variant_and_random_schemas_have_one_plan(tmp_path: Path):
    """Of ten variants of each scenario and 294 schemas, one of nineteen: each variant is among them."""
    drawn = [*scenarios(), *((f"random {seed}", random_schema(seed)) for seed in range(6, 300))]
    for number, (_, frames) in enumerate(one_of(19, drawn)):
        assert_one_plan(frames, tmp_path / str(number))


@pytest.mark.parametrize("analysed", [True, False])
@pytest.mark.parametrize("name", ["panel", "lab", "shop", "categories"])
def test_a_server_has_the_plan_and_the_rows_of_frames(name: str, analysed: bool, database):
    frames = made(name)
    found = found_in(postgres(database(), frames, analysed=analysed), [*frames])
    assert outcome(lambda: found.join_plan) == outcome(lambda: tf.join_plan(frames))
    assert in_any_order(result(found.merge)) == in_any_order(result(lambda: tf.merge(frames)))


def in_any_order(merged: Any) -> Any:
    """A server's rows come in its own."""
    names, rows, *rest = merged
    return names, sorted(rows, key=repr), *rest


@pytest.mark.parametrize("name", ["panel", "panel_with_id"])
def test_a_panel_is_joined_by_what_and_when(name: str):
    frames = made(name)
    (step,) = tf.join_plan(frames).steps
    assert sorted(step.base_columns) == sorted(step.columns) == ["country", "year"]
    assert step.score == 0.95
    merged = found_in(tf.open_corpus(frames), ["firms", "rates"]).merge()
    assert len(merged) == 600


def test_sales_and_categories_are_not_joined_by_the_ids_of_either():
    frames = made("categories")
    with pytest.raises(tf.errors.NotConnected):
        tf.join_plan(frames)


@pytest.mark.parametrize(("name", "columns"), [("lab", ("patient_id",)), ("budget", ("account", "month"))])
def test_keys_are_those_that_a_plan_sees(name: str, columns: tuple[str, ...]):
    frames = made(name)
    (key,) = tf.infer_keys(frames)
    (step,) = tf.join_plan(frames).steps
    assert key.left_columns == key.right_columns == columns
    assert step.key == key
    assert step.score == key.score


def test_what_rows_said_of_a_plan_is_kept(tmp_path: Path, monkeypatch):
    frames = made("panel")
    first = found_in(sqlite(frames, tmp_path / "s"), [*frames]).join_plan
    again = tf.open_corpus(tmp_path / "s" / "s.sqlite", progress=False)
    monkeypatch.setattr(tf.Corpus, "read", lambda *args, **options: pytest.fail("rows are read"))
    assert found_in(again, [*frames]).join_plan == first


def test_the_plan_is_made_anew_when_a_table_changes(tmp_path: Path):
    frames = made("panel")
    corpus = sqlite(frames, tmp_path / "s")
    assert len(found_in(corpus, [*frames]).join_plan.steps[0].columns) == 2
    frames["rates"] = pd.concat([frames["rates"], frames["rates"].head(40)])
    again = sqlite(frames, tmp_path / "again")
    plan = found_in(again, [*frames]).join_plan
    assert plan.steps[0].score < 0.95


def test_tables_that_nobody_asked_for_are_joined_by_likely_keys_only(tmp_path):
    write_erp(8, tmp_path / "erp.sqlite")
    corpus = tf.open_corpus(tmp_path / "erp.sqlite")
    asked, *around = sorted(corpus.tables["id"])
    keys = keys_between(corpus, [asked], around).keys
    assert any(key.score < ACCEPTED for key in keys if asked in key.tables)
    assert any(asked not in key.tables for key in keys)
    assert all(key.score >= ACCEPTED for key in keys if asked not in key.tables)


def test_keys_of_frames_are_inferred_once_until_a_fact_about_them_changes(monkeypatch):
    frames = {"orders": pd.DataFrame({"nr": [1, 2, 3], "buyer": [7, 8, 7]}), "users": pd.DataFrame({"id": [7, 8, 9]})}
    corpus, calls = tf.open_corpus(frames), []
    monkeypatch.setattr(infer, "_seen", lambda *given, inferred=infer._seen: calls.append(given) or inferred(*given))
    for count, change in enumerate((lambda key: None, corpus.keys.add, corpus.keys.forget), 1):
        change("orders.buyer = users.id")
        both = [keys_between(corpus, corpus.ids) for _ in range(2)]
        assert len(calls) == count
        assert both[0].keys == both[1].keys
    assert keys_between(corpus.subset(["orders"]), ["frames.orders"]).keys == []
    assert keys_between(corpus, corpus.ids).keys == both[0].keys
