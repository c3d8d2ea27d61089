"""Roles in texts, in plans and in what questions name."""

from __future__ import annotations

import pickle
import sqlite3
from dataclasses import replace

import pandas as pd
import pytest

import tagframe as tf
from tagframe.corpus.references import NamedTable
from tagframe.errors import AmbiguousJoinWarning, ColumnNotFound, InvalidArgument, TableNotFound
from tagframe.joins import keys_on, plan_tables
from tagframe.joins.key_text import text_of
from tagframe.joins.roles import role_name
from tagframe.keys import Evidence, KeyPair
from tagframe.retrieval import RetrievedTables
from tagframe.retrieval.retrieved import TableHit
from tagframe.retrieval.role_hints import role_hints

TABLES = [
    NamedTable("shop.orders", "orders", ("order_id", "buyer_id", "seller_id", "country", "sold as")),
    NamedTable("shop.users", "users", ("user_id", "country", "city_id", "a.b")),
    NamedTable("shop.cities", "cities", ("city_id", "city")),
]
ON = ["orders.buyer_id = users.user_id as buyer", "orders.seller_id = users.user_id as seller"]


@pytest.mark.parametrize(
    ("column", "table", "key", "role"),
    [
        ("buyer_id", "users", "user_id", "buyer"),
        ("home_team_api_id", "Team", "team_api_id", "home_team"),
        ("ShipVia", "Shippers", "ShipperID", "ship_via"),
        ("BillToAddressID", "Address", "AddressID", "bill_to"),
        ("team_id_away", "team", "id", "away_team"),
        ("id_seller", "users", "id", "seller"),
        ("first_date_key", "dim_date", "date_key", "first_date"),
        ("Käufer-Nr", "Kunden", "KdNr", "käufer"),
        ("created_by", "users", "user_id", "created_by"),
        ("id", "users", "user_id", "id"),
        ("goods_id", "goods", "goods_id", "goods"),
    ],
)
def test_the_name_of_a_role_is_what_its_column_says(column, table, key, role):
    assert role_name(column, table, key) == role


@pytest.mark.parametrize(
    "text",
    [
        "orders.buyer_id = users.user_id as buyer",
        "buyer_id = user_id AS buyer",
        'shop.orders.buyer_id=shop.users.user_id as "buyer"',
    ],
)
def test_one_key_may_be_written_in_several_ways(text):
    (key,) = keys_on(text, TABLES)
    assert (key.left, key.right) == ("shop.orders.buyer_id", "shop.users.user_id as buyer")


@pytest.mark.parametrize("role", ["buyer", "home team", "a.b", "Buyer's", "sold", "ORDER", "käufer", "1"])
def test_the_text_of_a_key_in_a_role_is_read_back(role):
    tables = [*TABLES, TABLES[1].as_role(role)]
    keys = keys_on([f"orders.buyer_id = users.user_id as {role}", f"{role}.city_id = cities.city_id"], TABLES)
    texts = [text_of(key, tables) for key in keys]
    assert texts[0] == f"orders.buyer_id = users.user_id as {role}"
    assert keys_on(texts, TABLES) == keys
    composite = keys_on(f"orders.country = users.country and orders.buyer_id = users.a.b as {role}", TABLES)
    assert keys_on(text_of(composite[0], tables), TABLES) == composite
    turned = composite[0].reversed()
    assert keys_on(text_of(turned, tables), TABLES) == [turned]
    assert composite[0].right_columns == ("country", "a.b")


@pytest.mark.parametrize(
    ("on", "message"),
    [
        (["orders.buyer_id = users.user_id as orders"], "a table is shop.orders"),
        (["orders.buyer_id = users.user_id as Users"], "a table is shop.users"),
        ([ON[0], "orders.seller_id = users.user_id as Buyer"], "a role of shop.users is called 'buyer'"),
        ([ON[0], "orders.country = cities.city as buyer"], "a role of shop.users is called 'buyer'"),
        ([ON[0], "orders.seller_id = users.user_id as buyer"], "buyer_id and seller_id of shop.orders are two roles"),
        (["orders.buyer_id = users.user_id as ''"], "names no role"),
        ([" and ".join(ON)], "one key joins one role, not buyer and seller"),
        ([f"{ON[0]} and orders.seller_id = users.user_id"], "buyer_id and seller_id of shop.orders are two roles"),
        (["orders.buyer_id = users.user_id and users.country = orders.country as buyer"], "must be between two tables"),
    ],
)
def test_a_role_that_is_not_clear_is_refused(on, message):
    with pytest.raises(InvalidArgument, match=message):
        keys_on(on, TABLES)


