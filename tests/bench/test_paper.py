"""tag_bench.paper: each table is declared in one place, made by one command, and written in four forms."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from tag_bench.hardness import hardness
from tag_bench.paper import NEEDS_MODEL, TABLES, cell, command, lines_of
from tag_bench.retrieval import command as retrieval
from tag_bench.sql import command as sql
from tagframe.retrieval import method_named


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "spider"
    data.mkdir()
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in ("cat", "dog", "owner")}
    asked = [("cat and dog", "SELECT * FROM cat JOIN dog"), ("owner", "SELECT name FROM owner")]
    (data / "dev.json").write_text(json.dumps([{"question": text, "db_id": "d", "sql": sql} for text, sql in asked]))
    (data / "dev_tables.json").write_text(json.dumps(tables))
    return data


def made(folder, name, *more):
    out = folder.parent / "out"
    done = CliRunner().invoke(command, [name, "--data", str(folder), "--out", str(out), "--json", "-", "--", *more])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), out, done.stderr


def test_a_table_is_written_in_four_forms_beside_the_figures_in_print(folder):
    pytest.importorskip("matplotlib")
    result, out, _ = made(folder, "iterative-jar-2")
    rows = {label.removesuffix(", rules in place of a model"): row for label, row in result["rows"].items()}
    assert rows["Only join (0,1,0), in print"]["CR@2"] == 41.8
    assert rows["Custom config (2,1,4)"]["CR@3"] == 100.0
    assert [path.suffix for path in sorted(out.glob("iterative-jar-2.*"))] == [".csv", ".md", ".png", ".tex"]
    text = (out / "iterative-jar-2.md").read_text()
    assert "| Only join (0,1,0), in print | 71.5 | 41.8 |" in text
    assert "'data_md5': {'spider'" in text
    latex = (out / "iterative-jar-2.tex").read_text()
    assert r"\midrule" in latex
    assert r"$\lambda$ & R@2 & CR@2" in latex
    card = result["cards"]["Only join (0,1,0), rules in place of a model"]
    assert {"commit", "data_md5", "source_md5", "weights_md5", "embedder", "seed", "machine"} <= card.keys()
    assert "weights='0/1/0'" in card["method_object"]
    inside = ["iterative-jar-2", "--data", str(folder), "--out", str(folder / "out")]
    assert "lies in the data" in CliRunner().invoke(command, inside).output


def test_tables_whose_rows_have_one_command_share_its_records(folder, monkeypatch):
    pytest.importorskip("matplotlib")
    made(folder, "iterative-jar-4")
    monkeypatch.setitem(TABLES, "same", {**TABLES["iterative-jar-4"], "columns": {"questions": "questions"}})
    result, _, said = made(folder, "same")
    assert result["card"]["data_md5"].keys() == {"spider"}, "what is written is no data"
    assert "1 of 1 questions are in" in said
    assert result["rows"]["questions"]["questions"] == 1


def test_a_row_says_what_took_the_place_of_a_model(folder):
    rows = made(folder, "murre-4")[0]["rows"]
    assert {*rows["without tabulation"].values()} == {NEEDS_MODEL}
    assert rows["MURRE, rules in place of a model"]["CR@3"] == 100.0
    labels = [label for label, *_ in lines_of("murre-4", folder, ("--lm", "replay:store"))]
    assert labels == ["MURRE", "without rewrite", "without tabulation", "without early stop"]
    assert [label for label, *_ in lines_of("tag-2", folder, ())][-1].endswith(
        "recorded judgements in place of a model"
    )


@pytest.mark.parametrize(
    ("file", "more", "row", "label", "given"),
    [
        ("", (), "CRUSH", "rules in place of a model", False),
        ("decomp.json", (), "CRUSH", "JAR's sub-queries in place of a schema", True),
        ("decomp.json", ("--lm", "replay:store"), "CRUSH", "", False),
        ("crush_hallucinated_schemas.json", (), "CRUSH", "", True),
        ("", (), "JAR", "rules in place of a model", False),
        ("", ("--lm", "replay:store"), "JAR", "", False),
        ("decomp.json", (), "JAR", "", True),
        ("", (), "dense", "", False),
    ],
)
def test_what_a_model_made_of_the_questions_is_used_or_what_took_its_place_is_said(
    folder, file, more, row, label, given
):
    if file:
        (folder / file).write_text("[[], []]")
    lines = {line: words for line, words, _ in lines_of("iterative-jar-7", folder, more)}
    words = lines[f"{row}, {label}" if label else row]
    assert ("--decompositions" in words) == given
    assert ("jar:as_printed,subqueries=model" in words) == (row == "JAR" and bool(more))


def test_values_of_a_table_are_set_by_name_and_said(folder):
    labels = {label: words for label, words, _ in lines_of("iterative-jar-3", folder, (), {"seconds": "5"})}
    assert "mip:as_printed,seconds=5" in labels["K=2, seconds=5, rules in place of a model"]
    result, out, _ = made(folder, "murre-1", "--limit", "1")
    assert "(spider --limit 1)" in result["about"], "a sample says so"
    for wrong in (["--set", "beam=2"], ["--", "--method", "dense"]):
        given = ["murre-1", "--data", str(folder), "--out", str(out), *wrong]
        assert "its rows say it" in CliRunner().invoke(command, given).output


def test_columns_are_means_over_groups_of_records(folder):
    records = [
        {"gold_tables": ["a", "b"], "scores": {"R@2": 1.0}, "hardness": "easy", "gold_ranks": [1, 4]},
        {"gold_tables": ["a", "b", "c"], "scores": {"R@2": 0.5}, "hardness": "hard", "gold_ranks": [2]},
    ]
    for number, record in enumerate(records):
        record["facts"] = {"2": {"status": ("optimal", "feasible")[number], "hops": number + 1}}
        record["seconds"] = {"prepare": 1.0, "choose@2": number}
    wanted = {"R@2": 75, "R@2 of hard": 50, "R@2 of >=3 tables": 50, "R@2 of 4 tables": None, "rank": 2.25}
    wanted |= {"optimal@2": 50, "hop 2": 50, "seconds@2": 1.5, "sum seconds@2": 3, "questions of 2 tables": 1}
    wanted |= {"questions of 5 tables": 0}
    assert {column: cell(records, column) for column in wanted} == wanted
    result, _, _ = made(folder, "murre-1")
    assert (result["rows"]["questions"]["1"], result["rows"]["questions"]["all"]) == (1.0, 2.0)


@pytest.mark.parametrize("name", TABLES)
def test_each_table_of_the_file_is_one_that_can_be_made(name):
    table = TABLES[name]
    for row in table["rows"]:
        words = table["command"].format_map({**table.get("values", {}), **row}).split()
        assert words[0] in ("retrieval", "answers", "sql")
        if words[0] != "answers":
            method_named(words[words.index("--method") + 1])
            known = {name for one in (retrieval if words[0] == "retrieval" else sql).params for name in one.opts}
            assert {word for word in words if word.startswith("--")} <= known
        for printed in row.get("printed", {}).values():
            assert len(printed) <= len(table["columns"])
    assert re.fullmatch(r"[a-z\d-]+", name)


def test_sql_is_written_by_the_prompt_of_its_paper(folder):
    """MURRE's has no examples; JAR's is that of the command."""
    lines = [words for name in ("jar-2", "murre-3") for _, words, _ in lines_of(name, folder, ("--lm", "replay:store"))]
    assert [("bird" in words, "--every-question" in words) for words in lines if words] == [
        *[(False, False)] * len(TABLES["jar-2"]["rows"]),
        *[(True, True)] * len(TABLES["murre-3"]["rows"]),
    ]


def test_f1_of_jars_table_1_lies_near_that_of_its_means():
    """A mistyped digit would part them: F1 is a mean over questions, so it is not exactly that of the means."""
    for row in TABLES["jar-1"]["rows"]:
        for printed in row["printed"].values():
            for precision, recall, f1 in (printed[at : at + 3] for at in (0, 3, 6)):
                assert abs(2 * precision * recall / (precision + recall) - f1) < 1.5


@pytest.mark.parametrize(
    ("statement", "level"),
    [
        ("SELECT count(*) FROM a", "easy"),
        ("SELECT x, y FROM a WHERE z = 1", "medium"),
        ("SELECT x FROM a JOIN b ON a.i = b.i WHERE z = 1", "medium"),
        ("SELECT x FROM a WHERE i NOT IN (SELECT i FROM b)", "hard"),
        ("SELECT x FROM a EXCEPT SELECT x FROM b", "hard"),
        ("SELECT x FROM a GROUP BY x ORDER BY count(*) DESC LIMIT 1", "hard"),
        (
            "SELECT x, max(y), min(y) FROM a WHERE z = 1 AND w IN (SELECT w FROM b WHERE v LIKE 'q%') GROUP BY x",
            "extra",
        ),
        ("SELECT FROM WHERE", None),
    ],
)
def test_hardness_is_that_of_spider(statement, level):
    assert hardness(statement) == level
