"""Random processes made of nested blocks, and what must come of each, found by recursion over the blocks.

Nothing here knows tokens, flows, scopes or waits: a block knows how it is drawn, and what its own running means. A sequence
is one thing after the other, a parallel block all of its branches, an exclusive one the branch whose condition holds, and so
on. So the outcome is computed by another way of thinking than the interpreter's.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

Variables = dict[str, Any]
HEAD: Final = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="d" targetNamespace="urn:blocks">'
)


@dataclass
class Outcome:
    """What must have happened: how often each element completed, what comes before what, and the variables."""

    completed: Counter[str] = field(default_factory=Counter)
    before: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of elements that complete once each, the first before the second."""
    variables: Variables = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    """Elements that may still go on while what follows does: those behind a boundary event that does not interrupt."""

    def then(self, other: Outcome) -> None:
        """Add what happens after all of this, but for what may be late."""
        firsts = [one for one, count in self.completed.items() if count == 1 and one not in self.late]
        self.before |= {(one, two) for one in firsts for two, count in other.completed.items() if count == 1}
        self.along(other)

    def along(self, other: Outcome) -> None:
        """Add what happens beside this, in whatever order."""
        self.completed += other.completed
        self.before |= other.before
        self.variables.update(other.variables)
        self.late |= other.late

    def close(self, scope: str) -> None:
        """The scope completes, when everything in it has: also what is late."""
        self.late = set()
        self.then(Outcome(Counter({scope: 1})))


@dataclass
class Drawing:
    """The XML of a container while it is made: its elements, and the ids that were used."""

    elements: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=lambda: [0])

    def name(self, kind: str) -> str:
        self.ids[0] += 1
        return f"{kind}{self.ids[0]}"

    def flow(self, source: str, target: str, condition: str = "") -> str:
        made = self.name("flow")
        inner = f'<conditionExpression xsi:type="tFormalExpression">={condition}</conditionExpression>' if condition else ""
        self.elements.append(f'<sequenceFlow id="{made}" sourceRef="{source}" targetRef="{target}">{inner}</sequenceFlow>')
        return made

    def inside(self) -> Drawing:
        return Drawing([], self.ids)


class Block:
    """A part of a process with one way in and one way out."""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        """Add its elements; the ids of the first and the last."""
        raise NotImplementedError

    def run(self, variables: Variables) -> Outcome:
        """What comes of it, where these variables are visible. To be asked after it was drawn."""
        raise NotImplementedError


@dataclass
class ScriptTask(Block):
    """Sets a variable of its own to a number plus what `n` is."""

    plus: int
    id: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id = drawing.name("task")
        script = f'<zeebe:script expression="=n + {self.plus}" resultVariable="v_{self.id}"/>'
        drawing.elements.append(f'<scriptTask id="{self.id}"><extensionElements>{script}</extensionElements></scriptTask>')
        return self.id, self.id

    def run(self, variables: Variables) -> Outcome:
        return Outcome(Counter({self.id: 1}), variables={f"v_{self.id}": variables["n"] + self.plus})


@dataclass
class Job(Block):
    """A service task; whoever drives the process lets it return nothing."""

    id: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id = drawing.name("job")
        inner = '<extensionElements><zeebe:taskDefinition type="work"/></extensionElements>'
        drawing.elements.append(f'<serviceTask id="{self.id}">{inner}</serviceTask>')
        return self.id, self.id

    def run(self, variables: Variables) -> Outcome:
        return Outcome(Counter({self.id: 1}))


@dataclass
class Wait(Block):
    """A timer that fires after some minutes."""

    minutes: int
    id: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id = drawing.name("timer")
        when = f"<timerEventDefinition><timeDuration>PT{self.minutes}M</timeDuration></timerEventDefinition>"
        drawing.elements.append(f'<intermediateCatchEvent id="{self.id}">{when}</intermediateCatchEvent>')
        return self.id, self.id

    def run(self, variables: Variables) -> Outcome:
        return Outcome(Counter({self.id: 1}))


@dataclass
class Sequence(Block):
    """One block after the other."""

    parts: list[Block]

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        ends = [part.draw(drawing) for part in self.parts]
        for (_, last), (first, _) in itertools.pairwise(ends):
            drawing.flow(last, first)
        return ends[0][0], ends[-1][1]

    def run(self, variables: Variables) -> Outcome:
        outcome = Outcome()
        for part in self.parts:
            outcome.then(part.run(variables))
        return outcome


@dataclass
class Parallel(Block):
    """All branches, between two parallel gateways."""

    branches: list[Block]
    split: str = ""
    join: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.split, self.join = drawing.name("split"), drawing.name("join")
        drawing.elements += [f'<parallelGateway id="{self.split}"/>', f'<parallelGateway id="{self.join}"/>']
        for branch in self.branches:
            first, last = branch.draw(drawing)
            drawing.flow(self.split, first)
            drawing.flow(last, self.join)
        return self.split, self.join

    def run(self, variables: Variables) -> Outcome:
        inside = Outcome()
        for branch in self.branches:
            inside.along(branch.run(variables))
        outcome = Outcome(Counter({self.split: 1}))
        outcome.then(inside)
        outcome.then(Outcome(Counter({self.join: 1})))
        return outcome


@dataclass
class Exclusive(Block):
    """The first branch whose bound is above `n`, else the last."""

    branches: list[Block]
    bounds: list[int]
    split: str = ""
    join: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.split, self.join = drawing.name("choice"), drawing.name("merge")
        default = ""
        for index, branch in enumerate(self.branches):
            first, last = branch.draw(drawing)
            is_last = index == len(self.branches) - 1
            made = drawing.flow(self.split, first, "" if is_last else f"n &lt; {self.bounds[index]}")
            default = made if is_last else default
            drawing.flow(last, self.join)
        drawing.elements += [
            f'<exclusiveGateway id="{self.split}" default="{default}"/>',
            f'<exclusiveGateway id="{self.join}"/>',
        ]
        return self.split, self.join

    def run(self, variables: Variables) -> Outcome:
        chosen = next((i for i, bound in enumerate(self.bounds) if variables["n"] < bound), len(self.branches) - 1)
        outcome = Outcome(Counter({self.split: 1}))
        outcome.then(self.branches[chosen].run(variables))
        outcome.then(Outcome(Counter({self.join: 1})))
        return outcome


@dataclass
class Race(Block):
    """An event-based gateway with timers: the shortest wins, and the others are as if they had never been."""

    minutes: list[int]
    branches: list[Block]
    gateway: str = ""
    join: str = ""
    timers: list[str] = field(default_factory=list)

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.gateway, self.join = drawing.name("race"), drawing.name("merge")
        drawing.elements += [f'<eventBasedGateway id="{self.gateway}"/>', f'<exclusiveGateway id="{self.join}"/>']
        self.timers = []
        for minutes, branch in zip(self.minutes, self.branches, strict=True):
            timer, _ = Wait(minutes).draw(drawing)
            self.timers.append(timer)
            first, last = branch.draw(drawing)
            drawing.flow(self.gateway, timer)
            drawing.flow(timer, first)
            drawing.flow(last, self.join)
        return self.gateway, self.join

    def run(self, variables: Variables) -> Outcome:
        winner = self.minutes.index(min(self.minutes))
        outcome = Outcome(Counter({self.gateway: 1}))
        outcome.then(Outcome(Counter({self.timers[winner]: 1})))
        outcome.then(self.branches[winner].run(variables))
        outcome.then(Outcome(Counter({self.join: 1})))
        return outcome
