"""A table that is joined once for each of its roles, in every engine, beside two merges of pandas."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.errors import (
    AmbiguousJoin,
    FanOut,
    InvalidArgument,
    RowsLost,
    RowsLostWarning,
    TablesStackedWarning,
)
from tagframe.joins import JoinPlan, keys_on
from tagframe.merging import plan_tables, run_plan
from tests import opened_in

pytest.importorskip("duckdb")

ORDERS = pd.DataFrame(
    {
        "order_id": range(1, 9),
        "buyer_id": pd.array([1, 2, 3, 1, None, 5, 6, 2], "Int64"),
        "seller_id": pd.array([2, 3, 4, 4, 1, 99, None, 2], "Int64"),
        "courier_id": pd.array([6, 6, None, 1, 2, 3, 4, 5], "Int64"),
        "name": [f"order {n}" for n in range(8)],
    }
)
USERS = pd.DataFrame(
    {
        "user_id": range(1, 7),
        "name": ["Ann", "Bo", "Cy", "Di", None, "Fay"],
        "city_id": pd.array([1, 2, None, 1, 2, 3], "Int64"),
    }
)
CITIES = pd.DataFrame({"city_id": [1, 2, 3], "city": ["Brno", "Oslo", "Rome"]})
TABLES = {"orders": ORDERS, "users": USERS, "cities": CITIES}
ON = ["orders.buyer_id = users.user_id as buyer", "orders.seller_id = users.user_id as seller"]
THREE = [*ON, "orders.courier_id = users.user_id as courier"]
TYPES = {"orders": "order_id int, buyer_id bigint, seller_id bigint, courier_id bigint, name text"}


def gold(roles: list[str], how: str = "inner") -> pd.DataFrame:
    """One merge of pandas for each role; nulls match nothing."""
    found = ORDERS.rename(columns={"name": "orders.name"})
    for role in roles:
        theirs = USERS.rename(columns={"user_id": f"{role}_id", **{c: f"{role}.{c}" for c in ("name", "city_id")}})
        matched = found.dropna(subset=[f"{role}_id"]).merge(theirs, on=f"{role}_id", how=how)  # type: ignore[call-overload]
        lone = found[found[f"{role}_id"].isna()] if how == "left" else found.iloc[:0]
        found = pd.concat([matched, lone]).sort_values("order_id")
    return found.reset_index(drop=True)


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as every source has them, in the order of the columns' names and of the orders."""
    shown = frame[sorted(frame)].astype(object)
    cells = [tuple(None if pd.isna(cell) else str(cell) for cell in row) for row in shown.itertuples(index=False)]
    return sorted(cells, key=lambda row: int(row[sorted(frame).index("order_id")] or 0))


@pytest.fixture(scope="module")
def sources(postgres, tmp_path_factory) -> dict[str, tf.Corpus]:
    folder = tmp_path_factory.mktemp("roles")
    return {
        "frames": tf.open_corpus({f"frames.{name}": frame for name, frame in TABLES.items()}),
        "sqlite": opened_in.sqlite(TABLES, folder / "shop"),
        "duckdb": opened_in.lake(TABLES, folder / "lake"),
        "postgres": opened_in.postgres(postgres.url(), TABLES, analysed=True, schema="roles", types=TYPES),
        "mixed": opened_in.mixed(TABLES, folder / "mixed"),
    }


def planned(
    corpus: tf.Corpus, on: list[str], tables: tuple[str, ...] = ("orders", "users"), **options: Any
) -> JoinPlan:
    profiles = [next(profile for profile in corpus if profile.name == name) for name in tables]
    given = keys_on(on, [NamedTable.of(profile) for profile in profiles])
    return plan_tables(corpus, [profile.id for profile in profiles], given=given, **options)


