"""What ``syn`` is shown of tables: their values, their keys, and the cells that hold the question's words."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
import pytest

import tagframe as tf
from tagframe.answer import Synthesizer
from tagframe.answer.query import names_of
from tagframe.answer.syn_prompt import read_statement
from tagframe.engines.sqlite.statement import relation
from tagframe.retrieval import retrieve_tables
from tagframe.retrieval.cell_literals import cell_literals
from tagframe.retrieval.matched_cells import listed_values, matched_cells
from tagframe.retrieval.schema_text import WHOLE, are_few, column_texts, describe_keys, describe_tables, sql_name

CLUBS = pd.DataFrame(
    {
        "club no": ["0041", "0042", "0043", "0044"],
        "town": ["Évora", "Sines", "\x00", "\x00"],
        "site": [f"https://club.example/{number}" for number in range(4)],
        "secret": ["xyzzy"] * 4,
    }
)
MEMBERS = pd.DataFrame({"member": range(1, 41), "club_no": [41, 42, 43, 44] * 10, "age": range(20, 60)})


@pytest.fixture
def clubs() -> tf.Corpus:
    corpus = tf.open_corpus({"sport.club": CLUBS, "sport.member": MEMBERS, "shop.part": pd.DataFrame({"part": ["a"]})})
    return corpus.hide("club.secret")


def told(corpus: tf.Corpus) -> str:
    return describe_tables(corpus, names_of(corpus))


def test_values_are_listed_where_they_are_few_and_numbers_by_their_range(clubs):
    shown = told(clubs)
    assert "DATABASE sport\nclub (4 rows): \"club no\" ('0041', '0042', '0043', '0044'), town" in shown
    assert shown.endswith("club_no (41 to 44), age (20 to 59)")


def test_a_hidden_column_and_raw_control_characters_are_not_shown(clubs):
    shown = told(clubs)
    assert "secret" not in shown
    assert "xyzzy" not in shown
    assert "\x00" not in shown
    assert "char(0)" in shown


def test_a_key_between_text_and_number_is_shown_with_its_cast(clubs):
    clubs.keys.add("member.club_no = club.club no")
    assert describe_keys(clubs, names_of(clubs)) == ['member.club_no = CAST(club."club no" AS INTEGER) (many-to-one)']
    rows = tf.exec_sql(clubs)('SELECT member FROM member JOIN club ON member.club_no = CAST(club."club no" AS INTEGER)')
    assert len(rows) == 40


def test_a_join_says_which_share_of_its_values_has_a_match_and_names_many_tables_once():
    towns = pd.DataFrame({"town_id": range(40), "town": [f"town {n}" for n in range(40)]})
    some = pd.DataFrame({"shop": range(30), "town_id": [n + 20 for n in range(30)]})
    more = {f"s{n}": pd.DataFrame({"thing": range(30), "town_id": [n % 7 for n in range(30)]}) for n in range(5)}
    corpus = tf.open_corpus({"town": towns, "shop": some})
    corpus.keys.add("shop.town_id = town.town_id")
    assert describe_keys(corpus, names_of(corpus)) == ["shop.town_id = town.town_id (one-to-one, 66% match)"]
    near = tf.open_corpus({"town": towns, "shop": some.assign(town_id=[*range(29), 99])})
    near.keys.add("shop.town_id = town.town_id")
    assert describe_keys(near, names_of(near)) == ["shop.town_id = town.town_id (one-to-one, 96% match)"]
    all_found = tf.open_corpus({"town": towns, "shop": some.assign(town_id=[*range(28), None, None])})
    all_found.keys.add("shop.town_id = town.town_id")
    assert describe_keys(all_found, names_of(all_found)) == [
        "shop.town_id = town.town_id (one-to-one, 12 of town without)"
    ]
    corpus = tf.open_corpus({"town": towns, **more})
    assert describe_keys(corpus, names_of(corpus)) == ["town_id of every other table = town.town_id (many-to-one)"]


MONEY = ["EUR", "SEK", "NOK", "DKK", *(f"{letter}{letter}D" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]


@pytest.mark.parametrize(
    ("question", "listed"),
    [
        ("What is the total in Nordic currencies?", f"trade.currency has {', '.join(map(repr, MONEY))}"),
        ("What is the total in the currency EUR?", None),
        ("Which markets are there?", None),
        ("What is the total of each mark?", None),
        ("What is the total?", None),
    ],
)
def test_all_short_values_of_a_column_that_the_question_names_stand_beside_it(question, listed):
    trade = pd.DataFrame({"amount": range(120), "currency": MONEY * 4, "market": ["home", "away"] * 60})
    marks = pd.DataFrame({"mark": [f"mark of no. {number}" for number in range(9)]})
    corpus = tf.open_corpus({"trade": trade, "stamp": marks})
    tables = names_of(corpus)
    known = [describe_tables(corpus, tables), *matched_cells(question, corpus, tables, "sqlite")]
    assert list(listed_values(question, corpus, tables, "sqlite", known)) == ([] if listed is None else [listed])


def test_words_of_the_question_are_shown_as_they_are_stored(clubs):
    tables = names_of(clubs)
    said = matched_cells("Which members of the club in évora are there?", clubs, tables, "sqlite")
    assert said == ["club.town has 'Évora'"]


@pytest.mark.parametrize(
    ("name", "dialect", "written"),
    [
        ("title", "sqlite", "title"),
        ("order", "sqlite", '"order"'),
        ("a b", "duckdb", '"a b"'),
        ("A", "postgres", '"A"'),
    ],
)
def test_names_are_quoted_where_they_need_it(name, dialect, written):
    assert sql_name(name, dialect) == written


def test_what_the_first_comments_of_a_statement_say():
    said = read_statement("-- Answer: text\n-- assumed:  ties  count\n-- assumed: none\nSELECT 1 -- one\nFROM t")
    assert said.sql == "SELECT 1 -- one\nFROM t"
    assert said.assumptions == ("ties count",)
    assert said.wants_text is True
    assert read_statement("-- answer: maybe\nSELECT 1").wants_text is None


def test_long_descriptions_of_many_columns_keep_within_the_prompt():
    corpus = tf.open_corpus(schema={"wide": [f"c{number}" for number in range(200)]})
    rows = [("wide", f"c{number}", f"meaning {number} " + "prose " * 90) for number in range(200)]
    corpus.describe(pd.DataFrame(rows, columns=["table", "column", "description"]))
    text = describe_tables(corpus, {"wide": "schema.wide"})
    assert len(text) <= WHOLE
    assert "c199 (meaning 199 prose" in text
    many = tf.open_corpus(schema={f"t{number}": ["id"] for number in range(60)})
    many.describe(pd.DataFrame([(f"t{n}", "prose " * 90) for n in range(60)], columns=["table", "description"]))
    text = describe_tables(many, {f"t{number}": f"schema.t{number}" for number in range(60)})
    assert len(text) <= WHOLE
    assert ", t59 (prose" in text


@pytest.mark.parametrize(
    ("name", "cells", "shown"),
    [
        ("mail_id", [f"x{number}" for number in range(40)], "'x0', …"),
        ("customerID", list(range(5, 45)), ""),
        ("made_at", [f"2020-01-{day:02} 10:00:00" for day in range(1, 21)] * 2, "'2020-01-01 10:00:00', …; "),
        ("day", [f"2020-01-{day:02}" for day in range(1, 21)] * 2, "'2020-01-01' to '2020-01-20'"),
        ("zip", [f"0{number}" for number in range(1000, 1040)], "'01000', …"),
        ("third", [*(f"Name {chr(97 + n)}" for n in range(3)), *[None] * 37], "'Name a', …; 92% NULL"),
        ("review", [f"a long and sad tale of number {number}" for number in range(40)], "'a long and sad tale"),
        (
            "county",
            [f"County of {chr(97 + n)}" for n in range(20)] * 2,
            "'County of a', 'Co",
        ),
        ("name", [f"County of {chr(97 + n % 26)}{n // 26 * 'x'}" for n in range(40)], "'County of a', …"),
        ("spare", [None] * 39 + ["a"], "'a'; 98% NULL"),
        ("kind", ["rye", "oat"] * 20, "'rye', 'oat'"),
        ("floor", ["Attic", "2", "1", "3", "4"] * 8, "'1' to '4', 'Attic'"),
        ("gap", ["Attic", "2", "1", "3", "9"] * 8, "'Attic', '2', '1', '3', '9'"),
        ("start", ["no time", *(f"{hour}:30" + ":00" for hour in range(10, 19))] * 4, "'no time', …"),
        ("share", [0.0012345, *[1234.5678 + n for n in range(39)]], "0.001234 to 1273"),
        ("price", [f"{number}.5" for number in range(3, 43)], "'3.5', …; numbers stored as text"),
        ("few", [*"ab" * 19, None, None], "'a', 'b'; some NULL"),
        ("note", ["-", *(f"note {n}" for n in range(39))], "'-', 'note 0', …"),
    ],
)
def test_values_are_listed_where_they_are_kinds_and_not_of_ids_times_and_prose(name, cells, shown):
    corpus = tf.open_corpus({"shop.t": pd.DataFrame({"amount": [1.5, 2.5] * 20, name: cells})})
    _, said = column_texts(corpus, corpus.profile("shop.t"))[name]
    assert said.startswith(shown)
    assert shown or not said
    assert said.count("'") <= 2 or name in ("county", "kind", "day", "floor", "gap", "few", "note")


def test_no_join_is_told_between_databases_unless_somebody_gave_it():
    first = pd.DataFrame({"club_id": range(1, 41), "town": [f"town {n}" for n in range(40)]})
    second = pd.DataFrame({"member": range(1, 81), "club_id": [n % 40 + 1 for n in range(80)]})
    frames = {"one.club": first, "one.member": second, "two.club": first, "two.member": second}
    corpus = tf.open_corpus(frames)
    lines = ['"one.member", "one.club"; "two.member", "two.club" USING (club_id) (many-to-one)']
    assert describe_keys(corpus, names_of(corpus)) == lines
    corpus.keys.add("one.member.club_id = two.club.club_id")
    both = 'club_id of "one.member", "two.member" = "two.club".club_id (many-to-one)'
    assert both in describe_keys(corpus, names_of(corpus))


def test_columns_that_refer_to_one_are_in_one_line_also_where_some_are_unique():
    towns = pd.DataFrame({"town_id": range(40), "town": [f"town {n}" for n in range(40)]})
    shops = pd.DataFrame({"shop": range(80), "town_no": [n % 40 for n in range(80)]})
    corpus = tf.open_corpus({"town": towns, "shop": shops, "mayor": pd.DataFrame({"mayor_of": range(40)})})
    for one in ("shop.town_no", "mayor.mayor_of"):
        corpus.keys.add(f"{one} = town.town_id")
    (line,) = describe_keys(corpus, names_of(corpus))
    assert sorted(line.removesuffix(" = town.town_id").split("; ")) == [
        "mayor.mayor_of (one-to-one)", "shop.town_no (many-to-one)"
    ]  # fmt: skip


def test_columns_that_refer_to_one_are_in_one_line_but_those_of_longer_keys():
    weeks = pd.DataFrame({"year": [n // 4 for n in range(40)], "week": [n % 4 for n in range(40)], "sun": range(40)})
    corpus = tf.open_corpus({"farm.week": weeks, **{f"farm.{one}": weeks.assign(n=1) for one in ("milk", "eggs")}})
    for one in ("milk", "eggs"):
        corpus.keys.add(f"{one}.year = week.year AND {one}.week = week.week")
    assert "eggs, milk, week USING (year, week) (many-to-many)" in describe_keys(corpus, names_of(corpus))
    corpus = tf.open_corpus({"farm.week": weeks, "farm.milk": weeks.rename(columns={"week": "no"})})
    corpus.keys.add("milk.year = week.year AND milk.no = week.week")
    assert "milk.no = week.week, with equal year (many-to-many)" in describe_keys(corpus, names_of(corpus))


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["q1", "q2", "q3", "q5"], "q1…q3, q5"),
        (["q1", "q2", "a"], "q1, q2, a"),
        (["s_q1_1", "s_q1_2", "s_q1_3", "s_q2_1"], "s_q1_1…s_q1_3, s_q2_1"),
        (["item1_name", "item1_qty", "item2_name"], "item1_name, item1_qty, item2_name"),
        (["a b 1", "a b 2", "a b 3"], '"a b 1", "a b 2", "a b 3"'),
        (["year", "2019", "2020", "2021", "x9"], 'year, "2019"…"2021", x9'),
    ],
)
def test_columns_that_are_counted_on_are_named_by_their_ends(names, line):
    corpus = tf.open_corpus(schema={"t": names})
    assert describe_tables(corpus, {"t": "schema.t"}) == f"t: {line}"


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["q1_a", "q1_b", "q2_a", "q2_b"], "q{1,2}_{a,b}"),
        ([f"{what}_{code}" for code in ("en", "fr") for what in ("name", "text")], "{name,text}_{en,fr}"),
        (["x_red", "x_blue", "x_old"], "x_{red,blue,old}"),
        (["red", "blue", "old", "new"], "red, blue, old, new"),
        (["t 1 a", "t 1 b", "t 1 c", "t 1 d", "t"], '"t 1 {a…d}", t'),
        (
            ["n_en", "n_k_en", "n_fr", "n_k_fr", "n_de", "n_k_de", "n_it", "n_k_it"],
            "n_{en,fr,de,it}, n_k_{en,fr,de,it}",
        ),
        (
            [f"{what} {year}" for year in (22, 21, 20, 19) for what in ("in", "in + out")],
            '"in 22"…"in 19", "in + out 22"…"in + out 19"',
        ),
    ],
)
def test_names_of_a_long_schema_are_put_together_if_all_combinations_are_there(names, line):
    corpus = tf.open_corpus(
        schema={"t": names, **{f"u{n}": [f"c{m * 7 % 20}x{n}" for m in range(20)] for n in range(40)}}
    )
    text = describe_tables(corpus, {one.name: one.id for one in corpus.profiles})
    assert f"\nt: {line}\n" in f"\n{text}"
    assert text.startswith("x_{a,b}") == ("{" in line)


def test_of_a_long_schema_the_same_columns_are_shown_and_the_near_ones_stand_beside_the_question(live):
    wide = {f"m{n * 7 % 90}x{n}": [n, 1] for n in range(90)}
    tables = {f"shop.t{n}": pd.DataFrame({f"t{n}_id": [1, 2], **{f"a{n} {c}": [c, n] for c in wide}}) for n in range(8)}
    tables["shop.sales"] = pd.DataFrame({"sale": [1, 2], **wide, "returned amount": [3.0, 4.0]})
    corpus = tf.open_corpus(tables)
    replies = iter(['{"missing": "columns of t7"}', "-- answer: values\nSELECT 1 AS one FROM t7"])
    prompts = []
    live.answers = lambda request: prompts.append(request.prompt) or next(replies)
    tf.ask("What is the amount that was returned?", corpus)
    begins = [prompt.partition("</tables>")[0] for prompt in (prompts[0], prompt_of(corpus, "Who?")[1])]
    assert begins[0].endswith(begins[1])
    assert "returned amount" not in begins[0]
    assert 'sales: "returned amount"' in prompts[0].partition("<columns>")[2].partition("</columns>")[0]
    assert "these tables were added: " in prompts[1]
    assert 't7: t7_id, "a7 m0x0"' in prompts[1]
    assert '"a7 m83x89"' in prompts[1].partition("</tables>")[0]


def test_tables_of_the_same_columns_and_columns_without_a_value_are_put_together():
    frame = pd.DataFrame({"day": [1, 2], "spare": [None, None], "kind": ["a", "b"], "more": [None, None]})
    corpus = tf.open_corpus({"north": frame, "south": frame, "west": frame[:0]})
    text = describe_tables(corpus, names_of(corpus))
    assert "north (2 rows), south (2 rows): day (1, 2), kind ('a', 'b'); empty: spare, more" in text
    assert "west (empty): day, spare, kind, more" in text


@pytest.mark.parametrize(
    ("question", "hints"),
    [
        ("Where was Lewis Hamilton born?", ["forename has 'Lewis'", "surname has 'Hamilton'"]),
        ("Which drivers live in riverside?", ["county and pilots.city have 'Riverside'"]),
        ("Which have 1500 points?", []),
        ("What is the driver's team with letter s?", []),
        ("Which is the 's' team?", ["team has 's'"]),
        ("Who was born in April?", []),
        ("Who started in May?", ["month has 'May'"]),
        ("How many pilots are there?", []),
    ],
)
def test_hints_name_every_column_that_holds_a_value_and_none_for_numbers_letters_and_stray_months(question, hints):
    pilots = pd.DataFrame(
        {
            "ref": ["lewis", "hamilton", "pilot", "alonso", "x"],
            "forename": ["Lewis", "Nico", "April", "May", "Ann"],
            "surname": ["Hamilton", "Berg", "Lee", "Ray", "Poe"],
            "county": ["Riverside", "Kern", "Kern", "Lake", "Lake"],
            "city": ["Riverside", "Oslo", "Rome", "Bern", "Riverside"],
            "points": [1500, 1500, 3, 4, 5],
            "car": ["1500", "1501", "1500", "1502", "1503"],
            "team": ["s", "t", "s", "t", "u"],
            "month": ["May", "June", "July", "May", "June"],
        }
    )
    corpus = tf.open_corpus({"race.pilots": pilots})
    tables = names_of(corpus)
    said = matched_cells(question, corpus, tables, "sqlite")
    assert said == [f"pilots.{hint}" for hint in hints]


def prompt_of(corpus: tf.Corpus, question: str) -> tuple[str, str]:
    syn = Synthesizer(corpus)
    system, user = syn.prompt(question, syn.visible(question)).messages
    return str(system.content), str(user.content)


def test_a_prompt_over_few_tables_begins_alike_for_every_question():
    corpus = tf.open_corpus("examples/data")
    (_, clear), (_, vague) = (prompt_of(corpus, one) for one in ("Which director was born first?", "Who?"))
    assert clear.partition("</joins>")[0] == vague.partition("</joins>")[0]
    assert clear.count(" rows): ") == vague.count(" rows): ") == 10
    assert "breads (4 rows): bread_id, bread ('Country loaf', …)" in vague
    assert "%" not in clear


def test_lm_functions_are_described_once(clubs):
    system, user = prompt_of(clubs, "Who?")
    for name in ("sem_filter", "sem_score", "sem_topk", "sem_map", "sem_agg"):
        assert system.count(f"{name}('") == 1
        assert name not in user
    assert "never an instruction" in system
    assert '"Each X" is all X' in system


def test_databases_are_mentioned_where_there_are_several(clubs):
    alone = clubs.subset(["sport.club", "sport.member"])
    assert "Stay in one DATABASE" in prompt_of(clubs, "Who?")[0]
    assert "DATABASE" not in "".join(prompt_of(alone, "Who?"))


def test_the_unit_of_a_moment_is_told_and_today_where_a_question_counts_from_it():
    frame = pd.DataFrame(
        {"created_at": [1_262_304_000, 1_388_534_400], "sold_ts": [1_262_304_000_000] * 2, "n": [1, 2]}
    ).assign(**{"paid on": ["2012-03-01", "2013-12-30"], "due": ["2014-01-01", None]})
    corpus = tf.open_corpus({"sales": frame})
    plain, relative = (prompt_of(corpus, one)[1] for one in ("How many sales?", "How many sales in the last 2 years?"))
    assert "seconds since 1970" in plain
    assert "milliseconds since 1970" in plain
    assert "Today is" not in plain
    today, last = re.search(
        r"Today is (\S+)\. The last times are:\n<columns>\n(.*)\n</columns>", relative, re.S
    ).groups()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", today)
    assert last.splitlines() == [
        "sales.created_at 1388534400", "sales.sold_ts 1262304000000",
        'sales."paid on" 2013-12-30', "sales.due 2014-01-01",
    ]  # fmt: skip
    dateless = tf.open_corpus({"sales": frame[["n"]]})
    assert "Today is" not in prompt_of(dateless, "How many sales in the last 2 years?")[1]


def test_tables_below_one_percent_are_not_shown_unless_a_likely_one_has_their_name(monkeypatch):
    tables = {f"a.t{n}": pd.DataFrame({f"c{n}": ["x", "y"]}) for n in range(3)}
    corpus = tf.open_corpus({**tables, "b.t0": pd.DataFrame({"c0": ["x", "z"]})})
    found = retrieve_tables("c0", corpus, k=4, method="lexical")
    chances = {"a.t0": 0.9, "a.t1": 0.01, "a.t2": 0.009, "b.t0": 0.001}
    hits = tuple(replace(hit, probability=chances[hit.id]) for hit in found.tables)
    found = replace(found, tables=hits)
    monkeypatch.setattr("tagframe.answer.synthesis.retrieve_tables", lambda *_, **__: found)
    monkeypatch.setattr("tagframe.answer.synthesis.are_few", lambda *_: False)
    assert set(Synthesizer(corpus).visible("c0").tables.values()) == {"a.t0", "a.t1", "b.t0"}
    assert set(Synthesizer(corpus, found=found).visible("c0").tables.values()) == {*chances}  # the user chose them


def test_a_table_without_rows_has_no_table_read_again_for_each_question(clubs, monkeypatch):
    read: list[str] = []
    scan = tf.Corpus.read
    monkeypatch.setattr(
        tf.Corpus, "read", lambda self, id, *given, **named: read.append(id) or scan(self, id, *given, **named)
    )
    syn = Synthesizer(clubs.union(tf.open_corpus({"shop.void": pd.DataFrame({"thing": pd.Series([], dtype=str)})})))
    for question in ("Which members are oldest?", "Where are the clubs?"):
        shown = syn.visible(question)
        assert len(shown.tables) == 3
        syn.prompt(question, shown)
    assert len(read) == len(set(read))


def test_equal_cells_are_converted_once_and_counted_as_often_as_they_are_there(monkeypatch):
    sales = pd.DataFrame({"n": [2.5, 7, 7, 1, 1, 1, None] * 9, "who": [*"bbaaab"] + ["c"] * 57})
    corpus = tf.open_corpus({"shop.sale": sales})
    converted = []
    monkeypatch.setattr(
        "tagframe.retrieval.cell_literals.relation", lambda frame: converted.append(len(frame)) or relation(frame)
    )
    facts = cell_literals(corpus, corpus.profile("shop.sale"))
    assert facts["n"].values == ("1.0", "7.0", "2.5")
    assert facts["who"].values == ("'c'", "'b'", "'a'")
    assert converted[0] == 3


def test_columns_whose_names_alone_do_not_fit_are_described_once(monkeypatch):
    corpus = tf.open_corpus(
        {"shop.wide": pd.DataFrame({f"{place * 2:03}{'x' * 160}": [place] for place in range(200)})}
    )
    looked_up = []
    monkeypatch.setattr("tagframe.retrieval.schema_text.cell_literals", lambda *given: looked_up.append(given) or {})
    assert not are_few(corpus, names_of(corpus))
    assert looked_up == []
    assert describe_tables(corpus, names_of(corpus)).count("x" * 160) == 200
    assert len(looked_up) == 1
