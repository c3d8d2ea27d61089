"""Tables of which plans are made: scenarios that people meet, and schemas drawn at random; the same for a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

import pandas as pd

Frames = dict[str, pd.DataFrame]

COUNTRIES = ("AT", "BE", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT", "LT", "LU", "LV", "NL",
             "PL", "PT", "RO", "SE", "SI", "SK")  # fmt: skip


def panel(chance: random.Random) -> Frames:
    """Firms by country and year, and the rates of each country in each year."""
    grid = [(country, year) for country in COUNTRIES for year in range(2001, 2026)]
    drawn = [chance.choice(grid) for _ in range(600)]
    firms = pd.DataFrame(drawn, columns=["country", "year"]).assign(revenue=[chance.random() * 99 for _ in drawn])
    rates = pd.DataFrame(grid, columns=["country", "year"]).assign(rate=[chance.random() for _ in grid])
    return {"firms": firms, "rates": rates}


def panel_with_id(chance: random.Random) -> Frames:
    """The same, and each table counts its rows."""
    return {name: frame.assign(id=range(1, len(frame) + 1)) for name, frame in panel(chance).items()}


def categories(chance: random.Random) -> Frames:
    """Sales of products of categories, of which some have parents."""
    sales = pd.DataFrame({"sale_id": range(1, 41), "product": [f"p{chance.randrange(12)}" for _ in range(40)]})
    made = pd.DataFrame({"category_id": range(1, 13), "parent_category_id": [None, None, *range(1, 11)],
                         "title": [f"title {n}" for n in range(12)]})  # fmt: skip
    return {"sales": sales, "categories": made}


def lab(chance: random.Random) -> Frames:
    """Visits of patients, and what the laboratory found of them on other days; no table of patients."""
    visits = [chance.randrange(1000, 1040) for _ in range(120)]
    found = [chance.choice(visits) for _ in range(200)]
    return {
        "lab": pd.DataFrame({"patient_id": found, "test": [chance.choice("abc") for _ in found]}),
        "visits": pd.DataFrame({"patient_id": visits, "ward": [chance.choice(("north", "south")) for _ in visits]}),
    }


def budget(chance: random.Random) -> Frames:
    """What was planned and what was spent by account and month."""
    grid = [(account, month) for account in range(4000, 4020) for month in range(1, 13)]
    actual = chance.sample(grid, 200)
    return {
        "actual": pd.DataFrame(actual, columns=["account", "month"]).assign(spent=[chance.random() for _ in actual]),
        "budget": pd.DataFrame(grid, columns=["account", "month"]).assign(planned=[chance.random() for _ in grid]),
    }


def shop(chance: random.Random) -> Frames:
    """Orders of customers, and the lines of them."""
    customers = pd.DataFrame({"customer_id": range(501, 541), "name": [f"n{n}" for n in range(40)]})
    orders = pd.DataFrame({"order_id": range(9001, 9121), "customer_id": chance.choices(range(501, 541), k=120)})
    lines = pd.DataFrame({"order_id": chance.choices(range(9001, 9121), k=300), "amount": range(300)})
    return {"lines": lines, "orders": orders, "customers": customers}


def roles(chance: random.Random) -> Frames:
    """Games of two teams."""
    teams = pd.DataFrame({"id": range(1, 19), "name": [f"team {n}" for n in range(18)]})
    pairs = [chance.sample(range(1, 19), 2) for _ in range(90)]
    games = pd.DataFrame(pairs, columns=["home_team_id", "away_team_id"]).assign(goals=[n % 5 for n in range(90)])
    return {"games": games, "teams": teams}


def words_for_keys(chance: random.Random) -> Frames:
    """Shops known by a code, sales that say which."""
    codes = [f"S{chance.randrange(10_000):05d}" for _ in range(30)]
    shops = pd.DataFrame({"shop_code": [*dict.fromkeys(codes)]})
    sales = pd.DataFrame({"shop_code": chance.choices(shops["shop_code"].tolist(), k=80), "total": range(80)})
    return {"sales": sales, "shops": shops.assign(town=[f"town {n % 7}" for n in range(len(shops))])}


def surrogate(chance: random.Random) -> Frames:
    """A dimension with a key of its own beside the one that facts have."""
    business = chance.sample(range(1, 41), 40)
    dim = pd.DataFrame({"customer_sk": range(1, 41), "customer_id": business, "name": [f"n{n}" for n in range(40)]})
    facts = pd.DataFrame({"sale": range(100), "customer_id": chance.choices(business, k=100)})
    return {"sales": facts, "dim_customer": dim}


def days(chance: random.Random) -> Frames:
    """Trades and the weather by day."""
    every = pd.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d").tolist()
    return {
        "trades": pd.DataFrame({"day": chance.choices(every, k=150), "price": [chance.random() for _ in range(150)]}),
        "weather": pd.DataFrame({"day": every, "rain": [chance.random() for _ in every]}),
    }


def strangers(chance: random.Random) -> Frames:
    """Two tables that have nothing to do with each other."""
    return {
        "recipes": pd.DataFrame({"dish": [f"dish {n}" for n in range(25)], "minutes": range(25)}),
        "planets": pd.DataFrame({"planet": [f"planet {n}" for n in range(9)], "moons": range(9)}),
    }


def years(chance: random.Random) -> Frames:
    """Tables of one shape for two years, and what they are about."""
    shops = pd.DataFrame({"shop_id": range(301, 321), "town": [f"town {n % 6}" for n in range(20)]})

    def sold() -> pd.DataFrame:
        return pd.DataFrame(
            {"shop_id": chance.choices(range(301, 321), k=50), "amount": chance.choices(range(99), k=50)}
        )

    return {"sales_2023": sold(), "sales_2024": sold(), "shops": shops}


def tree(chance: random.Random) -> Frames:
    """Employees with managers, and their departments."""
    boss = [None, *(chance.randrange(1, 1 + n) for n in range(1, 50))]
    people = pd.DataFrame({"emp_id": range(1, 51), "manager_id": boss, "dept_id": chance.choices(range(70, 78), k=50)})
    return {"employees": people, "departments": pd.DataFrame({"dept_id": range(70, 78), "dept": [*"abcdefgh"]})}


def returns(chance: random.Random) -> Frames:
    """What was sent back, by order and line."""
    lines = [(order, line) for order in range(801, 861) for line in range(1, 1 + chance.randrange(1, 5))]
    back = chance.sample(lines, 40)
    skus = [f"k{n}" for n in range(len(lines))]
    return {
        "returns": pd.DataFrame(back, columns=["order_id", "line_no"]).assign(refund=range(40)),
        "order_lines": pd.DataFrame(lines, columns=["order_id", "line_no"]).assign(sku=skus),
    }


def mails(chance: random.Random) -> Frames:
    """Accounts and visits by address, with the index that was saved along."""
    known = [f"{chance.randrange(10**6)}@x" for _ in range(40)]
    seen = chance.sample(known, 40)
    return {
        "plans": pd.DataFrame({"Unnamed: 0": range(40), "email": known, "plan": chance.choices("pqr", k=40)}),
        "visits": pd.DataFrame({"Unnamed: 0": range(40), "email": seen, "visits": range(40)}),
    }


SCENARIOS: Mapping[str, Callable[[random.Random], Frames]] = {
    made.__name__: made
    for made in (panel, panel_with_id, categories, lab, budget, shop, roles, words_for_keys, surrogate, days, strangers,
                 years, tree, returns, mails)
}  # fmt: skip

Variant = Callable[[Frames, random.Random], Frames]


def _shuffled(frames: Frames, chance: random.Random) -> Frames:
    return {name: frame.sample(frac=1, random_state=chance.randrange(2**31)).reset_index(drop=True)
            for name, frame in frames.items()}  # fmt: skip


def _columns_turned(frames: Frames, chance: random.Random) -> Frames:
    return {name: frame[frame.columns[::-1]] for name, frame in frames.items()}


def _some_rows(frames: Frames, chance: random.Random) -> Frames:
    return {name: frame.sample(frac=0.6, random_state=chance.randrange(2**31)).reset_index(drop=True)
            for name, frame in frames.items()}  # fmt: skip


def _few_rows(frames: Frames, chance: random.Random) -> Frames:
    return {name: frame.head(9) for name, frame in frames.items()}


def _turned(frames: Frames, chance: random.Random) -> Frames:
    return dict(reversed([*frames.items()]))


def _nulls(frames: Frames, chance: random.Random) -> Frames:
    return {name: frame.assign(**{frame.columns[-2]: frame[frame.columns[-2]].where(
        [chance.random() > 0.1 for _ in range(len(frame))])}) for name, frame in frames.items()}  # fmt: skip


def _first_is_text(frames: Frames, chance: random.Random) -> Frames:
    name, frame = next(iter(frames.items()))
    return {
        **frames,
        name: frame.assign(**{frame.columns[0]: [None if pd.isna(cell) else str(cell) for cell in frame.iloc[:, 0]]}),
    }


def _another(frames: Frames, chance: random.Random) -> Frames:
    return {**frames, "notes": pd.DataFrame({"note": [f"note {n}" for n in range(5)], "written": range(5)})}


def _counted(frames: Frames, chance: random.Random) -> Frames:
    return {name: frame if "id" in frame else pd.concat([pd.DataFrame({"id": range(1, len(frame) + 1)}), frame], axis=1)
            for name, frame in frames.items()}  # fmt: skip


VARIANTS: Mapping[str, Variant] = {
    "plain": lambda frames, chance: frames,
    "rows shuffled": _shuffled,
    "columns turned": _columns_turned,
    "some rows": _some_rows,
    "few rows": _few_rows,
    "order turned": _turned,
    "nulls": _nulls,
    "first column is text": _first_is_text,
    "another table": _another,
    "rows counted": _counted,
}


def scenarios() -> Iterator[tuple[str, Frames]]:
    """Each scenario in each variant: 150."""
    for name, made in SCENARIOS.items():
        for kind, variant in VARIANTS.items():
            chance = random.Random(f"{name} {kind}")
            yield f"{name}, {kind}", variant(made(chance), chance)


_THINGS = ("customer", "product", "city", "driver", "school", "film", "account", "team", "artist", "ship")
_ATTRIBUTES = ("name", "title", "age", "amount", "status", "note", "created", "price", "kind", "score")


def _cells(attribute: str, rows: int, chance: random.Random) -> list[object]:
    if attribute in ("age", "score"):
        return chance.choices(range(18, 80) if attribute == "age" else range(11), k=rows)
    if attribute in ("amount", "price"):
        return [round(chance.random() * 100, 2) for _ in range(rows)]
    if attribute == "created":
        return pd.date_range("2023-01-01", periods=rows).strftime("%Y-%m-%d").tolist()
    return [f"{attribute} {chance.randrange(rows)}" for _ in range(rows)]


def random_schema(seed: int) -> Frames:
    """Two to four tables, each of some thing; most refer to others, in one of many ways."""
    chance = random.Random(f"schema {seed}")
    things = chance.sample(_THINGS, chance.randrange(2, 5))
    keys: dict[str, tuple[str, list[object]]] = {}
    frames: Frames = {}
    for thing in things:
        rows = chance.choice((4, 12, 40, 150))
        columns: dict[str, list[object]] = {}
        start = chance.choice((0, 1, 1, 1, 100, 7001))
        numbers: list[object] = [*range(start, start + rows)]
        if chance.random() < 0.3:
            chance.shuffle(numbers)
        if chance.random() < 0.2:
            numbers = [f"{thing[:2].upper()}-{number}" for number in numbers]
        key = chance.choice(("id", f"{thing}_id", f"{thing}_code", f"{thing.title()}Id", thing))
        if chance.random() < 0.85:
            columns[key] = numbers
            keys[thing] = key, numbers
        for other, (spelt, values) in keys.items():
            if other != thing and chance.random() < 0.7:
                role = chance.choice(("", "", "", "main_", "old_"))
                name = f"{role}{other}_id" if spelt == "id" else f"{role}{spelt}"
                columns[name] = chance.choices(values, k=rows)
                if chance.random() < 0.2:
                    columns[name] = [value if chance.random() < 0.8 else None for value in columns[name]]
        for attribute in chance.sample(_ATTRIBUTES, chance.randrange(1, 4)):
            columns[attribute] = _cells(attribute, rows, chance)
        if chance.random() < 0.2:
            columns = dict(chance.sample([*columns.items()], len(columns)))
        plural = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
        frames[chance.choice((thing, plural, f"dim_{thing}"))] = pd.DataFrame(columns)
    return dict(chance.sample([*frames.items()], len(frames)))
