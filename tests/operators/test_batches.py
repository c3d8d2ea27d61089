from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from scripted import Scripted, shown_rows

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import (
    ColumnNotFound,
    FolderInUse,
    InvalidArgument,
    NotConfigured,
    NotWritten,
    RowsFailed,
)
from tagframe.operators import (
    asem_filter,
    asem_search,
    sem_filter,
    sem_map,
    sem_search,
    sem_sim_join,
    sem_topk,
)


def even(message: str) -> str:
    return str(shown_rows(message)[-1]["n"] % 2 == 0)


def frames(*sizes: int) -> list[pd.DataFrame]:
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [
        pd.DataFrame({"n": range(start, start + size), "m": "x"}, index=range(start, start + size))
        for start, size in zip(starts, sizes, strict=True)
    ]


def test_batches_give_what_one_frame_gives():
    parts = frames(3, 4, 0, 1)
    found = list(sem_filter(iter(parts), "{n} is even", lm=Scripted(even)))
    assert len(found) == 4
    whole = sem_filter(pd.concat(parts), "{n} is even", lm=Scripted(even))
    pd.testing.assert_frame_equal(pd.concat(found), whole)


def test_nothing_is_read_or_asked_before_it_is_wanted():
    lm = Scripted(even)
    read = []

    def source():
        for frame in frames(2, 2):
            read.append(len(frame))
            yield frame

    results = sem_filter(source(), "{n} is even", lm=lm)
    assert (read, lm.asked) == ([], [])
    next(results)
    assert (read, len(lm.asked)) == ([2], 2)


