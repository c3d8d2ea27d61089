"""A question, split into words once, with everything that retrieval reads from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from tagframe.errors import EmptyQuestion
from tagframe.retrieval.words import STOP_WORDS, Word, function_words, terms_of, unelided, words_in

LONGEST = 10_000
"""The number of characters of a question that are read. If some are left out, the result's note says so."""

_QUOTED = re.compile(r"""["“”]([^"“”]+)["“”]|(?<!\w)['‘]([^'’]+)['’](?!\w)|`([^`]+)`""")
_SIGN = re.compile(r"[^\w\s]")
_HYPHEN = re.compile("[-\N{HYPHEN}\N{NON-BREAKING HYPHEN}]")
_APOSTROPHE = re.compile("['’]")
_TAILED = re.compile(r"[^\W_]['’]$")
_POSSESSIVE = re.compile(r"['’]s?$")
_CONTRACTED = re.compile(r"n['’]t$")
_MIN_TAIL_LETTERS = 3
"""The fewest letters after an apostrophe that are a word: the Brien of O'Brien, but not the s of a possessive."""
_LINKS = frozenset({"of", "for"})
_BETWEEN = frozenset({"the", "a", "an", "each", "all", "every", "any", "its", "their"})
_AGGREGATES = frozenset(
    "total sum average avg mean median maximum max minimum min highest lowest largest smallest overall".split()
)
_AMOUNTS = "revenue revenues sales turnover income spending spendings earnings takings".split()
_AFTER_HOW = {"much": "total amount", "long": "duration", "old": "age", "tall": "height", "heavy": "weight"}
USUAL_NAMES = dict.fromkeys([*_AMOUNTS, "total"], "total amount") | _AFTER_HOW
"""Words for measures that are seldom names of columns, with the names that such columns usually have."""
_MEASURES = frozenset(_AMOUNTS) | frozenset(
    "profit profits price prices cost costs salary salaries wage wages duration weight height age".split()
)
"""Words that always mean a number."""
_ON = _BETWEEN | _LINKS | {"and"}
_PER = frozenset({"per", "by"})
_HOW_MANY = frozenset(
    """many viele wieviele anzahl combien nombre hoeveel aantal cuántos cuántas cuantos cuantas quanti quante numero
    quantos quantas número ile ilu liczba många mange antal""".split()
)
"""The thing that follows them is counted, in the languages of :data:`tagframe.retrieval.words.FUNCTION_WORDS`."""
_COUNTS = frozenset({"number", "count"})
"""A thing that is counted is not a column."""


