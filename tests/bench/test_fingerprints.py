"""tag_bench.fingerprints: whatever figures depend on is another run once it is changed."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tag_bench.__main__ import main
from tag_bench.fingerprints import data_md5, described, reads_md5, source_md5, weights_md5
from tagframe.retrieval.methods import JAR

METHOD = """
import importlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import helper
from lately import REVERSED
from tagframe.retrieval import Method, Selection, all_tables, by_words, register

TABLE = Path(__file__).with_name("weights.txt")


@register
@dataclass(frozen=True)
class Mine(Method):
    name = "mine"
    summary = "is of somebody else"
    scale: float = 1.0
    file: str = ""

    def relevance(self, index, question, lm):
        return by_words(index, question) * helper.FACTOR * float(TABLE.read_text())

    def prepare(self, index, question, relevance, anchored, k):
        return all_tables(index, question, relevance, anchored, k)

    def select(self, problem, k=None):
        from inner import SHIFT
        late = float(TABLE.with_name("late" + "r.txt").read_text()) * importlib.import_module("un" + "named").ONE
        order = np.argsort(-problem.r * self.scale * late, kind="stable")
        return Selection(tuple(np.roll(order, SHIFT)[: problem.wanted(k)]))
"""


@pytest.fixture
def mine(tmp_path):
    """A folder of data, and one with a plug-in of four modules and a file of weights."""
    for name in ("data", "code", "out"):
        (tmp_path / name).mkdir()
    table = {"db_id": "d", "column_names_original": ["id", "name"]}
    tables = {f"d#sep#{name}": {**table, "table_name_original": name} for name in ("cat", "dog", "owner")}
    (tmp_path / "data/dev.json").write_text(
        json.dumps([{"question": "cat and dog", "db_id": "d", "gold_tables": ["cat", "dog"]}])
    )
    (tmp_path / "data/dev_tables.json").write_text(json.dumps(tables))
    files = {"mine.py": METHOD, "helper.py": "FACTOR = 1.0\n", "inner.py": "SHIFT = 0\n", "weights.txt": "1.0"}
    files |= {"lately.py": "def load():\n    import helper\nREVERSED = False\n", "given.txt": "1"}
    files |= {"later.txt": "1.0", "unnamed.py": "ONE = 1\n"}
    for name, text in files.items():
        (tmp_path / "code" / name).write_text(text)
    return tmp_path


def called(folder: Path, method: str) -> tuple[int, str]:
    """What a process says that has loaded no plug-in yet."""
    sys.path.insert(0, str(folder / "code"))
    command = ["--plugin", "mine", "retrieval", "--data", str(folder / "data"), "--method", method, "-k", "2"]
    command += ["--embedder", "minilm-int8", "--json", "-", "--records", str(folder / "out/r.jsonl")]
    done = CliRunner().invoke(main, command)
    return done.exit_code, done.stderr


@pytest.fixture
def run():
    """Call it in a process of its own; each is forked from one that has loaded what they share."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.bench.test_fingerprints", "tag_bench.retrieval", "tagframe.merging", "sqlglot", "faiss"]
    )

    def inner(folder: Path, method: str) -> tuple[int, str]:
        with context.Pool(1) as pool:
            return pool.apply(called, (folder, method))

    return inner


@pytest.mark.slow
def test_what_was_changed_is_never_answered_from_old_records(mine, run):
    method = f"mine:file={mine / 'code/given.txt'}"
    code, said = run(mine, method)
    assert code == 0, said
    assert "1 of 1 questions are in" in run(mine, method)[1], "what is the same goes on"
    changes = {
        "code/mine.py": (METHOD.replace("scale: float = 1.0", "scale: float = 2.0"), "source_md5"),
        "code/inner.py": ("SHIFT = 1\n", "reads_md5"),
        "code/weights.txt": ("2.0", "source_md5"),
        "code/given.txt": ("2", "weights_md5"),
        "code/later.txt": ("2.0", "reads_md5"),
        "code/unnamed.py": ("ONE = 2\n", "reads_md5"),
        "data/dev_tables.json": ((mine / "data/dev_tables.json").read_text().replace("owner", "ownre"), "data_md5"),
    }
    for name, (text, fact) in changes.items():
        file = mine / name
        before, stat = file.read_text(), file.stat()
        assert len(text) == len(before)
        file.write_text(text)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        code, said = run(mine, method)
        assert code, name
        assert "records of other settings" in said
        assert fact in said, said
        file.write_text(before)
    assert run(mine, method)[0] == 0


