from __future__ import annotations

import pytest

import tagframe as tf
from tagframe.corpus.schema_only import schema_profiles
from tagframe.engines.base import ForeignKey
from tagframe.errors import EmptyCorpus, InvalidArgument, SourceNotFound

BANK = """
-- a comment
CREATE TABLE client (client_id INTEGER PRIMARY KEY, name VARCHAR(40), born DATE);
CREATE TABLE account (account_id BIGINT, owner INT REFERENCES client, balance NUMERIC(12, 2), PRIMARY KEY (account_id));
CREATE TABLE disposition (
    account_id BIGINT, client_id INT, role TEXT,
    PRIMARY KEY (account_id, client_id),
    FOREIGN KEY (account_id) REFERENCES account (account_id),
    FOREIGN KEY (client_id) REFERENCES client (client_id)
);
CREATE INDEX by_role ON disposition (role);
"""


def test_statements():
    client, account, disposition = schema_profiles(BANK)
    assert [column.family for column in client.columns] == ["integer", "text", "date"]
    assert client.primary_key == ("client_id",)
    assert account.foreign_keys == (ForeignKey(("owner",), "client", ("client_id",)),)
    assert account.column("balance").declared_type == "NUMERIC(12, 2)"
    assert account.column("balance").family == "real"
    assert disposition.primary_key == ("account_id", "client_id")
    assert [key.other_table for key in disposition.foreign_keys] == ["account", "client"]
    assert (disposition.id, disposition.rows) == ("schema.disposition", None)


def test_what_statements_say_of_tables_and_columns():
    a, b = schema_profiles(
        "CREATE TABLE s.a (x INT COMMENT 'number\n of it', -- of nobody\n y INT, -- 3 = shipped\n z INT) "
        "COMMENT 'orders';"
        "CREATE TABLE b (x INT); COMMENT ON COLUMN s.a.Z IS 'buyer'; COMMENT ON TABLE b IS 'buyers';"
        "COMMENT ON SCHEMA b IS 'all'; COMMENT ON FUNCTION f IS 'none'"
    )
    (hive,) = schema_profiles(
        'CREATE TABLE h (`a``b` INT COMMENT "it", c INT OPTIONS(description="x")) COMMENT "all of it"'
    )
    assert (hive.description, [(one.name, one.description) for one in hive.columns]) == (
        "all of it", [("a`b", "it"), ("c", "x")]
    )  # fmt: skip
    assert (a.description, b.description) == ("orders", "buyers")
    assert [column.description for column in (*a.columns, *b.columns)] == ["number of it", "3 = shipped", "buyer", ""]


def test_keys_that_are_added_later():
    a, b = schema_profiles(
        "CREATE TABLE s.a (x INT PRIMARY KEY); CREATE TABLE s.b (y INT);"
        "ALTER TABLE s.b ADD CONSTRAINT k FOREIGN KEY (y) REFERENCES s.a (x);"
    )
    assert (a.id, b.foreign_keys) == ("s.a", (ForeignKey(("y",), "a", ("x",)),))


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ("ADD COLUMN extra numeric(10, 2) DEFAULT 0 NOT NULL, ADD COLUMN IF NOT EXISTS \"More Words\" text",
         ["id", "year", "key", "extra", "More Words"]),
        ("ADD (a int, b varchar(20))", ["id", "year", "key", "a", "b"]),
        ("ADD more int REFERENCES t (id)", ["id", "year", "key", "more"]),
        ("RENAME COLUMN Year TO yr", ["id", "yr", "key"]),
        ("RENAME year TO yr", ["id", "yr", "key"]),
        ("CHANGE COLUMN year yr int NOT NULL", ["id", "yr", "key"]),
        ("DROP COLUMN IF EXISTS year, DROP KEY k", ["id", "key"]),
        ("RENAME TO other", ["id", "year", "key"]),
        ("ADD UNIQUE (key), ADD INDEX `k` (`year`), ADD CONSTRAINT c CHECK (id > 0), ADD KEY k (year), OWNER TO bob",
         ["id", "year", "key"]),
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (3)), MODIFY id int AUTO_INCREMENT, AUTO_INCREMENT=5",
         ["id", "year", "key"]),
        ("RENAME CONSTRAINT year TO yr, ALTER COLUMN id SET DEFAULT nextval('s')", ["id", "year", "key"]),
    ],
)  # fmt: skip
def test_what_is_altered_later(change, columns):
    (table,) = schema_profiles(f"CREATE TABLE t (id int, year int, key text); ALTER TABLE ONLY t {change};")
    assert [column.name for column in table.columns] == columns
    assert table.name == ("other" if "RENAME TO" in change else "t")


