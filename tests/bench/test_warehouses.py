"""``tag_bench joins`` over a warehouse and over a bare schema, and the world of ``tag_bench speed keys``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from click.testing import CliRunner

from tag_bench.joins import command
from tag_bench.speed.keys import exponent, write_erp

KEYS = [
    ["sales.s_item_sk", "item.i_item_sk"],
    ["sales.s_store_sk", "store.t_store_sk"],
    ["sales.s_ship_store_sk", "store.t_store_sk"],
]
STATEMENTS = [
    "SELECT sum(s_paid) FROM sales, item WHERE s_item_sk = i_item_sk AND i_price > 3",
    "SELECT a.t_town FROM sales, store a, store b WHERE s_store_sk = a.t_store_sk AND s_ship_store_sk = b.t_store_sk",
    "SELECT count(*) FROM sales, item WHERE s_store_sk = i_price",
]


@pytest.fixture
def warehouse(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    items = pd.DataFrame({"i_item_sk": range(1, 21), "i_name": [f"item {n}" for n in range(20)], "i_price": range(20)})
    stores = pd.DataFrame({"t_store_sk": range(1, 6), "t_town": [*"abcde"], "t_size": [3, 1, 4, 1, 5]})
    sales = pd.DataFrame({"s_item_sk": [*range(1, 21)] * 3, "s_store_sk": [*range(1, 6)] * 12,
                          "s_ship_store_sk": [5, 2, 1, 4, 3, 3] * 10, "s_paid": range(60)})  # fmt: skip
    for name, frame in (("item", items), ("store", stores), ("sales", sales)):
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    (tmp_path / "shop_keys.json").write_text(json.dumps(KEYS))
    (tmp_path / "shop_queries.json").write_text(json.dumps([{"sql": sql} for sql in STATEMENTS]))
    return folder


def measured(*options):
    done = CliRunner().invoke(command, [*map(str, options)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_warehouse_with_and_without_rows(warehouse):
    found = measured("--data", warehouse)
    assert (found["tables"], found["columns"]) == (3, 10)
    for part in ("keys", "keys_without_rows"):
        assert (found[part]["precision"], found[part]["recall"], found[part]["f1"]) == (100, 100, 100)
        assert (found[part]["wrong"], found[part]["missed"]) == ([], [])
    told = found["statements"]
    assert (told["count"], told["joins"], told["among_keys"], told["tables_twice"]) == (3, 4, 3, 1)
    bare = measured("--data", warehouse, "--own-names")
    assert bare["keys"] is None


def test_a_schema_alone(tmp_path):
    schema, keys = tmp_path / "shop.sql", tmp_path / "keys.json"
    schema.write_text("CREATE TABLE album (id INTEGER, title TEXT); CREATE TABLE track (id INTEGER, album_id INTEGER);")
    keys.write_text(json.dumps([["track.album_id", "album.id"]]))
    assert measured("--schema", schema, "--keys", keys)["keys_without_rows"]["f1"] == 100


def test_what_is_missing_or_no_key_is_said(tmp_path, warehouse):
    assert "give --data, or both --schema and --keys" in CliRunner().invoke(command, []).output
    (tmp_path / "shop_keys.json").write_text(json.dumps(["sales.s_item_sk"]))
    assert "a key is a pair" in CliRunner().invoke(command, ["--data", str(warehouse)]).output


def test_the_world_of_an_erp_and_its_exponent(tmp_path):
    write_erp(5, tmp_path / "erp.sqlite")
    with closing(sqlite3.connect(tmp_path / "erp.sqlite")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        assert [len(connection.execute(f"SELECT * FROM {name}").fetchall()) for name in tables] == [200] * 5
        assert len(connection.execute(f"PRAGMA table_info({tables[-1]})").fetchall()) == 9
    cases = [{"tables": size, "first_question_seconds": size**2} for size in (10, 20, 40)]
    assert exponent(cases) == 2.0
    assert exponent(cases[:1]) is None
