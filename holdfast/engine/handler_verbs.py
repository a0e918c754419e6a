"""The verbs of an engine that call handlers which workflow code has registered: queries and updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG, check_identifier
from holdfast.core.instants import Duration
from holdfast.engine.replies import read_reply
from holdfast.engine.use_cases.answered_calls import AnsweredCalls
from holdfast.engine.use_cases.change_waits import ChangeWaits
from holdfast.engine.use_cases.delivery import Delivery
from holdfast.engine.use_cases.program_queries import ProgramQueries
from holdfast.engine.views import ExecutionInfo


class HandlerVerbs:
    """Asks the query handlers of executions, and calls their update handlers. An engine makes its parts."""

    _answered: AnsweredCalls
    _delivery: Delivery
    _change_waits: ChangeWaits
    _program_queries: ProgramQueries

    def _check_open(self) -> None:
        """Raises EngineClosed or WrongEventLoop if the engine cannot take calls now."""
        raise NotImplementedError

    async def query(
        self,
        target: str,
        name: str,
        *args: Any,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        hint: Any = Any,
    ) -> Any:
        """Ask a query handler of an execution, open or closed; what it returns, read as `hint`.

        The handler sees what is committed, and changes nothing. Where this process lacks the code, a node that has it
        answers. Raises UnknownQuery, which names the queries that there are; ExecutionNotBegun if the code has not begun,
        which says why; InvalidArguments; ReadOnlyHandler if the handler tries to change something; QueryFailed if it
        raises, or if the history cannot be replayed; AnswerTimedOut after `timeout`, or after half a minute if no node that
        has the code answers.
        """
        self._check_open()
        answer = await self._program_queries.ask(org, target, name, args, timeout)
        return payloads.decode(answer, hint, f"the answer to query '{name}'")

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
        call: each gets the first answer. Raises UnknownUpdate, InvalidArguments or UpdateRejected, after which nothing is
        stored; UpdateFailed if the handler raised; UpdateUnfinished if the workflow ended before the handler; AnswerTimedOut
        after `timeout`, while the update goes on.
        """
        self._check_open()
        check_identifier(org, "the org")
        check_identifier(target, "the id of an execution")
        key = self._delivery.make_reply_key("update", request_id, target)
        update = self._answered.make_update(name, value, key, headers)
        reply = await self._answered.reach(org, target, update, timeout)
        return read_reply(reply, hint, f"the result of update '{name}'")

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

        The options are those of `signal_with_start_workflow`. If the update is refused, no execution is started; where this
        process lacks the code of the workflow, the execution exists before another node can refuse the update.
        """
        self._check_open()
        delivery, kind = self._delivery, "update_with_start"
        await delivery.unknown_names.learn(org, workflow, options.get("version"))
        prepared = delivery.make_start_with_signal(org, workflow_id, workflow, args, options, kind)
        key = prepared.key or delivery.make_reply_key(kind, None, workflow_id)
        update = self._answered.make_update(update_name, update_value, key, options.get("headers"))
        reply = await self._answered.start(org, prepared, update, timeout)
        return read_reply(reply, hint, f"the result of update '{update_name}'")

    async def wait_for_change(
        self,
        target: str,
        seen: int | None = None,
        *,
        seen_pauses: Sequence[str] | None = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
    ) -> ExecutionInfo:
        """The status of an execution as soon as its `state_version` is another than `seen`; `handle.wait_for` calls this.

        With `seen_pauses`, the pauses that were seen as texts, also as soon as it has others. It may return sooner, with
        what was seen. Raises ExecutionNotFound, or AnswerTimedOut after `timeout`.
        """
        self._check_open()
        return await self._change_waits.wait(org, target, seen, seen_pauses, timeout)