def test_tables_of_one_name_in_two_databases_keep_their_keys_apart():
    profiles = schema_profiles(
        "CREATE TABLE x.a (i INT PRIMARY KEY); CREATE TABLE y.a (j INT PRIMARY KEY);"
        "CREATE TABLE x.b (k INT REFERENCES a); CREATE TABLE y.b (k INT REFERENCES a);"
    )
    assert [(p.id, p.primary_key, [key.other_columns for key in p.foreign_keys]) for p in profiles] == [
        ("x.a", ("i",), []),
        ("y.a", ("j",), []),
        ("x.b", (), [("i",)]),
        ("y.b", (), [("j",)]),
    ]


def test_a_corpus_of_schemas_retrieves_and_plans(tmp_path):
    file = tmp_path / "bank.sql"
    file.write_text(BANK.replace(" REFERENCES client,", ","))
    corpus = tf.open_corpus(schema=file)
    assert corpus.ids == ("bank.account", "bank.client", "bank.disposition")
    assert corpus.tables["rows"].isna().all()
    found = corpus.tables.tag.retrieve_tables("Which clients have which role at an account?", k=2)
    assert {hit.id for hit in found.tables} <= set(corpus.ids)
    plan = corpus.tables.tag.retrieve_tables("roles of clients in dispositions and their accounts", k=3).join_plan
    assert {str(step) for step in plan.steps} == {
        "bank.disposition.account_id = bank.account.account_id",
        "bank.disposition.client_id = bank.client.client_id",
    }
    with pytest.raises(SourceNotFound, match="only its schema is known"):
        found.merge()


def test_columns_by_table():
    corpus = tf.open_corpus(schema={"loan": ["loan_id", "client_id"], "crm.client": {"client_id": "INT", "name": ""}})
    assert corpus.ids == ("crm.client", "schema.loan")
    assert corpus.profile("client").column("client_id").family == "integer"
    assert corpus.profile("loan").column("loan_id").distinct is None


def test_a_schema_is_saved_and_opened(tmp_path):
    corpus = tf.open_corpus(schema=BANK)
    corpus.describe("client.born", "date of birth")
    corpus.save(tmp_path / "bank.catalogue")
    again = tf.open_corpus(tmp_path / "bank.catalogue")
    assert again.profiles[1].column("born").description == "date of birth"
    assert again.profile("account").foreign_keys == corpus.profile("account").foreign_keys


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        ("nowhere.sql", SourceNotFound, "no file 'nowhere.sql'"),
        ("CREATE TABLE a (", InvalidArgument, "does not parse"),
        ("CREATE VIEW v AS SELECT 1", EmptyCorpus, "no table"),
        ({}, EmptyCorpus, "no table"),
        ({"a": "x"}, InvalidArgument, "list of names"),
        ({"a": ["x", "x"]}, InvalidArgument, "twice"),
        ({"a": [1]}, InvalidArgument, "list of names"),
        (7, InvalidArgument, "got a int"),
        ("CREATE TABLE a (x INT); CREATE TABLE a (y INT);", InvalidArgument, "unique"),
    ],
)
def test_what_is_no_schema(schema, error, message):
    with pytest.raises(error, match=message):
        tf.open_corpus(schema=schema)


def test_a_source_or_a_schema():
    with pytest.raises(InvalidArgument, match="not from both"):
        tf.open_corpus("x.sqlite", schema=BANK)
    with pytest.raises(InvalidArgument, match=r"corpus\.save"):
        tf.open_corpus(schema=BANK, catalogue="x")


