"""What results look like as text and in a notebook, whichever they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.lm_sql import StageReport
from tagframe.display import fitted
from tagframe.display.markup import width_of
from tagframe.keys import Evidence, KeyPair
from tagframe.learning.learn import Learned
from tagframe.lm import Budget, Quote
from tagframe.operators.cascade import CascadeReport
from tagframe.operators.join.decide import ClaimReport
from tagframe.semantic.annotating import Annotated
from tagframe.semantic.descriptions import Described
from tests.test_display import Tags

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))
LONG = "a_name_that_is_much_longer_than_any_sensible_person_would_ever_choose_for_a_column"
HOSTILE = "<img src onerror>"


def corpus() -> tf.Corpus:
    """Tables and columns of long names, and of names that are markup."""
    left = pd.DataFrame({"id": [1, 2, 3], f"{LONG}_id": [7, 8, 8], HOSTILE: ["a", "b", "c"]})
    right, odd = pd.DataFrame({f"{LONG}_id": [7, 8, 9]}), pd.DataFrame({"id": [1]})
    return tf.open_corpus(
        {f"shop.orders_{LONG}": left, f"shop.{LONG}": right, f"shop.{HOSTILE}": odd, "shop.plain": odd}
    )


def results() -> Iterator[Any]:
    """One of each result, with long and hostile names."""
    tables = corpus()
    tables.keys.add(f"orders_{LONG}.{LONG}_id = {LONG}.{LONG}_id")
    tables.keys.forbid(f"orders_{LONG}.{HOSTILE} = {HOSTILE}.id")
    found = tables.retrieve_tables(f"orders {LONG} {HOSTILE}", k=2, method="iterative-jar")
    merged = tf.merge(
        {LONG: tables[f"shop.{LONG}"], f"orders_{LONG}": tables[f"shop.orders_{LONG}"]},
        on_fanout="allow",
        on_loss="allow",
    )
    evidence = Evidence(contained=0.98, error=0.01, reason=f"98% of the values found, {HOSTILE}, {LONG}")
    pair = KeyPair(f"shop.{HOSTILE}", (LONG,), f"shop.{LONG}", (f"{LONG}_id",), 0.9, evidence)
    yield from (tables, tables.keys, found, found.join_plan, merged.tag.merge_report, pair)
    yield Quote(rows=1_000_000, calls=900_000, deduplicated=8, stored=90_000, tokens_in=10**9, calls_at_most=10**6)
    yield Budget(calls=10**6, tokens=10**9, dollars=123456.789)
    yield CascadeReport(10**6, 10**5, 10**4, 3, 10**5, 10**5, 10, 10, 0.9, 0.9, 0.1)
    prompts = {HOSTILE: 3, LONG: 4}
    yield ClaimReport("labels", 10**6, 10**6, 10**5, prompts, dropped=f"{HOSTILE} {LONG}", recall=0.9, candidates=LONG)
    yield Learned(10**6, 10**5, 0, ((HOSTILE, f"{HOSTILE} {LONG}"),), (f"{LONG} = {LONG}",), (f"{LONG} = {LONG}",))
    yield Annotated(10**6, 10**6, ((LONG, f"{HOSTILE} {LONG}"),))
    yield Described(1, 2, (LONG, HOSTILE, LONG))
    yield StageReport(f"sem_filter('{HOSTILE} {LONG}')", 10**6, 3, 4, 5, (f"{LONG}.",))


@pytest.fixture(scope="module")
def all_results() -> list[Any]:
    return list(results())


@pytest.fixture(params=range(14), ids=str)
def result(request, all_results: list[Any]) -> Any:
    return all_results[request.param]


def test_all_results_are_tried(all_results: list[Any]):
    assert len(all_results) == 14


def test_text_has_eighty_columns_at_most(result: Any):
    for line in repr(result).split("\n"):
        assert width_of(line) <= 80, line


def test_a_notebook_shows_a_table_or_a_picture_of_it_and_nothing_that_names_say(result: Any):
    page = Tags(result._repr_html_())
    assert page.open == []
    assert {*page.tags} & {"table", "svg"}
    assert "img" not in page.tags


def test_dir_has_public_names_only(result: Any):
    if hasattr(type(result), "__dir__"):
        private = [name for name in dir(result) if name.startswith("_") and not name.endswith("__")]
        assert private == []
        assert "_repr_html_" not in dir(result)
        assert hasattr(result, "_repr_html_")


def test_the_catalogue_as_text_has_the_rows_of_each_table(festival: tf.Corpus):
    for tables in (festival.tables, festival.tables.query("rows > 6"), corpus().tables):
        text = str(tables)
        assert all(width_of(line) <= 80 for line in text.split("\n")), text
        for id, rows in zip(tables["id"], tables["rows"], strict=True):
            assert re.search(rf"{re.escape(id[:30])}\S*\s+{rows}\s", text), (id, text)
    assert "id" not in str(festival.tables[["rows"]])
    assert str(festival.tables.drop(columns="id"))
    assert str(festival.tables.iloc[:0])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_text_in_the_notebooks_has_eighty_columns_at_most(notebook: Path):
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            assert [line for line in text.split("\n") if width_of(line) > 80] == [], cell.source


@pytest.mark.parametrize(
    "text", ["", "a" + " " * 100 + "b", "a" * 300, "漢字" * 90, "├─ " + "ab " * 70, "a\n\n  b " + "c " * 99]
)
def test_no_letter_is_lost_where_lines_are_broken(text: str):
    def letters(text: str) -> str:
        return re.sub(r"[\s│]", "", text)

    broken = fitted(text)
    assert letters(broken) == letters(text)
    assert all(width_of(line) <= 80 for line in broken.split("\n"))


def test_the_legend_says_what_each_sign_means(make: Callable[..., Any]):
    assert "n:1: several rows on the left can share one row on the right" in make("n:1")
    assert "1:n: a row on the left can have several partners, and is then repeated" in make("1:n")
    assert "n:n: rows on both sides can have several partners" in make("n:n")


@pytest.fixture
def make() -> Callable[[str], str]:
    from tagframe.joins import plan_tables

    def plan(sign: str) -> str:
        one, many = pd.DataFrame({"k_id": [1, 2, 3]}), pd.DataFrame({"k_id": [1, 1, 2, 3], "v": [1, 2, 3, 4]})
        left, right = {"n:1": (many, one), "1:n": (one, many), "n:n": (many, many.assign(w=1))}[sign]
        tables = tf.open_corpus({"d.one": left, "d.two": right})
        tables.keys.add("one.k_id = two.k_id")
        return plan_tables(tables, ["d.one", "d.two"], anchor="d.one")._repr_html_()

    return plan
