"""The result of retrieval: tables with reasons, and how they join."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, overload

import pandas as pd

from tagframe import results
from tagframe.corpus import Corpus
from tagframe.corpus.once import once
from tagframe.corpus.statements import Statement
from tagframe.display import Public
from tagframe.errors import (
    FanOut,
    InvalidArgument,
    NotConnected,
    RowsMultipliedWarning,
    TableNotFound,
    TagframeError,
    did_you_mean,
)
from tagframe.joins import (
    MIN_CHANCE,
    Aggregate,
    Components,
    JoinPlan,
    JoinStep,
    MergeHow,
    On,
    accepted_keys,
)
from tagframe.keys import KeyPair
from tagframe.keys.containment import overlap
from tagframe.keys.inference import ACCEPTED
from tagframe.merging import MergeArguments, Reaction, Where, run_plan
from tagframe.merging.advice import (
    Remark,
    heard,
    say_all_denied,
    say_at_once,
    say_maybe_denied,
    say_stacked,
    say_taken_as_denied,
    warn,
)
from tagframe.merging.run import check_roles
from tagframe.progress import waiting
from tagframe.retrieval.checked_plan import Proposal
from tagframe.retrieval.denied import all_denied, named_by, own_words, spelt_forms, tables_maybe_denied
from tagframe.retrieval.families import shared_name
from tagframe.retrieval.named_cells import cells_at_once, filter_of
from tagframe.retrieval.ways import plan_for
from tagframe.retrieval.words import words_in

DOUBTFUL = 0.5
"""A table with a lower probability is doubtful."""

MOST = 0.5
"""A table that only a rule needs has at least this share of the values by which the others are joined to it."""

SURE = 0.9
"""A table with a lower probability is left out where no merge with it is possible."""


@dataclass(frozen=True)
class TableHit:
    """One retrieved table.

    Attributes:
        id: ``database.table``.
        score: its score in the selector; comparable within one result only.
        reasons: why it was chosen, as short texts.
        probability: the probability that the question needs it; None if the method gives none.
        parts: if it is the first piece of a table in pieces, the ids of all pieces; a merge stacks them.
        cells: words of the question that are in its cells, as these have them: (column, words).
    """

    id: str
    score: float
    reasons: tuple[str, ...] = ()
    probability: float | None = None
    parts: tuple[str, ...] = ()
    cells: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The id; for a table in pieces, the common part of their ids: ``web.events_* (366 tables)``."""
        return f"{shared_name(self.parts)} ({len(self.parts)} tables)" if self.parts else self.id

    @property
    def doubtful(self) -> bool:
        """Whether the question probably does not need it; it was added so that the set is likely complete."""
        return self.probability is not None and self.probability < DOUBTFUL

    def needed(self) -> TableHit:
        """The same table with a probability of 1, as the user wants it."""
        return self if self.probability is None else replace(self, probability=1.0)

    def without(self, gone: Collection[str]) -> TableHit | None:
        """The same without tables of these ids; None if no piece is left."""
        left = tuple(id for id in self.parts or (self.id,) if id not in gone)
        return replace(self, id=left[0], parts=left if len(left) > 1 else ()) if left else None


