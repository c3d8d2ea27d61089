"""lm="replay:STORE", and the way out of its misses: export, answer, import."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import tagframe as tf
from tag_bench.server import Server
from tagframe.cli import lm as commands
from tagframe.cli import main
from tagframe.errors import AnswerRejected, DamagedStore, InvalidArgument, NotAStore, ReplayMiss
from tagframe.lm import LM, Prompt, export_requests, get_lm, import_answers, recorded_by

ROWS = [Prompt.of(f"row {i}", system="True or False?") for i in range(5)]


def strict(text: str) -> bool:
    if text not in ("True", "False"):
        raise AnswerRejected("answer True or False")
    return text == "True"


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return path


def exported(store: Path) -> list[dict[str, object]]:
    out = store.with_suffix(".jsonl")
    export_requests(store, out)
    return [json.loads(line) for line in out.read_text().splitlines()]


def batch_line(request: dict[str, object], text: object, status: int = 200) -> dict[str, object]:
    """A line of a provider's batch output."""
    body = {"model": "gpt-4o-mini", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    body["usage"] = {"prompt_tokens": 9, "completion_tokens": 1}
    return {
        "id": "batch_req_1",
        "custom_id": request["custom_id"],
        "response": {"status_code": status, "request_id": "1", "body": body if status == 200 else {"error": {}}},
        "error": None,
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "answers.db"


def test_a_live_store_is_replayed_whatever_the_model(server: Server, lm: LM, store: Path):
    server.answers = lambda request: "True" if request.prompt == "row 1" else "False"
    lm.using(store=store).complete(ROWS, accept=strict)
    sent = server.count
    with tf.context(lm=f"replay:{store}", api_base="http://127.0.0.1:9/v1"):
        completions = get_lm().complete(ROWS, accept=strict)
    assert [completion.value for completion in completions] == [False, True, False, False, False]
    assert {completion.origin for completion in completions} == {"store"}
    assert server.count == sent
    assert recorded_by(store) == {"openai/test": 5}


def test_misses_say_what_they_are_part_of(store: Path):
    replay = LM(f"replay:{store}")
    frame = pd.DataFrame({"city": ["Porto"]})
    with pytest.raises(ReplayMiss):
        frame.tag.sem_filter("{city} is by the sea", lm=replay)
    with pytest.raises(ReplayMiss):
        frame.tag.sem_map("the country of {city}", lm=replay)
    first, second = sorted(str(line["custom_id"]) for line in exported(store))
    assert [first.split("/")[0], second.split("/")[0]] == ["sem_filter", "sem_map"]
    assert {len(one.split("/")[1]) for one in (first, second)} == {64}


def test_misses_of_a_whole_call_are_one_error_and_noted(store: Path):
    replay = LM(f"replay:{store}")
    with pytest.raises(ReplayMiss, match=r"^5 of 6 prompts have no answer in .*tagframe lm export"):
        replay.complete([*ROWS, ROWS[0]], accept=strict, max_tokens=4)
    with pytest.raises(ReplayMiss, match=r"^2 of 2 prompts .* noted there, 5 in all: "):
        replay.complete(ROWS[:2], accept=strict, max_tokens=4)  # noted once
    lines = exported(store)
    assert len(lines) == 5
    assert lines[0]["method"] == "POST"
    assert lines[0]["url"] == "/v1/chat/completions"
    assert lines[0]["body"] == {
        "model": "gpt-4o-mini",
        "messages": [{"role": "system", "content": "True or False?"}, {"role": "user", "content": "row 0"}],
        "temperature": 0.0,
        "max_tokens": 4,
    }
    assert len(str(lines[0]["custom_id"])) == 64
    assert stat.S_IMODE(store.with_suffix(".jsonl").stat().st_mode) == 0o600


def test_a_providers_batch_output(store: Path, tmp_path: Path):
    replay = LM(f"replay:{store}")
    with pytest.raises(ReplayMiss):
        replay.complete(ROWS, accept=strict)
    requests = exported(store)
    lines = [batch_line(request, "True") for request in requests[:4]] + [batch_line(requests[4], None, 500)]
    done = import_answers(store, write(tmp_path / "output.jsonl", lines))
    assert done.answers == 4
    assert done.failed == (requests[4]["custom_id"],)
    assert str(done) == "4 answers imported (4 by gpt-4o-mini); 1 failed and stay missing"
    assert len(exported(store)) == 1
    with pytest.raises(ReplayMiss, match=r"^1 of 5"):
        replay.complete(ROWS, accept=strict)
    assert replay.complete(ROWS[:4], accept=strict)[0].value is True


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085", "\u00a0", "\u200b", "\ufeff", "\x7f", "\u061c"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_batch_output_ends_lines_where_json_does(store: Path, tmp_path: Path, end: str, odd: str, mark: str):
    replay = LM(f"replay:{store}")
    with pytest.raises(ReplayMiss):
        replay.complete(ROWS[:3])
    lines = [json.dumps(batch_line(request, f"a{odd}b"), ensure_ascii=False) for request in exported(store)]
    output = tmp_path / "output.jsonl"
    output.write_bytes((mark + end.join(lines) + end).encode())
    assert import_answers(store, output).answers == 3
    assert [one.text for one in replay.complete(ROWS[:3])] == [f"a{odd}b"] * 3


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "error", "SAFETY", "whatever"])
def test_a_batch_answer_that_is_not_whole_stays_missing(store: Path, tmp_path: Path, reason: str):
    with pytest.raises(ReplayMiss):
        LM(f"replay:{store}").complete(ROWS[:1])
    line = batch_line(exported(store)[0], "Half a sen")
    line["response"]["body"]["choices"][0]["finish_reason"] = reason  # type: ignore[index]
    done = import_answers(store, write(tmp_path / "output.jsonl", [line]))
    assert (done.answers, len(done.failed), len(exported(store))) == (0, 1, 1)


