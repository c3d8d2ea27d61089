"""Rows that are sums of other rows of their table."""

import numpy as np
import pandas as pd
import pytest

import tagframe as tf

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
        (with_row(None, 100, 11.0), ["1 row whose region is empty: sums of the others in people, area"]),
        (with_row("Germany", 100, 11.0), ["1 row whose region is 'Germany': sums of the others in people, area"]),
        (with_row("Gesamt", 7, 1.0), ["1 row whose region is 'Gesamt'"]),
        (with_row("Q", 7, 1.0), []),
        (pd.DataFrame(REGIONS), []),
        (
            pd.concat([SCHOOLS, DISTRICTS], ignore_index=True),
            ["3 rows whose school is empty: sums of each district of the others in pupils, teachers"],
        ),
        (
            pd.concat([SCHOOLS.assign(level="S"), DISTRICTS.assign(level="D", school=["x", "y", "z"])]),
            ["3 rows whose level is 'D': sums of each district of the others in pupils, teachers"],
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
    ],
)  # fmt: skip
def test_rows_that_are_sums(frame, totals):
    assert [str(one) for one in tf.open_corpus({"t": frame}).profile("t").totals] == totals


def test_they_are_stored_and_agents_see_them(tmp_path):
    (tmp_path / "t.csv").write_text(with_row("Total", 100, 11.0).to_csv(index=False))
    corpus = tf.open_corpus(tmp_path, progress=False)
    again = tf.open_corpus(tmp_path, progress=False)
    assert again.profile("t").totals == corpus.profile("t").totals != ()
    described = again.tools().call("describe_tables", {"tables": ["t"]})
    assert described["tables"][0]["totals"] == ["1 row whose region is 'Total': sums of the others in people, area"]
