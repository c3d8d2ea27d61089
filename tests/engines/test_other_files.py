"""Compressed CSV, JSON, Feather and DuckDB files in a folder are tables; what is not read is named."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import warnings
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.engines.files import limits
from tagframe.errors import EmptyCorpus, HidingWarning, UnreadableTableWarning
from tagframe.merging import plan_tables, run_plan

ORDERS = "order_id,customer_id,amount\n1,10,2.5\n2,20,3.5\n3,10,\n"


def opened(folder: Path) -> tf.Corpus:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableTableWarning)
        return tf.open_corpus(folder, progress=False)


def problem(path: Path) -> str:
    (path.parent / "good.csv").write_text("a\n1\n")
    corpus = opened(path.parent)
    assert [profile.name for profile in corpus] == ["good"]
    (found,) = map(str, corpus.problems)
    assert path.name in found
    return found


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip), ("bz2", bz2), ("xz", lzma)])
def test_compressed_files(tmp_path, ending, pack):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / f"orders.csv.{ending}").write_bytes(pack.compress(ORDERS.encode("cp1252")))
    (folder / f"towns.tsv.{ending}").write_bytes(pack.compress("id\ttown\n010\tKöln\n".encode("cp1252")))
    (folder / f"customers.jsonl.{ending}").write_bytes(pack.compress(b'{"customer_id": 10}\n{"customer_id": 20}\n'))
    corpus = opened(folder)
    assert corpus.ids == ("shop.customers", "shop.orders", "shop.towns")
    assert corpus["towns"].to_dict("list") == {"id": ["010"], "town": ["Köln"]}
    merged = tf.merge({"orders": corpus["orders"], "customers": corpus["customers"]}, on="customer_id")
    assert len(merged) == 3
    assert tf.exec_sql(corpus)("SELECT sum(amount) AS whole FROM orders")["whole"][0] == 6


def test_json_files(tmp_path):
    rows = [
        {"id": 1, "big": 2**60 + 1, "tags": ["a", "ü"], "at": {"x": 1}},
        {"id": 2, "big": None, "zip": "00501", "part": 0.5},
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8-sig")
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    (tmp_path / "c.json").write_text("\n".join(map(json.dumps, rows)), encoding="utf-16")
    corpus = opened(tmp_path)
    for name in "abc":
        frame = corpus[name]
        assert frame["big"].tolist()[0] == 2**60 + 1
        assert frame["tags"].tolist()[0] == '["a", "ü"]'
        assert frame["at"].tolist()[0] == '{"x": 1}'
        assert frame["zip"].tolist()[1] == "00501"
        assert frame.isna().sum().to_dict() == {"id": 0, "big": 1, "tags": 1, "at": 1, "zip": 1, "part": 1}
        assert corpus.read(name, ["part", "id"], limit=1).columns.tolist() == ["part", "id"]
    assert tf.exec_sql(corpus)("SELECT id FROM a WHERE tags LIKE '%ü%'")["id"].tolist() == [1]


def test_integers_beside_fractions_lose_no_digit(tmp_path):
    (tmp_path / "a.jsonl").write_text(f'{{"x": {2**53 + 1}}}\n{{"x": 0.5}}\n')
    assert [str(cell) for cell in opened(tmp_path)["a"]["x"]] == [str(2**53 + 1), "0.5"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "tagframe", "version": 1}', "one object, with 'name', 'version', not a list of objects"),
        ("[1, 2]", "a list of other things"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"a": 1}', "cannot be read as JSON"),
        ('{"a": 1}\n[2]\n', "it is a list of other things, not a list of objects"),
        ('[{"a": ' + "9" * 10_000 + "}]", "cannot be read as JSON"),
        (json.dumps([{str(n): n for n in range(limits.COLUMNS + 1)}]), "columns"),
        (json.dumps([{str(n): n for n in range(9_000)}, *[{}] * 3_000]), "cells at most"),
        ("", "cannot be read as JSON"),
    ],
    ids=["object", "numbers", "deep", "open", "lines", "digits", "wide", "sparse", "empty"],
)
def test_other_json_is_named(tmp_path, text, reason):
    (tmp_path / "x.json").write_text(text)
    assert reason in problem(tmp_path / "x.json")


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.json.gz", "bomb.jsonl.xz"])
def test_what_is_compressed_too_well_is_named(tmp_path, name, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 2**20)
    pack = lzma if name.endswith("xz") else gzip
    (tmp_path / name).write_bytes(pack.compress(b"a\n" + b"1\n" * 2**21))
    assert "1 MB when it is unpacked" in problem(tmp_path / name)


@pytest.mark.parametrize("data", [b"no archive", gzip.compress(ORDERS.encode() * 999)[:-9], b""])
def test_damaged_archives_are_named(tmp_path, data):
    (tmp_path / "x.csv.gz").write_bytes(data)
    assert "cannot be read" in problem(tmp_path / "x.csv.gz")


class TestFeather:
    def test_what_is_compressed_too_well_is_named_before_it_is_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "FREE_BYTES", 2**20)
        pd.DataFrame({"a": ["x" * 2**20] * 20}).to_feather(tmp_path / "t.feather", compression="zstd")
        assert (tmp_path / "t.feather").stat().st_size < 20_000
        assert "when it is unpacked" in problem(tmp_path / "t.feather")

    @pytest.mark.parametrize("data", [b"", b"ARROW1\0\0 not really", b"FEA1"])
    def test_damaged(self, tmp_path, data):
        (tmp_path / "t.feather").write_bytes(data)
        assert "cannot be read as Feather" in problem(tmp_path / "t.feather")


class TestDuckDB:
    @pytest.fixture
    def duckdb(self):
        return pytest.importorskip("duckdb")

    def test_a_database_file(self, tmp_path, duckdb):
        folder = tmp_path / "data"
        folder.mkdir()
        with duckdb.connect(str(folder / "shop.duckdb")) as connection:
            connection.execute("""
                CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
                CREATE TABLE orders (id INTEGER, customer INTEGER REFERENCES customers (id), paid DECIMAL(9, 2));
                INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bo');
                INSERT INTO orders VALUES (7, 2, 1.5), (8, 1, 2.25);
                CREATE SCHEMA old; CREATE TABLE old.orders AS SELECT * FROM orders;
                CREATE VIEW named AS SELECT name FROM customers;
            """)
        (folder / "regions.csv").write_text("name,region\nAnn,north\n")
        corpus = opened(folder)
        assert corpus.ids == ("data.regions", "shop.customers", "shop.old.orders", "shop.orders")
        assert [str(one).partition(" of ")[0] for one in corpus.problems] == ["the view 'named'"]
        assert corpus.profile("shop.orders").foreign_keys[0].other_table == "customers"
        found = corpus.subset(["shop.orders", "shop.customers"])
        assert tf.exec_sql(found)("SELECT name FROM customers JOIN orders ON customer = customers.id ORDER BY paid")[
            "name"
        ].tolist() == ["Bo", "Ann"]
        merged = tf.merge({"o": corpus["shop.orders"], "c": corpus["shop.customers"]}, on="o.customer = c.id")
        assert merged["name"].tolist() == ["Bo", "Ann"]
        assert [str(one).partition(" of ")[0] for one in opened(folder).problems] == ["the view 'named'"]

    def test_its_views_are_learned_and_what_is_computed_of_hidden_columns_is_named(self, tmp_path, duckdb):
        with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
            connection.execute("""
                CREATE SCHEMA old; CREATE TABLE old.pay (id INT, tax INT);
                CREATE TABLE staff (id INT, wage INT, twice INT GENERATED ALWAYS AS (wage * 2), rank INT DEFAULT 7);
                CREATE VIEW old.paid AS SELECT wage - tax AS net FROM main.staff JOIN old.pay USING (id);
            """)
        corpus = opened(tmp_path / "x.duckdb")
        assert {*corpus.engine("staff").definitions()} == {("old.paid", ""), ("staff", "twice"), ("staff", "rank")}
        assert corpus.learn("views").learned == 1
        with pytest.warns(HidingWarning) as said:
            tf.open_corpus(tmp_path / "x.duckdb", hide=["staff.wage"], progress=False)
        assert [str(one.message).partition(":")[0] for one in said if one.category is HidingWarning] == ["staff.twice"]

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [{}, {"where": {"town": "t2"}}, {"how": "left"}, {"limit": 7}])
    def test_merges_run_there_and_give_what_they_give_in_memory(self, tmp_path, duckdb, options):
        with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
            connection.execute("""
                CREATE TABLE customers (id INTEGER PRIMARY KEY, town TEXT);
                CREATE TABLE orders (id BIGINT, customer INTEGER REFERENCES customers (id), paid DECIMAL(9, 2));
                INSERT INTO customers SELECT i, CASE WHEN i % 3 > 0 THEN 't' || i % 5 END FROM range(100) AS t(i);
                INSERT INTO orders SELECT i, CASE WHEN i % 7 > 0 THEN i * 37 % 100 END, i / 4 FROM range(3000) AS t(i);
                DELETE FROM orders WHERE id % 11 = 3;
            """)
        corpus = opened(tmp_path)
        copies = tf.open_corpus({id: corpus.read(id) for id in corpus.ids}, progress=False)
        found = []
        for one in (corpus, copies):
            plan = plan_tables(one, ["shop.orders", "shop.customers"])
            found.append(run_plan(plan, one, on_loss="allow", **options))
        (frame, report), (copied, _) = found
        assert report.engine == "duckdb"
        pd.testing.assert_frame_equal(frame.astype("string"), copied.astype("string"))
        duckdb.connect(str(tmp_path / "shop.duckdb")).close()  # nothing of it is held open

    def test_one_that_is_open_elsewhere_is_named_with_the_way_out(self, tmp_path, duckdb):
        with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
            connection.execute("CREATE TABLE orders AS SELECT 1 AS id")
            assert "is open in another connection: close it" in problem(tmp_path / "x.duckdb")
            corpus = tf.open_corpus({"orders": connection.table("orders")}, progress=False)
            assert corpus["orders"]["id"].tolist() == [1]

    def test_a_damaged_one_is_named(self, tmp_path, duckdb):
        (tmp_path / "x.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\xff" * 5000)
        assert "cannot be read as a database of DuckDB" in problem(tmp_path / "x.duckdb")


def test_other_files_are_not_named(tmp_path):
    for name in ("readme.md", "notes.rst", "~$x.xlsx", ".hidden.json", ".~lock.a.csv#"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(EmptyCorpus):
        tf.open_corpus(tmp_path)
