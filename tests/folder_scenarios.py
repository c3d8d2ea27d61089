"""Folders as people have them: roles, several sources, departments, years, numbers as they are written.

Each scenario makes a folder, asks a question and knows the frame that answers it. ``python tests/folder_scenarios.py``
prints which are right, which are wrong with a warning or an error, and which are wrong in silence.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tagframe as tf
from tagframe.errors import TagframeError

Files = Mapping[str, pd.DataFrame | str]
"""By path in the folder: a frame, or the text of the file; "book.xlsx:sheet" and "shop.sqlite:table" are tables."""


@dataclass(frozen=True)
class Scenario:
    """A folder, a question, and what must come of it.

    Attributes:
        name: of the scenario.
        files: the folder; a function of the tables by name gives the gold frame, so that it is built once.
        question: in the language of the folder.
        need: the tables that hold the answer, by name without their database.
        gold: the rows and columns that answer the question, under any names and in any order; None if the data do not
            say which is meant, so that this must be told.
        options: of ``open_corpus``.
        merge: options of ``found.merge``.
    """

    name: str
    files: Files
    question: str
    need: frozenset[str]
    gold: pd.DataFrame | None
    options: Mapping[str, Any] = field(default_factory=dict)
    merge: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        found: whether all needed tables were found.
        right: whether the merge has the gold rows, or whether a tie was told where the gold is None.
        told: the errors, warnings and ties that the user saw.
        confidence: of the set of tables.
    """

    found: bool
    right: bool
    told: tuple[str, ...]
    confidence: float

    @property
    def silent(self) -> bool:
        """Whether it is wrong and nothing says so."""
        return not self.right and not self.told


def write(folder: Path, files: Files) -> None:
    """Write the files of a scenario."""
    books: dict[Path, dict[str, pd.DataFrame]] = {}
    for name, content in files.items():
        name, _, part = name.partition(":")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif path.suffix == ".xlsx":
            books.setdefault(path, {})[part or path.stem] = content
        elif path.suffix == ".sqlite":
            connection = sqlite3.connect(path)
            content.to_sql(part, connection, index=False)
            connection.close()
        elif path.suffix == ".parquet":
            content.to_parquet(path, index=False)
        else:
            content.to_csv(path, index=False)
    for path, sheets in books.items():
        with pd.ExcelWriter(path) as book:
            for sheet, frame in sheets.items():
                frame.to_excel(book, sheet_name=sheet, index=False)


def run(scenario: Scenario, folder: Path) -> Outcome:
    """Open the folder, ask, merge, and compare."""
    write(folder, scenario.files)
    told: list[str] = []
    frame: pd.DataFrame | None = None
    found: Any = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            corpus = tf.open_corpus(folder, **scenario.options)
            told += [str(problem) for problem in corpus.problems]
            found = corpus.retrieve_tables(scenario.question)
            frame = found.merge(**scenario.merge)
        except TagframeError as error:
            told.append(f"{type(error).__name__}: {error}")
    told += [f"{one.category.__name__}: {one.message}" for one in caught]
    names = {hit.id.rpartition(".")[2].lower() for hit in found.tables} if found is not None else set()
    need = {name.lower() for name in scenario.need}
    right = bool(told) if scenario.gold is None else frame is not None and contains(frame, scenario.gold)
    return Outcome(need <= names, right, tuple(told), found.confidence if found is not None else 0.0)


def contains(frame: pd.DataFrame, gold: pd.DataFrame) -> bool:
    """Whether some columns of the frame have the rows of the gold frame, each as often."""
    if len(frame) != len(gold):
        return False
    rows = Counter(zip(*(map(_cell, gold[name]) for name in gold), strict=True))
    cells = {name: [_cell(value) for value in frame[name]] for name in frame}
    counts = {name: Counter(values) for name, values in cells.items()}
    fitting = [[name for name in cells if counts[name] == Counter(map(_cell, gold[wanted]))] for wanted in gold]
    return any(Counter(zip(*(cells[name] for name in names), strict=True)) == rows for names in product(*fitting))


def _cell(value: Any) -> Any:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.number):
        return round(float(value), 6)
    return str(value)


