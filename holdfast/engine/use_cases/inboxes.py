"""What waits for an execution that does not take it, for people to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.core.lifecycle import Status
from holdfast.engine.views import ExecutionInfo, to_waiting

if TYPE_CHECKING:
    from holdfast.store.contract import Store


def may_be_stuck(info: ExecutionInfo) -> bool:
    """Whether an open execution may be unable to take what arrives: blocked, paused, damaged, or without its definition."""
    has_failed = info.last_error is not None and info.last_error.activity is None
    is_in_trouble = info.status is Status.BLOCKED or info.missing_definition is not None or has_failed
    return info.closed_at is None and (is_in_trouble or bool(info.pauses))


async def add_inbox(store: Store, info: ExecutionInfo) -> ExecutionInfo:
    """The info of an execution with what waits in its inbox."""
    rows = await store.list_inbox(info.org, info.execution_id, info.workflow_id)
    return msgspec.structs.replace(info, inbox=tuple(map(to_waiting, rows))) if rows else info
