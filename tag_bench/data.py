"""Benchmarks in one form: tables, questions, and the tables that each question's gold SQL reads.

Four formats of folders are read: JAR's (``dev.json`` and ``dev_tables.json``; everything else optional), FIBEN's
(``queries.json`` and ``schema.sql``), MURRE's unions (``dev.json`` with ``rel_schema``, and ``tables.json``) and
Spider 2's (``dev.json`` and ``tables.jsonl.gz``, one line per family of tables); and files of
:mod:`tag_bench.as_published`.
Rows come from ``database/<db>/<db>.sqlite`` if these files exist.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tag_bench.as_published import SEPARATOR, name_of, read_published
from tagframe.corpus import Corpus, open_corpus
from tagframe.corpus.canonical import canonical, hash_texts
from tagframe.corpus.profile import ColumnProfile, Sketch, TableProfile, TypeFamily
from tagframe.corpus.schema_only import declared_family, schema_profiles
from tagframe.engines.base import ForeignKey

DEVIATIONS = {
    "JAR: section 4.1, questions": (
        "no question is removed: those whose gold SQL its authors judged wrong are not listed, and the rule of "
        "appendix C does not give them, so there are 459 and 1,171, not 443 and 1,095; where SQL is run (tables 2 and "
        "3), those whose gold SQL gives no rows are left out, and counted; DTR, a TAPAS that they trained, is not here"
    ),
    "iterative JAR: section 4, questions": (
        "a table counts once: 935, 200, 35 and 1 of BIRD's questions need two, three, four and five tables, not "
        "936, 197, 34 and 1, and four questions more tables; FIBEN's file has 300 questions, not 279, and the paper"
        " does not say which it left out: 5 of the 31 that need three tables and 16 of the 79 that need five"
    ),
}
"""What is not as printed, or not printed, by paper and place; ``docs/papers.md`` has the same."""


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def jar_tables(folder: Path) -> list[TableProfile]:
    """JAR's tables, with facts from ``schema_with_keys.json``, ``column_stats.json`` and ``uniqueness.json``."""
    schemas = {}
    if (folder / "schema_with_keys.json").is_file():
        for schema in read_json(folder / "schema_with_keys.json"):
            schemas.update({table.id.lower(): table for table in schema_tables(schema)})
    stats = {}
    if (folder / "column_stats.json").is_file():
        for database in read_json(folder / "column_stats.json"):
            for table in database["tables"]:
                for column in table["columns"]:
                    key = f"{database['name']}.{table['name']}.{column['name']}".lower()
                    stats[key] = {**column, "row_count": table["row_count"]}
    uniqueness = read_uniqueness(folder)
    tables = []
    for entry in read_json(folder / "dev_tables.json").values():
        table_id = f"{entry['db_id']}.{entry['table_name_original']}"
        known = schemas.get(table_id.lower())
        types = {column.name: column for column in known.columns} if known else {}
        columns = []
        for position, name in enumerate(entry["column_names_original"]):
            # The file's own column_types are shifted by one. So if the other file is missing, no type is known, and
            # one family for all columns allows every join.
            column = ColumnProfile(name, position, types[name].family if name in types else "text")
            key = f"{table_id}.{name}".lower()
            if key in stats:
                column = _with_stats(column, stats[key])
            elif key in uniqueness:
                column = with_uniqueness(column, uniqueness[key])
            columns.append(column)
        tables.append(
            TableProfile(
                table_id,
                entry["db_id"],
                entry["table_name_original"],
                tuple(columns),
                max((column.rows for column in columns if column.rows is not None), default=None),
                known.primary_key if known else (),
                known.foreign_keys if known else (),
            )
        )
    return tables


