"""Make a virtual environment and install into it, with a line every few seconds: ``python tools/install.py FOLDER …``.

Arguments after the folder are those of ``pip install``; ``--then`` begins those of a second ``pip install``. pip shows
no progress while it unpacks, nor while it downloads with no terminal. So this prints the step that pip is at, the
seconds and the megabytes so far.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from itertools import groupby
from pathlib import Path
from typing import IO

EVERY = 10
"""Seconds between two lines."""
STEPS = ("Collecting", "Downloading", "Using cached", "Building", "Installing", "Preparing")


def megabytes(folder: Path) -> float:
    """The size of the files below a folder."""
    return (
        sum(
            entry.stat().st_size
            for path, _, names in os.walk(folder)
            for name in names
            if not (entry := Path(path, name)).is_symlink() and entry.is_file()
        )
        / 1e6
    )


def run(command: list[str], folder: Path, start: float) -> None:
    """Run pip; print its step every few seconds, and all that it said if it fails."""
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    output: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=read, args=(pip.stdout, output), daemon=True).start()
    lines: list[str] = []
    step, due = "", time.monotonic() + EVERY
    while True:
        try:
            line = output.get(timeout=max(due - time.monotonic(), 0.01))
        except queue.Empty:
            print(f"  {time.monotonic() - start:4.0f} s, {megabytes(folder):5,.0f} MB  {step[:90]}", flush=True)
            due = time.monotonic() + EVERY
            continue
        if line is None:
            break
        lines.append(line)
        if line.lstrip().startswith(STEPS):
            step = line.strip()
    if pip.wait():
        sys.exit("".join(lines) + f"pip failed in {folder}")


def read(stream: IO[str] | None, output: queue.SimpleQueue[str | None]) -> None:
    """Hand over each line, and None at the end."""
    for line in stream or ():
        output.put(line)
    output.put(None)


def main() -> None:
    """Make the environment and install."""
    folder, start = Path(sys.argv[1]), time.monotonic()
    print(f"Installing into {folder}/", flush=True)
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    calls = [["--upgrade", "pip"]]
    calls += [list(found) for is_mark, found in groupby(sys.argv[2:], key="--then".__eq__) if not is_mark]
    for arguments in calls:
        # Bytecode is made of what is imported, at its first import: of all packages it takes longer than the rest.
        run([str(python), "-m", "pip", "install", "--no-compile", *arguments], folder, start)
    print(f"  {time.monotonic() - start:4.0f} s, {megabytes(folder):5,.0f} MB  done", flush=True)


if __name__ == "__main__":
    main()
