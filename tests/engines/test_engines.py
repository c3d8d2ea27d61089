"""What every engine can do, and that nothing else opens a source."""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import tagframe
from tagframe.engines.base import Engine, Readable, SQLLimits, UntrustedStatement
from tagframe.engines.frames import FrameEngine
from tagframe.engines.other_servers import other_server_engine
from tagframe.engines.registry import ENGINES, SUFFIXES, engine_of, folder_engine
from tagframe.errors import SQLFailed, UnsafeSQL

ROWS = pd.DataFrame({"id": [1, 2, 3], "na me": ["c", "a", "b"], "x": [1.5, None, 2.5]})
TABLE = 'CREATE TABLE loan (id INTEGER PRIMARY KEY, "na me" TEXT, x DOUBLE)'


def sqlite(folder: Path) -> Engine:
    with closing(sqlite3.connect(folder / "loan.sqlite")) as connection:
        connection.execute(TABLE)
        ROWS.to_sql("loan", connection, index=False, if_exists="append")
    return engine_of(folder / "loan.sqlite")


def other_server(folder: Path) -> Engine:
    pytest.importorskip("sqlalchemy")
    return other_server_engine(f"sqlite:///{sqlite(folder).path}", None)


def frames(folder: Path) -> Engine:
    return FrameEngine({"loan": ROWS})


def csv(folder: Path) -> Engine:
    ROWS.to_csv(folder / "loan.csv", index=False)
    return engine_of(folder / "loan.csv")


def feather(folder: Path) -> Engine:
    ROWS.to_feather(folder / "loan.feather")
    return engine_of(folder / "loan.feather")


def parquet(folder: Path) -> Engine:
    ROWS.to_parquet(folder / "loan.parquet")
    return engine_of(folder / "loan.parquet")


def lake(folder: Path) -> Engine:
    pytest.importorskip("duckdb")
    parquet(folder)
    return folder_engine(folder, is_wanted=True, follow_links=False)


def duckdb_file(folder: Path) -> Engine:
    with pytest.importorskip("duckdb").connect(str(folder / "loan.duckdb")) as connection:
        connection.execute(f"{TABLE}; INSERT INTO loan VALUES (1, 'c', 1.5), (2, 'a', NULL), (3, 'b', 2.5)")
    return engine_of(folder / "loan.duckdb")


@pytest.fixture(
    params=[sqlite, other_server, frames, csv, parquet, feather, lake, duckdb_file], ids=lambda make: make.__name__
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    make: Callable[[Path], Engine] = request.param
    return make(tmp_path)


def test_every_engine_tells_its_tables_and_rows(engine):
    assert engine.identity
    (shape,) = engine.shapes()
    assert (shape.called or shape.name, shape.columns) == ("loan", ("id", "na me", "x"))
    assert sum(chunk.rows for chunk in engine.chunks(shape)) == 3
    assert engine.scan(shape.name)["id"].tolist() == [1, 2, 3]
    assert engine.scan(shape.name, ["na me", "id"], 2).to_dict("list") == {"na me": ["c", "a"], "id": [1, 2]}
    assert (len(engine.scan(shape.name, limit=0)), len(engine.scan(shape.name, []))) == (0, 3)
    stamp = engine.fingerprint()
    assert (stamp is None) == (engine.kind == "frames")
    assert stamp is None or engine.fingerprint(stamp) == stamp
    assert hash(engine) == hash(engine)
    assert engine == engine


def test_every_engine_runs_one_checked_statement(engine):
    def run(sql: str, columns: tuple[str, ...] = ("id", "na me", "x"), explain: bool = False) -> pd.DataFrame:
        judged = {"judged": pa.table({"id": [1, 3], "risky": ["yes", "no"]})}
        tables = {"our loans": Readable(engine.shapes()[0].name, columns)}
        return engine.execute(UntrustedStatement(sql, tables, judged, SQLLimits(rows=3), explain))

    joined = 'SELECT "na me", risky FROM "our loans" JOIN judged USING (id) ORDER BY id'
    assert run(joined).to_dict("list") == {"na me": ["c", "b"], "risky": ["yes", "no"]}
    assert list(run('SELECT * FROM "our loans"', ("id", "na me")).columns) == ["id", "na me"]
    assert run('SELECT sum(id) AS id, max(id) + sum(id) AS id FROM "our loans"').dtypes.to_dict() == {
        "id": "int64",
        "id_2": "int64",
    }
    with pytest.raises(SQLFailed, match="no such column: x"):
        run('SELECT x FROM "our loans"', ("id", "na me"), explain=True)
    with pytest.raises(SQLFailed, match="more than 3 rows"):
        run('SELECT 1 FROM "our loans", judged')
    with pytest.raises((UnsafeSQL, SQLFailed)):
        run("DELETE FROM judged")


def test_the_registry_knows_files_by_their_endings(tmp_path):
    assert engine_of(tmp_path / "notes.md") is None
    assert len(SUFFIXES) == len(set(SUFFIXES)) == sum(map(len, ENGINES))
    with closing(sqlite3.connect(tmp_path / "odd.ending")) as connection:
        connection.execute("CREATE TABLE t (a)")
    assert engine_of(tmp_path / "odd.ending", look_inside=True).kind == "sqlite"


@pytest.mark.slow
def test_nothing_else_opens_a_source():
    """Catalogues, response stores and locks are SQLite files of our own; where tables are is the engines' business."""
    package = Path(tagframe.__file__).parent
    ours = {"corpus/catalogue.py", "corpus/facts.py", "storage.py", "operators/parquet_folder.py"}
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if name.startswith("engines/"):
            continue
        text = path.read_text()
        if "sqlite" not in text:  # most of them, and to parse all takes seconds
            continue
        nodes = list(ast.walk(ast.parse(text)))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        assert "sqlite3" not in imported or name in ours or name.startswith("lm/"), f"{name} speaks to SQLite"
        assert not imported & {"tagframe.engines.sqlite.engine", "tagframe.engines.sqlite.session"}, name
