"""A process that is ready to run: the model with its references resolved and its expressions compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.bpmn import model

if TYPE_CHECKING:
    from holdfast import feel
    from holdfast.core.times.specs import AnySpec


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is given in the file, or the FEEL expression that it is the value of."""

    text: str
    expression: feel.Expression | None = None


@dataclass(frozen=True, slots=True)
class CompiledMapping:
    """One input or output mapping of an element."""

    source: Text
    target: tuple[str, ...]
    """A name, or the names on the way to an entry of a context."""


@dataclass(frozen=True, slots=True)
class CompiledJob:
    """A job for an activity, found by its type."""

    type: Text
    retries: Text | None
    headers: Mapping[str, str]
    result_variable: str


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    """How often a multi-instance activity is repeated, and what becomes of the results."""

    is_sequential: bool
    cardinality: feel.Expression | None
    collection: Text | None
    element: str
    output_collection: str
    output_element: Text | None
    output_variable: str
    """The variable that the output element reads, which each iteration has of its own; empty: it reads no single one."""
    completion: feel.Expression | None


@dataclass(slots=True, eq=False)
class Catch:
    """An event that something waits for: a timer, a message or a broadcast signal."""

    node: Node
    kind: str
    """`timer`, `message` or `broadcast`."""
    name: Text | None = None
    key: Text | None = None
    """The correlation key of a message; None: the workflow id."""
    timer_kind: model.TimerKind | None = None
    when: Text | None = None
    spec: AnySpec | None = None
    """When a timer fires whose text is given in the file."""
    is_interrupting: bool = True


@dataclass(slots=True, eq=False)
class CodeCatch:
    """An event that catches errors or escalations by their code; without a code, all of them."""

    node: Node
    code: str
    is_interrupting: bool
    code_variable: str
    message_variable: str = ""


@dataclass(slots=True, eq=False)
class Flow:
    """A sequence flow, with its condition compiled."""

    id: str
    target: Node
    condition: feel.Expression | None
    is_default: bool


@dataclass(slots=True, eq=False)
class Node:
    """An element that tokens go through."""

    id: str
    name: str
    element: model.AnyNode
    container: Container
    incoming: tuple[str, ...] = ()
    outgoing: tuple[Flow, ...] = ()
    flow_ids: tuple[str, ...] = ()
    """The ids of the outgoing flows, if all of them are taken without asking; see `has_choice`."""
    has_choice: bool = False
    """Whether it depends on conditions which outgoing flows are taken."""
    inputs: tuple[CompiledMapping, ...] = ()
    outputs: tuple[CompiledMapping, ...] = ()
    loop: CompiledLoop | None = None
    boundaries: tuple[Catch, ...] = ()
    """What its boundary events wait for."""
    errors: tuple[CodeCatch, ...] = ()
    """Its boundary events that catch errors, those with a code first."""
    escalations: tuple[CodeCatch, ...] = ()
    catch: Catch | None = None
    """Of an event that waits: for what."""
    inner: Container | None = None
    """Of a sub-process: what is inside."""
    work: Any = None
    """What else is compiled of it, of a type that its handler knows."""


@dataclass(slots=True, eq=False)
class EventSubProcess:
    """An event sub-process of a container, with its only start event."""

    node: Node
    start: Node
    is_interrupting: bool


@dataclass(slots=True, eq=False)
class Container:
    """A process or a sub-process: what is inside."""

    id: str
    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    initial: tuple[Node, ...] = ()
    """Where it begins if nothing else is said."""
    catches: tuple[Catch, ...] = ()
    """What its event sub-processes wait for; the node of each is their start event."""
    event_sub_processes: dict[str, EventSubProcess] = field(default_factory=dict)
    """By the id of the start event."""
    errors: tuple[CodeCatch, ...] = ()
    """The error starts of its event sub-processes, those with a code first."""
    escalations: tuple[CodeCatch, ...] = ()
    links: dict[str, Node] = field(default_factory=dict)
    """Its catching link events by the name of their link."""

    def find_event_sub_process(self, node: Node) -> EventSubProcess | None:
        """What an element is as an event sub-process; None if it is none."""
        return next((one for one in self.event_sub_processes.values() if one.node is node), None)


@dataclass(slots=True, eq=False)
class CompiledProcess:
    """One process of a file, ready to run."""

    id: str
    name: str
    container: Container
    nodes: Mapping[str, Node]
    """All elements, also those of sub-processes, by id."""
    flows: Mapping[str, Flow]
    starts: Mapping[str, Node]
    """The start events of the process itself, by id."""
    size: int = 0
    """How many elements it has."""

    def name_of(self, element: str) -> str:
        """What people call an element; empty if it has no name, or is not there."""
        if element == self.id:
            return self.name
        node = self.nodes.get(element)
        return "" if node is None else node.name


Nodes = Sequence[Node]
