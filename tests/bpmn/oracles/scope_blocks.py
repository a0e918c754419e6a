"""Blocks with scopes: sub-processes, what interrupts and handles them, and activities that are repeated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.bpmn.oracles.blocks import Block, Drawing, Outcome, ScriptTask, Variables, Wait


@dataclass
class SubProcess(Block):
    """A block inside an embedded sub-process."""

    inside: Block
    id: str = ""
    start: str = ""
    end: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id = drawing.name("sub")
        content = drawing.inside()
        self.start, self.end = content.name("start"), content.name("end")
        first, last = self.inside.draw(content)
        content.flow(self.start, first)
        content.flow(last, self.end)
        body = "".join(content.elements)
        drawing.elements.append(
            f'<subProcess id="{self.id}"><startEvent id="{self.start}"/>{body}<endEvent id="{self.end}"/></subProcess>'
        )
        return self.id, self.id

    def run(self, variables: Variables) -> Outcome:
        outcome = Outcome(Counter({self.start: 1}))
        outcome.then(self.inside.run(variables))
        outcome.then(Outcome(Counter({self.end: 1})))
        outcome.close(self.id)
        return outcome


@dataclass
class Scoped(Block):
    """A sub-process that has another `n` of its own, and gives it to the outside under another name."""

    inside: Block
    plus: int
    id: str = ""
    start: str = ""
    end: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id = drawing.name("scoped")
        content = drawing.inside()
        self.start, self.end = content.name("start"), content.name("end")
        first, last = self.inside.draw(content)
        content.flow(self.start, first)
        content.flow(last, self.end)
        mappings = f'<zeebe:input source="=n + {self.plus}" target="n"/><zeebe:output source="=n" target="v_{self.id}.m"/>'
        drawing.elements.append(
            f'<subProcess id="{self.id}"><extensionElements><zeebe:ioMapping>{mappings}</zeebe:ioMapping>'
            f'</extensionElements><startEvent id="{self.start}"/>{"".join(content.elements)}'
            f'<endEvent id="{self.end}"/></subProcess>'
        )
        return self.id, self.id

    def run(self, variables: Variables) -> Outcome:
        inner = variables["n"] + self.plus
        outcome = Outcome(Counter({self.start: 1}))
        outcome.then(self.inside.run({**variables, "n": inner}))
        outcome.then(Outcome(Counter({self.end: 1})))
        outcome.close(self.id)
        outcome.variables[f"v_{self.id}"] = {"m": inner}
        return outcome


@dataclass
class Handled(Block):
    """A sub-process that ends with an error, which its own event sub-process catches: it completes as if nothing was."""

    inside: Block
    handler: Block
    ids: list[str] = field(default_factory=list)

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        id_, content = drawing.name("guarded"), drawing.inside()
        start, error, handling = content.name("start"), content.name("error"), content.name("handling")
        first, last = self.inside.draw(content)
        content.flow(start, first)
        content.flow(last, error)
        within = content.inside()
        caught, end = within.name("caught"), within.name("end")
        first, last = self.handler.draw(within)
        within.flow(caught, first)
        within.flow(last, end)
        thrown = '<errorEventDefinition errorRef="oops"/>'
        drawing.elements.append(
            f'<subProcess id="{id_}"><startEvent id="{start}"/>{"".join(content.elements)}'
            f'<endEvent id="{error}">{thrown}</endEvent><subProcess id="{handling}" triggeredByEvent="true">'
            f'<startEvent id="{caught}">{thrown}</startEvent>{"".join(within.elements)}<endEvent id="{end}"/></subProcess>'
            "</subProcess>"
        )
        self.ids = [id_, start, error, handling, caught, end]
        return id_, id_

    def run(self, variables: Variables) -> Outcome:
        id_, start, error, handling, caught, end = self.ids
        outcome = Outcome(Counter({start: 1}))
        outcome.then(self.inside.run(variables))
        outcome.then(Outcome(Counter({error: 1})))
        outcome.then(Outcome(Counter({caught: 1})))
        outcome.then(self.handler.run(variables))
        outcome.then(Outcome(Counter({end: 1})))
        outcome.close(handling)
        outcome.close(id_)
        return outcome


@dataclass
class Reminded(Block):
    """A sub-process that lasts half an hour at least; after ten minutes something else begins beside it."""

    inside: Block
    reminder: Block
    ids: list[str] = field(default_factory=list)

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        id_, boundary, done = drawing.name("long"), drawing.name("reminds"), drawing.name("reminded")
        content = drawing.inside()
        start, end = content.name("start"), content.name("end")
        wait, _ = Wait(30).draw(content)
        first, last = self.inside.draw(content)
        content.flow(start, wait)
        content.flow(wait, first)
        content.flow(last, end)
        when = "<timerEventDefinition><timeDuration>PT10M</timeDuration></timerEventDefinition>"
        inner = f'<startEvent id="{start}"/>{"".join(content.elements)}<endEvent id="{end}"/>'
        drawing.elements += [
            f'<subProcess id="{id_}">{inner}</subProcess>',
            f'<boundaryEvent id="{boundary}" attachedToRef="{id_}" cancelActivity="false">{when}</boundaryEvent>',
            f'<endEvent id="{done}"/>',
        ]
        first, last = self.reminder.draw(drawing)
        drawing.flow(boundary, first)
        drawing.flow(last, done)
        self.ids = [id_, start, wait, end, boundary, done]
        return id_, id_

    def run(self, variables: Variables) -> Outcome:
        id_, start, wait, end, boundary, done = self.ids
        inside = Outcome(Counter({wait: 1}))
        inside.then(self.inside.run(variables))
        inside.then(Outcome(Counter({end: 1})))
        inside.close(id_)
        beside = Outcome(Counter({boundary: 1}))
        beside.then(self.reminder.run(variables))
        beside.then(Outcome(Counter({done: 1})))
        beside.late = set(beside.completed)
        outcome = Outcome(Counter({start: 1}))
        inside.along(beside)
        outcome.then(inside)
        outcome.before.add((boundary, id_))
        return outcome


@dataclass
class Terminated(Block):
    """A sub-process in which one branch waits for long, while the other ends everything."""

    first: Block
    lost: Block
    ids: list[str] = field(default_factory=list)

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        id_, content = drawing.name("cut"), drawing.inside()
        start, split, end, stop = (content.name(one) for one in ("start", "split", "end", "stop"))
        wait, _ = Wait(6_000).draw(content)
        first, last = self.first.draw(content)
        later, latest = self.lost.draw(content)
        for source, target in [(start, split), (split, first), (last, stop), (split, wait), (wait, later), (latest, end)]:
            content.flow(source, target)
        drawing.elements.append(
            f'<subProcess id="{id_}"><startEvent id="{start}"/><parallelGateway id="{split}"/>{"".join(content.elements)}'
            f'<endEvent id="{end}"/><endEvent id="{stop}"><terminateEventDefinition/></endEvent></subProcess>'
        )
        self.ids = [id_, start, split, stop]
        return id_, id_

    def run(self, variables: Variables) -> Outcome:
        id_, start, split, stop = self.ids
        outcome = Outcome(Counter({start: 1}))
        outcome.then(Outcome(Counter({split: 1})))
        outcome.then(self.first.run(variables))
        outcome.then(Outcome(Counter({stop: 1})))
        outcome.close(id_)
        return outcome


@dataclass
class Failing(Block):
    """A sub-process that ends with an error, which a boundary event catches; the handler goes on after it."""

    inside: Block
    handler: Block
    id: str = ""
    start: str = ""
    error: str = ""
    boundary: str = ""
    join: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id, self.boundary, self.join = drawing.name("risky"), drawing.name("caught"), drawing.name("merge")
        content = drawing.inside()
        self.start, self.error = content.name("start"), content.name("error")
        first, last = self.inside.draw(content)
        content.flow(self.start, first)
        content.flow(last, self.error)
        thrown = '<errorEventDefinition errorRef="oops"/>'
        drawing.elements += [
            (
                f'<subProcess id="{self.id}"><startEvent id="{self.start}"/>{"".join(content.elements)}'
                f'<endEvent id="{self.error}">{thrown}</endEvent></subProcess>'
            ),
            f'<boundaryEvent id="{self.boundary}" attachedToRef="{self.id}">{thrown}</boundaryEvent>',
            f'<exclusiveGateway id="{self.join}"/>',
        ]
        first, last = self.handler.draw(drawing)
        drawing.flow(self.boundary, first)
        drawing.flow(last, self.join)
        drawing.flow(self.id, self.join)
        return self.id, self.join

    def run(self, variables: Variables) -> Outcome:
        outcome = Outcome(Counter({self.start: 1}))
        outcome.then(self.inside.run(variables))
        outcome.then(Outcome(Counter({self.error: 1})))
        outcome.then(Outcome(Counter({self.boundary: 1})))
        outcome.then(self.handler.run(variables))
        outcome.then(Outcome(Counter({self.join: 1})))
        return outcome


@dataclass
class Interrupted(Block):
    """A sub-process that waits for an hour, and is interrupted by a timer before: nothing after the wait happens."""

    lost: Block
    handler: Block
    id: str = ""
    start: str = ""
    boundary: str = ""
    join: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id, self.boundary, self.join = drawing.name("slow"), drawing.name("late"), drawing.name("merge")
        content = drawing.inside()
        self.start, end = content.name("start"), content.name("end")
        wait, _ = Wait(600).draw(content)
        first, last = self.lost.draw(content)
        content.flow(self.start, wait)
        content.flow(wait, first)
        content.flow(last, end)
        when = "<timerEventDefinition><timeDuration>PT1M</timeDuration></timerEventDefinition>"
        drawing.elements += [
            (
                f'<subProcess id="{self.id}"><startEvent id="{self.start}"/>{"".join(content.elements)}'
                f'<endEvent id="{end}"/></subProcess>'
            ),
            f'<boundaryEvent id="{self.boundary}" attachedToRef="{self.id}">{when}</boundaryEvent>',
            f'<exclusiveGateway id="{self.join}"/>',
        ]
        first, last = self.handler.draw(drawing)
        drawing.flow(self.boundary, first)
        drawing.flow(last, self.join)
        drawing.flow(self.id, self.join)
        return self.id, self.join

    def run(self, variables: Variables) -> Outcome:
        outcome = Outcome(Counter({self.start: 1}))
        outcome.then(Outcome(Counter({self.boundary: 1})))
        outcome.then(self.handler.run(variables))
        outcome.then(Outcome(Counter({self.join: 1})))
        return outcome


@dataclass
class ForEach(Block):
    """A script task once for each number of a list; its results are a list in the same order."""

    numbers: list[int]
    is_sequential: bool
    id: str = ""

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        self.id = drawing.name("each")
        sequential = "true" if self.is_sequential else "false"
        items = f'inputCollection="={self.numbers}" inputElement="item"'
        drawing.elements.append(
            f'<scriptTask id="{self.id}"><extensionElements>'
            '<zeebe:script expression="=item * 2 + n" resultVariable="twice"/>'
            f'</extensionElements><multiInstanceLoopCharacteristics isSequential="{sequential}"><extensionElements>'
            f'<zeebe:loopCharacteristics {items} outputCollection="v_{self.id}" outputElement="=twice"/>'
            "</extensionElements></multiInstanceLoopCharacteristics></scriptTask>"
        )
        return self.id, self.id

    def run(self, variables: Variables) -> Outcome:
        made = [number * 2 + variables["n"] for number in self.numbers]
        return Outcome(Counter({self.id: len(self.numbers) + 1}), variables={f"v_{self.id}": made})


ANY: Final = object()
"""The value of a variable that several iterations set, in an order that is left open."""


@dataclass
class ForEachScope(Block):
    """A sub-process once for each number of a list, which is its `n`; what a task in it makes is collected in order."""

    numbers: list[int]
    inside: Block
    is_sequential: bool
    ids: list[str] = field(default_factory=list)

    def draw(self, drawing: Drawing) -> tuple[str, str]:
        id_, content = drawing.name("every"), drawing.inside()
        start, end = content.name("start"), content.name("end")
        first, last = self.inside.draw(content)
        task, _ = ScriptTask(1).draw(content)
        content.flow(start, first)
        content.flow(last, task)
        content.flow(task, end)
        sequential = "true" if self.is_sequential else "false"
        drawing.elements.append(
            f'<subProcess id="{id_}"><startEvent id="{start}"/>{"".join(content.elements)}<endEvent id="{end}"/>'
            f'<multiInstanceLoopCharacteristics isSequential="{sequential}"><extensionElements>'
            f'<zeebe:loopCharacteristics inputCollection="={self.numbers}" inputElement="n" outputCollection="v_{id_}" '
            f'outputElement="=v_{task}"/></extensionElements></multiInstanceLoopCharacteristics></subProcess>'
        )
        self.ids = [id_, start, task, end]
        return id_, id_

    def run(self, variables: Variables) -> Outcome:
        id_, start, task, end = self.ids
        outcome = Outcome()
        for number in self.numbers:
            inside = self.inside.run({**variables, "n": number})
            inside.variables = dict.fromkeys(inside.variables, ANY)
            inside.late = set()
            inside.completed += Counter([start, task, end, id_])
            outcome.along(inside)
        if len(self.numbers) > 1:
            outcome.before = set()
        outcome.completed[id_] += 1
        outcome.variables[f"v_{id_}"] = [number + 1 for number in self.numbers]
        return outcome