def test_what_batches_share_is_paid_once_without_a_store(live: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TAGFRAME_STORE")
    same = pd.DataFrame({"colour": ["red", "blue", "red"]})
    found = list(tf.sem_filter(iter([same, same.copy(), same.copy()]), "{colour} is warm"))
    assert [len(frame) for frame in found] == [3, 3, 3]
    assert len(live.requests) == 2


def test_settings_are_those_of_the_call(server: Server):
    with tf.context(lm="openai/test", api_base=server.url, api_key="none", progress=False):
        results = tf.sem_filter(iter(frames(1)), "{n} is even")
    assert len(next(results)) == 1
    with pytest.raises(NotConfigured):
        tf.sem_filter(iter(frames(1)), "{n} is even")


def test_a_row_that_fails_ends_the_run_and_the_next_pays_for_it_alone(live: Server):
    broken = True

    def answers(request: Request) -> str | Reply:
        return error(400) if broken and '"n": 3' in request.prompt else "True"

    live.answers = answers
    results = tf.sem_filter(iter(frames(2, 2)), "{n} is even")
    assert len(next(results)) == 2
    with pytest.raises(RowsFailed) as caught:
        next(results)
    assert len(caught.value.frame) == 2
    broken = False
    before = len(live.requests)
    assert sum(map(len, tf.sem_filter(iter(frames(2, 2)), "{n} is even"))) == 4
    assert len(live.requests) == before + 1


def test_a_folder_of_results(tmp_path: Path):
    folder = sem_filter(iter(frames(3, 3)), "{n} is even", lm=Scripted(even), to=tmp_path / "deep" / "kept")
    assert folder == tmp_path / "deep" / "kept"
    assert [frame["n"].tolist() for frame in tf.read_batches(folder)] == [[0, 2, 4]]
    assert not list(folder.parent.glob(".*"))
    with pytest.raises(InvalidArgument, match="already"):
        sem_filter(iter(frames(1)), "{n} is even", lm=Scripted(even), to=folder)


def test_a_folder_is_there_only_when_it_is_whole(tmp_path: Path):
    def fails(message: str) -> str:
        if shown_rows(message)[-1]["n"] == 3:
            raise ConnectionError("dropped")
        return "True"

    with pytest.raises(RowsFailed):
        sem_filter(iter(frames(2, 2)), "{n} is even", lm=Scripted(fails), to=tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_is_null_in_one_batch_has_one_type_in_all_files(tmp_path: Path):
    parts = [pd.DataFrame({"n": [1], "note": [None]}), pd.DataFrame({"n": [2], "note": ["x"]})]
    folder = sem_map(iter(parts), "Say {n}", lm=Scripted(lambda message: "7"), dtype=int, to=tmp_path / "out")
    schemas = {str(pq.read_schema(file).field("note").type) for file in folder.glob("*.parquet")}
    assert len(schemas) == 1
    assert pd.read_parquet(folder)["note"].isna().tolist() == [True, False]
    assert pd.read_parquet(folder)["_map"].tolist() == [7, 7]


def test_the_best_of_all_batches():
    def order(message: str) -> str:
        rows = shown_rows(message)
        return ", ".join(str(row + 1) for row in sorted(range(len(rows)), key=lambda row: -rows[row]["n"]))

    best = sem_topk(iter(frames(5, 5, 5)), "Which {n} is largest?", 2, lm=Scripted(order))
    assert best["n"].tolist() == [14, 13]
    with pytest.raises(InvalidArgument, match="keep"):
        sem_topk(iter(frames(5)), "Which {n} is largest?", 2, lm=Scripted(order), on_error="keep")


def test_one_answer_from_all_batches():
    lm = Scripted(lambda message: "All.\nSources: all")
    answer = tf.sem_agg(iter(frames(2, 3)), "Summarise the {n}s", lm=lm)
    assert answer["_output"].tolist() == ["All."]
    assert len(answer.tag.sources) == 5
    assert [row["n"] for row in shown_rows(lm.asked[0])] == [0, 1, 2, 3, 4]
    assert len(lm.asked) == 1
    named = tf.sem_agg(iter(frames(2, 3)), instruction="Summarise the {n}s", lm=lm)
    assert named["_output"].tolist() == ["All."]


def test_what_cannot_be_done_a_batch_at_a_time_is_refused_by_name():
    lm = Scripted(even)
    with pytest.raises(InvalidArgument, match="limit="):
        sem_filter(iter(frames(2)), "{n} is even", limit=1, lm=lm)
    with pytest.raises(InvalidArgument, match="how='outer'"):
        tf.sem_join(iter(frames(2)), pd.DataFrame({"k": [1]}), "{n} is {k}", how="outer", lm=lm)
    with pytest.raises(InvalidArgument, match="batch 0 is a str"):
        next(sem_filter(iter(["a"]), "{n} is even", lm=lm))
    with pytest.raises(InvalidArgument, match="to="):
        sem_filter(frames(2)[0], "{n} is even", lm=lm, to="somewhere")
    with pytest.raises(ColumnNotFound):
        next(sem_filter(iter(frames(2)), "{k} is even", lm=lm))
    with pytest.raises(InvalidArgument, match="no batch"):
        sem_topk(iter([]), "Which {n}?", 1, lm=lm)
    assert not lm.asked


@pytest.fixture
def texts() -> list[str]:
    return ["a red apple", "a grey stone", "a ripe pear", "a wooden boat", "an orange", "a steel bridge"]


def test_the_nearest_of_all_batches(texts: list[str]):
    whole = pd.DataFrame({"text": texts})
    parts = [whole.iloc[:2], whole.iloc[2:5], whole.iloc[5:]]
    one = sem_search(whole, "text", "fruit", K=3, return_scores=True)
    many = sem_search(iter(parts), "text", "fruit", K=3, return_scores=True)
    pd.testing.assert_frame_equal(one, many, check_exact=False, atol=1e-5)
    assert list(sem_search(iter(parts), "text", "fruit", K=3).columns) == ["text"]


def test_a_similarity_join_of_batches(texts: list[str]):
    whole, right = pd.DataFrame({"text": texts}), pd.DataFrame({"kind": ["fruit", "mineral", "vehicle"]})
    one = sem_sim_join(whole, right, "text", "kind", K=1)
    many = pd.concat(sem_sim_join(iter([whole.iloc[:4], whole.iloc[4:]]), right, "text", "kind", K=1))
    pd.testing.assert_frame_equal(one, many, check_exact=False, atol=1e-5)


def test_frames_of_other_shapes_are_said_to_be_so_when_written(tmp_path: Path):
    parts = [pd.DataFrame({"n": [1], "x": [1]}), pd.DataFrame({"n": [2], "x": ["one"]})]
    with pytest.raises(InvalidArgument, match="one Parquet table"):
        sem_filter(iter(parts), "{n} is even", lm=Scripted(lambda message: "True"), to=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_warning_of_a_store_that_is_gone(live: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TAGFRAME_STORE")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = tf.sem_filter(iter(frames(1, 1)), "{n} is even")
        next(results)
        results.close()
        assert len(tf.sem_filter(frames(1)[0], "{n} is even")) == 1


# --- awaited ----------------------------------------------------------------------------------------------------------


def awaited(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


@pytest.mark.parametrize("source", ["frames", "iterator", "async iterator"])
def test_awaited_batches_give_what_blocking_ones_give(source: str, live: Server):
    live.answers = lambda request: even(request.prompt)
    parts = frames(3, 4, 0, 1)
    read = []

    def told() -> Iterator[pd.DataFrame]:
        for frame in parts:
            read.append(len(frame))
            yield frame

    async def later() -> AsyncIterator[pd.DataFrame]:
        for frame in told():
            await asyncio.sleep(0)
            yield frame

    async def work() -> list[pd.DataFrame]:
        given = {"frames": parts, "iterator": told(), "async iterator": later()}[source]
        results = await asem_filter(given, "{n} is even")
        assert (read, live.requests) == ([], [])
        found = [await anext(results)]
        assert len(live.requests) == 3
        assert source == "frames" or read == [3]
        return [*found, *[frame async for frame in results]]

    expected = list(sem_filter(parts, "{n} is even", lm=Scripted(even)))
    for mine, theirs in zip(awaited(work), expected, strict=True):
        pd.testing.assert_frame_equal(mine, theirs)


def test_awaited_results_go_to_a_folder_that_is_there_only_when_it_is_whole(live: Server, tmp_path: Path):
    live.answers = lambda request: error(400) if '"n": 3' in request.prompt else "True"
    with pytest.raises(RowsFailed):
        awaited(lambda: asem_filter(iter(frames(2, 2)), "{n} is even", to=tmp_path / "out" / "kept"))
    assert list((tmp_path / "out").iterdir()) == []
    live.answers = lambda request: even(request.prompt)
    path = awaited(lambda: asem_filter(iter(frames(2, 3)), "{n} is 2 or even", to=tmp_path / "out" / "kept"))
    assert [frame["n"].tolist() for frame in tf.read_batches(path)] == [[0, 2, 4]]


def test_the_best_and_the_nearest_of_all_batches_awaited(live: Server, texts: list[str]):
    parts = [pd.DataFrame({"text": texts[:4]}), pd.DataFrame({"text": texts[4:]})]
    asked: dict[str, Any] = {"col_name": "text", "query": "storms at sea", "K": 2}
    pd.testing.assert_frame_equal(awaited(lambda: asem_search(iter(parts), **asked)), sem_search(iter(parts), **asked))

    def order(request: Request) -> str:
        rows = shown_rows(request.prompt)
        return ", ".join(str(row + 1) for row in sorted(range(len(rows)), key=lambda row: -rows[row]["n"]))

    live.answers = order
    best = awaited(lambda: tf.asem_topk(iter(frames(5, 5, 5)), "Which {n} is largest?", 2))
    assert best["n"].tolist() == [14, 13]


def test_awaited_batches_pay_once_under_the_settings_of_the_call_and_stop_where_they_are_cancelled(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("TAGFRAME_STORE", raising=False)
    same = pd.DataFrame({"colour": ["red", "blue", "red"]})
    read = []

    def source() -> Iterator[pd.DataFrame]:
        for number in range(50):
            read.append(number)
            yield same if number < 3 else pd.DataFrame({"colour": [f"shade {number}"]})

    async def work() -> None:
        with tf.context(lm="openai/test", api_base=server.url, api_key="none", progress=False):
            results = await tf.asem_filter(source(), "{colour} is warm")
        for _ in range(3):
            assert len(await anext(results)) == 3
        assert len(server.requests) == 2
        waiting = asyncio.create_task(anext(results))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await results.aclose()

    awaited(work)
    assert len(read) <= 4
    assert len(server.requests) <= 3


def test_a_blocking_operator_does_not_take_async_batches():
    async def later() -> AsyncIterator[pd.DataFrame]:
        yield frames(1)[0]

    with pytest.raises(InvalidArgument, match="asem_filter"):
        sem_filter(later(), "{n} is even", lm=Scripted(even))
    with pytest.raises(InvalidArgument, match="to="):
        awaited(lambda: asem_filter(frames(2)[0], "{n} is even", to="somewhere"))


def test_only_a_folder_that_was_written_so_is_replaced(tmp_path: Path):
    def run(answer: Any = even, **given: Any) -> list[int]:
        to = sem_filter(iter(frames(2, 2)), "{n} is even", lm=Scripted(answer), to=tmp_path / "out", **given)
        return sorted(pd.read_parquet(to)["n"])

    assert run() == [0, 2]
    with pytest.raises(InvalidArgument, match="if_exists='replace'"):
        run()
    assert run(lambda message: "True", if_exists="replace") == [0, 1, 2, 3]
    with pytest.raises(InvalidArgument, match="if_exists must be one of"):
        run(if_exists="append")
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match="was not written by to="):
        run(if_exists="replace")
    assert (tmp_path / "out" / "mine.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_is_written_by_one_run_at_a_time(tmp_path: Path):
    def again(message: str) -> str:
        with pytest.raises(FolderInUse, match="another run writes to") as raised:
            sem_filter(iter(frames(1)), "{n} is odd", lm=Scripted(even), to=tmp_path / "out")
        assert raised.value.retryable
        return "True"

    sem_filter(iter(frames(1, 1)), "{n} is even", lm=Scripted(again), to=tmp_path / "out")
    assert len(pd.read_parquet(tmp_path / "out")) == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritten, match=r"file/out cannot be written .*: give another to=") as raised:
        sem_filter(iter(frames(1)), "{n} is odd", lm=Scripted(even), to=tmp_path / "file" / "out")
    assert not raised.value.retryable


def test_what_a_killed_run_has_left_is_removed(tmp_path: Path):
    (tmp_path / ".out.tagframe").mkdir()
    (tmp_path / ".out.tagframe" / "part-000007.parquet").write_bytes(b"half of a file")
    sem_filter(iter(frames(1)), "{n} is even", lm=Scripted(even), to=tmp_path / "out")
    assert {path.name for path in tmp_path.rglob("*")} == {"out", "part-000000.parquet"}