@pytest.mark.parametrize("source", ["frames", "sqlite", "duckdb", "postgres", "mixed"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_two_roles_are_two_merges_of_pandas_in_every_engine(sources, source, how):
    corpus = sources[source]
    plan = planned(corpus, ON)
    expected, ran = gold(["buyer", "seller"], how), set()
    for by in (None, "memory", "engine", "across"):
        try:
            frame, report = run_plan(plan, corpus, how=how, by=by, on_loss="allow")  # type: ignore[arg-type]
        except tf.errors.WayNotPossible:
            continue
        ran.add(by)
        assert {*frame} == {*expected}
        assert rows(frame) == rows(expected), by
        buyer, seller = report.steps
        assert (buyer.null_keys, seller.fan_out) == (1, 1.0)
        assert buyer.right.endswith("users.user_id as buyer")
        assert (buyer.matched, buyer.unmatched_right) == (7, 1)
        assert (seller.matched, seller.unmatched_left) == ((5, 2) if how == "inner" else (6, 2))
        assert report.lost == (3 if how == "inner" else 0)
    wanted = {"frames": {"memory"}, "mixed": {"memory", "across"}}.get(source, {"memory", "engine", "across"})
    assert wanted <= ran


@pytest.mark.parametrize("source", ["frames", "sqlite", "duckdb", "postgres", "mixed"])
def test_conditions_limits_and_columns_of_a_role(sources, source):
    corpus = sources[source]
    plan = planned(corpus, THREE)
    expected = gold(["buyer", "seller", "courier"], "left")
    for by in (None, "memory", "engine", "across"):
        try:
            frame, _ = run_plan(
                plan,
                corpus,
                how="left",
                by=by,
                where={"seller.name": "Di"},
                columns=["order_id", "buyer.name", "courier.name"],  # type: ignore[arg-type]
            )
            few, _ = run_plan(plan, corpus, how="left", by=by, limit=3, columns=["order_id", "seller.name"])  # type: ignore[arg-type]
        except tf.errors.WayNotPossible:
            continue
        assert rows(frame) == rows(expected.loc[expected["seller.name"] == "Di", [*frame]]), by
        assert len(few) == 3
        assert {*rows(few)} <= {*rows(expected[[*few]])}
    if source == "frames":
        frame, _ = run_plan(plan, corpus, how="left", where="`buyer.name` == 'Ann' and `seller.name` == 'Di'")
        assert frame["order_id"].tolist() == [4]


@pytest.mark.parametrize("source", ["sqlite", "duckdb", "postgres"])
def test_the_sql_of_a_plan_runs_and_gives_the_same_rows(sources, source):
    corpus = sources[source]
    plan = planned(corpus, ON)
    frame = tf.exec_sql(corpus)(plan.sql(dialect=source))
    assert rows(frame) == rows(gold(["buyer", "seller"]))


def test_a_table_that_joins_further_is_joined_for_the_role_that_is_asked(sources):
    corpus = sources["sqlite"]
    on = [*ON, "buyer.city_id = cities.city_id as home", "seller.city_id = cities.city_id as depot"]
    frame, _ = run_plan(planned(corpus, on, ("orders", "users", "cities")), corpus, how="left")
    home = USERS.merge(CITIES, on="city_id", how="left").set_index("user_id")["city"]
    assert frame["home.city"].isna().tolist() == ORDERS["buyer_id"].map(home).isna().tolist()
    assert frame["home.city"].dropna().tolist() == ORDERS["buyer_id"].map(home).dropna().tolist()
    assert frame["depot.city"].dropna().tolist() == ORDERS["seller_id"].map(home).dropna().tolist()
    once = planned(corpus, [*ON, "seller.city_id = cities.city_id"], ("orders", "users", "cities"))
    assert [step.base.rpartition(" ")[2] for step in once.steps if step.table == "s.cities"] == ["seller"]
    # Not asked: it is a tie, and said.
    tie = planned(corpus, ON, ("orders", "users", "cities"))
    assert len(tie.ambiguous) == 1
    with pytest.raises(AmbiguousJoin, match=r"users\.city_id as (buyer|seller) = s\.cities\.city_id"):
        run_plan(tie, corpus, on_ambiguous="raise")
    with pytest.raises(InvalidArgument, match=r"users is joined as buyer and seller, .* as in buyer\.city_id"):
        planned(corpus, [*ON, "users.city_id = cities.city_id"], ("orders", "users", "cities"))


def test_a_table_may_refer_to_itself():
    staff = pd.DataFrame(
        {
            "employee_id": [1, 2, 3, 4],
            "manager_id": pd.array([None, 1, 1, 9], "Int64"),
            "name": ["Ann", "Bo", "Cy", "Di"],
        }
    )
    on = "employee.manager_id = employee.employee_id as manager"
    frame = tf.merge({"employee": staff}, on=on, how="left", columns=["employee.name", "manager.name"])
    assert frame["employee.name"].tolist() == ["Ann", "Bo", "Cy", "Di"]
    assert frame["manager.name"].fillna("-").tolist() == ["-", "Ann", "Ann", "-"]
    with pytest.warns(RowsLostWarning, match="2 of 4 rows"):
        frame = tf.merge({"employee": staff}, on=on)
    assert frame["employee_id"].tolist() == [2, 3]
    with pytest.raises(RowsLost):
        tf.merge({"employee": staff}, on=on, on_loss="raise")


def test_a_composite_key_has_one_role():
    teams = pd.DataFrame({"league": ["a", "a", "b", "b"], "team": [1, 2, 1, 2], "title": ["a1", "a2", "b1", "b2"]})
    games = pd.DataFrame({"league": ["a", "b"], "home": [1, 2], "away": [2, 1]})
    on = [f"games.league = teams.league and games.{role} = teams.team as {role}_team" for role in ("home", "away")]
    frame = tf.merge({"games": games, "teams": teams}, on=on)
    assert frame[["home_team.title", "away_team.title"]].to_numpy().tolist() == [["a1", "a2"], ["b2", "b1"]]
    apart = ["games.league = teams.league as home team", "games.home = teams.team as home team"]
    frame = tf.merge({"games": games, "teams": teams}, on=apart)
    assert frame["home team.title"].tolist() == ["a1", "b2"]


def test_the_nearest_row_before_a_moment_has_a_role():
    rates = pd.DataFrame(
        {
            "code": ["EUR", "EUR", "USD"],
            "day": pd.to_datetime(["2024-01-01", "2024-02-01", "2024-01-15"]),
            "rate": [1, 2, 3],
        }
    )
    deals = pd.DataFrame({"paid_in": ["EUR"], "booked_in": ["USD"], "at": pd.to_datetime(["2024-02-03"])})
    on = [f"deals.{role}_in = rates.code and rates.day <= deals.at as {role}" for role in ("paid", "booked")]
    with pytest.raises(InvalidArgument):
        tf.merge({"deals": deals, "rates": rates}, on=on)  # the role stands behind the other table
    on = [f"deals.{role}_in = rates.code and deals.at >= rates.day as {role}" for role in ("paid", "booked")]
    frame = tf.merge({"deals": deals, "rates": rates}, on=on)
    assert frame[["paid.rate", "booked.rate"]].to_numpy().tolist() == [[2, 3]]


def test_a_role_may_be_aggregated_and_its_repeated_rows_are_refused():
    visits = pd.DataFrame({"who": [1, 1, 2], "cost": [10, 20, 5]})
    pairs = pd.DataFrame({"pair": [1, 2], "left_id": [1, 2], "right_id": [2, 1]})
    frames = {"pairs": pairs, "visits": visits}
    on = ["pairs.left_id = visits.who as one", "pairs.right_id = visits.who as other"]
    with pytest.raises(FanOut, match=r"aggregate=\{'one': \{'cost': 'sum'\}\}"):
        tf.merge(frames, on=on)
    frame = tf.merge(frames, on=on, aggregate={"one": {"cost": "sum"}, "other": {"cost": "count"}})
    assert frame[["one.cost", "other.cost"]].to_numpy().tolist() == [[30, 1], [5, 2]]


def test_stacked_tables_have_roles_on_either_side():
    halves = {"users": USERS, "orders_2023": ORDERS.head(4), "orders_2024": ORDERS.tail(4)}
    frames = {name: halves[name] for name in ("orders_2023", "orders_2024", "users")}
    with pytest.warns(TablesStackedWarning):
        frame = tf.merge(frames, on=[text.replace("orders.", "orders_2023.") for text in ON], how="left")
    assert rows(frame[["order_id", "buyer.name", "seller.name"]]) == rows(
        gold(["buyer", "seller"], "left")[["order_id", "buyer.name", "seller.name"]]
    )
    frames = {"orders": ORDERS, "users_1": USERS.head(3), "users_2": USERS.tail(3)}
    frame = tf.merge(frames, on=[text.replace("= users.", "= users_1.") for text in ON], how="left", stack=True)
    assert rows(frame[["order_id", "buyer.name", "seller.name"]]) == rows(
        gold(["buyer", "seller"], "left")[["order_id", "buyer.name", "seller.name"]]
    )
    assert {"buyer.source_table", "seller.source_table"} <= {*frame}


@pytest.mark.parametrize("first", ["orders", "users"])
def test_the_start_may_not_be_a_table_with_roles_only(first):
    frames = {name: TABLES[name] for name in dict.fromkeys([first, "orders", "users"])}
    if first == "orders":
        assert tf.join_plan(frames, on=ON).start == "frames.orders"
        return
    with pytest.raises(InvalidArgument, match=r"starts from frames\.users, which is joined only as buyer and seller"):
        tf.merge(frames, on=ON)
    both = ["orders.buyer_id = users.user_id", ON[1]]
    with pytest.raises(FanOut):
        tf.merge(frames, on=both)


def test_one_reference_may_be_of_the_table_itself_and_the_other_of_a_role():
    frame = tf.merge({"orders": ORDERS, "users": USERS}, on=["orders.buyer_id = users.user_id", ON[1]], how="left")
    expected = gold(["buyer", "seller"], "left")
    assert frame["users.name"].fillna("-").tolist() == expected["buyer.name"].fillna("-").tolist()
    assert frame["seller.name"].fillna("-").tolist() == expected["seller.name"].fillna("-").tolist()
    assert "orders.name" in frame


def test_the_accessor_joins_in_roles_too():
    users = USERS.rename(columns={"name": "who"})
    frame = ORDERS.tag.merge(
        users, on=[f"frame_1.{role}_id = frame_2.user_id as {role}" for role in ("buyer", "seller")], how="left"
    )
    assert (
        frame["seller.who"].fillna("-").tolist()
        == gold(["buyer", "seller"], "left")["seller.name"].fillna("-").tolist()
    )
