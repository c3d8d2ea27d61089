"""tag_bench.data: the benchmark folders as they are, and small ones of each format."""

import gzip
import json

import click
import pytest

from tag_bench.data import gold_tables, read_dataset, read_decompositions


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def jar_folder(folder, **more):
    table = {
        "db_id": "d",
        "table_name_original": "T",
        "column_names_original": ["id", "x"],
        "column_types": ["text", "x"],
    }
    other = {**table, "table_name_original": "U"}
    questions = [
        {"question": " q ", "db_id": "d", "sql": "SELECT * FROM t JOIN u ON t.id = u.id"},
        {"question": "r", "db_id": "d", "gold_tables": ["d#sep#T"]},
        {"question": "s", "db_id": "d", "gold_tables": ["u"]},
    ]
    return write(folder, dev=questions, dev_tables={"d#sep#T": table, "d#sep#U": other}, **more)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT a FROM X AS t WHERE b IN (SELECT c FROM `y z`)", {"x", "y z"}),
        ("WITH x AS (SELECT 1) SELECT * FROM x", set()),
        ("SELECT FROM FROM JOIN broken( ", {"from", "broken"}),
    ],
)
def test_gold_tables(sql, tables):
    if "broken" in sql:
        assert "broken" in gold_tables(sql)
    else:
        assert gold_tables(sql) == tables


def test_jar_folder_without_anything_optional(tmp_path):
    data = read_dataset(jar_folder(tmp_path / "mini"))
    assert data.name == "mini"
    assert data.corpus.ids == ("d.T", "d.U")
    assert [sorted(question.gold) for question in data.questions] == [["d.t", "d.u"], ["d.t"], ["d.u"]]
    # The types there are shifted by one and not to be used.
    assert {column.family for column in data.corpus.profile("d.T").columns} == {"text"}


def test_statistics_and_keys_are_read_where_present(tmp_path):
    column = {
        "name": "x",
        "null_fraction": 0.5,
        "unique_count": 2,
        "min_value": "a",
        "max_value": "b",
        "sample_values": ["a", "b"],
    }
    folder = jar_folder(
        tmp_path,
        uniqueness={"d#sep#T#sep#id": 0.25},
        column_stats=[{"name": "d", "tables": [{"name": "T", "row_count": 10, "columns": [column]}]}],
        schema_with_keys=[
            {
                "db_id": "d",
                "table_names_original": ["T", "U"],
                "column_names_original": [[-1, "*"], [0, "id"], [0, "x"], [1, "id"], [1, "x"]],
                "column_types": ["text", "integer", "text", "integer", "text"],
                "primary_keys": [1],
                "foreign_keys": [[3, 1]],
            }
        ],
    )
    key, x = read_dataset(folder).corpus.profile("d.T").columns
    assert (key.family, key.uniqueness) == ("integer", 0.25)
    assert (x.rows, x.nulls, x.distinct, x.sketch.complete) == (10, 5, 2, True)
    assert read_dataset(folder).corpus.profile("d.U").foreign_keys == ()
    assert read_dataset(folder, declared_keys=True).corpus.profile("d.U").foreign_keys[0].other_table == "T"


def test_hidden_databases_keep_tables_apart(tmp_path):
    folder = jar_folder(tmp_path)
    tables = json.loads((folder / "dev_tables.json").read_text())
    tables["e#sep#T"] = {**tables["d#sep#T"], "db_id": "e"}
    write(folder, dev_tables=tables)
    data = read_dataset(folder, hide_database=True)
    assert data.corpus.ids == ("lake.T", "lake.T#2", "lake.U")
    assert data.questions[1].gold == {"lake.t"}


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(click.ClickException, match="dev_tables"):
        read_dataset(tmp_path)


