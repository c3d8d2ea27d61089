"""Evidence for keys from the names of columns and tables.

A column that references another table often has that table's name as its *head*, the last noun of a compound, with or
without a key word after it: ``home_team_api_id`` is a team, ``lost_in_battle`` a battle, while ``player_x`` is an x.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from tagframe.corpus.documents import identifier_words, singular, without_accents

_CODES = frozenset("cod codigo clave codice chiave clef cle kennung kod kode schlussel schluessel".split())
_NUMBERS = frozenset("nro numer numero nummer cislo".split())
STRONG_KEY_WORDS = _CODES | {"id", "ids", "key", "code", "cd", "uuid", "guid", "uid", "fk", "pk", "sk", "oid", "ref"}
WEAK_KEY_WORDS = _NUMBERS | {"no", "nr", "num", "number", "symbol", "abbrev", "abbreviation"}
_LEADING = _CODES | {"id", "code", "ref", "fk"}
"""Key words that stand before the thing in some languages: ``id_cliente``, ``ref_cod_aluno``, ``codigo_postal``."""
KEY_WORDS = STRONG_KEY_WORDS | WEAK_KEY_WORDS
GENERIC = frozenset(
    """name title type date time year month day description desc detail details value status note notes comment text
    amount price cost total count size age gender sex url email phone address city state country location position
    rank score point points level category label language format version line first last full short long
    other""".split()
)
"""Words for attributes of many kinds of things; equal names made only of these words are weak evidence."""
MEASURES = frozenset(
    """amount price cost total count size age sex gender score point rank rating level value status note comment text
    description desc detail email phone url flag first last weight height length width depth distance duration speed
    area volume capacity quantity qty percent percentage share mean average sum balance salary income population
    temperature color colour mode kind style class grade shape material group section season""".split()
)
"""Columns with these names describe a row; they do not identify it."""
_RANKS = frozenset(
    """order ordering sort sorting sortorder position pos rank ranking rang platz page index idx place standing priority
    seq sequence ordinal orden posicion""".split()
)
"""Last words of the names of columns that put the rows of a table in an order."""
_THINGS = frozenset("center centre account element list plan driver owner unit book pool item object rate".split())
"""Nouns that make a thing of a measure before them: a cost centre, a price list."""
_SINCE = frozenset("valid effective eff validity record rec row system sys".split())
_BOUNDS = frozenset("from to until thru through since start end begin date on".split())
_NOW = frozenset("current latest active".split())
_SAVED_INDEX = frozenset(
    """unnamed index indexid row rowid rownum rownumber rowno rownr idx seq sequence record recordid recordnumber
    recordno obs observation level""".split()
)
"""Names of columns that number the rows, without separators: a saved index, or a statistics program's row number."""
PLACES = frozenset(
    """city town village country nation county state province region district continent zip postal zipcode
    postcode""".split()
)
"""A table in which such a column is unique is about these places, whatever its name."""
CALENDAR = frozenset("date day week month quarter year time timestamp datetime hour".split())
"""Words for days and times."""
_POST = frozenset({"postal", "post", "zip"})
_IDENTIFIERS = frozenset(
    """isbn issn ean upc gtin sku ssn vin iban bic swift isin cusip ticker symbol orcid doi pmid iata icao fips iso iso2
    iso3 email login username user hostname domain url ip mac imei passport licence license plate
    serial barcode slug handle callsign uri""".split()
)
"""Words for identifiers, wherever the column stands in a table."""
_PERSON_ROLES = frozenset(
    """manager boss supervisor superior mentor leader head chief spouse partner father mother sibling report
    referrer jefe gerente vorgesetzter vorgesetzte leiter leiterin""".split()
)
SELF_ROLES = _PERSON_ROLES | frozenset(
    """parent child predecessor successor previous prev next original duplicate master root ancestor replaced
    replacement""".split()
)
"""Words for another row of the same table: ``manager_id`` of employees, ``parent_id`` of categories."""
IS_A = 0.5
"""How surely a column that names a kind of person, such as a student, means a table of persons."""
_PERSONS = frozenset(
    """employee person staff worker user member student player customer client author teacher emp human candidate
    guest patient male female husband wife bride groom father mother man woman empleado mitarbeiter""".split()
)
_ANYONE = frozenset({"person", "human", "individual", "party"})
"""Tables with these names hold persons of every kind."""
PEOPLE = _ANYONE | frozenset({"employee", "staff", "worker", "personnel", "user", "empleado", "mitarbeiter"})
"""Last words of the names of tables whose rows do things: somebody in them edited a row."""
_WORKERS = frozenset({"employee", "staff", "worker", "personnel", "member", "user", "empleado", "mitarbeiter"})
_BUYERS = frozenset("buyer purchaser payer shopper".split())
_CUSTOMERS = frozenset({"customer", "client"})
_WORKS_AS = _PERSON_ROLES | frozenset(
    """rep representative agent salesperson salesman seller assistant advisor adviser supporter owner editor creator
    author sender receiver recipient approver assignee requester reviewer follower followee
    vendedor vendedora verkaufer verkaeufer betreuer bearbeiter""".split()
)
"""Names of workers, members and users by their activity."""
_TRAILING_ROLES = frozenset(
    """home away winner loser source src dest destination origin target from to sender receiver buyer seller in out
    first second one two a b""".split()
)
"""Roles that may stand after the key word: ``team_id_home``."""
_PREPOSITIONS = frozenset("in at by for on with from de del des du della von vom".split())
_TITLES = frozenset({"name", "title", "label"})
_NOT_PLACES = frozenset({"email", "mail", "ip", "mac", "web", "url"})
"""Words that change the meaning of "address": such columns do not refer to a table of addresses."""
_JOINED_KEY = re.compile(r"(\w{3,}?)(id|key|code|no|num|nr|nummer)\Z")
_NOT_JOINED = frozenset(
    """paid unpaid valid invalid grid hybrid android avoid solid liquid fluid rapid humid madrid monkey turkey whiskey
    hockey jockey donkey barcode zipcode postcode said laid void skid avid arid amid fluid squid druid
    paid raid maid braid casino piano volcano latino domino techno destino alumno turno gobierno interno externo
    dueno vecino camino ciudadano hermano humano terreno termino""".split()
)
"""Words that only look as if they end in a key word."""
_KEY_BEFORE = re.compile(r"(cod|id)([^\W\d_aeiouy]\w{2,})\Z")
"""A key word before its thing without a separator: ``CODDEP``. A vowel after it makes another word: code, idea."""
_SHORT_KEY = re.compile(r"([a-z]{1,4})(id)\Z")
_LINK_PREFIX = frozenset("link linked to ref fk the a of in by for de del des du della von vom".split())
_TABLE_WORDS = frozenset(
    {"t", "tb", "tbl", "table", "ref", "dim", "fact", "lookup", "list", "master", "data", "info", "1k"}
)


