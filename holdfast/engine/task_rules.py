"""What people may do with a human task, as pure functions: from its row to the next one, or a refusal (RULES H1).

| step     | by                                                        | in state      |
|----------|-----------------------------------------------------------|---------------|
| claim    | the assignee, a candidate user, a member of a candidate group; anybody if there is none of them | open |
| release  | its claimer                                               | claimed       |
| complete | its claimer                                               | claimed       |
| assign, cancel, comment, set the priority or the due date | anybody: who may is for the caller to decide | open, claimed |

The groups of an escalation are candidate groups from then on; but a task that everybody may claim stays one. Assigning ends
a claim. A refused step changes nothing. Completing, cancelling and setting the due date are envelopes: a turn of the
execution decides on them, by the same rules (`core.task_standings`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.envelopes import TaskCancelled, TaskCompleted, TaskRescheduled
from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload
from holdfast.core.request_keys import RequestKey
from holdfast.core.task_standings import require_claimer, require_open
from holdfast.errors import NotTaskCandidate, TaskClaimed
from holdfast.store.tasks import TaskChange, TaskEventBody, TaskEventRow, TaskRow, TaskState


class Actor(msgspec.Struct, frozen=True):
    """Who does something, when, and as a member of which groups."""

    by: str
    groups: tuple[str, ...]
    at: Instant


Changed: TypeAlias = dict[str, Any]


def claim(row: TaskRow, actor: Actor) -> TaskChange:
    """Somebody takes the task. Raises TaskEnded, TaskClaimed or NotTaskCandidate."""
    require_open(row, "claim")
    if row.state == TaskState.CLAIMED:
        raise TaskClaimed(
            f"Expected to claim task {row.task_id} ('{row.name}') for '{actor.by}', but '{row.claimer}' has claimed it. "
            "Take another, or have it released or assigned first."
        )
    if not may_claim(row, actor.by, actor.groups):
        raise NotTaskCandidate(
            f"Expected '{actor.by}' to be allowed to claim task {row.task_id} ('{row.name}'), but only "
            f"{_name_candidates(row)} may. Assign it, or claim it as one of them."
        )
    return _change(row, actor, "claimed", {"state": TaskState.CLAIMED, "claimer": actor.by})


def may_claim(row: TaskRow, by: str, groups: Collection[str]) -> bool:
    """Whether somebody is the assignee or a candidate, or there was neither; an escalation locks nobody out."""
    if not (row.assignee or row.users or row.roles):
        return True
    return by == row.assignee or by in row.users or any(one in row.groups for one in groups)


def release(row: TaskRow, actor: Actor) -> TaskChange:
    """The claimer gives the task back. Raises TaskEnded or TaskNotClaimed."""
    require_claimer(row, actor.by, "release")
    return _change(row, actor, "released", {"state": TaskState.OPEN, "claimer": ""})


def assign(row: TaskRow, actor: Actor, assignee: str) -> TaskChange:
    """The task becomes somebody's, whose claim alone it needs; an empty name: nobody's. Raises TaskEnded."""
    require_open(row, "assign")
    kind = "reassigned" if row.assignee or row.claimer else "assigned"
    return _change(row, actor, kind, {"assignee": assignee, "claimer": "", "state": TaskState.OPEN})


def set_priority(row: TaskRow, actor: Actor, priority: int) -> TaskChange:
    """Change how urgent the task is. Raises TaskEnded."""
    require_open(row, "change")
    return _change(row, actor, "prioritized", {"priority": priority})


def comment(row: TaskRow, actor: Actor, text: Payload) -> TaskChange:
    """Somebody says something about the task. Raises TaskEnded."""
    require_open(row, "comment on")
    return _change(row, actor, "commented", {}, comment=text)


def complete(row: TaskRow, actor: Actor, form: Payload, key: RequestKey) -> TaskCompleted:
    """The claimer has done it: its workflow gets the form."""
    return TaskCompleted(number=row.number, task_id=row.task_id, value=form, by=actor.by, groups=actor.groups, request=key)


def cancel(row: TaskRow, actor: Actor, reason: str, key: RequestKey) -> TaskCancelled:
    """Nobody is to do it any more: its workflow catches HumanTaskCancelled."""
    return TaskCancelled(
        number=row.number, task_id=row.task_id, by=actor.by, groups=actor.groups, reason=reason, request=key
    )


def reschedule(row: TaskRow, actor: Actor, due: Instant | None, key: RequestKey) -> TaskRescheduled:
    """It is due at another time, or at none."""
    return TaskRescheduled(number=row.number, task_id=row.task_id, due=due, by=actor.by, groups=actor.groups, request=key)


# --- parts ---


def _name_candidates(row: TaskRow) -> str:
    parts = [f"its assignee '{row.assignee}'"] if row.assignee else []
    parts += [f"the users {', '.join(row.users)}"] if row.users else []
    parts += [f"members of {', '.join(row.groups)}"] if row.groups else []
    return " and ".join(parts)


def _change(
    row: TaskRow, actor: Actor, kind: str, changed: Changed, *, reason: str = "", comment: Payload | None = None
) -> TaskChange:
    told = {name: value for name, value in changed.items() if name not in ("body", "ended_at")}
    body = TaskEventBody(reason=reason, comment=comment, before={name: getattr(row, name) for name in told}, after=told)
    after = replace(row, version=row.version + 1, updated_at=max(row.updated_at, actor.at), **changed)
    event = TaskEventRow(row.task_id, after.version, kind, after.updated_at, actor.by, actor.groups, codec.encode(body))
    return TaskChange(after, event)