def test_decompositions_must_be_as_many_as_questions(tmp_path):
    data = read_dataset(jar_folder(tmp_path))
    assert read_decompositions("none", data.questions) is None
    path = tmp_path / "decomp.json"
    path.write_text('[["a:b"]]')
    with pytest.raises(click.ClickException, match="1 decompositions for 3 questions"):
        read_decompositions(str(path), data.questions)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tables", "questions", "multi"),
    [("spider", 81, 1034, 459), ("fiben", 152, 300, 300), ("spider_union", 876, 658, 263)],
)
def test_the_benchmarks_have_their_known_sizes(bench, name, tables, questions, multi):
    data = read_dataset(bench / name)
    assert len(data.corpus) == tables
    assert len(data.questions) == questions
    assert sum(len(question.gold) > 1 for question in data.questions) == multi
    ids = {id.lower() for id in data.corpus.ids}
    assert all(question.gold <= ids for question in data.questions)


def spider2_folder(folder):
    def family(name, tables, columns):
        given = {"family": tables[0], "database": "W", "schema": name.split(".")[1], "tables": tables}
        return json.dumps({**given, "columns": columns})

    folder.mkdir()
    lines = [
        family("W.W", ["W.W.EVENTS_20210101", "W.W.EVENTS_20210102"], [{"name": "id", "type": "NUMBER"}]),
        family(
            "W.GEO",
            ["W.GEO.STATES"],
            [{"name": "st", "type": "TEXT", "samples": ["FL"], "description": "state code"}],
        ),
    ]
    with gzip.open(folder / "tables.jsonl.gz", "wt") as file:
        file.write("\n".join(lines))
    question = {"question": "q", "database": "W", "gold_families": ["W.W.EVENTS_20210101", "W.GEO.STATES"]}
    (folder / "dev.json").write_text(json.dumps([question]))
    return folder


def test_a_warehouse_has_a_table_for_each_family(tmp_path):
    data = read_dataset(spider2_folder(tmp_path / "s2"))
    states, events = data.corpus.profiles
    assert (states.id, states.database, states.name) == ("W.GEO.STATES", "W", "GEO.STATES")
    assert (events.id, events.name) == ("W.W.EVENTS_20210101", "EVENTS")
    assert (states.columns[0].samples, states.columns[0].description) == (("FL",), "state code")
    assert [events.columns[0].family, states.columns[0].family] == ["integer", "text"]
    assert data.questions[0].gold == {"w.geo.states", "w.w.events_20210101"}


def test_other_wordings_of_the_questions(tmp_path):
    folder = jar_folder(tmp_path / "mini")
    with pytest.raises(click.ClickException, match="no second wording"):
        read_dataset(folder, synonyms=True)
    entries = json.loads((folder / "dev.json").read_text())
    entries[1]["synonyms"] = "s' "
    (folder / "dev.json").write_text(json.dumps(entries))
    assert [question.text for question in read_dataset(folder, synonyms=True).questions] == ["q", "s'", "s"]