def test_unknown_names_in_a_role_are_named():
    with pytest.raises(ColumnNotFound, match=r"no column 'usr_id' in shop\.users"):
        keys_on("orders.buyer_id = users.usr_id as buyer", TABLES)
    with pytest.raises(TableNotFound, match="no table"):
        keys_on("orders.buyer_id = people.user_id as buyer", TABLES)
    with pytest.raises(TableNotFound, match="no table"):
        keys_on([ON[0], "seller.city_id = cities.city_id"], TABLES)


def test_names_that_contain_as_are_names():
    tables = [*TABLES, NamedTable("shop.known as", "known as", ("sold as new", "id"))]
    (key,) = keys_on("orders.sold as = known as.sold as new", tables)
    assert (key.left_columns, key.right_table, key.right_columns) == (("sold as",), "shop.known as", ("sold as new",))


def shop(**orders) -> dict[str, pd.DataFrame]:
    users = pd.DataFrame({"user_id": range(1, 41), "name": [f"user {n}" for n in range(40)]})
    keys = {"buyer_id": [n % 40 + 1 for n in range(200)], "seller_id": [n * 7 % 40 + 1 for n in range(200)]}
    return {"orders": pd.DataFrame({"order_id": range(1, 201), **(orders or keys)}), "users": users}


def test_a_plan_with_roles_is_written_and_read():
    plan = tf.join_plan(shop(), on=ON)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert [source.role for source in plan.sources] == ["", "buyer", "seller"]
    assert {source.table for source in plan.sources} == {"frames.orders", "frames.users"}
    again = tf.join_plan(shop(), on=[str(step) for step in plan.steps])
    assert again == plan
    assert 'JOIN "users" AS "buyer"' in plan.sql()
    picture = plan._repr_html_()
    assert ">buyer<" in picture
    assert "users, 40 rows" in picture
    assert plan.find_column("buyer.name") == ("frames.users as buyer", "name")
    with pytest.raises(ColumnNotFound, match=r"write one of 'buyer\.name', 'seller\.name'"):
        plan.find_column("users.name")
    with pytest.raises(TableNotFound, match=r"does not join frames\.users as agent"):
        plan.use("orders.seller_id = users.user_id as agent")
    used = plan.use("orders.order_id = users.user_id as seller")
    assert [step.base_columns for step in used.steps if step.table.endswith("seller")] == [("order_id",)]


def test_names_of_columns_are_unique_whatever_else_has_a_name():
    frames = shop()
    frames["orders"]["buyer.name"] = "a note"
    plan = tf.join_plan(frames, on=ON)
    names = [*dict.fromkeys(plan.column_names().values())]
    assert {"buyer.name", "frames.users as buyer.name", "seller.name"} <= {*names}
    merged = tf.merge(frames, on=ON)
    assert (merged["buyer.name"] == "a note").all()
    assert merged["frames.users as buyer.name"].iloc[0] == "user 0"


def test_all_roles_are_joined_where_they_are_asked_for():
    fixed = [n % 40 + 1 for n in range(200)]
    frames = shop(buyer_user_id=fixed, seller_user_id=fixed[::-1], user_id=fixed[50:] + fixed[:50])
    merged = tf.merge(frames, roles="all")
    users = frames["users"].set_index("user_id")["name"]
    for column, name in (
        ("buyer_user_id", "buyer_user.name"),
        ("seller_user_id", "seller_user.name"),
        ("user_id", "users.name"),
    ):
        shown = name if name in merged else "user.name"
        assert merged[shown].tolist() == frames["orders"][column].map(users).tolist()
    assert tf.join_plan(frames, roles="all").ambiguous == ()
    with pytest.raises(InvalidArgument, match="roles must be 'all' or None; got 'buyer'"):
        tf.merge(frames, roles="buyer")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="pass roles= or plan="):
        tf.merge(frames, roles="all", plan=tf.join_plan(shop(), on=ON))


