"""Which tables a question wants no rows of: "customers who never ordered", "players without a penalty"."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, dropwhile
from typing import NamedTuple

from tagframe.corpus.documents import identifier_words
from tagframe.keys.column_names import table_entity
from tagframe.retrieval.words import FEWEST_SHARED, FUNCTION_WORDS, forms, is_like, language_of, stem, words_in

_LACKS = frozenset(
    """without no none lack lacks lacking missing kein keine keinen keiner keines keinem ohne sans aucun aucune
    sin ningún ninguna ningun ninguno senza nessun nessuna nessuno alcun alcuna alcuno sem nenhum nenhuma geen zonder
    utan ingen inga inget uden uten bez żaden żadna żadnych""".split()
)
"""Words that deny the thing that follows, in English, German, the Romance and Nordic languages, Dutch and Polish."""
_DENIALS = _LACKS | frozenset(
    """never not nobody isnt arent wasnt werent doesnt dont didnt hasnt havent nicht nie niemals noch jamais pas nunca
    jamás mai non não niet nooit aldrig inte ikke aldri nie nigdy""".split()
)
"""The same with words that deny what is done."""
_MEAN_OTHERWISE = {"não": {"no"}, "nicht": {"noch", "mai"}, "avec": {"dont", "mai"}, "niet": {"pas"}}
"""A function word of one language, and words that deny something in others, but not there: "no Brasil", "noch"."""
_BEFORE_A_THING = frozenset("any de d have ha hanno tem têm".split())
"""Before one of these, a denial is of the thing that follows: "do not have a phone", "n'ont pas de téléphone"."""
_OF_VALUES = frozenset("isnt arent wasnt werent".split())
_COPULAS = frozenset("is are was were be stands for".split())
"""In "whose country is not France" a value is denied, in "that has not been ordered" the rows of a table."""
_NEVER = frozenset("never nie niemals jamais nunca jamás mai nooit aldrig aldri nigdy".split())
"""These deny what is done, after "is" and "were", too."""
_BOUNDS = frozenset("more less fewer later earlier longer shorter older higher lower only just matter".split())
"""After a denial these bound a number: "no more than 5"."""
_FEWEST_IN_SHORT, _FEWEST_LEFT_OUT = 3, 4
"""A word is short for another that has its letters, at least so many, and at least so many more."""
_REACH = 8
"""A denial is about the first things named in so many words after it."""
_GERMAN, _WITHIN = frozenset("nicht nie niemals".split()), frozenset("in im".split())
"""Words for a denial, and for being inside."""
_OCCURS = tuple("vor enthalten aufgef aufgel verzeichn erfass gelistet erschein auftauch geführt registrier".split())
"""The beginnings of words for what occurs there."""
_REACH_BACK = 4
"""In German a table stands before the denial of what is in it, by so many words: "die in der Liste nicht vorkommen"."""
_SHEET = re.compile(r"(?:sheet|tabelle|feuil|hoja|foglio|planilha|folha|blad|ark|arkusz)[ _]?\d*", re.IGNORECASE)
"""The name of a sheet that nobody named: the workbook's name says what it is about."""
_LONG_NUMBER = re.compile(r"\d\d+")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|ª|º|er|re|e|ème|eme|\.)")
_FUNCTION_WORDS = frozenset("of the in on to per and by".split()).union(*FUNCTION_WORDS)


def tables_denied(question: str, tables: Mapping[str, Iterable[str]]) -> list[str]:
    """The tables that are named right after a denial, and not before it.

    A table is named by a word of its name, or a number of two digits, that no other table's name has. A column of a
    table that is named before the denial ends its reach: "customers without a phone who ordered" denies a phone.

    Args:
        question: in plain language.
        tables: id → names of columns; at least one of them is not denied.

    >>> tables_denied("How many players never took a penalty?", {"cup.players": ["id"], "cup.penalties": ["player_id"]})
    ['cup.penalties']
    >>> tables_denied("Kunden ohne Bestellungen", {"shop.kunden": ["name"], "shop.bestellungen": ["kunde"]})
    ['shop.bestellungen']
    >>> tables_denied("Welche Artikel kommen im Lager nicht vor?", {"shop.artikel": ["id"], "shop.lager": ["id"]})
    ['shop.lager']
    >>> tables_denied("Welche Artikel im Lager haben die Farbe nicht?", {"shop.artikel": ["id"], "shop.lager": ["id"]})
    []
    >>> tables_denied("Customers without a phone who ordered", {"s.customers": ["phone"], "s.orders": ["day"]})
    []
    """
    denied = _denied(question, tables)
    return denied if len(denied) < len(tables) else []


