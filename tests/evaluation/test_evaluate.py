import json
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tag_bench.server import Request, Server
from tagframe.errors import InvalidArgument
from tagframe.evaluation import evaluate
from tagframe.evaluation.scores import scores_of

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
VENUES = "Which venue's city sold the most tickets?"
SQL = (
    "SELECT v.city FROM venues v JOIN screenings s ON s.venue_id = v.venue_id "
    "GROUP BY 1 ORDER BY sum(s.tickets_sold) DESC LIMIT 1"
)


@pytest.fixture(scope="module")
def corpus():
    return tf.open_corpus(DATA, progress=False)


def test_tables_and_joins_are_held_against_the_sql(corpus):
    found = evaluate(corpus, pd.DataFrame({"question": [VENUES], "sql": [SQL]}), k=2)
    (row,) = found.questions.to_dict("records")
    assert row["needed"] == ["festival.screenings", "festival.venues"]
    assert (row["recall"], row["precision"], row["complete"], row["exact"], row["joins"]) == (1, 1, True, True, 1)
    assert found.scores == {"P": 100, "R": 100, "CR": 100, "exact": 100, "joins": 100}
    json.dumps(found.to_dict())


def test_tables_can_be_named_and_what_is_missed_is_named(corpus):
    frame = pd.DataFrame({"question": [VENUES, VENUES], "tables": ["venues, festival.screenings", "breads venues"]})
    found = evaluate(corpus, frame, k=2)
    assert found.questions["recall"].tolist() == [1.0, 0.5]
    assert found.scores["R"] == 75
    assert "not found: bakery.breads" in repr(found)


@pytest.mark.parametrize("named", ['"order lines", customers', "`order lines` customers", "[order lines], customers"])
def test_a_name_with_a_blank_is_quoted(named):
    lines = pd.DataFrame({"customer_id": [1, 2], "amount": [3.0, 4.0]})
    shop = tf.open_corpus({"order lines": lines, "customers": pd.DataFrame({"customer_id": [1, 2]})})
    found = evaluate(shop, pd.DataFrame({"question": ["What amount did each customer order?"], "tables": [named]}), k=2)
    (needed,) = found.questions["needed"]
    assert sorted(name.rpartition(".")[2] for name in needed) == ["customers", "order lines"]


@pytest.mark.slow
def test_rows_of_answers_are_compared_with_those_of_the_sql(corpus, tmp_path):
    def answer(request: Request) -> str:
        return SQL.replace("DESC", "ASC") if "fewest" in request.prompt else SQL

    frame = pd.DataFrame({"question": [VENUES, VENUES.replace("most", "fewest")], "sql": [SQL, SQL]})
    with (
        Server(answer) as server,
        tf.context(lm="openai/m", api_base=server.url, api_key="none", store=tmp_path / "a.db"),
    ):
        found = evaluate(corpus, frame, k=2, answers=True)
    assert found.questions["right"].tolist() == [True, False]
    assert found.scores["EX"] == 50


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM nowhere", "no table here is called 'nowhere'"),
        ("SELECT (", "cannot be parsed"),
        ("", "neither SQL nor tables"),
        (None, "neither SQL nor tables"),
    ],
)
def test_what_cannot_be_compared_says_why_and_counts_nowhere(corpus, sql, problem):
    frame = pd.DataFrame({"question": [VENUES, VENUES], "sql": [sql, SQL]})
    found = evaluate(corpus, frame, k=2)
    assert problem in found.questions["problem"][0]
    assert found.scores["R"] == 100


@pytest.mark.parametrize("frame", [pd.DataFrame({"question": ["a"]}), pd.DataFrame({"question": [], "sql": []})])
def test_a_frame_of_no_questions_is_refused(corpus, frame):
    with pytest.raises(InvalidArgument, match="questions need a column 'question'"):
        evaluate(corpus, frame)


def test_scores_of_nothing():
    assert scores_of([], ["film"]) == (0, 0, 0, False, False)
    assert scores_of(["film"], []) == (0, 0, 0, True, False)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", None])
def test_a_file_of_no_questions_is_refused(corpus, tmp_path, content):
    if content is not None:
        (tmp_path / "q.csv").write_bytes(content)
    with pytest.raises(InvalidArgument, match=r"q\.csv cannot be read"):
        evaluate(corpus, tmp_path / "q.csv")


def test_a_row_without_a_question_counts_nowhere(corpus):
    found = evaluate(corpus, pd.DataFrame({"question": [None, VENUES], "sql": [SQL, SQL]}), k=2)
    assert "there is no question" in found.questions["problem"][0]
    assert found.scores["R"] == 100
