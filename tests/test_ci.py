"""``.ci/run`` starts where nothing is left over, and a second run in another folder gives the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = "tests/corpus/test_catalogue.py"
"""Tests of what is kept in the user's folders."""
LEAVES_TRACES = """
import json, os, pathlib
found = {name: os.environ[name] for name in os.environ if name in ("HOME", "TMPDIR") or name.startswith("XDG_")}
found |= {"system": "/tmp", "memory": "/dev/shm"}
print(json.dumps({name: [path.name for path in pathlib.Path(folder).iterdir()] for name, folder in found.items()}))
for folder in found.values():
    (pathlib.Path(folder) / TRACE).write_text("x")
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None or shutil.which("bash") is None, reason="needs git and bash"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder on a disk. In pytest's own folders, the inner run would remove the checkout that it runs in."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def checkout(folder: Path) -> Path:
    """The tracked files, in another folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: git does not say which files are tracked")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def ci(folder: Path, *command: str) -> str:
    # Bytecode is kept, since what it runs starts processes of its own.
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        ["bash", ".ci/run", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_is_left_over_from_an_earlier_run(place):
    folder, trace = checkout(place / "one"), f"trace-{place.name}-{os.getpid()}"
    namespaces = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0
    try:
        for _ in range(2):
            said = ci(folder, sys.executable, "-c", LEAVES_TRACES.replace("TRACE", repr(trace)))
            found = json.loads(said.splitlines()[-1])
            system = [*found.pop("system"), *found.pop("memory")]
            assert {"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"} <= found.keys()
            assert not any(found.values())
            if namespaces:
                assert trace not in system
            else:
                assert "the system's temporary folders are as they were" in said
    finally:
        for folder in map(Path, ("/tmp", "/dev/shm")):
            (folder / trace).unlink(missing_ok=True)


def test_a_second_run_in_another_folder_gives_the_same(place):
    outcomes = []
    for name in ("first", "second place, ü"):
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "-m", "not slow", "-p", "no:cacheprovider", SAMPLE]
        said = ci(checkout(place / name), *command)
        outcomes.append(sorted(line for line in said.splitlines() if line.startswith(("PASSED", "SKIPPED"))))
    assert len(outcomes[0]) >= 20
    assert outcomes[0] == outcomes[1]
