"""Random graphs of gateways, and every outcome that the specification allows for them, found by trying all orders.

Written from the text of the OMG's specification (13.3 and 13.4): a node is enabled by tokens on its incoming sequence flows;
an activity or exclusive gateway takes any one of them, a parallel gateway one from each incoming flow; what was taken is put
on outgoing flows: on all of them, or on one for an exclusive gateway. Tokens are counted per flow, and which enabled node
moves next is left open: all possibilities are followed. It is slow, and has no scopes, records or handlers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Final

HEAD: Final = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'id="d" targetNamespace="urn:graphs">'
)
Marking = frozenset[tuple[str, int]]
"""So many tokens on each flow that has any."""


@dataclass(frozen=True)
class Node:
    """A node of a graph: what it is, and which of its outgoing flows an exclusive gateway takes."""

    id: str
    kind: str
    choice: int = 0


@dataclass(frozen=True)
class Graph:
    """Nodes, and flows as (id, source, target)."""

    nodes: tuple[Node, ...]
    flows: tuple[tuple[str, str, str], ...]

    def incoming(self, node: str) -> list[str]:
        return [flow for flow, _, target in self.flows if target == node]

    def outgoing(self, node: str) -> list[str]:
        return [flow for flow, source, _ in self.flows if source == node]


@dataclass(frozen=True)
class Ending:
    """How a run of a graph can end: how often each node completed, and the tokens that are stuck before joins."""

    completed: frozenset[tuple[str, int]]
    stuck: Marking


class TooMany(Exception):
    """The graph has more outcomes, or longer runs, than are followed."""


def make_graph(seed: int) -> Graph:
    """A random graph with one start; what has no way on is an end event."""
    random = Random(seed)
    count = random.randint(3, 9)
    kinds = [random.choice(["manualTask", "exclusiveGateway", "parallelGateway"]) for _ in range(count)]
    flows: list[tuple[str, str, str]] = []

    def connect(source: str, target: str) -> None:
        flows.append((f"f{len(flows)}", source, target))

    connect("begin", "n0")
    for index in range(1, count):
        connect(f"n{random.randrange(index)}", f"n{index}")
    for _ in range(random.randint(0, count)):
        source, target = random.randrange(count), random.randrange(count)
        if source != target and (source < target or random.random() < 0.25):
            connect(f"n{source}", f"n{target}")
    nodes = [Node("begin", "startEvent")]
    for index, kind in enumerate(kinds):
        ways = sum(source == f"n{index}" for _, source, _ in flows)
        nodes.append(Node(f"n{index}", kind if ways else "endEvent", random.randrange(max(1, ways))))
    return Graph(tuple(nodes), tuple(flows))


def write_graph(graph: Graph) -> str:
    """The graph as a process named `graph`."""
    parts = []
    for node in graph.nodes:
        ways = graph.outgoing(node.id)
        default = f' default="{ways[-1]}"' if node.kind == "exclusiveGateway" and len(ways) > 1 else ""
        parts.append(f'<{node.kind} id="{node.id}"{default}/>')
    kinds = {node.id: node for node in graph.nodes}
    for flow, source, target in graph.flows:
        ways, node = graph.outgoing(source), kinds[source]
        condition = ""
        if node.kind == "exclusiveGateway" and len(ways) > 1 and flow != ways[-1]:
            holds = "true" if ways.index(flow) == node.choice else "false"
            condition = f'<conditionExpression xsi:type="tFormalExpression">={holds}</conditionExpression>'
        parts.append(f'<sequenceFlow id="{flow}" sourceRef="{source}" targetRef="{target}">{condition}</sequenceFlow>')
    return f'{HEAD}<process id="graph" isExecutable="true">{"".join(parts)}</process></definitions>'


def find_endings(graph: Graph, most_states: int = 4_000, most_steps: int = 60) -> set[Ending]:
    """Every way in which the graph can end. Raises TooMany if they are too many to follow."""
    begin = (_freeze(Counter(graph.outgoing("begin"))), _freeze(Counter({"begin": 1})))
    waiting, seen, endings = [begin], {begin}, set[Ending]()
    while waiting:
        marking, completed = waiting.pop()
        if sum(count for _, count in completed) > most_steps or len(seen) > most_states:
            raise TooMany
        following = list(_list_moves(graph, Counter(dict(marking))))
        if not following:
            endings.add(Ending(completed, marking))
        for after, mover in following:
            done = Counter(dict(completed)) + Counter({mover: 1})
            state = (_freeze(after), _freeze(done))
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return endings


def _list_moves(graph: Graph, marking: Counter[str]) -> list[tuple[Counter[str], str]]:
    moves: list[tuple[Counter[str], str]] = []
    for node in graph.nodes:
        incoming, outgoing = graph.incoming(node.id), graph.outgoing(node.id)
        if node.kind == "parallelGateway":
            takes = [incoming] if incoming and all(marking[flow] for flow in incoming) else []
        else:
            takes = [[flow] for flow in incoming if marking[flow]]
        gives = outgoing[node.choice : node.choice + 1] if node.kind == "exclusiveGateway" else outgoing
        moves += [(marking - Counter(taken) + Counter(gives), node.id) for taken in takes]
    return moves


def _freeze(counts: Counter[str]) -> Marking:
    return frozenset((name, count) for name, count in counts.items() if count)
