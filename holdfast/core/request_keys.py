"""The key of a request: what makes a repeated call safe, and where the answer to a call is found."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import msgspec

from holdfast.core.instants import Instant

MADE_UP: Final = "call"
"""The kind of key that nobody else knows: the caller gave no request id, and the key only says where its answer is kept."""


class KeyScope(Enum):
    """What a key begins with, before the id that the caller gave: the id counts within it."""

    START = auto()
    """Nothing, or the workflow id that was asked for: the key stands for the execution that was started."""
    EXECUTION = auto()
    """The id by which the call named an execution. Repeated, the call reaches whichever run is open under it then."""
    TASK = auto()
    """A human task. The key goes with the execution that has the task."""
    ELSEWHERE = auto()
    """Something that is no part of an execution: a topic, a schedule, a workflow, a queue, dead letters."""


KEY_SCOPES: Final[Mapping[str, KeyScope]] = {
    "start": KeyScope.START,
    "start_request": KeyScope.START,
    "signal": KeyScope.EXECUTION,
    "signal_with_start": KeyScope.EXECUTION,
    "update": KeyScope.EXECUTION,
    "update_with_start": KeyScope.EXECUTION,
    "send_event_to": KeyScope.EXECUTION,
    "cancel": KeyScope.EXECUTION,
    "terminate": KeyScope.EXECUTION,
    "retry_blocked": KeyScope.EXECUTION,
    "pause": KeyScope.EXECUTION,
    "resume": KeyScope.EXECUTION,
    "task_claim": KeyScope.TASK,
    "task_release": KeyScope.TASK,
    "task_assign": KeyScope.TASK,
    "task_comment": KeyScope.TASK,
    "task_prioritize": KeyScope.TASK,
    "task_reschedule": KeyScope.TASK,
    "task_complete": KeyScope.TASK,
    "task_cancel": KeyScope.TASK,
    "send_message": KeyScope.ELSEWHERE,
    "send_event": KeyScope.ELSEWHERE,
    "remove_pending_event": KeyScope.ELSEWHERE,
    "broadcast_signal": KeyScope.ELSEWHERE,
    "pause_workflow": KeyScope.ELSEWHERE,
    "resume_workflow": KeyScope.ELSEWHERE,
    "pause_queue": KeyScope.ELSEWHERE,
    "resume_queue": KeyScope.ELSEWHERE,
    "create_schedule": KeyScope.ELSEWHERE,
    "update_schedule": KeyScope.ELSEWHERE,
    "pause_schedule": KeyScope.ELSEWHERE,
    "resume_schedule": KeyScope.ELSEWHERE,
    "run_schedule": KeyScope.ELSEWHERE,
    "backfill_schedule": KeyScope.ELSEWHERE,
    "delete_schedule": KeyScope.ELSEWHERE,
    "requeue_dead_letters": KeyScope.ELSEWHERE,
    "discard_dead_letters": KeyScope.ELSEWHERE,
}
"""Every kind of call that can be repeated safely. No key is made of a kind that is not here: exports go by it."""


def list_kinds(scope: KeyScope) -> list[str]:
    """The kinds of keys with a scope."""
    return [kind for kind, one in KEY_SCOPES.items() if one is scope]


class RequestKey(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What makes a repeated request safe: the first answer is given again until it expires."""

    kind: str
    key: str
    expires_at: Instant
