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

D = pd.DataFrame
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
    gold: Callable[[Frames], pd.DataFrame] | None = None


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


def needs(*ids: str) -> frozenset[str]:
    """The ids."""
    return frozenset(ids)


SUPPORT = Folder(
    {
        "accounts.csv": D(
            {
                "account_id": range(1, 41),
                "company": named("Acme", 40),
                "plan": drawn(1, ["free", "team", "enterprise"], 40),
                "region": drawn(2, ["EU", "US"], 40),
            }
        ),
        "support.xlsx": {
            "Tickets": D(
                {
                    "ticket_no": range(501, 621),
                    "account_id": drawn(3, range(1, 41), 120),
                    "priority": drawn(4, ["P1", "P2", "P3"], 120),
                    "opened": days(5, 120),
                }
            ),
            "Priorities": D({"priority": ["P1", "P2", "P3"], "label": ["high", "normal", "low"], "hours": [4, 24, 72]}),
        },
        "usage.sqlite": {
            "events": D(
                {
                    "event_id": range(1, 301),
                    "account_id": drawn(6, range(1, 41), 300),
                    "feature_id": drawn(7, range(1, 8), 300),
                    "at": days(8, 300),
                }
            ),
            "features": D(
                {
                    "feature_id": range(1, 8),
                    "feature": ["login", "export", "share", "api", "sso", "ask", "map"],
                    "beta": [0, 0, 1, 0, 1, 1, 0],
                }
            ),
        },
    },
    [
        Asked(
            "Which companies on the enterprise plan opened high priority tickets?",
            needs("root.accounts", "support.Tickets", "support.Priorities"),
            lambda f: (
                f["support.Tickets"]
                .merge(f["root.accounts"], on="account_id")
                .merge(f["support.Priorities"], on="priority")[["ticket_no", "company", "label"]]
            ),
        ),
        Asked(
            "Which companies used the beta features?",
            needs("root.accounts", "usage.events", "usage.features"),
            lambda f: (
                f["usage.events"]
                .merge(f["root.accounts"], on="account_id")
                .merge(f["usage.features"], on="feature_id")[["event_id", "company", "feature"]]
            ),
        ),
        Asked(
            "How many tickets were opened per region?",
            needs("root.accounts", "support.Tickets"),
            lambda f: f["support.Tickets"].merge(f["root.accounts"], on="account_id")[["ticket_no", "region"]],
        ),
    ],
)

_KUNDEN = [10_000 + 7 * number for number in range(60)]
_ARTIKEL = [f"A-{100 + number}" for number in range(25)]
HANDEL = Folder(
    {
        "Kunden.csv": D({"KdNr": _KUNDEN, "Name": named("Firma", 60), "Ort": drawn(1, ["Köln", "Ulm", "Mainz"], 60)}),
        "bestellungen.sqlite": {
            "Bestellung": D(
                {
                    "BestNr": range(70_001, 70_151),
                    "KdNr": drawn(2, _KUNDEN, 150),
                    "ArtikelNr": drawn(3, _ARTIKEL, 150),
                    "Menge": drawn(4, range(1, 9), 150),
                    "Datum": days(5, 150),
                }
            ),
        },
        "artikel.xlsx": {
            "Artikel": D(
                {
                    "ArtikelNr": _ARTIKEL,
                    "Bezeichnung": named("Ding", 25),
                    "GruppeNr": drawn(6, range(1, 6), 25),
                    "Preis": [round(3.5 * number + 1, 2) for number in range(25)],
                }
            ),
            "Warengruppen": D(
                {"GruppeNr": range(1, 6), "Warengruppe": ["Möbel", "Lampen", "Textil", "Garten", "Büro"]}
            ),
        },
        "retouren.parquet": D(
            {
                "RetNr": range(1, 31),
                "BestNr": sorted({*drawn(7, range(70_001, 70_151), 34)})[:30],
                "Grund": drawn(8, ["defekt", "zu klein", "falsch"], 30),
            }
        ),
    },
    [
        Asked(
            "Welche Kunden haben welche Artikel bestellt?",
            needs("root.Kunden", "bestellungen.Bestellung", "artikel.Artikel"),
            lambda f: (
                f["bestellungen.Bestellung"]
                .merge(f["root.Kunden"], on="KdNr")
                .merge(f["artikel.Artikel"], on="ArtikelNr")[["BestNr", "Name", "Bezeichnung"]]
            ),
        ),
        Asked(
            "Retouren nach Warengruppe",
            needs("root.retouren", "bestellungen.Bestellung", "artikel.Artikel", "artikel.Warengruppen"),
            lambda f: (
                f["root.retouren"]
                .merge(f["bestellungen.Bestellung"], on="BestNr")
                .merge(f["artikel.Artikel"], on="ArtikelNr")
                .merge(f["artikel.Warengruppen"], on="GruppeNr")[["RetNr", "Grund", "Warengruppe"]]
            ),
        ),
        Asked(
            "Gründe der Retouren je Ort der Kunden",
            needs("root.retouren", "bestellungen.Bestellung", "root.Kunden"),
            lambda f: (
                f["root.retouren"]
                .merge(f["bestellungen.Bestellung"], on="BestNr")
                .merge(f["root.Kunden"], on="KdNr")[["RetNr", "Grund", "Ort"]]
            ),
        ),
    ],
)

