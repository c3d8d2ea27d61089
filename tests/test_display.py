"""What results look like in a notebook and in a terminal."""

from __future__ import annotations

import dataclasses
import pickle
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pandas as pd
import pytest
from accounted import merged

import tagframe as tf
from tag_bench.server import error
from tagframe.display import join_graph, join_tree, outcomes_html, retrieved_html
from tagframe.joins import JoinPlan, JoinStep, PlanTable
from tagframe.keys import Evidence, KeyPair
from tagframe.merging import join_plan
from tagframe.retrieval import RetrievedTables, TableHit, retrieve_tables

# Of the few shops of these sales a third has no partner: a key that a merge warns of.
pytestmark = pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")

FRAMES = {
    "shop.sales": pd.DataFrame({"sale_no": range(6), "shop_id": [1, 2, 1, 2, 1, 9], "cash<&>id": [5, 6, 7, 5, 6, 7]}),
    "shop.shops": pd.DataFrame({"shop_id": [1, 2, 3], "town": list("abc")}),
}
GAMES = {
    "g.game": pd.DataFrame({"game_no": range(30), "home_team_id": [1, 2, 3] * 10, "away_team_id": [2, 3, 1] * 10}),
    "g.team": pd.DataFrame({"id": [1, 2, 3], "name": list("abc")}),
}
HOSTILE = "<script>alert('&\"')</script>"
SVG = "{http://www.w3.org/2000/svg}"


