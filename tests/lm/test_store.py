"""The response store: what is kept, under what, and what happens where it cannot be."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import warnings
from contextlib import closing
from pathlib import Path

import pytest

import tagframe as tf
from tag_bench.server import Reply, Request, Server, error
from tagframe.errors import AnswerRejected, DamagedStore, NotAStore, StoreWarning
from tagframe.lm import LM, Completions, Parameters, Prompt, open_store, recorded_by
from tagframe.lm.prompt import request_keys
from tagframe.lm.store import APPLICATION_ID, ResponseStore, StoredAnswer

ROWS = [Prompt.of(f"row {i}") for i in range(30)]


def strict(text: str) -> str:
    if text != "True":
        raise AnswerRejected("answer True")
    return text


def test_answers_are_paid_once(server: Server, lm: LM):
    first = lm.complete(ROWS)
    again = lm.complete(ROWS)
    assert server.count == len(ROWS)
    assert [completion.value for completion in again] == [completion.value for completion in first]
    assert {completion.origin for completion in again} == {"store"}
    assert again.usage.stored == len(ROWS)
    assert again.usage.sent == again.usage.tokens_in == 0
    assert again.usage.dollars == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"temperature": 0.5},
        {"logprobs": True},
    ],
)
def test_parameters_are_in_the_key(server: Server, lm: LM, changed: dict[str, float]):
    lm.complete(ROWS[:1])
    lm.complete(ROWS[:1], **changed)
    assert server.count == 2


def test_the_length_of_an_answer_is_not_in_the_key(server: Server, lm: LM):
    lm.complete(ROWS[:1], max_tokens=3)
    assert lm.complete(ROWS[:1], max_tokens=9)[0].origin == "store"
    assert lm.complete(ROWS[:1])[0].origin == "store"
    assert lm.with_body(max_completion_tokens=5).complete(ROWS[:1])[0].origin == "store"
    assert server.count == 1


@pytest.mark.parametrize(
    ("extra", "max_tokens", "limit", "body"),
    [
        ({}, 5, 5, {"max_tokens": 5}),
        ({"max_tokens": 7}, 5, 7, {"max_tokens": 7}),
        ({"max_completion_tokens": 9}, 5, 9, {"max_completion_tokens": 9}),
        ({"max_completion_tokens": 9}, None, 9, {"max_completion_tokens": 9}),
        ({}, None, None, {}),
    ],
)
def test_the_length_that_counts(extra: dict[str, int], max_tokens: int | None, limit: int | None, body: dict[str, int]):
    parameters = Parameters(max_tokens=max_tokens, extra=extra)
    assert parameters.limit == limit
    assert parameters.to_dict() == {"temperature": 0.0} | body


def test_model_endpoint_messages_and_sample_are_in_the_key(server: Server, lm: LM):
    lm.complete([Prompt.of("a")])
    LM("openai/other", api_base=server.url).complete([Prompt.of("a")])
    with Server() as elsewhere:
        LM("openai/test", api_base=elsewhere.url).complete([Prompt.of("a")])
        assert elsewhere.count == 1
    lm.complete([Prompt.of("a", sample=1), Prompt.of("a", system=""), Prompt.of("a ")])
    assert server.count == 5


def test_fields_in_another_order_are_the_same_request(server: Server):
    LM("openai/test", api_base=server.url, extra_body={"seed": 1, "top_p": 1}).complete(ROWS[:1])
    LM("openai/test", api_base=server.url, extra_body={"top_p": 1, "seed": 1}).complete(ROWS[:1])
    assert server.count == 1


def test_rejected_answers_and_failures_are_not_reused(server: Server, lm: LM):
    server.answers = ["no", "never", error(400, "bad row")]
    assert not lm.complete(ROWS[:1], accept=strict)[0].ok
    assert not lm.complete(ROWS[1:2])[0].ok
    server.answers = "True"
    assert lm.complete(ROWS[:2], accept=strict).usage.sent == 2


def test_a_stored_answer_that_accept_rejects_is_asked_anew(server: Server, lm: LM):
    server.answers = ["anything", "True"]
    lm.complete(ROWS[:1])
    assert lm.complete(ROWS[:1], accept=strict)[0].value == "True"
    assert lm.complete(ROWS[:1], accept=strict)[0].origin == "store"
    assert server.count == 2


def test_a_repaired_answer_is_stored_under_the_prompt_itself(server: Server, lm: LM):
    server.answers = ["no", "True"]
    lm.complete(ROWS[:1], accept=strict)
    assert lm.complete(ROWS[:1], accept=strict)[0].origin == "store"
    assert server.count == 2


def test_no_store(server: Server, lm: LM, own_store: Path):
    lm.using(store=None).complete(ROWS[:1])
    with tf.context(store=None):
        lm.complete(ROWS[:1])
    assert server.count == 2
    assert not own_store.exists()


def test_the_file_is_the_users_alone(lm: LM, own_store: Path):
    path = own_store.parent / "new folder" / "store.db"
    lm.using(store=path).complete(ROWS[:1])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_no_key_is_in_the_store(server: Server, lm: LM, own_store: Path):
    server.answers = [error(401, "wrong key sk-secret")]
    lm.complete(ROWS[:1])
    lm.complete(ROWS)
    for file in own_store.parent.glob("responses.db*"):
        assert b"sk-secret" not in file.read_bytes()


def test_another_programs_database_is_refused(server: Server, lm: LM, tmp_path: Path):
    path = tmp_path / "bank.sqlite"
    with sqlite3.connect(path) as bank:
        bank.execute("CREATE TABLE clients (id INTEGER)")
    bank.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="not a response store"):
        lm.using(store=path).complete(ROWS[:1])
    assert server.count == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize(("version", "way"), [(99, "update tagframe"), (2, "use the tagframe that made it")])
def test_a_store_of_another_version_is_refused(lm: LM, tmp_path: Path, version: int, way: str):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE answers (id INTEGER)")
        other.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        other.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(NotAStore, match=rf"version {version}.*{way}, or give another path"):
        lm.using(store=path).complete(ROWS[:1])


def test_a_file_that_is_no_database(lm: LM, tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.warns(StoreWarning, match="not a database"):
        completions = lm.using(store=path).complete(ROWS)
    assert all(completion.ok for completion in completions)
    assert path.read_text() == "not a database " * 100


def test_a_store_with_damaged_pages(server: Server, lm: LM, tmp_path: Path):
    path = tmp_path / "damaged.db"
    store = ResponseStore(path)
    source = store.source(lm.transport.endpoint, lm.model, lm.model)
    for i in range(2000):
        store.put([(i.to_bytes(32, "big"), source, StoredAnswer("text" * 20))])
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)
    with pytest.warns(StoreWarning, match="damaged.db"):
        completions = lm.using(store=path).complete(ROWS)
    assert all(completion.ok for completion in completions)


def test_a_folder_that_cannot_be_written(lm: LM, tmp_path: Path):
    if os.geteuid() == 0:
        folder = Path("/proc/tagframe")  # not even root can make a file there
        if not Path("/proc").is_dir():
            pytest.skip("root may write everywhere, and there is no /proc")
    else:
        folder = tmp_path / "read-only"
        folder.mkdir(mode=0o500)
    with pytest.warns(StoreWarning, match="responses.db|/proc"):
        completions = lm.using(store=folder / "responses.db").complete(ROWS)
    assert all(completion.ok for completion in completions)


def test_a_warning_that_is_an_error_takes_no_answers(server: Server, lm: LM, own_store: Path):
    server.answers = lambda request: request.prompt
    lm.complete([Prompt.of("before")])
    with closing(sqlite3.connect(own_store)) as other, other:
        other.execute("CREATE TRIGGER t BEFORE INSERT ON answers BEGIN SELECT raise(ABORT, 'disk full'); END")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("error")
        completions = lm.using(concurrency=4).complete([Prompt.of(f"row {number}") for number in range(40)])
    assert [one.text for one in completions] == [f"row {number}" for number in range(40)]
    assert "disk full" in str(shown[0].message)


def test_a_lock_while_a_server_changes_its_model_stops_no_other_call(server: Server, tmp_path: Path):
    def named(request: Request) -> Reply:
        return Reply(request.prompt, changes={"model": "test" if request.number < 6 else "other"})

    server.answers, server.latency = named, 0.01
    lm = LM("openai/test", api_base=server.url, store=tmp_path / "s.db", concurrency=4)
    lm.complete(ROWS[:4])
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        call = threading.Thread(target=lm.complete, args=([Prompt.of(f"row {number}") for number in range(40)],))
        call.start()
        while server.count < 8:
            time.sleep(0.001)
        with Server() as elsewhere:
            LM("openai/test", api_base=elsewhere.url, store=None).complete(ROWS[:1])  # while the lock is there
        other.execute("COMMIT")
        call.join(20)
        (stored,) = other.execute("SELECT count(*) FROM answers JOIN sources ON sources.id = source"
                                  " WHERE model LIKE '%other%'").fetchone()  # fmt: skip
    assert stored == 34


FULL_DISK = """
import resource, signal, sys, warnings
from tagframe.lm import LM, Prompt

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
warnings.simplefilter("always")
lm = LM("openai/test", api_base=sys.argv[1], store=sys.argv[2], concurrency=4)
lm.complete([Prompt.of("before")])
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
rows = [Prompt.of(f"row {i} " + "x" * 2000) for i in range(150)]
completions = lm.complete(rows)
assert all(completion.ok for completion in completions)
assert lm.complete([Prompt.of("before")])[0].origin == "store"
print("stored", sum(completion.origin == "store" for completion in lm.complete(rows)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_full_disk(server: Server, tmp_path: Path):
    server.answers = lambda request: request.prompt
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, server.url, str(tmp_path / "store.db")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "StoreWarning" in done.stderr
    assert "cannot be written" in done.stderr
    kept = int(done.stdout.split()[1])
    assert 0 < kept < 150


def test_a_store_that_may_only_be_read(server: Server, lm: LM, own_store: Path, monkeypatch: pytest.MonkeyPatch):
    lm.complete(ROWS[:2])
    open_store(own_store).close()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for anyone but root, after chmod 0400
    with pytest.warns(StoreWarning, match="is read-only"):
        usage = lm.complete(ROWS[:3]).usage
    assert (usage.stored, usage.sent) == (2, 1)
    assert lm.complete(ROWS[:2]).usage.stored == 2  # and no warning, since nothing is to be stored


def test_purge(server: Server, lm: LM, own_store: Path):
    server.answers = lambda request: "a telling answer"
    lm.complete(ROWS)
    store = open_store(own_store)
    assert store.purge(before=0) == 0
    assert store.purge() == len(ROWS)
    assert lm.complete(ROWS[:1])[0].origin == "sent"
    store.purge()
    for file in own_store.parent.glob("responses.db*"):
        assert b"a telling answer" not in file.read_bytes()


def test_a_store_deleted_between_calls_is_made_anew(server: Server, lm: LM, own_store: Path):
    lm.complete(ROWS[:1])
    for file in own_store.parent.glob("responses.db*"):
        file.unlink()
    assert lm.complete(ROWS[:1])[0].origin == "sent"
    assert lm.complete(ROWS[:1])[0].origin == "store"


def test_a_store_deleted_in_the_middle_is_said(server: Server, lm: LM, own_store: Path):
    def answers(request: Request) -> str:
        if request.number == 5:
            for file in own_store.parent.glob("responses.db*"):
                file.unlink()
        return "True"

    server.answers = answers
    with pytest.warns(StoreWarning, match="was deleted or replaced while it was open"):
        assert all(completion.ok for completion in lm.using(concurrency=1).complete(ROWS))
    assert lm.complete(ROWS[:1])[0].origin == "sent"  # a fresh start
    assert lm.complete(ROWS[:1])[0].origin == "store"


def test_opening_a_directory_is_an_error_of_the_file_system(tmp_path: Path):
    with pytest.raises((OSError, sqlite3.Error, DamagedStore)):
        ResponseStore(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork_the_child_works_on_its_own(server: Server, lm: LM):
    lm.complete(ROWS[:1])
    script = f"""
import os, sys
from tagframe.lm import LM, Prompt
lm = LM("openai/test", api_base={server.url!r})
assert lm.complete([Prompt.of("parent")])[0].ok
pid = os.fork()
if pid == 0:
    ok = lm.complete([Prompt.of("parent")])[0].origin == "store" and lm.complete([Prompt.of("child")])[0].ok
    os._exit(0 if ok else 1)
_, status = os.waitpid(pid, 0)
assert lm.complete([Prompt.of("child")])[0].origin == "store"
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_an_answer_is_on_disk_before_it_is_parsed(lm: LM, own_store: Path):
    stored: list[int] = []

    def accept(text: str) -> str:
        stored.append(sum(recorded_by(own_store).values()))
        return text

    lm.complete([Prompt.of(f"line {i}") for i in range(100)], accept)
    assert all(count > parsed for parsed, count in enumerate(stored))
    assert len(stored) == 100


# --- other processes ----------------------------------------------------------------------------------------------


def test_another_process_that_writes_for_long_costs_no_request_and_holds_up_no_other_call(
    server: Server, lm: LM, tmp_path: Path
):
    store = tmp_path / "s.db"
    waiting = lm.using(store=store, concurrency=4)
    waiting.timeout = 0.3
    waiting.complete([Prompt.of("warm up")])
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done: list[Completions[str]] = []
        thread = threading.Thread(target=lambda: done.append(waiting.complete(ROWS)))
        thread.start()
        while server.count < 5:
            time.sleep(0.01)
        assert all(one.ok for one in lm.using(store=None).complete([Prompt.of(f"other {i}") for i in range(9)]))
        time.sleep(0.5)  # longer than the timeout
        assert not done, "its answers are not stored yet"
        other.execute("ROLLBACK")
        thread.join()
    assert all(one.ok for one in done[0])
    assert server.count == 1 + len(ROWS) + 9
    assert waiting.complete(ROWS).usage.stored == len(ROWS)


def test_a_row_that_another_process_has_answered_meanwhile_is_not_sent(server: Server, lm: LM, tmp_path: Path):
    other = ResponseStore(tmp_path / "s.db")
    lm = lm.using(store=tmp_path / "s.db", concurrency=1)
    stored: list[bytes] = []

    def answer(request: Request) -> str:
        if not stored:
            stored.extend(request_keys(ROWS[:20], Parameters()))
            source = other.source(*lm.stored_as, lm.model)
            other.put([(key, source, StoredAnswer("of the other", None, 7, 1, 0.5)) for key in stored])
        return "own"

    server.answers = answer
    with closing(other):
        completions = lm.complete(ROWS)
    texts = [one.text for one in completions]
    assert texts[1:20] == ["of the other"] * 19
    assert texts[20:] == ["own"] * 10
    assert server.count == 11
    assert completions.usage.deduplicated == 19


def test_two_processes_that_begin_one_after_the_other_share_the_rows(server: Server, lm: LM, tmp_path: Path):
    server.answers = lambda request: Reply(request.prompt, latency=0.05)
    code = (
        "import sys, tagframe as tf\n"
        "lm = tf.LM('openai/test', api_base=sys.argv[1], api_key='none', store=sys.argv[2], concurrency=4)\n"
        "answers = lm.complete([tf.Prompt.of(f'row {i}') for i in range(200)])\n"
        "assert [one.text for one in answers] == [f'row {i}' for i in range(200)]\n"
    )
    arguments = [sys.executable, "-c", code, server.url, str(tmp_path / "s.db")]
    both = []
    for begun in (0, 40):
        while server.count < begun:
            time.sleep(0.01)
        both.append(subprocess.Popen(arguments))
    assert [process.wait() for process in both] == [0, 0]
    assert server.count < 260