@dataclass(frozen=True)
class Question:
    """A question and what it asks about; made by :meth:`of`.

    Attributes:
        text: as asked, the first :data:`LONGEST` characters.
        subqueries: concepts and ``concept:attribute`` pairs (JAR section 3.1).
        quoted: the texts in quotation marks; usually values.
        origin: the source of the sub-queries: "rules", a "model", or "given" by the caller.
    """

    text: str
    subqueries: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    origin: Literal["rules", "model", "given"] = "rules"

    @classmethod
    def of(cls, text: str) -> Question:
        """A question with sub-queries by rules.

        A sub-query is a run of words without stop words. If "of", "for" or a possessive joins two runs, one is an
        attribute of the other: ``concept:attribute``.

        Raises:
            EmptyQuestion: the text has no words.

        >>> Question.of("What is the name of the singer who sang in the largest stadium?").subqueries
        ('singer:name', 'singer', 'sang', 'largest stadium')
        """
        read = text[:LONGEST] if isinstance(text, str) else ""
        words = words_in(read)
        if not words:
            quoted_text = f"{text[:80]!r}…" if isinstance(text, str) and len(text) > LONGEST else repr(text)
            raise EmptyQuestion(f"a question needs words; got {quoted_text}")
        quoted = tuple(next(filter(None, groups)).strip() for groups in _QUOTED.findall(read))
        return cls(read, _taken_apart(read, words), quoted)

    def with_subqueries(self, subqueries: Iterable[str], origin: Literal["model", "given"]) -> Question:
        """The same question with sub-queries from a model or the caller."""
        return Question(self.text, tuple(subqueries), self.quoted, origin)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """All words as written, with possessive endings and contractions."""
        return words_in(self.text)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The stems of the words except stop words, with identifiers split, in order; a stem may occur twice.

        Those of :attr:`joined` follow.
        """
        written = (unelided(word.text, self.stop_words) for word in self.words)
        heads = (
            (word, _APOSTROPHE.split(word)[0].casefold()) for word in written if word.casefold() not in self.stop_words
        )
        return (*terms_of(word for word, head in heads if head not in self.stop_words), *self.joined)

    @cached_property
    def joined(self) -> tuple[str, ...]:
        """The distinct stems of words with hyphens, without these, since a name may be written so.

        >>> Question.of("Who are All-Star players with an e-mail address?").joined
        ('allstar', 'email')
        """
        parts = (_HYPHEN.split(word.text.lower()) for word in _compounds(self.text, self.words))
        return tuple(
            dict.fromkeys(terms_of("".join(part) for part in parts if len(part) > 1 and "".join(part).isalpha()))
        )

    @cached_property
    def initials(self) -> tuple[str, ...]:
        """The initials of two words side by side and of three, since a table may be called so.

        >>> Question.of("How many launch points do launch sites in Sweden have?").initials
        ('lp', 'ls', 'lpl', 'pls', 'lss')
        """
        pairs = [one.text[0] + other.text[0] for one, other in pairwise(self.content) if other.start == one.end + 1]
        letters = "".join(word.text[0] for word in self.content)
        spans = [*pairs, *(letters[at : at + 3] for at in range(len(letters) - 2))]
        known = dict.fromkeys(span.casefold() for span in spans if span.isalpha())
        return tuple(span for span in known if span not in self.stop_words)

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """The words in lower case that name nothing: those of English, and of the question's language."""
        return function_words(word.text for word in self.words)

    @cached_property
    def is_foreign(self) -> bool:
        """Whether it is in another language than English, the language of the default encoder.

        The language is that of most function words. Words in lower case with letters that English lacks count, too.

        >>> Question.of("Hoeveel merken heeft elk land?").is_foreign, Question.of("Brands per country?").is_foreign
        (True, False)
        """
        spoken = {word.text for word in self.words}
        others = {word for word in spoken if not word.isascii() and not word[0].isupper()}
        return len(self.stop_words) > len(STOP_WORDS) or len(others) > len(STOP_WORDS & spoken)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The distinct :attr:`terms`."""
        return tuple(dict.fromkeys(self.terms))

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """The words except stop words, without the endings that follow an apostrophe. These words have vectors."""
        content = []
        for word in self.words:
            start, is_tail = word.start, bool(_TAILED.search(self.text, max(word.start - 2, 0), word.start))
            for part in _APOSTROPHE.split(word.text):
                if part.lower() not in self.stop_words and (not is_tail or len(part) >= _MIN_TAIL_LETTERS):
                    content.append(Word(part, start, start + len(part)))
                start, is_tail = start + len(part) + 1, True
        return tuple(content)

    @cached_property
    def counted(self) -> str:
        """The first word of the thing that is counted; "" if none is.

        >>> Question.of("Hoeveel perrons zijn er?").counted, Question.of("Wie heißen die Orte?").counted
        ('perrons', '')
        """
        ends = [word.end for word in self.words if word.text.casefold() in _HOW_MANY]
        after = (word.text for word in self.content if ends and word.start > ends[0])
        return next((word for word in after if not word.isdecimal()), "")

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures in the question: what it adds up or compares.

        A measure is the noun after a word such as "total", a word that always means a number, or the word after "how".

        >>> Question.of("Total revenue per artist with the highest average unit price?").measures
        ('revenue', 'price')
        >>> Question.of("What is the income by region, and how long does it take?").measures
        ('income', 'long')
        >>> Question.of("Total per customer").measures
        ('Total',)
        """
        content = {word.start: word.text for word in self.content}
        measures: list[str] = []
        is_open, before = False, ""
        for word, following in pairwise((*self.words, Word("", len(self.text), len(self.text)))):
            text = word.text.lower()
            goes_on = following.start in content and self.text[word.end : following.start].isspace()
            if text in _AGGREGATES:
                is_open = True
                if text == "total" and following.text.lower() in _PER:
                    measures.append(word.text)
            elif text in _COUNTS or (text in STOP_WORDS and text not in _ON):
                is_open = False
            elif word.start in content and not goes_on and (is_open or content[word.start].lower() in _MEASURES):
                measures.append(content[word.start])
                is_open = False
            if before == "how" and text in _AFTER_HOW and (text != "much" or following.text.lower() in STOP_WORDS):
                measures.append(word.text)
            before = text
        return tuple(dict.fromkeys(measures))

    @property
    def added_subqueries(self) -> tuple[str, ...]:
        """The sub-queries that add to the question's own words; those made by rules do not."""
        return () if self.origin == "rules" else self.subqueries


def _taken_apart(text: str, words: Sequence[Word]) -> tuple[str, ...]:
    runs: list[str] = []
    links: list[str] = []  # what stood between run i and run i + 1
    between: list[str] = []
    end, is_open = 0, False
    for word in _compounds(text, words):
        signs = _SIGN.findall(text[end : word.start])
        plain = _POSSESSIVE.sub("", word.text)
        is_stop = _CONTRACTED.sub("", plain).lower() in STOP_WORDS
        is_open = is_open and not signs
        between += signs
        end = word.end
        if is_stop:
            is_open = False
            between.append(plain.lower())
            continue
        if is_open:
            runs[-1] += f" {plain}"
        else:
            links += [_link(between)] if runs else []
            runs.append(plain)
        is_open, between = plain == word.text, []
        if not is_open:
            between = ["'s"]
    subqueries: list[str] = []
    for index, run in enumerate(runs):
        link = links[index] if index < len(links) else ""
        if index and links[index - 1] == "'s":
            continue  # the owner's sub-query has it
        if link == "of":
            subqueries.append(f"{runs[index + 1]}:{run}")
        elif link == "'s":
            subqueries.extend((run, f"{run}:{runs[index + 1]}"))
        else:
            subqueries.append(run)
    return tuple(dict.fromkeys(subqueries))


def _compounds(text: str, words: Sequence[Word]) -> list[Word]:
    """The words; words with a hyphen between them are one."""
    compounds: list[Word] = []
    for word in words:
        if compounds and _HYPHEN.fullmatch(text, compounds[-1].end, word.start):
            start = compounds.pop().start
            word = Word(text[start : word.end], start, word.end)
        compounds.append(word)
    return compounds


def _link(between: Sequence[str]) -> str:
    """The link between two runs of words: "of" (or a similar word, articles aside), "'s", or nothing."""
    words = [word for word in between if word not in _BETWEEN]
    if words == ["'s"]:
        return "'s"
    return "of" if len(words) == 1 and words[0] in _LINKS else ""
