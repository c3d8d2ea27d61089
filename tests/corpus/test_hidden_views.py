"""What is computed of a hidden column is hidden with it: columns of views, of views on views, and generated ones."""

from __future__ import annotations

import pickle
import sqlite3
import traceback
import warnings
from contextlib import closing

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import HiddenColumn, UnclearViewWarning

PEOPLE = """
CREATE TABLE people (id int PRIMARY KEY, ssn text, city text);
INSERT INTO people VALUES (1, 'zqs-078', 'Porto'), (2, 'zqs-219', 'Faro'), (3, 'zqs-457', 'Lagos');
"""

VIEWS = {
    # Each view, and those of its columns that have cells of people.ssn, or what is computed of them.
    "CREATE VIEW plain AS SELECT id, ssn, city FROM people": {"ssn"},
    "CREATE VIEW renamed AS SELECT ssn AS town, city AS ssn2, id FROM people": {"town"},
    "CREATE VIEW computed AS SELECT id, upper(ssn) || city AS label, length(city) AS letters FROM people": {"label"},
    "CREATE VIEW counted AS SELECT city, count(*) AS n, min(ssn) AS least FROM people GROUP BY city": {"least"},
    "CREATE VIEW filtered AS SELECT id, city FROM people WHERE ssn LIKE 'zqs-0%' ORDER BY ssn": set(),
    "CREATE VIEW of_two AS SELECT p.id, q.ssn AS other FROM people p JOIN people q ON p.city = q.city": {"other"},
    "CREATE VIEW inside AS SELECT x.a AS b, x.id FROM (SELECT ssn AS a, id FROM people) x": {"b"},
    "CREATE VIEW with_entry AS WITH w AS (SELECT ssn AS s, id FROM people) SELECT s AS t, id FROM w": {"t"},
    "CREATE VIEW united AS SELECT city AS word, id FROM people UNION ALL SELECT ssn, id FROM people": {"word"},
    "CREATE VIEW scalar AS SELECT id, (SELECT max(q.ssn) FROM people q) AS most FROM people": {"most"},
    "CREATE VIEW chosen AS SELECT id, CASE WHEN ssn > 'zqs-1' THEN 1 ELSE 0 END AS flag FROM people": {"flag"},
    "CREATE VIEW on_view AS SELECT town AS b, ssn2 FROM renamed": {"b"},
    "CREATE VIEW on_view_on_view AS SELECT id, b FROM (SELECT b, ssn2 AS id FROM on_view) x": {"b"},
    "CREATE VIEW windowed AS SELECT id, lag(ssn) OVER (ORDER BY id) AS before, row_number() OVER (ORDER BY id) AS nr "
    "FROM people": {"before"},
}

SQLITE = {
    "CREATE VIEW twice AS SELECT * FROM people p JOIN people q ON p.id = q.id": {
        "ssn", "id:1", "ssn:1", "city:1",
    },
    "CREATE VIEW unnamed AS SELECT id, upper(ssn) FROM people": {"upper(ssn)"},
    "CREATE VIEW unnamed_too AS SELECT *, upper(ssn) FROM people": {"ssn", "upper(ssn)"},
    "CREATE VIEW starred AS SELECT * FROM plain": {"ssn"},
    "CREATE VIEW listed(a, b) AS SELECT ssn, id FROM people": {"a"},
    "CREATE VIEW numbered AS SELECT rowid AS r, city FROM people": {"r"},
    "CREATE VIEW each_value AS SELECT value AS c, p.id FROM people p, json_each(json_array(p.ssn))": {"c", "id"},
}  # fmt: skip