_MARKED = 0.8
"""Marks of types end this share of all names."""


@lru_cache(maxsize=65536)
def words(name: str) -> tuple[str, ...]:
    """The words of an identifier, lower case, singular and without accents.

    >>> words("homeTeam_API_id2"), words("custkey"), words("Straßen_id")
    (('home', 'team', 'api', 'id', '2'), ('cust', 'key'), ('strassen', 'id'))
    >>> words("Código_municipio"), words("CODDEP"), words("idcliente")
    (('codigo', 'municipio'), ('cod', 'dep'), ('id', 'cliente'))
    """
    pieces: list[str] = []
    for word in identifier_words(without_accents(name)):
        joined = _JOINED_KEY.match(word) if len(word) >= 6 and word not in _NOT_JOINED else None
        before = None if joined else _KEY_BEFORE.match(word)
        if joined:
            pieces += singular(joined[1]), joined[2]
        elif before:
            pieces += before[1], singular(before[2])
        else:
            pieces.append(singular(word))
    if len(pieces) > 1 and _POST & {*pieces}:
        pieces = [word for word in pieces if word != "code" and word not in _CODES]  # an attribute of an address
    return tuple(pieces)


def common_prefix(columns: Sequence[str], least: int = 3) -> str:
    """A short prefix that every column of a table has; it stands for the table, not the column.

    "" if there is none, or the table has less than ``least`` columns.

    >>> common_prefix(["l_orderkey", "l_partkey", "l_tax"])
    'l_'
    """
    first = columns[0] if len(columns) >= least else ""
    cut = first.find("_") + 1
    prefix = first[:cut]
    shared = 0 < cut <= 4 and all(name.startswith(prefix) and len(name) > cut for name in columns)
    return prefix if shared else ""