_random = np.random.default_rng(20)
_FIRST = (
    "Ann Bea Carl Dora Emil Finn Gerd Hugo Ines Jörg Kai Lena Mia Nils Olga Paul Rosa Sven Tina Uwe Vera Yara".split()
)
_LAST = (
    "Abel Bauer Costa Díaz Engel Fuchs Gómez Haas Ibarra Jung Klein López Moser Navas Ortega Prado Ruiz Senn".split()
)
_CITIES = (
    "Bonn Graz Jena Kiel León Lugo Metz Nancy Oslo Porto Riga Sofia Tulsa Turin Ulm Vigo Wien York Zug Žilina".split()
)


def ids(count: int, *, sparse: bool = False, start: int = 1) -> list[int]:
    """Distinct ids, dense from the start or drawn from a wide range."""
    return sorted(_random.choice(90_000, count, replace=False) + 10_000) if sparse else [*range(start, start + count)]


def drawn(values: Iterable[Any], count: int) -> list[Any]:
    """A draw of some of the values, all of them first if there is room."""
    pool = [*values]
    head = pool[:count]
    picks = head + [pool[i] for i in _random.integers(0, len(pool), count - len(head))]
    return [picks[i] for i in _random.permutation(count)]


def people(count: int) -> list[str]:
    """Distinct names of persons."""
    every = [f"{first} {last}" for first in _FIRST for last in _LAST]
    return [every[i] for i in _random.permutation(len(every))[:count]]


def money(count: int) -> list[float]:
    """Amounts with cents."""
    return [round(float(value), 2) for value in _random.gamma(2.0, 90.0, count)]


def joined(left: pd.DataFrame, on: str, right: pd.DataFrame, key: str, columns: list[str]) -> pd.DataFrame:
    """Some columns of the inner join; columns of the right are called ``right.column`` where both have one."""
    return left.merge(right, left_on=on, right_on=key, suffixes=("", "_right"))[columns]


