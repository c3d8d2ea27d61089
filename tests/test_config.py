from __future__ import annotations

import threading
from contextvars import copy_context

import numpy as np
import pytest

import tagframe as tf
from tagframe import config
from tagframe.errors import InvalidArgument, NotConfigured
from tagframe.lm import LM, get_lm


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    config.forget()
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for name in config.NAMES:
        monkeypatch.delenv(f"TAGFRAME_{name.upper()}", raising=False)
    yield
    config.forget()


def test_a_nearer_layer_wins(monkeypatch):
    assert config.current().lm is None
    monkeypatch.setenv("TAGFRAME_LM", "from/environment")
    assert config.current().lm == "from/environment"
    tf.configure(lm="from/configure")
    assert config.current().lm == "from/configure"
    with tf.context(lm="from/context"):
        assert config.current().lm == "from/context"
        assert config.current(lm="from/call").lm == "from/call"
        with tf.context(concurrency=3):
            assert (config.current().lm, config.current().concurrency) == ("from/context", 3)
    assert (config.current().lm, config.current().concurrency) == ("from/configure", 64)


def test_a_step_has_a_model_of_its_own():
    tf.configure(lm="openai/all", lm_for={"syn": "openai/strong", "sem_filter": LM("openai/cheap")})
    assert config.current().model("syn") == "openai/strong"
    assert config.current().model("gen") == config.current().model() == "openai/all"
    with tf.context(lm_for={"gen": "openai/terse"}) as settings:
        assert (settings.model("syn"), settings.model("gen")) == ("openai/all", "openai/terse")
    assert get_lm("sem_filter").model == "openai/cheap"
    assert get_lm("sem_topk").model == get_lm().model == "openai/all"
    with tf.context(lm=None, lm_for={"syn": "openai/strong"}):
        assert get_lm("syn").model == "openai/strong"
        with pytest.raises(NotConfigured):
            get_lm("gen")


def test_a_nearer_model_alone_is_that_of_all_steps():
    tf.configure(lm="openai/all", lm_for={"syn": "openai/strong"})
    assert get_lm("syn", lm="openai/call").model == "openai/call"
    with tf.context(lm="replay:answers.db"):
        assert get_lm("syn").model == "replay:answers.db"
        with tf.context(lm_for={"gen": "openai/terse"}):
            assert (get_lm("syn").model, get_lm("gen").model) == ("replay:answers.db", "openai/terse")
            with tf.context(lm="openai/inner", concurrency=3):
                assert get_lm("gen").model == "openai/inner"
            with tf.context(concurrency=3):
                assert get_lm("gen").model == "openai/terse"
    assert get_lm("syn", concurrency=3).model == "openai/strong"


def test_a_store_can_be_switched_off():
    with tf.context(store=None):
        assert config.current().store is None
    assert config.current().store == config.DEFAULT_STORE


def test_context_is_undone_by_an_error():
    with pytest.raises(ZeroDivisionError), tf.context(lm="x"):
        _ = 1 / 0
    assert config.current().lm is None


def test_context_is_of_its_thread_and_of_copies():
    seen: list[str | None] = []
    with tf.context(lm="here"):
        bare = threading.Thread(target=lambda: seen.append(config.current().lm))
        copied = threading.Thread(target=copy_context().run, args=(lambda: seen.append(config.current().lm),))
        for thread in (bare, copied):
            thread.start()
            thread.join()
    assert seen == [None, "here"]


def test_unknown_setting_names_the_nearest():
    with pytest.raises(InvalidArgument, match=r"no setting 'embeder'.*did you mean 'embedder'"):
        tf.configure(embeder="x")


