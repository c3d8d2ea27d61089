"""Every example of the README and of ``docs/`` runs and prints what stands there.

The blocks of a page run in order, with names in common, in a folder of their own that has ``examples/``. A ``text``
block right after one is what it prints: a last expression is shown, as a notebook does, and warnings are a line each.
A model's name stands for the recorded answers in ``examples/*.jsonl``. A block below ``<!-- needs: … -->`` is not run;
the marks are counted below. To write today's outputs into the pages::

    python tests/test_docs.py [PAGE …]
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import os
import pydoc
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench import bench
from tagframe.accessor import TagAccessor
from tagframe.cli import main
from tagframe.lm import import_answers

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- needs: (?P<needs>.*) -->\n)?"
    r"```(?P<language>python|sh)\n(?P<code>(?:.*\n)*?)```\n"
    r"(?:\n```text\n(?P<output>(?:.*\n)*?)```\n)?",
    re.MULTILINE,
)
MODEL = '"openai/gpt-4o-mini"'
NEEDED = {"a browser", "a model", "a network", "a server"}
MOST_MARKED = 20
"""Examples that are not run are to stay few: whoever marks one more raises this, or makes another run."""


def examples(page: Path) -> list[re.Match[str]]:
    return [block for block in BLOCK.finditer(page.read_text("utf-8")) if block["needs"] is None]


def printed(language: str, code: str, names: dict[str, Any]) -> str:
    """What an example prints."""
    if language == "sh":
        lines = [line.split("  #")[0].removeprefix("tagframe ") for line in code.splitlines()]
        done = [
            CliRunner().invoke(main, shlex.split(line), prog_name="tagframe", catch_exceptions=False) for line in lines
        ]
        return "".join(one.output for one in done)
    parsed = ast.parse(code)
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_: print(f"{category.__name__}: {message}")
        exec(compile(parsed, "<page>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), names)
            if value is not None:
                print(repr(value))
    return out.getvalue()


def run(page: Path, folder: Path) -> list[tuple[re.Match[str], str]]:
    """Each example of a page, and what it prints today."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    store = folder / "recorded.sqlite"
    for recorded in sorted((ROOT / "examples").glob("*.jsonl")):
        import_answers(store, recorded)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with contextlib.chdir(folder), pd.option_context("display.width", 100), pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder / "told"))  # what another page told of the same tables is not known
        patch.setenv("OPENAI_API_KEY", "none")  # a quote asks for a key and sends nothing
        for block in examples(page):
            code = block["code"].replace(MODEL, f'"replay:{store}"')
            shown.append((block, printed(block["language"], code, names).replace(str(folder), "")))
    return shown


def comparable(text: str) -> str:
    """Without figures that depend on the machine, and without padding."""
    return re.sub(r"\s+", " ", re.sub(r"[<>]?\d+\.\d\d+|[<>]?\d+%|\babout \d+", "#", text)).strip()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, own_names: None) -> Any:
    """What a page configures ends with it, and what it registers."""
    for name in [name for name in os.environ if name.startswith("TAGFRAME_")]:
        monkeypatch.delenv(name)
    yield
    tf.config.forget()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.stem)
def test_examples_print_what_stands_there(page, tmp_path, settings):
    for block, today in run(page, tmp_path):
        assert comparable(today) == comparable(block["output"] or ""), block["code"]


def test_start_needs_no_key():
    assert [block["code"] for block in examples(ROOT / "docs" / "start.md") if MODEL in block["code"]] == []


def test_examples_that_do_not_run_are_counted():
    texts = [page.read_text("utf-8") for page in PAGES]
    marks = [block["needs"] for text in texts for block in BLOCK.finditer(text) if block["needs"]]
    assert set(marks) <= NEEDED
    assert 0 < len(marks) <= MOST_MARKED
    assert len(marks) == sum(text.count("<!-- needs:") for text in texts)  # each stands right above an example


def test_every_fence_of_code_is_an_example_or_marked():
    for page in PAGES:
        text = page.read_text("utf-8")
        assert len(re.findall(r"^```(?:python|sh)\b", text, re.M)) == len(BLOCK.findall(text)), page
        others = set(re.findall(r"^```(.+)", text, re.M)) - {"python", "sh", "text"}
        assert others <= {"sql", "toml", "json", "bibtex"}, page  # with attributes, the site has no fence


