"""How executions ended, for those who wait for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final, TypeAlias

from holdfast.core import events, payloads
from holdfast.core.events import AnyEvent
from holdfast.core.failures import decode_details
from holdfast.errors import HoldfastError, WorkflowCancelled, WorkflowFailed, WorkflowTerminated

MOST_RECENT: Final = 10_000
LARGEST_KEPT: Final = 4_096


Key: TypeAlias = tuple[str, str]
"""(org, execution id): an org never hears of another's executions."""


class Outcomes:
    """Who waits for which execution's end, and the ends of the most recent ones."""

    def __init__(self) -> None:
        self._watchers: dict[Key, list[asyncio.Future[AnyEvent]]] = {}
        self._recent: OrderedDict[Key, AnyEvent] = OrderedDict()

    def note(self, key: Key, closing: AnyEvent) -> None:
        """An execution closed, and that is committed."""
        watchers = self._watchers.pop(key, None)
        if watchers is not None:
            for future in watchers:
                if not future.done():
                    future.set_result(closing)
        if _size(closing) <= LARGEST_KEPT:
            self._recent[key] = closing
            if len(self._recent) > MOST_RECENT:
                self._recent.popitem(last=False)

    def recall(self, key: Key) -> AnyEvent | None:
        """The end of an execution that closed a short while ago."""
        return self._recent.get(key)

    def watch(self, key: Key) -> asyncio.Future[AnyEvent]:
        """The end of an execution, when it comes."""
        future: asyncio.Future[AnyEvent] = asyncio.get_running_loop().create_future()
        self._watchers.setdefault(key, []).append(future)
        return future

    def forget(self, key: Key, future: asyncio.Future[AnyEvent]) -> None:
        """Somebody no longer waits."""
        watchers = self._watchers.get(key)
        if watchers is not None and future in watchers:
            watchers.remove(future)
            if not watchers:
                del self._watchers[key]

    def fail_all(self, error: HoldfastError) -> None:
        """Nobody will hear anything any more."""
        for watchers in self._watchers.values():
            for future in watchers:
                if not future.done():
                    future.set_exception(error)
        self._watchers.clear()

    @property
    def watched(self) -> list[Key]:
        """The executions that somebody waits for."""
        return list(self._watchers)


def to_value(closing: AnyEvent, hint: Any, workflow_id: str, execution_id: str) -> Any:
    """The result of an execution, or the error that says how it ended."""
    who = f"execution '{workflow_id}' ({execution_id})"
    if isinstance(closing, events.WorkflowCompleted):
        return payloads.decode(closing.result, hint, f"the result of {who}")
    if isinstance(closing, events.WorkflowFailed):
        failure = closing.failure
        raise WorkflowFailed(
            f"Expected {who} to return a result, but it raised {failure.type}: {failure.message}",
            type=failure.type,
            details=decode_details(failure),
            workflow_id=workflow_id,
            execution_id=execution_id,
        )
    if isinstance(closing, events.WorkflowCancelled):
        because = f": {closing.reason}" if closing.reason else ""
        raise WorkflowCancelled(
            f"Expected {who} to return a result, but it was cancelled{because}.",
            workflow_id=workflow_id,
            execution_id=execution_id,
        )
    reason = closing.reason if isinstance(closing, events.WorkflowTerminated) else ""
    raise WorkflowTerminated(
        f"Expected {who} to return a result, but it was terminated: {reason or 'no reason given'}.",
        workflow_id=workflow_id,
        execution_id=execution_id,
    )


def _size(closing: AnyEvent) -> int:
    payload = closing.result if isinstance(closing, events.WorkflowCompleted) else None
    return len(bytes(payload.data)) if payload is not None else 0
