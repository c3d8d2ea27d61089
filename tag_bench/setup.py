"""``tag_bench setup``: copies BIRD's downloaded dev databases to the layout that ``tag_bench answers`` needs."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import click
from sqlite_utils import Database

from tagframe.engines.sqlite.engine import connect_readonly

# fmt: off
ROWS: Mapping[str, Mapping[str, int]] = {
    "california_schools": {"frpm": 9_986, "satscores": 2_269, "schools": 17_686},
    "codebase_community": {
        "badges": 79_851, "comments": 174_285, "postHistory": 303_155, "postLinks": 11_102, "posts": 91_966,
        "tags": 1_032, "users": 40_325, "votes": 38_930,
    },
    "debit_card_specializing": {
        "customers": 32_461, "gasstations": 5_716, "products": 591, "transactions_1k": 1_000, "yearmonth": 383_282,
    },
    "european_football_2": {
        "Player_Attributes": 183_978, "Player": 11_060, "League": 11, "Country": 11, "Team": 299,
        "Team_Attributes": 1_458, "Match": 25_979,
    },
    "formula_1": {
        "circuits": 72, "constructors": 208, "drivers": 840, "seasons": 68, "races": 954, "constructorResults": 11_082,
        "constructorStandings": 11_836, "driverStandings": 31_578, "lapTimes": 400_524, "pitStops": 5_815,
        "qualifying": 6_967, "status": 134, "results": 23_179,
    },
}
# fmt: on
"""The databases of TAG-Bench, with the tables and their numbers of rows from BIRD's own statistics."""


def differences(file: Path, expected: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The missing tables of a database, and the tables with an unexpected number of rows.

    Returns:
        The tables that are missing or empty, and a text for each table with another number of rows.

    Raises:
        click.ClickException: it is not a SQLite database.
    """
    missing, other = [], []
    try:
        with closing(connect_readonly(file)) as connection:
            counts = {table.name.casefold(): table.count for table in Database(connection).tables}
            for table, rows in expected.items():
                found = counts.get(table.casefold(), 0)
                if not found:
                    missing.append(table)
                elif found != rows:
                    other.append(f"{table} has {found:,} rows, not {rows:,}")
    except sqlite3.DatabaseError as error:
        raise click.ClickException(f"{file} is not a SQLite database: {error}") from error
    return missing, other


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """The folder itself, or a temporary folder with the contents of a zip file, and of the zip files in it."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        waiting = [source]
        while waiting:
            packed = waiting.pop()
            try:
                with zipfile.ZipFile(packed) as archive:
                    inside = Path(folder) / packed.stem
                    wanted = [name for name in archive.namelist() if name.endswith((".sqlite", ".zip"))]
                    waiting += [Path(archive.extract(name, inside)) for name in wanted if name.endswith(".zip")]
                    for name in wanted:
                        if Path(name).stem in ROWS:
                            archive.extract(name, inside)
            except zipfile.BadZipFile as error:
                raise click.ClickException(f"{packed.name} is neither a folder nor a zip file: {error}") from error
        yield Path(folder)


def said(other: list[str]) -> str:
    """The differences, to append to a message."""
    return f", but {'; '.join(other)}" if other else ""


@click.command("setup")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="The download: BIRD's dev.zip or dev_databases.zip, or a folder that contains the databases.",
)
def command(folder: Path, source: Path) -> None:
    """Copy the databases of TAG-Bench to FOLDER/NAME/NAME.sqlite, and check their tables and rows.

    A database with a missing or empty table is left out, and the command ends with status 1. Unexpected numbers of rows
    are reported. Example: python -m tag_bench setup data/bird --from dev.zip; then answers --databases data/bird
    """
    complete = True
    with unpacked(source) as unzipped:
        for name, expected in ROWS.items():
            files = sorted(unzipped.rglob(f"{name}.sqlite"), key=lambda file: (len(file.parts), str(file)))
            if not files:
                complete = False
                click.echo(f"{name}: not found in {source}")
                continue
            missing, other = differences(files[0], expected)
            if missing:
                complete = False
                click.echo(f"{name}: left out, because these tables are missing or empty: {', '.join(missing)}")
                continue
            target = folder / name / f"{name}.sqlite"
            if target.exists() and target.samefile(files[0]):
                click.echo(f"{name}: exists already{said(other)}")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_suffix(".part")
            shutil.copyfile(files[0], part)
            part.replace(target)  # a copy that was cut short is no database
            click.echo(f"{name}: {len(expected)} tables{said(other)}")
    if not complete:
        raise SystemExit(1)
