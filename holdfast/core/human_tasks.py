"""Human tasks: a program asks for one, a person completes or cancels it, and it ends with its wait or its execution.

Who has claimed a task is a fact of the task's row alone (`holdfast.store.tasks`): the history knows that it was created,
which of its dates passed, and how it ended. A task's dates are one timer, under the number of the task: the earliest of
those that have not passed.

What a person does that the program or a timer has to know of (completing, cancelling, another due date) is decided by a turn
of the execution, with the row as it stands (`Turn.task_standings`), which nobody else changes before the commit: the event,
the row, the task event and the answer are one commit. What is refused changes nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import ACCEPTED, CreatedTask, Refused, Replied, TaskChange, TimerSet, Turn
from holdfast.core.execution import Execution, OpenTask
from holdfast.core.ids import derive_execution_id
from holdfast.core.instants import Instant
from holdfast.core.payloads import NULL
from holdfast.core.task_standings import TaskStanding, check_step, make_gone_error, make_touched_error
from holdfast.core.unused import add, put
from holdfast.errors import TaskConflict, TaskFormMismatch

NOT_AWAITED: Final = "its workflow waits for it no longer"
WORKFLOW_ENDED: Final = "its workflow ended"


def record_task(turn: Turn, command: commands.CreateTask) -> events.TaskCreated:
    """Record that the program asked for a task: its row is inserted with the commit. Its id follows from the execution's."""
    event = events.TaskCreated(
        number=command.number,
        task_id=derive_execution_id(turn.now, turn.execution.execution_id, command.number),
        name=command.name,
        payload=command.payload,
        form=command.form,
        description=command.description,
        assignee=command.assignee,
        users=command.users,
        groups=command.groups,
        priority=command.priority,
        queue=command.queue or turn.execution.queue,
        due=command.due,
        follow_up=command.follow_up,
        escalate_at=command.escalate_at,
        escalate_to=command.escalate_to,
    )
    turn.has_rare = True
    turn.created_tasks = add(turn.created_tasks, (CreatedTask(event, command.schema, command.check),))
    _set_timer(turn, OpenTask(event))
    return event


def record_end(turn: Turn, command: commands.EndTask) -> events.TaskEnded | None:
    """The program waits for a task no longer: it ends, if it is open."""
    if command.number not in turn.execution.tasks:
        return None
    _change(turn, TaskChange(command.number, "cancelled", reason=NOT_AWAITED, ends=True))
    turn.end_timers((command.number,))
    return events.TaskEnded(number=command.number)


def decide_completed(turn: Turn, envelope: envelopes.TaskCompleted) -> events.TaskCompleted | None:
    """A person completes the task, if it is theirs, with a form that the program can read: the program gets it."""
    task = _allow(turn, envelope)
    if task is None or not _takes_form(turn, envelope):
        return None
    _change(
        turn,
        TaskChange(
            envelope.number,
            "completed",
            ends=True,
            by=envelope.by,
            actor_groups=envelope.groups,
            result=envelope.value,
            before={"state": task.state},
            after={"state": "completed"},
        ),
    )
    turn.end_timers((envelope.number,))
    return events.TaskCompleted(number=envelope.number, result=envelope.value, by=envelope.by)


def decide_cancelled(turn: Turn, envelope: envelopes.TaskCancelled) -> events.TaskCancelled | None:
    """A person cancels the task: the program is told."""
    task = _allow(turn, envelope)
    if task is None:
        return None
    _change(
        turn,
        TaskChange(
            envelope.number,
            "cancelled",
            reason=envelope.reason,
            ends=True,
            by=envelope.by,
            actor_groups=envelope.groups,
            before={"state": task.state},
            after={"state": "cancelled"},
        ),
    )
    turn.end_timers((envelope.number,))
    return events.TaskCancelled(number=envelope.number, by=envelope.by, reason=envelope.reason)


def decide_rescheduled(turn: Turn, envelope: envelopes.TaskRescheduled) -> events.TaskRescheduled | None:
    """A person changes when the task is due: its timer follows. The program goes on waiting."""
    number = envelope.number
    if _allow(turn, envelope) is None:
        return None
    task = turn.execution.tasks[number]
    _change(
        turn,
        TaskChange(
            number,
            "rescheduled",
            by=envelope.by,
            actor_groups=envelope.groups,
            before={"due": task.event.due},
            after={"due": envelope.due},
        ),
    )
    if _set_timer(turn, _with_due(task, envelope.due)):
        turn.ended_timers = [one for one in turn.ended_timers if one != number]
    else:
        turn.end_timers((number,))
    return events.TaskRescheduled(number=number, due=envelope.due, by=envelope.by)


def refuse_late(turn: Turn, envelope: envelopes.AnyTaskStep) -> None:
    """What a person wants with a task whose execution has closed: nothing is changed."""
    turn.answer(Refused(make_gone_error(envelope)))


def _allow(turn: Turn, envelope: envelopes.AnyTaskStep) -> TaskStanding | None:
    """The task as it stands, if the person may do that with it; None if that is refused, which the sender is told."""
    number = envelope.number
    task = turn.task_standings.get(number) if turn.task_standings and number in turn.execution.tasks else None
    if task is None or task.task_id != envelope.task_id:
        turn.answer(Refused(make_gone_error(envelope)))
        return None
    try:
        if type(envelope) is envelopes.TaskCancelled and envelope.until is not None and turn.now > envelope.until:
            raise make_touched_error(envelope)
        check_step(task, envelope)
    except TaskConflict as refusal:
        turn.answer(Refused(refusal))
        return None
    turn.answer(Replied(NULL))
    return task


