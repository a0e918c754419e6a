"""Sends the outcomes of activities to the executions that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from holdfast.engine.turns.plan import Forward

if TYPE_CHECKING:
    from holdfast.core.effects import ActivityTask
    from holdfast.engine.requests import Request
    from holdfast.engine.routes import Routes
    from holdfast.engine.turns.forwarding import Forwarder


class OutcomeSender:
    """Sends an outcome to whoever takes the turns of its execution: into this node's next batch, or into the inbox.

    An outcome goes to the inbox where another node offered the activity and this node has no code for the workflow.
    """

    def __init__(
        self,
        routes: Routes,
        forwarder: Forwarder,
        *,
        submit: Callable[[Request], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._routes = routes
        self._forwarder = forwarder
        self._submit = submit
        self._spawn = spawn
        self._for_inbox: list[Request] = []

    def send(self, task: ActivityTask, request: Request) -> None:
        """Send what became of an activity's attempt. Those for the inbox are collected, and delivered together."""
        if not task.is_offered or self._routes.may_take(task.route):
            self._submit(request)
            return
        self._for_inbox.append(request)
        if len(self._for_inbox) == 1:
            self._spawn(self._deliver())

    async def _deliver(self) -> None:
        requests, self._for_inbox = self._for_inbox, []
        await self._forwarder.forward([Forward(request, request.execution_id) for request in requests])
