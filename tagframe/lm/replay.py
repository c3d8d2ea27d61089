"""``lm="replay:STORE"``: nothing is sent, a store answers, and what it lacks is noted in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tagframe.errors import ReplayMiss
from tagframe.lm.call import Arrived, Batch, Job
from tagframe.lm.prompt import Completion, Label, Parameters, Prompt, Stored, question_in_force, request_keys
from tagframe.lm.store import ResponseStore, StoredAnswer
from tagframe.lm.store_schema import labelled
from tagframe.lm.stream import Stream, warn_of_damage
from tagframe.lm.usage import FAILED_IN_STORE

if TYPE_CHECKING:
    from tagframe.lm.model import LM

REPLAY = "replay:"
"""What a model's name starts with where a store stands in for it."""


class ReplayStream(Stream):
    """A stream that a store answers, whatever endpoint and model the answers are of.

    What the store lacks does not arrive; once nothing else is left to be taken, all of it is one
    :class:`~tagframe.errors.ReplayMiss`, so that whoever asks in several rounds goes as far as the answers reach.
    """

    def __init__(self, lm: LM, description: str) -> None:
        super().__init__(lm, description)
        self._asked = 0
        self._repairs = 0
        self._missing: list[tuple[Prompt, Parameters, Label]] = []

    def _answer(self, jobs: list[Job[Any]], batch: Batch[Any]) -> None:
        assert self._store is not None
        missing, repairs = take(jobs, self._store)
        self._asked += len(batch.prompts)
        self._repairs += repairs
        label = batch.label.or_else(Label(self._description, question_in_force()))
        self._missing += [(prompt, parameters, label) for prompt, parameters in missing]
        self._call.end(job for job in jobs if job.completion is not None)
        if missing:
            self._call.wake()

    def _taken(self) -> Arrived:
        arrived = super()._taken()
        if not arrived and self._missing:
            assert self._store is not None
            raise _miss(self._store, self._missing, self._asked, self._repairs)
        return arrived


def take(jobs: Sequence[Job[Any]], store: ResponseStore) -> tuple[list[tuple[Prompt, Parameters]], int]:
    """Complete what the store can; gives what it lacks, and how many of that are repairs.

    An answer that ``accept`` rejects is repaired as a live one would be: the repairing prompt is looked up too.
    """
    missing: list[tuple[Prompt, Parameters]] = []
    rejected: list[tuple[Job[Any], Prompt]] = []
    found = _find(store, [(job.prompt, job.parameters) for job in jobs], jobs[0].batch.stored if jobs else "any")
    for job, answer in zip(jobs, found, strict=True):
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
    store: ResponseStore, asked: Sequence[tuple[Prompt, Parameters]], stored: Stored = "any"
) -> list[StoredAnswer | None]:
    if not asked:
        return []
    prompts, parameters = [prompt for prompt, _ in asked], asked[0][1]  # those of one batch are asked alike
    exact = request_keys(prompts, parameters)
    found = store.lookup(exact, stored=stored)
    without = [i for i, key in enumerate(exact) if key not in found]
    general = dict(zip(without, request_keys([prompts[i] for i in without], None), strict=True))
    found_general = store.lookup(list(general.values()), stored=stored)
    return [found.get(key) or found_general.get(general.get(i, b"")) for i, key in enumerate(exact)]


def _miss(
    store: ResponseStore, missing: Sequence[tuple[Prompt, Parameters, Label]], asked: int, repairs: int
) -> ReplayMiss:
    fact = f"{len(missing)} of {asked} prompts have no answer in {str(store.path)!r}"
    if repairs:
        fact += f" ({repairs} of them ask to repair an answer that was rejected)"
    try:
        store.note_missing(
            (
                request_keys([prompt], parameters)[0],
                labelled({"messages": prompt.to_dicts(), **parameters.to_dict()}, label),
                prompt.sample,
            )
            for prompt, parameters, label in missing
        )
    except sqlite3.Error as error:
        return ReplayMiss(f"{fact}, and they cannot be noted in it: {error}")
    return ReplayMiss(
        f"{fact}; they are noted in it: 'tagframe lm export {store.path} -o batch.jsonl' writes them out, and"
        f" 'tagframe lm import {store.path} ANSWERS' brings their answers in"
    )