def type_marks(columns: Sequence[str]) -> set[str]:
    """The ends of nearly all names of a schema that say their types.

    >>> sorted(type_marks(["partner_key_n", "partner_name_c", "born_d"])), type_marks(["plan_b", "name", "size"])
    (['_c', '_d', '_n'], set())
    """
    ends = [name[-2:].casefold() for name in columns if name[-2:-1] == "_" and name[-1].isalpha() and len(name) > 2]
    return {*ends} if len(ends) > _MARKED * len(columns) else set()


def unmarked(name: str, marks: Container[str]) -> str:
    """The name of a column without the mark of its type."""
    return name[:-2] if name[-2:].casefold() in marks else name


@lru_cache(maxsize=65536)
def is_plural(name: str) -> bool:
    """Whether the last word of the name, before a preposition, is a plural."""
    return any(
        singular(word) != word for word in [word for word in identifier_words(name) if word not in _PREPOSITIONS][-1:]
    )


@dataclass(frozen=True)
class Name:
    """A column's name taken apart.

    Attributes:
        words: all of them, without a trailing ordinal.
        entity: the thing that it is about: ``words`` without key words at the end and linking words at the start.
        key_word: 1.0 if it ends in a strong key word ("id"), 0.5 for a weak one ("number"), else 0.
        generic: whether the entity is empty or made of words such as "name" and "date" only.
    """

    words: tuple[str, ...]
    entity: tuple[str, ...]
    key_word: float
    generic: bool


@lru_cache(maxsize=65536)
def column_name(name: str) -> Name:
    """Take a column's name apart.

    >>> column_name("link_to_member").entity, column_name("atom_id2").entity, column_name("Id").entity
    (('member',), ('atom',), ())
    >>> column_name("team_id_home").entity, column_name("apid").entity
    (('home', 'team'), ('ap',))
    """
    parts = list(words(name))
    if len(parts) > 2 and parts[-1] in _TRAILING_ROLES and parts[-2] in STRONG_KEY_WORDS:
        parts.insert(0, parts.pop())
    if len(parts) > 1 and parts[-1] not in KEY_WORDS and not {*parts[1:]} <= GENERIC:
        before = next(at for at, word in enumerate(parts) if word not in _LEADING)
        parts = parts[before:] + parts[:before]
    if len(parts) > 1 and parts[-1] == "is":
        parts.pop()  # "genre_is"
    # "A10" is not the tenth A: an ordinal follows a word.
    while len(parts) > 1 and parts[-1].isdigit() and len(parts[-2]) > 1:
        parts.pop()
    short = _SHORT_KEY.match(parts[-1]) if parts and parts[-1] not in KEY_WORDS | _NOT_JOINED else None
    if short:
        parts[-1:] = [short[1], short[2]]
    entity = list(parts)
    key_word = 0.0
    while entity and entity[-1] in KEY_WORDS:
        key_word = max(key_word, 1.0 if entity.pop() in STRONG_KEY_WORDS else 0.5)
    if key_word:
        # "player_1_id" is a player.
        entity = [word for word in entity if not word.isdigit()] or entity
    while len(entity) > 1 and entity[0] in _LINK_PREFIX:
        entity.pop(0)
    if "of" in entity[1:-1]:
        # The head of "type of thing" is the type.
        cut = entity.index("of", 1)
        entity = entity[cut + 1 :] + entity[:cut]
    return Name(tuple(parts), tuple(entity), key_word, all(word in GENERIC for word in entity))


@lru_cache(maxsize=65536)
def table_entity(name: str) -> tuple[str, ...]:
    """The thing that a row of the table is, in words.

    >>> table_entity("Ref_Template_Types"), table_entity("car_makers"), table_entity("data")
    (('template', 'type'), ('car', 'maker'), ('data',))
    """
    # "t_customer", "a_team": some schemas put one letter before every name.
    parts = words(name[2:] if len(name) > 3 and name[1] == "_" and name[0].isalpha() else name)
    entity = tuple(word for word in parts if word not in _TABLE_WORDS and not word.isdigit())
    return entity or parts


