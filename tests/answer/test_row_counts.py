"""Rows that a join repeats: statements that count them twice are doubted, with the right number beside."""

from __future__ import annotations

import sqlite3

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.alternatives import same_rows
from tagframe.answer.doubts import doubts_of, repeats_of
from tagframe.answer.steps import driver
from tagframe.errors import DoubtWarning
from tagframe.operators import run
from tests import opened_in

SHOP = """
CREATE TABLE client (client_id integer PRIMARY KEY, name text, credit integer);
CREATE TABLE sale (sale_id integer PRIMARY KEY, client_id integer REFERENCES client, region text, amount integer);
CREATE TABLE line (line_id integer PRIMARY KEY, sale_id integer REFERENCES sale, item text, price integer);
CREATE TABLE visit (visit_id integer PRIMARY KEY, client_id integer REFERENCES client, minutes integer);
CREATE TABLE roster (team text, year integer, wins integer, PRIMARY KEY (team, year));
CREATE TABLE pay (player text, team text, year integer, salary integer, PRIMARY KEY (player, year));
INSERT INTO client VALUES (1, 'Ann', 50), (2, 'Bo', 70), (3, 'Cy', 10);
INSERT INTO sale VALUES (1, 1, 'north', 100), (2, 1, 'north', 200), (3, 2, 'south', 400), (4, 3, 'south', 40);
INSERT INTO line VALUES (1, 1, 'pen', 50), (2, 1, 'ink', 30), (3, 1, 'cap', 20), (4, 2, 'pen', 150), (5, 2, 'ink', 50),
  (6, 3, 'pen', 400), (7, 4, 'cap', 15), (8, 4, 'ink', 25);
INSERT INTO visit VALUES (1, 1, 5), (2, 1, 15), (3, 1, 10), (4, 2, 60), (5, 3, 20), (6, 3, 30);
INSERT INTO roster VALUES ('A', 2001, 9), ('A', 2002, 7), ('A', 2003, 3), ('B', 2001, 4), ('B', 2002, 6);
INSERT INTO roster VALUES ('B', 2003, 1);
INSERT INTO pay VALUES ('x', 'A', 2001, 10), ('x', 'A', 2002, 20), ('y', 'B', 2002, 30), ('z', 'A', 2003, 40);
"""
VIEWS = """
CREATE VIEW sold AS SELECT s.sale_id, s.region, s.amount, l.price FROM sale s JOIN line l ON l.sale_id = s.sale_id;
CREATE VIEW sales_of AS SELECT sale_id, client_id, region, amount FROM sale;
"""
TWICE = [
    (
        "SELECT region, sum(amount) AS t FROM sale JOIN line USING (sale_id) GROUP BY region ORDER BY region",
        [["north", 300], ["south", 440]],
    ),
    (
        "SELECT s.region, avg(s.amount) AS t FROM sale s JOIN line l ON l.sale_id = s.sale_id "
        "GROUP BY s.region ORDER BY 1",
        [["north", 150], ["south", 220]],
    ),
    ("SELECT count(s.sale_id) AS n FROM sale s, line l WHERE l.sale_id = s.sale_id", [[4]]),
    ("SELECT sum(s.amount) AS t FROM line l JOIN sale s ON l.sale_id = s.sale_id WHERE l.price >= 30", [[700]]),
    (
        "SELECT sum(s.amount) AS t, sum(l.price) AS p FROM sale s LEFT JOIN line l ON l.sale_id = s.sale_id",
        [[740, 740]],
    ),
    (
        "SELECT c.name, sum(s.amount) AS t, sum(v.minutes) AS m FROM client c JOIN sale s ON s.client_id = c.client_id "
        "JOIN visit v ON v.client_id = c.client_id GROUP BY c.name ORDER BY c.name",
        [["Ann", 300, 30], ["Bo", 400, 60], ["Cy", 40, 50]],
    ),
    (
        "SELECT c.name, count(s.sale_id) AS sales, count(v.visit_id) AS visits FROM client c JOIN "
        "sale s USING (client_id) "
        "JOIN visit v USING (client_id) GROUP BY c.name ORDER BY c.name",
        [["Ann", 2, 3], ["Bo", 1, 1], ["Cy", 1, 2]],
    ),
    (
        "SELECT sum(c.credit) AS t FROM client c JOIN sale s ON s.client_id = c.client_id JOIN "
        "line l ON l.sale_id = s.sale_id",
        [[130]],
    ),
    (
        "WITH j AS (SELECT s.region, s.amount FROM sale s JOIN line l ON l.sale_id = s.sale_id) "
        "SELECT region, sum(amount) AS t FROM j GROUP BY region ORDER BY region",
        [["north", 300], ["south", 440]],
    ),
    ("SELECT avg(j.a) AS t FROM (SELECT s.amount AS a FROM sale s JOIN line l ON l.sale_id = s.sale_id) AS j", [[185]]),
    (
        "WITH t AS (SELECT client_id, sum(amount) AS total FROM sale GROUP BY client_id) "
        "SELECT sum(t.total) AS t FROM t JOIN visit v ON v.client_id = t.client_id",
        [[740]],
    ),
    (
        "SELECT s.region, sum(s.amount) AS t FROM sale s JOIN line l ON l.sale_id = s.sale_id GROUP BY s.region "
        "HAVING sum(s.amount) > 400 ORDER BY t DESC",
        [["south", 440]],
    ),
    (
        "SELECT sum(CASE WHEN l.item <> 'cap' THEN s.amount END) AS t FROM sale s JOIN line l ON l.sale_id = s.sale_id",
        [[740]],
    ),
    ("SELECT sum(p.salary) AS t FROM pay p JOIN roster r ON r.team = p.team", [[100]]),
    ("SELECT sum(amount) AS t FROM (SELECT * FROM sale JOIN line USING (sale_id)) AS j", [[740]]),
    ("SELECT sum(amount) FILTER (WHERE l.price > 30) AS t FROM sale s JOIN line l USING (sale_id)", [[700]]),
    (
        "SELECT max(minutes) AS t FROM visit UNION ALL SELECT sum(amount) FROM sale JOIN line USING (sale_id)",
        [[60], [740]],
    ),
    ("SELECT sum(s.amount) AS t FROM sale s CROSS JOIN visit v", [[740]]),
    (
        "SELECT r.year, sum(p.salary) AS t FROM pay p JOIN roster r ON p.team = r.team GROUP BY r.year ORDER BY r.year",
        [[2001, 10], [2002, 50], [2003, 40]],
    ),
    ("SELECT sum(amount) AS t FROM sold", [[740]]),
    ("SELECT region, avg(amount) AS t FROM sold GROUP BY region ORDER BY region", [["north", 150], ["south", 220]]),
    ("SELECT sum(v.amount) AS t FROM sales_of v JOIN line l ON l.sale_id = v.sale_id", [[740]]),
]
INSIDE = [
    (
        "SELECT c.name, (SELECT sum(s.amount) FROM sale s JOIN line l ON l.sale_id = s.sale_id "
        "WHERE s.client_id = c.client_id) AS t FROM client c ORDER BY c.name",
        [["Ann", 300], ["Bo", 400], ["Cy", 40]],
    ),
    (
        "SELECT name, (SELECT avg(amount) * c.credit FROM sale s JOIN line USING (sale_id) "
        "WHERE s.client_id = c.client_id) AS t FROM client c ORDER BY name",
        [["Ann", 7500], ["Bo", 28000], ["Cy", 400]],
    ),
    (
        "SELECT c.name, (SELECT sum(s.amount * c.credit) FROM sale s JOIN line l ON l.sale_id = s.sale_id "
        "WHERE s.client_id = c.client_id AND l.price >= 30) AS t FROM client c WHERE c.client_id < 3 ORDER BY c.name",
        [["Ann", 15000], ["Bo", 28000]],
    ),
    (
        "SELECT name FROM client c WHERE (SELECT sum(s.amount) FROM sale s JOIN line l ON l.sale_id = s.sale_id "
        "WHERE c.client_id = s.client_id) > 300 ORDER BY name",
        [["Bo"]],
    ),
    (
        "WITH j AS (SELECT s.client_id, s.amount FROM sale s JOIN line l ON l.sale_id = s.sale_id) "
        "SELECT name, (SELECT sum(j.amount) FROM j WHERE j.client_id = c.client_id) AS t FROM client c ORDER BY name",
        [["Ann", 300], ["Bo", 400], ["Cy", 40]],
    ),
    (
        "SELECT l.line_id, sum(s.amount) OVER (PARTITION BY s.region) AS t FROM sale s "
        "JOIN line l ON l.sale_id = s.sale_id ORDER BY l.line_id",
        [[1, 300], [2, 300], [3, 300], [4, 300], [5, 300], [6, 440], [7, 440], [8, 440]],
    ),
    (
        "SELECT DISTINCT region, avg(amount) OVER (PARTITION BY region) AS t FROM sale JOIN line USING (sale_id) "
        "ORDER BY region",
        [["north", 150], ["south", 220]],
    ),
    (
        "SELECT l.line_id AS region, sum(s.amount) OVER (ORDER BY region, l.line_id) AS t FROM sale s "
        "JOIN line l ON l.sale_id = s.sale_id ORDER BY l.line_id",
        [[1, 100], [2, 100], [3, 100], [4, 300], [5, 300], [6, 700], [7, 740], [8, 740]],
    ),
    (
        "SELECT DISTINCT sum(s.amount) FILTER (WHERE l.price > 30) OVER () AS t FROM sale s "
        "JOIN line l USING (sale_id)",
        [[700]],
    ),
    (
        "SELECT region, sum(amount) AS t, sum(sum(amount)) OVER () AS whole FROM sale JOIN line USING (sale_id) "
        "GROUP BY region ORDER BY region",
        [["north", 300, 740], ["south", 440, 740]],
    ),
    (
        "SELECT c.name, (SELECT sum(sum(s.amount)) OVER () FROM sale s JOIN line l ON l.sale_id = s.sale_id "
        "WHERE s.client_id = c.client_id) AS t FROM client c ORDER BY c.name",
        [["Ann", 300], ["Bo", 400], ["Cy", 40]],
    ),
    (
        "SELECT sum(s.amount) AS t, (SELECT max(minutes) FROM visit) AS m FROM sale s JOIN line l USING (sale_id)",
        [[740, 60]],
    ),
    (
        "SELECT c.name, (SELECT sum(s.amount) + (SELECT max(minutes) FROM visit) FROM sale s "
        "JOIN line l ON l.sale_id = s.sale_id WHERE s.client_id = c.client_id) AS t FROM client c ORDER BY c.name",
        [["Ann", 360], ["Bo", 460], ["Cy", 100]],
    ),
    (
        "SELECT sum((SELECT c.credit FROM client c WHERE c.client_id = s.client_id)) AS t FROM sale s "
        "JOIN line l ON l.sale_id = s.sale_id",
        [[180]],
    ),
    (
        "SELECT s.region, avg(s.amount - (SELECT min(v.minutes) FROM visit v WHERE v.client_id = s.client_id)) AS t "
        "FROM sale s JOIN line l ON l.sale_id = s.sale_id GROUP BY s.region ORDER BY s.region",
        [["north", 145], ["south", 180]],
    ),
    (
        "SELECT sum((SELECT sum(v.minutes) FROM visit v WHERE v.client_id = c.client_id)) AS t FROM client c "
        "JOIN sale s ON s.client_id = c.client_id JOIN line l ON l.sale_id = s.sale_id",
        [[140]],
    ),
    (
        "SELECT sum(s.amount) - (SELECT sum(credit) FROM client) AS t FROM sale s JOIN line l USING (sale_id)",
        [[610]],
    ),
]
ONCE = [
    "SELECT region, sum(amount) AS t FROM sale GROUP BY region",
    "SELECT s.region, sum(l.price) AS t, count(*) AS n FROM sale s JOIN line l ON l.sale_id = "
    "s.sale_id GROUP BY s.region",
    "SELECT c.name, count(*) AS n FROM client c JOIN sale s USING (client_id) GROUP BY c.name",
    "SELECT c.name, count(c.client_id) AS n FROM client c JOIN sale s USING (client_id) GROUP BY c.client_id, c.name",
    "SELECT count(DISTINCT s.sale_id) AS n FROM sale s JOIN line l ON l.sale_id = s.sale_id",
    "SELECT max(s.amount) AS n FROM sale s JOIN line l ON l.sale_id = s.sale_id",
    "SELECT sum(l.price * s.amount) AS n FROM sale s JOIN line l ON l.sale_id = s.sale_id",
    "SELECT sum(p.salary) AS t FROM pay p JOIN roster r ON r.team = p.team AND r.year = p.year",
    "SELECT sum(p.salary) AS t FROM pay p JOIN roster r ON r.team = p.team WHERE r.year = 2002 AND p.year = 2002",
    "SELECT avg(n) AS n FROM (SELECT sale_id, count(*) AS n FROM line GROUP BY sale_id) AS counts",
    "SELECT c.name, (SELECT sum(s.amount) FROM sale s WHERE s.client_id = c.client_id) AS t FROM client c",
    "SELECT s.sale_id, (SELECT count(t.sale_id) FROM sale t JOIN line l ON l.sale_id = t.sale_id "
    "WHERE t.sale_id = s.sale_id) AS n FROM sale s",
    "SELECT l.line_id, (SELECT sum(s.amount) + (SELECT max(minutes) FROM visit) FROM sale s JOIN line k "
    "ON k.sale_id = s.sale_id WHERE k.line_id = l.line_id) AS t FROM line l",
    "SELECT l.line_id, sum(s.amount) OVER (PARTITION BY l.line_id) AS t FROM sale s JOIN line l USING (sale_id)",
    "SELECT l.line_id, sum(s.amount) OVER (PARTITION BY l.line_id) AS t FROM sale s "
    "JOIN line l USING (sale_id) LIMIT 3",
    "SELECT l.line_id, sum(l.price) OVER (PARTITION BY s.region) AS t FROM sale s JOIN line l USING (sale_id)",
    "SELECT s.sale_id, count(s.sale_id) OVER (PARTITION BY s.sale_id) AS t FROM sale s JOIN line l USING (sale_id)",
    "SELECT s.sale_id, rank() OVER (ORDER BY s.amount) AS t FROM sale s JOIN line l USING (sale_id)",
    "SELECT c.name, sum(v.minutes) AS m, (SELECT max(amount) FROM sale) AS t FROM client c "
    "LEFT JOIN visit v USING (client_id) GROUP BY c.name",
]
ONCE += [
    "SELECT sum((SELECT c.credit FROM client c WHERE c.client_id = s.client_id)) AS t FROM sale s",
    "SELECT sum(l.price * (SELECT c.credit FROM client c WHERE c.client_id = s.client_id)) AS t FROM sale s "
    "JOIN line l ON l.sale_id = s.sale_id",
    "SELECT sum((SELECT max(credit) FROM client)) AS t FROM sale s JOIN line l ON l.sale_id = s.sale_id",
]
FRAMES = ["client", "sale", "line", "visit", "roster", "pay"]


