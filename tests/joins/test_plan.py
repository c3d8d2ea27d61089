"""Join plans: where they start, in which order they go, and what they say."""

from __future__ import annotations

import pickle
import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
import sqlglot
from sqlglot import exp

import tagframe as tf
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.errors import ColumnNotFound, InvalidArgument, NotConnected, TableNotFound
from tagframe.joins import JoinPlan, JoinStep, PlanTable, plan_joins
from tagframe.keys import Evidence, KeyPair
from tagframe.merging import join_plan
from tagframe.retrieval.role_hints import role_hints


def table(name: str, *columns: str, rows: int = 10, unique: tuple[str, ...] = (), database: str = "d") -> TableProfile:
    profiles = tuple(
        ColumnProfile(column, position, "integer", "", rows, 0, rows if column in unique else max(1, rows // 2))
        for position, column in enumerate(columns)
    )
    return TableProfile(f"{database}.{name}", database, name, profiles, rows)


def key(left: str, right: str, score: float = 0.9) -> KeyPair:
    (left_table, left_column), (right_table, right_column) = left.split("."), right.split(".")
    return KeyPair(f"d.{left_table}", (left_column,), f"d.{right_table}", (right_column,), score)


CITY = table("city", "id", "name", rows=5, unique=("id",))
TEAM = table("team", "id", "name", "city_id", rows=20, unique=("id",))
GAME = table("game", "id", "home_team_id", "away_team_id", rows=300, unique=("id",))
GOAL = table("goal", "game_id", "minute", rows=900)
HOME, AWAY = key("game.home_team_id", "team.id"), key("game.away_team_id", "team.id")
TOWN, SCORED = key("team.city_id", "city.id"), key("goal.game_id", "game.id")
KEYS = [HOME, AWAY, TOWN, SCORED]


def joins(plan: JoinPlan) -> list[str]:
    return [re.sub(r"\bd\.", "", str(step)) for step in plan.steps]


def test_the_plan_starts_from_the_finest_grain_and_multiplies_no_rows():
    plan = plan_joins([CITY, TEAM, GAME, GOAL], KEYS)
    assert plan.start == "d.goal"
    assert [step.cardinality for step in plan.steps] == ["many-to-one"] * 3
    assert joins(plan) == ["goal.game_id = game.id", "game.home_team_id = team.id", "team.city_id = city.id"]
    assert plan.tables == ("d.goal", "d.game", "d.team", "d.city")


def test_the_default_role_is_not_the_one_of_a_shipment():
    order = table("order", "id", "ship_city_id", "sold_city_id", rows=300, unique=("id",))
    plan = plan_joins([order, CITY], [key("order.ship_city_id", "city.id"), key("order.sold_city_id", "city.id")])
    assert joins(plan) == ["order.sold_city_id = city.id"]
    assert [joins(other) for other in plan.ambiguous] == [["order.ship_city_id = city.id"]]


def test_an_anchor_is_the_start_whatever_its_grain():
    plan = plan_joins([CITY, TEAM, GAME], KEYS, anchor="d.city")
    assert joins(plan) == ["city.id = team.city_id", "team.id = game.home_team_id"]
    assert [step.cardinality for step in plan.steps] == ["one-to-many", "one-to-many"]
    with pytest.raises(TableNotFound, match=r"did you mean 'd\.city'"):
        plan_joins([CITY, TEAM], KEYS, anchor="d.citty")


def test_two_ways_to_join_give_both_plans():
    plan = plan_joins([GAME, TEAM], KEYS)
    assert joins(plan) == ["game.home_team_id = team.id"]
    assert [joins(other) for other in plan.alternatives] == [["game.away_team_id = team.id"]]
    hinted = plan_joins([GAME, TEAM], KEYS, role_hints=role_hints(KEYS, "which away team won most".split()))
    assert joins(hinted) == ["game.away_team_id = team.id"]
    assert hinted.alternatives[0].steps[0].key == HOME


def test_a_plainly_named_key_is_preferred_to_a_role():
    users, posts = table("users", "id", unique=("id",)), table("posts", "id", "owner_user_id", unique=("id",))
    votes = table("votes", "post_id", "user_id", rows=50)

    def named(pair: KeyPair, name: float) -> KeyPair:
        return KeyPair(
            pair.left_table, pair.left_columns, pair.right_table, pair.right_columns, 0.99, Evidence(name=name)
        )

    keys = [
        named(key("posts.owner_user_id", "users.id"), 0.85),
        named(key("votes.post_id", "posts.id"), 1.0),
        named(key("votes.user_id", "users.id"), 1.0),
    ]
    assert joins(plan_joins([users, posts, votes], keys)) == ["votes.post_id = posts.id", "votes.user_id = users.id"]


def test_two_references_to_a_missing_table_are_joined_directly_and_not_called_unique():
    likes, friends = table("likes", "student_id", rows=30), table("friends", "student_id", rows=40)
    keys = [key("likes.student_id", "student.id"), key("friends.student_id", "student.id")]
    plan = plan_joins([likes, friends], keys)
    assert joins(plan) == ["friends.student_id = likes.student_id"]
    assert plan.steps[0].cardinality == "many-to-many"
    assert "both reference d.student" in plan.steps[0].key.evidence.reason


def test_bridges_are_added_where_needed_and_named():
    disp = table("disp", "client_id", "account_id", rows=30)
    client, loan = table("client", "id", unique=("id",)), table("loan", "account_id", unique=("account_id",))
    account = table("account", "id", unique=("id",))
    keys = [
        key("disp.client_id", "client.id"),
        key("disp.account_id", "account.id"),
        key("loan.account_id", "account.id"),
    ]
    plan = plan_joins([client, loan], keys, bridges=[disp, account, table("other", "x")])
    assert plan.bridges == ("d.disp",)  # disp and loan refer to the same account, so they meet without it
    assert "through" in repr(plan)
    assert {"d.client", "d.loan"} <= set(plan.tables)
    # With the bridges left out of the corpus there is no plan, and the message says what is apart.
    with pytest.raises(NotConnected, match=r"\{d\.client\} \| \{d\.loan\}; no evidence links them"):
        plan_joins([client, loan], [])


def test_why_tables_do_not_connect_is_found_out_where_it_is_read(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("tagframe.joins.planner.nearest_pairs", lambda *_: pytest.fail("the columns are compared"))
        with pytest.raises(NotConnected) as caught:
            plan_joins([CITY, GOAL], [])
    assert caught.value.groups == (("d.city",), ("d.goal",))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert "no evidence links them" in str(again)
    assert again.groups == caught.value.groups


def test_one_table_is_a_plan_and_none_is_not():
    plan = plan_joins([CITY], KEYS)
    assert (plan.start, plan.steps, plan.score) == ("d.city", (), 1.0)
    assert plan.sql() == 'SELECT\n  "city"."id",\n  "city"."name"\nFROM "city"'
    with pytest.raises(InvalidArgument, match="got none"):
        plan_joins([], KEYS)


def test_use_overrules_a_step():
    plan = plan_joins([GAME, TEAM, CITY], KEYS)
    other = plan.use("game.away_team_id = team.id")
    assert joins(other) == ["game.away_team_id = team.id", "team.city_id = city.id"]
    assert joins(plan)[0] == "game.home_team_id = team.id"
    assert other.steps[0].key.evidence.origin == "given"
    far = plan.use("d.game.id = CITY.ID")
    assert "game.id = city.id" in joins(far)
    assert set(far.tables) == set(plan.tables)
    with pytest.raises(ColumnNotFound, match="did you mean 'away_team_id'"):
        plan.use("game.away_team = team.id")
    with pytest.raises(TableNotFound):
        plan.use("gaem.id = team.id")
    for wrong in ("game.id", "game.id = game.home_team_id", "id = team.id"):
        with pytest.raises(InvalidArgument):
            plan.use(wrong)


def test_names_in_the_merged_frame():
    plan = plan_joins([TEAM, CITY], KEYS)
    names = plan.column_names()
    assert names["d.team", "name"] == "team.name"
    assert names["d.city", "name"] == "city.name"
    assert names["d.city", "id"] == names["d.team", "city_id"] == "city_id"
    assert names["d.team", "id"] == "id"
    assert plan.find_column("city.id") == ("d.city", "id")


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
@pytest.mark.parametrize("as_files", [False, True])
def test_a_name_that_a_third_table_has_too_is_not_lost_to_it(how, as_files, tmp_path):
    """A frame with a column "name", which is that of the country, has those of the peaks under theirs."""
    frames = {
        "peak_in": pd.DataFrame({"peak": ["Ubinas", "Coropuna", "Etna"], "country_code": ["PE", "PE", "IT"]}),
        "peak": pd.DataFrame({"name": ["Ubinas", "Coropuna", "Etna"], "height": [5672, 6425, 3357]}),
        "country": pd.DataFrame({"code": ["PE", "IT"], "name": ["Peru", "Italy"]}),
    }
    if as_files:
        with sqlite3.connect(tmp_path / "geo.sqlite") as connection:
            for name, frame in frames.items():
                frame.to_sql(name, connection, index=False)
    corpus = tf.open_corpus(tmp_path / "geo.sqlite" if as_files else frames)
    on = ["peak_in.peak = peak.name", "peak_in.country_code = country.code"]
    frame = corpus.merge("peak_in", "peak", "country", on=on, how=how)
    assert sorted(frame) == ["country.name", "country_code", "height", "peak", "peak.name"]
    assert frame["peak"].tolist() == frame["peak.name"].tolist()
    assert frame["country.name"].tolist() == ["Peru", "Peru", "Italy"]


def test_sql_quotes_what_needs_it():
    left = table('or"der', "select", "a b", rows=20)
    right = table("group", "id.x", "a b", unique=("id.x",), rows=3)
    pair = KeyPair('d.or"der', ("select",), "d.group", ("id.x",), 0.9)
    plan = plan_joins([left, right], [pair])
    connection = sqlite3.connect(":memory:")
    pd.DataFrame({"select": [1, 2, 1], "a b": [7, 8, 9]}).to_sql('or"der', connection, index=False)
    pd.DataFrame({"id.x": [1, 2], "a b": [5, 6]}).to_sql("group", connection, index=False)
    frame = pd.read_sql(plan.sql(limit=2), connection)
    connection.close()
    assert frame.to_dict("list") == {"select": [1, 2], 'or"der.a b': [7, 8], "group.a b": [5, 6]}
    assert plan.use('or"der.a b = group.id.x').steps[0].columns == ("id.x",)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "duckdb", "mysql"])
@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_sql_is_of_the_dialect_that_is_asked_for(dialect, how):
    columns = ("id", 'or"der', "city_id")
    parts = tuple(PlanTable(f"d.sales_{year}", "d", f"sales_{year}", columns) for year in (2023, 2024))
    sales = PlanTable("d.sales", "d", "sales", (*columns, "it's"), parts=parts, origin="it's")
    step = JoinStep("d.city", ("id",), "d.sales", ("city_id",), "many-to-one", TOWN)
    plan = JoinPlan("d.sales", (step,), (sales, PlanTable("d.city", "d", "city", ("id", "name"))))
    text = plan.sql(how=how, limit=3, dialect=dialect)
    statement = sqlglot.parse_one(text, read=dialect)
    assert {item.name for item in statement.find_all(exp.Table)} == {"sales_2023", "sales_2024", "city"}
    assert all(name.args["quoted"] for name in statement.find_all(exp.Identifier) if name.name != "_t")
    unions = [union for union in statement.find_all(exp.Union) if "sales_2024" in union.sql()]
    assert unions
    assert not any(union.args["distinct"] for union in unions)
    assert ('`or"der`' if dialect == "mysql" else '"or""der"') in text
    assert ("FULL OUTER JOIN" in text) == (how == "outer" and dialect != "mysql")
    assert statement.args["limit"].expression.this == "3"


def test_sql_of_a_dialect_that_is_none_or_cannot_say_it():
    plan = plan_joins([GAME, TEAM, CITY], KEYS)
    with pytest.raises(InvalidArgument, match=r"no SQL dialect 'postgre'.*mean postgres"):
        plan.sql(dialect="postgre")
    with pytest.raises(InvalidArgument, match="mysql has no full outer join"):
        plan.sql(how="outer", dialect="mysql")


def test_tables_of_one_name_in_two_databases_are_told_apart():
    one, two = table("city", "id", "name", unique=("id",), database="e"), table("city", "id", "name", rows=99)
    plan = plan_joins([one, two], [KeyPair("d.city", ("id",), "e.city", ("id",), 0.9)])
    assert set(plan.column_names().values()) == {"id", "d.city.name", "e.city.name"}
    assert '"d"."city" AS "d.city"' in plan.sql()
    with pytest.raises(TableNotFound, match="two tables are called 'city'"):
        plan.source("city")


def test_a_tie_that_stays_is_said():
    """A delivery is reached from an order through its shipper or its customer, each in one region."""
    order = table("order", "order_id", "shipper_id", "customer_id", rows=50, unique=("order_id",))
    shipper = table("shipper", "shipper_id", "region_id", rows=5, unique=("shipper_id",))
    customer = table("customer", "customer_id", "region_id", rows=30, unique=("customer_id",))
    region = table("region", "region_id", rows=4, unique=("region_id",))
    keys = [
        key("order.shipper_id", "shipper.shipper_id"),
        key("order.customer_id", "customer.customer_id"),
        key("shipper.region_id", "region.region_id"),
        key("customer.region_id", "region.region_id"),
    ]
    plan = plan_joins([order, shipper, customer, region], keys)
    assert "customer.region_id = region.region_id" in joins(plan)
    assert any("shipper.region_id = region.region_id" in joins(other) for other in plan.ambiguous)
    assert set(plan.ambiguous) <= set(plan.alternatives)
    surer = [key("customer.region_id", "region.region_id", 0.99), *keys[:3]]
    assert plan_joins([order, shipper, customer, region], surer).ambiguous == ()


def test_the_main_role_leads_wherever_its_column_stands():
    for columns in (("home_team_id", "away_team_id"), ("away_team_id", "home_team_id")):
        game = table("game", "id", *columns, rows=300, unique=("id",))
        assert joins(plan_joins([game, TEAM], KEYS)) == ["game.home_team_id = team.id"]


def test_a_column_called_like_its_own_table_is_the_other_role():
    friend = table("friend", "friend_id", "student_id", rows=30)
    pupil = table("pupil", "id", rows=20, unique=("id",))
    keys = [key("friend.friend_id", "pupil.id"), key("friend.student_id", "pupil.id")]
    assert joins(plan_joins([friend, pupil], keys)) == ["friend.student_id = pupil.id"]


def test_a_word_of_the_question_beats_no_surer_and_no_declared_key():
    items = table("order_items", "order_item_id", "order_id", "product_id", rows=60, unique=("order_item_id",))
    orders = table("orders", "order_id", rows=60, unique=("order_id",))
    words = "orders with at least three distinct products".split()
    doubtful = key("order_items.product_id", "orders.order_id", 0.52)
    declared = KeyPair(
        "d.order_items", ("order_id",), "d.orders", ("order_id",), 1.0, Evidence(origin="declared", name=1.0)
    )
    for sure in (declared, key("order_items.order_id", "orders.order_id", 0.99)):
        hints = role_hints([doubtful, sure], words)
        assert hints == {doubtful: 3.0}
        plan = plan_joins([items, orders], [doubtful, sure], role_hints=hints)
        assert joins(plan) == ["order_items.order_id = orders.order_id"]
        assert len(plan.ambiguous) == (sure is not declared)  # the word is said to name another
    nearly = key("order_items.product_id", "orders.order_id", 0.99)
    hints = role_hints([nearly, declared], words)
    assert joins(plan_joins([items, orders], [nearly, declared], role_hints=hints)) == [
        "order_items.order_id = orders.order_id"
    ]


def test_a_bridge_of_sure_keys_beats_a_step_that_is_no_key():
    orders, products = table("orders", "order_id", unique=("order_id",)), table("products", "id", unique=("id",))
    items = table("items", "order_id", "product_id", rows=60)
    sure = [key("items.order_id", "orders.order_id", 1.0), key("items.product_id", "products.id", 1.0)]
    for score in (0.0005, 0.001, 0.2):
        keys = [*sure, key("products.id", "orders.order_id", score)]
        plan = plan_joins([orders, products], keys, bridges=[items])
        assert plan.bridges == ("d.items",)
        assert plan.score == 1.0
    # Without a bridge a step that may be a key is taken, and one that is none is not.
    assert joins(plan_joins([orders, products], keys)) == ["products.id = orders.order_id"]
    with pytest.raises(NotConnected):
        plan_joins([orders, products], [key("products.id", "orders.order_id", 0.0005)])


@pytest.mark.parametrize(("score", "is_direct"), [(0.45, True), (0.31, True), (0.29, False)])
def test_a_direct_key_of_a_low_chance_goes_before_a_bridge(score: float, is_direct: bool):
    visits, museums = table("visits", "town", "ref", rows=90), table("museums", "ref_no", "place", rows=40)
    towns = table("towns", "town", "name", unique=("town", "name"))
    sure = [key("visits.town", "towns.town", 0.95), key("museums.place", "towns.name", 0.95)]
    plan = plan_joins([visits, museums], [*sure, key("visits.ref", "museums.ref_no", score)], bridges=[towns])
    assert (joins(plan) == ["visits.ref = museums.ref_no"]) == is_direct


@pytest.mark.parametrize("department", ["department", "unit", "team"])
def test_a_frame_is_joined_by_its_own_key_though_another_is_more_plainly_named(department: str):
    random = np.random.default_rng(0)
    employee = pd.DataFrame({"emp_id": range(101, 141), "emp_name": [f"e{i}" for i in range(40)]})
    heads = random.permutation(employee["emp_id"])
    unit = pd.DataFrame({"dept_id": range(1, 9), "dept_name": list("abcdefgh"), "emp_id": heads[:8]})
    professor = pd.DataFrame({"emp_id": heads[:20], "dept_id": random.integers(1, 9, 20)})
    plan = join_plan({"professor": professor, department: unit, "employee": employee})
    assert {str(step).replace("frames.", "") for step in plan.steps} == {
        "professor.emp_id = employee.emp_id",
        f"professor.dept_id = {department}.dept_id",
    }
    assert plan.ambiguous == ()
