"""Reading the joins of gold SQL, and the measures made of them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from tag_bench.databases import Database, key_scores, reliability
from tag_bench.gold_joins import gold_joins
from tag_bench.joins import command
from tagframe.keys import KeyPair

SCHEMA = {
    "singer": ("singer_id", "name", "age"),
    "concert": ("concert_id", "stadium_id", "year"),
    "singer_in_concert": ("singer_id", "concert_id"),
    "stadium": ("stadium_id", "name"),
}


@pytest.mark.parametrize(
    ("sql", "classes"),
    [
        ("SELECT * FROM singer s JOIN singer_in_concert c ON s.Singer_ID = c.singer_id WHERE age > 3",
         [{("singer", "singer_id"), ("singer_in_concert", "singer_id")}]),
        ("SELECT 1 FROM concert, stadium WHERE concert.stadium_id = stadium.stadium_id AND year = 2",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}]),
        ("SELECT name FROM stadium WHERE stadium_id NOT IN (SELECT stadium_id FROM concert)",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}]),
        ("SELECT name FROM stadium WHERE stadium_id = (SELECT stadium_id FROM concert ORDER BY year LIMIT 1)",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}]),
        ("SELECT singer_id FROM singer EXCEPT SELECT singer_id FROM singer_in_concert",
         [{("singer", "singer_id"), ("singer_in_concert", "singer_id")}]),
        ("SELECT name FROM singer WHERE age > (SELECT count(*) FROM concert)", []),
        ("WITH last AS (SELECT stadium_id AS s FROM concert) SELECT name FROM stadium JOIN last ON stadium_id = last.s",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}]),
        ("SELECT t.name FROM stadium t JOIN (SELECT stadium_id k FROM concert) x ON x.k = t.stadium_id",
         [{("concert", "stadium_id"), ("stadium", "stadium_id")}]),
    ],
)  # fmt: skip
def test_what_a_statement_joins(sql, classes):
    gold = gold_joins(sql, SCHEMA)
    assert gold.classes == frozenset(map(frozenset, classes))
    assert not gold.twice


def test_a_table_named_twice_and_the_rows_of_a_join():
    assert gold_joins("SELECT 1 FROM singer a JOIN singer b ON a.age = b.age", SCHEMA).twice
    (block,) = gold_joins(
        "SELECT c.year FROM concert c, stadium s WHERE c.stadium_id = s.stadium_id AND year = 3", SCHEMA
    ).blocks
    assert block.tables == ("concert", "stadium")
    assert block.rows_sql.startswith('SELECT "c"."rowid", "s"."rowid" FROM concert AS c')
    assert block.rows_sql.endswith("WHERE c.stadium_id = s.stadium_id")


@pytest.mark.slow
def test_the_command_prints_one_json_object_near_its_targets(bench: Path):
    result = CliRunner().invoke(
        command,
        ["--data", str(bench / "spider"), "--merge-rows", "2000"],
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["plans"]["questions"] == 455
    assert report["plans"]["table_twice_left_out"] == 4
    assert report["keys"]["precision"] >= 97
    assert report["keys"]["recall"] >= 97
    assert report["keys"]["cross_database_pairs_percent"] <= 0.25
    assert report["plans"]["with_question_percent"] >= 96.5
    assert report["merge"]["contained_percent"] >= 94


def tiny_benchmark(folder: Path) -> Path:
    """Two databases of one key each, and a question each; the second declares a composite key."""
    schemas = []
    for name, key in (("one", ["shop_id"]), ("two", ["order_no", "line_no"])):
        (folder / "database" / name).mkdir(parents=True)
        connection = sqlite3.connect(folder / "database" / name / f"{name}.sqlite")
        parents = pd.DataFrame({column: [100 + number, 200, 300 + number, 400] for number, column in enumerate(key)})
        parents.assign(town=list("abcd")).to_sql("shop", connection, index=False)
        pd.concat([parents, parents]).assign(amount=range(8)).to_sql("sale", connection, index=False)
        connection.close()
        columns = [*((0, column) for column in (*key, "town")), *((1, column) for column in (*key, "amount"))]
        size = len(key)
        schemas.append(
            {
                "db_id": name,
                "table_names_original": ["shop", "sale"],
                "column_names_original": columns,
                "foreign_keys": [[size + 1 + number, number] for number in range(size)],
            }
        )
    on = {"one": "sale.shop_id = shop.shop_id", "two": "sale.order_no = shop.order_no AND sale.line_no = shop.line_no"}
    cases = [
        {"db_id": name, "question": "amounts by town?", "sql": f"SELECT town FROM sale JOIN shop ON {joined}"}
        for name, joined in on.items()
    ]
    (folder / "schema_with_keys.json").write_text(json.dumps(schemas))
    (folder / "dev.json").write_text(json.dumps(cases))
    (folder / "halves.json").write_text(json.dumps({"fit": ["one"], "report": ["two"]}))
    return folder


@pytest.mark.slow
def test_the_command_reports_by_half_where_the_data_has_halves(tmp_path: Path):
    folder = tiny_benchmark(tmp_path)
    result = CliRunner().invoke(command, ["--data", str(folder), "--merge-rows", "10"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert set(report["by_half"]) == {"fit", "report"}
    fit = report["by_half"]["fit"]
    assert (fit["keys"]["declared"], fit["keys"]["precision"], fit["keys"]["recall"]) == (1, 100, 100)
    assert (fit["plans"]["equal_percent"], fit["merge"]["contained_percent"]) == (100, 100)
    assert report["keys"]["declared"] == 3
    assert 0 <= report["reliability"] <= 1


@pytest.mark.slow
def test_merges_after_a_perturbation_are_counted(tmp_path: Path):
    folder = tiny_benchmark(tmp_path)
    result = CliRunner().invoke(command, ["--data", str(folder), "--perturb", "id", "--perturb", "drop-columns"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)["perturbed"]
    assert [*report] == ["id in front of both", "half of the columns dropped"]
    for one in report.values():
        assert one["pairs"] == one["right"] + one["said"] + one["refused"] + one["silent"] == 1


def test_a_composite_key_counts_as_its_pairs_of_columns_and_scores_are_held_against_shares():
    declared = frozenset({frozenset({"d.a.x", "d.b.x"}), frozenset({"d.a.y", "d.b.y"})})
    database = Database("d", (), {}, declared, None)
    both = {"d": [KeyPair("d.a", ("x", "Y"), "d.b", ("x", "y"), 0.95)]}
    assert (key_scores([database], both)["precision"], key_scores([database], both)["recall"]) == (100, 100)
    assert reliability([database], both) == 0.05
    wrong = {"d": [*both["d"], KeyPair("d.a", ("z",), "d.b", ("z",), 0.55)]}
    scores = key_scores([database], wrong)
    assert scores["precision"] == pytest.approx(66.667)
    assert scores["undeclared"] == ["d.a.z → d.b.z (0.55)"]
    assert reliability([database], wrong) == pytest.approx((2 * 0.05 + 0.55) / 3, abs=1e-3)
