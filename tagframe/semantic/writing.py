"""What is known of a corpus as a semantic model in Apache Ossie's form, for people to review."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tagframe.corpus import ColumnProfile, Corpus, TableProfile
from tagframe.corpus.corpus import fact_store, statements_of
from tagframe.corpus.facts import BY_MODEL, Facts
from tagframe.corpus.references import JoinColumns
from tagframe.corpus.semantic_model import SemanticModel
from tagframe.joins import corpus_keys
from tagframe.keys import KeyPair
from tagframe.retrieval.words import terms, words_in
from tagframe.semantic.ossie import ansi, own_facts

VERSION = "0.2.0.dev0"
"""Of the specification."""
_MOST_SYNONYMS = 8
_TWICE = 2
"""A word is a synonym if at least so many questions have it."""


def to_ossie(corpus: Corpus, path: str | Path) -> Path:
    """See :meth:`tagframe.Corpus.to_ossie`."""
    import yaml  # type: ignore[import-untyped]

    known = fact_store(corpus).facts
    models = [_with_persons_words(model, known) for model in known.semantic]
    drafted = _draft(corpus, known)
    models += [drafted] if drafted["datasets"] else []
    document = {"version": VERSION, "semantic_model": models}
    path = Path(path).expanduser()
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def _with_persons_words(model: SemanticModel, known: Facts) -> dict[str, Any]:
    """A model as it was read, with the descriptions that a person gave, and without keys that a person forbade."""
    written: dict[str, Any] = json.loads(json.dumps(model.value["model"]))
    of_dataset: Mapping[str, Any] = model.value["datasets"]
    for dataset in _named(written.get("datasets")):
        id, columns = of_dataset.get(dataset["name"], ("", {}))
        if text := known.descriptions.get((id,)):
            dataset["description"] = text
        for field in _named(dataset.get("fields")):
            if text := known.descriptions.get((id, columns.get(field["name"]))):
                field["description"] = text
    forbidden = {key.sides for key in known.forbidden}
    gone = {one["name"] for one in model.value["keys"] if JoinColumns.of(one).sides in forbidden}
    if gone:
        written["relationships"] = [one for one in _named(written["relationships"]) if one["name"] not in gone]
    return written


def _named(given: Any) -> list[dict[str, Any]]:
    """The entries of a list that have a name."""
    listed = given if isinstance(given, list) else []
    return [one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)]


def _draft(corpus: Corpus, known: Facts) -> dict[str, Any]:
    """The model of all that the read ones do not say."""
    described = {id for model in known.semantic for id, _ in model.value["datasets"].values()}
    declared = {JoinColumns.of(one).sides for model in known.semantic for one in model.value["keys"]}
    seen = {(one.id, column.name) for one in corpus.profiles for column in one.for_prompts}
    keys = [
        key
        for key in corpus_keys(corpus)
        if not key.signs and _sides(key) not in declared and {column for pair in _sides(key) for column in pair} <= seen
    ]
    wanted = {id for key in keys for id in key.tables} | ({*corpus.ids} - described)
    profiles = [one for one in corpus.profiles if one.id in wanted]
    shared = Counter(one.name.casefold() for one in profiles)
    names = {one.id: one.name if shared[one.name.casefold()] == 1 else one.id for one in profiles}
    synonyms = learned_synonyms(corpus)
    referenced: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for key in keys:
        referenced[key.right_table][key.right_columns] += key.evidence.uniqueness == 1.0
    called = corpus.profiles[0].database if len({one.database for one in corpus.profiles}) == 1 else "corpus"
    return {
        "name": f"{called}_draft",
        "description": "What tagframe knows of the tables; parts that are listed as inferred are to be reviewed",
        "datasets": [
            _dataset(one, names[one.id], one.id in described, referenced[one.id], synonyms.get(one.id, ()))
            for one in profiles
        ],
        "relationships": [_relationship(key, names) for key in keys],
    }


def _sides(key: KeyPair) -> frozenset[Any]:
    return JoinColumns.of(vars(key)).sides


def _dataset(
    profile: TableProfile,
    name: str,
    is_described: bool,
    referenced: Counter[tuple[str, ...]],
    synonyms: Sequence[str],
) -> dict[str, Any]:
    dataset: dict[str, Any] = {"name": name, "source": profile.id}
    inferred: list[str] = []
    if is_described:  # it is here for its keys alone
        return dataset
    best = [columns for columns, count in referenced.most_common() if count]
    if key := profile.primary_key or (best[0] if best else ()):
        dataset["primary_key"] = [*key]
        inferred += ["primary_key"] * (not profile.primary_key)
    dataset |= _description(profile.description, inferred)
    if synonyms:
        dataset["ai_context"] = {"synonyms": [*synonyms]}
        inferred.append("synonyms")
    dataset["fields"] = [_field(column) for column in profile.for_prompts]
    return _with_inferred(dataset, inferred, {} if profile.rows is None else {"rows": profile.rows})


def _field(column: ColumnProfile) -> dict[str, Any]:
    inferred: list[str] = []
    one = {"name": column.name, "expression": ansi(_quoted(column.name)), **_description(column.description, inferred)}
    return _with_inferred(one | ({"dimension": {"is_time": True}} if column.family == "date" else {}), inferred)


def _description(text: str, inferred: list[str]) -> dict[str, str]:
    if text.startswith(BY_MODEL):
        inferred.append("description")
    return {"description": text.removeprefix(BY_MODEL)} if text else {}


def _with_inferred(
    one: dict[str, Any], inferred: Iterable[str], more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    data = {**(more or {}), **({"inferred": [*inferred]} if inferred else {})}
    return {**one, **own_facts(data)}


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'


def _relationship(key: KeyPair, names: Mapping[str, str]) -> dict[str, Any]:
    one = {
        "name": f"{names[key.left_table]}.{' '.join(key.left_columns)} to {names[key.right_table]}",
        "from": names[key.left_table],
        "to": names[key.right_table],
        "from_columns": [*key.left_columns],
        "to_columns": [*key.right_columns],
    }
    evidence = {"chance": round(key.score, 4), "origin": key.evidence.origin, "evidence": key.evidence.reason}
    return _with_inferred(one, ["relationship"] if key.evidence.is_guess else [], evidence)


def learned_synonyms(corpus: Corpus) -> dict[str, list[str]]:
    """Words of learned questions that name a table by another word, by table id.

    A word counts if at least two questions have it, exactly one table is read by the statements of all of them, and no
    name or description has it. Values (words in quotes, with digits or a capital letter, or in literals) are no names.
    """
    statements = [one for one in statements_of(corpus) if one.question]
    if not statements:
        return {}
    profiles = corpus.profiles
    texts = [(one.name, one.description) for one in profiles]
    texts += [(column.name, column.description) for one in profiles for column in one.columns]
    named = {word for pair in texts for text in pair for word in terms(text)}
    having: dict[str, list[set[str]]] = defaultdict(list)
    for statement in statements:
        literals = " ".join(re.findall(r"'([^']*)'", statement.cells)).casefold()
        plain = [word.text for word in words_in(re.sub(r"\"[^\"]*\"|'[^']*'", " ", statement.question))]
        words = {plain[0].lower(), *(word for word in plain[1:] if word.islower())} if plain else set()
        for term in {term for word in words if word.isalpha() and word not in literals for term in terms(word)} - named:
            having[term].append({*statement.tables})
    synonyms: dict[str, list[str]] = defaultdict(list)
    for term, tables in sorted(having.items(), key=lambda one: (-len(one[1]), one[0])):
        shared = set.intersection(*tables)
        if len(tables) >= _TWICE and len(shared) == 1 and len(synonyms[(id := next(iter(shared)))]) < _MOST_SYNONYMS:
            synonyms[id].append(term)
    return {id: words for id, words in synonyms.items() if words}
