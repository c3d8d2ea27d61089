"""A folder is one place: its files, workbooks and databases are found and joined together; nothing wrong is silent."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import NotConnected, TableLeftOutWarning, TagframeError
from tagframe.joins import corpus_keys
from tests.folders import FOLDERS, Folder, drawn, named

pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")
pytest.importorskip("xlsxwriter", reason="writes workbooks")

D = pd.DataFrame
ASKED = [(name, number) for name, folder in FOLDERS.items() for number in range(len(folder.asked))]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Each folder, opened once."""
    made = {}

    def corpus(name):
        if name not in made:
            root = tmp_path_factory.mktemp(name) / "root"
            root.mkdir()
            made[name] = tf.open_corpus(FOLDERS[name].write(root))
        return made[name]

    return corpus


def rows_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return sorted(map(tuple, frame.astype(str).to_numpy().tolist()))


def keys_in(corpus: tf.Corpus) -> set[str]:
    """The keys between databases."""
    database = {profile.id: profile.database for profile in corpus.profiles}
    keys = [key for key in corpus_keys(corpus) if database[key.left_table] != database[key.right_table]]
    return {f"{key.left} = {key.right}" for key in keys}


def opened(root, **files):
    root = root / "root"
    root.mkdir()
    return tf.open_corpus(
        Folder({path.replace("__", "/").replace("_DOT_", "."): d for path, d in files.items()}, []).write(root)
    )


@pytest.mark.parametrize(("name", "number"), ASKED, ids=[f"{name}-{number}" for name, number in ASKED])
def test_questions_over_a_folder(corpora, name, number):
    folder = FOLDERS[name]
    asked = folder.asked[number]
    found = corpora(name).retrieve_tables(asked.text)
    tables = {id for hit in found.tables for id in (hit.id, *hit.parts)}
    assert tables <= set(corpora(name).ids)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            frame = found.merge()
        except TagframeError:
            frame = None
    bridges = {source.id for plan in found.plans for source in plan.sources}
    assert asked.needs <= tables | bridges
    assert frame is not None
    # A question that is not in English gets all linked tables, and the merge says which of them it does not need.
    assert {one.category for one in said} <= {TableLeftOutWarning}
    gold = asked.gold(folder.frames("root")).rename(columns={"folder": "source_folder"})
    assert rows_of(frame[[*gold.columns]]) == rows_of(gold)


