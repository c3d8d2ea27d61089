"""What speaks against an answer, found without a model."""

from __future__ import annotations

import json
import pickle
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer.doubts import doubts_of
from tagframe.errors import UnsureWarning
from tests import opened_in

NEAR_POLO = "no cell of club.name has the value 'polo'; the nearest is 'Polo': with it, it would be Polo"
CLUBS = pd.DataFrame({"club_id": [1, 2, 3], "name": ["Dressage", "Polo", "Tölt"], "coach_id": [7, None, 8]})
COACHES = pd.DataFrame({"coach_id": [7, 8, 9], "coach": ["Ann", "Bo", "Cy"], "wins": [3, 5, 5]})
MEMBERS = pd.DataFrame(
    {"member_id": [11, 12, 13, 14], "club_id": [1, 1, 3, 3], "town": ["Oslo", "Oslo", "Bergen", "Oslo"]}
)


@pytest.fixture
def clubs():
    return tf.open_corpus({"club": CLUBS, "coach": COACHES, "member": MEMBERS})


def kinds(corpus, sql, question=""):
    return [(doubt.reason, doubt.facts) for doubt in doubts_of(tf.exec_sql(corpus)(sql), question)]


@pytest.mark.parametrize(
    ("sql", "doubts"),
    [
        ("SELECT name FROM club WHERE club_id > 1", []),
        ("SELECT name FROM club WHERE name = 'Polo'", []),
        ("SELECT DISTINCT c.name FROM member m JOIN club c ON c.club_id = m.club_id", []),
        (
            "SELECT name FROM club WHERE name = 'polo'",
            [
                (
                    "value",
                    "no cell of club.name has the value 'polo'; the nearest is 'Polo': with it, it would be Polo",
                ),
            ],
        ),
        (
            "SELECT count(*) FROM club WHERE name <> 'Pollo'",
            [
                (
                    "value",
                    "no cell of club.name has the value 'Pollo'; the nearest is 'Polo': with it, it would be 2 "
                    "instead of 3",
                )
            ],
        ),
        (
            "SELECT count(*) FROM club WHERE name = 'Chess'",
            [
                (
                    "value",
                    "no cell of club.name has the value 'Chess'; without this condition, it would be 3 instead of 0",
                )
            ],
        ),
        ("SELECT count(*) FROM club WHERE name = 'Polo' OR name = 'Pollo'", []),
        ("SELECT count(*) FROM club WHERE NOT (name = 'Chess')", []),
        ("SELECT CASE WHEN name = 'Polo' THEN 1 WHEN name = 'Pollo' THEN 1 ELSE 0 END AS p FROM club", []),
        (
            "SELECT CASE WHEN name = 'Pollo' THEN 1 ELSE 0 END AS p FROM club",
            [
                (
                    "value",
                    "no cell of club.name has the value 'Pollo'; the nearest is 'Polo': with it, 1 of 3 rows would "
                    "differ",
                )
            ],
        ),
        ("SELECT max(wins) FROM coach WHERE wins > 9", []),
        (
            "SELECT club.name, coach.coach FROM club JOIN coach USING (coach_id)",
            [("match", "rows of club without a match are left out; with them, there would be 3 rows instead of 2")],
        ),
        (
            "SELECT c.name, count(*) FROM member m JOIN club c ON m.club_id = c.club_id GROUP BY c.name",
            [("match", "rows of club without a match are left out; with them, there would be 3 rows instead of 2")],
        ),
        (
            "SELECT coach FROM coach ORDER BY wins DESC LIMIT 1",
            [("tie", "1 further row ties with row 1 in ORDER BY")],
        ),
        ("SELECT wins FROM coach ORDER BY wins DESC LIMIT 1", []),
        ("SELECT coach FROM coach ORDER BY wins DESC, coach LIMIT 1", []),
        ("SELECT coach, wins AS w FROM coach ORDER BY w, 1 LIMIT 1", []),
    ],
)
def test_a_statement_is_doubted_for_what_can_be_looked_up(clubs, sql, doubts):
    assert kinds(clubs, sql) == doubts


def test_a_join_by_no_key_is_doubted(clubs):
    assert kinds(clubs, "SELECT name FROM club, coach WHERE club_id = wins")[0] == (
        "join",
        "frames.club.club_id = frames.coach.wins is 0% likely a key, frames.club.coach_id = frames.coach.coach_id 95%; "
        "by it, there would be 2 rows instead of 1",
    )


ORDERS = pd.DataFrame(
    {
        "order_id": range(1, 9), "customer_id": [1, 1, 2, 2, 2, 3, 4, 1], "city_from": list("abababab"),
        "gross_amount": range(10, 90, 10), "net_amount": range(8, 72, 8), "amount_paid": range(8),
        "state": ["Closed", "closed", "Open", "Closed", "CLOSED", "Open", "Closed", "closed "],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "sql", "found"),
    [
        ("What is the total amount?", "sum(gross_amount) AS t FROM orders", [("column", "it would be 288 instead")]),
        ("What is the gross amount in all?", "sum(gross_amount) AS t FROM orders", []),
        ("What was paid?", "sum(amount_paid) AS t FROM orders", []),
        (
            "How many orders are closed?",
            "count(*) AS n FROM orders WHERE state = 'Closed'",
            [("value", "6 instead of 3")],
        ),
        ("How many are open?", "count(*) AS n FROM orders WHERE state = 'Open'", []),
        ("How many customers ordered?", "count(customer_id) AS n FROM orders", [("repeated", "4 instead of 8")]),
        ("How many customers ordered?", "count(DISTINCT customer_id) AS n FROM orders", []),
        ("How many orders by customer?", "customer_id, count(customer_id) AS n FROM orders GROUP BY 1", []),
        ("How many orders are there?", "count(order_id) AS n FROM orders", []),
    ],
)
def test_what_the_words_of_a_question_fit_as_well_is_shown(question, sql, found):
    doubts = kinds(tf.open_corpus({"orders": ORDERS}), f"SELECT {sql}", question=question)
    assert [reason for reason, _ in doubts] == [reason for reason, _ in found]
    assert all(part in facts for (_, facts), (_, part) in zip(doubts, found, strict=True))


