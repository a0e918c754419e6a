"""What this node cannot take is left to nodes that can: on the route of its execution, in its inbox."""

from __future__ import annotations

import msgspec

from holdfast.core import codec
from holdfast.core.effects import Limits, Turn
from holdfast.core.envelopes import AnyEnvelope, Cancel, Signal, Start, Terminate
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.engine.batches.programs import Live
from holdfast.engine.batches.requests import Accepted, Opened, Request
from holdfast.engine.batches.routing import Router
from holdfast.engine.batches.settling import Taken
from holdfast.engine.batches.stand_ins import NoProgram
from holdfast.engine.batches.work import Work
from holdfast.engine.batches.writing import make_request_rows
from holdfast.engine.rows import to_row
from holdfast.store.contract import InboxRow, Route, TurnWrite


def keep_requests(work: Work, router: Router, route: Route) -> None:
    """Put what this node itself feeds in into the inbox of its execution, and answer who asked. Rows stay where they are."""
    for envelope, source in zip(work.arrived, work.sources, strict=True):
        if not isinstance(source, Request):
            continue
        kept = source.keyed_envelope if type(envelope) is Signal else envelope
        router.loose.write.outgoing.append(InboxRow(work.org, work.execution_id, "", codec.encode(kept), route=route))
        if isinstance(envelope, Cancel | Terminate):
            router.answers.append((source, True))
        elif source.is_start:
            router.answers.append((source, Opened(work.execution_id, created=False)))
        else:
            router.answers.append((source, Accepted(work.execution_id, None)))
    work.clear()


def keep_rows(work: Work, router: Router, route: Route) -> None:
    """Let rows wait for an execution that takes no turn now. They stay, but none by its workflow id: it can be skipped so.

    Those behind one that moves move too, and keep their order.
    """
    moves = False
    for envelope, source in zip(work.arrived, work.sources, strict=True):
        if type(source) is int:
            moves = moves or router.loose.is_by_workflow_id(source)
            if moves:
                router.loose.readdress(source, work.execution_id, envelope, route)


def leave(work: Work, router: Router, route: Route) -> None:
    """Leave everything that arrived for an execution to whoever takes its turns."""
    for row_id in work.consumed:
        router.loose.reroute(row_id, route)
    keep_requests(work, router, route)


def register(work: Work, now: Instant, limits: Limits, trying: str = "") -> Taken:
    """Make an execution whose first turn others take: it has its workflow id, and its inbox holds what arrived.

    If `trying` names a node, that is about to take its first turn with care.
    """
    assert work.new is not None  # noqa: S101 - only new ones are registered
    execution = Execution.register(work.org, work.new, now)
    execution.state_version = 1
    if trying:
        execution.details.tries, execution.details.trying = 1, trying
    turn = Turn(execution, now, limits)
    turn.answers = {index: True for index, envelope in enumerate(work.arrived) if isinstance(envelope, Cancel | Terminate)}
    row = to_row(execution)
    write = TurnWrite(row=row, expected_version=None, consumed=work.consumed)
    write.requests = make_request_rows(work, turn)
    write.outgoing = [
        InboxRow(work.org, work.execution_id, "", codec.encode(_without_key(envelope)), route=row.route)
        for envelope in work.arrived
    ]
    return Taken(work, Live(execution, NoProgram(), None, 0), turn, write)


def _without_key(envelope: AnyEnvelope) -> AnyEnvelope:
    """The key of its request is remembered from now on: with it, it would be taken for a repetition."""
    if isinstance(envelope, Signal | Start) and envelope.request is not None:
        return msgspec.structs.replace(envelope, request=None)
    return envelope
