"""What a store has for the prompts of a call, under the keys of this version and of the one before it."""

from __future__ import annotations

from collections.abc import Sequence

from tagframe.lm.prompt import Parameters, Prompt, Stored, former_keys
from tagframe.lm.store import ResponseStore, StoredAnswer


def recall(
    store: ResponseStore,
    keys: Sequence[bytes],
    prompts: Sequence[Prompt],
    parameters: Parameters,
    endpoint: str | None = None,
    model: str | None = None,
    stored: Stored = "any",
) -> dict[bytes, StoredAnswer]:
    """The stored answers by key, of that endpoint and model, or of any where none is given.

    An answer that a store of version 1 kept under a key with its length is moved to the key without, unless it reached
    that length: then it may have been cut there, and is asked anew.

    Raises:
        sqlite3.Error: where the store cannot be read.
    """
    found = store.lookup(keys, endpoint, model, stored)
    limit = parameters.limit
    if limit is None or not store.migrated or stored == "packed":
        return found
    missing = [(key, prompt) for key, prompt in zip(keys, prompts, strict=True) if key not in found]
    former = former_keys([prompt for _, prompt in missing], parameters)
    known = store.lookup(former, endpoint, model)
    whole = [
        (key, old)
        for (key, _), old in zip(missing, former, strict=True)
        if old in known and (known[old].tokens_out or 0) < limit
    ]
    if whole and store.writable:
        store.move(whole)
    return found | {key: known[old] for key, old in whole}
