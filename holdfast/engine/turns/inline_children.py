"""What a turn produces and the same batch takes on: the children that it starts, and the next run of what continues."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from holdfast.core.effects import CarriedOver
from holdfast.core.envelopes import MUST_BE_GIVEN, Start
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.pending_turns import PendingTurn

if TYPE_CHECKING:
    from holdfast.core.effects import Outgoing, Turn
    from holdfast.engine.routes import Routes


class InlineChildren:
    """Takes children into the batch of their parent, as far as there is room, instead of sending their starts.

    Only those whose workflow id is their own: nobody else can have started them. And only those whose code is here.
    """

    def __init__(self, routes: Routes, room: int) -> None:
        self._routes = routes
        self.room = room
        """How many more children the batch takes on."""
        self.generations = 0
        """How many parents in this batch one of its executions has at most, one above the other."""

    def take_children(self, pending: PendingTurn, turn: Turn) -> list[PendingTurn]:
        """The first turns of a turn's children, with all else that it sends them; that does not go out then."""
        children: dict[str, PendingTurn] = {}
        sent: list[Outgoing] = []
        for one in turn.outgoing:
            envelope = one.envelope
            if type(envelope) is Start and self._may_take(envelope, pending.org):
                child = children[one.execution_id] = PendingTurn(
                    pending.org, one.execution_id, envelope, [Arrival(envelope)]
                )
                child.parent, child.generation = pending.execution_id, pending.generation + 1
                self.room -= 1
            elif one.execution_id in children:
                children[one.execution_id].arrivals.append(Arrival(envelope))
            else:
                sent.append(one)
        if children:
            turn.outgoing = sent
            self.generations = max(self.generations, pending.generation + 1)
        return list(children.values())

    def _may_take(self, start: Start, org: str) -> bool:
        is_here = self._routes.may_begin(start, org) and self._routes.version_of(start.workflow, org) is not None
        return is_here and self.room > 0 and start.workflow_id == start.execution_id


def make_next_run(pending: PendingTurn, turn: Turn, start: Start) -> PendingTurn:
    """The first turn of the run that follows one that continued, with what is carried over to it.

    Signals are handed from run to run as they are, rows and requests included: what a run costs does not depend on how many
    wait behind those that it takes.
    """
    following = PendingTurn(pending.org, start.execution_id, start, [Arrival(start)])
    following.follows = True
    following.runs_in_batch = pending.runs_in_batch + 1
    following.parent, following.generation = pending.parent, pending.generation
    given = sum(type(arrival.envelope) in MUST_BE_GIVEN for arrival in pending.arrivals)
    untaken = len(turn.successor_envelopes)
    if pending.waiting is not None:
        following.waiting, pending.waiting = pending.waiting, None
        following.waiting.extendleft(Arrival(envelope) for envelope in reversed(turn.successor_envelopes))
    else:
        carried = [pending.arrivals[index] for index, answer in turn.answers.items() if type(answer) is CarriedOver]
        untaken -= len(carried)
        given -= sum(type(arrival.envelope) in MUST_BE_GIVEN for arrival in carried)
        waiting = [*map(Arrival, turn.successor_envelopes[:untaken]), *carried]
        if all(type(arrival.envelope) in MUST_BE_GIVEN for arrival in waiting):
            following.waiting = deque(waiting)
        else:
            following.arrivals += waiting
            following.put_terminate_first()  # behind signals that let it continue, it would come after the whole chain
    following.runs_before = 0 if given > untaken else pending.runs_before + 1
    return following
