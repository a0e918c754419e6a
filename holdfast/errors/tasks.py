"""Human tasks that are not there, are cancelled, or cannot take a step."""

from __future__ import annotations

from holdfast.errors.roots import Conflict, NotFound, StepError


class TaskNotFound(NotFound):
    """There is no human task with that id in that organisation."""


class TaskConflict(Conflict):
    """The human task cannot take that step: by this person, or in its present state. Nothing was changed."""


class TaskEnded(TaskConflict):
    """The human task is completed or cancelled: nobody can do anything about it any more."""


class TaskClaimed(TaskConflict):
    """Somebody has claimed the human task already."""


class TaskNotClaimed(TaskConflict):
    """Only who has claimed a human task may do that, and that is nobody, or somebody else."""


class NotTaskCandidate(TaskConflict):
    """Whoever wants to claim the human task is neither its assignee nor a candidate, nor a member of a candidate group."""


class TaskFormMismatch(TaskConflict):
    """What was filled in does not fit the form of the human task."""


class HumanTaskCancelled(StepError):
    """A person cancelled the human task that the workflow waits for; `details` tells who and why."""