def _ends(long: tuple[str, ...], short: tuple[str, ...]) -> bool:
    return bool(short) and len(long) >= len(short) and long[-len(short) :] == short


@lru_cache(maxsize=262144)
def about(column: str, table: str) -> float:
    """How surely the column names a row of the table, in [0, 1]; a role may stand before the table's name.

    >>> about("home_team_id", "Team"), about("Maker", "car_makers"), about("team_size", "Team")
    (0.9, 0.8, 0.0)
    >>> about("Lieferadresse", "Adressen"), about("distrito_del_local", "distritos")
    (0.6, 0.8)
    """
    name, thing = column_name(column), table_entity(table)
    entity = name.entity
    if not entity or not thing:
        return 0.0
    if entity == thing or "".join(entity) == "".join(thing):
        return 1.0
    if len(entity) > 1 and entity[-2] in _NOT_PLACES:
        return 0.0
    if _ends(entity, thing):
        return 0.9
    if _ends(thing, entity):
        return 0.8
    if len(entity) == 1 and len(entity[0]) >= 4 and thing[-1].endswith(entity[0]):
        return 0.75
    if len(entity) == len(thing) == 1 and len(entity[0]) >= 3 and thing[0].startswith(entity[0]):
        return 0.55
    if any(_is_compound(entity[-1], stem) for stem in stems(thing[-1])):
        return 0.6
    # "member in charge" is a member; "lost in battle" a battle.
    cut = _cut(entity)
    if cut and _ends(entity[:cut], thing):
        return 0.8
    if is_of_anyone(table) and len(thing) == 1 and entity[-1] in _PERSONS | _WORKS_AS:
        return IS_A
    if (thing[-1] in _WORKERS and entity[-1] in _WORKS_AS) or (thing[-1] in _CUSTOMERS and entity[-1] in _BUYERS):
        return 0.45
    if name.key_word == 1.0 and len(entity) == 1 and _stands_for(entity[0], thing):
        return 0.45
    if name.key_word == 1.0 and len(thing) > 1 and entity[-1] == thing[-1]:
        return 0.45  # a supplier company is one of third party companies
    return 0.0


@lru_cache(maxsize=65536)
def stems(word: str) -> tuple[str, ...]:
    """A noun without each ending that it may have as a plural in German: "adressen" is "adresse"."""
    return (word, *(word.removesuffix(end) for end in ("n", "en", "e", "er") if word.endswith(end) and len(word) > 5))


def _is_compound(word: str, stem: str) -> bool:
    """Whether a word is a kind of another that it ends in: "lieferadresse" of "adresse"."""
    return len(stem) >= 5 and len(word) - len(stem) >= 3 and word.endswith(stem)


def is_of_anyone(table: str) -> bool:
    """Whether the table holds persons of every kind."""
    return bool(_ANYONE.intersection(table_entity(table)[-1:]))


def is_role(column: str) -> bool:
    """Whether the name says by its activity or its place who or what is meant, not which thing it is.

    >>> is_role("referred_by"), is_role("reviewer_id"), is_role("city_id")
    (True, True, False)
    """
    parts = [word for word in column_name(column).words if word not in KEY_WORDS]
    return (len(parts) > 1 and parts[-1] == "by") or (bool(parts) and parts[-1] in _WORKS_AS | _BUYERS | SELF_ROLES)


def heads(entity: tuple[str, ...]) -> list[str]:
    """The possible last words of the names of tables that a column about ``entity`` may mean.

    >>> heads(("home", "team")), heads(("member", "in", "charge")), heads(("groom",))
    (['team'], ['charge', 'member'], ['groom', 'human', 'individual', 'party', 'person'])
    """
    names = [entity[-1]]
    cut = _cut(entity)
    if cut:
        names.append(entity[cut - 1])
    if entity[-1] in _PERSONS | _WORKS_AS:
        names += sorted(_ANYONE | (_WORKERS if entity[-1] in _WORKS_AS else frozenset()))
    if entity[-1] in _BUYERS:
        names += sorted(_CUSTOMERS)
    return names


