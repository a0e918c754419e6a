"""The workflows and activities that an engine has, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.code import guard, ordered
from holdfast.code.definitions import Activity, Workflow, index_by_name
from holdfast.code.instance import CodeProgram
from holdfast.core.execution import Execution
from holdfast.core.program import Program
from holdfast.errors import InvalidDefinition, UnknownWorkflow


class Registry:
    """Checked once, when the engine is made."""

    def __init__(
        self,
        workflows: Iterable[Workflow[..., Any]],
        activities: Iterable[Activity[..., Any]],
        payload_limit: int,
    ) -> None:
        self.workflows = index_by_name(workflows, "workflow")
        self.activities = index_by_name(activities, "activity")
        self._payload_limit = payload_limit
        guard.install()
        ordered.install()
        for workflow in self.workflows.values():
            found = guard.scan(workflow.function)
            if found:
                listing = "\n  ".join(found)
                raise InvalidDefinition(
                    f"Expected workflow '{workflow.name}' to be deterministic, but its code is not:\n  {listing}"
                )

    def find(self, workflow: Workflow[..., Any] | str) -> Workflow[..., Any]:
        """The registered workflow. Raises UnknownWorkflow that lists what there is."""
        name = workflow.name if isinstance(workflow, Workflow) else workflow
        found = self.workflows.get(name) if isinstance(name, str) else None
        if found is None:
            raise _unknown(name, self.workflows)
        return found

    def make_program(self, execution: Execution) -> Program:
        """The program of an execution, before its first event."""
        definition = self.workflows.get(execution.workflow)
        if definition is None:
            raise _unknown(execution.workflow, self.workflows)
        return CodeProgram(definition, execution.org, execution.execution_id, self._payload_limit)


def _unknown(name: object, known: Iterable[str]) -> UnknownWorkflow:
    shown, listing = getattr(name, "__name__", name), ", ".join(sorted(known)) or "none"
    return UnknownWorkflow(
        f"Expected workflow {shown!r} to be registered with the engine, but it is not (known: {listing}). "
        "Decorate it with @workflow and pass it in Engine(..., workflows=[...])."
    )
