"""Declared primary keys and unique columns as evidence for keys that no source declares."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import tagframe as tf
from tagframe.keys import infer_key_pairs

STATEMENTS = """
CREATE TABLE countries (code CHAR(2) PRIMARY KEY, name TEXT, area REAL);
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, country CHAR(2));
CREATE TABLE products (id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, name TEXT);
CREATE TABLE lines (id INTEGER PRIMARY KEY, sku TEXT, quantity INTEGER);
CREATE TABLE prices (product_id INTEGER, since TEXT, price REAL, CONSTRAINT once UNIQUE (product_id, since));
CREATE TABLE returns (return_no INTEGER PRIMARY KEY, leg_no INTEGER, since DATE);
CREATE TABLE parts (order_no INTEGER, leg_no INTEGER, since DATE, PRIMARY KEY (order_no, leg_no));
"""
UNIQUE = {"products": (("sku",),), "prices": (("product_id", "since"),)}


def with_rows(path: Path) -> Path:
    rows = {
        "countries": [(f"C{n}", f"country {n}", n / 2) for n in range(30)],
        "cities": [(n, f"city {n}", f"C{n * 7 % 30}") for n in range(100)],
        "products": [(n, f"K{n:03}", f"product {n}") for n in range(1, 61)],
        "lines": [(n, f"K{n * 11 % 60 + 1:03}", n % 5) for n in range(300)],
        "prices": [(n, f"20{year}-01-01", n + 0.5) for n in range(1, 61) for year in (24, 25)],
    }
    with sqlite3.connect(path) as connection:
        connection.executescript(STATEMENTS)
        for table, cells in rows.items():
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", cells)
    connection.close()
    return path


@pytest.mark.parametrize("source", ["statements", "sqlite", "catalogue"])
def test_declared_keys_are_the_targets(tmp_path, source):
    if source == "statements":
        corpus = tf.open_corpus(schema=STATEMENTS)
    else:
        corpus = tf.open_corpus(with_rows(tmp_path / "shop.sqlite"))
    if source == "catalogue":
        corpus.save(tmp_path / "saved.tagframe")
        corpus = tf.open_corpus(tmp_path / "saved.tagframe")
    declared = {one.name: tuple(key for key in one.unique if key != one.primary_key) for one in corpus.profiles}
    assert {name: unique for name, unique in declared.items() if unique} == UNIQUE
    found = {(key.left.partition(".")[2], key.right.partition(".")[2]) for key in infer_key_pairs(corpus.profiles)}
    of_values = {("lines.sku", "products.sku")}  # by names alone, both may just have one
    assert found - of_values == {("cities.country", "countries.code"), ("prices.product_id", "products.id")}
    assert of_values <= found or source == "statements"


def test_without_declarations_they_are_not():
    plain = (
        STATEMENTS.replace("PRIMARY KEY,", ",").replace("UNIQUE,", ",").replace(", PRIMARY KEY (order_no, leg_no)", "")
    )
    keys = infer_key_pairs(tf.open_corpus(schema=plain).profiles)
    assert not {"schema.countries.code", "schema.products.sku"} & {key.right for key in keys}


@pytest.mark.parametrize(
    ("statement", "primary", "unique"),
    [
        ("CREATE TABLE t (id INT, a INT, CONSTRAINT `unique` PRIMARY KEY (id), UNIQUE KEY k (a, id))", "id", "a id"),
        ("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, CONSTRAINT u UNIQUE NULLS NOT DISTINCT (a))", "id", "a"),
        ("CREATE TABLE t (id INT, a TEXT); ALTER TABLE ONLY t ADD CONSTRAINT u UNIQUE (a);", "", "a"),
        ("CREATE TABLE t (id INT, a VARCHAR(20) UNIQUE COMMENT 'is it?', b INT COMMENT 'not unique')", "", "a"),
    ],
)
def test_unique_columns_of_statements(statement, primary, unique):
    (profile,) = tf.open_corpus(schema=statement).profiles
    assert (" ".join(profile.primary_key), profile.unique) == (primary, (tuple(unique.split()),))
