"""Incidents: what went wrong at one place of a process, which waits there until somebody corrects it.

The rest of the process goes on. An incident is open from `IncidentRaised` on until the program resolves it, since it tried
the same again or left the place, or until the execution closes. One that begins and ends within one turn is no row at any
time.
"""

from __future__ import annotations

from holdfast.core import commands, events
from holdfast.core.effects import Turn
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.unused import add, put


def record_raised(turn: Turn, command: commands.RaiseIncident) -> events.IncidentRaised:
    """Record that something went wrong: people find it among the incidents from the commit on."""
    turn.has_rare = True
    turn.incidents = add(turn.incidents, (command,))
    return events.IncidentRaised(
        number=command.number,
        element=command.element,
        element_name=command.element_name,
        kind=command.kind,
        message=command.message,
    )


def record_resolved(turn: Turn, command: commands.ResolveIncident) -> events.IncidentResolved | None:
    """The program tried again, or left the place: end the incident, if it is open."""
    if command.number not in turn.execution.incidents:
        return None
    _end(turn, command.number)
    return events.IncidentResolved(number=command.number)


def close_incidents(turn: Turn) -> None:
    """The execution closes: nobody can correct anything in it any more."""
    begun = {one.number for one in turn.incidents}
    if begun:
        turn.incidents.clear()
    ended = [number for number in turn.execution.incidents if number not in begun]
    if ended:
        turn.has_rare = True
        turn.ended_incidents = add(turn.ended_incidents, ended)


def _end(turn: Turn, number: int) -> None:
    begun = next((one for one in turn.incidents if one.number == number), None) if turn.incidents else None
    if begun is not None:
        turn.incidents.remove(begun)
    else:
        turn.has_rare = True
        turn.ended_incidents = add(turn.ended_incidents, (number,))


def evolve_raised(execution: Execution, event: events.IncidentRaised, _now: Instant) -> None:
    """The incident is open from now on."""
    execution.incidents = put(execution.incidents, event.number, event)


def evolve_resolved(execution: Execution, event: events.IncidentResolved, _now: Instant) -> None:
    """The incident is open no longer."""
    execution.incidents.pop(event.number, None)