POSTGRES = {
    "CREATE MATERIALIZED VIEW kept AS SELECT id, left(ssn, 5) AS start FROM people": {"start"},
    "CREATE VIEW whole_rows AS SELECT p.id, p AS person, to_jsonb(p) AS json, (p).ssn AS x FROM people p": {
        "person", "json", "x",
    },
    "CREATE VIEW gathered AS SELECT city, array_agg(people) AS members, count(*) AS n FROM people GROUP BY city": {
        "members"
    },
    "CREATE VIEW unnested AS SELECT p.id, u.letter FROM people p, unnest(string_to_array(p.ssn, '-')) AS u(letter)": {
        "id", "letter",
    },
    "CREATE VIEW lateral_row AS SELECT p.id, l.a FROM people p, LATERAL (SELECT p.ssn AS a) l": {"id", "a"},
    "CREATE VIEW listed(a, b) AS SELECT id, ssn FROM people": {"b"},
    "CREATE VIEW recursive_one AS WITH RECURSIVE w(a, b) AS (SELECT id, ssn FROM people UNION ALL SELECT a + 1, b "
    "FROM w WHERE a < 2) SELECT a, b FROM w": {"a", "b"},
    "CREATE VIEW aliased AS SELECT t.x, t.y FROM people t(x, y, z)": {"x", "y"},
    "CREATE TABLE generated (id int, secret text, shown text, g text GENERATED ALWAYS AS (secret || '!') STORED, "
    "h text GENERATED ALWAYS AS (shown || '!') STORED); INSERT INTO generated VALUES (1, 'abc-9', 'a')": set(),
    "CREATE TABLE child () INHERITS (people); INSERT INTO child VALUES (9, 'zqs-999', 'Braga')": {"ssn"},
}  # fmt: skip


def hidden_of(corpus: tf.Corpus, table: str) -> set[str]:
    hidden = corpus.hidden
    found = set(hidden.loc[hidden["table"].str.endswith(f".{table}"), "column"])
    for column in found:
        with pytest.raises(HiddenColumn):
            corpus.read(table, [column])
        assert corpus.profile(table).column(column).samples == ()
    return found


def name_of(statement: str) -> str:
    return statement.replace("MATERIALIZED ", "").split()[2].partition("(")[0]


@pytest.mark.parametrize("kind", ["postgres", "sqlalchemy"])
def test_columns_of_views_are_hidden_with_what_they_are_computed_of(kind, request, sqlite_file, cache_folder):
    views = VIEWS | (SQLITE if kind == "sqlalchemy" else POSTGRES)
    script = PEOPLE + ";".join(views)
    if kind == "postgres":
        url = request.getfixturevalue("database")(script)
    else:
        pytest.importorskip("sqlalchemy")
        url = f"sqlite:///{sqlite_file(script)}"
    corpus = tf.open_corpus(url, progress=False)
    assert corpus.hidden.empty
    corpus.hide("people.ssn")
    assert {name_of(view): hidden_of(corpus, name_of(view)) for view in views} == {
        name_of(view): columns for view, columns in views.items()
    }
    again = tf.open_corpus(url, progress=False)
    assert again.hidden.equals(corpus.hidden)
    assert pickle.loads(pickle.dumps(again)).hidden.equals(corpus.hidden)
    assert b"zqs-" not in b"".join(path.read_bytes() for path in cache_folder.rglob("*") if path.is_file())
    again.show("people.ssn")
    assert again.hidden.empty
    assert "zqs-078" in again.read("renamed")["town"].tolist()


def test_a_column_of_a_view_has_a_word_of_its_own(database, cache_folder):
    url = database(PEOPLE + "CREATE VIEW v AS SELECT city, count(ssn) AS n, min(ssn) AS least FROM people GROUP BY 1")
    corpus = tf.open_corpus(url, progress=False)
    corpus.hide("people.ssn", from_models=True)
    assert corpus.hidden["hidden_from"].tolist() == ["models"] * 3
    corpus.hide("people.ssn")
    assert corpus.hidden["hidden_from"].tolist() == ["everybody"] * 3
    corpus.show("v.n")
    assert hidden_of(tf.open_corpus(url, progress=False), "v") == {"least"}
    corpus.show("people.ssn")
    corpus.hide("people.ssn")
    assert hidden_of(corpus, "v") == {"n", "least"}, "it was hidden anew"
    corpus.hide("people.city", from_models=True)
    assert dict(zip(corpus.hidden["column"], corpus.hidden["hidden_from"], strict=True)) == {
        "ssn": "everybody", "city": "models", "n": "everybody", "least": "everybody",
    }  # fmt: skip