def roles() -> Iterable[Scenario]:
    """Two columns of one table that refer to the same table."""
    for sparse, label in ((False, "dense"), (True, "sparse")):
        keys = ids(50, sparse=sparse)
        users = pd.DataFrame({"user_id": keys, "name": people(50)})
        orders = pd.DataFrame(
            {"order_id": ids(200), "buyer_id": drawn(keys, 200), "seller_id": drawn(keys, 200), "total": money(200)}
        )
        files: Files = {"orders.csv": orders, "users.csv": users}
        need = frozenset({"orders", "users"})
        for role in ("buyer", "seller"):
            gold = joined(orders, f"{role}_id", users, "user_id", ["order_id", "name"])
            yield Scenario(f"{role}s, {label}", files, f"names of the {role}s of each order", need, gold)
        yield Scenario(f"no role named, {label}", files, "names of the users of each order", need, None)
        both = joined(orders, "buyer_id", users, "user_id", ["order_id", "seller_id", "name"])
        both = joined(both, "seller_id", users, "user_id", ["order_id", "name", "name_right"])
        yield Scenario(f"buyer and seller, {label}", files, "names of buyer and seller of each order", need, both)

    codes = [
        f"{a}{b}{c}"
        for a, b, c in zip("ABCDEFGHIJKLMNOPQRST", "LMNOPQRSTABCDEFGHIJK", "XXYYZZXXYYZZXXYYZZXX", strict=True)
    ]
    airports = pd.DataFrame({"code": codes, "city": _CITIES})
    flights = pd.DataFrame(
        {
            "flight": ids(300),
            "origin": drawn(codes, 300),
            "destination": drawn(codes, 300),
            "seats": drawn(range(90, 200), 300),
        }
    )
    files = {"air.sqlite:airports": airports, "air.sqlite:flights": flights}
    gold = joined(flights, "destination", airports, "code", ["flight", "city"])
    yield Scenario(
        "destination", files, "To which destination city does each flight go?", frozenset({"flights", "airports"}), gold
    )
    gold = joined(flights, "origin", airports, "code", ["flight", "city"])
    yield Scenario("origin", files, "the city of origin of every flight", frozenset({"flights", "airports"}), gold)

    teams = pd.DataFrame({"id": ids(20), "team_name": [f"FC {city}" for city in _CITIES]})
    matches = pd.DataFrame(
        {
            "match_no": ids(150),
            "home_team": drawn(ids(20), 150),
            "away_team": drawn(ids(20), 150),
            "goals": drawn(range(9), 150),
        }
    )
    files = {"league/teams.parquet": teams, "league/matches.csv": matches}
    gold = joined(matches, "away_team", teams, "id", ["match_no", "team_name"])
    yield Scenario("away team", files, "Which team played away in each match?", frozenset({"matches", "teams"}), gold)

    places = pd.DataFrame(
        {"AdressNr": ids(60), "Straße": [f"Weg {n}" for n in ids(60, sparse=True)], "Ort": drawn(_CITIES, 60)}
    )
    bestellungen = pd.DataFrame(
        {"BestellNr": ids(120), "Lieferadresse": drawn(ids(60), 120), "Rechnungsadresse": drawn(ids(60), 120)}
    )
    files = {"Bestellungen.csv": bestellungen, "Adressen.xlsx": places}
    need = frozenset({"Bestellungen", "Adressen"})
    for role, question in (
        ("Lieferadresse", "An welchen Ort wird jede Bestellung geliefert?"),
        ("Rechnungsadresse", "Straße der Rechnungsadresse jeder Bestellung"),
    ):
        gold = joined(bestellungen, role, places, "AdressNr", ["BestellNr", "Straße", "Ort"])
        yield Scenario(role, files, question, need, gold)

    personas = pd.DataFrame({"persona_id": ids(40), "nombre": people(40)})
    prestamos = pd.DataFrame(
        {
            "prestamo_id": ids(90),
            "prestatario_id": drawn(ids(40), 90),
            "avalista_id": drawn(ids(40), 90),
            "importe": money(90),
        }
    )
    files = {"prestamos.csv": prestamos, "personas.csv": personas}
    need = frozenset({"prestamos", "personas"})
    gold = joined(prestamos, "prestatario_id", personas, "persona_id", ["prestamo_id", "nombre"])
    yield Scenario("prestatario", files, "nombres de los prestatarios de cada préstamo", need, gold)
    gold = joined(prestamos, "avalista_id", personas, "persona_id", ["prestamo_id", "nombre"])
    yield Scenario("avalista", files, "¿Quién avala cada préstamo?", need, gold)

    staff = pd.DataFrame({"staff_no": ids(30), "full_name": people(30)})
    papers = pd.DataFrame(
        {
            "paper": ids(80),
            "author": drawn(ids(30), 80),
            "reviewer": drawn(ids(30), 80),
            "title": [f"On {n}" for n in ids(80, sparse=True)],
        }
    )
    files = {"papers.csv": papers, "staff.csv": staff}
    gold = joined(papers, "reviewer", staff, "staff_no", ["paper", "title", "full_name"])
    yield Scenario(
        "reviewed by",
        files,
        "By whom was each paper reviewed? Give title and full name.",
        frozenset({"papers", "staff"}),
        gold,
    )

    accounts = pd.DataFrame({"iban": [f"DE{n}" for n in ids(40, sparse=True)], "holder": people(40)})
    transfers = pd.DataFrame(
        {
            "transfer": ids(120),
            "sender": drawn(accounts.iban, 120),
            "recipient": drawn(accounts.iban, 120),
            "amount": money(120),
        }
    )
    files = {"bank.sqlite:transfers": transfers, "accounts.csv": accounts}
    gold = joined(transfers, "recipient", accounts, "iban", ["transfer", "holder"])
    yield Scenario(
        "recipient",
        files,
        "holders of the recipients' accounts of each transfer",
        frozenset({"transfers", "accounts"}),
        gold,
    )

    vendors = pd.DataFrame(
        {"address_id": ids(70), "city": drawn(_CITIES, 70), "zip": [f"{n}" for n in ids(70, sparse=True)]}
    )
    sales = pd.DataFrame(
        {"sale_id": ids(140), "bill_to_address_id": drawn(ids(70), 140), "ship_to_address_id": drawn(ids(70), 140)}
    )
    files = {"wh.sqlite:address": vendors, "wh.sqlite:sales": sales}
    gold = joined(sales, "ship_to_address_id", vendors, "address_id", ["sale_id", "city", "zip"])
    yield Scenario(
        "ship to",
        files,
        "city and zip of the address that each sale is shipped to",
        frozenset({"sales", "address"}),
        gold,
    )
    yield Scenario(
        "address, no role", files, "city and zip of the address of each sale", frozenset({"sales", "address"}), None
    )


