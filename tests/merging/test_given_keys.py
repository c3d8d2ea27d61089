"""Keys that the user gives as text, and the names that tables and columns go by."""

from __future__ import annotations

import pandas as pd
import pytest
from accounted import merged

import tagframe as tf
from tagframe.errors import ColumnNotFound, FanOut, InvalidArgument, NotConnected, TableNotFound
from tagframe.keys import KeyPair

ORDERS = pd.DataFrame({"id": [1, 2, 3], "buyer": [20, 10, 20], "agent": [10, 10, 20]})
CUSTOMERS = pd.DataFrame({"id": [10, 20], "name": ["Ann", "Bo"]})
SHOP = {"orders": ORDERS, "customers": CUSTOMERS}

GDP = pd.DataFrame({"country": ["cz", "cz", "at", "at"], "year": [2020, 2021, 2020, 2021], "gdp": [1.0, 2.0, 3.0, 4.0]})
POP = pd.DataFrame({"country": ["at", "cz", "cz"], "year": [2020, 2021, 2020], "people": [8, 11, 10]})


@pytest.mark.parametrize(
    "on",
    [
        "orders.buyer = customers.id",
        "customers.id=orders.buyer",
        "frames.orders.buyer = frames.customers.id",
        "ORDERS.Buyer = customers.ID",
        "buyer = id",
        ["buyer = customers.id"],
        KeyPair("frames.orders", ("buyer",), "frames.customers", ("id",), 0.2),
    ],
)
def test_a_key_pair_is_given_as_text(on):
    frame, report = merged(SHOP, on=on)
    assert frame["name"].tolist() == ["Bo", "Ann", "Bo"]
    assert [str(step.left) for step in report.steps] == ["frames.orders.buyer"]
    assert tf.join_plan(SHOP, on=on).steps[0].score == 1.0
    assert ORDERS.tag.merge(CUSTOMERS, on="buyer = frame_2.id")["name"].tolist() == ["Bo", "Ann", "Bo"]


def test_a_given_key_goes_before_any_that_is_found():
    assert merged(SHOP, on="agent = customers.id")[0]["name"].tolist() == ["Ann", "Ann", "Bo"]
    plan = tf.join_plan(SHOP, on="agent = customers.id")
    assert plan.alternatives == ()
    regions = pd.DataFrame({"region_id": [7, 8, 9], "customer_id": [20, 10, 30], "zone": ["n", "s", "e"]})
    frames = {**SHOP, "regions": regions}
    plan = tf.join_plan(frames, on="orders.agent = regions.customer_id")
    assert "frames.orders.agent = frames.regions.customer_id" in map(str, plan.steps)
    assert len(plan.steps) == 2


def test_columns_of_one_name_are_one_key_together():
    frame, report = merged([GDP, POP], on=["country", "year"], how="left")
    plain = GDP.merge(POP, on=["country", "year"], how="left")
    assert frame["people"].fillna(-1).tolist() == plain["people"].fillna(-1).tolist()
    assert report.steps[0].left == "frames.frame_1.(country, year)"
    same = ["frame_1.country = frame_2.country", "frame_2.year = frame_1.year"]
    assert merged([GDP, POP], on=same, how="left")[1].steps[0].left == report.steps[0].left
    text = "country = country and year = year"
    assert merged([GDP, POP], on=text, how="left")[1].steps[0].left == report.steps[0].left


def test_a_shared_column_joins_every_table_that_has_it():
    days = [pd.DataFrame({"day": [1, 2, 3], name: [0.5, 0.25, 0.75]}) for name in ("rain", "wind", "sun")]
    frame = tf.merge(*days, on="day")
    assert frame.equals(days[0].merge(days[1], on="day").merge(days[2], on="day"))


@pytest.mark.parametrize(
    ("frames", "on", "error", "says"),
    [
        (SHOP, "orders.buyr = customers.id", ColumnNotFound, "did you mean 'buyer'"),
        (SHOP, "order.buyer = customers.id", TableNotFound, "did you mean"),
        (SHOP, "byer = customers.id", ColumnNotFound, "did you mean 'buyer'"),
        (SHOP, "byer", ColumnNotFound, "did you mean 'buyer'"),
        (SHOP, "buyer", ColumnNotFound, r"only frames\.orders has a column 'buyer'"),
        (SHOP, "id = id = id", InvalidArgument, "a join must be written as"),
        (SHOP, "buyer = agent", InvalidArgument, "between two tables"),
        (SHOP, [], InvalidArgument, "list of these"),
        (SHOP, [7], InvalidArgument, "list of these"),
        ({**SHOP, "more": CUSTOMERS}, "buyer = id", InvalidArgument, "may mean"),
        ({**SHOP, "more": CUSTOMERS}, ["buyer = customers.id", "customers.name = more.name", "more.id = orders.agent"],
         InvalidArgument, "form a circle"),
        ({"a": GDP, "b": POP[["country"]], "c": POP[["year"]]}, ["country", "year"], ColumnNotFound,
         "no two tables have all of 'country', 'year'"),
    ],
)  # fmt: skip
def test_what_is_misspelt_or_ambiguous_is_said(frames, on, error, says):
    with pytest.raises(error, match=says):
        tf.merge(frames, on=on)