_MEDICOS = [f"M{number:02d}" for number in range(1, 13)]
CLINICA = Folder(
    {
        "pacientes.csv": D(
            {
                "paciente_id": range(1, 81),
                "nombre": named("Persona", 80),
                "ciudad": drawn(1, ["Lima", "Cusco", "Piura"], 80),
            }
        ),
        "citas.parquet": D(
            {
                "cita_id": range(9_001, 9_201),
                "paciente_id": drawn(2, range(1, 81), 200),
                "medico": drawn(3, _MEDICOS, 200),
                "fecha": days(4, 200),
            }
        ),
        "personal.xlsx": {
            "Medicos": D(
                {"medico": _MEDICOS, "apellido": named("Dr", 12), "especialidad_id": drawn(5, range(1, 5), 12)}
            ),
            "Especialidades": D(
                {
                    "especialidad_id": range(1, 5),
                    "especialidad": ["cardiología", "pediatría", "dermatología", "urología"],
                }
            ),
        },
        "facturas.sqlite": {
            "facturas": D(
                {
                    "factura_id": range(1, 121),
                    "cita_id": drawn(6, range(9_001, 9_201), 120),
                    "importe": [20 + 3 * number for number in range(120)],
                }
            ),
            "pagos": D(
                {
                    "pago_id": range(1, 91),
                    "factura_id": drawn(7, range(1, 121), 90),
                    "metodo": drawn(8, ["efectivo", "tarjeta"], 90),
                }
            ),
        },
    },
    [
        Asked(
            "¿Qué pacientes tuvieron citas con médicos de la especialidad cardiología?",
            needs("root.pacientes", "root.citas", "personal.Medicos", "personal.Especialidades"),
            lambda f: (
                f["root.citas"]
                .merge(f["root.pacientes"], on="paciente_id")
                .merge(f["personal.Medicos"], on="medico")
                .merge(f["personal.Especialidades"], on="especialidad_id")[["cita_id", "nombre", "especialidad"]]
            ),
        ),
        Asked(
            "Importe de las facturas por paciente",
            needs("root.pacientes", "root.citas", "facturas.facturas"),
            lambda f: (
                f["facturas.facturas"]
                .merge(f["root.citas"], on="cita_id")
                .merge(f["root.pacientes"], on="paciente_id")[["factura_id", "importe", "nombre"]]
            ),
        ),
        Asked(
            "Métodos de los pagos de cada factura",
            needs("facturas.pagos", "facturas.facturas"),
            lambda f: f["facturas.pagos"].merge(f["facturas.facturas"], on="factura_id")[
                ["pago_id", "metodo", "importe"]
            ],
        ),
    ],
)


def _department(seed: int, first: int, rows: int) -> dict[str, pd.DataFrame]:
    ids = range(first, first + rows)
    return {
        "employees": D(
            {
                "employee_id": ids,
                "full_name": [f"Person {number}" for number in ids],
                "grade": drawn(seed, ["junior", "senior"], rows),
            }
        ),
        "incidents": D(
            {
                "incident_id": range(1, 2 * rows + 1),
                "employee_id": drawn(seed + 1, ids, 2 * rows),
                "status": drawn(seed + 2, ["open", "closed"], 2 * rows),
                "opened_on": days(seed + 3, 2 * rows),
            }
        ),
    }


_PARTS = {"marketing": (10, 1, 12), "sales": (20, 1, 15), "finance": (30, 1, 9)}
DEPARTMENTS = Folder(
    {f"{name}/{table}.csv": frame for name, how in _PARTS.items() for table, frame in _department(*how).items()},
    [
        Asked(
            "Which marketing employees had open incidents?",
            needs("marketing.employees", "marketing.incidents"),
            lambda f: f["marketing.incidents"].merge(f["marketing.employees"], on="employee_id")[
                ["incident_id", "full_name", "status"]
            ],
        ),
        Asked(
            "List the grade of all finance employees",
            needs("finance.employees"),
            lambda f: f["finance.employees"][["full_name", "grade"]],
        ),
        Asked(
            "How many employees are junior, over all departments?",
            needs("marketing.employees", "sales.employees", "finance.employees"),
            lambda f: pd.concat([f[f"{name}.employees"].assign(folder=name) for name in sorted(_PARTS)])[
                ["full_name", "grade", "folder"]
            ],
        ),
    ],
)


