"""Reading the joins of gold SQL, and the measures made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tag_bench.gold_joins import gold_joins
from tag_bench.joins import command
from tag_bench.lake import synthetic_lake
from tagframe.keys import infer_keys

SCHEMA = {
    "singer": ("singer_id", "name", "age"),
    "concert": ("concert_id", "stadium_id", "year"),
    "singer_in_concert": ("singer_id", "concert_id"),
    "stadium": ("stadium_id", "name"),
}


@pytest.mark.parametrize(
    ("sql", "classes", "kind"),
    [
        ("SELECT * FROM singer s JOIN singer_in_concert c ON s.Singer_ID = c.singer_id WHERE age > 3",
         [{("singer", "singer_id"), ("singer_in_concert", "singer_id")}], "joined"),
        ("SELECT 1 FROM concert, stadium WHERE concert.stadium_id = stadium.stadium_id AND year = 2",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}], "joined"),
        ("SELECT name FROM stadium WHERE stadium_id NOT IN (SELECT stadium_id FROM concert)",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}], "subquery"),
        ("SELECT name FROM stadium WHERE stadium_id = (SELECT stadium_id FROM concert ORDER BY year LIMIT 1)",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}], "subquery"),
        ("SELECT singer_id FROM singer EXCEPT SELECT singer_id FROM singer_in_concert",
         [{("singer", "singer_id"), ("singer_in_concert", "singer_id")}], "set operation"),
        ("SELECT name FROM singer WHERE age > (SELECT count(*) FROM concert)", [], "no predicate"),
        ("WITH last AS (SELECT stadium_id AS s FROM concert) SELECT name FROM stadium JOIN last ON stadium_id = last.s",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}], "joined"),
        ("SELECT t.name FROM stadium t JOIN (SELECT stadium_id k FROM concert) x ON x.k = t.stadium_id",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}], "joined"),
    ],
)  # fmt: skip
def test_what_a_statement_joins(sql, classes, kind):
    gold = gold_joins(sql, SCHEMA)
    assert gold.classes == frozenset(map(frozenset, classes))
    assert gold.kind == kind
    assert not gold.twice


def test_a_table_named_twice_and_the_rows_of_a_join():
    assert gold_joins("SELECT 1 FROM singer a JOIN singer b ON a.age = b.age", SCHEMA).twice
    (block,) = gold_joins(
        "SELECT c.year FROM concert c, stadium s WHERE c.stadium_id = s.stadium_id AND year = 3", SCHEMA
    ).blocks
    assert block.tables == ("concert", "stadium")
    assert block.rows_sql.startswith('SELECT "c"."rowid", "s"."rowid" FROM concert AS c')
    assert block.rows_sql.endswith("WHERE c.stadium_id = s.stadium_id")


def test_a_lake_of_known_keys_is_read_right():
    lake = synthetic_lake(tables=40, seed=3)
    assert {(key.left, key.right) for key in infer_keys(lake.tables)} == lake.keys


def test_the_command_prints_one_json_object_near_its_targets(bench: Path):
    result = CliRunner().invoke(
        command, ["--data", str(bench / "spider"), "--merge-rows", "2000", "--lake-tables", "0"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["plans"]["questions"] == 455
    assert report["plans"]["table_twice_left_out"] == 4
    assert report["keys"]["precision"] >= 97
    assert report["keys"]["recall"] >= 97
    assert report["keys"]["cross_database_pairs_percent"] <= 0.2
    assert report["plans"]["with_question_percent"] >= 96.5
    assert report["merge"]["contained_percent"] >= 94
