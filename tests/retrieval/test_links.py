from tagframe.keys import evidence_share
from tagframe.retrieval import links as module
from tagframe.retrieval.links import Links


def places(corpus, *ids):
    return [corpus.ids.index(id) for id in ids]


def test_the_best_key_pair_between_two_tables(bank):
    links = Links(bank.profiles)
    disp, client, loan = places(bank, "bank.disp", "bank.client", "bank.loan")
    assert links.best(disp, client).left == "bank.disp.client_id"
    assert links.best(client, disp) == links.best(disp, client)
    assert links.best(client, client) is None
    assert links.matrix([client, disp])[0, 1] == evidence_share(links.best(disp, client).score)
    assert [key.score for key in links.keys([disp, client, loan])] == sorted(
        (key.score for key in links.keys([disp, client, loan])), reverse=True
    )


def test_a_bridge_table_is_a_neighbour_of_what_it_links(bank):
    links = Links(bank.profiles)
    client, loan, disp, product = places(bank, "bank.client", "bank.loan", "bank.disp", "shop.product")
    assert disp in links.neighbours([client, loan], 5)
    assert product not in links.neighbours([client, loan], 5)
    assert links.neighbours([client, loan], 0) == []


def test_no_link_leads_to_another_database(bank):
    links = Links(bank.profiles)
    product = bank.ids.index("shop.product")
    assert all(links.best(product, other) is None for other in range(len(bank)) if other != product)


def test_large_databases_are_linked_among_the_tables_in_question(bank, monkeypatch):
    whole = Links(bank.profiles)
    members = places(bank, "bank.client", "bank.disp")
    expected = whole.best(*members)
    monkeypatch.setattr(module, "LARGEST_DATABASE", 2)
    part = Links(bank.profiles)
    assert part.best(*members) == expected
    assert part.of_databases(members) == []