def test_a_view_that_is_made_later(database, cache_folder):
    import psycopg

    url = database(PEOPLE)
    tf.open_corpus(url, progress=False).hide("people.ssn")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE VIEW later AS SELECT id, ssn AS town FROM people; CREATE TABLE free (ssn text)")
    again = tf.open_corpus(url, progress=False)
    assert hidden_of(again, "later") == {"town"}
    assert hidden_of(again, "free") == set()
    assert b"zqs-" not in b"".join(path.read_bytes() for path in cache_folder.rglob("*") if path.is_file())


def test_a_view_that_calls_what_may_read_it_is_said(database, cache_folder):
    url = database(
        PEOPLE
        + "CREATE FUNCTION everybody() RETURNS SETOF people LANGUAGE sql STABLE AS 'SELECT * FROM public.people';"
        + "CREATE VIEW hollow AS SELECT city, ssn FROM everybody();"
        + "CREATE VIEW by_text AS SELECT word AS x FROM ts_stat('SELECT to_tsvector(ssn) FROM public.people');"
        + "CREATE VIEW statistics AS SELECT most_common_vals::text AS cells, histogram_bounds::text FROM pg_stats;"
        + "CREATE VIEW harmless AS SELECT upper(city) AS city FROM people"
    )
    corpus = tf.open_corpus(url, progress=False)
    with pytest.warns(UnclearViewWarning) as said:
        corpus.hide("people.ssn")
    assert [str(one.message).partition(",")[0] for one in said] == [
        "public.by_text reads ts_stat",
        "public.hollow calls the function everybody",
        "public.statistics reads pg_stats",
    ]
    corpus.hide("hollow.ssn")
    corpus.hide("by_text.x")
    corpus.show("statistics.cells")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.open_corpus(url, progress=False)


def test_generated_columns_of_sqlite(sqlite_file, cache_folder):
    path = sqlite_file(
        """
        CREATE TABLE people (id INTEGER PRIMARY KEY, ssn TEXT, city TEXT, "the ssn" TEXT AS (upper([SSN])),
            label TEXT GENERATED ALWAYS AS (city || ' (' || "the ssn" || ')') STORED, -- a, comment
            letters INT AS (length(city)), CHECK (ssn <> ''));
        INSERT INTO people (id, ssn, city) VALUES (1, 'zqs-078', 'Porto'), (2, 'zqs-219', 'Faro');
        CREATE VIEW v AS SELECT * FROM people;
        """,
        "shop.sqlite",
    )
    corpus = tf.open_corpus(path)
    corpus.hide("people.ssn")
    assert hidden_of(corpus, "people") == {"ssn", "the ssn", "label"}
    assert hidden_of(tf.open_corpus(path), "people") == {"ssn", "the ssn", "label"}
    rows = tf.exec_sql(corpus)("SELECT * FROM people")
    assert list(rows.columns) == ["id", "city", "letters"]
    for sql in ("SELECT label FROM people", 'SELECT "the ssn" FROM people', "SELECT * FROM v"):
        with pytest.raises(tf.errors.TagframeError) as error:
            tf.exec_sql(corpus)(sql)
        assert "zqs-" not in str(error.value).lower()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE people ADD COLUMN more TEXT AS (ssn || '?')")
        connection.commit()
    assert hidden_of(tf.open_corpus(path), "people") == {"ssn", "the ssn", "label", "more"}
    other = tf.open_corpus(f"sqlite:///{path}")
    other.hide("people.ssn")
    assert hidden_of(other, "people") == hidden_of(other, "v") >= {"ssn", "the ssn", "label", "more"}
    assert {"id", "city"}.isdisjoint(hidden_of(other, "v"))


def test_a_generated_column_of_postgres(database, cache_folder):
    statement = next(statement for statement in POSTGRES if "generated" in statement)
    corpus = tf.open_corpus(database(statement), progress=False)
    corpus.hide("generated.secret")
    assert hidden_of(corpus, "generated") == {"secret", "g"}


