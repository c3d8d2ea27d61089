from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tagframe as tf
from tagframe.answer.sql_tree import parsed, written
from tagframe.answer.syn_prompt import syn_prompt
from tagframe.engines.duckdb import statement as readable
from tagframe.errors import InvalidArgument, MissingExtra, SQLFailed, UnsafeSQL

pytest.importorskip("duckdb")


def film() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "title": ["Low Tide", None, "salt road", "Ash"],
            "stars": [3.5, np.nan, 4.0, 1.0],
            "seen": pd.array([True, None, False, True], "boolean"),
            "made": pd.to_datetime(["1998-05-01", None, "2015-01-02", "2001-07-07"]),
            "votes": pd.array([10, None, 7, 3], "Int64"),
        }
    )
    frame["kind"] = pd.Categorical(["a", "b", None, "a"])
    return frame


def both(**frames: pd.DataFrame) -> list[tf.answer.ExecSQL]:
    return [tf.exec_sql(tf.open_corpus(frames, engine=engine)) for engine in (None, "duckdb")]  # type: ignore[list-item]


SAME = [
    "SELECT id, title, stars, votes FROM film ORDER BY id",
    "SELECT count(title) AS t, count(stars) AS s, count(*) AS n FROM film",
    "SELECT avg(stars) AS a, sum(votes) AS v, max(title) AS t FROM film", "SELECT id FROM film WHERE stars IS NULL",
    "SELECT kind, count(*) AS n FROM film WHERE kind IS NOT NULL GROUP BY kind ORDER BY n DESC, kind",
    "SELECT a.id, b.title FROM film a JOIN film b ON a.id = b.votes ORDER BY a.id",
    "SELECT id FROM film WHERE NOT seen", "SELECT upper(title) AS u FROM film WHERE kind = 'a' ORDER BY id",
    "SELECT id FROM film WHERE made > '2001-01-01' ORDER BY id", "SELECT 1 AS one FROM film WHERE stars > 100",
]  # fmt: skip


@pytest.mark.parametrize("sql", SAME)
def test_what_both_dialects_say_alike_has_one_answer(sql: str):
    mine, theirs = (execute(sql) for execute in both(film=film()))
    pd.testing.assert_frame_equal(mine, theirs, check_dtype=False)


DIFFERENT = [
    ("SELECT 7 / 2 AS x", 3, 3.5),
    ("SELECT count(*) AS x FROM film WHERE title LIKE 'l%'", 1, 0),
    ("SELECT max(made) AS x FROM film", "2015-01-02", pd.Timestamp(2015, 1, 2)),
    ("SELECT stars AS x FROM film WHERE id > 1 ORDER BY stars LIMIT 1", None, 1.0),
    ("SELECT seen AS x FROM film WHERE id = 1", 1, True),
    ("SELECT count(*) AS x FROM film WHERE title > 5", 3, SQLFailed),
]


@pytest.mark.parametrize(("sql", "sqlite", "duckdb"), DIFFERENT)
def test_where_the_dialects_differ_duckdb_answers_only_where_it_is_asked_to(sql: str, sqlite: Any, duckdb: Any):
    plain, asked = both(film=film())
    found = plain(sql)["x"].iloc[0]
    assert (pd.isna(found) and sqlite is None) or found == sqlite
    if duckdb is SQLFailed:
        with pytest.raises(SQLFailed):
            asked(sql)
    else:
        assert asked(sql)["x"].iloc[0] == duckdb


