"""The site as it is built from ``docs/``: its HTML is read, and a browser opens every page."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pydoc
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

import pytest

from tests.test_docs import PAGES, public_names

ROOT = Path(__file__).resolve().parents[1]
BUILDER = ROOT / ".venv-docs" / "bin" / "python"
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
"""HTML's elements without an end."""
WIDTHS = (1280, 390)
"""Of a window, in pixels: a desk's and a telephone's."""
MARKUP = re.compile(
    r"""```|data-[a-z]+=|<!--|:::|:[a-z]+:`|::$|`|\*\*|\]\[|\]\(|\{ ?[.#:]|>>>|\bdoctest:"""
    r"""|^(?:Args|Attributes|Raises|Returns|Yields):\n +\S""",
    re.MULTILINE,
)
"""What is not read by a person: the marks of Markdown, and of docstrings."""

pytestmark = pytest.mark.slow


class Reader(HTMLParser):
    """Reads HTML into the standard library's tree of elements."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = TreeBuilder()
        self.tree.start("page", {})
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        self.open.append(tag)
        if tag in EMPTY:
            self.handle_endtag(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open:
            self.tree.end(last := self.open.pop())
            if last == tag:
                break

    def handle_data(self, data: str) -> None:
        self.tree.data(data)

    @classmethod
    def read(cls, page: Path) -> Element:
        reader = cls()
        reader.feed(page.read_text("utf-8"))
        while reader.open:
            reader.handle_endtag(reader.open[-1])
        reader.tree.end("page")
        return reader.tree.close()


def classes(element: Element) -> set[str]:
    return set(element.get("class", "").split())


def article(page: Element) -> Element:
    found = page.find(".//article")
    assert found is not None
    return found


def prose(element: Element) -> str:
    """The text of an element that is neither code nor a script."""
    if element.tag in {"code", "pre", "script", "style"}:
        return "…"
    return (element.text or "") + "".join(prose(one) + (one.tail or "") for one in element)


def text(element: Element) -> str:
    return "".join(element.itertext())


def blocks(element: Element) -> int:
    """How many blocks of code there are, without those of the names that a page of the reference shows."""
    if "doc-object" in classes(element):
        return 0
    return 1 if element.tag == "pre" else sum(blocks(one) for one in element)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built from a copy, so that nothing is left in the checkout."""
    if not BUILDER.is_file() and importlib.util.find_spec("zensical") is None:
        pytest.skip(f"nothing here builds the site: {BUILDER.relative_to(ROOT)} is not there, nor is zensical")
    copy = tmp_path_factory.mktemp("checkout")
    for part in ("docs", "tagframe", "tools"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "zensical.toml", copy)
    done = subprocess.run(
        [str(BUILDER) if BUILDER.is_file() else sys.executable, "tools/build_docs.py"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return copy / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Element]:
    """Each page but the one of what is not found, as a tree."""
    return {page: Reader.read(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}


def test_every_page_is_built(site, pages):
    sources = {page.relative_to(ROOT / "docs") for page in PAGES[1:]}
    assert {page.relative_to(site).with_suffix(".md") for page in pages} == sources
    listed = re.findall(r"\]\((\S+)\)", (site / "llms.txt").read_text("utf-8"))
    assert {Path(path) for path in listed} == sources
    assert all((site / path).is_file() for path in listed)


def test_no_markup_is_left(pages):
    faults = [
        (page.name, left.group(), shown[max(0, left.start() - 40) : left.end() + 40])
        for page, tree in pages.items()
        for shown in [prose(article(tree))]
        for left in MARKUP.finditer(shown)
    ]
    # A fence that was not understood may become code itself.
    faults += [
        (page.name, left.group(), shown[:80])
        for page, tree in pages.items()
        for code in article(tree).iter("code")
        for shown in [text(code)]
        for left in re.finditer(r"```|data-[a-z]+=", shown)
    ]
    assert faults == []


def test_every_block_of_code_is_one(site, pages):
    for page, tree in pages.items():
        source = (ROOT / "docs" / page.relative_to(site)).with_suffix(".md").read_text("utf-8")
        assert blocks(article(tree)) == len(re.findall(r"^ *```\w", source, re.MULTILINE)), page.name


def test_every_name_has_its_signature_and_docstring(pages):
    shown = {}
    for page, tree in pages.items():
        for one in tree.iter("div"):
            if "doc-object" in classes(one) and (heading := next((h for h in one if h.get("id")), None)) is not None:
                shown[heading.get("id")] = one
                signature = text(next((part for part in one if "doc-signature" in classes(part)), heading))
                assert not re.match(r"\s*(\w+)\s*=\s*\1\s*$", signature), (page.name, signature)
    assert not public_names() - set(shown)
    for name in public_names():
        found = pydoc.locate(name)
        if inspect.isfunction(found) or inspect.ismethod(found):
            assert "doc-function" in classes(shown[name]), name
            first = next(iter(inspect.signature(found).parameters), "")
            parts = {kind: text(part) for part in shown[name] for kind in classes(part)}
            assert f"{name.rpartition('.')[2]}(" in parts["doc-signature"], name
            if inspect.isclass(pydoc.locate(name.rpartition(".")[0])) and inspect.isfunction(found):
                assert not re.search(rf"\(\s*{first}\b", parts["doc-signature"]), name
            said, contents = ((inspect.getdoc(found) or "").partition("\n")[0], parts["doc-contents"])
            assert words(said) in words(contents), name


def words(shown: str) -> str:
    """Without marks, and without the roles of docstrings."""
    return " ".join(re.findall(r"\w+", re.sub(r":\w+:`~?", "", shown)))


def test_no_link_is_broken(pages):
    ids = {page: {one.get("id") for one in tree.iter() if one.get("id")} for page, tree in pages.items()}
    for page, tree in pages.items():
        for link in [one.get("href") or one.get("src") for one in tree.iter() if one.get("href") or one.get("src")]:
            assert link is not None
            if re.match(r"[a-z]+:|//", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), (page.name, link)
            assert not anchor or target not in ids or anchor in ids[target] | {"__comments"}, (page.name, link)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_browser_opens_every_page(browser, site, address):
    tab = browser.new_page()
    faults: list[tuple[str, str]] = []
    now = ""
    tab.on("console", lambda message: message.type == "error" and faults.append((now, message.text)))
    tab.on("pageerror", lambda error: faults.append((now, str(error))))
    # A request that the next page ends is none that fails.
    tab.on(
        "requestfailed",
        lambda asked: asked.failure == "net::ERR_ABORTED" or faults.append((now, f"{asked.url}: {asked.failure}")),
    )
    tab.on("response", lambda answer: answer.status >= 400 and faults.append((now, f"{answer.url}: {answer.status}")))
    tab.on(
        "request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or faults.append((now, asked.url))
    )
    for page in sorted(site.rglob("*.html")):
        now = page.relative_to(site).as_posix()
        tab.goto(f"{address}/{now}", wait_until="networkidle")
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            wide = tab.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
            if wide > width:
                faults.append((now, f"{wide} pixels wide"))
        if missing := tab.evaluate("[...document.images].filter(one => !one.naturalWidth).map(one => one.src)"):
            faults.append((now, f"no picture {missing}"))
    tab.close()
    assert faults == []
