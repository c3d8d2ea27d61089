"""tag_bench fit keys on databases of our own: it fits on other databases than it reports on, and writes weights."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tag_bench.databases import read_databases
from tag_bench.fit import command
from tag_bench.fit.keys import PRIOR
from tag_bench.fit.schemas import fit, read_schema
from tag_bench.perturbed import perturbations
from tagframe.keys.schema_features import FEATURES
from tagframe.keys.terms import TERMS

THINGS = ["shop", "clinic", "team", "author", "sensor", "driver"]


@pytest.fixture
def folder(tmp_path):
    """Six databases of one key each; of one half the values dangle."""
    random, schemas = np.random.default_rng(0), []
    for number, thing in enumerate(THINGS):
        (tmp_path / "database" / thing).mkdir(parents=True)
        connection = sqlite3.connect(tmp_path / "database" / thing / f"{thing}.sqlite")
        ids = 100 * number + np.arange(1, 41)
        things = pd.DataFrame({f"{thing}_id": ids, "town": [f"town {n}" for n in range(40)]})
        known = ids if number % 2 else ids + 15
        events = pd.DataFrame({"event_id": np.arange(200), f"{thing}_id": random.choice(known, 200)})
        things.to_sql(f"{thing}s", connection, index=False)
        events.to_sql("events", connection, index=False)
        connection.close()
        columns = [(0, name) for name in things] + [(1, name) for name in events]
        schemas.append(
            {
                "db_id": thing,
                "table_names_original": [f"{thing}s", "events"],
                "column_names_original": columns,
                "foreign_keys": [[3, 0]],
            }
        )
    (tmp_path / "schema_with_keys.json").write_text(json.dumps(schemas))
    (tmp_path / "dev.json").write_text("[]")
    return tmp_path


@pytest.mark.slow
def test_it_fits_reports_on_other_databases_and_writes_weights(folder, tmp_path):
    weights, out = tmp_path / "weights.json", tmp_path / "out.json"
    result = CliRunner().invoke(
        command, ["keys", "--data", str(folder), "--weights", str(weights), "--json", str(out)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    report, written = json.loads(out.read_text()), json.loads(weights.read_text())
    assert set(written["terms"]) == set(TERMS)
    assert 0.9 <= written["surest"] <= 1.0
    name = folder.name
    assert report["cross_database"][name]["recall"] >= report["by_hand"][name]["recall"]
    # Declared keys dangle here, so that what dangles speaks less against a name that fits.
    terms = written["terms"]
    assert terms["dangling"] + terms["dangling_named"] > PRIOR.terms["dangling"] + PRIOR.terms["dangling_named"]


def test_a_perturbed_database_declares_the_same_keys_between_columns_that_are_there(folder):
    (database, *_) = read_databases(folder)
    forms = dict(perturbations(database))
    assert len(forms) == 18
    for form in forms.values():
        columns = {f"{table.id}.{column.name}".lower() for table in form.tables for column in table.columns}
        assert len(form.declared) == len(database.declared)
        assert all(link <= columns for link in form.declared)
    again = dict(perturbations(database))
    assert [table.columns for table in again["half gone"].tables] == [
        table.columns for table in forms["half gone"].tables
    ]


def test_it_fits_keys_of_bare_schemas_and_names_them(tmp_path):
    data, weights, out = tmp_path / "applications", tmp_path / "weights.json", tmp_path / "out.json"
    data.mkdir()
    for culture, key in {"long": "{}_id", "short": "id"}.items():
        tables = {thing: {"columns": {key.format(thing): "bigint", "title": "text"}} for thing in THINGS}
        tables["visit"] = {"columns": {"visit_key": "bigint"} | {f"{thing}_id": "bigint" for thing in THINGS}}
        keys = [
            {"table": "visit", "columns": [f"{thing}_id"], "to": thing, "ref": [key.format(thing)]} for thing in THINGS
        ]
        (data / f"{culture}.json").write_text(json.dumps({"tables": tables, "fks": keys}))
    arguments = ["schemas", "--data", str(data), "--weights", str(weights), "--json", str(out)]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report, written = json.loads(out.read_text()), json.loads(weights.read_text())
    assert {culture: figures["F1"] for culture, figures in report["left_out"].items()} == {"long": 100, "short": 100}
    assert set(written["terms"]) == {"intercept", *FEATURES}
    assert written["about"] == {"schemas": "made by tag_bench fit schemas from 2 schemas of applications: long, short"}


def test_a_likely_column_without_a_declared_key_teaches_less_unless_somebody_looked(tmp_path):
    tables = {thing: {"columns": {"id": "bigint", "title": "text"}} for thing in THINGS}
    tables["visit"] = {"columns": {"visit_key": "bigint"} | {f"{thing}_id": "bigint" for thing in THINGS}}
    keys = [{"table": "visit", "columns": [f"{thing}_id"], "to": thing, "ref": ["id"]} for thing in THINGS]
    chances = {}
    for looked in (False, True):
        (data := tmp_path / str(looked)).mkdir()
        if looked:
            (data / "README.md").write_text("keys by hand")
        (data / "whole.json").write_text(json.dumps({"tables": tables, "fks": keys}))
        (data / "partial.json").write_text(json.dumps({"tables": tables, "fks": keys[:-1]}))
        whole, partial = (read_schema(data / f"{name}.json") for name in ("whole", "partial"))
        left = ("visit", f"{THINGS[-1]}_id")
        chances[looked] = partial.chances(fit([whole, partial]))[partial.lefts.index(left)]
    assert chances[False] > chances[True]
