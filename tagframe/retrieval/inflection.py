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
_OTHERS = ("", "e", "s", "n", "en", "es", "o", "a", "os", "as", "ado", "ung")


@lru_cache(maxsize=4096)
def forms(word: str) -> tuple[str, ...]:
    """Other forms of a word, likely ones first, without accents: with the shortest ending taken off, then longer ones.

    >>> [form in forms(word) for word, form in (("logins", "login"), ("exported", "export"), ("Médicos", "medicos"))]
    [True, True, True]
    >>> [form in forms(word) for word, form in (("Anmeldungen", "anmeldung"), ("exportaron", "export"))]
    [True, True]
    """
    plain = without_accents(word.casefold())
    return tuple(form for form in dict.fromkeys((plain, *_forms(plain))) if form != word)


def _forms(word: str) -> Iterator[str]:
    stems = [word, *(word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))]
    for other in _OTHERS:
        for stem in stems:
            if len(stem) >= SHORTEST:
                yield stem + other


def known_form(word: str, known: Container[str]) -> str | None:
    """The word if it is known, else its likeliest form that is; None if none is."""
    return word if word in known else next((form for form in forms(word) if form in known), None)
