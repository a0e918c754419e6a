"""What may be done about a human task as it stands: who has claimed it, and whether it has ended (RULES H1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from holdfast.core.envelopes import AnyTaskStep, TaskCancelled, TaskCompleted, TaskRescheduled
from holdfast.core.instants import Instant
from holdfast.errors import TaskConflict, TaskEnded, TaskNotClaimed

_VERBS: Final[Mapping[type[AnyTaskStep], str]] = {
    TaskCompleted: "complete",
    TaskCancelled: "cancel",
    TaskRescheduled: "reschedule",
}


class TaskStanding(Protocol):
    """What the row of a human task says now."""

    @property
    def task_id(self) -> str:
        """The id under which people find it."""
        ...

    @property
    def name(self) -> str:
        """The name that its workflow gave it."""
        ...

    @property
    def state(self) -> str:
        """Whether it is open, claimed, completed or cancelled."""
        ...

    @property
    def claimer(self) -> str:
        """Who has claimed it; empty: nobody."""
        ...

    @property
    def version(self) -> int:
        """How many task events it has."""
        ...

    @property
    def due(self) -> Instant | None:
        """When the person is to have done it."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it has neither been completed nor cancelled."""
        ...


def require_open(task: TaskStanding, verb: str) -> None:
    """Raises TaskEnded if nothing can be done about a task any more."""
    if not task.is_open:
        raise TaskEnded(
            f"Expected to {verb} task {task.task_id} ('{task.name}'), but it is {task.state}. Nothing more can be done "
            "about it."
        )


def require_claimer(task: TaskStanding, by: str, verb: str) -> None:
    """Raises TaskEnded, or TaskNotClaimed if somebody has not claimed a task."""
    require_open(task, verb)
    if task.claimer != by:
        found = f"'{task.claimer}' has claimed it" if task.claimer else "nobody has claimed it"
        raise TaskNotClaimed(
            f"Expected to {verb} task {task.task_id} ('{task.name}') for '{by}', but {found}. Only its claimer may: "
            "claim it first."
        )


def check_step(task: TaskStanding, step: AnyTaskStep) -> None:
    """Raises TaskEnded or TaskNotClaimed if whoever takes a step may not, or not any more."""
    verb = _VERBS[type(step)]
    if type(step) is TaskCompleted:
        require_claimer(task, step.by, verb)
    else:
        require_open(task, verb)
    if type(step) is TaskCancelled and step.version not in (None, task.version):
        raise make_touched_error(step)


def make_touched_error(step: AnyTaskStep) -> TaskConflict:
    """Why a task is not cancelled as stale."""
    return TaskConflict(
        f"Expected to {_VERBS[type(step)]} task {step.task_id} since nobody had touched it, but somebody has meanwhile, or "
        "it is too late to tell. Look again whether it is stale."
    )


def make_gone_error(step: AnyTaskStep) -> TaskEnded:
    """Why a step cannot be taken about a task for which its workflow does not wait any more."""
    return TaskEnded(
        f"Expected to {_VERBS[type(step)]} task {step.task_id}, but its workflow has ended, or waits for it no longer. "
        "Nothing more can be done about it."
    )
