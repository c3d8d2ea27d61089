"""Folders as people keep them: CSV, workbooks, Parquet and SQLite side by side, in three languages, with questions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Frames = Mapping[str, pd.DataFrame]
"""Frames by id."""


@dataclass(frozen=True)
class Asked:
    """A question, the tables that it needs, and what the merge of these gives.

    Attributes:
        text: the question.
        needs: ids.
        gold: from the tables to rows; the merge must have the same in the columns that these have.
    """

    text: str
    needs: frozenset[str]
    gold: Callable[[Frames], pd.DataFrame]


@dataclass(frozen=True)
class Folder:
    """Files by path (a frame, a text, or a workbook's or a database's frames by name), and questions."""

    files: Mapping[str, pd.DataFrame | str | Mapping[str, pd.DataFrame]]
    asked: Sequence[Asked]

    def write(self, root: Path) -> Path:
        """Write the files below a folder."""
        for path, data in self.files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, str):
                file.write_text(data, encoding="utf-8")
            elif isinstance(data, pd.DataFrame):
                data.to_csv(file, index=False) if file.suffix == ".csv" else data.to_parquet(file)
            elif file.suffix == ".xlsx":
                with pd.ExcelWriter(file) as book:
                    for sheet, frame in data.items():
                        frame.to_excel(book, sheet_name=sheet, index=False)
            else:
                with closing(sqlite3.connect(file)) as db:
                    for table, frame in data.items():
                        frame.to_sql(table, db, index=False)
                    db.commit()
        return root

    def frames(self, root: str) -> dict[str, pd.DataFrame]:
        """All tables by the ids that they have in a folder of this name."""
        found = {}
        for path, data in self.files.items():
            file = Path(path)
            if isinstance(data, pd.DataFrame):
                found[f"{file.parent.name or root}.{file.stem}"] = data
            elif not isinstance(data, str):
                found.update({f"{file.stem}.{table}": frame for table, frame in data.items()})
        return found


def drawn(seed: int, values: Iterable[Any], rows: int) -> list[Any]:
    """Values in random order, with repeats."""
    values = [*values]
    return [values[number] for number in np.random.default_rng(seed).integers(0, len(values), rows)]


def days(seed: int, rows: int, year: int = 2024) -> list[str]:
    """Days of a year."""
    return [f"{year}-{number // 28 % 12 + 1:02d}-{number % 28 + 1:02d}" for number in drawn(seed, range(336), rows)]


def named(prefix: str, rows: int) -> list[str]:
    """``prefix 1``, ``prefix 2``, …"""
    return [f"{prefix} {number}" for number in range(1, rows + 1)]


def table(**columns: Any) -> pd.DataFrame:
    """A frame of these columns."""
    return pd.DataFrame(columns)


def asked(text: str, shown: str, start: str | Sequence[str], *joins: tuple[str, str]) -> Asked:
    """A question.

    Args:
        text: its words.
        shown: the columns that the merge must have.
        start: the table whose rows these are; several are stacked, with a column ``folder``.
        joins: the other tables, and the column by which each is joined, or ``mine = theirs``.
    """
    pieces = [start] if isinstance(start, str) else start

    def gold(frames: Frames) -> pd.DataFrame:
        found = pd.concat([frames[one].assign(folder=one.partition(".")[0]) for one in pieces])
        for other, on in joins:
            mine, _, theirs = on.partition(" = ")
            found = found.merge(frames[other], left_on=mine, right_on=theirs or mine)
        return found[shown.split()]

    return Asked(text, frozenset([*pieces, *(other for other, _ in joins)]), gold)


SUPPORT = Folder(
    {
        "accounts.csv": table(
            account_id=range(1, 41),
            company=named("Acme", 40),
            plan=drawn(1, ["free", "team", "enterprise"], 40),
            region=drawn(2, ["EU", "US"], 40),
        ),
        "support.xlsx": {
            "Tickets": table(
                ticket_no=range(501, 621),
                account_id=drawn(3, range(1, 41), 120),
                priority=drawn(4, ["P1", "P2", "P3"], 120),
                opened=days(5, 120),
            ),
            "Priorities": table(priority=["P1", "P2", "P3"], label=["high", "normal", "low"], hours=[4, 24, 72]),
        },
        "usage.sqlite": {
            "events": table(
                event_id=range(1, 301),
                account_id=drawn(6, range(1, 41), 300),
                feature_id=drawn(7, range(1, 8), 300),
                at=days(8, 300),
            ),
            "features": table(
                feature_id=range(1, 8),
                feature="login export share api sso ask map".split(),
                beta=[0, 0, 1, 0, 1, 1, 0],
            ),
        },
    },
    [
        asked(
            "Which companies on the enterprise plan opened high priority tickets?",
            "ticket_no company label",
            "support.Tickets",
            ("root.accounts", "account_id"),
            ("support.Priorities", "priority"),
        ),
        asked(
            "Which companies used the beta features?",
            "event_id company feature",
            "usage.events",
            ("root.accounts", "account_id"),
            ("usage.features", "feature_id"),
        ),
        asked(
            "How many tickets were opened per region?",
            "ticket_no region",
            "support.Tickets",
            ("root.accounts", "account_id"),
        ),
    ],
)

_KUNDEN = [10_000 + 7 * number for number in range(60)]
_ARTIKEL = [f"A-{100 + number}" for number in range(25)]
_BESTELLT = "bestellungen.Bestellung"
HANDEL = Folder(
    {
        "Kunden.csv": table(KdNr=_KUNDEN, Name=named("Firma", 60), Ort=drawn(1, ["Köln", "Ulm", "Mainz"], 60)),
        "bestellungen.sqlite": {
            "Bestellung": table(
                BestNr=range(70_001, 70_151),
                KdNr=drawn(2, _KUNDEN, 150),
                ArtikelNr=drawn(3, _ARTIKEL, 150),
                Menge=drawn(4, range(1, 9), 150),
                Datum=days(5, 150),
            ),
        },
        "artikel.xlsx": {
            "Artikel": table(
                ArtikelNr=_ARTIKEL,
                Bezeichnung=named("Ding", 25),
                GruppeNr=drawn(6, range(1, 6), 25),
                Preis=[round(3.5 * number + 1, 2) for number in range(25)],
            ),
            "Warengruppen": table(GruppeNr=range(1, 6), Warengruppe=["Möbel", "Lampen", "Textil", "Garten", "Büro"]),
        },
        "retouren.parquet": table(
            RetNr=range(1, 31),
            BestNr=sorted({*drawn(7, range(70_001, 70_151), 34)})[:30],
            Grund=drawn(8, ["defekt", "zu klein", "falsch"], 30),
        ),
    },
    [
        asked(
            "Welche Kunden haben welche Artikel bestellt?",
            "BestNr Name Bezeichnung",
            _BESTELLT,
            ("root.Kunden", "KdNr"),
            ("artikel.Artikel", "ArtikelNr"),
        ),
        asked(
            "Retouren nach Warengruppe",
            "RetNr Grund Warengruppe",
            "root.retouren",
            (_BESTELLT, "BestNr"),
            ("artikel.Artikel", "ArtikelNr"),
            ("artikel.Warengruppen", "GruppeNr"),
        ),
        asked(
            "Gründe der Retouren je Ort der Kunden",
            "RetNr Grund Ort",
            "root.retouren",
            (_BESTELLT, "BestNr"),
            ("root.Kunden", "KdNr"),
        ),
    ],
)

_MEDICOS = [f"M{number:02d}" for number in range(1, 13)]
CLINICA = Folder(
    {
        "pacientes.csv": table(
            paciente_id=range(1, 81), nombre=named("Persona", 80), ciudad=drawn(1, ["Lima", "Cusco", "Piura"], 80)
        ),
        "citas.parquet": table(
            cita_id=range(9_001, 9_201),
            paciente_id=drawn(2, range(1, 81), 200),
            medico=drawn(3, _MEDICOS, 200),
            fecha=days(4, 200),
        ),
        "personal.xlsx": {
            "Medicos": table(medico=_MEDICOS, apellido=named("Dr", 12), especialidad_id=drawn(5, range(1, 5), 12)),
            "Especialidades": table(
                especialidad_id=range(1, 5), especialidad=["cardiología", "pediatría", "dermatología", "urología"]
            ),
        },
        "facturas.sqlite": {
            "facturas": table(
                factura_id=range(1, 121),
                cita_id=drawn(6, range(9_001, 9_201), 120),
                importe=[20 + 3 * number for number in range(120)],
            ),
            "pagos": table(
                pago_id=range(1, 91),
                factura_id=drawn(7, range(1, 121), 90),
                metodo=drawn(8, ["efectivo", "tarjeta"], 90),
            ),
        },
    },
    [
        asked(
            "¿Qué pacientes tuvieron citas con médicos de la especialidad cardiología?",
            "cita_id nombre especialidad",
            "root.citas",
            ("root.pacientes", "paciente_id"),
            ("personal.Medicos", "medico"),
            ("personal.Especialidades", "especialidad_id"),
        ),
        asked(
            "Importe de las facturas por paciente",
            "factura_id importe nombre",
            "facturas.facturas",
            ("root.citas", "cita_id"),
            ("root.pacientes", "paciente_id"),
        ),
        asked(
            "Métodos de los pagos de cada factura",
            "pago_id metodo importe",
            "facturas.pagos",
            ("facturas.facturas", "factura_id"),
        ),
    ],
)


def _department(seed: int, first: int, rows: int) -> dict[str, pd.DataFrame]:
    ids = range(first, first + rows)
    return {
        "employees": table(
            employee_id=ids,
            full_name=[f"Person {number}" for number in ids],
            grade=drawn(seed, ["junior", "senior"], rows),
        ),
        "incidents": table(
            incident_id=range(1, 2 * rows + 1),
            employee_id=drawn(seed + 1, ids, 2 * rows),
            status=drawn(seed + 2, ["open", "closed"], 2 * rows),
            opened_on=days(seed + 3, 2 * rows),
        ),
    }


_PARTS = {"marketing": (10, 1, 12), "sales": (20, 1, 15), "finance": (30, 1, 9)}
DEPARTMENTS = Folder(
    {f"{name}/{table}.csv": frame for name, how in _PARTS.items() for table, frame in _department(*how).items()},
    [
        asked(
            "Which marketing employees had open incidents?",
            "incident_id full_name status",
            "marketing.incidents",
            ("marketing.employees", "employee_id"),
        ),
        asked("List the grade of all finance employees", "full_name grade", "finance.employees"),
        asked(
            "How many employees are junior, over all departments?",
            "full_name grade folder",
            [f"{name}.employees" for name in sorted(_PARTS)],
        ),
    ],
)


def _invoices(seed: int, year: int, first: int, rows: int = 40) -> pd.DataFrame:
    return table(
        invoice_id=range(first, first + rows),
        customer_id=drawn(seed, range(301, 331), rows),
        amount=[float(10 * seed + number) for number in range(rows)],
        paid=drawn(seed + 1, ["yes", "no"], rows),
        issued=days(seed + 2, rows, year),
    )


YEARS = Folder(
    {
        "2023/invoices.csv": _invoices(1, 2023, 1),
        "2024/invoices.csv": _invoices(2, 2024, 1),
        "customers.csv": table(
            customer_id=range(301, 331), customer=named("Client", 30), country=drawn(9, ["PT", "CZ", "DK"], 30)
        ),
    },
    [
        asked(
            "Total invoice amount by customer country",
            "invoice_id amount country folder",
            ["2023.invoices", "2024.invoices"],
            ("root.customers", "customer_id"),
        ),
        asked("Which invoices of 2024 are not paid?", "invoice_id paid amount", "2024.invoices"),
    ],
)

UNLIKE = Folder(
    {
        "library.sqlite": {
            "people": table(people_id=range(1, 31), name=named("Reader", 30), born=drawn(1, range(1950, 2000), 30)),
            "loans": table(
                loan_id=range(1, 61),
                people_id=drawn(2, range(1, 31), 60),
                book=drawn(3, named("Book", 20), 60),
            ),
        },
        "circus.sqlite": {
            "people": table(people_id=range(1, 26), name=named("Acrobat", 25), height=drawn(4, range(150, 200), 25)),
            "acts": table(
                act_id=range(1, 41),
                people_id=drawn(5, range(1, 26), 40),
                trick=drawn(6, named("Trick", 9), 40),
            ),
        },
    },
    [
        asked(
            "Which tricks do people show in their acts?",
            "act_id trick height",
            "circus.acts",
            ("circus.people", "people_id"),
        ),
        asked(
            "Which books did people take as loans?",
            "loan_id book born",
            "library.loans",
            ("library.people", "people_id"),
        ),
    ],
)

_DEVICES = [f"dev-{number:04x}" for number in drawn(77, range(5_000, 60_000), 30)]
_SITES = [f"{code}1" for code in "ABCDEF"]
SENSORS = Folder(
    {
        "plants/sites.csv": table(site_code=_SITES, site_name=named("Plant", 6), manager=named("Boss", 6)),
        "devices.xlsx": {
            "Devices": table(serial=_DEVICES, model=drawn(1, ["T1", "T2"], 30), site=drawn(2, _SITES, 30)),
        },
        "readings/readings.parquet": table(
            reading=range(1, 401),
            device_serial=drawn(3, _DEVICES, 400),
            celsius=[round(15 + number % 17 / 3, 1) for number in range(400)],
        ),
        "service.sqlite": {
            "repairs": table(
                repair_id=range(1, 41),
                device_serial=drawn(4, _DEVICES, 40),
                cost=[50 + number for number in range(40)],
            )
        },
    },
    [
        asked(
            "What did the repairs of each device model cost?",
            "repair_id cost model",
            "service.repairs",
            ("devices.Devices", "device_serial = serial"),
        ),
        asked(
            "Mean celsius readings per site manager",
            "reading celsius manager",
            "readings.readings",
            ("devices.Devices", "device_serial = serial"),
            ("plants.sites", "site = site_code"),
        ),
    ],
)

FOLDERS: dict[str, Folder] = {
    "support": SUPPORT,
    "handel": HANDEL,
    "clinica": CLINICA,
    "departments": DEPARTMENTS,
    "years": YEARS,
    "unlike": UNLIKE,
    "sensors": SENSORS,
}
