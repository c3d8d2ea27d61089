"""Build the pages of ``docs/`` into ``site/``: ``python tools/build_docs.py``, or ``make docs``.

Each page is also written as Markdown, with signatures and docstrings in place of references, and ``site/llms.txt``
lists these files.
"""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS, SITE = ROOT / "docs", ROOT / "site"
sys.path.insert(0, str(ROOT))


def reference_of(path: str) -> str:
    """A name of the reference as Markdown: a class with its methods, a module with its classes."""
    found = pydoc.locate(path)
    lines = [f"## `{path.rpartition('.')[2]}{_signature(found)}`", "", inspect.getdoc(found) or ""]
    for name in vars(found) if inspect.isclass(found) or inspect.ismodule(found) else ():
        member = getattr(found, name, None)  # what a door leads to, too
        ours = inspect.isfunction(member) or (inspect.isclass(member) and member.__module__ == path)
        if ours and not name.startswith("_"):
            lines += ["", f"### `{name}{_signature(member)}`", "", inspect.getdoc(member) or ""]
    return "\n".join(lines)


def _signature(found: object) -> str:
    if not inspect.isfunction(found):
        return ""
    text = re.sub(r"(: |-> )'([^']+)'", r"\1\2", str(inspect.signature(found)))  # annotations are texts
    return re.sub(r"<function (\S+) at 0x\w+>", r"\1", text)


def pages(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The title and the path of each page, in the order of the navigation."""
    for entry in entries:
        for title, under in entry.items():
            yield from [(title, under)] if isinstance(under, str) else pages(under)


def main() -> int:
    """Build the site; gives the exit status of zensical, which is 1 if a page has a warning."""
    status = subprocess.run([sys.executable, "-m", "zensical", "build", "-c", "-s"], cwd=ROOT, check=False).returncode
    project = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}", ""]
    for title, path in pages(project["nav"]):
        text = (DOCS / path).read_text("utf-8")
        text = re.sub(r"^::: (\S+)$", lambda block: reference_of(block[1]), text, flags=re.MULTILINE)
        (SITE / path).write_text(text, "utf-8")
        lines.append(f"- [{title}]({path})")
    (SITE / "llms.txt").write_text("\n".join([*lines, ""]), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