BAD = {
    "lm": ["", 3],
    "api_base": ["", 8000],
    "embedder": [7, " "],
    "corpus": ["bank.sqlite"],
    "store": ["", 1],
    "budget": ["a lot", -1, True, float("nan")],
    "concurrency": [None, True, 0, -1, "many", 2.5],
    "rpm": [0, -5, "fast", float("inf")],
    "tpm": [0, True],
    "context_window": [0, 2.5],
    "timeout": [0, "10", float("inf")],
    "max_failed": [-1, 1.5, True, "5 %"],
    "lm_for": ["openai/x", {"sin": "openai/x"}, {"syn": ""}, {"syn": 3}, {3: "openai/x"}],
    "trace_contents": [None, "yes"],
    "progress": ["yes"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_value_that_is_none(name: str, value: object):
    for settings in (tf.configure, config.current):
        with pytest.raises(InvalidArgument, match=r"; got "):
            settings(**{name: value})


def test_a_key_that_is_none_is_not_shown():
    with pytest.raises(InvalidArgument) as refused:
        tf.configure(api_key=["sk-secret"])
    assert "sk-secret" not in str(refused.value)


def test_numbers_of_numpy_are_numbers():
    with tf.context(concurrency=np.int64(3), budget=np.float64(0.5), rpm=np.int64(60)) as settings:
        assert (settings.concurrency, settings.budget, settings.rpm) == (3, 0.5, 60)


def test_none_is_a_value_of_a_call_as_of_a_context():
    with tf.context(lm="openai/x", store="file.db", budget=2.0):
        assert config.current(store=None, lm=None).store is None
        assert config.current(store=None, lm=None).lm is None


def test_a_connection_is_of_a_name_not_of_an_object():
    model = LM("openai/x", api_base="http://here/v1")
    with pytest.raises(InvalidArgument, match="api_base cannot be given beside an LM object"):
        tf.configure(lm=model, api_base="http://there/v1")

    def in_context(**given: object) -> None:
        with tf.context(**given):
            pass

    with tf.context(lm=model):
        for settings in (in_context, config.current):
            with pytest.raises(InvalidArgument, match="api_key cannot be given beside an LM object"):
                settings(api_key="sk-other")
            settings(api_key=None)
            settings(lm="openai/x", api_key="sk-other")


def test_a_key_does_not_show():
    with tf.context(api_key="sk-secret") as settings:
        assert settings.api_key == "sk-secret"
        assert "sk-secret" not in repr(settings)


def test_no_corpus_says_the_ways_out():
    with pytest.raises(NotConfigured, match=r"open_corpus.*configure\(corpus"):
        config.require_corpus()


def test_the_keywords_of_a_call_are_settings():
    assert set(config.ModelSettings.__annotations__) < set(config.CallSettings.__annotations__) < {*config.NAMES}
    assert set(config.SearchSettings.__annotations__) == {*config.NAMES} - {"corpus", "timeout", "trace_contents"}
    assert set(config.AnySettings.__annotations__) == {*config.NAMES}


OUTSIDE = {
    "lm": ("openai/x", "openai/x"),
    "api_base": ("http://here/v1", "http://here/v1"),
    "api_key": ("sk-secret", "sk-secret"),
    "embedder": ("openai/small", "openai/small"),
    "store": ("none", None),
    "budget": ("2.5", 2.5),
    "concurrency": ("8", 8),
    "rpm": ("600", 600),
    "tpm": ("1e5", 1e5),
    "context_window": ("8192", 8192),
    "max_tokens": ("512", 512),
    "max_failed": ("0.05", 0.05),
    "timeout": ("2.5", 2.5),
    "lm_for": ('{syn = "openai/Strong"}', {"syn": "openai/Strong"}),
    "trace_contents": ("True", True),
    "progress": ("False", False),
}


@pytest.mark.parametrize("text", ["none", "None"])
def test_no_store_is_the_same_in_all_places(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAGFRAME_STORE", text)
    assert config.current().store is None
    with tf.context(store="other.db"):
        assert config.current().store == "other.db"
        assert config.current(store=text).store is None
        with tf.context(store=text):
            assert config.current().store is None
        assert tf.LM("openai/test", store=text).settings().store is None


@pytest.mark.parametrize("name", [name for name in config.NAMES if name != "corpus"])
def test_every_setting_is_read_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch):
    text, value = OUTSIDE[name]
    monkeypatch.setenv(f"TAGFRAME_{name.upper()}", text)
    assert getattr(config.current(), name) == value
    if name not in ("lm", "api_base", "api_key", "embedder", "store"):
        monkeypatch.setenv(f"TAGFRAME_{name.upper()}", "a lot")
        with pytest.raises(InvalidArgument, match=f"^TAGFRAME_{name.upper()}: .*; got 'a lot'"):
            config.current()


def test_a_budget_of_the_environment_is_one_account(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAGFRAME_BUDGET", "2")
    assert config.current().budget is config.current().budget


def test_a_model_of_the_environment_is_that_of_all_steps_but_those_with_their_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TAGFRAME_LM", "openai/environment")
    monkeypatch.setenv("TAGFRAME_LM_FOR", '{syn = "openai/strong"}')
    assert [config.current().model(step) for step in ("syn", "gen")] == ["openai/strong", "openai/environment"]
    tf.configure(lm="openai/nearer")
    assert config.current().model("syn") == "openai/nearer"
