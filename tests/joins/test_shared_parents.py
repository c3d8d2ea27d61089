"""Two tables that refer to one parent: the way through the tables between comes before the shared reference."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import DoubtfulJoinWarning
from tagframe.joins import plan_joins
from tagframe.keys import KeyPair

D = pd.DataFrame
EMPLOYEES = [100 + 7 * n for n in range(22)]
COLLEGE = {
    "college.class": D({"class_code": range(10012, 10025), "crs_code": ["A1", "A2", "C1", "C2"] * 3 + ["A1"],
                        "prof_num": EMPLOYEES[:13]}),
    "college.course": D({"crs_code": ["A1", "A2", "C1", "C2"], "dept_code": ["ACCT", "ACCT", "CIS", "CIS"]}),
    "college.department": D({"dept_code": ["ACCT", "ART", "CIS"],
                             "emp_num": [EMPLOYEES[3], EMPLOYEES[20], EMPLOYEES[7]]}),
    "college.employee": D({"emp_num": EMPLOYEES, "lname": [f"n{n}" for n in EMPLOYEES]}),
}  # fmt: skip
KEYS = [
    KeyPair("college.class", ("prof_num",), "college.employee", ("emp_num",), 0.95),
    KeyPair("college.department", ("emp_num",), "college.employee", ("emp_num",), 0.95),
    KeyPair("college.class", ("crs_code",), "college.course", ("crs_code",), 0.95),
    KeyPair("college.course", ("dept_code",), "college.department", ("dept_code",), 0.95),
]


def test_the_way_by_references_comes_before_a_shared_parent():
    corpus = tf.open_corpus(COLLEGE)
    two = [corpus.profile(f"college.{name}") for name in ("department", "class")]
    between = [corpus.profile(f"college.{name}") for name in ("course", "employee")]
    plan = plan_joins(two, KEYS, bridges=between)
    assert plan.bridges == ("college.course",)
    assert {step.key.right for step in plan.steps} == {
        "college.course.crs_code", "college.department.dept_code"
    }  # fmt: skip


def test_a_shared_parent_in_unlike_roles_is_a_doubt_if_there_is_no_other_way():
    corpus = tf.open_corpus(COLLEGE)
    two = [corpus.profile(f"college.{name}") for name in ("department", "class")]
    plan = plan_joins(two, KEYS[:2])
    assert plan.score < 0.5
    frames = {id.partition(".")[2]: COLLEGE[id] for id in ("college.class", "college.department")}
    with pytest.warns(DoubtfulJoinWarning, match=r"prof_num = .*emp_num \(40%\)"):
        tf.merge(
            {f"college.{name}": frame for name, frame in frames.items()}, plan=plan, on_fanout="allow", on_loss="allow"
        )


def test_rows_that_two_databases_count_on_their_own_are_a_doubt():
    people = D({"people_id": range(1, 31), "name": [f"a{n}" for n in range(30)], "height": range(150, 180)})
    others = D({"people_id": range(1, 31), "name": [f"b{n}" for n in range(30)], "weight": range(50, 80)})
    with pytest.warns(DoubtfulJoinWarning, match="people_id"):
        tf.merge({"gym.people": people, "swim.people": others}, stack=False)
    sparse = [n * n + 1000 for n in range(30)]
    plan = tf.join_plan(
        {"gym.people": people.assign(people_id=sparse), "swim.people": others.assign(people_id=sparse)}, stack=False
    )
    assert plan.score > 0.5
