"""The verbs about variables and incidents over a connection to the process that owns a database file; see `socket_verbs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client.socket_handler_verbs import SocketHandlerVerbs
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine.incident_views import IncidentList
from holdfast.engine.serving.messages import IncidentPage
from holdfast.engine.use_cases.variables import read_variables, resolve_incident, set_variables


class SocketRepairVerbs(SocketHandlerVerbs):
    """Takes calls about variables and incidents to the owner of a database."""

    async def variables(
        self, target: str, *, scope: str | None = None, org: str = DEFAULT_ORG, timeout: Duration | None = None
    ) -> dict[str, Any]:
        """The variables of a process, open or closed, by workflow id or execution id; or those of an element (`scope`).

        Raises ExecutionNotFound; InvalidArguments if the workflow is code, or the scope is not there; and what `query`
        raises.
        """
        return await read_variables(self, target, scope, org, timeout)

    async def set_variables(
        self,
        target: str,
        variables: Mapping[str, Any],
        *,
        scope: str | None = None,
        local: bool = False,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Set variables of an open process; it returns when that is durable.

        Each goes to the nearest scope that has it, from `scope` (the id of an element) outwards, else to the process; with
        `local`, all go to the scope itself. Calls with the same `request_id` are one call. Raises InvalidArguments,
        EncodingError, ExecutionNotFound, ExecutionClosed, and AnswerTimedOut after `timeout`, while the call goes on.
        """
        await set_variables(self, target, variables, scope, local=local, org=org, request_id=request_id, timeout=timeout)

    async def incidents(
        self,
        *,
        workflow: str | None = None,
        target: str | None = None,
        element: str | None = None,
        kind: str | None = None,
        org: str = DEFAULT_ORG,
        limit: int = 100,
        cursor: str | None = None,
    ) -> IncidentList:
        """List the open incidents for which all conditions hold, those of the oldest executions first.

        `target` is a workflow id or an execution id; `element` the id of a BPMN element. `cursor` of the list leads to the
        next page. Raises InvalidArguments, or ExecutionNotFound for a target that is not there.
        """
        named = {"workflow": workflow, "target": target, "element": element, "kind": kind, "org": org}
        page = await self._call("incidents", IncidentPage, [], {**named, "limit": limit, "cursor": cursor})
        found = IncidentList(page.incidents)
        found.cursor = page.cursor
        return found

    async def count_incidents(
        self,
        *,
        workflow: str | None = None,
        target: str | None = None,
        element: str | None = None,
        kind: str | None = None,
        org: str = DEFAULT_ORG,
    ) -> int:
        """Count the open incidents under the conditions of `incidents`, up to 10,000."""
        named = {"workflow": workflow, "target": target, "element": element, "kind": kind, "org": org}
        return await self._call("count_incidents", int, [], named)

    async def resolve_incident(
        self,
        target: str,
        number: int | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Let an open process try again where something went wrong, once `variables` are set; without a number, everywhere.

        If nothing has changed, the same goes wrong again, and that is a new incident. Raises IncidentNotFound,
        InvalidArguments, ExecutionNotFound, ExecutionClosed, and AnswerTimedOut after `timeout`, while the call goes on.
        """
        await resolve_incident(self, target, number, variables, org=org, request_id=request_id, timeout=timeout)