def test_sums_are_of_contents_and_of_names(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.csv").write_text("1")
    first = data_md5(folder)
    for side, text in {"a.sqlite-wal": "", "a.sqlite-shm": "x", ".hidden": "x"}.items():
        (folder / side).write_text(text)
    assert data_md5(folder) == first
    (folder / "a.sqlite-wal").write_text("rows that are not in the file yet")
    assert data_md5(folder) != first
    (folder / "a.sqlite-wal").unlink()
    (folder / "out.json").write_text("figures")
    assert data_md5(folder, [folder / "out.json"]) == first != data_md5(folder)
    (folder / "out.json").unlink()
    (folder / "a.csv").rename(folder / "b.csv")
    assert data_md5(folder) != first


def test_a_method_is_told_by_its_parameters():
    assert described(JAR(variant="F")) != described(JAR(variant="D"))
    scores = {f"d.t{number}": float(number) for number in range(100)}
    long, other = (described(JAR(coarse=given)) for given in (scores, {**scores, "d.t99": 0.5}))
    assert long != other
    assert len(long) < 400
    one, two = (np.zeros(5000, dtype=np.float32) for _ in range(2))
    two[2500] = 1e-9
    assert described(JAR(coarse={"d.t": one})) != described(JAR(coarse={"d.t": two}))
    assert source_md5() == source_md5(JAR())
    assert weights_md5() == weights_md5(JAR())


def test_libraries_behind_a_link_are_libraries(tmp_path):
    site = Path(np.__file__).parents[1]
    (tmp_path / "site").symlink_to(site)
    assert reads_md5([str(tmp_path / "site/numpy/__init__.py")]) == {}


def test_folders_behind_links_count_and_end(tmp_path):
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for one in (folder, elsewhere):
        one.mkdir()
    (elsewhere / "rows.csv").write_text("1")
    (folder / "database").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(folder)
    first = data_md5(folder)
    (elsewhere / "rows.csv").write_text("2")
    assert data_md5(folder) != first


@pytest.mark.parametrize("name", ["pack/sub.py", "pack/table.bin", "alone.json", "beside.py", "bare/deep.py"])
def test_what_a_plug_in_is_made_of_counts(tmp_path, monkeypatch, name):
    for folder in ("pack", "bare"):
        (tmp_path / folder).mkdir()
    files = {
        "bare/deep.py": "Z = 1\n",
        "pack/__init__.py": "from . import sub\n",
        "pack/sub.py": "import beside\n",
        "pack/table.bin": "1",
    }
    files |= {
        "alone.py": "import pack\nimport bare.deep\n",
        "alone.json": "[1]",
        "beside.py": "X = 1\n",
        "other.py": "Y = 1\n",
    }
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("alone", "pack", "pack.sub", "beside", "bare", "bare.deep"):  # those of another test
        sys.modules.pop(module, None)
    importlib.import_module("alone")
    first = source_md5()
    (tmp_path / "other.py").write_text("Y = 2\n")
    assert source_md5() == first
    (tmp_path / name).write_text(files[name] + "\n")
    assert source_md5() != first


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_what_the_system_says_of_a_process_is_no_source(tmp_path, monkeypatch):
    (tmp_path / "reads_state.py").write_text("STATE = '/proc/self/stat', '/proc/self/status'\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("reads_state")
    first = source_md5()
    assert sum(range(3_000_000)) > 0  # computing time is in what the system says
    assert source_md5() == first
    del sys.modules["reads_state"]
