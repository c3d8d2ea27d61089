"""Every notebook runs, in a kernel of its own, and shows what is committed.

Compared is the text of each cell: what it prints, and the ``text/plain`` form of its result. Numbers with a decimal
point and percentages are left out (scores depend on the machine in their last digits), and so is white space (pandas 2
and 3 pad columns differently). HTML is not compared: ``tests/test_display.py`` tests what it holds.

A notebook is run as Jupyter does, from its own folder. To write today's outputs into the notebooks::

    python tests/test_notebooks.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    """The notebook with the outputs of a fresh kernel; raises where a cell does."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    notebook.metadata.language_info = {"name": "python"}  # not the version of the Python that ran it
    return notebook


def shown(cell: NotebookNode) -> list[str]:
    """The texts that a cell shows, one for each output; what a stream was given in pieces is one."""
    texts: list[str] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            if output.name == "stderr" and "\r" in output.text:
                continue  # a bar, which draws its line again; it comes up where a busy machine takes seconds
            begins = f"{output.name}: "
            if texts and texts[-1].startswith(begins):
                texts[-1] += output.text
            else:
                texts.append(begins + output.text)
        elif output.output_type in ("display_data", "execute_result"):
            texts.append(output.data.get("text/plain", ""))
        else:
            texts.append(f"{output.ename}: {output.evalue}")
    return texts


def comparable(text: str) -> str:
    """Without figures that depend on the machine, and without padding."""
    return re.sub(r"\s+", " ", re.sub(r"[<>]?\d+\.\d+|[<>]?\d+%", "#", text)).strip()


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request, tmp_path_factory) -> tuple[NotebookNode, NotebookNode]:
    """A notebook as committed, and as it comes out today."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TAGFRAME_")]:
            patch.delenv(name)
        # A kernel as a new user has it: catalogues that other tests left of the same tables are not its own.
        for name in ("XDG_CACHE_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        return nbformat.read(request.param, as_version=4), executed(request.param)


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_outputs_are_those_committed(notebook):
    committed, today = notebook
    for before, after in zip(committed.cells, today.cells, strict=True):
        assert [comparable(text) for text in shown(after)] == [comparable(text) for text in shown(before)], (
            before.source
        )


def test_committed_outputs_are_complete_and_clean(notebook):
    """Cells ran once, in order, with no warning, and show no path of the machine that ran them."""
    committed, _ = notebook
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell.outputs:
            assert output.get("name") != "stderr", output.text
        everything = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
        assert not re.search(r"site-packages|/(home|root|Users|tmp|work)/|[A-Z]:\\\\", everything), cell.source


if __name__ == "__main__":
    for found in NOTEBOOKS:
        nbformat.write(executed(found), found)
