import sqlite3
import zipfile
from contextlib import closing

import pytest
from click.testing import CliRunner

from tag_bench import setup


def database(file, tables):
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        for name, rows in tables.items():
            connection.execute(f'CREATE TABLE "{name}" (id INTEGER)')
            connection.executemany(f'INSERT INTO "{name}" VALUES (?)', [(number,) for number in range(rows)])
        connection.commit()
    return file


@pytest.fixture(autouse=True)
def two_databases(monkeypatch):
    monkeypatch.setattr(setup, "ROWS", {"clubs": {"club": 2, "member": 3}, "shops": {"shop": 1}})


def run(*arguments):
    return CliRunner().invoke(setup.command, [str(argument) for argument in arguments])


def test_databases_are_laid_out_wherever_they_lie_in_the_download(tmp_path):
    database(tmp_path / "down" / "dev_1" / "clubs" / "clubs.sqlite", {"club": 2, "Member": 3})
    database(tmp_path / "down" / "shops.sqlite", {"shop": 4})
    result = run(tmp_path / "bird", "--from", tmp_path / "down")
    assert result.exit_code == 0
    assert "clubs: 2 tables\n" in result.output
    assert "shops: 1 tables, but shop has 4 rows, not 1" in result.output
    assert (tmp_path / "bird" / "shops" / "shops.sqlite").is_file()
    assert run(tmp_path / "bird", "--from", tmp_path / "bird").output.count("exists already") == 2


def test_a_zip_file_in_a_zip_file_is_unpacked(tmp_path):
    file = database(tmp_path / "clubs.sqlite", {"club": 2, "member": 3})
    with zipfile.ZipFile(tmp_path / "dev_databases.zip", "w") as inner:
        inner.write(file, "dev_databases/clubs/clubs.sqlite")
    with zipfile.ZipFile(tmp_path / "dev.zip", "w") as outer:
        outer.write(tmp_path / "dev_databases.zip", "dev/dev_databases.zip")
    result = run(tmp_path / "bird", "--from", tmp_path / "dev.zip")
    assert result.exit_code == 1
    assert (tmp_path / "bird" / "clubs" / "clubs.sqlite").is_file()
    assert "shops: not found" in result.output


def test_a_database_without_its_rows_is_left_out(tmp_path):
    database(tmp_path / "down" / "clubs.sqlite", {"club": 2, "member": 0})
    database(tmp_path / "down" / "shops.sqlite", {})
    result = run(tmp_path / "bird", "--from", tmp_path / "down")
    assert result.exit_code == 1
    assert "clubs: left out, because these tables are missing or empty: member" in result.output
    assert "shops: left out, because these tables are missing or empty: shop" in result.output
    assert not (tmp_path / "bird").exists()


@pytest.mark.parametrize("content", [b"no database, nor a zip file", b""])
def test_what_is_no_database_is_named(tmp_path, content):
    (tmp_path / "clubs.sqlite").write_bytes(content or b"\0" * 100)
    result = run(tmp_path / "bird", "--from", tmp_path)
    assert result.exit_code == 1
    assert "is not a SQLite database" in result.output
    result = run(tmp_path / "bird", "--from", tmp_path / "clubs.sqlite")
    assert "neither a folder nor a zip file" in result.output