def _with_stats(column: ColumnProfile, stats: Mapping[str, Any]) -> ColumnProfile:
    rows, distinct = int(stats["row_count"]), int(stats["unique_count"] or 0)
    samples = tuple(str(value) for value in stats["sample_values"] or ())
    texts = {text for text, _ in map(canonical, samples) if text is not None}
    # Few values that are all there make a sketch; ten of many are no sample that could be compared with another.
    is_complete = 0 < distinct <= len(texts)
    return replace(
        column,
        rows=rows,
        nulls=round(float(stats["null_fraction"] or 0) * rows),
        distinct=distinct,
        minimum=None if stats["min_value"] is None else str(stats["min_value"]),
        maximum=None if stats["max_value"] is None else str(stats["max_value"]),
        samples=samples,
        sketch=Sketch(np.unique(hash_texts(sorted(texts))), complete=True) if is_complete else None,
    )


def read_uniqueness(folder: Path) -> dict[str, float]:
    """The share of distinct values by ``database.table.column`` in lower case, if the folder says it."""
    file = folder / "uniqueness.json"
    given = read_json(file) if file.is_file() else {}
    return {key.replace(SEPARATOR, ".").lower(): float(value) for key, value in given.items()}


def with_uniqueness(column: ColumnProfile, uniqueness: float) -> ColumnProfile:
    """The column with a share of distinct values."""
    return replace(column, rows=ANY_ROWS, nulls=0, distinct=round(uniqueness * ANY_ROWS))


def schema_tables(schema: Mapping[str, Any]) -> list[TableProfile]:
    """The tables of one database in Spider's ``tables.json`` form."""
    names = schema["table_names_original"]
    columns: list[list[ColumnProfile]] = [[] for _ in names]
    ends: dict[int, tuple[int, str]] = {}
    types = schema.get("column_types") or []
    for index, (table, name) in enumerate(schema["column_names_original"]):
        if table < 0:
            continue
        family = declared_family(str(types[index])) if index < len(types) else "text"
        columns[table].append(ColumnProfile(name, len(columns[table]), family))
        ends[index] = (table, name)
    primary: dict[int, tuple[str, ...]] = {}
    for key in schema.get("primary_keys") or []:
        parts = [ends[index] for index in (key if isinstance(key, list) else [key])]
        primary[parts[0][0]] = tuple(name for _, name in parts)
    foreign: dict[int, list[ForeignKey]] = {}
    for left, right in schema.get("foreign_keys") or []:
        table, column = ends[left]
        other, other_column = ends[right]
        foreign.setdefault(table, []).append(ForeignKey((column,), names[other], (other_column,)))
    database = schema["db_id"]
    return [
        TableProfile(
            f"{database}.{name}",
            database,
            name,
            tuple(columns[table]),
            None,
            primary.get(table, ()),
            tuple(foreign.get(table, ())),
        )
        for table, name in enumerate(names)
    ]


_NUMBERS = re.compile(r"\d[\d_]*")