@pytest.mark.parametrize(("words", "doubted"), [("of each city", True), ("to each city", False)])
def test_a_direction_in_the_question_names_one_of_two_roles(words, doubted):
    airport = pd.DataFrame({"code": ["OPO", "LIS", "ARN"], "city": ["Porto", "Lisbon", "Stockholm"]})
    ends = {"src_airport": ["OPO", "OPO", "OPO", "ARN"], "dst_airport": ["LIS", "ARN", "OPO", "OPO"]}
    corpus = tf.open_corpus({"airport": airport, "flight": pd.DataFrame({"flight_no": range(4), **ends})})
    for end in ends:
        corpus.keys.add(f"flight.{end} = airport.code")
    sql = "SELECT a.city, count(*) AS n FROM flight f JOIN airport a ON a.code = f.dst_airport GROUP BY a.city"
    found = kinds(corpus, sql, question=f"How many flights {words}?")
    assert ("join" in [reason for reason, _ in found]) == doubted


def test_a_limit_that_leaves_rows_out_is_doubted_unless_the_question_has_it():
    corpus = tf.open_corpus({"visit": pd.DataFrame({"visit": range(1_200)})})
    ((reason, facts),) = kinds(corpus, "SELECT visit FROM visit LIMIT 1000", question="Which visits?")
    assert (reason, facts[:52]) == ("limit", "LIMIT 1,000 leaves 200 of 1,200 rows out; without it")
    assert kinds(corpus, "SELECT visit FROM visit LIMIT 1000", question="Which 1,000 visits?") == []


def test_statements_that_cannot_be_followed_are_not_doubted_by_mistake(clubs):
    for sql in (
        "SELECT name FROM club UNION SELECT coach FROM coach",
        "WITH c AS (SELECT * FROM club WHERE name = 'Polo') SELECT count(*) FROM c",
        "SELECT name, rank() OVER (ORDER BY club_id) AS r FROM club LIMIT 2",
    ):
        assert kinds(clubs, sql) == []


STADIUMS = pd.DataFrame({"stadium_id": range(1, 5), "stadium": ["North", "South", "East", "West"]})
CONCERTS = pd.DataFrame(
    {
        "concert_id": range(1, 8),
        "stadium_id": [1, 1, 2, 3, 3, 4, 4],
        "year": [2014, 2015, 2014, 2015, 2016, 2014, 2015],
        "kind": ["pop", "jazz", "pop", "jazz", "pop", "jazz", "jazz"],
        "band": ["Owl", "Fox", "Owl", "Elk", "Elk", "Fox", "Owl"],
        "seats": [10, 20, 30, 40, 50, 60, 80],
    }
)
AT = "FROM stadium s JOIN concert c ON c.stadium_id = s.stadium_id"


@pytest.mark.parametrize(
    ("question", "sql", "reason", "rows"),
    [
        (
            "Who had both 2014 and 2015?",
            f"SELECT s.stadium {AT} WHERE c.year IN (2014, 2015)",
            "match",
            ["North", "West"],
        ),
        ("Pop and jazz?", f"SELECT s.stadium {AT} WHERE c.kind = 'pop' OR c.kind = 'jazz'", "match", ["East", "North"]),
        ("Both years?", f"SELECT s.stadium {AT} WHERE c.year = 2014 AND c.year = 2015", "match", ["North", "West"]),
        ("Who had 2014 or 2015?", f"SELECT s.stadium {AT} WHERE c.year IN (2014, 2015)", "", []),
        ("Both 2013 and 2014?", f"SELECT s.stadium {AT} WHERE c.year IN (2013, 2014)", "", []),
        ("Both of these?", "SELECT stadium FROM stadium WHERE stadium_id IN (1, 2)", "", []),
        ("Which year has least?", "SELECT year, sum(seats) AS n FROM concert GROUP BY year ORDER BY n LIMIT 1", "", []),
        (
            "Seats by year?",
            "SELECT band, sum(seats) AS n FROM concert GROUP BY year",
            "repeated",
            ["Owl", "Fox", "Fox", "Elk", "Owl", "Elk"],
        ),
        ("By stadium?", f"SELECT s.stadium, sum(c.seats) AS n {AT} GROUP BY s.stadium_id", "", []),
        ("By year?", "SELECT band, max(seats) AS n FROM concert GROUP BY year", "", []),
        ("By year?", "SELECT c.year, sum(c.seats) AS n FROM concert c GROUP BY year", "", []),
    ],
)
def test_a_set_of_rows_that_the_question_may_not_mean_is_doubted(question, sql, reason, rows):
    corpus = tf.open_corpus({"stadium": STADIUMS, "concert": CONCERTS})
    found = doubts_of(tf.exec_sql(corpus)(sql), question)
    assert [doubt.reason for doubt in found if doubt.reason != "lacking"] == [reason] * bool(reason)
    assert sorted(map(str, rows)) == sorted(
        str(one) for doubt in found if doubt.rows is not None for one in doubt.rows.iloc[:, 0]
    )


class Model:
    """Writes one statement, and a text about its rows."""

    def __init__(self, sql):
        self.sql = sql

    def __call__(self, request):
        if "<tables>" in request.prompt:
            return f"```sql\n-- answer: values\n{self.sql}\n```"
        return json.dumps({"text": "A text.", "values": []})


TIED = "SELECT coach FROM coach ORDER BY wins DESC LIMIT 1"


def test_an_answer_says_its_doubts_wherever_it_is_shown(live, clubs):
    live.answers = Model(TIED)
    answer = tf.ask("Which coach has the most wins?", clubs)
    (doubt,) = answer.doubts
    assert doubt.reason == "tie"
    assert f"\ndoubt: {doubt.facts}\n" in repr(answer)
    assert f"doubt:    {doubt.facts}" in answer.explain()
    assert f"doubt: {doubt.facts}" in answer._repr_html_()
    assert doubt.rows["coach"].tolist() == ["Bo", "Cy"]
    (plain,) = answer.to_dict()["doubts"]
    assert (plain["reason"], plain["facts"], plain["statement"]) == ("tie", doubt.facts, doubt.statement)
    assert plain["rows"] == [{"coach": "Bo"}, {"coach": "Cy"}]
    assert tf.exec_sql(clubs)(doubt.statement)["coach"].tolist() == ["Bo", "Cy"]
    assert doubt.statement in answer.explain()
    assert "Cy" in answer._repr_html_()
    assert pickle.loads(pickle.dumps(answer)).doubts == answer.doubts


