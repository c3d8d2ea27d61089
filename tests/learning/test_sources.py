"""Queries as they lie about: files in any encoding, some of them broken, notebooks, frames, and texts of any kind."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument, SourceNotFound

READS = "SELECT city FROM customers"


@pytest.fixture
def shop() -> tf.Corpus:
    customers = pd.DataFrame({"id": [1, 2], "city": ["Porto", "Faro"]})
    return tf.open_corpus({"customers": customers, "orders": pd.DataFrame({"buyer": [1, 1]})})


@pytest.mark.parametrize(
    ("name", "data", "read", "learned"),
    [
        ("a.sql", b"\xef\xbb\xbf" + READS.encode(), 1, 1),
        ("a.sql", READS.encode("utf-16"), 1, 1),
        ("a.sql", f"{READS} WHERE city = 'Évora'".encode("latin-1"), 1, 1),
        ("a.sql", f"{READS}\0;{READS}\nGO\nSELECT 1 FROM orders -- done".encode(), 3, 2),
        ("a.sql", rb"SELECT 1 FROM customers WHERE city LIKE '\' ESCAPE '\'; SELECT 'x' FROM orders", 2, 2),
        ("a.sql", b"{{ config(x='y') }} SELECT {{ star(ref('z')) }} FROM {{- ref('pkg', 'orders', v=2) -}} o", 1, 1),
        ("a.json", b'\xef\xbb\xbf[{"sql": "SELECT city FROM customers"}]', 1, 1),
        ("a.jsonl", b'{"sql": "SELECT city FROM customers"}\n \n{"sql": \n', 2, 1),
        ("a.csv", "sql,runs\nSELECT city FROM customers,\nSELECT 'é' FROM orders,2.0\n".encode("latin-1"), 2, 2),
    ],
)
def test_files_as_they_are(shop: tf.Corpus, tmp_path: Path, name: str, data: bytes, read: int, learned: int):
    (tmp_path / name).write_bytes(data)
    found = shop.learn(tmp_path / name)
    assert (found.read, found.learned) == (read, learned), found.left_out


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.csv", b""), ("a.json", b"{"), ("a.json", b"[" * 100_000), ("a.json", b'["SELECT 1"]')],
)
def test_a_file_that_cannot_be_read_is_named_and_left_out_of_a_folder(
    shop: tf.Corpus, tmp_path: Path, name: str, data: bytes
):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidArgument, match=name):
        shop.learn(tmp_path / name)
    (tmp_path / "b.sql").write_text(READS)
    (tmp_path / "c.sql").symlink_to(tmp_path / "gone")
    (tmp_path / "d.sql").mkdir()
    found = shop.learn(tmp_path)
    assert found.learned == 1
    assert [Path(one).name for one, _ in found.left_out] == [name, "c.sql"]


def test_frames_as_they_are(shop: tf.Corpus):
    runs = [float("nan"), 2, -1, float("inf"), "many"]
    sql = [READS, f"BEGIN; {READS};", None, 7, "SELECT buyer FROM orders"]
    found = shop.learn(pd.DataFrame({"SQL": sql, "runs": runs}))
    assert (found.read, found.learned) == (5, 2)
    assert {reason for _, reason in found.left_out} == {"it is not text but int", "it selects nothing"}
    assert sorted(shop.learned.runs) == [1, 3]
    twice = pd.DataFrame([[READS, "DROP", "Where?"]], columns=["sql", "sql", "question"])
    assert shop.learn(twice).learned == 1


@pytest.mark.parametrize("given", [[READS], None, READS.encode(), pd.Series([READS])])
def test_what_holds_no_queries_is_refused_by_name(shop: tf.Corpus, given: object):
    with pytest.raises(InvalidArgument, match=type(given).__name__):
        shop.learn(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["", " ", "x" * 100_000, "a\0b", "-- " + "/**/ " * 50_000])
def test_what_is_no_file_and_no_sql_is_refused_by_name(shop: tf.Corpus, given: str):
    with pytest.raises(SourceNotFound):
        shop.learn(given)


@pytest.mark.parametrize(
    "tail",
    ["{{" * 20_000, "{% " * 20_000, "/* " * 20_000, "[" * 20_000, "'\\" * 19_999, "$a$ $b$ " * 9_000, "(" * 20_000],
)
def test_hostile_texts_are_left_out_in_a_time_that_grows_as_they_do(shop: tf.Corpus, tmp_path: Path, tail: str):
    (tmp_path / "a.sql").write_text(f"{READS}; SELECT 1 FROM orders {tail}")
    for dialect in (None, "mysql"):
        assert shop.learn(tmp_path / "a.sql", dialect=dialect).learned >= 1
