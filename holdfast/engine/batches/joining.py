"""What a turn produces and the same batch takes on: the children that it starts, and the next run of what continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.core.envelopes import Start
from holdfast.engine.batches.requests import Request
from holdfast.engine.batches.work import Work

if TYPE_CHECKING:
    from holdfast.core.effects import Outgoing, Turn
    from holdfast.engine.routes import Routes


class Joining:
    """Takes children into the batch of their parent, as far as there is room, instead of sending their starts.

    Only those whose workflow id is their own: nobody else can have started them. And only those whose code is here.
    """

    def __init__(self, routes: Routes, room: int) -> None:
        self._routes = routes
        self.room = room
        self.generations = 0
        """How many parents in this batch one of its executions has at most, one above the other."""

    def take_children(self, work: Work, turn: Turn) -> list[Work]:
        """The first turns of a turn's children, with all else that it sends them; that does not go out then."""
        children: dict[str, Work] = {}
        sent: list[Outgoing] = []
        for one in turn.outgoing:
            envelope = one.envelope
            if type(envelope) is Start and self._may_join(envelope):
                child = children[one.execution_id] = Work(work.org, one.execution_id, envelope)
                child.parent, child.generation = work.execution_id, work.generation + 1
                child.add(envelope, None)
                self.room -= 1
            elif one.execution_id in children:
                children[one.execution_id].add(envelope, None)
            else:
                sent.append(one)
        if children:
            turn.outgoing = sent
            self.generations = max(self.generations, work.generation + 1)
        return list(children.values())

    def _may_join(self, start: Start) -> bool:
        is_here = self._routes.may_begin(start) and self._routes.version_of(start.workflow) is not None
        return is_here and self.room > 0 and start.workflow_id == start.execution_id


def follow(work: Work, turn: Turn, start: Start) -> Work:
    """The next run of an execution that continues: its first turn is part of the same transaction."""
    following = Work(work.org, start.execution_id, start)
    following.runs_before = work.runs_before + 1
    following.parent, following.generation = work.parent, work.generation
    following.add(start, None)
    forwarded = [work.sources[index] for index, answer in turn.answers.items() if answer is start]
    own = len(turn.successor_envelopes) - len(forwarded)
    requests: list[Any] = [None] * own + [source if isinstance(source, Request) else None for source in forwarded]
    for envelope, source in zip(turn.successor_envelopes, requests, strict=True):
        following.add(envelope, source)
    return following
