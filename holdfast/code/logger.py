"""A logger for workflow code that speaks once: what was said before a replay is not said again."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from holdfast.code import guard
from holdfast.log_events import FIELDS, LogEvent

if TYPE_CHECKING:
    from holdfast.code.context import Info
    from holdfast.core.failures import Failure


class WorkflowLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds the execution to each record, and is silent while history is replayed."""

    def __init__(self, info: Info, is_silent: Callable[[], bool]) -> None:
        super().__init__(logging.getLogger(f"holdfast.workflow.{info.workflow}"), {})
        self._prefix = f"[{info.workflow_id}] "
        self._fields = dict[str, Any].fromkeys(("event", *FIELDS))
        self._fields |= {"org": info.org, "workflow": info.workflow}
        self._fields |= {"workflow_id": info.workflow_id, "execution_id": info.execution_id}
        self._is_silent = is_silent

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        """Whether a message of that level is written: none while the program is replayed or unloaded."""
        return not self._is_silent() and super().isEnabledFor(level)

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Write a record; handlers may open files and read clocks."""
        if self.isEnabledFor(level):
            with guard.allow():
                super().log(level, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Put the workflow id before the message, and into the record the fields that the engine's own records have."""
        kwargs["extra"] = {**self._fields, **(kwargs.get("extra") or {})}
        return f"{self._prefix}{msg}", kwargs


def warn_of_ignored(info: Info, what: str) -> None:
    """Log that a workflow ended without having awaited something that it asked for."""
    WorkflowLogger(info, lambda: False).warning(
        "the workflow asked for %s, never awaited it, and has ended: nobody waits for it. Write `await` before the call.",
        what,
        extra={"event": LogEvent.CALL_NOT_AWAITED},
    )


def warn_of_lost(info: Info, what: str, failure: Failure) -> None:
    """Log that something of a workflow raised an exception that nobody will look at."""
    place = failure.trace.rpartition("\n")[2] or "an unknown place"
    WorkflowLogger(info, lambda: False).warning(
        "%s of the workflow raised %s: %s at %s, and nobody awaited it. Await it, or catch that inside it.",
        what,
        failure.type,
        failure.message,
        place,
        extra={"event": LogEvent.TASK_NOT_AWAITED, "trace": failure.trace},
    )
