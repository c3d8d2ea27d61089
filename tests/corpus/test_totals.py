"""Rows that are sums of other rows of their table."""

import numpy as np
import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.doubts import doubts_of
from tagframe.retrieval.schema_text import describe_tables

REGIONS = {"region": ["N", "S", "E", "W"], "people": [10, 20, 30, 40], "area": [1.5, 2.5, 3, 4]}
SCHOOLS = pd.DataFrame(
    {
        "district": [*"AAAABBBBCCCC"],
        "school": [f"s{n}" for n in range(12)],
        "pupils": range(30, 42),
        "teachers": range(12),
    }
)
DISTRICTS = SCHOOLS.groupby("district", as_index=False)[["pupils", "teachers"]].sum()


def with_row(*row):
    return pd.concat([pd.DataFrame(REGIONS), pd.DataFrame([row], columns=list(REGIONS))], ignore_index=True)


@pytest.mark.parametrize(
    ("frame", "totals"),
    [
        (with_row("Total", 100, 11.0), ["1 row whose region is 'Total': sums of the others in people, area"]),
        (with_row("Germany", 100, 11.0), ["1 row whose region is 'Germany': sums of the others in people, area"]),
        (with_row("Gesamt", 7, 1.0), ["1 row whose region is 'Gesamt'"]),
        (with_row("Q", 7, 1.0), []),
        (pd.DataFrame(REGIONS), []),
        (
            pd.concat([SCHOOLS, DISTRICTS], ignore_index=True),
            ["3 rows whose school is empty: sums of each district of the others in pupils, teachers"],
        ),
        (
            pd.DataFrame([(r, x, v) for r in "ABC" for x, v in (("m", 3), ("f", 4), ("all", 7))], columns=[*"rsn"]),
            ["3 rows whose s is 'all': sums of each r of the others in n"],
        ),
        (pd.DataFrame({"state": range(5), "people": [100, 10, 20, 30, 40]}),
         ["1 row whose state is '0': sums of the others in people"]),
        (pd.DataFrame({"r": ["x"] * 60_000 + ["Total"], "v": range(60_001)}), ["1 row whose r is 'Total'"]),
        (pd.DataFrame({"a": [None if at % 7 == 0 else f"x{at % 5}" for at in range(200)], "c": ["p", "q"] * 100,
                       "b": np.random.default_rng(1).integers(0, 9, 200)}), []),
        (pd.DataFrame({"id": range(4), "name": ["a", "b", "c", None]}), []),
        (pd.DataFrame({"r": ["N", "S", None], "v": [10, 20, 30]}), ["1 row whose r is empty: sums of the others in v"]),
        (pd.DataFrame({"r": ["All", *"NS"], "v": [30, 10, 20]}), ["1 row whose r is 'All': sums of the others in v"]),
    ],
)  # fmt: skip
def test_rows_that_are_sums(frame, totals):
    assert [str(one) for one in tf.open_corpus({"t": frame}).profile("t").totals] == totals


def test_they_are_stored(tmp_path):
    (tmp_path / "t.csv").write_text(with_row("Total", 100, 11.0).to_csv(index=False))
    corpus = tf.open_corpus(tmp_path, progress=False)
    again = tf.open_corpus(tmp_path, progress=False)
    assert again.profile("t").totals == corpus.profile("t").totals != ()


MONTHS = pd.DataFrame({"month": ["Jan", "Feb", "Mar", "Apr"], "sold": [10, 20, 30, 45]})
CITIES = pd.DataFrame(
    {
        "land": [*"NNNSSS"],
        "city": ["Kiel", "Bremen", "Jever", "Ulm", "Hof", "Fulda"],
        "people": [24, 56, 14, 12, 46, 68],
    }
)
LANDS = CITIES.groupby("land", as_index=False)[["people"]].sum()
TOTAL = pd.DataFrame({"month": ["Jan", "Feb", "Mar", "Apr", "Total"], "sold": [10, 20, 30, 45, 105]})
SEXES = pd.DataFrame(
    [("A", "m", 30), ("A", "f", 40), ("A", "all", 70), ("B", "m", 31), ("B", "f", 44), ("B", "all", 75),
     ("all", "m", 61), ("all", "f", 84), ("all", "all", 145)], columns=["state", "sex", "n"]
)  # fmt: skip
ALL_LEVELS = pd.concat(
    [CITIES, LANDS.assign(city="Subtotal"), pd.DataFrame([{"land": "Grand Total", "people": 220}])], ignore_index=True
)