def families(folder: Path) -> list[TableProfile]:
    """A profile for each family of tables of one shape, with its first table's id.

    If a family has several tables, its name is without their numbers (``events_20210101``, … are ``events``). The
    schema is part of the name if it differs from the database's name.
    """
    found = []
    with gzip.open(folder / "tables.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            family = json.loads(line)
            name = family["family"].removeprefix(f"{family['database']}.{family['schema']}.")
            if len(family["tables"]) > 1:
                name = _NUMBERS.sub(" ", name).strip(" _") or name
            if family["schema"] != family["database"]:
                name = f"{family['schema']}.{name}"
            columns = tuple(_column(column, position) for position, column in enumerate(family["columns"]))
            found.append(TableProfile(family["family"], family["database"], name, columns))
    return sorted(found, key=lambda table: table.id)


def _column(given: Mapping[str, Any], position: int) -> ColumnProfile:
    samples = tuple(str(value) for value in given.get("samples") or ())
    declared = str(given["type"])
    family: TypeFamily = "integer" if declared.startswith("NUMBER") else declared_family(declared)  # as Snowflake says
    return ColumnProfile(
        given["name"],
        position,
        family,
        declared,
        samples=samples,
        description=given.get("description") or "",
    )


ANY_ROWS = 1_000_000
"""The rows of a table of which only shares of distinct values are known: any number so large keeps them."""
SEED = 0


@dataclass(frozen=True)
class Question:
    """One question of a benchmark.

    Attributes:
        text: the question.
        database: the database that it was written for.
        gold: ids ``database.table`` of the tables of its gold SQL, in lower case.
        position: its position in the file, from 0.
        sql: the gold SQL, if the data has it.
        evidence: BIRD's external knowledge; None in other data.
    """

    text: str
    database: str
    gold: frozenset[str]
    position: int
    sql: str = ""
    evidence: str | None = None


@dataclass(frozen=True)
class Dataset:
    """A benchmark: its tables, and its questions in the file's order.

    Attributes:
        name: of the folder.
        corpus: the tables under their names in the data.
        described: the same tables under the benchmark's readable names.
        questions: in the file's order.
    """

    name: str
    corpus: Corpus
    described: Corpus
    questions: tuple[Question, ...]

    def of(self, database: str) -> Dataset:
        """The part of the benchmark for one database."""

        def part(corpus: Corpus) -> Corpus:
            return Corpus(table for table in corpus.profiles if table.database.lower() == database.lower())

        questions = tuple(question for question in self.questions if question.database.lower() == database.lower())
        return Dataset(self.name, part(self.corpus), part(self.described), questions)

    def by_database(self, questions: Iterable[Question]) -> list[Dataset]:
        """The parts of the benchmark for the databases of some questions, each with those of them that it has."""
        of: dict[str, list[Question]] = defaultdict(list)
        for question in questions:
            of[question.database].append(question)
        return [replace(self.of(database), questions=tuple(own)) for database, own in sorted(of.items())]


def read_halves(folder: Path) -> dict[str, frozenset[str]]:
    """The databases, in lower case, to ``fit`` on and those to ``report`` on; empty if there is no ``halves.json``."""
    halves = read_json(folder / "halves.json") if (folder / "halves.json").is_file() else {}
    return {half: frozenset(str(database).lower() for database in names) for half, names in halves.items()}


def of_half(folder: Path, half: str, questions: Iterable[Question]) -> tuple[Question, ...]:
    """The questions on the databases of one half of the data: ``fit`` or ``report``.

    Raises:
        click.ClickException: there is no ``halves.json`` in the folder.
    """
    if not (halves := read_halves(folder)):
        raise click.ClickException(f"{folder} has no halves.json, so the half {half!r} is not defined")
    return tuple(question for question in questions if question.database.lower() in halves[half])


def drawn(questions: Sequence[Question], count: int, seed: int = SEED) -> tuple[Question, ...]:
    """A random sample of the questions, always the same for a seed, in the file's order."""
    if len(questions) <= count:
        return tuple(questions)
    chosen = np.random.default_rng(seed).choice(len(questions), count, replace=False)
    return tuple(questions[position] for position in sorted(chosen.tolist()))


def gold_tables(sql: str) -> frozenset[str]:
    """The names of the tables that a statement reads, in lower case, without names that it defines itself.

    >>> sorted(gold_tables('WITH t AS (SELECT * FROM A) SELECT * FROM t JOIN main."b c" ON 1'))
    ['a', 'b c']
    """
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(sql, dialect="sqlite")
    except sqlglot.errors.SqlglotError:
        # Two of FIBEN's statements are incomplete: only the names after FROM and JOIN can be read.
        names = re.findall(r'\b(?:FROM|JOIN)\s+(?:\w+\.)?["`\[]?(\w+)', sql, flags=re.IGNORECASE)
        return frozenset(name.lower() for name in names)
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return frozenset(table.name.lower() for table in tree.find_all(exp.Table) if table.name) - defined


def read_dataset(
    folder: Path, *, hide_database: bool = False, declared_keys: bool = False, synonyms: bool = False
) -> Dataset:
    """Read a benchmark folder of any of the four formats, or a file as its authors publish it.

    The questions are those of JAR (section 4.1), iterative JAR (section 4, appendix C) and MURRE (section 3.1).

    Args:
        folder: with the files named above, or a file (:func:`~tag_bench.as_published.read_published`);
            ``database/<db>/<db>.sqlite`` provide the rows, if they exist.
        hide_database: put all tables into one database, as in a real lake.
        declared_keys: keep the keys that the source declares (JAR-G); otherwise no profile has declared keys.
        synonyms: use the benchmark's other wording of the questions, which avoids words of the schema.

    Raises:
        click.ClickException: the folder has none of the formats.
    """
    entries = read_json(folder / "dev.json") if (folder / "dev.json").is_file() else None
    linearised: dict[str, str] = {}
    if folder.is_file():
        entries, tables = read_published(folder)
    elif (folder / "schema.sql").is_file() and (folder / "queries.json").is_file():
        tables = schema_profiles(folder / "schema.sql", "fiben", dialect="sqlite")
        entries = [{**one, "db_id": "fiben", "sql": one["SQL"]} for one in read_json(folder / "queries.json")]
    elif entries is not None and (folder / "tables.jsonl.gz").is_file():
        tables = families(folder)
    elif entries is not None and (folder / "dev_tables.json").is_file():
        tables = jar_tables(folder)
    elif entries is not None and (folder / "tables.json").is_file():
        schemas = read_json(folder / "tables.json")
        tables, linearised = [table for one in schemas for table in schema_tables(one)], _by_linearised(schemas)
    else:
        raise click.ClickException(
            f"{folder} is not a benchmark: it needs dev.json with dev_tables.json, tables.json or tables.jsonl.gz; or "
            "queries.json with schema.sql"
        )
    questions = _questions(entries, linearised)
    if synonyms:
        questions = _reworded(entries, questions)
    if not declared_keys:
        tables = [replace(table, primary_key=(), foreign_keys=(), unique=()) for table in tables]
    tables = _with_rows(folder, tables)
    name, described = name_of(folder), _described(folder, tables)
    if hide_database:
        return in_one_database(name, tables, described, questions)
    return Dataset(name, Corpus(tables), Corpus(described), tuple(questions))


def read_decompositions(path: str, questions: Sequence[Question]) -> list[list[str]] | None:
    """The given sub-queries of each question, in the file's order; None for ``"none"``.

    Raises:
        click.ClickException: the file is missing or has another length.
    """
    if path == "none":
        return None
    if not Path(path).is_file():
        raise click.ClickException(f"no decompositions at {path}; give a JSON file, or 'none'")
    given = read_json(Path(path))
    if len(given) != len(questions):
        raise click.ClickException(f"{path} holds {len(given)} decompositions for {len(questions)} questions")
    if given and isinstance(given[0], dict):  # a hallucinated schema for each question
        given = [entry["hallucinated_schema"] for entry in given]
    return [[str(subquery) for subquery in subqueries] for subqueries in given]


def _described(folder: Path, tables: Iterable[TableProfile]) -> list[TableProfile]:
    """The tables under the readable names from the folder's files, if there are any."""
    readable: dict[str, tuple[str, list[str]]] = {}
    if (folder / "dev_tables.json").is_file():
        for entry in read_json(folder / "dev_tables.json").values():
            names = entry.get("column_names") or entry["column_names_original"]
            name = entry.get("table_name") or entry["table_name_original"]
            readable[_key(entry["db_id"], entry["table_name_original"])] = name, names
    elif (folder / "tables.json").is_file():
        for schema in read_json(folder / "tables.json"):
            for number, original in enumerate(schema["table_names_original"]):
                names = [name for table, name in schema["column_names"] if table == number]
                readable[_key(schema["db_id"], original)] = schema["table_names"][number], names
    found = []
    for table in tables:
        name, names = readable.get(table.id.lower(), (table.name, [column.name for column in table.columns]))
        columns = tuple(replace(column, name=name) for column, name in zip(table.columns, names, strict=True))
        found.append(replace(table, name=name, columns=columns))
    return found


def _key(database: str, table: str) -> str:
    return f"{database}.{table}".lower()


def _by_linearised(schemas: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Table ids by MURRE's texts for gold tables: ``db.name(columns)`` with readable names."""
    return {
        text: f"{schema['db_id']}.{name}"
        for schema in schemas
        for text, name in zip(schema["schema"], schema["table_names_original"], strict=True)
    }


def _questions(entries: Iterable[Mapping[str, Any]], linearised: Mapping[str, str]) -> list[Question]:
    return [
        Question(
            str(entry.get("question", entry.get("utterance"))).strip(),
            str(entry.get("db_id", entry.get("database"))),
            frozenset(_gold(entry, linearised)),
            position,
            str(entry.get("sql", entry.get("query", ""))),
            entry.get("evidence"),
        )
        for position, entry in enumerate(entries)
    ]


def _reworded(entries: Iterable[Mapping[str, Any]], questions: Iterable[Question]) -> list[Question]:
    texts = [entry.get("synonyms") for entry in entries]
    if not any(texts):
        raise click.ClickException("the data has no second wording of its questions: no entry has synonyms")
    return [
        replace(question, text=(text or question.text).strip()) for question, text in zip(questions, texts, strict=True)
    ]


def _gold(entry: Mapping[str, Any], linearised: Mapping[str, str]) -> Iterator[str]:
    if "gold_families" in entry:
        yield from (str(name).lower() for name in entry["gold_families"])
        return
    database = str(entry["db_id"]).lower()
    if "gold_tables" in entry:
        for name in entry["gold_tables"]:
            table = str(name).lower().replace(SEPARATOR, ".")
            yield table if table.startswith(f"{database}.") else f"{database}.{table}"
    elif "rel_schema" in entry:
        for schema in entry["rel_schema"]:
            yield linearised.get(schema, str(schema).split("(", 1)[0].strip()).lower()
    else:
        for name in gold_tables(str(entry.get("sql", entry.get("query")))):
            yield f"{database}.{name}"


def _with_rows(folder: Path, tables: Sequence[TableProfile]) -> list[TableProfile]:
    """The tables with column profiles from ``database/`` if they are there; a database may lack tables, and a table
    columns."""
    if not (folder / "database").is_dir():
        return list(tables)
    profiles = {profile.id.lower(): profile for profile in open_corpus(folder / "database").profiles}
    found = []
    for table in tables:
        profile = profiles.get(table.id.lower())
        if profile is not None:
            by_name = {column.name.lower(): column for column in profile.columns}
            columns = tuple(
                replace(by_name[column.name.lower()], name=column.name, position=column.position)
                if column.name.lower() in by_name
                else column
                for column in table.columns
            )
            table = replace(table, columns=columns, rows=profile.rows)
        found.append(table)
    return found


def in_one_database(
    name: str,
    tables: Sequence[TableProfile],
    described: Sequence[TableProfile],
    questions: Sequence[Question],
    named: Callable[[TableProfile, int], TableProfile] = lambda table, number: table,
) -> Dataset:
    """A benchmark with all tables in one database ``lake``; repeated names get a number in their ids.

    ``named`` gives a table other names, which are not in its id, from the table and its position.
    """
    seen: Counter[str] = Counter()
    renamed: dict[str, str] = {}
    for table in sorted(tables, key=lambda table: table.id):
        seen[table.name.lower()] += 1
        count = seen[table.name.lower()]
        renamed[table.id.lower()] = f"lake.{table.name}" + (f"#{count}" if count > 1 else "")

    def hidden(tables_of_lake: Sequence[TableProfile]) -> Corpus:
        lake = (replace(table, id=renamed[table.id.lower()], database="lake") for table in tables_of_lake)
        return Corpus(named(table, number) for number, table in enumerate(lake))

    renamed_questions = [
        replace(question, gold=frozenset(renamed.get(table, table).lower() for table in question.gold))
        for question in questions
    ]
    return Dataset(name, hidden(tables), hidden(described), tuple(renamed_questions))
