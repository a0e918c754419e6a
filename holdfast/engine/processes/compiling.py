"""From the content of deployed files to what programs need: compiled processes, decision models, forms.

Takes a while for large files: to be called in threads. The packages that read and compile are imported with the first one,
so that applications without processes do not load them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import CorruptStore
from holdfast.store.definitions import DefinitionKind

if TYPE_CHECKING:
    from holdfast.bpmn import model
    from holdfast.bpmn.executable import CompiledProcess
    from holdfast.store.definitions import ResourceRow


class Reference(msgspec.Struct, frozen=True):
    """A decision or a form that a process refers to by a constant id, or by one that is computed."""

    kind: DefinitionKind
    id: str
    """Empty: it is computed, so that any may be meant."""
    binding: str = "latest"
    version_tag: str = ""


class CompiledContent(msgspec.Struct, frozen=True):
    """A process that is compiled, and what it refers to."""

    process: CompiledProcess
    references: tuple[Reference, ...]
    size: int
    """How many bytes its file has."""


def compile_content(resource: ResourceRow, process_id: str) -> CompiledContent:
    """Compile a process of a deployed file. Raises CorruptStore if the file has no such process."""
    from holdfast.bpmn.compiling import compile_process  # noqa: PLC0415
    from holdfast.bpmn.reading import read  # noqa: PLC0415

    reading = read(resource.data, resource.name)
    found = None
    if reading.definitions is not None:
        found = next((one for one in reading.definitions.processes if one.id == process_id), None)
    if reading.definitions is None or found is None:
        raise CorruptStore(
            f"Expected '{resource.name}' to contain process '{process_id}', as when it was deployed, but it does not. "
            "Deploy the file again."
        )
    compiled = compile_process(reading.definitions, process_id)
    return CompiledContent(compiled, tuple(dict.fromkeys(list_references(found))), len(resource.data))


def load_decisions(resource: ResourceRow) -> Any:
    """The decision model of a deployed file."""
    from holdfast import dmn  # noqa: PLC0415

    return dmn.load(resource.data)


def list_references(container: model.AnyContainer) -> Iterator[Reference]:
    """The decisions and forms that a process or sub-process refers to."""
    from holdfast.bpmn import model  # noqa: PLC0415

    for node in container.nodes:
        if isinstance(node, model.BusinessRuleTask) and (called := node.decision) is not None:
            decision_id = called.decision.text if called.decision.is_static else ""
            yield Reference(DefinitionKind.DMN, decision_id, called.binding.value, called.version_tag)
        elif isinstance(node, model.UserTask) and node.form is not None and node.form.form_id:
            yield Reference(DefinitionKind.FORM, node.form.form_id)
        elif isinstance(node, model.SubProcess):
            yield from list_references(node)
