"""Rows without a partner: by how='anti', by a plan, and by a question that denies a table."""

import re
import warnings

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import DoubtfulJoinWarning, FanOut, InvalidArgument
from tagframe.retrieval import RetrievedTables, TableHit
from tagframe.retrieval.denied import denies, tables_denied, tables_maybe_denied

CUSTOMERS = pd.DataFrame({"customer_id": [11, 12, 13, 14], "town": ["Brno", "Cheb", "Brno", "Opava"]})
ORDERS = pd.DataFrame({"order_id": [501, 502, 503], "customer_id": [11, 11, 13], "year": [2020, 2021, 2021]})
TOWNS = pd.DataFrame({"town": ["Brno", "Cheb", "Opava"], "region": ["South", "West", "North"]})
FRAMES = {"customers": CUSTOMERS, "orders": ORDERS, "towns": TOWNS}


def test_rows_without_a_partner_keep_their_own_columns():
    frame = tf.merge({"customers": CUSTOMERS, "orders": ORDERS}, how="anti")
    expected = CUSTOMERS[~CUSTOMERS["customer_id"].isin(ORDERS["customer_id"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, expected)
    assert repr(frame.tag.merge_report).startswith(
        "Rows of frames.customers without a row in frames.orders.\nMerged from frames.customers (4 rows):"
    )


def test_where_on_the_absent_table_says_which_of_its_rows_count():
    frame = tf.merge({"customers": CUSTOMERS, "orders": ORDERS}, how="anti", where={"year": 2020})
    assert frame["customer_id"].tolist() == [12, 13, 14]


def test_a_plan_may_lack_one_table_and_join_the_others():
    plan = tf.join_plan(FRAMES).lacking("orders")
    frame = tf.merge(FRAMES, plan=plan)
    assert frame[["customer_id", "region"]].to_numpy().tolist() == [[12, "West"], [14, "North"]]
    assert len(tf.merge(FRAMES, plan=plan, how="inner", on_fanout="allow", on_loss="allow")) == 3


def test_a_plan_cannot_lack_its_start_or_what_connects_the_others():
    with pytest.raises(InvalidArgument, match=r"starts from frames\.customers"):
        tf.join_plan(FRAMES).lacking("customers")
    with pytest.raises(InvalidArgument, match=r"connects frames\.towns"):
        tf.join_plan({"orders": ORDERS, "customers": CUSTOMERS, "towns": TOWNS}).lacking("customers")


def test_an_anti_merge_that_removes_all_rows_or_none_warns():
    with pytest.warns(DoubtfulJoinWarning, match="every row has a partner there"):
        tf.merge({"towns": TOWNS, "customers": CUSTOMERS}, on="town", how="anti")


@pytest.mark.parametrize("names", [("customers", "orders"), ("orders", "customers")])
def test_the_advice_for_an_anti_merge_names_both_directions_and_works(names):
    found = tf.open_corpus({name: FRAMES[name] for name in names}).retrieve_tables("customers and orders", k=2)
    with pytest.raises(InvalidArgument, match="whose rows are wanted") as caught:
        found.merge(how="anti")
    first, other = re.findall(r"plan\.lacking\('(\S+)'\)\) gives rows of (\S+) without", str(caught.value))
    assert (first, other) == (("frames.orders", "frames.customers"), ("frames.customers", "frames.orders"))
    assert found.merge(found.join_plan.lacking(first[0]))["customer_id"].tolist() == [12, 14]


@pytest.mark.parametrize(
    ("where", "mapping", "customers"),
    [
        ("year == 2020", {"year": 2020}, [12, 13, 14]),
        ("year >= 2021 and town == 'Brno'", {"year": (">=", 2021), "town": "Brno"}, []),
        ("`year` in [2021]", {"year": [2021]}, [12, 14]),
        ("town in ['Brno', 'x']", {"town": ["Brno", "x"]}, []),
    ],
)
def test_a_text_on_the_absent_table_means_what_the_mapping_means(where, mapping, customers):
    frames = {"customers": CUSTOMERS, "orders": ORDERS}
    for some in (where, mapping):
        assert tf.merge(frames, how="anti", where=some)["customer_id"].tolist() == customers
    with pytest.raises(InvalidArgument, match="join the conditions by 'and'"):
        tf.merge(frames, how="anti", where=f"{where} or (year < 2000 and town == 'Brno')")


def test_a_key_that_repeats_on_both_sides_may_be_a_part_of_the_key():
    seen = pd.DataFrame({"town": ["Brno", "Brno", "Opava"], "year": [1, 2, 1]})
    with pytest.warns(DoubtfulJoinWarning, match="repeats in both tables"):
        tf.merge({"customers": CUSTOMERS, "seen": seen}, on="town", how="anti")


@pytest.mark.parametrize(
    ("question", "is_denied"),
    [
        ("How many customers never ordered anything?", True),
        ("Which customers are without orders?", True),
        ("customers with no order recorded", True),
        ("customers who haven't placed an order", True),
        ("Customers without a town who placed orders", False),
        ("non-customers and orders", False),
        ("How many customers have orders?", False),
        ("orders not by customers", True),
    ],
)
def test_a_denied_table_is_found_in_words(question, is_denied):
    columns = {"shop.customers": ["customer_id", "town"], "shop.orders": ["order_id", "customer_id"]}
    denied = "shop.customers" if question.startswith("orders") else "shop.orders"
    assert tables_denied(question, columns) == [denied] * is_denied


@pytest.mark.parametrize(
    ("question", "tables", "absent"),
    [
        ("Welche Kunden haben nie bestellt?", ["kunden", "bestellungen"], ["bestellungen"]),
        ("Clients sans commande", ["clients", "commandes"], ["commandes"]),
        ("Clientes sin pedidos", ["clientes", "pedidos"], ["pedidos"]),
        ("Quanti clienti non hanno nessun ordine?", ["clienti", "ordini"], ["ordini"]),
        ("Quanti clienti non hanno fatto alcun nuovo ordine?", ["clienti", "ordini"], ["ordini"]),
        ("Animals of the fish tagging that were never detected", ["tagging", "fish_detections"], ["fish_detections"]),
        ("Kunden der Laden-Liste ohne Bestellung", ["kunden", "laden_bestellungen"], ["laden_bestellungen"]),
        ("How many fish detections are not tagged?", ["tagging", "fish_detections"], ["tagging"]),
        ("How many fish were never fish of the lake?", ["lakes", "fish_detections"], ["lakes"]),
        ("Detections of fish that were never detected", ["lakes", "fish_detections"], []),
        ("Hoeveel klanten hebben geen bestelling?", ["klanten", "bestellingen"], ["bestellingen"]),
        ("Senadores da 56ª legislatura que não participaram da 55ª", ["f.56_senado", "f.55_senado"], ["f.55_senado"]),
        ("Members of the 12th house who were never in the 11th", ["f.house_12", "f.house_11"], ["f.house_11"]),
        ("Customers of 2024 who did not buy in 2023", ["f.sales_2023", "f.sales_2024"], ["f.sales_2023"]),
        ("Rated episodes that never went into a season", ["f.ratings", "seasons.Sheet1"], ["seasons.Sheet1"]),
        ("Teams without a postseason", ["teams", "teams_post", "series_post"], ["teams_post"]),
        ("Weapons without a crafting recipe", ["weapon_base", "weapon_craft"], ["weapon_craft"]),
        ("How many buses have no generator?", ["grid.bus", "grid.gen"], ["grid.gen"]),
        ("Haltestellen ohne Reisendenzahlen", ["haltestellen", "reisende_cut"], ["reisende_cut"]),
        ("Kunden ohne Rechnung", ["f.Kunden", "rechnungen.Tabelle1"], ["rechnungen.Tabelle1"]),
        ("How many artists were never tagged by anyone?", ["artists", "user_taggedartists"], ["user_taggedartists"]),
        ("How many elements have no ionic radius?", ["elements", "ionicradii"], ["ionicradii"]),
    ],
)
def test_a_question_of_any_language_chooses_the_rows(question, tables, absent):
    assert tables_denied(question, {name: ["id"] for name in tables}) == absent


def test_a_word_without_meaning_in_a_columns_name_ends_no_denial():
    tables = {"cirurgias": ["Nº Cirurgias de Ambulatório"], "partos": ["Nº Partos"]}
    assert tables_denied("Meses com cirurgias mas nenhum registo de partos", tables) == ["partos"]


@pytest.mark.parametrize(
    ("question", "tables", "absent"),
    [
        ("How many buses have no generator?", ["bus", "gen"], ["gen"]),
        ("Team seasons without a postseason record", ["Teams", "TeamsPost"], ["TeamsPost"]),
        ("Haltestellen, die in den Reisendenzahlen nie vorkommen", ["haltestellen", "reisende_cut"], ["reisende_cut"]),
        ("Welche Haltestellen in den Quartieren sind nicht barrierefrei?", ["haltestellen", "quartiere"], []),
        ("How many employees lack a department?", ["employees", "dept"], []),  # "dept" begins no word
        ("How many buses have a generator?", ["bus", "gen"], []),
        ("Cars without an airbag", ["cars", "ai"], []),  # two letters begin many words
    ],
)
def test_a_word_that_begins_with_a_tables_name_denies_it_where_no_other_word_does(question, tables, absent):
    assert tables_denied(question, {name: ["id"] for name in tables}) == absent


@pytest.mark.parametrize(
    ("question", "column"),
    [
        ("Personnes sans diplôme par commune", "Sans diplomes"),
        ("Visits with no shows", "no_shows"),
        ("Trabajadores sin contrato", "SinContrato"),
        ("Comuni con guariti senza somministrazione", "guariti_senza_somm"),
    ],
)
def test_a_denial_that_is_a_column_denies_no_table(question, column):
    tables = {"diplomes": ["code", column], "communes": ["code"]}
    assert tables_denied(question, tables) == tables_maybe_denied(question, tables) == []


@pytest.mark.parametrize(
    "question", ["Customers with no more than 5 orders", "Customers of order no. 12", "Not only customers"]
)
def test_bounds_deny_no_table(question):
    found = tf.open_corpus({"customers": CUSTOMERS, "orders": ORDERS}).retrieve_tables(question)
    assert not found.join_plan.absent


SHELVES = {
    "reader": pd.DataFrame({"reader_id": [1, 2, 3, 4], "reader": ["Ada", "Ben", "Cleo", "Dov"]}),
    "reader_loan": pd.DataFrame({"loan_id": [7, 8, 9], "reader_id": [1, 1, 3], "book_id": [20, 21, 20]}),
    "book": pd.DataFrame({"book_id": [20, 21, 22], "title": ["Dune", "Emma", "Ulysses"], "shelf_id": [5, 6, 6]}),
    "shelf": pd.DataFrame({"shelf_id": [5, 6], "aisle": ["north", "south"]}),
}


@pytest.mark.parametrize(
    ("question", "tables", "column", "values"),
    [
        ("Which readers have no book?", ("reader", "reader_loan", "book"), "reader", ["Ben", "Dov"]),
        ("Names of readers without a loan", ("reader", "reader_loan", "book"), "reader", ["Ben", "Dov"]),
        ("Which books have never had a reader?", ("reader", "reader_loan", "book"), "title", ["Ulysses"]),
        ("Books and their shelf without any loan", ("shelf", "reader_loan", "book"), "title", ["Ulysses"]),
        ("Readers without a book on a shelf", ("reader", "reader_loan", "book", "shelf"), "reader", ["Ben", "Dov"]),
    ],
)
def test_what_only_leads_to_a_denied_table_is_denied_with_it(question, tables, column, values):
    found = tf.open_corpus({name: SHELVES[name] for name in tables}).retrieve_tables(question).add(*tables)
    assert sorted(found.merge()[column]) == values


def test_cells_named_after_a_denial_choose_the_rows_that_count():
    found = tf.open_corpus(SHELVES).retrieve_tables("Which readers were never lent a book from the south aisle?")
    with pytest.warns(DoubtfulJoinWarning, match=r"only rows with \{'aisle': 'south'\} count"):
        frame = found.add(*SHELVES).merge()
    assert sorted(frame["reader"]) == ["Ben", "Cleo", "Dov"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulJoinWarning)
        frame = found.add(*SHELVES).merge(where={"aisle": ["north", "south"]})
    assert sorted(frame["reader"]) == ["Ben", "Dov"]


def test_a_denial_in_other_words_is_of_the_only_table_that_refers_to_the_named_one():
    sites = pd.DataFrame({"site_id": ["K1", "K2", "K3"], "name": ["north", "south", "west"]})
    frames = {"site": sites, "lp": pd.DataFrame({"lp": ["a", "b"], "site_id": ["K1", "K1"]})}
    hits = tuple(TableHit(f"frames.{name}", 0.0, (), 1.0) for name in frames)
    found = RetrievedTables("How many sites have no rocket pad?", hits, tf.open_corpus(frames))
    with pytest.warns(DoubtfulJoinWarning, match=r"without a row in frames\.lp: .*how='inner'"):
        assert found.merge()["site_id"].tolist() == ["K2", "K3"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(found.merge(how="inner")) == 2


def test_a_cell_that_is_called_as_its_denied_table_chooses_no_rows_of_it():
    sales = pd.DataFrame({"sale_id": [1, 2, 3], "buyer": [11, 12, 12], "kind": ["sale", "loan", "loan"]})
    frames = {"customers": CUSTOMERS.rename(columns={"customer_id": "buyer"}), "sales": sales}
    hits = tuple(TableHit(f"frames.{name}", 0.0, (), 1.0) for name in frames)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulJoinWarning)
        frame = RetrievedTables("Customers who never bought at a sale", hits, tf.open_corpus(frames)).merge()
    assert not {11, 12} & {*frame["buyer"]}


def test_a_table_that_may_not_be_needed_takes_no_row_without_a_partner_away():
    corpus = tf.open_corpus({**SHELVES, "prize": pd.DataFrame({"book_id": [20, 21], "prize": ["Nebula", "Booker"]})})
    chances = {"reader_loan": 0.9, "book": 0.9, "prize": 0.7}
    hits = tuple(TableHit(corpus.profile(name).id, 0.0, (), chance) for name, chance in chances.items())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = RetrievedTables("Which books are without a loan?", hits, corpus).merge()
    assert frame["title"].tolist() == ["Ulysses"]


@pytest.mark.filterwarnings("ignore::tagframe.errors.DoubtfulJoinWarning")
def test_rows_that_repeat_beside_a_denied_table_are_refused():
    visits = pd.DataFrame({"visit_id": range(7), "customer_id": [11, 11, 12, 12, 13, 14, 14]})
    payments = visits.rename(columns={"visit_id": "payment_id"}).assign(kind=["card", "cash", *["card"] * 5])
    frames = {"customers": CUSTOMERS, "visits": visits, "payments": payments, "orders": ORDERS.assign(way="online")}
    corpus = tf.open_corpus(frames)
    hits = tuple(TableHit(corpus.profile(name).id, 0.0, (), 1.0) for name in frames)
    question = "visits and card payments of customers who never placed online orders"
    with pytest.raises(FanOut):
        RetrievedTables(question, hits, corpus).merge()


def test_the_question_chooses_and_the_report_says_so():
    corpus = tf.open_corpus({"customers": CUSTOMERS, "orders": ORDERS})
    found = corpus.retrieve_tables("How many customers never placed an order?", k=2)
    assert "without a row in frames.orders" in " ".join(repr(found).split())
    frame = found.merge()
    assert frame["customer_id"].tolist() == [12, 14]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(found.merge(how="inner")) == 3


@pytest.mark.parametrize("years", [(2023, 2024), (2022, 2023, 2024)])
@pytest.mark.parametrize("question", ["Players who never took a penalty", "Players without a penalty in 2023 and 2024"])
def test_all_pieces_of_a_table_are_denied(question: str, years: tuple[int, ...]):
    players = pd.DataFrame({"player_id": range(1, 9), "name": list("abcdefgh")})
    taken = {2022: [1, 3], 2023: [1, 2], 2024: [2, 3, 4]}
    pieces = {
        f"penalties_{year}": pd.DataFrame(
            {"penalty_id": [10 * year + one for one in taken[year]], "player_id": taken[year], "minute": 5}
        )
        for year in years
    }
    found = tf.open_corpus({"players": players, **pieces}).retrieve_tables(question)
    assert found.merge()["player_id"].tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("Quantas ocorrências no estado do RJ envolveram helicópteros?", False),
        ("Quais são os alunos que estudam no Porto?", False),
        ("Quantos clientes não têm nenhum pedido no ano de 2020?", True),
        ("Quantos alunos sem bolsa moram no Rio?", True),
        ("Welche Kunden sind noch aktiv?", False),
        ("Wie viele Bestellungen gab es im Mai 2020?", False),
        ("Welche Kunden haben noch nie bestellt?", True),
        ("Combien de commandes ont été livrées en mai avec un bon ?", False),
        ("Combien de clients avec un bon n'ont jamais commandé en mai ?", True),
        ("Welke boeken zijn pas geleverd en niet later dan 2020?", False),
        ("¿Cuántos clientes no tienen pedidos?", True),
        ("Customers with no orders", True),
    ],
)
def test_a_word_that_denies_in_another_language_denies_nothing(question, does):
    assert denies(question) == does


def test_a_denial_of_all_found_tables_is_said_with_the_tables_that_may_have_the_wanted_rows():
    cards = pd.DataFrame(
        {"card_id": range(40), "match_id": [1 + n % 20 for n in range(40)], "colour": ["red", "blue"] * 20}
    )
    corpus = tf.open_corpus({"cup.cards": cards, "cup.matches": pd.DataFrame({"match_id": range(1, 31), "round": 1})})
    found = RetrievedTables("How many matches had no card?", (TableHit("cup.cards", 0.0),), corpus)
    with pytest.warns(DoubtfulJoinWarning, match=r"without one in cup\.cards.*: found\.add\('cup\.matches'\)$"):
        assert len(found.merge()) == 40
    assert len(found.add("cup.matches").merge()) == 10