def test_an_error_of_a_view_quotes_no_cell(database, cache_folder):
    import psycopg

    url = database(
        PEOPLE + "CREATE VIEW v AS SELECT id, city FROM people WHERE CAST(right(ssn, 3) AS int) > 0;"
        "CREATE FUNCTION told(text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS "
        "$$ BEGIN IF length($1) > 7 THEN RAISE EXCEPTION 'bad %', $1 USING HINT = $1; END IF; RETURN 1; END $$;"
        "CREATE VIEW w AS SELECT id, city FROM people WHERE told(ssn) = 1;"
    )
    corpus = tf.open_corpus(url, progress=False)
    corpus.hide("people.ssn")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("INSERT INTO people VALUES (4, 'zqs-\"9\nx', 'Braga')")
    found = corpus.tables.tag.retrieve_tables("the city of each id", k=3, method="lexical")
    for call in (
        lambda: corpus.read("v"),
        lambda: corpus.read("w"),
        lambda: tf.exec_sql(corpus)("SELECT * FROM v"),
        lambda: tf.exec_sql(corpus)("SELECT city, CAST(city AS int) FROM w"),
        lambda: found.merge(on="v.id = w.id", on_fanout="allow", on_loss="allow"),
        lambda: tf.open_corpus(url, progress=False, catalogue=cache_folder / "new"),
    ):
        with pytest.raises((tf.errors.TagframeError, tf.errors.UnreadableTableWarning)) as error:
            call()
        assert "zqs" not in "".join(traceback.format_exception(error.value))


def test_reasons_from_before_it_was_hidden(sqlite_file, cache_folder):
    corpus = tf.open_corpus(sqlite_file(PEOPLE, "shop.sqlite"))
    found = corpus.tables.tag.retrieve_tables("Where does zqs-219 live, in Faro?", k=1)
    assert "'zqs-219' is in ssn" in "; ".join(found[0].reasons)
    corpus.hide("people.ssn")
    corpus.hide("people.city", from_models=True)
    for shown in (found[0].reasons, repr(found), found.to_dict()["tables"], found.tables[0].cells):
        assert "zqs-219" not in str(shown).replace(found.question, "")
    assert "zqs-219' is" not in str(pickle.loads(pickle.dumps(found)).tables)
    corpus.show("people.ssn")
    assert "'zqs-219' is in ssn" in "; ".join(found[0].reasons)


def test_a_question_over_a_path_is_refused_by_name():
    with pytest.raises(tf.errors.InvalidArgument, match="open_corpus"):
        tf.ask("Who?", "bank.sqlite")  # type: ignore[call-overload]
    with pytest.raises(tf.errors.InvalidArgument, match="not shown"):
        tf.retrieve_tables("Who?", "postgresql://owner:secret@host/db")  # type: ignore[call-overload]


def test_small_tables_that_look_alike_in_another_format_are_not_hidden(tmp_path, sqlite_file, cache_folder):
    tf.open_corpus(sqlite_file(PEOPLE, "shop.sqlite")).hide("people.ssn")
    (tmp_path / "people.csv").write_text("id,ssn,city\n1,zqs-078,Porto\n2,zqs-219,Faro\n3,zqs-457,Lagos\n")
    assert tf.open_corpus(tmp_path / "people.csv").hidden.empty


def test_tables_that_share_a_column_beside_a_hidden_key(cache_folder):
    people = pd.DataFrame({"ssn": [f"zqs-{n}" for n in range(40)], "region": ["north", "south"] * 20})
    cards = pd.DataFrame(
        {"ssn": [f"zqs-{n}" for n in range(40)], "region": ["south", "north"] * 20, "limit": range(40)}
    )
    corpus = tf.open_corpus({"people": people, "cards": cards})
    corpus.hide("people.ssn")
    corpus.hide("cards.ssn")
    found = corpus.tables.tag.retrieve_tables("the limit of each person's card by region", k=2, method="lexical")
    merged = found.merge(on_ambiguous="allow", on_fanout="allow", on_loss="allow")
    assert "zqs-" not in merged.to_csv()


