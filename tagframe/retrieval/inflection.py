"""Other forms of a word: its singular, plural or root in English, German and Spanish, by its ending.

Forms are looked up, never compared with each other: a form counts only if a name or a cell is written so, and only for
a word that no name and no cell has as it is. So endings need not be right for every word.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import lru_cache

from tagframe.retrieval.words import without_accents

SHORTEST = 4
"""The fewest letters of what is left without the ending."""

_VERBS = "ed d ing iert ierte ierten iere ieren ado ada ados adas aron amos aba aban ando".split()
_NOUNS = "s es e n en er ern nen ion ions ation ations ión aciones ungen ung a o os as".split()
_ENDINGS = tuple(sorted({*map(without_accents, (*_VERBS, *_NOUNS))}, key=lambda ending: (len(ending), ending)))
_PARTICIPLE = ("t", "te", "ten", "ter", "tes", "tem")
_OTHERS = ("", "e", "s", "n", "en", "es", "o", "a", "os", "as", "ado", "ung", "ungen")


@lru_cache(maxsize=4096)
def forms(word: str) -> tuple[str, ...]:
    """Other forms of a word, likely ones first, without accents: with the shortest ending taken off, then longer ones.

    >>> [form in forms(word) for word, form in (("logins", "login"), ("exported", "export"), ("Médicos", "medicos"))]
    [True, True, True]
    >>> [form in forms(word) for word, form in (("Anmeldungen", "anmeldung"), ("exportaron", "export"))]
    [True, True]
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
    found = [
        plain[:at] + other + plain[at + 1 :]
        for at, letter in enumerate(plain)
        for other in _WITH_ACCENTS.get(letter, "")
    ]
    for two, one in (("ss", "ß"), ("ae", "ä"), ("oe", "ö"), ("ue", "ü")):
        if two in plain:
            found.append(plain.replace(two, one))
    return tuple(found)


def _forms(word: str) -> Iterator[str]:
    stems = [word, *(word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))]
    if word.startswith("ge"):  # a participle: geliefert, gelieferte
        stems += [word[2:].removesuffix(ending) for ending in _PARTICIPLE if word.endswith(ending)]
    for other in _OTHERS:
        for stem in stems:
            if len(stem) >= SHORTEST:
                yield stem + other


def known_form(word: str, known: Container[str]) -> str | None:
    """The word if it is known, else its likeliest form that is; None if none is."""
    return word if word in known else next((form for form in forms(word) if form in known), None)