def test_a_batch_answer_at_a_tool_that_was_offered(store: Path, tmp_path: Path):
    replay = LM(f"replay:{store}", extra_body={"tools": [{"type": "function"}]})
    with pytest.raises(ReplayMiss):
        replay.complete(ROWS[:1])
    line = batch_line(exported(store)[0], "True")
    line["response"]["body"]["choices"][0]["finish_reason"] = "tool_calls"  # type: ignore[index]
    assert import_answers(store, write(tmp_path / "output.jsonl", [line])).answers == 1
    assert replay.complete(ROWS[:1])[0].text == "True"


def test_answers_by_hand(store: Path, tmp_path: Path):
    replay = LM(f"replay:{store}")
    with pytest.raises(ReplayMiss):
        replay.complete(ROWS[:1])
    by_id = {"custom_id": exported(store)[0]["custom_id"], "answer": "True"}
    by_messages = {"messages": ROWS[1].to_dicts(), "answer": "False"}
    other_sample = {"messages": ROWS[1].to_dicts(), "answer": "True", "sample": 1, "recorded_by": "Ada"}
    done = import_answers(store, write(tmp_path / "hand.jsonl", [by_id, by_messages, other_sample]))
    assert done.recorded_by == {"by hand": 2, "Ada": 1}
    assert str(done) == "3 answers imported (2 by hand, 1 by Ada)"
    twice = write(tmp_path / "twice.jsonl", [by_messages | {"answer": "True"}, by_id, by_messages])
    assert str(import_answers(store, twice)) == "2 answers imported (2 by hand); a later line replaced 1 answer"
    assert [c.text for c in replay.complete(ROWS[:2])] == ["True", "False"]
    assert replay.complete([ROWS[1]], max_tokens=9, logprobs=True)[0].text == "False"  # for all parameters
    assert replay.complete([Prompt(ROWS[1].messages, sample=1)])[0].text == "True"
    assert recorded_by(store) == {"by hand": 2, "Ada": 1}


