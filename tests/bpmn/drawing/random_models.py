"""Random models for layouts: nested sub-processes, boundary events, lanes, artifacts, flows of any shape."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random

from holdfast.bpmn.model import (
    Annotation,
    AnyNode,
    Association,
    BoundaryEvent,
    DataObject,
    Definitions,
    EndEvent,
    ExclusiveGateway,
    IntermediateCatchEvent,
    Lane,
    MessageFlow,
    ParallelGateway,
    Participant,
    Process,
    SequenceFlow,
    ServiceTask,
    StartEvent,
    SubProcess,
    Task,
)

NAMES = (
    "",
    "Pay",
    "Check the order",
    "A name that is too long for one line of a label",
    "Donaudampfschifffahrtsgesellschaft",
)
PLAIN = (StartEvent, EndEvent, IntermediateCatchEvent, Task, ServiceTask, Task, ExclusiveGateway, ParallelGateway)


@dataclass
class Builder:
    """Makes containers with random content."""

    random: Random
    count: int = 0

    def make_id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def make_name(self) -> str:
        return self.random.choice(NAMES)

    def make_nodes(self, size: int, depth: int) -> list[AnyNode]:
        made: list[AnyNode] = []
        for _ in range(size):
            if depth and self.random.random() < 0.15:
                made.append(self.make_sub_process(self.random.randrange(5), depth - 1))
            else:
                made.append(self.random.choice(PLAIN)(id=self.make_id("n"), name=self.make_name()))
        hosts = [one for one in made if isinstance(one, (Task, ServiceTask, SubProcess))]
        for host in hosts:
            made.extend(
                BoundaryEvent(id=self.make_id("b"), name=self.make_name(), attached_to=host.id)
                for _ in range(self.random.choice((0, 0, 0, 1, 1, 2, 5)))
            )
        return made

    def make_flows(self, nodes: list[AnyNode], density: float) -> list[SequenceFlow]:
        targets = [one.id for one in nodes if not isinstance(one, BoundaryEvent)]
        if not targets:
            return []
        return [
            SequenceFlow(
                id=self.make_id("f"),
                name=self.make_name(),
                source=self.random.choice(nodes).id,
                target=self.random.choice(targets),
            )
            for _ in range(int(len(nodes) * density))
        ]

    def make_sub_process(self, size: int, depth: int) -> SubProcess:
        nodes = self.make_nodes(size, depth)
        return SubProcess(
            id=self.make_id("s"),
            name=self.make_name(),
            nodes=tuple(nodes),
            flows=tuple(self.make_flows(nodes, 1.0)),
            triggered_by_event=self.random.random() < 0.2,
        )

    def make_process(self, size: int, density: float, lanes: int) -> Process:
        nodes = self.make_nodes(size, 2)
        annotations = [Annotation(id=self.make_id("a"), text=self.make_name()) for _ in range(self.random.randrange(4))]
        data = [
            DataObject(id=self.make_id("d"), name=self.make_name(), kind="dataObjectReference")
            for _ in range(self.random.randrange(3))
        ]
        associations = [
            Association(id=self.make_id("as"), source=one.id, target=self.random.choice(nodes).id)
            for one in (*annotations, *data)
            if nodes and self.random.random() < 0.7
        ]
        made = [Lane(id=self.make_id("l"), name=self.make_name()) for _ in range(lanes)]
        if made:
            chosen = {one.id: self.random.randrange(lanes + 1) for one in nodes}
            made = [
                Lane(
                    id=lane.id,
                    name=lane.name,
                    nodes=tuple(id_ for id_, lane_number in chosen.items() if lane_number == number),
                )
                for number, lane in enumerate(made)
            ]
        return Process(
            id=self.make_id("p"),
            name=self.make_name(),
            nodes=tuple(nodes),
            flows=tuple(self.make_flows(nodes, density)),
            annotations=tuple(annotations),
            data_objects=tuple(data),
            associations=tuple(associations),
            lanes=tuple(made),
        )


def make_definitions(
    seed: int, *, size: int, density: float, lanes: int = 0, processes: int = 1, pools: bool = False
) -> Definitions:
    """A random model; the same seed makes the same one."""
    builder = Builder(Random(seed))
    made = [builder.make_process(size, density, lanes) for _ in range(processes)]
    participants = [Participant(id=builder.make_id("pool"), name=one.name, process=one.id) for one in made] if pools else []
    ends = [[pool.id, *(node.id for node in one.nodes)] for pool, one in zip(participants, made, strict=False)]
    messages = [
        MessageFlow(id=builder.make_id("m"), source=builder.random.choice(first), target=builder.random.choice(second))
        for first, second in pairwise(ends)
        for _ in range(3)
    ]
    return Definitions(
        file="random.bpmn", processes=tuple(made), participants=tuple(participants), message_flows=tuple(messages)
    )