def _cut(entity: tuple[str, ...]) -> int:
    """The position of the first preposition in the entity; 0 if there is none."""
    return next((position for position, word in enumerate(entity) if position and word in _PREPOSITIONS), 0)


def is_short_for(short: str, word: str) -> bool:
    """Whether the letters are an abbreviation: a subsequence of the word with its first letter, at least two shorter.

    >>> is_short_for("ap", "airport"), is_short_for("dept", "department"), is_short_for("port", "airport")
    (True, True, False)
    >>> is_short_for("part", "party"), is_short_for("plan", "plant")  # other words, not short ones
    (False, False)
    """
    rest = iter(word)
    return short[:1] == word[:1] and len(short) + 1 < len(word) and all(letter in rest for letter in short)


def abbreviates(letters: str, words: Sequence[str]) -> bool:
    """Whether letters are the first ones of all words, or beginnings of them, the last one of three letters at least.

    >>> abbreviates("cdemo", ("customer", "demographic")), abbreviates("code", ("customer", "demographic"))
    (True, False)
    >>> abbreviates("cm", ("course", "module")), abbreviates("c", ("course", "module"))
    (True, False)
    """
    if words[-1][:3] in letters and _begin(letters, words):
        return True
    return len(letters) == len(words) and letters == "".join(word[0] for word in words)


def _begin(letters: str, words: Sequence[str]) -> bool:
    if len(words) == 1:
        return len(letters) > 2 and words[0].startswith(letters)
    return any(
        words[0].startswith(letters[:cut]) and _begin(letters[cut:], words[1:]) for cut in range(1, len(letters))
    )


def bones(word: str) -> str:
    """The first consonants of a word; abbreviations usually keep them.

    >>> bones("customer"), bones("cstmr"), bones("address")
    ('cst', 'cst', 'add')
    """
    return (word[:1] + "".join(letter for letter in word[1:] if letter not in "aeiou"))[:3]


@lru_cache(maxsize=65536)
def own(column: str, table: str) -> float:
    """How surely the column's name is that of its own table's key, in [0, 1].

    >>> own("id", "Team"), own("team_api_id", "Team"), own("name", "Team"), own("coach_id", "§§")
    (1.0, 0.8, 0.0, 0.0)
    """
    name, thing = column_name(column), table_entity(table)
    if not name.entity:
        return 1.0
    direct = about(column, table)
    # The issuer of the number may stand between the thing and the key word.
    issued = bool(thing) and name.key_word == 1.0 and name.entity[: len(thing)] == thing
    short = bool(thing and name.key_word) and len(name.entity) == 1 and _stands_for(name.entity[0], thing)
    return max(direct if direct not in (0.9, IS_A, 0.45) else 0.5, 0.8 if issued else 0.75 if short else 0.0)


def _stands_for(short: str, thing: tuple[str, ...]) -> bool:
    """Whether the letters abbreviate a word of the table's name, or are the initials of all its words."""
    return is_short_for(short, thing[-1]) or short == "".join(word[0] for word in thing)


@lru_cache(maxsize=65536)
def calls(column: str, table: str) -> bool:
    """Whether the column holds the names of the rows of its own table.

    >>> calls("model_name", "chip_model"), calls("g_name", "genre"), calls("name", "team"), calls("coach_name", "team")
    (True, True, True, False)
    """
    parts, thing = column_name(column).words, table_entity(table)
    if not parts or parts[-1] not in _TITLES:
        return False
    return all(word in thing or (len(word) < 3 and _stands_for(word, thing)) for word in parts[:-1])


class NameMatch(NamedTuple):
    """How well the name of a referencing column fits its target.

    Attributes:
        score: in [0, 1]; 1 if the names alone would convince a reader.
        rule: the reason, a short phrase.
        kind: "same": the target column's own name; "role": that name with a role before it; "thing": the name of the
            target's table; "none".
        direct: whether it points to the target column itself, not only to its table.
    """

    score: float
    rule: str
    kind: Literal["same", "role", "thing", "none"]
    direct: bool = False

    def scored(self, score: float, rule: str | None = None) -> NameMatch:
        """The match with another score and, if one is given, another reason."""
        return NameMatch(score, self.rule if rule is None else rule, self.kind, self.direct)


NO_MATCH = NameMatch(0.0, "", "none")


