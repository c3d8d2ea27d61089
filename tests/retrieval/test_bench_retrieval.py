"""tag_bench.retrieval: the metrics, and the command on a small folder."""

import json

import pytest
from click.testing import CliRunner

from tag_bench.data import drawn, read_dataset
from tag_bench.retrieval import MEASURES, command, scores
from tagframe.evaluation.scores import scores_of


def found(gold, tables, connected=True):
    measures = zip(MEASURES, scores_of(tables, gold), strict=True)
    return {"scores": {f"{measure}@2": float(value) for measure, value in measures}, "connected": {"2": connected}}


def test_metrics_by_hand():
    result = scores([found({"a", "b"}, ["a", "b"]), found({"a", "b", "c"}, ["a", "x"], connected=False)], 2)
    assert result == {"P": 75.0, "R": 66.67, "F1": 70.0, "CR": 50.0, "exact": 50.0, "connected": 50.0}


@pytest.fixture
def folder(tmp_path):
    """Three tables and two questions, one of which needs a single table."""
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in ("cat", "dog", "owner")}
    questions = [
        {"question": "cat and dog", "db_id": "d", "gold_tables": ["cat", "dog"]},
        {"question": "owner", "db_id": "d", "gold_tables": ["owner"]},
    ]
    (tmp_path / "dev.json").write_text(json.dumps(questions))
    (tmp_path / "dev_tables.json").write_text(json.dumps(tables))
    return tmp_path


def run(folder, *options):
    outcome = CliRunner().invoke(command, ["--data", str(folder), *options, "--json", str(folder / "out.json")])
    assert outcome.exit_code == 0, outcome.output
    return json.loads((folder / "out.json").read_text()), outcome


def test_several_sizes_follow_one_option(folder):
    report, _ = run(folder, "--method", "lexical", "-k", "2", "3")
    assert list(report["all"]) == ["2", "3"]
    assert report["all"]["2"]["CR"] == 100.0
    assert report["questions"] == 1
    assert run(folder, "--method", "lexical", "--every-question")[0]["questions"] == 2


def test_how_many_tables_is_asked_of_all_questions(folder):
    report, _ = run(folder, "-k", "2")
    assert report["method"] == "auto"
    assert report["questions"] == 1
    assert 0 <= report["auto"]["exact"] <= 100


def test_vectors_are_kept_for_a_second_run(folder, tmp_path, monkeypatch):
    cache = ["--cache", str(tmp_path / "cache"), "--method", "dense", "-k", "2"]
    first, _ = run(folder, *cache)

    def encodes(self, texts):
        raise AssertionError(f"encoded again: {texts[:3]}")

    monkeypatch.setattr("tagframe.embed.MiniLM.encode", encodes)
    assert run(folder, *cache)[0]["all"] == first["all"]


def test_the_figures_name_their_settings_and_come_from_records(folder, tmp_path, monkeypatch):
    records = ["--records", str(tmp_path / "records.jsonl")]
    options = ["--method", "jar:variant=D", "-k", "2", "3", "--every-question"]
    first, _ = run(folder, *options, "--limit", "1", *records)
    named = {"variant": "D", "limit": 1, "seed": 0}
    assert {name: first[name] for name in named} == named
    assert first["weights"]["coarse"] == 3
    assert first["embedder"]
    assert "commit" in first
    whole, _ = run(folder, *options, *records)
    assert whole["questions"] == 2
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert [(line["id"], line["gold_tables"]) for line in lines] == [(0, ["d.cat", "d.dog"]), (1, ["d.owner"])]
    assert lines[0]["scores"]["CR@2"] == 1.0
    assert len(lines[0]["tables"]["3"]) == 3
    assert lines[0]["settings"]["method"] == "jar:variant=D"

    def asks(*arguments, **named):
        raise AssertionError("asked again")

    monkeypatch.setattr("tag_bench.retrieval.run", asks)
    again, outcome = run(folder, *options, *records)
    assert again == {**whole, "limit": None}
    assert "2 of 2 questions are in" in outcome.stderr
    refused = CliRunner().invoke(command, ["--data", str(folder), "--method", "jar", *records])
    assert "records of other settings" in refused.output
    assert "method 'jar:variant=D', here 'jar'" in refused.output


def test_hallucinated_schemas_are_what_crush_covers(folder):
    schemas = [{"hallucinated_schema": ["cat(id)", "dog(id, name)"]}, {"hallucinated_schema": ["owner(name)"]}]
    (folder / "schemas.json").write_text(json.dumps(schemas))
    report, _ = run(folder, "--method", "crush", "--decompositions", str(folder / "schemas.json"), "-k", "2")
    assert report["all"]["2"]["CR"] == 100.0


def test_settings_of_murre_are_options(folder):
    report, _ = run(folder, "--method", "murre:beam=2,hops=1", "-k", "2")
    assert report["all"]["2"]["CR"] == 100.0
    outcome = CliRunner().invoke(command, ["--data", str(folder), "--method", "dense:hops=1"])
    assert "method 'dense' has no parameter 'hops'" in outcome.output


