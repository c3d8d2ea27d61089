"""tag_bench.fit on a small benchmark of our own: it learns what makes the gold sets, and says how well."""

import json
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner

from tag_bench import fit
from tag_bench.data import read_dataset
from tag_bench.fit import learned, likelihood, worlds
from tag_bench.fit.examples import read_alone, read_examples, read_names
from tag_bench.fit.worlds import HABITS, KINDS, apart
from tagframe.corpus import ColumnProfile, TableProfile
from tagframe.retrieval.methods.posterior import NAMES, ONE_WAY
from tagframe.retrieval.methods.weights import Weights, read_weights, shipped_weights
from tagframe.retrieval.signals import SIGNALS

pytestmark = pytest.mark.slow

THINGS = ["client", "loan", "singer", "stadium", "teacher", "course", "car", "maker", "dog", "owner"]


@pytest.fixture
def folder(tmp_path):
    tables, questions = {}, []
    for position in range(0, len(THINGS), 2):
        one, other = THINGS[position], THINGS[position + 1]
        database = f"db{position}"
        for name, columns in ((one, [f"{one}_id", "name"]), (other, [f"{other}_id", f"{one}_id", "size"])):
            tables[f"{database}#sep#{name}"] = {
                "db_id": database,
                "table_name_original": name,
                "column_names_original": columns,
                "column_names": [column.replace("_", " ") for column in columns],
            }
        questions.append({"question": f"How many {one}s are there?", "db_id": database, "gold_tables": [one]})
        questions.append(
            {"question": f"Name of the {one} of each {other}", "db_id": database, "gold_tables": [one, other]}
        )
    (tmp_path / "dev.json").write_text(json.dumps(questions))
    (tmp_path / "dev_tables.json").write_text(json.dumps(tables))
    return tmp_path


def test_it_fits_reports_and_writes_weights(folder, tmp_path):
    weights, out = tmp_path / "weights.json", tmp_path / "out.json"
    arguments = ["--data", str(folder), "--weights", str(weights), "--json", str(out)]
    outcome = CliRunner().invoke(fit.command, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0
    report = json.loads(out.read_text())
    name = folder.name
    assert set(report["cross_database"][name]) == {"2", "3", "5", "10", "20"}
    assert report["cross_database"][name]["2"]["CR"] >= 60
    assert set(report["auto"][name]) == {*"exact P R F1 CR tables_over_gold confidence reliability".split()}
    assert report["left_out"] == {}  # there is one data set
    assert report["weights_file"] == str(weights)
    read_weights(weights.read_text())


def test_data_is_judged_by_the_fit_on_other_data(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for file in ("dev.json", "dev_tables.json"):
        (other / file).write_text((folder / file).read_text().replace("singer", "dancer"))
    out = tmp_path / "out.json"
    arguments = ["--data", str(folder), "--data", str(other), "--json", str(out)]
    assert CliRunner().invoke(fit.command, arguments, catch_exceptions=False).exit_code == 0
    assert set(json.loads(out.read_text())["left_out"]) == {
        f"{name}{variant}" for name in (folder.name, "other") for variant in ("", " own")
    }


def test_questions_of_tables_with_rows_are_asked_of_their_database_alone_too(folder):
    assert read_alone(folder, 100) == []  # there are no rows
    (folder / "database" / "db0").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "database" / "db0" / "db0.sqlite")) as opened:
        opened.execute("CREATE TABLE client (client_id INT, name TEXT)")
        opened.execute("INSERT INTO client VALUES (1, 'Ann')")
        opened.commit()
    found = read_alone(folder, 100)
    assert {one.variant for one in found} == {"alone"}
    for one in found:
        assert {id.split(".")[0] for id in one.ids} == {one.question.database}
        assert one.elsewhere is not None
        assert one.elsewhere["known"] < one.problem.facts["known"]


