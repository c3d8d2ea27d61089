"""Catalogues, damaged in every way that files are: each is opened, rebuilt or refused by name.

``python -m tests.corpus.damaged_files 1000`` damages so many and prints what became of them; the tests draw a few.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import closing
from pathlib import Path

import tagframe as tf
from tagframe.corpus.catalogue import Catalogue
from tagframe.errors import ColumnNotFound, TagframeError
from tagframe.retrieval import index, retrieve_tables
from tagframe.retrieval.index import RetrievalIndex
from tests.letters import Letters

SECRET = b"zqs-"
QUESTION = "Which people of Porto ordered a lamp?"


def make(folder: Path) -> Path:
    """A source of many tables, one of which has a hidden column; its catalogue, facts and index are written."""
    source = folder / "shop.sqlite"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, ssn TEXT, city TEXT)")
        rows = [(n, f"zqs-{n:05}", ("Porto", "Faro", "Lagos")[n % 3]) for n in range(60)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        for number in range(12):
            connection.execute(f"CREATE TABLE orders_{number} (id INTEGER, person INTEGER, item TEXT)")
            connection.execute(f"INSERT INTO orders_{number} VALUES (1, {number}, 'lamp'), (2, 3, 'desk')")
        connection.commit()
    (folder / "tagframe.toml").write_text('hide = ["people.ssn"]\n')
    corpus = tf.open_corpus(source, progress=False)
    corpus.keys.add("orders_1.person = people.id")
    corpus.describe("people.city", "where they live")
    RetrievalIndex(tf.open_corpus(source, progress=False), Letters())
    assert _opened(source) == "opened", "before anything is damaged"
    return source


def damaged(data: bytes, draw: random.Random) -> bytes:
    """The bytes of a file after a mishap."""
    kind = draw.choice(["bit", "bit", "byte", "cut", "tail", "empty", "swap", "page", "text"])
    mine = bytearray(data)
    at = draw.randrange(len(mine)) if mine else 0
    page = 4096
    if kind == "bit":
        mine[at] ^= 1 << draw.randrange(8)
    elif kind == "byte":
        mine[at] = draw.randrange(256)
    elif kind == "cut":
        del mine[at:]
    elif kind == "tail":
        mine += bytes(draw.randrange(256) for _ in range(draw.choice([1, 100, page])))
    elif kind == "empty":
        mine.clear()
    elif kind == "swap" and len(mine) >= 2 * page:
        one, other = (draw.randrange(len(mine) // page) * page for _ in range(2))
        mine[one : one + page], mine[other : other + page] = mine[other : other + page], mine[one : one + page]
    elif kind == "page":
        start = at // page * page
        mine[start : start + page] = draw.randbytes(len(mine[start : start + page]))
    elif kind == "text":  # what is JSON inside, in place
        for word, other in ((b"hidden", b"hiddem"), (b"ssn", b"ssm"), (b'"text"', b'"tex\x00"'), (b"[", b"{")):
            if draw.random() < 0.5:
                mine = bytearray(bytes(mine).replace(word, other, draw.choice([1, 100])))
    return bytes(mine)


def outcome(source: Path, files: list[Path], draw: random.Random) -> str:
    """What becomes of a source of which some of these files are damaged; they are put back as they were.

    Raises:
        AssertionError: a cell of the hidden column was shown or written.
        Exception: anything that is no error of tagframe.
    """
    folder = files[0].parent
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    facts = {path: path.read_bytes() for path in _facts().iterdir()}
    for path in draw.sample(files, draw.choice([1, 1, 1, min(2, len(files))])):
        path.write_bytes(damaged(before[path], draw))
    if draw.random() < 0.1:
        several = sorted(path for path in facts if path.suffix != ".lock")
        path = draw.choice(several)
        path.write_bytes(damaged(facts[path], draw))
    try:
        return _opened(source)
    finally:
        for copied, kept in ((folder, before), (_facts(), facts)):
            for path in copied.iterdir():
                if path not in kept:
                    path.unlink()
            for path, data in kept.items():
                path.write_bytes(data)


def _catalogue(source: Path) -> Catalogue:
    """That of the data without what is hidden."""
    from tagframe.corpus.catalogue import cached
    from tagframe.corpus.opening import lists_beside
    from tagframe.engines.hiding import Hiding

    catalogue = cached(source.stem, os.fsencode(source.resolve()), Hiding("hide", (), lists_beside(source)[0]).part)
    assert catalogue is not None
    return catalogue


def _facts() -> Path:
    from tagframe.corpus.facts import facts_folder

    return facts_folder()


def _opened(source: Path) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            corpus = tf.open_corpus(source, progress=False)
            RetrievalIndex(corpus, Letters())  # of this corpus: retrieve_tables remembers that of an equal one
            hits = retrieve_tables(QUESTION, corpus, k=2, embedder=Letters())
            shown = repr(hits) + str(hits.to_dict()) + str([corpus.profile(id) for id in corpus.ids])
            assert "zqs-" not in shown, "a cell was shown"
            assert list(corpus.read("people").columns) == ["id", "city"], "the column was read"
            try:
                corpus.read("people", ["ssn"])
            except ColumnNotFound:
                pass
            else:
                raise AssertionError("the column was read by its name")
        except TagframeError as error:
            if SECRET.decode() in str(error):
                raise AssertionError("a cell is in the message") from error
            return f"refused: {type(error).__name__}"
    catalogue = _catalogue(source)
    assert not any(SECRET in path.read_bytes() for path in catalogue.path.parent.iterdir()), "a cell was kept"
    assert not any("zqs-" in str(one.message) for one in said)
    return "rebuilt" if any("again" in str(one.message) for one in said) else "opened"


def files_of(source: Path) -> list[Path]:
    """The catalogue, and what SQLite has beside it."""
    catalogue = _catalogue(source)
    return sorted(path for path in catalogue.path.parent.iterdir() if path.name.startswith(catalogue.path.name))


def main(number: int, seed: int = 20) -> Counter[str]:
    """Damage so many files, one after the other; what became of them."""
    found: Counter[str] = Counter()
    index.LAKE = 0  # of so many columns the index is kept
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_CACHE_HOME=f"{folder}/cache", XDG_DATA_HOME=f"{folder}/data")
        source = make(Path(folder))
        files = files_of(source)
        for case in range(number):
            try:
                found[outcome(source, files, random.Random(f"{seed} {case}"))] += 1
            except Exception as error:
                found[f"FAILED {type(error).__name__}"] += 1
                sys.stdout.write(f"case {case}: {type(error).__name__}: {error}\n")
    return found


if __name__ == "__main__":
    for what, count in sorted(main(int(sys.argv[1])).items()):
        sys.stdout.write(f"{count:6,} {what}\n")