def test_values_that_were_not_judged_are_a_doubt(live, clubs):
    live.answers = lambda request: "unsure"
    with pytest.warns(UnsureWarning, match="could tell nothing of any of 3 rows"):
        rows = tf.exec_sql(clubs, on_error="keep")("SELECT coach FROM coach WHERE sem_filter('{coach} is a name')")
    assert "unsure" in {doubt.reason for doubt in doubts_of(rows)}


SCRIPT = """
CREATE TABLE club (club_id integer, name text, coach_id integer);
INSERT INTO club VALUES (1, 'Dressage', 7), (2, 'Polo', NULL), (3, 'Tölt', 8);
CREATE TABLE coach (coach_id integer, coach text, wins integer);
INSERT INTO coach VALUES (7, 'Ann', 3), (8, 'Bo', 5), (9, 'Cy', 5);
"""


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_other_engines_are_looked_up_in_their_own_words(kind, request):
    if kind == "duckdb":
        corpus = opened_in.lake({"club": CLUBS, "coach": COACHES}, request.getfixturevalue("tmp_path"))
    else:
        corpus = tf.open_corpus(request.getfixturevalue("database")(SCRIPT))
    for sql, reasons in [
        ("SELECT c.name, o.coach FROM club AS c JOIN coach AS o USING (coach_id)", ["match"]),
        (
            "SELECT o.coach, count(c.name) FROM club c JOIN coach o ON c.coach_id = o.coach_id GROUP BY o.coach",
            ["match"],
        ),
        ("SELECT coach FROM coach ORDER BY wins DESC NULLS LAST LIMIT 1", ["tie"]),
        ("SELECT name FROM club WHERE name ILIKE 'pollo'", ["value"]),
        ("SELECT name FROM club WHERE name ILIKE 'polo'", []),
    ]:
        assert [reason for reason, _ in kinds(corpus, sql)] == reasons, sql


def test_what_a_model_judged_is_not_asked_again_for_another_reading(live, clubs):
    live.answers = lambda request: "True"
    sql = "SELECT coach FROM coach WHERE sem_filter('{coach} is a name') ORDER BY wins DESC LIMIT 1"
    rows = tf.exec_sql(clubs)(sql)
    sent = len(live.requests)
    assert [doubt.reason for doubt in doubts_of(rows)] == ["tie"]
    assert len(live.requests) == sent


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        ("SELECT [1, 2] AS l FROM club c JOIN coach o ON c.coach_id = o.coach_id", ["lacking"]),
        ("SELECT {'a': wins} AS s, coach FROM coach ORDER BY wins DESC LIMIT 1", ["tie"]),
        ("SELECT coach FROM coach ORDER BY wins DESC LIMIT 1.0", []),
    ],
)
def test_odd_cells_and_numbers_cost_no_answer(sql, reasons, tmp_path):
    corpus = opened_in.lake({"club": CLUBS, "coach": COACHES}, tmp_path)
    assert [reason for reason, _ in kinds(corpus, sql)] == reasons


@pytest.mark.parametrize("name", ["+/-", "", "%"])
def test_names_of_columns_without_words_cost_no_answer(name, tmp_path):
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as database:
        database.execute(f'CREATE TABLE score (game integer, "{name}" integer, " " integer)')
        database.execute("CREATE TABLE game (game integer)")
        database.executemany("INSERT INTO score VALUES (?, ?, ?)", [(1, 4, 2), (2, 3, 2), (3, 5, 1)])
        database.executemany("INSERT INTO game VALUES (?)", [(1,), (2,), (3,)])
        database.commit()
    corpus = tf.open_corpus(tmp_path / "s.sqlite")
    sql = f'SELECT g.game, s."{name}" FROM score s JOIN game g ON g.game = s.game ORDER BY s."{name}" LIMIT 1'
    assert kinds(corpus, sql, question="Which game has the lowest +/-?") == []


EACH = "SELECT c.name, count(*) AS n FROM club c JOIN member m ON m.club_id = c.club_id GROUP BY c.name"
LEFT = "SELECT c.name, count(m.member_id) AS n FROM club c LEFT JOIN member m ON m.club_id = c.club_id GROUP BY c.name"
BOTH = "SELECT c.name, o.coach FROM club c JOIN coach o USING (coach_id)"


@pytest.mark.parametrize(
    ("sql", "question", "facts"),
    [
        (EACH, "For each club, how many members?", ["with them, there would be 3 rows instead of 2"]),
        (EACH, "How many members have the clubs?", []),
        (f"{EACH} HAVING count(*) > 1", "For each club, how many members?", []),
        (f"{EACH} ORDER BY n DESC LIMIT 2", "Each of the top 2 clubs?", []),
        (BOTH, "The name and coach of each club", ["with them, there would be 3 rows instead of 2"]),
        (BOTH, "The names and coaches of clubs", []),
        ("SELECT DISTINCT c.name FROM club c JOIN member m USING (club_id)", "each club with members", []),
        # the mirror: rows without a match that are there
        (LEFT, "The number of members by club", ["without them, there would be 2 rows instead of 3"]),
        (LEFT, "The number of members by club, also those with none", []),
    ],
)
def test_other_readings_are_told_where_the_question_leaves_them_open(clubs, sql, question, facts):
    told = [text for reason, text in kinds(clubs, sql, question=question) if reason == "match"]
    assert [any(fact in text for text in told) for fact in facts] == [True] * len(facts)
    assert len(told) == len(facts)