@pytest.fixture
def with_rows(folder, tmp_path):
    other = tmp_path / "other"
    (other / "database" / "db0").mkdir(parents=True)
    entries = json.loads((folder / "dev.json").read_text())
    for entry in entries:
        entry["query"] = f"SELECT size FROM {' JOIN '.join(entry['gold_tables'])}"
    (other / "dev.json").write_text(json.dumps(entries))
    tables = json.loads((folder / "dev_tables.json").read_text())
    for number in range(8):  # so that a world of it is large
        tables[f"db0#sep#more{number}"] = {**tables["db0#sep#client"], "table_name_original": f"more{number}"}
    (other / "dev_tables.json").write_text(json.dumps(tables))
    with closing(sqlite3.connect(other / "database" / "db0" / "db0.sqlite")) as connection:
        connection.execute("CREATE TABLE client (client_id INTEGER, name TEXT)")
        connection.execute("INSERT INTO client VALUES (1, 'Nobody of this name')")
        connection.commit()
    return other


def test_what_names_alone_say_is_fitted_beside_what_is_there(folder, with_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(worlds, "HABITS", HABITS[::5])
    weights, out = tmp_path / "weights.json", tmp_path / "out.json"
    there = {name: getattr(shipped_weights(), name) for name in ("table", "set", "complete", "fits")}
    weights.write_text(json.dumps(there))
    arguments = ["--data", str(folder), "--data", str(with_rows), "--weights", str(weights), "--json", str(out)]
    assert CliRunner().invoke(fit.command, ["names", *arguments], catch_exceptions=False).exit_code == 0
    now = json.loads(weights.read_text())
    assert {name: now[name] for name in there} == there
    names = read_weights(weights.read_text()).names
    assert names.sure.keys() == {*NAMES}
    assert all(names.sure[name] * way >= 0 for name, way in ONE_WAY.items())
    assert names.table["words"] != there["table"]["words"]
    assert names.table["value"] == there["table"]["value"]  # no name says anything of values
    report = json.loads(out.read_text())["left_out"]
    assert report.keys() == {folder.name, "other"}
    assert report["other"].keys() == {*KINDS, "names"}
    assert report[folder.name].keys() == {"whole", "own", "pooled"}
    assert report["other"]["whole"]["questions"] > 0


def test_how_far_what_was_learned_is_heeded_is_fitted_beside_what_is_there(with_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "fit", learned.fit_told)  # of all that is fitted, what takes seconds
    monkeypatch.setattr(learned, "COUNTS_OF_FEW", (2, 30))
    entries = json.loads((with_rows / "dev.json").read_text())
    tables = json.loads((with_rows / "dev_tables.json").read_text())
    for entry in entries[:]:  # once more, so that there are more tables than sets are made of
        renamed = {key: f"old_{entry[key]}" for key in ("db_id", "query")}
        gold = [f"old_{table}" for table in entry["gold_tables"]]
        entries.append({**entry, **renamed, "question": f"{entry['question']} of old", "gold_tables": gold})
    for id, table in [*tables.items()]:
        renamed = {key: f"old_{table[key]}" for key in ("db_id", "table_name_original")}
        tables[id.replace("db", "old_db").replace("#sep#", "#sep#old_")] = {**table, **renamed}
    (with_rows / "dev.json").write_text(json.dumps(entries))
    (with_rows / "dev_tables.json").write_text(json.dumps(tables))
    one_more = shutil.copytree(with_rows, tmp_path / "one_more")
    weights, out = tmp_path / "weights.json", tmp_path / "out.json"
    weights.write_text(json.dumps({"table": {}, "set": {}, "learned": {"usage": 1.0}}))
    arguments = ["--data", str(one_more), "--data", str(with_rows), "--questions", "20"]
    arguments += ["--weights", str(weights), "--json", str(out)]
    assert CliRunner().invoke(fit.command, ["learned", *arguments], catch_exceptions=False).exit_code == 0
    now = json.loads(weights.read_text())["learned"]
    assert now == {**shipped_weights().learned, "believed": now["believed"]}
    assert now["believed"] in learned.ODDS
    report = json.loads(out.read_text())["left_out"]
    assert report.keys() == {"one_more", "other"}
    of_counts = {f"{count}{alone}" for count in (2, 19) for alone in ("", " SQL alone")}
    assert report["other"]["sure"].keys() == of_counts
    for group in report["other"]["sure"].values():
        assert 0 <= group["reliability"] <= 1
        assert group["questions"] > 0


def test_worlds_have_names_of_warehouses_and_keep_what_is_needed(folder, with_rows):
    def questions(folder):
        return [question for world in worlds.made(read_dataset(folder)) for question in world.questions]

    assert {one.database.split()[0] for one in questions(folder)} == {"whole"}
    found = questions(with_rows)
    assert {one.database for one in found} == {
        f"{kind} {len(HABITS) * row + position}" for row, kind in enumerate(KINDS) for position in range(len(HABITS))
    }
    assert all(one.gold for one in found)
    assert max(len(one.gold) for one in found if one.database.startswith("pairs")) == 2


def test_a_name_is_the_same_everywhere_and_stays_apart():
    table = TableProfile(
        "a.customers",
        "a",
        "customers",
        tuple(ColumnProfile(name, at, "text", samples=("x",)) for at, name in enumerate(("amount", "AMOUNT"))),
        rows=3,
        description="who buys",
    )
    for habit in HABITS:
        changed = habit.of(table, 7)
        assert changed.id == table.id
        assert len({column.name for column in changed.columns}) == 2
        assert (changed.rows, changed.description, changed.columns[0].samples) == (None, "", ())
        assert habit.of(table, 7) == changed
    assert HABITS[-1].of(table, 7).name == "TB0007"


def test_a_table_is_taken_apart_with_its_key_in_every_part():
    columns = tuple(ColumnProfile(name, position, "text") for position, name in enumerate("key a b c d".split()))
    parts = apart(TableProfile("x.t", "x", "t", columns))
    assert [[column.name for column in part.columns] for part in parts] == [["key", "a", "b", "c"], ["key", "d"]]
    assert len({part.id for part in parts}) == 2


def test_the_minimum_is_found():
    target = np.array([1.0, -2.0])

    def step(w):
        return float(((w - target) ** 2).sum()), 2 * (w - target)

    assert np.allclose(likelihood.minimised(step, 2), target, atol=1e-4)
    within = likelihood.minimised(step, 2, [(0.0, np.inf), (0.0, np.inf)])
    assert np.allclose(within, [1.0, 0.0], atol=1e-4)


def test_a_conditional_logit_gives_the_log_odds_of_what_was_chosen():
    pair = np.array([[1.0], [0.0]])
    share = np.full(4, 0.25)
    fitted = likelihood.fit_choices(["x"], [pair] * 4, [[0], [0], [0], [1]], share, 1e-9)
    assert fitted["x"] == pytest.approx(np.log(3), abs=1e-3)
    # Each of two goals is compared with the third row alone, whose x is as large as theirs is in half of the parts.
    three = [np.array([[1.0], [1.0], [0.0]]), np.array([[0.0], [0.0], [1.0]])]
    apart = likelihood.fit_choices(["x"], three, [[0, 1], [0, 1]], np.array([0.75, 0.25]), 1e-9, apart=True)
    assert apart["x"] == pytest.approx(np.log(3), abs=1e-3)
    # Beside the first comparison, only with the row of the same kind: the second column alone decides there.
    kinds = np.array([0, 0, 1] * 4)
    rows = [np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])] * 4
    alike = likelihood.fit_choices(["x", "y"], rows, [[0], [0], [0], [1]], share, 1e-9, alike=kinds)
    assert alike["y"] == pytest.approx(np.log(3), abs=1e-3)
    assert alike["x"] < -5  # a row that is never right