def test_what_is_hidden_in_a_schema_that_is_not_opened(database, postgres, cache_folder):
    import psycopg

    url = database(PEOPLE + "CREATE SCHEMA other; CREATE VIEW other.v AS SELECT id, ssn AS town FROM people")
    role = f"reader_{url.rpartition('/')[2]}"
    tf.open_corpus(url, progress=False).hide("people.ssn")
    assert hidden_of(tf.open_corpus(url, schemas=["other"], progress=False), "v") == {"town"}
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(
            f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA other TO {role}; GRANT SELECT ON other.v TO {role}"
        )
    try:
        reader = tf.open_corpus(url.replace("owner@", f"{role}@"), schemas=["other"], progress=False)
        assert reader.ids == ("other.v",)
        assert hidden_of(reader, "v") == {"town"}
    finally:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.slow
def test_a_column_of_a_hidden_tables_row_type(database, cache_folder):
    url = database(
        f"{PEOPLE} CREATE TABLE audit (id int, who people, note text);"
        "INSERT INTO audit SELECT id, p, 'ok' FROM people p;"
        "CREATE TABLE crowd (id int, members people[]); INSERT INTO crowd SELECT 1, array_agg(p) FROM people p;"
        "CREATE TYPE pair AS (nr int, person people); CREATE DOMAIN checked AS pair;"
        "CREATE TABLE pairs (id int, one pair, two checked);"
        "INSERT INTO pairs SELECT id, ROW(1, ROW(id, ssn, city)::people)::pair,"
        " ROW(2, ROW(id, ssn, city)::people)::pair FROM people;"
        "CREATE VIEW of_audit AS SELECT id, note, (who).ssn AS told FROM audit;"
        "CREATE TYPE other AS (nr int); CREATE TABLE plain (id int, nr other); ANALYZE;"
    )
    corpus = tf.open_corpus(url, progress=False)
    assert "zqs" in corpus.read("audit").to_csv()
    corpus.hide("people.ssn")
    assert {*map(".".join, corpus.hidden[["table", "column"]].to_numpy())} == {
        f"public.{one}"
        for one in ("people.ssn", "audit.who", "crowd.members", "pairs.one", "pairs.two", "of_audit.told")
    }
    for again in (corpus, tf.open_corpus(url, progress=False)):
        for id in again.ids:
            assert "zqs" not in again.read(id).to_csv(), id
    with pytest.raises(tf.errors.TagframeError):
        tf.exec_sql(corpus)("SELECT CAST(who AS text) AS t FROM audit")


def test_a_hidden_column_whose_header_is_written_otherwise(tmp_path, cache_folder):
    path = tmp_path / "people.csv"
    path.write_text("id,secret code\n1,zqs-1\n2,zqs-2\n")
    tf.open_corpus(path).hide("people.secret code")
    for header in ("secret code ", " Secret Code", "SECRETCODE", "secret\u00a0code", "secret\u200bcode"):
        path.write_text(f"id,{header}\n1,zqs-1\n2,zqs-2\n3,zqs-{header}\n")
        corpus = tf.open_corpus(path)
        assert "zqs" not in corpus.read("people").to_csv(), repr(header)
        assert b"zqs" not in pickle.dumps(corpus)
        assert not any(column.samples for column in corpus.profile("people").columns if column.hidden)


def test_a_column_is_shown_again_under_the_name_that_it_has_now(tmp_path, cache_folder):
    path = tmp_path / "people.csv"
    path.write_text("id,secret\n1,zqs-1\n")
    tf.open_corpus(path).hide("people.secret")
    path.write_text("id,Secret\n1,zqs-1\n2,zqs-2\n")
    corpus = tf.open_corpus(path)
    assert [*corpus.read("people").columns] == ["id"]
    corpus.show("people.Secret")
    assert [*tf.open_corpus(path).read("people").columns] == ["id", "Secret"]
