"""What a model writes around its statement: other readings, comments, semicolons."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.syn_prompt import read_statement
from tagframe.errors import SQLFailed

WITH = "WITH x AS (SELECT 2) SELECT * FROM x"


@pytest.mark.parametrize(
    ("line", "words", "sql"),
    [
        ("-- or: by seats: SELECT 2", "by seats", "SELECT 2"),
        ("-- or: with Oslo: SELECT 2;", "with Oslo", "SELECT 2"),
        ("-- or: with 0 for those without: SELECT 2", "with 0 for those without", "SELECT 2"),
        ("-- or: by the select committee: SELECT 2", "by the select committee", "SELECT 2"),
        ("-- or by seats: SELECT 2", "by seats", "SELECT 2"),
        ("-- or (by seats): SELECT 2", "by seats", "SELECT 2"),
        ("-- or: SELECT 2", "otherwise", "SELECT 2"),
        ("-- or: by seats:\n-- SELECT 2", "by seats", "SELECT 2"),
        ("-- or: by seats: (SELECT 2)", "by seats", "(SELECT 2)"),
        (f"-- or: with a CTE: {WITH}", "with a CTE", WITH),
    ],
)
def test_another_reading_has_words_and_a_statement(line, words, sql):
    written = read_statement(f"-- answer: values\n{line}\nSELECT 1")
    assert (written.others, written.sql) == (((words, sql),), "SELECT 1")


def test_a_reading_that_cannot_be_parsed_is_stated():
    written = read_statement("-- or: by seats, which nobody counts\nSELECT 1")
    assert (written.others, written.assumptions) == ((), ("it can be read otherwise: by seats, which nobody counts",))


@pytest.fixture
def orders():
    return tf.open_corpus({"orders": pd.DataFrame({"id": [1, 2], "total": [3.0, 4.0]})})


@pytest.mark.parametrize("end", [";", ";;", ";\n-- assumed: all", " -- all\n;\n\n-- note; done", "; /* ; */"])
def test_a_comment_or_semicolon_at_the_end_is_no_second_statement(orders, end):
    assert tf.exec_sql(orders)(f"SELECT count(*) AS n FROM orders{end}")["n"].tolist() == [2]


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_statistics_are_the_same_in_sqlite_and_duckdb(engine, tmp_path):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, None, 4.0, 10.0], "y": [2.0, 3.0, 9.0, 9.0, 19.0], "z": ["b", "a", "a", None, ""]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    corpus = tf.open_corpus(tmp_path, engine=engine) if engine else tf.open_corpus({"t": frame})
    sql = (
        "SELECT median(x) AS a, stddev(x) AS b, var_pop(x) AS c, corr(x, y) AS d, quantile_cont(x, 0.25) AS e, "
        "quantile_disc(x, 0.5) AS f, mode(y) AS g, stddev(x) FILTER (WHERE x < 2) AS h FROM t"
    )
    row = tf.exec_sql(corpus)(sql).iloc[0]
    assert row.tolist()[:7] == pytest.approx([3.0, 4.031128874, 12.1875, frame.x.corr(frame.y), 1.75, 2.0, 9.0])
    assert pd.isna(row["h"])
    assert tf.exec_sql(corpus)("SELECT median(x) AS m FROM t WHERE x > 99")["m"].isna().all()
    assert tf.exec_sql(corpus)("SELECT mode(z) AS m FROM t")["m"].tolist() == ["a"]
    ordered = "percentile_cont(0.25) WITHIN GROUP (ORDER BY x"
    sql = f"""SELECT {ordered}) AS a, {ordered} DESC) AS b, {ordered}) FILTER (WHERE y < 9) AS c,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC) AS d, mode() WITHIN GROUP (ORDER BY y) AS e FROM t"""
    assert tf.exec_sql(corpus)(sql).iloc[0].tolist() == pytest.approx([1.75, 5.5, 1.25, 4.0, 9.0])


def test_a_function_that_sqlite_lacks_is_refused_with_those_that_are_there(orders):
    run = tf.exec_sql(orders)
    with pytest.raises(SQLFailed, match=r"no such function: stdev: .* there are .*median.*did you mean 'stddev'\?"):
        run("SELECT stdev(total) AS s FROM orders")
    assert run("SELECT stddev(total) AS s FROM orders")["s"].tolist() == pytest.approx([0.5**0.5])
