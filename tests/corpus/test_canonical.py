from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagframe.corpus.canonical import canonical, canonical_all, hash_texts


@pytest.mark.parametrize(
    "same",
    [
        (7, 7.0, "7", "007", " 7.00 ", "+7", np.int64(7), np.float32(7), decimal.Decimal("7.0")),
        (-0.5, "-.5", "-0.50", decimal.Decimal("-0.5"), np.float32(-0.5)),
        (0, -0.0, "0", "-0", "000", "0.0", decimal.Decimal("-0")),
        (0.1, "0.1", np.float32(0.1), np.float64(0.1)),
        (1e-7, "0.0000001", decimal.Decimal("1e-7")),
        (10**20, 1e20, "100000000000000000000"),
        (2**53 + 1, str(2**53 + 1)),
        ("Prague", " prague\n", "PRAGUE"),
        ("caf\u00e9", "cafe\u0301", "CAF\u00c9"),
        ("straße", "STRASSE"),
        (True, "true", "TRUE", np.True_),
        ("2020-03-01", "2020/3/1", "2020-03-01 00:00:00", "2020-03-01T00:00", dt.date(2020, 3, 1)),
        (dt.datetime(2020, 3, 1), pd.Timestamp("2020-03-01"), np.datetime64("2020-03-01"), "2020-03-01"),
        ("2020-03-01 10:20:30", "2020-03-01T10:20:30.000", pd.Timestamp("2020-03-01 10:20:30")),
        ("2020-03-01 10:20:30.5", pd.Timestamp("2020-03-01 10:20:30.5")),
        ("2020-03-01T10:20:30Z", "2020-03-01T12:20:30+02:00", pd.Timestamp("2020-03-01 11:20:30", tz="Europe/Prague")),
        (b"\x01\xff", bytearray(b"\x01\xff"), memoryview(b"\x01\xff")),
        (None, float("nan"), pd.NA, pd.NaT, "", "  \t", decimal.Decimal("NaN"), np.float32("nan")),
    ],
)
def test_values_that_mean_the_same_have_one_form(same):
    forms = {canonical(value) for value in same}
    assert len(forms) == 1, forms


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, ("7", "integer")),
        ("1.50", ("1.5", "real")),
        (float("inf"), ("inf", "real")),
        (decimal.Decimal("-Infinity"), ("-inf", "real")),
        ("12E4", ("12e4", "text")),
        ("-", ("-", "text")),
        ("1,5", ("1,5", "text")),
        ("٣", ("٣", "text")),
        ("3/4/2010", ("3/4/2010", "text")),
        ("2020-02-30", ("2020-02-30", "text")),
        ("2020-01-01x10:00:00", ("2020-01-01x10:00:00", "text")),
        ("0000-01-01", ("0000-01-01", "text")),
        ("0001-01-01T00:00:00+05:00", ("0001-01-01t00:00:00+05:00", "text")),
        ("20200301", ("20200301", "integer")),
        (b"ab", ("0x6162", "blob")),
        ([1, "a"], ("[1, 'a']", "text")),
        (dt.time(10, 5), ("10:05:00", "text")),
        ("9" * 61, ("9" * 61, "text")),
    ],
)
def test_form_and_family(value, expected):
    assert canonical(value) == expected


def test_numbers_too_long_for_decimal_text():
    assert canonical(10**5000) == (hex(10**5000), "text")


def test_long_bytes_are_shortened_and_still_told_apart():
    one, other = b"x" * 1000, b"x" * 999 + b"y"
    assert len(str(canonical(one)[0])) == 66
    assert canonical(one) != canonical(other)


def test_nanoseconds_count():
    assert canonical(pd.Timestamp("2020-01-01 00:00:00.000000001")) == ("2020-01-01T00:00:00.000000001", "date")


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.from_regex(r"[+-]?[0-9]{0,4}(\.[0-9]{0,3})?", fullmatch=True),
    st.from_regex(r"[12][0-9]{3}[-/][0-9]{1,2}[-/][0-9]{1,2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2})?", fullmatch=True),
    st.sampled_from(["true", "False", "T", "f", " ", "nan", "inf"]),
    st.binary(max_size=80),
    st.dates(),
    st.datetimes(),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.one_of(st.lists(ANYTHING), st.lists(st.text()), st.lists(st.floats()), st.lists(st.integers())))
def test_a_batch_is_its_values_one_by_one(values):
    texts, families = canonical_all(values)
    assert list(zip(texts, families, strict=True)) == [canonical(value) for value in values]


@pytest.mark.slow
@pytest.mark.pandas2
@settings(deadline=None)
@given(ANYTHING)
def test_a_form_is_its_own_form(value):
    text, family = canonical(value)
    is_number = family in ("integer", "real")
    if family != "empty" and not (is_number and len(str(text)) > 60):
        assert canonical(text)[0] == text


@pytest.mark.slow
def test_hashes_are_fixed_for_all_time():
    # Catalogues are compared across processes, platforms and pandas' versions: these values must never change.
    expected = [int(hashlib.md5(text.encode()).hexdigest()[:16], 16) for text in ("a", "é", "1")]
    assert expected[0] == 0x0CC175B9C0F1B6A8
    assert hash_texts(["a", "é", "1"]).tolist() == expected
    program = "from tagframe.corpus.canonical import hash_texts; print(hash_texts(['a', 'é', '1']).tolist())"
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == str(expected)
