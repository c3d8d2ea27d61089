"""``lm="replay:STORE"``: nothing is sent, answers come from a store, and missing ones are noted in it.

``lm="replay:FILE.jsonl"`` takes answers from a file of recorded answers, which does not change.
"""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagframe.errors import InvalidArgument, ReplayMiss
from tagframe.lm.batch import read_answers
from tagframe.lm.call import Arrived, Batch, Job
from tagframe.lm.prompt import Completion, Label, Parameters, Prompt, Stored, question_in_force, request_keys
from tagframe.lm.store import ResponseStore, StoredAnswer, create, labelled, open_store, warn_of_damage
from tagframe.lm.stream import Stream
from tagframe.lm.usage import FAILED_IN_STORE

if TYPE_CHECKING:
    from tagframe.lm.model import LM

REPLAY = "replay:"
"""The prefix of a model's name that names a response store instead."""


class RecordedAnswers(ResponseStore):
    """The answers of a file as :func:`tagframe.lm.import_answers` takes it, in a store in memory.

    Raises:
        InvalidArgument: a line is not an answer.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        answers, _ = read_answers(path)
        super().__init__(path)
        self.put_imported(answers)
        self._connection.execute("PRAGMA query_only = ON")

    def _open(self) -> sqlite3.Connection:
        self.read_only = True
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        create(connection)
        return connection


@functools.lru_cache(maxsize=8)
def _recorded(path: Path, modified: int, size: int) -> RecordedAnswers:
    """The answers of a file as it is now: it is read again once it was changed."""
    return RecordedAnswers(path)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_recorded.cache_clear)  # SQLite connections do not survive a fork


def open_replayed(name: str) -> ResponseStore:
    """The store that ``lm="replay:NAME"`` reads: a response store, or a file of recorded answers (``.jsonl``).

    Raises:
        InvalidArgument: there is no such file of answers, or a line of it is no answer.
        NotAStore, DamagedStore, OSError, sqlite3.Error: see :class:`~tagframe.lm.store.ResponseStore`.
    """
    if not name.endswith(".jsonl"):
        return open_store(name)
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise InvalidArgument(f"no file of recorded answers at {str(path)!r}")
    return _recorded(path, path.stat().st_mtime_ns, path.stat().st_size)


class ReplayStream(Stream):
    """A stream that is answered from a store, with answers of any endpoint and model.

    Prompts without an answer do not arrive. When nothing else is left to take, one
    :class:`~tagframe.errors.ReplayMiss` covers all of them, so that an operator with several rounds goes as far as the
    stored answers reach.
    """

    def __init__(self, lm: LM, description: str) -> None:
        super().__init__(lm, description)
        self._prompts = 0
        self._repairs = 0
        self._missing: list[tuple[Prompt, Parameters, Label]] = []
        self._packs: list[tuple[bytes, list[tuple[str, bytes]]]] = []

    def _answer(self, jobs: list[Job[Any]], batch: Batch[Any]) -> None:
        assert self._store is not None
        missing, repairs = take(jobs, self._store)
        self._prompts += len(batch.prompts)
        self._repairs += repairs
        label = batch.label.or_else(Label(self._description, question_in_force()))
        self._missing += [(prompt, parameters, label) for prompt, parameters in missing]
        self._call.end(job for job in jobs if job.completion is not None)
        for job in jobs:
            if job.completion is None and batch.rows is not None:
                lines, alone = zip(*batch.rows(job.position), strict=True)
                keys = request_keys(alone, job.parameters)
                self._packs.append((job.key, list(zip(lines, keys, strict=True))))
        if missing:
            self._call.wake()

    def _taken(self) -> Arrived:
        arrived = super()._taken()
        if not arrived and self._missing:
            assert self._store is not None
            raise _miss(self._store, self._missing, self._packs, self._prompts, self._repairs)
        return arrived


def take(jobs: Sequence[Job[Any]], store: ResponseStore) -> tuple[list[tuple[Prompt, Parameters]], int]:
    """Complete the jobs that have a stored answer; gives the missing requests, and how many of them are repairs.

    An answer that ``accept`` rejects is repaired as a live one would be: the repair prompt is looked up too.
    """
    missing: list[tuple[Prompt, Parameters]] = []
    rejected: list[tuple[Job[Any], Prompt]] = []
    answers = _find(store, [(job.prompt, job.parameters) for job in jobs], jobs[0].batch.stored if jobs else "any")
    for job, answer in zip(jobs, answers, strict=True):
        if answer is None:
            missing.append((job.prompt, job.parameters))
        elif rejection := job.take_stored(answer):
            rejected.append((job, job.prompt.repair(answer.text, str(rejection))))
    first_misses = len(missing)
    repairs = _find(store, [(prompt, job.parameters) for job, prompt in rejected])
    for (job, prompt), answer in zip(rejected, repairs, strict=True):
        if answer is None:
            missing.append((prompt, job.parameters))
        elif rejection := job.take_stored(answer):
            job.completion = Completion(answer.text, None, rejection, FAILED_IN_STORE, None, "store")
    warn_of_damage(store)
    return missing, len(missing) - first_misses


def _find(
    store: ResponseStore, requests: Sequence[tuple[Prompt, Parameters]], stored: Stored = "any"
) -> list[StoredAnswer | None]:
    if not requests:
        return []
    prompts, parameters = [prompt for prompt, _ in requests], requests[0][1]  # those of one batch are asked alike
    exact = request_keys(prompts, parameters)
    exact_answers = store.lookup(exact, stored=stored)
    without = [i for i, key in enumerate(exact) if key not in exact_answers]
    general = dict(zip(without, request_keys([prompts[i] for i in without], None), strict=True))
    general_answers = store.lookup(list(general.values()), stored=stored)
    return [exact_answers.get(key) or general_answers.get(general.get(i, b"")) for i, key in enumerate(exact)]


def _miss(
    store: ResponseStore,
    missing: Sequence[tuple[Prompt, Parameters, Label]],
    packs: Sequence[tuple[bytes, Sequence[tuple[str, bytes]]]],
    prompts: int,
    repairs: int,
) -> ReplayMiss:
    fact = f"{len(missing)} of {prompts} prompts have no answer in {str(store.path)!r}"
    if repairs:
        fact += f" ({repairs} of them ask to repair an answer that was rejected)"
    if isinstance(store, RecordedAnswers):
        return ReplayMiss(
            f"{fact}; 'tagframe lm import STORE {store.path}' makes a store of the file; lm='replay:STORE' then notes"
            " missing prompts in it"
        )
    try:
        store.note_missing(
            (
                request_keys([prompt], parameters)[0],
                labelled({"messages": prompt.to_dicts(), **parameters.to_dict()}, label),
                prompt.sample,
            )
            for prompt, parameters, label in missing
        )
        store.note_formed(packs)
        noted = store.count_missing()
    except sqlite3.Error as error:
        return ReplayMiss(f"{fact}, and they cannot be noted in it: {error}")
    fact += "; they are noted there" + (f", {noted:,} in all" if noted > len(missing) else "")
    return ReplayMiss(
        f"{fact}: 'tagframe lm export {store.path} -o batch.jsonl' writes them to a file, and"
        f" 'tagframe lm import {store.path} ANSWERS' imports their answers"
    )