def sources() -> Iterable[Scenario]:
    """Tables that belong together in files of several kinds."""
    companies = [f"{last} {kind}" for last, kind in zip(_LAST, ["GmbH", "Ltd", "SA"] * 7, strict=False)]
    accounts = pd.DataFrame(
        {
            "account_id": ids(len(companies), start=501),
            "company": companies,
            "plan": drawn(["enterprise", "free", "pro"], len(companies)),
        }
    )
    priorities = pd.DataFrame({"Priority": [1, 2, 3], "Label": ["low", "medium", "high"]})
    tickets = pd.DataFrame(
        {
            "Ticket": ids(160),
            "Account": drawn(accounts.account_id, 160),
            "Priority": drawn([1, 2, 3], 160),
            "Subject": [f"issue {n}" for n in ids(160, sparse=True)],
        }
    )
    files: Files = {
        "crm.sqlite:accounts": accounts,
        "support.xlsx:Tickets": tickets,
        "support.xlsx:Priorities": priorities,
    }
    gold = tickets.merge(accounts, left_on="Account", right_on="account_id").merge(priorities, on="Priority")
    yield Scenario(
        "plans and tickets",
        files,
        "Which companies on the enterprise plan opened high priority tickets?",
        frozenset({"accounts", "tickets", "priorities"}),
        gold[["Ticket", "company", "plan", "Label"]],
    )

    skus = [f"SKU-{n}" for n in ids(45, sparse=True)]
    products = pd.DataFrame({"sku": skus, "product_group": drawn(["garden", "kitchen", "toys", "tools"], 45)})
    returns = pd.DataFrame(
        {"return_no": ids(90), "sku": drawn(skus, 90), "reason": drawn(["broken", "late", "wrong size"], 90)}
    )
    files = {"products.xlsx": products, "exports/returns.csv": returns}
    gold = returns.merge(products, on="sku")
    yield Scenario(
        "returns by group",
        files,
        "returns by product group",
        frozenset({"returns", "products"}),
        gold[["return_no", "product_group"]],
    )

    patients = pd.DataFrame(
        {"patient_id": ids(60, sparse=True), "name": people(60), "born": drawn(range(1940, 2010), 60)}
    )
    visits = pd.DataFrame(
        {"visit": ids(150), "patient_id": drawn(patients.patient_id, 150), "ward": drawn(["A1", "B2", "C3"], 150)}
    )
    files = {"hospital.sqlite:patients": patients, "visits.parquet": visits}
    gold = visits.merge(patients, on="patient_id")
    yield Scenario(
        "patients and visits",
        files,
        "birth years of the patients who visited ward B2",
        frozenset({"patients", "visits"}),
        gold[["visit", "born", "ward"]],
    )

    stores = pd.DataFrame({"StoreNo": ids(25), "Region": drawn(["North", "South", "West"], 25), "Manager": people(25)})
    logins = pd.DataFrame(
        {"event": ids(200), "store_no": drawn(ids(25), 200), "action": drawn(["login", "export", "delete"], 200)}
    )
    files = {"stores.xlsx:Stores": stores, "log/events.csv": logins}
    gold = logins.merge(stores, left_on="store_no", right_on="StoreNo")
    yield Scenario(
        "logins per region",
        files,
        "logins per region",
        frozenset({"events", "stores"}),
        gold[["event", "action", "Region"]],
    )

    kunden = pd.DataFrame(
        {"KdNr": ids(55, start=1001), "Firma": [f"Firma {name}" for name in people(55)], "Ort": drawn(_CITIES, 55)}
    )
    rechnungen = pd.DataFrame({"RechnungsNr": ids(130), "KdNr": drawn(kunden.KdNr, 130), "Betrag": money(130)})
    files = {"Stammdaten/Kunden.xlsx": kunden, "Buchhaltung/Rechnungen.csv": rechnungen}
    gold = rechnungen.merge(kunden, on="KdNr")
    yield Scenario(
        "Rechnungen",
        files,
        "Welche Firmen haben Rechnungen mit welchem Betrag?",
        frozenset({"Kunden", "Rechnungen"}),
        gold[["RechnungsNr", "Firma", "Betrag"]],
    )
    german = rechnungen.assign(
        Betrag=[f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in rechnungen.Betrag]
    )
    text = german.to_csv(index=False, sep=";")
    files = {"Stammdaten/Kunden.xlsx": kunden, "Buchhaltung/Rechnungen.csv": text}
    yield Scenario(
        "Rechnungen, decimal comma",
        files,
        "Welche Firmen haben Rechnungen mit welchem Betrag?",
        frozenset({"Kunden", "Rechnungen"}),
        gold[["RechnungsNr", "Firma", "Betrag"]],
    )

    medicos = pd.DataFrame(
        {
            "colegiado": ids(35, sparse=True),
            "apellido": drawn(_LAST, 35),
            "especialidad": drawn(["cardiología", "pediatría"], 35),
        }
    )
    citas = pd.DataFrame(
        {
            "cita": ids(110),
            "medico": drawn(medicos.colegiado, 110),
            "fecha": drawn(pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d"), 110),
        }
    )
    files = {"clinica.sqlite:medicos": medicos, "citas.csv": citas}
    gold = citas.merge(medicos, left_on="medico", right_on="colegiado")
    yield Scenario(
        "citas de médicos",
        files,
        "citas por especialidad de los médicos",
        frozenset({"citas", "medicos"}),
        gold[["cita", "especialidad"]],
    )

    sensors = pd.DataFrame(
        {"sensor": [f"s{n}" for n in ids(30, sparse=True)], "room": drawn(["lab", "hall", "attic"], 30)}
    )
    readings = pd.DataFrame({"at": ids(240), "sensor": drawn(sensors.sensor, 240), "celsius": money(240)})
    files = {"sensors.json": sensors.to_json(orient="records"), "readings.parquet": readings}
    gold = readings.merge(sensors, on="sensor")
    yield Scenario(
        "JSON and Parquet",
        files,
        "temperature in celsius by room",
        frozenset({"sensors", "readings"}),
        gold[["at", "celsius", "room"]],
    )

    courses = pd.DataFrame(
        {"course_code": [f"C{n}" for n in ids(20, sparse=True)], "course_title": [f"Course {n}" for n in ids(20)]}
    )
    enrolled = pd.DataFrame(
        {
            "enrolment": ids(100),
            "course_code": drawn(courses.course_code, 100),
            "student": drawn(ids(40, start=7001), 100),
        }
    )
    students = pd.DataFrame({"student": ids(40, start=7001), "name": people(40)})
    files = {"courses.csv": courses, "registry.sqlite:enrolled": enrolled, "students.xlsx": students}
    gold = enrolled.merge(courses, on="course_code").merge(students, on="student")
    yield Scenario(
        "three sources",
        files,
        "names of the students and titles of the courses in which they are enrolled",
        frozenset({"courses", "enrolled", "students"}),
        gold[["enrolment", "course_title", "name"]],
    )


def departments() -> Iterable[Scenario]:
    """Folders whose names say what is in them."""
    files: dict[str, pd.DataFrame | str] = {}
    tables: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {}
    for department in ("marketing", "sales", "finance"):
        names = people(30)
        employees = pd.DataFrame({"employee_id": ids(30), "name": names, "grade": drawn(range(1, 6), 30)})
        incidents = pd.DataFrame(
            {"incident_id": ids(60), "employee_id": drawn(ids(30), 60), "status": drawn(["open", "closed"], 60)}
        )
        files |= {f"{department}/employees.csv": employees, f"{department}/incidents.csv": incidents}
        tables[department] = employees, incidents
    need = frozenset({"employees", "incidents"})
    for department, (employees, incidents) in tables.items():
        gold = incidents.merge(employees, on="employee_id")[["incident_id", "name", "status"]]
        yield Scenario(
            f"{department}'s incidents", files, f"Which {department} employees had open incidents?", need, gold
        )

    many: dict[str, pd.DataFrame | str] = {}
    for place in ("logistics", "research", "legal", "catering"):
        for table in ("shipments", "suppliers", "budgets", "meetings", "vehicles"):
            many[f"{place}/{table}.csv"] = pd.DataFrame(
                {
                    f"{table[:-1]}_id": ids(20),
                    "label": [f"{place[:3]}-{n}" for n in ids(20, sparse=True)],
                    "cost": money(20),
                }
            )
    gold = many["logistics/shipments.csv"]
    assert isinstance(gold, pd.DataFrame)
    yield Scenario(
        "shipments in logistics",
        many,
        "cost of the shipments in logistics",
        frozenset({"shipments"}),
        gold[["shipment_id", "label", "cost"]],
    )
    gold = many["legal/budgets.csv"]
    assert isinstance(gold, pd.DataFrame)
    yield Scenario(
        "budgets of legal",
        many,
        "Which budgets does legal have?",
        frozenset({"budgets"}),
        gold[["budget_id", "label", "cost"]],
    )


def years() -> Iterable[Scenario]:
    """One table in pieces, in sibling folders or files."""
    customers = pd.DataFrame({"customer_id": ids(40, start=301), "name": people(40)})
    pieces = [
        pd.DataFrame(
            {
                "invoice_id": ids(80, start=1 + 80 * at),
                "customer_id": drawn(customers.customer_id, 80),
                "paid": drawn(["yes", "no"], 80),
                "amount": money(80),
            }
        )
        for at in range(3)
    ]
    files: dict[str, pd.DataFrame | str] = {f"{2022 + at}/invoices.csv": piece for at, piece in enumerate(pieces)}
    whole = pd.concat(pieces)
    yield Scenario(
        "invoices of all years",
        files,
        "amounts of all paid invoices",
        frozenset({"invoices"}),
        whole[["invoice_id", "amount"]],
        merge={"stack": True},
    )
    yield Scenario(
        "invoices of 2023", files, "invoices of 2023", frozenset({"invoices"}), pieces[1][["invoice_id", "amount"]]
    )
    files = {**files, "customers.xlsx": customers}
    gold = whole.merge(customers, on="customer_id")[["invoice_id", "name", "amount"]]
    yield Scenario(
        "customers of all years",
        files,
        "names of the customers of all unpaid invoices of all years",
        frozenset({"invoices", "customers"}),
        gold,
        merge={"stack": True},
    )
    same_ids = [piece.assign(invoice_id=ids(80)) for piece in pieces]
    files = {f"data/{2022 + at}/invoices.parquet": piece for at, piece in enumerate(same_ids)}
    yield Scenario(
        "invoices numbered afresh each year",
        files,
        "amounts of all invoices",
        frozenset({"invoices"}),
        pd.concat(same_ids)[["invoice_id", "amount"]],
        merge={"stack": True},
    )


def parents() -> Iterable[Scenario]:
    """Tables that refer to the same parent, and tables of unlike databases."""
    professors = pd.DataFrame({"PROF_NUM": ids(12, start=101), "PROF_NAME": people(12)})
    department = pd.DataFrame(
        {
            "DEPT_CODE": ["ACC", "BIO", "CIS", "DRA", "ENG"],
            "DEPT_NAME": ["Accounting", "Biology", "Computing", "Drama", "English"],
            "PROF_NUM": drawn(professors.PROF_NUM, 5),
        }
    )
    course = pd.DataFrame(
        {
            "CRS_CODE": [f"{code}-{n}" for code in department.DEPT_CODE for n in (1, 2)],
            "DEPT_CODE": np.repeat(department.DEPT_CODE.to_numpy(), 2),
            "CRS_TITLE": [f"Title {n}" for n in ids(10)],
        }
    )
    classes = pd.DataFrame(
        {
            "CLASS_NO": ids(26, start=10012),
            "CRS_CODE": drawn(course.CRS_CODE, 26),
            "PROF_NUM": drawn(professors.PROF_NUM, 26),
            "ROOM": drawn(["B1", "C2", "K3"], 26),
        }
    )
    files: Files = {
        "college.sqlite:PROFESSOR": professors,
        "college.sqlite:DEPARTMENT": department,
        "college.sqlite:COURSE": course,
        "college.sqlite:CLASS": classes,
    }
    gold = classes.merge(course, on="CRS_CODE").merge(department, on="DEPT_CODE")[["CLASS_NO", "ROOM", "DEPT_NAME"]]
    yield Scenario(
        "classes of a department",
        files,
        "rooms of the classes of each department by its name",
        frozenset({"CLASS", "DEPARTMENT"}),
        gold,
    )

    customers = pd.DataFrame({"customer_id": ids(30), "customer_name": people(30)})
    orders = pd.DataFrame({"order_no": ids(70), "customer_id": drawn(ids(30), 70), "total": money(70)})
    complaints = pd.DataFrame(
        {"complaint_no": ids(45), "customer_id": drawn(ids(30), 45), "text": [f"bad {n}" for n in ids(45, sparse=True)]}
    )
    files = {"customers.csv": customers, "orders.csv": orders, "complaints.csv": complaints}
    gold = complaints.merge(customers, on="customer_id")[["complaint_no", "customer_name", "text"]]
    yield Scenario(
        "complaints by customer",
        files,
        "Which customers complained about what? Give names and texts of the complaints.",
        frozenset({"customers", "complaints"}),
        gold,
    )

    club = pd.DataFrame({"id": ids(30), "name": people(30), "sport": drawn(["golf", "judo"], 30)})
    choir = pd.DataFrame({"id": ids(25), "name": people(25), "voice": drawn(["alto", "bass"], 25)})
    files = {
        "club.sqlite:people": club,
        "club.sqlite:fees": pd.DataFrame({"fee": ids(9), "person_id": drawn(ids(30), 9)}),
        "choir.sqlite:people": choir,
    }
    yield Scenario("people of unlike databases", files, "sport and voice of people", frozenset({"people"}), None)

    stock = pd.DataFrame({"product": [f"{a}" for a in "abcdefghij"], "pieces": drawn(range(100), 10)})
    cities = pd.DataFrame({"city": [*"ABKLMNOPQR"], "rent": money(10)})
    yield Scenario(
        "letters that are no key",
        {"stock.csv": stock, "stores.csv": cities},
        "pieces of products in stock and rent of the cities of stores",
        frozenset({"stock", "stores"}),
        None,
    )


def numbers() -> Iterable[Scenario]:
    """Numbers as people write them."""
    customers = pd.DataFrame({"customer": [n + 0.0 for n in ids(20, start=51)], "name": people(20)})
    sales = pd.DataFrame(
        {
            "sale": ids(50),
            "customer": drawn(customers.customer, 50),
            "weight": [round(w / 10, 1) for w in drawn(range(100, 900), 50)],
        }
    )
    files: Files = {
        "sales.csv": sales,
        "customers.csv": customers,
        "de_plan.csv": "Monat;Plan\n1;1.200,50\n2;980,00\n3;12.000,75\n",
    }
    gold = sales.merge(customers, on="customer")[["sale", "weight", "name"]]
    yield Scenario(
        "German options for all files",
        files,
        "weight of the sales of each customer by name",
        frozenset({"sales", "customers"}),
        gold,
        options={"csv": {"decimal": ",", "thousands": "."}},
    )
    dollars = pd.DataFrame({"deal": ids(12), "price": [f"${value:,.2f}" for value in (p * 20 for p in money(12))]})
    value = [float(text.replace("$", "").replace(",", "")) for text in dollars.price]
    yield Scenario(
        "dollars",
        {"deals.csv": dollars},
        "price of each deal",
        frozenset({"deals"}),
        pd.DataFrame({"deal": dollars.deal, "price": value}),
    )
    zips = pd.DataFrame({"zip": [f"0{n}" for n in ids(30, sparse=True)], "town": [f"Town {n}" for n in ids(30)]})
    homes = pd.DataFrame({"home": ids(40), "zip": drawn(zips.zip, 40)})
    gold = homes.merge(zips, on="zip")[["home", "town", "zip"]]
    yield Scenario(
        "zip codes with zeros",
        {"zips.csv": zips, "homes.csv": homes},
        "town of each home",
        frozenset({"zips", "homes"}),
        gold,
    )


GROUPS: tuple[Callable[[], Iterable[Scenario]], ...] = (roles, sources, departments, years, parents, numbers)
SCENARIOS = [scenario for group in GROUPS for scenario in group()]


def main() -> None:
    """Print the outcome of each scenario, and the counts."""
    outcomes = []
    for scenario in SCENARIOS:
        if len(sys.argv) > 1 and not any(word in scenario.name for word in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(scenario, Path(folder))
        outcomes.append(outcome)
        state = "right" if outcome.right else "SILENT" if outcome.silent else "told"
        tables = "" if outcome.found else "  not all tables found"
        print(f"{state:7}{outcome.confidence:5.2f}  {scenario.name}{tables}", flush=True)
        for text in outcome.told:
            print(f"              {text[:200]}")
    right, silent = sum(one.right for one in outcomes), sum(one.silent for one in outcomes)
    print(
        f"{len(outcomes)} scenarios: {right} right, {len(outcomes) - right - silent} told, {silent} silent, "
        f"{sum(one.found for one in outcomes)} with all tables"
    )


if __name__ == "__main__":
    main()
