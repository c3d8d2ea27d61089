"""A column that refers to several tables, and the one beside it that says to which."""

from __future__ import annotations

import pandas as pd
import pytest

import tagframe as tf
from tagframe.errors import NotConnected
from tagframe.keys import infer_key_pairs
from tagframe.retrieval.schema_text import describe_keys


def world(
    kind: str, side: str, types: tuple[object, object], more: str = "", key: str = "id"
) -> dict[str, pd.DataFrame]:
    """Comments on posts and on photos, and a table that is called as the reference."""

    def keys(name: str, count: int) -> list[object]:
        return [f"{name}-{n:03}" if key == "name" else n for n in range(1, count + 1)]

    posts, photos = keys("P", 40), keys("PH", 60)
    sides = [photos[n * 7 % 60] if n % 3 else posts[n * 11 % 40] for n in range(200)]
    tables = {
        "posts": {key: posts, "title": [f"On {n}" for n in range(40)]},
        "photos": {key: photos, "caption": [f"Of {n}" for n in range(60)]},
        "users": {"id": range(1, 16), "login": [f"u{n}" for n in range(15)]},
        "comments": {
            "id": range(1, 201),
            "user_id": [n % 15 + 1 for n in range(200)],
            kind: [types[n % 3 > 0] for n in range(200)],
            side: sides,
        },
    }
    if more == "content_types":
        tables[more] = {"id": [7, 9], "model": ["post", "photo"]}
    elif more:
        tables[more] = {"id": range(1, 81), "label": [f"l{n}" for n in range(80)]}
    return {name: pd.DataFrame(columns) for name, columns in tables.items()}


SHAPES = {
    "class": world("commentable_type", "commentable_id", ("Post", "Photo")),
    "module": world("commentable_type", "commentable_id", ("Blog::Post", "App\\Photo")),
    "table": world("target_type", "target_id", ("posts", "photos"), "targets"),
    "codes": world("content_type_id", "object_id", (7, 9), "content_types"),
    "object": world("object_type", "object_id", ("post", "photo"), "objects"),
    "doctype": world("reference_doctype", "reference_name", ("Post", "Photo"), key="name"),
    "namesake": world("item_type", "item_id", ("Post", "Photo"), "items"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_one_type_join_and_the_report_and_the_prompt_say_which(shape):
    tables = SHAPES[shape]
    kind, side = tables["comments"].columns[2:]
    corpus = tf.open_corpus(tables)
    is_coded = shape == "codes"
    typed, cell = ("content_types.model", "post") if is_coded else (f"comments.{kind}", tables["comments"][kind][0])
    assert not [key for key in infer_key_pairs(corpus.profiles) if side in key.left_columns + key.right_columns]

    lines = describe_keys(corpus, {profile.name: profile.id for profile in corpus.profiles})
    (line,) = [line for line in lines if f"{side} = posts." in line]
    assert line.endswith(f"(many-to-one, only where {typed} = '{cell}')")

    given = {name: tables[name] for name in ("comments", "posts", *["content_types"] * is_coded)}
    with pytest.raises(NotConnected, match="only where") as refusal:
        tf.merge(given)
    assert f"where={{{typed!r}: {cell!r}}}" in str(refusal.value)
    merged = tf.merge(given, where={typed: cell}, on_loss="allow")
    assert len(merged) == 67
    assert f"where frames.{typed} is {cell!r}" in " ".join(str(merged.tag.merge_report).split())
    assert len(tf.merge(given, where=f"`{merged.columns[2]}` == {tables['comments'][kind][0]!r}" if not is_coded
                        else "model == 'post'", on_loss="allow")) == 67  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "side", "types", "more"),
    [
        ("account_type", "account_id", ("savings", "loan"), "accounts"),  # kinds of accounts, no tables
        ("item_type", "item_id", ("photo", "other"), "items"),  # one name by accident
    ],
)
def test_a_type_of_the_thing_itself_is_no_other_table(kind, side, types, more):
    tables = world(kind, side, types, more)
    found = {key.left_columns[0]: key.right_table for key in infer_key_pairs(tf.open_corpus(tables).profiles)}
    assert found[side] == f"frames.{more}"


def test_a_private_type_is_in_no_prompt_and_a_given_key_joins_all():
    tables = SHAPES["class"]
    corpus = tf.open_corpus(tables)
    corpus.keys.add("comments.commentable_id = posts.id")
    assert len(corpus.merge("comments", "posts", on_loss="allow")) > 67
    hidden = tf.open_corpus(tables)
    hidden.private("comments.commentable_type")
    lines = " ".join(describe_keys(hidden, {one.name: one.id for one in hidden.profiles}))
    assert "only where comments.commentable_type names the table" in lines
    assert "Post'" not in lines


def test_a_type_beside_a_key_that_one_table_has_all_values_of_says_nothing_of_its_table():
    keys = [f"M.{number * 37:04}" for number in range(60)]
    tables = {
        "museums": pd.DataFrame({"museum_id": keys, "museum_type": ["museum", "house", "archive"] * 20}),
        "houses": pd.DataFrame({"house_id": range(40), "house_name": [f"h{number}" for number in range(40)]}),
        "events": pd.DataFrame({
            "event_id": [f"E{number:03}" for number in range(200)],
            "origin_museum_id": [keys[number * 7 % 50] for number in range(200)],
            "origin_museum_type": ["museum", "house"] * 100,
        }),
    }  # fmt: skip
    (key,) = [key for key in infer_key_pairs(tf.open_corpus(tables).profiles) if "origin_museum_id" in key.left_columns]
    assert (key.right, key.evidence.only) == ("frames.museums.museum_id", ())