def test_cells_that_are_no_column_there_are_texts_as_in_sqlite():
    odd = pd.DataFrame(
        {
            "mixed": ["a", 5, 2.5, None],
            "late": ["x"] * 3 + [7],
            "lists": [[1, 2], None, {"k": 1}, "t"],
            "half": pd.Series(["\ud800", "b", None, "c"], dtype=object),
            "day": [dt.date(2020, 1, 2), None, dt.date(2021, 1, 1), dt.date(2019, 1, 1)],
            "price": [Decimal("1.10"), None, Decimal("2.25"), Decimal("3")],
            "small": np.array([1, 2, 3, np.nan], dtype=np.float16),
        }
    )
    odd["month"] = pd.period_range("2020-01", periods=4, freq="M")
    odd["took"] = pd.to_timedelta(["1D", None, "2h", "3s"])
    plain, asked = both(odd=odd)
    for name in ("mixed", "late", "lists", "half", "month", "small"):
        sql = f"SELECT {name} AS x FROM odd"
        mine, theirs = ([None if pd.isna(cell) else cell for cell in execute(sql)["x"]] for execute in (asked, plain))
        assert mine == theirs, name
    found = asked("SELECT min(day) AS d, sum(price) AS p FROM odd").astype(str)
    assert found.values.tolist() == [["2019-01-01", "6.35"]]
    assert asked("SELECT count(*) AS n FROM odd WHERE took > INTERVAL 1 HOUR")["n"].tolist() == [2]
    assert asked_of(pd.DataFrame({"n": [2**100, 1]}))("SELECT max(n) AS n FROM t")["n"].tolist() == [2**100]
    with pytest.raises(SQLFailed, match="more than 38 digits"):
        asked_of(pd.DataFrame({"n": [2**130, 1]}))("SELECT n FROM t")
    with pytest.raises(SQLFailed, match="which ignores case"):
        asked_of(pd.DataFrame({"a": [1], "A": [2]}))


def test_decimals_wider_than_those_of_duckdb_are_read_as_its_own_or_refused_with_a_way_out():
    short, long = Decimal("1.50"), Decimal("1" * 45 + ".5")
    wide = pd.DataFrame({"v": pd.array([short, None], dtype=pd.ArrowDtype(pa.decimal256(50, 2)))})
    assert asked_of(wide)("SELECT v FROM t WHERE v = 1.5")["v"].tolist() == [short]
    small = Decimal("1e-50")
    for frame in (pd.DataFrame({"v": [long, short]}), pd.DataFrame({"v": [small]})):
        with pytest.raises(SQLFailed, match=r"'v' holds decimals of more than 38 digits.*\{'v': str\}"):
            asked_of(frame)("SELECT v FROM t")
    as_text = pd.DataFrame({"v": [long, short]}).astype({"v": str})
    assert asked_of(as_text)("SELECT v FROM t")["v"].tolist() == [str(long), str(short)]


def test_moments_with_a_zone_nan_beside_nulls_and_frames_without_columns():
    frame = pd.DataFrame({"x": pd.array([0.0, 1.0, None], "Float64") / 0})
    assert asked_of(frame)("SELECT count(*) AS n, count(x) AS c FROM t WHERE x > 0.5").values.tolist() == [[1, 1]]
    noon = pd.to_datetime(["2020-01-01 12:00", None]).tz_localize("Europe/Prague")
    found = asked_of(pd.DataFrame({"moment": noon}))(
        "SELECT moment FROM t WHERE moment > TIMESTAMPTZ '2020-01-01 10:30:00+00'"
    )
    assert found["moment"].tolist() == [noon[0]]
    plain = asked_of(pd.DataFrame({"moment": noon.tz_localize(None)}))
    assert plain("SELECT count(*) AS n FROM t WHERE moment < TIMESTAMP '2020-01-01 12:00:01'")["n"].tolist() == [1]
    assert asked_of(pd.DataFrame(index=range(3)))("SELECT count(*) AS n FROM t")["n"].tolist() == [3]


def asked_of(frame: pd.DataFrame) -> tf.answer.ExecSQL:
    return tf.exec_sql(tf.open_corpus({"t": frame}, engine="duckdb"))


def test_only_columns_that_a_statement_needs_are_copied(monkeypatch: pytest.MonkeyPatch):
    frame = film()
    asked, made = asked_of(frame), []
    convert = readable.array_of
    monkeypatch.setattr(readable, "array_of", lambda name, values: made.append(name) or convert(name, values))
    assert asked("SELECT id FROM t WHERE stars > 3 AND title > 'a' ORDER BY id")["id"].tolist() == [3]
    assert set(made) == {"id", "stars", "title"}
    assert asked("SELECT t FROM t WHERE id = 1")["t"].iloc[0]["votes"] == 10, "a row is a value"
    frame.loc[0, "id"] = 99  # read in place: as it is now
    assert asked("SELECT max(id) AS n FROM t")["n"].tolist() == [99]


