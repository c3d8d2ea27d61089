from __future__ import annotations

import decimal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagframe.corpus.canonical import canonical, hash_texts
from tagframe.corpus.profile import ColumnProfile
from tagframe.corpus.profiler import SKETCH_SIZE, profile_table
from tagframe.engines.base import Chunk, TableShape


def profile(*chunks) -> ColumnProfile:
    table = profile_table("db", TableShape("t", ("c",), ("",)), [Chunk(len(values), [values]) for values in chunks])
    return table.columns[0]


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ([1, 2, None], "integer"),
        (["1", " 2", "007"], "integer"),
        ([1, 2.5], "real"),
        ([float("inf"), 1], "real"),
        (["2020-01-01", "2021-12-31 10:00:00"], "date"),
        ([True, False], "boolean"),
        ([b"x"], "blob"),
        (["a", 1], "text"),
        ([None, None], "empty"),
        (["", " "], "empty"),
    ],
)
def test_family_of_values(values, family):
    assert profile(values).family == family


def test_a_stray_word_makes_no_numbers_into_text():
    column = profile([str(number) for number in range(99)] + ["n/a"])
    assert (column.family, column.minimum, column.maximum) == ("integer", "0", "98")
    assert profile(["1"] * 18 + ["n/a"] * 2).family == "text"


def test_counts_and_extremes():
    column = profile([10, 9, None, 9, 100], [2, None, ""])
    assert (column.rows, column.nulls, column.distinct) == (8, 3, 4)
    assert (column.minimum, column.maximum) == ("2", "100")
    assert column.null_share == 3 / 8
    assert column.uniqueness == 4 / 8


def test_extremes_of_text_and_of_mixed_columns():
    assert (profile(["pear", "Apple"], ["fig"]).minimum, profile(["pear", "Apple"], ["fig"]).maximum) == (
        "apple",
        "pear",
    )
    mixed = profile(["b", 5, "a", "10"])
    assert (mixed.family, mixed.minimum, mixed.maximum) == ("text", "10", "b")


def test_extremes_of_integers_are_exact_beyond_floats():
    column = profile([2**53, 2**53 + 1, -(2**63)])
    assert (column.minimum, column.maximum) == (str(-(2**63)), str(2**53 + 1))


def test_samples_are_the_most_frequent_as_written():
    column = profile([" Praha", "Brno", "Brno", *(f"village {n}" for n in range(30))], ["Brno", "Praha"])
    assert column.samples[:3] == ("Brno", " Praha", "village 0")
    assert len(column.samples) == 10
    assert profile(["007", "7.0"]).samples == ("007",)
    assert profile([" ASY", "0622710", 7.0]).samples == (" ASY", "0622710", "7")


def test_long_cells_are_shortened_in_samples_and_counted_in_full():
    column = profile(["x" * 10_000_000 + "a", "x" * 10_000_000 + "b"])
    assert column.distinct == 2
    assert [len(sample) for sample in column.samples] == [200, 200]
    assert column.minimum is not None
    assert len(column.minimum) == 200


def test_the_sketch_of_few_values_is_complete():
    column = profile(["b", "a", "A"])
    assert column.sketch is not None
    assert column.sketch.complete
    assert column.sketch.hashes.tolist() == sorted(hash_texts(["a", "b"]).tolist())