@lru_cache(maxsize=262144)
def match(column: str, table: str, other_column: str, other_table: str, home: float | None = None) -> NameMatch:
    """How well ``table.column`` reads as a reference to ``other_table.other_column``.

    ``home`` is how surely the other column's name is that of its table's key; None for :func:`own`.

    >>> match("author_id", "books", "id", "authors")
    NameMatch(score=1.0, rule='author id names authors.id', kind='thing', direct=True)
    >>> match("pages", "books", "id", "authors").score
    0.0
    """
    name, other = column_name(column), column_name(other_column)
    if table == other_table:
        return _within(column, table, name, other)
    home = own(other_column, other_table) if home is None else home
    means = about(column, other_table)
    called = " ".join(name.words)
    options = [NO_MATCH]
    if name.words == other.words or (name.entity and name.entity == other.entity and (name.key_word or other.key_word)):
        if not name.entity:
            options.append(NameMatch(0.15, f"both are called {called}", "same"))
        elif name.generic and not name.key_word:
            options.append(NameMatch(0.45 if means >= 0.8 else 0.2, "the same common name", "same", direct=True))
        elif name.key_word and other.key_word and name.words[len(name.entity) :] != other.words[len(other.entity) :]:
            # A train's number is not its id.
            options.append(NameMatch(0.4, f"both are about {' '.join(name.entity)}", "same"))
        else:
            options.append(NameMatch(1.0 if home >= 0.75 else 0.7, "the same name", "same", direct=True))
    elif not other.generic and len(other.words) > 1 and _ends(name.words, other.words):
        options.append(NameMatch(0.95, f"{called} is a role of {other_column}", "role", direct=True))
    elif not other.generic and other.key_word and _ends(name.entity, other.entity):
        options.append(NameMatch(0.85 if name.key_word else 0.6, f"{called} is a role of {other_column}", "role"))
    elif len(other.words) == 1 and not other.generic and name.words and _is_role_of_word(name.words, other.words[0]):
        options.append(NameMatch(0.6, f"{called} is a role of {other_column}", "role"))
    elif name.key_word and name.entity and not name.generic and _ends(other.words, name.words):
        options.append(NameMatch(0.6, f"{other_column} is a role of {called}", "role"))
    listed = not name.key_word and is_plural(column)  # "tags" of a post are many tags, not the key of one
    if means and not listed and home >= 0.55 and (other.key_word or other.entity == name.entity):
        exact = bool(name.key_word) and not other.entity and name.words[len(name.entity) :] == other.words
        score = means if exact else means * (0.95 if name.key_word else 0.75)
        options.append(NameMatch(score, f"{called} names {other_table}.{other_column}", "thing", direct=exact))
    elif means >= 0.8 and not listed and not name.key_word and (calls(other_column, other_table) or not home):
        score = means * (0.75 if calls(other_column, other_table) else 0.5)
        options.append(NameMatch(score, f"{called} names {other_table}.{other_column}", "thing"))
    if name.words[-1:] and name.words[-1] in _TITLES and calls(other_column, other_table):
        named = 0.8 * about("_".join(name.words[:-1]), other_table)
        options.append(NameMatch(named, f"{called} is the name of {other_table}", "thing", direct=True))
    return max(options, key=lambda option: option.score)


def _is_role_of_word(words: tuple[str, ...], other: str) -> bool:
    """``super_ssn`` and ``essn`` are roles of ``ssn``."""
    last = words[-1]
    if last == other:
        return len(words) > 1
    return len(other) >= 3 and last.endswith(other) and len(last) - len(other) <= 2