def test_answers_for_certain_parameters(store: Path, tmp_path: Path):
    lines = [
        {"messages": ROWS[0].to_dicts(), "answer": "True", "parameters": {"temperature": 0.5, "max_tokens": 5}},
        {"messages": ROWS[0].to_dicts(), "answer": "False"},
    ]
    import_answers(store, write(tmp_path / "hand.jsonl", lines))
    replay = LM(f"replay:{store}")
    assert replay.complete(ROWS[:1], temperature=0.5, max_tokens=6)[0].text == "True"  # its length is no parameter
    assert replay.complete(ROWS[:1], temperature=0.7)[0].text == "False"


def test_the_newest_answer_counts(store: Path, tmp_path: Path):
    for answer, who in (("True", "Ada"), ("False", "Ben"), ("True", "Ben")):
        import_answers(store, write(tmp_path / "a.jsonl", [{"messages": ROWS[0].to_dicts(), "answer": answer}]), who)
    assert LM(f"replay:{store}").complete(ROWS[:1])[0].text == "True"
    assert recorded_by(store) == {"Ada": 1, "Ben": 1}


def test_a_rejected_answer_asks_for_its_repair(store: Path, tmp_path: Path):
    replay = LM(f"replay:{store}")
    import_answers(store, write(tmp_path / "a.jsonl", [{"messages": ROWS[0].to_dicts(), "answer": "Maybe"}]))
    with pytest.raises(ReplayMiss, match="1 of them ask to repair"):
        replay.complete(ROWS[:1], accept=strict)
    request = exported(store)[0]
    assert "answer True or False" in request["body"]["messages"][-1]["content"]  # type: ignore[index]
    import_answers(store, write(tmp_path / "b.jsonl", [{"custom_id": request["custom_id"], "answer": "False"}]))
    assert replay.complete(ROWS[:1], accept=strict)[0].value is False
    import_answers(store, write(tmp_path / "b.jsonl", [{"custom_id": request["custom_id"], "answer": "Perhaps"}]))
    completion = replay.complete(ROWS[:1], accept=strict)[0]
    assert isinstance(completion.error, AnswerRejected)
    assert completion.usage.failed == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no json", "line 2.*is not an answer: Expecting value"),
        ("[1]", "line 2.*is not a JSON object"),
        ('{"answer": "True"}', "neither 'custom_id' nor 'messages'"),
        ('{"custom_id": "row-1", "answer": "True"}', "line 2"),
        ('{"custom_id": "aabb", "answer": "True"}', "not one that was exported"),
        ('{"messages": [{"role": "user"}], "answer": "True"}', "role"),
        ('{"messages": [], "answer": 1}', "'answer' must be a text"),
        ('{"custom_id": "aabb"}', "neither 'answer' nor 'response'"),
    ],
)
def test_a_line_that_is_no_answer(store: Path, tmp_path: Path, line: str, reason: str):
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps({"messages": ROWS[0].to_dicts(), "answer": "True"}) + "\n" + line + "\n")
    with pytest.raises(InvalidArgument, match=reason):
        import_answers(store, file)
    assert not store.exists() or recorded_by(store) == {}


def test_a_store_that_is_none(tmp_path: Path):
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"garbage" * 1000)
    with pytest.raises(DamagedStore):
        LM(f"replay:{garbage}").complete(ROWS)
    with pytest.raises(NotAStore):
        export_requests(garbage, tmp_path / "out.jsonl")
    with pytest.raises(FileNotFoundError):
        recorded_by(tmp_path / "nothing.db")


def test_a_file_of_recorded_answers_is_replayed_and_left_as_it_is(tmp_path: Path):
    lines: list[dict[str, object]] = [{"messages": prompt.to_dicts(), "answer": "True"} for prompt in ROWS[:4]]
    file = write(tmp_path / "answers.jsonl", lines)
    before = file.read_bytes()
    recorded = LM(f"replay:{file}")
    assert [done.text for done in recorded.complete(ROWS[:4])] == ["True"] * 4
    with pytest.raises(ReplayMiss, match=r"1 of 5 prompts .*'tagframe lm import STORE .*answers.jsonl'"):
        recorded.complete(ROWS)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_a_file_of_recorded_answers_is_read_again_once_it_was_changed(tmp_path: Path):
    file = write(tmp_path / "answers.jsonl", [{"messages": ROWS[0].to_dicts(), "answer": "True"}])
    recorded = LM(f"replay:{file}")
    assert recorded.complete(ROWS[:1])[0].text == "True"
    write(file, [{"messages": ROWS[0].to_dicts(), "answer": "False"}])
    assert recorded.complete(ROWS[:1])[0].text == "False"


