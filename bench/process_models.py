"""The processes that benchmarks run, as BPMN files."""

from __future__ import annotations

from collections.abc import Iterable

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="bench" targetNamespace="urn:bench">'
)


def make_file(process_id: str, elements: Iterable[str], declared: str = "") -> bytes:
    """A file with one process."""
    inside = "".join(elements)
    return f'{HEAD}{declared}<process id="{process_id}" isExecutable="true">{inside}</process></definitions>'.encode()


def flow(source: str, target: str, condition: str = "") -> str:
    """A sequence flow, whose id follows from its ends."""
    inner = f'<conditionExpression xsi:type="tFormalExpression">={condition}</conditionExpression>' if condition else ""
    return f'<sequenceFlow id="{source}-{target}" sourceRef="{source}" targetRef="{target}">{inner}</sequenceFlow>'


def script(id_: str, expression: str, variable: str) -> str:
    """A script task in FEEL."""
    made = f'<zeebe:script expression="={expression}" resultVariable="{variable}" />'
    return f'<scriptTask id="{id_}" name="{id_}"><extensionElements>{made}</extensionElements></scriptTask>'


def make_order() -> bytes:
    """Eight nodes, as the side-by-side harness has them: a price, a gateway, three scripts on each branch."""
    return make_file(
        "order",
        (
            '<startEvent id="start" />',
            script("price", "amount * 2", "total"),
            '<exclusiveGateway id="big" default="big-b1" />',
            *(script(f"a{n}", "total + 1" if n == 1 else "x + 1", "x") for n in (1, 2, 3)),
            *(script(f"b{n}", "total - 1" if n == 1 else "x - 1", "x") for n in (1, 2, 3)),
            '<endEvent id="end" />',
            flow("start", "price"),
            flow("price", "big"),
            flow("big", "a1", "total &gt; 500"),
            flow("big", "b1"),
            *(flow(f"{branch}{n}", f"{branch}{n + 1}") for branch in "ab" for n in (1, 2)),
            flow("a3", "end"),
            flow("b3", "end"),
        ),
    )


def make_waiting() -> bytes:
    """A process that waits for a message."""
    return make_file(
        "waiting",
        (
            '<startEvent id="start" />',
            '<intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m" /></intermediateCatchEvent>',
            '<endEvent id="end" />',
            flow("start", "catch"),
            flow("catch", "end"),
        ),
        '<message id="m" name="go" />',
    )


def make_stepping() -> bytes:
    """A loop of one catching event: each signal is one step, for ever."""
    return make_file(
        "stepping",
        (
            '<startEvent id="start" />',
            '<exclusiveGateway id="merge" />',
            '<intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m" /></intermediateCatchEvent>',
            script("count", "n + 1", "n"),
            flow("start", "merge"),
            flow("merge", "catch"),
            flow("catch", "count"),
            flow("count", "merge"),
        ),
        '<message id="m" name="step" />',
    )


def make_repeated(count: int) -> bytes:
    """A parallel multi-instance script."""
    loop = (
        "<multiInstanceLoopCharacteristics><extensionElements>"
        f'<zeebe:loopCharacteristics inputCollection="=for i in 1..{count} return i" inputElement="item" '
        'outputCollection="squares" outputElement="=square" /></extensionElements></multiInstanceLoopCharacteristics>'
    )
    task = script("square-task", "item * item", "square").replace("</scriptTask>", f"{loop}</scriptTask>")
    return make_file(
        "repeated",
        (
            '<startEvent id="start" />',
            task,
            '<endEvent id="end" />',
            flow("start", "square-task"),
            flow("square-task", "end"),
        ),
    )


def make_large(elements: int) -> bytes:
    """A chain of so many elements: service tasks, scripts, gateways with conditions."""
    made: list[str] = ['<startEvent id="e0" />']
    for n in range(1, elements - 1):
        kind = n % 4
        if kind == 0:
            job = '<zeebe:taskDefinition type="work" retries="3" />'
            made.append(f'<serviceTask id="e{n}" name="Step {n}"><extensionElements>{job}</extensionElements></serviceTask>')
        elif kind == 1:
            made.append(script(f"e{n}", f"{{a: x + {n}, b: if x > {n} then 1 else 2}}.a", "x"))
        elif kind == 2:
            made.append(f'<exclusiveGateway id="e{n}" default="e{n}-e{n + 1}" />')
        else:
            made.append(f'<userTask id="e{n}" name="Look {n}" />')
    made.append(f'<endEvent id="e{elements - 1}" />')
    made.extend(flow(f"e{n}", f"e{n + 1}") for n in range(elements - 1))
    return make_file("large", made)
