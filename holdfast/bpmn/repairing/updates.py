"""What people change in a process from outside: updates with reserved names, answered after their commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.bpmn.repairing.resolving import list_incidents, resolve
from holdfast.bpmn.state import ROOT, Instance, State
from holdfast.bpmn.values import Variable
from holdfast.bpmn.variables import Changes, place
from holdfast.core import commands
from holdfast.core.failures import describe_exception
from holdfast.core.payloads import NULL, Payload
from holdfast.errors import HoldfastError, IncidentNotFound, InvalidArguments, UnknownUpdate

if TYPE_CHECKING:
    from holdfast.bpmn.running import Run

SET_VARIABLES: Final = "holdfast.set_variables"
RESOLVE_INCIDENT: Final = "holdfast.resolve_incident"
NAMES: Final = (SET_VARIABLES, RESOLVE_INCIDENT)


class SetVariables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Variables that are to have other values, from a scope outward or in it."""

    variables: dict[str, msgspec.Raw]
    scope: str | None = None
    local: bool = False


class ResolveIncident(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An incident that is to be resolved, or all of them; with variables that are set in the process before."""

    number: int | None = None
    variables: dict[str, msgspec.Raw] | None = None


_SET: Final = msgspec.json.Decoder(SetVariables)
_RESOLVE: Final = msgspec.json.Decoder(ResolveIncident)


def find_refusal(state: State, name: str, value: Payload) -> HoldfastError | None:
    """Why an update cannot be made; None if it can."""
    try:
        if name == SET_VARIABLES:
            given = _SET.decode(value.data)
            if given.scope is not None and find_scope(state, given.scope) is None:
                return InvalidArguments(
                    f"Expected an active element '{given.scope}' as the scope of variables, but there is none. "
                    "Name an element that is active, or leave the scope out."
                )
        elif name == RESOLVE_INCIDENT:
            wanted = _RESOLVE.decode(value.data)
            if not state.incidents:
                return IncidentNotFound(
                    "Expected the process to have an open incident, but it has none, and nothing was changed. To set "
                    "variables alone, use set_variables."
                )
            if wanted.number is not None and wanted.number not in state.incidents:
                shown = ", ".join(map(str, sorted(state.incidents)[:20])) or "none"
                return IncidentNotFound(
                    f"Expected an open incident with the number {wanted.number}, but there is none (open: {shown}). "
                    "Look at the execution's incidents again."
                )
        else:
            return UnknownUpdate(
                f"Expected an update that processes take, but '{name}' is none ({', '.join(NAMES)}). Send a message.",
                known=NAMES,
            )
    except (msgspec.MsgspecError, RecursionError) as error:
        return InvalidArguments(f"Expected the value of update '{name}' to have its form, but {error}.")
    return None


def find_scope(state: State, scope: str) -> Instance | None:
    """The active instance that a scope names, by its key or by the id of its element: the one that began first."""
    if scope.isdecimal() and len(scope) < 20 and int(scope) in state.active:
        return state.active[int(scope)]
    return next((one for one in state.active.values() if one.element == scope), None)


def carry_out(run: Run, update: int, name: str, value: Payload) -> None:
    """Make a change, and answer who asked for it."""
    refusal = find_refusal(run.state, name, value)
    if refusal is not None or run.state.root is None:
        failure = describe_exception(refusal or InvalidArguments("Expected a process that has begun, but it has not."))
        run.issue(commands.FailUpdate(update=update, failure=failure, is_rejected=True))
        return
    # Answered first: what is resolved may end the execution, and that command must be the last.
    run.issue(commands.CompleteUpdate(update=update, result=NULL))
    if name == SET_VARIABLES:
        _set_variables(run, _SET.decode(value.data))
    else:
        given = _RESOLVE.decode(value.data)
        if given.variables:
            run.set_variables({ROOT: _read(given.variables)})
        for number in list_incidents(run) if given.number is None else (given.number,):
            resolve(run, number)


def _set_variables(run: Run, given: SetVariables) -> None:
    one = None if given.scope is None else find_scope(run.state, given.scope)
    key = ROOT if one is None else one.key
    variables = _read(given.variables)
    changes: Changes = {}
    if given.local:
        changes[key] = variables
    else:
        place(run.state, key, variables, changes)
    run.set_variables(changes)


def _read(raws: dict[str, msgspec.Raw]) -> dict[str, Variable]:
    return {name: Variable(bytes(value)) for name, value in raws.items()}
