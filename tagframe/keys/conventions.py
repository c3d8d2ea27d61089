"""A schema is read as a whole: how its tables name their keys, and how other columns refer to these.

Schemas have habits. One puts the table's initials before every column (``ss_item_sk``); one calls a reference as the
table, without a key word (``track.album``); one abbreviates (``bill_cdemo_sk`` of ``customer_demographics``). A habit
is found by counting over the schema. Then every column is spelt as the other modules of this room read names
(:mod:`~tagframe.keys.column_names`): ``bill_customer_demographics_sk``, ``album_id``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tagframe.corpus.documents import identifier_words
from tagframe.corpus.profile import ColumnProfile, TableProfile
from tagframe.keys import column_names as names


class Mentions:
    """The tables that the name of a column may mean."""

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        self._tables = tables
        self._things = [names.table_entity(table.name) for table in tables]
        self._index: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._known: dict[str, list[tuple[int, float]]] = {}
        self._short: dict[str, int | None] = {}
        for position, thing in enumerate(self._things):
            if not thing:
                continue
            for letter in {word[0] for word in (*thing[:1], *thing[-1:])}:
                self._index["letter", letter].append(position)
            keys = {("last", thing[-1]), ("all", "".join(thing))}
            keys.update(("end", stem[-4:]) for stem in names.stems(thing[-1]))
            keys.add(("bones", names.bones(thing[-1])))
            for key in keys | ({("start", thing[0][:3])} if len(thing) == 1 else set()):
                self._index[key].append(position)

    def of(self, column: str) -> list[tuple[int, float]]:
        """(position of the table, how surely it is meant) for each table that may be meant, best first."""
        known = self._known.get(column)
        if known is None:
            known = self._known[column] = sorted(self._found(column), key=lambda found: (-found[1], found[0]))
        return known

    def abbreviated(self, word: str) -> int | None:
        """The one table whose name the letters abbreviate: all of its words, or else its last one."""
        if word not in self._short:
            fits: dict[int, list[int]] = defaultdict(list)
            for position in self._index.get(("letter", word[:1]), ()):
                thing = self._things[position]
                if len(thing) > 1 and names.abbreviates(word, thing):
                    fits[2].append(position)
                elif len(word) >= _SHORTEST and names.is_short_for(word, thing[-1]):
                    fits[1].append(position)
            best = fits[max(fits)] if fits else []
            self._short[word] = best[0] if len(best) == 1 else None
        return self._short[word]

    def _found(self, column: str) -> Iterator[tuple[int, float]]:
        entity = names.column_name(column).entity
        if not entity:
            return
        keys = [("last", word) for word in names.heads(entity)] + [("all", "".join(entity))]
        if len(entity) == 1:
            keys += [("end", entity[0][-4:]), ("start", entity[0][:3])]
        if names.column_name(column).key_word == 1.0:
            keys.append(("bones", names.bones(entity[-1])))
        for position in sorted({position for key in keys for position in self._index.get(key, ())}):
            about = names.about(column, self._tables[position].name)
            if about:
                yield position, about


_SHORTEST = 3
"""An abbreviation has at least this many letters."""
_HABIT = 3
"""A habit shows itself at least this often."""
_ORDINAL = re.compile(r"(.*\D)_?(\d)\Z")
_BEHIND = frozenset(
    """from to src source dest destination origin target invoice invoicing billing shipping delivery home away sender
    receiver""".split()
)
"""Roles that may stand behind the thing: ``partner_invoice_id``."""
_Reading = Callable[[int, ColumnProfile, str], str | None]
"""From a table, its column and that one's name so far to a better reading of it."""
_JOINED = 8
"""In a schema that writes words together, names are this long on average."""


