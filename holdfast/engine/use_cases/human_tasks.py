"""Human tasks as callers meet them: lists, and the steps that people take. Each step is durable when it returns.

A step reads the row, applies the rule (`task_rules`) and replaces the row if nobody was faster; else it reads again. What
the workflow or a timer has to know of goes to the execution instead, whose turn decides on it: completing, cancelling, and
another due date. What is filled in is checked against the JSON Schema of the form, which is in the row, before anything is
sent (`task_forms`), and read as the type of the form by the turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypedDict

from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.envelopes import TaskCompleted
from holdfast.core.ids import DEFAULT_ORG, check_identifier, check_person
from holdfast.core.instants import from_datetime
from holdfast.core.references import check_key
from holdfast.core.task_standings import check_step, make_gone_error
from holdfast.engine import task_rules
from holdfast.engine.encoded_store import find_bare_store, show_encoded
from holdfast.engine.replies import read_reply
from holdfast.engine.task_rules import Actor
from holdfast.engine.task_views import TaskEvent, TaskInfo, TaskList, to_task_event, to_task_info
from holdfast.engine.use_cases.delivery import check_reason
from holdfast.engine.use_cases.task_forms import check_form
from holdfast.errors import (
    ExecutionClosed,
    ExecutionNotFound,
    InvalidArguments,
    InvalidIdentifier,
    OutcomeUnknown,
    TaskConflict,
    TaskNotFound,
)
from holdfast.store.tasks import (
    OPEN_STATES,
    ChangeOutcome,
    TaskChange,
    TaskFilter,
    TaskOrder,
    TaskRow,
    TaskState,
    require_readable,
)

if TYPE_CHECKING:
    from holdfast.core.envelopes import AnyTaskStep
    from holdfast.core.instants import Duration
    from holdfast.core.request_keys import RequestKey
    from holdfast.engine.use_cases.answered_calls import AnsweredCalls
    from holdfast.engine.use_cases.delivery import Delivery
    from holdfast.store.contract import Store
    from holdfast.store.once import KeyedCall

MOST_PER_PAGE: Final = 10_000
MOST_GROUPS: Final = 1_000
_CURSOR: Final = re.compile(r"t1\.(-?\d{0,20})\.([0-9a-f-]{36})")
_LONGEST_SHOWN: Final = 80


class TaskConditions(TypedDict, total=False):
    """Which human tasks to list, and which page of them. All conditions must hold."""

    org: str
    state: TaskState | str | Sequence[TaskState | str] | None
    """One or several of 'open', 'claimed', 'completed', 'cancelled', or 'all'. Default: 'open' and 'claimed'."""
    assignee: str | None
    claimer: str | None
    candidate_group: str | None
    """Tasks that members of this group may claim."""
    candidate_user: str | None
    due_before: datetime | None
    """Tasks that are due before this time, of those that have not ended; the earliest first."""
    name: str | None
    workflow: Any
    """The workflow that asked for it, or its name."""
    execution_id: str | None
    queue: str | None
    business_key: str | None
    order: TaskOrder | str
    """'created', the oldest first, or 'due', the earliest first. Default: 'due' with `due_before`, else 'created'."""
    cursor: str | None
    """The `cursor` of the page before."""
    limit: int
    """How many tasks a page has at most. Default 100."""


class HumanTasks:
    """What can be asked and done about human tasks."""

    def __init__(self, store: Store, delivery: Delivery, answered: AnsweredCalls) -> None:
        self._store = store
        self._delivery = delivery
        self._answered = answered
        self._limit = delivery.payload_limit

    # --- asking ---

    async def search(self, conditions: TaskConditions) -> TaskList:
        """A page of tasks. Raises InvalidArguments that says what is wrong."""
        query = make_filter(conditions)
        rows = await show_encoded(self._store).tasks.search(query)
        page = TaskList(map(to_task_info, rows))
        if len(rows) == query.limit:
            due = rows[-1].due if query.order is TaskOrder.DUE else None
            page.cursor = f"t1.{'' if due is None else due}.{rows[-1].task_id}"
        return page

    async def find(self, org: str, task_id: str) -> TaskInfo:
        """A task as it is shown, by its id. Raises TaskNotFound."""
        return to_task_info(await self._find(show_encoded(self._store), org, task_id))

    async def list_events(self, org: str, task_id: str) -> list[TaskEvent]:
        """What happened to a task, in order. Raises TaskNotFound."""
        shown = show_encoded(self._store)
        row = await self._find(shown, org, task_id)
        return [to_task_event(one) for one in await shown.tasks.list_events(org, row.task_id)]

    async def _find(self, store: Store, org: str, task_id: str) -> TaskRow:
        check_identifier(org, "the org")
        given: object = task_id
        if isinstance(given, TaskInfo):
            raise InvalidIdentifier("Expected the id of a task, but got a TaskInfo. Pass task.task_id.")
        row = await store.tasks.find(org, check_identifier(task_id, "the id of a task"))
        if row is None:
            raise TaskNotFound(
                f"Expected to find human task '{task_id}' in org '{org}', but there is none. Look at the list of tasks; "
                "those of an execution go when that is removed."
            )
        return row

    # --- steps ---

    async def step(
        self,
        verb: str,
        org: str,
        task_id: str,
        by: str,
        groups: Sequence[str],
        rule: Callable[[TaskRow, Actor], TaskChange],
        *,
        request_id: str | None = None,
    ) -> TaskInfo:
        """Take a step; the task after it. Raises TaskNotFound, or a TaskConflict by which nothing was changed.

        Raises CorruptStore if it cannot be read who may claim the task.
        """
        check_person(by)
        checked = check_groups(groups)
        call: KeyedCall | None = None
        bare = find_bare_store(self._store)  # who may do what needs no value, and no codec that is in order
        while True:
            row = await self._find(bare, org, task_id)
            require_readable(row)
            actor = Actor(by, checked, self._delivery.now)
            if request_id is not None and call is None:
                call = self._delivery.make_call(org, f"task_{verb}", request_id, task_id, row.execution_id)
            try:
                change = rule(row, actor)
            except TaskConflict:
                if call is not None and await self._is_remembered(call):
                    return await self.find(org, task_id)
                raise
            if await self._make(change, call) is ChangeOutcome.DONE:
                is_known = call is None and bare is self._store
                return to_task_info(change.row) if is_known else await self.find(org, task_id)

    async def send(
        self,
        verb: str,
        org: str,
        task_id: str,
        by: str,
        groups: Sequence[str],
        make: Callable[[TaskRow, Actor, RequestKey], AnyTaskStep],
        *,
        request_id: str | None = None,
        timeout: Duration | None = None,
    ) -> TaskInfo:
        """Take a step in a turn of the execution; the task after it. Raises as `step`, or AnswerTimedOut."""
        check_person(by)
        actor = Actor(by, check_groups(groups), self._delivery.now)
        key = self._delivery.make_reply_key(f"task_{verb}", request_id, task_id)
        return await self._send(org, task_id, lambda row: make(row, actor, key), is_new=request_id is None, timeout=timeout)

    async def _send(
        self,
        org: str,
        task_id: str,
        make: Callable[[TaskRow], AnyTaskStep],
        *,
        is_new: bool,
        timeout: Duration | None,
    ) -> TaskInfo:
        """Send a step to the execution; the task after it. `is_new`: it cannot have been answered before."""
        row = await self._find(self._store, org, task_id)
        envelope = make(row)
        if is_new:  # else what was answered before counts, whatever the row says now
            check_step(row, envelope)
        if isinstance(envelope, TaskCompleted):
            check_form(row, envelope.value)
        try:
            reply = await self._answered.reach(org, row.execution_id, envelope, timeout)
            read_reply(reply, Any, "the answer to a step of a task")
        except (ExecutionClosed, ExecutionNotFound):
            raise make_gone_error(envelope) from None
        return to_task_info(await self._find(self._store, org, task_id))

    async def _make(self, change: TaskChange, call: KeyedCall | None) -> ChangeOutcome:
        try:
            return await self._store.tasks.change(change, call)
        except OutcomeUnknown:
            event = change.event
            stored = await self._store.tasks.list_events(change.row.org, event.task_id)
            if event in stored:
                return ChangeOutcome.DONE
            raise

    async def _is_remembered(self, call: KeyedCall) -> bool:
        transaction = await self._store.begin()
        try:
            return bool(await transaction.read_requests([call.key], call.now))
        finally:
            await transaction.rollback()

    # --- what the steps take ---

    def completing(self, form: Any) -> Callable[[TaskRow, Actor, RequestKey], AnyTaskStep]:
        """Makes the envelope of completing with a form, which is encoded now."""
        encoded = payloads.encode(form, "the form of a human task", self._limit)
        return lambda row, actor, key: task_rules.complete(row, actor, encoded, key)

    def assigning(self, assignee: str | None) -> Callable[[TaskRow, Actor], TaskChange]:
        """The rule of assigning to somebody, or to nobody."""
        name = "" if assignee is None else check_identifier(assignee, "the assignee of a human task")
        return lambda row, actor: task_rules.assign(row, actor, name)

    def cancelling(self, reason: str) -> Callable[[TaskRow, Actor, RequestKey], AnyTaskStep]:
        """Makes the envelope of cancelling for a reason."""
        checked = check_reason(reason)
        return lambda row, actor, key: task_rules.cancel(row, actor, checked, key)

    def rescheduling(self, due: datetime | None) -> Callable[[TaskRow, Actor, RequestKey], AnyTaskStep]:
        """Makes the envelope of changing when it is due."""
        at = None if due is None else from_datetime(due, "due")
        return lambda row, actor, key: task_rules.reschedule(row, actor, at, key)

    def commenting(self, comment: str) -> Callable[[TaskRow, Actor], TaskChange]:
        """The rule of commenting with a text."""
        if not isinstance(comment, str) or not comment.strip():
            raise InvalidArguments(f"Expected a comment to be text, but it is {comment!r}. Say something.")
        encoded = payloads.encode(comment, "a comment", self._limit)
        return lambda row, actor: task_rules.comment(row, actor, encoded)

    def prioritizing(self, priority: int) -> Callable[[TaskRow, Actor], TaskChange]:
        """The rule of changing the priority."""
        if type(priority) is not int or not -(2**31) <= priority < 2**31:
            raise InvalidArguments(f"Expected the priority of a human task to be a whole number, but it is {priority!r}.")
        return lambda row, actor: task_rules.set_priority(row, actor, priority)


def check_groups(groups: Sequence[str]) -> tuple[str, ...]:
    """The groups of whoever does something. Raises InvalidArguments or InvalidIdentifier."""
    if isinstance(groups, str) or not isinstance(groups, Sequence | set | frozenset):
        raise InvalidArguments(f"Expected groups to be a list of names, but it is {groups!r}. Write groups=['managers'].")
    found = tuple(sorted({check_identifier(one, "each of the groups") for one in groups}))
    if len(found) > MOST_GROUPS:
        raise InvalidArguments(f"Expected at most {MOST_GROUPS} groups, but there are {len(found)}. Pass those that matter.")
    return found


def make_filter(conditions: TaskConditions) -> TaskFilter:
    """The filter of the store for a page. Raises InvalidArguments that says what is wrong."""
    unknown = sorted(conditions.keys() - TaskConditions.__optional_keys__)
    if unknown:
        raise InvalidArguments(
            f"Expected conditions that tasks knows, but {unknown[0]!r} is none. They are: "
            f"{', '.join(sorted(TaskConditions.__optional_keys__))}."
        )
    limit, due_before = conditions.get("limit", 100), conditions.get("due_before")
    if type(limit) is not int or not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidArguments(f"Expected limit to be between 1 and {MOST_PER_PAGE:,}, but it is {limit!r}.")
    order = _read_order(conditions.get("order"), has_due=due_before is not None)
    states = _read_states(conditions.get("state"))
    if order is TaskOrder.DUE and not set(states) <= set(OPEN_STATES):
        raise InvalidArguments(
            "Expected a list by due date to be of tasks that have not ended, but others are asked for. Leave state out, or "
            "pass order='created'."
        )
    after_due, after_id = _read_cursor(conditions.get("cursor"), order)
    workflow, business_key = conditions.get("workflow"), conditions.get("business_key")
    return TaskFilter(
        check_identifier(conditions.get("org", DEFAULT_ORG), "the org"),
        states,
        assignee=_read_name(conditions, "assignee"),
        claimer=_read_name(conditions, "claimer"),
        group=_read_name(conditions, "candidate_group"),
        user=_read_name(conditions, "candidate_user"),
        due_before=None if due_before is None else from_datetime(due_before, "due_before"),
        name=_read_name(conditions, "name"),
        workflow=workflow.name if isinstance(workflow, Workflow) else _read_name(conditions, "workflow"),
        execution_id=_read_name(conditions, "execution_id"),
        queue=_read_name(conditions, "queue"),
        business_key=None if business_key is None else check_key(business_key),
        order=order,
        after_id=after_id,
        after_due=after_due,
        limit=limit,
    )


def _read_name(conditions: Mapping[str, Any], name: str) -> str | None:
    value = conditions.get(name)
    return None if value is None else check_identifier(value, name)


def _read_order(order: Any, *, has_due: bool) -> TaskOrder:
    if order is None:
        return TaskOrder.DUE if has_due else TaskOrder.CREATED
    try:
        return TaskOrder(order)
    except ValueError:
        raise InvalidArguments(f"Expected order to be 'created' or 'due', but it is {order!r}.") from None


def _read_states(state: Any) -> tuple[str, ...]:
    if state is None:
        return OPEN_STATES
    if state == "all":
        return tuple(TaskState)
    try:
        found = tuple(TaskState(one) for one in ([state] if isinstance(state, str) else state))
    except (ValueError, TypeError):
        found = ()
    if not found:
        raise InvalidArguments(f"Expected state to be among {', '.join(TaskState)}, or 'all', but it is {state!r}.")
    return found


def _read_cursor(cursor: Any, order: TaskOrder) -> tuple[int, str]:
    if cursor is None:
        return -(2**63), ""
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None or bool(found[1]) != (order is TaskOrder.DUE):
        raise InvalidArguments(
            f"Expected a cursor that a list of tasks in this order returned, but it is {cursor!r}. Pass `page.cursor` "
            "unchanged, with the same conditions."
        )
    return int(found[1] or 0), found[2]