def made_plan(*joins: str, score: float = 0.9, bridges: tuple[str, ...] = (), database: str = "d") -> JoinPlan:
    """A plan from joins written "base.column = table.column"; the first base is the start."""
    columns: dict[str, dict[str, None]] = {}
    steps = []
    for text in joins:
        (base, mine), (table, theirs) = (half.strip().rsplit(".", 1) for half in text.split("="))
        columns.setdefault(base, {})[mine] = None
        columns.setdefault(table, {})[theirs] = None
        key = KeyPair(f"{database}.{base}", (mine,), f"{database}.{table}", (theirs,), score, Evidence(reason="why"))
        steps.append(JoinStep(f"{database}.{table}", (theirs,), f"{database}.{base}", (mine,), "many-to-one", key))
    sources = tuple(
        PlanTable(f"{database}.{name}", database, name, tuple(names), 7, bridge=name in bridges)
        for name, names in columns.items()
    )
    return JoinPlan(steps[0].base, tuple(steps), sources, score)


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def boxes(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """x, y, width and height of each table's box, by the title in it."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        rect, title = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        if rect is not None and title is not None:
            x, y, width, height = (float(rect.get(name, "nan")) for name in ("x", "y", "width", "height"))
            found[title.text or ""] = (x, y, width, height)
    return found


class Tags(HTMLParser):
    """The tags of a page, the text between them, and whether each was closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def found() -> RetrievedTables:
    corpus = tf.open_corpus(FRAMES)
    return retrieve_tables("Which town has the shops with most sales?", corpus, k=2, method="lexical")


def test_the_graph_shows_tables_keys_cardinality_and_what_matched():
    plan = join_plan(FRAMES, on=[KeyPair("shop.sales", ("shop_id",), "shop.shops", ("shop_id",))])
    _, report = merged(FRAMES, plan, on_loss="allow")
    shown = texts(join_graph(plan, report))
    assert {"sales", "6 rows", "shops", "3 rows", "shop_id", "n:1", "match 83%"} <= set(shown)


def test_without_a_report_it_says_how_sure_the_key_is():
    assert "sure 90%" in texts(join_graph(made_plan("a.x = b.y")))


def test_a_report_of_another_plan_says_nothing_of_this_one():
    plan = join_plan(GAMES)
    other = plan.alternatives[0]
    _, report = merged(GAMES, other)
    assert any(text.startswith("match") for text in texts(join_graph(other, report)))
    assert not any(text.startswith("match") for text in texts(join_graph(plan, report)))


def test_all_is_100_percent_and_nearly_all_is_not():
    for score, shown in ((1.0, "sure 100%"), (0.9999, "sure >99%"), (0.001, "sure <1%"), (0.0, "sure 0%")):
        assert shown in texts(join_graph(made_plan("a.x = b.y", score=score)))


def test_doubtful_keys_and_bridges_are_dashed():
    def dashed(plan: JoinPlan) -> set[str]:
        return {
            node.tag.removeprefix(SVG)
            for node in ET.fromstring(join_graph(plan)).iter()
            if "stroke-dasharray" in node.attrib
        }

    assert dashed(made_plan("a.x = b.y", "b.z = c.z")) == set()
    assert dashed(made_plan("a.x = b.y", "b.z = c.z", score=0.4)) == {"path"}
    assert dashed(made_plan("a.x = b.y", "b.z = c.z", bridges=("b",))) == {"rect"}
    assert "doubtful n:1" in texts(join_graph(made_plan("a.x = b.y", score=0.4)))
    assert "7 rows, bridge" in texts(join_graph(made_plan("a.x = b.y", "b.z = c.z", bridges=("b",))))


def test_it_takes_the_colour_of_the_page_and_needs_nothing_from_elsewhere(found):
    page = found.merge(on_loss="allow").tag.merge_report._repr_html_()
    colours = re.findall(r'(?:color|fill|stroke|background)\s*[:=]\s*"?([^";]+)', page)
    assert set(colours) <= {"currentColor", "none"}
    assert "script" not in Tags(page).tags
    assert page.count("http") == page.count('xmlns="http://www.w3.org/2000/svg"')  # the name of SVG itself
    assert "url(" not in page


PLANS = {
    "a star of 30": made_plan(*(f"fact.d{i}_id = dim{i}.id" for i in range(29))),
    "a chain of 30": made_plan(*(f"t{i}.next = t{i + 1}.id" for i in range(29))),
    "a fan from one column": made_plan(*(f"fact.day = t{i}.day" for i in range(9))),
    "steps out of order": made_plan("a.x = b.x", "a.y = c.y", "b.p = d.p", "c.q = e.q", "a.x = f.x", "b.r = g.r"),
    "long names": made_plan(f"{'a' * 90}.{'k' * 90} = {'表' * 60}.{'k' * 90}", f"{'a' * 90}.k2 = b.{'z' * 28}"),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_boxes_stay_inside_do_not_overlap_and_no_lines_cross(plan):
    svg = join_graph(plan)
    root = ET.fromstring(svg)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    drawn = list(boxes(svg).values())
    assert len(drawn) == len(plan.tables)
    for number, (x, y, w, h) in enumerate(drawn):
        assert x >= 0
        assert x + w <= width
        assert y >= 0
        assert y + h <= height
        for x2, y2, w2, h2 in drawn[number + 1 :]:
            assert x + w < x2 or x2 + w2 < x or y + h < y2 or y2 + h2 < y
    # Between two layers lines keep their order from end to end: all have one shape, so none crosses another.
    ends = [tuple(map(float, re.findall(r"[-\d.]+", node.get("d", "")))) for node in root.iter(f"{SVG}path")]
    assert len(ends) == len(plan.steps)
    for number, one in enumerate(ends):
        for other in ends[number + 1 :]:
            if one[0] == other[0]:
                assert (one[1] - other[1]) * (one[7] - other[7]) >= 0
                assert one[7] != other[7]


def test_a_composite_key_has_a_line_for_each_column_and_one_label():
    key = KeyPair("d.a", ("x", "y"), "d.b", ("p", "q"), 0.9)
    sources = (PlanTable("d.a", "d", "a", ("x", "y")), PlanTable("d.b", "d", "b", ("p", "q")))
    plan = JoinPlan("d.a", (JoinStep("d.b", ("p", "q"), "d.a", ("x", "y"), "many-to-one", key),), sources)
    svg = join_graph(plan)
    assert len(list(ET.fromstring(svg).iter(f"{SVG}path"))) == 2
    assert texts(svg).count("n:1") == 1


def test_letters_that_xml_has_no_room_for_are_left_out():
    assert "a b c" in texts(join_graph(made_plan("t\x00\x1b.a\x08b\ud800c = u.x")))


def test_dollar_signs_are_no_formula():
    assert "mathjax_ignore" in made_plan("a.$x$ = b.y")._repr_html_()


def test_a_plan_shows_the_graph_and_the_other_ways():
    page = join_plan(GAMES)._repr_html_()
    assert "<svg" in page
    assert "1 other way to join" in page
    assert "game.away_team_id = team.id instead of game.home_team_id = team.id" in page
    assert "sure: the confidence in the key" in page


@pytest.mark.slow
def test_of_a_long_question_the_beginning_is_shown(found):
    long = dataclasses.replace(found, question="which shops " * 4_000)
    assert len(repr(long)) < 2_000
    assert len(long._repr_html_()) < 20_000


def test_found_shows_the_ranking_and_the_graph_and_a_merge_changes_nothing_of_it(found):
    before = Tags(found._repr_html_())
    assert not before.open
    assert "2 tables for 'Which town has the shops with most sales?'" in before.words
    assert {"shop.sales", "shop.shops", "why", "score"} <= set(before.words)
    assert any("named in the question" in text for text in before.words)
    assert {reason for hit in found.tables for reason in hit.reasons} <= set(before.words)
    assert "chance" not in before.words
    assert "fan-out" not in before.words
    text, page = repr(found), found._repr_html_()
    merged = found.merge(on_loss="allow")
    assert (repr(found), found._repr_html_()) == (text, page)
    after = Tags(merged.tag.merge_report._repr_html_())
    assert {"fan-out", "match 83%"} <= set(after.words)
    assert "5 rows in the result; 1 row of shop.sales is not among them." in after.words


def test_the_report_of_a_merge_on_a_plan_of_ones_own_shows_that_plan():
    found = retrieve_tables("Which team won the game?", tf.open_corpus(GAMES), k=2, method="lexical")
    other = found.join_plan.use("game.away_team_id = team.id")
    frame = found.merge(other)
    assert list(frame["name"][:3]) == ["b", "c", "a"]
    shown = texts(re.findall(r"<svg.*?</svg>", frame.tag.merge_report._repr_html_())[0])
    assert {"away_team_id", "match 100%"} <= set(shown)
    assert "home_team_id" not in shown
    assert "└─ g.game.home_team_id = g.team.id" in repr(found)


def test_a_probability_is_shown_once():
    corpus = tf.open_corpus(FRAMES)
    same = [TableHit("shop.sales", 0.875, (), 0.875), TableHit("shop.shops", 0.5, (), 0.5)]
    for hits, scored in ((same, False), ([TableHit("shop.sales", 3.25, (), 0.875)], True)):
        found = RetrievedTables("Which sales?", hits, corpus)
        words = Tags(retrieved_html(found, None)).words
        assert {"chance", "88%"} <= set(words)
        assert ("score" in words) == scored


def test_the_note_of_a_result_is_its_last_line():
    corpus = tf.open_corpus({"shop.sales": pd.DataFrame({"day": [1, 2]})})
    note = "1 table, 98% likely enough (next candidate: 2%)"
    assert repr(RetrievedTables("Which sales?", (TableHit("shop.sales", 1.0),), corpus, note=note)).endswith(
        "\n" + note
    )


def test_tables_that_do_not_connect_say_so():
    frames = {"a.owl": pd.DataFrame({"owl": ["x", "y"]}), "a.bolt": pd.DataFrame({"price": [1.5, 2.5]})}
    found = retrieve_tables("Which owl has which bolt price?", tf.open_corpus(frames), k=2, method="lexical")
    assert "<svg" not in found._repr_html_()
    assert "a.bolt" in found._repr_html_()
    assert "no evidence links them" in found._repr_html_()
    assert "no key pairs connect them" in repr(found)


def test_a_report_shows_a_row_a_step_and_a_sentence_for_what_went_wrong():
    _, report = merged(FRAMES, on_loss="allow")
    page = Tags(report._repr_html_())
    assert page.tags.count("tr") == 2
    assert page.tags.count("li") == 1
    assert "frames" not in page.words
    assert "Merged from shop.sales (6 rows):" in page.words
    assert "shop.sales.shop_id = shop.shops.shop_id: 1 of 6 rows have no partner." in page.words
    whole = {**FRAMES, "shop.sales": FRAMES["shop.sales"].head(5)}
    assert "li" not in Tags(merged(whole)[1]._repr_html_()).tags
    _, alone = merged({"shop.shops": FRAMES["shop.shops"]})
    assert "3 rows in the result." in Tags(alone._repr_html_()).words


def test_the_tree_in_a_terminal():
    plan = made_plan("a.x = b.x", "a.y = c.y", "b.p = d.p", "c.q = e.q", "b.r = f.r", bridges=("c",))
    assert join_tree(plan).split("\n") == [
        "d.a",
        "├─ d.a.x = d.b.x  (many-to-one, 0.90)",
        "│  ├─ d.b.p = d.d.p  (many-to-one, 0.90)",
        "│  └─ d.b.r = d.f.r  (many-to-one, 0.90)",
        "└─ d.a.y = d.c.y  (many-to-one, 0.90, bridge)",
        "   └─ d.c.q = d.e.q  (many-to-one, 0.90)",
    ]


def test_a_plan_in_a_terminal_shows_the_other_ways():
    text = repr(join_plan(GAMES))
    assert text.startswith("JoinPlan of 2 tables:\n  g.game\n  └─ g.game.home_team_id = g.team.id")
    assert "\n1 other way to join:\n  game.away_team_id = team.id instead of game.home_team_id = team.id" in text


def test_outcomes_are_a_bar_with_why_rows_failed(live):
    live.answers = lambda request: (
        error(400, "bad <words>") if "tide" in request.prompt else str("s" in request.prompt.split('"word": "')[1][:2])
    )
    words = pd.DataFrame({"word": ["sea", "sky", "harbour", "tide", None]}, index=list("abcde"))
    outcomes = words.tag.sem_filter("{word} is short", on_error="drop").tag.outcomes
    page = outcomes._repr_html_()
    assert "2 yes (40%), 1 no (20%), 1 null (20%), 1 failed (20%)" in page
    assert page.count("<rect") == 4
    assert "bad &lt;words&gt;" in page
    assert "<td" in page.split("<details>")[1], "the rows are there to be opened"
    assert page.count("http") == page.count('xmlns="http://www.w3.org/2000/svg"')
    assert type(outcomes.head(2)) is pd.DataFrame
    assert pickle.loads(pickle.dumps(outcomes))["outcome"].tolist() == ["yes", "yes", "no", "failed", "null"]


@pytest.mark.slow
def test_one_row_of_a_million_is_seen():
    counts = pd.DataFrame({"outcome": ["no"] * 999_999 + ["failed"], "error": [None] * 999_999 + ["RateLimited: 429"]})
    page = outcomes_html(counts, "")
    assert "1 failed (&lt;1%)" in page
    assert min(float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', page)) >= 6
    assert outcomes_html(counts.head(0), "").count("<rect") == 0
