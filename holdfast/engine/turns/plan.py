"""What a batch does with all that has arrived: values that `route` makes and the batch carries out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from holdfast.core.envelopes import Start
from holdfast.engine.requests import Answer, AnyRequest, Request
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.claims import Lookups, WorkflowKey
from holdfast.store.contract import UnroutedWrite


class TakeTurn(msgspec.Struct, frozen=True, gc=False):
    """An execution takes a turn with what has arrived for it."""

    org: str
    execution_id: str
    start: Start | None
    """The start that makes it, if it does not exist yet."""
    arrivals: Sequence[Arrival]


class AnswerRequest(msgspec.Struct, frozen=True, gc=False):
    """A request is answered after the commit; in a plan: without a turn."""

    request: AnyRequest
    answer: Answer


class AnswerLike(msgspec.Struct, frozen=True, gc=False):
    """A request repeats an earlier one of the same batch, and gets the answer of that."""

    request: Request
    first: Request


class Forward(msgspec.Struct, frozen=True, gc=False):
    """A request is for an execution that another node holds: it goes into the inbox of that after the commit."""

    request: Request
    execution_id: str


class LeaveAlone(msgspec.Struct, frozen=True):
    """What this node does not touch for the time being, since only a newer Holdfast can read something of it; with why."""

    executions: Mapping[str, str]
    workflow_ids: Mapping[WorkflowKey, str]


NOTHING_NEWER: Final = LeaveAlone({}, {})


class Plan(msgspec.Struct, frozen=True):
    """Everything that one batch does. It is complete if `lookups` is empty; else only those count."""

    lookups: Lookups
    turns: Mapping[str, TakeTurn]
    answers: Sequence[AnswerRequest]
    answers_like: Sequence[AnswerLike]
    forwards: Sequence[Forward]
    retries: Sequence[AnyRequest]
    """Requests for the next batch: another node is starting what they are for, or this batch is, and may yet fail."""
    unrouted: UnroutedWrite
    """What is written beside the turns: inbox rows that no execution takes, and what their senders are told."""
    newer: LeaveAlone
    """Executions and workflow ids for which something waits that only a newer Holdfast can read."""
    parked: Sequence[str]
    """Executions that are blocked, or whose code is missing: this node leaves them alone for the time being."""
    kept: int
    """How many of the inbox rows that are written wait for executions that no node can take: none has to look for these."""
    runs_before: Mapping[str, int]
    """Of executions whose first turn an InternalContinue brings: how many runs went before without coming to rest."""
    judged: Collection[str] = ()
    """Executions that are to be terminated only if nobody has touched them, see `Request.judged`."""