def test_a_row_without_a_match_counts_none():
    club, member = CLUBS.assign(club_id=[1, 2, 4]), MEMBERS.assign(club_id=[1, 1, 1, 2])
    corpus = tf.open_corpus({"club": club, "member": member})
    sql = "SELECT c.club_id, count(*) AS n FROM club c JOIN member m ON m.club_id = c.club_id GROUP BY c.club_id"
    ((reason, fact),) = kinds(corpus, sql)
    assert (reason, "there would be 3 rows instead of 2" in fact) == ("match", True)


@pytest.mark.parametrize(
    ("sql", "is_told"),
    [
        ("SELECT avg(points) AS p FROM result", True),
        ("SELECT avg(points) AS p FROM result WHERE points > 0", False),
        ("SELECT avg(race) AS p FROM result", False),
        ("SELECT count(*) AS n FROM result", False),
    ],
)
def test_half_of_the_rows_without_a_value_are_told(sql, is_told):
    points = pd.array([4, None, None, None, 2, 3], dtype="Int64")
    result = pd.DataFrame({"driver": list("abcdef"), "race": [1, 1, 1, 2, 2, 2], "points": points})
    told = [fact for _, fact in kinds(tf.open_corpus({"result": result}), sql)]
    facts = "rows without a value in points are left out; as 0, it would be 1.5 instead of 3"
    assert told == ([facts] if is_told else [])


@pytest.mark.parametrize(
    ("sql", "fact"),
    [
        ("SELECT 4 AS clubs", "the statement reads no table"),
        ("SELECT name, 30000 AS members FROM club", "the statement itself gives 30000, read from no column"),
        ("SELECT name, NULL AS members FROM club", "the statement itself gives NULL, read from no column"),
        ("SELECT name, club_id * 2 AS two FROM club", ""),
        ("SELECT CASE WHEN count(*) > 2 THEN 'yes' ELSE 'no' END AS a FROM club", ""),
        ("SELECT EXISTS(SELECT 1 FROM club WHERE club_id = 1) AS a FROM club LIMIT 1", ""),
    ],
)
def test_what_a_statement_makes_up_is_lacking(clubs, sql, fact):
    told = [text for reason, text in kinds(clubs, sql) if reason == "lacking"]
    assert told == ([fact] if fact else [])


class Says:
    """Answers as ``syn`` in order; any other prompt is an error."""

    def __init__(self, *texts):
        self.texts = list(texts)

    def __call__(self, request):
        return self.texts.pop(0) if "<tables>" in str(request.messages) else json.dumps({"text": "None.", "values": []})


def test_what_the_tables_lack_is_final_and_costs_one_call(live, clubs):
    live.answers = Says('{"missing": "ticket  prices"}')
    answer = tf.ask("What does a ticket of a club cost?", clubs)
    assert (answer.values, answer.value, answer.calls, answer.tables) == ([], None, 1, [])
    assert answer.lacking == ("ticket prices",)
    assert answer.text == "The tables lack what the question needs: ticket prices."
    assert [(doubt.reason, doubt.facts) for doubt in answer.doubts] == [("lacking", "the tables lack: ticket prices")]
    assert answer.to_dict()["lacking"] == ["ticket prices"]
    assert "doubt: the tables lack: ticket prices" in repr(answer)
    assert answer.explain()
    assert answer._repr_html_()
    assert tf.ask("What does a ticket of a club cost?", clubs, quote=True).calls == 0


def test_a_part_that_is_lacking_is_a_doubt_that_a_revision_keeps(live, clubs):
    first = "-- answer: values\n-- lacking: prices\nSELECT name FROM club WHERE name = 'polo'"
    live.answers = Says(first, "-- answer: values\nSELECT name FROM club WHERE name = 'Polo'")
    answer = tf.ask("Name and price of polo?", clubs)
    assert (answer.values, answer.lacking) == (["Polo"], ("prices",))
    assert [doubt.reason for doubt in answer.doubts][:1] == ["lacking"]


def test_a_revision_may_add_an_assumption_or_say_what_is_lacking(live, clubs):
    sql = "SELECT name FROM club WHERE name = 'polo'"
    live.answers = Says(f"-- lacking: prices\n{sql}", f"-- assumed: polo is a club\n{sql}")
    answer = tf.ask("Name and price of polo?", clubs)
    assert (answer.assumptions, answer.lacking) == (("polo is a club",), ("prices",))
    assert [step.name for step in answer.steps] == ["syn", "exec", "syn again", "gen"]
    live.answers = Says(sql, '{"missing": "prices"}')
    answer = tf.ask("Price of polo?", clubs)
    assert (answer.values, answer.lacking, answer.calls) == ([], ("prices",), 2)


def test_another_statement_is_told_where_its_rows_differ(live, clubs):
    others = "-- or: by wins: SELECT coach FROM coach\n-- WHERE wins = 3\n"
    others += "-- or: by id: SELECT coach FROM coach WHERE coach_id > 7"
    live.answers = Says(
        f"-- answer: values\n{others}\n-- or: bad: SELECT nothing FROM coach\nSELECT coach FROM coach WHERE wins = 5"
    )
    answer = tf.ask("Which coaches?", clubs)
    assert answer.values == ["Bo", "Cy"]
    told = [doubt.facts for doubt in answer.doubts if doubt.reason == "reading"]
    assert told == ["it can be read otherwise, by wins: there would be 1 row instead of 2"]


@pytest.mark.slow
def test_a_question_that_nothing_fits_is_doubted_though_all_tables_are_shown(live, clubs):
    live.answers = Model("SELECT count(*) AS n FROM member")
    (doubt,) = tf.ask("What is the boiling point of mercury in kelvin?", clubs).doubts
    assert doubt.facts == "nothing in the tables or the statement stands for 'boiling' or 'mercury' or 'kelvin'"
    assert tf.ask("How many members are there?", clubs).doubts == ()


