"""Keys of bare schemas of many tables, whatever they call their keys."""

from __future__ import annotations

import random
import sys
from itertools import pairwise

import pandas as pd
import pytest

from tagframe.corpus import open_corpus
from tagframe.joins.infer import keys_between
from tagframe.keys import containment, database_keys, infer_key_pairs
from tagframe.keys.schema_features import SchemaReading
from tagframe.retrieval.links import tables_around

THINGS = """user artist book shop order branch loan page visit ad vm add_on plan tenant site device rack cable role
region court judge verdict letter clerk bond stamp crate truck depot route ferry""".split()
REFERENCES = {
    "book": "artist",
    "loan": "branch",
    "visit": "page",
    "letter": "judge",
    "cable": "device",
    "plan": "add_on",
}


def schema(table: str, key: str, reference: str) -> dict[str, dict[str, str]]:
    """Three dozen tables, with the names of tables, of keys and of references in one way."""
    made = {}
    for at, thing in enumerate(THINGS):
        columns = {key.format(thing): "bigint", "title": "varchar(80)", "sort_order": "integer", "created_at": "date"}
        if thing in REFERENCES:
            columns[reference.format(REFERENCES[thing])] = "bigint"
        made[table.format(thing, part=("core", "stock", "law")[at % 3])] = columns
    return made


@pytest.mark.parametrize("reference", ["{}_id", "old_{}_id"])
@pytest.mark.parametrize("key", ["id", "{}_id"])
@pytest.mark.parametrize("table", ["{}s", "{}", "app_{}", "{part}_{}", "{}_t", "{part}_{}_tb"])
def test_references_are_found_in_every_way_to_call_them(table, key, reference):
    tables = schema(table, key, reference)
    found = {
        (one.left_table.partition(".")[2], one.right_table.partition(".")[2])
        for one in infer_key_pairs(open_corpus(schema=tables).profiles)
    }
    names = dict(zip(THINGS, tables, strict=True))
    expected = {(names[one], names[other]) for one, other in REFERENCES.items()}
    is_hard = "part" in table and "old" in reference  # a role, and a part of the schema: some are missed, none is wrong
    assert found <= expected if is_hard else found == expected


@pytest.mark.parametrize(
    ("table", "key", "reference", "types"),
    [
        ("{}", "{}_id", "{}_id", ("bigserial", "bigint")),
        ("{}s", "id", "{}_id", ("serial", "integer")),
        ("{}s", "id", "{}_id", ("int", "int(10) unsigned")),
        ("Doc{}", "name", "{}", ("varchar(140)", "varchar(140)")),
    ],
)
@pytest.mark.parametrize("things", [THINGS, [*REFERENCES, *REFERENCES.values(), "user", "court", "bond"]])
def test_a_key_and_its_references_are_found_whatever_declares_and_identifies_rows(table, key, reference, types, things):
    made = {}
    for thing in things:
        columns = {key.format(thing): types[0], "kind": "varchar(40)", "created_at": "date"}
        if thing in REFERENCES:
            columns[reference.format(REFERENCES[thing])] = types[1]
        made[table.format(thing.capitalize() if "Doc" in table else thing)] = columns
    found = {tuple(sorted(one.tables)) for one in infer_key_pairs(open_corpus(schema=made).profiles)}
    names = dict(zip(things, made, strict=True))
    assert found == {
        tuple(sorted((f"schema.{names[one]}", f"schema.{names[other]}"))) for one, other in REFERENCES.items()
    }


@pytest.mark.parametrize(("key", "reference"), [("{}_key_n", "{}_key_n"), ("cod_{}_n", "ref_cod_{}_n")])
def test_marks_of_types_and_key_words_before_the_thing_are_no_part_of_it(key, reference):
    made = {thing: {key.format(thing): "bigint", "kind_c": "text", "made_d": "date"} for thing in THINGS}
    for thing, other in REFERENCES.items():
        made[thing][reference.format(other)] = "bigint"
    found = {one.tables for one in infer_key_pairs(open_corpus(schema=made).profiles)}
    assert found == {frozenset((f"schema.{one}", f"schema.{other}")) for one, other in REFERENCES.items()}