def _within(column: str, table: str, name: Name, other: Name) -> NameMatch:
    """A match within one table: the name says which other row is meant, for example the manager or the parent."""
    if not other.key_word:
        return NO_MATCH
    thing = table_entity(table)
    roles = [word for word in name.entity if word in SELF_ROLES]
    rest = tuple(word for word in name.entity if word not in roles and word not in _LINK_PREFIX)
    plural = not name.key_word and is_plural(column) and "to" not in name.words
    if roles and not plural and (not rest or _ends(thing, rest) or rest == other.entity):
        # The manager of an employee is an employee; the manager of a department is not a department.
        alike = bool(set(thing) & _PERSONS) or not set(roles) <= _PERSON_ROLES
        score = (0.9 if alike else 0.6) - (0.0 if name.key_word else 0.2)
        return NameMatch(score, f"{column} refers to another row of the same table", "role")
    if name.key_word and other.entity and len(name.entity) > len(other.entity) and _ends(name.entity, other.entity):
        return NameMatch(0.8, f"{' '.join(name.words)} is a role of the same table", "role")
    known = [word in thing or any(is_short_for(word, other) for other in thing) for word in name.entity]
    role = not all(known) and _ends(name.entity, thing[-1:])  # a commercial partner, of partners
    if name.key_word == 1.0 and not other.entity and role:
        return NameMatch(0.8, f"{' '.join(name.words)} is a role of the same table", "role")
    return NO_MATCH


def is_measure(column: str) -> bool:
    """Whether the column is an amount or a kind, not an identifier.

    >>> is_measure("exam_score"), is_measure("score_id"), is_measure("town")
    (True, False, False)
    """
    name = column_name(column)
    if name.words[-1:] and name.words[-1] in _THINGS and len(name.words) > 1:
        return False
    return not name.key_word and bool(MEASURES & {*name.words}) and not is_identifier(column)


def is_rank(column: str) -> bool:
    """Whether the column puts the rows in an order: dense numbers that mean no thing.

    >>> is_rank("sort_order"), is_rank("game_index"), is_rank("order_id"), is_rank("stand")
    (True, True, False, False)
    """
    name = column_name(column)
    return not name.key_word and bool(_RANKS.intersection(name.words[-1:]))


def is_attribute(column: str) -> bool:
    """Whether the column's name is an attribute of many kinds of things, so that tables share it by accident.

    >>> is_attribute("length"), is_attribute("first_name"), is_attribute("isbn"), is_attribute("country")
    (True, True, False, False)
    """
    name = column_name(column)
    return is_measure(column) or (name.generic and not name.key_word and not {*name.words} & (PLACES | _IDENTIFIERS))


AUDIT = frozenset("created updated modified inserted loaded deleted changed at by".split())
"""Words for who wrote a row and when."""


def is_saved_index(column: str) -> bool:
    """Whether the column has the name of a saved frame index, or of a row number.

    >>> is_saved_index("Unnamed: 0"), is_saved_index("row_id"), is_saved_index("order_id")
    (True, True, False)
    """
    return "".join(words(column)).rstrip("0123456789") in _SAVED_INDEX


def version_column(column: str) -> Literal["start", "end", "number", "current"] | None:
    """The column's part in a versioned row: start, end or number of the version, or whether it is current.

    >>> [version_column(name) for name in ("valid_from", "ValidTo", "version_no", "is_current", "date")]
    ['start', 'end', 'number', 'current', None]
    """
    own_words = {*words(column)}
    if own_words & _SINCE and own_words & _BOUNDS:
        return "end" if own_words & {"to", "until", "thru", "through", "end"} else "start"
    if "version" in own_words and own_words <= {"version", *KEY_WORDS}:
        return "number"
    if (
        own_words & _NOW
        and own_words <= {*_NOW, "is", "flag", "version", "row", "record", "ind", "indicator"}
        and len(own_words) > 1
    ):
        return "current"
    return None


def is_identifier(column: str) -> bool:
    """Whether the column's name ends in a word for an identifier: an ISBN, a login."""
    return column_name(column).words[-1:] != () and column_name(column).words[-1] in _IDENTIFIERS


def mean_unlike(column: str, other: str) -> bool:
    """Whether the two columns number different things.

    >>> mean_unlike("bakery_id", "lecture_id"), mean_unlike("owner_id", "id"), mean_unlike("student_id", "person_id")
    (True, False, False)
    """
    mine, theirs = column_name(column), column_name(other)
    if not (mine.key_word and theirs.key_word and mine.entity and theirs.entity):
        return False
    return not ({*mine.entity} & {*theirs.entity} or (_is_somebody(mine.entity) and _is_somebody(theirs.entity)))


def _is_somebody(entity: Sequence[str]) -> bool:
    return entity[-1] in _PERSONS | _ANYONE | _WORKERS | _WORKS_AS
