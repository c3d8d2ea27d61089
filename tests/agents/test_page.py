"""``tagframe look``, in a real browser where there is one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import InvalidArgument

pytest.importorskip("uvicorn", reason="the extra 'look' is not installed")
from tagframe.agents import page as look_page

MARKUP = "<img src=x onerror=\"document.title='run'\">"
CELL = "</script><script>document.title='run'</script>"
SHOP = f"""
CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT, email TEXT);
INSERT INTO customers VALUES (7, 'Porto', 'ada@example.org'), (8, 'Faro', 'bo@example.org'),
    (9, '{CELL.replace("'", "''")}', 'cy@example.org');
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER, "{MARKUP.replace('"', '""')}" TEXT);
INSERT INTO orders VALUES (1, 7, '{MARKUP.replace("'", "''")}'), (2, 8, NULL), (3, 7, 'plain');
CREATE TABLE "odd <b>table</b>" ("this and that = it" INTEGER, note TEXT);
INSERT INTO "odd <b>table</b>" VALUES (7, 'x'), (8, 'y');
"""


class Served:
    """A page that is served from a thread of this process."""

    def __init__(self, corpus: tf.Corpus) -> None:
        self.address = ""
        open_now = threading.Event()

        def say(address: str) -> None:
            self.address = address
            open_now.set()

        threading.Thread(target=look_page.look, args=(corpus, 0, say), daemon=True).start()
        assert open_now.wait(60)
        self.base, self.token = self.address.split("#")

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
        """Status, headers and what a request comes back with; the token is sent unless headers say otherwise."""
        sent = {"x-tagframe-token": self.token} | {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with urlopen(Request(f"{self.base}{path}", body, sent), timeout=60) as answer:
                text = answer.read().decode()
                return answer.status, answer.headers, json.loads(text) if path else text
        except HTTPError as error:
            return error.code, error.headers, error.read().decode()


@pytest.fixture
def shop(sqlite_file: Callable[..., Path]) -> Path:
    return sqlite_file(SHOP, name="shop.sqlite")


def test_strangers_are_refused(shop: Path):
    served = Served(tf.open_corpus(shop))
    port = served.base.rstrip("/").rpartition(":")[2]
    for path in ("tables", "keys", "table?id=shop.orders", "search?question=orders", "nothing"):
        for token in ("", "wrong", served.token[:-1], "\xff"):
            status, headers, text = served.ask(path, x_tagframe_token=token)
            assert (status, "token" in text) == (403, True)
            assert headers["content-security-policy"].startswith("default-src 'none'")
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", f"127.0.0.1.example.org:{port}", ""):
        assert served.ask("keys", host=host)[0] in (400, 403)
        assert served.ask("", host=host)[0] in (400, 403)
    assert served.ask("keys", host=f"localhost:{port}")[0] == 200
    for origin in ("http://example.org", f"https://127.0.0.1:{port}", "http://127.0.0.1", "null", ""):
        assert served.ask("tables", origin=origin)[0] == 403
    assert served.ask("keys", origin=f"http://127.0.0.1:{port}")[0] == 200
    assert [served.ask(path, b"")[0] for path in ("tables", "keys")] == [405, 405]
    assert served.token not in served.ask("")[2]


def test_keys_are_those_of_the_corpus(shop: Path):
    before = hashlib.sha256(shop.read_bytes()).hexdigest()
    corpus = tf.open_corpus(shop)
    served = Served(corpus)

    def shown() -> list[str]:
        return [f"{one['left']} = {one['right']}" for one in served.ask("keys")[2]["keys"]]

    assert shown() == corpus.keys.frame()["key"].tolist() == ["shop.orders.customer_id = shop.customers.id"]
    corpus.keys.forbid("shop.orders.customer_id = shop.customers.id")
    assert shown() == []
    assert hashlib.sha256(shop.read_bytes()).hexdigest() == before
    assert [one.name for one in shop.parent.iterdir()] == [shop.name]


def test_hidden_columns_are_not_there_and_private_ones_are_marked(shop: Path):
    corpus = tf.open_corpus(shop)
    assert "ada@example.org" in str(Served(corpus).ask("table?id=shop.customers")[2])
    served = Served(corpus.hide("customers.email"))
    corpus.private("customers.city")
    table = served.ask("table?id=shop.customers")[2]
    assert [column["name"] for column in table["columns"]] == ["id", "city"]
    assert [column["private"] for column in table["columns"]] == ["", "private"]
    for path in ("table?id=shop.customers", "keys", "search?question=which+customer+lives+in+Porto"):
        assert not re.search(r"example\.org|email", str(served.ask(path)[2]))


def test_cells_that_are_no_text_are_sent(tmp_path: Path):
    frame = tf.open_corpus({"odd": pd.DataFrame({"cell": pd.Series(["a\ud800b", "\x00", "x" * 5000], dtype=object)})})
    samples = Served(frame).ask("table?id=frames.odd")[2]["columns"][0]["samples"]
    assert all(len(sample) <= 200 for sample in samples)


def test_a_port_that_is_taken_is_named(shop: Path):
    port = int(Served(tf.open_corpus(shop)).base.rstrip("/").rpartition(":")[2])
    with pytest.raises(InvalidArgument, match=f"port {port} is not available"):
        look_page.look(tf.open_corpus(shop), port)


@contextmanager
def opened(browser: Any, served: Served, **options: Any) -> Iterator[Any]:
    """The page in a tab that may speak to its server only; what its console says fails the test."""
    options = {"viewport": {"width": 1280, "height": 800}, **options}
    tab = browser.new_page(**options)
    tab.set_default_timeout(60_000)
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(served.address)
    tab.wait_for_selector("#counts:not(:has-text('…'))")
    yield tab
    assert [text for text in said if "status of 400" not in text] == []
    assert [url for url in asked if not url.startswith((served.base, "data:"))] == []
    tab.close()


@pytest.mark.slow
def test_a_key_is_looked_at_with_the_mouse(shop: Path, browser: Any):
    with opened(browser, Served(tf.open_corpus(shop))) as tab:
        assert tab.inner_text("#counts") == "3 tables, 1 key"
        line = tab.locator('.key[data-key*="customer_id"] .line')
        middle = line.evaluate(
            "e => { const p = e.getPointAtLength(e.getTotalLength() / 2).matrixTransform(e.getScreenCTM());"
            " return [p.x, p.y] }"
        )
        tab.mouse.click(*middle)
        tab.wait_for_selector("#detail dl")
        assert tab.inner_text("#detail h2") == "shop.orders.customer_id → shop.customers.id"
        assert "100% of the left values occur on the right" in tab.inner_text("#detail dl")


@pytest.mark.slow
def test_what_cells_and_names_hold_is_shown_as_text(shop: Path, browser: Any):
    with opened(browser, Served(tf.open_corpus(shop))) as tab:
        for table in ("shop.orders", "shop.customers", "shop.odd <b>table</b>"):
            tab.locator("nav button", has_text=table).click()
            tab.wait_for_selector(f"#detail h2:has-text('{table.split()[0]}')")
            tab.wait_for_selector("#detail .column")
        tab.locator("nav button", has_text="shop.orders").click()
        tab.wait_for_selector(f"#detail .column :text({json.dumps(MARKUP)})")
        tab.fill("#question", f"orders {MARKUP}")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("nav h3, nav .quiet + ul, nav .bad")
        assert tab.title() == "tagframe look"
        assert tab.locator("img, b, #detail script, nav script").count() == 0


@pytest.mark.slow
def test_tables_are_found_by_a_question(festival: tf.Corpus, browser: Any):
    with opened(browser, Served(festival)) as tab:
        tab.fill("#question", "Which directors from Portugal made films?")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("nav >> text=Joined on")
        text = tab.inner_text("nav")
        assert "festival.directors" in text
        assert "'Portugal' is in country" in text
        assert tab.locator(".box.found").count() >= 2
        tab.click("text=All tables")
        assert tab.locator("nav .tables li").count() == len(festival)
        tab.fill("#question", "?")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("nav .bad")


@pytest.mark.slow
def test_everything_is_done_with_the_keyboard(festival: tf.Corpus, browser: Any):
    with opened(browser, Served(festival)) as tab:
        tab.focus("#fit")
        tab.keyboard.press("Tab")  # the picture that scrolls, or a box in it
        if not tab.evaluate("document.activeElement.classList.contains('box')"):
            tab.keyboard.press("Tab")
        first = tab.evaluate("document.activeElement.dataset.id")
        tab.keyboard.press("ArrowRight")
        second = tab.evaluate("document.activeElement.dataset.id")
        assert first != second
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#detail .column")
        assert tab.inner_text("#detail h2") == second
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#detail dl")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(360, 740), (1280, 800)], ids=["phone", "desktop"])
def test_it_fits_and_can_be_read(shop: Path, browser: Any, scheme: str, size: tuple[int, int]):
    view = {"viewport": dict(zip(("width", "height"), size, strict=True)), "color_scheme": scheme}
    with opened(browser, Served(tf.open_corpus(shop)), **view) as tab:
        tab.locator("nav button", has_text="shop.orders").click()
        tab.wait_for_selector("#detail .column")
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for selector, least in (("#detail h2", 7), ("#detail .quiet", 4.5), (".list .name", 4.5)):
            assert contrast(tab, selector) >= least, selector


def contrast(tab: Any, selector: str) -> float:
    """The contrast of text to its ground (WCAG 2.2, 1.4.3)."""
    colours = tab.evaluate(
        "s => [getComputedStyle(document.querySelector(s)).color,"
        " getComputedStyle(document.querySelector('#detail')).backgroundColor]",
        selector,
    )

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
def test_hundreds_of_tables_are_drawn(browser: Any):
    frames = {
        f"d{i}.t{j}": pd.DataFrame(
            {f"t{j}_id": [9 * j + 1, 9 * j + 2], f"t{j // 3}_ref": [9 * (j // 3) + 1, 9 * (j // 3) + 2]}
        )
        for i in range(15)
        for j in range(20)
    }
    with opened(browser, Served(tf.open_corpus(frames))) as tab:
        assert (tab.locator(".box").count(), tab.locator("nav li").count()) == (300, 300)
        assert tab.locator(".key").count() >= 150
        at = tab.evaluate("[...document.querySelectorAll('.box')].map(box => box.getAttribute('transform'))")
        assert len(set(at)) == 300  # none lies on another
        tab.locator("nav button", has_text=re.compile(r"^d11\.t7$")).click()
        tab.wait_for_selector("#detail h2:has-text('d11.t7')")
        assert tab.locator(".box.on").evaluate("box => box.dataset.id") == "d11.t7"
        box, view = tab.locator(".box.on").bounding_box(), tab.locator("#scroll").bounding_box()
        assert view["x"] <= box["x"] <= view["x"] + view["width"]


@pytest.mark.slow
def test_the_command_prints_the_address_and_ends(shop: Path):
    command = [sys.executable, "-m", "tagframe.cli", "look", str(shop), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#[\w-]{32}", address)
        with urlopen(address.partition("#")[0], timeout=60) as answer:
            assert "tagframe look" in answer.read().decode()
        running.terminate()
        running.wait(60)
