"""Words of questions and of identifiers: what lexical relevance and the model-free decomposition count."""

from __future__ import annotations

import re
from functools import lru_cache

from tagframe.corpus.documents import identifier_words

QUESTION_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
"""A word of a sentence, its apostrophe included."""

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


def question_words(text: str) -> list[str]:
    """The words of a sentence, as written, without punctuation.

    >>> question_words("What's the set's name, in Play?")
    ["What's", 'the', "set's", 'name', 'in', 'Play']
    """
    return QUESTION_WORD.findall(text)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its plural ending, after Harman's S-stemmer (JASIS 42(1), 1991).

    >>> [stem(word) for word in ("countries", "matches", "stadiums", "address", "bus")]
    ['country', 'match', 'stadium', 'address', 'bus']
    """
    if len(word) > 4 and word.endswith(("ie", "ies")):
        return word[: word.rindex("ie")] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and word[-2] not in "us":
        return word[:-1]
    return word


def terms(text: str) -> list[str]:
    """The stems of a text's words, identifiers among them split, stop words left out.

    >>> terms("How many singers have a petID?")
    ['singer', 'pet', 'id']
    """
    pieces = (piece for word in question_words(text) for piece in identifier_words(re.sub(r"['’]\w*$", "", word)))
    return [stem(piece) for piece in pieces if piece not in STOP_WORDS]
