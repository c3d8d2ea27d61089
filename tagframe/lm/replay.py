"""``lm="replay:STORE"``: nothing is sent, a store answers, and what it lacks is noted in it."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

from tagframe.errors import AnswerRejected, ReplayMiss
from tagframe.lm.call import Call
from tagframe.lm.dispatch import Job
from tagframe.lm.prompt import Completion, Parameters, Prompt, accepted, request_keys
from tagframe.lm.recall import recall
from tagframe.lm.store import ResponseStore, StoredAnswer
from tagframe.lm.usage import FAILED_IN_STORE, FROM_STORE

T = TypeVar("T")

REPLAY = "replay:"
"""What a model's name starts with where a store stands in for it."""


def replay(call: Call[T], store: ResponseStore) -> None:
    """Complete every job of the call from the store, whatever endpoint and model answered.

    An answer that ``accept`` rejects is repaired as a live one would be: the repairing prompt is looked up too.

    Raises:
        ReplayMiss: once all that is there has been used; what is not there is noted in the store.
    """
    missing, repairs = take(call, store)
    if missing:
        raise _miss(store, missing, call, repairs)


def take(call: Call[T], store: ResponseStore) -> tuple[list[Prompt], int]:
    """Complete what the store can; gives the prompts that it lacks, and how many of them are repairs."""
    jobs = call.jobs
    missing: list[Prompt] = []
    rejected: list[tuple[Job[T], Prompt]] = []
    for job, answer in zip(jobs, _find(store, [job.prompt for job in jobs], call.parameters), strict=True):
        if answer is None:
            missing.append(job.prompt)
        elif rejection := _complete(job, call, answer):
            rejected.append((job, job.prompt.repair(answer.text, str(rejection))))
    first_misses = len(missing)
    repairs = _find(store, [prompt for _, prompt in rejected], call.parameters)
    for (job, prompt), answer in zip(rejected, repairs, strict=True):
        if answer is None:
            missing.append(prompt)
        elif rejection := _complete(job, call, answer):
            job.completion = Completion(answer.text, None, rejection, FAILED_IN_STORE, None, "store")
    return missing, len(missing) - first_misses


def _complete(job: Job[T], call: Call[T], answer: StoredAnswer) -> AnswerRejected | None:
    try:
        value = accepted(answer.text, call.accept)
    except AnswerRejected as rejection:
        return rejection
    job.completion = Completion(answer.text, value, None, FROM_STORE, answer.logprobs, "store")
    return None


def _find(store: ResponseStore, prompts: list[Prompt], parameters: Parameters) -> list[StoredAnswer | None]:
    exact = request_keys(prompts, parameters)
    found = recall(store, exact, prompts, parameters)
    without = [i for i, key in enumerate(exact) if key not in found]
    general = dict(zip(without, request_keys([prompts[i] for i in without], None), strict=True))
    found_general = store.lookup(list(general.values()))
    return [found.get(key) or found_general.get(general.get(i, b"")) for i, key in enumerate(exact)]


def _miss(store: ResponseStore, missing: list[Prompt], call: Call[T], repairs: int) -> ReplayMiss:
    parameters = call.parameters.to_dict()
    keys = request_keys(missing, call.parameters)
    fact = f"{len(missing)} of {len(call)} prompts have no answer in {str(store.path)!r}"
    if repairs:
        fact += f" ({repairs} of them ask to repair an answer that was rejected)"
    try:
        store.note_missing(
            (key, {"messages": prompt.to_dicts(), **parameters}, prompt.sample)
            for key, prompt in zip(keys, missing, strict=True)
        )
    except sqlite3.Error as error:
        return ReplayMiss(f"{fact}, and they cannot be noted in it: {error}")
    return ReplayMiss(
        f"{fact}; they are noted in it: 'tagframe lm export {store.path} -o batch.jsonl' writes them out, and"
        f" 'tagframe lm import {store.path} ANSWERS' brings their answers in"
    )
