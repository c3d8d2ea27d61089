"""Cells of hidden columns are looked for in what merges give: forty ways on each kind of source, from Python, the
tools of an agent, the shell and the page, in the whole result: rows, report, plan, SQL, warnings and errors."""

from __future__ import annotations

import json
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tagframe.cli import main
from tagframe.errors import HiddenColumn, TagframeError
from tagframe.joins import JoinPlan
from tests import opened_in

ROWS = 40
BASE, BADGE = 881_990_000, 667_700_700
BIRTHS = [f"19{50 + n}-03-{n % 28 + 1:02}" for n in range(ROWS)]
EMPLOYEES = pd.DataFrame(
    {
        "employee_id": range(1, ROWS + 1),
        "name": [f"Person {n}" for n in range(ROWS)],
        "ssn": [f"zqs-{n:05}" for n in range(ROWS)],
        "salary": [BASE + 137 + 13 * n for n in range(ROWS)],
        "birth_date": BIRTHS,
        "badge_id": [BADGE + n for n in range(ROWS)],
        "team_id": [n % 4 + 1 for n in range(ROWS)],
    }
)
STEPS = [BASE + n for n in range(1_000)]
SCALE = pd.DataFrame(
    {"step": STEPS, "label": [f"grade {BASE + n}" for n in range(1_000)], "band": ["low", "high"] * 500}
)
CALENDAR = pd.DataFrame(
    {
        "date": BIRTHS,
        "iso_date": [f"D{birth}" for birth in BIRTHS],
        "year": [int(birth[:4]) for birth in BIRTHS],
        "quarter": [1] * ROWS,
    }
)
PAYMENTS = pd.DataFrame(
    {
        "payment_id": range(500, 500 + 2 * ROWS),
        "ssn": [f"zqs-{n % ROWS:05}" for n in range(2 * ROWS)],
        "amount": [10 + n % 7 for n in range(2 * ROWS)],
        "paid_until": [BASE + 50 * n for n in range(2 * ROWS)],
    }
)
BADGES = pd.DataFrame(
    {
        "badge_id": [BADGE + n for n in range(ROWS)],
        "code": [f"code-{BADGE + n}" for n in range(ROWS)],
        "color": ["red", "blue"] * (ROWS // 2),
    }
)
DOORS = pd.DataFrame({"door_id": range(ROWS), "code": [f"code-{BADGE + n}" for n in range(ROWS)], "floor": [1, 2] * 20})
TEAMS = pd.DataFrame({"team_id": [1, 2, 3, 4], "team": ["ant", "bee", "cat", "dog"]})
RANGES = pd.DataFrame({"low": [BASE + 10 * n for n in range(60)], "high": [BASE + 9 + 10 * n for n in range(60)],
                       "range_name": [f"from {BASE + 10 * n}" for n in range(60)]})  # fmt: skip
TABLES = {"employees": EMPLOYEES, "scale": SCALE, "calendar": CALENDAR, "payments": PAYMENTS, "badges": BADGES,
          "doors": DOORS, "teams": TEAMS, "ranges": RANGES}  # fmt: skip
HIDDEN = ("ssn", "salary", "birth_date", "badge_id")
CANARIES = ("zqs-", "1950-", "1961-", "d1950-", "8819900", "8819901", "8819904", "6677007")
"""What cells of the hidden columns, and of what tells them, begin with."""


SOURCES = ["frames", "sqlite", "csv", "lake", "postgres", "engines"]


def opened(source: str, folder: Path, request: pytest.FixtureRequest) -> tf.Corpus:
    if source != "engines":
        return opened_in.opened(source, TABLES, folder, request)
    # The table of hidden columns is in SQLite, others are in files: merges run across.
    opened_in.sqlite({name: TABLES[name] for name in ("employees", "teams")}, folder)
    return opened_in.opened(
        "lake", {name: frame for name, frame in TABLES.items() if name not in ("employees", "teams")}, folder, request
    )


def told(text: Any) -> list[str]:
    """Which cells are in a text, of columns that only a join would bring there."""
    return [canary for canary in CANARIES if canary in str(text).casefold()]


def found_in(corpus: tf.Corpus, *tables: str) -> Any:
    found = corpus.tables.tag.retrieve_tables("the name of all employees", k=1, method="lexical")
    return found.only(found[0].id).add(*tables).without(*({found[0].id} - {corpus.profile(one).id for one in tables}))


def merged(
    corpus: tf.Corpus, tables: list[str], *, plan: Callable[[JoinPlan], JoinPlan] | None = None, **options: Any
) -> list[Any]:
    """A merge, and all that it tells; the caller's own arguments aside."""
    found = found_in(corpus, *tables)
    options = {"on_fanout": "allow", **options}
    frame = found.merge(plan(found.join_plan), **options) if plan else found.merge(**options)
    report = frame.tag.merge_report
    return [frame.to_csv(), repr(frame), frame._repr_html_(), frame.attrs, pickle.dumps(frame.tag.merge_report),
            repr(report), report._repr_html_(), json.dumps(report.to_dict(), default=str), report.to_frame().to_csv(),
            repr(report.plan), report.plan.to_json(), report.sql, report.doubts]  # fmt: skip


JOINED = "SELECT e.name, b.code FROM employees e JOIN badges b ON e.badge_id = b.badge_id"
BIRTH = "employees.birth_date = calendar.date"
E_S = "employees.salary <= scale.step"
WAYS: dict[str, Callable[[tf.Corpus], Any]] = {
    # comparisons
    "as of": lambda c: merged(c, ["employees", "scale"], on=[E_S], columns=["name", "label"]),
    "as of, all columns": lambda c: merged(c, ["employees", "scale"], on=[E_S]),
    "as of, the other way": lambda c: merged(c, ["employees", "scale"], on=["scale.step >= employees.salary"]),
    "as of, with a key": lambda c: merged(c, ["employees", "payments"],
                                          on=["employees.ssn = payments.ssn and payments.paid_until <= salary"]),
    "range": lambda c: merged(c, ["employees", "ranges"], on=["employees.salary between ranges.low and ranges.high"]),
    "less": lambda c: merged(c, ["employees", "ranges"], on=["ranges.low < employees.salary"]),
    "as of, left": lambda c: merged(c, ["employees", "scale"], on=[E_S], how="left", limit=1),
    "as of a date": lambda c: merged(c, ["employees", "calendar"], on=["employees.birth_date >= calendar.date"]),
    # equal
    "equal": lambda c: merged(c, ["employees", "calendar"], on=["employees.birth_date = calendar.date"]),
    "equal, other columns": lambda c: merged(c, ["employees", "calendar"], on=["employees.birth_date = calendar.date"],
                                             columns=["name", "year", "quarter", "iso_date"]),
    "equal, left": lambda c: merged(c, ["employees", "payments"], on=["payments.ssn = employees.ssn"], how="left"),
    "equal, outer": lambda c: merged(c, ["employees", "payments"], on=["payments.ssn = employees.ssn"], how="outer"),
    "equal, inner": lambda c: merged(c, ["employees", "payments"], on=["payments.ssn = employees.ssn"]),
    "equal, partner asked for": lambda c: merged(c, ["employees", "badges"], columns=["name", "badges.badge_id"]),
    "equal, label asked for": lambda c: merged(c, ["employees", "badges"], columns=["name", "code"]),
    "a number": lambda c: merged(c, ["employees", "scale"], on=["employees.salary = scale.step"], how="left"),
    "by name": lambda c: merged(c, ["employees", "badges"], on=["badge_id"]),
    "composite": lambda c: merged(c, ["employees", "payments"],
                                  on=["employees.ssn = payments.ssn and employees.employee_id = payments.amount"]),
    # inferred
    "inferred": lambda c: merged(c, ["employees", "badges"]),
    "inferred, left": lambda c: merged(c, ["employees", "badges"], how="left"),
    "inferred, outer": lambda c: merged(c, ["employees", "badges"], how="outer"),
    "inferred, in memory": lambda c: merged(c, ["employees", "badges"], where=lambda_of("color")),
    "inferred, from the other side": lambda c: merged(c, ["badges", "employees"]),
    "inferred, some rows": lambda c: merged(c, ["employees", "badges"], limit=2),
    "inferred, no one lost": lambda c: merged(c, ["employees", "badges"], on_loss="raise", on_fanout="raise"),
    "a chain": lambda c: merged(c, ["employees", "badges", "doors"]),
    "a chain by hand": lambda c: merged(c, ["employees", "badges", "doors"], on=["badges.code = doors.code"]),
    "a plan by hand": lambda c: merged(c, ["employees", "badges"],
                                       plan=lambda p: p.use("employees.salary >= badges.badge_id")),
    "a plan from JSON": lambda c: merged(c, ["employees", "badges"],
                                         plan=lambda p: JoinPlan.from_json(unhidden(p.to_json()))),
    # tests
    "where a value": lambda c: merged(c, ["employees", "badges"], where={"badges.badge_id": BADGE + 3}),
    "where a label": lambda c: merged(c, ["employees", "badges"], where={"code": f"code-{BADGE + 3}"}),
    "where a bound": lambda c: merged(c, ["employees", "badges"], where=f"badge_id > {BADGE + 3}"),
    "where, quoted": lambda c: merged(c, ["employees", "badges"], where=f"`badges.badge_id` > {BADGE + 3}"),
    "where, hidden": lambda c: merged(c, ["employees", "badges"], where={"employees.salary": BASE + 137}),
    "where, a function": lambda c: merged(c, ["employees", "badges"], where={"badges.badge_id": printed}),
    "where, a local name": lambda c: merged(c, ["employees", "badges"], where="@result.tables is not None"),
    # aggregates
    "aggregate hidden": lambda c: merged(c, ["badges", "employees"], aggregate={"employees": {"salary": "max"}}),
    "aggregate distinct": lambda c: merged(c, ["badges", "employees"], aggregate={"employees": {"salary": "nunique"}}),
    "aggregate the partner": lambda c: merged(c, ["employees", "badges"], aggregate={"badges": {"code": "min"}}),
    "aggregate others": lambda c: merged(c, ["badges", "employees"], aggregate={"employees": {"team_id": "count"}}),
    # frames that are brought
    "a probe": lambda c: probed(c, pd.DataFrame({"badge_id": [BADGE + 3], "mine": [f"it is {BADGE + 3}"]})),
    "a probe of several": lambda c: probed(c, pd.DataFrame({"ssn": ["zqs-00003"], "who": ["the zqs-3"]})),
    "a union": lambda c: united(c),
    # frames that are read
    "of read frames": lambda c: told_frame(tf.merge(c.read("employees"), c.read("badges"), on="badge_id")),
    "a plan of read frames": lambda c: repr(tf.join_plan(c.read("employees"), c.read("scale"), on="salary <= step")),
    # SQL
    "syn's SQL": lambda c: found_in(c, "employees", "badges").join_plan.sql(),
    "run_sql of the plan": lambda c: tf.exec_sql(c)(JOINED).to_csv(),
    "an old result": lambda c: merged(pickle.loads(pickle.dumps(c)), ["employees", "badges"]),
}  # fmt: skip


def printed(cells: pd.Series) -> pd.Series:
    print(cells)
    return cells > 0


def lambda_of(column: str) -> dict[str, Any]:
    return {column: lambda cells: cells == "red"}


def unhidden(plan: str) -> str:
    """The JSON of a plan that knows nothing of what is hidden."""
    told = json.loads(plan)
    for table in told["tables"]:
        table.update(hidden=[], hidden_by_user=[], known_by=[])
    return json.dumps(told)


def told_frame(frame: pd.DataFrame) -> list[Any]:
    return [frame.to_csv(), repr(frame.tag.merge_report)]


def probed(corpus: tf.Corpus, probe: pd.DataFrame) -> list[Any]:
    with tf.context(corpus=corpus):
        found = probe.tag.retrieve_tables("the name of employees", k=1, method="lexical")
    frame = found.only("employees").merge(on=[f"{probe.columns[0]} = employees.{probe.columns[0]}"], on_loss="allow")
    return [frame.to_csv(), repr(frame.tag.merge_report)]


def united(corpus: tf.Corpus) -> list[Any]:
    both = corpus.union(
        tf.open_corpus({"mine.probe": pd.DataFrame({"badge_id": [BADGE + 3], "label": [f"{BADGE + 3}"]})})
    )
    return merged(both, ["employees", "probe"])


TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("merge_tables", {"tables": ["employees", "scale"], "on": [E_S], "columns": ["name", "step"]}),
    ("merge_tables", {"tables": ["employees", "scale"], "on": [E_S], "columns": ["name", "label"]}),
    ("merge_tables", {"tables": ["employees", "calendar"], "on": [BIRTH]}),
    ("merge_tables", {"tables": ["employees", "calendar"], "on": [BIRTH], "columns": ["name", "year"]}),
    ("merge_tables", {"tables": ["payments", "employees"], "on": ["payments.ssn = employees.ssn"]}),
    ("merge_tables", {"tables": ["employees", "badges"]}),
    ("merge_tables", {"tables": ["employees", "badges"], "how": "left"}),
    ("merge_tables", {"tables": ["employees", "badges"], "how": "outer"}),
    ("merge_tables", {"tables": ["employees", "badges"], "columns": ["name", "badge_id"]}),
    ("merge_tables", {"tables": ["employees", "badges"], "columns": ["name", "badges.code"]}),
    ("merge_tables", {"tables": ["employees", "badges"], "where": {"badges.badge_id": BADGE + 3}}),
    ("merge_tables", {"tables": ["employees", "badges"], "where": f"code == 'code-{BADGE + 3}'"}),
    ("merge_tables", {"tables": ["employees", "badges"], "aggregate": {"badges": {"code": "max"}}}),
    ("merge_tables", {"tables": ["employees", "badges", "doors"]}),
    ("plan_joins", {"tables": ["employees", "badges"]}),
    ("plan_joins", {"tables": ["employees", "scale"], "on": [E_S]}),
    ("plan_joins", {"tables": ["employees", "ranges"], "on": ["employees.salary between ranges.low and ranges.high"]}),
]  # fmt: skip