def test_a_folder_that_is_kept_apart_has_no_keys_between_its_databases(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    FOLDERS["support"].write(root)
    assert "support.Tickets.account_id = root.accounts.account_id" in keys_in(tf.open_corpus(root))
    assert not keys_in(tf.open_corpus(root, apart=True))


def test_a_file_alone_and_frames_are_no_place(tmp_path):
    root = FOLDERS["unlike"].write(tmp_path)
    assert {profile.place for profile in tf.open_corpus(root / "circus.sqlite").profiles} == {""}
    frames = {"one.people": D({"people_id": [1, 2]}), "two.people": D({"people_id": [1, 2]})}
    assert {profile.place for profile in tf.open_corpus(frames).profiles} == {""}


def test_files_that_only_together_are_whole_are_one_database(tmp_path):
    orders = D(
        {"order_id": range(1, 21), "customer_id": drawn(1, range(1, 9), 20), "item_id": drawn(2, range(1, 5), 20)}
    )
    corpus = opened(
        tmp_path,
        orders_DOT_csv=orders,
        people_DOT_sqlite={"customers": D({"customer_id": range(1, 9), "customer": named("Client", 8)})},
        stock_DOT_xlsx={"items": D({"item_id": range(1, 5), "item": named("Item", 4)})},
    )
    assert keys_in(corpus) == {
        "root.orders.customer_id = people.customers.customer_id",
        "root.orders.item_id = stock.items.item_id",
    }
    assert len(corpus.retrieve_tables("Which customers ordered which item?").merge()) == 20


def test_databases_that_are_whole_by_themselves_stay_apart(tmp_path):
    def shop(thing):
        customers = D({"customer_id": range(1, 9), f"{thing}_lover": named(thing, 8)})
        orders = D({"order_id": range(1, 21), "customer_id": drawn(1, range(1, 9), 20), f"{thing}_price": range(20)})
        return {
            "customers": customers,
            "orders": orders,
            thing: D({f"{thing}_id": range(9), f"{thing}_size": range(9)}),
        }

    def pets(thing):
        whole = shop(thing)
        return {**whole, "orders": whole["orders"].assign(**{f"{thing}_id": drawn(2, range(9), 20)})}

    assert not keys_in(opened(tmp_path, **{f"{thing}_DOT_sqlite": pets(thing) for thing in ("cat", "horse", "bird")}))


def test_the_same_tables_in_each_folder_refer_to_each_other_within_it(tmp_path):
    def year(of):
        orders = D({"order_id": range(1, 21), "customer_id": drawn(of, range(1, 9), 20), "city_id": [1, 2] * 10})
        return {"customers": D({"customer_id": range(1, 9), "customer": named("C", 8)}), "orders": orders}

    files = {f"{of}__{name}_DOT_csv": frame for of in (2022, 2023, 2024) for name, frame in year(of).items()}
    cities = D({"city_id": [1, 2], "city": ["Ulm", "Bonn"]})
    corpus = opened(tmp_path, **files, cities_DOT_csv=cities)
    assert keys_in(corpus) == {f"{of}.orders.city_id = root.cities.city_id" for of in (2022, 2023, 2024)}


def test_people_of_two_databases_are_not_the_same(corpora):
    assert not keys_in(corpora("unlike"))


def test_a_saved_folder_is_still_one_place(tmp_path, corpora):
    saved = corpora("support").save(tmp_path / "saved")
    assert keys_in(tf.open_corpus(saved)) == keys_in(corpora("support"))


def test_keys_follow_a_file_that_changed(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    FOLDERS["support"].write(root)
    assert "usage.events.account_id = root.accounts.account_id" in keys_in(tf.open_corpus(root))
    D({"account_id": range(900, 940), "company": named("Acme", 40)}).to_csv(root / "accounts.csv", index=False)
    assert not keys_in(tf.open_corpus(root))


def departments(first):
    return {
        f"{name}__{table}_DOT_csv": frame
        for position, name in enumerate(("marketing", "sales"))
        for table, frame in {
            "employees": D({"employee_id": range(1, 11), "full_name": [f"{name} {n}" for n in range(1, 11)]}),
            "incidents": D({"incident_id": range(1, 31), "employee_id": drawn(first + position, range(1, 11), 30)}),
        }.items()
    }


def test_ids_that_count_from_one_in_each_folder_are_joined_with_the_folder(tmp_path):
    corpus = opened(tmp_path, **departments(5))
    frame = corpus.retrieve_tables("Which employees had incidents?").merge()
    assert len(frame) == 60
    assert [name.split()[0] for name in frame["full_name"]] == frame["source_folder"].tolist()


def test_the_statement_of_a_stack_of_folders_names_the_databases(tmp_path):
    corpus = opened(tmp_path, **departments(5))
    plan = corpus.retrieve_tables("Which employees had incidents?").join_plan
    sql = plan.sql()
    assert '"marketing"."employees"' in sql
    assert "'marketing' AS \"source_folder\"" in sql


def test_a_backup_is_no_further_piece(tmp_path):
    customers = D({"customer_id": [100 + 3 * n for n in range(30)], "customer": named("Client", 30)})
    later = pd.concat([customers, D({"customer_id": [999], "customer": ["New"]})])
    corpus = opened(tmp_path, backup__customers_DOT_csv=customers, data__customers_DOT_csv=later)
    found = corpus.retrieve_tables("names of all customers")
    assert all(not hit.parts for hit in found.tables)
    assert not keys_in(corpus)


def test_sheets_without_a_name_are_no_pieces(tmp_path):
    sheet = D({"id": range(1, 11), "name": named("x", 10)})
    corpus = opened(
        tmp_path, customers_DOT_xlsx={"Sheet1": sheet}, products_DOT_xlsx={"Sheet1": sheet.assign(id=range(11, 21))}
    )
    assert all(not hit.parts for hit in corpus.retrieve_tables("names of all customers", k=2).tables)


def test_workbooks_of_years_are_pieces(tmp_path):
    sheets = {f"umsatz_{year}_DOT_xlsx": {"Tabelle1": D({"Beleg": range(1, 9), "Betrag": drawn(year, range(99), 8)})}
              for year in (2022, 2023)}  # fmt: skip
    corpus = opened(tmp_path, **sheets)
    assert len(corpus.retrieve_tables("Summe der Beträge").merge()) == 16
    assert corpus.retrieve_tables("Summe der Beträge 2023").ids == ["umsatz_2023.Tabelle1"]


def test_tables_of_one_name_in_unlike_databases_are_no_pieces(tmp_path):
    products = [D({"product_id": range(1, 9), "product": named(name, 8)}) for name in ("Toy", "Car")]
    others = [
        {f"{name}{n}": D({f"{name}{n}_id": [n], f"{name}_text": ["a"]}) for n in range(3)} for name in ("toy", "car")
    ]
    corpus = opened(tmp_path, **{f"{name}_DOT_sqlite": {"products": own, **rest} for name, own, rest in
                                 zip(("toys", "cars"), products, others, strict=True)})  # fmt: skip
    assert all(not hit.parts for hit in corpus.retrieve_tables("all products", k=2).tables)


@pytest.mark.slow
def test_many_databases_in_one_folder_are_not_joined(tmp_path):
    """Twenty databases of the same names and dense ids, as teaching material has them."""
    for number in range(20):
        with closing(sqlite3.connect(tmp_path / f"d{number}.sqlite")) as db:
            rows = 10 + number
            D({"customer_id": range(1, rows), "name": named("C", rows - 1)}).to_sql("customers", db, index=False)
            orders = D({"order_id": range(1, 40), "customer_id": drawn(number, range(1, rows), 39), f"x{number}": 1})
            orders.to_sql("orders", db, index=False)
            D({"order_id": drawn(number, range(1, 40), 50), f"line{number}": range(50)}).to_sql(
                "lines", db, index=False
            )
            db.commit()
    assert not keys_in(tf.open_corpus(tmp_path))


def test_sheets_of_months_are_stacked(tmp_path):
    sheets = {
        month: D({"Beleg": range(1, 11), "Betrag": drawn(seed, range(90), 10), "Filiale": drawn(seed, ["A", "B"], 10)})
        for seed, month in enumerate(("Jan", "Feb", "Mrz"))
    }
    places = D({"Filiale": ["A", "B"], "Ort": ["Ulm", "Bonn"]})
    corpus = opened(tmp_path, umsatz_DOT_xlsx=sheets, filialen_DOT_csv=places)
    frame = corpus.retrieve_tables("Umsatz Betrag je Ort der Filiale").merge()
    assert len(frame) == 30
    assert set(frame["source_table"]) == {"umsatz.Jan", "umsatz.Feb", "umsatz.Mrz"}
    assert corpus.retrieve_tables("Betrag im Feb").ids == ["umsatz.Feb"]


def test_a_year_is_chosen_even_if_a_column_was_added_later(tmp_path):
    invoices = D({"invoice_id": range(1, 21), "customer": drawn(1, range(50, 60), 20), "amount": range(20)})
    customers = D({"customer": range(50, 60), "name": named("c", 10)})
    files = {"2023__invoices_DOT_csv": invoices, "2024__invoices_DOT_csv": invoices.assign(discount=0)}
    corpus = opened(tmp_path, **files, customers_DOT_csv=customers)
    found = corpus.retrieve_tables("invoices of 2024 by customer name")
    assert set(found.ids) == {"2024.invoices", "root.customers"}
    assert len(found.merge()) == 20


def sales_by_customer():
    customers = D({"customer": [n + 0.0 for n in range(51, 71)], "name": named("C", 20)})
    weights = [n / 10 for n in drawn(2, range(100, 900), 50)]
    sales = D({"sale": range(1, 51), "customer": drawn(1, customers.customer, 50), "weight": weights})
    plan = "Monat;Plan\n1;1.200,50\n2;980,00\n3;12.000,75\n"
    files = {"sales.csv": sales, "customers.csv": customers, "de_plan.csv": plan}
    return files, sales.merge(customers, on="customer")[["sale", "weight", "name"]]


def invoices_with_decimal_commas():
    customers = D({"KdNr": range(1001, 1056), "Firma": named("Firma", 55)})
    amounts = [round(n * 13.37, 2) for n in drawn(1, range(200), 130)]
    invoices = D({"RechnungsNr": range(1, 131), "KdNr": drawn(2, customers.KdNr, 130), "Betrag": amounts})
    german = invoices.assign(Betrag=[f"{n:,.2f}".translate(str.maketrans(",.", ".,")) for n in amounts])
    files = {"Stammdaten/Kunden.xlsx": {"Kunden": customers}, "B/Rechnungen.csv": german.to_csv(index=False, sep=";")}
    return files, invoices.merge(customers, on="KdNr")[["RechnungsNr", "Firma", "Betrag"]]


def json_and_parquet():
    sensors = D({"sensor": [f"s{97 * n}" for n in range(30)], "room": drawn(1, ["lab", "hall", "attic"], 30)})
    readings = D({"at": range(1, 241), "sensor": drawn(2, sensors.sensor, 240), "celsius": drawn(3, range(40), 240)})
    files = {"sensors.json": sensors.to_json(orient="records"), "readings.parquet": readings}
    return files, readings.merge(sensors, on="sensor")[["at", "celsius", "room"]]


def numbers_of_stores():
    stores = D({"StoreNo": range(1, 26), "Region": drawn(1, ["North", "South"], 25), "Manager": named("Boss", 25)})
    logins = D({"event": range(1, 201), "store_no": drawn(2, range(1, 26), 200), "action": ["login", "export"] * 100})
    files = {"stores.xlsx": {"Stores": stores}, "log/events.csv": logins}
    return files, logins.merge(stores, left_on="store_no", right_on="StoreNo")[["event", "action", "Region"]]


def budgets():
    tables = {
        f"{place}/{table}.csv": D(
            {
                f"{table[:-1]}_id": range(1, 21),
                "label": named(place[:3] + table[:3], 20),
                "cost": [1.5 * n for n in range(20)],
            }
        )
        for place in ("logistics", "research", "legal")
        for table in ("shipments", "suppliers", "budgets", "meetings", "vehicles")
    }
    return tables, tables["legal/budgets.csv"]


def a_college():
    professors = D({"PROF_NUM": range(101, 113), "PROF_NAME": named("Prof", 12)})
    codes = ["ACC", "BIO", "CIS", "DRA", "ENG"]
    departments = D({"DEPT_CODE": codes, "DEPT_NAME": named("Dept", 5), "PROF_NUM": drawn(1, range(101, 113), 5)})
    courses = D({"CRS_CODE": [f"{code}-{n}" for code in codes for n in (1, 2)], "DEPT_CODE": sorted(codes * 2)})
    classes = {"CLASS_NO": range(10_012, 10_038), "CRS_CODE": drawn(2, courses.CRS_CODE, 26)}
    classes = D({**classes, "PROF_NUM": drawn(3, range(101, 113), 26), "ROOM": drawn(4, ["B1", "C2", "K3"], 26)})
    tables = {"PROFESSOR": professors, "DEPARTMENT": departments, "COURSE": courses, "CLASS": classes}
    gold = classes.merge(courses, on="CRS_CODE").merge(departments, on="DEPT_CODE")
    return {"college.sqlite": tables}, gold[["CLASS_NO", "ROOM", "DEPT_NAME"]]


def two_that_refer_to_one():
    customers = D({"customer_id": range(1, 31), "customer_name": named("C", 30)})
    orders = D({"order_no": range(1, 71), "customer_id": drawn(1, range(1, 31), 70), "total": range(70)})
    complaints = {"complaint_no": range(1, 46), "customer_id": drawn(2, range(1, 31), 45), "text": named("bad", 45)}
    files = {"customers.csv": customers, "orders.csv": orders, "complaints.csv": D(complaints)}
    return files, D(complaints).merge(customers, on="customer_id")[["complaint_no", "customer_name", "text"]]


def zip_codes():
    towns = D({"zip": [f"0{10_000 + 31 * n}" for n in range(30)], "town": named("Town", 30)})
    homes = D({"home": range(1, 41), "zip": drawn(1, towns.zip, 40)})
    return {"zips.csv": towns, "homes.csv": homes}, homes.merge(towns, on="zip")[["home", "town", "zip"]]


def dollars():
    deals = D({"deal": range(1, 13), "price": [1_234.5 * n for n in range(1, 13)]})
    return {"deals.csv": deals.assign(price=[f"${value:,.2f}" for value in deals.price])}, deals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "question", "csv"),
    [
        (sales_by_customer, "weight of the sales of each customer by name", {"decimal": ",", "thousands": "."}),
        (invoices_with_decimal_commas, "Welche Firmen haben Rechnungen mit welchem Betrag?", None),
        (json_and_parquet, "temperature in celsius by room", None),
        (numbers_of_stores, "logins per region", None),
        (budgets, "Which budgets does legal have?", None),
        (a_college, "rooms of the classes of each department by its name", None),
        (two_that_refer_to_one, "Which customers complained about what? Give names and texts of the complaints.", None),
        (zip_codes, "town of each home", None),
        (dollars, "price of each deal", None),
    ],
)
@pytest.mark.filterwarnings(
    *(f"ignore::tagframe.errors.{kind}Warning" for kind in ("ColumnFormat", "AmbiguousJoin", "DoubtfulJoin"))
)
def test_files_as_people_write_them_give_the_rows_of_the_answer(tmp_path, made, question, csv):
    files, gold = made()
    corpus = tf.open_corpus(Folder(files, []).write(tmp_path), csv=csv)
    frame = corpus.retrieve_tables(question).merge()
    assert rows_of(frame[[*gold.columns]]) == rows_of(gold)


def test_letters_that_are_no_key_join_nothing(tmp_path):
    stock = D({"product": [*"abcdefghij"], "pieces": drawn(1, range(100), 10)})
    stores = D({"city": [*"ABKLMNOPQR"], "rent": drawn(2, range(900), 10)})
    corpus = tf.open_corpus(Folder({"stock.csv": stock, "stores.csv": stores}, []).write(tmp_path))
    with pytest.raises(NotConnected):
        corpus.retrieve_tables("pieces of products in stock and rent of the cities of stores").merge()
