"""The operator of the page Extend, which uses public names only, in every form that it gets."""

from __future__ import annotations

import asyncio
import inspect

import pandas as pd
import pytest

import tagframe as tf
from tagframe.accessor import TagAccessor
from tagframe.errors import ColumnNotFound, InvalidArgument, RowsFailed
from tagframe.operators import OPERATORS, Operator
from tests.test_docs import ROOT, examples

PAGE = next(one["code"] for one in examples(ROOT / "docs" / "guides" / "extend.md") if "def sem_stars" in one["code"])
DECLARATION = PAGE.partition("tf.configure(")[0]
ASKED = "How good is {review}?"


@pytest.fixture
def sem_stars(own_names: None) -> Operator:
    names = {"__name__": "of_the_page"}
    exec(DECLARATION, names)
    return names["sem_stars"]


@pytest.fixture
def reviews(live) -> pd.DataFrame:
    """Of which a model thinks: as many stars as exclamation marks."""
    live.answers = lambda request: str(request.prompt.count("!")) if "!" in request.prompt else "none"
    return pd.DataFrame({"review": ["Good!!!!", None, "Well!!!", "Good!!!!"]}, index=[3, 3, 1, 0])


STARS = [4, pd.NA, 3, 4]


def test_a_guess_that_is_rejected_still_counts_all_that_is_asked_with_it(own_names, live):
    names = {"__name__": "of_the_page"}
    exec(DECLARATION.replace('"3"', '"three"'), names)
    frame = pd.DataFrame({"review": ["Good!!!!", "Well!!!", "Bad!", "So so!!"]})
    quote = frame.tag.sem_stars(ASKED, quote=True)
    assert (quote.calls, quote.calls_at_most, quote.whole) == (4, 8, False)
    assert "at least" in str(quote)


def test_it_has_every_form(sem_stars, reviews, live):
    for rated in (
        sem_stars(reviews, ASKED),
        tf.sem_stars(reviews, ASKED),
        asyncio.run(tf.asem_stars(reviews, ASKED)),
        reviews.tag.sem_stars(ASKED),
        reviews.tag.sem_stars(user_instruction=ASKED),
        pd.concat(tf.sem_stars([reviews.head(2), reviews.tail(2)], ASKED)),
        sem_stars(reviews, ASKED, budget=0.5, lm_for={"sem_stars": "openai/test"}),
    ):
        assert rated["_stars"].tolist() == STARS
        assert rated["_stars"].dtype == "Int64"
        assert rated.index.tolist() == [3, 3, 1, 0]
    assert rated.tag.outcomes["outcome"].tolist() == ["answered", "null", "answered", "answered"]
    assert list(reviews.columns) == ["review"]
    assert len(live.requests) == 2  # each distinct row once, in whatever form
    assert reviews.tag.sem_stars(f"{ASKED} Be strict.", quote=True).calls == 2
    assert sem_stars(reviews, f"{ASKED} Be strict.", quote=True).calls == 2
    assert len(live.requests) == 2


@pytest.mark.slow
@pytest.mark.pandas2
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_it_goes_over_partitions(sem_stars, reviews, live):
    dd = pytest.importorskip("dask.dataframe")
    import tagframe.dask

    assert "sem_stars" in dir(tagframe.dask.TagAccessor(None))
    lazy = dd.from_pandas(reviews.reset_index(drop=True), npartitions=2).tag.sem_stars(ASKED)
    assert lazy.compute(scheduler="synchronous")["_stars"].tolist() == STARS
    assert len(live.requests) == 2