@pytest.mark.parametrize(
    ("table", "column", "target"),
    [
        ("shop_relationship", "subject_id", "shop"),
        ("crate_link", "parent_id", "crate"),
        ("truck", "approved_by_id", "app_user"),
        ("depot", "genre_type_id", None),  # a kind of genre, of which there is no table
    ],
)
def test_what_a_column_says_of_its_rows_finds_their_table(table, column, target):
    made = {f"{thing}": {"id": "bigint", "kind": "varchar(9)"} for thing in THINGS if thing != "user"}
    made |= {"app_user": {"id": "bigint", "login": "varchar(9)"}, "genotype": {"id": "bigint", "kind": "varchar(9)"}}
    made[table] = {"id": "bigint", column: "bigint"}
    found = [one for one in infer_key_pairs(open_corpus(schema=made).profiles) if one.left_columns == (column,)]
    assert [one.right_table for one in found] == ([f"schema.{target}"] if target else [])


@pytest.mark.parametrize(
    ("others", "column", "target"),
    [
        ({"crate_entity": ["entity_id", "kind"], "crate_label": ["crate_id"]}, "crate_id", "crate_entity"),
        ({"crate_entity": ["entity_id", "kind"], "crate_entity_text": ["value_id"]}, "entity_id", "crate_entity"),
        ({"crateinfo": ["id", "kind"], "old_crates": ["crate_id", "kind"]}, "crate_id", "crateinfo"),
        ({"crate_static": ["crate_id", "x"], "crate_dynamic": ["crate_id", "y"]}, "crate_id", "crate_static"),
        ({"cratedefs": ["id", "kind"]}, "crate_id", "cratedefs"),
        ({"crate_header": ["crate_id", "kind"], "crate_item": ["crate_id", "line"]}, "crate_id", "crate_header"),
        ({"crate_base": ["id", "x"], "crate": ["id", "y"]}, "crate_id", "crate"),  # a table that is called so
        ({"user_account": ["user_id", "login"], "user_role": ["role_id", "title"]}, "owner_id", "user_account"),
        ({"crate": ["id", "x"], "truck_crate_data": ["crate_id", "y"]}, "crate_id", "crate"),
        (
            {"seal": ["id", "x"], "seal_s": ["id"], "dock_s": ["id"], "pier_s": ["id"], "gate_s": ["id"]},
            "seal_id",
            "seal",
        ),
    ],
)
def test_of_tables_of_one_thing_the_one_that_has_its_rows_is_meant(others, column, target):
    made = {thing: ["id", "kind"] for thing in THINGS if thing not in ("user", "crate")}
    made |= {**others, "truck": ["id", "kind", column] if "text" not in str(others) else ["id", "kind"]}
    if "crate_entity_text" in made:
        made["crate_entity_text"].append(column)
    tables = {name: dict.fromkeys(columns, "bigint") for name, columns in made.items()}
    found = infer_key_pairs(open_corpus(schema=tables).profiles, min_score=0.1)
    best = {one.left_table: one.right_table for one in reversed(found) if one.left_columns == (column,)}
    holder = "crate_entity_text" if "crate_entity_text" in made else "truck"
    assert best[f"schema.{holder}"] == f"schema.{target}"


@pytest.mark.parametrize(
    ("others", "holder", "column", "target"),
    [
        ({"crate_yard": "crate_id dock_id x y z", "crate_text": "crate_id x"}, "truck", "crate_id", "crate_yard"),
        ({"member": "uid login", "depot_log": "id uid"}, "truck", "createduid", "member"),
        ({"bayrole": "id x", "dockrole": "id x"}, "docktemplate", "role_id", "dockrole"),
        ({"content_type": "id x", "objecttype": "name x"}, "truck", "part_object_type_id", "content_type"),
    ],
)
def test_the_table_that_is_meant_is_chosen_by_evidence_of_the_whole_schema(others, holder, column, target):
    made = {thing: ["id", "kind"] for thing in THINGS if thing not in ("user", "crate", "role")}
    made |= {name: columns.split() for name, columns in others.items()}
    made[holder] = ["id", "kind", column, *(["part_object_id"] if "type" in column else [])]
    tables = {name: dict.fromkeys(columns, "bigint") for name, columns in made.items()}
    found = infer_key_pairs(open_corpus(schema=tables).profiles, min_score=0.1)
    best = {one.left_table: one.right_table for one in reversed(found) if one.left_columns == (column,)}
    assert best[f"schema.{holder}"] == f"schema.{target}"


