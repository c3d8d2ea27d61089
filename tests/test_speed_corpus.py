"""tag_bench speed corpus, and what its commands share."""

import json

import click
from click.testing import CliRunner

from tag_bench import SpreadCommand
from tag_bench.speed.corpus import TIMED, command


def test_every_method_is_timed_on_every_lake(tmp_path):
    outcome = CliRunner().invoke(
        command, ["--tables", "8", "12", "--questions", "2", "--json", str(tmp_path / "out.json")]
    )
    assert outcome.exit_code == 0, outcome.output
    lakes = json.loads((tmp_path / "out.json").read_text())["lakes"]
    assert [lake["tables"] for lake in lakes] == [8, 12]
    assert all(set(lake["ms"]) == set(TIMED) for lake in lakes)


def test_only_repeatable_options_take_several_values():
    @click.command(cls=SpreadCommand)
    @click.option("-k", "sizes", multiple=True, type=int)
    @click.option("--name")
    @click.argument("rest", nargs=-1)
    def show(sizes, name, rest):
        click.echo(f"{sizes} {name} {rest}")

    assert CliRunner().invoke(show, ["-k", "2", "3", "--name", "x", "y"]).output == "(2, 3) x ('y',)\n"
    assert CliRunner().invoke(show, ["--name", "x", "-k", "2", "-k", "3"]).output == "(2, 3) x ()\n"