def after(frame, **cells):
    return pd.concat([frame, pd.DataFrame([cells])], ignore_index=True)


@pytest.mark.parametrize(
    ("frame", "statement", "right"),
    [
        (after(MONTHS, month="Total", sold=105), "SELECT sum(sold) FROM t", 105),
        (after(MONTHS, month="  GRAND TOTAL ", sold=105), "SELECT sum(sold) FROM t", 105),
        (after(MONTHS, month="合計", sold=105), "SELECT avg(sold) FROM t", 26.25),
        (after(MONTHS, month=None, sold=105), "SELECT sum(sold) FROM t", 105),
        (after(after(MONTHS, month="Subtotal", sold=7), month="May", sold=5), "SELECT sum(sold) FROM t", 110),
        (pd.concat([CITIES, LANDS]), "SELECT sum(people) FROM t", 220),
        (pd.concat([CITIES, LANDS.assign(city="all")]), "SELECT sum(people) FROM t WHERE land = 'N'", 94),
        (pd.concat([CITIES.assign(kind="city"), LANDS.assign(kind="land", city=["n", "s"])]),
         "SELECT sum(people) FROM t", 220),
        (ALL_LEVELS, "SELECT sum(people) FROM t", 220),
        (ALL_LEVELS, "SELECT sum(people) FROM t WHERE land = 'N'", 94),
        (SEXES, "SELECT sum(n) FROM t", 145),
        (SEXES, "SELECT sum(n) FROM t WHERE sex = 'm'", 61),
        (TOTAL, "SELECT count(*) FROM t", 4),
        (TOTAL, "SELECT max(sold) FROM t", 45),
        (TOTAL, "SELECT month FROM t ORDER BY sold DESC LIMIT 1", "Apr"),
        (after(CITIES.assign(code=range(1, 7)), land="-", city="Whole", people=220, code=0),
         "SELECT sum(people) FROM t", 220),
    ],
)  # fmt: skip
def test_rows_that_are_sums_are_shown_and_doubted(frame, statement, right):
    corpus = tf.open_corpus({"t": frame.reset_index(drop=True)})
    (total, *_) = corpus.profile("t").totals
    assert f"totals among them: {total}" in describe_tables(corpus, {"t": "t"})
    assert corpus.tools().call("describe_tables", {"tables": ["t"]})["tables"][0]["totals"][0] == str(total)
    (doubt,) = [one for one in doubts_of(tf.exec_sql(corpus)(statement)) if one.reason == "total"]
    assert doubt.rows.iat[0, 0] == right
    if "ORDER" in statement or frame is SEXES:  # its other totals stay
        return
    beside = statement + (" AND" if "WHERE" in statement else " WHERE") + f" {total.column} = 'x'"
    for other in (f"SELECT count(*) FROM ({statement})", beside, f"{statement} GROUP BY {total.column}"):
        assert not [one for one in doubts_of(tf.exec_sql(corpus)(other)) if one.reason == "total"]


@pytest.mark.parametrize(
    "statement",
    ["SELECT level, sum(people) FROM t GROUP BY level", "SELECT sum(people) FROM t WHERE level = 'land'",
     "SELECT count(*) FROM t WHERE city IS NULL", "SELECT land FROM t WHERE level = 'land' ORDER BY people LIMIT 1",
     "SELECT max(people) FROM t WHERE city IS NOT NULL", "SELECT * FROM t LIMIT 2", "SELECT count(*) FROM t WHERE 0"],
)  # fmt: skip
def test_totals_that_a_statement_wants_are_not_doubted(statement):
    frame = pd.concat([CITIES.assign(level="city"), LANDS.assign(level="land")], ignore_index=True)
    run = tf.exec_sql(tf.open_corpus({"t": frame}))
    assert "total" not in [one.reason for one in doubts_of(run(statement))]


def test_a_private_column_of_totals_is_not_shown():
    corpus = tf.open_corpus({"t": after(MONTHS, month="Total", sold=105)}, private=["t.month"])
    assert "Total" not in describe_tables(corpus, {"t": "t"})
