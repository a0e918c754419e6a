"""The verbs that call handlers which workflow code has registered: queries and updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration


class QueryAndUpdateVerbs(Protocol):
    """Asks the query handlers of executions, and calls their update handlers."""

    async def query(
        self,
        target: str,
        name: str,
        *args: Any,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Ask a query handler of an execution, open or closed; what it returns, read as `hint`. Changes nothing.

        A node that has the code answers. Raises UnknownQuery, which names the queries that there are; ExecutionNotBegun;
        InvalidArguments; ReadOnlyHandler; QueryFailed; AnswerTimedOut after `timeout`, or after half a minute; and
        NobodyAnswers.
        """
        ...

    async def update(
        self,
        target: str,
        name: str,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Call an update handler of an open execution, by workflow id or execution id; what it returns, read as `hint`.

        The answer comes after what the handler did is durable. Calls with the same `request_id` for the same target are one
        call. Raises UnknownUpdate, InvalidArguments or UpdateRejected, after which nothing is stored; UpdateFailed;
        UpdateUnfinished; AnswerTimedOut after `timeout`, while the update goes on; NobodyAnswers.
        """
        ...

    async def update_with_start(
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        update_name: str,
        update_value: Any = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        hint: Any = Any,
        **options: Any,
    ) -> Any:
        """Update the open execution that has the workflow id, or start one that has the update, in one transaction.

        The options are those of `signal_with_start_workflow`, and keywords that are none are arguments of the workflow.
        """
        ...
