"""The actions of test cases: what a case does to processes, on an engine whose time is virtual.

Jobs that no activity of the engine serves wait as offers of the store. A case completes one by sending its outcome to the
execution, as the node that had taken the offer would: so jobs of every type wait for the case, also where the type is an
expression.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast import dmn
from holdfast.core import payloads
from holdfast.core.bpmn_errors import make_bpmn_error_failure
from holdfast.core.envelopes import ActivityRaised, ActivityReturned
from holdfast.core.failures import Failure
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import to_datetime
from holdfast.core.times.dates import parse_date
from holdfast.core.times.durations import parse_duration
from holdfast.core.times.zones import UTC
from holdfast.engine.requests import Answer, Request
from holdfast.errors import InvalidSchedule, MessageRefused
from holdfast.testing import process_cases as cases
from holdfast.testing.clock import DEFAULT_START
from holdfast.testing.engine import TestEngine
from holdfast.testing.process_instances import Instances, OpenJob
from holdfast.testing.process_mocks import make_decision, make_process
from holdfast.testing.process_models import CaseFailed

TESTER: Final = "tester"
"""Who completes user tasks that are for nobody in particular."""
EXAMPLE: Final = "camundaModeler:exampleOutputJson"
"""The property under which the modeler keeps an element's example data."""
ANY_KEY: Final = "*"
"""The key of messages that a case sends without one, for processes that start by them."""


