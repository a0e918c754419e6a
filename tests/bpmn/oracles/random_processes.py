"""Random processes made of nested blocks, and what must come of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from tests.bpmn.oracles.blocks import (
    HEAD,
    Block,
    Drawing,
    Exclusive,
    Job,
    Outcome,
    Parallel,
    Race,
    ScriptTask,
    Sequence,
    Variables,
    Wait,
)
from tests.bpmn.oracles.scope_blocks import (
    Failing,
    ForEach,
    ForEachScope,
    Handled,
    Interrupted,
    Reminded,
    Scoped,
    SubProcess,
    Terminated,
)


def make_block(random: Random, size: int, *, may_be_late: bool = True) -> Block:
    """A block of about so many parts. What may be late is not where it would be ended at a time that is left open."""
    if size <= 1:
        return random.choice(
            [ScriptTask(random.randint(0, 9)), ScriptTask(random.randint(0, 9)), Job(), Wait(random.randint(1, 30))]
        )

    def one(*, may_be_late: bool = may_be_late, parts: int = 2) -> Block:
        return make_block(random, max(1, size // parts), may_be_late=may_be_late)

    def some(count: int) -> list[Block]:
        return [one(parts=count) for _ in range(count)]

    def numbers() -> list[int]:
        return [random.randint(0, 10) for _ in range(random.randint(0, 4))]

    def choose() -> Block:
        branches = some(random.randint(2, 3))
        return Exclusive(branches, [random.randint(0, 10) for _ in branches[1:]])

    makers: list[Callable[[], Block]] = [
        lambda: Sequence(some(random.randint(2, 4))),
        lambda: Sequence(some(random.randint(2, 4))),
        lambda: Parallel(some(random.randint(2, 3))),
        choose,
        lambda: Race(random.sample(range(1, 50), 2), some(2)),
        lambda: SubProcess(make_block(random, size - 1, may_be_late=may_be_late)),
        lambda: Scoped(one(), random.randint(1, 5)),
        lambda: Failing(one(may_be_late=False), one()),
        lambda: Handled(one(may_be_late=False), one()),
        lambda: Terminated(one(may_be_late=False), one()),
        lambda: Interrupted(one(), one()),
        lambda: ForEach(numbers(), random.random() < 0.5),
        lambda: ForEachScope(numbers(), one(), random.random() < 0.5),
    ]
    if may_be_late:
        makers.append(lambda: Reminded(one(), one()))
    return random.choice(makers)()


def make_process(seed: int, size: int) -> tuple[str, Variables, Outcome]:
    """A process named `blocks` as XML, the variables to start it with, and what must come of it."""
    random = Random(seed)
    block, drawing = make_block(random, size), Drawing()
    first, last = block.draw(drawing)
    drawing.flow("begin", first)
    drawing.flow(last, "finish")
    variables: Variables = {"n": random.randint(0, 10)}
    outcome = Outcome(Counter({"begin": 1}))
    outcome.then(block.run(variables))
    outcome.then(Outcome(Counter({"finish": 1})))
    outcome.variables |= variables
    xml = (
        f'{HEAD}<error id="oops" name="oops" errorCode="OOPS"/><process id="blocks" isExecutable="true">'
        f'<startEvent id="begin"/>{"".join(drawing.elements)}<endEvent id="finish"/></process></definitions>'
    )
    return xml, variables, outcome
