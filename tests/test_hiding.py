"""Hidden parts do not exist: how they are given, what the engine offers, what is warned of, and what is refused."""

from __future__ import annotations

import json
import pickle
import sqlite3
import traceback
import warnings
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import (
    ColumnNotFound,
    HidingWarning,
    InvalidArgument,
    SQLFailed,
    TableNotFound,
    UnreadableCatalogue,
    UnreadableFacts,
    UnreadableTable,
    UnsafeSQL,
)

SCRIPT = """
CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT UNIQUE, city TEXT, -- not the email
    initial TEXT AS (substr(email, 1, 1)), UNIQUE (email, city));
INSERT INTO users (id, email, city) VALUES (1, 'zqs-ada', 'Porto'), (2, 'zqs-bo', 'Faro');
CREATE TABLE salaries (id INTEGER REFERENCES users(id), pay INTEGER);
INSERT INTO salaries VALUES (1, 987654);
CREATE TABLE orders (nr INTEGER, buyer INTEGER REFERENCES users(id), mail TEXT REFERENCES users(email));
INSERT INTO orders VALUES (1, 1, 'zqs-ada'), (2, 2, 'zqs-bo');
CREATE VIEW mails AS SELECT id, email AS m FROM users;
CREATE VIEW of_mails AS SELECT m FROM mails;
CREATE VIEW cities AS SELECT id, city FROM users;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "shop.sqlite")) as connection:
        connection.executescript(SCRIPT)
    return tmp_path / "data" / "shop.sqlite"


def columns(corpus: tf.Corpus) -> dict[str, list[str]]:
    return {one.name: [column.name for column in one.columns] for one in corpus}


LEFT = {"orders": ["nr", "buyer", "mail"], "users": ["id", "city"], "cities": ["id", "city"]}
VIEWS_HIDDEN = ["mails", "of_mails"]
"""The views that read what is hidden: they are tables, and are hidden by their names, too."""
HIDE = ["users.email", "salaries", "users.initial", *VIEWS_HIDDEN]


@pytest.mark.parametrize("way", ["hide=", "hide", "tagframe.toml", "catalogue", "subset", "union", "frames"])
def test_each_way_to_hide(shop, tmp_path, way):
    if way == "tagframe.toml":
        (shop.parent / "tagframe.toml").write_text(f"hide = {json.dumps(HIDE)}\n")
        corpus = tf.open_corpus(shop)
        assert columns(tf.open_corpus(shop.parent)) == LEFT
    elif way == "catalogue":
        saved = tf.open_corpus(shop).hide(*HIDE).save(tmp_path / "saved.catalogue")
        assert b"email" not in saved.read_bytes()
        with closing(sqlite3.connect(shop)) as connection:
            connection.executescript("ALTER TABLE users ADD COLUMN more TEXT; CREATE TABLE more (id INTEGER)")
        corpus = tf.open_corpus(saved)
    elif way == "frames":
        whole = tf.open_corpus(shop)
        corpus = tf.open_corpus({f"shop.{one.name}": whole.read(one.id) for one in whole}, hide=HIDE)
    elif way == "hide=":
        corpus = tf.open_corpus(shop, hide=HIDE)
    else:
        whole = tf.open_corpus(shop)
        corpus = whole.subset(whole.ids).hide(*HIDE) if way == "subset" else whole.hide(*HIDE)
        assert "email" in columns(whole)["users"], "the other corpus stays as it is"
        corpus = corpus.union(tf.open_corpus({"x": pd.DataFrame({"a": [1]})})) if way == "union" else corpus
    found = columns(corpus)
    found.pop("x", None)
    assert found == LEFT
    assert [*corpus.read("users").columns] == ["id", "city"]
    assert [*tf.exec_sql(corpus)("SELECT * FROM users").columns] == ["id", "city"]
    assert [*tf.exec_sql(corpus)("SELECT * FROM cities").columns] == ["id", "city"]
    for table in ("salaries", *VIEWS_HIDDEN):
        with pytest.raises(TableNotFound):
            corpus.read(table)
    for sql in ("SELECT email FROM users", *(f"SELECT * FROM {table}" for table in ("salaries", *VIEWS_HIDDEN))):
        with pytest.raises((SQLFailed, UnsafeSQL)):
            tf.exec_sql(corpus)(sql)
    data = pickle.dumps(corpus)
    assert not [word for word in (b"email", b"salaries", b"987654", b"mails") if word in data]


def test_a_name_is_taken_in_any_form_and_a_wrong_one_is_said(shop):
    for name in ("users.EMAIL", "shop.users.email", "USERS . email", "users.e\u200bmail"):
        assert "email" not in columns(tf.open_corpus(shop, hide=[name, "users.initial", *VIEWS_HIDDEN]))["users"]
    with pytest.raises(ColumnNotFound, match=r"no column 'emial' in .*users: .* did you mean 'email'"):
        tf.open_corpus(shop, hide=["users.emial"])
    with pytest.raises(TableNotFound, match=r"no table 'salary' in .*; a column is named with its table"):
        tf.open_corpus(shop).hide("salary")
    for wrong in ("users.email", [1], [""]):
        with pytest.raises(InvalidArgument, match="hide must"):
            tf.open_corpus(shop, hide=wrong)
    with pytest.raises(ColumnNotFound, match="no column 'email'"):  # of a corpus that has none any more
        tf.open_corpus(shop, hide=["users.email", "users.initial", *VIEWS_HIDDEN]).hide("users.email")
    with pytest.raises(TableNotFound, match="no table 'mails'"):
        tf.open_corpus(shop, hide=HIDE).hide("mails")


def test_a_bare_name_hides_every_table_that_has_it(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        pd.DataFrame({"id": [1], "pin": ["zqs"]}).to_csv(tmp_path / place / "card.csv", index=False)
    corpus = tf.open_corpus(tmp_path, hide=["card.pin"])
    assert [[one.name for one in profile.columns] for profile in corpus] == [["id"], ["id"]]
    assert len(tf.open_corpus(tmp_path, hide=["a.card"])) == 1


def test_a_source_that_changes_tells_no_hidden_name(shop):
    corpus = tf.open_corpus(shop, hide=[*HIDE, "orders.mail"])
    corpus.keys.add("orders.buyer = users.id")
    found = corpus.tables.tag.retrieve_tables("city of each order's buyer", k=2, method="lexical")
    with closing(sqlite3.connect(shop)) as connection:
        connection.executescript("ALTER TABLE users RENAME COLUMN city TO town")
    for read in (lambda: corpus.read("users"), found.merge, lambda: tf.exec_sql(corpus)("SELECT city FROM users")):
        with pytest.raises((ColumnNotFound, SQLFailed, UnreadableTable)) as error:
            read()
        assert "email" not in str(error.value)
    assert columns(corpus.refresh())["users"] == ["id", "town"]


def test_a_view_that_no_longer_runs_tells_no_hidden_name(shop):
    with pytest.warns(HidingWarning, match="^mails, of_mails: "):
        corpus = tf.open_corpus(shop, hide=["users.email", "users.initial"])
    data = pickle.dumps(corpus)
    with closing(sqlite3.connect(shop)) as connection:
        connection.executescript("DROP TABLE users; CREATE TABLE users (id INTEGER, city TEXT)")
    for one in (corpus, pickle.loads(data)):
        run = tf.exec_sql(one)
        for view in VIEWS_HIDDEN:
            for read in (one.read, lambda view, run=run: run(f"SELECT * FROM {view}")):
                with pytest.raises(UnreadableTable, match=r"has changed: call tagframe\.open_corpus again") as error:
                    read(view)
                assert "email" not in "".join(traceback.format_exception(error.value))


def test_views_are_learned_from_as_far_as_they_name_nothing_hidden(shop):
    corpus = tf.open_corpus(shop, hide=HIDE)
    corpus.learn("views")
    assert corpus.learned["tables"].tolist() == [["shop.users"]]
    assert not [word for word in ("email", "mails") if word in corpus.learned["sql"][0]]
    with pytest.warns(HidingWarning, match="^mails, of_mails: "):
        corpus = tf.open_corpus(shop, hide=["users.email", "users.initial"])
    corpus.learn("views")
    assert sorted(corpus.learned["tables"].tolist()) == [["shop.mails"], ["shop.users"]]
    assert "email" not in corpus.learned.to_csv()


def test_what_is_computed_of_hidden_parts_is_named_in_one_warning(shop, tmp_path):
    with pytest.warns(HidingWarning) as warned:
        corpus = tf.open_corpus(shop, hide=["users.email"])
    of_hidden = [one for one in warned if issubclass(one.category, HidingWarning)]
    assert [str(one.message).partition(":")[0] for one in of_hidden] == ["mails, of_mails, users.initial"]
    assert "email" not in str(of_hidden[0].message)
    assert "initial" in corpus.read("users"), "it can be read, as the warning says"
    assert columns(corpus) == {
        **LEFT,
        "users": ["id", "city", "initial"],
        "salaries": ["id", "pay"],
        "mails": ["id", "m"],
        "of_mails": ["m"],
    }
    for view in VIEWS_HIDDEN:
        assert (
            [*corpus.read(view)["m"]] == [*tf.exec_sql(corpus)(f"SELECT m FROM {view}")["m"]] == ["zqs-ada", "zqs-bo"]
        )
        with pytest.raises(SQLFailed):
            tf.exec_sql(corpus)(f"SELECT email FROM {view}")
    with pytest.raises(SQLFailed):
        tf.exec_sql(corpus)("SELECT email FROM users")
    assert b"email" not in pickle.dumps(corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HidingWarning)
        tf.open_corpus(shop, hide=HIDE)
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{shop}"
    with pytest.warns(
        HidingWarning, match=r"main\.mails, main\.of_mails, main\.users\.initial: .* hide=\[…, 'main"
    ) as warned:
        tf.open_corpus(url, hide=["users.email"])
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = tf.open_corpus(url, hide=["users.email", "main.mails", "of_mails", "main.users.initial"])
    assert corpus.ids == ("main.cities", "main.orders", "main.salaries", "main.users")


def test_a_postgres_view_is_named(database):
    url = database(
        "CREATE TABLE users (id int, email text, city text, initial text GENERATED ALWAYS AS (left(email, 1)) STORED);"
        "CREATE VIEW mails AS SELECT id, upper(email) AS m FROM users; CREATE VIEW cities AS SELECT city FROM users;"
    )
    with pytest.warns(HidingWarning, match=r"^public\.mails, public\.users\.initial: ") as said:
        corpus = tf.open_corpus(url, hide=["users.email"], progress=False)
    assert len(said) == 1
    assert corpus.hide("mails", "users.initial").ids == ("public.cities", "public.users")


def test_facts_that_name_hidden_parts_are_left_out_and_others_are_kept(shop):
    whole = tf.open_corpus(shop)
    whole.describe("users", "people")
    whole.describe("orders", "see their email")
    whole.describe("users.email", "where to write to")
    whole.keys.add("orders.mail = users.email")
    whole.keys.add("orders.buyer = users.id")
    whole.learn("How many have a mail?", "SELECT count(email) FROM users")
    whole.learn("How many have an address?", "SELECT count(m) FROM of_mails")
    whole.keys.add("orders.mail = mails.m")
    whole.learn("How many live in Faro?", "SELECT count(*) FROM users WHERE city = 'Faro'")
    for corpus in (whole.hide(*HIDE), tf.open_corpus(shop, hide=HIDE)):
        assert corpus.profile("users").description == "people"
        assert corpus.profile("orders").description == ""
        assert corpus.learned["question"].tolist() == ["How many live in Faro?"]
        assert not [word for word in ("email", "mails") if word in repr(corpus.keys)]
        corpus.describe("users.city", f"home of {len(corpus.profiles)}")
        assert corpus.profile("users").column("city").description == "home of 3"
    assert tf.open_corpus(shop).profile("users").column("city").description == "home of 3"
    assert tf.open_corpus(shop, hide=HIDE).profile("users").column("city").description == "home of 3"
    assert tf.open_corpus(shop).profile("users").column("email").description == "where to write to"


def test_a_statement_of_a_hidden_column_is_left_out_though_another_table_has_its_name(shop):
    whole = tf.open_corpus(shop)
    whole.learn("Who is there?", "SELECT id FROM users")
    whole.learn("Who is paid?", "SELECT id FROM salaries")
    whole.learn("Who lives where?", "SELECT id FROM cities")
    hide = ["users.id", "cities", *VIEWS_HIDDEN]
    for corpus in (whole.hide(*hide), tf.open_corpus(shop, hide=hide)):
        assert corpus.learned["question"].tolist() == ["Who is paid?"]


def test_sums_over_hidden_columns_are_not_named(tmp_path):
    totals = pd.DataFrame({"region": ["N", "S", "W", "E", "Total"], "pay": [40, 50, 60, 70, 220]})
    totals.to_csv(tmp_path / "pays.csv", index=False)
    assert tf.open_corpus(tmp_path).profile("pays").totals[0].checked == ("pay",)
    for column in ("region", "pay"):
        assert tf.open_corpus(tmp_path).hide(f"pays.{column}").profile("pays").totals == ()


@pytest.mark.parametrize("way", ["opened", "later", "frames", "catalogue"])
def test_a_comment_that_names_what_is_hidden_in_another_file_is_left_out(tmp_path, monkeypatch, way):
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    data.mkdir()
    with closing(sqlite3.connect(data / "shop.sqlite")) as connection:
        connection.executescript("CREATE TABLE visits (id INTEGER, -- as in salaries\n day TEXT -- of the visit\n);")
    pd.DataFrame({"who": ["zqs"], "pay": [1]}).to_csv(data / "salaries.csv", index=False)
    if way == "opened":
        corpus = tf.open_corpus(data, hide=["salaries"])
        assert tf.open_corpus(data, hide=["salaries"]).ids == corpus.ids  # from the catalogue
        assert [*cache.rglob("*.sqlite")]
    elif way == "catalogue":
        corpus = tf.open_corpus(tf.open_corpus(data, hide=["salaries"]).save(tmp_path / "saved.catalogue"))
    else:
        corpus = tf.open_corpus(data).hide("salaries")
        assert "salaries" in tf.open_corpus(data).profile("visits").column("id").description
        if way == "frames":
            frames = {one: tf.open_corpus(data).read(one) for one in ("visits", "salaries")}
            corpus = tf.open_corpus(frames, hide=["salaries"])
    assert [column.description for column in corpus.profile("visits").columns] == ["", "of the visit"]
    assert b"salaries" not in pickle.dumps(corpus)
    if way == "opened":
        assert not [one for one in cache.rglob("*.sqlite") if b"salaries" in one.read_bytes()]


def test_a_catalogue_is_of_one_list(shop, tmp_path):
    named = tmp_path / "named.catalogue"
    tf.open_corpus(shop, catalogue=named)
    with pytest.raises(UnreadableCatalogue, match="another list of what is hidden: delete it and index again"):
        tf.open_corpus(shop, catalogue=named, hide=HIDE)
    named.unlink()
    assert columns(tf.open_corpus(shop, catalogue=named, hide=HIDE)) == LEFT
    assert columns(tf.open_corpus(shop, catalogue=named, hide=HIDE)) == LEFT
    assert b"zqs-ada" not in named.read_bytes().replace(b"zqs-ada", b"", 2)  # orders.mail is visible
    assert columns(tf.open_corpus(named)) == LEFT
    with pytest.raises(UnreadableCatalogue):
        tf.open_corpus(shop, catalogue=named)
    (shop.parent / "tagframe.toml").write_text('hide = ["users.city"]\n')
    with pytest.warns(HidingWarning, match="^cities: "):
        later = tf.open_corpus(named)
    assert columns(later) == {**LEFT, "users": ["id"]}, "a list that is written later holds, too"
    (shop.parent / "tagframe.toml").write_text('hide = ["users.city", "cities"]\n')
    assert columns(tf.open_corpus(named)) == {"orders": LEFT["orders"], "users": ["id"]}


@pytest.mark.parametrize(
    "text", ['hide = "users.email"', "hide = [1]", "hide = [", 'private = ["x"]', "hiden = []", 'hide = [""]', "\xff"]
)
def test_a_list_that_cannot_be_read_opens_nothing(shop, text):
    (shop.parent / "tagframe.toml").write_text(text, encoding="latin-1")
    with pytest.raises(UnreadableFacts, match=r"tagframe\.toml"):
        tf.open_corpus(shop)


def test_a_list_beside_the_data_is_of_its_files_as_far_as_they_are_there(shop):
    (shop.parent / "tagframe.toml").write_text('hide = ["users.mail", "elsewhere.x", "users.initial"]\n')
    with pytest.warns(HidingWarning, match=r"tagframe\.toml has users\.mail in hide = ") as said:
        corpus = tf.open_corpus(shop)
    assert len([one for one in said if issubclass(one.category, HidingWarning)]) == 1
    assert columns(corpus)["users"] == ["id", "email", "city"]


def test_private_columns_are_read_and_joined_and_refused_to_statements(shop, live):
    (shop.parent / "tagframe.toml").write_text('private = ["users.city"]\n')
    corpus = tf.open_corpus(shop, private=["orders.mail"])
    corpus.private("users.email")
    assert corpus.private_columns == ["shop.orders.mail", "shop.users.email", "shop.users.city"]
    assert "zqs-ada" in corpus.read("users").to_csv()
    assert corpus.profile("users").column("email").sketch is not None
    run = tf.exec_sql(corpus)
    assert [*run("SELECT * FROM users").columns] == ["id", "initial"]
    for sql in ("SELECT email FROM users", "SELECT id FROM users ORDER BY Email", "SELECT u.city FROM users u"):
        with pytest.raises(SQLFailed, match=r"shop\.users\.\w+ is private: no statement may read it"):
            run(sql)
    frame = corpus.read("users")
    with pytest.raises(InvalidArgument, match="column 'email' is private"):
        frame.tag.sem_filter("{email} is a name")
    with pytest.raises(InvalidArgument, match="leave it out there"):
        corpus.private("orders.mail", undo=True)
    corpus.private("users.email", undo=True)
    assert [*run("SELECT * FROM users").columns] == ["id", "email", "initial"]
    again = tf.open_corpus({"users": frame})
    assert again.private_columns == ["frames.users.email", "frames.users.city"], "a frame knows what it was read from"
    with pytest.raises(ColumnNotFound):
        tf.open_corpus(shop, private=["users.nothing"])


@pytest.mark.filterwarnings("ignore::tagframe.errors.UnreadableTableWarning")
@pytest.mark.parametrize(
    "statement", ["CREATE VIEW broken AS SELECT x FROM gone", "CREATE VIRTUAL TABLE broken USING fts5(x)"]
)
def test_what_is_not_read_is_hidden_by_its_name(tmp_path, statement):
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection, connection:
        connection.executescript(f"CREATE TABLE t (id INT); INSERT INTO t VALUES (1); {statement};")
    assert "broken" in str(tf.open_corpus(tmp_path).problems)
    for name in ("broken", "s.broken"):
        corpus = tf.open_corpus(tmp_path, hide=[name])
        assert "broken" not in str(corpus.problems)
    with pytest.raises(TableNotFound):
        tf.open_corpus(tmp_path, hide=["brokn"])


@pytest.mark.parametrize("hidden", ["n0", "n7"])
def test_a_note_on_several_columns_of_a_saved_catalogue_has_none_of_a_hidden_one(tmp_path, hidden):
    rows = [["1"] * 8, ["2"] * 8, ["x"] * 8]
    rows[2][int(hidden[1])] = "secret"
    lines = [[f"n{at}" for at in range(8)], *rows * 3]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, lines)))
    with pytest.warns(tf.errors.NumbersAsTextWarning):
        tf.open_corpus(tmp_path).save(tmp_path / "c.catalogue")
    with pytest.warns(tf.errors.NumbersAsTextWarning) as caught:
        tf.open_corpus(tmp_path / "c.catalogue", hide=[f"t.{hidden}"])
    (note,) = [str(one.message) for one in caught]
    assert "and 2 more columns stay text" in note
    assert "reads 'x' as missing" in note
    assert "secret" not in note
    assert repr(hidden) not in note