CLASS = {
    "student": pd.DataFrame(
        {"student_id": range(1, 6), "name": list("ABCDE"), "city": ["Rye", "Rye", "Bath", "Ely", "Ely"]}
    ).assign(county=["West Kent", "West Kent", "Ely", "Cambs", "Cambs"]),
    "pet": pd.DataFrame({"student_id": [1, 1, 2, 3, 3], "kind": ["cat", "dog", "dog", "cat", "fish"]}),
    "exam": pd.DataFrame({"exam_id": range(1, 8), "student_id": [1, 1, 2, 2, 3, 4, 4], "mark": [3, 5, 4, 4, 2, 5, 5]}),
}
RETAKES = {
    "exam": CLASS["exam"].assign(grade=[1, 5, 4, 4, 2, 5, 3]),
    "retake": pd.DataFrame({"retake_id": [1, 2, 3], "exam_id": [2, 3, 2], "grade": [5, 3, 4]}),
}


@pytest.mark.parametrize(
    ("question", "sql", "facts"),
    [
        (
            "How many students have taken no exam?",
            "SELECT count(student_id) AS n FROM student EXCEPT SELECT student_id FROM exam",
            "COUNT(student_id) is compared with values; of those that are left, it would be 1 instead of 5",
        ),
        (
            "How many students have taken no exam?",
            "SELECT count(*) AS n FROM (SELECT student_id FROM student EXCEPT SELECT student_id FROM exam)",
            None,
        ),
        ("How many students were examined?", "SELECT count(DISTINCT student_id) AS n FROM exam", None),
        (
            "How many students were examined?",
            "SELECT count(student_id) AS n FROM exam",
            "several rows have the same student_id; with each counted once, it would be 4 instead of 7",
        ),
        (
            "What is the total mark by city?",
            "SELECT city, (SELECT sum(mark) FROM exam e WHERE e.student_id = s.student_id) FROM student s GROUP BY 1",
            "s.student_id is that of any one row; for each, there would be 5 rows instead of 3",
        ),
        ("How many students are there?", "SELECT count(*) AS n FROM student", None),
        (
            "What is the mean mark, and of which student?",
            "SELECT avg(mark), student_id FROM exam",
            "student_id is that of any one row; for each, there would be 4 rows instead of 1",
        ),
        ("What is the best mark, and of which student?", "SELECT max(mark), student_id FROM exam", None),
        (
            "How many students live in the city of Ely?",
            "SELECT count(*) AS n FROM student WHERE county = 'Ely'",
            "the question names student.city, which the statement does not use; with it, it would be 2 instead of 1",
        ),
        (
            "How many exams have a mark above 4?",
            "SELECT count(*) AS n FROM exam WHERE grade > 4",
            "the question names exam.mark, which the statement does not use; with it, it would be 3 instead of 2",
        ),
        (
            "Which students have a mark of 4?",
            "SELECT s.name FROM student s JOIN exam e USING (student_id) GROUP BY s.name HAVING count(*) = 4",
            "the question names exam.mark, which the statement does not use",
        ),
        (
            "Which cities do students live in?",
            "SELECT DISTINCT s.city FROM student s JOIN exam e ON e.student_id = s.student_id JOIN retake r ON "
            "r.exam_id = e.exam_id",
            "nothing of retake and exam is used but that it has a match; without it, "
            "there would be 3 rows instead of 1",
        ),
        (
            "How many students live in the county of Ely?",
            "SELECT count(*) AS n FROM student WHERE county = 'Ely'",
            None,
        ),
        (
            "Which pets does A have in Ely?",
            "SELECT kind FROM pet JOIN student USING (student_id) WHERE kind = 'doge' AND county = 'Ely'",
            "no cell of pet.kind has the value 'doge'; without this condition, there would be 2 rows instead of 0",
        ),
        (
            "Which pets does A have in Ely?",
            "SELECT kind FROM pet JOIN student USING (student_id) "
            "WHERE kind = 'Dog' AND county = 'Ely' AND city = 'Rye'",
            "no cell of pet.kind has the value 'Dog'; the nearest is 'dog': with it, the rows are the same",
        ),
        (
            "Which cities do the students of exams live in?",
            "SELECT s.city FROM student s JOIN exam e ON e.student_id = s.student_id WHERE s.county <> 'Cambs'",
            "3 of 5 rows repeat another one; with each once, there would be 2 rows instead of 5",
        ),
        (
            "Which student has which mark?",
            "SELECT s.name, e.mark FROM student s JOIN exam e ON e.student_id = s.student_id",
            None,
        ),
        (
            "How many students are there in Rye?",
            "SELECT count(*) AS n FROM exam e JOIN student s ON s.student_id = e.student_id WHERE s.city = 'Rye'",
            "nothing of exam is used but that it has a match; without it, it would be 2 instead of 4",
        ),
        (
            "How many exams have students in Rye taken?",
            "SELECT count(*) AS n FROM exam e JOIN student s ON s.student_id = e.student_id WHERE s.city = 'Rye'",
            None,
        ),
        (
            "How many students are there outside Wales?",
            "SELECT count(*) AS n FROM student WHERE county <> 'Wales'",
            "no cell of student.county has the value 'Wales'; without this condition, the rows are the same",
        ),
        (
            "How many were graded above 4?",
            "SELECT count(*) AS n FROM exam WHERE grade > 4",
            "retake has grade, too; with it, it would be 1 instead of 2",
        ),
        ("How many exams were graded above 4?", "SELECT count(*) AS n FROM exam WHERE grade > 4", None),
    ],
)
def test_what_careless_statements_leave_out_is_shown(question, sql, facts):
    tables = {**CLASS, **RETAKES} if "grade" in sql or "retake" in sql else CLASS
    told = [fact for _, fact in kinds(tf.open_corpus(tables), sql, question=question)]
    assert told == ([] if facts is None else [facts])


def test_a_column_that_is_written_in_other_letters_is_used():
    corpus = tf.open_corpus({"roster": pd.DataFrame({"Who": ["A", "B", "C"], "GamesPlayed": [1, 2, 3]})})
    question = "Who has a number of games played above 2?"
    assert kinds(corpus, "SELECT who FROM roster WHERE gamesplayed > 2", question=question) == []


STAFF = pd.DataFrame({"name": ["Ann", "Bo"], "salary": [50, 60], "hired": ["2015-01-02", "2018-03-04"]})
TRIPS = pd.DataFrame({"line": [10, 20], "origin": ["Faro", "Tavira"], "passengers": [40, 7], "depth_m": [4, 12]})


