"""The verbs about the variables and incidents of processes, on the engine's own use cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine.handler_verbs import HandlerVerbs
from holdfast.engine.incident_views import IncidentList
from holdfast.engine.use_cases.incidents import IncidentConditions, IncidentQueries
from holdfast.engine.use_cases.variables import read_variables, resolve_incident, set_variables


class EngineRepairVerbs(HandlerVerbs):
    """What can be asked about variables and incidents while an engine is open."""

    _incident_queries: IncidentQueries

    async def variables(
        self, target: str, *, scope: str | None = None, org: str = DEFAULT_ORG, timeout: Duration | None = None
    ) -> dict[str, Any]:
        """The variables of a process, open or closed, by workflow id or execution id; or those of an element (`scope`).

        Raises ExecutionNotFound; InvalidArguments if the workflow is code, or the scope is not there; and what `query`
        raises.
        """
        self._check_open()
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
        self._check_open()
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
        self._check_open()
        conditions = IncidentConditions(org=org, workflow=workflow, target=target, element=element, kind=kind)
        return await self._incident_queries.list(conditions, limit, cursor)

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
        self._check_open()
        conditions = IncidentConditions(org=org, workflow=workflow, target=target, element=element, kind=kind)
        return await self._incident_queries.count(conditions)

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
        self._check_open()
        await resolve_incident(self, target, number, variables, org=org, request_id=request_id, timeout=timeout)