def all_denied(question: str, tables: Mapping[str, Iterable[str]]) -> bool:
    """Whether all tables are denied: the rows that the question wants are of another one.

    >>> all_denied("Matches without a card", {"cup.cards": ["match_id", "card"]})
    True
    """
    return len(_denied(question, tables)) == len(tables)


def _denied(question: str, tables: Mapping[str, Iterable[str]]) -> list[str]:
    return [*dict.fromkeys(table for one in _denials(question, tables) for table in one.named or ())]


def tables_before(question: str, tables: Iterable[str]) -> set[str]:
    """The tables that are named before the first denial: the rows of these are wanted.

    >>> sorted(tables_before("Customers of shops without orders", ["s.customers", "s.shops", "s.orders"]))
    ['s.customers', 's.shops']
    """
    columns: dict[str, Iterable[str]] = dict.fromkeys(tables, ())
    return next((one.before for one in _denials(question, columns)), set())


def tables_maybe_denied(question: str, tables: Mapping[str, Iterable[str]]) -> list[str]:
    """The tables that are not named before a denial, if that is of a thing or deed that no table or column is called.

    >>> tables = {"rail.stations": ["id"], "rail.facilities": ["station"]}
    >>> tables_maybe_denied("Stations zonder voorzieningen", tables)
    ['rail.facilities']
    >>> tables_maybe_denied("Stations without facilities", tables)
    []
    >>> tables_maybe_denied("Stations that were never visited", tables)
    ['rail.facilities']
    >>> [tables_maybe_denied(f"Stations qui n'ont {deny} toilettes", tables) for deny in ("pas de", "que des")]
    [['rail.facilities'], []]
    >>> tables_maybe_denied("Gares sans services", {"rail.stations": ["id"], "rail.facilities": ["station"]})
    ['rail.stations', 'rail.facilities']
    >>> tables_maybe_denied("Stations never seen on the list of such as have lifts, by facilities", tables)
    ['rail.facilities']
    """
    named = [one.before for one in _denials(question, tables) if one.lacks and one.named is None]
    unnamed = [table for table in tables if not any(table in some for some in named)]
    return unnamed if named and len(tables) > 1 else []


def after_denial(question: str) -> str:
    """What follows the first denial of a question, or "".

    >>> after_denial("Actors who were never in a horror film")
    'in a horror film'
    """
    words, spelt = words_in(question), _spelt(question)
    ends = (word.end for place, word in enumerate(words) if _denies_rows(spelt, place))
    return question[next(ends, len(question)) :].strip()


class _Denial(NamedTuple):
    """One denial: whether it is of a thing or a deed; the tables named right after it, [] if a column is, None if
    nothing; and those named before it."""

    lacks: bool
    named: list[str] | None
    before: set[str]


def _denials(question: str, tables: Mapping[str, Iterable[str]]) -> Iterator[_Denial]:
    parts = words_in(question)
    words = _spelt(question)
    own = own_words(tables, words)
    for place, spelt in enumerate(words):
        if place + 1 < len(words) and (words[place + 1][0] in _BOUNDS or words[place + 1][0][:1].isdigit()):
            continue
        if spelt[0] not in _DENIALS or question[parts[place].end : parts[place].end + 1] == "-":  # "non-smokers"
            continue
        if any(_is_column(column, words[place : place + 2]) for some in tables.values() for column in some):
            continue
        before = {table for one in words[:place] for table in named_by(one, own)}
        columns = {stem(word) for table in before for column in tables[table] for word in identifier_words(column)}
        columns -= _FUNCTION_WORDS.union(*own.values())
        after = words[place + 1 : place + 1 + _REACH]
        # Of a table that is named before, only a word that is not: "the tagged fish that were never detected".
        new = {
            table: {word for word in named if not any(named_by(one, {table: {word}}) for one in words[:place])}
            for table, named in own.items()
        }
        things = ([table for table in named_by(one, new) if before != {table}] for one in after)
        ends = (named for named, one in zip(things, after, strict=True) if named or not columns.isdisjoint(one))
        lacks = spelt[0] in _LACKS | _NEVER or any(one[0] in _BEFORE_A_THING for one in after[:1])
        named = next(ends, None)
        if named is None and spelt[0] in _GERMAN and after and after[0][0].startswith(_OCCURS):
            near = words[max(0, place - _REACH_BACK) : place]
            inside = dropwhile(lambda one: one[0] not in _WITHIN, near)
            there = [table for one in inside for table in named_by(one, own)]
            named = there if there and before.difference(there) else None
        yield _Denial(lacks, named, before.difference(named or ()))