def _takes_form(turn: Turn, envelope: envelopes.TaskCompleted) -> bool:
    """Whether the program can read the form; if not, the sender is told why, or the turn is blocked."""
    checked = ACCEPTED if turn.check_form is None else turn.check_form(envelope.number, envelope.value)
    if checked.blocked is not None:
        turn.blocked = checked.blocked
    elif checked.refusal is not None:
        turn.answer(Refused(TaskFormMismatch(f"{checked.refusal.message} Nothing was changed.")))
    return checked is ACCEPTED


def decide_due(turn: Turn, task: OpenTask, due: Instant | None) -> events.TaskReminded | None:
    """A date of an open task has passed, or several have: what follows from each, and the timer of the next.

    `due` is when the timer was due; None: that is not known. A timer that was due before the earliest of the dates that the
    task has now was set before they were changed: it is stale.
    """
    event = task.event
    dates = _list_pending(task)
    if not dates or (due is not None and due < min(dates)):
        turn.changed = True  # so that the stale row goes, or is moved to the next date
        if not _set_timer(turn, task):
            turn.end_timers((event.number,))
        return None
    until = max(turn.now, min(dates))
    reached = events.TaskReminded(
        number=event.number,
        follow_up=_is_reached(event.follow_up, until) and not task.is_followed_up,
        overdue=_is_reached(event.due, until) and not task.is_overdue,
        escalated=_is_reached(event.escalate_at, until) and not task.is_escalated,
    )
    if reached.follow_up:
        _change(turn, TaskChange(event.number, "follow_up"))
    if reached.overdue:
        _change(turn, TaskChange(event.number, "overdue"))
    if reached.escalated:
        _change(turn, TaskChange(event.number, "escalated", groups=event.escalate_to))
    if not _set_timer(turn, _note_dates(task, reached)):
        turn.end_timers((event.number,))
    return reached


def has_timer(task: OpenTask) -> bool:
    """Whether a date of an open task has not passed yet: then it has a timer under its number."""
    return bool(_list_pending(task))


def close_tasks(turn: Turn) -> None:
    """The execution closes: its open tasks end in the same commit."""
    open_tasks = turn.execution.tasks
    ended = [TaskChange(number, "cancelled", reason=WORKFLOW_ENDED, ends=True) for number in open_tasks]
    turn.has_rare = True
    turn.task_changes = add(turn.task_changes, ended)
    turn.end_timers(open_tasks)


def _change(turn: Turn, change: TaskChange) -> None:
    turn.has_rare = True
    turn.task_changes = add(turn.task_changes, (change,))


def evolve_created(execution: Execution, event: events.TaskCreated, _now: Instant) -> None:
    """The task is open until a person, its program or the end of the execution ends it."""
    execution.tasks = put(execution.tasks, event.number, OpenTask(event))
    _note_active(execution)


def evolve_reminded(execution: Execution, event: events.TaskReminded, _now: Instant) -> None:
    """Dates of the task have passed."""
    task = execution.tasks.get(event.number)
    if task is not None:
        execution.tasks[event.number] = _note_dates(task, event)


def evolve_rescheduled(execution: Execution, event: events.TaskRescheduled, _now: Instant) -> None:
    """The task is due at another time, or at none: whether that has passed is seen anew."""
    task = execution.tasks.get(event.number)
    if task is not None:
        execution.tasks[event.number] = _with_due(task, event.due)


def evolve_ended(
    execution: Execution, event: events.TaskCompleted | events.TaskCancelled | events.TaskEnded, _now: Instant
) -> None:
    """The task is open no longer."""
    execution.tasks.pop(event.number, None)
    _note_active(execution)


def _note_active(execution: Execution) -> None:
    """The row names the task that has been open for longest."""
    tasks = execution.tasks
    execution.details.active_task = tasks[min(tasks)].event.task_id if tasks else ""


def _note_dates(task: OpenTask, reached: events.TaskReminded) -> OpenTask:
    return OpenTask(
        task.event,
        is_followed_up=task.is_followed_up or reached.follow_up,
        is_overdue=task.is_overdue or reached.overdue,
        is_escalated=task.is_escalated or reached.escalated,
    )


def _with_due(task: OpenTask, due: Instant | None) -> OpenTask:
    return OpenTask(
        replace(task.event, due=due), is_followed_up=task.is_followed_up, is_overdue=False, is_escalated=task.is_escalated
    )


def _list_pending(task: OpenTask) -> list[Instant]:
    """The dates of a task that have not passed."""
    event = task.event
    dates = (
        None if task.is_followed_up else event.follow_up,
        None if task.is_overdue else event.due,
        None if task.is_escalated else event.escalate_at,
    )
    return [at for at in dates if at is not None]


def _set_timer(turn: Turn, task: OpenTask) -> bool:
    """Set the task's timer to the next of its dates; whether there is one."""
    dates = _list_pending(task)
    if dates:
        turn.started_timers = add(turn.started_timers, (TimerSet(task.event.number, min(dates)),))
    return bool(dates)


def _is_reached(at: Instant | None, now: Instant) -> bool:
    return at is not None and at <= now
