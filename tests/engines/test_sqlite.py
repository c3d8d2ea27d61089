from __future__ import annotations

import os
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus import ForeignKey
from tagframe.engines.sqlite.engine import SQLiteEngine, connect_readonly
from tagframe.errors import ColumnFormatWarning, RowsLostWarning, SQLFailed, UnreadableTable, UnreadableTableWarning


def test_tables_keys_and_types(bank):
    corpus = tf.open_corpus(bank)
    assert corpus.ids == ("bank.client", "bank.loan")
    loan = corpus.profile("bank.loan")
    assert loan.rows == 3
    assert loan.primary_key == ("loan_id",)
    assert loan.foreign_keys == (ForeignKey(("client_id",), "client", ("client_id",)),)
    assert [column.declared_type for column in loan.columns] == ["INTEGER", "INTEGER", "REAL"]
    assert [column.family for column in loan.columns] == ["integer", "integer", "real"]
    assert corpus.profile("client").column("born").family == "date"
    assert corpus.engine("loan") == SQLiteEngine(bank)
    assert corpus.source_table("bank.loan") == "loan"


def test_foreign_keys_are_spelled_as_the_tables_are(sqlite_file):
    path = sqlite_file("""
        CREATE TABLE Parent (A INT, B INT, PRIMARY KEY (B, A));
        CREATE TABLE child (
            x INT, y INT, z INT REFERENCES missing (id), w INT REFERENCES parent (nowhere),
            FOREIGN KEY (X, Y) REFERENCES PARENT,
            FOREIGN KEY (y, x) REFERENCES parent (a, b), FOREIGN KEY (y, x) REFERENCES parent (a, b)
        );
        CREATE TABLE self (id INTEGER PRIMARY KEY, boss INT REFERENCES self);
    """)
    corpus = tf.open_corpus(path)
    assert corpus.profile("Parent").primary_key == ("B", "A")
    assert sorted(corpus.profile("child").foreign_keys, key=lambda key: key.columns) == [
        ForeignKey(("x", "y"), "Parent", ("B", "A")),
        ForeignKey(("y", "x"), "Parent", ("A", "B")),
    ]
    assert corpus.profile("self").foreign_keys == (ForeignKey(("boss",), "self", ("id",)),)


@pytest.mark.filterwarnings("ignore::tagframe.errors.UnreadableTableWarning")
def test_views_are_tables_and_what_does_not_run_is_named(sqlite_file):
    path = sqlite_file("""
        CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, twice INT GENERATED ALWAYS AS (id * 2));
        INSERT INTO t DEFAULT VALUES;
        CREATE VIEW v AS SELECT * FROM t;
        CREATE VIEW broken AS SELECT nope FROM gone;
        CREATE VIRTUAL TABLE words USING fts5(text);
    """)
    corpus = tf.open_corpus(path)
    assert corpus.ids == ("bank.t", "bank.v")
    assert [problem for problem in map(str, corpus.problems) if "'broken'" in problem or "'words'" in problem] == [
        *map(str, corpus.problems)
    ]
    assert len(corpus.problems) == 2
    run = tf.exec_sql(corpus)
    assert run("SELECT t.id, v.twice FROM t JOIN v ON v.id = t.id").to_dict("list") == {"id": [1], "twice": [2]}
    assert run("SELECT count(*) AS n FROM v")["n"].tolist() == [1]


def test_a_with_named_as_a_view_reads_nothing_that_is_hidden(sqlite_file):
    path = sqlite_file("""
        CREATE TABLE t (id INTEGER, secret TEXT); INSERT INTO t VALUES (1, 's3cret');
        CREATE VIEW v AS SELECT id FROM t;
    """)
    run = tf.exec_sql(tf.open_corpus(path, hide=["t.secret"]))
    with pytest.raises(SQLFailed):
        run("WITH v AS (SELECT secret FROM t) SELECT * FROM v")


def test_a_view_that_takes_too_long_is_named(sqlite_file, monkeypatch):
    monkeypatch.setattr("tagframe.engines.sqlite.engine.VIEW_SECONDS", 0.2)
    path = sqlite_file("""
        CREATE TABLE t (id INTEGER); INSERT INTO t VALUES (1);
        CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n;
    """)
    with pytest.warns(UnreadableTableWarning, match="takes more than 0.2 seconds"):
        assert tf.open_corpus(path).ids == ("bank.t",)