class Conventions:
    """The habits of one database.

    Args:
        tables: all of them.

    Attributes:
        mentions: the tables that the name of a column may mean.
    """

    def __init__(self, tables: Sequence[TableProfile]) -> None:
        self._tables = tables
        self.mentions = Mentions(tables)
        self._things = [names.table_entity(table.name) for table in tables]
        self._called: dict[str, list[int]] = defaultdict(list)
        for position, thing in enumerate(self._things):
            self._called["".join(thing)].append(position)
        columns = [[column.name for column in table.columns] for table in tables]
        large = [bool(names.common_prefix(each)) for each in columns if len(each) > 2]
        least = 2 if sum(large) > len(large) / 2 else 3  # two columns begin alike by chance, too
        prefixes = [names.common_prefix(each, least) for each in columns]
        self._spelt = [
            {column.name: column.name[len(prefix) :] for column in table.columns}
            for table, prefix in zip(tables, prefixes, strict=True)
        ]
        if self._writes_words_together():
            self._spell(self._split)
        self._keys = self._keys_by_name()
        self._unmarked = self._leaves_key_words_out()
        self._ordinals = [_ordinals(spelt.values()) for spelt in self._spelt]
        self._spell(self._in_full)
        self._spell(self._marked)
        self._own = [self._own_keys(position) for position in range(len(tables))]

    def spelt(self, table: int) -> Mapping[str, str]:
        """The name of each column of a table as the schema's habits read it."""
        return self._spelt[table]

    def own(self, table: int, column: str) -> float:
        """How surely the name of a column is that of its own table's key, in [0, 1]."""
        return self._own[table][column]

    def _spell(self, reading: _Reading) -> None:
        readings = [
            {column.name: reading(position, column, self._spelt[position][column.name]) for column in table.columns}
            for position, table in enumerate(self._tables)
        ]
        for spelt, read in zip(self._spelt, readings, strict=True):
            spelt.update({name: spelling for name, spelling in read.items() if spelling is not None})

    def _writes_words_together(self) -> bool:
        """Whether names are written without separators, as in ``billtoaddressid``."""
        every = [name for spelt in self._spelt for name in spelt.values()]
        whole = sum(len(identifier_words(name)) == 1 for name in every)
        return bool(every) and whole > 0.9 * len(every) and sum(map(len, every)) > _JOINED * len(every)

    def _split(self, position: int, column: ColumnProfile, spelt: str) -> str | None:
        """``billtoaddressid`` as ``billto_address_id``, if there is a table of addresses."""
        name = names.column_name(spelt)
        if not name.entity or not name.key_word:
            return None
        whole = "".join(name.entity)
        if whole in self._called:
            return None
        for cut in range(_SHORTEST, len(whole) - _SHORTEST):
            if whole[cut:] in self._called:
                return "_".join((whole[:cut], whole[cut:], *name.words[len(name.entity) :]))
        return None

    def _in_full(self, position: int, column: ColumnProfile, spelt: str) -> str | None:
        """The name with the table that it means in full; None if it is plain."""
        name = names.column_name(spelt)
        if not name.entity:
            return None
        key = "_".join(name.words[len(name.entity) :]) or "id"
        inside = (*self._things[position], *name.entity)
        target = self._only("".join(inside), besides=position) if "".join(name.entity) not in self._called else None
        if target is not None and not names.is_plural(spelt) and self._may_hold_keys_of(column, target):
            return self._reference(target, key)
        ordinal = _ORDINAL.match(spelt)
        if ordinal is not None:
            target = self._side(position, ordinal[1], int(ordinal[2]))
            if target is not None:
                return self._reference(target, key)
        if not name.key_word:
            return None
        if len(name.entity) > 1 and name.entity[-1] in _BEHIND and not self.mentions.of(spelt):
            spelt = "_".join((name.entity[-1], *name.entity[:-1], key))
            return self._in_its_part(position, names.column_name(spelt).entity, key) or spelt
        if position not in self._keys.get(spelt, ()) and (part := self._in_its_part(position, name.entity, key)):
            return part
        if position not in self._keys.get(spelt, ()) and (target := self._beside(position, name.entity)) is not None:
            return self._reference(target, key)
        if any(sure >= 0.75 for at, sure in self.mentions.of(spelt) if at != position):
            return None
        if position in self._keys.get(spelt, ()):
            return self._reference(position, key) if self._is_called_as_another(position, spelt) else None
        target = self.mentions.abbreviated(name.entity[-1])
        if target is None or name.words[-2:] in [names.column_name(key).words for key in self._spelt[target].values()]:
            return None  # its own key is abbreviated, too
        return "_".join((*name.entity[:-1], *self._things[target], key))

    def _in_its_part(self, position: int, entity: tuple[str, ...], key: str) -> str | None:
        """The name with the word that begins the names of all tables of a part of the schema: ``group_id`` of
        ``auth_user_group`` means ``auth_group``."""
        for start in range(len(entity)):
            part = self._things[position][:1]
            if "".join(entity[start:]) in self._called or (start and names.is_short_for(entity[start - 1], part[0])):
                return None
            target = self._only("".join((*part, *entity[start:])), besides=position)
            if target is not None:
                return "_".join((*entity[:start], self._reference(target, key)))
        return None

    def _beside(self, position: int, entity: tuple[str, ...]) -> int | None:
        """Of several tables that a column may mean equally, the one whose name begins as that of the column's table:
        ``category_id`` of ``uom_unit`` is a ``uom_category``."""
        target = self.mentions.of("_".join((*entity, "id")))
        tied = [at for at, sure in target if sure == target[0][1] and at != position]
        mine = self._things[position][:1]
        near = [at for at in tied if self._things[at][:1] == mine and len(self._things[at]) > 1]
        return near[0] if len(tied) > 1 and len(near) == 1 else None

    def _is_called_as_another(self, position: int, spelt: str) -> bool:
        """Whether two tables call their key alike: ``demo_id`` of customers' and of households' demographics."""
        twins = self._keys[spelt]
        alone = sum(position in self._keys.get(other, ()) for other in self._spelt[position].values()) == 1
        return alone and len(twins) > 1 and all(len(self._things[at]) > 1 for at in twins)

    def _keys_by_name(self) -> dict[str, list[int]]:
        """The tables whose own key has a name."""
        positions: dict[str, list[int]] = defaultdict(list)
        for position, table in enumerate(self._tables):
            for spelt in self._spelt[position].values():
                if names.own(spelt, table.name) >= 0.75:
                    positions[spelt].append(position)
        return positions

    def _reference(self, table: int, key: str) -> str:
        return "_".join((*self._things[table], key))

    def _only(self, called: str, *, besides: int) -> int | None:
        positions = [position for position in self._called.get(called, ()) if position != besides]
        return positions[0] if len(positions) == 1 else None

    def _may_hold_keys_of(self, column: ColumnProfile, table: int) -> bool:
        """Whether the table has a key by its name, of the column's type family."""
        other = self._tables[table]
        keys = [key for key in other.columns if table in self._keys.get(self._spelt[table][key.name], ())]
        return any(key.family == column.family and names.column_name(key.name).key_word for key in keys)

    def _side(self, position: int, stem: str, number: int) -> int | None:
        """The table at one side of a link table: ``entity1`` of ``l_artist_area`` is an area."""
        if names.column_name(stem).entity and "".join(names.column_name(stem).entity) in self._called:
            return None
        siblings = self._ordinals[position][stem]
        if len(siblings) != 2 or sorted(siblings) not in ([0, 1], [1, 2]):
            return None
        thing = self._things[position]
        for start in (0, 1):
            for cut in range(start + 1, len(thing)):
                sides = (
                    self._only("".join(thing[start:cut]), besides=position),
                    self._only("".join(thing[cut:]), besides=position),
                )
                if None not in sides:
                    return sides[number - min(siblings)]
        return None

    def _leaves_key_words_out(self) -> bool:
        """Whether columns that refer to a table are called as it, without a key word."""
        counts: Counter[bool] = Counter()
        for position, table in enumerate(self._tables):
            for column in table.columns:
                spelt = self._spelt[position][column.name]
                name = names.column_name(spelt)
                target = self._only("".join(name.entity), besides=position) if name.entity else None
                if target is not None and not names.is_plural(spelt) and self._may_hold_keys_of(column, target):
                    counts[name.key_word == 0] += 1
        return counts[True] >= _HABIT and counts[True] > 2 * counts[False]

    def _marked(self, position: int, column: ColumnProfile, spelt: str) -> str | None:
        """``album`` as ``album_id`` where the schema leaves key words out."""
        name = names.column_name(spelt)
        if not self._unmarked or name.key_word or not name.entity or names.is_plural(spelt):
            return None
        if column.family not in ("integer", "text"):
            return None
        if spelt in names.SELF_ROLES:
            return f"{spelt}_id"
        for start in range(len(name.entity)):
            target = self._only("".join(name.entity[start:]), besides=position)
            if target is not None:
                return f"{spelt}_id" if self._may_hold_keys_of(column, target) else None
        return None

    def _own_keys(self, position: int) -> dict[str, float]:
        table = self._tables[position]
        scores = {column.name: names.own(self._spelt[position][column.name], table.name) for column in table.columns}
        for column, sure in scores.items():
            name = names.column_name(self._spelt[position][column])
            if name.entity and sure < 1.0 and self._only("".join(name.entity), besides=position) is not None:
                scores[column] = min(sure, 0.5)  # the key of the table that is called so
        best = max(scores.values(), default=0.0)
        first = table.columns[0].name if table.columns else ""
        if best < 0.55 and first:
            spelt, thing = self._spelt[position][first], self._things[position]
            name = names.column_name(spelt)
            others = any(sure >= 0.75 for at, sure in self.mentions.of(spelt) if at != position)
            if name.key_word and name.entity and name.entity == thing[: len(name.entity)] and not others:
                scores[first] = 0.75  # the order's id of an order header
        for column, sure in scores.items():
            entity = names.column_name(self._spelt[position][column]).entity
            short = sure == 0.75 and len(entity) == 1 and entity[0] not in self._things[position]
            if short and best > sure:
                scores[column] = 0.0  # "gid" of gardens that have an "id"
        return scores


def _ordinals(called: Iterable[str]) -> dict[str, list[int]]:
    """The numbers at the end of names of columns, by what stands before them."""
    found: dict[str, list[int]] = defaultdict(list)
    for match in filter(None, map(_ORDINAL.match, called)):
        found[match[1]].append(int(match[2]))
    return found