def test_a_database_has_one_fold(folder):
    found = fit.folds(read_examples(folder, 100))
    assert len(found) == 5
    assert sorted(set(found.values())) == [0, 1, 2]


def test_the_best_tables_of_many_make_a_problem(folder):
    example = next(one for one in read_examples(folder, 100) if len(one.question.gold) == 2)
    positions, problem = example.scored(Weights({"dense": 1.0}, {}), 3)
    assert len(positions) == len(problem.r) == 3
    assert problem.link.shape == problem.similarity.shape == (3, 3)
    assert np.array_equal(problem.signals, example.problem.signals[positions])


def test_figures_are_made_of_one_half_where_there_are_two(folder):
    entries = json.loads((folder / "dev.json").read_text())
    for entry in entries:
        entry["synonyms"] = entry["question"].replace("How many", "Number of")
    (folder / "dev.json").write_text(json.dumps(entries))
    (folder / "halves.json").write_text(json.dumps({"fit": ["db0", "db2", "db4"], "report": ["db6", "db8"]}))
    found = read_examples(folder, 2, folder / "cache")
    assert [(one.variant, one.reported) for one in found] == [
        (variant, reported) for variant in ("", "synonyms") for reported in (False, False, True, True)
    ]
    again = read_examples(folder, 2, folder / "cache")
    assert [one.question for one in again] == [one.question for one in found]
    assert (
        len(list((folder / "cache").glob("*.pickle"))) == 6
    )  # questions of both ways; vectors by kind; the files that the encoder read