@dataclass(frozen=True, eq=False)
class RetrievedTables(Public):
    """The tables that answer a question together, best first, and how they join.

    A sequence of :class:`TableHit`: ``found[0]``, ``found["bank.loan"]``, ``len(found)``, ``for hit in found``. It
    never changes, and pickles with its corpus.

    Attributes:
        question: as asked.
        tables: the tables, without the anchor.
        corpus: the corpus that was searched; it contains the anchor.
        anchor: id of the table whose rows the join plan starts from, or None.
        method: the selector that chose them.
        note: a remark on the result as a whole ("4 tables, 98% likely enough (next candidate: 2%)"), or "".
        confidence: the probability that the tables are all that the question needs; None if the method gives none.
        proposal: how a model joins the tables, as far as counts bear it out; None without one.
    """

    question: str
    tables: tuple[TableHit, ...]
    corpus: Corpus = field(repr=False)
    anchor: str | None = None
    method: str = ""
    note: str = ""
    confidence: float | None = None
    proposal: Proposal | None = field(default=None, repr=False)

    @property
    def ids(self) -> list[str]:
        """The ids of the tables; the anchor comes first, if there is one."""
        ids = [hit.id for hit in self.tables]
        return ids if self.anchor is None else [self.anchor, *ids]

    @property
    def members(self) -> list[str]:
        """The ids of all tables, with every piece of a table in pieces; the anchor first."""
        members = [id for hit in self.tables for id in hit.parts or (hit.id,)]
        return members if self.anchor is None else [self.anchor, *members]

    @property
    def join_plan(self) -> JoinPlan:
        """How the tables are joined. It may contain further tables that are needed as bridges.

        Raises:
            NotConnected: no key pairs connect the tables.
        """
        if isinstance(self._plan_then, NotConnected):
            raise self._plan_then.with_traceback(None)
        return self._plan_then

    @once
    def _plan_then(self) -> JoinPlan | NotConnected:
        """The plan, or why there is none: a notebook displays a result twice."""
        with waiting("planning the joins"):
            try:
                return next(self._planned())
            except NotConnected as error:
                return error

    def _planned(
        self,
        on: On | None = None,
        stack: bool = True,
        aggregated: Collection[str] = (),
        min_chance: float = MIN_CHANCE,
        roles: Literal["all"] | None = None,
        may_deny: bool = True,
    ) -> Iterator[JoinPlan]:
        """The plan over these tables, and others for a merge that it cannot make.

        A table that only a rule needs repeats no rows of the others by a low-confidence key, and does not lose most of
        them, unless it connects some. Parts without a key to the likeliest table are left out, if all their tables may
        not be needed. The next plan leaves out tables that may not be needed and repeat rows on both sides; the next
        one all doubtful tables, or all but one that connects the others; then those that only a rule needs, whatever
        their chance. Each further one may leave out one more table of which it is not sure that the question needs it:
        first those that it does not name, and of which it names no cell, the least likely one first. With an anchor
        there are none: its rows were chosen.
        """
        named = {table.casefold() for table in aggregated}
        hits = [
            hit for hit in self.tables if not {hit.id.casefold(), self.corpus.profile(hit.id).name.casefold()} & named
        ]
        doubtful = [hit for hit in hits if hit.doubtful]
        unsure = [hit for hit in hits if hit not in doubtful and (hit.probability or 1.0) < SURE]
        own, words = own_words(self.members), [spelt_forms(word.text) for word in words_in(self.question)]
        spoken = {table for word in words for table in named_by(word, own)}
        unsure.sort(key=lambda hit: (hit.id not in spoken and not hit.cells, -(hit.probability or 0.0)))
        proposal = self.proposal if on is None else None
        refused, plans, tables = None, list[JoinPlan](), self.members
        beside = {id for hit in doubtful for id in hit.parts or (hit.id,)}
        needed = [id for id in tables if id not in beside]
        by_rule = {id for hit in hits if hit.probability == DOUBTFUL for id in hit.parts or (hit.id,)}
        likely = [id for id in needed if id not in by_rule]
        attempts = deque([(tables, beside)])
        if self.anchor is None:
            attempts += [(needed, set[str]())] * (0 < len(needed) < len(tables))
            attempts += [(likely, set[str]())] * (0 < len(likely) < len(needed))
            for hit in reversed(unsure):
                beside = {*beside, *(hit.parts or (hit.id,))}
                attempts.append((tables, beside))
        weak = {id for hit in [*doubtful, *unsure] for id in hit.parts or (hit.id,)}
        best = {id for hit in hits[:1] for id in hit.parts or (hit.id,)}
        nameless = [id for hit in unsure if not hit.cells for id in hit.parts or (hit.id,)]
        while attempts:
            members, doubted = attempts.popleft()
            try:
                plan = plan_for(
                    self.corpus, members, self.question, anchor=self.anchor, on=on, stack=stack, roles=roles,
                    min_chance=min_chance, doubtful=doubted, unsure=nameless,
                    may_deny=may_deny and proposal is None, keys=() if proposal is None else proposal.keys,
                )  # fmt: skip
            except NotConnected as error:
                refused = refused or error
                rest = {id for group in error.groups if best.isdisjoint(group) for id in group}
                if self.anchor is None and rest <= weak and not rest <= doubted:
                    attempts.appendleft((members, doubted | rest))
                    continue
                if members is needed:  # one of the others may connect them
                    with_one = [([*needed, *(hit.parts or (hit.id,))], set[str]()) for hit in doubtful]
                    attempts.extendleft(reversed(with_one))
                continue
            leaves = _leaves(plan, by_rule, doubted) if self.anchor is None else ()
            if finer := {step.table for step in leaves if _is_faint(step, self.corpus, step.table in spoken)}:
                by_rule -= finer
                attempts.extendleft([(members, doubted), (members, {*doubted, *finer})])
                continue
            if len(members) < len(tables):
                others = {*plan.left_out, *tables} - {*members, *plan.tables}
                plan = replace(plan, left_out=tuple(sorted(others)))
            if {*plan.tables} not in [{*other.tables} for other in plans]:
                plans.append(plan)
                yield proposal.applied(plan) if proposal is not None and may_deny else plan
                crossing = {step.table for step in _leaves(plan, weak, doubted) if step.cardinality == "many-to-many"}
                if self.anchor is None and crossing:
                    attempts.appendleft((members, {*doubted, *crossing}))
        if refused is not None and not plans:
            raise refused

    @property
    def plans(self) -> list[JoinPlan]:
        """The join plan, as a list of one. If there is none, one plan for each group of tables that connects."""
        with suppress(NotConnected):
            return [self.join_plan]
        return [part.join_plan for part in self._connected()]

    @property
    def joins(self) -> list[KeyPair]:
        """The key pairs of :attr:`plans`, in their order."""
        return [step.key for plan in self.plans for step in plan.steps]

    def _connected(self) -> Iterator[RetrievedTables]:
        """The groups of two tables or more that keys connect."""
        parts = Components(self.ids)
        for key in accepted_keys(self.corpus, self.ids):
            parts.join(key.left_table, key.right_table)
        for part in parts.groups():
            anchor = self.anchor if self.anchor in part else None
            hits = tuple(hit for hit in self.tables if hit.id in part and hit.id != anchor)
            if len(part) > 1:
                yield replace(self, tables=hits, anchor=anchor)

    def merge(
        self,
        plan: JoinPlan | None = None,
        *,
        on: On | None = None,
        stack: bool | None = None,
        roles: Literal["all"] | None = None,
        how: MergeHow | None = None,
        on_fanout: Reaction = "raise",
        on_loss: Reaction = "warn",
        on_ambiguous: Reaction = "warn",
        min_chance: float = MIN_CHANCE,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        aggregate: Aggregate | None = None,
        distinct: bool = False,
    ) -> pd.DataFrame:
        """Join the tables along the plan; ``frame.tag.merge_report`` accounts for every row.

        Args:
            plan: how to join them, instead of :attr:`join_plan`.
            on: key pairs to join on, instead of the plan's: ``"orders.buyer = customers.id"``, ``"day"``, … as for
                :func:`tagframe.merge`.
            stack: whether tables of one shape, such as ``sales_2023`` and ``sales_2024``, are joined as one. If None,
                they are; a warning follows if the anchor is one of them, or ``on`` names one.
            roles: a table that another refers to by several columns (``buyer_id`` and ``seller_id``) is joined in the
                role that the question names, or in each, if it names several (``buyer.name``, ``seller.name``); with
                "all" always in each.
            min_chance: no inferred key pair with a smaller chance joins tables, in [0, 1].
            how, on_fanout, on_loss, on_ambiguous, columns, where, limit, aggregate, distinct: as for
                :func:`tagframe.merging.run_plan`. A table that ``aggregate`` names counts as needed. Without
                ``how``, a question that denies a table ("customers without orders") gets the rows without a partner
                there. A table that the question may not need is left out where no merge with it is possible.

        Raises:
            NotConnected: no key pairs connect the tables.
            FanOut: a step would repeat rows of the table that the plan starts from.
            InvalidArgument, TableNotFound, ColumnNotFound: an argument is invalid, or does not name one of these
                tables or their columns.
            SourceNotFound: the corpus has only the schema of a table, or its file is gone.
        """
        proposal = self.proposal if plan is None and on is None else None
        if proposal is not None and proposal.once and aggregate is None:
            aggregate = dict.fromkeys(proposal.once, "first")
        arguments = MergeArguments(
            how=how, on_fanout=on_fanout, on_loss=on_loss, on_ambiguous=on_ambiguous, columns=columns, where=where,
            limit=limit, aggregate=aggregate, distinct=distinct,
        )  # fmt: skip
        refused: tuple[TagframeError, list[Remark]] | None = None
        for chosen in self._plans_of(plan, on, stack, roles, min_chance, arguments):
            with heard() as remarks:
                if plan is None:
                    self._say(chosen, on, stack, how)
                try:
                    wanted = _as_proposed(proposal, chosen, arguments)
                    frame, report = run_plan(chosen, self.corpus, implied=filter_of(self.question), **wanted)
                except TagframeError as error:  # a column of a table that is left out may be wanted
                    if refused is None and not isinstance(error, FanOut | NotConnected):
                        raise
                    refused = refused or (error, remarks)
                    continue
            _say_again(remarks)
            if proposal is not None and proposal.remarks:
                report = replace(report, remarks=proposal.remarks)
            results.remember(frame, merge_report=report)
            return frame
        assert refused is not None  # there is a plan
        _say_again(refused[1])
        raise refused[0]

    def _plans_of(
        self, plan: JoinPlan | None, on: On | None, stack: bool | None, roles: Literal["all"] | None, min_chance: float,
        arguments: MergeArguments,
    ) -> Iterator[JoinPlan]:  # fmt: skip
        """The plan of a merge, and those to try where it is refused. Then :attr:`join_plan` is that of the merge."""
        check_roles(roles)
        if plan is not None:
            if on is not None or roles is not None:
                raise InvalidArgument(
                    f"pass {'on=' if roles is None else 'roles='} or a plan, not both: plan.use(…) gives a plan with "
                    "another key"
                )
            yield plan
            return
        may_deny, aggregated = arguments.get("how") in (None, "anti"), arguments.get("aggregate") or ()
        wanted = (on, stack is not False, aggregated, min_chance, roles, may_deny)
        if wanted != (None, True, (), MIN_CHANCE, None, True):
            yield from self._planned(*wanted)
            return
        first = self.join_plan
        yield first
        for other in self._planned():
            if {*other.tables} != {*first.tables}:
                self.__dict__["_plan_then"] = other
                yield other
        self.__dict__["_plan_then"] = first  # all are refused

    def _say(self, plan: JoinPlan, on: On | None, stack: bool | None, how: MergeHow | None) -> None:
        """Warn of what the plan takes for granted."""
        if stack is None:
            say_stacked(plan, on)
        if how is None and self.question and self.proposal is None:
            names = {id: self.corpus.profile(id).columns for id in self.members}
            columns = {id: [column.name for column in profile] for id, profile in names.items()}
            if plan.absent:
                if tables_maybe_denied(self.question, columns) and not any(one.parts for one in plan.sources):
                    say_taken_as_denied(plan)
                return
            say_maybe_denied(plan, tables_maybe_denied(self.question, columns))
            if all_denied(self.question, columns) and len(self.corpus.profiles) > len(names):
                say_all_denied(self.members, [one.id for one in self.corpus.profiles if one.id not in names])
            for named in cells_at_once(self.question, plan, self.corpus):
                say_at_once(*named)

    def without(self, *tables: str) -> RetrievedTables:
        """Leave out some tables, by id or name. Of a table in pieces, only the named pieces are left out.

        Raises:
            TableNotFound: a table is not among these.
            InvalidArgument: no table would be left.

        >>> import pandas as pd, tagframe as tf
        >>> loans, cards = pd.DataFrame({"loan": [1]}), pd.DataFrame({"card": [7]})
        >>> corpus = tf.open_corpus({"bank.loan": loans, "bank.card": cards})
        >>> found = tf.retrieve_tables("Which loans and which cards?", corpus, k=2)
        >>> found.without("card").ids, len(found)
        (['bank.loan'], 2)
        """
        gone = {self._member(table) for table in tables}
        return self._by_hand([hit for one in self.tables if (hit := one.without(gone)) is not None])

    def only(self, *tables: str) -> RetrievedTables:
        """Keep only some of the tables, by id or name. They all count as needed.

        Raises:
            TableNotFound: a table is not among these.
            InvalidArgument: no table would be left.
        """
        chosen = {self._member(table) for table in tables}
        gone = {*self.members} - chosen
        return self._by_hand([hit.needed() for one in self.tables if (hit := one.without(gone)) is not None])

    def add(self, *tables: str) -> RetrievedTables:
        """Add tables of the corpus, by id or name. They count as needed, even if they are in the result already.

        Raises:
            TableNotFound: the corpus has no such table.
        """
        wanted = dict.fromkeys(self.corpus.profile(table).id for table in tables)
        known = [hit.needed() if {hit.id, *hit.parts} & wanted.keys() else hit for hit in self.tables]
        new = [TableHit(id, 0.0, ("added by you",), 1.0) for id in wanted if id not in self.members]
        return self._by_hand([*known, *new])

    def _member(self, table: str) -> str:
        """The id of one of the tables, or of a piece, by its id or name; letter case does not matter."""
        profiles = [self.corpus.profile(id) for hit in self.tables for id in hit.parts or (hit.id,)]
        wanted = table.casefold()
        for names in ([profile.id for profile in profiles], [profile.name for profile in profiles]):
            matches = [profile.id for profile, name in zip(profiles, names, strict=True) if name.casefold() == wanted]
            if len(matches) == 1:
                return matches[0]
        way = ""
        with suppress(TableNotFound):
            way = f"; the corpus has it, found.add({self.corpus.profile(table).id!r}) adds it"
        raise TableNotFound(f"no table {table!r} in {did_you_mean(table, [profile.id for profile in profiles])}{way}")

    def _by_hand(self, hits: Sequence[TableHit]) -> RetrievedTables:
        if not hits and self.anchor is None:
            raise InvalidArgument(f"no table would be left; the result has {', '.join(self.ids)}")
        found = replace(self, tables=tuple(hits), note="you chose the tables", confidence=None)
        return found if self.proposal is None else replace(found, proposal=self.proposal.among(found.members))

    def correct(self, tables: Sequence[str]) -> None:
        """Say which tables the question needs. The same question then returns these; other questions learn from it.

        Args:
            tables: ids, or bare names.

        Raises:
            TableNotFound: no such table.
            InvalidArgument: no table at all.
        """
        from tagframe.learning import add_statements

        ids = [tables] if isinstance(tables, str) else list(tables) if isinstance(tables, Iterable) else []
        if not ids:
            raise InvalidArgument(f"correct(tables=[…]) takes the tables that the question needs; got {tables!r}")
        needed = tuple(sorted({self.corpus.profile(id).id for id in ids}))
        add_statements(self.corpus, [Statement(needed, question=self.question.strip(), by="user", runs={"": 1})])

    def to_frame(self) -> pd.DataFrame:
        """One row for each table, best first: id, score, probability (NaN if there is none), reasons (a list)."""
        return pd.DataFrame(
            {
                "id": [hit.id for hit in self.tables],
                "score": [hit.score for hit in self.tables],
                "probability": [float("nan") if hit.probability is None else hit.probability for hit in self.tables],
                "reasons": pd.Series([list(hit.reasons) for hit in self.tables], dtype=object),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``tagframe retrieve --json`` prints them."""
        return {
            "question": self.question,
            "tables": [
                {
                    "id": hit.id,
                    "score": round(hit.score, 6),
                    "probability": None if hit.probability is None else round(hit.probability, 6),
                    "doubtful": hit.doubtful,
                    "reasons": list(hit.reasons),
                    **({"parts": list(hit.parts)} if hit.parts else {}),
                }
                for hit in self.tables
            ],
            "joins": [{"left": key.left, "right": key.right} for key in self.joins],
            "note": self.note,
            "confidence": None if self.confidence is None else round(self.confidence, 6),
        }

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[TableHit]:
        return iter(self.tables)

    def __contains__(self, table: object) -> bool:
        return table in self.tables or any(hit.id == table for hit in self.tables)

    @overload
    def __getitem__(self, position: int | str) -> TableHit: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[TableHit, ...]: ...
    def __getitem__(self, position: int | str | slice) -> TableHit | tuple[TableHit, ...]:
        """A table by its position, id or bare name (letter case does not matter), or a slice of tables.

        Raises:
            IndexError: there are fewer tables.
            TableNotFound: no table, or more than one, has that name.
        """
        if not isinstance(position, str):
            return self.tables[position]
        id = self._member(position)
        return next(hit for hit in self.tables if id in (hit.id, *hit.parts))

    def __getstate__(self) -> dict[str, Any]:
        # Locks do not pickle; the join plan is pickled if it was made.
        names = {one.name for one in fields(self)}
        names |= {"_plan_then"} if isinstance(self.__dict__.get("_plan_then"), JoinPlan) else set()
        return {name: value for name, value in self.__dict__.items() if name in names} | {"tables": self.tables}

    def __repr__(self) -> str:
        from tagframe.display import retrieved_text

        return retrieved_text(self, self._plan()[0])

    def _repr_html_(self) -> str:
        from tagframe.display import retrieved_html

        return retrieved_html(self, *self._plan())

    def _plan(self) -> tuple[JoinPlan | None, str]:
        """The join plan, or why there is none."""
        try:
            return self.join_plan, ""
        except NotConnected as error:
            return None, str(error)


def _leaves(plan: JoinPlan, tables: Collection[str], doubted: Collection[str]) -> list[JoinStep]:
    """The steps to those of some tables that connect no others but doubted ones, from a start at which the fewest
    repeat rows."""
    needed = [table for table in plan.tables if table not in {*tables, *doubted}]
    steps = min((plan.restarted(one).steps for one in needed), key=lambda some: sum(s.grows for s in some), default=())
    stay = {*needed}
    for step in reversed(steps):
        stay |= step.key.tables if step.table in stay else set()
    return [step for step in steps if step.table in tables and step.table not in stay]


def _is_faint(step: JoinStep, corpus: Corpus, is_named: bool) -> bool:
    """Whether a step repeats rows by a low-confidence key, or loses most of them, is no finer, and leads to a table
    that the question does not name."""
    if step.grows or is_named:
        return step.grows and step.score < ACCEPTED
    sides = [(step.base, step.base_columns), (step.table, step.columns)]
    if len(step.columns) > 1 or not all(id in corpus for id, _ in sides):
        return False
    found = overlap(*(corpus.profile(id).column(names[0]).sketch for id, names in sides))
    return found is not None and found.share < MOST


def _as_proposed(proposal: Proposal | None, plan: JoinPlan, arguments: MergeArguments) -> MergeArguments:
    """The arguments of a merge, with the kind of joins and the conditions of a model's plan where none are given."""
    if proposal is None:
        return arguments
    own, where = proposal.where_in(plan), arguments.get("where")
    if where is None or isinstance(where, Mapping):
        given = {plan.find_column(name) for name in where or ()}
        own = {name: value for name, value in own.items() if plan.find_column(name) not in given}
        where = {**own, **(where or {})} or None
    return {**arguments, "how": arguments.get("how") or proposal.how_of(plan), "where": where}


def _say_again(remarks: Iterable[Remark]) -> None:
    for remark in remarks:
        warn(*remark)


def merge_tables(corpus: Corpus, tables: Sequence[str], **arguments: Any) -> pd.DataFrame:
    """The result of :meth:`tagframe.corpus.Corpus.merge`."""
    if not tables:
        raise InvalidArgument('merge("orders", "customers") joins tables of the corpus; none is named')
    ids = [*dict.fromkeys(corpus.profile(table).id for table in tables)]
    refused: FanOut | None = None
    for anchor in ids:
        hits = tuple(TableHit(id, 0.0) for id in ids if id != anchor)
        with heard() as remarks:
            try:
                frame = RetrievedTables("", hits, corpus, anchor).merge(**arguments)
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
        _say_again(remarks)
        return frame
    assert refused is not None  # there is a table to start from
    raise refused
