"""tag_bench speed corpus, and what its commands share."""

from itertools import islice

import click
import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench import SpreadCommand
from tag_bench.speed import lakes
from tag_bench.speed.corpus import command


def test_only_repeatable_options_take_several_values():
    @click.command(cls=SpreadCommand)
    @click.option("-k", "sizes", multiple=True, type=int)
    @click.option("--name")
    @click.argument("rest", nargs=-1)
    def show(sizes, name, rest):
        click.echo(f"{sizes} {name} {rest}")

    assert CliRunner().invoke(show, ["-k", "2", "3", "--name", "x", "y"]).output == "(2, 3) x ('y',)\n"
    assert CliRunner().invoke(show, ["--name", "x", "-k", "2", "-k", "3"]).output == "(2, 3) x ()\n"


@pytest.mark.slow
def test_a_lake_is_indexed_opened_asked_and_refreshed(tmp_path):
    folder, catalogue = tmp_path / "lake", tmp_path / "lake.catalogue"
    folder.mkdir()
    assert lakes.write(lakes.synthetic_tables(tables=12, databases=3, columns=6), folder) == (12, 72)
    asked = lakes.synthetic_questions(3)
    assert lakes.index(folder, catalogue, asked)["catalogue_mb"] >= 0
    figures = lakes.ask(folder, catalogue, asked)
    assert figures.keys() >= {"open_seconds", "first_seconds", "question_ms", "resident_mb", "families"}
    assert figures["families"] == 12
    lakes.change_one(folder)
    assert lakes.refresh(folder, catalogue, asked)["refresh_one_seconds"] >= 0
    changed = [profile for profile in tf.open_corpus(folder, catalogue=catalogue) if len(profile.columns) == 7]
    assert [profile.columns[-1].name for profile in changed] == ["changed_just_now"]


@pytest.mark.slow
def test_the_lake_of_a_benchmark(bench):
    tables = list(islice(lakes.spider2_tables(bench / "spider2"), 50))
    assert tables[0].database == "ADVENTUREWORKS"
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)


def test_a_lake_that_is_not_there(tmp_path):
    outcome = CliRunner().invoke(command, ["--lake", str(tmp_path), "--json", "-"])
    assert outcome.exit_code == 1
    assert "has no tables.jsonl.gz" in outcome.output