@pytest.mark.parametrize(("column", "target"), [("opening_type_id", "term"), ("shop_key_id", "shop_key")])
def test_types_are_rows_of_the_one_table_of_terms_and_a_key_word_may_end_the_name_of_a_thing(column, target):
    made = {thing: {"id": "bigint", "kind": "varchar(9)"} for thing in [*THINGS, "term", "shop_key"]}
    made |= {thing: {"id": "bigint", "kind": "varchar(9)", column: "bigint"} for thing in ("crate", "truck", "depot")}
    found = infer_key_pairs(open_corpus(schema=made).profiles, min_score=0.05)
    best = {one.left_table: one.right_table for one in reversed(found) if one.left_columns == (column,)}
    assert {*best.values()} == {f"schema.{target}"}


def test_a_column_without_a_name_costs_no_key():
    made = {thing: {"id": "bigint", "": "text"} for thing in THINGS}
    made |= {"parcel": {"id": "bigint", "truck_id": "bigint", "": "bigint"}}
    (key,) = infer_key_pairs(open_corpus(schema=made).profiles)
    assert (key.left_columns, key.right_table) == (("truck_id",), "schema.truck")


@pytest.mark.parametrize(
    ("tables", "references"),
    [
        (
            {"l_shop_book": ["id", "entity0", "entity1"], "l_crate_truck": ["id", "entity0", "entity1"]},
            {"l_shop_book.entity0": "shop", "l_shop_book.entity1": "book", "l_crate_truck.entity1": "truck"},
        ),
        (
            {"crate_group": ["id", "title", "note", "parent_id"], "truck": ["id", "crate_group_id"]},
            {"crate_group.parent_id": "crate_group"},
        ),
        ({"parcel": ["uid", "kind", "note", "title"], "truck": ["id", "uid"]}, {"truck.uid": "parcel"}),
        (
            {"crategroup": ["group_id", "kind"], "groups": ["group_id", "kind"], "truck": ["id", "crate_group_id"]},
            {"truck.crate_group_id": "crategroup"},
        ),
        ({"truck": ["id", "crate_id_fk"]}, {"truck.crate_id_fk": "crate"}),
    ],
    ids=["sides of a link", "a lone parent", "a key that one table has", "a key by the last word", "a mark"],
)
def test_names_that_say_no_table_are_read_by_what_stands_around_them(tables, references):
    made = {thing: ["id", "kind"] for thing in THINGS} | tables
    texts = ("kind", "note", "title")
    schema = {name: {one: "text" if one in texts else "bigint" for one in columns} for name, columns in made.items()}
    keys = infer_key_pairs(open_corpus(schema=schema).profiles)
    found = {key.left.partition(".")[2]: key.right_table.partition(".")[2] for key in keys}
    assert references.items() <= found.items()


def test_a_first_column_of_many_tables_numbers_their_rows():
    links = {f"{one}_x_{other}": ["relation_id", f"{one}_id", f"{other}_id"] for one, other in pairwise(THINGS[:12])}
    made = {thing: ["id", "kind"] for thing in THINGS} | {"relationships": ["reification_id", "kind"]} | links
    found = infer_key_pairs(open_corpus(schema={name: dict.fromkeys(made[name], "bigint") for name in made}).profiles)
    assert {one.left_columns[0] for one in found if "_x_" in one.left_table} == {f"{one}_id" for one in THINGS[:12]}


@pytest.mark.parametrize("type", ["binary(16)", "bytea"])
def test_a_binary_key_is_referred_to_by_columns_with_a_key_word(type):
    made = {thing: {"uuid": type, "kind": "text", "picture": type} for thing in THINGS}
    for thing, other in REFERENCES.items():
        made[thing][f"{other}_uuid"] = type
    found = {one.tables for one in infer_key_pairs(open_corpus(schema=made).profiles)}
    assert found == {frozenset((f"schema.{one}", f"schema.{other}")) for one, other in REFERENCES.items()}


@pytest.mark.parametrize("primary", [["label"], ["label", "kind"]])
def test_a_serial_number_is_referred_to_beside_a_declared_key(primary):
    keys = ", ".join(primary)
    made = [f"create table {one} (id serial, label text, kind text, primary key ({keys}));" for one in THINGS]
    made.append("create table visit_log (id serial primary key, shop_id integer);")
    found = infer_key_pairs(open_corpus(schema="\n".join(made)).profiles)
    assert [str(one.right) for one in found if one.left_columns == ("shop_id",)] == ["schema.shop.id"]


