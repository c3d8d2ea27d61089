import sqlite3
from contextlib import closing

import pytest

import tagframe as tf
from tagframe.corpus import computed_of
from tagframe.corpus.stored_profiles import StoredColumns
from tagframe.keys import database_keys, evidence_share, inference
from tagframe.retrieval import links as module
from tagframe.retrieval.links import Links


def positions(corpus, *ids):
    return [corpus.ids.index(id) for id in ids]


def test_the_best_key_pair_between_two_tables(bank):
    links = Links(bank.profiles)
    disp, client, loan = positions(bank, "bank.disp", "bank.client", "bank.loan")
    assert links.best(disp, client).left == "bank.disp.client_id"
    assert links.best(client, disp) == links.best(disp, client)
    assert links.best(client, client) is None
    assert links.matrix([client, disp])[0, 1] == evidence_share(links.best(disp, client).score)
    assert [key.score for key in links.keys([disp, client, loan])] == sorted(
        (key.score for key in links.keys([disp, client, loan])), reverse=True
    )


def test_a_bridge_table_is_a_neighbour_of_what_it_links(bank):
    links = Links(bank.profiles)
    client, loan, disp, product = positions(bank, "bank.client", "bank.loan", "bank.disp", "shop.product")
    assert disp in links.neighbours([client, loan], 5)
    assert product not in links.neighbours([client, loan], 5)
    assert links.neighbours([client, loan], 0) == []


def test_no_link_leads_to_another_database(bank):
    links = Links(bank.profiles)
    product = bank.ids.index("shop.product")
    assert all(links.best(product, other) is None for other in range(len(bank)) if other != product)


def test_a_large_database_has_its_sure_keys_and_what_is_near_its_tables(bank, monkeypatch):
    whole = Links(bank.profiles)
    client, disp, product = positions(bank, "bank.client", "bank.disp", "shop.product")
    expected = whole.best(client, disp)
    monkeypatch.setattr("tagframe.keys.inference.LARGE", 2)
    monkeypatch.setattr(module, "MOST_AROUND", 2)
    database_keys._known.clear()
    part = Links(bank.profiles)
    assert part.best(client, disp) == expected
    assert all(key.score >= 0.2 for key in part.keys(range(len(bank))))
    assert {client, disp} < set(part.of_databases([client, disp]))
    assert product not in part.of_databases([client, disp])


def test_keys_are_kept_until_a_table_changes(tmp_path, monkeypatch):
    searched = []
    real = database_keys.single_and_composite_keys

    def counted(tables, **options):
        searched.append(sorted(table.name for table in tables))
        return real(tables, **options)

    monkeypatch.setattr(database_keys, "single_and_composite_keys", counted)
    for name, shop, shops in (("a", "shop", "(1), (2)"), ("b", "store", "(5), (6)")):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as file, file:
            file.execute(f"CREATE TABLE {shop} ({shop}_id INT)")
            file.execute(f"CREATE TABLE {shop}_sale (sale_id INT, {shop}_id INT)")
            file.execute(f"INSERT INTO {shop} VALUES {shops}")
            file.execute(f"INSERT INTO {shop}_sale VALUES (31, 1), (32, 2)")

    def keys():
        database_keys._known.clear()
        database_keys._known_schemas.clear()
        corpus = tf.open_corpus(tmp_path, catalogue=tmp_path / "c.catalogue")
        links = Links(corpus.profiles, facts=computed_of(corpus))
        return links.key_columns(), links.keys(range(len(corpus)))

    first = keys()
    assert first[0]
    assert len(searched) == 3, "each database, and both as one"
    second = keys()
    assert second == first
    assert [key.evidence for key in second[1]] == [key.evidence for key in first[1]]
    assert len(searched) == 3, "both databases are as they were"
    with closing(sqlite3.connect(tmp_path / "b.sqlite")) as file, file:
        file.execute("INSERT INTO store_sale VALUES (33, 5)")
    keys()
    assert len(searched) == 5, "the database that changed, and both as one"
    monkeypatch.setattr(database_keys, "code_of_keys", lambda: "another version")
    keys()
    assert len(searched) == 8


def test_kept_scores_are_those_of_the_pairs(bank, monkeypatch):
    plain = Links(bank.profiles)
    arrays = plain.arrays()
    kept = Links(bank.profiles, stored=arrays)
    everything = range(len(bank))
    monkeypatch.setattr(module, "database_keys", lambda *_: pytest.fail("pairs are read"))
    scores = kept.matrix(everything)
    assert scores.any()
    assert [kept.of(table) for table in everything]
    around = kept.neighbours([0, 1], 5)
    product = bank.ids.index("shop.product")
    assert all(kept.best(product, other) is None for other in everything if other != product)
    monkeypatch.undo()
    assert scores.tolist() == plain.matrix(everything).tolist()
    assert [kept.of(table) for table in everything] == [plain.of(table) for table in everything]
    assert around == plain.neighbours([0, 1], 5)
    assert kept.keys(everything) == plain.keys(everything)


def test_pairs_of_a_few_databases_stay_in_memory(bank, monkeypatch):
    monkeypatch.setattr(module, "AT_HAND", 1)
    kept = Links(bank.profiles, stored=Links(bank.profiles).arrays())
    client, disp, product = positions(bank, "bank.client", "bank.disp", "shop.product")
    for _ in range(2):
        assert kept.best(client, disp) is not None
        kept.keys([product, client])
        assert len(kept._pairs) == 1


def test_a_database_of_many_columns_has_no_pairs_of_nothing(bank, monkeypatch):
    def pairs():
        database_keys._known.clear()
        database_keys._known_schemas.clear()
        return Links(bank.profiles).keys(range(len(bank)))

    everything = pairs()
    assert min(key.score for key in everything) < 0.5 < everything[0].score
    monkeypatch.setattr(inference, "FAINTER", 0.5)
    assert pairs() == everything
    monkeypatch.setattr(inference, "MANY", 12)  # the bank has as many columns, the shop three
    kept = pairs()
    assert kept[0] == everything[0]
    assert all(key.score >= 0.5 for key in kept if key.left_table.startswith("bank."))
    assert len(kept) < len(everything)


def test_sketches_are_read_once_where_keys_are_looked_for(bank, tmp_path, monkeypatch):
    expected = Links(bank.profiles).keys(range(len(bank)))
    kept = tf.open_corpus(bank.save(tmp_path / "c"))
    read = []
    real = StoredColumns.hashes
    monkeypatch.setattr(
        StoredColumns, "hashes", lambda self, position: read.append((self.table, position)) or real(self, position)
    )
    database_keys._known.clear()
    found = Links(kept.profiles).keys(range(len(kept)))
    assert [(key, key.score) for key in found] == [(key, key.score) for key in expected]
    assert read
    assert len(read) == len(set(read))


def test_the_referring_table_of_a_link_is_known_with_kept_scores_too(bank):
    plain = Links(bank.profiles)
    ends = positions(bank, "bank.client", "bank.disp", "bank.account")
    expected = [[False, False, False], [True, False, True], [False, False, False]]
    for links in (plain, Links(bank.profiles, stored=plain.arrays())):
        assert links.refers(ends).tolist() == expected