def cells(step: int, values: int, rows: int = 200) -> list[int]:
    return [n * step % values + 1 for n in range(rows)]


def warehouse() -> dict[str, pd.DataFrame]:
    return {
        "sales": pd.DataFrame({"s_sold_day_sk": cells(1, 30), "s_customer_sk": cells(3, 40), "s_paid": range(200)}),
        "customer": pd.DataFrame({"c_customer_sk": range(1, 41), "c_first_day_sk": cells(1, 30, 40),
                                  "c_last_day_sk": cells(7, 30, 40)}),
        "day": pd.DataFrame({"d_day_sk": range(1, 31), "d_month": [1] * 30, "d_week": [n // 7 for n in range(30)]}),
    }  # fmt: skip


def test_a_table_in_roles_gives_no_roles_to_others():
    frames = warehouse()
    buyers = {"s_buyer_customer_sk": cells(1, 40), "s_payer_customer_sk": cells(7, 40)}
    frames["sales"] = frames["sales"].drop(columns="s_customer_sk").assign(**buyers)
    plan = tf.join_plan(frames, roles="all")
    assert {source.called for source in plan.sources} == {"sales", "buyer_customer", "payer_customer", "day"}
    assert "frames.sales.s_sold_day_sk = frames.day.d_day_sk" in map(str, plan.steps)


def test_a_table_that_another_has_in_roles_is_still_joined_by_itself():
    plan = tf.join_plan(warehouse(), roles="all")
    assert {source.called for source in plan.sources} == {"sales", "customer", "day", "first_day", "last_day"}
    assert "frames.sales.s_sold_day_sk = frames.day.d_day_sk" in map(str, plan.steps)
    merged = tf.merge(warehouse(), roles="all")
    assert merged["day.d_week"].tolist() == [(day - 1) // 7 for day in merged["s_sold_day_sk"]]


def test_two_tables_have_roles_of_their_own_each():
    frames = warehouse()
    frames["sales"]["s_paid_day_sk"] = cells(11, 30)
    plan = tf.join_plan(frames, roles="all")
    ends = {step.table.rpartition(" as ")[2]: step.base for step in plan.steps if " as " in step.table}
    assert ends == {"sold_day": "frames.sales", "paid_day": "frames.sales",
                    "first_day": "frames.customer", "last_day": "frames.customer"}  # fmt: skip


@pytest.fixture
def games(tmp_path) -> tf.Corpus:
    """A declared key for each role, in SQLite."""
    with sqlite3.connect(tmp_path / "league.sqlite") as file:
        file.executescript(
            """CREATE TABLE team (team_id INTEGER PRIMARY KEY, title TEXT);
            CREATE TABLE game (game_id INTEGER PRIMARY KEY, home_id INT REFERENCES team, away_id INT REFERENCES team,
            referee_id INT REFERENCES team);
            INSERT INTO team VALUES (1, 'Ajax'), (2, 'Brno'), (3, 'Celje');
            INSERT INTO game VALUES (1, 1, 2, 3), (2, 2, 3, NULL), (3, 3, 1, 2)"""
        )
    file.close()
    return tf.open_corpus(tmp_path / "league.sqlite", progress=False)


def found(corpus: tf.Corpus, question: str, anchor: str | None = None) -> RetrievedTables:
    ids = [id for id in ("league.game", "league.team") if id != anchor]
    return RetrievedTables(question, tuple(TableHit(id, 1.0) for id in ids), corpus, anchor)


def test_a_question_that_names_two_roles_joins_both(games):
    merged = found(games, "titles of the home and the away team of each game").merge()
    assert merged["home.title"].tolist() == ["Ajax", "Brno", "Celje"]
    assert merged["away.title"].tolist() == ["Brno", "Celje", "Ajax"]
    assert not [name for name in merged if name.startswith("referee.")]
    one = found(games, "titles of the away team of each game").join_plan
    assert [step.base_columns for step in one.steps] == [("away_id",)]
    assert not any(source.role for source in one.sources)
    with pytest.warns(AmbiguousJoinWarning, match="equally likely"):
        found(games, "titles of the teams of each game").merge()


def test_all_roles_of_found_tables(games):
    merged = found(games, "teams of each game").merge(roles="all", how="left")
    assert merged["referee.title"].fillna("-").tolist() == ["Celje", "-", "Brno"]
    assert len([step for step in merged.tag.merge_report.steps if "league.team.team_id as" in step.right]) == 3
    on = ["game.home_id = team.team_id as host", "game.away_id = team.team_id as guest"]
    assert {"host.title", "guest.title"} <= {*found(games, "").merge(on=on)}
    # Nobody joins the table whose rows the plan starts from once more.
    plan = found(games, "home and away team", "league.team").join_plan
    assert plan.start == "league.team"
    assert len(plan.steps) == 1


def test_a_tool_takes_and_gives_roles(games):
    tools = games.tools()
    on = ["game.home_id = team.team_id as home", "game.away_id = team.team_id as away"]
    planned = tools.call("plan_joins", {"tables": ["game", "team"], "on": on})
    assert [join["on"] for join in planned["account"]["joins"]] == [
        "game.away_id = team.team_id as away", "game.home_id = team.team_id as home"
    ]  # fmt: skip
    assert tools.call("run_sql", {"sql": planned["sql"]})["row_count"] == 3
    merged = tools.call("merge_tables", {"tables": ["game", "team"], "on": on, "where": {"home.title": "Brno"}})
    assert merged["rows"][0][merged["columns"].index("away.title")] == "Celje"


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        ("goals by players", ["scorer_id"]),
        ("goals and the goalies", ["goalie_id"]),
        ("scorers and goalies of goals", ["goalie_id", "scorer_id"]),
    ],
)
def test_a_reference_without_values_joins_nothing_unless_it_is_named(tmp_path, question, columns):
    path = tmp_path / "cup.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """create table players (player_id integer primary key, name text);
            create table goals (goal_id integer primary key, goalie_id integer references players,
                scorer_id integer references players);
            insert into players values (1, 'Ann'), (2, 'Bo'), (3, 'Cy');
            insert into goals values (1, null, 3), (2, null, 1), (3, null, 3);"""
        )
    connection.close()
    plan = tf.open_corpus(path).retrieve_tables(question, k=2).join_plan
    assert [step.base_columns[0] for step in plan.steps] == columns
    assert not plan.ambiguous


PEOPLE = pd.DataFrame(
    {
        "person_id": range(201, 221),
        "name": [f"N{n}" for n in range(20)],
        "boss_id": pd.array([None, *(201 + n // 3 for n in range(19))], "Int64"),
    }
)


@pytest.mark.parametrize(
    ("question", "is_joined"),
    [
        ("each person and their boss", True),
        ("Who manages each person?", True),
        ("how many persons", False),
        ("persons without a boss", False),
    ],
)
def test_a_table_that_refers_to_itself_is_joined_as_the_role_that_is_named(question, is_joined):
    found = tf.open_corpus({"person": PEOPLE}).retrieve_tables(question, k=1)
    frame = found.merge(on_loss="allow")
    assert ("boss.name" in frame) == is_joined
    assert "boss.name" in found.merge(roles="all", on_loss="allow")


ELECTIONS = pd.DataFrame(
    {
        "election_id": range(301, 341),
        "previous_parliament_election_id": pd.array([None, *(301 + n for n in range(39))], "Int64"),
        "turnout": [0.5 + n / 100 for n in range(40)],
    }
)


@pytest.mark.parametrize(
    ("question", "is_joined"),
    [
        ("turnout of the elections of the parliament", False),
        ("turnout of each election and of the previous parliament election", True),
    ],
)
def test_one_word_of_several_names_no_reference_of_a_table_to_itself(question, is_joined):
    frame = tf.open_corpus({"election": ELECTIONS}).retrieve_tables(question, k=1).merge(on_loss="allow")
    assert ("previous_parliament.turnout" in frame) == is_joined


@pytest.mark.parametrize(
    ("question", "named"), [("teams of the Adams Division", ["div"]), ("both conferences", ["conf"]), ("the widow", [])]
)
def test_a_role_may_be_short_for_the_word_of_the_question(question, named):
    keys = {one: KeyPair("l.team", (f"{one}_id",), "l.abbrev", ("code",)) for one in ("div", "conf", "win")}
    assert [*role_hints([*keys.values()], question.split())] == [keys[role] for role in named]


def test_a_table_does_not_refer_to_rows_of_its_own_that_repeat():
    """Each party has a row of the election, and of the one before."""
    votes = [
        (2000 + 4 * n, 1996 + 4 * n if n else None, party, n * 7 + party) for n in range(9) for party in range(1, 9)
    ]
    votes = pd.DataFrame(votes, columns="election_id previous_election_id party_id votes".split())
    parties = pd.DataFrame({"party_id": range(1, 9), "family": list("abcdefgh")})
    found = tf.open_corpus({"election": votes, "party": parties}).retrieve_tables("Votes by previous family", k=2)
    assert len(found.merge()) == 72


def test_all_roles_are_those_of_a_table_that_refers_to_itself_too():
    frame = tf.merge({"person": PEOPLE}, roles="all", how="left").set_index("person_id")
    names = PEOPLE.set_index("person_id")["name"]
    assert (
        frame["boss.name"].dropna().to_dict() == PEOPLE.set_index("person_id")["boss_id"].dropna().map(names).to_dict()
    )


def test_another_table_with_a_column_of_the_name_is_meant_first():
    teams = pd.DataFrame({"team_id": range(31, 36), "boss_id": [201, 202, 203, 204, 205]})
    plan = tf.open_corpus({"person": PEOPLE, "team": teams}).retrieve_tables("the boss of each team", k=2).join_plan
    assert [step.left for step in plan.steps] == ["frames.team.boss_id"]


@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
def test_three_roles_that_a_question_names_are_joined_though_their_names_are_unlike_the_table():
    people = pd.DataFrame({"person_id": range(1, 61), "name": [f"P{i}" for i in range(60)]})
    sides = {f"{side}_id": [1 + (i * step) % 60 for i in range(240)] for side, step in
             (("judge", 7), ("plaintiff", 11), ("defendant", 13))}  # fmt: skip
    corpus = tf.open_corpus({"cases": pd.DataFrame({"case_id": range(240), **sides}), "people": people})
    asked = "Names of the judge, the plaintiff and the defendant of each case"
    frame = corpus.retrieve_tables(asked, k=1).add("cases", "people").merge()
    for side in ("judge", "plaintiff", "defendant"):
        right = frame[f"{side}_id"].map(people.set_index("person_id")["name"])
        assert frame[f"{side}.name"].tolist() == right.tolist()


def test_a_table_that_refers_to_itself_is_not_said_to_differ_from_itself(recwarn):
    staff = pd.DataFrame(
        {"emp_id": range(1, 51), "boss_id": [None] + [1 + i // 3 for i in range(49)], "pay": range(50)}
    )
    corpus = tf.open_corpus({"staff": staff.assign(name=[f"E{i}" for i in range(50)])})
    frame = corpus.retrieve_tables("Each employee and the name of their boss", k=1).add("staff").merge(how="left")
    assert frame["boss.name"].notna().sum() == 49
    assert not [one for one in recwarn if "differs" in str(one.message)]


def test_each_role_is_joined_by_its_own_column_though_the_key_is_unlikely():
    codes = [f"{one}{other}" for one in "ABCDEF" for other in "KLMNOP"]
    borders = pd.DataFrame({"country1": codes[:30], "country2": codes[6:]})
    economy = pd.DataFrame({"country": codes, "gdp": range(36)})
    corpus = tf.open_corpus({"borders": borders, "country": pd.DataFrame({"code": codes}), "economy": economy})
    sound = Evidence(contained=1.0, uniqueness=1.0, chance=0.0001)
    ends = [("borders", "country1"), ("borders", "country2"), ("economy", "country")]
    keys = [KeyPair(f"frames.{table}", (name,), "frames.country", ("code",), 1.0, sound) for table, name in ends]
    keys += [replace(key, right_table="frames.economy", right_columns=("country",), score=0.001) for key in keys[:2]]
    plan = plan_tables(corpus, corpus.tables["id"].tolist(), keys=keys, roles=lambda some: some)
    joined = {step.table: step.left for step in plan.steps if "economy" in step.table}
    assert sorted(joined.values()) == ["frames.borders.country1", "frames.borders.country2"]