def _spelt(question: str) -> list[tuple[str, ...]]:
    """The :func:`spelt_forms` of the words of a question, "" for one that only denies in other languages.

    >>> [denies(f"Quantos acidentes {where} estado de SP") for where in ("no", "sem vítimas no")]
    [False, True]
    >>> [denies(f"Welche {one} wurden {when} geliefert?") for one, when in (("Kisten", "im Mai"), ("Kisten", "nie"))]
    [False, True]
    >>> [denies(f"Les musées {where} la région est vide") for where in ("dont", "sans que")]
    [False, True]
    """
    words = [word.text for word in words_in(question)]
    language = language_of(word.casefold() for word in words)
    other = {word for sign, some in _MEAN_OTHERWISE.items() if sign in language for word in some}
    return [("", *spelt[1:]) if spelt[0] in other else spelt for spelt in map(spelt_forms, words)]


def _is_column(column: str, denial: Sequence[Sequence[str]]) -> bool:
    """Whether a denial and the word after it are words of a column's name: "Sans diplômes" counts people."""
    words = {stem(word) for word in identifier_words(column)}
    return len(denial) > 1 and all(
        not words.isdisjoint(spelt) or any(is_short_for(word, spelt[1]) for word in words) for spelt in denial
    )


def denies(question: str) -> bool:
    """Whether a question wants what has no partner, whatever that is: "people without a boss".

    >>> denies("People without a boss"), denies("People and their boss"), denies("People whose boss is not Ann")
    (True, False, False)
    """
    words = _spelt(question)
    return any(_denies_rows(words, place) for place in range(len(words)))


def denies_a_table(question: str, names: Iterable[str], best: str, columns: Iterable[str]) -> bool:
    """Whether a question wants rows without a partner in a table that a word after the denial names.

    Args:
        question: in plain language.
        names: of all tables.
        best: the name of the likeliest one.
        columns: of that one. If a denial is about one of them, it wants cells of the table.

    >>> denies_a_table("People without a pet", ["people", "pets"], "people", ["name", "phone"])
    True
    >>> denies_a_table("People without a fax", ["people", "pets"], "people", ["name", "phone"])
    False
    >>> denies_a_table("Partidas sem cartão", ["jogos", "cartoes"], "cartoes", ["partida", "cartao"])
    True
    """
    words = _spelt(question)
    entity = {*map(stem, table_entity(best))}
    own = {stem(word) for column in columns for word in identifier_words(column)}
    own = {word for word in own if entity.isdisjoint(spelt_forms(word))}
    known = {"": {stem(word) for name in names for word in table_entity(name)} - _FUNCTION_WORDS}
    after = [words[place + 1 : place + 1 + _REACH] for place in range(len(words)) if _denies_rows(words, place)]
    return any(own.isdisjoint(chain(*some)) and any(named_by(word, known) for word in some) for some in after)


def _denies_rows(words: Sequence[Sequence[str]], place: int) -> bool:
    """Whether a word denies rows that follow: no value, and no bound ("no later than May", "order no. 12")."""
    before = words[place - 1][0] if place else ""
    after = words[place + 1][0] if place + 1 < len(words) else ""
    is_bound = after in _BOUNDS or after[:1].isdigit()
    is_value = before in _COPULAS and words[place][0] not in _NEVER
    return words[place][0] in _DENIALS - _OF_VALUES and not is_value and not is_bound