def test_names_alone_are_asked_over_the_tables_of_all_data_with_rows(folder, tmp_path):
    other = tmp_path / "other"
    (other / "database" / "db0").mkdir(parents=True)
    for file in ("dev.json", "dev_tables.json"):
        (other / file).write_text((folder / file).read_text())
    with closing(sqlite3.connect(other / "database" / "db0" / "db0.sqlite")) as connection:
        connection.execute("CREATE TABLE client (client_id INTEGER, name TEXT)")
        connection.execute("INSERT INTO client VALUES (1, 'Nobody of this name')")
        connection.commit()
    found = read_names([folder, other], 8)
    assert {(one.data, one.variant, len(one.ids)) for one in found} == {("other", "names", 10)}
    assert len(found) == 4
    assert not any(one.problem.signals[:, SIGNALS.index("plain_value")].any() for one in found)
    assert read_examples(folder, 1)[0].weight < found[0].weight  # of data that has no rows
    assert read_names([folder], 8) == []


def test_sets_of_few_tables_are_fitted_on_folders_of_files(tmp_path):
    for one, other in zip(THINGS[::2], THINGS[1::2], strict=True):
        files = tmp_path / "folders" / one / "files"
        files.mkdir(parents=True)
        (files / f"{one}s.csv").write_text(f"{one}_id,name\n1,Ann\n2,Bo\n")
        for year in (2023, 2024):
            (files / f"{other}s_{year}.csv").write_text(f"{other}_id,{one}_id,size\n{year},1,10\n{year + 10},2,20\n")
        (files / "weather.csv").write_text("day,rain\n2024-05-01,1\n2024-05-02,0\n")
        asked = {"question": f"Size of the {other}s of the {one} Ann", "tables": [f"{one}s", f"{other}s as mine"]}
        asked["stack"] = {f"{other}s": [f"{other}s_2023", f"{other}s_2024"]}
        (tmp_path / "folders" / one / "world.json").write_text(json.dumps({"questions": [asked]}))
    weights, out = tmp_path / "weights.json", tmp_path / "out.json"
    arguments = ["alone", "--data", str(tmp_path / "folders"), "--weights", str(weights), "--json", str(out)]
    assert CliRunner().invoke(fit.command, arguments, catch_exceptions=False).exit_code == 0
    assert json.loads(out.read_text())["auto"]["files"]["CR"] == 100
    made = json.loads(weights.read_text())
    assert made["alone"]["set"]["other_databases"] == shipped_weights().set["other_databases"]
    both = read_weights(json.dumps({"table": {}, "set": {}, **made}))
    few, many = ({"log_tables": np.log1p(count)} for count in (40, 41))
    assert both.for_question(few, chooses_k=True).set == both.alone.set != both.set
    assert both.for_question(few).set == both.for_question(many, chooses_k=True).set == both.set
