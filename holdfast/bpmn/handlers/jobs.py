"""Jobs: tasks that an activity does, found by the job type."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.executable import CompiledJob
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.protocol import WaitingHandler
from holdfast.bpmn.mappings import read_result
from holdfast.bpmn.records import Wait
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.scopes import leave
from holdfast.bpmn.state import WORKING
from holdfast.bpmn.throwing import Thrown, throw_error
from holdfast.bpmn.values import read_object, show_value, to_raws
from holdfast.core import commands, events
from holdfast.core.bpmn_errors import read_bpmn_error
from holdfast.core.options import DEFAULT_OPTIONS, ActivityOptions, JobDetails
from holdfast.core.retry import DEFAULT_RETRY
from holdfast.core.signatures import make_job_input
from holdfast.core.times.durations import parse_duration
from holdfast.errors import InvalidSchedule

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Node
    from holdfast.bpmn.running import Place, Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.variables import View
    from holdfast.core.payloads import Payload

ATTEMPTS: Final = 3
"""How often a job is tried where neither the task nor the activity says it."""
SCHEDULE_TO_START: Final = "scheduleToStart"
"""The task header that says how long a job may wait for a node which has its activity, as a duration: `PT10M`."""


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    input: Payload
    options: ActivityOptions


class JobHandler(WaitingHandler):
    """Service, send, script, business rule and user tasks, and throwing events, that have a job type."""

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> _Job:
        """Evaluate the type and the retries, and collect the variables that the activity takes."""
        del place
        job: CompiledJob = node.work
        name = run.evaluator.make_name(job.type, view, f"the job type of '{node.id}'", "job")
        known = run.setting.limits.find_job_type(name)
        if known is None or known.parameters is None:
            variables = view.flatten()
        else:
            variables = {one: found for one in sorted(known.parameters) if (found := view.find(one)) is not None}
        size = sum(len(value.raw) for value in variables.values())
        if size > run.evaluator.limit:
            raise Fault(
                "job",
                f"Expected the input of '{node.id}' to have at most {run.evaluator.limit:,} bytes, but its variables have "
                f"{size:,}. Add input mappings, or give the activity parameters for those that it needs.",
            )
        options = DEFAULT_OPTIONS if known is None else known.options
        retry = (
            options.retry
            if options.retry != DEFAULT_RETRY
            else msgspec.structs.replace(DEFAULT_RETRY, max_attempts=ATTEMPTS)
        )
        attempts = _evaluate_attempts(run, node, job, view)
        if attempts is not None:
            retry = msgspec.structs.replace(retry, max_attempts=attempts)
        details = JobDetails(node.id, dict(job.headers))
        options = _limit_waiting(node, job, options)
        return _Job(name, make_job_input(to_raws(variables)), msgspec.structs.replace(options, retry=retry, job=details))

    def start(self, run: Run, one: Instance, node: Node, prepared: _Job) -> None:
        """Ask for the activity that does the job."""
        number = run.next_number()
        run.count_bytes(len(prepared.input.data))
        run.emit(records.Waits(one.key, (Wait(number, "activity", node.id),)))
        run.issue(
            commands.RunActivity(
                number=number,
                name=prepared.name,
                input=prepared.input,
                options=prepared.options,
                label=node.name or node.id,
            )
        )

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """The activity ended: with a result, a BPMN error, or a failure that is an incident."""
        del wait
        node = run.node_of(one)
        try:
            if type(event) is events.ActivityCompleted:
                result = read_result(event.result.data, node, "job", node.work.result_variable)
                leave(run, one, result)
                return
            self._fail(run, one, event)
        except Fault as fault:
            raise_incident(run, one, fault, WORKING)

    def _fail(self, run: Run, one: Instance, event: Any) -> None:
        if type(event) is not events.ActivityFailed:
            raise Fault("job", _describe_end(event, one.element))
        thrown = read_bpmn_error(event.failure)
        if thrown is None:
            said = f"{event.failure.type}: {event.failure.message}"
            raise Fault("job", f"Expected the job of '{one.element}' to return, but it failed: {said}")
        variables = read_object(thrown.variables.data) or {}
        if not throw_error(run, one, one.scope, Thrown(thrown.code, thrown.message, variables)):
            said = f"'{thrown.code}' of '{one.element}'"
            raise Fault("error", f"Expected an event to catch the error {said}, but there is none: {thrown.message}")


def _describe_end(event: Any, element: str) -> str:
    match event:
        case events.ActivityTimedOut():
            return f"Expected the job of '{element}' to end in time, but its timeout {event.timeout.value} passed."
        case events.ActivityCancelled():
            return f"Expected the job of '{element}' to return, but it was cancelled."
        case _:
            return f"Expected the job of '{element}' to return, but its process ended and it must not be repeated."


def _limit_waiting(node: Node, job: CompiledJob, options: ActivityOptions) -> ActivityOptions:
    """How long the job may wait for a node that has its activity: as a header of the task says it, else the activity."""
    text = job.headers.get(SCHEDULE_TO_START)
    if text is None:
        return options
    try:
        span = parse_duration(text.strip()).about
    except InvalidSchedule as error:
        raise Fault(
            "job", f"Expected header {SCHEDULE_TO_START} of '{node.id}' to be a duration, but: {error.message}"
        ) from None
    return msgspec.structs.replace(options, schedule_to_start_us=span)


def _evaluate_attempts(run: Run, node: Node, job: CompiledJob, view: View) -> int | None:
    if job.retries is None:
        return None
    what = f"the retries of '{node.id}'"
    value = run.evaluator.evaluate_text(job.retries, view, what, "job")
    if isinstance(value, str) and value.strip().isdecimal():
        value = Decimal(value.strip())
    if type(value) is not Decimal or value != value.to_integral_value() or not 0 <= value <= 1_000_000:
        raise Fault("job", f"Expected {what} to be a whole number from 0 on, but it is {show_value(value)}.")
    return max(1, int(value))