def own_words(tables: Iterable[str], spoken: Iterable[Sequence[str]] = ()) -> dict[str, set[str]]:
    """The words that name each table: of a word in several names, it names the shortest; if two are as short, the one
    that no other word names and whose other words are all spoken, or none.

    Of tables with equal names, and of sheets without a name of their own, the words are those of their databases. A
    spoken word with which a longer one begins is a word of its own.

    >>> sorted((table, *words) for table, words in own_words(["d.pet", "d.pet_owner", "d.dog_owner"]).items())
    [('d.dog_owner', 'dog'), ('d.pet', 'pet'), ('d.pet_owner',)]
    >>> own_words(["d.team", "d.team_post", "d.series_post"], [spelt_forms("teams")])["d.team_post"]
    {'post'}
    >>> sorted(own_words(["d.artists", "d.taggedartists"], [spelt_forms("tagged")])["d.taggedartists"])
    ['tagged']
    """
    listed = [*spoken]
    plain, words_spoken = {one[0] for one in listed}, {*chain.from_iterable(listed)}
    last = {table: table.rpartition(".")[2] for table in tables}
    alike = {name for name, count in Counter(last.values()).items() if count > 1 or _SHEET.fullmatch(name)}
    spelt = {table: table.rpartition(".")[0] if name in alike else name for table, name in last.items()}
    names = {
        table: {*_apart(map(stem, table_entity(name)), plain), *_LONG_NUMBER.findall(name)} - _FUNCTION_WORDS
        for table, name in spelt.items()
    }
    owners: dict[str, list[str]] = defaultdict(list)
    for table, words in sorted(names.items(), key=lambda pair: len(pair[1])):
        for word in words:
            owners[word].append(table)
    own: dict[str, set[str]] = {table: set() for table in last}
    shortest = {word: [one for one in some if len(names[one]) == len(names[some[0]])] for word, some in owners.items()}
    for word, having in shortest.items():
        own[having[0]].update({word} if len(having) == 1 else ())
    lone = {table for table, words in own.items() if not words}
    for word, having in shortest.items():
        whole = [table for table in having if names[table] - {word} <= words_spoken]
        if len(whole) == 1 and whole[0] in lone:
            own[whole[0]].add(word)
    return own


def _apart(words: Iterable[str], spoken: Collection[str]) -> Iterator[str]:
    """The words; of one that begins with a spoken word, both parts."""
    for word in words:
        starts = (other for other in spoken if len(other) >= FEWEST_SHARED and is_short_for(other, word))
        start = max(starts, key=len, default="")
        yield from filter(None, (start, word[len(start) :]))


@lru_cache(maxsize=4096)
def spelt_forms(word: str) -> tuple[str, ...]:
    """A word in lower case, its stem, and those of its other forms."""
    plain = _ORDINAL.sub(r"\1", word.casefold().replace("'", "").replace("’", ""))
    return (plain, stem(plain), *map(stem, forms(plain)))


def named_by(spelt: Sequence[str], own: Mapping[str, set[str]]) -> list[str]:
    """The tables that a word names, in any form; if it names none, those with a word that it begins with.

    >>> own = own_words(["grid.gen", "grid.bus"])
    >>> named_by(spelt_forms("Generators"), own), named_by(spelt_forms("genres"), own)
    (['grid.gen'], [])
    """
    named = [
        table
        for table, words in own.items()
        if not words.isdisjoint(spelt) or any(is_like(spelt[1], word) for word in words)
    ]
    return named or [table for table, words in own.items() if any(is_short_for(word, spelt[1]) for word in words)]


def is_short_for(short: str, word: str) -> bool:
    """Whether a word of a name may stand for a longer one, as an abbreviation or the first part of a compound.

    >>> [is_short_for(*both) for both in (("gen", "generator"), ("reisende", "reisendenzahlen"), ("win", "winter"))]
    [True, True, False]
    """
    return len(short) >= _FEWEST_IN_SHORT and len(word) - len(short) >= _FEWEST_LEFT_OUT and word.startswith(short)