@pytest.mark.parametrize(
    ("sql", "columns", "primary", "problem"),
    [
        ("CREATE TABLE [dbo].[t]([id] [int] NOT NULL, [n] [nvarchar](max), CONSTRAINT [k] PRIMARY KEY CLUSTERED "
         "([id] ASC) WITH (PAD_INDEX = OFF) ON [PRIMARY]) ON [PRIMARY]\nGO\n", ["id", "n"], ("id",), ""),
        ("CREATE TABLE t(id, other REFERENCES u(id), b BLOB) WITHOUT ROWID;", ["id", "other", "b"], (), ""),
        ("CREATE MEMORY TABLE t(id INTEGER NOT NULL PRIMARY KEY, n INT);", ["id", "n"], ("id",), ""),
        ("CREATE TABLE u (x int); CREATE TABLE t (id int) INHERITS (u);", ["id"], (), "it has the columns of u, too"),
        ("CREATE TABLE d.t (id UInt64, ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD), tags Array(Nullable(String)), "
         "INDEX ix id TYPE minmax GRANULARITY 1) ENGINE = MergeTree ORDER BY id", ["id", "ts", "tags"], (), ""),
        ("CREATE TABLE t (id int, key text, index int, exclude boolean, period text, at timestamp with time zone "
         "CHECK (at > '1(9'), PRIMARY KEY (id, key), EXCLUDE USING gist (at WITH &&), PERIOD FOR p (a, b))",
         ["id", "key", "index", "exclude", "period", "at"], ("id", "key"), ""),
        ("CREATE TABLE `t` (`id` int(10) unsigned NOT NULL COMMENT 'it''s (', `e` enum('a,','b('), KEY `ix` (`e`(10)), "
         "UNIQUE u (e), PRIMARY KEY (`id` ASC)) ENGINE=InnoDB", ["id", "e"], ("id",), ""),
        ("CREATE TABLE `p.d.t` (id INT64, of ARRAY<STRUCT<sku STRING, qty NUMERIC(3, 1)>>, PRIMARY KEY (id) "
         "NOT ENFORCED) PARTITION BY x", ["id", "of"], ("id",), ""),
        ("CREATE MULTISET TABLE d.t, NO FALLBACK (Id INT, n VARCHAR(9) CHARACTER SET LATIN) PRIMARY INDEX (Id); "
         "alter table D.T add constraint p primary key (ID) using index", ["Id", "n"], ("Id",), ""),
        ("-- a dump\n\\set x on\n\nCREATE TABLE t (id int)  \n \nGO\nCREATE TABLE u (x int)\n/\n", ["id"], (), ""),
        ("CREATE TABLE t (SELECT 1 AS x); CREATE TABLE t (id int)", ["id"], (), "t is not read whole"),
        ("CREATE TABLE `t` (`id` int(11) NOT NULL AUTO_INCREMENT, `n` enum('x','y'), KEY `k` (`n`), PRIMARY KEY (`id`))"
         " ENGINE=InnoDB;\nLOCK TABLES `t` WRITE;\nINSERT INTO `t` VALUES (';');\n", ["id", "n"], ("id",), "1 INSERT"),
        ("CREATE TABLE t (id integer, n text);\nCOPY t (id, n) FROM stdin;\n1\tx; y\n2\t'z\n\\.\n"
         "ALTER TABLE ONLY t ADD CONSTRAINT k PRIMARY KEY (id);\n", ["id", "n"], ("id",), "1 COPY"),
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO x VALUES (1); END; $$;"
         "CREATE TABLE t (id int PRIMARY KEY);", ["id"], ("id",), "1 CREATE FUNCTION"),
        ("CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id*2) STORED);", ["id", "twice"], ("id",),
         ""),
        ("CREATE TABLE t (id NUMBER(10) NOT NULL ENABLE, n VARCHAR2(4 CHAR), CONSTRAINT k PRIMARY KEY (id) USING INDEX "
         "TABLESPACE u);\n/\n", ["id", "n"], ("id",), ""),
        ("CREATE TYPE m AS ENUM ('a'); CREATE TABLE t (id int, n m); ALTER TABLE t ADD PRIMARY KEY (id);", ["id", "n"],
         ("id",), "1 CREATE TYPE"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::tagframe.errors.UnreadableTableWarning")
def test_tables_of_several_dialects_lose_no_column_and_no_key(sql, columns, primary, problem):
    corpus = tf.open_corpus(schema=sql, progress=False)
    (table,) = [profile for profile in corpus.profiles if profile.name == "t"]
    assert ([column.name for column in table.columns], table.primary_key) == (columns, primary)
    assert problem in " ".join(map(str, corpus.problems))


@pytest.mark.parametrize(
    ("sql", "tables", "problem"),
    [
        ("REM Don't edit;\nPROMPT it's t\nSET DEFINE OFF\nCREATE TABLE t (a NUMBER) ;\nprompt u\n"
         "create table u (b int)\n/\n", "t u", ""),
        ("CREATE PROC p AS\nCREATE TABLE #a (x int);\nSELECT 1;\nGO\nPRINT 'it'\nCREATE TABLE t (a int)\nGO\n", "t",
         "CREATE PROC"),
        ("CREATE PROCEDURE p IS\nBEGIN\n  x;\n  CREATE TABLE z (a int);\nEND;\n/\nCREATE TABLE t (a int);", "t",
         "CREATE PROCEDURE"),
        ("DELIMITER $$\nCREATE PROCEDURE p() BEGIN SET @a = 1; CREATE TABLE z (a int); END $$\n"
         "CREATE TABLE t (a int) $$\nDELIMITER ;\nCREATE TABLE `u` (`delimiter` int,\nrem int,\nprompt text);\n"
         "CREATE TABLE v (a int);", "t u v", "CREATE PROCEDURE"),
        ("IF 1 = 1\nBEGIN\nCREATE TABLE z (a int)\nEND\nGO\nCREATE TABLE t (a int)\nGO\n", "t",
         "CREATE TABLE within IF"),
    ],
)  # fmt: skip
def test_no_table_of_a_script_vanishes_and_none_of_a_routine_is_one(sql, tables, problem):
    problems = []
    assert sorted(one.name for one in schema_profiles(sql, problems=problems)) == tables.split()
    assert bool(problems) == bool(problem)
    assert problem in str(problems)


@pytest.mark.parametrize(
    ("declared", "family"),
    [
        ("character varying(20)[]", "text"), ("int[3][]", "text"), ("UNSIGNED BIG INT", "integer"), ("point", "text"),
        ("timestamp(6) without time zone", "date"), ("smalldatetime", "date"), ("binary_double", "real"),
        ("[decimal](18, 2)", "real"), ("VARCHAR2(10 CHAR)", "text"), ("mediumblob", "blob"), ("public.citext", "text"),
    ],
)  # fmt: skip
def test_a_type_is_kept_as_it_is_written(declared, family):
    (table,) = schema_profiles(f"CREATE TABLE t (a {declared} NOT NULL DEFAULT (1), b {declared} REFERENCES u (x))")
    assert [(one.declared_type, one.family) for one in table.columns] == [
        (declared.replace("[decimal]", "decimal"), family)
    ] * 2
    assert table.foreign_keys == (ForeignKey(("b",), "u", ("x",)),)


def test_a_reference_to_another_schema_names_it_and_escapes_are_those_of_the_dialect():
    sql = r"CREATE TABLE s.a (x INT REFERENCES r.b, y INT COMMENT 'it\'s; x'); CREATE TABLE r.b (y INT PRIMARY KEY)"
    a, b = schema_profiles(sql, dialect="mysql")
    assert a.foreign_keys == (ForeignKey(("x",), "b", ("y",), "r"),)
    assert (a.column("y").description, b.primary_key) == ("it's; x", ("y",))
    with pytest.raises(InvalidArgument, match=r"no dialect 'mysqll'.*mysql"):
        schema_profiles(sql, dialect="mysqll")
