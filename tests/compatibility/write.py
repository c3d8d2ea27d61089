"""Writes ``written.zip``, which the tests of compatibility open: run with tagframe as it was at commit 0f3a7c1.

    git archive 0f3a7c1 | tar -x -C /tmp/then
    mkdir /tmp/example; cd /tmp/example; PYTHONPATH=/tmp/then XDG_CACHE_HOME=$PWD/cache python …/write.py

All data are invented.
"""

from __future__ import annotations

import pickle
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pandas as pd

import tagframe as tf
from tag_bench.server import Request, Server

FILES = {
    "customers.csv": "customer_id,city\n1,Porto\n2,Lyon\n3,Oslo\n",
    "orders.csv": "order_id,customer_id,item\n10,1,lamp\n11,1,chair\n12,2,lamp\n13,3,desk\n",
}
STOCK = "CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INT); INSERT INTO stock VALUES ('lamp', 5), ('desk', 1);"
QUESTION = "What did the customers of each city order?"


def make_shop(folder: Path) -> Path:
    """The folder that all of it is of."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        connection.executescript(STOCK)
    return folder


def answer(request: Request) -> str:
    """What the model says: verdicts of rows, labels of values, a statement, and the text of an answer."""
    told = str(request.messages)
    if "is furniture" in told or "is sold as" in told:
        return str("lamp" not in request.prompt)
    if "<rows>" in told:
        return '{"text": "Porto ordered two things.", "values": ["Porto", 2]}'
    return (
        "```sql\nSELECT city, COUNT(*) AS ordered FROM orders JOIN customers USING (customer_id) "
        "GROUP BY city ORDER BY ordered DESC, city\n```"
    )


def main() -> None:
    """Write all of it."""
    shop = make_shop(Path("shop"))
    corpus = tf.open_corpus(shop, catalogue="catalogue.sqlite")
    corpus.describe("orders.item", "what was bought")
    corpus.keys.add("orders.customer_id = customers.customer_id")
    found = corpus.subset(["shop.customers", "shop.orders"]).tables.tag.retrieve_tables(QUESTION, k=2, method="lexical")
    pieces = {
        "corpus": corpus,
        "tables": corpus.tables.query("table == 'stock'"),
        "lake": tf.open_corpus(shop, engine="duckdb", catalogue="lake.sqlite"),
        "found": found,
        "join_plan": found.join_plan,
        "merged": found.merge(),
    }
    with Server(answer) as server:
        tf.configure(lm="openai/test", api_base=server.url, api_key="none", store="responses.db")
        orders = corpus.read("orders")
        pieces["judged"] = orders.tag.sem_filter("{item} is furniture")
        shelf = pd.DataFrame({"shelf": ["wood", "steel"]})
        pieces["matched"] = orders.tag.sem_join(shelf, "{item} is sold as {shelf}", plan="pairs")
        pieces["answer"] = tf.ask(QUESTION, found)
    with zipfile.ZipFile("written.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, piece in pieces.items():
            archive.writestr(f"{name}.pickle", pickle.dumps(piece, protocol=4))
        for name in ("catalogue.sqlite", "lake.sqlite", "responses.db"):
            with closing(sqlite3.connect(name)) as connection:
                connection.execute("VACUUM INTO ?", [f"whole {name}"])
            archive.write(f"whole {name}", name)


if __name__ == "__main__":
    main()