COMMANDS = [
    ["employees", "scale", "--on", E_S],
    ["employees", "calendar", "--on", "employees.birth_date = calendar.date"],
    ["employees", "badges"],
    ["employees", "badges", "--json"],
    ["employees", "badges", "--column", "name", "--column", "code"],
    ["employees", "badges", "--where", f"badge_id == {BADGE + 3}"],
]


@contextmanager
def heard() -> Iterator[list[str]]:
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(one.message) for one in caught]


def outcome(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a call gives and warns of, or its error; a refusal by name quotes only what its caller wrote."""
    with heard() as said:
        try:
            given, refused = call(), ""
        except HiddenColumn as error:
            given, refused = "", str(error)
        except (TagframeError, NameError) as error:
            given, refused = ["".join(traceback.format_exception_only(error)), getattr(error, "rows", "")], "other"
    return [given, said], refused


def hidden(corpus: tf.Corpus, *, from_models: bool = False) -> tf.Corpus:
    for column in HIDDEN:
        corpus.hide(f"employees.{column}", from_models=from_models)
    return corpus


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_no_way_to_merge_tells_a_hidden_cell(source, request, tmp_path, capsys):
    folder = tmp_path / "firm"
    corpus = hidden(opened(source, folder, request))
    shown: dict[str, Any] = {}
    joined = 0
    for name, way in WAYS.items():
        given, refused = outcome(lambda way=way: way(corpus))
        if where := told(given):
            shown[name] = where
        joined += not refused
    tools = corpus.tools()
    for name, arguments in TOOLS:
        given, _ = outcome(lambda name=name, arguments=arguments: json.dumps(tools.call(name, arguments)))
        if where := told(given):
            shown[f"{name} {arguments}"] = where
    if source in ("sqlite", "csv"):
        path = folder / "s.sqlite" if source == "sqlite" else folder
        for line in COMMANDS:
            done = CliRunner().invoke(main, ["merge", str(path), *line])
            if where := told(done.output.replace(line[-1], "")):
                shown[f"tagframe merge {line}"] = where
    if where := told(capsys.readouterr().out):
        shown["printed"] = where
    assert shown == {}
    assert joined >= 8, "tables join on hidden keys all the same"
    assert len(WAYS) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("source", ["frames", "sqlite", "postgres"])
def test_no_tool_tells_by_a_merge_what_is_hidden_from_models(source, request, tmp_path):
    corpus = hidden(opened(source, tmp_path, request), from_models=True)
    tools, shown = corpus.tools(), {}
    for name, arguments in TOOLS:
        given, _ = outcome(lambda name=name, arguments=arguments: json.dumps(tools.call(name, arguments)))
        if where := told(given):
            shown[f"{name} {arguments}"] = where
    assert shown == {}
    frame = found_in(corpus, "employees", "badges").merge()
    assert told(frame.to_csv()), "in frames of Python it is there"


def small(**hidden_too: Any) -> tf.Corpus:
    corpus = tf.open_corpus({"employees": EMPLOYEES, "badges": BADGES, "doors": DOORS})
    corpus.hide("employees.badge_id", **hidden_too)
    return corpus


def test_with_both_columns_of_a_key_hidden_the_result_has_the_others():
    corpus = small()
    plain = found_in(corpus, "employees", "badges").merge()
    assert {"name", "color"} <= {*plain.columns}
    assert not {"badge_id", "code"} & {*plain.columns}
    corpus.hide("badges.badge_id")
    whole = found_in(corpus, "employees", "badges").merge()
    assert {"name", "color", "code"} <= {*whole.columns}
    assert "badge_id" not in whole.columns
    assert whole["code"].tolist() == BADGES["code"].tolist()


def test_what_tells_a_hidden_cell_is_kept_back_along_a_chain():
    found = found_in(small(), "employees", "badges", "doors")
    assert not {"code", "badge_id", "door_id"} & {*found.merge().columns}
    assert "floor" in found.merge().columns
    with pytest.raises(HiddenColumn, match="Hide both columns of the key"):
        found.merge(where={"door_id": 3})


def test_nothing_joins_on_a_column_that_is_hidden_so():
    corpus = small(joinable=False)
    assert corpus.hidden["joinable"].tolist() == [False]
    found = found_in(corpus, "employees", "badges")
    with pytest.raises((HiddenColumn, TagframeError)):
        found.merge(on=["employees.badge_id = badges.badge_id"])
    with pytest.raises(HiddenColumn, match="no table joins on it"):
        found.merge(on=["employees.badge_id = badges.badge_id"])
    assert not any("badge_id" in key.left + key.right for key in found.plans and found.joins)
    corpus.keys.add("employees.badge_id = badges.badge_id")
    with pytest.raises(TagframeError):
        found_in(corpus, "employees", "badges").merge()
    corpus.hide("employees.badge_id")
    assert "color" in found_in(corpus, "employees", "badges").merge().columns


def test_columns_of_a_stack_are_hidden_in_whatever_case():
    corpus = tf.open_corpus(
        {"sales_2023": EMPLOYEES[["employee_id", "ssn", "team_id"]],
         "sales_2024": EMPLOYEES[["employee_id", "ssn", "team_id"]].rename(columns={"ssn": "SSN"}), "teams": TEAMS}
    )  # fmt: skip
    corpus.hide("sales_2024.SSN")
    frame = found_in(corpus, "sales_2023", "sales_2024", "teams").merge(on_fanout="allow")
    assert len(frame) == 2 * ROWS
    assert not told(frame.to_csv())


def test_a_statement_that_was_run_makes_no_key_of_a_hidden_column():
    corpus = tf.open_corpus({"employees": EMPLOYEES, "scale": SCALE.assign(step=range(1_000))})
    corpus.hide("employees.badge_id")
    corpus.learn("SELECT e.name, s.label FROM employees e JOIN scale s ON e.badge_id = s.step")
    with pytest.raises(HiddenColumn, match=r"corpus\.keys\.add"):
        found_in(corpus, "employees", "scale").merge(on=["employees.badge_id = scale.step"], on_loss="allow")


@pytest.mark.slow
def test_a_server_gives_rows_in_an_order_that_tells_nothing(database):
    shuffled = [7, 3, 9, 1, 8, 2, 6, 4, 10, 5] * 300
    people = ", ".join(f"({n}, {1_000 * key + n % 300})" for n, key in enumerate(shuffled))
    url = database(
        "CREATE TABLE a (name int, badge_id int); CREATE TABLE b (badge_id int, color text);"
        f"INSERT INTO a VALUES {people}; INSERT INTO b SELECT badge_id, 'red' FROM a ORDER BY badge_id; ANALYZE;"
    )
    corpus = tf.open_corpus(url, progress=False)
    corpus.hide("a.badge_id")
    corpus.hide("b.badge_id")
    corpus.keys.add("a.badge_id = b.badge_id")
    frame = found_in(corpus, "a", "b").merge(on_fanout="allow", on_loss="allow")
    assert frame["name"].is_monotonic_increasing
