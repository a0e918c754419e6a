"""BPMN files for tests, made of pieces of XML."""

from __future__ import annotations

from typing import Final

from holdfast.bpmn import model
from holdfast.bpmn.checks import check
from holdfast.bpmn.problems import Problem, list_errors
from holdfast.bpmn.reading import read

START: Final = '<bpmn:startEvent id="start"/>'
END: Final = '<bpmn:endEvent id="end"/>'
_HEAD: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"'
    ' xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI" xmlns:dc="http://www.omg.org/spec/DD/20100524/DC"'
    ' xmlns:di="http://www.omg.org/spec/DD/20100524/DI" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' {vendor} id="file" targetNamespace="test">\n'
)
ZEEBE: Final = 'xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"'
CAMUNDA: Final = 'xmlns:camunda="http://camunda.org/schema/1.0/bpmn"'


def make_file(content: str, vendor: str = ZEEBE) -> bytes:
    """A BPMN file with that content."""
    return f"{_HEAD.format(vendor=vendor)}{content}\n</bpmn:definitions>".encode()


def make_process(content: str, *, beside: str = "", vendor: str = ZEEBE) -> bytes:
    """A file with one executable process."""
    return make_file(f'{beside}\n<bpmn:process id="order" isExecutable="true">\n{content}\n</bpmn:process>', vendor)


def make_path(node: str, *, beside: str = "", vendor: str = ZEEBE, more: str = "") -> bytes:
    """A process in which the node `it` stands between the start and the end."""
    flows = flow("start", "it") + flow("it", "end")
    return make_process(f"{START}\n{node}\n{END}\n{flows}\n{more}", beside=beside, vendor=vendor)


def flow(source: str, target: str, condition: str = "") -> str:
    """A sequence flow between two nodes; its id is made of theirs."""
    inner = f"<bpmn:conditionExpression>{condition}</bpmn:conditionExpression>" if condition else ""
    return (
        f'<bpmn:sequenceFlow id="{source}_{target}" sourceRef="{source}" targetRef="{target}">{inner}</bpmn:sequenceFlow>\n'
    )


def find_problems(data: bytes) -> list[Problem]:
    """What reading and checking find about a file, notices included."""
    reading = read(data, "order.bpmn")
    return sorted([*reading.problems, *(check(reading.definitions) if reading.definitions is not None else ())])


def find_errors(data: bytes) -> list[Problem]:
    """The findings that refuse a file."""
    return list_errors(find_problems(data))


def find_codes(data: bytes) -> list[tuple[str, str]]:
    """The element and code of each finding that refuses a file."""
    return [(one.element, one.code) for one in find_errors(data)]


def find_notices(data: bytes) -> list[tuple[str, str]]:
    """The element and code of each finding that refuses nothing."""
    errors = find_errors(data)
    return [(one.element, one.code) for one in find_problems(data) if one not in errors]


def read_model(data: bytes) -> model.Definitions:
    """The model of a file that has no errors."""
    reading = read(data, "order.bpmn")
    assert not list_errors(reading.problems), list(map(str, reading.problems))
    assert reading.definitions is not None
    return reading.definitions


def read_node(data: bytes, id_: str = "it") -> model.AnyNode:
    """One node of the first process of a file that has no errors."""
    return next(node for node in read_model(data).processes[0].nodes if node.id == id_)
