"""Open incidents as they are shown."""

from __future__ import annotations

from datetime import datetime

from holdfast.core.instants import to_datetime
from holdfast.core.shown_values import ShownPage, ShownValue
from holdfast.store.incidents import IncidentRow


class IncidentInfo(ShownValue, frozen=True, kw_only=True):
    """Something that went wrong at an element of a process, which waits there until somebody corrects it."""

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    number: int
    """By which `resolve_incident` finds it, among those of its execution."""
    element: str
    """The id of the BPMN element."""
    element_name: str = ""
    """What the diagram calls it."""
    kind: str
    """What went wrong, in one word: `expression`, `job`, `condition` and so on."""
    message: str
    at: datetime

    def __str__(self) -> str:
        name = f"{self.element_name} ({self.element})" if self.element_name else self.element
        return f"incident {self.number} at {name}: {self.message}"


class IncidentList(ShownPage[IncidentInfo]):
    """A page of open incidents, those of the oldest executions first. `cursor` leads to the next page, if there is one."""

    items_name = "incidents"


def to_incident(row: IncidentRow) -> IncidentInfo:
    """An incident as it is shown."""
    return IncidentInfo(
        org=row.org,
        execution_id=row.execution_id,
        workflow_id=row.workflow_id,
        workflow=row.workflow,
        number=row.number,
        element=row.element,
        element_name=row.element_name,
        kind=row.kind,
        message=row.message,
        at=to_datetime(row.at),
    )
