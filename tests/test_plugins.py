"""What an installed package brings: a real distribution, found by its entry points."""

from __future__ import annotations

import asyncio
import json
import pydoc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.__main__ import main as tag_bench
from tagframe.accessor import TagAccessor
from tagframe.cli import main
from tagframe.embed import forget, get_embedder
from tagframe.errors import InvalidArgument, NameUnknown, PluginFailed

PACKAGE = '''
import numpy as np
import pandas as pd

from tagframe.lm import Batch, Prompt
from tagframe.operators import AddedColumn, OnError, Outcome, Step, declare, finish, gather
from tagframe.retrieval import Method, Selection, all_tables, by_words


def no_method(problem, k):
    return Selection(())


class First(Method):
    name, summary = "first", "takes the first tables by their names"

    def relevance(self, index, question, lm):
        return by_words(index, question)

    def prepare(self, index, question, relevance, anchored, k):
        return all_tables(index, question, relevance, anchored, k)

    def select(self, problem, k=None):
        return Selection(tuple(range(problem.wanted(k))))


@declare(guess=lambda prompt: "LOUD")
def sem_shout(frame: pd.DataFrame, instruction: str, *, on_error: OnError = "raise") -> Step[pd.DataFrame]:
    """Each row, louder.

    Args:
        frame: any.
        instruction: what of it.
        on_error: what a row without an answer does.
    """
    said = yield from gather(Batch([Prompt.of(text) for text in frame.iloc[:, 0]]))
    outcomes = [Outcome("answered" if one.ok else "failed", one.error) for one in said]
    shouts = AddedColumn("shout", [one.value for one in said], "string")
    return finish("sem_shout", frame, outcomes, range(len(frame)), [shouts], on_error=on_error, suffix="shout")


class Lengths:
    name, dimension = "lengths-1", 2

    def encode(self, texts, kind="passage"):
        angles = np.array([len(text) % 7 / 7 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
'''
POINTS = """
[tagframe.methods]
first = stranger:First
second = stranger:First
broken = stranger:MISSING
no_method = stranger:no_method
jar = stranger:First

[tagframe.operators]
sem_shout = stranger:sem_shout
sem_broken = stranger_that_fails:sem_broken
merge = stranger_that_fails:merge
sem_cluster_by = stranger_that_fails:sem_cluster_by

[tagframe.embedders]
lengths = stranger:Lengths
no_embedder = stranger:sem_shout
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_names: None) -> Iterator[Callable[..., None]]:
    """Make a package with entry points: ``install("stranger", source, points)``."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, source: str, points: str) -> None:
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        (folder / "entry_points.txt").write_text(points, encoding="utf-8")

    yield make
    for name in [one for one in sys.modules if one.startswith("stranger")]:
        del sys.modules[name]
    forget()


@pytest.fixture
def stranger(install: Callable[..., None], tmp_path: Path) -> Path:
    """A package with a method, an operator and an embedder, and with others that are broken."""
    (tmp_path / "stranger_that_fails.py").write_text("raise RuntimeError('no licence')", encoding="utf-8")
    install("stranger", PACKAGE, POINTS)
    return tmp_path


def test_a_method_of_a_package_has_its_name_in_python_and_in_the_shell(stranger: Path, festival: tf.Corpus):
    found = festival.retrieve_tables("Which films?", k=2, method="first")
    assert ([hit.id for hit in found], found.method) == (sorted(festival.ids)[:2], "first")
    data = str(Path(__file__).resolve().parents[1] / "examples" / "data")
    done = CliRunner().invoke(main, ["retrieve", data, "Which films?", "-k", "1", "--method", "first", "--json"])
    assert [hit["id"] for hit in json.loads(done.stdout)["tables"]] == sorted(festival.ids)[:1]


def test_an_operator_of_a_package_has_every_form(stranger: Path, live):
    live.answers = lambda request: request.prompt.upper()
    frame = pd.DataFrame({"text": ["sea", "sky"]})
    assert {"sem_shout", "sem_broken"} <= {*dir(frame.tag)}
    assert "stranger" not in sys.modules  # a list of names imports no package
    assert frame.tag.sem_shout("{text}")["shout"].tolist() == ["SEA", "SKY"]
    assert tf.sem_shout(frame, "{text}")["shout"].tolist() == ["SEA", "SKY"]
    assert asyncio.run(tf.asem_shout(frame, "{text}"))["shout"].tolist() == ["SEA", "SKY"]
    assert frame.tag.sem_shout("{text}", quote=True).calls == 0
    assert "stranger_that_fails" not in sys.modules


def test_an_embedder_of_a_package_is_made_when_it_is_named(stranger: Path, festival: tf.Corpus):
    with tf.context(embedder="lengths"):
        assert get_embedder() is get_embedder()
        assert get_embedder().name == "lengths-1"
        assert len(festival.retrieve_tables("Which films?", k=3, method="dense")) == 3