def _invoices(seed: int, year: int, first: int, rows: int = 40) -> pd.DataFrame:
    return D(
        {
            "invoice_id": range(first, first + rows),
            "customer_id": drawn(seed, range(301, 331), rows),
            "amount": [float(10 * seed + number) for number in range(rows)],
            "paid": drawn(seed + 1, ["yes", "no"], rows),
            "issued": days(seed + 2, rows, year),
        }
    )


YEARS = Folder(
    {
        "2023/invoices.csv": _invoices(1, 2023, 1),
        "2024/invoices.csv": _invoices(2, 2024, 1),
        "customers.csv": D(
            {
                "customer_id": range(301, 331),
                "customer": named("Client", 30),
                "country": drawn(9, ["PT", "CZ", "DK"], 30),
            }
        ),
    },
    [
        Asked(
            "Total invoice amount by customer country",
            needs("2023.invoices", "2024.invoices", "root.customers"),
            lambda f: pd.concat([f[f"{year}.invoices"].assign(folder=year) for year in ("2023", "2024")]).merge(
                f["root.customers"], on="customer_id"
            )[["invoice_id", "amount", "country", "folder"]],
        ),
        Asked(
            "Which invoices of 2024 are not paid?",
            needs("2024.invoices"),
            lambda f: f["2024.invoices"][["invoice_id", "paid", "amount"]],
        ),
    ],
)

UNLIKE = Folder(
    {
        "library.sqlite": {
            "people": D(
                {"people_id": range(1, 31), "name": named("Reader", 30), "born": drawn(1, range(1950, 2000), 30)}
            ),
            "loans": D(
                {
                    "loan_id": range(1, 61),
                    "people_id": drawn(2, range(1, 31), 60),
                    "book": drawn(3, named("Book", 20), 60),
                }
            ),
        },
        "circus.sqlite": {
            "people": D(
                {"people_id": range(1, 26), "name": named("Acrobat", 25), "height": drawn(4, range(150, 200), 25)}
            ),
            "acts": D(
                {
                    "act_id": range(1, 41),
                    "people_id": drawn(5, range(1, 26), 40),
                    "trick": drawn(6, named("Trick", 9), 40),
                }
            ),
        },
    },
    [
        Asked(
            "Which tricks do people show in their acts?",
            needs("circus.people", "circus.acts"),
            lambda f: f["circus.acts"].merge(f["circus.people"], on="people_id")[["act_id", "trick", "height"]],
        ),
        Asked(
            "Which books did people take as loans?",
            needs("library.people", "library.loans"),
            lambda f: f["library.loans"].merge(f["library.people"], on="people_id")[["loan_id", "book", "born"]],
        ),
    ],
)

_DEVICES = [f"dev-{number:04x}" for number in drawn(77, range(5_000, 60_000), 30)]
SENSORS = Folder(
    {
        "plants/sites.csv": D(
            {
                "site_code": [f"{code}1" for code in "ABCDEF"],
                "site_name": named("Plant", 6),
                "manager": named("Boss", 6),
            }
        ),
        "devices.xlsx": {
            "Devices": D(
                {
                    "serial": _DEVICES,
                    "model": drawn(1, ["T1", "T2"], 30),
                    "site": drawn(2, [f"{code}1" for code in "ABCDEF"], 30),
                }
            )
        },
        "readings/readings.parquet": D(
            {
                "reading": range(1, 401),
                "device_serial": drawn(3, _DEVICES, 400),
                "celsius": [round(15 + number % 17 / 3, 1) for number in range(400)],
            }
        ),
        "service.sqlite": {
            "repairs": D(
                {
                    "repair_id": range(1, 41),
                    "device_serial": drawn(4, _DEVICES, 40),
                    "cost": [50 + number for number in range(40)],
                }
            )
        },
    },
    [
        Asked(
            "What did the repairs of each device model cost?",
            needs("service.repairs", "devices.Devices"),
            lambda f: f["service.repairs"].merge(f["devices.Devices"], left_on="device_serial", right_on="serial")[
                ["repair_id", "cost", "model"]
            ],
        ),
        Asked(
            "Mean celsius readings per site manager",
            needs("readings.readings", "devices.Devices", "plants.sites"),
            lambda f: (
                f["readings.readings"]
                .merge(f["devices.Devices"], left_on="device_serial", right_on="serial")
                .merge(f["plants.sites"], left_on="site", right_on="site_code")[["reading", "celsius", "manager"]]
            ),
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