def test_with_rows_a_natural_key_is_surer_where_it_holds_the_values_and_none_where_it_does_not():
    keys = [f"{word} {number}" for word in ("north", "south") for number in range(20)]
    frames = {thing: pd.DataFrame({"name": [f"{thing} {key}" for key in keys], "size": range(40)}) for thing in THINGS}
    for thing, other in REFERENCES.items():
        frames[thing][other] = [f"{other} {key}" for key in keys]
    frames["stamp"]["crate"] = [f"another {key}" for key in keys]
    found = {(one.left, one.right) for one in infer_key_pairs(open_corpus(frames).profiles)}
    assert found == {(f"frames.{one}.{other}", f"frames.{other}.name") for one, other in REFERENCES.items()}


def test_each_table_that_a_column_may_mean_is_judged_once(monkeypatch):
    judged = []
    level = SchemaReading._level

    def counted(self, table, column, target):
        judged.append((table, column.profile.name, target))
        return level(self, table, column, target)

    monkeypatch.setattr(SchemaReading, "_level", counted)
    reading = SchemaReading(open_corpus(schema=schema("{part}_{}", "{}_id", "old_{}_id")).profiles)
    assert reading.references()
    assert len(judged) == len(set(judged))


def test_the_work_grows_with_the_number_of_tables():
    """Twice as many tables of distinct names: calls are counted, which are the same on every machine."""
    letters = random.Random(3)
    made = ["".join(letters.choice("bdfgklmnprtvz") + letters.choice("aeiou") for _ in range(4)) for _ in range(160)]
    things = [*dict.fromkeys(made)]

    def calls(count: int) -> int:
        tables = {
            thing: {"id": "bigint", "title": "text", "region_id": "bigint", f"{before}_id": "bigint"}
            for thing, before in pairwise(things[: count + 1])
        }
        profiles = open_corpus(schema=tables).profiles
        infer_key_pairs(profiles)  # names are taken apart once
        counts = 0

        def count_call(frame, event, argument):
            nonlocal counts
            counts += event == "call"

        before = sys.getprofile()
        sys.setprofile(count_call)
        try:
            infer_key_pairs(profiles)
        finally:
            sys.setprofile(before)
        return counts

    assert calls(150) < 2.3 * calls(75)


def test_no_values_are_compared_where_none_are_known(monkeypatch):
    monkeypatch.setattr(containment, "overlaps", lambda *sketches: pytest.fail("compared"))
    tables = schema("{}", "id", "{}_id")
    for name in ("loan", "visit"):
        tables[name] = {"shop_id": "bigint", "book_id": "bigint", **tables[name]}
    assert infer_key_pairs(open_corpus(schema=tables).profiles)


@pytest.mark.parametrize("large", [3, 500])
def test_a_second_question_infers_no_keys_again(monkeypatch, large):
    searched = []
    infer = database_keys.single_and_composite_keys

    def counted(tables):
        searched.append(len(tables))
        return infer(tables)

    monkeypatch.setattr(database_keys, "single_and_composite_keys", counted)
    for most in ("tagframe.joins.infer.LARGE", "tagframe.retrieval.links.MOST_AROUND"):
        monkeypatch.setattr(most, large)
    corpus = open_corpus(schema={**schema("{}", "id", "{}_id"), f"of_{large}": {"id": "bigint"}})
    for wanted in ("schema.book", "schema.loan", "schema.book"):
        assert keys_between(corpus, [wanted], tables_around(corpus, [wanted])).keys
    assert searched == [len(corpus)]


def frames(tables: dict[str, dict[str, str]]) -> dict[str, pd.DataFrame]:
    """Rows of a schema: all numbers count from 1, as ids do."""
    return {name: pd.DataFrame({column: range(1, 41) for column in columns}) for name, columns in tables.items()}


@pytest.mark.parametrize("with_rows", [False, True], ids=["names alone", "with rows"])
@pytest.mark.parametrize("stem", ["noted", "target", "subject", "holder"])
def test_what_another_column_says_the_table_of_refers_to_no_namesake(stem, with_rows):
    tables = schema("{}", "id", "{}_id") | {
        f"school_{stem}": {"id": "bigint", "title": "varchar(80)"},
        "note": {"id": "bigint", f"{stem}_type": "varchar(80)", f"{stem}_id": "bigint", "book_id": "bigint"},
    }
    if with_rows:
        keys = infer_key_pairs(open_corpus(frames(tables)).profiles)
    else:
        keys = infer_key_pairs(open_corpus(schema=tables).profiles)
    found = {key.left_columns[0]: key.right_table.partition(".")[2] for key in keys if key.left_table.endswith(".note")}
    assert found == {"book_id": "book"}
