"""Random processes without any structure: whatever may stand in a diagram, connected by chance.

Nothing is known of what must come of them. But whatever happens, they rest in a consistent state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.bpmn.support.diagrams import (
    TERMINATE,
    boundary,
    call,
    catch,
    end,
    error,
    escalation,
    flow,
    gateway,
    job,
    mappings,
    message,
    receive,
    repeat,
    script,
    signal,
    start,
    sub,
    task,
    throw,
    timer,
    user,
    write,
)

CODES: Final = ("E1", "E2")
SCRIPTS: Final = ("n + 1", "assert(ready, ready = true)")
THROWN: Final = (signal(), signal("s2"), escalation("X1"), escalation("X2"), message())
ENDS: Final = ("", TERMINATE, error("E1"), error("E2"), escalation("X1"), signal())
MAPPINGS: Final = (
    "",
    "",
    mappings({"x": "n + 1"}),
    mappings({"n": "1"}, {"y": "n", "o.p": "x"}),
    mappings(outputs={"y": "assert(ready, ready = true)"}),
    mappings({"z": "assert(ready, ready = true)"}),
)


@dataclass
class _Drawing:
    """One file while it is drawn."""

    random: Random
    count: int = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"


def make_wild(seed: int) -> str:
    """A process named `p`."""
    drawing = _Drawing(Random(seed))
    return write(_fill(drawing, 0))


def _fill(drawing: _Drawing, depth: int, first: str = "") -> str:
    """What is inside of a container; `first` is the definition of its start event."""
    random = drawing.random
    interrupting = random.random() < 0.5 or first.startswith("<error")
    begin = drawing.name("start")
    parts = [start(begin, first, interrupting=interrupting)]
    nodes: list[str] = []
    for _ in range(random.randint(1, 6)):
        id_, drawn = _draw_node(drawing, depth)
        nodes.append(id_)
        parts.append(drawn)
    sources = [begin, *(id_ for id_ in nodes if not id_.startswith("end"))]
    targets = list(nodes)
    for id_ in nodes:
        if id_.startswith(_HOSTS) and random.random() < 0.5:
            event = drawing.name("on")
            parts.append(_draw_boundary(drawing, event, id_))
            sources.append(event)
    parts += _connect(random, sources, targets)
    if depth < 2 and random.random() < 0.4:
        parts.append(sub(drawing.name("event"), _fill(drawing, depth + 1, _choose_trigger(random)), event=True))
    return "".join(parts)


_HOSTS: Final = ("job", "user", "receive", "call", "sub")


def _connect(random: Random, sources: list[str], targets: list[str]) -> list[str]:
    parts: list[str] = []
    seen: set[tuple[str, str]] = set()
    for source in sources:
        if source.startswith("race"):
            continue
        for target in random.sample(targets, min(len(targets), random.randint(1, 2))):
            if (source, target) in seen or target.startswith("behind"):
                continue
            seen.add((source, target))
            condition = ""
            if source.startswith(("choice", "job")) and random.random() < 0.5:
                condition = random.choice(["true", "false", "n &gt; 2", "ready"])
            parts.append(flow(source, target, condition))
    return parts


def _draw_node(drawing: _Drawing, depth: int) -> tuple[str, str]:
    random = drawing.random
    kinds = [
        "job",
        "job",
        "user",
        "receive",
        "call",
        "script",
        "task",
        "choice",
        "join",
        "join",
        "race",
        "catch",
        "throw",
        "end",
    ]
    kind = random.choice(kinds + (["sub", "sub", "sub"] if depth < 2 else []))
    id_, mapping = drawing.name(kind), random.choice(MAPPINGS)
    loop = ""
    if random.random() < 0.2:
        until = random.choice(["", "", "numberOfCompletedInstances = 1", "ready"])
        items = random.choice(["[]", "[1]", "[1, 2, 3]", "n"])
        loop = repeat(items, random.choice(["", "y", "item"]), sequential=random.random() < 0.5, until=until)
    makers: dict[str, Callable[[], str]] = {
        "job": lambda: job(id_, mapping=mapping, more=loop),
        "user": lambda: user(id_, mapping, loop),
        "receive": lambda: receive(id_, random.choice(["m", "m2", "keyed"]), loop),
        "call": lambda: call(id_, "child", mapping, loop),
        "script": lambda: script(id_, random.choice(SCRIPTS), "n", mapping=mapping, more=loop),
        "task": lambda: task(id_),
        "choice": lambda: gateway("exclusive", id_),
        "join": lambda: gateway("parallel", id_),
        "sub": lambda: sub(id_, _fill(drawing, depth + 1), loop, mapping=mapping),
        "race": lambda: _draw_race(drawing, id_),
        "catch": lambda: catch(id_, _choose_catch(random), mapping),
        "throw": lambda: throw(id_, random.choice(THROWN)),
        "end": lambda: end(id_, random.choice(ENDS)),
    }
    return id_, makers[kind]()


def _draw_race(drawing: _Drawing, id_: str) -> str:
    behind = [drawing.name("behind") for _ in range(2)]
    events = (catch(one, _choose_catch(drawing.random)) + flow(id_, one) for one in behind)
    return gateway("eventBased", id_) + "".join(events)


def _choose_catch(random: Random) -> str:
    return random.choice([timer("PT1M"), timer("PT2M"), message(), message("m2"), message("keyed"), signal(), signal("s2")])


def _choose_trigger(random: Random) -> str:
    more = [error("E1"), error(""), escalation("X1"), escalation(""), timer("R2/PT1M", "timeCycle")]
    return random.choice([_choose_catch(random), *more])


def _draw_boundary(drawing: _Drawing, id_: str, host: str) -> str:
    definition = _choose_trigger(drawing.random)
    interrupting = drawing.random.random() < 0.5 or definition.startswith("<error")
    return boundary(id_, host, definition, interrupting=interrupting, mapping=drawing.random.choice(MAPPINGS[:4]))
