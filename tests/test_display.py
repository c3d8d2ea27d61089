"""The picture of a join plan."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pandas as pd

from tagframe.display import join_graph
from tagframe.joins import join_plan, merge_frames_with_report

FRAMES = {
    "shop.sales": pd.DataFrame({"sale_no": range(6), "shop_id": [1, 2, 1, 2, 1, 9], "cash<&>id": [5, 6, 7, 5, 6, 7]}),
    "shop.shops": pd.DataFrame({"shop_id": [1, 2, 3], "town": list("abc")}),
}
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_graph_shows_tables_keys_cardinality_and_what_matched():
    plan = join_plan(FRAMES)
    _, report = merge_frames_with_report(FRAMES, plan, on_loss="allow")
    shown = texts(join_graph(plan, report))
    assert {"sales", "6 rows", "shops", "3 rows", "shop_id", "n", "match 83% · 1"} <= set(shown)


def test_without_a_report_it_says_how_sure_the_key_is():
    plan = join_plan(FRAMES)
    assert any(text.startswith("sure ") for text in texts(join_graph(plan)))


def test_it_takes_the_colour_of_the_page_and_needs_nothing_from_elsewhere():
    svg = join_graph(join_plan(FRAMES))
    colours = {
        value for node in ET.fromstring(svg).iter() for name, value in node.items() if name in ("fill", "stroke")
    }
    assert colours <= {"currentColor", "none"}
    assert "script" not in svg
    assert svg.count("http") == 1  # the name of SVG itself


def test_boxes_stay_inside_and_do_not_overlap():
    frames = {**FRAMES, "shop.towns": pd.DataFrame({"town": list("abc"), "x": [1, 2, 3]})}
    frames["shop.returns"] = pd.DataFrame({"return_id": range(20), "shop_id": [1, 2] * 10})
    root = ET.fromstring(join_graph(join_plan({k: frames[k] for k in ("shop.returns", "shop.shops")})))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    boxes = [[float(node.get(name, "0")) for name in ("x", "y", "width", "height")] for node in root.iter(f"{SVG}rect")]
    assert len(boxes) == 2
    for place, (x, y, w, h) in enumerate(boxes):
        assert x >= 0
        assert x + w <= width
        assert y >= 0
        assert y + h <= height
        for x2, y2, w2, h2 in boxes[place + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_a_notebook_shows_the_graph_and_the_other_ways():
    games = {
        "g.game": pd.DataFrame({"game_no": range(30), "home_team_id": [1, 2, 3] * 10, "away_team_id": [2, 3, 1] * 10}),
        "g.team": pd.DataFrame({"id": [1, 2, 3], "name": list("abc")}),
    }
    html = join_plan(games)._repr_html_()
    assert "<svg" in html
    assert "1 other ways to join" in html
    assert "g.game.away_team_id = g.team.id" in html


def test_names_are_escaped():
    frames = {"shop.<b>": FRAMES["shop.sales"], "shop.shops": FRAMES["shop.shops"]}
    assert "<b>" in texts(join_graph(join_plan(frames)))