NAMES = ["a b", "a.b", 'say "x"', "it's", "select", "Größe", "[br]", "per%cent", "semi;colon", "new\nline"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_kind(sqlite_file, name):
    quoted = '"' + name.replace('"', '""') + '"'
    path = sqlite_file(f"CREATE TABLE {quoted} ({quoted} TEXT, id INT); INSERT INTO {quoted} VALUES ('x', 1);")
    corpus = tf.open_corpus(path)
    assert corpus.ids == (f"bank.{name}",)
    assert corpus.profile(name).column(name).samples == ("x",)
    assert corpus.read(f"bank.{name}", columns=[name])[name].tolist() == ["x"]


def test_rows_come_back_as_they_are(sqlite_file):
    big = 2**60 + 1
    path = sqlite_file(f"""
        CREATE TABLE t (whole INT, holes INT, real REAL, both, text TEXT, mixed, bytes BLOB, blank);
        INSERT INTO t VALUES (1, {big}, 1.5, 1, 'a', 'x', x'00ff', NULL);
        INSERT INTO t VALUES (2, NULL, NULL, 2.5, NULL, 7, NULL, NULL);
    """)
    frame = tf.open_corpus(path).read("t")
    assert frame["whole"].dtype == "int64"
    assert frame["holes"].dtype == "Int64"
    assert frame["holes"][0] == big
    assert frame["real"].dtype == frame["both"].dtype == "float64"
    assert frame["both"].tolist() == [1.0, 2.5]
    assert frame["text"].dtype == pd.Series(["a", None]).dtype
    assert frame["text"].isna().tolist() == [False, True]
    assert frame["mixed"].tolist() == ["x", 7]
    assert frame["bytes"][0] == b"\x00\xff"
    assert frame["blank"].tolist() == [None, None]


def test_text_that_is_not_utf8(sqlite_file):
    path = sqlite_file("CREATE TABLE t (name TEXT); INSERT INTO t VALUES (CAST(x'4dfc6c6c6572' AS TEXT)), ('Müller');")
    with pytest.warns(ColumnFormatWarning, match="texts of 'name' are not UTF-8"):
        corpus = tf.open_corpus(path)
    assert corpus.profile("t").column("name").samples == ("M\ufffdller", "Müller")
    assert corpus.read("t")["name"].tolist() == ["M\ufffdller", "Müller"]


def test_big_cells_infinity_and_mixed_types(sqlite_file):
    path = sqlite_file("CREATE TABLE t (a, b);")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO t VALUES (?, ?)", ["x" * 10_000_000, float("inf")])
        connection.execute("INSERT INTO t VALUES (?, ?)", [b"\x00" * 10_000_000, -1.5])
        connection.execute("INSERT INTO t VALUES (?, ?)", [7, float("nan")])
    table = tf.open_corpus(path).profile("t")
    assert (table.column("a").family, table.column("a").distinct, table.column("a").nulls) == ("text", 3, 0)
    assert (table.column("b").minimum, table.column("b").maximum, table.column("b").nulls) == ("-1.5", "inf", 1)


def test_the_file_cannot_be_changed_and_gets_no_company(bank):
    before = bank.read_bytes()
    with closing(connect_readonly(bank)) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM loan")
    tf.open_corpus(bank).read("loan")
    assert bank.read_bytes() == before
    assert os.listdir(bank.parent) == [bank.name]


def test_a_database_in_wal_mode_gets_no_company_either(bank):
    with closing(sqlite3.connect(bank)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("INSERT INTO loan VALUES (13, 1, 1)")
        connection.commit()
    assert os.listdir(bank.parent) == [bank.name]
    assert tf.open_corpus(bank).profile("loan").rows == 4
    assert os.listdir(bank.parent) == [bank.name]


def test_what_a_writer_has_not_yet_checkpointed_is_read(bank):
    with closing(sqlite3.connect(bank)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        assert tf.open_corpus(bank).profile("loan").rows == 3
        writer.execute("INSERT INTO loan VALUES (13, 1, 1)")
        writer.commit()
        corpus = tf.open_corpus(bank)
        assert corpus.profile("loan").rows == len(corpus.read("loan")) == 4


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all", bytes(range(256)) * 16], ids=["empty", "text", "noise"]
)
def test_a_file_that_is_no_database(tmp_path, content):
    path = tmp_path / "secret.sqlite"
    path.write_bytes(content)
    with pytest.raises(UnreadableTable, match=r"secret\.sqlite is not a SQLite database"):
        tf.open_corpus(path)


def damage(path: Path, table: str) -> None:
    """Overwrite the pages of one table with noise."""
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_a_damaged_table_does_not_hide_the_others(bank):
    damage(bank, "loan")
    for _ in range(2):  # from the catalogue too
        with pytest.warns(tf.errors.UnreadableTableWarning, match=r"table 'loan' of .*malformed"):
            corpus = tf.open_corpus(bank)
        assert corpus.ids == ("bank.client",)
        assert [type(problem) for problem in corpus.problems] == [UnreadableTable]


def test_a_column_that_vanished_after_opening(bank):
    corpus = tf.open_corpus(bank)
    with closing(sqlite3.connect(bank)) as connection, connection:
        connection.execute("ALTER TABLE loan DROP COLUMN amount")
    with pytest.raises(UnreadableTable, match=r"table 'loan' of .* cannot be read: no such column"):
        corpus.read("loan", ["amount"])
    assert corpus.read("loan").columns.tolist() == ["loan_id", "client_id"]


@pytest.mark.parametrize("tables", [("orders", "big"), ("big", "orders"), ("orders", "big", "cities")])
def test_a_view_is_merged_as_its_rows_are(tmp_path, tables):
    with sqlite3.connect(tmp_path / "shop.sqlite") as file:
        file.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, city_id INT, amount REAL);"
            "CREATE TABLE cities (city_id INTEGER PRIMARY KEY, city TEXT);"
            "CREATE VIEW big AS SELECT id AS order_id, amount AS big_amount FROM orders WHERE amount > 5;"
            "INSERT INTO cities VALUES (1, 'Lyon'), (2, 'Brno');"
            "INSERT INTO orders VALUES (1, 1, 3.0), (2, 2, 9.5), (3, 1, 7.0);"
        )
    corpus = tf.open_corpus(tmp_path / "shop.sqlite")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RowsLostWarning)
        merged = corpus.merge(
            *tables, on=["big.order_id = orders.id", *["orders.city_id = cities.city_id"] * (len(tables) == 3)]
        )
    assert sorted(zip(merged["big_amount"], merged["amount"], strict=True)) == [(7.0, 7.0), (9.5, 9.5)]