def test_a_file_of_recorded_answers_that_is_none(tmp_path: Path):
    with pytest.raises(InvalidArgument, match=r"no file of recorded answers at .*nothing.jsonl"):
        LM(f"replay:{tmp_path / 'nothing.jsonl'}").complete(ROWS)
    with pytest.raises(InvalidArgument, match=r"line 1 of .*requests.jsonl' is not an answer"):
        LM(f"replay:{write(tmp_path / 'requests.jsonl', [{'body': {}}])}").complete(ROWS)
    assert not (tmp_path / "nothing.jsonl").exists()


def test_a_replayed_store_that_is_read_only(server: Server, lm: LM, store: Path):
    lm.using(store=store).complete(ROWS)
    from tagframe.lm import open_store

    open_store(store).close()
    store.chmod(0o400)
    store.parent.chmod(0o500)
    try:
        assert LM(f"replay:{store}").complete(ROWS)[0].text == "True"
    finally:
        store.parent.chmod(0o700)


def test_the_commands(store: Path, tmp_path: Path):
    replay = LM(f"replay:{store}")
    with pytest.raises(ReplayMiss):
        replay.complete(ROWS)
    run = CliRunner()
    batch = tmp_path / "batch.jsonl"
    done = run.invoke(commands, ["export", str(store), "-o", str(batch), "--model", "gpt-4.1-mini"])
    assert (done.exit_code, done.output) == (0, f"5 requests written to {batch}\n")
    requests = [json.loads(line) for line in batch.read_text().splitlines()]
    assert requests[0]["body"]["model"] == "gpt-4.1-mini"
    answers = write(tmp_path / "answers.jsonl", [{"custom_id": r["custom_id"], "answer": "True"} for r in requests])
    done = run.invoke(commands, ["import", str(store), str(answers)])
    assert (done.exit_code, done.output) == (0, "5 answers imported (5 by hand)\n")
    assert replay.complete(ROWS, accept=strict)[4].value is True
    assert run.invoke(commands, ["purge", str(store)], input="n\n").exit_code == 1
    done = run.invoke(commands, ["purge", str(store), "--older-than", "1", "--yes"])
    assert done.output == f"0 answers deleted from {store}\n"
    done = run.invoke(commands, ["purge", str(store), "--yes"])
    assert done.output == f"5 answers deleted from {store}\n"
    with pytest.raises(ReplayMiss):
        replay.complete(ROWS)


def test_the_commands_say_what_is_wrong(tmp_path: Path):
    run = CliRunner()
    nothing = str(tmp_path / "nothing.db")
    for arguments in (["export", nothing, "-o", str(tmp_path / "o")], ["purge", nothing, "--yes"]):
        done = run.invoke(main, ["lm", *arguments])
        assert done.exit_code == 1
        assert "no response store at" in done.output
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}")
    done = run.invoke(main, ["lm", "import", nothing, str(bad)])
    assert (done.exit_code, "line 1" in done.output) == (1, True)


def test_answers_by_messages_settle_misses_of_any_parameters(store: Path, tmp_path: Path):
    with pytest.raises(ReplayMiss):
        LM(f"replay:{store}").complete(ROWS[:2], accept=strict, max_tokens=4)
    answers = [{"messages": ROWS[0].to_dicts(), "answer": "True"}]
    import_answers(store, write(tmp_path / "answers.jsonl", answers))
    assert [line["body"]["messages"][-1]["content"] for line in exported(store)] == ["row 1"]
