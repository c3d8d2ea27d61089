"""The words of sentences and their stems. All of retrieval splits sentences in this way."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from tagframe.corpus.documents import identifier_words, singular, without_accents

_WORD = re.compile(r"[^\W_ぁ-ヿ一-鿿々]+(?:['’][^\W_]+)?|[ぁ-ゟ]+|[゠-ヿ]+|[一-鿿々]+")
"""Japanese has no spaces: its words begin where another script does."""
_PARTICLE = re.compile("[ぁ-ゟ]{1,4}")

STOP_WORDS = frozenset(
    """a about above after again all also am among amongst an and any are as at be because been before being below
    between both but by can could did do does doing done down during each either else ever every few for from further
    get give given gives had has have having he her here hers him his how i if in into is it its just let list like me
    more most my no nor not of off on once only or other our out over own per please provide same she should show so
    some such tell than that the their them then there these they this those through to too under until up us very was
    we were what whats when where whether which while who whom whose why will with within without would you your find
    identify state mention indicate calculate return display compute name's many much order ordered sorted ascending
    descending least greater less larger smaller higher lower highest lowest maximum minimum average total number count
    different distinct respectively along based belong belongs following corresponding""".split()
)
"""Words that name no table, column or value: function words, and the verbs and measures of a request."""


FUNCTION_WORDS = tuple(
    frozenset(words.split())
    for words in (
        """aber alle als am an auch auf aus bei bis da dann das dass dem den der des die diese dieser doch
        durch ein eine einem einen einer eines er es für gibt haben hat hatte ich ihr ihre im in ist
        je jede jeder jedes kein keine keinem keinen keiner keines man mehr mit nach nicht noch nur ob oder ohne sich
        sie sind so über um und unter viel viele vom von vor war waren was welche welchem welchen welcher
        welches wenn wer werden wie wieviel wieviele wird wo wurde wurden zu zum zur zwischen""",
        """au aucun aucune aux avec ce ces cette chaque combien comment dans de des du elle elles en entre est et il ils
        je la le les leur leurs mais même ne nous on ont ou où par pas plus pour quand que quel quelle
        quelles quels qui quoi sa sans se selon ses son sont sous sur toutes tous tout toute un une
        vers vous à été était n d l qu""",
        """a al cada como con cual cuales cuando cuanta cuantas cuanto cuantos cuál cuáles cuándo cuánta
        cuántas cuánto cuántos cómo de del desde donde dónde el ella ellos en entre es esta este fue
        fueron ha han hay la las le lo los más muy ninguna ningún ninguno no o para pero por que quien qué quién según
        se ser si sin sobre son su sus también todas todos un una unas unos y""",
        """a ai al all alla alle anche che chi ci come con cui da dal dall dalla dalle degli dei del dell della
        delle di dove e ed gli ha hanno i il in l la le lo ma nei nel nell nella nelle nessun nessuna nessuno non o
        ogni per più quale quali quando quante quanti quanto si sia sono su sui sul sull sulla tra un una uno è""",
        """aan als bij dan dat de deze die dit door een elk elke en er geen had hebben heeft hebt het hoe hoeveel
        hun in is kan maar meer meeste met minder naar niet nog of om onder ook op over per te tot uit van
        veel voor waar waarin waren was wat welk welke werd werden wie worden wordt ze zich zijn zonder""",
        """a ao aos as até cada com como da das de do dos e ela ele em entre esta este foi foram há mais mas
        menos na nas nenhum nenhuma não no nos o onde os ou para pela pelo por qual quais quando quantas quantos que
        quem se sem ser seu seus são sua suas também tem teve todas todos um uma à é""",
        """a albo bez co czy dla do gdzie i ich ile ilu jak jaka jaki jakie jest każda każde każdego każdej każdy
        kto które którego której który których którym lub ma mają mniej na nie nad niż od oraz po pod przez
        przy się są ten to tych w we więcej wszystkich z za ze został żaden żadna żadnych""",
        """alla alle at att av blev de den det ei eller en er et ett flest fra från för for ha hade har hur hvem
        hver hvilke hvilken hvilket hvor i ikke inga ingen inget inte med mellom mellan mer mere mest mindre och og
        om på som till til uden utan under ut var varje vem vid vilka vilken vilket är över""",
    )
)
"""Function words of German, French, Spanish, Italian, Dutch, Portuguese, Polish, and the Nordic languages."""
MEASURES = frozenset(
    """durchschnittlich durchschnittliche durchschnittlichen durchschnittlicher durchschnitt mittlere mittleren anzahl
    summe insgesamt gesamt höchste höchsten niedrigste niedrigsten verschiedene verschiedenen nombre moyen moyenne
    moyens moyennes total totale totaux totales maximum minimum différents différentes somme promedio media medio
    número suma máximo máxima mínimo mínima distintos distintas diferentes cantidad numero totali somma massimo massima
    minimo minima diversi diverse aantal gemiddeld gemiddelde totaal som hoogste laagste verschillende média médio
    soma quantidade liczba liczbę średnia średni średnią średnie łącznie łączna różnych antal antall
    gennemsnit genomsnitt gjennomsnitt genomsnittlig genomsnittliga gennemsnitlig gennemsnitlige sammanlagt samlet
    olika forskellige""".split()
)
"""The words for what is computed, in these languages: no cell is meant by them, though a name may have them."""
BETWEEN = STOP_WORDS.union(*FUNCTION_WORDS) - frozenset("and or und oder et ou y o e".split())
"""Words that may stand between a thing and its owner ("the street of each depot"), or a number and its bound."""
_MIN_FUNCTION_WORDS = 2
"""From so many different ones on, a sentence is in that language, if it has fewer English ones."""


_MIN_ELIDED_LETTERS = 3
"""The fewest letters after a function word and an apostrophe: ``l'âge``, but not ``that's``."""


class Word(NamedTuple):
    """A word of a sentence as written, and its place in the sentence."""

    text: str
    start: int
    end: int


def words_in(text: str) -> tuple[Word, ...]:
    """The words of a sentence without punctuation; an ending after an apostrophe stays with its word.

    >>> [word.text for word in words_in("What's the set's name, in Play?")]
    ["What's", 'the', "set's", 'name', 'in', 'Play']
    """
    return tuple(Word(match.group(), *match.span()) for match in _WORD.finditer(text))


def function_words(words: Iterable[str]) -> frozenset[str]:
    """The stop words of a sentence's language: those of English, and those of the one that it seems to be in.

    >>> "die" in function_words("Wie hängt die Wahl mit der Miete zusammen".split())
    True
    >>> "die" in function_words("How many players die in the war".split())
    False
    """
    spoken = {part for word in words for part in re.split("['’]", word.casefold())}
    most = language_of(spoken)
    particles = {word for word in spoken if _PARTICLE.fullmatch(word)}
    return STOP_WORDS | most | particles if most or particles else STOP_WORDS


def language_of(words: Iterable[str]) -> frozenset[str]:
    """The function words of the language that words in lower case seem to be in; none if it is English or unclear."""
    spoken = {*words}
    most = max(FUNCTION_WORDS, key=lambda known: len(known & spoken))
    count = len(most & spoken)
    return most if count >= _MIN_FUNCTION_WORDS and count > len(STOP_WORDS & spoken) else frozenset()


def unelided(word: str, stop_words: Container[str]) -> str:
    """A word without the function word that is drawn to it.

    >>> unelided("d'ouverture", {"d"}), unelided("that's", {"that"}), unelided("O'Brien", {"d"})
    ('ouverture', "that's", "O'Brien")
    """
    head, *rest = re.split("['’]", word, maxsplit=1)
    return rest[0] if rest and len(rest[0]) >= _MIN_ELIDED_LETTERS and head.casefold() in stop_words else word


def terms(text: str) -> list[str]:
    """The singular forms of a text's words, without accents, with identifiers split and stop words left out.

    >>> terms("How many singers have a petID?"), terms("los médicos de Köln")
    (['singer', 'pet', 'id'], ['lo', 'medico', 'de', 'koln'])
    """
    return terms_of(_WORD.findall(text))


def terms_of(words: Iterable[str]) -> list[str]:
    """The :func:`terms` of words that were split already."""
    return [term for word in words for term in _terms_of_word(word)]


@lru_cache(maxsize=65536)
def _terms_of_word(word: str) -> tuple[str, ...]:
    return tuple(stem(piece) for piece in identifier_words(re.split("['’]", word)[0]) if piece not in STOP_WORDS)


def stem(word: str) -> str:
    """The singular of a word in lower case, without accents."""
    return singular(without_accents(word))


# Other forms of a word are looked up, never compared with each other: a form counts only if a name or a cell is written
# so, and only for a word that no name and no cell has as it is. So endings need not be right for every word.

SHORTEST = 4
"""The fewest letters of what is left without the ending."""

_VERBS = "ed d ing iert ierte ierten iere ieren ado ada ados adas aron ieron aram eram iram amos aba aban ando".split()
_NOUNS = "s es zes e n en er ern nen ion ions ation ations ión aciones ungen ung a o os as".split()
_ENDINGS = tuple(sorted({*map(without_accents, (*_VERBS, *_NOUNS))}, key=lambda ending: (len(ending), ending)))
_PARTICIPLE = ("t", "te", "ten", "ter", "tes", "tem")
_OTHERS = ("", "e", "s", "n", "en", "es", "o", "a", "os", "as", "ado", "ung", "ungen")
_DEEDS = ("al", "ment", "ing")
"""The endings of nouns for what a verb does: "rental", "shipment", "booking"."""
_LONG_DEEDS = ("ion", "ation")
_LONGER = 5
"""The fewest letters before these: "donation", but not "station" for "stats"."""


@lru_cache(maxsize=4096)
def forms(word: str) -> tuple[str, ...]:
    """Other forms of a word, likely ones first, without accents: with the shortest ending taken off, then longer ones.

    >>> [form in forms(word) for word, form in (("logins", "login"), ("exported", "export"), ("Médicos", "medicos"))]
    [True, True, True]
    >>> [form in forms(word) for word, form in (("Anmeldungen", "anmeldung"), ("exportaron", "export"))]
    [True, True]
    >>> [form in forms(word) for word, form in (("cartão", "cartoes"), ("animais", "animal"), ("journal", "journaux"))]
    [True, True, True]
    >>> [form in forms(word) for word, form in (("chutaram", "chutes"), ("venderam", "vendas"))]
    [True, True]
    >>> [form in forms(word) for word, form in (("rented", "rental"), ("shipped", "shipment"), ("stats", "station"))]
    [True, True, False]
    """
    plain = without_accents(word.casefold())
    return tuple(form for form in dict.fromkeys((plain, *_forms(plain), *_umlauts(plain))) if form != word)


def _umlauts(word: str) -> Iterator[str]:
    """An umlaut as two letters instead of one, or as one instead of two, also of a plural: "aerzte" for "arzt"."""
    for at, letter in enumerate(word):
        if letter in "aou":
            rest = word[at + 1 :]
            other = word[: at + 1] + (rest[1:] if rest.startswith("e") else f"e{rest}")
            yield from (other, f"{other}e", f"{other}er", f"{other}en")


_WITH_ACCENTS = {"a": "áäàâãå", "c": "ç", "e": "éèêë", "i": "íîï", "n": "ñ", "o": "óöôõø", "u": "úüûù"}


@lru_cache(maxsize=4096)
def accented(word: str) -> tuple[str, ...]:
    """A word with an accent on any one of its letters, since people leave accents out.

    >>> "cardiología" in accented("cardiologia"), "straße" in accented("strasse"), "nürnberg" in accented("Nuernberg")
    (True, True, True)
    """
    plain = word.casefold()
    if not plain.isascii():
        return ()
    accented_forms = [
        plain[:at] + other + plain[at + 1 :]
        for at, letter in enumerate(plain)
        for other in _WITH_ACCENTS.get(letter, "")
    ]
    for two, one in (("ss", "ß"), ("ae", "ä"), ("oe", "ö"), ("ue", "ü")):
        if two in plain:
            accented_forms.append(plain.replace(two, one))
    return tuple(accented_forms)


_PLURALS = (
    ("ao", "oes"), ("ao", "aes"), ("al", "ais"), ("el", "eis"), ("ol", "ois"), ("ul", "uis"), ("m", "ns"),
    ("al", "aux"), ("au", "aux"), ("eu", "eux"),
)  # fmt: skip
"""Endings of a singular that become others in the plural, in Portuguese and French: cartão, cartões; journal,
journaux."""


def _forms(word: str) -> Iterator[str]:
    for pair in _PLURALS:
        for ending, other in (pair, pair[::-1]):
            if word.endswith(ending) and len(word) >= SHORTEST + len(ending):
                yield word.removesuffix(ending) + other
    stems = [word, *(word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))]
    if word.startswith("ge"):  # a participle: geliefert, gelieferte
        stems += [word[2:].removesuffix(ending) for ending in _PARTICIPLE if word.endswith(ending)]
    for other in _OTHERS:
        for stem in stems:
            if len(stem) >= SHORTEST:
                yield stem + other
    stems += [stem[:-1] for stem in stems if stem[-2:-1] == stem[-1:]]  # shipp-ed
    for stem in stems:
        yield from (stem + deed for deed in _DEEDS if len(stem) >= SHORTEST)
        yield from (stem + deed for deed in _LONG_DEEDS if len(stem) >= _LONGER)


def known_form(word: str, known: Container[str]) -> str | None:
    """The word if it is known, else its likeliest form that is; None if none is."""
    return word if word in known else next((form for form in forms(word) if form in known), None)


FEWEST_SHARED, _SHARED = 5, 0.58
"""Words are alike if they begin with so many letters in common, and so much of the longer one."""


def is_like(word: str, other: str) -> bool:
    """Whether two words begin alike, as a verb and its noun do, or two cases of a noun.

    >>> is_like("bestellt", "bestellung"), is_like("sejmikow", "sejmiki"), is_like("station", "statistic")
    (True, True, False)
    """
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return shared >= FEWEST_SHARED and shared >= _SHARED * max(len(word), len(other))


def known_forms(word: str, known: Collection[str], *, is_foreign: bool) -> tuple[str, ...]:
    """The known words that a word means: itself or its likeliest form; without one, in another language than English
    all that begin alike, as its endings are not known."""
    form = known_form(word, known)
    if form is not None or not is_foreign:
        return () if form is None else (form,)
    plain = without_accents(word)
    start = plain[:FEWEST_SHARED]
    return tuple(one for one in known if one.startswith(start) and is_like(one, plain))
