"""Incidents: raising them at an instance. How a resolved one goes on is in `resolving`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.bpmn import records
from holdfast.core import commands
from holdfast.core.safe_texts import make_plain_text

if TYPE_CHECKING:
    from holdfast.bpmn.faults import Fault
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance

LONGEST_MESSAGE: Final = 2_000


def raise_incident(run: Run, one: Instance, fault: Fault, phase: str, catcher: str = "") -> None:
    """Let people know that something went wrong with an instance, in a phase; with a `catcher`, with one of its events."""
    message = fault.message if len(fault.message) <= LONGEST_MESSAGE else f"{fault.message[:LONGEST_MESSAGE]}…"
    message = make_plain_text(message)  # a failure of a job has whatever its exception says
    number = run.next_number()
    element = catcher or one.element
    run.emit(records.Incident(one.key, number, fault.kind, message, catcher, phase))
    run.issue(
        commands.RaiseIncident(
            number=number, element=element, element_name=run.process.name_of(element), kind=fault.kind, message=message
        )
    )
