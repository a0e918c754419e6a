"""The variables of processes, and the end of their incidents: updates and queries that every process answers.

Their names are reserved; their values are made and checked here, whoever takes the call. So they are answered after their
commit, done once for each request id, and on whichever node the process is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from holdfast.core.instants import Duration
from holdfast.errors import InvalidArguments, UnknownQuery, UnknownUpdate

SET_VARIABLES: Final = "holdfast.set_variables"
RESOLVE_INCIDENT: Final = "holdfast.resolve_incident"
VARIABLES: Final = "holdfast.variables"
STATE: Final = "holdfast.state"


class QueryCalls(Protocol):
    """Takes queries to executions: an engine, or a connection to one."""

    async def query(
        self, target: str, name: str, *args: Any, org: str, timeout: Duration | None = None, hint: Any = Any
    ) -> Any:
        """Ask an execution; what it answers, read as `hint`."""
        ...


class UpdateCalls(Protocol):
    """Takes updates to executions: an engine, or a connection to one."""

    async def update(
        self,
        target: str,
        name: str,
        value: Any = None,
        *,
        org: str,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update of an open execution; what it answers, read as `hint`."""
        ...


async def read_variables(
    verbs: QueryCalls, target: str, scope: str | None, org: str, timeout: Duration | None
) -> dict[str, Any]:
    """The variables of an execution of a process, or those of one of its elements. Raises InvalidArguments and the like."""
    _check_scope(scope)
    try:
        found: dict[str, Any] = await verbs.query(
            target, VARIABLES, {"scope": scope}, org=org, timeout=timeout, hint=dict[str, Any]
        )
    except UnknownQuery:
        raise _refuse_code(target, "variables") from None
    return found


async def set_variables(
    verbs: UpdateCalls,
    target: str,
    variables: Mapping[str, Any],
    scope: str | None,
    *,
    local: bool,
    org: str,
    request_id: str | None,
    timeout: Duration | None,
) -> None:
    """Set variables of an open execution of a process. Raises InvalidArguments, EncodingError and the like."""
    _check_scope(scope)
    if not isinstance(local, bool):
        raise InvalidArguments(f"Expected local=… to be True or False, but it is {local!r:.100}.")
    value = {"variables": check_variables(variables), "scope": scope, "local": local}
    try:
        await verbs.update(target, SET_VARIABLES, value, org=org, request_id=request_id, timeout=timeout)
    except UnknownUpdate:
        raise _refuse_code(target, "variables") from None


async def resolve_incident(
    verbs: UpdateCalls,
    target: str,
    number: int | None,
    variables: Mapping[str, Any] | None,
    *,
    org: str,
    request_id: str | None,
    timeout: Duration | None,
) -> None:
    """Let a process try again where something went wrong. Raises IncidentNotFound, InvalidArguments and the like."""
    if number is not None and (type(number) is not int or number < 1):
        raise InvalidArguments(
            f"Expected the number of an incident, but it is {number!r:.100}. Take it from the list of incidents, or leave "
            "it out to resolve all of the execution."
        )
    value = {"number": number, "variables": None if variables is None else check_variables(variables)}
    try:
        await verbs.update(target, RESOLVE_INCIDENT, value, org=org, request_id=request_id, timeout=timeout)
    except UnknownUpdate:
        raise _refuse_code(target, "incidents") from None


def check_variables(variables: Any) -> dict[str, Any]:
    """Variables by name. Raises InvalidArguments; whether their values can be JSON is seen when they are encoded."""
    is_mapping = isinstance(variables, Mapping)
    if not is_mapping or not all(isinstance(name, str) and name for name in variables):
        raise InvalidArguments(
            f"Expected variables to be a mapping from names to values, but it is {variables!r:.100}. "
            "Pass for instance {'total': 120}."
        )
    return dict(variables)


def _check_scope(scope: Any) -> None:
    if scope is not None and not (isinstance(scope, str) and scope):
        raise InvalidArguments(
            f"Expected scope=… to be the id of an element, or the key of one of its instances, but it is {scope!r:.100}. "
            "Leave it out for the variables of the process."
        )


def _refuse_code(target: str, what: str) -> InvalidArguments:
    return InvalidArguments(
        f"Expected execution '{target}' to be one of a process, but its workflow is code, which has no {what}. "
        "Use the queries and updates that its code handles."
    )
