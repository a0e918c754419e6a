"""Several processes played together: messages, signals and calls between them, without a store or an engine.

system = PlayedSystem(read_model(xml))
system.start("order")
system.trigger("ship")  # the message, timer, job or user task that an element waits for; a start event starts its process
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.bpmn import model
from holdfast.bpmn.compiling import compile_process
from holdfast.core import envelopes
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.publications import Publication, SubscriptionKind
from tests.bpmn.support.playing import BEGIN, PlayedProcess, encode, make_start


class PlayedSystem:
    """All processes of a model, and their executions in the order in which they began."""

    def __init__(self, definitions: model.Definitions) -> None:
        self._definitions = definitions
        self._processes = {one.id: compile_process(definitions, one.id) for one in definitions.processes if one.nodes}
        self.executions: list[PlayedProcess] = []
        self._taken: dict[str, tuple[int, int]] = {}
        """By execution id, how many of its publications and envelopes were delivered."""
        self._kept: deque[Publication] = deque()
        """Messages for which nobody waited."""

    # --- what happens ---

    def start(self, process_id: str, variables: Mapping[str, Any] | None = None, *, element: str = "") -> PlayedProcess:
        """Start a process, at a start event if one is named, and let everything that follows happen."""
        started = self._start(make_start(process_id, variables, element=element, number=len(self.executions)))
        self.deliver()
        return started

    def trigger(self, element: str, variables: Any = None) -> None:
        """Let come what an element waits for in the execution that began last; a start event of a process starts it.

        So does, where nothing was started yet, any element of a process without start events.
        """
        for process in self._definitions.processes:
            starts = [node.id for node in process.nodes if isinstance(node, model.StartEvent)]
            if element in starts:
                self.start(process.id, element=element)
                return
            if not starts and not self.executions and any(node.id == element for node in process.nodes):
                self.start(process.id)
                return
        for one in reversed(self.executions):
            if not one.is_closed and one.find_waits(element):
                one.trigger(element, variables)
                self.deliver()
                return
        raise AssertionError(f"nothing waits at {element!r}: {[one.waits for one in self.executions]}")

    def send_message(self, name: str, key: str, value: Any = None) -> None:
        """A message comes from outside."""
        message = Publication(
            kind=SubscriptionKind.MESSAGE, name=name, key=key, value=encode(value), id=f"sent-{name}", sent_at=BEGIN
        )
        self._send_message(message)
        self.deliver()

    def deliver(self) -> None:
        """Bring everything that executions published or sent to where it belongs, until nothing is under way."""
        while sum([self._deliver_of(one) for one in list(self.executions)]):
            for message in [self._kept.popleft() for _ in range(len(self._kept))]:
                self._send_message(message)

    # --- parts ---

    def _start(self, start: envelopes.Start) -> PlayedProcess:
        started = PlayedProcess(self._processes[start.workflow], start=start)
        self.executions.append(started)
        return started

    def _deliver_of(self, one: PlayedProcess) -> bool:
        """Deliver what one execution sent since the last time; whether there was anything."""
        id_ = one.execution.execution_id
        published, sent = self._taken.get(id_, (0, 0))
        self._taken[id_] = (len(one.outbox), len(one.sent))
        for publication in one.outbox[published:]:
            if publication.kind is SubscriptionKind.BROADCAST:
                self._broadcast(publication, one)
            else:
                self._send_message(publication)
        for execution_id, envelope in one.sent[sent:]:
            self._send(execution_id, envelope)
        return (published, sent) != (len(one.outbox), len(one.sent)) or (published, sent) != self._taken[id_]

    def _send(self, execution_id: str, envelope: AnyEnvelope) -> None:
        if isinstance(envelope, envelopes.Start):
            self._start(envelope)
            return
        receiver = next(one for one in self.executions if one.execution.execution_id == execution_id)
        if not receiver.is_closed:
            receiver.tell(envelope)

    def _send_message(self, message: Publication) -> None:
        """To the oldest wait for it; else it starts a process; else it is kept."""
        for one in self.executions:
            for wait in list(one.execution.subscriptions.values()):
                if (wait.kind, wait.name, wait.key) == (message.kind, message.name, message.key):
                    one.tell(envelopes.Triggered(number=wait.number, publication=message))
                    return
        for process_id, element in self._find_starts(model.MessageEventDefinition, message.name):
            self._start_by(process_id, element, message)
            return
        self._kept.append(message)

    def _broadcast(self, signal: Publication, thrower: PlayedProcess) -> None:
        """To every wait of others, and to every process that starts by it."""
        for one in [one for one in self.executions if one is not thrower]:
            for wait in list(one.execution.subscriptions.values()):
                if (wait.kind, wait.name) == (signal.kind, signal.name):
                    one.tell(envelopes.Triggered(number=wait.number, publication=signal))
        for process_id, element in list(self._find_starts(model.SignalEventDefinition, signal.name)):
            self._start_by(process_id, element, signal)

    def _start_by(self, process_id: str, element: str, publication: Publication) -> None:
        start = make_start(process_id, {}, element=element, number=len(self.executions), publication=publication)
        self._start(start)

    def _find_starts(self, kind: type[model.AnyEventDefinition], name: str) -> Iterator[tuple[str, str]]:
        for process in self._definitions.processes:
            for node in process.nodes:
                if isinstance(node, model.StartEvent) and any(
                    isinstance(one, kind) and self._name_of(one) == name for one in node.definitions
                ):
                    yield process.id, node.id

    def _name_of(self, definition: model.AnyEventDefinition) -> str:
        if isinstance(definition, model.MessageEventDefinition):
            return self._definitions.messages[definition.message].name
        assert isinstance(definition, model.SignalEventDefinition)
        return self._definitions.signals[definition.signal].name
