# ruff: noqa: E501 - a statement a line
"""LM functions in SQL: what is asked, what is refused, what becomes of answers that are none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scripted import Scripted, shown_rows

import tagframe as tf
from tag_bench.server import rows_of
from tagframe import results
from tagframe.answer import Execution
from tagframe.errors import InvalidArgument, LMError, RowsFailed, SQLFailed, TooManyRowsWarning, UnsafeSQL
from tagframe.lm import Completion, Prompt

FILMS = pd.DataFrame(
    {
        "film_id": range(1, 13),
        "title": [f"film {number}" for number in range(1, 13)],
        "genre": ["ROM", "DRA"] * 6,
        "year": [1990 + number for number in range(12)],
        "city": ["Porto", "Lisbon", "Oslo"] * 4,
        "a {b}": range(12),
    }
)
REVIEWS = pd.DataFrame(
    {
        "review_id": range(30),
        "film_id": [number % 12 + 1 for number in range(30)],
        "text": [f"good {number}" if number % 3 else f"bad {number}" for number in range(30)],
    }
)
CLASSICS = ("film 2", "film 4", "film 6", "film 11", "film 12")


class WholePrompt(Scripted):
    """A model whose answers are made from all messages of a prompt."""

    def completion(self, prompt: Prompt, accept: Callable[[str], object]) -> Completion:
        whole = "\n".join(str(message.content) for message in prompt.messages)
        return super().completion(Prompt.of(whole), accept)


def answer(message: str) -> str:
    (row, *more) = shown_rows(message)
    value = str(next(iter(row.values())))
    if "<rows>" in message:
        return f"a text of {1 + len(more)}"
    if "country" in message:
        return {"Porto": "Portugal", "Lisbon": "Portugal", "Oslo": "Norway"}[value]
    if "how old" in message:
        return str(int(value.split()[1]) / 20)
    if value == "film 1":
        return "Unknown"
    if value == "film 3":
        raise LMError("no answer")
    return str(value in CLASSICS or value.startswith("good"))


@pytest.fixture
def corpus():
    return tf.open_corpus({"films": FILMS, "reviews": REVIEWS})


@pytest.fixture
def lm():
    model = WholePrompt(answer)
    with tf.context(lm=model):
        yield model


def run(corpus, sql: str, **options: object) -> tuple[list[list[object]], Execution]:
    frame = tf.exec_sql(corpus, **{"rows_per_call": None, **options})(sql)
    execution = results.recall(frame, "execution")
    assert execution is not None
    return frame.astype(object).where(frame.notna(), None).values.tolist(), execution


NOT_3 = "film_id <> 3"


@pytest.mark.parametrize(
    ("sql", "rows", "asked"),
    [
        ("SELECT film_id FROM films f WHERE sem_filter('{f.title} is a classic') AND genre = 'DRA'", [2, 4, 6, 12], 6),
        (f"SELECT film_id FROM films WHERE NOT sem_filter('{{title}} is a classic') AND {NOT_3}", [5, 7, 8, 9, 10], 11),
        ("SELECT film_id FROM films WHERE genre = 'ROM' OR sem_filter('{title} x')", [1, 2, 3, 4, 5, 6, 7, 9, 11, 12], 6),
        (
            f"SELECT film_id FROM films WHERE sem_filter('{{title}} x') IS NULL AND {NOT_3}",
            [1],
            11,
        ),
        ("SELECT film_id FROM films WHERE sem_score('how old {title}') > .4 ORDER BY sem_score('how old {title}') DESC", [12, 11, 10, 9], 12),
        ("SELECT count(*) FROM films WHERE sem_map('country of {city}') = 'Norway'", [4], 3),
        ("SELECT n FROM (SELECT city, count(*) AS n FROM reviews JOIN films USING (film_id) WHERE sem_filter('{text} is kind') GROUP BY city ORDER BY n DESC, city LIMIT 1)", [10], 30),
        ("WITH good AS (SELECT film_id FROM reviews WHERE sem_filter('{text} is kind')) SELECT count(*) FROM good", [20], 30),
        ("SELECT count(*) FROM films f LEFT JOIN (SELECT * FROM reviews WHERE sem_filter('{text} is kind')) AS r ON f.film_id = r.film_id WHERE r.text IS NULL", [4], 30),
        ("SELECT count(*) FROM films f JOIN reviews r ON f.film_id = r.film_id AND sem_filter('{r.text} is kind')", [20], 30),
        ("SELECT sum(CASE WHEN sem_filter('{text} is kind') THEN 1 ELSE 0 END) FROM reviews WHERE review_id < 6", [4], 6),
        ("SELECT sem_agg('what of {title}?') FROM films WHERE year > 1995", ["a text of 6"], 1),
        ("SELECT sem_map('how old {title}', 'number') AS y FROM films ORDER BY year LIMIT 2", [0.05, 0.1], 2),
        ("SELECT CAST(sem_map('how old {title}') AS REAL) AS y FROM films ORDER BY year LIMIT 2", [0.05, 0.1], 2),
        ("SELECT film_id FROM films WHERE sem_filter('{title} x') AND film_id = 2 UNION SELECT 7 ORDER BY 1", [2, 7], 1),
    ],
)  # fmt: skip
def test_values_are_asked_once_after_all_other_conditions(corpus, lm, sql, rows, asked):
    found, _ = run(corpus, sql)
    assert [row[0] for row in found] == rows
    assert len(set(lm.asked)) == len(lm.asked) == asked
    assert len(lm.batches) == 1 or "ORDER BY sem_score" in sql


def test_one_function_over_ten_thousand_rows_is_one_batch_of_its_distinct_values(lm):
    places = pd.DataFrame({"id": range(10_000), "name": [f"good {number % 500}" for number in range(10_000)]})
    found, execution = run(
        tf.open_corpus({"places": places}), "SELECT count(*) FROM places WHERE sem_filter('{name} is x')"
    )
    assert found == [[10_000]]
    assert [len(batch) for batch in lm.batches] == [500]
    assert execution.stages[0].values == 500


def in_packs(message: str) -> str:
    """A line a row where several are asked; nobody can tell of 'good 7'."""
    said = [
        "Unsure" if name == "good 7" else str(name.startswith("good"))
        for name in re.findall(r'^\d* ?(?:\["|\{"name": ")(.*)"[\]}]$', message, flags=re.MULTILINE)
    ]
    return "\n".join(f"{number}: {word}" for number, word in enumerate(said, 1)) if "<rows>" in message else said[0]


def test_several_values_of_a_filter_stand_in_one_prompt_and_are_audited():
    places = pd.DataFrame({"name": [f"{'good' if n % 3 else 'bad'} {n % 500}" for n in range(10_000)]})
    sql = "SELECT count(*) FROM places WHERE sem_filter('{name} is x')"
    model = WholePrompt(in_packs)
    with tf.context(lm=model):
        found, execution = run(tf.open_corpus({"places": places}), sql, rows_per_call="auto")
    assert found == [[int((places["name"].str.startswith("good") & (places["name"] != "good 7")).sum())]]
    assert len(model.asked) == 32 + 2 + 1 + 31  # of 1,000 distinct names, where each alone is a prompt
    (stage,) = execution.stages
    assert (stage.values, stage.unsure) == (1_000, 1)
    assert stage.remarks[0] == "32 rows were also asked one by one: 0 (0%) got another answer in packs of 16."
    assert str(stage).endswith("1,000 distinct values (1 unsure). " + " ".join(stage.remarks))


def test_a_quote_of_packs_counts_them_and_claims_no_audit():
    places = pd.DataFrame({"name": [f"good {n % 500}" for n in range(2_000)]})
    execute = tf.exec_sql(tf.open_corpus({"places": places}), rows_per_call="auto")
    with tf.context(lm="openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1", api_key="none", store=None):
        quote = execute("SELECT count(*) FROM places WHERE sem_filter('{name} is x')", quote=True)
    assert quote.calls == 32 + 2 + 1 + 15
    assert quote.stages[0].values == 500
    assert "differ" not in repr(quote)


def test_packs_where_a_limit_allows_to_ask_of_the_first_rows_only():
    films = pd.DataFrame(
        {"id": range(2_000), "name": [f"{'good' if n % 10 == 9 else 'bad'} {n}" for n in range(2_000)]}
    )
    model = WholePrompt(in_packs)
    with tf.context(lm=model):
        found, execution = run(
            tf.open_corpus({"films": films}),
            "SELECT id FROM films WHERE sem_filter('{name} is x') ORDER BY id LIMIT 10",
            rows_per_call=8,
        )
    assert [row[0] for row in found] == list(range(9, 100, 10))
    assert execution.stages[0].values <= 120
    assert len(model.asked) <= execution.stages[0].values / 2


@pytest.mark.parametrize("wrong", [0, 1.5, True, "all"])
def test_rows_per_call_is_checked_before_anything_is_asked(corpus, wrong):
    with pytest.raises(InvalidArgument, match="rows_per_call"):
        tf.exec_sql(corpus, rows_per_call=wrong)


def test_the_first_rows_of_a_large_table_are_asked_about_and_no_others(lm, monkeypatch):
    monkeypatch.setattr("tagframe.answer.lm_sql.staging.MOST_VALUES", 500)
    films = pd.DataFrame(
        {"id": range(2_000), "title": [f"{'good' if n % 10 == 9 else 'bad'} {n}" for n in range(2_000)]}
    )
    corpus = tf.open_corpus({"films": films.assign(kind=[f"bad {n % 3}" for n in range(2_000)])})
    found, execution = run(corpus, "SELECT id FROM films WHERE sem_filter('{title} is x') ORDER BY id LIMIT 3")
    assert [row[0] for row in found] == [9, 19, 29]
    assert execution.stages[0].values < 100
    with pytest.raises(SQLFailed, match="more than 500 rows"):
        run(corpus, "SELECT id FROM films WHERE sem_filter('{kind} is x') ORDER BY id LIMIT 3")
    assert len(lm.asked) < 100 + 3


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT city AS title FROM films WHERE sem_filter('{title} is a classic') AND genre = 'DRA'", ["Lisbon", "Porto", "Oslo", "Oslo"]),
        ("SELECT upper(title) AS big FROM films WHERE sem_filter('{big} is a classic') AND film_id <> 3", []),
        ("SELECT title AS genre FROM films ORDER BY sem_score('how old {title}') DESC LIMIT 2", ["film 12", "film 11"]),
    ],
)  # fmt: skip
def test_braces_mean_a_column_before_a_name_of_select(corpus, lm, sql, rows):
    """As SQLite reads names in WHERE."""
    found, _ = run(corpus, sql)
    assert [row[0] for row in found] == rows


def test_rows_are_asked_about_in_their_order_until_enough_pass(lm):
    films = pd.DataFrame(
        {"id": range(2_000), "title": [f"{'good' if n % 10 == 9 else 'bad'} {n}" for n in range(2_000)]}
    )
    corpus = tf.open_corpus({"films": films})
    found, _ = run(corpus, "SELECT id FROM films WHERE sem_filter('{title} is x') ORDER BY id DESC LIMIT 2")
    assert [row[0] for row in found] == [1999, 1989]
    assert len(lm.asked) == 16
    lm.batches.clear()
    found, _ = run(corpus, "SELECT id FROM films WHERE sem_filter('{title} is x') ORDER BY id LIMIT 3 OFFSET 4")
    assert [row[0] for row in found] == [49, 59, 69]
    assert 70 <= len(lm.asked) <= 105


IN_WITH = "WITH chosen AS (SELECT title AS t, id + 1 AS n FROM films WHERE sem_filter('{title} is x')) SELECT "


@pytest.mark.parametrize(
    ("sql", "rows", "asked"),
    [
        ("SELECT id FROM (SELECT * FROM films WHERE sem_filter('{title} is x')) AS f ORDER BY f.id DESC LIMIT 1", [199], 16),
        (f"{IN_WITH} n FROM chosen ORDER BY n DESC LIMIT 1 OFFSET 1", [190], 16),
        (f"{IN_WITH} -n AS m, t FROM chosen ORDER BY 1 LIMIT 1", [-200], 16),
        (f"{IN_WITH} n FROM chosen WHERE n < 50 ORDER BY n DESC LIMIT 1", [40], 200),
        (f"{IN_WITH} count(*) AS k FROM chosen LIMIT 1", [20], 200),
        (f"{IN_WITH} a.n FROM chosen AS a JOIN chosen AS b USING (n) ORDER BY a.n DESC LIMIT 1", [200], 200),
        ("SELECT g FROM (SELECT DISTINCT g FROM films WHERE sem_filter('{g} is x')) AS f ORDER BY g DESC LIMIT 1", ["good 9"], 4),
        ("SELECT g FROM films AS f GROUP BY f.g HAVING sem_filter('{f.g} is x') ORDER BY count(*), g DESC LIMIT 1", ["good 9"], 16),
        ("SELECT g FROM films GROUP BY 1 HAVING NOT sem_filter('{g} is x') AND max(id) < 190 ORDER BY max(id) DESC LIMIT 2", ["bad 38", "bad 37"], 16),
        ("SELECT g FROM films GROUP BY g HAVING sem_filter('{g} is x') AND sem_filter('{g} is y') ORDER BY g LIMIT 1", ["good 19"], 55),
        ("SELECT g FROM films GROUP BY g HAVING sem_filter('{g} is x') OR count(*) > 9 ORDER BY g DESC LIMIT 1", ["good 9"], 50),
        ("SELECT max(id) AS n FROM films GROUP BY g HAVING sem_filter('{title} is x') ORDER BY n LIMIT 1", [159], 200),
    ],
)  # fmt: skip
def test_the_order_ends_the_search_in_subqueries_with_and_having_too(lm, sql, rows, asked):
    films = pd.DataFrame({"id": range(200)})
    for name, many in (("title", 200), ("g", 50)):
        films[name] = [f"{'good' if n % 10 == 9 else 'bad'} {n % many}" for n in range(200)]
    found, _ = run(tf.open_corpus({"films": films}), sql)
    assert [row[0] for row in found] == rows
    assert len(lm.asked) == asked


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT DISTINCT t FROM r WHERE sem_filter('{text} is x') LIMIT 3", [["a"], ["A"], ["b"]]),
        ("SELECT DISTINCT t FROM r WHERE sem_filter('{text} is x') ORDER BY t DESC LIMIT 2", [["d"], ["c"]]),
        ("SELECT t AS u FROM r WHERE sem_filter('{text} is x') GROUP BY t ORDER BY u LIMIT 2 OFFSET 1", [["a"], ["b"]]),
        ("SELECT t COLLATE NOCASE AS t FROM r WHERE sem_filter('{text} is x') GROUP BY 1 LIMIT 2", [["a"], ["b"]]),
    ],
)
def test_distinct_rows_and_groups_above_a_limit_stop_early(lm, sql, rows):
    frame = pd.DataFrame({"t": [t for t in ("a", "A", "b", "c", "d") for _ in range(200)]})
    frame["text"] = [f"{'good' if n % 4 == 1 else 'bad'} {n}" for n in range(1000)]
    found, execution = run(tf.open_corpus({"r": frame}), sql)
    assert found == rows
    assert execution.stages[0].values < 700
    assert len(lm.batches) <= 6


def test_distinct_rows_that_are_found_one_a_round_end_the_search(lm):
    """Each of many rows of one value before the next: what was found in a round counts in the following ones."""
    frame = pd.DataFrame({"t": [f"t{n // 300}" for n in range(3_000)], "text": [f"good {n}" for n in range(3_000)]})
    sql = "SELECT DISTINCT t FROM r WHERE sem_filter('{text} is x') ORDER BY t LIMIT 4"
    assert run(tf.open_corpus({"r": frame}), sql)[0] == [["t0"], ["t1"], ["t2"], ["t3"]]
    assert len(lm.asked) < 300


def test_counts_above_a_limit_ask_of_all_rows(lm):
    frame = pd.DataFrame({"t": list("ab") * 50, "text": [f"good {n}" for n in range(100)]})
    sql = "SELECT t, count(*) AS n FROM r WHERE sem_filter('{text} is x') GROUP BY t LIMIT 1"
    assert run(tf.open_corpus({"r": frame}), sql)[0] == [["a", 50]]
    assert len(lm.asked) == 100


def test_packs_of_a_limit_are_audited_once():
    frame = pd.DataFrame({"name": [f"{'good' if n % 40 == 39 else 'bad'} {n}" for n in range(1000)]})
    model = WholePrompt(in_packs)
    with tf.context(lm=model):
        found, execution = run(
            tf.open_corpus({"r": frame}),
            "SELECT name FROM r WHERE sem_filter('{name} is x') LIMIT 5",
            rows_per_call="auto",
        )
    assert len(found) == 5
    assert sum("<row>" in message for message in model.asked) == 20, "of the first round that is large enough"
    assert sum("also asked one by one" in remark for remark in execution.stages[0].remarks) == 1


def test_the_filter_that_leaves_less_is_asked_first(lm):
    rows = pd.DataFrame(
        {
            "id": range(400),
            "often": [f"good {n}" for n in range(400)],
            "seldom": [f"{'good' if n % 50 == 0 else 'bad'} {n}" for n in range(400)],
        }
    )
    found, execution = run(
        tf.open_corpus({"rows": rows}), "SELECT id FROM rows WHERE sem_filter('{often} x') AND sem_filter('{seldom} y')"
    )
    assert len(found) == 8
    asked = {str(stage.call): stage.values for stage in execution.stages}
    assert asked["sem_filter('{seldom} y')"] == 400
    assert asked["sem_filter('{often} x')"] <= 24 + 8


def test_of_what_select_computes_only_the_first_rows_are_asked_where_limit_holds_before(corpus, lm):
    sql = (
        "SELECT title, sem_map('country of {city}') AS c FROM films ORDER BY sem_score('how old {title}') DESC LIMIT 1"
    )
    found, _ = run(corpus, sql)
    assert found == [["film 12", "Norway"]]
    assert [len(batch) for batch in lm.batches] == [12, 1]


def test_groups_are_asked_about_not_their_rows_where_having_leaves_few(corpus, lm):
    sql = (
        "SELECT film_id, sem_agg('what of {text}?') FROM reviews GROUP BY film_id HAVING count(*) > 2 AND film_id < 4 "
        "ORDER BY film_id"
    )
    found, _ = run(corpus, sql)
    assert found == [[1, "a text of 3"], [2, "a text of 3"], [3, "a text of 3"]]
    assert len(lm.asked) == 3


def test_unsure_and_failed_are_null_and_counted(corpus, lm):
    sql = "SELECT film_id FROM films WHERE NOT sem_filter('{title} is a classic') OR film_id = 3"
    with pytest.raises(RowsFailed) as caught:
        run(corpus, "SELECT film_id FROM films WHERE sem_filter('{title} is a classic')")
    assert len(caught.value.failures) == 1
    found, execution = run(corpus, sql, on_error="keep")
    assert [row[0] for row in found] == [3, 5, 7, 8, 9, 10]
    assert (execution.stages[0].unsure, execution.stages[0].failed) == (1, 0)
    found, execution = run(corpus, "SELECT film_id, sem_filter('{title} is a classic') FROM films", on_error="keep")
    assert dict(found)[1] is None
    assert dict(found)[3] is None
    assert (execution.stages[0].unsure, execution.stages[0].failed) == (1, 1)
    assert "12 distinct values (1 unsure, 1 failed)" in str(execution.stages[0])
    found, _ = run(corpus, "SELECT film_id, sem_filter('{title} is a classic') FROM films", on_error="drop")
    assert 3 not in dict(found)
    assert 1 in dict(found)


def test_nulls_are_not_asked_about(lm):
    corpus = tf.open_corpus({"t": pd.DataFrame({"id": [1, 2, 3], "x": ["good 1", None, "bad"], "y": [None, None, 1]})})
    found, execution = run(corpus, "SELECT id, sem_filter('{x} with {y}') FROM t")
    assert found == [[1, 1], [2, None], [3, 0]]
    assert len(lm.asked) == 2
    assert execution.stages[0].null == 1


def test_columns_of_any_name_stand_in_braces(lm):
    corpus = tf.open_corpus(
        {"t": pd.DataFrame({"year made": ["good 1"], "Percent (%) K-12": ["good 2"], "select": ["bad"]})}
    )
    for name in ("year made", '"year made"', 't."year made"', "t.year made", "Percent (%) K-12", "`Percent (%) K-12`"):
        assert run(corpus, f"SELECT count(*) FROM t WHERE sem_filter('{{{name}}} is x')")[0] == [[1]]
    assert run(corpus, "SELECT count(*) FROM t WHERE sem_filter('{select} is x')")[0] == [[0]]
    shown = json.loads(lm.asked[0].split("\n")[1])
    assert shown == {"year made": "good 1"}


def test_columns_of_one_name_are_told_apart(corpus, lm):
    run(
        corpus,
        "SELECT count(*) FROM films f JOIN reviews r USING (film_id) WHERE sem_filter('{f.film_id} and {r.film_id}')",
    )
    assert json.loads(lm.asked[0].split("\n")[1]) == {"f.film_id": 1, "r.film_id": 1}


def test_an_answer_column_of_the_users_own(lm):
    """The look-up's names are none that a user's table could have."""
    corpus = tf.open_corpus({"t": pd.DataFrame({"value": ["good 1", "bad"], "key": [1, 2], "answer": [3, 4]})})
    assert run(corpus, "SELECT key, value, answer FROM t WHERE sem_filter('{value} x')")[0] == [[1, "good 1", 3]]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT title FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film_id = f.film_id AND sem_filter('{r.text} x'))", "correlated subquery"),
        ("SELECT title FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE sem_filter('{f.title} x'))", "correlated subquery"),
        ("SELECT rank() OVER (ORDER BY sem_score('{title}')) FROM films", "may not stand in a window"),
        ("SELECT max(sem_score('{title}')) OVER () FROM films", "may not stand in a window"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE sem_filter('{i} x')) SELECT i FROM n", "recursive table"),
        ("SELECT title FROM films LIMIT sem_map('{title}')", "LIMIT"),
        ("SELECT title FROM films f LEFT JOIN reviews r ON f.film_id = r.film_id AND sem_filter('{r.text} x')", "LEFT JOIN (SELECT * FROM … WHERE sem_filter(…)) AS chosen"),
        ("SELECT title FROM films UNION SELECT text FROM reviews ORDER BY sem_score('{title}')", "ORDER of a UNION"),
        ("SELECT title FROM films WHERE sem_agg('{title}') = 'x'", "it stands in SELECT, HAVING or ORDER BY"),
        ("SELECT count(sem_agg('{title}')) FROM films", "inside another function"),
        ("SELECT sem_agg('{title}') FILTER (WHERE year > 1995) FROM films", "choose them in WHERE"),
        ("SELECT title FROM films WHERE sem_filter(title)", "one text in single quotes"),
        ("SELECT title FROM films WHERE sem_filter('a' || title)", "one text in single quotes"),
        ("SELECT title FROM films WHERE sem_filter()", "one text in single quotes"),
        ("SELECT title FROM films WHERE sem_filter('is a classic')", "names none"),
        ("SELECT title FROM films WHERE sem_filter('{title} x', 'number')", "takes one text only"),
        ("SELECT sem_map('{title}', 'complex') FROM films", "if wanted, one of 'text', 'number'"),
        ("SELECT sem_sort('{title}') FROM films", "function 'sem_sort' may not run"),
        ("SELECT title AS tagframe_lm_key FROM films WHERE sem_filter('{title} x')", "are taken"),
    ],
)  # fmt: skip
def test_where_it_cannot_be_staged_it_is_refused_by_name(corpus, lm, sql, says):
    with pytest.raises(UnsafeSQL, match=re.escape(says)):
        run(corpus, sql)
    assert lm.batches == []


def test_an_unknown_or_hidden_column_in_braces_is_named(corpus, lm):
    with pytest.raises(SQLFailed, match=r"no such column: titel .*did you mean 'title'"):
        run(corpus, "SELECT title FROM films WHERE sem_filter('{titel} x')")
    corpus = corpus.hide("films.city")
    with pytest.raises(SQLFailed, match="no such column: city"):
        run(corpus, "SELECT title FROM films WHERE sem_filter('{city} x')")
    assert lm.batches == []


@pytest.mark.slow
def test_more_values_than_may_be_asked_about_are_refused_before_any_is(lm):
    many = pd.DataFrame({"id": np.arange(60_000)})
    with pytest.raises(SQLFailed, match="would be asked about more than 50,000 distinct values"):
        run(tf.open_corpus({"many": many}), "SELECT count(*) FROM many WHERE sem_filter('{id} x')")
    assert lm.batches == []


def test_ask_runs_them_and_counts_their_calls(live, festival):
    sql = "SELECT title FROM films WHERE sem_filter('{title} is about the sea') AND genre_code = 'ROM'"

    def said(request):
        text = str(request.messages)
        if "<tables>" in text:
            return sql
        return "True" if "Claim:" in text else '{"text": "So many.", "values": [1]}'

    live.answers = said
    answer = tf.ask("Which romances are about the sea?", festival, rows_per_call=None)
    romances = int((festival.read("festival.films")["genre_code"] == "ROM").sum())
    assert [step.calls for step in answer.steps] == [1, romances, 1]
    assert len(answer.rows) == romances
    assert answer.sources["table"].unique().tolist() == ["festival.films"]
    assert "distinct values" in answer.explain()


def test_a_text_of_all_rows_is_the_answer_and_gen_is_not_asked(live, festival):
    live.answers = lambda request: (
        "SELECT sem_agg('what do they praise in {review}?') FROM reviews"
        if "<tables>" in str(request.messages)
        else "Much."
    )
    answer = tf.ask("What do the critics praise?", festival)
    assert (answer.text, answer.values) == ("Much.", [])
    assert [step.calls for step in answer.steps] == [1, 1, 0]


@pytest.mark.slow
def test_what_a_statement_asks_is_known_before_it_is_paid(corpus, live):
    sql = "SELECT title FROM films WHERE genre = 'DRA' AND sem_filter('{title} is a classic') AND sem_filter('{city} is far')"
    quote = tf.exec_sql(corpus, rows_per_call=None)(sql, quote=True)
    assert {stage.call: stage.values for stage in quote.stages} == {
        "sem_filter('{city} is far')": 3,
        "sem_filter('{title} is a classic')": 6,
    }
    assert (quote.calls, quote.whole) == (9, True)
    assert live.requests == []
    live.answers = sql
    quote = tf.ask("Which classic is far?", corpus, quote=True, rows_per_call=None)
    assert quote.query.sql == sql
    assert quote.calls == 10
    assert len(live.requests) == 1
    assert " ".join(repr(quote).split()).startswith(sql)
    assert "sem_filter('{title} is a classic'): 6 distinct values" in repr(quote)
    assert len(tf.ask_many(["Which classic is far?"], corpus)) == 1
    assert sum("<tables>" in str(request.messages) for request in live.requests) == 1


@pytest.mark.slow
def test_a_quote_prices_the_model_that_would_be_asked(corpus, live):
    """Each function by the model of its own step, the text of the answer by that of ``gen``."""
    dear = tf.LM("openai/dear", api_base=live.url, api_key="none", price=tf.Price(1.0, 1.0))
    free = tf.LM("openai/free", api_base=live.url, api_key="none", price=tf.Price(0.0, 0.0))
    live.answers = sql = "SELECT title FROM films WHERE sem_filter('{title} is a classic')"
    with tf.context(lm=free):
        assert tf.ask("Which classics?", corpus, quote=True).dollars == 0
        for step in ("sem_filter", "gen"):
            with tf.context(lm_for={step: dear}):
                assert tf.ask("Which classics?", corpus, quote=True).dollars > 100
        with tf.context(lm_for={"gen": dear}):
            assert tf.exec_sql(corpus)(sql, quote=True).dollars == 0


def test_a_statement_that_asks_nothing_costs_nothing_without_a_model(corpus):
    with tf.context(lm=None):
        quote = tf.exec_sql(corpus)("SELECT title FROM films", quote=True)
    assert (quote.calls, quote.dollars, quote.stages) == (0, 0.0, ())


def test_a_budget_stops_before_the_call_that_would_pass_it(corpus, live):
    execute = tf.exec_sql(corpus, rows_per_call=None)
    with pytest.raises(RowsFailed) as caught, tf.context(budget=tf.Budget(calls=4)):
        execute("SELECT title FROM films WHERE sem_filter('{title} is a classic')")
    assert len(live.requests) == 4
    assert len(caught.value.failures) == 8


# --- results of too many rows -----------------------------------------------------------------------------------------

FEW = tf.answer.SQLLimits(rows=500)


def test_a_quote_warns_of_too_many_rows(live):
    corpus = tf.open_corpus({"places": pd.DataFrame({"name": [f"good {n}" for n in range(2_000)]})})
    execute = tf.exec_sql(corpus, limits=FEW, rows_per_call=None)
    with pytest.warns(TooManyRowsWarning, match="may give 2,000 rows"):
        quote = execute("SELECT name FROM places WHERE sem_filter('{name} is x')", quote=True)
    assert quote.calls == 2_000
    assert live.requests == []


@pytest.mark.parametrize(("values", "prompts"), [(1, 1), (5, 1), (16, 1), (64, 4)])
def test_few_values_are_asked_in_full_packs_without_an_audit(live, values, prompts):
    live.answers = lambda request: (
        "\n".join(f"{number}: 85" for number, _ in enumerate(rows_of(request.prompt), 1))
        if "<rows>" in request.prompt
        else "0.85"
    )
    corpus = tf.open_corpus({"places": pd.DataFrame({"name": [f"place {number}" for number in range(values)]})})
    found = tf.exec_sql(corpus)("SELECT name, sem_score('how big is {name}?') AS size FROM places")
    assert len(live.requests) == prompts
    assert found["size"].tolist() == [0.85] * values