def beaver(folder):
    """The files of BEAVER: one database with keys in its tables, one whose keys stand apart."""
    folder.mkdir()
    tables = {
        "dw#sep#ROOMS": {"db_id": "dw", "table_name_original": "ROOMS", "column_names_original": ["ID", "BUILDING"]},
        "dw#sep#BUILDINGS": {"db_id": "dw", "table_name_original": "BUILDINGS", "column_names_original": ["BUILDING"]},
        "nova#sep#hosts": {"db_id": "nova", "table_name_original": "hosts", "column_names_original": ["id", "vm"],
                           "column_types": ["int NOT NULL AUTO_INCREMENT", "varchar(255) DEFAULT NULL"],
                           "primary_key": ["id"],
                           "foreign_key": [{"column_name": "vm", "referenced_table_name": "nova#sep#vms",
                                            "referenced_column_name": "uuid"}]},
        "nova#sep#vms": {"db_id": "nova", "table_name_original": "vms", "column_names_original": ["uuid"]},
    }  # fmt: skip
    dw = {"question": "rooms?", "db_id": "dw", "sql": "…", "gold_tables": ["dw#sep#ROOMS", "dw#sep#BUILDINGS"]}
    nw = {"question": "hosts?", "db_id": "nova", "sql": "…", "gold_tables": ["nova#sep#HOSTS", "nova#sep#VMS"]}
    joined = [["ROOMS.BUILDING", "BUILDINGS.BUILDING"]]
    files = {"dev_dw": [dw], "dev_nw": [nw], "dev_tables": tables, "dw_join_keys": joined}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_beaver_is_read_as_its_authors_publish_it(tmp_path):
    folder = beaver(tmp_path / "beaver")
    data = read_dataset(folder / "dev_dw.json", declared_keys=True)
    assert (data.name, [table.id for table in data.corpus.profiles]) == ("beaver_dw", ["dw.BUILDINGS", "dw.ROOMS"])
    assert data.questions[0].gold == {"dw.rooms", "dw.buildings"}
    assert data.corpus.profile("dw.ROOMS").foreign_keys[0].other_table == "BUILDINGS"
    other = read_dataset(folder / "dev_nw.json", declared_keys=True)
    hosts = other.corpus.profile("nova.hosts")
    assert ([column.family for column in hosts.columns], hosts.primary_key) == (["integer", "text"], ("id",))
    assert hosts.foreign_keys[0].other_columns == ("uuid",)
    assert read_dataset(folder / "dev_nw.json").corpus.profile("nova.hosts").foreign_keys == ()


def test_mmqa_is_read_as_its_authors_publish_it(tmp_path):
    def asked(text, **tables):
        return {
            "id_": 0, "Question": text, "SQL": "SELECT 1", "table_names": [*tables], "answer": "",
            "tables": [{"table_columns": head, "table_content": rows} for head, *rows in tables.values()],
            "foreign_keys": ["head id"], "primary_keys": ["head id"],
        }  # fmt: skip

    head, heads = [["head_ID", "Name", "name"], [1, "Ann", "A."], [2, "Bo", "B."]], [["head_ID", "age"], [1, 67.0]]
    file = tmp_path / "Synthesized_two_table.json"
    questions = [
        asked("Who?", head=head, management=[["head_ID"], [1]]),
        asked("How old?", Head=heads, management=[["HEAD_ID"], [1]]),
    ]
    file.write_text(json.dumps(questions))
    data = read_dataset(file)
    assert data.name == "mmqa_two_table"
    assert sorted(table.id for table in data.corpus.profiles) == ["mmqa.Head_2", "mmqa.head", "mmqa.management"]
    assert [sorted(one.gold) for one in data.questions] == [
        ["mmqa.head", "mmqa.management"], ["mmqa.head_2", "mmqa.management"]
    ]  # fmt: skip
    assert data.corpus.profile("mmqa.head").rows == 2
    assert [column.name for column in data.corpus.profile("mmqa.head").columns] == ["head_ID", "Name", "name_2"]


def test_ragged_rows_of_mmqa_are_filled_or_named(tmp_path):
    def asked(*rows):
        table = {"table_columns": ["id", "name"], "table_content": [*rows]}
        file.write_text(json.dumps([{"Question": "Who?", "table_names": ["head"], "tables": [table]}]))
        return read_dataset(file)

    file = tmp_path / "Synthesized_two_table.json"
    names = asked([1], [2]).corpus.profile("mmqa.head").columns
    assert [(column.name, column.nulls) for column in names] == [("id", 0), ("name", 2)]
    assert asked().corpus.profile("mmqa.head").rows == 0
    with pytest.raises(click.ClickException, match=r"mmqa\.head: row 2 has 3 cells for 2 columns \(id, name\)"):
        asked([1, "Ann"], [2, "Bo", "B."])


@pytest.mark.parametrize("text", ["[]", "{}", "no JSON", '[{"question": "q"}]', '[["a"]]'])
def test_a_file_of_another_form_is_refused_with_the_forms(tmp_path, text):
    (tmp_path / "dev_dw.json").write_text(text)
    with pytest.raises(click.ClickException, match="is no benchmark: it needs BEAVER's form"):
        read_dataset(tmp_path / "dev_dw.json")