def test_names_in_the_pages_exist():
    for page in PAGES:
        text = page.read_text("utf-8")
        for name in set(re.findall(r"\btf\.(\w+)\(", text)):
            assert hasattr(tf, name), (page, name)
        for name in set(re.findall(r"\.tag\.(\w+)", text)) - set(re.findall(r"^def (sem_\w+)", text, re.M)):
            assert hasattr(type(pd.DataFrame().tag), name), (page, name)


def test_internal_links_resolve():
    anchors = {page: {_anchor(h) for h in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)} for page in PAGES}
    for page in PAGES:
        for link in re.findall(
            r"\]\(([^)\s]+)\)", re.sub(r"^```(?:.*\n)*?```$", "", page.read_text("utf-8"), flags=re.M)
        ):
            if re.match(r"https?:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), (page.name, link)
            assert target.is_relative_to(ROOT / "docs") or page.parent == ROOT, (page.name, link)
            assert not anchor or anchor in anchors[target], (page.name, link)


def public_names() -> set[str]:
    """Every public name, as the reference names it."""
    classes = {"tagframe.Corpus": tf.Corpus, "tagframe.Answer": tf.Answer, "tagframe.accessor.TagAccessor": TagAccessor}
    for path in ("retrieval.RetrievedTables", "merging.MergeReport", "joins.JoinPlan", "keys.KeyPair"):
        room, name = path.split(".")
        classes[f"tagframe.{path}"] = getattr(importlib.import_module(f"tagframe.{room}"), name)
    methods = {f"{path}.{name}" for path, owner in classes.items() for name in dir(owner) if not name.startswith("_")}
    errors = {f"tagframe.errors.{name}" for name, one in vars(tf.errors).items() if inspect.isclass(one)}
    ours = {name for name in errors if getattr(tf.errors, name.rpartition(".")[2]).__module__ == "tagframe.errors"}
    awaited = {name for name in tf.__all__ if name.startswith("asem_")}
    selectors = {f"tagframe.methods.{method.__name__}" for method in tf.methods.METHODS.values()}
    return (
        methods | ours | selectors | {f"tagframe.{name}" for name in {*tf.__all__} - awaited - {"accessor", "methods"}}
    )


def test_every_public_name_has_a_page():
    reference = "\n".join(page.read_text("utf-8") for page in PAGES if page.parent.name == "reference")
    named = set(re.findall(r"^::: (\S+)$", reference, re.M))
    missing = {name for name in public_names() if not any(name == one or name.startswith(f"{one}.") for one in named)}
    assert not missing
    assert not {name for name in tf.__all__ if name.startswith("asem_") and f"`tf.{name}`" not in reference}


def shown() -> dict[str, Any]:
    """What the reference shows in full, by its path."""
    reference = "\n".join(page.read_text("utf-8") for page in PAGES if page.parent.name == "reference")
    return {path: pydoc.locate(path) for path in re.findall(r"^::: (\S+)$", reference, re.M)}


def shown_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions, methods and properties that the reference shows, with the name of each."""
    for path, one in shown().items():
        if inspect.isroutine(one):
            yield path, one
        for name in dir(one) if inspect.isclass(one) else ():
            member = getattr(one, name, None)
            member = getattr(member, "fget", None) or member
            is_ours = str(getattr(member, "__module__", "")).startswith("tagframe")
            if inspect.isroutine(member) and is_ours and name[0] != "_":
                yield f"{path}.{name}", member


@cache
def _imported(module: str) -> dict[str, str]:
    """Where the names of a module come from, those for type checkers too."""
    nodes = ast.walk(ast.parse(inspect.getsource(importlib.import_module(module))))
    return {one.name: node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}


def _classes(annotation: object, module: str) -> Iterator[type]:
    """The classes of tagframe that an annotation of this module names."""
    for word in re.findall(r"\b[A-Z]\w+", str(annotation)):
        source = _imported(module).get(word, module)
        found = getattr(importlib.import_module(source), word, None) if source.startswith("tagframe") else None
        if inspect.isclass(found) and found.__module__.startswith("tagframe."):
            yield found


def test_every_class_that_a_name_gives_is_shown():
    known, missing = shown(), dict[str, str]()
    for path, one in shown_functions():
        for found in _classes(inspect.signature(one).return_annotation, one.__module__):
            missing[f"{found.__module__}.{found.__name__}"] = path
    for path, one in known.items():
        for name, annotation in vars(one).get("__annotations__", {}).items() if inspect.isclass(one) else ():
            for found in _classes(annotation, one.__module__) if name[0] != "_" else ():
                missing[f"{found.__module__}.{found.__name__}"] = f"{path}.{name}"
    text = "\n".join(page.read_text("utf-8") for page in PAGES if page.parent.name == "reference")
    there = {f"{one.__module__}.{one.__name__}" for one in known.values() if inspect.isclass(one)}
    there |= {name for name in missing if f"`{name.rpartition('.')[2]}`" in text or name.startswith("tagframe.errors.")}
    assert {name: path for name, path in missing.items() if name not in there} == {}


def test_every_keyword_is_explained():
    missing = []
    for path, one in shown_functions():
        owner = pydoc.locate(path.rpartition(".")[0])
        said = f"{inspect.getdoc(one)} {inspect.getdoc(owner)}"
        said += "".join(str(inspect.getdoc(getattr(owner, name, None))) for name in re.findall(r":\w+:`~?(\w+)`", said))
        for name, given in inspect.signature(one).parameters.items():
            if given.default is not given.empty and not re.search(rf"\b{name}\b", said):
                missing.append(f"{path}({name}=)")
    assert missing == []


def test_every_command_and_option_is_in_the_reference():
    text = (ROOT / "docs" / "reference" / "shell.md").read_text("utf-8")
    missing = []
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        missing += [] if re.search(rf"`tagframe {name}[ `]", text) else [name]
        for one in (command, *getattr(command, "commands", {}).values()):
            options = [max(option.opts, key=len) for option in one.params if isinstance(option, click.Option)]
            missing += [f"{name} {option}" for option in options if f"`{option}" not in text]
    assert missing == []


def test_every_page_is_in_the_navigation():
    project = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    listed = set(re.findall(r"[\w/-]+\.md", str(project["nav"])))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w]+", "-", heading.lower().replace("`", "")).strip("-")


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= 700
    assert "pip install" in "\n".join(text.splitlines()[:40])


def test_the_figures_of_the_readme_are_those_of_the_results():
    figures = bench.page(bench.README.read_text("utf-8"), bench.read_results())
    section = (ROOT / "README.md").read_text("utf-8").partition("## Benchmarks\n")[2]
    assert [line for line in figures.splitlines() if line not in section.splitlines()] == []


def test_the_page_of_figures_is_made_of_the_results():
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    if "`make bench" not in page:
        pytest.skip("the page is from before `make bench`")
    assert page == bench.page(bench.PAGE.read_text("utf-8"), bench.read_results())


def test_the_changelog_is_one_page():
    assert len((ROOT / "CHANGELOG.md").read_text("utf-8").split()) <= 1_700


def write(page: Path) -> None:
    """Write what the examples of a page print today."""
    with tempfile.TemporaryDirectory() as scratch:
        text, end, parts = page.read_text("utf-8"), 0, []
        for block, today in run(page, Path(scratch)):
            if block["output"] is not None:
                lines = "\n".join(line.rstrip() for line in today.splitlines())
                parts += [text[end : block.start("output")], lines, "\n"]
                end = block.end("output")
            elif today:
                print(f"{page.name}: this prints, and nothing says what:\n{block['code']}{today}", file=sys.stderr)
    page.write_text("".join([*parts, text[end:]]), "utf-8")
    tf.config.forget()


if __name__ == "__main__":
    for given in [Path(name).resolve() for name in sys.argv[1:]] or [page for page in PAGES if examples(page)]:
        try:
            write(given)
        except BaseException as error:
            print(f"{given.name}: {type(error).__name__}: {error}", file=sys.stderr)
            if os.environ.get("RAISE"):
                raise
            tf.config.forget()
