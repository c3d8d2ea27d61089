"""Statements that people have verified, with parameters, over real HTTP."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import DoubtWarning, InvalidArgument, SQLFailed, UnreadStatement
from tagframe.evaluation import evaluate

QUESTION = "Revenue by region in a year"
SQL = (
    "SELECT r.region, sum(s.amount) AS revenue FROM sales s JOIN regions r ON r.region_id = s.region_id "
    "WHERE s.year = :year GROUP BY r.region ORDER BY 1"
)
ASKED = "What was the revenue of each region in 2013?"


@pytest.fixture
def shop():
    sales = {"region_id": [1, 1, 2, 2], "year": [2012, 2013, 2012, 2013], "amount": [1.0, 2.0, 3.0, 4.0]}
    regions = {"region_id": [1, 2], "region": ["North", "South"], "boss": ["Ann", "Bo"]}
    return tf.open_corpus({"sales": pd.DataFrame(sales), "regions": pd.DataFrame(regions)})


@pytest.fixture
def prompts(live):
    """The prompts, which are answered by ``prompts.replies`` in turn, the last one again and again."""

    class Prompts(list):
        replies = ("-- answer: values\nSELECT count(*) AS n FROM sales",)

    seen = Prompts()

    def answer(request):
        seen.append(request.prompt)
        return seen.replies[min(len(seen), len(seen.replies)) - 1]

    live.answers = answer
    return seen


def test_a_model_fills_the_parameters_and_the_answer_says_whose_it_is(shop, prompts):
    shop.verify(QUESTION, SQL, by="finance")
    prompts.replies = ('{"verified": 1, "year": "2013"}', "-- answer: values\nSELECT 1 AS one FROM sales")
    answer = tf.ask(ASKED, shop)
    assert answer.rows.to_dict("list") == {"region": ["North", "South"], "revenue": [2, 4]}
    assert answer.verified == f"finance: {QUESTION} (year = 2013)"
    assert answer.calls == len(prompts) == 1
    assert f"1. {QUESTION}\n{SQL}" in prompts[0]
    for visible in (repr(answer), answer.explain(), answer._repr_html_(), str(answer.to_dict())):
        assert f"finance: {QUESTION}" in visible
    assert shop.learned.learned_by.tolist() == ["finance"]
    answer.accept()
    assert len(shop.learned) == 1
    assert tf.ask("How many sales of toys?", shop).verified == ""


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"verified": 1, "year": 2031}', r"no row of frames.sales has s.year = 2031; year holds 2012, 2013"),
        ('{"verified": 1, "year": null}', "needs one value for each of ['year']"),
        ('{"verified": 1}', "needs one value for each of ['year']"),
        ('{"verified": 1, "year": 2013, "region": "North"}', "needs one value for each of ['year']"),
        ('{"verified": 2, "year": 2013}', '"verified" is a number from 1 to 1; got 2'),
        ('{"verified": true, "year": "x\' OR 1=1 --"}', "no row of frames.sales has s.year = 'x'' OR 1=1 --'"),
    ],
)
def test_a_value_that_no_row_has_is_refused_and_the_model_asked_again(shop, prompts, reply, why):
    shop.verify(QUESTION, SQL, by="finance")
    prompts.replies = (reply, '{"missing": "the sales of 2031"}')
    answer = tf.ask("What was the revenue of each region in 2031?", shop)
    assert why in prompts[1]
    assert answer.lacking == ("the sales of 2031",)
    assert answer.verified == ""


def test_of_two_that_fit_the_second_is_another_reading(shop, prompts):
    shop.verify(QUESTION, SQL, by="finance")
    shop.verify("Revenue by region until a year", SQL.replace("= :year", "<= :year"), by="sales")
    prompts.replies = ('[{"verified": 1, "year": 2013}, {"verified": 2, "year": 2013}]',)
    answer = tf.ask(ASKED, shop)
    (doubt,) = answer.doubts
    assert "by the verified statement of sales: Revenue by region until a year (year = 2013)" in doubt.facts
    assert doubt.rows["revenue"].tolist() == [3, 7]


def test_exactly_the_question_of_one_without_parameters_asks_no_model(shop, prompts):
    shop.verify("How many regions are there?", "SELECT count(*) AS n FROM regions", by="finance")
    answer = tf.ask("how many regions are there", shop)
    assert (answer.values, answer.verified, len(prompts)) == ([2], "finance: How many regions are there?", 0)
    other = tf.ask("How many sales are there?", shop)
    answer = tf.ask("How many regions are there?", shop)
    with pytest.raises(InvalidArgument, match=r"'finance' verified"):
        answer.correct("SELECT 3")
    shop.verify("How many regions are there?", "SELECT count(*) + 1 AS n FROM regions", by="sales")
    assert tf.ask("How many regions are there?", shop).values == [3]
    assert shop.forget("How many regions are there?") == 1
    assert tf.ask("How many regions are there?", shop).verified == other.verified == ""


@pytest.mark.parametrize(
    ("sql", "error", "why"),
    [
        ("SELECT boss FROM regions WHERE region = :region", SQLFailed, "boss is private"),
        ("SELECT nothing FROM regions", SQLFailed, "nothing"),
        ("SELECT 1 FROM elsewhere", UnreadStatement, "no table here"),
        ("DELETE FROM regions", UnreadStatement, "selects nothing"),
        ("SELECT region FROM regions WHERE region = ?", InvalidArgument, "has a name, as :year"),
        (" ", InvalidArgument, "verify takes"),
    ],
)
def test_what_cannot_run_is_not_verified(shop, sql, error, why):
    shop.private("regions.boss")
    with pytest.raises(error, match=why):
        shop.verify("Regions", sql, by="finance")
    assert shop.learned.empty


def test_one_that_no_longer_runs_is_named_and_not_used(prompts, tmp_path):
    sales = pd.DataFrame({"year": [2012, 2013], "amount": [1.0, 2.0]})
    sales.to_csv(tmp_path / "sales.csv", index=False)
    sales.to_csv(tmp_path / "old.csv", index=False)
    corpus = tf.open_corpus(tmp_path)
    corpus.verify("Sum of the amounts in a year", "SELECT sum(amount) AS a FROM sales WHERE year = :year", by="finance")
    corpus.verify("Sum of the old amounts", "SELECT sum(amount) AS a FROM old", by="finance")
    sales.rename(columns={"amount": "total"}).to_csv(tmp_path / "sales.csv", index=False)
    (tmp_path / "old.csv").unlink()
    now = corpus.refresh()
    with pytest.warns(
        DoubtWarning, match=r"'finance' verified for 'Sum of the amounts in a year' no longer runs.*amount"
    ):
        answer = tf.ask("What is the sum of the amounts in 2013?", now)
    assert answer.verified == ""
    assert "verified" not in prompts[0]
    one, gone = sorted(evaluate(now).questions["problem"], key=lambda text: "no table" in text)
    assert "verified by finance, and no longer runs: " in one
    assert "no table" in gone
    assert "old" in gone


def test_eval_tries_each_with_values_of_its_columns(shop, prompts, tmp_path):
    shop.verify(QUESTION, SQL, by="finance")
    shop.verify("Sales above an amount", "SELECT count(*) AS n FROM sales HAVING sum(amount) > :least", by="finance")
    shop.verify("Nothing", "SELECT region FROM regions WHERE region = :region AND 1 = 0", by="finance")
    found = evaluate(shop)
    questions = dict(zip(found.questions["question"], found.questions["problem"], strict=True))
    assert questions[f"{QUESTION} (year = 2012)"] == ""
    assert questions["Sales above an amount (least = 1)"] == ""
    assert questions["Nothing (region = North)"] == "the verified statement gives no rows"
    prompts.replies = ('{"verified": 1, "year": 2012}',)
    answered = evaluate(shop, pd.DataFrame({"question": [ASKED], "sql": [SQL.replace(":year", "2013")]}), answers=True)
    assert answered.questions["right"].tolist()[:2] == [False, True]


@pytest.mark.parametrize(
    ("test", "value", "rows"),
    [
        ("r.region LIKE '%' || :part || '%'", "ort", 2),
        ("r.region IN (:region)", "South", 2),
        ("s.year BETWEEN :year AND 2013", 2013, 2),
        ("s.amount > :least", "2.5", 2),
        ("s.amount > :least", 99, 0),
        ("s.region_id = :region AND s.year < :region + 2012", 2, 2),
        ("s.year <> :year", 2013, 2),
        ("CAST(s.year AS TEXT) = :year", 2013, 2),
    ],
)
def test_parameters_stand_in_any_comparison(shop, prompts, test, value, rows):
    shop.verify(
        "Sales of a kind", f"SELECT s.amount FROM sales s JOIN regions r USING (region_id) WHERE {test}", by="x"
    )
    name = test.partition(":")[2].split()[0].rstrip(")")
    prompts.replies = (f'{{"verified": 1, "{name}": {value!r}}}'.replace("'", '"'),)
    answer = tf.ask("Which sales of this kind are there?", shop)
    assert len(answer.rows) == rows
    assert answer.verified.startswith("x: ")


def test_a_reader_from_whom_a_column_is_hidden_has_no_statement_that_reads_it(shop, prompts):
    shop.verify("The boss of a region", "SELECT boss FROM regions WHERE region = :region", by="finance")
    hidden = shop.hide("regions.boss")
    tf.ask("Who is the boss of the region North?", hidden)
    assert "finance" not in str(hidden.learned)
    assert "verified" not in prompts[0]
    shop.private("regions.boss")
    tf.ask("Who is the boss of the region South?", shop)
    assert "verified" not in prompts[1]
    assert "private" in evaluate(shop).questions["problem"].item()


def test_in_postgresql_a_value_is_a_number_or_a_text_as_its_column_has_it(database, prompts):
    corpus = tf.open_corpus(
        database("CREATE TABLE sale (code text, year integer, day date, amount integer); INSERT INTO sale VALUES "
                 "('7', 2013, '2013-01-02', 5), ('8', 2014, '2014-01-02', 6);")
    )  # fmt: skip
    sql = "SELECT sum(amount) AS t FROM sale WHERE code = :code AND year = :year AND day >= :since"
    corpus.verify("Amount of a code in a year since a day", sql, by="finance")
    prompts.replies = ('{"verified": 1, "code": 7, "year": "2013", "since": "2013-01-01"}',)
    answer = tf.ask("What is the amount of code 7 in 2013 since January?", corpus)
    assert (answer.values, bool(answer.verified)) == ([5], True)
    assert evaluate(corpus).questions["problem"].tolist() == [""]