@pytest.mark.parametrize(
    ("question", "sql", "words"),
    [
        ("How many staff work remotely?", "SELECT count(*) AS n FROM staff", "'remotely'"),
        ("What is the average salary by gender?", "SELECT avg(salary) AS a FROM staff", "'gender'"),
        ("How many trips were cancelled?", "SELECT count(*) AS n FROM trip", "'cancelled'"),
        (
            "What was the rainfall on the trip from Faro?",
            "SELECT passengers FROM trip WHERE origin = 'Faro'",
            "'rainfall'",
        ),
        ("How many passengers used Interrail?", "SELECT sum(passengers) AS n FROM trip", "'Interrail'"),
        ("How many staff were hired in 1931?", "SELECT count(*) AS n FROM staff", "'1931'"),
        ("How many staff were hired after 2015?", "SELECT count(*) AS n FROM staff WHERE hired >= '2016-01-01'", ""),
        ("Who earns more than 50?", "SELECT name FROM staff WHERE salary > 40", "'50'"),
        ("Which 20% of the lines are deep?", "SELECT line FROM trip WHERE depth_m > 0.2", ""),
        ("Who was hired on 2015-01-02 at 7:15?", "SELECT name FROM staff WHERE hired = '2015-01-02'", ""),
        ("Who earns the most?", "SELECT name FROM staff ORDER BY salary DESC LIMIT 1", ""),
        ("Staff by increasing salary", "SELECT name FROM staff ORDER BY salary", ""),
        ("What is the median salary?", "SELECT percentile_cont(salary, 0.5) AS m FROM staff", ""),
        ("What is the median salary?", "SELECT max(salary) AS m FROM staff", "'median'"),
        ("Which line is the busiest?", "SELECT line FROM trip ORDER BY passengers DESC LIMIT 1", ""),
        ("How many passengers left Faro?", "SELECT sum(passengers) AS n FROM trip WHERE origin = 'Faro'", ""),
        ("What does Bo earn?", "SELECT salary FROM staff WHERE name = 'Bo'", ""),
        ("Which staff won an Oscar?", "SELECT name FROM staff WHERE salary > 55", "'Oscar'"),
        ("Which staff have the lowest salary?", "SELECT name FROM staff ORDER BY salary LIMIT 1", ""),
        ("In SQL, say who earns the most.", "SELECT name FROM staff ORDER BY salary DESC LIMIT 1", ""),
        ("Determine what Bo earns.", "SELECT salary FROM staff WHERE name = 'Bo'", ""),
        ("Trips deeper than 9 m", "SELECT line FROM trip WHERE depth_m > 9", ""),
        ("Running total of the passengers", "SELECT sum(passengers) OVER (ORDER BY line) AS n FROM trip", ""),
    ],
)
def test_a_word_that_nothing_stands_for_is_lacking(question, sql, words):
    corpus = tf.open_corpus({"staff": STAFF, "trip": TRIPS})
    lacking = [facts for reason, facts in kinds(corpus, sql, question=question) if reason == "lacking"]
    where = "the statement" if words.strip("'").isdigit() else "the tables or the statement"
    assert lacking == ([f"nothing in {where} stands for {words}"] if words else [])


@pytest.mark.parametrize(
    ("question", "sql", "words"),
    [
        ("Wie viele Mitarbeiter arbeiten im Homeoffice?", "SELECT count(*) AS n FROM mitarbeiter", "'Homeoffice'"),
        ("Quelles gares ont une piscine?", "SELECT gare FROM gare", "'piscine'"),
        ("Wer hat das meiste Gehalt?", "SELECT name FROM mitarbeiter ORDER BY gehalt DESC LIMIT 1", ""),
        ("Quelle gare a le plus de voyageurs?", "SELECT gare FROM gare ORDER BY voyageurs DESC LIMIT 1", ""),
    ],
)
def test_what_is_lacking_is_found_in_other_languages(question, sql, words):
    staff = pd.DataFrame({"name": ["Anna", "Bernd"], "gehalt": [50, 60], "eintritt": ["2015-01-02", "2018-03-04"]})
    stations = pd.DataFrame({"gare": ["Nantes", "Metz", "Dijon"], "voyageurs": [120, 80, 90]})
    corpus = tf.open_corpus({"mitarbeiter": staff, "gare": stations})
    lacking = [facts for reason, facts in kinds(corpus, sql, question=question) if reason == "lacking"]
    assert lacking == ([f"nothing in the tables or the statement stands for {words}"] if words else [])


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        (["Charlie"], ["'Charlie' stands in no row of the result"]),
        (["Polo", " Charlie ", " Charlie "], ["' Charlie ' stands in no row of the result"]),
        (["polo", "Polo and Dressage"], []),
        (["Bergen"], []),  # from the question
        ([7, True, None, " "], []),
    ],
)
def test_a_value_that_no_row_has_is_doubted(live, clubs, values, facts):
    sql = "SELECT name FROM club WHERE club_id < 3"
    gen = json.dumps({"text": "These.", "values": values})
    live.answers = lambda request: f"```sql\n{sql}\n```" if "<tables>" in request.prompt else gen
    answer = tf.ask("Which clubs have no member from Bergen?", clubs)
    assert answer.values == values
    assert [doubt.facts for doubt in answer.doubts if doubt.reason == "text"] == facts


def test_gen_is_not_asked_for_values_of_several_columns_or_of_no_row(live, clubs):
    live.answers = Says("-- answer: values\nSELECT coach, wins FROM coach WHERE wins < 6 ORDER BY coach_id")
    answer = tf.ask("Each coach with the wins?", clubs)
    assert (answer.values, answer.calls) == (["Ann", 3, "Bo", 5, "Cy", 5], 1)
    sql = "-- answer: values\nSELECT coach FROM coach WHERE wins > 6"
    live.answers = Says(sql, sql)
    answer = tf.ask("Which coach has more than 6 wins?", clubs)
    assert (answer.values, answer.text, answer.calls) == ([], "none", 2)