def test_sketches_are_coordinated():
    """What two columns share is in both sketches or in neither, up to the larger of their largest hashes."""
    one, other = profile(range(20_000)).sketch, profile([str(n) for n in range(10_000, 30_000)]).sketch
    assert one is not None
    assert other is not None
    assert not one.complete
    assert len(one.hashes) == len(other.hashes) == SKETCH_SIZE
    bound = min(one.hashes.max(), other.hashes.max())
    union = np.union1d(one.hashes[one.hashes <= bound], other.hashes[other.hashes <= bound])
    shared = np.intersect1d(one.hashes, other.hashes)
    assert abs(len(shared) / len(union) - 1 / 3) < 0.05  # the Jaccard similarity is 10,000 of 30,000


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pd.Series([1, 1, 2], dtype="int8"), ("integer", 0, 2)),
        (pd.Series([1, None, 2], dtype="Int64"), ("integer", 1, 2)),
        (pd.Series([0.1, np.nan, 0.1], dtype="float32"), ("real", 1, 1)),
        (pd.Series([1.0, np.nan, np.inf]), ("real", 1, 2)),
        (pd.Series([2**64 - 1, 0], dtype="uint64"), ("integer", 0, 2)),
        (pd.Series([True, False, True]), ("boolean", 0, 2)),
        (pd.Series([True, None], dtype="boolean"), ("boolean", 1, 1)),
        (pd.Series(["a", None, "A"]), ("text", 1, 2)),
        (pd.Series(["a", None, "b"], dtype="category"), ("text", 1, 2)),
        (pd.Series(["a", "b"], dtype=pd.CategoricalDtype(["a", "b", "unused"])), ("text", 0, 2)),
        (pd.to_datetime(pd.Series(["2020-01-01", None])), ("date", 1, 1)),
        (pd.to_datetime(pd.Series(["2020-01-01", None])).dt.tz_localize("Europe/Prague"), ("date", 1, 1)),
        (pd.Series([decimal.Decimal("1.50"), decimal.Decimal("1.5"), None], dtype=object), ("real", 1, 1)),
        (pd.Series([[1, 2], [1, 2], {"a": 1}, None], dtype=object), ("text", 1, 2)),
        (pd.Series([np.arange(2000), np.arange(2000)], dtype=object), ("text", 0, 1)),
        (pd.Series(pd.to_timedelta([1, 1, None], unit="s")), ("text", 1, 1)),
        (pd.Series(pd.period_range("2020-01", periods=2, freq="M")), ("text", 0, 2)),
        (pd.Series(["\ud800", "b"], dtype=object), ("text", 0, 2)),
    ],
)
def test_dtypes_of_frames(series, expected):
    column = profile(series)
    assert (column.family, column.nulls, column.distinct) == expected
    assert column.rows == len(series)


CELLS = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from(["a", "A", "b", "", "1", "2.0"]), st.floats(-2, 2))


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(CELLS, max_size=40), st.integers(0, 40))
def test_the_pieces_do_not_matter(cells, cut):
    whole, parts = profile(cells), profile(cells[:cut], cells[cut:])
    texts = [(cell, canonical(cell)[0]) for cell in cells]
    forms = [cell if isinstance(cell, str) else text for cell, text in texts if text is not None]
    for column in (whole, parts):
        assert (column.rows, column.nulls, column.distinct) == (len(cells), len(cells) - len(forms), len(set(forms)))
    assert (whole.family, whole.minimum, whole.maximum) == (parts.family, parts.minimum, parts.maximum)
    assert whole.sketch is not None
    assert parts.sketch is not None
    assert whole.sketch.hashes.tolist() == parts.sketch.hashes.tolist()


def test_a_table_with_no_columns_has_its_rows():
    table = profile_table("db", TableShape("t", (), ()), [Chunk(3, [])])
    assert (table.id, table.rows, table.columns) == ("db.t", 3, ())


MOMENTS = st.datetimes(pd.Timestamp("1700-01-01").to_pydatetime(), pd.Timestamp("2200-01-01").to_pydatetime())


@pytest.mark.slow
@pytest.mark.pandas2
@pytest.mark.parametrize(
    ("dtype", "cells"),
    [
        ("int64", st.integers(-(2**63), 2**63 - 1)),
        ("Int64", st.one_of(st.none(), st.integers(-9, 9))),
        ("uint8", st.integers(0, 255)),
        ("float64", st.floats()),
        (
            "float64",
            st.sampled_from([0.0, -0.0, 1e-5, 1e-4, 0.5, 1e15, 1e16, 1.5e300, 7.0, float("inf"), float("nan")]),
        ),
        ("datetime64[ns]", MOMENTS),
        ("datetime64[ns]", st.sampled_from([None, pd.Timestamp("2020-01-01"), pd.Timestamp("2000-02-29 10:11:12")])),
    ],
)
@given(data=st.data())
def test_a_column_of_numpy_is_profiled_as_its_values_are(dtype, cells, data):
    series = pd.Series(data.draw(st.lists(cells, max_size=60)), dtype=dtype)
    found, expected = profile(series), profile(series.astype(object).tolist())
    assert replace(found, sketch=None) == replace(expected, sketch=None)
    np.testing.assert_array_equal(found.sketch.hashes, expected.sketch.hashes)