def test_what_accept_refuses_is_asked_once_more_and_is_then_a_failed_row(sem_stars, reviews, live):
    reviews = pd.concat([reviews, pd.DataFrame({"review": ["Well."]}, index=[9])])
    with pytest.raises(RowsFailed, match=r"sem_stars: 1 of 5 rows have no answer; the first has the index 9") as failed:
        sem_stars(reviews, ASKED)
    assert "invalid literal for int" in str(failed.value)
    assert failed.value.frame["_stars"].tolist() == [*STARS, pd.NA]
    assert len(live.requests) == 4
    assert "invalid literal for int" in live.requests[-1].messages[-1]["content"]
    kept = sem_stars(reviews, ASKED, on_error="keep")
    assert "AnswerRejected" in kept["stars_error"].iloc[-1]
    assert kept["stars_error"].notna().sum() == 1
    assert sem_stars(reviews, ASKED, on_error="drop")["_stars"].tolist() == STARS
    with pytest.raises(InvalidArgument, match="on_error must be one of"):
        sem_stars(reviews, ASKED, on_error="ignore")


def test_it_refuses_what_ours_refuse(sem_stars, reviews):
    with pytest.raises(InvalidArgument, match=r"sem_stars has no keyword 'sufix' .*did you mean 'suffix'"):
        reviews.tag.sem_stars(ASKED, sufix="_s")
    with pytest.raises(ColumnNotFound, match="did you mean 'review'"):
        sem_stars(reviews, "How good is {revew}?")


def test_a_name_that_another_module_has_is_refused(sem_stars, reviews):
    for name, owner in (
        ("sem_filter", "tagframe.operators.filter"),
        ("sem_stars", "of_the_page"),
        ("sem_cluster_by", "tagframe.lotus"),
    ):
        before = tf.sem_filter
        with pytest.raises(InvalidArgument, match=f"{owner} has an operator {name}; give that of mine another name"):
            exec(DECLARATION.replace("sem_stars", name), {"__name__": "mine"})
        assert tf.sem_filter is before
    exec(DECLARATION.replace('"_stars"', '"_again"'), {"__name__": "of_the_page"})
    assert "_again" in reviews.tag.sem_stars(ASKED).columns
    for form in (tf.sem_stars, tf.asem_stars, TagAccessor.sem_stars, reviews.tag.sem_stars):
        assert inspect.signature(form).parameters["suffix"].default == "_again"
    assert next(iter(inspect.signature(reviews.tag.sem_stars).parameters)) == "instruction"


def test_what_is_wrong_in_a_declaration_is_told(own_names, reviews):
    names = {"__name__": "of_the_page"}
    exec(DECLARATION.replace("yield from ops.together([rated(task, row) for row in rows])", "[]"), names)
    with pytest.raises(InvalidArgument, match="sem_stars must be a generator that yields batches; it gave a DataFrame"):
        names["sem_stars"](reviews.head(0), ASKED)
    for was, becomes, told in (
        ("[value for _, value in rates]", "[]", "4 rows need as many '_stars'; got 0"),
        ("for outcome, _ in rates", "for outcome, _ in [*rates, *rates]", "4 rows need as many outcomes; got 8"),
    ):
        exec(DECLARATION.replace(was, becomes), names)
        with pytest.raises(InvalidArgument, match=f"sem_stars: {told}"):
            names["sem_stars"](reviews, ASKED)


def test_the_names_of_lotus_are_those_of_the_accessor():
    from tagframe.accessor.operator_methods import FUNCTIONS
    from tagframe.operators.operator import OF_LOTUS

    assert {name: room for name, room in FUNCTIONS.items() if name.startswith("sem_")} == OF_LOTUS


@pytest.mark.parametrize(
    ("was", "becomes"),
    [("sem_stars", "stars"), ("    Args:", "    What:"), ("suffix:", "to:"), ("suffix:", "quote:"), ("suffix:", "lm:")],
)
def test_what_is_no_declaration_is_refused(own_names, was: str, becomes: str):
    with pytest.raises(InvalidArgument, match="an operator is a function sem_NAME"):
        exec(DECLARATION.replace(was, becomes), {"__name__": "of_the_page"})
    assert "sem_stars" not in OPERATORS