def test_a_plan_and_a_key_exclude_each_other():
    with pytest.raises(InvalidArgument, match="not both"):
        tf.merge(SHOP, on="buyer = customers.id", plan=tf.join_plan(SHOP, on="agent = customers.id"))


def test_a_miss_shows_the_call_that_takes_the_nearest_pair():
    left = pd.DataFrame({"who": ["Ann", "Bo", "Cy", "Di"], "x": [0.1, 0.2, 0.3, 0.4]})
    right = pd.DataFrame({"label": ["Ann", "Bo", "Ed", "Flo"], "y": [0.1, 0.5, 0.6, 0.7]})
    with pytest.raises(NotConnected) as miss:
        tf.merge({"left": left, "right": right})
    assert 'on="left.who = right.label"' in str(miss.value)
    assert tf.merge({"left": left, "right": right}, on="left.who = right.label", on_loss="allow")["who"].tolist() == [
        "Ann",
        "Bo",
    ]


def test_retrieved_tables_take_keys_as_text():
    found = tf.open_corpus({f"shop.{name}": frame for name, frame in SHOP.items()}).tables.tag.retrieve_tables(
        "Which customers bought orders?", k=2
    )
    assert found.merge(on="orders.agent = customers.id")["name"].tolist() == ["Ann", "Ann", "Bo"]
    assert found.merge(on="buyer = customers.id")["name"].tolist() == ["Bo", "Ann", "Bo"]
    with pytest.raises(InvalidArgument, match="not both"):
        found.merge(tf.join_plan(SHOP, on="buyer = customers.id"), on="buyer = customers.id")


def test_columns_and_where_take_the_names_of_the_result():
    films = pd.DataFrame({"id": [1, 2], "name": ["Alien", "Brazil"], "maker": [7, 8]})
    makers = pd.DataFrame({"id": [7, 8], "name": ["Scott", "Gilliam"]})
    frames = {"films": films, "makers": makers}
    frame = tf.merge(frames, on="films.maker = makers.id")
    assert list(frame.columns) == ["id", "films.name", "maker", "makers.name"]
    for column in frame.columns:
        pd.testing.assert_frame_equal(tf.merge(frames, on="films.maker = makers.id", columns=[column]), frame[[column]])
    chosen = tf.merge(frames, on="films.maker = makers.id", where={"id": 2, "makers.name": "Gilliam"})
    assert chosen["films.name"].tolist() == ["Brazil"]
    # "films.id" and "makers.id" mean what they meant before.
    both = tf.merge(frames, on="films.maker = makers.id", columns=["films.id", "makers.id"])
    assert both.to_dict("list") == {"id": [1, 2], "maker": [7, 8]}


def test_a_table_of_a_corpus_keeps_its_name():
    corpus = tf.open_corpus({"shop.orders": ORDERS.assign(name="order"), "shop.customers": CUSTOMERS})
    orders, customers = corpus.read("shop.orders"), corpus.read("shop.customers")
    frame = orders.tag.merge(customers, on="orders.buyer = customers.id")
    assert list(frame.columns) == ["id", "buyer", "agent", "orders.name", "customers.name"]
    assert frame.tag.merge_report.start == "shop.orders"
    half = ORDERS.assign(name="order").tag.merge(customers, on="buyer = customers.id")
    assert list(half.columns) == ["id", "buyer", "agent", "frame_1.name", "customers.name"]
    twice = tf.merge(customers, corpus.read("shop.customers"), on="id")
    assert list(twice.columns) == ["id", "customers.name", "frame_2.name"]
    assert tf.stack(customers, orders[["id", "name"]])["source_table"].tolist()[0] == "shop.customers"


def test_a_key_that_repeats_is_refused_where_its_column_has_a_namesake_beside():
    routes = pd.DataFrame({"port": ["P1", "P2", "P1"]})
    ports = pd.DataFrame({"city_port": ["P1", "P1", "P2", "P2"], "port": ["P1", "P3", "P2", "P4"]})
    with pytest.raises(FanOut, match=r"would repeat 3 rows of frames\.routes"):
        tf.merge({"routes": routes, "ports": ports}, on="routes.port = ports.city_port")