@pytest.fixture(params=["sqlite", "frames", "duckdb", "postgres"])
def shop(request, tmp_path):
    """The same tables in four engines; views where a source has them."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as file:
        file.executescript(SHOP + VIEWS)
        frames = {name: pd.read_sql(f"SELECT * FROM {name}", file) for name in FRAMES}
    file.close()
    if request.param == "sqlite":
        return tf.open_corpus(path)
    if request.param == "postgres":
        return tf.open_corpus(request.getfixturevalue("database")(SHOP + VIEWS))
    return opened_in.lake(frames, tmp_path / "lake") if request.param == "duckdb" else tf.open_corpus(frames)


def doubts(corpus, sql):
    return repeats_of(run(tf.exec_sql(corpus).steps(sql), driver(), "test"))


def test_rows_that_are_counted_twice_are_doubted_with_the_right_number(shop):
    names = {profile.name for profile in shop.profiles}
    for sql, right in [*TWICE, *INSIDE]:
        if ("sold" in sql and "sold" not in names) or ("sales_of" in sql and "sales_of" not in names):
            continue
        told = doubts(shop, sql)
        wanted = pd.DataFrame(right)
        assert any(same_rows(one.rows.set_axis(wanted.columns, axis=1), wanted) for one in told), (sql, told)


def test_rows_that_are_counted_once_are_not_doubted(shop):
    for sql in ONCE:
        assert doubts(shop, sql) == (), sql


def test_exec_sql_warns_and_an_agent_is_told(shop):
    sql = "SELECT sum(s.amount) AS t FROM sale s JOIN line l ON l.sale_id = s.sale_id"
    with pytest.warns(DoubtWarning, match="a join repeats rows of sale; .* it would be 740 instead of 1180") as caught:
        tf.exec_sql(shop)(sql)
    statement = str(caught[0].message).partition("counts them once: ")[2].removesuffix(")")
    assert tf.exec_sql(shop)(statement)["t"].tolist() == [740]
    assert "it would be 740 instead of 1180" in shop.tools().run_sql(sql)["note"]


def test_the_picture_of_an_answer_has_the_joins_of_its_statement(shop):
    plain = tf.TAG(syn=lambda _: "SELECT p.player FROM pay p JOIN roster r ON r.team = p.team", exec=tf.exec_sql(shop))
    plan = plain("Who?").join_plan
    assert [{*step.columns} for step in plan.steps] == [{"team"}]


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_groups_by_half_of_a_key_that_nobody_declared_are_doubted(engine, tmp_path):
    seasons = ["2021/22", "2022/23"]
    goals = pd.DataFrame({"goal": range(5), "team": list("RRRBB"), "season": [*seasons, seasons[0], *seasons]})
    table = pd.DataFrame({"team": list("RRBB"), "season": seasons * 2, "points": [4, 9, 7, 1]})
    frames = {"goals": goals, "standings": table}
    corpus = opened_in.lake(frames, tmp_path) if engine else tf.open_corpus(frames)
    join = "FROM goals g JOIN standings s ON s.team = g.team"
    (doubt,) = doubts(corpus, f"SELECT s.season, count(g.goal) AS n {join} GROUP BY s.season ORDER BY 1")
    assert doubt.rows["n"].tolist() == [3, 2]
    assert doubts(corpus, f"SELECT g.season, count(DISTINCT g.goal) AS n {join} GROUP BY g.season") == ()
    assert doubts(corpus, f"SELECT s.points, max(g.goal) AS n {join} GROUP BY s.points") == ()


def test_rows_are_counted_once_by_the_whole_key_too():
    depots = pd.DataFrame({"region": ["N", "N", "S", "S"], "depot": ["a", "b", "a", "b"], "cost": [1, 2, 4, 8]})
    parts = [(region, depot, part) for region in "NS" for depot in "ab" for part in range(3)]
    stock = pd.DataFrame(parts, columns=["region", "depot", "part"])
    corpus = tf.open_corpus({"depot": depots, "stock": stock})
    corpus.keys.add("stock.region = depot.region and stock.depot = depot.depot")
    sql = "SELECT sum(d.cost) AS c FROM depot d JOIN stock s ON d.region = s.region"
    found = doubts(corpus, sql)
    assert [(doubt.reason, doubt.rows["c"].tolist()) for doubt in found] == [("key", [45]), ("repeated", [15])]
    with pytest.warns(DoubtWarning, match="repeats rows of depot"):
        rows = tf.exec_sql(corpus)(f"{sql} AND d.depot = s.depot")
    whole = doubts_of(rows, "What do depots with stock cost?")
    assert [(doubt.reason, doubt.rows["c"].tolist()) for doubt in whole] == [("repeated", [15])]