def test_the_guard_and_the_limits_hold(tmp_path: Path):
    (tmp_path / "secret.csv").write_text("kept\n1\n")
    corpus = tf.open_corpus({"film": film()}, engine="duckdb")
    corpus = corpus.hide("film.votes")
    execute = tf.exec_sql(corpus, limits=tf.SQLLimits(rows=3))
    assert "votes" not in execute("SELECT * FROM film LIMIT 1")
    for sql in (f"SELECT * FROM read_csv('{tmp_path}/secret.csv')", "SELECT votes FROM film", "SELECT * FROM film",
                "SELECT * FROM range(3)", "COPY film TO 'x.csv'"):  # fmt: skip
        with pytest.raises((UnsafeSQL, SQLFailed)):
            execute(sql)
    with pytest.raises(UnsafeSQL, match="LM functions"):
        execute("SELECT id FROM film WHERE sem_filter('{title} is sad')")
    with pytest.raises(SQLFailed, match="stopped after"):
        tf.exec_sql(corpus, limits=tf.SQLLimits(seconds=0.2))(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT max(i) FROM n"
        )


def test_a_frame_beside_a_lake_keeps_its_dates(tmp_path: Path):
    days = pd.DataFrame({"day": [dt.date(2020, 1, n) for n in (1, 2, 3)] * 4, "n": range(12)})
    (tmp_path / "shop").mkdir()
    days.to_parquet(tmp_path / "shop" / "days.parquet", index=False)
    corpus = tf.open_corpus(tmp_path / "shop", engine="duckdb")
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-02"]), "what": ["market"]})
    beside, id = tf.corpus.opening.with_frame(corpus, frame)
    (name,) = {id.partition(".")[2]}
    found = tf.exec_sql(beside)(f"SELECT sum(n) AS n FROM days JOIN {name} AS f ON days.day = f.day")
    assert found["n"].tolist() == [1 + 4 + 7 + 10]


@pytest.mark.parametrize("source", ["frames", "files"])
def test_rows_behind_a_result_and_conditions_that_leave_none_are_found_in_duckdb_too(source: str, tmp_path: Path):
    if source == "files":
        film().drop(columns=["kind"]).to_parquet(tmp_path / "film.parquet", index=False)
    corpus = tf.open_corpus({"film": film()} if source == "frames" else tmp_path, engine="duckdb")
    execute = tf.exec_sql(corpus)
    rows = execute("SELECT seen, count(*) AS n FROM film WHERE stars > 2 GROUP BY seen ORDER BY n")
    cited = tf.results.recall(rows, "execution").sources()
    assert cited["value"].tolist() == ["1", "3"]
    told = execute.why_empty(execute("SELECT id FROM film WHERE stars > 2 AND made < DATE '1990-01-01'"))
    assert "0 are left where made < CAST('1990-01-01' AS DATE)" in told


def test_a_statement_is_written_again_as_it_was():
    for sql in (
        "SELECT id // 2, median(x) FILTER(WHERE id > 1) FROM t GROUP BY ALL HAVING count_if(x > 1) > 0",
        "SELECT date_trunc('month', d), l[1], x::DOUBLE FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1",
    ):
        again = written(parsed(sql, "duckdb"), "duckdb")
        assert again.replace("CAST(x AS DOUBLE)", "x::DOUBLE").casefold() == sql.casefold()


def test_syn_is_told_whose_dialect_it_is():
    told = syn_prompt("how many?", "t(a)", [], dialect="duckdb").messages[0].content
    assert "one DuckDB SELECT" in told
    assert "sem_filter" not in told
    assert "Integers divide to integers" not in told
    assert "Integers divide to integers" in syn_prompt("how many?", "t(a)", []).messages[0].content


def test_without_duckdb_it_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tagframe.engines.duckdb.tables.has_duckdb", lambda: False)
    with pytest.raises(MissingExtra, match=r"tagframe\[duckdb\]"):
        tf.open_corpus({"film": film()}, engine="duckdb")
    with pytest.raises(InvalidArgument, match="engine="):
        tf.open_corpus({"film": film()}, engine="polars")  # type: ignore[arg-type]
