"""The models that a case works with: which elements, flows and decisions the deployed files have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from holdfast import dmn
from holdfast.bpmn import model
from holdfast.bpmn.reading import read
from holdfast.errors import HoldfastError
from holdfast.testing.process_cases import DecisionSelector, ElementSelector


class CaseFailed(HoldfastError):
    """A test case of a process does not hold, or cannot be carried out. Its message says what was expected and found."""


FlowKey: TypeAlias = str
"""The id of a sequence flow."""


class ProcessModel(msgspec.Struct, frozen=True):
    """One process with all elements and flows that can be covered, those of its sub-processes too."""

    id: str
    name: str
    file: str
    elements: Mapping[str, model.Element]
    """By id, in the order of the file."""
    flows: Mapping[FlowKey, model.SequenceFlow]

    def matches(self, selector: ElementSelector, element_id: str) -> bool:
        """Whether a selector means the element."""
        element = self.elements.get(element_id)
        name = "" if element is None else element.name
        return selector.element_id in (None, element_id) and selector.element_name in (None, name)


class CaseModels:
    """The processes and decisions of the files that a case deploys."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.processes: dict[str, ProcessModel] = {}
        self._decisions: list[dmn.Model] = []
        for name, data in files.items():
            if name.endswith(".dmn"):
                self._decisions.append(dmn.load(data))
            elif name.endswith((".bpmn", ".bpmn20.xml")):
                definitions = read(data, name).definitions
                for process in () if definitions is None else definitions.processes:
                    if process.is_executable:
                        self.processes[process.id] = make_process_model(process, name)

    def find_process(self, process_id: str) -> ProcessModel:
        """The process of an id; one without elements if no file of the case has it."""
        return self.processes.get(process_id) or ProcessModel(process_id, "", "", {}, {})

    def find_decision(self, selector: DecisionSelector) -> tuple[str, dmn.Model]:
        """The id of the decision that a selector means, with its model. Raises CaseFailed if there is none."""
        offered = [(one, loaded) for loaded in self._decisions for one in (*loaded.decisions, *loaded.services)]
        for one, loaded in offered:
            if selector.decision_definition_id in (None, one.id) and selector.decision_definition_name in (None, one.name):
                return one.id, loaded
        known = ", ".join(f"'{one.id}'" for one, _ in offered) or "none"
        raise CaseFailed(
            f"Expected the files of the case to have the decision {describe(selector)}, but they have {known}. "
            "Name the file under 'resources', or correct the selector."
        )


def make_process_model(process: model.Process, file: str) -> ProcessModel:
    """All that can be covered of a process."""
    elements: dict[str, model.Element] = {}
    flows: dict[str, model.SequenceFlow] = {}
    for container in list_containers(process):
        elements.update((node.id, node) for node in container.nodes)
        flows.update((flow.id, flow) for flow in container.flows)
    return ProcessModel(process.id, process.name, file, elements, flows)


def list_containers(container: model.AnyContainer) -> Iterator[model.AnyContainer]:
    """A process and all sub-processes in it."""
    yield container
    for node in container.nodes:
        if isinstance(node, model.SubProcess):
            yield from list_containers(node)


def describe(selector: msgspec.Struct) -> str:
    """What a selector selects by, in words: `elementId 'charge'`."""
    said = {key: value for key, value in msgspec.to_builtins(selector).items() if value is not None}
    return " and ".join(f"{key} {value!r}" for key, value in said.items()) or "(any)"
