"""A merge of tables of a corpus that the user names: for ``corpus.merge`` and the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import pandas as pd

from tagframe import results
from tagframe.corpus import Corpus
from tagframe.corpus.references import NamedTable
from tagframe.errors import FanOut, InvalidArgument, RowsMultipliedWarning
from tagframe.joins import MIN_CHANCE, On, keys_on, plan_tables
from tagframe.merging.advice import heard, say_stacked, warn
from tagframe.merging.frames import check_roles
from tagframe.merging.run import MergeArguments, run_plan


def merge_tables(
    corpus: Corpus,
    tables: Sequence[str],
    *,
    on: On | None = None,
    stack: bool | None = None,
    roles: Literal["all"] | None = None,
    min_chance: float = MIN_CHANCE,
    **arguments: Unpack[MergeArguments],
) -> pd.DataFrame:
    """The result of :meth:`tagframe.corpus.Corpus.merge`."""
    if not tables:
        raise InvalidArgument('merge("orders", "customers") joins tables of the corpus; none is named')
    check_roles(roles)
    profiles = [corpus.profile(table) for table in tables]
    ids = [*dict.fromkeys(profile.id for profile in profiles)]
    given = [] if on is None else keys_on(on, list(map(NamedTable.of, profiles)))
    databases = {profile.database for profile in profiles}
    around = [profile.id for profile in corpus.profiles if profile.database in databases and profile.id not in ids]
    refused: FanOut | None = None
    for anchor in ids:
        with heard() as remarks:
            try:
                plan = plan_tables(
                    corpus, ids, anchor=anchor, given=given, bridges=around, stack_unions=stack is not False,
                    roles=roles, min_chance=min_chance,
                )  # fmt: skip
                if stack is None:
                    say_stacked(plan, on)
                frame, report = run_plan(plan, corpus, **arguments)
            except FanOut as error:
                if arguments.get("how") in ("left", "right", "anti"):  # it keeps the rows of the first table
                    raise
                refused = refused or error
                continue
        if anchor != ids[0]:
            warn(
                f"the result has the rows of {anchor}, because rows of {ids[0]} would be repeated",
                RowsMultipliedWarning,
            )
        for remark in remarks:
            warn(*remark)
        results.remember(frame, merge_report=report)
        return frame
    assert refused is not None  # there is a table to start from
    raise refused