@pytest.mark.slow
def test_what_is_broken_is_named_and_breaks_nothing_else(stranger: Path, festival: tf.Corpus):
    frame = pd.DataFrame({"text": ["sea"]})
    with pytest.raises(PluginFailed, match=r"method 'broken' of the package 'stranger' \(stranger:MISSING\) cannot be"):
        festival.retrieve_tables("Which films?", method="broken")
    with pytest.raises(PluginFailed, match=r"a method is a subclass of tagframe\.retrieval\.Method"):
        festival.retrieve_tables("Which films?", method="no_method")
    with pytest.raises(PluginFailed, match="the method is called 'first'; its entry point must be, too"):
        festival.retrieve_tables("Which films?", method="second")
    for owner in (tf, frame.tag):
        with pytest.raises(PluginFailed, match=r"operator 'sem_broken' of the package 'stranger'.*no licence"):
            _ = owner.sem_broken
    with pytest.raises(PluginFailed, match="embedder 'no_embedder' of the package 'stranger'"):
        festival.retrieve_tables("Which films?", embedder="no_embedder")
    with pytest.raises(InvalidArgument, match="did you mean 'first'"):
        festival.retrieve_tables("Which films?", method="frist")
    with pytest.raises(NameUnknown, match="did you mean 'sem_shout'"):
        _ = frame.tag.sem_shuot
    done = CliRunner().invoke(main, ["retrieve", str(stranger), "Which films?", "--method", "broken"])
    assert done.exit_code == 1
    text = pydoc.render_doc(TagAccessor, renderer=pydoc.plaintext)
    assert "sem_filter" in text
    assert "sem_shout" in text


def test_a_list_that_cannot_be_read_hides_no_other(stranger: Path, install: Callable[..., None], festival: tf.Corpus):
    install("stranger_quits", "raise SystemExit(3)", "[tagframe.methods]\nquits = stranger_quits:QUITS\n")
    install("stranger_torn", "", "[tagframe.methods]\ntorn\n")
    (stranger / "stranger_torn-1.0.dist-info" / "METADATA").unlink()
    assert "sem_shout" in dir(pd.DataFrame().tag)
    assert festival.retrieve_tables("Which films?", k=1, method="first").method == "first"
    with pytest.raises(InvalidArgument, match="did you mean 'first'"):
        festival.retrieve_tables("Which films?", method="frist")
    with pytest.raises(PluginFailed, match=r"'quits' of the package 'stranger_quits'.*SystemExit: 3"):
        festival.retrieve_tables("Which films?", method="quits")


def test_names_of_our_own_are_ours(stranger: Path, festival: tf.Corpus):
    assert festival.retrieve_tables("Which films?", k=2, method="jar").method == "jar"
    tag = pd.DataFrame({"a": [1]}).tag
    assert [getattr(tag, name).__module__ for name in ("merge", "sem_cluster_by")] == [
        "tagframe.merging.frames",
        "tagframe.lotus",
    ]
    assert dir(tag).count("merge") == 1
    assert "stranger" not in sys.modules


def test_two_packages_of_one_name_are_told(stranger: Path, install: Callable[..., None], festival: tf.Corpus):
    install("stranger_two", PACKAGE, "[tagframe.methods]\nfirst = stranger_two:First\n")
    with pytest.raises(PluginFailed, match="method 'first' is brought by stranger and stranger_two: uninstall"):
        festival.retrieve_tables("Which films?", method="first")


def test_two_packages_with_operators_of_one_name(stranger: Path, install: Callable[..., None]):
    install("stranger_two", PACKAGE, "[tagframe.methods]\nthird = stranger_two:First\n")
    assert tf.sem_shout.__doc__
    with pytest.raises(PluginFailed, match=r"stranger has an operator sem_shout; give that of stranger_two another"):
        tf.retrieve_tables("x", tf.open_corpus({"a": pd.DataFrame({"x": [1]})}), method="third")


@pytest.mark.slow
def test_tag_bench_measures_the_method_of_a_plugin(tmp_path: Path):
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    names = ("cat", "dog", "owner")
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in names}
    questions = [{"question": "dog and owner", "db_id": "d", "gold_tables": ["dog", "owner"]}]
    (tmp_path / "dev.json").write_text(json.dumps(questions))
    (tmp_path / "dev_tables.json").write_text(json.dumps(tables))
    (tmp_path / "mine.py").write_text(f"{PACKAGE}\nfrom tagframe.retrieval import register\nregister(First)\n")
    asked = ["retrieval", "--data", str(tmp_path), "--method", "first", "-k", "2", "--json", "out.json"]
    call = [sys.executable, "-m", "tag_bench", "--plugin", "mine", *asked]
    root = Path(tf.__file__).parents[1]
    done = subprocess.run(call, cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out.json").read_text())
    assert (report["method"], report["all"]["2"]["R"]) == ("first", 50.0)
    outcome = CliRunner().invoke(tag_bench, asked)
    assert outcome.exit_code == 2
    assert "no method 'first'" in outcome.output
    outcome = CliRunner().invoke(tag_bench, ["--plugin", "no_such_module", *asked])
    assert "no_such_module cannot be imported: ModuleNotFoundError" in outcome.output
