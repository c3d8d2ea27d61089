from tagframe.corpus import ColumnProfile, TableProfile
from tagframe.embed import vocabulary
from tagframe.retrieval.segment import Segmenter, with_words_apart

KNOWN = "value trade traded last account service financial construct or code country language id has result".split()


def test_words_that_run_together_are_taken_apart():
    segmenter = Segmenter(KNOWN)
    assert segmenter.name("HASLASTTRADEDVALUE") == "has last traded value"
    assert segmenter.name("FINANCIALSERVICEACCOUNTID") == "financial service account id"
    assert segmenter.name("countrylanguage_code") == "country language code"


def test_words_that_are_known_or_hold_anything_unknown_stay():
    segmenter = Segmenter(KNOWN)
    assert segmenter.name("financial") == "financial"
    assert segmenter.name("accounts_id") == "accounts_id"
    assert segmenter.name("constructor") == "constructor", "no word ends with a short connector"
    assert segmenter.name("valuexyzzy") == "valuexyzzy"
    assert segmenter.name("zamestnanec") == "zamestnanec"
    segmenter = Segmenter([*KNOWN, "alter", "alternate", "nation"])
    assert segmenter.name("alternations") == "alternations", "another form of it is known"


def test_tables_keep_their_ids_under_readable_names():
    table = TableProfile("db.TRADEDVALUE", "db", "TRADEDVALUE", (ColumnProfile("HASVALUE", 0, "text"),))
    (apart,) = with_words_apart([table], Segmenter(KNOWN))
    assert (apart.id, apart.name, apart.columns[0].name) == ("db.TRADEDVALUE", "traded value", "has value")


def test_an_embedder_without_a_tokenizer_knows_no_words(words):
    assert Segmenter(vocabulary(words)).name("TRADEDVALUE") == "TRADEDVALUE"
    assert Segmenter(vocabulary(None)).name("TRADEDVALUE") == "TRADEDVALUE"