class Actions:
    """Carries out the actions of one case. After each, the engine is at rest."""

    def __init__(self, engine: TestEngine, instances: Instances) -> None:
        self._engine = engine
        self._instances = instances
        self.decisions: dict[str, dmn.Result] = {}
        """What was evaluated by itself, by the id of the decision: the last time counts."""
        self.mocked_jobs: dict[str, cases.MockJobWorkerCompleteJob | cases.MockJobWorkerThrowBpmnError] = {}
        """By job type, what all jobs of it do from now on."""
        self._carry_out: Final[Mapping[type[cases.Instruction], Callable[[Any], Awaitable[None]]]] = {
            cases.CreateProcessInstance: self._create_instance,
            cases.CompleteJob: self._complete_job,
            cases.ThrowBpmnErrorFromJob: self._throw_from_job,
            cases.FailJob: self._fail_job,
            cases.MockJobWorkerCompleteJob: self._mock_jobs,
            cases.MockJobWorkerThrowBpmnError: self._mock_jobs,
            cases.MockChildProcess: self._mock_child,
            cases.MockDmnDecision: self._mock_decision,
            cases.PublishMessage: self._publish_message,
            cases.CorrelateMessage: self._correlate_message,
            cases.BroadcastSignal: self._broadcast,
            cases.CompleteUserTask: self._complete_task,
            cases.UpdateVariables: self._update_variables,
            cases.ResolveIncident: self._resolve_incident,
            cases.EvaluateDecision: self._evaluate_decision,
        }

    async def carry_out(self, action: cases.Action) -> None:
        """Do what an action says. Raises CaseFailed, or the HoldfastError with which the engine refused it."""
        await self._carry_out[type(action)](action)
        await self._engine.settle()

    # --- processes ---

    async def _create_instance(self, action: cases.CreateProcessInstance) -> None:
        if action.start_instructions or action.runtime_instructions:
            raise CaseFailed(
                "Expected a process to begin at its start event and to run to its end, but the case has start or runtime "
                "instructions, which are not supported yet. Take them out."
            )
        await self._engine.start(action.process_definition_selector.process_definition_id, action.variables)

    async def _mock_child(self, action: cases.MockChildProcess) -> None:
        id_ = action.process_definition_id
        await self._engine.deploy({f"mock-{id_}.bpmn": make_process(id_, action.variables)})

    async def _mock_decision(self, action: cases.MockDmnDecision) -> None:
        id_ = action.decision_definition_id
        output = action.variables if action.output is msgspec.UNSET else action.output
        await self._engine.deploy({f"mock-{id_}.dmn": make_decision(id_, output)})

    async def _update_variables(self, action: cases.UpdateVariables) -> None:
        instance = await self._instances.find_last(action.process_instance_selector)
        scope: str | None = None
        if action.element_selector is not None:
            scope = str(instance.find_active(action.element_selector).key)
        await self._engine.set_variables(instance.execution_id, action.variables, scope=scope, local=scope is not None)

    async def _resolve_incident(self, action: cases.ResolveIncident) -> None:
        instance, number = await self._instances.find_incident(action.incident_selector)
        await self._engine.resolve_incident(instance.execution_id, number)

    # --- jobs ---

    async def _complete_job(self, action: cases.CompleteJob) -> None:
        await self._return(await self._instances.find_job(action.job_selector), action)

    async def _throw_from_job(self, action: cases.ThrowBpmnErrorFromJob) -> None:
        await self._throw(await self._instances.find_job(action.job_selector), action)

    async def _fail_job(self, action: cases.FailJob) -> None:
        job = await self._instances.find_job(action.job_selector)
        await self._raise(job, Failure(type="JobFailed", message=action.error_message, non_retryable=True))

    async def _mock_jobs(self, action: cases.MockJobWorkerCompleteJob | cases.MockJobWorkerThrowBpmnError) -> None:
        self.mocked_jobs[action.job_type] = action

    async def serve_mocked_job(self) -> bool:
        """Let the oldest job of a mocked type do what the mock says; whether there was one."""
        for job in await self._instances.list_jobs() if self.mocked_jobs else []:
            mock = self.mocked_jobs.get(job.type)
            if isinstance(mock, cases.MockJobWorkerCompleteJob):
                await self._return(job, mock)
            elif mock is not None:
                await self._throw(job, mock)
            else:
                continue
            await self._engine.settle()
            return True
        return False

    async def _return(self, job: OpenJob, action: cases.CompleteJob | cases.MockJobWorkerCompleteJob) -> None:
        variables = self._read_example(job.process_id, job.element) if action.use_example_data else action.variables
        result = payloads.encode(variables, f"the variables of job '{job.type}'")
        await self._send(job, ActivityReturned(number=job.number, attempt=job.attempt, result=result))

    async def _throw(self, job: OpenJob, action: cases.ThrowBpmnErrorFromJob | cases.MockJobWorkerThrowBpmnError) -> None:
        variables = payloads.encode(action.variables, f"the variables of error '{action.error_code}'")
        await self._raise(job, make_bpmn_error_failure(action.error_code, action.error_message, variables))

    async def _raise(self, job: OpenJob, failure: Failure) -> None:
        await self._send(job, ActivityRaised(number=job.number, attempt=job.attempt, failure=failure))

    async def _send(self, job: OpenJob, outcome: ActivityReturned | ActivityRaised) -> None:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._engine._submit(Request(DEFAULT_ORG, outcome, execution_id=job.execution_id, future=future))
        await future

    def _read_example(self, process_id: str, element: str) -> dict[str, Any]:
        """The example data that the modeler keeps with an element."""
        found = self._instances.models.find_process(process_id).elements.get(element)
        text = "" if found is None else found.properties.get(EXAMPLE, "")
        try:
            example = msgspec.json.decode(text) if text else None
        except msgspec.DecodeError as error:
            raise CaseFailed(f"Expected the example data of '{element}' to be JSON, but it is not: {error}.") from error
        if not isinstance(example, dict):
            raise CaseFailed(
                f"Expected '{element}' to have example data, a JSON object, but it has "
                f"{'none' if example is None else 'something else'}. Add it in the modeler, or give the variables."
            )
        return example

    # --- what is published ---

    async def _publish_message(self, action: cases.PublishMessage) -> None:
        key = await self._choose_key(action.name, action.correlation_key)
        try:
            await self._engine.send_message(
                action.name,
                key,
                action.variables,
                ttl=timedelta(milliseconds=action.time_to_live),
                message_id=action.message_id or None,
            )
        except MessageRefused:
            pass  # it may not live until somebody waits for it: then it is lost, as its sender wants

    async def _correlate_message(self, action: cases.CorrelateMessage) -> None:
        key = await self._choose_key(action.name, action.correlation_key)
        await self._engine.send_message(action.name, key, action.variables, ttl=timedelta(0))

    async def _choose_key(self, name: str, key: str) -> str:
        """The key of a message; without one, that of the oldest wait for its name: a model need not have a key."""
        if key:
            return key
        waits = await self._instances.list_message_waits(name)
        return waits[0].key if waits else ANY_KEY

    async def _broadcast(self, action: cases.BroadcastSignal) -> None:
        await self._engine.broadcast_signal(action.signal_name, action.variables)

    # --- user tasks ---

    async def _complete_task(self, action: cases.CompleteUserTask) -> None:
        task = await self._instances.find_task(action.user_task_selector)
        variables = self._read_example(task.process_id, task.element) if action.use_example_data else action.variables
        info = task.info
        groups = info.candidate_groups
        who = info.claimer or info.assignee or next(iter(info.candidate_users), None) or TESTER
        if info.claimer is None:
            await self._engine.claim_task(info.task_id, by=who, groups=groups)
        await self._engine.complete_task(info.task_id, variables, by=who, groups=groups)

    # --- decisions ---

    async def _evaluate_decision(self, action: cases.EvaluateDecision) -> None:
        id_, loaded = self._instances.models.find_decision(action.decision_definition_selector)
        self.decisions[id_] = loaded.evaluate(id_, action.variables, clock=lambda: self._engine.clock.present)


def find_target(engine: TestEngine, action: cases.IncreaseTime | cases.SetTime) -> datetime:
    """The time to which an action lets time pass. Raises InvalidSchedule, or CaseFailed for one that has passed."""
    now = engine.clock.now()
    if isinstance(action, cases.IncreaseTime):
        return to_datetime(parse_duration(action.duration).add_to(now, 1, UTC))
    target = parse_date(action.time, UTC)
    if target < now:
        raise CaseFailed(
            f"Expected a time in the future, but {action.time} is before {engine.clock.present.isoformat()}. "
            "Time does not go back."
        )
    return to_datetime(target)


def find_start(instructions: Iterable[cases.AnyInstruction]) -> datetime:
    """When a case begins: at the time at which virtual clocks start, or a day before the first time that it sets."""
    for one in instructions:
        if isinstance(one, cases.SetTime):
            try:
                return min(DEFAULT_START, to_datetime(parse_date(one.time, UTC)) - timedelta(days=1))
            except InvalidSchedule:
                break  # it fails when it is carried out
    return DEFAULT_START