def test_the_form_of_a_method_is_named(folder):
    report, _ = run(folder, "--method", "jar:as_printed,variant=D", "-k", "2")
    assert {name: report[name] for name in ("as_printed", "variant", "omega", "candidates")} == {
        "as_printed": True,
        "variant": "D",
        "omega": "text",
        "candidates": 20,
    }
    assert report["weights"]["name"] == "bird"
    report, _ = run(folder, "--method", "iterative-jar:omega=code,weights=spider,covered_at=0.9")
    assert (report["as_printed"], report["variant"], report["omega"]) == (False, "G", "code")
    assert (report["weights"]["name"], report["covered_at"]) == ("spider", 0.9)
    assert "variant" not in run(folder, "--method", "dense")[0]


def test_a_benchmark_of_the_papers_has_its_weights(folder):
    spider = folder / "spider"
    spider.mkdir()
    for name in ("dev.json", "dev_tables.json"):
        (spider / name).write_text((folder / name).read_text())
    report, _ = run(spider, "--method", "jar:as_printed", "-k", "2")
    assert report["weights"] == {
        "name": "spider",
        "fine": 2,
        "coverage": 8,
        "join": 1,
        "coarse": 10,
        "link_share": 0,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "auto:as_printed"], "'auto' has no parameter 'as_printed'"),
        (["--method", "dense", "--weights", "bird"], "dense takes no --weights"),
        (["--method", "auto", "--weights", "bird"], "there is no file 'bird'"),
        (["--method", "jar:weights=beaver"], "weights must be 'spider'"),
        (["--method", "jar:covered_at=0.5"], "'jar' has no parameter 'covered_at'"),
    ],
)
def test_a_form_that_a_method_lacks_is_refused(folder, options, message):
    outcome = CliRunner().invoke(command, ["--data", str(folder), *options])
    assert outcome.exit_code
    assert message in outcome.output


@pytest.mark.parametrize("option", [["--method", "no"], ["-k", "0"], ["--decompositions", "missing.json"]])
def test_bad_options_end_with_a_message(tmp_path, option):
    (tmp_path / "dev.json").write_text("[]")
    (tmp_path / "dev_tables.json").write_text("{}")
    outcome = CliRunner().invoke(command, ["--data", str(tmp_path), *option])
    assert outcome.exit_code != 0
    assert "Traceback" not in outcome.output


def test_questions_are_drawn_at_random_and_the_same_every_time(folder):
    questions = read_dataset(folder).questions
    assert drawn(questions, 5) == questions
    assert len(drawn(questions, 1)) == 1
    assert drawn(questions, 1) == drawn(questions, 1)
    assert run(folder, "--every-question", "--questions", "1")[0]["questions"] == 1


@pytest.mark.slow
def test_other_questions_are_learned_with_their_sql(folder):
    questions = json.loads((folder / "dev.json").read_text())
    entries = [{**one, "sql": f"SELECT {n}"} for n, one in enumerate(questions * 3)]
    (folder / "dev.json").write_text(json.dumps(entries))
    result, _ = run(folder, "-k", "2", "--learn", "4")
    assert (result["learn"], result["questions"]) == (4, 3)
    assert set(result["all"]["2"]) == {"P", "R", "F1", "CR", "exact", "connected"}
    assert result["auto"]["R"] > 0
    outcome = CliRunner().invoke(command, ["--data", str(folder), "--method", "dense", "--learn", "4"])
    assert "--learn needs --method auto" in outcome.output
    records = ["--records", str(folder / "records.jsonl")]
    kept, _ = run(folder, "-k", "2", "--learn", "4", *records)
    assert {**kept, "ms": 0} == {**result, "ms": 0}
    assert kept == run(folder, "-k", "2", "--learn", "4", *records)[0]
    draws = json.loads((folder / "records.jsonl").read_text().splitlines()[0])["draws"]
    assert len(draws) == 5
    shuffled, _ = run(folder, "-k", "2", "--learn", "4", "--shuffled")
    assert shuffled["shuffled"]
    assert "--shuffled needs --learn" in CliRunner().invoke(command, ["--data", str(folder), "--shuffled"]).output


def test_a_record_says_how_the_method_worked(folder, tmp_path):
    def recorded(name, *options):
        file = tmp_path / f"{name[:3]}.jsonl"
        report, _ = run(folder, "--method", name, "-k", "2", *options, "--records", str(file))
        return report, json.loads(file.read_text().splitlines()[0])

    _, record = recorded("jar:as_printed,weights=2/8/1/10")
    assert record["notes"]["2"].startswith("as printed: variant F")
    assert record["facts"]["2"]["status"] == "optimal"
    _, record = recorded("murre:hops=2")
    assert record["facts"]["2"]["hops"] in (1, 2)
    assert len(record["gold_ranks"]) == 2
    assert all(record["seconds"][phase] > 0 for phase in ("prepare", "choose@2"))


def test_a_program_that_ran_out_of_time_has_no_answer(folder, tmp_path):
    pytest.importorskip("mip")
    file = tmp_path / "records.jsonl"
    report, _ = run(folder, "--method", "mip:seconds=1e-9", "-k", "2", "--records", str(file))
    record = json.loads(file.read_text().splitlines()[0])
    assert record["facts"]["2"]["status"] == "no solution"
    assert "chosen by exact" in record["notes"]["2"]
    assert report["all"]["2"]["R"] == 0.0