def test_gen_is_told_assumptions_and_lacks_and_gets_plain_numbers(live):
    corpus = tf.open_corpus({"sale": pd.DataFrame({"what": ["a\0b"], "paid": [4519.679999999999]})})
    seen = []
    live.answers = lambda request: (
        "-- assumed: refunds count\n-- lacking: dates\nSELECT what, paid FROM sale"
        if "<tables>" in request.prompt
        else seen.append(request.prompt) or json.dumps({"text": "All.", "values": []})
    )
    tf.ask("What was paid, and when?", corpus)
    (prompt,) = seen
    assert "It is assumed that refunds count." in prompt
    assert "The tables lack this part: dates." in prompt
    assert '["ab", 4519.68]' in prompt


OF_SEASON = "season has wins, too; with it, 1 of 3 rows would differ"
COPY = pd.DataFrame({"coach_id": [7, 8, 9], "wins": [3, 5, 6]})


@pytest.mark.parametrize(
    ("frames", "sql", "facts"),
    [
        (
            {"season": COPY},
            "SELECT wins FROM coach",
            [OF_SEASON],
        ),
        ({"season": COPY.assign(wins=[3, 5, 5])}, "SELECT wins FROM coach", []),
        ({"season": COPY.assign(wins=[3.5, 5.0, 9.0])}, "SELECT wins FROM coach", [OF_SEASON.replace("1 of", "2 of")]),
        ({"season": COPY}, "SELECT coach FROM coach", []),
        ({"season": COPY}, "SELECT c.coach, c.wins FROM coach c JOIN season s USING (coach_id)", []),
        (
            {"season": COPY},
            "SELECT coach FROM coach c WHERE NOT EXISTS (SELECT 1 FROM member m WHERE c.wins = m.club_id)",
            [],
        ),
        (
            {"season": COPY},
            "SELECT a.coach, b.wins - a.wins AS d FROM coach a, coach b",
            [OF_SEASON.replace("1 of 3", "4 of 9")],
        ),
    ],
)
def test_columns_that_another_table_has_with_other_values_are_told(frames, sql, facts):
    corpus = tf.open_corpus({"club": CLUBS, "coach": COACHES, "member": MEMBERS, **frames})
    assert [fact for _, fact in kinds(corpus, sql)] == facts


SALES = pd.DataFrame(
    {
        "sale_id": range(1, 7),
        "shop_id": [1, 1, 2, 2, 3, 3],
        "score": ["9", "10", "s", "100", "8", "7"],
        "sold": ["31/12/2019", "01/02/2021", "15/06/2020", "02/01/2022", "30/11/2018", "05/05/2020"],
        "month": ["2023-03", "2023-04", "2023-05", "2023-06", "2023-06", "2023-07"],
        "born": [20030115, 20041231, 20051010, 19990909, 20060606, 20010101],
        "won": [1, 2, 3, 4, 5, 6],
        "lost": [3, None, 2, None, 1, 1],
        "kind": ["a", "b", "c", "d", "e", "f"],
        "maker": ["Vaxzevria (Astra)", "Moderna", "Moderna", "Novavax", "Novavax", "Novavax"],
        "paid": ["March 5, 2020", "April 12, 2021", "January 30, 2022", "May 1, 2019", "June 2, 2020", "July 3, 2020"],
        "seller": ["Ann", None, "Bo", None, "Ann", "Bo"],
    }
)
VISITORS = pd.DataFrame({"gare": ["N", "S"], "voyageurs 2021": [5, 6], "voyageurs 2022": [7, 8], "Rock 1": ["a", "b"]})
VISITORS["Rock 2"] = ["c", "d"]
SHOPS = pd.DataFrame({"shop_id": [1, 2, 3, 4], "shop": ["A ", "B", "C", "D"], "size": [10, 20, 30, 40]})
PARTS = pd.DataFrame({"place": ["North", "South", "Total"], "pianos": [3, 4, 7], "flippers": [1, 2, 3]})


