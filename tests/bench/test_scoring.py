import pytest

from tag_bench.answers.databases import parse_key
from tag_bench.answers.records import asks_for_order, strict, tolerant


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("54", (54,)),
        ("['Jennifer', 'Lisa']", ("Jennifer", "Lisa")),
        (' ["Long Beach", "Paramount"]', ("Long Beach", "Paramount")),
        ("[115372, 115254]", (115372, 115254)),
        ("K-5", ("K-5",)),
        ("(562) 944-0033", ("(562) 944-0033",)),
        ("TRUE", ("TRUE",)),
        ("", None),
        ("  ", None),
    ],
)
def test_a_published_answer_is_read_as_values(text, values):
    assert parse_key(text) == values


@pytest.mark.parametrize(
    ("values", "key", "is_equal"),
    [
        ([54], (54,), True),
        ([54.0], (54,), True),
        (["54"], (54,), False),
        ([True], (1,), False),
        (["Lisa", "Jennifer"], ("Jennifer", "Lisa"), False),
        (["são paulo"], ("São Paulo",), False),
        ([], ("a",), False),
        (["a", "a"], ("a",), False),
    ],
)
def test_strict_is_equality_of_values_in_order(values, key, is_equal):
    assert strict(values, key) is is_equal


@pytest.mark.parametrize(
    ("values", "key", "question", "is_right"),
    [
        (["54"], (54,), "How many?", True),
        (["1,239"], (1239,), "How many?", True),
        ([" são  PAULO "], ("Sao Paulo",), "Which city?", True),
        ([True], ("YES",), "Is it?", True),
        (["False"], ("No",), "Is it?", True),
        (["b", "a"], ("a", "b"), "Which two are the safest?", True),
        (["b", "a"], ("a", "b"), "List them in order from best to worst.", False),
        (["b", "a"], ("a", "b"), "Rank the locations by distance.", False),
        (["a", "a", "b"], ("a", "b", "b"), "Which?", False),
        (["54 schools"], (54,), "How many?", False),
        ([], (54,), "How many?", False),
    ],
)
def test_tolerant_forgives_form_but_not_content(values, key, question, is_right):
    assert tolerant(values, key, question) is is_right


def test_a_rank_that_is_a_value_asks_for_no_order():
    assert not asks_for_order("How many drivers have been ranked 2?")
    assert not asks_for_order("Of the constructors that have been ranked 1 in 2014, which has the most prestige?")
    assert asks_for_order("in alphabetical order")
    assert asks_for_order("and rank them based on affordability")