@pytest.mark.parametrize(
    ("question", "sql", "right"),
    [
        ("Highest score?", "SELECT max(score) AS n FROM sale", [[100.0]]),
        ("Mean score?", "SELECT avg(CAST(score AS REAL)) AS n FROM sale", [[26.8]]),
        ("Scores above 50?", "SELECT count(*) AS n FROM sale WHERE score > 50", [[1]]),
        ("Best sale?", "SELECT sale_id FROM sale ORDER BY score DESC LIMIT 1", [[4]]),
        ("Sold before 2020?", "SELECT count(*) AS n FROM sale WHERE sold < '2020-01-01'", [[2]]),
        ("Sold after 2020?", "SELECT count(*) AS n FROM sale WHERE sold > '31/12/2020'", [[2]]),
        ("Sold in 2020?", "SELECT count(*) AS n FROM sale WHERE strftime('%Y', sold) = '2020'", [[2]]),
        ("Last sale, when?", "SELECT max(sold) AS d FROM sale", [["02/01/2022"]]),
        ("Last sale?", "SELECT sale_id FROM sale ORDER BY sold DESC LIMIT 1", [[4]]),
        (
            "Sales from April to June 2023?",
            "SELECT count(*) AS n FROM sale WHERE month BETWEEN '2023-04-01' AND '2023-06-30'",
            [[4]],
        ),
        ("Born in 2004?", "SELECT count(*) AS n FROM sale WHERE born BETWEEN '2004-01-01' AND '2004-12-31'", [[1]]),
        ("Born after 2004?", "SELECT count(*) AS n FROM sale WHERE born > 2004", [[2]]),
        ("Paid last, which?", "SELECT sale_id FROM sale ORDER BY paid DESC LIMIT 1", [[3]]),
        ("Paid after May 20, 2020?", "SELECT count(*) AS n FROM sale WHERE paid > 'May 20, 2020'", [[4]]),
        ("Paid since 2021?", "SELECT count(*) AS n FROM sale WHERE paid >= '2021-01-01'", [[2]]),
        ("Paid last, when?", "SELECT max(paid) AS d FROM sale", [["January 30, 2022"]]),
        ("Paid last of 1 and 4?", "SELECT max(paid) AS d FROM sale WHERE sale_id IN (1, 4)", [["March 5, 2020"]]),
        ("First of 2 and 3?", "SELECT min(paid) AS d FROM sale WHERE sale_id IN (2, 3)", None),
        ("Not sold by Ann?", "SELECT count(*) AS n FROM sale WHERE seller <> 'Ann'", [[4]]),
        ("Not sold by Ann?", "SELECT count(*) AS n FROM sale WHERE seller NOT IN ('Ann')", [[4]]),
        ("By others?", "SELECT count(*) AS n FROM sale WHERE seller <> 'Ann' AND seller IS NOT NULL", None),
        ("By neither?", "SELECT count(*) AS n FROM sale WHERE seller <> 'Ann' AND NOT seller = 'Bo'", [[2]]),
        ("Not of Moderna?", "SELECT count(*) AS n FROM sale WHERE maker <> 'Moderna'", None),
        (
            "Of kind a or b, with more than 1 won?",
            "SELECT count(*) AS n FROM sale WHERE won > 1 AND kind = 'b' OR kind = 'a'",
            [[1]],
        ),
        (
            "Of kind a, b or c, with more than 1 won?",
            "SELECT count(*) AS n FROM sale WHERE kind = 'a' OR kind = 'b' OR kind = 'c' AND won > 1",
            [[2]],
        ),
        ("Which?", "SELECT count(*) AS n FROM sale WHERE won > 1 AND (kind = 'b' OR kind = 'a')", None),
        ("Which?", "SELECT count(*) AS n FROM sale WHERE won > 1 AND kind = 'b' OR won < 2 AND kind = 'a'", None),
        ("Wins of games?", "SELECT sum(won) / sum(won + sale_id) AS n FROM sale", [[0.5]]),
        ("Which decades?", "SELECT DISTINCT born / 100000 AS d FROM sale", None),
        ("Games won and lost?", "SELECT sum(won + lost) AS n FROM sale", [[28.0]]),
        (
            "Which kinds lost no 2?",
            "SELECT count(*) AS n FROM sale WHERE won NOT IN (SELECT lost FROM sale)",
            [[3]],
        ),
        ("Wins of shop A?", "SELECT sum(won) AS n FROM sale JOIN shop USING (shop_id) WHERE shop = 'A'", [[3]]),
        ("Of Astra or Moderna?", "SELECT count(*) AS n FROM sale WHERE maker IN ('Astra', 'Moderna')", [[3]]),
        ("Of moderna?", "SELECT sum(CASE WHEN maker = 'moderna' THEN 1 ELSE 0 END) AS n FROM sale", [[2]]),
        ("Of Astra or Moderna?", "SELECT count(*) AS n FROM sale WHERE maker IN ('moderna', 'Moderna')", None),
        ("Sales of Novavax?", "SELECT count(*) AS n FROM sale WHERE kind = 'Novavax'", [[3]]),
        (
            "Sales of shops above 20 in size?",
            "SELECT count(*) AS n FROM sale, shop WHERE shop.size > 20",
            [[2]],
        ),
        (
            "Each shop with its sales of Moderna?",
            "SELECT shop, count(sale_id) AS n FROM shop LEFT JOIN sale USING (shop_id) WHERE maker = 'Moderna' "
            "GROUP BY shop",
            None,
        ),
        (
            "Each shop with its sales of Moderna?",
            "SELECT s.shop, count(a.sale_id) AS n FROM shop s LEFT JOIN sale a ON a.shop_id = s.shop_id "
            "WHERE a.maker = 'Moderna' GROUP BY s.shop",
            [["A ", 1], ["B", 1], ["C", 0], ["D", 0]],
        ),
        (
            "Wins and losses of 1 together?",
            "SELECT count(*) AS n FROM (SELECT lost FROM sale WHERE lost = 1 UNION "
            "SELECT won FROM sale WHERE won = 1) AS t",
            [[3]],
        ),
        (
            "How many different makers?",
            "SELECT count(*) AS n FROM (SELECT maker FROM sale UNION SELECT maker FROM sale) AS t",
            None,
        ),
        ("Travellers of N?", "SELECT \"voyageurs 2022\" AS n FROM visitor WHERE gare = 'N'", [[5]]),
        ("Travellers of N in 2022?", "SELECT \"voyageurs 2022\" AS n FROM visitor WHERE gare = 'N'", None),
        ("Which rock has N?", "SELECT \"Rock 1\" AS n FROM visitor WHERE gare = 'N'", [["c"]]),
        ("Pianos?", "WITH p AS (SELECT place, pianos FROM part) SELECT sum(pianos) AS n FROM p", [[7]]),
        ("Pianos?", "SELECT sum(pianos) AS n FROM part WHERE place <> 'Total'", None),
    ],
)
def test_cells_are_not_taken_for_something_else_in_silence(question, sql, right):
    corpus = tf.open_corpus({"sale": SALES, "shop": SHOPS, "part": PARTS, "visitor": VISITORS})
    found = [doubt for doubt in doubts_of(tf.exec_sql(corpus)(sql), question) if doubt.reason != "lacking"]
    shown = [doubt.rows.sort_values(list(doubt.rows)).values.tolist() for doubt in found]
    assert right in shown if right is not None else not shown


@pytest.mark.parametrize(
    ("sql", "right"),
    [
        ("SELECT max(score) AS n FROM sale", 100),
        ("SELECT max(sold) AS n FROM sale", "02/01/2022"),
        ("SELECT sale_id AS n FROM sale ORDER BY sold DESC LIMIT 1", 4),
        ("SELECT count(*) AS n FROM sale WHERE won NOT IN (SELECT lost FROM sale)", 3),
        ("SELECT sale_id AS n FROM sale ORDER BY paid DESC LIMIT 1", 3),
        ("SELECT count(*) AS n FROM sale WHERE seller <> 'Ann'", 4),
    ],
)
def test_cells_are_not_taken_for_something_else_in_a_lake(sql, right, tmp_path):
    (doubt,) = doubts_of(tf.exec_sql(opened_in.lake({"sale": SALES}, tmp_path))(sql))
    assert doubt.rows is not None
    assert doubt.rows.iat[0, 0] == right
